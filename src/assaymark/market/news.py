"""News of the synthetic market, from templates filled with what the market table says at that time.

Every number in a text is a `NewsFact` that carries its value, the day it holds for and the way it is written, so that
each can be checked against the table it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from assaymark.market.instruments import CLASS_NAMES, AssetClass, class_members
from assaymark.market.macro import MacroSeries
from assaymark.market.synthetic import SyntheticMarket

SUMMARY_DAYS = 21
"""Days over which the class summaries look back."""

_LARGE = 4.0  # a move worth a line, in standard deviations of the 60 days before
_BACK = 60


@dataclass(frozen=True, slots=True)
class NewsFact:
    """One number of a news text: ``shown`` is how the text writes ``value``, which holds on day ``as_of``.

    ``subject`` is an instrument, a class or a macro series. Fields: ``close``, ``change`` (simple return from the
    close of the day before), ``mean_change`` and ``risers`` and ``counted`` (of a class over `SUMMARY_DAYS`),
    ``value`` and ``previous`` (of a macro series).
    """

    subject: str
    field: str
    value: float
    as_of: np.datetime64
    shown: str


@dataclass(frozen=True, slots=True)
class News:
    """One item: when it was published, whom it is about, and the facts behind its text."""

    published_at: datetime
    instruments: tuple[str, ...]
    text: str
    source: str
    facts: tuple[NewsFact, ...]


def templated_news(market: SyntheticMarket, macro: Sequence[MacroSeries], closes_at: np.ndarray) -> tuple[News, ...]:
    """Large moves, class summaries at the end of each month and monthly releases, in order of publication.

    Bars are written about fifteen minutes after the close of their day; macro values when they are published.
    """
    items = [*_moves(market, closes_at), *_summaries(market, closes_at), *_releases(macro)]
    return tuple(sorted(items, key=lambda one: (one.published_at, one.text)))


def _after_close(closes_at: np.ndarray, row: int) -> datetime:
    """Fifteen minutes after the close of a day."""
    return datetime.fromtimestamp(int(closes_at[row]) + 900, UTC)


def _moves(market: SyntheticMarket, closes_at: np.ndarray) -> Iterator[News]:
    """The largest move of each day, where it is large for the instrument."""
    close = market.close
    change = close[1:] / close[:-1] - 1.0
    known = np.nan_to_num(change)
    total = np.cumsum(np.vstack([np.zeros(close.shape[1]), known**2]), axis=0)
    usual = np.sqrt((total[_BACK:-1] - total[: -_BACK - 1]) / _BACK)
    size = np.where(usual > 1e-6, np.abs(known[_BACK:]) / np.maximum(usual, 1e-6), 0.0)
    best = size.argmax(axis=1)
    for at in np.flatnonzero(size.max(axis=1) > _LARGE):
        column, row = int(best[at]), int(at) + _BACK + 1
        price, moved = float(close[row, column]), float(change[row - 1, column])
        one, day = market.listings[column], market.days[row]
        closed = NewsFact(one.id, "close", price, day, f"{price:,.2f}")
        by = NewsFact(one.id, "change", moved, day, f"{100 * abs(moved):.1f} %")
        way = "up" if moved > 0 else "down"
        text = f"{one.name} ({one.id}) closed at {closed.shown}, {way} {by.shown} on the day."
        yield News(_after_close(closes_at, row), (one.id,), text, "market report", (closed, by))


def _summaries(market: SyntheticMarket, closes_at: np.ndarray) -> Iterator[News]:
    """How each class did, on the last weekday of each month."""
    months = market.days.astype("datetime64[M]")
    ends = np.flatnonzero(months[1:] != months[:-1])
    for row in ends[ends >= SUMMARY_DAYS]:
        for name, columns in class_members(market.listings).items():
            moved = market.close[row, columns] / market.close[row - SUMMARY_DAYS, columns] - 1.0
            there = np.isfinite(moved)
            if there.any():
                ids = tuple(market.listings[i].id for i in columns[there])
                yield _summary(name, moved[there], ids, market.days[row], _after_close(closes_at, int(row)))


def _summary(
    name: AssetClass, moved: np.ndarray, ids: tuple[str, ...], day: np.datetime64, published: datetime
) -> News:
    """The line about one class."""
    mean, risers = float(moved.mean()), int((moved > 0).sum())
    by = NewsFact(name, "mean_change", mean, day, f"{100 * mean:+.1f} %")
    up = NewsFact(name, "risers", float(risers), day, f"{risers} of")
    of = NewsFact(name, "counted", float(moved.size), day, f"{moved.size} instruments")
    label = CLASS_NAMES[name].replace("_", " ").capitalize()
    text = f"{label} month in review: mean change {by.shown}, {up.shown} {of.shown} higher."
    return News(published, ids, text, "monthly review", (by, up, of))


def _releases(macro: Sequence[MacroSeries]) -> Iterator[News]:
    """The monthly series as they are published."""
    for series in macro:
        if series.every != "month":
            continue
        for now in range(1, series.values.size):
            value, before = float(series.values[now]), float(series.values[now - 1])
            new = NewsFact(series.id, "value", value, series.periods[now], f"{value:.2f} {series.unit}")
            old = NewsFact(series.id, "previous", before, series.periods[now], f"after {before:.2f}")
            text = f"{series.title}: {new.shown} {old.shown} in the month before."
            published = datetime.fromtimestamp(int(series.released[now]), UTC)
            yield News(published, (), text, "statistics office", (new, old))
