"""Judge calls for pairs: the tasks, the prompt in two variants, the plan of all calls, the replies, and the gates."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import permutations
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field

import assaymark.prompting as p
import assaymark.records as records
from assaymark.engine.calls import Message, Reply, Text
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.judging.prompts import PlannedCall
from assaymark.plan import Frozen, read_model
from assaymark.prompting import PromptTemplate, Rejected, ReplyForm, fence, row
from assaymark.protocol import JudgeSpec
from assaymark.records import JSON, PairCall, PairCondition, duplicates, sha256_text

_WORDING = tomllib.loads((files("assaymark.judging.pairs") / "wording.toml").read_text(encoding="utf-8"))
CLOSERS: dict[int, str] = dict(enumerate(_WORDING["closers"], start=1))
"""Neutral closing sentences by their length in words."""
BEFORE_CLOSERS: tuple[str, ...] = tuple(_WORDING["before_closers"])
FILLERS: tuple[str, ...] = tuple(_WORDING["fillers"])
FIXED_SENTENCES = (*CLOSERS.values(), *BEFORE_CLOSERS, *FILLERS)
"""Every sentence of `wording.toml`; no word in them may name a requirement."""

SYNONYMS = (("whole", "entire"), ("usual", "customary"), ("large", "big"), ("about", "around"), ("because", "since"))
"""Words with their synonyms; the first of these words in a text is replaced."""

UNITS = (
    (re.compile(r"(?<=\d) %"), " percent"),
    (re.compile(r"(?<=\d)%"), " percent"),
    (re.compile(r"(?<=\d) percent\b"), " %"),
    (re.compile(r"(?<=\d) bps\b"), " bp"),
    (re.compile(r"\$(\d[\d.,]*\d|\d)"), r"\1 dollars"),
)
"""Units with an alternative spelling; the first of these units in a text is replaced, and the value stays."""


# A sentence that names a requirement together with a value meets it; one that names it without a value meets it in
# part. Tasks are checked by this rule, the gates recount by it, and built-in judges use no other criterion.

MET, PARTLY, MISSING = 1.0, 0.5, 0.0
"""The marks of a requirement that is met, named without a value, and not named."""

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_VALUE = re.compile(r'\d|"[^"\n]+"|“[^”\n]+”')


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences after a full stop, question or exclamation mark, and at line ends."""
    return [sentence for sentence in _BREAK.split(text) if sentence]


def has_value(sentence: str) -> bool:
    """Return True if a sentence contains a value: a digit, or words between double quotation marks."""
    return _VALUE.search(sentence) is not None


@lru_cache(maxsize=8192)
def _name_pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name.lower())}(?!\w)")


def is_named(sentence: str, name: str) -> bool:
    """Return True if a sentence names a requirement as separate words, in upper or lower case."""
    lower = sentence.lower()
    # The substring test first makes a thousand tasks fast: most sentences name one requirement of five.
    return name.lower() in lower and _name_pattern(name).search(lower) is not None


@lru_cache(maxsize=8192)
def marks(text: str, requirements: tuple[str, ...]) -> tuple[float, ...]:
    """Mark each requirement in ``text`` as `MET`, `PARTLY` or `MISSING`, in the order of ``requirements``."""
    lines = split_sentences(text)
    naming = ([has_value(line) for line in lines if is_named(line, name)] for name in requirements)
    return tuple(MISSING if not values else MET if any(values) else PARTLY for values in naming)


LEAST_REQUIREMENTS = 5
"""Minimum number of requirements of a task, one for each step of the ladder."""
SHORTEST, LONGEST = 0.6, 1.6
"""Minimum and maximum length of a requirement's other sentences, as a multiple of the words in its first wording."""

_Line = Annotated[str, Field(min_length=1, max_length=400, pattern=r"^\S(?:[^\x00-\x1f]*\S)?$")]


class Requirement(Frozen):
    """One requirement of a good text, with sentences that meet it, meet it in part, and do not meet it.

    ``name`` is the words that a sentence must contain, ``must`` the description for judges. ``met`` has at least two
    wordings with the name and a value, ``partly`` has the name without a value, and ``neutral`` replaces an unmet one.
    """

    name: Annotated[str, Field(max_length=60, pattern=r"^[a-z][a-z0-9]*(?:[ -][a-z0-9]+)*$")]
    must: _Line
    met: tuple[_Line, ...]
    partly: _Line
    neutral: _Line


