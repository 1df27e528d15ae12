"""From a run to its pages: self-contained HTML that asks the network for nothing. Everything from records is escaped by
the templates (autoescape is on for all of them). The scripts are allowed by their hashes, so a script that came in with
a record cannot run even if an escape were missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from assaymark.report.blocks import Page, Row, Section
from assaymark.report.board import board_section
from assaymark.report.cards import PAGE, card_bytes, cards, claim_links, claims_pages, rules_section
from assaymark.report.evidence import evidence_section, ledger_pages, ledger_rows
from assaymark.report.inputs import AssayRun, RunIndex, score_words
from assaymark.report.measurements import measured_links, measured_rows, measurement_pages
from assaymark.report.page import ALONE, JUDGES, Frame, Link, Site, in_parts, paged, paged_by
from assaymark.report.records.calls import ReadCalls
from assaymark.report.records.judgments import OVERVIEW
from assaymark.report.records.study import Calls, Trail
from assaymark.report.records.texts import RECORDS
from assaymark.report.study.agreement import agreement_section, ranks_section, single_section, stability_section
from assaymark.report.study.claim_checks import explanations_section
from assaymark.report.study.claim_map import map_page
from assaymark.report.study.controls import controls_section
from assaymark.report.study.cycle import CLOSES, agents_section, example_closes, example_page
from assaymark.report.study.overview import first_scores, overview, sentence_pages
from assaymark.report.study.plan import cost_section, noise_section, panel_section, plan_section, records_section
from assaymark.report.study.probes import outside_group, people_section
from assaymark.report.text import counted, moment, short_hash
from assaymark.text import clean, count

_NAV: Final = (
    Link("overview", "index.html", "Overview"),
    Link("claims", "claims.html", "Sentences"),
    Link("agents", "agents.html", "Agents"),
    Link("agreement", "agreement.html", "Agreement"),
    Link("facts", "fact-check.html", "Fact check"),
    Link("map", "claim-map.html", "Claim map"),
    Link("measurements", "measurements.html", "Measurements"),
    Link("plan", "plan.html", "Plan"),
)
_PLAN: Final = ("What was fixed before the scores were seen, and who judged.", "The rules that the scores were put to.")
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
    >>> sorted(path for path in render_pages(run) if path.startswith(("c", "i", "l", "m")))
    ['claim-map.html', 'claims.html', 'controls.html', 'index.html', 'ledger/page-001.html', 'measurements.html']
    """
    return dict(each_page(run, site))


def each_page(
    run: AssayRun, site: Site = ALONE, read: ReadCalls | None = None, calls: Calls = "all", *, brief: bool = False
) -> Iterator[tuple[str, str]]:
    """The pages of `render_pages`, one at a time, and those of single calls where there is a ledger to read. A run with
    ``judged`` has pages of its judgments and decisions below ``judgments/`` and ``decisions/``. A ``brief`` report has
    no card of each claim and no row of each measurement; its sentences say what decides them."""
    if brief:
        book, frame = RunIndex.of(run), study_frame(run, site, brief=True)
        for page in _pages(book, (), {}):
            yield page.path, frame.page(page)
        yield from frame.files()
        return
    unlinked, frame = RunIndex.of(run), study_frame(run, site)
    trail = Trail.of(run.judged, run.rubric.dimensions, run.study.rubric.scale) if run.judged else None
    rows = ledger_rows(unlinked, {} if trail is None else trail.decisions)
    parts = paged(measured_rows(unlinked, *([] if trail is None else [trail.rests(run.evidence)])))
    measured = in_parts("measurements", parts)
    links = measured_links(measured)
    unplaced = replace(unlinked, links=links, made={})
    claims = in_parts("claims", paged_by(cards(unplaced, links), lambda one: card_bytes(one[1]), PAGE))
    book = replace(unplaced, claims=claim_links(claims))
    if trail is not None:
        yield from trail.pages(frame, read, calls)
    for page in _pages(book, rows, {path: [card for _, card in found] for path, found in claims.items()}):
        yield page.path, frame.page(page)
    yield from measurement_pages(frame, measured)
    yield from frame.files()
    if closes := example_closes(book):
        yield CLOSES, closes


