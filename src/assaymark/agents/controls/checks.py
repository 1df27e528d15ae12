"""The rules of each control cell, held against a text and its orders by somebody who did not write them.

`admissible` looks at what was composed and at the material, never at how it was made: it judges the work of the
generators here, of a person and of a model alike. Limits are those of ValueBlindBench section 3.5 where it gives one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from assaymark.agents.controls.compose import (
    CELL_KINDS,
    REDRAWS,
    AdmissibilityCheck,
    Book,
    Composed,
    book_if_any,
    book_of,
    failed,
    held_values,
    is_held,
)
from assaymark.errors import InputError, NotMeasurableError, Problem, UnknownNameError
from assaymark.portfolio.orders import SIDES
from assaymark.prompting import confident_in, hedges_in, judged_text, token_count
from assaymark.records import Action, Context, Decision, DerivationKind, Instrument

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
    """Every number of a text in order; horizons such as ``15m`` or ``60 minutes`` and digits of names are none."""
    found = []
    for match in _FIGURE.finditer(text):
        sign, whole, frac = match.group("sign"), match.group("whole"), match.group("frac") or ""
        size = float(whole.replace(",", "") + frac)
        value, step = -size if sign and sign != "+" else size, 10.0 ** -max(len(frac) - 1, 0)
        percent = bool(match.group("percent"))
        found.append(Figure(*match.span(), match.group(), value, step, percent, bool(sign), "," in whole))
    return tuple(found)


def numerals_in(text: str) -> list[str]:
    """Every run with a digit, horizons among them, sorted: two texts with equal lists print the same numbers."""
    return sorted(match.group().replace(" ", "") for match in _HAS_DIGIT.finditer(text))


def sentences_of(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence, its mark included and blanks left out."""
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


class Mention(NamedTuple):
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
    return tuple(figure for figure in figures if not any(m.start <= figure.start < m.end for m in mentions))


# Statements are read for checking, so only what is sure is read: a figure that cannot be placed is reported as unread.


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
    """Read a text against its material."""
    mentions = mentions_in(text, context)
    figures = outside(figures_in(text), mentions)
    # The numeric fields of each instrument, with their kinds and horizons, values and units
    fields: dict[str, list[tuple[_Field, float, str]]] = {}
    for fact in context.facts:
        if fact.instrument and not isinstance(fact.value, str):
            parts = fact.field.lower().replace("-", "_").split("_")
            spans = [part for part in parts if part[:1].isdigit()]
            kinds = frozenset(part for part in parts if not part[:1].isdigit())
            field = _Field(fact.field, kinds, spans[0] if spans else "")
            fields.setdefault(fact.instrument, []).append((field, float(fact.value), fact.unit))
    found: dict[str, list[Stated]] = {"feature": [], "amount": [], "limit": [], "order": []}
    unread = []
    for start, end in sentences_of(text):
        near = [one for one in figures if start <= one.start < end]
        said = [mention for mention in mentions if start <= mention.start < end]
        for at, figure in enumerate(near):
            lead = text[near[at - 1].end if at else start : figure.start].lower()
            tail = text[figure.end : near[at + 1].start if at + 1 < len(near) else end].lower()
            before = [one for one in said if one.end <= figure.start]
            after = [one for one in said if one.start >= figure.end]
            read = _ordered(figure, lead, after, actions)
            if read is None and (named := [*before[-1:], *after[:1]]):
                name = named[0].instrument
                read = _feature(figure, lead, tail, name, fields.get(name, ()))
            if read is None and book is not None:
                read = _amount(figure, lead, tail, text[start : figure.start].lower(), book)
            if read:
                found[read[0]].append(read[1])
            else:
                unread.append(figure)
    features, amounts, limits, orders = (tuple(found[kind]) for kind in ("feature", "amount", "limit", "order"))
    return Statements(features, amounts, limits, orders, tuple(unread))


