"""Macro series through the client `fredapi`: current values (``fred``) and all vintages (``alfred``)."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem
from assaymark.market.macro import released_after
from assaymark.market.snapshot import SCHEMAS
from assaymark.market.sources import request as service
from assaymark.market.sources.request import (
    Pull,
    Request,
    RetryPolicy,
    ServiceUnavailable,
    SourceTables,
    TransientError,
    safe_line,
)

_OPTIONS = {
    "api_key": "the key of the service; never stored, never shown",
    "endpoint": "a gateway that is asked in place of the service, with the path below it the same",
}

FRED = service.Source(
    name="fred", extra="fred",
    needs="series ids such as UNRATE, and a key",
    licence="the terms of the service and of each series' owner apply; redistribution is not granted for all series",
    options={**_OPTIONS, "lag_days": "days from the end of a period to its release, in place of the assumed ones"},
    key_variable="FRED_API_KEY", key_option="api_key",
)  # fmt: skip
ALFRED = service.Source(
    name="alfred", extra="fred",

    needs="series ids such as UNRATE, and a key", licence=FRED.licence,
    options={
        **_OPTIONS, "vintages_from": "the first day of vintages (YYYY-MM-DD); values before it read as they stood then",
        "vintages_to": "the last day of vintages (YYYY-MM-DD)",
    },
    key_variable="FRED_API_KEY", key_option="api_key",
)  # fmt: skip

LAGS: Mapping[str, int] = {"D": 1, "W": 7, "BW": 7, "M": 35, "Q": 60, "SA": 90, "A": 120}
"""Assumed release lag by frequency, in days from the end of a period, if vintages are not requested. Conservative:
most series are published sooner."""

STALE: Mapping[str, int] = {"D": 10, "W": 21, "BW": 35, "M": 75, "Q": 170, "SA": 290, "A": 500}
"""Days after the end of its period for which a value is current, by frequency: a period, its lag and a margin."""

_MONTHS = {"M": 1, "Q": 3, "SA": 6, "A": 12}

FRED_NOTES = (
    "values are those of today, revised ones included: not what was known then (source alfred has the vintages)",
    "when each value was published is assumed from its frequency, not known: "
    + ", ".join(f"{name} {days} days" for name, days in LAGS.items()),
)
ALFRED_NOTES = ("a value counts as known from the end of its vintage's day (UTC); the service gives no time of day",)


def fetch(request: Request, asking: Pull) -> SourceTables:
    """Fetch the current values."""
    days = request.options.get("lag_days")
    if days is not None and not (days.isascii() and days.isdigit() and len(days) <= 4):
        raise InputError("source fred", [Problem("option lag_days", f"must be a whole number of days (got {days!r})")])
    lag = None if days is None else int(days)

    def rows(client: Any, symbol: str, info: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        every = info["frequency_short"]
        series = client.get_series(symbol, observation_start=request.start, observation_end=request.end)
        periods = _period_ends(np.array([stamp.date() for stamp in series.index], dtype="datetime64[D]"), every)
        released = released_after(periods, LAGS[every] if lag is None else lag)
        for period, value, out in zip(periods, series.to_numpy(dtype=float), released, strict=True):
            yield {"ref_period": period.item(), "value": value, "start": int(out), "end": None}

    return _draft("fred", request, asking, rows, FRED_NOTES)


def fetch_vintages(request: Request, asking: Pull) -> SourceTables:
    """Fetch all vintages of all values."""
    bounds: dict[str, str | None] = {}
    for name in ("vintages_from", "vintages_to"):
        text = request.options.get(name)
        try:
            bounds[name] = None if text is None else date.fromisoformat(text).isoformat()
        except ValueError:
            raise InputError("source alfred", [Problem(f"option {name}", f"must be a day (got {text!r})")]) from None

    def rows(client: Any, symbol: str, info: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        frame = client.get_series_all_releases(symbol, realtime_start=bounds["vintages_from"],
                                               realtime_end=bounds["vintages_to"])  # fmt: skip
        dates = np.array([stamp.date() for stamp in frame["date"]], dtype="datetime64[D]")
        periods = _period_ends(dates, info["frequency_short"])
        vintages = [stamp.date() for stamp in frame["realtime_start"]]
        # The client's table has a missing time for a missing value, since it mixes times and values.
        values = [np.nan if cell != cell else float(cell) for cell in frame["value"]]
        records = [
            (period.item(), vintage, value)
            for period, day, vintage, value in zip(periods, dates, vintages, values, strict=True)
            if (request.start is None or day >= np.datetime64(request.start))
            and (request.end is None or day <= np.datetime64(request.end))
        ]
        records.sort(key=lambda row: row[:2])
        for (period, vintage, value), after in zip(records, [*records[1:], None], strict=True):
            # Each vintage lasts until the next one of its period.
            end = _end_of(after[1]) if after and after[0] == period else None
            yield {"ref_period": period, "value": value, "start": _end_of(vintage), "end": end}

    return _draft("alfred", request, asking, rows, ALFRED_NOTES)


def _end_of(day: date) -> int:
    """Return the end of a day, in seconds since 1970 in UTC."""
    return int((np.datetime64(day) + 1).astype("datetime64[s]").astype(np.int64))


def _draft(
    name: str, request: Request, asking: Pull,
    rows: Callable[[Any, str, Mapping[str, str]], Iterator[dict[str, Any]]], notes: tuple[str, ...],
) -> SourceTables:  # fmt: skip
    """Fetch all series as one table. Raises `InputError` if any of them has a problem."""
    source, key = f"source {name}", request.secret("api_key")
    if key is None:
        raise InputError(source, [Problem("key", "is missing; the service issues keys free of charge. Set "
                                          "FRED_API_KEY, or the option api_key")])  # fmt: skip
    # The client, with its one request method replaced by one with retries
    module = service.load_client("fredapi", FRED.extra)
    client = module.Fred(api_key=key)
    client.root_url = request.options.get("endpoint", client.root_url).rstrip("/")

    def ask(url: str) -> ElementTree.Element:
        return service.with_retries(lambda: _answer(f"{url}&api_key={key}", key, asking.manners), asking.manners)

    client._Fred__fetch_data = ask
    gathered: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for symbol in asking.each("series", request.symbols):
        usable: list[dict[str, Any]] = []
        try:
            info = {name: safe_line(value, key) for name, value in client.get_series_info(symbol).items()}
            if (every := info.get("frequency_short", "")) not in LAGS:
                problems.append(Problem(symbol, f"has the frequency {every!r}; known are {', '.join(LAGS)}"))
                continue
            common = {"series": symbol, "unit": info.get("units_short") or "not stated",
                    "title": info.get("title", symbol), "stale_days": STALE[every]}  # fmt: skip
            usable = [{**common, **row} for row in rows(client, symbol, info) if not np.isnan(row["value"])]
        except ServiceUnavailable:
            raise
        except _Refused as exc:
            problems.append(Problem(symbol, str(exc)))
            continue
        except Exception as exc:
            problems.append(Problem(symbol, service.parse_error("the reply", exc, key)))
            continue
        twice = len(usable) - len({(row["ref_period"], row["start"]) for row in usable})
        if not usable:
            problems.append(Problem(symbol, "has no value in the requested days"))
        elif infinite := [row for row in usable if np.isinf(row["value"])]:
            problems.append(Problem(f"{symbol}, {infinite[0]['ref_period']}", "the value is infinite"))
        elif twice:
            problems.append(Problem(symbol, f"{twice} values are there twice"))
        gathered += sorted(usable, key=lambda row: (row["ref_period"], row["start"]))
    if problems:
        raise InputError(source, problems)
    records = [
        {**{name: row[name] for name in ("series", "ref_period", "value", "unit", "title", "stale_days")},
         "realtime_start": datetime.fromtimestamp(row["start"], UTC),
         "realtime_end": None if row["end"] is None else datetime.fromtimestamp(row["end"], UTC)}
        for row in gathered
    ]  # fmt: skip
    return {"macro": pa.Table.from_pylist(records, schema=SCHEMAS["macro"])}, notes


class _Refused(Exception):
    """The service refuses one series."""


def _period_ends(dates: np.ndarray, every: str) -> np.ndarray:
    """Return the last day of each period, since the service names months, quarters and years by their first day."""
    if every not in _MONTHS:
        return dates
    return np.asarray((dates.astype("datetime64[M]") + _MONTHS[every]).astype("datetime64[D]") - 1)


def _answer(url: str, key: str, manners: RetryPolicy) -> ElementTree.Element:
    """Fetch one answer and parse its XML. No transport error leaves this function, because the URL holds the key."""
    failure, status, headers, body = "", 0, {}, b""
    try:
        try:
            opened = urllib.request.urlopen(url, timeout=manners.timeout)
        except urllib.error.HTTPError as exc:
            opened = exc  # an answer with an error status
        with opened as reply:
            status, headers, body = reply.status, dict(reply.headers), reply.read(manners.most_bytes + 1)
            if reply.length and len(body) <= manners.most_bytes:
                raise http.client.IncompleteRead(body, reply.length)
    except (OSError, http.client.HTTPException, ValueError) as exc:
        failure = f"the service does not answer ({type(exc).__name__}: {safe_line(exc, key)})"
    if failure:
        raise TransientError(failure)
    service.check_size(len(body), manners)
    service.check_answer(status, headers, body)
    # Parse the answer; an error that the service reports is raised.
    # A zero byte means a wider encoding, in which these markers would have other bytes.
    if b"<!ENTITY" in body or b"<!DOCTYPE" in body or b"\0" in body:
        raise ServiceUnavailable(
            "the answer declares a document type or is in a strange encoding; the service does neither: it is not read"
        )
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as exc:
        raise ServiceUnavailable(f"the answer is not XML ({safe_line(exc, key)})") from None
    if root.tag == "error" or status >= 400:
        message = safe_line(root.get("message") or f"status {status}", key)
        if "api_key" in message or status in (401, 403):
            raise ServiceUnavailable(f"the key is refused ({message}); check FRED_API_KEY, or the option api_key")
        raise _Refused(f"the service refuses: {message}")
    limit, count = root.get("limit", ""), root.get("count", "")
    if limit.isdigit() and count.isdigit() and int(count) > int(limit):
        raise _Refused(f"the service sent {limit} of {count} values; ask for fewer days or vintages")
    return root
