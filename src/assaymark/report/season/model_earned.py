"""What an agent earned: one path against the baselines, its falls, and its difference to equal weight.

Returns and paths are facts and are shown whatever may be claimed. That one of them is better is a claim, and is not
made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assaymark.records import Measurement
from assaymark.report.figures.brush import brush_of
from assaymark.report.figures.data import paths_text
from assaymark.report.figures.nav import NavChart, NavLine, NavWords, Role, nav_figure
from assaymark.report.figures.nav_paths import Floats, falls
from assaymark.report.formats import clean
from assaymark.report.portbench.histories import EQUAL_WEIGHT
from assaymark.report.season.inputs import SeasonPath
from assaymark.report.season.leaderboard import baseline_name
from assaymark.report.season.model_book import ModelBook
from assaymark.report.tables import Figure, Table


@dataclass(frozen=True, slots=True)
class EarnedView:
    """The section: one sentence, the figure with its table, and what a bootstrap says about the difference.

    ``data`` is the text of the file with the values of every day, which the figure links to.
    """

    answer: str
    figure: Figure | None
    table: Table | None
    notes: tuple[str, ...]
    data: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """A path on the days of the agent, from the start on: how a line is headed, and how a sentence calls it."""

    name: str
    head: str
    title: str
    nav: Floats
    role: Role

    @property
    def gain(self) -> float:
        return float(self.nav[-1] / self.nav[0] - 1.0)


def earned_view(book: ModelBook) -> EarnedView:
    """The section of one agent."""
    own = book.nav
    if own is None:
        return EarnedView(book.say("earned.no_path"), None, None, ())
    paths = _paths(book, own)
    figure, table = _figure(book, own, paths), _table(book, own, paths)
    head, start = book.say("earned.head.day"), book.say("earned.start")
    data = paths_text(head, (start, *own.days), [(one.head, one.nav) for one in paths])
    return EarnedView(_answer(book, paths), figure, table, _notes(book, paths), data)


def data_path(path: str) -> str:
    """Where the values behind the figure of an agent's page lie.

    >>> data_path("agents/Alder.html")
    'agents/Alder.csv'
    """
    return path.removesuffix(".html") + ".csv"


def _paths(book: ModelBook, own: SeasonPath) -> tuple[_Path, ...]:
    """The agent's path, equal weight, and the other baselines by name."""
    baselines = [path for path in book.run.paths if path.baseline and path.nav]
    ordered = sorted(baselines, key=lambda path: (path.name not in EQUAL_WEIGHT, path.name))
    name = clean(own.name, 60)
    found = [_Path(own.name, name, name, np.array([own.start, *own.nav]), "own")]
    for at, path in enumerate(ordered):
        role: Role = "first" if not at and path.name in EQUAL_WEIGHT else "other"
        name = "equal weight" if path.name in EQUAL_WEIGHT else path.name
        names = baseline_name(name, book.words), book.words.word("baseline", name)
        found.append(_Path(path.name, *names, on_days(path, own.days), role))
    return tuple(found)


def on_days(path: SeasonPath, days: Sequence[str]) -> Floats:
    """A path on the days of another, from its start on. On a day that it lacks it stays where it was.

    >>> path = SeasonPath(name="cash", baseline=True, start=10.0, days=("1", "3"), nav=(11.0, 12.0))
    >>> on_days(path, ["1", "2", "3"]).tolist()
    [10.0, 11.0, 11.0, 12.0]
    """
    known: Mapping[str, float] = dict(zip(path.days, path.nav, strict=True))
    found = [path.start]
    for day in days:
        found.append(known.get(day, found[-1]))
    return np.array(found)


def _answer(book: ModelBook, paths: Sequence[_Path]) -> str:
    days = len(paths[0].nav) - 1
    own = book.words.percent(paths[0].gain, sign=True)
    if len(paths) > 1:
        first = paths[1]
        other = book.words.percent(first.gain, sign=True)
        return book.say("earned.answer", own=own, baseline=first.title, other=other, n=days)
    return book.say("earned.answer_alone", own=own, n=days)


