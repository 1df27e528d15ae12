"""Bull, bear, sideways or crisis, per asset class and day (PortBench section B.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assaymark.errors import InputError, NotMeasurableError
from assaymark.market.instruments import CLASSES, AssetClass, Listing, class_members, fill_gaps, simple_returns
from assaymark.market.synthetic import (
    CRYPTO_DRAWDOWN,
    EQUAL_WEIGHT_VOLATILITY,
    INTRA,
    VOLATILITY,
    WITH_EQUITIES,
    SyntheticMarket,
    synthetic_market,
)

REGIMES = ("bull", "sideways", "bear", "crisis")
"""The four labels."""

UNDEFINED = "undefined"
"""The label of days with too little history for the slow average, unless the drawdown already says crisis."""


def class_index(closes: np.ndarray, listings: Sequence[Listing]) -> dict[AssetClass, np.ndarray]:
    """Equal-weight index of each class, 100 at the start, from the returns that exist on each day."""
    returns = simple_returns(closes)
    there = np.isfinite(returns)
    known = np.where(there, returns, 0.0)
    found: dict[AssetClass, np.ndarray] = {}
    for name, members in class_members(listings).items():
        count = there[:, members].sum(axis=1)
        mean = known[:, members].sum(axis=1) / np.maximum(count, 1)
        found[name] = 100.0 * np.concatenate([[1.0], np.cumprod(1.0 + mean)])
    return found


def drawdown(index: np.ndarray, *, window: int = 252) -> np.ndarray:
    """Fall from the highest value of the last ``window`` days, today included, as a share in [0, 1)."""
    from scipy.ndimage import maximum_filter1d  # here, because it takes 50 ms and few need it

    peak = maximum_filter1d(index, window, origin=(window - 1) // 2, mode="nearest")
    found: np.ndarray = np.round(1.0 - index / peak, 12)
    return found


def regimes(
    index: np.ndarray, *, crisis: float = 0.15, window: int = 252, fast: int = 50, slow: int = 200, band: float = 0.05
) -> np.ndarray:
    """The regime of each day of one class, from that day and earlier days only (PortBench section B.3)."""
    if not (np.isfinite(index).all() and (index > 0).all()):
        raise InputError("index", ["regimes need a positive index without gaps"])
    found = np.full(index.size, UNDEFINED, dtype="U9")
    if index.size >= slow:
        ratio = _average(index, fast)[slow - fast :] / _average(index, slow)
        found[slow - 1 :] = np.where(ratio > 1 + band, "bull", np.where(ratio < 1 - band, "bear", "sideways"))
    found[drawdown(index, window=window) > crisis] = "crisis"
    return found


def _average(index: np.ndarray, days: int) -> np.ndarray:
    """The mean of each ``days`` values in a row, shape (n - days + 1,)."""
    total = np.concatenate([[0.0], np.cumsum(index)])
    found: np.ndarray = (total[days:] - total[:-days]) / days
    return found


# Pairwise-complete Pearson correlation by masked matrix products (PortBench section B.3).
#
# Every pair uses the days on which both have a return, so that a late listing costs nobody else a day. The price: the
# matrix need not be positive semidefinite. It describes; it must not be handed to an optimiser.


@dataclass(frozen=True, slots=True)
class Correlations:
    """Correlations of every pair with the number of days behind each."""

    values: np.ndarray
    overlap: np.ndarray
    defined: np.ndarray


def pairwise_correlation(returns: np.ndarray, *, min_overlap: int = 2) -> Correlations:
    """Pearson correlation of every pair of columns over the rows in which both are present."""
    mask = np.isfinite(returns)
    x, flat = _standardised(returns, mask)
    m = mask.astype(float)
    overlap = m.T @ m
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, squares = x.T @ m, (x * x).T @ m
        spread = squares - sums * sums / overlap
        values = (x.T @ x - sums * sums.T / overlap) / np.sqrt(spread * spread.T)
        # Where a column hardly moves on the common days, the difference above has lost its digits.
        lost = spread < 1e-3 * squares
    defined = (overlap >= max(min_overlap, 2)) & ~(flat[:, None] | flat[None, :])
    for i, j in zip(*np.nonzero(np.triu((lost | lost.T) & defined)), strict=True):
        both = mask[:, i] & mask[:, j]
        exact = _pearson(returns[both, i], returns[both, j])
        values[i, j] = values[j, i] = np.nan if exact is None else exact
        defined[i, j] = defined[j, i] = exact is not None
    values = np.where(defined, np.clip(values, -1.0, 1.0), np.nan)
    own = np.arange(values.shape[0])
    values[own, own] = np.where(defined[own, own], 1.0, np.nan)
    return Correlations(values, overlap.astype(int), defined)


def _standardised(returns: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns centred and scaled, zero where missing; and which columns never move."""
    count = np.maximum(mask.sum(axis=0), 1)
    known = np.where(mask, returns, 0.0)
    top = np.where(mask, returns, -np.inf).max(axis=0, initial=-np.inf)
    bottom = np.where(mask, returns, np.inf).min(axis=0, initial=np.inf)
    flat = ~(top > bottom)
    scale = np.where(flat, 1.0, np.maximum(np.abs(known).max(axis=0, initial=0.0), np.finfo(float).tiny))
    known = known / scale  # first by the largest, so that squares of tiny numbers do not vanish
    centred = np.where(mask, known - known.sum(axis=0) / count, 0.0)
    deviation = np.sqrt((centred * centred).sum(axis=0) / count)
    return centred / np.where(flat | (deviation == 0), 1.0, deviation), flat


