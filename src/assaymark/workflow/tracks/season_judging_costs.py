"""What running or judging a season would ask and cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import datetime
from typing import Final

from assaymark.engine import CallSpec, Ledger, Reply
from assaymark.engine.prices import Prices
from assaymark.judging.season.calls import HorizonTask, grader_version, next_call, outcome_calls
from assaymark.judging.season.replies import MOST_NOTE_TOKENS, HorizonAnswer, Read, read_horizon_reply
from assaymark.judging.season.scoring import HorizonGrades
from assaymark.workflow.forecast import Forecast, Stage, forecast
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import Store
from assaymark.workflow.tracks.season_day import due_days, open_run, opening_calls
from assaymark.workflow.tracks.season_judge import (
    asked_judges,
    refuse_unjudgeable,
    season_parts,
    season_probes,
    season_tasks,
)
from assaymark.workflow.tracks.season_lock import stored_season
from assaymark.workflow.tracks.season_material import material_of

ReplyTo = Callable[[str], Reply | None]

_ANSWER: Final = HorizonAnswer(
    reasoning={}, evidence={}, data_reliability=0, claims=(), lookahead_check="pass", lookahead_reason="", verdict="",
    summary="", notes="word " * MOST_NOTE_TOKENS,
)  # fmt: skip
"""Stands in for an answer on a part that is not asked about yet: with notes of the most that is allowed."""


def expect_season_run(folder: RunFolder, prices: Prices, *, now: datetime) -> Forecast:
    """What `assaymark season run` would ask and cost. Nothing is sent, and nothing is written."""
    locked = open_run(folder)
    days = list(due_days(folder, locked, now))
    stage = Stage("agents", [call for day in days for call in opening_calls(locked.season, day, locked.season.agents)])
    found = forecast([stage], folder, None, prices, batch=locked.season.engine.batch)
    if len(days) > 1:
        found = found.noting(
            f"{len(days):,} days: what agents hold on later ones is not known; books as at the start stand in for it"
        )
    return found


def expect_season_judging(folder: RunFolder, prices: Prices) -> Forecast:
    """What `assaymark season judge` would ask and cost. Nothing is sent, and nothing is written."""
    stored, store = stored_season(folder), Store(folder)
    refuse_unjudgeable(folder, stored.season, store)
    material = material_of(store, stored)
    season, parts, judges = stored.season, season_parts(material), asked_judges(stored.season)
    plan, budget = material.scoring, season.judging.token_budget
    tasks = season_tasks(parts, judges, plan, budget=budget)
    with Ledger.open(folder.ledger, create=False) if folder.has_ledger else nullcontext() as ledger:
        graded = [call for _, task in tasks for call in _calls(task, _replies(ledger))]
    outcomes = [
        one.call
        for part, task in tasks
        if part.scope == "whole"
        for one in outcome_calls(
            HorizonGrades(
                agent=task.agent, judge=task.judge.name, family=task.judge.family, trial=task.trial,
                horizon=task.horizon, grader=grader_version(task.plan), state="ok", parts=(),
            ),
            part.horizon,
            material.outcomes,
            task.judge,
            plan,
            budget=budget,
        )
    ]  # fmt: skip
    probes = season_probes(parts, judges, budget=budget) if season.judging.author_probe else []
    stages = [Stage("grades", graded), Stage("outcomes", outcomes)]
    stages.append(Stage("author identification", [one.planned.call for one in probes]))
    found = forecast(stages, folder, None, prices, batch=season.engine.batch)
    if any(len(task.parts) > 1 for _, task in tasks):
        found = found.noting(
            f"of long records later parts show a judge's notes: {MOST_NOTE_TOKENS:,} words stand in for those"
        )
    return found


def _replies(ledger: Ledger | None) -> ReplyTo:
    if ledger is None:
        return lambda _: None
    return lambda key: next((reply for _, reply in ledger.replies([key])), None)


def _calls(task: HorizonTask, reply_to: ReplyTo) -> Iterator[CallSpec]:
    """The calls of a task, one for each part, from the answers that there are."""
    reads: list[Read[HorizonAnswer]] = []
    while (planned := next_call(task, reads)) is not None:
        yield planned.call
        # A record in one part needs no answer to say what comes next.
        reply = reply_to(planned.call.key) if len(task.parts) > 1 else None
        reads.append(Read("ok", _ANSWER) if reply is None else read_horizon_reply(reply, planned.asked))
