"""Check of the arithmetic stated in a decision against the portfolio that its orders produce, scored by a fixed rule.

Only words near numbers are interpreted. A number belongs to the nearest cue that fits its unit; a cap or floor belongs
to the quantity that it limits. Hypothetical sentences, numbers after "from" or "was", and numbers that are returns,
prices, volumes or units are skipped, so that no figure is called wrong on a guess.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from assaymark.judging.evidence.mention import PrintedNumber, extract_numbers
from assaymark.portfolio.broker import Settlement
from assaymark.records import Constraint
from assaymark.text import count_words

Quantity = Literal[
    "cash", "cost", "residual", "exposure", "equity", "leverage", "largest", "cash_share", "orders", "shorting",
    "leverage_cap", "weight_cap", "cash_floor", "orders_cap",
]  # fmt: skip
QUANTITIES: Final[tuple[Quantity, ...]] = get_args(Quantity)
"""The quantities that a text can state: amounts, shares of equity, counts, no short positions, and the limits."""

Family = Literal["cash", "gross", "largest", "orders"]

MOST_CHARACTERS: Final = 50_000
"""Maximum number of characters read; the rest of a longer text is ignored."""

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
_COUNTS = tuple(map(count_words, range(1, 11)))
_COUNTED = re.compile(rf"\b({'|'.join(_COUNTS)})\b(?=\s+(?:\w+\s+)?(?:orders?|trades?)\b)", re.IGNORECASE)
_MOST_BETWEEN = 5

_FAMILY: dict[str, Family] = {
    "gross_share": "gross", "cash_share": "cash",
    "residual": "cash", "cost": "cash", "cash": "cash", "leverage": "gross", "exposure": "gross", "equity": "gross",
    "largest": "largest", "position": "largest", "orders": "orders",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatedFigure:
    """A number that states a quantity. ``readings`` lists the quantities that it may state, the likeliest first."""

    readings: tuple[Quantity, ...]
    number: PrintedNumber
    certain: bool
    names: tuple[str, ...]
    quote: str


_RENAMED: dict[str, Quantity] = {"gross_share": "leverage", "position": "largest"}
_ABOUT: dict[Family, tuple[Quantity, Quantity]] = {
    "gross": ("leverage", "leverage_cap"), "largest": ("largest", "weight_cap"), "cash": ("cash_share", "cash_floor"),
    "orders": ("orders", "orders_cap"),
}  # fmt: skip
"""The value and its limit that each family of words refers to."""
PAIRED: Final[Mapping[Quantity, Quantity]] = dict(_ABOUT.values())
"""The limit that belongs to each limited quantity."""
LIMITS: Final = frozenset(PAIRED.values())
"""The quantities that are limits of the task."""


def declarative_sentences(text: str) -> Iterator[str]:
    """Yield the declarative sentences of a text, without the hypothetical ones."""
    for sentence in _SENTENCE.split(_FENCED.sub(" ", text[:MOST_CHARACTERS])):
        if sentence and not _SUPPOSED.search(sentence):
            yield sentence


def stated_figures(text: str, names: Sequence[str] = ()) -> Iterator[StatedFigure]:
    """Yield every number in a text that states a quantity of a portfolio."""
    for sentence in declarative_sentences(text):
        family: Family | None = None
        counted = [
            PrintedNumber(m.start(), m.end(), m.group(), value, "none", 1.0, 0, 1.0, signed=False, bare=True)
            for m in _COUNTED.finditer(sentence)
            for value in [float(_COUNTS.index(m.group().lower()) + 1)]
        ]
        numbers = sorted([*extract_numbers(sentence), *counted], key=lambda number: number.start)
        ends = [0, *(number.end for number in numbers)]
        starts = [*(number.start for number in numbers[1:]), len(sentence)]
        for number, end, start in zip(numbers, ends, starts, strict=False):
            left, right = sentence[end : number.start], sentence[number.end : start]
            if number.unit == "bps" or _NOT_MINE.match(right) or _EARLIER.search(left[-40:]):
                continue
            read = _parse_number(number, left, right, family)
            if read is None:
                continue
            family, readings, certain, cue = read
            named = tuple(name for name in names if cue is not None and cue.speaks_of(name))
            if not named or family == "largest":
                around = sentence[max(0, number.start - 60) : min(len(sentence), number.end + 30)]
                yield StatedFigure(readings, number, certain, named, around.strip())


@dataclass(frozen=True, slots=True)
class _Cue:
    """A cue word with its topic, the text before it, and the text between it and the number."""

    topic: str
    before: str
    gap: str

    @property
    def words(self) -> int:
        """The number of words between cue and number."""
        return len(_WORD.findall(self.gap))

    def speaks_of(self, name: str) -> bool:
        """Return True if the cue refers to an instrument named right before it, or between it and the number."""
        text = f"{self.before[-80:]} {self.gap}" if self.topic == "position" else self.gap
        pattern = rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
        named = name in text and re.search(pattern, text) is not None
        return named or self.before.rstrip().removesuffix("'s").endswith(name)


def _parse_number(
    number: PrintedNumber, left: str, right: str, family: Family | None
) -> tuple[Family, tuple[Quantity, ...], bool, _Cue | None] | None:
    """Return the family of one number, the quantities it may state, whether it must state one, and its cue."""
    # The first fitting cue after a number, if only words such as "of" come between.
    lead = _RIGHT.match(right[:80])
    match = _CUE.match(right, lead.end()) if lead else None
    if lead is None or match is None or match.group().lower() in _AHEAD:
        cue_after = None
    else:
        cue_after = _Cue(str(match.lastgroup), "", lead.group()) if _fits(str(match.lastgroup), number) else None
    before, after = _cue_before(number, left, right), cue_after
    cue = after if before is None or (after is not None and after.words < before.words) else before
    if _LIMIT_BEFORE.search(left[-80:]) or _LIMIT_AFTER.match(right[:60]):
        # A cap or floor belongs to its own cue, else to the quantity that it limits.
        family_named = None if cue is None or cue.topic in ("equity", "cost") else _FAMILY[cue.topic]
        if family_named is None and _FLOOR.search(left[-40:] + right[:20]):
            family_named = "cash"
        about = family_named or family
        if about is None or number.unit == "usd":
            return None
        # "Cap 1.20, leverage 0.83" and "a cap on leverage of 1.20" have the same form, so both readings are tried.
        return about, _ABOUT[about][::-1], True, cue
    if cue is not None:
        # The quantities that a number next to a cue may state.
        topic, rate = cue.topic, number.unit in ("percent", "multiple")
        stated: tuple[Quantity, ...] = (_RENAMED.get(topic, cast(Quantity, topic)),)
        if topic == "exposure":
            stated = ("leverage",) if rate else ("exposure", "leverage")
        elif topic in ("cash", "residual"):
            later = topic == "residual" or _LATER.search(f"{left}|{right}")
            stated = ("residual", "cash_share") if later else ("cash", "residual", "cash_share")
            stated = ("cash_share",) if rate else stated
        return _FAMILY[topic], stated, topic != "position", cue
    if family is None or not _JOINING.fullmatch(left[-60:]):
        return None
    # A number without a cue continues the previous one: a share, or the result of a sum.
    if number.unit == "usd" or (number.unit in ("none", "count") and family == "cash"):
        return (family, ("residual",), True, None) if family == "cash" and "=" in left else None
    if family == "cash" and number.unit != "percent":
        return None
    return family, _ABOUT[family], family != "orders", None


def _cue_before(number: PrintedNumber, left: str, right: str) -> _Cue | None:
    """Return the last fitting cue before a number; None if the words between are about something else."""
    for match in reversed(list(_CUE.finditer(left))):
        cue = _Cue(str(match.lastgroup), left[: match.start()], left[match.end() :])
        if cue.words > _MOST_BETWEEN or _OTHER.search(cue.gap):
            return None
        if _fits(cue.topic, number):
            return cue
    if re.search(r"\s[-−–]\s*\Z", left) and _fits("cost", number):
        return _Cue("cost", left, "")
    times = _TIMES.match(right[:40])
    multiple = times is not None and (number.unit == "multiple" or times[1] is not None)
    return _Cue("leverage", left, "") if multiple else None


def _fits(topic: str, number: PrintedNumber) -> bool:
    """Return True if a number in this unit can be a value of the cue's quantity."""
    if topic == "orders":
        return number.bare and number.decimals == 0 and number.unit == "none"
    if topic in ("cost", "equity"):
        return number.unit in ("usd", "none", "count")
    if topic in ("leverage", "gross_share", "cash_share"):
        return number.unit in ("percent", "multiple", "none")
    return topic == "exposure" or number.unit != "multiple"


