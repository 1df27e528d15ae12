"""What both ways to a kappa share: from ratings and from contingency tables come the same measurements.

`measure_agreement` counts the ratings of a table in memory, `pooled_agreement` adds up the tables of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from assaymark.metrology.bootstrap import Interval, KappaSums
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import natural
from assaymark.metrology.kappa import Pair, neighbour_blocks, round_half_up
from assaymark.metrology.panel import Panel
from assaymark.records import JSON, Measurement

ONE_FAMILY = "not measurable: one judge family, needs two"

KAPPA = (
    "mean of pairwise quadratic-weighted kappa over judges of different families; "
    "trials averaged, halves rounded up, clipped to 1..5"
)
_RESAMPLES = 10_000  # intervals of kappa share no error rate, so the size of the Holm family does not enter


def categories_of(scores: Floats) -> Ints:
    """Averaged scores as ratings on 1..5: halves up, then clipped."""
    rounded = np.asarray(round_half_up(np.round(scores, 9))) if scores.size else scores
    return np.clip(rounded, 1, 5).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Counted:
    """The ratings of some trajectories, counted: sums by cluster, the points had halves gone to even, and tables.

    ``halves`` [K] are mean pairwise kappas, ``tables`` [K, P, 5, 5] contingency tables over the pairs of ``sums``,
    ``clusters`` [G] the indices of the clusters that ``sums`` are of.
    """

    sums: KappaSums
    halves: list[float | None]
    tables: Ints
    clusters: Ints


def kappa_measurements(
    panel: Panel, f: int | None, n: int, clusters: int, counted: Counted | str, rng: np.random.Generator
) -> Iterator[Measurement]:
    """Mean pairwise kappas of all names with their two intervals; ``counted`` may be the reason that there are none."""
    format_ = {} if f is None else {"format": panel.table.formats[f]}
    common: dict[str, Any] = {"n": n, "n_of": "trajectories", "method": KAPPA}
    details: list[dict[str, JSON]] = [{"clusters": clusters} for _ in panel.names]
    if isinstance(counted, str):
        for name, detail in zip(panel.names, details, strict=True):
            labels = {"dimension": name, **format_}
            yield panel.measure("kappa.mean_pairwise", labels, value=None, state=counted, detail=detail, **common)
        return
    points = counted.sums.points()
    jacks, boots = _intervals(panel, counted, rng)
    pairs = list(_by_pair(panel, counted))
    for k, name in enumerate(panel.names):
        detail = details[k] | pairs[k] | {"half_even": counted.halves[k]}
        found: dict[str, Any] = {"value": points[k]}
        if points[k] is None:
            found["state"] = _constant(n, pairs[k]["pairs"])
        else:
            # What a measurement says of its jackknife interval, and what its detail says of the bootstrap interval.
            jack = jacks[k]
            boot = boots[k]
            level = panel.study.inference.level
            second: dict[str, JSON] = {
                "low": None,
                "high": None,
                "method": boot if isinstance(boot, str) else boot.method,
            }
            if isinstance(boot, Interval) and boot.low < boot.high:
                second |= {"low": boot.low, "high": boot.high}
            if isinstance(jack, str):
                ends, detail["bootstrap"] = {"method": f"{KAPPA}; {jack}"}, second
            else:
                ends, detail["bootstrap"] = (
                    {"low": jack.low, "high": jack.high, "level": level, "method": f"{KAPPA}; {jack.method}"},
                    second,
                )
            found |= ends
        parts = common | found | {"detail": detail}
        yield panel.measure("kappa.mean_pairwise", {"dimension": name, **format_}, **parts)


def _by_pair(panel: Panel, counted: Counted) -> Iterator[dict[str, Any]]:
    """Of every name the kappa and the contingency table of each pair of judges; None where the pair has no kappa."""
    judges = panel.table.judges
    names = [f"{judges[a]}|{judges[b]}" for a, b in counted.sums.pairs]
    for kappas, tables in zip(counted.sums.of_all().T.tolist(), counted.tables.tolist(), strict=True):
        known = (None if math.isnan(kappa) else kappa for kappa in kappas)
        yield {"pairs": dict(zip(names, known, strict=True)), "tables": dict(zip(names, tables, strict=True))}


def _constant(n: int, pairs: Mapping[str, float | None]) -> str:
    """The state of a mean that a pair without a kappa leaves undefined."""
    constant = ", ".join(pair for pair, kappa in pairs.items() if kappa is None)
    return f"undefined: both judges gave one rating to all {n} trajectories ({constant})"


def _intervals(
    panel: Panel, counted: Counted, rng: np.random.Generator
) -> tuple[list[Interval | str], list[Interval | str]]:
    """Jackknife and bootstrap interval of every name, or the reasons that there are none."""
    sums = counted.sums
    if sums.clusters < 2:
        none: list[Interval | str] = ["no interval: one cluster, needs two"] * len(panel.names)
        return none, none
    plan = panel.study.inference
    boots = sums.bootstrap(level=plan.level, resamples=plan.resamples or _RESAMPLES, rng=rng)
    blocks = None
    if plan.order_of(panel.table.clusters) == "consecutive":
        names = [natural(panel.table.clusters[g]) for g in counted.clusters]
        blocks = neighbour_blocks(len(names))[np.argsort(sorted(range(len(names)), key=names.__getitem__))]
    return sums.jackknife(level=plan.level, blocks=blocks), boots


def kappa_state(panel: Panel, f: int | None, n: int, clusters: int) -> str | None:
    """Why these kappas are not computed, or None."""
    gates = panel.study.gates
    if len(set(panel.table.families)) < 2:
        return ONE_FAMILY
    if f is not None and (n < gates.format_min_records or clusters < gates.format_min_clusters):
        return f"too few to gate: {n} records in {clusters} cluster{'' if clusters == 1 else 's'}"
    return panel.missing


def cross_family_pairs(families: tuple[str, ...]) -> list[Pair]:
    """Pairs of judges of different families: siblings agree with each other for reasons of their own."""
    return [(a, b) for a, b in combinations(range(len(families)), 2) if families[a] != families[b]]


def plain_measurements(
    panel: Panel, name: str, method: str, statistic: Callable[[], list[float | str]]
) -> Iterator[Measurement]:
    """A statistic of the whole panel for every name, without an interval; a text among its values is a state."""
    common = {"n": panel.table.n, "n_of": "trajectories", "method": method}
    state = ONE_FAMILY if len(set(panel.table.families)) < 2 else panel.missing
    values = [state] * len(panel.names) if state else statistic()
    for dimension, value in zip(panel.names, values, strict=True):
        known = isinstance(value, float)
        yield panel.measure(
            name, {"dimension": dimension}, value=value if known else None, state="ok" if known else value, **common
        )
