"""What was knowable when: instruments, history, as-of views, regimes, correlation, the synthetic market, sources.

Holds the price store in memory and on disk and its as-of views, the calendar and gap rule, pairwise-complete
correlation, regimes, macro series with their release dates, news, filings, the calibrated synthetic market of six asset
classes, and prices from files.
Nothing that decides, judges, measures or certifies can import it.
"""

from assaymark.market.actions import CorporateAction
from assaymark.market.calendar import fill_gaps, sample_on, simple_returns, weekdays
from assaymark.market.calibration import calibration, calibration_table
from assaymark.market.checks import Finding, Limits, price_findings, price_problems, snapshot_problems
from assaymark.market.correlation import Correlations, class_correlations, pairwise_correlation
from assaymark.market.file_source import snapshot_from_file
from assaymark.market.files import history_from_file
from assaymark.market.fundamentals import Filing, Fundamentals
from assaymark.market.history import History, known_at_close, synthetic_history
from assaymark.market.instruments import CLASS_NAMES, CLASSES, AssetClass, Listing, class_members, universe
from assaymark.market.macro import MacroReading, MacroSeries
from assaymark.market.minutes import MinuteBars, minute_bars
from assaymark.market.news import News, NewsFact
from assaymark.market.opening import history_of, open_history
from assaymark.market.regimes import class_index, drawdown, regimes
from assaymark.market.restated import Restated
from assaymark.market.sanitise import Bars, ProbeMatch, Sanitised, date_probe, sanitise
from assaymark.market.snapshot import Origin, Snapshot
from assaymark.market.snapshots import snapshot_of, synthetic_snapshot
from assaymark.market.store import Manifest, read_manifest, read_snapshot, write_snapshot
from assaymark.market.synthetic import SyntheticMarket, synthetic_market
from assaymark.market.view import AsOf, PriceSlice

__all__ = [
    "CLASSES",
    "CLASS_NAMES",
    "AsOf",
    "AssetClass",
    "Bars",
    "CorporateAction",
    "Correlations",
    "Filing",
    "Finding",
    "Fundamentals",
    "History",
    "Limits",
    "Listing",
    "MacroReading",
    "MacroSeries",
    "Manifest",
    "MinuteBars",
    "News",
    "NewsFact",
    "Origin",
    "PriceSlice",
    "ProbeMatch",
    "Restated",
    "Sanitised",
    "Snapshot",
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
    "history_of",
    "known_at_close",
    "minute_bars",
    "open_history",
    "pairwise_correlation",
    "price_findings",
    "price_problems",
    "read_manifest",
    "read_snapshot",
    "regimes",
    "sample_on",
    "sanitise",
    "simple_returns",
    "snapshot_from_file",
    "snapshot_of",
    "snapshot_problems",
    "synthetic_history",
    "synthetic_market",
    "synthetic_snapshot",
    "universe",
    "weekdays",
    "write_snapshot",
]
