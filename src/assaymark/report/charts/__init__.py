"""The marks of the pages: pure functions from rows to SVG text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.charts.canvas import Box, Scale, apart, around, csv_text, label, placed
    from assaymark.report.charts.grids import (
        BarCell,
        BarRow,
        bar_table,
        class_panel,
        correlation_map,
        scale_use,
        tint_of,
    )
    from assaymark.report.charts.intervals import (
        POINTED,
        ForestRow,
        Gates,
        JudgeWords,
        forest,
        interval_strip,
        judge_marks,
    )
    from assaymark.report.charts.intervals import score_axis as score_axis
    from assaymark.report.charts.intervals import score_head as score_head
    from assaymark.report.charts.models import StressPoint, Strip, TierRow, stress_scatter, strip_axis, tier_chart
    from assaymark.report.charts.paths import (
        NavLine,
        NavWords,
        day_ticks,
        fall_steps,
        falls,
        history_panels,
        nav_figure,
    )
    from assaymark.report.charts.paths import price_chart as price_chart
    from assaymark.report.charts.paths import steps as steps

__all__ = [
    "POINTED", "BarCell", "BarRow", "Box", "ForestRow", "Gates", "JudgeWords", "NavLine", "NavWords", "Scale",
    "StressPoint", "Strip", "TierRow", "apart", "around", "bar_table", "class_panel", "correlation_map", "csv_text",
    "day_ticks", "fall_steps", "falls", "forest", "history_panels", "interval_strip", "judge_marks", "label",
    "nav_figure", "placed", "price_chart", "scale_use", "score_axis", "score_head", "steps", "stress_scatter",
    "strip_axis", "tier_chart", "tint_of",
]  # fmt: skip

__getattr__ = exported(__name__)
