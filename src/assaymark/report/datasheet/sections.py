"""Sections of a datasheet: false preferences, sensitivity, single texts, people, repeats, drift, planted values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, Literal, cast

from assaymark.metrology.datasheet import STRICT
from assaymark.records import AGGREGATE, Measurement
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.charts import datasheet as charts
from assaymark.report.charts.canvas import JudgeWords
from assaymark.report.charts.intervals import AxisRow, LevelMark, described
from assaymark.report.datasheet import reading as r
from assaymark.report.measurements import quantities
from assaymark.report.records.calls import Lineage
from assaymark.report.text import as_float, bounds_of, counted, interval, known, listing, n_words, sentence, state_words
from assaymark.text import clean, count, number, percent, span

_FORMULA = "False preference = stable + positional + one-sided / 2 + other, in shares of pairs."
_RIGHT = frozenset({1, 2, 3, 4, 5, 6})


def map_plot(name: str, sheets: Sequence[r.DatasheetIndex], *, focus: bool = True) -> b.Figure:
    """Judges on two axes, each with both intervals; with ``focus`` the page is about the first datasheet.

    ``axes`` has null-pair preference against stable pairs, ``scatter`` positional pairs against them: where a
    preference between equal texts comes from.
    """
    log, axes = all(s.is_log for s in sheets), name == "axes"
    title = "By position, or by text?" if log else "By position, or by wording?"
    columns, names = ("Same position wins both orders", "Same text wins both orders"), ("Same position", "Same text")
    measures, note = ("positional", "stable"), ""
    if axes:
        title = "Nothing to choose, and only wording to choose by"
        columns = ("Null pairs: chooses with nothing to choose", "Swayed by wording alone (stable)")
        measures = ("null-pair preference", "stable cross-sensitivity")
        names = (r.capital(measures[0]), r.capital(measures[1]))
    elif log:
        note = "The texts of a log may differ in quality: the upper left is then what a steady judge looks like."
    first = [s.get_base("dark_current") if axes else s.part("positional") for s in sheets]
    pairs = [(s, m, s.part("stable")) for s, m in zip(sheets, first, strict=True)]
    # The map is drawn if the judge of the page has both numbers, or without focus if any judge has.
    lead = pairs[0] if focus else next((pair for pair in pairs if known(pair[1]) and known(pair[2])), pairs[0])
    _, measurement, two = lead
    if axes and not known(measurement):
        return b.Figure(title, r.missing_words(measurement, "null-pair preference"))
    if not known(measurement) or not known(two):
        return b.Figure(title, r.missing_words(two, measures[1] if axes else "the decomposition"))
    level = percent(measurement.level) if measurement.level is not None else "stated"
    caption = f"Shares of pairs shown in both orders, with {level} intervals."
    points, judges, rows, absent = list[charts.MapPoint](), list[JudgeWords](), list[tuple[str, ...]](), list[str]()
    for at, (sheet, x, y) in enumerate(pairs):
        cells = (r.value_cells(sheet, m)[:2] if known(m) else ("not measured", "none") for m in (x, y))
        rows.append((sheet.name, *chain.from_iterable(cells)))
        if known(unusable := sheet.part("other_pairs")) and unusable.value == 1:
            absent.append(sheet.name)
        elif known(x) and known(y):
            remark = "this judge" if focus and not at and len(pairs) > 1 else ""
            points.append(charts.MapPoint(sheet.name, x.value, y.value, bounds_of(x), bounds_of(y), at, remark))
            words = (f"{noun} {interval(m.value, m.low, m.high, 3)}" for noun, m in zip(measures, (x, y), strict=True))
            judges.append(JudgeWords(at, sheet.name, ", ".join(words)))
    note += f" Not drawn, because no pair has two usable replies: {listing(absent)}." if absent else ""
    return b.plot(
        name, title, f"Lower left: no preference. Crosses are {level} intervals." if axes else caption,
        partial(charts.share_map, points, columns), judges=tuple(judges), note=note.strip(),
        table=b.Table(("Judge", names[0], "Interval", names[1], "Interval"), tuple(rows), frozenset({1, 2, 3, 4})),
    )  # fmt: skip


def parts_plot(sheets: Sequence[r.DatasheetIndex], *, focus: bool = True) -> b.Figure:
    """The decomposition of preferences: each judge's pairs by class."""
    log = all(s.is_log for s in sheets)
    title = "What becomes of a pair in both orders" if log else "Where false preference comes from"
    if not any(known(s.part("stable")) for s in sheets[: 1 if focus else None]):
        return b.Figure(title, r.missing_words(sheets[0].part("stable"), "the decomposition"))
    rows, cells, judges = list[charts.StackRow](), list[tuple[str, ...]](), list[JudgeWords]()
    for at, sheet in enumerate(sheets):
        if not known(sheet.part("stable")):
            continue
        pairs, raw = pair_counts(sheet), sheet.part("raw")
        noun = "preference" if sheet.is_log else "false preference"
        head = f"{noun} {r.of_n(raw, none='0')} calls = {number(raw.value)}" if known(raw) else ""
        rows.append((sheet.name, pairs, head, at))
        linked = (sheet.link(sheet.part(name), count(n)) for (name, _, _), n in zip(charts.PARTS, pairs, strict=True))
        cells.append((sheet.name, *linked, count(sum(pairs))))
        counts = ", ".join(f"{count(n)} {word}" for (_, word, _), n in zip(charts.PARTS, pairs, strict=True))
        judges.append(JudgeWords(at, sheet.name, f"{counts}, of {count(sum(pairs))} pairs"))
    columns = ("Judge", *(r.capital(word) for _, word, _ in charts.PARTS), "Pairs")
    noun, sizes = "pairs of the log" if log else "pairs of equal texts", sorted({sum(pairs) for _, pairs, _, _ in rows})
    shown = " to ".join(dict.fromkeys((count(sizes[0]), count(sizes[-1]))))
    return b.plot(
        "parts", title, f"{shown} {noun}, each in both orders. Figures are pairs.",
        partial(charts.stacks, rows, focus=focus), judges=tuple(judges),
        table=b.Table(columns, tuple(cells), _RIGHT),
        note=decomposition_sum(sheets[0]) if focus else _FORMULA.replace("False p", "P" if log else "False p"),
    )  # fmt: skip


