"""Daily bars: of listed instruments through the client `yfinance`, of spot pairs of an exchange through `ccxt`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from assaymark.errors import InputError, Problem, check_known
from assaymark.market.history import CLOSE_OF_DAY, FIELDS
from assaymark.market.instruments import CLASSES, AssetClass, CorporateAction
from assaymark.market.sources import request as service
from assaymark.market.sources.request import (
    DailySeries,
    Pull,
    Request,
    RetryPolicy,
    ServiceUnavailable,
    SourceTables,
    TransientError,
    safe_line,
)
from assaymark.records import grouped


def _fetch_series(
    items: str, request: Request, asking: Pull, series_of: Callable[[str], DailySeries],
    noted: Callable[[DailySeries, DailySeries], str],
) -> tuple[list[DailySeries], list[str]]:  # fmt: skip
    """Fetch all series within the requested days, with notes. Raises `InputError` if any of them has a problem."""
    fetched: list[DailySeries] = []
    problems: list[Problem] = []
    notes = []
    for symbol in asking.each(items, request.symbols):
        try:
            series = series_of(symbol)
        except InputError as exc:
            problems += exc.problems
            continue
        trimmed = series.within(request.first, request.last(asking.now), asking.now)
        notes.append(noted(series, trimmed))
        problems += service.series_problems(trimmed)
        fetched.append(trimmed)
    # Problems of all series together: more than one currency, or a last day with less than half of them
    currencies = grouped(fetched, lambda series: series.currency)
    if len(currencies) > 1:
        listed = "; ".join(
            f"{currency or 'none'}: {', '.join(one.id for one in of)}" for currency, of in sorted(currencies.items())
        )
        problems.append(Problem("currency", f"one snapshot holds one currency, pull each by itself ({listed})"))
    ends = {series.id: series.days[-1] for series in fetched if series.days.size}
    last = max(ends.values(), default=None)
    there = [name for name, day in ends.items() if day == last]
    if 2 * len(there) < len(ends):
        sentence = f"only {len(there)} of {len(ends)} instruments have a bar ({', '.join(there)}): half a day? "
        problems.append(Problem(str(last), sentence + "Ask again later, or with an earlier end"))
    if problems:
        raise InputError("bars", problems)
    return fetched, [*filter(None, notes)]


_TIMES = (
    "bars count as known at 21:00 UTC of their day, those of markets that never close and of funds at its end; what "
    "the source corrected later is not marked"
)
_TRADED = (
    "prices are as they were traded: the splits that the source takes out of earlier prices are put back, as far as it "
    "lists them"
)
_FACTOR = (
    "adj_factor carries splits and dividends and is as of the day of retrieval: a later one changes it for every "
    "earlier day"
)
_YAHOO_NOTES = (_TRADED, _FACTOR, _TIMES)

YAHOO = service.Source(
    name="yfinance", extra="yfinance",
    needs="symbols as the service spells them, such as SPY",
    licence="the terms of the data vendor apply: personal use, redistribution is not granted",
    options={
        "class.": "class.SYMBOL=EQ|BO|CO|CR|RE|CA: the asset class, where the service's own kind does not say it",
        "endpoint": "a gateway that is asked in place of the service: ENDPOINT/<host>/<path>",
    },
)  # fmt: skip

_KINDS: Mapping[str, AssetClass] = {
    "EQUITY": "EQ", "ETF": "EQ", "MUTUALFUND": "EQ", "INDEX": "EQ", "CRYPTOCURRENCY": "CR", "FUTURE": "CO",
}  # fmt: skip
_MIXED = ("etf", "mutualfund", "index")
_CLASSES: Mapping[str, AssetClass] = {name: name for name in CLASSES}
_SAID = ("instrumentType", "currency", "firstTradeDate", "longName", "shortName")
_FIELDS = {"open": "Open", "high": "High", "low": "Low", "close": "Close", "volume": "Volume"}


def fetch_yahoo(request: Request, asking: Pull) -> SourceTables:
    """Fetch daily bars of every symbol of the request."""
    problems = []
    for name, value in request.options.items():
        if name.startswith("class.") and value not in CLASSES:
            problems.append(Problem(f"option {name}", f"must be one of {', '.join(CLASSES)} (got {value!r})"))
        if name.startswith("class.") and name.removeprefix("class.") not in request.symbols:
            problems.append(Problem(f"option {name}", "names a symbol that was not requested"))
    if problems:
        raise InputError("source yfinance", problems)
    client = service.load_client("yfinance", YAHOO.extra)

    def noted(series: DailySeries, trimmed: DailySeries) -> str:
        lost = series.days.size - trimmed.days.size
        text = f"{lost} bars outside the requested days, or of a day that was not over, are left out"
        return f"{series.id}: {text}" if lost else ""

    with _session(asking.manners, request.options.get("endpoint")) as session:
        bars, notes = _fetch_series(
            "symbols", request, asking, lambda symbol: _yahoo_series(client, session, symbol, request, asking), noted
        )
    if guess := [series.id for series in bars if series.sub in _MIXED and f"class.{series.id}" not in request.options]:
        text = "the service does not say the asset class of a fund or index; guessed for"
        notes.append(f"{text} {', '.join(guess)} (say it with class.SYMBOL=...)")
    return service.bar_tables(bars, "yfinance"), (*_YAHOO_NOTES, *notes)


def _yahoo_series(client: Any, session: Any, symbol: str, request: Request, asking: Pull) -> DailySeries:
    """Fetch one symbol through the client."""
    exceptions = client.exceptions
    try:
        last = request.last(asking.now) + timedelta(days=1)
        with warnings.catch_warnings():
            for outdated in (DeprecationWarning, FutureWarning):  # in the client's code, which we cannot change
                warnings.filterwarnings("ignore", category=outdated, module=r"yfinance(\.|$)")
            ticker = client.Ticker(symbol, session=session)
            frame = ticker.history(start=request.first, end=last, interval="1d", auto_adjust=False, actions=True)
            answer = ticker.get_history_metadata(repair=False)
            # One by one, since some of its keys cause a separate request to the service.
            meta = {name: answer.get(name) for name in _SAID}
        kind, currency = str(meta.get("instrumentType") or "").upper(), str(meta.get("currency") or "")
        chosen = _CLASSES.get(request.options.get(f"class.{symbol}", "")) or _KINDS.get(kind)
        if chosen is None:
            text = f"is of the kind {safe_line(kind) or 'unknown'}, which has no asset class here"
            raise InputError(symbol, [Problem(symbol, f"{text} (say class.{symbol}=...)")])
        if not currency:
            raise InputError(symbol, [Problem(symbol, "the reply names no currency")])
        days = np.array([stamp.date() for stamp in frame.index], dtype="datetime64[D]")
        bars = {name: frame[column].to_numpy(dtype=float) for name, column in _FIELDS.items()}
        adjusted = frame["Adj Close"].to_numpy(dtype=float)
        splits = frame["Stock Splits"].to_numpy(dtype=float)
        splits = np.where(splits > 0.0, splits, 1.0)
        # The service states earlier days in today's units; undo later splits to restore traded prices.
        since = np.append(np.cumprod(splits[::-1])[::-1][1:], 1.0) if days.size else splits
        bars = {name: array / since if name == "volume" else array * since for name, array in bars.items()}
        paid = np.nan_to_num(frame["Dividends"].to_numpy(dtype=float)) * since
        factor = np.divide(adjusted, bars["close"], out=np.full(days.size, np.nan), where=bars["close"] != 0)
        actions = tuple(
            CorporateAction(symbol, days[at].astype(object), float(splits[at]), float(paid[at]))
            for at in np.flatnonzero((splits != 1.0) | (paid > 0.0)).tolist()
        )
        # The client returns a time, or nothing if the service does not state it.
        first = meta.get("firstTradeDate")
        listed = first.date() if isinstance(first, datetime) and first == first else None
        late = kind in ("CRYPTOCURRENCY", "MUTUALFUND")
        name = safe_line(meta.get("longName") or meta.get("shortName") or symbol)
        stated = symbol, chosen, kind.lower() or "not stated", name, safe_line(currency)
        complete = service.END_OF_DAY if late else CLOSE_OF_DAY
        return DailySeries(*stated, listed, days, bars, factor, actions, complete)
    except (ServiceUnavailable, InputError):
        raise
    except exceptions.YFRateLimitError:
        raise ServiceUnavailable("the service reports too many requests; try again later") from None
    except exceptions.YFTickerMissingError as exc:
        text = f"is not known or has no prices: {safe_line(exc.rationale)}"
        raise InputError(symbol, [Problem(symbol, text)]) from None
    except Exception as exc:
        unknown = getattr(getattr(exc, "response", None), "status_code", None) == 404
        text = "is not known or has no prices" if unknown else service.parse_error("the reply", exc)
        raise InputError(symbol, [Problem(symbol, text)]) from None


@contextmanager
def _session(manners: RetryPolicy, endpoint: str | None) -> Iterator[Any]:
    """Yield a session of the client's own transport with the retry policy; the client is restored afterwards."""
    transport, data = service.load_client("curl_cffi", YAHOO.extra), service.load_client("yfinance.data", YAHOO.extra)
    config = service.load_client("yfinance.config", YAHOO.extra).YfConfig
    session = transport.requests.Session(
        impersonate="chrome", curl_options={transport.CurlOpt.MAXFILESIZE_LARGE: manners.most_bytes}
    )
    plain = session.request

    def request(method: str, url: str, **rest: Any) -> Any:
        data_wanted = urlsplit(url).path.startswith("/v8/")
        rest["timeout"] = manners.timeout

        def once() -> Any:
            try:
                answer = plain(method, service.gateway_url(endpoint, url), **rest)
            except transport.CurlError as exc:
                if getattr(exc, "code", None) == _TOO_LARGE:
                    service.check_size(manners.most_bytes + 1, manners)
                raise TransientError(f"the service does not answer ({safe_line(exc)})") from None
            service.check_size(len(answer.content), manners)
            if data_wanted:
                service.check_answer(answer.status_code, answer.headers, answer.content)
            return answer

        # Cookies, crumbs and profiles are optional for the client, so they are requested once.
        # Their failure is raised as a connection error, after which the client continues without them.
        if data_wanted:
            return service.with_retries(once, manners)
        try:
            return once()
        except TransientError as exc:
            raise ConnectionError(str(exc)) from None

    session.request = request
    hidden = config.debug.hide_exceptions
    data.YfData.cache_get.cache_clear()
    config.debug.hide_exceptions = False
    try:
        yield session
    finally:
        config.debug.hide_exceptions = hidden
        data.YfData.cache_get.cache_clear()
        data.YfData(session=data.new_session())
        session.close()