def _ordered(
    figure: Figure, lead: str, after: Sequence[Mention], actions: Sequence[Action]
) -> tuple[str, Stated] | None:
    """A quantity between a verb of trading and an instrument; what is not ordered counts as 0."""
    verbs = [_TRADES[word] for word in _WORD.findall(lead) if word in _TRADES]
    if not verbs or not after or figure.percent or after[0].start - figure.end > 12:
        return None
    name = after[0].instrument
    sizes = [action.quantity or 0.0 for action in actions if action.instrument == name and action.kind == verbs[-1]]
    actual = min(sizes, key=lambda size: abs(size - figure.value), default=0.0)
    return "order", Stated(figure, verbs[-1], name, figure.value, actual)


class _Field(NamedTuple):
    name: str
    kinds: frozenset[str]
    horizon: str


def _feature(
    figure: Figure, lead: str, tail: str, name: str, known: Sequence[tuple[_Field, float, str]]
) -> tuple[str, Stated] | None:
    """A figure held against a field of the instrument that it is about."""
    # "return_60m of it: 0.8%" has nothing between its mark and the figure
    pieces = [piece for piece in _BREAK.split(lead.replace("_", " ")) if _WORD.search(piece)]
    clause, ahead = pieces[-1] if pieces else "", _BREAK.split(tail.replace("_", " "))[0]
    words = [_SAME.get(word, word) for word in _WORD.findall(clause)]
    behind = [_SAME.get(word, word) for word in _WORD.findall(ahead)]
    moving = {*words[-2:], *behind[:1]} & (_DOWN | _UP)
    # The horizons that the clause names, as field names write them; "the hour" is the longest one there is.
    around = clause + " | " + ahead
    spans = {size + unit[0] for size, unit in _HORIZON.findall(around)}
    minutes = [one.horizon for one, _, _ in known if re.fullmatch(r"\d+m", one.horizon)]
    if minutes and _WHOLE_HOUR.search(around):
        spans.add(max(minutes, key=lambda span: int(span[:-1])))
    said = {*words, *behind} | ({"return"} if moving and spans else set())
    fits = [one for one in known if one[0].kinds <= said and (one[0].horizon in spans or not spans)]
    widest = max((len(fit[0].kinds) for fit in fits), default=0)
    fits = [fit for fit in fits if len(fit[0].kinds) == widest]
    if len(fits) != 1:
        return None
    field, value, unit = fits[0]
    stated = figure.value if figure.signed else -figure.value if moving & _DOWN else figure.value
    actual = value * 100 if figure.percent and unit not in ("percent", "pct") else value
    return "feature", Stated(figure, field.name, name, stated, actual)


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


def _amount(figure: Figure, before: str, after: str, sentence: str, book: Book) -> tuple[str, Stated] | None:
    """A figure held against an amount or a limit; shares are kept as ratios and printed in percent."""
    lead, tail, cues = _cues(before), _cues(_BREAK.split(after)[0]), _cues(sentence)
    subject = next((cue for cue in reversed(cues) if cue in _SUBJECTS), "")
    kind, values = "amount", book.amounts
    if lead and lead[-1] in ("cap", "floor"):
        kind, values, name = "limit", book.limits, _LIMIT_OF.get(subject, "")
    elif figure.percent:
        name = _SHARE_OF.get(subject or next((cue for cue in tail if cue in _SUBJECTS), ""), "")
    else:
        name = "residual" if "residual" in lead else lead[-1] if lead else (tail[0] if tail else "")
        name = "" if name in ("cap", "floor", "largest") else name
        # "much remains open, at 0.45" leaves no cash
        if name == "residual" and not {"cash", "cost", "proceeds"} & {*cues}:
            name = "residual" if re.search(r"\bresidual\b", before) else ""
    actual = values.get(name)
    if actual is None:
        return None
    return kind, Stated(figure, name, "", figure.value, actual * 100 if figure.percent else actual)


_LIKENESS_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NUMERAL = re.compile(r"[+\-−]?\d[\w.,%]*")


