"""Look-ups of a judge's datasheet by name and labels, and the words of pages for conditions, steps and values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assaymark.metrology.datasheet import BASE, STRICT, Datasheet
from assaymark.records import Measurement, measurement_id, sha256_text
from assaymark.report import text as t
from assaymark.report.blocks import MeasurementIndex, by_name
from assaymark.report.measurements import quantities
from assaymark.report.text import KnownValue, n_words, signed, state_words, words
from assaymark.text import NBSP, clean, count, number, percent, prose, span

SAME: Final = "same_subset"
MORE: Final = "-measurements"
"""Suffix of the file name of the page with the measurements of a long datasheet."""
TOGETHER: Final = 230
"""Maximum number of measurements on the datasheet's own page; more get a separate page, which limits its size."""
_NOT_XML: Final = re.compile("[\ufffe\uffff]")
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
_HASHED: Final = re.compile(r".*-[0-9a-f]{8}")

GROUPS: Final[Mapping[str, str]] = {
    "vacuum": "Null pairs", "equal": "Equal texts", "truth": "Truth", "ladder": "Ladder", "strict": "Strict prompt",
    "other": "Filler, replies, repeats", "point": "One text at a time", "people": "People", "drift": "Drift",
    "more": "Further",
}  # fmt: skip
"""The groups of the table of all measurements, in its order."""


def quantity(name: str) -> Mapping[str, str]:
    """The title and the group of a measurement; one that is not in the table of quantities comes last."""
    return quantities("datasheet").get(name, {"title": clean(name, 60), "group": "more"})


def title_of(name: str, log: bool = False) -> str:
    """The title of a measurement. A log's texts are not known to be equal, so no preference there is called false."""
    kind = quantity(name)
    return (log and kind.get("title_in_log")) or kind["title"]


@dataclass(frozen=True, slots=True, eq=False)
class DatasheetIndex(MeasurementIndex):
    """A `Datasheet` with its look-ups, by labels other than the judge. Build one with `DatasheetIndex.of`."""

    sheet: Datasheet
    name: str
    base: str
    condition: str
    rows: tuple[Measurement, ...]

    @classmethod
    def of(cls, sheet: Datasheet) -> DatasheetIndex:
        """Index a datasheet."""
        raw = [m.labels for m in sheet.measurements if m.name == "delta0.raw" and m.value is not None]
        prompts = {m.labels["prompt"] for m in sheet.measurements if "prompt" in m.labels}
        base = BASE if BASE in prompts or not prompts else min(prompts - {STRICT} or prompts)
        conditions = {labels.get("condition", "") for labels in raw if labels.get("prompt", base) == base}
        condition, items = SAME if SAME in conditions or not conditions else min(conditions), []
        for m in sheet.measurements:
            # A log lacks what needs built texts; one sentence states that instead of many rows.
            built = quantity(m.name)["group"] in ("vacuum", "ladder", "strict") or m.name == "filler.preference"
            if sheet.source != "log" or m.value is not None or not (built or m.labels.get("condition") == SAME):
                items.append(m)
        by_key, named = {_key(m): m for m in sheet.measurements}, by_name(sheet.measurements)
        index = cls(by_key, named, sheet, printed_name(sheet.judge), base, condition, tuple(items))
        return replace(index, links={m.id: f"{index.rows_page}#{row_anchor(m)}" for m in sheet.measurements})

    @property
    def is_log(self) -> bool:
        """True if the datasheet is from a log: verdicts made elsewhere, on texts of unknown quality."""
        return self.sheet.source == "log"

    @property
    def page(self) -> str:
        """The path of the judge's page."""
        return datasheet_path(self.sheet.judge)

    @property
    def rows_page(self) -> str:
        """The path of the page with all measurements: the judge's page, or a separate one if there are many."""
        return f"{self.page.removesuffix('.html')}{MORE}.html" if len(self.rows) > TOGETHER else self.page

    def get_base(self, name: str, **labels: str) -> Measurement | None:
        """The measurement with exactly these labels under the base prompt."""
        return self.get(name, prompt=self.base, **labels)

    def part(self, name: str, prompt: str | None = None) -> Measurement | None:
        """A part of the decomposition of preferences, for the pairs that the figures show."""
        return self.get(f"delta0.{name}", prompt=prompt or self.base, condition=self.condition)

    def steps(self, name: str, prompt: str) -> dict[float, KnownValue]:
        """The measurements along the quality ladder under a prompt, by step in ascending order."""
        by_delta = {float(m.labels["delta"]): m for m in self.known(name, prompt=prompt) if "delta" in m.labels}
        return dict(sorted(by_delta.items()))


