"""Measurements of a season as somebody might have made them, for tests of what may be said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

from assaymark.judging import band
from assaymark.records import Measurement

JUDGES = ("auditor", "reader", "skeptic")
BOUNDARIES = (44.5, 66.5)


def measured(
    composites: Mapping[str, Sequence[float | None]],
    *,
    judges: Sequence[str] = JUDGES,
    efficiency: Mapping[str, float] | None = None,
    floor: float | None = 3.0,
    reach: float | None = 2.0,
    p: float = 0.001,
    periods: int = 12,
    kappa: float | str = 0.6,
    unresolved: Sequence[str] = (),
    untimed: Sequence[str] = (),
    pairs: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    excess: Mapping[str, tuple[float, float]] | None = None,
) -> list[Measurement]:
    """A season whose judges gave these composites, its period differences being those of the totals.

    ``pairs`` overrides parts of single contrasts: ``value``, ``p``, ``floor``. ``excess`` gives the mean daily
    difference from equal weight and its p.
    """
    given = {agent: dict(zip(judges, row, strict=True)) for agent, row in composites.items()}
    graded = {agent: {j: x for j, x in row.items() if x is not None} for agent, row in given.items()}
    quick = efficiency or {}
    totals = {agent: _total(list(row.values()), quick.get(agent)) if row else None for agent, row in graded.items()}
    found = [_one("season.total", {"agent": a}, totals[a], _detail(row, totals[a], reach)) for a, row in graded.items()]
    found += [_one("season.composite", {"agent": a, "judge": j}, x) for a, row in given.items() for j, x in row.items()]
    found += [_one("season.outcome", {"agent": a}, None if a in unresolved else 60.0) for a in graded]
    found += [_one("season.efficiency", {"agent": a}, None if a in untimed else 80.0) for a in graded]
    ranked = sorted((a for a in graded if graded[a]), key=lambda a: (-(totals[a] or 0.0), a))
    for high, low in combinations(ranked, 2):
        changed = (pairs or {}).get((high, low), {})
        found.append(_contrast(high, low, graded, quick, judges, p=p, floor=floor, periods=periods, changed=changed))
    known = isinstance(kappa, float)
    found.append(_one("season.kappa", {}, kappa if known else None, state="ok" if known else str(kappa)))
    for agent, (value, chance) in (excess or {}).items():
        labels = {"agent": agent, "baseline": "equal weight"}
        found.append(
            Measurement(
                name="season.excess", labels=labels, value=value, n=61, n_of="days", method="", low=value - 0.001,
                high=value + 0.001, level=0.95, detail={"p": chance, "whole": 61 * value},
            )
        )  # fmt: skip
    return found


def _contrast(
    high: str,
    low: str,
    graded: Mapping[str, Mapping[str, float]],
    quick: Mapping[str, float],
    judges: Sequence[str],
    *,
    p: float,
    floor: float | None,
    periods: int,
    changed: Mapping[str, Any],
) -> Measurement:
    without, totals_without = {}, {}
    for judge in judges:
        left = [[x for j, x in graded[a].items() if j != judge] for a in (high, low)]
        if all(left):
            without[judge] = median(left[0]) - median(left[1])
            totals_without[judge] = _total(left[0], quick.get(high)) - _total(left[1], quick.get(low))
    value = changed.get("value", median(graded[high].values()) - median(graded[low].values()))
    detail = {
        "p": changed.get("p", p),
        "floor": changed.get("floor", floor),
        "without": without,
        "totals_without": totals_without,
    }
    tested = periods > 1
    return Measurement(
        name="season.contrast", labels={"high": high, "low": low}, value=value if tested else None, n=periods,
        n_of="periods", method="", detail=detail if tested else {"floor": floor},
        state="ok" if tested else "not defined: fewer than two common periods",
    )  # fmt: skip


def _total(scores: Sequence[float], quick: float | None) -> float:
    middle = median(scores)
    return middle if quick is None else 0.9 * middle + 0.1 * quick


def _detail(row: Mapping[str, float], total: float | None, reach: float | None) -> dict[str, Any]:
    if total is None:
        return {}
    scores = sorted(row.values())
    ends = [band(scores[0]), band(scores[-1])]
    margin = min(abs(score - bound) for score in (*scores, total) for bound in BOUNDARIES)
    agreed = "agreed" if ends[0] == ends[1] else "contested"
    return {
        "low": scores[0], "median": median(scores), "high": scores[-1], "judges": len(scores), "band": band(total),
        "graded": ends, "state": agreed if len(scores) > 1 else "single judge", "margin": margin, "reach": reach,
    }  # fmt: skip


def _one(
    name: str, labels: dict[str, str], value: float | None, detail: dict[str, Any] | None = None, state: str = "ok"
) -> Measurement:
    empty = "not there" if value is None and state == "ok" else state
    return Measurement(
        name=name, labels=labels, value=value, n=1, n_of="", method="", detail=detail or {}, state=empty
    )  # fmt: skip


def gate(judge: str, failed: Sequence[str] | None) -> Measurement:
    """What a judge's datasheet says of the plan's limits; None: there is none."""
    value = None if failed is None else float(len(failed))
    return _one("datasheet.gate", {"judge": judge}, value, {"failed": list(failed or ())})


def probe(judge: str, state: str) -> Measurement:
    """Whether a judge can tell authors."""
    return _one("season.author_probe", {"judge": judge}, 0.6, {"state": state})
