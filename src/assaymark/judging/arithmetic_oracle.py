"""From a reconciliation to a point on the scale of constraint awareness, by a stated rule."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.judging.books import Book, book_of, made_of_orders
from assaymark.judging.evidence.numbers import Number, extract_numbers
from assaymark.portfolio.orders import Settlement
from assaymark.records import Constraint

__all__ = ["QUANTITIES", "Book", "Part", "Reconciliation", "book_of", "made_of_orders", "oracle_score", "reconcile"]


# Which number of a text speaks of which quantity of a book: cue words beside numbers, sentence by sentence.
#
# Nothing is understood here but words near numbers. A number belongs to the nearest cue that goes with its unit; a
# cap or floor belongs to the quantity it is held against. Sentences that suppose something, numbers after "from" or
# "was", and numbers of returns, prices, volumes and units are left alone: a wrong figure must not be alleged on a
# guess.


Quantity = Literal[
    "cash", "cost", "residual", "exposure", "equity", "leverage", "largest", "cash_share", "orders",
    "leverage_cap", "weight_cap", "cash_floor", "orders_cap",
]  # fmt: skip
"""What a number of a text can state about a book; `reconciliation` adds the claim that nothing is sold short."""

Family = Literal["cash", "gross", "largest", "orders"]

MOST_CHARACTERS: Final = 50_000
"""Of a longer text only the beginning is read."""

_SENTENCE = re.compile(r"(?<=[.!?])(?<!vs\.)(?<!i\.e\.)(?<!e\.g\.)\s+|\n+", re.IGNORECASE)
_FENCED = re.compile(r"<<<BEGIN\b.*?(?:<<<END\b[^\n]*|\Z)", re.DOTALL)
_SUPPOSED = re.compile(r"\b(?:if|unless|would|could|might|should|were|had)\b", re.IGNORECASE)
_SHARE_OF = (
    r"\s*(?:/|over|divided by|relative to|as an? (?:share|percent|percentage|fraction|multiple) of)\s*(?:the\s+)?"
    r"(?:equity|nav)\b"
)
_CUE = re.compile(
    rf"(?P<gross_share>\bexposures?{_SHARE_OF})|(?P<cash_share>\bcash{_SHARE_OF})|"
    r"(?P<residual>\bresidual\b|\bremain\w*|\bleft(?:[ -]?over)?\b|\bleav(?:es?|ing)\b|\bunspent\b)"
    r"|(?P<cost>\bcost(?:s|ing)?\b|\bspend\w*|\bspent\b|\boutlays?\b|\bproceeds\b|\bless\b(?! than)|\bminus\b)"
    r"|(?P<cash>\bcash\b)"
    r"|(?P<leverage>\bleverag\w+|\blevered\b|\bgear(?:ing|ed)\b)"
    r"|(?P<exposure>\bexposures?\b|\binvested\b|\bgross\b)"
    r"|(?P<equity>\bequity\b|\bnav\b|\bnet asset value\b)"
    r"|(?P<largest>\b(?:largest|biggest|heaviest|top)\b(?:\s+(?:single|one))?"
    r"(?:\s+(?:position|holding|weight|stake|name))?)"
    r"|(?P<position>\b(?:position|holding|weight|stake)s?\b)"
    r"|(?P<orders>\b(?:orders?|trades?)\b)",
    re.IGNORECASE,
)
_AHEAD = frozenset(("less", "minus", "leave", "leaves", "leaving", "costing"))
_LIMIT = r"(?:caps?|capped|limit(?:s|ed)?|ceiling|floor|maximum|minimum|max|min|allowed|permitted|at most|at least)"
_UNDER = r"(?:gross\s+|single\s+|any\s+|the\s+|a\s+|one\s+){0,3}"
_LIMITED = r"(?:leverage|exposure|cash|position|weight|holding|orders?|trades?)"
_LIMIT_BEFORE = re.compile(
    rf"\b{_LIMIT}\b(?:\W+(?:of|is|at|to|the|a|on)\b){{0,3}}\W*\Z"
    rf"|\b{_LIMIT}\s+(?:on\s+|for\s+|of\s+)?{_UNDER}{_LIMITED}\W+(?:(?:of|is|at|to)\W+)?\Z"
    r"|\b(?:against|versus|vs\.?|under|below|above|within|no more than)\s+(?:(?:a|an|the|its|our)\s+)?\Z"
    r"|(?:[<>]=?|[≤≥])\s*\Z",
    re.IGNORECASE,
)
_LIMIT_AFTER = re.compile(
    rf"\A\s*(?:{_UNDER}{_LIMITED}\s+)?(?:cap|limit|ceiling|floor|maximum|minimum|allowed|permitted)\b", re.IGNORECASE
)
_FLOOR = re.compile(r"\b(?:floor|minimum)\b", re.IGNORECASE)
_RIGHT = re.compile(
    rf"\A\s*(?:(?:is|are|of|in|as|the|for|total|gross|net|a|its|times|x|single)\s+){{0,3}}(?={_CUE.pattern})",
    re.IGNORECASE,
)
_TIMES = re.compile(r"\A\s*(times\s+)?(?:of\s+)?(?:the\s+)?(?:equity|nav)\b", re.IGNORECASE)
_EARLIER = re.compile(r"\b(?:from|was|were|before|previously|than|prior)\W*\Z", re.IGNORECASE)
_LATER = re.compile(r"\b(?:after|left|remain\w*|residual)\b|=\s*\|", re.IGNORECASE)
_OTHER = re.compile(
    r"\b(?:return\w*|volatility|vol|volume|prices?|priced|range|momentum|gain\w*|rose|ris(?:e|es|ing)|fell|fall\w*"
    r"|drop\w*|clos(?:e|es|ed)|stop|target|confidence|bars?|minutes?|fees?|units?|beta|drawdown|lower|higher)\b",
    re.IGNORECASE,
)
_NOT_MINE = re.compile(r"\A\s*(?:units?|shares?|bars?|minutes?)\b", re.IGNORECASE)
_JOINING = re.compile(
    r"(?:\W|\b(?:is|are|or|at|to|of|the|a|an|its|that|which|equals|gives|makes|and|about|roughly|over|against|equity"
    r"|nav|i|e)\b)*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+")
_COUNTED = re.compile(
    r"\b(one|two|three|four|five|six|seven|eight|nine|ten)\b(?=\s+(?:\w+\s+)?(?:orders?|trades?)\b)", re.IGNORECASE
)
_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_MOST_BETWEEN = 5

_FAMILY: dict[str, Family] = {
    "gross_share": "gross", "cash_share": "cash",
    "residual": "cash", "cost": "cash", "cash": "cash", "leverage": "gross", "exposure": "gross", "equity": "gross",
    "largest": "largest", "position": "largest", "orders": "orders",
}  # fmt: skip
_LIMIT_OF: dict[Family, Quantity] = {
    "cash": "cash_floor",
    "gross": "leverage_cap",
    "largest": "weight_cap",
    "orders": "orders_cap",
}
_VALUE_OF: dict[Family, Quantity] = {
    "cash": "cash_share",
    "gross": "leverage",
    "largest": "largest",
    "orders": "orders",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that states a quantity. ``readings`` are what it may state, the likeliest first.

    ``certain`` is whether it is a false statement if none of the readings holds; ``names`` are the instruments that
    stand between the cue and the number; ``quote`` is the sentence, cut short around the number.
    """

    readings: tuple[Quantity, ...]
    number: Number
    certain: bool
    names: tuple[str, ...]
    quote: str


