"""What the judges graded: every part of both axes, what the numeric ledger lowered, and the judges' own words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from markupsafe import Markup

from assaymark.judging.season.plans import TEMPORAL, SubComponent
from assaymark.judging.season.scoring import band
from assaymark.records import Measurement
from assaymark.report.blocks import Figure, Table, row_bytes
from assaymark.report.charts.canvas import paths_text
from assaymark.report.charts.intervals import JudgeWords
from assaymark.report.charts.paths import Floats, NavChart, NavLine, NavWords, Role, brush_of, falls, nav_figure
from assaymark.report.portbench.market import EQUAL_WEIGHT
from assaymark.report.season.index import ModelBook, ModelWords
from assaymark.report.season.inputs import SeasonGradeView, SeasonPath
from assaymark.report.season.leaderboard import baseline_name
from assaymark.report.season.strip import PartAxis, PartRow, part_figure
from assaymark.text import clean

# What does not reconcile in a record, in words: the sentences of `portfolio.Mismatch`, read back and said again.


_MOST, _MARKUP = 400, 120
_KINDS: Final = "fill-quantity|fill-price|cash|position|negative-position|nav"
_SENTENCE: Final = re.compile(
    rf"(?P<kind>{_KINDS})(?: of (?P<symbol>.+?))?: stated (?P<stated>[-+.\de]+), recomputed (?P<recomputed>[-+.\de]+)"
    r"(?:, (?P<where>at the close|inside the bar|outside the bar|no bar))?"
)
_MOVE: Final = re.compile(
    r"price of (?P<symbol>.+?) on (?P<day>[-\d]+): (?P<close>[-+.\de]+) after (?P<before>[-+.\de]+) on "
    r"(?P<earlier>[-\d]+), (?:explained by no action|not explained by (?P<actions>.+))"
)
"""As `assaymark.workflow.tracks.season_books.unexplained` writes it."""


@dataclass(frozen=True, slots=True)
class MismatchRow:
    """A statement that does not follow from the others, with the day and the link to its decision.

    ``size`` is about how many bytes its row takes, the same in every language.
    """

    html: Markup
    size: int


def mismatch_rows(book: ModelBook, places: Mapping[int, str]) -> tuple[MismatchRow, ...]:
    """Every mismatch in the order of the days; ``places`` says on which page a decision stands."""
    found = []
    for step in book.steps:
        for text in step.mismatches:
            number = book.words.count(step.number)
            link = Markup('<a href="{}#d{}">{}</a>').format(places[step.number], step.number, number)
            words = mismatch_words(book.words, text)
            html = Markup('<tr><th scope="row">{}</th><td>{}</td><td dir="auto">{}</td></tr>\n').format(
                link, clean(step.day, 24), words
            )
            found.append(MismatchRow(html, row_bytes(_MARKUP, [link, step.day, text[:_MOST]])))
    return tuple(found)


def mismatch_words(words: ModelWords, text: str) -> str:
    """A mismatch in the language of the page; a sentence of another form stays as it was recorded, made safe.

    >>> from assaymark.claims.messages import english
    >>> said = mismatch_words(ModelWords(english()), "cash: stated 14.4, recomputed 17.7507, outside the bar")
    >>> said
    'Cash: stated 14.4, recomputed 17.7507, which no price of the step explains.'
    >>> mismatch_words(ModelWords(english()), "The cash is odd.")
    'The cash is odd.'
    """
    shown = clean(text, _MOST)
    if moved := _MOVE.fullmatch(shown):
        said = "acted" if moved["actions"] else "moved"
        return words.say(f"mismatch.price.{said}", **{key: value or "" for key, value in moved.groupdict().items()})
    found = _SENTENCE.fullmatch(shown)
    if found is None:
        return shown
    try:
        stated, recomputed = (words.catalogue.number(float(found[name]), ".10g") for name in ("stated", "recomputed"))
    except ValueError:
        return shown
    what = words.word("mismatch", found["kind"])
    if found["symbol"]:
        what = words.say("mismatch.of", what=what, symbol=found["symbol"])
    where = words.say(f"mismatch.where.{found['where'].replace(' ', '_')}") if found["where"] else ""
    return words.say("mismatch.said", what=what, stated=stated, recomputed=recomputed, where=where)


# What was checked in an agent's record: knowledge of the future, books that add up, and trades taken back.


FIRST_MISMATCHES: Final = 20
"""Mismatches on the agent's page; where there are more, pages of their own hold all of them."""

