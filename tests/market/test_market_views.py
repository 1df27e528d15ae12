"""As-of views: no look-ahead, macro release lags, news that was true at its time, and the clock of a season."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbed import later_changed

from assaymark import market
from assaymark.errors import InputError, UnknownNameError
from assaymark.market.macro import SUMMARY_DAYS

WHOLE = market.synthetic_history(0)


def part(rows: slice | np.ndarray, columns: list[int]) -> market.History:
    """Some days of some instruments of the embedded market, with everything else."""
    bars = {name: WHOLE.bars[name][rows][:, columns].copy() for name in market.FIELDS}
    listings, known_at = tuple(WHOLE.listings[i] for i in columns), WHOLE.known_at[rows][:, columns].copy()
    return market.History(listings, WHOLE.days[rows], bars, known_at, WHOLE.macro, WHOLE.news)


SMALL = part(slice(2050, 2600), [0, 3, 130, 155, 156, 165])


def everything(history: market.History, t: datetime) -> list[object]:
    view = history.as_of(t)
    found: list[object] = [view.digest(), view.held(), repr(view.all_macro()), repr(view.news(60))]
    found += [view.prices(60, field=field).values.tobytes() for field in market.FIELDS]
    return [*found, view.returns(60).values.tobytes(), view.regimes() if view.prices(1).days.size else None]


@settings(max_examples=25, deadline=None)
@given(st.datetimes(datetime(2022, 10, 1), datetime(2025, 2, 1), timezones=st.just(UTC)))
def test_what_becomes_known_later_changes_no_byte_of_a_view(t):
    assert everything(later_changed(SMALL, t), t) == everything(SMALL, t)


def test_the_whole_store_is_blind_too_and_the_perturbation_is_seen_a_little_later():
    for t in (datetime(2017, 6, 15, 21, tzinfo=UTC), datetime(2022, 6, 15, 20, 59, 59, tzinfo=UTC)):
        assert everything(later_changed(WHOLE, t), t) == everything(WHOLE, t)
    t, later = (datetime(2024, 3, 5, hour, tzinfo=UTC) for hour in (20, 21))
    assert SMALL.as_of(later).digest() != later_changed(SMALL, t).as_of(later).digest()


def tiny(close: np.ndarray, known_at: np.ndarray | None = None) -> market.History:
    days = market.weekdays(date(2024, 1, 1), date(2024, 12, 31))[: close.shape[0]]
    known = market.known_at_close(days, close.shape[1]) if known_at is None else known_at
    return market.History(market.universe()[: close.shape[1]], days, {"close": close}, known)


def test_a_bar_is_visible_from_its_close_on_and_a_late_one_carried_until_it_comes():
    for t, day in ((datetime(2024, 3, 1, 20, 59, 59, tzinfo=UTC), "2024-02-29"),
                   (datetime(2024, 3, 1, 21, tzinfo=UTC), "2024-03-01")):  # fmt: skip
        assert str(WHOLE.as_of(t).prices(1).days[0]) == day
    known = market.known_at_close(market.weekdays(date(2024, 1, 1), date(2024, 1, 3)), 1)
    known[1] += 2 * 86_400
    history = tiny(np.array([[1.0], [2.0], [3.0]]), known)
    early, late = (history.as_of(datetime(2024, 1, day, 22, tzinfo=UTC)) for day in (2, 4))
    assert [view.prices(2).values[:, 0].tolist() for view in (early, late)] == [[1.0, 1.0], [2.0, 3.0]]
    assert np.isnan(early.prices(2, filled=False).values[1, 0])


def test_an_open_gap_counts_as_long_as_it_is_so_far():
    close = np.full((20, 1), np.nan)
    close[0], close[15:] = 5.0, 6.0
    friday, wednesday = (tiny(close).as_of(datetime(2024, 1, day, 22, tzinfo=UTC)) for day in (5, 10))
    assert friday.prices(1).values[0, 0] == 5.0
    assert np.isnan(wednesday.prices(6).values).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.integers(0, 2000))
def test_a_slice_is_the_end_of_a_longer_slice(days, seed):
    rng = np.random.default_rng(seed)
    close = rng.uniform(1, 2, (100, 3))
    close[rng.random(close.shape) < 0.5] = np.nan
    view = tiny(close).as_of(datetime(2024, 5, 17, 22, tzinfo=UTC))
    np.testing.assert_array_equal(view.prices(days).values, view.prices(100).values[-days:])


def test_a_later_listing_does_not_show_and_a_delisting_when_it_has_come():
    view = WHOLE.as_of(datetime(2017, 6, 15, 22, tzinfo=UTC))
    later = {one.id for one in WHOLE.listings if one.listed > date(2017, 6, 15)}
    assert later
    assert not later & set(view.prices(5).ids)
    assert view.prices(5).values.shape == (5, 183 - len(later))
    assert [one.id for one in view.instruments] == list(view.prices(5).ids)
    gone = next(one for one in WHOLE.listings if one.delisted == date(2023, 9, 15))
    before, after = (WHOLE.as_of(datetime(2023, 9, day, 22, tzinfo=UTC)) for day in (14, 18))
    ends = [next(one.delisted for one in view.instruments if one.id == gone.id) for view in (before, after)]
    assert (ends, gone.id in before.held(), gone.id in after.held()) == ([None, gone.delisted], True, False)
    column = after.prices(5).ids.index(gone.id)
    assert np.isnan(after.prices(1).values[0, column])  # a delisted price is not carried like a gap


def refused(message, call, *given, error=InputError, **options):
    with pytest.raises(error, match=message):
        call(*given, **options)


def test_wrong_names_and_times_and_nothing_before_the_first_day():
    view = WHOLE.as_of(datetime(2024, 3, 1, tzinfo=UTC))
    refused("close", view.prices, 5, field="clos", error=UnknownNameError)
    refused("policy_rate", view.macro, "policy_rat", error=UnknownNameError)
    refused("at least 1", view.prices, 0)
    refused("time zone", WHOLE.as_of, datetime(2024, 3, 1))
    early = WHOLE.as_of(datetime(2014, 12, 1, tzinfo=UTC))
    assert (early.prices(60).values.shape, early.returns(60).values.shape[0], early.instruments) == ((0, 0), 0, ())
    refused("no day had closed", early.regimes)
    days, known_at = np.array(["2024-01-02", "2024-01-01"], dtype="datetime64[D]"), np.zeros((2, 1), dtype=np.int64)
    refused("5 problems", market.History, market.universe()[:1], days, {"price": np.ones((3, 1))}, known_at)


def test_the_rate_for_march_is_not_visible_in_march_and_a_dead_series_goes_stale():
    for t, month in (
        ((2024, 3, 31, 23), "2024-02-29"), ((2024, 4, 1, 11), "2024-02-29"), ((2024, 4, 1, 12), "2024-03-31"),
    ):  # fmt: skip
        assert str(WHOLE.as_of(datetime(*t, tzinfo=UTC)).macro("policy_rate").period) == month
    alive, dead = (WHOLE.as_of(datetime(2022, *day, tzinfo=UTC)).macro("interbank_spread") for day in ((2, 3), (3, 1)))
    assert (alive.state, dead.state[:5], dead.value) == ("ok", "stale", None)


@given(st.datetimes(datetime(2015, 1, 1), datetime(2026, 1, 15), timezones=st.just(UTC)))
def test_no_reading_is_from_the_future_or_stale(t):
    limits = {one.id: one.stale_days for one in WHOLE.macro}
    for reading in WHOLE.as_of(t).all_macro():
        assert (reading.value is None) == (reading.state != "ok")
        if reading.released is not None:
            assert reading.released <= t.timestamp()
            assert (np.datetime64(t.date()) - reading.period).astype(int) <= limits[reading.id]


CLOSED = re.compile(
    r"(?P<name>.+) \((?P<id>\S+)\) closed at (?P<close>[\d,.]+), (?P<way>up|down) (?P<size>[\d.]+) % on the day\."
)
REVIEW = re.compile(
    r"(?P<label>.+) month in review: mean change (?P<mean>[+-][\d.]+) %, (?P<up>\d+) of (?P<n>\d+) instruments higher\."
)
RELEASE = re.compile(
    r"(?P<title>.+): (?P<value>-?[\d.]+) (?P<unit>\w+) after (?P<before>-?[\d.]+) in the month before\."
)


def assert_news_is_true(history: market.History) -> None:
    """Every number in the news is in the table and was known, and the direction that it tells is true."""
    columns = {one.id: at for at, one in enumerate(history.listings)}
    classes = {market.CLASS_NAMES[one].replace("_", " ").capitalize(): one for one in market.CLASSES}
    series, close = {one.title: one for one in history.macro}, history.bars["close"]
    assert len(history.news) > 1000
    for one in history.news:
        published = one.published_at.timestamp()
        if told := RELEASE.fullmatch(one.text):
            of = series[told["title"]]
            at = int(np.flatnonzero(of.released == published)[0])
            numbers = float(told["value"]), float(told["before"])
            assert numbers == pytest.approx(tuple(of.values[[at, at - 1]]), abs=0.00501)
            assert (told["unit"], one.instruments) == (of.unit, ())
            continue
        row = int(np.flatnonzero(history.days == np.datetime64(one.published_at.date()))[0])
        assert history.known_at[row].max() <= published
        if told := CLOSED.fullmatch(one.text):
            column = columns[told["id"]]
            assert (one.instruments, told["name"]) == ((told["id"],), history.listings[column].name)
            now, change = close[row, column], close[row, column] / close[row - 1, column] - 1
            assert abs(float(told["close"].replace(",", "")) - now) <= 0.00501
            assert abs(float(told["size"]) - 100 * abs(change)) <= 0.0501
            assert (told["way"] == "up") == (change > 0)
        else:
            told = REVIEW.fullmatch(one.text)
            members = [at for at, item in enumerate(history.listings) if item.asset_class == classes[told["label"]]]
            moved = {history.listings[at].id: close[row, at] / close[row - SUMMARY_DAYS, at] - 1 for at in members}
            moved = {name: move for name, move in moved.items() if not np.isnan(move)}
            assert abs(float(told["mean"]) - 100 * sum(moved.values()) / len(moved)) <= 0.0501
            assert (int(told["up"]), int(told["n"])) == (sum(move > 0 for move in moved.values()), len(moved))
            assert one.instruments == tuple(moved)


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_the_store_of_a_seed_is_sound_and_its_macro_moves_with_the_market(seed):
    made, history = market.synthetic_market(seed), market.synthetic_history(seed)
    series = {one.id: one for one in history.macro}
    assert len(series) == 12
    vix, spread, pandemic = series["volatility_index"].values, series["hy_spread"].values, made.windows[1].rows
    assert vix[pandemic].mean() > 2 * np.median(vix[made.calm])
    assert spread[pandemic].max() > np.median(spread[made.calm]) + 2
    bonds = np.nanmean(np.diff(np.log(made.close[:, market.class_members(made.listings)["BO"]]), axis=0), axis=1)
    assert np.corrcoef(bonds[~np.isnan(bonds)], np.diff(series["yield_10y"].values)[~np.isnan(bonds)])[0, 1] < -0.5
    assert all(((one.values > -2) & (one.values < 90)).all() for one in series.values())
    found = market.condition(history)
    assert found.problems == ()
    assert sum("days in a row are missing" in one.what for one in found.notes) > 15
    assert [one.where for one in found.notes if "has ended" in one.what] == ["interbank_spread"]
    if seed != 1:
        assert_news_is_true(history)


def test_news_is_cut_by_time_and_instrument():
    one = next(item for item in WHOLE.news if item.source == "market report")
    at, before, after = (WHOLE.as_of(one.published_at + later) for later in
                         (timedelta(), timedelta(seconds=-1), timedelta(days=2)))  # fmt: skip
    assert one in at.news(1, instrument=one.instruments[0])
    assert one not in (*before.news(30), *after.news(2))


def test_a_history_says_what_it_holds_and_a_snapshot_where_it_is_from():
    shown = repr(WHOLE)
    assert f"{len(WHOLE.listings)} instruments" in shown
    assert f"{WHOLE.days[0]} to {WHOLE.days[-1]}" in shown
    counts = [int(n) for n in re.findall(r"^(?:equity|bond|commodity|crypto|real_estate|cash) +(\d+)$", shown, re.M)]
    assert sum(counts) == len(WHOLE.listings)
    assert "<table>" in WHOLE._repr_html_()
    assert repr(market.synthetic_market(0)).startswith("Synthetic market, seed 0\n")
    bad = "<script>alert(1)</script>"
    origin = market.Origin(source=bad, retrieved_at=datetime(2026, 1, 1, tzinfo=UTC), licence=bad, notes=(bad,))
    shown = market.Snapshot(bad, origin)._repr_html_()
    assert (shown.count("<script>"), shown.count("&lt;script&gt;")) == (0, 4)
    assert "bars" in repr(market.Snapshot("empty", origin))
    for day in ("2014-12-31", "2015-01-02", "2020-03-07", "2025-12-31"):
        view = WHOLE.as_of(datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC))
        shown = repr(view) + view._repr_html_()
        assert shown.startswith(f"As of {day} 12:00 UTC, knowing nothing later\n")
        assert f"{len(view.held())} instruments" in shown
        assert [found for found in re.findall(r"\d{4}-\d{2}-\d{2}", shown) if found > day] == []


# The clock of a season: days in order, nothing that came later, nothing backwards, no time without a zone

FIRST, DAY, LAST = date(2024, 3, 1), date(2024, 3, 14), date(2024, 3, 29)
QUARTER = (WHOLE.days >= np.datetime64("2023-12-01")) & (WHOLE.days <= np.datetime64(LAST))
IDS = [WHOLE.listings[i].id for i in (0, 1, 130, 160)]  # two equities, a bond, a coin
ROW = int(np.flatnonzero(WHOLE.days[QUARTER] == np.datetime64(DAY))[0])


def quarter() -> market.History:
    return part(np.flatnonzero(QUARTER), [0, 1, 130, 160])


def clock(history: market.History | None = None, ids=IDS, first=FIRST, last=LAST, **options) -> market.Clock:
    return market.Clock(history or quarter(), ids, first, last, **options)


def emptied(*days: date) -> market.History:
    """The store without any bar on some days."""
    history, rows = quarter(), np.isin(WHOLE.days[QUARTER], np.array(days, dtype="datetime64[D]"))
    return replace(history, bars={name: np.where(rows[:, None], np.nan, one) for name, one in history.bars.items()})


def test_days_come_in_order_and_each_after_the_one_before_and_none_that_lies_ahead():
    days = clock().due(None)
    assert (days[0], days[-1], len(days), list(days)) == (FIRST, LAST, 21, sorted(set(days)))
    assert (clock().due(days[3]), clock().due(LAST)) == (days[4:], ())
    now = datetime(2024, 3, 6, 23, 0, tzinfo=timezone(timedelta(hours=2)))  # 21:00 UTC
    ends = [clock().due(None, now=now + timedelta(minutes=minutes))[-1] for minutes in (0, 30)]
    assert ends == [date(2024, 3, 5), date(2024, 3, 6)]


def test_the_bar_of_a_day_is_the_one_in_the_store_and_nothing_that_became_known_later_changes_it():
    history = quarter()
    day = clock(history, bars=30).day(DAY)
    for place, name in enumerate(IDS):
        assert day.quotes[name].open == history.bars["open"][ROW, place]
        assert day.quotes[name].close == history.bars["close"][ROW, place] == day.bars["close"][-1, place]
    assert str(day.days[-1]) == str(DAY)
    moment = int(datetime(2024, 3, 14, 21, 30, tzinfo=UTC).timestamp())
    bars = {name: np.where(history.known_at > moment, 1e6, values) for name, values in history.bars.items()}
    one, other = clock(history).day(DAY), clock(replace(history, bars=bars)).day(DAY)
    assert one.quotes == other.quotes
    assert np.array_equal(one.bars["close"], other.bars["close"], equal_nan=True)


def test_a_bar_that_comes_after_the_hour_of_decision_is_no_bar_of_that_day():
    history = quarter()
    history.known_at[ROW, 0] += 2 * 3600
    assert IDS[0] not in clock(history).day(DAY).quotes
    assert IDS[0] in clock(history, at=time(23, 30)).day(DAY).quotes
    assert np.isfinite(clock(history).day(date(2024, 3, 15)).bars["close"][-2, 0])


def test_a_weekday_without_data_is_due_and_says_so_and_the_store_is_waited_for():
    hole = date(2024, 3, 12)
    holed, behind = clock(emptied(hole)), emptied(*(FIRST + timedelta(days=n) for n in range(11, 40)))
    assert hole in holed.due(None)
    assert (bool(holed.day(hole).quotes), bool(holed.day(date(2024, 3, 13)).quotes)) == (False, True)
    assert clock(behind).due(None)[-1] == date(2024, 3, 11)
    assert clock(behind, first=date(2024, 3, 20)).due(None) == ()
    history = quarter()  # a weekend on which something trades is a day: Monday's bars on a Sunday
    days = history.days.astype("datetime64[D]").copy()
    days[[str(day) for day in days].index("2024-03-04")] = np.datetime64("2024-03-03")
    moved = clock(replace(history, days=days, known_at=market.known_at_close(days, len(IDS))))
    assert [str(day) for day in moved.due(None)[:3]] == ["2024-03-01", "2024-03-03", "2024-03-04"]
    assert [bool(moved.day(date(2024, 3, day)).quotes) for day in (3, 4)] == [True, False]


def test_prices_that_nobody_can_trade_at_are_none_and_a_volume_of_nothing_is_a_volume():
    history = quarter()
    bars = history.bars
    bars["close"][ROW, 0], bars["open"][ROW, 1], bars["volume"][ROW - 1, :2] = 0.0, np.inf, (0.0, np.nan)
    day = clock(history).day(DAY)
    assert IDS[0] not in day.quotes
    assert (day.quotes[IDS[1]].open, day.quotes[IDS[1]].close is None) == (None, False)
    assert np.array_equal(day.bars["volume"][-2, :2], [0.0, np.nan], equal_nan=True)
    assert market.shown_prices(day.bars["volume"][-2:-1, :1]).tolist() == [[0.0]]


def test_an_instrument_that_ended_is_gone_and_one_that_will_end_is_not():
    history = quarter()
    ended = replace(history.listings[0], delisted=date(2024, 3, 8))
    ends = clock(replace(history, listings=(ended, *history.listings[1:])))
    before, after = (ends.day(date(2024, 3, day)) for day in (7, 11))
    assert (before.gone, after.gone, IDS[0] in after.quotes) == (frozenset(), {IDS[0]}, False)


def test_bad_clocks_are_refused():
    refused("does not lie after 2024-03-05", clock().day, date(2024, 3, 5), after=date(2024, 3, 5))
    refused("does not lie after", clock().day, date(2024, 3, 4), after=date(2024, 3, 5))
    refused("is outside the season", clock().day, date(2024, 4, 1))
    refused("a time needs a zone", clock().due, None, now=datetime(2024, 3, 5))
    refused("3 problems", clock, ids=[], first=LAST, last=FIRST, at=time(9, 30))
    refused("takes no zone", clock, at=time(22, tzinfo=UTC))
    refused(f"Did you mean '{IDS[0]}'", clock, ids=[IDS[0] + "X"], error=UnknownNameError)


@given(st.floats(1e-6, 1e9))
def test_shown_prices_are_close_and_stay_when_shown_again(price):
    shown = market.shown_prices(np.array([price]))
    assert abs(shown[0] - price) <= price * 5.1e-6
    assert market.shown_prices(shown)[0] == shown[0]
    assert len(repr(float(shown[0])).replace(".", "").replace("e-0", "").strip("0")) <= 11