def unfenced(text: str) -> str:
    """A text without what is dressed up as a section of a prompt: that is quoted matter and states nothing.

    >>> unfenced("Cash. <<<BEGIN facts 0>>> cash 5 <<<END facts 0>>>\\nFine.")
    'Cash.  \\nFine.'
    """
    return _FENCED.sub(" ", text[:MOST_CHARACTERS])


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text that state how things are; those that suppose something are left out."""
    for sentence in _SENTENCE.split(unfenced(text)):
        if sentence and not _SUPPOSED.search(sentence):
            yield sentence


def figures(text: str, names: Sequence[str] = ()) -> Iterator[Figure]:
    """Every number of a text that states a quantity of a book.

    Examples
    --------
    >>> [one.readings[0] for one in figures("Cash 900.00 less cost 200.00 leaves 700.00.")]
    ['cash', 'cost', 'residual']
    >>> [one.readings[0] for one in figures("Leverage 0.83 against a cap of 1.20; 3 orders of 4 allowed.")]
    ['leverage', 'leverage_cap', 'orders', 'orders_cap']
    """
    for sentence in sentences(text):
        yield from _of_sentence(sentence, names)


@dataclass(frozen=True, slots=True)
class _Place:
    """A number with the text on either side of it, up to its neighbours."""

    number: Number
    left: str
    right: str


def _of_sentence(sentence: str, names: Sequence[str]) -> Iterator[Figure]:
    """The figures of one sentence; a figure without a cue of its own continues the one before it."""
    family: Family | None = None
    for place in _places(sentence):
        found = None if _foreign(place) else _read(place, family)
        if found is None:
            continue
        family = found.family
        named = tuple(name for name in names if found.cue is not None and found.cue.speaks_of(name))
        if not named or family == "largest":
            yield Figure(found.readings, place.number, found.certain, named, _quoted(sentence, place.number))


def _places(sentence: str) -> Iterator[_Place]:
    """Every number of a sentence, counts of orders in words among them, in order."""
    found = [*extract_numbers(sentence), *_counted(sentence)]
    found.sort(key=lambda number: number.start)
    ends = [0, *(number.end for number in found)]
    starts = [*(number.start for number in found[1:]), len(sentence)]
    for number, left, right in zip(found, ends, starts, strict=False):
        yield _Place(number, sentence[left : number.start], sentence[number.end : right])


def _counted(sentence: str) -> Iterator[Number]:
    """Counts of orders that are written as words."""
    for match in _COUNTED.finditer(sentence):
        value = float(_COUNTS.index(match.group().lower()) + 1)
        yield Number(match.start(), match.end(), match.group(), value, "none", 1.0, 0, 1.0, signed=False, bare=True)


def _foreign(place: _Place) -> bool:
    """Whether a number is of something else: basis points, units, how things were."""
    return place.number.unit == "bps" or bool(_NOT_MINE.match(place.right) or _EARLIER.search(place.left[-40:]))


@dataclass(frozen=True, slots=True)
class _Cue:
    """A cue word: its topic, the text before it, and the text between it and the number."""

    topic: str
    before: str
    gap: str

    @property
    def words(self) -> int:
        """How many words stand between."""
        return len(_WORD.findall(self.gap))

    def speaks_of(self, name: str) -> bool:
        """Whether the cue is that of one instrument: named right before it, or between it and the number."""
        where = f"{self.before[-80:]} {self.gap}" if self.topic == "position" else self.gap
        return _names(where, name) or self.before.rstrip().removesuffix("'s").endswith(name)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a number is about, what it may state, whether it must, and by which cue."""

    family: Family
    readings: tuple[Quantity, ...]
    certain: bool
    cue: _Cue | None = None


