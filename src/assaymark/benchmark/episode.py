"""Episodes, call by call: one model under one profile through one window; and the baselines without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache, partial
from itertools import product
from types import MappingProxyType
from typing import Final, cast

import numpy as np
import scipy
from numpy.typing import ArrayLike

from assaymark.benchmark import replies
from assaymark.benchmark import scores as formulas
from assaymark.benchmark.market import HORIZONS, KEPT, BenchMarket, MarketState, Window
from assaymark.benchmark.plan import ClassName, Pipeline, Profile, exposures, profile_alignment
from assaymark.benchmark.scores import Convention, DateResult, EpisodeResult, Position, Risk, Signal, Stage, Truths
from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.providers.http_agent import is_outside, no_reply
from assaymark.errors import InputError, NotMeasurableError, check_known
from assaymark.portfolio import STRATEGIES, max_sharpe
from assaymark.portfolio.backtesting import RISK_FREE
from assaymark.portfolio.optimisers import Bools, Floats, Validator, evenly, normalise_sums
from assaymark.protocol import AgentSpec

COST_BPS = 15.0
"""Trading cost in basis points of the traded value: 10 slippage and 5 commission (Appendix C.3)."""

VIEW_SCALE: Final = 0.10
"""The return that corresponds to a view of 1."""

SIGNAL_AT: Final = 0.2
"""Threshold of a signal: a view above it is a buy, one below its negative a sell."""

VAR_LEVEL: Final = 0.95

DRIFT_LIMIT: Final = 0.05
"""Largest drift without a rebalancing flag, as a share of NAV."""

NOT_SOLVED = "not-solved"
"""The status of oracle weights that are equal because the solver found none."""

_ROUNDING = 1e-9
_NOTHING = 1e-15  # a portfolio value up to this is 0 but for rounding


def equal_start(part: np.ndarray, size: int) -> Position:
    """Return a portfolio of NAV 1 in equal weights over the instruments at indices ``part`` of ``size`` (figure 25)."""
    weights = np.zeros(size)
    weights[part] = 1.0 / part.size
    weights.setflags(write=False)
    return Position(1.0, weights, 1.0)


def turnover_between(weights: ArrayLike, target: ArrayLike) -> float:
    """Compute the two-sided turnover as a share of NAV: the sum of absolute changes of weights."""
    return float(np.abs(np.asarray(target) - np.asarray(weights)).sum())


def trade(position: Position, target: Floats | None, cost_bps: float = COST_BPS) -> tuple[Position, float]:
    """Trade to the target weights at a cost. Returns the new portfolio and its two-sided turnover as a share of NAV.

    A target of None keeps the portfolio and costs nothing.
    """
    if target is None or position.nav <= 0:
        return position, 0.0
    weights, findings = normalise_sums(target).copy(), Validator("sandbox")
    if weights.shape != position.weights.shape:
        findings.add("target", f"must have the shape {position.weights.shape} (got {weights.shape})")
    elif not np.isfinite(weights).all():
        findings.add("target", "weights must be finite")
    else:
        if (low := float(weights.min())) < -_ROUNDING:
            findings.add("target", f"weights must be at least 0 (got {low:g})")
        if (total := float(weights.sum())) > 1.0 + _ROUNDING:
            findings.add("target", f"weights must sum to at most 1 (got {total:g})")
    findings.raise_for_errors()
    moved = turnover_between(position.weights, weights)
    weights.setflags(write=False)
    return Position(position.nav * (1.0 - cost_bps * 1e-4 * moved), weights, position.peak), moved


def hold(
    position: Position, returns: Floats, to_decision: bool, convention: Convention = "paper"
) -> tuple[Position, Floats]:
    """Let a portfolio drift, without trades, over daily ``returns``. Returns it and the NAV of each day."""
    if not returns.shape[0]:
        return position, np.empty(0)
    factors = 1.0 + returns
    if to_decision and convention == "reference":
        factors[-1] = 1.0
    growth = np.cumprod(factors, axis=0)
    worth = growth @ position.weights + (1.0 - float(position.weights.sum()))
    worth = np.where(worth > _NOTHING, worth, 0.0)
    # a NAV of 0 stays 0
    worth = np.where(np.minimum.accumulate(worth) > 0, worth, 0.0)
    nav = position.nav * worth
    weights = position.weights * growth[-1] / worth[-1] if worth[-1] > 0 else np.zeros_like(position.weights)
    weights.setflags(write=False)
    return Position(float(nav[-1]), weights, max(position.peak, float(nav.max()))), nav


def ahead_of(market: BenchMarket, row: int, horizon: int, convention: Convention = "paper") -> tuple[Floats, Floats]:
    """Return the future of a row: total returns over ``horizon``, shape (n_assets,), and the oracle's daily returns."""
    if row + horizon >= market.days.size:
        last = f"{market.days[-1]}, {market.days.size - 1 - row} days after {market.days[row]}"
        raise InputError("market", [f"a horizon of {horizon} days is needed (the store ends on {last})"])
    first = row if convention == "reference" else row + 1
    total = market.closes[row + horizon] / market.closes[row] - 1.0
    return np.where(np.isfinite(total), total, 0.0), market.returns[first : first + horizon]


