"""Measurements of the agents: levels, paired contrasts, and both of them without each judge family."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology.checks import Floats
from assaymark.metrology.contrasts import (
    Tested,
    bootstrap_tests,
    default_resamples,
    gating_test,
    holm,
    settle,
    t_test,
)
from assaymark.metrology.measure_agreement import ONE_FAMILY
from assaymark.metrology.panel import Meeting, Panel, state_of
from assaymark.metrology.planning import planning_mde
from assaymark.metrology.stability import spearman
from assaymark.records import AGGREGATE, JSON, Measurement

NEVER = "never compared"
POINTS = "rubric points"


# --- levels ---------------------------------------------------------------------------------------------------------


def level_measurements(panel: Panel) -> Iterator[Measurement]:
    """Level of each agent, with and without each family; rank correlations; and the part that length plays."""
    study, table, design = panel.study, panel.table, panel.design
    levels, low, high = design.levels_with_ends(study.inference.level)
    counts, own = design.counts.sum(axis=1), design.own_clusters()
    raw = design.totals.sum(axis=1) / np.maximum(counts, 1)[:, None]
    for k, name in enumerate(panel.names):
        for a, agent in enumerate(table.agents):
            ends = (float(low[a, k]), float(high[a, k])) if np.isfinite(low[a, k]) else (None, None)
            yield _level(
                panel,
                "score.effect",
                {"dimension": name, "agent": agent},
                float(levels[a, k]),
                int(counts[a]),
                ends,
                {"raw_mean": float(raw[a, k]) if counts[a] else None, "clusters": int(own[a])},
            )
    for family in dict.fromkeys(table.families):
        yield from _without(panel, family, levels)
    yield _length(panel)


def _level(
    panel: Panel,
    name: str,
    labels: dict[str, str],
    value: float,
    n: int,
    ends: tuple[float | None, float | None],
    detail: dict[str, JSON],
) -> Measurement:
    """One agent's level, or why it has none."""
    known = bool(np.isfinite(value))
    state = "ok"
    if not n:
        state = "undefined: no trajectory with a usable score from every judge"
    elif not known:
        state = "disconnected: shares no cycle with the main group of agents, directly or through others"
    method = "least-squares agent effect beside cycle effects, plus the mean cycle effect"
    return panel.measure(
        name,
        labels,
        value=value if known else None,
        n=n,
        n_of="decisions",
        method=method if ends[0] is None else f"{method}; jackknife over clusters",
        state=state,
        low=ends[0],
        high=ends[1],
        level=None if ends[0] is None else panel.study.inference.level,
        unit=POINTS,
        detail=detail,
    )


def _without(panel: Panel, family: str, levels: Floats) -> Iterator[Measurement]:
    """Levels without one judge family, and how far the order of agents moves."""
    method = "Spearman correlation of agent levels with and without the family"
    width, agents = len(panel.names), panel.table.agents
    if family not in panel.drops:
        for name in panel.names:
            labels = {"dimension": name, "dropped": family}
            common = {"n": len(agents), "n_of": "agents", "method": method}
            yield panel.measure("lofo.rho", labels, value=None, state=ONE_FAMILY, **common)
        return
    counts = panel.design.counts.sum(axis=1)
    block = levels[:, panel.block(family)]
    for k in range(width):
        yield _rho(panel, family, k, levels[:, k], block[:, k])
        for a, agent in enumerate(agents):
            labels = {"dimension": panel.names[k], "dropped": family, "agent": agent}
            yield _level(panel, "lofo.effect", labels, float(block[a, k]), int(counts[a]), (None, None), {})


def _rho(panel: Panel, family: str, column: int, full: Floats, without: Floats) -> Measurement:
    ranked = np.flatnonzero(np.isfinite(full))
    names = [panel.table.agents[a] for a in ranked]
    order = [name for _, name in sorted(zip(-np.round(without[ranked], 9), names, strict=True))]
    common = {
        "n": len(names),
        "n_of": "agents",
        "method": "Spearman correlation of agent levels with and without the family",
        "detail": {"order": order},
    }
    labels = {"dimension": panel.names[column], "dropped": family}
    if len(names) < 2:
        state = panel.missing or "undefined: one agent, needs two"
        return panel.measure("lofo.rho", labels, value=None, state=state, **common)
    try:
        return panel.measure("lofo.rho", labels, value=spearman(full[ranked], without[ranked]), **common)
    except NotMeasurableError as exc:
        return panel.measure("lofo.rho", labels, value=None, state=state_of(exc), **common)


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


