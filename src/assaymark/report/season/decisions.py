"""The decisions of an agent, newest first, the fact check of its texts, and its returns and holdings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from assaymark.agents.llm import REJECTED, is_unanswered
from assaymark.judging.season.record import StepRecord
from assaymark.records import Action
from assaymark.report import blocks as b
from assaymark.report.charts.canvas import WIDE, paths_text
from assaymark.report.charts.paths import NavLine, Role, brush_of, drawdowns, nav_figure
from assaymark.report.page import by_file
from assaymark.report.season.index import AgentIndex, Language, SeasonClaimLine, SeasonIndex, SeasonPath
from assaymark.report.season.leaderboard import baseline_row_name
from assaymark.report.text import EQUAL_WEIGHT, STATES, detail_of, excerpt, known
from assaymark.text import clean

T = TypeVar("T")

PART_BYTES: Final = 380_000
"""Maximum bytes of rows on a part of a long list: small enough for a phone."""

FILTERS: Final = ("traded", "rejected", "no-answer", "unfilled", "quiet", "mismatch")
"""Filters for decisions: with trades, with rejections, without an answer; of others, with orders and without any; with
mismatches."""

_TEXT, _LINES, _SHOWN = 6_000, 120, 420
_ORDERS, _ORDER, _REASON, _FIRST = 40, 160, 400, 110
_END: Final = re.compile(r"(?<=[.!?])\s")
_TRADES: Final = 4
_CARD_BYTES, _ITEM_BYTES = 900, 130
_NO_ORDER: Final = ("hold", "no_trade")
_NUMBERS: Final = ("quantity", "weight", "price", "leverage", "stop", "target", "confidence", "expected_return")


def decision_keys(step: StepRecord) -> tuple[str, ...]:
    """The keys of ``FILTERS`` that apply to a decision."""
    traded = any(fill.kind == "order" for fill in step.fills)
    came = (traded, bool(step.rejections) or REJECTED in step.decision.flags, is_unanswered(step.decision))
    ordered = order_count(step) > 0
    rest = (not any(came) and ordered, not any(came) and not ordered, step.mismatches)
    return tuple(key for key, present in zip(FILTERS, (*came, *rest), strict=True) if present)


def order_count(step: StepRecord) -> int:
    """The number of orders of a decision; holding, or trading nothing, is not an order."""
    return sum(action.kind not in _NO_ORDER for action in step.decision.actions)


def order_texts(step: StepRecord) -> list[str]:
    """Orders as the agent gave them: kind, instrument and numbers."""
    return [
        ", ".join([
            f"{action.kind} {action.instrument}".strip(),
            *(f"{name} {value:.10g}" for name in _NUMBERS if (value := getattr(action, name)) is not None),
        ])
        for action in step.decision.actions
    ]  # fmt: skip


def reply_problem(step: StepRecord) -> str:
    """The part of a reply that could not be used or parsed; empty if there is none."""
    return "; ".join(step.decision.missing) if is_unanswered(step.decision) or REJECTED in step.decision.flags else ""


def decision_bytes(step: StepRecord) -> int:
    """The approximate size of a decision in bytes: its texts, and markup for each listed item."""
    refused, reasons = [order.text[:_REASON] for order in step.rejections], step.decision.rationales
    texts = [rationale.text[:size] for size in (_TEXT, _SHOWN) for rationale in reasons]
    orders = [order[:_ORDER] for order in order_texts(step)[:_ORDERS]]
    wrong = [text[:_REASON] for text in step.mismatches]
    listed = sum(map(len, (orders, step.fills, step.rejections, step.decision.flags, wrong, reasons)))
    return b.row_bytes(_CARD_BYTES + _ITEM_BYTES * listed, [*texts, *orders, *refused, *wrong, reply_problem(step)])


def list_pages(index: SeasonIndex, path: str, kind: str, rows: Sequence[T]) -> dict[str, tuple[T, ...]]:
    """The pages of an agent's decisions, claims or mismatches, which end at the same row in every language."""

    def size(record: Any) -> int:
        if kind == "decisions":
            return decision_bytes(record)
        if kind == "ledger":
            return b.row_bytes(_ROW_BYTES, (clean(record.quote, _QUOTE), clean(record.saw, _SAW), *record.judges))
        return b.row_bytes(220, (record[0].day, record[1][:_REASON]))

    listed = rows if kind == "checks" else rows[::-1]
    stem = f"{path.removesuffix('.html')}/{kind}"
    return index.once((kind, path), lambda: by_file(stem, listed, PART_BYTES, size)) if rows else {}


