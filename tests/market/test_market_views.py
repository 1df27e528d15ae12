"""Views: nothing that became known later is in them; macro lags; news true at its time."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError, UnknownNameError
from assaymark.market.calendar import weekdays
from assaymark.market.history import FIELDS, History, known_at_close, synthetic_history
from assaymark.market.instruments import class_members, universe
from assaymark.market.macro import SUMMARY_DAYS, News
from assaymark.market.synthetic import synthetic_market

MOMENTS = st.datetimes(datetime(2015, 1, 1), datetime(2026, 1, 15), timezones=st.just(UTC))


def small() -> History:
    """Five instruments over two years of the embedded market, with everything else."""
    whole = synthetic_history(0)
    rows, columns = slice(2050, 2600), [0, 3, 130, 155, 156, 165]
    bars = {name: whole.bars[name][rows][:, columns] for name in FIELDS}
    return History(
        tuple(whole.listings[i] for i in columns),
        whole.days[rows],
        bars,
        whole.known_at[rows][:, columns],
        whole.macro,
        whole.news,
    )


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


def test_nothing_before_the_first_day():
    view = synthetic_history(0).as_of(datetime(2014, 12, 1, tzinfo=UTC))
    assert view.prices(60).values.shape == (0, 0)
    assert view.returns(60).values.shape[0] == 0
    assert view.instruments == ()
    with pytest.raises(InputError, match="no day had closed"):
        view.regimes()


def test_a_later_listing_does_not_show():
    history = synthetic_history(0)
    view = history.as_of(datetime(2017, 6, 15, 22, tzinfo=UTC))
    later = {one.id for one in history.listings if one.listed > date(2017, 6, 15)}
    assert later
    assert not later & set(view.prices(5).ids)
    assert view.prices(5).values.shape == (5, 183 - len(later))
    assert [one.id for one in view.instruments] == list(view.prices(5).ids)


def test_a_delisting_shows_when_it_has_come():
    history = synthetic_history(0)
    gone = next(one for one in history.listings if one.delisted == date(2023, 9, 15))
    before, after = (history.as_of(datetime(2023, 9, day, 22, tzinfo=UTC)) for day in (14, 18))
    assert next(one for one in before.instruments if one.id == gone.id).delisted is None
    assert next(one for one in after.instruments if one.id == gone.id).delisted == gone.delisted
    assert gone.id in before.held()
    assert gone.id not in after.held()
    column = after.prices(5).ids.index(gone.id)
    assert np.isnan(after.prices(1).values[0, column])  # a delisted price is not carried like a gap


def test_wrong_names_and_times():
    view = synthetic_history(0).as_of(datetime(2024, 3, 1, tzinfo=UTC))
    with pytest.raises(UnknownNameError, match="close"):
        view.prices(5, field="clos")
    with pytest.raises(UnknownNameError, match="policy_rate"):
        view.macro("policy_rat")
    with pytest.raises(InputError, match="at least 1"):
        view.prices(0)
    with pytest.raises(InputError, match="time zone"):
        synthetic_history(0).as_of(datetime(2024, 3, 1))


def test_every_problem_of_a_store_at_once():
    days = np.array(["2024-01-02", "2024-01-01"], dtype="datetime64[D]")
    with pytest.raises(InputError, match="5 problems"):
        History(universe()[:1], days, {"price": np.ones((3, 1))}, np.zeros((2, 1), dtype=np.int64))


# --- macro ------------------------------------------------------------------------------------------------------------


def test_the_rate_for_march_is_not_visible_in_march():
    history = synthetic_history(0)
    for t, month in (
        ((2024, 3, 31, 23), "2024-02-29"),
        ((2024, 4, 1, 11), "2024-02-29"),
        ((2024, 4, 1, 12), "2024-03-31"),
    ):
        assert str(history.as_of(datetime(*t, tzinfo=UTC)).macro("policy_rate").period) == month


def test_a_dead_series_goes_stale():
    history = synthetic_history(0)
    alive = history.as_of(datetime(2022, 2, 3, tzinfo=UTC)).macro("interbank_spread")
    dead = history.as_of(datetime(2022, 3, 1, tzinfo=UTC)).macro("interbank_spread")
    assert alive.state == "ok"
    assert dead.state.startswith("stale")
    assert dead.value is None


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


def test_the_direction_that_a_text_tells_is_true():
    for one in synthetic_history(0).news:
        changes = [fact.value for fact in one.facts if fact.field == "change"]
        if changes:
            assert (", up " in one.text) == (changes[0] > 0)


def test_news_is_cut_by_time_and_instrument():
    history = synthetic_history(0)
    one = next(item for item in history.news if item.source == "market report")
    at = history.as_of(one.published_at)
    before = history.as_of(one.published_at - timedelta(seconds=1))
    assert one in at.news(1, instrument=one.instruments[0])
    assert one not in before.news(30)
    assert one not in history.as_of(one.published_at + timedelta(days=2)).news(2)