@dataclass(frozen=True, slots=True)
class PairTests:
    """Both tests of every pair of agents [P] and name [K]; pairs that never met hold p = 1 in every family."""

    t: tuple[Tested, ...]
    bootstrap: tuple[Tested, ...]
    gates: tuple[str, ...]

    def p(self, which: str) -> Floats:
        """p-values [P, K] of ``cluster-t``, of ``bootstrap``, or of the ``gate`` of each pair."""
        if which == "gate":
            rows = [
                t.p if g == "cluster-t" else b.p for t, b, g in zip(self.t, self.bootstrap, self.gates, strict=True)
            ]
        else:
            rows = [tested.p for tested in (self.t if which == "cluster-t" else self.bootstrap)]
        return np.array(rows)

    def gated(self, pair: int) -> Tested:
        """The test that this pair is gated on."""
        return self.t[pair] if self.gates[pair] == "cluster-t" else self.bootstrap[pair]


def contrast_measurements(panel: Panel, rng: np.random.Generator) -> Iterator[Measurement]:
    """Every pair of agents on every name, corrected for all of them; who can be called first; what can be detected."""
    meetings = panel.meetings
    width, d = len(panel.names), len(panel.table.dimensions)
    sizes = [len(meetings), *[len(meetings) * d] * d]
    if meetings:
        tests = _tests(panel, rng)
        adjusted = {which: _adjust(tests.p(which)) for which in ("gate", "cluster-t", "bootstrap")}
        for k in range(width):
            for pair in range(len(meetings)):
                yield _contrast(panel, tests, adjusted, pair, k, sizes[k])
                yield from _lofo_contrasts(panel, meetings[pair], k)
        p = tests.p("gate")
        for k in range(width):
            for a in range(len(panel.table.agents)):
                yield _first(panel, p[:, k], a, k)
    for k in range(width):
        yield _mde(panel, k, sizes[k])


def _tests(panel: Panel, rng: np.random.Generator) -> PairTests:
    """t tests and bootstraps of all pairs; pairs with equally many clusters share their resamples."""
    plan, width = panel.study.inference, len(panel.names)
    parts = [(meeting.sums[:, :width], meeting.cycles) for meeting in panel.meetings]
    gates = tuple(gating_test(plan.gating_test, meeting.clusters.size) for meeting in panel.meetings)
    met: dict[int, list[int]] = defaultdict(list)
    for pair, meeting in enumerate(panel.meetings):
        met[meeting.clusters.size].append(pair)
    resamples = plan.resamples or default_resamples(len(parts) * max(1, width - 1), panel.study.claim_alpha)
    nothing = np.full(width, np.nan)
    blank = Tested(np.zeros(width), np.ones(width), nothing, nothing, 0, (NEVER,) * width)
    bootstrap = [blank] * len(parts)
    for clusters, pairs in sorted(met.items()):
        if clusters:
            tested = bootstrap_tests(
                [parts[pair] for pair in pairs],
                resamples=resamples,
                rng=rng,
                level=plan.level,
                intervals=[gates[pair] == "bootstrap" and clusters > 1 for pair in pairs],
            )
            for pair, one in zip(pairs, tested, strict=True):
                bootstrap[pair] = one
    t = tuple(t_test(*part, level=plan.level) if part[1].size else blank for part in parts)
    return PairTests(t, tuple(bootstrap), gates)


def _adjust(p: Floats) -> Floats:
    """Holm-adjusted p-values [P, K]: the aggregate is one family, all dimensions together are the other."""
    dimensions = holm(p[:, 1:].ravel()).reshape(p[:, 1:].shape) if p.shape[1] > 1 else p[:, 1:]
    return np.concatenate([holm(p[:, 0])[:, None], dimensions], axis=1)


