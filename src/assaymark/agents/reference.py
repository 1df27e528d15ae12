"""The reference agents as a set: how they are looked up, and how what they compose becomes a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from assaymark.agents import equal_weight, minimum_variance, momentum
from assaymark.agents.composition import Composition
from assaymark.agents.observation import Observation, observe
from assaymark.errors import UnknownNameError
from assaymark.records import JSON, Action, Agent, Context, Decision, Provenance, Rationale, content_id


@dataclass(frozen=True, slots=True)
class ReferenceAgent:
    """A rule-based agent: the same context always gives the same decision, for reasons it can state.

    ``compose`` is a pure function of the observation. ``version`` is part of the fingerprint that every record of the
    agent carries; it changes when the rules or the wording do.

    Examples
    --------
    >>> agent = reference_agent("equal-weight")
    >>> agent.identity.family, agent.identity.fingerprint
    ('ref-naive', 'reference/equal-weight@1')
    """

    name: str
    family: str
    compose: Callable[[Observation], Composition] = field(repr=False)
    version: int = 1

    @property
    def identity(self) -> Agent:
        """The agent as its records name it."""
        model = f"reference/{self.name}"
        return Agent(id=self.name, family=self.family, model=model, fingerprint=f"{model}@{self.version}")

    def decide(
        self,
        context: Context,
        *,
        record_id: str,
        episode_id: str,
        step: int,
        cluster: str,
        decided_at: datetime,
        format: str = "reference-v1",
        provenance: Provenance | None = None,
        context_id: str | None = None,
    ) -> Decision:
        """Decide on a context and say why.

        Parameters
        ----------
        context : Context
            All that the agent may use.
        record_id, episode_id, step, cluster, format, provenance
            Copied into the record; see `Decision`.
        decided_at : datetime
            When the decision is made. Anything in the context that is later is refused.
        context_id : str, optional
            The context's `content_id`, for a caller who has it already; computed otherwise.

        Raises
        ------
        InputError
            The context holds something from after ``decided_at``, or cannot be read.
        NotMeasurableError
            The context lacks what this agent computes with, or no book keeps its rules.
        """
        seen = observe(context, decided_at=decided_at)
        made = self.compose(seen)
        return Decision(
            record_id=record_id,
            episode_id=episode_id,
            step=step,
            cluster=cluster,
            decided_at=decided_at,
            agent=self.identity,
            context_id=context_id or content_id(context),
            actions=_actions(seen, made),
            rationales=(
                Rationale(text=made.summary, kind="summary"),
                Rationale(text=made.portfolio, kind="portfolio"),
                *(Rationale(text=text, kind="risk") for text in made.risks),
            ),
            confidence=made.confidence,
            stages=_stages(seen, made),
            format=format,
            provenance=provenance or Provenance(source="assaymark reference agent"),
        )


REFERENCE_AGENTS: Mapping[str, ReferenceAgent] = {
    agent.name: agent
    for agent in (
        ReferenceAgent("momentum", "ref-trend", momentum.compose),
        ReferenceAgent("minimum-variance", "ref-risk", minimum_variance.compose),
        ReferenceAgent("equal-weight", "ref-naive", equal_weight.compose),
    )
}
"""The reference agents by name. Each is a family of its own: they share no rule and no sentence."""


def reference_agent(name: str) -> ReferenceAgent:
    """The reference agent called ``name``.

    Raises
    ------
    UnknownNameError
        No reference agent has that name.

    Examples
    --------
    >>> reference_agent("momentum").family
    'ref-trend'
    """
    try:
        return REFERENCE_AGENTS[name]
    except KeyError:
        raise UnknownNameError("reference agent", name, list(REFERENCE_AGENTS)) from None


def _actions(seen: Observation, made: Composition) -> tuple[Action, ...]:
    """Target weights, largest first, then the closing of every position that has none."""
    order = np.argsort(-made.weights, kind="stable")
    targets = [
        Action(
            instrument=seen.assets[i].id,
            kind="target_weight",
            weight=round(float(made.weights[i]), 12),
            expected_return=round(made.forecast[i] / 100, 12) if made.forecast else None,
        )
        for i in order
        if made.weights[i] > 0
    ]
    kept = {action.instrument for action in targets}
    closed = [Action(instrument=name, kind="close") for name in sorted(seen.held) if name not in kept]
    return (*targets, *closed)


def _stages(seen: Observation, made: Composition) -> dict[str, JSON]:
    """The forecast, if the agent makes one: percent over its horizon, per holding and for the whole book."""
    if not made.forecast:
        return {}
    held = [i for i in range(len(seen.assets)) if made.weights[i] > 0]
    return {
        "forecast": {
            "portfolio_pct": made.book_forecast,
            "benchmark_pct": made.forecast[seen.base],
            "holdings": {seen.assets[i].id: made.forecast[i] for i in held},
        }
    }