def _figure(book: ModelBook, own: SeasonPath, paths: Sequence[_Path]) -> Figure:
    words = book.words
    deepest = words.percent(float(falls(paths[0].nav).min()))
    beside = NavWords(
        start=words.say("earned.start"),
        fall=words.say("earned.fall"),
        deepest=words.say("earned.deepest", fall=deepest),
        ticks=words.amount,
    )
    lines = tuple(NavLine(one.head, one.nav, words.percent(one.gain, sign=True), one.role) for one in paths)
    title = words.say("earned.title_alone")
    if len(paths) > 1:
        title = words.say("earned.title", n=len(paths) - 1, count=words.few(len(paths) - 1))
    ends = "; ".join(f"{one.name} {one.end}" for one in lines)
    desc = words.say("earned.desc", agent=lines[0].name, ends=ends, fall=deepest)
    wide, narrow = nav_figure(NavChart("nav", lines, beside), title, desc)
    caption = words.say(
        "earned.caption_elsewhere" if book.run.source else "earned.caption",
        first=words.day(own.days[0]),
        last=words.day(own.days[-1]),
        start=words.amount(own.start),
        currency=clean(book.run.currency, 12),
    )
    days = (words.say("earned.start"), *map(words.day, own.days))
    brush = brush_of(days, [(one.head, one.nav) for one in paths])
    data = data_path(book.path).rpartition("/")[2]
    return Figure(title, caption, wide, narrow, brush=brush, data=data)


def _table(book: ModelBook, own: SeasonPath, paths: Sequence[_Path]) -> Table:
    words = book.words
    rows = []
    for one in paths:
        fall = falls(one.nav)
        at = int(fall.argmin())
        when = words.day(own.days[at - 1]) if at else words.say("earned.never")
        of = {"agent" if one.role == "own" else "baseline": one.name}
        gain = book.to(book.lookup.one("season.return", **of), words.percent(one.gain, 2, sign=True))
        deepest = book.to(book.lookup.one("season.drawdown", **of), words.percent(float(fall[at]), 2))
        rows.append((one.head, words.amount(float(one.nav[-1]), 2), gain, deepest, when))
    heads = tuple(words.say(f"earned.head.{name}") for name in ("path", "value", "gain", "fall", "day"))
    return Table(heads, tuple(rows), frozenset({1, 2, 3}))


def _notes(book: ModelBook, paths: Sequence[_Path]) -> tuple[str, ...]:
    """That one path has no band, and the difference to equal weight with its interval."""
    found = [book.say("earned.single")]
    for one in paths[1:]:
        if one.role == "first":
            excess = book.one("season.excess", baseline=one.name)
            found.append(book.to(excess, _difference(book, one, paths[0].gain, excess)))
    return tuple(found)


def _difference(book: ModelBook, baseline: _Path, own: float, item: Measurement | None) -> str:
    """The difference over all days, and the mean daily one with its bootstrap interval, in percentage points."""
    words = book.words
    whole = words.number(100 * (own - baseline.gain), 1, sign=True)
    said = words.say("earned.whole", baseline=baseline.title, n=len(baseline.nav) - 1, points=whole)
    if item is None:
        return said
    if item.value is None:
        return f"{said} {words.say('earned.no_interval', why=words.state(item))}"
    daily = words.number(100 * item.value, 3, sign=True)
    if item.low is None or item.high is None:
        return f"{said} {words.say('earned.daily_alone', points=daily)}"
    ends = {"low": words.number(100 * item.low, 3, sign=True), "high": words.number(100 * item.high, 3, sign=True)}
    level = words.percent(item.level if item.level is not None else 0.95, 0)
    zero = "holds_zero" if item.low <= 0 <= item.high else "clear_of_zero"
    interval = words.say("earned.daily", points=daily, level=level, n=item.n, **ends)
    return f"{said} {interval} {words.say(f'earned.{zero}')}"
