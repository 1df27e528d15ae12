"""What an endless run on a reference pair judge would measure, by the ids of a datasheet's measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assaymark.judging.pairs.planted import (
    DELTAS,
    PLANTED_PAIRS,
    PlantedPair,
    interpolated_threshold,
    planted_correct,
    planted_with,
)
from assaymark.judging.pairs.prompts import STRICT, TIE_ALLOWED
from assaymark.judging.pairs.surfaces import CHANGES
from assaymark.protocol import JudgeSpec
from assaymark.records import measurement_id

_EQUAL = ("same_subset", "different_subset")
_BLANKS = ("empty", "whitespace", "identical")

Value = tuple[str, Mapping[str, str], float]
"""The name of a measurement, its labels without the judge, and its planted value."""


def planted_values(judge: JudgeSpec, prompts: Sequence[str] = (TIE_ALLOWED, STRICT)) -> dict[str, float]:
    """The planted value of each measurement of a reference pair judge, by measurement id.

    Measured values scatter about these: a 95 % interval misses one of twenty. Only what the planted parameters fix on
    their own is here; d', kappa and repeat stability also depend on how many pairs of which kind were judged. A judge
    with invalid replies has only their share here, since what the others amount to depends on who counts them.

    Returns
    -------
    dict of measurement id to float
        Empty for a model that is no reference pair judge.

    Examples
    --------
    >>> judge = JudgeSpec(name="j", model="reference/checklist", family="reference", args={"dark_current": 0.06})
    >>> planted_values(judge)["dark_current[judge=j,prompt=tie-allowed]"]
    0.06
    """
    if judge.model not in PLANTED_PAIRS:
        return {}
    planted = planted_with(judge.model, judge.args)
    found: list[Value] = [("pair.invalid_share", {"prompt": prompt}, planted.invalid) for prompt in prompts]
    if not planted.invalid:
        for prompt in prompts:
            kept = 1.0 - planted.strict_zero if prompt == STRICT else 1.0
            found += [(name, {"prompt": prompt, **labels}, value) for name, labels, value in _zero(planted, kept)]
            found += [(name, {"prompt": prompt, **labels}, value) for name, labels, value in _steps(planted, prompt)]
        if STRICT in prompts:
            found += _shifts(planted)
    return {measurement_id(name, {"judge": judge.name, **labels}): value for name, labels, value in found}


def _zero(planted: PlantedPair, kept: float) -> Iterator[Value]:
    """Everything without a difference in requirements, of which an instruction keeps a share."""
    yield "dark_current", {}, planted.dark_current * kept
    for variant in _BLANKS:
        yield "dark_current", {"variant": variant}, planted.dark_current * kept
    for variant in CHANGES:
        yield "graded_vacuum", {"variant": variant}, planted.raw * planted.near * kept
    yield "filler.preference", {}, planted.filler * kept
    decided = planted.slot_bias + planted.surface + planted.one_sided
    for condition in _EQUAL:
        labels = {"condition": condition}
        yield "delta0.raw", labels, planted.raw * kept
        yield "delta0.tie_rate", labels, 1.0 - planted.raw * kept
        yield "delta0.stable", labels, planted.surface * kept
        yield "delta0.positional", labels, planted.slot_bias * kept
        yield "delta0.one_sided", labels, planted.one_sided * kept
        yield "delta0.other", labels, 0.0
        yield "delta0.other_pairs", labels, 0.0
        yield "delta0.no_preference", labels, 1.0 - decided * kept
        if kept and planted.slot_bias + planted.surface:
            yield "delta0.flip_rate", labels, planted.slot_bias / (planted.slot_bias + planted.surface)
        if kept and planted.slot_bias:
            yield "delta0.slot_1_share", labels, planted.slot_1


def _steps(planted: PlantedPair, prompt: str) -> Iterator[Value]:
    """The ladder, step by step, and the threshold on it."""
    for delta in DELTAS:
        labels = {"delta": f"{delta:g}"}
        kept = 1.0 - planted.yields(delta) if prompt == STRICT else 1.0
        correct = planted_correct(planted, delta, prompt)
        wrong = planted.wrong(delta) * kept
        tie = 1.0 - (1.0 - planted.missed(delta)) * kept
        yield "sensitivity", labels, correct
        yield "wrong_rate", labels, wrong
        yield "tie_rate", labels, tie
        yield "miss_by_tie", labels, tie
        if correct + wrong:
            yield "conditional_accuracy", labels, correct / (correct + wrong)
    threshold = interpolated_threshold(planted, prompt)
    if threshold is not None:
        yield "threshold", {}, threshold


def _shifts(planted: PlantedPair) -> Iterator[Value]:
    """How far the strict instruction moves the tie rate of each condition."""
    for condition in _EQUAL:
        yield "criterion.shift", {"condition": condition}, planted.raw * planted.strict_zero
    for delta in DELTAS:
        decided = 1.0 - planted.missed(delta)
        yield "criterion.shift", {"condition": "ladder", "delta": f"{delta:g}"}, decided * planted.yields(delta)
