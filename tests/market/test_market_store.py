"""Snapshots on disk: written whole, checked when read, never mixed; the cache; files as a source; what is wrong."""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
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


def small(seed: int = 0, days: np.ndarray = DAYS, **changes: object) -> market.History:
    rng = np.random.default_rng(seed)
    close = 100 * np.exp(np.cumsum(rng.standard_normal((days.size, len(IDS))) * 0.01, axis=0))
    listings = tuple(market.Listing(name, "EQ", "sub", name.title(), date(2024, 1, 1)) for name in IDS)
    bars = {"close": close, "high": close * 1.01, "volume": np.full(close.shape, 1e6)}
    whole = market.History(listings, days, bars, market.known_at_close(days, len(IDS)), source="test", snapshot="small")
    return dataclasses.replace(whole, **changes)


def stored(folder: Path, seed: int = 0, id: str = "small") -> market.Snapshot:
    snapshot = market.snapshot_of(small(seed), id, ORIGIN)
    market.write_snapshot(folder, snapshot)
    return snapshot


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in folder.iterdir() if one.is_file()}


# --- writing and reading ----------------------------------------------------------------------------------------------


def test_what_is_written_is_what_is_read(tmp_path):
    snapshot = stored(tmp_path / "new" / "store")
    found = market.read_snapshot(tmp_path / "new" / "store")
    assert (found.id, found.origin) == ("small", ORIGIN)
    for name, schema in PLAIN.items():
        assert found.tables[name].schema.equals(schema)
        assert content_digest(found.tables[name]) == content_digest(snapshot.tables[name])
    assert sorted(files(tmp_path / "new" / "store")) == sorted(
        [*(f"{name}.parquet" for name in PLAIN), "snapshot.json"]
    )


def test_the_synthetic_market_goes_through_disk_unchanged(tmp_path):
    market.write_snapshot(tmp_path, market.synthetic_snapshot(0))
    history, origin = market.open_history(tmp_path), market.synthetic_history(0)
    again = market.open_history(tmp_path)
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
    before = files(tmp_path)
    market.write_snapshot(
        tmp_path, market.snapshot_of(small(), "small", dataclasses.replace(ORIGIN, retrieved_at=datetime.now(UTC)))
    )
    for seed, id, message in ((1, "small", "also called"), (0, "other", "give a new folder for")):
        with pytest.raises(InputError, match=message):
            stored(tmp_path, seed, id)
    assert files(tmp_path) == before
    with pytest.raises(LedgerError, match="cannot write"):
        stored(tmp_path / "snapshot.json")  # no folder


@pytest.mark.parametrize("name", [*(f"{name}.parquet" for name in PLAIN), "snapshot.json"])
@pytest.mark.parametrize("harm", ["flip", "cut", "gone"])
def test_damage_is_named_and_the_same_snapshot_repairs_it(tmp_path, name, harm):
    snapshot = stored(tmp_path)
    path = tmp_path / name
    data = path.read_bytes()
    middle = len(data) // 2
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(
            data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :] if harm == "flip" else data[:-9]
        )
    if name == "snapshot.json" and harm == "gone":
        with pytest.raises(InputError, match="holds no market snapshot"):
            market.open_history(tmp_path)
        return
    with pytest.raises(LedgerError, match=name):
        market.read_snapshot(tmp_path)
    with pytest.raises(LedgerError, match=name):
        market.open_history(tmp_path)
    if name != "snapshot.json":
        market.write_snapshot(tmp_path, snapshot)
        assert content_digest(market.read_snapshot(tmp_path).tables["bars"]) == content_digest(snapshot.tables["bars"])


@pytest.mark.parametrize("text", [
    b"", b"[]", b"null", b'{"format": 1}', b'{"format": 2}', b"[" * 100_000, b"\xff", b'{"format": 1, "id": NaN}',
    b" " * ((1 << 20) + 1),
])  # fmt: skip
def test_a_hostile_manifest_is_no_snapshot(tmp_path, text):
    (tmp_path / "snapshot.json").write_bytes(text)
    with pytest.raises(LedgerError, match="larger than" if len(text) > 1 << 20 else r"snapshot\.json"):
        market.read_manifest(tmp_path)


