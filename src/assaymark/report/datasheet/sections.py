"""What a judge does when it should not choose, and what it notices when there is something to see.

Vacuum, equal and nearly equal texts, filler; the ladder, its threshold, and the strict instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal, cast

from assaymark.metrology.datasheet import STRICT
from assaymark.records import Measurement
from assaymark.report.blocks import Inline, Row, Section, Styled, Table, notes, row_filters, small, spaced
from assaymark.report.charts.datasheet import (
    BARRED,
    PARTS,
    Curve,
    DotRow,
    MapPoint,
    StackRow,
    axis_of,
    curves,
    dots,
    segment,
    share_map,
    stacks,
)
from assaymark.report.charts.intervals import JudgeWords
from assaymark.report.datasheet.reading import (
    GROUPS,
    DatasheetIndex,
    Missing,
    Plot,
    about,
    arm_words,
    bounds,
    capital,
    group_of,
    hits,
    interval_words,
    known,
    measured_cells,
    missing_words,
    n_words,
    of_n,
    rank_of,
    row_anchor,
    share_words,
    step_words,
    threshold_words,
    title_of,
    value_words,
    variant_words,
)
from assaymark.report.records.calls import Rests
from assaymark.report.text import counted, interval, listing, sentence, state_words
from assaymark.text import clean, count, number, percent, span

_FORMULA = "False preference = stable + positional + one-sided / 2 + other, in shares of pairs."
_RIGHT = frozenset({1, 2, 3, 4, 5, 6})

Pair = tuple[DatasheetIndex, Measurement | None, Measurement | None]


def axes_plot(sheets: Sequence[DatasheetIndex], *, focus: bool = True) -> Plot | Missing:
    """Dark current against stable cross-sensitivity; with ``focus`` the page is about the first sheet."""
    title = "Nothing to choose, and only wording to choose by"
    pairs = [(s, known(s.base_one("dark_current")), known(s.part("stable"))) for s in sheets]
    lead, dark, stable = _lead(pairs, focus)
    if dark is None:
        return Missing(title, missing_words(lead.base_one("dark_current"), "dark current"))
    if stable is None:
        return Missing(title, missing_words(lead.part("stable"), "stable cross-sensitivity"))
    heads = ("Dark current: chooses with nothing to choose", "Swayed by wording alone (stable)")
    caption = f"Lower left is quiet. Crosses are {_level(dark)} intervals."
    return _map("axes", title, caption, pairs, heads, ("dark current", "stable cross-sensitivity"), focus)


def scatter_plot(sheets: Sequence[DatasheetIndex], *, focus: bool = True) -> Plot | Missing:
    """Positional against stable pairs: where a preference between equal texts comes from."""
    log = all(s.is_log for s in sheets)
    title = "By place, or by text?" if log else "By place, or by wording?"
    pairs = [(s, known(s.part("positional")), known(s.part("stable"))) for s in sheets]
    lead, positional, stable = _lead(pairs, focus)
    if positional is None or stable is None:
        return Missing(title, missing_words(lead.part("stable"), "the decomposition"))
    heads = ("Same slot wins in both orders", "Same text wins in both orders")
    caption = f"Shares of pairs shown in both orders, with {_level(positional)} intervals."
    says = "The texts of a log may differ in quality: the upper left is then what a steady judge looks like."
    names = ("positional", "stable", "Same slot", "Same text")
    return _map("scatter", title, caption, pairs, heads, names, focus, says if log else "")


def _lead(found: Sequence[Pair], focus: bool) -> Pair:
    """The judge that decides whether a map can be drawn: that of the page, else the first that has both numbers."""
    return found[0] if focus else next((pair for pair in found if pair[1] and pair[2]), found[0])


def _level(measurement: Measurement) -> str:
    return percent(measurement.level) if measurement.level is not None else "stated"


def _map(
    name: str, title: str, caption: str, pairs: Sequence[Pair], heads: tuple[str, str], names: Sequence[str],
    focus: bool, note: str = "",
) -> Plot:  # fmt: skip
    """Judges on two axes, each with both intervals; ``names`` are what the axes show, in words and as heads."""
    points, judges, rows = list[MapPoint](), list[JudgeWords](), list[tuple[str, ...]]()
    for at, (sheet, *both) in enumerate(pairs):
        x, y = both
        cells = (measured_cells(sheet, m)[:2] if m else ("not measured", "none") for m in both)
        rows.append((sheet.name, *chain.from_iterable(cells)))
        if x is not None and y is not None:
            own = "this judge" if focus and not at and len(pairs) > 1 else ""
            points.append(MapPoint(sheet.name, x.value or 0.0, y.value or 0.0, bounds(x), bounds(y), at, own))
            shown = zip(names, (x, y), strict=False)
            said = (f"{what} {interval(m.value or 0.0, m.low, m.high, 3)}" for what, m in shown)
            judges.append(JudgeWords(at, sheet.name, ", ".join(said)))
    across, up = map(capital, names[-2:])
    return Plot(
        name, title, caption, draw=lambda _, width: share_map(points, heads, width), judges=tuple(judges), note=note,
        table=Table(("Judge", across, "Interval", up, "Interval"), tuple(rows), frozenset({1, 2, 3, 4})),
    )  # fmt: skip


def parts_plot(sheets: Sequence[DatasheetIndex], *, focus: bool = True) -> Plot | Missing:
    """The decomposition: each judge's pairs by class."""
    log = all(s.is_log for s in sheets)
    title = "What becomes of a pair in both orders" if log else "Where false preference comes from"
    if not any(known(s.part("stable")) for s in sheets[: 1 if focus else None]):
        return Missing(title, missing_words(sheets[0].part("stable"), "the decomposition"))
    rows, cells, judges = list[StackRow](), list[tuple[str, ...]](), list[JudgeWords]()
    for at, sheet in enumerate(sheets):
        if not known(sheet.part("stable")):
            continue
        pairs, raw = pair_counts(sheet), known(sheet.part("raw"))
        what = "preference" if sheet.is_log else "false preference"
        head = "" if raw is None else f"{what} {of_n(raw, none='0')} calls = {number(raw.value or 0.0)}"
        rows.append(StackRow(sheet.name, pairs, head, focus and not at, at))
        linked = (sheet.to(sheet.part(name), count(n)) for (name, _, _), n in zip(PARTS, pairs, strict=True))
        cells.append((sheet.name, *linked, count(sum(pairs))))
        said = ", ".join(f"{count(n)} {word}" for (_, word, _), n in zip(PARTS, pairs, strict=True))
        judges.append(JudgeWords(at, sheet.name, f"{said}, of {count(sum(pairs))} pairs"))
    heads = ("Judge", *(capital(word) for _, word, _ in PARTS), "Pairs")
    what = "pairs of the log" if log else "pairs of equal texts"
    return Plot(
        "parts", title, f"{cells[0][-1]} {what}, each in both orders. Figures are pairs.",
        draw=lambda key, width: stacks(key, rows, width), judges=tuple(judges),
        table=Table(heads, tuple(cells), _RIGHT),
        note=identity(sheets[0]) if focus else _FORMULA.replace("False p", "P" if log else "False p"),
    )  # fmt: skip


