"""The calls that the benches of the engine make, and a model that answers at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from assaymark.engine import CallSpec, Message, Reply, Text
from assaymark.records import JSON

JUDGES = 5


class Instant:
    """A model that answers at once with a reply of a judge's usual size."""

    async def complete(self, call: CallSpec) -> Reply:
        scores = ",".join(
            f'"dimension_{i}": {{"score": {i}, "why": "{call.trial} stated, sized, sourced"}}' for i in range(5)
        )
        return Reply(text=f'{{"order": {call.order}, {scores}}}', model=call.model, seconds=0.0)


def judge_calls(n: int) -> Iterator[CallSpec]:
    """``n`` calls in which five judges read the same trajectories under the same rubric."""
    system = Message("system", (Text.of("You grade reasoning, not luck. " * 40),))
    rubric, template = Text.of("Anchor: what a 3 looks like. " * 100), Text.of("template").sha256
    for number in range(-(-n // JUDGES)):
        messages = (system, Message("user", (rubric, Text.of(f"Trajectory {number}. I buy because it fell. " * 60))))
        for judge in range(min(JUDGES, n - number * JUDGES)):
            yield CallSpec(model=f"reference/judge{judge}", messages=messages, template=template, order=number)


def one_judge(n: int, model: str, args: Mapping[str, JSON] | None = None) -> list[CallSpec]:
    """Return the same prompts for one judge; the seeds make its calls distinct."""
    return [replace(call, model=model, seed=seed, args=args or {}) for seed, call in enumerate(judge_calls(n))]
