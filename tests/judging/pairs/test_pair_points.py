"""The ladder for judges of one text: as decisions that the rubric prompt takes."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import numpy as np
import pytest

from assaymark.errors import InputError
from assaymark.judging import judgment, load_rubric, plan_calls, reference_judges
from assaymark.judging.pairs import marks, point_records, point_stimuli
from assaymark.protocol import parse_study

STUDY = parse_study(
    """
name = "points"
seed = 1
[records]
derivations = ["honest", "vacuum", "ladder"]
[[judges]]
name = "reader"
model = "reference/reader"
family = "reference"
args = {noise = 0.0}
"""
)
RUBRIC = load_rubric("v1.0")


def test_two_texts_without_content_and_six_levels_for_each_task(tasks):
    found = point_stimuli(tasks, 7)
    assert len(found) == 80
    assert len({one.id for one in found}) == 80
    for one in found:
        assert sum(marks(one.text, one.brief.names)) == one.level
        assert (not one.text.strip()) == (one.variant == "vacuum")


def test_the_levels_are_those_of_the_pairs(tasks, pairs):
    steps = {pair.variant: pair for pair in pairs if pair.task == tasks[0].name and pair.delta == 1}
    for one in point_stimuli(tasks[:1], 7):
        if one.variant == "ladder" and one.level:
            pair = steps[f"Q{one.level} over Q{one.level - 1}"]
            assert one.text == (pair.u if pair.better == "u" else pair.v).text


def test_they_are_planned_and_graded_like_any_decision(tasks):
    stimuli = point_stimuli(tasks, 7)
    decisions, contexts = point_records(stimuli)
    assert len(contexts) == len(tasks)
    planned = plan_calls(decisions, contexts, STUDY, RUBRIC)
    assert [one.trajectory for one in planned] == [one.id for one in stimuli]
    scores = defaultdict(list)
    for one, call in zip(stimuli, planned, strict=True):
        user = call.call.messages[1].text
        assert one.text in user
        assert one.brief.question in user
        assert "[agent" not in user
        assert not any(secret in user for secret in (one.id, one.task, "vacuum", "ladder"))
        reply = asyncio.run(reference_judges()[call.call.model].complete(call.call))
        found = judgment(call, reply, RUBRIC)
        assert found.status == "ok"
        scores[one.variant, one.level].append(np.mean(list(found.scores.values())))
    means = [float(np.mean(scores["ladder", level])) for level in range(6)]
    assert means == sorted(means)
    assert np.mean(scores["vacuum", 0]) < means[0]


def test_tasks_that_cannot_carry_stimuli_are_refused():
    with pytest.raises(InputError, match="at least one is needed"):
        point_stimuli([], 1)
