"""The ladder for judges of one text: as decisions that the rubric prompt takes."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import numpy as np
import pytest

from assaymark.errors import InputError
from assaymark.judging import judgment, load_rubric, plan_calls, reference_judges
from assaymark.judging.pairs import marks, point_records, point_stimuli
from assaymark.judging.pairs.tasks import FILLERS
from assaymark.protocol import parse_study

STUDY = parse_study(
    """
name = "points"
seed = 1
[records]
derivations = ["honest", "vacuum", "ladder", "length_matched"]
[[judges]]
name = "reader"
model = "reference/reader"
family = "reference"
args = {noise = 0.0}
"""
)
RUBRIC = load_rubric("v1.0")


def test_two_texts_without_content_six_levels_and_four_with_filler_for_each_task(tasks):
    found = point_stimuli(tasks, 7)
    assert len(found) == 120
    assert len({one.id for one in found}) == 120
    numbers = {"vacuum": (1, 2), "ladder": range(6), "filler": range(1, 5)}
    names = [f"{tasks[0].name}.point.{kind}.{number}" for kind, all_of in numbers.items() for number in all_of]
    assert [one.id for one in found[:12]] == names
    for one in found:
        assert sum(marks(one.text, one.brief.names)) == one.level
        assert (not one.text.strip()) == (one.variant == "vacuum")


def test_the_levels_are_those_of_the_pairs(tasks, pairs):
    steps = {pair.variant: pair for pair in pairs if pair.task == tasks[0].name and pair.delta == 1}
    for one in point_stimuli(tasks[:1], 7):
        if one.variant == "ladder" and one.level:
            pair = steps[f"Q{one.level} over Q{one.level - 1}"]
            assert one.text == (pair.u if pair.better == "u" else pair.v).text


def test_filler_lengthens_a_level_by_half_and_meets_nothing_more(tasks, pairs):
    known = {one.id: one for one in point_stimuli(tasks, 7)}
    longer = {pair.v.text: pair.u.text for pair in pairs if pair.condition == "filler"}
    filled = [one for one in known.values() if one.variant == "filler"]
    assert {one.level for one in filled} == {1, 2, 3, 4}
    for one in filled:
        parent = known[one.parent]
        assert (parent.variant, parent.level, parent.task) == ("ladder", one.level, one.task)
        assert longer[one.text] == parent.text  # the very pair that passed the gates
        assert marks(one.text, one.brief.names) == marks(parent.text, one.brief.names)
        assert one.tokens >= 1.5 * parent.tokens
        rest = one.text
        for filler in FILLERS:
            rest = rest.replace(f"{filler} ", "")
        assert rest == parent.text


def test_filler_is_the_same_content_at_another_length(tasks):
    stimuli = point_stimuli(tasks[:1], 7)
    for one, decision in zip(stimuli, point_records(stimuli)[0], strict=True):
        kind = "length_matched" if one.variant == "filler" else one.variant
        assert (decision.derivation.kind, decision.derivation.parent) == (kind, one.parent)
        assert (one.parent is None) == (one.variant != "filler")


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
        assert not any(secret in user for secret in (one.id, one.task, "vacuum", "ladder", "filler"))
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