_REASON, _SYMBOLS = 400, 5


@dataclass(frozen=True, slots=True)
class LookaheadLine:
    """One judge's check: its glyph, its word, and its reason."""

    judge: str
    glyph: str
    word: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChecksView:
    """The section: three answers, each with what it rests on."""

    lookahead: str
    lookahead_lines: tuple[LookaheadLine, ...]
    reliability: str
    judged_reliability: str
    mismatches: tuple[MismatchRow, ...]
    total: int
    thrash: str


def checks_view(book: ModelBook, found: tuple[MismatchRow, ...]) -> ChecksView:
    """The section of one agent; ``found`` are all its mismatches."""
    usable = [one for one in book.grades if one.state == "ok"]
    return ChecksView(
        lookahead=book.to(book.one("season.lookahead"), _lookahead(book, usable)),
        lookahead_lines=tuple(_line(book, one) for one in usable if one.lookahead is not None),
        reliability=_reliability(book, len(found)),
        judged_reliability=_judged(book, usable),
        mismatches=found[:FIRST_MISMATCHES],
        total=len(found),
        thrash=_thrash(book, usable),
    )


def _lookahead(book: ModelBook, usable: list[SeasonGradeView]) -> str:
    checked = [one for one in usable if one.lookahead is not None]
    failed = sum(one.lookahead != "pass" for one in checked)
    rule = book.say("lookahead.elsewhere" if book.run.source else "lookahead.rule")
    if not checked:
        return f"{rule} {book.say('lookahead.nobody')}"
    key, count = "lookahead.found" if failed else "lookahead.clear", book.words.few(len(checked))
    return f"{rule} {book.say(key, failed=failed, n=len(checked), count=count)}"


def _line(book: ModelBook, one: SeasonGradeView) -> LookaheadLine:
    passed = one.lookahead == "pass"
    return LookaheadLine(
        judge=clean(one.judge, 60),
        glyph="supported" if passed else "contradicted",
        word=book.words.word("lookahead_word", one.lookahead or ""),
        reason=clean(one.lookahead_reason, _REASON),
    )


def _reliability(book: ModelBook, found: int) -> str:
    item = book.one("season.reliability")
    if item is None:
        return book.say("reliability.listed", n=found) if found else book.say("reliability.unchecked")
    if item.value is None:
        return book.say("reliability.none", why=book.words.state(item))
    value = book.words.number(item.value, 1)
    failed = _failed(item)
    if not failed:
        return book.to(item, book.say("reliability.clear", value=value, n=item.n))
    return book.to(item, book.say("reliability.answer", value=value, n=item.n, failed=failed))


def _failed(item: Measurement) -> int:
    """How many checks do not reconcile, from the score: it is 100 times the share that does."""
    return round(item.n * (1.0 - (item.value or 0.0) / 100.0))


def _judged(book: ModelBook, usable: list[SeasonGradeView]) -> str:
    points = [one.data_reliability for one in usable if one.data_reliability is not None]
    if not points:
        return ""
    return book.say("reliability.judged", points=tuple(book.words.number(one, 0) for one in sorted(points)))


def _thrash(book: ModelBook, usable: list[SeasonGradeView]) -> str:
    item = book.one("season.thrash")
    grades = [one.reasoning[TEMPORAL] for one in usable if TEMPORAL in one.reasoning]
    ends = dict(zip(("low", "high"), map(book.words.points, (min(grades), max(grades))), strict=True)) if grades else {}
    beside = book.say("thrash.beside", **ends) if grades else ""
    if item is None:
        said = book.say("thrash.uncounted")
    elif item.value is None:
        said = book.say("thrash.none", why=book.words.state(item))
    elif item.detail.get("trades") == 0:
        return book.say("thrash.no_trade")
    else:
        said = book.say("thrash.answer", n=round(item.value))
    detail = {} if item is None or item.value is None else item.detail
    within, counts = detail.get("within"), detail.get("by_symbol")
    window = book.say("thrash.within", n=within) if isinstance(within, int) else ""
    names = ""
    if isinstance(counts, dict) and counts:
        most = tuple(f"{clean(name, 40)} {book.words.count(n)}" for name, n in list(counts.items())[:_SYMBOLS])
        names = book.say("thrash.by_symbol", symbols=most)
    return book.to(item, " ".join(filter(None, (said, window, names, beside))))


