"""From a benchmark run to its pages: self-contained, escaped, silent on the network, ordered by verdicts and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from assaymark.benchmark.reference import words_of
from assaymark.report.blocks import (
    Block,
    Facts,
    Figure,
    Group,
    Inline,
    Items,
    Linked,
    Listing,
    Page,
    Section,
    Text,
    bold,
    row_filters,
    spaced,
    weight,
)
from assaymark.report.levels import TAGS
from assaymark.report.measurements import measured_links, measurement_pages
from assaymark.report.page import (
    ALONE,
    PAGE_BYTES,
    SCRIPTS,
    Frame,
    Link,
    Site,
    beside,
    in_parts,
    paged,
    paged_by,
)
from assaymark.report.portbench.book import BenchmarkIndex, BenchRun, profile_word
from assaymark.report.portbench.data import data_page, snapshots_page
from assaymark.report.portbench.first import first_page
from assaymark.report.portbench.levels import PAGE, claim_cards, stage_note, stage_tables
from assaymark.report.portbench.records import (
    BenchTrail,
    date_section,
    episode_paths,
    episodes_table,
    question_cards,
    questions_section,
)
from assaymark.report.portbench.sections import (
    History,
    alignment_table,
    chosen_history,
    every_measurement,
    history_bytes,
    history_views,
    performance_answer,
    performance_views,
    safety_tables,
    scatter_views,
    signals_figure,
    stress_answer,
    stress_table,
    windows_table,
)
from assaymark.report.records.calls import ReadCalls, call_pages
from assaymark.report.text import counted, moment, short_hash
from assaymark.text import clean, count

_HISTORIES, _EPISODES, _QUESTIONS, _SCORES = "histories.html", "episodes.html", "questions.html", "scores.html"
_PROFILES: Final = "profiles.html"
_NAV: Final = (
    Link("results", "index.html", "Board"),
    Link("scores", _SCORES, "Scores"),
    Link("profiles", _PROFILES, "Profiles"),
    Link("histories", _HISTORIES, "Histories"),
    Link("episodes", _EPISODES, "Decisions"),
    Link("questions", _QUESTIONS, "Questions"),
    Link("claims", "claims.html", "Sentences"),
    Link("data", "data.html", "Data"),
    Link("snapshots", "snapshots.html", "Snapshots"),
    Link("measurements", "measurements.html", "Measurements"),
)

_PAGE_OF_HISTORIES: Final = 850_000
"""Bytes of histories on one page: their drawings are counted as they are, so that little is left for surprises."""

_ASKED: Final = ("portbench-asked.css",)
_TABLES: Final = ("portbench-tables.css",)


def render_benchmark(run: BenchRun, site: Site = ALONE) -> Mapping[str, str]:
    """Every page of a benchmark, as relative path -> HTML. Equal runs give equal bytes.

    Examples
    --------
    >>> from assaymark.benchmark import BenchPlan
    >>> plan = BenchPlan(models=({"name": "one", "model": "reference/x", "family": "x"},))
    >>> run = BenchRun(plan=plan, plan_hash="0" * 64, locked_at="2026-01-01", market="synthetic", instruments=81)
    >>> sorted(render_benchmark(run))
    ['claims.html', 'index.html', 'measurements.html', 'scores.html']
    """
    return dict(each_benchmark_page(run, site))


def each_benchmark_page(run: BenchRun, site: Site = ALONE, read: ReadCalls | None = None) -> Iterator[tuple[str, str]]:
    """The pages of `render_benchmark`, one at a time, and those of single calls where ``read`` gives them.

    Every answer to a question stands below ``answers/`` and every call below ``calls/``.
    """
    unlinked = BenchmarkIndex.of(run)
    stems = episode_paths(run.episodes)
    cut = [
        paged_by(
            [*enumerate(episode.dates, 1)],
            lambda date: weight(date_section(*date, {}, opened=False)),
            PAGE_BYTES,
        )
        for episode in run.episodes
    ]
    names = [list(in_parts(stem, parts)) for stem, parts in zip(stems, cut, strict=True)]
    places = [
        [f"{name}#d{at}" for name, part in zip(mine, parts, strict=True) for at, _ in part]
        for mine, parts in zip(names, cut, strict=True)
    ]
    trail = BenchTrail.of(run.answers, [*zip(run.episodes, places, strict=True)])
    measured = in_parts("measurements", paged(every_measurement(unlinked, trail.rests)))
    book = replace(unlinked, links=measured_links(measured))
    views = _Views.of(book)
    further = _further(book, views)
    frame = _frame(book, site, profiles=bool(further))
    calls: dict[str, str] = {}
    if read is not None:
        uses = trail.uses()
        yield from call_pages(read(list(uses)), uses, frame, calls)
    yield from trail.answer_pages(frame, calls)
    yield "index.html", frame.page(first_page(book, list(_deeper(book, profiles=bool(further)))))
    # All that the first page leaves out of the first board.
    history = chosen_history(book)
    brushed = history is not None and history[1].brush is not None
    lead = "Every score, over all profiles or under the strictest, with its interval and how it was found."
    sections = (*_pipeline_sections(book, views, history), questions_section(book), _run_section(book))
    styles, scripts = (*_TABLES, *("brush.css",) * brushed), ("page.js", "brush.js") if brushed else SCRIPTS
    yield _SCORES, frame.page(Page(_SCORES, "Scores", lead, sections, here="scores", styles=styles, scripts=scripts))
    cards = paged_by(claim_cards(book), weight, PAGE)
    lead = (
        "Every candidate claim with its verdict; unsupported claims are listed without direction. Models are in "
        "alphabetical order."
    )
    for path, rows, parts in beside(in_parts("claims", cards).items()):
        listing = Listing(rows, row_filters([row.level for row in rows], TAGS), "claims", "claim-rows")
        yield path, frame.page(Page(path, "Sentences", lead, blocks=(listing,), parts=parts, here="claims"))
    yield from measurement_pages(frame, measured)
    if further:
        lead = "The figures of the first page for each of the other profiles."
        yield _PROFILES, frame.page(Page(_PROFILES, "Profiles", lead, further, here="profiles", styles=_TABLES))
    yield from _histories(book, frame)
    if run.episodes:
        lead = (
            "One model under one profile through one window, with prompt, reply, truth and arithmetic of every date. "
            "Rows are sorted by model."
        )
        table = episodes_table(book, stems)
        yield _EPISODES, frame.page(Page(_EPISODES, "Episodes", lead, blocks=(table,), here="episodes"))
    for one, mine, dates in zip(run.episodes, names, cut, strict=True):
        title = f"{clean(one.model, 60)}, {clean(one.profile, 40)} profile"
        lead = (
            f"{book.window(one.window)}. Prompt, reply, truth and score of every date ({run.plan.convention} formulas)."
        )
        for path, part, parts in beside(zip(mine, dates, strict=True)):
            sections = tuple(date_section(at, date, calls, opened=not first) for first, (at, date) in enumerate(part))
            up = Linked("All episodes", _EPISODES)
            yield path, frame.page(Page(path, title, lead, sections, up=up, parts=parts, styles=_ASKED))
    yield from _question_pages(book, frame, trail, calls)
    if run.data is not None:
        page, files = data_page(book, run.data)
        yield page.path, frame.page(page)
        yield from files
        if run.data.snapshots:
            yield "snapshots.html", frame.page(snapshots_page(book, run.data.snapshots))
    yield from frame.files()


def _question_pages(
    book: BenchmarkIndex, frame: Frame, trail: BenchTrail, calls: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    links = [Linked(clean(model, 60), own[0][0]) for model, own in trail.pages.items()]
    lead_of: Inline = (
        "Some questions with prompt, reply, truth and score. ",
        *(("All answers: ", spaced(links, ", ")) if links else ()),
    )
    cards_of = paged_by(question_cards(book, calls), weight, PAGE_BYTES)
    for path, shown, parts in beside(in_parts("questions", cards_of).items()):
        if shown:
            listing = Listing(shown, row_filters(sorted(row.key for row in shown)), "questions", "question-rows")
            page = Page(path, "Questions", lead_of, blocks=(listing,), parts=parts, here="questions", styles=_ASKED)
            yield path, frame.page(page)


class _Views(NamedTuple):
    """What each board or profile has one of: the first page shows the first, the page of profiles the others."""

    tables: tuple[Group, ...]
    scatters: tuple[Figure, ...]
    safety: tuple[Group, ...]
    performance: tuple[Group, ...]

    @classmethod
    def of(cls, book: BenchmarkIndex) -> _Views:
        """All of them, each made once."""
        calm = [book.normal] if book.normal is not None and book.has_pipeline else []
        return cls(stage_tables(book), scatter_views(book), safety_tables(book), performance_views(book, calm))


def _section(id: str, heading: str, lead: Inline, *blocks: Block | None) -> Iterator[Section]:
    """A section where there is something in it."""
    if kept := tuple(block for block in blocks if block is not None):
        yield Section(id, heading, lead, kept)


def _deeper(book: BenchmarkIndex, *, profiles: bool) -> Iterator[tuple[str, str, str]]:
    """The other pages as (words, path, what is there)."""
    run = book.run
    yield "Scores", _SCORES, "stages, stress, alignment, performance, questions by template"
    if profiles:
        yield "Profiles", _PROFILES, ", ".join(clean(profile.name, 24) for profile in run.profiles)
    if book.has_histories:
        yield "Histories", _HISTORIES, "value and drawdown, every window"
    if run.episodes:
        decisions = sum(len(episode.dates) for episode in run.episodes)
        yield "Decisions", _EPISODES, f"{count(decisions)}, prompt and reply beside the truth"
    if answers := sum(map(len, run.answers.values())):
        yield "Questions", _QUESTIONS, f"{counted(answers, 'answer')}, the reply beside the truth"
    if run.panel:
        yield "Rationales", run.panel, "scored by the judges, a study of its own"
    yield "Sentences", "claims.html", f"{count(len(run.verdicts))}, with reasons"
    yield "Measurements", "measurements.html", f"{count(len(run.measurements))}, with n and method"
    if run.data is not None:
        yield "Data", "data.html", "the market and the questions of this run"


def _pipeline_sections(book: BenchmarkIndex, views: _Views, history: History | None) -> Iterator[Section]:
    """What the first page shows of the pipeline: all profiles together, or the strictest."""
    tables, scatters, safety, performance = views
    stages: list[Inline] = [f"{stage_note(book)} A dotted line links a number to its measurement."]
    stages += [" ", Linked("Every profile", _PROFILES)] if len(tables) > 1 else []
    missing = "" if book.has_pipeline else book.missing("pipeline")
    lead = missing or (_STAGES_LEAD if tables else "No leaderboard was made in this run.")
    yield Section(
        "stages",
        "Where do models lose points?",
        lead,
        (tables[0], Text(tuple(stages))) if tables and not missing else (),
    )
    calm, signals = windows_table(book), signals_figure(book)
    yield from _section(
        "quality",
        "Does quality hold under stress?" if calm else "Do signals become trades?",
        "CEPS in calm and in stress windows. Intervals only, because points would rank the models." if calm else "",
        calm,
        signals,
    )
    if history is not None:
        stressed = (
            "The strictest profile, in the stress window with the largest drawdown of this run. "
            if book.stress
            else "No stress window was run, so losses under stress are unknown. "
        )
        yield Section(
            "histories",
            "Maximum drawdown under stress" if book.stress else "Maximum drawdown",
            (stressed, Linked("Every window and profile", _HISTORIES)),
            (
                Group(history[0].heading, history[0].blocks, history[0].id),
                Text("One history per model: a single observation, so no band is drawn."),
            ),
        )
    safe = None
    if safety:
        others = (Text(Linked("The other profiles", f"{_PROFILES}#safety")),) if len(safety) > 1 else ()
        safe = Group("Safe under stress by CEPS", (Text(_SAFETY, "cap"), safety[0], *others))
    more = Text(Linked("The other profiles", f"{_PROFILES}#stress")) if len(scatters) > 1 else None
    found = (scatters[0] if scatters else None, more, stress_table(book), safe)
    yield from _section("stress", "Calm returns against stressed losses", stress_answer(book), *found)
    several = len(book.run.profiles) > 1
    yield from _section(
        "profiles",
        "Does it change with the investor?" if several else "Does it fit the investor?",
        f"An alignment of 1 keeps every limit of a profile{', whichever profile it is' if several else ''}.",
        alignment_table(book),
    )
    if performance:
        link = Text(Linked("The other profiles", f"{_PROFILES}#performance")) if len(performance) > 1 else None
        answer = (f"{performance_answer(book)} ", Linked("Every window", f"{_HISTORIES}#performance"))
        yield from _section("performance", "What did the portfolios do?", answer, *performance[:1], link)


def _run_section(book: BenchmarkIndex) -> Section:
    """What was run: the plan, its profiles and windows, and what the built-in models do."""
    run = book.run
    limits = [
        f"{profile_word(p.name)}: equities and crypto at most {100 * p.equity_cap:g} %, bonds and cash at least "
        f"{100 * p.bond_floor:g} %, fall at most {100 * p.drawdown_tolerance:g} %, value at risk "
        f"{100 * abs(p.var_limit):g} %"
        for p in run.profiles
    ]
    windows = [
        f"{book.window(w.name)}: {w.first} to {w.last}, "
        f"{counted(run.decisions[w.name], 'decision')}{', stress' if w.kind == 'stress' else ''}"
        for w in run.windows
    ]
    facts = [
        ("Plan", f"{clean(run.plan.name, 80)}, locked {moment(run.locked_at)}"),
        ("Formulas", "as printed (paper)" if run.plan.convention == "paper" else "convention “reference”"),
        *((("Profiles" if not at else ""), text) for at, text in enumerate(limits)),
        *((("Windows" if not at else ""), text) for at, text in enumerate(windows)),
    ]
    known = [
        (bold(clean(model.name, 60)), f": {clean(words, 200)}")
        for model in sorted(run.plan.models, key=lambda model: model.name)
        if (words := words_of(model.model))
    ]
    built_in = (Group("Built-in models", (Items(tuple(known)),)),) if known else ()
    return Section("models", "What was run", blocks=(Facts(tuple(facts)), *built_in))


def _further(book: BenchmarkIndex, views: _Views) -> tuple[Section, ...]:
    """The profiles that the first page does not show."""
    tables, scatters, safety, performance = (
        views.tables[1:],
        views.scatters[1:],
        views.safety[1:],
        views.performance[1:],
    )
    answer = (f"{performance_answer(book)} ", Linked("Every window", f"{_HISTORIES}#performance"))
    return (
        *_section(
            "stages", "Where do models lose points?", _STAGES_LEAD, *tables, Text(stage_note(book)) if tables else None
        ),
        *_section("stress", "Calm returns against stressed losses", stress_answer(book), *scatters),
        *_section("safety", "Safe under stress by CEPS", _SAFETY, *safety),
        *_section("performance", "What did the portfolios do?", answer, *performance),
    )


_STAGES_LEAD: Final = (
    "Mean score at each step, from reading the market (S1) to watching risk (S5), and CEPS over all of them. Models "
    "of a "
    "tier are in alphabetical order."
)
_SAFETY: Final = (
    "The mean CEPS of each stress window against the least that PortBench calls safe. Tick: reached; cross: not. "
    "Models "
    "that share a tier are without their points. A score near its threshold does not differ significantly from it."
)


def _histories(book: BenchmarkIndex, frame: Frame) -> Iterator[tuple[str, str]]:
    """Windows one after the other, on as many pages as they need."""
    views = history_views(book)
    if not any(mine for _, mine in views):
        return
    by_window = [(mine, performance_views(book, [window])) for window, mine in views]

    def size(one: tuple[list[History], tuple[Group, ...]]) -> int:
        return sum(history_bytes(panels) for _, panels, _ in one[0]) + weight(one[1])

    pages = paged_by(by_window, size, _PAGE_OF_HISTORIES)
    lead = (
        "Net asset value and drawdown in every window and profile. One history per model: a single observation, no "
        "band."
    )
    for path, part, parts in beside(in_parts("histories", pages).items()):
        sections = [section for mine, _ in part for section, _, _ in mine]
        tables = tuple(table for _, tables in part for table in tables)
        sections.append(Section("performance", "Performance", performance_answer(book), tables))
        yield path, frame.page(Page(
            path, "Histories", lead, tuple(sections), contents=tuple((one.id, str(one.heading)) for one in sections),
            parts=parts, here="histories", styles=(*_TABLES, "brush.css"), scripts=("page.js", "brush.js"),
        ))  # fmt: skip
    yield from ((panels.data, values) for _, mine in views for _, panels, values in mine if values)


def _frame(book: BenchmarkIndex, site: Site, *, profiles: bool) -> Frame:
    """What stands around every page; the menu has the pages of this run."""
    run = book.run
    there = {"profiles": profiles, "histories": book.has_histories, "episodes": run.episodes,
             "questions": run.answers, "data": run.data, "snapshots": run.data and run.data.snapshots}  # fmt: skip
    nav = tuple(link for link in _NAV if there.get(link.key, True))
    return Frame(clean(run.plan.name, 120), short_hash(clean(run.plan_hash)), nav, site, ("page.css", "portbench.css"))
