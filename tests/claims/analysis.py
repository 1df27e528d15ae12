"""Handwritten measurements in the form of one analysis of a small panel."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from assaymark.claims import decide_claims
from assaymark.protocol import parse_study
from assaymark.records import Measurement

FAMILIES = ("fa", "fb", "fc")
STUDY = parse_study(
    'name = "s"\nseed = 1\n[[judges]]\nname = "a"\nmodel = "reference/a"\nfamily = "fa"\n'
    '[[judges]]\nname = "b"\nmodel = "reference/b"\nfamily = "fb"\n'
)
LEVELS = {"ash": 4.4, "elm": 4.0, "oak": 3.9}


def verdicts(*measurements, study=STUDY, agreed=0.72, **more):
    """Return the verdicts on measurements by claim; ``agreed`` is kappa on the overall score, None for no kappa."""
    found = [*([] if agreed is None else [kappa(agreed)]), *measurements]
    return {verdict.claim.id: verdict for verdict in decide_claims(found, study, "hash", **more)}


def measured(name: str, labels: Mapping[str, str], value: float | None, **more) -> Measurement:
    base = {"n": 100, "n_of": "trajectories", "method": "by hand"}
    return Measurement(name=name, labels=labels, value=value, **{**base, **more})


def kappa(value: float | None, *, dimension: str = "aggregate", low=None, high=None, **labels: str) -> Measurement:
    state = "ok" if value is not None else "undefined: both judges gave one rating"
    detail = {"tables": {"a|b": [[1]]}, "pairs": {"a|b": value}, "clusters": 5}
    labels = {"dimension": dimension, **labels}
    return measured("kappa.mean_pairwise", labels, value, low=low, high=high, state=state, detail=detail)


def panel(levels, *, dimension="aggregate", p=1e-4, p_drop=1e-4, dropped=None, never=frozenset()) -> list[Measurement]:
    """Return effects, contrasts and drops of agents with these levels; ``dropped`` has other levels without a family.
    ``p_drop`` is the p-value of every contrast without a family, adjusted or not."""
    found = []
    without = {family: (dropped or {}).get(family, levels) for family in FAMILIES}
    for agent, level in levels.items():
        found.append(measured("score.effect", {"dimension": dimension, "agent": agent}, level))
        for family, other in without.items():
            labels = {"dimension": dimension, "agent": agent, "dropped": family}
            found.append(measured("lofo.effect", labels, other[agent]))
    for family in FAMILIES:
        found.append(measured("lofo.rho", {"dimension": dimension, "dropped": family}, 1.0))
    for pair in combinations(sorted(levels), 2):
        high, low = sorted(pair, key=lambda agent: (-levels[agent], agent))
        labels = {"dimension": dimension, "high": high, "low": low}
        if frozenset(pair) in never:
            state = "cannot be tested (0 common clusters; 3 are needed, 5 or more to have a chance)"
            detail = {"p": 1.0, "clusters": 0, "cluster_sums": {}}
            found.append(measured("contrast", labels, None, n=0, n_of="common cycles", state=state, detail=detail))
            continue
        value = p if isinstance(p, float) else p.get((high, low), 1e-4)
        detail = {"p": value, "p_cluster_t": value, "p_bootstrap": value / 10, "clusters": 8,
                  "cluster_sums": {"c1": [1.0, 2]}}  # fmt: skip
        found.append(measured("contrast", labels, levels[high] - levels[low], n_of="common cycles", detail=detail))
        for family, other in without.items():
            left = {"p": p_drop, "p_adjusted": p_drop}
            gap = other[high] - other[low]
            found.append(measured("lofo.contrast", {**labels, "dropped": family}, gap, detail=left))
    return found


def probe(high: str, low: str, value: float, ends: tuple[float, float] | None, *, dimension="aggregate"):
    """Return the held-out judge's contrast of a pair; without ends it has no interval."""
    labels, (from_, to) = {"dimension": dimension, "high": high, "low": low}, ends or (None, None)
    detail = {"judge": "deepseek", "family": "outside", "p": 0.5}
    return measured("probe.contrast", labels, value, low=from_, high=to, detail=detail)


def gate(cell: str, outcome: str, value: float | None, *, p: float = 1e-6, ends=(None, None), **detail) -> Measurement:
    """Return the gate of a control cell with the given outcome."""
    state = "ok" if value is not None else "undefined: one cluster cannot be tested, needs two"
    parts = {"outcome": outcome, "p": None if value is None else p, "p_holm": None if value is None else p, **detail}
    return measured("cell.gate", {"cell": cell}, value, low=ends[0], high=ends[1], state=state, detail=parts)


def passed() -> list[Measurement]:
    """Return the gates of both required cells, passed."""
    return [gate("cell_a", "passed", -2.9), gate("cell_b", "substance", -0.1, p=0.4)]


def halo(cell: str, value: float, family: str | None, *, triggered: bool = False) -> Measurement:
    return measured("cell.halo", {"cell": cell}, value, detail={"family": family, "triggered": triggered})


def without(cell: str, family: str, value: float, outcome: str) -> Measurement:
    labels = {"cell": cell, "dropped": family}
    return measured("cell.drop", labels, value, detail={"outcome": outcome, "p": 1e-6, "p_holm": 1e-6})


def terse(agent: str, share: float) -> Measurement:
    return measured("terse.share", {"agent": agent}, share, n=1000, detail={"below": round(1000 * share), "tokens": 60})


def rerun(high: str, low: str, value: float, p_holm: float, *, dimension="aggregate") -> Measurement:
    labels = {"dimension": dimension, "high": high, "low": low}
    return measured("length_matched.contrast", labels, value, detail={"p": p_holm, "p_holm": p_holm})
