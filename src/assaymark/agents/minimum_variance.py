"""A risk minimiser: the long-only book of least variance within the rules, reported in figures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from assaymark.agents.composition import Composition, by_weight
from assaymark.agents.mandate import Floats
from assaymark.agents.observation import Asset, Observation
from assaymark.agents.wording import listing, percent, plain

Mask = npt.NDArray[np.bool_]

SHRINKAGE = 0.2
"""How far sample correlations are pulled towards zero."""

_LEAST, _MOST = 0.3, 0.8
_FLOOR = 1e-4  # a cash account may state no volatility at all; this keeps the matrix positive definite


def compose(seen: Observation) -> Composition:
    """The book of least variance and its figures.

    Volatilities are the stated ones and correlations come from the daily returns, shrunk towards zero by a fifth;
    without common daily returns they are taken as zero. The names of the long-only optimum are kept up to the number
    allowed, the weights are solved again among those, and then fitted to the rules. Confidence is 0.8 times (1 - the
    book's volatility as a share of the benchmark's), kept within 0.3 and 0.8.

    Raises
    ------
    NotMeasurableError
        The context does not state a volatility for every asset, or no book keeps the rules.
    """
    cov = covariance(seen)
    weights = least_variance_book(cov, seen)
    own = float(np.sqrt(weights @ cov @ weights))
    ratio = own / float(np.sqrt(cov[seen.base, seen.base]))
    confidence = round(min(max(_MOST * (1 - ratio), _LEAST), _MOST), 2)
    held = by_weight(seen.assets, weights)
    return Composition(
        weights=weights,
        summary=_summary(seen, held, own, ratio),
        portfolio=f"{_method(seen)} {' '.join(_row(*pair) for pair in held)}{_excluded(seen, weights)} "
        f"Confidence {confidence:.2f}, lower as the volatility ratio rises.",
        risks=_risks(seen, held),
        confidence=confidence,
    )


def covariance(seen: Observation) -> Floats:
    """Annualised covariance of the assets, positive definite, shape (n_assets, n_assets)."""
    sizes = np.maximum(seen.volatilities(), _FLOOR)
    shared = correlations(seen)
    return np.asarray(np.outer(sizes, sizes) * (np.eye(sizes.size) if shared is None else shared), dtype=np.float64)


def correlations(seen: Observation) -> Floats | None:
    """Shrunk correlations of the daily returns, or None where there are none to correlate."""
    if seen.daily is None or np.any(np.ptp(seen.daily, axis=0) == 0):
        return None
    sample = np.atleast_2d(np.corrcoef(seen.daily, rowvar=False))
    return np.asarray(SHRINKAGE * np.eye(sample.shape[0]) + (1 - SHRINKAGE) * sample, dtype=np.float64)


def least_variance_book(cov: Floats, seen: Observation) -> Floats:
    """The book of least variance that keeps the rules, shape (n_assets,)."""
    fewest, most = seen.mandate.holdings_range(cov.shape[0])
    low, high = seen.mandate.step_range
    cap = high / seen.mandate.steps
    wide = bounded_minimum(cov, max(cap, 1.0 / cov.shape[0]))
    count = min(max(int(np.count_nonzero(wide > 0.5 * low / seen.mandate.steps)), fewest), most)
    # Ties at zero are broken by variance, so that a forced extra name is the calmest one left.
    chosen = np.lexsort((np.diag(cov), -np.round(wide, 9)))[:count]
    weights = np.zeros(cov.shape[0])
    weights[chosen] = np.maximum(bounded_minimum(cov[np.ix_(chosen, chosen)], cap), 1e-9)
    return seen.mandate.fit(weights)


def bounded_minimum(cov: Floats, cap: float) -> Floats:
    """The weights of least variance that sum to 1, each within 0 and ``cap``.

    A primal active set: with some weights held at their bounds the rest have a closed form; walk there until a bound
    stops the walk and holds that weight too, or, on arrival, let go the held weight that would lower variance most.

    Parameters
    ----------
    cov : array of shape (n, n)
        Positive definite.
    cap : float
        At least 1/n.

    Examples
    --------
    >>> bounded_minimum(np.diag([0.01, 0.04]), 1.0).round(2).tolist()
    [0.8, 0.2]
    >>> bounded_minimum(np.diag([0.01, 0.04]), 0.6).round(2).tolist()
    [0.6, 0.4]
    """
    weights = np.full(cov.shape[0], 1.0 / cov.shape[0])
    free = np.ones(cov.shape[0], dtype=bool)
    for _ in range(20 * cov.shape[0]):
        goal = weights.copy()
        goal[free] = _stationary(cov, weights, free)
        share, blocking = _walk(weights, goal, cap)
        bound = cap if goal[blocking] > weights[blocking] else 0.0
        weights = np.clip(weights + share * (goal - weights), 0.0, cap)
        if share < 1.0:
            weights[blocking] = bound  # exactly: a weight held at 1e-17 would count as a holding
            free[blocking] = False
            continue
        gain = _gain(cov, weights, free)
        best = int(np.argmax(gain))
        if gain[best] <= 1e-12 * float(cov.max()):
            break
        free[best] = True
    return weights


def _walk(weights: Floats, goal: Floats, cap: float) -> tuple[float, int]:
    """The share of the way to ``goal`` that stays within the bounds, and the weight that stops it there."""
    room = np.where(goal > weights, cap - weights, weights)
    distance = np.abs(goal - weights)
    shares = np.divide(room, distance, out=np.ones_like(room), where=distance > 1e-15)
    blocking = int(np.argmin(shares))
    return min(1.0, float(shares[blocking])), blocking


def _gain(cov: Floats, weights: Floats, free: Mask) -> Floats:
    """How fast variance would fall if a held weight were let go; nothing for the free ones."""
    slope = cov @ weights
    level = float(slope[free].mean())
    gain = np.where(weights > 0.5 * float(weights.max()), slope - level, level - slope)
    return np.where(free, 0.0, gain)


def _stationary(cov: Floats, weights: Floats, free: Mask) -> Floats:
    """The free weights of least variance, given the fixed ones: (multiplier * 1 - cross) solved against cov."""
    fixed = ~free
    inner = cov[np.ix_(free, free)]
    cross = cov[np.ix_(free, fixed)] @ weights[fixed]
    ones, shift = np.linalg.solve(inner, np.column_stack([np.ones(inner.shape[0]), cross])).T
    budget = 1.0 - float(weights[fixed].sum())
    return np.asarray(ones * (budget + shift.sum()) / ones.sum() - shift, dtype=np.float64)


def _summary(seen: Observation, held: list[tuple[Asset, float]], own: float, ratio: float) -> str:
    weights = ", ".join(f"{asset.short} {percent(weight, 0)}" for asset, weight in held)
    first = f"Least-variance book: {weights}. Estimated volatility of the book {percent(own)}, ratio to "
    return f"{first}{seen.benchmark.short} {ratio:.2f}. {_regime(seen)}"


def _regime(seen: Observation) -> str:
    """What the benchmark's own figures say about the state of risk."""
    bench = seen.benchmark
    volatility = bench.volatility or 0.0
    state = "stressed" if volatility >= 0.25 else "elevated" if volatility >= 0.14 else "calm"
    return f"Risk state {state}: {bench.short} {', '.join(_figures(bench)[:2])}. Expected returns are not used."


