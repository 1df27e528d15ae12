"""House styles: the turn of phrase by which a text of a reference agent can be told, and by which a halo is planted.

Names are taken out of what a judge reads; a style is not. A judge that likes texts of its own make recognises them by
how they are written, so a reference judge with a planted halo looks for one of these phrases and for nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SIGNATURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "alder": "Read plainly,",
        "birch": "On the numbers,",
        "cedar": "By this screen,",
        "dogwood": "In brief,",
        "elder": "Seen whole,",
    }
)
"""Style name to the words with which its texts begin. Any agent can be given any style."""


def signature(style: str) -> str:
    """The opening words of a style; nothing for a style that has none.

    >>> signature("alder"), signature("plain")
    ('Read plainly,', '')
    """
    return SIGNATURES.get(style, "")


def style_of(text: str) -> str | None:
    """The style whose opening words a text contains; None if it has none, or those of several.

    >>> style_of("Read plainly, the book is full."), style_of("The book is full.")
    ('alder', None)
    """
    found = [style for style, words in SIGNATURES.items() if words in text]
    return found[0] if len(found) == 1 else None
