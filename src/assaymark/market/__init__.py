"""Market data with point-in-time views: instruments, history, regimes, correlation, the synthetic market, sources."""

# ruff: noqa: F401, I001  # names in packed lines, some as they were called in 0.1

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.market.cycles import (
        NEUTRAL_NOW, REGIMES, SESSION, Bars, Cycle, CycleKey, MinuteSource, ProbeMatch, ProbeResult,
        cycles_of, date_probe, day_of, key_of, minute_bars, minutes_from_file, probe_result, sanitise,
        synthetic_minutes,
    )  # fmt: skip
    from assaymark.market.files import PORTBENCH_NOTES, history_from_file, snapshot_from_file
    from assaymark.market.history import (
        CLOSE_OF_DAY, FIELDS, AsOf, Clock, Day, History, PriceSlice, Restated, known_at_close, shown_prices,
        synthetic_history,
    )  # fmt: skip
    from assaymark.market.instruments import (
        CLASS_NAMES, CLASSES, AssetClass, CorporateAction, Limits, Listing, PriceFinding, class_members, fill_gaps,
        price_findings, sample_on, simple_returns, snapshot_problems, universe, weekdays, PriceFinding as Finding,
    )  # fmt: skip
    from assaymark.market.macro import (
        UNDEFINED, Filing, Fundamentals, MacroReading, MacroSeries, News, calibration,
        calibration_table, class_index, drawdown, group_correlations, pairwise_correlation, regimes,
    )  # fmt: skip
    from assaymark.market.open import (
        LONG_GAP, SPACINGS, ClassOverview, PriceQuote, QualityReport, class_overviews, condition, gaps_of, history_of,
        open_history, quotes, PriceQuote as Quote, QualityReport as Condition,
    )  # fmt: skip
    from assaymark.market.snapshot import (
        Manifest, Origin, Snapshot, read_manifest, read_snapshot, snapshot_of, synthetic_snapshot, write_snapshot,
    )  # fmt: skip
    from assaymark.market.synthetic import SyntheticMarket, synthetic_market

__all__ = [
    "CLASSES", "CLASS_NAMES", "CLOSE_OF_DAY", "FIELDS", "LONG_GAP", "NEUTRAL_NOW", "PORTBENCH_NOTES", "REGIMES",
    "SESSION", "SPACINGS", "UNDEFINED", "AsOf", "AssetClass", "Bars", "ClassOverview", "Clock", "CorporateAction",
    "Cycle", "CycleKey", "Day", "Filing", "Fundamentals", "History", "Limits", "Listing", "MacroReading", "MacroSeries",
    "Manifest", "MinuteSource", "News", "Origin", "PriceFinding", "PriceQuote", "PriceSlice", "ProbeMatch",
    "ProbeResult", "QualityReport", "Restated", "Snapshot", "SyntheticMarket", "calibration", "calibration_table",
    "class_index", "class_members", "class_overviews", "condition", "cycles_of", "date_probe", "day_of", "drawdown",
    "fill_gaps", "gaps_of", "group_correlations", "history_from_file", "history_of", "key_of", "known_at_close",
    "minute_bars", "minutes_from_file", "open_history", "pairwise_correlation", "price_findings", "probe_result",
    "quotes", "read_manifest", "read_snapshot", "regimes", "sample_on", "sanitise", "shown_prices", "simple_returns",
    "snapshot_from_file", "snapshot_of", "snapshot_problems", "synthetic_history", "synthetic_market",
    "synthetic_minutes", "synthetic_snapshot", "universe", "weekdays", "write_snapshot",
]  # fmt: skip

__getattr__ = exported(__name__)
