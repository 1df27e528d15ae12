"""Rows of every measurement of a season, by kind and name, on pages that are the same in every language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from assaymark.records import Measurement
from assaymark.report.blocks import Linked, Styled
from assaymark.report.measurements import MeasuredRow, rows_of
from assaymark.report.page import in_parts, paged_by
from assaymark.report.season.levels import baseline_words, state_words, value_words
from assaymark.report.season.words import Words
from assaymark.text import clean

if TYPE_CHECKING:
    from assaymark.report.season.index import SeasonLookup


# Every measurement of a season as a row in one language: what of whom, its value, and the records it rests on.


_BOOKS: Final = (
    "season.return",
    "season.drawdown",
    "season.excess",
    "season.reliability",
    "datasheet.gate",
    "human.sample",
    "human.agreement",
    "human.labels",
    "human.contrast",
)
_DECIDED: Final = ("season.decisions", "season.thrash", "season.ledger")
_ONE_JUDGE: Final = ("season.composite", "season.invalid", "season.judge_noise", "season.author_probe", "human.judge")


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
        method=Styled(row.method, "en"),
        n=f"{words.count(item.n)} {words.of(item.n, item.n_of)}".strip(),
        rests=tuple(Linked(ref, up + ref.href) for ref in _rests(book, item, words)),
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


def _rests(book: SeasonLookup, item: Measurement, words: Words) -> Iterator[Linked]:
    """The first record of each judge, or of the agent, it was computed from; none of books, datasheets, people."""
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
            yield Linked(words(f"measured.{kind}", who=clean(who, 60)), place)


ROWS: Final = 500
"""Rows on one page: so many in every language, so that a page has its translation."""

_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "scores": ("total", "composite", "axis", "outcome", "efficiency", "without"),
    "orders": (
        "contrast",
        "lofo.contrast",
        "recusal.contrast",
        "length.contrast",
        "judges.contrast",
        "judge.own_family",
        "judge.length",
        "order.autocorrelation",
        "order.detectable",
        "panel.families",
        "panel.alpha",
        "panel.generalizability",
        "panel.variance",
        "kappa",
        "noise",
        "judge_noise",
    ),
    "judges": (
        "self_preference",
        "verbosity",
        "alone",
        "author_probe",
        "invalid",
        "human.judge",
        "human.agreement",
        "human.sample",
        "human.labels",
        "human.contrast",
    ),
    "records": ("ledger", "reliability", "lookahead", "thrash", "decisions"),
    "books": ("return", "drawdown", "excess"),
}
"""What the buttons above the rows show together, in the order of the rows."""


def measured_pages(
    measurements: Iterable[Measurement], hidden: Callable[[Measurement], str] = lambda _: ""
) -> Mapping[str, tuple[MeasuredRow, ...]]:
    """The rows of every page, by its name; at least one page, which may be empty.

    Kinds and groups go by their names: `worded_rows` puts them into a language. ``hidden`` is why a value is not shown.

    >>> list(measured_pages(()))
    ['measurements.html']
    """
    found = {_full(name): group for group, kinds in _GROUPS.items() for name in kinds}
    groups = {**found, "datasheet": "judges"}
    rows = rows_of(measurements, {name: name for name in found}, groups=groups, hidden=hidden)
    return in_parts("measurements", paged_by(rows, lambda _: 1, ROWS))


def _full(name: str) -> str:
    """The name of a measurement: those of orders are the same as in studies."""
    return name if "." in name or name == "contrast" else f"season.{name}"
