"""A context as the call that an agent is asked by."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from string import Template
from typing import Final

from assaymark.agents.replies import reply_schema
from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.engine.models.exchange import AgentRequest, is_outside
from assaymark.prompting.fences import fence
from assaymark.prompting.material import material_blocks
from assaymark.protocol import AgentSpec
from assaymark.records import Context, canonical_json

TEMPLATE: Final = "agent-v1.txt"
"""The prompt template in use."""

_PART = re.compile(r"^=== ([a-z]+) ===\n", re.MULTILINE)


@cache
def template_text() -> str:
    """The prompt template, as it enters the plan hash."""
    return (files("assaymark.agents") / "templates" / TEMPLATE).read_text(encoding="utf-8")


@cache
def _parts() -> dict[str, str]:
    found = _PART.split(template_text())[1:]
    return {name: text.rstrip("\n") for name, text in zip(found[::2], found[1::2], strict=True)}


def task_text() -> str:
    """The task in words: the ``prompt`` of every context that a study cuts for itself."""
    return _parts()["task"]


def agent_texts() -> dict[str, str]:
    """Every text that the agents' prompts are made from, by name: what a plan hash has to cover.

    >>> sorted(agent_texts())
    ['agent-v1.txt', 'schema of an agent']
    """
    return {TEMPLATE: template_text(), "schema of an agent": _schema().text}


@cache
def _schema() -> Text:
    return Text.of(json.dumps(reply_schema(), indent=1))


@cache
def _system() -> Message:
    return Message("system", (Text.of(Template(_parts()["system"]).substitute(schema=_schema().text)),))


@cache
def _template_digest() -> str:
    return Text.of(template_text()).sha256


def prompt_of(context: Context) -> Message:
    """The material as agents read it: the same bytes for the same context, whoever is asked."""
    blocks = "\n\n".join(fence(label, content) for label, content in material_blocks(context))
    return Message("user", (Text.of(Template(_parts()["material"]).substitute(blocks=blocks)),))


def envelope_of(context: Context) -> Message:
    """The context as an agent outside is given it: one JSON object with the reply schema beside it."""
    request = AgentRequest(context=context, reply_schema=reply_schema())
    return Message("user", (Text.of(canonical_json(request)),))


def agent_call(spec: AgentSpec, message: Message) -> CallSpec:
    """The call that asks an agent about one context.

    Parameters
    ----------
    spec : AgentSpec
    message : Message
        `prompt_of` the context, or `envelope_of` it for an agent outside; made once for all agents.
    """
    outside = is_outside(spec.model)
    return CallSpec(
        model=spec.model,
        messages=(message,) if outside else (_system(), message),
        template="" if outside else _template_digest(),
        seed=spec.seed,
        temperature=spec.temperature,
        effort=spec.effort,
        schema=None if outside else _schema(),
        args=dict(spec.args),
    )
