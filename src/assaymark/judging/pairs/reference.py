"""Reference pair judges: instruments with known flaws, asked and parsed like any model."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import InputError, ModelError
from assaymark.judging.pairs.calls import STRICT, TIE_ALLOWED, PairVerdict, criterion_text
from assaymark.judging.pairs.stimuli import CHANGES
from assaymark.judging.pairs.tasks import marks
from assaymark.judging.reference.judges import is_number, uniform, value_words
from assaymark.prompting.fences import cells, sections
from assaymark.protocol import JudgeSpec
from assaymark.records import measurement_id

# A rendered pair prompt read back: all that a reference judge knows.


@dataclass(frozen=True, slots=True)
class ShownTask:
    """The situation and the requirements of a prompt: each requirement's name with what must be there."""

    question: str
    requirements: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(name for name, _ in self.requirements)


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A prompt as a judge sees it: the task, and the texts in slots 1 and 2."""

    task: ShownTask
    first: str
    second: str


def read_pair(parts: Sequence[str]) -> ShownPair:
    """The pair of a prompt, from the texts of its user parts: the task, then the candidates."""
    if len(parts) != 2:
        raise InputError("prompt", [f"a task and a pair of candidates are needed (got {len(parts)} parts)"])
    found = sections(parts[1])
    if [one.label for one in found] != ["candidate", "candidate"]:
        raise InputError("prompt", [f"two candidates are needed (got {len(found)} sections)"])
    return ShownPair(_read_task(parts[0]), found[0].content, found[1].content)


@lru_cache(maxsize=1024)
def _read_task(text: str) -> ShownTask:
    """The task of a prompt; all pairs of a task share its text."""
    content = {section.label: section.content for section in reversed(sections(text))}
    rows = [cells(line) for line in content.get("requirements", "").split("\n")]
    if "question" not in content or any(len(one) != 2 for one in rows):
        raise InputError("prompt", ["holds no situation with requirements"])
    return ShownTask(content["question"], tuple((name, must) for name, must in rows))


# What is planted in the reference pair judges, and what each measurement of a datasheet should find of it.


DELTAS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
"""The steps of the ladder."""
STRICT_REACH = 4.0
"""From this difference on the strict instruction turns no decision into a tie."""
CORRECT = 0.75
"""The share of correct calls at the planted threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedPair:
    """What is known about a reference pair judge because it was put in. Shares lie in 0..1.

    Parameters
    ----------
    dark_current : float
        Share of calls that choose although both texts are the same, white space at the ends aside.
    slot_bias : float
        Share of same-quality pairs decided by slot: the same slot in both orders.
    slot_1 : float
        Share of decisions by slot, and of choices without any difference, that take slot 1.
    surface : float
        Share of same-quality pairs decided by surface: the same content in both orders. The text with more lines
        wins; with equally many, a fixed taste of the judge decides.
    one_sided : float
        Share of same-quality pairs decided in one of the two orders only.
    near : float
        Of its same-quality decisions, the share that it keeps where at most three words differ and nothing is
        set otherwise.
    threshold : float
        The difference in requirements at which three calls of four are correct, ties not counting as correct.
    slope : float
        How steeply noticing rises there, in logits per requirement.
    guess : float
        Share of differences that it does not notice and then decides by slot; the others become ties.
    strict_zero : float
        Share of decisions without a difference in requirements that the strict instruction turns into ties.
    strict_one : float
        The same for decisions at one requirement; it falls linearly to 0 at four requirements, and half a requirement
        lies on the same line (at most 1).
    filler : float
        Share of calls that prefer the text with words more, by at least 15 %, where the requirements met are equal.
    terse : float
        Share of such calls that prefer the shorter text; all others tie.
    steady : float
        Share of pairs on which every trial is the same; on the others each trial is drawn anew.
    invalid : float
        Share of calls answered without the form that was asked for.
    words : str
        All of this in a sentence.
    """

    dark_current: float
    slot_bias: float
    slot_1: float
    surface: float
    one_sided: float
    near: float
    threshold: float
    slope: float
    guess: float
    strict_zero: float
    strict_one: float
    filler: float
    terse: float
    steady: float
    invalid: float
    words: str

    def notices(self, delta: float) -> float:
        """Share of calls in which a difference of ``delta`` requirements is noticed.

        A logistic function of the difference, placed so that with the lucky half of the guesses three of four calls
        at the threshold are correct.
        """
        at_threshold = (CORRECT - self.guess / 2) / (1 - self.guess / 2)
        logit = math.log(at_threshold / (1 - at_threshold)) + self.slope * (delta - self.threshold)
        return 1.0 / (1.0 + math.exp(-min(max(logit, -700.0), 700.0)))

    def correct(self, delta: float) -> float:
        """Share of calls at a difference that name the better text: noticed, or guessed by luck."""
        return self.notices(delta) + self.wrong(delta)

    def wrong(self, delta: float) -> float:
        """Share of calls at a difference that name the worse text."""
        return (1.0 - self.notices(delta)) * self.guess / 2

    def missed(self, delta: float) -> float:
        """Share of calls at a difference that are ties: neither noticed nor guessed."""
        return (1.0 - self.notices(delta)) * (1.0 - self.guess)

    def yields(self, delta: float) -> float:
        """Share of decisions at a difference that the strict instruction turns into ties.

        >>> [round(PLANTED_PAIRS["reference/checklist"].yields(delta), 2) for delta in (0.0, 1.0, 2.5, 5.0)]
        [1.0, 0.5, 0.25, 0.0]
        """
        if delta == 0:
            return self.strict_zero
        return min(self.strict_one * max(STRICT_REACH - delta, 0.0) / (STRICT_REACH - 1.0), 1.0)

    @property
    def raw(self) -> float:
        """Share of same-quality calls that choose."""
        return self.slot_bias + self.surface + self.one_sided / 2


