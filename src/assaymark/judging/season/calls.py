"""Judge calls for horizons: the graded horizon, the outcome call that follows it, and the author-identification probe.

Only the outcome call contains outcomes, and it is made after everything else was graded: a single call for both would
add hindsight bias to the grades of the reasons (season methodology v0.3, look-ahead leakage). The author probe tests
whether a judge can identify the author of a record; it is the only prompt with the agents' names, and is not graded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from assaymark.engine.calls import Message, Text
from assaymark.errors import InputError, Problem
from assaymark.judging.evidence import BORNE_OUT, ContextIndex, numeric_ledger
from assaymark.judging.prompts import PlannedCall, shared_text
from assaymark.judging.season import plans
from assaymark.judging.season import record as rec
from assaymark.judging.season.plans import ClaimState, HorizonAnswer, HorizonClaim, ScoringPlan
from assaymark.judging.season.record import BUDGET, Horizon, HorizonPart, HorizonStep
from assaymark.prompting import Parsed, PromptTemplate, choice, fence, prompt_template
from assaymark.protocol import JudgeSpec
from assaymark.records import JSON, Context, Decision, Evidence, Outcome, grouped, record

if TYPE_CHECKING:
    from assaymark.judging.season.scoring import HorizonGrades

HORIZON_TEMPLATE: Final = "horizon-v1.txt"
OUTCOME_TEMPLATE: Final = "outcome-v1.txt"
AUTHOR_TEMPLATE: Final = "author-v1.txt"
"""The prompt templates in use."""


def season_template(name: str) -> PromptTemplate:
    """Load a prompt template for season judges, such as `HORIZON_TEMPLATE`."""
    return prompt_template("assaymark.judging.season", name)


@dataclass(frozen=True, slots=True)
class HorizonTask:
    """One judge's trial on one agent's horizon: one call per part of the horizon, in sequence."""

    agent: str
    horizon: str
    mandate: str
    parts: tuple[HorizonPart, ...]
    plan: ScoringPlan
    judge: JudgeSpec
    trial: int


PlannedHorizon = PlannedCall[tuple[HorizonTask, HorizonPart], HorizonAnswer]
"""A call that shows one part of a horizon, for a task."""
PlannedOutcome = PlannedCall[HorizonPart, tuple[int, str]]
"""A call that shows one part of a horizon with its outcomes."""
PlannedProbe = PlannedCall[tuple[str, tuple[str, ...]], tuple[str, str]]
"""A call that asks for the author of a record; ``about`` is the true author and the names listed."""


@lru_cache(maxsize=16)
def grader_version(plan: ScoringPlan) -> str:
    """Return the version for scores: the plan's grader, with digests of the two prompt templates and the plan."""
    made_of = [(name, season_template(name).sha256) for name in (HORIZON_TEMPLATE, OUTCOME_TEMPLATE)]
    made_of.append(("plan", plan.digest))
    return " ".join([plan.grader, *(f"{name}@{digest[:12]}" for name, digest in made_of)])


def judge_texts(plan: ScoringPlan) -> dict[str, str]:
    """Return every text of the judges' prompts by name, for the plan hash; agents give the form of a guess."""
    return {
        HORIZON_TEMPLATE: season_template(HORIZON_TEMPLATE).text,
        f"scoring {plan.version}": plan.text,
        f"schema {plan.version}": plans.horizon_schema(plan),
        f"schema {plan.version}, part": plans.horizon_schema(plan, notes=True),
        OUTCOME_TEMPLATE: season_template(OUTCOME_TEMPLATE).text,
        "schema outcome": plans.OUTCOME.schema,
        AUTHOR_TEMPLATE: season_template(AUTHOR_TEMPLATE).text,
    }


def horizon_tasks(
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], plan: ScoringPlan, budget: int = BUDGET
) -> list[HorizonTask]:
    """Make a task for every agent's horizon, judge (if it is a model) and trial, in this order."""
    return [
        HorizonTask(agent, horizon.id, horizon.mandate, parts, plan, judge, trial)
        for agent, horizon in horizons.items()
        for parts in [rec.split_horizon(horizon, budget)]
        for judge in judges
        for trial in range(1, judge.trials + 1)
    ]


