"""The features of a context as a cell may cite them: names, horizons, and values printed true or far from true."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from assaymark.agents.cells.book import is_held
from assaymark.records import Context

_FIELD: Final = re.compile(r"([a-z]+)_(\d{1,4}[a-z])\Z")
_REDRAWS: Final = 60


@dataclass(frozen=True, slots=True)
class Feature:
    """One number that the material gives for an instrument over a horizon, such as ``return_15m``."""

    instrument: str
    kind: str
    horizon: str
    value: float

    @property
    def field(self) -> str:
        """The name of the fact."""
        return f"{self.kind}_{self.horizon}"

    @property
    def lean(self) -> int:
        """1 where it speaks for buying, -1 for selling, 0 where it has no direction."""
        if self.kind == "return":
            return (self.value > 0) - (self.value < 0)
        return (self.value > 0.5) - (self.value < 0.5) if self.kind == "range" else 0

    def printed(self, value: float) -> str:
        """A value of this feature as cells print it: returns with their sign and volatility in percent."""
        if self.kind == "return":
            return f"{value * 100:+.2f}%"
        return f"{value * 100:.2f}%" if self.kind == "volatility" else f"{value:.2f}"

    def fill(self, value: float) -> dict[str, str]:
        """What the templates of `phrases` need, with a value of this feature."""
        return {"x": self.instrument, "h": self.horizon, "k": self.kind, "v": self.printed(value)}


def features_of(context: Context) -> tuple[Feature, ...]:
    """The features that cells cite: numeric facts with a kind and a horizon in their names, in the context's order.

    A price has no horizon and is not among them; nor is a return that prints as 0.00%, which has no direction.
    """
    return tuple(_features(context))


def _features(context: Context) -> Iterator[Feature]:
    known = {item.id for item in context.instruments}
    for fact in context.facts:
        named = _FIELD.match(fact.field)
        if fact.instrument not in known or named is None or isinstance(fact.value, str):
            continue
        kind, horizon = named.groups()
        value = float(fact.value)
        if kind in _WRONG and not (kind in ("return", "volatility") and abs(value) < 1e-4):
            yield Feature(fact.instrument, kind, horizon, value)


def by_instrument(features: Sequence[Feature]) -> dict[str, list[Feature]]:
    """Features under the instruments that they are about."""
    found: dict[str, list[Feature]] = {}
    for one in features:
        found.setdefault(one.instrument, []).append(one)
    return found


def wrong_value(feature: Feature, lean: int, held: Sequence[float], rng: np.random.Generator) -> float | None:
    """A value far from the true one that the material holds nowhere; None if none was found.

    ``lean`` is the direction in which the lie is told: a feature with a direction is drawn on that side.
    """
    for _ in range(_REDRAWS):
        value = _WRONG[feature.kind](feature.value, lean, rng)
        size = abs(float(feature.printed(value).rstrip("%")))
        true = abs(float(feature.printed(feature.value).rstrip("%")))
        signs = (value > 0) != (feature.value > 0)
        gap = size + true if signs else abs(size - true)
        if gap >= 0.4 * max(size, true) and gap >= 0.1 and not is_held(held, size, 0.005):
            return value
    return None


def _wrong_return(true: float, lean: int, rng: np.random.Generator) -> float:
    size = float(rng.uniform(0.006, 0.04))
    if true * lean > 0:
        size += abs(true) * float(rng.uniform(2.0, 4.0))
    return lean * size


def _wrong_volatility(true: float, _lean: int, rng: np.random.Generator) -> float:
    return true * float(rng.uniform(2.2, 4.5)) + 0.002


def _wrong_range(_true: float, lean: int, rng: np.random.Generator) -> float:
    return float(rng.uniform(0.03, 0.97)) if not lean else 0.5 + lean * float(rng.uniform(0.1, 0.47))


def _wrong_volume(true: float, _lean: int, rng: np.random.Generator) -> float:
    return true * float(rng.uniform(1.9, 4.0)) + 0.2


_WRONG: Final = {
    "return": _wrong_return,
    "volatility": _wrong_volatility,
    "range": _wrong_range,
    "volume": _wrong_volume,
}


def limits_text(limits: Mapping[str, float]) -> dict[str, str]:
    """The limits as the templates print them: weights and cash in percent, leverage plainly.

    >>> limits_text({"max_weight": 0.35, "max_leverage": 1.2})
    {'max_weight': '35.0%', 'max_leverage': '1.20'}
    """
    return {
        kind: f"{limit:.2f}" if kind == "max_leverage" else f"{limit * 100:.1f}%"
        for kind, limit in limits.items()
        if kind in ("max_weight", "min_cash", "max_leverage")
    }
