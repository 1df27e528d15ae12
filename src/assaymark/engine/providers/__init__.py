"""Models by name. Clients live here; reference models live with what they imitate, and are registered from above."""

from __future__ import annotations

from assaymark.engine.providers.http_agent import (
    AgentFailure,
    AgentRequest,
    HttpAgent,
    MarketContext,
    QuestionContext,
    external_argument_problems,
    is_outside,
    patience,
    reachable,
)
from assaymark.engine.providers.python_agent import PythonAgent, load_agent
from assaymark.engine.providers.registry import (
    Models,
    check_ready,
    external_providers,
    provider_argument_problems,
    providers,
)

__all__ = [
    "AgentFailure",
    "AgentRequest",
    "HttpAgent",
    "MarketContext",
    "Models",
    "PythonAgent",
    "QuestionContext",
    "check_ready",
    "external_argument_problems",
    "external_providers",
    "is_outside",
    "load_agent",
    "patience",
    "provider_argument_problems",
    "providers",
    "reachable",
]
