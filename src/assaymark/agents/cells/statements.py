"""What a text states and what is true: features of instruments, the arithmetic of the book, and its own orders.

Written for checking, so it reads only what it is sure of: a figure that it cannot place is reported as unread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from assaymark.agents.cells.book import Book
from assaymark.agents.cells.figures import Figure, Mention, figures_in, mentions_in, outside, sentences_of
from assaymark.records import Action, Context

FAR_STEPS: Final = 5
"""A wrong number is far from the truth if it misses it by this many of its last printed digits ..."""

FAR_SHARE: Final = 0.25
"""... and by this share of the larger of the two sizes."""

_BREAK = re.compile(r"[,;:()]|\s[-–—/]\s|\b(?:and|but|while|whereas|although|though|plus|with|against|on)\b")
_WORD = re.compile(r"[a-z]+")
_HORIZON = re.compile(r"\b(\d{1,4})[ -]?(m|s|d|w|h|min|minute|minutes|session|sessions|day|days|week|weeks)\b")
_WHOLE_HOUR = re.compile(
    r"\b(?:over|across|through|within|during|of|in|for) (?:the|this) (?:last |past |whole )?(?:hour|window)\b"
)
_SAME: Final = {"vol": "volatility", "volatile": "volatility", "returns": "return", "returned": "return"}
_DOWN: Final = frozenset(
    [
        "down",
        "fell",
        "falls",
        "falling",
        "lost",
        "loses",
        "losing",
        "lower",
        "dropped",
        "drops",
        "declined",
        "declines",
        "shed",
    ]
)
_UP: Final = frozenset(
    ["up", "rose", "rises", "rising", "gained", "gains", "gaining", "higher", "added", "advanced", "climbed"]
)
_TRADES: Final = {
    "buy": "buy", "buys": "buy", "bought": "buy", "buying": "buy", "purchase": "buy", "sell": "sell", "sells": "sell",
    "sold": "sell", "selling": "sell", "short": "short", "shorted": "short", "cover": "cover", "covered": "cover",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stated:
    """One number that a text gives for something that can be looked up or computed.

    ``about`` is a field, or a quantity of `Book.amounts`; ``instrument`` is empty for the latter. ``stated`` and
    ``actual`` are in the printed unit.
    """

    figure: Figure
    about: str
    instrument: str
    stated: float
    actual: float

    @property
    def right(self) -> bool:
        """Whether the printed digits are those of the truth."""
        return abs(self.stated - self.actual) <= self.figure.half + abs(self.actual) * 1e-12

    @property
    def far(self) -> bool:
        """Whether no rounding, truncation or other choice of digits can explain the difference."""
        gap = abs(self.stated - self.actual)
        return gap >= FAR_STEPS * self.figure.step and gap >= FAR_SHARE * max(abs(self.stated), abs(self.actual))


@dataclass(frozen=True, slots=True)
class Statements:
    """Everything numeric that a text says. ``limits`` are caps and floors that it repeats, ``unread`` the rest."""

    features: tuple[Stated, ...]
    amounts: tuple[Stated, ...]
    limits: tuple[Stated, ...]
    orders: tuple[Stated, ...]
    unread: tuple[Figure, ...]


def statements_of(text: str, context: Context, actions: Sequence[Action], book: Book | None) -> Statements:
    """Read a text against its material.

    A figure is a *feature* where its clause names one field, its horizon if several fields differ in nothing else, and
    an instrument stands in the sentence; an *amount* by the cue before it ("cost", "leaves", "leverage" ...); a
    *limit* behind a cap or floor; an *order* behind a verb of trading and before an instrument.

    Parameters
    ----------
    book : Book, optional
        The book after the actions; None where there is none to settle, and no amount or limit is then read.
    """
    mentions = mentions_in(text, context)
    figures = outside(figures_in(text), mentions)
    fields = _fields(context)
    found: dict[str, list[Stated]] = {"feature": [], "amount": [], "limit": [], "order": []}
    unread = []
    for start, end in sentences_of(text):
        near = [one for one in figures if start <= one.start < end]
        said = [one for one in mentions if start <= one.start < end]
        for at, figure in enumerate(near):
            left = near[at - 1].end if at else start
            right = near[at + 1].start if at + 1 < len(near) else end
            place = _Place(text, start, end, left, right, figure, said)
            read = _order(place, actions) or _feature(place, fields) or (book and _amount(place, book))
            if read:
                found[read[0]].append(read[1])
            else:
                unread.append(figure)
    return Statements(
        features=tuple(found["feature"]),
        amounts=tuple(found["amount"]),
        limits=tuple(found["limit"]),
        orders=tuple(found["order"]),
        unread=tuple(unread),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A figure in its sentence ``start:end``, with the ends of the figures beside it."""

    text: str
    start: int
    end: int
    left: int
    right: int
    figure: Figure
    mentions: Sequence[Mention]

    @property
    def lead(self) -> str:
        """From the figure before, or the sentence's start, to this one."""
        return self.text[self.left : self.figure.start].lower()

    @property
    def tail(self) -> str:
        """From this figure to the next, or the sentence's end."""
        return self.text[self.figure.end : self.right].lower()

    def instrument(self) -> str:
        """Whom the figure is about: the last one named before it in the sentence, else the first one behind it."""
        before = [one.instrument for one in self.mentions if one.end <= self.figure.start]
        after = [one.instrument for one in self.mentions if one.start >= self.figure.end]
        return before[-1] if before else (after[0] if after else "")

    def before(self) -> str:
        """The whole sentence up to the figure."""
        return self.text[self.start : self.figure.start].lower()


