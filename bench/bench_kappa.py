"""Kappa and its cluster bootstrap against scikit-learn, as ratios measured in one session on one machine.

Run ``just bench``: prints the ratios, and fails where one is below its promise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from assaymark.metrology import bootstrap_kappa, weighted_kappa

Note = Callable[[str, str, str, str], None]
SCALE = [1, 2, 3, 4, 5]
PER_CLUSTER, RESAMPLES = 200, 1000


def best(function: Callable[[], object], repeats: int, number: int = 1) -> float:
    """Seconds of one call: the best of ``repeats`` means over ``number`` calls."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(number):
            function()
        found.append((time.perf_counter() - started) / number)
    return min(found)


def ratio(note: Note, what: str, against: str, ours: float, theirs: float, promised: str) -> float:
    """Note how many times faster ours is."""
    found = theirs / ours
    note(what, against, f"{found:,.0f} x ({ours * 1e6:,.0f} us against {theirs * 1e6:,.0f} us)", promised)
    return found


@pytest.mark.parametrize(("n", "promised"), [(1_000, 50), (1_000_000, 60)])
def test_weighted_kappa(n: int, promised: float, note: Note) -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(1, 6, n)
    b = np.clip(a + rng.integers(-1, 2, n), 1, 5)

    def sklearn() -> float:
        return float(cohen_kappa_score(a, b, weights="quadratic", labels=SCALE))

    assert weighted_kappa(a, b) == pytest.approx(sklearn(), abs=1e-12)
    small = n < 10_000
    ours = best(lambda: weighted_kappa(a, b), 7, 500 if small else 5)
    theirs = best(sklearn, 5, 50 if small else 1)
    found = ratio(
        note, f"weighted kappa, n = {n:,}", "scikit-learn cohen_kappa_score", ours, theirs, f">= {promised} x"
    )
    assert found >= promised


def panel(clusters: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    n = clusters * PER_CLUSTER
    true = rng.integers(1, 6, (n, 1))
    return np.clip(true + rng.integers(-1, 2, (n, 3)), 1, 5), np.repeat(np.arange(clusters), PER_CLUSTER)


def loop_over_sklearn(ratings: np.ndarray, clusters: int) -> np.ndarray:
    """The obvious implementation: draw clusters, gather their items, call scikit-learn for every pair, 1,000 times."""
    rng = np.random.default_rng(1)
    groups = ratings.reshape(clusters, PER_CLUSTER, 3)
    values = np.empty(RESAMPLES)
    for k in range(RESAMPLES):
        drawn = groups[rng.integers(0, clusters, clusters)].reshape(-1, 3)
        values[k] = np.mean(
            [
                cohen_kappa_score(drawn[:, i], drawn[:, j], weights="quadratic", labels=SCALE)
                for i, j in combinations(range(3), 2)
            ]
        )
    return np.percentile(values, [2.5, 97.5])


@pytest.mark.parametrize(("clusters", "promised"), [(5, 5_000), (16, 1_000)])
def test_bootstrap_of_mean_pairwise_kappa(clusters: int, promised: float, note: Note) -> None:
    ratings, codes = panel(clusters)
    rng = np.random.default_rng(2)
    started = time.perf_counter()
    ends = loop_over_sklearn(ratings, clusters)
    theirs = time.perf_counter() - started
    ours = best(lambda: bootstrap_kappa(ratings, codes, rng=rng, resamples=RESAMPLES), 7, 20)
    interval = bootstrap_kappa(ratings, codes, rng=rng, resamples=RESAMPLES)
    assert (interval.low, interval.high) == pytest.approx(tuple(ends), abs=0.01)
    what = f"bootstrap of the mean pairwise kappa, {clusters} clusters x {PER_CLUSTER}"
    found = ratio(note, what, f"loop over scikit-learn, {RESAMPLES:,} resamples", ours, theirs, f">= {promised:,} x")
    tenfold = best(lambda: bootstrap_kappa(ratings, codes, rng=rng), 7, 5)
    ratio(note, f"{what}, our default of 10,000", f"that loop of {RESAMPLES:,}", tenfold, theirs, "none set")
    assert found >= promised


def test_bench_weighted_kappa(benchmark: Callable[..., object]) -> None:
    a, b = np.random.default_rng(7).integers(1, 6, (2, 1100))
    benchmark(weighted_kappa, a, b)
