"""The constraint-arithmetic oracle: a book worked out from a prompt, and the stated arithmetic held against it.

Rules and numbers only, so its score of constraint awareness is known quality against which judges can be measured.
"""

from __future__ import annotations

from assaymark.judging.books import Book, book_of, made_of_orders
from assaymark.judging.oracle.reconciliation import QUANTITIES, Part, Reconciliation, reconcile
from assaymark.judging.oracle.scoring import oracle_score

__all__ = [
    "QUANTITIES",
    "Book",
    "Part",
    "Reconciliation",
    "book_of",
    "made_of_orders",
    "oracle_score",
    "reconcile",
]
