"""Model calls: the call key, the durable ledger, and the runner that has each call answered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.engine.batching import BatchSummary, cancel_batches, run_batches
    from assaymark.engine.calls import INLINE_BYTES, CallSpec, Finish, Message, Model, Reply, Role, Text
    from assaymark.engine.compute import Chunk, ChunkError, map_chunks, spawned
    from assaymark.engine.compute import spawned as beside  # noqa: F401  # its name in 0.1
    from assaymark.engine.ledger import Ledger
    from assaymark.engine.prices import Price, Prices, SpendLimit, load_prices, prices_of_text
    from assaymark.engine.prices import SpendLimit as Purse  # noqa: F401  # its name in 0.1
    from assaymark.engine.rate_limits import CircuitBreakerPolicy, endpoint_of, provider_of
    from assaymark.engine.rate_limits import CircuitBreakerPolicy as Patience  # noqa: F401  # its name in 0.1
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
    from assaymark.engine.schema import Attempt, End, ImportedFile, Outcome
    from assaymark.engine.schema import ImportedFile as Source  # noqa: F401  # its name in 0.1
    from assaymark.protocol import ProviderLimits as Limits

__all__ = [
    "FIRST", "INLINE_BYTES", "Attempt", "BatchSummary", "CallSpec", "Chunk", "ChunkError", "CircuitBreakerPolicy",
    "End", "Failure", "Finish", "ImportedFile", "Ledger", "Limits", "Message", "Model", "Outcome", "Price", "Prices",
    "Progress", "Reply", "Role", "RunSummary", "SpendLimit", "Text", "Unusable", "Watch", "cancel_batches",
    "endpoint_of", "first_line", "load_prices", "map_chunks", "prices_of_text", "provider_of", "run_batches",
    "run_calls", "run_worker", "spawned",
]  # fmt: skip

__getattr__ = exported(__name__)
