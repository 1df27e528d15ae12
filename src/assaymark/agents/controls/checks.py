"""Check control texts and their orders against the rules of each control cell, independently of their generator.

`admissible` uses only the text, the orders and the context, so it applies to texts of the generators here, of people
and of models alike. Limits are those of ValueBlindBench section 3.5 if it gives one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from assaymark.errors import InputError, NotMeasurableError, Problem, check_known
from assaymark.portfolio.broker import SIDES, RuleCheck, Settlement, audit, fee_of, prices_of, settle
from assaymark.prompting import confident_in, hedges_in, judged_text, token_count
from assaymark.records import Action, Context, Decision, DerivationKind, Instrument

CELL_KINDS: Final[tuple[DerivationKind, ...]] = ("cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched")
"""Kinds of control cell that are generated and checked here."""

DERIVED_KINDS: Final[tuple[DerivationKind, ...]] = ("paraphrase", "fact_flip", "length_matched")
"""Kinds that are derived from an honest decision."""

LONGEST: int = 20_000
"""Maximum characters of a control text; longer ones are rejected without further checks."""

VERBOSE_TOKENS: Final = 200
TERSE_TOKENS: Final = 60
FEATURES: Final = 3
CONFIDENT_PHRASES: Final = 2
LENGTH_SHARE: Final = 0.15
MATCHED_SHARE: Final = 0.05
WORD_OVERLAP: Final = 0.8
RUN_OVERLAP: Final = 0.5

FAR_STEPS: Final = 5
"""A wrong number is far from the truth if it differs by this many units of its last printed digit ..."""

FAR_SHARE: Final = 0.25
"""... and by this share of the larger of the two sizes."""

RECONCILED: Final = ("cost", "proceeds", "residual", "cash_share", "exposure", "exposure_share", "leverage", "largest")
"""Amounts that reconcile a portfolio after the orders; a text may state them rightly or wrongly."""


@dataclass(frozen=True, slots=True)
class AdmissibilityCheck:
    """Result of one rule for a control text: ``value`` was found, ``limit`` describes the requirement.

    ``detail`` quotes the text that decided it, if any.
    """

    rule: str
    value: float
    limit: str
    passed: bool
    detail: str = ""

    def __str__(self) -> str:
        sentence = f"{self.rule} is {self.value:g}, needs {self.limit}"
        return f"{sentence} ({self.detail})" if self.detail else sentence


@dataclass(frozen=True, slots=True)
class Composed:
    """A control text before it becomes a record.

    ``original`` is the honest decision of a derived cell, ``tokens`` the requested length, ``change`` the number that a
    fact flip changed, with its new text. ``known_scores`` has a perfect judge's scores by rubric dimension, as far as
    the construction determines them. ``admissibility`` is empty until the cell is checked.
    """

    kind: DerivationKind
    actions: tuple[Action, ...]
    text: str
    confidence: float | None = None
    original: Decision | None = None
    tokens: int | None = None
    change: tuple[PrintedFigure, str] | None = None
    known_scores: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    admissibility: tuple[AdmissibilityCheck, ...] = ()


def failed_checks(checks: Sequence[AdmissibilityCheck]) -> tuple[AdmissibilityCheck, ...]:
    """Return the checks that did not pass."""
    return tuple(check for check in checks if not check.passed)


@dataclass(frozen=True, slots=True)
class SettledBook:
    """A settled portfolio, the constraints that it violates, and its amounts by name; shares and weights are ratios."""

    after: Settlement
    broken: tuple[RuleCheck, ...]
    amounts: Mapping[str, float]
    limits: Mapping[str, float]


def book_after(context: Context, actions: Sequence[Action]) -> SettledBook:
    """Return the portfolio of a context after orders; raises an error if they cannot be settled."""
    if context.portfolio is None:
        raise NotMeasurableError("a control cell needs a context with a portfolio (got none)")
    ids = {item.id for item in context.instruments}
    unknown = [action.instrument for action in actions if action.instrument and action.instrument not in ids]
    if unknown:
        raise InputError("orders", [Problem(name, "is not an instrument of the context") for name in unknown])
    after = settle(context.portfolio, prices_of(context), actions, fee_bps=fee_of(context.constraints))
    if after.equity <= 0:
        raise NotMeasurableError(f"the book has no equity left after the orders (got {after.equity:g})")
    amounts = {
        "cash": after.cash, "cost": after.cost, "proceeds": -after.cost, "residual": after.residual,
        "cash_share": after.residual / after.equity, "exposure": after.exposure,
        "exposure_share": after.exposure / after.equity, "equity": after.equity, "leverage": after.leverage,
        "largest": max(map(abs, after.weights.values()), default=0.0),
    }  # fmt: skip
    broken = tuple(check for check in audit(after, context.constraints) if not check.kept)
    return SettledBook(after, broken, amounts, {rule.kind: rule.limit for rule in context.constraints})


def try_book_after(context: Context, actions: Sequence[Action]) -> SettledBook | None:
    """Return the portfolio after orders; None if the context has none, or if the orders are target weights."""
    try:
        return book_after(context, actions)
    except (InputError, NotMeasurableError):
        return None


def context_values(context: Context, actions: Sequence[Action]) -> list[float]:
    """Return every value in the context or decision; a number that equals none of them as printed is unsupported."""
    facts = [(fact, float(fact.value)) for fact in context.facts if not isinstance(fact.value, str)]
    sizes = [abs(value) for _, value in facts]
    by_field: dict[str, list[float]] = {}
    for fact, value in facts:
        if fact.instrument:
            by_field.setdefault(fact.field, []).append(value)
    sizes += [abs(a - b) for values in by_field.values() for i, a in enumerate(values) for b in values[i + 1 :]]
    sizes += [rule.limit for rule in context.constraints]
    for action in actions:
        sizes += [abs(size) for size in (action.quantity, action.price, action.weight) if size is not None]
    if (portfolio := context.portfolio) is not None:
        sizes += [portfolio.cash, portfolio.nav, *map(abs, portfolio.positions.values())]
        if (after := try_book_after(context, actions)) is not None:
            sizes += map(abs, (*after.amounts.values(), *after.after.weights.values()))
    return [value for value in sizes if math.isfinite(value)]


def matches_any(values: Sequence[float], size: float, half: float) -> bool:
    """True if a printed size equals any value within ``half`` a last digit, as a ratio or as a percentage."""
    return any(abs(value * scale - size) <= half for value in values for scale in (1.0, 100.0, 0.01))


_FIELD: Final = re.compile(r"([a-z]+)_(\d{1,4}[a-z])\Z")
_WRONG_KINDS: Final = ("return", "volatility", "range", "volume")
_WRONG_DRAWS: Final = 60


@dataclass(frozen=True, slots=True)
class Feature:
    """A number in the context over a horizon, as ``return_15m``; ``lean`` is 1 for buying, -1 for selling, else 0."""

    instrument: str
    kind: str
    horizon: str
    value: float
    lean: int

    def printed(self, value: float) -> str:
        """Format a value of this feature as in control texts: returns with sign, and volatility, in percent."""
        if self.kind == "return":
            return f"{value * 100:+.2f}%"
        return f"{value * 100:.2f}%" if self.kind == "volatility" else f"{value:.2f}"

    def fill(self, value: float) -> dict[str, str]:
        """Return the placeholders of the `phrases` templates for a value of this feature."""
        return {"x": self.instrument, "h": self.horizon, "k": self.kind, "v": self.printed(value)}

    def wrong_value(self, lean: int, sizes: Sequence[float], rng: np.random.Generator) -> float | None:
        """Draw a value far from the true one, not in the context, with direction ``lean`` if any; None without one."""
        true, shown = self.value, abs(float(self.printed(self.value).rstrip("%")))
        for _ in range(_WRONG_DRAWS):
            if self.kind == "return":
                value = float(rng.uniform(0.006, 0.04))
                if true * lean > 0:
                    value += abs(true) * float(rng.uniform(2.0, 4.0))
                value *= lean
            elif self.kind == "volatility":
                value = true * float(rng.uniform(2.2, 4.5)) + 0.002
            elif self.kind == "volume":
                value = true * float(rng.uniform(1.9, 4.0)) + 0.2
            else:
                value = 0.5 + lean * float(rng.uniform(0.1, 0.47)) if lean else float(rng.uniform(0.03, 0.97))
            size = abs(float(self.printed(value).rstrip("%")))
            difference = size + shown if (value > 0) != (true > 0) else abs(size - shown)
            if difference >= 0.4 * max(size, shown) and difference >= 0.1 and not matches_any(sizes, size, 0.005):
                return value
        return None


def features_of(context: Context) -> list[Feature]:
    """Return the features that control texts cite, in order: no prices, and no return that prints as 0.00%."""
    ids = {item.id for item in context.instruments}
    features: list[Feature] = []
    for fact in context.facts:
        named = _FIELD.match(fact.field)
        if fact.instrument not in ids or named is None or isinstance(fact.value, str):
            continue
        (kind, horizon), value = named.groups(), float(fact.value)
        if kind in _WRONG_KINDS and not (kind in ("return", "volatility") and abs(value) < 1e-4):
            middle = {"return": 0.0, "range": 0.5}.get(kind)
            lean = 0 if middle is None else (value > middle) - (value < middle)
            features.append(Feature(fact.instrument, kind, horizon, value, lean))
    return features


_SPAN = r"(?:minutes?|mins?|hours?|days?|sessions?|weeks?|months?|years?|bars?)"
_FIGURE = re.compile(
    r"(?<![\w.,])(?P<sign>[+\-−])?(?P<whole>\d{1,3}(?:,\d{3})+|\d{1,15})(?P<frac>\.\d{1,15})?(?P<percent>\s?%)?"
    rf"(?!\w|\.\d|,\d{{3}}|[ -](?:one-)?{_SPAN}\b)"
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s|\Z)|\n+")
_HAS_DIGIT = re.compile(r"[+\-−]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:\s?%|[A-Za-z]+)?")


@dataclass(frozen=True, slots=True)
class PrintedFigure:
    """One number as printed: ``text[start:end] == quote``. ``step`` is the unit of its last printed digit."""

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
        """Number of digits after the point."""
        return len(self.quote.rstrip("% ").partition(".")[2])

    @property
    def half(self) -> float:
        """Half a unit of the last printed digit, with tolerance for rounding errors."""
        return self.step * (0.5 + 1e-6)

    def written(self, value: float) -> str:
        """Format another value like this number: sign, separators, decimals and percent sign."""
        sign = "-" if value < 0 else "+" if self.quote[0] == "+" or (self.signed and self.value < 0) else ""
        body = f"{abs(value):{',' if self.grouped else ''}.{self.decimals}f}"
        return sign + body + self.quote[len(self.quote.rstrip("% ")) :]

    def far_from(self, value: float, other: float) -> bool:
        """True if a difference is too large to be due to rounding or truncation at this precision."""
        difference = abs(value - other)
        return difference >= FAR_STEPS * self.step and difference >= FAR_SHARE * max(abs(value), abs(other))


def figures_in(text: str) -> tuple[PrintedFigure, ...]:
    """Return the numbers of a text in order, without horizons such as ``15m`` or ``60 minutes`` and digits in names."""
    figures = []
    for match in _FIGURE.finditer(text):
        sign, whole, frac = match.group("sign"), match.group("whole"), match.group("frac") or ""
        size = float(whole.replace(",", "") + frac)
        value, step = -size if sign and sign != "+" else size, 10.0 ** -max(len(frac) - 1, 0)
        percent = bool(match.group("percent"))
        figures.append(PrintedFigure(*match.span(), match.group(), value, step, percent, bool(sign), "," in whole))
    return tuple(figures)


def numerals_in(text: str) -> list[str]:
    """Return all tokens with digits, including horizons, sorted; equal lists mean equal numbers in two texts."""
    return sorted(match.group().replace(" ", "") for match in _HAS_DIGIT.finditer(text))


def sentences_of(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence, with its punctuation mark and without surrounding spaces."""
    spans, start = [], 0
    for match in (*_SENTENCE_END.finditer(text), None):
        end = len(text) if match is None else match.end()
        piece = text[start:end]
        if sentence := piece.strip():
            first = start + piece.index(sentence)
            spans.append((first, first + len(sentence)))
        start = end
    return spans


