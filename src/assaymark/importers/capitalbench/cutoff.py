"""When a round's information ended, read from the briefing in the many ways it was written there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MENTION = re.compile(r"(?:research|information|data)\s+cut-?off|available\s+through|frozen\s+at", re.I)
_ISO = re.compile(
    r"(?P<day>20\d\d-\d\d-\d\d)[T ](?P<clock>\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)\s?"
    r"(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d\d:\d\d)"
)
_WORDS = re.compile(
    r"(?P<day>[A-Z][a-z]+ \d{1,2}, 20\d\d),?(?: at)? (?P<clock>\d{1,2}:\d\d(?::\d\d)?)\s?(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"\s?(?P<zone>UTC\b|GMT\b|[A-Z][A-Za-z]+/[A-Za-z_]+)"
)

# How far behind its mention a cutoff is looked for: sentences are shorter, and a hostile line can be endless.
_REACH = 300


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The last moment the material speaks of, and where that was read."""

    at: datetime
    source: str


def stated(text: str) -> tuple[datetime, int] | None:
    """The cutoff a text states and the line where it does, or None.

    Only a time that follows a mention of the cutoff counts: in its line or, below a heading, in the next line that
    holds something. A decision deadline is never taken for it.

    >>> stated("# Briefing\\n\\nResearch cutoff: July 17, 2026 at 10:15 UTC. Deadline: July 18, 2026 at 09:00 UTC")
    (datetime.datetime(2026, 7, 17, 10, 15, tzinfo=datetime.timezone.utc), 3)
    >>> stated("Decision deadline: 2026-07-18T09:00:00Z") is None
    True
    """
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        for mention in _MENTION.finditer(line):
            found = _first_time(_before_deadline(line[mention.end() : mention.end() + _REACH]))
            if found is not None:
                return found, number
            if line.startswith("#"):
                below = next(
                    ((n, s) for n, s in enumerate(lines[number : number + 5], number + 1) if s.strip()), (number, "")
                )
                found = _first_time(_before_deadline(below[1][:_REACH]))
                if found is not None:
                    return found, below[0]
    return None


def _before_deadline(text: str) -> str:
    """The part of a line that cannot be about the deadline."""
    return re.split(r"deadline", text, maxsplit=1, flags=re.I)[0]


def _first_time(text: str) -> datetime | None:
    """The first complete point in time of a text; one without a zone is none."""
    iso, words = _ISO.search(text), _WORDS.search(text)
    if iso and (not words or iso.start() < words.start()):
        return _made(iso["day"], "%Y-%m-%d", iso["clock"], "", iso["zone"])
    return _made(words["day"], "%B %d, %Y", words["clock"], words["half"] or "", words["zone"]) if words else None


def _made(day: str, pattern: str, clock: str, half: str, zone: str) -> datetime | None:
    """A moment from its printed parts, or None where they name none."""
    hours, minutes, seconds = (*clock.split(":"), "0")[:3]
    try:
        date = datetime.strptime(day, pattern)
        hour = int(hours) % 12 + (12 if half[:1] in "Pp" else 0) if half else int(hours)
        local = date + timedelta(hours=hour, minutes=int(minutes), seconds=float(seconds))
        return local.replace(tzinfo=_zone(zone)).astimezone(UTC)
    except (ValueError, ZoneInfoNotFoundError, OverflowError):
        return None


def _zone(name: str) -> timezone | ZoneInfo:
    if name in ("Z", "UTC", "GMT"):
        return UTC
    if "/" in name:
        return ZoneInfo(name)
    sign = -1 if name[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(name[1:3]), minutes=int(name[4:6])))
