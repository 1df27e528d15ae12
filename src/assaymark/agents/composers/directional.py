"""Two agents that read the tape: one leans into what moved over the last quarter of an hour, the other against it.

They are mirror images, in their rule as in their sentences: what one says of rises the other says of falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from assaymark.agents.composers.draft import Composer, Draft, paragraph
from assaymark.agents.composers.observation import Asset, Observation
from assaymark.agents.composers.trading import orders_towards
from assaymark.agents.composers.wording import count, listing, move, percent, plain, spoken
from assaymark.records import Action

INVESTED: Final = 0.6
"""The share of equity that the instruments which moved the right way get together."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Which way an agent leans, +1 or -1, and its words for it."""

    sign: int
    moved: str
    first: str
    even: str
    last: str
    lean: str
    danger: str


MOMENTUM: Final = Direction(+1, "rose", "leads", "best", "lags", "follow that strength", "A reversal is the risk")
"""Buys what rose."""

CONTRARIAN: Final = Direction(
    -1, "fell", "is cheapest", "weakest", "is stretched", "lean against that weakness", "A further drop is the risk"
)
"""Buys what fell."""


def composer(way: Direction) -> Composer:
    """The composer of a direction.

    Weights are in proportion to the 15-minute return over volatility, where its sign is right. Confidence is 0.5 plus
    0.2 times the share of instruments that moved that way.
    """

    def compose(seen: Observation, opening: str) -> Draft:
        pace = np.array([max(way.sign * asset.quarter, 0.0) / max(asset.volatility, 1e-4) for asset in seen.assets])
        wanted = INVESTED * pace / pace.sum() if pace.sum() > 0 else np.zeros(pace.size)
        orders = orders_towards(seen, wanted)
        moved = sum(way.sign * asset.quarter > 0 for asset in seen.assets)
        ordered = sorted(seen.assets, key=lambda asset: -way.sign * asset.quarter)
        confidence = round(0.5 + 0.2 * moved / len(seen.assets), 2)
        said = listing([spoken(one) for one in orders])
        return Draft(
            orders=orders,
            text=paragraph(
                opening,
                f"{count(moved).capitalize()} of {count(len(seen.assets))} instruments {way.moved} over 15 minutes.",
                _extreme(ordered[0], way),
                f"{ordered[-1].id} {way.last}, {move(ordered[-1].quarter)} over 15 minutes.",
                f"The orders {way.lean}: {said}." if orders else "The book already does, so nothing is traded.",
                *(_reason(seen.asset(one.instrument), one.kind) for one in orders),
                _limits(seen, orders),
                f"{way.danger}: volatility of {ordered[0].id} is {percent(ordered[0].volatility, 2)} over the hour.",
                f"If the move fades, the position is likely to be reduced. Confidence is {plain(confidence)}.",
            ),
            confidence=confidence,
        )

    return compose


def _extreme(asset: Asset, way: Direction) -> str:
    if way.sign * asset.quarter <= 0:
        return f"Even the {way.even} of them, {asset.id}, is {move(asset.quarter)}."
    return (
        f"{asset.id} {way.first}, {move(asset.quarter)} over 15 minutes on {plain(asset.busy)} times its mean volume."
    )


def _limits(seen: Observation, orders: tuple[Action, ...]) -> str:
    """The largest position after the orders against its cap."""
    weights = seen.after(orders).weights
    if not weights:
        return "No position is left."
    largest = max(weights, key=lambda name: weights[name])
    cap = percent(seen.limit("max_weight", 1.0))
    return f"The largest position is {largest} at a weight of {percent(weights[largest])} against a cap of {cap}."


def _reason(asset: Asset, kind: str) -> str:
    did = "is added to" if kind == "buy" else "is reduced"
    return f"{asset.id} {did} because it is {move(asset.hour)} over the hour."
