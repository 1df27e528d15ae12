"""The same verdicts for a terminal: 80 columns, readable without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assaymark.errors import UnknownNameError
from assaymark.market.calendar import GAP_LIMIT
from assaymark.market.history import AsOf, History
from assaymark.market.instruments import CLASS_NAMES
from assaymark.market.macro import MacroReading, News
from assaymark.market.open import ClassOverview, Quote, class_overviews, gaps_of, quotes
from assaymark.market.snapshot import Manifest
from assaymark.metrology.datasheet import BASE, Datasheet
from assaymark.records import AGGREGATE, Level, Measurement, measurement_id
from assaymark.report.inputs import AssayRun
from assaymark.report.levels import LEVELS, TALLY
from assaymark.report.lookup import Book
from assaymark.report.study.limits import limits
from assaymark.report.study.overview import (
    axis_of,
    counted_words,
    finding,
    judges_words,
    planted_words,
    tier_rows,
    tiers_words,
)
from assaymark.report.text import counted, short_hash
from assaymark.text import MINUS, clean, count, number

# Shapes carry the level where colour is missing: filled, half, open.
_SIGNS: dict[Level, str] = {"headline": "[x]", "qualified": "[/]", "no-claim": "[-]"}
_STYLES: dict[Level, str] = {"headline": "bold blue", "qualified": "yellow", "no-claim": "dim"}
_LIMITS: Final = 4
_SPAN: Final = 24


def terminal_summary(run: AssayRun) -> RenderableType:
    """The first page for `rich.console.Console.print`: the same sentences in the same order.

    Texts from records are printed as they are: markup in them has no effect and control characters are replaced.
    """
    book = Book.of(run)
    found, levels = finding(book), [verdict.publication_level for verdict in run.verdicts]
    top: Level = "no-claim" if found.verdict is None else found.verdict.publication_level
    said = found.said if found.verdict is None else f"“{found.said}”"
    parts: list[RenderableType] = [Text(f"{' '.join(found.notice)}\n", style="italic")] if found.notice[0] else []
    if not book.preregistered:
        parts.append(Text("Not preregistered. The scores had been seen when the plan was locked.\n", style="bold"))
    parts += [
        _indented(_signed(top, said)),
        *_lines(found.also and ("" if found.verdict is None else "Say also: ") + found.also),
    ]
    parts += [*_lines(found.second), Text(), _tally(levels), Text(f"    {counted_words(book)}", style="dim")]
    for title, answer, rows in (
        ("Who is ahead, and can it be said?", tiers_words(book), _tiers(book)),
        ("Do planted texts fool the judges?", planted_words(book), ()),
        ("How good are the judges?", judges_words(book), ()),
    ):
        parts += [Text(), Text(title, style="bold"), Text(answer), *rows]
    if worst := limits(book)[:_LIMITS]:
        parts += [Text(), Text("What limits the result?", style="bold")]
        for at, one in enumerate(worst, 1):
            parts.append(Text(f"{at}  {one.title}. {one.effect}."))
            parts.append(_indented(Text(f"{one.measured}\n{one.fix}", style="dim")))
    return Group(*parts, Text(), Text(f"Plan {short_hash(clean(run.plan_hash))}", style="dim"))


def _signed(level: Level, text: str) -> Text:
    return Text(f"{_SIGNS[level]} {text}", style="bold")


def _lines(text: str) -> list[RenderableType]:
    return [_indented(Text(text))] if text else []


def _tally(levels: Sequence[Level]) -> Text:
    text = Text()
    for level in LEVELS:
        text.append(f"{_SIGNS[level]} {count(levels.count(level))} {TALLY[level]}   ", style=_STYLES[level])
    return text


def _indented(text: Text, by: int = 4) -> RenderableType:
    return Padding(text, (0, 0, 0, by if not text.plain.startswith("[") else 0))


def _tiers(book: Book) -> list[RenderableType]:
    """The tiers of the overall score, each from end to end on one axis, where the judges agree."""
    rows = tier_rows(book, AGGREGATE)
    if not rows or book.status(AGGREGATE) == "halt":
        return []
    low, high = axis_of(book)
    table = Table(box=None, pad_edge=False)
    table.add_column("Tier", overflow="fold", ratio=2)
    table.add_column(f"Score, {book.run.study.scale_text}", no_wrap=True)
    table.add_column(f"{low:g}{f'{high:g}'.rjust(_SPAN - len(f'{low:g}'))}", no_wrap=True)
    table.add_column("", overflow="fold", ratio=2)
    for row in rows:
        bar = [" "] * _SPAN
        if row.ends is not None:
            first, last = (round((end - low) / (high - low) * (_SPAN - 1)) for end in row.ends)
            bar[first : last + 1] = "=" * (last + 1 - first)
        if row.point is not None:
            bar[round((row.point - low) / (high - low) * (_SPAN - 1))] = "#"
        table.add_row(
            Text(", ".join(row.names)), Text(row.shown.partition(",")[0] or "no range"), Text("".join(bar)),
            Text(f"{_SIGNS[row.level]} {row.said}", style=_STYLES[row.level]),
        )  # fmt: skip
    return [table]


# Datasheets in the terminal: one row a judge, the same words as the pages, nothing ranked.


_Columns = tuple[tuple[str, str, dict[str, str]], ...]

_RUN: Final[_Columns] = (
    ("Dark current", "dark_current", {"prompt": BASE}),
    ("False pref.", "delta0.raw", {"prompt": BASE, "condition": "same_subset"}),
    ("stable", "delta0.stable", {"prompt": BASE, "condition": "same_subset"}),
    ("by place", "delta0.positional", {"prompt": BASE, "condition": "same_subset"}),
    ("Sees 1", "sensitivity", {"prompt": BASE, "delta": "1"}),
    ("Threshold", "threshold", {"prompt": BASE}),
)
_POINTS: Final[_Columns] = (
    ("Score for nothing", "point.vacuum_score", {"dimension": AGGREGATE}),
    ("points a requirement", "point.slope", {"dimension": AGGREGATE}),
    ("steps in order", "point.order", {"dimension": AGGREGATE}),
    ("per 100 filler words", "point.verbosity", {"dimension": AGGREGATE}),
)
_LOG: Final[_Columns] = (
    ("stable", "delta0.stable", {"prompt": BASE, "condition": "different_subset"}),
    ("by place", "delta0.positional", {"prompt": BASE, "condition": "different_subset"}),
    ("one-sided", "delta0.one_sided", {"prompt": BASE, "condition": "different_subset"}),
    ("no pref.", "delta0.no_preference", {"prompt": BASE, "condition": "different_subset"}),
    ("flips", "delta0.flip_rate", {"prompt": BASE, "condition": "different_subset"}),
    ("invalid calls", "pair.invalid_share", {"prompt": BASE}),
    ("repeats", "repeat.stability", {}),
)


def datasheet_summary(sheets: Sequence[Datasheet], agreement: Sequence[Measurement]) -> RenderableType:
    """Judges in alphabetical order with what was measured, and how far every two of them agree."""
    log = all(sheet.source == "log" for sheet in sheets)
    wanted = ((_LOG, ""),) if log else ((_RUN, "dark_current"), (_POINTS, "point.slope"))
    tables = [_table(sheets, columns, head) for columns, head in wanted]
    parts: list[RenderableType] = [table for table in tables if table.row_count]
    if log:
        parts.append(Text("Shares of pairs. A log does not say which text is better: a preference here is no error."))
    else:
        parts += [Text(f"{clean(s.judge, 60)}: {'; '.join(_chips(s))}") for s in sheets if s.sketch]
    parts += [Text(_kappa_words(item)) for item in agreement]
    parts += [Text(_drift_words(s.judge, m)) for s in sheets for m in s.measurements if m.name == "drift.verdict"]
    return Group(*parts)


def _table(sheets: Sequence[Datasheet], columns: _Columns, head: str) -> Table:
    """One row for each judge with a measurement of the name ``head`` (empty: each judge)."""
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("Judge", overflow="fold")
    for title, _, _ in columns:
        table.add_column(title, justify="right")
    for sheet in sorted(sheets, key=lambda one: one.judge):
        known = {item.id: item for item in sheet.measurements}
        if not head or any(item.name == head for item in sheet.measurements):
            cells = (measurement_id(name, {**labels, "judge": sheet.judge}) for _, name, labels in columns)
            table.add_row(clean(sheet.judge, 60), *(shown(known.get(cell)) for cell in cells))
    return table


def shown(item: Measurement | None) -> str:
    """A measurement in a table cell: its value, the words of a censored threshold, or why there is none."""
    if item is None or item.state.startswith("not measured"):
        return "not measured"
    if item.value is None:
        return "undefined"
    return str(item.detail.get("text", f"{item.value:.3f}"))


def _chips(sheet: Datasheet) -> list[str]:
    """The sketch without its rules, which the page prints."""
    return [chip.partition(" (")[0] for chip in sheet.sketch]


def _kappa_words(item: Measurement) -> str:
    base = "by content, orders averaged" if item.name == "between.kappa_content" else "by position, call by call"
    pair = f"{clean(item.labels['a'], 60)} and {clean(item.labels['b'], 60)} {base}"
    if item.value is None:
        return f"kappa of {pair}: {item.state}"
    ends = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    return f"kappa of {pair}: {number(item.value)}{ends}, {item.n:,} {item.n_of}"


def _drift_words(judge: str, item: Measurement) -> str:
    if item.value is None:
        return f"{clean(judge, 60)}: drift {item.detail.get('verdict', 'not comparable')} ({item.state})"
    shifted = ", ".join(item.detail.get("shifted", ())) or "nothing"
    return f"{clean(judge, 60)}: {item.detail['verdict']} ({shifted} shifted in {item.detail['tests']} tests)"


# A market store in the terminal: what it holds, and what could be known from it at one time.


_BARS: Final = "▁▂▃▄▅▆▇█"
_A_CLASS: Final = 4  # instruments of a class that are shown; one can be asked for by name
_ITEMS: Final = 6
_WIDTH: Final = 20


def origin_summary(manifest: Manifest) -> RenderableType:
    """Where a snapshot is from, what was asked for, what may be done with it, and the traps to know."""
    origin = manifest.origin
    text = Text()
    text.append(clean(manifest.id, 80), style="bold")
    text.append(f"\nfrom {clean(origin.source, 60)}, asked {_when(origin.retrieved_at)}")
    text.append(f"\nlicence: {clean(origin.licence, 200)}")
    asked = ", ".join(f"{name} {value}" for name, value in origin.query.items() if value not in (None, "", [], {}))
    if asked:
        text.append(f"\nasked for: {clean(asked, 300)}")
    for note in origin.notes:
        text.append(f"\nnote: {clean(note, 300)}", style="yellow")
    return text


def store_summary(manifest: Manifest, history: History, *, instrument: str | None = None) -> RenderableType:
    """Origin, licence and notes, then one row a class, then what else there is; with ``instrument``, its gaps."""
    parts: list[RenderableType] = [origin_summary(manifest)]
    if found := class_overviews(history):
        parts += [Text(), _classes(found)]
    parts += [Text(), Text(_rest(history))]
    if instrument is not None:
        parts += [Text(), Text(_life(history, instrument))]
    return Group(*parts)


def view_summary(view: AsOf, *, instrument: str | None = None) -> RenderableType:
    """What could be known at the view's time: last closes, macro readings with their states, and the newest news.

    Without ``instrument``, the first few instruments of each class stand for all of them.
    """
    known = [one.id for one in view.instruments]
    if instrument is not None and instrument not in known:
        raise UnknownNameError("instrument", instrument, known)
    parts: list[RenderableType] = [
        Text(f"As of {view.t.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, knowing nothing later", style="bold")
    ]
    found = [one for one in quotes(view) if instrument in (None, one.listing.id)]
    parts += [Text(), _quotes(found, whole=instrument is not None)] if found else [Text("No close was known.")]
    if instrument is not None:
        parts += [Text(), *_filings(view, instrument)]
    elif readings := view.all_macro():
        parts += [Text(), _macro(readings)]
    news = view.news(30, instrument=instrument)
    if news:
        parts += [Text(), Text(f"{counted(len(news), 'news item')} in the last 30 days, the newest first")]
        parts += [_item(one) for one in reversed(news[-_ITEMS:])]
    return Group(*parts)


def sparkline(values: np.ndarray, width: int = _WIDTH) -> str:
    """A path as blocks of eight heights, oldest first; a space where nothing is known.

    >>> sparkline(np.array([1.0, 2.0, np.nan, 8.0]))
    '▁▂ █'
    """
    places = np.unique(np.linspace(0, values.size - 1, min(width, values.size)).astype(int))
    chosen = values[places] if values.size else values
    known = chosen[np.isfinite(chosen)]
    if not known.size:
        return " " * chosen.size
    low, spread = known.min(), float(np.ptp(known)) or 1.0
    return "".join(_BARS[int((one - low) / spread * 7)] if np.isfinite(one) else " " for one in chosen)


def _classes(found: Sequence[ClassOverview]) -> Table:
    """One row a class."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Class")
    for title in ("number", "first day", "last day", "closes", "missing", "long gaps"):
        table.add_column(title, justify="right")
    table.add_column("index")
    for one in found:
        name = CLASS_NAMES[one.asset_class].replace("_", " ")
        numbers = (count(one.bars), count(one.missing), count(one.long_gaps))
        line = sparkline(np.log(np.where(one.index > 0, one.index, np.nan)), 16)
        table.add_row(name, str(one.instruments), str(one.first), str(one.last), *numbers, line)
    return table


