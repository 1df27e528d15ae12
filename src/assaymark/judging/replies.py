"""A judge's reply as a judgment: parsed strictly, recorded whatever it is, never guessed at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from assaymark.engine.calls import CallSpec, Reply
from assaymark.judging.rubric import SCALE, Rubric
from assaymark.prompting.texts import Rejected, no_json, shown, strict_reply
from assaymark.records import JSON, Judgment, JudgmentStatus

if TYPE_CHECKING:
    from assaymark.judging.prompts import PlannedCall


Lookahead = Literal["pass", "fail", "unsure"]

PARSER: Final = "2"
"""The version of this parser. Version 1 took a reply in a code fence for no JSON."""

MOST_CHARACTERS = 100_000
"""A longer reply is invalid unread."""
MOST_EVIDENCE = 12
"""A reply may quote at most this often."""
MOST_QUOTED = 2_000
"""A quotation or comment may have at most this many characters."""

_REQUIRED = ("scores", "evidence", "lookahead_check")
_OPTIONAL = ("comment",)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A reply that has exactly the form that was asked for."""

    scores: Mapping[str, int]
    evidence: tuple[str, ...]
    lookahead_check: Lookahead
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Invalid:
    """A reply that has not, and why: a short line without anything of the reply but a few printable characters."""

    reason: str


def reply_schema(rubric: Rubric) -> dict[str, JSON]:
    """The JSON schema of a reply, in the subset that providers with structured output accept.

    All keys are required there; `parse_reply` also takes a reply without a comment.
    """
    point = {"type": "integer", "enum": list(SCALE)}
    properties: dict[str, JSON] = {
        "scores": _object({name: dict(point) for name in rubric.names}),
        "evidence": {"type": "array", "items": {"type": "string"}},
        "lookahead_check": {"type": "string", "enum": list(get_args(Lookahead))},
        "comment": {"type": ["string", "null"]},
    }
    return _object(properties)


