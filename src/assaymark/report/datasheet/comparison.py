"""Several judges on one page, by name: maps, bars, small multiples and one table. Nothing here is a ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import svg

from assaymark.metrology.datasheet import BASE, STRICT
from assaymark.records import Measurement
from assaymark.report.datasheet.figures import Panel, small_curve, small_segment
from assaymark.report.datasheet.plots import Missing, Plot
from assaymark.report.datasheet.quantities import title_of
from assaymark.report.datasheet.quiet import axes_plot, parts_plot, scatter_plot
from assaymark.report.datasheet.reading import SAME, Opened, comparable, known, shown_name
from assaymark.report.datasheet.seeing import curve_of, operating, threshold_line
from assaymark.report.datasheet.wording import (
    condition_words,
    interval_words,
    n_words,
    step_words,
    value_words,
)
from assaymark.report.figures.canvas import label, num, rect
from assaymark.report.figures.judges import JudgeWords, judge_marks, told
from assaymark.report.formats import clean, counted, listing, percent, prose, shortened
from assaymark.report.linked import Linked
from assaymark.report.tables import Table

DRAWN: Final = 12
Cell = Callable[[Opened, int, float], list[svg.Element] | None]
_CELL: Final = (150.0, 28.0)  # height of a small multiple, and of its head
_BASES: Final = {"between.kappa_content": "the text, orders averaged", "between.kappa": "the slot, call by call"}
_ROWS: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("dark_current", {}),
    ("delta0.raw", {"condition": SAME}),
    ("delta0.stable", {"condition": SAME}),
    ("delta0.positional", {"condition": SAME}),
    ("delta0.one_sided", {"condition": SAME}),
    ("delta0.other_pairs", {"condition": SAME}),
    ("delta0.flip_rate", {"condition": SAME}),
    ("delta0.raw", {"condition": "different_subset"}),
    ("sensitivity", {"delta": "0.5"}),
    ("sensitivity", {"delta": "1"}),
    ("sensitivity", {"delta": "5"}),
    ("threshold", {}),
    ("d_prime", {"delta": "1"}),
    ("filler.preference", {}),
    ("pair.invalid_share", {}),
)
_UNARMED: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("criterion.shift", {"condition": SAME}),
    ("criterion.shift", {"condition": "ladder", "delta": "1"}),
    ("repeat.stability", {}),
)


@dataclass(frozen=True, slots=True)
class JudgeLine:
    """A judge in the list at the head: its name, its page, its model, and its chips."""

    name: str
    link: str
    model: str
    chips: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The page of several judges."""

    lede: str
    notices: tuple[str, ...]
    judges: tuple[JudgeLine, ...]
    maps: tuple[Plot | Missing, ...]
    grids: tuple[Plot | Missing, ...]
    table: Table
    agreement: Table | None
    non_claims: tuple[str, ...]


def comparison_view(sheets: Sequence[Opened], agreement: Sequence[Measurement] = ()) -> ComparisonView:
    """The view of judges that stand in alphabetical order already."""
    drawn = sheets[:DRAWN]
    notices = [_mixed(sheets)] if not all(comparable(sheets[0].sheet, s.sheet) for s in sheets) else []
    if len(sheets) > DRAWN:
        notices.append(f"Figures draw the first twelve judges by name; the tables hold all {len(sheets)}.")
    known_kappas = (m for s in sheets for name in _BASES for m in s.every(name))
    kappas = {m.id: m for m in (*known_kappas, *agreement)}
    whole = any(not s.is_log for s in sheets)
    maps: tuple[Plot | Missing, ...] = (parts_plot(drawn, focus=False), scatter_plot(drawn, focus=False))
    return ComparisonView(
        lede=f"{counted(len(sheets), 'judge')} in alphabetical order. A datasheet describes; nothing here ranks.",
        notices=tuple(notices),
        judges=tuple(_line(sheet) for sheet in sheets),
        maps=(axes_plot(drawn, focus=False), *maps) if whole else maps,
        grids=_grids(drawn) if whole else (),
        table=_table(sheets),
        agreement=_agreement(list(kappas.values())),
        non_claims=tuple(dict.fromkeys(prose(text, 400) for s in sheets for text in s.sheet.non_claims)),
    )


