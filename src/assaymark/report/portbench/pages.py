"""From a benchmark run to its pages: self-contained, escaped, silent on the network, ordered by verdicts and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from assaymark.benchmark.reference import words_of
from assaymark.report import blocks as b
from assaymark.report import page as p
from assaymark.report.measurements import measured_links, measured_parts, measurement_pages
from assaymark.report.portbench import levels
from assaymark.report.portbench import records as r
from assaymark.report.portbench import sections as s
from assaymark.report.portbench.book import BenchmarkIndex, BenchRun, DateTrace, EpisodeTrace, profile_word
from assaymark.report.portbench.data import data_page, snapshots_page
from assaymark.report.portbench.first import first_page
from assaymark.report.records.calls import ReadCalls, call_pages
from assaymark.report.text import TAGS, counted, moment, short_hash
from assaymark.text import clean, count

_HISTORIES, _EPISODES, _QUESTIONS, _SCORES = "histories.html", "episodes.html", "questions.html", "scores.html"
_PROFILES: Final = "profiles.html"
_NAV: Final = (
    p.Link("results", "index.html", "Board"), p.Link("scores", _SCORES, "Scores"),
    p.Link("profiles", _PROFILES, "Profiles"), p.Link("histories", _HISTORIES, "Histories"),
    p.Link("episodes", _EPISODES, "Decisions"), p.Link("questions", _QUESTIONS, "Questions"),
    p.Link("claims", "claims.html", "Sentences"), p.Link("data", "data.html", "Data"),
    p.Link("snapshots", "snapshots.html", "Snapshots"), p.Link("measurements", "measurements.html", "Measurements"),
)  # fmt: skip
_PAGE_OF_HISTORIES: Final = 850_000
"""Bytes of histories on one page: their drawings are counted as they are, so that little is left for surprises."""

_ASKED: Final = ("portbench-asked.css",)
_TABLES: Final = ("portbench-tables.css",)
_STAGES_LEAD: Final = (
    "Mean score at each step, from reading the market (S1) to watching risk (S5), and CEPS over all of them. Models "
    "of a tier are in alphabetical order."
)
_SAFETY: Final = (
    "The mean CEPS of each stress window against the least that PortBench calls safe. Tick: reached; cross: not. "
    "Models that share a tier are without their points. A score near its threshold does not differ significantly from "
    "it."
)


def render_benchmark(run: BenchRun, site: p.Site = p.ALONE) -> Mapping[str, str]:
    """Every page of a benchmark, as relative path -> HTML. Equal runs give equal bytes."""
    return dict(each_benchmark_page(run, site))


def each_benchmark_page(
    run: BenchRun, site: p.Site = p.ALONE, read: ReadCalls | None = None
) -> Iterator[tuple[str, str]]:
    """The pages one at a time, with every answer below ``answers/``; those of calls where ``read`` gives them."""
    unlinked = BenchmarkIndex.of(run)
    cut = [
        p.paged_by([*enumerate(episode.dates, 1)], lambda date: b.weight(r.date_section(*date, {}, opened=False)),
                   p.PAGE_BYTES)
        for episode in run.episodes
    ]  # fmt: skip
    stems = r.episode_paths(run.episodes)
    names = [list(p.in_parts(stem, parts)) for stem, parts in zip(stems, cut, strict=True)]
    places = [
        [f"{name}#d{at}" for name, part in zip(mine, parts, strict=True) for at, _ in part]
        for mine, parts in zip(names, cut, strict=True)
    ]
    trail = r.BenchTrail.of(run.answers, [*zip(run.episodes, places, strict=True)])
    measured = measured_parts(s.every_measurement(unlinked, trail.rests))
    book = replace(unlinked, links=measured_links(measured))
    # What each board or profile has one of: the first page shows the first, the page of profiles the others.
    calm = [book.normal] if book.normal is not None and book.has_pipeline else []
    tables, scatters, safety, performance = views = (
        levels.stage_tables(book), s.scatter_views(book), s.safety_tables(book), s.performance_views(book, calm),
    )  # fmt: skip
    answer = (f"{s.performance_answer(book)} ", b.Linked("Every window", f"{_HISTORIES}#performance"))
    note = b.Text(levels.stage_note(book)) if tables[1:] else None
    further = (
        *_section("stages", "Where do models lose points?", _STAGES_LEAD, *tables[1:], note),
        *_section("stress", "Calm returns against stressed losses", s.stress_answer(book), *scatters[1:]),
        *_section("safety", "Safe under stress by CEPS", _SAFETY, *safety[1:]),
        *_section("performance", "What did the portfolios do?", answer, *performance[1:]),
    )
    there = {"profiles": further, "histories": book.has_histories, "episodes": run.episodes, "questions": run.answers,
             "data": run.data, "snapshots": run.data and run.data.snapshots}  # fmt: skip
    nav = tuple(link for link in _NAV if there.get(link.key, True))
    mark = short_hash(clean(run.plan_hash))
    frame = p.Frame(clean(run.plan.name, 120), mark, nav, site, ("page.css", "portbench.css"))
    calls: dict[str, str] = {}
    if read is not None:
        uses = trail.uses()
        yield from call_pages(read(list(uses)), uses, frame, calls)
    yield from trail.answer_pages(frame, calls)
    decisions, answered = sum(len(one.dates) for one in run.episodes), sum(map(len, run.answers.values()))
    deeper: tuple[tuple[object, str, str, str], ...] = (  # the other pages: whether there, words, path, what is there
        (True, "Scores", _SCORES, "stages, stress, alignment, performance, questions by template"),
        (further, "Profiles", _PROFILES, ", ".join(clean(profile.name, 24) for profile in run.profiles)),
        (book.has_histories, "Histories", _HISTORIES, "value and drawdown, every window"),
        (run.episodes, "Decisions", _EPISODES, f"{count(decisions)}, prompt and reply beside the truth"),
        (answered, "Questions", _QUESTIONS, f"{counted(answered, 'answer')}, the reply beside the truth"),
        (run.panel, "Rationales", run.panel or "", "scored by the judges, a study of its own"),
        (True, "Sentences", "claims.html", f"{count(len(run.verdicts))}, with reasons"),
        (True, "Measurements", "measurements.html", f"{count(len(run.measurements))}, with n and method"),
        (run.data is not None, "Data", "data.html", "the market and the questions of this run"),
    )
    yield "index.html", frame.page(first_page(book, [one[1:] for one in deeper if one[0]]))
    # All that the first page leaves out of the first board.
    history = s.chosen_history(book)
    brushed = history is not None and history[1].brush is not None
    lead = "Every score, over all profiles or under the strictest, with its interval and how it was found."
    sections = tuple(_sections(book, views, history))
    styles, scripts = (*_TABLES, *("brush.css",) * brushed), ("page.js", "brush.js") if brushed else p.SCRIPTS
    yield _SCORES, frame.page(b.Page(_SCORES, "Scores", lead, sections, here="scores", styles=styles, scripts=scripts))
    lead = (
        "Every candidate claim with its verdict; unsupported claims are listed without direction. Models are in "
        "alphabetical order."
    )
    cards = p.paged_by(levels.claim_cards(book), b.weight, levels.PAGE)
    for path, rows, parts in p.beside(p.in_parts("claims", cards).items()):
        listing = b.Listing(rows, b.row_filters([row.level for row in rows], TAGS), "claims", "claim-rows")
        yield path, frame.page(b.Page(path, "Sentences", lead, blocks=(listing,), parts=parts, here="claims"))
    yield from measurement_pages(frame, measured)
    if further:
        lead = "The figures of the first page for each of the other profiles."
        yield _PROFILES, frame.page(b.Page(_PROFILES, "Profiles", lead, further, here="profiles", styles=_TABLES))
    yield from _record_pages(book, frame, trail, calls, stems, [*zip(run.episodes, names, cut, strict=True)])
    if run.data is not None:
        page, files = data_page(book, run.data)
        yield page.path, frame.page(page)
        yield from files
        if run.data.snapshots:
            yield "snapshots.html", frame.page(snapshots_page(book, run.data.snapshots))
    yield from frame.files()


Dated = Sequence[tuple[EpisodeTrace, list[str], tuple[tuple[tuple[int, DateTrace], ...], ...]]]
"""Each episode with the names of its pages and their dates."""


def _record_pages(
    book: BenchmarkIndex, frame: p.Frame, trail: r.BenchTrail, calls: Mapping[str, str], stems: Sequence[str],
    episodes: Dated,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """The pages of histories, of episodes, and of some questions as they were answered."""
    # Windows one after the other, on as many pages as they need, and the files of their values.
    run, views = book.run, s.history_views(book)
    by_window = [(mine, s.performance_views(book, [window])) for window, mine in views if any(one for _, one in views)]
    cut = p.paged_by(
        by_window, lambda one: sum(s.history_bytes(panels) for _, panels, _ in one[0]) + b.weight(one[1]),
        _PAGE_OF_HISTORIES,
    )  # fmt: skip
    lead = (
        "Net asset value and drawdown in every window and profile. One history per model: a single observation, no "
        "band."
    )
    for path, windows, parts in p.beside(p.in_parts("histories", cut).items()) if by_window else ():
        shown = [section for mine, _ in windows for section, _, _ in mine]
        tables = tuple(table for _, tables in windows for table in tables)
        shown.append(b.Section("performance", "Performance", s.performance_answer(book), tables))
        yield path, frame.page(b.Page(
            path, "Histories", lead, tuple(shown), contents=tuple((one.id, str(one.heading)) for one in shown),
            parts=parts, here="histories", styles=(*_TABLES, "brush.css"), scripts=("page.js", "brush.js"),
        ))  # fmt: skip
    yield from ((panels.data, values) for _, mine in views for _, panels, values in mine if values)
    if run.episodes:
        lead = (
            "One model under one profile through one window, with prompt, reply, truth and arithmetic of every date. "
            "Rows are sorted by model."
        )
        table = r.episodes_table(book, stems)
        yield _EPISODES, frame.page(b.Page(_EPISODES, "Episodes", lead, blocks=(table,), here="episodes"))
    for one, mine, dates in episodes:
        title = f"{clean(one.model, 60)}, {clean(one.profile, 40)} profile"
        lead = (
            f"{book.window(one.window)}. Prompt, reply, truth and score of every date ({run.plan.convention} formulas)."
        )
        for path, part, parts in p.beside(zip(mine, dates, strict=True)):
            sections = tuple(r.date_section(at, date, calls, opened=not first) for first, (at, date) in enumerate(part))
            up = b.Linked("All episodes", _EPISODES)
            yield path, frame.page(b.Page(path, title, lead, sections, up=up, parts=parts, styles=_ASKED))
    links = b.spaced([b.Linked(clean(model, 60), own[0][0]) for model, own in trail.pages.items()], ", ")
    asked = ("Some questions with prompt, reply, truth and score. ", *(("All answers: ", links) if links else ()))
    questions = p.paged_by(r.question_cards(book, calls), b.weight, p.PAGE_BYTES)
    for path, cards, parts in p.beside(p.in_parts("questions", questions).items()):
        if cards:
            listing = b.Listing(cards, b.row_filters(sorted(row.key for row in cards)), "questions", "question-rows")
            page = b.Page(path, "Questions", asked, blocks=(listing,), parts=parts, here="questions", styles=_ASKED)
            yield path, frame.page(page)


def _section(id: str, heading: str, lead: b.Inline, *blocks: b.Block | None) -> Iterator[b.Section]:
    """A section where there is something in it."""
    if kept := tuple(block for block in blocks if block is not None):
        yield b.Section(id, heading, lead, kept)


Views = tuple[tuple[b.Group, ...], tuple[b.Figure, ...], tuple[b.Group, ...], tuple[b.Group, ...]]


def _sections(book: BenchmarkIndex, views: Views, history: s.History | None) -> Iterator[b.Section]:
    """The page of scores: the pipeline over all profiles or under the strictest, the questions, and what was run."""
    tables, scatters, safety, performance = views

    def others(some: Sequence[object], id: str) -> tuple[b.Block, ...]:
        return (b.Text(b.Linked("The other profiles", f"{_PROFILES}#{id}")),) if len(some) > 1 else ()

    stages: list[b.Inline] = [f"{levels.stage_note(book)} A dotted line links a number to its measurement."]
    stages += [" ", b.Linked("Every profile", _PROFILES)] if len(tables) > 1 else []
    missing = "" if book.has_pipeline else book.missing("pipeline")
    lead = missing or (_STAGES_LEAD if tables else "No leaderboard was made in this run.")
    shown = (tables[0], b.Text(tuple(stages))) if tables and not missing else ()
    yield b.Section("stages", "Where do models lose points?", lead, shown)
    calm = s.windows_table(book)
    heading = "Does quality hold under stress?" if calm else "Do signals become trades?"
    lead = "CEPS in calm and in stress windows. Intervals only, because points would rank the models." if calm else ""
    yield from _section("quality", heading, lead, calm, s.signals_figure(book))
    if history is not None:
        heading, lead = "Maximum drawdown", "No stress window was run, so losses under stress are unknown. "
        if book.stress:
            heading = "Maximum drawdown under stress"
            lead = "The strictest profile, in the stress window with the largest drawdown of this run. "
        group = b.Group(history[0].heading, history[0].blocks, history[0].id)
        single = b.Text("One history per model: a single observation, so no band is drawn.")
        every = b.Linked("Every window and profile", _HISTORIES)
        yield b.Section("histories", heading, (lead, every), (group, single))
    safe = None
    if safety:
        blocks: tuple[b.Block, ...] = (b.Text(_SAFETY, "cap"), safety[0], *others(safety, "safety"))
        safe = b.Group("Safe under stress by CEPS", blocks)
    found = (*scatters[:1], *others(scatters, "stress"), s.stress_table(book), safe)
    yield from _section("stress", "Calm returns against stressed losses", s.stress_answer(book), *found)
    heading, every_one = "Does it fit the investor?", ""
    if len(book.run.profiles) > 1:
        heading, every_one = "Does it change with the investor?", ", whichever profile it is"
    lead = f"An alignment of 1 keeps every limit of a profile{every_one}."
    yield from _section("profiles", heading, lead, s.alignment_table(book))
    if performance:
        answer = (f"{s.performance_answer(book)} ", b.Linked("Every window", f"{_HISTORIES}#performance"))
        found = (*performance[:1], *others(performance, "performance"))
        yield from _section("performance", "What did the portfolios do?", answer, *found)
    yield r.questions_section(book)
    # What was run: the plan, its profiles and windows, and what the built-in models do.
    limits = [
        f"{profile_word(one.name)}: equities and crypto at most {100 * one.equity_cap:g} %, bonds and cash at least "
        f"{100 * one.bond_floor:g} %, fall at most {100 * one.drawdown_tolerance:g} %, value at risk "
        f"{100 * abs(one.var_limit):g} %"
        for one in book.run.profiles
    ]
    windows = [
        f"{book.window(w.name)}: {w.first} to {w.last}, "
        f"{counted(book.run.decisions[w.name], 'decision')}{', stress' if w.kind == 'stress' else ''}"
        for w in book.run.windows
    ]
    facts = [
        ("Plan", f"{clean(book.run.plan.name, 80)}, locked {moment(book.run.locked_at)}"),
        ("Formulas", "as printed (paper)" if book.run.plan.convention == "paper" else "convention “reference”"),
        *((("Profiles" if not at else ""), text) for at, text in enumerate(limits)),
        *((("Windows" if not at else ""), text) for at, text in enumerate(windows)),
    ]
    known = [
        (b.bold(clean(model.name, 60)), f": {clean(words, 200)}")
        for model in sorted(book.run.plan.models, key=lambda model: model.name)
        if (words := words_of(model.model))
    ]
    built_in = (b.Group("Built-in models", (b.Items(tuple(known)),)),) if known else ()
    yield b.Section("models", "What was run", blocks=(b.Facts(tuple(facts)), *built_in))