PLANTED_PAIRS: Mapping[str, PlantedPair] = MappingProxyType(
    {
        "reference/slot-biased": PlantedPair(
            dark_current=0.65,
            slot_bias=0.85,
            slot_1=0.75,
            surface=0.05,
            one_sided=0.05,
            near=1.0,
            threshold=3.5,
            slope=0.8,
            guess=1.0,
            strict_zero=0.20,
            strict_one=0.10,
            filler=0.60,
            terse=0.30,
            steady=0.90,
            invalid=0.0,
            words="presentation-conflicted: chooses in 65 % of calls with nothing to choose between, decides 85 % of "
            "equal pairs by slot, mostly the first, and needs 3.5 requirements to be right three times of four",
        ),
        "reference/surface-swayed": PlantedPair(
            dark_current=0.0,
            slot_bias=0.40,
            slot_1=0.60,
            surface=0.45,
            one_sided=0.05,
            near=0.30,
            threshold=0.80,
            slope=3.0,
            guess=0.60,
            strict_zero=0.50,
            strict_one=0.20,
            filler=0.50,
            terse=0.10,
            steady=0.95,
            invalid=0.0,
            words="vacuum-clean and sensitive, but decides 45 % of equal pairs by their surface and 40 % by slot; "
            "half of its calls prefer a text for words that meet nothing",
        ),
        "reference/checklist": PlantedPair(
            dark_current=0.0,
            slot_bias=0.05,
            slot_1=0.60,
            surface=0.0,
            one_sided=0.20,
            near=0.0,
            threshold=0.65,
            slope=4.5,
            guess=0.0,
            strict_zero=1.0,
            strict_one=0.50,
            filler=0.05,
            terse=0.05,
            steady=1.0,
            invalid=0.0,
            words="clean: nothing in the vacuum, 5 % of equal pairs by slot, none by surface; the strict instruction "
            "ends all of that, and turns half of its decisions at one requirement into ties, but none at five",
        ),
    }
)
"""The planted properties by model name; a call's arguments of the same names override the numbers."""

_KNOBS = tuple(field.name for field in fields(PlantedPair) if field.name != "words")
_RANGES = {"threshold": (0.0, 20.0), "slope": (0.0, 100.0)}
_SUMS = (("slot_bias", "surface", "one_sided"), ("filler", "terse"))
_SLACK = 1e-9


def pair_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """What is wrong with a reference pair judge's arguments, in words; nothing if they can be used.

    Of a model that is no reference pair judge nothing is known, so nothing is wrong with its arguments.

    >>> pair_argument_problems("reference/checklist", {"dark_current": 0.06})
    []
    >>> pair_argument_problems("reference/checklist", {"slot_bias": 0.9})
    ['slot_bias, surface and one_sided must not sum to more than 1 (got 1.1)']
    """
    if model not in PLANTED_PAIRS:
        return []
    problems = [problem for key, value in args.items() if (problem := _argument_problem(key, value))]
    return problems or _sum_problems(planted_with(model, args))


