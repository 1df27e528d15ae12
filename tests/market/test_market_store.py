"""Snapshots on disk: written whole, checked when read, never mixed; the cache; files as a source; what is wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark import market
from assaymark.errors import InputError, LedgerError
from assaymark.market import snapshot as cache_module
from assaymark.market.instruments import all_days
from assaymark.market.macro import released_after
from assaymark.market.snapshot import OPTIONAL, SCHEMAS, cached_bars, content_digest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = {name: schema for name, schema in SCHEMAS.items() if name not in OPTIONAL}
ORIGIN = market.Origin(source="test", retrieved_at=NOW, query={"n": 1}, licence="none", notes=("a note",))
DAYS = market.weekdays(date(2024, 1, 1), date(2024, 6, 28))
IDS = ("ONE", "TWO", "THREE", "FOUR")


def sound(seed: int = 0, days: np.ndarray = DAYS) -> np.ndarray:
    return 100 * np.exp(np.cumsum(np.random.default_rng(seed).standard_normal((days.size, len(IDS))) * 0.01, axis=0))


def small(seed: int = 0, days: np.ndarray = DAYS) -> market.History:
    close = sound(seed, days)
    listings = tuple(market.Listing(name, "EQ", "sub", name.title(), date(2024, 1, 1)) for name in IDS)
    bars = {"close": close, "high": close * 1.01, "volume": np.full(close.shape, 1e6)}
    return market.History(listings, days, bars, market.known_at_close(days, len(IDS)), source="test", snapshot="small")


def stored(folder: Path, seed: int = 0, id: str = "small") -> market.Snapshot:
    snapshot = market.snapshot_of(small(seed), id, ORIGIN)
    market.write_snapshot(folder, snapshot)
    return snapshot


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in folder.iterdir() if one.is_file()}


def refused(message: str, call, *given, error: type[Exception] = InputError, **options: object) -> None:
    with pytest.raises(error, match=message):
        call(*given, **options)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> tuple[Path, market.Snapshot]:
    """A store without a cache. Not to be changed."""
    folder = tmp_path_factory.mktemp("market") / "new" / "store"
    return folder, stored(folder)


def test_what_is_written_is_what_is_read(store):
    folder, snapshot = store
    found = market.read_snapshot(folder)
    assert (found.id, found.origin) == ("small", ORIGIN)
    for name, schema in PLAIN.items():
        assert found.tables[name].schema.equals(schema)
        assert content_digest(found.tables[name]) == content_digest(snapshot.tables[name])
    assert sorted(files(folder)) == sorted([*(f"{name}.parquet" for name in PLAIN), "snapshot.json"])


def test_the_synthetic_market_goes_through_disk_unchanged(tmp_path):
    market.write_snapshot(tmp_path, market.synthetic_snapshot(0))
    history, again, origin = market.open_history(tmp_path), market.open_history(tmp_path), market.synthetic_history(0)
    assert market.read_manifest(tmp_path).origin.licence == "made here, free to use"
    assert history.listings == origin.listings
    for t in (datetime(2018, 3, 1, 22, tzinfo=UTC), datetime(2024, 3, 1, 22, tzinfo=UTC)):
        mine, first = history.as_of(t), origin.as_of(t)
        for field in market.FIELDS:
            np.testing.assert_array_equal(mine.prices(60, field=field).values, first.prices(60, field=field).values)
        assert mine.all_macro() == first.all_macro()
        assert mine.fundamentals("ALBIX") == first.fundamentals("ALBIX") != ()
        assert [(n.published_at, n.text) for n in mine.news(60)] == [(n.published_at, n.text) for n in first.news(60)]
        assert mine.digest() == again.as_of(t).digest()


def test_the_same_snapshot_again_changes_nothing_and_another_is_refused(tmp_path):
    stored(tmp_path)
    before, later = files(tmp_path), dataclasses.replace(ORIGIN, retrieved_at=datetime.now(UTC))
    market.write_snapshot(tmp_path, market.snapshot_of(small(), "small", later))
    refused("also called", stored, tmp_path, 1)
    refused("use a new folder for", stored, tmp_path, 0, "other")
    assert files(tmp_path) == before
    refused("cannot write", stored, tmp_path / "snapshot.json", error=LedgerError)  # no folder


@pytest.mark.parametrize("harm", ["flip", "cut", "gone"])
def test_damage_is_named_and_the_same_snapshot_repairs_it(tmp_path, store, harm):
    for name in (*(f"{name}.parquet" for name in PLAIN), "snapshot.json"):
        folder = Path(shutil.copytree(store[0], tmp_path / name))
        data = (folder / name).read_bytes()
        middle = len(data) // 2
        (folder / name).unlink()
        if harm != "gone":
            flipped = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
            (folder / name).write_bytes(flipped if harm == "flip" else data[:-9])
        elif name == "snapshot.json":
            refused("contains no market snapshot", market.open_history, folder)
            continue
        refused(name, market.read_snapshot, folder, error=LedgerError)
        refused(name, market.open_history, folder, error=LedgerError)
        if name != "snapshot.json":
            market.write_snapshot(folder, store[1])
            found = market.read_snapshot(folder)
            assert content_digest(found.tables["bars"]) == content_digest(store[1].tables["bars"])


def test_a_hostile_manifest_is_no_snapshot(tmp_path):
    for text in (b"", b"[]", b"null", b'{"format": 1}', b'{"format": 2}', b"[" * 100_000, b"\xff",
                 b'{"format": 1, "id": NaN}', b" " * ((1 << 20) + 1)):  # fmt: skip
        (tmp_path / "snapshot.json").write_bytes(text)
        message = "larger than" if len(text) > 1 << 20 else r"snapshot\.json"
        refused(message, market.read_manifest, tmp_path, error=LedgerError)


def test_a_kill_while_writing_leaves_no_snapshot(tmp_path, monkeypatch):
    real, left = os.fsync, iter([True, True, False])

    def fsync(descriptor: int) -> None:
        if not next(left, False):
            raise KeyboardInterrupt("killed")
        real(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        refused("killed", stored, tmp_path, error=KeyboardInterrupt)
    refused("contains no market snapshot", market.read_manifest, tmp_path)
    stored(tmp_path)
    assert market.open_history(tmp_path).days.size == DAYS.size


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.none() | st.text(max_size=3), st.lists(st.none() | st.text(max_size=2), max_size=3))))
def test_a_content_digest_is_of_the_rows_and_not_of_how_they_lie(rows):
    columns = {
        "a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows], pa.list_(pa.string())),
    }  # fmt: skip
    first = pa.table(columns)
    parts = pa.concat_tables([first.slice(0, len(rows) // 2), first.slice(len(rows) // 2)])
    assert content_digest(parts) == content_digest(first)
    if rows:
        changed = first.set_column(0, "a", pa.array([f"{one}x" for one, _ in rows], pa.string()))
        assert content_digest(first) not in (content_digest(first.slice(1)), content_digest(changed))


def changed(name: str, **columns: object) -> market.Snapshot:
    """The small snapshot with the first row of a table changed."""
    tables = dict(market.snapshot_of(small(), "small", ORIGIN).tables)
    rows = tables[name].to_pylist()
    rows[0] |= columns
    return market.Snapshot("small", ORIGIN, {**tables, name: pa.Table.from_pylist(rows, schema=SCHEMAS[name])})


@pytest.mark.parametrize(("columns", "message"), [
    ({"class": "FX"}, "ONE: has the class 'FX'; classes are EQ"),
    ({"id": "TWO"}, "TWO: the instrument is in the table more than once"),
    ({"id": None, "class": None}, "(?s)2 problems.*row 1: has no id.*row 1: has the class None"),
    ({"currency": "EUR"}, r"EUR: ONE; USD: TWO, THREE, FOUR\); make one snapshot a currency"),
])  # fmt: skip
def test_instruments_that_make_no_store(columns, message):
    refused(message, market.history_of, changed("instruments", **columns))


def test_news_and_filings_must_have_their_time_and_a_listing_without_a_day_starts_with_its_bars():
    news = {"id": "1", "published_at": None, "instruments": [], "text": "x", "source": "y"}
    filed = {"instrument": "ONE", "period": "2024-Q1", "field": "f", "value": None, "unit": "u", "filed_at": None}
    tables = {"news": [news], "fundamentals": [filed]}
    arrow = {name: pa.Table.from_pylist(rows, schema=SCHEMAS[name]) for name, rows in tables.items()}
    refused("3 problems", market.history_of, market.Snapshot("bad", ORIGIN, arrow))
    assert market.history_of(changed("instruments", listed=None)).listings[0].listed == date(2024, 1, 1)


def test_a_snapshot_without_bars_is_a_store_of_what_else_there_is(tmp_path):
    periods = np.array(["2024-01-31"], dtype="datetime64[D]")
    series = market.MacroSeries("rate", "Rate", "percent", "month", 75, periods, np.ones(1), released_after(periods, 1))
    empty = np.empty(0, "datetime64[D]")
    whole = market.History((), empty, {"close": np.empty((0, 0))}, np.empty((0, 0), np.int64), macro=(series,))
    market.write_snapshot(tmp_path, market.snapshot_of(whole, "macro", ORIGIN))
    history = market.open_history(tmp_path)
    assert history.as_of(datetime(2024, 2, 2, tzinfo=UTC)).macro("rate").value == 1.0
    assert (market.class_overviews(history), market.condition(history).problems) == ((), ())


def test_the_second_opening_maps_the_cache_and_one_that_does_not_fit_is_made_again(tmp_path, store, monkeypatch):
    folder = Path(shutil.copytree(store[0], tmp_path / "store"))
    first, digest = market.open_history(folder), market.read_manifest(folder).digest
    with monkeypatch.context() as patched:
        patched.setattr("assaymark.market.history.wide_bars", None)
        second = market.open_history(folder)
    assert isinstance(second.bars["close"].base, np.memmap)
    assert not second.bars["close"].flags.writeable
    np.testing.assert_array_equal(first.bars["close"], second.bars["close"])
    np.testing.assert_array_equal(first.known_at, second.known_at)
    wanted = first.bars["close"].copy()
    bars, index = folder / "cache" / "bar-close.npy", folder / "cache" / "index.json"
    data, other = bars.read_bytes(), json.dumps({**json.loads(index.read_text()), "key": "0" * 64}).encode()
    for path, harmed in ((bars, data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]), (bars, data[:-8]), (bars, None),
                         (index, b"{"), (index, other)):  # fmt: skip
        path.unlink()
        if harmed is not None:
            path.write_bytes(harmed)
        assert cached_bars(folder, digest) is None
        np.testing.assert_array_equal(market.open_history(folder).bars["close"], wanted)
        assert cached_bars(folder, digest) is not None
    # A folder that is only read needs none.
    folder = Path(shutil.copytree(store[0], tmp_path / "only read"))

    def refuse(path: Path, data: bytes) -> None:
        raise LedgerError(f"cannot write {path}")

    monkeypatch.setattr(cache_module, "write_atomic", refuse)
    assert market.open_history(folder).days.size == DAYS.size
    assert not (folder / "cache").exists()


def csv(path: Path, columns: dict[str, list[object]]) -> Path:
    lines = [",".join("" if one is None or one != one else str(one) for one in row)
             for row in zip(*columns.values(), strict=True)]  # fmt: skip
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


def portbench(path: Path) -> Path:
    """Two months of calendar days as PortBench's market file lays them out, its levels cut at both ends."""
    days, rng = all_days(date(2024, 1, 1), date(2024, 2, 29)), np.random.default_rng(0)
    columns: dict[str, list[object]] = {"date": days.astype(str).tolist()}
    for name in ("equities_SPY", "equities_XLF", "bonds_TLT", "real_estate_VNQ", "cryptocurrency_BTC_USD", "cash_BIL"):
        price = 100 * np.exp(np.cumsum(rng.normal(0, 0.01, days.size)))
        price[np.arange(days.size) < 20 if "crypto" in name else ~np.is_busday(days)] = np.nan
        returns = np.concatenate([[np.nan], np.diff(np.log(price))])
        price = np.clip(price, *np.nanpercentile(price, [5, 95]))
        fields = ("open", "high", "low", "close") if name.startswith(("equ", "real", "cry")) else ("close",)
        columns |= {f"{name}_{field}": price.tolist() for field in fields} | {f"{name}_return": returns.tolist()}
    columns["cash_fred_FEDFUNDS"] = [5.33] * days.size
    columns["equities_text_json"] = ['"[{""a"": ""b, c""}]"'] * days.size
    return csv(path, columns)