_TOO_LARGE = 63
"""libcurl's CURLE_FILESIZE_EXCEEDED."""


_EXCHANGE_NOTES = (
    "a day is a UTC day and its bar is known at its end",
    "prices are those of one exchange, in the currency that the pair is quoted in; nothing is adjusted",
)

CCXT = service.Source(
    name="ccxt", extra="ccxt",
    needs="pairs such as BTC/USD, and option exchange=NAME",
    licence="the terms of the exchange apply; redistribution is not granted",
    options={
        "exchange": "the exchange, as the client names it, such as kraken",
        "timeframe": "1d, the only one that fits a table of days",
        "endpoint": "a gateway that is asked in place of the exchange: ENDPOINT/<host>/<path>",
    },
)  # fmt: skip

_DAY_MS = 86_400_000
_MOST_PAGES = 400


def fetch_exchange(request: Request, asking: Pull) -> SourceTables:
    """Fetch daily bars of every pair of the request."""
    module, name = service.load_client("ccxt", CCXT.extra), request.options.get("exchange", "")
    if not name:
        raise InputError("source ccxt", [Problem("option exchange", "is needed, such as exchange=kraken")])
    check_known("exchange", module.exchanges, name)
    if (frame := request.options.get("timeframe", "1d")) != "1d":
        text = f"must be 1d: a snapshot holds one bar a day and instrument (got {frame!r})"
        raise InputError("source ccxt", [Problem("option timeframe", text)])
    # Spot only, if the client supports that: the lists of derivatives are long and not needed.
    exchange = getattr(module, name)({"enableRateLimit": False, "options": {"fetchMarkets": {"types": ["spot"]}}})
    if not exchange.has.get("fetchOHLCV") or "1d" not in (exchange.timeframes or {}):
        raise InputError("source ccxt", [Problem("option exchange", f"{name} gives no daily bars")])
    # The pause between requests is the exchange's own; the client's rate limiter would use the clock of this machine.
    pause, endpoint = exchange.rateLimit / 1000, request.options.get("endpoint")
    exchange.session.request = _with_retries(exchange.session.request, asking.manners, pause, endpoint)
    markets = _call(exchange, exchange.load_markets, asking.manners)
    problems = []
    for pair in request.symbols:
        if pair not in markets:
            problems.append(Problem(pair, f"is not known to {exchange.id}"))
        elif not markets[pair].get("spot"):
            kind = safe_line(markets[pair].get("type"))
            problems.append(Problem(pair, f"is a {kind} of {exchange.id}; only spot pairs are taken"))
    if problems:
        raise InputError("source ccxt", problems)

    def noted(_: DailySeries, trimmed: DailySeries) -> str:
        if not trimmed.days.size or trimmed.days[0] <= np.datetime64(request.first):
            return ""
        first = f"the first bar that the exchange gives is of {trimmed.days[0]}"
        return f"{trimmed.id}: asked for from {request.first}, {first}"

    bars, notes = _fetch_series(
        "pairs", request, asking, lambda pair: _pair_series(exchange, pair, markets[pair], request, asking), noted
    )
    tables = service.bar_tables(bars, f"ccxt {exchange.id}")
    return tables, (*_EXCHANGE_NOTES, f"exchange: {exchange.id}", *notes)


