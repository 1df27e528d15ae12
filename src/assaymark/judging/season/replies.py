"""Replies of the judges of a season: their forms and schemas, and what becomes of each reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, get_args

from assaymark.engine.calls import Reply
from assaymark.judging.replies import Invalid, members, object_schema, parsed_by, text_of, whole, word_of
from assaymark.judging.season.plans import ScoringPlan
from assaymark.prompting.texts import Rejected, shown, token_count
from assaymark.records import JSON, record

ClaimState = Literal["supported", "contradicted", "not_verifiable"]
LookaheadCheck = Literal["pass", "fail"]
ReplyState = Literal["ok", "invalid", "refused", "truncated", "failed"]

HIGHEST: Final = 100
MOST_CHARACTERS: Final = 400_000
"""A longer reply is invalid unread."""
MOST_CLAIMS: Final = 300
MOST_QUOTED: Final = 1_000
"""Maximum number of characters in a quotation, a reason, a verdict or a summary."""
MOST_FIELDS: Final = 24
MOST_NOTE_TOKENS: Final = 1_500
"""Maximum number of words that a judge may carry from one part of a horizon to the next."""

_STATES: Final[tuple[ClaimState, ...]] = get_args(ClaimState)
_CHECKS: Final[tuple[LookaheadCheck, ...]] = get_args(LookaheadCheck)
_POINTS: Final[JSON] = {"type": "integer", "description": f"0 to {HIGHEST}"}
_TEXT: Final[JSON] = {"type": "string"}

A = TypeVar("A")


@record
class HorizonClaim:
    """One line of a judge's claims ledger: a quotation, the step it is from, what the data say, the fields used."""

    quote: str
    step: int
    state: ClaimState
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonAnswer:
    """A valid reply on a horizon (or a part of one): a grade from 0 to 100 for every part of both axes.

    ``notes`` is None where none were asked for.
    """

    reasoning: Mapping[str, int]
    evidence: Mapping[str, int]
    data_reliability: int
    claims: tuple[HorizonClaim, ...]
    lookahead_check: LookaheadCheck
    lookahead_reason: str
    verdict: str
    summary: str
    notes: str | None = None


@dataclass(frozen=True, slots=True)
class OutcomeAnswer:
    """A valid reply to the outcome call."""

    outcome: int
    reason: str


