"""What an agent of a season is asked with: the material of a day, in parts that the agents of that day share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from assaymark.agents.prompts import agent_call, agent_template, agent_texts, envelope_of
from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.engine.models.exchange import is_outside
from assaymark.prompting.fences import fence
from assaymark.prompting.material import Block
from assaymark.protocol import AgentSpec
from assaymark.records import Context

TEMPLATE: Final = "season-v1.txt"
"""The prompt template in use."""


@cache
def _head() -> Text:
    return Text.of(agent_template(TEMPLATE).part("material"))


def season_texts() -> dict[str, str]:
    """Every text that the prompts of a season are made from, by name: what a plan hash has to cover.

    >>> sorted(season_texts())
    ['schema of an agent', 'season-v1.txt']
    """
    return agent_texts(TEMPLATE)


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
    shown = envelope_of(context) if is_outside(spec.model) else message
    return agent_call(spec, shown, template=TEMPLATE, trial=trial)
