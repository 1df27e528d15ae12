"""The datasheet of a rubric judge: texts of known quality one at a time, through the ordinary judge prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from assaymark.engine import Model
from assaymark.judging import judgment, load_rubric, plan_calls
from assaymark.judging.pairs import Task, point_records, point_stimuli
from assaymark.metrology.datasheet import pointwise_measurements
from assaymark.protocol import JudgeSpec, Records, Study
from assaymark.records import AGGREGATE, Judgment, Measurement
from assaymark.workflow.asking import ask
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.progress import Progress


def measure_pointwise(
    folder: RunFolder,
    judge: JudgeSpec,
    models: Mapping[str, Model],
    tasks: Sequence[Task],
    *,
    rubric: str,
    seed: int,
    progress: Progress,
) -> tuple[tuple[Measurement, ...], list[Judgment]]:
    """What a rubric judge gives to nothing and for each requirement met, on every dimension and on their mean.

    Raises
    ------
    ModelError
        Calls failed for good; what was answered is kept, and the same command goes on.
    """
    wanted = load_rubric(rubric)
    stimuli = point_stimuli(tasks, seed)
    decisions, contexts = point_records(stimuli)
    study = Study(
        name="datasheet",
        seed=seed,
        judges=(judge,),
        records=Records(derivations=("honest", "vacuum", "ladder"), exclude_flags=()),
    )
    planned = plan_calls(decisions, contexts, study, wanted)
    replies = ask(
        folder,
        [item.call for item in planned],
        models,
        judge=judge.name,
        what="asking for grades by",
        progress=progress,
    )
    graded = [judgment(item, replies[item.call.key], wanted) for item in planned]
    scores: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for one in graded:
        if one.status == "ok":
            mean = sum(one.scores.values()) / len(one.scores)
            scores[one.trajectory].append({AGGREGATE: mean, **one.scores})
    ladder = [one for one in stimuli if one.variant == "ladder" and one.id in scores]
    vacuum = [one for one in stimuli if one.variant == "vacuum" and one.id in scores]
    rng = np.random.default_rng([seed, 9])
    found: list[Measurement] = []
    for name in (AGGREGATE, *wanted.names):
        found += pointwise_measurements(
            [given[name] for one in ladder for given in scores[one.id]],
            [one.task for one in ladder for _ in scores[one.id]],
            [float(one.level) for one in ladder for _ in scores[one.id]],
            judge=judge.name,
            dimension=name,
            vacuum_scores=[given[name] for one in vacuum for given in scores[one.id]],
            vacuum_tasks=[one.task for one in vacuum for _ in scores[one.id]],
            rng=rng,
        )
    return tuple(found), graded
