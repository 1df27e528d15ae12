"""A careful diversifier: more of what is calm, and a memo of ordinary length that holds the limits against the book."""

from __future__ import annotations

import numpy as np

from assaymark.agents.composers.draft import Draft, paragraph
from assaymark.agents.composers.observation import Asset, Observation
from assaymark.agents.composers.trading import orders_towards
from assaymark.agents.composers.wording import listing, move, percent, plain, spoken
from assaymark.portfolio.orders import Settlement

INVESTED = 0.75
"""The share of equity that is invested."""


def compose(seen: Observation, opening: str) -> Draft:
    """Weights in proportion to one over volatility. Confidence is 0.45.

    The text gives weight, move and volatility of every holding, each limit with what the book makes of it, and what
    would be cut first.
    """
    calm = 1.0 / np.maximum([asset.volatility for asset in seen.assets], 1e-4)
    orders = orders_towards(seen, INVESTED * calm / calm.sum())
    after = seen.after(orders)
    held = sorted((seen.asset(name) for name in after.weights), key=lambda asset: -after.weights[asset.id])
    floor = percent(seen.limit("min_cash", 0.0))
    return Draft(
        orders=orders,
        text=paragraph(
            opening,
            f"Calm decides the size: {listing([spoken(one) for one in orders])}." if orders else "The sizes are right.",
            _book(seen, held, after) if held else "Nothing is held.",
            f"Cash is {percent(after.residual / after.equity)} of equity against a floor of {floor}.",
            _risk(held) if held else "",
            f"Confidence is {plain(0.45)}.",
        ),
        confidence=0.45,
    )


def _book(seen: Observation, held: list[Asset], after: Settlement) -> str:
    """Every holding with its numbers, and the limits on them."""
    weights, cap = after.weights, percent(seen.limit("max_weight", 1.0))
    shares = [
        f"{asset.id} {percent(weights[asset.id])} ({move(asset.hour)}, volatility {percent(asset.volatility, 2)})"
        for asset in held
    ]
    return (
        f"Weights and moves over the hour: {listing(shares)}. Leverage {plain(after.leverage)} against a cap of "
        f"{plain(seen.limit('max_leverage', 1.0))}. Largest position {held[0].id} at {percent(weights[held[0].id])} "
        f"against a cap of {cap}."
    )


def _risk(held: list[Asset]) -> str:
    """What would be cut, and when."""
    rough, largest = max(held, key=lambda asset: asset.volatility), held[0]
    return (
        f"The main risk is {rough.id}: if its volatility of {percent(rough.volatility, 2)} rises, it would be cut. If "
        f"{largest.id}, {move(largest.quarter)} over 15 minutes, falls further, so would that. A shock may hit all of "
        "them, but half could be sold."
    )
