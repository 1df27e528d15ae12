"""Who decides: agents are asked by calls like any other model, and whatever comes back becomes a record.

An agent is handed a `Context` and nothing else: it cannot reach a price table, let alone what happened next. A language
model and a reference agent get it as a prompt, an agent outside as JSON (`assaymark.agents.llm`); `LLMAgent` makes
the call and turns its reply into a `Decision`. Reference agents are rule-based models that read the same prompt
(`assaymark.agents.reference`), and control cells are texts made by rules on the same cycles
(`assaymark.agents.controls`).
`Dater` is the reference model of the date probe, which asks whether sanitised material can still be dated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.agents.llm import MODEL as DATER
    from assaymark.agents.llm import Dater, LLMAgent, Place
    from assaymark.agents.reference import agent_argument_problems, reference_agents

__all__ = ["DATER", "Dater", "LLMAgent", "Place", "agent_argument_problems", "reference_agents"]

__getattr__ = exported(__name__)
