"""The decisions of an agent, newest first, and the fact check of its sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np

from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.records import Measurement
from assaymark.report import blocks as b
from assaymark.report.charts.canvas import paths_text
from assaymark.report.charts.paths import Floats, NavLine, NavWords, Role, brush_of, falls, nav_figure
from assaymark.report.evidence import STATES
from assaymark.report.page import in_parts, paged_by
from assaymark.report.portbench.book import EQUAL_WEIGHT
from assaymark.report.season.index import (
    AgentIndex,
    SeasonClaimLine,
    SeasonIndex,
    SeasonPath,
    SeasonStep,
    SeasonTrade,
    Words,
)
from assaymark.report.season.leaderboard import baseline_name
from assaymark.report.text import excerpt
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


def decision_keys(step: SeasonStep) -> tuple[str, ...]:
    """What a decision is looked for by: traded, rejected, no answer, nothing of it, a mismatch."""
    came = {
        TRADED: any(fill.kind == "order" for fill in step.fills),
        REFUSED: bool(step.refusals) or REJECTED in step.flags, SILENT: unanswered(step),
    }  # fmt: skip
    came |= {QUIET: not any(came.values()), WRONG: bool(step.mismatches)}
    return tuple(key for key in FILTERS if came[key])


def unanswered(step: SeasonStep) -> bool:
    """Whether there was no usable answer on this day; the agent then holds."""
    return bool({*NOT_USABLE} & {*step.flags}) or bool(step.problem and REJECTED not in step.flags)


def order_count(step: SeasonStep) -> int:
    """Orders of a decision; to hold, or to trade nothing, is none."""
    return sum(not order.startswith(_NO_ORDER) for order in step.orders)


def _further(path: str, kind: str, rows: Sequence[T], size: Callable[[T], int]) -> dict[str, tuple[T, ...]]:
    """The pages of something long of an agent, in the folder of its name; none where there is nothing."""
    return in_parts(f"{path.removesuffix('.html')}/{kind}", paged_by(rows, size, PART_BYTES)) if rows else {}


def decision_parts(path: str, steps: Sequence[SeasonStep]) -> dict[str, tuple[SeasonStep, ...]]:
    """The pages of the decisions of an agent, newest first; they end at the same decision in every language."""
    return _further(path, "decisions", tuple(reversed(steps)), decision_bytes)


def decision_places(path: str, steps: Sequence[SeasonStep]) -> dict[int, str]:
    """Where each decision is shown, by its number."""
    parts = decision_parts(path, steps)
    return {step.number: f"{page}#d{step.number}" for page, shown in parts.items() for step in shown}


def decision_bytes(step: SeasonStep) -> int:
    """About how many bytes a decision takes: its texts, and markup for each thing that it lists."""
    refused = [refusal.text[:_REASON] for refusal in step.refusals]
    texts = [text[:_TEXT] for _, text in step.texts]
    short = [text[:_SHOWN] for _, text in step.texts]
    orders = [order[:_ORDER] for order in step.orders[:_ORDERS]]
    wrong = [text[:_REASON] for text in step.mismatches]
    listed = len(orders) + len(step.fills) + len(step.refusals) + len(step.flags) + len(wrong) + len(texts)
    return b.row_bytes(_CARD_BYTES + _ITEM_BYTES * listed, [*texts, *short, *orders, *refused, *wrong, step.problem])


def decision_filters(words: Words, steps: Sequence[SeasonStep]) -> tuple[b.Filter, ...]:
    """The buttons above some decisions: all, and each kind that occurs."""
    titles = {key: words.word("filter", key) for key in FILTERS}
    return words.filters((key for step in steps for key in decision_keys(step)), titles, len(steps))


def decisions_answer(book: AgentIndex) -> str:
    """How many decisions there are, and on how many days there was no answer."""
    steps = book.steps
    if not steps:
        return book.say("decisions.empty")
    traded = sum(TRADED in decision_keys(step) for step in steps)
    return book.say("decisions.answer", n=len(steps), traded=traded, silent=sum(map(unanswered, steps)))


# --- one decision -----------------------------------------------------------------------------------------------------


def decision_row(book: AgentIndex, step: SeasonStep, place: str) -> tuple[b.Inline, ...]:
    """A decision in a line: its day, trades, their cost, the beginning of its reasons, and all of it."""
    words, cost = book.words, sum(fill.cost for fill in step.fills if fill.kind == "order")
    all_of_it = _source(book, step) or b.Linked(words.say("decisions.whole"), place)
    return words.day(step.day), trades_words(words, step), words.amount(cost, 2), reason_words(words, step), all_of_it


def _source(book: AgentIndex, step: SeasonStep) -> str:
    """The link to the prompt and the reply of a decision; empty where records do not lie beside the pages."""
    place = book.lookup.record("decisions", book.agent.name, step.record_id)
    return b.Linked(book.say("decisions.source"), place) if place else ""


def reason_words(words: Words, step: SeasonStep) -> b.Inline:
    """The first sentence of the reasons of a decision; empty where it gave none."""
    first = clean(_END.split(next((text for _, text in step.texts if text.strip()), "").strip())[0], _FIRST)
    return b.written(words.quoted(first)) if first else ""


def trades_words(words: Words, step: SeasonStep) -> str:
    """What was sold and bought, and what was rejected; a word for why there is nothing."""
    fills = [fill for fill in step.fills if fill.kind == "order"]
    shown = []
    for key, sign in (("sold", -1), ("bought", 1)):
        named = [f"{units(words, abs(fill.quantity))} {clean(fill.symbol, 20)}" for fill in fills[:_TRADES]
                 if fill.quantity * sign > 0]  # fmt: skip
        shown += [words.say(f"count.{key}", what=", ".join(named))] if named else []
    shown += [words.say("accounts.held_more", n=len(fills) - _TRADES)] if len(fills) > _TRADES else []
    shown += [words.say("count.refused", n=len(step.refusals))] if step.refusals else []
    said = "; ".join(shown) or words.word("filter", decision_keys(step)[0])
    return said[0].upper() + said[1:]


def decision_group(book: AgentIndex, step: SeasonStep) -> b.Group:
    """All of a decision: reasons beside orders, fills, rejections, flags and what does not reconcile."""
    words, (first, *others) = book.words, decision_keys(step)
    below: list[b.Inline] = [] if step.nav is None else [words.say("decisions.nav", nav=words.amount(step.nav))]
    timed = words.say("decisions.untimed")
    below.append(timed if step.seconds is None else words.say("decisions.seconds", seconds=step.seconds))
    below += [source] if (source := _source(book, step)) else []
    # Orders, fills, what was rejected with the reason that the agent was shown, flags, and mismatches.
    orders: list[b.Inline] = [
        b.written(clean(order, _ORDER)) for order in step.orders[:_ORDERS] if order != _NO_ORDER[1]
    ]
    if len(step.orders) > _ORDERS:
        orders.append(words.say("decisions.more", n=len(step.orders) - _ORDERS))
    refused: list[b.Inline] = []
    for refusal in step.refusals:
        said: tuple[b.Inline, ...] = b.bold(clean(refusal.symbol, 40)), f": {words.word('refusal', refusal.reason)}"
        if refusal.text and refusal.text != refusal.reason:
            shown = f"{words.say('decisions.shown')} {words.quoted(clean(refusal.text, _REASON))}"
            said = *said, " ", b.small(shown)
        refused.append(said)
    kinds: dict[str, Sequence[b.Inline]] = {
        "fills": [_fill(words, fill) for fill in step.fills], "refused": refused,
        "flags": [words.word("flag", flag) for flag in step.flags],
        "mismatches": [mismatch_words(words, text) for text in step.mismatches],
    }  # fmt: skip
    done = [(words.say(f"decisions.{'orders' if order_count(step) else 'no_orders'}"), b.spaced(orders))]
    done += [(words.say(f"decisions.{kind}"), b.spaced(items)) for kind, items in kinds.items() if items]
    heading = words.say("decisions.day", n=step.number), " ", b.small(words.day(step.day))
    blocks = (b.Text(b.spaced(below, " · "), "sub"), b.Beside((tuple(_texts(words, step)), (b.Facts(tuple(done)),))))
    return b.Group(heading, blocks, f"d{step.number}", key=first, also=" ".join(others), style="dec", level=2)


def _texts(words: Words, step: SeasonStep) -> Iterator[b.Block]:
    """What the agent wrote, with its lines; and, where it gave no usable answer, that it did not."""
    if unanswered(step) or step.problem:
        what = words.say("decisions.unanswered" if unanswered(step) else "decisions.unread")
        yield b.Text((b.bold(what), " ", b.written(clean(step.problem, _REASON))), "state")
    if not step.texts and not unanswered(step):
        yield b.Text(words.say("decisions.no_reason"), "sub")
    last = None if len(step.texts) > 1 else step.texts[0][0] if step.texts else None
    for kind, text in step.texts:
        if kind != last:
            yield b.Text(words.word("text", kind), "hd")
        last = kind
        lines, left = [clean(splitline) for splitline in text[:_TEXT].splitlines()], len(text) - _TEXT
        kept = "\n".join(line for line in lines[:_LINES] if line)
        body: tuple[b.Text, ...] = (b.Text(b.written(kept), "said"),)
        body += (b.Text(words.say("decisions.cut", n=left), "sub"),) if left > 0 else ()
        folded = len(kept) > _SHOWN or left > 0
        yield b.Group(b.written(clean(kept, _SHOWN // 2)), body, folded="closed") if folded else body[0]


def _fill(words: Words, one: SeasonTrade) -> str:
    side = "paid_out" if one.kind != "order" else "bought" if one.quantity > 0 else "sold"
    values = {"units": units(words, abs(one.quantity)), "symbol": clean(one.symbol, 40)}
    if one.kind == "dividend":
        return words.say("decisions.dividend", symbol=values["symbol"], cash=words.amount(-one.cost, 2))
    if one.kind == "split":
        return words.say(f"decisions.{'split' if one.quantity > 0 else 'reverse_split'}", **values)
    said = words.say(f"decisions.{side}", **values)
    if one.price is None:
        return f"{said}, {words.say('decisions.no_price')}"
    cost = f", {words.say('decisions.cost', cost=words.amount(one.cost, 2))}" if one.cost else ""
    return f"{said} {words.say('decisions.at', price=words.amount(one.price, 2))}{cost}"


def units(words: Words, quantity: float) -> str:
    """Units with as many decimals as they have, six digits at most where there are decimals.

    >>> from assaymark.claims.messages import catalogue
    >>> [units(Words(catalogue("en")), number) for number in (10.0, 0.25, 1039.8771, 1234567.8)]
    ['10', '0.25', '1,039.88', '1,234,568']
    """
    whole, point = len(str(int(abs(quantity)))), words.catalogue.decimal
    amount = words.amount(quantity, max(6 - whole, 0))
    return amount.rstrip("0").rstrip(point) if point in amount and whole < 6 else amount


# --- what does not reconcile, in words: the sentences of `portfolio.Mismatch`, read back and said again ---------------


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
    return _further(path, "checks", found, lambda one: b.row_bytes(220, (one[0].day, one[1][:_REASON])))


def mismatch_table(book: AgentIndex, found: Iterable[tuple[SeasonStep, str]], places: Mapping[int, str]) -> b.Table:
    """Statements that do not follow from the others, each with the day and the link to its decision."""
    heads, words = tuple(book.say(f"reliability.{name}") for name in ("day", "date", "text")), book.words
    rows = tuple(
        (b.Linked(words.amount(step.number), places[step.number]), clean(step.day, 24),
         b.written(mismatch_words(words, text)))
        for step, text in found
    )  # fmt: skip
    return b.Table(heads, rows, summary="", stacked=True)


def mismatch_words(words: Words, text: str) -> str:
    """A mismatch in the language of the page; a sentence of another form stays as it was recorded, made safe."""
    shown = clean(text, _REASON)
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


# --- the fact check ---------------------------------------------------------------------------------------------------


NO_NUMBER: Final = "none"
DIFFER: Final = "differ"
_QUOTE, _SAW, _REACH, _ROW_BYTES, _RULES = 280, 160, 140, 700, 4
_OWN: Final = "own:"
_OVER: Final = re.compile(r"(?P<what>return|volatility|drawdown)-(?P<count>\d{1,4})(?P<unit>[dwmy])")


def ledger_parts(path: str, lines: Sequence[SeasonClaimLine]) -> dict[str, tuple[SeasonClaimLine, ...]]:
    """The pages of the fact check, newest first; they end at the same row in every language."""

    def size(one: SeasonClaimLine) -> int:
        return b.row_bytes(_ROW_BYTES, (clean(one.quote, _QUOTE), clean(one.saw, _SAW), *one.judges))

    return _further(path, "ledger", tuple(reversed(lines)), size)


def ledger_table(
    book: AgentIndex, lines: Sequence[SeasonClaimLine], places: Mapping[int, str], name: str = ""
) -> b.Table:
    """Rows under their heads, with filters where it has a ``name``; ``places`` are those of decisions."""
    heads = tuple(book.say(f"ledger.head.{name}") for name in ("day", "claim", "saw", "numbers", "judges"))
    rows = tuple(ledger_row(book, line, places) for line in lines)
    found = ledger_filters(book.words, lines) if name else ()
    what = book.say("ledger.what")
    return b.Table(heads, rows, summary="", stacked=True, id=name, style="checked", filters=found, what=what)


def ledger_row(book: AgentIndex, one: SeasonClaimLine, places: Mapping[int, str]) -> b.Row:
    """One number in its sentence; where the layers differ its row is of the style ``diff``."""
    words, key, saw = book.words, one.numbers or NO_NUMBER, clean(one.saw, _SAW)

    def state(name: str) -> tuple[b.Inline, ...]:
        word = b.bold(words.word("claim_state", name))
        return (b.Mark(name), word) if name in STATES else (word,)

    rules = ", ".join(rule_word(words, rule) for rule in one.rule.split(", ")[:_RULES]) if one.rule else ""
    said: b.Inline = b.written(words.quoted(clean(one.quote, _QUOTE)))
    if one.which:
        before, which, after = excerpt(one.quote, one.start, one.which, _REACH)
        opened, closed = words.quoted("\n").split("\n")
        said = (b.written(opened + before), b.bold(which), b.written(after + closed))
    seen = "; ".join(
        words.say("ledger.own", name=words.word("own", part.removeprefix(_OWN))) if part.startswith(_OWN) else part
        for part in saw.split("; ")
    )
    # One state where all of the panel say so; otherwise each state with who says it.
    judged, states = list[b.Inline](), dict.fromkeys(one.judges.values())
    for name in states:
        judged.append(state(name))
        if len(states) > 1 or len(one.judges) < len(book.run.plan.panel):
            judged.append(b.small(", ".join(clean(judge, 40) for judge, says in one.judges.items() if says == name)))
    cells: tuple[b.Inline, ...] = (
        b.Linked(words.day(one.day), places.get(one.number, "")), said,
        b.written(seen) if saw else b.small(words.say("ledger.no_field")),
        (*state(key), b.small(rules)) if rules else state(key),
        tuple(judged) or b.small(words.say("ledger.not_looked_at")),
    )  # fmt: skip
    differ = one.disagree
    return b.Row(cells, key=key, also=DIFFER if differ else "", style="diff" if differ else "")


def rule_word(words: Words, name: str) -> str:
    """How a number was matched, in words; what was worked out from bars says over which time.

    >>> from assaymark.claims.messages import english
    >>> words = Words(english())
    >>> rule_word(words, "return-15d"), rule_word(words, "row-labelled"), rule_word(words, "unheard of")
    ('return over 15 days', 'same row, field named', 'unheard of')
    """
    found = _OVER.fullmatch(name)
    if found is None:
        return words.word("claim_rule", name)
    span = words.say(f"span.{found['unit']}", n=int(found["count"]))
    return words.say(f"claim_over.{found['what']}", span=span)


def ledger_filters(words: Words, lines: Sequence[SeasonClaimLine]) -> tuple[b.Filter, ...]:
    """The buttons above some rows: all, each state that occurs, and where the layers differ."""
    named = {key: words.word("claim_state", key) for key in (*STATES, NO_NUMBER)}
    titles = {key: word[:1].upper() + word[1:] for key, word in named.items()}
    keys = [line.numbers or NO_NUMBER for line in lines] + [DIFFER for line in lines if line.disagree]
    return words.filters(keys, titles | {DIFFER: words.say("filter.differ")}, len(lines))


def ledger_counts(book: AgentIndex) -> b.Table | None:
    """How often each state occurs in each layer, over the whole fact check; None without a claim."""
    if not book.lines:
        return None
    judges = [judge.name for judge in book.run.plan.panel if any(judge.name in line.judges for line in book.lines)]
    layers = [Counter[str](line.numbers or NO_NUMBER for line in book.lines)]
    layers += (Counter(line.judges.get(name, "") for line in book.lines) for name in judges)
    others = sorted({state for seen in layers[1:] for state in seen if state} - {*STATES})
    rows = tuple(
        (book.words.word("claim_state", state), *(book.words.amount(seen[state]) for seen in layers))
        for state in (*STATES, *others, NO_NUMBER)
        if any(seen[state] for seen in layers)
    )
    heads = (book.say("ledger.head.state"), book.say("ledger.head.numbers"), *(clean(name, 40) for name in judges))
    return b.Table(heads, rows, frozenset(range(1, len(heads))), book.say("ledger.counts"))


def ledger_answer(book: AgentIndex) -> str:
    """How many of the sentences arithmetic bears out, contradicts or cannot decide."""
    if not book.lines:
        return book.say("ledger.empty")
    seen, words = Counter[str](line.numbers or NO_NUMBER for line in book.lines), book.words
    counts = tuple(
        f"{words.amount(seen[key])} {words.word('claim_state', key)}" for key in (*STATES, NO_NUMBER) if seen[key]
    )
    return book.say("ledger.counted", n=len(book.lines), counts=counts)


def ledger_notes(book: AgentIndex) -> tuple[b.Inline, ...]:
    """What share the material bears out and what chance would, where the layers differ, and what holds no number."""
    if not book.lines:
        return ()
    item, words, found = book.one("season.ledger"), book.words, list[b.Inline]()
    if item is not None and item.value is None:
        found.append(book.say("ledger.no_share", why=words.term("state", item.state)))
    elif item is not None and item.value is not None:
        said = book.say("ledger.share", share=words.percent(item.value), n=item.n)
        chance, corrected = item.detail.get("chance"), item.detail.get("corrected")
        if isinstance(chance, (int, float)) and isinstance(corrected, (int, float)):
            values = {"chance": words.percent(float(chance)), "corrected": words.number(float(corrected), 2)}
            said = f"{said} {book.say('ledger.chance', **values)}"
        found.append(book.lookup.note(item, said))
    silent, steps = (None if item is None else item.detail.get(name) for name in ("silent", "steps"))
    if isinstance(silent, int) and isinstance(steps, int):
        found.append(book.say("ledger.silent", silent=silent, n=steps))
    found.append(book.say("ledger.differ", differ=sum(line.disagree for line in book.lines), n=len(book.lines)))
    found += [book.say("ledger.partial")] if book.run.partial else []
    return (*found, book.say("ledger.derivable"))


# --- accounts: paths against baselines; returns are facts and are shown whatever may be claimed -----------------------


DATA: Final = "accounts.csv"
"""The values behind the figure, beside the first page of each language."""

_DRAWN, _HELD, _LATEST = 8, 3, 5


def on_days(path: SeasonPath, days: Sequence[str]) -> Floats:
    """A path on the days of another, from its start on. On a day that it lacks it stays where it was."""
    known: Mapping[str, float] = dict(zip(path.days, path.nav, strict=True))
    found = [path.start]
    for day in days:
        found.append(known.get(day, found[-1]))
    return np.array(found)


def account_paths(book: SeasonIndex, only: str = "") -> tuple[SeasonPath, ...]:
    """The paths of all agents or of one, by name, then equal weight and the other baselines by name."""
    names = [only] if only else book.agents
    agents = [path for name in names if (path := book.path(name)) is not None and path.nav]
    others = sorted(
        (path for path in book.run.paths if path.baseline and path.nav),
        key=lambda path: (path.name not in EQUAL_WEIGHT, path.name),
    )
    return (*agents[:_DRAWN], *others) if agents else ()


def account_figure(book: SeasonIndex, only: str = "") -> tuple[b.Figure, str] | None:
    """All accounts or one against the baselines, on the days of the longest, and the text of the file with its values.

    None where no account is recorded.
    """
    paths, words = account_paths(book, only), book.words
    if not paths:
        return None
    days = max((one.days for one in paths if not one.baseline), key=len)
    first = next((one for one in paths if one.baseline), None)
    lines, rows = list[NavLine](), list[tuple[b.Inline, ...]]()
    for path in paths:
        nav, of = on_days(path, days), {"baseline" if path.baseline else "agent": path.name}
        fall, gain = falls(nav), float(nav[-1] / nav[0] - 1)
        at, deepest = int(fall.argmin()), float(fall.min())
        role: Role = "first" if path is first and path.name in EQUAL_WEIGHT else "other"
        name = baseline_name(_called(path), words)
        if not path.baseline:
            role, name = "own" if only else "agent", clean(path.name, 60)
        fallen = words.say("accounts.fallen", agent=name, fall=words.percent(deepest))
        lines.append(NavLine(name, nav, words.percent(gain, sign=True), role, fallen))
        rows.append((
            name, words.amount(float(nav[-1]), 2),
            book.to(book.one("season.return", **of), words.percent(gain, 2, sign=True)),
            book.to(book.one("season.drawdown", **of), words.percent(deepest, 2)),
            words.day(path.days[min(at, len(path.days)) - 1]) if at else words.say("earned.never"),
        ))  # fmt: skip
    own, start = lines[0], words.say("earned.start")
    fallen = words.percent(float(falls(own.nav).min()))
    beside = NavWords(
        start, fall=words.say("earned.fall"), deepest=words.say("earned.deepest", fall=fallen),
        ticks=words.amount, days=tuple(words.day(day, short=True) for day in days),
    )  # fmt: skip
    title, ends = words.say("accounts.title"), "; ".join(f"{line.name} {line.end}" for line in lines)
    desc = words.say("earned.desc", agent=own.name, ends=ends, fall=fallen) if only else ends
    wide, narrow = nav_figure("nav" if only else "accounts", lines, beside, title, desc, log=True)
    navs = [(line.name, line.nav) for line in lines]
    caption = words.say(
        "earned.caption_elsewhere" if book.run.source else "earned.caption",
        first=words.day(days[0]), last=words.day(days[-1]), start=words.amount(paths[0].start),
        currency=clean(book.run.plan.currency, 12),
    )  # fmt: skip
    heads = tuple(words.say(f"earned.head.{name}") for name in ("path", "value", "gain", "fall", "day"))
    table = b.Table(heads, tuple(rows), frozenset({1, 2, 3}), words.say("accounts.table"))
    figure = b.Figure(title, caption, wide, narrow, brush=brush_of((start, *map(words.day, days)), navs), table=table,
                    scales=(words.say("accounts.linear"), words.say("accounts.log")))  # fmt: skip
    return figure, paths_text(words.say("earned.head.day"), (start, *days), navs)


def _called(path: SeasonPath) -> str:
    return "equal weight" if path.name in EQUAL_WEIGHT else path.name


def accounts_section(book: SeasonIndex) -> tuple[b.Section | None, str]:
    """The figure of all accounts, and the text of the file with its values; None where no account is recorded."""
    made, words, left = account_figure(book), book.words, len(book.agents) - _DRAWN
    if made is None:
        return None, ""
    figure = replace(made[0], title="", data=DATA, note=words.say("accounts.more", n=left) if left > 0 else "")
    return b.Section("accounts", words.say("accounts.section"), words.say("accounts.lede"), (figure,)), made[1]


def earned_section(book: AgentIndex) -> tuple[b.Section, str]:
    """What an agent earned: one path against the baselines, its drawdown, and its difference to equal weight."""
    heading, made = book.say("earned.section"), account_figure(book.lookup, book.agent.name)
    if made is None:
        return b.Section("earned", heading, book.say("earned.no_path")), ""
    own, *others = account_paths(book.lookup, book.agent.name)
    navs = [on_days(path, own.days) for path in (own, *others)]
    gains = [book.words.percent(float(nav[-1] / nav[0] - 1), sign=True) for nav in navs]
    lead = book.say("earned.answer_alone", own=gains[0], n=len(own.days))
    if others:
        first = book.words.word("baseline", _called(others[0]))
        lead = book.say("earned.answer", own=gains[0], baseline=first, other=gains[1], n=len(own.days))
    more: b.Inline = ""
    if others and others[0].name in EQUAL_WEIGHT:
        excess = book.one("season.excess", baseline=others[0].name)
        more = book.lookup.note(excess, _difference(book.words, others[0], navs[0], navs[1], excess))
    figure = replace(made[0], title="", data=data_path(book.path))
    return b.Section("earned", heading, lead, (*b.notes((more,), "cap"), figure)), made[1]


def data_path(path: str) -> str:
    """Where the values behind the figure of an agent's page lie."""
    return path.removesuffix(".html") + ".csv"


