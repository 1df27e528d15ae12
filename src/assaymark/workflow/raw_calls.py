"""Calls as the ledger has them, read a few at a time for the pages that show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from assaymark.engine import Ledger, Text
from assaymark.records import Judgment, PairCall
from assaymark.report.records.answers import Answers
from assaymark.report.records.calls import AskedCall, ReadCalls
from assaymark.workflow.progress import noted_prices
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import PAIRS, POINTS, Store

# What judges answered for their datasheets, as a run folder keeps it.


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


_AT_ONCE: Final = 200


def calls_of(folder: RunFolder) -> ReadCalls | None:
    """Reads the calls of a run folder by their keys; None where there is no ledger."""
    return partial(raw_calls, folder) if folder.has_ledger else None


def raw_calls(folder: RunFolder, keys: Sequence[str]) -> Iterator[AskedCall]:
    """The calls with these keys and their replies, in this order; of each text only its first call has the words."""
    seen: dict[str, Text] = {}
    with Ledger.open(folder.ledger, create=False) as ledger:
        prices = noted_prices(ledger)
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            texts = dict(seen)
            calls = ledger.load(some, texts)
            replies, attempts = dict(ledger.replies(some)), ledger.attempt_counts(some)
            cheap = ledger.batches.answered_in_batches(some)
            for key, call in zip(some, calls, strict=True):
                new = tuple(text for text in dict.fromkeys(call.texts) if text.sha256 not in seen)
                seen.update((text.sha256, Text("", text.sha256)) for text in new)
                reply = replies.pop(key, None)
                usd = None if reply is None else prices.paid(call.model, reply, key in cheap)
                yield AskedCall(
                    key=key,
                    call=call,
                    new=new,
                    reply=reply,
                    attempts=attempts.get(key, 0),
                    usd=usd,
                    in_batch=key in cheap,
                )
