"""What is measured of an invented season."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from assaymark.judging.season.scoring import SeasonRow
from assaymark.protocol import AgentSpec, JudgeSpec
from assaymark.records import Measurement
from assaymark.report import season as season_pages


def _one(
    name: str, value: float | None, n: int, n_of: str, labels: Mapping[str, str] | None = None, **more: object
) -> Measurement:
    if value is None:
        more.setdefault("state", "not measured")
    return Measurement(name=name, labels=dict(labels or {}), value=value, n=n, n_of=n_of, method="made up", **more)  # type: ignore[arg-type]


def measurements(
    agents: Sequence[AgentSpec],
    panel: Sequence[JudgeSpec],
    grades: Sequence[season_pages.SeasonGradeView],
    table: tuple[SeasonRow, ...],
    paths: Sequence[season_pages.SeasonPath],
    rng: np.random.Generator,
) -> tuple[Measurement, ...]:
    found = [m for one in agents for m in _of_agent(one, panel, grades, table, rng)]
    for path in paths:
        key = "baseline" if path.baseline else "agent"
        peak = np.maximum.accumulate([path.start, *path.nav])
        fall = float((np.array([path.start, *path.nav]) / peak - 1).min())
        found.append(_one("season.return", path.nav[-1] / path.start - 1, len(path.days), "days", {key: path.name}))
        found.append(_one("season.drawdown", fall, len(path.days), "days", {key: path.name}))
    for at, judge in enumerate(panel):
        found += _of_judge(judge, at, agents, panel, table)
    found.append(_one("season.noise", 0.9, 15, "gradings", {"of": "panel"}))
    several = len(panel) > 1
    bounds: dict[str, object] = {"low": 0.18, "high": 0.44, "level": 0.95} if several else {}
    found.append(_one("season.kappa", 0.31 if several else None, 48, "agent-weeks", {}, **bounds))
    return tuple(found)


def _of_agent(
    one: AgentSpec, panel: Sequence[JudgeSpec], grades: Sequence[season_pages.SeasonGradeView],
    table: tuple[SeasonRow, ...], rng: np.random.Generator,
) -> list[Measurement]:  # fmt: skip
    mine = [g for g in grades if g.agent == one.name and g.state == "ok"]
    row = next(row for row in table if row.contestant == one.name)
    label = {"agent": one.name}
    found = [_one("season.total", row.total, len(mine), "judges", label, **_total(row))]
    for g in mine:
        found.append(_one("season.composite", g.composite, 1, "gradings", {**label, "judge": g.judge}))
    for axis in ("reasoning", "evidence", "process"):
        values = [g.axes[axis] for g in mine]
        detail = {"low": min(values), "high": max(values)} if values else {}
        median = float(np.median(values)) if values else None
        found.append(_one("season.axis", median, len(mine), "judges", {**label, "axis": axis}, detail=detail))
    outcomes = [g.outcome for g in mine if g.outcome is not None]
    state = {"state": "unresolved" if mine else "not graded"} if not outcomes else {}
    median = float(np.median(outcomes)) if outcomes else None
    found.append(_one("season.outcome", median, len(outcomes), "judges", label, **state))
    timing = {"state": "no timing" if mine else "not graded"} if row.efficiency is None else {}
    found.append(_one("season.efficiency", row.efficiency, 61, "decisions", label, **timing))
    found.append(_one("season.noise", 1.2, 10, "replicates", {"of": one.name}))
    interval = {"low": -0.002, "high": 0.0015, "level": 0.95, "detail": {"p": 0.4, "whole": -0.008}}
    found.append(_one("season.excess", -0.0001, 61, "days", {**label, "baseline": "equal weight"}, **interval))
    for judge in panel:
        left = [g.composite for g in mine if g.judge != judge.name and g.composite is not None]
        value = float(np.median(left)) if left else None
        found.append(_one("season.without", value, len(left), "judges", {**label, "judge": judge.name}))
    counts = {"supported": 71, "contradicted": 3, "derivable": 12, "not_verifiable": 9, "rule": 4, "own_action": 11}
    evidence: dict[str, object] = {
        "counts": counts, "observed": 0.93, "chance": 0.08, "corrected": 0.924, "silent": 2, "claims": 110,
    }  # fmt: skip
    found.append(
        _one("season.ledger", 0.93, 110, "claims", label, detail={
            **evidence, "silent": 2, "claims": 110, "disagreements": 14,
        }),
    )  # fmt: skip
    found.append(_one("season.thrash", float(rng.integers(4)), 61, "decisions", label))
    found.append(_one("season.decisions", 61.0, 61, "days", label, detail={"rejected": 3, "silent": 1}))
    return found


def _total(row: object) -> dict[str, object]:
    agreement, standing = row.agreement, row.standing  # type: ignore[attr-defined]
    if agreement is None or standing is None:
        return {"state": "not graded"}
    detail = {
        "low": agreement.low, "median": agreement.median, "high": agreement.high, "band": standing.band,
        "lowest": standing.lowest, "highest": standing.highest, "state": standing.state,
        "efficiency": row.efficiency,  # type: ignore[attr-defined]
    }  # fmt: skip
    return {"detail": detail}


def _of_judge(
    judge: JudgeSpec, at: int, agents: Sequence[AgentSpec], panel: Sequence[JudgeSpec], table: tuple[SeasonRow, ...],
) -> list[Measurement]:  # fmt: skip
    label = {"judge": judge.name}
    own = sum(one.family == judge.family for one in agents)
    others = len(agents) - own
    gaps = ((2.0, 1.1, -24.0, 26.0), (-8.0, -1.6, None, None), (15.0, -2.2, None, None))
    mine, rest, low, high = gaps[at % 3]
    detail: dict[str, object] = {"own": mine, "others": rest, "n_own": own, "n_others": others}
    if len(panel) == 1 or not own:
        why = {"state": "one judge" if own else "no agent of its family"}
        preference = _one("season.self_preference", None, own, "agents of its family", label, detail=detail, **why)
    else:
        ends = {"low": low, "high": high, "level": 0.95} if own > 1 and low is not None else {}
        if not ends:
            detail["state"] = "single observation"
        preference = _one(
            "season.self_preference", mine - rest, own, "agents of its family", label, detail=detail, **ends
        )
    right = {"chance": 1 / len(agents), "hits": 11, "guesses": 60, "asked": 61, "state": "not above chance"}
    probe = _one("season.author_probe", 11 / 60, 60, "guesses", label, low=0.11, high=0.30, level=0.95, detail=right)
    graded = [row.contestant for row in table if row.total is not None]
    places = {name: place + 1 for place, name in enumerate(sorted(graded, key=lambda name: (len(name) + at) % 5))}
    alone = _one(
        "season.alone", 0.71 if len(panel) > 1 else None, len(graded), "agents", label, detail={"places": places}
    )
    invalid = _one("season.invalid", 0.02 * at, 50, "replies", label, detail={"invalid": at, "refused": 0})
    return [preference, probe, alone, invalid]