@dataclass(frozen=True, slots=True)
class Read(Generic[A]):
    """What became of a reply: its answer where ``state`` is ok, else the reason in words."""

    state: ReplyState
    answer: A | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call asked for: the parts of a scoring plan, the numbers of the steps shown, and whether notes."""

    plan: ScoringPlan
    first: int
    last: int
    notes: bool = False


def horizon_schema(plan: ScoringPlan, *, notes: bool = False) -> dict[str, JSON]:
    """The JSON schema of a reply on a horizon; with ``notes`` that on a part that others follow.

    Ranges stand in words: not every provider's structured output knows ``minimum``. The parser holds them.
    """
    claim: dict[str, JSON] = {
        "quote": _TEXT,
        "step": {"type": "integer"},
        "state": {"type": "string", "enum": list(_STATES)},
        "fields": {"type": "array", "items": _TEXT},
    }
    properties: dict[str, JSON] = {
        "reasoning": object_schema({part.name: _POINTS for part in plan.reasoning}),
        "evidence": object_schema({part.name: _POINTS for part in plan.evidence}),
        "data_reliability": _POINTS,
        "claims": {"type": "array", "items": object_schema(claim)},
        "lookahead_check": {"type": "string", "enum": list(_CHECKS)},
        **dict.fromkeys(("lookahead_reason", "verdict", "summary"), _TEXT),
    }
    return object_schema({**properties, "notes": _TEXT} if notes else properties)


def outcome_schema() -> dict[str, JSON]:
    """The JSON schema of a reply to the outcome call."""
    return object_schema({"outcome": _POINTS, "reason": _TEXT})


def read_horizon_reply(reply: Reply, asked: Asked) -> Read[HorizonAnswer]:
    """The outcome of a horizon call; never raises."""
    return read_reply(reply, parse_horizon(reply.text, asked))


def read_outcome_reply(reply: Reply) -> Read[OutcomeAnswer]:
    """The outcome of an outcome call; never raises."""
    return read_reply(reply, parse_outcome(reply.text))


def read_reply(reply: Reply, parsed: A | Invalid) -> Read[A]:
    """A reply with what its text was parsed as: a refusal or a cut reply is that, whatever text came with it."""
    if reply.finish == "refusal":
        return Read("refused", reason="the model refused to answer")
    if reply.finish == "length":
        return Read("truncated", reason="cut off at the length limit")
    if reply.finish == "failed":
        why = f"the model gave no answer: {shown(reply.text)}" if reply.text else "no answer came"
        return Read("failed", reason=why)
    return Read("invalid", reason=parsed.reason) if isinstance(parsed, Invalid) else Read("ok", parsed)


def parse_horizon(text: str, asked: Asked) -> HorizonAnswer | Invalid:
    """A judge's reply on a horizon, or why it is invalid; claims about steps that were not shown make it invalid."""

    def check(raw: JSON) -> HorizonAnswer:
        # The order of the keys is the order in which a reply is checked, and so which problem is recorded.
        keys = ["reasoning", "evidence", "data_reliability", "claims"]
        keys += ["lookahead_check", "lookahead_reason", "verdict", "summary", *(["notes"] if asked.notes else [])]
        found = object_of(raw, keys)
        axes: list[dict[str, int]] = []
        for axis, parts in (("reasoning", asked.plan.reasoning), ("evidence", asked.plan.evidence)):
            names = [part.name for part in parts]
            grades = object_of(found[axis], names, f"parts of {axis}")
            axes.append({name: whole(grades[name], name, 0, HIGHEST) for name in names})
        reliability = whole(found["data_reliability"], "data_reliability", 0, HIGHEST)
        claims = found["claims"]
        if not isinstance(claims, list):
            raise Rejected(f"claims must be a list (got {shown(claims)})")
        if len(claims) > MOST_CLAIMS:
            raise Rejected(f"claims has {len(claims)} entries, at most {MOST_CLAIMS} are allowed")
        ledger = tuple(claim(one, f"claim {at}") for at, one in enumerate(claims, start=1))
        lookahead = word_of(found["lookahead_check"], _CHECKS, f"lookahead_check must be one of {', '.join(_CHECKS)}")
        why = text_of(found["lookahead_reason"], "lookahead_reason", MOST_QUOTED)
        lines = {}
        for what in ("verdict", "summary"):
            lines[what] = text_of(found[what], what, MOST_QUOTED).strip()
            if not lines[what] or any(ord(char) < 32 for char in lines[what]):
                raise Rejected(f"{what} must be one line of text (got {shown(found[what])})")
        notes = text_of(found["notes"], "notes", MOST_CHARACTERS) if asked.notes else None
        if notes is not None and (count := token_count(notes)) > MOST_NOTE_TOKENS:
            raise Rejected(f"notes has {count} words, at most {MOST_NOTE_TOKENS} are allowed")
        return HorizonAnswer(
            reasoning=axes[0],
            evidence=axes[1],
            data_reliability=reliability,
            claims=ledger,
            lookahead_check=lookahead,
            lookahead_reason=why,
            **lines,
            notes=notes,
        )

    def claim(raw: JSON, where: str) -> HorizonClaim:
        found = object_of(raw, ("quote", "step", "state", "fields"), f"{where}: keys")
        step = whole(found["step"], f"{where}: step", asked.first, asked.last)
        fields = found["fields"]
        if not isinstance(fields, list) or len(fields) > MOST_FIELDS:
            raise Rejected(f"{where}: fields must be a list of at most {MOST_FIELDS} (got {shown(fields)})")
        return HorizonClaim(
            quote=text_of(found["quote"], f"{where}: quote", MOST_QUOTED),
            step=step,
            state=word_of(found["state"], _STATES, f"{where}: state must be one of {', '.join(_STATES)}"),
            fields=tuple(text_of(one, f"{where}: field", MOST_QUOTED) for one in fields),
        )

    return parsed_by(text, check, MOST_CHARACTERS)


def parse_outcome(text: str) -> OutcomeAnswer | Invalid:
    """A judge's reply on the outcome, or why it is invalid."""

    def check(raw: JSON) -> OutcomeAnswer:
        found = object_of(raw, ("outcome", "reason"))
        return OutcomeAnswer(
            whole(found["outcome"], "outcome", 0, HIGHEST), text_of(found["reason"], "reason", MOST_QUOTED)
        )

    return parsed_by(text, check, MOST_CHARACTERS)


def object_of(raw: JSON, keys: Sequence[str], what: str = "keys") -> Mapping[str, Any]:
    """An object with exactly these keys."""
    where = "the reply" if what == "keys" else what
    return members(raw, keys, what, otherwise=f"{where} must be a JSON object (got {shown(raw)})")
