"""Losses under stress, and whether a model changes with the investor: scatter, stress scores, thresholds, alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from assaymark.records import Measurement
from assaymark.report.blocks import Figure, Group, Inline, Share, Table, Text, small
from assaymark.report.charts.scatter import StressPoint, stress_scatter
from assaymark.report.portbench.book import ROUNDING, BenchBook, profile_word, why_none
from assaymark.report.portbench.inputs import ProfileView
from assaymark.report.portbench.market import baseline_word, baselines
from assaymark.report.portbench.stages import pass_mark
from assaymark.report.text import interval, listing, plural
from assaymark.text import clean, number, percent, span


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A mark of the figure with the two measurements that place it."""

    point: StressPoint
    sharpe: Measurement
    deepest: Measurement

    def numbers(self, book: BenchBook) -> tuple[str, ...]:
        """What the figure draws, in words that lead to their rows."""
        point = self.point
        kept = "not decided" if point.passes is None else "within" if point.passes else "beyond"
        sharpe = book.to(self.sharpe, interval(point.sharpe, point.low, point.high))
        return point.name, sharpe, book.to(self.deepest, percent(point.fall, 1)), kept


def scatter_views(book: BenchBook) -> tuple[Figure, ...]:
    """A figure for each profile, the strictest first."""
    window = book.normal
    if window is None or not book.stress:
        return ()
    ordered = sorted(book.run.profiles, key=lambda profile: profile.drawdown_tolerance)
    found = []
    for profile in ordered:
        points, missing = _points(book, profile)
        if points:
            at = ordered.index(profile) + 1
            found.append(_scatter(book, profile, points, missing, f"scatter-{at}"))
    return tuple(found)


def _scatter(
    book: BenchBook, profile: ProfileView, drawn: Sequence[_Drawn], missing: Sequence[str], name: str
) -> Figure:
    points = [one.point for one in drawn]
    window = book.normal
    assert window is not None
    where, who = book.window(window.name), clean(profile.name, 40)
    where, who = book.window(window.name), clean(profile.name, 40)
    title = f"Sharpe ratio in {where} and maximum drawdown under stress, {who} profile"
    wide, narrow = stress_scatter(
        name, points, profile.drawdown_tolerance, book.window(window.name), title, _desc(points)
    )
    level = percent(book.run.level)
    caption = (
        f"Whiskers: {level} intervals over resampled histories. Filled: stays within "
        f"{percent(profile.drawdown_tolerance)} in every stress window. Open with a cross: does not. Diamonds: "
        "baselines."
    )
    heads = ("Model or baseline", f"Sharpe ratio, {level} interval", "Maximum drawdown under stress", "Limit")
    table = Table(heads, tuple(one.numbers(book) for one in drawn), frozenset({1, 2}))
    left_out = f"Not drawn, because a number is missing: {listing(missing)}. " if missing else ""
    note = "No whisker on the vertical axis: each stress window happened once. No ranking by Sharpe ratio is supported."
    return Figure(title, caption, wide, narrow, note=left_out + note, table=table)


def _desc(points: Sequence[StressPoint]) -> str:
    return (
        "; ".join(f"{p.name}: Sharpe {number(p.sharpe)}, maximum drawdown {percent(p.fall, 1)}" for p in points) + "."
    )


def _points(book: BenchBook, profile: ProfileView) -> tuple[list[_Drawn], list[str]]:
    window = book.normal
    assert window is not None
    stress = [one.name for one in book.stress]
    found, missing = [], []
    for name in book.names:
        sharpe = book.one("bench.sharpe", model=name, profile=profile.name, window=window.name)
        falls = [book.one("bench.drawdown", model=name, profile=profile.name, window=one) for one in stress]
        point = _point(clean(name, 60), sharpe, falls, book.gate(name, profile.name))
        if point is None:
            missing.append(clean(name, 60))
        else:
            found.append(point)
    for name in baselines(book):
        sharpe = book.one("bench.baseline", baseline=name, window=window.name, figure="sharpe")
        falls = [book.one("bench.baseline", baseline=name, window=one, figure="drawdown") for one in stress]
        point = _point(baseline_word(name), sharpe, falls, None, profile.drawdown_tolerance)
        if point is not None:
            found.append(point)
    return found, missing


def _point(
    name: str,
    sharpe: Measurement | None,
    falls: Sequence[Measurement | None],
    passes: bool | None,
    tolerance: float | None = None,
) -> _Drawn | None:
    known = [(abs(item.value), item) for item in falls if item is not None and item.value is not None]
    if sharpe is None or sharpe.value is None or len(known) < len(falls):
        return None
    deepest, item = max(known, key=itemgetter(0))
    within = passes if tolerance is None else deepest <= tolerance + ROUNDING
    point = StressPoint(name, sharpe.value, sharpe.low, sharpe.high, deepest, within, baseline=tolerance is not None)
    return _Drawn(point, sharpe, item)