def views_of(returns: Floats) -> Floats:
    """Convert returns to views in [-1, 1]: a return of 10 % is a view of 1."""
    return np.clip(returns / VIEW_SCALE, -1.0, 1.0)


def signals_of(views: Floats) -> tuple[Signal, ...]:
    """Convert views to signals by the threshold `SIGNAL_AT`."""
    return tuple("buy" if view > SIGNAL_AT else "sell" if view < -SIGNAL_AT else "hold" for view in views.tolist())


def oracle_weights(
    mean: Floats, covariance: Floats, allowed: Bools, convention: Convention = "paper"
) -> tuple[Floats, str]:
    """Compute the oracle's weights (equation 7; equal if nothing is allowed or solved) and the solver's status."""
    if not allowed.any():
        return evenly(mean.size, np.arange(mean.size)), "empty"
    if convention == "reference":
        # Maximise mean over volatility by SLSQP from equal weights, as in the authors' code.
        places: np.ndarray = np.flatnonzero(allowed)
        count = places.size
        drift, matrix = mean[places], covariance[np.ix_(places, places)]

        def size(w: Floats) -> float:
            return max(float(np.sqrt(max(w @ matrix @ w, 0.0))), 1e-10)

        def minus_ratio(w: Floats) -> float:
            return -float(w @ drift) / size(w)

        def slope(w: Floats) -> Floats:
            return np.asarray(-drift / size(w) + float(w @ drift) * (matrix @ w) / size(w) ** 3)

        solution = scipy.optimize.minimize(
            minus_ratio, np.full(count, 1.0 / count), jac=slope, method="SLSQP", bounds=[(0.0, 1.0)] * count,
            constraints=scipy.optimize.LinearConstraint(np.ones((1, count)), 1.0, 1.0), options={"maxiter": 500},
        )  # fmt: skip
        weights = np.zeros(mean.size)
        chosen = np.clip(solution.x, 0.0, None)
        solved = bool(solution.success) and np.isfinite(chosen).all() and float(chosen.sum()) > 0
        weights[places] = chosen / chosen.sum() if solved else 1.0 / count
        return weights, "slsqp" if solved else NOT_SOLVED
    try:
        optimum = max_sharpe(mean, covariance, rf=RISK_FREE, allowed=allowed)
    except NotMeasurableError:
        return evenly(mean.size, allowed), NOT_SOLVED
    return optimum.weights, optimum.status


def risk_of(
    weights: Floats, returns: Floats, profile: Profile, drift_limit: float = DRIFT_LIMIT,
    convention: Convention = "paper",
) -> Risk:  # fmt: skip
    """Compute VaR, drawdown (losses are negative, as in Table 7), drift and flag of weights over the lookback."""
    daily = returns @ weights
    var = float(np.quantile(daily, 1.0 - VAR_LEVEL))
    worth = np.concatenate([[1.0], np.cumprod(1.0 + daily)])
    drawdown = float((worth / np.maximum.accumulate(worth) - 1.0).min())
    if convention == "reference":
        drift = float(np.abs(weights - 1.0 / weights.size).max())
        return Risk(var, drawdown, drift, drift > drift_limit or -drawdown > profile.drawdown_tolerance)
    grown = weights * np.prod(1.0 + returns, axis=0)
    money = 1.0 - float(weights.sum())
    # a rounding error of the sum must not outweigh assets that have lost nearly everything
    total = float(grown.sum()) + (money if money > 1e-12 else 0.0)
    drift = float(np.abs(grown / total - weights).max()) if total > 0 else float(weights.max())
    return Risk(var, drawdown, drift, drift > drift_limit or var < profile.var_limit)


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Truths of a date for all models and profiles; ``fixed`` are the oracle's weights if no model affects them."""

    known: MarketState
    views: Floats
    mean: Floats
    covariance: Floats
    fixed: tuple[Floats, str] | None


