"""Texts exactly as they came, on a page: escaped, with every character visible, and cut only where that is said."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Final, TypedDict

from markupsafe import Markup

from assaymark.records import Measurement
from assaymark.report.blocks import Linked
from assaymark.text import count

# What leads from one page of a run to a row on another.


RECORDS: Final = "records"
"""The key of the pages of records in the menu of a run."""

DECISIONS: Final = "decisions/page-001.html"
"""Where the decisions of a run begin."""


SEARCH: Final = "search.html"
"""The search over all judgments and calls of a study."""


class Below(TypedDict):
    """What the pages of records share."""

    here: str
    styles: tuple[str, ...]


BELOW: Final[Below] = {"here": RECORDS, "styles": ("trail.css",)}
"""Every page of records has this entry of the menu and this style."""


Rests = Callable[[Measurement], tuple[Linked, ...]]
"""Gives the records that a measurement was computed from."""

WHOLE: Final = 300_000
"""Bytes that one text may take on a page; a longer one is cut in the middle."""

_HEAD: Final = 0.7
_PLAIN: Final = frozenset("\n\t")
_KEPT: Final = frozenset(("Zs",))


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text as a page shows it, and how many characters were left out of its middle."""

    markup: Markup
    left_out: int

    @property
    def size(self) -> int:
        """Bytes on the page."""
        return len(self.markup.encode())


def visible(text: str) -> Markup:
    """A text as markup from which it can be read back to the last character.

    Characters that a reader cannot see, or that turn the direction of what follows, stand by their code point.

    >>> print(visible("a<b\\x1b[0m"))
    a&lt;b<i class="u">U+001B</i>[0m
    """
    escaped = escape(text, quote=False)
    if not text.isascii() or not text.isprintable():
        # Whether a character would not be seen, or not be kept, on a page.
        hidden = {
            ord(char): f'<i class="u">U+{ord(char):04X}</i>'
            for char in set(text)
            if (not char.isprintable() and char not in _PLAIN and unicodedata.category(char) not in _KEPT)
        }
        escaped = escaped.translate(hidden) if hidden else escaped
    return Markup(escaped)


def shown_text(text: str, limit: int = WHOLE) -> ShownText:
    """A text as markup of about ``limit`` bytes at most, with its middle left out where it is longer.

    >>> shown_text("x" * 30, 40).left_out, shown_text("x" * 60, 40).left_out
    (0, 24)
    """
    whole = visible(text) if len(text) <= limit else None
    if whole is not None and len(whole.encode()) <= limit:
        return ShownText(whole, 0)
    # A character takes at most 23 bytes, so that this ends.
    kept = min(len(text) - 1, int(limit * 0.9))
    while True:
        head = int(kept * _HEAD)
        first, last = visible(text[:head]), visible(text[len(text) - (kept - head) :])
        if kept < 2 or len(first.encode()) + len(last.encode()) <= limit:
            break
        kept = kept * 2 // 3
    left = len(text) - kept
    gap = Markup('<b class="cut">[{} characters are left out here]</b>').format(count(left))
    return ShownText(first + gap + last, left)
