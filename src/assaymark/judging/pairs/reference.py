"""Reference pair judges: instruments with known flaws, asked and parsed like any model."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache

from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import InputError, ModelError
from assaymark.judging.pairs.marking import marks
from assaymark.judging.pairs.planted import PLANTED_PAIRS, PlantedPair, pair_argument_problems, planted_with
from assaymark.judging.pairs.prompts import STRICT, criterion_text
from assaymark.judging.pairs.reading import ShownPair, read_pair
from assaymark.judging.pairs.replies import PairVerdict
from assaymark.judging.planting import uniform

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
