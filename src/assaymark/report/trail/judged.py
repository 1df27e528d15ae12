"""What the judges said, planned as pages: which judgment stands where, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, NamedTuple, TypeVar

from assaymark.records import Decision, Judgment, content_id
from assaymark.report.formats import clean
from assaymark.report.kinds import cell_title
from assaymark.report.paging import file_stems, only, paged_by, row_bytes

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