def test_portbench_market_is_read_with_its_traps_written_down(tmp_path):
    snapshot = market.snapshot_from_file(portbench(tmp_path / "market-base-dataset.csv"), now=NOW)
    history, notes = market.history_of(snapshot), " ".join(snapshot.origin.notes)
    classes = {one.id: one.asset_class for one in history.listings}
    assert classes == {"SPY": "EQ", "XLF": "EQ", "TLT": "BO", "VNQ": "RE", "BTC_USD": "CR", "BIL": "CA"}
    assert set(market.PORTBENCH_NOTES) <= set(snapshot.origin.notes)
    said = (
        "winsorised over the whole sample", "6 columns ending in _return", "log returns", "2 columns of macro", "16 Sat"
    )  # fmt: skip
    assert [one for one in said if one not in notes] == []
    assert history.days.size == market.weekdays(date(2024, 1, 1), date(2024, 2, 29)).size
    assert set(history.bars) == {"open", "high", "low", "close"}
    # Simple returns come from the closes, not from the file's log returns.
    view = history.as_of(datetime(2024, 3, 1, tzinfo=UTC))
    closes, returns = view.prices(5).values, view.returns(4).values
    np.testing.assert_allclose(returns, closes[1:] / closes[:-1] - 1)
    # A day of crypto is known when it is over.
    column = [one.id for one in history.listings].index("BTC_USD")
    values = history.as_of(datetime(2024, 2, 28, 23, 59, tzinfo=UTC)).prices(1, filled=False).values[0]
    assert (np.isnan(values[column]), np.isnan(values[0])) == (True, False)
    assert np.isfinite(history.as_of(datetime(2024, 2, 29, tzinfo=UTC)).prices(1).values[0, column])


