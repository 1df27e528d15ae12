"""Built-in pair judges: models with known flaws, called and parsed like any model."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from assaymark.engine.calls import BuiltInModel, CallSpec
from assaymark.errors import InputError
from assaymark.judging.pairs.calls import STRICT, TIE_ALLOWED, PairVerdict, criterion_text, marks
from assaymark.judging.pairs.stimuli import CHANGES
from assaymark.judging.reference import judges
from assaymark.judging.reference.features import planted_tables
from assaymark.judging.reference.judges import is_number
from assaymark.prompting import cells, sections
from assaymark.protocol import JudgeSpec
from assaymark.records import measurement_id
from assaymark.text import listing


def read_pair(parts: Sequence[str]) -> tuple[str, tuple[tuple[str, str], ...], str, str]:
    """Parse the pair of a prompt from the texts of its user parts: situation, requirements, and the two texts."""
    if len(parts) != 2:
        raise InputError("prompt", [f"a task and a pair of candidates are needed (got {len(parts)} parts)"])
    candidates = sections(parts[1])
    if [section.label for section in candidates] != ["candidate", "candidate"]:
        raise InputError("prompt", [f"two candidates are needed (got {len(candidates)} sections)"])
    return *_read_task(parts[0]), candidates[0].content, candidates[1].content


@lru_cache(maxsize=1024)
def _read_task(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Parse the task of a prompt; cached, because all pairs of a task share its text."""
    content = {section.label: section.content for section in reversed(sections(text))}
    rows = [cells(line) for line in content.get("requirements", "").split("\n")]
    if "question" not in content or any(len(row) != 2 for row in rows):
        raise InputError("prompt", ["holds no situation with requirements"])
    return content["question"], tuple((name, must) for name, must in rows)


DELTAS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
"""The steps of the ladder."""
STRICT_REACH = 4.0
"""The difference from which the strict instruction changes no decision into a tie."""
CORRECT = 0.75
"""The share of correct calls at the planted threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedPair:
    """The planted properties of a built-in pair judge. Shares are in 0..1."""

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
        """Return the share of calls in which a difference of ``delta`` requirements is noticed."""
        at_threshold = (CORRECT - self.guess / 2) / (1 - self.guess / 2)
        logit = math.log(at_threshold / (1 - at_threshold)) + self.slope * (delta - self.threshold)
        return 1.0 / (1.0 + math.exp(-min(max(logit, -700.0), 700.0)))

    def wrong(self, delta: float) -> float:
        """Return the share of calls at a difference that name the worse text."""
        return (1.0 - self.notices(delta)) * self.guess / 2

    def missed(self, delta: float) -> float:
        """Return the share of calls at a difference that are ties: neither noticed nor guessed."""
        return (1.0 - self.notices(delta)) * (1.0 - self.guess)

    def yields(self, delta: float) -> float:
        """Return the share of decisions at a difference that the strict instruction changes into ties."""
        if delta == 0:
            return self.strict_zero
        return min(self.strict_one * max(STRICT_REACH - delta, 0.0) / (STRICT_REACH - 1.0), 1.0)

    def kept(self, delta: float, prompt: str) -> float:
        """Return the share of decisions at a difference that a prompt variant does not change."""
        return 1.0 - self.yields(delta) if prompt == STRICT else 1.0

    def correct(self, delta: float, prompt: str = TIE_ALLOWED) -> float:
        """Return the share of calls at a difference that name the better text: noticed, or guessed by luck."""
        return (self.notices(delta) + self.wrong(delta)) * self.kept(delta, prompt)

    @property
    def raw(self) -> float:
        """The share of same-quality calls that choose a text."""
        return self.slot_bias + self.surface + self.one_sided / 2


PLANTED_PAIRS: Mapping[str, PlantedPair] = MappingProxyType(
    {model: PlantedPair(**row) for model, row in planted_tables()["pair"].items()}
)
"""The planted properties by model name; a call's arguments of the same names override the numbers."""

_RANGES = {"threshold": (0.0, 20.0), "slope": (0.0, 100.0)}
_SUMS = (("slot_bias", "surface", "one_sided"), ("filler", "terse"))
_SLACK = 1e-9


