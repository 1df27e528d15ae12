"""One model under one profile through one window, call by call: the machine that asks, takes replies and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from typing import cast

import numpy as np

from assaymark.benchmark.market import KEPT, BenchMarket, Known
from assaymark.benchmark.oracle import (
    COST_BPS,
    DRIFT_LIMIT,
    Position,
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
from assaymark.benchmark.snapshot import MarketSnapshot, PortfolioState
from assaymark.benchmark.stage_prompts import market_text, signals_call, views_call, weights_call
from assaymark.benchmark.stages import Answers, Convention, DateResult, EpisodeResult, Signal, Stage, StageState, Truths
from assaymark.benchmark.windows import HORIZONS, Pace, Window
from assaymark.engine.calls import CallSpec, Reply, Text
from assaymark.engine.providers.http_agent import is_outside
from assaymark.errors import InputError
from assaymark.portfolio.qp import Bools, Floats
from assaymark.protocol import AgentSpec


class MarketWindow:
    """A market through one window at one pace, shared by all episodes in it."""

    def __init__(self, market: BenchMarket, spec: Window, pace: Pace) -> None:
        self.market, self.spec, self.pace = market, spec, pace
        self.rows = market.decisions(spec, pace)
        self.horizon = HORIZONS[pace]
        self._end = market.end_of(spec)
        self.days: np.ndarray = market.days[self.rows[0] : self._end + 1]
        # the same for every model, and under `reference` slow to solve
        self._scene = lru_cache(maxsize=KEPT)(partial(scene_on, market))
        self._text = lru_cache(maxsize=KEPT)(lambda day: market_text(self.snapshot(day, self.start())))
        self._numbers = lru_cache(maxsize=KEPT)(self._market_numbers)
        self._place = {day: at for at, day in enumerate(self.decisions)}

    @property
    def window(self) -> str:
        """The name of the window."""
        return self.spec.name

    @property
    def tickers(self) -> tuple[str, ...]:
        """The instruments, in the order of every array."""
        return self.market.universe.ids

    @property
    def classes(self) -> tuple[str, ...]:
        """Their classes."""
        return self.market.universe.classes

    @property
    def decisions(self) -> tuple[date, ...]:
        """The decision dates."""
        return tuple(self.market.days[self.rows].tolist())

    def start(self) -> Position:
        """The portfolio before the first trade: equal weights over what takes part on the first date."""
        return equal_start(self.known(self.decisions[0]).part, self.market.universe.size)

    def known(self, day: date) -> Known:
        """What could be known at the close of a decision date; ``part`` is what takes part."""
        return self.market.known(self._row(day))

    def snapshot(self, day: date, position: Position) -> MarketSnapshot:
        """What a model is shown at the close of a decision date."""
        state = PortfolioState(position.nav, position.weights, position.drawdown)
        return self.market.snapshot(self._row(day), state)

    def market_text(self, day: date) -> Text:
        """The market of a decision date as prompts show it, written once for all models, profiles and stages."""
        return self._text(day)

    def market_numbers(self, day: date) -> Text:
        """The market of a decision date as numbers, written once for all agents of one's own, profiles and stages."""
        return self._numbers(day)

    def _market_numbers(self, day: date) -> Text:
        return market_numbers(self.known(day), self.market.view(self._row(day)).instruments)

    def truths(
        self,
        day: date,
        *,
        buys: Bools,
        held: Floats,
        profile: Profile,
        drift_limit: float = DRIFT_LIMIT,
        convention: Convention = "paper",
    ) -> Truths:
        """What the answers of a decision date are scored against (`truths_of`)."""
        scene = self._scene(self._row(day), self.horizon, convention=convention)
        return truths_of(scene, buys=buys, held=held, profile=profile, drift_limit=drift_limit)

    def risk(
        self,
        day: date,
        weights: Floats,
        profile: Profile,
        *,
        drift_limit: float = DRIFT_LIMIT,
        convention: Convention = "paper",
    ) -> Risk:
        """S5 of executed weights on a decision date (`risk_of`); what does not take part counts as money."""
        known = self.known(day)
        return risk_of(weights[known.part], known.returns, profile, drift_limit=drift_limit, convention=convention)

    def hold(self, day: date, position: Position, *, convention: Convention = "paper") -> tuple[Position, Floats]:
        """Drift from a decision date, after its trade, to the next one or to the end of the window."""
        at = self._at(day)
        last = at + 1 == self.rows.size
        stop = self._end if last else int(self.rows[at + 1])
        returns = self.market.returns[int(self.rows[at]) + 1 : stop + 1]
        return hold(position, returns, to_decision=not last, convention=convention)

    def _row(self, day: date) -> int:
        return int(self.rows[self._at(day)])

    def _at(self, day: date) -> int:
        if day not in self._place:
            raise InputError(f"window {self.window}", [f"{day} is no decision date of it"])
        return self._place[day]


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
    """Where an episode stands on one decision date; arrays are of the whole universe."""

    known: Known
    views: Floats
    said: tuple[Signal, ...] | None = None
    stage: Stage = "S1"
    pending: CallSpec | None = None
    states: dict[Stage, StageState] = field(default_factory=dict)