def decision_links(pages: Mapping[str, Sequence[StepRecord]]) -> dict[int, str]:
    """The address of each decision, by its number, from the pages of all decisions of an agent."""
    return {step.number: f"{page}#d{step.number}" for page, shown in pages.items() for step in shown}


def decisions_answer(index: AgentIndex) -> str:
    """The number of decisions, of those with trades, and of those without an answer."""
    steps = index.steps
    if not steps:
        return index.say("decisions.empty")
    keys = index.season.once(("keys", index.path), lambda: Counter(key for one in steps for key in decision_keys(one)))
    return index.say("decisions.answer", len(steps), traded=keys["traded"], silent=keys["no-answer"])


def prompt_link(index: AgentIndex, step: StepRecord) -> str:
    """The link to the prompt and the reply of a decision; empty if records have no pages."""
    place = index.season.record("decisions", index.agent.name, step.decision.record_id)
    return b.Linked(index.say("decisions.source"), place) if place else ""


def first_reason(words: Language, step: StepRecord) -> b.Inline:
    """The first sentence of the rationale of a decision; empty if it has none."""
    texts = (rationale.text.strip() for rationale in step.decision.rationales)
    first = clean(_END.split(next(filter(None, texts), ""))[0], _FIRST)
    return b.verbatim(words.quoted(first)) if first else ""


def trades_words(index: SeasonIndex, step: StepRecord) -> str:
    """The instruments sold and bought, and the number of rejections; if none, the orders, or a word for the reason."""
    words, fills, shown = index.words, [fill for fill in step.fills if fill.kind == "order"], []
    for key, sign in (("sold", -1), ("bought", 1)):
        named = [f"{quantity(words, abs(fill.quantity))} {clean(fill.symbol, 20)}" for fill in fills[:_TRADES]
                 if fill.quantity * sign > 0]  # fmt: skip
        shown += [words.say(f"count.{key}", what=", ".join(named))] if named else []
    shown += [words.say("accounts.held_more", len(fills) - _TRADES)] if len(fills) > _TRADES else []
    shown += [words.say("count.refused", len(step.rejections))] if step.rejections else []
    key = decision_keys(step)[0]
    if key == "unfilled":
        orders = [action for action in step.decision.actions if action.kind not in _NO_ORDER]
        for kind in dict.fromkeys(action.kind for action in orders[:_TRADES]):
            named = [_ordered(words, action) for action in orders[:_TRADES] if action.kind == kind]
            shown.append(words.say(f"order.{kind}", what=", ".join(named)))
        shown += [words.say("accounts.held_more", len(orders) - _TRADES)] if len(orders) > _TRADES else []
        # Orders of the last day wait for the next day; they have a value after them once that day is settled.
        waits = step.nav is None and index.run.planned > 0
        at = "next_open" if index.run.plan.rules.fill == "next_open" else "at_close"
        fate = "unknown" if not waits else at if index.run.planned > index.run.days else "ended"
        shown.append(words.say(f"order.{fate}"))
    sentence = "; ".join(shown) or words.word("filter", key)
    return sentence[0].upper() + sentence[1:]


def _ordered(words: Language, action: Action) -> str:
    """The instrument of an order, with its quantity or weight if it has one."""
    symbol = clean(action.instrument, 20)
    if action.quantity is not None:
        return f"{quantity(words, abs(action.quantity))} {symbol}"
    return symbol if action.weight is None else f"{symbol} {words.percent(action.weight)}"


def decision_listing(index: AgentIndex, steps: Sequence[StepRecord]) -> b.CardList:
    """A list of decisions, with filters for each kind that occurs."""
    words = index.words
    titles = {key: words.word("filter", key) for key in FILTERS}
    cards = tuple(decision_group(index, step) for step in steps)
    filters = words.filters((key for card in cards for key in (card.key, *card.also.split())), titles, len(steps))
    return b.CardList(cards, filters, words.say("decisions.what"), "decision-cards")


