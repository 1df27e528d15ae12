"""Horizons as judge calls: the graded horizon, the outcome call that follows it, and the author probe.

Outcomes reach the outcome call alone, which is made after everything else was graded: one call for both would let
hindsight into the grades of the reasons (season methodology v0.3, look-ahead leakage). The author probe asks whether a
judge can tell whose record it reads; it is the one prompt that lists the agents' names, and no grade comes of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from assaymark.engine.calls import CallSpec, Message, Reply, Text
from assaymark.errors import InputError, Problem
from assaymark.judging.evidence import BORNE_OUT, Material, numeric_ledger
from assaymark.judging.prompts import Read, Reasoned, word_of
from assaymark.judging.season.plans import (
    MOST_CLAIMS,
    MOST_FIELDS,
    MOST_NOTE_TOKENS,
    MOST_QUOTED,
    Asked,
    ClaimState,
    HorizonAnswer,
    HorizonClaim,
    ScoringPlan,
    SubComponent,
    horizon_schema,
    outcome_schema,
    parse_reasoned,
    read_reply,
)
from assaymark.judging.season.record import (
    BUDGET,
    Horizon,
    HorizonPart,
    HorizonStep,
    book_text,
    deed_text,
    parts_of,
    rules_lines,
    split_horizon,
)
from assaymark.prompting import PromptTemplate, fence, object_schema, prompt_template
from assaymark.protocol import JudgeSpec
from assaymark.records import JSON, Context, Decision, Evidence, EvidenceState, Outcome, row

if TYPE_CHECKING:
    from assaymark.judging.season.scoring import HorizonGrades

HORIZON_TEMPLATE: Final = "horizon-v1.txt"
OUTCOME_TEMPLATE: Final = "outcome-v1.txt"
AUTHOR_TEMPLATE: Final = "author-v1.txt"
"""The prompt templates in use."""


def season_template(name: str) -> PromptTemplate:
    """A template for judges of seasons, such as `HORIZON_TEMPLATE`."""
    return prompt_template("assaymark.judging.season", name)


@dataclass(frozen=True, slots=True)
class HorizonTask:
    """One judge, one trial, one agent's horizon: as many calls as the horizon has parts, one after the other."""

    agent: str
    horizon: str
    mandate: str
    parts: tuple[HorizonPart, ...]
    plan: ScoringPlan
    judge: JudgeSpec
    trial: int


@dataclass(frozen=True, slots=True)
class PlannedHorizonCall:
    """One call to be made, and which part of which task its answer is about."""

    call: CallSpec
    task: HorizonTask
    part: HorizonPart

    @property
    def judge(self) -> str:
        """The name of the judge."""
        return self.task.judge.name

    @property
    def asked(self) -> Asked:
        """The form that the reply is held to."""
        return Asked(self.task.plan, self.part.first, self.part.last, notes=self.part.at < self.part.of)


@dataclass(frozen=True, slots=True)
class SeasonCall:
    """An outcome call, or a probe for the author (then ``options`` are the names listed): whose record it shows."""

    call: CallSpec
    agent: str
    judge: JudgeSpec
    part: HorizonPart
    options: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def grader_version(plan: ScoringPlan) -> str:
    """The version on every score: the grader of the plan, and by digest the two prompt templates and the plan."""
    made_of = [(name, season_template(name).sha256) for name in (HORIZON_TEMPLATE, OUTCOME_TEMPLATE)]
    made_of.append(("plan", plan.digest))
    return " ".join([plan.grader, *(f"{name}@{digest[:12]}" for name, digest in made_of)])


def horizon_texts(plan: ScoringPlan) -> dict[str, str]:
    """Every text that the prompts of a plan are made from, by name: what a plan hash has to cover."""
    return {
        HORIZON_TEMPLATE: season_template(HORIZON_TEMPLATE).text,
        f"scoring {plan.version}": plan.text,
        f"schema {plan.version}": schema_text(horizon_schema(plan)).text,
        f"schema {plan.version}, part": schema_text(horizon_schema(plan, notes=True)).text,
    }


def horizon_tasks(
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], plan: ScoringPlan, budget: int = BUDGET
) -> list[HorizonTask]:
    """Every judge (that is a model) and trial for every agent's horizon, by agent, then judge, then trial."""
    return [
        HorizonTask(agent, horizon.id, horizon.mandate, parts, plan, judge, trial)
        for agent, horizon in horizons.items()
        for parts in [split_horizon(horizon, budget)]
        for judge in judges
        for trial in range(1, judge.trials + 1)
    ]


