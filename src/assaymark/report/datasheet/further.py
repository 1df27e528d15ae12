"""The other questions put to a judge: one text at a time, the same question again, the same instrument as before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.datasheet.figures import DotRow, axis_of, dots
from assaymark.report.datasheet.plots import Plot
from assaymark.report.datasheet.quantities import title_of
from assaymark.report.datasheet.reading import Opened, bounds, known
from assaymark.report.datasheet.wording import (
    about,
    interval_words,
    missing_words,
    n_words,
    share_words,
    value_words,
)
from assaymark.report.formats import clean, count, interval, listing, number, p_value, percent, signed, span
from assaymark.report.tables import Table

_OF: Final = re.compile(r"([^\[]+)(?:\[(.*)\])?", re.DOTALL)
_ROWS: Final = 12
_LESS: Final = ("different_subset", "delta=2", "delta=3", "delta=4")
_FLOOR: Final = ("What does it give for nothing?", "Mean score of texts without content")
_SLOPE: Final = ("What is a requirement worth?", "Score points per requirement met")
_LENGTH: Final = ("What is length alone worth?", "Score points per 100 tokens of filler")
_VERDICTS: Final = {
    "same instrument": "No shift was found",
    "shifted": "The judge has shifted",
    "not comparable": "The two datasheets cannot be compared",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A section with its answer, its figures, a table where there is no figure, and what has to be read with it."""

    id: str
    title: str
    answer: str
    plots: tuple[Plot, ...] = ()
    table: Table | None = None
    notes: tuple[str, ...] = ()


def pointwise_section(sheet: Opened) -> Section | None:
    """How a rubric judge scores nothing, what a requirement and mere length are worth to it; None if it was not asked.

    A datasheet from before length was asked about says nothing of it.
    """
    names = ("vacuum_score", "slope", "order", "verbosity")
    floors, slopes, orders, lengths = (list(sheet.every(f"point.{name}")) for name in names)
    if not any((floors, slopes, orders, lengths)):
        return None
    plots = tuple(
        plot
        for plot in (
            _point_plot(sheet, "floor", _FLOOR, floors, None),
            _point_plot(sheet, "slope", _SLOPE, slopes, 0.0),
            _point_plot(sheet, "verbosity", _LENGTH, lengths, 0.0),
        )
        if plot is not None
    )
    rows = [
        (title_of(m.name), _dimension(m), sheet.to(m, value_words(m)), interval_words(m), n_words(m)) for m in orders
    ]
    heads = ("Quantity", "Dimension", "Estimate", "Interval", "n")
    return Section(
        id="pointwise",
        title="How does it score one text at a time?",
        answer=_point_answer(floors, slopes, lengths),
        plots=plots,
        table=Table(heads, tuple(rows), frozenset({2, 3, 4})) if rows else None,
        notes=(*_order_notes(orders), *_length_notes(lengths)),
    )


def repeat_section(sheet: Opened) -> Section | None:
    """Whether the same question gets the same answer; None where the datasheet has no such measurement."""
    found = sheet.one("repeat.stability")
    if found is None:
        return None
    title = "Does it answer alike when asked again?"
    if found.value is None:
        return Section("repeat", title, missing_words(found, "repeat stability"))
    kappa = found.detail.get("kappa")
    notes = [f"Over {n_words(found)}: {clean(found.method, 200)}."]
    if isinstance(kappa, (int, float)):
        low, high = found.detail.get("kappa_low"), found.detail.get("kappa_high")
        ends = (float(low), float(high)) if isinstance(low, (int, float)) and isinstance(high, (int, float)) else None
        said = interval(float(kappa), *(ends or (None, None)))
        notes.append(f"Beyond chance, unweighted κ between trials is {said}. A judge that always ties is stable, too.")
    else:
        notes.append("Agreement beyond chance is not defined here. A judge that always ties is stable, too.")
    answer = f"Two trials of one question gave the same outcome in {share_words(found)} of cases."
    return Section("repeat", title, answer, notes=tuple(notes))


