"""Calls as the ledger has them: what they cost, and what was asked and answered, read a few at a time for pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from assaymark.engine import Ledger, Text
from assaymark.engine.prices import FREE, SHIPPED, Prices, load_prices, prices_of_text, text_of_prices
from assaymark.engine.schema import Answered
from assaymark.records import Judgment, PairCall
from assaymark.report import PaidView
from assaymark.report.records.answers import Answers
from assaymark.report.records.calls import AskedCall, ReadCalls
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import PAIRS, POINTS, Store

_PRICES: Final = "prices"
_AT_ONCE: Final = 200


def store_prices(ledger: Ledger, prices: Prices | None) -> None:
    """Note prices of the user's own in the ledger: the report is made without the file that they are in."""
    if prices is not None and prices.source != SHIPPED:
        ledger.notes.replace(_PRICES, text_of_prices(prices))


def stored_prices(ledger: Ledger) -> Prices:
    """The prices that were noted with the calls of a ledger, else those that come with assaymark."""
    noted = ledger.notes.read(_PRICES)
    return load_prices() if noted is None else prices_of_text(noted)


def paid_views(folder: RunFolder, prices: Prices | None = None) -> tuple[PaidView, ...]:
    """What each model that somebody is paid for has been asked, and what that came to; nothing where none is."""
    if not folder.has_ledger:
        return ()
    by_model: defaultdict[str, list[Answered]] = defaultdict(list)
    with Ledger.open(folder.ledger, create=False) as ledger:
        # In the order of the keys: sums of floats in another order differ in their last digit.
        for one in sorted(ledger.answered(without=FREE), key=lambda one: one.key):
            by_model[one.model].append(one)
        batched = set(ledger.batches.answered_in_batches([one.key for found in by_model.values() for one in found]))
        prices = prices or stored_prices(ledger)
    views = []
    for model, answers in sorted(by_model.items()):
        replies, price = [answer.reply for answer in answers], prices.of(model)
        costs = [prices.paid(model, answer.reply, answer.key in batched) for answer in answers]
        known = [cost for cost in costs if cost is not None]
        cached = [reply.cached_tokens for reply in replies if reply.cached_tokens is not None]
        view = PaidView(
            model=model, calls=len(replies), usd=sum(known), unpriced=len(costs) - len(known),
            input_tokens=sum(reply.input_tokens or 0 for reply in replies),
            cached_tokens=sum(cached) if cached else None,
            output_tokens=sum(reply.output_tokens or 0 for reply in replies),
            untold=sum(reply.input_tokens is None or reply.output_tokens is None for reply in replies),
            in_batches=sum(answer.key in batched for answer in answers),
            price_of=None if price is None else price.as_of.isoformat(),
        )  # fmt: skip
        views.append(view)
    return tuple(views)


def stored_answers(folder: RunFolder) -> Answers:
    """What judges answered for the datasheets of a folder; empty for those read from a log."""
    store = Store(folder)
    pairs: defaultdict[str, list[PairCall]] = defaultdict(list)
    for pair in store.read(PAIRS) if store.rows(PAIRS) else ():
        pairs[pair.judge].append(pair)
    texts: defaultdict[str, list[Judgment]] = defaultdict(list)
    for text in store.read(POINTS) if store.rows(POINTS) else ():
        texts[text.judge].append(text)
    return Answers(pairs, texts)


def calls_of(folder: RunFolder) -> ReadCalls | None:
    """Reads the calls of a run folder by their keys; None where there is no ledger."""
    return partial(raw_calls, folder) if folder.has_ledger else None


def raw_calls(folder: RunFolder, keys: Sequence[str]) -> Iterator[AskedCall]:
    """The calls with these keys and their replies, in this order; of each text only its first call has the words."""
    seen: dict[str, Text] = {}
    with Ledger.open(folder.ledger, create=False) as ledger:
        prices = stored_prices(ledger)
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            calls = ledger.load(some, dict(seen))
            replies, attempts = dict(ledger.replies(some)), ledger.attempt_counts(some)
            cheap = ledger.batches.answered_in_batches(some)
            for key, call in zip(some, calls, strict=True):
                new = tuple(text for text in dict.fromkeys(call.texts) if text.sha256 not in seen)
                seen.update((text.sha256, Text("", text.sha256)) for text in new)
                reply = replies.pop(key, None)
                usd = None if reply is None else prices.paid(call.model, reply, key in cheap)
                yield AskedCall(
                    key=key, call=call, new=new, reply=reply, attempts=attempts.get(key, 0), usd=usd,
                    in_batch=key in cheap,
                )  # fmt: skip
