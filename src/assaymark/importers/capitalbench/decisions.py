"""One line of the decisions file as a `Decision`, and what happened afterwards as an `Outcome`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from assaymark.importers.capitalbench.rounds import Round
from assaymark.importers.capitalbench.shapes import (
    OPTION,
    WEIGHTS_V2,
    OptionSubmission,
    Record,
    Resolved,
    Submission,
    WeightsV1,
    WeightsV2,
    WeightsV3,
)
from assaymark.importers.capitalbench.text import rationales_of
from assaymark.importers.report import NO_TEXT, has_text
from assaymark.importers.source import midnight, moment
from assaymark.records import JSON, Action, Agent, CallFacts, Decision, Outcome, Provenance, to_json

CLOCK_CONFLICT = "clock-conflict"
"""The call started before the material's own cutoff: one of the two times is wrong."""

RAW_RESPONSE = "raw response (its sha256 is kept)"
LEDGER = "candidate ledger"

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Times:
    """When a call started and how that was checked."""

    started: datetime
    completed: datetime


def record_id(record: Record[Any]) -> str:
    """Round and agent, and the replicate where it is not the first."""
    made = f"{record.round_id}/{record.submission.model_id}"
    return made if record.submission.replicate_index == 1 else f"{made}/r{record.submission.replicate_index}"


def cluster_of(round_id: str) -> str:
    """The ISO week of the date in a round's id: the regime that inference resamples.

    >>> cluster_of("CB-2026-05-17-1M")
    '2026-W20'

    Raises
    ------
    ValueError
        There is no date in the id.
    """
    try:
        year, week, _ = date.fromisoformat("-".join(round_id.split("-")[1:4])).isocalendar()
    except ValueError:
        raise ValueError(f"round_id: must hold a date, as in CB-2026-05-17-1M (got {round_id!r})") from None
    return f"{year}-W{week:02d}"


def times_of(record: Record[Any]) -> Times:
    """When the call started and ended.

    Raises
    ------
    ValueError
        Not times with a zone, or the end before the start.
    """
    try:
        started = moment(record.call.started_at_utc)
    except ValueError as exc:
        raise ValueError(f"call.started_at_utc: {exc}") from None
    try:
        completed = moment(record.call.completed_at_utc)
    except ValueError as exc:
        raise ValueError(f"call.completed_at_utc: {exc}") from None
    if completed < started:
        raise ValueError(f"call.completed_at_utc: is before the start ({completed.isoformat()})")
    return Times(started, completed)