def pair_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """List the problems of a built-in pair judge's arguments; empty for other models."""
    if model not in PLANTED_PAIRS:
        return []
    knobs = judges.override_names(PlantedPair)
    problems = []
    for key, value in args.items():
        low, high = _RANGES.get(key, (0.0, 1.0))
        if key not in knobs:
            problems.append(f"argument {key} is unknown (allowed: {', '.join(knobs)})")
        elif not is_number(value, low, high):
            problems.append(
                f"argument {key} must be a number from {low:g} to {high:g} (got {judges.value_words(value)})"
            )
    if problems:
        return problems
    planted = judges.planted_for(PLANTED_PAIRS, model, args)
    for names in _SUMS:
        total = sum(getattr(planted, name) for name in names)
        if total > 1 + _SLACK:
            problems.append(f"{listing(names)} must not sum to more than 1 (got {total:g})")
    return problems


def interpolated_threshold(planted: PlantedPair, prompt: str) -> float | None:
    """Return the threshold in the limit of infinitely many pairs, interpolated linearly between the ladder's steps."""
    shares = [(delta, planted.correct(delta, prompt)) for delta in DELTAS]
    if shares[0][1] >= CORRECT:
        return None
    for (low, below), (high, above) in pairwise(shares):
        if above >= CORRECT:
            return low + (high - low) * (CORRECT - below) / (above - below)
    return None


_EQUAL = ("same_subset", "different_subset")
_BLANKS = ("empty", "whitespace", "identical")

Value = tuple[str, Mapping[str, str], float]
"""A measurement's name, its labels without the judge, and its planted value."""


def planted_values(judge: JudgeSpec, prompts: Sequence[str] = (TIE_ALLOWED, STRICT)) -> dict[str, float]:
    """Compute the planted value of each measurement of a built-in pair judge, by id; empty for other models.

    Measured values scatter about these. Only measurements determined by the planted parameters alone are included; d',
    kappa and repeat stability also depend on the number of pairs of each kind.
    """
    if judge.model not in PLANTED_PAIRS:
        return {}
    planted = judges.planted_for(PLANTED_PAIRS, judge.model, judge.args)
    entries: list[Value] = [("pair.invalid_share", {"prompt": prompt}, planted.invalid) for prompt in prompts]
    decided = planted.slot_bias + planted.surface + planted.one_sided
    for prompt in () if planted.invalid else prompts:
        # The measurements without a difference in requirements; an instruction keeps a share of each preference.
        share = planted.kept(0, prompt)
        values: list[Value] = [("dark_current", {}, planted.dark_current * share)]
        values += [("dark_current", {"variant": variant}, planted.dark_current * share) for variant in _BLANKS]
        values += [("graded_vacuum", {"variant": variant}, planted.raw * planted.near * share) for variant in CHANGES]
        values.append(("filler.preference", {}, planted.filler * share))
        shares = {
            "raw": planted.raw * share, "tie_rate": 1.0 - planted.raw * share, "stable": planted.surface * share,
            "positional": planted.slot_bias * share, "one_sided": planted.one_sided * share, "other": 0.0,
            "other_pairs": 0.0, "no_preference": 1.0 - decided * share,
        }  # fmt: skip
        if share and planted.slot_bias + planted.surface:
            shares["flip_rate"] = planted.slot_bias / (planted.slot_bias + planted.surface)
        if share and planted.slot_bias:
            shares["slot_1_share"] = planted.slot_1
        values += [
            (f"delta0.{name}", {"condition": condition}, value)
            for condition in _EQUAL
            for name, value in shares.items()
        ]
        for delta in DELTAS:
            labels, share = {"delta": f"{delta:g}"}, planted.kept(delta, prompt)
            correct, wrong = planted.correct(delta, prompt), planted.wrong(delta) * share
            tie = 1.0 - (1.0 - planted.missed(delta)) * share
            rates = (("sensitivity", correct), ("wrong_rate", wrong), ("tie_rate", tie), ("miss_by_tie", tie))
            values += [(name, labels, value) for name, value in rates]
            if correct + wrong:
                values.append(("conditional_accuracy", labels, correct / (correct + wrong)))
        threshold = interpolated_threshold(planted, prompt)
        if threshold is not None:
            values.append(("threshold", {}, threshold))
        entries += [(name, {"prompt": prompt, **labels}, value) for name, labels, value in values]
    if STRICT in prompts and not planted.invalid:
        # The shift in each condition's tie rate under the strict instruction.
        entries += [("criterion.shift", {"condition": label}, planted.raw * planted.strict_zero) for label in _EQUAL]
        for delta in DELTAS:
            shift = (1.0 - planted.missed(delta)) * planted.yields(delta)
            entries.append(("criterion.shift", {"condition": "ladder", "delta": f"{delta:g}"}, shift))
    return {measurement_id(name, {"judge": judge.name, **labels}): value for name, labels, value in entries}


