"""A context as the call that an agent is asked by."""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from assaymark.agents.replies import reply_schema
from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.engine.models.exchange import AgentRequest, is_outside
from assaymark.prompting.fences import fence
from assaymark.prompting.material import material_blocks
from assaymark.prompting.templates import PromptTemplate, prompt_template
from assaymark.protocol import AgentSpec
from assaymark.records import Context, canonical_json

TEMPLATE: Final = "agent-v1.txt"
"""The prompt template in use."""


def agent_template(name: str = TEMPLATE) -> PromptTemplate:
    """A template for agents; seasons have one of their own."""
    return prompt_template("assaymark.agents", name)


def task_text() -> str:
    """The task in words: the ``prompt`` of every context that a study cuts for itself."""
    return agent_template().part("task")


def agent_texts(template: str = TEMPLATE) -> dict[str, str]:
    """Every text that the agents' prompts are made from, by name: what a plan hash has to cover.

    >>> sorted(agent_texts())
    ['agent-v1.txt', 'schema of an agent']
    """
    return {template: agent_template(template).text, "schema of an agent": _schema().text}


@cache
def _schema() -> Text:
    return Text.of(json.dumps(reply_schema(), indent=1))


@cache
def _system(template: str) -> Message:
    return Message("system", (Text.of(agent_template(template).filled("system", schema=_schema().text)),))


def prompt_of(context: Context) -> Message:
    """The material as agents read it: the same bytes for the same context, whoever is asked."""
    blocks = "\n\n".join(fence(label, content) for label, content in material_blocks(context))
    return Message("user", (Text.of(agent_template().filled("material", blocks=blocks)),))


def envelope_of(context: Context) -> Message:
    """The context as an agent outside is given it: one JSON object with the reply schema beside it."""
    request = AgentRequest(context=context, reply_schema=reply_schema())
    return Message("user", (Text.of(canonical_json(request)),))


def agent_call(spec: AgentSpec, message: Message, *, template: str = TEMPLATE, trial: int = 1) -> CallSpec:
    """The call that asks an agent about one context.

    Parameters
    ----------
    spec : AgentSpec
    message : Message
        `prompt_of` the context, or `envelope_of` it for an agent outside; made once for all agents.
    template : str
        What the message was made with, and the instruction is.
    trial : int
        Counts replicates on identical input, from 1.
    """
    outside = is_outside(spec.model)
    return CallSpec(
        model=spec.model,
        messages=(message,) if outside else (_system(template), message),
        template="" if outside else agent_template(template).sha256,
        trial=trial,
        seed=spec.seed,
        temperature=spec.temperature,
        effort=spec.effort,
        schema=None if outside else _schema(),
        args=dict(spec.args),
    )