class InstrumentMention(NamedTuple):
    """One mention of an instrument."""

    start: int
    end: int
    instrument: str


@lru_cache(maxsize=512)
def _names(instruments: tuple[Instrument, ...]) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    """Return a pattern of all instrument names, longest first, and the owner of each; shared names are dropped."""
    owners: dict[str, set[str]] = {}
    for item in instruments:
        for name in {item.id, item.name, item.symbol or "", *item.aliases} - {""}:
            owners.setdefault(name, set()).add(item.id)
    owner = {name: next(iter(whose)) for name, whose in owners.items() if len(whose) == 1}
    ordered = "|".join(re.escape(name) for name in sorted(owner, key=lambda name: (-len(name), name)))
    return re.compile(rf"(?<!\w)(?:{ordered})(?!\w)") if owner else None, owner


def mentions_in(text: str, context: Context) -> list[InstrumentMention]:
    """Return the exact mentions of instruments in a text, in order; "Asset AB" does not mention Asset A."""
    pattern, owner = _names(context.instruments)
    matches = () if pattern is None else pattern.finditer(text)
    return [InstrumentMention(match.start(), match.end(), owner[match.group()]) for match in matches]


def figures_outside(text: str, mentions: Sequence[InstrumentMention]) -> list[PrintedFigure]:
    """Return the figures that are not part of a name."""
    return [figure for figure in figures_in(text) if not any(m.start <= figure.start < m.end for m in mentions)]


