"""When a model is asked no further in a run: nothing that it can be asked in its manner brings anything usable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assaymark.engine.breaker import KEPT
from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import ModelError
from assaymark.records import canonical_json
from assaymark.typography import code_points

Unusable = Callable[[CallSpec, Reply], tuple[str, str] | None]
"""Who was asked, and why nothing can be made of the reply, in words; None if something can."""

FIRST: Final = 20
"""So many replies without a usable one among them, and a model is asked no further."""

_LINE_CHARS: Final = 100


class Watch:
    """Stops calls of one model, asked with the same arguments, that can bring nothing; others go on.

    It stops at once when a provider says that none of them can succeed (`ModelError.always`), and after the first
    `FIRST` replies if all of them are unusable. Replies of earlier runs count when they are told to `replied`.

    >>> watch = Watch(lambda call, reply: ("north", "no JSON object"))
    >>> call = CallSpec(model="openai/m", messages=(), template="")
    >>> for n in range(FIRST):
    ...     watch.replied(call, Reply(text="Four points.", model="m"))
    >>> watch.stopped(call), watch.lines[0][:88]
    (True, "north: none of its first 20 replies is usable (no JSON object; the first: 'Four points.'")
    """

    def __init__(self, unusable: Unusable | None = None) -> None:
        self._unusable = unusable
        self._first: dict[str, list[str]] = {}
        self._good: set[str] = set()
        self._stopped: dict[str, str] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each model that is asked no further."""
        return tuple(dict.fromkeys(self._stopped.values()))

    def stopped(self, call: CallSpec) -> bool:
        """Whether a call is not to be sent any more."""
        return bool(self._stopped) and _manner(call) in self._stopped

    def failed(self, call: CallSpec, error: ModelError) -> None:
        """An attempt failed for good."""
        if error.always:
            self._stopped.setdefault(_manner(call), f"{error}; {KEPT}")

    def replied(self, call: CallSpec, reply: Reply) -> None:
        """A reply came."""
        if self._unusable is None:
            return
        manner = _manner(call)
        if manner in self._good or manner in self._stopped:
            return
        found = self._unusable(call, reply)
        if found is None:
            self._good.add(manner)
            return
        first = self._first.setdefault(manner, [])
        first.append(first_line(reply.text))
        if len(first) == FIRST:
            why = f"none of its first {FIRST} replies is usable ({found[1]}; the first: {first[0]})"
            self._stopped[manner] = f"{found[0]}: {why}; {KEPT}"


def first_line(text: str) -> str:
    """The first line of a reply, printable, cut short and quoted.

    >>> first_line("Sorry,\\nI cannot."), first_line("")
    ("'Sorry,'", 'an empty reply')
    """
    line = next((line.strip() for line in text[: 40 * _LINE_CHARS].splitlines() if line.strip()), "")
    shown = "".join(char if char.isprintable() else " " for char in code_points(line))
    return repr(shown if len(shown) <= _LINE_CHARS else f"{shown[: _LINE_CHARS - 3]}...") if shown else "an empty reply"


def _manner(call: CallSpec) -> str:
    """Everything about a call but its texts."""
    return f"{call.model} {canonical_json([call.args, call.effort, call.temperature, call.schema is None])}"
