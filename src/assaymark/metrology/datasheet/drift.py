"""Is it still the same instrument? Two datasheets of a judge compared, question by question where both kept them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from assaymark.metrology import checks
from assaymark.metrology.contrasts import cluster_t, holm
from assaymark.metrology.datasheet.calls import BASE, CLASSES, key_of, pair_class
from assaymark.metrology.datasheet.estimates import Ends
from assaymark.metrology.datasheet.ladder import step_label
from assaymark.metrology.datasheet.sheet import Datasheet, anchored_calls
from assaymark.quantiles import wilson_ends
from assaymark.records import JSON, Measurement, PairCall

COMPARED: Final = (
    "dark_current",
    "delta0.stable",
    "delta0.positional",
    "delta0.one_sided",
    "sensitivity",
    "filler.preference",
    "pair.invalid_share",
)
"""The measurements that a drift verdict rests on, in every arm that both datasheets have."""

_EQUAL: Final = ("same_subset", "different_subset")
_PAIR_NAMES: Final = {"delta0.stable": "stable", "delta0.positional": "positional", "delta0.one_sided": "one-sided"}

Answers = dict[str, tuple[str, float]]  # unit -> (task, 1.0 if it counts)


@dataclass(frozen=True, slots=True)
class Shift:
    """One quantity in both datasheets: old, new, the interval of new minus old, and its unadjusted p."""

    of: str
    old: float
    new: float
    ends: Ends
    p: float
    n: int
    n_of: str
    method: str


def compare(old: Datasheet, new: Datasheet, *, alpha: float = 0.05) -> tuple[Measurement, ...]:
    """Has a judge shifted since an earlier datasheet? (Newcombe 1998)"""
    checks.probability("compare", "alpha", alpha)
    reason = _not_comparable(old, new)
    if reason is None:
        shifts = _paired(old, new, alpha) if old.anchors and new.anchors else _from_counts(old, new, alpha)
        if shifts:
            return _measured(new.judge, shifts, alpha)
        reason = "no quantity was measured in both"
    detail: dict[str, JSON] = {"verdict": "not comparable", "shifted": [], "alpha": alpha, "tests": 0}
    state = f"not measured: not comparable, {reason}"
    return (_verdict(new.judge, None, 0, state, detail),)


def _measured(judge: str, shifts: list[Shift], alpha: float) -> tuple[Measurement, ...]:
    """The shifts with their adjusted p-values, and the verdict."""
    adjusted = holm([shift.p for shift in shifts]).tolist()
    moved = [shift.of for shift, p in zip(shifts, adjusted, strict=True) if p <= alpha]
    found = [
        Measurement(
            name="drift",
            labels={"judge": judge, "of": shift.of},
            value=shift.new - shift.old,
            n=shift.n,
            n_of=shift.n_of,
            method=f"new minus old, {shift.method}",
            low=shift.ends[0],
            high=shift.ends[1],
            level=1 - alpha,
            detail={"old": shift.old, "new": shift.new, "p": shift.p, "p_holm": p},
        )
        for shift, p in zip(shifts, adjusted, strict=True)
    ]
    widest = max(max(abs(shift.ends[0]), abs(shift.ends[1])) for shift in shifts)
    detail: dict[str, JSON] = {
        "verdict": "shifted" if moved else "same instrument",
        "shifted": moved,
        "alpha": alpha,
        "tests": len(shifts),
        "widest": widest,
    }
    return *found, _verdict(judge, float(bool(moved)), len(shifts), "ok", detail)


def _verdict(judge: str, value: float | None, n: int, state: str, detail: Mapping[str, JSON]) -> Measurement:
    return Measurement(
        name="drift.verdict",
        labels={"judge": judge},
        value=value,
        n=n,
        n_of="compared quantities",
        method="any quantity shifted after Holm's adjustment" if value is not None else "none",
        state=state,
        detail=dict(detail),
    )


def _not_comparable(old: Datasheet, new: Datasheet) -> str | None:
    """Why a difference between the two would not be the judge's, or None."""
    if old.manifest != new.manifest:
        return "the texts differ (another manifest)"
    arms = set(old.arms) & set(new.arms)
    if not arms:
        return "no prompt was used in both"
    changed = sorted(arm for arm in arms if old.prompts.get(arm) != new.prompts.get(arm))
    if changed:
        return f"the prompt differs: {', '.join(changed)}"
    common = old.pairs.keys() & new.pairs.keys()
    if not old.manifest and not common:
        return "nothing shows that the texts are the same (no manifest, no common pairs)"
    turned = sorted(pair for pair in common if old.pairs[pair] != new.pairs[pair])
    if turned:
        return f"pairs of the same name are different pairs, such as {turned[0]}"
    return None