# Statements are parsed conservatively: a figure whose reference is not certain is reported as unread.

_BREAK = re.compile(r"[,;:()]|\s[-–—/]\s|\b(?:and|but|while|whereas|although|though|plus|with|against|on)\b")
_WORD = re.compile(r"[a-z]+")
_HORIZON = re.compile(r"\b(\d{1,4})[ -]?(m|s|d|w|h|min|minute|minutes|session|sessions|day|days|week|weeks)\b")
_WHOLE_HOUR = re.compile(
    r"\b(?:over|across|through|within|during|of|in|for) (?:the|this) (?:last |past |whole )?(?:hour|window)\b"
)
_SAME: Final = {"vol": "volatility", "volatile": "volatility", "returns": "return", "returned": "return"}
_DOWN: Final = frozenset(
    ("down", "fell", "falls", "falling", "lost", "loses", "losing", "lower", "dropped", "drops", "declined",
     "declines", "shed")
)  # fmt: skip
_UP: Final = frozenset(
    ("up", "rose", "rises", "rising", "gained", "gains", "gaining", "higher", "added", "advanced", "climbed")
)
_TRADES: Final = {
    "buy": "buy", "buys": "buy", "bought": "buy", "buying": "buy", "purchase": "buy", "sell": "sell", "sells": "sell",
    "sold": "sell", "selling": "sell", "short": "short", "shorted": "short", "cover": "cover", "covered": "cover",
}  # fmt: skip
_CUES: Final = {
    "residual": r"leaves|leaving|left|residual|remaining|remains?", "cost": r"costs?|outlay|spend|spending|spent",
    "proceeds": r"proceeds", "cash": r"cash", "exposure": r"exposure|exposed", "equity": r"equity|nav",
    "leverage": r"leverage|levered|gearing|geared", "largest": r"largest|biggest",
    "cap": r"caps?|limits?|ceiling|maximum", "floor": r"floor|minimum",
}  # fmt: skip
_CUE = re.compile(r"\b(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _CUES.items()) + r")\b")
_SUBJECTS: Final = ("cash", "exposure", "leverage", "largest")
_LIMIT_OF: Final = {"cash": "min_cash", "largest": "max_weight", "leverage": "max_leverage", "exposure": "max_leverage"}
_SHARE_OF: Final = {"cash": "cash_share", "largest": "largest", "exposure": "exposure_share"}
_KINDS: Final = ("feature", "amount", "limit", "order")


