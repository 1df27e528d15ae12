"""`assaymark judge`: every selected decision before every judge, and every number in its text against its material."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.engine import Model, RunSummary, beside
from assaymark.judging import numeric_ledger, plan_calls
from assaymark.judging.evidence.material import Material
from assaymark.protocol import Study
from assaymark.records import Decision, Evidence, Judgment
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.grading import grade
from assaymark.workflow.locking import Locked, open_locked
from assaymark.workflow.probing import ask_anchor, ask_probe
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.selection import select
from assaymark.workflow.tables import DECISIONS, EVIDENCE, HUMAN, JUDGMENTS, Store

_WORTH_A_PROCESS: Final = 300
"""Decisions from which on starting a process costs less than it saves."""


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """What judging did: ``made`` counts the calls of now, ``reasked`` those of the anchor probe and outside judge."""

    judgments: int
    evidence: int
    made: int
    reasked: int


def judge(folder: RunFolder, models: Mapping[str, Model], *, progress: Progress = silent) -> JudgeResult:
    """Grade every selected decision with every judge of the locked plan, and ledger its numbers.

    The anchor probe, if the plan has one, is judged with it. The outside judge is asked as soon as measurements say
    that leaving a family out reverses a pair: run this again after `measure`. A call that has a reply in the ledger is
    never made again. Replies that do not parse are recorded as invalid.

    Raises
    ------
    ModelError
        Calls failed for good, or the run was asked to stop; what was answered is kept, and the same command goes on.
    """
    locked = open_locked(folder)
    store = Store(folder)
    basis: dict[str, str | None] = {"plan": locked.plan_hash}
    made = 0
    wanted = {table for table in (JUDGMENTS, EVIDENCE) if not store.done(table, basis)}
    if wanted:
        decisions = store.read(DECISIONS)
        both = wanted == {JUDGMENTS, EVIDENCE} and len(decisions) >= _WORTH_A_PROCESS
        with beside(ledger_of, folder, locked.study, processes=both) as evidence:
            if JUDGMENTS in wanted:
                judgments, summary = _grade(folder, locked, decisions, models, progress)
                store.write(JUDGMENTS, judgments, basis)
                made = summary.made
            if EVIDENCE in wanted:
                store.write(EVIDENCE, evidence(), basis)
    reasked = [ask(folder, locked, models, progress) for ask in (ask_anchor, ask_probe)]
    extra = sum(summary.made for summary in reasked if summary is not None)
    return JudgeResult(store.rows(JUDGMENTS), store.rows(EVIDENCE), made + extra, extra)


def ledger_of(folder: RunFolder, study: Study) -> list[Evidence]:
    """The numeric evidence ledger of the decisions that a study is about; each context is indexed once."""
    store = Store(folder)
    shared: dict[str, list[Decision]] = defaultdict(list)
    for decision in select(store.read(DECISIONS), study).honest:
        shared[decision.context_id].append(decision)
    found: list[Evidence] = []
    for name, context in store.each_context():
        if name in shared:
            material = Material.of(context)
            for decision in shared[name]:
                found += numeric_ledger(decision, context, material=material)
    return found


def _grade(
    folder: RunFolder, locked: Locked, decisions: Sequence[Decision], models: Mapping[str, Model], progress: Progress
) -> tuple[list[Judgment], RunSummary]:
    """The judgments of the whole panel: the models' replies, and what people graded."""
    study, store = locked.study, Store(folder)
    # All decisions, so that the names of agents that the study leaves out are blinded as well.
    planned = plan_calls(decisions, store.contexts(), study, locked.rubric)
    found, summary = grade(
        folder, planned, models, locked.rubric, study.engine, what="asking the judges", progress=progress
    )
    people = {one.name for one in study.judges if one.human}
    if people:
        chosen = {decision.record_id for decision in select(decisions, study).decisions}
        found += [one for one in store.read(HUMAN) if one.judge in people and one.trajectory in chosen]
    return found, summary
