"""The marks of the pages: pure functions from rows to SVG text.

Each figure takes rows that already say what may be shown, and gives its SVG at the width of a screen and of a phone.
Colours are classes of the page's style sheet, so a figure follows dark mode, forced colours and print by itself.
"""

from assaymark.report.figures.bars import BarCell, BarRow, bar_table
from assaymark.report.figures.forest import ForestRow, Gates, forest
from assaymark.report.figures.heat import heat
from assaymark.report.figures.intervals import DeltaRow, deltas
from assaymark.report.figures.ranks import RankRow, binned, place_heads, rank_bars
from assaymark.report.figures.scale import ScaleRow, scale_use
from assaymark.report.figures.scan import scan_line
from assaymark.report.figures.score import ScoreAxis, score_axis, score_head, score_strip
from assaymark.report.figures.spread import SpreadRow, spreads

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
    "score_strip",
    "spreads",
]
