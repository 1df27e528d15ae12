"""Pages of judgments: one a judge, and an overview with how many each judge gave on each agent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeVar

from assaymark.records import Decision, Judgment, content_id
from assaymark.report.blocks import Filter, only
from assaymark.report.page import Frame, beside, file_stems, paged_by, row_bytes
from assaymark.report.records.texts import BELOW, Ref
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
    "anchors": "under other anchors",
    "outside": "as the outside judge",
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
    """What was judged in a run, and what came of it.

    ``decisions`` are all that a judgment may be of, control texts included; ``parts`` the judgments by part.
    ``people`` are the judges of whom nothing was asked by a call. With ``decided_here`` the agents were asked in this
    run, so that a decision names the key of its call.
    """

    parts: Mapping[Part, Sequence[Judgment]] = field(default_factory=dict)
    decisions: Sequence[Decision] = ()
    people: frozenset[str] = frozenset()
    decided_here: bool = False

    def __bool__(self) -> bool:
        return any(self.parts.values())


@dataclass(frozen=True, slots=True)
class Group:
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
    """Where every judgment of a run stands.

    ``first`` leads to the first judgment of a judge, in a part, on an agent or a control cell.
    """

    judged: Judged
    decisions: Mapping[str, Decision]
    groups: tuple[Group, ...]
    first: Mapping[tuple[Part, str, Subject], str]

    @classmethod
    def of(cls, judged: Judged, dimensions: int) -> Shelf:
        """Plan the pages of a run; a row has a cell for each of ``dimensions``."""
        decisions = {one.record_id: one for one in judged.decisions}
        by_judge: defaultdict[tuple[Part, str], list[Judgment]] = defaultdict(list)
        for part, rows in judged.parts.items():
            for one in rows:
                by_judge[part, one.judge].append(one)
        order = {part: at for at, part in enumerate(PARTS)}
        keys = sorted(by_judge, key=lambda key: (order[key[0]], key[1]))
        stems = file_stems(FOLDER, [(judge,) if part == "panel" else (part, judge) for part, judge in keys])
        stems = tuple(f"{stem}~1" if stem.lower() == f"{FOLDER}/index" else stem for stem in stems)
        groups: list[Group] = []
        first: dict[tuple[Part, str, Subject], str] = {}
        for key, stem in zip(keys, stems, strict=True):
            rows = sorted(by_judge[key], key=lambda one: _place(one, decisions))
            sizes = partial(_size, decisions=decisions, dimensions=dimensions)
            pages = page_paths(stem, paged_by(rows, sizes, PAGE))
            for path, page in pages:
                for one in page:
                    first.setdefault((*key, subject(one, decisions)), f"{path}#{anchor(one)}")
            groups.append(Group(*key, rows[0].family, pages))
        return cls(judged, decisions, tuple(groups), first)

    def exactly(self, key: tuple[Part, str, Subject]) -> str:
        """Where the judgments of a judge, in a part, on a subject are shown alone; the first, if on several pages."""
        group = next((one for one in self.groups if (one.part, one.judge) == key[:2]), None)
        pages = () if group is None else group.pages
        found = [path for path, rows in pages if any(subject(one, self.decisions) == key[2] for one in rows)]
        return f"{found[0]}#{only(key[2].words)}" if len(found) == 1 else self.first.get(key, "")

    def places(self) -> Iterator[tuple[Group, Judgment, str]]:
        """Every judgment with the place where it stands, in the order of the pages."""
        for group in self.groups:
            for path, rows in group.pages:
                for one in rows:
                    yield group, one, f"{path}#{anchor(one)}"

    def subjects(self) -> list[Subject]:
        """Agents by name, then control texts, as far as any was judged or decided."""
        found = {subject_of(one) for one in self.decisions.values()}
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
_BAD: Final = "not-ok"


@dataclass(frozen=True, slots=True)
class JudgmentRow:
    """One judgment, ready to show. ``also`` is what it says beside its scores, or why it has none."""

    anchor: str
    key: str
    ok: bool
    about: str
    record: str
    record_href: str
    when: str
    cluster: str
    trial: str
    scores: tuple[str, ...]
    also: str
    call: str
    call_key: str
    first: str
    first_key: str


@dataclass(frozen=True, slots=True)
class JudgeLine:
    """One judge in the overview."""

    title: str
    href: str
    family: str
    judgments: str
    ok: str
    not_ok: str
    trials: str


@dataclass(frozen=True, slots=True)
class SubjectLine:
    """One agent, or one kind of control text, in the overview: its decisions, and a link for each judge."""

    anchor: str
    title: str
    decisions: Ref
    cells: tuple[Ref, ...]


def judgment_pages(
    shelf: Shelf,
    dimensions: Sequence[tuple[str, str]],
    frame: Frame,
    calls: Mapping[str, str],
    decisions: Mapping[str, str],
    made: Mapping[Subject, Ref],
) -> Iterator[tuple[str, str]]:
    """The overview, then the pages of each judge, one at a time, as path and HTML."""
    yield OVERVIEW, _overview(shelf, frame, made)
    for group in shelf.groups:
        for path, rows, parts in beside(group.pages):
            shown = [_row(one, shelf.decisions, dimensions, calls, decisions) for one in rows]
            yield (
                path,
                frame.render(
                    "trail-judgments.html",
                    f"Judgments of {group.title}",
                    **BELOW,
                    rows=shown,
                    heads=[title for _, title in dimensions],
                    rubric=clean(rows[0].rubric, 120),
                    filters=_filters(shown),
                    total=counted(len(shown), "judgment"),
                    pager=parts,
                ),
            )


# --- one judge ------------------------------------------------------------------------------------------------------


def _row(
    one: Judgment,
    decisions: Mapping[str, Decision],
    dimensions: Sequence[tuple[str, str]],
    calls: Mapping[str, str],
    places: Mapping[str, str],
) -> JudgmentRow:
    decision, about = decisions.get(one.trajectory), subject(one, decisions)
    return JudgmentRow(
        anchor=anchor(one),
        key=about.words,
        ok=one.status == "ok",
        about=about.words,
        record=clean(one.trajectory, 60),
        record_href=places.get(one.trajectory, ""),
        when="" if decision is None else f"{decision.decided_at:%Y-%m-%d}",
        cluster="" if decision is None else clean(decision.cluster, 60),
        trial=count(one.trial),
        scores=tuple(f"{one.scores[name]:g}" if name in one.scores else "" for name, _ in dimensions),
        also=_also(one),
        call=calls.get(one.call_key, ""),
        call_key=clean(one.call_key, 64),
        first=calls.get(one.first_key, ""),
        first_key=clean(one.first_key, 64),
    )


def _also(one: Judgment) -> str:
    """What a judgment says beside its scores; why it has none comes first."""
    said = [] if one.status == "ok" else [f"{one.status}: {clean(one.reason or 'no reason was kept', 200)}"]
    if one.status == "ok" and one.reason:
        said.append(clean(one.reason, 200))
    if one.first_key:
        said.append("asked once more: the first reply was no JSON")
    if one.lookahead_check:
        said.append(f"look-ahead {clean(one.lookahead_check, 40)}")
    if one.evidence:
        more = f" and {len(one.evidence) - _QUOTES} more" if len(one.evidence) > _QUOTES else ""
        said.append(f"quotes {', '.join(clean(quote, 40) for quote in one.evidence[:_QUOTES])}{more}")
    return "; ".join(said)


def _filters(rows: Sequence[JudgmentRow]) -> tuple[Filter, ...]:
    seen = Counter(row.key for row in rows)
    bad = sum(not row.ok for row in rows)
    made = [Filter("", "All", count(len(rows))), *(Filter(key, key, count(n)) for key, n in seen.items())]
    return (*made, Filter(_BAD, "Without scores", count(bad))) if bad else tuple(made)


# --- the overview ---------------------------------------------------------------------------------------------------


def _overview(shelf: Shelf, frame: Frame, made: Mapping[Subject, Ref]) -> str:
    tally = shelf.tally()
    return frame.render(
        "trail-overview.html",
        "Judgments",
        **BELOW,
        answer=_answer(shelf),
        judges=[_judge(group) for group in shelf.groups],
        subjects=[_subject(about, shelf, made, tally) for about in shelf.subjects()],
        **_without_scores(shelf),
    )


def _answer(shelf: Shelf) -> str:
    judgments = sum(1 for group in shelf.groups for _ in group.judgments)
    if not judgments:
        return "No judgment is kept with these pages."
    said = f"{counted(judgments, 'judgment')} of {counted(len(shelf.decisions), 'decision')}"
    return f"{said}; each leads to its call, as it was asked and as it was answered."


def _judge(group: Group) -> JudgeLine:
    rows = list(group.judgments)
    ok = sum(one.status == "ok" for one in rows)
    trials = {one.trial for one in rows}
    return JudgeLine(
        title=group.title,
        href=_here(group.path),
        family=clean(group.family, 80),
        judgments=count(len(rows)),
        ok=count(ok),
        not_ok=count(len(rows) - ok),
        trials=count(len(trials)),
    )


def _subject(
    about: Subject, shelf: Shelf, made: Mapping[Subject, Ref], tally: Counter[tuple[Part, str, Subject, bool]]
) -> SubjectLine:
    cells = []
    for group in shelf.groups:
        key = (group.part, group.judge, about)
        total = tally[*key, True] + tally[*key, False]
        cells.append(Ref(count(total) if total else "none", _here(shelf.exactly(key))))
    return SubjectLine(about.anchor, about.words, made.get(about, Ref("0")), tuple(cells))


def _without_scores(shelf: Shelf) -> dict[str, Any]:
    """The judgments that gave no score, named with the reason."""
    bad = [(group, one, place) for group, one, place in shelf.places() if one.status != "ok"]
    rows = [
        (group.title, subject(one, shelf.decisions).words, Ref(clean(one.trajectory, 60), _here(place)), _also(one))
        for group, one, place in bad[:NOT_OK]
    ]
    return {"bad": rows, "bad_total": counted(len(bad), "judgment"), "bad_more": max(0, len(bad) - NOT_OK)}


def _here(path: str) -> str:
    """A page of this folder, seen from another one of it."""
    return path.removeprefix(f"{FOLDER}/")