def null_pairs_plot(sheet: r.DatasheetIndex) -> b.Figure:
    """The share of calls that named one text of null pairs, by kind, of nearly identical texts and of filler."""
    title = "How little is enough for a choice?"
    dark = [m for m in sheet.all("dark_current") if m.labels.get("prompt") == sheet.base]
    graded = [m for m in sheet.all("graded_vacuum") if m.labels.get("prompt") == sheet.base]
    kinds = [m for m in dark if "variant" in m.labels] or dark
    variants = [(r.capital(r.kind_words(m.labels.get("variant", "vacuum"))), m) for m in (*kinds, *graded)]
    filler, note = sheet.get_base("filler.preference"), ""
    variants += [] if filler is None else [("Filler: more words, nothing met", filler)]
    if not any(known(m) for _, m in variants):
        first = variants[0][1] if variants else None
        return b.Figure(title, r.missing_words(first, "preference between nearly equal texts"))
    rows = []
    for words, m in variants:
        shown = f"{r.of_n(m)}, {r.share_words(m)}" if known(m) else state_words(m)
        rows.append(AxisRow(words, shown, "", m.value, bounds_of(m), "mh"))
    cells = tuple((words, *r.value_cells(sheet, m)) for words, m in variants)
    if known(filler):
        against = t.count_in(filler, "against", "", "; ", " preferred the shorter text")
        note = f"Filler: {count(r.hits(filler))} of {count(filler.n)} calls preferred the padded text{against}."
    return b.plot(
        "near", title,
        "Share of calls that named one of two texts (filler: the padded one), with intervals over tasks.",
        partial(charts.dots, rows, shares=True), described(rows),
        table=b.Table(("Texts", "Share", "Interval", "n"), cells, frozenset({1, 2, 3})), note=note,
    )  # fmt: skip


def pair_counts(sheet: r.DatasheetIndex) -> tuple[int, ...]:
    """The number of pairs in each class of `PARTS`; 0 for classes that were not measured."""
    parts = (sheet.part(name) for name, _, _ in charts.PARTS)
    return tuple(int(m.detail.get("pairs") or round(m.value * m.n)) if known(m) else 0 for m in parts)


