"""An agent's reply as orders and reasons: parsed strictly, recorded whatever it is, never guessed at."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from assaymark.prompting.strict_json import Rejected, shown, strict_reply
from assaymark.records import JSON, Action, ActionKind

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

    >>> parse_answer('{"orders": [], "rationale": "Nothing moved."}', ["Asset A"]).rationale
    'Nothing moved.'
    >>> parse_answer('buy!', [])
    Unusable(reason='not one JSON object: expecting value at character 0')
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
