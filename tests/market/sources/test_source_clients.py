"""The clients of four sources, unchanged, against their services' wire formats on loopback."""

from __future__ import annotations

import hashlib
import json
import traceback
from datetime import UTC, date, datetime, timedelta

import market_wires as wires
import pytest
from huggingface_hub import constants
from huggingface_hub.utils import _http, get_session
from loopback import BROKEN, PAGE, Reply, serving
from market_wires import COMMIT, DAYS, FIRST, KEY, QA, REPO, START, TOKEN, candles, chart, seconds

from assaymark.errors import InputError, UnknownNameError
from assaymark.market import open_history, sources, write_snapshot


def columns(table, *names: str) -> list[tuple[object, ...]]:
    return [tuple(one[name] for name in names) for one in table.to_pylist()]


def traced(caught) -> str:
    """A traceback with the values of all frames but the test's own, which holds the key."""
    below = caught.value.__traceback__.tb_next
    return "".join(
        traceback.TracebackException(InputError, caught.value, below, capture_locals=True).format(chain=True)
    )


# ccxt: markets and daily bars of two exchanges


def test_bars_of_an_exchange_are_known_at_the_end_of_their_day(tmp_path, pull):
    with wires.kraken(XXBTZUSD=candles(), XETHZUSD=candles(price=50.0)) as there:
        found = pull("ccxt", wires.kraken_asked(there.url, "BTC/USD", "ETH/USD"))
    bars = [one for one in found.tables["bars"].to_pylist() if one["instrument"] == "BTC/USD"]
    # The eighth bar is of the day of asking, which is not over.
    wanted = [(START + timedelta(place), 101.0 + place, 1.0) for place in range(7)]
    assert [(one["event_date"], one["close"], one["adj_factor"]) for one in bars] == wanted
    first = [bars[0][name] for name in ("open", "high", "low", "volume", "known_at")]
    assert first == [100.0, 102.0, 98.0, 10.5, datetime(2024, 3, 2, tzinfo=UTC)]
    listed = columns(found.tables["instruments"], "id", "class", "currency", "calendar")
    assert listed == [(name, "CR", "USD", "daily") for name in ("BTC/USD", "ETH/USD")]
    assert found.id.startswith("ccxt-2024-03-08-")
    write_snapshot(tmp_path / "store", found)
    history = open_history(tmp_path / "store")
    for moment, close in (((5, 0, 0), 104.0), ((5, 23, 59), 104.0), ((6, 0, 0), 105.0)):
        assert history.as_of(datetime(2024, 3, *moment, tzinfo=UTC)).prices(1).values[-1, 0] == close
    with wires.kraken(XXBTZUSD=candles(date(2024, 3, 4), 4)) as there:
        notes = pull("ccxt", wires.kraken_asked(there.url)).origin.notes
    assert any("asked for from 2024-03-01, the first bar" in note and "2024-03-04" in note for note in notes)


def test_pages_are_asked_for_until_the_end(pull):
    first = date(2021, 1, 1)
    symbol = {
        "symbol": "BTCUSDT", "status": "TRADING", "baseAsset": "BTC", "baseAssetPrecision": 8, "quoteAsset": "USDT",
        "quotePrecision": 8, "orderTypes": ["LIMIT"], "isSpotTradingAllowed": True, "isMarginTradingAllowed": False,
        "filters": [], "permissions": ["SPOT"],
    }  # fmt: skip
    all_rows = [
        [seconds(first + timedelta(place)) * 1000, "1.0", "1.5", "0.5", f"{1 + place / 1000:.3f}", "9.0",
         (seconds(first + timedelta(place)) + 86_399) * 1000, "9.0", 3, "1", "1", "0"]
        for place in range((date(2024, 3, 7) - first).days + 1)
    ]  # fmt: skip

    def binance(path: str, query: dict[str, str]) -> Reply:
        if path.endswith("/exchangeInfo"):
            return Reply.json({"timezone": "UTC", "serverTime": 0, "rateLimits": [], "symbols": [symbol]})
        rows = [row for row in all_rows if row[0] >= int(query["startTime"])]
        return Reply.json(rows[: int(query["limit"])])

    with serving(binance) as there:
        options = {"endpoint": there.url, "exchange": "binance"}
        found = pull("ccxt", sources.Request(symbols=("BTC/USDT",), start=first, options=options))
    assert found.tables["bars"].num_rows == len(all_rows) == 1162
    starts = [int(query["startTime"]) for _, path, query in there.asked if path.endswith("/klines")]
    # The last page is the empty one: the day of asking has no bar yet.
    assert starts == [all_rows[0][0], all_rows[1000][0], all_rows[-1][0] + 86_400_000]
    assert found.tables["instruments"]["currency"].to_pylist() == ["USDT"]


