"""Several judges on one page, by name: maps, bars, small multiples and one table. Nothing here is a ranking."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import svg

from assaymark.metrology.datasheet import BASE, STRICT
from assaymark.records import AGGREGATE, Measurement
from assaymark.report.blocks import Block, Inline, Items, Linked, Page, Section, Table, Text, notes, small
from assaymark.report.charts.canvas import label, num, rect
from assaymark.report.charts.datasheet import DotRow, Panel, axis_of, dots, small_curve, small_segment
from assaymark.report.charts.intervals import JudgeWords, judge_marks
from assaymark.report.datasheet import reading as r
from assaymark.report.datasheet import sections as sec
from assaymark.report.page import JUDGES
from assaymark.report.text import counted, interval, listing, p_value, shortened
from assaymark.text import clean, count, number, percent, prose, span

# The other questions put to a judge: one text at a time, the same question again, the same instrument as before.


_OF: Final = re.compile(r"([^\[]+)(?:\[(.*)\])?", re.DOTALL)
_ROWS: Final = 12
_LESS: Final = ("different_subset", "delta=2", "delta=3", "delta=4")
_VERDICTS: Final = {
    "same instrument": "No shift was found",
    "shifted": "The judge has shifted",
    "not comparable": "The two datasheets cannot be compared",
}


FOOT: Final = (
    "Every number is a measurement with its denominator, interval and method. Nothing on this page ranks judges."
)


def _section(
    id: str,
    title: str,
    answer: str,
    plots: Sequence[r.Plot] = (),
    table: Table | None = None,
    said: Sequence[str] = (),
) -> Section:
    """A section with its answer, its figures, what has to be read with them, and a table of what has no figure."""
    blocks: tuple[Block, ...] = (r.plot_blocks(plots),) if plots else ()
    tables = (replace(table, summary="All of it as a table"),) if table else ()
    return Section(id, title, answer, (*blocks, *notes(said), *tables))


_POINTS: Final = (
    ("vacuum_score", "What does it give for nothing?", "Mean score of texts without content",
     "a text without content gets {} points"),
    ("slope", "What is a requirement worth?", "Score points per requirement met",
     "a requirement met is worth {} points"),
    ("verbosity", "What is length alone worth?", "Score points per 100 words of filler",
     "100 words that say nothing are worth {} points"),
)  # fmt: skip


def pointwise_section(sheet: r.DatasheetIndex) -> Section | None:
    """How a rubric judge scores nothing, what a requirement and mere length are worth to it."""
    orders, plots, parts, every = list(sheet.every("point.order")), list[r.Plot](), [], False
    for name, title, caption, said in _POINTS:
        found = list(sheet.every(f"point.{name}"))
        every = every or bool(found)
        if not (values := [m.value for m in found if m.value is not None]):
            continue
        rows = []
        for m in found:
            ends = f" ({span(*both)})" if m.value is not None and (both := r.bounds(m)) else ""
            rows.append(DotRow(_dimension(m), m.value, r.bounds(m), f"{r.value_words(m)}{ends}"))
        key, line = ("floor", None) if name == "vacuum_score" else (name, 0.0)
        cells = tuple((_dimension(m), *r.measured_cells(sheet, m)) for m in found)
        table = Table(("Dimension", "Estimate", "Interval", "n"), cells, frozenset({1, 2, 3}))
        plots.append(_dots(key, title, f"{caption}, with intervals over tasks.", rows, table, line))
        parts.append(said.format(number(values[0]) if len(values) == 1 else span(min(values), max(values))))
    if not every and not orders:
        return None
    answer = f"By dimension, {listing(parts)}." if parts else (
        "Neither its floor, nor its slope, nor its verbosity is defined.")  # fmt: skip
    told = [f"{_dimension(m)} {percent(m.value)}" for m in orders if m.value is not None]
    notes_of = [f"Neighbouring steps in the right order, ties half: {', '.join(told)}. Chance is 50 %."] if told else []
    notes_of += _length_notes(list(sheet.every("point.verbosity")))
    listed = _quantities(sheet, orders) if orders else None
    return _section("pointwise", "How does it score one text at a time?", answer, plots, listed, notes_of)


def _dots(name: str, title: str, caption: str, rows: Sequence[DotRow], table: Table, line: float | None) -> r.Plot:
    desc = "; ".join(f"{row.title}: {row.text}" for row in rows)
    return r.Plot(name, title, caption, lambda _, width: dots(rows, axis_of(rows, line=line), width), table, desc)


def _quantities(sheet: r.DatasheetIndex, found: Sequence[Measurement]) -> Table:
    rows = tuple((r.title_of(m.name), _dimension(m), *r.measured_cells(sheet, m)) for m in found)
    return Table(("Quantity", "Dimension", "Estimate", "Interval", "n"), rows, frozenset({2, 3, 4}))


def people_section(sheet: r.DatasheetIndex) -> Section | None:
    """How the judge grades beside people, and how two people do; None where nobody graded."""
    found = [m for name in _PEOPLE for m in sheet.every(f"human.{name}")]
    if not found:
        return None
    whole = {m.name: m for m in found if m.labels.get("dimension") == AGGREGATE}
    kappa, two = (whole.get(f"human.{name}") for name in ("kappa", "ceiling"))
    answer = "On the overall score not measured."
    if kappa is not None and kappa.value is not None:
        answer = f"On the overall score it agrees with people at κ {r.value_words(kappa)}"
        answer += "." if two is None or two.value is None else f"; two people agree at {r.value_words(two)}."
    note = "People are no ground truth: a judge is as good as a person where its interval reaches that of two people."
    return _section("people", "Does it grade as people do?", answer, table=_quantities(sheet, found), said=(note,))


_PEOPLE: Final = ("kappa", "ceiling", "icc", "bias", "tpr", "tnr")


def repeat_section(sheet: r.DatasheetIndex) -> Section | None:
    """Whether the same question gets the same answer; None where the datasheet has no such measurement."""
    found = sheet.one("repeat.stability")
    if found is None:
        return None
    title = "Does it answer alike when asked again?"
    if found.value is None:
        return _section("repeat", title, r.missing_words(found, "repeat stability"))
    kappa = found.detail.get("kappa")
    said_of = [f"Over {r.n_words(found)}: {clean(found.method, 200)}."]
    if isinstance(kappa, (int, float)):
        low, high = found.detail.get("kappa_low"), found.detail.get("kappa_high")
        ends = (float(low), float(high)) if isinstance(low, (int, float)) and isinstance(high, (int, float)) else None
        said = interval(float(kappa), *(ends or (None, None)))
        said_of.append(
            f"Beyond chance, unweighted κ between trials is {said}. A judge that always ties is stable, too."
        )
    else:
        said_of.append("Agreement beyond chance is not defined here. A judge that always ties is stable, too.")
    answer = f"Two trials of one question gave the same outcome in {r.share_words(found)} of cases."
    return _section("repeat", title, answer, said=said_of)


def drift_section(sheet: r.DatasheetIndex) -> Section | None:
    """Old against new; None where no comparison was made."""
    shifts, verdict = list(sheet.every("drift")), sheet.one("drift.verdict")
    if not shifts and verdict is None:
        return None
    listed = verdict.detail.get("shifted", []) if verdict is not None else []
    moved = frozenset(map(str, listed)) if isinstance(listed, (list, tuple)) else frozenset()

    def rank(measurement: Measurement) -> tuple[bool, bool, bool]:
        of = measurement.labels.get("of", "")
        return of not in moved, "prompt=" in of, any(word in of for word in _LESS)

    def part(measurement: Measurement, key: str) -> str:
        value = measurement.detail.get(key)
        return number(float(value), 3) if isinstance(value, (int, float)) else "not given"

    # The figure has room for what shifted, then for the base arm on texts that differ in wording only.
    chosen, drawn, cells = sorted(shifts, key=rank)[:_ROWS], list[DotRow](), list[tuple[str, ...]]()
    for m in shifts:
        of, ends, p = m.labels.get("of", ""), r.bounds(m), m.detail.get("p_holm")
        title, old, new = of_words(of), part(m, "old"), part(m, "new")
        if m in chosen:
            change = r.value_words(m) + (f" ({span(*ends, 3)})" if ends else "")
            drawn.append(DotRow(title, m.value, ends, f"{old} to {new}, {change}", of not in moved))
        holm = p_value(float(p)).removeprefix("p ").removeprefix("= ") if isinstance(p, (int, float)) else "not given"
        cells.append((title, old, new, *r.measured_cells(sheet, m)[:2], holm, r.n_words(m)))
    plots: tuple[r.Plot, ...] = ()
    if any(row.value is not None for row in drawn):
        heads = ("Quantity", "Old", "New", "New minus old", "Interval", "p, Holm", "n")
        table = Table(heads, tuple(cells), frozenset(range(1, 7)))
        caption = "New minus old with its interval. Filled: shifted after Holm’s adjustment."
        plots = (_dots("drift", "How far has each quantity moved?", caption, drawn, table, 0.0),)
    left = f"The figure draws {len(drawn)} of {len(shifts)}: all that shifted come first; the table has the rest."
    said = (left,) if len(drawn) < len(shifts) else ()
    return _section("drift", "Has the judge changed?", _drift_answer(verdict, moved), plots, said=said)


def of_words(of: str) -> str:
    """What a drift is of, in words.

    >>> of_words("sensitivity[delta=1]"), of_words("dark_current[prompt=strict]"), of_words("odd[")
    ('Sensitivity, one requirement apart', 'Dark current, strict about ties', 'odd[')
    """
    parts = _OF.fullmatch(of)
    if parts is None or ("[" in of and parts[2] is None):
        return clean(of, 80)
    labels = dict(pair.split("=", 1) for pair in (parts[2] or "").split(",") if "=" in pair)
    said = r.about(Measurement(name=parts[1], labels=labels, value=None, n=0, n_of="", method=""))
    return f"{r.title_of(parts[1])}, {said}" if said else r.title_of(parts[1])


# --- parts ----------------------------------------------------------------------------------------------------------


def _length_notes(lengths: Sequence[Measurement]) -> list[str]:
    """How to read the worth of length, and in how many pairs of texts none could show."""
    found = [m for m in lengths if m.value is not None]
    if not found:
        return [f"What length alone is worth: {r.missing_words(lengths[0], 'it')}"] if lengths else []
    notes = ["Length alone: 0 is blind to it; 0.25 pays a quarter of a point for 100 words of nothing."]
    alone = [m for m in found if m.labels.get("dimension") != AGGREGATE]
    stuck, pairs = (sum(n for m in alone if isinstance(n := m.detail.get(key), int)) for key in ("at_ends", "pairs"))
    if stuck:
        notes.append(
            f"In {count(stuck)} of {count(pairs)} comparisons, over all dimensions, both texts stand at one end of the "
            "scale: no worth of length can show there, and the estimate is too close to 0."
        )
    return notes


def _dimension(measurement: Measurement) -> str:
    return r.capital(clean(measurement.labels.get("dimension", "score").replace("_", " "), 60))


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


DRAWN: Final = 12
Cell = Callable[[r.DatasheetIndex, int, float], list[svg.Element] | None]
_CELL: Final = (150.0, 28.0)  # height of a small multiple, and of its head
_BASES: Final = {"between.kappa_content": "the text, orders averaged", "between.kappa": "the slot, call by call"}
_COMPARISON_ROWS: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("dark_current", {}),
    ("delta0.raw", {"condition": r.SAME}),
    ("delta0.stable", {"condition": r.SAME}),
    ("delta0.positional", {"condition": r.SAME}),
    ("delta0.one_sided", {"condition": r.SAME}),
    ("delta0.other_pairs", {"condition": r.SAME}),
    ("delta0.flip_rate", {"condition": r.SAME}),
    ("delta0.raw", {"condition": "different_subset"}),
    *((f"truth.{name}", {}) for name in ("accuracy", "both", "one", "none")),
    ("sensitivity", {"delta": "0.5"}),
    ("sensitivity", {"delta": "1"}),
    ("sensitivity", {"delta": "5"}),
    ("threshold", {}),
    ("d_prime", {"delta": "1"}),
    ("filler.preference", {}),
    ("pair.invalid_share", {}),
)
_UNARMED: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("criterion.shift", {"condition": r.SAME}),
    ("criterion.shift", {"condition": "ladder", "delta": "1"}),
    ("repeat.stability", {}),
)


def comparison_lead(sheets: Sequence[r.DatasheetIndex]) -> str:
    """How many judges there are."""
    return f"{counted(len(sheets), 'judge')}, listed alphabetically, not ranked."


def comparison_page(
    path: str, sheets: Sequence[r.DatasheetIndex], agreement: Sequence[Measurement], styles: Sequence[str]
) -> Page:
    """The page of judges that are in alphabetical order already."""
    drawn = sheets[:DRAWN]
    said = [_mixed(sheets)] if not all(r.comparable(sheets[0].sheet, s.sheet) for s in sheets) else []
    if len(sheets) > DRAWN:
        said.append(f"Figures draw the first twelve judges by name; the tables hold all {len(sheets)}.")
    known_kappas = (m for s in sheets for name in _BASES for m in s.every(name))
    kappas = {m.id: m for m in (*known_kappas, *agreement)}
    whole = any(not s.is_log for s in sheets)
    maps: tuple[r.Plot | r.Missing, ...] = (sec.parts_plot(drawn, focus=False), sec.scatter_plot(drawn, focus=False))
    table, agreed = _table(sheets), _agreement(list(kappas.values()))
    sections = [
        Section("judges", "Which judges?", blocks=(Items(tuple(map(judge_line, sheets))),)),
        Section(
            "maps",
            "How do preferences change when the order is swapped?"
            if not whole
            else "Do they choose where texts are equal?",
            "Each judge keeps the same marker in every figure.",
            (r.plot_blocks((sec.axes_plot(drawn, focus=False), *maps) if whole else maps),),
        ),
    ]
    if whole:
        grids = (_curves(drawn), _segments(drawn))
        lead = "One small picture a judge, by name, all on the same axes."
        sections.append(Section("grids", "Which differences do they notice?", lead, (r.plot_blocks(grids),)))
    of_all = (
        "Estimate and interval under the instruction that allows ties. The page of each judge has all, with n and "
        "method."
    )
    sections.append(
        Section(
            "table",
            "The measurements, judge by judge",
            of_all,
            (replace(table, summary="") if table.rows else Text("No quantity of this table was measured."),),
        )
    )
    if agreed is not None:
        lead = (
            "Unweighted Cohen’s κ of each pair of judges: on the text that each prefers once both orders are "
            "averaged, then "
            "on the position, call by call. Both may agree and be wrong."
        )
        sections.append(Section("kappa", "Do they prefer the same texts?", lead, (replace(agreed, summary=""),)))
    not_claimed = tuple(dict.fromkeys(prose(text, 400) for s in sheets for text in s.sheet.non_claims))
    sections.append(Section("non-claims", "What this page does not claim", blocks=(Items(not_claimed),)))
    short = {
        "judges": "Judges",
        "maps": "Equal texts" if whole else "Pairs",
        "grids": "Differences",
        "table": "Measurements",
        "kappa": "Agreement",
    }
    return Page(
        path,
        "Judge reliability",
        comparison_lead(sheets),
        tuple(sections),
        notes(said, "notice"),
        contents=tuple((section.id, short.get(section.id, "Not claimed")) for section in sections),
        foot=FOOT,
        here=JUDGES,
        styles=tuple(styles),
    )


def _mixed(sheets: Sequence[r.DatasheetIndex]) -> str:
    """The warning where the judges were not asked the same."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for s in sheets:
        groups.setdefault((s.sheet.source, s.sheet.manifest, s.sheet.prompts.get(BASE, "")), []).append(s.name)
    told = "; ".join(clean(listing(names), 200) for names in groups.values())
    return f"Not all judges saw the same texts under the same prompt. Numbers compare within a group only: {told}."