def drift_section(sheet: Opened) -> Section | None:
    """Old against new; None where no comparison was made."""
    shifts, verdict = list(sheet.every("drift")), sheet.one("drift.verdict")
    if not shifts and verdict is None:
        return None
    moved = _moved(verdict)
    told = _drawn(shifts, moved)
    rows = [_drift_row(m, moved) for m in told]
    plots: tuple[Plot, ...] = ()
    if any(row.value is not None for row in rows):
        plots = (
            Plot(
                name="drift",
                title="How far has each quantity moved?",
                caption="New minus old with its interval. Filled: shifted after Holm’s adjustment.",
                desc="; ".join(f"{row.title}: {row.text}" for row in rows),
                draw=lambda _, width: dots(rows, axis_of(rows, line=0.0), width),
                table=Table(
                    ("Quantity", "Old", "New", "New minus old", "Interval", "p, Holm", "n"),
                    tuple(_drift_cells(sheet, m) for m in shifts),
                    frozenset(range(1, 7)),
                ),
            ),
        )
    left = f"The figure draws {len(told)} of {len(shifts)}: all that shifted come first; the table has the rest."
    notes = (left,) if len(told) < len(shifts) else ()
    return Section("drift", "Is it still the same instrument?", _drift_answer(verdict, moved), plots, notes=notes)


def of_words(of: str) -> str:
    """What a drift is of, in words.

    >>> of_words("sensitivity[delta=1]"), of_words("dark_current[prompt=strict]"), of_words("odd[")
    ('Sensitivity, one requirement apart', 'Dark current, strict about ties', 'odd[')
    """
    parts = _OF.fullmatch(of)
    if parts is None or ("[" in of and parts[2] is None):
        return clean(of, 80)
    labels = dict(pair.split("=", 1) for pair in (parts[2] or "").split(",") if "=" in pair)
    said = about(Measurement(name=parts[1], labels=labels, value=None, n=0, n_of="", method=""))
    return f"{title_of(parts[1])}, {said}" if said else title_of(parts[1])


# --- parts ----------------------------------------------------------------------------------------------------------


def _point_plot(
    sheet: Opened, name: str, words: tuple[str, str], found: Sequence[Measurement], at_line: float | None
) -> Plot | None:
    """What was measured by dimension, under a title and with a caption."""
    if not any(known(m) for m in found):
        return None
    rows = [DotRow(_dimension(m), m.value, bounds(m), _value_and_ends(m)) for m in found]
    cells = [(_dimension(m), sheet.to(m, value_words(m)), interval_words(m), n_words(m)) for m in found]
    title, caption = words
    return Plot(
        name=name,
        title=title,
        caption=f"{caption}, with intervals over tasks.",
        desc="; ".join(f"{row.title}: {row.text}" for row in rows),
        draw=lambda _, width: dots(rows, axis_of(rows, line=at_line), width),
        table=Table(("Dimension", "Estimate", "Interval", "n"), tuple(cells), frozenset({1, 2, 3})),
    )


def _value_and_ends(measurement: Measurement) -> str:
    if measurement.value is None:
        return value_words(measurement)
    ends = bounds(measurement)
    return value_words(measurement) + (f" ({span(*ends)})" if ends else "")


def _point_answer(floors: Sequence[Measurement], slopes: Sequence[Measurement], lengths: Sequence[Measurement]) -> str:
    parts = []
    if (floor := _range(floors)) is not None:
        parts.append(f"a text without content gets {floor} points")
    if (slope := _range(slopes)) is not None:
        parts.append(f"a requirement met is worth {slope} points")
    if (length := _range(lengths)) is not None:
        parts.append(f"100 tokens that say nothing are worth {length} points")
    said = listing(parts)
    return f"By dimension, {said}." if said else "Neither its floor, nor its slope, nor its verbosity is defined."


def _range(found: Sequence[Measurement]) -> str | None:
    values = [m.value for m in found if m.value is not None]
    if not values:
        return None
    return number(values[0]) if len(values) == 1 else span(min(values), max(values))


def _order_notes(orders: Sequence[Measurement]) -> list[str]:
    told = [f"{_dimension(m)} {percent(m.value)}" for m in orders if m.value is not None]
    if not told:
        return []
    return [f"Neighbouring steps in the right order, ties half: {', '.join(told)}. Chance is 50 %."]


