"""What a set of calls has cost, from the tokens of its replies: those that came in a batch at the price of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assaymark.engine.calls import CallSpec
from assaymark.engine.ledger import Ledger
from assaymark.engine.models.prices import Prices


@dataclass(frozen=True, slots=True)
class Costs:
    """What replies have cost, in USD.

    ``usd`` is None where the price or the tokens of any reply are unknown; ``unknown`` counts these. ``known_usd`` is
    the sum of the others. ``in_batches`` of the ``replies`` were asked in batches, which saved ``saved_usd``. Attempts
    that failed or were lost are not in it: providers do not say what they cost.
    """

    replies: int
    in_batches: int
    unknown: int
    known_usd: float
    saved_usd: float

    @property
    def usd(self) -> float | None:
        """The whole cost, or None where a part of it is unknown."""
        return None if self.unknown else self.known_usd


def costs_of(ledger: Ledger, calls: Iterable[CallSpec], prices: Prices) -> Costs:
    """What the replies to these calls have cost.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from assaymark.engine.models.prices import load_prices
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
    ...     costs_of(ledger, [], load_prices()).usd
    0.0
    """
    models = {call.key: call.model for call in calls}
    batched = ledger.batches.answered_in_batches(models)
    replies = unknown = 0
    known = saved = 0.0
    for key, reply in ledger.replies(models):
        tokens = (reply.input_tokens, reply.output_tokens, reply.cached_tokens)
        alone, paid = (prices.cost_of(models[key], *tokens, batch=batch) for batch in (False, key in batched))
        replies += 1
        if alone is None or paid is None:
            unknown += 1
        else:
            known, saved = known + paid, saved + (alone - paid)
    return Costs(replies, len(batched), unknown, known, saved)
