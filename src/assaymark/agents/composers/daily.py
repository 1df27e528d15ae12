"""The words of the reference agents for daily bars: their rules count bars, their sentences speak of minutes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from assaymark.records import Context

DAY_S: Final = 86_400

_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "15 minutes": "15 days",
        "over the hour": "over the days shown",
        "its low of the hour": "its low of the days shown",
        "An hour of prices says little about the next one": "A few weeks of prices say little about the next ones",
        "after one hour": "after so few days",
    }
)
_PHRASES: Final = re.compile("|".join(map(re.escape, _WORDS)))
_VOLUME: Final = re.compile(r" on [0-9.]+ times its mean volume")


def is_daily(context: Context) -> bool:
    """Whether the bars of a context are daily ones."""
    return any(one.interval_s == DAY_S for one in context.series)


def in_days(text: str, *, volume: bool) -> str:
    """A text about minute bars as one about daily bars; without ``volume`` it says nothing about volume.

    >>> in_days("Asset A is up 2.10% over 15 minutes on 1.00 times its mean volume.", volume=False)
    'Asset A is up 2.10% over 15 days.'
    """
    said = _PHRASES.sub(lambda found: _WORDS[found[0]], text)
    return said if volume else _VOLUME.sub("", said)