def _length_notes(lengths: Sequence[Measurement]) -> list[str]:
    """How to read the worth of length, and in how many pairs of texts none could show."""
    found = [m for m in lengths if m.value is not None]
    if not found:
        return [f"What length alone is worth: {missing_words(lengths[0], 'it')}"] if lengths else []
    notes = ["Length alone: 0 is blind to it; 0.25 pays a quarter of a point for 100 tokens of nothing."]
    alone = [m for m in found if m.labels.get("dimension") != AGGREGATE]
    stuck, pairs = (sum(n for m in alone if isinstance(n := m.detail.get(key), int)) for key in ("at_ends", "pairs"))
    if stuck:
        notes.append(
            f"In {count(stuck)} of {count(pairs)} comparisons, over all dimensions, both texts stand at one end of the "
            "scale: no worth of length can show there, and the estimate is too close to 0."
        )
    return notes


def _dimension(measurement: Measurement) -> str:
    text = clean(measurement.labels.get("dimension", "score").replace("_", " "), 60)
    return text[:1].upper() + text[1:]


def _moved(verdict: Measurement | None) -> frozenset[str]:
    listed = verdict.detail.get("shifted", []) if verdict is not None else []
    return frozenset(str(name) for name in listed) if isinstance(listed, (list, tuple)) else frozenset()


def _drawn(shifts: Sequence[Measurement], moved: frozenset[str]) -> list[Measurement]:
    """What the figure has room for: what shifted, then the base arm on texts that differ in wording only."""

    def rank(measurement: Measurement) -> tuple[bool, bool, bool]:
        of = measurement.labels.get("of", "")
        return of not in moved, "prompt=" in of, any(word in of for word in _LESS)

    chosen = sorted(shifts, key=rank)[:_ROWS]
    return [m for m in shifts if m in chosen]


def _drift_row(measurement: Measurement, moved: frozenset[str]) -> DotRow:
    of = measurement.labels.get("of", "")
    ends = bounds(measurement)
    old, new = (_part(measurement, key) for key in ("old", "new"))
    change = value_words(measurement) + (f" ({span(*ends, 3)})" if ends else "")
    return DotRow(of_words(of), measurement.value, ends, f"{old} to {new}, {change}", of not in moved)


def _drift_cells(sheet: Opened, measurement: Measurement) -> tuple[str, ...]:
    p = measurement.detail.get("p_holm")
    return (
        of_words(measurement.labels.get("of", "")),
        _part(measurement, "old"),
        _part(measurement, "new"),
        value_words(measurement) if measurement.value is None else sheet.to(measurement, signed(measurement.value, 3)),
        interval_words(measurement),
        p_value(float(p)).removeprefix("p ").removeprefix("= ") if isinstance(p, (int, float)) else "not given",
        n_words(measurement),
    )


def _part(measurement: Measurement, key: str) -> str:
    value = measurement.detail.get(key)
    return number(float(value), 3) if isinstance(value, (int, float)) else "not given"


def _drift_answer(verdict: Measurement | None, moved: frozenset[str]) -> str:
    if verdict is None:
        return "No verdict was given on the differences below."
    word = str(verdict.detail.get("verdict", "")) or clean(verdict.state, 120)
    if word == "not comparable":
        return f"{_VERDICTS[word]}: {clean(verdict.state, 200).removeprefix('not measured: not comparable, ')}."
    alpha, tests = verdict.detail.get("alpha"), verdict.detail.get("tests")
    size = f"{count(tests)} quantities compared" if isinstance(tests, int) else "the quantities compared"
    head = _VERDICTS.get(word, clean(word, 60).capitalize())
    level = f", level {alpha:g}" if isinstance(alpha, (int, float)) else ""
    if word == "shifted":
        names = sorted(of_words(of) for of in moved)
        more = f" and {count(len(names) - 4)} more" if len(names) > 4 else ""
        return f"{head} in {'; '.join(names[:4])}{more} ({size}{level})."
    widest = verdict.detail.get("widest")
    still = f" A shift of up to {number(float(widest), 2)} is still possible." if isinstance(widest, float) else ""
    return f"{head} ({size}{level}).{still}"