def wide(path: Path, closes: np.ndarray, days: np.ndarray = DAYS, ids: tuple[str, ...] = IDS) -> Path:
    columns = {"Date": days.astype(str).tolist(), **{name: closes[:, n].tolist() for n, name in enumerate(ids)}}
    return csv(path, columns)


def long(path: Path, closes: np.ndarray, **columns: list[object]) -> Path:
    table = {"instrument": list(IDS) * DAYS.size, "event_date": pa.array(np.repeat(DAYS, len(IDS)))}
    pa.parquet.write_table(pa.table({**table, "close": closes.ravel(), **columns}), path)
    return path


def test_a_plain_wide_file_and_its_columns_of_returns(tmp_path):
    path = wide(tmp_path / "a.csv", sound(), ids=("ONE", "TWO", "ONE_return", "ONE_log_returns"))
    snapshot = market.snapshot_from_file(path, now=NOW, licence="mine", currency="EUR", asset_class="BO")
    assert [one.id for one in market.history_of(snapshot).listings] == ["ONE", "TWO"]
    assert "2 columns ending in _return are left out: they are not said to be simple" in snapshot.origin.notes[0]
    listed = {(one["currency"], one["class"]) for one in snapshot.tables["instruments"].to_pylist()}
    assert (listed, snapshot.origin.licence) == ({("EUR", "BO")}, "mine")
    assert str(tmp_path) not in json.dumps(dict(snapshot.origin.query))
    closes = np.full((DAYS.size, 4), 50.0) + np.arange(DAYS.size)[:, None]
    closes[:100, 1] = np.nan  # a late listing does not confuse the types
    history = market.history_of(market.snapshot_from_file(wide(tmp_path / "b.csv", closes), now=NOW))
    assert history.listings[1].listed == DAYS[100].astype(object)


