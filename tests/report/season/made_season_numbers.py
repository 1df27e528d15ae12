"""Measurements of an invented season."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from assaymark.judging import SeasonRow
from assaymark.protocol import AgentSpec, JudgeSpec
from assaymark.records import Measurement
from assaymark.report import season as season_pages


def _one(
    name: str, value: float | None, n: int, n_of: str, labels: Mapping[str, str] | None = None, **more: object
) -> Measurement:
    if value is None:
        more.setdefault("state", "not measured")
    return Measurement(name=f"season.{name}", labels=dict(labels or {}), value=value, n=n, n_of=n_of, method="made up",
                       **more)  # type: ignore[arg-type]  # fmt: skip


def measurements(
    agents: Sequence[AgentSpec], panel: Sequence[JudgeSpec], grades: Sequence[season_pages.SeasonGradeView],
    table: tuple[SeasonRow, ...], paths: Sequence[season_pages.SeasonPath], rng: np.random.Generator,
) -> tuple[Measurement, ...]:  # fmt: skip
    found = [m for one in agents for m in _of_agent(one, panel, grades, table, rng)]
    for path in paths:
        label, nav = {"baseline" if path.baseline else "agent": path.name}, np.array([path.start, *path.nav])
        fall = float((nav / np.maximum.accumulate(nav) - 1).min())
        found.append(_one("return", path.nav[-1] / path.start - 1, len(path.days), "days", label))
        found.append(_one("drawdown", fall, len(path.days), "days", label))
    for at, judge in enumerate(panel):
        found += _of_judge(judge, at, agents, panel, table)
    found.append(_one("noise", 0.9, 15, "gradings", {"of": "panel"}))
    several = len(panel) > 1
    bounds: dict[str, object] = {"low": 0.18, "high": 0.44, "level": 0.95} if several else {}
    return *found, _one("kappa", 0.31 if several else None, 48, "agent-weeks", {}, **bounds)


def _of_agent(
    one: AgentSpec, panel: Sequence[JudgeSpec], grades: Sequence[season_pages.SeasonGradeView],
    table: tuple[SeasonRow, ...], rng: np.random.Generator,
) -> Iterator[Measurement]:  # fmt: skip
    mine = [g for g in grades if g.agent == one.name and g.state == "ok"]
    row, label = next(row for row in table if row.contestant == one.name), {"agent": one.name}

    def middle(name: str, values: Sequence[float], n_of: str = "judges", labels: Mapping[str, str] = label,
               **more: object) -> Measurement:  # fmt: skip
        return _one(name, float(np.median(values)) if values else None, len(values), n_of, labels, **more)

    total: dict[str, object] = {"state": "not graded"}
    if row.agreement is not None and row.standing is not None:
        kept = {name: getattr(row.agreement, name) for name in ("low", "median", "high")}
        kept |= {name: getattr(row.standing, name) for name in ("band", "lowest", "highest", "state")}
        total = {"detail": {**kept, "efficiency": row.efficiency}}
    yield _one("total", row.total, len(mine), "judges", label, **total)
    for g in mine:
        yield _one("composite", g.composite, 1, "gradings", {**label, "judge": g.judge})
    for axis in ("reasoning", "evidence", "process"):
        values = [g.axes[axis] for g in mine]
        detail = {"low": min(values), "high": max(values)} if values else {}
        yield middle("axis", values, labels={**label, "axis": axis}, detail=detail)
    outcomes = [g.outcome for g in mine if g.outcome is not None]
    yield middle("outcome", outcomes, **({} if outcomes else {"state": "unresolved" if mine else "not graded"}))
    timing = {"state": "no timing" if mine else "not graded"} if row.efficiency is None else {}
    yield _one("efficiency", row.efficiency, 61, "decisions", label, **timing)
    yield _one("noise", 1.2, 10, "replicates", {"of": one.name})
    interval = {"low": -0.002, "high": 0.0015, "level": 0.95, "detail": {"p": 0.4, "whole": -0.008}}
    yield _one("excess", -0.0001, 61, "days", {**label, "baseline": "equal weight"}, **interval)
    for judge in panel:
        left = [g.composite for g in mine if g.judge != judge.name and g.composite is not None]
        yield middle("without", left, labels={**label, "judge": judge.name})
    counts = {"supported": 71, "contradicted": 3, "derivable": 12, "not_verifiable": 9, "rule": 4, "own_action": 11}
    checked = {"counts": counts, "observed": 0.93, "chance": 0.08, "corrected": 0.924, "silent": 2, "claims": 110}
    yield _one("ledger", 0.93, 110, "claims", label, detail={**checked, "rows": 90, "disagreements": 14})
    yield _one("thrash", float(rng.integers(4)), 61, "decisions", label)
    yield _one("decisions", 61.0, 61, "days", label, detail={"rejected": 3, "silent": 1})


def _of_judge(
    judge: JudgeSpec, at: int, agents: Sequence[AgentSpec], panel: Sequence[JudgeSpec], table: tuple[SeasonRow, ...],
) -> Iterator[Measurement]:  # fmt: skip
    label, own, of = {"judge": judge.name}, sum(one.family == judge.family for one in agents), "agents of its family"
    mine, rest, low, high = ((2.0, 1.1, -24.0, 26.0), (-8.0, -1.6, None, None), (15.0, -2.2, None, None))[at % 3]
    detail: dict[str, object] = {"own": mine, "others": rest, "n_own": own, "n_others": len(agents) - own}
    if len(panel) == 1 or not own:
        state = "one judge" if own else "no agent of its family"
        yield _one("self_preference", None, own, of, label, detail=detail, state=state)
    else:
        ends = {"low": low, "high": high, "level": 0.95} if own > 1 and low is not None else {}
        detail |= {} if ends else {"state": "single observation"}
        yield _one("self_preference", mine - rest, own, of, label, detail=detail, **ends)
    right = {"chance": 1 / len(agents), "hits": 11, "guesses": 60, "asked": 61, "state": "not above chance"}
    yield _one("author_probe", 11 / 60, 60, "guesses", label, low=0.11, high=0.30, level=0.95, detail=right)
    graded = [row.contestant for row in table if row.total is not None]
    places = {name: place + 1 for place, name in enumerate(sorted(graded, key=lambda name: (len(name) + at) % 5))}
    alone = 0.71 if len(panel) > 1 else None
    yield _one("alone", alone, len(graded), "agents", label, detail={"places": places})
    yield _one("invalid", 0.02 * at, 50, "replies", label, detail={"invalid": at, "refused": 0})
