"""Measurements of the agents: levels, paired contrasts, and both of them without each judge family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from assaymark.metrology.checks import Floats
from assaymark.metrology.contrasts import holm_rows
from assaymark.metrology.measure_kappa import ONE_FAMILY
from assaymark.metrology.pairwise import NEVER, TESTS, PairTests, adjusted
from assaymark.metrology.panel import Meeting, Panel
from assaymark.metrology.planning import planning_mde
from assaymark.metrology.stability import spearman_columns
from assaymark.records import AGGREGATE, JSON, Measurement

POINTS = "rubric points"


# --- levels ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Levels:
    """Least-squares levels [A, columns] with their jackknife ends, NaN where there is none."""

    value: Floats
    low: Floats
    high: Floats


def levels_of(panel: Panel) -> Levels:
    """Levels of all agents in every column of the panel."""
    return Levels(*panel.design.levels_with_ends(panel.study.inference.level))


def level_measurements(panel: Panel, levels: Levels) -> Iterator[Measurement]:
    """Level of each agent, with and without each family; rank correlations; and the part that length plays."""
    table, design = panel.table, panel.design
    counts, own = design.counts.sum(axis=1), design.own_clusters().tolist()
    raw = (design.totals.sum(axis=1) / np.maximum(counts, 1)[:, None]).tolist()
    whole = slice(0, len(panel.names))
    more = [
        [{"raw_mean": raw[a][k] if n else None, "clusters": own[a]} for a, n in enumerate(counts.tolist())]
        for k in range(len(panel.names))
    ]
    yield from agent_levels(panel, "score.effect", levels, whole, {}, ends=True, details=more)
    for family in dict.fromkeys(table.families):
        yield from _without(panel, family, levels)
    yield _length(panel)


def agent_levels(
    panel: Panel,
    name: str,
    levels: Levels,
    block: slice,
    labels: dict[str, str],
    *,
    ends: bool,
    details: list[list[dict[str, JSON]]] | None = None,
) -> Iterator[Measurement]:
    """The levels of one block of columns, of every name and agent, or why an agent has none."""
    counts = panel.design.counts.sum(axis=1).astype(int).tolist()
    value, low, high = (part[:, block].tolist() for part in (levels.value, levels.low, levels.high))
    method = "least-squares agent effect beside cycle effects, plus the mean cycle effect"
    inner = panel.study.inference.level
    for k, dimension in enumerate(panel.names):
        for a, agent in enumerate(panel.table.agents):
            known, between = math.isfinite(value[a][k]), ends and math.isfinite(low[a][k])
            yield panel.measure(
                name,
                {"dimension": dimension, **labels, "agent": agent},
                value=value[a][k] if known else None,
                n=counts[a],
                n_of="decisions",
                method=f"{method}; jackknife over clusters" if between else method,
                state="ok" if known else no_level(counts[a]),
                low=low[a][k] if between else None,
                high=high[a][k] if between else None,
                level=inner if between else None,
                unit=POINTS,
                detail=details[k][a] if details else {},
            )


def no_level(decisions: int) -> str:
    """Why an agent has no level, in words."""
    if not decisions:
        return "undefined: no trajectory with a usable score from every judge"
    return "disconnected: shares no cycle with the main group of agents, directly or through others"


def _without(panel: Panel, family: str, levels: Levels) -> Iterator[Measurement]:
    """Levels without one judge family, and how far the order of agents moves."""
    method = "Spearman correlation of agent levels with and without the family"
    agents = panel.table.agents
    if family not in panel.drops:
        for name in panel.names:
            labels = {"dimension": name, "dropped": family}
            common = {"n": len(agents), "n_of": "agents", "method": method}
            yield panel.measure("lofo.rho", labels, value=None, state=ONE_FAMILY, **common)
        return
    block = panel.block(family)
    full, without = levels.value[:, : len(panel.names)], levels.value[:, block]
    ranked = np.flatnonzero(np.isfinite(full[:, 0]))
    settled = np.round(-without[ranked], 9).T.tolist()
    rho = spearman_columns(full[ranked], without[ranked]) if ranked.size > 1 else [None] * len(panel.names)
    for k, name in enumerate(panel.names):
        order = [agents[a] for _, a in sorted(zip(settled[k], ranked.tolist(), strict=True))]
        yield panel.measure(
            "lofo.rho",
            {"dimension": name, "dropped": family},
            value=rho[k],
            n=ranked.size,
            n_of="agents",
            method=method,
            state="ok" if rho[k] is not None else no_rho(panel, ranked.size),
            detail={"order": order},
        )
    yield from agent_levels(panel, "lofo.effect", levels, block, {"dropped": family}, ends=False)


def no_rho(panel: Panel, agents: int) -> str:
    """Why two rankings of so many agents have no correlation, in words."""
    if agents < 2:
        return panel.missing or "undefined: one agent, needs two"
    return f"undefined: all {agents} agents are tied"


def _length(panel: Panel) -> Measurement:
    """Correlation of the length of the judged text with the panel's aggregate."""
    lengths, scores = panel.table.lengths, panel.whole[:, 0]
    state = panel.missing
    if state is None and lengths is None:
        state = "undefined: lengths of the judged texts were not given"
    value = None
    if state is None and lengths is not None:
        if scores.size < 3 or min(np.ptp(scores), np.ptp(lengths)) <= 1e-9:
            state = "undefined: fewer than three trajectories, or no variation"
        else:
            value = float(np.corrcoef(lengths, scores)[0, 1])
    return panel.measure(
        "score.length_correlation",
        {"dimension": AGGREGATE},
        value=value,
        n=panel.table.n,
        n_of="trajectories",
        method="Pearson correlation of token count and panel score",
        state=state or "ok",
    )


