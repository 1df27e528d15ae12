"""Measurements of the panel as an instrument: kappa by dimension and format, and what each judge's calls were worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology.agreement import (
    Pair,
    fleiss_kappa,
    kappa_of_table,
    mean_correlation,
    pair_tables,
    round_half_up,
)
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.intervals import Interval, wilson
from assaymark.metrology.panel import Panel, state_of
from assaymark.metrology.resampling import KappaSums
from assaymark.metrology.stability import repetition_stability
from assaymark.records import AGGREGATE, JSON, Measurement

ONE_FAMILY = "not measurable: one judge family, needs two"

_KAPPA = (
    "mean of pairwise quadratic-weighted kappa over judges of different families; "
    "trials averaged, halves rounded up, clipped to 1..5"
)
_RESAMPLES = 10_000  # intervals of kappa share no error rate, so the size of the Holm family does not enter


def categories_of(scores: Floats) -> Ints:
    """Averaged scores as ratings on 1..5: halves up, then clipped.

    Rounding at the ninth decimal first undoes float noise: thirds that add up to 2.5 can fall short of it in binary.

    >>> categories_of(np.array([2.5, 0.2, (0.1 + 0.2 + 7.2) / 3])).tolist()
    [3, 1, 3]
    """
    rounded = np.asarray(round_half_up(np.round(scores, 9))) if scores.size else scores
    return np.clip(rounded, 1, 5).astype(np.int64)


def agreement_measurements(panel: Panel, rng: np.random.Generator) -> Iterator[Measurement]:
    """Kappa, Fleiss' kappa and redundancy of the aggregate and each dimension, and kappa within formats."""
    ratings = categories_of(panel.scores)
    table = panel.table
    for k, name in enumerate(panel.names):
        labels = {"dimension": name}
        yield _kappa(panel, labels, k, np.ones(table.n, dtype=bool), rng)
        yield _plain(panel, "kappa.fleiss", labels, "Fleiss' unweighted kappa", fleiss_kappa, ratings[:, :, k])
        yield _plain(
            panel,
            "redundancy",
            labels,
            "mean Pearson correlation over pairs of judges",
            mean_correlation,
            panel.scores[:, :, k],
        )
    if len(table.formats) > 1:
        for f, label in enumerate(table.formats):
            for k, name in enumerate(panel.names):
                yield _kappa(panel, {"dimension": name, "format": label}, k, table.format == f, rng)


def _kappa(
    panel: Panel, labels: dict[str, str], column: int, rows: np.ndarray[Any, Any], rng: np.random.Generator
) -> Measurement:
    """One mean pairwise kappa with its two intervals, or the state that says why there is none."""
    clusters, codes = np.unique(panel.table.cluster[rows], return_inverse=True)
    n, g = int(rows.sum()), int(clusters.size)
    common = {"n": n, "n_of": "trajectories", "method": _KAPPA}
    state = _kappa_state(panel, n, g, "format" in labels)
    if state:
        return panel.measure("kappa.mean_pairwise", labels, value=None, state=state, detail={"clusters": g}, **common)
    scores = panel.scores[rows][:, :, column]
    pairs = cross_family_pairs(panel.table.families)
    sums = KappaSums.of(categories_of(scores), codes, g, pairs)
    detail = {"clusters": g, **_tables(panel, categories_of(scores), pairs), "half_even": _half_even(scores, pairs)}
    value = sums.point()
    if value is None:
        constant = [pair for pair, kappa in detail["pairs"].items() if kappa is None]
        state = f"undefined: both judges gave one rating to all {n} trajectories ({', '.join(constant)})"
        return panel.measure("kappa.mean_pairwise", labels, value=None, state=state, detail=detail, **common)
    level = panel.study.inference.level
    resamples = panel.study.inference.resamples or _RESAMPLES
    interval, reason = _try(lambda: sums.bootstrap(level=level, resamples=resamples, rng=rng), g)
    jackknife, _ = _try(lambda: sums.jackknife(level=level), g)
    detail |= {
        "t_low": jackknife.low if jackknife else None,
        "t_high": jackknife.high if jackknife else None,
        "interval_method": reason,
    }
    return panel.measure(
        "kappa.mean_pairwise",
        labels,
        value=value,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        level=level if interval else None,
        detail=detail,
        **common,
    )


def _kappa_state(panel: Panel, n: int, clusters: int, within_format: bool) -> str | None:
    """Why this kappa is not computed, or None."""
    gates = panel.study.gates
    if len(set(panel.table.families)) < 2:
        return ONE_FAMILY
    if within_format and (n < gates.format_min_records or clusters < gates.format_min_clusters):
        return f"too few to gate: {n} records in {clusters} cluster{'' if clusters == 1 else 's'}"
    return panel.missing


def cross_family_pairs(families: tuple[str, ...]) -> list[Pair]:
    """Pairs of judges of different families: siblings agree with each other for reasons of their own.

    >>> cross_family_pairs(("north", "north", "south"))
    [(0, 2), (1, 2)]
    """
    return [(a, b) for a, b in combinations(range(len(families)), 2) if families[a] != families[b]]


