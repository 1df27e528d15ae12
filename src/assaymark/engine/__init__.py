"""Model calls: the call key, the ledger that nothing is lost from, and the runner that asks each call once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.engine.batching import BatchSummary, cancel_batches, run_batches
    from assaymark.engine.calls import INLINE_BYTES, CallSpec, Finish, Message, Model, Reply, Role, Text
    from assaymark.engine.compute import Chunk, ChunkError, beside, map_chunks
    from assaymark.engine.ledger import Ledger
    from assaymark.engine.prices import Price, Prices, Purse, load_prices, prices_of_text
    from assaymark.engine.rate_limits import Limits, Patience, door_of, provider_of
    from assaymark.engine.runner import (
        FIRST,
        Failure,
        Progress,
        RunSummary,
        Unusable,
        Watch,
        first_line,
        run_calls,
        run_worker,
    )
    from assaymark.engine.schema import Attempt, End, Outcome, Source

__all__ = [
    "FIRST",
    "INLINE_BYTES",
    "Attempt",
    "BatchSummary",
    "CallSpec",
    "Chunk",
    "ChunkError",
    "End",
    "Failure",
    "Finish",
    "Ledger",
    "Limits",
    "Message",
    "Model",
    "Outcome",
    "Patience",
    "Price",
    "Prices",
    "Progress",
    "Purse",
    "Reply",
    "Role",
    "RunSummary",
    "Source",
    "Text",
    "Unusable",
    "Watch",
    "beside",
    "cancel_batches",
    "door_of",
    "first_line",
    "load_prices",
    "map_chunks",
    "prices_of_text",
    "provider_of",
    "run_batches",
    "run_calls",
    "run_worker",
]

__getattr__ = exported(__name__)