def _read(place: _Place, family: Family | None) -> _Read | None:
    """What one number states; ``family`` is what the number before it was about."""
    cue = _cue(place)
    if _LIMIT_BEFORE.search(place.left[-80:]) or _LIMIT_AFTER.match(place.right[:60]):
        return _limit(place, cue, family)
    if cue is not None:
        readings = _readings(cue.topic, place)
        return _Read(_FAMILY[cue.topic], readings, cue.topic != "position", cue)
    if family is None or not _JOINING.fullmatch(place.left[-60:]):
        return None
    readings = _continued(family, place)
    return _Read(family, readings, family != "orders") if readings else None


def _limit(place: _Place, cue: _Cue | None, family: Family | None) -> _Read | None:
    """A cap or floor: of its own cue, else of what is held against it."""
    own = None if cue is None or cue.topic in ("equity", "cost") else _FAMILY[cue.topic]
    if own is None and _FLOOR.search(place.left[-40:] + place.right[:20]):
        own = "cash"
    about = own or family
    if about is None or place.number.unit == "usd":
        return None
    # "Cap 1.20, leverage 0.83" and "a cap on leverage of 1.20" look alike: either reading may hold.
    return _Read(about, (_LIMIT_OF[about], _VALUE_OF[about]), certain=True, cue=cue)


def _cue(place: _Place) -> _Cue | None:
    """The nearest cue on either side that goes with the unit of the number; the one before it in doubt."""
    before, after = _cue_before(place), _cue_after(place)
    if before is None or (after is not None and after.words < before.words):
        return after
    return before


def _cue_before(place: _Place) -> _Cue | None:
    """The last fitting cue before a number; none where the words between are about something else."""
    left = place.left
    for match in reversed(list(_CUE.finditer(left))):
        found = _Cue(str(match.lastgroup), left[: match.start()], left[match.end() :])
        if found.words > _MOST_BETWEEN or _OTHER.search(found.gap):
            return None
        if _fits(found.topic, place.number):
            return found
    if re.search(r"\s[-−–]\s*\Z", left) and _fits("cost", place.number):
        return _Cue("cost", left, "")
    times = _TIMES.match(place.right[:40])
    multiple = times is not None and (place.number.unit == "multiple" or times[1] is not None)
    return _Cue("leverage", left, "") if multiple else None


