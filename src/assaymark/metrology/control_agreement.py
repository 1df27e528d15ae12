"""Do the judges agree on what a control cell shows?

All texts of a control cell deserve one score, so that within it there is no spread to agree about, and kappa is near 0
whatever the judges do. The claim is about a difference from honest records; agreement is asked about that difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.estimates import (
    cluster_codes,
    jackknife_se,
    leave_out,
    neighbour_blocks,
    scores_of,
    student_estimate,
)
from assaymark.metrology.kappa import round_half_up

CellStatus = Literal["publish", "methodology", "halt", "not measurable"]

PUBLISH = 0.4
METHODOLOGY = 0.2

_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class CellShift:
    """How far judges move a control cell from honest records; negative is below.

    ``p`` is one-sided, against "not more than the threshold below". Without a standard error p is 1: all of the cell's
    or all honest records lie in one cluster.
    """

    delta: float
    se: float | None
    df: float
    p: float


@dataclass(frozen=True, slots=True)
class CellAgreement:
    """Whether judge families agree on what a control cell shows; see `cell_agreement`."""

    status: CellStatus
    unanimous: bool
    leave_one_out: bool
    pooled_kappa: float | None
    panel: CellShift
    each: dict[str, CellShift]
    drops: dict[str, CellShift]


def cell_agreement(
    cell: ArrayLike, cell_cluster: Sequence[Any] | NDArray[Any], honest: ArrayLike,
    honest_cluster: Sequence[Any] | NDArray[Any], families: Sequence[str], *, threshold: float = 0.0,
    quantile: float | None = None, alpha: float = 0.05, consecutive: bool = False,
) -> CellAgreement:  # fmt: skip
    """Agreement of judge families on the difference between a control cell and honest records. Source: Berger 1982."""
    source = "cell_agreement"
    checks.probability(source, "alpha", alpha)
    if quantile is not None:
        checks.probability(source, "quantile", quantile)
    names = list(dict.fromkeys(families))
    tables = _by_family(source, "cell", cell, families), _by_family(source, "honest", honest, families)
    checks.labels(source, "cell_cluster", cell_cluster, len(tables[0]))
    checks.labels(source, "honest_cluster", honest_cluster, len(tables[1]))
    codes = cluster_codes(source, [*honest_cluster, *cell_cluster], len(tables[0]) + len(tables[1]))
    in_cell, in_honest = (~np.isnan(table).any(axis=1) for table in tables)
    for name, whole in (("cell", in_cell), ("honest", in_honest)):
        if not whole.any():
            raise NotMeasurableError(f"cell_agreement: no {name} record has a score from every judge family")
    texts, records = tables[0][in_cell], tables[1][in_honest]
    _, codes = np.unique(codes[np.concatenate([in_honest, in_cell])], return_inverse=True)

    count = len(names)
    panels = np.concatenate([np.eye(count), np.full((count, 1), 1 / count)], axis=1)
    if count > 1:
        panels = np.concatenate([panels, (1 - np.eye(count)) / (count - 1)], axis=1)
    places = codes[len(records) :], codes[: len(records)]
    shifts = _shifts((texts @ panels, records @ panels), places, threshold, quantile, consecutive)
    each, drops = dict(zip(names, shifts, strict=False)), dict(zip(names, shifts[count + 1 :], strict=False))
    # Mean pairwise kappa of families [., F] on both sets, each with half of the weight.
    ratings = np.asarray(round_half_up(np.concatenate([texts, records])))
    weights = np.repeat([1 / len(texts), 1 / len(records)], [len(texts), len(records)])
    pairs = combinations(range(ratings.shape[1]), 2)
    kappas = [kappa_of_records(ratings[:, a], ratings[:, b], weights) for a, b in pairs]
    known = [kappa for kappa in kappas if kappa is not None]
    kappa = float(np.mean(known)) if known and len(known) == len(kappas) else None
    unanimous = all(shift.p <= alpha + _SLACK for shift in each.values())
    left = bool(drops) and all(shift.p <= alpha + _SLACK for shift in drops.values())
    status: CellStatus = "halt"
    if count < 2:
        status = "not measurable"
    elif kappa is not None and unanimous and kappa >= PUBLISH - _SLACK:
        status = "publish"
    elif kappa is not None and left and kappa >= METHODOLOGY - _SLACK:
        status = "methodology"
    return CellAgreement(status, unanimous, left, kappa, shifts[count], each, drops)


def cell_equivalent(found: CellAgreement, *, margin: float = 0.3, alpha: float = 0.05) -> bool:
    """Whether every judge family scores the cell like honest records, to within a margin. Source: Schuirmann 1987."""
    checks.probability("cell_equivalent", "alpha", alpha)
    if not margin > 0:
        checks.fail("cell_equivalent", "margin", f"must be above 0 (got {margin!r})")
    return all(
        shift.se is not None and student_estimate(margin - abs(shift.delta), shift.se, shift.df).p_up <= alpha + _SLACK
        for shift in found.each.values()
    )


def kappa_of_records(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> float | None:
    """Quadratic-weighted kappa of two raters whose records have weights; None where both gave one rating only."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    share = np.ones(first.size) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    means = share @ first, share @ second
    variance = share @ np.square(first - means[0]) + share @ np.square(second - means[1])
    if variance <= 1e-12:
        return None
    return float(1 - share @ np.square(first - second) / (variance + (means[0] - means[1]) ** 2))