def test_an_exchange_that_repeats_itself_ends_and_one_that_never_ends_is_stopped(pull, refused, monkeypatch):
    monkeypatch.setattr(sources.bars, "_MOST_PAGES", 3)
    with wires.kraken(whole=True, XXBTZUSD=candles(days=2)) as there:
        assert pull("ccxt", wires.kraken_asked(there.url)).tables["bars"].num_rows == 2
    assert len(there.paths(wires.OHLC)) == 2

    def endless(since: str) -> list:
        return candles(datetime.fromtimestamp(int(since) + 86_400, UTC).date(), 1)

    with wires.kraken(whole=True, XXBTZUSD=endless) as there:
        said = refused("ccxt", wires.kraken_asked(there.url))
    assert "BTC/USD: is not at its end after 3 pages; ask for fewer days" in said


def test_rows_of_another_shape_cannot_be_read_and_only_spot_pairs_are_taken(told, refused, monkeypatch):
    with wires.kraken() as there:
        for rows in ([[seconds(START) * 1000, "x"]], [[seconds(START) * 1000, 1.0]], [["x"]], [[]]):
            monkeypatch.setattr("ccxt.kraken.fetch_ohlcv", lambda *_, rows=rows: rows)
            assert "BTC/USD: the reply cannot be read" in refused("ccxt", wires.kraken_asked(there.url))
        monkeypatch.setattr("ccxt.kraken.load_markets", lambda *_: {"BTC/USD:USD": {"spot": False, "type": "swap"}})
        said = refused("ccxt", wires.kraken_asked(there.url, "BTC/USD:USD"))
    assert "BTC/USD:USD: is a swap of kraken; only spot pairs are taken" in said
    with pytest.raises(UnknownNameError, match=r"unknown exchange 'krakn'\. Did you mean 'kraken'"):
        sources.pull("ccxt", wires.kraken_asked("https://localhost", exchange="krakn"), **told)


# fredapi: series, observations, vintages


def test_values_of_today_carry_an_assumed_release_and_periods_end_with_their_last_day(pull):
    with wires.fred() as there:
        found = pull("fred", wires.fred_asked(there.url))
    names = ("ref_period", "value", "realtime_start", "realtime_end", "unit", "title")
    # The service names a month by its first day; a period here is its last day.
    assert columns(found.tables["macro"], *names)[0] == (
        date(2024, 1, 31), 3.7, datetime(2024, 3, 6, 12, tzinfo=UTC), None, "%", "UNRATE rate",
    )  # fmt: skip
    assert found.tables["macro"]["ref_period"].to_pylist()[1] == date(2024, 2, 29)
    assert any("not what was known then" in note for note in found.origin.notes)
    assert found.id.startswith("fred-2024-03-08-")
    for every, *end in (("D", 1, 1), ("W", 1, 1), ("Q", 3, 31), ("SA", 6, 30), ("A", 12, 31)):
        with wires.fred(every, latest=FIRST[:1]) as there:
            found = pull("fred", wires.fred_asked(there.url, lag_days="2"))
        ((period, start),) = columns(found.tables["macro"], "ref_period", "realtime_start")
        assert (period, start.date()) == (date(2024, *end), date(2024, *end) + timedelta(days=2))


def test_each_vintage_lasts_until_the_next_of_its_period_and_reads_as_it_stood(tmp_path, pull):
    with wires.fred() as there:
        found = pull("alfred", wires.fred_asked(there.url))
        request = wires.fred_asked(there.url)
        bounded = sources.Request(symbols=request.symbols, start=date(2024, 1, 1), options=request.options)
        assert pull("alfred", bounded).tables["macro"].num_rows == 1
        pull("fred", bounded)
    assert there.asked[-1][2]["observation_start"] == "2024-01-01"
    first, revised = datetime(2024, 1, 6, tzinfo=UTC), datetime(2024, 2, 3, tzinfo=UTC)
    assert columns(found.tables["macro"], "ref_period", "value", "realtime_start", "realtime_end") == [
        (date(2023, 12, 31), 3.7, first, revised), (date(2023, 12, 31), 3.8, revised, None),
        (date(2024, 1, 31), 3.7, revised, None),
    ]  # fmt: skip
    write_snapshot(tmp_path / "store", found)
    history = open_history(tmp_path / "store")
    rate = [history.as_of(datetime(2024, *day, tzinfo=UTC)).macro("UNRATE") for day in ((1, 5), (1, 6), (2, 2), (2, 3))]
    assert [one.value for one in rate] == [None, 3.7, 3.7, 3.7]
    assert [str(one.period) for one in rate[1:]] == ["2023-12-31", "2023-12-31", "2024-01-31"]


