"""From a benchmark run to its pages: self-contained, escaped, silent on the network, ordered by verdicts and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from assaymark.report.blocks import row_filters
from assaymark.report.levels import LEVELS, TAGS, TALLY
from assaymark.report.measurements import measured_links, measurement_pages
from assaymark.report.page import (
    ALONE,
    SCRIPTS,
    Frame,
    Link,
    Site,
    beside,
    in_parts,
    paged,
    paged_by,
    pager,
    part_names,
)
from assaymark.report.portbench.asked import QuestionView, question_views, questions_view
from assaymark.report.portbench.book import STAGES, BenchBook, profile_word
from assaymark.report.portbench.data import market_figures, question_figures, snapshot_view
from assaymark.report.portbench.every import every_measurement
from assaymark.report.portbench.further import signals_figure, windows_table
from assaymark.report.portbench.inputs import BenchRun, EpisodeTrace
from assaymark.report.portbench.levels import PAGE, every_claim, said_levels, tally
from assaymark.report.portbench.market import (
    PerformanceView,
    chosen_history,
    history_bytes,
    history_views,
    performance_answer,
    performance_views,
    stress_first,
)
from assaymark.report.portbench.records import BenchTrail
from assaymark.report.portbench.sections import (
    BarTable,
    ScatterView,
    alignment_table,
    safety_tables,
    scatter_views,
    stress_answer,
    stress_table,
)
from assaymark.report.portbench.stages import StageTable, lede, stage_note, stage_tables
from assaymark.report.portbench.traces import DateView, date_views, episode_paths, episode_rows
from assaymark.report.records.calls import ReadCalls, call_pages
from assaymark.report.text import counted, moment, short_hash
from assaymark.text import clean, count, percent

_HISTORIES, _EPISODES, _QUESTIONS = "histories.html", "episodes.html", "questions.html"
_PROFILES: Final = "profiles.html"
_NAV: Final = (
    Link("results", "index.html", "Results"),
    Link("claims", "claims.html", "All claims"),
    Link("profiles", _PROFILES, "Profiles"),
    Link("histories", _HISTORIES, "Histories"),
    Link("episodes", _EPISODES, "Episodes"),
    Link("questions", _QUESTIONS, "Questions"),
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
    >>> from assaymark.report.portbench import BenchModel
    >>> run = BenchRun(name="b", title="", plan_hash="0" * 64, locked_at="2026-01-01", convention="paper",
    ...                market="synthetic", instruments=81, frequency="monthly", cost_bps=15, level=0.95,
    ...                models=(BenchModel(name="one", model="reference/x", family="x"),), profiles=(), windows=(),
    ...                leaderboards=(), verdicts=(), measurements=())
    >>> sorted(render_benchmark(run))
    ['claims.html', 'index.html', 'measurements.html']
    """
    return dict(each_benchmark_page(run, site))


def each_benchmark_page(run: BenchRun, site: Site = ALONE, read: ReadCalls | None = None) -> Iterator[tuple[str, str]]:
    """The pages of `render_benchmark`, one at a time, and those of single calls where ``read`` gives them.

    Every answer to a question stands below ``answers/`` and every call below ``calls/``.
    """
    unlinked = BenchBook.of(run)
    episodes = tuple(_planned(run.episodes))
    trail = BenchTrail.of(run.asked, [(one.episode, one.places) for one in episodes])
    measured = in_parts("measurements", paged(every_measurement(unlinked, trail.rests)))
    links = measured_links(measured)
    book = replace(unlinked, links=links)
    views = _ByProfile.of(book)
    frame = _frame(book, views, site)
    calls: dict[str, str] = {}
    if read is not None:
        uses = trail.uses()
        yield from call_pages(read(list(uses)), uses, frame, calls)
    yield from trail.answer_pages(frame, calls)
    yield "index.html", _index(book, views, frame)
    yield from _claims(book, frame, links)
    yield from measurement_pages(frame, measured)
    yield from _profiles(book, views, frame)
    yield from _histories(book, frame)
    yield from _episodes(book, frame, episodes, calls)
    yield from _questions(book, frame, calls, trail)
    yield from _data(book, frame)


@dataclass(frozen=True, slots=True)
class _ByProfile:
    """What there is a view of for each board or profile: the first page shows the first of each."""

    tables: Sequence[StageTable]
    scatters: Sequence[ScatterView]
    safety: Sequence[BarTable]
    performance: Sequence[PerformanceView]

    @classmethod
    def of(cls, book: BenchBook) -> _ByProfile:
        calm = [book.normal] if book.normal is not None and book.has_pipeline else []
        return cls(stage_tables(book), scatter_views(book), safety_tables(book), performance_views(book, calm))

    @property
    def further(self) -> bool:
        """Whether there is more than the first page shows."""
        return any(len(views) > 1 for views in (self.tables, self.scatters, self.safety, self.performance))


