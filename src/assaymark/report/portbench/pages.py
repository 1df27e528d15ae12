"""The pages of a benchmark run: self-contained, escaped, without network access, sorted by verdicts and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final

from assaymark.benchmark.reference import words_of
from assaymark.benchmark.scores import EpisodeResult
from assaymark.claims.boards import Leaderboard
from assaymark.records import Measurement
from assaymark.report import blocks as b
from assaymark.report import page as p
from assaymark.report import text as t
from assaymark.report.charts import models as charts
from assaymark.report.charts.canvas import WIDE
from assaymark.report.measurements import measurement_links, measurement_pages, measurement_parts
from assaymark.report.portbench import index as bench
from assaymark.report.portbench import records as r
from assaymark.report.portbench import sections as s
from assaymark.report.portbench.data import data_page, snapshots_page
from assaymark.report.portbench.index import QUESTIONS, STAGES, BenchmarkIndex, BenchRun, claim_kind, pipeline_boards
from assaymark.report.records.calls import ReadCalls, call_pages
from assaymark.report.text import LEVELS, TAGS, bounds_of, counted, listing, plural, tally
from assaymark.text import NBSP, clean, count, number, percent, span

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
"""Maximum bytes of histories on one page: their drawings are counted exactly, so little margin is needed."""

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


Dated = tuple[EpisodeResult, str, dict[str, tuple[int, ...]]]
"""An episode, the stem of the file names of its pages, and the indices of the dates on each page."""


def each_benchmark_page(
    run: BenchRun, site: p.Site = p.ALONE, read: ReadCalls | None = None
) -> Iterator[tuple[str, str]]:
    """The pages one at a time, with every answer below ``answers/``; with those of calls if ``read`` is given."""
    unlinked = BenchmarkIndex.of(run)
    stems = p.file_stems("episodes", [(result.model, result.profile, result.window) for result in run.results])
    episodes = list[Dated]()
    for one, stem in zip(run.results, stems, strict=True):
        sizes = [b.byte_size(r.date_section(run, one, at, {}, opened=False)) for at in range(len(one.dates))]
        episodes.append((one, stem, p.by_file(stem, range(len(sizes)), size_of=sizes.__getitem__)))
    places = [[f"{path}#d{at + 1}" for path, part in parts.items() for at in part] for _, _, parts in episodes]
    trail = r.BenchProvenance.of(run.answers, [*zip(run.results, places, strict=True)])
    measured = measurement_parts(s.bench_measurements(unlinked, trail.lineage))
    index = replace(unlinked, links=measurement_links(measured))
    calm = [index.normal] if index.normal is not None and index.has_pipeline else []
    answer = (f"{s.performance_answer(index)} ", b.Linked("Every window", f"{_HISTORIES}#performance"))
    views: tuple[View, ...] = (
        ("stages", "Where do models lose points?", _STAGES_LEAD, bench.stage_tables(index)),
        ("stress", "Calm returns against stressed losses", s.stress_answer(index), s.scatter_views(index)),
        ("safety", "Safe under stress by CEPS", _SAFETY, s.safety_tables(index)),
        ("performance", "What did the portfolios do?", answer, s.performance_views(index, calm)),
    )
    further = [
        b.section(id, heading, lead, parts[1:], b.Prose(bench.stage_note(index)) if id == "stages" else None)
        for id, heading, lead, parts in views
        if parts[1:]
    ]
    there = {"profiles": further, "histories": index.has_histories, "episodes": run.results, "questions": run.answers,
             "snapshots": run.results}  # fmt: skip
    nav = tuple(link for link in _NAV if there.get(link.key, True))
    mark = t.short_hash(clean(run.plan_hash))
    frame = p.Frame(clean(run.plan.name, 120), mark, nav, site, ("page.css", "portbench.css"))
    calls: dict[str, str] = {}
    if read is not None:
        uses = trail.uses()
        yield from call_pages(read(list(uses)), uses, frame, calls)
    yield from trail.answer_pages(frame, calls)
    decisions, answered = sum(len(result.dates) for result in run.results), sum(map(len, run.answers.values()))
    deeper: tuple[tuple[object, str, str, str], ...] = (  # the other pages: whether it exists, words, path, description
        (True, "Scores", _SCORES, "stages, stress, alignment, performance, questions by template"),
        (further, "Profiles", _PROFILES, ", ".join(clean(profile.name, 24) for profile in run.profiles)),
        (index.has_histories, "Histories", _HISTORIES, "value and drawdown, every window"),
        (run.results, "Decisions", _EPISODES, f"{count(decisions)}, prompt and reply beside the truth"),
        (answered, "Questions", _QUESTIONS, f"{counted(answered, 'answer')}, the reply beside the truth"),
        (run.panel, "Rationales", run.panel or "", "scored by the judges, a study of its own"),
        (True, "Sentences", "claims.html", f"{count(len(run.verdicts))}, with reasons"),
        (True, "Measurements", "measurements.html", f"{count(len(run.measurements))}, with n and method"),
        (True, "Data", "data.html", "the market and the questions of this run"),
    )
    yield "index.html", frame.page(first_page(index, [link[1:] for link in deeper if link[0]]))
    # The page of scores, with everything on the first board that the first page omits.
    history = s.chosen_history(index)
    brushed = history is not None and history[1].brush is not None
    lead = "Every score, over all profiles or under the strictest, with its interval and how it was found."
    sections = tuple(_sections(index, views, history))
    styles, scripts = (*_TABLES, *("brush.css",) * brushed), ("page.js", "brush.js") if brushed else p.SCRIPTS
    yield _SCORES, frame.page(b.Page(_SCORES, "Scores", lead, sections, here="scores", styles=styles, scripts=scripts))
    lead = (
        "Every candidate claim with its verdict; unsupported claims are listed without direction. Models are in "
        "alphabetical order."
    )
    cards = p.by_file("claims", bench.claim_cards(index), bench.PAGE, b.byte_size)
    for path, rows, parts in p.with_pager(cards.items()):
        filters = b.row_filters([row.level for row in rows], TAGS)
        blocks = (b.CardList(rows, filters, "claims", "claim-rows"),)
        yield path, frame.page(b.Page(path, "Sentences", lead, (), blocks, parts, here="claims"))
    yield from measurement_pages(frame, measured)
    if further:
        lead = "The figures of the first page for each of the other profiles."
        yield (
            _PROFILES,
            frame.page(b.Page(_PROFILES, "Profiles", lead, tuple(further), here="profiles", styles=_TABLES)),
        )
    yield from _record_pages(index, frame, trail, calls, episodes)
    page, files = data_page(index)
    yield page.path, frame.page(page)
    yield from files
    if run.results:
        yield "snapshots.html", frame.page(snapshots_page(index))
    yield from frame.files()


def _record_pages(
    index: BenchmarkIndex, frame: p.Frame, trail: r.BenchProvenance, calls: Mapping[str, str], episodes: Sequence[Dated]
) -> Iterator[tuple[str, str]]:
    """The pages of histories, of episodes, and of a selection of questions with their answers."""
    # All windows, on as many pages as needed, and the files of their values.
    run, views = index.run, s.history_views(index)
    by_window = [(part, s.performance_views(index, [window])) for window, part in views if any(own for _, own in views)]
    files = p.by_file(
        "histories", by_window, _PAGE_OF_HISTORIES,
        lambda pair: sum(s.history_bytes(panels) for _, panels, _ in pair[0]) + b.byte_size(pair[1]),
    )  # fmt: skip
    lead = (
        "Net asset value and drawdown in every window and profile. One history per model: a single observation, no "
        "band."
    )
    for path, windows, parts in p.with_pager(files.items()) if by_window else ():
        shown = [section for items, _ in windows for section, _, _ in items]
        tables = tuple(table for _, tables in windows for table in tables)
        shown.append(b.Section("performance", "Performance", s.performance_answer(index), tables))
        yield path, frame.page(b.Page(
            path, "Histories", lead, tuple(shown), (), parts,
            contents=tuple((section.id, str(section.heading)) for section in shown), here="histories",
            styles=(*_TABLES, "brush.css"), scripts=("page.js", "brush.js"),
        ))  # fmt: skip
    yield from ((panels.data, values) for _, items in views for _, panels, values in items if values)
    if run.results:
        lead = (
            "One model under one profile through one window, with prompt, reply, truth and arithmetic of every date. "
            "Rows are sorted by model."
        )
        table = r.episodes_table(index, [stem for _, stem, _ in episodes])
        yield _EPISODES, frame.page(b.Page(_EPISODES, "Episodes", lead, (), (table,), here="episodes"))
    for result, _, pages in episodes:
        title, window = f"{clean(result.model, 60)}, {clean(result.profile, 40)} profile", index.window(result.window)
        lead = f"{window}. Prompt, reply, truth and score of every date ({run.plan.convention} formulas)."
        for path, part, parts in p.with_pager(pages.items()):
            sections = tuple(r.date_section(run, result, at, calls, at == part[0]) for at in part)
            up = b.Linked("All episodes", _EPISODES)
            yield path, frame.page(b.Page(path, title, lead, sections, (), parts, up=up, styles=_ASKED))
    links = b.chained([b.Linked(clean(model, 60), own[0][0]) for model, own in trail.pages.items()], ", ")
    asked = ("Some questions with prompt, reply, truth and score. ", *(("All answers: ", links) if links else ()))
    questions = p.by_file("questions", r.question_cards(index, calls), size_of=b.byte_size)
    for path, cards, parts in p.with_pager(questions.items()):
        if cards:
            filters = b.row_filters(sorted(row.key for row in cards))
            blocks = (b.CardList(cards, filters, "questions", "question-rows"),)
            yield path, frame.page(b.Page(path, "Questions", asked, (), blocks, parts, here="questions", styles=_ASKED))


def _optional_section(id: str, heading: str, lead: b.Inline, *blocks: b.Block | None) -> Iterator[b.Section]:
    """A section, if it has any blocks."""
    if shown := tuple(block for block in blocks if block is not None):
        yield b.Section(id, heading, lead, shown)


View = tuple[str, str, b.Inline, Sequence[b.Block]]
"""Scores with a part for each leaderboard or profile: their id, heading, lead, and these parts. The page of scores
shows the first part, and the page of profiles the others."""


def _sections(index: BenchmarkIndex, views: Sequence[View], history: s.History | None) -> Iterator[b.Section]:
    """The page of scores: the pipeline over all profiles or under the strictest, the questions, and the plan."""
    stages_view, stress_view, safety_view, performance_view = views

    def first(view: View) -> tuple[b.Block, ...]:
        """The first part of some scores, with a link to the others."""
        id, _, _, parts = view
        others = (b.Prose(b.Linked("The other profiles", f"{_PROFILES}#{id}")),) if len(parts) > 1 else ()
        return (*parts[:1], *others)

    id, heading, stages_lead, tables = stages_view
    stages: list[b.Inline] = [f"{bench.stage_note(index)} A dotted line links a number to its measurement."]
    stages += [" ", b.Linked("Every profile", _PROFILES)] if len(tables) > 1 else []
    missing = "" if index.has_pipeline else index.missing("pipeline")
    lead = missing or (stages_lead if tables else "No leaderboard was made in this run.")
    yield b.Section(id, heading, lead, (tables[0], b.Prose(tuple(stages))) if tables and not missing else ())
    calm = s.windows_table(index)
    heading = "Does quality hold under stress?" if calm else "Do signals become trades?"
    lead = "CEPS in calm and in stress windows. Intervals only, because points would rank the models." if calm else ""
    yield from _optional_section("quality", heading, lead, calm, s.signals_figure(index))
    if history is not None:
        heading, lead = "Maximum drawdown", "No stress window was run, so losses under stress are unknown. "
        if index.stress:
            heading = "Maximum drawdown under stress"
            lead = "The strictest profile, in the stress window with the largest drawdown of this run. "
        group = b.Group(history[0].heading, history[0].blocks, history[0].id)
        single = b.Prose("One history per model: a single observation, so no band is drawn.")
        every = b.Linked("Every window and profile", _HISTORIES)
        yield b.Section("histories", heading, (lead, every), (group, single))
    id, heading, safety_lead, safety = safety_view
    safe = b.Group(heading, (b.Prose(safety_lead, "cap"), *first(safety_view))) if safety else None
    yield from _optional_section(*stress_view[:3], *first(stress_view), s.stress_table(index), safe)
    heading, every_one = "Does it fit the investor?", ""
    if len(index.run.profiles) > 1:
        heading, every_one = "Does it change with the investor?", ", whichever profile it is"
    lead = f"An alignment of 1 keeps every limit of a profile{every_one}."
    yield from _optional_section("profiles", heading, lead, s.alignment_table(index))
    yield from _optional_section(*performance_view[:3], *first(performance_view))
    yield r.questions_section(index)
    # The plan, its profiles and windows, and the rules of built-in models.
    limits = [
        f"{bench.profile_word(item.name)}: equities and crypto at most {100 * item.equity_cap:g} %, bonds and cash at "
        f"least {100 * item.bond_floor:g} %, drawdown at most {100 * item.drawdown_tolerance:g} %, value at risk "
        f"{100 * abs(item.var_limit):g} %"
        for item in index.run.profiles
    ]
    windows = [
        f"{index.window(w.name)}: {w.first} to {w.last}, "
        f"{counted(len(window.decisions), 'decision')}{', stress' if w.kind == 'stress' else ''}"
        for window, w in zip(index.run.windows, index.windows, strict=True)
    ]
    facts = [
        ("Plan", f"{clean(index.run.plan.name, 80)}, locked {t.moment(index.run.locked_at)}"),
        ("Formulas", "as printed (paper)" if index.run.plan.convention == "paper" else "convention “reference”"),
        *((("Profiles" if not at else ""), text) for at, text in enumerate(limits)),
        *((("Windows" if not at else ""), text) for at, text in enumerate(windows)),
    ]
    rules = [
        (b.bold(clean(model.name, 60)), f": {clean(words, 200)}")
        for model in sorted(index.run.plan.models, key=lambda model: model.name)
        if (words := words_of(model.model))
    ]
    built_in = (b.Group("Built-in models", (b.Items(tuple(rules)),)),) if rules else ()
    yield b.Section("models", "What was run", blocks=(b.Terms(tuple(facts)), *built_in))


# --- the first page: models in alphabetical order and without points, unless a sentence ranks them --------------------

CONVENTIONS: Final[Mapping[str, str]] = {"paper": "PortBench paper", "reference": "PortBench published code"}
_NO_SCORE: Final = "No score: "


def first_page(index: BenchmarkIndex, deeper: Sequence[tuple[str, str, str]]) -> b.Page:
    """The first page; ``deeper`` are the other pages as (words, path, description)."""
    run, quotes, withheld = index.run, front_sentences(index), bench.bench_withheld(index)
    demonstration: b.Inline = ""
    if run.built_in and all(run.built_in.values()):
        caveat = "Every model is a built-in rule, so best and worst possible scores are known. "
        demonstration = b.bold("Demonstration. "), caveat, b.Linked("What each of them does", "scores.html#models")
    notices = (clean(note, 600) for note in run.notes if not note.startswith(_NO_SCORE))
    every: b.Inline = b.Linked(f"All {counted(len(run.verdicts), 'candidate sentence')}", "claims.html")
    texts = []
    for group in withheld:  # a short reason in brackets; all reasons are on the page of sentences
        cause = "".join(text for text, _ in group.why).strip().rstrip(".")
        texts.append(group.text[:-1] + (f" ({cause[:1].lower()}{cause[1:]})." if 0 < len(cause) <= 100 else "."))
    if withheld:
        every = b.Mark("no-claim", TAGS["no-claim"]), f" {' '.join(texts)} ", every
    missing = b.Group("", (b.Items((every,), "claims"),), style="lv no-claim")
    columns = tuple(
        b.Group("", (b.Items((quote,), "claims"), b.Prose((b.Mark(quote.level, TAGS[quote.level]), " ", cause), "why")),
                style=f"lv {quote.level}")
        for quote, cause in quotes
    )  # fmt: skip
    duo = (b.Columns((columns[::2], columns[1::2])),) if len(columns) > 1 else columns
    deep = b.Items(tuple((b.Linked(words, path), b.small(detail)) for words, path, detail in deeper), "deep")
    halves = [half for half in (_conventions(index), _questions(index)) if half is not None]
    profile, heading = index.strictest, "Who keeps the drawdown limit?"
    if profile is not None and index.stress and index.has_pipeline:
        limit, rows, lines = profile.drawdown_tolerance, list[charts.DrawdownRow](), list[tuple[str, ...]]()
        for name in index.names:
            falls = index.known("bench.drawdown", model=name, profile=profile.name)
            deepest = max((m for m in falls if m.detail.get("stress")), key=lambda m: m.value, default=None)
            if deepest is not None and (gate := index.gate(name, profile.name)) is not None:
                rows.append((clean(name, 60), deepest.value, gate))
                lines.append((clean(name, 60), index.link(deepest, percent(deepest.value, 1)),
                              index.window(deepest.labels["window"]), "within" if gate else "beyond"))  # fmt: skip
        investor = clean(profile.name, 40)
        half = _half("limits", heading, f"Not decided under the {investor} profile; the sentences say why.")
        if rows:
            title = f"Largest drawdown under stress, {investor} profile"
            desc = "; ".join(f"{name}: {fall}, {side} the limit" for name, fall, _, side in lines)
            inside = [name for name, _, passes in rows if passes]
            named = listing(inside) if len(inside) <= 5 else f"{count(len(inside))} of {plural(len(rows), 'model')}"
            answer = f"{named or 'None of them'}. Each window happened once, so there is no interval."
            header = ("Model", "Largest drawdown", "Window", f"Limit {100 * limit:g}{NBSP}%")
            table = b.Table(header, tuple(lines), frozenset({1}))
            more = b.Linked("Value and drawdown in every window", "histories.html") if index.has_histories else ""
            draw = partial(charts.limit_chart, rows, limit)
            figure = b.plot("limit", title, "Crossed: beyond the limit.", draw, desc, table)
            half = _half("limits", heading, answer, figure, *b.notes((more,)))
        halves.append(half)
    halves.append(b.Group("Go deeper", (deep,), "more", style="sec", level=2))
    pairs = (b.beside(*halves[at : at + 2]) for at in range(0, len(halves), 2))
    return b.Page(
        "index.html", clean(run.title, 120), bench.bench_lede(index),
        blocks=(*b.notes((demonstration, *notices), "notice"), *duo, missing, _stages(index), *pairs), here="results",
        tallies=tally([*(quote.level for quote, _ in quotes), *("no-claim" for _ in withheld)]),
        styles=("portbench-first.css",),
    )  # fmt: skip


def front_sentences(index: BenchmarkIndex) -> list[tuple[b.ClaimQuote, str]]:
    """The sentences of the first page with reasons: first ranks, a cut, two limits, then others up to the maximum."""
    by_kind: dict[str, list[tuple[b.ClaimQuote, str]]] = {kind: [] for kind in ("first", "cut", "gates")}
    for verdict in bench.front_claims(index):
        if verdict.publication_level != "no-claim":
            quote = replace(bench.bench_quote(index, verdict), condition=bench.unbroken(verdict.condition or ""))
            by_kind.setdefault(claim_kind(verdict), []).append((quote, " ".join(map(bench.unbroken, verdict.reasons))))
    for board in (*pipeline_boards(index.run)[:1], index.board(QUESTIONS)):
        by_kind["cut"] += tier_cuts(index, board) if board else ()
    gates = by_kind.pop("gates")
    firsts, cuts, *others = by_kind.values()
    chosen = [*firsts[:2], *cuts[:1], *gates[:1], *gates[1:][-1:], *(pair for some in others for pair in some)]
    return sorted(chosen[: bench.SHOWN], key=lambda pair: LEVELS.index(pair[0].level))


def tier_cuts(index: BenchmarkIndex, board: Leaderboard) -> Iterator[tuple[b.ClaimQuote, str]]:
    """Each cut below two or more models as a sentence at the level of its weakest order."""
    by_pair = {v.claim.subjects: v for v in index.of_kind("above") if v.claim.dimension == board.board.name}
    for cut in range(1, len(board.tiers)):
        halves = board.tiers[:cut], board.tiers[cut:]
        above, below = (sorted(name for tier in part for name in tier) for part in halves)
        pairs = [by_pair[pair] for pair in product(above, below) if pair in by_pair]
        level = t.weakest(verdict.publication_level for verdict in pairs)
        if level == "no-claim" or len(above) == 1 or len(pairs) < len(above) * len(below):
            continue
        named = [listing([clean(name, 60) for name in names]) for names in (above, below)]
        others = named[1] if len(below) < 4 else f"the other {plural(len(below), 'model')}"
        text = bench.unbroken(f"{named[0]} score above {others} on {clean(board.board.words, 120)}.")
        applies: dict[str, list[str]] = {}  # the pairs to which each condition applies
        for verdict in pairs:
            for one in verdict.conditions:
                pair = listing([clean(name, 60) for name in sorted(verdict.claim.subjects)])
                applies.setdefault(bench.unbroken(one.text), []).append(pair)
        every, also = plural(len(pairs), "pair"), list[str]()
        for words, some in applies.items():
            scope = some[0] if len(some) == 1 else f"{count(len(some))} of {every}"
            also += [words, *([f"This applies to {scope}."] if len(some) < len(pairs) else [])]
        condition = " ".join(filter(None, (bench.built_in_note(index, [*above, *below]), *also)))
        copy = t.clipboard_text(text, condition, index.run.title, index.run.locked_at, pairs[0].plan_hash)
        reason = f"Every ranking across this cut is supported: {every}."
        yield b.ClaimQuote(level, text, " ".join(also), copy), reason


def _half(id: str, heading: str, answer: b.Inline, *blocks: b.Block) -> b.Group:
    return b.Group(heading, (b.Prose(answer, "lede"), *blocks), id, style="sec", level=2)


def _stages(index: BenchmarkIndex) -> b.Group:
    """Scores by stage, and the two stages furthest below the possible score."""
    heading = "Where do models lose points?"
    if not index.has_pipeline:
        return _half("stages", heading, index.missing("pipeline"))
    profile, columns, best, rows = index.profile, list[charts.ScoreBars](), dict[str, float | None](), []
    for stage, (words, _) in STAGES.items():
        most = index.get("bench.ceiling", profile=profile, stage=stage)
        best[stage], bars = None if most is None else most.value, []
        for name in index.names:
            item = index.get("bench.stage", model=name, profile=profile, stage=stage, windows="all")
            bars.append((bounds_of(item), number(item.value)) if t.known(item) else None)
            rows.append(index.link(item, number(item.value)) if t.known(item) else "no score")
        columns.append((stage, words, tuple(bars), best[stage]))
    names = [clean(name, 60) for name in index.names]
    drawn = [["no score" if bar is None else bar[1] for bar in bars] for _, _, bars, _ in columns]
    desc = "; ".join(f"{who}: {', '.join(f'{name} {of[at]}' for (name, *_), of in zip(columns, drawn, strict=True))}"
                     for at, who in enumerate(names))  # fmt: skip
    dates = counted(sum(len(window.decisions) for window in index.run.windows), "date")
    title = f"Mean score by stage, with {percent(index.run.plan.level)} interval over {dates}; dotted: best possible"
    table = b.Table(
        ("Model", *(f"{name} {subtitle}" for name, subtitle, *_ in columns)),
        tuple((who, *rows[at :: len(names)]) for at, who in enumerate(names)), frozenset(range(1, 1 + len(columns))),
    )  # fmt: skip
    hatched = [note.removeprefix(_NO_SCORE) for note in index.run.notes if note.startswith(_NO_SCORE)]
    notes = (b.Prose((b.bold("Hatched: no score. "), clean(f"{note[:1].upper()}{note[1:]}", 600)), "hatched")
            for note in hatched)  # fmt: skip
    reached = {name: max((float(bar[1]) for bar in bars if bar is not None), default=None)
               for name, _, bars, _ in columns}  # fmt: skip
    loss = {name: most - top for name, most in best.items() if most is not None and (top := reached[name]) is not None}
    worst = sorted(sorted(loss, key=lambda name: -loss[name])[:2])
    lost = "Bars are intervals of mean scores from 0 to 1."
    if worst:
        scored, possible = (listing([number(of[name] or 0.0) for name in worst]) for of in (reached, best))
        lost = (
            f"At {listing([STAGES[name][0] for name in worst])}: no model exceeds {scored} there, where {possible} "
            f"{'are' if len(worst) > 1 else 'is'} possible."
        )
    draw = partial(charts.column_chart, names, columns)
    figure = b.plot("stages", title, "", draw, desc, table, width=WIDE, tablet=True)
    return _half("stages", heading, lost, *notes, figure)


def _conventions(index: BenchmarkIndex) -> b.Group | None:
    """The scores under both conventions, and whether the ranking depends on the convention; None without scores."""
    boards = pipeline_boards(index.run)
    if not boards or not boards[0].models:
        return None
    board, level = boards[0], percent(index.run.plan.level)
    rows, lines = list[charts.ConventionRow](), list[tuple[str, ...]]()

    def bar(item: Measurement) -> charts.Bar:
        return bounds_of(item), t.limits(item, otherwise=t.as_text(item))

    for head in bench.tier_headings(index, board):
        for at, name in enumerate(head.members):
            item, other = board.levels[name], index.run.others.get(name)
            first, second = bar(item), bar(other) if t.known(other) else None
            kind = charts.KINDS[head.level or "no-claim"]
            rows.append((clean(name, 60), first, second, kind, not at and bool(rows)))
            lines.append((clean(name, 60), index.link(item, first[1]), "" if second is None else second[1]))
    own_name = CONVENTIONS[index.run.plan.convention]
    other_name = CONVENTIONS["reference" if index.run.plan.convention == "paper" else "paper"]
    title = f"CEPS, {level} interval, {plural(len(rows), 'model')} with a score"
    desc = "; ".join(
        f"{model}: {one} by the {own_name}{f', {two} by the {other_name}' if two else ''}" for model, one, two in lines
    )
    caption = f"Filled: {own_name}. Outlined: {other_name}."
    caption += f" Dotted: tiers under the {own_name}." if any(row[-1] for row in rows) else ""
    table = b.Table(("Model", own_name, other_name), tuple(lines), frozenset({1, 2}))
    differ = "They differ in 14 places; the published code scores S1 and S2 against the last 60 days of the prompt. "
    pairs = [verdict for verdict in index.of_kind("above") if verdict.claim.dimension == board.board.name]
    supported = [pair for pair in pairs if pair.publication_level != "no-claim"]
    flipped = [verdict for verdict in supported if any(c.id == "other-convention" for c in verdict.conditions)]
    orders = plural(len(supported), "supported ranking")
    answer = f"No. None of the {orders} is reversed under the formulas of the {other_name}."
    if not supported:
        scope = " over all profiles" if len(index.run.profiles) > 1 else ""
        answer = f"No ranking of the models on CEPS{scope} is supported under the formulas of the {own_name}."
    elif flipped:
        named = listing([" and ".join(sorted(clean(name, 60) for name in one.claim.subjects)) for one in flipped[:3]])
        answer = f"Yes. Under the formulas of the {other_name} {count(len(flipped))} of {orders} are reversed: {named}."
    figure = b.plot("ceps", title, caption, partial(charts.convention_chart, rows), desc, table)
    more = b.Prose((differ, b.Linked("Every profile", "scores.html#stages")))
    return _half("conventions", "Does the ranking depend on the formulas?", answer, figure, more)


def _questions(index: BenchmarkIndex) -> b.Group:
    heading, board, rows = "Who knows the answers?", index.board(QUESTIONS), []
    if "bench.question" not in index.by_name:
        return _half("questions", heading, index.missing("qa"))
    if board is None or not board.models:
        return _half("questions", heading, b.Linked("The scores of every template", "scores.html#questions"))
    for head in bench.tier_headings(index, board):
        items = [board.levels[name] for name in head.members]
        bounds = [ends for ends in map(bounds_of, items) if ends is not None]
        ends = (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else None
        point, written = items[0].value if head.licensed else None, "no interval" if ends is None else span(*ends)
        if ends is None and point is not None:  # all replies scored alike
            ends, written = (point, point), f"{number(point)}, {written}"
        names = tuple(clean(name, 60) for name in head.members)
        rows.append(charts.TierRow(names, head.level or "no-claim", ends, point, written, written))
    edges = [end for row in rows if row.ends for end in row.ends] or [0.0, 1.0]
    axis = max(0.0, int(min(edges) * 10) / 10), min(1.0, int(max(edges) * 10 + 0.999) / 10)
    title, desc = "Questions with full information, 0 to 1", "; ".join(f"{listing(r.names)}: {r.shown}" for r in rows)
    draw = partial(charts.tier_chart, rows, axis)
    table = b.Table(("Tier", "Interval"), tuple((listing(row.names), row.shown) for row in rows), frozenset({1}))
    ranked = f"{count(n)} of {plural(board.pairs, 'pair')}" if (n := board.pairs - board.open_pairs) else "No pair"
    ranked = "The one pair" if n == board.pairs == 1 else ranked
    links = [ranked, " can be ranked: ", b.Linked("see sentences", "claims.html"), ". "] if board.pairs else []
    note: list[b.Inline] = [*links, b.Linked("By template", "scores.html#questions")]
    top, answer = board.tiers[0], "No model is shown to know more than another."
    if len(board.tiers) > 1:
        answer = f"{listing([clean(name, 60) for name in sorted(top)])}, above all others."
    elif len(top) == 1:
        answer = f"{clean(top[0], 60)} alone has a score."
    elif n:  # pairs that chain through others leave a single tier
        answer = "Some models know more than others, but none is shown to be above all others."
    caption = "Hatched: a tier from end to end." if any(len(row.names) > 1 for row in rows) else ""
    figure = b.plot("asked", title, caption, draw, desc, table)
    return _half("questions", heading, answer, figure, b.Prose(tuple(note)))
