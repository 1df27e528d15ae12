"""The marks of a benchmark: pure functions from numbers to SVG text, coloured by classes of the style sheet."""

from assaymark.report.portbench.figures.classes import class_panel
from assaymark.report.portbench.figures.correlation import correlation_map
from assaymark.report.portbench.figures.history import History, HistorySet, history_panels
from assaymark.report.portbench.figures.scatter import StressPoint, stress_scatter
from assaymark.report.portbench.figures.strip import interval_strip

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
