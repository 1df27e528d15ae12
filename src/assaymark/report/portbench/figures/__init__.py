"""The marks of a benchmark: pure functions from numbers to SVG text, coloured by classes of the style sheet."""

from __future__ import annotations

from assaymark.report.charts.grids import class_panel, correlation_map
from assaymark.report.charts.intervals import interval_strip
from assaymark.report.charts.paths import History, HistorySet, history_panels
from assaymark.report.charts.scatter import StressPoint, stress_scatter

__all__ = [
    "History",
    "HistorySet",
    "StressPoint",
    "class_panel",
    "correlation_map",
    "history_panels",
    "interval_strip",
    "stress_scatter",
]
