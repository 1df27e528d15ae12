"""What was knowable when: instruments, history, as-of views, regimes, correlation, the synthetic market, sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.market.cycles import Bars, MinuteBars, ProbeMatch, Sanitised, date_probe, minute_bars, sanitise
    from assaymark.market.files import history_from_file, snapshot_from_file
    from assaymark.market.history import AsOf, History, PriceSlice, Restated, known_at_close, synthetic_history
    from assaymark.market.instruments import (
        CLASS_NAMES,
        CLASSES,
        AssetClass,
        CorporateAction,
        Finding,
        Limits,
        Listing,
        class_members,
        fill_gaps,
        price_findings,
        price_problems,
        sample_on,
        simple_returns,
        snapshot_problems,
        universe,
        weekdays,
    )
    from assaymark.market.macro import (
        Correlations,
        Filing,
        Fundamentals,
        MacroReading,
        MacroSeries,
        News,
        NewsFact,
        calibration,
        calibration_table,
        class_correlations,
        class_index,
        drawdown,
        pairwise_correlation,
        regimes,
    )
    from assaymark.market.open import history_of, open_history
    from assaymark.market.snapshot import (
        Manifest,
        Origin,
        Snapshot,
        read_manifest,
        read_snapshot,
        snapshot_of,
        synthetic_snapshot,
        write_snapshot,
    )
    from assaymark.market.synthetic import SyntheticMarket, synthetic_market

__all__ = [
    "CLASSES", "CLASS_NAMES", "AsOf", "AssetClass", "Bars", "CorporateAction", "Correlations", "Filing", "Finding",
    "Fundamentals", "History", "Limits", "Listing", "MacroReading", "MacroSeries", "Manifest", "MinuteBars", "News",
    "NewsFact", "Origin", "PriceSlice", "ProbeMatch", "Restated", "Sanitised", "Snapshot", "SyntheticMarket",
    "calibration", "calibration_table", "class_correlations", "class_index", "class_members", "date_probe", "drawdown",
    "fill_gaps", "history_from_file", "history_of", "known_at_close", "minute_bars", "open_history",
    "pairwise_correlation", "price_findings", "price_problems", "read_manifest", "read_snapshot", "regimes",
    "sample_on", "sanitise", "simple_returns", "snapshot_from_file", "snapshot_of", "snapshot_problems",
    "synthetic_history", "synthetic_market", "synthetic_snapshot", "universe", "weekdays", "write_snapshot",
]  # fmt: skip

__getattr__ = exported(__name__)
