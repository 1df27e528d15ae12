"""The analysis of a score table of which only sums were kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import cast

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology.arrow import MISSING_SCORE
from assaymark.metrology.bootstrap import KappaSums
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.contrasts import settle
from assaymark.metrology.effects import Design, Parts
from assaymark.metrology.kappa import Pair, judge_pairs
from assaymark.metrology.measure_agents import level_measurements, levels_of
from assaymark.metrology.measure_kappa import (
    Counted,
    categories_of,
    cross_family_pairs,
    kappa_measurements,
    kappa_state,
    plain_measurements,
)
from assaymark.metrology.measure_orders import order_measurements
from assaymark.metrology.measure_panel import alpha_measurements, judge_measurements, variance_measurements
from assaymark.metrology.order_tests import OrderPlan
from assaymark.metrology.paired import pair_tests
from assaymark.metrology.panel import Meeting, Panel
from assaymark.metrology.ranks import rank_measurements, single_measurements
from assaymark.metrology.scores import Calls, ScoreTable
from assaymark.metrology.stability import drops_of
from assaymark.metrology.sums import CATEGORIES, Layout, ScoreSums
from assaymark.protocol import Study
from assaymark.records import Measurement

# Agreement from contingency tables: what `agreement_measurements` finds in the ratings themselves.


_MIDDLE = 3


def pooled_agreement(panel: Panel, sums: ScoreSums, rng: np.random.Generator) -> Iterator[Measurement]:
    """Kappa, Fleiss' kappa and redundancy of every name, and kappa within formats, from the sums of a table."""
    counted = _Counted.of(sums)
    yield from _kappa(panel, counted, None, rng)
    yield from plain_measurements(panel, "kappa.fleiss", "Fleiss' unweighted kappa", lambda: _fleiss(counted, sums))
    redundancy = "mean Pearson correlation over pairs of judges"
    yield from plain_measurements(
        panel,
        "redundancy",
        redundancy,
        lambda: [_correlation(sums.layout, table.sum(axis=(0, 1))) for table in sums.tables],
    )
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


def _correlation(layout: Layout, tables: Ints) -> float | str:
    """Mean Pearson correlation over pairs of judges of one name, from tables [P, S, S]."""
    levels = np.arange(tables.shape[1])
    found: list[float] = []
    spread = np.zeros(len(layout.judges), dtype=np.int64)
    for table, (a, b) in zip(tables, layout.pairs, strict=True):
        for judge, margin in ((a, table.sum(axis=1)), (b, table.sum(axis=0))):
            spread[judge] = np.ptp(np.flatnonzero(margin))
        # Correlation of the levels of a contingency table, 0 where one side does not vary.
        weights: Floats = table / table.sum()
        one, other = weights.sum(axis=1), weights.sum(axis=0)
        x, y = levels - one @ levels, levels - other @ levels
        squares = float((one @ (x * x)) * (other @ (y * y)))
        found.append(float(x @ weights @ y) / math.sqrt(squares) if squares > 0 else 0.0)
    if not spread.min():
        return f"undefined: judge {int(spread.argmin()) + 1} gave a single score"
    return float(np.clip(np.mean(found), -1, 1))


def analyse_sums(
    sums: ScoreSums,
    study: Study,
    *,
    rng: np.random.Generator,
    progress: Callable[[str], None] | None = None,
) -> tuple[Measurement, ...]:
    """Every measurement of `analyse` that a table without repeated trials and replicates has, from its sums alone."""
    note = progress or (lambda _part: None)
    panel = panel_of_sums(sums, study)
    note("agreement")
    found = list(pooled_agreement(panel, sums, rng))
    note("judges")
    found += judge_measurements(panel)
    note("levels")
    levels = levels_of(panel)
    found += (_with_length(item, sums) for item in level_measurements(panel, levels))
    note("contrasts")
    tests = pair_tests(panel, rng)
    compared = Comparisons.of_sums(sums, study)
    found += order_measurements(compared, OrderPlan.of(study), panel.measure, tests)
    found += alpha_measurements(compared, study.inference.level, panel.measure)
    found += variance_measurements(compared, panel.measure)
    found += single_measurements(panel, levels, tests)
    found += rank_measurements(panel, rng)
    return tuple(found)


def panel_of_sums(sums: ScoreSums, study: Study) -> Panel:
    """What `panel_of` makes of the table itself, without its rows: no row is left to have scores of its own."""
    present = np.unique(sums.places)
    place = np.searchsorted(present, sums.places)
    layout, kept = sums.layout, _drops(sums.layout)
    columns = _columns(sums, list(kept.values()))
    meetings = tuple(_meetings(sums, columns, place))
    differences = np.full((len(meetings), columns.shape[2]), np.nan)
    for pair, meeting in enumerate(meetings):
        if meeting.n:
            differences[pair] = settle(meeting.sums.sum(axis=0) / meeting.n)
    judges = len(layout.judges)
    return Panel(
        table=_table(sums, present),
        study=study,
        scores=np.empty((0, judges, 1 + len(layout.dimensions))),
        drops={family: k for k, family in enumerate(kept, start=1 + judges)},
        columns=np.empty((0, columns.shape[2])),
        design=PooledDesign.of_sums(sums, columns, place, present.size),
        meetings=meetings,
        differences=differences,
    )


