"""From a run to its pages: self-contained HTML that asks the network for nothing.

Everything from records is escaped by the templates (autoescape is on for all of them). The one script is allowed by
its hash, so a script that came in with a record cannot run even if an escape were missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from assaymark.report.blocks import row_filters
from assaymark.report.board import board
from assaymark.report.cards import PAGE, Card, cards, claim_links, fragility_view
from assaymark.report.evidence import LedgerRow, evidence_filters, evidence_view, ledger_rows
from assaymark.report.inputs import AssayRun
from assaymark.report.levels import LEVELS, TAGS, TALLY, level_views
from assaymark.report.lookup import Book
from assaymark.report.measurements import measured_links, measured_rows, measurement_pages
from assaymark.report.page import ALONE, JUDGES, Frame, Link, Site, beside, in_parts, paged
from assaymark.report.records.calls import ReadCalls
from assaymark.report.records.judgments import OVERVIEW
from assaymark.report.records.study import Calls, Trail
from assaymark.report.records.texts import RECORDS
from assaymark.report.study.agreement import agreement_view, ranks_view, single_view, stability_view
from assaymark.report.study.claim_checks import explanations_view
from assaymark.report.study.claim_map import claim_map
from assaymark.report.study.controls import controls_view, style_view
from assaymark.report.study.cycle import CLOSES, EXAMPLE, agents_view, example_view
from assaymark.report.study.gaps import gaps_view
from assaymark.report.study.outside import outside_view
from assaymark.report.study.plan import cost_view, plan_view
from assaymark.report.study.probes import anchor_view, contamination_view
from assaymark.report.text import counted, listing, short_hash
from assaymark.text import clean, count

_NAV: Final = (
    Link("verdicts", "index.html", "Verdicts"),
    Link("map", "claim-map.html", "Claim map"),
    Link("claims", "claims.html", "All claims"),
    Link("measurements", "measurements.html", "Measurements"),
    Link("ledger", "ledger/page-001.html", "Ledger"),
    Link("plan", "index.html#plan", "Plan"),
)
_JUDGES: Final = Link(JUDGES, "datasheets.html", "Judges")
_RECORDS: Final = Link(RECORDS, OVERVIEW, "Records")


def render_pages(run: AssayRun, site: Site = ALONE) -> Mapping[str, str]:
    """Every page of a run, as relative path -> HTML. Equal runs give equal bytes.

    Examples
    --------
    >>> from assaymark.protocol import JudgeSpec, Study
    >>> from assaymark.report import RubricView
    >>> study = Study(name="s", seed=1, judges=(JudgeSpec(name="j", model="reference/j", family="f"),))
    >>> run = AssayRun(study=study, plan_hash="0" * 64, locked_at=None, verdicts=(), measurements=(), decisions=(),
    ...                rubric=RubricView(name="v1.0", title="A rubric", dimensions=()), evidence=())
    >>> sorted(render_pages(run))
    ['claim-map.html', 'claims.html', 'index.html', 'ledger/page-001.html', 'measurements.html']
    """
    return dict(each_page(run, site))


def each_page(
    run: AssayRun, site: Site = ALONE, read: ReadCalls | None = None, calls: Calls = "all"
) -> Iterator[tuple[str, str]]:
    """The pages of `render_pages`, one at a time, and those of single calls where there is a ledger to read.

    A run with ``judged`` has pages of its judgments and decisions below ``judgments/`` and ``decisions/``.
    """
    unlinked, frame = Book.of(run), study_frame(run, site)
    trail = Trail.of(run.judged, run.rubric.dimensions) if run.judged else None
    rows = ledger_rows(unlinked, {} if trail is None else trail.decisions)
    parts = paged(measured_rows(unlinked, None if trail is None else trail.rests(run.evidence)))
    measured = in_parts("measurements", parts)
    links = measured_links(measured)
    unplaced = replace(unlinked, links=links)
    claims = in_parts("claims", paged(cards(unplaced, links), PAGE))
    book = replace(unplaced, claims=claim_links(claims))
    if trail is not None:
        yield from trail.pages(frame, read, calls)
    yield "index.html", _index(book, frame, rows)
    yield "claim-map.html", _map(book, frame, links)
    yield from _claims(frame, claims)
    yield from measurement_pages(frame, measured)
    yield from _ledger(frame, rows)
    yield from _example(book, frame)


# --- pages ----------------------------------------------------------------------------------------------------------


def _index(book: Book, frame: Frame, rows: Sequence[LedgerRow]) -> str:
    run = book.run
    levels = [v.publication_level for v in run.verdicts]
    titles = [book.title(name) for name, _ in run.rubric.dimensions]
    return frame.render(
        "index.html",
        "Supported claims",
        here="verdicts",
        styles=("judges.css",),
        tally=[(level, count(levels.count(level)), TALLY[level]) for level in LEVELS],
        claims_total=count(len(levels)),
        levels=level_views(book),
        plan=plan_view(book),
        plan_hash=clean(run.plan_hash),
        rubric={
            "name": clean(run.rubric.name, 80),
            "title": clean(run.rubric.title, 160),
            "dimensions": listing(titles) or "none",
        },
        board=board(book),
        agents=agents_view(book),
        agreement=agreement_view(book),
        untestable=book.untestable,
        stability=stability_view(book),
        explanations=explanations_view(book),
        outside=outside_view(book),
        ranks=ranks_view(book),
        controls=controls_view(book),
        single=single_view(book),
        fragility=fragility_view(book),
        evidence=evidence_view(book, rows),
        cost=cost_view(book),
    )


def _map(book: Book, frame: Frame, links: Mapping[str, str]) -> str:
    return frame.render(
        "claim-map.html",
        "Claim map",
        here="map",
        map=claim_map(book, links),
        gaps=gaps_view(book),
        anchors=anchor_view(book),
        style=style_view(book),
        contamination=contamination_view(book),
    )


def _claims(frame: Frame, pages: Mapping[str, Sequence[Card]]) -> Iterator[tuple[str, str]]:
    for name, rows, parts in beside(pages.items()):
        yield (
            name,
            frame.render(
                "claims.html",
                "All claims",
                here="claims",
                rows=rows,
                filters=row_filters([row.claim.level for row in rows], TAGS),
                total=counted(len(rows), "claim"),
                pager=parts,
            ),
        )


def _ledger(frame: Frame, rows: Sequence[LedgerRow]) -> Iterator[tuple[str, str]]:
    done = 0
    pages = [(f"ledger/page-{at:03d}.html", part) for at, part in enumerate(paged(rows), 1)]
    for path, part, parts in beside(pages):
        span = _span(done, len(part), len(rows))
        done += len(part)
        yield (
            path,
            frame.render(
                "ledger.html",
                "The evidence ledger",
                here="ledger",
                root="../",
                rows=part,
                filters=evidence_filters(part),
                total=counted(len(part), "number"),
                span=span,
                pager=parts,
            ),
        )


def _example(book: Book, frame: Frame) -> Iterator[tuple[str, str]]:
    """The page of one whole cycle with the closes behind its charts, where the run has one."""
    view = example_view(book)
    if view is not None:
        yield CLOSES, view.closes
        yield EXAMPLE, frame.render("cycle-example.html", view.title, here="", view=view)


def _span(done: int, here: int, total: int) -> str:
    return f"Rows {count(done + 1)} to {count(done + here)} of {count(total)}." if here else "It is empty."


# --- the frame ------------------------------------------------------------------------------------------------------


def study_frame(run: AssayRun, site: Site = ALONE) -> Frame:
    """The frame of every page of a study, the datasheets of its judges included."""
    records = (_RECORDS,) if run.judged else ()
    judges = (_JUDGES,) if run.datasheets else ()
    return Frame(
        study=clean(run.study.title or run.study.name, 120),
        mark=short_hash(clean(run.plan_hash)),
        nav=(*_NAV[:-1], *records, _NAV[-1], *judges),
        site=site,
    )
