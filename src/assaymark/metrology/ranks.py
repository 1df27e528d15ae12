"""Would the same agents lead in other weeks? Shares of cluster resamples in which an agent takes each rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from assaymark.metrology.bootstrap import resamples_of
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import holm_rows
from assaymark.metrology.effects import Design
from assaymark.metrology.measure_agents import Levels, agent_levels, no_level, no_rho
from assaymark.metrology.paired import NEVER, PairTests
from assaymark.metrology.panel import Panel
from assaymark.metrology.stability import spearman_columns
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
    """How the ranks of the chosen agents come out when clusters are drawn again."""
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
            # Weight [A, A, K] with which each agent takes each rank, from levels [R, A, K].
            levels = effects[whole][:, agents]
            settled = np.round(levels, 9)
            above = (settled[:, None] > settled[:, :, None]).sum(axis=2)
            tied = (settled[:, None] == settled[:, :, None]).sum(axis=2)
            share = weight[:, None, None] / tied
            ranks = range(levels.shape[1])
            found += np.stack([(share * ((above <= r) & (r < above + tied))).sum(axis=0) for r in ranks], axis=1)
    return RankShares(found / kept if kept else found, count, exact, 1 - kept / mass)


def rank_measurements(panel: Panel, rng: np.random.Generator) -> Iterator[Measurement]:
    """``rank.first`` of every name and agent: its share of first ranks, with its share of every rank beside it."""
    design, study = panel.design, panel.study
    inside = design.main_group(np.ones((1, design.clusters)))[0]
    agents, found = np.flatnonzero(inside), None
    if agents.size > 1 and design.clusters > 1:
        resamples = study.inference.resamples or _RESAMPLES
        found = rank_shares(design, agents, slice(0, len(panel.names)), resamples=resamples, rng=rng)
    # Why the agents on one scale have no rank shares, or ``ok``.
    if panel.missing:
        group = panel.missing
    elif agents.size < 2:
        group = "undefined: one agent, needs two"
    elif found is None:
        group = "undefined: one cluster, needs two"
    elif found.left_out > _MOST:
        group = f"undefined: in {found.left_out:.0%} of the resamples some agents share no cycle with the others"
    else:
        group = "ok"
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


# What each judge would have said alone: the cheap protocol that a panel is held against.


_TOLERANCE = 1e-9


def single_measurements(panel: Panel, levels: Levels, tests: PairTests) -> Iterator[Measurement]:
    """Levels, rankings and discoveries of each judge alone, and the panel's discoveries beside them."""
    for j, judge in enumerate(panel.table.judges):
        yield from agent_levels(panel, "single.level", levels, panel.alone(j), {"judge": judge}, ends=True)
    for a, b in combinations(range(len(panel.table.judges)), 2):
        # Spearman correlation of two judges' rankings of the agents, of every name.
        one, other = levels.value[:, panel.alone(a)], levels.value[:, panel.alone(b)]
        ranked = np.flatnonzero(np.isfinite(one[:, 0]))
        rho = spearman_columns(one[ranked], other[ranked]) if ranked.size > 1 else [None] * len(panel.names)
        for name, value in zip(panel.names, rho, strict=True):
            yield panel.measure(
                "single.rho",
                {"dimension": name, "a": panel.table.judges[a], "b": panel.table.judges[b]},
                value=value,
                n=ranked.size,
                n_of="agents",
                method="Spearman correlation of agent levels under each judge alone",
                state="ok" if value is not None else no_rho(panel, ranked.size),
            )
    yield from _discoveries(panel, tests)


def _discoveries(panel: Panel, tests: PairTests) -> Iterator[Measurement]:
    """How many contrasts of the dimensions each judge alone, and the panel, find significant after Holm."""
    whole = _found(panel, tests, slice(0, len(panel.names)))
    yield _count(panel, "panel.discoveries", {}, whole, {"found": list(whole)})
    for j, judge in enumerate(panel.table.judges):
        own = _found(panel, tests, panel.alone(j))
        detail: dict[str, JSON] = {
            "overlap": sum(name in whole for name in own),
            "only": [name for name in own if name not in whole],
        }
        yield _count(panel, "single.discoveries", {"judge": judge}, own, detail)


def _found(panel: Panel, tests: PairTests, block: slice) -> dict[str, None]:
    """The significant contrasts of one block of columns as ``dimension|high|low``, by dimension and pair."""
    if not panel.meetings or not panel.table.dimensions:
        return {}
    p = tests.p("cluster-t", block.stop)[:, block][:, 1:]
    found = holm_rows(p.reshape(1, -1)).reshape(p.shape) <= panel.study.inference.alpha + _TOLERANCE
    differences, agents = panel.differences[:, block], panel.table.agents
    listed: dict[str, None] = {}
    for k, pair in np.argwhere(found.T).tolist():
        meeting = panel.meetings[pair]
        high, low = meeting.first, meeting.second
        if differences[pair, k + 1] < 0:
            high, low = low, high
        listed[f"{panel.table.dimensions[k]}|{agents[high]}|{agents[low]}"] = None
    return listed


def _count(
    panel: Panel, name: str, labels: dict[str, str], found: dict[str, None], detail: dict[str, JSON]
) -> Measurement:
    pairs, d, alpha = len(panel.meetings), len(panel.table.dimensions), panel.study.inference.alpha
    state = panel.missing
    if state is None and not pairs:
        state = "undefined: one agent, needs two"
    elif state is None and not any(meeting.n for meeting in panel.meetings):
        state = NEVER
    return panel.measure(
        name,
        labels,
        value=None if state else float(len(found)),
        n=pairs * d,
        n_of="contrasts",
        method=f"contrasts with p <= {alpha:g} by a record-weighted cluster t after Holm over C(A,2)xD={pairs * d}",
        state=state or "ok",
        detail={"family": pairs * d, **detail},
    )
