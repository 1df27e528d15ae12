"""The records of a study: where each judgment, decision and call stands, and their pages."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from markupsafe import Markup

from assaymark.records import Decision, Evidence, Judgment, Measurement, content_id
from assaymark.report.blocks import (
    Items,
    Linked,
    Page,
    Row,
    Section,
    Table,
    only,
    row_bytes,
    row_filters,
    small,
    spaced,
)
from assaymark.report.page import PAGE_BYTES, Frame, beside, paged_by
from assaymark.report.records.calls import Asked, ReadCalls, SameAnswers, call_pages
from assaymark.report.records.judgments import (
    OVERVIEW,
    PAGE,
    Judged,
    JudgeGroup,
    Part,
    Shelf,
    Subject,
    judgment_pages,
    subject,
    subject_of,
)
from assaymark.report.records.texts import BELOW, DECISIONS, SEARCH, Rests
from assaymark.report.text import counted
from assaymark.text import clean, count

# Pages of decisions: who decided what, when, on which question, and where its judgments and its call stand.


DECIDED_FOLDER: Final = "decisions"

_DECISION_ROW: Final = 300
_LINK: Final = 70
_ORDERS: Final = 4


def planned(shelf: Shelf) -> tuple[tuple[str, tuple[Decision, ...]], ...]:
    """The pages of decisions as path and decisions: by agent, control texts last, then by time."""
    judges = len(shelf.groups)

    def size(one: Decision) -> int:
        texts = (subject_of(one).words, one.record_id[:60], one.cluster[:60], _orders(one))
        return row_bytes(_DECISION_ROW + _LINK * judges, texts)

    pages = paged_by(sorted(shelf.judged.decisions, key=_by_agent), size, PAGE)
    return tuple((f"{DECIDED_FOLDER}/page-{at:03d}.html", rows) for at, rows in enumerate(pages, 1))


def decision_places(pages: Sequence[tuple[str, Sequence[Decision]]]) -> dict[str, str]:
    """Where each decision stands, by its record id."""
    return {one.record_id: f"{path}#{decision_anchor(one)}" for path, rows in pages for one in rows}


def decisions_by(pages: Sequence[tuple[str, Sequence[Decision]]]) -> dict[Subject, Linked]:
    """How many decisions there are of each agent, or kind of control text, and where: these alone, else the first."""
    seen = Counter(subject_of(one) for _, rows in pages for one in rows)
    first: dict[Subject, str] = {}
    on: defaultdict[Subject, set[str]] = defaultdict(set)
    for path, rows in pages:
        for row in rows:
            first.setdefault(subject_of(row), f"{path}#{decision_anchor(row)}")
            on[subject_of(row)].add(path)
    exact = {about: f"{min(paths)}#{only(about.words)}" for about, paths in on.items() if len(paths) == 1}
    return {about: Linked(count(seen[about]), exact.get(about, place)) for about, place in first.items()}


def decision_pages(
    pages: Sequence[tuple[str, Sequence[Decision]]], shelf: Shelf, frame: Frame, calls: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The pages of decisions, one at a time, as path and HTML; ``calls`` is where each call stands, by its key."""
    links: defaultdict[str, list[Linked]] = defaultdict(list)
    for group, judgment, place in shelf.places():
        if judgment.trial == 1:
            links[judgment.trajectory].append(Linked(group.title, place))
    for path, rows, parts in beside(pages):
        shown: list[Row] = []
        for one in rows:
            about, call = subject_of(one).words, calls.get(one.call.raw_object or "", "")
            when = (f"{one.decided_at:%Y-%m-%d %H:%M} ", small(clean(one.cluster, 60)))
            judged = spaced(links.get(one.record_id, ()), ", ") or "none"
            cells = (about, clean(one.record_id, 60), when, _orders(one), judged)
            shown.append(Row((*cells, Linked("call", call) if call else "not kept"), decision_anchor(one), about))
        table = Table(
            ("By", "Decision", "When", "Decided", "Judgments", "Call"),
            tuple(shown),
            summary="",
            stacked=True,
            id="decision-rows",
            filters=row_filters(sorted(row.key for row in shown)),
            what="decisions",
        )
        lead = "Decisions by agent and date, each with its judgments and the call in which it was made."
        yield path, frame.page(Page(path, "Decisions", lead, (), (table,), parts, **BELOW))


def decision_anchor(decision: Decision) -> str:
    """The id of a decision's row."""
    return f"d{content_id(decision.record_id)[:12]}"


def _by_agent(one: Decision) -> tuple[Subject, float, str]:
    return subject_of(one), one.decided_at.timestamp(), one.record_id


def _orders(one: Decision) -> str:
    """What was decided, in a few words, and what is noted about it."""
    orders = [f"{action.kind.replace('_', ' ')} {clean(action.instrument, 30)}" for action in one.actions[:_ORDERS]]
    more = f" and {count(len(one.actions) - _ORDERS)} more" if len(one.actions) > _ORDERS else ""
    flags = f"; {', '.join(clean(flag, 40) for flag in one.flags[:_ORDERS])}" if one.flags else ""
    return f"{', '.join(orders) or 'no order'}{more}{flags}"


# What a measurement rests on: the judgments, decisions or numbers that it was computed from, counted and linked.


LEDGER: Final = "ledger/page-001.html"

