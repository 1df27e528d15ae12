"""What was knowable when: instruments, history, as-of views, regimes, correlation, the synthetic market, sources.

Holds the price store and its as-of views, the calendar and gap rule, pairwise-complete correlation, regimes, macro
series with their release dates, news, the calibrated synthetic market of six asset classes, and prices from files.
Nothing that decides, judges, measures or certifies can import it.
"""

from assaymark.market.calendar import fill_gaps, sample_on, simple_returns, weekdays
from assaymark.market.calibration import calibration, calibration_table
from assaymark.market.checks import Limits, price_problems, snapshot_problems
from assaymark.market.correlation import Correlations, class_correlations, pairwise_correlation
from assaymark.market.files import history_from_file
from assaymark.market.history import History, known_at_close, synthetic_history
from assaymark.market.instruments import CLASS_NAMES, CLASSES, AssetClass, Listing, class_members, universe
from assaymark.market.macro import MacroReading, MacroSeries
from assaymark.market.minutes import MinuteBars, minute_bars
from assaymark.market.news import News, NewsFact
from assaymark.market.regimes import class_index, drawdown, regimes
from assaymark.market.sanitise import Bars, ProbeMatch, Sanitised, date_probe, sanitise
from assaymark.market.synthetic import SyntheticMarket, synthetic_market
from assaymark.market.view import AsOf, PriceSlice

__all__ = [
    "CLASSES",
    "CLASS_NAMES",
    "AsOf",
    "AssetClass",
    "Bars",
    "Correlations",
    "History",
    "Limits",
    "Listing",
    "MacroReading",
    "MacroSeries",
    "MinuteBars",
    "News",
    "NewsFact",
    "PriceSlice",
    "ProbeMatch",
    "Sanitised",
    "SyntheticMarket",
    "calibration",
    "calibration_table",
    "class_correlations",
    "class_index",
    "class_members",
    "date_probe",
    "drawdown",
    "fill_gaps",
    "history_from_file",
    "known_at_close",
    "minute_bars",
    "pairwise_correlation",
    "price_problems",
    "regimes",
    "sample_on",
    "sanitise",
    "simple_returns",
    "snapshot_problems",
    "synthetic_history",
    "synthetic_market",
    "universe",
    "weekdays",
]