def next_call(task: HorizonTask, answered: Sequence[Read[HorizonAnswer]] = ()) -> PlannedHorizonCall | None:
    """The call for the next part, given what became of those before; None where there is nothing left to ask."""
    if len(answered) >= len(task.parts) or any(one.answer is None for one in answered):
        return None
    part = task.parts[len(answered)]
    before = answered[-1].answer.notes if answered and answered[-1].answer else None
    notes = part.at < part.of
    user = (record_head(task.mandate, part, before), part.body)
    system, schema = _system(task.plan, part.of > 1, notes), _schema(task.plan, notes)
    return PlannedHorizonCall(_call(task.judge, task.trial, system, user, HORIZON_TEMPLATE, schema), task, part)


def _call(judge: JudgeSpec, trial: int, system: Text, user: tuple[Text, ...], template: str, schema: Text) -> CallSpec:
    messages = (Message("system", (system,)), Message("user", user))
    return CallSpec.of(judge, messages, season_template(template).sha256, schema, trial)


def record_head(mandate: str, part: HorizonPart, notes: str | None = None, *, template: str = HORIZON_TEMPLATE) -> Text:
    """The text before the steps: the mandate, and from the second part on the notes, the rules and the book."""
    found = season_template(template)
    blocks = [fence("mandate", mandate)] if mandate else []
    carried = ""
    if part.at > 1 and "carried" in found.parts:
        kept = [fence("notes", notes)] if notes is not None else []
        rules = rules_lines(part.rules)
        kept += [*([fence("rules", "\n".join(rules))] if rules else []), book_text(part.before)]
        carried = found.filled("carried", first=part.first, before=part.first - 1, blocks="\n\n".join(kept)) + "\n\n"
    elif part.at == 1 and part.before is not None:
        blocks.append(book_text(part.before))
    whole = {"least": part.whole[0], "most": part.whole[1]}
    head = found.filled("record", first=part.first, last=part.last, blocks="\n\n".join(blocks), **whole)
    return Text.of(f"{carried}{head}".rstrip("\n"))


shared_text = lru_cache(maxsize=64)(Text.of)
"""A text that many calls share, hashed once."""


@lru_cache(maxsize=16)
def _schema(plan: ScoringPlan, notes: bool) -> Text:
    """The reply schema of a plan as text; a season has thousands of calls and two of these."""
    return schema_text(horizon_schema(plan, notes))


def schema_text(schema: Mapping[str, JSON]) -> Text:
    """A reply schema as it is shown and sent."""
    return shared_text(json.dumps(schema, indent=1))


@lru_cache(maxsize=16)
def _system(plan: ScoringPlan, more: bool, notes: bool) -> Text:
    template = season_template(HORIZON_TEMPLATE)
    parts = "; ".join(part.title for part in plan.not_applicable)
    return Text.of(
        template.filled(
            "system", **band_words(plan), reasoning=rubric_text(plan.reasoning, "reasoning"),
            evidence=rubric_text(plan.evidence, "evidence"),
            left_out=template.filled("left_out", parts=parts) if parts else "", most_claims=MOST_CLAIMS,
            most_fields=MOST_FIELDS, most_quoted=MOST_QUOTED, more=template.filled("more") if more else "",
            notes_key=template.filled("notes_key", most_notes=MOST_NOTE_TOKENS) if notes else "",
            schema=_schema(plan, notes).text,
        ),
    )  # fmt: skip


def band_words(plan: ScoringPlan) -> dict[str, int]:
    """The bounds of the bands, for templates."""
    strong, mixed = plan.bands.strong, plan.bands.mixed
    return {"strong": strong, "mixed": mixed, "below_strong": strong - 1, "below_mixed": mixed - 1}


def rubric_text(parts: Iterable[SubComponent], axis: str) -> str:
    """The parts of an axis as judges read them: name, title, weight and question."""
    words = dict(line.split(": ", 1) for line in season_template(HORIZON_TEMPLATE).part("words").split("\n"))
    return "\n".join(
        f"- {part.name} ({part.title}, {part.weight:.4g} % of {axis})"
        + (f": {words[part.name]}" if part.name in words else "")
        for part in parts
    )


def outcome_texts() -> dict[str, str]:
    """Every text that outcome prompts are made from, by name: what a plan hash has to cover."""
    return {
        OUTCOME_TEMPLATE: season_template(OUTCOME_TEMPLATE).text,
        "schema outcome": schema_text(outcome_schema()).text,
    }


