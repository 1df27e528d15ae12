"""How much of the agreement with an asset's own row would have come about by chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assaymark.errors import NotMeasurableError
from assaymark.judging.evidence.match import Reading
from assaymark.judging.evidence.material import Material
from assaymark.records import Evidence

ROW_RULES = frozenset(("row-labelled", "row-part-labelled", "row-unlabelled", "row-other-horizon"))
"""The rules under which a number is supported by a cell of its subject's own row."""

_UNSETTLED = frozenset(("unmatched", "partial-context", "one-cell-differs"))


@dataclass(frozen=True, slots=True)
class Chance:
    """Agreement of numbers with their subject's row: observed, expected by chance, and corrected for it.

    ``low`` and ``high`` are the 2.5 % and 97.5 % quantiles of agreement over the permutations.
    """

    observed: float
    chance: float
    corrected: float
    n: int
    permutations: int
    low: float
    high: float


def chance_corrected(
    evidence: Sequence[Evidence],
    materials: Mapping[str, Material],
    contexts: Mapping[str, str],
    *,
    rng: np.random.Generator,
    permutations: int = 200,
) -> Chance:
    """``(observed - chance) / (1 - chance)`` for numbers about instruments (season methodology v0.4, evidence).

    0 is what numbers of the same unit and precision would reach against somebody else's row, 1 is full agreement.
    Chance is the mean agreement after the subjects were permuted among the numbers of equal unit and decimals (and
    equal universe, so that every subject has a row). Taken are the numbers that a row supports and those that nothing
    settles; agreement here is with any cell of the row, whatever its label, which makes chance larger, not smaller.

    Parameters
    ----------
    evidence : sequence of Evidence
        A ledger, of any number of decisions.
    materials : mapping of context id to Material
        What could be seen.
    contexts : mapping of record id to context id
        Which material belongs to which decision.
    rng : numpy Generator
        Draws the permutations.
    permutations : int
        How many.

    Raises
    ------
    NotMeasurableError
        No number qualifies, or chance agreement is complete.
    """
    rows = _qualified(evidence, materials, contexts)
    if not rows:
        raise NotMeasurableError("chance agreement is undefined: no number is about an instrument with facts")
    strata = defaultdict(list)
    for item, material in rows:
        strata[material.subjects.ids, item.unit, _decimals(item.quote)].append((item, material))
    observed = 0
    drawn = np.zeros(permutations)
    for key in sorted(strata, key=repr):
        agrees, own = _table(strata[key])
        index = np.arange(len(own))
        observed += int(agrees[index, own].sum())
        shuffled = rng.permuted(np.tile(own, (permutations, 1)), axis=1)
        drawn += agrees[index, shuffled].sum(axis=1)
    share, expected = observed / len(rows), float(drawn.mean()) / len(rows)
    if expected >= 1.0:
        raise NotMeasurableError("chance agreement is complete: every number agrees with every row")
    low, high = (float(q) / len(rows) for q in np.quantile(drawn, (0.025, 0.975)))
    return Chance(share, expected, (share - expected) / (1 - expected), len(rows), permutations, low, high)


def _qualified(
    evidence: Sequence[Evidence], materials: Mapping[str, Material], contexts: Mapping[str, str]
) -> list[tuple[Evidence, Material]]:
    """The numbers that a row supports, and those that nothing settles, with their material."""
    found = []
    for item in evidence:
        if item.rule not in ROW_RULES and item.rule not in _UNSETTLED:
            continue
        material = materials.get(contexts.get(item.decision, ""))
        row = -1 if material is None else material.subjects.rows.get(item.subject, -1)
        if material is not None and row >= 0 and material.cells.bounds[row] < material.cells.bounds[row + 1]:
            found.append((item, material))
    return found


def _decimals(quote: str) -> int:
    """Digits after the point of a printed number."""
    _, point, rest = quote.partition(".")
    digits = 0
    while point and digits < len(rest) and rest[digits] in "0123456789":
        digits += 1
    return digits


def _table(members: Sequence[tuple[Evidence, Material]]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which number agrees with which row of its own material [n, instruments], and its own row [n]."""
    first = members[0][1]
    agrees = np.zeros((len(members), len(first.subjects.ids)), dtype=bool)
    own = np.array([material.subjects.rows[item.subject] for item, material in members], dtype=np.int64)
    groups: dict[int, list[int]] = defaultdict(list)
    for at, (_, material) in enumerate(members):
        groups[id(material)].append(at)
    for places in groups.values():
        agrees[places] = _agreement([members[at][0] for at in places], members[places[0]][1])
    return agrees, own


def _agreement(items: Sequence[Evidence], material: Material) -> NDArray[np.bool_]:
    """Agreement of each number with each row of one material, over any cell and with the printed sign."""
    cells = material.cells
    readings = [_reading(item) for item in items]
    rate = np.array([reading.as_rate for reading in readings])[:, None]
    size = np.array([reading.size for reading in readings])[:, None]
    half = np.array([reading.half for reading in readings])[:, None]
    sign = np.array([_sign(item.quote) for item in items])[:, None]
    stored = np.where(rate, cells.values.rate[None, :], cells.values.plain[None, :])
    plus, minus = np.abs(stored - size) <= half, np.abs(stored + size) <= half
    hits = np.where(sign > 0, plus, np.where(sign < 0, minus, plus | minus)) | ((plus | minus) & cells.depth[None, :])
    counts = np.concatenate([np.zeros((len(items), 1), dtype=np.int64), np.cumsum(hits, axis=1)], axis=1)
    totals: NDArray[np.bool_] = counts[:, cells.bounds[1:]] > counts[:, cells.bounds[:-1]]
    return totals


def _reading(item: Evidence) -> Reading:
    """The first reading of a ledgered number, from its record alone."""
    size = abs(item.number)
    digits = "".join(c for c in item.quote if c in "0123456789.").strip(".")
    printed = float(digits) if digits.count(".") <= 1 and digits else size
    step = (size / printed if printed else 1.0) * 10.0 ** -_decimals(item.quote)
    if item.unit == "percent":
        return Reading(True, size / 100, step / 100)
    if item.unit == "bps":
        return Reading(True, size / 1e4, step / 1e4)
    return Reading(False, size, step)


def _sign(quote: str) -> int:
    """The printed sign of a number: -1, 0 for none, 1."""
    head = quote[:4]
    return -1 if any(dash in head for dash in "-−–") else int("+" in head)
