"""What a model is shown on a decision date: four layers, made from `assaymark.market.AsOf` and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from assaymark.market import CLASS_NAMES, AsOf, Listing, News, class_index
from assaymark.market.regimes import UNDEFINED
from assaymark.portfolio.backtest import CLASSES
from assaymark.portfolio.qp import Floats

LISTED_DAYS = 252
"""Days of prices that a snapshot reads: the peak behind a crisis looks back so far (section B.3)."""

NEWS_DAYS = 30
"""Calendar days of news in a snapshot (figure 13)."""

_YEAR = 252
_FAST, _SLOW = 50, 200
_BAND, _CRISIS = 0.05, 0.15
_FEWEST = 10  # days behind a slope


@dataclass(frozen=True, slots=True)
class AssetLine:
    """One instrument on one date, in the eight fields of figures 13 and 25."""

    ticker: str
    asset_class: str
    close: float
    return_20: float | None
    return_60: float | None
    volatility: float
    max_drawdown: float
    sharpe: float | None
    beta: float | None
    duration: float | None
    regime: str


@dataclass(frozen=True, slots=True)
class MacroLine:
    """One macro series as it read at the decision: ``value`` is None exactly when ``state`` is not ``ok``."""

    id: str
    title: str
    unit: str
    state: str
    value: float | None


@dataclass(frozen=True, slots=True)
class ClassLine:
    """The two-layer correlation interface of one class."""

    asset_class: str
    members: int
    intra: float | None
    with_equities: float | None
    regime: str


@dataclass(frozen=True, slots=True, eq=False)
class PortfolioState:
    """The portfolio at the close of the decision date, before any trade."""

    nav: float
    weights: Floats
    drawdown: float


@dataclass(frozen=True, slots=True, eq=False)
class MarketSnapshot:
    """The four layers of one decision date, and the news before it."""

    day: date
    lookback: int
    taking_part: np.ndarray
    assets: tuple[AssetLine, ...]
    macro: tuple[MacroLine, ...]
    classes: tuple[ClassLine, ...]
    between: Floats
    portfolio: PortfolioState
    news: tuple[News, ...]


def asset_lines(
    tickers: Sequence[str], classes: Sequence[str], closes: Floats, returns: Floats, yields: Floats
) -> tuple[AssetLine, ...]:
    """The lines of the instruments that take part."""
    nav = np.vstack([np.ones(len(tickers)), np.cumprod(1.0 + returns, axis=0)])
    falls = (nav / np.maximum.accumulate(nav, axis=0) - 1.0).min(axis=0)
    means, spreads = returns.mean(axis=0), returns.std(axis=0, ddof=1)
    spreads[np.ptp(returns, axis=0) == 0] = 0.0
    group = np.array(classes)
    betas = _slopes(returns, _mean_of(returns, group == "equity"))
    durations = _slopes(returns, yields)
    labels = own_regimes(closes)
    ago = {back: _change(closes, back) for back in (20, 60)}
    found = []
    for at, (ticker, name) in enumerate(zip(tickers, classes, strict=True)):
        interest = name in ("bond", "cash")
        slope = durations[at]
        found.append(
            AssetLine(
                ticker,
                name,
                float(closes[-1, at]),
                ago[20][at],
                ago[60][at],
                float(spreads[at] * np.sqrt(_YEAR)),
                float(falls[at]),
                float(means[at] / spreads[at] * np.sqrt(_YEAR)) if spreads[at] > 0 else None,
                None if interest else betas[at],
                -100.0 * slope if interest and slope is not None else None,
                str(labels[at]),
            )
        )
    return tuple(found)


def macro_lines(view: AsOf, titles: dict[str, str]) -> tuple[MacroLine, ...]:
    """Every macro series as it reads at the view's time."""
    return tuple(MacroLine(one.id, titles[one.id], one.unit, one.state, one.value) for one in view.all_macro())


def class_means(correlation: Floats, classes: Sequence[str]) -> tuple[tuple[str, ...], Floats]:
    """The classes that have members, and the mean correlation of every two; within a class over different members."""
    group = np.array(classes)
    names = tuple(name for name in CLASSES if (group == name).any())
    member = np.stack([group == name for name in names], axis=1).astype(float)
    count = member.sum(axis=0)
    sums = member.T @ (correlation - np.eye(group.size)) @ member
    pairs = np.outer(count, count) - np.diag(count)
    return names, np.asarray(sums / np.maximum(pairs, 1.0))


def class_regimes(closes: Floats, listings: Sequence[Listing]) -> dict[str, str]:
    """The regime of every class by the equal-weight index of all that is listed: `AsOf.regimes` on the last day."""
    index = class_index(closes, listings)
    labels = own_regimes(np.stack(list(index.values()), axis=1))
    return {CLASS_NAMES[name]: str(label) for name, label in zip(index, labels, strict=True)}


def class_lines(
    names: Sequence[str], between: Floats, classes: Sequence[str], regimes: dict[str, str]
) -> tuple[ClassLine, ...]:
    """The correlation interface, a line for each class of ``names``."""
    equity = names.index("equity") if "equity" in names else None
    counts = [sum(one == name for one in classes) for name in names]
    return tuple(
        ClassLine(
            name,
            counts[at],
            float(between[at, at]) if counts[at] > 1 else None,
            None if equity is None or equity == at else float(between[at, equity]),
            regimes.get(name, UNDEFINED),
        )
        for at, name in enumerate(names)
    )


def own_regimes(closes: Floats) -> np.ndarray:
    """The regime of each instrument on the last day, by the rule of `assaymark.market.regimes` on its own price."""
    known = np.isfinite(closes)
    paid = np.where(known, closes, 0.0)
    counts = known[-_SLOW:].sum(axis=0)
    fast = paid[-_FAST:].sum(axis=0) / np.maximum(known[-_FAST:].sum(axis=0), 1)
    slow = paid[-_SLOW:].sum(axis=0) / np.maximum(counts, 1)
    ratio = fast / np.where(slow > 0, slow, 1.0)
    found = np.where(ratio > 1 + _BAND, "bull", np.where(ratio < 1 - _BAND, "bear", "sideways"))
    found = np.where((closes.shape[0] < _SLOW) | (counts < 0.9 * _SLOW), UNDEFINED, found)
    fall = np.round(1.0 - paid[-1] / paid[-LISTED_DAYS:].max(axis=0), 12)
    return np.where(fall > _CRISIS, "crisis", found)


def _change(closes: Floats, back: int) -> list[float | None]:
    if closes.shape[0] <= back:
        return [None] * closes.shape[1]
    found = closes[-1] / closes[-1 - back] - 1.0
    return [float(one) if np.isfinite(one) else None for one in found]


def _mean_of(returns: Floats, members: np.ndarray) -> Floats:
    """The mean return of the members on each day; NaN where there are none."""
    return returns[:, members].mean(axis=1) if members.any() else np.full(returns.shape[0], np.nan)


def _slopes(returns: Floats, driver: Floats) -> list[float | None]:
    """The slope of each column on the driver over the days that the driver has; None where it does not move."""
    there = np.isfinite(driver)
    if there.sum() < _FEWEST or np.ptp(driver[there]) == 0:
        return [None] * returns.shape[1]
    centred = driver[there] - driver[there].mean()
    return [float(one) for one in centred @ returns[there] / float(centred @ centred)]
