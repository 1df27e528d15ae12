"""Do two judges prefer the same texts and answer the same calls alike, and two trials of one? Kappa, by task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.datasheet.calls import (
    BASE,
    CODES,
    OUTCOME_OF,
    OUTCOMES,
    CallTable,
    agreement_arrays,
    call_table,
)
from assaymark.metrology.datasheet.estimates import Ends, Recorder, TaskBootstrap
from assaymark.metrology.kappa import jackknife_estimate
from assaymark.records import JSON, Measurement, PairCall

_USABLE: Final = 3  # outcomes 1, 2 and no preference


@dataclass(frozen=True, slots=True)
class KappaInterval:
    """Cohen's kappa, or None where it is undefined, with its jackknife ends and their method.

    ``bootstrap`` are the ends of a task-cluster bootstrap, or None.
    """

    value: float | None
    ends: Ends | None
    method: str
    bootstrap: Ends | None = None


def between_kappa(
    a: Sequence[PairCall],
    b: Sequence[PairCall],
    *,
    level: float = 0.95,
    rng: np.random.Generator,
    prompt: str = BASE,
    content: bool = False,
) -> Measurement:
    """How far two judges answer the same calls alike, beyond chance. Source: Cohen 1960."""
    first, second = call_table(a), call_table(b)
    if first.judge == second.judge:
        raise InputError(
            "between_kappa", [Problem("judge", f"both sequences are of {first.judge!r}; needs two judges")]
        )
    if first.judge > second.judge:
        a, b = b, a
    chosen = [call for calls in (a, b) for call in calls if call.prompt == prompt]
    tasks = {task: k for k, task in enumerate(sorted({call.task for call in chosen}))}
    pairs = {pair: k for k, pair in enumerate(sorted({(call.pair, call.trial) for call in chosen}))}
    judges = sorted((first.judge, second.judge))
    labels = {"a": judges[0], "b": judges[1]}
    tables = np.zeros((1, 4, 4), dtype=np.int64)
    if len({call.judge for call in chosen}) == 2:
        (found,) = agreement_arrays(
            [judges.index(call.judge) for call in chosen],
            [2 * pairs[call.pair, call.trial] + (call.order == "vu") for call in chosen],
            [CODES[call.verdict] for call in chosen],
            [tasks[call.task] for call in chosen],
            content=content,
        )
        tables = found.tables
    inputs = "+".join(table.digest for table in sorted((first, second), key=lambda table: table.judge))
    return kappa_measurement(tables, labels, TaskBootstrap(rng, level), inputs=inputs, content=content)


def kappa_measurement(
    tables: Ints, labels: dict[str, str], bootstrap: TaskBootstrap, *, inputs: str = "", content: bool = False
) -> Measurement:
    """``between.kappa`` from tables of outcomes by task [G, 4, 4], as `agreement_arrays` makes them."""
    usable = tables[:, :_USABLE, :_USABLE]
    n, common = int(usable.sum()), int(tables.sum())
    unit, where = ("pair", " in both orders") if content else ("call", "")
    found = kappa_interval(usable, bootstrap)
    detail: dict[str, JSON] = {
        f"common_{unit}s": common,
        "invalid": common - n,
        "tasks": int(np.count_nonzero(usable.sum(axis=(1, 2)))),
        "outcomes": ["u", "v", *OUTCOMES[2:_USABLE]] if content else list(OUTCOMES[:_USABLE]),
        "table": usable.sum(axis=0).tolist(),
        "bootstrap": None if found.bootstrap is None else list(found.bootstrap),
    }
    if not n:
        state = f"not measured: no common {unit}{where} with a usable verdict of both ({common} common {unit}s)"
    else:
        state = "ok" if found.value is not None else f"undefined: both judges gave one answer to every common {unit}"
    low, high = found.ends if found.ends is not None else (None, None)
    base = "by content, orders averaged" if content else "by position, call by call"
    return Measurement(
        name="between.kappa_content" if content else "between.kappa",
        labels=labels,
        value=found.value,
        n=n,
        n_of=f"common {unit}s",
        method=f"Cohen's kappa, unweighted, {base}, {found.method}" if found.value is not None else "none",
        state=state,
        low=low,
        high=high,
        level=bootstrap.level if found.ends is not None else None,
        inputs=inputs,
        detail=detail,
    )


def kappa_interval(tables: Ints, bootstrap: TaskBootstrap) -> KappaInterval:
    """Unweighted kappa of tables by task [G, K, K] with its delete-one-task jackknife on Student's t, cut at -1 and 1."""
    size = tables.shape[1]
    sums = tables.reshape(tables.shape[0], -1).astype(np.float64)
    sums = sums[sums.sum(axis=1) > 0]
    total = sums.sum(axis=0)
    value = float(cohen_kappas(total[:, None], size)[0])
    if math.isnan(value):
        return KappaInterval(None, None, "undefined")
    tasks = sums.shape[0]
    if tasks < 2:
        return KappaInterval(value, None, "no interval: one task, needs two")
    second = bootstrap.ends(sums, lambda columns: cohen_kappas(columns, size))
    without = cohen_kappas((total - sums).T, size)
    if np.isnan(without).any():
        return KappaInterval(value, None, "no interval: kappa is undefined without one of the tasks", second)
    found = jackknife_estimate(value, without, level=bootstrap.level)
    if found.low is None or found.high is None:
        return KappaInterval(value, None, "no interval: the tasks do not differ", second)
    ends = max(-1.0, found.low), min(1.0, found.high)
    return KappaInterval(value, ends, f"delete-one-task jackknife, t({tasks - 1})", second)


