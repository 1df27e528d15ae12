"""Drawing a question of each template from a day: payloads with the numbers of the prompt, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Final, cast

import numpy as np

import assaymark.market as market
from assaymark.benchmark.questions import payloads as kinds
from assaymark.benchmark.questions.payloads import Answer, Condition, Context, Payload, Regime, Template
from assaymark.benchmark.questions.render import prompt_text
from assaymark.errors import NotMeasurableError
from assaymark.market import CLASSES, AsOf, AssetClass, History
from assaymark.portfolio import max_sharpe, value_at_risk
from assaymark.portfolio.optimisers import Floats
from assaymark.records import JSON, to_json


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a set (PortBench, section 2.2 and Appendix D)."""

    id: str
    template: Template
    split: kinds.Split
    regime: Regime
    day: date
    payload: Payload
    context: Context
    answer: Answer

    @property
    def level(self) -> int:
        """Difficulty, 1 to 4."""
        return kinds.LEVELS[self.template]

    @property
    def instruments(self) -> tuple[str, ...]:
        """The instruments of the question; none in T7."""
        instrument = getattr(self.payload, "instrument", None)
        return (instrument,) if instrument is not None else tuple(getattr(self.payload, "instruments", ()))

    def given(self, condition: Condition = "full") -> dict[str, JSON]:
        """Return the numbers and names in the prompt, by name; empty for a question with a published text."""
        if isinstance(self.payload, kinds.Printed):
            return {}
        hidden = ("covariance", "correlation") if condition == "restricted" else ()
        return {name: value for name, value in to_json(self.payload).items() if name not in hidden}

    def prompt(self, condition: Condition = "full") -> str:
        """Return the prompt. The two conditions differ for T4 and T5 only."""
        return prompt_text(self.day, self.payload, self.context, condition)


FLAT = 0.01
"""A forward return of at most this size is flat (T1)."""

_CLASSES = ("equity", "bond", "commodity", "real_estate", "crypto", "cash")
_TODO: Mapping[Regime, str] = {
    "bull": "increase decrease hold increase increase decrease",
    "bear": "decrease increase hold decrease decrease increase",
    "sideways": "hold hold hold hold decrease increase",
    "crisis": "decrease increase increase decrease decrease increase",
}
CHANGES: Mapping[Regime, Mapping[str, kinds.Change]] = MappingProxyType(
    {
        regime: MappingProxyType(dict(zip(_CLASSES, cast("list[kinds.Change]", words.split()), strict=True)))
        for regime, words in _TODO.items()
    }
)
"""The required change of each class in each regime: the table of D.1."""


def answer_of(payload: Payload) -> Answer:
    """Compute the answer of T2 to T6 from the numbers in the prompt. Raises `NotMeasurableError` if not unique."""
    match payload:
        case kinds.TailRisk():
            return kinds.Number(-value_at_risk(payload.returns, payload.level))
        case kinds.PositionSize():
            risk = abs(value_at_risk(payload.returns, level=0.99))
            if risk == 0:
                raise NotMeasurableError("nothing is at risk: a value at risk of 0 sizes no position")
            return kinds.Number(min(1.0, payload.drawdown / risk))
        case kinds.PairAllocation():
            first = unconstrained(payload)
            if binds(payload):
                mean, other = payload.means
                if payload.floor > max(mean, other):
                    raise NotMeasurableError(
                        f"no weights earn {payload.floor:g}: the larger mean is {max(mean, other):g}"
                    )
                first = (payload.floor - other) / (mean - other)
            return kinds.Weights(dict(zip(payload.instruments, (first, 1.0 - first), strict=True)))
        case kinds.SharpeAllocation():
            solution = max_sharpe(payload.means, payload.covariance, rf=payload.rf)
            if solution.status != "optimal":
                raise NotMeasurableError(f"the largest Sharpe ratio has no single portfolio: {solution.status}")
            return kinds.Weights(dict(zip(payload.instruments, solution.weights.tolist(), strict=True)))
        case kinds.Rebalancing():
            off = [now - aim for now, aim in zip(payload.current, payload.target, strict=True)]
            sizes = sorted((abs(drift) for drift in off), reverse=True)
            if sizes[0] - sizes[1] < 1e-9:
                raise NotMeasurableError("two weights are equally far from their targets")
            if sizes[0] <= payload.threshold:
                return kinds.Trade(False)
            at = max(range(len(off)), key=lambda place: abs(off[place]))
            return kinds.Trade(True, "sell" if off[at] > 0 else "buy", payload.instruments[at], round(abs(off[at]), 12))
        case _:
            raise NotMeasurableError(f"{type(payload).__name__} has no answer that follows from its prompt")


