"""`assaymark measure`: judgments and evidence in, measurements out."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from assaymark.judging import judged_text, token_count
from assaymark.judging.evidence import evidence_summary, forecast_mismatches
from assaymark.metrology import analyse, score_table
from assaymark.records import Measurement
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.locking import Locked, open_locked, select
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.tables import DECISIONS, EVIDENCE, JUDGMENTS, MEASUREMENTS, Store


def measure(folder: RunFolder, *, progress: Progress = silent) -> int:
    """Measure the panel, the agents and the evidence of a judged run; returns the number of measurements.

    Raises
    ------
    LedgerError
        The judgments are not there yet: judge first.
    """
    locked = open_locked(folder)
    store = Store(folder)
    basis = {"plan": locked.plan_hash, "judgments": store.digest(JUDGMENTS), "evidence": store.digest(EVIDENCE)}
    if not store.done(MEASUREMENTS, basis):
        store.write(MEASUREMENTS, _measured(locked, store, progress), basis)
    return store.rows(MEASUREMENTS)


def _measured(locked: Locked, store: Store, progress: Progress) -> list[Measurement]:
    study = locked.study
    decisions = select(store.read(DECISIONS), study).decisions
    lengths = {decision.record_id: token_count(judged_text(decision)) for decision in decisions}
    table = score_table(store.read(JUDGMENTS), decisions, weights=study.rubric.weights, lengths=lengths)
    panel = analyse(table, study, rng=np.random.default_rng([study.seed, 1]), progress=_named(progress))
    evidence = evidence_summary(store.read(EVIDENCE), decisions, rng=np.random.default_rng([study.seed, 2]))
    return [*panel, *evidence, forecast_mismatches(decisions)]


def _named(progress: Progress) -> Callable[[str], None]:
    """``progress`` for work that says which of its four parts begins."""
    done = itertools.count()
    return lambda _: progress("measuring", next(done), 4)
