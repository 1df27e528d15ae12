"""One decision day as questions see it: what was known at its close, cut once for all questions of the day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final, cast

import numpy as np

from assaymark.benchmark.questions.payloads import Context, Regime
from assaymark.market import (
    CLASS_NAMES,
    AsOf,
    AssetClass,
    History,
    News,
    class_index,
    class_members,
    regimes,
    simple_returns,
)
from assaymark.portfolio.solution import Floats

NEWS_DAYS: Final = 30
"""How far back news and filings go."""

_MOST_FILINGS = 3
_YEAR = 252


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """The market at the close of one day.

    Attributes
    ----------
    day : date
    closes : float array of shape (window + 1, n_instruments)
    returns : float array of shape (window, n_instruments)
        Rounded to six decimals, as prompts print them.
    ids : tuple of n_instruments str
    members : mapping of class to int array
        Columns that can be asked about, of the classes that have any: held today, with every return of the window, and
        moving.
    index : mapping of class to float array of shape (window,)
        Equal-weight indices.
    macro : tuple of str
    companies : frozenset of str
        The instruments that file: equities and real estate.
    """

    day: date
    closes: Floats
    returns: Floats
    ids: tuple[str, ...]
    members: Mapping[AssetClass, np.ndarray]
    index: Mapping[AssetClass, Floats]
    macro: tuple[str, ...]
    companies: frozenset[str]
    view: AsOf
    news: tuple[News, ...]

    def regime(self, kind: AssetClass) -> Regime:
        """The label of a class on this day. The window is long enough for it to have one."""
        return cast(Regime, str(regimes(self.index[kind])[-1]))

    def context(self, ids: Sequence[str], *, regime: str, most: int) -> Context:
        """What surrounds a question about these instruments; without ``ids``, about the whole market."""
        about = set(ids)
        chosen = [one for one in self.news if not about or not one.instruments or about.intersection(one.instruments)]
        news = tuple(f"[{one.source}, {self._ago(one.published_at.date())}] {one.text}" for one in chosen[-most:])
        filings = tuple(line for name in ids if name in self.companies for line in self._filings(name))
        return Context(regime, self.macro, news, filings)

    def _filings(self, name: str) -> list[str]:
        """The newest values that were filed about an instrument."""
        found = sorted(self.view.fundamentals(name), key=lambda one: one.filed_at)[-_MOST_FILINGS:]
        return [
            f"[filing, {self._ago(one.filed_at.date())}] {name}: {one.field.replace('_', ' ')} {one.value:g} {one.unit}"
            for one in found
        ]

    def _ago(self, day: date) -> str:
        days = (self.day - day).days
        return "today" if days == 0 else f"{days} day{'s' * (days > 1)} before"


def day_of(history: History, row: int, *, window: int, instruments: frozenset[str] | None) -> Day:
    """The view of one row of the store, at the close of its day."""
    view = day_end(history, row)
    prices = view.prices(window + 1)
    held = set(view.held()) if instruments is None else instruments.intersection(view.held())
    returns = np.round(simple_returns(prices.values), 6)
    usable = np.isfinite(prices.values).all(axis=0) & np.array([name in held for name in prices.ids], dtype=bool)
    usable &= np.where(usable, np.ptp(np.nan_to_num(returns), axis=0) > 0, False)
    index = class_index(prices.values[1:], view.instruments)
    return Day(
        day=history.days[row].astype(object),
        closes=prices.values,
        returns=returns,
        ids=prices.ids,
        members={name: kept for name, at in class_members(view.instruments).items() if (kept := at[usable[at]]).size},
        index=index,
        macro=tuple(f"{one.id}: {one.value:.2f} {one.unit}" for one in view.all_macro() if one.value is not None),
        companies=frozenset(one.id for one in view.instruments if one.asset_class in ("EQ", "RE")),
        view=view,
        news=view.news(NEWS_DAYS),
    )


def day_end(history: History, row: int) -> AsOf:
    """The market at the close of the day of a row."""
    return history.as_of(datetime.fromtimestamp(int(history.closes_at[row]), UTC))


def volatility(returns: Floats) -> float:
    """Annual volatility of daily returns."""
    return float(returns.std(ddof=1) * np.sqrt(_YEAR))


def class_name(kind: AssetClass) -> str:
    """The name that questions use for a class."""
    return CLASS_NAMES[kind]
