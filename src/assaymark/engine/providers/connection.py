"""Blocking work in a thread that can be left behind: whoever waits for it is released the moment it is cancelled."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote

from assaymark.text import code_points

# Keys of providers: held so that nothing shows them, and taken out of every text that might repeat them.


LONGEST_FORM: Final = 6
"""No form of a key that `scrub` looks for is longer than so many times the key."""

_DETAIL_CHARS: Final = 300
_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|xai|gsk)-[A-Za-z0-9_*.\-]{4,}|\bAIza[A-Za-z0-9_*.\-]{4,}|\bBearer\s+\S+")


class Secret:
    """A key that no representation shows, so that neither a traceback nor a log does.

    >>> Secret("sk-canary-123")
    [key]
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "[key]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def reveal(self) -> str:
        """The key itself, to be handed to an SDK and to nothing else."""
        return self._value


def scrub(text: str, secrets: Sequence[Secret]) -> str:
    """``text`` with ``[key]`` in place of every secret, as it is and as JSON or an address would write it.

    >>> scrub("wrong key: canary/9f", [Secret("canary/9f")])
    'wrong key: [key]'
    """
    for secret in secrets:
        value = secret.reveal()
        forms = {value, json.dumps(value)[1:-1], value.replace("/", "\\/"), quote(value, safe="")}
        # The longest first: half of an escaped quote taken for the key's own would leave a text that is no JSON.
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, repr(secret))
    return text


def printable(text: str, secrets: Sequence[Secret], most: int = _DETAIL_CHARS) -> str:
    """A provider's words for a message: one line, cut short, without a key or anything that looks like one.

    >>> printable("Incorrect key: sk-pr***9Zxy.\\n", [])
    'Incorrect key: [key]'
    """
    shown = " ".join("".join(char if char.isprintable() else " " for char in code_points(text[: 8 * most])).split())
    shown = _LIKE_A_KEY.sub("[key]", scrub(shown, secrets))
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


T = TypeVar("T")


async def apart(work: Callable[[], T], *, leave: Callable[[], None] | None = None) -> T:
    """The result of ``work()``, done in a thread of its own while the event loop goes on.

    Examples
    --------
    >>> asyncio.run(apart(lambda: 6 * 7))
    42
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: object) -> None:
        if not done.done():
            set_it(value)

    def run() -> None:
        try:
            result: tuple[Callable[[Any], None], object] = (done.set_result, work())
        except BaseException as exc:  # it belongs to whoever waits, not to the thread
            result = (done.set_exception, exc)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, *result)

    threading.Thread(target=run, name="external agent", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        if leave is not None:
            leave()
        raise