def decomposition_sum(sheet: r.DatasheetIndex) -> str:
    """The sum, in words and numbers, of the parts of the decomposition: the calls that named a text."""
    stable, other = sheet.part("stable"), sheet.part("other")
    if not known(stable):
        return ""
    both, rest = pair_counts(sheet), round((other.value if known(other) else 0.0) * 2 * stable.n)
    calls = [2 * both[0], 2 * both[1], both[2], rest]
    noun = "Preference" if sheet.is_log else "False preference"
    formula = _FORMULA.replace("False preference", noun)
    total = f"In calls: {' + '.join(map(count, calls))} = {count(sum(calls))} of {count(2 * stable.n)}."
    share = f"{noun} is {number(sum(calls) / (2 * stable.n), 3)}." if stable.n else ""
    return f"{formula} {total} {share}".rstrip()


def flip_note(sheet: r.DatasheetIndex) -> str:
    """The flip rate that other tools print, with the number of pairs that it ignores."""
    flips = sheet.part("flip_rate")
    if flips is None:
        return ""
    one_sided = flips.detail.get("one_sided_pairs")
    alone = f"the {counted(one_sided, 'pair')}" if isinstance(one_sided, int) else "pairs"
    hides = f"it hides {alone} with a preference in one order only"
    if one_sided == 0:
        hides = "it would hide pairs with a preference in one order only; here are none"
    shown = state_words(flips) if flips.value is None else f"{r.of_n(flips)} ({number(flips.value)})"
    return sentence(f"Flip rate among decided pairs, the number other tools print, is {shown}; {hides}")


def preference_answer(sheet: r.DatasheetIndex) -> str:
    """The lead sentence of the section on false preferences."""
    texts = "the pairs of the log" if sheet.is_log else "equal texts"
    shares = ((sheet.get_base("dark_current"), "with nothing to choose between"), (sheet.part("raw"), f"on {texts}"))
    named = [f"in {r.of_n(m)} calls {setting}" for m, setting in shares if known(m)]
    return f"It named a text {listing(named)}." if named else "Nothing of this was measured."


# --- the ladder and the strict instruction ----------------------------------------------------------------------------


ONE = 1.0
_RATES = (
    ("sensitivity", "Picks the better"), ("tie_rate", "Ties"), ("wrong_rate", "Picks the worse"),
    ("conditional_accuracy", "Right when decided"), ("d_prime", "d′"),
)  # fmt: skip


def curve_plot(sheets: Sequence[r.DatasheetIndex]) -> b.Figure:
    """Sensitivity along the quality ladder, with the threshold of the first judge on the axis."""
    title = "How big a difference it notices"
    curves = [curve_of(s, at, foot=at == 0) for at, s in enumerate(sheets)]
    if not curves[0].points:
        base = sheets[0].base
        first = next((m for m in sheets[0].all("sensitivity") if m.labels.get("prompt") == base), None)
        return b.Figure(title, r.missing_words(first, "sensitivity"))
    shown = [curve for curve in curves if curve.points]
    of_whom = f" of {sheets[0].name}" if len(shown) > charts.BARRED else ""
    rows = [
        (s.name, r.step_words(delta), *r.value_cells(s, m)[:2], r.of_n(m, none="0"))
        for s in sheets
        for delta, m in s.steps("sensitivity", s.base).items()
    ]
    # The thresholds of the peers in words, and the meaning of bounds.
    parts = [f"{s.name}: {threshold_line(s)}" for s in sheets[1:] if known(s.get_base("threshold"))]
    remarks = [f"Thresholds of peers: {'; '.join(parts)}."] if parts else []
    censored = {m.detail.get("censored") for s in sheets if known(m := s.get_base("threshold"))}
    if "left" in censored:
        remarks.append("≤ means that the smallest step shown was noticed already.")
    if "right" in censored:
        remarks.append("> means that no step shown was noticed three times of four.")
    return b.plot(
        "curve", title, f"Bars: intervals over tasks{of_whom}. Dashed line: the 75 % level that defines the threshold.",
        partial(charts.curves, shown), note=" ".join(remarks),
        judges=tuple(judge for judge, curve in zip(curve_words(sheets), curves, strict=True) if curve.points),
        table=b.Table(("Judge", "Texts are apart", "Picks the better", "Interval", "Calls"), tuple(rows),
                    frozenset({2, 3, 4})),
    )  # fmt: skip


