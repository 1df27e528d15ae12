"""The clock of a season: days in order, nothing that came later, nothing backwards, no time without a zone."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, time, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError, UnknownNameError
from assaymark.market import History, known_at_close, synthetic_history
from assaymark.market.history import FIELDS, Clock, shown_prices

FIRST, LAST = date(2024, 3, 1), date(2024, 3, 29)


def small() -> History:
    """Four instruments over a quarter of the embedded market: two equities, a bond, a coin."""
    whole = synthetic_history(0)
    rows = np.flatnonzero((whole.days >= np.datetime64("2023-12-01")) & (whole.days <= np.datetime64("2024-03-29")))
    columns = [0, 1, 130, 160]
    bars = {name: whole.bars[name][rows][:, columns].copy() for name in FIELDS}
    known_at = whole.known_at[rows][:, columns].copy()
    return History(tuple(whole.listings[i] for i in columns), whole.days[rows], bars, known_at, whole.macro, whole.news)


IDS = [one.id for one in small().listings]


def emptied(history: History, *days: date) -> History:
    """The store without any bar on some days."""
    rows = np.isin(history.days, np.array(days, dtype="datetime64[D]"))
    bars = {name: np.where(rows[:, None], np.nan, values) for name, values in history.bars.items()}
    return dataclasses.replace(history, bars=bars)


def test_days_come_in_order_and_each_after_the_one_before():
    clock = Clock(small(), IDS, FIRST, LAST)
    days = clock.due(None)
    assert days[0] == FIRST
    assert days[-1] == LAST
    assert len(days) == 21
    assert list(days) == sorted(set(days))
    assert clock.due(days[3]) == days[4:]
    assert clock.due(LAST) == ()


def test_the_bar_of_a_day_is_the_one_in_the_store_and_the_last_close():
    history = small()
    day = Clock(history, IDS, FIRST, LAST, bars=30).day(date(2024, 3, 14))
    row = int(np.flatnonzero(history.days == np.datetime64("2024-03-14"))[0])
    for place, name in enumerate(IDS):
        assert day.quotes[name].open == history.bars["open"][row, place]
        assert day.quotes[name].close == history.bars["close"][row, place] == day.closes[-1, place]
    assert str(day.days[-1]) == "2024-03-14"


def test_nothing_that_became_known_later_changes_a_day():
    history = small()
    moment = int(datetime(2024, 3, 14, 21, 30, tzinfo=UTC).timestamp())
    bars = {name: np.where(history.known_at > moment, 1e6, values) for name, values in history.bars.items()}
    one, other = (Clock(h, IDS, FIRST, LAST).day(date(2024, 3, 14)) for h in (history, History(
        history.listings, history.days, bars, history.known_at, history.macro, history.news)))  # fmt: skip
    assert one.quotes == other.quotes
    assert np.array_equal(one.closes, other.closes, equal_nan=True)


def test_a_bar_that_comes_after_the_hour_of_decision_is_no_bar_of_that_day():
    history = small()
    late = history.known_at.copy()
    row = int(np.flatnonzero(history.days == np.datetime64("2024-03-14"))[0])
    late[row, 0] += 2 * 3600
    clock = Clock(dataclasses.replace(history, known_at=late), IDS, FIRST, LAST)
    assert IDS[0] not in clock.day(date(2024, 3, 14)).quotes
    assert (
        IDS[0]
        in Clock(dataclasses.replace(history, known_at=late), IDS, FIRST, LAST, at=time(23, 30))
        .day(date(2024, 3, 14))
        .quotes
    )
    assert np.isfinite(clock.day(date(2024, 3, 15)).closes[-2, 0])


def test_a_weekday_without_data_is_due_and_says_so_and_the_store_is_waited_for():
    hole = date(2024, 3, 12)
    clock = Clock(emptied(small(), hole), IDS, FIRST, LAST)
    assert hole in clock.due(None)
    assert not clock.day(hole).has_data
    assert clock.day(date(2024, 3, 13)).has_data
    behind = emptied(small(), *(FIRST + timedelta(days=n) for n in range(11, 40)))
    assert Clock(behind, IDS, FIRST, LAST).due(None)[-1] == date(2024, 3, 11)
    assert Clock(behind, IDS, date(2024, 3, 20), LAST).due(None) == ()


def test_a_weekend_on_which_something_trades_is_a_day():
    history = small()
    days = history.days.astype("datetime64[D]").copy()
    days[[str(day) for day in days].index("2024-03-04")] = np.datetime64("2024-03-03")  # Monday's bars on a Sunday
    moved = dataclasses.replace(history, days=days, known_at=known_at_close(days, len(IDS)))
    clock = Clock(moved, IDS, FIRST, LAST)
    assert [str(day) for day in clock.due(None)[:3]] == ["2024-03-01", "2024-03-03", "2024-03-04"]
    assert clock.day(date(2024, 3, 3)).has_data
    assert not clock.day(date(2024, 3, 4)).has_data


def test_prices_that_nobody_can_trade_at_are_none():
    history = small()
    bars = {name: values.copy() for name, values in history.bars.items()}
    row = int(np.flatnonzero(history.days == np.datetime64("2024-03-14"))[0])
    bars["close"][row, 0], bars["open"][row, 1] = 0.0, np.inf
    day = Clock(dataclasses.replace(history, bars=bars), IDS, FIRST, LAST).day(date(2024, 3, 14))
    assert IDS[0] not in day.quotes
    assert day.quotes[IDS[1]].open is None
    assert day.quotes[IDS[1]].close is not None


def test_an_instrument_that_ended_is_gone_and_one_that_will_end_is_not():
    history = small()
    ends = tuple(
        dataclasses.replace(one, delisted=date(2024, 3, 8)) if one.id == IDS[0] else one for one in history.listings
    )
    clock = Clock(dataclasses.replace(history, listings=ends), IDS, FIRST, LAST)
    assert clock.day(date(2024, 3, 7)).gone == frozenset()
    assert clock.day(date(2024, 3, 11)).gone == {IDS[0]}
    assert IDS[0] not in clock.day(date(2024, 3, 11)).quotes


def test_an_hour_of_decision_that_lies_ahead_is_not_due():
    clock = Clock(small(), IDS, FIRST, LAST)
    now = datetime(2024, 3, 6, 23, 0, tzinfo=timezone(timedelta(hours=2)))  # 21:00 UTC
    assert clock.due(None, now=now)[-1] == date(2024, 3, 5)
    assert clock.due(None, now=now + timedelta(minutes=30))[-1] == date(2024, 3, 6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.day(date(2024, 3, 5), after=date(2024, 3, 5)), "does not lie after 2024-03-05"),
        (lambda c: c.day(date(2024, 3, 4), after=date(2024, 3, 5)), "does not lie after"),
        (lambda c: c.day(date(2024, 4, 1)), "lies outside of the season"),
        (lambda c: c.due(None, now=datetime(2024, 3, 5)), "a time needs a zone"),
    ],
)
def test_bad_clocks_are_refused(call, words):
    with pytest.raises(InputError, match=words):
        call(Clock(small(), IDS, FIRST, LAST))


def test_every_problem_of_a_clock_is_named_at_once():
    with pytest.raises(InputError) as found:
        Clock(small(), [], LAST, FIRST, at=time(9, 30))
    assert len(found.value.problems) == 3
    with pytest.raises(InputError, match="takes no zone"):
        Clock(small(), IDS, FIRST, LAST, at=time(22, tzinfo=UTC))
    with pytest.raises(UnknownNameError, match=f"Did you mean '{IDS[0]}'"):
        Clock(small(), [IDS[0] + "X"], FIRST, LAST)


@given(st.floats(1e-6, 1e9))
def test_shown_prices_are_close_and_stay_when_shown_again(price):
    shown = shown_prices(np.array([price]))
    assert abs(shown[0] - price) <= max(price * 5.1e-6, 0.0)
    assert shown_prices(shown)[0] == shown[0]
    assert len(repr(float(shown[0])).replace(".", "").replace("e-0", "").strip("0")) <= 11


def test_a_volume_of_nothing_is_a_volume():
    history = small()
    bars = {name: values.copy() for name, values in history.bars.items()}
    row = int(np.flatnonzero(history.days == np.datetime64("2024-03-13"))[0])
    bars["volume"][row, 0], bars["volume"][row, 1] = 0.0, np.nan
    day = Clock(dataclasses.replace(history, bars=bars), IDS, FIRST, LAST).day(date(2024, 3, 14))
    assert day.bars["volume"][-2, 0] == 0.0
    assert np.isnan(day.bars["volume"][-2, 1])
    assert shown_prices(day.bars["volume"][-2:-1, :1]).tolist() == [[0.0]]
