"""Pages of judgments: one a judge, and an overview with how many each judge gave on each agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from assaymark.records import Decision, Judgment
from assaymark.report.evidence import Filter
from assaymark.report.formats import clean, count, counted
from assaymark.report.frame import Frame
from assaymark.report.paging import beside
from assaymark.report.trail.judged import FOLDER, OVERVIEW, Group, Part, Shelf, Subject, anchor, subject
from assaymark.report.trail.refs import BELOW, Ref

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
    """The overview, then the pages of each judge, one at a time, as path and HTML.

    Parameters
    ----------
    shelf : Shelf
    dimensions : sequence of (id, title)
        Of the rubric, in its order; a judgment under another rubric shows what it scored.
    frame : Frame
    calls, decisions : mapping of call key, or record id, to str
        Where each stands, below the folder of the report.
    made : mapping of Subject to Ref
        How many decisions there are of each.
    """
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
