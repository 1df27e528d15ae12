"""Every measurement as a row: value, interval, denominator and method, withheld ones included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from assaymark.records import Measurement
from assaymark.report.book import Book
from assaymark.report.formats import clean, count, number, percent, span, state_words
from assaymark.report.paging import row_bytes

_ROW_BYTES: Final = 220
_TITLES: Final = {
    "kappa.mean_pairwise": "Agreement, mean pairwise κ",
    "kappa.fleiss": "Agreement, Fleiss κ",
    "redundancy": "Redundancy of judges",
    "score.effect": "Level of an agent",
    "contrast": "Paired contrast",
    "first.p_holm": "Ranks first, largest adjusted p",
    "lofo.rho": "Left-out family, rank correlation",
    "lofo.effect": "Left-out family, level of an agent",
    "lofo.contrast": "Left-out family, paired contrast",
    "mde": "Detectable effect",
    "noise.repetition_stability": "Repetition stability",
    "noise.agent_floor": "Replicate floor",
    "judge.invalid_share": "Invalid replies",
    "score.length_correlation": "Length and score",
    "evidence.share": "Evidence, share of a state",
    "evidence.chance_corrected": "Evidence, support beyond chance",
    "evidence.no_number_share": "Evidence, records without a number",
    "forecast.mismatch": "Forecast arithmetic",
}


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One measurement, ready to show. ``key`` is the group its filter button stands for."""

    key: str
    title: str
    about: str
    value: str
    interval: str
    n: str
    method: str

    @property
    def size(self) -> int:
        """About how many bytes the row will take on a page."""
        texts = (self.title, self.about, self.value, self.interval, self.n, self.method)
        return row_bytes(_ROW_BYTES, texts)


def measured_rows(book: Book) -> tuple[MeasuredRow, ...]:
    """All measurements by kind and then by what they are about; never by value."""
    order = {name: at for at, name in enumerate(_TITLES)}
    ordered = sorted(book.run.measurements, key=lambda m: (order.get(m.name, len(order)), m.id))
    return tuple(_row(book, item) for item in ordered)


def _row(book: Book, item: Measurement) -> MeasuredRow:
    level = f", {percent(item.level)}" if item.level is not None else ""
    bounds = "" if item.low is None or item.high is None else f"{span(item.low, item.high, 3)}{level}"
    return MeasuredRow(
        key=clean(item.name, 60),
        title=_TITLES.get(item.name, clean(item.name, 60)),
        about="; ".join(_about(book, item)) or "the whole run",
        value=state_words(item) if item.value is None else _value(item),
        interval=bounds or "no interval",
        n=f"{count(item.n)} {clean(item.n_of, 60)}".strip(),
        method=clean(item.method, 200),
    )


def _value(item: Measurement) -> str:
    unit = clean(item.unit, 24)
    return f"{number(item.value or 0.0, 3)} {unit}".rstrip()


def _about(book: Book, item: Measurement) -> Iterator[str]:
    for key in sorted(item.labels):
        value = item.labels[key]
        shown = book.title(value) if key == "dimension" else clean(value, 80)
        yield f"{clean(key, 30)} {shown}"
