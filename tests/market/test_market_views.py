"""Views: nothing that became known later is in them or shown; macro lags; news true at its time."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, date, datetime, time, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError, UnknownNameError
from assaymark.market import (
    FIELDS,
    Clock,
    History,
    News,
    Origin,
    Snapshot,
    class_members,
    known_at_close,
    shown_prices,
    synthetic_history,
    synthetic_market,
    universe,
    weekdays,
)
from assaymark.market.macro import SUMMARY_DAYS

MOMENTS = st.datetimes(datetime(2015, 1, 1), datetime(2026, 1, 15), timezones=st.just(UTC))


def small() -> History:
    """Five instruments over two years of the embedded market, with everything else."""
    whole = synthetic_history(0)
    rows, columns = slice(2050, 2600), [0, 3, 130, 155, 156, 165]
    bars = {name: whole.bars[name][rows][:, columns] for name in FIELDS}
    return History(
        tuple(whole.listings[i] for i in columns), whole.days[rows], bars, whole.known_at[rows][:, columns],
        whole.macro, whole.news,
    )  # fmt: skip


def perturbed(history: History, t: datetime) -> History:
    """The same store with everything that became known after t replaced, and delistings put ahead of it."""
    at = int(t.timestamp())
    rng = np.random.default_rng(1)
    later = history.known_at > at
    bars = {
        name: np.where(later, rng.choice([np.nan, 1.0, 1e6], values.shape), values)
        for name, values in history.bars.items()
    }
    macro = tuple(
        dataclasses.replace(one, values=np.where(one.released > at, -999.0, one.values)) for one in history.macro
    )
    news = tuple(
        one if one.published_at <= t else dataclasses.replace(one, text="changed", facts=()) for one in history.news
    )
    ahead = t.date() + timedelta(days=1)
    listings = tuple(
        dataclasses.replace(one, delisted=ahead) if one.delisted is None or one.delisted > ahead else one
        for one in history.listings
    )
    listings = tuple(
        dataclasses.replace(one, id="LATER", name="Later", sub="later") if one.listed > t.date() else one
        for one in listings
    )
    return dataclasses.replace(history, bars=bars, macro=macro, news=news, listings=listings)


def everything(history: History, t: datetime) -> list[object]:
    view = history.as_of(t)
    found: list[object] = [view.digest(), view.held(), repr(view.all_macro()), repr(view.news(60))]
    for field in FIELDS:
        found.append(view.prices(60, field=field).values.tobytes())
    found.append(view.returns(60).values.tobytes())
    if view.prices(1).days.size:
        found.append(view.regimes())
    return found


@settings(max_examples=25, deadline=None)
@given(st.datetimes(datetime(2022, 10, 1), datetime(2025, 2, 1), timezones=st.just(UTC)))
def test_what_becomes_known_later_changes_no_byte_of_a_view(t):
    history = small()
    assert everything(perturbed(history, t), t) == everything(history, t)


@pytest.mark.parametrize("t", [datetime(2017, 6, 15, 21, tzinfo=UTC), datetime(2022, 6, 15, 20, 59, 59, tzinfo=UTC)])
def test_the_whole_store_is_blind_too(t):
    history = synthetic_history(0)
    assert everything(perturbed(history, t), t) == everything(history, t)


def test_the_perturbation_is_seen_a_little_later():
    history, t = small(), datetime(2024, 3, 5, 20, tzinfo=UTC)
    later = t + timedelta(hours=1)
    assert history.as_of(later).digest() != perturbed(history, t).as_of(later).digest()


def test_a_bar_is_visible_from_its_close_on():
    history = synthetic_history(0)
    before = history.as_of(datetime(2024, 3, 1, 20, 59, 59, tzinfo=UTC)).prices(1)
    after = history.as_of(datetime(2024, 3, 1, 21, tzinfo=UTC)).prices(1)
    assert str(before.days[0]) == "2024-02-29"
    assert str(after.days[0]) == "2024-03-01"


def tiny(close: np.ndarray, known_at: np.ndarray | None = None) -> History:
    days = weekdays(date(2024, 1, 1), date(2024, 12, 31))[: close.shape[0]]
    known = known_at_close(days, close.shape[1]) if known_at is None else known_at
    return History(universe()[: close.shape[1]], days, {"close": close}, known)


def test_a_late_bar_is_carried_until_it_comes():
    close = np.array([[1.0], [2.0], [3.0]])
    days = weekdays(date(2024, 1, 1), date(2024, 1, 3))
    known = known_at_close(days, 1)
    known[1] += 2 * 86_400
    history = tiny(close, known)
    assert history.as_of(datetime(2024, 1, 2, 22, tzinfo=UTC)).prices(2).values[:, 0].tolist() == [1.0, 1.0]
    assert np.isnan(history.as_of(datetime(2024, 1, 2, 22, tzinfo=UTC)).prices(2, filled=False).values[1, 0])
    assert history.as_of(datetime(2024, 1, 4, 22, tzinfo=UTC)).prices(2).values[:, 0].tolist() == [2.0, 3.0]


def test_an_open_gap_counts_as_long_as_it_is_so_far():
    close = np.full((20, 1), np.nan)
    close[0], close[15:] = 5.0, 6.0
    history = tiny(close)
    monday = datetime(2024, 1, 1, 22, tzinfo=UTC)
    assert history.as_of(monday + timedelta(days=4)).prices(1).values[0, 0] == 5.0
    assert np.isnan(history.as_of(monday + timedelta(days=9)).prices(6).values).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.integers(0, 2000))
def test_a_slice_is_the_end_of_a_longer_slice(days, seed):
    rng = np.random.default_rng(seed)
    close = rng.uniform(1, 2, (100, 3))
    close[rng.random(close.shape) < 0.5] = np.nan
    view = tiny(close).as_of(datetime(2024, 5, 17, 22, tzinfo=UTC))
    np.testing.assert_array_equal(view.prices(days).values, view.prices(100).values[-days:])


def test_a_later_listing_does_not_show_and_a_delisting_when_it_has_come():
    history = synthetic_history(0)
    view = history.as_of(datetime(2017, 6, 15, 22, tzinfo=UTC))
    later = {one.id for one in history.listings if one.listed > date(2017, 6, 15)}
    assert later
    assert not later & set(view.prices(5).ids)
    assert view.prices(5).values.shape == (5, 183 - len(later))
    assert [one.id for one in view.instruments] == list(view.prices(5).ids)
    gone = next(one for one in history.listings if one.delisted == date(2023, 9, 15))
    before, after = (history.as_of(datetime(2023, 9, day, 22, tzinfo=UTC)) for day in (14, 18))
    ends = [next(one.delisted for one in view.instruments if one.id == gone.id) for view in (before, after)]
    assert ends == [None, gone.delisted]
    assert (gone.id in before.held(), gone.id in after.held()) == (True, False)
    column = after.prices(5).ids.index(gone.id)
    assert np.isnan(after.prices(1).values[0, column])  # a delisted price is not carried like a gap


def test_wrong_names_and_times_and_nothing_before_the_first_day():
    view = synthetic_history(0).as_of(datetime(2024, 3, 1, tzinfo=UTC))
    with pytest.raises(UnknownNameError, match="close"):
        view.prices(5, field="clos")
    with pytest.raises(UnknownNameError, match="policy_rate"):
        view.macro("policy_rat")
    with pytest.raises(InputError, match="at least 1"):
        view.prices(0)
    with pytest.raises(InputError, match="time zone"):
        synthetic_history(0).as_of(datetime(2024, 3, 1))
    early = synthetic_history(0).as_of(datetime(2014, 12, 1, tzinfo=UTC))
    assert (early.prices(60).values.shape, early.returns(60).values.shape[0], early.instruments) == ((0, 0), 0, ())
    with pytest.raises(InputError, match="no day had closed"):
        early.regimes()
    days = np.array(["2024-01-02", "2024-01-01"], dtype="datetime64[D]")
    with pytest.raises(InputError, match="5 problems"):
        History(universe()[:1], days, {"price": np.ones((3, 1))}, np.zeros((2, 1), dtype=np.int64))


# --- macro ------------------------------------------------------------------------------------------------------------


def test_the_rate_for_march_is_not_visible_in_march_and_a_dead_series_goes_stale():
    history = synthetic_history(0)
    for t, month in (
        ((2024, 3, 31, 23), "2024-02-29"), ((2024, 4, 1, 11), "2024-02-29"), ((2024, 4, 1, 12), "2024-03-31"),
    ):  # fmt: skip
        assert str(history.as_of(datetime(*t, tzinfo=UTC)).macro("policy_rate").period) == month
    alive, dead = (
        history.as_of(datetime(2022, *day, tzinfo=UTC)).macro("interbank_spread") for day in ((2, 3), (3, 1))
    )
    assert (alive.state, dead.state[:5], dead.value) == ("ok", "stale", None)


@given(MOMENTS)
def test_no_reading_is_from_the_future_or_stale(t):
    history = synthetic_history(0)
    limits = {one.id: one.stale_days for one in history.macro}
    for reading in history.as_of(t).all_macro():
        assert (reading.value is None) == (reading.state != "ok")
        if reading.released is not None:
            assert reading.released <= t.timestamp()
            assert (np.datetime64(t.date()) - reading.period).astype(int) <= limits[reading.id]


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_macro_moves_with_the_market(seed):
    market = synthetic_market(seed)
    series = {one.id: one for one in synthetic_history(seed).macro}
    assert len(series) == 12
    vix, spread = series["volatility_index"].values, series["hy_spread"].values
    pandemic = market.windows[1]
    assert vix[pandemic.rows].mean() > 2 * np.median(vix[market.calm])
    assert spread[pandemic.rows].max() > np.median(spread[market.calm]) + 2
    bonds = np.nanmean(np.diff(np.log(market.close[:, class_members(market.listings)["BO"]]), axis=0), axis=1)
    assert np.corrcoef(bonds[~np.isnan(bonds)], np.diff(series["yield_10y"].values)[~np.isnan(bonds)])[0, 1] < -0.5
    assert all((one.values > -2).all() and (one.values < 90).all() for one in series.values())


# --- news -------------------------------------------------------------------------------------------------------------


def truth(history: History, fact_subject: str, field: str, as_of: np.datetime64) -> float:
    """The number as the market table says, worked out one at a time."""
    for series in history.macro:
        if series.id == fact_subject:
            at = int(np.flatnonzero(series.periods == as_of)[0])
            return float(series.values[at if field == "value" else at - 1])
    close, row = history.bars["close"], int(np.flatnonzero(history.days == as_of)[0])
    ids = [one.id for one in history.listings]
    if field == "close":
        return float(close[row, ids.index(fact_subject)])
    if field == "change":
        column = ids.index(fact_subject)
        return float(close[row, column] / close[row - 1, column] - 1)
    columns = [i for i, one in enumerate(history.listings) if one.asset_class == fact_subject]
    moved = [close[row, i] / close[row - SUMMARY_DAYS, i] - 1 for i in columns]
    moved = [one for one in moved if not np.isnan(one)]
    return {"mean_change": sum(moved) / len(moved), "risers": sum(m > 0 for m in moved), "counted": len(moved)}[field]


def known_when(history: History, one: News) -> int:
    """When the last of its facts became known."""
    times = []
    for fact in one.facts:
        series = next((s for s in history.macro if s.id == fact.subject), None)
        if series is None:
            times.append(int(history.known_at[int(np.flatnonzero(history.days == fact.as_of)[0])].max()))
        else:
            times.append(int(series.released[int(np.flatnonzero(series.periods == fact.as_of)[0])]))
    return max(times)


@pytest.mark.parametrize("seed", [0, 5])
def test_every_number_in_the_news_is_in_the_table_and_was_known(seed):
    history = synthetic_history(seed)
    names = {one.id: one.name for one in history.listings}
    assert len(history.news) > 1000
    for one in history.news:
        assert known_when(history, one) <= one.published_at.timestamp()
        text = one.text
        for fact in one.facts:
            actual = truth(history, fact.subject, fact.field, fact.as_of)
            assert fact.value == pytest.approx(actual, abs=1e-12)
            number = float(re.search(r"[+-]?[\d,]*\d(\.\d+)?", fact.shown)[0].replace(",", ""))
            scale = 100.0 if "%" in fact.shown else 1.0
            told = actual if "+" in fact.shown or "-" in fact.shown else abs(actual)
            assert number == pytest.approx(told * scale, abs=0.0501 if scale == 100 else 0.00501)
            assert fact.shown in text
            text = text.replace(fact.shown, "", 1)
        for instrument in one.instruments[:1]:
            text = text.replace(names[instrument], "")
        assert not re.search(r"\d", text.replace("High-yield", ""))


def test_the_direction_that_a_text_tells_is_true_and_news_is_cut_by_time_and_instrument():
    history = synthetic_history(0)
    for one in history.news:
        changes = [fact.value for fact in one.facts if fact.field == "change"]
        assert not changes or (", up " in one.text) == (changes[0] > 0)
    one = next(item for item in history.news if item.source == "market report")
    at, before, after = (history.as_of(one.published_at + later) for later in
                         (timedelta(), timedelta(seconds=-1), timedelta(days=2)))  # fmt: skip
    assert one in at.news(1, instrument=one.instruments[0])
    assert one not in before.news(30)
    assert one not in after.news(2)


HISTORY = synthetic_history(0)


def test_a_history_says_what_it_holds():
    shown = repr(HISTORY)
    assert f"{len(HISTORY.listings)} instruments" in shown
    assert f"{HISTORY.days[0]} to {HISTORY.days[-1]}" in shown
    counts = [int(n) for n in re.findall(r"^(?:equity|bond|commodity|crypto|real_estate|cash) +(\d+)$", shown, re.M)]
    assert sum(counts) == len(HISTORY.listings)
    assert "<table>" in HISTORY._repr_html_()
    assert repr(synthetic_market(0)).startswith("Synthetic market, seed 0\n")


def test_a_snapshot_says_where_it_is_from():
    bad = "<script>alert(1)</script>"
    origin = Origin(source=bad, retrieved_at=datetime(2026, 1, 1, tzinfo=UTC), licence=bad, notes=(bad,))
    shown = Snapshot(bad, origin)._repr_html_()
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") == 4
    assert "bars" in repr(Snapshot("empty", origin))


@pytest.mark.parametrize("day", ["2014-12-31", "2015-01-02", "2020-03-07", "2025-12-31"])
def test_a_view_shows_only_what_was_known(day):
    t = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    view = HISTORY.as_of(t)
    shown = repr(view)
    assert shown.startswith(f"As of {day} 12:00 UTC, knowing nothing later\n")
    assert f"{len(view.held())} instruments" in shown
    later = [found for found in re.findall(r"\d{4}-\d{2}-\d{2}", shown) if found > day]
    assert later == []
    view._repr_html_()


# The clock of a season: days in order, nothing that came later, nothing backwards, no time without a zone

FIRST, LAST = date(2024, 3, 1), date(2024, 3, 29)


def clock_small() -> History:
    """Four instruments over a quarter of the embedded market: two equities, a bond, a coin."""
    whole = synthetic_history(0)
    rows = np.flatnonzero((whole.days >= np.datetime64("2023-12-01")) & (whole.days <= np.datetime64("2024-03-29")))
    columns = [0, 1, 130, 160]
    bars = {name: whole.bars[name][rows][:, columns].copy() for name in FIELDS}
    known_at = whole.known_at[rows][:, columns].copy()
    return History(tuple(whole.listings[i] for i in columns), whole.days[rows], bars, known_at, whole.macro, whole.news)


IDS = [one.id for one in clock_small().listings]


def emptied(history: History, *days: date) -> History:
    """The store without any bar on some days."""
    rows = np.isin(history.days, np.array(days, dtype="datetime64[D]"))
    bars = {name: np.where(rows[:, None], np.nan, values) for name, values in history.bars.items()}
    return dataclasses.replace(history, bars=bars)


def test_days_come_in_order_and_each_after_the_one_before():
    clock = Clock(clock_small(), IDS, FIRST, LAST)
    days = clock.due(None)
    assert days[0] == FIRST
    assert days[-1] == LAST
    assert len(days) == 21
    assert list(days) == sorted(set(days))
    assert clock.due(days[3]) == days[4:]
    assert clock.due(LAST) == ()


def test_the_bar_of_a_day_is_the_one_in_the_store_and_the_last_close():
    history = clock_small()
    day = Clock(history, IDS, FIRST, LAST, bars=30).day(date(2024, 3, 14))
    row = int(np.flatnonzero(history.days == np.datetime64("2024-03-14"))[0])
    for place, name in enumerate(IDS):
        assert day.quotes[name].open == history.bars["open"][row, place]
        assert day.quotes[name].close == history.bars["close"][row, place] == day.bars["close"][-1, place]
    assert str(day.days[-1]) == "2024-03-14"


def test_nothing_that_became_known_later_changes_a_day():
    history = clock_small()
    moment = int(datetime(2024, 3, 14, 21, 30, tzinfo=UTC).timestamp())
    bars = {name: np.where(history.known_at > moment, 1e6, values) for name, values in history.bars.items()}
    one, other = (Clock(h, IDS, FIRST, LAST).day(date(2024, 3, 14)) for h in (history, History(
        history.listings, history.days, bars, history.known_at, history.macro, history.news)))  # fmt: skip
    assert one.quotes == other.quotes
    assert np.array_equal(one.bars["close"], other.bars["close"], equal_nan=True)


def test_a_bar_that_comes_after_the_hour_of_decision_is_no_bar_of_that_day():
    history = clock_small()
    late = history.known_at.copy()
    row = int(np.flatnonzero(history.days == np.datetime64("2024-03-14"))[0])
    late[row, 0] += 2 * 3600
    clock = Clock(dataclasses.replace(history, known_at=late), IDS, FIRST, LAST)
    assert IDS[0] not in clock.day(date(2024, 3, 14)).quotes
    assert (
        IDS[0] in Clock(dataclasses.replace(history, known_at=late), IDS, FIRST, LAST, at=time(23, 30))
        .day(date(2024, 3, 14)) .quotes
    )  # fmt: skip
    assert np.isfinite(clock.day(date(2024, 3, 15)).bars["close"][-2, 0])


def test_a_weekday_without_data_is_due_and_says_so_and_the_store_is_waited_for():
    hole = date(2024, 3, 12)
    clock = Clock(emptied(clock_small(), hole), IDS, FIRST, LAST)
    assert hole in clock.due(None)
    assert not clock.day(hole).quotes
    assert clock.day(date(2024, 3, 13)).quotes
    behind = emptied(clock_small(), *(FIRST + timedelta(days=n) for n in range(11, 40)))
    assert Clock(behind, IDS, FIRST, LAST).due(None)[-1] == date(2024, 3, 11)
    assert Clock(behind, IDS, date(2024, 3, 20), LAST).due(None) == ()


def test_a_weekend_on_which_something_trades_is_a_day():
    history = clock_small()
    days = history.days.astype("datetime64[D]").copy()
    days[[str(day) for day in days].index("2024-03-04")] = np.datetime64("2024-03-03")  # Monday's bars on a Sunday
    moved = dataclasses.replace(history, days=days, known_at=known_at_close(days, len(IDS)))
    clock = Clock(moved, IDS, FIRST, LAST)
    assert [str(day) for day in clock.due(None)[:3]] == ["2024-03-01", "2024-03-03", "2024-03-04"]
    assert clock.day(date(2024, 3, 3)).quotes
    assert not clock.day(date(2024, 3, 4)).quotes


def test_prices_that_nobody_can_trade_at_are_none_and_a_volume_of_nothing_is_a_volume():
    history = clock_small()
    bars = {name: values.copy() for name, values in history.bars.items()}
    row = int(np.flatnonzero(history.days == np.datetime64("2024-03-14"))[0])
    bars["close"][row, 0], bars["open"][row, 1] = 0.0, np.inf
    bars["volume"][row - 1, 0], bars["volume"][row - 1, 1] = 0.0, np.nan
    day = Clock(dataclasses.replace(history, bars=bars), IDS, FIRST, LAST).day(date(2024, 3, 14))
    assert IDS[0] not in day.quotes
    assert day.quotes[IDS[1]].open is None
    assert day.quotes[IDS[1]].close is not None
    assert day.bars["volume"][-2, 0] == 0.0
    assert np.isnan(day.bars["volume"][-2, 1])
    assert shown_prices(day.bars["volume"][-2:-1, :1]).tolist() == [[0.0]]


def test_an_instrument_that_ended_is_gone_and_one_that_will_end_is_not():
    history = clock_small()
    ends = tuple(
        dataclasses.replace(one, delisted=date(2024, 3, 8)) if one.id == IDS[0] else one for one in history.listings
    )
    clock = Clock(dataclasses.replace(history, listings=ends), IDS, FIRST, LAST)
    assert clock.day(date(2024, 3, 7)).gone == frozenset()
    assert clock.day(date(2024, 3, 11)).gone == {IDS[0]}
    assert IDS[0] not in clock.day(date(2024, 3, 11)).quotes


def test_an_hour_of_decision_that_lies_ahead_is_not_due():
    clock = Clock(clock_small(), IDS, FIRST, LAST)
    now = datetime(2024, 3, 6, 23, 0, tzinfo=timezone(timedelta(hours=2)))  # 21:00 UTC
    assert clock.due(None, now=now)[-1] == date(2024, 3, 5)
    assert clock.due(None, now=now + timedelta(minutes=30))[-1] == date(2024, 3, 6)


@pytest.mark.parametrize(("call", "words"), [
    (lambda c: c.day(date(2024, 3, 5), after=date(2024, 3, 5)), "does not lie after 2024-03-05"),
    (lambda c: c.day(date(2024, 3, 4), after=date(2024, 3, 5)), "does not lie after"),
    (lambda c: c.day(date(2024, 4, 1)), "lies outside of the season"),
    (lambda c: c.due(None, now=datetime(2024, 3, 5)), "a time needs a zone"),
    (lambda _: Clock(clock_small(), [], LAST, FIRST, at=time(9, 30)), "3 problems"),
    (lambda _: Clock(clock_small(), IDS, FIRST, LAST, at=time(22, tzinfo=UTC)), "takes no zone"),
])  # fmt: skip
def test_bad_clocks_are_refused(call, words):
    with pytest.raises(InputError, match=words):
        call(Clock(clock_small(), IDS, FIRST, LAST))
    with pytest.raises(UnknownNameError, match=f"Did you mean '{IDS[0]}'"):
        Clock(clock_small(), [IDS[0] + "X"], FIRST, LAST)


@given(st.floats(1e-6, 1e9))
def test_shown_prices_are_close_and_stay_when_shown_again(price):
    shown = shown_prices(np.array([price]))
    assert abs(shown[0] - price) <= max(price * 5.1e-6, 0.0)
    assert shown_prices(shown)[0] == shown[0]
    assert len(repr(float(shown[0])).replace(".", "").replace("e-0", "").strip("0")) <= 11
