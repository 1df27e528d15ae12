"""The datasheet of a judge as a record: what was run, what was measured, what it does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal

import numpy as np

from assaymark.display import Heading, Note, Part, Shown, parts_of
from assaymark.errors import InputError, Problem
from assaymark.metrology.datasheet.calls import key_of
from assaymark.metrology.datasheet.measure import datasheet_measurements
from assaymark.metrology.datasheet.sketch import NON_CLAIMS, sketch
from assaymark.records import Measurement, PairCall, PairCondition, Rows, SlotVerdict, record
from assaymark.typography import clean, count


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
    """One judge, measured as an instrument.

    ``arms`` are the instructions that were given and ``prompts`` the sha256 of each; ``manifest`` is the sha256 of
    the stimuli, empty for a log of somebody else's. ``calls`` counts the calls, the usable and the invalid ones,
    ``tasks`` the tasks. ``sketch`` holds the chips of `sketch`, each with its rule. ``planted`` are the true values of
    a reference judge. ``anchors`` keeps every verdict under ``pair|order|prompt|trial`` and ``pairs`` what those pairs
    are, so that a later datasheet can be compared question by question (`compare`); both are empty where the calls
    were not kept.
    """

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
    """Measure and sketch one judge's calls, and keep its verdicts for later comparison unless told otherwise.

    Raises
    ------
    InputError
        As `datasheet_measurements`, or a prompt name with a ``|`` that would make a kept verdict ambiguous.

    Examples
    --------
    >>> calls = [
    ...     PairCall(pair=f"p{i}", condition="vacuum", task=f"t{i}", order="uv", verdict="tie", judge="j")
    ...     for i in range(40)
    ... ]
    >>> sheet = datasheet_of(calls, rng=np.random.default_rng(1))
    >>> sheet.calls["ok"], sheet.sketch[0][:13]
    (40, 'vacuum: clean')
    """
    measurements = datasheet_measurements(calls, level=level, rng=rng)
    if keep_calls:
        _refuse_bars(calls)
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
    """The calls that a datasheet kept, without their replies.

    Raises
    ------
    InputError
        A verdict whose key is not ``pair|order|prompt|trial``, or whose pair is not described.
    """
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


def _refuse_bars(calls: Sequence[PairCall]) -> None:
    """Raise every prompt that would not come back from its key. Pairs may hold bars: keys are cut from the right."""
    problems = [
        Problem("prompt", f"must not contain '|', which separates the parts of a kept verdict (got {prompt!r})")
        for prompt in sorted({call.prompt for call in calls if "|" in call.prompt})
    ]
    if problems:
        raise InputError("datasheet", problems)
