"""Handwritten measurements of a season, for tests of its claims."""

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
    composites: Mapping[str, Sequence[float | None]], *, judges: Sequence[str] = JUDGES,
    efficiency: Mapping[str, float] | None = None, floor: float | None = 3.0, reach: float | None = 2.0,
    p: float = 0.001, periods: int = 24, families: bool = True, kappa: float | str = 0.6,
    unresolved: Sequence[str] = (), untimed: Sequence[str] = (),
    pairs: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    excess: Mapping[str, tuple[float, float]] | None = None,
) -> list[Measurement]:  # fmt: skip
    """A season whose judges gave these composites, in every period the same.
    ``pairs`` overrides parts of single contrasts: ``value``, ``p``, ``floor``, ``drop_p``, ``near`` (p of equivalence),
    ``recusal`` (value and p of the recusal contrast), ``length`` (p at equal length), ``others`` (p with judges as a
    sample). ``families`` False puts all judges into one family. ``excess`` gives the mean daily difference from equal
    weight and its p."""
    given = {agent: dict(zip(judges, row, strict=True)) for agent, row in composites.items()}
    graded = {agent: {j: x for j, x in row.items() if x is not None} for agent, row in given.items()}
    quick = efficiency or {}
    totals = {agent: _total(list(row.values()), quick.get(agent)) if row else None for agent, row in graded.items()}
    found = [_one("season.total", {"agent": a}, totals[a], _detail(row, totals[a], reach)) for a, row in graded.items()]
    found += [_one("season.composite", {"agent": a, "judge": j}, x) for a, row in given.items() for j, x in row.items()]
    found += [_one("season.outcome", {"agent": a}, None if a in unresolved else 60.0) for a in graded]
    found += [_one("season.efficiency", {"agent": a}, None if a in untimed else 80.0) for a in graded]
    names = sorted(a for a in graded if graded[a])
    dropped = judges if families and len(judges) > 1 else ()
    for one, other in combinations(names, 2):
        changed = (pairs or {}).get((one, other)) or (pairs or {}).get((other, one), {})
        gap = (totals[one] or 0.0) - (totals[other] or 0.0)
        found += _pair(one, other, gap, graded, dropped, {"p": p, "floor": floor, **changed}, periods, len(names))
    judged = {"unknown": "", "own": {}, "in_parts": False}
    found.append(_one("panel.families", {}, float(len(dropped) or 1), judged, n=len(judges)))
    serial = {"order": "consecutive", "flagged": False, "flag": 0.3, "lags": [0.1, 0.0, 0.0, 0.0]}
    found.append(_one("order.autocorrelation", {"dimension": "aggregate"}, 0.1, serial))
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


def _pair(
    one: str, other: str, gap: float, graded: Mapping[str, Mapping[str, float]], judges: Sequence[str],
    given: Mapping[str, Any], periods: int, agents: int,
) -> list[Measurement]:  # fmt: skip
    """The contrast of two agents and those beside it, in the direction of the mean over judges."""
    both = [judge for judge in graded[one] if judge in graded[other]]
    each = {judge: graded[one][judge] - graded[other][judge] for judge in both}
    value = float(given.get("value", sum(each.values()) / len(each)))
    turn = -1.0 if value < 0 else 1.0
    high, low = (one, other) if value >= 0 else (other, one)
    labels = {"dimension": "aggregate", "high": high, "low": low}
    floor, gap, tested = given["floor"], turn * gap, periods >= 12
    state = "noise-unknown" if floor is None else "within-noise" if abs(gap) <= floor else ""
    detail = {
        "p": given["p"] if tested else 1.0, "clusters": periods, "effective": periods / 2, "totals_gap": gap,
        "noise_floor": floor, "unresolved": state or ("opposite-totals" if gap < 0 else ""),
        "p_equivalence": given.get("near", 1.0), "equivalence_interval": [abs(value) - 1.0, abs(value) + 1.0],
    }  # fmt: skip
    found = [
        _one("contrast", labels, abs(value) if tested else None, detail, n=periods, n_of="common periods",
             state="ok" if tested else "cannot be tested (too few)")
    ]  # fmt: skip
    for judge in judges:
        left = [difference for name, difference in each.items() if name != judge]
        p = given.get("drop_p", given["p"])
        adjusted = {"p": p, "p_adjusted": min(1.0, p * agents * (agents - 1) / 2)}
        dropped = turn * sum(left) / len(left) if left else None
        found.append(_one("lofo.contrast", {**labels, "dropped": judge}, dropped, adjusted))
    for name, key in (("recusal", "recusal"), ("length", "length"), ("judges", "others")):
        if key in given:
            size, p = given[key] if isinstance(given[key], tuple) else (abs(value), given[key])
            more = {"gap": 1.0, "slope": 2.0, "raw": abs(value), "word": "may be length", "clusters": periods}
            found.append(_one(f"{name}.contrast", labels, size, {"p": p, "high": None, **more}))
    return found


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
    name: str, labels: dict[str, str], value: float | None, detail: dict[str, Any] | None = None, state: str = "ok",
    n: int = 1, n_of: str = "",
) -> Measurement:  # fmt: skip
    empty = "not there" if value is None and state == "ok" else state
    return Measurement(
        name=name, labels=labels, value=value, n=n, n_of=n_of, method="", detail=detail or {}, state=empty
    )  # fmt: skip


def gate(judge: str, failed: Sequence[str] | None) -> Measurement:
    """Return the datasheet gate of a judge; None means that it has no datasheet."""
    value = None if failed is None else float(len(failed))
    return _one("datasheet.gate", {"judge": judge}, value, {"failed": list(failed or ())})


def probe(judge: str, state: str) -> Measurement:
    """Return the author-identification check of a judge."""
    return _one("season.author_probe", {"judge": judge}, 0.6, {"state": state})
