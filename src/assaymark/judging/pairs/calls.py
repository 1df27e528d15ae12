"""Pairs as judge calls: the prompt in its two variants, the plan of all calls, the replies, and the gates before."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import permutations
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

import assaymark.prompting as p
import assaymark.records as records
from assaymark.engine.calls import Message, Reply, Text
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.judging.prompts import PlannedCall
from assaymark.plan import read_model
from assaymark.prompting import PromptTemplate, Rejected, ReplyForm, fence, row
from assaymark.protocol import JudgeSpec
from assaymark.records import JSON, PairCall, PairCondition, repeated, sha256_text

# Tasks for stimuli: a situation, and the requirements that a good text for it meets. A person writes them as TOML

_WORDING = tomllib.loads((files("assaymark.judging.pairs") / "wording.toml").read_text(encoding="utf-8"))
CLOSERS: dict[int, str] = dict(enumerate(_WORDING["closers"], start=1))
"""Sentences by their length in words."""
BEFORE_CLOSERS: tuple[str, ...] = tuple(_WORDING["before_closers"])
FILLERS: tuple[str, ...] = tuple(_WORDING["fillers"])
FIXED_SENTENCES = (*CLOSERS.values(), *BEFORE_CLOSERS, *FILLERS)
"""Every sentence of `wording.toml`; no requirement may be named by a word of them."""

SYNONYMS = (("whole", "entire"), ("usual", "customary"), ("large", "big"), ("about", "around"), ("because", "since"))
"""Words and what they are swapped for, the first that stands in a text."""

UNITS = (
    (re.compile(r"(?<=\d) %"), " percent"),
    (re.compile(r"(?<=\d)%"), " percent"),
    (re.compile(r"(?<=\d) percent\b"), " %"),
    (re.compile(r"(?<=\d) bps\b"), " bp"),
    (re.compile(r"\$(\d[\d.,]*\d|\d)"), r"\1 dollars"),
)
"""Units and another way to write each, the first that stands in a text; the value stays."""


# A requirement is met by a sentence that names it together with a value, and met in part by one that names it without.
# Tasks are checked with this rule, the gates recount with it, and built-in judges understand nothing else.

MET, PARTLY, MISSING = 1.0, 0.5, 0.0
"""What a requirement earns that is met, named without its value, and not named."""

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_VALUE = re.compile(r'\d|"[^"\n]+"|“[^”\n]+”')


def sentences(text: str) -> list[str]:
    """The sentences of a text: cut after a full stop, question or exclamation mark, and at line ends."""
    return [sentence for sentence in _BREAK.split(text) if sentence]


def has_value(sentence: str) -> bool:
    """Whether a sentence holds a value: a digit, or words between double quotation marks."""
    return _VALUE.search(sentence) is not None


@lru_cache(maxsize=8192)
def _named(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name.lower())}(?!\w)")


def names(sentence: str, name: str) -> bool:
    """Whether a sentence names a requirement, in any case and as words of its own."""
    lower = sentence.lower()
    # Looking for the words first is what makes a thousand tasks quick: most sentences name one requirement of five.
    return name.lower() in lower and _named(name).search(lower) is not None


@lru_cache(maxsize=8192)
def marks(text: str, requirements: tuple[str, ...]) -> tuple[float, ...]:
    """The mark of each requirement in ``text``: `MET`, `PARTLY` or `MISSING`, in the order of ``requirements``."""
    lines = sentences(text)
    naming = ([has_value(line) for line in lines if names(line, name)] for name in requirements)
    return tuple(MISSING if not values else MET if any(values) else PARTLY for values in naming)


LEAST_REQUIREMENTS = 5
"""A ladder has five steps, so a task needs at least as many requirements."""
SHORTEST, LONGEST = 0.6, 1.6
"""How long the other sentences of a requirement may be, as a multiple of its first wording in whitespace tokens."""

_Line = Annotated[str, Field(min_length=1, max_length=400, pattern=r"^\S(?:[^\x00-\x1f]*\S)?$")]
_DIGIT = re.compile(r"(\d)(?!\d)")


class _Strict(BaseModel):
    """Base of the parts of a task file: immutable, strict types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Requirement(_Strict):
    """One thing that a good text does, and the sentences that do it, do it in part, and do not.

    ``name`` is what a sentence has to call it, and ``must`` what judges are told. ``met`` holds at least two wordings
    with the name and a value, ``partly`` the name without a value, and ``neutral`` stands where it is not met.
    """

    name: Annotated[str, Field(max_length=60, pattern=r"^[a-z][a-z0-9]*(?:[ -][a-z0-9]+)*$")]
    must: _Line
    met: tuple[_Line, ...]
    partly: _Line
    neutral: _Line