def judge_line(sheet: r.DatasheetIndex) -> Inline:
    """A judge in a list: its name, its model and what stands out."""
    chips = () if sheet.is_log else tuple(clean(text.partition(" (")[0], 80) for text in sheet.sheet.sketch)
    model = clean(sheet.sheet.model, 80) or "model not stated"
    return Linked(sheet.name, sheet.page), " ", small(model), *((": ", "; ".join(chips)) if chips else ())


# --- small multiples ------------------------------------------------------------------------------------------------


def _curves(sheets: Sequence[r.DatasheetIndex]) -> r.Plot | r.Missing:
    title = "How big a difference does each notice?"
    if not any(s.steps("sensitivity", s.base) for s in sheets):
        return r.Missing(title, "The quality ladder was not run for any of these judges.")

    def one(sheet: r.DatasheetIndex, at: int, width: float) -> list[svg.Element] | None:
        curve = sec.curve_of(sheet, at)
        return small_curve(curve, width, _CELL[0]) if curve.points else None

    steps = sorted({delta for s in sheets for delta in s.steps("sensitivity", s.base)})
    heads = ("Judge", *(f"{r.step_words(delta)} apart" for delta in steps), "75 % threshold")
    rows = []
    for sheet in sheets:
        known_steps = sheet.steps("sensitivity", sheet.base)
        threshold = sheet.to(sheet.base_one("threshold"), sec.threshold_line(sheet))
        rows.append((sheet.name, *(_cell(sheet, known_steps.get(delta)) for delta in steps), threshold))
    caption = "Percent of calls that pick the better text, by requirements ahead. Bars: intervals; dashes: 75 %."
    table = Table(heads, tuple(rows))
    return r.Plot(
        "curves", title, caption, lambda _, width: _grid(sheets, width, one), table, judges=sec.curve_words(sheets)
    )


