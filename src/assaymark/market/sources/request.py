"""Requests to data sources: parameters, retries and checks of answers, and the tables made from their bars."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem
from assaymark.market.history import CLOSE_OF_DAY, FIELDS
from assaymark.market.instruments import FIRST_DAY, AssetClass, CorporateAction, Listing, instant
from assaymark.market.snapshot import SCHEMAS, table_of
from assaymark.records import JSON, duplicates

T = TypeVar("T")

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Status codes after which a request may be retried."""

_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Limits of a request to a source: attempts, waits and timeout in seconds, and size of an answer in bytes."""

    attempts: int = 4
    first_wait: float = 2.0
    longest_wait: float = 60.0
    timeout: float = 30.0
    most_bytes: int = 256 * 1024 * 1024
    sleep: Callable[[float], None] = time.sleep


class TransientError(Exception):
    """A transient failure of one attempt. ``wait`` is the wait in seconds that the service asks for, if any."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class ServiceUnavailable(Exception):
    """The service cannot be used now, for a reason in one line. Becomes an `InputError` in `pull`."""


def with_retries(ask: Callable[[], T], manners: RetryPolicy) -> T:
    """Return the result of ``ask``, retried after `TransientError` within the limits of ``manners``."""
    reason = "was never asked"
    for attempt in range(manners.attempts):
        try:
            return ask()
        except TransientError as busy:
            reason, asked = str(busy), busy.wait
        wait = manners.first_wait * 2**attempt if asked is None else asked
        if asked is not None and asked > manners.longest_wait:
            raise ServiceUnavailable(
                f"{reason}, and the service asks for a wait of {asked:.0f} s (at most "
                f"{manners.longest_wait:.0f} s are waited); try again later"
            )
        if attempt + 1 < manners.attempts:
            manners.sleep(min(wait, manners.longest_wait))
    raise ServiceUnavailable(f"{reason}; given up after {manners.attempts} attempts, try again later")


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds of a ``Retry-After`` header, or None without a valid one."""
    named = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    after = named.get("retry-after", "")
    if after.isascii() and after.isdigit() and len(after) < 10:
        return float(after)
    try:
        return max((parsedate_to_datetime(after) - parsedate_to_datetime(named["date"])).total_seconds(), 0.0)
    except (KeyError, TypeError, ValueError):
        return None


def check_status(status: int, headers: Mapping[str, str]) -> None:
    """Raise `TransientError` for a status after which the request may be retried."""
    if status in AGAIN:
        reason = "too many requests" if status == 429 else "the service is not available"
        raise TransientError(f"{reason} (status {status})", asked_wait(headers))


def check_answer(status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Raise unless an answer has data; see `check_status` and `check_data`."""
    check_status(status, headers)
    check_data(body)


def check_size(size: int, manners: RetryPolicy) -> None:
    """Raise `ServiceUnavailable` for an answer above the size limit."""
    if size > manners.most_bytes:
        raise ServiceUnavailable(f"the answer is larger than {manners.most_bytes:,} bytes, the most that is read")


def check_data(body: bytes) -> None:
    """Raise `ServiceUnavailable` for an HTML page in place of data, such as a sign-in, an error or a proxy's notice."""
    start = body[:512].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        raise ServiceUnavailable("the answer is an HTML page, not data: probably a block, sign-in or error page")


def gateway_url(endpoint: str | None, url: str) -> str:
    """Return the address of a service, or its form at a gateway: ENDPOINT/<host>/<path>."""
    place = urlsplit(url)
    query = f"?{place.query}" if place.query else ""
    return f"{endpoint.rstrip('/')}/{place.netloc}{place.path}{query}" if endpoint else url


def parse_error(reply: str, exc: Exception, *hidden: str | None) -> str:
    """Return the message that a client cannot parse a reply; clients can fail with any exception then."""
    return f"{reply} cannot be read ({type(exc).__name__}: {safe_line(exc, *hidden)})"


def safe_line(text: object, *hidden: str | None) -> str:
    """Return external text for a message: one printable, short line without the ``hidden`` secrets."""
    shown = str(text)
    for secret in filter(None, hidden):
        shown = shown.replace(secret, "***")
    shown = " ".join("".join(char if char.isprintable() else " " for char in shown).split())
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


