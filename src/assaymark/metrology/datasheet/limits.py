"""Does a judge keep the limits that a study sets for its judges?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from assaymark.metrology.datasheet.calls import BASE
from assaymark.metrology.datasheet.sheet import Datasheet
from assaymark.protocol import DatasheetLimits, JudgeSpec
from assaymark.records import AGGREGATE, Measurement, measurement_id

METHOD = "point values of the judge's datasheet against the limits of the plan"


class Demanding(Protocol):
    """A plan that may set limits for its judges: a study, or a season."""

    @property
    def datasheets(self) -> DatasheetLimits | None:
        """The limits; None where it demands no datasheets."""
        ...

    @property
    def model_judges(self) -> Sequence[JudgeSpec]:
        """The judges that are models."""
        ...


def limit_measurements(sheets: Mapping[str, Datasheet], study: Demanding) -> Iterator[Measurement]:
    """``datasheet.gate`` for every judge of the panel that is a model: how many limits it does not keep.

    0 passes. A limit on something that the datasheet does not show is not kept; a judge without a datasheet has a
    state that says so. A threshold that is censored on the left keeps its limit if the smallest step does; one that is
    censored on the right keeps none. A judge that marks filler down keeps the limit on ``verbosity``.

    Parameters
    ----------
    sheets : mapping of judge name to Datasheet
    study : a plan with limits
        Nothing is measured where it sets no limits.

    Yields
    ------
    Measurement
        ``detail["failed"]`` holds each limit that is not kept, in words.
    """
    limits = study.datasheets
    if limits is None:
        return
    for judge in study.model_judges:
        labels = {"judge": judge.name}
        sheet = sheets.get(judge.name)
        n = len(limits.set)
        if sheet is None or sheet.model not in ("", judge.model):
            state = "not measured: no datasheet of this judge" if sheet is None else "not measured: of another model"
            yield Measurement(
                name="datasheet.gate", labels=labels, value=None, n=n, n_of="limits", method=METHOD, state=state,
                detail={"failed": []},
            )  # fmt: skip
            continue
        failed = list(_failed(sheet, limits))
        yield Measurement(
            name="datasheet.gate",
            labels=labels,
            value=float(len(failed)),
            n=n,
            n_of="limits",
            method=METHOD,
            detail={"failed": failed, "manifest": sheet.manifest},
        )


def _failed(sheet: Datasheet, limits: DatasheetLimits) -> Iterator[str]:
    """Each limit that is not kept, with the value that was found."""
    known = {item.id: item for item in sheet.measurements}
    same = {"judge": sheet.judge, "prompt": BASE, "condition": "same_subset"}
    places = {
        "dark_current": ("dark_current", {"judge": sheet.judge, "prompt": BASE}, "at most"),
        "positional": ("delta0.positional", same, "at most"),
        "threshold": ("threshold", {"judge": sheet.judge, "prompt": BASE}, "at most"),
        "vacuum_score": ("point.vacuum_score", {"judge": sheet.judge, "dimension": AGGREGATE}, "at most"),
        "slope": ("point.slope", {"judge": sheet.judge, "dimension": AGGREGATE}, "at least"),
        "verbosity": ("point.verbosity", {"judge": sheet.judge, "dimension": AGGREGATE}, "at most"),
    }
    for name, limit in limits.set.items():
        measured, labels, kind = places[name]
        item = known.get(measurement_id(measured, labels))
        if item is None or item.value is None:
            yield f"{name} {'not measured' if item is None else item.state}, {kind} {limit:g}"
            continue
        kept = item.value <= limit + 1e-9 if kind == "at most" else item.value >= limit - 1e-9
        if not kept or item.detail.get("censored") == "right":
            yield f"{name} {_words(name, item)}, {kind} {limit:g}"


def _words(name: str, item: Measurement) -> str:
    """The value that does not keep its limit."""
    text = str(item.detail.get("text", f"{item.value:.2f}"))
    return f"{text} points per 100 tokens" if name == "verbosity" else text
