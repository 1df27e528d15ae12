"""Daily bars through the client `yfinance`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.market.history import CLOSE_OF_DAY
from assaymark.market.instruments import CLASSES, AssetClass, CorporateAction
from assaymark.market.sources.request import (
    END_OF_DAY,
    Asking,
    DailySeries,
    Draft,
    Request,
    RetryPolicy,
    ServiceUnavailable,
    Source,
    TransientError,
    bar_tables,
    checked_data,
    checked_size,
    checked_status,
    library,
    one_line,
    outdated_uses_of,
    series_problems,
    set_problems,
    with_retries,
)

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
NOTES = (_TRADED, _FACTOR, _TIMES)

SOURCE = Source(
    name="yfinance", extra="yfinance", gives="daily bars, and instruments with their currency",
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
_CLASSES: Mapping[str, AssetClass] = {one: one for one in CLASSES}
_SAID = ("instrumentType", "currency", "firstTradeDate", "longName", "shortName")
_FIELDS = {"open": "Open", "high": "High", "low": "Low", "close": "Close", "volume": "Volume"}


def fetch(request: Request, asking: Asking) -> Draft:
    """Daily bars of every symbol of the request; refused as a whole when one of them has a problem."""
    problems = []
    for name, value in request.options.items():
        if name.startswith("class.") and value not in CLASSES:
            problems.append(Problem(f"option {name}", f"must be one of {', '.join(CLASSES)} (got {value!r})"))
        if name.startswith("class.") and name.removeprefix("class.") not in request.symbols:
            problems.append(Problem(f"option {name}", "names a symbol that is not asked for"))
    if problems:
        raise InputError("source yfinance", problems)
    client = library("yfinance", SOURCE.extra)
    found: list[DailySeries] = []
    notes: list[str] = list(NOTES)
    with _session(asking.manners, request.options.get("endpoint")) as session:
        for done, symbol in enumerate(request.symbols):
            asking.progress("symbols", done, len(request.symbols))
            try:
                series = _series(client, session, symbol, request, asking)
            except InputError as exc:
                problems += exc.problems
                continue
            kept = series.within(request.first, request.last(asking.now), asking.now)
            if kept.days.size < series.days.size:
                notes.append(f"{symbol}: {series.days.size - kept.days.size} bars outside the days asked for, or of a "
                             "day that was not over, are left out")  # fmt: skip
            problems += series_problems(kept)
            found.append(kept)
    asking.progress("symbols", len(request.symbols), len(request.symbols))
    problems += set_problems(found)
    if problems:
        raise InputError("source yfinance", problems)
    if taken := [one.id for one in found if one.sub in _MIXED and f"class.{one.id}" not in request.options]:
        what = "the service does not say the asset class of a fund or index; guessed for"
        notes.append(f"{what} {', '.join(taken)} (say it with class.SYMBOL=...)")
    return Draft(bar_tables(found, "yfinance"), tuple(notes))


def _series(client: Any, session: Any, symbol: str, request: Request, asking: Asking) -> DailySeries:
    """One symbol as the client library hands it over."""
    exceptions = client.exceptions
    try:
        last = request.last(asking.now) + timedelta(days=1)
        with outdated_uses_of("yfinance"):
            ticker = client.Ticker(symbol, session=session)
            frame = ticker.history(start=request.first, end=last, interval="1d", auto_adjust=False, actions=True)
            said = ticker.get_history_metadata(repair=False)
            # One by one: some keys of it are a question of their own to the service.
            meta = {name: said.get(name) for name in _SAID}
        # One symbol from the client's table and what it says about the instrument.
        kind, currency = str(meta.get("instrumentType") or "").upper(), str(meta.get("currency") or "")
        chosen = _CLASSES.get(request.options.get(f"class.{symbol}", "")) or _KINDS.get(kind)
        if chosen is None:
            what = f"is of the kind {one_line(kind) or 'unknown'}, which has no asset class here"
            raise InputError(symbol, [Problem(symbol, f"{what} (say class.{symbol}=...)")])
        if not currency:
            raise InputError(symbol, [Problem(symbol, "the reply names no currency")])
        days = np.array([one.date() for one in frame.index], dtype="datetime64[D]")
        bars = {name: frame[column].to_numpy(dtype=float) for name, column in _FIELDS.items()}
        adjusted = frame["Adj Close"].to_numpy(dtype=float)
        splits = frame["Stock Splits"].to_numpy(dtype=float)
        splits = np.where(splits > 0.0, splits, 1.0)
        # The service states earlier days in units of today; later splits make them those of their day again.
        since = np.append(np.cumprod(splits[::-1])[::-1][1:], 1.0) if days.size else splits
        bars = {name: one / since if name == "volume" else one * since for name, one in bars.items()}
        paid = np.nan_to_num(frame["Dividends"].to_numpy(dtype=float)) * since
        factor = np.divide(adjusted, bars["close"], out=np.full(days.size, np.nan), where=bars["close"] != 0)
        actions = tuple(
            CorporateAction(symbol, days[at].astype(object), float(splits[at]), float(paid[at]))
            for at in np.flatnonzero((splits != 1.0) | (paid > 0.0)).tolist()
        )
        # The client hands over a time; no day where the service does not say it.
        first = meta.get("firstTradeDate")
        listed = first.date() if isinstance(first, datetime) and first == first else None
        late = kind in ("CRYPTOCURRENCY", "MUTUALFUND")
        return DailySeries(
            id=symbol, asset_class=chosen, sub=kind.lower() or "not stated", currency=one_line(currency),
            name=one_line(meta.get("longName") or meta.get("shortName") or symbol), listed=listed, days=days,
            bars=bars, adj_factor=factor, actions=actions, complete_at=END_OF_DAY if late else CLOSE_OF_DAY,
        )  # fmt: skip
    except (ServiceUnavailable, InputError):
        raise
    except exceptions.YFRateLimitError:
        raise ServiceUnavailable("too many requests, says the service; try again later") from None
    except exceptions.YFTickerMissingError as exc:
        raise InputError(
            symbol, [Problem(symbol, f"is not known or has no prices: {one_line(exc.rationale)}")]
        ) from None
    # The client indexes into whatever it was sent; a reply of another shape ends in any error there is.
    except Exception as exc:
        if getattr(getattr(exc, "response", None), "status_code", None) == 404:
            raise InputError(symbol, [Problem(symbol, "is not known or has no prices")]) from None
        what = f"the reply cannot be read ({type(exc).__name__}: {one_line(exc)})"
        raise InputError(symbol, [Problem(symbol, what)]) from None


@contextmanager
def _session(manners: RetryPolicy, endpoint: str | None) -> Iterator[Any]:
    """A session of the client's own transport that asks with manners; the client is as it was before, afterwards."""
    transport, data = library("curl_cffi", SOURCE.extra), library("yfinance.data", SOURCE.extra)
    config = library("yfinance.config", SOURCE.extra).YfConfig
    session = transport.requests.Session(
        impersonate="chrome", curl_options={transport.CurlOpt.MAXFILESIZE_LARGE: manners.most_bytes}
    )
    plain = session.request

    def request(method: str, url: str, **rest: Any) -> Any:
        parts = urlsplit(url)
        data_wanted = parts.path.startswith("/v8/")
        target = f"{endpoint.rstrip('/')}/{parts.netloc}{parts.path}" if endpoint else url
        rest["timeout"] = manners.timeout

        def once() -> Any:
            try:
                answer = plain(method, target, **rest)
            except transport.CurlError as exc:
                if getattr(exc, "code", None) == _TOO_LARGE:
                    checked_size(manners.most_bytes + 1, manners)
                raise TransientError(f"the service does not answer ({one_line(exc)})") from None
            checked_size(len(answer.content), manners)
            if data_wanted:
                checked_status(answer.status_code, answer.headers)
                checked_data(answer.content)
            return answer

        # Cookies, crumbs and profiles are extras that the client can do without, so they are asked for once.
        # A failure of theirs is handed on as one of connection, after which the client goes on without.
        if data_wanted:
            return with_retries(once, manners)
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
