"""Reference agents: rule-based composers that read the rendered prompt, compute, and write a rationale of their own.

They answer the same calls, in the same reply format and through the same parser as any model, and know nothing but the
prompt. What is planted in them is documented with each, so that a study of them has known answers.
"""

from __future__ import annotations

from assaymark.agents.composers.models import ReferenceAgent, agent_argument_problems, reference_agents

__all__ = ["ReferenceAgent", "agent_argument_problems", "reference_agents"]