def curve_words(sheets: Sequence[r.DatasheetIndex]) -> tuple[JudgeWords, ...]:
    """The share at each step and the threshold of every judge, in words."""
    judges = []
    for at, sheet in enumerate(sheets):
        steps = sheet.steps("sensitivity", sheet.base)
        shares = [", ".join(f"{r.step_words(delta)} {percent(m.value)}" for delta, m in steps.items())]
        words = "; ".join([*filter(None, shares), f"75 % threshold {threshold_line(sheet)}"])
        judges.append(JudgeWords(at, sheet.name, words))
    return tuple(judges)


def curve_of(sheet: r.DatasheetIndex, at: int, *, foot: bool = False) -> charts.Curve:
    """A judge's curve, with its threshold if ``foot`` is set; without points if the ladder was not run."""
    steps = sheet.steps("sensitivity", sheet.base)
    points = tuple((delta, m.value, bounds_of(m)) for delta, m in steps.items())
    threshold = sheet.get_base("threshold")
    if not foot or not known(threshold):
        return charts.Curve(sheet.name, points, at)
    censored, ends = cast(Literal["left", "right"] | None, threshold.detail.get("censored")), bounds_of(threshold)
    text = f"detects {r.value_words(threshold)}"
    text += f" ({r.interval_words(threshold)})" if ends and not censored else ""
    censored = censored if censored in ("left", "right") else None
    return charts.Curve(sheet.name, points, at, (threshold.value, ends, censored, text))


def ladder_table(sheet: r.DatasheetIndex) -> b.Table | None:
    """All rates at every step, prompt by prompt, including undefined ones; None if the ladder was not run."""
    rows = []
    for prompt in dict.fromkeys((sheet.base, *sheet.sheet.arms)):
        run = sheet.steps("sensitivity", prompt)
        by_name = {
            name: {
                float(m.labels["delta"]): m
                for m in sheet.all(name)
                if m.labels.get("prompt") == prompt and float(m.labels["delta"]) in run
            }
            for name, _ in _RATES
        }
        for delta in sorted(by_name["sensitivity"]):
            cells = []
            for name, _ in _RATES:
                m = by_name[name].get(delta)
                ends = f" ({r.interval_words(m)})" if known(m) and bounds_of(m) else ""
                cells.append("not measured" if m is None else sheet.link(m, f"{r.value_words(m)}{ends}"))
            calls = count(by_name["sensitivity"][delta].n)
            rows.append((f"{r.step_words(delta)}, {r.arm_words(prompt)}", *cells, calls))
    columns = ("Texts are apart by", *(head for _, head in _RATES), "Calls")
    return b.Table(columns, tuple(rows), frozenset(range(1, len(columns)))) if rows else None


def sensitivity_answer(sheet: r.DatasheetIndex) -> str:
    """The lead sentence of the section on sensitivity."""
    threshold = sheet.get_base("threshold")
    if not known(threshold):
        return r.missing_words(threshold, "the detection threshold")
    censored, step, size = threshold.detail.get("censored"), r.step_words(threshold.value), r.value_words(threshold)
    if censored == "left":
        return f"At the smallest difference shown, {step}, three calls of four are right already."
    if censored == "right":
        return f"At no difference shown, up to {step}, are three calls of four right."
    return f"Three calls of four are right at a difference of {size} requirement{'' if size == '1.00' else 's'}."


def threshold_line(sheet: r.DatasheetIndex) -> str:
    """A threshold with its interval, or the reason why there is none."""
    threshold = sheet.get_base("threshold")
    if not known(threshold):
        return r.missing_words(threshold, "the threshold").rstrip(".")
    return f"{r.value_words(threshold)} ({r.interval_words(threshold)})"


