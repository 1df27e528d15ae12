"""Texts of several lines from outside, made safe to show: models write whatever they like."""

from __future__ import annotations

from assaymark.report.formats import count
from assaymark.typography import visible


def block(text: str, limit: int) -> str:
    """A text with its lines and no character unseen, cut where it is too long.

    >>> block("a\\r\\nb\\u202ec", 10)
    'a\\nb[U+202E]c'
    >>> block("x" * 12, 5)
    'xxxxx\\n[7 more characters are not shown]'
    """
    kept = text[:limit].replace("\r\n", "\n").replace("\r", "\n")
    safe = visible(kept)
    left = len(text) - limit
    return safe if left <= 0 else f"{safe}\n[{count(left)} more characters are not shown]"
