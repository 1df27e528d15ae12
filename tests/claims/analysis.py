"""Measurements written by hand, as one analysis of a small panel would make them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from assaymark.records import Measurement

FAMILIES = ("fa", "fb", "fc")


def measured(name: str, labels: Mapping[str, str], value: float | None, **more) -> Measurement:
    base = {"n": 100, "n_of": "trajectories", "method": "by hand"}
    return Measurement(name=name, labels=labels, value=value, **{**base, **more})


def kappa(value: float | None, *, dimension: str = "aggregate", low=None, high=None, **labels: str) -> Measurement:
    state = "ok" if value is not None else "undefined: both judges gave one rating"
    detail = {"tables": {"a|b": [[1]]}, "pairs": {"a|b": value}, "clusters": 5}
    return measured(
        "kappa.mean_pairwise", {"dimension": dimension, **labels}, value, low=low, high=high, state=state, detail=detail
    )


def panel(
    levels: Mapping[str, float],
    *,
    dimension: str = "aggregate",
    p: float | Mapping[tuple[str, str], float] = 1e-4,
    dropped: Mapping[str, Mapping[str, float]] | None = None,
    never: frozenset[frozenset[str]] = frozenset(),
) -> list[Measurement]:
    """Effects, contrasts and drops of agents with these levels; ``dropped`` gives other levels without a family."""
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
        found += _pair(dimension, high, low, levels, p, without, frozenset(pair) in never)
    return found


def _pair(dimension, high, low, levels, p, without, apart):
    labels = {"dimension": dimension, "high": high, "low": low}
    if apart:
        detail = {"p": 1.0, "p_holm": 1.0, "p_cluster_t": None, "p_bootstrap": None, "cluster_sums": {}}
        return [measured("contrast", labels, None, n=0, n_of="common cycles", state="never compared", detail=detail)]
    value = p if isinstance(p, float) else p.get((high, low), 1e-4)
    detail = {
        "gating": "cluster-t",
        "p": value,
        "p_cluster_t": value,
        "p_bootstrap": value / 10,
        "cluster_sums": {"c1": [1.0, 2]},
    }
    gap = levels[high] - levels[low]
    found = [measured("contrast", labels, gap, n_of="common cycles", detail=detail)]
    for family, other in without.items():
        found.append(measured("lofo.contrast", {**labels, "dropped": family}, other[high] - other[low]))
    return found