def test_a_kill_while_writing_leaves_no_snapshot(tmp_path, monkeypatch):
    real, left = os.fsync, iter([True, True, False])

    def fsync(descriptor: int) -> None:
        if not next(left, False):
            raise KeyboardInterrupt("killed")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KeyboardInterrupt, match="killed"):
        stored(tmp_path)
    monkeypatch.undo()
    with pytest.raises(InputError, match="holds no market snapshot"):
        market.read_manifest(tmp_path)
    stored(tmp_path)
    assert market.open_history(tmp_path).days.size == DAYS.size


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.none() | st.text(max_size=3), st.lists(st.none() | st.text(max_size=2), max_size=3))))
def test_a_content_digest_is_of_the_rows_and_not_of_how_they_lie(rows):
    first = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows], pa.list_(pa.string()))}
    )
    parts = pa.concat_tables([first.slice(0, len(rows) // 2), first.slice(len(rows) // 2)])
    assert content_digest(parts) == content_digest(first)
    if rows:
        assert content_digest(first.slice(1)) != content_digest(first)
        changed = first.set_column(0, "a", pa.array([f"{one}x" for one, _ in rows], pa.string()))
        assert content_digest(changed) != content_digest(first)


# --- what makes no store ----------------------------------------------------------------------------------------------


def changed(name: str, **columns: object) -> market.Snapshot:
    """The small snapshot with the first row of a table changed."""
    tables = dict(market.snapshot_of(small(), "small", ORIGIN).tables)
    rows = tables[name].to_pylist()
    rows[0] |= columns
    return market.Snapshot("small", ORIGIN, {**tables, name: pa.Table.from_pylist(rows, schema=SCHEMAS[name])})


def test_a_file_that_names_two_currencies_is_refused_and_one_is_kept(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text("instrument,date,close,currency\nA,2024-01-02,10,USD\nB,2024-01-02,11,EUR\n")
    with pytest.raises(InputError, match=r"currency: a snapshot holds one.*\(got EUR, USD\)"):
        market.snapshot_from_file(path, now=NOW)
    path.write_text("instrument,date,close,currency\nA,2024-01-02,10,EUR\nB,2024-01-02,11,EUR\n")
    made = market.snapshot_from_file(path, now=NOW)
    assert set(made.tables["instruments"]["currency"].to_pylist()) == {"EUR"}
    with pytest.raises(InputError, match="the file says EUR"):
        market.snapshot_from_file(path, now=NOW, currency="USD")


@pytest.mark.parametrize(("columns", "message"), [
    ({"class": "FX"}, "ONE: has the class 'FX'; classes are EQ"),
    ({"id": "TWO"}, "TWO: the instrument is in the table more than once"),
    ({"id": None, "class": None}, "(?s)2 problems.*row 1: has no id.*row 1: has the class None"),
    ({"currency": "EUR"}, r"EUR: ONE; USD: TWO, THREE, FOUR\); make one snapshot a currency"),
])  # fmt: skip
def test_instruments_that_make_no_store(columns, message):
    with pytest.raises(InputError, match=message):
        market.history_of(changed("instruments", **columns))
    # one without a day of listing is listed from its first bar
    assert market.history_of(changed("instruments", listed=None)).listings[0].listed == date(2024, 1, 1)


def test_news_and_filings_must_have_their_time():
    news = {"id": "1", "published_at": None, "instruments": [], "text": "x", "source": "y"}
    filed = {"instrument": "ONE", "period": "2024-Q1", "field": "f", "value": None, "unit": "u", "filed_at": None}
    tables = {"news": [news], "fundamentals": [filed]}
    arrow = {name: pa.Table.from_pylist(rows, schema=SCHEMAS[name]) for name, rows in tables.items()}
    with pytest.raises(InputError, match="3 problems"):
        market.history_of(market.Snapshot("bad", ORIGIN, arrow))


def test_a_snapshot_without_bars_is_a_store_of_what_else_there_is(tmp_path):
    periods = np.array(["2024-01-31"], dtype="datetime64[D]")
    series = market.MacroSeries("rate", "Rate", "percent", "month", 75, periods, np.ones(1), released_after(periods, 1))
    empty = np.empty(0, "datetime64[D]")
    whole = market.History((), empty, {"close": np.empty((0, 0))}, np.empty((0, 0), np.int64), macro=(series,))
    market.write_snapshot(tmp_path, market.snapshot_of(whole, "macro", ORIGIN))
    history = market.open_history(tmp_path)
    assert history.as_of(datetime(2024, 2, 2, tzinfo=UTC)).macro("rate").value == 1.0
    assert market.class_overviews(history) == ()
    assert market.condition(history).problems == ()


# --- the cache --------------------------------------------------------------------------------------------------------


def test_the_second_opening_maps_the_cache(tmp_path, monkeypatch):
    stored(tmp_path)
    first = market.open_history(tmp_path)
    monkeypatch.setattr("assaymark.market.history.wide_bars", None)
    second = market.open_history(tmp_path)
    assert isinstance(second.bars["close"].base, np.memmap)
    assert not second.bars["close"].flags.writeable
    np.testing.assert_array_equal(first.bars["close"], second.bars["close"])
    np.testing.assert_array_equal(first.known_at, second.known_at)


@pytest.mark.parametrize("harm", ["flip", "cut", "gone", "index", "other key"])
def test_a_cache_that_does_not_fit_is_made_again(tmp_path, harm):
    stored(tmp_path)
    wanted = market.open_history(tmp_path).bars["close"].copy()
    path = tmp_path / "cache" / "bar-close.npy"
    data = path.read_bytes()
    match harm:
        case "flip":
            path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
        case "cut":
            path.write_bytes(data[:-8])
        case "gone":
            path.unlink()
        case "index":
            (tmp_path / "cache" / "index.json").write_text("{")
        case _:
            index = json.loads((tmp_path / "cache" / "index.json").read_text())
            (tmp_path / "cache" / "index.json").write_text(json.dumps({**index, "key": "0" * 64}))
    assert cached_bars(tmp_path, market.read_manifest(tmp_path).digest) is None
    np.testing.assert_array_equal(market.open_history(tmp_path).bars["close"], wanted)
    assert cached_bars(tmp_path, market.read_manifest(tmp_path).digest) is not None


def test_a_folder_that_is_only_read_needs_no_cache(tmp_path, monkeypatch):
    stored(tmp_path)

    def refuse(path: Path, data: bytes) -> None:
        raise LedgerError(f"cannot write {path}")

    monkeypatch.setattr(cache_module, "write_atomic", refuse)
    assert market.open_history(tmp_path).days.size == DAYS.size
    assert not (tmp_path / "cache").exists()


# --- files ------------------------------------------------------------------------------------------------------------


def csv(path: Path, columns: dict[str, list[object]]) -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [
        ",".join(columns),
        *(",".join("" if one is None or one != one else str(one) for one in row) for row in rows),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def portbench(path: Path) -> Path:
    """Two months of calendar days as PortBench's market file lays them out, its levels cut at both ends."""
    days, rng = all_days(date(2024, 1, 1), date(2024, 2, 29)), np.random.default_rng(0)
    columns: dict[str, list[object]] = {"date": days.astype(str).tolist()}
    for name in ("equities_SPY", "equities_XLF", "bonds_TLT", "real_estate_VNQ", "cryptocurrency_BTC_USD", "cash_BIL"):
        price = 100 * np.exp(np.cumsum(rng.normal(0, 0.01, days.size)))
        if "crypto" not in name:
            price[~np.is_busday(days)] = np.nan
        else:
            price[:20] = np.nan
        returns = np.concatenate([[np.nan], np.diff(np.log(price))])
        price = np.clip(price, *np.nanpercentile(price, [5, 95]))
        fields = ("open", "high", "low", "close") if name.startswith(("equ", "real", "cry")) else ("close",)
        columns |= {f"{name}_{field}": price.tolist() for field in fields}
        columns[f"{name}_return"] = returns.tolist()
    columns["cash_fred_FEDFUNDS"] = [5.33] * days.size
    columns["equities_text_json"] = ['"[{""a"": ""b, c""}]"'] * days.size
    return csv(path, columns)


def test_portbench_market_is_read_with_its_traps_written_down(tmp_path):
    snapshot = market.snapshot_from_file(portbench(tmp_path / "market-base-dataset.csv"), now=NOW)
    history = market.history_of(snapshot)
    assert {one.id: one.asset_class for one in history.listings} == {
        "SPY": "EQ", "XLF": "EQ", "TLT": "BO", "VNQ": "RE", "BTC_USD": "CR", "BIL": "CA"
    }  # fmt: skip
    assert not any("return" in one.id for one in history.listings)
    notes = " ".join(snapshot.origin.notes)
    assert set(market.PORTBENCH_NOTES) <= set(snapshot.origin.notes)
    for said in (
        "winsorised over the whole sample", "6 columns ending in _return", "log returns", "2 columns of macro",
        "16 Sat",
    ):  # fmt: skip
        assert said in notes
    assert history.days.size == market.weekdays(date(2024, 1, 1), date(2024, 2, 29)).size
    assert set(history.bars) == {"open", "high", "low", "close"}
    # Simple returns come from the closes, not from the file's log returns.
    view = history.as_of(datetime(2024, 3, 1, tzinfo=UTC))
    closes, returns = view.prices(5).values, view.returns(4).values
    np.testing.assert_allclose(returns, closes[1:] / closes[:-1] - 1)


def test_a_day_of_crypto_is_known_when_it_is_over(tmp_path):
    history = market.history_of(market.snapshot_from_file(portbench(tmp_path / "m.csv"), now=NOW))
    column = [one.id for one in history.listings].index("BTC_USD")
    view = history.as_of(datetime(2024, 2, 28, 23, 59, tzinfo=UTC)).prices(1, filled=False)
    assert np.isnan(view.values[0, column])
    assert np.isfinite(view.values[0, 0])
    assert np.isfinite(history.as_of(datetime(2024, 2, 29, tzinfo=UTC)).prices(1).values[0, column])


def wide(path: Path, closes: np.ndarray, days: np.ndarray = DAYS, ids: tuple[str, ...] = IDS) -> Path:
    columns = {"Date": days.astype(str).tolist(), **{name: closes[:, n].tolist() for n, name in enumerate(ids)}}
    return csv(path, columns)


def test_a_plain_wide_file_and_its_columns_of_returns(tmp_path):
    closes = small().bars["close"]
    path = wide(tmp_path / "a.csv", closes, ids=("ONE", "TWO", "ONE_return", "ONE_log_returns"))
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


def test_a_long_file_keeps_its_versions_and_factors(tmp_path):
    path = csv(
        tmp_path / "a.csv",
        {
            "instrument": ["A", "A", "A"], "date": ["2024-01-02", "2024-01-02", "2024-01-03"],
            "close": [10.0, 12.0, 11.0], "adj_factor": [0.5, 0.5, 1.0],
            "known_at": ["2024-01-02T21:00:00Z", "2024-01-09T00:00:00Z", "2024-01-03T21:00:00Z"],
        },
    )  # fmt: skip
    history = market.history_of(market.snapshot_from_file(path, now=NOW))
    assert history.as_of(datetime(2024, 1, 4, tzinfo=UTC)).prices(2).values[:, 0].tolist() == [5.0, 11.0]
    assert history.as_of(datetime(2024, 1, 9, tzinfo=UTC)).prices(2).values[:, 0].tolist() == [6.0, 11.0]


def test_only_what_was_asked_for(tmp_path):
    path = wide(tmp_path / "a.csv", small().bars["close"])
    snapshot = market.snapshot_from_file(path, now=NOW, symbols=["TWO"], start=date(2024, 2, 1), end=date(2024, 2, 29))
    assert set(snapshot.tables["bars"]["instrument"].to_pylist()) == {"TWO"}
    days = snapshot.tables["bars"]["event_date"].to_pylist()
    assert (min(days), max(days)) == (date(2024, 2, 1), date(2024, 2, 29))
    assert snapshot.id != market.snapshot_from_file(path, now=NOW).id
    with pytest.raises(InputError, match="NINE: the file has no such instrument"):
        market.snapshot_from_file(path, now=NOW, symbols=["NINE"])
    with pytest.raises(InputError, match="has no bar from 2030-01-01 to the last"):
        market.snapshot_from_file(path, now=NOW, start=date(2030, 1, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
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
    ],
)  # fmt: skip
def test_files_that_are_refused(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        market.snapshot_from_file(tmp_path / "a.csv", now=NOW)
    if "one known_at" not in message and "weekday" not in message:
        with pytest.raises(InputError, match=message):
            market.history_from_file(tmp_path / "a.csv")


def test_half_a_day_and_a_web_page_are_refused(tmp_path):
    for row in (-1, 60):
        closes = small().bars["close"].copy()
        closes[row, :3] = np.nan
        with pytest.raises(InputError, match="only 1 of 4 instruments have a price: half a day"):
            market.snapshot_from_file(wide(tmp_path / "a.csv", closes), now=NOW)
    (tmp_path / "a.parquet").write_text("<html>no</html>")
    with pytest.raises(InputError, match="is a web page"):
        market.snapshot_from_file(tmp_path / "a.parquet", now=NOW)


# --- the condition of a store -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 5])
def test_the_synthetic_market_has_notes_and_no_problem(seed):
    found = market.condition(market.synthetic_history(seed))
    assert found.problems == ()
    assert sum("days in a row are missing" in one.what for one in found.notes) > 15
    assert [one.where for one in found.notes if "has ended" in one.what] == ["interbank_spread"]


def harmed(harm: str) -> market.History:
    history = small(days=market.weekdays(date(2024, 1, 1), date(2024, 12, 31)))
    close, listings = history.bars["close"], list(history.listings)
    match harm:
        case "cannot be believed":
            close[50, 1] *= 9
        case "is frozen":
            close[50:70, 1] = 5.0
        case "days in a row":
            close[50 : 51 + market.LONG_GAP, 1] = np.nan
        case "half a day":
            close[50, :3] = np.nan
        case "is stale":
            close[150:, 1] = np.nan
        case "after it was delisted":
            listings[1] = dataclasses.replace(listings[1], delisted=history.days[150].astype(object))
        case "before it was listed":
            listings[1] = dataclasses.replace(listings[1], listed=history.days[3].astype(object))
        case "the high is below the close":
            history.bars["high"][50, 1] = 1.0
        case "must be positive":
            close[50, 1] = -close[50, 1]
        case "has no price":
            close[:, 1] = np.nan
    return dataclasses.replace(history, listings=tuple(listings))


HARMS = ("cannot be believed", "is frozen", "days in a row", "half a day", "is stale", "after it was delisted",
         "before it was listed", "the high is below the close", "must be positive", "has no price")  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_each_harm_is_a_problem_that_is_named(harm):
    found = market.condition(harmed(harm))
    assert any(harm in one.what for one in found.problems)
    assert market.condition(harmed("none")).problems == ()


def test_what_the_rules_deal_with_is_a_note():
    history = harmed("none")
    history.bars["close"][50 : 50 + market.LONG_GAP, 1] = np.nan
    history.bars["close"][200:, 2] = np.nan
    listings = list(history.listings)
    listings[2] = dataclasses.replace(listings[2], delisted=history.days[201].astype(object))
    listings[3] = dataclasses.replace(listings[3], asset_class="CA")
    history.bars["close"][100:150, 3] = 1.0
    history.bars["high"][:] = np.inf
    found = market.condition(dataclasses.replace(history, listings=tuple(listings)))
    assert [one for one in found.problems if "return" not in one.what] == []
    assert {one.where.split(",")[0] for one in found.notes} == {"TWO", "FOUR"}


def test_a_holiday_of_one_class_is_no_half_day():
    history = harmed("none")
    listings = [dataclasses.replace(one, asset_class="CR" if one.id == "FOUR" else "EQ") for one in history.listings]
    history.bars["close"][50, :3] = np.nan
    assert market.condition(dataclasses.replace(history, listings=tuple(listings))).problems == ()


# --- the overview -----------------------------------------------------------------------------------------------------


def test_the_overview_counts_what_is_there():
    history = small()
    history.bars["close"][10:12, 0] = np.nan
    history.bars["close"][30:37, 1] = np.nan
    (found,) = market.class_overviews(history)
    assert (found.asset_class, found.instruments, found.missing, found.long_gaps) == ("EQ", 4, 9, 1)
    assert found.bars == DAYS.size * 4 - 9
    assert [(str(first), days) for first, days in market.gaps_of(history, "TWO")] == [(str(DAYS[30]), 7)]
    assert [one.asset_class for one in market.class_overviews(market.synthetic_history(0))] == list(market.CLASSES)


def test_quotes_are_of_what_can_be_held():
    history = market.synthetic_history(0)
    view = history.as_of(datetime(2024, 3, 1, 22, tzinfo=UTC))
    found = {one.listing.id: one for one in market.quotes(view)}
    assert set(found) <= set(view.held())
    prices = view.prices(61)
    column = prices.ids.index("ALBIX")
    assert found["ALBIX"].close == prices.values[-1, column]
    assert found["ALBIX"].changes[1] == pytest.approx(prices.values[-1, column] / prices.values[-21, column] - 1)
    assert all(change is None for change in market.quotes(small().as_of(datetime(2024, 1, 2, tzinfo=UTC)))[0].changes)
