"""Measurements of the agents' levels, with and without each judge family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assaymark.metrology.checks import Floats
from assaymark.metrology.measure_kappa import ONE_FAMILY
from assaymark.metrology.panel import Panel
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
    # Correlation of the length of the judged text with the panel's aggregate.
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
    yield panel.measure(
        "score.length_correlation",
        {"dimension": AGGREGATE},
        value=value,
        n=panel.table.n,
        n_of="trajectories",
        method="Pearson correlation of token count and panel score",
        state=state or "ok",
    )


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
