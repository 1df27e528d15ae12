"""The same ladder one text at a time, for judges that score a rationale by a rubric: no slots, no pairs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Final, Literal, get_args

from assaymark.engine.calls import CallSpec, Message, Reply, Text
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.judging.pairs.stimuli import drafts, prefix_chain
from assaymark.judging.pairs.tasks import Brief, Order, Pair, Task, brief_of, task_problems
from assaymark.judging.replies import Invalid
from assaymark.prompting.fences import PromptTemplate, fence, prompt_template, row
from assaymark.prompting.texts import Rejected, shown, strict_reply
from assaymark.protocol import JudgeSpec
from assaymark.records import (
    JSON,
    Agent,
    Context,
    Decision,
    Derivation,
    DerivationKind,
    PairCall,
    Provenance,
    Rationale,
    SlotVerdict,
    content_id,
    record,
    sha256_text,
)

# A judge's reply to a pair as a verdict: parsed strictly, recorded whatever it is, never guessed at.


PairVerdict = Literal["1", "2", "tie", "abstain"]

MOST_CHARACTERS = 20_000
"""A longer reply is invalid unread."""
MOST_REASON = 2_000
"""A reason may have at most this many characters."""

_KEYS = ("verdict", "reason")

# A sentence that begins "Candidate 2 is better" and ends there, or goes on with a cause, "overall" or
# "than candidate 1". "Candidate 2 is better worded", "if ..., candidate 2 is better" and "it is not so that candidate 2
# is better" are not such sentences: what they mean has to be guessed.
_NAMED = re.compile(
    r"(?:^|[.;:!?\n]\s*)(?:(?:so|hence|thus|overall|therefore),? )?"
    r"candidate ([12]) (?:is (?:the )?(?:clearly |overall )?(?:better|stronger)"
    r"(?: candidate| one| text| answer| note)?|wins)"
    r"(?: overall| than candidate [12])?(?=\s*(?:$|[.;:!\n]|,? because\b|,? since\b))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedPair:
    """A reply that has exactly the form that was asked for."""

    verdict: PairVerdict
    reason: str


def pair_schema() -> dict[str, JSON]:
    """The JSON schema of a reply, in the subset that providers with structured output accept.

    >>> pair_schema()["required"]
    ['verdict', 'reason']
    """
    properties: dict[str, JSON] = {
        "verdict": {"type": "string", "enum": list(get_args(PairVerdict))},
        "reason": {"type": "string"},
    }
    return {"type": "object", "properties": properties, "required": list(_KEYS), "additionalProperties": False}


def parse_pair_reply(text: str) -> ParsedPair | Invalid:
    """What a judge's reply to a pair says, or why it says nothing.

    The whole reply must be one JSON object with exactly the two keys, alone or in one code fence; a sentence may not
    surround it. The verdict must be one of the four words as written. Nothing in ``text`` can make this raise.

    A reply with verdict 1 or 2 is also invalid where its reason names the other slot, and only the other, as the better
    one: which of the two was meant would be a guess. A reason does so by a sentence that begins "Candidate 2 is
    better", "is stronger" or "wins" (after "so", "thus", "hence", "therefore" or "overall", if anything) and either
    ends there, goes on with "because" or "since", or says "overall" or "than candidate 1" first. Conditions, negations
    and single respects ("is better worded") are not looked into, and a tie may name either slot.

    >>> parse_pair_reply('{"verdict": "tie", "reason": "Both name the stop."}')
    ParsedPair(verdict='tie', reason='Both name the stop.')
    >>> parse_pair_reply('{"verdict": "1", "reason": "Candidate 2 is better."}')
    Invalid(reason='the verdict is 1, but the reason names candidate 2 as the better one')
    """
    if len(text) > MOST_CHARACTERS:
        return Invalid(f"longer than {MOST_CHARACTERS} characters (got {len(text)})")
    try:
        return _checked(strict_reply(text))
    except Rejected as exc:
        return Invalid(str(exc))


def _checked(raw: JSON) -> ParsedPair:
    """The parts of a reply, each checked."""
    if not isinstance(raw, dict):
        raise Rejected(f"not a JSON object (got {type(raw).__name__})")
    _check_keys(raw)
    verdict = _verdict(raw["verdict"])
    reason = _reason(raw["reason"])
    named = set(_NAMED.findall(reason))
    if verdict in ("1", "2") and named and verdict not in named:
        raise Rejected(f"the verdict is {verdict}, but the reason names candidate {named.pop()} as the better one")
    return ParsedPair(verdict, reason)


def _check_keys(raw: Mapping[str, Any]) -> None:
    """Exactly the two keys."""
    missing = [key for key in _KEYS if key not in raw]
    if missing:
        raise Rejected(f"keys are missing: {', '.join(map(shown, missing))}")
    extra = [key for key in raw if key not in _KEYS]
    if extra:
        raise Rejected(f"keys are unknown: {', '.join(map(shown, extra[:3]))}")


def _verdict(raw: JSON) -> PairVerdict:
    """One of the four words."""
    for word in get_args(PairVerdict):
        if raw == word:
            found: PairVerdict = word
            return found
    raise Rejected(f'verdict must be "1", "2", "tie" or "abstain" (got {shown(raw)})')


def _reason(raw: JSON) -> str:
    """A text of bounded length that UTF-8 can carry."""
    if not isinstance(raw, str):
        raise Rejected(f"reason must be text (got {shown(raw)})")
    if len(raw) > MOST_REASON:
        raise Rejected(f"reason has {len(raw)} characters, at most {MOST_REASON} are allowed")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Rejected("reason holds half of a surrogate pair")
    return raw


def pair_call(planned: PlannedPairCall, reply: Reply) -> PairCall:
    """The record that a reply to a planned call amounts to.

    A refusal and a reply that was cut off are ``invalid``, whatever text came with them. ``reason`` says why a call is
    invalid and is None of a valid one, whose own words stay in the ledger.
    """
    if reply.finish == "refusal":
        return _record(planned, "invalid", "the model refused to answer")
    if reply.finish == "length":
        return _record(planned, "invalid", "cut off at the length limit")
    parsed = parse_pair_reply(reply.text)
    if isinstance(parsed, Invalid):
        return _record(planned, "invalid", parsed.reason)
    return _record(planned, parsed.verdict, None)


def _record(planned: PlannedPairCall, verdict: SlotVerdict, reason: str | None) -> PairCall:
    """The record of one call."""
    pair = planned.pair
    return PairCall(
        pair=pair.id,
        condition=pair.condition,
        task=pair.task,
        order=planned.order,
        verdict=verdict,
        judge=planned.judge,
        delta=pair.delta,
        better=pair.better,
        variant=pair.variant,
        prompt=planned.prompt,
        trial=planned.trial,
        call_key=planned.call.key,
        reason=reason,
    )


# Pairs as judge calls: the prompt in its two variants, and the plan of all calls.


PairPrompt = Literal["tie-allowed", "strict"]

TIE_ALLOWED: PairPrompt = "tie-allowed"
"""The base instruction: a judge names the better text, or says that neither is."""

STRICT: PairPrompt = "strict"
"""The instruction that asks for a tie wherever only the surface differs."""

PAIR_PROMPTS: tuple[PairPrompt, ...] = (TIE_ALLOWED, STRICT)
"""The variants of the instruction, the base first."""

PAIR_TEMPLATE = "pair-v1.txt"
"""The prompt template in use."""

_CRITERIA: Mapping[PairPrompt, str] = {TIE_ALLOWED: "allowed", STRICT: "strict"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPairCall:
    """One call to be made, and which pair, order, instruction, judge and trial its answer will count for."""

    call: CallSpec
    pair: Pair
    order: Order
    prompt: PairPrompt
    judge: str
    family: str
    trial: int


def pair_template() -> PromptTemplate:
    """The prompt template."""
    return prompt_template("assaymark.judging.pairs", PAIR_TEMPLATE)


@cache
def _schema_text() -> str:
    """The reply schema as it is shown and sent."""
    return json.dumps(pair_schema(), indent=1)


def criterion_text(prompt: PairPrompt) -> str:
    """The paragraph about ties, by which alone the variants differ.

    >>> criterion_text("tie-allowed")
    'The two candidates may be equally good. If they are, answer "tie".'
    """
    return pair_template().part(_CRITERIA[prompt])


@cache
def pair_system_text(prompt: PairPrompt) -> str:
    """The system message: the question, the criterion, and the form of the answer."""
    return pair_template().filled("system", criterion=criterion_text(prompt), schema=_schema_text())


@lru_cache(maxsize=4096)
def task_text(brief: Brief) -> str:
    """The user block that all pairs of one task share: the situation and the requirements, each fenced."""
    listed = "\n".join(row(one) for one in brief.requirements)
    blocks = (fence("question", brief.question), fence("requirements", listed))
    return pair_template().filled("task", blocks="\n\n".join(blocks))


def candidates_text(first: str, second: str) -> str:
    """The user block with the candidates in slots 1 and 2.

    Both fences have one label, so a text looks the same in either slot and the order changes nothing else.
    """
    return pair_template().filled("candidates", first=fence("candidate", first), second=fence("candidate", second))


def pair_texts(pair: Pair, order: Order, prompt: PairPrompt) -> tuple[str, str, str]:
    """Everything that a judge is shown of a pair: system message, task block, candidates block.

    They are made of the situation, the requirements and the two texts, and of nothing else of the pair.
    """
    return pair_system_text(prompt), task_text(pair.brief), candidates_text(*pair.slots(order))


def pair_prompt_hashes(prompts: Sequence[str] = PAIR_PROMPTS) -> dict[str, str]:
    """sha256 of each variant's instruction together with the template and the reply schema.

    >>> len(pair_prompt_hashes(["strict"])["strict"])
    64
    """
    known = _prompts_checked(prompts)
    return {one: sha256_text("\n".join((pair_system_text(one), pair_template().text))) for one in known}


def plan_pair_calls(
    pairs: Sequence[Pair],
    judge: JudgeSpec,
    variants: Sequence[str] = (TIE_ALLOWED,),
    trials: int | None = None,
) -> list[PlannedPairCall]:
    """Every call of one judge: by pair, then prompt variant, then order, then trial.

    Parameters
    ----------
    pairs : sequence of Pair
        Checked with `gates.check` before; planning does not look at them again.
    judge : JudgeSpec
        Who is asked; its seed, temperature, effort and arguments go into each call.
    variants : sequence of str
        Of `PAIR_PROMPTS`.
    trials : int, optional
        How often each question is asked; default: the judge's own number.

    Returns
    -------
    list of PlannedPairCall
        All call keys differ, also where both texts of a pair are the same: the order is part of the key, so the second
        order of an identical pair is a second trial of one question.

    Raises
    ------
    UnknownNameError
        A variant is not one of `PAIR_PROMPTS`.
    InputError
        The judge is a person, a variant is named twice, or ``trials`` is not at least 1.
    """
    prompts = _prompts_checked(variants)
    times = judge.trials if trials is None else trials
    problems = [Problem(judge.name, "a person answers no calls; a datasheet needs a model")] if judge.human else []
    if times < 1:
        problems.append(Problem("trials", f"must be at least 1 (got {times})"))
    if problems:
        raise InputError("datasheet", problems)
    schema = Text.of(_schema_text())
    systems = {prompt: Message("system", (Text.of(pair_system_text(prompt)),)) for prompt in prompts}
    tasks: dict[Brief, Text] = {}
    planned = []
    for pair in pairs:
        if pair.brief not in tasks:
            tasks[pair.brief] = Text.of(task_text(pair.brief))
        users = {
            order: Message("user", (tasks[pair.brief], Text.of(candidates_text(*pair.slots(order)))))
            for order in pair.orders
        }
        planned += [
            _planned(pair, order, prompt, judge, trial, (systems[prompt], users[order]), schema)
            for prompt in prompts
            for order in pair.orders
            for trial in range(1, times + 1)
        ]
    return planned


def _prompts_checked(prompts: Sequence[str]) -> tuple[PairPrompt, ...]:
    """The variants, each known and named once."""
    found: list[PairPrompt] = []
    for name in prompts:
        known = next((prompt for prompt in PAIR_PROMPTS if prompt == name), None)
        if known is None:
            raise UnknownNameError("prompt variant", name, PAIR_PROMPTS)
        found.append(known)
    if len(set(found)) < len(found):
        raise InputError("datasheet", [Problem("variants", f"each is named once (got {', '.join(found)})")])
    return tuple(found)


def _planned(
    pair: Pair,
    order: Order,
    prompt: PairPrompt,
    judge: JudgeSpec,
    trial: int,
    messages: tuple[Message, ...],
    schema: Text,
) -> PlannedPairCall:
    """One call."""
    call = CallSpec(
        model=judge.model,
        messages=messages,
        template=pair_template().sha256,
        trial=trial,
        order=pair.orders.index(order),
        seed=judge.seed,
        temperature=judge.temperature,
        effort=judge.effort,
        schema=schema,
        args=dict(judge.args),
    )
    return PlannedPairCall(
        call=call, pair=pair, order=order, prompt=prompt, judge=judge.name, family=judge.family, trial=trial
    )


PointVariant = Literal["vacuum", "ladder", "filler"]

FILLED_LEVELS: Final = (1, 2, 3, 4)
"""The levels that are also shown with filler: neither the floor nor the ceiling, where a scale has no room."""

# A filler text is its parent's content at another length, which is what ``length_matched`` names among derivations.
_KINDS: Final[dict[PointVariant, DerivationKind]] = {
    "vacuum": "vacuum",
    "ladder": "ladder",
    "filler": "length_matched",
}
_NOTHING: Final = ("", " \n\n\t")
_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SOURCE: Final = "assaymark stimuli"


@record
class PointStimulus:
    """One text for a rubric judge: a level of a task's ladder, the same with filler, or nothing (``vacuum``, level 0).

    ``level`` is how many requirements the text meets. ``parent`` is the id of the ladder text that a filler text
    lengthens: what it has more meets nothing, so a judge that is blind to length scores both alike.
    """

    id: str
    brief: Brief
    level: int
    text: str
    variant: PointVariant
    parent: str | None = None

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.brief.task

    @property
    def tokens(self) -> int:
        """Its length in whitespace tokens."""
        return len(self.text.split())


def point_stimuli(tasks: Sequence[Task], seed: int) -> list[PointStimulus]:
    """Two texts without content, the six levels Q0 .. Q5, and Q1 .. Q4 with filler, for each task.

    The levels and the filler texts are those that `build_stimuli` puts in pairs from the same seed, so what `check`
    says of those pairs holds here: a filler text meets what its parent meets, and is longer by half.

    Raises
    ------
    InputError
        The tasks cannot carry stimuli (`task_problems`).

    Examples
    --------
    >>> from assaymark.judging.pairs.tasks import finance_tasks
    >>> found = point_stimuli(finance_tasks()[:1], seed=7)
    >>> [(one.variant, one.level) for one in found][:4]
    [('vacuum', 0), ('vacuum', 0), ('ladder', 0), ('ladder', 1)]
    >>> longer = found[-1]
    >>> longer.id, longer.parent
    ('copper-breakout.point.filler.4', 'copper-breakout.point.ladder.4')
    """
    if problems := task_problems(tasks):
        raise InputError("tasks", problems)
    found = []
    for task in tasks:
        brief = brief_of(task)
        found += [_point(brief, number, 0, text, "vacuum") for number, text in enumerate(_NOTHING, start=1)]
        chain = prefix_chain(task, seed)
        found += [_point(brief, level, level, one.text, "ladder") for level, one in enumerate(chain)]
        found += _filled(task, brief, seed)
    return found


def _filled(task: Task, brief: Brief, seed: int) -> Iterator[PointStimulus]:
    """The longer texts of a task's filler pairs, each with the ladder text that it lengthens."""
    for pair in drafts(task, seed):
        level = len(pair.v.met)
        if pair.condition == "filler" and level in FILLED_LEVELS:
            yield _point(brief, level, level, pair.v.text, "filler", parent=_name(brief, "ladder", level))


