"""Types of the payloads and answers of the seven question templates (PortBench, D.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from pydantic import ConfigDict

Template = Literal["T1", "T2", "T3", "T4", "T5", "T6", "T7"]
TEMPLATES: tuple[Template, ...] = get_args(Template)
"""Return direction, value at risk, position size, two weights, Sharpe weights, rebalancing, regime."""

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
"""By year end: up to 2022, 2023 to 2024, from 2025 (PortBench, B.3)."""

Condition = Literal["full", "restricted"]
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
"""``restricted`` omits the covariance and the correlation from T4 and the covariance matrix from T5 (D.3)."""

ABLATED: tuple[Template, ...] = ("T4", "T5")
"""The templates whose restricted prompt differs from the full one."""

LEVELS: Mapping[Template, int] = {"T1": 1, "T2": 1, "T3": 1, "T4": 2, "T5": 3, "T6": 3, "T7": 4}
"""The difficulty of each template, 1 to 4."""

Regime = Literal["bull", "bear", "sideways", "crisis"]
REGIME_NAMES: tuple[Regime, ...] = get_args(Regime)
"""The regime labels, in the order of the table of D.1."""

Way = Literal["positive", "negative", "flat"]
Side = Literal["buy", "sell"]
Change = Literal["increase", "decrease", "hold"]


class _StrictRecord:
    """Base of records in a file that reject unknown fields."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Context(_StrictRecord):
    """The context of a question, all of which was known at the close of the decision day."""

    regime: str = ""
    macro: tuple[str, ...] = ()
    news: tuple[str, ...] = ()
    filings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReturnDirection(_StrictRecord):
    """T1: the direction of one instrument over the next ``horizon`` trading days, from the last ``days`` days."""

    instrument: str
    horizon: int
    days: int
    start: float
    end: float
    change: float
    volatility: float


@dataclass(frozen=True, slots=True)
class TailRisk(_StrictRecord):
    """T2: the value at risk of one instrument at ``level``, from its trailing daily ``returns``, oldest first."""

    instrument: str
    level: float
    returns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PositionSize(_StrictRecord):
    """T3: the largest share of one instrument whose value at risk at 99 % stays within ``drawdown``, a share."""

    instrument: str
    drawdown: float
    returns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PairAllocation(_StrictRecord):
    """T4: two instruments, their annual volatilities, means and covariance, and the minimum required return."""

    instruments: tuple[str, str]
    volatilities: tuple[float, float]
    means: tuple[float, float]
    covariance: float
    correlation: float
    floor: float


@dataclass(frozen=True, slots=True)
class SharpeAllocation(_StrictRecord):
    """T5: three or more instruments, annual means and covariances, and the riskless rate."""

    instruments: tuple[str, ...]
    means: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    rf: float


@dataclass(frozen=True, slots=True)
class Rebalancing(_StrictRecord):
    """T6: current and target weights, and the largest deviation that is allowed."""

    instruments: tuple[str, ...]
    current: tuple[float, ...]
    target: tuple[float, ...]
    threshold: float


@dataclass(frozen=True, slots=True)
class ClassMove(_StrictRecord):
    """The move of the equal-weight index of one class over the window: return and annual volatility, as shares."""

    asset_class: str
    change: float
    volatility: float


@dataclass(frozen=True, slots=True)
class RegimeCall(_StrictRecord):
    """T7: the index of the class in question over ``days`` days, from 100 to ``end``, and the moves of all classes."""

    asset_class: str
    days: int
    end: float
    moves: tuple[ClassMove, ...]


@dataclass(frozen=True, slots=True)
class Printed(_StrictRecord):
    """A question of a published set, with its text unchanged."""

    instruments: tuple[str, ...]
    text: str


Payload = (
    ReturnDirection | TailRisk | PositionSize | PairAllocation | SharpeAllocation | Rebalancing | RegimeCall | Printed
)
"""The payload of a question: one type per template, and `Printed` for questions of a published set."""


@dataclass(frozen=True, slots=True)
class Direction(_StrictRecord):
    """The answer to T1."""

    way: Way


@dataclass(frozen=True, slots=True)
class Number(_StrictRecord):
    """The answer to T2 (a daily return; a loss is negative) and to T3 (a share)."""

    value: float


@dataclass(frozen=True, slots=True)
class Weights(_StrictRecord):
    """The answer to T4 and T5: shares by instrument."""

    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Trade(_StrictRecord):
    """The answer to T6. ``side``, ``instrument`` and ``size`` describe the trade, if one is needed or was named."""

    rebalance: bool
    side: Side | None = None
    instrument: str | None = None
    size: float | None = None


@dataclass(frozen=True, slots=True)
class RegimeView(_StrictRecord):
    """The answer to T7: the regime and the change of each class; a reply may lack either, or single classes."""

    regime: Regime | None
    changes: Mapping[str, Change] = field(default_factory=dict)


Answer = Direction | Number | Weights | Trade | RegimeView
"""The parsed answer in a reply to a question."""
