"""What each judge would have said alone: the cheap protocol that a panel is held against."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from assaymark.metrology.contrasts import holm_rows
from assaymark.metrology.measure_agents import Levels, agent_levels, no_rho
from assaymark.metrology.pairwise import NEVER, PairTests
from assaymark.metrology.panel import Panel
from assaymark.metrology.stability import spearman_columns
from assaymark.records import JSON, Measurement

_TOLERANCE = 1e-9


def single_measurements(panel: Panel, levels: Levels, tests: PairTests) -> Iterator[Measurement]:
    """Levels, rankings and discoveries of each judge alone, and the panel's discoveries beside them.

    Where the judges' rankings differ, a study with one of them would have published an order that another one would
    not (ValueBlindBench section 5.4). Every judge is read on the same trajectories, by a cluster t that weighs clusters
    by their records, in the same Holm family as the panel.

    Parameters
    ----------
    panel : Panel
    levels : Levels
        Of all columns of the panel, from `levels_of`.
    tests : PairTests
        From `pair_tests`.

    Yields
    ------
    Measurement
        ``single.level`` by name, judge and agent; ``single.rho`` by name and pair of judges; ``single.discoveries``
        by judge; ``panel.discoveries``.
    """
    for j, judge in enumerate(panel.table.judges):
        yield from agent_levels(panel, "single.level", levels, panel.alone(j), {"judge": judge}, ends=True)
    for a, b in combinations(range(len(panel.table.judges)), 2):
        yield from _rho(panel, levels, a, b)
    yield from _discoveries(panel, tests)


def _rho(panel: Panel, levels: Levels, a: int, b: int) -> Iterator[Measurement]:
    """Spearman correlation of two judges' rankings of the agents, of every name."""
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
