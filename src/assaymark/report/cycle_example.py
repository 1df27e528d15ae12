"""One whole cycle: what an agent saw, and what each agent decided, wrote, and left behind as a book."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from html import escape
from typing import Final

from assaymark.errors import InputError
from assaymark.portfolio.orders import RuleCheck, Settlement, audit, fee_of, prices_of, settle
from assaymark.prompting.texts import judged_rationales
from assaymark.records import Action, Constraint, Context, Decision, Portfolio, Series
from assaymark.report.book import Book
from assaymark.report.figures.data import csv_text
from assaymark.report.figures.price import price_chart
from assaymark.report.formats import clean, count, counted, listing, moment, number, percent, plural, sentence
from assaymark.report.substrate_views import CycleView
from assaymark.report.tables import Table

MOST: Final = 12
"""So many instruments are drawn, and so many agents shown; the others are counted."""

ROOM: Final = 36_000
"""Bytes that the texts of all agents may take together, so that the page keeps its budget."""

CLOSES: Final = "data/cycle-closes.csv"
"""Where the closes behind the charts lie."""

_ORDERS: Final = 20
_DONE: Final[Mapping[str, str]] = {
    "buy": "Buy",
    "sell": "Sell",
    "short": "Sell short",
    "cover": "Buy back",
    "close": "Close",
    "hold": "Hold",
    "no_trade": "Trade nothing",
    "target_weight": "Move to a weight",
}
_LIMITS: Final[Mapping[str, Callable[[float], str]]] = {
    "max_weight": lambda limit: f"No position above {percent(limit, 1)} of equity",
    "min_cash": lambda limit: f"Cash of at least {percent(limit, 1)} of equity",
    "max_leverage": lambda limit: f"Exposure of at most {number(limit)} times equity",
    "max_orders": lambda limit: f"At most {plural(round(limit), 'order')}",
    "allow_short": lambda limit: "Short positions are allowed" if limit else "No short positions",
    "fee": lambda limit: f"A fee of {number(limit, 1)} bps of what is traded",
}


@dataclass(frozen=True, slots=True)
class PriceChart:
    """The closes of one instrument: its neutral name, its class, the drawing, and its real name."""

    title: str
    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One limit held against a book after its orders."""

    limit: str
    value: str
    kept: bool


