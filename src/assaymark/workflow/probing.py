"""The two questions that are put again: the anchor probe's to a judge of the panel, and the outside judge's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from assaymark.engine import Model, RunSummary
from assaymark.judging import load_rubric, plan_calls
from assaymark.metrology import ProbePlan, contested, stratified
from assaymark.protocol import Study
from assaymark.records import Decision, content_id
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.grading import grade
from assaymark.workflow.locking import Locked
from assaymark.workflow.progress import Progress
from assaymark.workflow.selection import select
from assaymark.workflow.tables import ANCHOR, DECISIONS, JUDGMENTS, MEASUREMENTS, PROBE, Store


def ask_anchor(folder: RunFolder, locked: Locked, models: Mapping[str, Model], progress: Progress) -> RunSummary | None:
    """One judge again, on a stratified subsample, under the anchors of another rubric (section 5.6).

    Returns None if the plan has no anchor probe, or it was asked already.
    """
    study, store = locked.study, Store(folder)
    wanted = study.anchor_probe
    basis: dict[str, str | None] = {"plan": locked.plan_hash}
    if wanted is None or store.done(ANCHOR, basis):
        return None
    decisions = store.read(DECISIONS)
    rubric = load_rubric(wanted.rubric)
    judge = next(one for one in study.judges if one.name == wanted.judge)
    sample = anchor_sample(select(decisions, study).honest, study)
    planned = plan_calls(decisions, store.contexts(), study, rubric, judges=[judge], only=sample)
    judgments, summary = grade(
        folder, planned, models, rubric, study.engine, what="asking for the anchor probe", progress=progress
    )
    store.write(ANCHOR, judgments, basis)
    return summary


def anchor_sample(honest: Sequence[Decision], study: Study) -> frozenset[str]:
    """The subsample of the anchor probe: first replicates, in proportion to agents and clusters, fixed by the seed."""
    if study.anchor_probe is None:
        return frozenset()
    first = sorted((one for one in honest if one.replicate == 1), key=lambda one: one.record_id)
    strata = {one.record_id: (one.agent.id, one.cluster) for one in first}
    rng = np.random.default_rng([study.seed, 3])
    return frozenset(stratified(strata, min(study.anchor_probe.sample, len(first)), rng))


def ask_probe(folder: RunFolder, locked: Locked, models: Mapping[str, Model], progress: Progress) -> RunSummary | None:
    """The outside judge, on the agents of contested pairs and on nothing else (section 3.5).

    Returns None if the plan commits none, no measurements say yet whether it is needed, it is not, or it was asked.
    """
    study, store = locked.study, Store(folder)
    judge = study.stability.probe
    if judge is None or store.digest(MEASUREMENTS) is None:
        return None
    plan = contested(store.read(MEASUREMENTS), study)
    basis = probe_basis(locked, store, plan)
    if not plan.needed or store.done(PROBE, basis):
        return None
    decisions = store.read(DECISIONS)
    only = probe_sample(select(decisions, study).honest, plan)
    planned = plan_calls(decisions, store.contexts(), study, locked.rubric, judges=[judge], only=only)
    judgments, summary = grade(
        folder, planned, models, locked.rubric, study.engine, what="asking the outside judge", progress=progress
    )
    store.write(PROBE, judgments, basis)
    return summary


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
