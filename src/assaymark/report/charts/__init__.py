"""The marks of the pages: pure functions from rows to SVG text. Each figure takes rows that already say what may be
shown, and gives its SVG at the width of a screen and of a phone. Colours are classes of the page's style sheet, so a
figure follows dark mode, forced colours and print by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.charts.canvas import Scale, apart, csv_text, label
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
        score_axis,
        score_head,
    )
    from assaymark.report.charts.paths import (
        NavLine,
        NavWords,
        day_ticks,
        fall_steps,
        falls,
        history_panels,
        nav_figure,
        price_chart,
        steps,
    )
    from assaymark.report.charts.scatter import Box, Request, StressPoint, around, placed, stress_scatter
    from assaymark.report.charts.tiers import Strip, TierRow, strip_axis, tier_chart

__all__ = [
    "POINTED", "BarCell", "BarRow", "Box", "ForestRow", "Gates", "JudgeWords", "NavLine", "NavWords", "Request",
    "Scale", "StressPoint", "Strip", "TierRow", "apart", "around", "bar_table", "class_panel", "correlation_map",
    "csv_text", "day_ticks", "fall_steps", "falls", "forest", "history_panels", "interval_strip", "judge_marks",
    "label", "nav_figure", "placed", "price_chart", "scale_use", "score_axis", "score_head", "steps",
    "stress_scatter", "strip_axis", "tier_chart", "tint_of",
]  # fmt: skip

__getattr__ = exported(__name__)