def _pages(book: RunIndex, rows: Sequence[Row], claims: Mapping[str, Sequence[object]]) -> Iterator[Page]:
    """Every page of blocks: the first one, then one for each question that it links to."""
    table = book.run.table is not None
    # The other pages as (whether it is there, words, path, what is there).
    run, cards, measured = book.run, bool(claims), f"{count(len(book.run.measurements))}, with n and method"
    when = f"locked {moment(run.locked_at).partition(',')[0]}" if run.locked_at else "not locked"
    ways = [
        (cards or not table, "All sentences", "claims.html", f"{count(len(run.verdicts))}, with reasons"),
        (True, "Agents", "agents.html", f"{count(len(book.agents))}, ranks and conduct"),
        (True, "Agreement", "agreement.html", counted(len(run.study.judges), "judge")),
        (True, "Stability", "stability.html", "orders without each judge"),
        (not table or bool(run.study.cells_judged), "Control texts", "controls.html", "texts of known quality"),
        (not table, "Fact check", "fact-check.html", f"{counted(len(rows), 'number')} in the texts"),
        (not table and bool(run.datasheets), "Judges’ own tests", "datasheets.html",
         counted(len(run.datasheets), "datasheet")),
        (not table and bool(run.judged), "Records", OVERVIEW, f"{counted(run.calls, 'call')}, prompt and reply"),
        (not table, "Claim map", "claim-map.html", "every experiment"),
        (cards or not table, "Measurements", "measurements.html", measured),
        (True, "Plan", "plan.html", "the rules, and their defaults" if table else when),
    ]  # fmt: skip
    deeper = [
        ("Any sentence", path, "with what decides it" if path == "sentences.html" else f"on {score_words(dimension)}")
        for path, dimension in reversed(first_scores(book).items()) if table
    ] + [(words, path, said) for there, words, path, said in ways if there]  # fmt: skip
    yield overview(book, deeper)
    yield from sentence_pages(book)
    yield from claims_pages(claims)  # type: ignore[arg-type]
    if not table:
        yield map_page(book, book.links)
    yield _page("agents", "Agents", "How the agents rank, and what they were shown and did.",
                board_section(book), ranks_section(book), agents_section(book))  # fmt: skip
    yield _page("agreement", "Agreement of the judges", "How far the judges agree, together and one by one.",
                agreement_section(book), people_section(book), single_section(book), noise_section(book),
                styles=("judges.css",))  # fmt: skip
    yield _page("stability", "Stability of the orders", "What an order needs beside a significant difference.",
                stability_section(book, outside_group(book)), explanations_section(book),
                rules_section(book))  # fmt: skip
    if not table or book.run.study.cells_judged:
        yield _page("controls", "Control texts", "Texts whose right treatment is known.", controls_section(book))
    made = () if table else (panel_section(book), cost_section(book), records_section(book))
    yield _page("plan", "Plan", _PLAN[table], plan_section(book), *made)
    if table:
        return
    yield _page("fact-check", "Fact check", "The numbers in the texts against what their authors could see.",
                evidence_section(book), here="facts")  # fmt: skip
    yield from ledger_pages(rows)
    example = example_page(book)
    if example is not None:
        yield example


def _page(
    name: str, title: str, lead: str, *sections: Section | None, here: str = "", styles: tuple[str, ...] = ()
) -> Page:
    shown = tuple(section for section in sections if section is not None)
    return Page(f"{name}.html", title, lead, shown, here=here or name, styles=styles)


def study_frame(run: AssayRun, site: Site = ALONE, *, brief: bool = False) -> Frame:
    """The frame of every page of a study, the datasheets of its judges included."""
    if run.table is not None:
        left = {"facts", "map", *(("claims", "measurements") if brief else ())}
        nav = tuple(one for one in _NAV if one.key not in left)
        title = clean(run.study.title or f"Table {run.table.source}", 120)
        return Frame(title, short_hash(clean(run.plan_hash)), nav, site)
    records = (_RECORDS,) if run.judged else ()
    judges = (_JUDGES,) if run.datasheets else ()
    return Frame(
        study=clean(run.study.title or run.study.name, 120),
        mark=short_hash(clean(run.plan_hash)),
        nav=(*_NAV[:-1], *records, _NAV[-1], *judges),
        site=site,
    )
