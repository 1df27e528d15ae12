"""Who decides. Here: rule-based reference agents, which need no key and always decide alike.

An agent is handed a `Context` and nothing else: it cannot reach a price table, let alone what happened next. Each
agent is a pure function from an `Observation` to a `Composition`; `ReferenceAgent.decide` turns that into a record.
"""

from __future__ import annotations

from assaymark.agents.composers import agent_argument_problems, reference_agents
from assaymark.agents.composition import Composition
from assaymark.agents.date_probe import MODEL as DATER
from assaymark.agents.date_probe import Dater
from assaymark.agents.llm import LLMAgent, Place
from assaymark.agents.mandate import Mandate, read_mandate
from assaymark.agents.observation import Asset, Observation, Trailing, observe
from assaymark.agents.reference import REFERENCE_AGENTS, ReferenceAgent, reference_agent

__all__ = [
    "DATER",
    "REFERENCE_AGENTS",
    "Asset",
    "Composition",
    "Dater",
    "LLMAgent",
    "Mandate",
    "Observation",
    "Place",
    "ReferenceAgent",
    "Trailing",
    "agent_argument_problems",
    "observe",
    "read_mandate",
    "reference_agent",
    "reference_agents",
]