# --- contrasts ------------------------------------------------------------------------------------------------------


def contrast_measurements(panel: Panel, tests: PairTests) -> Iterator[Measurement]:
    """Every pair of agents on every name, corrected for all of them; who can be called first; what can be detected."""
    width, d, pairs = len(panel.names), len(panel.table.dimensions), len(panel.meetings)
    sizes = [pairs, *[pairs * d] * d]
    if pairs:
        numbers = _numbers(panel, tests, sizes)
        for k in range(width):
            for pair in range(pairs):
                yield _contrast(panel, tests, numbers, pair, k)
                yield from _lofo_contrasts(panel, numbers.difference[pair], pair, k)
        yield from _firsts(panel, tests)
    for k in range(width):
        yield _mde(panel, k, sizes[k])


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The parts of all contrasts as plain lists [P][K], because picking floats out of arrays one by one is slow."""

    difference: list[list[float]]
    low: list[list[float]]
    high: list[list[float]]
    p: dict[str, list[list[float]]]
    holm: dict[str, list[list[float]]]
    families: list[str]
    mde: list[list[float | None]]
    sums: list[list[list[float]]]


def _numbers(panel: Panel, tests: PairTests, sizes: list[int]) -> _Numbers:
    width, pairs = len(panel.names), range(len(panel.meetings))
    p: dict[str, Floats] = {"gate": tests.gate_p(width)}
    p.update({test: tests.p(test, width) for test in TESTS})
    gated = [tests.gated(pair) for pair in pairs]
    # Balanced records have one number of common cycles, and all dimensions one size of family.
    wanted = {(meeting.n, size) for meeting in panel.meetings for size in sizes}
    mde = {key: planning_mde(panel.study, *key) for key in wanted}
    d = len(panel.table.dimensions)
    return _Numbers(
        difference=panel.differences.tolist(),
        low=[one.low[:width].tolist() for one in gated],
        high=[one.high[:width].tolist() for one in gated],
        p={name: values.tolist() for name, values in p.items()},
        holm={name: adjusted(values).tolist() for name, values in p.items()},
        families=[f"aggregate C(A,2)={len(pairs)}", *[f"dimensions C(A,2)xD={len(pairs) * d}"] * d],
        mde=[[mde[meeting.n, size] for size in sizes] for meeting in panel.meetings],
        sums=[meeting.sums[:, :width].T.tolist() for meeting in panel.meetings],
    )


def _contrast(panel: Panel, tests: PairTests, numbers: _Numbers, pair: int, column: int) -> Measurement:
    meeting = panel.meetings[pair]
    difference = numbers.difference[pair][column]
    turn = -1.0 if difference < 0 else 1.0
    detail: dict[str, JSON] = {
        "p": numbers.p["gate"][pair][column],
        "p_holm": numbers.holm["gate"][pair][column],
        "p_holm_family": numbers.families[column],
        "gating": tests.gates[pair],
        "p_cluster_t": numbers.p["cluster-t"][pair][column],
        "p_bootstrap": numbers.p["bootstrap"][pair][column],
        "p_sign_flip": numbers.p["sign-flip"][pair][column],
        "p_holm_cluster_t": numbers.holm["cluster-t"][pair][column],
        "p_holm_bootstrap": numbers.holm["bootstrap"][pair][column],
        "p_holm_sign_flip": numbers.holm["sign-flip"][pair][column],
        "clusters": int(meeting.clusters.size),
        "cluster_sums": _cluster_sums(panel, meeting, numbers.sums[pair][column], turn),
    }
    labels = {"dimension": panel.names[column], **_sides(panel, meeting, turn)}
    if not meeting.n:
        method = "paired difference within common cycles"
        common: dict[str, Any] = {"n": 0, "n_of": "common cycles", "method": method, "unit": POINTS}
        detail |= {"mde": None, "in_mde": None}
        return panel.measure("contrast", labels, value=None, state=NEVER, detail=detail, **common)
    value = turn * difference + 0.0  # no minus zero
    low, high = sorted((turn * numbers.low[pair][column], turn * numbers.high[pair][column]))
    known = math.isfinite(low)
    mde = numbers.mde[pair][column]
    detail |= {"mde": mde, "in_mde": value / mde if mde else None}
    return panel.measure(
        "contrast",
        labels,
        value=value,
        n=meeting.n,
        n_of="common cycles",
        method=f"mean paired difference within common cycles; {tests.gated(pair).method[column]}",
        low=low if known else None,
        high=high if known else None,
        level=panel.study.inference.level if known else None,
        unit=POINTS,
        detail=detail,
    )


def _sides(panel: Panel, meeting: Meeting, turn: float) -> dict[str, str]:
    """Who stands above: the larger mean, and by name where there is no difference (agents are sorted)."""
    first, second = panel.table.agents[meeting.first], panel.table.agents[meeting.second]
    return {"high": first, "low": second} if turn > 0 else {"high": second, "low": first}


def _cluster_sums(panel: Panel, meeting: Meeting, sums: list[float], turn: float) -> dict[str, JSON]:
    names = [panel.table.clusters[c] for c in meeting.clusters.tolist()]
    return {name: [turn * s + 0.0, n] for name, s, n in zip(names, sums, meeting.cycles.tolist(), strict=True)}


def _lofo_contrasts(panel: Panel, differences: list[float], pair: int, column: int) -> Iterator[Measurement]:
    """The same difference without each family, in the same direction: negative is reversed."""
    meeting = panel.meetings[pair]
    turn = -1.0 if differences[column] < 0 else 1.0
    sides, width = _sides(panel, meeting, turn), len(panel.names)
    for family, block in panel.drops.items():
        yield panel.measure(
            "lofo.contrast",
            {"dimension": panel.names[column], "dropped": family, **sides},
            value=turn * differences[block * width + column] + 0.0 if meeting.n else None,
            n=meeting.n,
            n_of="common cycles",
            method="mean paired difference within common cycles, without the family",
            state="ok" if meeting.n else NEVER,
            unit=POINTS,
        )


def _firsts(panel: Panel, tests: PairTests) -> Iterator[Measurement]:
    """How sure it is, of every agent and name, that it stands above every other agent that it met."""
    width, agents = len(panel.names), panel.table.agents
    count = len(agents)
    one, other = np.array([(meeting.first, meeting.second) for meeting in panel.meetings]).T
    ahead = np.full((count, count, width), np.nan)
    ahead[one, other], ahead[other, one] = panel.differences[:, :width], -panel.differences[:, :width]
    p = np.ones((count, count, width))
    p[one, other] = p[other, one] = tests.gate_p(width)
    apart = ~np.eye(count, dtype=bool)
    raw = np.where(ahead > 0, p, 1.0)[apart].reshape(count, count - 1, width)
    holm = holm_rows(raw.transpose(0, 2, 1).reshape(-1, count - 1)).reshape(count, width, count - 1).tolist()
    above = ahead[apart].reshape(count, count - 1, width).transpose(0, 2, 1).tolist()
    method = f"largest p-value after Holm over the A-1={count - 1} contrasts of the agent, 1 where it is not above"
    others = [[name for name in agents if name != agent] for agent in agents]
    for k, dimension in enumerate(panel.names):
        for a, agent in enumerate(agents):
            found = list(zip(others[a], above[a][k], holm[a][k], strict=True))
            met = {name: value for name, difference, value in found if difference == difference}
            yield panel.measure(
                "first.p_holm",
                {"dimension": dimension, "agent": agent},
                value=max(met.values()) if met else None,
                n=len(met),
                n_of="agents met",
                method=method,
                state="ok" if met else NEVER,
                detail={
                    "p": met,
                    "never_met": [name for name in others[a] if name not in met],
                    "direction": {name: difference + 0.0 for name, difference, _ in found if name in met},
                },
            )


def _mde(panel: Panel, column: int, comparisons: int) -> Measurement:
    """The planning value at the median number of common cycles of the pairs that met."""
    plan = panel.study.inference
    met = [meeting.n for meeting in panel.meetings if meeting.n]
    n = int(np.median(met)) if met else 0
    value = planning_mde(panel.study, n, comparisons)
    return panel.measure(
        "mde",
        {"dimension": panel.names[column]},
        value=value,
        n=n,
        n_of="median common cycles",
        method="(z(1 - alpha/2m) + z(power)) sd / sqrt(n), a planning assumption",
        state="ok" if value is not None else "undefined: no two agents share a cycle",
        unit=POINTS,
        detail={
            "sd": plan.mde_sd,
            "alpha": panel.study.claim_alpha,
            "comparisons": comparisons,
            "power": plan.mde_power,
        },
    )
