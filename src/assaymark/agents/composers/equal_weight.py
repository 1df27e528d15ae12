"""A naive diversifier: equal shares, and very few words."""

from __future__ import annotations

import numpy as np

from assaymark.agents.composers.draft import Draft, paragraph
from assaymark.agents.composers.observation import Observation
from assaymark.agents.composers.trading import orders_towards
from assaymark.agents.composers.wording import listing, percent, spoken

INVESTED = 0.8
"""The share of equity that is spread."""


def compose(seen: Observation, opening: str) -> Draft:
    """Equal shares of every instrument; most of its texts have fewer than 60 tokens. Confidence is 0.55."""
    wanted = np.full(len(seen.assets), INVESTED / len(seen.assets))
    orders = orders_towards(seen, wanted)
    rough = max(seen.assets, key=lambda asset: asset.volatility)
    return Draft(
        orders=orders,
        text=paragraph(
            opening,
            f"Equal shares of {percent(float(wanted[0]))} each.",
            f"Orders: {listing([spoken(one) for one in orders])}." if orders else "No order is needed.",
            f"Roughest: {rough.id}, volatility {percent(rough.volatility, 2)}.",
        ),
        confidence=0.55,
    )
