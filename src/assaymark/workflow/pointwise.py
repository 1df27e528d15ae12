"""The datasheet of a rubric judge: texts of known quality one at a time, through the ordinary judge prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from assaymark.engine import Model
from assaymark.judging import PlannedCall, Rubric, judgment, load_rubric, plan_calls
from assaymark.judging.pairs import PointStimulus, PointVariant, Task, point_records, point_stimuli
from assaymark.metrology.datasheet import pointwise_measurements
from assaymark.protocol import JudgeSpec, Records, Study
from assaymark.records import AGGREGATE, Judgment, Measurement
from assaymark.workflow.asking import ask
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.progress import Progress
from assaymark.workflow.unusable import unusable_of

_Scores = Mapping[str, float]
"""What one grading gave, by dimension and for their mean."""


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
    """What a rubric judge gives to nothing, for each requirement met and for length, by dimension and on their mean.

    Raises
    ------
    ModelError
        Calls failed for good; what was answered is kept, and the same command goes on.
    """
    wanted = load_rubric(rubric)
    stimuli = point_stimuli(tasks, seed)
    planned = point_calls(stimuli, judge, wanted)
    replies = ask(
        folder,
        [item.call for item in planned],
        models,
        judge=judge.name,
        what="asking for grades by",
        progress=progress,
        unusable=unusable_of(planned, lambda one, reply: judgment(one, reply, wanted).reason),
    )
    graded = [judgment(item, replies[item.call.key], wanted) for item in planned]
    return point_measurements(stimuli, graded, wanted.names, judge=judge.name, seed=seed), graded


def point_calls(stimuli: Sequence[PointStimulus], judge: JudgeSpec, rubric: Rubric) -> list[PlannedCall]:
    """Every call of a judge on single texts, through the ordinary judge prompt."""
    decisions, contexts = point_records(stimuli)
    study = Study(
        name="datasheet",
        seed=0,  # calls are seeded by the judge
        judges=(judge,),
        records=Records(derivations=("honest", "vacuum", "ladder", "length_matched"), exclude_flags=()),
    )
    return plan_calls(decisions, contexts, study, rubric)


def point_measurements(
    stimuli: Sequence[PointStimulus],
    graded: Sequence[Judgment],
    dimensions: Sequence[str],
    *,
    judge: str,
    seed: int,
) -> tuple[Measurement, ...]:
    """The grades of single texts as measurements: of the mean of all dimensions, then of each.

    Grades that are not ``ok`` are left out, and a text without any is not there.
    """
    scores: defaultdict[str, list[_Scores]] = defaultdict(list)
    for one in graded:
        if one.status == "ok":
            mean = sum(one.scores.values()) / len(one.scores)
            scores[one.trajectory].append({AGGREGATE: mean, **one.scores})
    vacuum, ladder, filler = (_given(stimuli, scores, kind) for kind in ("vacuum", "ladder", "filler"))
    tokens = {one.id: one.tokens for one in stimuli}
    rng = np.random.default_rng([seed, 9])
    found: list[Measurement] = []
    for name in (AGGREGATE, *dimensions):
        found += pointwise_measurements(
            [given[name] for _, given in ladder],
            [one.task for one, _ in ladder],
            [float(one.level) for one, _ in ladder],
            judge=judge,
            dimension=name,
            vacuum_scores=[given[name] for _, given in vacuum],
            vacuum_tasks=[one.task for one, _ in vacuum],
            filler_scores=[given[name] for _, given in filler],
            filler_tasks=[one.task for one, _ in filler],
            filler_levels=[float(one.level) for one, _ in filler],
            filler_tokens=[one.tokens - tokens[one.parent or one.id] for one, _ in filler],
            rng=rng,
        )
    return tuple(found)


def _given(
    stimuli: Sequence[PointStimulus], scores: Mapping[str, Sequence[_Scores]], kind: PointVariant
) -> list[tuple[PointStimulus, _Scores]]:
    """Every set of scores that the texts of one kind were given, with its text."""
    return [(one, given) for one in stimuli if one.variant == kind for given in scores.get(one.id, ())]
