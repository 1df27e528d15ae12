"""JSON from a judge, read without a guess: one value, every key once, no number that JSON does not know."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from assaymark.records import JSON

MOST_DIGITS = 20
"""Converting 100,000 digits takes long, and no score has them."""


class Rejected(ValueError):
    """Not the form that was asked for; the message becomes the recorded reason."""


def strict_json(text: str) -> JSON:
    """The one JSON value that ``text`` is.

    Raises
    ------
    Rejected
        It is not one, a key comes twice, a number is none, or it is nested too deeply.

    >>> strict_json('{"a": 1}')
    {'a': 1}
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_int)
    except json.JSONDecodeError as exc:
        raise Rejected(f"not one JSON object: {exc.msg[:1].lower()}{exc.msg[1:]} at character {exc.pos}") from None
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
