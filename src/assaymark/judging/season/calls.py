"""Judge calls for horizons: the graded horizon, the outcome call that follows it, and the author-identification probe.

Only the outcome call contains outcomes, and it is made after everything else was graded: a single call for both would
add hindsight bias to the grades of the reasons (season methodology v0.3, look-ahead leakage). The author probe tests
whether a judge can identify the author of a record; it is the only prompt with the agents' names, and is not graded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal

from assaymark.engine.calls import Message, Reply, Text
from assaymark.errors import InputError, Problem
from assaymark.judging.evidence import BORNE_OUT, ContextIndex, numeric_ledger
from assaymark.judging.prompts import PlannedCall, shared_text
from assaymark.judging.season import plans
from assaymark.judging.season import record as rec
from assaymark.judging.season.plans import ClaimState, HorizonAnswer, HorizonClaim, LookaheadCheck, ScoringPlan
from assaymark.judging.season.record import BUDGET, Horizon, HorizonPart, HorizonStep
from assaymark.judging.season.scoring import JudgeScore, judge_score, weighted_mean
from assaymark.prompting import Parsed, PromptTemplate, ReplyState, choice, fence, prompt_template
from assaymark.protocol import JudgeSpec
from assaymark.records import JSON, Context, Decision, Evidence, Outcome, grouped, record

HORIZON_TEMPLATE: Final = "horizon-v1.txt"
OUTCOME_TEMPLATE: Final = "outcome-v1.txt"
AUTHOR_TEMPLATE: Final = "author-v1.txt"
"""The prompt templates in use."""


def season_template(name: str) -> PromptTemplate:
    """Load a prompt template for season judges, such as `HORIZON_TEMPLATE`."""
    return prompt_template("assaymark.judging.season", name)


@record
class GradedPart:
    """One part of a split horizon with its call and the state of the reply."""

    first: int
    last: int
    tokens: int
    over: bool
    call_key: str
    state: ReplyState
    first_key: str = ""

    @property
    def size(self) -> int:
        """The number of steps."""
        return self.last - self.first + 1


@record
class HorizonGrades:
    """One judge's grades of one agent's horizon in one trial, given before any outcome was shown."""

    agent: str
    judge: str
    family: str
    trial: int
    horizon: str
    grader: str
    state: ReplyState
    parts: tuple[GradedPart, ...]
    reason: str | None = None
    reasoning: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, float] = field(default_factory=dict)
    data_reliability: float | None = None
    claims: tuple[HorizonClaim, ...] = ()
    lookahead_check: LookaheadCheck | None = None
    lookahead_reason: str = ""
    verdict: str = ""
    summary: str = ""


@dataclass(slots=True, eq=False)
class HorizonTask:
    """One judge's trial on one agent's horizon: a call for each part, with the notes on the one before."""

    agent: str
    horizon: str
    mandate: str
    parts: tuple[HorizonPart, ...]
    plan: ScoringPlan
    judge: JudgeSpec
    trial: int
    graded: list[GradedPart] = field(default_factory=list)
    read: list[Parsed[HorizonAnswer]] = field(default_factory=list)

    def next_call(self) -> PlannedHorizon | None:
        """Plan the call for the next part; None after the last part, or after a reply without an answer."""
        last = self.read[-1] if self.read else None
        if len(self.read) == len(self.parts) or (last is not None and last.answer is None):
            return None
        part, before = self.parts[len(self.read)], last.answer.notes if last is not None and last.answer else None
        notes = part.at < part.of
        shown = _messages(_system(self.plan, part.of > 1, notes), part, self.mandate, before)
        form = plans.horizon_form(self.plan, part.first, part.last, notes)
        return PlannedCall.of(self.judge, self.trial, shown, season_template(HORIZON_TEMPLATE), part, form)

    def take(self, read: Parsed[HorizonAnswer], key: str, first_key: str = "") -> None:
        """Add the answer to the next call; ``first_key`` is that of a first call whose reply was no JSON."""
        part = self.parts[len(self.read)]
        self.read.append(read)
        self.graded.append(GradedPart(part.first, part.last, part.tokens, part.over, key, read.state, first_key))

    def grades(self) -> HorizonGrades:
        """Return the grades of the whole horizon: means over its parts, weighted by their steps."""
        if self.next_call() is not None:
            problem = f"has {len(self.parts)} parts to answer (got {len(self.read)})"
            named = f"{self.judge.name} on {self.agent}, trial {self.trial}"
            raise InputError("horizon grades", [Problem(named, problem)])
        end, fields = self.read[-1], dict[str, Any]()
        if end.answer is None:
            place = f"part {len(self.read)} of {len(self.parts)}: " if len(self.parts) > 1 else ""
            fields = {"reason": f"{place}{end.reason}"}
        else:
            answers = [read.answer for read in self.read if read.answer is not None]
            failed = [answer for answer in answers if answer.lookahead_check == "fail"]
            sizes = [part.size for part in self.graded]

            def mean(points: Iterable[int]) -> float:
                return weighted_mean(list(zip(points, sizes, strict=True)))

            fields = {
                "reasoning": {name: mean(one.reasoning[name] for one in answers) for name in end.answer.reasoning},
                "evidence": {name: mean(one.evidence[name] for one in answers) for name in end.answer.evidence},
                "data_reliability": mean(answer.data_reliability for answer in answers),
                "claims": tuple(claim for answer in answers for claim in answer.claims),
                "lookahead_check": "fail" if failed else "pass",
                "lookahead_reason": " ".join(answer.lookahead_reason for answer in failed or [end.answer]).strip(),
                "verdict": end.answer.verdict,
                "summary": end.answer.summary,
            }
        about = self.agent, self.judge.name, self.judge.family, self.trial, self.horizon, grader_version(self.plan)
        return HorizonGrades(*about, end.state, tuple(self.graded), **fields)


PlannedHorizon = PlannedCall[HorizonPart, HorizonAnswer]
"""A call that shows one part of a horizon."""
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
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], plan: ScoringPlan, budget: int = BUDGET,
    once: bool = False,
) -> list[HorizonTask]:  # fmt: skip
    """Make a task for every agent's horizon, judge (if it is a model) and trial (the first, if ``once``), in order."""
    return [
        HorizonTask(agent, horizon.id, horizon.mandate, parts, plan, judge, trial)
        for agent, horizon in horizons.items()
        for parts in [rec.split_horizon(horizon, budget)]
        for judge in judges
        for trial in range(1, 1 + (1 if once else judge.trials))
    ]


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


