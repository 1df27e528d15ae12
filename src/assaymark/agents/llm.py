"""A reply as a decision: whatever came back is a record, and only what has the right form is an order."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final, cast

from assaymark.engine.calls import CallSpec, Message, Reply, Text
from assaymark.engine.providers.http_agent import AgentRequest, is_outside
from assaymark.errors import InputError
from assaymark.portfolio.orders import audit, fee_of, prices_of, settle
from assaymark.prompting.context import Block, material_blocks
from assaymark.prompting.fences import PromptTemplate, fence, prompt_template
from assaymark.prompting.texts import Rejected, flagged, shown, strict_reply
from assaymark.protocol import AgentSpec
from assaymark.records import (
    JSON,
    Action,
    ActionKind,
    Agent,
    CallFacts,
    Context,
    Decision,
    Provenance,
    Rationale,
    canonical_json,
)

# An agent's reply as orders and reasons: parsed strictly, recorded whatever it is, never guessed at.


MOST_CHARACTERS: Final = 200_000
"""A longer reply is invalid unread."""
MOST_RATIONALE: Final = 40_000
"""A rationale may have at most this many characters."""
MOST_ORDERS: Final = 50
"""A reply may give at most this many orders."""
LARGEST: Final = 1e12
"""No quantity is larger."""

SIDES: Final = ("buy", "sell", "short", "cover", "close")

_REQUIRED = ("orders", "rationale")
_OPTIONAL = ("confidence", "usage", "model", "fingerprint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply that has the form that was asked for.

    ``rejected`` says in words which of its orders were not taken, and why; the others stand. The last four are what an
    agent outside reports of itself.
    """

    orders: tuple[Action, ...]
    rationale: str
    confidence: float | None = None
    rejected: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Unusable:
    """A reply that has not, and why: a short line with at most a few printable characters of the reply."""

    reason: str


def reply_schema() -> dict[str, JSON]:
    """The JSON schema of a reply, in the subset that providers with structured output accept.

    All keys are required there; `parse_answer` also takes a reply without a confidence, and an order without a
    quantity where it closes a position.
    """
    order: dict[str, JSON] = {
        "instrument": {"type": "string"},
        "side": {"type": "string", "enum": list(SIDES)},
        "quantity": {"type": ["number", "null"]},
    }
    return _object(
        {
            "orders": {"type": "array", "items": _object(order)},
            "rationale": {"type": "string"},
            "confidence": {"type": ["number", "null"]},
        }
    )


def _object(properties: dict[str, JSON]) -> dict[str, JSON]:
    """The schema of an object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parse_answer(text: str, instruments: Collection[str]) -> Answer | Unusable:
    """What an agent's reply says, or why it says nothing.

    The whole reply must be one JSON object in the form of `reply_schema`, alone or in one code fence; else it is
    unusable as a whole. An order for an instrument that is not offered, or without a positive finite quantity, is
    rejected by itself and recorded. Nothing in ``text`` can make this raise.
    """
    if len(text) > MOST_CHARACTERS:
        return Unusable(f"longer than {MOST_CHARACTERS} characters (got {len(text)})")
    try:
        return _checked(strict_reply(text), frozenset(instruments))
    except Rejected as exc:
        return Unusable(str(exc))


def _checked(raw: JSON, instruments: frozenset[str]) -> Answer:
    """The parts of a reply, each checked."""
    if not isinstance(raw, dict):
        raise Rejected(f"not a JSON object (got {type(raw).__name__})")
    _check_keys(raw, _REQUIRED, _OPTIONAL, "keys")
    taken, rejected = _orders(raw["orders"], instruments)
    usage = _usage(raw.get("usage"))
    return Answer(
        orders=taken,
        rationale=_rationale(raw["rationale"]),
        confidence=_confidence(raw.get("confidence")),
        rejected=rejected,
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        model=_word(raw.get("model"), "model"),
        fingerprint=_word(raw.get("fingerprint"), "fingerprint"),
    )


def _check_keys(raw: Mapping[str, Any], required: tuple[str, ...], optional: tuple[str, ...], what: str) -> None:
    """Exactly these keys."""
    if missing := [key for key in required if key not in raw]:
        raise Rejected(f"{what} are missing: {', '.join(map(shown, missing))}")
    if extra := [key for key in raw if key not in required and key not in optional]:
        raise Rejected(f"{what} are unknown: {', '.join(map(shown, extra[:3]))}")


def _rationale(raw: JSON) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise Rejected(f"rationale must be a text that says something (got {shown(raw)})")
    if len(raw) > MOST_RATIONALE:
        raise Rejected(f"rationale is longer than {MOST_RATIONALE} characters (got {len(raw)})")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Rejected("rationale holds half of a surrogate pair")
    return raw


def _confidence(raw: JSON) -> float | None:
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not 0 <= raw <= 1:
        raise Rejected(f"confidence must be a number from 0 to 1 (got {shown(raw)})")
    return float(raw)


def _orders(raw: JSON, instruments: frozenset[str]) -> tuple[tuple[Action, ...], tuple[str, ...]]:
    """The orders that are taken, and what is said of the others."""
    if not isinstance(raw, list) or len(raw) > MOST_ORDERS:
        raise Rejected(f"orders must be a list of at most {MOST_ORDERS} (got {shown(raw)})")
    taken: list[Action] = []
    rejected: list[str] = []
    for number, entry in enumerate(raw, start=1):
        if not isinstance(entry, dict):
            raise Rejected(f"order {number} must be an object (got {shown(entry)})")
        _check_keys(entry, ("instrument", "side"), ("quantity",), f"order {number}: keys")
        reason = _refusal(entry, instruments)
        if reason is None:
            taken.append(_order(entry))
        else:
            rejected.append(f"order {number}: {reason}")
    return tuple(taken), tuple(rejected)


def _refusal(entry: Mapping[str, Any], instruments: frozenset[str]) -> str | None:
    """Why one order is not taken; None if it is."""
    if not isinstance(entry["instrument"], str) or entry["instrument"] not in instruments:
        return f"instrument {shown(entry['instrument'])} is not offered"
    if not isinstance(entry["side"], str) or entry["side"] not in SIDES:
        return f"side must be one of {', '.join(SIDES)} (got {shown(entry['side'])})"
    quantity = entry.get("quantity")
    if entry["side"] == "close":
        return None if quantity is None else f"close takes no quantity (got {shown(quantity)})"
    if isinstance(quantity, bool) or not isinstance(quantity, (int, float)):
        return f"quantity must be a number (got {shown(quantity)})"
    if not 0 < quantity <= LARGEST or not math.isfinite(quantity):
        return f"quantity must be above 0 and at most {LARGEST:g} (got {shown(quantity)})"
    return None


def _order(entry: Mapping[str, Any]) -> Action:
    quantity = entry.get("quantity")
    kind = cast(ActionKind, entry["side"])
    return Action(instrument=entry["instrument"], kind=kind, quantity=None if quantity is None else float(quantity))


def _usage(raw: JSON) -> dict[str, int]:
    """Token counts that an agent outside reports; anything that is no count is left out of the record."""
    if not isinstance(raw, dict):
        return {}
    named = {name: raw.get(name) for name in ("input_tokens", "output_tokens")}
    return {name: value for name, value in named.items() if type(value) is int and 0 <= value < 10**12}


def _word(raw: JSON, what: str) -> str | None:
    if raw is None:
        return None
    if not isinstance(raw, str) or len(raw) > 200 or not raw.isprintable():
        raise Rejected(f"{what} must be a short printable text (got {shown(raw)})")
    return raw


# A context as the call that an agent is asked by.


TEMPLATE: Final = "agent-v1.txt"
"""The prompt template in use."""


def agent_template(name: str = TEMPLATE) -> PromptTemplate:
    """A template for agents; seasons have one of their own."""
    return prompt_template("assaymark.agents", name)


def task_text() -> str:
    """The task in words: the ``prompt`` of every context that a study cuts for itself."""
    return agent_template().part("task")


def agent_texts(template: str = TEMPLATE) -> dict[str, str]:
    """Every text that the agents' prompts are made from, by name: what a plan hash has to cover."""
    return {template: agent_template(template).text, "schema of an agent": _schema().text}


