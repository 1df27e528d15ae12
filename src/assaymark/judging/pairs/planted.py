"""What is planted in the reference pair judges, and what each measurement of a datasheet should find of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from assaymark.judging.planting import is_number, value_words

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
