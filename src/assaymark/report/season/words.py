"""Numbers, dates and sentences in one language, as the pages of a season set them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from assaymark.claims.messages import Catalogue, Said, Value
from assaymark.judging.season.plans import SubComponent
from assaymark.report.blocks import Filter
from assaymark.text import NBSP, clean, prose

_SENTENCE: Final = 900
_WORDS: Final = range(2, 13)


@dataclass(frozen=True, slots=True)
class Words:
    """One language. Calling it words a sentence of the pages; `text` words one that came with the season.

    >>> from assaymark.claims.messages import english
    >>> words = Words(english())
    >>> words("places.range", first=2, last=4), words.percent(-0.0184), words.count(14500)
    ('2 to 4', '−1.8\\xa0%', '14,500')
    """

    catalogue: Catalogue

    def __call__(self, key: str, **values: Value) -> str:
        """A sentence of the pages. Values are set as they are: clean those that come from a record."""
        return _set(self.catalogue.say(key, **values))

    def has(self, key: str) -> bool:
        """Whether the language has such a key."""
        return key in self.catalogue.texts

    def text(self, sentence: Said, limit: int = _SENTENCE) -> str:
        """A sentence of the season in words, safe to show."""
        return _set(prose(self.catalogue.render(sentence), limit))

    def texts(self, sentences: Iterable[Said]) -> str:
        """Sentences of the season one after the other."""
        return " ".join(self.text(one) for one in sentences)

    def term(self, group: str, name: str) -> str:
        """The word for one of a few names, such as a band; a name that the language does not have stays as it is.

        >>> from assaymark.claims.messages import english
        >>> Words(english()).term("month", "1"), Words(english()).term("month", "Pluviôse")
        ('January', 'Pluviôse')
        """
        return self(f"{group}.{name}") if self.has(f"{group}.{name}") else clean(name, 80)

    def part(self, part: SubComponent) -> str:
        """What a part of an axis is called; one that the language does not know keeps the title of its plan."""
        return self(f"part.{part.name}") if self.has(f"part.{part.name}") else clean(part.title, 80)

    def of(self, n: int, name: str) -> str:
        """The word for what was counted, after its number.

        >>> from assaymark.claims.messages import english
        >>> Words(english()).of(12, "gradings"), Words(english()).of(1, "gradings")
        ('gradings', 'grading')
        """
        return self.term("of_one" if n == 1 and self.has(f"of_one.{name}") else "of", name)

    def names(self, names: Sequence[str]) -> str:
        """Names as a list in words, safe to show."""
        return self.catalogue.names([clean(name, 60) for name in names])

    def number(self, value: float, digits: int = 1, *, sign: bool = False) -> str:
        """A number with fixed decimals and a true minus; 0 has no sign."""
        if not sign or not float(f"{value:.{digits}f}"):
            return self.catalogue.number(abs(value) if not float(f"{value:.{digits}f}") else value, f".{digits}f")
        return self.catalogue.number(value, f"+.{digits}f")

    def money(self, value: float) -> str:
        """An amount in whole units, in groups of three digits."""
        return self.catalogue.number(value, ".0f") if abs(value) < 1000 else self._grouped(value)

    def count(self, value: int) -> str:
        """A count in groups of three digits."""
        return self._grouped(value)

    def few(self, value: int) -> str:
        """Small counts as words, from two on."""
        return self.catalogue.say(f"claim.count.{value}") if value in _WORDS else self.count(value)

    def percent(self, share: float, digits: int = 1, *, sign: bool = False) -> str:
        """A share in percent; the sign never leaves its number at the end of a line."""
        return _set(self.catalogue.say("format.percent", value=self.number(100 * share, digits, sign=sign)))

    def span(self, low: float, high: float, digits: int = 1, *, sign: bool = False) -> str:
        """The ends of an interval."""
        ends = (self.number(end, digits, sign=sign) for end in (low, high))
        return self.catalogue.say("places.range", **dict(zip(("first", "last"), ends, strict=True)))

    def day(self, text: str, *, short: bool = False) -> str:
        """An ISO date or time as it is read, or in ``short`` as day and month for an axis; what is no date stays.

        >>> from assaymark.claims.messages import english
        >>> Words(english()).day("2026-01-05"), Words(english()).day("2026-01-02T08:00:00Z")
        ('5 January 2026', '2 January 2026, 08:00 UTC')
        >>> Words(english()).day("2026-01-05", short=True)
        '5 Jan'
        """
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return clean(text, 12 if short else 40)
        parts = {"day": str(at.day), "month": self.catalogue.say(f"month.{at.month}"), "year": str(at.year)}
        if short:
            return self.catalogue.say("format.day", **parts | {"month": parts["month"][:3], "year": ""}).strip()
        if len(text) <= len("2026-01-05"):
            return self.catalogue.say("format.day", **parts)
        time = (at.astimezone(UTC) if at.tzinfo else at).strftime("%H:%M")
        return self.catalogue.say("format.moment", **parts, time=time)

    def quoted(self, text: str) -> str:
        """A sentence in the quotation marks of the language."""
        return f"{self.catalogue.say('frame.open')}{text}{self.catalogue.say('frame.close')}"

    def filters(self, keys: Sequence[str], titles: Mapping[str, str]) -> tuple[Filter, ...]:
        """A button for all rows, then one for each key that a row has, in the order of ``titles``."""
        seen = Counter(keys)
        every = Filter("", self.catalogue.say("frame.all"), self.count(len(keys)))
        return (every, *(Filter(key, title, self.count(seen[key])) for key, title in titles.items() if seen[key]))

    def _grouped(self, value: float) -> str:
        written = f"{value:,.0f}".replace("-", self.catalogue.minus)
        return written.replace(",", self.catalogue.say("format.thousands"))


def _set(text: str) -> str:
    return text.replace(" %", f"{NBSP}%")