def test_a_long_file_keeps_its_versions_factors_and_currency(tmp_path):
    path = csv(tmp_path / "a.csv", {
        "instrument": ["A", "A", "A"], "date": ["2024-01-02", "2024-01-02", "2024-01-03"],
        "close": [10.0, 12.0, 11.0], "adj_factor": [0.5, 0.5, 1.0],
        "known_at": ["2024-01-02T21:00:00Z", "2024-01-09T00:00:00Z", "2024-01-03T21:00:00Z"],
    })  # fmt: skip
    history = market.history_of(market.snapshot_from_file(path, now=NOW))
    for day, closes in ((4, [5.0, 11.0]), (9, [6.0, 11.0])):
        assert history.as_of(datetime(2024, 1, day, tzinfo=UTC)).prices(2).values[:, 0].tolist() == closes
    path.write_text("instrument,date,close,currency\nA,2024-01-02,10,USD\nB,2024-01-02,11,EUR\n")
    refused(r"currency: a snapshot holds one.*\(got EUR, USD\)", market.snapshot_from_file, path, now=NOW)
    path.write_text(path.read_text().replace("USD", "EUR"))
    made = market.snapshot_from_file(path, now=NOW)
    assert set(made.tables["instruments"]["currency"].to_pylist()) == {"EUR"}
    refused("the file says EUR", market.snapshot_from_file, path, now=NOW, currency="USD")


