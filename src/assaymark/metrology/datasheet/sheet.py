"""The datasheet of a judge as a record: what was run, what was measured, what it does not say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.metrology import checks
from assaymark.metrology.datasheet.calls import BASE, STRICT, CallTable, call_table, key_of
from assaymark.metrology.datasheet.equal_texts import (
    delta0_measurements,
    filler_measurement,
    invalid_measurement,
    reasons_of,
    vacuum_measurements,
)
from assaymark.metrology.datasheet.estimates import Recorder, TaskBootstrap, stability_measurement
from assaymark.metrology.datasheet.ladder import criterion_measurements, ladder_measurements
from assaymark.notebook import Heading, Note, Part, Shown, parts_of
from assaymark.protocol import DatasheetLimits, JudgeSpec
from assaymark.records import AGGREGATE, Measurement, PairCall, PairCondition, Rows, SlotVerdict, measurement_id, record
from assaymark.text import clean, count

# Every measurement of one judge's datasheet from its calls.


def datasheet_measurements(
    calls: Sequence[PairCall], *, level: float = 0.95, rng: np.random.Generator
) -> tuple[Measurement, ...]:
    """Measure one judge as an instrument (Judge Datasheet, Algorithm 1)."""
    table = call_table(calls)
    return table_measurements(table, level=level, rng=rng, reasons=reasons_of(calls))


def table_measurements(
    table: CallTable,
    *,
    level: float = 0.95,
    rng: np.random.Generator,
    reasons: Mapping[str, Mapping[str, int]] | None = None,
) -> tuple[Measurement, ...]:
    """`datasheet_measurements` of columns that are known to be good, for logs too long to hold as records."""
    checks.probability("datasheet_measurements", "level", level)
    recorder = Recorder(table.judge, TaskBootstrap(rng, level), table.digest)
    found: list[Measurement] = []
    for prompt in table.arms:
        found.extend(vacuum_measurements(table, recorder, prompt))
        found.extend(delta0_measurements(table, recorder, prompt))
        found.extend(ladder_measurements(table, recorder, prompt))
        found.append(filler_measurement(table, recorder, prompt))
        found.append(invalid_measurement(table, recorder, prompt, (reasons or {}).get(prompt, {})))
    found.extend(criterion_measurements(table, recorder))
    found.append(stability_measurement(table, recorder))
    return tuple(found)


# A judge in four words, by stated rules. Descriptive: no rule calls a judge good or bad for any use.


CLEAN: Final = 0.02
NEARLY_CLEAN: Final = 0.10
QUIET: Final = 0.10
QUIET_RAW: Final = 1 / 3
LED: Final = 2.0
NO_EFFECT: Final = 0.05
LOST: Final = 0.10
LOST_ACCURACY: Final = 0.05

RULES: Final[Mapping[str, str]] = {
    "vacuum": ("clean: at most 2 % of vacuum calls named a slot; nearly clean: at most 10 %; leaky: more"),
    "equal texts": (
        "quiet: stable and positional pairs at most 10 % each, and at most a third of calls named a slot; otherwise "
        "position-led: at least twice as many positional as stable pairs; wording-led: at least twice as many stable "
        "as positional; mixed: neither"
    ),
    "target": (
        "the 75 % threshold: sensitive below one requirement, at one requirement, needs as many requirements as it "
        "takes to reach it, or insensitive where no step reaches it"
    ),
    "strict prompt": (
        "costs resolution: at a common step the accuracy of decided calls falls by more than 5 points, or at the "
        "largest common step sensitivity falls by more than 10; no effect: no tie rate moves by 5 points or more; "
        "moves the criterion: otherwise"
    ),
}
"""The rule of each chip, in words."""

NON_CLAIMS: Final = (
    "That this judge is right about real rationales: the texts here are built, and only their construction is known.",
    "That another prompt, rubric, decoding setting or version of the model would measure the same.",
    "That one judge is better than another: a datasheet describes, it does not rank.",
    "That a reaction to wording is always an error: it counts as noise only because a checklist is the target here.",
    "That a censored threshold is a number: a bound cannot be compared with another judge's bound.",
    "That a stricter prompt makes a judge more sensitive: it moves the point at which a difference is called a tie.",
    "That a comparator is the truth: it is another instrument, read as an upper estimate.",
    "That a judge with a clean datasheet supports any claim made with it downstream.",
)
"""What a datasheet does not say, printed on every one."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One word about one axis, the rule that chose it, and the measurements it was chosen from."""

    axis: str
    outcome: str
    rule: str
    basis: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.axis}: {self.outcome}"

    @property
    def text(self) -> str:
        """The chip with its rule in words."""
        return f"{self} ({self.rule})"