def _cue_after(place: _Place) -> _Cue | None:
    """The first fitting cue after a number, if only words such as "of" come between."""
    lead = _RIGHT.match(place.right[:80])
    match = _CUE.match(place.right, lead.end()) if lead else None
    if lead is None or match is None or match.group().lower() in _AHEAD:
        return None
    return _Cue(str(match.lastgroup), "", lead.group()) if _fits(str(match.lastgroup), place.number) else None


def _fits(topic: str, number: Number) -> bool:
    """Whether a number of this unit can be a value of a cue's quantity."""
    if topic == "orders":
        return number.bare and number.decimals == 0 and number.unit == "none"
    if topic in ("cost", "equity"):
        return number.unit in ("usd", "none", "count")
    if topic in ("leverage", "gross_share", "cash_share"):
        return number.unit in ("percent", "multiple", "none")
    return topic == "exposure" or number.unit != "multiple"


def _readings(topic: str, place: _Place) -> tuple[Quantity, ...]:
    """What a number beside a cue may state."""
    rate = place.number.unit in ("percent", "multiple")
    if topic in ("cash", "residual"):
        if rate:
            return ("cash_share",)
        later = topic == "residual" or bool(_LATER.search(f"{place.left}|{place.right}"))
        return ("residual", "cash_share") if later else ("cash", "residual", "cash_share")
    readings: dict[str, tuple[Quantity, ...]] = {
        "gross_share": ("leverage",),
        "cash_share": ("cash_share",),
        "cost": ("cost",),
        "equity": ("equity",),
        "leverage": ("leverage",),
        "exposure": ("leverage",) if rate else ("exposure", "leverage"),
        "largest": ("largest",),
        "position": ("largest",),
        "orders": ("orders",),
    }
    return readings[topic]


def _continued(family: Family, place: _Place) -> tuple[Quantity, ...]:
    """What a number without a cue states after a number about ``family``: a share, or the result of a sum."""
    number = place.number
    if number.unit == "usd" or (number.unit in ("none", "count") and family == "cash"):
        return ("residual",) if family == "cash" and "=" in place.left else ()
    if family == "cash" and number.unit != "percent":
        return ()
    return (_VALUE_OF[family], _LIMIT_OF[family])


def _names(text: str, name: str) -> bool:
    """Whether a text names an instrument, as a word of its own."""
    return name in text and re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text) is not None


def _quoted(sentence: str, number: Number) -> str:
    """The words around a number."""
    start, end = max(0, number.start - 60), min(len(sentence), number.end + 30)
    return sentence[start:end].strip()


# The stated arithmetic of a text held against a book: cash less cost, exposure over equity, values against limits.
#
# ValueBlindBench section 5.6 makes constraint awareness measurable as "cash X less trade cost Y = residual Z;
# exposure W over equity E = P%; leverage within its cap". Here each of these is worked out, and looked for in the
# text.


Verdict = Literal["right", "wrong", "absent"]

QUANTITIES: Final = (
    "cash", "cost", "residual", "exposure", "equity", "leverage", "largest", "cash_share", "orders", "shorting",
    "leverage_cap", "weight_cap", "cash_floor", "orders_cap",
)  # fmt: skip
"""What a text can state: amounts, shares of equity, counts, that nothing is short, and the limits themselves.

``leverage`` is exposure over equity however it is printed (82.8%, 0.83x, levered 0.83).
"""

PAIRED: Final[Mapping[str, str]] = {
    "leverage": "leverage_cap",
    "largest": "weight_cap",
    "cash_share": "cash_floor",
    "orders": "orders_cap",
}
"""A value and the limit it is held against."""

_LIMITS: Final[Mapping[str, str]] = {
    "leverage_cap": "max_leverage",
    "weight_cap": "max_weight",
    "cash_floor": "min_cash",
    "orders_cap": "max_orders",
}
LIMITS: Final = frozenset(_LIMITS)
"""The quantities that are limits of the task."""