class Task(_Strict):
    """A situation with five or more requirements, in the order in which judges read them."""

    name: Annotated[str, Field(max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    question: Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x08\x0b-\x1f]+$")]
    requirements: Annotated[tuple[Requirement, ...], Field(alias="requirement")]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(requirement.name for requirement in self.requirements)


class _Tasks(_Strict):
    tasks: Annotated[tuple[Task, ...], Field(alias="task")]


def load_tasks(text: str, source: str = "tasks.toml") -> tuple[Task, ...]:
    """The tasks in the text of a TOML file (``docs/tasks.md`` describes its form); InputError with all problems."""
    tasks = read_model(_Tasks, text, source).tasks
    if problems := task_problems(tasks):
        raise InputError(source, problems)
    return tasks


@cache
def finance_tasks() -> tuple[Task, ...]:
    """The ten tasks that come with the package: notes that go with an investment decision."""
    text = (files("assaymark.judging.pairs") / "finance.toml").read_text(encoding="utf-8")
    return load_tasks(text, "finance.toml")


def task_problems(tasks: Sequence[Task]) -> list[Problem]:
    """Every sentence of the tasks that is not as its field says; nothing if stimuli can be made of them."""
    called = [task.name for task in tasks]
    problems = [] if called else [Problem("task", "at least one is needed (got 0)")]
    problems += [Problem(f"task {name}", "another task has this name") for name in repeated(called)]

    def naming(task: Task) -> Iterator[str]:
        # Names of requirements that cannot be told apart, or that occur in sentences which meet nothing.
        if len(task.requirements) < LEAST_REQUIREMENTS:
            yield f"at least {LEAST_REQUIREMENTS} requirements are needed (got {len(task.requirements)})"
        for name in repeated(task.names):
            yield f"two requirements are called {name!r}"
        for inner, outer in permutations(dict.fromkeys(task.names), 2):
            if names(outer, inner):
                yield f"a sentence about {outer!r} also names {inner!r}; give one of them another name"
        for name in task.names:
            if any(names(sentence, name) for sentence in FIXED_SENTENCES):
                yield f"{name!r} is a word of the sentences that lengthen a text; give the requirement another name"
        for sentence in repeated([requirement.neutral for requirement in task.requirements]):
            yield f"two requirements share a neutral sentence: {sentence!r}"

    def wording(task: Task, one: Requirement) -> Iterator[str]:
        if len(one.met) < 2 or repeated(one.met):
            count = f"{len(one.met)}, {len(set(one.met))} different"
            yield f"met must hold two or more wordings, all different (got {count})"
        pivot = len(one.met[0].split()) if one.met else len(one.neutral.split())
        for field, sentence in (*(("met", met) for met in one.met), ("partly", one.partly), ("neutral", one.neutral)):
            others = [name for name in task.names if name != one.name and names(sentence, name)]
            if len(sentences(sentence)) != 1 or sentence[-1] not in ".!?":
                yield f"{field} must be one sentence with a stop at its end (got {sentence!r})"
            if others:
                yield f"{field} names another requirement, {others[0]!r} (got {sentence!r})"
            if names(sentence, one.name) != (field != "neutral"):
                yield f"{field} must {'not ' if field == 'neutral' else ''}name {one.name!r} (got {sentence!r})"
            if field != "neutral" and has_value(sentence) != (field != "partly"):
                must = "no value: no digit, no" if field == "partly" else "a value: a digit or a"
                yield f"{field} must hold {must} quotation (got {sentence!r})"
            if not SHORTEST * pivot <= (length := len(sentence.split())) <= LONGEST * pivot:
                allowed = f"{SHORTEST:g} to {LONGEST:g} times the {pivot} tokens of the first wording"
                yield f"{field} must have {allowed} (got {length})"

    for task in tasks:
        problems += [Problem(f"task {task.name}", what) for what in naming(task)]
        for need in task.requirements:
            problems += [Problem(f"task {task.name}, {need.name}", what) for what in wording(task, need)]
    return problems


def repeated_tasks(tasks: Sequence[Task], count: int) -> tuple[Task, ...]:
    """``count`` tasks made of a few: the given ones in turn, every further round with other numbers in its wordings."""

    def turned(sentence: str, turn: int) -> str:
        return _DIGIT.sub(lambda match: str((int(match.group()) + turn) % 10), sentence)

    repeats = []
    for at in range(count):
        turn, task = at // len(tasks), tasks[at % len(tasks)]
        if turn:
            requirements = tuple(
                requirement.model_copy(update={"met": tuple(turned(sentence, turn) for sentence in requirement.met)})
                for requirement in task.requirements
            )
            changed = {"name": f"{task.name}-{turn + 1}", "question": f"{task.question} (Case {turn + 1}.)"}
            task = task.model_copy(update={**changed, "requirements": requirements})
        repeats.append(task)
    return tuple(repeats)


Order = Literal["uv", "vu"]
"""Which content stands in slot 1: ``uv`` is u."""

ORDERS: tuple[Order, ...] = ("uv", "vu")


@records.record
class Stimulus:
    """A candidate text, and the names of the requirements that it meets and that it meets in part."""

    text: str
    met: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Its length in whitespace tokens."""
        return len(self.text.split())


@records.record
class Brief:
    """What judges are told of a task: the situation, and each requirement's name with what must be there."""

    task: str
    question: str
    requirements: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(name for name, _ in self.requirements)


@records.record
class Pair:
    """Two candidate texts for one task, and what is known about them."""

    id: str
    condition: PairCondition
    variant: str
    brief: Brief
    u: Stimulus
    v: Stimulus
    delta: float = 0.0
    better: Literal["u", "v"] | None = None
    orders: tuple[Order, ...] = ORDERS

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.brief.task

    def slots(self, order: Order) -> tuple[str, str]:
        """The texts in slots 1 and 2 under an order."""
        return (self.u.text, self.v.text) if order == "uv" else (self.v.text, self.u.text)


PairVerdict = Literal["1", "2", "tie", "abstain"]

MOST_CHARACTERS = 20_000
"""A longer reply is invalid unread."""
MOST_REASON = 2_000
"""Maximum number of characters in a reason."""

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

PlannedPair = PlannedCall[tuple[Pair, Order], PairVerdict]
"""A call that shows a pair in an order; the version of its form is the variant of the instruction."""


def checked_verdict(raw: JSON) -> PairVerdict:
    """The verdict of a judge's reply to a pair, held against its reason."""
    fields = p.members(raw, ("verdict", "reason"))
    words: tuple[PairVerdict, ...] = get_args(PairVerdict)
    verdict = p.word_of(fields["verdict"], words, 'verdict must be "1", "2", "tie" or "abstain"')
    named = set(_NAMED.findall(p.text_of(fields["reason"], "reason", MOST_REASON)))
    if verdict in ("1", "2") and named and verdict not in named:
        raise Rejected(f"the verdict is {verdict}, but the reason names candidate {named.pop()} as the better one")
    return verdict


_SCHEMA = p.schema_text(
    {"verdict": {"type": "string", "enum": list(get_args(PairVerdict))}, "reason": {"type": "string"}}
)


def pair_form(prompt: PairPrompt = TIE_ALLOWED) -> ReplyForm[PairVerdict]:
    """The form of a reply to a pair."""
    return ReplyForm(prompt, _SCHEMA, checked_verdict, MOST_CHARACTERS)


def pair_call(planned: PlannedPair, reply: Reply) -> PairCall:
    """The record that a reply to a planned call amounts to."""
    read, (pair, order) = planned.read(reply), planned.about
    return PairCall(
        pair.id, pair.condition, pair.task, order, read.answer or "invalid", planned.judge.name, pair.delta,
        pair.better, pair.variant, prompt=planned.form.version, trial=planned.call.trial, call_key=planned.call.key,
        reason=read.reason,
    )  # fmt: skip


def pair_template() -> PromptTemplate:
    """The prompt template."""
    return p.prompt_template("assaymark.judging.pairs", PAIR_TEMPLATE)


def criterion_text(prompt: PairPrompt) -> str:
    """The paragraph about ties, by which alone the variants differ."""
    return pair_template().part(_CRITERIA[prompt])


@cache
def pair_system_text(prompt: PairPrompt) -> str:
    """The system message: the question, the criterion, and the form of the answer."""
    return pair_template().filled("system", criterion=criterion_text(prompt), schema=_SCHEMA)


@lru_cache(maxsize=4096)
def task_text(brief: Brief) -> str:
    """The user block that all pairs of one task share: the situation and the requirements, each fenced."""
    listed = "\n".join(row(requirement) for requirement in brief.requirements)
    blocks = (fence("question", brief.question), fence("requirements", listed))
    return pair_template().filled("task", blocks="\n\n".join(blocks))


def candidates_text(first: str, second: str) -> str:
    """The user block with the candidates in slots 1 and 2."""
    return pair_template().filled("candidates", first=fence("candidate", first), second=fence("candidate", second))


def pair_texts(pair: Pair, order: Order, prompt: PairPrompt) -> tuple[str, str, str]:
    """Everything that a judge is shown of a pair: system message, task block, candidates block."""
    return pair_system_text(prompt), task_text(pair.brief), candidates_text(*pair.slots(order))


def pair_prompt_hashes(prompts: Sequence[str] = PAIR_PROMPTS) -> dict[str, str]:
    """sha256 of each variant's instruction together with the template and the reply schema."""
    variants = _known_prompts(prompts)
    return {variant: sha256_text("\n".join((pair_system_text(variant), pair_template().text))) for variant in variants}


def _known_prompts(prompts: Sequence[str]) -> tuple[PairPrompt, ...]:
    """The variants, each known and named once."""
    variants = [variant for name in prompts for variant in PAIR_PROMPTS if variant == name]
    if unknown := [name for name in prompts if name not in PAIR_PROMPTS]:
        raise UnknownNameError("prompt variant", unknown[0], PAIR_PROMPTS)
    if len(set(variants)) < len(variants):
        raise InputError("datasheet", [Problem("variants", f"each is named once (got {', '.join(variants)})")])
    return tuple(variants)


def plan_pair_calls(
    pairs: Sequence[Pair], judge: JudgeSpec, variants: Sequence[str] = (TIE_ALLOWED,), trials: int | None = None
) -> list[PlannedPair]:
    """Every call of one judge on pairs that `check` passed: by pair, then prompt variant, then order, then trial."""
    prompts = _known_prompts(variants)
    times = judge.trials if trials is None else trials
    problems = [Problem(judge.name, "a person answers no calls; a datasheet needs a model")] if judge.human else []
    if times < 1:
        problems.append(Problem("trials", f"must be at least 1 (got {times})"))
    if problems:
        raise InputError("datasheet", problems)
    systems = {prompt: Message("system", (Text.of(pair_system_text(prompt)),)) for prompt in prompts}
    tasks: dict[Brief, Text] = {}
    planned = []
    for pair in pairs:
        if pair.brief not in tasks:
            tasks[pair.brief] = Text.of(task_text(pair.brief))
        users = [
            Message("user", (tasks[pair.brief], Text.of(candidates_text(*pair.slots(order))))) for order in pair.orders
        ]
        for prompt in prompts:
            for at, order in enumerate(pair.orders):
                for trial in range(1, times + 1):
                    shown = systems[prompt], users[at]
                    form = pair_form(prompt)
                    planned.append(PlannedCall.of(judge, trial, shown, pair_template(), (pair, order), form, at))
    return planned


LENGTH_TOLERANCE = 0.05
"""Texts that are to be of one length differ by at most this share of the longer one, in words."""
LEAST_FILLER = 0.2
"""The filler text of a pair is longer by at least this share of the other."""

_MATCHED: tuple[PairCondition, ...] = ("ladder", "same_subset", "different_subset", "graded_vacuum")
_TELLING = re.compile(
    r"same_subset|different_subset|graded_vacuum|expected winner|(?:delta|quality level|level) ?[=:] ?\d", re.IGNORECASE
)

GATES: Mapping[str, str] = {
    "dominance": "the better text meets everything that the other meets, and the difference is the one claimed",
    "length": "texts that are to be of one length are, within 5 % in a pair and in a task; fillers are longer",
    "leakage": "no prompt changes with what is known about a pair, and no text says it",
    "orders": "every pair is shown in both orders",
    "duplicates": "no two pairs of a task have the same two texts, and no two pairs one id",
}
"""The gates by name."""


def check(pairs: Sequence[Pair]) -> dict[str, int]:
    """Put all pairs through all gates: how many pairs each gate looked at.

    What a text meets is counted again from the text (`marks`), not believed; InputError has every problem.
    """
    problems: list[Problem] = [] if pairs else [Problem("", "at least one pair is needed (got 0)")]
    for pair in pairs:
        problems += [Problem(f"pair {pair.id}", what) for what in _gate_problems(pair)]
    lengths: dict[str, list[int]] = {}
    for pair in pairs:
        if pair.condition in _MATCHED:
            lengths.setdefault(pair.task, []).extend((pair.u.tokens, pair.v.tokens))
    for task, sizes in lengths.items():
        if max(sizes) - min(sizes) > LENGTH_TOLERANCE * max(sizes):
            what = f"length: its texts have {min(sizes)} to {max(sizes)} tokens"
            problems.append(Problem(f"task {task}", what))
    ids: set[str] = set()
    contents: dict[tuple[str, str, str], str] = {}
    for pair in pairs:
        if pair.id in ids:
            problems.append(Problem(f"pair {pair.id}", "duplicates: another pair has this id"))
        ids.add(pair.id)
        low, high = sorted((pair.u.text, pair.v.text))
        if (other := contents.setdefault((pair.task, low, high), pair.id)) != pair.id:
            problems.append(Problem(f"pair {pair.id}", f"duplicates: has the same two texts as {other}"))
    if problems:
        raise InputError("stimuli", problems)
    return dict.fromkeys(GATES, len(pairs)) | {"length": sum(pair.condition in (*_MATCHED, "filler") for pair in pairs)}


def _gate_problems(pair: Pair) -> Iterator[str]:
    """What the gates say against one pair: what the texts meet, their lengths, leaks into prompts, the orders."""
    names = pair.brief.names
    u, v = (marks(text.text, names) for text in (pair.u, pair.v))
    for called, text, earned in (("u", pair.u, u), ("v", pair.v, v)):
        claimed = tuple(MET if name in text.met else PARTLY if name in text.partly else MISSING for name in names)
        if earned != claimed:
            yield f"dominance: {called} does not meet what it is said to meet (got {earned}, said {claimed})"
    if pair.condition == "ladder":
        high, low = (u, v) if pair.better == "u" else (v, u)
        if pair.better is None or pair.delta <= 0:
            got = f"{pair.better}, {pair.delta:g}"
            yield f"dominance: a ladder pair needs a better text and a step above 0 (got {got})"
        else:
            if any(better < worse for better, worse in zip(high, low, strict=True)):
                yield f"dominance: {pair.better} does not meet everything that the other meets"
            if sum(high) - sum(low) != pair.delta:
                yield f"dominance: the difference is {sum(high) - sum(low):g} requirements, not {pair.delta:g}"
    else:
        if pair.delta or pair.better is not None:
            got = f"delta {pair.delta:g}, {pair.better}"
            yield f"dominance: neither text can be better in a {pair.condition} pair (got {got})"
        blank = pair.u.text.strip() == pair.v.text.strip()
        if blank != (pair.condition == "vacuum"):
            yield f"dominance: the texts of a {pair.condition} pair must {'differ' if blank else 'not differ'}"
        if pair.condition == "different_subset":
            if sum(u) != sum(v) or u == v:
                got = f"{sum(u):g} and {sum(v):g}"
                yield f"dominance: the texts must meet equally many different requirements (got {got})"
        elif u != v:
            yield f"dominance: the texts must meet the same requirements (got {u} and {v})"
    short, long = sorted((pair.u.tokens, pair.v.tokens))
    if pair.condition in _MATCHED and long - short > LENGTH_TOLERANCE * long:
        yield f"length: the texts have {short} and {long} tokens, more than 5 % apart"
    if pair.condition == "filler" and pair.v.tokens < (1 + LEAST_FILLER) * pair.u.tokens:
        yield f"length: v must be longer by a fifth (got {pair.v.tokens} tokens against {pair.u.tokens})"
    bare = replace(
        pair, id="", condition="vacuum", variant="", brief=replace(pair.brief, task=""), delta=0.0, better=None,
        u=Stimulus(pair.u.text), v=Stimulus(pair.v.text),
    )  # fmt: skip
    for order in pair.orders:
        for prompt in PAIR_PROMPTS:
            if pair_texts(pair, order, prompt) != pair_texts(bare, order, prompt):
                yield f"leakage: the {prompt} prompt in order {order} depends on more than the texts of the pair"
    listed = (pair.brief.question, *(part for requirement in pair.brief.requirements for part in requirement))
    for where, shown in (("u", pair.u.text), ("v", pair.v.text), *(("the task", text) for text in listed)):
        if leaked := pair.id if pair.id and pair.id in shown else _telling(shown):
            yield f"leakage: {where} tells about the pair (got {leaked!r})"
    if sorted(pair.orders) != sorted(ORDERS):
        yield f"orders: must be shown in both orders once (got {', '.join(pair.orders) or 'none'})"


@lru_cache(maxsize=8192)
def _telling(text: str) -> str:
    """Words in a text that would tell a judge what is expected of it; empty if there are none."""
    match = _TELLING.search(text)
    return match.group() if match else ""
