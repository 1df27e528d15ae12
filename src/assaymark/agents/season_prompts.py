"""What an agent of a season is asked with: the material of a day, in parts that the agents of that day share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from string import Template
from typing import Final

from assaymark.agents.prompts import agent_call, envelope_of
from assaymark.agents.replies import reply_schema
from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.engine.models.exchange import is_outside
from assaymark.prompting.fences import fence
from assaymark.prompting.material import Block
from assaymark.protocol import AgentSpec
from assaymark.records import Context

TEMPLATE: Final = "season-v1.txt"
"""The prompt template in use."""

_PART = re.compile(r"^=== ([a-z]+) ===\n", re.MULTILINE)


@cache
def _template() -> str:
    return (files("assaymark.agents") / "templates" / TEMPLATE).read_text(encoding="utf-8")


@cache
def _parts() -> dict[str, str]:
    found = _PART.split(_template())[1:]
    return {name: text.rstrip("\n") for name, text in zip(found[::2], found[1::2], strict=True)}


@cache
def _schema() -> Text:
    return Text.of(json.dumps(reply_schema(), indent=1))


@cache
def _system() -> Message:
    return Message("system", (Text.of(Template(_parts()["system"]).substitute(schema=_schema().text)),))


@cache
def _digest() -> str:
    return Text.of(_template()).sha256


@cache
def _head() -> Text:
    return Text.of(_parts()["material"])


def season_texts() -> dict[str, str]:
    """Every text that the prompts of a season are made from, by name: what a plan hash has to cover.

    >>> sorted(season_texts())
    ['schema of an agent', 'season-v1.txt']
    """
    return {TEMPLATE: _template(), "schema of an agent": _schema().text}


def fenced(block: Block) -> Text:
    """One section of the material with its fence and digest, made once for all agents that are shown it."""
    return Text.of(fence(*block))


def season_message(blocks: Sequence[Text]) -> Message:
    """The material of one agent: the sections of its context in their order."""
    return Message("user", (_head(), *blocks))


def season_call(spec: AgentSpec, context: Context, message: Message, *, trial: int = 1) -> CallSpec:
    """The call that asks an agent of a season about one day.

    An agent outside is sent the context as JSON, as in a study; see `envelope_of`.

    Parameters
    ----------
    spec : AgentSpec
    context : Context
    message : Message
        `season_message` of the sections of that context.
    trial : int
        Counts replicates on identical input, from 1.
    """
    if is_outside(spec.model):
        return replace(agent_call(spec, envelope_of(context)), trial=trial)
    return CallSpec(
        model=spec.model,
        messages=(_system(), message),
        template=_digest(),
        trial=trial,
        seed=spec.seed,
        temperature=spec.temperature,
        effort=spec.effort,
        schema=_schema(),
        args=dict(spec.args),
    )
