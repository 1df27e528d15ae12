"""Import CapitalBench: frozen-input allocation rounds, from two files to decisions, contexts and outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import Field

import assaymark.records as records
from assaymark.importers import read
from assaymark.importers.capitalbench_rounds import Round, finite, read_rounds
from assaymark.importers.report import Imported, Tally, rationales_of, text_missing, week_of
from assaymark.text import count_of

PROVENANCE: Final = records.Provenance(source="ishtiaqrahman/capitalbench", licence="CC BY 4.0")
"""Default provenance of the records; callers may add a commit or name a mirror."""

CLOCK_CONFLICT: Final = "clock-conflict"
"""Flag of a call that started before the cutoff of its context: one of the two times is wrong."""


Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]


class Call(read.StrictModel):
    """Metadata of the call, as measured by the arena."""

    api_model_name: str
    started_at_utc: str
    completed_at_utc: str
    latency_seconds: NotNegative
    input_tokens: Count | None
    output_tokens: Count | None
    reasoning_tokens: Count | None
    total_tokens: Count | None
    raw_response_sha256: read.Sha256
    validation_status: Literal["valid"]


class Resolved(read.StrictModel):
    """Realised returns as decimal text, empty if the arena computed none."""

    portfolio_return: str
    sp500_return: str
    alpha_vs_sp500: str
    beats_sp500: Literal["True", "False", ""]


class Holding(read.StrictModel):
    """One holding of a portfolio; the last three fields exist from v2 on."""

    option_id: read.Name
    allocation_pct: Percent
    rationale: str
    expected_return_pct: float | None = None
    time_window_catalyst: str = ""
    invalidation_condition: str = ""


class Candidate(read.StrictModel):
    """One row of the v2 candidate ledger: an option that the agent considered, and selected or rejected."""

    option_id: read.Name
    decision: Literal["selected", "rejected"]
    evidence: list[str]
    continuation_case: str
    reversal_case: str
    time_window_catalyst: str
    invalidation_condition: str
    forecast_low_pct: float
    forecast_base_pct: float
    forecast_high_pct: float


class Assessment(read.StrictModel):
    """One v3 candidate assessment: the agent's ranks, probabilities and evidence."""

    option_id: read.Name
    rank: Positive
    mechanism: str
    recent_return_interpretation: str
    origin_lanes: list[str]
    evidence: list[str]
    p_beat_spy_pct: Percent
    p_top3_pct: Percent
    excess_return_p10_pct: float
    excess_return_p50_pct: float
    excess_return_p90_pct: float


class PortfolioV3(read.StrictModel):
    """A v3 agent's assessments and views, and the arena's allocation from them (``deterministic_allocation``)."""

    candidate_assessments: list[Assessment]
    candidate_slate_option_ids: list[str]
    confidence_derivation: str
    deterministic_allocation: dict[str, Any]
    dispersion_state: str
    dominant_pattern: str
    market_rationale: str
    methodology_version: str
    prefer_spy: bool
    top3_option_ids: list[str]


class MetadataV3(read.StrictModel):
    """Metadata of a v3 submission."""

    portfolio_v3: PortfolioV3


class Submission(read.StrictModel):
    """Fields common to all four submission formats."""

    round_id: str
    model_id: read.Name
    provider: read.Name
    mode: str
    run_type: str
    is_official_score: bool
    replicate_count: Positive
    replicate_index: Positive
    confidence: Annotated[float, Field(ge=0, le=1)]
    rationale_summary: str
    key_risks: list[str]
    usage: dict[str, float | None]
    cost_usd: NotNegative | None = None


class OptionSubmission(Submission):
    """The first format: the whole portfolio in one option."""

    selected_option_id: read.Name
    metadata: read.StrictModel


class WeightSubmission(Submission):
    """A submission with a portfolio of several holdings."""

    portfolio: Annotated[list[Holding], Field(min_length=1)]
    portfolio_rationale: str


class WeightSubmissionV1(WeightSubmission):
    """A portfolio with a rationale for each holding."""

    metadata: read.StrictModel


class WeightSubmissionV2(WeightSubmission):
    """A portfolio with forecasts and a candidate ledger, which the pilot lacked."""

    portfolio_expected_return_pct: float
    benchmark_expected_return_pct: float
    expected_alpha_vs_sp500_pct: float
    metadata: read.StrictModel
    candidate_ledger: list[Candidate] = Field(default_factory=list)


