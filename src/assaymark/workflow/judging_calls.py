"""`assaymark judge`: every selected decision before every judge, and every number in its text against its material."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assaymark.display import Shown
from assaymark.engine import Model, beside
from assaymark.judging import numeric_ledger
from assaymark.judging.evidence.material import Material
from assaymark.protocol import Study
from assaymark.records import Decision, Evidence, Judgment
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.grading import Desk
from assaymark.workflow.locking import open_locked
from assaymark.workflow.probing import ask_anchor, ask_probe
from assaymark.workflow.progress import Progress, saying, silent
from assaymark.workflow.selection import select
from assaymark.workflow.tables import DECISIONS, EVIDENCE, HUMAN, JUDGMENTS, Store
from assaymark.workflow.unusable import judgments_asked_again, unusable_judgments

_WORTH_A_PROCESS: Final = 300
"""Decisions from which on starting a process costs less than it saves."""


@dataclass(frozen=True, slots=True)
class JudgeResult(Shown):
    """What judging did: ``made`` counts the calls of now, ``reasked`` those of the anchor probe and outside judge."""

    judgments: int
    evidence: int
    made: int
    reasked: int


def judge(folder: RunFolder, models: Mapping[str, Model], *, progress: Progress = silent) -> JudgeResult:
    """Grade every selected decision with every judge of the locked plan, and ledger its numbers.

    Then the anchor probe, if the plan has one, and the outside judge, if leaving a family out reverses a pair. A call
    that has a reply in the ledger is never made again. Replies that do not parse are recorded as invalid.

    Raises
    ------
    ModelError
        Calls failed for good; what was answered is kept, and the same command goes on.
    StoppedError
        The run was asked to stop; what was answered is kept too.
    """
    desk = Desk(folder, open_locked(folder), models, progress)
    store = desk.store
    reading, plan = desk.locked.reading, {"plan": desk.locked.plan_hash}
    made = reasked = 0
    wanted = {table for table, basis in ((JUDGMENTS, reading), (EVIDENCE, plan)) if not store.done(table, basis)}
    both = wanted == {JUDGMENTS, EVIDENCE} and len(desk.decisions) >= _WORTH_A_PROCESS
    with beside(ledger_of, folder, desk.locked.study, processes=both) as evidence:
        if JUDGMENTS in wanted:
            judgments, summary = desk.grade(desk.locked.rubric, what="asking the judges")
            store.write(JUDGMENTS, [*judgments, *of_people(desk)], reading)
            made = summary.made
            for line in [*judgments_asked_again(judgments), *unusable_judgments(judgments)]:
                saying(progress)(line)
        reasked = ask_anchor(desk) + ask_probe(desk)
        if EVIDENCE in wanted:
            store.write(EVIDENCE, evidence(), plan)
    return JudgeResult(store.rows(JUDGMENTS), store.rows(EVIDENCE), made + reasked, reasked)


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


def of_people(desk: Desk) -> list[Judgment]:
    """What the people on the panel graded."""
    people = {one.name for one in desk.locked.study.judges if one.human}
    if not people:
        return []
    chosen = {decision.record_id for decision in desk.selection.decisions}
    return [one for one in desk.store.read(HUMAN) if one.judge in people and one.trajectory in chosen]