# --- features ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    kinds: frozenset[str]
    horizon: str


Fields = Mapping[str, Sequence[tuple[_Field, float, str]]]


@lru_cache(maxsize=1024)
def _field(name: str) -> _Field:
    """The words and the horizon in a field's name."""
    parts = name.lower().replace("-", "_").split("_")
    spans = [part for part in parts if part[:1].isdigit()]
    return _Field(name, frozenset(part for part in parts if not part[:1].isdigit()), spans[0] if spans else "")


def _fields(context: Context) -> Fields:
    """The numeric fields of each instrument with their values and units."""
    found: dict[str, list[tuple[_Field, float, str]]] = {}
    for fact in context.facts:
        if fact.instrument and not isinstance(fact.value, str):
            found.setdefault(fact.instrument, []).append((_field(fact.field), float(fact.value), fact.unit))
    return found


def _feature(place: _Place, fields: Fields) -> tuple[str, Stated] | None:
    name = place.instrument()
    known = fields.get(name)
    if not known:
        return None
    # "return_60m of it: 0.8%" has nothing between its mark and the figure
    pieces = [piece for piece in _BREAK.split(place.lead.replace("_", " ")) if _WORD.search(piece)]
    clause, ahead = pieces[-1] if pieces else "", _BREAK.split(place.tail.replace("_", " "))[0]
    words = [_SAME.get(word, word) for word in _WORD.findall(clause)]
    behind = [_SAME.get(word, word) for word in _WORD.findall(ahead)]
    moving = {*words[-2:], *behind[:1]} & (_DOWN | _UP)
    spans = _spans(clause + " | " + ahead, known)
    said = {*words, *behind} | ({"return"} if moving and spans else set())
    fits = [one for one in known if one[0].kinds <= said and (one[0].horizon in spans or not spans)]
    widest = max((len(one[0].kinds) for one in fits), default=0)
    fits = [one for one in fits if len(one[0].kinds) == widest]
    if len(fits) != 1:
        return None
    field, value, unit = fits[0]
    figure = place.figure
    stated = figure.value if figure.signed else -figure.value if moving & _DOWN else figure.value
    actual = value * 100 if figure.percent and unit not in ("percent", "pct") else value
    return "feature", Stated(figure, field.name, name, stated, actual)


