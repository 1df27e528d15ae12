"""Ranks that follow from published orders: simultaneous rank intervals, and tiers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools

Pair = tuple[int, int]


def rank_intervals(orders: Iterable[Pair], K: int) -> tuple[Pair, ...]:
    """Rank intervals of K agents that hold together, from the orders that may be claimed.

    Ranks lie in [1 + number claimed above, K - number claimed below]. All intervals are right whenever all orders are,
    so no further error comes in (Mogstad, Romano, Shaikh and Wilhelm 2024). Agents whose interval starts at 1 are the
    top set, which holds every truly best agent.

    Parameters
    ----------
    orders : iterable of (high, low)
        Indices of agents; an order is counted once.
    K : int
        Number of agents.

    Returns
    -------
    tuple of (best, worst)
        For each agent, ranks from 1.

    Raises
    ------
    InputError
        An index outside 0..K-1, an agent above itself, or a pair in both directions.

    Examples
    --------
    >>> rank_intervals([(0, 1), (0, 2)], 3)
    ((1, 1), (2, 3), (2, 3))
    """
    above = _above("rank_intervals", orders, K)
    best, worst = 1 + above.sum(axis=0), K - above.sum(axis=1)
    return tuple(zip(best.tolist(), worst.tolist(), strict=True))


def tiers(orders: Iterable[Pair], K: int) -> tuple[tuple[int, ...], ...]:
    """Agents in tiers: a cut runs where every agent above it is claimed above every agent below it, and only there.

    A statement of what could be ranked, never that the agents of a tier are equal.

    Parameters
    ----------
    orders, K
        As for `rank_intervals`.

    Returns
    -------
    tuple of tuples of int
        From the top; each tier in the order of its indices.

    Raises
    ------
    InputError
        As for `rank_intervals`.

    Examples
    --------
    >>> tiers([(2, 0), (2, 1), (2, 3), (0, 3)], 4)
    ((2,), (0, 1, 3))
    """
    above = _above("tiers", orders, K)
    # Whoever is above a cut beats more agents than whoever is below it, so a cut can only run along this order.
    line = np.argsort(-above.sum(axis=1), kind="stable")
    beaten = above[np.ix_(line, line)]
    cuts = [s for s in range(1, K) if beaten[:s, s:].all()]
    return tuple(tuple(sorted(line[start:stop].tolist())) for start, stop in zip([0, *cuts], [*cuts, K], strict=True))


def _above(source: str, orders: Iterable[Pair], agents: int) -> Bools:
    """Which agent is claimed above which [K, K]."""
    count = checks.whole(source, "K", agents, least=1)
    above = np.zeros((count, count), dtype=bool)
    pairs = np.array([*orders], dtype=np.int64).reshape(-1, 2)
    if ((pairs < 0) | (pairs >= count)).any():
        checks.fail(source, "orders", f"agents are 0..{count - 1} (got {pairs.min()} to {pairs.max()})")
    above[pairs[:, 0], pairs[:, 1]] = True
    if (above & above.T).any():
        i, j = np.argwhere(above & above.T)[0].tolist()
        checks.fail(source, "orders", f"{i} cannot be above {j} and below it")
    return above
