"""Versions: a restated bar shows the earlier numbers before and the later after; nothing from later changes a view."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark import market
from assaymark.errors import InputError, UnknownNameError
from assaymark.market.history import wide_bars
from assaymark.market.macro import read_series, released_after, synthetic_fundamentals
from assaymark.market.snapshot import SCHEMAS

ORIGIN = market.Origin(source="test", retrieved_at=datetime(2026, 1, 1, tzinfo=UTC))
DAYS = market.weekdays(date(2024, 1, 1), date(2024, 3, 29))
IDS = ("ONE", "TWO", "THREE")
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
TIMES = {"bars": "known_at", "macro": "realtime_start", "news": "published_at", "fundamentals": "filed_at"}
Tables = dict[str, list[dict[str, object]]]


def close_of(day: date | np.datetime64) -> datetime:
    return datetime.fromisoformat(f"{day}T21:00:00+00:00")


def bar(instrument: str, day: object, known: datetime, close: float | None, **fields: object) -> dict[str, object]:
    whole = dict.fromkeys(SCHEMAS["bars"].names)
    return whole | {"instrument": instrument, "event_date": day, "known_at": known, "close": close} | fields


def rows(seed: int = 0) -> Tables:
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
        {"series": "rate", "ref_period": date(2023, 12, 28) if m == 0 else date(2024, m, 28), "title": "Rate",
         "value": float(rng.normal()), "realtime_start": FIRST + timedelta(days=31 * m + 20 * vintage),
         "realtime_end": None, "unit": "percent", "stale_days": 75}
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


def made(tables: Tables) -> market.Snapshot:
    arrow = {name: pa.Table.from_pylist(given, schema=SCHEMAS[name]) for name, given in tables.items()}
    return market.Snapshot("small", ORIGIN, arrow)


def changed(name: str, value: float) -> dict[str, object]:
    return {"text": "changed"} if name == "news" else {"close" if name == "bars" else "value": value}


def disturbed(tables: Tables, t: datetime, rng: np.random.Generator) -> Tables:
    """Everything that came after ``t`` changed, left out, or sent out once more with other numbers."""
    found: Tables = {"instruments": tables["instruments"]}
    for name, column in TIMES.items():
        kept = found[name] = []
        for row in tables[name]:
            if row[column] <= t:
                kept.append(row)
                again = t + timedelta(seconds=int(rng.integers(1, 30 * 86_400)), microseconds=len(kept))
                if name != "news" and rng.random() < 0.2:
                    kept.append({**row, column: again, **changed(name, -5.0)})
            elif rng.random() < 0.7:
                kept.append({**row, **changed(name, 9e5)})
    # The days of a view are those of the store, so the last one stays; what is in it does not.
    found["bars"].append(bar("ONE", DAYS[-1].astype(object), datetime(2024, 12, 1, tzinfo=UTC), 7.0))
    found["bars"].append(bar("TWO", date(2023, 11, 1), t + timedelta(days=1), 3.0))
    return found


def everything(history: market.History, t: datetime) -> list[object]:
    view = history.as_of(t)
    prices = [view.prices(30, field=field) for field in ("close", "open")]
    return [
        view.digest(), repr(view.all_macro()), repr(view.news(1000)), repr([view.fundamentals(n) for n in IDS]),
        *(one.values.tobytes() for one in prices), prices[0].days.tobytes(), view.returns(9).values.tobytes(),
    ]  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 5), minutes=st.integers(0, 90 * 1440))
def test_what_comes_later_changes_no_byte_of_a_view(seed, minutes):
    t, tables = FIRST + timedelta(minutes=minutes), rows(seed)
    other = disturbed(tables, t, np.random.default_rng(seed + minutes))
    assert everything(market.history_of(made(other)), t) == everything(market.history_of(made(tables)), t)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 5), minutes=st.integers(0, 90 * 1440))
def test_nor_one_that_went_through_disk(seed, minutes):
    t, tables, views = FIRST + timedelta(minutes=minutes), rows(seed), []
    with TemporaryDirectory() as place:
        for name, given_rows in (("a", tables), ("b", disturbed(tables, t, np.random.default_rng(minutes)))):
            market.write_snapshot(Path(place) / name, made(given_rows))
            market.open_history(Path(place) / name)
            views.append(everything(market.open_history(Path(place) / name), t))  # the second reads the cache
    assert views[0] == views[1] == everything(market.history_of(made(tables)), t)


def test_each_kind_of_change_is_seen_once_it_is_known():
    tables = rows()
    for name, column in TIMES.items():
        last = max(range(len(tables[name])), key=lambda at, name=name, column=column: tables[name][at][column])
        at, other = tables[name][last][column], list(tables[name])
        other[last] = {**other[last], **changed(name, 1.5)}
        first, second = market.history_of(made(tables)), market.history_of(made({**tables, name: other}))
        for later, seen in ((timedelta(seconds=-1), False), (timedelta(seconds=1), True)):
            assert (first.as_of(at + later).digest() != second.as_of(at + later).digest()) == seen, name


def versions(*given_bars: dict[str, object]) -> market.History:
    return market.history_of(made({**rows(), "bars": list(given_bars), "macro": [], "news": [], "fundamentals": []}))


DAY, KNOWN = date(2024, 1, 3), close_of(date(2024, 1, 3))


def test_a_restated_bar_shows_each_version_in_its_time():
    week = timedelta(days=7)
    history = versions(
        bar("ONE", DAY, KNOWN + 2 * week, 30.0), bar("ONE", DAY, KNOWN, 10.0), bar("ONE", DAY, KNOWN + week, 20.0),
        bar("TWO", DAY, KNOWN, 5.0),
    )  # fmt: skip
    for later, close in ((timedelta(), 10.0), (week - timedelta(seconds=1), 10.0), (week, 20.0), (3 * week, 30.0)):
        assert history.as_of(KNOWN + later).prices(1).values[0].tolist()[:2] == [close, 5.0]
    assert (history.bars["close"][0, 0], history.restated.values["close"].tolist()) == (10.0, [20.0, 30.0])


def test_a_withdrawn_bar_is_missing_closes_are_total_return_prices_and_parts_of_a_second_count_up():
    history = versions(bar("ONE", DAY, KNOWN, 10.0), bar("ONE", DAY, KNOWN + timedelta(days=1), None))
    found = [history.as_of(KNOWN + timedelta(days=n)).prices(1, filled=False).values[0, 0] for n in (0, 1)]
    assert found == [10.0, pytest.approx(np.nan, nan_ok=True)]
    whole = bar("ONE", DAY, KNOWN, 10.0, open=8.0, high=12.0, low=6.0, volume=100.0, adj_factor=0.5)
    view = versions(whole).as_of(KNOWN)
    found = [view.prices(1, field=field).values[0, 0] for field in ("open", "high", "low", "close", "volume")]
    assert found == [4.0, 6.0, 3.0, 5.0, 100.0]
    history = versions(bar("ONE", DAY, KNOWN + timedelta(microseconds=1), 10.0))
    assert np.isnan(history.as_of(KNOWN).prices(1).values).all()
    assert history.as_of(KNOWN + timedelta(seconds=1)).prices(1).values[0, 0] == 10.0


@pytest.mark.parametrize(("change", "message"), [
    ({}, "ONE, 2024-01-03: 1 bars are there more than once"),
    ({"instrument": "FIVE"}, "FIVE: 1 instruments have bars and are not in the table"),
    ({"known_at": None}, "known_at: is missing in 1 rows"), ({"adj_factor": 0.0}, "adj_factor: must be positive"),
    ({"close": float("inf")}, "close: holds an infinite number"),
    ({"snapshot": "other", "event_date": date(2024, 1, 4)}, "a store holds one snapshot"),
    ({"event_date": date(2024, 1, 5)}, "cannot be known before its day has closed"),
])  # fmt: skip
def test_bars_that_make_no_store(change, message):
    first = bar("ONE", DAY, KNOWN, 10.0, snapshot="s")
    with pytest.raises(InputError, match=message):
        versions(first, {**first, **change})


def test_the_fast_table_is_the_slow_definition():
    snapshot = made(rows(3))
    table, history = snapshot.tables["bars"], market.history_of(snapshot)
    wide = wide_bars(table, IDS)
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


def test_restatements_that_belong_to_nothing():
    history = versions(bar("ONE", DAY, KNOWN, 10.0))
    for message, at, columns, known, values in (
        ("one length", [0], [0, 1], [1], {}), ("outside of the table", [9], [0], [9**12], {}),
        ("0 or more", [-1], [0], [9**12], {}), ("before the first version", [0], [0], [5], {}),
        ("in the order", [0, 0], [0, 0], [9**12, 8**12], {}),
        ("fields that the bars", [0], [0], [9**12], {"vol": np.ones(1)}),
    ):  # fmt: skip
        restated = market.Restated(np.array(at), np.array(columns), np.array(known), values)
        with pytest.raises(InputError, match=message):
            replace(history, restated=restated)


def test_a_reader_sees_the_vintage_of_the_time_and_of_the_newest_period():
    periods = np.array(["2024-01-31", "2024-01-31", "2024-02-29"], dtype="datetime64[D]")
    released = np.array([100, 300, 200]) * 86_400 + 1_700_000_000
    until = np.array([released[1], np.iinfo(np.int64).max, released[2] + 86_400])
    series = market.MacroSeries("gdp", "GDP", "index", "month", 4000, periods, np.arange(1.0, 4), released, until)
    first, second, third = map(int, released[[0, 2, 1]])
    assert read_series(series, first - 1).state.startswith("not published")
    # The value for February was withdrawn a day later; January's stands, and is revised.
    assert [read_series(series, at).value for at in (first, second, second + 86_400, third)] == [1.0, 3.0, 1.0, 2.0]
    with pytest.raises(InputError, match="periods must increase"):
        replace(series, released=released[[1, 0, 2]])
    with pytest.raises(InputError, match="one length"):
        replace(series, values=series.values[:1])


def test_a_series_without_release_times_gets_a_late_one():
    for apart, every in ((1, "day"), (7, "week"), (30, "month"), (91, "quarter"), (365, "year")):
        periods = [date(2020, 1, 31) + timedelta(days=apart * n) for n in range(6)]
        macro = [{"series": "s", "ref_period": day, "value": float(n)} for n, day in enumerate(periods)]
        tables = {**rows(), "macro": [dict.fromkeys(SCHEMAS["macro"].names) | row for row in macro]}
        lag = next((one[2] for one in market.SPACINGS if one[0] == every), 365)
        assert lag >= apart * 0.95
        for days, lags in ((lag, {}), (3, {"s": 3})):
            (series,) = market.history_of(made(tables), lags=lags).macro
            assert series.every == every
            np.testing.assert_array_equal(
                series.released, released_after(np.array(periods, dtype="datetime64[D]"), days)
            )


def test_filings_show_from_their_day_and_corrections_from_theirs():
    history = market.history_of(made(rows()))
    filed = [history.fundamentals.filings[place] for place in history.fundamentals.places["TWO"]]
    for one in filed:
        assert history.as_of(one.filed_at).fundamentals("TWO") == (one,)
    assert history.as_of(filed[0].filed_at - timedelta(seconds=1)).fundamentals("TWO") == ()
    with pytest.raises(UnknownNameError, match="Did you mean 'TWO'"):
        history.as_of(filed[0].filed_at).fundamentals("TW")
    with pytest.raises(InputError, match="1 values were filed twice"):
        market.Fundamentals.of([filed[0], replace(filed[0], value=2.0)])
    first = market.history_of(made(rows(2)))  # a store of everything survives being written down
    again = market.history_of(market.snapshot_of(first, "again", ORIGIN))
    for days in (10, 40, 90):
        t = FIRST + timedelta(days=days, hours=3)
        assert first.as_of(t).digest() == again.as_of(t).digest()


def test_synthetic_filings_follow_the_price_and_know_nothing_later():
    whole, cut = market.synthetic_market(0), 1500
    filed = market.synthetic_history(0).fundamentals
    keys = [(one.instrument, one.period, one.field) for one in filed.filings]
    assert 50 < len(keys) - len(set(keys)) < 300  # some are corrected
    assert set(filed.places) <= {one.id for one in whole.listings if one.asset_class == "EQ"}
    assert len(filed.places) > 120
    later = np.array(whole.close)
    later[cut:] *= 3.0
    other, end = synthetic_fundamentals(replace(whole, close=later)), close_of(whole.days[cut - 1])
    same = [one.value for one in filed.filings if one.filed_at <= end]
    assert len(same) > 4000
    assert same == [one.value for one in other.filings if one.filed_at <= end]
    books = [one for one in filed.known("ALBIX", 2**62) if one.field == "book_value"]
    ends = [np.datetime64(f"{int(one.period[:4])}-{3 * int(one.period[-1]):02d}") for one in books]
    price = whole.close[[min(np.flatnonzero(whole.days < end)[-1] + 20, whole.days.size - 1) for end in ends], 0]
    kept = np.isfinite(price)
    assert np.corrcoef(np.array([one.value for one in books])[kept], price[kept])[0, 1] > 0.6
