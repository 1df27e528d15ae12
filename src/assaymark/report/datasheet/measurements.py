"""Every measurement of a datasheet as a row, with what was planted where the judge is a reference."""

from __future__ import annotations

from collections.abc import Mapping

from assaymark.metrology.datasheet import STRICT
from assaymark.records import Measurement
from assaymark.report.blocks import Inline, Row, Section, Styled, Table, notes, row_filters, small, spaced
from assaymark.report.datasheet.reading import GROUPS, DatasheetIndex, bounds, group_of, rank_of, row_anchor, title_of
from assaymark.report.datasheet.wording import about, interval_words, n_words, value_words
from assaymark.report.records.texts import Rests
from assaymark.report.text import state_words
from assaymark.text import clean, count, number, percent, span

_KEY = ("dark_current", "delta0.raw", "delta0.stable", "delta0.positional", "delta0.one_sided", "sensitivity",
        "threshold", "filler.preference", "criterion.shift", "pair.invalid_share")  # fmt: skip


def every_table(sheet: DatasheetIndex, rests: Rests = lambda _: ()) -> Table:
    """All measurements by kind, arm and step; undefined ones are named, none is left out.

    ``rests`` gives the answers that a measurement was computed from.
    """
    planted, rows, leads = sheet.sheet.planted or {}, [], False
    for m in sorted(sheet.rows, key=_order):
        state, _, why = state_words(m).partition(": ") if m.value is None else ("", "", "")
        value, found = planted.get(m.id), rests(m)
        outside = " (outside)" if value is not None and bounds(m) and not _inside(m, value) else ""
        leads = leads or bool(found)
        rows.append(
            Row(
                (
                    (title_of(m.name, log=sheet.is_log), small(about(m, log=sheet.is_log))),
                    Styled(state, "un") if state else value_words(m),
                    *(("" if value is None else f"{number(value, 3)}{outside}",) if planted else ()),
                    Styled(why or "no reason given", "un") if state else interval_words(m),
                    n_words(m),
                    (f"{_method(sheet, m)} ", spaced(found)) if found else _method(sheet, m),
                ),
                row_anchor(m),
                group_of(m.name),
            )
        )
    words = {**GROUPS, **({"equal": "Pairs", "vacuum": "Null pairs"} if sheet.is_log else {})}
    method = "Method, and what it rests on" if leads else "Method"
    return Table(
        ("Quantity", "Estimate", *(("Planted",) if planted else ()), level_words(sheet), "n", method),
        tuple(rows),
        frozenset((1, 2)) if planted else frozenset((1,)),
        summary="",
        stacked=True,
        id="every-rows",
        style="pl" if planted else "",
        filters=row_filters([row.key for row in rows], words),
        what="measurements",
    )


def level_words(sheet: DatasheetIndex) -> str:
    """The level of the intervals, where they share one.

    >>> from assaymark.metrology.datasheet import Datasheet
    >>> empty = Datasheet(judge="j", measurements=(), sketch=(), calls={}, tasks=0, source="run")
    >>> level_words(DatasheetIndex.of(empty))
    'Interval'
    """
    levels = {m.level for m in sheet.sheet.measurements if m.level is not None}
    return f"{percent(levels.pop())} interval" if len(levels) == 1 else "Interval"


def planted_section(sheet: DatasheetIndex) -> Section | None:
    """How the planted values compare with their intervals; None for a judge that nothing was planted in."""
    planted = sheet.sheet.planted
    if not planted:
        return None
    pairs = [(m, planted[m.id]) for m in sheet.sheet.measurements if m.id in planted]
    read = [(m, value) for m, value in pairs if bounds(m) is not None]
    chosen = [(m, value) for m, value in pairs if _is_key(sheet, m)]
    chosen += [(m, value) for m, value in read if not _inside(m, value) and (m, value) not in chosen]
    rows: list[tuple[Inline, ...]] = [
        (
            ", ".join(filter(None, (title_of(m.name), about(m)))),
            number(value, 3),
            sheet.to(m, value_words(m)),
            interval_words(m) if m.value is not None else "none",
            _inside_words(m, value),
        )
        for m, value in sorted(chosen, key=lambda pair: _order(pair[0]))
    ]
    said = [
        f"{count(len(pairs))} planted values are in the table of every measurement; here the main ones and all outside."
    ]
    unmatched = sorted(key for key in planted if key not in {m.id for m in sheet.sheet.measurements})
    rows += [(clean(key, 100), number(planted[key], 3), "not measured", "none", "not read") for key in unmatched[:20]]
    if unmatched[20:]:
        said.append(f"{count(len(unmatched) - 20)} more planted values have no measurement.")
    heads = ("Quantity", "Planted", "Measured", "Interval", "Inside")
    table = Table(heads, tuple(rows), frozenset({1, 2, 3}), "")
    return Section("planted", "Planted and measured values", planted_answer(sheet), (table, *notes(said)))


def planted_answer(sheet: DatasheetIndex) -> str:
    """How many planted values are inside the intervals; empty where nothing was planted."""
    planted = sheet.sheet.planted or {}
    read = [(m, planted[m.id]) for m in sheet.sheet.measurements if m.id in planted and bounds(m) is not None]
    if not read:
        return "No planted value has a measured interval." if planted else ""
    inside = sum(_inside(m, value) for m, value in read)
    return (
        f"{count(inside)} of {count(len(read))} planted values lie inside the measured interval; at 95 % about one of "
        "twenty is expected outside."
    )


# --- parts ----------------------------------------------------------------------------------------------------------


def _order(measurement: Measurement) -> tuple[object, ...]:
    labels = measurement.labels
    delta = labels.get("delta", "")
    step = float(delta) if delta.replace(".", "", 1).isdigit() else 0.0
    strict = labels.get("prompt") == STRICT
    return (
        strict,
        rank_of(measurement.name),
        labels.get("condition", "") != "same_subset",
        "variant" in labels,
        step,
        measurement.id,
    )


def _method(sheet: DatasheetIndex, measurement: Measurement) -> str:
    text = clean(measurement.method, 220)
    if sheet.is_log:  # nothing about a log's texts is known but that some are one text
        text = text.replace("false preference", "preference").replace(
            "vacuum calls", "calls with one text in both slots"
        )
    wilson = measurement.detail.get("wilson")
    if not isinstance(wilson, Mapping):
        return text
    low, high = wilson.get("low"), wilson.get("high")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return text
    return f"{text}; Wilson over calls {span(float(low), float(high), 3)}"


def _inside(measurement: Measurement, value: float) -> bool:
    ends = bounds(measurement)
    return ends is not None and ends[0] - 1e-9 <= value <= ends[1] + 1e-9


def _inside_words(measurement: Measurement, value: float) -> str:
    if bounds(measurement) is None:
        return "no interval" if measurement.value is not None else state_words(measurement)
    return "yes" if _inside(measurement, value) else "no"


def _is_key(sheet: DatasheetIndex, measurement: Measurement) -> bool:
    labels = measurement.labels
    if measurement.name not in _KEY or "variant" in labels:
        return False
    if labels.get("condition", sheet.condition) not in (sheet.condition, "ladder"):
        return False
    if labels.get("prompt", sheet.base) != sheet.base:
        return False
    return labels.get("delta", "1") in ("0.5", "1", "5")
