"""Horizons as judge calls: the graded horizon, the outcome call that follows it, and the author probe.

Outcomes reach the outcome call alone, which is made after everything else was graded: one call for both would let
hindsight into the grades of the reasons (season methodology v0.3, look-ahead leakage). The author probe asks whether a
judge can tell whose record it reads; it is the one prompt that lists the agents' names, and no grade comes of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from assaymark.engine.calls import CallSpec, Message, Reply, Text
from assaymark.errors import InputError, Problem
from assaymark.judging.replies import Invalid, object_schema, parsed_by, text_of, word_of
from assaymark.judging.season.plans import ScoringPlan, SubComponent
from assaymark.judging.season.record import (
    BUDGET,
    Horizon,
    HorizonPart,
    book_text,
    deed_text,
    outcomes_by_step,
    parts_of,
    rules_text,
    split_horizon,
)
from assaymark.judging.season.replies import (
    MOST_CHARACTERS,
    MOST_CLAIMS,
    MOST_FIELDS,
    MOST_NOTE_TOKENS,
    MOST_QUOTED,
    Asked,
    HorizonAnswer,
    Read,
    horizon_schema,
    object_of,
    outcome_schema,
    read_reply,
)
from assaymark.prompting.fences import PromptTemplate, fence, prompt_template
from assaymark.protocol import JudgeSpec
from assaymark.quantiles import wilson_ends
from assaymark.records import JSON, Outcome

if TYPE_CHECKING:
    from assaymark.judging.season.scoring import HorizonGrades

HORIZON_TEMPLATE: Final = "horizon-v1.txt"
OUTCOME_TEMPLATE: Final = "outcome-v1.txt"
AUTHOR_TEMPLATE: Final = "author-v1.txt"
"""The prompt templates in use."""


def season_template(name: str) -> PromptTemplate:
    """A template for judges of seasons, such as `HORIZON_TEMPLATE`."""
    return prompt_template("assaymark.judging.season", name)


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonTask:
    """One judge, one trial, one agent's horizon: as many calls as the horizon has parts, one after the other.

    ``agent`` is who made the record. It is for the score; no prompt has it.
    """

    agent: str
    horizon: str
    mandate: str
    parts: tuple[HorizonPart, ...]
    plan: ScoringPlan
    judge: JudgeSpec
    trial: int


@dataclass(frozen=True, slots=True, kw_only=True)
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
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], plan: ScoringPlan, *, budget: int = BUDGET
) -> list[HorizonTask]:
    """Every judge (that is a model) and trial for every agent's horizon, by agent, then judge, then trial.

    ``horizons`` are the whole records, or those of a period (`Horizon.between`); ``budget`` is that of `split_horizon`.
    """
    tasks = []
    for agent, horizon in horizons.items():
        parts = split_horizon(horizon, budget=budget)
        for judge in judges:
            for trial in range(1, judge.trials + 1):
                who: dict[str, Any] = {"agent": agent, "horizon": horizon.id, "mandate": horizon.mandate}
                tasks.append(HorizonTask(**who, parts=parts, plan=plan, judge=judge, trial=trial))
    return tasks


def next_call(task: HorizonTask, answered: Sequence[Read[HorizonAnswer]] = ()) -> PlannedHorizonCall | None:
    """The call for the next part, given what became of those before; None where there is nothing left to ask.

    A part whose reply is no answer ends the task: without its notes and grades the rest would be graded by another
    rule. So does the last part.
    """
    if len(answered) >= len(task.parts) or any(one.answer is None for one in answered):
        return None
    part = task.parts[len(answered)]
    before = answered[-1].answer.notes if answered and answered[-1].answer else None
    notes = part.at < part.of
    head = record_head(task.mandate, part, before)
    call = judge_call(
        task.judge,
        task.trial,
        _system(task.plan, part.of > 1, notes),
        (head, part.body),
        HORIZON_TEMPLATE,
        _schema(task.plan, notes),
    )
    return PlannedHorizonCall(call=call, task=task, part=part)


def judge_call(
    judge: JudgeSpec, trial: int, system: Text, user: tuple[Text, ...], template: str, schema: Text
) -> CallSpec:
    """A call to a judge under one of the templates."""
    return CallSpec(
        model=judge.model,
        messages=(Message("system", (system,)), Message("user", user)),
        template=season_template(template).sha256,
        trial=trial,
        seed=judge.seed,
        temperature=judge.temperature,
        effort=judge.effort,
        schema=schema,
        args=dict(judge.args),
    )


def record_head(mandate: str, part: HorizonPart, notes: str | None = None, *, template: str = HORIZON_TEMPLATE) -> Text:
    """The text before the steps: the mandate, and from the second part on the notes, the rules and the book."""
    found = season_template(template)
    blocks = [fence("mandate", mandate)] if mandate else []
    carried = ""
    if part.at > 1 and "carried" in found.parts:
        kept = [fence("notes", notes)] if notes is not None else []
        kept += [text for text in (rules_text(part.rules), book_text(part.before)) if text]
        carried = found.filled("carried", first=part.first, before=part.first - 1, blocks="\n\n".join(kept)) + "\n\n"
    elif part.at == 1 and part.before is not None:
        blocks.append(book_text(part.before))
    whole = {"least": part.whole[0], "most": part.whole[1]}
    head = found.filled("record", first=part.first, last=part.last, blocks="\n\n".join(blocks), **whole)
    return Text.of(f"{carried}{head}".rstrip("\n"))


@lru_cache(maxsize=64)
def shared_text(text: str) -> Text:
    """A text that many calls share, hashed once."""
    return Text.of(text)


@lru_cache(maxsize=16)
def _schema(plan: ScoringPlan, notes: bool) -> Text:
    """The reply schema of a plan as text; a season has thousands of calls and two of these."""
    return schema_text(horizon_schema(plan, notes=notes))


def schema_text(schema: Mapping[str, JSON]) -> Text:
    """A reply schema as it is shown and sent."""
    return shared_text(json.dumps(schema, indent=1))


def system_text(plan: ScoringPlan, part: HorizonPart) -> Text:
    """The system message: the task, the rubric of the plan, and the form of the answer."""
    return _system(plan, part.of > 1, part.at < part.of)


@lru_cache(maxsize=16)
def _system(plan: ScoringPlan, more: bool, notes: bool) -> Text:
    template = season_template(HORIZON_TEMPLATE)
    parts = "; ".join(part.title for part in plan.not_applicable)
    return Text.of(
        template.filled(
            "system",
            **band_words(plan),
            reasoning=rubric_text(plan.reasoning, "reasoning"),
            evidence=rubric_text(plan.evidence, "evidence"),
            left_out=template.filled("left_out", parts=parts) if parts else "",
            most_claims=MOST_CLAIMS,
            most_fields=MOST_FIELDS,
            most_quoted=MOST_QUOTED,
            more=template.filled("more") if more else "",
            notes_key=template.filled("notes_key", most_notes=MOST_NOTE_TOKENS) if notes else "",
            schema=_schema(plan, notes).text,
        )
    )


def band_words(plan: ScoringPlan) -> dict[str, int]:
    """The bounds of the bands, for templates."""
    strong, mixed = plan.bands.strong, plan.bands.mixed
    return {"strong": strong, "mixed": mixed, "below_strong": strong - 1, "below_mixed": mixed - 1}


def rubric_text(parts: Iterable[SubComponent], axis: str) -> str:
    """The parts of an axis as judges read them: name, title, weight and question.

    A part of a custom plan that the template has no words for is listed by its title.
    """
    words = dict(line.split(": ", 1) for line in season_template(HORIZON_TEMPLATE).part("words").split("\n"))
    return "\n".join(
        f"- {part.name} ({part.title}, {part.weight:.4g} % of {axis})"
        + (f": {words[part.name]}" if part.name in words else "")
        for part in parts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOutcomeCall:
    """One outcome call, and whose grades its answer completes."""

    call: CallSpec
    agent: str
    judge: str
    family: str
    trial: int
    part: HorizonPart


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
    *,
    budget: int = BUDGET,
) -> list[PlannedOutcomeCall]:
    """The outcome calls of one judge and trial on one agent: one, or one for each part that the budget makes of it.

    The judge is shown what was done and what came of it, and no reasons. Outcomes that are not resolved yet and those
    of other records are left out; a part without any is not asked about. Without any at all there is no call, and the
    outcome's share goes to the other axes. Raises InputError where ``grades`` (what this judge recorded on the same
    horizon before) are no answer, or of another judge or horizon.
    """
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
    resolved = outcomes_by_step(horizon.steps, outcomes)
    if not resolved:
        return []
    schema = schema_text(outcome_schema())
    filled = season_template(OUTCOME_TEMPLATE).filled("system", **band_words(plan), schema=schema.text)
    system = shared_text(filled)
    texts = [deed_text(step, resolved.get(step.number, ())) for step in horizon.steps]
    planned = []
    for part in parts_of(horizon, texts, budget=budget, reserve=0):
        if any(part.first <= number <= part.last for number in resolved):
            user = (record_head("", part, template=OUTCOME_TEMPLATE), part.body)
            planned.append(
                PlannedOutcomeCall(
                    call=judge_call(judge, grades.trial, system, user, OUTCOME_TEMPLATE, schema),
                    agent=grades.agent,
                    judge=judge.name,
                    family=judge.family,
                    trial=grades.trial,
                    part=part,
                )
            )
    return planned


ProbeState = Literal["above chance", "not above chance", "no guess"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedProbe:
    """One probe call, and the author it is about. ``shown`` are the numbers of the first and last step shown."""

    call: CallSpec
    author: str
    judge: str
    trial: int
    options: tuple[str, ...]
    shown: tuple[int, int]


@dataclass(frozen=True, slots=True)
class AuthorGuess:
    """A valid reply to a probe."""

    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class AuthorProbe:
    """How often a judge guessed the author.

    ``hits`` are right guesses, ``guesses`` replies that are a guess, ``asked`` all replies; ``chance`` is one over the
    number of agents, ``accuracy`` hits over guesses with Wilson's score interval (None without a guess), and
    ``hits_of`` holds (hits, guesses) by author. The state is "above chance" where the whole interval is; "not above
    chance" is no proof of blindness: with few guesses the interval is wide.
    """

    judge: str
    hits: int
    guesses: int
    asked: int
    chance: float
    accuracy: float | None
    low: float | None
    high: float | None
    level: float
    state: ProbeState
    hits_of: Mapping[str, tuple[int, int]]

    def __str__(self) -> str:
        if self.accuracy is None or self.low is None or self.high is None:
            return f"{self.judge}: {self.state} in {self.asked} replies"
        said = f"{self.judge}: {self.hits} of {self.guesses} right [{self.low:.0%}, {self.high:.0%}]"
        return f"{said} against {self.chance:.0%} by chance, {self.state}"


def author_texts() -> dict[str, str]:
    """The text that probes are made from, by name, for a plan hash. The schema of a guess follows from the agents."""
    return {AUTHOR_TEMPLATE: season_template(AUTHOR_TEMPLATE).text}


def author_schema(options: Sequence[str]) -> dict[str, JSON]:
    """The JSON schema of a guess among these names."""
    return object_schema({"author": {"type": "string", "enum": list(options)}, "reason": {"type": "string"}})


def probe_calls(
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], *, budget: int = BUDGET
) -> list[PlannedProbe]:
    """A probe for every agent, judge and trial. Of a horizon that is split the first part is shown.

    ``horizons`` are those of all agents of the season: they are the options, in alphabetical order. Raises InputError
    for fewer than two agents.
    """
    options = tuple(sorted(horizons))
    if len(options) < 2:
        raise InputError("author probe", [Problem("agents", f"at least two are needed (got {len(options)})")])
    schema = schema_text(author_schema(options))
    listed = "\n".join(f"- {json.dumps(name, ensure_ascii=False)}" for name in options)
    system = shared_text(season_template(AUTHOR_TEMPLATE).filled("system", options=listed, schema=schema.text))
    planned = []
    for author in options:
        part = split_horizon(horizons[author], budget=budget)[0]
        user = (record_head(horizons[author].mandate, part, template=AUTHOR_TEMPLATE), part.body)
        planned += [
            PlannedProbe(
                call=judge_call(judge, trial, system, user, AUTHOR_TEMPLATE, schema),
                author=author,
                judge=judge.name,
                trial=trial,
                options=options,
                shown=(part.first, part.last),
            )
            for judge in judges
            for trial in range(1, judge.trials + 1)
        ]
    return planned


def parse_guess(text: str, options: Sequence[str]) -> AuthorGuess | Invalid:
    """The author that a judge guesses, or why the reply is no guess."""

    def check(raw: JSON) -> AuthorGuess:
        found = object_of(raw, ("author", "reason"))
        author = word_of(found["author"], options, "author must be one of the names listed")
        return AuthorGuess(author, text_of(found["reason"], "reason", MOST_QUOTED))

    return parsed_by(text, check, MOST_CHARACTERS)


def read_guess(reply: Reply, probe: PlannedProbe) -> Read[AuthorGuess]:
    """The outcome of a probe; never raises."""
    return read_reply(reply, parse_guess(reply.text, probe.options))


def author_probe(
    answered: Iterable[tuple[PlannedProbe, Read[AuthorGuess]]], *, level: float = 0.95
) -> list[AuthorProbe]:
    """How often each judge guessed the author, against chance, by judge in alphabetical order.

    Replies that are no guess are left out of the accuracy and counted in ``asked``. The interval takes guesses to be
    independent; repeated trials on one record are not quite, so probe several periods rather than many trials. Raises
    InputError for a call that comes twice, probes of one judge with other options, or a level outside 0..1.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22, 209-212.
    """
    by_judge: dict[str, list[tuple[PlannedProbe, Read[AuthorGuess]]]] = {}
    every = list(answered)
    for one in every:
        by_judge.setdefault(one[0].judge, []).append(one)
    problems = [] if 0 < level < 1 else [Problem("level", f"must lie strictly between 0 and 1 (got {level})")]
    for (author, key), count in Counter((probe.author, probe.call.key) for probe, _ in every).items():
        if count > 1:
            problems.append(Problem(f"{author}, call {key[:12]}", f"was answered {count} times"))
    for judge in sorted(by_judge):
        if len({probe.options for probe, _ in by_judge[judge]}) > 1:
            problems.append(Problem(judge, "guessed among different agents; report each season on its own"))
    if problems:
        raise InputError("author probe", problems)
    probes = []
    for judge in sorted(by_judge):
        found = by_judge[judge]
        right = [(probe.author, read.answer.author == probe.author) for probe, read in found if read.answer is not None]
        hits, n, chance = sum(hit for _, hit in right), len(right), 1 / len(found[0][0].options)
        low, high = wilson_ends(hits / n, n, level=level) if n else (None, None)
        guesses, hits_of = Counter(author for author, _ in right), Counter(author for author, hit in right if hit)
        probes.append(
            AuthorProbe(
                judge=judge,
                hits=hits,
                guesses=n,
                asked=len(found),
                chance=chance,
                accuracy=hits / n if n else None,
                low=low,
                high=high,
                level=level,
                state="no guess" if low is None else "above chance" if low > chance else "not above chance",
                hits_of={author: (hits_of[author], guesses[author]) for author in sorted(guesses)},
            )
        )
    return probes
