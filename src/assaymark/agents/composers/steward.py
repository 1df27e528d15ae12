"""A steward: small steps towards what is strong for its risk, and a memo that reconciles every number."""

from __future__ import annotations

import numpy as np

from assaymark.agents.composers.draft import Draft, paragraph
from assaymark.agents.composers.observation import Asset, Floats, Observation
from assaymark.agents.composers.trading import orders_towards
from assaymark.agents.composers.wording import listing, move, percent, plain, reconciliation, spoken
from assaymark.portfolio.orders import Settlement
from assaymark.records import Action

INVESTED = 0.7
"""The share of equity that is invested."""


def compose(seen: Observation, opening: str) -> Draft:
    """Inverse-volatility weights, tilted by a half towards what rose over the window; the memo covers everything asked.

    What is held and why, what was left out, the arithmetic of cash, exposure and limits, what would hurt, and under
    which conditions it changes its mind. Confidence is 0.45.
    """
    orders = orders_towards(seen, INVESTED * _wanted(seen))
    after = seen.after(orders)
    held = sorted((seen.asset(name) for name in after.weights), key=lambda asset: -after.weights[asset.id])
    out = [asset for asset in seen.assets if asset.id not in after.weights]
    return Draft(
        orders=orders,
        text="\n\n".join(
            part
            for part in (
                paragraph(opening, _headline(orders), *(_holding(asset, after) for asset in held)),
                paragraph("", *(_left_out(asset) for asset in out)),
                " ".join(reconciliation(seen, after)),
                _risk(held, after),
            )
            if part
        ),
        confidence=0.45,
    )


def _wanted(seen: Observation) -> Floats:
    """Inverse volatility, tilted by the rank of the return over the window."""
    calm = 1.0 / np.maximum([asset.volatility for asset in seen.assets], 1e-4)
    rank = np.argsort(np.argsort([asset.hour for asset in seen.assets])) / max(len(seen.assets) - 1, 1)
    tilted = np.sqrt(calm) * (0.75 + 0.5 * rank)
    return np.asarray(tilted / tilted.sum(), dtype=np.float64)


def _headline(orders: tuple[Action, ...]) -> str:
    if not orders:
        return "The book is close to where it should be, and trading would only cost fees, so nothing is traded."
    return f"The book moves in small steps: {listing([spoken(one) for one in orders])}."


def _holding(asset: Asset, after: Settlement) -> str:
    share = percent(after.weights[asset.id])
    trend = "may go on" if asset.hour > 0 else "could turn"
    return (
        f"{asset.id} is held at a weight of {share}: it is {move(asset.hour)} over the hour with volatility of "
        f"{percent(asset.volatility, 2)}, a move that {trend}."
    )


def _left_out(asset: Asset) -> str:
    return f"{asset.id} is left out instead, although it is {move(asset.quarter)} over 15 minutes."


def _risk(held: list[Asset], after: Settlement) -> str:
    if not held:
        return "Nothing is held, so nothing can be lost but the chance."
    rough = max(held, key=lambda asset: asset.volatility)
    first = held[0]
    return (
        f"The main risk is {rough.id}, the most volatile position with {percent(rough.volatility, 2)} over the hour; a "
        f"shock there would hurt most. If {first.id} falls below {first.low:.4f}, its low of the hour, its weight of "
        f"{percent(after.weights[first.id])} would be cut in half; unless volume holds up, the tilt is likely to be "
        f"taken back. Doubt is large after one hour, so confidence is {plain(0.45)}."
    )
