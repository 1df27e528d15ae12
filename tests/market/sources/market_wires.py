"""The services of four sources as their clients hear them, each with a request of it."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta

import numpy as np
from loopback import Reply, serving

from assaymark.market import sources

START = date(2024, 3, 1)
END = "9999-12-31"


def seconds(day: date, hour: int = 0, minute: int = 0) -> int:
    return int(datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC).timestamp())


# Macro series as `fredapi` hears them: series, observations and vintages of UNRATE, for one key

KEY = "canary0123456789canary0123456789"
HEAD = '<?xml version="1.0" encoding="utf-8" ?>\n'
FIRST = (("2024-01-01", "3.7", "2024-02-02", END), ("2024-02-01", "3.9", "2024-03-08", END))
VINTAGES = (
    ("2023-12-01", "3.7", "2024-01-05", "2024-02-01"), ("2023-12-01", "3.8", "2024-02-02", END),
    ("2024-01-01", "3.7", "2024-02-02", END), ("2024-02-01", ".", "2024-03-08", END),
)  # fmt: skip


def fred_error(message: str) -> Reply:
    return Reply(f'{HEAD}<error code="400" message="{message}"/>'.encode(), 400, "text/xml")


def fred(every: str = "M", latest=FIRST, vintages=VINTAGES, limit: int = 100_000, count: int | None = None):
    today = 'realtime_start="2024-03-08" realtime_end="2024-03-08"'

    def answer(path: str, query: dict[str, str]) -> Reply:
        if query.get("api_key") != KEY:
            return fred_error("Bad Request.  The value for variable api_key is not registered.")
        if query.get("series_id") != "UNRATE":
            return fred_error("Bad Request.  The series does not exist.")
        if path == "/fred/series":
            text = (
                f'<seriess {today}>\n<series id="UNRATE" {today} title="UNRATE rate" observation_start="1948-01-01" '
                f'observation_end="2024-02-01" frequency="any" frequency_short="{every}" units="Percent" '
                'units_short="%" seasonal_adjustment="SA" last_updated="2024-03-08 07:50:02-06" popularity="94" '
                'notes="none"/>\n</seriess>\n'
            )
        else:
            rows = vintages if query.get("realtime_start") == "1776-07-04" else latest
            lines = "".join(
                f'<observation realtime_start="{start}" realtime_end="{end}" date="{day}" value="{value}"/>\n'
                for day, value, start, end in rows
            )
            text = (
                f'<observations {today} observation_start="1600-01-01" observation_end="{END}" units="lin" '
                'output_type="1" file_type="xml" order_by="observation_date" sort_order="asc" '
                f'count="{count or len(rows)}" offset="0" limit="{limit}">\n{lines}</observations>\n'
            )
        return Reply((HEAD + text).encode(), kind="text/xml")

    return serving(answer, at="/fred/")


def fred_asked(url: str, *symbols: str, key: str = KEY, **options: str) -> sources.Request:
    options = {"endpoint": f"{url}/fred", "api_key": key, **options}
    return sources.Request(symbols=symbols or ("UNRATE",), options=options)


# One exchange as `ccxt` hears it: assets, pairs and daily bars

OHLC = "/0/public/OHLC"


def kraken_pair(base: str, quote: str) -> dict:
    return {
        "altname": base[1:] + quote[1:], "wsname": f"{base}/{quote}", "aclass_base": "currency", "base": base,
        "aclass_quote": "currency", "quote": quote, "lot": "unit", "pair_decimals": 1, "lot_decimals": 8,
        "lot_multiplier": 1, "leverage_buy": [], "leverage_sell": [], "fees": [[0, 0.4]], "fees_maker": [[0, 0.25]],
        "fee_volume_currency": "ZUSD", "ordermin": "0.0001", "costmin": "0.5", "tick_size": "0.1", "status": "online",
    }  # fmt: skip


PAIRS = {base + quote: kraken_pair(base, quote)
         for base, quote in (("XXBT", "ZUSD"), ("XETH", "ZUSD"), ("XXBT", "ZEUR"))}  # fmt: skip
ASSETS = {
    name: {"aclass": "currency", "altname": name[1:], "decimals": 10, "display_decimals": 5, "status": "enabled"}
    for name in ("XXBT", "XETH", "ZUSD", "ZEUR")
}


def candles(first: date = START, days: int = 8, price: float = 100.0) -> list:
    """Rows of the exchange: time, open, high, low, close, average, volume, count."""
    return [
        [seconds(first + timedelta(place)), f"{price + place}", f"{price + place + 2}", f"{price + place - 2}",
         f"{price + place + 1}", f"{price}", f"{10 + place}.5", 7]
        for place in range(days)
    ]  # fmt: skip


def kraken(whole: bool = False, **bars):
    """The exchange with these bars by the name of the pair, or what is called for them, ``whole`` whatever is asked."""

    def answer(path: str, query: dict[str, str]) -> Reply:
        if not path.endswith(OHLC):
            return Reply.json({"error": [], "result": ASSETS if path.endswith("/Assets") else PAIRS})
        rows = bars[query["pair"]]
        rows = rows(query["since"]) if callable(rows) else rows
        rows = [row for row in rows if whole or row[0] > int(query["since"])]
        return Reply.json({"error": [], "result": {query["pair"]: rows, "last": 0}})

    return serving(answer, at=OHLC)


def kraken_asked(url: str, *pairs: str, **options: str) -> sources.Request:
    options = {"endpoint": url, "exchange": "kraken", **options}
    return sources.Request(symbols=pairs or ("BTC/USD",), start=START, options=options)


# Daily prices as `yfinance` hears them: chart, cookie, crumb and consent

DAYS = tuple(date(2024, 3, day) for day in range(4, 9))
CHART = "/v8/finance/chart/"


def chart(symbol: str, *, days=DAYS, close=None, adj=None, **meta: object) -> dict:
    """One chart as the service words it; closes rise by one, and a dividend lies behind the second day."""
    close = close or [100.0 + place for place in range(len(days))]
    adj = adj or [one * (0.99 if place < 2 else 1.0) for place, one in enumerate(close)]
    opens = [seconds(one, 14, 30) for one in days]
    told = {
        "currency": "USD", "symbol": symbol, "exchangeName": "PCX", "instrumentType": "ETF",
        "longName": f"{symbol} Trust", "firstTradeDate": 728317800, "regularMarketTime": opens[-1] if opens else 0,
        "gmtoffset": -18000, "timezone": "EST", "exchangeTimezoneName": "America/New_York", "priceHint": 2,
        "dataGranularity": "1d", "range": "", "validRanges": ["1d", "5d", "max"], "currentTradingPeriod": {},
    }  # fmt: skip
    quote = {
        "open": [one - 0.5 for one in close], "high": [one + 1 for one in close], "low": [one - 1 for one in close],
        "close": close, "volume": [1000 + place for place in range(len(days))],
    }  # fmt: skip
    told_bars = {"quote": [quote], "adjclose": [{"adjclose": adj}]}
    result = {"meta": {**told, **meta}, "timestamp": opens, "indicators": told_bars}
    return {"chart": {"result": [result], "error": None}}


def yahoo(**charts: dict):
    """The service with these charts; any other symbol is unknown to it."""

    def answer(path: str, query: dict[str, str]) -> Reply:
        if path.endswith("/v1/test/getcrumb"):
            return Reply(b"a.crumb", kind="text/plain")
        if CHART not in path:
            return Reply(b"<html><body>consent</body></html>", 404, "text/html")
        if (symbol := path.rsplit("/", 1)[1]) in charts:
            return Reply.json(charts[symbol])
        error = {"code": "Not Found", "description": "No data found, symbol may be delisted"}
        return Reply.json({"chart": {"result": None, "error": error}}, 404)

    return serving(answer, at=CHART)


def yahoo_asked(url: str, *symbols: str, **options: str) -> sources.Request:
    return sources.Request(symbols=symbols, start=DAYS[0], options={"endpoint": url, **options})


# A dataset as `huggingface_hub` hears it: card, HEAD, GET

REPO, COMMIT, TOKEN = "lab/PortBench", "a" * 40, "hf_canary0123456789"
FILE, QA = "PortBench-Market.csv", "PortBench-QA.jsonl"
QUESTIONS = b"".join(b'{"id": %d, "question": "which?", "answer": "A"}\n' % place for place in range(5))


def hub_table() -> bytes:
    """A small table of PortBench's shape: calendar days, columns by class and ticker, log returns beside prices."""
    names = ["equities_AAA", "bonds_BBB", "cryptocurrency_CCC"]
    fields = ["open", "high", "low", "close", "volume", "return"]
    lines = ["date," + ",".join(f"{name}_{one}" for name in names for one in fields)]
    for place, day in enumerate(np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-02-10"))):
        for close in (100.0 + place, 50.0 + 0.1 * place, 9.0 + 0.5 * place):
            day = f"{day},{close - 0.1:.2f},{close + 0.2:.2f},{close - 0.2:.2f},{close:.2f},1000,{np.log1p(0.01):.6f}"
        lines.append(day)
    return ("\n".join(lines) + "\n").encode()


def hub(files: dict[str, bytes] | None = None, *, private: bool = False, sizes: dict[str, int] | None = None):
    """The service with one dataset."""
    files = {FILE: hub_table(), QA: QUESTIONS, "README.md": b"# card"} if files is None else files
    siblings = [
        {"rfilename": name, "size": (sizes or {}).get(name, len(data)), "blobId": "b" * 40}
        for name, data in files.items()
    ]
    card = {"id": REPO, "sha": COMMIT, "private": False, "gated": False, "disabled": False, "downloads": 0, "likes": 0,
            "tags": ["license:cc-by-4.0", "finance"], "siblings": siblings}  # fmt: skip

    def answer(path: str, query: dict[str, str]) -> Reply:
        if path == f"/api/datasets/{REPO}" and not private:
            return Reply.json(card)
        resolve = f"/datasets/{REPO}/resolve/{COMMIT}/"
        if path.startswith(resolve) and (data := files.get(path.removeprefix(resolve))) is not None:
            etag = hashlib.sha256(data).hexdigest()
            return Reply(data, headers={"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}, kind="text/plain")
        return Reply.json({"error": "Repository not found"}, 401 if private else 404, X_Error_Code="RepoNotFound")

    return serving(answer)


def hub_asked(url: str, *symbols: str, start: date | None = None, **options: str) -> sources.Request:
    return sources.Request(symbols=symbols, start=start, options={"endpoint": url, "repo": REPO, **options})


WIRES = {
    "yfinance": (yahoo, yahoo_asked), "fred": (fred, fred_asked), "alfred": (fred, fred_asked),
    "ccxt": (kraken, kraken_asked), "huggingface": (hub, hub_asked),
}  # fmt: skip
"""The service of each source, and a request of it."""
