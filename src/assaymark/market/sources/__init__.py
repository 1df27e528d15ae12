"""Networked sources of prices and macro series: optional clients, called with retries, that return snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TypeVar

from assaymark.errors import AssayError, InputError, Problem, UnknownNameError, check_known
from assaymark.market.snapshot import Origin, Snapshot, content_digest, with_texts
from assaymark.market.sources import bars, fred, huggingface
from assaymark.market.sources.huggingface import QuestionFile
from assaymark.market.sources.request import Fetch, Progress, Pull, Request, RetryPolicy, ServiceUnavailable, Source
from assaymark.records import canonical_json, sha256_text

# One request to one networked source returns a snapshot or raises with all problems

T = TypeVar("T")

SOURCES: Mapping[str, Source] = MappingProxyType(
    {source.name: source for source in (bars.YAHOO, fred.FRED, fred.ALFRED, bars.CCXT, huggingface.SOURCE)}
)
"""The networked sources by name, each with its data, requirements, options, licence note and package extra."""

_FETCH: Mapping[str, Fetch] = {
    "yfinance": bars.fetch_yahoo, "fred": fred.fetch, "alfred": fred.fetch_vintages, "ccxt": bars.fetch_exchange,
    "huggingface": huggingface.fetch,
}  # fmt: skip

# The client libraries keep process-wide sessions, which are replaced during a request.
_ONE_AT_A_TIME = Lock()


def _silent(kind: str, done: int, total: int, /) -> None:
    """Ignore progress."""


def pull(
    source: str, request: Request, *, now: datetime, progress: Progress = _silent, manners: RetryPolicy | None = None
) -> Snapshot:
    """Fetch the current data of a networked source as one snapshot. Raises `InputError` with all problems."""
    service = _known(source, request, now)
    asking = Pull(now, manners or RetryPolicy(), progress)
    tables, notes = _answered(service.name, lambda: _FETCH[service.name](request, asking))
    # The same answer on one day has the same name.
    contents = {name: content_digest(table) for name, table in sorted(tables.items())}
    name = f"{service.name}-{now.astimezone(UTC).date()}-{sha256_text(canonical_json(contents))[:12]}"
    origin = Origin(service.name, now, request.as_query(), service.licence, notes)
    bars = {"bars": with_texts(tables["bars"], snapshot=name)} if "bars" in tables else {}
    return Snapshot(name, origin, {**tables, **bars})


def pull_questions(
    request: Request, folder: Path, *, now: datetime, progress: Progress = _silent, manners: RetryPolicy | None = None
) -> Questions:
    """Fetch a file of questions (JSON Lines) of a dataset, such as PortBench-QA, into ``folder``, with a file of its
    provenance."""
    service = _known("huggingface", request, now)
    asking = Pull(now, manners or RetryPolicy(), progress)
    return _answered(service.name, lambda: huggingface.fetch_questions(request, asking, folder))


def _known(source: str, request: Request, now: datetime) -> Source:
    """Return the source of this name. Raises `InputError` if the request is invalid."""
    check_known("source", SOURCES, source)
    problems = SOURCES[source].problems(request)
    if now.tzinfo is None:
        problems.append(Problem("now", f"needs a time zone (got {now.isoformat()})"))
    if problems:
        raise InputError(f"source {source}", problems)
    return SOURCES[source]


def _answered(source: str, ask: Callable[[], T]) -> T:
    """Return the result of ``ask``. Its errors are raised anew, because the frames of their tracebacks hold the key."""
    failed: AssayError
    with _ONE_AT_A_TIME:
        try:
            return ask()
        except ServiceUnavailable as exc:
            failed = InputError(f"source {source}", [str(exc)])
        except InputError as exc:
            failed = InputError(f"source {source}", exc.problems)
        except UnknownNameError as exc:
            failed = UnknownNameError(exc.kind, exc.name, exc.known)
    raise failed


Manners = RetryPolicy  # its name in 0.1
Questions = QuestionFile  # its name in 0.1

__all__ = ["SOURCES", "QuestionFile", "Request", "RetryPolicy", "Source", "pull", "pull_questions"]