def decision_group(index: AgentIndex, step: StepRecord) -> b.Group:
    """One decision in full: rationale, orders, fills, rejections, flags and mismatches."""
    words, (first, *others), stated = index.words, decision_keys(step), order_texts(step)
    when = "nav_stated" if index.season.run.source else "nav"
    below: list[b.Inline] = [] if step.nav is None else [words.say(f"decisions.{when}", nav=words.amount(step.nav))]
    timed = words.say("decisions.untimed")
    below.append(timed if step.seconds is None else words.say("decisions.seconds", seconds=step.seconds))
    below += [link] if (link := prompt_link(index, step)) else []
    orders = [b.verbatim(clean(order, _ORDER)) for order in stated[:_ORDERS] if order != _NO_ORDER[1]]
    more = len(stated) - _ORDERS
    refused: list[b.Inline] = []
    for refusal in step.rejections:
        line: tuple[b.Inline, ...] = b.bold(clean(refusal.symbol, 40)), f": {words.word('refusal', refusal.reason)}"
        if refusal.text and refusal.text != refusal.reason:
            shown = f"{words.say('decisions.shown')} {words.quoted(clean(refusal.text, _REASON))}"
            line = *line, " ", b.small(shown)
        refused.append(line)
    fills: list[b.Inline] = []
    for fill in step.fills:
        bought = fill.quantity > 0
        kind = {"dividend": "dividend", "split": "split" if bought else "reverse_split"}.get(
            fill.kind, "paid_out" if fill.kind != "order" else "bought" if bought else "sold"
        )
        trade = words.say(f"decisions.{kind}", units=quantity(words, abs(fill.quantity)), symbol=clean(fill.symbol, 40),
                         cash=words.amount(-fill.cost, 2))  # fmt: skip
        if kind not in ("dividend", "split", "reverse_split"):
            cost = f", {words.say('decisions.cost', cost=words.amount(fill.cost, 2))}" if fill.cost else ""
            trade += f", {words.say('decisions.no_price')}" if fill.price is None else (
                f" {words.say('decisions.at', price=words.amount(fill.price, 2))}{cost}"
            )  # fmt: skip
        fills.append(trade)
    kinds: dict[str, Sequence[b.Inline]] = {
        "orders" if order_count(step) else "no_orders":
            [*orders, *([words.say("decisions.more", more)] if more > 0 else [])],
        "fills": fills, "refused": refused,
        "flags": [words.word("flag", flag) for flag in step.decision.flags],
        "mismatches": [mismatch_words(words, text) for text in step.mismatches],
    }  # fmt: skip
    done = [(words.say(f"decisions.{kind}"), b.chained(items)) for kind, items in kinds.items()
            if items or kind.endswith("orders")]  # fmt: skip
    # The agent's texts with their line breaks; for an unusable answer a statement of that.
    texts: list[b.Block] = []
    reasons, problem = step.decision.rationales, reply_problem(step)
    if (silent := is_unanswered(step.decision)) or problem:
        notice = words.say("decisions.unanswered" if silent else "decisions.unread")
        texts.append(b.Prose((b.bold(notice), " ", b.verbatim(clean(problem, _REASON))), "state"))
    if not reasons and not silent:
        texts.append(b.Prose(words.say("decisions.no_reason"), "sub"))
    last = reasons[0].kind if len(reasons) == 1 else None
    for kind, text in ((rationale.kind, rationale.text) for rationale in reasons):
        if kind != last:
            texts.append(b.Prose(words.word("text", kind), "hd"))
        last, rest = kind, len(text) - _TEXT
        lines = map(clean, text[:_TEXT].splitlines()[:_LINES])
        passage = "\n".join(filter(None, lines))
        body: tuple[b.Prose, ...] = (b.Prose(b.verbatim(passage), "said"),)
        body += (b.Prose(words.say("decisions.cut", rest), "sub"),) if rest > 0 else ()
        folded = len(passage) > _SHOWN or rest > 0
        texts.append(b.Group(b.verbatim(clean(passage, _SHOWN // 2)), body, folded="closed") if folded else body[0])
    heading = words.say("decisions.day", step.number), " ", b.small(words.day(step.day))
    blocks = (b.Prose(b.chained(below, " · "), "sub"), b.Columns((tuple(texts), (b.Terms(tuple(done)),))))
    return b.Group(heading, blocks, f"d{step.number}", key=first, also=" ".join(others), style="dec", level=2)


def quantity(words: Language, quantity: float) -> str:
    """A quantity with its own decimals, at most six digits in all if there are decimals.

    >>> from assaymark.claims.messages import catalogue
    >>> [quantity(Language(catalogue("en")), number) for number in (10.0, 0.25, 1039.8771, 1234567.8)]
    ['10', '0.25', '1,039.88', '1,234,568']
    """
    whole, point = len(str(int(abs(quantity)))), words.catalogue.decimal
    amount = words.amount(quantity, max(6 - whole, 0))
    return amount.rstrip("0").rstrip(point) if point in amount and whole < 6 else amount


_SENTENCE: Final = re.compile(
    r"(?P<kind>fill-quantity|fill-price|cash|position|negative-position|nav)(?: of (?P<symbol>.+?))?: "
    r"stated (?P<stated>[-+.\de]+), recomputed (?P<recomputed>[-+.\de]+)"
    r"(?:, (?P<where>at the close|inside the bar|outside the bar|no bar))?"
)
_MOVE: Final = re.compile(
    r"price of (?P<symbol>.+?) on (?P<day>[-\d]+): (?P<close>[-+.\de]+) after (?P<before>[-+.\de]+) on "
    r"(?P<earlier>[-\d]+), (?:explained by no action|not explained by (?P<actions>.+))"
)
"""The sentence written by `assaymark.workflow.tracks.season_accounts.unexplained`."""


def mismatch_words(words: Language, text: str) -> str:
    """A mismatch in the language of the page; a sentence in another form is shown as recorded, but cleaned."""
    shown = clean(text, _REASON)
    if moved := _MOVE.fullmatch(shown):
        verb = "acted" if moved["actions"] else "moved"
        return words.say(f"mismatch.price.{verb}", **{key: value or "" for key, value in moved.groupdict().items()})
    match = _SENTENCE.fullmatch(shown)
    if match is None:
        return shown
    try:
        stated, recomputed = (words.catalogue.number(float(match[name]), ".10g") for name in ("stated", "recomputed"))
    except ValueError:
        return shown
    subject = words.word("mismatch", match["kind"])
    if match["symbol"]:
        subject = words.say("mismatch.of", what=subject, symbol=match["symbol"])
    place = words.say(f"mismatch.where.{match['where'].replace(' ', '_')}") if match["where"] else ""
    return words.say("mismatch.said", what=subject, stated=stated, recomputed=recomputed, where=place)


NO_NUMBER: Final = "none"
DIFFER: Final = "differ"
_QUOTE, _SAW, _REACH, _ROW_BYTES, _RULES = 280, 160, 140, 700, 4
_OWN: Final = "own:"
_OVER: Final = re.compile(r"(?P<what>return|volatility|drawdown)-(?P<count>\d{1,4})(?P<unit>[dwmy])")


def ledger_table(
    index: AgentIndex, lines: Sequence[SeasonClaimLine], places: Mapping[int, str], name: str = ""
) -> b.Table:
    """A row per number in its sentence, marked where layers differ; filters need a ``name``, links ``places``."""
    words, rows = index.words, list[b.PageRow]()
    opened, closed = words.quoted("\n").split("\n")
    seen = {line.numbers or NO_NUMBER for line in lines}.union(*(line.judges.values() for line in lines))
    bold = {key: b.bold(words.word("claim_state", key)) for key in seen}
    state = {key: (b.Mark(key), word) if key in STATES else (word,) for key, word in bold.items()}
    for line in lines:
        # The rule that matched the number; one computed from bars states its period.
        rules = []
        for rule in line.rule.split(", ")[:_RULES] if line.rule else ():
            over = _OVER.fullmatch(rule)
            span = words.say(f"span.{over['unit']}", int(over["count"])) if over else ""
            rules.append(words.say(f"claim_over.{over['what']}", span=span) if over else words.word("claim_rule", rule))
        if line.which:
            before, which, after = excerpt(line.quote, line.start, line.which, _REACH)
            quote: b.Inline = (b.verbatim(opened + before), b.bold(which), b.verbatim(after + closed))
        else:
            quote = b.verbatim(words.quoted(clean(line.quote, _QUOTE)))
        saw, key, differ = clean(line.saw, _SAW), line.numbers or NO_NUMBER, line.disagree
        fields = "; ".join(
            words.say("ledger.own", name=words.word("own", part.removeprefix(_OWN))) if part.startswith(_OWN) else part
            for part in saw.split("; ")
        )
        # One state if the whole panel gives it; otherwise each state with its judges.
        judged, states = list[b.Inline](), dict.fromkeys(line.judges.values())
        for judged_as in states:
            judged.append(state[judged_as])
            if len(states) > 1 or len(line.judges) < len(index.run.plan.panel):
                judged.append(b.small(", ".join(clean(judge, 40) for judge, judge_state in line.judges.items()
                                                if judge_state == judged_as)))  # fmt: skip
        cells: tuple[b.Inline, ...] = (
            b.Linked(words.day(line.day), places.get(line.number, "")), quote,
            b.verbatim(fields) if saw else b.small(words.say("ledger.no_field")),
            (*state[key], b.small(", ".join(rules))) if rules else state[key],
            tuple(judged) or b.small(words.say("ledger.not_looked_at")),
        )  # fmt: skip
        rows.append(b.PageRow(cells, key=key, also=DIFFER if differ else "", style="diff" if differ else ""))
    # The filters: all, each state that occurs, and disagreements between the layers.
    named = {key: words.word("claim_state", key) for key in (*STATES, NO_NUMBER)}
    titles = {key: word[:1].upper() + word[1:] for key, word in named.items()} | {DIFFER: words.say("filter.differ")}
    keys = [key for row in rows for key in (row.key, row.also)]
    header = tuple(index.say(f"ledger.head.{head}") for head in ("day", "claim", "saw", "numbers", "judges"))
    filters = words.filters(keys, titles, len(rows)) if name else ()
    box = index.say("ledger.what")
    return b.Table(header, tuple(rows), summary="", stacked=True, id=name, style="checked", filters=filters, search=box)


def ledger_answer(index: AgentIndex) -> str:
    """The number of numbers and quotations that the fact check supports, contradicts or cannot decide."""
    if not index.lines:
        return index.say("ledger.empty")
    tally, words = Counter[str](line.numbers or NO_NUMBER for line in index.lines), index.words
    counts = tuple(
        f"{words.amount(tally[key])} {words.word('claim_state', key)}" for key in (*STATES, NO_NUMBER) if tally[key]
    )
    return index.say("ledger.counted", len(index.lines), counts=counts)


def ledger_head(index: AgentIndex) -> tuple[b.Block, ...]:
    """The supported share with that by chance, the number of disagreements, and each state by layer."""
    if not index.lines:
        return ()
    item, words, lines = index.get("season.ledger"), index.words, list[b.Inline]()
    if known(item):
        sentence = index.say("ledger.share", item.n, share=words.percent(item.value))
        chance, actual, corrected, of = (detail_of(item, name) for name in ("chance", "observed", "corrected", "rows"))
        if chance is not None and actual is not None and corrected is not None and of is not None:
            values = {"chance": words.percent(chance), "observed": words.percent(actual),
                      "corrected": words.number(corrected, 2), "rows": words.amount(of)}  # fmt: skip
            sentence = f"{sentence} {index.say('ledger.chance', **values)}"
        lines.append(index.season.link(item, sentence))
    elif item is not None:
        lines.append(index.say("ledger.no_share", why=words.term("state", item.state)))
    silent, steps = (None if item is None else item.detail.get(name) for name in ("silent", "steps"))
    if isinstance(silent, int) and isinstance(steps, int):
        lines.append(index.say("ledger.silent", steps, silent=silent))
    lines.append(index.say("ledger.differ", len(index.lines), differ=sum(line.disagree for line in index.lines)))
    lines += [index.say("ledger.partial")] if index.run.partial else []
    judges = [judge.name for judge in index.run.plan.panel if any(judge.name in line.judges for line in index.lines)]
    layers = [Counter[str](line.numbers or NO_NUMBER for line in index.lines)]
    layers += (Counter(line.judges.get(name, "") for line in index.lines) for name in judges)
    others = sorted({state for tally in layers[1:] for state in tally if state} - {*STATES})
    rows = tuple(
        (words.word("claim_state", state), *(words.amount(tally[state]) for tally in layers))
        for state in (*STATES, *others, NO_NUMBER)
        if any(tally[state] for tally in layers)
    )
    columns = (index.say("ledger.head.state"), index.say("ledger.head.numbers"), *(clean(name, 40) for name in judges))
    counts = b.Table(columns, rows, frozenset(range(1, len(columns))), index.say("ledger.counts"))
    return *b.notes((*lines, index.say("ledger.derivable"))), counts


# --- accounts: paths against baselines; returns are facts and are shown whatever may be claimed -----------------------


DATA: Final = "accounts.csv"
"""The file of the figure's values, in the folder of each language."""

DRAWN: Final = 8
_HELD, _LATEST = 3, 5


def account_paths(index: SeasonIndex, only: str = "") -> tuple[SeasonPath, ...]:
    """The paths of all agents or of one, by name, then equal weight and the other baselines by name."""
    names = [only] if only else index.agents
    agents = [path for name in names if (path := index.path(name)) is not None and path.nav]
    others = [path for path in index.run.paths if path.baseline and path.nav]
    others.sort(key=lambda path: (path.name not in EQUAL_WEIGHT, path.name))
    return (*agents[:DRAWN], *others) if agents else ()


def account_figure(
    index: SeasonIndex, only: str = "", heading: str | None = None, **shown: Any
) -> tuple[b.Figure, str] | None:
    """All accounts or one with the baselines, and the text of the file of values; None without any account."""
    paths, words = account_paths(index, only), index.words
    if not paths:
        return None
    days = max((path.days for path in paths if not path.baseline), key=len)
    first = next((path for path in paths if path.baseline), None)
    lines, rows, falling = list[NavLine](), list[tuple[b.Inline, ...]](), list[str]()
    for path in paths:
        nav, of = path.on(days), {"baseline" if path.baseline else "agent": path.name}
        fall, gain = drawdowns(nav), float(nav[-1] / nav[0] - 1)
        at, deepest = int(fall.argmin()), float(fall.min())
        role: Role = "first" if path is first and path.name in EQUAL_WEIGHT else "other"
        name = baseline_row_name(baseline_key(path), words)
        if not path.baseline:
            role, name = "own" if only else "agent", clean(path.name, 60)
        falling.append(words.percent(deepest))
        fallen = words.say("accounts.fallen", agent=name, fall=falling[-1])
        lines.append((name, nav, words.percent(gain, sign=True), role, fallen))
        rows.append((
            name, words.amount(float(nav[-1]), 2),
            index.link(index.get("season.return", **of), words.percent(gain, 2, sign=True)),
            index.link(index.get("season.drawdown", **of), words.percent(deepest, 2)),
            words.day(path.days[min(at, len(path.days)) - 1]) if at else words.say("earned.never"),
        ))  # fmt: skip
    start, title = words.say("earned.start"), words.say("accounts.title")
    beside = (start, words.say("earned.fall"), words.say("earned.deepest", fall=falling[0]), words.amount,
              tuple(words.day(day, short=True) for day in days))  # fmt: skip
    ends = "; ".join(f"{name} {end}" for name, _, end, *_ in lines)
    desc = words.say("earned.desc", agent=lines[0][0], ends=ends, fall=falling[0]) if only else ends
    draw = partial(nav_figure, lines, beside, log=True)
    navs = [(name, nav) for name, nav, *_ in lines]
    caption = words.say(
        "earned.caption_elsewhere" if index.run.source else "earned.caption",
        first=words.day(days[0]), last=words.day(days[-1]), start=words.amount(paths[0].start),
        currency=clean(index.run.plan.currency, 12),
    )  # fmt: skip
    columns = tuple(words.say(f"earned.head.{name}") for name in ("path", "value", "gain", "fall", "day"))
    table = b.Table(columns, tuple(rows), frozenset({1, 2, 3}), words.say("accounts.table"))
    scales = words.say("accounts.linear"), words.say("accounts.log")
    brush = brush_of((start, *map(words.day, days)), navs)
    figure = b.plot(
        "nav" if only else "accounts", title if heading is None else heading, caption, draw, desc, table,
        alt=title, width=WIDE, tablet=True, brush=brush, scales=scales, **shown,
    )  # fmt: skip
    return figure, paths_text(words.say("earned.head.day"), (start, *days), navs)


def baseline_key(path: SeasonPath) -> str:
    """The key of a baseline in the words of a language."""
    return "equal weight" if path.name in EQUAL_WEIGHT else path.name


def holdings(index: SeasonIndex, agent: str, most: int = _HELD) -> tuple[StepRecord, str, str] | None:
    """The last decision with a recorded portfolio, its cash share and its largest positions in words; or None."""
    words, closes = index.words, index.run.closes
    last = next((step for step in reversed(index.run.steps.get(agent, ())) if step.nav is not None), None)
    if last is None:
        return None
    positions = last.book.positions.items() if last.book else ()  # without what rounding left, which prints as 0.00
    whole = last.nav if closes else None
    owned = sorted((-abs(n * closes.get(symbol, 1.0)), symbol, n) for symbol, n in positions if abs(n) >= 0.005)
    shown = []
    for _, symbol, n in owned[:most]:
        units = words.amount(n, 0 if float(n).is_integer() else 2)
        shown.append(f"{clean(symbol, 20)} {words.number(100 * n * closes[symbol] / whole) if whole else units}")
    shown += [words.say("accounts.held_more", len(owned) - most)] if len(owned) > most else []
    cash = words.percent(last.book.cash / last.nav) if last.book and last.nav else words("state.not measured")
    return last, cash, ", ".join(shown) or words.say("accounts.nothing")


def holdings_section(index: SeasonIndex) -> tuple[b.Section, ...]:
    """The holdings of each agent after its last decision, by name, and the latest decisions of all, newest first."""
    words, owned, latest = index.words, list[tuple[b.Inline, ...]](), list[tuple[b.Inline, ...]]()
    for name in index.agents:
        if (last := holdings(index, name)) is not None:
            agent = b.Linked(clean(name, 60), index.pages[name])
            owned.append((agent, words.amount(last[0].nav or 0.0), *last[1:]))
    recent = [(step.day, name, step) for name in index.agents for step in index.run.steps.get(name, ())[-_LATEST:]]
    recent.sort(key=lambda entry: (entry[0], -entry[2].number), reverse=True)
    for day, name, step in recent[:_LATEST]:
        place = decision_links(list_pages(index, index.pages[name], "decisions", index.run.steps[name]))[step.number]
        reason = first_reason(words, step)
        trades: b.Inline = (trades_words(index, step), b.small(str(reason)) if reason else "")
        latest.append((b.Linked(words.day(day), place), b.Linked(clean(name, 60), index.pages[name]), trades))
    held = "held" if index.run.closes else "units"
    of_held = (words("board.agent"), *(words.say(f"accounts.{name}") for name in ("value", "cash", held)))
    of_latest = (words.say("accounts.day"), words("board.agent"), words.say("accounts.decided"))
    tables = (("holdings", of_held, owned, frozenset((1, 2)), "held"),
              ("latest", of_latest, latest, frozenset[int](), "latest who"))  # fmt: skip
    columns = tuple(
        (b.Group(words.say(f"accounts.{name}"), (b.Table(header, tuple(rows), right, "", stacked=True, style=style),)),)
        for name, header, rows, right, style in tables
        if rows
    )
    lede = words.say("accounts.now_lede", day=words.day(index.run.last))
    return (b.Section("now", words.say("accounts.now"), lede, (b.Columns(columns),)),) if columns else ()
