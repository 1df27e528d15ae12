"""Further sections of a benchmark: histories, performance, drawdowns under stress, investor fit, and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Final

from markupsafe import Markup

from assaymark.benchmark.market import Window
from assaymark.benchmark.plan import Profile
from assaymark.claims.boards import LEVEL, SHARPE_CONTRAST
from assaymark.records import Measurement, measurement_id
from assaymark.report import blocks as b
from assaymark.report.charts.canvas import NARROW, WIDE, Drawn, paths_text
from assaymark.report.charts.datasheet import MapPoint, share_map
from assaymark.report.charts.intervals import interval_strip, score_axis, score_head
from assaymark.report.charts.models import StressPoint, stress_scatter
from assaymark.report.charts.paths import brush_of, history_panels
from assaymark.report.measurements import MeasurementRow, quantities, table_rows
from assaymark.report.portbench import index as bench
from assaymark.report.portbench.index import BenchmarkIndex, profile_word
from assaymark.report.records.calls import Lineage
from assaymark.report.text import EQUAL_WEIGHT, bounds_of, counted, known, listing, moment, plural, signed
from assaymark.text import clean, number, percent, span

_BRUSHED, _FIRST_PAGE = 14_000, 3_000
"""Maximum numbers of values for brushes on the pages of histories and of scores; data files have all."""

_BASELINES: Final = {
    "EqW": "Equal weight", "RP": "Inverse volatility", "CRP": "Equal risk", "MinVar": "Minimum variance",
}  # fmt: skip
_FIGURES: Final = (
    ("total_return", "Return, %", "signed"), ("volatility", "Volatility, %", "percent"), ("sharpe", "Sharpe", "ratio"),
    ("sortino", "Sortino", "number"), ("calmar", "Calmar", "number"), ("drawdown", "Maximum drawdown, %", "fall"),
    ("turnover", "Turnover, %", "percent"), ("holdings", "Holdings", "count"),
    ("largest_weight", "Largest weight, %", "percent"), ("buys", "Buy signals, %", "percent"),
)  # fmt: skip


History = tuple[b.Section, b.Panels, str]
"""The section of one window and profile, its panels, and the text of the file that they link to (may be empty)."""


def history_views(index: BenchmarkIndex) -> list[tuple[Window, list[History]]]:
    """Every window and profile with a history, stress windows first; only the first have brushes, which are large."""
    views, room = list[tuple[Window, list[History]]](), _BRUSHED
    for window in (*index.stress, *(window for window in index.windows if window.kind == "normal")):
        views.append((window, []))
        for profile in index.run.profiles:
            history, room = _view(index, window, profile, room)
            views[-1][1].extend([] if history is None else [history])
    return views


def chosen_history(index: BenchmarkIndex) -> History | None:
    """The history on the page of scores: the strictest profile in the window with the largest drawdown."""
    profile = index.strictest
    if profile is None:
        return None
    falls = [m for m in index.all("bench.drawdown", profile=profile.name) if m.detail.get("stress")]
    deepest = max((m for m in falls if known(m)), key=lambda m: m.value, default=None)
    windows = [w for w in (*index.stress, *index.windows) if deepest is None or w.name == deepest.labels["window"]]
    views = (_view(index, window, profile, _FIRST_PAGE)[0] for window in windows)
    return next((view for view in views if view is not None), None)


def _view(index: BenchmarkIndex, window: Window, profile: Profile, room: int) -> tuple[History | None, int]:
    """A window and profile, and the number of values left for brushes; without a brush if there are not enough."""
    results = (result for result in index.results if (result.window, result.profile) == (window.name, profile.name))
    by_model = {result.model: result for result in results if len(result.nav)}
    if not by_model:
        return None, room
    equal = (p for p in index.run.baselines if p.window == window.name and p.name in EQUAL_WEIGHT and len(p.nav))
    baseline, limit = next(equal, None), profile.drawdown_tolerance
    at = f"{list(index.windows).index(window) + 1}-{list(index.run.profiles).index(profile) + 1}"
    drawn = [name for name in index.names if name in by_model]
    days, lines = list(map(str, by_model[drawn[0]].days)), [(clean(name, 60), by_model[name].nav) for name in drawn]
    shared, svgs = history_panels(f"h{at}", lines, None if baseline is None else baseline.nav, limit)
    lines += [] if baseline is None else [(baseline_title(baseline.name), baseline.nav)]
    values = paths_text("day", days, lines) if all(len(nav) == len(days) for _, nav in lines) else ""
    by_name, panels = dict(zip(drawn, svgs, strict=True)), list[tuple[b.Inline, str]]()
    for name in index.names:
        item = index.get("bench.drawdown", model=name, profile=profile.name, window=window.name)
        caption: list[b.Inline] = [b.bold(clean(name, 60))]
        reason = "No history: this episode was not run to its end."
        if known(item):
            broken = item.value > limit + bench.ROUNDING
            caption.append(b.Mark("contradicted", "beyond the limit", "over") if broken else " within the limit")
        elif item is not None:
            reason = f"No history: {item.state.removeprefix('no score: ')}."
        panels.append((tuple(caption), by_name.get(name) or clean(reason, 160)))
    start = f"Start = 100 on {moment(days[0])}" if days else "Start = 100"
    grey = "Grey: equal weight." if baseline is not None else "Equal weight was not run in this window."
    text = (
        f"Net asset value over {counted(len(days), 'trading day')}. {start}. Blue: the model. {grey} Below: drawdown "
        f"in percent, with the maximum drawdown. Dashed: the {percent(limit)} that this profile tolerates."
    )
    brush, data = brush_of([moment(day) for day in days], lines), f"data/nav-{at}.csv" if values else ""
    room -= 0 if brush is None else len(days) * len(lines)
    shown = b.Panels(tuple(panels), "multi", brush if room >= 0 else None, data, shared)
    title = f"{index.window(window.name)}, {clean(profile.name, 40)} profile"
    return (b.Section(f"nav-{at}", title, blocks=(b.Prose(text, "cap"), shown)), shown, values), room


def history_bytes(panels: b.Panels) -> int:
    """The approximate size of the drawings of a history in bytes."""
    brush = () if panels.brush is None else (values for _, values in panels.brush.lines)
    drawn = (panels.shared, *(svg for _, svg in panels.panels), *brush)
    return 300 * len(panels.panels) + len("".join(drawn).encode())


def performance_views(index: BenchmarkIndex, windows: Sequence[Window]) -> tuple[b.Group, ...]:
    """A table for each of some windows and each profile, models by name and baselines below."""
    groups: list[b.Group] = []
    columns = ("Model", *(head for _, head, _ in _FIGURES))

    def cells(items: Sequence[Measurement | None]) -> list[str]:
        texts = []
        for (name, _, kind), item in zip(_FIGURES, items, strict=True):
            if not known(item):
                texts.append("calm windows only" if item is None and name == "sharpe" else bench.missing_reason(item))
                continue
            value, ends = item.value, bounds_of(item)
            texts.append(index.link(item, {
                "signed": signed(100 * value, 1), "percent": number(100 * value, 1),
                "fall": number(-100 * abs(value), 1), "count": number(value, 1),
                "ratio": f"{number(value)} ({span(*ends)})" if ends else number(value), "number": number(value),
            }[kind]))  # fmt: skip
        return texts

    for window, (at, profile) in product(windows, enumerate(index.run.profiles, 1)):
        rows = []
        for name in index.names:
            labels, items = {"model": name, "profile": profile.name, "window": window.name}, []
            for figure, _, _ in _FIGURES:
                direct = figure in ("sharpe", "drawdown")
                key = f"bench.{figure}" if direct else "bench.performance"
                items.append(index.get(key, **labels, **({} if direct else {"figure": figure})))
            rows.append((clean(name, 60), *cells(items)))
        for name in baselines(index):
            labels = {"baseline": name, "window": window.name}
            items = [index.get("bench.baseline", **labels, figure=figure) for figure, _, _ in _FIGURES]
            rows.append((f"{baseline_title(name)} (baseline)", *cells(items)[:-1], "gives none"))
        table = b.Table(columns, tuple(rows), frozenset(range(1, len(columns))), "", style="perf")
        title = f"{index.window(window.name)}, {clean(profile.name, 40)} profile"
        place = f"perf-{list(index.windows).index(window) + 1}-{at}"
        groups.append(b.Group(title, (table,), place, "closed" if groups else "open"))
    return tuple(groups)


def baselines(index: BenchmarkIndex) -> tuple[str, ...]:
    """The baselines that were run, in their order."""
    return tuple(dict.fromkeys(item.labels["baseline"] for item in index.by_name.get("bench.baseline", ())))


def baseline_title(name: str) -> str:
    """The title of a baseline."""
    return _BASELINES.get(name, clean(name, 40))


def performance_answer(index: BenchmarkIndex) -> str:
    """A description of the tables that does not say who is ahead."""
    names = [baseline_title(name) for name in baselines(index)]
    beside = f" beside {plural(len(names), 'baseline')} ({listing(names)})" if names else ""
    profiles = listing([profile_word(profile.name).lower() for profile in index.run.profiles])
    return f"One history per model, window and profile ({profiles}){beside}. Models are in alphabetical order."


def windows_table(index: BenchmarkIndex) -> b.Table | None:
    """CEPS in calm and in stress windows as intervals, since points would rank the models; None without both."""
    kinds = {"normal": "Calm windows", "stress": "Stress windows"}
    measured = {
        (name, kind): index.get("bench.stage", model=name, profile=index.profile, stage="CEPS", windows=kind)
        for name in index.names
        for kind in kinds
    }
    if any(all(measured[name, kind] is None for name in index.names) for kind in kinds):
        return None
    axis = score_axis([end for item in measured.values() if item for end in (item.low, item.high) if end is not None])
    rows, header = list[tuple[b.Inline, ...]](), list[b.Inline](["Model"])
    for name in index.names:
        cells: list[b.Inline] = [clean(name, 60)]
        for kind in kinds:
            item = measured[name, kind]
            cells += [Markup(interval_strip(axis, bounds_of(item))), index.link(item, bench.range_words(item))]
        rows.append(tuple(cells))
    for words in kinds.values():
        header += [(words, Markup(score_head(axis))), f"{words}, {percent(index.run.plan.level)} interval"]
    label, columns = "CEPS in calm and in stress windows", ("", "st", "iv", "st", "iv")
    return b.Table(tuple(header), tuple(rows), summary="", style="heat calm", label=label, styles=columns)


def signals_figure(index: BenchmarkIndex) -> b.Figure | None:
    """Signals (S2) against trading (S4), each model a point with both intervals; None without any."""
    points, rows, absent = list[MapPoint](), list[tuple[str, ...]](), []
    for name in index.names[:15]:  # markers that can be distinguished in one figure
        labels = {"model": name, "profile": index.profile, "windows": "all"}
        x, y = (index.get("bench.stage", **labels, stage=at) for at in ("S2", "S4"))
        if not known(x) or not known(y):
            absent.append(clean(name, 40))
            continue
        ends_x, ends_y = (ends and (max(ends[0], 0.0), min(ends[1], 1.0)) for ends in map(bounds_of, (x, y)))
        points.append(MapPoint(clean(name, 40), x.value, y.value, ends_x, ends_y, len(points)))
        rows.append((clean(name, 40), index.linked(x), index.linked(y)))
    if not points:
        return None
    title, desc = "Signals and trading", "; ".join(f"{name}: S2 {s2}, S4 {s4}" for name, s2, s4 in rows) + "."
    columns = ("S2, signals", "S4, trading")
    caption = "Mean score of the signals and of the trading that follows, both from 0 to 1, with their intervals."
    if absent:
        caption += f" Not drawn, because a score is missing: {listing(absent)}."
    table = b.Table(("Model", "Signals (S2)", "Trading (S4)"), tuple(rows), frozenset({1, 2}))

    def draw(name: str, width: float) -> Drawn:
        return share_map(points, columns, name, width, height=340.0 if width == NARROW else 380.0)

    return b.plot("signals", title, caption, draw, desc, table, width=WIDE / 2)


def scatter_views(index: BenchmarkIndex) -> tuple[b.Figure, ...]:
    """Sharpe ratios in calm against drawdowns under stress: a figure for each profile, the strictest first."""
    window, stress, figures = index.normal, [window.name for window in index.stress], list[b.Figure]()
    if window is None or not stress:
        return ()
    ordered = sorted(index.run.profiles, key=lambda profile: profile.drawdown_tolerance)
    for at, profile in enumerate(ordered, 1):
        limit, missing, points, rows = profile.drawdown_tolerance, [], list[StressPoint](), list[tuple[str, ...]]()
        marks: list[tuple[str, bool, Measurement | None, list[Measurement | None]]] = []
        for model in index.names:
            labels = {"model": model, "profile": profile.name}
            falls = [index.get("bench.drawdown", **labels, window=name) for name in stress]
            marks.append((model, False, index.get("bench.sharpe", **labels, window=window.name), falls))
        for model in baselines(index):
            sharpe = index.get("bench.baseline", baseline=model, window=window.name, figure="sharpe")
            falls = [index.get("bench.baseline", baseline=model, window=name, figure="drawdown") for name in stress]
            marks.append((model, True, sharpe, falls))
        for model, baseline, sharpe, falls in marks:
            depths = [(abs(item.value), item) for item in falls if known(item)]
            if not known(sharpe) or len(depths) < len(falls):
                missing += [] if baseline else [clean(model, 60)]
                continue
            deepest, item = max(depths, key=itemgetter(0))
            passes = deepest <= limit + bench.ROUNDING if baseline else index.gate(model, profile.name)
            called = baseline_title(model) if baseline else clean(model, 60)
            points.append((called, sharpe, deepest, passes, baseline))
            side = "not decided" if passes is None else "within" if passes else "beyond"
            rows.append((called, index.linked(sharpe), index.link(item, percent(deepest, 1)), side))
        if not points:
            continue
        calm, level = index.window(window.name), percent(index.run.plan.level)
        title = f"Sharpe ratio in {calm} and maximum drawdown under stress, {clean(profile.name, 40)} profile"
        desc = "; ".join(f"{name}: Sharpe {number(sharpe.value)}, maximum drawdown {percent(fall, 1)}"
                         for name, sharpe, fall, *_ in points)  # fmt: skip
        draw = partial(stress_scatter, points, limit, calm)
        caption = (
            f"Whiskers: {level} intervals over resampled histories. Filled: stays within {percent(limit)} in every "
            "stress window. Open with a cross: does not. Diamonds: baselines."
        )
        columns = ("Model or baseline", f"Sharpe ratio, {level} interval", "Maximum drawdown under stress", "Limit")
        note = f"Not drawn, because a number is missing: {listing(missing)}. " if missing else ""
        note += "No whisker on the vertical axis: each stress window happened once. "
        note += "No ranking by Sharpe ratio is supported."
        table = b.Table(columns, tuple(rows), frozenset({1, 2}))
        figures.append(b.plot(f"scatter-{at}", title, caption, draw, f"{desc}.", table, width=WIDE, note=note))
    return tuple(figures)


def _bars(caption: str, columns: Sequence[b.Inline], rows: Sequence[tuple[b.Inline, ...]]) -> b.Table:
    return b.Table(("Model", *columns), tuple(rows), summary="", style="bars", label=caption)


def alignment_table(index: BenchmarkIndex) -> b.Group | None:
    """The fit of portfolios to each profile, and its spread between profiles; None if not measured."""
    labels = {"stage": "PAS", "windows": "all"}
    if not any(index.all("bench.stage", **labels)):
        return None
    rows: list[tuple[b.Inline, ...]] = []
    for name in index.names:
        items = [index.get("bench.stage", model=name, profile=profile.name, **labels) for profile in index.run.profiles]
        spread = _bar_cell(index, index.get("bench.adaptation", model=name), digits=3)
        rows.append((clean(name, 60), *(_bar_cell(index, item) for item in items), spread))
    note = (
        "Alignment is the mean of three terms: share of equities and crypto against the cap, bonds and cash against "
        "the floor, value at risk against the limit; 1 is within all three. Adaptation is the standard deviation of a "
        "model’s mean alignment between profiles: near 0 it fits all profiles equally well or badly."
    )
    columns = [(profile_word(profile.name), b.small("alignment")) for profile in index.run.profiles]
    caption = "Fit to each investor"
    return b.Group(caption, (_bars(caption, (*columns, ("Adaptation", b.small("spread"))), rows), b.Prose(note)))


def stress_table(index: BenchmarkIndex) -> b.Group | None:
    """The tolerance left after the maximum drawdown under stress, by profile; None if not measured."""
    if "bench.stress" not in index.by_name:
        return None
    tolerated = [(profile.name, percent(profile.drawdown_tolerance)) for profile in index.run.profiles]
    columns, rows = [(profile_word(name), b.small(f"tolerates {most}")) for name, most in tolerated], []
    for name in index.names:
        cells: list[b.Inline] = [clean(name, 60)]
        for profile, _ in tolerated:
            passes = index.gate(name, profile)
            bar = _bar_cell(index, index.get("bench.stress", model=name, profile=profile))
            cells.append(bar if passes is None else (bar, bench.pass_mark(passes)))
        rows.append(tuple(cells))
    note = (
        "Score: what is left of the tolerance after the maximum drawdown, as a share of it, averaged over the stress "
        "windows. Tick: within the limit in every stress window; cross: beyond it in at least one."
    )
    caption = "Stress score and limit"
    return b.Group(caption, (_bars(caption, columns, rows), b.Prose(note)))


def safety_tables(index: BenchmarkIndex) -> tuple[b.Group, ...]:
    """CEPS of each stress window with the threshold of safety (Table 6 of PortBench), a table per profile."""
    groups = []
    for profile in index.run.profiles:
        least: dict[str, object] = {}
        for item in index.all("bench.risk_safe", profile=profile.name):
            least.setdefault(item.labels["scenario"], item.detail.get("threshold"))
        if not least:
            continue
        columns = [
            (index.window(name), b.small(f"safe from {number(float(cut))}") if isinstance(cut, (int, float)) else "")
            for name, cut in least.items()
        ]
        rows: list[tuple[b.Inline, ...]] = []
        for name in index.names:
            cells, shared = list[b.Inline]([clean(name, 60)]), index.shares_tier(profile.name, name)
            for scenario in least:
                reached = index.get("bench.risk_safe", scenario=scenario, model=name, profile=profile.name)
                cell = _bar_cell(index, reached)
                if not known(reached):
                    cells.append(cell)
                    continue
                safe = bool(reached.detail.get("safe"))
                if shared:
                    words = "reached" if safe else "not reached"
                    cell = b.Share(None, ", ".join(filter(None, (cell.below, words))), style="bar")
                cells.append((cell, bench.pass_mark(safe)))
            rows.append(tuple(cells))
        caption = f"{profile_word(profile.name)} profile: quality of decisions under stress"
        groups.append(b.Group(caption, (_bars(caption, columns, rows),), folded="open"))
    return tuple(groups)


def _bar_cell(index: BenchmarkIndex, item: Measurement | None, digits: int = 2) -> b.Share:
    """A number in [0, 1] with its interval."""
    if not known(item):
        return b.Share(None, bench.missing_reason(item), style="bar")
    ends = bounds_of(item)
    return b.Share(item.value, index.link(item, number(item.value, digits)), span(*ends, digits) if ends else "", "bar")


def stress_answer(index: BenchmarkIndex) -> str:
    """The number of stress windows in the counts of kept limits, or the reason why there are none."""
    if any(verdict.publication_level == "headline" for verdict in index.of_kind("gates")):
        return f"Limits were counted over {plural(len(index.stress), 'stress window')}; each window happened once."
    return "Each stress window happened once, so its losses carry no interval."


def bench_measurements(index: BenchmarkIndex, lineage: Lineage = lambda _: ()) -> tuple[MeasurementRow, ...]:
    """All measurements of a benchmark; ``lineage`` gives the records that one was computed from."""

    def hidden(item: Measurement) -> str:
        labels, board = item.labels, None
        if item.name == "contrast":
            level = index.pair_level(labels["dimension"], labels["high"], labels["low"])
            return "" if level != "no-claim" else "not shown: no supported ranking"
        if item.name == SHARPE_CONTRAST:
            claim = index.verdicts.get(measurement_id("beats", labels))
            supported = claim is not None and claim.publication_level != "no-claim"
            return "" if supported or item.value is None else "not shown: the difference is not supported"
        # The leaderboard of a model's score; None if it is not a score on a leaderboard.
        if item.name == LEVEL:
            board = labels["board"]
        elif item.name == "bench.risk_safe" or (item.name == "bench.stage" and labels["stage"] == "CEPS"):
            board = labels["profile"]
        elif item.name == "bench.question" and labels.keys() == {"model", "condition"}:
            board = bench.QUESTIONS
        if item.value is None or not index.shares_tier(board, labels.get("model", "")):
            return ""
        ends = bounds_of(item)
        return f"{f'{span(*ends)}, its interval' if ends else 'not shown'}; the model shares its tier"

    return table_rows(index.run.measurements, quantities("portbench"), hidden, lineage)
