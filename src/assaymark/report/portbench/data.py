"""The data behind a benchmark: figures 9 to 16 of PortBench from the run's own market and questions, and its snapshots.

Nothing here is about a model, so nothing is withheld.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np

from assaymark.benchmark.questions.payloads import REGIME_NAMES, SPLITS, TEMPLATES
from assaymark.report.blocks import Beside, Figure, Group, Inline, Linked, Page, Panels, Section, Table, Text, bold
from assaymark.report.charts.canvas import csv_text, paths_text
from assaymark.report.charts.grids import BarRow, bar_table, class_panel, correlation_map
from assaymark.report.charts.paths import Floats
from assaymark.report.portbench.book import BenchmarkIndex, MarketView, SnapshotView
from assaymark.report.portbench.records import template_words
from assaymark.report.text import counted, listing, moment
from assaymark.text import clean, count, number, percent

_CORRELATIONS, _CLASSES = "data/correlations.csv", "data/classes.csv"
_TITLES = {"assets": "Instruments", "macro": "Macro series", "correlations": "Correlations by class", "news": "News"}
_YEAR = 365.25
DATA_STYLES = ("portbench-tables.css", "portbench-data.css")


# --- the market -------------------------------------------------------------------------------------------------------


def data_page(book: BenchmarkIndex, market: MarketView) -> tuple[Page, tuple[tuple[str, str], ...]]:
    """Figures 9 to 16 of PortBench: the market of the run and its questions, and files of numbers as path and text."""
    classes, days, pairs = market.classes, market.days, market.correlation
    names, right = [clean(one.name, 24).replace("_", " ") for one in classes], frozenset({1, 2, 3, 4})
    # How many instruments each class has.
    counts = [(name, (one.instruments, one.listed)) for name, one in zip(names, classes, strict=True)]
    totals = sum(held for _, (held, _) in counts), sum(listed for _, (_, listed) in counts)
    rows = [
        (name, count(own[0]), tuple((one / max(of, 1), count(one)) for one, of in zip(own, totals, strict=True)))
        for name, own in [("all", totals), *counts]
    ]  # fmt: skip
    title, columns = "How many instruments are in each class?", ("In this run", "In the market")
    desc = "; ".join(f"{name}: {held} of {listed}" for name, (held, listed) in counts) + "."
    wide, narrow = bar_table("held", columns, rows, title, desc, "instruments")
    table = Table(("Class", *columns), tuple((name, *map(count, own)) for name, own in counts), frozenset({1, 2}))
    held = Figure(title, "A full bar is all instruments of the column.", wide, narrow, table)
    # Correlations of all pairs, and their means by class.
    title, said = "Which instruments move together?", _correlated(names, market.between)
    groups, size = [(name, own) for name, (own, _) in counts], pairs.shape[0]
    wide, narrow = correlation_map("pairs", groups, pairs, title, said)
    caption = (
        f"Pearson correlation of daily returns, {moment(market.over[0])} to {moment(market.over[1])}, over the days "
        f"that both have: {counted(size * (size - 1) // 2, 'pair')}, one cell each. Lines end a class. Negative: "
        "amber, or hatched."
    )
    every = Figure(title, caption, wide, narrow, data=_CORRELATIONS), Text(Linked("Every pair (CSV)", _CORRELATIONS))
    maps = every, (_between("between", names, market.between),)
    # A panel for each class, and the same as a table.
    years = [_year(day) for day in days]
    spans = [(_year(str(window.first)), _year(str(window.last))) for window in book.stress]
    shaded = [(max(first, years[0]), min(last, years[-1])) for first, last in spans if last > years[0]]
    panels, moved = list[tuple[Inline, str]](), list[tuple[str, ...]]()
    for at, (name, one) in enumerate(zip(names, classes, strict=True), 1):
        last = count(round(float(one.index[-1])))
        of = f"{counted(one.instruments, 'instrument')}; index at {last}"
        title, desc = f"{name}, 100 at the first price", f"{of} on {moment(days[-1])}."
        svg = class_panel(f"class-{at}", one.lines, one.index, years, shaded, title, desc)
        panels.append(((bold(name), f" {of}"), svg))
        there = ((who, one.lines[:, k][np.isfinite(one.lines[:, k])]) for k, who in enumerate(one.tickers))
        ends = {who: float(values[-1]) if values.size else 100.0 for who, values in there}
        low, high = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
        extremes = (f"{clean(who, 24)} {count(round(ends[who]))}" for who in (low, high))
        moved.append((name, count(one.instruments), last, *extremes))
    heads = ("Class", "Instruments", "Index at the end", "Lowest at its end", "Highest at its end")
    span = (
        f"{moment(days[0])} to {moment(days[-1])}, on a log axis. Thin: each asset, 100 at its first price. Bold: the "
        "equal-weight index of the class. Shaded: stress windows of this run."
    )
    moves = (
        Panels(tuple(panels), "tri"),
        Table(heads, tuple(moved), right),
        Text(Linked("Class indices (CSV)", _CLASSES)),
    )
    sections = [
        Section("instruments", "Which assets can be held?", blocks=(held,)),
        Section("correlations", "Which assets move together?", said, (Beside(maps),)),
        Section("moves", "How did each class move?", span, moves),
    ]
    if asked := question_figures(book):
        sections.append(Section("questions", "Which questions are asked?", blocks=asked))
    lead = "The market and the questions of this run. Nothing here is about a model."
    page = Page("data.html", "Data", lead, tuple(sections), here="data", styles=DATA_STYLES)
    tickers = [ticker for one in classes for ticker in one.tickers]
    lines = [
        (name, *("" if np.isnan(value) else value for value in row))
        for name, row in zip(tickers, pairs.tolist(), strict=True)
    ]
    return page, (
        (_CORRELATIONS, csv_text(("instrument", *tickers), lines)),
        (_CLASSES, paths_text("day", days, [(one.name, one.index) for one in classes])),
    )


def _year(day: str) -> float:
    when = date.fromisoformat(day[:10])
    return when.year + (when.timetuple().tm_yday - 1) / _YEAR


def _between(name: str, names: Sequence[str], values: Floats) -> Figure:
    """The means by class as a map with its numbers, and as a table."""
    title = "Do classes move together?"
    groups = [(one, 1) for one in names]
    wide, narrow = correlation_map(name, groups, values, title, _correlated(names, values), numbers=True)
    rows = tuple(
        (one, *("n/a" if np.isnan(value) else number(value) for value in row))
        for one, row in zip(names, values.tolist(), strict=True)
    )
    table = Table(("Class", *names), rows, frozenset(range(1, len(names) + 1)))
    caption = "Mean correlation over pairs of different instruments; on the diagonal within the class."
    return Figure(title, caption, wide, narrow, table)


def _correlated(names: Sequence[str], values: Floats) -> str:
    """The means within classes, and the range of those between them."""
    pairs = zip(names, np.diag(values).tolist(), strict=True)
    own = [f"{name} {number(value)}" for name, value in pairs if not np.isnan(value)]
    across = values[np.tril_indices(len(names), -1)]
    across = across[~np.isnan(across)]
    rest = f" Between classes: {number(float(across.min()))} to {number(float(across.max()))}." if across.size else ""
    return f"Mean correlation within a class: {listing(own) or 'not defined'}.{rest}"


# --- the questions ----------------------------------------------------------------------------------------------------


def question_figures(book: BenchmarkIndex) -> tuple[Figure, ...]:
    """Figures 14 to 16 of PortBench: questions by regime, by split, and by their text; none where none were asked."""
    run = book.run
    asked = {one.question.id: one.question.template for mine in run.answers.values() for one in mine}
    pools = {name: [one for one in run.pool if one.template == name] for name in TEMPLATES if name in asked.values()}
    pools = {name: mine for name, mine in pools.items() if mine}
    if not pools:
        return ()
    drawn = f"All questions of the split {run.plan.questions.split}, from which {count(len(asked))} are asked"
    whole = [(template_words(name), [run.splits.get((name, split), 0) for split in SPLITS]) for name in pools]
    by_regime = [
        (template_words(name), [[one.regime for one in mine].count(regime) for regime in REGIME_NAMES])
        for name, mine in pools.items()
    ]
    # how many questions have news or filings, and how long their prompts are
    texts = {
        name: (np.mean([bool(one.context.news or one.context.filings) for one in mine]),
               np.mean([len(one.prompt()) for one in mine]))
        for name, mine in pools.items()
    }  # fmt: skip
    longest = max(float(characters) for _, characters in texts.values())
    bars, cells, said = list[BarRow](), list[tuple[str, ...]](), list[str]()
    for name, mine in pools.items():
        with_text, characters = map(float, texts[name])
        share, length = percent(with_text), count(round(characters))
        words, every = template_words(name), count(len(mine))
        bars.append((words, every, ((with_text, share), (characters / longest, length))))
        cells.append((words, every, share, length))
        said.append(f"{name}: {share}, {length} characters")
    title, columns = "How much text comes with a question?", ("With news or filings", "Characters of the prompt")
    wide, narrow = bar_table("texts", columns, bars, title, f"{'; '.join(said)}.", "questions", False)
    caption = f"{drawn}: the share with news or filings, and the mean length of the full prompt."
    table = Table(("Template", "Questions", *columns), tuple(cells), frozenset({1, 2, 3}))
    return (
        _shares("In which regimes are the questions?", f"{drawn}, by regime of equities.", REGIME_NAMES, by_regime),
        _shares("How large is the whole set?", "A run asks some of one split.", SPLITS, whole),
        Figure(title, caption, wide, narrow, table),
    )


def _shares(title: str, caption: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[int]]]) -> Figure:
    """Counts by template as bars of their share, the sum first."""
    sums = [sum(counts[at] for _, counts in rows) for at in range(len(columns))]
    bars, cells = list[BarRow](), list[tuple[str, ...]]()
    for words, counts in (("all", sums), *rows):
        every, total = count(sum(counts)), max(sum(counts), 1)
        bars.append((words, every, tuple((one / total, count(one)) for one in counts)))
        cells.append((words, every, *map(count, counts)))
    desc = "; ".join(f"{name}: {count(one)}" for name, one in zip(columns, sums, strict=True)) + "."
    wide, narrow = bar_table(columns[0], columns, bars, title, desc, "questions")
    table = Table(("Template", "Questions", *columns), tuple(cells), frozenset(range(1, len(columns) + 2)))
    return Figure(title, f"{caption} A full bar is all questions of the row.", wide, narrow, table)


# --- snapshots --------------------------------------------------------------------------------------------------------


def snapshots_page(book: BenchmarkIndex, snapshots: Sequence[SnapshotView]) -> Page:
    """Figures 13, 25 and 26 of PortBench: what a model is shown on some dates."""
    sections = []
    for number_of, one in enumerate(snapshots, 1):
        tables = []
        for name, heads, rows in one.layers:  # columns of numbers are set to the right
            cells = tuple(tuple(clean(cell, 600) for cell in row) for row in rows)
            numeric = [[cell == "n/a" or cell.removeprefix("-").replace(".", "", 1).isdigit() for cell in row]
                       for row in cells]  # fmt: skip
            right = frozenset(at for at in range(1, len(heads)) if cells and all(row[at] for row in numeric))
            named = tuple(clean(head, 40).replace("_", " ") for head in heads)
            table = Table(named, cells, right, summary="", style="layer")
            tables.append((name, f"{_TITLES.get(name, name)} ({count(len(rows))})", table))
        macro = tuple((Group(title, (table,)),) for name, title, table in tables if name == "macro")
        names = [clean(name, 24).replace("_", " ") for name in one.classes]
        chart = _between(f"s{number_of}", names, one.between)
        others = (
            Group(title, (table,), folded="closed") for name, title, table in tables if name != "macro" and table.rows
        )
        title = f"{book.window(one.window)}, {moment(one.day)}"
        sections.append(Section(f"s{number_of}", title, blocks=(Beside(((chart,), *macro)), *others)))
    lead = (
        "What a model is shown at the close of a decision date, as prompts print it. From each window the date on "
        "which its assets were most volatile. S3 also shows the portfolio and the investor."
    )
    contents = tuple((section.id, str(section.heading)) for section in sections)
    path = "snapshots.html"
    return Page(path, "Snapshots", lead, tuple(sections), contents=contents, here="snapshots", styles=DATA_STYLES)
