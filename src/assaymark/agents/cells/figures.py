"""Numbers, sentences and instruments in a text: what is printed, where it stands, and in which piece."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from assaymark.records import Context, Instrument

LONGEST: int = 20_000
"""Longer texts are refused unread: a cell is a rationale and no book."""

_SPAN = r"(?:minutes?|mins?|hours?|days?|sessions?|weeks?|months?|years?|bars?)"
_FIGURE = re.compile(
    r"(?<![\w.,])(?P<sign>[+\-−])?(?P<whole>\d{1,3}(?:,\d{3})+|\d{1,15})(?P<frac>\.\d{1,15})?(?P<percent>\s?%)?"
    rf"(?!\w|\.\d|,\d{{3}}|[ -](?:one-)?{_SPAN}\b)"
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s|\Z)|\n+")
_HAS_DIGIT = re.compile(r"[+\-−]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:\s?%|[A-Za-z]+)?")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number as printed: ``text[start:end] == quote``. ``step`` is what its last digit is worth as printed."""

    start: int
    end: int
    quote: str
    value: float
    step: float
    percent: bool
    signed: bool
    grouped: bool

    @property
    def decimals(self) -> int:
        """Digits after the point."""
        return len(self.quote.rstrip("% ").partition(".")[2])

    @property
    def half(self) -> float:
        """Half of the last printed digit, with room for float arithmetic."""
        return self.step * (0.5 + 1e-6)

    def written(self, value: float) -> str:
        """Another value in the same dress: sign, separators, decimals and percent sign as here."""
        sign = "-" if value < 0 else "+" if self.quote[0] == "+" or (self.signed and self.value < 0) else ""
        body = f"{abs(value):{',' if self.grouped else ''}.{self.decimals}f}"
        return sign + body + self.quote[len(self.quote.rstrip("% ")) :]


def figures_in(text: str) -> tuple[Figure, ...]:
    """Every number of a text in order; horizons such as ``15m`` or ``60 minutes`` and digits of names are none.

    >>> [(one.quote, one.value) for one in figures_in("A 15m return of -0.80% on 1,200.50, over 15 minutes.")]
    [('-0.80%', -0.8), ('1,200.50', 1200.5)]
    """
    found = []
    for match in _FIGURE.finditer(text):
        sign, whole, frac = match.group("sign"), match.group("whole"), match.group("frac") or ""
        size = float(whole.replace(",", "") + frac)
        found.append(
            Figure(
                start=match.start(),
                end=match.end(),
                quote=match.group(),
                value=-size if sign and sign != "+" else size,
                step=10.0 ** -max(len(frac) - 1, 0),
                percent=bool(match.group("percent")),
                signed=bool(sign),
                grouped="," in whole,
            )
        )
    return tuple(found)


def numerals_in(text: str) -> list[str]:
    """Every run with a digit, horizons among them, sorted: two texts with equal lists print the same numbers.

    >>> numerals_in("the 15m return is -0.80%, 1,200 units.")
    ['-0.80%', '1,200', '15m']
    """
    return sorted(match.group().replace(" ", "") for match in _HAS_DIGIT.finditer(text))


def sentences_of(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence, its mark included and blanks left out.

    >>> text = "Up 1.5%. So I buy; then I wait"
    >>> [text[a:b] for a, b in sentences_of(text)]
    ['Up 1.5%.', 'So I buy;', 'then I wait']
    """
    found, start = [], 0
    for match in (*_SENTENCE_END.finditer(text), None):
        end = len(text) if match is None else match.end()
        piece = text[start:end]
        kept = piece.strip()
        if kept:
            first = start + piece.index(kept)
            found.append((first, first + len(kept)))
        start = end
    return found


@dataclass(frozen=True, slots=True)
class Mention:
    """One place where an instrument is named."""

    start: int
    end: int
    instrument: str


@lru_cache(maxsize=512)
def _names(instruments: tuple[Instrument, ...]) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    """Any name of any instrument, the longest first, and whose it is; a name of two is nobody's."""
    owners: dict[str, set[str]] = {}
    for item in instruments:
        for name in {item.id, item.name, item.symbol or "", *item.aliases} - {""}:
            owners.setdefault(name, set()).add(item.id)
    known = {name: next(iter(whose)) for name, whose in owners.items() if len(whose) == 1}
    if not known:
        return None, known
    ordered = sorted(known, key=lambda one: (-len(one), one))
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, ordered)) + r")(?!\w)"), known


def mentions_in(text: str, context: Context) -> list[Mention]:
    """The instruments that a text names, letter for letter, in order; Asset A is not named by Asset AB."""
    pattern, owner = _names(context.instruments)
    if pattern is None:
        return []
    return [Mention(one.start(), one.end(), owner[one.group()]) for one in pattern.finditer(text)]


def outside(figures: Sequence[Figure], mentions: Sequence[Mention]) -> tuple[Figure, ...]:
    """The figures that are no part of a name."""
    return tuple(one for one in figures if not any(m.start <= one.start < m.end for m in mentions))
