"""Scores of the five stages and their sum, CEPS: PortBench sections 2.2 and C.1, equations 1 to 14.

Every score is dimensionless, in [0, 1], and higher is better. Value at risk and drawdown are negative here, as in
Table 7. The third stage, with its two conventions, is in `assaymark.benchmark.weight_scores`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from assaymark.benchmark.checks import clipped, same_length, share
from assaymark.benchmark.stages import SIGNALS, STAGES, Signal, Stage
from assaymark.benchmark.weight_scores import inter_class_score, intra_class_score, s3_score, weight_accuracy
from assaymark.portfolio.checks import Findings
from assaymark.portfolio.solution import Floats

__all__ = [
    "ceps",
    "inter_class_score",
    "intra_class_score",
    "s1_score",
    "s2_score",
    "s3_score",
    "s4_score",
    "s5_score",
    "weight_accuracy",
]

TURNOVER_FLOOR: Final = 1e-4
"""Least denominator of S4, equation 12."""

RISK_FLOOR: Final = 1e-6
"""Least denominator of the relative errors of S5, equation 14."""


def ceps(stages: Sequence[float] | Floats | Mapping[Stage, float], *, penalty: float = 0.1) -> float:
    """Cross-stage error propagation score: the mean of the five stages less a part of every drop between neighbours.

    Of two models with the same mean the one whose stages fall apart scores lower; a rise costs nothing (section C.1,
    equations 1 to 3). It is of one decision date; an episode's CEPS is the mean over its dates. Up to a penalty of
    0.2 nothing is ever cut off at 0, the score is concave, and so that mean is never above the CEPS of mean stages.

    Parameters
    ----------
    stages : five floats, or a mapping of S1 to S5 to floats
        Scores of S1 to S5 in their order, in [0, 1].
    penalty : float
        Lambda, in [0, 1].

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        Not five scores, a score out of range, a penalty out of range.

    Examples
    --------
    >>> round(ceps([0.792, 0.506, 0.714, 0.136, 0.480]), 4)
    0.4392
    """
    found = Findings("ceps")
    if isinstance(stages, Mapping):
        if set(stages) != set(STAGES):
            found.add("stages", f"must be {', '.join(STAGES)} (got {', '.join(map(str, stages)) or 'none'})")
            found.settle()
        stages = [stages[stage] for stage in STAGES]
    scores = found.array("stages", stages, (1,))
    if scores is not None:
        if scores.size != len(STAGES):
            found.add("stages", f"must be {len(STAGES)} scores, S1 to S5 (got {scores.size})")
        found.none_of(~((scores >= 0) & (scores <= 1)), "stages", "must be from 0 to 1", scores)
    share(found, "penalty", penalty)
    found.settle()
    assert scores is not None
    drops = float(np.maximum(scores[:-1] - scores[1:], 0.0).sum())
    return clipped(float(scores.mean()) - penalty * drops)


def s1_score(views: ArrayLike | Mapping[str, float], truth: ArrayLike | Mapping[str, float]) -> float:
    """Market interpretation: 1 less half the mean absolute error of the views (equation 4).

    1: every view is the truth. 0: full conviction in the wrong direction everywhere. Views of 0 against truths
    spread over the whole range score about 0.75, so this score is read against that of the neutral answer.

    Parameters
    ----------
    views : float array of shape (n_assets,), or mapping of names to floats
        In [-1, 1], -1 most bearish. In a mapping a name that is missing, or None, is neutral: 0.
    truth : like ``views``
        Of a mapping its names are what is scored; other names in ``views`` count for nothing.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        A mapping against an array, unequal lengths, nothing to score, a view out of range.

    Examples
    --------
    >>> s1_score([1.0, -1.0], [0.5, -0.5])
    0.75
    >>> s1_score({"A": 1.0}, {"A": 1.0, "B": 1.0})
    0.75
    """
    found = Findings("s1_score")
    said, true = _aligned(found, "views", views, truth, 0.0)
    arrays = {where: found.array(where, values, (1,)) for where, values in (("views", said), ("truth", true))}
    for where, values in arrays.items():
        if values is not None:
            found.none_of(~(np.abs(values) <= 1), where, "must be from -1 to 1", values)
    first, second = arrays["views"], arrays["truth"]
    same_length(found, "views", first, second)
    found.settle()
    assert first is not None
    assert second is not None
    return clipped(1.0 - float(np.abs(first - second).mean()) / 2.0)


def s2_score(signals: Sequence[Signal] | Mapping[str, Signal], truth: Sequence[Signal] | Mapping[str, Signal]) -> float:
    """Signal generation: the share of assets with the right signal (equation 5).

    Parameters
    ----------
    signals : sequence of n_assets signals, or mapping of names to signals
        ``buy``, ``hold`` or ``sell``. In a mapping a name that is missing, or None, is hold.
    truth : like ``signals``
        Of a mapping its names are what is scored; other names in ``signals`` count for nothing.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        A mapping against a sequence, unequal lengths, nothing to score, another word for a signal.

    Examples
    --------
    >>> s2_score(["buy", "sell", "hold", "hold"], ["buy", "hold", "hold", "sell"])
    0.5
    """
    found = Findings("s2_score")
    said, true = _aligned(found, "signals", signals, truth, "hold")
    for where, words in (("signals", said), ("truth", true)):
        wrong = [word for word in words if word not in SIGNALS]
        if wrong:
            found.add(where, f"must be {', '.join(SIGNALS)} ({len(wrong)} value(s), first: {wrong[0]!r})")
    if len(true) == 0:
        found.add("truth", "at least one signal is needed (got 0)")
    elif len(said) != len(true):
        found.add("signals", f"must be as many as the truths (got {len(said)} and {len(true)})")
    found.settle()
    right = sum(bool(one == other) for one, other in zip(said, true, strict=True))
    return right / len(true)


def s4_score(turnover: float, turnover_star: float) -> float:
    """Execution: how near the turnover is to that of the oracle's weights (equation 12).

    The smaller of the two over the larger, so trading half as much costs what trading twice as much costs. 0 where
    one of them trades and the other does not; 1 where neither does.

    Parameters
    ----------
    turnover, turnover_star : float
        Two-sided, as a share of NAV, at least 0: of what was executed, and of the oracle's weights.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        A turnover that is negative or not finite.

    Examples
    --------
    >>> round(s4_score(1.082, 1.670), 3)
    0.648
    """
    found = Findings("s4_score")
    for where, value in (("turnover", turnover), ("turnover_star", turnover_star)):
        found.number(where, value, 0.0, np.inf, "0 or more")
    found.settle()
    return clipped(1.0 - abs(turnover - turnover_star) / max(turnover, turnover_star, TURNOVER_FLOOR))


def s5_score(
    rebalance: bool, rebalance_star: bool, var: float, var_star: float, drawdown: float, drawdown_star: float
) -> float:
    """Risk monitoring: half for the right alarm, half for two risk figures (equations 13 and 14).

    The second half is 1 less the mean of the two relative errors, and 0 where that is negative.

    Parameters
    ----------
    rebalance, rebalance_star : bool
        Whether a limit is broken: by the executed weights, and by the oracle's.
    var, var_star : float
        Value at risk of one day at 95 %, as a return: -0.02 is a loss of 2 %.
    drawdown, drawdown_star : float
        Largest drawdown over the lookback, as a return.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        A flag that is no bool, a figure that is not finite.

    Examples
    --------
    >>> round(s5_score(False, True, -0.0083, -0.0084, -0.0366, -0.0393), 3)
    0.48
    """
    found = Findings("s5_score")
    for where, flag in (("rebalance", rebalance), ("rebalance_star", rebalance_star)):
        if not isinstance(flag, (bool, np.bool_)):
            found.add(where, f"must be True or False (got {flag!r})")
    figures = {"var": var, "var_star": var_star, "drawdown": drawdown, "drawdown_star": drawdown_star}
    for where, value in figures.items():
        found.number(where, value, -np.inf, np.inf, "a finite number")
    found.settle()
    errors = [
        abs(said - true) / max(abs(true), RISK_FLOOR) for said, true in ((var, var_star), (drawdown, drawdown_star))
    ]
    return clipped(0.5 * float(rebalance == rebalance_star) + 0.5 * clipped(1.0 - sum(errors) / 2.0))


def _aligned(found: Findings, where: str, said: Any, true: Any, neutral: float | str) -> tuple[Any, Any]:
    """Both in one order. Of two mappings that of the truths, with the neutral answer where there is none."""
    if isinstance(said, Mapping) and isinstance(true, Mapping):
        answers = [said.get(name) for name in true]
        return [neutral if answer is None else answer for answer in answers], list(true.values())
    if isinstance(said, Mapping) or isinstance(true, Mapping):
        kinds = f"{type(said).__name__} and {type(true).__name__}"
        found.add(where, f"must be of the same kind as the truths, both mappings or both arrays (got {kinds})")
        found.settle()
    return said, true
