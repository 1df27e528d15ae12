"""The two questions that are put again: the anchor probe's to a judge of the panel, and the outside judge's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from assaymark.judging import load_rubric
from assaymark.metrology import ProbePlan, analyse, contested, stratified
from assaymark.protocol import Study
from assaymark.records import Decision, content_id
from assaymark.workflow.grading import Desk
from assaymark.workflow.locking import Locked
from assaymark.workflow.scores import honest_table
from assaymark.workflow.tables import ANCHOR, JUDGMENTS, PROBE, Store


def ask_anchor(desk: Desk) -> int:
    """One judge again, on a stratified subsample, under the anchors of another rubric (section 5.6).

    Returns the number of calls made; none if the plan has no anchor probe, or it was asked already.
    """
    study, store = desk.locked.study, desk.store
    wanted = study.anchor_probe
    basis = desk.locked.reading
    if wanted is None or store.done(ANCHOR, basis):
        return 0
    judgments, summary = desk.grade(
        load_rubric(wanted.rubric),
        what="asking for the anchor probe",
        judges=[one for one in study.judges if one.name == wanted.judge],
        only=anchor_sample(desk.selection.honest, study),
    )
    store.write(ANCHOR, judgments, basis)
    return summary.made


def anchor_sample(honest: Sequence[Decision], study: Study) -> frozenset[str]:
    """The subsample of the anchor probe: first replicates, in proportion to agents and clusters, fixed by the seed."""
    if study.anchor_probe is None:
        return frozenset()
    first = sorted((one for one in honest if one.replicate == 1), key=lambda one: one.record_id)
    strata = {one.record_id: (one.agent.id, one.cluster) for one in first}
    rng = np.random.default_rng([study.seed, 3])
    return frozenset(stratified(strata, min(study.anchor_probe.sample, len(first)), rng))


def ask_probe(desk: Desk) -> int:
    """The outside judge, on the agents of contested pairs and on nothing else (section 3.5).

    What is contested follows from the panel's judgments alone. Returns the number of calls made; none if the plan
    commits no outside judge, it is not needed, or it was asked already.
    """
    study, store = desk.locked.study, desk.store
    judge = study.stability.probe
    if judge is None:
        return 0
    plan = probe_plan(desk.locked, store)
    basis = probe_basis(desk.locked, store, plan)
    if not plan.needed or store.done(PROBE, basis):
        return 0
    judgments, summary = desk.grade(
        desk.locked.rubric,
        what="asking the outside judge",
        judges=[judge],
        only=probe_sample(desk.selection.honest, plan),
    )
    store.write(PROBE, judgments, basis)
    return summary.made


def probe_plan(locked: Locked, store: Store) -> ProbePlan:
    """Which pairs the panel's judgments leave contested."""
    study = locked.study
    panel = analyse(honest_table(store, locked), study, rng=np.random.default_rng([study.seed, 1]))
    return contested(panel, study)


def probe_basis(locked: Locked, store: Store, plan: ProbePlan) -> dict[str, str | None]:
    """What the outside judge's answers were asked for: the plan, the judgments, and the pairs that these left open."""
    return {"plan": locked.plan_hash, "judgments": store.digest(JUDGMENTS), "pairs": content_id(sorted(plan.pairs))}


def probe_sample(honest: Sequence[Decision], plan: ProbePlan) -> frozenset[str]:
    """The records on which both agents of some contested pair answered the same question."""
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for one in honest:
        if one.replicate == 1:
            answers[one.cycle][one.agent.id] = one.record_id
    pairs = {frozenset((high, low)) for _, high, low in plan.pairs}
    return frozenset(
        found[agent] for pair in pairs for found in answers.values() if pair <= found.keys() for agent in pair
    )
