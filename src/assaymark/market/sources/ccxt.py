"""Daily bars of spot pairs of crypto exchanges through the client `ccxt`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from assaymark.errors import InputError, Problem, UnknownNameError
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
    series_problems,
    set_problems,
    with_retries,
)

NOTES = (
    "a day is a UTC day and its bar is known at its end",
    "prices are those of one exchange, in the currency that the pair is quoted in; nothing is adjusted",
)

SOURCE = Source(
    name="ccxt", extra="ccxt", gives="daily bars of spot pairs of one exchange",
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


def fetch(request: Request, asking: Asking) -> Draft:
    """Daily bars of every pair of the request; refused as a whole when one of them has a problem."""
    exchange = _exchange(request, asking.manners)
    markets = _call(exchange, exchange.load_markets, asking.manners)
    problems = []
    for pair in request.symbols:
        if pair not in markets:
            problems.append(Problem(pair, f"is not known to {exchange.id}"))
        elif not markets[pair].get("spot"):
            kind = one_line(markets[pair].get("type"))
            problems.append(Problem(pair, f"is a {kind} of {exchange.id}; only spot pairs are taken"))
    if problems:
        raise InputError("source ccxt", problems)
    found, notes = [], [*NOTES, f"exchange: {exchange.id}"]
    for done, pair in enumerate(request.symbols):
        asking.progress("pairs", done, len(request.symbols))
        rows, more = _bars(exchange, pair, request, asking)
        problems += more
        series = _series(pair, markets[pair], rows)
        kept = series.within(request.first, request.last(asking.now), asking.now)
        problems += [] if more else series_problems(kept)
        found.append(kept)
        if kept.days.size and kept.days[0] > np.datetime64(request.first):
            notes.append(f"{pair}: asked for from {request.first}, the first bar that the exchange gives is of "
                         f"{kept.days[0]}")  # fmt: skip
    asking.progress("pairs", len(request.symbols), len(request.symbols))
    problems += set_problems(found)
    if problems:
        raise InputError("source ccxt", problems)
    return Draft(bar_tables(found, f"ccxt {exchange.id}"), tuple(notes))


def _exchange(request: Request, manners: RetryPolicy) -> Any:
    """The client for the exchange that the request names, with manners."""
    module = library("ccxt", SOURCE.extra)
    name = request.options.get("exchange", "")
    if not name:
        raise InputError("source ccxt", [Problem("option exchange", "is needed, such as exchange=kraken")])
    if name not in module.exchanges:
        raise UnknownNameError("exchange", name, module.exchanges)
    if (frame := request.options.get("timeframe", "1d")) != "1d":
        what = f"must be 1d: a snapshot holds one bar a day and instrument (got {frame!r})"
        raise InputError("source ccxt", [Problem("option timeframe", what)])
    # Spot only, where the client can be told: the lists of derivatives are long and of no use here.
    exchange = getattr(module, name)({"enableRateLimit": False, "options": {"fetchMarkets": {"types": ["spot"]}}})
    if not exchange.has.get("fetchOHLCV") or "1d" not in (exchange.timeframes or {}):
        raise InputError("source ccxt", [Problem("option exchange", f"{name} gives no daily bars")])
    # The pause between questions is the exchange's own; the client would wait it out by the clock of this machine.
    pause = exchange.rateLimit / 1000
    exchange.session.request = _polite(exchange.session.request, manners, pause, request.options.get("endpoint"))
    return exchange


def _bars(exchange: Any, pair: str, request: Request, asking: Asking) -> tuple[list[Any], list[Problem]]:
    """All bars of one pair, page by page; a page that brings nothing new is the last."""
    since = int(datetime.combine(request.first, datetime.min.time(), UTC).timestamp()) * 1000
    end = int(datetime.combine(request.last(asking.now), datetime.min.time(), UTC).timestamp()) * 1000
    limit = exchange.feature_value(pair, "fetchOHLCV", "limit")
    rows: list[Any] = []
    for _ in range(_MOST_PAGES):
        page = _call(exchange, lambda at=since: exchange.fetch_ohlcv(pair, "1d", at, limit), asking.manners)
        try:
            new = [[float("nan") if one is None else float(one) for one in row[:6]] for row in page if row[0] >= since]
        except (TypeError, ValueError, IndexError) as exc:
            return rows, [Problem(pair, f"the reply cannot be read ({type(exc).__name__}: {one_line(exc)})")]
        if any(len(row) < 6 for row in new):
            return rows, [Problem(pair, "the reply cannot be read: a bar is cut off")]
        if not new:
            return rows, []
        rows += new
        since = int(max(row[0] for row in new)) + _DAY_MS
        if since > end:
            return rows, []
    return rows, [Problem(pair, f"is not at its end after {_MOST_PAGES} pages; ask for fewer days")]


def _series(pair: str, market: Any, rows: list[Any]) -> DailySeries:
    """One pair from the client's rows of time, open, high, low, close, volume."""
    table = np.array(rows, dtype=float).reshape(-1, 6)
    days = table[:, 0].astype("datetime64[ms]").astype("datetime64[D]")
    bars = {name: table[:, place] for place, name in enumerate(("open", "high", "low", "close", "volume"), start=1)}
    quote, made = one_line(market.get("quote")), market.get("created")
    # The day on which the exchange says that it listed a pair, if it does.
    listed = datetime.fromtimestamp(made / 1000, UTC).date() if isinstance(made, int) and 0 < made < 1e13 else None
    return DailySeries(
        id=pair, asset_class="CR", sub="spot", name=f"{one_line(market.get('base'))} in {quote}", currency=quote,
        listed=listed, days=days, bars=bars,
        adj_factor=np.ones(days.size), complete_at=END_OF_DAY,
    )  # fmt: skip


