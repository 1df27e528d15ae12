"""Pages of judgments: one a judge, and an overview with how many each judge gave on each agent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, NamedTuple, TypeVar

from markupsafe import Markup

from assaymark.records import Decision, Judgment, content_id
from assaymark.report.blocks import (
    Block,
    Filter,
    Inline,
    Linked,
    Page,
    Row,
    Section,
    Table,
    Text,
    bold,
    only,
    row_bytes,
    row_filters,
    small,
)
from assaymark.report.page import Frame, beside, file_stems, paged_by
from assaymark.report.records.texts import BELOW, SEARCH
from assaymark.report.text import cell_title, counted
from assaymark.text import clean, count

# What the judges said, planned as pages: which judgment stands where, and how many there are of each kind.


FOLDER: Final = "judgments"
OVERVIEW: Final = f"{FOLDER}/index.html"
PAGE: Final = 380_000
"""Bytes of rows on one page of judgments or decisions."""

T = TypeVar("T")
Part = Literal["panel", "anchors", "outside", "grades"]
PARTS: Final[Mapping[Part, str]] = {
    "panel": "",
    "anchors": "under another rubric wording",
    "outside": "as the held-out judge",
    "grades": "after the outcome",
}
"""The parts of a run's judgments: the panel's, those of the anchor probe, and those of the outside judge."""

_ROW: Final = 330
_SCORE: Final = 44


class Subject(NamedTuple):
    """Whom a judgment is about: an agent by its id, or control texts by their kind. Agents come first in order."""

    control: bool
    name: str

    @property
    def words(self) -> str:
        """How a page calls it.

        >>> Subject(False, "alder").words, Subject(True, "cell_b").words
        ('alder', 'Cell B: terse and correct')
        """
        return cell_title(self.name) if self.control else clean(self.name, 80) or "unknown"

    @property
    def anchor(self) -> str:
        """The id of its row in the overview."""
        return f"a{content_id([self.control, self.name])[:10]}"


_UNKNOWN: Final = Subject(False, "")


@dataclass(frozen=True, slots=True)
class Judged:
    """What was judged in a run, and what came of it. ``decisions`` are all that a judgment may be of, control texts
    included; ``parts`` the judgments by part. ``people`` are the judges of whom nothing was asked by a call. With
    ``decided_here`` the agents were asked in this run, so that a decision names the key of its call."""

    parts: Mapping[Part, Sequence[Judgment]] = field(default_factory=dict)
    decisions: Sequence[Decision] = ()
    people: frozenset[str] = frozenset()
    decided_here: bool = False

    def __bool__(self) -> bool:
        return any(self.parts.values())


@dataclass(frozen=True, slots=True)
class JudgeGroup:
    """The judgments of one judge in one part, and how they are cut into pages: ``pages`` are path and judgments."""

    part: Part
    judge: str
    family: str
    pages: tuple[tuple[str, tuple[Judgment, ...]], ...]

    @property
    def title(self) -> str:
        """How a page calls it."""
        return f"{clean(self.judge, 80)}, {PARTS[self.part]}" if PARTS[self.part] else clean(self.judge, 80)

    @property
    def path(self) -> str:
        """Where it begins."""
        return self.pages[0][0]

    @property
    def judgments(self) -> Iterator[Judgment]:
        """All of them, in the order of the pages."""
        return (one for _, rows in self.pages for one in rows)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where every judgment of a run stands. ``first`` leads to the first judgment of a judge, in a part, on an agent or
    a control cell."""

    judged: Judged
    decisions: Mapping[str, Decision]
    groups: tuple[JudgeGroup, ...]
    first: Mapping[tuple[Part, str, Subject], str]

    @classmethod
    def of(cls, judged: Judged, dimensions: int) -> Shelf:
        """Plan the pages of a run; a row has a cell for each of ``dimensions``."""
        decisions = {decision.record_id: decision for decision in judged.decisions}
        by_judge: defaultdict[tuple[Part, str], list[Judgment]] = defaultdict(list)
        for part, rows in judged.parts.items():
            for one in rows:
                by_judge[part, one.judge].append(one)
        order = {part: at for at, part in enumerate(PARTS)}
        keys = sorted(by_judge, key=lambda key: (order[key[0]], key[1]))
        stems = file_stems(FOLDER, [(judge,) if part == "panel" else (part, judge) for part, judge in keys])
        stems = tuple(f"{stem}~1" if stem.lower() == f"{FOLDER}/index" else stem for stem in stems)
        groups: list[JudgeGroup] = []
        first: dict[tuple[Part, str, Subject], str] = {}
        for key, stem in zip(keys, stems, strict=True):
            rows = sorted(by_judge[key], key=lambda one: _place(one, decisions))
            sizes = partial(_size, decisions=decisions, dimensions=dimensions)
            pages = page_paths(stem, paged_by(rows, sizes, PAGE))
            for path, page in pages:
                for one in page:
                    first.setdefault((*key, subject(one, decisions)), f"{path}#{anchor(one)}")
            groups.append(JudgeGroup(*key, rows[0].family, pages))
        return cls(judged, decisions, tuple(groups), first)

    def exactly(self, key: tuple[Part, str, Subject]) -> str:
        """Where the judgments of a judge, in a part, on a subject are shown alone; the first, if on several pages."""
        group = next((one for one in self.groups if (one.part, one.judge) == key[:2]), None)
        pages = () if group is None else group.pages
        found = [path for path, rows in pages if any(subject(row, self.decisions) == key[2] for row in rows)]
        return f"{found[0]}#{only(key[2].words)}" if len(found) == 1 else self.first.get(key, "")

    def places(self) -> Iterator[tuple[JudgeGroup, Judgment, str]]:
        """Every judgment with the place where it stands, in the order of the pages."""
        for group in self.groups:
            for path, rows in group.pages:
                for row in rows:
                    yield group, row, f"{path}#{anchor(row)}"

    def subjects(self) -> list[Subject]:
        """Agents by name, then control texts, as far as any was judged or decided."""
        found = {subject_of(decision) for decision in self.decisions.values()}
        return sorted(found | {about for _, _, about in self.first})

    def tally(self) -> Counter[tuple[Part, str, Subject, bool]]:
        """How many judgments there are of each part, judge and subject, valid ones (True) and others."""
        return Counter(
            (group.part, group.judge, subject(one, self.decisions), one.status == "ok")
            for group in self.groups
            for one in group.judgments
        )


