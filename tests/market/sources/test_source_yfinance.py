"""The client `yfinance`, unchanged, against its service's wire format on loopback: chart, cookie, crumb and consent."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
import yfinance
from loopback import Reply, serving

from assaymark.errors import InputError
from assaymark.market import sources

DAYS = (date(2024, 3, 4), date(2024, 3, 5), date(2024, 3, 6), date(2024, 3, 7), date(2024, 3, 8))
CHART = "/v8/finance/chart/"


def chart(symbol: str, *, days=DAYS, close=None, adj=None, **meta: object) -> dict:
    """One chart as the service words it; closes rise by one, and a dividend lies behind the second day."""
    close = close or [100.0 + place for place in range(len(days))]
    adj = adj or [one * (0.99 if place < 2 else 1.0) for place, one in enumerate(close)]
    opens = [int(datetime(one.year, one.month, one.day, 14, 30, tzinfo=UTC).timestamp()) for one in days]
    told = {
        "currency": "USD", "symbol": symbol, "exchangeName": "PCX", "instrumentType": "ETF",
        "longName": f"{symbol} Trust", "firstTradeDate": 728317800,
        "regularMarketTime": opens[-1] if opens else 0, "gmtoffset": -18000, "timezone": "EST",
        "exchangeTimezoneName": "America/New_York", "priceHint": 2, "dataGranularity": "1d", "range": "",
        "validRanges": ["1d", "5d", "max"], "currentTradingPeriod": {},
    }  # fmt: skip
    quote = {
        "open": [one - 0.5 for one in close], "high": [one + 1 for one in close], "low": [one - 1 for one in close],
        "close": close, "volume": [1000 + place for place in range(len(days))],
    }  # fmt: skip
    result = {"meta": {**told, **meta}, "timestamp": opens,
              "indicators": {"quote": [quote], "adjclose": [{"adjclose": adj}]}}  # fmt: skip
    return {"chart": {"result": [result], "error": None}}


def service(**charts: dict):
    """The service with these charts; any other symbol is unknown to it."""

    def answer(path: str, query: dict[str, str]) -> Reply:
        if path.endswith("/v1/test/getcrumb"):
            return Reply(b"a.crumb", kind="text/plain")
        if CHART in path and (symbol := path.rsplit("/", 1)[1]) in charts:
            return Reply.json(charts[symbol])
        if CHART in path:
            error = {"code": "Not Found", "description": "No data found, symbol may be delisted"}
            return Reply.json({"chart": {"result": None, "error": error}}, 404)
        return Reply(b"<html><body>consent</body></html>", 404, "text/html")

    return serving(answer, at=CHART)


def asked(url: str, *symbols: str, **options: str) -> sources.Request:
    return sources.Request(symbols=symbols, start=DAYS[0], options={"endpoint": url, **options})


def refused(there, request, now, manners) -> str:
    with pytest.raises(InputError, match="source yfinance") as caught:
        sources.pull("yfinance", request, now=now, manners=manners)
    return str(caught.value)


def test_bars_keep_their_closes_and_carry_dividends_in_the_factor(now, manners):
    with service(SPY=chart("SPY")) as there:
        found = sources.pull("yfinance", asked(there.url, "SPY"), now=now, manners=manners)
    bars = found.tables["bars"].to_pylist()
    # The day of asking was not over at noon, so its bar is no bar yet.
    assert [one["event_date"] for one in bars] == list(DAYS[:4])
    assert [one["close"] for one in bars] == [100.0, 101.0, 102.0, 103.0]
    assert [one["adj_factor"] for one in bars] == pytest.approx([0.99, 0.99, 1.0, 1.0])
    assert bars[0]["known_at"] == datetime(2024, 3, 4, 21, tzinfo=UTC)
    assert {one["snapshot"] for one in bars} == {found.id}
    (listed,) = found.tables["instruments"].to_pylist()
    assert (listed["currency"], listed["class"], listed["listed"]) == ("USD", "EQ", date(1993, 1, 29))
    assert "redistribution is not granted" in found.origin.licence
    assert any("1 bars" in note for note in found.origin.notes)
    assert any("guessed for SPY" in note for note in found.origin.notes)


def test_prices_before_a_split_are_those_that_were_traded(now, manners):
    told = chart("SPY", close=[100.0, 101.0, 10.4, 10.5, 10.6], adj=[9.95, 10.05, 10.4, 10.5, 10.6])
    result = told["chart"]["result"][0]
    # the service states every price in units of today
    result["indicators"]["quote"][0] |= {
        name: [one / 10 if place < 2 else one for place, one in enumerate(result["indicators"]["quote"][0][name])]
        for name in ("open", "high", "low", "close")
    }
    paid, split = result["timestamp"][1], result["timestamp"][2]
    result["events"] = {
        "dividends": {str(paid): {"amount": 0.05, "date": paid}},
        "splits": {str(split): {"date": split, "numerator": 10.0, "denominator": 1.0, "splitRatio": "10:1"}},
    }
    with service(SPY=told) as there:
        found = sources.pull("yfinance", asked(there.url, "SPY"), now=now, manners=manners)
    bars = found.tables["bars"].to_pylist()
    assert [one["close"] for one in bars] == pytest.approx([100.0, 101.0, 10.4, 10.5])
    assert [one["volume"] for one in bars] == pytest.approx([100.0, 100.1, 1002.0, 1003.0])
    assert [one["close"] * one["adj_factor"] for one in bars] == pytest.approx([9.95, 10.05, 10.4, 10.5])
    actions = [(one["ex_date"], one["split"], one["dividend"]) for one in found.tables["actions"].to_pylist()]
    assert actions == [(DAYS[1], 1.0, pytest.approx(0.5)), (DAYS[2], 10.0, 0.0)]


def test_the_id_follows_from_the_content(now, manners):
    with service(SPY=chart("SPY")) as there:
        first, again = (
            sources.pull("yfinance", asked(there.url, "SPY"), now=now, manners=manners).id for _ in range(2)
        )
    with service(SPY=chart("SPY", close=[100.0, 101.0, 102.0, 103.5, 104.0])) as there:
        other = sources.pull("yfinance", asked(there.url, "SPY"), now=now, manners=manners).id
    assert first == again != other
    assert first.startswith("yfinance-2024-03-08-")


def test_a_market_that_never_closes_is_known_at_the_end_of_its_day(now, manners):
    meta = {"instrumentType": "CRYPTOCURRENCY", "exchangeTimezoneName": "UTC", "timezone": "UTC", "gmtoffset": 0}
    with service(**{"BTC-USD": chart("BTC-USD", **meta)}) as there:
        found = sources.pull("yfinance", asked(there.url, "BTC-USD"), now=now, manners=manners)
    assert found.tables["bars"]["known_at"].to_pylist()[0] == datetime(2024, 3, 5, tzinfo=UTC)
    assert found.tables["instruments"]["calendar"].to_pylist() == ["daily"]


def test_unknown_symbols_are_all_named_and_nothing_is_given(now, manners):
    with service(SPY=chart("SPY")) as there:
        said = refused(there, asked(there.url, "SPY", "NOPE", "NADA"), now, manners)
    assert "NOPE: is not known or has no prices" in said
    assert "NADA: is not known or has no prices" in said
    assert "SPY:" not in said


@pytest.mark.parametrize(
    ("charts", "said"),
    [
        ({"A": chart("A", close=[1.0, -2.0, 3.0, 4.0, 5.0])}, "A, 2024-03-05: a close must be positive (got -2)"),
        ({"A": chart("A"), "B": chart("B", currency="EUR")}, "one snapshot holds one currency"),
        ({"A": chart("A", currency=None)}, "A: the reply names no currency"),
        ({"A": chart("A", instrumentType="CURRENCY")}, "of the kind CURRENCY, which has no asset class"),
        ({"A": chart("A", days=DAYS[:1])["chart"]["result"][0]}, "A: "),
        ({"A": {"chart": {"result": [{"meta": {}, "timestamp": []}], "error": None}}}, "A: "),
        (
            {"A": chart("A"), "B": chart("B", days=DAYS[:3]), "C": chart("C", days=DAYS[:3])},
            "2024-03-07: only 1 of 3 instruments have a bar (A): half a day?",
        ),
    ],
    ids=["negative", "currencies", "no currency", "kind", "other shape", "no quotes", "half a day"],
)
def test_wrong_answers_are_named(charts, said, now, manners):
    with service(**charts) as there:
        assert said in refused(there, asked(there.url, *charts), now, manners)


def test_the_client_is_left_as_it_was(now, manners):
    before = yfinance.config.debug.hide_exceptions
    with service(SPY=chart("SPY")) as there:
        sources.pull("yfinance", asked(there.url, "SPY"), now=now, manners=manners)
    assert yfinance.config.debug.hide_exceptions is before is True
    session = yfinance.data.YfData()._session
    assert "request" not in vars(session)


def test_classes_are_said_by_option(now, manners):
    with service(TLT=chart("TLT")) as there:
        found = sources.pull("yfinance", asked(there.url, "TLT", **{"class.TLT": "BO"}), now=now, manners=manners)
        wrong = refused(there, asked(there.url, "TLT", **{"class.TLT": "XX", "class.SPY": "EQ"}), now, manners)
    assert found.tables["instruments"]["class"].to_pylist() == ["BO"]
    assert "must be one of EQ, BO, CO, CR, RE, CA (got 'XX')" in wrong
    assert "class.SPY: names a symbol that is not asked for" in wrong
