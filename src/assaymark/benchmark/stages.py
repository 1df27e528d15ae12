"""What a model says on one date, what was true, and what came of it: types that the whole benchmark shares."""

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
class Position:
    """A portfolio at one close, before any trade at it: weights at least 0, what is missing to 1 is money.

    ``nav`` is a multiple of the first one, and ``peak`` the highest so far.
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
    """What a model said on one date."""

    views: Floats
    signals: tuple[Signal, ...]
    weights: Floats | None
    states: Mapping[Stage, StageState]


@dataclass(frozen=True, slots=True, eq=False)
class Truths:
    """What the answers of one date are scored against."""

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
    """One decision date: answers, truths, what was executed, and the scores."""

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
    """One model under one profile through one window."""

    model: str
    profile: str
    window: str
    dates: tuple[DateResult, ...]
    days: np.ndarray
    nav: Floats
