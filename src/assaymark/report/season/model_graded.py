"""What the judges graded: every part of both axes, what the numeric ledger lowered, and the judges' own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.judging.season.plans import SubComponent
from assaymark.judging.season.scores import band
from assaymark.report.figures.judges import JudgeWords
from assaymark.report.formats import clean
from assaymark.report.season.inputs import SeasonGradeView
from assaymark.report.season.model_book import ModelBook
from assaymark.report.season.model_marks import PartAxis, PartRow, part_figure
from assaymark.report.tables import Figure, Table

Axis = Literal["reasoning", "evidence"]
_AXES: Final[tuple[Axis, ...]] = ("reasoning", "evidence")
_VERDICT, _SUMMARY, _REASON = 400, 1_600, 300


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
        answer=_answer(book, usable),
        figures=tuple(_figure(book, axis, usable) for axis in _AXES) if usable else (),
        parts=_parts_table(book, usable) if usable else None,
        axes=_axes_table(book),
        capped=tuple(_capped(book, usable)),
        said=tuple(_said(book, one) for one in book.grades),
    )


def part_title(book: ModelBook, part: SubComponent) -> str:
    """The title of a part in the language of the page; that of the plan where it is not translated."""
    known = book.words.catalogue.texts.get(f"model.part.{part.name}")
    return clean(part.title, 80) if known is None else known


def _answer(book: ModelBook, usable: Sequence[SeasonGradeView]) -> str:
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


def _figure(book: ModelBook, axis: Axis, usable: Sequence[SeasonGradeView]) -> Figure:
    words, plan = book.words, book.run.scoring
    rows = [_row(book, part, axis, usable) for part in _parts(book, axis)]
    bands = (words.term("claim.band", "weak"), words.term("claim.band", "mixed"), words.term("claim.band", "strong"))
    title = words.say(f"graded.title.{axis}", count=words.few(len(rows)))
    open_rows = sum(row.straddles for row in rows)
    desc = words.say("graded.desc", n=len(rows), contested=open_rows)
    scale = PartAxis(plan.bands.mixed, plan.bands.strong, bands)
    wide, narrow = part_figure(f"parts-{axis}", rows, scale, title, desc)
    judges = [(book.lookup.judge_place(one.judge), clean(one.judge, 60), _judged(book, axis, one)) for one in usable]
    return Figure(title, "", wide, narrow, tuple(JudgeWords(at, *rest) for at, *rest in judges if at is not None))


def _judged(book: ModelBook, axis: Axis, one: SeasonGradeView) -> str:
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
    reason = f"{why} ({clean(one.reason, _REASON)})" if one.reason else why
    return SaidView(clean(one.judge, 60), "", "", book.say("graded.missing", why=reason))
