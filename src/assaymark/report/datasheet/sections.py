"""What a judge notices when there is something to see: the ladder, its threshold, and the strict instruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Literal, cast

from assaymark.metrology.datasheet import STRICT
from assaymark.records import Measurement
from assaymark.report.blocks import Table
from assaymark.report.charts.datasheet_axes import Heads, MapPoint, Operating, segment, share_map
from assaymark.report.charts.datasheet_marks import (
    BARRED,
    PARTS,
    Curve,
    CurvePoint,
    DotRow,
    Foot,
    StackRow,
    axis_of,
    curves,
    dots,
    stacks,
)
from assaymark.report.charts.intervals import JudgeWords, told
from assaymark.report.datasheet.reading import Opened, bounds, hits, known, of_n
from assaymark.report.datasheet.wording import (
    Missing,
    Plot,
    arm_words,
    interval_words,
    missing_words,
    n_words,
    share_words,
    step_words,
    threshold_words,
    value_words,
    variant_words,
)
from assaymark.report.text import counted, interval, listing, sentence, state_words
from assaymark.text import count, number, percent

# What a judge does when it should not choose: vacuum, equal texts, nearly equal texts, filler.


_FORMULA = "False preference = stable + positional + one-sided / 2 + other, in shares of pairs."
_RIGHT = frozenset({1, 2, 3, 4, 5, 6})


def axes_plot(sheets: Sequence[Opened], name: str = "axes", *, focus: bool = True) -> Plot | Missing:
    """Dark current against stable cross-sensitivity; with ``focus`` the page is about the first sheet."""
    title = "Nothing to choose, and only wording to choose by"
    pairs = [(s, known(s.base_one("dark_current")), known(s.part("stable"))) for s in sheets]
    points = _map_points(
        [(s.name, at, dark, stable) for at, (s, dark, stable) in enumerate(pairs)], focus and len(sheets) > 1
    )
    lead, dark, stable = _lead(pairs, focus)
    if dark is None:
        return Missing(title, missing_words(lead.base_one("dark_current"), "dark current"))
    if stable is None:
        return Missing(title, missing_words(lead.part("stable"), "stable cross-sensitivity"))
    judges = _map_words(pairs, "dark current", "stable cross-sensitivity")
    heads = Heads("Dark current: chooses with nothing to choose", "Swayed by wording alone (stable)")
    return Plot(
        name=name,
        title=title,
        caption=f"Lower left is quiet. Crosses are {_level(dark)} intervals.",
        desc=told(judges),
        judges=judges,
        draw=lambda _, width: share_map(points, heads, width),
        table=_map_table(pairs, "Dark current", "Stable cross-sensitivity"),
    )


def scatter_plot(sheets: Sequence[Opened], name: str = "scatter", *, focus: bool = True) -> Plot | Missing:
    """Positional against stable pairs: where a preference between equal texts comes from."""
    log = all(s.is_log for s in sheets)
    title = "By place, or by text?" if log else "By place, or by wording?"
    pairs = [(s, known(s.part("positional")), known(s.part("stable"))) for s in sheets]
    lead, positional, stable = _lead(pairs, focus)
    if positional is None or stable is None:
        return Missing(title, missing_words(lead.part("stable"), "the decomposition"))
    points = _map_points([(s.name, at, x, y) for at, (s, x, y) in enumerate(pairs)], focus and len(sheets) > 1)
    heads = Heads("Same slot wins in both orders", "Same text wins in both orders")
    judges = _map_words(pairs, "positional", "stable")
    says = "The texts of a log may differ in quality: the upper left is then what a steady judge looks like."
    return Plot(
        name=name,
        title=title,
        caption=f"Shares of pairs shown in both orders, with {_level(positional)} intervals.",
        desc=told(judges),
        judges=judges,
        draw=lambda _, width: share_map(points, heads, width),
        table=_map_table(pairs, "Same slot", "Same text"),
        note=says if log else "",
    )


def parts_plot(sheets: Sequence[Opened], name: str = "parts", *, focus: bool = True) -> Plot | Missing:
    """The decomposition: each judge's pairs by class."""
    log = all(s.is_log for s in sheets)
    title = "What becomes of a pair in both orders" if log else "Where false preference comes from"
    if not any(known(s.part("stable")) for s in sheets[: 1 if focus else None]):
        return Missing(title, missing_words(sheets[0].part("stable"), "the decomposition"))
    rows = [
        StackRow(s.name, pair_counts(s), _raw_head(s), focus and not at, at)
        for at, s in enumerate(sheets)
        if known(s.part("stable"))
    ]
    heads = ("Judge", *(word[0].upper() + word[1:] for _, word, _ in PARTS), "Pairs")
    cells = [(row.name, *_class_cells(sheets[row.at], row), count(sum(row.pairs))) for row in rows]
    judges = tuple(JudgeWords(row.at, row.name, _parts_words(row)) for row in rows)
    pairs = count(sum(rows[0].pairs))
    what = "pairs of the log" if log else "pairs of equal texts"
    return Plot(
        name=name,
        title=title,
        caption=f"{pairs} {what}, each in both orders. Figures are pairs.",
        desc=told(judges),
        judges=judges,
        draw=lambda key, width: stacks(key, rows, width),
        table=Table(heads, tuple(cells), _RIGHT),
        note=identity(sheets[0]) if focus else _FORMULA.replace("False p", "P" if log else "False p"),
    )