def _by_family(source: str, name: str, table: ArrayLike, families: Sequence[str]) -> Floats:
    """Mean over the judges of each family [n, F], NaN where none has a score."""
    scores = scores_of(source, name, table, 2)
    judges = scores.shape[1]
    if judges != len(families):
        checks.fail(source, "families", f"must have one entry for each of {judges} judges (got {len(families)})")
    known = ~np.isnan(scores)
    member = np.array([[family == other for other in dict.fromkeys(families)] for family in families], dtype=np.float64)
    counts = known @ member
    return np.asarray((np.where(known, scores, 0.0) @ member) / np.where(counts > 0, counts, np.nan))


def _shifts(
    scores: tuple[Floats, Floats], places: tuple[Ints, Ints], threshold: float, quantile: float | None,
    consecutive: bool,
) -> list[CellShift]:  # fmt: skip
    """The shift of every column of cell and honest scores, tested by leaving out clusters of both."""
    clusters = int(max(place.max() for place in places)) + 1
    sums = np.zeros((2, clusters, scores[0].shape[1]))
    counts = np.zeros((2, clusters))
    for which, (table, place) in enumerate(zip(scores, places, strict=True)):
        np.add.at(sums[which], place, table)
        np.add.at(counts[which], place, 1)
    # Cells are held against the honest mean of their own cluster where it has one, else against one reference.
    matched = (counts[1] > 0) & (quantile is None)
    means = sums[1] / np.maximum(counts[1], 1)[:, None]
    held = np.where(matched[:, None], sums[0] - counts[0][:, None] * means, sums[0])
    held, alone = leave_out(held, consecutive), leave_out(np.where(matched, 0.0, counts[0]), consecutive)
    n, m = leave_out(counts[0], consecutive)[:, None], leave_out(counts[1], consecutive)[:, None]
    if quantile is None:
        reference = leave_out(sums[1], consecutive) / np.where(m > 0, m, np.nan)
    else:
        units = (neighbour_blocks(clusters) if consecutive else np.arange(clusters))[places[1]]
        kept = [np.ones(units.size, dtype=np.bool_), *(units != unit for unit in range(len(n) - 1))]
        reference = np.full((len(n), held.shape[1]), np.nan)
        for row, rows in enumerate(kept):
            if rows.any():
                reference[row] = np.quantile(scores[1][rows], quantile, axis=0)
    deltas = (held - alone[:, None] * np.where(alone[:, None] > 0, reference, 0.0)) / np.where(n > 0, n, np.nan)
    df = len(deltas) - 2
    if df < 1 or np.isnan(deltas).any():
        return [CellShift(delta, None, 0, 1.0) for delta in deltas[0].tolist()]
    return [
        CellShift(delta, se, df, student_estimate(-delta - threshold, se, df).p_up)
        for delta, se in zip(deltas[0].tolist(), jackknife_se(deltas[0], deltas[1:]).tolist(), strict=True)
    ]
