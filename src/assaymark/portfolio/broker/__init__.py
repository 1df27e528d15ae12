"""A paper broker: one day's orders against a book, and records of trading held against themselves."""

from __future__ import annotations

from assaymark.portfolio.broker.book import (
    SIDES,
    Bar,
    Book,
    Excess,
    Fill,
    FillAt,
    Order,
    Reason,
    Rejection,
    Rules,
    Settled,
    orders_of,
    settle_day,
)
from assaymark.portfolio.broker.reconciling import (
    RELIABILITY,
    CheckKind,
    Mismatch,
    Reconciliation,
    StatedFill,
    StatedStep,
    Tolerance,
    Unchecked,
    reconcile,
)

__all__ = [
    "RELIABILITY",
    "SIDES",
    "Bar",
    "Book",
    "CheckKind",
    "Excess",
    "Fill",
    "FillAt",
    "Mismatch",
    "Order",
    "Reason",
    "Reconciliation",
    "Rejection",
    "Rules",
    "Settled",
    "StatedFill",
    "StatedStep",
    "Tolerance",
    "Unchecked",
    "orders_of",
    "reconcile",
    "settle_day",
]