def near_plot(sheet: DatasheetIndex) -> Plot | Missing:
    """Each kind of vacuum, nearly identical texts and filler: how often a slot was named although nothing differs."""
    title = "How little is enough for a choice?"
    dark = [m for m in sheet.every("dark_current") if m.labels.get("prompt") == sheet.base]
    graded = [m for m in sheet.every("graded_vacuum") if m.labels.get("prompt") == sheet.base]
    kinds = [m for m in dark if "variant" in m.labels] or dark
    found = [(capital(variant_words(m.labels.get("variant", "vacuum"))), m) for m in (*kinds, *graded)]
    filler, note = sheet.base_one("filler.preference"), ""
    found += [] if filler is None else [("Filler: more words, nothing met", filler)]
    if not any(known(m) for _, m in found):
        return Missing(title, missing_words(found[0][1] if found else None, "preference between nearly equal texts"))
    rows = [
        DotRow(words, m.value, bounds(m), state_words(m) if m.value is None else f"{of_n(m)}, {share_words(m)}")
        for words, m in found
    ]
    cells = tuple((words, *measured_cells(sheet, m)) for words, m in found)
    if filler is not None and filler.value is not None:
        against = filler.detail.get("against")
        left = f"; {count(against)} preferred the shorter text" if isinstance(against, int) else ""
        note = f"Filler: {count(hits(filler))} of {count(filler.n)} calls preferred the padded text{left}."
    return Plot(
        "near", title,
        "Share of calls that named one of two texts (filler: the padded one), with intervals over tasks.",
        desc="; ".join(f"{row.title}: {row.text}" for row in rows),
        draw=lambda _, width: dots(rows, axis_of(rows, shares=True), width),
        table=Table(("Texts", "Share", "Interval", "n"), cells, frozenset({1, 2, 3})), note=note,
    )  # fmt: skip


