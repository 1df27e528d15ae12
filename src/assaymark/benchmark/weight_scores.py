"""The score of the third stage, weights: accuracy against the oracle and two layers of correlation.

PortBench section C.1, equations 6 and 8 to 11. Where the authors' public code departs from the printed formula,
``convention="reference"`` computes what the code does. Scores are dimensionless, in [0, 1]; higher is better.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.benchmark.checks import clipped, known_convention, same_length, share
from assaymark.benchmark.stages import Convention
from assaymark.portfolio.checks import SLACK, Findings
from assaymark.portfolio.solution import Floats


def weight_accuracy(w: ArrayLike, w_star: ArrayLike, *, convention: Convention = "paper") -> float:
    """How near weights are to the oracle's: 1 less half the sum of absolute differences (section C.1).

    1: the same weights. 0: nothing in common. The value is the share of the portfolio that both hold alike.

    Parameters
    ----------
    w, w_star : float arrays of shape (n_assets,)
        At least 0; each sums to at most 1, the rest is cash. A sum within 1e-4 of 1 was rounded: the weights are
        divided by it.
    convention : {"paper", "reference"}
        ``reference`` divides the sum by n_assets as well: over 81 assets no portfolio scores below 0.987.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    UnknownNameError
        Another convention.
    InputError
        Weights that are negative, not finite, sum to more than 1, or are not equally many.

    Examples
    --------
    >>> weight_accuracy([0.5, 0.5, 0.0], [0.0, 0.5, 0.5])
    0.5
    >>> round(weight_accuracy([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], convention="reference"), 4)
    0.8333
    """
    known_convention(convention)
    found = Findings("weight_accuracy")
    first, second = _weights(found, "w", w), _weights(found, "w_star", w_star)
    same_length(found, "w", first, second)
    found.settle()
    assert first is not None
    assert second is not None
    return _accuracy(first, second, convention)


def intra_class_score(w: ArrayLike, corr: ArrayLike, classes: Sequence[Hashable]) -> float:
    """Absence of concentration in classes whose members move together (equation 9).

    1: no weight in a class with a positive mean correlation. Weight in a class costs that mean, over all pairs of
    the class, held or not. A class with one member, or without a defined pair, adds no penalty.

    Parameters
    ----------
    w : float array of shape (n_assets,)
        At least 0, sums to at most 1; rounded sums as in `weight_accuracy`.
    corr : float array of shape (n_assets, n_assets)
        Pearson correlations of the lookback; NaN where a pair has none, which is left out of every mean.
    classes : sequence of n_assets labels
        The class of each asset.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        Weights as in `weight_accuracy`; correlations that are not square, not symmetric, or out of [-1, 1]; labels
        that are not n_assets.

    Examples
    --------
    >>> corr = [[1.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 1.0]]
    >>> intra_class_score([0.25, 0.25, 0.5], corr, ["equity", "equity", "bond"])
    0.7
    """
    found = Findings("intra_class_score")
    weights = _weights(found, "w", w)
    return _intra(*_by_class(found, weights, corr, classes))


def inter_class_score(
    w: ArrayLike, corr: ArrayLike, classes: Sequence[Hashable], *, convention: Convention = "paper"
) -> float:
    """Credit for classes that hedge each other (equations 10 and 11).

    The mean correlation of the classes held, each pair weighed by the product of the weights of its two classes,
    from 1 (score 0) to -1 (score 1). The correlation of two classes is the mean over all their pairs of assets.

    Parameters
    ----------
    w, corr, classes
        As in `intra_class_score`.
    convention : {"paper", "reference"}
        Where equation 10 divides by 0, as only one class is held: no hedging, 0, or 1 in the ``reference``. The same
        where no correlation between the classes held is defined. A weight up to 1e-9 is not held.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    UnknownNameError
        Another convention.
    InputError
        As in `intra_class_score`.

    Examples
    --------
    >>> corr = [[1.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 1.0]]
    >>> inter_class_score([0.25, 0.25, 0.5], corr, ["equity", "equity", "bond"])
    0.55
    >>> inter_class_score([0.5, 0.5, 0.0], corr, ["equity", "equity", "bond"])
    0.0
    """
    known_convention(convention)
    found = Findings("inter_class_score")
    weights = _weights(found, "w", w)
    return _inter(*_by_class(found, weights, corr, classes), convention)


def s3_score(
    w: ArrayLike,
    w_star: ArrayLike,
    corr: ArrayLike,
    classes: Sequence[Hashable],
    *,
    alpha: float = 0.5,
    convention: Convention = "paper",
) -> float:
    """Weight optimisation: accuracy against the oracle, and the two layers of correlation (equations 6 and 8).

    ``alpha * accuracy + (1 - alpha) * (intra + inter) / 2``. Even the oracle's own weights seldom score 1, as the
    second part asks how they are spread.

    Parameters
    ----------
    w, w_star
        As in `weight_accuracy`.
    corr, classes
        As in `intra_class_score`.
    alpha : float
        Weight of accuracy, in [0, 1].
    convention : {"paper", "reference"}
        As in `weight_accuracy` and `inter_class_score`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    UnknownNameError
        Another convention.
    InputError
        As in `weight_accuracy` and `intra_class_score`; alpha out of range.

    Examples
    --------
    >>> corr = [[1.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 1.0]]
    >>> round(s3_score([0.25, 0.25, 0.5], [0.5, 0.0, 0.5], corr, ["equity", "equity", "bond"]), 4)
    0.6875
    """
    known_convention(convention)
    found = Findings("s3_score")
    first, second = _weights(found, "w", w), _weights(found, "w_star", w_star)
    same_length(found, "w", first, second)
    share(found, "alpha", alpha)
    totals, means = _by_class(found, first, corr, classes)
    assert first is not None
    assert second is not None
    spread = (_intra(totals, means) + _inter(totals, means, convention)) / 2.0
    return clipped(alpha * _accuracy(first, second, convention) + (1.0 - alpha) * spread)


def _weights(found: Findings, where: str, values: ArrayLike) -> Floats | None:
    """Weights of one portfolio, checked."""
    weights = found.array(where, values, (1,))
    return None if weights is None else found.weights(where, weights, least=0.0)


def _accuracy(w: Floats, w_star: Floats, convention: Convention) -> float:
    apart = np.abs(w - w_star)
    return clipped(1.0 - float(apart.mean() if convention == "reference" else apart.sum()) / 2.0)


def _by_class(
    found: Findings, weights: Floats | None, corr: ArrayLike, classes: Sequence[Hashable]
) -> tuple[Floats, Floats]:
    """Weight of each class, and the mean correlation of each two classes: NaN where no pair of theirs has one."""
    matrix = found.array("corr", corr, (2,))
    if matrix is not None and weights is not None:
        n = weights.size
        if matrix.shape != (n, n):
            found.add("corr", f"must have shape ({n}, {n}) (got {matrix.shape})")
        elif len(classes) != n:
            found.add("classes", f"must be {n}, one of each asset (got {len(classes)})")
        else:
            found.none_of(np.abs(matrix) > 1 + SLACK, "corr", "must be from -1 to 1, or NaN where undefined", matrix)
            # The exact comparison is the quick one, and what most matrices pass.
            if not np.array_equal(matrix, matrix.T, equal_nan=True):
                apart = ~np.isclose(matrix, matrix.T, rtol=0.0, atol=SLACK, equal_nan=True)
                found.none_of(apart, "corr", "must be symmetric", matrix)
    found.settle()
    assert matrix is not None
    assert weights is not None
    member = _membership(classes)
    return weights @ member, _block_means(matrix, member)


def _membership(classes: Sequence[Hashable]) -> Floats:
    """Which asset is of which class: 1.0 and 0.0, of shape (n_assets, n_classes)."""
    labels = {label: code for code, label in enumerate(dict.fromkeys(classes))}
    codes: NDArray[np.intp] = np.array([labels[label] for label in classes])
    return np.asarray(codes[:, None] == np.arange(len(labels)), dtype=np.float64)


def _block_means(corr: Floats, member: Floats) -> Floats:
    """Mean correlation of each two classes over the defined pairs of different assets, of shape (classes, classes)."""
    defined = np.isfinite(corr)
    np.fill_diagonal(defined, False)
    sums = member.T @ np.where(defined, corr, 0.0) @ member
    counts = member.T @ defined @ member
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _intra(totals: Floats, means: Floats) -> float:
    own = np.diag(means)
    return clipped(1.0 - float(totals @ np.where(own > 0, own, 0.0)))


def _inter(totals: Floats, means: Floats, convention: Convention) -> float:
    held = np.where(totals > SLACK, totals, 0.0)
    pairs = np.where(np.isfinite(means), np.outer(held, held), 0.0)
    np.fill_diagonal(pairs, 0.0)
    mass = float(pairs.sum())
    if mass == 0:
        return 1.0 if convention == "reference" else 0.0
    across = float((pairs * np.where(np.isfinite(means), means, 0.0)).sum()) / mass
    return clipped((1.0 - across) / 2.0)