def subject_of(decision: Decision) -> Subject:
    """Whom a decision is of."""
    kind = decision.derivation.kind
    return Subject(False, decision.agent.id) if kind == "honest" else Subject(True, kind)


def subject(judgment: Judgment, decisions: Mapping[str, Decision]) -> Subject:
    """Whom a judgment is about; without a name where its decision is not known."""
    found = decisions.get(judgment.trajectory)
    return _UNKNOWN if found is None else subject_of(found)


def anchor(judgment: Judgment) -> str:
    """The id of a judgment's row."""
    return f"j{content_id([judgment.judge, judgment.rubric, judgment.trajectory, judgment.trial])[:12]}"


def _place(one: Judgment, decisions: Mapping[str, Decision]) -> tuple[Subject, float, str, int]:
    """By agent, control texts last, then by time; never by score."""
    about = subject(one, decisions)
    when = decisions[one.trajectory].decided_at.timestamp() if one.trajectory in decisions else 0.0
    return about, when, one.trajectory, one.trial


def page_paths(stem: str, pages: Sequence[tuple[T, ...]]) -> tuple[tuple[str, tuple[T, ...]], ...]:
    """Pages of one judge with the paths where they lie. No judge's own page has a tilde in its name: see `file_stems`.

    >>> page_paths("judgments/x", [("a",), ("b",)])
    (('judgments/x.html', ('a',)), ('judgments/x~2.html', ('b',)))
    """
    return tuple((f"{stem}.html" if at == 1 else f"{stem}~{at}.html", rows) for at, rows in enumerate(pages, 1))


def _size(one: Judgment, *, decisions: Mapping[str, Decision], dimensions: int) -> int:
    decision = decisions.get(one.trajectory)
    texts = [one.trajectory[:60], one.reason or "", *(quote[:40] for quote in one.evidence[:3])]
    texts += [] if decision is None else [decision.agent.id[:80] * 2, decision.cluster[:60]]
    return row_bytes(_ROW + _SCORE * dimensions, [text[:300] for text in texts])


NOT_OK: Final = 100
"""Judgments without a score that the overview names; the pages of the judges have them all."""

_QUOTES: Final = 3
_RECORD: Final = "A judgment is a record; which claims it supports is decided by the "
_FIRST: Final = Linked("verdicts", "index.html")


def judgment_pages(
    shelf: Shelf,
    dimensions: Sequence[tuple[str, str]],
    frame: Frame,
    calls: Mapping[str, str],
    decisions: Mapping[str, str],
    made: Mapping[Subject, Linked],
) -> Iterator[tuple[str, str]]:
    """The overview, then the pages of each judge, one at a time, as path and HTML."""
    yield OVERVIEW, frame.page(_overview(shelf, made))
    titles = tuple(title for _, title in dimensions)
    heads = ("Agent", "Decision", "Trial", *titles, "Notes", "Call")
    for group in shelf.groups:
        for path, rows, parts in beside(group.pages):
            row_list: list[Row] = []
            for one in rows:
                decision, about, ok = (
                    shelf.decisions.get(one.trajectory),
                    subject(one, shelf.decisions).words,
                    one.status == "ok",
                )
                record: list[Inline] = [Linked(clean(one.trajectory, 60), decisions.get(one.trajectory, ""))]
                if decision is not None:
                    record += [" ", small(f"{decision.decided_at:%Y-%m-%d}, {clean(decision.cluster, 60)}")]
                scores = [
                    f"{one.scores[name]:g}" if name in one.scores else "not scored" if ok else "none"
                    for name, _ in dimensions
                ]
                call = call_cell(one.call_key, calls)
                if calls.get(one.first_key):
                    call = (call, small(" first: "), call_cell(one.first_key, calls))
                also = _also(one) if ok else bold(_also(one))
                cells = (about, tuple(record), count(one.trial), *scores, also, call)
                row_list.append(Row(cells, anchor(one), about, "" if ok else "not-ok"))
            shown = tuple(row_list)
            bad = sum(one.status != "ok" for one in rows)
            without = (Filter("not-ok", "Without scores", count(bad)),) if bad else ()
            table = Table(
                heads,
                shown,
                frozenset(range(2, 3 + len(titles))),
                summary="",
                stacked=True,
                id="judgment-rows",
                filters=(*row_filters([row.key for row in shown]), *without),
                what="judgments",
            )
            rubric = f". Rows are sorted by agent and date, never by score. Rubric: {clean(rows[0].rubric, 120)}. "
            lead = (_RECORD, _FIRST, rubric, Linked("All judges", OVERVIEW), ", ",
                    Linked("search all parts", SEARCH))  # fmt: skip
            title = f"Judgments of {group.title}"
            yield path, frame.page(Page(path, title, lead, (), (table,), parts, **BELOW))


