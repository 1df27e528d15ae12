"""Scoring of a season: grades of judges over a whole horizon into axes, composites, totals, bands and tie classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.judging.season.calls import (
        HORIZON_TEMPLATE,
        CappedPart,
        capped,
        grader_version,
        horizon_ledgers,
        horizon_texts,
        ledger_disagreement,
        outcome_texts,
        parse_guess,
        quoted_spans,
        read_guess,
        season_template,
    )  # fmt: skip
    from assaymark.judging.season.plans import (
        MOST_CLAIMS,
        MOST_NOTE_TOKENS,
        PROCESS,
        Asked,
        EfficiencyRule,
        HorizonAnswer,
        HorizonClaim,
        Reasoned,
        SubComponent,
        horizon_schema,
        outcome_schema,
        parse_horizon,
        parse_outcome,
        read_horizon_reply,
        read_outcome_reply,
    )  # fmt: skip
    from assaymark.judging.season.record import (
        LEAST_BUDGET,
        NO_MARKET,
        AuditLine,
        HorizonStep,
        cut,
        market_lines,
        split_horizon,
    )  # fmt: skip
    from assaymark.judging.season.reference import (
        LEANING,
        SEASON_PLANTED,
        TOPICS,
        WORTH,
        notice_horizon,
        read_steps,
        season_argument_problems,
    )  # fmt: skip

__all__ = [
    "HORIZON_TEMPLATE", "LEANING", "LEAST_BUDGET", "MOST_CLAIMS", "MOST_NOTE_TOKENS", "NO_MARKET", "PROCESS",
    "SEASON_PLANTED", "TOPICS", "WORTH", "Asked", "AuditLine", "CappedPart", "EfficiencyRule", "HorizonAnswer",
    "HorizonClaim", "HorizonStep", "Reasoned", "SubComponent", "capped", "cut", "grader_version", "horizon_ledgers",
    "horizon_schema", "horizon_texts", "ledger_disagreement", "market_lines", "notice_horizon", "outcome_schema",
    "outcome_texts", "parse_guess", "parse_horizon", "parse_outcome", "quoted_spans", "read_guess",
    "read_horizon_reply", "read_outcome_reply", "read_steps", "season_argument_problems", "season_template",
    "split_horizon",
]  # fmt: skip

__getattr__ = exported(__name__)
