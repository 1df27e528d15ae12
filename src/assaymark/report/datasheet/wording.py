"""How the pages of a datasheet call things: measurements, conditions, steps and arms, and every value with its form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.metrology.datasheet import BASE, STRICT
from assaymark.records import Measurement
from assaymark.report.blocks import Beside, Figure, Group, Table, Text
from assaymark.report.charts.canvas import HALF, NARROW
from assaymark.report.charts.datasheet_marks import Panel
from assaymark.report.charts.intervals import JudgeWords, told
from assaymark.report.datasheet.reading import DatasheetIndex, bounds
from assaymark.report.text import signed, state_words, words
from assaymark.text import NBSP, clean, count_of, number, percent, prose, span

# A figure of a datasheet before it has a width: its words, its drawing, and the same numbers as a table.


Draw = Callable[[str, float], Panel]


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure: ``draw`` takes a name for its patterns and a width.

    ``desc`` says what is to be seen for those who cannot see it, ``note`` what has to be read with it. ``judges`` are
    the judges whose marks it holds, where there are several.
    """

    name: str
    title: str
    caption: str
    draw: Draw
    table: Table
    desc: str = ""
    note: str = ""
    judges: tuple[JudgeWords, ...] = ()

    @property
    def described(self) -> str:
        """What is to be seen; of several judges what each of them shows."""
        return self.desc or told(self.judges)

    @property
    def figure(self) -> Figure:
        """The figure for half a screen and for a phone."""
        wide, narrow = f"{self.name}-w", f"{self.name}-n"
        return Figure(
            self.title,
            self.caption,
            self.draw(wide, HALF).framed(wide, self.title, self.described, "wide"),
            self.draw(narrow, NARROW).framed(narrow, self.title, self.described, "narrow"),
            self.table,
            None,
            self.judges,
            self.note,
        )


@dataclass(frozen=True, slots=True)
class Missing:
    """A figure that cannot be drawn: its question, and in words why there is no answer."""

    title: str
    why: str


def plot_blocks(plots: Sequence[Plot | Missing]) -> Beside:
    """Figures beside each other; where one cannot be drawn, its question and why."""
    return Beside(
        tuple(
            (plot.figure,) if isinstance(plot, Plot) else (Group(plot.title, (Text(plot.why, "gone"),)),)
            for plot in plots
        )
    )


ARMS: Final[Mapping[str, str]] = {BASE: "ties allowed", STRICT: "strict about ties"}
_CONDITIONS: Final = {
    "same_subset": "equal texts",
    "different_subset": "equally many requirements, other ones",
    "graded_vacuum": "nearly identical texts",
    "vacuum": "nothing to choose between",
    "ladder": "ladder",
    "filler": "filler",
}
_VARIANTS: Final = {
    "empty": "empty texts",
    "whitespace": "white space only",
    "identical": "identical texts",
    "typo": "one typing error",
    "unit": "one unit written otherwise",
    "synonym": "one synonym",
}
_SIGNED: Final = ("criterion.shift", "drift")
_TWO: Final = ("d_prime", "threshold", "point.vacuum_score", "point.slope", "point.verbosity")


def about(measurement: Measurement, *, log: bool = False) -> str:
    """What a measurement is about, beside its title and its judge.

    >>> about(Measurement(name="sensitivity", labels={"judge": "j", "prompt": "strict", "delta": "0.5"}, value=None,
    ...                   n=0, n_of="", method=""))
    'half a requirement apart; strict about ties'
    """
    labels = measurement.labels
    parts = []
    if "delta" in labels:
        parts.append(f"{step_words(labels['delta'])} apart")
    elif "condition" in labels:
        parts.append("pairs of the log" if log else condition_words(labels["condition"]))
    if "variant" in labels:
        parts.append(_VARIANTS.get(labels["variant"], clean(labels["variant"], 60)))
    if "prompt" in labels and not log:
        parts.append(arm_words(labels["prompt"]))
    known = ("judge", "delta", "condition", "variant", "prompt")
    parts += [
        clean(value.replace("_", " ") if key == "dimension" else value, 80)
        for key, value in sorted(labels.items())
        if key not in known
    ]
    return "; ".join(parts)


def arm_words(prompt: str) -> str:
    """How an instruction is called."""
    return ARMS.get(prompt, clean(prompt, 60))