def segment_plot(sheet: r.DatasheetIndex) -> b.Figure:
    """Two operating points: false preference against sensitivity one requirement apart."""
    title = "What being strict about ties gives and takes"
    base, strict = operating_point(sheet, sheet.base), operating_point(sheet, STRICT)
    if strict is None or base is None:
        shift = next((m for m in sheet.all("criterion.shift") if m.value is None), None)
        reason = "The strict instruction was not run on equal texts and on the ladder."
        return b.Figure(title, r.missing_words(shift, "the criterion shift") if shift else reason)
    rows = []
    for prompt in (sheet.base, STRICT):
        raw, noticed = sheet.part("raw", prompt), sheet.steps("sensitivity", prompt)[ONE]
        cells = (r.value_cells(sheet, m)[:2] for m in (raw, noticed) if m is not None)
        rows.append((r.arm_words(prompt), *chain.from_iterable(cells)))
    columns = ("Instruction", "False preference", "Interval", "Picks the better, one apart", "Interval")
    # The outcomes at small differences under the strict prompt, and at the largest.
    steps, wrong, ties = (sheet.steps(name, STRICT) for name in ("sensitivity", "wrong_rate", "tie_rate"))
    lost = []
    if ONE in ties and ONE in wrong:
        lost.append(
            f"One requirement apart the strict prompt gives {count(r.hits(ties[ONE]))} ties and "
            f"{count(r.hits(wrong[ONE]))} wrong choices in {count(ties[ONE].n)} calls."
        )
    if steps and max(steps) > ONE:
        most = max(steps)
        lost.append(f"{r.capital(r.step_words(most))} apart it picks the better text in {r.of_n(steps[most])}.")
    points = ((p.name, percent(p.x), percent(p.y)) for p in (base, strict))
    return b.plot(
        "segment", title, "Two operating points joined by a segment, with their intervals. This is not an ROC curve.",
        partial(charts.segment, base, strict), note=" ".join(lost),
        desc="; ".join(f"{name}: false preference {x}, picks the better text {y}" for name, x, y in points),
        table=b.Table(columns, tuple(rows), frozenset({1, 2, 3, 4})),
    )  # fmt: skip


def operating_point(sheet: r.DatasheetIndex, prompt: str) -> charts.MapPoint | None:
    """The operating point under a prompt; None unless both of its shares were measured."""
    raw, noticed = sheet.part("raw", prompt), sheet.steps("sensitivity", prompt).get(ONE)
    if not known(raw) or noticed is None:
        return None
    return charts.MapPoint(r.arm_words(prompt), raw.value, noticed.value, bounds_of(raw), bounds_of(noticed))


# Every measurement as a row, with the planted value for a built-in judge.


_PLACES: Final[Mapping[str, int]] = {name: at for at, name in enumerate(quantities("datasheet"))}
_MAIN = ("dark_current", "delta0.raw", "delta0.stable", "delta0.positional", "delta0.one_sided", "sensitivity",
        "threshold", "filler.preference", "criterion.shift", "pair.invalid_share")  # fmt: skip


def measurement_table(sheet: r.DatasheetIndex, lineage: Lineage = lambda _: ()) -> b.Table:
    """All measurements by kind, prompt and step; ``lineage`` gives the answers that one was computed from."""
    planted, rows, leads = sheet.sheet.planted or {}, [], False
    for m in sorted(sheet.rows, key=_row_order):
        state, _, reason = state_words(m).partition(": ") if m.value is None else ("", "", "")
        value, links, method = planted.get(m.id), lineage(m), clean(m.method, 220)
        outside = " (outside)" if value is not None and bounds_of(m) and not _inside(m, value) else ""
        leads = leads or bool(links)
        if sheet.is_log:  # of a log's texts only identity is known
            method = method.replace("false preference", "preference")
            method = method.replace("vacuum calls", "calls with one text in both slots")
        if isinstance(wilson := m.detail.get("wilson"), Mapping):
            low, high = as_float(wilson.get("low")), as_float(wilson.get("high"))
            if low is not None and high is not None:
                method += f"; Wilson over calls {span(low, high, 3)}"
        cells: tuple[b.Inline, ...] = (
            (r.title_of(m.name, log=sheet.is_log), b.small(r.subject_words(m, log=sheet.is_log))),
            b.Styled(state, "un") if state else r.value_words(m),
            *(("" if value is None else f"{number(value, 3)}{outside}",) if planted else ()),
            b.Styled(reason or "no reason given", "un") if state else r.interval_words(m),
            n_words(m), (f"{method} ", b.chained(links)) if links else method,
        )  # fmt: skip
        rows.append(b.PageRow(cells, r.row_anchor(m), r.quantity(m.name)["group"]))
    words = {**r.GROUPS, **({"equal": "Pairs", "vacuum": "Null pairs"} if sheet.is_log else {})}
    # The level of the intervals, if it is the same for all.
    levels = {m.level for m in sheet.sheet.measurements if m.level is not None}
    level = f"{percent(levels.pop())} interval" if len(levels) == 1 else "Interval"
    method = "Method, and what it rests on" if leads else "Method"
    columns = ("Quantity", "Estimate", *(("Planted",) if planted else ()), level, "n", method)
    return b.Table(
        columns, tuple(rows), frozenset((1, 2)) if planted else frozenset((1,)), summary="", stacked=True,
        id="every-rows", style="pl" if planted else "", filters=b.row_filters([row.key for row in rows], words),
        search="measurements",
    )  # fmt: skip


