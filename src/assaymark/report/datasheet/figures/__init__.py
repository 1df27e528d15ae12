"""The marks of a judge's datasheet: pure functions from measured values to drawn panels.

Every panel is drawn at a given width, so that it can stand on a page at two widths and in the summary figure.
"""

from assaymark.report.datasheet.figures.axes import Heads, MapPoint, share_map
from assaymark.report.datasheet.figures.curve import BARRED, Curve, CurvePoint, Foot, curves, small_curve
from assaymark.report.datasheet.figures.dots import DotAxis, DotRow, axis_of, dots
from assaymark.report.datasheet.figures.marks import PARTS, Panel, series
from assaymark.report.datasheet.figures.segment import Operating, segment, small_segment
from assaymark.report.datasheet.figures.stack import StackRow, stacks

__all__ = [
    "BARRED",
    "PARTS",
    "Curve",
    "CurvePoint",
    "DotAxis",
    "DotRow",
    "Foot",
    "Heads",
    "MapPoint",
    "Operating",
    "Panel",
    "StackRow",
    "axis_of",
    "curves",
    "dots",
    "segment",
    "series",
    "share_map",
    "small_curve",
    "small_segment",
    "stacks",
]
