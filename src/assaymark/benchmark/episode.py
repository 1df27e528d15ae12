"""Episodes, call by call: one model, or one baseline without a model, under one profile through one window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from types import MappingProxyType
from typing import cast

import numpy as np

from assaymark.benchmark.market import HORIZONS, KEPT, BenchMarket, Known, Pace, Window
from assaymark.benchmark.oracle import (
    COST_BPS,
    DRIFT_LIMIT,
    Risk,
    equal_start,
    hold,
    risk_of,
    scene_on,
    trade,
    truths_of,
)
from assaymark.benchmark.profiles import ClassName, Profile, exposures, profile_alignment
from assaymark.benchmark.replies import market_numbers, parse_signals, parse_views, parse_weights, reply_text
from assaymark.benchmark.scores import ceps, s1_score, s2_score, s3_score, s4_score, s5_score
from assaymark.benchmark.stage_prompts import market_text, signals_call, views_call, weights_call
from assaymark.benchmark.stages import (
    Answers,
    Convention,
    DateResult,
    EpisodeResult,
    Position,
    Signal,
    Stage,
    StageState,
    Truths,
)
from assaymark.engine.calls import CallSpec, Reply, Text
from assaymark.engine.providers.http_agent import is_outside
from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.portfolio import STRATEGIES
from assaymark.portfolio.qp import Bools, Floats
from assaymark.protocol import AgentSpec

BASELINES: Mapping[str, str] = MappingProxyType(
    {
        "EqW": "equal-weight",
        "60/40": "60/40",
        "RP": "inverse-volatility",
        "CRP": "equal-risk-contribution",
        "MinVar": "minimum-variance",
    }
)
"""PortBench's short names of the five baselines (section C.3), and the strategy of `assaymark.portfolio` of each."""


class MarketWindow:
    """A market through one window at one pace, shared by all episodes in it. Weights are of the whole universe."""

    def __init__(self, market: BenchMarket, spec: Window, pace: Pace) -> None:
        self.market, self.spec, self.pace = market, spec, pace
        self.window = spec.name
        self.tickers, self.classes = market.universe.ids, market.universe.classes
        self.rows = market.decisions(spec, pace)
        self.horizon = HORIZONS[pace]
        self.decisions: tuple[date, ...] = tuple(market.days[self.rows].tolist())
        self._end = market.end_of(spec)
        self.days: np.ndarray = market.days[self.rows[0] : self._end + 1]
        # the same for every model, and under `reference` slow to solve
        self._scene = lru_cache(maxsize=KEPT)(partial(scene_on, market))
        self._text = lru_cache(maxsize=KEPT)(lambda day: market_text(self.known(day)))
        self._numbers = lru_cache(maxsize=KEPT)(
            lambda day: market_numbers(self.known(day), market.view(self._row(day)).instruments)
        )
        self._place = {day: at for at, day in enumerate(self.decisions)}

    def start(self) -> Position:
        """The portfolio before the first trade: equal weights over what takes part on the first date."""
        return equal_start(self.known(self.decisions[0]).part, self.market.universe.size)

    def known(self, day: date) -> Known:
        """What could be known at the close of a decision date; ``part`` is what takes part."""
        return self.market.known(self._row(day))

    def market_text(self, day: date) -> Text:
        """The market of a decision date as prompts show it, written once for all models, profiles and stages."""
        return self._text(day)

    def market_numbers(self, day: date) -> Text:
        """The market of a decision date as numbers, written once for all agents of one's own, profiles and stages."""
        return self._numbers(day)

    def truths(
        self, day: date, *, buys: Bools, held: Floats, profile: Profile, drift_limit: float = DRIFT_LIMIT,
        convention: Convention = "paper",
    ) -> Truths:  # fmt: skip
        """What the answers of a decision date are scored against (`truths_of`)."""
        scene = self._scene(self._row(day), self.horizon, convention=convention)
        return truths_of(scene, buys=buys, held=held, profile=profile, drift_limit=drift_limit)

    def risk(
        self, day: date, weights: Floats, profile: Profile, *, drift_limit: float = DRIFT_LIMIT,
        convention: Convention = "paper",
    ) -> Risk:  # fmt: skip
        """S5 of executed weights on a decision date (`risk_of`); what does not take part counts as money."""
        known = self.known(day)
        return risk_of(weights[known.part], known.returns, profile, drift_limit=drift_limit, convention=convention)

    def hold(self, day: date, position: Position, *, convention: Convention = "paper") -> tuple[Position, Floats]:
        """Drift from a decision date, after its trade, to the next one or to the end: the NAV of each day after it."""
        first = self._row(day)
        last = first == self.rows[-1]
        stop = self._end if last else int(self.rows[self._place[day] + 1])
        return hold(position, self.market.returns[first + 1 : stop + 1], to_decision=not last, convention=convention)

    def _row(self, day: date) -> int:
        if day not in self._place:
            raise InputError(f"window {self.window}", [f"{day} is no decision date of it"])
        return int(self.rows[self._place[day]])


