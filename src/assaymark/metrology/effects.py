"""How high does an agent score, when not every agent decided in every round?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csgraph

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.intervals import t_quantile


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
    """Least-squares agent levels beside cycle effects.

    Each score is taken as agent effect + cycle effect + noise. The level of an agent is its effect plus the mean
    effect of all cycles: what it would average had it decided in every one of them. When every agent did, this is the
    raw mean; when they did not, raw means confound agents with the difficulty of their rounds.

    Parameters
    ----------
    scores : float array of shape (n,)
        One score per decision.
    agents, cycles : sequences of n names or whole numbers
        Who decided, and in which cycle.

    Returns
    -------
    AgentEffects
        Agents in sorted order.

    Raises
    ------
    NotMeasurableError
        The agents fall into groups that share no cycle, directly or through others: no common level exists.
    InputError
        Empty, not finite, or lengths that differ.

    Examples
    --------
    >>> result = agent_effects([4.0, 3.0, 2.0, 5.0], ["a", "b", "b", "a"], ["easy", "easy", "hard", "hardest"])
    >>> [round(level, 3) for level in result.levels], result.raw_means
    ([4.0, 3.0], (4.5, 2.5))
    """
    values = checks.finite("agent_effects", "scores", scores)
    names, who = checks.labels("agent_effects", "agents", agents, values.size)
    rounds, when = checks.labels("agent_effects", "cycles", cycles, values.size)
    design = Design.of(values[:, None], who, when, np.zeros(len(rounds), dtype=np.int64), len(names))
    levels = design.levels(np.ones(len(rounds), dtype=bool))
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


@dataclass(frozen=True, slots=True)
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
        """Sums of ``scores`` [n, K]; ``cluster`` is given per cycle."""
        cycles, groups, columns = cluster.size, int(cluster.max(initial=0)) + 1, range(scores.shape[1])
        counts = np.bincount(agent * cycles + cycle, minlength=agents * cycles).reshape(agents, cycles)
        place = agent * groups + cluster[cycle]
        totals = [np.bincount(place, weights=scores[:, k], minlength=agents * groups) for k in columns]
        sums = [np.bincount(cycle, weights=scores[:, k], minlength=cycles) for k in columns]
        return cls(
            counts.astype(np.float64),
            np.stack(sums, axis=1).astype(np.float64, copy=False),
            np.stack(totals, axis=1).astype(np.float64, copy=False).reshape(agents, groups, len(columns)),
            cluster,
        )

    @property
    def clusters(self) -> int:
        """Number of clusters G."""
        return int(self.totals.shape[1])

    def groups(self) -> list[list[int]]:
        """Agents that share cycles, directly or through others, largest group first (then most decisions)."""
        return _groups(self.counts)

    def levels(self, keep: Bools) -> Floats:
        """Level of each agent [A, K] from the kept clusters' cycles; NaN outside the largest connected group."""
        found = np.full((self.totals.shape[0], self.totals.shape[2]), np.nan)
        counts = self.counts[:, keep]
        groups = _groups(counts)
        if not groups:
            return found
        inside = np.array(groups[0])
        used = counts[inside].sum(axis=0) > 0
        counts, sums = counts[np.ix_(inside, used)], self.cycle_sums[keep][used]
        size = counts.sum(axis=0)
        present = np.unique(self.cluster[keep][used])
        scaled = counts / size
        matrix = np.diag(counts.sum(axis=1)) - scaled @ counts.T
        right = self.totals[np.ix_(inside, present)].sum(axis=1) - scaled @ sums
        # The effects are free up to a constant; the matrix of ones pins their sum to zero.
        effects = np.linalg.solve(matrix + 1.0, right)
        found[inside] = effects + ((sums - counts.T @ effects) / size[:, None]).mean(axis=0)
        return found

    def levels_with_ends(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Levels [A, K] with jackknife ends, NaN where a level or an interval does not exist.

        Clusters are left out one at a time. Degrees of freedom are the agent's own clusters minus one, because
        clusters it never decided in say little about it.
        """
        everything = np.ones(self.cluster.size, dtype=bool)
        centre = self.levels(everything)
        g = self.clusters
        if g < 2:
            return centre, np.full_like(centre, np.nan), np.full_like(centre, np.nan)
        without = np.stack([self.levels(self.cluster != k) for k in range(g)])
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


def _groups(counts: Floats) -> list[list[int]]:
    """Connected groups of agents that decided at all, by size, then decisions, then first agent."""
    active = np.flatnonzero(counts.sum(axis=1))
    if not active.size:
        return []
    met = counts[active] @ counts[active].T > 0
    number, label = csgraph.connected_components(met, directed=False)
    groups = [active[label == k].tolist() for k in range(number)]
    return sorted(groups, key=lambda group: (-len(group), -counts[group].sum(), group[0]))
