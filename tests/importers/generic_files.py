"""Small files in the generic format with their map, for tests, and what an import of them gives."""

from __future__ import annotations

import pytest

from assaymark.errors import InputError
from assaymark.importers import import_generic

MAP = """
version = "1"
[files]
decisions = "d.csv"
facts = "f.csv"
outcomes = "o.csv"
[provenance]
source = "mine"
licence = "MIT"
[columns]
episode = "round"
decided_at = "at"
agent = "agent"
family = "maker"
context = "seen"
confidence = "sure"
instrument = "ticker"
weight = "size"
[rationales]
summary = ["why"]
risk = ["risks"]
"""
ALONE = MAP.replace('facts = "f.csv"\noutcomes = "o.csv"\n', "")
COMPLETE = MAP.replace('version = "1"', 'version = "1"\ncompleteness = "complete"')
HEAD = "round,at,agent,maker,seen,sure,ticker,size,why,risks\n"
ONE = "r1,2026-05-04T13:30:00Z,alpha,acme,m1,0.6,A,0.5,A grew 4%.,A may fall.\n"
TWO = "r1,2026-05-04T13:31:00Z,beta,bolt,m1,0.7,B,1.0,B is cheap.,\n"
FACTS = (
    "context,instrument,field,value,unit,available_at\nm1,A,growth,0.04,ratio,2026-05-01T20:00:00Z\n"
    "m1,,next_meeting,2026-05-20,date,2026-05-01T20:00:00Z\nm1,B,growth,,ratio,2026-05-01T20:00:00Z\n"
)  # fmt: skip
WHOLE = FACTS.replace("m1,B,growth,,", "m1,B,growth,0.01,")
OUTCOMES = "agent,episode,horizon,value\nalpha,r1,one week,0.02\nbeta,r1,one week,\n"
GIVEN = {"map.toml": MAP, "d.csv": HEAD + ONE + TWO, "f.csv": FACTS, "o.csv": OUTCOMES}
NAMES = {"map": "map.toml", "d": "d.csv", "f": "f.csv", "o": "o.csv", "c": "c.csv"}


def files(**changes: str | bytes | None) -> dict[str, bytes]:
    given = GIVEN | {NAMES.get(name, name): text for name, text in changes.items()}
    return {name: text.encode() if isinstance(text, str) else text for name, text in given.items() if text is not None}


def imported(*, keep_going: bool = False, progress=None, **changes):
    """The import of the files with these changes, by the first letter of their names."""
    return import_generic(files(**changes), keep_going=keep_going, progress=progress)


def refused(match: str, **changes) -> list[str]:
    """The problems of an import that is refused with these words."""
    with pytest.raises(InputError, match=match) as caught:
        imported(**changes)
    return [str(one) for one in caught.value.problems]


def seen(**changes: str | bytes | None):
    """The contexts of complete files by their decisions, and the report."""
    result = imported(**{"map": COMPLETE, "f": WHOLE} | changes, keep_going=True)
    return {d.record_id: result.contexts[d.context_id] for d in result.decisions}, result.report