def _argument_problem(key: str, value: object) -> str | None:
    """What is wrong with one argument."""
    if key not in _KNOBS:
        return f"argument {key} is unknown (allowed: {', '.join(_KNOBS)})"
    low, high = _RANGES.get(key, (0.0, 1.0))
    wrong = not is_number(value, low, high)
    return f"argument {key} must be a number from {low:g} to {high:g} (got {value_words(value)})" if wrong else None


def _sum_problems(planted: PlantedPair) -> list[str]:
    """Shares of one whole that are more than it."""
    found = []
    for names in _SUMS:
        total = sum(getattr(planted, name) for name in names)
        if total > 1 + _SLACK:
            listed = f"{', '.join(names[:-1])} and {names[-1]}"
            found.append(f"{listed} must not sum to more than 1 (got {total:g})")
    return found


def planted_with(model: str, args: Mapping[str, Any]) -> PlantedPair:
    """The planted properties of a judge, with arguments that override them; see `pair_argument_problems`."""
    given: dict[str, Any] = {key: float(value) for key, value in args.items()}
    return replace(PLANTED_PAIRS[model], **given)


def interpolated_threshold(planted: PlantedPair, prompt: str) -> float | None:
    """The threshold that an endless run over the ladder's steps would give: linear between the steps.

    It differs a little from ``planted.threshold``, which lies on the curve itself. None if the measured threshold would
    be censored.
    """
    shares = [(delta, planted_correct(planted, delta, prompt)) for delta in DELTAS]
    if shares[0][1] >= CORRECT:
        return None
    for (low, below), (high, above) in pairwise(shares):
        if above >= CORRECT:
            return low + (high - low) * (CORRECT - below) / (above - below)
    return None


def planted_correct(planted: PlantedPair, delta: float, prompt: str) -> float:
    """Share of correct calls at a difference under a prompt variant."""
    kept = 1.0 - planted.yields(delta) if prompt == "strict" else 1.0
    return planted.correct(delta) * kept


# What an endless run on a reference pair judge would measure, by the ids of a datasheet's measurements.


_EQUAL = ("same_subset", "different_subset")
_BLANKS = ("empty", "whitespace", "identical")

Value = tuple[str, Mapping[str, str], float]
"""The name of a measurement, its labels without the judge, and its planted value."""


def planted_values(judge: JudgeSpec, prompts: Sequence[str] = (TIE_ALLOWED, STRICT)) -> dict[str, float]:
    """The planted value of each measurement of a reference pair judge, by measurement id.

    Measured values scatter about these: a 95 % interval misses one of twenty. Only what the planted parameters fix on
    their own is here; d', kappa and repeat stability also depend on how many pairs of which kind were judged. A judge
    with invalid replies has only their share here, since what the others amount to depends on who counts them.

    Returns
    -------
    dict of measurement id to float
        Empty for a model that is no reference pair judge.

    Examples
    --------
    >>> judge = JudgeSpec(name="j", model="reference/checklist", family="reference", args={"dark_current": 0.06})
    >>> planted_values(judge)["dark_current[judge=j,prompt=tie-allowed]"]
    0.06
    """
    if judge.model not in PLANTED_PAIRS:
        return {}
    planted = planted_with(judge.model, judge.args)
    found: list[Value] = [("pair.invalid_share", {"prompt": prompt}, planted.invalid) for prompt in prompts]
    if not planted.invalid:
        for prompt in prompts:
            kept = 1.0 - planted.strict_zero if prompt == STRICT else 1.0
            found += [(name, {"prompt": prompt, **labels}, value) for name, labels, value in _zero(planted, kept)]
            found += [(name, {"prompt": prompt, **labels}, value) for name, labels, value in _steps(planted, prompt)]
        if STRICT in prompts:
            found += _shifts(planted)
    return {measurement_id(name, {"judge": judge.name, **labels}): value for name, labels, value in found}


def _zero(planted: PlantedPair, kept: float) -> Iterator[Value]:
    """Everything without a difference in requirements, of which an instruction keeps a share."""
    yield "dark_current", {}, planted.dark_current * kept
    for variant in _BLANKS:
        yield "dark_current", {"variant": variant}, planted.dark_current * kept
    for variant in CHANGES:
        yield "graded_vacuum", {"variant": variant}, planted.raw * planted.near * kept
    yield "filler.preference", {}, planted.filler * kept
    decided = planted.slot_bias + planted.surface + planted.one_sided
    for condition in _EQUAL:
        labels = {"condition": condition}
        yield "delta0.raw", labels, planted.raw * kept
        yield "delta0.tie_rate", labels, 1.0 - planted.raw * kept
        yield "delta0.stable", labels, planted.surface * kept
        yield "delta0.positional", labels, planted.slot_bias * kept
        yield "delta0.one_sided", labels, planted.one_sided * kept
        yield "delta0.other", labels, 0.0
        yield "delta0.other_pairs", labels, 0.0
        yield "delta0.no_preference", labels, 1.0 - decided * kept
        if kept and planted.slot_bias + planted.surface:
            yield "delta0.flip_rate", labels, planted.slot_bias / (planted.slot_bias + planted.surface)
        if kept and planted.slot_bias:
            yield "delta0.slot_1_share", labels, planted.slot_1