def planted_section(sheet: r.DatasheetIndex) -> b.Section | None:
    """The planted values compared with the measured intervals; None for a judge without planted values."""
    planted, measured = sheet.sheet.planted, {m.id for m in sheet.sheet.measurements}
    if not planted:
        return None
    pairs = [(m, planted[m.id]) for m in sheet.sheet.measurements if m.id in planted]
    rows: list[tuple[b.Inline, ...]] = []
    for m, value in sorted(pairs, key=lambda pair: _row_order(pair[0])):
        labels, ends = m.labels, bounds_of(m)
        main = (
            m.name in _MAIN and "variant" not in labels and labels.get("delta", "1") in ("0.5", "1", "5")
            and labels.get("condition", sheet.condition) in (sheet.condition, "ladder")
            and labels.get("prompt", sheet.base) == sheet.base
        )  # fmt: skip
        if main or (ends is not None and not _inside(m, value)):
            inside = "yes" if _inside(m, value) else "no"
            if ends is None:
                inside = "no interval" if known(m) else state_words(m)
            rows.append((", ".join(filter(None, (r.title_of(m.name), r.subject_words(m)))), number(value, 3),
                         sheet.link(m, r.value_words(m)), r.interval_words(m) if known(m) else "none",
                         inside))  # fmt: skip
    remark = "are in the table of every measurement; here the main ones and all outside."
    remarks = [f"{count(len(pairs))} planted values {remark}"]
    unmatched = sorted(key for key in planted if key not in measured)
    rows += [(clean(key, 100), number(planted[key], 3), "not measured", "none", "not read") for key in unmatched[:20]]
    if unmatched[20:]:
        remarks.append(f"{count(len(unmatched) - 20)} more planted values have no measurement.")
    columns = ("Quantity", "Planted", "Measured", "Interval", "Inside")
    table = b.Table(columns, tuple(rows), frozenset({1, 2, 3}), "", stacked=True)
    # The number of planted values inside the intervals.
    read = [_inside(m, value) for m, value in pairs if bounds_of(m) is not None]
    answer = "No planted value has a measured interval."
    if read:
        answer = (
            f"{count(sum(read))} of {count(len(read))} planted values lie inside the measured interval; at 95 % up to "
            "one of twenty may lie outside."
        )
    return b.Section("planted", "Planted and measured values", answer, (table, *b.notes(remarks)))


def _row_order(measurement: Measurement) -> tuple[object, ...]:
    labels, delta = measurement.labels, measurement.labels.get("delta", "")
    step = float(delta) if delta.replace(".", "", 1).isdigit() else 0.0
    kind, other = _PLACES.get(measurement.name, len(_PLACES)), labels.get("condition", "") != r.SAME
    return labels.get("prompt") == STRICT, kind, other, "variant" in labels, step, measurement.id


def _inside(measurement: Measurement, value: float) -> bool:
    ends = bounds_of(measurement)
    return ends is not None and ends[0] - 1e-9 <= value <= ends[1] + 1e-9


# --- other sections: one text at a time, agreement with people, repeatability, and drift ------------------------------


_ROWS: Final = 12
_LESS: Final = ("different_subset", "delta=2", "delta=3", "delta=4")
_VERDICTS: Final = {
    "same instrument": "No shift was found", "shifted": "The judge has shifted",
    "not comparable": "The two datasheets cannot be compared",
}  # fmt: skip
_POINTS: Final = (
    ("vacuum_score", "What does it give for nothing?", "Mean score of texts without content",
     "a text without content gets {} points"),
    ("slope", "What is a requirement worth?", "Score points per requirement met",
     "a requirement met is worth {} points"),
    ("verbosity", "What is length alone worth?", "Score points per 100 words of filler",
     "100 words that say nothing are worth {} points"),
)  # fmt: skip