MORE_WORDS = 0.15
"""Minimum excess in words, as a share, for a text to count as the longer one."""
NEAR_WORDS = 3
"""Maximum number of different words in texts that count as nearly the same; their white space must be equal."""

_SPACE = re.compile(r"(\s+)")


class ReferencePairJudge(BuiltInModel):
    """A judge that decides by planted probabilities, drawn from name, seed, trial and the task as shown."""

    def answer(self, call: CallSpec) -> str:
        """Return the reply as JSON text, or as a sentence if the planted format error occurs."""
        planted = judges.planted_for(PLANTED_PAIRS, self.name, call.args, pair_argument_problems(self.name, call.args))
        parts = call.shown()
        _, requirements, *texts = read_pair(parts)
        names = tuple(name for name, _ in requirements)
        same, digests = texts[0].strip() == texts[1].strip(), [_digest(text) for text in texts]
        judge = f"{self.name}|{call.seed}|{_digest(parts[0])}"
        by_pair = f"{judge}|{'|'.join(sorted(digests))}"
        by_call = f"{judge}|{'|'.join(digests)}|{call.order if same else ''}"
        trial = "" if judges.uniform(f"{by_pair}|steady") < planted.steady else str(call.trial)

        def drawn(purpose: str, alone: bool = True) -> float:
            # A number in 0..1 for this order alone, or one that both orders share.
            return judges.uniform(f"{by_call if alone else by_pair}|{trial}|{purpose}")

        def slot() -> PairVerdict:
            return "1" if drawn("slot", same) < planted.slot_1 else "2"

        def without_difference() -> PairVerdict:
            # Equal requirements: the texts are identical, differ in length, or differ in surface form only.
            if same:
                return slot() if drawn("dark") < planted.dark_current else "tie"
            words = [len(text.split()) for text in texts]
            if max(words) >= (1.0 + MORE_WORDS) * min(words):
                length = drawn("length")
                if length >= planted.filler + planted.terse:
                    return "tie"
                return "1" if (words[0] > words[1]) == (length < planted.filler) else "2"
            # The same quality: decided by slot, by content, in one order only, or not at all.
            kind = drawn("kind", False)
            if _nearly_same(*texts) and drawn("near", False) >= planted.near:
                return "tie"
            if kind < planted.slot_bias:
                return slot()
            if kind < planted.slot_bias + planted.surface:
                # The text with more lines is preferred; the hash decides ties.
                tastes = [(text.count("\n"), digest) for text, digest in zip(texts, digests, strict=True)]
                return "1" if tastes[0] > tastes[1] else "2"
            one_order = (digests[0] < digests[1]) == (drawn("side", False) < 0.5)
            return slot() if kind < planted.slot_bias + planted.surface + planted.one_sided and one_order else "tie"

        first, second = (sum(marks(text, names)) for text in texts)
        verdict: PairVerdict
        if first == second:
            verdict, reason = without_difference(), f"Both candidates meet {first:g} of {len(names)} requirements."
        else:
            # A difference in requirements: noticed, guessed by slot, or missed.
            reason = f"The candidates meet {first:g} and {second:g} of {len(names)} requirements."
            if drawn("notice") < planted.notices(abs(first - second)):
                verdict = "1" if first > second else "2"
            else:
                verdict = slot() if drawn("guess") < planted.guess else "tie"
        strict = criterion_text(STRICT) in "\n".join(m.text for m in call.messages if m.role == "system")
        if strict and drawn("strict", same or first != second) < planted.yields(abs(first - second)):
            verdict = "tie"
        if drawn("invalid") < planted.invalid:
            return f"My verdict is {verdict}. {reason}"
        return json.dumps({"verdict": verdict, "reason": reason})


def reference_pair_judges() -> dict[str, ReferencePairJudge]:
    """Return the built-in pair judges by model name, for registration."""
    return {name: ReferencePairJudge(name) for name in PLANTED_PAIRS}


@lru_cache(maxsize=8192)
def _digest(text: str) -> str:
    """Return the sha256 of a text, which represents it in draws."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=8192)
def _nearly_same(text_1: str, text_2: str) -> bool:
    """Return True if two texts differ in at most `NEAR_WORDS` words and in no white space."""
    first, second = _SPACE.split(text_1), _SPACE.split(text_2)
    if len(first) != len(second):
        return False
    changed = [at for at, (word, other) in enumerate(zip(first, second, strict=True)) if word != other]
    return len(changed) <= NEAR_WORDS and all(at % 2 == 0 for at in changed)
