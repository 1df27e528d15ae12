"""One attempt at one call: it has a deadline, and ends in a reply or in a named trouble."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from assaymark.engine import loop
from assaymark.engine.calls import CallSpec, Model, Reply, refusal_of
from assaymark.engine.room import Place, hold
from assaymark.engine.rows import Outcome
from assaymark.errors import ModelError


@dataclass(frozen=True, slots=True)
class Trouble:
    """An attempt that brought no reply. A ``defect`` is what a model raised that is no `ModelError`."""

    outcome: Outcome
    error: ModelError
    defect: BaseException | None = None


class Attempts:
    """Makes attempts within a deadline, and keeps hold of those that do not heed their cancellation."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._left_behind: set[asyncio.Task[Reply]] = set()

    async def at(self, model: Model, call: CallSpec, place: Place) -> Reply | Trouble:
        """Ask ``model`` once. The time it takes is in the reply, unless the model has measured it itself.

        ``place`` is for a large body. It is given back here unless there is a reply to be written down.
        """
        result = await self._asked(model, call, place)
        if not isinstance(result, Reply):
            place.leave()
        return result

    async def _asked(self, model: Model, call: CallSpec, place: Place) -> Reply | Trouble:
        started = time.perf_counter()
        # A task of its own: a model that does not heed its cancellation must not hold up the worker.
        task = asyncio.create_task(_complete(model, call, place))
        try:
            done, _ = await asyncio.wait((task,), timeout=self._deadline_s)
            if not done:
                await self._let_go(task)
                return Trouble("timeout", ModelError(f"no reply within {self._deadline_s:g} s", retryable=True))
        except asyncio.CancelledError:
            task.cancel()
            raise
        return _result(task, call, time.perf_counter() - started)

    async def _let_go(self, task: asyncio.Task[Reply]) -> None:
        self._left_behind.add(task)
        task.add_done_callback(_look_away)
        task.cancel()
        await asyncio.wait((task,), timeout=loop.GRACE_S)


async def _complete(model: Model, call: CallSpec, place: Place) -> Reply:
    hold(place)
    reply = await model.complete(call)
    if not isinstance(reply, Reply) or not isinstance(reply.text, str):
        raise TypeError(f"model {call.model!r} must return a Reply with a text (got {type(reply).__name__})")
    if not isinstance(reply.raw, str | None):
        raise TypeError(f"model {call.model!r} must return its raw response as text (got {type(reply.raw).__name__})")
    return reply


def _result(task: asyncio.Task[Reply], call: CallSpec, seconds: float) -> Reply | Trouble:
    if task.cancelled():
        return Trouble("failed", ModelError("the model cancelled its own attempt", retryable=True))
    error = task.exception()
    if error is None:
        reply = task.result()
        return replace(reply, seconds=seconds) if reply.seconds is None else reply
    if isinstance(error, ModelError):
        return refusal_of(error, call.model) if error.refused == "content" else Trouble("failed", error)
    return Trouble("defect", ModelError(f"{type(error).__name__}: {error}", retryable=False), defect=error)


def _look_away(task: asyncio.Task[Reply]) -> None:
    """Take note of how an abandoned attempt ended, which is of no interest to anybody any more."""
    if not task.cancelled():
        task.exception()
