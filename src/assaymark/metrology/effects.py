"""How high does an agent score, when not every agent decided in every round?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.bootstrap import SMALL_PRODUCT
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.quantiles import t_quantile


@dataclass(frozen=True, slots=True)
class AgentEffects:
    """Least-squares level of each agent, its raw mean beside it, and the number of its decisions."""

    agents: tuple[Any, ...]
    levels: tuple[float, ...]
    raw_means: tuple[float, ...]
    decisions: tuple[int, ...]
    cycles: int


def agent_effects(
    scores: ArrayLike, agents: Sequence[Any] | NDArray[Any], cycles: Sequence[Any] | NDArray[Any]
) -> AgentEffects:
    """Least-squares agent levels beside cycle effects."""
    values = checks.finite("agent_effects", "scores", scores)
    names, who = checks.labels("agent_effects", "agents", agents, values.size)
    rounds, when = checks.labels("agent_effects", "cycles", cycles, values.size)
    design = Design.of(values[:, None], who, when, np.zeros(len(rounds), dtype=np.int64), len(names))
    levels = design.levels(np.ones((1, 1)))[0]
    if np.isnan(levels).any():
        raise NotMeasurableError(
            f"the agents form {len(design.groups())} groups without common cycles "
            f"({'; '.join(', '.join(str(names[a]) for a in group) for group in design.groups())}): no common level"
        )
    counts = design.counts.sum(axis=1)
    raw = design.totals.sum(axis=1)[:, 0] / counts
    return AgentEffects(
        names, tuple(levels[:, 0].tolist()), tuple(raw.tolist()), tuple(int(k) for k in counts), len(rounds)
    )


@dataclass(frozen=True)
class Design:
    """Sums of K scores by agent and cycle, from which levels follow for any subset of clusters.

    ``counts`` [A, C] decisions, ``cycle_sums`` [C, K], ``totals`` [A, G, K] and ``cluster`` [C] the cluster of a cycle.
    """

    counts: Floats
    cycle_sums: Floats
    totals: Floats
    cluster: Ints

    @classmethod
    def of(cls, scores: Floats, agent: Ints, cycle: Ints, cluster: Ints, agents: int) -> Design:
        """Sums of ``scores`` [n, K]; ``cluster`` is given per cycle. Clusters without a score are none."""
        used, own = np.unique(cluster[cycle], return_inverse=True)
        cluster = np.zeros(cluster.size, dtype=np.int64)
        cluster[cycle] = own
        cycles, groups, width = cluster.size, max(1, used.size), scores.shape[1]
        counts = np.bincount(agent * cycles + cycle, minlength=agents * cycles).reshape(agents, cycles)
        place = agent * groups + cluster[cycle]
        return cls(
            counts.astype(np.float64),
            group_sums(scores, cycle, cycles),
            group_sums(scores, place, agents * groups).reshape(agents, groups, width),
            cluster,
        )

    @property
    def clusters(self) -> int:
        """Number of clusters G."""
        return int(self.totals.shape[1])

    def groups(self) -> list[list[int]]:
        """Agents that share cycles, directly or through others, largest group first (then most decisions)."""
        (reached,) = self._reached(np.ones((1, self.clusters)))
        found = {tuple(np.flatnonzero(row).tolist()) for row in reached if row.any()}
        decisions = self.counts.sum(axis=1)
        return [list(g) for g in sorted(found, key=lambda g: (-len(g), -decisions[list(g)].sum(), g[0]))]

    def levels(self, times: Floats) -> Floats:
        """Level of each agent [R, A, K] when each cluster counts ``times`` [R, G] over; NaN outside the main group."""
        parts = self.parts()
        inside = self.main_group(times)
        held = inside[:, :, None]
        effects = self._effects(times, parts, inside)
        # Cycles belong to one group only, so what they add is shared out among their agents.
        weight = np.where(inside, times @ parts.seats, 0.0)
        means = np.where(held, _weigh(times, parts.cycle_means), 0.0) - weight[:, :, None] * effects
        with np.errstate(invalid="ignore"):
            shift = means.sum(axis=1) / weight.sum(axis=1)[:, None]
        return np.where(held, effects + shift[:, None, :], np.nan)

    def effects(self, times: Floats, parts: Parts) -> tuple[Floats, Bools]:
        """Agent effects [R, A, K], which rank as `levels` do, and who is in the main group [R, A]."""
        inside = self.main_group(times)
        return self._effects(times, parts, inside), inside

    def main_group(self, times: Floats) -> Bools:
        """Who belongs to the largest group of agents that share cycles [R, A]; nobody where nobody decided."""
        if not self.counts.shape[0]:
            return np.zeros((len(times), 0), dtype=bool)
        if self._met.all():
            return np.repeat((times > 0).any(axis=1, keepdims=True), self.counts.shape[0], axis=1)
        reached = self._reached(times)
        own = times @ self._decisions
        most = reached.sum(axis=2) * (own.sum(axis=1, keepdims=True) + 1) + (reached @ own[:, :, None])[:, :, 0]
        # The first of the agents with the largest group stands for it.
        return np.asarray(reached[np.arange(len(times)), most.argmax(axis=1)])

    @cached_property
    def _decisions(self) -> Floats:
        """Decisions of each agent in each cluster [G, A]."""
        return np.stack([self.counts[:, self.cluster == g].sum(axis=1) for g in range(self.clusters)])

    @cached_property
    def _met(self) -> Floats:
        """Whether two agents share a cycle of a cluster [G, A, A], as 0 or 1."""
        counts = (self.counts[:, self.cluster == g] for g in range(self.clusters))
        return np.stack([c @ c.T > 0 for c in counts]).astype(np.float64)

    def _reached(self, times: Floats) -> Bools:
        """Which agents are on one scale, directly or through others [R, A, A], in the clusters that count."""
        reached = _weigh((times > 0).astype(np.float64), self._met) > 0
        while (further := _through(reached)).sum() > reached.sum():
            reached = further
        return reached

    def parts(self, columns: slice = slice(None)) -> Parts:
        """What each cluster adds to the normal equations of the chosen columns."""
        size = np.maximum(self.counts.sum(axis=0), 1)
        share = self.counts / size
        matrix, right, means, seats = [], [], [], []
        for g in range(self.clusters):
            own = self.cluster == g
            counts, scaled, sums = self.counts[:, own], share[:, own], self.cycle_sums[own, columns]
            matrix.append(np.diag(counts.sum(axis=1)) - scaled @ counts.T)
            right.append(self.totals[:, g, columns] - scaled @ sums)
            means.append(scaled @ (sums / size[own, None]))
            seats.append(scaled.sum(axis=1))
        return Parts(np.stack(matrix), np.stack(right), np.stack(means), np.stack(seats))

    def _effects(self, times: Floats, parts: Parts, inside: Bools) -> Floats:
        """Solutions of the weighted normal equations, summing to 0 in the main group and 0 outside it."""
        both = inside[:, :, None] & inside[:, None, :]
        # The effects are free up to a constant; a one in every cell of the group pins their sum to zero.
        matrix = np.where(both, _weigh(times, parts.matrix) + 1.0, 0.0)
        outside = np.arange(inside.shape[1])
        matrix[:, outside, outside] += ~inside
        right = np.where(inside[:, :, None], _weigh(times, parts.right), 0.0)
        return np.asarray(np.linalg.solve(matrix, right))

    def levels_with_ends(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Levels [A, K] with jackknife ends, NaN where a level or an interval does not exist."""
        g = self.clusters
        centre, *others = self.levels(np.concatenate([np.ones((1, g)), 1 - np.eye(g)]))
        if g < 2:
            return centre, np.full_like(centre, np.nan), np.full_like(centre, np.nan)
        without = np.stack(others)
        error = np.sqrt((g - 1) / g * np.square(without - without.mean(axis=0)).sum(axis=0))
        half = self._quantiles(level)[:, None] * error
        return centre, centre - half, centre + half

    def own_clusters(self) -> Ints:
        """In how many clusters each agent decided [A]."""
        inside = self.cluster == np.arange(self.clusters)[:, None]
        return np.asarray((self.counts @ inside.T > 0).sum(axis=1), dtype=np.int64)

    def _quantiles(self, level: float) -> Floats:
        """Student's t quantile of each agent, NaN where it decided in one cluster only."""
        own = self.own_clusters()
        return np.array([t_quantile(0.5 + level / 2, int(k) - 1) if k > 1 else np.nan for k in own])


