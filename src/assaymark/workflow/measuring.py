"""`assaymark measure`: judgments and evidence in, measurements out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from assaymark.judging import judged_text, token_count
from assaymark.judging.evidence import evidence_summary, forecast_mismatches
from assaymark.judging.evidence.material import Material
from assaymark.metrology import analyse, score_table
from assaymark.protocol import Study
from assaymark.records import Decision, Measurement
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.locking import open_locked
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.selection import select
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
        store.write(MEASUREMENTS, _measured(folder, locked.study, progress), basis)
    return store.rows(MEASUREMENTS)


def _measured(folder: RunFolder, study: Study, progress: Progress) -> list[Measurement]:
    store = Store(folder)
    decisions = select(store.read(DECISIONS), study).decisions
    lengths = {decision.record_id: token_count(judged_text(decision)) for decision in decisions}
    table = score_table(store.read(JUDGMENTS), decisions, weights=study.rubric.weights, lengths=lengths)
    panel = analyse(table, study, rng=np.random.default_rng([study.seed, 1]), progress=_counted(progress))
    return [*panel, *_evidence(store, decisions, study)]


def _evidence(store: Store, decisions: Sequence[Decision], study: Study) -> list[Measurement]:
    """What the numeric ledger of a run measures; its material is needed to say what chance would support."""
    rng = np.random.default_rng([study.seed, 2])
    used = {decision.context_id for decision in decisions}
    # Indexed one by one: all contexts and all their indices at once are what would take the most memory of a run.
    material = {name: Material.of(context) for name, context in store.each_context() if name in used}
    summary = evidence_summary(store.read(EVIDENCE), decisions, material, rng=rng, level=study.inference.level)
    return [*summary, forecast_mismatches(decisions)]


def _counted(progress: Progress) -> Callable[[str], None]:
    """``progress`` for work that says which of its four parts begins."""
    done = itertools.count()
    return lambda _: progress("measuring", next(done), 4)
