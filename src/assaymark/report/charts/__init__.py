"""The marks of the pages: pure functions from rows to SVG text. Each figure takes rows that already say what may be
shown, and gives its SVG at the width of a screen and of a phone. Colours are classes of the page's style sheet, so a
figure follows dark mode, forced colours and print by itself."""

from __future__ import annotations

from assaymark.report.charts.grids import (
    BarCell,
    BarRow,
    RankRow,
    ScaleRow,
    bar_table,
    binned,
    heat,
    place_heads,
    rank_bars,
    scale_use,
    scan_line,
)
from assaymark.report.charts.intervals import (
    DeltaRow,
    ForestRow,
    Gates,
    ScoreAxis,
    SpreadRow,
    deltas,
    forest,
    score_axis,
    score_head,
    spreads,
)

__all__ = [
    "BarCell",
    "BarRow",
    "DeltaRow",
    "ForestRow",
    "Gates",
    "RankRow",
    "ScaleRow",
    "ScoreAxis",
    "SpreadRow",
    "bar_table",
    "binned",
    "deltas",
    "forest",
    "heat",
    "place_heads",
    "rank_bars",
    "scale_use",
    "scan_line",
    "score_axis",
    "score_head",
    "spreads",
]