@cache
def _schema() -> Text:
    return Text.of(json.dumps(reply_schema(), indent=1))


@cache
def _system(template: str) -> Message:
    return Message("system", (Text.of(agent_template(template).filled("system", schema=_schema().text)),))


def prompt_of(context: Context) -> Message:
    """The material as agents read it: the same bytes for the same context, whoever is asked."""
    blocks = "\n\n".join(fence(label, content) for label, content in material_blocks(context))
    return Message("user", (Text.of(agent_template().filled("material", blocks=blocks)),))


def envelope_of(context: Context) -> Message:
    """The context as an agent outside is given it: one JSON object with the reply schema beside it."""
    request = AgentRequest(context=context, reply_schema=reply_schema())
    return Message("user", (Text.of(canonical_json(request)),))


def agent_call(spec: AgentSpec, message: Message, *, template: str = TEMPLATE, trial: int = 1) -> CallSpec:
    """The call that asks an agent about one context."""
    outside = is_outside(spec.model)
    return CallSpec(
        model=spec.model,
        messages=(message,) if outside else (_system(template), message),
        template="" if outside else agent_template(template).sha256,
        trial=trial,
        seed=spec.seed,
        temperature=spec.temperature,
        effort=spec.effort,
        schema=None if outside else _schema(),
        args=dict(spec.args),
    )


# What an agent of a season is asked with: the material of a day, in parts that the agents of that day share.


SEASON_TEMPLATE: Final = "season-v1.txt"
"""The prompt template in use."""


@cache
def _head() -> Text:
    return Text.of(agent_template(SEASON_TEMPLATE).part("material"))


def season_texts() -> dict[str, str]:
    """Every text that the prompts of a season are made from, by name: what a plan hash has to cover."""
    return agent_texts(SEASON_TEMPLATE)


def fenced(block: Block) -> Text:
    """One section of the material with its fence and digest, made once for all agents that are shown it."""
    return Text.of(fence(*block))


def season_message(blocks: Sequence[Text]) -> Message:
    """The material of one agent: the sections of its context in their order."""
    return Message("user", (_head(), *blocks))


def season_call(spec: AgentSpec, context: Context, message: Message, *, trial: int = 1) -> CallSpec:
    """The call that asks an agent of a season about one day.

    An agent outside is sent the context as JSON, as in a study; see `envelope_of`.
    """
    shown = envelope_of(context) if is_outside(spec.model) else message
    return agent_call(spec, shown, template=SEASON_TEMPLATE, trial=trial)


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
    """An agent of a study: any model that the engine can ask."""

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