def _method(seen: Observation) -> str:
    rules = seen.mandate
    source = "taken as zero"
    if seen.daily is not None and correlations(seen) is not None:
        source = f"of {len(seen.daily)} daily returns shrunk by a fifth"
    counts = f"min holdings {rules.min_holdings}, max holdings {rules.max_holdings}"
    sizes = f"max weight {percent(rules.max_weight, 0)}, weight increment {percent(rules.weight_increment, 0)}"
    return f"Basis: stated volatilities, correlations {source}. Limits: {counts}, {sizes}."


def _row(asset: Asset, weight: float) -> str:
    """One holding in figures."""
    return f"{asset.short} {percent(weight, 0)}: {', '.join(_figures(asset))}."


def _figures(asset: Asset) -> list[str]:
    """What is known of an asset's risk, volatility first."""
    figures = [f"volatility {percent(asset.volatility or 0.0)}"]
    if asset.drawdown is not None:
        figures.append(f"max drawdown {percent(asset.drawdown)}")
    if asset.beta is not None:
        figures.append(f"beta {plain(asset.beta)}")
    if asset.correlation is not None:
        figures.append(f"correlation {plain(asset.correlation)}")
    return figures


def _excluded(seen: Observation, weights: Floats) -> str:
    """The most volatile instrument without a weight."""
    out = [asset for asset, weight in zip(seen.assets, weights, strict=True) if weight == 0]
    if not out:
        return ""
    worst = max(out, key=lambda asset: asset.volatility or 0.0)
    return f" Largest risk avoided: {worst.short}, {', '.join(_figures(worst)[:2])}."


def _risks(seen: Observation, held: list[tuple[Asset, float]]) -> tuple[str, ...]:
    return tuple(text for text in (_concentration(held), _worst_holding(held), _rates(seen, held)) if text)


def _concentration(held: list[tuple[Asset, float]]) -> str:
    """How much of the book the two largest holdings are."""
    names = [asset.short for asset, _ in held[:2]]
    total = sum(weight for _, weight in held[:2])
    severity = "high" if total >= 0.7 else "moderate"
    joined = " together" if len(names) == 2 else ""
    return f"Concentration {severity}: {listing(names)}{joined} {percent(total, 0)} of NAV."


def _worst_holding(held: list[tuple[Asset, float]]) -> str:
    """The most volatile holding: the estimate that matters most if it is wrong."""
    asset = max((asset for asset, _ in held), key=lambda item: item.volatility or 0.0)
    return f"Estimation: {asset.short} is the most volatile holding, {', '.join(_figures(asset)[:2])}."


def _rates(seen: Observation, held: list[tuple[Asset, float]]) -> str:
    """How much of the book depends on interest rates, when the policy rate is known."""
    rate = seen.economy.get("policy_rate")
    bonds = sum(weight for asset, weight in held if asset.asset_class in ("bond", "cash"))
    if rate is None or bonds == 0:
        return ""
    return f"Rates: policy rate {rate:.2f}%, bonds and bills {percent(bonds, 0)} of NAV."