class Task(Frozen):
    """A situation with five or more requirements, in the order in which judges see them."""

    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[str, Field(max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    question: Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x08\x0b-\x1f]+$")]
    requirements: Annotated[tuple[Requirement, ...], Field(alias="requirement")]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(requirement.name for requirement in self.requirements)


class _Tasks(Frozen):
    model_config = ConfigDict(populate_by_name=True)

    tasks: Annotated[tuple[Task, ...], Field(alias="task")]


def load_tasks(text: str, source: str = "tasks.toml") -> tuple[Task, ...]:
    """Parse the tasks in a TOML text (form: ``docs/tasks.md``); raise InputError with all problems."""
    tasks = read_model(_Tasks, text, source).tasks
    if problems := task_problems(tasks):
        raise InputError(source, problems)
    return tasks


@cache
def finance_tasks() -> tuple[Task, ...]:
    """Load the ten built-in tasks: notes that accompany an investment decision."""
    text = (files("assaymark.judging.pairs") / "finance.toml").read_text(encoding="utf-8")
    return load_tasks(text, "finance.toml")


def task_problems(tasks: Sequence[Task]) -> list[Problem]:
    """List every violation of the rules for tasks and their sentences; empty if stimuli can be made from them."""
    called = [task.name for task in tasks]
    problems = [] if called else [Problem("task", "at least one is needed (got 0)")]
    problems += [Problem(f"task {name}", "another task has this name") for name in duplicates(called)]

    def naming(task: Task) -> Iterator[str]:
        # Names of requirements that are ambiguous, or that occur in sentences that meet no requirement.
        if len(task.requirements) < LEAST_REQUIREMENTS:
            yield f"at least {LEAST_REQUIREMENTS} requirements are needed (got {len(task.requirements)})"
        for name in duplicates(task.names):
            yield f"two requirements are called {name!r}"
        for inner, outer in permutations(dict.fromkeys(task.names), 2):
            if is_named(outer, inner):
                yield f"a sentence about {outer!r} also names {inner!r}; give one of them another name"
        for name in task.names:
            if any(is_named(sentence, name) for sentence in FIXED_SENTENCES):
                yield f"{name!r} is a word of the sentences that lengthen a text; give the requirement another name"
        for sentence in duplicates([requirement.neutral for requirement in task.requirements]):
            yield f"two requirements share a neutral sentence: {sentence!r}"

    def wording(task: Task, need: Requirement) -> Iterator[str]:
        if len(need.met) < 2 or duplicates(need.met):
            count = f"{len(need.met)}, {len(set(need.met))} different"
            yield f"met must hold two or more wordings, all different (got {count})"
        pivot = len(need.met[0].split()) if need.met else len(need.neutral.split())
        for field, sentence in (*(("met", s) for s in need.met), ("partly", need.partly), ("neutral", need.neutral)):
            others = [name for name in task.names if name != need.name and is_named(sentence, name)]
            if len(split_sentences(sentence)) != 1 or sentence[-1] not in ".!?":
                yield f"{field} must be one sentence with a stop at its end (got {sentence!r})"
            if others:
                yield f"{field} names another requirement, {others[0]!r} (got {sentence!r})"
            if is_named(sentence, need.name) != (field != "neutral"):
                yield f"{field} must {'not ' if field == 'neutral' else ''}name {need.name!r} (got {sentence!r})"
            if field != "neutral" and has_value(sentence) != (field != "partly"):
                must = "no value: no digit, no" if field == "partly" else "a value: a digit or a"
                yield f"{field} must hold {must} quotation (got {sentence!r})"
            if not SHORTEST * pivot <= (length := len(sentence.split())) <= LONGEST * pivot:
                allowed = f"{SHORTEST:g} to {LONGEST:g} times the {pivot} tokens of the first wording"
                yield f"{field} must have {allowed} (got {length})"

    for task in tasks:
        problems += [Problem(f"task {task.name}", text) for text in naming(task)]
        for need in task.requirements:
            problems += [Problem(f"task {task.name}, {need.name}", text) for text in wording(task, need)]
    return problems


Order = Literal["uv", "vu"]
"""The presentation order of a pair: ``uv`` shows u in slot 1."""

ORDERS: tuple[Order, ...] = ("uv", "vu")


@records.record
class Stimulus:
    """A candidate text, with the names of the requirements that it meets and that it meets in part."""

    text: str
    met: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """The length of the text in words."""
        return len(self.text.split())


@records.record
class Brief:
    """The description of a task for judges: the situation, and each requirement's name and description."""

    task: str
    question: str
    requirements: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(name for name, _ in self.requirements)


@records.record
class Pair:
    """Two candidate texts for one task, with their known difference in quality."""

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
        """Return the texts in slots 1 and 2 under an order."""
        return (self.u.text, self.v.text) if order == "uv" else (self.v.text, self.u.text)


PairVerdict = Literal["1", "2", "tie", "abstain"]

MOST_CHARACTERS = 20_000
"""Maximum number of characters in a reply; a longer one is invalid and is not parsed."""
MOST_REASON = 2_000
"""Maximum number of characters in a reason."""

# A sentence that begins "Candidate 2 is better" and ends there, or continues with a cause, "overall" or
# "than candidate 1". "Candidate 2 is better worded", "if ..., candidate 2 is better" and "it is not so that candidate 2
# is better" are not such sentences, because their meaning would have to be guessed.
_NAMED = re.compile(
    r"(?:^|[.;:!?\n]\s*)(?:(?:so|hence|thus|overall|therefore),? )?"
    r"candidate ([12]) (?:is (?:the )?(?:clearly |overall )?(?:better|stronger)"
    r"(?: candidate| one| text| answer| note)?|wins)"
    r"(?: overall| than candidate [12])?(?=\s*(?:$|[.;:!\n]|,? because\b|,? since\b))",
    re.IGNORECASE,
)

PairPrompt = Literal["tie-allowed", "strict"]

TIE_ALLOWED: PairPrompt = "tie-allowed"
"""The base instruction: name the better text, or answer with a tie."""
STRICT: PairPrompt = "strict"
"""The instruction that asks for a tie if only the surface form differs."""
PAIR_PROMPTS: tuple[PairPrompt, ...] = (TIE_ALLOWED, STRICT)
"""The variants of the instruction, the base first."""
PAIR_TEMPLATE = "pair-v1.txt"
"""The prompt template in use."""

_CRITERIA: Mapping[PairPrompt, str] = {TIE_ALLOWED: "allowed", STRICT: "strict"}

PlannedPair = PlannedCall[tuple[Pair, Order], PairVerdict]
"""A call that shows a pair in one order; the version of its form is the variant of the instruction."""


def parse_verdict(raw: JSON) -> PairVerdict:
    """Parse the verdict of a judge's reply, and reject a reply whose reason contradicts it."""
    fields = p.members(raw, ("verdict", "reason"))
    words: tuple[PairVerdict, ...] = get_args(PairVerdict)
    verdict = p.choice(fields["verdict"], words, 'verdict must be "1", "2", "tie" or "abstain"')
    named = set(_NAMED.findall(p.bounded_text(fields["reason"], "reason", MOST_REASON)))
    if verdict in ("1", "2") and named and verdict not in named:
        raise Rejected(f"the verdict is {verdict}, but the reason names candidate {named.pop()} as the better one")
    return verdict


_SCHEMA = p.schema_text(
    {"verdict": {"type": "string", "enum": list(get_args(PairVerdict))}, "reason": {"type": "string"}}
)


def pair_form(prompt: PairPrompt = TIE_ALLOWED) -> ReplyForm[PairVerdict]:
    """Build the reply form for a pair: its JSON schema and its parser."""
    return ReplyForm(prompt, _SCHEMA, parse_verdict, MOST_CHARACTERS)


def pair_call(planned: PlannedPair, reply: Reply) -> PairCall:
    """Convert the reply to a planned call into a record."""
    read, (pair, order) = planned.read(reply), planned.about
    return PairCall(
        pair.id, pair.condition, pair.task, order, read.answer or "invalid", planned.judge.name, pair.delta,
        pair.better, pair.variant, prompt=planned.form.version, trial=planned.call.trial, call_key=planned.call.key,
        reason=read.reason,
    )  # fmt: skip


def pair_template() -> PromptTemplate:
    """Load the prompt template."""
    return p.prompt_template("assaymark.judging.pairs", PAIR_TEMPLATE)


def criterion_text(prompt: PairPrompt) -> str:
    """Return the paragraph about ties, the only difference between the variants."""
    return pair_template().part(_CRITERIA[prompt])


@cache
def pair_system_text(prompt: PairPrompt) -> str:
    """Render the system message: the question, the criterion, and the form of the answer."""
    return pair_template().filled("system", criterion=criterion_text(prompt), schema=_SCHEMA)


@lru_cache(maxsize=4096)
def task_text(brief: Brief) -> str:
    """Render the user block shared by all pairs of one task: the situation and the requirements, each fenced."""
    listed = "\n".join(row(requirement) for requirement in brief.requirements)
    blocks = (fence("question", brief.question), fence("requirements", listed))
    return pair_template().filled("task", blocks="\n\n".join(blocks))


def candidates_text(first: str, second: str) -> str:
    """Render the user block with the candidates in slots 1 and 2."""
    return pair_template().filled("candidates", first=fence("candidate", first), second=fence("candidate", second))


def pair_texts(pair: Pair, order: Order, prompt: PairPrompt) -> tuple[str, str, str]:
    """Render the whole prompt of a pair: system message, task block, candidates block."""
    return pair_system_text(prompt), task_text(pair.brief), candidates_text(*pair.slots(order))


def pair_prompt_hashes(prompts: Sequence[str] = PAIR_PROMPTS) -> dict[str, str]:
    """Return the sha256 of each variant's instruction together with the template and the reply schema."""
    variants = _known_prompts(prompts)
    return {variant: sha256_text("\n".join((pair_system_text(variant), pair_template().text))) for variant in variants}


def _known_prompts(prompts: Sequence[str]) -> tuple[PairPrompt, ...]:
    """Return the checked variants; raise InputError for an unknown or repeated one."""
    variants = [variant for name in prompts for variant in PAIR_PROMPTS if variant == name]
    if unknown := [name for name in prompts if name not in PAIR_PROMPTS]:
        raise UnknownNameError("prompt variant", unknown[0], PAIR_PROMPTS)
    if len(set(variants)) < len(variants):
        raise InputError("datasheet", [Problem("variants", f"each is named once (got {', '.join(variants)})")])
    return tuple(variants)


def plan_pair_calls(
    pairs: Sequence[Pair], judge: JudgeSpec, variants: Sequence[str] = (TIE_ALLOWED,), trials: int | None = None
) -> list[PlannedPair]:
    """Plan every call of one judge on pairs that passed `check`, by pair, then prompt variant, order and trial."""
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
"""Maximum difference in words between length-matched texts, as a share of the longer one."""
LEAST_FILLER = 0.2
"""Minimum excess length of a pair's filler text, as a share of the other text."""

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
    """Check all pairs against all gates, and return the number of pairs that each gate checked.

    The requirements that a text meets are recounted from its words (`marks`); an InputError lists every problem.
    """
    problems: list[Problem] = [] if pairs else [Problem("", "at least one pair is needed (got 0)")]
    for pair in pairs:
        problems += [Problem(f"pair {pair.id}", text) for text in _gate_problems(pair)]
    lengths: dict[str, list[int]] = {}
    for pair in pairs:
        if pair.condition in _MATCHED:
            lengths.setdefault(pair.task, []).extend((pair.u.tokens, pair.v.tokens))
    for task, sizes in lengths.items():
        if max(sizes) - min(sizes) > LENGTH_TOLERANCE * max(sizes):
            text = f"length: its texts have {min(sizes)} to {max(sizes)} tokens"
            problems.append(Problem(f"task {task}", text))
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
    """Yield the gate failures of one pair: requirements met, lengths, leaks into prompts, presentation orders."""
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
    for source, shown in (("u", pair.u.text), ("v", pair.v.text), *(("the task", text) for text in listed)):
        if leaked := pair.id if pair.id and pair.id in shown else _leaked_words(shown):
            yield f"leakage: {source} reveals the pair (got {leaked!r})"
    if sorted(pair.orders) != sorted(ORDERS):
        yield f"orders: must be shown in both orders once (got {', '.join(pair.orders) or 'none'})"


@lru_cache(maxsize=8192)
def _leaked_words(text: str) -> str:
    """Return words in a text that would reveal the expected answer to a judge; empty if there are none."""
    match = _TELLING.search(text)
    return match.group() if match else ""