def sketch(measurements: Sequence[Measurement]) -> tuple[Chip, ...]:
    """The profile of one judge: vacuum, equal texts, target, strict prompt, each by its rule in `RULES`."""
    found = _Values(measurements)
    return _vacuum(found), _equal_texts(found), _target(found), _strict(found)


class _Values:
    """Measurements by name and labels, remembering which were read."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self._held = {m.id: m for m in measurements}
        prompts = sorted({m.labels["prompt"] for m in measurements if "prompt" in m.labels})
        self.base = BASE if BASE in prompts or not prompts else prompts[0]

    def named(self, name: str, **labels: str) -> Iterator[Measurement]:
        """Measurements of that name with exactly these labels beside the judge."""
        for measurement in self._held.values():
            rest = {key: value for key, value in measurement.labels.items() if key != "judge"}
            if measurement.name == name and rest == labels and measurement.value is not None:
                yield measurement

    def one(self, name: str, **labels: str) -> Measurement | None:
        """That measurement, if it has a value."""
        return next(self.named(name, **labels), None)

    def steps(self, name: str, prompt: str) -> dict[float, Measurement]:
        """The measurements of that name along the ladder of an arm."""
        return {
            float(m.labels["delta"]): m
            for m in self._held.values()
            if m.name == name and m.labels.get("prompt") == prompt and m.value is not None
        }

    def shifts(self) -> list[Measurement]:
        """Every measured shift of the tie rate."""
        return [m for m in self._held.values() if m.name == "criterion.shift" and m.value is not None]


def _chip(axis: str, outcome: str, *basis: Measurement) -> Chip:
    return Chip(axis, outcome, RULES[axis], tuple(m.id for m in basis))


def _value(measurement: Measurement) -> float:
    """The value of a measurement that has one."""
    if measurement.value is None:
        raise AssertionError(f"{measurement.id} was chosen because it has a value")
    return measurement.value


def _vacuum(found: _Values) -> Chip:
    dark = found.one("dark_current", prompt=found.base)
    if dark is None:
        return _chip("vacuum", "not measured")
    share = _value(dark)
    word = "clean" if share <= CLEAN else "nearly clean" if share <= NEARLY_CLEAN else "leaky"
    return _chip("vacuum", word, dark)


def _equal_texts(found: _Values) -> Chip:
    parts = [
        found.one(f"delta0.{name}", prompt=found.base, condition="same_subset")
        for name in ("raw", "stable", "positional")
    ]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return _chip("equal texts", "not measured")
    raw, stable, positional = (_value(part) for part in known)
    if stable <= QUIET and positional <= QUIET and raw <= QUIET_RAW:
        word = "quiet"
    elif max(stable, positional) > QUIET and positional >= LED * stable:
        word = "position-led"
    elif max(stable, positional) > QUIET and stable >= LED * positional:
        word = "wording-led"
    else:
        word = "mixed"
    return _chip("equal texts", word, *known)


def _target(found: _Values) -> Chip:
    threshold = found.one("threshold", prompt=found.base)
    if threshold is None:
        return _chip("target", "not measured")
    value = _value(threshold)
    if threshold.detail["censored"] == "right":
        word = "insensitive"
    elif value < 1:
        word = "sensitive below one requirement"
    elif value == 1:
        word = "sensitive at one requirement"
    else:
        word = f"needs {math.ceil(value)} requirements"
    return _chip("target", word, threshold)


def _strict(found: _Values) -> Chip:
    shifts = found.shifts()
    if not shifts:
        return _chip("strict prompt", "not measured")
    lost = _lost(found)
    if lost:
        return _chip("strict prompt", "costs resolution", *lost)
    if all(abs(_value(shift)) < NO_EFFECT for shift in shifts):
        return _chip("strict prompt", "no effect", *shifts)
    return _chip("strict prompt", "moves the criterion", *shifts)


def _lost(found: _Values) -> list[Measurement]:
    """The measurements by which the strict arm sees less well, not only later."""
    base, strict = (found.steps("conditional_accuracy", prompt) for prompt in (found.base, STRICT))
    for step in sorted(base.keys() & strict.keys()):
        if _value(base[step]) - _value(strict[step]) > LOST_ACCURACY + 1e-9:
            return [base[step], strict[step]]
    base, strict = (found.steps("sensitivity", prompt) for prompt in (found.base, STRICT))
    largest = max(base.keys() & strict.keys(), default=None)
    if largest is not None and _value(base[largest]) - _value(strict[largest]) > LOST + 1e-9:
        return [base[largest], strict[largest]]
    return []


@record
class AnchorPair:
    """What is known about a pair of the anchor set, apart from the answers."""

    condition: PairCondition
    task: str
    delta: float = 0.0
    better: Literal["u", "v"] | None = None
    variant: str = ""


@record
class Datasheet(Shown):
    """One judge, measured as an instrument."""

    judge: str
    measurements: tuple[Measurement, ...]
    sketch: tuple[str, ...]
    calls: Mapping[str, int]
    tasks: int
    source: Literal["run", "log"]
    model: str = ""
    family: str = ""
    fingerprint: str | None = None
    arms: tuple[str, ...] = ()
    manifest: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    non_claims: tuple[str, ...] = NON_CLAIMS
    planted: Mapping[str, float] | None = None
    anchors: Mapping[str, SlotVerdict] = field(default_factory=dict)
    pairs: Mapping[str, AnchorPair] = field(default_factory=dict)

    def _parts(self) -> Iterator[Part]:
        yield Heading(clean(self.judge, 60))
        yield Note(f"{count(self.tasks)} tasks; calls: {', '.join(f'{key} {n:,}' for key, n in self.calls.items())}")
        yield from (Note(clean(chip, 200)) for chip in self.sketch)
        yield from parts_of(Rows(self.measurements))

    def __repr__(self) -> str:
        return f"Datasheet of {clean(self.judge, 60)}: {count(len(self.measurements))} measurements"


def datasheet_of(
    calls: Sequence[PairCall],
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    model: str = "",
    family: str = "",
    fingerprint: str | None = None,
    manifest: str = "",
    prompts: Mapping[str, str] | None = None,
    planted: Mapping[str, float] | None = None,
    source: Literal["run", "log"] = "run",
    keep_calls: bool = True,
) -> Datasheet:
    """Measure and sketch one judge's calls, and keep its verdicts for later comparison unless told otherwise."""
    measurements = datasheet_measurements(calls, level=level, rng=rng)
    if keep_calls:
        # Raise every prompt that would not come back from its key. Pairs may hold bars: keys are cut from the right.
        problems = [
            Problem("prompt", f"must not contain '|', which separates the parts of a kept verdict (got {prompt!r})")
            for prompt in sorted({call.prompt for call in calls if "|" in call.prompt})
        ]
        if problems:
            raise InputError("datasheet", problems)
    invalid = sum(call.verdict == "invalid" for call in calls)
    kept = calls if keep_calls else ()
    return Datasheet(
        judge=calls[0].judge,
        measurements=measurements,
        sketch=tuple(chip.text for chip in sketch(measurements)),
        calls={"all": len(calls), "ok": len(calls) - invalid, "invalid": invalid},
        tasks=len({call.task for call in calls}),
        source=source,
        model=model,
        family=family,
        fingerprint=fingerprint,
        arms=tuple(dict.fromkeys(m.labels["prompt"] for m in measurements if "prompt" in m.labels)),
        manifest=manifest,
        prompts=dict(prompts or {}),
        planted=None if planted is None else dict(planted),
        anchors={key_of(call): call.verdict for call in kept},
        pairs={
            call.pair: AnchorPair(
                condition=call.condition, task=call.task, delta=call.delta, better=call.better, variant=call.variant
            )
            for call in kept
        },
    )


def anchored_calls(sheet: Datasheet) -> tuple[PairCall, ...]:
    """The calls that a datasheet kept, without their replies."""
    calls, problems = [], []
    for key, verdict in sheet.anchors.items():
        pair, order, prompt, trial = (key.rsplit("|", 3) + [""] * 3)[:4]
        known = sheet.pairs.get(pair)
        if known is None or order not in ("uv", "vu") or not trial.isdigit():
            what = "must be pair|uv or vu|prompt|trial of a pair in `pairs`"
            problems.append(Problem(f"anchors[{key!r}]", what))
            continue
        calls.append(
            PairCall(
                pair=pair,
                condition=known.condition,
                task=known.task,
                order="uv" if order == "uv" else "vu",
                verdict=verdict,
                judge=sheet.judge,
                delta=known.delta,
                better=known.better,
                variant=known.variant,
                prompt=prompt,
                trial=int(trial),
            )
        )
    if problems:
        raise InputError(f"datasheet of {sheet.judge}", problems)
    return tuple(calls)


# Does a judge keep the limits that a study sets for its judges?


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
    """``datasheet.gate`` for every judge of the panel that is a model: how many limits it does not keep."""
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
