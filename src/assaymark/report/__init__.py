"""Rows to text: the pages of a run, their figures, and the summary for a terminal. Reads records, writes nothing.
`render_pages` gives every page as text, `each_page` one at a time and with single calls, and `terminal_summary` the
same verdicts for a terminal; `render_datasheet` and `render_comparison` give the pages of judges measured as
instruments. Whoever calls them writes the files."""

# ruff: noqa: F401, I001  # what is not in __all__ is for tests and for other packages of the project; it is not promised

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.blocks import (
        Block, ClaimQuote, Columns, Figure, Group, Items, Linked, Mark, Page, Prose, Section, Table, Terms, inline,
        plain,
    )  # fmt: skip
    from assaymark.report.datasheet import judges_frame, render_comparison, render_datasheet
    from assaymark.report.measurements import evidence_section, fact_check_pages, fact_check_rows, stated_number
    from assaymark.report.measurements import measurement_links
    from assaymark.report.inputs import (
        AssayRun, Example, PaidView, PlantedView, RubricView, RunIndex,
    )  # fmt: skip
    from assaymark.report.label import label_files, label_page
    from assaymark.report.levels import study_levels, withheld_groups
    from assaymark.report.notebook import bench_parts, drawing, judges_parts, season_parts, study_parts
    from assaymark.report.page import (
        ALONE, SCRIPTS, Frame, Link, Site, asset, content_security_policy, environment, paginate,
    )  # fmt: skip
    from assaymark.report.site import (
        SiteEntry, benchmark_entry, judges_entry, season_entry, study_entry, menu, render_site_index, site_of,
    )  # fmt: skip
    from assaymark.report.study.pages import each_page, study_measurements, render_pages, study_frame
    from assaymark.report.terminal import datasheet_summary, terminal_summary
    from assaymark.report.text import interval, text_width
    from assaymark.report.translation import in_language
    from assaymark.text import money

__all__ = [
    "ALONE", "AssayRun", "Frame", "Link", "PaidView", "PlantedView", "RubricView", "Site", "content_security_policy",
    "each_page", "judges_frame", "money", "render_comparison", "render_datasheet", "render_pages", "study_frame",
    "terminal_summary",
]  # fmt: skip

__getattr__ = exported(__name__)