def index_sheets(sheets: Sequence[Datasheet]) -> tuple[DatasheetIndex, ...]:
    """All datasheets by judge name: no page is sorted by a value."""
    return tuple(DatasheetIndex.of(sheet) for sheet in sorted(sheets, key=lambda s: s.judge))


def comparable(first: Datasheet, second: Datasheet) -> bool:
    """True if two judges saw the same texts under the same base prompt, so that one figure may show both."""
    same = (first.source, first.manifest) == (second.source, second.manifest)
    return same and first.prompts.get(BASE) == second.prompts.get(BASE)


def printed_name(judge: str) -> str:
    """A judge's name as printed: one line, at most 80 characters, nothing that XML forbids."""
    return clean(judge, 80) or "(no name)"


def xml_safe(text: str) -> str:
    """A text without the two noncharacters that XML forbids."""
    return _NOT_XML.sub("\ufffd", text)


def datasheet_path(judge: str) -> str:
    """The path of a judge's page. A name that is unsafe as a file name is reduced to its safe part and a hash.

    >>> datasheet_path("quay-j"), datasheet_path("../Quay J")
    ('datasheet/quay-j.html', 'datasheet/quay-j-0a2715ab.html')
    """
    if _PLAIN.fullmatch(judge) and not _HASHED.fullmatch(judge) and not judge.endswith(MORE):
        return f"datasheet/{judge}.html"
    safe = re.sub(r"[^a-z0-9]+", "-", judge.lower()).strip("-")[:40].strip("-")
    return f"datasheet/{f'{safe}-' if safe else ''}{sha256_text(judge)[:8]}.html"


def row_anchor(measurement: Measurement) -> str:
    """The id of the row of a measurement."""
    return f"m{sha256_text(_key(measurement))[:10]}"


def hits(measurement: Measurement) -> int:
    """The count behind a share: how many of ``n``."""
    counted = measurement.detail.get("count")
    return int(counted) if isinstance(counted, int) else round((measurement.value or 0.0) * measurement.n)


def of_n(measurement: Measurement, *, none: str = "none") -> str:
    """A share as counts: so many of ``n``."""
    n_hits = hits(measurement)
    return f"{count(n_hits) if n_hits else none} of {count(measurement.n)}"


def _key(measurement: Measurement) -> str:
    labels = {key: value for key, value in measurement.labels.items() if key != "judge"}
    return measurement_id(measurement.name, labels)


ARMS: Final[Mapping[str, str]] = {BASE: "ties allowed", STRICT: "strict about ties"}
_KINDS: Final = {
    "same_subset": "equal texts", "different_subset": "equally many requirements, other ones",
    "graded_vacuum": "nearly identical texts", "vacuum": "nothing to choose between", "ladder": "ladder",
    "filler": "filler", "empty": "empty texts", "whitespace": "white space only", "identical": "identical texts",
    "typo": "one typing error", "unit": "one unit written otherwise", "synonym": "one synonym",
}  # fmt: skip
_OF: Final = re.compile(r"([^\[]+)(?:\[(.*)\])?", re.DOTALL)
_SIGNED: Final = ("criterion.shift", "drift")
_TWO: Final = ("d_prime", "threshold", "point.vacuum_score", "point.slope", "point.verbosity")


def subject_words(measurement: Measurement, *, log: bool = False) -> str:
    """The subject of a measurement in words, apart from its title and its judge.

    >>> subject_words(Measurement(name="sensitivity", labels={"judge": "j", "prompt": "strict", "delta": "0.5"},
    ...                           value=None, n=0, n_of="", method=""))
    'half a requirement apart; strict about ties'
    """
    labels = measurement.labels
    parts = []
    if "delta" in labels:
        parts.append(f"{step_words(labels['delta'])} apart")
    elif "condition" in labels:
        parts.append("pairs of the log" if log else kind_words(labels["condition"]))
    if "variant" in labels:
        parts.append(_KINDS.get(labels["variant"], clean(labels["variant"], 60)))
    if "prompt" in labels and not log:
        parts.append(arm_words(labels["prompt"]))
    if "of" in labels:
        parts.append(drift_subject(labels["of"]))
    worded = ("judge", "delta", "condition", "variant", "prompt", "of")
    parts += [
        clean(value.replace("_", " ") if key == "dimension" else value, 80)
        for key, value in sorted(labels.items())
        if key not in worded
    ]
    return "; ".join(parts)