def _mixed(sheets: Sequence[Opened]) -> str:
    """The warning where the judges were not asked the same."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for s in sheets:
        groups.setdefault((s.sheet.source, s.sheet.manifest, s.sheet.prompts.get(BASE, "")), []).append(s.name)
    told = "; ".join(clean(listing(names), 200) for names in groups.values())
    return f"Not all judges saw the same texts under the same prompt. Numbers compare within a group only: {told}."


def _line(sheet: Opened) -> JudgeLine:
    chips = () if sheet.is_log else tuple(clean(text.partition(" (")[0], 80) for text in sheet.sheet.sketch)
    model = clean(sheet.sheet.model, 80) or "model not stated"
    return JudgeLine(sheet.name, sheet.page, model, chips)


# --- small multiples ------------------------------------------------------------------------------------------------


def _grids(sheets: Sequence[Opened]) -> tuple[Plot | Missing, ...]:
    """The curves and the operating points, one small picture a judge, all on the same axes."""
    return _curves(sheets), _segments(sheets)


def _curves(sheets: Sequence[Opened]) -> Plot | Missing:
    title = "How big a difference does each notice?"
    if not any(s.steps("sensitivity", s.base) for s in sheets):
        return Missing(title, "The quality ladder was not run for any of these judges.")

    def one(sheet: Opened, at: int, width: float) -> list[svg.Element] | None:
        points = curve_of(sheet, at).points
        return small_curve(points, at, width, _CELL[0]) if points else None

    judges = tuple(
        JudgeWords(at, s.name, f"{_shares(s)}75 % threshold {threshold_line(s)}") for at, s in enumerate(sheets)
    )
    steps = sorted({delta for s in sheets for delta in s.steps("sensitivity", s.base)})
    heads = ("Judge", *(f"{step_words(delta)} apart" for delta in steps), "75 % threshold")
    rows = [(s.name, *(_share(s, delta) for delta in steps), _threshold(s)) for s in sheets]
    return Plot(
        name="curves",
        title=title,
        caption="Percent of calls that pick the better text, by requirements ahead. Bars: intervals; dashes: 75 %.",
        desc=told(judges),
        judges=judges,
        draw=lambda _, width: _grid(sheets, width, one),
        table=Table(heads, tuple(rows)),
    )


def _segments(sheets: Sequence[Opened]) -> Plot | Missing:
    title = "What does being strict about ties give and take?"
    both = {s.name: (operating(s, s.base), operating(s, STRICT)) for s in sheets}
    if not any(base and strict for base, strict in both.values()):
        return Missing(title, "The strict instruction was not run for any of these judges.")

    def one(sheet: Opened, at: int, width: float) -> list[svg.Element] | None:
        base, strict = both[sheet.name]
        return small_segment(base, strict, at, width, _CELL[0]) if base and strict else None

    rows = []
    for name, (base, strict) in both.items():
        cells = [f"{percent(p.x)} and {percent(p.y)}" if p else "not measured" for p in (base, strict)]
        rows.append((name, *cells))
    judges = tuple(JudgeWords(at, row[0], f"from {row[1]} to {row[2]}") for at, row in enumerate(rows))
    return Plot(
        name="segments",
        title=title,
        caption="Across: percent false preference. Up: percent that pick the better text, one requirement apart. "
        "Filled: ties allowed. Empty: strict.",
        desc=told(judges),
        judges=judges,
        draw=lambda _, width: _grid(sheets, width, one),
        table=Table(("Judge", "Ties allowed: false preference, picks the better", "Strict"), tuple(rows)),
    )


def _grid(sheets: Sequence[Opened], width: float, one: Cell) -> Panel:
    """One cell a judge, as many in a line as are still readable."""
    across = 2
    gap = 16.0
    size = (width - gap * (across - 1)) / across
    height = _CELL[0] + _CELL[1] + 14
    names = shortened([s.name for s in sheets], size - 4, 13)
    parts: list[svg.Element] = []
    for at, (sheet, name) in enumerate(zip(sheets, names, strict=True)):
        x, y = (at % across) * (size + gap), (at // across) * height
        inner = one(sheet, at, size)
        drawn: list[svg.Element] = [label(x, y + 14, name, "tb")]
        if inner is None:
            drawn += [rect(x + 1, y + 26, size - 2, 60, "void"), label(x + 10, y + 60, "not measured", "tk")]
        else:
            drawn.append(svg.G(transform=[svg.Translate(num(x), num(y + _CELL[1]))], elements=inner))
        parts += judge_marks(at, drawn)
    return Panel(width, height * ((len(sheets) + across - 1) // across), tuple(parts))


def _share(sheet: Opened, delta: float) -> str:
    return _cell(sheet, sheet.steps("sensitivity", sheet.base).get(delta))


def _threshold(sheet: Opened) -> str:
    return sheet.to(sheet.base_one("threshold"), threshold_line(sheet))


def _shares(sheet: Opened) -> str:
    steps = sheet.steps("sensitivity", sheet.base)
    told = ", ".join(f"{step_words(delta)} {percent(m.value or 0.0)}" for delta, m in steps.items())
    return f"{told}; " if told else ""


# --- tables ---------------------------------------------------------------------------------------------------------


def _table(sheets: Sequence[Opened]) -> Table:
    """The main quantities, one judge a column; rows that no judge has are left out."""
    rows = []
    for name, labels in _ROWS:
        found = [_log_or(s, name, labels) for s in sheets]
        rows.append((_title(name, labels, sheets), found))
    rows += [(_title(name, labels, sheets), [s.one(name, **labels) for s in sheets]) for name, labels in _UNARMED]
    # Many judges with a link in every cell would be a page that is too long; their names lead on then.
    cell = _cell if len(sheets) <= DRAWN else _unlinked
    kept = [(title, *map(cell, sheets, found)) for title, found in rows if any(known(m) for m in found)]
    heads = ("Quantity", *(Linked(s.name, f"{s.page}#every") for s in sheets))
    return Table(heads, tuple(kept), frozenset(range(1, len(heads))))


def _log_or(sheet: Opened, name: str, labels: dict[str, str]) -> Measurement | None:
    """A measurement of the base arm; the pairs of a log stand in the row of the decomposed pairs."""
    if labels.get("condition") == SAME:
        return sheet.base_one(name, condition=sheet.condition)
    return sheet.base_one(name, **labels)


def _title(name: str, labels: dict[str, str], sheets: Sequence[Opened]) -> str:
    log = all(s.is_log for s in sheets)
    title = title_of(name, log=log)
    if "delta" in labels:
        return f"{title}, {step_words(labels['delta'])} apart"
    if "condition" in labels and not log:
        return f"{title}, {condition_words(labels['condition'])}"
    return title


def _cell(sheet: Opened, measurement: Measurement | None) -> str:
    if measurement is None:
        return "not measured"
    if measurement.value is None:
        return value_words(measurement)
    return sheet.to(measurement, f"{value_words(measurement)} ({interval_words(measurement)})")


def _unlinked(sheet: Opened, measurement: Measurement | None) -> str:
    return str(_cell(sheet, measurement))


def _agreement(found: Sequence[Measurement]) -> Table | None:
    """Kappa of each pair of judges, by their names: first by content, then by position."""
    if not found:
        return None
    bases = list(_BASES)
    rows = [
        (
            f"{shown_name(m.labels.get('a', ''))} and {shown_name(m.labels.get('b', ''))}",
            _BASES[m.name],
            value_words(m),
            interval_words(m) if m.value is not None else "none",
            n_words(m),
            clean(m.method, 160),
        )
        for m in sorted(found, key=lambda m: (m.labels.get("a", ""), m.labels.get("b", ""), bases.index(m.name)))
    ]
    return Table(("Judges", "Agree on", "κ", "Interval", "n", "Method"), tuple(rows), frozenset({2, 3, 4}))
