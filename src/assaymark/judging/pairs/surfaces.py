"""Changes to the surface of a text that leave what it says as it is: a typo, a unit, a synonym."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from assaymark.judging.pairs.wording import SYNONYMS, UNITS

_WORD = re.compile(r"(?<![\w-])[a-z]{6,}(?![\w-])")

Change = Callable[[str, Collection[str]], str | None]
"""From a text and the names of its requirements to the changed text; None if there is nothing to change."""


def with_typo(text: str, kept: Collection[str]) -> str | None:
    """``text`` with two letters of its first long word exchanged, but of no word of a requirement's name.

    >>> with_typo("The position size was discussed.", ["position size"])
    'The position size was dicsussed.'
    """
    words = {word for name in kept for word in name.split()}
    for found in _WORD.finditer(text):
        word = found.group()
        at = next((i for i in range(2, len(word) - 1) if word[i] != word[i + 1]), None)
        if word not in words and at is not None:
            swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            return text[: found.start()] + swapped + text[found.end() :]
    return None


def with_other_unit(text: str, kept: Collection[str]) -> str | None:  # noqa: ARG001 - all changes are called alike
    """``text`` with its first unit written another way; the value stays.

    >>> with_other_unit("We hold 4 % of it.", ())
    'We hold 4 percent of it.'
    """
    for pattern, written in UNITS:
        changed, count = pattern.subn(written, text, count=1)
        if count:
            return changed
    return None


def with_synonym(text: str, kept: Collection[str]) -> str | None:
    """``text`` with one word swapped for another of the same meaning.

    >>> with_synonym("The whole note ends here.", ())
    'The entire note ends here.'
    """
    words = {word for name in kept for word in name.split()}
    for word, other in SYNONYMS:
        changed, count = re.subn(rf"(?<![\w-]){word}(?![\w-])", other, text, count=1)
        if count and word not in words and other not in words:
            return changed
    return None


CHANGES: Mapping[str, Change] = {"typo": with_typo, "unit": with_other_unit, "synonym": with_synonym}
"""The variants of graded vacuum by name."""