class WeightSubmissionV3(WeightSubmission):
    """Ranked candidates from the agent; the portfolio, its weights and rationales come from the arena."""

    metadata: MetadataV3


S = TypeVar("S", bound=Submission)


class Record(read.StrictModel, Generic[S]):
    """One line of the decisions file."""

    round_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=120)]
    run_id: read.Name
    path: str
    submission: S
    call: Call
    outcome: Resolved | None

    @property
    def id(self) -> str:
        """Record id: round and agent, and the replicate unless it is the first."""
        name = f"{self.round_id}/{self.submission.model_id}"
        return name if self.submission.replicate_index == 1 else f"{name}/r{self.submission.replicate_index}"

    def texts(self) -> Iterator[tuple[records.RationaleKind, str]]:
        """Yield the texts as a judge reads them, then those that are only fact-checked, then the arena's."""
        submission: Submission = self.submission
        yield "summary", submission.rationale_summary
        if isinstance(submission, WeightSubmissionV3):
            yield "summary", submission.metadata.portfolio_v3.market_rationale
        if isinstance(submission, WeightSubmission):
            yield "portfolio", submission.portfolio_rationale
        for risk in submission.key_risks:
            yield "risk", risk
        # forecasts, probabilities and ranges are in ``stages``, not in texts; lanes are the arena's
        if isinstance(submission, WeightSubmissionV3):
            for case in submission.metadata.portfolio_v3.candidate_assessments:
                yield "candidate", _block(
                    f"{case.option_id} (rank {case.rank})", *(("Evidence", line) for line in case.evidence),
                    ("Mechanism", case.mechanism.replace("_", " ")),
                    ("Recent return read as", case.recent_return_interpretation.replace("_", " ")),
                )  # fmt: skip
            for holding in submission.portfolio:
                yield "arena", f"{holding.option_id}: {holding.rationale}" if holding.rationale.strip() else ""
        elif isinstance(submission, WeightSubmission):
            ledger = submission.candidate_ledger if isinstance(submission, WeightSubmissionV2) else []
            for option in ledger:
                yield "candidate", _block(
                    f"{option.option_id} ({option.decision})", *(("Evidence", line) for line in option.evidence),
                    ("Continuation case", option.continuation_case), ("Reversal case", option.reversal_case),
                    ("Catalyst", option.time_window_catalyst), ("Invalidation", option.invalidation_condition),
                )  # fmt: skip
            covered = {(candidate.option_id, candidate.time_window_catalyst) for candidate in ledger}
            covered |= {(candidate.option_id, candidate.invalidation_condition) for candidate in ledger}
            for holding in submission.portfolio:
                reasons = (("Catalyst", holding.time_window_catalyst), ("Invalidation", holding.invalidation_condition))
                yield "holding", _block(
                    f"{holding.option_id}: {holding.rationale}" if holding.rationale.strip() else "",
                    *((title, text) for title, text in reasons if (holding.option_id, text) not in covered),
                )  # fmt: skip

    def problems(self, options: frozenset[str], first: str | None) -> Iterator[str]:
        """Yield the problems of a record whose fields have the right types, as ``field: message``."""
        submission: Submission = self.submission
        if submission.round_id != self.round_id:
            yield f"submission.round_id: is another round's (got {submission.round_id!r})"
        if submission.replicate_index > submission.replicate_count:
            yield f"submission.replicate_index: exceeds replicate_count (got {submission.replicate_index})"
        ids: dict[str, list[str]] = {}
        if isinstance(submission, OptionSubmission):
            ids["selected_option_id"] = [submission.selected_option_id]
        if isinstance(submission, WeightSubmission):
            ids["portfolio"] = [holding.option_id for holding in submission.portfolio]
        if isinstance(submission, WeightSubmissionV2):
            ids["candidate_ledger"] = [candidate.option_id for candidate in submission.candidate_ledger]
        if isinstance(submission, WeightSubmissionV3):
            weighed = submission.metadata.portfolio_v3.candidate_assessments
            ids["metadata.portfolio_v3.candidate_assessments"] = [assessment.option_id for assessment in weighed]
        for place, names in ids.items():
            for name in names:
                if name not in options:
                    yield f"submission.{place}: is not one of the round's options (got {name!r})"
            for name in records.duplicates(names):
                yield f"submission.{place}: names {name!r} twice"
        if isinstance(submission, WeightSubmission):
            total = sum(holding.allocation_pct for holding in submission.portfolio)
            if total > 100 + 1e-9:
                yield f"submission.portfolio: allocations sum to {total:g} (allowed at most 100)"
        if first:
            yield f"submission.model_id: named twice on one round with one replicate (first at {first})"

    def decision(self, shape: str, of: Round, provenance: records.Provenance) -> records.Decision:
        """Build the decision; ``decided_at`` is the start of the call, after which no news could reach the agent."""
        submission: Submission = self.submission
        call, times = self.call, []
        for part in ("started_at_utc", "completed_at_utc"):
            try:
                times.append(read.parse_time(getattr(call, part)))
            except ValueError as exc:
                raise ValueError(f"call.{part}: {exc}") from None
        started, ended = times
        if ended < started:
            raise ValueError(f"call.completed_at_utc: is before the start ({ended.isoformat()})")
        missing = ["raw response (its sha256 is kept)"]
        if isinstance(submission, WeightSubmissionV2) and not submission.candidate_ledger:
            missing.append("candidate ledger")
        texts: dict[str, records.RationaleKind] = {}
        for kind, text in self.texts():
            texts.setdefault(text, kind)
        rationales = rationales_of(texts.items())
        try:
            cluster = week_of(date.fromisoformat("-".join(self.round_id.split("-")[1:4])))
        except ValueError:
            message = f"round_id: must hold a date, as in CB-2026-05-17-1M (got {self.round_id!r})"
            raise ValueError(message) from None
        holdings: list[tuple[str, float, float | None]] = []
        if isinstance(submission, OptionSubmission):
            holdings = [(submission.selected_option_id, 100, None)]
        elif isinstance(submission, WeightSubmission):
            holdings = [(one.option_id, one.allocation_pct, one.expected_return_pct) for one in submission.portfolio]
        actions = tuple(
            records.Action(instrument=name, kind="target_weight", weight=percent / 100,
                           expected_return=None if expected is None else expected / 100)
            for name, percent, expected in holdings
        )  # fmt: skip
        stages: dict[str, records.JSON] = {
            "selected": [action.instrument for action in actions], "raw_response_sha256": call.raw_response_sha256,
            "run": self.run_id, "weights_by": "agent", "confidence_by": "agent",
        }  # fmt: skip
        if isinstance(submission, WeightSubmissionV2):
            stages["forecast"] = {
                "portfolio_pct": submission.portfolio_expected_return_pct,
                "benchmark_pct": submission.benchmark_expected_return_pct,
                "alpha_pct": submission.expected_alpha_vs_sp500_pct,
                "holdings": {name: value for name, _, value in holdings if value is not None},
            }
            stages["candidates"] = [candidate.model_dump() for candidate in submission.candidate_ledger]
        if isinstance(submission, WeightSubmissionV3):
            plan = submission.metadata.portfolio_v3
            stages |= {
                "weights_by": "arena", "confidence_by": "arena", "confidence_rule": plan.confidence_derivation,
                "candidates": [assessment.model_dump() for assessment in plan.candidate_assessments],
                "views": {"dispersion_state": plan.dispersion_state, "dominant_pattern": plan.dominant_pattern,
                          "prefer_spy": plan.prefer_spy, "top3": list(plan.top3_option_ids)},
            }  # fmt: skip
        agent = records.Agent(
            submission.model_id, submission.provider, call.api_model_name, params={"mode": submission.mode}
        )
        return records.Decision(
            self.id, self.round_id, 0, cluster, started, agent, of.context_id, actions, rationales, format=shape,
            provenance=replace(provenance, path=self.path), confidence=submission.confidence, stages=stages,
            call=records.CallFacts(
                seconds=call.latency_seconds, timing_source="measured", cost_usd=submission.cost_usd,
                **call.model_dump(include={"input_tokens", "output_tokens", "reasoning_tokens"}),
            ),
            replicate=submission.replicate_index, flags=(CLOCK_CONFLICT,) if started < of.context.cutoff else (),
            missing=(*missing, *text_missing(rationales)),
        )  # fmt: skip

    def resolved(self, of: Round) -> records.Outcome | None:
        """Return the portfolio's return over the horizon, with the S&P 500 as benchmark; None until it is resolved."""
        value, benchmark, alpha = (
            finite(text, f"outcome.{part}") if (text := getattr(self.outcome, part, "")) else None
            for part in ("portfolio_return", "sp500_return", "alpha_vs_sp500")
        )
        source = "portfolio_return"
        if value is None and benchmark is not None and alpha is not None:
            value, source = benchmark + alpha, "sp500_return + alpha_vs_sp500"
        if value is None:
            return None
        if benchmark is not None and alpha is not None and abs(value - benchmark - alpha) > 1e-6:
            raise ValueError(f"outcome.alpha_vs_sp500: is not the return less the benchmark's (got {alpha:g})")
        resolved_at = read.midnight(of.manifest.exit_date) + timedelta(days=1)
        return records.Outcome(self.id, of.manifest.horizon, value, benchmark, resolved_at, source)