_SLACK = 1e-9
_MOST_QUOTES = 5
_NOT_SHORT = re.compile(
    r"\b(?:no|nothing|none|neither|never|not|without|zero)\b(?:\W+\w+){0,3}\W+short(?:s|ed|ing)?\b"
    r"|\blong[- ]only\b|\bno (?:position|holding|weight)s? (?:is |are |goes? )?below (?:zero|0)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """One quantity: whether the text states it, and whether what it states is so.

    ``quotes`` are the first passages that state it, the wrong ones first. ``expected`` is its value in the book, a
    share for what is of equity; None where the task has no such limit. ``numbers`` are the right numbers as printed.
    Wrong is one wrong statement, whatever else is right.
    """

    quantity: str
    verdict: Verdict
    expected: float | None
    quotes: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Every quantity of `QUANTITIES` in their order, each right, wrong or absent."""

    parts: tuple[Part, ...]

    @property
    def right(self) -> frozenset[str]:
        """The quantities that are stated, and rightly so."""
        return frozenset(part.quantity for part in self.parts if part.verdict == "right")

    @property
    def wrong(self) -> frozenset[str]:
        """The quantities of which something wrong is stated."""
        return frozenset(part.quantity for part in self.parts if part.verdict == "wrong")

    @property
    def share(self) -> float | None:
        """The right quantities among those that are stated; None if none is."""
        stated = len(self.right) + len(self.wrong)
        return len(self.right) / stated if stated else None

    def part(self, quantity: str) -> Part:
        """One quantity by name."""
        return self.parts[QUANTITIES.index(quantity)]


def reconcile(
    text: str, settlement: Settlement, constraints: Iterable[Constraint], *, names: Sequence[str] = ()
) -> Reconciliation:
    """Which quantities of a book a text states, and which of them rightly.

    A number is right if the value of the book lies within half of its last printed digit. Shares may be of the equity
    after the orders or before their fees. A cost may be the whole, without fees, or what was bought or sold. A number
    that two readings could claim is read in the one that holds.

    Parameters
    ----------
    text : str
        Any text, from anybody; beyond `figures.MOST_CHARACTERS` it is not read. Sentences that suppose something, and
        what is dressed up as a section of a prompt, state nothing.
    settlement : Settlement
        The book after the orders.
    constraints : iterable of Constraint
        The limits of the task.
    names : sequence of str
        Further names of instruments besides those held.

    Returns
    -------
    Reconciliation

    Examples
    --------
    >>> from assaymark.portfolio.orders import settle
    >>> from assaymark.records import Action, Portfolio
    >>> book = Portfolio(currency="USD", cash=1000.0, nav=1000.0)
    >>> after = settle(book, {"A": 50.0}, [Action(instrument="A", kind="buy", quantity=10.0)])
    >>> cap = Constraint(kind="max_leverage", limit=1.2, unit="multiple")
    >>> text = "Cash 1,000.00 less cost 500.00 leaves 400.00. Levered 0.5x against a cap of 1.2x."
    >>> found = reconcile(text, after, [cap])
    >>> sorted(found.right), sorted(found.wrong)
    (['cash', 'cost', 'leverage', 'leverage_cap'], ['residual'])
    """
    book = _Book.of(settlement, constraints)
    right: dict[str, list[str]] = {name: [] for name in QUANTITIES}
    wrong: dict[str, list[str]] = {name: [] for name in QUANTITIES}
    numbers: dict[str, list[str]] = {name: [] for name in QUANTITIES}
    for figure in figures(text, tuple(dict.fromkeys((*settlement.positions, *names)))):
        known = [reading for reading in figure.readings if book.accepted[reading]]
        held = next((reading for reading in known if book.bears_out(reading, figure)), None)
        if held is not None:
            right[held].append(figure.quote)
            numbers[held].append(figure.number.quote)
        elif known and figure.certain and known[0] == figure.readings[0]:
            wrong[known[0]].append(figure.quote)
    (right if book.none_short else wrong)["shorting"] += _not_short(text)
    return Reconciliation(tuple(_part(name, book, right[name], wrong[name], numbers[name]) for name in QUANTITIES))


def _part(name: str, book: _Book, right: list[str], wrong: list[str], numbers: list[str]) -> Part:
    """One quantity with its verdict."""
    verdict: Verdict = "wrong" if wrong else "right" if right else "absent"
    quotes = tuple(dict.fromkeys([*wrong, *right]))[:_MOST_QUOTES]
    return Part(name, verdict, next(iter(book.accepted[name]), None), quotes, tuple(numbers))


def _not_short(text: str) -> list[str]:
    """The claims that nothing is sold short."""
    return [match.group() for sentence in sentences(text) for match in _NOT_SHORT.finditer(sentence)]


@dataclass(frozen=True, slots=True)
class _Book:
    """The values that each quantity may be stated with, the exact one first; none where the task has no such limit."""

    accepted: Mapping[str, tuple[float, ...]]
    largest: frozenset[str]
    none_short: bool

    @classmethod
    def of(cls, after: Settlement, constraints: Iterable[Constraint]) -> _Book:
        """The values of a settlement, and the limits it is held against."""
        equities = tuple(dict.fromkeys(one for one in (after.equity, after.equity + after.fees) if one > 0))
        sizes = {name: abs(weight) for name, weight in after.weights.items() if math.isfinite(weight)}
        top = max(sizes.values(), default=0.0)
        limits = {rule.kind: rule.limit for rule in constraints}
        accepted = {
            "cash": (after.cash,),
            "cost": (after.cost, after.cost - after.fees, after.bought, after.sold, after.bought + after.sold),
            "residual": (after.residual,),
            "exposure": (after.exposure,),
            "equity": (after.equity, after.equity + after.fees),
            "leverage": tuple(after.exposure / equity for equity in equities),
            "largest": (*(top * after.equity / equity for equity in equities), top * after.equity),
            "cash_share": tuple(after.residual / equity for equity in equities),
            "orders": (float(after.orders),),
            "shorting": (float(sum(units < 0 for units in after.positions.values())),),
            **{name: (limits[kind],) if kind in limits else () for name, kind in _LIMITS.items()},
        }
        finite = {name: tuple(filter(math.isfinite, values)) for name, values in accepted.items()}
        largest = frozenset(name for name, size in sizes.items() if size >= top - _SLACK)
        return cls(finite, largest, all(units >= 0 for units in after.positions.values()))

    def bears_out(self, quantity: str, figure: Figure) -> bool:
        """Whether a figure is right as a statement of a quantity."""
        if quantity == "largest" and figure.names and not self.largest.intersection(figure.names):
            return False
        return any(_agrees(figure.number, value, signed=quantity != "cost") for value in self.accepted[quantity])


def _agrees(number: Number, value: float, *, signed: bool) -> bool:
    """Whether a value lies within half of the last printed digit of a number; a cost is a size."""
    factor = 0.01 if number.unit == "percent" else 1.0
    stated, half = number.value * factor, number.step * factor / 2
    away = abs(stated - value) if signed else abs(abs(stated) - abs(value))
    return away <= half * (1 + _SLACK) + abs(value) * 1e-12


_OF_LIMITS = frozenset((*PAIRED, *PAIRED.values(), "shorting"))


def oracle_score(found: Reconciliation, *, kept: bool) -> int:
    """The score of constraint awareness, 1..5, that the anchors of rubric v1.1 give to a reconciliation.

    Three requirements (ValueBlindBench section 5.6): the cash left is stated; exposure or leverage is stated; one value
    is stated together with the limit it is held against. All of them right is 5, two are 4. One of them, or any limit
    or value under a limit, is 3; else 2. A wrong amount leaves at most 2. A wrong limit, a wrong value under a limit, a
    wrong claim that nothing is short, or a rule that is not ``kept`` is 1. One more right statement never lowers it.

    Examples
    --------
    >>> from assaymark.judging.arithmetic_oracle import reconcile
    >>> from assaymark.portfolio.orders import settle
    >>> from assaymark.records import Constraint, Portfolio
    >>> after = settle(Portfolio(currency="USD", cash=1000.0, nav=1000.0, positions={"A": 10.0}), {"A": 50.0}, [])
    >>> cap = Constraint(kind="max_weight", limit=0.35, unit="nav")
    >>> oracle_score(reconcile("Cash left is 1,000.00 and exposure 33.3% of equity.", after, [cap]), kept=True)
    4
    """
    if not kept or found.wrong & _OF_LIMITS:
        return 1
    if found.wrong:
        return 2
    right = found.right
    met = ["residual" in right, bool({"exposure", "leverage"} & right)]
    met.append(any(value in right and limit in right for value, limit in PAIRED.items()))
    if sum(met) > 1:
        return 2 + sum(met)
    return 3 if any(met) or right & _OF_LIMITS else 2


# The constraint-arithmetic oracle: a book worked out from a prompt, and the stated arithmetic held against it.
#
# Rules and numbers only, so its score of constraint awareness is known quality against which judges can be measured.
