"""The decisions of an agent, day by day: its reasons, its orders, what came of them, and the book after.

What an agent wrote is hostile: every line passes `clean` and `escape`. Cards are put together here and not in a
template, since a season has tens of thousands in each language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.report.evidence import Filter
from assaymark.report.formats import clean
from assaymark.report.paging import row_bytes
from assaymark.report.season.inputs import SeasonStep, SeasonTrade
from assaymark.report.season.model_book import ModelBook, ModelWords
from assaymark.report.season.model_head import order_count
from assaymark.report.season.model_mismatches import mismatch_words

TRADED: Final = "traded"
REFUSED: Final = "rejected"
SILENT: Final = "no-answer"
QUIET: Final = "quiet"
WRONG: Final = "mismatch"
FILTERS: Final = (TRADED, REFUSED, SILENT, QUIET, WRONG)

_TEXT, _LINES, _SHOWN = 6_000, 120, 420
_ORDERS, _ORDER, _REASON = 40, 160, 400
_CARD_BYTES, _ITEM_BYTES = 760, 110
_NOTHING: Final = "no_trade"


@dataclass(frozen=True, slots=True)
class DecisionCard:
    """One decision as markup. ``keys`` are the filters that show it.

    ``size`` is about how many bytes it takes. It is the same in every language, so that parts end at one card in all.
    """

    number: int
    html: Markup
    keys: frozenset[str]
    size: int


def decision_cards(book: ModelBook) -> tuple[DecisionCard, ...]:
    """Every decision in order."""
    return tuple(_card(book.words, step) for step in book.steps)


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


def decision_filters(words: ModelWords, cards: Sequence[DecisionCard]) -> tuple[Filter, ...]:
    """The buttons above some cards: all, and each kind that occurs."""
    seen = Counter(key for card in cards for key in card.keys)
    kinds = (Filter(key, words.word("filter", key), words.count(seen[key])) for key in FILTERS if seen[key])
    return (Filter("", words("frame.all"), words.count(len(cards))), *kinds)


def decisions_answer(book: ModelBook) -> str:
    """How many decisions there are, and on how many days there was no answer."""
    steps = book.steps
    if not steps:
        return book.say("decisions.empty")
    traded = sum(TRADED in decision_keys(step) for step in steps)
    silent = sum(unanswered(step) for step in steps)
    return book.say("decisions.answer", n=len(steps), traded=traded, silent=silent)


# --- a card -----------------------------------------------------------------------------------------------------------


def _card(words: ModelWords, step: SeasonStep) -> DecisionCard:
    keys = decision_keys(step)
    first, *others = [key for key in FILTERS if key in keys]
    marks = f' data-x="{" ".join(others)}"' if others else ""
    html = (
        f'<li id="d{step.number}" data-k="{first}"{marks}><div class="when">{_when(words, step)}</div>'
        f'<div class="reason">{"".join(_texts(words, step))}</div>'
        f'<div class="did">{"".join(_done(words, step))}</div></li>\n'
    )
    return DecisionCard(step.number, Markup(html), keys, _size(step))


def _size(step: SeasonStep) -> int:
    """About how many bytes a card takes: its texts, and markup for each thing that it lists."""
    refused = [one.text[:_REASON] for one in step.refusals]
    texts = [text[:_TEXT] for _, text in step.texts]
    short = [text[:_SHOWN] for _, text in step.texts]
    orders = [order[:_ORDER] for order in step.orders[:_ORDERS]]
    wrong = [text[:_REASON] for text in step.mismatches]
    listed = len(orders) + len(step.fills) + len(step.refusals) + len(step.flags) + len(wrong) + len(texts)
    return row_bytes(_CARD_BYTES + _ITEM_BYTES * listed, [*texts, *short, *orders, *refused, *wrong, step.problem])


def _when(words: ModelWords, step: SeasonStep) -> str:
    """The day, the value after it, and the seconds that it took."""
    lines = [
        f"<b>{escape(words.say('decisions.day', n=step.number))}</b>",
        f'<time datetime="{escape(clean(step.day, 24))}">{escape(clean(step.day, 24))}</time>',
    ]
    if step.nav is not None:
        lines.append(f"<span>{escape(words.say('decisions.nav', nav=words.amount(step.nav)))}</span>")
    seconds = "decisions.untimed" if step.seconds is None else "decisions.seconds"
    timed = words.say(seconds) if step.seconds is None else words.say(seconds, seconds=step.seconds)
    lines.append(f"<span>{escape(timed)}</span>")
    return "".join(lines)


def _texts(words: ModelWords, step: SeasonStep) -> Iterator[str]:
    """What the agent wrote, long texts folded; and, where it gave no usable answer, that it did not."""
    if unanswered(step):
        yield f'<p class="state"><b>{escape(words.say("decisions.unanswered"))}</b> {_line(step.problem, _REASON)}</p>'
    elif step.problem:
        yield f'<p class="state"><b>{escape(words.say("decisions.unread"))}</b> {_line(step.problem, _REASON)}</p>'
    if not step.texts and not unanswered(step):
        yield f'<p class="sub">{escape(words.say("decisions.no_reason"))}</p>'
    last = None if len(step.texts) > 1 else step.texts[0][0] if step.texts else None
    for kind, text in step.texts:
        head = f'<p class="hd">{escape(words.word("text", kind))}</p>' if kind != last else ""
        last = kind
        yield head + _folded(words, text)


def _folded(words: ModelWords, text: str) -> str:
    """A text with its lines; what is long is folded, and what is very long is cut and says so."""
    lines = [clean(one) for one in text[:_TEXT].splitlines()]
    kept = "\n".join(line for line in lines[:_LINES] if line)
    left = len(text) - _TEXT if len(text) > _TEXT else 0
    cut = f'<p class="sub">{escape(words.say("decisions.cut", n=left))}</p>' if left else ""
    if len(kept) <= _SHOWN and not cut:
        return f'<p class="said" dir="auto">{escape(kept)}</p>'
    return (
        f'<details class="long"><summary dir="auto">{escape(clean(kept, _SHOWN // 2))}</summary>'
        f'<p class="said" dir="auto">{escape(kept)}</p>{cut}</details>'
    )


def _line(text: str, limit: int) -> Markup:
    return escape(clean(text, limit))


def _done(words: ModelWords, step: SeasonStep) -> Iterator[str]:
    """Orders, fills, what was not carried out with the reason the agent was shown, flags, and mismatches."""
    orders = [f"<code>{_line(order, _ORDER)}</code>" for order in step.orders[:_ORDERS] if order != _NOTHING]
    if len(step.orders) > _ORDERS:
        orders.append(str(escape(words.say("decisions.more", n=len(step.orders) - _ORDERS))))
    none = f'<p class="hd">{escape(words.say("decisions.no_orders"))}</p>'
    yield _listed(words, "orders" if order_count(step) else "no_orders", orders) or none
    yield _listed(words, "fills", [str(escape(_fill(words, one))) for one in step.fills])
    yield _listed(words, "refused", [_refusal(words, one.symbol, one.reason, one.text) for one in step.refusals])
    yield _listed(words, "flags", [str(escape(words.word("flag", flag))) for flag in step.flags])
    yield _listed(words, "mismatches", [str(escape(mismatch_words(words, text))) for text in step.mismatches])


def _listed(words: ModelWords, kind: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f'<p class="hd">{escape(words.say(f"decisions.{kind}"))}</p><ul dir="auto">{listed}</ul>'


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
    whole = len(str(int(quantity)))
    written = words.amount(quantity, max(6 - whole, 0))
    sign = words.catalogue.decimal
    return written.rstrip("0").rstrip(sign) if sign in written and whole < 6 else written


def _refusal(words: ModelWords, symbol: str, reason: str, text: str) -> str:
    """An order that was not carried out: the word for why, and the sentence that its agent was shown."""
    word = f"<b>{_line(symbol, 40)}</b>: {escape(words.word('refusal', reason))}"
    if not text or text == reason:
        return word
    quoted = words.quoted(clean(text, _REASON))
    return f'{word}<span class="sub">{escape(words.say("decisions.shown"))} {escape(quoted)}</span>'
