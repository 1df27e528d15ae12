"""Judges' replies: parsed strictly, recorded whatever they are, never guessed at.

`parsed_by`, `members`, `whole`, `text_of` and `word_of` are the one parser; each question names its parts with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

from assaymark.engine.calls import CallSpec, Reply
from assaymark.judging.rubric import Rubric
from assaymark.prompting.texts import Rejected, no_json, shown, strict_reply
from assaymark.records import JSON, Judgment, JudgmentStatus

if TYPE_CHECKING:
    from assaymark.judging.prompts import PlannedCall

A = TypeVar("A")
W = TypeVar("W", bound=str)
Lookahead = Literal["pass", "fail", "unsure"]

PARSER: Final = "2"
"""The version of this parser. Version 1 took a reply in a code fence for no JSON."""

MOST_CHARACTERS = 100_000
"""A longer reply is invalid unread."""
MOST_EVIDENCE = 12
"""Maximum number of quotations in a reply."""
MOST_QUOTED = 2_000
"""Maximum number of characters in a quotation or comment."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A reply in exactly the form that was asked for."""

    scores: Mapping[str, int]
    evidence: tuple[str, ...]
    lookahead_check: Lookahead
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Invalid:
    """A reply in another form, and why: a short line with at most a few printable characters of the reply."""

    reason: str


def parsed_by(text: str, check: Callable[[JSON], A], most: int) -> A | Invalid:
    """A reply as strict JSON, alone or in one code fence, through a check that raises `Rejected`; never raises."""
    if len(text) > most:
        return Invalid(f"longer than {most} characters (got {len(text)})")
    try:
        return check(strict_reply(text))
    except Rejected as exc:
        return Invalid(str(exc))


def members(
    raw: JSON, keys: Sequence[str], what: str = "keys", *, optional: Sequence[str] = (), otherwise: str = ""
) -> Mapping[str, Any]:
    """An object with exactly these keys; ``otherwise`` is the reason for what is no object."""
    if not isinstance(raw, dict):
        raise Rejected(otherwise or f"not a JSON object (got {type(raw).__name__})")
    if missing := [key for key in keys if key not in raw]:
        raise Rejected(f"{what} are missing: {', '.join(map(shown, missing))}")
    if extra := [key for key in raw if key not in keys and key not in optional]:
        raise Rejected(f"{what} are unknown: {', '.join(map(shown, extra[:3]))}")
    return raw


def whole(raw: JSON, what: str, low: int, high: int) -> int:
    """A whole number in a range."""
    # bool is an int to Python, and 4.0 is equal to 4: neither is a whole number that somebody wrote.
    if type(raw) is not int or not low <= raw <= high:
        raise Rejected(f"{what} must be a whole number from {low} to {high} (got {shown(raw)})")
    return raw


def text_of(raw: JSON, what: str, most: int) -> str:
    """Text of bounded length that UTF-8 can carry."""
    if not isinstance(raw, str):
        raise Rejected(f"{what} must be text (got {shown(raw)})")
    if len(raw) > most:
        raise Rejected(f"{what} has {len(raw)} characters, at most {most} are allowed")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Rejected(f"{what} holds half of a surrogate pair")
    return raw


def word_of(raw: JSON, words: Sequence[W], what: str) -> W:
    """One of the words; ``what`` says in words what it must be."""
    for word in words:
        if raw == word:
            return word
    raise Rejected(f"{what} (got {shown(raw)})")


def object_schema(properties: Mapping[str, JSON]) -> dict[str, JSON]:
    """The schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def reply_schema(rubric: Rubric) -> dict[str, JSON]:
    """The JSON schema of a reply, in the subset that providers with structured output accept.

    All keys are required there; `parse_reply` also takes a reply without a comment.
    """
    return object_schema(
        {
            "scores": object_schema(dict.fromkeys(rubric.names, rubric.points)),
            "evidence": {"type": "array", "items": {"type": "string"}},
            "lookahead_check": {"type": "string", "enum": list(get_args(Lookahead))},
            "comment": {"type": ["string", "null"]},
        }
    )


def parse_reply(text: str, rubric: Rubric) -> Parsed | Invalid:
    """A judge's reply, or why it is invalid. The whole reply must be one JSON object, alone or in one code fence."""

    def check(raw: JSON) -> Parsed:
        found = members(raw, ("scores", "evidence", "lookahead_check"), optional=("comment",))
        refusal = f"scores must be an object (got {shown(found['scores'])})"
        given = members(found["scores"], rubric.names, "dimensions", otherwise=refusal)
        scores = {name: whole(given[name], name, *rubric.scale) for name in rubric.names}
        evidence, comment = found["evidence"], found.get("comment")
        if not isinstance(evidence, list):
            raise Rejected(f"evidence must be a list (got {shown(evidence)})")
        if len(evidence) > MOST_EVIDENCE:
            raise Rejected(f"evidence has {len(evidence)} entries, at most {MOST_EVIDENCE} are allowed")
        return Parsed(
            scores,
            tuple(text_of(item, "evidence", MOST_QUOTED) for item in evidence),
            word_of(found["lookahead_check"], get_args(Lookahead), "lookahead_check must be pass, fail or unsure"),
            None if comment is None else text_of(comment, "comment", MOST_QUOTED),
        )

    return parsed_by(text, check, MOST_CHARACTERS)


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
    status: JudgmentStatus = "invalid"
    parsed: Parsed | Invalid
    if reply.finish == "refusal":
        status, parsed = "refused", Invalid("the model refused to answer")
    elif reply.finish == "length":
        parsed = Invalid("cut off at the length limit")
    else:
        parsed = parse_reply(reply.text, rubric)
    answer = parsed if isinstance(parsed, Parsed) else None
    return Judgment(
        trajectory=planned.trajectory,
        judge=planned.judge,
        family=planned.family,
        rubric=rubric.version,
        trial=planned.trial,
        status="ok" if answer else status,
        scores={name: float(score) for name, score in answer.scores.items()} if answer else {},
        call_key=planned.call.key,
        evidence=answer.evidence if answer else (),
        lookahead_check=answer.lookahead_check if answer else None,
        reason=parsed.reason if isinstance(parsed, Invalid) else None,
    )