def cohen_kappas(columns: Floats, size: int) -> Floats:
    """Unweighted kappa [R] of flattened tables [K * K, R]; NaN where both margins are one and the same answer."""
    cells = columns.reshape(size, size, -1)
    n = cells.sum(axis=(0, 1))
    share = cells / np.where(n > 0, n, 1.0)
    observed = np.trace(share)
    chance = (share.sum(axis=0) * share.sum(axis=1)).sum(axis=0)
    flat = (1 - chance < 1e-12) | (n == 0)
    return np.where(flat, np.nan, (observed - chance) / np.where(flat, 1.0, 1 - chance))


def stability_measurement(table: CallTable, recorder: Recorder) -> Measurement:
    """Repeat stability: how often two trials of the same question gave the same outcome."""
    asked = np.unique(table.prompt, return_inverse=True)[1].astype(np.int64)
    question = (asked * (table.pair.max() + 1) + table.pair) * 2 + table.order
    _, row = np.unique(question, return_inverse=True)
    counts = np.zeros((int(row.max()) + 1, len(OUTCOMES)), dtype=np.int64)
    outcome = OUTCOME_OF[table.verdict]
    np.add.at(counts, (row, outcome), 1)
    task = np.zeros(counts.shape[0], dtype=np.int64)
    task[row] = table.task
    trials = counts.sum(axis=1)
    repeated = trials > 1
    detail: dict[str, JSON] = {"trials": int(np.unique(table.trial).size), "once_only": int((~repeated).sum())}
    if not repeated.any():
        state = "undefined: one trial, needs two"
        return recorder.missing("repeat.stability", {}, state, n_of="questions", detail=detail)
    ordered = trials * (trials - 1)
    same = (counts * (counts - 1)).sum(axis=1)[repeated] / ordered[repeated]
    same = np.round(same, 12)
    # Both edges of the scale belong to it also where every question lies on one of them.
    levels = np.unique([0.0, 1.0, *same.tolist()])
    place = np.searchsorted(levels, same)
    by_task = np.bincount(task[repeated] * levels.size + place, minlength=len(table.tasks) * levels.size)
    kappa = _kappa_over_trials(table, row, outcome, recorder.bootstrap)
    detail |= {
        "kappa": kappa.value,
        "kappa_low": None if kappa.ends is None else kappa.ends[0],
        "kappa_high": None if kappa.ends is None else kappa.ends[1],
        "kappa_method": kappa.method,
        "invalid": int((outcome == _USABLE).sum()),
    }
    return recorder.classes(
        "repeat.stability",
        {},
        by_task.reshape(-1, levels.size),
        levels,
        "mean over questions of the share of trial pairs with the same outcome",
        n_of="questions",
        detail=detail,
    )


def _kappa_over_trials(table: CallTable, row: Ints, outcome: Ints, bootstrap: TaskBootstrap) -> KappaInterval:
    """Kappa of all pairs of trials, each table counted in both directions, so that no trial is first."""
    names, code = np.unique(table.trial, return_inverse=True)
    answers = np.full((names.size, int(row.max()) + 1), -1)
    answers[code, row] = outcome
    task = np.zeros(answers.shape[1], dtype=np.int64)
    task[row] = table.task
    tables = np.zeros((len(table.tasks), _USABLE, _USABLE), dtype=np.int64)
    for a, b in combinations(answers, 2):
        both = (a >= 0) & (b >= 0) & (a < _USABLE) & (b < _USABLE)
        np.add.at(tables, (task[both], a[both], b[both]), 1)
    return kappa_interval(tables + tables.transpose(0, 2, 1), bootstrap)
