"""Scores arranged for comparisons of agents: one cell per cycle, agent and judge, and the paired differences.

Every test of a ranking uses these. A score is the mean over judges; if some judges have no grade of a record, the
judges' severities are removed first. Two agents are compared within the cycles that both decided, and every cluster of
cycles counts once, because claims generalise over clusters.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import pair_list, pairs_of
from assaymark.metrology.estimates import group_sums, scores_of
from assaymark.metrology.kappa import drops_of
from assaymark.metrology.scores import ScoreTable
from assaymark.metrology.sums import ScoreSums
from assaymark.plan import ClusterOrder
from assaymark.protocol import Study

# From grades to one value per cluster: the panel's score of a record with missing grades, and paired differences.


@dataclass(frozen=True, slots=True)
class PanelScores:
    """A panel's scores of N records; None for a record without a grade."""

    scores: tuple[float | None, ...]
    part: tuple[int | None, ...]


def panel_scores(grades: ArrayLike) -> PanelScores:
    """Compute each record's score in a cluster in which not every judge graded every record (Scheffe 1959)."""
    table = scores_of("panel_scores", "grades", grades, 2)
    scores, part = panel_fit(table, np.zeros(len(table), dtype=np.int64), 1)
    number = {label: k for k, label in enumerate(dict.fromkeys(part[part >= 0].tolist()))}
    return PanelScores(
        tuple(None if np.isnan(score) else score for score in scores.tolist()),
        tuple(number.get(label) for label in part.tolist()),
    )


def panel_fit(grades: Floats, codes: Ints, clusters: int) -> tuple[Floats, Ints]:
    """Compute `panel_scores` of all clusters at once, from grades [N, J] and the cluster [N] of each record."""
    graded = ~np.isnan(grades)
    if graded.all():
        return np.asarray(grades.mean(axis=1)), np.zeros(len(grades), dtype=np.int64)
    active = group_sums(graded.astype(np.float64), codes, clusters) > 0
    width = max(1, int(active.sum(axis=1).max()))
    if width < grades.shape[1]:  # in a crowd each cluster has few judges, and the others do not enter its fit
        columns = np.argsort(~active, axis=1, kind="stable")[:, :width]
        scores, part = panel_fit(np.take_along_axis(grades, columns[codes], axis=1), codes, clusters)
        return scores, np.where(part < 0, -1, columns[codes, part])
    values = np.where(graded, grades, 0.0)
    count = graded.sum(axis=1)
    some = np.maximum(count, 1)
    mean = values.sum(axis=1) / some
    # Normal equations of the judges after elimination of the records: the Laplacian of the graph in which records link
    # judges. Its pseudo-inverse gives effects that sum to zero in each connected component.
    shared = group_sums(graded[:, :, None] * (graded / some[:, None])[:, None, :], codes, clusters)
    laplacian = np.eye(grades.shape[1]) * shared.sum(axis=2)[:, None] - shared
    surplus = group_sums(np.where(graded, values - mean[:, None], 0.0), codes, clusters)
    effects = (np.linalg.pinv(laplacian, rcond=1e-12, hermitian=True) @ surplus[:, :, None])[:, :, 0]
    scores = np.where(count > 0, mean - np.where(graded, effects[codes], 0.0).sum(axis=1) / some, np.nan)
    linked = (shared > 0) | np.eye(grades.shape[1], dtype=bool)
    for _ in range(max(1, grades.shape[1] - 1).bit_length()):
        linked = linked @ linked
    first = linked.argmax(axis=2)
    return scores, np.where(count > 0, first[codes, graded.argmax(axis=1)], -1)