def _rest(history: History) -> str:
    """What there is beside first versions of bars."""
    parts = [
        counted(len(history.macro), "macro series", "macro series"),
        counted(len(history.news), "news item"),
        counted(len(history.fundamentals.filings), "filed value"),
        counted(int(history.restated.rows.size), "later version of a bar", "later versions of bars"),
    ]
    return ", ".join(parts)


def _life(history: History, instrument: str) -> str:
    """Listing and gaps of one instrument."""
    gaps = gaps_of(history, instrument)
    listing = next(one for one in history.listings if one.id == instrument)
    end = f"delisted {listing.delisted}" if listing.delisted else "not delisted"
    lines = [f"{clean(instrument, 40)}: {clean(listing.name, 80)}, listed {listing.listed}, {end}"]
    long = [f"{gap.days} days from {gap.first}" for gap in gaps if gap.days > GAP_LIMIT]
    lines.append(f"{counted(len(gaps), 'gap')}; too long to be carried: {', '.join(long) or 'none'}")
    return "\n".join(lines)


def _quotes(found: Sequence[Quote], *, whole: bool) -> Table:
    """Last closes, a few of each class."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Last closes", overflow="fold")
    for title in ("close", "of day", "1 day", "20 days", "60 days"):
        table.add_column(title, justify="right")
    table.add_column("60 days")
    for name, group in groupby(found, key=lambda one: one.listing.asset_class):
        members = list(group)
        for one in members if whole else members[:_A_CLASS]:
            changes = [_change(value) for value in one.changes]
            close = f"{one.close:,.2f}" if abs(one.close) >= 1 else f"{one.close:.4g}"
            table.add_row(_plain(one.listing.id, 24), close, str(one.day), *changes, sparkline(one.path))
        if not whole and len(members) > _A_CLASS:
            more = f"  and {len(members) - _A_CLASS} more of {CLASS_NAMES[name].replace('_', ' ')}"
            table.add_row(Text(more, style="dim"), *[""] * 6)
    return table


def _change(value: float | None) -> Text:
    """A change in per cent, coloured by its sign, or that there is none."""
    if value is None:
        return Text("none", style="dim")
    sign = MINUS if value < 0 else "+"
    return Text(f"{sign}{100 * abs(value):.1f} %", style="red" if value < 0 else "green")


def _macro(readings: Sequence[MacroReading]) -> Table:
    """Macro series with what they read, or why they read nothing."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Macro series")
    table.add_column("reads", justify="right")
    for title in ("unit", "for", "out since", "state"):
        table.add_column(title, overflow="fold")
    for one in sorted(readings, key=lambda one: one.id):
        value = "" if one.value is None else f"{one.value:,.2f}".replace("-", MINUS)
        out = "" if one.released is None else _when(datetime.fromtimestamp(one.released, UTC))
        state = Text(one.state, style="" if one.state == "ok" else "yellow")
        period = "" if one.period is None else str(one.period)
        table.add_row(_plain(one.id, 30), value, _plain(one.unit, 20), period, out, state)
    return table


