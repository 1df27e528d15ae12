"""Texts of several lines from outside, made safe to show: models write whatever they like."""

from __future__ import annotations

import re
from typing import Final

from assaymark.report.formats import count

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def block(text: str, limit: int) -> str:
    """A text with its lines, without control and direction characters, and cut where it is too long.

    >>> block("a\\r\\nb\\u202ec", 10)
    'a\\nb�c'
    >>> block("x" * 12, 5)
    'xxxxx\\n[7 more characters are not shown]'
    """
    kept = text[:limit].replace("\r\n", "\n").replace("\r", "\n")
    safe = _UNSAFE.sub("\ufffd", kept)
    left = len(text) - limit
    return safe if left <= 0 else f"{safe}\n[{count(left)} more characters are not shown]"