def unconstrained(payload: kinds.PairAllocation) -> float:
    """Compute the minimum-variance weight of the first instrument in [0, 1], without the required return."""
    (first, other), both = payload.volatilities, payload.covariance
    spread = first**2 + other**2 - 2.0 * both
    if not spread > 0:
        raise NotMeasurableError("two instruments without a difference in return have no weights of least variance")
    # The reference clips at 0 only; a weight above 1 would be a short position in the other instrument.
    return min(1.0, max(0.0, (other**2 - both) / spread))


def binds(payload: kinds.PairAllocation) -> bool:
    """True if the required return is a binding constraint in T4."""
    first = unconstrained(payload)
    return first * payload.means[0] + (1.0 - first) * payload.means[1] < payload.floor


YEAR: Final = 252
"""Trading days per year, for annualisation."""

RISK_FREE: Final = 0.04
THRESHOLD: Final = 0.05
"""Largest deviation of a weight without rebalancing (T6)."""

CONFIDENCES: Final = (0.90, 0.95, 0.99)
CAPPED: Final = 0.15
"""Share of T3 whose allowed loss is so large that the answer is the cap of 1."""

_LEAST_RISK = 5e-4  # a smaller tail is rounding, not risk
_UNITS = 10_000  # weights of T6 are multiples of 1 / this, so that they sum to 1 as printed


class Unsuitable(Exception):
    """The drawn instruments give no question with a unique answer; others are drawn."""


def draw_column(rng: np.random.Generator, columns: np.ndarray) -> int:
    """Draw one of these columns."""
    return int(columns[rng.integers(columns.size)])  # a fifth of the time of rng.choice


def draw_class(rng: np.random.Generator, day: DayView) -> np.ndarray:
    """Draw a class, each with the same probability, and return its columns."""
    columns = list(day.members.values())
    return columns[int(rng.integers(len(columns)))]


def draw_columns(rng: np.random.Generator, day: DayView, count: int) -> list[int]:
    """Draw one column from each of ``count`` different classes."""
    columns = list(day.members.values())
    if len(columns) < count:
        raise Unsuitable(f"{count} classes are needed")
    chosen = rng.permutation(len(columns))[:count]
    return [draw_column(rng, columns[int(place)]) for place in chosen]


def draw(rng: np.random.Generator, name: Template, day: DayView, window: int, lookback: int, odd: bool) -> Payload:
    """Draw a payload of T2 to T6; with ``odd``, the return of a T4 binds and a T6 needs a trade."""
    if name == "T4":
        return draw_pair(rng, day, window, odd)
    if name == "T6":
        return draw_rebalancing(rng, day, odd, lookback)
    if name == "T5":  # three to six instruments of different classes
        columns = draw_columns(rng, day, int(rng.integers(3, 7)))
        sample = day.returns[-window:, columns]
        means = tuple(round(float(mean) * YEAR, 6) for mean in sample.mean(axis=0))
        if max(means) <= RISK_FREE + 0.001:
            raise Unsuitable("none earns more than the riskless rate")
        covariance = tuple(tuple(round(cell, 10) for cell in row) for row in _covariance(sample))
        return kinds.SharpeAllocation(tuple(day.ids[column] for column in columns), means, covariance, RISK_FREE)
    column = draw_column(rng, draw_class(rng, day))
    level = CONFIDENCES[int(rng.integers(len(CONFIDENCES)))] if name == "T2" else 0.99
    returns = day.returns[-window:, column]
    # an approximate quantile of the returns is enough to select questions
    at = int((returns.size - 1) * (1.0 - level if name == "T2" else 0.01))
    tail, share = -float(np.partition(returns, at)[at]), 1.0
    if name == "T3":  # the allowed loss as a share of the tail, so that most answers are below the cap
        share = float(rng.uniform(1.1, 2.0) if rng.random() < CAPPED else rng.uniform(0.05, 0.95))
    if tail < _LEAST_RISK:
        raise Unsuitable("its tail is no loss")
    if name == "T2":
        return kinds.TailRisk(day.ids[column], level, tuple(returns.tolist()))
    return kinds.PositionSize(day.ids[column], max(round(share * tail, 5), 1e-5), tuple(returns.tolist()))