def near_plot(sheet: Opened, name: str = "near") -> Plot | Missing:
    """Each kind of vacuum, nearly identical texts and filler: how often a slot was named although nothing differs."""
    title = "How little is enough for a choice?"
    found = _near(sheet)
    if not any(known(m) for _, m in found):
        return Missing(title, missing_words(found[0][1] if found else None, "preference between nearly equal texts"))
    rows = [DotRow(words, m.value, bounds(m), _near_text(m)) for words, m in found]
    cells = [(words, sheet.to(m, value_words(m)), interval_words(m), n_words(m)) for words, m in found]
    return Plot(
        name=name,
        title=title,
        caption="Share of calls that named one of two texts (filler: the padded one), with intervals over tasks.",
        desc="; ".join(f"{row.title}: {row.text}" for row in rows),
        draw=lambda _, width: dots(rows, axis_of(rows, shares=True), width),
        table=Table(("Texts", "Share", "Interval", "n"), tuple(cells), frozenset({1, 2, 3})),
        note=_filler_note(sheet),
    )


def pair_counts(sheet: Opened) -> tuple[int, ...]:
    """How many pairs are in each class of `PARTS`; classes that were not measured have none."""
    parts = (known(sheet.part(name)) for name, _, _ in PARTS)
    return tuple(0 if m is None else int(m.detail.get("pairs") or round((m.value or 0) * m.n)) for m in parts)


def identity(sheet: Opened) -> str:
    """In words and numbers, that the parts of the decomposition make up the calls that named a slot."""
    stable, other = known(sheet.part("stable")), known(sheet.part("other"))
    if stable is None:
        return ""
    both = pair_counts(sheet)
    rest = round((0.0 if other is None or other.value is None else other.value) * 2 * stable.n)
    calls = [2 * both[0], 2 * both[1], both[2], rest]
    what = "Preference" if sheet.is_log else "False preference"
    formula = _FORMULA.replace("False preference", what)
    total = f"In calls: {' + '.join(map(count, calls))} = {count(sum(calls))} of {count(2 * stable.n)}."
    share = f"{what} is {number(sum(calls) / (2 * stable.n), 3)}." if stable.n else ""
    return f"{formula} {total} {share}".rstrip()


def flip_note(sheet: Opened) -> str:
    """The number that other tools print, with what it hides."""
    flips = sheet.part("flip_rate")
    if flips is None:
        return ""
    one_sided = flips.detail.get("one_sided_pairs")
    alone = f"the {counted(one_sided, 'pair')}" if isinstance(one_sided, int) else "pairs"
    hides = f"it hides {alone} with a preference in one order only"
    if one_sided == 0:
        hides = "it would hide pairs with a preference in one order only; here are none"
    if flips.value is None:
        return sentence(
            f"Flip rate among decided pairs, the number other tools print, is {state_words(flips)}; {hides}"
        )
    shown = f"{of_n(flips)} ({number(flips.value)})"
    return sentence(f"Flip rate among decided pairs, the number other tools print, is {shown}; {hides}")


def slot_note(sheet: Opened) -> str:
    """Which slot won where one slot won in both orders."""
    slot = known(sheet.part("slot_1_share"))
    return "" if slot is None else f"Where one slot won in both orders, it was slot 1 in {of_n(slot)} pairs."


def quiet_answer(sheet: Opened) -> str:
    """One sentence for the head of the section."""
    dark, raw = known(sheet.base_one("dark_current")), known(sheet.part("raw"))
    parts = []
    if dark:
        parts.append(f"in {of_n(dark)} calls with nothing to choose between")
    if raw:
        parts.append(f"in {of_n(raw)} calls on {'the pairs of the log' if sheet.is_log else 'equal texts'}")
    return f"It named a text {listing(parts)}." if parts else "Nothing of this was measured."


