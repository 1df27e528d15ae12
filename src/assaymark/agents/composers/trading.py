"""From wanted weights to few orders that keep every limit."""

from __future__ import annotations

import math

import numpy as np

from assaymark.agents.composers.observation import Floats, Observation
from assaymark.records import Action

_SMALLEST = 0.01
_SHRINK = 0.8
_TRIES = 12


def orders_towards(seen: Observation, wanted: Floats) -> tuple[Action, ...]:
    """The largest changes towards wanted weights that the limits allow, sales first; none if all are small.

    At most as many orders as allowed are given, for the largest gaps. If the book after them breaks a limit, all orders
    shrink until it does not; a book that kept its limits before can always keep them by doing nothing.

    Parameters
    ----------
    wanted : array of shape (n_assets,)
        Fractions of equity, not negative, summing to at most 1.
    """
    room = 1.0 - seen.limit("min_cash", 0.0) - 0.005
    cap = seen.limit("max_weight", 1.0) - 0.004
    target = np.minimum(wanted, cap)
    if (total := float(target.sum())) > room:
        target = target * (room / total)
    gaps = target - seen.weights
    most = int(seen.limit("max_orders", 3))
    chosen = [int(i) for i in np.argsort(-np.abs(gaps), kind="stable")[:most] if abs(gaps[i]) >= _SMALLEST]
    for step in range(_TRIES):
        orders = _orders(seen, {i: float(gaps[i]) * _SHRINK**step for i in sorted(chosen, key=lambda i: gaps[i])})
        if all(check.kept for check in seen.checks(seen.after(orders))):
            return orders
    return ()


def _orders(seen: Observation, changes: dict[int, float]) -> tuple[Action, ...]:
    """Changes of weight as orders; units are rounded down to four decimals, and a sale never exceeds what is held."""
    found = []
    for i, change in changes.items():
        asset = seen.assets[i]
        units = math.floor(abs(change) * seen.before.equity / asset.price * 1e4) / 1e4
        if change < 0:
            units = min(units, max(seen.book.positions.get(asset.id, 0.0), 0.0))
        if units > 0:
            found.append(Action(instrument=asset.id, kind="buy" if change > 0 else "sell", quantity=units))
    return tuple(found)
