"""Versions: a restated bar shows the earlier numbers before and the later after; nothing from later changes a view."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError, UnknownNameError
from assaymark.market import (
    SPACINGS,
    Fundamentals,
    History,
    MacroSeries,
    Origin,
    Restated,
    Snapshot,
    history_of,
    open_history,
    snapshot_of,
    synthetic_market,
    weekdays,
    write_snapshot,
)
from assaymark.market.history import wide_bars
from assaymark.market.macro import read, released_after, synthetic_fundamentals
from assaymark.market.snapshot import SCHEMAS

ORIGIN = Origin(source="test", retrieved_at=datetime(2026, 1, 1, tzinfo=UTC))
DAYS = weekdays(date(2024, 1, 1), date(2024, 3, 29))
IDS = ("ONE", "TWO", "THREE")
FIRST = datetime(2024, 1, 1, tzinfo=UTC)


def close_of(day: date | np.datetime64) -> datetime:
    return datetime.fromisoformat(f"{day}T21:00:00+00:00")


def bar(instrument: str, day: object, known: datetime, close: float, **fields: object) -> dict[str, object]:
    whole = dict.fromkeys(SCHEMAS["bars"].names)
    return whole | {"instrument": instrument, "event_date": day, "known_at": known, "close": close} | fields


def rows(seed: int = 0) -> dict[str, list[dict[str, object]]]:
    """A small market with restated bars, late bars, vintages, news and corrected filings."""
    rng = np.random.default_rng(seed)
    bars = []
    for name in IDS:
        for day in DAYS.astype(object):
            if rng.random() < 0.06:
                continue
            late = timedelta(days=int(rng.integers(0, 5))) if rng.random() < 0.1 else timedelta()
            opened, close = 100 * np.exp(rng.normal(0, 0.1, 2))
            bars.append(bar(name, day, close_of(day) + late, close, open=opened, adj_factor=rng.uniform(0.5, 1)))
            while rng.random() < 0.2:
                later = bars[-1]["known_at"] + timedelta(seconds=int(rng.integers(1, 40 * 86_400)))
                bars.append(bar(name, day, later, float(rng.uniform(1, 200))))
    macro = [
        {"series": "rate", "ref_period": date(2023, 12 if m == 0 else m, 28) if m == 0 else date(2024, m, 28),
         "value": float(rng.normal()), "realtime_start": FIRST + timedelta(days=31 * m + 20 * vintage),
         "realtime_end": None, "unit": "percent", "title": "Rate", "stale_days": 75}
        for m in range(3) for vintage in range(3)
    ]  # fmt: skip
    news = [
        {"id": str(n), "published_at": FIRST + timedelta(minutes=int(rng.integers(0, 129_600))),
         "instruments": [str(rng.choice(IDS))], "text": f"item {n}", "source": "test"}
        for n in range(30)
    ]  # fmt: skip
    filed = [
        {"instrument": name, "period": "2023-Q4", "field": "earnings", "value": float(rng.normal()),
         "unit": "per share", "filed_at": FIRST + timedelta(days=20 + 25 * version)}
        for name in IDS for version in range(3)
    ]  # fmt: skip
    listed = [
        {"id": name, "class": "EQ", "sub": "", "name": name, "currency": "USD", "listed": date(2024, 1, 1),
         "delisted": None, "calendar": "weekdays"}
        for name in IDS
    ]  # fmt: skip
    return {"bars": bars, "macro": macro, "news": news, "fundamentals": filed, "instruments": listed}


def made(tables: dict[str, list[dict[str, object]]]) -> Snapshot:
    arrow = {name: pa.Table.from_pylist(given, schema=SCHEMAS[name]) for name, given in tables.items()}
    return Snapshot("small", ORIGIN, arrow)


TIMES = {"bars": "known_at", "macro": "realtime_start", "news": "published_at", "fundamentals": "filed_at"}


def disturbed(tables: dict[str, list[dict[str, object]]], t: datetime, rng: np.random.Generator) -> dict[str, list]:
    """Everything that came after ``t`` changed, left out, or sent out once more with other numbers."""
    found = {"instruments": tables["instruments"]}
    for name, column in TIMES.items():
        kept = []
        for row in tables[name]:
            if row[column] <= t:
                kept.append(row)
                again = t + timedelta(seconds=int(rng.integers(1, 30 * 86_400)), microseconds=len(kept))
                if name != "news" and rng.random() < 0.2:
                    kept.append({**row, column: again, "close" if name == "bars" else "value": -5.0})
            elif rng.random() < 0.7:
                changed = {"text": "changed"} if name == "news" else {"close" if name == "bars" else "value": 9e5}
                kept.append({**row, **changed})
        found[name] = kept
    # The days of a view are those of the store, so the last one stays; what is in it does not.
    last = DAYS[-1].astype(object)
    found["bars"].append(bar("ONE", last, datetime(2024, 12, 1, tzinfo=UTC), 7.0))
    found["bars"].append(bar("TWO", date(2023, 11, 1), t + timedelta(days=1), 3.0))
    return found


def everything(history: History, t: datetime) -> list[object]:
    view = history.as_of(t)
    parts = [view.digest(), repr(view.all_macro()), repr(view.news(1000)), repr([view.fundamentals(n) for n in IDS])]
    prices = [view.prices(30, field=field) for field in ("close", "open")]
    return [
        *parts, *(one.values.tobytes() for one in prices), prices[0].days.tobytes(), view.returns(9).values.tobytes(),
    ]  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 5), minutes=st.integers(0, 90 * 1440))
def test_what_comes_later_changes_no_byte_of_a_view(seed, minutes):
    t = FIRST + timedelta(minutes=minutes)
    tables = rows(seed)
    other = disturbed(tables, t, np.random.default_rng(seed + minutes))
    assert everything(history_of(made(other)), t) == everything(history_of(made(tables)), t)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 5), minutes=st.integers(0, 90 * 1440))
def test_nor_one_that_went_through_disk(seed, minutes):
    t = FIRST + timedelta(minutes=minutes)
    tables = rows(seed)
    views = []
    with TemporaryDirectory() as place:
        for name, given_rows in (("a", tables), ("b", disturbed(tables, t, np.random.default_rng(minutes)))):
            write_snapshot(Path(place) / name, made(given_rows))
            open_history(Path(place) / name)
            views.append(everything(open_history(Path(place) / name), t))  # the second opening reads the cache
    assert views[0] == views[1] == everything(history_of(made(tables)), t)


@pytest.mark.parametrize("name", sorted(TIMES))
def test_each_kind_of_change_is_seen_once_it_is_known(name):
    tables = rows()
    last = max(range(len(tables[name])), key=lambda at: tables[name][at][TIMES[name]])
    change = {"text": "changed"} if name == "news" else {"close" if name == "bars" else "value": 1.5}
    other = {**tables, name: [{**row, **change} if at == last else row for at, row in enumerate(tables[name])]}
    at = tables[name][last][TIMES[name]]
    before, after = at - timedelta(seconds=1), at + timedelta(seconds=1)
    first, second = history_of(made(tables)), history_of(made(other))
    assert first.as_of(before).digest() == second.as_of(before).digest()
    assert first.as_of(after).digest() != second.as_of(after).digest()


# --- bars -------------------------------------------------------------------------------------------------------------


def versions(*given_bars: dict[str, object]) -> History:
    return history_of(made({**rows(), "bars": list(given_bars), "macro": [], "news": [], "fundamentals": []}))


def test_a_restated_bar_shows_each_version_in_its_time():
    day, known = date(2024, 1, 3), close_of(date(2024, 1, 3))
    week = timedelta(days=7)
    history = versions(
        bar("ONE", day, known + 2 * week, 30.0), bar("ONE", day, known, 10.0), bar("ONE", day, known + week, 20.0),
        bar("TWO", day, known, 5.0),
    )  # fmt: skip
    for later, close in ((timedelta(), 10.0), (week - timedelta(seconds=1), 10.0), (week, 20.0), (3 * week, 30.0)):
        assert history.as_of(known + later).prices(1).values[0].tolist()[:2] == [close, 5.0]
    assert history.bars["close"][0, 0] == 10.0
    assert history.restated.values["close"].tolist() == [20.0, 30.0]


def test_a_withdrawn_bar_is_missing_closes_are_total_return_prices_and_parts_of_a_second_count_up():
    day, known = date(2024, 1, 3), close_of(date(2024, 1, 3))
    history = versions(bar("ONE", day, known, 10.0), bar("ONE", day, known + timedelta(days=1), None))
    found = [history.as_of(known + timedelta(days=n)).prices(1, filled=False).values[0, 0] for n in (0, 1)]
    assert found == [10.0, pytest.approx(np.nan, nan_ok=True)]
    given_bar = bar("ONE", day, known, 10.0, open=8.0, high=12.0, low=6.0, volume=100.0, adj_factor=0.5)
    view = versions(given_bar).as_of(known)
    found = [view.prices(1, field=field).values[0, 0] for field in ("open", "high", "low", "close", "volume")]
    assert found == [4.0, 6.0, 3.0, 5.0, 100.0]
    history = versions(bar("ONE", day, known + timedelta(microseconds=1), 10.0))
    assert np.isnan(history.as_of(known).prices(1).values).all()
    assert history.as_of(known + timedelta(seconds=1)).prices(1).values[0, 0] == 10.0


@pytest.mark.parametrize(("change", "message"), [
    ({}, "ONE, 2024-01-03: 1 bars are there more than once"),
    ({"instrument": "FIVE"}, "FIVE: 1 instruments have bars and are not in the table"),
    ({"known_at": None}, "known_at: is missing in 1 rows"),
    ({"adj_factor": 0.0}, "adj_factor: must be positive"),
    ({"close": float("inf")}, "close: holds an infinite number"),
    ({"snapshot": "other", "event_date": date(2024, 1, 4)}, "a store holds one snapshot"),
    ({"event_date": date(2024, 1, 5)}, "cannot be known before its day has closed"),
])  # fmt: skip
def test_bars_that_make_no_store(change, message):
    day = date(2024, 1, 3)
    first = bar("ONE", day, close_of(day), 10.0, snapshot="s")
    with pytest.raises(InputError, match=message):
        versions(first, {**first, **change})


def test_the_fast_table_is_the_slow_definition():
    table = made(rows(3)).tables["bars"]
    wide = wide_bars(table, IDS)
    history = history_of(made(rows(3)))
    for t in (datetime(2024, 2, 7, 3, tzinfo=UTC), datetime(2024, 3, 20, 23, tzinfo=UTC)):
        newest: dict[tuple[str, date], tuple[datetime, float]] = {}
        for row in table.to_pylist():
            key = (row["instrument"], row["event_date"])
            if row["known_at"] <= t and (key not in newest or newest[key][0] < row["known_at"]):
                newest[key] = row["known_at"], row["close"] * (row["adj_factor"] or 1.0)
        prices = history.as_of(t).prices(10_000, filled=False)
        shown = {
            (IDS[column], prices.days[row].astype(object)): prices.values[row, column]
            for row, column in zip(*np.nonzero(np.isfinite(prices.values)), strict=True)
        }
        assert shown == {key: value for key, (_, value) in newest.items()}
    assert wide.restated.rows.size == table.num_rows - int((wide.known_at < np.iinfo(np.int64).max).sum())


@pytest.mark.parametrize(("restated", "message"), [
    (Restated(np.array([0]), np.array([0, 1]), np.array([1]), {}), "one length"),
    (Restated(np.array([9]), np.array([0]), np.array([9**12]), {}), "outside of the table"),
    (Restated(np.array([-1]), np.array([0]), np.array([9**12]), {}), "0 or more"),
    (Restated(np.array([0]), np.array([0]), np.array([5]), {}), "before the first version"),
    (Restated(np.array([0, 0]), np.array([0, 0]), np.array([9**12, 8**12]), {}), "in the order"),
    (Restated(np.array([0]), np.array([0]), np.array([9**12]), {"vol": np.ones(1)}), "fields that the bars"),
])  # fmt: skip
def test_restatements_that_belong_to_nothing(restated, message):
    day = date(2024, 1, 3)
    history = versions(bar("ONE", day, close_of(day), 10.0))
    with pytest.raises(InputError, match=message):
        dataclasses.replace(history, restated=restated)


# --- macro ------------------------------------------------------------------------------------------------------------


def vintages() -> MacroSeries:
    periods = np.array(["2024-01-31", "2024-01-31", "2024-02-29"], dtype="datetime64[D]")
    released = np.array([100, 300, 200]) * 86_400 + 1_700_000_000
    until = np.array([released[1], np.iinfo(np.int64).max, released[2] + 86_400])
    return MacroSeries("gdp", "GDP", "index", "month", 4000, periods, np.array([1.0, 2.0, 3.0]), released, until)


def test_a_reader_sees_the_vintage_of_the_time_and_of_the_newest_period():
    series = vintages()
    first, second, third = map(int, series.released[[0, 2, 1]])
    assert read(series, first - 1).state.startswith("not published")
    # The value for February was withdrawn a day later; January's stands, and is revised.
    assert [read(series, at).value for at in (first, second, second + 86_400, third)] == [1.0, 3.0, 1.0, 2.0]
    with pytest.raises(InputError, match="periods must increase"):
        dataclasses.replace(series, released=series.released[[1, 0, 2]])
    with pytest.raises(InputError, match="one length"):
        dataclasses.replace(series, values=series.values[:1])


@pytest.mark.parametrize(("apart", "every"), [(1, "day"), (7, "week"), (30, "month"), (91, "quarter"), (365, "year")])
def test_a_series_without_release_times_gets_a_late_one(apart, every):
    periods = [date(2020, 1, 31) + timedelta(days=apart * n) for n in range(6)]
    macro = [{"series": "s", "ref_period": day, "value": float(n)} for n, day in enumerate(periods)]
    tables = {**rows(), "macro": [dict.fromkeys(SCHEMAS["macro"].names) | row for row in macro]}
    (series,) = history_of(made(tables)).macro
    assert series.every == every
    lag = next((one[2] for one in SPACINGS if one[0] == every), 365)
    assert lag >= apart * 0.95
    np.testing.assert_array_equal(series.released, released_after(np.array(periods, dtype="datetime64[D]"), lag))
    (told,) = history_of(made(tables), lags={"s": 3}).macro
    np.testing.assert_array_equal(told.released, released_after(np.array(periods, dtype="datetime64[D]"), 3))


# --- filings ----------------------------------------------------------------------------------------------------------


def test_filings_show_from_their_day_and_corrections_from_theirs():
    history = history_of(made(rows()))
    filed = [history.fundamentals.filings[place] for place in history.fundamentals.places["TWO"]]
    for one in filed:
        assert history.as_of(one.filed_at).fundamentals("TWO") == (one,)
    assert history.as_of(filed[0].filed_at - timedelta(seconds=1)).fundamentals("TWO") == ()
    with pytest.raises(UnknownNameError, match="Did you mean 'TWO'"):
        history.as_of(filed[0].filed_at).fundamentals("TW")
    with pytest.raises(InputError, match="1 values were filed twice"):
        Fundamentals.of([filed[0], dataclasses.replace(filed[0], value=2.0)])


def test_synthetic_filings_follow_the_price_and_know_nothing_later():
    market = synthetic_market(0)
    filed = synthetic_fundamentals(market)
    keys = [(one.instrument, one.period, one.field) for one in filed.filings]
    assert 50 < len(keys) - len(set(keys)) < 300  # some are corrected
    equities = [one.id for one in market.listings if one.asset_class == "EQ"]
    assert set(filed.places) <= set(equities)
    assert len(filed.places) > 120
    cut = 1500
    later = {name: np.array(getattr(market, name)) for name in ("close",)}
    later["close"][cut:] *= 3.0
    other = synthetic_fundamentals(dataclasses.replace(market, **later))
    end = datetime.fromisoformat(f"{market.days[cut - 1]}T21:00:00+00:00")
    same = [one.value for one in filed.filings if one.filed_at <= end]
    assert len(same) > 4000
    assert same == [one.value for one in other.filings if one.filed_at <= end]
    book = np.array([one.value for one in filed.known("ALBIX", 2**62) if one.field == "book_value"])
    ends = [one.period for one in filed.known("ALBIX", 2**62) if one.field == "book_value"]
    rows_of = [np.flatnonzero(market.days < np.datetime64(f"{int(p[:4])}-{3 * int(p[-1]):02d}"))[-1] + 20 for p in ends]
    price = market.close[np.minimum(rows_of, market.days.size - 1), 0]
    kept = np.isfinite(price)
    assert np.corrcoef(book[kept], price[kept])[0, 1] > 0.6


def test_a_store_of_everything_survives_being_written_down():
    first = history_of(made(rows(2)))
    again = history_of(snapshot_of(first, "again", ORIGIN))
    for days in (10, 40, 90):
        t = FIRST + timedelta(days=days, hours=3)
        assert first.as_of(t).digest() == again.as_of(t).digest()