# --- tables with bars -------------------------------------------------------------------------------------------------


def _bars(caption: str, heads: Sequence[Inline], rows: Sequence[tuple[Inline, ...]]) -> Table:
    return Table(("Model", *heads), tuple(rows), summary="", style="bars", label=caption)


def alignment_table(book: BenchBook) -> Group | None:
    """How well portfolios fit each profile, and how much that differs between profiles."""
    labels = {"stage": "PAS", "windows": "all"}
    if not any(book.every("bench.stage", **labels)):
        return None
    rows: list[tuple[Inline, ...]] = []
    for name in book.names:
        items = [book.one("bench.stage", model=name, profile=one.name, **labels) for one in book.run.profiles]
        spread = bar_cell(book, book.one("bench.adaptation", model=name), digits=3)
        rows.append((clean(name, 60), *(bar_cell(book, item) for item in items), spread))
    note = (
        "Alignment is the mean of three terms: share of equities and crypto against the cap, bonds and cash against "
        "the floor, value at risk against the limit; 1 is within all three. Adaptation is the standard deviation of a "
        "model’s mean alignment between profiles: near 0 it fits all profiles equally well or badly."
    )
    heads = [(profile_word(one.name), small("alignment")) for one in book.run.profiles]
    caption = "Fit to each investor"
    return Group(caption, (_bars(caption, (*heads, ("Adaptation", small("spread"))), rows), Text(note)))


def stress_table(book: BenchBook) -> Group | None:
    """What is left of the tolerance under stress, by profile."""
    if "bench.stress" not in book.by_name:
        return None
    heads = [(profile_word(p.name), small(f"tolerates {percent(p.drawdown_tolerance)}")) for p in book.run.profiles]
    rows: list[tuple[Inline, ...]] = []
    for name in book.names:
        cells: list[Inline] = [clean(name, 60)]
        for profile in book.run.profiles:
            kept = book.gate(name, profile.name)
            bar = bar_cell(book, book.one("bench.stress", model=name, profile=profile.name))
            cells.append(bar if kept is None else (bar, pass_mark(kept)))
        rows.append(tuple(cells))
    note = (
        "Score: what is left of the tolerance after the maximum drawdown, as a share of it, averaged over the stress "
        "windows. Tick: within the limit in every stress window; cross: beyond it in at least one."
    )
    caption = "Stress score and limit"
    return Group(caption, (_bars(caption, heads, rows), Text(note)))


def safety_tables(book: BenchBook) -> tuple[Group, ...]:
    """CEPS of each stress window against the least that is called safe (Table 6 of PortBench), a table a profile."""
    found = []
    for profile in book.run.profiles:
        items = list(book.every("bench.risk_safe", profile=profile.name))
        scenarios = list(dict.fromkeys(item.labels["scenario"] for item in items))
        if not items:
            continue
        heads: list[Inline] = []
        for scenario in scenarios:
            least = next((i.detail.get("threshold") for i in items if i.labels["scenario"] == scenario), None)
            words = small(f"safe from {number(float(least))}") if isinstance(least, (int, float)) else ""
            heads.append((book.window(scenario), words))
        rows: list[tuple[Inline, ...]] = []
        for name in book.names:
            labels = {"model": name, "profile": profile.name}
            cells = (_safe(book, book.one("bench.risk_safe", scenario=scenario, **labels)) for scenario in scenarios)
            rows.append((clean(name, 60), *cells))
        caption = f"{profile_word(profile.name)} profile: quality of decisions under stress"
        found.append(Group(caption, (_bars(caption, heads, rows),), folded="open"))
    return tuple(found)


def _safe(book: BenchBook, item: Measurement | None) -> Inline:
    cell = bar_cell(book, item)
    if item is None or item.value is None:
        return cell
    safe = bool(item.detail.get("safe"))
    if book.shares_tier(item.labels["profile"], item.labels["model"]):
        words = "reached" if safe else "not reached"
        cell = Share(None, ", ".join(filter(None, (cell.below, words))), style="bar")
    return cell, pass_mark(safe)


def bar_cell(book: BenchBook, item: Measurement | None, digits: int = 2) -> Share:
    """A number in [0, 1] with its interval."""
    if item is None or item.value is None:
        return Share(None, why_none(item), style="bar")
    ends = "" if item.low is None or item.high is None else span(item.low, item.high, digits)
    return Share(item.value, book.to(item, number(item.value, digits)), ends, "bar")


def stress_answer(book: BenchBook) -> str:
    """The counts that verdicts give, or in words why there are none."""
    said = [verdict.claim.statement for verdict in book.of_kind("gates") if verdict.publication_level == "headline"]
    if said:
        return f"Limits were counted over {plural(len(book.stress), 'stress window')}; each window happened once."
    return "Each stress window happened once, so its losses carry no interval."
