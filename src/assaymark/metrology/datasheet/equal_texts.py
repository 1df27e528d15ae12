"""What a judge does when it should not choose: vacuum, equal texts, filler, and calls that cannot be used.

Judge Datasheet section 3.3, eqs. 1 to 7.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from assaymark.metrology.checks import Ints
from assaymark.metrology.datasheet.calls import (
    CLASSES,
    NO_PREFERENCE,
    ONE_SIDED,
    OTHER_NONE,
    OTHER_PREFERENCE,
    POSITIONAL_1,
    POSITIONAL_2,
    PREFERENCES,
    STABLE,
    VERDICTS,
    CallTable,
    VerdictCounts,
    decomposition_of,
)
from assaymark.metrology.datasheet.estimates import CALLS, PAIRS, Recorder
from assaymark.records import JSON, Measurement, PairCall

GRADED: Final = ("typo", "unit", "synonym")
"""The kinds of nearly identical texts of the graded vacuum."""

EQUAL: Final = ("same_subset", "different_subset")
"""The conditions in which neither text is better."""

_HIDES: Final = (
    "positional pairs over pairs decided in both orders: the flip rate that other tools print; "
    "pairs with a preference in one order only are not in it"
)
_COUNTED: Final = {
    "delta0.stable": ((STABLE,), "pairs in which one text won in both orders"),
    "delta0.positional": ((POSITIONAL_1, POSITIONAL_2), "pairs in which one slot won in both orders"),
    "delta0.one_sided": ((ONE_SIDED,), "pairs with a preference in one order only"),
    "delta0.no_preference": ((NO_PREFERENCE,), "pairs without a preference in either order"),
    "delta0.other_pairs": ((OTHER_PREFERENCE, OTHER_NONE), "pairs with an unusable call"),
}
_OF_CALLS: Final = {
    "delta0.raw": (slice(0, 2), "calls that named a slot"),
    "delta0.tie_rate": (slice(2, 4), "calls without a preference (tie or abstention)"),
}
_OF_PAIRS: Final = (*_COUNTED, "delta0.other", "delta0.flip_rate", "delta0.slot_1_share")
_ONE_ORDER: Final = "not measured: every pair was shown in one order only, needs both"


def vacuum_measurements(table: CallTable, recorder: Recorder, prompt: str) -> Iterator[Measurement]:
    """Dark current of an arm, of all vacuum calls and of each kind, and preferences between nearly identical texts."""
    arm = {"prompt": prompt}

    def named(name: str, labels: Mapping[str, str], rows: Ints, what: str, questions: int) -> Measurement:
        """Share of calls that named slot 1 or 2, worth no more than so many questions."""
        counts = table.by_task(rows, table.verdict[rows] < 2)
        return recorder.calls(name, labels, counts, what, questions=questions, detail=verdicts_of(table.verdict[rows]))

    rows = table.where(prompt=prompt, condition="vacuum")
    if not rows.size:
        yield recorder.missing("dark_current", arm, f"not measured: vacuum was not run under {prompt}")
    else:
        what = "vacuum calls that named a slot"
        yield named("dark_current", arm, rows, what, table.questions(rows))
        for variant in table.variants(rows):
            chosen = table.where(prompt=prompt, condition="vacuum", variant=variant)
            yield named("dark_current", {**arm, "variant": variant}, chosen, what, table.questions(chosen))
    graded = table.where(prompt=prompt, condition="graded_vacuum")
    for variant in table.variants(graded) or GRADED:
        labels = {**arm, "variant": variant}
        chosen = table.where(prompt=prompt, condition="graded_vacuum", variant=variant)
        if chosen.size:
            # The two orders of a pair go together: as if independent, Wilson's interval would cover 70 %.
            pairs = int(np.unique(table.pair[chosen]).size)
            yield named("graded_vacuum", labels, chosen, "calls on nearly identical texts that named a slot", pairs)
        else:
            yield recorder.missing("graded_vacuum", labels, f"not measured: graded vacuum was not run under {prompt}")


def verdicts_of(verdict: Ints) -> dict[str, JSON]:
    """How many calls gave each verdict."""
    return {"verdicts": dict(zip(VERDICTS, np.bincount(verdict, minlength=len(VERDICTS)).tolist(), strict=True))}


def delta0_measurements(table: CallTable, recorder: Recorder, prompt: str) -> Iterator[Measurement]:
    """The decomposition of an arm, for texts that differ in wording and for texts that meet different requirements."""
    for condition in EQUAL:
        rows = table.where(prompt=prompt, condition=condition)
        trials = rows.size / max(1, table.questions(rows))
        counts = table.pairs(rows) if rows.size else None
        yield from decomposition_measurements(counts, recorder, prompt=prompt, condition=condition, trials=trials)


def decomposition_measurements(
    counts: VerdictCounts | None, recorder: Recorder, *, prompt: str, condition: str, judge: int = 0,
    trials: float = 1.0,
) -> Iterator[Measurement]:  # fmt: skip
    """Raw preference, its parts, flip rate and slot share of one judge, from `decompose_arrays`."""
    labels = {"prompt": prompt, "condition": condition}
    if counts is None:
        for name in (*_OF_CALLS, *_OF_PAIRS):
            state = f"not measured: no {condition.replace('_', '-')} pairs were run"
            yield recorder.missing(name, labels, state, n_of=CALLS if name in _OF_CALLS else PAIRS)
        return
    # Raw preference and tie rate over all calls, those of pairs shown in one order included.
    pairs, calls, incomplete = counts.pairs[judge], counts.calls[judge], int(counts.incomplete[judge])
    every, total = calls.sum(axis=0), pairs.sum(axis=0)
    for name, (verdict, what) in _OF_CALLS.items():
        hits = calls[:, verdict].sum(axis=1)
        detail: dict[str, JSON] = {"verdicts": dict(zip(VERDICTS, every.tolist(), strict=True))}
        if name == "delta0.raw" and pairs.sum():
            detail["of_pairs"] = decomposition_of(total).raw_false_preference
        split = np.stack([hits, calls.sum(axis=1) - hits], axis=1)
        questions = round(int(every.sum()) / trials)
        yield recorder.calls(name, labels, split, what, questions=questions, detail=detail)
    if not pairs.sum():
        for name in _OF_PAIRS:
            yield recorder.missing(name, labels, _ONE_ORDER, n_of=PAIRS, detail={"one_order_pairs": incomplete})
        return
    # The shares of pairs, which with each other make one, and the residual of eq. 6.
    classes = np.arange(len(CLASSES))
    parts = [
        (name, np.isin(classes, kinds).astype(np.float64), what, kinds) for name, (kinds, what) in _COUNTED.items()
    ]
    residual = np.where(classes == OTHER_PREFERENCE, PREFERENCES, 0.0)
    other = "what pairs with an unusable call add to raw false preference (eq. 6)"
    for name, weights, what, kinds in (*parts, ("delta0.other", residual, other, (OTHER_PREFERENCE,))):
        detail = {"pairs": int(total[list(kinds)].sum()), "one_order_pairs": incomplete}
        detail["classes"] = dict(zip(CLASSES, total.tolist(), strict=True))
        yield recorder.classes(name, labels, pairs, weights, what, information=1 / trials, detail=detail)
    # The flip rate that other tools print, and which slot the positional pairs chose.
    positional = pairs[:, POSITIONAL_1] + pairs[:, POSITIONAL_2]
    detail = {"pairs": int(positional.sum()), "one_sided_pairs": int(total[ONE_SIDED]), "hides": _HIDES}
    decided = np.stack([positional, pairs[:, STABLE]], axis=1)
    if decided.sum():
        yield recorder.classes("delta0.flip_rate", labels, decided, (1.0, 0.0),
                               "positional over stable and positional pairs", information=1 / trials, detail=detail,
        )  # fmt: skip
    else:
        state = "undefined: no pair was decided in both orders"
        yield recorder.missing("delta0.flip_rate", labels, state, n_of=PAIRS, detail=detail)
    slots = pairs[:, [POSITIONAL_1, POSITIONAL_2]]
    if slots.sum():
        questions = max(1, round(int(slots.sum()) / trials))
        yield recorder.calls("delta0.slot_1_share", labels, slots, "positional pairs that chose slot 1",
                             questions=questions, n_of="positional pairs")  # fmt: skip
    else:
        state = "undefined: no positional pairs"
        yield recorder.missing("delta0.slot_1_share", labels, state, n_of="positional pairs")


def filler_measurement(table: CallTable, recorder: Recorder, prompt: str) -> Measurement:
    """Filler preference: how often the text with filler wins. In a filler pair the content v carries the filler."""
    rows = table.where(prompt=prompt, condition="filler")
    if not rows.size:
        return recorder.missing(
            "filler.preference", {"prompt": prompt}, f"not measured: filler was not run under {prompt}"
        )
    filler_slot, verdict = 1 - table.order[rows], table.verdict[rows]
    return recorder.calls("filler.preference", {"prompt": prompt}, table.by_task(rows, verdict == filler_slot),
                          "calls that preferred the text with filler, over all filler calls",
                          questions=table.questions(rows),
                          detail={"against": int((verdict == 1 - filler_slot).sum()), **verdicts_of(verdict)},
    )  # fmt: skip


def invalid_measurement(table: CallTable, recorder: Recorder, prompt: str, reasons: Mapping[str, int]) -> Measurement:
    """The share of calls of an arm whose reply could not be used, with the reasons."""
    rows = table.where(prompt=prompt)
    counts = table.by_task(rows, table.verdict[rows] == VERDICTS.index("invalid"))
    return recorder.calls("pair.invalid_share", {"prompt": prompt}, counts,
                          "calls without a usable verdict, over all calls", questions=table.questions(rows),
                          detail={"reasons": dict(reasons)})  # fmt: skip


def reasons_of(calls: Iterable[PairCall]) -> dict[str, dict[str, int]]:
    """How often each reason for an unusable reply was given, by prompt."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for call in calls:
        if call.verdict == "invalid":
            found[call.prompt][call.reason or "no reason given"] += 1
    return {prompt: dict(sorted(counts.items())) for prompt, counts in found.items()}
