"""JSON from a model, read without a guess: one value, every key once, no number that JSON does not know."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from assaymark.records import JSON

_FENCE = "```"
MOST_DIGITS = 20
"""Converting 100,000 digits takes long, and no score has them."""


class Rejected(ValueError):
    """Not the form that was asked for; the message becomes the recorded reason."""


class NotJson(Rejected):
    """No JSON value."""


def strict_reply(text: str) -> JSON:
    """The one JSON value of a reply, alone or in one code fence; else raises as `strict_json`.

    >>> strict_reply('```json\\n{"a": 1}\\n```')
    {'a': 1}
    """
    bare = text.strip()
    if bare.startswith(_FENCE) and bare.endswith(_FENCE) and "\n" in bare:
        kind, _, inside = bare[len(_FENCE) : -len(_FENCE)].partition("\n")
        if kind.strip().lower() in ("", "json"):
            return strict_json(inside)
    return strict_json(text)


def no_json(text: str) -> bool:
    """Whether a reply is no JSON value at all, not even in a code fence.

    >>> no_json("I give it a 4."), no_json('{"score": 9}')
    (True, False)
    """
    try:
        strict_reply(text)
    except NotJson:
        return True
    except Rejected:
        pass
    return False


def strict_json(text: str) -> JSON:
    """The one JSON value that ``text`` is.

    Raises
    ------
    Rejected
        It is not one (`NotJson`), a key comes twice, a number is none, or it is nested too deeply.

    >>> strict_json('{"a": 1}')
    {'a': 1}
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_int)
    except json.JSONDecodeError as exc:
        raise NotJson(f"not one JSON object: {exc.msg[:1].lower()}{exc.msg[1:]} at character {exc.pos}") from None
    except RecursionError:
        raise Rejected("nested too deeply") from None


def shown(value: object) -> str:
    """A value for a reason: cut short, printable ASCII only.

    >>> shown("é")
    "'\\\\xe9'"
    """
    seen = ascii(value)
    return seen if len(seen) <= 60 else seen[:57] + "..."


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a key comes twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Rejected(f"key {shown(key)} comes more than once")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise Rejected(f"{name} is not JSON")


def _int(digits: str) -> int:
    """An integer of sane length."""
    if len(digits) > MOST_DIGITS:
        raise Rejected(f"an integer with {len(digits)} digits")
    return int(digits)