@dataclass(frozen=True, slots=True)
class StatedNumber:
    """One number in a text, with the true value of the quantity that it refers to.

    ``about`` is a field, or a key of `SettledBook.amounts` (``instrument`` is then empty). ``stated`` and ``actual``
    are in the printed unit. ``kind`` is feature, amount, limit (a quoted cap or floor) or order.
    """

    kind: str
    figure: PrintedFigure
    about: str
    instrument: str
    stated: float
    actual: float

    @property
    def right(self) -> bool:
        """True if the number is correct to its printed precision."""
        return abs(self.stated - self.actual) <= self.figure.half + abs(self.actual) * 1e-12

    @property
    def far(self) -> bool:
        """True if the number is far from the true value, see `PrintedFigure.far_from`."""
        return self.figure.far_from(self.stated, self.actual)

    def __str__(self) -> str:
        return f"{self.instrument or 'book'} {self.about} {self.figure.quote}"


_Fields = Sequence[tuple[str, frozenset[str], str, float, str]]
"""Numeric fields of an instrument: name, kinds, horizon, value and unit of each."""


def statements_of(
    text: str, context: Context, actions: Sequence[Action], book: SettledBook | None
) -> tuple[list[StatedNumber], list[PrintedFigure]]:
    """Return the numeric statements of a text with their true values, sorted by kind; and the unread figures."""
    fields: dict[str, list[tuple[str, frozenset[str], str, float, str]]] = {}
    for fact in context.facts:
        if fact.instrument and not isinstance(fact.value, str):
            parts = fact.field.lower().replace("-", "_").split("_")
            kinds = frozenset(part for part in parts if not part[:1].isdigit())
            span = next((part for part in parts if part[:1].isdigit()), "")
            fields.setdefault(fact.instrument, []).append((fact.field, kinds, span, float(fact.value), fact.unit))
    mentions, statements, unread = mentions_in(text, context), list[StatedNumber](), list[PrintedFigure]()
    figures = figures_outside(text, mentions)
    for start, end in sentences_of(text):
        in_sentence = [figure for figure in figures if start <= figure.start < end]
        nearby = [mention for mention in mentions if start <= mention.start < end]
        for at, figure in enumerate(in_sentence):
            lead = text[in_sentence[at - 1].end if at else start : figure.start].lower()
            tail = text[figure.end : in_sentence[at + 1].start if at + 1 < len(in_sentence) else end].lower()
            before = [mention for mention in nearby if mention.end <= figure.start]
            after = [mention for mention in nearby if mention.start >= figure.end]
            # A quantity between a trading verb and an instrument; without such an order the true value is 0.
            verbs = [_TRADES[word] for word in _WORD.findall(lead) if word in _TRADES]
            read: StatedNumber | None = None
            if verbs and after and not figure.percent and after[0].start - figure.end <= 12:
                name, verb = after[0].instrument, verbs[-1]
                sizes = [one.quantity or 0.0 for one in actions if one.instrument == name and one.kind == verb]
                actual = min(sizes, key=lambda size, figure=figure: abs(size - figure.value), default=0.0)  # type: ignore[misc]
                read = StatedNumber("order", figure, verb, name, figure.value, actual)
            elif named := [*before[-1:], *after[:1]]:
                read = _feature(figure, lead, tail, named[0].instrument, fields.get(named[0].instrument, ()))
            if read is None and book is not None:
                read = _amount(figure, lead, tail, text[start : figure.start].lower(), book)
            if read is None:
                unread.append(figure)
            else:
                statements.append(read)
    return sorted(statements, key=lambda statement: _KINDS.index(statement.kind)), unread


