"""Figures 9 to 16 of PortBench from the run's own market and questions, and snapshots of prompts.

Nothing here is about a model, so nothing is suppressed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Final

import numpy as np

from assaymark.benchmark.market import TRAINING_END, BenchMarket, is_index
from assaymark.benchmark.questions.payloads import REGIME_NAMES, SPLITS, TEMPLATES
from assaymark.benchmark.replies import prompt_tables
from assaymark.market import CLASS_NAMES, class_index, group_correlations, pairwise_correlation, simple_returns
from assaymark.portfolio.backtesting import CLASSES
from assaymark.report import blocks as b
from assaymark.report.charts.canvas import NARROW, WIDE, csv_text, paths_text, view
from assaymark.report.charts.grids import BarRow, bar_table, class_panel, correlation_map
from assaymark.report.charts.paths import Floats
from assaymark.report.portbench.index import BenchmarkIndex
from assaymark.report.portbench.records import template_words
from assaymark.report.text import counted, listing, moment
from assaymark.text import clean, count, number, percent

_CORRELATIONS, _CLASSES = "data/correlations.csv", "data/classes.csv"
_TITLES = {"assets": "Instruments", "macro": "Macro series", "correlations": "Correlations by class", "news": "News"}
_YEAR = 365.25
_POINTS: Final = 133
"""Maximum days drawn in a history: one a month over eleven years."""

_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
_OVERLAP: Final = 60
"""Minimum common days for a correlation over the training years; fewer are left out."""

DATA_STYLES = ("portbench-tables.css", "portbench-data.css")


Class = tuple[str, int, tuple[str, ...], Floats, Floats]
"""An asset class: its number of listed instruments; its instruments in the run, their price lines from 100 on (NaN
without a price), shape (n_days, n_instruments); and the equal-weight index of the class."""


def _closes(market: BenchMarket) -> tuple[list[str], list[Class], Floats, tuple[str, str]]:
    """The days to draw, the classes, the correlations of all pairs by class, and the first and last day of these."""
    history, universe = market.history, market.universe
    prices = history.as_of(_END).prices(max(history.days.size, 1))
    column, listing = {name: at for at, name in enumerate(prices.ids)}, {item.id: item for item in history.listings}
    order = sorted(range(universe.size), key=lambda at: (CLASSES.index(universe.classes[at]), at))
    names = np.array([universe.ids[at] for at in order], dtype=object)
    groups = np.array([universe.classes[at] for at in order])
    closes = prices.values[:, [column[name] for name in names]]
    indexes = class_index(closes, [listing[name] for name in names])
    index = {CLASS_NAMES[kind]: path for kind, path in indexes.items()}
    shown = np.unique(np.linspace(0, prices.days.size - 1, _POINTS).round().astype(int))
    tradable = Counter(CLASS_NAMES[item.asset_class] for item in history.listings if not is_index(item))
    training = prices.days <= TRAINING_END
    rows = np.flatnonzero(training if training.sum() > _OVERLAP else np.ones_like(training))
    pairs = pairwise_correlation(simple_returns(closes[rows]), min_overlap=_OVERLAP)
    first = closes[np.argmax(np.isfinite(closes), axis=0), np.arange(closes.shape[1])]
    lines = (100.0 * closes / first)[shown]
    classes = [
        (name, tradable[name], tuple(names[groups == name].tolist()), lines[:, groups == name], index[name][shown])
        for name in CLASSES
        if (groups == name).any()
    ]
    over = str(prices.days[rows[0]]), str(prices.days[rows[-1]])
    return list(map(str, prices.days[shown])), classes, pairs, over


def data_page(index: BenchmarkIndex) -> tuple[b.Page, tuple[tuple[str, str], ...]]:
    """Figures 9 to 16 of PortBench: the market of the run and its questions, and files of numbers as path and text."""
    days, classes, pairs, over = _closes(index.run.market)
    names, right = [clean(name, 24).replace("_", " ") for name, *_ in classes], frozenset({1, 2, 3, 4})
    counts = [(name, (len(sizes), listed)) for name, (_, listed, sizes, *_) in zip(names, classes, strict=True)]
    totals = sum(traded for _, (traded, _) in counts), sum(listed for _, (_, listed) in counts)
    rows = [
        (name, count(sizes[0]), tuple((part / max(of, 1), count(part)) for part, of in zip(sizes, totals, strict=True)))
        for name, sizes in [("all", totals), *counts]
    ]  # fmt: skip
    title, columns = "How many instruments are in each class?", ("In this run", "In the market")
    desc = "; ".join(f"{name}: {traded} of {listed}" for name, (traded, listed) in counts) + "."
    draw = partial(bar_table, columns, rows, of="instruments")
    table = b.Table(("Class", *columns), tuple((name, *map(count, sizes)) for name, sizes in counts), frozenset({1, 2}))
    figure = b.plot("held", title, "A full bar is all instruments of the column.", draw, desc, table, width=WIDE)
    groups, size = [(name, sizes) for name, (sizes, _) in counts], pairs.shape[0]
    between = group_correlations(pairs, np.repeat(np.eye(len(groups)), [sizes for _, sizes in groups], axis=0))
    title, answer = "Which instruments move together?", _correlated(names, between)
    draw = partial(correlation_map, groups, pairs)
    caption = (
        f"Pearson correlation of daily returns, {moment(over[0])} to {moment(over[1])}, over the days "
        f"that both have: {counted(size * (size - 1) // 2, 'pair')}, one cell each. Lines end a class. Negative: "
        "amber, or hatched."
    )
    pairwise = b.plot("pairs", title, caption, draw, answer, data=_CORRELATIONS)
    every = b.Prose(b.Linked("Every pair (CSV)", _CORRELATIONS))
    maps = (pairwise, every), (_between("between", names, between),)
    years = [_year(day) for day in days]
    spans = [(_year(str(window.first)), _year(str(window.last))) for window in index.stress]
    shaded = [(max(first, years[0]), min(last, years[-1])) for first, last in spans if last > years[0]]
    panels, moved = list[tuple[b.Inline, str]](), list[tuple[str, ...]]()
    for at, (name, (_, _, tickers, lines, path)) in enumerate(zip(names, classes, strict=True), 1):
        last = count(round(float(path[-1])))
        of = f"{counted(len(tickers), 'instrument')}; index at {last}"
        title, desc = f"{name}, 100 at the first price", f"{of} on {moment(days[-1])}."
        svg = view(f"class-{at}", title, desc, partial(class_panel, lines, path, years, shaded), "both", NARROW)
        panels.append(((b.bold(name), f" {of}"), svg))
        there = ((asset, lines[:, k][np.isfinite(lines[:, k])]) for k, asset in enumerate(tickers))
        closed = {asset: float(values[-1]) if values.size else 100.0 for asset, values in there}
        low, high = min(closed, key=closed.__getitem__), max(closed, key=closed.__getitem__)
        extremes = (f"{clean(asset, 24)} {count(round(closed[asset]))}" for asset in (low, high))
        moved.append((name, count(len(tickers)), last, *extremes))
    header = ("Class", "Instruments", "Index at the end", "Lowest at its end", "Highest at its end")
    span = (
        f"{moment(days[0])} to {moment(days[-1])}, on a log axis. Thin: each asset, 100 at its first price. Bold: the "
        "equal-weight index of the class. Shaded: stress windows of this run."
    )
    moves = (
        b.Panels(tuple(panels), "tri"),
        b.Table(header, tuple(moved), right),
        b.Prose(b.Linked("Class indices (CSV)", _CLASSES)),
    )
    sections = [
        b.Section("instruments", "Which assets can be held?", blocks=(figure,)),
        b.Section("correlations", "Which assets move together?", answer, (b.Columns(maps),)),
        b.Section("moves", "How did each class move?", span, moves),
    ]
    if asked := question_figures(index):
        sections.append(b.Section("questions", "Which questions are asked?", blocks=asked))
    lead = "The market and the questions of this run. Nothing here is about a model."
    page = b.Page("data.html", "Data", lead, tuple(sections), here="data", styles=DATA_STYLES)
    every_one = [ticker for _, _, tickers, *_ in classes for ticker in tickers]
    cells = [
        (name, *("" if np.isnan(value) else value for value in row))
        for name, row in zip(every_one, pairs.tolist(), strict=True)
    ]
    return page, (
        (_CORRELATIONS, csv_text(("instrument", *every_one), cells)),
        (_CLASSES, paths_text("day", days, [(name, path) for name, *_, path in classes])),
    )


def _year(day: str) -> float:
    when = date.fromisoformat(day[:10])
    return when.year + (when.timetuple().tm_yday - 1) / _YEAR


def _between(name: str, names: Sequence[str], values: Floats) -> b.Figure:
    """The mean correlations by class as a map with numbers, and as a table."""
    title = "Do classes move together?"
    groups = [(name, 1) for name in names]
    draw = partial(correlation_map, groups, values, numbers=True)
    rows = tuple(
        (name, *("n/a" if np.isnan(value) else number(value) for value in row))
        for name, row in zip(names, values.tolist(), strict=True)
    )
    table = b.Table(("Class", *names), rows, frozenset(range(1, len(names) + 1)))
    caption = "Mean correlation over pairs of different instruments; on the diagonal within the class."
    return b.plot(name, title, caption, draw, _correlated(names, values), table)


def _correlated(names: Sequence[str], values: Floats) -> str:
    """The mean correlations within classes, and the range of those between classes."""
    pairs = zip(names, np.diag(values).tolist(), strict=True)
    within = [f"{name} {number(value)}" for name, value in pairs if not np.isnan(value)]
    across = values[np.tril_indices(len(names), -1)]
    across = across[~np.isnan(across)]
    rest = f" Between classes: {number(float(across.min()))} to {number(float(across.max()))}." if across.size else ""
    return f"Mean correlation within a class: {listing(within) or 'not defined'}.{rest}"


def question_figures(index: BenchmarkIndex) -> tuple[b.Figure, ...]:
    """Figures 14 to 16 of PortBench: questions by regime, by split, and by their text; empty without questions."""
    run = index.run
    asked = {scored.question.id: scored.question.template for questions in run.answers.values() for scored in questions}
    pools = {name: [q for q in run.pool if q.template == name] for name in TEMPLATES if name in asked.values()}
    pools = {name: questions for name, questions in pools.items() if questions}
    if not pools:
        return ()
    drawn = f"All questions of the split {run.plan.questions.split}, from which {count(len(asked))} are asked"
    whole = [(template_words(name), [run.splits.get((name, split), 0) for split in SPLITS]) for name in pools]
    by_regime = [
        (template_words(name), [[question.regime for question in questions].count(regime) for regime in REGIME_NAMES])
        for name, questions in pools.items()
    ]
    # the share of questions with news or filings, and the mean length of prompts
    texts = {
        name: (np.mean([bool(question.context.news or question.context.filings) for question in questions]),
               np.mean([len(question.prompt()) for question in questions]))
        for name, questions in pools.items()
    }  # fmt: skip
    longest = max(float(characters) for _, characters in texts.values())
    bars, cells, lines = list[BarRow](), list[tuple[str, ...]](), list[str]()
    for name, questions in pools.items():
        with_text, characters = map(float, texts[name])
        share, length = percent(with_text), count(round(characters))
        words, every = template_words(name), count(len(questions))
        bars.append((words, every, ((with_text, share), (characters / longest, length))))
        cells.append((words, every, share, length))
        lines.append(f"{name}: {share}, {length} characters")
    title, columns = "How much text comes with a question?", ("With news or filings", "Characters of the prompt")
    draw = partial(bar_table, columns, bars, of="questions", total=False)
    caption = f"{drawn}: the share with news or filings, and the mean length of the full prompt."
    table = b.Table(("Template", "Questions", *columns), tuple(cells), frozenset({1, 2, 3}))
    return (
        _shares("In which regimes are the questions?", f"{drawn}, by regime of equities.", REGIME_NAMES, by_regime),
        _shares("How large is the whole set?", "A run asks some of one split.", SPLITS, whole),
        b.plot("texts", title, caption, draw, f"{'; '.join(lines)}.", table, width=WIDE),
    )


def _shares(title: str, caption: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[int]]]) -> b.Figure:
    """Counts by template as bars of their share, the total first."""
    sums = [sum(counts[at] for _, counts in rows) for at in range(len(columns))]
    bars, cells = list[BarRow](), list[tuple[str, ...]]()
    for words, counts in (("all", sums), *rows):
        every, total = count(sum(counts)), max(sum(counts), 1)
        bars.append((words, every, tuple((amount / total, count(amount)) for amount in counts)))
        cells.append((words, every, *map(count, counts)))
    desc = "; ".join(f"{name}: {count(amount)}" for name, amount in zip(columns, sums, strict=True)) + "."
    draw = partial(bar_table, columns, bars, of="questions")
    table = b.Table(("Template", "Questions", *columns), tuple(cells), frozenset(range(1, len(columns) + 2)))
    caption = f"{caption} A full bar is all questions of the row."
    return b.plot(columns[0], title, caption, draw, desc, table, width=WIDE)


def snapshots_page(index: BenchmarkIndex) -> b.Page:
    """Figures 13, 25 and 26 of PortBench: the market information in prompts on some dates."""
    sections = []
    for at, window in enumerate(index.run.windows, 1):  # the date on which its instruments were most volatile
        shown = max(map(window.known, window.decisions), key=lambda state: np.mean([x.volatility for x in state.lines]))
        tables = []
        for name, (columns, rows) in prompt_tables(shown).items():  # columns of numbers are set to the right
            cells = tuple(tuple(clean(cell, 600) for cell in row) for row in rows)
            numeric = [[cell == "n/a" or cell.removeprefix("-").replace(".", "", 1).isdigit() for cell in row]
                       for row in cells]  # fmt: skip
            right = frozenset(k for k in range(1, len(columns)) if cells and all(row[k] for row in numeric))
            named = tuple(clean(head, 40).replace("_", " ") for head in columns)
            table = b.Table(named, cells, right, summary="", style="layer")
            tables.append((name, f"{_TITLES.get(name, name)} ({count(len(rows))})", table))
        macro = tuple((b.Group(title, (table,)),) for name, title, table in tables if name == "macro")
        names = [clean(name, 24).replace("_", " ") for name in shown.regimes]
        chart = _between(f"s{at}", names, shown.between)
        others = (
            b.Group(title, (table,), folded="closed") for name, title, table in tables if name != "macro" and table.rows
        )
        title = f"{index.window(window.window)}, {moment(str(shown.day))}"
        sections.append(b.Section(f"s{at}", title, blocks=(b.Columns(((chart,), *macro)), *others)))
    lead = (
        "What a model is shown at the close of a decision date, as prompts print it. From each window the date on "
        "which its assets were most volatile. S3 also shows the portfolio and the investor."
    )
    contents = tuple((section.id, str(section.heading)) for section in sections)
    path = "snapshots.html"
    return b.Page(path, "Snapshots", lead, tuple(sections), contents=contents, here="snapshots", styles=DATA_STYLES)
