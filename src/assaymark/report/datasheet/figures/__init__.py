"""The marks of a judge's datasheet: pure functions from measured values to drawn panels.

Every panel is drawn at a given width, so that it can stand on a page at two widths and in the summary figure.
"""

from __future__ import annotations

from assaymark.report.charts.datasheet_axes import Heads, MapPoint, Operating, segment, share_map, small_segment
from assaymark.report.charts.datasheet_marks import (
    BARRED,
    PARTS,
    Curve,
    CurvePoint,
    DotAxis,
    DotRow,
    Foot,
    Panel,
    StackRow,
    axis_of,
    curves,
    dots,
    series,
    small_curve,
    stacks,
)

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
