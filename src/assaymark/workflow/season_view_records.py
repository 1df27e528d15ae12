"""What a reader has to know of a season that somebody else ran: what its records hold, and what they lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from assaymark.claims.messages import Said, said
from assaymark.importers.aitrader.importer import REPLAYED
from assaymark.judging.season.horizon_types import StepRecord
from assaymark.workflow.season_material import SeasonMaterial

_OF_STEPS: Final = "aitrader"
"""The format in which a step has a stamp, and only its messages say when they were written."""


def record_notes(material: SeasonMaterial) -> Iterator[Said]:
    """The notes of a season of records; none of a season that was run here."""
    if not material.season.recorded:
        return
    yield said("note.records.not_ours")
    steps = [one for ones in material.steps.values() for one in ones]
    yield from hindsight(material)
    yield from _books(material, steps)
    yield from _mismatches(material)
    yield from _apart(material)


def hindsight(material: SeasonMaterial) -> Iterator[Said]:
    """Decisions that were written down late, and those of which a log of steps does not say when.

    Nothing of a season that was run here: it knows what its agents could see.
    """
    if not material.season.recorded:
        return
    decisions = [one.decision for ones in material.steps.values() for one in ones]
    late = sum(REPLAYED in one.flags for one in decisions)
    if late:
        yield said("note.records.replayed", n=late, of=len(decisions))
    undated = sum(one.call.timing_source == "absent" and REPLAYED not in one.flags for one in decisions)
    if undated and material.season.market.format == _OF_STEPS:
        yield said("note.records.undated", n=undated, of=len(decisions))


def _books(material: SeasonMaterial, steps: Sequence[StepRecord]) -> Iterator[Said]:
    """Books and fills: none at all, or steps without one."""
    if not any(material.navs.values()):
        yield said("note.records.no_books")
        return
    yield said("note.records.valued")
    bare = sum(one.book is None for one in steps)
    if bare:
        yield said("note.records.not_stated", n=bare, of=len(steps))


def _mismatches(material: SeasonMaterial) -> Iterator[Said]:
    """How much of what the log states follows from the rest of it."""
    checks, passed = (sum(getattr(one, name) for one in material.checks) for name in ("checks", "passed"))
    if checks:
        key = "mismatches" if passed < checks else "reconciled"
        yield said(f"note.records.{key}", n=checks - passed, of=checks)
    else:
        yield said("note.records.unchecked")


def _apart(material: SeasonMaterial) -> Iterator[Said]:
    """Agents that were not there from the first day to the last."""
    if len(material.steps) < 2:
        return
    ends = {name: (ones[0].day, ones[-1].day) for name, ones in material.steps.items() if ones}
    first, last = min(one for one, _ in ends.values()), max(one for _, one in ends.values())
    late = tuple(sorted(name for name, found in ends.items() if found != (first, last)))
    if late:
        yield said("note.records.part", n=len(late), agents=late, first=first, last=last)