# --- parts ----------------------------------------------------------------------------------------------------------


Pair = tuple[Opened, Measurement | None, Measurement | None]


def _lead(found: Sequence[Pair], focus: bool) -> Pair:
    """The judge that decides whether a map can be drawn: that of the page, else the first that has both numbers."""
    return found[0] if focus else next((pair for pair in found if pair[1] and pair[2]), found[0])


def _map_points(
    found: Sequence[tuple[str, int, Measurement | None, Measurement | None]], focus: bool
) -> tuple[MapPoint, ...]:
    return tuple(
        MapPoint(
            name, x.value or 0.0, y.value or 0.0, bounds(x), bounds(y), at, "this judge" if focus and not at else ""
        )
        for name, at, x, y in found
        if x is not None and y is not None
    )


def _level(measurement: Measurement) -> str:
    return percent(measurement.level) if measurement.level is not None else "stated"


def _map_words(found: Sequence[Pair], x: str, y: str) -> tuple[JudgeWords, ...]:
    """What the map shows of each judge that has a mark on it."""
    said = partial(interval, digits=3)
    return tuple(
        JudgeWords(
            at, sheet.name, f"{x} {said(a.value or 0.0, a.low, a.high)}, {y} {said(b.value or 0.0, b.low, b.high)}"
        )
        for at, (sheet, a, b) in enumerate(found)
        if a is not None and b is not None
    )


def _map_table(found: Sequence[Pair], x: str, y: str) -> Table:
    rows = [(sheet.name, *_cells(sheet, a), *_cells(sheet, b)) for sheet, a, b in found]
    return Table(("Judge", x, "Interval", y, "Interval"), tuple(rows), frozenset({1, 2, 3, 4}))


def _cells(sheet: Opened, measurement: Measurement | None) -> tuple[str, str]:
    if measurement is None:
        return "not measured", "none"
    return sheet.to(measurement, value_words(measurement)), interval_words(measurement)


def _raw_head(sheet: Opened) -> str:
    raw = known(sheet.part("raw"))
    if raw is None:
        return ""
    what = "preference" if sheet.is_log else "false preference"
    return f"{what} {of_n(raw, none='0')} calls = {number(raw.value or 0.0)}"


def _class_cells(sheet: Opened, row: StackRow) -> Iterator[str]:
    """The pairs of each class, leading to its share."""
    for (name, _, _), n in zip(PARTS, row.pairs, strict=True):
        yield sheet.to(sheet.part(name), count(n))


def _parts_words(row: StackRow) -> str:
    parts = ", ".join(f"{count(n)} {word}" for (_, word, _), n in zip(PARTS, row.pairs, strict=True))
    return f"{parts}, of {count(sum(row.pairs))} pairs"


def _near(sheet: Opened) -> list[tuple[str, Measurement]]:
    """What the figure shows, top to bottom: vacuum by kind (or as a whole), nearly identical texts, filler."""
    dark = [m for m in sheet.every("dark_current") if m.labels.get("prompt") == sheet.base]
    kinds = [m for m in dark if "variant" in m.labels] or dark
    graded = [m for m in sheet.every("graded_vacuum") if m.labels.get("prompt") == sheet.base]
    found = [(_near_title(m), m) for m in chain(kinds, graded)]
    filler = sheet.base_one("filler.preference")
    return found if filler is None else [*found, ("Filler: more words, nothing met", filler)]


def _near_title(measurement: Measurement) -> str:
    words = variant_words(measurement.labels.get("variant", "vacuum"))
    return words[0].upper() + words[1:]


def _near_text(measurement: Measurement) -> str:
    if measurement.value is None:
        return state_words(measurement)
    return f"{of_n(measurement)}, {share_words(measurement)}"


def _filler_note(sheet: Opened) -> str:
    filler = known(sheet.base_one("filler.preference"))
    if filler is None:
        return ""
    against = filler.detail.get("against")
    left = f"; {count(against)} preferred the shorter text" if isinstance(against, int) else ""
    return f"Filler: {count(hits(filler))} of {count(filler.n)} calls preferred the padded text{left}."


ONE = 1.0
_RATES = (
    ("sensitivity", "Picks the better"),
    ("tie_rate", "Ties"),
    ("wrong_rate", "Picks the worse"),
    ("conditional_accuracy", "Right when decided"),
    ("d_prime", "d′"),
)