def outcome_calls(
    grades: HorizonGrades,
    horizon: Horizon,
    outcomes: Iterable[Outcome],
    judge: JudgeSpec,
    plan: ScoringPlan,
    budget: int = BUDGET,
) -> list[SeasonCall]:
    """The outcome calls of one judge and trial on one agent: one, or one for each part that the budget makes of it."""
    who = f"{grades.judge} on {grades.agent}, trial {grades.trial}"
    problems = []
    if grades.state != "ok":
        problems.append(Problem(who, f"has no grades to complete (state {grades.state}: {grades.reason})"))
    if grades.judge != judge.name:
        problems.append(Problem(who, f"are not the grades of {judge.name}"))
    if grades.horizon != horizon.id:
        problems.append(Problem(who, "are grades of another horizon"))
    if problems:
        raise InputError("outcome", problems)
    # The outcomes that are resolved, by the number of their step, sorted by horizon and source.
    numbers = {step.record_id: step.number for step in horizon.steps}
    resolved: dict[int, list[Outcome]] = {}
    for one in sorted(outcomes, key=lambda outcome: (outcome.horizon, outcome.source)):
        if one.resolved_at is not None and one.record_id in numbers:
            resolved.setdefault(numbers[one.record_id], []).append(one)
    if not resolved:
        return []
    schema = schema_text(outcome_schema())
    system = shared_text(season_template(OUTCOME_TEMPLATE).filled("system", **band_words(plan), schema=schema.text))
    texts = [deed_text(step, resolved.get(step.number, ())) for step in horizon.steps]
    planned = []
    for part in parts_of(horizon, texts, budget, reserve=0):
        if any(part.first <= number <= part.last for number in resolved):
            user = (record_head("", part, template=OUTCOME_TEMPLATE), part.body)
            call = _call(judge, grades.trial, system, user, OUTCOME_TEMPLATE, schema)
            planned.append(SeasonCall(call, grades.agent, judge, part))
    return planned


def author_texts() -> dict[str, str]:
    """The text that probes are made from, by name, for a plan hash. The schema of a guess follows from the agents."""
    return {AUTHOR_TEMPLATE: season_template(AUTHOR_TEMPLATE).text}


def probe_calls(horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], budget: int = BUDGET) -> list[SeasonCall]:
    """A probe for every agent, judge and trial. Of a horizon that is split the first part is shown."""
    options = tuple(sorted(horizons))
    if len(options) < 2:
        raise InputError("author probe", [Problem("agents", f"at least two are needed (got {len(options)})")])
    schema = schema_text(
        object_schema({"author": {"type": "string", "enum": list(options)}, "reason": {"type": "string"}})
    )
    listed = "\n".join(f"- {json.dumps(name, ensure_ascii=False)}" for name in options)
    system = shared_text(season_template(AUTHOR_TEMPLATE).filled("system", options=listed, schema=schema.text))
    planned = []
    for author in options:
        part = split_horizon(horizons[author], budget)[0]
        user = (record_head(horizons[author].mandate, part, template=AUTHOR_TEMPLATE), part.body)
        planned += [
            SeasonCall(_call(judge, trial, system, user, AUTHOR_TEMPLATE, schema), author, judge, part, options)
            for judge in judges
            for trial in range(1, judge.trials + 1)
        ]
    return planned


def read_guess(reply: Reply, probe: SeasonCall) -> Read[Reasoned[str]]:
    """The author that a judge guesses, or why the reply is no guess; never raises."""

    def author(raw: JSON) -> str:
        return word_of(raw, probe.options, "author must be one of the names listed")

    return read_reply(reply, parse_reasoned(reply.text, "author", author))


# The two ledgers of a horizon: numbers against the agent's own material, and the claims that a judge looked at

NumericState = Literal["supported", "contradicted", "not_verifiable", "no number"]

CAPPED: Final = ("claim_support", "no_contradiction")
"""The parts of the evidence axis that the numeric ledger caps."""


@dataclass(frozen=True, slots=True)
class HorizonLedger:
    """Every number in the reasons that judges are shown, by step, and what the agent's material says about it."""

    steps: Mapping[int, tuple[Evidence, ...]]

    @property
    def counts(self) -> Counter[EvidenceState]:
        """The numbers by state."""
        return Counter(one.state for ones in self.steps.values() for one in ones)

    @property
    def cap(self) -> float | None:
        """Of the numbers that the material decides, the percentage that it bears out; None if it decides none."""
        counts = self.counts
        supported = sum(counts[state] for state in BORNE_OUT)
        decided = supported + counts["contradicted"]
        return 100.0 * supported / decided if decided else None

    def between(self, first: int, last: int) -> HorizonLedger:
        """The ledger of the steps ``first`` to ``last``, as `Horizon.between` cuts them."""
        return HorizonLedger({number: ones for number, ones in self.steps.items() if first <= number <= last})


@row
class CappedPart:
    """A part of the evidence axis: what the judge gave, the cap of the numeric ledger, and what counts."""

    part: str
    given: float
    cap: float | None
    counted: float