def test_only_what_was_asked_for(tmp_path):
    path = wide(tmp_path / "a.csv", sound())
    snapshot = market.snapshot_from_file(path, now=NOW, symbols=["TWO"], start=date(2024, 2, 1), end=date(2024, 2, 29))
    assert set(snapshot.tables["bars"]["instrument"].to_pylist()) == {"TWO"}
    days = snapshot.tables["bars"]["event_date"].to_pylist()
    assert (min(days), max(days)) == (date(2024, 2, 1), date(2024, 2, 29))
    assert snapshot.id != market.snapshot_from_file(path, now=NOW).id
    ask = market.snapshot_from_file
    refused("NINE: the file has no such instrument", ask, path, now=NOW, symbols=["NINE"])
    refused("has no bar from 2030-01-01 to the last", ask, path, now=NOW, start=date(2030, 1, 1))


@pytest.mark.parametrize(("text", "message"), [
    ("<!DOCTYPE html><html>429 Too Many Requests</html>", "is a web page"),
    ("\ufeff\n <html><body>date,A\n2024-01-01,2\n</body></html>", "is a web page"),
    ("date,A\n2024-01-06,2\n", "no close on any weekday"),
    ("date,A_return\n2024-01-01,0.1\n", "no instrument beside its days"),
    ("date,A\n2024-01-01,-2\n", "A, 2024-01-01: a price must be positive"),
    ("date,A\n2024-01-01,1\n2024-01-01,1\n", "more than once with one known_at"),
    ("date,instrument,close,snapshot\n2024-01-01,A,1,s\n2024-01-02,A,1,t\n", "one file holds one snapshot"),
    ("date,instrument,close\n2024-01-01,,1\n", "row 1, instrument: is empty"), ("a,b\n1,2\n", "column of days"),
    ("date\n2024-01-01\n", "no instrument"), ("date,A\n2024-01-01,x\n", "not a number"),
    ("date,A\nmonday,1\n", "not a day such as"), ("date,A\n,1\n2024-01-01,2\n", "have no day"),
    ("date,A,A\n2024-01-01,1,2\n", "A: the column is there more than once"), ("date,A\n", "no rows"),
    ("", "holds no rows"),
])  # fmt: skip
def test_files_that_are_refused(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    refused(message, market.snapshot_from_file, tmp_path / "a.csv", now=NOW)
    if "one known_at" not in message and "weekday" not in message:
        refused(message, market.history_from_file, tmp_path / "a.csv")


def test_half_a_day_and_a_web_page_are_refused(tmp_path):
    for row in (-1, 60):
        closes = sound()
        closes[row, :3] = np.nan
        path, message = wide(tmp_path / "a.csv", closes), "only 1 of 4 instruments have a price: half a day"
        refused(message, market.snapshot_from_file, path, now=NOW)
    (tmp_path / "a.parquet").write_text("<html>no</html>")
    refused("is a web page", market.snapshot_from_file, tmp_path / "a.parquet", now=NOW)


def test_both_layouts_read_alike_and_days_are_those_of_the_file(tmp_path):
    closes, days = sound(), DAYS.copy()
    closes[40:42, 1] = np.nan
    history, problems = market.history_from_file(wide(tmp_path / "prices.csv", closes))
    other, _ = market.history_from_file(long(tmp_path / "b.parquet", closes))
    assert (problems, history.snapshot, tuple(one.id for one in history.listings)) == ([], "prices", IDS)
    for found, wanted in ((history.known_at, other.known_at), (history.bars["close"], other.bars["close"]),
                          (history.bars["close"], closes), (history.days, DAYS)):  # fmt: skip
        np.testing.assert_array_equal(found, wanted)
    # also those that fall on a weekend, or on which nothing has a price
    days[4], closes[7] = np.datetime64("2024-01-06"), np.nan
    history, _ = market.history_from_file(wide(tmp_path / "a.csv", closes, days), strict=False)
    np.testing.assert_array_equal(history.days, np.unique(days))
    np.testing.assert_array_equal(history.bars["close"], closes[np.argsort(days)])


def test_known_at_is_kept_and_must_be_a_time_and_not_early_and_a_file_holds_one_snapshot(tmp_path):
    count, path = DAYS.size * len(IDS), tmp_path / "a.parquet"
    history, _ = market.history_from_file(long(path, sound(), known_at=[datetime(2024, 7, 1, tzinfo=UTC)] * count))
    for t, known in ((datetime(2024, 6, 30, tzinfo=UTC), False), (datetime(2024, 7, 1, tzinfo=UTC), True)):
        assert (np.isfinite(history.as_of(t).prices(5).values) == known).all()
    for message, columns in (
        ("time with a zone", {"known_at": ["2024-07-01T00:00:00"] * count}),
        ("before their day", {"known_at": ["2023-01-01T00:00:00Z"] * count}),
        ("holds one snapshot", {"snapshot": ["s1"] * 99 + ["s2"] * (count - 99)}),
    ):
        refused(message, market.history_from_file, long(path, sound(), **columns))


def found_in(closes: np.ndarray, *limits: market.Limits, days: np.ndarray = DAYS, ids=IDS) -> list[str]:
    return [f"{one.where}: {one.what}" for one in market.price_findings(days, ids, closes, *limits)]


def test_sound_prices_have_no_problem_and_repeated_days_and_overlapping_snapshots_are_named(tmp_path):
    assert [found_in(sound(seed)) for seed in range(5)] == [[]] * 5
    closes = sound()
    closes[-1, :3] = np.nan
    assert "half a day" in found_in(closes)[0]
    closes = sound()
    closes[50:62, 2] = 77.0
    assert found_in(closes, market.Limits(stale_days=13)) == []
    days = DAYS.copy()
    days[1] = days[0]
    assert found_in(sound(), days=days, ids=("A", "A", "B", "C")) == [
        f"{days[0]}: the day is in the table more than once", "A: the instrument is in the table more than once",
    ]  # fmt: skip
    refused("more than once", market.history_from_file, wide(tmp_path / "a.csv", sound(), days), strict=False)
    first, second = sound()[:60, 0], sound()[40:, 0]
    second[3] += 1
    given = [("s1", "ONE", DAYS[:60], first), ("s2", "ONE", DAYS[40:], second), ("s2", "TWO", DAYS, second)]
    assert [str(one) for one in market.snapshot_problems(given)] == [
        "ONE: snapshots s1 and s2 overlap on 20 days and differ on 1; a store holds one snapshot"
    ]


YEAR = market.weekdays(date(2024, 1, 1), date(2024, 12, 31))
PLANTED = {
    "days in a row are missing": ((slice(30, 31 + market.LONG_GAP), 0), np.nan), "half a day": ((20, slice(3)), np.nan),
    "is stale": ((slice(110, None), 1), np.nan), "is frozen: 12 equal closes": ((slice(50, 62), 2), 77.0),
    "cannot be believed": ((70, 3), 1e3), "must be positive": ((90, 0), -1.0),
}  # fmt: skip


def listed(history: market.History, **changes: dict[str, object]) -> market.History:
    listings = (dataclasses.replace(one, **changes.get(one.id, {})) for one in history.listings)
    return dataclasses.replace(history, listings=tuple(listings))


def told(history: market.History) -> list[str]:
    return [one.what for one in market.condition(history).problems]


def test_each_fault_is_found_and_nothing_else_and_a_file_names_all_at_once(tmp_path):
    every, whole = sound(), small(days=YEAR)
    for what, (place, value) in PLANTED.items():
        closes, history = sound(), small(days=YEAR)
        closes[place] = every[place] = history.bars["close"][place] = value
        for found in (found_in(closes), told(history)):
            assert any(what in one for one in found), what
            assert len(found) <= (2 if what == "cannot be believed" else 1), what
    refused(
        "(?s)" + "".join(f"(?=.*{what})" for what in PLANTED), market.history_from_file, wide(tmp_path / "a.csv", every)
    )
    history, problems = market.history_from_file(tmp_path / "a.csv", strict=False)
    assert (len(problems), history.bars["close"].shape) == (len(found_in(every)), every.shape)
    assert told(whole) == []
    assert "after it was delisted" in told(listed(whole, TWO={"delisted": YEAR[150].astype(object)}))[0]
    assert "before it was listed" in told(listed(whole, TWO={"listed": YEAR[3].astype(object)}))[0]
    for what, field, row, value in (
        ("the high is below the close", "high", 50, 1.0),
        ("has no price", "close", slice(None), np.nan),
    ):
        history = small(days=YEAR)
        history.bars[field][row, 1] = value
        assert any(what in one for one in told(history)), what


def test_what_the_rules_deal_with_is_a_note_and_a_holiday_of_one_class_is_no_half_day():
    history = small(days=YEAR)
    close = history.bars["close"]
    close[50 : 50 + market.LONG_GAP, 1] = close[200:, 2] = np.nan
    close[100:150, 3] = 1.0
    history.bars["high"][:] = np.inf
    found = market.condition(listed(history, THREE={"delisted": YEAR[201].astype(object)}, FOUR={"asset_class": "CA"}))
    assert [one for one in found.problems if "return" not in one.what] == []
    assert {one.where.split(",")[0] for one in found.notes} == {"TWO", "FOUR"}
    history = small(days=YEAR)
    history.bars["close"][50, :3] = np.nan
    assert market.condition(listed(history, FOUR={"asset_class": "CR"})).problems == ()


def test_the_overview_counts_what_is_there_and_quotes_are_of_what_can_be_held():
    history = small()
    history.bars["close"][10:12, 0] = history.bars["close"][30:37, 1] = np.nan
    (found,) = market.class_overviews(history)
    counted = found.asset_class, found.instruments, found.missing, found.long_gaps, found.bars
    assert counted == ("EQ", 4, 9, 1, DAYS.size * 4 - 9)
    assert [(str(first), days) for first, days in market.gaps_of(history, "TWO")] == [(str(DAYS[30]), 7)]
    history = market.synthetic_history(0)
    assert [one.asset_class for one in market.class_overviews(history)] == list(market.CLASSES)
    view = history.as_of(datetime(2024, 3, 1, 22, tzinfo=UTC))
    found, prices = {one.listing.id: one for one in market.quotes(view)}, view.prices(61)
    assert set(found) <= set(view.held())
    close = prices.values[:, prices.ids.index("ALBIX")]
    assert (found["ALBIX"].close, found["ALBIX"].changes[1]) == (close[-1], pytest.approx(close[-1] / close[-21] - 1))
    assert {*market.quotes(small().as_of(datetime(2024, 1, 2, tzinfo=UTC)))[0].changes} == {None}