def pair_counts(sheet: DatasheetIndex) -> tuple[int, ...]:
    """How many pairs are in each class of `PARTS`; classes that were not measured have none."""
    parts = (known(sheet.part(name)) for name, _, _ in PARTS)
    return tuple(0 if m is None else int(m.detail.get("pairs") or round((m.value or 0) * m.n)) for m in parts)


def identity(sheet: DatasheetIndex) -> str:
    """In words and numbers, that the parts of the decomposition make up the calls that named a slot."""
    stable, other = known(sheet.part("stable")), known(sheet.part("other"))
    if stable is None:
        return ""
    both, rest = pair_counts(sheet), round((0.0 if other is None else other.value or 0.0) * 2 * stable.n)
    calls = [2 * both[0], 2 * both[1], both[2], rest]
    what = "Preference" if sheet.is_log else "False preference"
    formula = _FORMULA.replace("False preference", what)
    total = f"In calls: {' + '.join(map(count, calls))} = {count(sum(calls))} of {count(2 * stable.n)}."
    share = f"{what} is {number(sum(calls) / (2 * stable.n), 3)}." if stable.n else ""
    return f"{formula} {total} {share}".rstrip()


def flip_note(sheet: DatasheetIndex) -> str:
    """The number that other tools print, with what it hides."""
    flips = sheet.part("flip_rate")
    if flips is None:
        return ""
    one_sided = flips.detail.get("one_sided_pairs")
    alone = f"the {counted(one_sided, 'pair')}" if isinstance(one_sided, int) else "pairs"
    hides = f"it hides {alone} with a preference in one order only"
    if one_sided == 0:
        hides = "it would hide pairs with a preference in one order only; here are none"
    shown = state_words(flips) if flips.value is None else f"{of_n(flips)} ({number(flips.value)})"
    return sentence(f"Flip rate among decided pairs, the number other tools print, is {shown}; {hides}")


def slot_note(sheet: DatasheetIndex) -> str:
    """Which slot won where one slot won in both orders."""
    slot = known(sheet.part("slot_1_share"))
    return "" if slot is None else f"Where one slot won in both orders, it was slot 1 in {of_n(slot)} pairs."


def quiet_answer(sheet: DatasheetIndex) -> str:
    """One sentence for the head of the section."""
    dark, raw = known(sheet.base_one("dark_current")), known(sheet.part("raw"))
    parts = [f"in {of_n(dark)} calls with nothing to choose between"] if dark else []
    if raw:
        parts.append(f"in {of_n(raw)} calls on {'the pairs of the log' if sheet.is_log else 'equal texts'}")
    return f"It named a text {listing(parts)}." if parts else "Nothing of this was measured."


# --- the ladder and the strict instruction ----------------------------------------------------------------------------


ONE = 1.0
_RATES = (
    ("sensitivity", "Picks the better"),
    ("tie_rate", "Ties"),
    ("wrong_rate", "Picks the worse"),
    ("conditional_accuracy", "Right when decided"),
    ("d_prime", "d′"),
)


