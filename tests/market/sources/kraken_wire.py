"""One exchange as the client `ccxt` hears it: assets, pairs and daily bars."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from loopback import Reply, serving

from assaymark.market import sources

START = date(2024, 3, 1)
OHLC = "/0/public/OHLC"


def seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def kraken_pair(name: str, base: str, quote: str) -> dict:
    return {
        "altname": name, "wsname": f"{base}/{quote}", "aclass_base": "currency", "base": base,
        "aclass_quote": "currency",
        "quote": quote, "lot": "unit", "pair_decimals": 1, "lot_decimals": 8, "lot_multiplier": 1, "leverage_buy": [],
        "leverage_sell": [], "fees": [[0, 0.4]], "fees_maker": [[0, 0.25]], "fee_volume_currency": "ZUSD",
        "ordermin": "0.0001", "costmin": "0.5", "tick_size": "0.1", "status": "online",
    }  # fmt: skip


PAIRS = {
    "XXBTZUSD": kraken_pair("XBTUSD", "XXBT", "ZUSD"),
    "XETHZUSD": kraken_pair("ETHUSD", "XETH", "ZUSD"),
    "XXBTZEUR": kraken_pair("XBTEUR", "XXBT", "ZEUR"),
}
ASSETS = {
    name: {"aclass": "currency", "altname": short, "decimals": 10, "display_decimals": 5, "status": "enabled"}
    for name, short in {"XXBT": "XBT", "XETH": "ETH", "ZUSD": "USD", "ZEUR": "EUR"}.items()
}


def candles(first: date = START, days: int = 8, price: float = 100.0) -> list:
    """Rows of the exchange: time, open, high, low, close, average, volume, count."""
    return [
        [seconds(first + timedelta(place)), f"{price + place}", f"{price + place + 2}", f"{price + place - 2}",
         f"{price + place + 1}", f"{price}", f"{10 + place}.5", 7]
        for place in range(days)
    ]  # fmt: skip


def kraken(**bars: list):
    """The exchange with these bars by the name of the pair."""

    def answer(path: str, query: dict[str, str]) -> Reply:
        if path.endswith("/0/public/Assets"):
            return Reply.json({"error": [], "result": ASSETS})
        if path.endswith("/0/public/AssetPairs"):
            return Reply.json({"error": [], "result": PAIRS})
        rows = [row for row in bars[query["pair"]] if row[0] > int(query["since"])]
        return Reply.json({"error": [], "result": {query["pair"]: rows, "last": 0}})

    return serving(answer, at=OHLC)


def asked(url: str, *pairs: str, exchange: str = "kraken", **options: str) -> sources.Request:
    options = {"endpoint": url, "exchange": exchange, **options}
    return sources.Request(symbols=pairs or ("BTC/USD",), start=START, options=options)