# What an agent earned: one path against the baselines, its falls, and its difference to equal weight.
#
# Returns and paths are facts and are shown whatever may be claimed. That one of them is better is a claim, and is not
# made here.


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


Axis = Literal["reasoning", "evidence"]
_AXES: Final[tuple[Axis, ...]] = ("reasoning", "evidence")
_VERDICT, _SUMMARY, _MODEL_GRADED_REASON = 400, 1_600, 300


@dataclass(frozen=True, slots=True)
class SaidView:
    """What one judge said in words, or why there is no grade; all of it is hostile until the template escapes it."""

    judge: str
    verdict: str
    summary: str
    missing: str


@dataclass(frozen=True, slots=True)
class GradedView:
    """The section: both figures with one table, a table of axes by judge, lowered parts, and the judges' words."""

    answer: str
    figures: tuple[Figure, ...]
    parts: Table | None
    axes: Table
    capped: tuple[str, ...]
    said: tuple[SaidView, ...]


def graded_view(book: ModelBook) -> GradedView:
    """The section of one agent."""
    usable = [one for one in book.grades if one.state == "ok"]
    return GradedView(
        answer=_model_graded_answer(book, usable),
        figures=tuple(_model_graded_figure(book, axis, usable) for axis in _AXES) if usable else (),
        parts=_parts_table(book, usable) if usable else None,
        axes=_axes_table(book),
        capped=tuple(_capped(book, usable)),
        said=tuple(_said(book, one) for one in book.grades),
    )


def part_title(book: ModelBook, part: SubComponent) -> str:
    """The title of a part in the language of the page; that of the plan where it is not translated."""
    known = book.words.catalogue.texts.get(f"model.part.{part.name}")
    return clean(part.title, 80) if known is None else known


def _model_graded_answer(book: ModelBook, usable: Sequence[SeasonGradeView]) -> str:
    if not usable:
        return book.say("graded.none")
    said = book.say("graded.single")
    if len(usable) > 1:
        said = book.say("graded.answer", count=book.words.few(len(usable)))
    left = [part_title(book, part) for part in book.run.scoring.not_applicable]
    if not left:
        return said
    return f"{said} {book.say('graded.not_applicable', parts=book.words.catalogue.names(left))}"


def _parts(book: ModelBook, axis: Axis) -> tuple[SubComponent, ...]:
    return book.run.scoring.reasoning if axis == "reasoning" else book.run.scoring.evidence


def _points(one: SeasonGradeView, axis: Axis) -> Mapping[str, float]:
    return one.reasoning if axis == "reasoning" else one.evidence


def _model_graded_figure(book: ModelBook, axis: Axis, usable: Sequence[SeasonGradeView]) -> Figure:
    words, plan = book.words, book.run.scoring
    rows = [_row(book, part, axis, usable) for part in _parts(book, axis)]
    bands = (words.term("claim.band", "weak"), words.term("claim.band", "mixed"), words.term("claim.band", "strong"))
    title = words.say(f"graded.title.{axis}", count=words.few(len(rows)))
    open_rows = sum(row.straddles for row in rows)
    desc = words.say("graded.desc", n=len(rows), contested=open_rows)
    scale = PartAxis(plan.bands.mixed, plan.bands.strong, bands)
    wide, narrow = part_figure(f"parts-{axis}", rows, scale, title, desc)
    judges = [
        (book.lookup.judge_place(one.judge), clean(one.judge, 60), _model_graded_judged(book, axis, one))
        for one in usable
    ]
    return Figure(title, "", wide, narrow, tuple(JudgeWords(at, *rest) for at, *rest in judges if at is not None))


def _model_graded_judged(book: ModelBook, axis: Axis, one: SeasonGradeView) -> str:
    """What one judge gave each part of an axis."""
    return ", ".join(f"{part_title(book, part)} {_cell(book, one, axis, part.name)}" for part in _parts(book, axis))


