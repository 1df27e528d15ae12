"""The five baselines without a model, in the same windows and the same sandbox as the models (section C.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

import numpy as np

from assaymark.benchmark.episode import MarketWindow
from assaymark.benchmark.market import Known
from assaymark.benchmark.oracle import COST_BPS, trade
from assaymark.benchmark.stages import Convention
from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.portfolio import STRATEGIES
from assaymark.portfolio.qp import Floats

BASELINES: Mapping[str, str] = MappingProxyType(
    {
        "EqW": "equal-weight",
        "60/40": "60/40",
        "RP": "inverse-volatility",
        "CRP": "equal-risk-contribution",
        "MinVar": "minimum-variance",
    }
)
"""PortBench's short names, and the strategy of `assaymark.portfolio` that each is."""


@dataclass(frozen=True, slots=True, eq=False)
class BaselineResult:
    """One baseline through one window."""

    name: str
    window: str
    dates: tuple[date, ...]
    weights: Floats
    turnover: Floats
    statuses: tuple[str, ...]
    days: np.ndarray
    nav: Floats


def run_baselines(
    windows: Sequence[MarketWindow],
    *,
    names: Sequence[str] = tuple(BASELINES),
    cash: bool = False,
    cost_bps: float = COST_BPS,
    convention: Convention = "paper",
) -> tuple[BaselineResult, ...]:
    """Every baseline through every window."""
    for name in names:
        if name not in BASELINES:
            raise UnknownNameError("baseline", name, tuple(BASELINES))
    return tuple(
        _run(name, one, cash=cash, cost_bps=cost_bps, convention=convention) for one in windows for name in names
    )


def baseline_weights(name: str, known: Known, size: int, *, cash: bool = False) -> tuple[Floats | None, str]:
    """What a baseline wants to hold on a date, shape (n_assets,), and how it was found; None where it has no answer."""
    eligible = np.array([cash or one != "cash" for one in known.classes])
    classes = [one for one, kept in zip(known.classes, eligible.tolist(), strict=True) if kept]
    try:
        found = STRATEGIES[BASELINES[name]].choose(known.returns[:, eligible], classes)
    except NotMeasurableError as exc:
        return None, f"held: {exc}"
    weights = np.zeros(size)
    weights[known.part[eligible]] = found.weights
    return weights, found.status


def _run(name: str, window: MarketWindow, *, cash: bool, cost_bps: float, convention: Convention) -> BaselineResult:
    position = window.start()
    path, held, turnover, statuses = [np.ones(1)], [], [], []
    for day in window.decisions:
        target, status = baseline_weights(name, window.known(day), position.weights.size, cash=cash)
        done = trade(position, target, cost_bps=cost_bps)
        held.append(done.after.weights)
        turnover.append(done.turnover)
        statuses.append(status)
        position, nav = window.hold(day, done.after, convention=convention)
        path.append(nav)
    return BaselineResult(
        name,
        window.window,
        window.decisions,
        np.stack(held),
        np.array(turnover),
        tuple(statuses),
        window.days,
        np.concatenate(path),
    )
