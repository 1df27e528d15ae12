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
from assaymark.metrology.datasheet.estimates import PAIRS, Recorder
from assaymark.records import JSON, Measurement, PairCall

GRADED: Final = ("typo", "unit", "synonym")
"""The kinds of nearly identical texts of the graded vacuum."""

EQUAL: Final = ("same_subset", "different_subset")
"""The conditions in which neither text is better."""

HIDES: Final = (
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
_PAIR_LEVEL: Final = (*_COUNTED, "delta0.other", "delta0.flip_rate", "delta0.slot_1_share")
_ONE_ORDER: Final = "not measured: every pair was shown in one order only, needs both"


def vacuum_measurements(table: CallTable, recorder: Recorder, prompt: str) -> Iterator[Measurement]:
    """Dark current of an arm, of all vacuum calls and of each kind, and preferences between nearly identical texts."""
    arm = {"prompt": prompt}
    rows = table.where(prompt=prompt, condition="vacuum")
    if not rows.size:
        yield recorder.missing("dark_current", arm, f"not measured: vacuum was not run under {prompt}")
    else:
        what = "vacuum calls that named a slot"
        yield _preferences(table, recorder, "dark_current", arm, rows, what)
        for variant in table.variants(rows):
            chosen = table.where(prompt=prompt, condition="vacuum", variant=variant)
            yield _preferences(table, recorder, "dark_current", {**arm, "variant": variant}, chosen, what)
    graded = table.where(prompt=prompt, condition="graded_vacuum")
    for variant in table.variants(graded) or GRADED:
        labels = {**arm, "variant": variant}
        chosen = table.where(prompt=prompt, condition="graded_vacuum", variant=variant)
        if chosen.size:
            what = "calls on nearly identical texts that named a slot"
            # The two orders of a pair go together: as if independent, Wilson's interval would cover 70 %.
            pairs = int(np.unique(table.pair[chosen]).size)
            yield _preferences(table, recorder, "graded_vacuum", labels, chosen, what, pairs=pairs)
        else:
            yield recorder.missing("graded_vacuum", labels, f"not measured: graded vacuum was not run under {prompt}")


def delta0_measurements(table: CallTable, recorder: Recorder, prompt: str) -> Iterator[Measurement]:
    """The decomposition of an arm, for texts that differ in wording and for texts that meet different requirements."""
    for condition in EQUAL:
        rows = table.where(prompt=prompt, condition=condition)
        trials = rows.size / max(1, table.questions(rows))
        counts = table.pairs(rows) if rows.size else None
        yield from decomposition_measurements(counts, recorder, prompt=prompt, condition=condition, trials=trials)


def decomposition_measurements(
    counts: VerdictCounts | None,
    recorder: Recorder,
    *,
    prompt: str,
    condition: str,
    judge: int = 0,
    trials: float = 1.0,
) -> Iterator[Measurement]:
    """Raw preference, its parts, flip rate and slot share of one judge, from `decompose_arrays`."""
    labels = {"prompt": prompt, "condition": condition}
    if counts is None:
        for name in ("delta0.raw", "delta0.tie_rate", *_PAIR_LEVEL):
            unit = "calls" if name in ("delta0.raw", "delta0.tie_rate") else PAIRS
            yield recorder.missing(name, labels, f"not measured: no {_words(condition)} pairs were run", n_of=unit)
        return
    pairs, calls = counts.pairs[judge], counts.calls[judge]
    yield from _call_level(recorder, labels, pairs, calls, trials)
    incomplete = int(counts.incomplete[judge])
    if not pairs.sum():
        for name in _PAIR_LEVEL:
            yield recorder.missing(name, labels, _ONE_ORDER, n_of=PAIRS, detail={"one_order_pairs": incomplete})
        return
    yield from _pair_level(recorder, labels, pairs, incomplete, trials)
    # The flip rate that other tools print, and which slot the positional pairs chose.
    positional = pairs[:, POSITIONAL_1] + pairs[:, POSITIONAL_2]
    one_sided = int(pairs[:, ONE_SIDED].sum())
    detail: dict[str, JSON] = {"pairs": int(positional.sum()), "one_sided_pairs": one_sided, "hides": HIDES}
    decided = np.stack([positional, pairs[:, STABLE]], axis=1)
    if decided.sum():
        what = "positional over stable and positional pairs"
        weights = np.array([1.0, 0.0])
        yield recorder.classes(
            "delta0.flip_rate", labels, decided, weights, what, information=1 / trials, detail=detail
        )
    else:
        state = "undefined: no pair was decided in both orders"
        yield recorder.missing("delta0.flip_rate", labels, state, n_of=PAIRS, detail=detail)
    slots = pairs[:, [POSITIONAL_1, POSITIONAL_2]]
    if slots.sum():
        what = "positional pairs that chose slot 1"
        questions = max(1, round(int(slots.sum()) / trials))
        yield recorder.calls("delta0.slot_1_share", labels, slots, what, questions=questions, n_of="positional pairs")
    else:
        state = "undefined: no positional pairs"
        yield recorder.missing("delta0.slot_1_share", labels, state, n_of="positional pairs")


def filler_measurement(table: CallTable, recorder: Recorder, prompt: str) -> Measurement:
    """Filler preference: how often the text with filler wins. In a filler pair the content v carries the filler."""
    labels = {"prompt": prompt}
    rows = table.where(prompt=prompt, condition="filler")
    if not rows.size:
        return recorder.missing("filler.preference", labels, f"not measured: filler was not run under {prompt}")
    filler_slot, verdict = 1 - table.order[rows], table.verdict[rows]
    return recorder.calls(
        "filler.preference",
        labels,
        table.by_task(rows, verdict == filler_slot),
        "calls that preferred the text with filler, over all filler calls",
        questions=table.questions(rows),
        detail={"against": int((verdict == 1 - filler_slot).sum()), **_split(verdict)},
    )


def invalid_measurement(table: CallTable, recorder: Recorder, prompt: str, reasons: Mapping[str, int]) -> Measurement:
    """The share of calls of an arm whose reply could not be used, with the reasons."""
    rows = table.where(prompt=prompt)
    return recorder.calls(
        "pair.invalid_share",
        {"prompt": prompt},
        table.by_task(rows, table.verdict[rows] == VERDICTS.index("invalid")),
        "calls without a usable verdict, over all calls",
        questions=table.questions(rows),
        detail={"reasons": dict(reasons)},
    )


def reasons_of(calls: Iterable[PairCall]) -> dict[str, dict[str, int]]:
    """How often each reason for an unusable reply was given, by prompt."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for call in calls:
        if call.verdict == "invalid":
            found[call.prompt][call.reason or "no reason given"] += 1
    return {prompt: dict(sorted(counts.items())) for prompt, counts in found.items()}


def _preferences(
    table: CallTable,
    recorder: Recorder,
    name: str,
    labels: Mapping[str, str],
    rows: Ints,
    what: str,
    *,
    pairs: int | None = None,
) -> Measurement:
    """Share of calls that named slot 1 or 2, worth no more than its different questions, or than so many ``pairs``."""
    verdict = table.verdict[rows]
    return recorder.calls(
        name,
        labels,
        table.by_task(rows, verdict < 2),
        what,
        questions=table.questions(rows) if pairs is None else pairs,
        detail=_split(verdict),
    )


def _split(verdict: Ints) -> dict[str, JSON]:
    """How many calls gave each verdict."""
    counts = np.bincount(verdict, minlength=len(VERDICTS)).tolist()
    return {"verdicts": dict(zip(VERDICTS, counts, strict=True))}


def _call_level(
    recorder: Recorder, labels: Mapping[str, str], pairs: Ints, calls: Ints, trials: float
) -> Iterator[Measurement]:
    """Raw preference and tie rate over all calls, those of pairs shown in one order included."""
    total = calls.sum(axis=0)
    questions = round(int(total.sum()) / trials)
    verdicts = {"verdicts": dict(zip(VERDICTS, total.tolist(), strict=True))}
    named = {"delta0.raw": slice(0, 2), "delta0.tie_rate": slice(2, 4)}
    words = {
        "delta0.raw": "calls that named a slot",
        "delta0.tie_rate": "calls without a preference (tie or abstention)",
    }
    for name, verdict in named.items():
        hits = calls[:, verdict].sum(axis=1)
        detail: dict[str, JSON] = dict(verdicts)
        if name == "delta0.raw" and pairs.sum():
            detail["of_pairs"] = decomposition_of(pairs.sum(axis=0)).raw_false_preference
        counts = np.stack([hits, calls.sum(axis=1) - hits], axis=1)
        yield recorder.calls(name, labels, counts, words[name], questions=questions, detail=detail)


def _pair_level(
    recorder: Recorder, labels: Mapping[str, str], pairs: Ints, incomplete: int, trials: float
) -> Iterator[Measurement]:
    """The shares of pairs, which with each other make one, and the residual of eq. 6."""
    total = pairs.sum(axis=0)
    common: dict[str, JSON] = {
        "one_order_pairs": incomplete,
        "classes": dict(zip(CLASSES, total.tolist(), strict=True)),
    }
    for name, (classes, what) in _COUNTED.items():
        weights = np.isin(np.arange(len(CLASSES)), classes).astype(np.float64)
        detail = {"pairs": int(total[list(classes)].sum()), **common}
        yield recorder.classes(name, labels, pairs, weights, what, information=1 / trials, detail=detail)
    weights = np.where(np.arange(len(CLASSES)) == OTHER_PREFERENCE, PREFERENCES, 0.0)
    what = "what pairs with an unusable call add to raw false preference (eq. 6)"
    detail = {"pairs": int(total[OTHER_PREFERENCE]), **common}
    yield recorder.classes("delta0.other", labels, pairs, weights, what, information=1 / trials, detail=detail)


def _words(condition: str) -> str:
    return condition.replace("_", "-")
