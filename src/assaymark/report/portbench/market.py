"""What the models' portfolios did: histories against equal weight, and the figures of performance beside baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from assaymark.records import Measurement
from assaymark.report.blocks import Group, Inline, Mark, Panels, Section, Table, Text, bold
from assaymark.report.charts.canvas import paths_text
from assaymark.report.charts.paths import brush_of, history_panels
from assaymark.report.portbench.book import ROUNDING, BenchmarkIndex, ends_of, profile_word, why_none
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


History = tuple[Section, Panels, str]
"""The section of one window and profile, its panels, and the text of the file that they link to, or nothing."""


def history_views(book: BenchmarkIndex) -> list[tuple[WindowView, list[History]]]:
    """Every window and profile with a history: stress windows first, in the order of the plan.

    The first of them have brushes: numbers for all of a large run would make the page too long.
    """
    found, used = [], 0
    for window in stress_first(book):
        mine: list[History] = []
        for profile in book.run.profiles:
            if (made := _view(book, window, profile)) is not None:
                section, panels, values = made
                used += _points(panels)
                mine.append(made if used <= _BRUSHED else _history(section, replace(panels, brush=None), values))
        found.append((window, mine))
    return found


def _points(panels: Panels) -> int:
    return 0 if panels.brush is None else len(panels.brush.days) * len(panels.brush.lines)


def _history(section: Section, panels: Panels, values: str) -> History:
    return replace(section, blocks=(*section.blocks[:1], panels)), panels, values


def stress_first(book: BenchmarkIndex) -> tuple[WindowView, ...]:
    """The windows, stress windows first, in the order of the plan."""
    return *book.stress, *(window for window in book.run.windows if not window.stress)


def chosen_history(book: BenchmarkIndex) -> History | None:
    """The one that the first page shows: the strictest profile in the window with the largest drawdown."""
    profile = book.strictest
    if profile is None:
        return None
    falls = [m for m in book.every("bench.drawdown", profile=profile.name) if m.detail.get("stress")]
    deepest = max((m for m in falls if m.value is not None), key=lambda m: m.value or 0.0, default=None)
    names = [] if deepest is None else [deepest.labels["window"]]
    windows = [w for w in (*book.stress, *book.run.windows) if not names or w.name in names]
    made = next((view for window in windows if (view := _view(book, window, profile)) is not None), None)
    if made is None or _points(made[1]) <= _FIRST_PAGE:
        return made
    return _history(made[0], replace(made[1], brush=None), made[2])


def _view(book: BenchmarkIndex, window: WindowView, profile: ProfileView) -> History | None:
    mine = (p for p in book.run.paths if not p.baseline and (p.window, p.profile) == (window.name, profile.name))
    by_model = {path.model: path for path in mine if len(path.nav)}
    if not by_model:
        return None
    baseline, limit = equal_weight(book, window.name), profile.drawdown_tolerance
    at = f"{list(book.run.windows).index(window) + 1}-{list(book.run.profiles).index(profile) + 1}"
    drawn = [name for name in book.names if name in by_model]
    first, lines = by_model[drawn[0]], [(clean(name, 60), by_model[name].nav) for name in drawn]
    shared, svgs = history_panels(f"h{at}", lines, None if baseline is None else baseline.nav, limit)
    lines += [] if baseline is None else [(baseline_word(baseline.model), baseline.nav)]
    values = paths_text("day", first.days, lines) if all(len(nav) == len(first.days) for _, nav in lines) else ""
    found, panels = dict(zip(drawn, svgs, strict=True)), list[tuple[Inline, str]]()
    for name in book.names:
        item = book.one("bench.drawdown", model=name, profile=profile.name, window=window.name)
        caption: list[Inline] = [bold(clean(name, 60))]
        why = "No history: this episode was not run to its end."
        if item is not None and item.value is not None:
            broken = item.value > limit + ROUNDING
            caption.append(Mark("contradicted", "beyond the limit", "over") if broken else " within the limit")
        elif item is not None:
            why = f"No history: {item.state.removeprefix('no score: ')}."
        panels.append((tuple(caption), found.get(name) or clean(why, 160)))
    start = f"Start = 100 on {moment(first.days[0])}" if first.days else "Start = 100"
    grey = "Grey: equal weight." if baseline is not None else "Equal weight was not run in this window."
    text = (
        f"Net asset value over {counted(len(first.nav), 'trading day')}. {start}. Blue: the model. {grey} Below: "
        f"drawdown in percent, with the maximum drawdown. Dashed: the {percent(limit)} that this profile tolerates."
    )
    brush, data = brush_of([moment(day) for day in first.days], lines), f"data/nav-{at}.csv" if values else ""
    shown = Panels(tuple(panels), brush=brush, data=data, shared=shared)
    title = f"{book.window(window.name)}, {clean(profile.name, 40)} profile"
    return Section(f"nav-{at}", title, blocks=(Text(text, "cap"), shown)), shown, values


def equal_weight(book: BenchmarkIndex, window: str) -> NavPath | None:
    """The history of equal weight in a window."""
    found = (p for p in book.run.paths if p.baseline and p.window == window and p.model in EQUAL_WEIGHT and len(p.nav))
    return next(found, None)


# --- figures of performance -------------------------------------------------------------------------------------------


def performance_views(book: BenchmarkIndex, windows: Sequence[WindowView]) -> tuple[Group, ...]:
    """A table for each of some windows and each profile, models by name and baselines below."""
    found: list[Group] = []
    heads = ("Model", *(head for _, head, _ in _FIGURES))
    for window, (at, profile) in product(windows, enumerate(book.run.profiles, 1)):
        rows = []
        for name in book.names:
            labels, items = {"model": name, "profile": profile.name, "window": window.name}, []
            for figure, _, _ in _FIGURES:
                own = figure in ("sharpe", "drawdown")
                key = f"bench.{figure}" if own else "bench.performance"
                items.append(book.one(key, **labels, **({} if own else {"figure": figure})))
            rows.append((clean(name, 60), *_cells(book, items)))
        for name in baselines(book):
            labels = {"baseline": name, "window": window.name}
            items = [book.one("bench.baseline", **labels, figure=figure) for figure, _, _ in _FIGURES]
            rows.append((f"{baseline_word(name)} (baseline)", *_cells(book, items)[:-1], "gives none"))
        table = Table(heads, tuple(rows), frozenset(range(1, len(heads))), "", style="perf")
        title = f"{book.window(window.name)}, {clean(profile.name, 40)} profile"
        place = f"perf-{list(book.run.windows).index(window) + 1}-{at}"
        found.append(Group(title, (table,), place, "closed" if found else "open"))
    return tuple(found)


def baselines(book: BenchmarkIndex) -> tuple[str, ...]:
    """The baselines that were run, in their order."""
    return tuple(dict.fromkeys(item.labels["baseline"] for item in book.by_name.get("bench.baseline", ())))


def baseline_word(name: str) -> str:
    """How a page calls a baseline.

    >>> baseline_word("EqW"), baseline_word("60/40")
    ('Equal weight', '60/40')
    """
    return _BASELINES.get(name, clean(name, 40))


def _cells(book: BenchmarkIndex, items: Sequence[Measurement | None]) -> list[str]:
    found = []
    for (_, _, kind), item in zip(_FIGURES, items, strict=True):
        if item is None or item.value is None:
            found.append(why_none(item))
            continue
        value, ends = item.value, ends_of(item)
        text = {
            "signed": signed(100 * value, 1), "percent": number(100 * value, 1),
            "fall": number(-100 * abs(value), 1), "count": number(value, 1),
            "ratio": f"{number(value)} ({span(*ends)})" if ends else number(value), "number": number(value),
        }[kind]  # fmt: skip
        found.append(book.to(item, text))
    return found


def history_bytes(panels: Panels) -> int:
    """About how many bytes the drawings of a history take on a page."""
    brush = () if panels.brush is None else (values for _, values in panels.brush.lines)
    drawn = (panels.shared, *(svg for _, svg in panels.panels), *brush)
    return 300 * len(panels.panels) + len("".join(drawn).encode())


def performance_answer(book: BenchmarkIndex) -> str:
    """What the tables show, without saying who is ahead."""
    names = [baseline_word(name) for name in baselines(book)]
    beside = f" beside {plural(len(names), 'baseline')} ({listing(names)})" if names else ""
    profiles = listing([profile_word(profile.name).lower() for profile in book.run.profiles])
    return f"One history per model, window and profile ({profiles}){beside}. Models stand by name."