def _filings(view: AsOf, instrument: str) -> Iterator[RenderableType]:
    """The newest filed values of one instrument."""
    filed = view.fundamentals(instrument)
    if not filed:
        yield Text("Nothing had been filed.")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("Filed", "for", "value", "unit", "known since"):
        table.add_column(title, justify="right" if title == "value" else "left")
    for one in filed[-8:]:
        names = (_plain(one.field, 40), _plain(one.period, 20))
        table.add_row(*names, f"{one.value:,.4g}", _plain(one.unit, 20), _when(one.filed_at))
    yield table


def _plain(text: str, limit: int) -> Text:
    """A text from a source as it is: square brackets in it are no markup."""
    return Text(clean(text, limit))


def _item(one: News) -> RenderableType:
    """One news item, its time first."""
    line = Text(f"{_when(one.published_at)}  ", style="dim")
    line.append(clean(one.text, 400), style="default not dim")
    return Padding(line, (0, 0, 0, 2))


def _when(moment: datetime) -> str:
    """A time to the minute, in UTC, rounded up: nothing is shown as known before it was."""
    at = moment.astimezone(UTC)
    whole = at.replace(second=0, microsecond=0)
    shown = whole if at == whole else whole + timedelta(minutes=1)
    return f"{shown:%Y-%m-%d %H:%M} UTC"