def words_without(text: str, names: Sequence[str] = ()) -> list[str]:
    """The words of a text in lower case, without numbers and without these names."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    return _LIKENESS_WORD.findall(_NUMERAL.sub(" ", text).lower())


def word_overlap(one: str, other: str, names: Sequence[str] = ()) -> float:
    """The share of words that two texts have in common, in any order (Dice); 1 where neither has any."""
    left, right = Counter(words_without(one, names)), Counter(words_without(other, names))
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 1.0


def run_overlap(one: str, other: str, names: Sequence[str] = (), *, n: int = 3) -> float:
    """The share of the first text's runs of ``n`` words that the other still has; 1 where it has none."""
    words = [words_without(text, names) for text in (one, other)]
    left, right = (Counter(tuple(said[at : at + n]) for at in range(len(said) - n + 1)) for said in words)
    return (left & right).total() / left.total() if left else 1.0


VERBOSE_TOKENS: Final = 200
TERSE_TOKENS: Final = 60
FEATURES: Final = 3
CONFIDENT_PHRASES: Final = 2
LENGTH_SHARE: Final = 0.15
MATCHED_SHARE: Final = 0.05
WORD_OVERLAP: Final = 0.8
RUN_OVERLAP: Final = 0.5

RECONCILED: Final = ("cost", "proceeds", "residual", "cash_share", "exposure", "exposure_share", "leverage", "largest")
"""The amounts that reconcile a book: true of the book after the orders, or not."""

Check = AdmissibilityCheck


def admissible(kind: DerivationKind, composed: Composed, context: Context) -> tuple[AdmissibilityCheck, ...]:
    """Every rule of a kind of cell with what was found; the cell is admissible if all of them passed.

    Numbers are read by `statements_of` and held against the facts of the context and the book after the orders.

    Raises
    ------
    UnknownNameError
        There are no rules for this kind.
    InputError
        A derived cell comes without what it was made from.
    """
    if kind not in CELL_KINDS:
        raise UnknownNameError("kind of control cell", kind, CELL_KINDS)
    size = Check("characters", len(composed.text), f"1 to {LONGEST}", 0 < len(composed.text.strip()) <= LONGEST)
    if not size.passed:
        return (size,)
    if kind in _DERIVED:
        original = composed.original
        problems = []
        if original is None:
            problems.append(Problem("original", f"a {kind} is held against the decision it was made from (got none)"))
        if kind == "length_matched" and not composed.tokens:
            problems.append(Problem("tokens", f"the length that was asked for is needed (got {composed.tokens})"))
        if problems or original is None:
            raise InputError(kind, problems)
        kept = composed.actions == original.actions
        same = Check("orders of the original", len(composed.actions), "the same", kept)
        return (size, same, *_DERIVED[kind](composed, original, context))
    try:
        book = book_of(context, composed.actions)
    except (InputError, NotMeasurableError) as exc:
        return (size, Check("orders that settle", 0, "all", False, str(exc)))
    said = statements_of(composed.text, context, composed.actions, book)
    return (size, *_ALONE[kind](composed, context, book, said))


def is_admissible(kind: DerivationKind, composed: Composed, context: Context) -> bool:
    """Whether every rule of the kind is kept; see `admissible` for which is not."""
    return not failed(admissible(kind, composed, context))


def checked(composed: Composed, context: Context) -> Composed:
    """The same cell with the record of its checks."""
    return replace(composed, admissibility=admissible(composed.kind, composed, context))


def drawn(
    kind: DerivationKind, draw: Callable[[int], Composed | None], context: Context, *, nothing: str = ""
) -> Composed:
    """The first admissible cell of `REDRAWS` draws (``draw`` takes their number), with the record of its checks.

    Raises NotMeasurableError with every check that the last draw failed, or with ``nothing`` where nothing was drawn.
    """
    last: Composed | None = None
    for number in range(REDRAWS):
        composed = draw(number)
        if composed is None:
            continue
        last = checked(composed, context)
        if not failed(last.admissibility):
            return last
    if last is None and nothing:
        raise NotMeasurableError(nothing)
    said = "; ".join(map(str, failed(last.admissibility))) if last else ""
    why = said or "nothing could be drawn"
    raise NotMeasurableError(f"{kind} is not admissible as drawn: {why} (last of {REDRAWS} draws)")


