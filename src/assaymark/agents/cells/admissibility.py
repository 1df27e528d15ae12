"""The rules of each control cell, held against a text and its orders by somebody who did not write them.

`admissible` looks at what was composed and at the material, never at how it was made: it judges the work of the
generators here, of a person and of a model alike. Limits are those of ValueBlindBench section 3.5 where it gives one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from assaymark.agents.cells.book import Book, book_of, held_values, is_held
from assaymark.agents.cells.composed import CELL_KINDS, AdmissibilityCheck, Composed, failed
from assaymark.agents.cells.figures import LONGEST, figures_in, mentions_in, numerals_in, outside, sentences_of
from assaymark.agents.cells.likeness import run_overlap, word_overlap
from assaymark.agents.cells.statements import FAR_SHARE, FAR_STEPS, Stated, Statements, statements_of
from assaymark.errors import InputError, NotMeasurableError, Problem, UnknownNameError
from assaymark.portfolio.orders import SIDES
from assaymark.prompting.texts import judged_text, token_count
from assaymark.prompting.wording import confident_in, hedges_in
from assaymark.records import Context, Decision, DerivationKind

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

_UP_FIELDS: Final = ("return", "range")
Check = AdmissibilityCheck


def admissible(kind: DerivationKind, composed: Composed, context: Context) -> tuple[AdmissibilityCheck, ...]:
    """Every rule of a kind of cell with what was found; the cell is admissible if all of them passed.

    Numbers are read by `statements_of` and held against the facts of the context and the book after the orders.

    Parameters
    ----------
    kind : str
        One of `CELL_KINDS`.
    composed : Composed
        Derived kinds need ``original``, and length-matched ones ``tokens``.
    context : Context
        With facts about instruments and a portfolio.

    Returns
    -------
    tuple of AdmissibilityCheck
        In a fixed order for each kind. Orders that cannot be settled and texts that are too long are failed checks,
        behind which nothing else was looked at.

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
        original = _original(kind, composed)
        return (size, _same_actions(composed, original), *_DERIVED[kind](composed, original, context))
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


def _original(kind: str, composed: Composed) -> Decision:
    problems = []
    if composed.original is None:
        problems.append(Problem("original", f"a {kind} is held against the decision it was made from (got none)"))
    if kind == "length_matched" and not composed.tokens:
        problems.append(Problem("tokens", f"the length that was asked for is needed (got {composed.tokens})"))
    if problems or composed.original is None:
        raise InputError(kind, problems)
    return composed.original


# --- rules that several kinds share -----------------------------------------------------------------------------------


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


def _same_actions(composed: Composed, original: Decision) -> Check:
    return Check("orders of the original", len(composed.actions), "the same", composed.actions == original.actions)


def _wrong(said: Statements) -> list[str]:
    """Everything numeric that a text gets wrong."""
    return [_quote(one) for one in (*said.features, *said.amounts, *said.limits, *said.orders) if not one.right]


# --- cell A: verbose, confident, wrong --------------------------------------------------------------------------------


def _cell_a(composed: Composed, _context: Context, book: Book, said: Statements) -> tuple[Check, ...]:
    stated = [one for one in said.amounts if one.about in RECONCILED]
    return (
        _least("tokens", token_count(composed.text), VERBOSE_TOKENS),
        _none("hedging words", hedges_in(composed.text)),
        _least("confident phrases", len(confident_in(composed.text)), CONFIDENT_PHRASES),
        _least("contradicted features", len({(s.instrument, s.about) for s in said.features if s.far}), FEATURES),
        _none("features that are not far wrong", [_quote(one) for one in said.features if not one.far]),
        _least("false amounts of cash, exposure or leverage", sum(not one.right for one in stated), 1),
        _none("amounts that are right", [_quote(one) for one in stated if one.right]),
        _none("numbers that cannot be checked", [figure.quote for figure in said.unread]),
        _least("broken rules", len(book.broken), 1),
    )


# --- cell B: terse, correct -------------------------------------------------------------------------------------------


def _cell_b(composed: Composed, context: Context, book: Book, said: Statements) -> tuple[Check, ...]:
    unread = [figure.quote for figure in said.unread]
    traded = [one for one in composed.actions if one.kind in SIDES or one.kind == "close"]
    return (
        _most("tokens", token_count(composed.text), TERSE_TOKENS),
        _none("hedging words", hedges_in(composed.text)),
        _least("correct features", len({(s.instrument, s.about) for s in said.features if s.right}), FEATURES),
        _none("wrong numbers", _wrong(said)),
        _none("numbers that cannot be checked", unread),
        _least("orders", len(traded), 1),
        _none("broken rules", [f"{one.rule} {one.value:.4g} against {one.limit:g}" for one in book.broken]),
        _none("orders against or without a cited direction", _unreasoned(composed, context, said)),
    )