class EpisodeState:
    """One episode: (model, profile, window)."""

    def __init__(
        self, agent: AgentSpec, profile: Profile, world: MarketWindow, rules: EpisodeRules | None = None
    ) -> None:
        self.agent, self.profile, self.world = agent, profile, world
        self.rules = rules or EpisodeRules()
        self._days = world.decisions
        self._position = world.start()
        self._nav: list[Floats] = [np.ones(1)]
        self._dates: list[DateResult] = []
        self._asked: list[Asked] = []
        self._today = self._open(self._days[0])

    @property
    def name(self) -> str:
        """``agent/profile/window``."""
        return f"{self.agent.name}/{self.profile.name}/{self.world.window}"

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Every call that was given out so far, the pending one last."""
        return tuple(self._asked)

    @property
    def calls(self) -> int:
        """How many calls the whole episode makes: three a decision."""
        return 3 * len(self._days)

    @property
    def over(self) -> bool:
        """Whether every decision is made."""
        return len(self._dates) == len(self._days)

    def next_call(self) -> CallSpec | None:
        """The call that the episode waits for; None when it is over."""
        if self.over:
            return None
        today = self._today
        if today.pending is None:
            today.pending = self._call()
            self._asked.append(Asked(today.known.day, today.stage, today.pending.key))
        return today.pending

    def take(self, reply: Reply) -> None:
        """Hand in the reply to the pending call, whatever it is: what cannot be read is scored by PortBench's rule."""
        if self.over or self._today.pending is None:
            raise ValueError(f"episode {self.name} waits for no reply")
        self.follow(reply)

    def follow(self, reply: Reply) -> None:
        """Hand in a reply to the stage that is next, given to somebody else's call: no prompt of its own is written."""
        if self.over:
            raise ValueError(f"episode {self.name} is over")
        today, tickers = self._today, self._today.known.tickers
        today.pending = None
        if today.stage == "S1":
            views, today.states["S1"] = parse_views(reply, tickers)
            today.views, today.stage = self._spread(views), "S2"
        elif today.stage == "S2":
            today.said, today.states["S2"] = parse_signals(reply, tickers)
            today.stage = "S3"
        else:
            weights, today.states["S3"] = parse_weights(reply, tickers)
            self._settle(None if weights is None else self._spread(weights))

    def true_reply(self) -> str:
        """What somebody who knows what happened next would reply to the pending call: the ceiling of every score."""
        if self.over:
            raise ValueError(f"episode {self.name} is over")
        truths, today = self._truths(), self._today
        values: Sequence[float | str]
        if today.stage == "S2":
            values = truths.signals
        else:
            values = (truths.views if today.stage == "S1" else truths.weights).tolist()
        return reply_text(today.stage, {self.world.tickers[at]: values[at] for at in today.known.part.tolist()})

    def result(self) -> EpisodeResult:
        """Everything that came of the episode."""
        if not self.over:
            raise ValueError(f"episode {self.name} is not over: {len(self._dates)} of {len(self._days)} decisions")
        return EpisodeResult(
            model=self.agent.name,
            profile=self.profile.name,
            window=self.world.window,
            dates=tuple(self._dates),
            days=self.world.days,
            nav=np.concatenate(self._nav),
        )

    def _open(self, day: date) -> _Today:
        return _Today(self.world.known(day), np.zeros(len(self.world.tickers)))

    def _call(self) -> CallSpec:
        today, rules = self._today, self.rules
        shown = self.world.snapshot(today.known.day, self._position)
        numbers = self.world.market_numbers(today.known.day) if is_outside(self.agent.model) else None
        if today.stage == "S2":
            return signals_call(self.agent, shown, today.views, convention=rules.convention, numbers=numbers)
        market = self.world.market_text(today.known.day)
        if today.stage == "S1":
            horizon, convention = self.world.horizon, rules.convention
            return views_call(self.agent, market, shown, horizon=horizon, convention=convention, numbers=numbers)
        return weights_call(
            self.agent,
            market,
            shown,
            self.world.tickers,
            self.profile,
            today.views,
            self._signals(),
            horizon=self.world.horizon,
            cost_bps=rules.cost_bps,
            numbers=numbers,
        )

    def _spread(self, values: Floats) -> Floats:
        """Values of those that take part as values of the universe, 0 for the others."""
        return self._today.known.spread(values, len(self.world.tickers))

    def _signals(self) -> tuple[Signal, ...]:
        """The signals of the universe: hold for what does not take part, and for all where none were given."""
        every: list[Signal] = ["hold"] * len(self.world.tickers)
        for at, one in zip(self._today.known.part.tolist(), self._today.said or (), strict=False):
            every[at] = one
        return tuple(every)

    def _truths(self) -> Truths:
        if self._today.said is None:
            buys = self._truths_with(np.zeros(len(self.world.tickers), dtype=bool)).signals
        else:
            buys = self._signals()
        return self._truths_with(np.array([one == "buy" for one in buys]))

    def _truths_with(self, buys: Bools) -> Truths:
        return self.world.truths(
            self._today.known.day,
            buys=buys,
            held=self._position.weights,
            profile=self.profile,
            drift_limit=self.rules.drift_limit,
            convention=self.rules.convention,
        )

    def _settle(self, target: Floats | None) -> None:
        """Trade, score the date, and drift to the next one or to the end of the window."""
        today, before = self._today, self._position
        done = trade(before, target, cost_bps=self.rules.cost_bps)
        answers = Answers(today.views, self._signals(), target, today.states)
        self._dates.append(self._scored(answers, before.weights if target is None else target, done.turnover))
        self._position, nav = self._drift(done.after)
        self._nav.append(nav)
        if not self.over:
            self._today = self._open(self._days[len(self._dates)])

    def _drift(self, after: Position) -> tuple[Position, Floats]:
        return self.world.hold(self._today.known.day, after, convention=self.rules.convention)

    def _scored(self, answers: Answers, executed: Floats, turnover: float) -> DateResult:
        known, rules, truths = self._today.known, self.rules, self._truths()
        risk = self._risk(executed)
        scores = _stage_scores(answers, truths, executed, turnover, risk, known, rules)
        classes = cast("tuple[ClassName, ...]", self.world.classes)
        risky, safe = exposures(executed, classes, convention=rules.convention)
        return DateResult(
            day=known.day,
            answers=answers,
            truths=truths,
            executed=executed,
            turnover=turnover,
            var=risk.var,
            drawdown=risk.drawdown,
            drift=risk.drift,
            rebalance=risk.rebalance,
            scores=scores,
            ceps=ceps(scores, penalty=rules.penalty),
            pas=profile_alignment(risky, safe, risk.var, self.profile),
        )

    def _risk(self, executed: Floats) -> Risk:
        limit, convention = self.rules.drift_limit, self.rules.convention
        return self.world.risk(self._today.known.day, executed, self.profile, drift_limit=limit, convention=convention)


def _stage_scores(
    answers: Answers, truths: Truths, executed: Floats, turnover: float, risk: Risk, known: Known, rules: EpisodeRules
) -> dict[Stage, float]:
    """S1 to S5 of one date; S3 to S5 are of what is held, which a reply that cannot be read leaves as it was."""
    part = known.part
    said, true = ([signals[at] for at in part.tolist()] for signals in (answers.signals, truths.signals))
    return {
        "S1": s1_score(answers.views[part], truths.views[part]),
        "S2": s2_score(said, true),
        "S3": s3_score(
            executed[part],
            truths.weights[part],
            known.scored_by,
            known.classes,
            alpha=rules.alpha,
            convention=rules.convention,
        ),
        "S4": s4_score(turnover, truths.turnover),
        "S5": s5_score(risk.rebalance, truths.rebalance, risk.var, truths.var, risk.drawdown, truths.drawdown),
    }