def scene_on(market: BenchMarket, row: int, horizon: int, convention: Convention = "paper") -> Scene:
    """Compute the truths of a row from the returns after its close."""
    known = market.known(row)
    total, daily = (part[..., known.part] for part in ahead_of(market, row, horizon, convention))
    mean = daily.mean(axis=0)
    if convention == "paper":
        return Scene(known, views_of(total), mean, known.covariance, None)
    views = views_of(np.prod(1.0 + known.returns, axis=0) - 1.0)
    covariance = np.atleast_2d(np.cov(daily, rowvar=False))
    buys = np.array([signal == "buy" for signal in signals_of(views)])
    return Scene(known, views, mean, covariance, oracle_weights(mean, covariance, buys, convention))


BASELINES: Mapping[str, str] = MappingProxyType(
    {
        "EqW": "equal-weight",
        "60/40": "60/40",
        "RP": "inverse-volatility",
        "CRP": "equal-risk-contribution",
        "MinVar": "minimum-variance",
    }
)
"""PortBench's short names of the five baselines (section C.3), with the strategy of `assaymark.portfolio` for each."""


class MarketWindow:
    """A market in one window at one pace, shared by all its episodes. Weights are over the whole universe."""

    def __init__(self, market: BenchMarket, spec: Window, pace: formulas.Pace) -> None:
        self.market, self.spec, self.pace = market, spec, pace
        self.window = spec.name
        self.tickers, self.classes = market.universe.ids, market.universe.classes
        self.rows = market.decisions(spec, pace)
        self.horizon = HORIZONS[pace]
        self.decisions: tuple[date, ...] = tuple(market.days[self.rows].tolist())
        self._end = int(np.searchsorted(market.days, np.datetime64(spec.last), side="right")) - 1
        self.days: np.ndarray = market.days[self.rows[0] : self._end + 1]
        # the same for every model, and slow to solve under `reference`
        self._scene = lru_cache(maxsize=KEPT)(partial(scene_on, market))
        # the market of a date as prompt text and as numbers, for all models, profiles and stages
        self.market_text = lru_cache(maxsize=KEPT)(lambda day: replies.market_text(self.known(day)))
        self.market_numbers = lru_cache(maxsize=KEPT)(
            lambda day: replies.market_numbers(self.known(day), market.view(self._row(day)).instruments)
        )
        self._place = {day: at for at, day in enumerate(self.decisions)}

    def start(self) -> Position:
        """Return the portfolio before the first trade: equal weights over the first date's eligible instruments."""
        return equal_start(self.known(self.decisions[0]).part, self.market.universe.size)

    def known(self, day: date) -> MarketState:
        """Return the market as it was known at the close of a decision date; ``part`` are the eligible instruments."""
        return self.market.known(self._row(day))

    def truths(
        self, day: date, buys: Bools, held: Floats, profile: Profile, drift_limit: float = DRIFT_LIMIT,
        convention: Convention = "paper",
    ) -> Truths:  # fmt: skip
        """Compute the truths that the answers of a decision date are scored against.

        Instruments that are not eligible have the view 0, the signal hold and the weight 0.
        """
        scene, size = self._scene(self._row(day), self.horizon, convention), held.size
        known = scene.known
        weights, status = scene.fixed or oracle_weights(scene.mean, scene.covariance, buys[known.part])
        risk = risk_of(weights, known.returns, profile, drift_limit, convention)
        target, views = known.spread(weights, size), known.spread(scene.views, size)
        return Truths(views, signals_of(views), target, status, turnover_between(held, target), risk)

    def hold(self, day: date, position: Position, convention: Convention = "paper") -> tuple[Position, Floats]:
        """Let a portfolio drift from a decision date to the next or to the end. Returns it and the NAV of each day."""
        first = self._row(day)
        last = first == self.rows[-1]
        stop = self._end if last else int(self.rows[self._place[day] + 1])
        return hold(position, self.market.returns[first + 1 : stop + 1], not last, convention)

    def _row(self, day: date) -> int:
        if day not in self._place:
            raise InputError(f"window {self.window}", [f"{day} is not one of its decision dates"])
        return int(self.rows[self._place[day]])


SHOWN: Final = 900
"""Characters of a prompt or a reply that an episode keeps for its page; the ledger has the full text."""


