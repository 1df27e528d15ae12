"""The decisions of an agent, newest first: its reasons, its orders, what came of them, and what does not reconcile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.report.blocks import (
    Beside,
    Block,
    Facts,
    Filter,
    Group,
    Inline,
    Linked,
    Table,
    Text,
    bold,
    row_bytes,
    small,
    spaced,
    written,
)
from assaymark.report.page import in_parts, paged_by
from assaymark.report.season.index import ModelBook, ModelWords
from assaymark.report.season.inputs import SeasonRefusal, SeasonStep, SeasonTrade
from assaymark.text import clean

T = TypeVar("T")

PART_BYTES: Final = 380_000
"""Bytes of rows on a part of a long list: little enough for a phone."""

TRADED: Final = "traded"
REFUSED: Final = "rejected"
SILENT: Final = "no-answer"
QUIET: Final = "quiet"
WRONG: Final = "mismatch"
FILTERS: Final = (TRADED, REFUSED, SILENT, QUIET, WRONG)

_TEXT, _LINES, _SHOWN = 6_000, 120, 420
_ORDERS, _ORDER, _REASON, _FIRST = 40, 160, 400, 110
_END: Final = re.compile(r"(?<=[.!?])\s")
_TRADES: Final = 4
_CARD_BYTES, _ITEM_BYTES = 900, 130
_NO_ORDER: Final = ("hold", "no_trade")


def decision_keys(step: SeasonStep) -> frozenset[str]:
    """What a decision is looked for by: traded, rejected, no answer, nothing of it, a mismatch.

    >>> sorted(decision_keys(SeasonStep(number=1, day="", record_id="", problem="timed out")))
    ['no-answer']
    >>> sorted(decision_keys(SeasonStep(number=1, day="", record_id="", orders=("hold A",))))
    ['quiet']
    """
    found = set()
    if any(fill.kind == "order" for fill in step.fills):
        found.add(TRADED)
    if step.refusals or REJECTED in step.flags:
        found.add(REFUSED)
    if unanswered(step):
        found.add(SILENT)
    if step.mismatches:
        found.add(WRONG)
    return frozenset(found if found - {WRONG} else found | {QUIET})


def unanswered(step: SeasonStep) -> bool:
    """Whether there was no usable answer on this day; the agent then holds."""
    return bool({*NOT_USABLE} & {*step.flags}) or bool(step.problem and REJECTED not in step.flags)


def order_count(step: SeasonStep) -> int:
    """Orders of a decision; to hold, or to trade nothing, is none.

    >>> order_count(SeasonStep(number=1, day="", record_id="", orders=("buy NVX, quantity 1", "hold ORL")))
    1
    """
    return sum(not order.startswith(_NO_ORDER) for order in step.orders)


def further(path: str, kind: str, rows: Sequence[T], size: Callable[[T], int]) -> dict[str, tuple[T, ...]]:
    """The pages of something long of an agent, in the folder of its name; none where there is nothing."""
    stem = f"{path.removesuffix('.html')}/{kind}"
    return in_parts(stem, paged_by(rows, size, PART_BYTES)) if rows else {}


def decision_parts(path: str, steps: Sequence[SeasonStep]) -> dict[str, tuple[SeasonStep, ...]]:
    """The pages of the decisions of an agent, newest first; they end at the same decision in every language."""
    return further(path, "decisions", tuple(reversed(steps)), _size)


def decision_places(path: str, steps: Sequence[SeasonStep]) -> dict[int, str]:
    """Where each decision stands, by its number."""
    parts = decision_parts(path, steps)
    return {step.number: f"{page}#d{step.number}" for page, shown in parts.items() for step in shown}


def _size(step: SeasonStep) -> int:
    """About how many bytes a decision takes: its texts, and markup for each thing that it lists."""
    refused = [one.text[:_REASON] for one in step.refusals]
    texts = [text[:_TEXT] for _, text in step.texts]
    short = [text[:_SHOWN] for _, text in step.texts]
    orders = [order[:_ORDER] for order in step.orders[:_ORDERS]]
    wrong = [text[:_REASON] for text in step.mismatches]
    listed = len(orders) + len(step.fills) + len(step.refusals) + len(step.flags) + len(wrong) + len(texts)
    return row_bytes(_CARD_BYTES + _ITEM_BYTES * listed, [*texts, *short, *orders, *refused, *wrong, step.problem])


def decision_filters(words: ModelWords, steps: Sequence[SeasonStep]) -> tuple[Filter, ...]:
    """The buttons above some decisions: all, and each kind that occurs."""
    seen = Counter(key for step in steps for key in decision_keys(step))
    kinds = (Filter(key, words.word("filter", key), words.count(seen[key])) for key in FILTERS if seen[key])
    return (Filter("", words("frame.all"), words.count(len(steps))), *kinds)


def decisions_answer(book: ModelBook) -> str:
    """How many decisions there are, and on how many days there was no answer."""
    steps = book.steps
    if not steps:
        return book.say("decisions.empty")
    traded = sum(TRADED in decision_keys(step) for step in steps)
    return book.say("decisions.answer", n=len(steps), traded=traded, silent=sum(map(unanswered, steps)))


# --- one decision -----------------------------------------------------------------------------------------------------


def decision_row(book: ModelBook, step: SeasonStep, place: str) -> tuple[Inline, ...]:
    """A decision in a line: its day, trades, their cost, the beginning of its reasons, and all of it."""
    words, cost = book.words, sum(fill.cost for fill in step.fills if fill.kind == "order")
    source = book.source(step)
    all_of_it = Linked(words.say("decisions.source"), source) if source else Linked(words.say("decisions.whole"), place)
    return words.day(step.day), trades_words(words, step), words.amount(cost, 2), reason_words(words, step), all_of_it


def reason_words(words: ModelWords, step: SeasonStep) -> Inline:
    """The first sentence of the reasons of a decision; empty where it gave none."""
    first = clean(_END.split(next((text for _, text in step.texts if text.strip()), "").strip())[0], _FIRST)
    return written(words.quoted(first)) if first else ""


def trades_words(words: ModelWords, step: SeasonStep) -> str:
    """What was sold and bought, and what was rejected; a word for why there is nothing."""
    fills = [fill for fill in step.fills if fill.kind == "order"]
    shown = []
    for key, sign in (("sold", -1), ("bought", 1)):
        named = [f"{units(words, abs(fill.quantity))} {clean(fill.symbol, 20)}" for fill in fills[:_TRADES]
                 if fill.quantity * sign > 0]  # fmt: skip
        shown += [words.say(f"count.{key}", what=", ".join(named))] if named else []
    shown += [words.say("accounts.held_more", n=len(fills) - _TRADES)] if len(fills) > _TRADES else []
    shown += [words.say("count.refused", n=len(step.refusals))] if step.refusals else []
    said = "; ".join(shown) or next(words.word("filter", key) for key in FILTERS if key in decision_keys(step))
    return said[0].upper() + said[1:]


def decision_group(book: ModelBook, step: SeasonStep) -> Group:
    """All of a decision: reasons beside orders, fills, rejections, flags and what does not reconcile."""
    words, keys = book.words, decision_keys(step)
    first, *others = [key for key in FILTERS if key in keys]
    timed = words.say("decisions.untimed")
    if step.seconds is not None:
        timed = words.say("decisions.seconds", seconds=step.seconds)
    below = [timed] if step.nav is None else [words.say("decisions.nav", nav=words.amount(step.nav)), timed]
    source = book.source(step)
    below_all = *below, *([Linked(words.say("decisions.source"), source)] if source else [])
    sides = tuple(_texts(words, step)), (Facts(tuple(_done(words, step))),)
    heading = words.say("decisions.day", n=step.number), " ", small(words.day(step.day))
    blocks = (Text(spaced(below_all, " · "), "sub"), Beside(sides))
    return Group(heading, blocks, f"d{step.number}", key=first, also=" ".join(others), style="dec", level=2)


def _texts(words: ModelWords, step: SeasonStep) -> Iterator[Block]:
    """What the agent wrote, long texts folded; and, where it gave no usable answer, that it did not."""
    if unanswered(step) or step.problem:
        what = words.say("decisions.unanswered" if unanswered(step) else "decisions.unread")
        yield Text((bold(what), " ", written(clean(step.problem, _REASON))), "state")
    if not step.texts and not unanswered(step):
        yield Text(words.say("decisions.no_reason"), "sub")
    last = None if len(step.texts) > 1 else step.texts[0][0] if step.texts else None
    for kind, text in step.texts:
        if kind != last:
            yield Text(words.word("text", kind), "hd")
        last = kind
        yield from _folded(words, text)


def _folded(words: ModelWords, text: str) -> Iterator[Block]:
    """A text with its lines; what is long is folded, and what is very long is cut and says so."""
    lines = [clean(one) for one in text[:_TEXT].splitlines()]
    kept = "\n".join(line for line in lines[:_LINES] if line)
    whole, left = Text(written(kept), "said"), len(text) - _TEXT
    if len(kept) <= _SHOWN and left <= 0:
        yield whole
        return
    cut = (Text(words.say("decisions.cut", n=left), "sub"),) if left > 0 else ()
    yield Group(written(clean(kept, _SHOWN // 2)), (whole, *cut), folded="closed")


def _done(words: ModelWords, step: SeasonStep) -> Iterator[tuple[str, Inline]]:
    """Orders, fills, what was rejected with the reason that the agent was shown, flags, and mismatches."""
    orders: list[Inline] = [written(clean(one, _ORDER)) for one in step.orders[:_ORDERS] if one != _NO_ORDER[1]]
    if len(step.orders) > _ORDERS:
        orders.append(words.say("decisions.more", n=len(step.orders) - _ORDERS))
    kinds: Mapping[str, Sequence[Inline]] = {
        "fills": [_fill(words, one) for one in step.fills],
        "refused": [_refusal(words, one) for one in step.refusals],
        "flags": [words.word("flag", flag) for flag in step.flags],
        "mismatches": [mismatch_words(words, text) for text in step.mismatches],
    }
    if order_count(step):
        yield words.say("decisions.orders"), spaced(orders)
    else:
        yield words.say("decisions.no_orders"), spaced(orders)
    for kind, items in kinds.items():
        if items:
            yield words.say(f"decisions.{kind}"), spaced(items)


def _fill(words: ModelWords, one: SeasonTrade) -> str:
    side = "paid_out" if one.kind != "order" else "bought" if one.quantity > 0 else "sold"
    values = {"units": units(words, abs(one.quantity)), "symbol": clean(one.symbol, 40)}
    if one.kind == "dividend":
        return words.say("decisions.dividend", symbol=values["symbol"], cash=words.amount(-one.cost, 2))
    if one.kind == "split":
        return words.say(f"decisions.{'split' if one.quantity > 0 else 'reverse_split'}", **values)
    said = words.say(f"decisions.{side}", **values)
    if one.price is None:
        return f"{said}, {words.say('decisions.no_price')}"
    at = words.say("decisions.at", price=words.amount(one.price, 2))
    cost = f", {words.say('decisions.cost', cost=words.amount(one.cost, 2))}" if one.cost else ""
    return f"{said} {at}{cost}"


def units(words: ModelWords, quantity: float) -> str:
    """Units with as many decimals as they have, six digits at most where there are decimals.

    >>> from assaymark.claims.messages import catalogue
    >>> [units(ModelWords(catalogue("en")), number) for number in (10.0, 0.25, 1039.8771, 1234567.8)]
    ['10', '0.25', '1,039.88', '1,234,568']
    """
    whole = len(str(int(abs(quantity))))
    amount = words.amount(quantity, max(6 - whole, 0))
    point = words.catalogue.decimal
    return amount.rstrip("0").rstrip(point) if point in amount and whole < 6 else amount


def _refusal(words: ModelWords, one: SeasonRefusal) -> Inline:
    """An order that was not carried out: the word for why, and the sentence that its agent was shown."""
    said = bold(clean(one.symbol, 40)), f": {words.word('refusal', one.reason)}"
    if not one.text or one.text == one.reason:
        return said
    shown = words.quoted(clean(one.text, _REASON))
    return *said, " ", small(f"{words.say('decisions.shown')} {shown}")


# --- what does not reconcile, in words: the sentences of `portfolio.Mismatch`, read back and said again ---------------


_MOST: Final = 400
_KINDS: Final = "fill-quantity|fill-price|cash|position|negative-position|nav"
_SENTENCE: Final = re.compile(
    rf"(?P<kind>{_KINDS})(?: of (?P<symbol>.+?))?: stated (?P<stated>[-+.\de]+), recomputed (?P<recomputed>[-+.\de]+)"
    r"(?:, (?P<where>at the close|inside the bar|outside the bar|no bar))?"
)
_MOVE: Final = re.compile(
    r"price of (?P<symbol>.+?) on (?P<day>[-\d]+): (?P<close>[-+.\de]+) after (?P<before>[-+.\de]+) on "
    r"(?P<earlier>[-\d]+), (?:explained by no action|not explained by (?P<actions>.+))"
)
"""As `assaymark.workflow.tracks.season_books.unexplained` writes it."""


def mismatch_parts(path: str, steps: Sequence[SeasonStep]) -> dict[str, tuple[tuple[SeasonStep, str], ...]]:
    """The pages of what does not reconcile, in the order of the days; none where everything does."""
    found = [(step, text) for step in steps for text in step.mismatches]
    return further(path, "checks", found, lambda one: row_bytes(220, (one[0].day, one[1][:_MOST])))


def mismatch_table(book: ModelBook, found: Sequence[tuple[SeasonStep, str]], places: Mapping[int, str]) -> Table:
    """Statements that do not follow from the others, each with the day and the link to its decision."""
    heads = tuple(book.say(f"reliability.{name}") for name in ("day", "date", "text"))
    rows = tuple(
        (
            Linked(book.words.count(step.number), places[step.number]),
            clean(step.day, 24),
            written(mismatch_words(book.words, text)),
        )
        for step, text in found
    )
    return Table(heads, rows, summary="", stacked=True)


def mismatch_words(words: ModelWords, text: str) -> str:
    """A mismatch in the language of the page; a sentence of another form stays as it was recorded, made safe.

    >>> from assaymark.claims.messages import english
    >>> said = mismatch_words(ModelWords(english()), "cash: stated 14.4, recomputed 17.7507, outside the bar")
    >>> said
    'Cash: stated 14.4, recomputed 17.7507, which no price of the step explains.'
    >>> mismatch_words(ModelWords(english()), "The cash is odd.")
    'The cash is odd.'
    """
    shown = clean(text, _MOST)
    if moved := _MOVE.fullmatch(shown):
        said = "acted" if moved["actions"] else "moved"
        return words.say(f"mismatch.price.{said}", **{key: value or "" for key, value in moved.groupdict().items()})
    found = _SENTENCE.fullmatch(shown)
    if found is None:
        return shown
    try:
        stated, recomputed = (words.catalogue.number(float(found[name]), ".10g") for name in ("stated", "recomputed"))
    except ValueError:
        return shown
    what = words.word("mismatch", found["kind"])
    if found["symbol"]:
        what = words.say("mismatch.of", what=what, symbol=found["symbol"])
    where = words.say(f"mismatch.where.{found['where'].replace(' ', '_')}") if found["where"] else ""
    return words.say("mismatch.said", what=what, stated=stated, recomputed=recomputed, where=where)
