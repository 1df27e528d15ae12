"""Would the same agents lead in other weeks? Shares of cluster resamples in which an agent takes each rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.effects import Design
from assaymark.metrology.measure_agents import no_level
from assaymark.metrology.panel import Panel
from assaymark.metrology.resampling import resamples_of
from assaymark.records import JSON, Measurement

_RESAMPLES = 10_000  # a share of them is known to a hundredth, and no error rate rests on it
_BLOCK = 1 << 19  # comparisons of two agents held in memory at a time
_MOST = 0.5  # when more of the resamples than this leave agents apart, the rest is no picture of all


@dataclass(frozen=True, slots=True)
class RankShares:
    """Shares [A, A, K] of the resamples in which an agent (first axis) takes a rank (second), ties shared out.

    ``left_out`` is the share of resamples in which some of the agents had no common level, and which do not count.
    """

    shares: Floats
    resamples: int
    exact: bool
    left_out: float


def rank_shares(
    design: Design, agents: Ints, columns: slice, *, resamples: int, rng: np.random.Generator | None
) -> RankShares:
    """How the ranks of the chosen agents come out when clusters are drawn again.

    Levels are least-squares effects beside cycle effects, fitted to each resample; levels within 1e-9 tie and share
    their ranks equally. Up to 8 clusters every resample is enumerated with its weight.

    Parameters
    ----------
    design : Design
        Sums of scores by agent and cycle.
    agents : int array of shape (A,)
        The agents that are ranked; they have a common level in the full data.
    columns : slice
        Which K columns of the design.
    resamples : int
        Draws when there are more than 8 clusters.
    rng : numpy Generator, optional
        Required above 8 clusters.

    Returns
    -------
    RankShares
        Shares of each agent sum to 1, and so do those of each rank, unless every resample was left out: then all are 0.

    Examples
    --------
    >>> agent, cycle = (axis.ravel() for axis in np.indices((2, 3)))
    >>> scores = np.array([[3.0], [3.0], [3.0], [2.0], [2.0], [4.0]])
    >>> design = Design.of(scores, agent, cycle, np.arange(3), 2)
    >>> found = rank_shares(design, np.arange(2), slice(0, 1), resamples=1000, rng=None)
    >>> found.shares[:, :, 0].round(4).tolist()  # the first agent trails where the third cluster comes up twice or more
    [[0.7407, 0.2593], [0.2593, 0.7407]]
    """
    width, mass, kept = range(design.totals.shape[2])[columns], 0.0, 0.0
    found, exact, count = np.zeros((agents.size, agents.size, len(width))), False, 0
    parts = design.parts(columns)
    rows = max(1, _BLOCK // (agents.size**2 * max(1, len(width))))
    for chunk in resamples_of(design.clusters, resamples, rng, "rank_shares"):
        exact, count = chunk.exact, count + chunk.size
        weights = np.ones(chunk.size) if chunk.mass is None else chunk.mass
        mass += float(weights.sum())
        for start, times in enumerate(chunk.blocks(rows)):
            effects, inside = design.effects(times.T, parts)
            whole = inside[:, agents].all(axis=1)
            weight = weights[start * rows : start * rows + rows][whole]
            kept += float(weight.sum())
            found += _ranked(effects[whole][:, agents], weight)
    return RankShares(found / kept if kept else found, count, exact, 1 - kept / mass)


def _ranked(levels: Floats, weight: Floats) -> Floats:
    """Weight [A, A, K] with which each agent takes each rank, from levels [R, A, K]."""
    settled = np.round(levels, 9)
    above = (settled[:, None] > settled[:, :, None]).sum(axis=2)
    tied = (settled[:, None] == settled[:, :, None]).sum(axis=2)
    share = weight[:, None, None] / tied
    ranks = range(levels.shape[1])
    return np.stack([(share * ((above <= r) & (r < above + tied))).sum(axis=0) for r in ranks], axis=1)


def rank_measurements(panel: Panel, rng: np.random.Generator) -> Iterator[Measurement]:
    """``rank.first`` of every name and agent: its share of first ranks, with its share of every rank beside it.

    1.00 says that the agent led in every set of clusters that could have been drawn from these (ValueBlindBench
    section 5.1). It describes these clusters. With few of them it is no test, and equal agents reach high shares.
    """
    design, study = panel.design, panel.study
    inside = design.main_group(np.ones((1, design.clusters)))[0]
    agents, found = np.flatnonzero(inside), None
    if agents.size > 1 and design.clusters > 1:
        resamples = study.inference.resamples or _RESAMPLES
        found = rank_shares(design, agents, slice(0, len(panel.names)), resamples=resamples, rng=rng)
    group = _group_state(panel, agents.size, found)
    shares = found.shares.transpose(2, 0, 1).tolist() if found else []
    place = {a: i for i, a in enumerate(agents.tolist())}
    decisions = design.counts.sum(axis=1).astype(int).tolist()
    for k, name in enumerate(panel.names):
        for a, agent in enumerate(panel.table.agents):
            state = group if a in place else panel.missing or no_level(decisions[a])
            own = shares[k][place[a]] if state == "ok" else []
            yield panel.measure(
                "rank.first",
                {"dimension": name, "agent": agent},
                value=own[0] if own else None,
                n=design.clusters,
                n_of="clusters",
                method=_method(found, design.clusters),
                state=state,
                detail=_detail(own, found),
            )


def _group_state(panel: Panel, agents: int, found: RankShares | None) -> str:
    """Why the agents on one scale have no rank shares, or ``ok``."""
    if panel.missing:
        return panel.missing
    if agents < 2:
        return "undefined: one agent, needs two"
    if found is None:
        return "undefined: one cluster, needs two"
    if found.left_out > _MOST:
        return f"undefined: in {found.left_out:.0%} of the resamples some agents share no cycle with the others"
    return "ok"


def _method(found: RankShares | None, clusters: int) -> str:
    method = "share of cluster resamples in which the least-squares level is the highest, ties shared"
    if found is None:
        return method
    kind = "exact: all" if found.exact else "multinomial:"
    method = f"{method}; {kind} {found.resamples} resamples of {clusters} clusters"
    return f"{method}, {found.left_out:.3%} of them left out: agents apart" if found.left_out > 1e-9 else method


def _detail(shares: list[float], found: RankShares | None) -> dict[str, JSON]:
    if found is None:
        return {"shares": [], "resamples": 0, "exact": False, "left_out": 0.0}
    left_out = found.left_out if found.left_out > 1e-9 else 0.0
    return {"shares": list(shares), "resamples": found.resamples, "exact": found.exact, "left_out": left_out}