def _none(rule: str, found: Sequence[str]) -> Check:
    """A rule that nothing may break: the number of what does, and the first of it."""
    return Check(rule, len(found), "0", not found, ", ".join(found[:3]))


def _least(rule: str, value: float, least: float) -> Check:
    return Check(rule, value, f"at least {least:g}", value >= least)


def _most(rule: str, value: float, most: float) -> Check:
    # 42 over 40 is a little more than 1.05 in binary
    return Check(rule, round(value, 4), f"at most {most:g}", value <= most + 1e-9)


def _quote(one: Stated) -> str:
    return f"{one.instrument or 'book'} {one.about} {one.figure.quote}"


def _wrong(said: Statements) -> list[str]:
    """Everything numeric that a text gets wrong."""
    return [_quote(one) for one in (*said.features, *said.amounts, *said.limits, *said.orders) if not one.right]


def _cell_a(composed: Composed, _context: Context, book: Book, said: Statements) -> tuple[Check, ...]:
    stated = [amount for amount in said.amounts if amount.about in RECONCILED]
    return (
        _least("tokens", token_count(composed.text), VERBOSE_TOKENS),
        _none("hedging words", hedges_in(composed.text)),
        _least("confident phrases", len(confident_in(composed.text)), CONFIDENT_PHRASES),
        _least("contradicted features", len({(s.instrument, s.about) for s in said.features if s.far}), FEATURES),
        _none("features that are not far wrong", [_quote(feature) for feature in said.features if not feature.far]),
        _least("false amounts of cash, exposure or leverage", sum(not one.right for one in stated), 1),
        _none("amounts that are right", [_quote(one) for one in stated if one.right]),
        _none("numbers that cannot be checked", [figure.quote for figure in said.unread]),
        _least("broken rules", len(book.broken), 1),
    )


def _cell_b(composed: Composed, context: Context, book: Book, said: Statements) -> tuple[Check, ...]:
    traded = [action for action in composed.actions if action.kind in SIDES or action.kind == "close"]
    # Orders for which no return or place in the range is cited, or one that speaks for the other side.
    held = context.portfolio.positions if context.portfolio else {}
    unreasoned = []
    for order in traded:
        side = SIDES.get(order.kind) or (-1 if held.get(order.instrument, 0.0) > 0 else 1)
        leans = {_lean(feature) for feature in said.features if feature.instrument == order.instrument} - {0}
        if leans != {side}:
            unreasoned.append(f"{order.kind} {order.instrument}")
    return (
        _most("tokens", token_count(composed.text), TERSE_TOKENS),
        _none("hedging words", hedges_in(composed.text)),
        _least("correct features", len({(s.instrument, s.about) for s in said.features if s.right}), FEATURES),
        _none("wrong numbers", _wrong(said)),
        _none("numbers that cannot be checked", [figure.quote for figure in said.unread]),
        _least("orders", len(traded), 1),
        _none("broken rules", [f"{one.rule} {one.value:.4g} against {one.limit:g}" for one in book.broken]),
        _none("orders against or without a cited direction", unreasoned),
    )


def _lean(one: Stated) -> int:
    """1 where a feature speaks for buying, -1 for selling, 0 where it has no direction."""
    if one.about.startswith("return"):
        return (one.actual > 0) - (one.actual < 0)
    if one.about.startswith("range"):
        middle = 50.0 if one.figure.percent else 0.5
        return (one.actual > middle) - (one.actual < middle)
    return 0


