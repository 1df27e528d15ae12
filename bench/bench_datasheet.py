"""A log of a million verdicts: decomposition, agreement of judges and their intervals over tasks, against pandas.

Run ``just bench``: prints the seconds and the ratio, and fails where one misses its aim.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from assaymark.metrology.datasheet import (
    CLASSES,
    TaskBootstrap,
    agreement_arrays,
    decompose_arrays,
    kappa_measurement,
    share_interval,
)
from assaymark.metrology.datasheet.verdicts import CLASS_OF, OUTCOME_OF

Note = Callable[[str, str, str, str], None]
ROWS, JUDGES, TASKS = 1_000_000, 5, 500
AIM = 1.5
Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def log() -> Columns:
    """Five judges on 100,000 pairs of 500 tasks in both orders, rows in random order; one reply in fifty invalid."""
    rng = np.random.default_rng(7)
    judge, pair, order = (axis.ravel() for axis in np.indices((JUDGES, ROWS // JUDGES // 2, 2)))
    verdict = rng.choice(5, ROWS, p=[0.4, 0.3, 0.2, 0.08, 0.02])
    shuffled = rng.permutation(ROWS)
    return judge[shuffled], pair[shuffled], order[shuffled], verdict[shuffled], (pair % TASKS)[shuffled]


def ours(columns: Columns) -> tuple[np.ndarray, list[float]]:
    """Class counts with intervals of every class of every judge, and every pairwise kappa with its interval."""
    judge, pair, order, verdict, task = columns
    bootstrap = TaskBootstrap(np.random.default_rng(1))
    counts = decompose_arrays(judge, pair, order, verdict, task)
    for by_task in counts.pairs:
        for k in range(len(CLASSES)):
            share_interval(by_task, np.eye(len(CLASSES))[k], bootstrap)
    kappas = [
        kappa_measurement(found.tables, {"a": str(found.first), "b": str(found.second)}, bootstrap)
        for found in agreement_arrays(judge, pair * 2 + order, verdict, task)
    ]
    return counts.pairs.sum(axis=1), [found.value for found in kappas if found.value is not None]


def pandas(columns: Columns) -> tuple[np.ndarray, list[float]]:
    """The same counts and kappas by joins and groups, without any interval."""
    frame = pd.DataFrame(dict(zip(("judge", "pair", "order", "verdict", "task"), columns, strict=True)))
    both = frame.pivot_table(index=["judge", "pair", "task"], columns="order", values="verdict").dropna().astype(int)
    both["kind"] = CLASS_OF[both[0].to_numpy(), both[1].to_numpy()]
    counts = both.groupby(["judge", "kind"]).size().unstack(fill_value=0).reindex(columns=range(len(CLASSES)))
    frame["outcome"] = OUTCOME_OF[columns[3]]
    wide = frame[frame["outcome"] < 3].pivot_table(index=["pair", "order"], columns="judge", values="outcome")
    kappas = []
    for a, b in combinations(range(JUDGES), 2):
        common = wide[[a, b]].dropna()
        table = pd.crosstab(common[a], common[b], normalize=True).to_numpy()
        chance = float(table.sum(axis=0) @ table.sum(axis=1))
        kappas.append((float(np.trace(table)) - chance) / (1 - chance))
    return counts.to_numpy(), kappas


def seconds(function: Callable[[], object], repeats: int) -> float:
    """The best of so many runs."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        found.append(time.perf_counter() - started)
    return min(found)


def test_a_log_of_a_million_verdicts(note: Note) -> None:
    columns = log()
    (counts, kappas), (their_counts, their_kappas) = ours(columns), pandas(columns)
    assert np.array_equal(counts, their_counts)
    assert kappas == pytest.approx(their_kappas)
    found, theirs = seconds(lambda: ours(columns), 5), seconds(lambda: pandas(columns), 2)
    what = f"datasheet of a log, {ROWS:,} verdicts, {JUDGES} judges, {TASKS} tasks: decomposition, kappa, intervals"
    note(what, "its own aim", f"{found:.2f} s", f"< {AIM} s")
    note(what, "pandas groupby, counts and kappa only", f"{theirs / found:.1f} x ({theirs:.2f} s)", "none set")
    assert found < AIM
