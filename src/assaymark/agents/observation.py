"""What a reference agent reads from a context: one row per instrument, the book, and the limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from assaymark.errors import InputError, Problem
from assaymark.portfolio.orders import RuleCheck, Settlement, audit, fee_of, settle
from assaymark.records import Action, Constraint, Context, Portfolio, Series

Floats = npt.NDArray[np.float64]

_FEWEST_BARS = 20


@dataclass(frozen=True, slots=True)
class Asset:
    """One instrument after its bars. Returns, volatility and place are ratios; all of them as the context states them.

    ``hour``, ``quarter`` and ``last`` are the returns over the whole window, 15 minutes and 5 minutes; ``place`` is
    where the last price stands between the window's low (0) and high (1); ``busy`` the volume of the last 15 minutes as
    a multiple of its mean. ``moves`` are the simple one-minute returns, ``low`` and ``high`` those of the window.
    """

    id: str
    asset_class: str
    price: float
    hour: float
    quarter: float
    last: float
    volatility: float
    place: float
    busy: float
    low: float
    high: float
    moves: Floats


@dataclass(frozen=True)
class Observation:
    """All that a composer computes with."""

    assets: tuple[Asset, ...]
    book: Portfolio
    constraints: tuple[Constraint, ...]
    minutes: int

    @cached_property
    def prices(self) -> dict[str, float]:
        """The last price of each instrument."""
        return {asset.id: asset.price for asset in self.assets}

    @cached_property
    def before(self) -> Settlement:
        """The book as it stands, without any order."""
        return settle(self.book, self.prices, ())

    @property
    def weights(self) -> Floats:
        """Weights before any order, shape (n_assets,)."""
        return np.array([self.before.weights.get(asset.id, 0.0) for asset in self.assets])

    def asset(self, name: str) -> Asset:
        """The asset of that id."""
        return next(asset for asset in self.assets if asset.id == name)

    def limit(self, kind: str, default: float) -> float:
        """The limit of a kind of constraint, or a default where none is stated."""
        return next((rule.limit for rule in self.constraints if rule.kind == kind), default)

    def after(self, actions: Sequence[Action]) -> Settlement:
        """The book after orders, fees included."""
        return settle(self.book, self.prices, actions, fee_bps=fee_of(self.constraints))

    def checks(self, after: Settlement) -> tuple[RuleCheck, ...]:
        """Every rule held against a settlement."""
        return audit(after, self.constraints)


def observe(context: Context) -> Observation:
    """Read a context of minute bars."""
    bars = {one.instrument: one for one in context.series}
    problems = [
        Problem(f"series.{item.id}", f"at least {_FEWEST_BARS} bars with positive prices are needed")
        for item in context.instruments
        if item.id not in bars
        or len(bars[item.id].close) < _FEWEST_BARS
        or not all(0 < price < math.inf for price in bars[item.id].close)
    ]
    if not context.instruments:
        problems.append(Problem("instruments", "at least one is needed to decide about (got 0)"))
    if context.portfolio is None:
        problems.append(Problem("portfolio", "a book is needed to give orders for (got none)"))
    if problems or context.portfolio is None:
        raise InputError("context", problems)
    stated: dict[str, dict[str, float]] = {}
    for fact in context.facts:
        if fact.instrument and not isinstance(fact.value, str):
            stated.setdefault(fact.instrument, {})[fact.field] = fact.value
    assets = tuple(
        _asset(item.id, item.asset_class, bars[item.id], stated.get(item.id, {})) for item in context.instruments
    )
    minutes = min(len(bars[item.id].close) for item in context.instruments)
    return Observation(assets, context.portfolio, context.constraints, minutes)


def _asset(name: str, asset_class: str, bars: Series, stated: Mapping[str, float]) -> Asset:
    """One row; a feature that the context does not state is computed from the bars."""
    closes = np.array(bars.close)
    moves = np.diff(closes) / closes[:-1]
    n = closes.size
    low, high = min(bars.low or bars.close), max(bars.high or bars.close)
    span = high - low
    return Asset(
        id=name,
        asset_class=asset_class,
        price=stated.get("price", float(closes[-1])),
        hour=stated.get(f"return_{n}m", float(closes[-1] / closes[0] - 1)),
        quarter=stated.get("return_15m", float(closes[-1] / closes[-16] - 1)),
        last=stated.get("return_5m", float(closes[-1] / closes[-6] - 1)),
        volatility=stated.get(f"volatility_{n}m", float(moves.std(ddof=1) * math.sqrt(n))),
        place=stated.get(f"range_{n}m", (float(closes[-1]) - low) / span if span > 0 else 0.5),
        busy=stated.get("volume_15m", 1.0),
        low=low,
        high=high,
        moves=moves,
    )