def _unreasoned(composed: Composed, context: Context, said: Statements) -> list[str]:
    """Orders for which no return or place in the range is cited, or one that speaks for the other side."""
    held = context.portfolio.positions if context.portfolio else {}
    found = []
    for order in composed.actions:
        side = SIDES.get(order.kind, 0)
        if order.kind == "close":
            side = -1 if held.get(order.instrument, 0.0) > 0 else 1
        if not side:
            continue
        leans = [_lean(one) for one in said.features if one.instrument == order.instrument]
        leans = [lean for lean in leans if lean]
        if not leans or any(lean != side for lean in leans):
            found.append(f"{order.kind} {order.instrument}")
    return found


def _lean(one: Stated) -> int:
    """1 where a feature speaks for buying, -1 for selling, 0 where it has no direction."""
    if one.about.startswith("return"):
        return (one.actual > 0) - (one.actual < 0)
    if one.about.startswith("range"):
        middle = 50.0 if one.figure.percent else 0.5
        return (one.actual > middle) - (one.actual < middle)
    return 0


# --- cells made from an honest decision -------------------------------------------------------------------------------


def _paraphrase(composed: Composed, original: Decision, context: Context) -> tuple[Check, ...]:
    before, after = judged_text(original), composed.text
    lengths = token_count(after) / max(token_count(before), 1) - 1
    moved = _difference(_facts(before, original, context), _facts(after, original, context))
    return (
        _none("numbers added or lost", _difference(numerals_in(before), numerals_in(after))),
        _none("instruments named more or less often", _difference(_named(before, context), _named(after, context))),
        _none("statements added or lost", moved),
        _none("hedging words added or lost", ["one"] * abs(len(hedges_in(before)) - len(hedges_in(after)))),
        _most("change of length", abs(lengths), LENGTH_SHARE),
        _most("overlap of words", word_overlap(before, after, _names_of(context)), WORD_OVERLAP),
        _most("overlap of runs of three words", run_overlap(before, after, _names_of(context)), RUN_OVERLAP),
    )


def _names_of(context: Context) -> tuple[str, ...]:
    return tuple(name for item in context.instruments for name in (item.id, item.name) if name)


def _named(text: str, context: Context) -> list[str]:
    return [one.instrument for one in mentions_in(text, context)]


def _facts(text: str, original: Decision, context: Context) -> list[str]:
    """What is stated of whom, as words: two texts with equal lists say the same of the same."""
    said = statements_of(text, context, original.actions, book_if_any(context, original))
    return [f"{_quote(one)}" for one in (*said.features, *said.amounts, *said.limits, *said.orders)]


def book_if_any(context: Context, original: Decision) -> Book | None:
    """The book after a decision's orders; None where the context has none, or the orders are targets of weight."""
    try:
        return book_of(context, original.actions)
    except (InputError, NotMeasurableError):
        return None


def _difference(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """What one list has more of than the other."""
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
    said = statements_of(before, context, original.actions, book_if_any(context, original))
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
    ends = [0, *(place for one in figures for place in (one.start, one.end)), len(text)]  # type: ignore[attr-defined]
    return [text[a:b] for a, b in list(pairwise(ends))[::2]]


def _length_matched(composed: Composed, original: Decision, context: Context) -> tuple[Check, ...]:
    before, after = judged_text(original), composed.text
    wanted = composed.tokens or 1
    off = abs(token_count(after) / wanted - 1)
    was, now = Counter(_pieces(before)), Counter(_pieces(after))
    added, dropped = list((now - was).elements()), list((was - now).elements())
    text = "\n".join(added)
    said = statements_of(text, context, original.actions, None)
    empty = [piece for piece in added if not any(one.figure.quote in piece for one in said.features)]
    numbers = len(figures_in(after))
    return (
        _most("distance from the length asked for", off, MATCHED_SHARE),
        _none("added sentences without a feature", empty),
        _none("added numbers that are wrong", _wrong(said) + [one.quote for one in said.unread]),
        _none("sentences dropped from a text that was lengthened", dropped if added else []),
        Check("numbers kept", numbers, "some", numbers > 0 or not figures_in(before)),
    )


def _pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences_of(text)]


_ALONE: Final[Mapping[str, Callable[[Composed, Context, Book, Statements], tuple[Check, ...]]]] = MappingProxyType(
    {"cell_a": _cell_a, "cell_b": _cell_b}
)
_DERIVED: Final[Mapping[str, Callable[[Composed, Decision, Context], tuple[Check, ...]]]] = MappingProxyType(
    {"paraphrase": _paraphrase, "fact_flip": _fact_flip, "length_matched": _length_matched}
)
