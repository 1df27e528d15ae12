"""Studies drawn from worlds whose truth is known, a few hundred at a time, and what the decision rules say of them.

The tests of all pairs run on whole batches. The studies in which something was published go on, one by one, through the
functions that the claims use: recusal, leaving out judge families, equal length, distinct dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from assaymark.metrology import (
    RecusalTest,
    discriminant,
    headline_p,
    length_p,
    publish_orders,
    recusal_p,
    shaffer,
    shaffer_pooled,
    stability_state,
    table_contrasts,
)
from assaymark.metrology.contrasts import autocorrelations, effective_t, pair_differences, pairs_of

ALPHA = 0.05
SHARE = 0.8
FAMILIES = ("north", "south", "east")
WORDS = 7.3
"""Median log2 of the words of a text: about 160."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_SIZES = (1, 2, 4, 9, 20)
_CELLS_AT_ONCE = 2_000_000
_FEWEST_FOR_HEADLINES = 24


@dataclass(frozen=True)
class World:
    """The truth of a world: everything that a study is drawn from, in score points.

    Attributes
    ----------
    agents, clusters, cycles : int
        Cycles in each cluster; 0 makes clusters of very different sizes (1 to 20).
    levels : tuple of float
        True level above 3 of each agent, or of the first few (the others are at 0).
    on : tuple of float
        How much of the levels each dimension has; one entry: one dimension.
    centre : float
        Where the scale is used.
    spread : tuple of float
        How much each agent's own noise is multiplied; empty: all alike.
    skew : tuple of int
        Sign of the skewness of each agent's reactions to clusters; empty: normal.
    rho : tuple of float
        Lag-1 correlation of each agent's reactions to clusters, in time order; empty: clusters are exchangeable.
    slow : (share, correlation)
        Share of the variance of these reactions that swings slowly, and the lag-1 correlation of the swings.
    grades : bool
        Whole grades of 1 to 5.
    agent_families : tuple of str
        Family of each agent; empty: families that no judge has.
    own, odd, taste : float
        What judges add for agents of their own family; what the first judge adds for the first agent; the standard
        deviation of what each judge adds for each agent.
    slope : float
        Points per doubling of a text's length.
    longer : tuple of float
        Doublings by which each agent writes more than the last ones; empty: all alike.
    halo : float
        How far a judge's score of a dimension is its overall impression.
    cluster_sd, cycle_sd, judge_sd : float
        Agents' reactions to clusters, what is left of each text, and the judges' own noise.
    """

    agents: int = 4
    clusters: int = 12
    cycles: int = 3
    levels: tuple[float, ...] = ()
    on: tuple[float, ...] = (1.0,)
    centre: float = 3.0
    spread: tuple[float, ...] = ()
    skew: tuple[int, ...] = ()
    rho: tuple[float, ...] = ()
    slow: tuple[float, float] = (0.0, 0.0)
    grades: bool = False
    agent_families: tuple[str, ...] = ()
    own: float = 0.0
    odd: float = 0.0
    taste: float = 0.0
    slope: float = 0.0
    longer: tuple[float, ...] = ()
    halo: float = 0.0
    cluster_sd: float = 0.25
    cycle_sd: float = 0.5
    judge_sd: float = 0.5

    @cached_property
    def cluster(self) -> NDArray[np.int64]:
        """The cluster of each cycle."""
        sizes = np.resize(_SIZES, self.clusters) if self.cycles == 0 else np.full(self.clusters, self.cycles)
        return np.repeat(np.arange(self.clusters), sizes)

    @cached_property
    def kin(self) -> Bools:
        """Return the mask of judges that share a family with an agent [J, K]."""
        families = self.agent_families or ("",) * self.agents
        return np.array([[agent == judge for agent in families] for judge in FAMILIES])

    @property
    def truth(self) -> Floats:
        """True differences of all pairs, first agent minus second, on the aggregate and the dimensions [S, P]."""
        levels = np.pad(self.levels, (0, self.agents - len(self.levels)))
        first, second = pairs_of(self.agents)
        gaps = np.outer(self.on, levels[first] - levels[second])
        if len(gaps) == 1:
            return gaps
        # Where every dimension is the overall impression, no difference is one on a dimension.
        return np.concatenate([gaps.mean(axis=0, keepdims=True), np.where(self.halo == 1, 0.0, gaps)])

    @property
    def consecutive(self) -> bool:
        """True if clusters follow each other in time."""
        return bool(self.rho)

    @property
    def at_once(self) -> int:
        """Return the number of studies that are drawn together."""
        return max(1, min(250, _CELLS_AT_ONCE // (self.cluster.size * self.agents * 3 * len(self.on))))

    def draw(self, studies: int, rng: np.random.Generator) -> Drawn:
        """So many studies."""
        cycles, agents, dimensions = self.cluster.size, self.agents, len(self.on)
        spread = np.array(self.spread or (1.0,) * agents)[:, None]
        reactions = self._shared(rng, (studies, self.clusters, agents), np.array(self.skew or (0,) * agents))
        if self.rho:
            reactions = _in_time(reactions, np.array(self.rho)[:, None])
            share, rho = self.slow
            if share:
                swings = _in_time(rng.standard_normal(reactions.shape), np.full((agents, 1), rho))
                reactions = np.sqrt(1 - share) * reactions + np.sqrt(share) * swings
        quality = self.cluster_sd * reactions[:, self.cluster]
        quality += self.cycle_sd * self._shared(rng, (studies, cycles, agents))
        levels = np.outer(np.pad(self.levels, (0, agents - len(self.levels))), self.on)
        quality = quality * spread + levels + self.centre
        quality += 0.4 * rng.standard_normal((studies, cycles, 1, 1))  # how hard a cycle is
        words = rng.normal(WORDS + np.array(self.longer or (0.0,) * agents), 0.5, (studies, cycles, agents))
        words = np.log2(np.maximum(np.rint(2**words), 1))
        liking = self.own * self.kin.T + self.taste * rng.standard_normal((studies, 1, agents, 3))
        liking[..., 0, 0] += self.odd
        noise = rng.standard_normal((studies, cycles, agents, 3, dimensions))
        scores = quality[..., None, :] + (liking + self.slope * (words - WORDS)[..., None])[..., None]
        scores += self.judge_sd * noise
        if self.halo:
            impression = scores.mean(axis=-1, keepdims=True)
            own = 0.15 * rng.standard_normal(scores.shape)
            scores = (1 - self.halo) * scores + self.halo * (impression + own)
        if self.grades:
            scores = np.clip(np.floor(scores + 0.5), 1, 5)
        if dimensions > 1:
            scores = np.concatenate([scores.mean(axis=-1, keepdims=True), scores], axis=-1)
        return Drawn(self, scores, words)

    def _shared(
        self, rng: np.random.Generator, shape: tuple[int, ...], skew: NDArray[np.int64] | None = None
    ) -> Floats:
        """Unit noise [..., K, D], half of its variance common to the dimensions."""
        found = rng.standard_normal((*shape, 1))
        if skew is not None and skew.any():
            found = skew[:, None] * (rng.exponential(size=found.shape) - 1)
        if len(self.on) == 1:
            return found
        return np.asarray(np.sqrt(0.5) * (found + rng.standard_normal((*shape, len(self.on)))))


def _in_time(noise: Floats, rho: Floats) -> Floats:
    """First-order autoregressions of unit variance over the second axis, from unit noise."""
    found = noise.copy()
    for g in range(1, noise.shape[1]):
        found[:, g] = rho * found[:, g - 1] + np.sqrt(1 - rho**2) * noise[:, g]
    return found


@dataclass(frozen=True)
class Drawn:
    """Studies of a world: ``scores`` [B, N, K, J, S], the aggregate first, and log2 of the ``words`` [B, N, K]."""

    world: World
    scores: Floats
    words: Floats

    @cached_property
    def means(self) -> Floats:
        """Cluster means [B, S, G, J, K]."""
        starts = np.flatnonzero(np.diff(self.world.cluster, prepend=-1))
        sizes = np.bincount(self.world.cluster)
        sums = np.add.reduceat(self.scores, starts, axis=1)
        return (sums / sizes[:, None, None, None]).transpose(0, 4, 1, 3, 2)

    def tests(self, means: Floats) -> tuple[Floats, Floats]:
        """Gaps and p-values [..., P] of cluster means [..., G, K]."""
        if self.world.consecutive:
            serial = effective_t(pair_differences(means), means)
            return serial.gap, serial.p
        found = table_contrasts(means)
        return found.gap, found.p


@dataclass(frozen=True)
class Decisions:
    """The decisions of the rules on every pair [B, S, P], in the direction of ``gap``.

    ``plain`` is published on its own test; ``published`` also where judges stand aside for their own family; ``stable``
    also without each judge family; ``headline`` also at equal length, and with no other cap.
    """

    gap: Floats
    plain: Bools
    published: Bools
    stable: Bools
    headline: Bools


def decide(drawn: Drawn, *, false: bool = False) -> Decisions:
    """The decisions on every study in which an order is published on its own test; ``false``: one that is not true."""
    gap, p = drawn.tests(drawn.means.mean(axis=3))
    plain, first = procedure(drawn.world.agents, gap, p)
    published, stable, headline = (np.zeros_like(plain) for _ in range(3))
    counted = plain & (np.sign(gap) * drawn.world.truth <= 0) if false else plain
    for b in np.flatnonzero(counted.any(axis=(1, 2))).tolist():
        published[b], stable[b], headline[b] = followed(drawn, b, gap[b], p[b], plain[b], int(first[b]))
    return Decisions(gap, plain, published, stable, headline)


def procedure(agents: int, gap: Floats, p: Floats) -> tuple[Bools, NDArray[np.int64]]:
    """Return the published rankings of pairs [B, S, P], and who is first on the aggregate [B], -1 for nobody."""
    scales, pairs = p.shape[1:]
    level = ALPHA if scales == 1 else SHARE * ALPHA
    main = publish_orders(gap[:, 0], p[:, 0], level)
    published = np.zeros(p.shape, dtype=bool)
    published[:, 0] = main.published
    if scales > 1:
        rest = np.where(main.published.all(axis=1), ALPHA, ALPHA - level)
        # The step-down begins with all pairs of all dimensions.
        worth = p[:, 1:].min(axis=(1, 2)) * (scales - 1) * pairs <= rest + 1e-12
        for b in np.flatnonzero(worth).tolist():
            found = shaffer_pooled({str(s): p[b, s] for s in range(1, scales)}, agents)
            published[b, 1:] = (np.array([*found.values()]) <= rest[b] + 1e-12) & (gap[b, 1:] != 0)
    return published, main.first


def followed(drawn: Drawn, b: int, gap: Floats, p: Floats, plain: Bools, first: int) -> tuple[Bools, Bools, Bools]:
    """One study: what is published [S, P], of that what is stable, and of that what may be a headline."""
    world = drawn.world
    scales = len(p)
    ends = np.transpose(pairs_of(world.agents))
    keys = [(i, j) for i, j in ends.tolist()]
    floors = [{} if not world.kin.any() else recusal_p(means, world.kin, consecutive=world.consecutive)
              for means in drawn.means[b]]  # fmt: skip
    gaps = drawn.words[b].mean(axis=0)
    gaps = gaps[ends[:, 0]] - gaps[ends[:, 1]]

    def raised(s: int, lengths: Mapping[tuple[int, int], RecusalTest] | None) -> Floats:
        """The p-values of one scale: of publishing, or with lengths of headlines."""
        found = []
        for k, key in enumerate(keys):
            length = None if lengths is None else lengths[key]
            publish, headline = headline_p(p[s, k], gap[s, k], floors[s].get(key), length, gap=gaps[k])
            found.append(publish if lengths is None else headline)
        return np.array(found)

    gated = p if not world.kin.any() else np.array([raised(s, None) for s in range(scales)])
    published, winner = procedure(world.agents, gap[None], gated[None])
    published = published[0]
    stable = published & _survives(drawn, b, gap, plain | published, {first, int(winner[0])} - {-1})
    capped = _capped(drawn, b, gap)
    if not (stable & ~capped).any():
        return published, stable, np.zeros_like(stable)
    second = gated.copy()
    for s in range(scales if (stable & ~capped)[1:].any() else 1):
        scores = np.ascontiguousarray(drawn.scores[b, ..., s].transpose(0, 2, 1))
        lengths = length_p(scores, drawn.words[b], world.cluster, world.kin, consecutive=world.consecutive)
        second[s] = raised(s, lengths)
    return published, stable, stable & ~capped & procedure(world.agents, gap[None], second[None])[0][0]


def _survives(drawn: Drawn, b: int, gap: Floats, said: Bools, leaders: set[int]) -> Bools:
    """Return the mask of rankings in ``said`` [S, P] that hold without each judge family."""
    world, means = drawn.world, drawn.means[b]
    without = np.stack([np.delete(means, j, axis=2).mean(axis=2) for j in range(len(FAMILIES))])
    gaps, p = drawn.tests(without)
    adjusted = np.ones_like(p)
    for f in range(len(FAMILIES)):
        adjusted[f, 0] = shaffer(p[f, 0], world.agents)
        if said[1:].any():
            found = shaffer_pooled({str(s): p[f, s] for s in range(1, len(said))}, world.agents)
            adjusted[f, 1:] = [*found.values()]

    def stays(s: int, k: int, *more: Floats) -> bool:
        drops = {name: (gaps[f, s, k], *(column[f, s, k] for column in (p, *more))) for f, name in enumerate(FAMILIES)}
        return stability_state(gap[s, k], drops, alpha=ALPHA)[0] == "stable"

    kept = np.zeros_like(said)
    for s, k in np.argwhere(said).tolist():
        kept[s, k] = stays(s, k, adjusted)
    first, second = pairs_of(world.agents)
    for leader in leaders:  # its pairs need no correction among themselves, as long as all of them survive
        mine = np.flatnonzero((first == leader) | (second == leader))
        if all(stays(0, k) for k in mine.tolist()):
            kept[0, mine] = True
    return kept


def _capped(drawn: Drawn, b: int, gap: Floats) -> Bools:
    """Return the mask of rankings [S, P] that a cap other than length keeps from headlines, all else being good."""
    world = drawn.world
    capped = np.zeros_like(gap, dtype=bool)
    if world.consecutive:
        return capped | (world.clusters < _FEWEST_FOR_HEADLINES)
    for s, table in enumerate(drawn.means[b].mean(axis=2)):
        lags, limit = autocorrelations(table, lags=1)
        capped[s] = bool(lags and limit is not None and lags[0] > limit)
    if len(gap) > 1:
        records = drawn.scores[b][..., 1:].reshape(-1, len(FAMILIES), len(gap) - 1)
        found = discriminant(records, np.repeat(world.cluster, world.agents))
        distinct = [one.p_holm <= ALPHA + 1e-12 for one in found.dimensions] or [True] * (len(gap) - 1)
        others = (gap[1:].sum(axis=0) - gap[1:]) / (len(gap) - 2)
        capped[1:] |= ~np.array(distinct)[:, None] | (np.sign(gap[1:]) * (gap[1:] - others) < 0)
    return capped
