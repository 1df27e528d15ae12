"""Datasheets at size: a log of a million verdicts, from columns and from its file, and a whole reference judge.

Decomposition, agreement of judges and their intervals over tasks stand against pandas, which makes no intervals. The
others are wall clock of what a person waits for, pages included. Run ``just bench``: prints the seconds and the ratio,
and fails where one misses its aim.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from assaymark.cli import models
from assaymark.importers import VERDICTS, read_verdicts
from assaymark.metrology.datasheet import (
    CLASS_OF,
    CLASSES,
    OUTCOME_OF,
    TaskBootstrap,
    agreement_arrays,
    decompose_arrays,
    kappa_measurement,
    share_interval,
)
from assaymark.workflow import RunFolder
from assaymark.workflow.tracks.datasheet import judges_of, measure_judges, measure_log

Note = Callable[[str, str, str, str], None]
ROWS, JUDGES, TASKS = 1_000_000, 5, 500
AIM = 1.5
FILE_AIM, RUN_AIM = 3.0, 5.0
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
            share_interval(by_task, np.eye(len(CLASSES))[k])
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


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same log as CSV."""
    judge, pair, order, verdict, task = log()
    texts = np.array([f"text-{k}" for k in range(2 * (ROWS // JUDGES // 2 // TASKS))])
    first = pair // TASKS * 2 + order
    columns = {
        "judge": np.array([f"judge-{k}" for k in range(JUDGES)])[judge],
        "question_id": task,
        "slot_1": texts[first],
        "slot_2": texts[first + 1 - 2 * order],
        "verdict": np.array(VERDICTS)[verdict],
    }
    path = tmp_path_factory.mktemp("log") / "log.csv"
    pacsv.write_csv(pa.table(columns), path)
    return path


def test_a_file_of_a_million_verdicts(log_file: Path, tmp_path: Path, note: Note) -> None:
    columns = log()
    counts = ours(columns)[0]
    made = measure_log(RunFolder(tmp_path / "once"), log_file)
    wanted = "delta0.stable[condition=different_subset"
    stable = [m.value for sheet in made.sheets for m in sheet.measurements if m.id.startswith(wanted)]
    assert stable == pytest.approx((counts[:, 0] / counts.sum(axis=1)).tolist())

    def numbers() -> object:
        found = read_verdicts("log.csv", log_file)
        return ours((found.judge, found.trial_of_pair, found.order, found.verdict, found.question))

    what = f"from a CSV file of {ROWS:,} verdicts ({log_file.stat().st_size / 1e6:.0f} MB)"
    found = seconds(numbers, 3)
    note(f"{what}: reading, decomposition, kappa, intervals", "wall clock", f"{found:.2f} s", f"< {FILE_AIM:g} s")
    whole = seconds(lambda: measure_log(RunFolder(tmp_path / "again"), log_file), 3)
    note(f"{what}: `datasheet --from`, every measurement and all pages", "wall clock", f"{whole:.2f} s", "none set")
    assert found < FILE_AIM


@pytest.mark.parametrize(("strict", "calls"), [(False, 900), (True, 1800)])
def test_a_reference_judge(strict: bool, calls: int, tmp_path: Path, note: Note) -> None:
    judges, answering = judges_of(["reference/surface-swayed"], 1), models()
    found = []
    for k in range(3):  # a folder of its own each time: in the same one nothing is asked again
        started = time.perf_counter()
        made = measure_judges(RunFolder(tmp_path / str(k)), judges, answering, strict=strict)
        found.append(time.perf_counter() - started)
        assert made.sheets[0].calls["all"] == calls
    what = f"datasheet of a reference judge, {calls:,} calls through the ledger, pages included"
    note(what, "wall clock", f"{min(found):.2f} s", f"< {RUN_AIM:g} s")
    assert min(found) < RUN_AIM
