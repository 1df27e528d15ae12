"""Scores of the five stages and their aggregate, CEPS: PortBench sections 2.2 and C.1, equations 1 to 14.

Every score is in [0, 1]. Invalid inputs raise `InputError` with all problems together; an unknown convention raises
`UnknownNameError`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import check_known
from assaymark.market import group_correlations
from assaymark.portfolio.optimisers import SLACK, Floats, Validator

Stage = Literal["S1", "S2", "S3", "S4", "S5"]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages in their order: interpretation, signals, weights, execution, risk."""

Signal = Literal["buy", "hold", "sell"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
"""The three signals."""

Convention = Literal["paper", "reference"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
"""``paper``: the formulas as printed in PortBench. ``reference``: those of the authors' public code."""


Pace = Literal["weekly", "monthly", "quarterly"]
"""Frequency of decisions."""


@dataclass(frozen=True, slots=True)
class StageState:
    """The parse state of the reply to one stage, with the reason unless it is ``ok``."""

    state: Literal["ok", "partial", "invalid", "refused", "truncated"]
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """A portfolio at one close, before any trade at it: weights of at least 0, the rest to 1 is cash.

    ``nav`` is a multiple of the initial NAV, and ``peak`` its maximum so far.
    """

    nav: float
    weights: Floats
    peak: float

    @property
    def drawdown(self) -> float:
        """The fall from the peak, at most 0."""
        return self.nav / self.peak - 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The parsed answers of a model on one date."""

    views: Floats
    signals: tuple[Signal, ...]
    weights: Floats | None
    states: Mapping[Stage, StageState]


@dataclass(frozen=True, slots=True)
class Risk:
    """Risk of some weights (S5): VaR and drawdown (negative, over the lookback), drift, and a flag for a breach."""

    var: float
    drawdown: float
    drift: float
    rebalance: bool


@dataclass(frozen=True, slots=True, eq=False)
class Truths:
    """The truths that the answers of one date are scored against."""

    views: Floats
    signals: tuple[Signal, ...]
    weights: Floats
    weights_status: str
    turnover: float
    risk: Risk


@dataclass(frozen=True, slots=True, eq=False)
class DateResult:
    """Result of one decision date: answers, truths, executed weights and scores."""

    day: date
    answers: Answers
    truths: Truths
    executed: Floats
    turnover: float
    risk: Risk
    scores: Mapping[Stage, float]
    ceps: float
    pas: float


@dataclass(frozen=True, slots=True)
class CallExcerpt:
    """Excerpts of one call and its reply; ``cut``: the ledger has more; ``missing``: no reply came."""

    prompt: str = ""
    reply: str = ""
    cut: bool = False
    key: str = ""
    missing: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeResult:
    """Result of one model under one profile in one window; ``excerpts`` has each of its own calls by date and stage."""

    model: str
    profile: str
    window: str
    dates: tuple[DateResult, ...]
    days: np.ndarray
    nav: Floats
    excerpts: Mapping[tuple[date, Stage], CallExcerpt] = field(default_factory=dict)


__all__ = [
    "ceps", "inter_class_score", "intra_class_score", "s1_score", "s2_score", "s3_score", "s4_score", "s5_score",
    "weight_accuracy",
]  # fmt: skip

TURNOVER_FLOOR: Final = 1e-4
"""Minimum denominator of S4, equation 12."""

RISK_FLOOR: Final = 1e-6
"""Minimum denominator of the relative errors of S5, equation 14."""


class Checks(Validator):
    """Validator of the inputs of scores."""

    def convention(self, name: str) -> None:
        """Raise `UnknownNameError` for an unknown convention."""
        check_known("convention", CONVENTIONS, name)

    def shares(self, values: Mapping[str, float], *, zero: bool = True) -> None:
        """Record numbers that are not from 0 (or, without ``zero``, just above it) to 1."""
        low = 0.0 if zero else float(np.nextafter(0.0, 1.0))
        for name, value in values.items():  # `number` takes half-open ranges
            wanted = "from 0 to 1" if zero else "above 0 and at most 1"
            self.number(name, value, low, float(np.nextafter(1.0, 2.0)), wanted)

    def finite(self, values: Mapping[str, float]) -> None:
        """Record numbers that are not finite."""
        for name, value in values.items():
            self.number(name, value, -np.inf, np.inf, "a finite number")

    def vector(self, name: str, values: ArrayLike, low: float = 0.0, rule: str = "must be from 0 to 1") -> Floats:
        """Return an array of values from ``low`` to 1."""
        array = self.array(name, values, 1)
        self.forbid(~((array >= low) & (array <= 1)), name, rule, array)
        return array

    def held(self, name: str, values: ArrayLike) -> Floats:
        """Return weights of at least 0 that sum to at most 1, scaled to 1 if they were rounded."""
        return self.weights(name, self.array(name, values, 1), least=0.0)

    def same_length(self, name: str, answers: Floats, true: Floats) -> None:
        """Record answers that are not as many as their truths."""
        if answers.size and true.size and answers.size != true.size:
            self.add(name, f"must be as many as the truths (got {answers.size} and {true.size})")


def clip(value: float) -> float:
    """Clip ``value`` to [0, 1]."""
    return min(1.0, max(0.0, float(value)))


def weight_accuracy(w: ArrayLike, w_star: ArrayLike, convention: Convention = "paper") -> float:
    """Accuracy of weights against the oracle's: 1 minus half the sum of absolute differences (section C.1).

    The value is the share of the portfolio that both have in common: 1 for equal weights, 0 for nothing in common.

    Parameters
    ----------
    w, w_star : float arrays of shape (n_assets,)
        At least 0; each sums to at most 1, the rest is cash. A sum within 1e-4 of 1 counts as rounded: the weights
        are divided by it.
    convention : {"paper", "reference"}
        ``reference`` also divides the sum by n_assets: with 81 assets no portfolio scores below 0.987.

    Examples
    --------
    >>> weight_accuracy([0.5, 0.5, 0.0], [0.0, 0.5, 0.5])
    0.5
    >>> round(weight_accuracy([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], convention="reference"), 4)
    0.8333
    """
    checks = Checks("weight_accuracy")
    checks.convention(convention)
    first, second = checks.held("w", w), checks.held("w_star", w_star)
    checks.same_length("w", first, second)
    checks.raise_for_errors()
    return _accuracy(first, second, convention)


def intra_class_score(w: ArrayLike, corr: ArrayLike, classes: Sequence[Hashable]) -> float:
    """Intra-class score: absence of concentration in classes of correlated assets (equation 9).

    It is 1 without weight in a class of positive mean correlation. Weight in a class costs that mean, over all pairs
    of the class, held or not. A class with one member, or without a defined pair, adds no penalty.

    Parameters
    ----------
    w : float array of shape (n_assets,)
        At least 0, sums to at most 1; rounded sums as in `weight_accuracy`.
    corr : float array of shape (n_assets, n_assets)
        Pearson correlations of the lookback; undefined pairs are NaN and are left out of every mean.
    classes : sequence of n_assets labels
        The class of each asset.

    Examples
    --------
    >>> corr = [[1.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 1.0]]
    >>> intra_class_score([0.25, 0.25, 0.5], corr, ["equity", "equity", "bond"])
    0.7
    """
    checks = Checks("intra_class_score")
    return _intra(*_by_class(checks, checks.held("w", w), corr, classes))


def inter_class_score(
    w: ArrayLike, corr: ArrayLike, classes: Sequence[Hashable], convention: Convention = "paper"
) -> float:
    """Inter-class score: credit for classes that hedge each other (equations 10 and 11).

    The mean correlation between the classes held, weighted by the product of the two class weights, is mapped from
    1 (score 0) to -1 (score 1). The correlation of two classes is the mean over all their pairs of assets.

    Parameters
    ----------
    w, corr, classes
        As in `intra_class_score`.
    convention : {"paper", "reference"}
        The score if equation 10 divides by 0 because only one class is held, or no correlation between the classes
        held is defined: 0 (no hedging), or 1 in the ``reference``. A weight up to 1e-9 counts as not held.

    Examples
    --------
    >>> corr = [[1.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 1.0]]
    >>> inter_class_score([0.25, 0.25, 0.5], corr, ["equity", "equity", "bond"])
    0.55
    >>> inter_class_score([0.5, 0.5, 0.0], corr, ["equity", "equity", "bond"])
    0.0
    """
    checks = Checks("inter_class_score")
    checks.convention(convention)
    return _inter(*_by_class(checks, checks.held("w", w), corr, classes), convention)


def s3_score(
    w: ArrayLike, w_star: ArrayLike, corr: ArrayLike, classes: Sequence[Hashable], *, alpha: float = 0.5,
    convention: Convention = "paper",
) -> float:  # fmt: skip
    """Weight optimisation: accuracy against the oracle, and the two layers of correlation (equations 6 and 8).

    ``alpha * accuracy + (1 - alpha) * (intra + inter) / 2``. Even the oracle's own weights seldom score 1, because the
    second part scores diversification.

    Parameters
    ----------
    w, w_star
        As in `weight_accuracy`.
    corr, classes
        As in `intra_class_score`.
    alpha : float
        Weight of accuracy, in [0, 1].
    convention : {"paper", "reference"}
        As in `weight_accuracy` and `inter_class_score`.

    Examples
    --------
    >>> corr = [[1.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 1.0]]
    >>> round(s3_score([0.25, 0.25, 0.5], [0.5, 0.0, 0.5], corr, ["equity", "equity", "bond"]), 4)
    0.6875
    """
    checks = Checks("s3_score")
    checks.convention(convention)
    first, second = checks.held("w", w), checks.held("w_star", w_star)
    checks.same_length("w", first, second)
    checks.shares({"alpha": alpha})
    totals, means = _by_class(checks, first, corr, classes)
    spread = (_intra(totals, means) + _inter(totals, means, convention)) / 2.0
    return clip(alpha * _accuracy(first, second, convention) + (1.0 - alpha) * spread)


def _accuracy(w: Floats, w_star: Floats, convention: Convention) -> float:
    apart = np.abs(w - w_star)
    return clip(1.0 - float(apart.mean() if convention == "reference" else apart.sum()) / 2.0)


def _by_class(checks: Checks, w: Floats, corr: ArrayLike, classes: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Compute the weight of each class and the mean correlation of each two classes, NaN without a defined pair."""
    matrix = checks.array("corr", corr, 2)
    if matrix.size and w.size:
        n = w.size
        if matrix.shape != (n, n):
            checks.add("corr", f"must have shape ({n}, {n}) (got {matrix.shape})")
        elif len(classes) != n:
            checks.add("classes", f"must be {n}, one of each asset (got {len(classes)})")
        else:
            checks.forbid(np.abs(matrix) > 1 + SLACK, "corr", "must be from -1 to 1, or NaN where undefined", matrix)
            # The exact comparison is faster, and most matrices pass it.
            if not np.array_equal(matrix, matrix.T, equal_nan=True):
                apart = ~np.isclose(matrix, matrix.T, rtol=0.0, atol=SLACK, equal_nan=True)
                checks.forbid(apart, "corr", "must be symmetric", matrix)
    checks.raise_for_errors()
    labels = {label: code for code, label in enumerate(dict.fromkeys(classes))}
    codes = np.array([labels[label] for label in classes])
    member = np.asarray(codes[:, None] == np.arange(len(labels)), dtype=np.float64)
    return w @ member, group_correlations(matrix, member)


def _intra(totals: Floats, means: Floats) -> float:
    within = np.diag(means)
    return clip(1.0 - float(totals @ np.where(within > 0, within, 0.0)))


def _inter(totals: Floats, means: Floats, convention: Convention) -> float:
    sizes = np.where(totals > SLACK, totals, 0.0)
    pairs = np.where(np.isfinite(means), np.outer(sizes, sizes), 0.0)
    np.fill_diagonal(pairs, 0.0)
    mass = float(pairs.sum())
    if mass == 0:
        return 1.0 if convention == "reference" else 0.0
    across = float((pairs * np.where(np.isfinite(means), means, 0.0)).sum()) / mass
    return clip((1.0 - across) / 2.0)


def ceps(stages: Sequence[float] | Floats | Mapping[Stage, float], *, penalty: float = 0.1) -> float:
    """Cross-stage error propagation score: the mean of the five stages minus a penalty on every drop to the next stage.

    Of two models with the same mean, the one whose stages differ more scores lower; a rise costs nothing (section C.1,
    equations 1 to 3). It is computed per decision date; an episode's CEPS is the mean over its dates. Up to a penalty
    of 0.2 the score is never clipped at 0 and is concave, so that mean never exceeds the CEPS of mean stages.

    Parameters
    ----------
    stages : five floats, or a mapping of S1 to S5 to floats
        Scores of S1 to S5 in their order, in [0, 1].
    penalty : float
        Lambda, in [0, 1].

    Examples
    --------
    >>> round(ceps([0.792, 0.506, 0.714, 0.136, 0.480]), 4)
    0.4392
    """
    checks = Checks("ceps")
    if isinstance(stages, Mapping):
        if set(stages) != set(STAGES):
            checks.add("stages", f"must be {', '.join(STAGES)} (got {', '.join(map(str, stages)) or 'none'})")
            checks.raise_for_errors()
        stages = [stages[stage] for stage in STAGES]
    scores = checks.vector("stages", stages)
    if scores.size and scores.size != len(STAGES):
        checks.add("stages", f"must be {len(STAGES)} scores, S1 to S5 (got {scores.size})")
    checks.shares({"penalty": penalty})
    checks.raise_for_errors()
    drops = float(np.maximum(scores[:-1] - scores[1:], 0.0).sum())
    return clip(float(scores.mean()) - penalty * drops)


def s1_score(views: ArrayLike | Mapping[str, float], truth: ArrayLike | Mapping[str, float]) -> float:
    """Market interpretation: 1 minus half the mean absolute error of the views (equation 4).

    It is 1 if every view equals the truth, and 0 for full conviction in the wrong direction everywhere. Views of 0
    against truths spread over the whole range score about 0.75: compare this score with that of the neutral answer.

    Parameters
    ----------
    views : float array of shape (n_assets,), or mapping of names to floats
        In [-1, 1], -1 most bearish. In a mapping, a name that is missing, or None, is neutral: 0.
    truth : like ``views``
        The names of a mapping are those that are scored; other names in ``views`` are ignored.

    Examples
    --------
    >>> s1_score([1.0, -1.0], [0.5, -0.5])
    0.75
    >>> s1_score({"A": 1.0}, {"A": 1.0, "B": 1.0})
    0.75
    """
    checks = Checks("s1_score")
    answers, true = _align(checks, "views", views, truth, 0.0)
    first, second = (
        checks.vector(name, raw, -1.0, "must be from -1 to 1") for name, raw in (("views", answers), ("truth", true))
    )
    checks.same_length("views", first, second)
    checks.raise_for_errors()
    return clip(1.0 - float(np.abs(first - second).mean()) / 2.0)


def s2_score(signals: Sequence[Signal] | Mapping[str, Signal], truth: Sequence[Signal] | Mapping[str, Signal]) -> float:
    """Signal generation: the share of assets with the right signal (equation 5).

    Parameters
    ----------
    signals : sequence of n_assets signals, or mapping of names to signals
        ``buy``, ``hold`` or ``sell``. In a mapping, a name that is missing, or None, is hold.
    truth : like ``signals``
        The names of a mapping are those that are scored; other names in ``signals`` are ignored.

    Examples
    --------
    >>> s2_score(["buy", "sell", "hold", "hold"], ["buy", "hold", "hold", "sell"])
    0.5
    """
    checks = Checks("s2_score")
    answers, true = _align(checks, "signals", signals, truth, "hold")
    for name, words in (("signals", answers), ("truth", true)):
        if wrong := [word for word in words if word not in SIGNALS]:
            checks.add(name, f"must be {', '.join(SIGNALS)} ({len(wrong)} value(s), first: {wrong[0]!r})")
    if len(true) == 0:
        checks.add("truth", "at least one signal is needed (got 0)")
    elif len(answers) != len(true):
        checks.add("signals", f"must be as many as the truths (got {len(answers)} and {len(true)})")
    checks.raise_for_errors()
    return sum(bool(answer == other) for answer, other in zip(answers, true, strict=True)) / len(true)


def s4_score(turnover: float, turnover_star: float) -> float:
    """Execution: similarity of the turnover to that of the oracle's weights (equation 12).

    The smaller of the two over the larger, so that trading half as much costs the same as trading twice as much. It is
    0 if only one of them trades, and 1 if neither does.

    Parameters
    ----------
    turnover, turnover_star : float
        Two-sided, as a share of NAV, at least 0: of the executed weights, and of the oracle's.

    Examples
    --------
    >>> round(s4_score(1.082, 1.670), 3)
    0.648
    """
    checks = Checks("s4_score")
    for name, value in (("turnover", turnover), ("turnover_star", turnover_star)):
        checks.number(name, value, 0.0, np.inf, "0 or more")
    checks.raise_for_errors()
    return clip(1.0 - abs(turnover - turnover_star) / max(turnover, turnover_star, TURNOVER_FLOOR))


def s5_score(
    rebalance: bool, rebalance_star: bool, var: float, var_star: float, drawdown: float, drawdown_star: float
) -> float:
    """Risk monitoring: half for the right alarm, half for two risk figures (equations 13 and 14).

    The second half is 1 minus the mean of the two relative errors, at least 0.

    Parameters
    ----------
    rebalance, rebalance_star : bool
        True if a limit is broken: by the executed weights, and by the oracle's.
    var, var_star : float
        One-day value at risk at 95 %, as a return: -0.02 is a loss of 2 %.
    drawdown, drawdown_star : float
        Maximum drawdown over the lookback, as a return.

    Examples
    --------
    >>> round(s5_score(False, True, -0.0083, -0.0084, -0.0366, -0.0393), 3)
    0.48
    """
    checks = Checks("s5_score")
    for name, flag in (("rebalance", rebalance), ("rebalance_star", rebalance_star)):
        if not isinstance(flag, (bool, np.bool_)):
            checks.add(name, f"must be True or False (got {flag!r})")
    checks.finite({"var": var, "var_star": var_star, "drawdown": drawdown, "drawdown_star": drawdown_star})
    checks.raise_for_errors()
    errors = [
        abs(answer - true) / max(abs(true), RISK_FLOOR) for answer, true in ((var, var_star), (drawdown, drawdown_star))
    ]
    return clip(0.5 * float(rebalance == rebalance_star) + 0.5 * clip(1.0 - sum(errors) / 2.0))


def _align(checks: Checks, where: str, replies: Any, true: Any, neutral: float | str) -> tuple[Any, Any]:
    """Return answers and truths in one order; of two mappings that of the truths, missing answers neutral."""
    if isinstance(replies, Mapping) and isinstance(true, Mapping):
        answers = [replies.get(name) for name in true]
        return [neutral if answer is None else answer for answer in answers], list(true.values())
    if isinstance(replies, Mapping) or isinstance(true, Mapping):
        kinds = f"{type(replies).__name__} and {type(true).__name__}"
        checks.add(where, f"must be of the same kind as the truths, both mappings or both arrays (got {kinds})")
        checks.raise_for_errors()
    return replies, true
