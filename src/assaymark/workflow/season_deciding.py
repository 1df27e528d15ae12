"""The agents of a season on one day: each is asked once, and whatever came back, or did not, is a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from assaymark.agents.llm import LLMAgent, Place
from assaymark.agents.season_prompts import season_call, season_message
from assaymark.engine import CallSpec, Ledger, Model, Reply, RunSummary
from assaymark.engine.models import is_outside, patience
from assaymark.engine.models.prices import Prices
from assaymark.errors import ModelError, StoppedError
from assaymark.protocol import AgentSpec
from assaymark.records import Context, Decision, Provenance
from assaymark.workflow.asking import run_all
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.season_context import DayMaterial, agent_sections
from assaymark.workflow.season_file import Season

_MARGIN_S: Final = 10.0
_LANE: Final = 8  # few at once, so that the seconds of a decision are its own and not those of a queue


@dataclass(frozen=True, slots=True)
class Asked:
    """One agent before one day, with the id of its context."""

    spec: AgentSpec
    context: Context
    context_id: str


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided: without the seconds it took, which are measured and stand apart."""

    decision: Decision
    seconds: float | None


@dataclass(frozen=True, slots=True)
class _Call:
    asked: Asked
    trial: int
    call: CallSpec


def ask_agents(
    folder: RunFolder,
    ledger: Ledger,
    season: Season,
    day: date,
    asked: Sequence[Asked],
    shared: DayMaterial,
    models: Mapping[str, Model],
    prices: Prices,
    progress: Progress = silent,
) -> list[Decided]:
    """Ask every agent about one day, in as many replicates as the season has.

    A call with a reply in the ledger is not made again. An agent whose calls fail for good holds: that is a decision
    with the flag ``no-answer`` and the reason.

    Raises
    ------
    ModelError
        A provider was not asked to the end; what was answered is kept.
    StoppedError
        The run was asked to stop; what was answered is kept.
    """
    calls = [one for each in asked for one in calls_of(season, each, shared)]
    outside = [one.spec for one in asked if is_outside(one.spec.model)]
    # An agent outside has its own patience; cut off before it, it would be asked again.
    deadline = max([season.engine.deadline_s, *(patience(one.args) + _MARGIN_S for one in outside)])
    lane = season.engine.model_copy(
        update={"concurrency": min(season.engine.concurrency, _LANE), "deadline_s": deadline}
    )
    specs = [one.call for one in calls]
    summary = run_all(ledger, specs, models, lane, what=f"asking on {day}", progress=progress, first=False)
    failed = _failures(summary, folder)
    replies = dict(ledger.replies([call.key for call in specs]))
    batched = ledger.batches.answered_in_batches(replies)
    return [
        _decided(season, day, one, _answer(one.call, replies, failed), prices, one.call.key in batched) for one in calls
    ]


def calls_of(season: Season, asked: Asked, shared: DayMaterial) -> list[_Call]:
    """What an agent is asked about one day, once for each replicate."""
    message = season_message(agent_sections(shared, asked.context))
    return [
        _Call(asked, trial, season_call(asked.spec, asked.context, message, trial=trial))
        for trial in range(1, season.replicates + 1)
    ]


def _failures(summary: RunSummary, folder: RunFolder) -> dict[str, str]:
    """Why calls failed for good, by their keys.

    Raises
    ------
    ModelError
        A provider was not asked to the end: it has no money or key, or it fails for everybody. No agent is to blame.
    StoppedError
        The run was asked to stop.
    """
    kept = f"every day and reply so far is kept in {folder.path}, and the same command goes on"
    if summary.interrupted:
        raise StoppedError(f"stopped: {kept}")
    if summary.stopped or summary.left:
        why = "; ".join(summary.stopped) or f"{summary.left} calls were given up elsewhere"
        raise ModelError(f"{why}; {kept}", retryable=True)
    return {one.key: one.reason for one in summary.failed}


def _answer(call: CallSpec, replies: Mapping[str, Reply], failed: Mapping[str, str]) -> Reply:
    """The reply to a call, or that there was none."""
    if call.key in replies:
        return replies[call.key]
    return Reply(text=failed.get(call.key, "no reply"), model=call.model, finish="failed")


def _decided(season: Season, day: date, one: _Call, reply: Reply, prices: Prices, batch: bool) -> Decided:
    asked = one.asked
    week = day.isocalendar()
    place = Place(season.name, f"{week.year}-W{week.week:02d}", one.trial, asked.context_id)
    cost = prices.cost_of(asked.spec.model, reply.input_tokens, reply.output_tokens, reply.cached_tokens, batch)
    found = LLMAgent(asked.spec).decide(asked.context, place, reply, key=one.call.key, cost_usd=cost)
    replicate = "" if one.trial == 1 else f"-r{one.trial}"
    decision = replace(
        found,
        record_id=f"{season.name}-{day}-{asked.spec.name}{replicate}",
        episode_id=f"{season.name}-{day}",
        replicate=one.trial,
        call=replace(found.call, seconds=None, timing_source="absent"),
        provenance=Provenance(source="assaymark season"),
    )
    return Decided(decision, found.call.seconds)