class EpisodeState:
    """One episode: (model, profile, window). It makes no calls; a run collects the next calls of many episodes.

    Equal replies lead to equal calls, and a call contains only data known at the close of its day.
    """

    def __init__(
        self, agent: AgentSpec, profile: Profile, world: MarketWindow, rules: Pipeline | None = None,
        convention: Convention = "paper",
    ) -> None:  # fmt: skip
        self.agent, self.profile, self.world = agent, profile, world
        self.rules, self.convention = rules or Pipeline(), convention
        self.name = f"{agent.name}/{profile.name}/{world.window}"
        self.calls = 3 * len(world.decisions)
        self._position = world.start()
        self._nav: list[Floats] = [np.ones(1)]
        self._dates: list[DateResult] = []
        self.excerpts: dict[tuple[date, Stage], formulas.CallExcerpt] = {}
        self._open()

    def _open(self) -> None:
        """Start a decision date; ``_given_signals`` is None before S2 is answered, and if the answer has no signal."""
        self._known = self.world.known(self.world.decisions[len(self._dates)])
        self._views = np.zeros(len(self.world.tickers))
        self._given_signals: tuple[Signal, ...] | None = None
        self._stage: Stage = "S1"
        self._pending: CallSpec | None = None
        self._states: dict[Stage, formulas.StageState] = {}

    @property
    def over(self) -> bool:
        """True if every decision is made."""
        return len(self._dates) == len(self.world.decisions)

    def next_call(self) -> CallSpec | None:
        """Return the call that the episode waits for; None when it is over."""
        if self.over:
            return None
        rules, world = self.rules, self.world
        if self._pending is None:
            day = self._known.day
            numbers = world.market_numbers(day) if is_outside(self.agent.model) else None
            self._pending = replies.stage_call(
                self.agent, self._stage, self._known, world.market_text(day), numbers, self.convention, world.horizon,
                self._views, self._signals(), self._position, world.tickers, self.profile, rules.cost_bps,
            )  # fmt: skip
            prompt, half = "".join(part.text for part in self._pending.messages[-1].parts), SHOWN // 2
            cut = len(prompt) > SHOWN
            shown = f"{prompt[:half]}\n[...]\n{prompt[-half:]}" if cut else prompt
            self.excerpts[day, self._stage] = formulas.CallExcerpt(shown, "", cut, self._pending.key)
        return self._pending

    def take(self, reply: Reply) -> None:
        """Process the reply to the pending call; an invalid one is scored by PortBench's rule."""
        if self.over or self._pending is None:
            raise ValueError(f"episode {self.name} waits for no reply")
        at = self._known.day, self._stage
        cut = self.excerpts[at].cut or len(reply.text) > SHOWN
        self.excerpts[at] = replace(self.excerpts[at], reply=reply.text[:SHOWN], cut=cut, missing=no_reply(reply))
        self.follow(reply)

    def follow(self, reply: Reply) -> None:
        """Process a reply to the next stage that was given to a call of another episode, without making a prompt."""
        if self.over:
            raise ValueError(f"episode {self.name} is over")
        known = self._known
        self._pending = None
        if self._stage == "S1":
            views, self._states["S1"] = replies.parse_views(reply, known.tickers)
            self._views, self._stage = known.spread(views, self._views.size), "S2"
            return
        if self._stage == "S2":
            self._given_signals, self._states["S2"] = replies.parse_signals(reply, known.tickers)
            self._stage = "S3"
            return
        weights, self._states["S3"] = replies.parse_weights(reply, known.tickers)
        target = None if weights is None else known.spread(weights, self._views.size)
        rules, part, truths, convention = self.rules, known.part, self._truths(), self.convention
        after, turnover = trade(self._position, target, rules.cost_bps)
        answers = formulas.Answers(self._views, self._signals(), target, self._states)
        # S3 to S5 score the portfolio held, which an invalid reply leaves unchanged
        executed = self._position.weights if target is None else target
        chosen, best = executed[part], truths.weights[part]
        risk = risk_of(chosen, known.returns, self.profile, rules.drift_limit, convention)  # the rest counts as cash
        answered, true = ([signals[at] for at in part.tolist()] for signals in (answers.signals, truths.signals))
        best_risk, by = truths.risk, known.scored_by
        scores: dict[Stage, float] = {
            "S1": formulas.s1_score(answers.views[part], truths.views[part]),
            "S2": formulas.s2_score(answered, true),
            "S3": formulas.s3_score(chosen, best, by, known.classes, alpha=rules.alpha, convention=convention),
            "S4": formulas.s4_score(turnover, truths.turnover),
            "S5": formulas.s5_score(
                risk.rebalance, best_risk.rebalance, risk.var, best_risk.var, risk.drawdown, best_risk.drawdown
            ),
        }
        risky, safe = exposures(executed, cast("tuple[ClassName, ...]", self.world.classes), convention)
        alignment = profile_alignment(risky, safe, risk.var, self.profile)
        whole = formulas.ceps(scores, penalty=rules.penalty)
        self._dates.append(DateResult(known.day, answers, truths, executed, turnover, risk, scores, whole, alignment))
        self._position, nav = self.world.hold(known.day, after, convention)
        self._nav.append(nav)
        if not self.over:
            self._open()

    def true_reply(self) -> str:
        """Return the reply to the pending call with perfect foresight: the upper bound of every score.

        In S3 it is the oracle's portfolio under the signals given in S2.
        """
        if self.over:
            raise ValueError(f"episode {self.name} is over")
        truths, stage = self._truths(), self._stage
        values: Sequence[float | str] = truths.signals
        if stage != "S2":
            values = (truths.views if stage == "S1" else truths.weights).tolist()
        return replies.reply_text(stage, {self.world.tickers[at]: values[at] for at in self._known.part.tolist()})

    def result(self) -> EpisodeResult:
        """Return the result of the finished episode."""
        if not self.over:
            there = f"{len(self._dates)} of {len(self.world.decisions)} decisions"
            raise ValueError(f"episode {self.name} is not over: {there}")
        ids = self.agent.name, self.profile.name, self.world.window
        return EpisodeResult(*ids, tuple(self._dates), self.world.days, np.concatenate(self._nav), self.excerpts)

    def _signals(self) -> tuple[Signal, ...]:
        """Return the signals of the universe: hold for ineligible instruments, and for all if none were given."""
        every: list[Signal] = ["hold"] * len(self.world.tickers)
        for at, signal in zip(self._known.part.tolist(), self._given_signals or (), strict=False):
            every[at] = signal
        return tuple(every)

    def _truths(self) -> Truths:
        """Compute the truths of this date; given no signals, the true ones hold: else an invalid one scored."""

        def under(signals: Sequence[Signal]) -> Truths:
            return self.world.truths(
                self._known.day, np.array([signal == "buy" for signal in signals]), self._position.weights,
                self.profile, self.rules.drift_limit, self.convention,
            )  # fmt: skip

        return under(under(self._signals()).signals if self._given_signals is None else self._signals())


