"""What a judge notices when there is something to see: the ladder, its threshold, and the strict instruction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal, cast

from assaymark.metrology.datasheet import STRICT
from assaymark.records import Measurement
from assaymark.report.datasheet.figures import BARRED, Curve, CurvePoint, Foot, Operating, curves, segment
from assaymark.report.datasheet.plots import Missing, Plot
from assaymark.report.datasheet.reading import Opened, bounds, hits, known, of_n
from assaymark.report.datasheet.wording import (
    arm_words,
    interval_words,
    missing_words,
    step_words,
    threshold_words,
    value_words,
)
from assaymark.report.figures.judges import JudgeWords, told
from assaymark.report.formats import count, percent
from assaymark.report.tables import Table

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
