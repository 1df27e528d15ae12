"""Replies of the judges of a season: parsed strictly, recorded whatever they are, never guessed at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, get_args

from assaymark.engine.calls import Reply
from assaymark.judging.replies import Invalid
from assaymark.judging.season.plans import ScoringPlan, SubComponent
from assaymark.prompting.texts import Rejected, shown, strict_reply, token_count
from assaymark.records import JSON, record

ClaimState = Literal["supported", "contradicted", "not_verifiable"]
LookaheadCheck = Literal["pass", "fail"]
ReplyState = Literal["ok", "invalid", "refused", "truncated", "failed"]

HIGHEST: Final = 100
MOST_CHARACTERS: Final = 400_000
"""A longer reply is invalid unread."""
MOST_CLAIMS: Final = 300
MOST_QUOTED: Final = 1_000
"""Characters of a quotation, a reason, a verdict or a summary, at most."""
MOST_FIELDS: Final = 24
MOST_NOTE_TOKENS: Final = 1_500
"""Whitespace tokens that a judge may carry from one part of a horizon to the next."""

_STATES: Final[tuple[ClaimState, ...]] = get_args(ClaimState)
_CHECKS: Final[tuple[LookaheadCheck, ...]] = get_args(LookaheadCheck)
_CLAIM_KEYS: Final = ("quote", "step", "state", "fields")
_KEYS: Final = (
    "reasoning",
    "evidence",
    "data_reliability",
    "claims",
    "lookahead_check",
    "lookahead_reason",
    "verdict",
    "summary",
)

A = TypeVar("A")


@record
class HorizonClaim:
    """One line of a judge's claims ledger: a quotation, the step it stands in, what the data say, the fields used."""

    quote: str
    step: int
    state: ClaimState
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonAnswer:
    """A reply on a horizon (or a part of one) that has exactly the form that was asked for.

    ``reasoning`` and ``evidence`` hold a whole number from 0 to 100 for every part of the axis. ``notes`` is None where
    none were asked for.
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
    """A reply of the outcome call."""

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


# --- the form -------------------------------------------------------------------------------------------------------


def horizon_schema(plan: ScoringPlan, *, notes: bool = False) -> dict[str, JSON]:
    """The JSON schema of a reply on a horizon; with ``notes`` that on a part that others follow.

    Ranges stand in words: not every provider's structured output knows ``minimum``. The parser holds them.
    """
    claim = {
        "quote": _text(),
        "step": {"type": "integer"},
        "state": {"type": "string", "enum": list(_STATES)},
        "fields": {"type": "array", "items": _text()},
    }
    properties: dict[str, JSON] = {
        "reasoning": _object({part.name: _points() for part in plan.reasoning}),
        "evidence": _object({part.name: _points() for part in plan.evidence}),
        "data_reliability": _points(),
        "claims": {"type": "array", "items": _object(claim)},
        "lookahead_check": {"type": "string", "enum": list(_CHECKS)},
        "lookahead_reason": _text(),
        "verdict": _text(),
        "summary": _text(),
    }
    return _object({**properties, "notes": _text()} if notes else properties)


def outcome_schema() -> dict[str, JSON]:
    """The JSON schema of a reply of the outcome call."""
    return _object({"outcome": _points(), "reason": _text()})


def _object(properties: Mapping[str, JSON]) -> dict[str, JSON]:
    """The schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _points() -> dict[str, JSON]:
    return {"type": "integer", "description": f"0 to {HIGHEST}"}


def _text() -> dict[str, JSON]:
    return {"type": "string"}


# --- what a reply amounts to ----------------------------------------------------------------------------------------


def read_horizon_reply(reply: Reply, asked: Asked) -> Read[HorizonAnswer]:
    """What a reply to a horizon call amounts to; nothing in it can make this raise."""
    return read_reply(reply, parse_horizon(reply.text, asked))


def read_outcome_reply(reply: Reply) -> Read[OutcomeAnswer]:
    """What a reply to an outcome call amounts to; nothing in it can make this raise."""
    return read_reply(reply, parse_outcome(reply.text))


def read_reply(reply: Reply, parsed: A | Invalid) -> Read[A]:
    """A reply with what its text was parsed as: a refusal or a cut reply is that, whatever text came with it."""
    if reply.finish == "refusal":
        return Read("refused", reason="the model refused to answer")
    if reply.finish == "length":
        return Read("truncated", reason="cut off at the length limit")
    if reply.finish == "failed":
        return Read(
            "failed", reason=f"the model gave no answer: {shown(reply.text)}" if reply.text else "no answer came"
        )
    return Read("invalid", reason=parsed.reason) if isinstance(parsed, Invalid) else Read("ok", parsed)


def parse_horizon(text: str, asked: Asked) -> HorizonAnswer | Invalid:
    """What a judge says about a horizon, or why it says nothing.

    The whole reply must be one JSON object, alone or in one code fence. Missing, extra and repeated keys,
    grades that are not whole numbers from 0 to 100, steps that were not shown and texts that are too long make the
    reply invalid as a whole.

    >>> from assaymark.judging.season.plans import load_scoring
    >>> parse_horizon('{"reasoning": {}}', Asked(load_scoring("v0.4"), 1, 5)).reason[:40]
    "keys are missing: 'evidence', 'data_reli"
    """
    return parsed_by(text, lambda raw: _horizon(raw, asked))


def parse_outcome(text: str) -> OutcomeAnswer | Invalid:
    """What a judge says about the outcome, or why it says nothing.

    >>> parse_outcome('{"outcome": 101, "reason": "well"}')
    Invalid(reason='outcome must be a whole number from 0 to 100 (got 101)')
    """
    return parsed_by(text, _outcome)


