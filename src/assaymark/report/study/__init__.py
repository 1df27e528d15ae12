"""The pages of a study."""

# ruff: noqa: F401, I001  # names for what is outside; nothing of it is promised, and so there is no __all__

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.report.inputs import ranked_alone, tiers
    from assaymark.report.levels import board_rows, leaderboard_section
    from assaymark.report.study.agreement import (
        agreement_section, agreement_table, agreement_words, ranks_section, single_section, stability_section,
    )  # fmt: skip
    from assaymark.report.study.bench import bench_data, bench_pages, sentence_record
    from assaymark.report.study.checks import checks_of, explanations_section, limits_of
    from assaymark.report.study.claim_map import order_grid_section, map_page, supported_words
    from assaymark.report.study.controls import (
        anchor_section, contamination_section, controls_section, holdout_group, style_section,
    )  # fmt: skip
    from assaymark.report.study.cycle import CAUTION, agents_section, example_page
    from assaymark.report.study.overview import top_finding
    from assaymark.report.study.pages import cards, rules_section
    from assaymark.report.study.plan import (
        cost_section, noise_section, panel_section, plan_section, records_section, built_in_judges,
    )  # fmt: skip

__getattr__ = exported(__name__)