def group_sums(values: Floats, codes: Ints, groups: int) -> Floats:
    """Sums [groups, K] of the rows of ``values`` [n, K] by their code."""
    counts = np.bincount(codes, minlength=groups)
    found = np.zeros((groups, values.shape[1]))
    if counts.max(initial=0) <= 1:
        found[codes] = values
        return found
    present = np.flatnonzero(counts)
    order = np.argsort(codes, kind="stable")
    found[present] = np.add.reduceat(values[order], (np.cumsum(counts) - counts)[present], axis=0)
    return found


@dataclass(frozen=True, slots=True)
class Parts:
    """Per cluster: normal equations [G, A, A] and their right sides [G, A, K]; cycle means [G, A, K] and the number of
    cycles [G, A], both shared out among the agents of each cycle."""

    matrix: Floats
    right: Floats
    cycle_means: Floats
    seats: Floats


def _weigh(times: Floats, parts: Floats) -> Floats:
    """Sums [R, ...] of the clusters' parts [G, ...], each counted ``times`` [R, G]."""
    flat = parts.reshape(parts.shape[0], -1)
    rows = max(1, SMALL_PRODUCT // max(1, flat.size))
    sums = [times[start : start + rows] @ flat for start in range(0, len(times), rows)]
    return np.concatenate(sums).reshape(len(times), *parts.shape[1:])


def _through(reached: Bools) -> Bools:
    """Which agents reach each other in at most two steps."""
    steps = reached.astype(np.float32)
    return np.asarray(steps @ steps > 0)
