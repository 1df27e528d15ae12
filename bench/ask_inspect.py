"""Calls of `make_calls` through Inspect AI's `eval`: ``python ask_inspect.py CALLS CONCURRENCY`` prints its seconds.

The model is a provider of Inspect's own kind, registered in this process, that answers at once with what `Instant`
answers. A sample is a call: no tools, no scorer, nothing shown. Everything else is as Inspect comes. A small run before
the timed one takes the imports and whatever is made once.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    modelapi,
)
from inspect_ai.solver import generate

from assaymark.engine import CallSpec
from make_calls import Instant, judge_calls, one_judge


class InstantAPI(ModelAPI):
    """`Instant` as a model of Inspect's; it is handed the same call every time, and so does the same work."""

    def __init__(self, model_name: str, **given: Any) -> None:
        super().__init__(model_name, config=given.get("config", GenerateConfig()))
        (self._call,) = judge_calls(1)

    async def generate(self, *_asked: object, **_given: object) -> ModelOutput:
        reply = await Instant().complete(self._call)
        return ModelOutput.from_content(reply.model, reply.text)

    def max_connections(self) -> int:
        return int(sys.argv[2])


@modelapi(name="instant")
def instant() -> type[ModelAPI]:
    return InstantAPI


def sample(number: int, call: CallSpec) -> Sample:
    system, user = (message.text for message in call.messages)
    return Sample(id=number, input=[ChatMessageSystem(content=system), ChatMessageUser(content=user)])


def seconds(calls: list[CallSpec], concurrency: int) -> float:
    """Seconds of one `eval`."""
    samples = [sample(number, call) for number, call in enumerate(calls)]
    task = Task(dataset=MemoryDataset(samples), solver=generate())
    with tempfile.TemporaryDirectory() as logs:
        started = time.perf_counter()
        (log,) = eval(
            task,
            model="instant/judge",
            display="none",
            log_dir=logs,
            max_samples=concurrency,
            max_connections=concurrency,
        )
        taken = time.perf_counter() - started
    assert log.status == "success"
    assert log.results.completed_samples == len(calls)
    return taken


if __name__ == "__main__":
    n, concurrency = map(int, sys.argv[1:])
    calls = one_judge(n, "instant/judge")
    seconds(calls[:20], concurrency)
    print(seconds(calls, concurrency))