def _paired(old: Datasheet, new: Datasheet, alpha: float) -> list[Shift]:
    """Every quantity on the questions that both datasheets asked."""
    before, after = _answers(anchored_calls(old)), _answers(anchored_calls(new))
    found = []
    for of in sorted(before.keys() & after.keys()):
        units = sorted(before[of].keys() & after[of].keys())
        if not units:
            continue
        tasks = [before[of][unit][0] for unit in units]
        first, second = (np.array([side[of][unit][1] for unit in units]) for side in (before, after))
        test = cluster_t(second - first, tasks, level=1 - alpha)
        shares = float(first.mean()), float(second.mean())
        if test.low is None or test.high is None:
            ends = difference_interval(*shares, len(units), len(units), alpha)
            method = f"paired by question, {test.method}; Newcombe interval"
        else:
            ends = max(-1.0, test.low), min(1.0, test.high)
            method = f"paired by question, {test.method}"
        kind = "common pairs" if of.startswith("delta0") else "common calls"
        found.append(Shift(of, *shares, ends, test.p, len(units), kind, method))
    return found


def _answers(calls: tuple[PairCall, ...]) -> dict[str, Answers]:
    """For each compared quantity, its units and whether each counts."""
    found: dict[str, Answers] = defaultdict(dict)
    shown: dict[tuple[str, str, int], dict[str, PairCall]] = defaultdict(dict)
    for call in calls:
        prefers = call.verdict in ("1", "2")
        unit = key_of(call)
        found[_of("pair.invalid_share", call)][unit] = call.task, float(call.verdict == "invalid")
        if call.condition == "vacuum":
            found[_of("dark_current", call)][unit] = call.task, float(prefers)
        elif call.condition == "ladder":
            right = prefers and _chosen(call) == call.better
            found[_of("sensitivity", call, delta=step_label(call.delta))][unit] = call.task, float(right)
        elif call.condition == "filler":
            found[_of("filler.preference", call)][unit] = call.task, float(prefers and _chosen(call) == "v")
        elif call.condition in _EQUAL:
            shown[call.pair, call.prompt, call.trial][call.order] = call
    for (pair, prompt, trial), both in shown.items():
        if len(both) == 2:
            word = CLASSES[pair_class(both["uv"].verdict, both["vu"].verdict)].split(",")[0]
            for name, wanted in _PAIR_NAMES.items():
                of = _of(name, both["uv"], condition=both["uv"].condition)
                found[of][f"{pair}|{prompt}|{trial}"] = both["uv"].task, float(word == wanted)
    return found


def _chosen(call: PairCall) -> str:
    """The content that a call with a preference named."""
    return call.order[int(call.verdict) - 1]


def _of(name: str, call: PairCall, **labels: str) -> str:
    return _label(name, {**labels, "prompt": call.prompt})


def _label(name: str, labels: Mapping[str, str]) -> str:
    """What a drift is of: the measurement without its judge, and without the prompt where that is the base arm."""
    kept = {key: labels[key] for key in sorted(labels) if key != "judge" and (key, labels[key]) != ("prompt", BASE)}
    inner = ",".join(f"{key}={value}" for key, value in kept.items())
    return f"{name}[{inner}]" if inner else name


def _from_counts(old: Datasheet, new: Datasheet, alpha: float) -> list[Shift]:
    """Every quantity that both datasheets measured, from its counts."""
    from scipy.stats import fisher_exact  # here, because it takes every command a third of a second to load

    before, after = ({_label(m.name, m.labels): m for m in _compared(sheet)} for sheet in (old, new))
    found = []
    for of in sorted(before.keys() & after.keys()):
        a, b = before[of], after[of]
        if a.value is None or b.value is None:
            continue
        sizes = np.array([max(1, round(m.detail.get("effective_n", m.n))) for m in (a, b)])
        hits = np.rint(np.array([a.value, b.value]) * sizes).astype(np.int64)
        p = float(fisher_exact(np.stack([hits, sizes - hits])).pvalue)
        ends = difference_interval(a.value, b.value, int(sizes[0]), int(sizes[1]), alpha)
        method = (
            f"two samples, Fisher's exact test and Newcombe interval on {sizes[0]} and {sizes[1]} independent units"
        )
        found.append(Shift(of, a.value, b.value, ends, min(1.0, p), b.n, b.n_of, method))
    return found


def _compared(sheet: Datasheet) -> list[Measurement]:
    return [m for m in sheet.measurements if m.name in COMPARED and "variant" not in m.labels]


def difference_interval(old: float, new: float, n_old: int, n_new: int, alpha: float) -> Ends:
    """Newcombe's hybrid score interval of a difference of two shares (method 10)."""
    (l1, u1), (l2, u2) = (wilson_ends(p, n, level=1 - alpha) for p, n in ((old, n_old), (new, n_new)))
    gap = new - old
    low = gap - np.hypot(new - l2, u1 - old)
    high = gap + np.hypot(u2 - new, old - l1)
    return float(low), float(high)