@row
class LedgerDisagreement:
    """How far a judge's ledger and the numeric one are apart, in counts."""

    table: Mapping[ClaimState, Mapping[NumericState, int]]
    misquoted: int
    unnoticed: int
    claims: int

    @property
    def overruled(self) -> int:
        """Claims that the judge calls supported and the numbers contradict."""
        return self.table.get("supported", {}).get("contradicted", 0)

    @property
    def strict(self) -> int:
        """Claims that the judge calls contradicted and the numbers bear out."""
        return self.table.get("contradicted", {}).get("supported", 0)


def horizon_ledgers(
    horizons: Sequence[Horizon], decisions: Iterable[Decision], contexts: Mapping[str, Context]
) -> list[HorizonLedger]:
    """The numeric ledgers of horizons, over the blinded texts that judges see; a shared context is looked at once.

    The contexts have to be whole: the ledger looks at all that the agent could see, more than a prompt's market lines.
    """
    known = {one.record_id: one for one in decisions}
    steps = [step for horizon in horizons for step in horizon.steps]
    lost = [(s, "is not among the decisions") for s in steps if s.record_id not in known]
    lost += [(s, f"its context {s.context_id[:12]} is not among them") for s in steps if s.context_id not in contexts]
    if lost:
        raise InputError("horizon ledger", [Problem(f"record {step.record_id}", what) for step, what in lost])
    shown: dict[str, list[HorizonStep]] = {}
    for step in steps:
        shown.setdefault(step.context_id, []).append(step)
    found: dict[int, tuple[Evidence, ...]] = {}
    for name, ones in shown.items():
        material = Material.of(contexts[name])
        for step in ones:
            decision = replace(known[step.record_id], rationales=step.texts)
            found[id(step)] = tuple(numeric_ledger(decision, contexts[name], material=material))
    return [HorizonLedger({step.number: found[id(step)] for step in horizon.steps}) for horizon in horizons]


def capped(evidence: Mapping[str, float], ledger: HorizonLedger | None) -> tuple[CappedPart, ...]:
    """The parts of the evidence axis that the numeric ledger caps, with what the judge gave and what counts."""
    cap = None if ledger is None else ledger.cap
    given = {name: evidence[name] for name in CAPPED if name in evidence}
    return tuple(CappedPart(name, one, cap, one if cap is None else min(one, cap)) for name, one in given.items())


def ledger_disagreement(claims: Sequence[HorizonClaim], horizon: Horizon, ledger: HorizonLedger) -> LedgerDisagreement:
    """How far a judge's ledger and the numeric one are apart."""
    steps = {step.number: step for step in horizon.steps}
    table: dict[ClaimState, Counter[NumericState]] = {}
    misquoted = 0
    quoted: set[tuple[int, int, int]] = set()
    for claim in claims:
        step = steps.get(claim.step)
        spans = quoted_spans(claim.quote, step) if step is not None else []
        if not spans:
            misquoted += 1
            continue
        numbers = [
            one
            for one in ledger.steps.get(claim.step, ())
            if any(one.part == at and start <= one.start <= end - len(one.quote) for at, start, end in spans)
        ]
        quoted |= {(claim.step, one.part, one.start) for one in numbers}
        states = {one.state for one in numbers} - {"own_action"}
        numeric: NumericState = "supported" if states <= set(BORNE_OUT) else "not_verifiable"
        if not states:
            numeric = "no number"
        elif "contradicted" in states:
            numeric = "contradicted"
        table.setdefault(claim.state, Counter())[numeric] += 1
    unnoticed = sum(
        one.state == "contradicted" and (number, one.part, one.start) not in quoted
        for number, ones in ledger.steps.items()
        for one in ones
    )
    counts = {state: dict(table[state]) for state in sorted(table)}
    return LedgerDisagreement(counts, misquoted, unnoticed, len(claims))


def quoted_spans(quote: str, step: HorizonStep) -> list[tuple[int, int, int]]:
    """Where a quotation stands in the texts of a step, however its words are spaced: text, start and end."""
    words = " ".join(quote.split())
    found = []
    for part, text in enumerate(step.texts if words else ()):
        shown, offsets = _spaced(text.text)
        at = shown.find(words)
        while at >= 0:
            end = at + len(words)
            found.append((part, offsets[at], offsets[end - 1] + 1))
            at = shown.find(words, end)
    return found


@lru_cache(maxsize=1024)
def _spaced(text: str) -> tuple[str, Sequence[int]]:
    """A text with one space for every run of white space, and where each of its characters stood."""
    kept = [at for at, char in enumerate(text) if not char.isspace() or at == 0 or not text[at - 1].isspace()]
    return "".join(" " if text[at].isspace() else text[at] for at in kept), kept
