"""Models by name. Clients live here; reference models live with what they imitate, and are registered from above."""

from __future__ import annotations

from assaymark.engine.models.exchange import (
    AgentFailure,
    AgentRequest,
    MarketContext,
    QuestionContext,
    external_argument_problems,
    is_outside,
    patience,
)
from assaymark.engine.models.http_agent import HttpAgent, reachable
from assaymark.engine.models.providers import (
    Models,
    check_ready,
    external_providers,
    provider_argument_problems,
    providers,
)
from assaymark.engine.models.python_agent import PythonAgent, load_agent
from assaymark.engine.models.registry import Registry, resolve

__all__ = [
    "AgentFailure",
    "AgentRequest",
    "HttpAgent",
    "MarketContext",
    "Models",
    "PythonAgent",
    "QuestionContext",
    "Registry",
    "check_ready",
    "external_argument_problems",
    "external_providers",
    "is_outside",
    "load_agent",
    "patience",
    "provider_argument_problems",
    "providers",
    "reachable",
    "resolve",
]
