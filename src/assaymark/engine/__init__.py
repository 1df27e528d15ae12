"""Model calls: the call key, the ledger that nothing is lost from, and the runner that asks each call once."""

from __future__ import annotations

from assaymark.engine.batching import BatchSummary, cancel_batches, run_batches
from assaymark.engine.breaker import Patience, provider_of
from assaymark.engine.calls import CallSpec, Finish, Message, Model, Reply, Role, Text
from assaymark.engine.chunks import Chunk, ChunkError
from assaymark.engine.compute import beside, map_chunks
from assaymark.engine.ledger import Ledger
from assaymark.engine.limits import Limits
from assaymark.engine.models import Registry, resolve
from assaymark.engine.purse import Purse
from assaymark.engine.rows import Attempt, End, Outcome, Source
from assaymark.engine.runner import Failure, Progress, RunSummary, run_calls, run_worker
from assaymark.engine.watch import FIRST, Unusable, Watch, first_line

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
    "Registry",
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
    "resolve",
    "run_batches",
    "run_calls",
    "run_worker",
]