def _feature(figure: PrintedFigure, lead: str, tail: str, name: str, fields: _Fields) -> StatedNumber | None:
    """Match a figure with a field of an instrument; None if the field is ambiguous."""
    # "return_60m of it: 0.8%" has no words between the colon and the figure
    pieces = [piece for piece in _BREAK.split(lead.replace("_", " ")) if _WORD.search(piece)]
    clause, ahead = pieces[-1] if pieces else "", _BREAK.split(tail.replace("_", " "))[0]
    words, behind = ([_SAME.get(word, word) for word in _WORD.findall(part)] for part in (clause, ahead))
    moving = {*words[-2:], *behind[:1]} & (_DOWN | _UP)
    # The horizons in the clause, as in field names; "the hour" is the longest one available.
    around = clause + " | " + ahead
    spans = {size + unit[0] for size, unit in _HORIZON.findall(around)}
    minutes = [horizon for _, _, horizon, *_ in fields if re.fullmatch(r"\d+m", horizon)]
    if minutes and _WHOLE_HOUR.search(around):
        spans.add(max(minutes, key=lambda span: int(span[:-1])))
    terms = {*words, *behind} | ({"return"} if moving and spans else set())
    fits = [fit for fit in fields if fit[1] <= terms and (fit[2] in spans or not spans)]
    widest = max((len(fit[1]) for fit in fits), default=0)
    fits = [fit for fit in fits if len(fit[1]) == widest]
    if len(fits) != 1:
        return None
    about, *_, value, unit = fits[0]
    stated = figure.value if figure.signed else -figure.value if moving & _DOWN else figure.value
    actual = value * 100 if figure.percent and unit not in ("percent", "pct") else value
    return StatedNumber("feature", figure, about, name, stated, actual)


