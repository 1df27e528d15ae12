"""The agents of a season on one day: each is asked once, and whatever came back, or did not, is a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Final

from assaymark.agents.llm import ABSENT, LLMAgent, Place, season_call, season_message
from assaymark.engine import CallSpec, Ledger, Model, Reply, Unusable
from assaymark.engine.prices import Prices
from assaymark.engine.providers.http_agent import is_outside, patience
from assaymark.engine.providers.registry import check_ready
from assaymark.engine.rate_limits import provider_of
from assaymark.errors import ModelError, StoppedError
from assaymark.judging import asks_again, second_call
from assaymark.judging.prompts import Read
from assaymark.judging.season.calls import HorizonTask, PlannedHorizonCall, SeasonCall, read_guess
from assaymark.judging.season.plans import MOST_CHARACTERS, Reasoned, read_horizon_reply, read_outcome_reply
from assaymark.judging.season.scoring import HorizonGrades, OutcomeGrade, horizon_round, outcome_grade
from assaymark.protocol import AgentSpec, EngineChoice
from assaymark.records import Context, Decision, Provenance
from assaymark.workflow.ask import purse_of, require_not_stopped, run_all, unusable_of
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tracks.season_context import DayMaterial, agent_sections
from assaymark.workflow.tracks.season_plan import Season

if TYPE_CHECKING:
    from assaymark.workflow.tracks.season_judge import Probe


WHAT: Final = "asking the judges"


class SeasonAsker:
    """Asks calls through the ledger, each of them once, and holds what became of them."""

    def __init__(
        self, folder: RunFolder, ledger: Ledger, models: Mapping[str, Model], engine: EngineChoice, progress: Progress
    ) -> None:
        self.folder, self.ledger, self.models, self.engine, self.progress = folder, ledger, models, engine, progress
        self.replies: dict[str, Reply] = {}
        self.heard: set[str] = set()
        self.silent: dict[str, str] = {}
        """Models of which no call brought a reply, and why: they are not asked further in this run."""
        self.seconds: dict[str, str] = {}
        """The keys of second calls, by the keys of calls whose reply was no JSON at all."""
        self.made = 0

    def ask(self, calls: Sequence[CallSpec], what: str = WHAT, unusable: Unusable | None = None) -> None:
        """Ask what has no reply yet, and once more what has one that is no JSON at all: the second reply counts."""
        asked = {call.key: call for call in calls}
        self._ask(asked, what, unusable)
        again = {
            key: second_call(call)
            for key, call in asked.items()
            if key not in self.seconds and asks_again(self.replies[key], most=MOST_CHARACTERS)
        }
        self._ask({call.key: call for call in again.values()}, what)
        for key, call in again.items():
            self.seconds[key] = call.key
            self.replies[key] = self.replies[call.key]

    def _ask(self, asked: Mapping[str, CallSpec], what: str, unusable: Unusable | None = None) -> None:
        self.replies |= dict(self.ledger.replies([key for key in asked if key not in self.replies]))
        wanted = {key: call for key, call in asked.items() if key not in self.replies}
        self._lose({key: self.silent[call.model] for key, call in wanted.items() if call.model in self.silent}, wanted)
        wanted = {key: call for key, call in wanted.items() if key not in self.replies}
        if not wanted:
            return
        summary = run_all(
            self.ledger, list(wanted.values()), self.models, self.engine, what=what, progress=self.progress,
            unusable=unusable, first=False,
        )  # fmt: skip
        self.made += summary.made
        self.replies |= dict(self.ledger.replies(list(wanted)))
        lost = {key: call for key, call in wanted.items() if key not in self.replies}
        self.heard |= {call.model for key, call in wanted.items() if key not in lost}
        if lost:
            require_not_stopped(summary, self.folder)
            kept = f"every reply so far is kept in {self.folder.path}, and the same command goes on"
            purse = purse_of(self.models)
            if purse is not None and purse.stopped is not None:
                raise ModelError(f"{purse.stopped}; {kept}", retryable=True)
            failed = {one.key: one.reason for one in summary.failed}
            unasked = [key for key in lost if key not in failed]
            if unasked and not summary.stopped:
                raise ModelError(f"{len(unasked)} calls were given up elsewhere; {kept}", retryable=True)
            self._lose({key: failed.get(key, "; ".join(summary.stopped)) for key in lost}, lost)
            dumb = {key: call.model for key, call in lost.items() if call.model not in self.heard}
            self.silent |= {model: self.replies[key].text for key, model in dumb.items()}

    def _lose(self, reasons: Mapping[str, str], calls: Mapping[str, CallSpec]) -> None:
        for key, reason in reasons.items():
            self.replies[key] = Reply(text=reason, model=calls[key].model, finish="failed")

    def grades(self, tasks: Sequence[HorizonTask]) -> tuple[HorizonGrades, ...]:
        """The grades of all tasks, asked for part by part; `HorizonGrades` also where a judge gave none."""
        found: dict[int, HorizonGrades] = {}
        while len(found) < len(tasks):
            due: list[PlannedHorizonCall] = []
            for at, task in enumerate(tasks):
                if at not in found:  # what is graded is not read again in every round
                    asked, graded = horizon_round([task], self.replies.get)
                    due += asked
                    if graded:
                        found[at] = graded[0]
            unusable = unusable_of(due, lambda one, reply: read_horizon_reply(reply, one.asked).reason)
            self.ask([one.call for one in due], unusable=unusable)
        return tuple(  # a part has the key of its second call, where that is the one that counts
            replace(
                found[at],
                parts=tuple(
                    replace(part, call_key=self.seconds[part.call_key], first_key=part.call_key)
                    if part.call_key in self.seconds
                    else part
                    for part in found[at].parts
                ),
            )
            for at in range(len(tasks))
        )

    def guesses(self, probes: Sequence[Probe]) -> list[tuple[Probe, Read[Reasoned[str]]]]:
        """What the probes of the blinding brought."""
        self.ask([planned.call for planned, _ in probes])
        found = []
        for planned, period in probes:
            call = planned.call
            read = read_guess(self.replies[call.key], planned)
            second = replace(planned, call=second_call(call)) if call.key in self.seconds else planned
            found.append(((second, period), read))
        return found

    def outcomes(self, planned: Sequence[Sequence[SeasonCall]]) -> list[OutcomeGrade | None]:
        """The outcome grades of some tasks, each with its calls; None where there was nothing to ask."""
        self.ask([one.call for calls in planned for one in calls])
        found: list[OutcomeGrade | None] = []
        for calls in planned:
            reads = [read_outcome_reply(self.replies[one.call.key]) for one in calls]
            found.append(outcome_grade([one.part for one in calls], reads) if calls else None)
        return found


_MARGIN_S: Final = 10.0
_ADDRESSES: Final = ("http/", "https/")
_LANE: Final = 8  # few at once, so that the seconds of a decision are its own and not those of a queue


@dataclass(frozen=True, slots=True)
class Asked:
    """One agent before one day, with the id of its context."""

    spec: AgentSpec
    context: Context
    context_id: str


Call = tuple[Asked, int, CallSpec]
"""Whom, in which trial, and what."""


def ask_agents(
    folder: RunFolder, ledger: Ledger, season: Season, day: date, asked: Sequence[Asked], shared: DayMaterial,
    models: Mapping[str, Model], prices: Prices, progress: Progress = silent,
) -> list[tuple[Decision, float | None]]:  # fmt: skip
    """Ask every agent about one day, in as many replicates as the season has: the decisions, and their seconds.

    The seconds are measured, and so no part of a decision.
    """
    calls, live = [one for each in asked for one in calls_of(season, each, shared)], season.market.live
    kept = f"every day and reply so far is kept in {folder.path}, and the same command goes on"
    # An agent outside has its own patience; cut off before it, it would be asked again.
    outside = [patience(one.spec.args) + _MARGIN_S for one in asked if is_outside(one.spec.model)]
    lane = {
        "concurrency": min(season.engine.concurrency, _LANE),
        "deadline_s": max([season.engine.deadline_s, *outside]),
    }
    # Why agents cannot be asked, by their names; those that have answered already need not be there.
    absent: dict[str, str] = {}
    looked_at = [one for one in calls if live or one[2].model.startswith(_ADDRESSES)]
    pending = {*ledger.pending([call.key for _, _, call in looked_at])}
    for one, _, call in looked_at:
        if call.key in pending and one.spec.name not in absent and call.model in models:
            try:
                check_ready(models[call.model], call.args)
            except ModelError as exc:
                absent[one.spec.name] = str(exc).partition("; ")[0]
    specs = [call for one, _, call in calls if one.spec.name not in absent]
    engine = season.engine.model_copy(update=lane)
    summary = run_all(ledger, specs, models, engine, what=f"asking on {day}", progress=progress, first=False)
    if summary.interrupted:
        raise StoppedError(f"stopped: {kept}")
    failed = {one.key: one.reason for one in summary.failed}
    replies = dict(ledger.replies([call.key for _, _, call in calls]))
    purse, stopped = purse_of(models), {}
    if live and summary.stopped and not (purse is not None and purse.stopped):
        # providers that were not asked to the end: a live season goes on without them
        stopped = {line.partition(" ")[0].rstrip(":"): line.partition("; ")[0] for line in summary.stopped}
    elif summary.stopped or summary.left:
        why = "; ".join(summary.stopped) or f"{summary.left} calls were given up elsewhere"
        raise ModelError(f"{why}; {kept}", retryable=True)
    for one, _, call in calls:
        why = stopped.get(provider_of(call.model), "")
        if why and call.key not in replies:
            absent[one.spec.name] = why
    if len(absent) == len(asked):
        why = "; ".join(dict.fromkeys(absent.values()))
        raise ModelError(f"no agent could be asked on {day} ({why}); {kept}", retryable=True)
    batched = ledger.batches.answered_in_batches(replies)
    found = []
    for one, trial, call in calls:
        name, reply = one.spec.name, replies.get(call.key)
        lost = reply is None and name in absent
        if reply is None:
            reply = Reply(text=absent.get(name) or failed.get(call.key, "no reply"), model=call.model, finish="failed")
        batch = call.key in batched
        cost = prices.cost_of(call.model, reply.input_tokens, reply.output_tokens, reply.cached_tokens, batch)
        found.append(_decided(season, day, (one, trial, call), reply, cost, absent=lost))
    return found


def calls_of(season: Season, asked: Asked, shared: DayMaterial) -> list[Call]:
    """What an agent is asked about one day, once for each replicate."""
    message = season_message(agent_sections(shared, asked.context))
    return [
        (asked, trial, season_call(asked.spec, asked.context, message, trial=trial))
        for trial in range(1, season.replicates + 1)
    ]


def _decided(
    season: Season, day: date, asked: Call, reply: Reply, cost: float | None, *, absent: bool
) -> tuple[Decision, float | None]:
    one, trial, call = asked
    week = day.isocalendar()
    place = Place(season.name, f"{week.year}-W{week.week:02d}", trial, one.context_id)
    found = LLMAgent(one.spec).decide(one.context, place, reply, key=call.key, cost_usd=cost)
    raw = None if absent else found.call.raw_object  # no such call was made
    decision = replace(
        found, record_id=f"{season.name}-{day}-{one.spec.name}{'' if trial == 1 else f'-r{trial}'}",
        episode_id=f"{season.name}-{day}", replicate=trial, flags=(*found.flags, ABSENT) if absent else found.flags,
        call=replace(found.call, seconds=None, timing_source="absent", raw_object=raw),
        provenance=Provenance(source="assaymark season"),
    )  # fmt: skip
    return decision, found.call.seconds
