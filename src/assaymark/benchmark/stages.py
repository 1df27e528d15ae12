"""What a model says on one date, what was true, and what came of it: the types that all parts of the benchmark share.

Every array is aligned to the order of one universe of n_assets instruments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

import numpy as np

from assaymark.portfolio.qp import Floats

Stage = Literal["S1", "S2", "S3", "S4", "S5"]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages in their order: interpretation, signals, weights, execution, risk."""

Signal = Literal["buy", "hold", "sell"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
"""The three signals."""

Convention = Literal["paper", "reference"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
"""``paper``: the formulas as printed in PortBench. ``reference``: what the authors' public code does instead."""


@dataclass(frozen=True, slots=True)
class StageState:
    """How the reply to one stage could be read, with the reason where it could not, or not wholly."""

    state: Literal["ok", "partial", "invalid", "refused", "truncated"]
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a model said on one date.

    Attributes
    ----------
    views : float array of shape (n_assets,)
        S1, in [-1, 1]; 0 where nothing usable was said.
    signals : tuple of n_assets signals
        S2; hold where nothing usable was said.
    weights : float array of shape (n_assets,) or None
        S3; None where the reply was unusable, which holds what is held.
    states : mapping of stage to StageState
        Of the stages that asked the model.
    """

    views: Floats
    signals: tuple[Signal, ...]
    weights: Floats | None
    states: Mapping[Stage, StageState]


@dataclass(frozen=True, slots=True, eq=False)
class Truths:
    """What the answers of one date are scored against.

    Attributes
    ----------
    views : float array of shape (n_assets,)
        In [-1, 1].
    signals : tuple of n_assets signals
    weights : float array of shape (n_assets,)
        The oracle's, at least 0, sum to 1.
    weights_status : str
        How the oracle's solver ended (`assaymark.portfolio.Status`).
    turnover : float
        Two-sided, as a share of NAV: from what was held to the oracle's weights.
    var, drawdown : float
        Of the oracle's weights over the lookback; negative, as in Table 7.
    drift : float
        Largest change of one oracle weight in the window of S5, as a share of NAV.
    rebalance : bool
        Whether a limit is broken.
    """

    views: Floats
    signals: tuple[Signal, ...]
    weights: Floats
    weights_status: str
    turnover: float
    var: float
    drawdown: float
    drift: float
    rebalance: bool


@dataclass(frozen=True, slots=True, eq=False)
class DateResult:
    """One decision date: answers, truths, what was executed, and the scores.

    ``executed`` are the weights held after trading, shape (n_assets,). ``turnover``, ``var``, ``drawdown``, ``drift``
    and ``rebalance`` are those of `Truths`, computed from the executed weights. ``scores`` has S1 to S5, each in
    [0, 1]; ``ceps`` and ``pas`` are of this date.
    """

    day: date
    answers: Answers
    truths: Truths
    executed: Floats
    turnover: float
    var: float
    drawdown: float
    drift: float
    rebalance: bool
    scores: Mapping[Stage, float]
    ceps: float
    pas: float


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeResult:
    """One model under one profile through one window.

    ``days`` (datetime64[D]) and ``nav`` have the same length: one value a trading day, 1.0 on the first.
    """

    model: str
    profile: str
    window: str
    dates: tuple[DateResult, ...]
    days: np.ndarray
    nav: Floats
