"""Horizons as the text that a judge reads: a fence for each step, and one for each text that the agent wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assaymark.judging.rendering import ACTION_NUMBERS
from assaymark.judging.season.horizon_types import ORDER, HorizonBook, HorizonStep
from assaymark.judging.season.market_lines import table_lines
from assaymark.prompting.fences import fence, row
from assaymark.prompting.material import moment, number_text
from assaymark.records import Action, Constraint, Outcome


def step_texts(steps: Sequence[HorizonStep]) -> list[str]:
    """Each step as text. The rules stand in the first step, and wherever they change."""
    shown: tuple[Constraint, ...] | None = None
    found = []
    for step in steps:
        found.append(step_text(step, rules=step.constraints != shown))
        shown = step.constraints
    return found


def step_text(step: HorizonStep, *, rules: bool = True) -> str:
    """One step: its tables, the numbers that it states, and each text, fenced one by one."""
    tables = [_head(step), _actions(step.actions), *_done(step), *_book(step.book), *_market(step)]
    if rules:
        tables += table_lines("rules", ("kind", "limit", "unit", "scope"), _rules(step.constraints))
    blocks = [("step", "\n".join(tables))]
    if step.stated:
        blocks.append(("stated", step.stated))
    blocks += [(text.kind, text.text) for text in step.texts]
    return "\n".join(fence(label, content) for label, content in blocks)


def deed_text(step: HorizonStep, outcomes: Sequence[Outcome]) -> str:
    """One step for the outcome call: what was done, without reasons, and what happened afterwards."""
    tables = [_head(step), _actions(step.actions), *_done(step), *_book(step.book)]
    happened = (
        (
            one.horizon,
            number_text(one.value),
            number_text(one.benchmark),
            moment(one.resolved_at) if one.resolved_at else "",
        )
        for one in outcomes
    )
    told = "\n".join(table_lines("outcomes", ("horizon", "value", "benchmark", "resolved"), happened))
    blocks = [("step", "\n".join(tables)), *([("outcomes", told)] if told else [])]
    return "\n".join(fence(label, content) for label, content in blocks)


def book_text(book: HorizonBook | None) -> str:
    """A book on its own: at the boundary of two parts."""
    return fence("book", "\n".join(_book(book))) if book is not None else fence("book", "not recorded")


def rules_text(rules: Sequence[Constraint]) -> str:
    """The rules on their own; nothing where there are none."""
    lines = table_lines("rules", ("kind", "limit", "unit", "scope"), _rules(rules))
    return fence("rules", "\n".join(lines)) if lines else ""


def _head(step: HorizonStep) -> str:
    return row(("step", str(step.number), step.day))


def _actions(actions: Sequence[Action]) -> str:
    """A table of the actions with the columns that any of them fills; it stands there without rows too."""
    filled = [name for name in ACTION_NUMBERS if any(getattr(action, name) is not None for action in actions)]
    rows = [(one.instrument, one.kind, *(number_text(getattr(one, name)) for name in filled)) for one in actions]
    lines = [row(("table", str(len(rows)), "actions")), row(("instrument", "action", *filled))]
    return "\n".join([*lines, *map(row, rows)])


def _done(step: HorizonStep) -> list[str]:
    """What the broker filled and refused."""
    head: tuple[str, ...] = ("symbol", "units", "price", "cost")
    fills: list[tuple[str, ...]] = [
        (one.symbol, number_text(one.quantity), number_text(one.price), number_text(one.cost)) for one in step.fills
    ]
    if any(one.kind != ORDER for one in step.fills):
        head = (*head, "kind")
        fills = [(*cells, one.kind) for cells, one in zip(fills, step.fills, strict=True)]
    refused = ((order.symbol, order.reason) for order in step.rejections)
    return [
        *table_lines("fills", head, fills),
        *table_lines("refused", ("symbol", "reason"), refused),
    ]


def _book(book: HorizonBook | None) -> list[str]:
    """Cash and positions."""
    if book is None:
        return []
    held = ((symbol, number_text(units)) for symbol, units in book.positions)
    return [row(("cash", number_text(book.cash))), *table_lines("book", ("symbol", "units"), held)]


def _market(step: HorizonStep) -> list[str]:
    return [step.market.text] if step.market.text else []


def _rules(rules: Sequence[Constraint]) -> Iterable[Sequence[str]]:
    return ((rule.kind, number_text(rule.limit), rule.unit, rule.scope) for rule in rules)


def outcomes_by_step(steps: Sequence[HorizonStep], outcomes: Iterable[Outcome]) -> Mapping[int, tuple[Outcome, ...]]:
    """The outcomes that are resolved, by the number of their step, in an order of their own."""
    numbers = {step.record_id: step.number for step in steps}
    found: dict[int, list[Outcome]] = {}
    for one in outcomes:
        if one.resolved_at is not None and one.record_id in numbers:
            found.setdefault(numbers[one.record_id], []).append(one)
    return {at: tuple(sorted(ones, key=lambda one: (one.horizon, one.source))) for at, ones in found.items()}