def _amount(figure: PrintedFigure, before: str, after: str, sentence: str, book: SettledBook) -> StatedNumber | None:
    """Match a figure with an amount or a limit of the portfolio; shares are ratios and printed in percent."""
    parts = (before, _BREAK.split(after)[0], sentence)
    lead, tail, cues = ([match.lastgroup or "" for match in _CUE.finditer(part)] for part in parts)
    subject = next((cue for cue in reversed(cues) if cue in _SUBJECTS), "")
    kind, values = "amount", book.amounts
    if lead and lead[-1] in ("cap", "floor"):
        kind, values, name = "limit", book.limits, _LIMIT_OF.get(subject, "")
    elif figure.percent:
        name = _SHARE_OF.get(subject or next((cue for cue in tail if cue in _SUBJECTS), ""), "")
    else:
        name = "residual" if "residual" in lead else lead[-1] if lead else (tail[0] if tail else "")
        name = "" if name in ("cap", "floor", "largest") else name
        # "much remains open, at 0.45" is not about cash
        if name == "residual" and not {"cash", "cost", "proceeds"} & {*cues}:
            name = "residual" if re.search(r"\bresidual\b", before) else ""
    actual = values.get(name)
    if actual is None:
        return None
    return StatedNumber(kind, figure, name, "", figure.value, actual * 100 if figure.percent else actual)


_LIKENESS_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NUMERAL = re.compile(r"[+\-−]?\d[\w.,%]*")


def words_without(text: str, names: Sequence[str] = ()) -> list[str]:
    """Return the words of a text in lower case, without numbers and without these names."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    return _LIKENESS_WORD.findall(_NUMERAL.sub(" ", text).lower())


def word_overlap(text: str, other: str, names: Sequence[str] = ()) -> float:
    """Return the Dice coefficient of the words of two texts, in any order; 1 if neither has words."""
    left, right = Counter(words_without(text, names)), Counter(words_without(other, names))
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 1.0


def run_overlap(one: str, other: str, names: Sequence[str] = (), *, n: int = 3) -> float:
    """Return the share of the first text's ``n``-grams that occur in the other; 1 if it has none."""
    words = [words_without(text, names) for text in (one, other)]
    left, right = (Counter(tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1)) for tokens in words)
    return (left & right).total() / left.total() if left else 1.0


Check = AdmissibilityCheck