def cluster_differences(records: Iterable[Sequence[Any]], K: int) -> dict[tuple[int, int], dict[Hashable, float]]:
    """Compute the mean paired difference of every pair of agents in every cluster, from single records."""
    source, agents = "cluster_differences", checks.integer("cluster_differences", "K", K, least=1)
    clusters: dict[Hashable, int] = {}
    rows: dict[tuple[int, Hashable], dict[int, tuple[float, Any]]] = {}
    for k, record in enumerate(records):
        if len(record) not in (4, 5):
            checks.fail(source, f"records[{k}]", f"must be (cluster, cycle, agent, score[, part]) (got {record!r})")
        cluster, cycle, agent, score = record[:4]
        if agent not in range(agents) or not isinstance(score, (int, float, np.number)) or not np.isfinite(score):
            checks.fail(source, f"records[{k}]", f"needs an agent in 0..{agents - 1} and a finite score ({record!r})")
        code = clusters.setdefault(cluster, len(clusters))
        rows.setdefault((code, cycle), {}).setdefault(int(agent), (float(score), tuple(record[4:5])))
    parts = {label: k for k, label in enumerate({part for row in rows.values() for _, part in row.values()})}
    scores, part = np.full((2, len(rows), agents), np.nan)
    for place, row in enumerate(rows.values()):
        for agent, (score, label) in row.items():
            scores[place, agent], part[place, agent] = score, parts[label]
    codes, once = np.array([code for code, _ in rows], dtype=np.int64), np.ones(len(rows), dtype=np.int64)
    means, _ = paired_differences(scores[..., None], part, codes, len(clusters), once)
    return {
        pair: {name: value for name, value in zip(clusters, column, strict=True) if value == value}
        for pair, column in zip(pair_list(agents), means[..., 0].T.tolist(), strict=True)
    }


def paired_differences(
    scores: Floats, part: Floats | Ints, codes: Ints, clusters: int, weight: Ints
) -> tuple[Floats, Ints]:
    """Compute every pair's mean difference [G, pairs, S] of scores [C, K, S] over the cycles in which both have a score
    of one part [C, K], NaN without one, and the number of these cycles [G, pairs]; rows count ``weight`` [C] times."""
    first, second = pairs_of(scores.shape[1])
    gaps = scores[:, first] - scores[:, second]
    gaps[part[:, first] != part[:, second]] = np.nan
    there = ~np.isnan(gaps[..., 0])
    times = np.where(there, weight[:, None], 0)
    cycles, sums = np.zeros((clusters, first.size), dtype=np.int64), np.zeros((clusters, *gaps.shape[1:]))
    np.add.at(cycles, codes, times)
    np.add.at(sums, codes, np.where(there[..., None], gaps, 0.0) * times[..., None])
    with np.errstate(invalid="ignore"):
        return sums / np.where(cycles > 0, cycles, np.nan)[..., None], cycles


@dataclass(frozen=True, slots=True)
class Gaps:
    """Mean paired differences of one set of judges, first agent minus second.
    ``means`` [G, P, S] is by cluster, pair (in the order of `pairs_of`) and scale, NaN if the two share no cycle;
    ``cycles`` [G, P] is the number of cycles behind each mean; ``levels`` [G, K, S] are the agents' cluster means."""

    means: Floats
    cycles: Ints
    levels: Floats