def curve_plot(sheets: Sequence[Opened], name: str = "curve") -> Plot | Missing:
    """Sensitivity along the ladder, with the threshold of the first judge on the axis."""
    title = "How big a difference it notices"
    found = [curve_of(s, at, foot=at == 0) for at, s in enumerate(sheets)]
    if not found[0].points:
        return Missing(title, missing_words(_first(sheets[0], "sensitivity"), "sensitivity"))
    shown = [curve for curve in found if curve.points]
    of_whom = f" of {sheets[0].name}" if len(shown) > BARRED else ""
    rows = [
        (s.name, step_words(delta), s.to(m, value_words(m)), interval_words(m), of_n(m, none="0"))
        for s in sheets
        for delta, m in s.steps("sensitivity", s.base).items()
    ]
    judges = _words(sheets)
    heads = ("Judge", "Texts are apart", "Picks the better", "Interval", "Calls")
    return Plot(
        name=name,
        title=title,
        caption=f"Bars: intervals over tasks{of_whom}. Dashed line: the 75 % level that defines the threshold.",
        desc=told(judges),
        judges=judges,
        draw=lambda _, width: curves(shown, width),
        table=Table(heads, tuple(rows), frozenset({2, 3, 4})),
        note=_thresholds(sheets),
    )


def segment_plot(sheet: Opened, at: int = 0, name: str = "segment") -> Plot | Missing:
    """Two operating points: false preference against sensitivity one requirement apart."""
    title = "What being strict about ties gives and takes"
    base, strict = operating(sheet, sheet.base), operating(sheet, STRICT)
    if strict is None or base is None:
        shift = next((m for m in sheet.every("criterion.shift") if m.value is None), None)
        why = missing_words(shift, "the criterion shift")
        return Missing(title, why if shift else "The strict instruction was not run on equal texts and on the ladder.")
    told = [(p.name, percent(p.x), percent(p.y)) for p in (base, strict)]
    return Plot(
        name=name,
        title=title,
        caption="Two operating points joined by a segment, with their intervals. This is not an ROC curve.",
        desc="; ".join(f"{name}: false preference {x}, picks the better text {y}" for name, x, y in told),
        draw=lambda _, width: segment(base, strict, at, width),
        table=_segment_table(sheet),
        note=strict_note(sheet),
    )


def operating(sheet: Opened, prompt: str) -> Operating | None:
    """The operating point of an arm, where both of its shares were measured."""
    raw, seen = known(sheet.part("raw", prompt)), sheet.steps("sensitivity", prompt).get(ONE)
    if raw is None or seen is None:
        return None
    return Operating(arm_words(prompt), raw.value or 0.0, seen.value or 0.0, bounds(raw), bounds(seen))


def curve_of(sheet: Opened, at: int, *, foot: bool = False) -> Curve:
    """A judge's curve; empty where the ladder was not run."""
    steps = sheet.steps("sensitivity", sheet.base)
    points = tuple(CurvePoint(delta, m.value or 0.0, bounds(m)) for delta, m in steps.items())
    threshold = known(sheet.base_one("threshold"))
    return Curve(sheet.name, points, at, _foot(threshold) if foot and threshold else None)


def ladder_table(sheet: Opened) -> Table | None:
    """All rates at every step, arm by arm."""
    rows = []
    for prompt in dict.fromkeys((sheet.base, *sheet.sheet.arms)):
        by_name = {name: _all_steps(sheet, name, prompt) for name, _ in _RATES}
        for delta in sorted(by_name["sensitivity"]):
            cells = (by_name[name].get(delta) for name, _ in _RATES)
            calls = by_name["sensitivity"][delta].n
            linked = (sheet.to(m, _cell(m)) for m in cells)
            rows.append((f"{step_words(delta)}, {arm_words(prompt)}", *linked, count(calls)))
    heads = ("Texts are apart by", *(head for _, head in _RATES), "Calls")
    return Table(heads, tuple(rows), frozenset(range(1, len(heads)))) if rows else None


def strict_note(sheet: Opened) -> str:
    """What the small differences were lost to, and what became of the largest one."""
    steps, wrong = sheet.steps("sensitivity", STRICT), sheet.steps("wrong_rate", STRICT)
    ties = sheet.steps("tie_rate", STRICT)
    parts = []
    if ONE in ties and ONE in wrong:
        parts.append(
            f"One requirement apart the strict prompt gives {count(hits(ties[ONE]))} ties and "
            f"{count(hits(wrong[ONE]))} wrong choices in {count(ties[ONE].n)} calls."
        )
    if steps and max(steps) > ONE:
        most = max(steps)
        parts.append(f"{_capital(step_words(most))} apart it picks the better text in {of_n(steps[most])}.")
    return " ".join(parts)


