"""The pages of the agents of a season: one for each, with the rest of its ledger and its decisions beside it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from markupsafe import Markup, escape

from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.claims.evidence import SILENT as index_SILENT
from assaymark.claims.messages import said
from assaymark.claims.season_types import Place
from assaymark.judging.season.table import AgreementRow, SeasonRow
from assaymark.records import Level
from assaymark.report.blocks import Filter, row_bytes
from assaymark.report.page import SCRIPTS, paged, pager
from assaymark.report.season.agent_scores import (
    FIRST_MISMATCHES,
    EarnedView,
    MismatchRow,
    checks_view,
    data_path,
    earned_view,
    graded_view,
    mismatch_rows,
    mismatch_words,
)
from assaymark.report.season.index import ModelBook, ModelWords, SeasonLookup
from assaymark.report.season.inputs import SeasonStep, SeasonTrade
from assaymark.report.season.ledger import (
    FIRST_BYTES,
    FIRST_ROWS,
    LedgerLine,
    LedgerWords,
    ledger_answer,
    ledger_counts,
    ledger_filters,
    ledger_lines,
    ledger_notes,
)
from assaymark.report.season.levels import model_levels
from assaymark.report.season.model_paths import further_path
from assaymark.report.season.words import Words
from assaymark.text import clean

# The head of an agent's page: the ranks that it can have, what it did, and how it was graded.


_NO_ORDER: Final = ("hold", "no_trade")
_ROOM: Final = 2_000


@dataclass(frozen=True, slots=True)
class HeadView:
    """The head of the page. ``total`` is a range without a single rank, and empty without a total."""

    name: str
    level: Level
    tag: str
    place: str
    why: str
    facts: str
    judged: str
    total: str
    strategy: str
    reference: bool


def head_view(book: ModelBook) -> HeadView:
    """The head of one agent."""
    place = book.run.decided.place(book.agent.name)
    row = book.row
    return HeadView(
        name=clean(book.agent.name, 120),
        level=place.level,
        tag=book.words(f"level.{place.level}.tag"),
        place=_place(book, place),
        why=clean(book.words.text(place.why), 300),
        facts=_facts(book),
        judged=judged_sentence(book, row),
        total=_total(book, place, row),
        strategy=clean(book.agent.strategy, _ROOM),
        reference=book.agent.reference,
    )


def _total(book: ModelBook, place: Place, row: SeasonRow | None) -> str:
    """The total; of an agent that shares its tier the range of its judges and that of the tier."""
    if row is None or row.total is None:
        return ""
    name, lookup = "season.total", book.lookup
    own, tier = lookup.judged(place.agent, name), lookup.tier_range(place.agent, name)
    said = book.say("head.total", total=row.total)
    if not place.shown and own is not None and tier is not None:
        ends = dict(zip(("low", "high", "tier_low", "tier_high"), map(book.words.points, (*own, *tier)), strict=True))
        said = book.say("head.range", n=sum(one.composite is not None for one in book.grades), **ends)
    return book.to(book.one(name), said)


def _place(book: ModelBook, place: Place) -> str:
    """The ranks that it can have."""
    if place.first is None or place.last is None:
        return book.say("head.no_place")
    of = sum(one.first is not None for one in book.run.decided.places)
    if place.first == place.last:
        return book.say("head.place", place=place.first, of=of)
    return book.say("head.places", first=place.first, last=place.last, of=of)


def _facts(book: ModelBook) -> str:
    steps = book.steps
    counts = (
        ("decisions", len(steps)),
        ("orders", sum(order_count(step) for step in steps)),
        ("refused", sum(len(step.refusals) for step in steps)),
    )
    said_counts = {name: said(f"model.count.{name}", n=n) for name, n in counts}
    names = {"family": clean(book.agent.family, 80), "model": clean(book.agent.model, 120)}
    return book.say("head.facts", **names, **said_counts)


def order_count(step: SeasonStep) -> int:
    """Orders of a decision; to hold, or to trade nothing, is none.

    >>> order_count(SeasonStep(number=1, day="", record_id="", orders=("buy NVX, quantity 1", "hold ORL")))
    1
    """
    return sum(not order.startswith(_NO_ORDER) for order in step.orders)


def judged_sentence(book: ModelBook, row: SeasonRow | None) -> str:
    """The points of each judge and the band that they make, contested or not."""
    agreement = None if row is None else row.agreement
    if agreement is None:
        return book.say("judged.silent" if row is not None and row.state == index_SILENT else "judged.none")
    points = sorted(one.composite for one in book.grades if one.composite is not None)
    written = tuple(map(book.words.points, points or (agreement.low, agreement.high)))
    kind = _kind(agreement)
    if kind == "single" and not book.run.decided.place(book.agent.name).shown:
        kind = "alone"
    sentence = book.say(f"judged.{kind}", points=written, **_bands(book, agreement))
    absent = tuple(clean(name, 60) for name in (() if row is None else row.absent))
    said = f"{sentence} {book.say('judged.absent', judges=absent)}" if absent else sentence
    first = next((one.judge for one in book.grades if one.composite is not None), "")
    return book.to(book.one("season.composite", judge=first), said)


def _kind(agreement: AgreementRow) -> str:
    return {"agreed": "agreed", "contested": "contested", "single judge": "single"}[agreement.standing.state]


def _bands(book: ModelBook, agreement: AgreementRow) -> dict[str, str]:
    standing = agreement.standing
    names = {"band": standing.band, "low": standing.lowest, "high": standing.highest}
    return {name: book.words.term("claim.band", band) for name, band in names.items()}


# The decisions of an agent, day by day: its reasons, its orders, what came of them, and the book after.
#
# What an agent wrote is hostile: every line passes `clean` and `escape`. Cards are put together here and not in a
# template, since a season has tens of thousands in each language.


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


PART_BYTES: Final = 380_000
"""Bytes of rows on a part of a ledger or of the decisions: little enough for a phone."""

LAST_CARDS, _MODEL_CARD_BYTES = 5, 24_000
_STYLES: Final = ("season-model.css",)


class Frame(Protocol):
    """What sets a page: a template with its values, in the frame of the site."""

    def __call__(self, template: str, path: str, title: str, *, styles: Sequence[str], **values: Any) -> str:
        """The page."""
        ...


def model_pages(lookup: SeasonLookup, words: Words, frame: Frame, up: str = "") -> Iterator[tuple[str, str]]:
    """The pages of every agent in one language, as path and text, one after the other."""
    said = ModelWords(words.catalogue)
    rows = LedgerWords(said, len(lookup.run.judges))
    for name, agent in lookup.agents.items():
        yield from _agent(ModelBook(lookup, said, agent, lookup.pages[name], up), rows, frame)


def _agent(book: ModelBook, rows: LedgerWords, frame: Frame) -> Iterator[tuple[str, str]]:
    cards = paged(decision_cards(book), PART_BYTES)
    places = {
        card.number: _leaf(further_path(book.path, "decisions", at))
        for at, part in enumerate(cards, 1)
        for card in part
    }
    lines = ledger_lines(book, rows, places)
    (first, *_) = paged(lines[:FIRST_ROWS], FIRST_BYTES)
    further = paged(lines[len(first) :], PART_BYTES) if len(first) < len(lines) else ()
    wrong = mismatch_rows(book, places)
    earned = earned_view(book)
    yield book.path, _main(book, frame, earned, first, (len(lines), len(further)), cards, wrong)
    if earned.data:
        yield data_path(book.path), earned.data
    yield from _ledger(book, frame, further, (len(first), len(lines)))
    yield from _decisions(book, frame, cards)
    if len(wrong) > FIRST_MISMATCHES:
        yield from _checks(book, frame, wrong)


# --- pages ------------------------------------------------------------------------------------------------------------


def _main(
    book: ModelBook,
    frame: Frame,
    earned: EarnedView,
    first: Sequence[LedgerLine],
    ledger: tuple[int, int],
    cards: Sequence[Sequence[DecisionCard]],
    wrong: tuple[MismatchRow, ...],
) -> str:
    lines, further = ledger
    latest = _latest([card for part in cards for card in part])
    head = head_view(book)
    return frame(
        "season-model.html",
        book.path,
        head.name,
        styles=(*_STYLES, "judges.css", "brush.css"),
        scripts=(*SCRIPTS, "brush.js"),
        t=book.say,
        head=head,
        levels=model_levels(book),
        earned=earned,
        graded=graded_view(book),
        checks=checks_view(book, wrong),
        checks_link=_leaf(further_path(book.path, "checks", 1)) if len(wrong) > FIRST_MISMATCHES else "",
        answer=ledger_answer(book),
        counts=ledger_counts(book),
        notes=ledger_notes(book),
        rows=[line.html for line in first],
        labels=ledger_labels(book.words),
        filters=ledger_filters(book.words, first),
        total=book.words.count(len(first)),
        pager=_pager(book, "ledger", further + 1, 0),
        rest=book.say("ledger.rest", first=len(first), n=lines) if further else "",
        decided=decisions_answer(book),
        latest=[card.html for card in latest],
        decisions_link=_leaf(further_path(book.path, "decisions", 1)) if len(book.steps) > len(latest) else "",
    )


def _ledger(
    book: ModelBook, frame: Frame, parts: Sequence[Sequence[LedgerLine]], done: tuple[int, int]
) -> Iterator[tuple[str, str]]:
    """The rows after those on the agent's page."""
    start, total = done
    for at, part in enumerate(parts, 2):
        path = further_path(book.path, "ledger", at)
        values = {"first": start + 1, "last": start + len(part), "n": total}
        yield (
            path,
            _part(
                book,
                frame,
                ("season-ledger.html", path, "ledger"),
                lede=book.say("ledger.span", **values),
                rows=[line.html for line in part],
                labels=ledger_labels(book.words),
                filters=ledger_filters(book.words, part),
                total=book.words.count(len(part)),
                pager=_pager(book, "ledger", len(parts) + 1, at - 1),
            ),
        )
        start += len(part)


