"""What the judges graded of an agent: every part of both axes, what the fact check lowered, and their own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from assaymark.judging.season.plans import SubComponent
from assaymark.judging.season.scoring import band
from assaymark.report.blocks import (
    Beside,
    Block,
    Facts,
    Figure,
    Group,
    Inline,
    Items,
    Section,
    Styled,
    Table,
    Text,
    bold,
    spaced,
    written,
)
from assaymark.report.charts.intervals import JudgeWords
from assaymark.report.season.index import ModelBook
from assaymark.report.season.inputs import SeasonGradeView
from assaymark.report.season.strip import PartAxis, PartRow, part_figure
from assaymark.text import clean

Axis = Literal["reasoning", "evidence"]
_AXES: Final[tuple[Axis, ...]] = ("reasoning", "evidence")
_VERDICT, _SUMMARY, _WHY = 400, 1_600, 300


def graded_section(book: ModelBook) -> Section:
    """Both axes part by part; folded below the same as a table, points by judge, and what the judges wrote."""
    usable = [one for one in book.grades if one.state == "ok"]
    blocks: list[Block] = []
    below: list[Block] = []
    if usable:
        blocks.append(Beside(tuple((_figure(book, axis, usable),) for axis in _AXES)))
        left = [book.words.part(part) for part in book.run.scoring.not_applicable]
        if left:
            below.append(Text(book.say("graded.not_applicable", parts=book.words.catalogue.names(left))))
        below.append(_parts_table(book, usable))
        if lowered := tuple(_capped(book, usable)):
            below += [Text(book.say("graded.ring")), Group(book.say("graded.capped_head"), (Items(lowered),))]
        below.append(Group(book.say("graded.axes"), (_axes_table(book),)))
    if book.grades:
        below.append(Group(book.say("graded.words"), (Facts(tuple(_said(book, one) for one in book.grades)),)))
        blocks.append(Group(book.say("graded.table"), tuple(below), folded="closed"))
    return Section("graded", book.say("graded.section"), _answer(book, usable), tuple(blocks))


def _answer(book: ModelBook, usable: Sequence[SeasonGradeView]) -> str:
    if not usable:
        return book.say("graded.none")
    if len(usable) > 1:
        return book.say("graded.answer", count=book.words.few(len(usable)))
    return book.say("graded.single")


def _parts(book: ModelBook, axis: Axis) -> tuple[SubComponent, ...]:
    return book.run.scoring.reasoning if axis == "reasoning" else book.run.scoring.evidence


def _points(one: SeasonGradeView, axis: Axis) -> Mapping[str, float]:
    return one.reasoning if axis == "reasoning" else one.evidence


def _figure(book: ModelBook, axis: Axis, usable: Sequence[SeasonGradeView]) -> Figure:
    words, plan = book.words, book.run.scoring
    parts = _parts(book, axis)
    rows = [_row(book, part, axis, usable) for part in parts]
    bands = (words.term("claim.band", "weak"), words.term("claim.band", "mixed"), words.term("claim.band", "strong"))
    title = words.say(f"graded.title.{axis}", count=words.few(len(rows)))
    desc = words.say("graded.desc", n=len(rows), contested=sum(row.straddles for row in rows))
    scale = PartAxis(plan.bands.mixed, plan.bands.strong, bands)
    wide, narrow = part_figure(f"parts-{axis}", rows, scale, title, desc)
    judges = []
    for one in usable:
        given = ", ".join(
            f"{row.title} {_cell(book, one, axis, part.name)}" for row, part in zip(rows, parts, strict=True)
        )
        if (at := book.lookup.judge_place(one.judge)) is not None:
            judges.append(JudgeWords(at, clean(one.judge, 60), given))
    return Figure(title, "", wide, narrow, tuple(judges), values=_parts_table(book, usable, (axis,)))


def _row(book: ModelBook, part: SubComponent, axis: Axis, usable: Sequence[SeasonGradeView]) -> PartRow:
    graded = [one for one in usable if part.name in _points(one, axis)]
    points = [_points(one, axis)[part.name] for one in graded]
    plan = book.run.scoring
    given = [(one.capped[part.name], _points(one, axis)[part.name]) for one in graded if part.name in one.capped]
    return PartRow(
        title=book.words.part(part),
        weight=_weight(book, part),
        points=tuple(points),
        straddles=len({band(one, plan=plan) for one in points}) > 1,
        given=tuple(given),
        judges=tuple(book.lookup.judge_place(one.judge) for one in graded),
    )


def _parts_table(book: ModelBook, usable: Sequence[SeasonGradeView], axes: Sequence[Axis] = _AXES) -> Table:
    """Points of every judge, with what a judge gave in brackets where the fact check lowered it."""
    rows: tuple[tuple[Inline, ...], ...] = tuple(
        (
            book.words.part(part),
            _weight(book, part),
            *(book.to_grade(one.judge, _cell(book, one, axis, part.name)) for one in usable),
        )
        for axis in axes
        for part in _parts(book, axis)
    )
    heads = (book.say("graded.part"), book.say("graded.weight"), *(clean(g.judge, 40) for g in usable))
    return Table(heads, rows, frozenset(range(1, len(heads))), "")


def _weight(book: ModelBook, part: SubComponent) -> str:
    return book.words.number(part.weight, 0 if part.weight == round(part.weight) else 1)


def _cell(book: ModelBook, one: SeasonGradeView, axis: Axis, part: str) -> str:
    points = _points(one, axis).get(part)
    if points is None:
        return book.say("graded.not_graded")
    shown = book.words.number(points, 0)
    if part not in one.capped:
        return shown
    return f"{shown} ({book.say('graded.given', points=book.words.number(one.capped[part], 0))})"


def _axes_table(book: ModelBook) -> Table:
    """A row for each judge: its composite, the axes and the outcome."""
    words, rows = book.words, list[tuple[Inline, ...]]()
    shown = book.run.decided.place(book.agent.name).shown
    usable = [one for one in book.grades if one.composite is not None]
    for one in book.grades:
        if one.state != "ok":
            rows.append((clean(one.judge, 60), *([words.word("reply", one.state)] * 5)))
            continue
        axes = [_or_none(book, one.axes.get(name)) for name in ("reasoning", "evidence", "process")]
        outcome = words.term("state", one.outcome_state) if one.outcome is None else _or_none(book, one.outcome)
        composite: str = Styled(words("frame.withheld"), "gap")  # of a single judge it is the total
        if shown or len(usable) > 1:
            composite = book.to_grade(one.judge, _or_none(book, one.composite))
        rows.append((clean(one.judge, 60), composite, *(book.to_grade(one.judge, cell) for cell in (*axes, outcome))))
    names = ("judge", "composite", "reasoning", "evidence", "process", "outcome")
    heads = tuple(words.say(f"graded.head.{name}") for name in names)
    return Table(heads, tuple(rows), frozenset(range(1, 6)), "")


def _or_none(book: ModelBook, value: float | None) -> str:
    return book.say("graded.not_graded") if value is None else book.words.number(value, 1)


def _capped(book: ModelBook, usable: Sequence[SeasonGradeView]) -> Iterator[str]:
    """A sentence for each part that the fact check lowered."""
    for part in book.run.scoring.evidence:
        for one in usable:
            if part.name in one.capped and part.name in one.evidence:
                given, counted = one.capped[part.name], one.evidence[part.name]
                values = {"given": book.words.number(given, 0), "counted": book.words.number(counted, 0)}
                names = {"part": book.words.part(part), "judge": clean(one.judge, 60)}
                yield book.say("graded.capped", **names, **values)


def _said(book: ModelBook, one: SeasonGradeView) -> tuple[str, Inline]:
    """A judge and what it said in words, or why there is no grade."""
    words, name = book.words, clean(one.judge, 60)
    if one.state != "ok":
        why = words.word("reply", one.state)
        return name, written(
            book.say("graded.missing", why=f"{why} ({clean(one.reason, _WHY)})" if one.reason else why)
        )
    verdict, summary = clean(one.verdict, _VERDICT), clean(one.summary, _SUMMARY)
    said = [bold(words.quoted(verdict))] if verdict else []
    return name, spaced((*said, *([written(words.quoted(summary))] if summary else [])), " ")