@dataclass(frozen=True)
class Comparisons:
    """The scores by every judge of every agent in every cycle, with the data for comparing the agents."""

    names: tuple[str, ...]
    agents: tuple[str, ...]
    judges: tuple[str, ...]
    families: tuple[str, ...]
    agent_families: Mapping[str, str] | None
    clusters: tuple[str, ...]
    cluster: Ints
    weight: Ints
    cells: Floats
    lengths: Floats | None
    order: ClusterOrder = "exchangeable"
    families_known: bool = True
    in_parts: bool = False
    judged: bool = True
    records: tuple[Floats, Ints, Ints] | None = None
    """If cells have several records: their grades [N, J, S], NaN if missing, with their cycles and agents [N]."""
    cycles: tuple[str, ...] = ()

    @classmethod
    def of_table(
        cls, table: ScoreTable, study: Study, style: Mapping[str, Mapping[str, float]] | None = None
    ) -> Comparisons:
        """Arrange the first replicates of a score table, including records without a grade by some judges."""
        grades = table.grades
        a, c = len(table.agents), len(table.cycles)
        values = np.concatenate([(grades.values @ table.weights)[..., None], grades.values], axis=2)
        place = grades.cycle * a + grades.agent
        # The plan's covariates [N, Q] of all graded records, if all of them are known.
        names, lengths, styles = study.claims.covariates, None, style or {}
        columns = {name: [styles[name][key] for key in grades.trajectories] for name in names if name in styles}
        if grades.lengths is not None:
            columns["log2"] = np.log2(np.maximum(grades.lengths.astype(np.float64), 1.0)).tolist()
        if names and all(name in columns for name in names):
            covariates = np.array([columns[name] for name in names], dtype=np.float64).T
            lengths = _means(covariates, place, a * c).reshape(c, a, -1)
        present = np.unique(grades.cycle)
        cells = _means(values, place, a * c).reshape(c, a, *values.shape[1:])
        records = None
        if np.isnan(values).any() and np.unique(place).size < place.size:
            records = values, np.searchsorted(present, grades.cycle), grades.agent
        copied = ("names", "agents", "judges", "families", "agent_families", "clusters", "families_known")
        return cls(
            **{name: getattr(table, name) for name in copied}, cluster=table.cycle_clusters[present],
            weight=np.ones(present.size, dtype=np.int64), cells=cells[present], records=records,
            lengths=None if lengths is None else lengths[present], cycles=tuple(table.cycles[k] for k in present),
        )._in_order(study)  # fmt: skip

    @classmethod
    def of_sums(cls, sums: ScoreSums, study: Study) -> Comparisons:
        """Arrange the sums of a large table; cycles of a line-up have the same agents, so their mean cell suffices."""
        counts = sums.decisions.astype(np.float64)[:, :, None, None]
        scores = sums.scores / np.where(counts > 0, counts, np.nan)
        layout = sums.layout
        cells = np.concatenate([(scores @ layout.share)[..., None], scores], axis=3)
        return cls(
            ("aggregate", *layout.dimensions), sums.agents, layout.judges, layout.families, sums.agent_families,
            sums.clusters, sums.places, sums.cycles, cells, None, in_parts=True,
        )._in_order(study)  # fmt: skip

    def _in_order(self, study: Study) -> Comparisons:
        """Return the comparisons with the plan's order of clusters, sorted by time if they are consecutive."""
        ranked = sorted(range(len(self.clusters)), key=lambda g: natural(self.clusters[g]))
        place = np.empty(len(ranked), dtype=np.int64)
        place[ranked] = np.arange(len(ranked))
        cluster = place[self.cluster]
        rows = np.argsort(cluster, kind="stable")  # jackknives over time number clusters by first appearance
        records = None
        if self.records is not None:
            records = self.records[0], np.argsort(rows)[self.records[1]], self.records[2]
        return replace(
            self, clusters=tuple(self.clusters[g] for g in ranked), cluster=cluster[rows], weight=self.weight[rows],
            cells=self.cells[rows], lengths=None if self.lengths is None else self.lengths[rows],
            order=study.inference.order_of(self.clusters),
            records=records, cycles=tuple(self.cycles[k] for k in rows) if self.cycles else (),
        )  # fmt: skip

    @property
    def consecutive(self) -> bool:
        """True if the clusters are consecutive in time."""
        return self.order == "consecutive"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every pair of agent indices."""
        return list(pair_list(len(self.agents)))

    def ratings(self, scale: int) -> tuple[Floats, Ints]:
        """Return every judge's score of every record on a scale [N, J], NaN if missing, and the clusters [N]."""
        if self.records is not None:
            values, cycle, _ = self.records
            return values[:, :, scale], self.cluster[cycle]
        rows, agents = np.nonzero(~np.isnan(self.cells[..., scale]).all(axis=2))
        return self.cells[rows, agents, :, scale], self.cluster[rows]

    @cached_property
    def own(self) -> Bools:
        """True for judges and agents of the same family [J, K]; all False if families are not known."""
        families = self.agent_families or {}
        same = [[families.get(agent) == family for agent in self.agents] for family in self.families]
        return np.array(same, dtype=bool).reshape(len(self.judges), len(self.agents))

    @cached_property
    def drops(self) -> dict[str, list[int]]:
        """For each judge family, the judges that remain without it; empty with one family."""
        return drops_of(self.families)

    @cached_property
    def missing(self) -> bool:
        """True if any record lacks a judge's grade."""
        there = ~np.isnan(self.cells[..., 0])
        return self.records is not None or bool((there.any(axis=2) & ~there.all(axis=2)).any())

    @cached_property
    def judge_means(self) -> Floats:
        """Cluster means [S, G, J, K] of every judge and agent, NaN if a judge has no score of an agent."""
        means = _means(self.cells, self.cluster, len(self.clusters), self.weight)
        return np.asarray(means.transpose(3, 0, 2, 1))

    def gaps(self, judges: Sequence[int] | None = None) -> Gaps:
        """Compute the paired differences of these judges (default: all)."""
        chosen = list(range(len(self.judges))) if judges is None else list(judges)
        scores, part = self.fitted(chosen)
        g = len(self.clusters)
        means, cycles = paired_differences(scores, part, self.cluster, g, self.weight)
        return Gaps(means, cycles, _means(scores, self.cluster, g, self.weight))

    @cached_property
    def panel(self) -> Floats:
        """Panel score [C, K, S] of every agent in every cycle."""
        return self.fitted(range(len(self.judges)))[0]

    def fitted(self, chosen: Sequence[int]) -> tuple[Floats, Ints]:
        """Compute scores [C, K, S] over some judges, and each cell's connected component in its cluster [C, K]."""
        cells = self.cells[:, :, chosen]
        c, k, judges, scales = cells.shape
        if self.records is None:
            codes = np.repeat(self.cluster, k)
            fits = [panel_fit(cells[..., s].reshape(-1, judges), codes, len(self.clusters)) for s in range(scales)]
            return np.stack([scores for scores, _ in fits], axis=1).reshape(c, k, scales), fits[0][1].reshape(c, k)
        # Fitted before records are averaged.
        values, cycle, agent = self.records
        codes, place, groups = self.cluster[cycle], cycle * k + agent, int(self.cluster.max()) + 1
        fits = [panel_fit(values[:, chosen, s], codes, groups) for s in range(scales)]
        scores, part = np.stack([scores for scores, _ in fits], axis=1), fits[0][1]
        # Of a cell's components the one with most records in the cluster counts, the same for all agents.
        label = codes * (judges + 1) + part + 1
        size = np.bincount(label)[label] * (part >= 0)
        main = np.full(c * k, -1)
        order = np.lexsort((-part, size))
        main[place[order]] = part[order]
        scores[part != main[place]] = np.nan
        return _means(scores, place, main.size).reshape(c, k, scales), main.reshape(c, k)


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders week 9 before week 10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def _means(values: Floats, codes: Ints, size: int, weight: Ints | None = None) -> Floats:
    """Compute the means [size, ...] of the rows of ``values`` [N, ...] by code, ignoring NaN; NaN without values."""
    if weight is None and np.unique(codes).size == codes.size:
        means = np.full((size, *values.shape[1:]), np.nan)
        means[codes] = values
        return means
    there = ~np.isnan(values)
    share = there * (1.0 if weight is None else weight.reshape(-1, *[1] * (values.ndim - 1)).astype(np.float64))
    counts, sums = (np.zeros((size, *values.shape[1:])) for _ in range(2))
    np.add.at(counts, codes, share)
    np.add.at(sums, codes, np.where(there, values, 0.0) * share)
    with np.errstate(invalid="ignore"):
        return sums / np.where(counts > 0, counts, np.nan)