def _decisions(book: ModelBook, frame: Frame, parts: Sequence[Sequence[DecisionCard]]) -> Iterator[tuple[str, str]]:
    for at, part in enumerate(parts, 1):
        path = further_path(book.path, "decisions", at)
        yield (
            path,
            _part(
                book,
                frame,
                ("season-decisions.html", path, "decisions"),
                lede=decisions_answer(book),
                rows=[card.html for card in part],
                filters=decision_filters(book.words, part),
                total=book.words.count(len(part)),
                pager=_pager(book, "decisions", len(parts), at - 1),
            ),
        )


def _checks(book: ModelBook, frame: Frame, wrong: Sequence[MismatchRow]) -> Iterator[tuple[str, str]]:
    parts = paged(wrong, PART_BYTES)
    for at, part in enumerate(parts, 1):
        path = further_path(book.path, "checks", at)
        yield (
            path,
            _part(
                book,
                frame,
                ("season-checks.html", path, "checks"),
                lede=book.say("reliability.listed", n=len(wrong)),
                rows=[line.html for line in part],
                pager=_pager(book, "checks", len(parts), at - 1),
            ),
        )


def _part(book: ModelBook, frame: Frame, page: tuple[str, str, str], **values: Any) -> str:
    """A page beside the agent's own, with a link back to it."""
    template, path, kind = page
    name = clean(book.agent.name, 120)
    title = book.say(f"further.{kind}", agent=name)
    return frame(template, path, title, styles=_STYLES, t=book.say, name=name, up=_leaf(book.path), **values)


