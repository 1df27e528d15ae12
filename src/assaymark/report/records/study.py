"""The records of a study: where each judgment, decision and call stands, and their pages."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from markupsafe import Markup

from assaymark.records import Decision, Evidence, Judgment
from assaymark.report.blocks import Items, Linked, Page, Section
from assaymark.report.page import PAGE_BYTES, Frame
from assaymark.report.records.calls import Answers, Asked, Lineage, ReadCalls, call_pages
from assaymark.report.records.decisions import decision_pages, decision_places, decisions_by, planned
from assaymark.report.records.judgments import Judged, JudgeGroup, Shelf, judgment_pages, subject, subject_of
from assaymark.report.records.texts import BELOW, SEARCH
from assaymark.report.text import counted
from assaymark.text import clean, count

_OTHERS: Final = 24
"""Calls on the same answer that a call leads to, at most."""

Calls = Literal["all", "judged", "none"]
"""Which calls have pages: every call that a record rests on, those of the judges alone, or none."""


@dataclass(frozen=True, slots=True)
class Trail:
    """Where the records of a study stand. ``decisions`` leads from a record id to its row, and ``calls`` from a call
    key to the call; the latter is filled when `pages` are made."""

    shelf: Shelf
    dimensions: tuple[tuple[str, str], ...]
    decided: tuple[tuple[str, tuple[Decision, ...]], ...]
    decisions: Mapping[str, str]
    scale: tuple[float, float]
    calls: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, judged: Judged, dimensions: Sequence[tuple[str, str]], scale: tuple[float, float] = (1, 5)) -> Trail:
        """Plan the pages of a study with the dimensions of its rubric, by id and title, and the scale of scores."""
        shelf = Shelf.of(judged, len(dimensions))
        decided = planned(shelf)
        return cls(shelf, tuple(dimensions), decided, decision_places(decided), scale)

    def uses(self, wanted: Calls = "all") -> dict[str, list[Linked]]:
        """What rests on each call, by its key: answer by answer, each with all judges and trials on it."""
        found: defaultdict[str, list[Linked]] = defaultdict(list)
        if wanted == "none":
            return found
        for trajectory, asked in self._answers().items():
            for group, one, place in asked:
                trial = f", trial {one.trial}" if one.trial > 1 else ""
                ref = Linked(f"{group.title} on {trajectory}{trial}", place)
                if one.first_key:
                    found[one.first_key].append(ref)
                found[one.call_key].append(ref)
        for _, rows in self.decided if wanted == "all" and self.shelf.judged.decided_here else ():
            for decision in rows:
                if decision.call.raw_object:
                    words = f"{subject_of(decision).words} decides, {decision.record_id}"
                    found[decision.call.raw_object].append(Linked(words, self.decisions[decision.record_id]))
        return found

    def _answers(self) -> dict[str, list[tuple[JudgeGroup, Judgment, str]]]:
        """The judgments that were asked by a call, with their places, by the answer that they are of."""
        found: dict[str, list[tuple[JudgeGroup, Judgment, str]]] = {}
        for group, one, place in self.shelf.places():
            if one.judge not in self.shelf.judged.people:
                found.setdefault(one.trajectory, []).append((group, one, place))
        return found

    def answers(self) -> Answers:
        """By call the calls of other judges and trials on the same answer."""
        found: dict[str, list[Asked]] = {}
        for asked in self._answers().values():
            several = Counter(group.title for group, _, _ in asked)
            named = []
            for group, one, place in asked:
                words = f"{group.title}, trial {one.trial}" if several[group.title] > 1 else group.title
                named += [Asked(one.call_key, Linked(words, place), one)] if one.call_key else []
            for own in named:
                others = [other for other in named[:_OTHERS] if other.key != own.key]
                found[f"c{own.key[:16]}"] = [own, *others]
        return Answers(found, self.dimensions, self.scale)

    def rests(self, evidence: Sequence[Evidence]) -> Lineage:
        """Counts what each measurement rests on; ``evidence`` are the numbers in the rationales."""
        return Lineage.of(self.shelf, decisions_by(self.decided), evidence)

    def pages(self, frame: Frame, read: ReadCalls | None = None, wanted: Calls = "all") -> Iterator[tuple[str, str]]:
        """Every page, one at a time, as path and HTML: calls first, so that the others know where they stand."""
        if read is not None and wanted != "none":
            uses = self.uses(wanted)
            yield from call_pages(read(list(uses)), uses, frame, self.calls, answers=self.answers())
        yield from decision_pages(self.decided, self.shelf, frame, self.calls)
        made = decisions_by(self.decided)
        yield from judgment_pages(self.shelf, self.dimensions, frame, self.calls, self.decisions, made)
        yield SEARCH, frame.page(self._search())

    def _search(self) -> Page:
        """Every judgment with its call in one search: an index of who judged what, in the page itself."""
        places: dict[str, int] = {}
        judges = {group.title: at for at, group in enumerate(self.shelf.groups)}
        answers: dict[str, int] = {}
        rows, size, total = [], 0, 0
        for group, one, place in self.shelf.places():
            total += 1
            about = f"{one.trajectory[:120]} ({subject(one, self.shelf.decisions).words})"
            found = (place.partition("#"), self.calls.get(one.call_key, "").partition("#"))
            at = [(places.setdefault(path, len(places)), anchor) for path, _, anchor in found]
            state = "" if one.status == "ok" else f", {one.status}"
            row = [
                judges[group.title],
                answers.setdefault(clean(about, 200), len(answers)),
                one.trial,
                *at[0],
                *at[1],
                state,
            ]
            size += len(json.dumps(row)) + (len(about) if answers[clean(about, 200)] == len(answers) - 1 else 0)
            if size < PAGE_BYTES:
                rows.append(row)
        data = {"judges": list(judges), "answers": list(answers), "pages": list(places), "rows": rows}
        less = (
            f" The index holds the first {count(len(rows))}; all are on the pages below." if len(rows) < total else ""
        )
        box = Markup(
            '<p class="tools" data-js hidden><input type="search" id="s-box" aria-label="{0}" placeholder="{0}"> '
            '<output aria-live="polite"></output></p><ul class="list" id="s-list"></ul>'
            '<script type="application/json" id="s-data">{1}</script>'
        ).format("Judge, answer, agent, trial or key", Markup(json.dumps(data).replace("<", "\\u003c")))
        parts = [*((f"{group.title}, part {at}", path) for group in self.shelf.groups
                   for at, (path, _) in enumerate(group.pages, 1)),
                 *((f"Calls, part {at}", path) for at, path in
                   enumerate(sorted({place.partition("#")[0] for place in self.calls.values()}), 1))]  # fmt: skip
        pages = Items(tuple(Linked(words, path) for words, path in parts))
        return Page(
            SEARCH, "Search records", f"{counted(total, 'judgment')}, each with its call, over all parts.{less}",
            (Section("parts", "Which pages hold them?", "", (pages,)),), (box,),
            scripts=("page.js+search.js",), **BELOW,
        )  # fmt: skip