# --- pages ------------------------------------------------------------------------------------------------------------


def _index(book: BenchBook, views: _ByProfile, frame: Frame) -> str:
    run = book.run
    levels = tally(run.verdicts)
    history = chosen_history(book)
    brushed = history is not None and history.brush is not None
    return frame.render(
        "portbench.html",
        clean(run.title or "PortBench", 120),
        here="results",
        styles=(*_TABLES, *("brush.css",) * brushed),
        scripts=(*SCRIPTS, *("brush.js",) * brushed),
        lede=lede(book),
        reference=bool(run.models) and all(model.reference for model in run.models),
        known=[
            (clean(model.name, 60), clean(model.words, 200)) for model in book.models if model.reference and model.words
        ],
        run_notes=[clean(note, 400) for note in run.notes],
        panel=run.panel or "",
        tally=[(level, count(levels[level]), TALLY[level]) for level in LEVELS],
        total=f"All {counted(len(run.verdicts), 'claim')}" if len(run.verdicts) != 1 else "The one claim",
        stressed=bool(book.stress),
        several=len(run.profiles) > 1,
        levels=said_levels(book),
        level_words=percent(run.level),
        stages=[(name, words) for name, (words, _) in STAGES.items()],
        tables=views.tables,
        stage_note=stage_note(book),
        calm=windows_table(book),
        signals=signals_figure(book),
        history=history,
        scatters=views.scatters,
        stress_answer=stress_answer(book),
        stress=stress_table(book),
        safety=views.safety,
        alignment=alignment_table(book),
        performance=views.performance,
        performance_answer=performance_answer(book),
        questions=questions_view(book),
        pipeline_missing="" if book.has_pipeline else book.missing("pipeline"),
        questions_missing="" if book.has_questions else book.missing("qa"),
        facts=_facts(book),
    )


def _facts(book: BenchBook) -> list[tuple[str, str]]:
    run = book.run
    limits = [
        f"{profile_word(p.name)}: equities and crypto at most {100 * p.equity_cap:g} %, bonds and cash at least "
        f"{100 * p.bond_floor:g} %, fall at most {100 * p.drawdown_tolerance:g} %, value at risk "
        f"{100 * abs(p.var_limit):g} %"
        for p in run.profiles
    ]
    windows = [
        f"{clean(w.title or w.name, 60)}: {clean(w.first, 10)} to {clean(w.last, 10)}, "
        f"{counted(w.decisions, 'decision')}{', stress' if w.stress else ''}"
        for w in run.windows
    ]
    return [
        ("Plan", f"{clean(run.name, 80)}, locked {moment(run.locked_at)}"),
        (
            "Formulas",
            "as printed (paper)" if run.convention == "paper" else f"convention “{clean(run.convention, 20)}”",
        ),
        *((("Profiles" if not at else ""), text) for at, text in enumerate(limits)),
        *((("Windows" if not at else ""), text) for at, text in enumerate(windows)),
    ]


