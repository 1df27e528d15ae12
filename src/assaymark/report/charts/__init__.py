"""Figures of the pages: pure functions from rows of values that may be shown to SVG text, for a screen and a phone.
Colours are classes of the page's style sheet, so figures follow dark mode, forced colours and print."""

# ruff: noqa: F401, I001  # names for what is outside; nothing of it is promised, and so there is no __all__

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.charts.canvas import (
        POINTED, WIDE, Box, JudgeWords, Scale, csv_text, judge_marks, label, place_labels, spots_around, spread_labels,
        views,
    )  # fmt: skip
    from assaymark.report.charts.datasheet import (
        PARTS, Curve, MapPoint, value_axis, curves, dots, segment, marker_style, share_map, stacks,
    )  # fmt: skip
    from assaymark.report.charts.grids import (
        bar_table, class_panel, correlation_map, scale_use, tint_of,
    )  # fmt: skip
    from assaymark.report.charts.intervals import AxisRow, forest, interval_strip, score_axis, score_head
    from assaymark.report.charts.models import Strip, TierRow, stress_scatter, strip_axis, tier_chart
    from assaymark.report.charts.paths import (
        day_ticks, drawdown_ticks, drawdowns, history_panels, nav_figure, price_chart, nav_ticks,
    )  # fmt: skip

__getattr__ = exported(__name__)