def load_client(name: str, extra: str) -> Any:
    """Import the client library of a source. Raises `InputError` if it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as exc:
        missing = f" ({exc.name} is missing)" if exc.name != name else ""
        raise InputError(
            f"source {extra}", [f"needs a library that is not installed{missing}: pip install 'assaymark[{extra}]'"]
        ) from None


SECRETS = ("api_key", "token")
"""Options whose values are never displayed or stored."""

Progress = Callable[[str, int, int], None]
"""Called with the kind of items, the number done and the total."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Request:
    """A request to a source: symbols, first and last day (both inclusive), and the source's own options."""

    symbols: tuple[str, ...] = ()
    start: date | None = None
    end: date | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = {name: "***" if name in SECRETS else value for name, value in self.options.items()}
        return f"Request(symbols={self.symbols!r}, start={self.start!r}, end={self.end!r}, options={shown!r})"

    @property
    def first(self) -> date:
        """The first day of bars: ``start``, or by default the first day of the embedded market."""
        return self.start or FIRST_DAY

    def last(self, now: datetime) -> date:
        """The last day of bars: ``end`` or today (UTC), whichever is earlier."""
        today = now.astimezone(UTC).date()
        return min(self.end, today) if self.end else today

    def secret(self, name: str) -> str | None:
        """Return the value of a secret option, or None."""
        return self.options.get(name) or None

    def as_query(self) -> dict[str, JSON]:
        """Return the request in the form that is stored with the data, without secrets."""
        return {
            "symbols": list(self.symbols),
            "start": self.start.isoformat() if self.start else None,
            "end": self.end.isoformat() if self.end else None,
            "options": {name: value for name, value in sorted(self.options.items()) if name not in SECRETS},
        }


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull from a source: its time, the retry policy and the progress callback."""

    now: datetime
    manners: RetryPolicy
    progress: Progress

    def each(self, kind: str, symbols: Sequence[str]) -> Iterator[str]:
        """Yield the symbols one by one and report progress."""
        for done, symbol in enumerate(symbols):
            self.progress(kind, done, len(symbols))
            yield symbol
        self.progress(kind, len(symbols), len(symbols))


SourceTables = tuple[Mapping[str, Any], tuple[str, ...]]
"""Tables without the name of their snapshot, which is derived from them, and notes about them."""

Fetch = Callable[[Request, Pull], SourceTables]
"""Fetches from a source; raises `InputError` with all problems, or `ServiceUnavailable` if the service is down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One networked source: its requirements, options and licence terms."""

    name: str
    extra: str
    needs: str
    licence: str
    options: Mapping[str, str]
    symbols: bool = True
    key_variable: str | None = None
    key_option: str | None = None

    def problems(self, request: Request) -> list[Problem]:
        """Return the problems with a request, before anything is sent."""
        faults = []
        if self.symbols and not request.symbols:
            faults.append(Problem("symbols", f"at least one is needed: {self.needs}"))
        for symbol in duplicates(request.symbols):
            faults.append(Problem(symbol, "is requested more than once"))
        faults += [
            Problem("symbols", f"must be printable and without spaces (got {symbol!r})")
            for symbol in request.symbols
            if not symbol or not symbol.isprintable() or any(char.isspace() for char in symbol)
        ]
        if request.start and request.end and request.start > request.end:
            faults.append(Problem("start", f"{request.start} comes after the end, {request.end}"))
        faults += [
            Problem(f"option {name}", f"is unknown; {self.name} takes {', '.join(self.options)}")
            for name in request.options
            if not any(name == option or (option.endswith(".") and name.startswith(option)) for option in self.options)
        ]
        endpoint = request.options.get("endpoint")
        if endpoint is not None and not endpoint.startswith(("https://", "http://")):
            faults.append(Problem("option endpoint", f"must begin with https:// or http:// (got {endpoint!r})"))
        return faults


END_OF_DAY = 24 * 3600
"""Seconds after midnight UTC at which the day of a market that never closes is complete."""

PRICES = ("open", "high", "low", "close")


@dataclass(frozen=True, slots=True)
class DailySeries:
    """Daily bars of one instrument from a source."""

    id: str
    asset_class: AssetClass
    sub: str
    name: str
    currency: str
    listed: date | None
    days: np.ndarray
    bars: Mapping[str, np.ndarray]
    adj_factor: np.ndarray
    actions: tuple[CorporateAction, ...] = ()
    complete_at: int = CLOSE_OF_DAY

    @property
    def known_at(self) -> np.ndarray:
        """The time at which each bar became known, int64 seconds since 1970 in UTC."""
        return np.asarray(self.days.astype("datetime64[D]").astype(np.int64) * 86_400 + self.complete_at)

    def within(self, first: date, last: date, now: datetime) -> DailySeries:
        """Return the bars from ``first`` to ``last`` whose day is over at ``now``."""
        chosen = (self.days >= np.datetime64(first)) & (self.days <= np.datetime64(last))
        chosen &= self.known_at <= instant(now)
        bars = {name: values[chosen] for name, values in self.bars.items()}
        actions = tuple(action for action in self.actions if first <= action.ex_date <= last)
        return replace(self, days=self.days[chosen], bars=bars, adj_factor=self.adj_factor[chosen], actions=actions)


def series_problems(series: DailySeries) -> list[Problem]:
    """Return the impossible values of one series: each kind once, with its first place and its count."""
    if not series.days.size:
        return [Problem(series.id, "has no bar in the requested days")]
    problems = []
    steps = np.diff(series.days).astype(int)
    for place in np.flatnonzero(steps <= 0)[:1]:
        text = "is there twice" if steps[place] == 0 else f"comes after {series.days[place]}"
        problems.append(Problem(f"{series.id}, {series.days[place + 1]}", f"the day {text}: days must increase"))
    for name in PRICES:
        values = series.bars[name]
        missing = "" if name == "close" else " where it is given"
        wrong = ~(values > 0) | np.isinf(values) if name == "close" else (values <= 0) | np.isinf(values)
        problems += _first_place(series, wrong, values, f"a {name} must be positive{missing}")
    volume = series.bars["volume"]
    problems += _first_place(series, (volume < 0) | np.isinf(volume), volume, "a volume cannot be negative")
    spread = series.bars["high"] - series.bars["low"]
    problems += _first_place(series, spread < 0, spread, "the high is below the low")
    wrong = ~(series.adj_factor > 0) | np.isinf(series.adj_factor)
    return problems + _first_place(series, wrong, series.adj_factor, "an adjustment factor must be positive")


def _first_place(series: DailySeries, wrong: np.ndarray, values: np.ndarray, text: str) -> list[Problem]:
    """Return the first place of a problem with the number of places, or nothing."""
    places = np.flatnonzero(wrong)
    if not places.size:
        return []
    more = f"; {places.size} days in all" if places.size > 1 else ""
    return [Problem(f"{series.id}, {series.days[places[0]]}", f"{text} (got {values[places[0]]:g}){more}")]


def bar_tables(series: Sequence[DailySeries], source: str) -> dict[str, Any]:
    """Return bars, instruments and actions as tables of a snapshot; the column with its name stays empty."""
    lengths = [asset.days.size for asset in series]
    whole: dict[str, Any] = {name: np.concatenate([asset.bars[name] for asset in series]) for name in FIELDS}
    whole |= {
        "instrument": np.repeat(np.array([asset.id for asset in series], dtype=object), lengths),
        "event_date": np.concatenate([asset.days.astype("datetime64[D]") for asset in series]),
        "known_at": np.concatenate([asset.known_at for asset in series]) * 1_000_000,
        "adj_factor": np.concatenate([asset.adj_factor for asset in series]),
        "source": source,
        "snapshot": "",
    }
    rows = [
        Listing(one.id, one.asset_class, one.sub, one.name, one.listed or one.days[0].item()).as_row(one.currency)
        for one in series
    ]
    acted = [
        {"instrument": asset.id, "ex_date": action.ex_date, "split": action.split, "dividend": action.dividend,
         "known_at": datetime.combine(action.ex_date, time_of_day(), UTC) + timedelta(seconds=asset.complete_at)}
        for asset in series for action in asset.actions
    ]  # fmt: skip
    return {
        "bars": table_of("bars", whole),
        "instruments": pa.Table.from_pylist(rows, schema=SCHEMAS["instruments"]),
        **({"actions": pa.Table.from_pylist(acted, schema=SCHEMAS["actions"])} if acted else {}),
    }