def _claims(book: BenchBook, frame: Frame, links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for path, rows, parts in beside(in_parts("claims", paged(every_claim(book, links), PAGE)).items()):
        values: dict[str, Any] = {
            "rows": rows,
            "filters": row_filters([row.level for row in rows], TAGS),
            "total": counted(len(rows), "claim"),
            "pager": parts,
        }
        yield path, frame.render("portbench-claims.html", "All claims", here="claims", **values)


def _profiles(book: BenchBook, views: _ByProfile, frame: Frame) -> Iterator[tuple[str, str]]:
    if views.further:
        yield (
            _PROFILES,
            frame.render(
                "portbench-profiles.html",
                "Every profile by itself",
                here="profiles",
                styles=_TABLES,
                level_words=percent(book.run.level),
                stages=[(name, words) for name, (words, _) in STAGES.items()],
                stage_note=stage_note(book),
                stress_answer=stress_answer(book),
                tables=views.tables[1:],
                scatters=views.scatters[1:],
                safety=views.safety[1:],
                performance=views.performance[1:],
                performance_answer=performance_answer(book),
            ),
        )


def _histories(book: BenchBook, frame: Frame) -> Iterator[tuple[str, str]]:
    """Windows one after the other, on as many pages as they need."""
    views = history_views(book)
    if not views:
        return
    by_window = [
        (window, [view for view in views if view.window == window.name], performance_views(book, [window]))
        for window in stress_first(book)
    ]
    pages = paged_by(by_window, lambda one: history_bytes(one[1], one[2]), _PAGE_OF_HISTORIES)
    for path, part, parts in beside(in_parts("histories", pages).items()):
        yield (
            path,
            frame.render(
                "portbench-histories.html",
                "Histories",
                here="histories",
                views=[view for _, mine, _ in part for view in mine],
                styles=(*_TABLES, "brush.css"),
                scripts=(*SCRIPTS, "brush.js"),
                performance=[table for _, _, tables in part for table in tables],
                performance_answer=performance_answer(book),
                pager=parts,
            ),
        )
    yield from ((view.data, view.values) for view in views if view.data)


@dataclass(frozen=True, slots=True)
class _Planned:
    """An episode with its dates, cut into pages; ``places`` is where each date stands."""

    episode: EpisodeTrace
    path: str
    names: list[str]
    parts: tuple[tuple[DateView, ...], ...]

    @property
    def places(self) -> list[str]:
        return [f"{name}#{date.id}" for name, part in zip(self.names, self.parts, strict=True) for date in part]


def _planned(episodes: Sequence[EpisodeTrace]) -> Iterator[_Planned]:
    for episode, path in zip(episodes, episode_paths(episodes), strict=True):
        parts = paged(date_views(episode))
        yield _Planned(episode, path, part_names(path, len(parts)), parts)


def _episodes(
    book: BenchBook, frame: Frame, episodes: Sequence[_Planned], calls: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    if not episodes:
        return
    rows = episode_rows(book, [one.path for one in episodes])
    total = counted(len(rows), "episode")
    filters = row_filters(sorted(row.model for row in rows))
    yield (
        _EPISODES,
        frame.render("portbench-episodes.html", "Episodes", here="episodes", rows=rows, filters=filters, total=total),
    )
    for one in episodes:
        yield from _episode(book, frame, one, calls)


def _episode(book: BenchBook, frame: Frame, one: _Planned, calls: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """One episode, in parts where it is long."""
    episode = one.episode
    leaves = [name.rpartition("/")[2] for name in one.names]
    title = f"{clean(episode.model, 60)}, {clean(episode.profile, 40)} profile"
    values: dict[str, Any] = {
        "window": book.window(episode.window),
        "convention": book.run.convention,
        "root": "../",
        "styles": _ASKED,
    }
    for at, dates in enumerate(one.parts):
        values |= {"dates": dates, "calls": calls, "pager": pager(leaves, at)}
        yield one.names[at], frame.render("portbench-episode.html", title, here="", **values)


def _questions(book: BenchBook, frame: Frame, calls: Mapping[str, str], trail: BenchTrail) -> Iterator[tuple[str, str]]:
    if not book.run.questions:
        return
    pages: tuple[tuple[QuestionView, ...], ...] = paged(question_views(book))
    for path, rows, parts in beside(in_parts("questions", pages).items()):
        values: dict[str, Any] = {"rows": rows, "filters": row_filters(sorted(row.key for row in rows)), "calls": calls}
        values["every"] = [(clean(model, 60), own[0][0]) for model, own in trail.pages.items()]
        total = counted(len(rows), "question")
        yield (
            path,
            frame.render(
                "portbench-questions.html",
                "Questions",
                here="questions",
                styles=_ASKED,
                total=total,
                pager=parts,
                **values,
            ),
        )


def _data(book: BenchBook, frame: Frame) -> Iterator[tuple[str, str]]:
    """The data behind the run: the market, the set of questions, and what a model is shown."""
    market = book.run.data
    if market is None:
        return
    values: dict[str, Any] = {"styles": (*_TABLES, "portbench-data.css")}
    found = market_figures(book, market)
    asked = question_figures(book)
    yield "data.html", frame.render("portbench-data.html", "Data", here="data", market=found, asked=asked, **values)
    yield from found.files
    if market.snapshots:
        views = [snapshot_view(book, one, at) for at, one in enumerate(market.snapshots, 1)]
        yield (
            "snapshots.html",
            frame.render("portbench-snapshots.html", "Snapshots", here="snapshots", views=views, **values),
        )


# --- the frame --------------------------------------------------------------------------------------------------------


def _frame(book: BenchBook, views: _ByProfile, site: Site) -> Frame:
    """What stands around every page; the menu has the pages of this run."""
    absent = set() if views.further else {"profiles"}
    if not book.has_histories:
        absent.add("histories")
    if not book.run.episodes:
        absent.add("episodes")
    if not book.run.questions:
        absent.add("questions")
    if book.run.data is None:
        absent.add("data")
    if book.run.data is None or not book.run.data.snapshots:
        absent.add("snapshots")
    return Frame(
        study=clean(book.run.name, 120),
        mark=short_hash(clean(book.run.plan_hash)),
        nav=tuple(link for link in _NAV if link.key not in absent),
        site=site,
        styles=("page.css", "portbench.css"),
    )