@dataclass(frozen=True, slots=True, eq=False)
class BaselineResult:
    """The result of one baseline in one window."""

    name: str
    window: str
    weights: Floats
    turnover: Floats
    statuses: tuple[str, ...]
    nav: Floats


def run_baselines(
    windows: Sequence[MarketWindow], cash: bool = False, cost_bps: float = COST_BPS, convention: Convention = "paper",
    names: Sequence[str] = tuple(BASELINES),
) -> tuple[BaselineResult, ...]:  # fmt: skip
    """Run every baseline in every window. Raises `UnknownNameError` for an unknown baseline."""
    check_known("baseline", BASELINES, *names)
    baselines = []
    for window, name in product(windows, names):
        position, path = window.start(), [np.ones(1)]
        weights, turnovers, statuses = list[Floats](), list[float](), list[str]()
        for day in window.decisions:
            target, status = baseline_weights(name, window.known(day), position.weights.size, cash)
            position, turnover = trade(position, target, cost_bps)
            weights.append(position.weights)
            turnovers.append(turnover)
            statuses.append(status)
            position, nav = window.hold(day, position, convention)
            path.append(nav)
        traded = np.stack(weights), np.array(turnovers), tuple(statuses)
        baselines.append(BaselineResult(name, window.window, *traded, np.concatenate(path)))
    return tuple(baselines)


def baseline_weights(name: str, known: MarketState, size: int, cash: bool = False) -> tuple[Floats | None, str]:
    """Compute a baseline's weights on a date, shape (n_assets,), and its solver status; weights None if undefined."""
    eligible = np.array([cash or one != "cash" for one in known.classes])
    classes = [kind for kind, allowed in zip(known.classes, eligible.tolist(), strict=True) if allowed]
    try:
        choice = STRATEGIES[BASELINES[name]].choose(known.returns[:, eligible], classes)
    except NotMeasurableError as exc:
        return None, f"held: {exc}"
    weights = np.zeros(size)
    weights[known.part[eligible]] = choice.weights
    return weights, choice.status
