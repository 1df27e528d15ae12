"""The answers that follow from what a prompt states, T2 to T6, and the changes a regime asks for (PortBench, D.1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from assaymark.benchmark.questions.payloads import (
    Answer,
    Change,
    Number,
    PairAllocation,
    Payload,
    PositionSize,
    Rebalancing,
    Regime,
    SharpeAllocation,
    TailRisk,
    Trade,
    Way,
    Weights,
)
from assaymark.errors import NotMeasurableError
from assaymark.portfolio import max_sharpe, value_at_risk

FLAT = 0.01
"""A forward return of at most this size is flat (T1)."""

_CLASSES = ("equity", "bond", "commodity", "real_estate", "crypto", "cash")
_UP: Final = "increase"
_DOWN: Final = "decrease"
_HOLD: Final = "hold"


def _row(*changes: Change) -> Mapping[str, Change]:
    return MappingProxyType(dict(zip(_CLASSES, changes, strict=True)))


CHANGES: Mapping[Regime, Mapping[str, Change]] = MappingProxyType(
    {
        "bull": _row(_UP, _DOWN, _HOLD, _UP, _UP, _DOWN),
        "bear": _row(_DOWN, _UP, _HOLD, _DOWN, _DOWN, _UP),
        "sideways": _row(_HOLD, _HOLD, _HOLD, _HOLD, _DOWN, _UP),
        "crisis": _row(_DOWN, _UP, _UP, _DOWN, _DOWN, _UP),
    }
)
"""What a regime asks of each class: the table of D.1."""


def way_of(forward: float) -> Way:
    """The direction of a forward return.

    >>> way_of(0.02), way_of(0.01), way_of(-0.3)
    ('positive', 'flat', 'negative')
    """
    return "positive" if forward > FLAT else "negative" if forward < -FLAT else "flat"


def answer_of(payload: Payload) -> Answer:
    """The answer of T2 to T6, from the numbers as they are printed.

    Raises
    ------
    NotMeasurableError
        The payload has no single answer: nothing at risk, two instruments that cannot be told apart, no instrument that
        is expected to earn more than the riskless rate, two weights that are equally far off. Or its template is T1 or
        T7, whose answers do not follow from the prompt.
    """
    match payload:
        case TailRisk():
            return Number(-value_at_risk(payload.returns, level=payload.level))
        case PositionSize():
            return Number(_size(payload))
        case PairAllocation():
            return _pair(payload)
        case SharpeAllocation():
            return _sharpe(payload)
        case Rebalancing():
            return _trade(payload)
        case _:
            raise NotMeasurableError(f"{type(payload).__name__} has no answer that follows from its prompt")


def unconstrained(payload: PairAllocation) -> float:
    """The weight of the first instrument at least variance, within [0, 1], before the floor is looked at."""
    (one, other), both = payload.volatilities, payload.covariance
    spread = one**2 + other**2 - 2.0 * both
    if not spread > 0:
        raise NotMeasurableError("two instruments without a difference in return have no weights of least variance")
    # The seed clips at 0 only; a weight over 1 is a short of the other instrument.
    return min(1.0, max(0.0, (other**2 - both) / spread))


def binds(payload: PairAllocation) -> bool:
    """Whether the required return moves the weights of T4."""
    first = unconstrained(payload)
    return first * payload.means[0] + (1.0 - first) * payload.means[1] < payload.floor


def _size(payload: PositionSize) -> float:
    """min(1, d / |VaR99|)."""
    risk = abs(value_at_risk(payload.returns, level=0.99))
    if risk == 0:
        raise NotMeasurableError("nothing is at risk: a value at risk of 0 sizes no position")
    return min(1.0, payload.drawdown / risk)


def _pair(payload: PairAllocation) -> Weights:
    """The two branches of T4."""
    first = unconstrained(payload)
    if binds(payload):
        one, other = payload.means
        if payload.floor > max(one, other):
            raise NotMeasurableError(f"no weights earn {payload.floor:g}: the larger mean is {max(one, other):g}")
        first = (payload.floor - other) / (one - other)
    return Weights(dict(zip(payload.instruments, (first, 1.0 - first), strict=True)))


def _sharpe(payload: SharpeAllocation) -> Weights:
    """The tangency portfolio."""
    found = max_sharpe(payload.means, payload.covariance, rf=payload.rf)
    if found.status != "optimal":
        raise NotMeasurableError(f"the largest Sharpe ratio has no single portfolio: {found.status}")
    return Weights(dict(zip(payload.instruments, found.weights.tolist(), strict=True)))


def _trade(payload: Rebalancing) -> Trade:
    """The weight that is furthest off, and whether that is too far."""
    off = [now - aim for now, aim in zip(payload.current, payload.target, strict=True)]
    sizes = sorted((abs(one) for one in off), reverse=True)
    if sizes[0] - sizes[1] < 1e-9:
        raise NotMeasurableError("two weights are equally far from their targets")
    if sizes[0] <= payload.threshold:
        return Trade(False)
    at = max(range(len(off)), key=lambda place: abs(off[place]))
    return Trade(True, "sell" if off[at] > 0 else "buy", payload.instruments[at], round(abs(off[at]), 12))