@dataclass(frozen=True, slots=True)
class AgentPart:
    """One agent's answer. ``problem`` says why there is none, or why its orders make no book."""

    name: str
    family: str
    orders: tuple[str, ...]
    confidence: str
    text: tuple[str, ...]
    cut: bool
    sums: tuple[str, ...]
    checks: tuple[CheckRow, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class ExampleView:
    """The page of one cycle; ``closes`` is the text of the file that ``data`` names."""

    title: str
    answer: str
    place: str
    charts: tuple[PriceChart, ...]
    undrawn: str
    data: str
    closes: str
    features: Table | None
    book: Table | None
    book_note: str
    limits: tuple[str, ...]
    task: str
    agents: tuple[AgentPart, ...]
    unshown: str


def example_view(book: Book) -> ExampleView | None:
    """The page of the example cycle; None where there is none."""
    found = None if book.run.substrate is None else book.run.substrate.example
    if found is None:
        return None
    context, regime = found.context, clean(found.regime, 60)
    shown_agents = sorted(found.decisions, key=lambda one: one.agent.id)[:MOST]
    room = ROOM // max(len(shown_agents), 1)
    return ExampleView(
        title="One cycle, and what was decided on it",
        answer=(
            f"Cycle {count(found.number)} of the regime {regime}, as {plural(len(found.decisions), 'agent')} saw it, "
            "and what each decided. It is an example and no evidence: nothing may be concluded from one cycle."
        ),
        place=_place(found),
        charts=tuple(_charts(found)),
        undrawn=_more(len(context.series), "instrument", "is not drawn", "are not drawn"),
        data=CLOSES,
        closes=_closes(context),
        features=_features(context),
        book=None if context.portfolio is None else _book_table(context, context.portfolio),
        book_note="" if context.portfolio is None else _book_note(context.portfolio),
        limits=tuple(limit_words(rule) for rule in context.constraints[:40]),
        task=clean(context.prompt, 3000),
        agents=tuple(_agent(one, context, room) for one in shown_agents),
        unshown=_more(len(found.decisions), "agent", "is in the records alone", "are in the records alone"),
    )


def _more(total: int, noun: str, one: str, many: str) -> str:
    left = total - MOST
    return "" if left <= 0 else sentence(f"{plural(left, f'more {noun}')} {one if left == 1 else many}")


# --- what was shown ---------------------------------------------------------------------------------------------------


def _place(found: CycleView) -> str:
    """Where the cycle was cut from, which agents never saw."""
    first, last = found.first.astimezone(UTC), found.last.astimezone(UTC)
    ends = f"{first:%H:%M} to {last:%H:%M} UTC" if first.date() == last.date() else f"to {moment(last.isoformat())}"
    begin = moment(first.date().isoformat() if first.date() == last.date() else first.isoformat())
    gone = [clean(name, 40) for name in found.left_out[:MOST]]
    left = "" if not gone else f" {listing(gone)} did not trade then and {'is' if len(gone) == 1 else 'are'} left out."
    unseen = "The agents saw neither this time nor the real names below the charts."
    return f"Cut from bars of {begin}, {ends}.{left} {unseen}"


def _charts(found: CycleView) -> Iterator[PriceChart]:
    classes = {item.id: item.asset_class for item in found.context.instruments}
    for at, series in enumerate(found.context.series[:MOST]):
        name = clean(series.instrument, 40)
        kind = clean(classes.get(series.instrument, ""), 30).replace("_", " ")
        yield PriceChart(
            title=f"{name}, {kind}" if kind else name,
            svg=_chart(f"price{at}", name, series),
            caption=f"Real name: {clean(found.names.get(series.instrument, 'not known'), 60)}",
        )


def _chart(name: str, instrument: str, series: Series) -> str:
    closes = series.close
    if len(closes) < 2 or not all(map(math.isfinite, closes)):
        return ""
    minutes = round((len(closes) - 1) * series.interval_s / 60)
    desc = (
        f"{counted(len(closes), 'close')} from {number(closes[0])} to {number(closes[-1])}, lowest "
        f"{number(min(closes))}, highest {number(max(closes))}"
    )
    ends = (f"{count(minutes)} minutes before", "at the cutoff")
    return price_chart(name, closes, ends, f"Closes of {instrument}", desc)


def _closes(context: Context) -> str:
    """Every close that was shown, drawn or not: a row a bar."""
    rows = [
        (one.instrument, round((len(one.close) - 1 - at) * one.interval_s / 60), close)
        for one in context.series
        for at, close in enumerate(one.close)
    ]
    return csv_text(("instrument", "minutes before", "close"), rows)


def _features(context: Context) -> Table | None:
    """The facts that were given with the bars: a row an instrument, a column a field."""
    given = [fact for fact in context.facts if fact.instrument and not isinstance(fact.value, str)]
    fields = list(dict.fromkeys((fact.field, fact.unit) for fact in given))[:MOST]
    names = list(dict.fromkeys(fact.instrument for fact in given))[:MOST]
    if not fields:
        return None
    values = {(fact.instrument, fact.field, fact.unit): fact.value for fact in given}
    rows = tuple(
        (clean(name, 40), *(_feature(values.get((name, *field)), field[1]) for field in fields)) for name in names
    )
    heads = ("Instrument", *(f"{clean(name, 30).replace('_', ' ')}, {clean(unit, 20)}" for name, unit in fields))
    return Table(heads, rows, frozenset(range(1, len(heads))))


def _feature(value: float | str | None, unit: str) -> str:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return "not given"
    return number(value, 6 if unit == "ratio" else 4)


def _book_table(context: Context, held: Portfolio) -> Table:
    prices = prices_of(context)
    rows = [_position(name, held.positions[name], prices.get(name), held.nav) for name in sorted(held.positions)[:40]]
    rows.append(("Cash", "", "", number(held.cash), percent(held.cash / held.nav, 1) if held.nav > 0 else "no NAV"))
    return Table(("Position", "Units", "Last price", "Value", "Of NAV"), tuple(rows), frozenset({1, 2, 3, 4}))


def _position(name: str, units: float, price: float | None, nav: float) -> tuple[str, ...]:
    if price is None:
        return clean(name, 40), number(units, 4), "no price", "not defined", "not defined"
    value = units * price
    share = percent(value / nav, 1) if nav > 0 else "no NAV"
    return clean(name, 40), number(units, 4), number(price, 4), number(value), share


def _book_note(held: Portfolio) -> str:
    return f"Before any order, in {clean(held.currency, 12)}: cash {number(held.cash)}, NAV {number(held.nav)}."


def limit_words(rule: Constraint) -> str:
    """A numeric limit in words.

    >>> limit_words(Constraint(kind="max_orders", limit=3, unit="count"))
    'At most three orders'
    >>> limit_words(Constraint(kind="max_holdings", limit=5, unit="count"))
    'max holdings: 5.00 count'
    """
    known = _LIMITS.get(rule.kind)
    if known is not None:
        return known(rule.limit)
    return f"{clean(rule.kind, 40).replace('_', ' ')}: {number(rule.limit)} {clean(rule.unit, 20)}"


# --- what was decided -------------------------------------------------------------------------------------------------


def _agent(decision: Decision, context: Context, room: int) -> AgentPart:
    text, cut = _text(decision, room)
    after, problem = _after(decision, context)
    orders = [order_words(one, context) for one in decision.actions[:_ORDERS]]
    if len(decision.actions) > _ORDERS:
        orders.append(f"and {counted(len(decision.actions) - _ORDERS, 'more order')}")
    return AgentPart(
        name=clean(decision.agent.id, 80),
        family=clean(decision.agent.family, 60),
        orders=tuple(orders),
        confidence="" if decision.confidence is None else f"Confidence that it gave: {number(decision.confidence)}.",
        text=text,
        cut=cut,
        sums=() if after is None else tuple(_sums(after)),
        checks=() if after is None else tuple(_check(one) for one in audit(after, context.constraints)),
        problem=problem,
    )


def _text(decision: Decision, room: int) -> tuple[tuple[str, ...], bool]:
    """The judged texts as paragraphs that take so many bytes once they are escaped, and whether they were cut."""
    paragraphs, left = [], room
    for rationale in judged_rationales(decision):
        for part in filter(None, (clean(line) for line in rationale.text.splitlines())):
            fits = _fitting(part, left)
            if fits:
                paragraphs.append(fits)
            if fits != part:
                return tuple(paragraphs), True
            left -= _bytes(part) + 8
    return tuple(paragraphs), False


def _bytes(text: str) -> int:
    return len(escape(text).encode())


def _fitting(text: str, room: int) -> str:
    """As much of the beginning of a text as has room, with an ellipsis where it was cut."""
    if _bytes(text) <= room:
        return text
    kept = 0
    for at, char in enumerate(text):
        kept += _bytes(char)
        if kept > room - 3:
            return f"{text[:at].rstrip()}…" if at else ""
    return text


def _after(decision: Decision, context: Context) -> tuple[Settlement | None, str]:
    """The book after the orders, or why there is none."""
    if not decision.rationales and not decision.actions and decision.flags:
        return (
            None,
            f"No usable answer ({clean(', '.join(decision.flags), 80)}): {clean('; '.join(decision.missing), 400)}",
        )
    if context.portfolio is None:
        return None, "There is no book to settle orders on."
    try:
        after = settle(context.portfolio, prices_of(context), decision.actions, fee_bps=fee_of(context.constraints))
    except InputError as exc:
        return None, f"The orders cannot be settled: {clean(str(exc), 300)}"
    except (ValueError, OverflowError):
        after = None
    # Amounts beyond what a float holds make sums of infinities.
    if after is None or not math.isfinite(after.equity + after.exposure):
        return None, "The orders cannot be settled: their amounts are beyond any number."
    return after, ""


def order_words(order: Action, context: Context) -> str:
    """An order with what it is worth at the last price.

    >>> from datetime import UTC, datetime
    >>> empty = Context(completeness="complete", cutoff=datetime(2000, 1, 3, tzinfo=UTC), cutoff_source="x", prompt="")
    >>> order_words(Action(instrument="Asset A", kind="buy", quantity=2.5), empty)
    'Buy 2.5000 of Asset A'
    """
    did, name = _DONE[order.kind], clean(order.instrument, 40)
    if order.quantity is None:
        return f"{did} {name}".strip()
    price = prices_of(context).get(order.instrument)
    worth = "" if price is None else f" at {number(price, 4)}, worth {_amount(order.quantity * price)}"
    return f"{did} {_amount(order.quantity, 4)} of {name}{worth}"


def _amount(value: float, digits: int = 2) -> str:
    """A number of units or of money; beyond any book, only its size."""
    return number(value, digits) if abs(value) < 1e15 else f"{value:.3g}"


def _sums(after: Settlement) -> Iterator[str]:
    """The arithmetic that leads from the book to every limit."""
    yield (
        f"Cash {_amount(after.cash)} less purchases {_amount(after.bought)} plus sales {_amount(after.sold)} less fees "
        f"{_amount(after.fees)} leaves {_amount(after.residual)}."
    )
    if after.equity > 0:
        share = percent(after.exposure / after.equity, 1)
        yield f"Exposure {_amount(after.exposure)} over equity {_amount(after.equity)} is {share}."
    else:
        yield f"Exposure is {_amount(after.exposure)}, and no equity is left."


def _check(found: RuleCheck) -> CheckRow:
    rule = Constraint(kind=found.rule, limit=found.limit, unit="")
    return CheckRow(limit_words(rule), _compared(found), found.kept)


def _compared(found: RuleCheck) -> str:
    """What was held against a limit."""
    subject = f", {clean(found.subject, 40)}" if found.subject else ""
    if not math.isfinite(found.value):
        return "no equity is left"
    if found.rule in ("max_weight", "min_cash"):
        return f"{percent(found.value, 2)}{subject}"
    if found.rule == "max_orders":
        return count(round(found.value))
    if found.rule == "allow_short":
        return f"{number(found.value, 4)}{subject}" if found.subject else "none"
    return number(found.value, 3)
