"""The arithmetic of holding: optimisers, strategies, drift and costs, risk, performance.

Arithmetic on numpy arrays that knows neither markets nor dates: a day is a row, an instrument is a column. Every
optimiser answers with a `Solution` whose status names what kind of answer it is.
"""

from __future__ import annotations

from assaymark.portfolio.backtest import STRATEGIES, Backtest, Choice, Schedule, Strategy, backtest, schedule
from assaymark.portfolio.broker import (
    Bar,
    Book,
    Fill,
    Mismatch,
    Order,
    Reconciliation,
    Rejection,
    Rules,
    Settled,
    StatedFill,
    StatedStep,
    Tolerance,
    orders_of,
    reconcile,
    settle_day,
)
from assaymark.portfolio.optimisers import (
    equal_risk_contribution,
    inverse_volatility,
    max_sharpe,
    min_variance,
    risk_shares,
    simple_returns,
)
from assaymark.portfolio.orders import ORDER_RULES, RuleCheck, Settlement, audit, fee_of, prices_of, settle
from assaymark.portfolio.performance import (
    Drawdown,
    Performance,
    expected_shortfall,
    max_drawdown,
    performance,
    value_at_risk,
)
from assaymark.portfolio.qp import STATUSES, Solution, Status

__all__ = [
    "ORDER_RULES",
    "STATUSES",
    "STRATEGIES",
    "Backtest",
    "Bar",
    "Book",
    "Choice",
    "Drawdown",
    "Fill",
    "Mismatch",
    "Order",
    "Performance",
    "Reconciliation",
    "Rejection",
    "RuleCheck",
    "Rules",
    "Schedule",
    "Settled",
    "Settlement",
    "Solution",
    "StatedFill",
    "StatedStep",
    "Status",
    "Strategy",
    "Tolerance",
    "audit",
    "backtest",
    "equal_risk_contribution",
    "expected_shortfall",
    "fee_of",
    "inverse_volatility",
    "max_drawdown",
    "max_sharpe",
    "min_variance",
    "orders_of",
    "performance",
    "prices_of",
    "reconcile",
    "risk_shares",
    "schedule",
    "settle",
    "settle_day",
    "simple_returns",
    "value_at_risk",
]