# Stated arithmetic checked against a portfolio: cash less cost, exposure over equity, values against limits.
# ValueBlindBench section 5.6 makes constraint awareness measurable as "cash X less trade cost Y = residual Z;
# exposure W over equity E = P%; leverage within its cap".

Verdict = Literal["right", "wrong", "absent"]

_RULES: Final[Mapping[Quantity, str]] = {
    "leverage_cap": "max_leverage", "weight_cap": "max_weight", "cash_floor": "min_cash", "orders_cap": "max_orders",
}  # fmt: skip
"""The rule of the task that sets each limit."""
_SLACK = 1e-9
_MOST_QUOTES = 5
_NOT_SHORT = re.compile(
    r"\b(?:no|nothing|none|neither|never|not|without|zero)\b(?:\W+\w+){0,3}\W+short(?:s|ed|ing)?\b"
    r"|\blong[- ]only\b|\bno (?:position|holding|weight)s? (?:is |are |goes? )?below (?:zero|0)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QuantityCheck:
    """One quantity of the check: whether the text states it, and whether the stated value is right."""

    quantity: str
    verdict: Verdict
    quotes: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


def reconcile(
    text: str, settlement: Settlement, constraints: Iterable[Constraint], names: Sequence[str] = ()
) -> dict[str, QuantityCheck]:
    """Check the quantities that a text states against a settled portfolio; one part for each of `QUANTITIES`."""
    # The values that each quantity may be stated with, the exact one first, and the largest holdings.
    equities = tuple(dict.fromkeys(nav for nav in (settlement.equity, settlement.equity + settlement.fees) if nav > 0))
    sizes = {name: abs(weight) for name, weight in settlement.weights.items() if math.isfinite(weight)}
    top = max(sizes.values(), default=0.0)
    limits = {rule.kind: rule.limit for rule in constraints}
    stated = {
        "cash": (settlement.cash,),
        "cost": (
            settlement.cost, settlement.cost - settlement.fees, settlement.bought, settlement.sold,
            settlement.bought + settlement.sold,
        ),
        "residual": (settlement.residual,), "exposure": (settlement.exposure,),
        "equity": (settlement.equity, settlement.equity + settlement.fees),
        "leverage": tuple(settlement.exposure / equity for equity in equities),
        "largest": (*(top * settlement.equity / equity for equity in equities), top * settlement.equity),
        "cash_share": tuple(settlement.residual / equity for equity in equities), "orders": (float(settlement.orders),),
        "shorting": (float(sum(units < 0 for units in settlement.positions.values())),),
        **{name: (limits[kind],) if kind in limits else () for name, kind in _RULES.items()},
    }  # fmt: skip
    accepted = {name: tuple(filter(math.isfinite, values)) for name, values in stated.items()}
    largest = frozenset(name for name, size in sizes.items() if size >= top - _SLACK)
    right, wrong, numbers = (defaultdict[Quantity, list[str]](list) for _ in range(3))

    def bears_out(quantity: Quantity, figure: StatedFigure) -> bool:
        # Within half of the last printed digit; the sign of a cost is ignored.
        if quantity == "largest" and figure.names and not largest.intersection(figure.names):
            return False
        factor = 0.01 if figure.number.unit == "percent" else 1.0
        value, half = figure.number.value * factor, figure.number.step * factor / 2
        return any(
            abs(abs(value) - abs(true) if quantity == "cost" else value - true)
            <= half * (1 + _SLACK) + abs(true) * 1e-12
            for true in accepted[quantity]
        )

    for figure in stated_figures(text, tuple(dict.fromkeys((*settlement.positions, *names)))):
        choices = [reading for reading in figure.readings if accepted[reading]]
        meaning = next((reading for reading in choices if bears_out(reading, figure)), None)
        if meaning is not None:
            right[meaning].append(figure.quote)
            numbers[meaning].append(figure.number.quote)
        elif choices and figure.certain and choices[0] == figure.readings[0]:
            wrong[choices[0]].append(figure.quote)
    none_short = all(units >= 0 for units in settlement.positions.values())
    claims = [match.group() for sentence in declarative_sentences(text) for match in _NOT_SHORT.finditer(sentence)]
    (right if none_short else wrong)["shorting"] += claims
    parts: dict[str, QuantityCheck] = {}
    for name in QUANTITIES:
        verdict: Verdict = "wrong" if wrong[name] else "right" if right[name] else "absent"
        quotes = tuple(dict.fromkeys([*wrong[name], *right[name]]))[:_MOST_QUOTES]
        parts[name] = QuantityCheck(name, verdict, quotes, tuple(numbers[name]))
    return parts


_OF_LIMITS = frozenset((*PAIRED, *LIMITS, "shorting"))


def oracle_score(parts: Mapping[str, QuantityCheck], kept: bool) -> int:
    """Score constraint awareness from the result of `reconcile`, 1..5, by the anchors of rubric v1.1."""
    right, wrong = ({name for name, part in parts.items() if part.verdict == verdict} for verdict in ("right", "wrong"))
    if not kept or wrong & _OF_LIMITS:
        return 1
    if wrong:
        return 2
    met = ["residual" in right, bool({"exposure", "leverage"} & right)]
    met.append(any(value in right and limit in right for value, limit in PAIRED.items()))
    if sum(met) > 1:
        return 2 + sum(met)
    return 3 if any(met) or right & _OF_LIMITS else 2