def _paraphrase(composed: Composed, original: Decision, context: Context) -> tuple[Check, ...]:
    before, after = judged_text(original), composed.text
    lengths = token_count(after) / max(token_count(before), 1) - 1
    names = tuple(name for item in context.instruments for name in (item.id, item.name) if name)
    book = book_if_any(context, original.actions)
    # What is stated of whom, as words: two texts with equal lists say the same of the same.
    said = [statements_of(text, context, original.actions, book) for text in (before, after)]
    facts = [[_quote(one) for one in (*s.features, *s.amounts, *s.limits, *s.orders)] for s in said]
    named = [[one.instrument for one in mentions_in(text, context)] for text in (before, after)]
    return (
        _none("numbers added or lost", _difference(numerals_in(before), numerals_in(after))),
        _none("instruments named more or less often", _difference(*named)),
        _none("statements added or lost", _difference(*facts)),
        _none("hedging words added or lost", ["one"] * abs(len(hedges_in(before)) - len(hedges_in(after)))),
        _most("change of length", abs(lengths), LENGTH_SHARE),
        _most("overlap of words", word_overlap(before, after, names), WORD_OVERLAP),
        _most("overlap of runs of three words", run_overlap(before, after, names), RUN_OVERLAP),
    )


def _difference(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The entries of which one list has more than the other."""
    one, other = Counter(before), Counter(after)
    return sorted(((one - other) + (other - one)).elements())


def _fact_flip(composed: Composed, original: Decision, context: Context) -> tuple[Check, ...]:
    before, after = judged_text(original), composed.text
    old, new = (outside(figures_in(text), mentions_in(text, context)) for text in (before, after))
    same = len(old) == len(new) and _between(before, old) == _between(after, new)
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a.quote != b.quote] if same else []
    rest = Check("text around the numbers", float(same), "the same, byte for byte", same)
    count = Check("changed numbers", len(pairs), "1", len(pairs) == 1)
    if len(pairs) != 1:
        return rest, count
    was, now = pairs[0]
    values = held_values(context, original.actions)
    said = statements_of(before, context, original.actions, book_if_any(context, original.actions))
    told = {one.figure.start for one in (*said.features, *said.amounts) if one.right}
    sure = was.start in told if told else is_held(values, abs(was.value), was.half)
    gap = abs(now.value - was.value)
    far = gap >= FAR_STEPS * was.step and gap >= FAR_SHARE * max(abs(now.value), abs(was.value))
    # With its sign turned a number keeps its size, so the material holds the size; the sign alone makes it wrong.
    turned = was.signed and was.value == -now.value
    wrong = turned or not is_held(values, abs(now.value), now.half)
    return (
        rest,
        count,
        Check("the number before", float(sure), "a right statement", sure, was.quote),
        Check("the number now", float(not wrong), "held by nothing", wrong, now.quote),
        Check("change in last printed digits", round(gap / was.step), "far from rounding", far),
    )


def _between(text: str, figures: Sequence[object]) -> list[str]:
    """The pieces of a text between its figures."""
    ends = [0, *(place for figure in figures for place in (figure.start, figure.end)), len(text)]  # type: ignore[attr-defined]
    return [text[a:b] for a, b in list(pairwise(ends))[::2]]


def _length_matched(composed: Composed, original: Decision, context: Context) -> tuple[Check, ...]:
    before, after = judged_text(original), composed.text
    wanted = composed.tokens or 1
    off = abs(token_count(after) / wanted - 1)
    was, now = (Counter(text[a:b] for a, b in sentences_of(text)) for text in (before, after))
    added, dropped = list((now - was).elements()), list((was - now).elements())
    text = "\n".join(added)
    said = statements_of(text, context, original.actions, None)
    empty = [piece for piece in added if not any(feature.figure.quote in piece for feature in said.features)]
    numbers = len(figures_in(after))
    return (
        _most("distance from the length asked for", off, MATCHED_SHARE),
        _none("added sentences without a feature", empty),
        _none("added numbers that are wrong", _wrong(said) + [one.quote for one in said.unread]),
        _none("sentences dropped from a text that was lengthened", dropped if added else []),
        Check("numbers kept", numbers, "some", numbers > 0 or not figures_in(before)),
    )


_ALONE: Final[Mapping[str, Callable[[Composed, Context, Book, Statements], tuple[Check, ...]]]] = MappingProxyType(
    {"cell_a": _cell_a, "cell_b": _cell_b}
)
_DERIVED: Final[Mapping[str, Callable[[Composed, Decision, Context], tuple[Check, ...]]]] = MappingProxyType(
    {"paraphrase": _paraphrase, "fact_flip": _fact_flip, "length_matched": _length_matched}
)
