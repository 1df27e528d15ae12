"""The quantities of a datasheet: what each is called, which of them stand together, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assaymark.text import clean

_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "dark_current": ("vacuum", "Dark current"),
    "graded_vacuum": ("vacuum", "Preference, nearly identical texts"),
    "delta0.raw": ("equal", "False preference"),
    "delta0.tie_rate": ("equal", "Tie rate"),
    "delta0.stable": ("equal", "Stable cross-sensitivity"),
    "delta0.positional": ("equal", "Positional false preference"),
    "delta0.one_sided": ("equal", "One-sided commit"),
    "delta0.other": ("equal", "Other, in the sum"),
    "delta0.no_preference": ("equal", "No preference in either order"),
    "delta0.other_pairs": ("equal", "Pairs with an unusable reply"),
    "delta0.flip_rate": ("equal", "Flip rate among decided pairs"),
    "delta0.slot_1_share": ("equal", "Slot 1 among positional pairs"),
    "truth.accuracy": ("truth", "Right calls"),
    "truth.both": ("truth", "Right in both orders"),
    "truth.one": ("truth", "Right in one order only"),
    "truth.none": ("truth", "Right in neither order"),
    "sensitivity": ("ladder", "Sensitivity"),
    "tie_rate": ("ladder", "Tie rate"),
    "wrong_rate": ("ladder", "Wrong choice"),
    "conditional_accuracy": ("ladder", "Accuracy of decided calls"),
    "miss_by_tie": ("ladder", "Miss by tie"),
    "d_prime": ("ladder", "d′"),
    "threshold": ("ladder", "Detection threshold, 75 %"),
    "criterion.shift": ("strict", "Criterion shift, strict minus tie allowed"),
    "filler.preference": ("other", "Filler preferred"),
    "pair.invalid_share": ("other", "Unusable replies"),
    "repeat.stability": ("other", "Repeat stability"),
    "between.kappa_content": ("other", "Agreement with another judge by content, κ"),
    "between.kappa": ("other", "Agreement with another judge by position, κ"),
    "point.vacuum_score": ("point", "Score of a text without content"),
    "point.slope": ("point", "Points per requirement"),
    "point.order": ("point", "Neighbouring steps in the right order"),
    "point.verbosity": ("point", "Points per 100 words of filler"),
    "human.kappa": ("people", "Agreement with people, κ"),
    "human.ceiling": ("people", "Agreement of two people, κ"),
    "human.icc": ("people", "Agreement with people, ICC"),
    "human.bias": ("people", "Judge minus people"),
    "human.tpr": ("people", "Passes of people found"),
    "human.tnr": ("people", "Failures of people found"),
    "drift": ("drift", "Drift, new minus old"),
    "drift.verdict": ("drift", "Drift verdict"),
}
_LOG_TITLES: Final = {"delta0.raw": "Preference", "delta0.stable": "Same text in both orders",
                      "delta0.positional": "Same slot in both orders",
                      "dark_current": "Preference, one text in both slots"}  # fmt: skip
GROUPS: Final[Mapping[str, str]] = {
    "vacuum": "Vacuum",
    "equal": "Equal texts",
    "truth": "Truth",
    "ladder": "Ladder",
    "strict": "Strict prompt",
    "other": "Filler, replies, repeats",
    "point": "One text at a time",
    "people": "People",
    "drift": "Drift",
    "more": "Further",
}
"""The groups of the table of every measurement, in its order."""


def group_of(name: str) -> str:
    """The group of a measurement's name in the table of all."""
    return _TITLES.get(name, ("more", ""))[0]


def rank_of(name: str) -> int:
    """The place of a measurement's name in the table of all; unknown names stand last."""
    return list(_TITLES).index(name) if name in _TITLES else len(_TITLES)


def title_of(name: str, *, log: bool = False) -> str:
    """How a page calls a measurement. A log's texts are not known to be equal, so nothing there is called false.

    >>> title_of("delta0.raw"), title_of("delta0.raw", log=True), title_of("own.number")
    ('False preference', 'Preference', 'own.number')
    """
    if log and name in _LOG_TITLES:
        return _LOG_TITLES[name]
    return _TITLES.get(name, ("", clean(name, 60)))[1]