def seeing_answer(sheet: Opened) -> str:
    """One sentence for the head of the section."""
    threshold = sheet.base_one("threshold")
    if known(threshold) is None:
        return missing_words(threshold, "the detection threshold")
    assert threshold is not None
    assert threshold.value is not None
    censored, step = threshold.detail.get("censored"), step_words(threshold.value)
    if censored == "left":
        return f"At the smallest difference shown, {step}, three calls of four are right already."
    if censored == "right":
        return f"At no difference shown, up to {step}, are three calls of four right."
    said = threshold_words(threshold)
    return f"Three calls of four are right at a difference of {said} requirement{'' if said == '1.00' else 's'}."


def threshold_line(sheet: Opened) -> str:
    """A threshold with its interval, or why there is none."""
    threshold = sheet.base_one("threshold")
    if threshold is None or threshold.value is None:
        return missing_words(threshold, "the threshold").rstrip(".")
    ends = interval_words(threshold)
    return f"{threshold_words(threshold)} ({ends})"


# --- parts ----------------------------------------------------------------------------------------------------------


def _foot(threshold: Measurement) -> Foot:
    censored = cast(Literal["left", "right"] | None, threshold.detail.get("censored"))
    said = threshold_words(threshold)
    ends = bounds(threshold)
    text = f"detects {said}" + (f" ({interval_words(threshold)})" if ends and not censored else "")
    return Foot(threshold.value or 0.0, ends, censored if censored in ("left", "right") else None, text)


def _words(sheets: Sequence[Opened]) -> tuple[JudgeWords, ...]:
    """The share at each step and the threshold of every judge that has a curve."""
    found = []
    for at, sheet in enumerate(sheets):
        steps = sheet.steps("sensitivity", sheet.base)
        if steps:
            shares = ", ".join(f"{step_words(delta)} {percent(m.value or 0.0)}" for delta, m in steps.items())
            found.append(JudgeWords(at, sheet.name, f"{shares}; 75 % threshold {threshold_line(sheet)}"))
    return tuple(found)


def _thresholds(sheets: Sequence[Opened]) -> str:
    """The thresholds of the peers in words, and what a bound means."""
    parts = [f"{s.name}: {threshold_line(s)}" for s in sheets[1:] if known(s.base_one("threshold"))]
    said = [f"Thresholds of peers: {'; '.join(parts)}."] if parts else []
    censored = {m.detail.get("censored") for s in sheets if (m := known(s.base_one("threshold")))}
    if "left" in censored:
        said.append("≤ means that the smallest step shown was noticed already.")
    if "right" in censored:
        said.append("> means that no step shown was noticed three times of four.")
    return " ".join(said)


def _segment_table(sheet: Opened) -> Table:
    rows = []
    for prompt in (sheet.base, STRICT):
        raw, seen = sheet.part("raw", prompt), sheet.steps("sensitivity", prompt)[ONE]
        assert raw is not None
        cells = ((sheet.to(m, value_words(m)), interval_words(m)) for m in (raw, seen))
        rows.append((arm_words(prompt), *chain.from_iterable(cells)))
    heads = ("Instruction", "False preference", "Interval", "Picks the better, one apart", "Interval")
    return Table(heads, tuple(rows), frozenset({1, 2, 3, 4}))


def _first(sheet: Opened, name: str) -> Measurement | None:
    return next((m for m in sheet.every(name) if m.labels.get("prompt") == sheet.base), None)


def _all_steps(sheet: Opened, name: str, prompt: str) -> dict[float, Measurement]:
    """Every step of an arm, the undefined ones too, where the ladder was run at all."""
    run = sheet.steps("sensitivity", prompt)
    return {
        float(m.labels["delta"]): m
        for m in sheet.every(name)
        if m.labels.get("prompt") == prompt and float(m.labels["delta"]) in run
    }


def _cell(measurement: Measurement | None) -> str:
    if measurement is None or measurement.value is None:
        return "not measured" if measurement is None else value_words(measurement)
    ends = interval_words(measurement)
    return f"{value_words(measurement)} ({ends})" if ends != "no interval" else value_words(measurement)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