def curve_plot(sheets: Sequence[DatasheetIndex]) -> Plot | Missing:
    """Sensitivity along the ladder, with the threshold of the first judge on the axis."""
    title = "How big a difference it notices"
    found = [curve_of(s, at, foot=at == 0) for at, s in enumerate(sheets)]
    if not found[0].points:
        base = sheets[0].base
        first = next((m for m in sheets[0].every("sensitivity") if m.labels.get("prompt") == base), None)
        return Missing(title, missing_words(first, "sensitivity"))
    shown = [curve for curve in found if curve.points]
    of_whom = f" of {sheets[0].name}" if len(shown) > BARRED else ""
    rows = [
        (s.name, step_words(delta), *measured_cells(s, m)[:2], of_n(m, none="0"))
        for s in sheets
        for delta, m in s.steps("sensitivity", s.base).items()
    ]
    # The thresholds of the peers in words, and what a bound means.
    parts = [f"{s.name}: {threshold_line(s)}" for s in sheets[1:] if known(s.base_one("threshold"))]
    said = [f"Thresholds of peers: {'; '.join(parts)}."] if parts else []
    censored = {m.detail.get("censored") for s in sheets if (m := known(s.base_one("threshold")))}
    if "left" in censored:
        said.append("≤ means that the smallest step shown was noticed already.")
    if "right" in censored:
        said.append("> means that no step shown was noticed three times of four.")
    return Plot(
        "curve", title, f"Bars: intervals over tasks{of_whom}. Dashed line: the 75 % level that defines the threshold.",
        judges=tuple(judge for judge, curve in zip(curve_words(sheets), found, strict=True) if curve.points),
        draw=lambda _, width: curves(shown, width), note=" ".join(said),
        table=Table(("Judge", "Texts are apart", "Picks the better", "Interval", "Calls"), tuple(rows),
                    frozenset({2, 3, 4})),
    )  # fmt: skip


def curve_words(sheets: Sequence[DatasheetIndex]) -> tuple[JudgeWords, ...]:
    """The share at each step and the threshold of every judge."""
    found = []
    for at, sheet in enumerate(sheets):
        steps = sheet.steps("sensitivity", sheet.base)
        shares = [", ".join(f"{step_words(delta)} {percent(m.value or 0.0)}" for delta, m in steps.items())]
        said = "; ".join([*filter(None, shares), f"75 % threshold {threshold_line(sheet)}"])
        found.append(JudgeWords(at, sheet.name, said))
    return tuple(found)


def curve_of(sheet: DatasheetIndex, at: int, *, foot: bool = False) -> Curve:
    """A judge's curve, with its threshold at the foot; empty where the ladder was not run."""
    steps = sheet.steps("sensitivity", sheet.base)
    points = tuple((delta, m.value or 0.0, bounds(m)) for delta, m in steps.items())
    threshold = known(sheet.base_one("threshold"))
    if not foot or threshold is None:
        return Curve(sheet.name, points, at)
    censored, ends = cast(Literal["left", "right"] | None, threshold.detail.get("censored")), bounds(threshold)
    text = f"detects {threshold_words(threshold)}"
    text += f" ({interval_words(threshold)})" if ends and not censored else ""
    censored = censored if censored in ("left", "right") else None
    return Curve(sheet.name, points, at, (threshold.value or 0.0, ends, censored, text))


def ladder_table(sheet: DatasheetIndex) -> Table | None:
    """All rates at every step, arm by arm; the undefined ones too, where the ladder was run at all."""
    rows = []
    for prompt in dict.fromkeys((sheet.base, *sheet.sheet.arms)):
        run = sheet.steps("sensitivity", prompt)
        by_name = {
            name: {
                float(m.labels["delta"]): m
                for m in sheet.every(name)
                if m.labels.get("prompt") == prompt and float(m.labels["delta"]) in run
            }
            for name, _ in _RATES
        }
        for delta in sorted(by_name["sensitivity"]):
            cells = []
            for name, _ in _RATES:
                m = by_name[name].get(delta)
                text = "not measured" if m is None else value_words(m)
                if m is not None and m.value is not None and bounds(m) is not None:
                    text = f"{text} ({interval_words(m)})"
                cells.append(sheet.to(m, text))
            calls = count(by_name["sensitivity"][delta].n)
            rows.append((f"{step_words(delta)}, {arm_words(prompt)}", *cells, calls))
    heads = ("Texts are apart by", *(head for _, head in _RATES), "Calls")
    return Table(heads, tuple(rows), frozenset(range(1, len(heads)))) if rows else None


def seeing_answer(sheet: DatasheetIndex) -> str:
    """One sentence for the head of the section."""
    threshold = sheet.base_one("threshold")
    if threshold is None or threshold.value is None:
        return missing_words(threshold, "the detection threshold")
    censored, step, said = threshold.detail.get("censored"), step_words(threshold.value), threshold_words(threshold)
    if censored == "left":
        return f"At the smallest difference shown, {step}, three calls of four are right already."
    if censored == "right":
        return f"At no difference shown, up to {step}, are three calls of four right."
    return f"Three calls of four are right at a difference of {said} requirement{'' if said == '1.00' else 's'}."