def condition_words(condition: str) -> str:
    """How a kind of pairs is called."""
    return _CONDITIONS.get(condition, clean(condition.replace("_", " "), 60))


def variant_words(variant: str) -> str:
    """How a kind of vacuum is called."""
    return _VARIANTS.get(variant, clean(variant.replace("_", " "), 60))


def step_words(delta: str | float) -> str:
    """A step of the ladder in words.

    >>> step_words("1"), step_words(0.5), step_words("3"), step_words("1.5")
    ('one requirement', 'half a requirement', 'three requirements', '1.5 requirements')
    """
    try:
        size = float(delta)
    except ValueError:
        return clean(str(delta), 20)
    if size == 0.5:
        return "half a requirement"
    if size == int(size):
        return f"{words(int(size))} requirement{'' if size == 1 else 's'}"
    return f"{size:g} requirements"


def bound_words(text: str) -> str:
    """A bound as it is set.

    >>> bound_words("<= 1"), bound_words("> 5"), bound_words("0.833")
    ('≤ 1', '> 5', '0.833')
    """
    return text.replace("<= ", f"≤{NBSP}").replace("> ", f">{NBSP}").replace(NBSP, " ")


def value_words(measurement: Measurement) -> str:
    """The value in its form, or in words why there is none."""
    name, value = measurement.name, measurement.value
    if name == "drift.verdict":
        return prose(str(measurement.detail.get("verdict", "not measured")), 60)
    if value is None:
        return state_words(measurement)
    if name == "threshold":
        return threshold_words(measurement)
    if name in _SIGNED:
        return signed(value, 3)
    return number(value, 2 if name in _TWO else 3)


def threshold_words(measurement: Measurement) -> str:
    """A detection threshold, as a bound where it is censored.

    >>> threshold_words(Measurement(name="threshold", labels={}, value=5.0, n=9, n_of="calls", method="",
    ...                             detail={"censored": "right", "text": "> 5"}))
    '> 5'
    """
    if measurement.value is None:
        return state_words(measurement)
    censored = measurement.detail.get("censored")
    if censored in ("left", "right"):
        return f"{'≤' if censored == 'left' else '>'} {measurement.value:g}"
    return number(measurement.value)


def interval_words(measurement: Measurement) -> str:
    """The interval in its form; the ends of a threshold say where they are only bounds."""
    ends = bounds(measurement)
    if ends is None:
        return "no interval"
    if measurement.name == "threshold":
        low, high = (measurement.detail.get(key) for key in ("low_text", "high_text"))
        if low is not None and high is not None:
            return f"{_end(str(low), ends[0])} to {_end(str(high), ends[1])}"
    return span(*ends, 2 if measurement.name in _TWO else 3)


def _end(text: str, value: float) -> str:
    return bound_words(text) if text[:1] in "<>" else number(value)


def share_words(measurement: Measurement) -> str:
    """A share with its interval, in percent.

    >>> m = Measurement(name="x", labels={}, value=0.433, n=120, n_of="calls", method="", low=0.35, high=0.52)
    >>> share_words(m).replace(NBSP, " ")
    '43 % (35 to 52 %)'
    """
    if measurement.value is None:
        return state_words(measurement)
    ends = bounds(measurement)
    if ends is None:
        return percent(measurement.value)
    low, high = (percent(end) for end in ends)
    return f"{percent(measurement.value)} ({low.removesuffix(f'{NBSP}%')} to {high})"


def measured_cells(sheet: DatasheetIndex, measurement: Measurement) -> tuple[str, str, str]:
    """A measurement as cells of a table: its value, which leads to its row, its interval, and what it rests on."""
    value = sheet.to(measurement, value_words(measurement))
    return value, interval_words(measurement), n_words(measurement)


def capital(text: str) -> str:
    """A text with a capital."""
    return text[:1].upper() + text[1:]


def n_words(measurement: Measurement) -> str:
    """How many of what a value rests on."""
    return count_of(measurement.n, measurement.n_of)


def missing_words(measurement: Measurement | None, what: str) -> str:
    """Why something is not shown.

    >>> missing_words(None, "dark current")
    'Dark current is not measured.'
    """
    why = "not measured" if measurement is None else state_words(measurement)
    return f"{what[0].upper()}{what[1:]} is {why}{'' if why.endswith('.') else '.'}"