def next_call(task: HorizonTask, answered: Sequence[Parsed[HorizonAnswer]] = ()) -> PlannedHorizon | None:
    """Plan the call for the next part, given the replies on the previous parts; None if no call is left."""
    if len(answered) >= len(task.parts) or any(read.answer is None for read in answered):
        return None
    part = task.parts[len(answered)]
    before = answered[-1].answer.notes if answered and answered[-1].answer else None
    notes = part.at < part.of
    shown = _messages(_system(task.plan, part.of > 1, notes), part, task.mandate, before)
    form = plans.horizon_form(task.plan, part.first, part.last, notes)
    return PlannedCall.of(task.judge, task.trial, shown, season_template(HORIZON_TEMPLATE), (task, part), form)


def _messages(
    system: Text, part: HorizonPart, mandate: str = "", notes: str | None = None, template: str = HORIZON_TEMPLATE
) -> tuple[Message, Message]:
    """Render the system message and a part's user message; from the second part on with notes, rules and portfolio."""
    prompt = season_template(template)
    blocks = [fence("mandate", mandate)] if mandate else []
    carried = ""
    if part.at > 1 and "carried" in prompt.parts:
        texts = [fence("notes", notes)] if notes is not None else []
        rules = rec.rules_lines(part.rules)
        texts += [*([fence("rules", "\n".join(rules))] if rules else []), rec.holdings_text(part.before)]
        carried = prompt.filled("carried", first=part.first, before=part.first - 1, blocks="\n\n".join(texts)) + "\n\n"
    elif part.at == 1 and part.before is not None:
        blocks.append(rec.holdings_text(part.before))
    whole = {"least": part.horizon[0], "most": part.horizon[1]}
    head = prompt.filled("record", first=part.first, last=part.last, blocks="\n\n".join(blocks), **whole)
    above = Text.of(f"{carried}{head}".rstrip("\n"))
    return Message("system", (system,)), Message("user", (above, part.body))


@lru_cache(maxsize=16)
def _system(plan: ScoringPlan, more: bool, notes: bool) -> Text:
    template = season_template(HORIZON_TEMPLATE)
    parts = "; ".join(part.title for part in plan.not_applicable)
    return Text.of(
        template.filled(
            "system", **band_words(plan), reasoning=rubric_text(plan.reasoning, "reasoning"),
            evidence=rubric_text(plan.evidence, "evidence"),
            left_out=template.filled("left_out", parts=parts) if parts else "", most_claims=plans.MOST_CLAIMS,
            most_fields=plans.MOST_FIELDS, most_quoted=plans.MOST_QUOTED, more=template.filled("more") if more else "",
            notes_key=template.filled("notes_key", most_notes=plans.MOST_NOTE_TOKENS) if notes else "",
            schema=plans.horizon_schema(plan, notes),
        ),
    )  # fmt: skip


def band_words(plan: ScoringPlan) -> dict[str, int]:
    """Return the bounds of the bands, for templates."""
    strong, mixed = plan.bands.strong, plan.bands.mixed
    return {"strong": strong, "mixed": mixed, "below_strong": strong - 1, "below_mixed": mixed - 1}


def rubric_text(parts: Iterable[plans.SubComponent], axis: str) -> str:
    """Render the parts of an axis for judges: name, title, weight and question."""
    words = dict(line.split(": ", 1) for line in season_template(HORIZON_TEMPLATE).part("words").split("\n"))
    return "\n".join(
        f"- {part.name} ({part.title}, {part.weight:.4g} % of {axis})"
        + (f": {words[part.name]}" if part.name in words else "")
        for part in parts
    )