def draw_pair(rng: np.random.Generator, day: DayView, window: int, binding: bool) -> kinds.PairAllocation:
    """Draw a T4, with a required return above (``binding``) or below that of the minimum-variance weights."""
    columns = draw_columns(rng, day, 2)
    returns = day.returns[-window:, columns]
    spreads = [round(volatility(series), 6) for series in returns.T]
    first, second = (round(float(mean) * YEAR, 6) for mean in returns.mean(axis=0))
    both = round(_covariance(returns)[0][1], 10)
    free = kinds.PairAllocation(
        (day.ids[columns[0]], day.ids[columns[1]]), (spreads[0], spreads[1]), (first, second), both,
        round(both / (spreads[0] * spreads[1]), 3) if min(spreads) > 0 else 0.0, 0.0,
    )  # fmt: skip
    if min(spreads) < 1e-4 or abs(free.correlation) > 0.999 or abs(first - second) < 0.005:
        raise Unsuitable("the two are alike")
    weight = unconstrained(free)
    earned = weight * first + (1.0 - weight) * second
    best = max(first, second)
    low, high = (earned, best) if binding else (earned - 0.5 * abs(first - second), earned)
    if high - low < 0.002:
        raise Unsuitable("no return lies between")
    floor = round(float(low + (high - low) * rng.uniform(0.1, 0.9)), 4)
    if not (earned < floor <= best if binding else floor < earned):
        raise Unsuitable("rounding moved the required return")
    return kinds.PairAllocation(free.instruments, free.volatilities, free.means, both, free.correlation, floor)


def draw_rebalancing(rng: np.random.Generator, day: DayView, due: bool, lookback: int) -> kinds.Rebalancing:
    """Draw a T6: targets drifted by the returns of the lookback, scaled to the wanted largest deviation."""
    columns = draw_columns(rng, day, 4)
    shares = rng.dirichlet(np.full(len(columns), 5.0))
    target = np.floor(shares * _UNITS).astype(int)
    target[int(shares.argmax())] += _UNITS - target.sum()
    grown = target * (day.closes[-1, columns] / day.closes[-1 - lookback, columns])
    drift = grown / grown.sum() - target / _UNITS
    size = float(rng.uniform(THRESHOLD + 0.002, 0.15) if due else rng.uniform(0.005, THRESHOLD - 0.002))
    largest = int(np.abs(drift).argmax())
    if abs(drift[largest]) < 1e-3:
        raise Unsuitable("nothing drifted")
    off = np.rint(drift * (size / abs(drift[largest])) * _UNITS).astype(int)
    off[(largest + 1) % off.size] -= off.sum()
    current = target + off
    furthest = np.sort(np.abs(off))[::-1]
    if current.min() < 100 or target.min() < 100 or furthest[0] - furthest[1] < 20:
        raise Unsuitable("a weight is too small, or two are equally far off")
    if (furthest[0] > THRESHOLD * _UNITS) != due:
        raise Unsuitable("rounding moved it over the threshold")
    ids = tuple(day.ids[column] for column in columns)
    return kinds.Rebalancing(ids, tuple((current / _UNITS).tolist()), tuple((target / _UNITS).tolist()), THRESHOLD)


def regime_call(day: DayView, asked: AssetClass, lookback: int) -> kinds.RegimeCall:
    """Make a T7 about the class ``asked``."""
    moves = []
    for kind in CLASSES:
        if kind in day.index:
            path = day.index[kind][-lookback - 1 :]
            moved = volatility(path[1:] / path[:-1] - 1.0)
            moves.append(
                kinds.ClassMove(market.CLASS_NAMES[kind], round(float(path[-1] / path[0]) - 1.0, 4), round(moved, 4))
            )
    path = day.index[asked][-lookback - 1 :]
    end = round(100.0 * float(path[-1] / path[0]), 2)
    return kinds.RegimeCall(market.CLASS_NAMES[asked], lookback, end, tuple(moves))


