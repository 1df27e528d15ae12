"""Rounds: what is due is asked until nothing is, whatever was asked before."""

from __future__ import annotations

import asyncio

import pytest
from horizon_records import PLAN, horizon

from assaymark.engine.calls import Reply
from assaymark.judging import horizon_round, horizon_tasks, reference_season_judges
from assaymark.protocol import JudgeSpec

JUDGES = reference_season_judges()
LONG = "word " * 1500


def panel(trials=1):
    return [
        JudgeSpec(name=name.rpartition("-")[2], model=name, family="reference", trials=trials)
        for name in sorted(JUDGES)
    ]


def tasks(trials=1):
    horizons = {"long": horizon(6, text=LONG), "short": horizon(2)}
    return horizon_tasks(horizons, panel(trials), PLAN, budget=5000)


def ask(planned):
    return asyncio.run(JUDGES[planned.call.model].complete(planned.call))


def test_a_season_is_judged_in_as_many_rounds_as_it_has_parts():
    replies = {}
    due = []
    for _ in range(9):
        found = horizon_round(tasks(), replies.get)
        due.append(len(found.due))
        if found.finished:
            break
        replies |= {planned.call.key: ask(planned) for planned in found.due}
    assert due == [6, 3, 3, 0]
    assert [(one.agent, one.judge, len(one.parts), one.state) for one in found.grades] == [
        (agent, judge.name, parts, "ok") for agent, parts in (("long", 3), ("short", 1)) for judge in panel()
    ]
    assert horizon_round(tasks(), replies.get) == found


def test_a_round_of_nothing_is_finished():
    assert horizon_round([], {}.get).finished


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_refusal_ends_its_task_and_no_other(at):
    replies = {}
    refused = Reply(text="", model="m", finish="refusal")
    for number in range(3):
        found = horizon_round(tasks(), replies.get)
        for planned in found.due:
            bad = number == at and planned.task.judge.name == "reader" and planned.task.agent == "long"
            replies[planned.call.key] = refused if bad else ask(planned)
    found = horizon_round(tasks(), replies.get)
    assert found.finished
    states = {(one.agent, one.judge): one.state for one in found.grades}
    assert states.pop(("long", "reader")) == "refused"
    assert set(states.values()) == {"ok"}
