"""What assaymark raises on purpose.

::

    AssayError                 one line for the user, exit status 1
    |-- InputError             a file or record from outside is wrong: every problem of it, at once
    |-- PlanError              a study file, its lock, and the records do not go together
    |-- UnknownNameError       a name somebody wrote is not one of ours ("Did you mean ...?")
    |-- NotMeasurableError     the number asked for is undefined on these data
    |-- LedgerError            stored bytes are damaged, or belong to somebody else
    |-- ModelError             one attempt at a model call failed; says whether trying again can help
    `-- StoppedError           somebody asked to stop (Ctrl-C, SIGTERM); says what is kept, exit status 130

A class is here only because somebody catches it. Messages say what is wrong, the value seen, what is allowed,
and where; they start in lower case and carry no markup.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

LISTED = 20
"""An error lists so many problems and counts the rest: a broken file has thousands, and nobody reads them."""

MOST_NAMED = 30
"""A message lists so many known names; of more it lists the first few and counts the rest."""

_NAMED = 12


class AssayError(Exception):
    """Base of every error that assaymark raises on purpose. Catch it to show one line instead of a traceback."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: where it is, and what is wrong there (with the value seen and what is allowed)."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class InputError(AssayError):
    """A file or record from outside is wrong. Carries all of its problems, not only the first.

    The message lists the first `LISTED` and counts the rest. ``more`` is how many there are beyond those that are
    given, where nobody kept them.
    """

    def __init__(self, source: str, problems: Iterable[Problem | str], *, more: int = 0) -> None:
        self.source = source
        self.problems: tuple[Problem, ...] = tuple(p if isinstance(p, Problem) else Problem("", p) for p in problems)
        lines, total = [*map(str, self.problems[:LISTED])], len(self.problems) + more
        if total > len(lines):
            lines.append(f"and {total - len(lines)} more")
        super().__init__(
            f"{source}: {self.problems[0]}" if total == 1 else "\n  ".join([f"{source}: {total} problems", *lines])
        )


class PlanError(AssayError):
    """A study file, its lock and the records it is asked to work on do not go together."""


class UnknownNameError(AssayError):
    """A name that a person wrote is not known; the message offers what was ``meant``, or the closest known name."""

    def __init__(self, kind: str, name: str, known: Sequence[str], *, meant: str | None = None) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        close = difflib.get_close_matches(name, self.known, n=1) if meant is None else [meant]
        hint = f" Did you mean {close[0]!r}?" if close else ""
        shown = self.known if len(self.known) <= MOST_NAMED else self.known[:_NAMED]
        more = len(self.known) - len(shown)
        listed = ", ".join(shown) + (f" and {more} more" if more else "") if self.known else "none"
        super().__init__(f"unknown {kind} {name!r}.{hint} Known: {listed}")


class NotMeasurableError(AssayError):
    """The quantity is undefined on these data. Raised instead of returning a quiet 0.0 or NaN."""


class LedgerError(AssayError):
    """What is stored does not match its hash, cannot be read, or belongs to another run."""


class ModelError(AssayError):
    """One attempt at a model call failed.

    ``retryable`` says whether another attempt can help. ``retry_after`` is how many seconds the provider asked to
    wait before it. With ``quota`` no call of this provider can succeed (the key is wrong, or there is no money left),
    and with ``always`` no call of this model (nobody knows its name, or it takes no schema).
    ``refused`` says that the provider turned this one call away for good: for its ``content`` (a filter), or for a
    reason of the ``call`` that may also be one of all calls (too long, a bad request).
    """

    def __init__(
        self, message: str, *, retryable: bool, retry_after: float | None = None, quota: bool = False,
        always: bool = False, refused: Literal["content", "call"] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.retryable, self.retry_after, self.quota = retryable, retry_after, quota
        self.always, self.refused = always, refused


class StoppedError(AssayError):
    """The work was asked to stop before its end, by Ctrl-C or SIGTERM. The message says what is kept."""
