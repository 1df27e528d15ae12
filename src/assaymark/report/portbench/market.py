"""What the models' portfolios did: histories against equal weight, and the figures of performance beside baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from assaymark.records import Measurement
from assaymark.report.blocks import Group, Inline, Mark, Panels, Table, bold
from assaymark.report.charts.canvas import paths_text
from assaymark.report.charts.paths import History, HistorySet, brush_of, history_panels
from assaymark.report.portbench.book import BenchBook, profile_word, why_none
from assaymark.report.portbench.inputs import NavPath, ProfileView, WindowView
from assaymark.report.text import counted, listing, moment, plural, signed
from assaymark.text import clean, number, percent, span

EQUAL_WEIGHT: Final = ("EqW", "equal weight", "equal-weight", "equal_weight")
"""How equal weight may be called among the baselines."""

_BRUSHED, _FIRST_PAGE = 14_000, 3_000
"""How many values of a day the page of histories and the first page hold for brushes; files of data have them all."""

_BASELINES: Final = {
    "EqW": "Equal weight",
    "RP": "Inverse volatility",
    "CRP": "Equal risk",
    "MinVar": "Minimum variance",
}
_FIGURES: Final = (
    ("total_return", "Return, %", "signed"),
    ("volatility", "Volatility, %", "percent"),
    ("sharpe", "Sharpe", "ratio"),
    ("sortino", "Sortino", "number"),
    ("calmar", "Calmar", "number"),
    ("drawdown", "Maximum drawdown, %", "fall"),
    ("turnover", "Turnover, %", "percent"),
    ("holdings", "Holdings", "count"),
    ("largest_weight", "Largest weight, %", "percent"),
    ("buys", "Buy signals, %", "percent"),
)


@dataclass(frozen=True, slots=True)
class HistoryView:
    """The panels of one window and profile; ``values`` is the text of the file that the panels link to, or empty."""

    id: str
    window: str
    title: str
    caption: str
    panels: Panels
    values: str


def history_views(book: BenchBook) -> tuple[HistoryView, ...]:
    """Every window and profile with a history: stress windows first, in the order of the plan."""
    found = [_view(book, window, profile) for window in stress_first(book) for profile in book.run.profiles]
    return _within([view for view in found if view is not None], _BRUSHED)


def stress_first(book: BenchBook) -> tuple[WindowView, ...]:
    """The windows, stress windows first, in the order of the plan."""
    return *book.stress, *(window for window in book.run.windows if not window.stress)


def _within(views: Sequence[HistoryView], most: int) -> tuple[HistoryView, ...]:
    """The views, the first of them with their brushes: numbers for all of a large run would make the page too long."""
    points, kept = 0, []
    for view in views:
        brush = view.panels.brush
        points += 0 if brush is None else len(brush.days) * len(brush.lines)
        kept.append(view if points <= most else replace(view, panels=replace(view.panels, brush=None)))
    return tuple(kept)


def chosen_history(book: BenchBook) -> HistoryView | None:
    """The one that the first page shows: the strictest profile in the window with the largest drawdown."""
    profile = book.strictest
    if profile is None:
        return None
    falls = [m for m in book.every("bench.drawdown", profile=profile.name) if m.detail.get("stress")]
    deepest = max((m for m in falls if m.value is not None), key=lambda m: m.value or 0.0, default=None)
    names = [] if deepest is None else [deepest.labels["window"]]
    windows = [w for w in (*book.stress, *book.run.windows) if not names or w.name in names]
    views = (_view(book, window, profile) for window in windows)
    found = next((view for view in views if view is not None), None)
    return None if found is None else _within([found], _FIRST_PAGE)[0]


def _view(book: BenchBook, window: WindowView, profile: ProfileView) -> HistoryView | None:
    mine = [p for p in book.run.paths if not p.baseline and (p.window, p.profile) == (window.name, profile.name)]
    if not any(len(path.nav) for path in mine):
        return None
    by_model = {path.model: path for path in mine if len(path.nav)}
    baseline = equal_weight(book, window.name)
    at = list(book.run.windows).index(window) + 1, list(book.run.profiles).index(profile) + 1
    drawn = [name for name in book.names if name in by_model]
    histories = tuple(History(clean(name, 60), by_model[name].nav) for name in drawn)
    shared, svgs = history_panels(
        HistorySet(
            f"h{at[0]}-{at[1]}", histories, None if baseline is None else baseline.nav, profile.drawdown_tolerance
        )
    )
    found = dict(zip(drawn, svgs, strict=True))
    lines = [(one.model, one.nav) for one in histories]
    lines += [] if baseline is None else [(baseline_word(baseline.model), baseline.nav)]
    days = by_model[drawn[0]].days
    values = paths_text("day", days, lines) if all(len(nav) == len(days) for _, nav in lines) else ""
    panels = tuple(_panel(book, name, window, profile, found.get(name, "")) for name in book.names)
    return HistoryView(
        id=f"nav-{at[0]}-{at[1]}",
        window=window.name,
        title=f"{book.window(window.name)}, {clean(profile.name, 40)} profile",
        caption=_caption(by_model[drawn[0]], baseline, profile),
        panels=Panels(
            panels,
            brush=brush_of([moment(day) for day in days], lines),
            data=f"data/nav-{at[0]}-{at[1]}.csv" if values else "",
            shared=shared,
        ),
        values=values,
    )


def equal_weight(book: BenchBook, window: str) -> NavPath | None:
    """The history of equal weight in a window."""
    found = (p for p in book.run.paths if p.baseline and p.window == window and p.model in EQUAL_WEIGHT and len(p.nav))
    return next(found, None)


def _caption(path: NavPath, baseline: NavPath | None, profile: ProfileView) -> str:
    start = f"Start = 100 on {moment(path.days[0])}" if path.days else "Start = 100"
    grey = "Grey: equal weight." if baseline is not None else "Equal weight was not run in this window."
    return (
        f"Net asset value over {counted(len(path.nav), 'trading day')}. {start}. Blue: the model. {grey} Below: "
        f"drawdown in percent, with the maximum drawdown. Dashed: the {percent(profile.drawdown_tolerance)} that "
        "this profile tolerates."
    )


def _panel(book: BenchBook, name: str, window: WindowView, profile: ProfileView, svg: str) -> tuple[Inline, str]:
    item = book.one("bench.drawdown", model=name, profile=profile.name, window=window.name)
    caption: list[Inline] = [bold(clean(name, 60))]
    if item is not None and item.value is not None:
        broken = item.value > profile.drawdown_tolerance + 1e-9
        caption.append(Mark("contradicted", "beyond the limit", "over") if broken else " within the limit")
    why = "No history: this episode was not run to its end."
    if item is not None and item.value is None:
        why = f"No history: {item.state.removeprefix('no score: ')}."
    return tuple(caption), svg or clean(why, 160)


# --- figures of performance -------------------------------------------------------------------------------------------


def performance_views(book: BenchBook, windows: Sequence[WindowView]) -> tuple[Group, ...]:
    """A table for each of some windows and each profile, models by name and baselines below."""
    found: list[Group] = []
    for window in windows:
        for profile in book.run.profiles:
            at = list(book.run.windows).index(window) + 1, list(book.run.profiles).index(profile) + 1
            title = f"{book.window(window.name)}, {clean(profile.name, 40)} profile"
            table = _performance(book, window, profile)
            found.append(Group(title, (table,), f"perf-{at[0]}-{at[1]}", "closed" if found else "open"))
    return tuple(found)


def baselines(book: BenchBook) -> tuple[str, ...]:
    """The baselines that were run, in their order."""
    return tuple(dict.fromkeys(item.labels["baseline"] for item in book.by_name.get("bench.baseline", ())))


def baseline_word(name: str) -> str:
    """How a page calls a baseline.

    >>> baseline_word("EqW"), baseline_word("60/40")
    ('Equal weight', '60/40')
    """
    return _BASELINES.get(name, clean(name, 40))


def _performance(book: BenchBook, window: WindowView, profile: ProfileView) -> Table:
    rows = []
    for name in book.names:
        labels = {"model": name, "profile": profile.name, "window": window.name}
        cells = [_cell(book, _model_figure(book, figure, labels), kind) for figure, _, kind in _FIGURES]
        rows.append((clean(name, 60), *cells))
    for name in baselines(book):
        cells = [
            "gives none"
            if figure == "buys"
            else _cell(book, book.one("bench.baseline", baseline=name, window=window.name, figure=figure), kind)
            for figure, _, kind in _FIGURES
        ]
        rows.append((f"{baseline_word(name)} (baseline)", *cells))
    heads = ("Model", *(head for _, head, _ in _FIGURES))
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), "", style="perf")


def _model_figure(book: BenchBook, figure: str, labels: dict[str, str]) -> Measurement | None:
    if figure in ("sharpe", "drawdown"):
        return book.one(f"bench.{figure}", **labels)
    return book.one("bench.performance", figure=figure, **labels)


def _cell(book: BenchBook, item: Measurement | None, kind: str) -> str:
    return (
        why_none(item) if item is None or item.value is None else book.to(item, _figure_words(item, item.value, kind))
    )


def _figure_words(item: Measurement, value: float, kind: str) -> str:
    match kind:
        case "signed":
            return signed(100 * value, 1)
        case "percent":
            return number(100 * value, 1)
        case "fall":
            return number(-100 * abs(value), 1)
        case "count":
            return number(value, 1)
        case "ratio" if item.low is not None and item.high is not None:
            return f"{number(value)} ({span(item.low, item.high)})"
        case _:
            return number(value)


def history_bytes(view: HistoryView) -> int:
    """About how many bytes the drawings of a history take on a page."""
    brush = () if view.panels.brush is None else (values for _, values in view.panels.brush.lines)
    drawn = (view.panels.shared, *(svg for _, svg in view.panels.panels), *brush)
    return 300 * len(view.panels.panels) + len("".join(drawn).encode())


def performance_answer(book: BenchBook) -> str:
    """What the tables show, without saying who is ahead."""
    names = [baseline_word(name) for name in baselines(book)]
    beside = f" beside {plural(len(names), 'baseline')} ({listing(names)})" if names else ""
    profiles = listing([profile_word(profile.name).lower() for profile in book.run.profiles])
    return f"One history per model, window and profile ({profiles}){beside}. Models stand by name."
