"""How alike two texts are in their words: numbers and names are left out, since a rewording keeps them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NUMERAL = re.compile(r"[+\-−]?\d[\w.,%]*")


def words_without(text: str, names: Sequence[str] = ()) -> list[str]:
    """The words of a text in lower case, without numbers and without these names.

    >>> words_without("Asset A is up 3.1% over 15m", ["Asset A"])
    ['is', 'up', 'over']
    """
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    return _WORD.findall(_NUMERAL.sub(" ", text).lower())


def word_overlap(one: str, other: str, names: Sequence[str] = ()) -> float:
    """The share of words that two texts have in common, in any order (Dice); 1 where neither has any.

    >>> word_overlap("the book is full", "the book looks full")
    0.75
    """
    left, right = Counter(words_without(one, names)), Counter(words_without(other, names))
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 1.0


def run_overlap(one: str, other: str, names: Sequence[str] = (), *, n: int = 3) -> float:
    """The share of the first text's runs of ``n`` words that the other still has; 1 where it has none.

    >>> run_overlap("the book is full", "now the book is rich")
    0.5
    """
    left, right = (Counter(_runs(words_without(text, names), n)) for text in (one, other))
    return (left & right).total() / left.total() if left else 1.0


def _runs(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]