def _tables(panel: Panel, ratings: Ints, pairs: list[Pair]) -> dict[str, JSON]:
    """Contingency table and kappa of every pair under the names of its judges."""
    judges = panel.table.judges
    names = [f"{judges[a]}|{judges[b]}" for a, b in pairs]
    tables = pair_tables(ratings, pairs)
    return {
        "pairs": {name: _kappa_or_none(cells) for name, cells in zip(names, tables, strict=True)},
        "tables": {name: cells.tolist() for name, cells in zip(names, tables, strict=True)},
    }


def _kappa_or_none(table: Ints) -> float | None:
    try:
        return kappa_of_table(table)
    except NotMeasurableError:
        return None


def _half_even(scores: Floats, pairs: list[Pair]) -> float | None:
    """The same mean kappa had halves been rounded to even, for the fragility of the verdict."""
    ratings = np.clip(np.rint(np.round(scores, 9)), 1, 5).astype(np.int64)
    found = [_kappa_or_none(cells) for cells in pair_tables(ratings, pairs)]
    return None if None in found else float(np.mean([kappa for kappa in found if kappa is not None]))


def _try(make: Callable[[], Interval], clusters: int) -> tuple[Interval | None, str]:
    """An interval and its method, or None and the reason."""
    if clusters < 2:
        return None, "no interval: one cluster, needs two"
    try:
        interval = make()
    except NotMeasurableError as exc:
        return None, str(exc)
    return interval, interval.method


def _plain(
    panel: Panel, name: str, labels: dict[str, str], method: str, statistic: Callable[[Any], float], values: Any
) -> Measurement:
    """A statistic of the whole panel without an interval, or the state that says why there is none."""
    common = {"n": panel.table.n, "n_of": "trajectories", "method": method}
    state = ONE_FAMILY if len(set(panel.table.families)) < 2 else panel.missing
    if state is None:
        try:
            return panel.measure(name, labels, value=statistic(values), **common)
        except NotMeasurableError as exc:
            state = state_of(exc)
    return panel.measure(name, labels, value=None, state=state, **common)


def judge_measurements(panel: Panel) -> Iterator[Measurement]:
    """Repetition stability under both divisors and share of unusable calls of each judge; noise floor of each agent."""
    for judge in panel.table.judges:
        for ddof in (0, 1):
            yield _stability(panel, judge, ddof)
    for judge in panel.table.judges:
        yield _invalid(panel, judge)
    for agent in panel.table.agents:
        yield _floor(panel, agent)


def _stability(panel: Panel, judge: str, ddof: int) -> Measurement:
    trials = panel.table.trials[judge]
    common = {
        "n": trials.shape[0],
        "n_of": "trajectories",
        "method": f"1 - mean variance within trajectories / variance of all trials, ddof {ddof}",
        "detail": {"gate": panel.study.gates.repetition_stability, "trials": trials.shape[1]},
    }
    labels = {"judge": judge, "ddof": str(ddof)}
    if trials.shape[1] < 2:
        state = "undefined: one trial, needs two"
    elif trials.shape[0] < 2:
        state = f"undefined: {trials.shape[0]} trajectories with every trial usable, needs two"
    else:
        try:
            value = repetition_stability(trials, ddof=ddof)
            return panel.measure("noise.repetition_stability", labels, value=value, **common)
        except NotMeasurableError as exc:
            state = state_of(exc)
    return panel.measure("noise.repetition_stability", labels, value=None, state=state, **common)


def _invalid(panel: Panel, judge: str) -> Measurement:
    calls = panel.table.calls[judge]
    low, high = wilson(calls.invalid + calls.refused, calls.total, level=panel.study.inference.level)
    return panel.measure(
        "judge.invalid_share",
        {"judge": judge},
        value=(calls.invalid + calls.refused) / calls.total,
        n=calls.total,
        n_of="calls",
        method="calls without a usable score over all calls, Wilson interval",
        low=low,
        high=high,
        level=panel.study.inference.level,
        detail={"ok": calls.ok, "invalid": calls.invalid, "refused": calls.refused, "reasons": dict(calls.reasons)},
    )


def _floor(panel: Panel, agent: str) -> Measurement:
    groups = panel.table.replicates.get(agent, ())
    common = {
        "n": sum(len(group) for group in groups),
        "n_of": "replicates",
        "method": "pooled standard deviation of the aggregate between replicates of one cycle",
        "unit": "rubric points",
        "detail": {"dimension": AGGREGATE, "cycles": len(groups)},
    }
    labels = {"agent": agent}
    if not groups:
        return panel.measure("noise.agent_floor", labels, value=None, state="undefined: no replicates", **common)
    squares = sum(float(np.square(np.array(group) - np.mean(group)).sum()) for group in groups)
    freedom = sum(len(group) - 1 for group in groups)
    return panel.measure("noise.agent_floor", labels, value=float(np.sqrt(squares / freedom)), **common)