def _call(exchange: Any, ask: Any, manners: RetryPolicy) -> Any:
    """One question to the client. What the exchange says in an answer of its own about being busy is heeded too."""
    errors = library("ccxt", SOURCE.extra)

    def once() -> Any:
        try:
            return ask()
        except (TransientError, ServiceUnavailable):
            raise
        except (errors.RateLimitExceeded, errors.DDoSProtection, errors.ExchangeNotAvailable) as exc:
            raise TransientError(f"{exchange.id} is busy ({one_line(exc)})") from None
        except errors.BaseError as exc:
            raise ServiceUnavailable(f"{exchange.id} refuses ({type(exc).__name__}: {one_line(exc)})") from None
        # The client indexes into whatever it was sent; a reply of another shape ends in any error there is.
        except Exception as exc:
            raise ServiceUnavailable(
                f"the reply of {exchange.id} cannot be read ({type(exc).__name__}: {one_line(exc)})"
            ) from None

    return with_retries(once, manners)


def _polite(plain: Any, manners: RetryPolicy, pause: float, endpoint: str | None) -> Any:
    """The session's way to ask, with attempts, limits and checks around it."""
    failures = library("requests", SOURCE.extra).RequestException

    def request(method: str, url: str, **rest: Any) -> Any:
        place = urlsplit(url)
        query = f"?{place.query}" if place.query else ""
        target = f"{endpoint.rstrip('/')}/{place.netloc}{place.path}{query}" if endpoint else url

        def once() -> Any:
            manners.sleep(pause)
            try:
                answer = plain(method, target, **{**rest, "timeout": manners.timeout, "stream": True})
                parts, size = [], 0
                with answer:
                    for part in answer.iter_content(1 << 16):
                        size += len(part)
                        checked_size(size, manners)
                        parts.append(part)
                answer._content = b"".join(parts)  # where the client looks for it
            except failures as exc:
                raise TransientError(f"the service does not answer ({type(exc).__name__})") from None
            checked_status(answer.status_code, answer.headers)
            checked_data(answer.content)
            if answer.status_code < 400 and not answer.content.lstrip().startswith((b"{", b"[")):
                raise ServiceUnavailable("the answer is no JSON")
            return answer

        return with_retries(once, manners)

    return request
