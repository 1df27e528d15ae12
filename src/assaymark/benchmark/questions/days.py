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
from assaymark.portfolio.qp import Floats

NEWS_DAYS: Final = 30
"""How far back news and filings go."""

LONGEST_ITEM: Final = 1000
"""Characters of one item of news that are shown."""

_MOST_FILINGS = 3
_YEAR = 252


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """The market at the close of one day."""

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
        """The label of a class on this day. The window is long enough for it to have one."""
        return cast(Regime, str(regimes(self.index[kind])[-1]))

    def context(self, ids: Sequence[str], *, regime: str, most: int) -> Context:
        """What surrounds a question about these instruments; without ``ids``, about the whole market."""
        about = set(ids)
        news = [line for subjects, line in self.news if not about or not subjects or not about.isdisjoint(subjects)]
        filings = tuple(line for name in ids if name in self.companies for line in self._filings(name))
        return Context(regime, self.macro, tuple(news[-most:]), filings)

    def _filings(self, name: str) -> list[str]:
        found = sorted(self.view.fundamentals(name), key=lambda one: one.filed_at)[-_MOST_FILINGS:]
        return [
            f"[filing, {_ago(self.day, one.filed_at.date())}] {name}: "
            f"{_line(one.field.replace('_', ' '))} {one.value:g} {_line(one.unit)}"
            for one in found
        ]


def _ago(today: date, day: date) -> str:
    days = (today - day).days
    return "today" if days == 0 else f"{days} day{'s' * (days > 1)} before"


def _told(today: date, one: News) -> tuple[frozenset[str], str]:
    line = f"[{_line(one.source)}, {_ago(today, one.published_at.date())}] {_line(one.text)}"
    return frozenset(one.instruments), line


def _line(text: str) -> str:
    """A text from outside as part of one line: it cannot pass for a line of the prompt, nor fill it."""
    found = " ".join(text.split())
    return found if len(found) <= LONGEST_ITEM else found[: LONGEST_ITEM - 3] + "..."


def day_of(history: History, row: int, *, window: int, instruments: frozenset[str] | None) -> Day:
    """The view of one row of the store, at the close of its day."""
    view, today = day_end(history, row), history.days[row].astype(object)
    prices = view.prices(window + 1)
    listings = view.instruments
    held = {one.id for one in listings if one.trades_on(today) and (instruments is None or one.id in instruments)}
    returns = np.round(simple_returns(prices.values), 6)
    usable = np.isfinite(prices.values).all(axis=0) & np.array([name in held for name in prices.ids], dtype=bool)
    usable &= np.where(usable, np.ptp(np.nan_to_num(returns), axis=0) > 0, False)
    index = class_index(prices.values[1:], listings)
    return Day(
        day=today, closes=prices.values, returns=returns, ids=prices.ids,
        members={name: kept for name, at in class_members(listings).items() if (kept := at[usable[at]]).size},
        index=index,
        macro=tuple(f"{one.id}: {one.value:.2f} {one.unit}" for one in view.all_macro() if one.value is not None),
        companies=frozenset(one.id for one in listings if one.asset_class in ("EQ", "RE")), view=view,
        news=tuple(_told(today, one) for one in view.news(NEWS_DAYS)),
    )  # fmt: skip


def day_end(history: History, row: int) -> AsOf:
    """The market at the close of the day of a row."""
    return history.as_of(datetime.fromtimestamp(int(history.closes_at[row]), UTC))


def volatility(returns: Floats) -> float:
    """Annual volatility of daily returns."""
    return float(returns.std(ddof=1) * np.sqrt(_YEAR))


def class_name(kind: AssetClass) -> str:
    """The name that questions use for a class."""
    return CLASS_NAMES[kind]
