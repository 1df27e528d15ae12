"""The page of a judge's datasheet, its summary figure, and the page of several judges."""

from __future__ import annotations

from assaymark.report.datasheet.pages import COMPARISON, judges_frame, render_comparison, render_datasheet
from assaymark.report.datasheet.reading import datasheet_path

__all__ = ["COMPARISON", "datasheet_path", "judges_frame", "render_comparison", "render_datasheet"]
