"""One window of a market with its decisions: what every episode in it is shown, scored against, and earns."""

from __future__ import annotations

from datetime import date
from functools import lru_cache, partial

import numpy as np

from assaymark.benchmark.outside import market_numbers
from assaymark.benchmark.panel import KEPT, BenchMarket, Known
from assaymark.benchmark.profiles import Profile
from assaymark.benchmark.sandbox import Position, equal_start, hold
from assaymark.benchmark.snapshot import MarketSnapshot, PortfolioState
from assaymark.benchmark.stage_prompts import market_text
from assaymark.benchmark.stages import Convention, Truths
from assaymark.benchmark.truths import DRIFT_LIMIT, Risk, risk_of, scene_on, truths_of
from assaymark.benchmark.windows import HORIZONS, Pace, Window
from assaymark.engine.calls import Text
from assaymark.errors import InputError
from assaymark.portfolio.solution import Bools, Floats


class MarketWindow:
    """A market through one window at one pace, shared by all episodes in it.

    Decisions are named by their day. Weights are of the whole universe, shape (n_assets,).

    Parameters
    ----------
    market : BenchMarket
    spec : Window
    pace : {"weekly", "monthly", "quarterly"}

    Attributes
    ----------
    rows : int array of shape (n_decisions,)
        Of the decisions in the market's arrays.
    horizon : int
        Trading days after a decision that its truths look at.
    days : datetime64[D] array of shape (n_days,)
        From the first decision to the end of the window: those of a NAV path.

    Raises
    ------
    InputError
        The market does not reach far enough, or a class is missing on a date; see `BenchMarket.decisions`.

    Examples
    --------
    >>> from assaymark.benchmark.universe import choose_universe
    >>> from assaymark.benchmark.windows import windows_of
    >>> from assaymark.market import synthetic_history
    >>> history = synthetic_history(0)
    >>> year = MarketWindow(BenchMarket(history, choose_universe(history)), windows_of(history)[0], "monthly")
    >>> len(year.decisions), len(year.snapshot(year.decisions[2], year.start()).assets)
    (12, 81)
    """

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
        """Drift from a decision date, after its trade, to the next one or to the end of the window.

        The NAV path has a value for each day after ``day``; with the 1 of the first date in front, the paths of all
        decisions make the NAV over ``days``.
        """
        at = self._at(day)
        last = at + 1 == self.rows.size
        stop = self._end if last else int(self.rows[at + 1])
        returns = self.market.returns[int(self.rows[at]) + 1 : stop + 1]
        return hold(position, returns, to_decision=not last, convention=convention)

    def _row(self, day: date) -> int:
        """The row of a decision date."""
        return int(self.rows[self._at(day)])

    def _at(self, day: date) -> int:
        """Which decision is on a day."""
        if day not in self._place:
            raise InputError(f"window {self.window}", [f"{day} is no decision date of it"])
        return self._place[day]
