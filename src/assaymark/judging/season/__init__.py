"""Scoring of a season: from judges' grades of a whole horizon to axes, composites, totals, bands and tiers."""

# ruff: noqa: F401, I001  # names for what is outside; nothing of it is promised, and so there is no __all__

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.judging.season.calls import (
        HORIZON_TEMPLATE, CappedPart, cap_evidence, grader_version, horizon_ledgers, judge_texts, ledger_disagreement,
        find_quotation, season_template,
    )  # fmt: skip
    from assaymark.judging.season.plans import (
        MOST_CLAIMS, MOST_NOTE_TOKENS, OUTCOME, PROCESS, EfficiencyRule, HorizonAnswer, HorizonClaim, SubComponent,
        horizon_form,
    )  # fmt: skip
    from assaymark.judging.season.record import (
        LEAST_BUDGET, NO_MARKET, AuditLine, HorizonStep, group_steps, market_lines, split_horizon,
    )  # fmt: skip
    from assaymark.judging.reference.features import notice_horizon, read_steps
    from assaymark.judging.reference.judges import LEANING, SEASON_PLANTED, TOPICS, WORTH, season_argument_problems

__getattr__ = exported(__name__)