def _segments(sheets: Sequence[r.DatasheetIndex]) -> r.Plot | r.Missing:
    title = "What does being strict about ties give and take?"
    both = {s.name: (sec.operating(s, s.base), sec.operating(s, STRICT)) for s in sheets}
    if not any(base and strict for base, strict in both.values()):
        return r.Missing(title, "The strict instruction was not run for any of these judges.")

    def one(sheet: r.DatasheetIndex, at: int, width: float) -> list[svg.Element] | None:
        base, strict = both[sheet.name]
        return small_segment(base, strict, at, width, _CELL[0]) if base and strict else None

    rows = []
    for name, (base, strict) in both.items():
        cells = [f"{percent(p.x)} and {percent(p.y)}" if p else "not measured" for p in (base, strict)]
        rows.append((name, *cells))
    judges = tuple(JudgeWords(at, row[0], f"from {row[1]} to {row[2]}") for at, row in enumerate(rows))
    caption = (
        "Across: percent false preference. Up: percent that pick the better text, one requirement apart. "
        "Filled: ties allowed. Empty: strict."
    )
    table = Table(("Judge", "Ties allowed: false preference, picks the better", "Strict"), tuple(rows))
    return r.Plot("segments", title, caption, lambda _, width: _grid(sheets, width, one), table, judges=judges)


