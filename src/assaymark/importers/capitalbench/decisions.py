"""One line of the decisions file as a `Decision`, and what happened afterwards as an `Outcome`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field

from assaymark.importers.capitalbench.rounds import Round
from assaymark.importers.read import midnight, moment
from assaymark.importers.report import NAME, NO_TEXT, SHA256, has_text
from assaymark.records import (
    JSON,
    Action,
    Agent,
    CallFacts,
    Decision,
    Outcome,
    Provenance,
    Rationale,
    RationaleKind,
    to_json,
)

# The shapes of a CapitalBench record as the arena publishes them; unknown keys are refused, types are strict.


_SHAPE = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Name = Annotated[str, Field(pattern=NAME)]
Text = str
Share = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern=SHA256)]

OPTION, WEIGHTS_V1, WEIGHTS_V2, WEIGHTS_V3 = "option", "weights-v1", "weights-v2", "weights-v3"
"""The four shapes, as they stand in ``Decision.format``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How the answer was obtained, as measured by the arena."""

    __pydantic_config__ = _SHAPE

    api_model_name: str
    started_at_utc: str
    completed_at_utc: str
    latency_seconds: Seconds
    input_tokens: Count | None
    output_tokens: Count | None
    reasoning_tokens: Count | None
    total_tokens: Count | None
    raw_response_sha256: Sha256
    validation_status: Literal["valid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What happened: decimal text, empty where the arena computed none."""

    __pydantic_config__ = _SHAPE

    portfolio_return: str
    sp500_return: str
    alpha_vs_sp500: str
    beats_sp500: Literal["True", "False", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One holding of a portfolio; the last three only from v2 on."""

    __pydantic_config__ = _SHAPE

    option_id: Name
    allocation_pct: Percent
    rationale: Text
    expected_return_pct: float | None = None
    time_window_catalyst: Text = ""
    invalidation_condition: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One row of the v2 candidate ledger: an option the agent weighed, kept or turned down."""

    __pydantic_config__ = _SHAPE

    option_id: Name
    decision: Literal["selected", "rejected"]
    evidence: list[Text]
    continuation_case: Text
    reversal_case: Text
    time_window_catalyst: Text
    invalidation_condition: Text
    forecast_low_pct: float
    forecast_base_pct: float
    forecast_high_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One v3 candidate assessment: the agent's own ranks, chances and evidence."""

    __pydantic_config__ = _SHAPE

    option_id: Name
    rank: Annotated[int, Field(ge=1)]
    mechanism: str
    recent_return_interpretation: str
    origin_lanes: list[str]
    evidence: list[Text]
    p_beat_spy_pct: Percent
    p_top3_pct: Percent
    excess_return_p10_pct: float
    excess_return_p50_pct: float
    excess_return_p90_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioV3:
    """What a v3 agent said, and (``deterministic_allocation``) what the arena made of it."""

    __pydantic_config__ = _SHAPE

    candidate_assessments: list[Assessment]
    candidate_slate_option_ids: list[str]
    confidence_derivation: str
    deterministic_allocation: dict[str, Any]
    dispersion_state: str
    dominant_pattern: str
    market_rationale: Text
    methodology_version: str
    prefer_spy: bool
    top3_option_ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMetadata:
    """The empty metadata of every shape but v3."""

    __pydantic_config__ = _SHAPE


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataV3:
    """The metadata that make a submission v3."""

    __pydantic_config__ = _SHAPE

    portfolio_v3: PortfolioV3


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What all four shapes share."""

    __pydantic_config__ = _SHAPE

    round_id: str
    model_id: Name
    provider: Name
    mode: str
    run_type: str
    is_official_score: bool
    replicate_count: Annotated[int, Field(ge=1)]
    replicate_index: Annotated[int, Field(ge=1)]
    confidence: Share
    rationale_summary: Text
    key_risks: list[Text]
    usage: dict[str, float | None]
    cost_usd: Annotated[float, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSubmission(Submission):
    """The first shape: one option, everything on it."""

    selected_option_id: Name
    metadata: NoMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsV1(Submission):
    """A portfolio with a reason per holding."""

    portfolio: Annotated[list[Holding], Field(min_length=1)]
    portfolio_rationale: Text
    metadata: NoMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsV2(Submission):
    """A portfolio with forecasts and a candidate ledger; the pilot had no ledger yet."""

    portfolio: Annotated[list[Holding], Field(min_length=1)]
    portfolio_rationale: Text
    portfolio_expected_return_pct: float
    benchmark_expected_return_pct: float
    expected_alpha_vs_sp500_pct: float
    metadata: NoMetadata
    candidate_ledger: list[Candidate] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsV3(Submission):
    """Ranked candidates from the agent; portfolio, its weights and its reasons from the arena."""

    portfolio: Annotated[list[Holding], Field(min_length=1)]
    portfolio_rationale: Text
    metadata: MetadataV3


S = TypeVar("S", bound=Submission)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Generic[S]):
    """One line of the decisions file."""

    __pydantic_config__ = _SHAPE

    round_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=120)]
    run_id: Name
    path: str
    submission: S
    call: Call
    outcome: Resolved | None


def format_of(submission: dict[str, Any]) -> str:
    """Which of the four shapes a submission has, told by the keys that only that shape has."""
    metadata = submission.get("metadata")
    if isinstance(metadata, dict) and "portfolio_v3" in metadata:
        return WEIGHTS_V3
    if "selected_option_id" in submission:
        return OPTION
    if "candidate_ledger" in submission or "portfolio_expected_return_pct" in submission:
        return WEIGHTS_V2
    return WEIGHTS_V1


RECORDS: dict[str, Any] = {
    OPTION: Record[OptionSubmission],
    WEIGHTS_V1: Record[WeightsV1],
    WEIGHTS_V2: Record[WeightsV2],
    WEIGHTS_V3: Record[WeightsV3],
}
"""The reader of each shape."""


# The texts of a submission as rationales: the agent's own by kind, the arena's apart, each stored once.


def rationales_of(submission: Submission) -> tuple[Rationale, ...]:
    """The texts in the order a judge reads them, then those that are ledgered only, then the arena's.

    Summary, portfolio rationale, key risks and candidates are judged. Reasons for single holdings follow (kind
    ``holding``): they are checked against the facts and not judged. What the arena wrote is kind ``arena``. A text
    that repeats one before it is left out: in v3 the summary is the agent's market rationale, and a v2 holding mostly
    repeats the catalyst of its candidate.
    """
    found: list[Rationale] = []
    seen: set[str] = set()
    for kind, text in _texts(submission):
        if text.strip() and text not in seen:
            seen.add(text)
            found.append(Rationale(text=text, kind=kind))
    return tuple(found)


def _texts(submission: Submission) -> Iterator[tuple[RationaleKind, str]]:
    yield "summary", submission.rationale_summary
    if isinstance(submission, WeightsV3):
        yield "summary", submission.metadata.portfolio_v3.market_rationale
    if not isinstance(submission, OptionSubmission):
        yield "portfolio", _portfolio_rationale(submission)
    for risk in submission.key_risks:
        yield "risk", risk
    if isinstance(submission, WeightsV2):
        yield from (("candidate", candidate_text(one)) for one in submission.candidate_ledger)
    if isinstance(submission, WeightsV3):
        yield from (
            ("candidate", assessment_text(one)) for one in submission.metadata.portfolio_v3.candidate_assessments
        )
        yield from (("arena", _line(one.option_id, one.rationale)) for one in submission.portfolio)
    elif isinstance(submission, (WeightsV1, WeightsV2)):
        ledger = submission.candidate_ledger if isinstance(submission, WeightsV2) else []
        yield from (("holding", holding_text(one, ledger)) for one in submission.portfolio)


def _portfolio_rationale(submission: Submission) -> str:
    return submission.portfolio_rationale if isinstance(submission, (WeightsV1, WeightsV2, WeightsV3)) else ""


def candidate_text(one: Candidate) -> str:
    """The texts of a row of the v2 candidate ledger. Its forecasts are fields, not text, and stay in ``stages``.

    >>> print(candidate_text(Candidate(option_id="GOLD", decision="rejected", evidence=["IAU fell 2.1%."],
    ...     continuation_case="Real yields rise.", reversal_case="They fall.", time_window_catalyst="CPI on July 14",
    ...     invalidation_condition="A close above 80",
    ...     forecast_low_pct=-3, forecast_base_pct=0.5, forecast_high_pct=2)))
    GOLD (rejected)
    Evidence: IAU fell 2.1%.
    Continuation case: Real yields rise.
    Reversal case: They fall.
    Catalyst: CPI on July 14
    Invalidation: A close above 80
    """
    return _block(
        f"{one.option_id} ({one.decision})",
        *(("Evidence", line) for line in one.evidence),
        ("Continuation case", one.continuation_case),
        ("Reversal case", one.reversal_case),
        ("Catalyst", one.time_window_catalyst),
        ("Invalidation", one.invalidation_condition),
    )


def assessment_text(one: Assessment) -> str:
    """The texts of a v3 candidate assessment. Its chances and ranges are fields and stay in ``stages``, and the lanes
    it came from are the arena's.

    >>> print(assessment_text(Assessment(option_id="SOLAR", rank=4, mechanism="no_edge", origin_lanes=["wildcard"],
    ...     recent_return_interpretation="fundamental_deterioration", evidence=["TAN lost 6.4%."], p_beat_spy_pct=41,
    ...     p_top3_pct=8, excess_return_p10_pct=-6.8, excess_return_p50_pct=-0.5, excess_return_p90_pct=5.2)))
    SOLAR (rank 4)
    Evidence: TAN lost 6.4%.
    Mechanism: no edge
    Recent return read as: fundamental deterioration
    """
    return _block(
        f"{one.option_id} (rank {one.rank})",
        *(("Evidence", line) for line in one.evidence),
        ("Mechanism", one.mechanism.replace("_", " ")),
        ("Recent return read as", one.recent_return_interpretation.replace("_", " ")),
    )


def holding_text(one: Holding, ledger: Iterable[Candidate]) -> str:
    """Why an option is held, after the option's name so that its numbers have a subject."""
    said = {
        text
        for candidate in ledger
        if candidate.option_id == one.option_id
        for text in (candidate.time_window_catalyst, candidate.invalidation_condition)
    }
    return _block(
        _line(one.option_id, one.rationale),
        *(
            (title, text)
            for title, text in (("Catalyst", one.time_window_catalyst), ("Invalidation", one.invalidation_condition))
            if text not in said
        ),
    )


def _line(subject: str, text: str) -> str:
    return f"{subject}: {text}" if text.strip() else ""


def _block(head: str, *parts: tuple[str, str]) -> str:
    return "\n".join(filter(None, [head, *(f"{title}: {text}" for title, text in parts if text.strip())]))


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
    """
    try:
        year, week, _ = date.fromisoformat("-".join(round_id.split("-")[1:4])).isocalendar()
    except ValueError:
        raise ValueError(f"round_id: must hold a date, as in CB-2026-05-17-1M (got {round_id!r})") from None
    return f"{year}-W{week:02d}"


def times_of(record: Record[Any]) -> Times:
    """When the call started and ended."""
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
