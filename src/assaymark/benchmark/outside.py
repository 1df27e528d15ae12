"""Agents of one's own in the benchmark: a Python callable, or whatever answers at an address.

They are sent what a study sends them, a context as JSON, whose prompt is that of the stage or the question. What they
answer is read like any other reply: JSON of the schema that comes with the request, or lines as the prompt asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Final

from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.engine.models.exchange import AgentRequest
from assaymark.protocol import AgentSpec
from assaymark.records import JSON, Context, canonical_json

NEUTRAL_DAY: Final = date(2000, 1, 3)
"""The day of a request whose prompt states none."""

ANSWER_SCHEMA: Final[Mapping[str, JSON]] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}
"""The answer to a question: what the prompt asks to be written after ``ANSWER:``."""

_CLOSE: Final = time(21, 0, tzinfo=UTC)


def outside_call(
    agent: AgentSpec, prompt: str, reply_schema: Mapping[str, JSON], template: str, day: date = NEUTRAL_DAY
) -> CallSpec:
    """The call that puts a prompt to an agent of its own.

    Parameters
    ----------
    agent : AgentSpec
    prompt : str
        The text that any other model would be sent.
    reply_schema : mapping
        JSON Schema of the answer.
    template : str
        sha256 of the prompt's template.
    day : date
        Of the decision; nothing in the prompt is later than its close.

    Examples
    --------
    >>> agent = AgentSpec(name="mine", family="mine", model="python/mine.agents:decide")
    >>> "ANSWER" in outside_call(agent, "Say ANSWER: yes", ANSWER_SCHEMA, "0" * 64).messages[0].text
    True
    """
    context = Context(
        completeness="complete",
        cutoff=datetime.combine(day, _CLOSE),
        cutoff_source="the close of the decision day",
        prompt=prompt,
    )
    request = AgentRequest(context=context, reply_schema=reply_schema)
    return CallSpec(
        model=agent.model,
        messages=(Message("user", (Text.of(canonical_json(request)),)),),
        template=template,
        seed=agent.seed,
        args=dict(agent.args),
    )