def _contrast(
    panel: Panel, tests: PairTests, adjusted: dict[str, Floats], pair: int, column: int, size: int
) -> Measurement:
    meeting, tested = panel.meetings[pair], tests.gated(pair)
    turn = -1.0 if tested.difference[column] < 0 else 1.0
    detail: dict[str, JSON] = {
        "p": float(tested.p[column]),
        "p_holm": float(adjusted["gate"][pair, column]),
        "p_holm_family": _family(panel, column),
        "gating": tests.gates[pair],
        "p_cluster_t": float(tests.t[pair].p[column]),
        "p_bootstrap": float(tests.bootstrap[pair].p[column]),
        "p_holm_cluster_t": float(adjusted["cluster-t"][pair, column]),
        "p_holm_bootstrap": float(adjusted["bootstrap"][pair, column]),
        "clusters": int(meeting.clusters.size),
        "cluster_sums": _cluster_sums(panel, meeting, column, turn),
    }
    labels = {"dimension": panel.names[column], **_sides(panel, meeting, turn)}
    if not meeting.n:
        method = "paired difference within common cycles"
        common = {"n": 0, "n_of": "common cycles", "method": method, "unit": POINTS}
        detail |= {"mde": None, "in_mde": None}
        return panel.measure("contrast", labels, value=None, state=NEVER, detail=detail, **common)
    value = turn * float(tested.difference[column]) + 0.0  # no minus zero
    ends = sorted((turn * float(tested.low[column]), turn * float(tested.high[column])))
    known = bool(np.isfinite(ends[0]))
    mde = planning_mde(panel.study, meeting.n, size)
    detail |= {"mde": mde, "in_mde": value / mde if mde else None}
    return panel.measure(
        "contrast",
        labels,
        value=value,
        n=meeting.n,
        n_of="common cycles",
        method=f"mean paired difference within common cycles; {tested.method[column]}",
        low=ends[0] if known else None,
        high=ends[1] if known else None,
        level=panel.study.inference.level if known else None,
        unit=POINTS,
        detail=detail,
    )


def _sides(panel: Panel, meeting: Meeting, turn: float) -> dict[str, str]:
    """Who stands above: the larger mean, and by name where there is no difference (agents are sorted)."""
    first, second = panel.table.agents[meeting.first], panel.table.agents[meeting.second]
    return {"high": first, "low": second} if turn > 0 else {"high": second, "low": first}


def _cluster_sums(panel: Panel, meeting: Meeting, column: int, turn: float) -> dict[str, JSON]:
    names = [panel.table.clusters[c] for c in meeting.clusters]
    sums = (turn * meeting.sums[:, column] + 0.0).tolist()
    return {name: [s, n] for name, s, n in zip(names, sums, meeting.cycles.tolist(), strict=True)}


def _family(panel: Panel, column: int) -> str:
    pairs, d = len(panel.meetings), len(panel.table.dimensions)
    return f"aggregate C(A,2)={pairs}" if column == 0 else f"dimensions C(A,2)xD={pairs * d}"


def _difference(meeting: Meeting, column: int) -> float:
    """Mean paired difference of first minus second in one column."""
    return float(settle(meeting.sums[:, column].sum() / meeting.n))


def _lofo_contrasts(panel: Panel, meeting: Meeting, column: int) -> Iterator[Measurement]:
    """The same difference without each family, in the same direction: negative is reversed."""
    turn = -1.0 if meeting.n and _difference(meeting, column) < 0 else 1.0
    sides = _sides(panel, meeting, turn)
    for family in panel.drops:
        place = panel.block(family).start + column
        yield panel.measure(
            "lofo.contrast",
            {"dimension": panel.names[column], "dropped": family, **sides},
            value=turn * _difference(meeting, place) + 0.0 if meeting.n else None,
            n=meeting.n,
            n_of="common cycles",
            method="mean paired difference within common cycles, without the family",
            state="ok" if meeting.n else NEVER,
            unit=POINTS,
        )


def _first(panel: Panel, p: Floats, agent: int, column: int) -> Measurement:
    """How sure it is that one agent stands above every other that it met."""
    agents = panel.table.agents
    raw: dict[str, float] = {}
    direction: dict[str, JSON] = {}
    for pair, meeting in enumerate(panel.meetings):
        if agent not in (meeting.first, meeting.second):
            continue
        other, turn = (meeting.second, 1.0) if agent == meeting.first else (meeting.first, -1.0)
        if meeting.n:
            direction[agents[other]] = turn * _difference(meeting, column) + 0.0
        above = meeting.n > 0 and direction[agents[other]] > 0
        raw[agents[other]] = float(p[pair]) if above else 1.0
    adjusted = dict(zip(raw, holm(list(raw.values())).tolist(), strict=True))
    met = {other: adjusted[other] for other in sorted(direction)}
    return panel.measure(
        "first.p_holm",
        {"dimension": panel.names[column], "agent": agents[agent]},
        value=max(met.values()) if met else None,
        n=len(met),
        n_of="agents met",
        method=f"largest p-value after Holm over the A-1={len(raw)} contrasts of the agent, 1 where it is not above",
        state="ok" if met else NEVER,
        detail={
            "p": met,
            "never_met": sorted(set(raw) - set(met)),
            "direction": {other: direction[other] for other in met},
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