def topic_sections(sheet: r.DatasheetIndex) -> list[b.Section]:
    """A section for each of these topics that the datasheet has measurements of."""
    sections = [_pointwise(sheet)]
    # The agreement of the judge with people, and of two people.
    graded = [m for name in ("kappa", "ceiling", "icc", "bias", "tpr", "tnr") for m in sheet.all(f"human.{name}")]
    if graded:
        whole = {m.name: m for m in graded if m.labels.get("dimension") == AGGREGATE}
        measurement, two = (whole.get(f"human.{name}") for name in ("kappa", "ceiling"))
        answer = "On the overall score not measured."
        if known(measurement):
            answer = f"On the overall score it agrees with people at κ {r.value_words(measurement)}"
            answer += f"; two people agree at {r.value_words(two)}." if known(two) else "."
        note = (
            "People are no ground truth: a judge is as good as a person where its interval reaches that of two people."
        )
        every = _quantities(sheet, graded)
        sections.append(b.section("people", "Does it grade as people do?", answer, b.notes((note,)), every))
    # Repeatability: the share of equal outcomes in two trials.
    again, title = sheet.get("repeat.stability"), "Does it answer alike when asked again?"
    if again is not None and not known(again):
        sections.append(b.section("repeat", title, r.missing_words(again, "repeat stability")))
    elif again is not None:
        kappa, low, high = (t.detail_of(again, key) for key in ("kappa", "kappa_low", "kappa_high"))
        beyond = "Agreement beyond chance is not defined here. A judge that always ties is stable, too."
        if kappa is not None:
            shown = interval(kappa, low, high)
            beyond = f"Beyond chance, unweighted κ between trials is {shown}. A judge that always ties is stable, too."
        answer = f"Two trials of one question gave the same outcome in {r.share_words(again)} of cases."
        over = f"Over {n_words(again)}: {clean(again.method, 200)}."
        sections.append(b.section("repeat", title, answer, b.notes((over, beyond))))
    return [section for section in (*sections, _drift(sheet)) if section is not None]


def _dimension(measurement: Measurement) -> str:
    return r.capital(clean(measurement.labels.get("dimension", "score").replace("_", " "), 60))


def _quantities(sheet: r.DatasheetIndex, measured: Sequence[Measurement]) -> b.Table:
    rows = tuple((r.title_of(m.name), _dimension(m), *r.value_cells(sheet, m)) for m in measured)
    columns = ("Quantity", "Dimension", "Estimate", "Interval", "n")
    return b.Table(columns, rows, frozenset({2, 3, 4}), "All of it as a table")


def _pointwise(sheet: r.DatasheetIndex) -> b.Section | None:
    """The section on scores of single texts: for no content, per requirement met, and for length alone."""
    orders, plots, parts, every = list(sheet.all("point.order")), list[b.Figure](), list[str](), False
    for name, title, caption, template in _POINTS:
        items = list(sheet.all(f"point.{name}"))
        every = every or bool(items)
        if not (values := [m.value for m in items if m.value is not None]):
            continue
        rows = []
        for m in items:
            shown = r.value_words(m) + (t.interval_of(m) if known(m) else "")
            rows.append(AxisRow(_dimension(m), shown, "", m.value, bounds_of(m), "mh"))
        key, line = ("floor", None) if name == "vacuum_score" else (name, 0.0)
        cells = tuple((_dimension(m), *r.value_cells(sheet, m)) for m in items)
        table = b.Table(("Dimension", "Estimate", "Interval", "n"), cells, frozenset({1, 2, 3}))
        draw = partial(charts.dots, rows, against=line)
        plots.append(b.plot(key, title, f"{caption}, with intervals over tasks.", draw, described(rows), table))
        parts.append(template.format(number(values[0]) if len(values) == 1 else span(min(values), max(values))))
    if not every and not orders:
        return None
    answer = "Neither its floor, nor its slope, nor its verbosity is defined."
    if parts:
        answer = f"By dimension, {listing(parts)}."
    terms = [f"{_dimension(m)} {percent(m.value)}" for m in orders if known(m)]
    lines = [f"Neighbouring steps in the right order, ties half: {', '.join(terms)}. Chance is 50 %."] if terms else []
    # The meaning of the length effect, and the number of pairs where the scale's end hides it.
    lengths = list(sheet.all("point.verbosity"))
    if effects := [m for m in lengths if known(m)]:
        lines.append("Length alone: 0 means no effect, 0.25 a quarter of a point for 100 words of filler.")
        alone = [m for m in effects if m.labels.get("dimension") != AGGREGATE]
        stuck, of = (sum(n for m in alone if isinstance(n := m.detail.get(key), int)) for key in ("at_ends", "pairs"))
        if stuck:
            lines.append(
                f"In {count(stuck)} of {count(of)} comparisons, over all dimensions, both scores are at one end of the "
                "scale, where length cannot have an effect: the estimate is too close to 0."
            )
    elif lengths:
        lines.append(f"What length alone is worth: {r.missing_words(lengths[0], 'it')}")
    listed = _quantities(sheet, orders) if orders else None
    figures = b.beside(*plots) if plots else None
    return b.section("pointwise", "How does it score one text at a time?", answer, figures, b.notes(lines), listed)


