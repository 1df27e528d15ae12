"""How a service is asked: a bounded number of times, waiting as long as it says, with limits of time and size."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any, TypeVar

from assaymark.errors import InputError

T = TypeVar("T")

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same question may be asked again."""

_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """What is bearable on both sides.

    ``attempts`` is how often one question is asked, ``first_wait`` the seconds before the second attempt (doubled
    before each further one), ``longest_wait`` the most that is waited once, also where the service asks for more,
    ``timeout`` the seconds until an answer begins or goes on, ``most_bytes`` the largest answer that is read, and
    ``sleep`` what waits.
    """

    attempts: int = 4
    first_wait: float = 2.0
    longest_wait: float = 60.0
    timeout: float = 30.0
    most_bytes: int = 256 * 1024 * 1024
    sleep: Callable[[float], None] = time.sleep


class Busy(Exception):
    """One attempt failed in a way the next may not. ``wait`` is how many seconds the service asks for, if it says."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Stopped(Exception):
    """The service as a whole cannot be used now: its one line says why. Becomes an `InputError` in `pull`."""


def patiently(ask: Callable[[], T], manners: Manners) -> T:
    """What ``ask`` returns, asked again after `Busy` as far as manners go.

    Raises
    ------
    Stopped
        Every attempt failed, or the service asks for a longer wait than is waited.

    Examples
    --------
    >>> waits, answers = [], iter([Busy("429", 7.0), Busy("429"), "data"])
    >>> def ask():
    ...     answer = next(answers)
    ...     if isinstance(answer, Busy):
    ...         raise answer
    ...     return answer
    >>> patiently(ask, Manners(sleep=waits.append)), waits
    ('data', [7.0, 4.0])
    """
    reason = "was never asked"
    for attempt in range(manners.attempts):
        try:
            return ask()
        except Busy as busy:
            reason, asked = str(busy), busy.wait
        wait = manners.first_wait * 2**attempt if asked is None else asked
        if asked is not None and asked > manners.longest_wait:
            raise Stopped(f"{reason}, and a wait of {asked:.0f} s is asked for (at most {manners.longest_wait:.0f} s "
                          "are waited); try again later")  # fmt: skip
        if attempt + 1 < manners.attempts:
            manners.sleep(min(wait, manners.longest_wait))
    raise Stopped(f"{reason}; given up after {manners.attempts} attempts, try again later")


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that a ``Retry-After`` header asks for, or None where there is none that can be read.

    A date is read against the ``Date`` header of the same answer, so that no clock of this machine counts.

    >>> asked_wait({"Retry-After": "7"}), asked_wait({"Retry-After": "soon"})
    (7.0, None)
    """
    named = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    after = named.get("retry-after", "")
    if after.isascii() and after.isdigit() and len(after) < 10:
        return float(after)
    try:
        return max((parsedate_to_datetime(after) - parsedate_to_datetime(named["date"])).total_seconds(), 0.0)
    except (KeyError, TypeError, ValueError):
        return None


def checked_status(status: int, headers: Mapping[str, str]) -> None:
    """Raise `Busy` for an answer after which the question may be asked again."""
    if status in AGAIN:
        reason = "too many requests" if status == 429 else "the service is not available"
        raise Busy(f"{reason} (status {status})", asked_wait(headers))


def checked_size(size: int, manners: Manners) -> None:
    """Raise `Stopped` for an answer that is larger than is read."""
    if size > manners.most_bytes:
        raise Stopped(f"the answer is larger than {manners.most_bytes:,} bytes, the most that is read")


def checked_data(body: bytes) -> None:
    """Raise `Stopped` for a page where data were asked for: a sign-in, an error page, a proxy's notice."""
    start = body[:512].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        raise Stopped("the answer is an HTML page, not data: a block, a sign-in or an error page stands in between")


def one_line(text: object, *hidden: str | None) -> str:
    """Foreign text for a message: one line, printable, short, and without what must stay hidden.

    >>> one_line("key abc is\\n wrong", "abc")
    'key *** is wrong'
    """
    shown = str(text)
    for secret in filter(None, hidden):
        shown = shown.replace(secret, "***")
    shown = " ".join("".join(one if one.isprintable() else " " for one in shown).split())
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


def library(name: str, extra: str) -> Any:
    """The client library of a source.

    Raises
    ------
    InputError
        It is not installed; the message says what to install.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as exc:
        missing = f" ({exc.name} is missing)" if exc.name != name else ""
        raise InputError(
            f"source {extra}", [f"needs a library that is not installed{missing}: pip install 'assaymark[{extra}]'"]
        ) from None


@contextmanager
def outdated_uses_of(client: str) -> Iterator[None]:
    """Leave out warnings that a client library uses another library in an outdated way: nobody here can mend that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=rf"{client}(\.|$)")
        warnings.filterwarnings("ignore", category=FutureWarning, module=rf"{client}(\.|$)")
        yield
