"""A whole analysis whose tables belong together: agents from a simulator, control cells and a probe by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from analysis import measured
from test_null import study as simulated

from assaymark.claims import decide_claims, index
from assaymark.metrology import analyse, cluster_t, holm, kappa_of_table, score_table, wilson
from assaymark.protocol import parse_study
from assaymark.records import Measurement

PLAN = parse_study(
    'name = "s"\nseed = 1\n'
    + "".join(f'[[judges]]\nname = "j{j}"\nmodel = "reference/auditor"\nfamily = "f{j}"\n' for j in range(3))
)
FALLING = {"cell_a"}
CELLS = {"cell_a": -2.9, "cell_b": -0.8, "paraphrase": 0.05}
CLUSTERS = [f"regime-{c}" for c in range(6)]


@cache
def analysed(clusters: int = 6) -> tuple[Measurement, ...]:
    """Four agents, the first a point better; two dimensions of six, so that certificates stay small."""
    judgments, decisions = simulated(np.random.default_rng(5), clusters=clusters, cycles=4, leader=1.0)
    kept = [replace(one, scores={name: one.scores[name] for name in ("d0", "d1")}) for one in judgments]
    found = analyse(score_table(kept, decisions), PLAN, rng=np.random.default_rng(1))
    return (*found, *control_cells(), *shares(found), outside(found))


def control_cells() -> list[Measurement]:
    """Gates with their drops and halos, all from the same differences by cluster."""
    rng = np.random.default_rng(3)
    judges = {cell: shift + rng.normal(0, 0.2, (3, 60)) for cell, shift in CELLS.items()}
    differences = {
        cell: [rows.mean(axis=0), *(np.delete(rows, j, axis=0).mean(axis=0) for j in range(3))]
        for cell, rows in judges.items()
    }
    where = np.repeat(CLUSTERS, 10)
    tests = {cell: [cluster_t(rows, where) for rows in parts] for cell, parts in differences.items()}
    p = {cell: [_one_sided(cell, test) for test in found] for cell, found in tests.items()}
    adjusted = [dict(zip(CELLS, holm([p[cell][v] for cell in CELLS]).tolist(), strict=True)) for v in range(4)]
    found = []
    for cell, parts in differences.items():
        for v, name in enumerate(("panel", "f0", "f1", "f2")):
            test = tests[cell][v]
            detail = {"outcome": _outcome(cell), "p": p[cell][v], "p_holm": adjusted[v][cell]}
            labels = {"cell": cell} if name == "panel" else {"cell": cell, "dropped": name}
            if name == "panel":
                sums = {c: [float(parts[0][where == c].sum()), 10] for c in CLUSTERS}
                detail |= {"cluster_sums": sums, "primary": "panel"}
            found.append(
                measured(
                    "cell.gate" if name == "panel" else "cell.drop",
                    labels,
                    test.difference,
                    n=60,
                    low=test.low,
                    high=test.high,
                    level=0.95,
                    detail=detail,
                )
            )
        gap = tests[cell][0].difference - tests[cell][1].difference
        found.append(measured("cell.halo", {"cell": cell}, gap, n=60, detail={"family": "f0", "triggered": False}))
        found.append(_cell_kappa(cell))
    return found


def _one_sided(cell: str, test) -> float:
    if cell not in FALLING:
        return test.p
    return test.p / 2 if test.difference < 0 else 1 - test.p / 2


def _outcome(cell: str) -> str:
    return {"cell_a": "passed", "cell_b": "verbosity-bias", "paraphrase": "invariant"}[cell]


def _cell_kappa(cell: str) -> Measurement:
    """Judges who agree in pairs, on two of five categories."""
    table = [[0] * 5 for _ in range(5)]
    table[0][:2], table[1][:2] = [20, 5], [5, 30]
    value = kappa_of_table(table)
    pairs = ("j0|j1", "j0|j2", "j1|j2")
    detail = {"pairs": dict.fromkeys(pairs, value), "tables": dict.fromkeys(pairs, table), "clusters": 6}
    return measured("cell.kappa", {"cell": cell, "dimension": "aggregate"}, value, n=60, detail=detail)


def shares(found) -> list[Measurement]:
    """One mostly terse agent, and a rerun at equal length that bears one of its comparisons."""
    below = {"agent-0": 0, "agent-1": 200, "agent-2": 10, "agent-3": 125}
    terse = []
    for agent, count in below.items():
        low, high = wilson(count, 250)
        detail = {"below": count, "tokens": 60}
        terse.append(measured("terse.share", {"agent": agent}, count / 250, n=250, low=low, high=high, detail=detail))
    labels = next(m.labels for m in found if m.name == "contrast" and {"agent-0", "agent-1"} <= set(m.labels.values()))
    rerun = measured("length_matched.contrast", labels, 0.7, detail={"p": 1e-5, "p_holm": 6e-5})
    return [*terse, rerun]


def outside(found) -> Measurement:
    """The outside judge on one unresolved aggregate pair: an interval that contains 0."""
    labels = next(
        m.labels for m in found if m.name == "contrast" and m.labels["dimension"] == "aggregate" and m.detail["p"] > 0.1
    )
    differences = np.random.default_rng(4).normal(0.02, 0.4, 60)
    where = np.repeat(CLUSTERS, 10)
    test = cluster_t(differences, where)
    sums = {c: [float(differences[where == c].sum()), 10] for c in CLUSTERS}
    detail = {"judge": "deepseek", "family": "outside", "p": test.p, "cluster_sums": sums}
    return measured(
        "probe.contrast", labels, test.difference, n=60, low=test.low, high=test.high, level=0.95, detail=detail
    )


@cache
def decided(clusters: int = 6):
    """The verdicts on it, by claim id, and the index they follow from."""
    measurements = analysed(clusters)
    verdicts = decide_claims(measurements, PLAN, "f" * 64, amended=["gates.publish", "claims.first"])
    return {verdict.claim.id: verdict for verdict in verdicts}, index(measurements)