def _difference(words: Words, baseline: SeasonPath, own: Floats, other: Floats, item: Measurement | None) -> str:
    """The difference over all days, and the mean daily one with its bootstrap interval, in percentage points."""
    points = words.number(100 * float(own[-1] / own[0] - other[-1] / other[0]), 1, sign=True)
    title = words.word("baseline", _called(baseline))
    said = words.say("earned.whole", baseline=title, n=len(own) - 1, points=points)
    if item is None:
        return said
    if item.value is None:
        return f"{said} {words.say('earned.no_interval', why=words.term('state', item.state))}"
    daily = words.number(100 * item.value, 3, sign=True)
    if item.low is None or item.high is None:
        return f"{said} {words.say('earned.daily_alone', points=daily)}"
    ends = {"low": words.number(100 * item.low, 3, sign=True), "high": words.number(100 * item.high, 3, sign=True)}
    level = words.percent(item.level if item.level is not None else 0.95, 0)
    zero = "holds_zero" if item.low <= 0 <= item.high else "clear_of_zero"
    interval = words.say("earned.daily", points=daily, level=level, n=item.n, **ends)
    return f"{said} {interval} {words.say(f'earned.{zero}')}"


# --- what agents hold and what they decided last --


def last_book(steps: Sequence[SeasonStep]) -> SeasonStep | None:
    """The last decision after which a book is recorded."""
    return next((step for step in reversed(steps) if step.nav is not None), None)