def _spans(clause: str, known: Sequence[tuple[_Field, float, str]]) -> set[str]:
    """The horizons that a clause names, as field names write them; "the hour" is the longest one there is."""
    found = {size + unit[0] for size, unit in _HORIZON.findall(clause)}
    if _WHOLE_HOUR.search(clause):
        minutes = [one[0].horizon for one in known if re.fullmatch(r"\d+m", one[0].horizon)]
        found |= {max(minutes, key=lambda span: int(span[:-1]))} if minutes else set()
    return found


# --- the arithmetic of the book ---------------------------------------------------------------------------------------

_CUES: Final = {
    "residual": r"leaves|leaving|left|residual|remaining|remains?",
    "cost": r"costs?|outlay|spend|spending|spent",
    "proceeds": r"proceeds",
    "cash": r"cash",
    "exposure": r"exposure|exposed",
    "equity": r"equity|nav",
    "leverage": r"leverage|levered|gearing|geared",
    "largest": r"largest|biggest",
    "cap": r"caps?|limits?|ceiling|maximum",
    "floor": r"floor|minimum",
}
_CUE = re.compile(r"\b(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _CUES.items()) + r")\b")
_SUBJECTS: Final = ("cash", "exposure", "leverage", "largest")
_LIMIT_OF: Final = {"cash": "min_cash", "largest": "max_weight", "leverage": "max_leverage", "exposure": "max_leverage"}
_SHARE_OF: Final = {"cash": "cash_share", "largest": "largest", "exposure": "exposure_share"}


def _cues(part: str) -> list[str]:
    return [one.lastgroup or "" for one in _CUE.finditer(part)]


def _amount(place: _Place, book: Book) -> tuple[str, Stated] | None:
    lead, tail = _cues(place.lead), _cues(_BREAK.split(place.tail)[0])
    subject = next((cue for cue in reversed(_cues(place.before())) if cue in _SUBJECTS), "")
    if {"cap", "floor"} & {*lead[-1:]}:
        name = _LIMIT_OF.get(subject, "")
        return _held("limit", place.figure, name, book.limits.get(name))
    if place.figure.percent:
        subject = subject or next((cue for cue in tail if cue in _SUBJECTS), "")
        name = _SHARE_OF.get(subject, "")
    else:
        name = "residual" if "residual" in lead else lead[-1] if lead else (tail[0] if tail else "")
        name = "" if name in ("cap", "floor", "largest") else name
        # "much remains open, at 0.45" leaves no cash
        if name == "residual" and not ({"cash", "cost", "proceeds"} & {*_cues(place.before())}):
            name = "residual" if re.search(r"\bresidual\b", place.lead) else ""
    return _held("amount", place.figure, name, book.amounts.get(name))


def _held(kind: str, figure: Figure, name: str, actual: float | None) -> tuple[str, Stated] | None:
    """A figure held against an amount; shares are kept as ratios and printed in percent."""
    if actual is None:
        return None
    return kind, Stated(figure, name, "", figure.value, actual * 100 if figure.percent else actual)


# --- the decision itself ----------------------------------------------------------------------------------------------


def _order(place: _Place, actions: Sequence[Action]) -> tuple[str, Stated] | None:
    """A quantity between a verb of trading and an instrument; what is not ordered counts as 0."""
    verbs = [_TRADES[word] for word in _WORD.findall(place.lead) if word in _TRADES]
    after = [one for one in place.mentions if place.figure.end <= one.start]
    if not verbs or not after or place.figure.percent or after[0].start - place.figure.end > 12:
        return None
    name = after[0].instrument
    sizes = [one.quantity or 0.0 for one in actions if one.instrument == name and one.kind == verbs[-1]]
    actual = min(sizes, key=lambda size: abs(size - place.figure.value), default=0.0)
    return "order", Stated(place.figure, verbs[-1], name, place.figure.value, actual)
