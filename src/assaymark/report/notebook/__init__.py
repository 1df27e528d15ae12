"""Results as a notebook shows them: what may be said first, then the tables and figures that the pages have too.

Each function gives parts for `assaymark.display`, which sets them as HTML and as text.
"""

from assaymark.report.notebook.bench import bench_parts
from assaymark.report.notebook.drawing import drawing
from assaymark.report.notebook.judges import judges_parts
from assaymark.report.notebook.season import season_parts
from assaymark.report.notebook.study import study_parts

__all__ = ["bench_parts", "drawing", "judges_parts", "season_parts", "study_parts"]