def _grid(sheets: Sequence[r.DatasheetIndex], width: float, one: Cell) -> Panel:
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


# --- tables ---------------------------------------------------------------------------------------------------------


def _table(sheets: Sequence[r.DatasheetIndex]) -> Table:
    """The main quantities, one judge a column; rows that no judge has are left out."""
    log, kept = all(s.is_log for s in sheets), []
    for name, labels in (*_COMPARISON_ROWS, *_UNARMED):
        found = [s.one(name, **labels) for s in sheets]
        if (name, labels) in _COMPARISON_ROWS:
            # The pairs of a log are in the row of the decomposed pairs.
            own = labels.get("condition") == r.SAME
            found = [s.base_one(name, **({"condition": s.condition} if own else labels)) for s in sheets]
        title = r.title_of(name, log)
        if "delta" in labels:
            title = f"{title}, {r.step_words(labels['delta'])} apart"
        elif "condition" in labels and not log:
            title = f"{title}, {r.condition_words(labels['condition'])}"
        if any(map(r.known, found)):
            # Many judges with a link in every cell would be a page that is too long; only their names are links then.
            cells = map(_cell, sheets, found)
            kept.append((title, *(cells if len(sheets) <= DRAWN else map(str, cells))))
    heads = ("Quantity", *(Linked(s.name, f"{s.page}#every") for s in sheets))
    return Table(heads, tuple(kept), frozenset(range(1, len(heads))))


def _cell(sheet: r.DatasheetIndex, measurement: Measurement | None) -> str:
    if measurement is None:
        return "not measured"
    if measurement.value is None:
        return r.value_words(measurement)
    return sheet.to(measurement, f"{r.value_words(measurement)} ({r.interval_words(measurement)})")


def _agreement(found: Sequence[Measurement]) -> Table | None:
    """Kappa of each pair of judges, by their names: first by content, then by position."""
    if not found:
        return None
    bases = list(_BASES)
    rows = [
        (
            f"{r.shown_name(m.labels.get('a', ''))} and {r.shown_name(m.labels.get('b', ''))}",
            _BASES[m.name],
            r.value_words(m),
            r.interval_words(m) if m.value is not None else "none",
            r.n_words(m),
            clean(m.method, 160),
        )
        for m in sorted(found, key=lambda m: (m.labels.get("a", ""), m.labels.get("b", ""), bases.index(m.name)))
    ]
    return Table(("Judges", "Agree on", "κ", "Interval", "n", "Method"), tuple(rows), frozenset({2, 3, 4}))