def _steps(planted: PlantedPair, prompt: str) -> Iterator[Value]:
    """The ladder, step by step, and the threshold on it."""
    for delta in DELTAS:
        labels = {"delta": f"{delta:g}"}
        kept = 1.0 - planted.yields(delta) if prompt == STRICT else 1.0
        correct = planted_correct(planted, delta, prompt)
        wrong = planted.wrong(delta) * kept
        tie = 1.0 - (1.0 - planted.missed(delta)) * kept
        yield "sensitivity", labels, correct
        yield "wrong_rate", labels, wrong
        yield "tie_rate", labels, tie
        yield "miss_by_tie", labels, tie
        if correct + wrong:
            yield "conditional_accuracy", labels, correct / (correct + wrong)
    threshold = interpolated_threshold(planted, prompt)
    if threshold is not None:
        yield "threshold", {}, threshold


def _shifts(planted: PlantedPair) -> Iterator[Value]:
    """How far the strict instruction moves the tie rate of each condition."""
    for condition in _EQUAL:
        yield "criterion.shift", {"condition": condition}, planted.raw * planted.strict_zero
    for delta in DELTAS:
        decided = 1.0 - planted.missed(delta)
        yield "criterion.shift", {"condition": "ladder", "delta": f"{delta:g}"}, decided * planted.yields(delta)


PAIR_VERSION = "1"
"""Changes with anything that can change a verdict; part of the fingerprint."""

MORE_WORDS = 0.15
"""A text with at least this share of words more is seen as the longer one."""
NEAR_WORDS = 3
"""Texts that differ in at most so many words and in no white space are seen as nearly the same."""

_SPACE = re.compile(r"(\s+)")


@dataclass(frozen=True, slots=True)
class ReferencePairJudge:
    """A judge that reads nothing but the rendered prompt and decides by stated shares (`PlantedPair`).

    What it decides is drawn by a hash, so that a run can be repeated exactly. All draws depend on the judge's name, its
    seed, the trial (see ``steady``) and the task as shown. Beside that, what belongs to a pair (which kind of decision,
    which slot) depends on the two texts in either order, what belongs to a call (noticing a difference, guessing,
    preferring the longer text) on the texts as they stand in the slots. Where both texts are the same the two orders
    are one prompt, and the order of the call tells them apart. The instruction enters no draw: the strict one only
    turns decisions that would be made anyway into ties.

    It is a `Model`: it answers with JSON text, which goes through the same parser as any model's.
    """

    name: str

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call.

        Raises
        ------
        ModelError
            The prompt is not one of this package's pair prompts, or an argument is wrong (`pair_argument_problems`).
        """
        if problems := pair_argument_problems(self.name, call.args):
            raise ModelError("; ".join(problems), retryable=False)
        parts = [part.text for message in call.messages if message.role == "user" for part in message.parts]
        try:
            shown = read_pair(parts)
        except InputError as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        strict = criterion_text(STRICT) in "\n".join(m.text for m in call.messages if m.role == "system")
        text = _answer(_Draws(self.name, planted_with(self.name, call.args), shown, call, parts[0]), strict)
        return Reply(text=text, model=self.name, fingerprint=f"{self.name}@{PAIR_VERSION}")


def reference_pair_judges() -> dict[str, ReferencePairJudge]:
    """The reference pair judges by model name, for registration.

    >>> sorted(reference_pair_judges())
    ['reference/checklist', 'reference/slot-biased', 'reference/surface-swayed']
    """
    return {name: ReferencePairJudge(name) for name in PLANTED_PAIRS}


class _Draws:
    """One question before a judge: what it sees, and its draws."""

    def __init__(self, name: str, planted: PlantedPair, shown: ShownPair, call: CallSpec, task: str) -> None:
        self.planted = planted
        self.shown = shown
        same = shown.first.strip() == shown.second.strip()
        texts = (_digest(shown.first), _digest(shown.second))
        judge = f"{name}|{call.seed}|{_digest(task)}"
        self._pair = f"{judge}|{'|'.join(sorted(texts))}"
        self._call = f"{judge}|{'|'.join(texts)}|{call.order if same else ''}"
        self._trial = "" if uniform(f"{self._pair}|steady") < planted.steady else str(call.trial)
        self.same = same

    def pair(self, what: str) -> float:
        """A number in 0..1 that both orders share."""
        return uniform(f"{self._pair}|{self._trial}|{what}")

    def call(self, what: str) -> float:
        """A number in 0..1 of this order alone."""
        return uniform(f"{self._call}|{self._trial}|{what}")

    def slot(self) -> PairVerdict:
        """The slot that a decision by slot takes."""
        drawn = self.call("slot") if self.same else self.pair("slot")
        return "1" if drawn < self.planted.slot_1 else "2"

    def commits_first(self) -> bool:
        """Whether this order is the one in which a one-sided decision is made."""
        upright = _digest(self.shown.first) < _digest(self.shown.second)
        return upright == (self.pair("side") < 0.5)


@lru_cache(maxsize=8192)
def _digest(text: str) -> str:
    """sha256 of a text, which stands for it in draws."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _answer(draws: _Draws, strict: bool) -> str:
    """The reply as JSON text, or as a sentence where the judge forgets its form."""
    verdict, reason = _verdict(draws, strict)
    if draws.call("invalid") < draws.planted.invalid:
        return f"My verdict is {verdict}. {reason}"
    return json.dumps({"verdict": verdict, "reason": reason})


