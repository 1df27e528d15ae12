"""What did it cost? Calls, tokens and USD of every model that somebody is paid for."""

from __future__ import annotations

from dataclasses import dataclass

from assaymark.report.book import Book
from assaymark.report.formats import clean, count, counted
from assaymark.report.inputs import PaidView


@dataclass(frozen=True, slots=True)
class CostRow:
    """One model."""

    model: str
    calls: str
    input: str
    cached: str
    output: str
    usd: str
    price: str


@dataclass(frozen=True, slots=True)
class CostView:
    """The section on costs: an answer and a row for each model."""

    answer: str
    rows: tuple[CostRow, ...]


def cost_view(book: Book) -> CostView | None:
    """What was paid; None where nobody was."""
    if book.run.paid is None:
        return CostView("The ledger, which knows what was paid, could not be read where this page was made.", ())
    paid = sorted(book.run.paid, key=lambda one: one.model)
    return CostView(_answer(paid), tuple(map(_row, paid))) if paid else None


def money(usd: float) -> str:
    """An amount in USD with at least two digits that say something.

    >>> money(12.3), money(0.00123), money(0.0)
    ('12.30', '0.0012', '0.00')
    """
    return f"{usd:,.2f}" if usd >= 0.01 or usd == 0 else f"{usd:.2g}"


def _answer(paid: list[PaidView]) -> str:
    calls, unpriced = sum(one.calls for one in paid), sum(one.unpriced for one in paid)
    usd = money(sum(one.usd for one in paid))
    if unpriced == calls:
        return f"{counted(calls, 'call')} of models that somebody is paid for; no price of them is known."
    if unpriced:
        return f"{usd} USD for {counted(calls - unpriced, 'call')}; what {count(unpriced)} more cost is not known."
    return f"{usd} USD for {counted(calls, 'call')}."


def _row(one: PaidView) -> CostRow:
    told = one.calls > one.untold
    batches = f", {count(one.in_batches)} in batches" if one.in_batches else ""
    return CostRow(
        model=clean(one.model, 200),
        calls=f"{count(one.calls)}{batches}",
        input=_tokens(one.input_tokens, told),
        cached=_tokens(one.cached_tokens, told),
        output=_tokens(one.output_tokens, told),
        usd="not known" if one.unpriced == one.calls else money(one.usd),
        price=_price(one),
    )


def _tokens(value: int | None, told: bool) -> str:
    return count(value) if told and value is not None else "not told"


def _price(one: PaidView) -> str:
    notes = ["no price known" if one.price_of is None else f"of {clean(one.price_of, 20)}"]
    if one.price_of is not None and one.unpriced:
        notes.append(f"{counted(one.unpriced, 'call')} without a price")
    if 0 < one.untold < one.calls:
        notes.append(f"tokens of {counted(one.untold, 'call')} not told")
    return "; ".join(notes)
