"""Batches of model calls: handed to a provider together, answered within a day, for about half the price."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from assaymark.engine.calls import CallSpec
from assaymark.engine.providers.anthropic import AnthropicBatches
from assaymark.engine.providers.batches import BatchState, Item, NotTaken, Result, Trace, lane_of
from assaymark.engine.providers.google import GoogleBatches
from assaymark.engine.providers.openai import OpenAIBatches, OpenAIChatBatches

__all__ = [
    "BatchMaker",
    "BatchProvider",
    "BatchState",
    "Item",
    "NotTaken",
    "Result",
    "Trace",
    "batch_providers",
    "lane_of",
]


class BatchProvider(Protocol):
    """Where the batches of one lane go (see `lane_of`). Every method may raise a `ModelError`."""

    @property
    def most_items(self) -> int:
        """How many calls a batch takes at most."""
        ...

    @property
    def most_bytes(self) -> int:
        """How many bytes they may have together; see `size`."""
        ...

    @property
    def keeps_labels(self) -> bool:
        """Whether `find` knows a batch by its label. Otherwise it guesses, and a lost batch may be paid for nothing."""
        ...

    def size(self, key: str, call: CallSpec) -> int:
        """How many bytes of a batch a call takes; raises what the provider could not do for it."""
        ...

    def submit(self, items: Sequence[Item], *, label: str) -> str:
        """Hand over a batch under a label; the provider's id of it. `NotTaken`: it surely has nothing of it."""
        ...

    def find(self, trace: Trace) -> str | None:
        """The id of a batch whose submission was cut off; None if there is none."""
        ...

    def state(self, remote: str) -> BatchState:
        """How far a batch is."""
        ...

    def results(self, remote: str) -> Iterator[Result]:
        """What came back by call key, in any order, perhaps twice, perhaps for keys that are not ours."""
        ...

    def cancel(self, remote: str) -> None:
        """Stop a batch; what is done is paid."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


BatchMaker = Callable[[CallSpec], BatchProvider]
"""Makes the provider of a lane from any call of it."""


def batch_providers(environ: Mapping[str, str] | None = None) -> dict[str, BatchMaker]:
    """Who takes batches, by the part of a model's name before its first slash.

    >>> sorted(batch_providers())
    ['anthropic', 'google', 'openai', 'openai-chat']
    """
    makers: dict[str, Callable[..., BatchProvider]] = {
        "anthropic": AnthropicBatches,
        "google": GoogleBatches,
        "openai": OpenAIBatches,
        "openai-chat": OpenAIChatBatches,
    }
    return {name: partial(maker, environ=environ) for name, maker in makers.items()}