def threshold_line(sheet: DatasheetIndex) -> str:
    """A threshold with its interval, or why there is none."""
    threshold = sheet.base_one("threshold")
    if threshold is None or threshold.value is None:
        return missing_words(threshold, "the threshold").rstrip(".")
    return f"{threshold_words(threshold)} ({interval_words(threshold)})"


def segment_plot(sheet: DatasheetIndex) -> Plot | Missing:
    """Two operating points: false preference against sensitivity one requirement apart."""
    title = "What being strict about ties gives and takes"
    base, strict = operating(sheet, sheet.base), operating(sheet, STRICT)
    if strict is None or base is None:
        shift = next((m for m in sheet.every("criterion.shift") if m.value is None), None)
        why = missing_words(shift, "the criterion shift")
        return Missing(title, why if shift else "The strict instruction was not run on equal texts and on the ladder.")
    rows = []
    for prompt in (sheet.base, STRICT):
        raw, seen = sheet.part("raw", prompt), sheet.steps("sensitivity", prompt)[ONE]
        cells = (measured_cells(sheet, m)[:2] for m in (raw, seen) if m is not None)
        rows.append((arm_words(prompt), *chain.from_iterable(cells)))
    heads = ("Instruction", "False preference", "Interval", "Picks the better, one apart", "Interval")
    # What the small differences were lost to, and what became of the largest one.
    steps, wrong, ties = (sheet.steps(name, STRICT) for name in ("sensitivity", "wrong_rate", "tie_rate"))
    lost = []
    if ONE in ties and ONE in wrong:
        lost.append(
            f"One requirement apart the strict prompt gives {count(hits(ties[ONE]))} ties and "
            f"{count(hits(wrong[ONE]))} wrong choices in {count(ties[ONE].n)} calls."
        )
    if steps and max(steps) > ONE:
        most = max(steps)
        lost.append(f"{capital(step_words(most))} apart it picks the better text in {of_n(steps[most])}.")
    told = ((p.name, percent(p.x), percent(p.y)) for p in (base, strict))
    return Plot(
        "segment", title, "Two operating points joined by a segment, with their intervals. This is not an ROC curve.",
        desc="; ".join(f"{name}: false preference {x}, picks the better text {y}" for name, x, y in told),
        draw=lambda _, width: segment(base, strict, 0, width), note=" ".join(lost),
        table=Table(heads, tuple(rows), frozenset({1, 2, 3, 4})),
    )  # fmt: skip


def operating(sheet: DatasheetIndex, prompt: str) -> MapPoint | None:
    """The operating point of an arm, where both of its shares were measured."""
    raw, seen = known(sheet.part("raw", prompt)), sheet.steps("sensitivity", prompt).get(ONE)
    if raw is None or seen is None:
        return None
    return MapPoint(arm_words(prompt), raw.value or 0.0, seen.value or 0.0, bounds(raw), bounds(seen))


# Every measurement as a row, with what was planted where the judge is a built-in one.


_MAIN = ("dark_current", "delta0.raw", "delta0.stable", "delta0.positional", "delta0.one_sided", "sensitivity",
        "threshold", "filler.preference", "criterion.shift", "pair.invalid_share")  # fmt: skip


def every_table(sheet: DatasheetIndex, rests: Rests = lambda _: ()) -> Table:
    """All measurements by kind, arm and step; undefined ones are named, none is left out.

    ``rests`` gives the answers that a measurement was computed from.
    """
    planted, rows, leads = sheet.sheet.planted or {}, [], False
    for m in sorted(sheet.rows, key=_row_order):
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
                    (f"{_method_words(sheet, m)} ", spaced(found)) if found else _method_words(sheet, m),
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
        for m, value in sorted(chosen, key=lambda pair: _row_order(pair[0]))
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


def _row_order(measurement: Measurement) -> tuple[object, ...]:
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


def _method_words(sheet: DatasheetIndex, measurement: Measurement) -> str:
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
    if measurement.name not in _MAIN or "variant" in labels:
        return False
    if labels.get("condition", sheet.condition) not in (sheet.condition, "ladder"):
        return False
    if labels.get("prompt", sheet.base) != sheet.base:
        return False
    return labels.get("delta", "1") in ("0.5", "1", "5")