@pytest.mark.parametrize("source", ["fred", "alfred"])
def test_a_wrong_key_is_one_line_and_nowhere_in_a_traceback(source, told):
    with wires.fred() as there, pytest.raises(InputError, match="the key is refused") as caught:
        sources.pull(source, wires.fred_asked(there.url, key=KEY[::-1]), **told)
    assert "\n" not in str(caught.value)
    assert KEY[::-1] not in traced(caught)
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.parametrize("fault", [
    wires.fred_error(f"Bad Request. {KEY} is strange"), Reply(f"<error {KEY}".encode(), 400),
    Reply(f"<{KEY}/>".encode()), BROKEN, Reply(b"<obs", cut=True), Reply(f"<html>{KEY}</html>".encode()),
])  # fmt: skip
def test_no_fault_of_the_service_brings_the_key_out(fault, told, caplog, capfd):
    with wires.fred() as there:
        there.faults = [fault] * 20
        with pytest.raises(InputError, match="source fred") as caught:
            sources.pull("fred", wires.fred_asked(there.url), **told)
    assert KEY not in traced(caught) + caplog.text + "".join(capfd.readouterr())


def test_no_key_is_in_what_is_kept_and_no_key_is_no_question(pull, refused):
    with wires.fred() as there:
        request = wires.fred_asked(there.url)
        found = pull("fred", request)
        assert KEY not in repr(request) + repr(found.origin) + repr(found.tables)
        assert KEY in there.asked[0][2]["api_key"]
        there.asked.clear()
        said = refused("fred", sources.Request(symbols=("UNRATE",), options={"endpoint": there.url}))
    assert "FRED_API_KEY" in said
    assert there.asked == []


# huggingface_hub: tables and questions of a dataset


def test_the_market_table_says_its_traps_and_uses_no_return(pull):
    factory = _http._GLOBAL_CLIENT_FACTORY
    with wires.hub() as there:
        found = pull("huggingface", wires.hub_asked(there.url, currency="USD"))
        some = pull("huggingface", wires.hub_asked(there.url, "BBB", start=date(2024, 2, 1))).tables["bars"]
    bars = found.tables["bars"].to_pylist()
    assert {one["instrument"] for one in bars} == {"AAA", "BBB", "CCC"}
    assert all(one["event_date"].weekday() < 5 for one in bars)
    assert bars[0]["close"] == 100.0
    notes = "\n".join(found.origin.notes)
    said = ("winsorised over the whole sample", "log returns", f"commit {COMMIT}",
            "the dataset's card states the licence: cc-by-4.0")  # fmt: skip
    assert [one for one in said if one not in notes] == []
    assert found.id.startswith("huggingface-2024-03-08-")
    assert {(one["snapshot"], one["source"]) for one in bars} == {(found.id, f"huggingface {REPO}")}
    # The commit that the service named is the one that is fetched, not a branch that may move.
    assert all(COMMIT in path for path in there.paths("resolve"))
    assert (set(columns(some, "instrument")), columns(some, "event_date")[0]) == ({("BBB",)}, (date(2024, 2, 1),))
    # The client is left as it was.
    assert _http._GLOBAL_CLIENT_FACTORY is factory
    assert "send" not in vars(get_session())
    assert constants.HF_HUB_DISABLE_XET is False


def test_questions_are_laid_down_with_where_they_are_from_and_never_replace_others(tmp_path, told):
    with wires.hub() as there:
        found = sources.pull_questions(wires.hub_asked(there.url, token=TOKEN), tmp_path, **told)
        assert found.path.read_bytes() == wires.QUESTIONS
        assert (found.items, found.sha256) == (5, hashlib.sha256(wires.QUESTIONS).hexdigest())
        said = json.loads(found.provenance.read_text())
        assert (said["items"], said["commit"], said["sha256"]) == (5, COMMIT, found.sha256)
        assert any("PortBench states 6,269" in note for note in said["notes"])
        assert TOKEN not in found.provenance.read_text() + repr(found)
        assert sorted(one.name for one in tmp_path.iterdir()) == [QA, f"{QA}.provenance.json"]
        (tmp_path / QA).write_bytes(b"mine")
        with pytest.raises(InputError, match="is another file already"):
            sources.pull_questions(wires.hub_asked(there.url), tmp_path, **told)
    assert (tmp_path / QA).read_bytes() == b"mine"


def test_a_file_that_holds_no_questions_leaves_nothing(tmp_path, told):
    for data, said in (
        (b'{"id": 1}\n[]\n{"id": 1, "id": 2}\nNaN\n\xff\n', "line 2: is not a JSON object"),
        (b'{"id": 1}\n{"id"', "line 2: is not one JSON object"), (b"\n\n", "holds no question"),
        (PAGE.body, "the answer is an HTML page, not data"),
    ):  # fmt: skip
        with wires.hub({QA: data}) as there, pytest.raises(InputError, match="source huggingface") as caught:
            sources.pull_questions(wires.hub_asked(there.url), tmp_path, **told)
        assert said in str(caught.value)
        assert [one for one in tmp_path.iterdir() if one.name.startswith(QA)] == []


