"""Beside the leaderboards: does quality hold under stress, do signals become trades, and every measurement as a row."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from assaymark.claims.boards import LEVEL, SHARPE_CONTRAST
from assaymark.records import Measurement, measurement_id
from assaymark.report.blocks import Figure, Inline, Table
from assaymark.report.charts.canvas import NARROW, WIDE
from assaymark.report.charts.datasheet_axes import Heads, MapPoint, share_map
from assaymark.report.charts.intervals import interval_strip, score_axis, score_head
from assaymark.report.measurements import MeasuredRow, rows_of
from assaymark.report.portbench.book import BenchBook, why_none
from assaymark.report.portbench.inputs import ALL, QUESTIONS
from assaymark.report.records.texts import Rests
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


_TITLES: Final = {
    "bench.level": "Level on a leaderboard",
    "contrast": "Paired difference of two models",
    "order.autocorrelation": "Autocorrelation of clusters in time, lag 1",
    "order.detectable": "Smallest detectable difference, for a leader",
    "bench.stage": "Mean score of a stage",
    "bench.ceiling": "Mean score of true answers",
    "bench.adaptation": "Adaptation to the profile",
    "bench.drawdown": "Maximum drawdown",
    "bench.sharpe": "Sharpe ratio",
    "bench.sharpe.contrast": "Sharpe ratio against equal weight",
    "bench.performance": "Performance",
    "bench.baseline": "Performance of a baseline",
    "bench.stress": "Stress score",
    "bench.risk_safe": "CEPS of a stress window",
    "bench.question": "Mean score on questions",
    "bench.dissociation": "Questions and pipeline, rank correlation",
}


def every_measurement(book: BenchBook, rests: Rests = lambda _: ()) -> tuple[MeasuredRow, ...]:
    """All measurements of a benchmark; ``rests`` gives the records that one was computed from."""

    def hidden(item: Measurement) -> str:
        labels = item.labels
        if item.name == "contrast":
            level = book.pair_level(labels["dimension"], labels["high"], labels["low"])
            return "" if level != "no-claim" else "not shown: no supported order"
        if item.name == SHARPE_CONTRAST:
            claim = book.verdicts.get(measurement_id("beats", labels))
            supported = claim is not None and claim.publication_level != "no-claim"
            return "" if supported or item.value is None else "not shown: the difference is not supported"
        if item.value is None or not book.shares_tier(_board_of(item), labels.get("model", "")):
            return ""
        ends = "not shown" if item.low is None or item.high is None else f"{span(item.low, item.high)}, its interval"
        return f"{ends}; the model shares its tier"

    return rows_of(book.run.measurements, _TITLES, rests=rests, hidden=hidden)


def _board_of(item: Measurement) -> str | None:
    """The leaderboard that a score of one model is the score of; None where it is of no leaderboard."""
    if item.name == LEVEL:
        return item.labels["board"]
    if item.name == "bench.risk_safe" or (item.name == "bench.stage" and item.labels["stage"] == "CEPS"):
        return item.labels["profile"]
    whole = item.name == "bench.question" and item.labels.keys() == {"model", "condition"}
    return QUESTIONS if whole else None
