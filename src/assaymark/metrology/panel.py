"""A score table prepared for analysis, and measurements of the agents: levels, ranks, and each judge alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.bootstrap import SMALL_PRODUCT, resamples_of
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import (
    Test,
    TestSet,
    bootstrap_tests,
    flip_tests,
    holm_rows,
    pair_list,
    snap_to_zero,
    t_test,
)  # fmt: skip
from assaymark.metrology.estimates import (
    NEVER,
    NO_SCORES,
    ONE_FAMILY,
    POINTS,
    Ends,
    Estimate,
    group_sums,
    jackknife_se,
    number,
)  # fmt: skip
from assaymark.metrology.kappa import drops_of, spearman_columns
from assaymark.metrology.scores import CallCounts, ScoreTable
from assaymark.metrology.sums import ScoreSums
from assaymark.plan import TOLERANCE
from assaymark.protocol import Study
from assaymark.quantiles import t_quantile
from assaymark.records import AGGREGATE, JSON, Measurement

Parts = tuple[Floats, Floats, Floats, Floats]
"""Per cluster: normal equations [G, A, A] and their right sides [G, A, K]; cycle means [G, A, K] and the number of
cycles [G, A], both divided among the agents of each cycle."""


def agent_effects(
    scores: ArrayLike, agents: Sequence[Any] | NDArray[Any], cycles: Sequence[Any] | NDArray[Any]
) -> dict[Any, float]:
    """Compute each agent's least-squares level, adjusted for cycle effects."""
    values = checks.finite("agent_effects", "scores", scores)
    names, agent_codes = checks.labels("agent_effects", "agents", agents, values.size)
    rounds, when = checks.labels("agent_effects", "cycles", cycles, values.size)
    design = Design.of(values[:, None], agent_codes, when, np.zeros(len(rounds), dtype=np.int64), len(names))
    levels = design.levels(np.ones((1, 1)))[0, :, 0]
    if np.isnan(levels).any():
        raise NotMeasurableError(
            f"the agents form {len(design.groups())} groups without common cycles "
            f"({'; '.join(', '.join(str(names[a]) for a in group) for group in design.groups())}): no common level"
        )
    return dict(zip(names, levels.tolist(), strict=True))