_NUMBERS: Final = ("evidence.share", "evidence.chance_corrected")
_DECIDED: Final = ("agent.", "terse.share", "evidence.no_number_share", "forecast.mismatch")
_PARTS: Final[Mapping[str, Part]] = {"anchor.": "anchors", "probe.": "outside"}
_CELLS: Final = ("cell.score", "cell.kappa", "cell.gate", "cell.drop", "cell.halo", "cell.agreement")
_HONEST: Final = (
    "kappa.", "redundancy", "score.", "contrast", "recusal.", "length.", "judges.", "judge.own_family", "judge.length",
    "dimension.", "order.", "rank.", "lofo.", "single.", "panel.discoveries", "panel.alpha", "panel.generalizability",
    "panel.variance", "cell.honest", "noise.", "style.",
    "contamination.", "judge.invalid_share",
)  # fmt: skip
_ASKED: Final = "judge.invalid_share"


def lineage(shelf: Shelf, decisions: Mapping[Subject, Linked], evidence: Sequence[Evidence]) -> Rests:
    """Gives what a measurement of a study rests on; without a count where its name does not tell which records those
    are. ``decisions`` leads to the first of each subject, and ``evidence`` are the numbers in the rationales."""
    # Judgments by part, judge, subject and format of the decision: all, and those with scores.
    asked, given = Counter[tuple[Part, str, Subject, str]](), Counter[tuple[Part, str, Subject, str]]()
    for group, judgment, _ in shelf.places():
        decision = shelf.decisions.get(judgment.trajectory)
        form = "" if decision is None else decision.format
        key = (group.part, group.judge, subject(judgment, shelf.decisions), form)
        asked[key] += 1
        given[key] += judgment.status == "ok"
    agents = {name: decision.agent.id for name, decision in shelf.decisions.items()}
    numbers = Counter(agents.get(one.decision, "") for one in evidence)
    decided, every = Counter(map(subject_of, shelf.decisions.values())), shelf.subjects()

    def about(item: Measurement) -> list[Subject] | None:
        """Whom it is about: named ones, else every agent; None where its name does not tell."""
        named = sorted(item.labels[key] for key in ("agent", "high", "low") if key in item.labels)
        if item.name.startswith(_CELLS) and "cell" in item.labels:
            return [Subject(True, item.labels["cell"])]
        if named:
            return [Subject(False, name) for name in named]
        if item.name == "cell.separation":
            return [one for one in every if one.control and one.name in ("cell_a", "cell_b")]
        honest = item.name.startswith((*_HONEST, *_PARTS))
        return [one for one in every if not one.control] if honest else None

    def link(item: Measurement, groups: Sequence[JudgeGroup], subjects: Sequence[Subject], of: str = "") -> Linked:
        """A link whose number is that of the rows it leads to; where these are more, it says that it is among them."""
        keys, form = {(group.part, group.judge) for group in groups}, item.labels.get("format")
        alone, single = len(groups) == 1, len(subjects) == 1
        n = there = 0
        for (part, judge, whom, written), counts in asked.items():
            mine = counts if item.name == _ASKED else given[part, judge, whom, written]
            n += mine * ((part, judge) in keys and whom in subjects and form in (None, written))
            there += counts * ((not alone or (part, judge) in keys) and (not single or whom in subjects))
        place = f"{OVERVIEW}#{subjects[0].anchor}" if single else OVERVIEW
        if alone:
            first = groups[0]
            place = shelf.exactly((first.part, first.judge, subjects[0])) if single else first.path
        several = alone and single and "#only-" not in place
        words = counted(n, "judgment") if n == there and not several else f"{count(n)} among the judgments"
        return Linked(words + of, place)

    def on(item: Measurement) -> tuple[Linked, ...]:
        name, agent = item.name, item.labels.get("agent")
        if name.startswith(_NUMBERS):
            mine = counted(numbers.total(), "number") if agent is None else f"{count(numbers[agent])} among all numbers"
            return (Linked(mine, LEDGER),)
        if name.startswith(_DECIDED) and agent is None:
            total = sum(n for whom, n in decided.items() if not whom.control)
            return (Linked(f"{count(total)} among all decisions", DECISIONS),)
        if name.startswith(_DECIDED):
            whom = Subject(False, str(agent))
            place, n = decisions.get(whom, Linked("", DECISIONS)).href, decided[whom]
            exact = "#only-" in place
            return (Linked(counted(n, "decision") if exact else f"{count(n)} among all decisions", place),)
        part = next((part for start, part in _PARTS.items() if name.startswith(start)), "panel")
        judges = [item.labels[key] for key in ("judge", "a", "b") if key in item.labels]
        groups = [group for group in shelf.groups if group.part == part and (not judges or group.judge in judges)
                  and group.family != item.labels.get("dropped")]  # fmt: skip
        subjects = about(item)
        if not groups or subjects is None:
            return (Linked("judgments", OVERVIEW),)
        # One link where that says all; one for each judge of two, or for each agent of a pair.
        if len(groups) == 2 and "a" in item.labels:
            return tuple(link(item, [one], subjects, f" by {clean(one.judge, 60)}") for one in groups)
        if len(subjects) == 2 and "high" in item.labels:
            return tuple(link(item, groups, [one], f" on {one.words}") for one in subjects)
        return (link(item, groups, subjects),)

    return on


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

    def answers(self) -> SameAnswers:
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
        return SameAnswers(found, self.dimensions, self.scale)

    def rests(self, evidence: Sequence[Evidence]) -> Rests:
        """Gives what each measurement rests on; ``evidence`` are the numbers in the rationales."""
        return lineage(self.shelf, decisions_by(self.decided), evidence)

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
