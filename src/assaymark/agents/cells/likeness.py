"""How alike two texts are in their words: numbers and names are left out, since a rewording keeps them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

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


def likest(texts: Sequence[str], *, n: int = 5) -> float:
    """The largest share of runs of ``n`` words that any two of the texts share (Jaccard): 1 is a copy.

    >>> likest(["a b c d e f", "a b c d e g", "u v w x y z"])
    0.3333333333333333
    """
    runs = [set(_runs(words_without(text), n)) for text in texts]
    shares = (len(a & b) / max(len(a | b), 1) for a, b in combinations(runs, 2))
    return max(shares, default=0.0)


def distinct_share(texts: Sequence[str], *, n: int = 5) -> float:
    """Distinct runs of ``n`` words over all of them in these texts: 1 where nothing is said twice.

    >>> distinct_share(["a b c d e", "a b c d e"])
    0.5
    """
    runs = [run for text in texts for run in _runs(words_without(text), n)]
    return len(set(runs)) / len(runs) if runs else 1.0


def _runs(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]