def admissible(kind: DerivationKind, composed: Composed, context: Context) -> tuple[AdmissibilityCheck, ...]:
    """Check all rules of a kind of control cell; the cell is admissible if all of them pass.

    Numbers are parsed by `statements_of` and compared with the facts of the context and the portfolio after the orders.

    Raises
    ------
    UnknownNameError
        The kind has no rules.
    InputError
        A derived cell lacks its original decision or the requested length.
    """
    check_known("kind of control cell", CELL_KINDS, kind)
    text = composed.text
    size = Check("characters", len(text), f"1 to {LONGEST}", 0 < len(text.strip()) <= LONGEST)
    if not size.passed:
        return (size,)
    if kind in DERIVED_KINDS:
        original, problems = composed.original, list[Problem]()
        if original is None:
            problems.append(Problem("original", f"a {kind} is compared with the decision it was made from (got none)"))
        if kind == "length_matched" and not composed.tokens:
            problems.append(Problem("tokens", f"the length that was asked for is needed (got {composed.tokens})"))
        if problems or original is None:
            raise InputError(kind, problems)
        unchanged = composed.actions == original.actions
        same = Check("orders of the original", len(composed.actions), "the same", unchanged)
        return (size, same, *_derived(kind, composed, original, context))
    try:
        book = book_after(context, composed.actions)
    except (InputError, NotMeasurableError) as exc:
        return (size, Check("orders that settle", 0, "all", False, str(exc)))
    statements, unread = statements_of(text, context, composed.actions, book)
    features = [statement for statement in statements if statement.kind == "feature"]
    unchecked = _absent("numbers that cannot be checked", [figure.quote for figure in unread])
    if kind == "cell_a":
        stated = [statement for statement in statements if statement.kind == "amount" and statement.about in RECONCILED]
        return (
            size, _least("tokens", token_count(text), VERBOSE_TOKENS), _absent("hedging words", hedges_in(text)),
            _least("confident phrases", len(confident_in(text)), CONFIDENT_PHRASES),
            _least("contradicted features", len({(s.instrument, s.about) for s in features if s.far}), FEATURES),
            _absent("features that are not far wrong", [str(statement) for statement in features if not statement.far]),
            _least("false amounts of cash, exposure or leverage", sum(not statement.right for statement in stated), 1),
            _absent("amounts that are right", [str(statement) for statement in stated if statement.right]), unchecked,
            _least("broken rules", len(book.broken), 1),
        )  # fmt: skip
    traded = [action for action in composed.actions if action.kind in SIDES or action.kind == "close"]
    # Orders without a cited return or range position, or with one that supports the opposite side.
    positions = context.portfolio.positions if context.portfolio else {}
    unreasoned = []
    for order in traded:
        side = SIDES.get(order.kind) or (-1 if positions.get(order.instrument, 0.0) > 0 else 1)
        leans = set()
        for statement in (feature for feature in features if feature.instrument == order.instrument):
            middle = 0.0 if statement.about.startswith("return") else 50.0 if statement.figure.percent else 0.5
            if statement.about.startswith(("return", "range")):
                leans.add((statement.actual > middle) - (statement.actual < middle))
        if leans - {0} != {side}:
            unreasoned.append(f"{order.kind} {order.instrument}")
    return (
        size, _most("tokens", token_count(text), TERSE_TOKENS), _absent("hedging words", hedges_in(text)),
        _least("correct features", len({(s.instrument, s.about) for s in features if s.right}), FEATURES),
        _absent("wrong numbers", [str(statement) for statement in statements if not statement.right]), unchecked,
        _least("orders", len(traded), 1),
        _absent("broken rules", [f"{check.rule} {check.value:.4g} against {check.limit:g}" for check in book.broken]),
        _absent("orders against or without a cited direction", unreasoned),
    )  # fmt: skip