def held(words: Words, step: SeasonStep, most: int = _HELD) -> str:
    """The largest positions of a book in units, and how many more there are."""
    found = sorted(((symbol, n) for symbol, n in step.positions.items() if n), key=lambda one: (-abs(one[1]), one[0]))
    shown = [f"{clean(symbol, 20)} {words.amount(n, 0 if float(n).is_integer() else 2)}" for symbol, n in found[:most]]
    shown += [words.say("accounts.held_more", n=len(found) - most)] if len(found) > most else []
    return ", ".join(shown) or words.say("accounts.nothing")


def cash_share(words: Words, step: SeasonStep) -> str:
    """The cash of a book as a share of its value."""
    return words.percent(step.cash / step.nav) if step.cash is not None and step.nav else words("state.not measured")


def holdings_blocks(book: SeasonIndex) -> tuple[b.Block, ...]:
    """What each agent holds after its last decision, by name; nothing where no book is recorded."""
    words, rows = book.words, list[tuple[b.Inline, ...]]()
    for name in book.agents:
        last = last_book(book.run.steps.get(name, ()))
        if last is not None and last.nav is not None:
            agent = b.Linked(clean(name, 60), book.pages[name])
            rows.append((agent, words.amount(last.nav), cash_share(words, last), held(words, last)))
    heads = (words("board.agent"), *(words.say(f"accounts.{name}") for name in ("value", "cash", "held")))
    return (b.Table(heads, tuple(rows), frozenset((1, 2)), "", stacked=True, style="held"),) if rows else ()