def _row(book: ModelBook, part: SubComponent, axis: Axis, usable: Sequence[SeasonGradeView]) -> PartRow:
    graded = [one for one in usable if part.name in _points(one, axis)]
    points = [_points(one, axis)[part.name] for one in graded]
    plan = book.run.scoring
    given = [(one.capped[part.name], _points(one, axis)[part.name]) for one in graded if part.name in one.capped]
    return PartRow(
        title=part_title(book, part),
        weight=_weight(book, part),
        points=tuple(points),
        straddles=len({band(one, plan=plan) for one in points}) > 1,
        given=tuple(given),
        judges=tuple(book.lookup.judge_place(one.judge) for one in graded),
    )


def _parts_table(book: ModelBook, usable: Sequence[SeasonGradeView]) -> Table:
    """Points of every judge, with what a judge gave in brackets where the ledger lowered it."""
    rows = []
    for axis in _AXES:
        for part in _parts(book, axis):
            cells = [book.to_grade(one.judge, _cell(book, one, axis, part.name)) for one in usable]
            rows.append(
                (
                    part_title(book, part),
                    book.words.number(part.weight, 0 if part.weight == round(part.weight) else 1),
                    *cells,
                )
            )
    heads = (book.say("graded.part"), book.say("graded.weight"), *(clean(g.judge, 40) for g in usable))
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))))


def _weight(book: ModelBook, part: SubComponent) -> str:
    return book.words.number(part.weight, 0 if part.weight == round(part.weight) else 1)


def _cell(book: ModelBook, one: SeasonGradeView, axis: Axis, part: str) -> str:
    points = _points(one, axis).get(part)
    if points is None:
        return book.say("graded.not_graded")
    written = book.words.number(points, 0)
    if part not in one.capped:
        return written
    return f"{written} ({book.say('graded.given', points=book.words.number(one.capped[part], 0))})"


def _axes_table(book: ModelBook) -> Table:
    """A row for each judge: its composite, the axes and the outcome."""
    words, rows = book.words, []
    shown = book.run.decided.place(book.agent.name).shown
    usable = [one for one in book.grades if one.composite is not None]
    for one in book.grades:
        if one.state != "ok":
            why = words.word("reply", one.state)
            rows.append((clean(one.judge, 60), *([why] * 5)))
            continue
        axes = [_or_none(book, one.axes.get(name)) for name in ("reasoning", "evidence", "process")]
        outcome = words.term("state", one.outcome_state) if one.outcome is None else _or_none(book, one.outcome)
        composite = _or_none(book, one.composite)
        if not (shown or len(usable) > 1):
            composite = words("frame.withheld")  # of a single judge it is the total
        given = (book.to_grade(one.judge, cell) for cell in (composite, *axes, outcome))
        rows.append((clean(one.judge, 60), *given))
    names = ("judge", "composite", "reasoning", "evidence", "process", "outcome")
    return Table(tuple(words.say(f"graded.head.{name}") for name in names), tuple(rows), frozenset(range(1, 6)))


def _or_none(book: ModelBook, value: float | None) -> str:
    return book.say("graded.not_graded") if value is None else book.words.number(value, 1)


def _capped(book: ModelBook, usable: Sequence[SeasonGradeView]) -> list[str]:
    """A sentence for each part that the numeric ledger lowered."""
    found = []
    for part in book.run.scoring.evidence:
        for one in usable:
            if part.name not in one.capped or part.name not in one.evidence:
                continue
            given, counted = one.capped[part.name], one.evidence[part.name]
            values = {"given": book.words.number(given, 0), "counted": book.words.number(counted, 0)}
            names = {"part": part_title(book, part), "judge": clean(one.judge, 60)}
            found.append(book.say("graded.capped", **names, **values))
    return found


def _said(book: ModelBook, one: SeasonGradeView) -> SaidView:
    if one.state == "ok":
        return SaidView(clean(one.judge, 60), clean(one.verdict, _VERDICT), clean(one.summary, _SUMMARY), "")
    why = book.words.word("reply", one.state)
    reason = f"{why} ({clean(one.reason, _MODEL_GRADED_REASON)})" if one.reason else why
    return SaidView(clean(one.judge, 60), "", "", book.say("graded.missing", why=reason))