def _name(brief: Brief, variant: PointVariant, number: int) -> str:
    """The id of a stimulus."""
    return f"{brief.task}.point.{variant}.{number}"


def _point(
    brief: Brief, number: int, level: int, text: str, variant: PointVariant, parent: str | None = None
) -> PointStimulus:
    """One stimulus with its id."""
    name = _name(brief, variant, number)
    return PointStimulus(id=name, brief=brief, level=level, text=text, variant=variant, parent=parent)


def point_records(stimuli: Sequence[PointStimulus]) -> tuple[list[Decision], dict[str, Context]]:
    """The stimuli as decisions with their contexts, to be planned like any others (`judging.plan_calls`).

    ``record_id`` is the id of the stimulus, by which judgments find their level and task again; ``cluster`` is the
    task. The study that plans them has to name the derivations ``vacuum``, ``ladder`` and ``length_matched`` (filler)
    beside ``honest``. A context holds the situation and the requirements as the prompt; nothing in it is a fact that a
    number could contradict.
    """
    contexts: dict[str, Context] = {}
    names: dict[str, str] = {}
    decisions = []
    for one in stimuli:
        if one.task not in names:
            context = _context(one.brief)
            names[one.task] = content_id(context)
            contexts[names[one.task]] = context
        decisions.append(_decision(one, names[one.task]))
    return decisions, contexts


def _context(brief: Brief) -> Context:
    """What the writer of a task's texts was given."""
    listed = "\n".join(f"- {name}: {must}" for name, must in brief.requirements)
    return Context(
        completeness="partial",
        cutoff=_MOMENT,
        cutoff_source="constructed",
        prompt=f"{brief.question}\n\nWhat a good answer does:\n{listed}",
    )


def _decision(one: PointStimulus, context: str) -> Decision:
    """A stimulus as the decision of an agent that is called by its level."""
    return Decision(
        record_id=one.id,
        episode_id=one.task,
        step=0,
        cluster=one.task,
        decided_at=_MOMENT,
        agent=Agent(id=f"{one.variant}-{one.id.rpartition('.')[2]}", family=_SOURCE),
        context_id=context,
        actions=(),
        rationales=(Rationale(text=one.text, kind="summary"),),
        format="stimulus",
        provenance=Provenance(source=_SOURCE),
        derivation=Derivation(kind=_KINDS[one.variant], parent=one.parent),
    )
