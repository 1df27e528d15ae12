"""Two questions beside the leaderboards: does quality hold under stress, and do signals become trades."""

from __future__ import annotations

from markupsafe import Markup

from assaymark.records import Measurement
from assaymark.report.blocks import Figure, Inline, Table
from assaymark.report.charts.canvas import NARROW, WIDE
from assaymark.report.charts.datasheet_axes import Heads, MapPoint, share_map
from assaymark.report.charts.intervals import interval_strip, score_axis, score_head
from assaymark.report.portbench.book import BenchBook, why_none
from assaymark.report.portbench.inputs import ALL
from assaymark.report.text import interval, listing
from assaymark.text import clean, percent, span

_MOST = 15
"""Marks that can be told apart on one figure."""


def windows_table(book: BenchBook) -> Table | None:
    """CEPS in calm and in stress windows as intervals, because points would order the models; None without both."""
    profile = _profile(book)
    found = {
        (name, kind): book.one("bench.stage", model=name, profile=profile, stage="CEPS", windows=kind)
        for name in book.names
        for kind in ("normal", "stress")
    }
    if any(all(found[name, kind] is None for name in book.names) for kind in ("normal", "stress")):
        return None
    axis = score_axis([end for item in found.values() if item for end in (item.low, item.high) if end is not None])
    rows: list[tuple[Inline, ...]] = []
    for name in book.names:
        cells: list[Inline] = [clean(name, 60)]
        for kind in ("normal", "stress"):
            item = found[name, kind]
            low, high = (item.low, item.high) if item else (None, None)
            cells += [Markup(interval_strip(axis, low, high, None)), book.to(item, _range(item))]
        rows.append(tuple(cells))
    heads: list[Inline] = ["Model"]
    for words in ("Calm windows", "Stress windows"):
        heads += [(words, Markup(score_head(axis))), f"{words}, {percent(book.run.level)} interval"]
    label = "CEPS in calm and in stress windows"
    columns = ("", "st", "iv", "st", "iv")
    return Table(tuple(heads), tuple(rows), summary="", style="heat calm", label=label, columns=columns)


def _profile(book: BenchBook) -> str:
    """What most measurements speak of: all profiles together, or the only one."""
    return ALL if len(book.run.profiles) != 1 else book.run.profiles[0].name


def _range(item: Measurement | None) -> str:
    if item is None or item.value is None:
        return why_none(item)
    return "no interval" if item.low is None or item.high is None else span(item.low, item.high)


def signals_figure(book: BenchBook) -> Figure | None:
    """Signals (S2) against trading (S4), each model a point with both intervals; None without any."""
    profile = _profile(book)
    points: list[MapPoint] = []
    rows: list[tuple[str, ...]] = []
    for name in book.names[:_MOST]:
        pair = [book.one("bench.stage", model=name, profile=profile, stage=at, windows="all") for at in ("S2", "S4")]
        values = [(item, item.value) for item in pair if item is not None and item.value is not None]
        if len(values) == 2:
            (one, x), (two, y) = values
            points.append(MapPoint(clean(name, 40), x, y, _ends(one), _ends(two), len(points)))
            said = (book.to(item, interval(value, item.low, item.high)) for item, value in values)
            rows.append((clean(name, 40), *said))
    if not points:
        return None
    title, desc = "Do signals become trades?", "; ".join(f"{name}: S2 {x}, S4 {y}" for name, x, y in rows) + "."
    heads = Heads("S2, signals", "S4, trading")
    wide, narrow = (
        share_map(points, heads, width, height).framed(f"signals-{kind[0]}", title, desc, kind)
        for width, height, kind in ((WIDE / 2, 380.0, "wide"), (NARROW, 340.0, "narrow"))
    )
    caption = "Mean score of the signals and of the trading that follows, both from 0 to 1, with their intervals."
    drawn = {row[0] for row in rows}
    if absent := [name for name in (clean(one, 40) for one in book.names[:_MOST]) if name not in drawn]:
        caption += f" Not drawn, because a score is missing: {listing(absent)}."
    table = Table(("Model", "Signals (S2)", "Trading (S4)"), tuple(rows), frozenset({1, 2}))
    return Figure(title, caption, wide, narrow, table=table)


def _ends(item: Measurement) -> tuple[float, float] | None:
    return None if item.low is None or item.high is None else (max(item.low, 0.0), min(item.high, 1.0))
