"""Which requirements a text meets, by a rule that needs nothing but the text and the requirements' names.

A requirement is met by a sentence that names it together with a value, and met in part by one that names it without.
The rule is what tasks are checked with, what the gates recount, and all that a reference judge understands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

MET, PARTLY, MISSING = 1.0, 0.5, 0.0
"""What a requirement earns that is met, named without its value, and not named."""

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_VALUE = re.compile(r'\d|"[^"\n]+"|“[^”\n]+”')


def sentences(text: str) -> list[str]:
    """The sentences of a text: cut behind a full stop, question or exclamation mark, and at line ends.

    >>> sentences("Stop at 8.5. Cash?\\n- None left")
    ['Stop at 8.5.', 'Cash?', '- None left']
    """
    return [one for one in _BREAK.split(text) if one]


def has_value(sentence: str) -> bool:
    """Whether a sentence holds a value: a digit, or words between double quotation marks."""
    return _VALUE.search(sentence) is not None


@lru_cache(maxsize=8192)
def _named(name: str) -> re.Pattern[str]:
    """The name as words of its own."""
    return re.compile(rf"(?<!\w){re.escape(name.lower())}(?!\w)")


def names(sentence: str, name: str) -> bool:
    """Whether a sentence names a requirement, in any case and as words of its own.

    >>> names("Our stop is near", "stop"), names("We stopped", "stop")
    (True, False)
    """
    lower = sentence.lower()
    # Looking for the words first is what makes a thousand tasks quick: most sentences name one requirement of five.
    return name.lower() in lower and _named(name).search(lower) is not None


@lru_cache(maxsize=8192)
def marks(text: str, requirements: tuple[str, ...]) -> tuple[float, ...]:
    """What each requirement earns in ``text``: `MET`, `PARTLY` or `MISSING`, in the order of ``requirements``.

    >>> marks("The stop is 12. Cash is low.", ("stop", "cash", "horizon"))
    (1.0, 0.5, 0.0)
    """
    found = sentences(text)
    return tuple(_mark([one for one in found if names(one, name)]) for name in requirements)


def _mark(naming: Sequence[str]) -> float:
    """What the sentences that name a requirement earn it."""
    if not naming:
        return MISSING
    return MET if any(map(has_value, naming)) else PARTLY
