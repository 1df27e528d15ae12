"""From a reconciliation to a point on the scale of constraint awareness, by a stated rule."""

from __future__ import annotations

from assaymark.judging.oracle.reconciliation import PAIRED, Reconciliation

_OF_LIMITS = frozenset((*PAIRED, *PAIRED.values(), "shorting"))


def oracle_score(found: Reconciliation, *, kept: bool) -> int:
    """The score of constraint awareness, 1..5, that the anchors of rubric v1.1 give to a reconciliation.

    Three requirements (ValueBlindBench section 5.6): the cash left is stated; exposure or leverage is stated; one value
    is stated together with the limit it is held against. All of them right is 5, two are 4. One of them, or any limit
    or value under a limit, is 3; else 2. A wrong amount leaves at most 2. A wrong limit, a wrong value under a limit, a
    wrong claim that nothing is short, or a rule that is not ``kept`` is 1. One more right statement never lowers it.

    Examples
    --------
    >>> from assaymark.judging.oracle.reconciliation import reconcile
    >>> from assaymark.portfolio.orders import settle
    >>> from assaymark.records import Constraint, Portfolio
    >>> after = settle(Portfolio(currency="USD", cash=1000.0, nav=1000.0, positions={"A": 10.0}), {"A": 50.0}, [])
    >>> cap = Constraint(kind="max_weight", limit=0.35, unit="nav")
    >>> oracle_score(reconcile("Cash left is 1,000.00 and exposure 33.3% of equity.", after, [cap]), kept=True)
    4
    """
    if not kept or found.wrong & _OF_LIMITS:
        return 1
    if found.wrong:
        return 2
    right = found.right
    met = ["residual" in right, bool({"exposure", "leverage"} & right)]
    met.append(any(value in right and limit in right for value, limit in PAIRED.items()))
    if sum(met) > 1:
        return 2 + sum(met)
    return 3 if any(met) or right & _OF_LIMITS else 2