def test_no_token_is_in_a_traceback(told):
    with wires.hub(private=True) as there, pytest.raises(InputError, match="the token is refused") as caught:
        sources.pull("huggingface", wires.hub_asked(there.url, token=TOKEN), **told)
    assert TOKEN not in traced(caught)


# yfinance reads charts


def test_bars_keep_their_closes_and_carry_dividends_in_the_factor(pull):
    import yfinance

    before = yfinance.config.debug.hide_exceptions
    with wires.yahoo(SPY=chart("SPY")) as there:
        found = pull("yfinance", wires.yahoo_asked(there.url, "SPY"))
        again = pull("yfinance", wires.yahoo_asked(there.url, "SPY"))
    with wires.yahoo(SPY=chart("SPY", close=[100.0, 101.0, 102.0, 103.5, 104.0])) as there:
        other = pull("yfinance", wires.yahoo_asked(there.url, "SPY"))
    # The day of asking was not over at noon, so its bar is no bar yet.
    wanted = [(day, 100.0 + n, pytest.approx(0.99 if n < 2 else 1.0)) for n, day in enumerate(DAYS[:4])]
    assert columns(found.tables["bars"], "event_date", "close", "adj_factor") == wanted
    assert columns(found.tables["bars"], "known_at", "snapshot")[0] == (datetime(2024, 3, 4, 21, tzinfo=UTC), found.id)
    listed = columns(found.tables["instruments"], "currency", "class", "listed")
    assert listed == [("USD", "EQ", date(1993, 1, 29))]
    assert "redistribution is not granted" in found.origin.licence
    assert all(any(said in note for note in found.origin.notes) for said in ("1 bars", "guessed for SPY"))
    # The id follows from the content.
    assert found.id == again.id != other.id
    assert found.id.startswith("yfinance-2024-03-08-")
    # The client is left as it was.
    assert yfinance.config.debug.hide_exceptions is before is True
    assert "request" not in vars(yfinance.data.YfData()._session)


def test_prices_before_a_split_are_those_that_were_traded(pull):
    told = chart("SPY", close=[100.0, 101.0, 10.4, 10.5, 10.6], adj=[9.95, 10.05, 10.4, 10.5, 10.6])
    result = told["chart"]["result"][0]
    quote, (paid, split) = result["indicators"]["quote"][0], result["timestamp"][1:3]
    for name in ("open", "high", "low", "close"):  # the service states every price in units of today
        quote[name] = [one / 10 if place < 2 else one for place, one in enumerate(quote[name])]
    result["events"] = {
        "dividends": {str(paid): {"amount": 0.05, "date": paid}},
        "splits": {str(split): {"date": split, "numerator": 10.0, "denominator": 1.0, "splitRatio": "10:1"}},
    }
    with wires.yahoo(SPY=told) as there:
        found = pull("yfinance", wires.yahoo_asked(there.url, "SPY"))
    close, volume, factor = zip(*columns(found.tables["bars"], "close", "volume", "adj_factor"), strict=True)
    assert close == pytest.approx([100.0, 101.0, 10.4, 10.5])
    assert volume == pytest.approx([100.0, 100.1, 1002.0, 1003.0])
    assert [one * other for one, other in zip(close, factor, strict=True)] == pytest.approx([9.95, 10.05, 10.4, 10.5])
    actions = columns(found.tables["actions"], "ex_date", "split", "dividend")
    assert actions == [(DAYS[1], 1.0, pytest.approx(0.5)), (DAYS[2], 10.0, 0.0)]


def test_a_market_that_never_closes_is_known_at_the_end_of_its_day_and_classes_are_said_by_option(pull):
    meta = {"instrumentType": "CRYPTOCURRENCY", "exchangeTimezoneName": "UTC", "timezone": "UTC", "gmtoffset": 0}
    with wires.yahoo(**{"BTC-USD": chart("BTC-USD", **meta), "TLT": chart("TLT")}) as there:
        found = pull("yfinance", wires.yahoo_asked(there.url, "BTC-USD"))
        bond = pull("yfinance", wires.yahoo_asked(there.url, "TLT", **{"class.TLT": "BO"}))
    assert columns(found.tables["bars"], "known_at")[0] == (datetime(2024, 3, 5, tzinfo=UTC),)
    assert columns(found.tables["instruments"], "calendar") == [("daily",)]
    assert columns(bond.tables["instruments"], "class") == [("BO",)]
