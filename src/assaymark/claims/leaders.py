"""Who leads a dimension: an agent with a significant lead over every agent it met, which no drop takes away."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from assaymark.claims.evidence import Index
from assaymark.claims.rules import Rules


def leader_of(dimension: str, known: Index, rules: Rules) -> str | None:
    """The agent whose first place stands by evidence and under every drop; there is at most one.

    Its contrasts with all others are tested together, in a family of their own, so it can stand above agents from
    which the pair claims cannot tell it apart.
    """
    key: Hashable = ("leader", dimension, rules.evidence)
    if key not in known.memo:
        known.memo[key] = next((agent for agent in known.agents if _leads(dimension, agent, known, rules)), None)
    found: str | None = known.memo[key]
    return found


def levels_above(
    dimension: str, agent: str, others: Collection[str], family: str | None, known: Index
) -> list[str] | None:
    """Agents with a level at or above that of ``agent``, with all judges or without ``family``; None if unknown."""
    found = {name: known.level(dimension, name, family) for name in {agent, *others}}
    levels = {name: None if item is None else item.value for name, item in found.items()}
    own = levels[agent]
    if own is None or any(value is None for value in levels.values()):
        return None
    return sorted(name for name, value in levels.items() if name != agent and value is not None and value >= own)


def met_by(dimension: str, agent: str, known: Index) -> set[str]:
    """The agents that answered a question together with ``agent``; all others where nothing was paired."""
    others = {name for name in known.agents if name != agent}
    if not known.tested(dimension):
        return others
    return {other for other in others if known.contrast(dimension, agent, other).difference is not None}


def _leads(dimension: str, agent: str, known: Index, rules: Rules) -> bool:
    met = met_by(dimension, agent, known)
    if not met or not known.families:
        return False
    if known.tested(dimension):
        adjusted = known.first_adjusted(dimension, agent, rules.test)
        if any(adjusted[other] > rules.alpha for other in met):
            return False
    return all(levels_above(dimension, agent, met, family, known) == [] for family in (None, *known.families))