def drift_subject(of: str) -> str:
    """The quantity that drifted, in words.

    >>> drift_subject("sensitivity[delta=1]"), drift_subject("dark_current[prompt=strict]"), drift_subject("odd[")
    ('Sensitivity, one requirement apart', 'Null-pair preference, strict about ties', 'odd[')
    """
    parts = _OF.fullmatch(of)
    if parts is None or ("[" in of and parts[2] is None):
        return clean(of, 80)
    labels = dict(pair.split("=", 1) for pair in (parts[2] or "").split(",") if "=" in pair)
    details = subject_words(Measurement(parts[1], labels, None, 0, "", ""))
    return f"{title_of(parts[1])}, {details}" if details else title_of(parts[1])


def arm_words(prompt: str) -> str:
    """The name of a prompt variant."""
    return ARMS.get(prompt, clean(prompt, 60))


def kind_words(kind: str) -> str:
    """The name of a kind of pairs or of null pairs."""
    return _KINDS.get(kind, clean(kind.replace("_", " "), 60))


def step_words(delta: str | float) -> str:
    """A step of the quality ladder in words.

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


def value_words(measurement: Measurement) -> str:
    """The value of a measurement in its format, a censored threshold as a bound, or the reason why there is none.

    >>> value_words(Measurement(name="threshold", labels={}, value=5.0, n=9, n_of="calls", method="",
    ...                         detail={"censored": "right", "text": "> 5"}))
    '> 5'
    """
    name, value = measurement.name, measurement.value
    if name == "drift.verdict":
        return prose(str(measurement.detail.get("verdict", "not measured")), 60).replace("same instrument", "no shift")
    if value is None:
        return state_words(measurement)
    if name == "threshold" and (censored := measurement.detail.get("censored")) in ("left", "right"):
        return f"{'≤' if censored == 'left' else '>'} {value:g}"
    if name in _SIGNED:
        return signed(value, 3)
    return number(value, 2 if name in _TWO else 3)


def interval_words(measurement: Measurement) -> str:
    """The interval of a measurement in its format; censored ends of a threshold are marked as bounds."""
    texts, ends = [measurement.detail.get(key) for key in ("low_text", "high_text")], t.bounds_of(measurement)
    if ends is None or measurement.name != "threshold" or None in texts:
        return t.limits(measurement, lambda low, high: span(low, high, 2 if measurement.name in _TWO else 3))
    return " to ".join(str(text).replace("<=", "≤") if str(text)[:1] in "<>" else number(end)
                       for text, end in zip(texts, ends, strict=True))  # fmt: skip


def share_words(measurement: Measurement) -> str:
    """A share with its interval, in percent.

    >>> m = Measurement(name="x", labels={}, value=0.433, n=120, n_of="calls", method="", low=0.35, high=0.52)
    >>> share_words(m).replace(NBSP, " ")
    '43 % (35 to 52 %)'
    """
    if not t.known(measurement):
        return state_words(measurement)
    ends = t.interval_of(measurement, lambda low, high: f"{percent(low).removesuffix(f'{NBSP}%')} to {percent(high)}")
    return percent(measurement.value) + ends


def value_cells(sheet: DatasheetIndex, measurement: Measurement) -> tuple[str, str, str]:
    """A measurement as table cells: its value (linked to its row), its interval, and its sample size."""
    value = sheet.link(measurement, value_words(measurement))
    return value, interval_words(measurement), n_words(measurement)


def capital(text: str) -> str:
    """A text with a capital first letter."""
    return text[:1].upper() + text[1:]


def missing_words(measurement: Measurement | None, subject: str) -> str:
    """The sentence that something is not measured, with the reason."""
    reason = "not measured" if measurement is None else state_words(measurement)
    return f"{subject[0].upper()}{subject[1:]} is {reason}{'' if reason.endswith('.') else '.'}"
