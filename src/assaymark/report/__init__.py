"""Rows to text: the pages of a run, their figures, and the summary for a terminal. Reads records, writes nothing.
`render_pages` gives every page as text, `each_page` one at a time and with single calls, and `terminal_summary` the
same verdicts for a terminal; `render_datasheet` and `render_comparison` give the pages of judges measured as
instruments. Whoever calls them writes the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.datasheet import judges_frame, render_comparison, render_datasheet
    from assaymark.report.inputs import AssayRun, PaidView, PlantedView, RubricView
    from assaymark.report.page import ALONE, Frame, Link, Site, content_security_policy
    from assaymark.report.study.pages import each_page, render_pages, study_frame
    from assaymark.report.terminal import terminal_summary
    from assaymark.text import money

__all__ = [
    "ALONE",
    "AssayRun",
    "Frame",
    "Link",
    "PaidView",
    "PlantedView",
    "RubricView",
    "Site",
    "content_security_policy",
    "each_page",
    "judges_frame",
    "money",
    "render_comparison",
    "render_datasheet",
    "render_pages",
    "study_frame",
    "terminal_summary",
]

__getattr__ = exported(__name__)