@dataclass(frozen=True)
class Design:
    """Sums of K scores by agent and cycle, from which levels can be computed for any subset of clusters.
    ``counts`` [A, C] are decisions; ``cycle_sums`` [C, K], ``totals`` [A, G, K], and ``cluster`` [C] of each cycle.
    A column may represent all cycles with one line-up in one cluster; ``cycles`` [C] is their number."""

    counts: Floats
    cycle_sums: Floats
    totals: Floats
    cluster: Ints
    cycles: Floats

    @classmethod
    def of(cls, scores: Floats, agent: Ints, cycle: Ints, cluster: Ints, agents: int) -> Design:
        """Compute the sums of ``scores`` [n, K]; ``cluster`` is per cycle. Clusters without a score are dropped."""
        cells, counts = cell_sums(scores, agent, cycle, cluster.size, agents)
        return cls.of_cells(cells, counts, cluster, np.ones(cluster.size, dtype=np.int64))

    @classmethod
    def of_cells(cls, cells: Floats, counts: Ints, cluster: Ints, cycles: Ints) -> Design:
        """Compute the sums from those of each cycle and agent [C, A, K], and the decisions in one cycle [C, A]."""
        used, codes = np.unique(cluster[counts.any(axis=1)], return_inverse=True)
        place = np.zeros(cluster.size, dtype=np.int64)
        place[counts.any(axis=1)] = codes
        totals = group_sums(cells, place, max(1, used.size)).transpose(1, 0, 2)
        decisions = (counts * cycles[:, None]).T.astype(np.float64)
        return cls(decisions, cells.sum(axis=1), totals, place, cycles.astype(np.float64))

    @property
    def clusters(self) -> int:
        """Number of clusters G."""
        return int(self.totals.shape[1])

    def groups(self) -> list[list[int]]:
        """Groups of agents linked by common cycles, directly or through others, largest (then most decisions) first."""
        (reached,) = self._reached(np.ones((1, self.clusters)))
        parts = {tuple(np.flatnonzero(row).tolist()) for row in reached if row.any()}
        decisions = self.counts.sum(axis=1)
        return [list(g) for g in sorted(parts, key=lambda g: (-len(g), -decisions[list(g)].sum(), g[0]))]

    def levels(self, times: Floats, parts: Parts | None = None) -> Floats:
        """Compute agent levels [R, A, K] with clusters weighted by ``times`` [R, G]; NaN outside the main group."""
        *weighed, seated = parts or self.parts()
        return self._levels_of((*(_weigh(times, part) for part in weighed), times @ seated), self.main_group(times))

    def _levels_of(self, sums: Sequence[Floats], inside: Bools) -> Floats:
        """Compute levels [R, A, K] from sums of `parts` over clusters; NaN outside the main group."""
        matrix, right, means, weight = sums
        grouped, effects = inside[:, :, None], self.effects(matrix, right, inside)
        # Cycles belong to one group only, so their contribution is divided among their agents.
        weight = np.where(inside, weight, 0.0)
        means = np.where(grouped, means, 0.0) - weight[:, :, None] * effects
        with np.errstate(invalid="ignore"):
            shift = means.sum(axis=1) / weight.sum(axis=1)[:, None]
        return np.where(grouped, effects + shift[:, None, :], np.nan)

    def effects(self, matrix: Floats, right: Floats, inside: Bools) -> Floats:
        """Solve normal equations summed over clusters [R, A, K]; solutions rank like `levels`, sum to 0 in the main
        group ``inside`` and are 0 outside it."""
        both = inside[:, :, None] & inside[:, None, :]
        # The effects are determined up to a constant; a one in every cell of the group fixes their sum at zero.
        matrix = np.where(both, matrix + 1.0, 0.0)
        outside = np.arange(inside.shape[1])
        matrix[:, outside, outside] += ~inside
        return np.asarray(np.linalg.solve(matrix, np.where(inside[:, :, None], right, 0.0)))

    def main_group(self, times: Floats) -> Bools:
        """Return the membership [R, A] of agents in the largest linked group; all False without decisions."""
        if self._met.all():
            return np.repeat((times > 0).any(axis=1, keepdims=True), self.counts.shape[0], axis=1)
        return self._largest(self._reached(times), times @ self._decisions)

    def _largest(self, reached: Bools, counts: Floats) -> Bools:
        """Return the membership [R, A] in the largest of the linked groups, by the decisions [R, A] if two tie."""
        if not reached.size:
            return reached[:, 0]
        most = reached.sum(axis=2) * (counts.sum(axis=1, keepdims=True) + 1) + (reached @ counts[:, :, None])[:, :, 0]
        # The first agent in the largest group represents it.
        return np.asarray(reached[np.arange(len(most)), most.argmax(axis=1)])

    @cached_property
    def _met(self) -> Floats:
        """1.0 for two agents with a common cycle in a cluster, else 0.0 [G, A, A]."""
        counts = (self.counts[:, members] for members in self._members)
        return np.stack([c @ c.T > 0 for c in counts]).astype(np.float64)

    @cached_property
    def _decisions(self) -> Floats:
        """The decisions of each agent in each cluster [G, A]."""
        return np.stack([self.counts[:, members].sum(axis=1) for members in self._members])

    @cached_property
    def _members(self) -> list[Ints]:
        """The cycles of each cluster."""
        by_cluster = np.argsort(self.cluster, kind="stable")
        return np.split(by_cluster, np.searchsorted(self.cluster[by_cluster], np.arange(1, self.clusters)))

    def _reached(self, times: Floats) -> Bools:
        """Return which agents are linked, directly or through others [R, A, A], in clusters of positive weight."""
        return self._linked(_weigh((times > 0).astype(np.float64), self._met) > 0)

    def _linked(self, reached: Bools) -> Bools:
        """Return which agents are linked directly or through others, from those linked directly [R, A, A]."""
        while True:
            steps = reached.astype(np.float32)
            further = np.asarray(steps @ steps > 0)
            if further.sum() <= reached.sum():
                return reached
            reached = further

    def parts(self, columns: slice = slice(None)) -> Parts:
        """Compute each cluster's contribution to the normal equations of the chosen columns."""
        size = np.maximum(self.counts.sum(axis=0), 1)
        share, cells = self.counts / size, []
        for g, members in enumerate(self._members):
            counts, scaled, sums = self.counts[:, members], share[:, members], self.cycle_sums[members, columns]
            # The normal equations already sum over cycles; only the means have to count each cycle.
            seats = scaled * self.cycles[members]
            cells.append((np.diag(counts.sum(axis=1)) - scaled @ counts.T, self.totals[:, g, columns] - scaled @ sums,
                          seats @ (sums / size[members, None]), seats.sum(axis=1)))  # fmt: skip
        matrix, right, means, seated = (np.stack(part) for part in zip(*cells, strict=True))
        return matrix, right, means, seated

    def levels_with_ends(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Compute levels [A, K] with jackknife ends, NaN if a level or an interval does not exist; equal levels without
        each cluster give none."""
        g, parts = self.clusters, self.parts()
        (centre,) = self.levels(np.ones((1, g)), parts)
        if g < 2:
            return centre, np.full_like(centre, np.nan), np.full_like(centre, np.nan)
        # Levels without each cluster come from the sums over all clusters minus its own.
        sums = [part.sum(axis=0) - part for part in parts]
        reached = self._linked(self._met.sum(axis=0) - self._met > 0)
        without = self._levels_of(sums, self._largest(reached, self._decisions.sum(axis=0) - self._decisions))
        error = jackknife_se(centre, without)
        error[error <= _FLAT * np.maximum(1.0, np.abs(centre))] = np.nan
        # Student's t quantile of each agent, NaN if it decided in a single cluster
        counts = self.own_clusters()
        half = np.array([t_quantile(0.5 + level / 2, int(k) - 1) if k > 1 else np.nan for k in counts])[:, None] * error
        return centre, centre - half, centre + half

    def own_clusters(self) -> Ints:
        """The number of clusters in which each agent decided [A]."""
        return np.asarray((self._decisions > 0).sum(axis=0), dtype=np.int64)


def _weigh(times: Floats, parts: Floats) -> Floats:
    """Sum the clusters' parts [G, ...] with weights ``times`` [R, G], to [R, ...]."""
    flat = parts.reshape(parts.shape[0], -1)
    rows = max(1, SMALL_PRODUCT // max(1, flat.size))
    sums = [times[start : start + rows] @ flat for start in range(0, len(times), rows)]
    return np.concatenate(sums).reshape(len(times), *parts.shape[1:])


RESAMPLES = 10_000  # of clusters, if no error rate depends on them; also of pairs, for any number of contrasts
_FLAT: Final = 1e-12  # relative; a smaller variance is float noise
_BLOCK = 1 << 19  # comparisons of two agents in memory at a time
_MOST = 0.5  # maximum share of resamples in which agents are not linked; above it the rest is not representative
_ONE_AGENT = "undefined: one agent, needs two"
_NO_DECISION = "undefined: no trajectory with a usable score from every judge"
_APART = "disconnected: shares no cycle with the main group of agents, directly or through others"

Levels = tuple[Floats, Floats, Floats]
"""Least-squares levels [A, columns] and their jackknife ends, NaN if there are none."""


@dataclass(frozen=True)
class Panel:
    """The common inputs of the measurements. Columns are names x (whole panel, each judge alone, each family out).
    ``scores`` [n, J, K] are the judges' scores with the aggregate first, ``drops`` maps a family to its index among the
    blocks of K columns (the whole panel is block 0, judge j alone block j + 1). ``meetings`` has, for each pair of
    agents in the order of `pair_list`, the differences, first minus second, summed by common cluster [G, columns], and
    the number of common cycles in each [G]. A table of which only the ``sums`` are known has no rows."""

    table: ScoreTable
    study: Study
    scores: Floats
    drops: Mapping[str, int]
    design: Design
    meetings: Sequence[tuple[Floats, Ints]]
    sums: ScoreSums | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The aggregate, then the dimensions."""
        return self.table.names

    @property
    def level(self) -> float:
        """Coverage of the plan's intervals."""
        return self.study.inference.level

    @property
    def sizes(self) -> Ints:
        """Numbers of trajectories by format and cluster [F, G]."""
        if self.sums is not None:
            return self.sums.sizes
        formats, clusters = len(self.table.formats), len(self.table.clusters)
        places = self.table.format * clusters + self.table.cluster
        return np.bincount(places, minlength=formats * clusters).reshape(formats, clusters)

    @property
    def lengths(self) -> tuple[float, ...] | None:
        """The number and the sums of length x and panel score y: x, x², y, y², xy; None if lengths were not given."""
        if self.sums is not None:
            return None if self.sums.lengths is None else (self.sums.n, *self.sums.lengths)
        if (x := self.table.lengths) is None:
            return None
        x, y = x - np.rint(x.mean()), self.scores[:, :, 0].mean(axis=1)
        return x.size, x.sum(), x @ x, y.sum(), y @ y, x @ y

    def block(self, place: int) -> slice:
        """Return the columns of one block: 0 for the whole panel, j + 1 for judge j alone, then ``drops``."""
        return slice(place * len(self.names), (place + 1) * len(self.names))

    def measure(self, **parts: Any) -> Measurement:
        """Make a measurement of this table, with its digest."""
        return Measurement(inputs=self.table.digest, **parts)

    def number(
        self, name: str, labels: Mapping[str, str], value: float | Estimate | None, count: tuple[int, str],
        method: str, state: str | None = "ok", detail: Mapping[str, JSON] | None = None, ends: Ends | None = None,
        unit: str = "",
    ) -> Measurement:  # fmt: skip
        """Make a measurement of this table, with intervals at the plan's level."""
        return number(self.measure, name, labels, value, count, method, state or "ok", detail, ends, self.level, unit)

    @property
    def missing(self) -> str | None:
        """The reason why the panel cannot be measured, or None."""
        return None if self.table.n else NO_SCORES


def cell_sums(scores: Floats, agent: Ints, cycle: Ints, cycles: int, agents: int) -> tuple[Floats, Ints]:
    """Sum scores [n, K] by cycle and agent [C, A, K], and count them [C, A]."""
    place = cycle * agents + agent
    counts = np.bincount(place, minlength=cycles * agents).reshape(cycles, agents)
    return group_sums(scores, place, cycles * agents).reshape(cycles, agents, scores.shape[1]), counts


def panel_of(table: ScoreTable, study: Study) -> Panel:
    """Compute panel scores, the design of agents and cycles, and every pair's differences, from a gated table."""
    scores, cluster, cycles = table.stacked, table.cycle_clusters, len(table.cycles)
    columns = _blocks(scores, drops_of(table.families))
    cells, counts = cell_sums(columns, table.agent, table.cycle, cycles, len(table.agents))
    return _panel(table, study, scores, cells, counts, cluster, np.ones(cycles, dtype=np.int64))


def panel_of_sums(sums: ScoreSums, study: Study) -> Panel:
    """Compute the `Panel` of a table from its sums; its ``table`` has names and counts, but no rows."""
    layout, none, judges = sums.layout, np.empty(0, dtype=np.int64), len(sums.layout.judges)
    present, place = np.unique(sums.places, return_inverse=True)
    counted = zip(layout.judges, sums.calls.tolist(), strict=True)
    calls = {judge: CallCounts.of_rows(usable, missing) for judge, (usable, missing) in counted}
    table = ScoreTable(
        cast("tuple[str, ...]", range(sums.n)), sums.agents, none, (), none,  # only the number of trajectories is used
        tuple(sums.clusters[k] for k in present), none, sums.formats, none, layout.judges, layout.families,
        layout.dimensions, layout.share, np.empty((0, judges, len(layout.dimensions))),
        {judge: np.broadcast_to(0.0, (call.ok, 1)) for judge, call in calls.items()}, {}, calls, None, (), sums.digest,
        agent_families=sums.agent_families,
    )  # fmt: skip
    scores = sums.scores.astype(np.float64)
    stacked = np.concatenate([(scores @ layout.share)[..., None], scores], axis=3)
    cells = _blocks(stacked, drops_of(layout.families))
    return _panel(table, study, table.stacked, cells, sums.lineups, place, sums.cycles, sums)


def _blocks(scores: Floats, drops: Mapping[str, list[int]]) -> Floats:
    """Return the columns of the whole panel, each judge alone, and without each family, from scores [..., J, K]."""
    alone = scores.reshape(*scores.shape[:-2], scores.shape[-2] * scores.shape[-1])
    without = (scores[..., keep, :].mean(axis=-2) for keep in drops.values())
    return np.concatenate([scores.mean(axis=-2), alone, *without], axis=-1)


def _panel(
    table: ScoreTable, study: Study, scores: Floats, cells: Floats, counts: Ints, cluster: Ints, cycles: Ints,
    sums: ScoreSums | None = None,
) -> Panel:  # fmt: skip
    """Build the panel from the sums of each cycle (or line-up) and agent; see `Design.of_cells`."""
    # Several decisions of one agent in one cycle are averaged.
    order = np.argsort(cluster, kind="stable")
    met, line, times = counts[order] > 0, cluster[order], cycles[order]
    means, meetings = cells[order] / np.maximum(counts[order], 1)[:, :, None], []
    for first, second in combinations(range(len(table.agents)), 2):
        common = np.flatnonzero(met[:, first] & met[:, second])
        gaps, starts = means[common, first] - means[common, second], np.flatnonzero(np.diff(line[common], prepend=-1))
        # reduceat needs at least one segment.
        meetings.append((np.add.reduceat(gaps, starts), np.add.reduceat(times[common], starts)) if common.size
                        else (gaps, times[common]))  # fmt: skip
    drops = {family: k for k, family in enumerate(drops_of(table.families), start=1 + len(table.judges))}
    return Panel(table, study, scores, drops, Design.of_cells(cells, counts, cluster, cycles), meetings, sums)


def level_measurements(panel: Panel, levels: Levels) -> Iterator[Measurement]:
    """Measure each agent's level, with and without each family; rank correlations; and the correlation with length."""
    table, design, names = panel.table, panel.design, panel.names
    counts, clusters = design.counts.sum(axis=1), design.own_clusters().tolist()
    raw = (design.totals.sum(axis=1) / np.maximum(counts, 1)[:, None]).tolist()
    details: list[list[dict[str, JSON]]] = [
        [{"raw_mean": raw[a][k] if n else None, "clusters": clusters[a]} for a, n in enumerate(counts.tolist())]
        for k in range(len(names))
    ]
    yield from _agent_levels(panel, "score.effect", levels, panel.block(0), {}, True, details)
    method = "Spearman correlation of agent levels with and without the family"
    for family in dict.fromkeys(table.families):
        if family not in panel.drops:
            for name in names:
                labels = {"dimension": name, "dropped": family}
                count = len(table.agents), "agents"
                yield panel.number("lofo.rho", labels, None, count, method, ONE_FAMILY)
            continue
        block = panel.block(panel.drops[family])
        full, without = levels[0][:, : len(names)], levels[0][:, block]
        ranked = np.flatnonzero(np.isfinite(full[:, 0]) & np.isfinite(without[:, 0]))
        settled = np.round(-without[ranked], 9).T.tolist()
        for k, rho in enumerate(_rank_correlations(panel, "lofo.rho", full, without, ranked, {"dropped": family},
                                                     method)):  # fmt: skip
            order = [table.agents[a] for _, a in sorted(zip(settled[k], ranked.tolist(), strict=True))]
            yield replace(rho, detail={"order": order})
        yield from _agent_levels(panel, "lofo.effect", levels, block, {"dropped": family}, ends=False)
    value, moments = None, panel.lengths
    state = panel.missing or "undefined: lengths of the judged texts were not given"
    if not panel.missing and moments is not None:
        state = "undefined: fewer than three trajectories, or no variation"
        n, x, xx, y, yy, xy = moments
        varying, spread = n * xx - x * x, n * yy - y * y
        if n >= 3 and varying > _FLAT * n * xx and spread > _FLAT * n * yy:
            value = (n * xy - x * y) / math.sqrt(varying * spread)
    method = "Pearson correlation of token count and panel score"
    yield panel.number("score.length_correlation", {"dimension": AGGREGATE}, value, (table.n, "trajectories"), method,
                       state)  # fmt: skip


def _agent_levels(
    panel: Panel, name: str, levels: Levels, block: slice, labels: dict[str, str], ends: bool,
    details: list[list[dict[str, JSON]]] | None = None,
) -> Iterator[Measurement]:  # fmt: skip
    """Measure the levels of one block of columns by name and agent, with the reason if an agent has none."""
    counts = panel.design.counts.sum(axis=1).astype(int).tolist()
    value, low, high = (part[:, block].tolist() for part in levels)
    method = "least-squares agent effect beside cycle effects, plus the mean cycle effect"
    for k, dimension in enumerate(panel.names):
        for a, agent in enumerate(panel.table.agents):
            between = ends and np.isfinite(low[a][k])
            yield panel.number(
                name, {"dimension": dimension, **labels, "agent": agent}, value[a][k],
                (counts[a], "decisions"), f"{method}; jackknife over clusters" if between else method,
                _APART if counts[a] else _NO_DECISION, details[k][a] if details else {},
                (low[a][k], high[a][k]) if between else None, POINTS,
            )  # fmt: skip


def _rank_correlations(
    panel: Panel, name: str, first: Floats, other: Floats, ranked: Ints, labels: dict[str, str], method: str
) -> Iterator[Measurement]:
    """Measure Spearman correlations between two sets of levels [A, K] of the ranked agents."""
    none = panel.missing or _ONE_AGENT if ranked.size < 2 else f"undefined: all {ranked.size} agents are tied"
    rhos = spearman_columns(first[ranked], other[ranked]) if ranked.size > 1 else [None] * first.shape[1]
    for dimension, rho in zip(panel.names, rhos, strict=True):
        yield panel.number(name, {"dimension": dimension, **labels}, rho, (ranked.size, "agents"), method, none)


def rank_shares(
    design: Design, agents: Ints, columns: slice, resamples: int, rng: np.random.Generator | None
) -> tuple[Floats, int, bool, float]:
    """Compute the rank shares of the chosen agents over cluster resamples; levels within 1e-9 share a rank."""
    width, mass, seen_mass = range(design.totals.shape[2])[columns], 0.0, 0.0
    shares, exact, count = np.zeros((agents.size, agents.size, len(width))), False, 0
    parts = design.parts(columns)
    rows = max(1, _BLOCK // (agents.size**2 * max(1, len(width))))
    for chunk in resamples_of(design.clusters, resamples, rng, "rank_shares"):
        exact, count = chunk.exact, count + chunk.size
        weights = np.ones(chunk.size) if chunk.mass is None else chunk.mass
        mass += float(weights.sum())
        for start, times in enumerate(chunk.blocks(rows)):
            inside = design.main_group(times.T)
            effects = design.effects(_weigh(times.T, parts[0]), _weigh(times.T, parts[1]), inside)
            complete = inside[:, agents].all(axis=1)
            weight = weights[start * rows : start * rows + rows][complete]
            seen_mass += float(weight.sum())
            settled = np.round(effects[complete][:, agents], 9)
            above = (settled[:, None] > settled[:, :, None]).sum(axis=2)
            tied = (settled[:, None] == settled[:, :, None]).sum(axis=2)
            share = weight[:, None, None] / tied
            ranks = ((share * ((above <= r) & (r < above + tied))).sum(axis=0) for r in range(agents.size))
            shares += np.stack(list(ranks), axis=1)
    return shares / seen_mass if seen_mass else shares, count, exact, 1 - seen_mass / mass


def rank_measurements(panel: Panel, rng: np.random.Generator) -> Iterator[Measurement]:
    """Measure ``rank.first``: each agent's share of first ranks over resamples (ValueBlindBench section 5.1)."""
    design = panel.design
    agents = np.flatnonzero(design.main_group(np.ones((1, design.clusters)))[0])
    method = "share of cluster resamples in which the least-squares level is the highest, ties shared"
    detail: dict[str, JSON] = {"resamples": 0, "exact": False, "left_out": 0.0}
    shares: list[list[list[float]]] = []
    group = panel.missing or (_ONE_AGENT if agents.size < 2 else "undefined: one cluster, needs two")
    if agents.size > 1 and design.clusters > 1:
        resamples = panel.study.inference.resamples or RESAMPLES
        totals, drawn, exact, apart = rank_shares(design, agents, panel.block(0), resamples, rng)
        left_out = apart if apart > 1e-9 else 0.0
        detail = {"resamples": drawn, "exact": exact, "left_out": left_out}
        method += f"; {'exact: all' if exact else 'multinomial:'} {drawn} resamples of {design.clusters} clusters"
        method += f", {left_out:.3%} of them left out: agents apart" if left_out else ""
        group = f"undefined: in {apart:.0%} of the resamples some agents share no cycle with the others"
        if not panel.missing and apart <= _MOST:
            shares = totals.transpose(2, 0, 1).tolist()
        group = panel.missing or group
    place = {a: i for i, a in enumerate(agents.tolist())}
    decisions = design.counts.sum(axis=1).astype(int).tolist()
    for k, name in enumerate(panel.names):
        for a, agent in enumerate(panel.table.agents):
            chances = shares[k][place[a]] if shares and a in place else []
            state = group if a in place else panel.missing or (_APART if decisions[a] else _NO_DECISION)
            yield panel.number("rank.first", {"dimension": name, "agent": agent}, chances[0] if chances else None,
                               (design.clusters, "clusters"), method, state,
                               {"shares": list(chances), **detail})  # fmt: skip


def single_measurements(panel: Panel, levels: Levels, tests: dict[Test, Floats]) -> Iterator[Measurement]:
    """Measure levels, rankings and discoveries of each judge alone and of the panel (ValueBlindBench section 5.4).

    Every judge is tested on the same trajectories, by a cluster t that weights clusters by their records, in a Holm
    family that includes the panel.
    """
    judges, agents = panel.table.judges, panel.table.agents
    for j, judge in enumerate(judges):
        yield from _agent_levels(panel, "single.level", levels, panel.block(j + 1), {"judge": judge}, ends=True)
    method = "Spearman correlation of agent levels under each judge alone"
    for a, b in combinations(range(len(judges)), 2):
        one, other = levels[0][:, panel.block(a + 1)], levels[0][:, panel.block(b + 1)]
        ranked = np.flatnonzero(np.isfinite(one[:, 0]))
        yield from _rank_correlations(panel, "single.rho", one, other, ranked, {"a": judges[a], "b": judges[b]}, method)
    pairs, d, alpha = len(panel.meetings), len(panel.table.dimensions), panel.study.inference.alpha
    met = any(cycles.size for _, cycles in panel.meetings)
    state = panel.missing or ("ok" if met else NEVER if pairs else _ONE_AGENT)
    method = f"contrasts with p <= {alpha:g} by a record-weighted cluster t after Holm over C(A,2)xD={pairs * d}"
    whole: list[str] = []
    # Mean paired differences [P, columns] of every pair, first minus second, NaN without a common cycle.
    gaps = np.full((pairs, panel.design.totals.shape[2]), np.nan)
    for pair, (sums, cycles) in enumerate(panel.meetings):
        if cycles.size:
            gaps[pair] = snap_to_zero(sums.sum(axis=0) / cycles.sum())
    for place, judge in enumerate(("", *judges)):
        rows, block = [], panel.block(place)
        if pairs and d:
            p = tests["cluster-t"][:, block][:, 1:]
            significant = holm_rows(p.reshape(1, -1)).reshape(p.shape) <= alpha + TOLERANCE
            for k, pair in np.argwhere(significant.T).tolist():
                high, low = pair_list(len(agents))[pair]
                if gaps[pair, block][k + 1] < 0:
                    high, low = low, high
                rows.append(f"{panel.table.dimensions[k]}|{agents[high]}|{agents[low]}")
        detail: dict[str, JSON] = {"family": pairs * d}
        if place:
            detail |= {"overlap": sum(name in whole for name in rows), "only": [n for n in rows if n not in whole]}
        else:
            detail["found"] = list(whole := rows)
        yield panel.number("single.discoveries" if place else "panel.discoveries", {"judge": judge} if place else {},
                           float(len(rows)) if state == "ok" else None, (pairs * d, "contrasts"), method, state,
                           detail)  # fmt: skip


def pair_tests(panel: Panel, rng: np.random.Generator) -> dict[Test, Floats]:
    """Compute p-values [P, columns] of every pair of agents by each source's own test, 1 without a common cycle."""
    plan, width, pairs = panel.study.inference, len(panel.names), len(panel.meetings)
    wide = width * (1 + len(panel.table.judges))
    met: dict[int, dict[int, tuple[Floats, Ints]]] = defaultdict(dict)
    p_values: dict[Test, Floats] = {"cluster-t": np.ones((pairs, wide))}
    for pair, (sums, cycles) in enumerate(panel.meetings):
        if cycles.size:
            met[cycles.size][pair] = sums[:, :width], cycles
            p_values["cluster-t"][pair] = t_test(sums[:, :wide], cycles).p
    drawn: dict[Test, Callable[..., list[TestSet]]] = {"bootstrap": bootstrap_tests, "sign-flip": flip_tests}
    for name, make in drawn.items():
        p_values[name] = np.ones((pairs, width))
        for _, some in sorted(met.items()):
            tests = make([*some.values()], plan.resamples or RESAMPLES, rng)
            p_values[name][[*some]] = [test.p for test in tests]
    return p_values