def latest_blocks(book: SeasonIndex) -> tuple[b.Block, ...]:
    """The last decisions of all agents, newest first, each with its reasons and a link to all of it."""
    words, rows = book.words, list[tuple[b.Inline, ...]]()
    found = [(step.day, name, step) for name in book.agents for step in book.run.steps.get(name, ())[-_LATEST:]]
    found.sort(key=lambda one: (one[0], -one[2].number), reverse=True)
    for day, agent, step in found[:_LATEST]:
        place = decision_places(book.pages[agent], book.run.steps[agent])[step.number]
        reason = reason_words(words, step)
        said: b.Inline = (trades_words(words, step), b.small(str(reason)) if reason else "")
        rows.append((b.Linked(words.day(day), place), b.Linked(clean(agent, 60), book.pages[agent]), said))
    heads = (words.say("accounts.day"), words("board.agent"), words.say("accounts.decided"))
    return (b.Table(heads, tuple(rows), summary="", stacked=True, style="latest who"),) if rows else ()


def go_deeper(words: Words) -> Iterator[b.Inline]:
    """The other pages of the season, with what they hold."""
    for key in ("claims", "panel", "measurements", "rules", "method", "changelog", "archive"):
        yield b.bold(words(f"nav.{key}")), ": ", b.Linked(words.say(f"accounts.deeper.{key}"), f"{key}.html")
