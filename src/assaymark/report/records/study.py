"""The records of a study: where each judgment, decision and call stands, and their pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from assaymark.records import Decision, Evidence
from assaymark.report.blocks import Linked
from assaymark.report.page import Frame
from assaymark.report.records.calls import ReadCalls, Rests, call_pages
from assaymark.report.records.decisions import decision_pages, decision_places, decisions_by, planned
from assaymark.report.records.judgments import Judged, Shelf, judgment_pages, subject_of

Calls = Literal["all", "judged", "none"]
"""Which calls have pages: every call that a record rests on, those of the judges alone, or none."""


@dataclass(frozen=True, slots=True)
class Trail:
    """Where the records of a study stand.

    ``decisions`` leads from a record id to its row, and ``calls`` from a call key to the call; the latter is filled
    when `pages` are made.
    """

    shelf: Shelf
    dimensions: tuple[tuple[str, str], ...]
    decided: tuple[tuple[str, tuple[Decision, ...]], ...]
    decisions: Mapping[str, str]
    calls: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, judged: Judged, dimensions: Sequence[tuple[str, str]]) -> Trail:
        """Plan the pages of a study; ``dimensions`` are those of its rubric, by id and title."""
        shelf = Shelf.of(judged, len(dimensions))
        decided = planned(shelf)
        return cls(shelf, tuple(dimensions), decided, decision_places(decided))

    def uses(self, wanted: Calls = "all") -> dict[str, list[Linked]]:
        """What rests on each call, by its key, in the order of the pages."""
        found: defaultdict[str, list[Linked]] = defaultdict(list)
        if wanted == "none":
            return found
        people = self.shelf.judged.people
        for group, one, place in self.shelf.places():
            if one.judge not in people:
                trial = f", trial {one.trial}" if one.trial > 1 else ""
                ref = Linked(f"{group.title} on {one.trajectory}{trial}", place)
                if one.first_key:
                    found[one.first_key].append(ref)
                found[one.call_key].append(ref)
        for _, rows in self.decided if wanted == "all" and self.shelf.judged.decided_here else ():
            for decision in rows:
                if decision.call.raw_object:
                    words = f"{subject_of(decision).words} decides, {decision.record_id}"
                    found[decision.call.raw_object].append(Linked(words, self.decisions[decision.record_id]))
        return found

    def rests(self, evidence: Sequence[Evidence]) -> Rests:
        """Counts what each measurement rests on; ``evidence`` are the numbers in the rationales."""
        return Rests.of(self.shelf, decisions_by(self.decided), evidence)

    def pages(self, frame: Frame, read: ReadCalls | None = None, wanted: Calls = "all") -> Iterator[tuple[str, str]]:
        """Every page, one at a time, as path and HTML: calls first, so that the others know where they stand."""
        if read is not None and wanted != "none":
            uses = self.uses(wanted)
            yield from call_pages(read(list(uses)), uses, frame, self.calls)
        yield from decision_pages(self.decided, self.shelf, frame, self.calls)
        made = decisions_by(self.decided)
        yield from judgment_pages(self.shelf, self.dimensions, frame, self.calls, self.decisions, made)
