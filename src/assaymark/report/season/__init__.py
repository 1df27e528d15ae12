"""The site of a season."""

# ruff: noqa: F401, I001  # what is not in __all__ is for tests and for the pages of several tracks

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.records.answers import SeasonRecord, SeasonProvenance, record_places, season_record_pages
    from assaymark.report.season.decisions import order_texts, reply_problem
    from assaymark.report.season.feeds import preview_name, verdict_records
    from assaymark.report.season.index import (
        ROWS, AgentIndex, Language, SeasonClaimLine, SeasonGradeView, SeasonIndex, SeasonPath, SeasonRun,
        paged_measurements, round_points,
    )  # fmt: skip
    from assaymark.report.season.leaderboard import (
        WIDTH, account_facts, band_scale, band_words, board_notes, lowest_to_highest, part_figure, strip_head,
        strip_markup,
    )  # fmt: skip
    from assaymark.report.season.levels import result_words, season_levels
    from assaymark.report.season.pages import (
        OWN,
        differences,
        season_frame,
        season_rules,
        site_pages,
        weight_tables,
        write_site,
    )
    from assaymark.report.season.panel import REASONS, blinding_blocks, preference_table

__all__ = [
    "SeasonClaimLine", "SeasonGradeView", "SeasonPath", "SeasonRun", "season_frame", "site_pages", "write_site",
]  # fmt: skip

__getattr__ = exported(__name__)