@record
class OutcomeGrade:
    """The result of the outcome call: points if ``state`` is ok, else the reason why there are none."""

    state: ReplyState
    outcome: float | None = None
    reason: str | None = None


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


def outcome_grade(calls: Sequence[PlannedOutcome], replies: Sequence[Reply]) -> OutcomeGrade:
    """Combine the replies to the outcome calls of one judge and trial, weighted by the steps of their parts."""
    if not replies or len(replies) != len(calls):
        what = f"one for each of {len(calls)} parts is needed (got {len(replies)})"
        raise InputError("outcome", [Problem("replies", what)])
    reads = [call.read(reply) for call, reply in zip(calls, replies, strict=True)]
    answers = [read.answer for read in reads if read.answer is not None]
    if len(answers) < len(reads):
        bad = next(read for read in reads if read.answer is None)
        return OutcomeGrade(bad.state, None, bad.reason)
    points = weighted_mean([(grade, call.about.size) for (grade, _), call in zip(answers, calls, strict=True)])
    return OutcomeGrade("ok", points, " ".join(reason for _, reason in answers))


def probe_calls(
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], budget: int = BUDGET, once: bool = False
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
            for trial in range(1, 1 + (1 if once else judge.trials))
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


@record
class HorizonScore:
    """One judge's score of one agent: the grades, their caps by the numeric ledger, the outcome, the composite."""

    grades: HorizonGrades
    capped: tuple[CappedPart, ...]
    disagreement: LedgerDisagreement | None
    outcome: OutcomeGrade | None
    score: JudgeScore | None
    grader: str


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


def horizon_score(
    grades: HorizonGrades, plan: ScoringPlan, horizon: Horizon | None = None, ledger: HorizonLedger | None = None,
    outcome: OutcomeGrade | None = None,
) -> HorizonScore:  # fmt: skip
    """Compute the score from one judge's grades, capped by the numeric ledger, with the outcome if there is one.

    Without the horizon and its ledger nothing is capped, and no disagreement is reported. An outcome without points is
    recorded, but its share is redistributed as if there were no outcome.
    """
    if grades.grader != grader_version(plan):
        problem = f"made by {grades.grader!r}, not by {grader_version(plan)!r}; use the plan it was graded with"
        raise InputError("horizon score", [Problem(f"{grades.judge} on {grades.agent}", problem)])
    if grades.state != "ok":
        return HorizonScore(grades, (), None, outcome, None, grades.grader)
    caps = cap_evidence(grades.evidence, ledger)
    evidence = {**grades.evidence, **{cap.part: cap.counted for cap in caps}}
    points = outcome.outcome if outcome else None
    score = judge_score(grades.judge, grades.reasoning, evidence, points, plan)
    compared = None if horizon is None or ledger is None else ledger_disagreement(grades.claims, horizon, ledger)
    return HorizonScore(grades, caps, compared, outcome, score, grades.grader)


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