def _pair_series(exchange: Any, pair: str, market: Any, request: Request, asking: Pull) -> DailySeries:
    """Fetch all bars of one pair, page by page; a page without new bars is the last."""
    since = int(datetime.combine(request.first, datetime.min.time(), UTC).timestamp()) * 1000
    end = int(datetime.combine(request.last(asking.now), datetime.min.time(), UTC).timestamp()) * 1000
    limit = exchange.feature_value(pair, "fetchOHLCV", "limit")
    rows: list[Any] = []
    problem = f"is not at its end after {_MOST_PAGES} pages; ask for fewer days"
    for _ in range(_MOST_PAGES):
        page = _call(exchange, lambda at=since: exchange.fetch_ohlcv(pair, "1d", at, limit), asking.manners)
        try:
            new = [[float("nan") if raw is None else float(raw) for raw in row[:6]] for row in page if row[0] >= since]
        except (TypeError, ValueError, IndexError) as exc:
            problem = service.parse_error("the reply", exc)
            break
        if any(len(row) < 6 for row in new):
            problem = "the reply cannot be read: a bar is cut off"
            break
        rows += new
        since = int(max((row[0] for row in new), default=end)) + _DAY_MS
        if since > end:
            problem = ""
            break
    if problem:
        raise InputError(pair, [Problem(pair, problem)])
    table = np.array(rows, dtype=float).reshape(-1, 6)
    days = table[:, 0].astype("datetime64[ms]").astype("datetime64[D]")
    bars = {name: table[:, place] for place, name in enumerate(FIELDS, start=1)}
    quote, stamp = safe_line(market.get("quote")), market.get("created")
    # The listing day that the exchange states, if any.
    listed = datetime.fromtimestamp(stamp / 1000, UTC).date() if isinstance(stamp, int) and 0 < stamp < 1e13 else None
    name, factor = f"{safe_line(market.get('base'))} in {quote}", np.ones(days.size)
    return DailySeries(pair, "CR", "spot", name, quote, listed, days, bars, factor, (), service.END_OF_DAY)


