"""A risk minimiser: the book of least variance over the window, explained by its risks."""

from __future__ import annotations

import numpy as np

from assaymark.agents.composers.draft import Draft, paragraph
from assaymark.agents.composers.observation import Observation
from assaymark.agents.composers.trading import orders_towards
from assaymark.agents.composers.wording import listing, percent, plain, spoken
from assaymark.portfolio.optimisers import min_variance
from assaymark.records import Action

INVESTED = 0.5
"""The share of equity that is invested at all."""


def compose(seen: Observation, opening: str) -> Draft:
    """Half of the equity in the book of least variance of one-minute returns; the rest stays in cash.

    The text ranks the risks and says what would be cut. Confidence is 0.45.
    """
    moves = np.stack([asset.moves[-(seen.minutes - 1) :] for asset in seen.assets], axis=1)
    wanted = INVESTED * min_variance(np.cov(moves, rowvar=False)).weights
    orders = orders_towards(seen, wanted)
    calm, *_, rough = sorted(seen.assets, key=lambda asset: asset.volatility)
    said = listing([spoken(one) for one in orders])
    return Draft(
        orders=orders,
        text=paragraph(
            opening,
            f"Risk decides the book, not direction. {calm.id} is the calmest instrument, with volatility of "
            f"{percent(calm.volatility, 2)} over the hour; {rough.id} is the roughest, with "
            f"{percent(rough.volatility, 2)}.",
            f"To lower the variance: {said}." if orders else "The book is near least variance, so nothing is traded.",
            _positions(seen, orders),
            f"Losses could come together in a shock; {rough.id} would be cut first if its volatility doubles.",
            "An hour of prices says little about the next one, so half stays in cash.",
            f"Confidence is {plain(0.45)}.",
        ),
        confidence=0.45,
    )


def _positions(seen: Observation, orders: tuple[Action, ...]) -> str:
    """What is held after the orders, largest first, against the cap."""
    weights = seen.after(orders).weights
    if not weights:
        return "Nothing is held."
    held = [f"{name} {percent(weights[name])}" for name in sorted(weights, key=lambda name: -weights[name])]
    cap = percent(seen.limit("max_weight", 1.0))
    return f"After that the positions are {listing(held)}, and the largest stays below the cap of {cap}."