def _covariance(returns: Floats) -> list[list[float]]:
    """Compute annual covariances in a fixed order of summation: a matrix product may vary in the last digit."""
    centred = returns - returns.mean(axis=0)
    columns: Sequence[Floats] = centred.T
    scale = YEAR / (returns.shape[0] - 1)
    return [[float((column * other).sum()) * scale for other in columns] for column in columns]


NEWS_DAYS: Final = 30
"""Calendar days of news in a context."""

LONGEST_ITEM: Final = 1000
"""Maximum length of one news item in characters."""

_MOST_FILINGS = 3


@dataclass(frozen=True, slots=True, eq=False)
class DayView:
    """The market at the close of one day: prices, returns, indices and lines of context."""

    day: date
    closes: Floats
    returns: Floats
    ids: tuple[str, ...]
    members: Mapping[AssetClass, np.ndarray]
    index: Mapping[AssetClass, Floats]
    macro: tuple[str, ...]
    companies: frozenset[str]
    view: AsOf
    news: tuple[tuple[frozenset[str], str], ...]

    def regime(self, kind: AssetClass) -> Regime:
        """Return the regime of a class on this day; the window is long enough for it to be defined."""
        return cast(Regime, str(market.regimes(self.index[kind])[-1]))

    def context(self, ids: Sequence[str], *, regime: str, most: int) -> Context:
        """Return the context of a question about these instruments or, without ``ids``, about the whole market."""
        about, filings = set(ids), list[str]()
        news = [line for subjects, line in self.news if not about or not subjects or not about.isdisjoint(subjects)]
        for name in (name for name in ids if name in self.companies):
            filed = sorted(self.view.fundamentals(name), key=lambda fundamental: fundamental.filed_at)[-_MOST_FILINGS:]
            filings += [
                f"[filing, {_ago(self.day, filing.filed_at.date())}] {name}: "
                f"{_as_line(filing.field.replace('_', ' '))} {filing.value:g} {_as_line(filing.unit)}"
                for filing in filed
            ]
        return Context(regime, self.macro, tuple(news[-most:]), tuple(filings))


def _ago(today: date, day: date) -> str:
    days = (today - day).days
    return "today" if days == 0 else f"{days} day{'s' * (days > 1)} before"


def _as_line(text: str) -> str:
    """Return external text as a part of one line, shortened, so that it cannot imitate or flood the prompt."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_ITEM else line[: LONGEST_ITEM - 3] + "..."


def view_of(history: History, row: int, *, window: int, instruments: frozenset[str] | None) -> DayView:
    """Build the market of one row of the store, at the close of its day."""
    view, today = history.at_close(history.days[row]), history.days[row].astype(object)
    prices, listings = view.prices(window + 1), view.instruments
    traded = {one.id for one in listings if one.trades_on(today) and (instruments is None or one.id in instruments)}
    returns = np.round(market.simple_returns(prices.values), 6)
    usable = np.isfinite(prices.values).all(axis=0) & np.array([name in traded for name in prices.ids], dtype=bool)
    usable &= np.where(usable, np.ptp(np.nan_to_num(returns), axis=0) > 0, False)
    news = []
    for item in view.news(NEWS_DAYS):
        line = f"[{_as_line(item.source)}, {_ago(today, item.published_at.date())}] {_as_line(item.text)}"
        news.append((frozenset(item.instruments), line))
    return DayView(
        today, prices.values, returns, prices.ids,
        {name: columns for name, at in market.class_members(listings).items() if (columns := at[usable[at]]).size},
        market.class_index(prices.values[1:], listings),
        tuple(f"{one.id}: {one.value:.2f} {one.unit}" for one in view.all_macro() if one.value is not None),
        frozenset(listing.id for listing in listings if listing.asset_class in ("EQ", "RE")), view, tuple(news),
    )  # fmt: skip


def volatility(returns: Floats) -> float:
    """Compute the annual volatility of daily returns."""
    return float(returns.std(ddof=1) * np.sqrt(YEAR))
