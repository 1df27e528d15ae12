"""A judge in four words, by stated rules. Descriptive: no rule calls a judge good or bad for any use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.metrology.datasheet.calls import BASE, STRICT
from assaymark.records import Measurement

CLEAN: Final = 0.02
NEARLY_CLEAN: Final = 0.10
QUIET: Final = 0.10
QUIET_RAW: Final = 1 / 3
LED: Final = 2.0
NO_EFFECT: Final = 0.05
LOST: Final = 0.10
LOST_ACCURACY: Final = 0.05

RULES: Final[Mapping[str, str]] = {
    "vacuum": ("clean: at most 2 % of vacuum calls named a slot; nearly clean: at most 10 %; leaky: more"),
    "equal texts": (
        "quiet: stable and positional pairs at most 10 % each, and at most a third of calls named a slot; otherwise "
        "position-led: at least twice as many positional as stable pairs; wording-led: at least twice as many stable "
        "as positional; mixed: neither"
    ),
    "target": (
        "the 75 % threshold: sensitive below one requirement, at one requirement, needs as many requirements as it "
        "takes to reach it, or insensitive where no step reaches it"
    ),
    "strict prompt": (
        "costs resolution: at a common step the accuracy of decided calls falls by more than 5 points, or at the "
        "largest common step sensitivity falls by more than 10; no effect: no tie rate moves by 5 points or more; "
        "moves the criterion: otherwise"
    ),
}
"""The rule of each chip, in words."""

NON_CLAIMS: Final = (
    "That this judge is right about real rationales: the texts here are built, and only their construction is known.",
    "That another prompt, rubric, decoding setting or version of the model would measure the same.",
    "That one judge is better than another: a datasheet describes, it does not rank.",
    "That a reaction to wording is always an error: it counts as noise only because a checklist is the target here.",
    "That a censored threshold is a number: a bound cannot be compared with another judge's bound.",
    "That a stricter prompt makes a judge more sensitive: it moves the point at which a difference is called a tie.",
    "That a comparator is the truth: it is another instrument, read as an upper estimate.",
    "That a judge with a clean datasheet supports any claim made with it downstream.",
)
"""What a datasheet does not say, printed on every one."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One word about one axis, the rule that chose it, and the measurements it was chosen from.

    >>> str(Chip("vacuum", "clean", "", ()))
    'vacuum: clean'
    """

    axis: str
    outcome: str
    rule: str
    basis: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.axis}: {self.outcome}"

    @property
    def text(self) -> str:
        """The chip with its rule in words."""
        return f"{self} ({self.rule})"


def sketch(measurements: Sequence[Measurement]) -> tuple[Chip, ...]:
    """The profile of one judge: vacuum, equal texts, target, strict prompt, each by its rule in `RULES`.

    The rules read point estimates, so that two people with the same datasheet write the same sketch; whether an
    estimate is far from a bound is said by its interval. An axis that was not measured says so.

    Parameters
    ----------
    measurements : sequence of Measurement
        One judge's, as `datasheet_measurements` makes them. The base arm is sketched, or the only arm there is.

    Returns
    -------
    tuple of Chip
        Always four, in this order.

    Examples
    --------
    >>> [str(chip) for chip in sketch([])][:2]
    ['vacuum: not measured', 'equal texts: not measured']
    """
    found = _Values(measurements)
    return _vacuum(found), _equal_texts(found), _target(found), _strict(found)


class _Values:
    """Measurements by name and labels, remembering which were read."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self._held = {m.id: m for m in measurements}
        prompts = sorted({m.labels["prompt"] for m in measurements if "prompt" in m.labels})
        self.base = BASE if BASE in prompts or not prompts else prompts[0]

    def named(self, name: str, **labels: str) -> Iterator[Measurement]:
        """Measurements of that name with exactly these labels beside the judge."""
        for measurement in self._held.values():
            rest = {key: value for key, value in measurement.labels.items() if key != "judge"}
            if measurement.name == name and rest == labels and measurement.value is not None:
                yield measurement

    def one(self, name: str, **labels: str) -> Measurement | None:
        """That measurement, if it has a value."""
        return next(self.named(name, **labels), None)

    def steps(self, name: str, prompt: str) -> dict[float, Measurement]:
        """The measurements of that name along the ladder of an arm."""
        return {
            float(m.labels["delta"]): m
            for m in self._held.values()
            if m.name == name and m.labels.get("prompt") == prompt and m.value is not None
        }

    def shifts(self) -> list[Measurement]:
        """Every measured shift of the tie rate."""
        return [m for m in self._held.values() if m.name == "criterion.shift" and m.value is not None]


def _chip(axis: str, outcome: str, *basis: Measurement) -> Chip:
    return Chip(axis, outcome, RULES[axis], tuple(m.id for m in basis))


def _value(measurement: Measurement) -> float:
    """The value of a measurement that has one."""
    if measurement.value is None:
        raise AssertionError(f"{measurement.id} was chosen because it has a value")
    return measurement.value


def _vacuum(found: _Values) -> Chip:
    dark = found.one("dark_current", prompt=found.base)
    if dark is None:
        return _chip("vacuum", "not measured")
    share = _value(dark)
    word = "clean" if share <= CLEAN else "nearly clean" if share <= NEARLY_CLEAN else "leaky"
    return _chip("vacuum", word, dark)


def _equal_texts(found: _Values) -> Chip:
    parts = [
        found.one(f"delta0.{name}", prompt=found.base, condition="same_subset")
        for name in ("raw", "stable", "positional")
    ]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return _chip("equal texts", "not measured")
    raw, stable, positional = (_value(part) for part in known)
    if stable <= QUIET and positional <= QUIET and raw <= QUIET_RAW:
        word = "quiet"
    elif max(stable, positional) > QUIET and positional >= LED * stable:
        word = "position-led"
    elif max(stable, positional) > QUIET and stable >= LED * positional:
        word = "wording-led"
    else:
        word = "mixed"
    return _chip("equal texts", word, *known)


def _target(found: _Values) -> Chip:
    threshold = found.one("threshold", prompt=found.base)
    if threshold is None:
        return _chip("target", "not measured")
    value = _value(threshold)
    if threshold.detail["censored"] == "right":
        word = "insensitive"
    elif value < 1:
        word = "sensitive below one requirement"
    elif value == 1:
        word = "sensitive at one requirement"
    else:
        word = f"needs {math.ceil(value)} requirements"
    return _chip("target", word, threshold)


def _strict(found: _Values) -> Chip:
    shifts = found.shifts()
    if not shifts:
        return _chip("strict prompt", "not measured")
    lost = _lost(found)
    if lost:
        return _chip("strict prompt", "costs resolution", *lost)
    if all(abs(_value(shift)) < NO_EFFECT for shift in shifts):
        return _chip("strict prompt", "no effect", *shifts)
    return _chip("strict prompt", "moves the criterion", *shifts)


def _lost(found: _Values) -> list[Measurement]:
    """The measurements by which the strict arm sees less well, not only later."""
    base, strict = (found.steps("conditional_accuracy", prompt) for prompt in (found.base, STRICT))
    for step in sorted(base.keys() & strict.keys()):
        if _value(base[step]) - _value(strict[step]) > LOST_ACCURACY + 1e-9:
            return [base[step], strict[step]]
    base, strict = (found.steps("sensitivity", prompt) for prompt in (found.base, STRICT))
    largest = max(base.keys() & strict.keys(), default=None)
    if largest is not None and _value(base[largest]) - _value(strict[largest]) > LOST + 1e-9:
        return [base[largest], strict[largest]]
    return []