def parsed_by(text: str, check: Callable[[JSON], A]) -> A | Invalid:
    """A reply as strict JSON, alone or in one code fence, through a check that raises `Rejected`."""
    if len(text) > MOST_CHARACTERS:
        return Invalid(f"longer than {MOST_CHARACTERS} characters (got {len(text)})")
    try:
        return check(strict_reply(text))
    except Rejected as exc:
        return Invalid(str(exc))


def checked_object(raw: JSON, keys: Sequence[str], what: str = "keys") -> Mapping[str, Any]:
    """An object with exactly these keys."""
    if not isinstance(raw, dict):
        raise Rejected(f"{'the reply' if what == 'keys' else what} must be a JSON object (got {shown(raw)})")
    missing = [key for key in keys if key not in raw]
    if missing:
        raise Rejected(f"{what} are missing: {', '.join(map(shown, missing))}")
    extra = [key for key in raw if key not in keys]
    if extra:
        raise Rejected(f"{what} are unknown: {', '.join(map(shown, extra[:3]))}")
    return raw


def checked_points(raw: JSON, what: str) -> int:
    """A whole number from 0 to 100."""
    # bool is an int to Python, and 70.0 is equal to 70: neither is a whole number that somebody wrote.
    if type(raw) is not int or not 0 <= raw <= HIGHEST:
        raise Rejected(f"{what} must be a whole number from 0 to {HIGHEST} (got {shown(raw)})")
    return raw


def checked_text(raw: JSON, what: str, *, most: int = MOST_QUOTED) -> str:
    """Text of bounded length that UTF-8 can carry."""
    if not isinstance(raw, str):
        raise Rejected(f"{what} must be text (got {shown(raw)})")
    if len(raw) > most:
        raise Rejected(f"{what} has {len(raw)} characters, at most {most} are allowed")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Rejected(f"{what} holds half of a surrogate pair")
    return raw


def _horizon(raw: JSON, asked: Asked) -> HorizonAnswer:
    """The parts of a reply, each checked."""
    found = checked_object(raw, (*_KEYS, "notes") if asked.notes else _KEYS)
    return HorizonAnswer(
        reasoning=_axis(found["reasoning"], asked.plan.reasoning, "parts of reasoning"),
        evidence=_axis(found["evidence"], asked.plan.evidence, "parts of evidence"),
        data_reliability=checked_points(found["data_reliability"], "data_reliability"),
        claims=_claims(found["claims"], asked),
        lookahead_check=_word(found["lookahead_check"], _CHECKS, "lookahead_check"),
        lookahead_reason=checked_text(found["lookahead_reason"], "lookahead_reason"),
        verdict=_line(found["verdict"], "verdict"),
        summary=_line(found["summary"], "summary"),
        notes=_notes(found["notes"]) if asked.notes else None,
    )


def _outcome(raw: JSON) -> OutcomeAnswer:
    found = checked_object(raw, ("outcome", "reason"))
    return OutcomeAnswer(checked_points(found["outcome"], "outcome"), checked_text(found["reason"], "reason"))


def _axis(raw: JSON, parts: Sequence[SubComponent], what: str) -> dict[str, int]:
    """A grade for each part of an axis, in the order of the plan."""
    names = [part.name for part in parts]
    found = checked_object(raw, names, what)
    return {name: checked_points(found[name], name) for name in names}


def _claims(raw: JSON, asked: Asked) -> tuple[HorizonClaim, ...]:
    """The claims ledger."""
    if not isinstance(raw, list):
        raise Rejected(f"claims must be a list (got {shown(raw)})")
    if len(raw) > MOST_CLAIMS:
        raise Rejected(f"claims has {len(raw)} entries, at most {MOST_CLAIMS} are allowed")
    return tuple(_claim(one, f"claim {at}", asked) for at, one in enumerate(raw, start=1))


def _claim(raw: JSON, where: str, asked: Asked) -> HorizonClaim:
    """One claim about a step that was shown."""
    found = checked_object(raw, _CLAIM_KEYS, f"{where}: keys")
    step = found["step"]
    if type(step) is not int or not asked.first <= step <= asked.last:
        raise Rejected(f"{where}: step must be a whole number from {asked.first} to {asked.last} (got {shown(step)})")
    fields = found["fields"]
    if not isinstance(fields, list) or len(fields) > MOST_FIELDS:
        raise Rejected(f"{where}: fields must be a list of at most {MOST_FIELDS} (got {shown(fields)})")
    return HorizonClaim(
        quote=checked_text(found["quote"], f"{where}: quote"),
        step=step,
        state=_word(found["state"], _STATES, f"{where}: state"),
        fields=tuple(checked_text(one, f"{where}: field") for one in fields),
    )


W = TypeVar("W", bound=str)


def _word(raw: JSON, words: Sequence[W], what: str) -> W:
    """One of the words."""
    for word in words:
        if isinstance(raw, str) and raw == word:
            return word
    raise Rejected(f"{what} must be one of {', '.join(words)} (got {shown(raw)})")


def _line(raw: JSON, what: str) -> str:
    """Text that is not empty, on one line."""
    text = checked_text(raw, what).strip()
    if not text or any(ord(char) < 32 for char in text):
        raise Rejected(f"{what} must be one line of text (got {shown(raw)})")
    return text


def _notes(raw: JSON) -> str:
    """What is carried to the next part."""
    text = checked_text(raw, "notes", most=MOST_CHARACTERS)
    if (count := token_count(text)) > MOST_NOTE_TOKENS:
        raise Rejected(f"notes has {count} words, at most {MOST_NOTE_TOKENS} are allowed")
    return text
