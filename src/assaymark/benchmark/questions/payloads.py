"""What a question is made of, and what an answer to it is: the types of the seven templates (PortBench, D.1)."""

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
"""``restricted`` takes the covariance and the correlation out of T4 and the covariance matrix out of T5 (D.3)."""

ABLATED: tuple[Template, ...] = ("T4", "T5")
"""The templates whose restricted prompt differs from the full one."""

LEVELS: Mapping[Template, int] = {"T1": 1, "T2": 1, "T3": 1, "T4": 2, "T5": 3, "T6": 3, "T7": 4}
"""The difficulty of each template, 1 to 4."""

Regime = Literal["bull", "bear", "sideways", "crisis"]
REGIME_NAMES: tuple[Regime, ...] = get_args(Regime)
"""The labels, in the order of the table of D.1."""

Way = Literal["positive", "negative", "flat"]
Side = Literal["buy", "sell"]
Change = Literal["increase", "decrease", "hold"]


class _Strict:
    """Records of a file that take no further field."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Context(_Strict):
    """What surrounds a question: everything in it was known at the close of the decision day."""

    regime: str = ""
    macro: tuple[str, ...] = ()
    news: tuple[str, ...] = ()
    filings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReturnDirection(_Strict):
    """T1: where one instrument will be ``horizon`` trading days later, from the ``days`` days before."""

    instrument: str
    horizon: int
    days: int
    start: float
    end: float
    change: float
    volatility: float


@dataclass(frozen=True, slots=True)
class TailRisk(_Strict):
    """T2: the value at risk of one instrument at ``level``, from its trailing daily ``returns``, oldest first."""

    instrument: str
    level: float
    returns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PositionSize(_Strict):
    """T3: the largest share of one instrument whose value at risk at 99 % stays within ``drawdown``, a share."""

    instrument: str
    drawdown: float
    returns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PairAllocation(_Strict):
    """T4: two instruments, annual volatilities, means and covariance, and the return that is required at least."""

    instruments: tuple[str, str]
    volatilities: tuple[float, float]
    means: tuple[float, float]
    covariance: float
    correlation: float
    floor: float


@dataclass(frozen=True, slots=True)
class SharpeAllocation(_Strict):
    """T5: three or more instruments, annual means and covariances, and the riskless rate."""

    instruments: tuple[str, ...]
    means: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    rf: float


@dataclass(frozen=True, slots=True)
class Rebalancing(_Strict):
    """T6: weights as they are and as they should be, and how far one may be off."""

    instruments: tuple[str, ...]
    current: tuple[float, ...]
    target: tuple[float, ...]
    threshold: float


@dataclass(frozen=True, slots=True)
class ClassMove(_Strict):
    """How the equal-weight index of one class moved over the window: return and annual volatility, as shares."""

    asset_class: str
    change: float
    volatility: float


@dataclass(frozen=True, slots=True)
class RegimeCall(_Strict):
    """T7: the index of the class asked about over ``days`` days, from 100 to ``end``, and the moves of all classes."""

    asset_class: str
    days: int
    end: float
    moves: tuple[ClassMove, ...]


@dataclass(frozen=True, slots=True)
class Printed(_Strict):
    """A question of somebody else's set: its text stands as it was published."""

    instruments: tuple[str, ...]
    text: str


Payload = (
    ReturnDirection | TailRisk | PositionSize | PairAllocation | SharpeAllocation | Rebalancing | RegimeCall | Printed
)
"""What a question is made of: one kind a template, and `Printed` for those of somebody else."""


@dataclass(frozen=True, slots=True)
class Direction(_Strict):
    """The answer to T1."""

    way: Way


@dataclass(frozen=True, slots=True)
class Number(_Strict):
    """The answer to T2 (a daily return, negative where it is a loss) and to T3 (a share)."""

    value: float


@dataclass(frozen=True, slots=True)
class Weights(_Strict):
    """The answer to T4 and T5: shares by instrument."""

    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Trade(_Strict):
    """The answer to T6. ``side``, ``instrument`` and ``size`` say the trade, where one is needed or was named."""

    rebalance: bool
    side: Side | None = None
    instrument: str | None = None
    size: float | None = None


@dataclass(frozen=True, slots=True)
class RegimeView(_Strict):
    """The answer to T7: the regime, and what to do with each class; a reply may lack either, or single classes."""

    regime: Regime | None
    changes: Mapping[str, Change] = field(default_factory=dict)


Answer = Direction | Number | Weights | Trade | RegimeView
"""What a reply to a question says, once it is read."""
