"""A reply as a decision: whatever came back is a record, and only what has the right form is an order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from assaymark.agents.prompts import agent_call
from assaymark.agents.replies import Answer, Unusable, parse_answer
from assaymark.engine.calls import CallSpec, Message, Reply
from assaymark.errors import InputError
from assaymark.portfolio.orders import audit, fee_of, prices_of, settle
from assaymark.prompting.texts import flagged
from assaymark.protocol import AgentSpec
from assaymark.records import Agent, CallFacts, Context, Decision, Provenance, Rationale

FORMAT: Final = "orders-v1"
"""The format that records of these agents carry."""

NOT_USABLE: Final = ("invalid-reply", "refused", "no-answer")
"""Flags of decisions that hold no orders and no reasons, because none came back in the form that was asked for."""

ABSENT: Final = "absent"
"""Flag, beside ``no-answer``, of a decision of an agent that could not be asked: nobody was there."""

REJECTED: Final = "rejected-order"
"""Flag of a decision some of whose orders could not be taken."""

BREACH: Final = "constraint-breach"
"""Flag of a decision whose orders break a limit; what the judges make of that is measured."""

_SHORTEST_S = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a decision stands in a study: its record id is made of these and of the agent's name."""

    study: str
    regime: str
    number: int
    context_id: str

    def record_id(self, agent: str) -> str:
        """The id of an agent's record here."""
        return f"{self.study}-{self.regime}-{self.number:03d}-{agent}"

    @property
    def episode(self) -> str:
        """The question that all agents answer here."""
        return f"{self.study}-{self.regime}-{self.number:03d}"


@dataclass(frozen=True, slots=True)
class LLMAgent:
    """An agent of a study: any model that the engine can ask.

    >>> agent = LLMAgent(AgentSpec(name="one", family="maker", model="reference/steward"))
    >>> agent.spec.name
    'one'
    """

    spec: AgentSpec

    def call(self, message: Message) -> CallSpec:
        """The call about one context; see `agent_call`."""
        return agent_call(self.spec, message)

    def decide(
        self,
        context: Context,
        place: Place,
        reply: Reply,
        *,
        key: str,
        attempts: int = 1,
        cost_usd: float | None = None,
    ) -> Decision:
        """What an agent's reply decides.

        A refusal, a failure and a reply of another form are decisions without orders, flagged (`NOT_USABLE`) and with
        the reason under ``missing``. Orders that cannot be taken are named there too. Orders that break a limit are
        taken and flagged.

        Parameters
        ----------
        context : Context
        place : Place
        reply : Reply
        key : str
            The call key, under which the ledger keeps the raw reply.
        attempts : int
            How many attempts it took.
        cost_usd : float, optional
            What the reply cost; None where that is not known.
        """
        answer = _read(reply, context)
        seconds = reply.seconds if reply.seconds is not None else None
        flags, missing = _flags(answer, reply, context)
        found = answer if isinstance(answer, Answer) else None
        made = Decision(
            record_id=place.record_id(self.spec.name),
            episode_id=place.episode,
            step=1,
            cluster=place.regime,
            decided_at=context.cutoff + timedelta(seconds=_SHORTEST_S),
            agent=self._identity(reply, found),
            context_id=place.context_id,
            actions=found.orders if found else (),
            rationales=(Rationale(text=found.rationale, kind="summary"),) if found else (),
            confidence=found.confidence if found else None,
            call=CallFacts(
                seconds=seconds,
                timing_source="absent" if seconds is None else "measured",
                input_tokens=_first(found.input_tokens if found else None, reply.input_tokens),
                output_tokens=_first(found.output_tokens if found else None, reply.output_tokens),
                cost_usd=cost_usd,
                attempts=attempts,
                raw_object=key,
            ),
            format=FORMAT,
            provenance=Provenance(source="assaymark study"),
            flags=flags,
            missing=missing,
        )
        return flagged(made)

    def _identity(self, reply: Reply, found: Answer | None) -> Agent:
        """The agent as its records name it, with the provider's own word for who answered."""
        params = {
            name: value
            for name, value in (
                ("seed", self.spec.seed),
                ("temperature", self.spec.temperature),
                ("effort", self.spec.effort),
                *self.spec.args.items(),
            )
            if value is not None
        }
        fingerprint = reply.fingerprint or (found.fingerprint if found else None)
        return Agent(
            id=self.spec.name,
            family=self.spec.family,
            model=self.spec.model,
            fingerprint=fingerprint or reply.model,
            params=params,
        )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _read(reply: Reply, context: Context) -> Answer | Unusable:
    if reply.finish == "failed":
        return Unusable(reply.text[:300])
    if reply.finish == "refusal":
        return Unusable("the model refused")
    return parse_answer(reply.text, [item.id for item in context.instruments])


def _flags(answer: Answer | Unusable, reply: Reply, context: Context) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags and reasons of a decision."""
    if isinstance(answer, Unusable):
        kind = {"failed": "no-answer", "refusal": "refused"}.get(reply.finish, "invalid-reply")
        return (kind,), (answer.reason,)
    flags = [REJECTED] if answer.rejected else []
    broken = breaches(answer, context)
    if broken:
        flags.append(BREACH)
    return tuple(flags), answer.rejected


def breaches(answer: Answer, context: Context) -> tuple[str, ...]:
    """The rules that orders break, by arithmetic; those that cannot be settled at all break ``settlement``."""
    if context.portfolio is None:
        return ()
    try:
        after = settle(context.portfolio, prices_of(context), answer.orders, fee_bps=fee_of(context.constraints))
    except (InputError, ValueError, OverflowError):  # amounts beyond what a float holds sum to no number
        return ("settlement",)
    return tuple(check.rule for check in audit(after, context.constraints) if not check.kept)