def faults(record: Record[Any], shape: str, options: frozenset[str]) -> list[str]:
    """What is wrong with a record although every field of it has the right type."""
    submission = record.submission
    found = []
    if submission.round_id != record.round_id:
        found.append(f"submission.round_id: is another round's (got {submission.round_id!r})")
    if submission.replicate_index > submission.replicate_count:
        found.append(f"submission.replicate_index: exceeds replicate_count (got {submission.replicate_index})")
    for place, names in _named(submission):
        found += [f"{place}: is none of the round's options (got {name!r})" for name in names if name not in options]
        found += [f"{place}: names {name!r} twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if shape != OPTION:
        total = sum(holding.allocation_pct for holding in submission.portfolio)
        if total > 100 + _TOLERANCE:
            found.append(f"submission.portfolio: allocations sum to {total:g} (allowed at most 100)")
    return found


def _named(submission: Submission) -> list[tuple[str, list[str]]]:
    """The option ids of a submission, list by list."""
    if isinstance(submission, OptionSubmission):
        return [("submission.selected_option_id", [submission.selected_option_id])]
    named = []
    if isinstance(submission, (WeightsV1, WeightsV2, WeightsV3)):
        named.append(("submission.portfolio", [one.option_id for one in submission.portfolio]))
    if isinstance(submission, WeightsV2):
        named.append(("submission.candidate_ledger", [one.option_id for one in submission.candidate_ledger]))
    if isinstance(submission, WeightsV3):
        own = submission.metadata.portfolio_v3.candidate_assessments
        named.append(("submission.metadata.portfolio_v3.candidate_assessments", [one.option_id for one in own]))
    return named


def decision_of(record: Record[Any], shape: str, of: Round, times: Times, provenance: Provenance) -> Decision:
    """The decision. ``decided_at`` is the start of the call: nothing published later can have reached the agent."""
    submission = record.submission
    flags = (CLOCK_CONFLICT,) if times.started < of.context.cutoff else ()
    missing = [RAW_RESPONSE]
    if shape == WEIGHTS_V2 and not submission.candidate_ledger:
        missing.append(LEDGER)
    rationales = rationales_of(submission)
    if not has_text(rationales):
        missing.append(NO_TEXT)
    return Decision(
        record_id=record_id(record),
        episode_id=record.round_id,
        step=0,
        cluster=cluster_of(record.round_id),
        decided_at=times.started,
        agent=Agent(
            id=submission.model_id,
            family=submission.provider,
            model=record.call.api_model_name,
            params={"mode": submission.mode},
        ),
        context_id=of.context_id,
        actions=actions_of(submission),
        rationales=rationales,
        format=shape,
        provenance=Provenance(
            source=provenance.source,
            path=record.path,
            commit=provenance.commit,
            licence=provenance.licence,
        ),
        confidence=submission.confidence,
        stages=stages_of(record),
        call=_call(record),
        replicate=submission.replicate_index,
        flags=flags,
        missing=tuple(missing),
    )


def _call(record: Record[Any]) -> CallFacts:
    call = record.call
    return CallFacts(
        seconds=call.latency_seconds,
        timing_source="measured",
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        reasoning_tokens=call.reasoning_tokens,
        cost_usd=record.submission.cost_usd,
    )


def actions_of(submission: Submission) -> tuple[Action, ...]:
    """Target weights as fractions of NAV; a single option is all of it."""
    if isinstance(submission, OptionSubmission):
        return (Action(instrument=submission.selected_option_id, kind="target_weight", weight=1.0),)
    holdings = submission.portfolio if isinstance(submission, (WeightsV1, WeightsV2, WeightsV3)) else []
    return tuple(
        Action(
            instrument=one.option_id,
            kind="target_weight",
            weight=one.allocation_pct / 100,
            expected_return=None if one.expected_return_pct is None else one.expected_return_pct / 100,
        )
        for one in holdings
    )


def stages_of(record: Record[Any]) -> Mapping[str, JSON]:
    """The structured parts: what is held, forecasts, candidates, and who set weights and confidence."""
    submission = record.submission
    stages: dict[str, JSON] = {
        "selected": [action.instrument for action in actions_of(submission)],
        "raw_response_sha256": record.call.raw_response_sha256,
        "run": record.run_id,
        "weights_by": "agent",
        "confidence_by": "agent",
    }
    if isinstance(submission, WeightsV2):
        stages |= {"forecast": _forecast(submission), "candidates": to_json(submission.candidate_ledger)}
    if isinstance(submission, WeightsV3):
        said = submission.metadata.portfolio_v3
        stages |= {
            "weights_by": "arena",
            "confidence_by": "arena",
            "confidence_rule": said.confidence_derivation,
            "candidates": to_json(said.candidate_assessments),
            "views": {
                "dispersion_state": said.dispersion_state,
                "dominant_pattern": said.dominant_pattern,
                "prefer_spy": said.prefer_spy,
                "top3": list(said.top3_option_ids),
            },
        }
    return stages


def _forecast(submission: WeightsV2) -> JSON:
    """The forecasts as stated, in percent; holdings without one are left out."""
    return {
        "portfolio_pct": submission.portfolio_expected_return_pct,
        "benchmark_pct": submission.benchmark_expected_return_pct,
        "alpha_pct": submission.expected_alpha_vs_sp500_pct,
        "holdings": {
            one.option_id: one.expected_return_pct
            for one in submission.portfolio
            if one.expected_return_pct is not None
        },
    }


def outcome_of(resolved: Resolved | None, name: str, of: Round) -> Outcome | None:
    """What the portfolio returned over the horizon, beside the S&P 500; None while nothing is resolved.

    The first shape has no portfolio return; there it is the benchmark's plus alpha, as the arena defines alpha. The
    day of exit counts until its end (UTC), for the closing price comes late in it.

    Raises
    ------
    ValueError
        Not numbers, or a return that is not the benchmark's plus alpha.
    """
    if resolved is None or not any((resolved.portfolio_return, resolved.sp500_return, resolved.alpha_vs_sp500)):
        return None
    own, benchmark, alpha = (
        _ratio(getattr(resolved, part), part) for part in ("portfolio_return", "sp500_return", "alpha_vs_sp500")
    )
    if own is None and benchmark is not None and alpha is not None:
        own, source = benchmark + alpha, "sp500_return + alpha_vs_sp500"
    else:
        source = "portfolio_return"
    if own is None:
        return None
    if benchmark is not None and alpha is not None and abs(own - benchmark - alpha) > 1e-6:
        raise ValueError(f"outcome.alpha_vs_sp500: is not the return less the benchmark's (got {alpha:g})")
    return Outcome(
        record_id=name,
        horizon=of.horizon,
        value=own,
        benchmark=benchmark,
        resolved_at=midnight(of.exit_date) + timedelta(days=1),
        source=source,
    )


def _ratio(text: str, part: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"outcome.{part}: must be a finite number or empty (got {text[:40]!r})")
    return value