def outcome_calls(
    grades: HorizonGrades, horizon: Horizon, outcomes: Iterable[Outcome], judge: JudgeSpec, plan: ScoringPlan,
    budget: int = BUDGET,
) -> list[PlannedOutcome]:  # fmt: skip
    """Plan the outcome calls of one judge and trial on one agent: one for each part within the budget."""
    subject = f"{grades.judge} on {grades.agent}, trial {grades.trial}"
    problems = []
    if grades.state != "ok":
        problems.append(Problem(subject, f"has no grades to complete (state {grades.state}: {grades.reason})"))
    if grades.judge != judge.name:
        problems.append(Problem(subject, f"are not the grades of {judge.name}"))
    if grades.horizon != horizon.id:
        problems.append(Problem(subject, "are grades of another horizon"))
    if problems:
        raise InputError("outcome", problems)
    numbers = {step.record_id: step.number for step in horizon.steps}
    known = (outcome for outcome in outcomes if outcome.resolved_at is not None and outcome.record_id in numbers)
    ordered = sorted(known, key=lambda outcome: (outcome.horizon, outcome.source))
    resolved = grouped(ordered, lambda outcome: numbers[outcome.record_id])
    if not resolved:
        return []
    template = season_template(OUTCOME_TEMPLATE)
    system = shared_text(template.filled("system", **band_words(plan), schema=plans.OUTCOME.schema))
    texts = [rec.outcome_text(step, resolved.get(step.number, ())) for step in horizon.steps]
    planned = []
    for part in rec.group_parts(horizon, texts, budget, reserve=0):
        if any(part.first <= number <= part.last for number in resolved):
            shown = _messages(system, part, template=OUTCOME_TEMPLATE)
            planned.append(PlannedCall.of(judge, grades.trial, shown, template, part, plans.OUTCOME))
    return planned


def probe_calls(
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], budget: int = BUDGET
) -> list[PlannedProbe]:
    """Plan an author probe for every agent, judge and trial. A split horizon is represented by its first part."""
    options = tuple(sorted(horizons))
    if len(options) < 2:
        raise InputError("author probe", [Problem("agents", f"at least two are needed (got {len(options)})")])
    names: JSON = {"type": "string", "enum": list(options)}
    form = plans.reasoned_form(
        "author", names, lambda raw: choice(raw, options, "author must be one of the names listed")
    )
    listed = "\n".join(f"- {json.dumps(name, ensure_ascii=False)}" for name in options)
    template = season_template(AUTHOR_TEMPLATE)
    system = shared_text(template.filled("system", options=listed, schema=form.schema))
    planned = []
    for author in options:
        part = rec.split_horizon(horizons[author], budget)[0]
        shown = _messages(system, part, horizons[author].mandate, template=AUTHOR_TEMPLATE)
        planned += [
            PlannedCall.of(judge, trial, shown, template, (author, options), form)
            for judge in judges
            for trial in range(1, judge.trials + 1)
        ]
    return planned


NumericState = Literal["supported", "contradicted", "not_verifiable", "no number"]

CAPPED: Final = ("claim_support", "no_contradiction")
"""The parts of the evidence axis that the numeric ledger caps."""

HorizonLedger = Mapping[int, tuple[Evidence, ...]]
"""The fact-check of every number in the rationales shown to judges, by step, against the agent's context."""


@record
class CappedPart:
    """A part of the evidence axis: the judge's grade, the cap by the numeric ledger, and the resulting grade."""

    part: str
    given: float
    cap: float | None
    counted: float


@record
class LedgerDisagreement:
    """Counts of the disagreements between a judge's ledger and the numeric one."""

    table: Mapping[ClaimState, Mapping[NumericState, int]]
    misquoted: int
    unnoticed: int
    claims: int

    @property
    def overruled(self) -> int:
        """The number of claims that the judge calls supported and the numbers contradict."""
        return self.table.get("supported", {}).get("contradicted", 0)

    @property
    def strict(self) -> int:
        """The number of claims that the judge calls contradicted and the numbers support."""
        return self.table.get("contradicted", {}).get("supported", 0)


