"""A judge's reply to a pair as a verdict: parsed strictly, recorded whatever it is, never guessed at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from assaymark.engine.calls import Reply
from assaymark.judging.replies import Invalid
from assaymark.prompting.strict_json import Rejected, shown, strict_reply
from assaymark.records import JSON, PairCall, SlotVerdict

if TYPE_CHECKING:
    from assaymark.judging.pairs.prompts import PlannedPairCall

PairVerdict = Literal["1", "2", "tie", "abstain"]

MOST_CHARACTERS = 20_000
"""A longer reply is invalid unread."""
MOST_REASON = 2_000
"""A reason may have at most this many characters."""

_KEYS = ("verdict", "reason")

# A sentence that begins "Candidate 2 is better" and ends there, or goes on with a cause, "overall" or
# "than candidate 1". "Candidate 2 is better worded", "if ..., candidate 2 is better" and "it is not so that candidate 2
# is better" are not such sentences: what they mean has to be guessed.
_NAMED = re.compile(
    r"(?:^|[.;:!?\n]\s*)(?:(?:so|hence|thus|overall|therefore),? )?"
    r"candidate ([12]) (?:is (?:the )?(?:clearly |overall )?(?:better|stronger)"
    r"(?: candidate| one| text| answer| note)?|wins)"
    r"(?: overall| than candidate [12])?(?=\s*(?:$|[.;:!\n]|,? because\b|,? since\b))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedPair:
    """A reply that has exactly the form that was asked for."""

    verdict: PairVerdict
    reason: str


def pair_schema() -> dict[str, JSON]:
    """The JSON schema of a reply, in the subset that providers with structured output accept.

    >>> pair_schema()["required"]
    ['verdict', 'reason']
    """
    properties: dict[str, JSON] = {
        "verdict": {"type": "string", "enum": list(get_args(PairVerdict))},
        "reason": {"type": "string"},
    }
    return {"type": "object", "properties": properties, "required": list(_KEYS), "additionalProperties": False}


def parse_pair_reply(text: str) -> ParsedPair | Invalid:
    """What a judge's reply to a pair says, or why it says nothing.

    The whole reply must be one JSON object with exactly the two keys, alone or in one code fence; a sentence may not
    surround it. The verdict must be one of the four words as written. Nothing in ``text`` can make this raise.

    A reply with verdict 1 or 2 is also invalid where its reason names the other slot, and only the other, as the better
    one: which of the two was meant would be a guess. A reason does so by a sentence that begins "Candidate 2 is
    better", "is stronger" or "wins" (after "so", "thus", "hence", "therefore" or "overall", if anything) and either
    ends there, goes on with "because" or "since", or says "overall" or "than candidate 1" first. Conditions, negations
    and single respects ("is better worded") are not looked into, and a tie may name either slot.

    >>> parse_pair_reply('{"verdict": "tie", "reason": "Both name the stop."}')
    ParsedPair(verdict='tie', reason='Both name the stop.')
    >>> parse_pair_reply('{"verdict": "1", "reason": "Candidate 2 is better."}')
    Invalid(reason='the verdict is 1, but the reason names candidate 2 as the better one')
    """
    if len(text) > MOST_CHARACTERS:
        return Invalid(f"longer than {MOST_CHARACTERS} characters (got {len(text)})")
    try:
        return _checked(strict_reply(text))
    except Rejected as exc:
        return Invalid(str(exc))


def _checked(raw: JSON) -> ParsedPair:
    """The parts of a reply, each checked."""
    if not isinstance(raw, dict):
        raise Rejected(f"not a JSON object (got {type(raw).__name__})")
    _check_keys(raw)
    verdict = _verdict(raw["verdict"])
    reason = _reason(raw["reason"])
    named = set(_NAMED.findall(reason))
    if verdict in ("1", "2") and named and verdict not in named:
        raise Rejected(f"the verdict is {verdict}, but the reason names candidate {named.pop()} as the better one")
    return ParsedPair(verdict, reason)


def _check_keys(raw: Mapping[str, Any]) -> None:
    """Exactly the two keys."""
    missing = [key for key in _KEYS if key not in raw]
    if missing:
        raise Rejected(f"keys are missing: {', '.join(map(shown, missing))}")
    extra = [key for key in raw if key not in _KEYS]
    if extra:
        raise Rejected(f"keys are unknown: {', '.join(map(shown, extra[:3]))}")


def _verdict(raw: JSON) -> PairVerdict:
    """One of the four words."""
    for word in get_args(PairVerdict):
        if raw == word:
            found: PairVerdict = word
            return found
    raise Rejected(f'verdict must be "1", "2", "tie" or "abstain" (got {shown(raw)})')


def _reason(raw: JSON) -> str:
    """A text of bounded length that UTF-8 can carry."""
    if not isinstance(raw, str):
        raise Rejected(f"reason must be text (got {shown(raw)})")
    if len(raw) > MOST_REASON:
        raise Rejected(f"reason has {len(raw)} characters, at most {MOST_REASON} are allowed")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Rejected("reason holds half of a surrogate pair")
    return raw


def pair_call(planned: PlannedPairCall, reply: Reply) -> PairCall:
    """The record that a reply to a planned call amounts to.

    A refusal and a reply that was cut off are ``invalid``, whatever text came with them. ``reason`` says why a call is
    invalid and is None of a valid one, whose own words stay in the ledger.
    """
    if reply.finish == "refusal":
        return _record(planned, "invalid", "the model refused to answer")
    if reply.finish == "length":
        return _record(planned, "invalid", "cut off at the length limit")
    parsed = parse_pair_reply(reply.text)
    if isinstance(parsed, Invalid):
        return _record(planned, "invalid", parsed.reason)
    return _record(planned, parsed.verdict, None)


def _record(planned: PlannedPairCall, verdict: SlotVerdict, reason: str | None) -> PairCall:
    """The record of one call."""
    pair = planned.pair
    return PairCall(
        pair=pair.id,
        condition=pair.condition,
        task=pair.task,
        order=planned.order,
        verdict=verdict,
        judge=planned.judge,
        delta=pair.delta,
        better=pair.better,
        variant=pair.variant,
        prompt=planned.prompt,
        trial=planned.trial,
        call_key=planned.call.key,
        reason=reason,
    )