def _verdict(draws: _Draws, strict: bool) -> tuple[PairVerdict, str]:
    """What the judge says, and why."""
    names = draws.shown.task.names
    first, second = (sum(marks(text, names)) for text in (draws.shown.first, draws.shown.second))
    if first != second:
        verdict, strength = _by_requirements(draws, first - second), abs(first - second)
        reason = f"The candidates meet {first:g} and {second:g} of {len(names)} requirements."
        yields = draws.call("strict")
    else:
        verdict, strength = _without_difference(draws), 0.0
        reason = f"Both candidates meet {first:g} of {len(names)} requirements."
        yields = draws.call("strict") if draws.same else draws.pair("strict")
    if strict and yields < draws.planted.yields(strength):
        return "tie", reason
    return verdict, reason


def _by_requirements(draws: _Draws, difference: float) -> PairVerdict:
    """A difference in requirements: noticed, guessed by slot, or missed."""
    if draws.call("notice") < draws.planted.notices(abs(difference)):
        return "1" if difference > 0 else "2"
    return draws.slot() if draws.call("guess") < draws.planted.guess else "tie"


def _without_difference(draws: _Draws) -> PairVerdict:
    """Equal requirements: nothing to choose between, more words, or only the surface."""
    if draws.same:
        return draws.slot() if draws.call("dark") < draws.planted.dark_current else "tie"
    first, second = (len(text.split()) for text in (draws.shown.first, draws.shown.second))
    if max(first, second) >= (1.0 + MORE_WORDS) * min(first, second):
        return _by_length(draws, first > second)
    return _by_surface(draws)


def _by_length(draws: _Draws, first_is_longer: bool) -> PairVerdict:
    """More words that meet nothing."""
    drawn, planted = draws.call("length"), draws.planted
    if drawn >= planted.filler + planted.terse:
        return "tie"
    return "1" if first_is_longer == (drawn < planted.filler) else "2"


def _by_surface(draws: _Draws) -> PairVerdict:
    """The same quality: decided by slot, by content, in one order only, or not at all."""
    planted, kind = draws.planted, draws.pair("kind")
    if _nearly_same(draws.shown) and draws.pair("near") >= planted.near:
        return "tie"
    if kind < planted.slot_bias:
        return draws.slot()
    if kind < planted.slot_bias + planted.surface:
        return "1" if _taste(draws.shown.first) > _taste(draws.shown.second) else "2"
    if kind < planted.slot_bias + planted.surface + planted.one_sided and draws.commits_first():
        return draws.slot()
    return "tie"


def _taste(text: str) -> tuple[int, str]:
    """What a decision by surface prefers: more lines, and among equally many whatever its hash says."""
    return text.count("\n"), _digest(text)


def _nearly_same(shown: ShownPair) -> bool:
    """Whether two texts differ in a few words and in no white space."""
    first, second = _SPACE.split(shown.first), _SPACE.split(shown.second)
    if len(first) != len(second):
        return False
    changed = [at for at, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]
    return len(changed) <= NEAR_WORDS and all(at % 2 == 0 for at in changed)
