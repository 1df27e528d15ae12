"""The demo's observation as text: a short briefing, a table of figures, the rules and the book."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from assaymark.records import Constraint, Fact, Instrument, Portfolio

_COLUMNS = (
    ("price", "close"),
    ("return_5s", "5 sessions"),
    ("return_21s", "21 sessions"),
    ("return_63s", "63 sessions"),
    ("volatility_21s", "volatility 21s"),
    ("max_drawdown_63s", "max drawdown 63s"),
    ("beta_63s", "beta 63s"),
    ("corr_63s", "correlation 63s"),
)
_TASK = (
    "Choose target weights for the coming five sessions and say why: a summary, the reasons for the portfolio, and two "
    "or three risks. Use only what is shown here."
)
_NOTES = "Volatility is annualised. Beta and correlation are measured against the first instrument."


def demo_prompt(
    cutoff: datetime,
    facts: Sequence[Fact],
    instruments: Sequence[Instrument],
    portfolio: Portfolio,
    constraints: Sequence[Constraint],
) -> str:
    """The prompt that shows an agent every fact, rule and position of its context."""
    cells = {(fact.instrument, fact.field): _cell(fact) for fact in facts}
    briefing = " ".join(fact.note for fact in facts if fact.note)
    head = ("instrument", "class", *(title for _, title in _COLUMNS))
    rows = [(item.name, item.asset_class, *(cells[item.id, field] for field, _ in _COLUMNS)) for item in instruments]
    table = "\n".join(" | ".join(row) for row in (head, *rows))
    names = {item.id: item.name for item in instruments}
    held = ", ".join(f"{units:g} units of {names[name]}" for name, units in portfolio.positions.items())
    book = f"Book: {held}, cash {portfolio.cash:.2f}, NAV {portfolio.nav:.2f} {portfolio.currency}."
    rules = "Rules: " + ", ".join(f"{rule.kind.replace('_', ' ')} {_limit(rule)}" for rule in constraints) + "."
    return "\n\n".join((f"Market at the close of {cutoff:%Y-%m-%d}.", briefing, table, _NOTES, book, rules, _TASK))


def _cell(fact: Fact) -> str:
    """A figure as the table prints it."""
    value = float(fact.value)  # the demo has no facts in words
    return f"{value * 100:.2f}%" if fact.unit == "ratio" else f"{value:.2f}"


def _limit(rule: Constraint) -> str:
    return f"{rule.limit:g}" if rule.unit == "count" else f"{rule.limit * 100:g}%"