def _call(exchange: Any, ask: Any, manners: RetryPolicy) -> Any:
    """Make one request with the client. Answers in which the exchange says that it is busy are retried too."""
    errors = service.load_client("ccxt", CCXT.extra)

    def once() -> Any:
        try:
            return ask()
        except (TransientError, ServiceUnavailable):
            raise
        except (errors.RateLimitExceeded, errors.DDoSProtection, errors.ExchangeNotAvailable) as exc:
            raise TransientError(f"{exchange.id} is busy ({safe_line(exc)})") from None
        except errors.BaseError as exc:
            raise ServiceUnavailable(f"{exchange.id} refuses ({type(exc).__name__}: {safe_line(exc)})") from None
        except Exception as exc:
            raise ServiceUnavailable(service.parse_error(f"the reply of {exchange.id}", exc)) from None

    return service.with_retries(once, manners)


def _with_retries(plain: Any, manners: RetryPolicy, pause: float, endpoint: str | None) -> Any:
    """Wrap the session's ``request`` with retries, limits and checks."""
    failures = service.load_client("requests", CCXT.extra).RequestException

    def request(method: str, url: str, **rest: Any) -> Any:
        given = {**rest, "timeout": manners.timeout, "stream": True}

        def once() -> Any:
            manners.sleep(pause)
            try:
                answer = plain(method, service.gateway_url(endpoint, url), **given)
                parts, size = [], 0
                with answer:
                    for part in answer.iter_content(1 << 16):
                        size += len(part)
                        service.check_size(size, manners)
                        parts.append(part)
                answer._content = b"".join(parts)  # the attribute that the client reads
            except failures as exc:
                raise TransientError(f"the service does not answer ({type(exc).__name__})") from None
            service.check_answer(answer.status_code, answer.headers, answer.content)
            if answer.status_code < 400 and not answer.content.lstrip().startswith((b"{", b"[")):
                raise ServiceUnavailable("the answer is not JSON")
            return answer

        return service.with_retries(once, manners)

    return request
