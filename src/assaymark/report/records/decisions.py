"""Pages of decisions: who decided what, when, on which question, and where its judgments and its call stand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from assaymark.records import Decision, content_id
from assaymark.report.blocks import Linked, Page, Row, Table, only, row_bytes, row_filters, small, spaced
from assaymark.report.page import Frame, beside, paged_by
from assaymark.report.records.judgments import PAGE, Shelf, Subject, subject_of
from assaymark.report.records.texts import BELOW
from assaymark.text import clean, count

DECIDED_FOLDER: Final = "decisions"

_ROW: Final = 300
_LINK: Final = 70
_ORDERS: Final = 4


def planned(shelf: Shelf) -> tuple[tuple[str, tuple[Decision, ...]], ...]:
    """The pages of decisions as path and decisions: by agent, control texts last, then by time."""
    judges = len(shelf.groups)

    def size(one: Decision) -> int:
        texts = (subject_of(one).words, one.record_id[:60], one.cluster[:60], _orders(one))
        return row_bytes(_ROW + _LINK * judges, texts)

    pages = paged_by(sorted(shelf.judged.decisions, key=_place), size, PAGE)
    return tuple((f"{DECIDED_FOLDER}/page-{at:03d}.html", rows) for at, rows in enumerate(pages, 1))


def decision_places(pages: Sequence[tuple[str, Sequence[Decision]]]) -> dict[str, str]:
    """Where each decision stands, by its record id."""
    return {one.record_id: f"{path}#{anchor(one)}" for path, rows in pages for one in rows}


def decisions_by(pages: Sequence[tuple[str, Sequence[Decision]]]) -> dict[Subject, Linked]:
    """How many decisions there are of each agent, or kind of control text, and where: these alone, else the first."""
    seen = Counter(subject_of(one) for _, rows in pages for one in rows)
    first: dict[Subject, str] = {}
    on: defaultdict[Subject, set[str]] = defaultdict(set)
    for path, rows in pages:
        for row in rows:
            first.setdefault(subject_of(row), f"{path}#{anchor(row)}")
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
            shown.append(Row((*cells, Linked("call", call) if call else "not kept"), anchor(one), about))
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
        yield path, frame.page(Page(path, "Decisions", lead, blocks=(table,), parts=parts, **BELOW))


def anchor(decision: Decision) -> str:
    """The id of a decision's row."""
    return f"d{content_id(decision.record_id)[:12]}"


def _place(one: Decision) -> tuple[Subject, float, str]:
    return subject_of(one), one.decided_at.timestamp(), one.record_id


def _orders(one: Decision) -> str:
    """What was decided, in a few words, and what is noted about it."""
    orders = [f"{action.kind.replace('_', ' ')} {clean(action.instrument, 30)}" for action in one.actions[:_ORDERS]]
    more = f" and {count(len(one.actions) - _ORDERS)} more" if len(one.actions) > _ORDERS else ""
    flags = f"; {', '.join(clean(flag, 40) for flag in one.flags[:_ORDERS])}" if one.flags else ""
    return f"{', '.join(orders) or 'no order'}{more}{flags}"
