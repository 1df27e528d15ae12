"""What each reference model thinks of a market, and what it would hold: plain rules on what the prompt shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from assaymark.benchmark.reference.reading import Limits, Sheet
from assaymark.errors import AssayError
from assaymark.portfolio import max_sharpe
from assaymark.portfolio.solution import Bools, Floats

SCALE: Final = 0.10
"""The return that makes a view of 1, as S1 says."""

_SMALLEST_VOL = 1e-4
_RISKY, _SAFE = ("equity", "crypto"), ("bond", "cash")
_PRIOR: Final = {"equity": 0.05, "crypto": 0.05, "real_estate": 0.03, "commodity": 0.01, "bond": 0.02, "cash": 0.03}

ViewRule = Callable[[Sheet, int], Floats]
"""Views in [-1, 1] of what is on the sheet, over so many days."""

BookRule = Callable[[Sheet, Floats, Bools, Limits], Floats]
"""Weights from views, from what has a buy signal (all, if nothing has), and from the limits."""


def extrapolated(sheet: Sheet, horizon: int) -> Floats:
    """The mean daily return of 60 days, carried on."""
    return _view(sheet.numbers["ret60_pct"] * horizon / 60)


def momentum(sheet: Sheet, _horizon: int) -> Floats:
    """The return of the last 60 days, as if it came again whole. It is the truth of the convention ``reference``."""
    return _view(sheet.numbers["ret60_pct"])


def contrarian(sheet: Sheet, horizon: int) -> Floats:
    """The opposite of momentum."""
    return -momentum(sheet, horizon)


def unmoved(sheet: Sheet, _horizon: int) -> Floats:
    """No view of anything."""
    return np.zeros(len(sheet.tickers))


def by_class(sheet: Sheet, _horizon: int) -> Floats:
    """The same for all of a class, whatever it does: looks at no number."""
    return np.array([_PRIOR.get(name, 0.0) for name in sheet.classes])


def calm(sheet: Sheet, _horizon: int) -> Floats:
    """Half a view for the calmer half, none for the other."""
    vol = sheet.numbers["vol_pct"]
    return np.where(vol <= np.median(vol), 0.5, 0.0)


def best_only(sheet: Sheet, _horizon: int) -> Floats:
    """Full conviction in the highest Sharpe ratio, and against the lowest; nothing between."""
    sharpe = sheet.numbers["sharpe"]
    found = np.zeros(sharpe.size)
    found[int(sharpe.argmin())] = -1.0
    found[int(sharpe.argmax())] = 1.0
    return found


def highest_sharpe(sheet: Sheet, views: Floats, buys: Bools, limits: Limits) -> Floats:
    """What S3 asks for, from the volatilities and class correlations that the prompt shows, then within the limits."""
    vol = np.maximum(sheet.numbers["vol_pct"], _SMALLEST_VOL)
    covariance = sheet.correlation * np.outer(vol, vol)
    try:
        found = max_sharpe(views * SCALE, covariance, allowed=buys).weights
    except AssayError:  # means over pairs of classes need not make a covariance
        found = _normal(buys / vol)
    return within(found, sheet, limits)


def by_view(_sheet: Sheet, views: Floats, buys: Bools, _limits: Limits) -> Floats:
    """In proportion to the views."""
    return _normal(np.where(buys, np.maximum(views, 0.0), 0.0), buys)


def all_alike(sheet: Sheet, _views: Floats, _buys: Bools, _limits: Limits) -> Floats:
    """Equal weights, whatever is said."""
    return np.full(len(sheet.tickers), 1.0 / len(sheet.tickers))


def sixty_forty(sheet: Sheet, _views: Floats, _buys: Bools, _limits: Limits) -> Floats:
    """Sixty percent in equities and forty in bonds, alike within each."""
    classes = np.array(sheet.classes)
    found = np.zeros(classes.size)
    for name, share in (("equity", 0.6), ("bond", 0.4)):
        found[classes == name] = share / max((classes == name).sum(), 1)
    return _normal(found)


def little_variance(sheet: Sheet, _views: Floats, buys: Bools, _limits: Limits) -> Floats:
    """In inverse proportion to the variance."""
    return _normal(buys / np.maximum(sheet.numbers["vol_pct"], _SMALLEST_VOL) ** 2)


def obedient(sheet: Sheet, _views: Floats, buys: Bools, limits: Limits) -> Floats:
    """In inverse proportion to the volatility, and well within the limits of whoever asks."""
    vol = np.maximum(sheet.numbers["vol_pct"], 0.01)
    return within(_normal(buys / vol), sheet, Limits(0.8 * limits.risky, min(1.2 * limits.safe, 1.0)))


def within(weights: Floats, sheet: Sheet, limits: Limits) -> Floats:
    """Weights brought within the limits: risky ones shrunk to the cap, safe ones raised to the floor.

    Where nothing safe is held it is bought alike, and what is taken away goes to the safe ones.
    """
    risky, safe = (np.isin(sheet.classes, names) for names in (_RISKY, _SAFE))
    if not safe.any():
        return weights
    found = weights.copy()
    if (held := float(found[risky].sum())) > limits.risky:
        found[risky] *= limits.risky / held
    short = max(limits.safe - float(found[safe].sum()), 0.0)
    rest = ~safe
    others = float(found[rest].sum())
    if others > 0 and (spare := 1.0 - float(found.sum())) < short:
        found[rest] *= max(1.0 - (short - max(spare, 0.0)) / others, 0.0)
    kept = found[safe] if found[safe].sum() > 0 else np.ones(int(safe.sum()))
    found[safe] = kept / kept.sum() * (1.0 - float(found[rest].sum()))
    return _normal(found)


VIEWS: Final[Mapping[str, ViewRule]] = MappingProxyType(
    {
        "literal": extrapolated,
        "prior": by_class,
        "stubborn": unmoved,
        "momentum": momentum,
        "contrarian": contrarian,
        "steady": calm,
        "cautious": extrapolated,
        "bold": best_only,
        "noisy": momentum,
        "garbled": momentum,
    }
)
"""What each model thinks of a market."""

BOOKS: Final[Mapping[str, BookRule]] = MappingProxyType(
    {
        "literal": highest_sharpe,
        "prior": sixty_forty,
        "stubborn": all_alike,
        "momentum": by_view,
        "contrarian": by_view,
        "steady": little_variance,
        "cautious": obedient,
        "bold": by_view,
        "noisy": by_view,
        "garbled": by_view,
    }
)
"""What each model holds."""


def _view(returns: Floats) -> Floats:
    return np.clip(returns / SCALE, -1.0, 1.0)


def _normal(amounts: Floats, otherwise: Bools | None = None) -> Floats:
    """Amounts as weights that sum to 1; alike over ``otherwise`` (or all) where there are none."""
    chosen = np.ones(amounts.size) if otherwise is None else otherwise.astype(float)
    found = amounts if amounts.sum() > 0 else chosen
    return np.asarray(found / found.sum())
