"""Model calls: the call key, the ledger that nothing is lost from, and the runner that asks each call once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.engine.batching import BatchSummary, cancel_batches, run_batches
    from assaymark.engine.calls import CallSpec, Finish, Message, Model, Reply, Role, Text
    from assaymark.engine.compute import Chunk, ChunkError, beside, map_chunks
    from assaymark.engine.ledger import Ledger
    from assaymark.engine.prices import Purse
    from assaymark.engine.rate_limits import Limits, Patience, provider_of
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
    "first_line",
    "map_chunks",
    "provider_of",
    "run_batches",
    "run_calls",
    "run_worker",
]

__getattr__ = exported(__name__)
