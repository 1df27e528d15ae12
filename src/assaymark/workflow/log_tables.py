"""Somebody's log of verdicts as the columns that a datasheet is measured from."""

from __future__ import annotations

import numpy as np

from assaymark.importers.verdicts import VerdictLog
from assaymark.metrology.datasheet import (
    BASE,
    CallTable,
    TaskBootstrap,
    agreement_arrays,
    kappa_measurement,
)
from assaymark.records import Measurement


def log_table(log: VerdictLog, judge: str) -> CallTable:
    """One judge's calls of a log as columns; its pairs are natural ones, of which nothing is known."""
    rows = np.flatnonzero(log.judge == log.judges.index(judge))
    tasks, task = np.unique(log.question[rows], return_inverse=True)
    n = rows.size
    return CallTable(
        judge=judge,
        tasks=tuple(log.questions[one] for one in tasks.tolist()),
        task=task.astype(np.int64),
        pair=log.pair[rows],
        order=log.order[rows],
        trial=log.trial[rows],
        verdict=log.verdict[rows],
        better=np.full(n, -1, dtype=np.int64),
        delta=np.zeros(n),
        condition=np.full(n, "different_subset"),
        variant=np.full(n, ""),
        prompt=np.full(n, BASE),
        digest=log.digest[:16],
    )


def log_agreement(log: VerdictLog, rng: np.random.Generator) -> list[Measurement]:
    """Kappa of every two judges by content after averaging orders, then call by call, clustered by question."""
    if len(log.judges) < 2:
        return []
    bootstrap = TaskBootstrap(rng)
    columns = (log.judge, log.call, log.verdict, log.question)
    return [
        kappa_measurement(
            one.tables,
            {"a": log.judges[one.first], "b": log.judges[one.second]},
            bootstrap,
            inputs=log.digest[:16],
            content=content,
        )
        for both in zip(agreement_arrays(*columns, content=True), agreement_arrays(*columns), strict=True)
        for content, one in zip((True, False), both, strict=True)
    ]
