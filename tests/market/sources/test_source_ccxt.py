"""The client `ccxt`, unchanged, against the wire formats of two exchanges on loopback: markets and daily bars."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from kraken_wire import ASSETS, OHLC, PAIRS, START, asked, candles, kraken, seconds
from loopback import Reply, serving

from assaymark.errors import InputError, UnknownNameError
from assaymark.market import sources


def refused(there, request, now, manners) -> str:
    with pytest.raises(InputError, match="source ccxt") as caught:
        sources.pull("ccxt", request, now=now, manners=manners)
    return str(caught.value)


def test_bars_are_known_at_the_end_of_their_day(now, manners):
    with kraken(XXBTZUSD=candles(), XETHZUSD=candles(price=50.0)) as there:
        found = sources.pull("ccxt", asked(there.url, "BTC/USD", "ETH/USD"), now=now, manners=manners)
    bars = [one for one in found.tables["bars"].to_pylist() if one["instrument"] == "BTC/USD"]
    # The eighth bar is of the day of asking, which is not over.
    assert [one["event_date"] for one in bars] == [START + timedelta(place) for place in range(7)]
    assert [one["close"] for one in bars] == [101.0 + place for place in range(7)]
    assert (bars[0]["open"], bars[0]["high"], bars[0]["low"], bars[0]["volume"]) == (100.0, 102.0, 98.0, 10.5)
    assert bars[0]["known_at"] == datetime(2024, 3, 2, tzinfo=UTC)
    assert {one["adj_factor"] for one in bars} == {1.0}
    instruments = found.tables["instruments"].to_pylist()
    assert [(one["id"], one["class"], one["currency"], one["calendar"]) for one in instruments] == [
        ("BTC/USD", "CR", "USD", "daily"),
        ("ETH/USD", "CR", "USD", "daily"),
    ]
    assert found.id.startswith("ccxt-2024-03-08-")


def test_a_history_that_begins_later_says_so(now, manners):
    with kraken(XXBTZUSD=candles(date(2024, 3, 4), 4)) as there:
        found = sources.pull("ccxt", asked(there.url), now=now, manners=manners)
    assert any(
        "asked for from 2024-03-01, the first bar" in note and "2024-03-04" in note for note in found.origin.notes
    )


def test_pages_are_asked_for_until_the_end(now, manners):
    first = date(2021, 1, 1)
    days = (date(2024, 3, 7) - first).days + 1
    symbol = {
        "symbol": "BTCUSDT", "status": "TRADING", "baseAsset": "BTC", "baseAssetPrecision": 8, "quoteAsset": "USDT",
        "quotePrecision": 8, "orderTypes": ["LIMIT"], "isSpotTradingAllowed": True, "isMarginTradingAllowed": False,
        "filters": [], "permissions": ["SPOT"],
    }  # fmt: skip
    all_rows = [
        [seconds(first + timedelta(place)) * 1000, "1.0", "1.5", "0.5", f"{1 + place / 1000:.3f}", "9.0",
         (seconds(first + timedelta(place)) + 86_399) * 1000, "9.0", 3, "1", "1", "0"]
        for place in range(days)
    ]  # fmt: skip

    def binance(path: str, query: dict[str, str]) -> Reply:
        if path.endswith("/exchangeInfo"):
            return Reply.json({"timezone": "UTC", "serverTime": 0, "rateLimits": [], "symbols": [symbol]})
        rows = [row for row in all_rows if row[0] >= int(query["startTime"])]
        return Reply.json(rows[: int(query["limit"])])

    with serving(binance) as there:
        request = sources.Request(
            symbols=("BTC/USDT",), start=first, options={"endpoint": there.url, "exchange": "binance"}
        )  # fmt: skip
        found = sources.pull("ccxt", request, now=now, manners=manners)
    assert found.tables["bars"].num_rows == days == 1162
    starts = [int(query["startTime"]) for _, path, query in there.asked if path.endswith("/klines")]
    # The last page is the empty one: the day of asking has no bar yet.
    assert starts == [all_rows[0][0], all_rows[1000][0], all_rows[-1][0] + 86_400_000]
    assert found.tables["instruments"]["currency"].to_pylist() == ["USDT"]


def test_unknown_pairs_are_all_named_before_any_bar_is_asked_for(now, manners):
    with kraken() as there:
        said = refused(there, asked(there.url, "BTC/USD", "NO/PE", "NA/DA"), now, manners)
    assert [line.strip() for line in said.splitlines()[1:]] == [
        "NO/PE: is not known to kraken",
        "NA/DA: is not known to kraken",
    ]
    assert there.paths(OHLC) == []


@pytest.mark.parametrize(
    ("bars", "pairs", "said"),
    [
        (
            {"XXBTZUSD": [[*candles()[0][:4], "-1.0", *candles()[0][5:]]]},
            ["BTC/USD"],
            "a close must be positive (got -1)",
        ),
        ({"XXBTZUSD": []}, ["BTC/USD"], "BTC/USD: has no bar in the days asked for"),
        ({"XXBTZUSD": [[seconds(START), "1", "2"]]}, ["BTC/USD"], "a close must be positive (got nan)"),
        ({"XXBTZUSD": [["soon", "1", "2", "1", "1", "1", "1", 1]]}, ["BTC/USD"], "has no bar in the days"),
        ({"XXBTZUSD": candles(), "XXBTZEUR": candles()}, ["BTC/USD", "BTC/EUR"], "EUR: BTC/EUR; USD: BTC/USD"),
    ],
    ids=["negative", "empty", "cut bar", "no time", "currencies"],
)
def test_wrong_answers_are_named(bars, pairs, said, now, manners):
    def answer(path: str, query: dict[str, str]) -> Reply:
        if path.endswith("/0/public/Assets"):
            return Reply.json({"error": [], "result": ASSETS})
        if path.endswith("/0/public/AssetPairs"):
            return Reply.json({"error": [], "result": PAIRS})
        return Reply.json({"error": [], "result": {query["pair"]: bars[query["pair"]], "last": 0}})

    with serving(answer) as there:
        assert said in refused(there, asked(there.url, *pairs), now, manners)


def test_an_exchange_that_repeats_itself_ends_and_one_that_never_ends_is_stopped(now, manners, monkeypatch):
    monkeypatch.setattr(sources.bars, "_MOST_PAGES", 3)

    def endless(since: str) -> list:
        return candles(datetime.fromtimestamp(int(since) + 86_400, UTC).date(), 1)

    def answering(rows):
        def answer(path: str, query: dict[str, str]) -> Reply:
            if path.endswith(OHLC):
                return Reply.json({"error": [], "result": {"XXBTZUSD": rows(query["since"]), "last": 0}})
            return Reply.json({"error": [], "result": ASSETS if path.endswith("Assets") else PAIRS})

        return serving(answer)

    with answering(lambda _: candles(days=2)) as there:
        assert sources.pull("ccxt", asked(there.url), now=now, manners=manners).tables["bars"].num_rows == 2
    assert len(there.paths(OHLC)) == 2
    with answering(endless) as there:
        said = refused(there, asked(there.url), now, manners)
    assert "BTC/USD: is not at its end after 3 pages; ask for fewer days" in said


@pytest.mark.parametrize("rows", [[[seconds(START) * 1000, "x"]], [[seconds(START) * 1000, 1.0]], [["x"]], [[]]])
def test_rows_of_another_shape_cannot_be_read_and_only_spot_pairs_are_taken(rows, now, manners, monkeypatch):
    monkeypatch.setattr("ccxt.kraken.fetch_ohlcv", lambda *_: rows)
    with kraken() as there:
        assert "BTC/USD: the reply cannot be read" in refused(there, asked(there.url), now, manners)
        monkeypatch.setattr("ccxt.kraken.load_markets", lambda *_: {"BTC/USD:USD": {"spot": False, "type": "swap"}})
        said = refused(there, asked(there.url, "BTC/USD:USD"), now, manners)
    assert "BTC/USD:USD: is a swap of kraken; only spot pairs are taken" in said


@pytest.mark.parametrize(("options", "said"), [
    ({"timeframe": "1m"}, "must be 1d: a snapshot holds one bar a day"),
    ({"exchange": ""}, "such as exchange=kraken"),
])  # fmt: skip
def test_wrong_options_are_named(options, said, now, manners):
    request = sources.Request(symbols=("BTC/USD",), options={"exchange": "kraken", **options})
    assert said in refused(None, request, now, manners)


def test_an_unknown_exchange_is_answered_with_the_right_name(now, manners):
    with pytest.raises(UnknownNameError, match=r"unknown exchange 'krakn'\. Did you mean 'kraken'"):
        sources.pull(
            "ccxt", sources.Request(symbols=("BTC/USD",), options={"exchange": "krakn"}), now=now, manners=manners
        )
