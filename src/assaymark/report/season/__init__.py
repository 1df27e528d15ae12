"""The site of a season."""

from __future__ import annotations

from assaymark.report.season.index import (
    SeasonClaimLine,
    SeasonGradeView,
    SeasonPath,
    SeasonRefusal,
    SeasonRule,
    SeasonRun,
    SeasonStep,
    SeasonTrade,
)
from assaymark.report.season.pages import season_frame, site_pages, write_site

__all__ = [
    "SeasonClaimLine", "SeasonGradeView", "SeasonPath", "SeasonRefusal", "SeasonRule", "SeasonRun", "SeasonStep",
    "SeasonTrade", "season_frame", "site_pages", "write_site",
]  # fmt: skip
