"""Every measurement of a season as a row in one language: what of whom, its value, and the records it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from assaymark.records import Measurement
from assaymark.report.formats import clean
from assaymark.report.measured import MeasuredRow
from assaymark.report.season.lookup import SeasonLookup
from assaymark.report.season.said import baseline_words, state_words, value_words
from assaymark.report.season.words import Words
from assaymark.report.trail.refs import Ref

_BOOKS: Final = ("season.return", "season.drawdown", "season.excess", "season.reliability", "datasheet.gate")
_DECIDED: Final = ("season.decisions", "season.thrash", "season.ledger")
_ONE_JUDGE: Final = ("season.composite", "season.invalid", "season.judge_noise", "season.author_probe")


def worded_rows(book: SeasonLookup, rows: Sequence[MeasuredRow], words: Words, up: str = "") -> tuple[MeasuredRow, ...]:
    """Rows of `measured_pages` in a language; ``up`` leads to the folder of the site, where records lie."""
    return tuple(_row(book, row, book.by_id[row.id], words, up) for row in rows)


def _row(book: SeasonLookup, row: MeasuredRow, item: Measurement, words: Words, up: str) -> MeasuredRow:
    title = words.term("measure", item.name.removeprefix("season."))
    hidden = book.hidden(item)
    pair = sorted(clean(item.labels[key], 80) for key in ("high", "low") if hidden and key in item.labels)
    left_out = ("dimension", "high", "low") if pair else ("dimension",)
    about = "; ".join(
        [
            *(
                f"{words.term('measured.label', key)} {_label(key, item.labels[key], words)}"
                for key in sorted(item.labels)
                if key not in left_out
            ),
            *([words.catalogue.names(pair)] if pair else []),
        ]
    )
    return replace(
        row,
        group=words.term("measured.group", row.group),
        title=title[:1].upper() + title[1:],
        about=about or words("measured.whole"),
        value=range_words(book, item, words) or words.term("state", hidden) if hidden else _value(item, words),
        interval="" if hidden else _interval(item, words),
        n=f"{words.count(item.n)} {words.of(item.n, item.n_of)}".strip(),
        rests=tuple(Ref(ref.words, up + ref.href) for ref in _rests(book, item, words)),
    )


def range_words(book: SeasonLookup, item: Measurement, words: Words) -> str:
    """The range that stands for a value of an agent that shares its tier; empty where there is none."""
    found = book.spread(item)
    return "" if found is None else words("measured.spread", n=book.graded(item), low=found[0], high=found[1])


def _label(key: str, value: str, words: Words) -> str:
    if key == "baseline":
        return baseline_words(value, words)
    if key == "of" and value == "panel":
        return words("measured.panel")
    return (
        words.term(f"measured.{key}", value)
        if key == "part"
        else words.term("axis", value)
        if key == "axis"
        else clean(value, 80)
    )


def _value(item: Measurement, words: Words) -> str:
    if item.value is None:
        return state_words(item, words)
    unit = words.term("measured.unit", item.unit) if item.unit not in ("", "share") else ""
    return f"{value_words(item, item.value, words)} {unit}".rstrip()


def _interval(item: Measurement, words: Words) -> str:
    if item.low is None or item.high is None:
        return words("state.no interval")
    first, last = (value_words(item, end, words) for end in (item.low, item.high))
    ends = words("places.range", first=first, last=last)
    return ends if item.level is None else f"{ends}, {words.percent(item.level, 0)}"


def _rests(book: SeasonLookup, item: Measurement, words: Words) -> Iterator[Ref]:
    """The first record of each judge, or of the agent, that it was computed from; none of books and datasheets."""
    agent = item.labels.get("agent") or item.labels.get("of", "")
    if item.name in _BOOKS:
        return
    if item.name in _DECIDED:
        found = [("decisions", agent, "")]
    else:
        kind = "guesses" if item.name == "season.author_probe" else "grades"
        own, judges = item.labels.get("judge", ""), [one.name for one in book.run.judges]
        if item.name in _ONE_JUDGE:
            judges = [own]
        elif item.name == "season.without":
            judges = [name for name in judges if name != own]
        found = [(kind, judge, agent if agent in book.agents else "") for judge in judges]
    for kind, who, about in found:
        place = book.run.records.get((kind, who, about))
        if place is not None:
            yield Ref(words(f"measured.{kind}", who=clean(who, 60)), place)
