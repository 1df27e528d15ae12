"""Agreement from contingency tables: what `agreement_measurements` finds in the ratings themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assaymark.metrology.agreement import Pair, judge_pairs
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.measure_kappa import (
    Counted,
    categories_of,
    cross_family_pairs,
    kappa_measurements,
    kappa_state,
    plain_measurements,
)
from assaymark.metrology.panel import Panel
from assaymark.metrology.resampling import KappaSums
from assaymark.metrology.sums import CATEGORIES, Layout, ScoreSums
from assaymark.records import Measurement

_MIDDLE = 3


def pooled_agreement(panel: Panel, sums: ScoreSums, rng: np.random.Generator) -> Iterator[Measurement]:
    """Kappa, Fleiss' kappa and redundancy of every name, and kappa within formats, from the sums of a table."""
    counted = _Counted.of(sums)
    yield from _kappa(panel, counted, None, rng)
    yield from plain_measurements(panel, "kappa.fleiss", "Fleiss' unweighted kappa", lambda: _fleiss(counted, sums))
    redundancy = "mean Pearson correlation over pairs of judges"
    yield from plain_measurements(panel, "redundancy", redundancy, lambda: _redundancy(sums))
    if len(sums.formats) > 1:
        for f in range(len(sums.formats)):
            yield from _kappa(panel, counted, f, rng)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Contingency tables of ratings [K, F, G, P, 5, 5], halves up and halves to even, over every pair of judges.

    ``sizes`` [F, G] are the numbers of trajectories.
    """

    up: Ints
    even: Ints
    sizes: Ints

    @classmethod
    def of(cls, sums: ScoreSums) -> _Counted:
        up, even = [], []
        for k, table in enumerate(sums.tables):
            values = sums.layout.values(k)
            up.append(_rated(table, categories_of(values)))
            even.append(_rated(table, np.clip(np.rint(np.round(values, 9)), 1, CATEGORIES).astype(np.int64)))
        return cls(np.stack(up), np.stack(even), sums.sizes)

    def part(self, f: int | None) -> tuple[Ints, Ints, Ints]:
        """Tables [K, G, P, 5, 5] of one format or of all, of the clusters [G] that have any; and these."""
        up, even = (part.sum(axis=1) if f is None else part[:, f] for part in (self.up, self.even))
        there = np.flatnonzero(self.sizes.sum(axis=0) if f is None else self.sizes[f])
        return up[:, there], even[:, there], there


def _rated(table: Ints, rating: Ints) -> Ints:
    """A table of levels [F, G, P, S, S] as one of ratings: ``rating`` [S] is what each level is rounded to."""
    to = (rating[:, None] == np.arange(1, CATEGORIES + 1)).astype(np.int64)
    return np.asarray(to.T @ table @ to)


def _kappa_sums(tables: Ints, judges: int, pairs: list[Pair], wanted: list[Pair]) -> KappaSums:
    """The sums behind every kappa, from tables [K, G, P, 5, 5] of all pairs, for the wanted ones."""
    x = np.arange(1, CATEGORIES + 1) - _MIDDLE
    n = tables[:, :, 0].sum(axis=(2, 3))
    margins = np.empty((judges, *tables.shape[:2], CATEGORIES), dtype=np.int64)
    for p, (a, b) in enumerate(pairs):
        margins[a], margins[b] = tables[:, :, p].sum(axis=3), tables[:, :, p].sum(axis=2)
    products = [np.einsum("kgij,i,j->kg", tables[:, :, pairs.index(pair)], x, x) for pair in wanted]
    columns = np.concatenate([n[None], margins @ x, margins @ (x * x), np.stack(products)])
    return KappaSums(columns.astype(np.float64), judges, tuple(wanted))


def _kappa(panel: Panel, counted: _Counted, f: int | None, rng: np.random.Generator) -> Iterator[Measurement]:
    """Mean pairwise kappas of one format or of all."""
    size = counted.sizes.sum(axis=0) if f is None else counted.sizes[f]
    n, clusters = int(size.sum()), int(np.count_nonzero(size))
    found = kappa_state(panel, f, n, clusters) or _kappas(panel, counted, f)
    yield from kappa_measurements(panel, f, n, clusters, found, rng)


def _kappas(panel: Panel, counted: _Counted, f: int | None) -> Counted:
    """What the tables of all pairs say of pairs of different families."""
    judges = len(panel.table.judges)
    pairs = judge_pairs(judges)
    wanted = cross_family_pairs(panel.table.families)
    up, even, there = counted.part(f)
    return Counted(
        sums=_kappa_sums(up, judges, pairs, wanted),
        halves=_kappa_sums(even, judges, pairs, wanted).points(),
        tables=up.sum(axis=1)[:, [pairs.index(pair) for pair in wanted]],
        clusters=there,
    )


def _fleiss(counted: _Counted, sums: ScoreSums) -> list[float | str]:
    """`fleiss_kappa` of every name: agreeing pairs lie on the diagonals."""
    tables = counted.up.sum(axis=(1, 2))
    judges, n = len(sums.layout.judges), sums.n
    agree = np.trace(tables, axis1=2, axis2=3).sum(axis=1)
    # Every judge is in J - 1 pairs, so the margins of all pairs count each rating J - 1 times.
    counts = (tables.sum(axis=(1, 3)) + tables.sum(axis=(1, 2))) // (judges - 1)
    observed = 2 * agree / (n * judges * (judges - 1))
    chance = np.square(counts / (n * judges)).sum(axis=1)
    flat = (counts == n * judges).any(axis=1)
    kappa = (observed - chance) / np.where(flat, 1.0, 1.0 - chance)
    state = f"undefined: all {n * judges} ratings are the same"
    return [state if same else value for same, value in zip(flat.tolist(), kappa.tolist(), strict=True)]


def _redundancy(sums: ScoreSums) -> list[float | str]:
    """`mean_correlation` of every name, from the levels before they are rounded to ratings."""
    return [_correlation(sums.layout, table.sum(axis=(0, 1))) for table in sums.tables]


def _correlation(layout: Layout, tables: Ints) -> float | str:
    """Mean Pearson correlation over pairs of judges of one name, from tables [P, S, S]."""
    levels = np.arange(tables.shape[1])
    found: list[float] = []
    spread = np.zeros(len(layout.judges), dtype=np.int64)
    for table, (a, b) in zip(tables, layout.pairs, strict=True):
        for judge, margin in ((a, table.sum(axis=1)), (b, table.sum(axis=0))):
            spread[judge] = np.ptp(np.flatnonzero(margin))
        found.append(_pearson(table, levels))
    if not spread.min():
        return f"undefined: judge {int(spread.argmin()) + 1} gave a single score"
    return float(np.clip(np.mean(found), -1, 1))


def _pearson(table: Ints, levels: Ints) -> float:
    """Correlation of the levels of a contingency table, 0 where one side does not vary."""
    weights: Floats = table / table.sum()
    one, other = weights.sum(axis=1), weights.sum(axis=0)
    x, y = levels - one @ levels, levels - other @ levels
    squares = float((one @ (x * x)) * (other @ (y * y)))
    return float(x @ weights @ y) / math.sqrt(squares) if squares > 0 else 0.0
