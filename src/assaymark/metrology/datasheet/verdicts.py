"""What two answers to one pair mean together: the direction-stability decomposition (Judge Datasheet section 3.3).

A verdict names a *slot*. The same slot in both orders is therefore the opposite of the same *content* in both orders:
the first follows the position, the second the text. Everything here starts from that table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology.checks import Floats, Ints

VERDICTS: Final = ("1", "2", "tie", "abstain", "invalid")
"""The slot verdicts in the order of their codes 0..4."""

CODES: Final = {verdict: code for code, verdict in enumerate(VERDICTS)}
"""The code of each slot verdict."""

OUTCOMES: Final = ("1", "2", "no preference", "invalid")
"""What a call comes to: a valid abstention is no preference, as a tie is."""

OUTCOME_OF: Final[Ints] = np.array([0, 1, 2, 2, 3])
"""Outcome of each verdict code."""

CLASSES: Final = (
    "stable",
    "positional, slot 1",
    "positional, slot 2",
    "one-sided",
    "no preference",
    "other, one preference",
    "other, no preference",
)
"""What a pair comes to. A pair with an invalid call is one of the two others, and nothing else."""

STABLE, POSITIONAL_1, POSITIONAL_2, ONE_SIDED, NO_PREFERENCE, OTHER_PREFERENCE, OTHER_NONE = range(7)

PREFERENCES: Final[Floats] = np.array([1.0, 1.0, 1.0, 0.5, 0.0, 0.5, 0.0])
"""Share of a pair's two calls that are preferences, by class: the weights of eq. 7."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Where raw false preference comes from, as shares of pairs (Judge Datasheet eqs. 2 to 7).

    ``raw_false_preference = stable + positional + one_sided / 2 + other``, where ``other`` is what pairs with an
    invalid call add, and ``stable + positional + one_sided + no_preference + other_pairs = 1``.
    """

    raw_false_preference: float
    stable: float
    positional: float
    one_sided: float
    no_preference: float
    other: float
    other_pairs: float
    n_pairs: int


def pair_class(first: str, second: str) -> int:
    """The class of a pair from its verdict with u in slot 1 and its verdict with v in slot 1.

    >>> CLASSES[pair_class("1", "1")], CLASSES[pair_class("1", "2")], CLASSES[pair_class("tie", "2")]
    ('positional, slot 1', 'stable', 'one-sided')
    """
    preferences = [verdict for verdict in (first, second) if verdict in ("1", "2")]
    if "invalid" in (first, second):
        return OTHER_PREFERENCE if preferences else OTHER_NONE
    if len(preferences) < 2:
        return ONE_SIDED if preferences else NO_PREFERENCE
    if first != second:
        return STABLE
    return POSITIONAL_1 if first == "1" else POSITIONAL_2


CLASS_OF: Final[Ints] = np.array([pair_class(a, b) for a, b in product(VERDICTS, VERDICTS)]).reshape(5, 5)
"""Class of each pair of verdict codes [first, second]."""


def decompose(first: Sequence[str], second: Sequence[str]) -> Decomposition:
    """Split same-quality preference into what follows the text and what follows the slot.

    A high raw rate alone says nothing about why. ``stable`` is the share of pairs in which one text won in both
    orders, ``positional`` the share in which one slot won in both, ``one_sided`` the share with a preference in one
    order only. Other tools print positional / (stable + positional), which hides the one-sided pairs.

    Parameters
    ----------
    first : sequence of n slot verdicts
        ``"1" "2" "tie" "abstain" "invalid"``, one per pair, in one presentation order.
    second : sequence of n slot verdicts
        The same pairs with the two contents swapped.

    Returns
    -------
    Decomposition
        Shares in 0..1.

    Raises
    ------
    NotMeasurableError
        No pairs.
    InputError
        Sequences of unequal length, or a word that is no slot verdict; each with its place.

    References
    ----------
    Usami et al. (2026). LLM judges have dark current. Section 3.3, eqs. 2 to 7.

    Examples
    --------
    >>> found = decompose(["1", "1", "tie", "2"], ["1", "2", "tie", "tie"])
    >>> found.stable, found.positional, found.one_sided, found.raw_false_preference
    (0.25, 0.25, 0.25, 0.625)
    """
    _refuse_unknown(first, second)
    if not len(first):
        raise NotMeasurableError("a decomposition of no pairs is undefined (n = 0)")
    counts = Counter(pair_class(a, b) for a, b in zip(first, second, strict=True))
    return decomposition_of(np.array([counts[k] for k in range(len(CLASSES))]))


def decomposition_of(counts: Ints) -> Decomposition:
    """`decompose` from the number of pairs in each class [7]."""
    n = int(counts.sum())
    share = counts / n
    return Decomposition(
        raw_false_preference=float(PREFERENCES @ counts) / n,
        stable=float(share[STABLE]),
        positional=float(counts[POSITIONAL_1] + counts[POSITIONAL_2]) / n,
        one_sided=float(share[ONE_SIDED]),
        no_preference=float(share[NO_PREFERENCE]),
        other=float(share[OTHER_PREFERENCE]) / 2,
        other_pairs=float(counts[OTHER_PREFERENCE] + counts[OTHER_NONE]) / n,
        n_pairs=n,
    )


def _refuse_unknown(first: Sequence[str], second: Sequence[str]) -> None:
    """Raise every word that is no verdict, and unequal lengths."""
    problems = [
        Problem(f"{name}[{i}]", f"must be one of {', '.join(VERDICTS)} (got {verdict!r})")
        for name, verdicts in (("first", first), ("second", second))
        for i, verdict in enumerate(verdicts)
        if verdict not in CODES
    ]
    if len(first) != len(second):
        problems.append(Problem("first, second", f"must be equally long (got {len(first)} and {len(second)})"))
    if problems:
        raise InputError("decompose", problems)