@dataclass(frozen=True, slots=True)
class EpisodeRules:
    """What a plan sets for every episode; the defaults are those of PortBench, sections C.1 and C.3."""

    convention: Convention = "paper"
    alpha: float = 0.5
    penalty: float = 0.1
    cost_bps: float = COST_BPS
    drift_limit: float = DRIFT_LIMIT


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of an episode: on which day, for which stage, and under which key the ledger has its reply."""

    day: date
    stage: Stage
    key: str


@dataclass(slots=True)
class _Today:
    """How far an episode is on one decision date; ``said`` is None until S2 is answered, and if it names no signal."""

    known: Known
    views: Floats
    said: tuple[Signal, ...] | None = None
    stage: Stage = "S1"
    pending: CallSpec | None = None
    states: dict[Stage, StageState] = field(default_factory=dict)


class EpisodeState:
    """One episode: (model, profile, window). It makes no call itself: a run asks many episodes for their next calls.

    The same replies always lead to the same calls, and a call shows nothing that was not known at the close of its day.
    """

    def __init__(
        self, agent: AgentSpec, profile: Profile, world: MarketWindow, rules: EpisodeRules | None = None
    ) -> None:
        self.agent, self.profile, self.world = agent, profile, world
        self.rules = rules or EpisodeRules()
        self.name = f"{agent.name}/{profile.name}/{world.window}"
        self.calls = 3 * len(world.decisions)
        self._position = world.start()
        self._nav: list[Floats] = [np.ones(1)]
        self._dates: list[DateResult] = []
        self._asked: list[Asked] = []
        self._open()

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Every call that was given out so far, the pending one last."""
        return tuple(self._asked)

    @property
    def over(self) -> bool:
        """Whether every decision is made."""
        return len(self._dates) == len(self.world.decisions)

    def next_call(self) -> CallSpec | None:
        """The call that the episode waits for; None when it is over."""
        if self.over:
            return None
        today, rules, world = self._today, self.rules, self.world
        if today.pending is None:
            day = today.known.day
            numbers = world.market_numbers(day) if is_outside(self.agent.model) else None
            if today.stage == "S1":
                today.pending = views_call(
                    self.agent, world.market_text(day), today.known,
                    horizon=world.horizon, convention=rules.convention, numbers=numbers,
                )  # fmt: skip
            elif today.stage == "S2":
                today.pending = signals_call(
                    self.agent, today.known, today.views, convention=rules.convention, numbers=numbers
                )
            else:
                today.pending = weights_call(
                    self.agent, world.market_text(day), today.known, self._position, world.tickers, self.profile,
                    today.views, self._signals(), horizon=world.horizon, cost_bps=rules.cost_bps, numbers=numbers,
                )  # fmt: skip
            self._asked.append(Asked(day, today.stage, today.pending.key))
        return today.pending

    def take(self, reply: Reply) -> None:
        """Hand in the reply to the pending call, whatever it is: what cannot be read is scored by PortBench's rule."""
        if self.over or self._today.pending is None:
            raise ValueError(f"episode {self.name} waits for no reply")
        self.follow(reply)

    def follow(self, reply: Reply) -> None:
        """Hand in a reply to the stage that is next, given to somebody else's call: no prompt of its own is written."""
        self._require_more()
        today, known = self._today, self._today.known
        today.pending = None
        if today.stage == "S1":
            views, today.states["S1"] = parse_views(reply, known.tickers)
            today.views, today.stage = known.spread(views, today.views.size), "S2"
            return
        if today.stage == "S2":
            today.said, today.states["S2"] = parse_signals(reply, known.tickers)
            today.stage = "S3"
            return
        weights, today.states["S3"] = parse_weights(reply, known.tickers)
        target = None if weights is None else known.spread(weights, today.views.size)
        rules, part, truths = self.rules, known.part, self._truths()
        convention = rules.convention
        done = trade(self._position, target, cost_bps=rules.cost_bps)
        answers = Answers(today.views, self._signals(), target, today.states)
        # S3 to S5 are of what is held, which a reply that cannot be read leaves as it was
        executed = self._position.weights if target is None else target
        risk = self.world.risk(known.day, executed, self.profile, drift_limit=rules.drift_limit, convention=convention)
        said, true = ([signals[at] for at in part.tolist()] for signals in (answers.signals, truths.signals))
        own, best, by = executed[part], truths.weights[part], known.scored_by
        scores: dict[Stage, float] = {
            "S1": s1_score(answers.views[part], truths.views[part]),
            "S2": s2_score(said, true),
            "S3": s3_score(own, best, by, known.classes, alpha=rules.alpha, convention=convention),
            "S4": s4_score(done.turnover, truths.turnover),
            "S5": s5_score(risk.rebalance, truths.rebalance, risk.var, truths.var, risk.drawdown, truths.drawdown),
        }
        risky, safe = exposures(executed, cast("tuple[ClassName, ...]", self.world.classes), convention=convention)
        alignment = profile_alignment(risky, safe, risk.var, self.profile)
        whole = ceps(scores, penalty=rules.penalty)
        held = (risk.var, risk.drawdown, risk.drift, risk.rebalance)
        self._dates.append(
            DateResult(known.day, answers, truths, executed, done.turnover, *held, scores, whole, alignment)
        )
        self._position, nav = self.world.hold(known.day, done.after, convention=convention)
        self._nav.append(nav)
        if not self.over:
            self._open()

    def true_reply(self) -> str:
        """What somebody who knows what happened next would reply to the pending call: the ceiling of every score.

        S3's is the oracle's portfolio under the signals that were given in S2.
        """
        self._require_more()
        truths, stage = self._truths(), self._today.stage
        values: Sequence[float | str] = truths.signals
        if stage != "S2":
            values = (truths.views if stage == "S1" else truths.weights).tolist()
        return reply_text(stage, {self.world.tickers[at]: values[at] for at in self._today.known.part.tolist()})

    def result(self) -> EpisodeResult:
        """Everything that came of the episode."""
        if not self.over:
            there = f"{len(self._dates)} of {len(self.world.decisions)} decisions"
            raise ValueError(f"episode {self.name} is not over: {there}")
        who = self.agent.name, self.profile.name, self.world.window
        return EpisodeResult(*who, tuple(self._dates), self.world.days, np.concatenate(self._nav))

    def _require_more(self) -> None:
        if self.over:
            raise ValueError(f"episode {self.name} is over")

    def _open(self) -> None:
        known = self.world.known(self.world.decisions[len(self._dates)])
        self._today = _Today(known, np.zeros(len(self.world.tickers)))

    def _signals(self) -> tuple[Signal, ...]:
        """The signals of the universe: hold for what does not take part, and for all where none were given."""
        every: list[Signal] = ["hold"] * len(self.world.tickers)
        for at, one in zip(self._today.known.part.tolist(), self._today.said or (), strict=False):
            every[at] = one
        return tuple(every)

    def _truths(self) -> Truths:
        """The truths of this date under the signals that were given; without any the oracle buys what truly is to be.

        With nothing to buy it would hold all alike, and an answer that cannot be read would score well.
        """

        def under(signals: Sequence[Signal]) -> Truths:
            return self.world.truths(
                self._today.known.day, buys=np.array([one == "buy" for one in signals]), held=self._position.weights,
                profile=self.profile, drift_limit=self.rules.drift_limit, convention=self.rules.convention,
            )  # fmt: skip

        return under(under(self._signals()).signals if self._today.said is None else self._signals())


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
    windows: Sequence[MarketWindow], *, names: Sequence[str] = tuple(BASELINES), cash: bool = False,
    cost_bps: float = COST_BPS, convention: Convention = "paper",
) -> tuple[BaselineResult, ...]:  # fmt: skip
    """Every baseline through every window."""
    for name in names:
        if name not in BASELINES:
            raise UnknownNameError("baseline", name, tuple(BASELINES))
    found = []
    for window in windows:
        for name in names:
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
            traded = np.stack(held), np.array(turnover), tuple(statuses)
            found.append(
                BaselineResult(name, window.window, window.decisions, *traded, window.days, np.concatenate(path))
            )
    return tuple(found)


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