def horizon_ledgers(
    horizons: Sequence[Horizon], decisions: Iterable[Decision], contexts: Mapping[str, Context]
) -> list[HorizonLedger]:
    """Compute the numeric ledgers of horizons over the blinded texts that judges see; shared contexts are indexed once.

    The contexts must be complete: the ledger checks against everything the agent saw, not only the market lines shown.
    """
    by_id = {decision.record_id: decision for decision in decisions}
    steps = [step for horizon in horizons for step in horizon.steps]
    lost = [(s, "is not among the decisions") for s in steps if s.record_id not in by_id]
    lost += [(s, f"its context {s.context_id[:12]} is not among them") for s in steps if s.context_id not in contexts]
    if lost:
        raise InputError("horizon ledger", [Problem(f"record {step.record_id}", problem) for step, problem in lost])
    ledgers: dict[int, tuple[Evidence, ...]] = {}
    for name, group in grouped(steps, lambda step: step.context_id).items():
        material = ContextIndex.of(contexts[name])
        for step in group:
            decision = replace(by_id[step.record_id], rationales=step.texts)
            ledgers[id(step)] = tuple(numeric_ledger(decision, contexts[name], material))
    return [{step.number: ledgers[id(step)] for step in horizon.steps} for horizon in horizons]


def cap_evidence(evidence: Mapping[str, float], ledger: HorizonLedger | None) -> tuple[CappedPart, ...]:
    """Cap parts of the evidence axis at the percentage of decided numbers that are supported, if there are any."""
    states = Counter(evidence.state for findings in (ledger or {}).values() for evidence in findings)
    supported = sum(states[state] for state in BORNE_OUT)
    decided = supported + states["contradicted"]
    cap = 100.0 * supported / decided if decided else None
    grades = {name: evidence[name] for name in CAPPED if name in evidence}
    return tuple(CappedPart(name, raw, cap, raw if cap is None else min(raw, cap)) for name, raw in grades.items())


def ledger_disagreement(claims: Sequence[HorizonClaim], horizon: Horizon, ledger: HorizonLedger) -> LedgerDisagreement:
    """Count the disagreements between a judge's ledger and the numeric one."""
    steps = {step.number: step for step in horizon.steps}
    table: dict[ClaimState, Counter[NumericState]] = {}
    misquoted = 0
    quoted: set[tuple[int, int, int]] = set()
    for claim in claims:
        step = steps.get(claim.step)
        spans = find_quotation(claim.quote, step) if step is not None else []
        if not spans:
            misquoted += 1
            continue
        numbers = [
            item
            for item in ledger.get(claim.step, ())
            if any(item.part == at and start <= item.start <= end - len(item.quote) for at, start, end in spans)
        ]
        quoted |= {(claim.step, evidence.part, evidence.start) for evidence in numbers}
        states = {evidence.state for evidence in numbers} - {"own_action"}
        numeric: NumericState = "supported" if states <= set(BORNE_OUT) else "not_verifiable"
        if not states:
            numeric = "no number"
        elif "contradicted" in states:
            numeric = "contradicted"
        table.setdefault(claim.state, Counter())[numeric] += 1
    unnoticed = sum(
        evidence.state == "contradicted" and (number, evidence.part, evidence.start) not in quoted
        for number, findings in ledger.items()
        for evidence in findings
    )
    counts = {state: dict(table[state]) for state in sorted(table)}
    return LedgerDisagreement(counts, misquoted, unnoticed, len(claims))


def find_quotation(quote: str, step: HorizonStep) -> list[tuple[int, int, int]]:
    """Find a quotation in the texts of a step, whatever its white space: text index, start and end of each match."""
    words = " ".join(quote.split())
    spans = []
    for part, text in enumerate(step.texts if words else ()):
        shown, offsets = _collapse_spaces(text.text)
        at = shown.find(words)
        while at >= 0:
            end = at + len(words)
            spans.append((part, offsets[at], offsets[end - 1] + 1))
            at = shown.find(words, end)
    return spans


@lru_cache(maxsize=1024)
def _collapse_spaces(text: str) -> tuple[str, Sequence[int]]:
    """Replace each run of white space by one space; also return the original offset of every character."""
    places = [at for at, char in enumerate(text) if not char.isspace() or at == 0 or not text[at - 1].isspace()]
    return "".join(" " if text[at].isspace() else text[at] for at in places), places