# --- parts ------------------------------------------------------------------------------------------------------------


def _latest(cards: Sequence[DecisionCard]) -> Sequence[DecisionCard]:
    """The last decisions, as far as the agent's page has room for them."""
    size = 0
    for at, card in enumerate(reversed(cards[-LAST_CARDS:])):
        size += card.size
        if size > _MODEL_CARD_BYTES:
            return cards[len(cards) - at :]
    return cards[-LAST_CARDS:]


def ledger_labels(words: ModelWords) -> Mapping[str, str]:
    """The heads of the ledger by the name of the column; ``style`` hands them to the rows of a phone."""
    heads = {name: words.say(f"ledger.head.{name}") for name in ("day", "claim", "saw", "numbers", "judges")}
    plain = (re.sub(r'[\\"<>;]', "", head) for head in heads.values())
    style = ";".join(f'--l{at}:"{head}"' for at, head in enumerate(plain, 1) if at > 1)
    return {**heads, "title": words.say("ledger.section"), "style": style}


def _pager(book: ModelBook, kind: str, parts: int, at: int) -> str:
    """Links between the parts; the first part of a ledger is the agent's page."""
    names = [_leaf(further_path(book.path, kind, part)) for part in range(1, parts + 1)]
    if kind == "ledger":
        names[0] = f"{_leaf(book.path)}#ledger"
    return pager(names, at, part=book.words("frame.part"), parts=book.words("frame.parts"))


def _leaf(path: str) -> str:
    return path.rpartition("/")[2]