def _object(properties: dict[str, JSON]) -> dict[str, JSON]:
    """The schema of an object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parse_reply(text: str, rubric: Rubric) -> Parsed | Invalid:
    """What a judge's reply says, or why it says nothing.

    The whole reply must be one JSON object, alone or in one code fence; white space may surround it, a sentence may
    not. To look for an object in a sentence would be a guess at what was meant. Duplicate keys, numbers that JSON does
    not know, scores that are not whole numbers on the scale, missing and extra keys make the reply invalid as a whole.
    Nothing in ``text`` can make this raise.

    >>> from assaymark.judging.rubric import load_rubric
    >>> parse_reply('{"scores": {}}', load_rubric("v1.0"))
    Invalid(reason="keys are missing: 'evidence', 'lookahead_check'")
    """
    if len(text) > MOST_CHARACTERS:
        return Invalid(f"longer than {MOST_CHARACTERS} characters (got {len(text)})")
    try:
        return _checked(strict_reply(text), rubric)
    except Rejected as exc:
        return Invalid(str(exc))


def _checked(raw: JSON, rubric: Rubric) -> Parsed:
    """The parts of a reply, each checked."""
    if not isinstance(raw, dict):
        raise Rejected(f"not a JSON object (got {type(raw).__name__})")
    _check_keys(raw, _REQUIRED, _OPTIONAL, "keys")
    return Parsed(
        scores=_scores(raw["scores"], rubric),
        evidence=_evidence(raw["evidence"]),
        lookahead_check=_lookahead(raw["lookahead_check"]),
        comment=None if raw.get("comment") is None else _string(raw["comment"], "comment"),
    )


def _check_keys(raw: Mapping[str, Any], required: tuple[str, ...], optional: tuple[str, ...], what: str) -> None:
    """Exactly these keys."""
    missing = [key for key in required if key not in raw]
    if missing:
        raise Rejected(f"{what} are missing: {', '.join(map(shown, missing))}")
    extra = [key for key in raw if key not in required and key not in optional]
    if extra:
        raise Rejected(f"{what} are unknown: {', '.join(map(shown, extra[:3]))}")


def _scores(raw: JSON, rubric: Rubric) -> dict[str, int]:
    """A whole number on the scale for each dimension of the rubric, in its order."""
    if not isinstance(raw, dict):
        raise Rejected(f"scores must be an object (got {shown(raw)})")
    _check_keys(raw, rubric.names, (), "dimensions")
    for name in rubric.names:
        # bool is an int to Python, and 4.0 is equal to 4: neither is a whole number that somebody wrote.
        if type(raw[name]) is not int or raw[name] not in SCALE:
            raise Rejected(f"{name} must be a whole number from {SCALE[0]} to {SCALE[-1]} (got {shown(raw[name])})")
    return {name: raw[name] for name in rubric.names}


def _evidence(raw: JSON) -> tuple[str, ...]:
    """A short list of strings."""
    if not isinstance(raw, list):
        raise Rejected(f"evidence must be a list (got {shown(raw)})")
    if len(raw) > MOST_EVIDENCE:
        raise Rejected(f"evidence has {len(raw)} entries, at most {MOST_EVIDENCE} are allowed")
    return tuple(_string(item, "evidence") for item in raw)


def _lookahead(raw: JSON) -> Lookahead:
    """One of the three words."""
    for word in get_args(Lookahead):
        if raw == word:
            found: Lookahead = word
            return found
    raise Rejected(f"lookahead_check must be pass, fail or unsure (got {shown(raw)})")


def _string(raw: JSON, what: str) -> str:
    """A string of bounded length that UTF-8 can carry."""
    if not isinstance(raw, str):
        raise Rejected(f"{what} must be text (got {shown(raw)})")
    if len(raw) > MOST_QUOTED:
        raise Rejected(f"{what} has {len(raw)} characters, at most {MOST_QUOTED} are allowed")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Rejected(f"{what} holds half of a surrogate pair")
    return raw


def asks_again(reply: Reply, *, most: int = MOST_CHARACTERS) -> bool:
    """Whether a reply of up to ``most`` characters is no JSON at all, so that the call is made once more.

    Well-formed JSON with a value that is not allowed never is.
    """
    return reply.finish == "stop" and len(reply.text) <= most and no_json(reply.text)


def second_call(call: CallSpec) -> CallSpec:
    """The same question once more: trial 1b of trial 1."""
    return replace(call, again=True)


def judgment(planned: PlannedCall, reply: Reply, rubric: Rubric, *, second: Reply | None = None) -> Judgment:
    """The judgment that a reply to a planned call amounts to.

    A refusal is ``refused`` and a reply that was cut off is ``invalid``, whatever text came with it. ``second`` is the
    reply to `second_call`, if that was asked: it counts where the first one is no JSON.
    """
    if second is not None and asks_again(reply):
        made = judgment(replace(planned, call=second_call(planned.call)), second, rubric)
        return replace(made, first_key=planned.call.key)
    if reply.finish == "refusal":
        return _judgment(planned, rubric, "refused", reason="the model refused to answer")
    if reply.finish == "length":
        return _judgment(planned, rubric, "invalid", reason="cut off at the length limit")
    parsed = parse_reply(reply.text, rubric)
    if isinstance(parsed, Invalid):
        return _judgment(planned, rubric, "invalid", reason=parsed.reason)
    return _judgment(planned, rubric, "ok", parsed=parsed)


def _judgment(
    planned: PlannedCall,
    rubric: Rubric,
    status: JudgmentStatus,
    *,
    parsed: Parsed | None = None,
    reason: str | None = None,
) -> Judgment:
    """The record, with scores only if there are any."""
    return Judgment(
        trajectory=planned.trajectory,
        judge=planned.judge,
        family=planned.family,
        rubric=rubric.version,
        trial=planned.trial,
        status=status,
        scores={name: float(score) for name, score in parsed.scores.items()} if parsed else {},
        call_key=planned.call.key,
        evidence=parsed.evidence if parsed else (),
        lookahead_check=parsed.lookahead_check if parsed else None,
        reason=reason,
    )