def _derived(kind: DerivationKind, composed: Composed, original: Decision, context: Context) -> tuple[Check, ...]:
    """Check the rules of a cell that is derived from an honest decision."""
    before, after, actions = judged_text(original), composed.text, original.actions
    book = try_book_after(context, actions)
    was, _ = statements_of(before, context, actions, book)
    named = [mentions_in(text, context) for text in (before, after)]
    if kind == "paraphrase":
        names = tuple(name for item in context.instruments for name in (item.id, item.name) if name)
        now, _ = statements_of(after, context, actions, book)

        def difference(one: Sequence[str], other: Sequence[str]) -> list[str]:
            # The entries that one list has more often than the other.
            left, right = Counter(one), Counter(other)
            return sorted(((left - right) + (right - left)).elements())

        return (
            _absent("numbers added or lost", difference(numerals_in(before), numerals_in(after))),
            _absent("instruments named more or less often", difference(*([hit[2] for hit in hits] for hits in named))),
            _absent("statements added or lost", difference([str(one) for one in was], [str(one) for one in now])),
            _absent("hedging words added or lost", ["one"] * abs(len(hedges_in(before)) - len(hedges_in(after)))),
            _most("change of length", abs(token_count(after) / max(token_count(before), 1) - 1), LENGTH_SHARE),
            _most("overlap of words", word_overlap(before, after, names), WORD_OVERLAP),
            _most("overlap of runs of three words", run_overlap(before, after, names), RUN_OVERLAP),
        )
    if kind == "length_matched":
        off = abs(token_count(after) / (composed.tokens or 1) - 1)
        old, new = (Counter(text[a:b] for a, b in sentences_of(text)) for text in (before, after))
        added, dropped = list((new - old).elements()), list((old - new).elements())
        statements, unread = statements_of("\n".join(added), context, actions, None)
        cited = [statement.figure.quote for statement in statements if statement.kind == "feature"]
        numbers, wrong = len(figures_in(after)), [str(statement) for statement in statements if not statement.right]
        return (
            _most("distance from the length asked for", off, MATCHED_SHARE),
            _absent("added sentences without a feature", [line for line in added if not any(q in line for q in cited)]),
            _absent("added numbers that are wrong", wrong + [figure.quote for figure in unread]),
            _absent("sentences dropped from a text that was lengthened", dropped if added else []),
            Check("numbers kept", numbers, "some", numbers > 0 or not figures_in(before)),
        )
    # The parts of both texts between their figures
    figures = [figures_outside(text, mentions) for text, mentions in zip((before, after), named, strict=True)]
    pieces = []
    for text, printed in zip((before, after), figures, strict=True):
        ends = [0, *(place for figure in printed for place in (figure.start, figure.end)), len(text)]
        pieces.append([text[a:b] for a, b in list(pairwise(ends))[::2]])
    same = len(figures[0]) == len(figures[1]) and pieces[0] == pieces[1]
    pairs = [(a, b) for a, b in zip(*figures, strict=True) if a.quote != b.quote] if same else []
    rest = Check("text around the numbers", float(same), "the same, byte for byte", same)
    count = Check("changed numbers", len(pairs), "1", len(pairs) == 1)
    if len(pairs) != 1:
        return rest, count
    ((former, other),) = pairs
    values = context_values(context, actions)
    starts = {claim.figure.start for claim in was if claim.right and claim.kind in ("feature", "amount")}
    sure = former.start in starts if starts else matches_any(values, abs(former.value), former.half)
    # A number with the opposite sign has a size that the context holds; only the sign makes it wrong.
    false = (former.signed and former.value == -other.value) or not matches_any(values, abs(other.value), other.half)
    digits, apart = round(abs(other.value - former.value) / former.step), former.far_from(other.value, former.value)
    return (
        rest,
        count,
        Check("the number before", float(sure), "a right statement", sure, former.quote),
        Check("the number now", float(not false), "held by nothing", false, other.quote),
        Check("change in last printed digits", digits, "far from rounding", apart),
    )


def _absent(rule: str, faults: Sequence[str]) -> Check:
    """Return the check of a rule without exceptions: the number of faults, and the first three."""
    return Check(rule, len(faults), "0", not faults, ", ".join(faults[:3]))


def _least(rule: str, value: float, least: float) -> Check:
    return Check(rule, value, f"at least {least:g}", value >= least)


def _most(rule: str, value: float, most: float) -> Check:
    # 42 / 40 is slightly more than 1.05 in binary
    return Check(rule, round(value, 4), f"at most {most:g}", value <= most + 1e-9)
