"""What the replies of a run came to, model by model, at the prices that its calls were asked at."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from assaymark.engine import Ledger
from assaymark.engine.models.prices import FREE, SHIPPED, Prices, load_prices, prices_of_text, text_of_prices
from assaymark.engine.rows import Answered
from assaymark.report import PaidView
from assaymark.workflow.folder import RunFolder

_PRICES: Final = "prices"


def leave_prices(ledger: Ledger, prices: Prices | None) -> None:
    """Note prices of the user's own in the ledger: the report is made without the file that they are in."""
    if prices is not None and prices.source != SHIPPED:
        ledger.notes.replace(_PRICES, text_of_prices(prices))


def noted_prices(ledger: Ledger) -> Prices:
    """The prices that were noted with the calls of a ledger, else those that come with assaymark."""
    noted = ledger.notes.read(_PRICES)
    return load_prices() if noted is None else prices_of_text(noted)


def paid_views(folder: RunFolder, prices: Prices | None = None) -> tuple[PaidView, ...]:
    """What each model that somebody is paid for has been asked, and what that came to; nothing where none is.

    Parameters
    ----------
    folder : RunFolder
    prices : Prices, optional
        Without them, those that were noted with the calls, else those that come with assaymark.

    Raises
    ------
    LedgerError
        What is stored of a reply, or of the prices, is damaged.
    """
    if not folder.has_ledger:
        return ()
    found: defaultdict[str, list[Answered]] = defaultdict(list)
    with Ledger.open(folder.ledger, create=False) as ledger:
        for one in ledger.answered(without=FREE):
            found[one.model].append(one)
        batched = ledger.batches.answered_in_batches([one.key for every in found.values() for one in every])
        prices = prices or noted_prices(ledger)
    return tuple(_view(model, found[model], set(batched), prices) for model in sorted(found))


def _view(model: str, answers: list[Answered], batched: set[str], prices: Prices) -> PaidView:
    # In the order of the keys: sums of floats in another order differ in their last digit.
    replies = [(one.key, one.reply) for one in sorted(answers, key=lambda one: one.key)]
    costs = [prices.paid(model, reply, key in batched) for key, reply in replies]
    known = [cost for cost in costs if cost is not None]
    cached = [reply.cached_tokens for _, reply in replies if reply.cached_tokens is not None]
    price = prices.of(model)
    return PaidView(
        model=model,
        calls=len(replies),
        input_tokens=sum(reply.input_tokens or 0 for _, reply in replies),
        cached_tokens=sum(cached) if cached else None,
        output_tokens=sum(reply.output_tokens or 0 for _, reply in replies),
        usd=sum(known),
        unpriced=len(costs) - len(known),
        untold=sum(reply.input_tokens is None or reply.output_tokens is None for _, reply in replies),
        in_batches=sum(key in batched for key, _ in replies),
        price_of=None if price is None else price.as_of.isoformat(),
    )