def _drift(sheet: r.DatasheetIndex) -> b.Section | None:
    """The section on drift from an older datasheet; None if they were not compared."""
    shifts, verdict = list(sheet.all("drift")), sheet.get("drift.verdict")
    if not shifts and verdict is None:
        return None
    listed = verdict.detail.get("shifted", []) if verdict is not None else []
    moved = frozenset(map(str, listed)) if isinstance(listed, (list, tuple)) else frozenset()

    def rank(measurement: Measurement) -> tuple[bool, bool, bool]:
        of = measurement.labels.get("of", "")
        return of not in moved, "prompt=" in of, any(word in of for word in _LESS)

    # The figure first shows shifted quantities, then the base prompt on texts that differ only in wording.
    chosen, drawn, cells = sorted(shifts, key=rank)[:_ROWS], list[AxisRow](), list[tuple[str, ...]]()
    for m in shifts:
        of, holm = m.labels.get("of", ""), t.p_of(m, "p_holm", otherwise="not given")
        parts = (t.detail_of(m, key) for key in ("old", "new"))
        old, new = ("not given" if part is None else number(part, 3) for part in parts)
        if m in chosen:
            change = r.value_words(m) + t.interval_of(m, lambda low, high: span(low, high, 3))
            filled: LevelMark = "mh" if of in moved else "mn"
            drawn.append(AxisRow(r.drift_subject(of), f"{old} to {new}, {change}", "", m.value, bounds_of(m), filled))
        holm = holm.removeprefix("p ").removeprefix("= ")
        cells.append((r.drift_subject(of), old, new, *r.value_cells(sheet, m)[:2], holm, n_words(m)))
    answer = "No verdict was given on the differences below." if verdict is None else drift_answer(verdict)
    figures = None
    if any(row.value is not None for row in drawn):
        columns = ("Quantity", "Old", "New", "New minus old", "Interval", "p, Holm", "n")
        table = b.Table(columns, tuple(cells), frozenset(range(1, 7)))
        caption = "New minus old with its interval. Filled: shifted after Holm’s adjustment."
        draw = partial(charts.dots, drawn, against=0.0)
        figures = b.beside(b.plot("drift", "How far has each quantity moved?", caption, draw, described(drawn), table))
    note = f"The figure draws {len(drawn)} of {len(shifts)}: all that shifted come first; the table has the rest."
    remarks = (note,) if len(drawn) < len(shifts) else ()
    return b.section("drift", "Has the judge changed?", answer, figures, b.notes(remarks))


def drift_answer(verdict: Measurement) -> str:
    """The verdict on the differences from an older datasheet, in words: a ``drift.verdict``."""
    detail: Mapping[str, Any] = verdict.detail
    word = str(detail.get("verdict", "")) or clean(verdict.state, 120)
    said = _VERDICTS.get(word, clean(word, 60).capitalize())
    alpha, tests, widest = (detail.get(key) for key in ("alpha", "tests", "widest"))
    size = f"{count(tests)} quantities compared" if isinstance(tests, int) else "the quantities compared"
    size += f", level {alpha:g}" if isinstance(alpha, (int, float)) else ""
    if word == "not comparable":
        return f"{said}: {clean(verdict.state, 200).removeprefix('not measured: not comparable, ')}."
    if word == "shifted":
        named = sorted(r.drift_subject(str(of)) for of in detail.get("shifted", ()))
        more = f" and {count(len(named) - 4)} more" if len(named) > 4 else ""
        return f"{said} in {'; '.join(named[:4])}{more} ({size})."
    possible = f" A shift of up to {number(widest, 2)} is still possible." if isinstance(widest, float) else ""
    return f"{said} ({size}).{possible}"
