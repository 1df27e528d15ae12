"""Portfolio arithmetic: optimisers, strategies, a paper broker, drift and costs, risk and performance figures."""

# ruff: noqa: I001

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.portfolio.backtesting import (
        CLASSES, FIGURES, RISK_FREE, STRATEGIES, Backtest, Choice, Drawdown, Method, Performance, Strategy, backtest,
        expected_shortfall, max_drawdown, performance, schedule, value_at_risk,
    )  # fmt: skip
    from assaymark.portfolio.broker import (
        Account, Account as Book, BrokerRules, BrokerRules as Rules,  # noqa: F401  # their names in 0.1
        ORDER_RULES, Fill, Mismatch, Order, Reconciliation, Rejection, RuleCheck, Settled, Settlement, StatedFill,
        StatedStep, Tolerance, audit, fee_of, orders_of, prices_of, reconcile, settle, settle_day,
    )  # fmt: skip
    from assaymark.portfolio.optimisers import (
        STATUSES, Solution, Status, equal_risk_contribution, inverse_volatility, max_sharpe, min_variance, risk_shares,
        simple_returns,
    )  # fmt: skip
    from assaymark.records import Bar

__all__ = [
    "CLASSES", "FIGURES", "ORDER_RULES", "RISK_FREE", "STATUSES", "STRATEGIES", "Account", "Backtest", "Bar",
    "BrokerRules", "Choice", "Drawdown", "Fill", "Method", "Mismatch", "Order", "Performance", "Reconciliation",
    "Rejection", "RuleCheck", "Settled", "Settlement", "Solution", "StatedFill", "StatedStep", "Status", "Strategy",
    "Tolerance", "audit", "backtest", "equal_risk_contribution", "expected_shortfall", "fee_of", "inverse_volatility",
    "max_drawdown", "max_sharpe", "min_variance", "orders_of", "performance", "prices_of", "reconcile", "risk_shares",
    "schedule", "settle", "settle_day", "simple_returns", "value_at_risk",
]  # fmt: skip

__getattr__ = exported(__name__)