def call_cell(key: str, calls: Mapping[str, str]) -> Inline:
    """The first characters of a call's key, leading to the call where it has a place."""
    if not key:
        return "no call"
    if calls.get(key):
        return Linked(key[:8], calls[key])
    return Markup('<code title="{}">{}</code>').format(clean(key, 64), clean(key, 64)[:8])


def _also(one: Judgment) -> str:
    """What a judgment says beside its scores; why it has none comes first."""
    said = [] if one.status == "ok" else [f"{one.status}: {clean(one.reason or 'no reason was kept', 200)}"]
    if one.status == "ok" and one.reason:
        said.append(clean(one.reason, 200))
    if one.first_key:
        said.append("asked once more: the first reply was not JSON")
    if one.lookahead_check:
        said.append(f"look-ahead {clean(one.lookahead_check, 40)}")
    if one.evidence:
        more = f" and {len(one.evidence) - _QUOTES} more" if len(one.evidence) > _QUOTES else ""
        said.append(f"quotes {', '.join(clean(quote, 40) for quote in one.evidence[:_QUOTES])}{more}")
    return "; ".join(said)


def _overview(shelf: Shelf, made: Mapping[Subject, Linked]) -> Page:
    total = sum(1 for group in shelf.groups for _ in group.judgments)
    if not total:
        said = "No judgment is kept with these pages."
        return Page(OVERVIEW, "Judgments", (_RECORD, _FIRST, ". ", said), **BELOW)
    judges: list[tuple[Inline, ...]] = []
    for group in shelf.groups:
        rows = list(group.judgments)
        ok = sum(row.status == "ok" for row in rows)
        numbers = (len(rows), ok, len(rows) - ok, len({row.trial for row in rows}))
        judges.append((Linked(group.title, group.path), clean(group.family, 80), *map(count, numbers)))
    tally = shelf.tally()
    subjects: list[Row] = []
    for about in shelf.subjects():
        cells: list[Inline] = []
        for group in shelf.groups:
            key = (group.part, group.judge, about)
            n = tally[*key, True] + tally[*key, False]
            cells.append(Linked(count(n) if n else "none", shelf.exactly(key)))
        subjects.append(Row((about.words, made.get(about, "0"), *cells), about.anchor))
    bad = [(group, one, place) for group, one, place in shelf.places() if one.status != "ok"]
    named = tuple(
        (group.title, subject(one, shelf.decisions).words, Linked(clean(one.trajectory, 60), place), _also(one))
        for group, one, place in bad[:NOT_OK]
    )
    without: list[Block] = [Table(("Judge", "Agent", "Decision", "Reason"), named, summary="", stacked=True)]
    if len(bad) > NOT_OK:
        without.append(Text(f"{len(bad) - NOT_OK} more are on the pages of the judges."))
    heads = ("Agent", "Decisions", *(group.title for group in shelf.groups))
    of_judges = ("Judge", "Family", "Judgments", "With scores", "Without", "Trials")
    return Page(
        OVERVIEW,
        "Judgments",
        (
            _RECORD,
            _FIRST,
            f". {counted(total, 'judgment')} of {counted(len(shelf.decisions), 'decision')}; each links to its call. ",
            Linked("Search all parts", SEARCH),
        ),
        (
            Section(
                "judges",
                "Which judges?",
                blocks=(Table(of_judges, tuple(judges), frozenset(range(2, 6)), "", stacked=True),),
            ),
            Section(
                "agents",
                "Which agents did they judge?",
                "Judgments by judge and agent, agents by name. A number links to exactly these judgments where they "
                "fit on one page, else to the first.",
                (Table(heads, tuple(subjects), frozenset(range(1, len(heads))), "", label="Judgments by agent"),),
            ),
            Section(
                "without",
                "Which gave no score?",
                f"{counted(len(bad), 'judgment')} gave none and count in no number."
                if bad
                else "None: all have scores.",
                tuple(without) if bad else (),
            ),
        ),
        **BELOW,
    )