def _block(head: str, *parts: tuple[str, str]) -> str:
    return "\n".join(filter(None, [head, *(f"{title}: {text}" for title, text in parts if text.strip())]))


_SHAPES: Final[Mapping[str, tuple[type[Record[Any]], frozenset[str]]]] = {
    "weights-v3": (Record[WeightSubmissionV3], frozenset({"metadata.portfolio_v3"})),
    "option": (Record[OptionSubmission], frozenset({"selected_option_id"})),
    "weights-v2": (Record[WeightSubmissionV2], frozenset({"candidate_ledger", "portfolio_expected_return_pct"})),
    "weights-v1": (Record[WeightSubmissionV1], frozenset()),
}  # fmt: skip
"""The four formats by their names in ``Decision.format``: the model, and keys that only its submissions have."""


def import_capitalbench(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: read.Progress | None = None,
    provenance: records.Provenance = PROVENANCE,
) -> Imported:  # fmt: skip
    """Import CapitalBench's decisions and contexts, and the outcomes as a separate table."""
    tally = Tally()
    rounds, broken = read_rounds(*read.require(files, "contexts.jsonl"), tally, progress)
    unknown: dict[str, list[str]] = {}
    decisions: dict[str, records.Decision] = {}
    places: dict[str, str] = {}
    outcomes: list[records.Outcome] = []
    lines = 0
    name, data = read.require(files, "decisions.jsonl")
    for place, line, tree in read.json_objects("decisions", name, data, tally, progress):
        lines += 1
        if tree is None:
            continue
        submission = tree.get("submission")
        if not isinstance(submission, dict):
            tally.problem(f"{place}, submission", f"must be an object (got {read.written(submission)})")
            continue
        inner = submission.get("metadata")
        keys = {*submission, *(f"metadata.{key}" for key in (inner if isinstance(inner, dict) else ()))}
        shape, kind = next((name, kind) for name, (kind, markers) in _SHAPES.items() if markers & keys or not markers)
        if (record := read.try_model(kind, line, place, tally)) is None:
            continue
        if record.round_id in broken:
            broken[record.round_id] += 1
            continue
        if (of := rounds.get(record.round_id)) is None:
            unknown.setdefault(record.round_id, []).append(place)
            continue
        faults = list(record.problems(of.options, places.get(record.id)))
        try:
            decision, resolved = record.decision(shape, of, provenance), record.resolved(of)
        except ValueError as exc:
            faults.append(str(exc))
        for fault in faults:
            tally.problem(f"{place}, {fault.partition(': ')[0]}", fault.partition(": ")[2])
        if faults:
            continue
        places[record.id] = place
        decisions[record.id] = decision
        outcomes += [] if resolved is None else [resolved]
        if decision.decided_at > of.manifest.decision_deadline:
            tally.counts["calls started after the round's deadline"] += 1
    for round_id, unplaced in unknown.items() if rounds or broken else ():
        more = f" and {len(unplaced) - 1} more decisions" if len(unplaced) > 1 else ""
        tally.problem(f"{unplaced[0]}, round_id", f"a record without a context: no such round (got {round_id!r}){more}")
    for round_id, n in broken.items():
        if n:
            lost = count_of(n, "decisions")
            tally.problem(f"{name}, {round_id}", f"{lost} without a context: their round is broken")
    tally.refuse("capitalbench", keep_going)
    notes = ["entry and exit prices are left out of every context: they scored the rounds"]
    if conflicts := sum(CLOCK_CONFLICT in decision.flags for decision in decisions.values()):
        notes.append(f"{conflicts} calls started before their material's cutoff: kept, flagged {CLOCK_CONFLICT}")
    contexts, bad = {of.context_id: of.context for of in rounds.values()}, lines - len(decisions)
    return tally.imported("capitalbench", tuple(decisions.values()), contexts, outcomes, bad, notes, "outcome")
