"""What a reference agent composes: a book, the texts that explain it, and a forecast if it makes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.agents.mandate import Floats
from assaymark.agents.observation import Asset


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A book and its reasons. ``weights`` are fractions of NAV, one per asset, and sum to 1.

    ``forecast`` is percent per asset over the agent's own horizon, rounded as the texts print it; empty for an agent
    that forecasts nothing.
    """

    weights: Floats
    summary: str
    portfolio: str
    risks: tuple[str, ...]
    confidence: float
    forecast: tuple[float, ...] = ()

    @property
    def book_forecast(self) -> float:
        """The weighted sum of the printed forecasts in percent, to two places."""
        return book_forecast(self.weights, self.forecast)


def book_forecast(weights: Floats, forecast: Sequence[float]) -> float:
    """The weighted sum of per-asset forecasts in percent, to two places, without a negative zero.

    >>> import numpy as np
    >>> book_forecast(np.array([0.6, 0.4]), (0.5, -0.25))
    0.2
    """
    return round(sum(float(w) * part for w, part in zip(weights, forecast, strict=True)), 2) + 0.0


def by_weight(assets: Sequence[Asset], weights: Floats) -> list[tuple[Asset, float]]:
    """The holdings and their weights, largest first; equal ones in the order of the context."""
    held = [(asset, float(weight)) for asset, weight in zip(assets, weights, strict=True) if weight > 0]
    return sorted(held, key=lambda pair: -pair[1])