@dataclass(frozen=True)
class PooledDesign(Design):
    """A `Design` in which one column stands for all cycles with one line-up in one cluster, ``cycles`` [R] of them.

    Normal equations add up over cycles, so they are the same; only means over cycles have to count each of them.
    """

    cycles: Floats

    @classmethod
    def of_sums(cls, sums: ScoreSums, columns: Floats, place: Ints, clusters: int) -> PooledDesign:
        """From score sums [R, A, columns], with the cluster of each line-up."""
        totals = np.zeros((len(sums.agents), max(1, clusters), columns.shape[2]))
        np.add.at(totals.transpose(1, 0, 2), place, columns)
        return cls(
            counts=sums.decisions.T.astype(np.float64),
            cycle_sums=columns.sum(axis=1),
            totals=totals,
            cluster=place,
            cycles=sums.cycles.astype(np.float64),
        )

    def parts(self, columns: slice = slice(None)) -> Parts:
        """What each cluster adds to the normal equations, and its means over single cycles."""
        # The sums of a column are those of its cycles, so each cycle has one part in ``cycles`` of them.
        parts = Design.parts(self, columns)
        size = np.maximum(self.counts.sum(axis=0), 1)
        share = self.counts / size * self.cycles
        means, seats = np.zeros_like(parts.cycle_means), np.zeros_like(parts.seats)
        for g in range(self.clusters):
            own = self.cluster == g
            means[g] = share[:, own] @ (self.cycle_sums[own, columns] / size[own, None])
            seats[g] = share[:, own].sum(axis=1)
        return replace(parts, cycle_means=means, seats=seats)


def _drops(layout: Layout) -> dict[str, list[int]]:
    try:
        return drops_of(layout.families)
    except NotMeasurableError:
        return {}


def _columns(sums: ScoreSums, kept: list[list[int]]) -> Floats:
    """Score sums [R, A, columns] of the whole panel, of each judge alone, and without each family."""
    scores = sums.scores.astype(np.float64)
    stacked = np.concatenate([(scores @ sums.layout.share)[..., None], scores], axis=3)
    alone = stacked.reshape(*stacked.shape[:2], -1)
    return np.concatenate([stacked.mean(axis=2), alone, *(stacked[:, :, keep].mean(axis=2) for keep in kept)], axis=2)


def _meetings(sums: ScoreSums, columns: Floats, place: Ints) -> Iterator[Meeting]:
    """Every pair of agents; in a line-up both have the same number of decisions in every cycle."""
    means = columns / np.maximum(sums.lineups, 1)[:, :, None]
    for a, b in combinations(range(len(sums.agents)), 2):
        common = np.flatnonzero((sums.lineups[:, a] > 0) & (sums.lineups[:, b] > 0))
        clusters, which = np.unique(place[common], return_inverse=True)
        found = np.zeros((clusters.size, columns.shape[2]))
        np.add.at(found, which, means[common, a] - means[common, b])
        cycles = np.zeros(clusters.size, dtype=np.int64)
        np.add.at(cycles, which, sums.cycles[common])
        yield Meeting(a, b, clusters, found, cycles, int(cycles.sum()))


def _table(sums: ScoreSums, present: Ints) -> ScoreTable:
    """The names and counts of the table, with no rows. Their number is all that is asked of the trajectories."""
    layout, none = sums.layout, np.empty(0, dtype=np.int64)
    usable = {judge: int(ok) for judge, (ok, _) in zip(layout.judges, sums.calls, strict=True)}
    return ScoreTable(
        trajectories=cast("tuple[str, ...]", range(sums.n)),
        agents=sums.agents,
        agent=none,
        cycles=(),
        cycle=none,
        clusters=tuple(sums.clusters[k] for k in present),
        cluster=none,
        formats=sums.formats,
        format=none,
        judges=layout.judges,
        families=layout.families,
        dimensions=layout.dimensions,
        weights=layout.share,
        scores=np.empty((0, len(layout.judges), len(layout.dimensions))),
        trials={judge: np.broadcast_to(0.0, (k, 1)) for judge, k in usable.items()},
        replicates={},
        calls={
            judge: Calls(int(ok), int(bad), 0, {MISSING_SCORE: int(bad)} if bad else {})
            for judge, (ok, bad) in zip(layout.judges, sums.calls, strict=True)
        },
        lengths=None,
        left_out=(),
        digest=sums.digest,
        agent_families=sums.agent_families,
    )


def _with_length(item: Measurement, sums: ScoreSums) -> Measurement:
    """The correlation of length and score, which needs the rows or their sums."""
    if item.name != "score.length_correlation" or sums.lengths is None or not sums.n:
        return item
    n, (x, xx, y, yy, xy) = sums.n, sums.lengths
    spread = (n * xx - x * x) * (n * yy - y * y)
    if n < 3 or spread <= 0:
        return replace(item, state="undefined: fewer than three trajectories, or no variation")
    return replace(item, value=(n * xy - x * y) / math.sqrt(spread), state="ok")