def _pearson(a: np.ndarray, b: np.ndarray) -> float | None:
    """Two-pass correlation of one pair, None where one of the two does not move."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a * a).sum())) * float(np.sqrt((b * b).sum()))
    return float((a * b).sum()) / norm if norm > 0 else None


def class_correlations(found: Correlations, listings: Sequence[Listing]) -> dict[tuple[AssetClass, AssetClass], float]:
    """Mean correlation within each class and between each two, over the defined pairs."""
    usable = found.defined & ~np.eye(found.values.shape[0], dtype=bool)
    members = class_members(listings)
    means: dict[tuple[AssetClass, AssetClass], float] = {}
    for a, rows in members.items():
        for b, columns in members.items():
            block = np.ix_(rows, columns)
            if usable[block].any():
                means[a, b] = float(found.values[block][usable[block]].mean())
    if not means:
        raise NotMeasurableError("no pair of instruments has enough common days that move")
    return means


# What the synthetic market measures, beside what it was calibrated to: the table of the documentation

WINDOW = 41
"""Returns of one correlation window: PortBench prints its correlations from a trailing window of so many days."""

_YEAR = 252


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """One calibrated figure: its target range, and what each seed's market has."""

    name: str
    asset_class: str
    target: str
    low: float
    high: float
    measured: tuple[float, ...]

    @property
    def met(self) -> bool:
        """Whether every seed lies in the allowed range."""
        return all(self.low <= value <= self.high for value in self.measured)


def calibration(seeds: Sequence[int] = (0, 1, 2)) -> list[CalibrationRow]:
    """Every calibration target with the values measured in the markets of these seeds."""
    measured = [measure(synthetic_market(seed)) for seed in seeds]
    targets: list[tuple[str, str, str, float, float]] = []
    for figure, wanted in (("correlation within", INTRA), ("correlation with equities", WITH_EQUITIES)):
        targets += [(figure, name, f"{value:.2f}", value - 0.06, value + 0.06) for name, value in wanted.items()]
    for name in CLASSES:
        low, high = VOLATILITY[name]
        text = f"{100 * low:.3g} to {100 * high:.3g} %"
        targets += [(f"{end} volatility", name, text, low, high) for end in ("lowest", "highest")]
    low, high = CRYPTO_DRAWDOWN
    targets.append(("drawdown in the tightening window", "CR", f"{100 * low:.0f} to {100 * high:.0f} %", low, high))
    about = EQUAL_WEIGHT_VOLATILITY
    targets.append(("equal-weight volatility", "all", f"about {100 * about:.0f} %", about - 0.015, about + 0.015))
    return [CalibrationRow(*target, tuple(one[target[:2]] for one in measured)) for target in targets]


def measure(market: SyntheticMarket) -> dict[tuple[str, str], float]:
    """The calibrated figures of one market, by (figure, class)."""
    closes = fill_gaps(market.close)
    returns, calm = simple_returns(closes), market.calm[1:]
    found: dict[tuple[str, str], float] = {}
    means = calm_correlations(returns, market)
    for name in CLASSES:
        found["correlation within", name] = means[name, name]
        found["correlation with equities", name] = means[name, "EQ"]
    volatility = np.nanstd(returns[calm], axis=0, ddof=1) * np.sqrt(_YEAR)
    for name, columns in class_members(market.listings).items():
        found["lowest volatility", name] = float(volatility[columns].min())
        found["highest volatility", name] = float(volatility[columns].max())
    index, window = class_index(closes, market.listings)["CR"], market.windows[-1]
    path = index[window.first - 1 : window.last + 1]
    found["drawdown in the tightening window", "CR"] = float((1 - path / np.maximum.accumulate(path)).max())
    equal = np.nanmean(returns[calm], axis=1)
    found["equal-weight volatility", "all"] = float(equal.std(ddof=1) * np.sqrt(_YEAR))
    return found


def calm_correlations(
    returns: np.ndarray, market: SyntheticMarket, *, window: int = WINDOW
) -> dict[tuple[AssetClass, AssetClass], float]:
    """Mean correlations within and between classes, averaged over the windows in a row that hold calm days only."""
    calm = market.calm[1:]
    starts = [at for at in range(0, returns.shape[0] - window + 1, window) if calm[at : at + window].all()]
    each = [
        class_correlations(pairwise_correlation(returns[at : at + window], min_overlap=window // 2), market.listings)
        for at in starts
    ]
    return {pair: float(np.mean([one[pair] for one in each if pair in one])) for pair in each[-1]}


def calibration_table(seeds: Sequence[int] = (0, 1, 2)) -> str:
    """The calibration as a Markdown table, one row per figure and class, one column per seed."""
    head = ["figure", "class", "target", *(f"seed {seed}" for seed in seeds)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in calibration(seeds):
        as_share = "%" in row.target
        values = [f"{100 * v:.3g} %" if as_share else f"{v:.2f}".replace("-0.00", "0.00") for v in row.measured]
        lines.append("| " + " | ".join([row.name, row.asset_class, row.target, *values]) + " |")
    return "\n".join(lines) + "\n"
