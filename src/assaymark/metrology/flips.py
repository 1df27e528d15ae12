"""The sign-flip test: had the agents been equal, each cluster could as well have come out the other way round."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import EXACT_FLIPS, Contrast, Tested, by_cluster, contrast_of, settle
from assaymark.metrology.resampling import SMALL_PRODUCT

_ROWS = 1 << 14  # patterns looked at together
_COLUMNS = 64  # contrasts looked at together
_ZERO = 1e-9


def sign_flip(
    differences: ArrayLike,
    clusters: Sequence[Any] | NDArray[Any],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Contrast:
    """Sign-flip test of a mean paired difference whose items come in clusters.

    If two agents are equal, each cluster could as well have come out the other way round. p is the share of all 2^G
    ways to turn clusters round whose mean lies at least as far from 0 as the one that was found. It needs nothing but
    that symmetry, and it cannot fall below 2^(1-G): with five clusters no difference whatever has p below 0.0625.
    Up to 16 clusters all ways are enumerated; above, ``resamples`` are drawn and p is (k+1)/(B+1).

    The interval holds the differences that the test would not reject. With few clusters there is none, because the
    test rejects nothing.

    Parameters
    ----------
    differences, clusters, level
        As for `cluster_t`.
    resamples : int
        Draws when there are more than 16 clusters.
    rng : numpy Generator, optional
        Required above 16 clusters.

    Returns
    -------
    Contrast

    Raises
    ------
    InputError
        Empty, not finite, lengths that differ, or no ``rng`` where one is needed.

    References
    ----------
    Canay, I. A., Romano, J. P. and Shaikh, A. M. (2017). Randomization tests under an approximate symmetry
    assumption. Econometrica 85(3), 1013-1030.

    Examples
    --------
    >>> result = sign_flip([0.4, 0.6, 0.1, 0.3, 0.5, 0.2], list("abcdef"))
    >>> f"[{result.low:.2f}, {result.high:.2f}] p={result.p:.4f} {result.method}"
    '[0.10, 0.60] p=0.0312 sign flip, exact: all 64 patterns of 6 clusters'
    """
    sums, counts, n = by_cluster("sign_flip", differences, clusters)
    checks.probability("sign_flip", "level", level)
    checks.whole("sign_flip", "resamples", resamples, least=1)
    (test,) = flip_tests([(sums, counts)], resamples=resamples, rng=rng, level=level, intervals=[True])
    return contrast_of(test, 0, n=n)


def flip_tests(
    parts: Sequence[tuple[Floats, Ints]],
    *,
    resamples: int,
    rng: np.random.Generator | None,
    level: float,
    intervals: Sequence[bool],
    leading: int | None = None,
) -> list[Tested]:
    """`sign_flip` on several pairs (cluster sums [G, K], sizes [G]), all with equal G and on the same patterns.

    Interval ends are computed for the pairs asked for, and there for the ``leading`` columns (default: all).
    """
    g = parts[0][1].size
    exact = g <= EXACT_FLIPS
    turned = _all_patterns(g) if exact else _drawn_patterns(g, resamples, rng)
    hits = _far(np.concatenate([sums for sums, _ in parts], axis=1), turned)
    # Of two opposite patterns only one is enumerated: turning every sign changes no distance from 0.
    total = float(turned.shape[0]) if exact else turned.shape[0] + 1.0
    p = hits / total if exact else (hits + 1) / total
    method = f"sign flip, exact: all {2**g}" if exact else f"sign flip, drawn: {resamples}"
    found, start = [], 0
    for (sums, counts), wanted in zip(parts, intervals, strict=True):
        width = sums.shape[1]
        low, high = np.full((2, width), np.nan)
        if wanted and g > 1:
            spans = math.floor((1 - level) * total + _ZERO)
            low[:leading], high[:leading] = _ends(sums[:, :leading], counts, turned, spans, exact=exact)
        difference = settle(sums.sum(axis=0) / counts.sum())
        said = (f"{method} patterns of {g} clusters",) * width
        found.append(Tested(difference, p[start : start + width], low, high, g, said))
        start += width
    return found


@cache
def _all_patterns(clusters: int) -> Bools:
    """Which clusters are turned round [2^(G-1), G] in every pattern that leaves the last one; the first turns none."""
    patterns = (np.arange(2 ** (clusters - 1))[:, None] >> np.arange(clusters) & 1).astype(bool)
    patterns.setflags(write=False)
    return patterns


def _drawn_patterns(clusters: int, resamples: int, rng: np.random.Generator | None) -> Bools:
    """Which clusters are turned round [R, G], each with probability one half."""
    if rng is None:
        checks.fail(
            "sign_flip",
            "rng",
            f"{clusters} clusters are too many to enumerate (up to {EXACT_FLIPS} are); "
            "pass a generator such as np.random.default_rng(7)",
        )
    return rng.integers(0, 2, size=(resamples, clusters), dtype=np.uint8).astype(bool)


def _blocks(turned: Bools, rows: int) -> Iterator[Floats]:
    for start in range(0, turned.shape[0], rows):
        yield turned[start : start + rows].astype(np.float64)


def _far(sums: Floats, turned: Bools) -> Floats:
    """In how many patterns the total of each column [G, W] lies at least as far from 0 as it really does [W]."""
    total = sums.sum(axis=0)
    least = np.abs(total) - _ZERO
    hits = np.zeros(sums.shape[1])
    parts = [slice(start, start + _COLUMNS) for start in range(0, hits.size, _COLUMNS)]
    for block in _blocks(turned, max(1, SMALL_PRODUCT // (_COLUMNS * sums.shape[0]))):
        for part in parts:
            hits[part] += np.count_nonzero(np.abs(total[part] - 2 * (block @ sums[:, part])) >= least[part], axis=0)
    return hits


def _ends(sums: Floats, counts: Ints, turned: Bools, spans: int, *, exact: bool) -> tuple[Floats, Floats]:
    """Ends [K] of the differences that the test keeps, NaN where it keeps all of them.

    A pattern speaks for a difference d exactly where d lies between the mean of the clusters that it turns and the
    mean of those that it leaves. All of these spans hold the overall mean, so the ends are where the number of spans
    that have begun, and of those that have not ended, reaches what p above 1 - level needs.
    """
    some = turned.any(axis=1) & ~turned.all(axis=1)
    # Drawn patterns that turn all or none speak for every difference; the enumerated one is the test's own.
    need = spans if exact else spans - int((~some).sum())
    if need < 1:
        return np.full(sums.shape[1], np.nan), np.full(sums.shape[1], np.nan)
    means = [
        ((block @ sums) / (block @ counts)[:, None], ((1 - block) @ sums) / ((1 - block) @ counts)[:, None])
        for block in _blocks(turned[some], _ROWS)
    ]
    one, other = (np.concatenate(side) for side in zip(*means, strict=True))
    starts, stops = np.minimum(one, other), -np.maximum(one, other)
    return np.partition(starts, need - 1, axis=0)[need - 1], -np.partition(stops, need - 1, axis=0)[need - 1]
