"""Which instruments a text speaks of, and whether it says why."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assaymark.judging.reference.lexicon import speaks_of
from assaymark.records import Instrument

_SENTENCE = re.compile(r"(?<=[.;!?])\s+|(?<=[。；！？])|\n+")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Mentions:
    """What is said about the holdings. Shares are of all weight held, None without holdings.

    ``alternatives`` counts other instruments that are named; ``checkable`` is conditions with a number per holding.
    """

    named: float | None
    explained: float | None
    alternatives: int
    checkable: float


@dataclass(frozen=True, slots=True)
class Called:
    """What an instrument is called: its symbol, which counts as written, and names in small letters, in any case."""

    symbol: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, item: Instrument) -> Called:
        """The symbol and names of an instrument; names of one or two letters tell too little."""
        names = dict.fromkeys((item.id, item.id.replace("_", " "), item.name, *item.aliases))
        found = (name.lower() for name in names if len(name) > 2 and name != item.symbol)
        return cls(item.symbol or "", tuple(dict.fromkeys(found)))

    def stands_in(self, text: str, lower: str) -> bool:
        """Whether a text, given as written and in small letters, names the instrument."""
        if self.symbol and self.symbol in text and _stands_in(self.symbol, text):
            return True
        return any(_stands_in(name, lower) for name in self.names if name in lower)


def called(instruments: Iterable[Instrument]) -> dict[str, Called]:
    """What each instrument is called, by id."""
    return {item.id: Called.of(item) for item in instruments}


def mentions(text: str, holdings: Mapping[str, float], known: Mapping[str, Called]) -> Mentions:
    """Who is named in ``text``, and in a sentence that gives a number, an event or a risk."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence]
    numeric = [bool(_DIGIT.search(sentence)) for sentence in sentences]
    reasons = "\n".join(
        one for one, digits in zip(sentences, numeric, strict=True) if digits or speaks_of(one, "catalyst", "risk")
    )
    conditions = sum(digits and speaks_of(one, "condition") for one, digits in zip(sentences, numeric, strict=True))
    items = {item: known.get(item) or Called.of(Instrument(id=item)) for item in holdings}
    lower, lower_reasons = text.lower(), reasons.lower()
    return Mentions(
        named=_share({key for key, item in items.items() if item.stands_in(text, lower)}, holdings),
        explained=_share({key for key, item in items.items() if item.stands_in(reasons, lower_reasons)}, holdings),
        alternatives=sum(item.stands_in(text, lower) for key, item in known.items() if key not in holdings),
        checkable=conditions / max(len(holdings), 1),
    )


def _share(chosen: set[str], holdings: Mapping[str, float]) -> float | None:
    """The part of all weight that the chosen holdings have."""
    total = math.fsum(holdings.values())
    return math.fsum(holdings[item] for item in chosen) / total if total else None


def _stands_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as a word of its own."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not _is_word(text[at - 1 : at] if at else "") and not _is_word(text[end : end + 1]):
            return True
        at = text.find(name, at + 1)
    return False


def _is_word(char: str) -> bool:
    """Whether a neighbouring character makes a name part of a longer word; unspaced scripts never do."""
    return char.isascii() and char.isalnum()
