"""What a source is asked for, and what it hands back before it becomes a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Protocol

from assaymark.errors import Problem
from assaymark.market.instruments import FIRST_DAY
from assaymark.market.sources.manners import Manners
from assaymark.records import JSON

SECRETS = ("api_key", "token")
"""Options whose values are never shown and never stored."""


class Progress(Protocol):
    """Called with what is being done, how much of it is done, and how much there is."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Note the state of one piece of work."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Request:
    """What is wanted of a source: symbols, the first and last day (both inclusive), and the source's own options.

    A key or token is an option too (`SECRETS`); it is shown as ``***`` wherever a request is printed.

    Examples
    --------
    >>> Request(symbols=("UNRATE",), options={"api_key": "abc"})
    Request(symbols=('UNRATE',), start=None, end=None, options={'api_key': '***'})
    """

    symbols: tuple[str, ...] = ()
    start: date | None = None
    end: date | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = {name: "***" if name in SECRETS else value for name, value in self.options.items()}
        return f"Request(symbols={self.symbols!r}, start={self.start!r}, end={self.end!r}, options={shown!r})"

    @property
    def first(self) -> date:
        """The first day of bars: ``start``, or the first day of the embedded market where none was given."""
        return self.start or FIRST_DAY

    def last(self, now: datetime) -> date:
        """The last day of bars: ``end``, or today (UTC) where that is earlier or no end was given."""
        today = now.astimezone(UTC).date()
        return min(self.end, today) if self.end else today

    def secret(self, name: str) -> str | None:
        """The value of an option that must not be shown, or None."""
        return self.options.get(name) or None

    def as_query(self) -> dict[str, JSON]:
        """The request as it is written down beside the data: without secrets."""
        return {
            "symbols": list(self.symbols),
            "start": self.start.isoformat() if self.start else None,
            "end": self.end.isoformat() if self.end else None,
            "options": {name: value for name, value in sorted(self.options.items()) if name not in SECRETS},
        }


@dataclass(frozen=True, slots=True)
class Asking:
    """How one pull goes about it: the time it is made, its manners, and who is told how far it is."""

    now: datetime
    manners: Manners
    progress: Progress


@dataclass(frozen=True, slots=True)
class Draft:
    """Tables without the name of their snapshot, which is made from them, and what a reader must know about them."""

    tables: Mapping[str, Any]
    notes: tuple[str, ...]


Fetch = Callable[[Request, Asking], Draft]
"""A source: it raises `InputError` with every problem, or `Stopped` where the service as a whole does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One networked source: what it gives, what it needs, and under which terms.

    ``extra`` is the optional dependency, ``options`` the names a request may use with what they mean (a name that ends
    in ``.`` takes a symbol behind it), and ``key_variable`` the environment variable that whoever calls may read the
    option ``api_key`` or ``token`` from; this package reads no environment.
    """

    name: str
    extra: str
    gives: str
    needs: str
    licence: str
    options: Mapping[str, str]
    symbols: bool = True
    key_variable: str | None = None
    key_option: str | None = None

    def problems(self, request: Request) -> list[Problem]:
        """What is wrong with a request before anything is sent."""
        found = []
        if self.symbols and not request.symbols:
            found.append(Problem("symbols", f"at least one is needed: {self.needs}"))
        for symbol in sorted({one for one in request.symbols if request.symbols.count(one) > 1}):
            found.append(Problem(symbol, "is asked for more than once"))
        found += [
            Problem("symbols", f"must be printable and without spaces (got {symbol!r})")
            for symbol in request.symbols
            if not symbol or not symbol.isprintable() or any(one.isspace() for one in symbol)
        ]
        if request.start and request.end and request.start > request.end:
            found.append(Problem("start", f"{request.start} comes after the end, {request.end}"))
        found += [
            Problem(f"option {name}", f"is unknown; {self.name} takes {', '.join(self.options)}")
            for name in request.options
            if not any(name == one or (one.endswith(".") and name.startswith(one)) for one in self.options)
        ]
        endpoint = request.options.get("endpoint")
        if endpoint is not None and not endpoint.startswith(("https://", "http://")):
            found.append(Problem("option endpoint", f"must begin with https:// or http:// (got {endpoint!r})"))
        return found
