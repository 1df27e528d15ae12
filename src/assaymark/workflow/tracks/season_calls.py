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
from assaymark.judging.season.scoring import GradedPart, HorizonGrades, OutcomeGrade, horizon_round, outcome_grade
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
        return tuple(
            replace(grades, parts=tuple(map(self._second, grades.parts)))
            for grades in (found[at] for at in range(len(tasks)))
        )

    def _second(self, part: GradedPart) -> GradedPart:
        """A part with the key of its second call, where that is the one that counts."""
        second = self.seconds.get(part.call_key)
        return part if second is None else replace(part, call_key=second, first_key=part.call_key)

    def guesses(self, probes: Sequence[Probe]) -> list[tuple[Probe, Read[Reasoned[str]]]]:
        """What the probes of the blinding brought."""
        self.ask([one.planned.call for one in probes])
        found = []
        for one in probes:
            call = one.planned.call
            read = read_guess(self.replies[call.key], one.planned)
            if call.key in self.seconds:
                one = replace(one, planned=replace(one.planned, call=second_call(call)))
            found.append((one, read))
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
    folder: RunFolder, ledger: Ledger, season: Season, day: date, asked: Sequence[Asked], shared: DayMaterial,
    models: Mapping[str, Model], prices: Prices, progress: Progress = silent,
) -> list[Decided]:  # fmt: skip
    """Ask every agent about one day, in as many replicates as the season has."""
    calls, live = [one for each in asked for one in calls_of(season, each, shared)], season.market.live
    kept = f"every day and reply so far is kept in {folder.path}, and the same command goes on"
    outside = [one.spec for one in asked if is_outside(one.spec.model)]
    # An agent outside has its own patience; cut off before it, it would be asked again.
    deadline = max([season.engine.deadline_s, *(patience(one.args) + _MARGIN_S for one in outside)])
    most = min(season.engine.concurrency, _LANE)
    lane = season.engine.model_copy(update={"concurrency": most, "deadline_s": deadline})
    absent = _absent(ledger, calls, models, live=live)
    specs = [one.call for one in calls if one.asked.spec.name not in absent]
    summary = run_all(ledger, specs, models, lane, what=f"asking on {day}", progress=progress, first=False)
    if summary.interrupted:
        raise StoppedError(f"stopped: {kept}")
    failed = {one.key: one.reason for one in summary.failed}
    replies = dict(ledger.replies([one.call.key for one in calls]))
    purse, stopped = purse_of(models), {}
    if live and summary.stopped and not (purse is not None and purse.stopped):
        # providers that were not asked to the end: a live season goes on without them
        stopped = {line.partition(" ")[0].rstrip(":"): line.partition("; ")[0] for line in summary.stopped}
    elif summary.stopped or summary.left:
        why = "; ".join(summary.stopped) or f"{summary.left} calls were given up elsewhere"
        raise ModelError(f"{why}; {kept}", retryable=True)
    for one in calls:
        why = stopped.get(provider_of(one.call.model), "")
        if why and one.call.key not in replies:
            absent[one.asked.spec.name] = why
    if len(absent) == len(asked):
        why = "; ".join(dict.fromkeys(absent.values()))
        raise ModelError(f"no agent could be asked on {day} ({why}); {kept}", retryable=True)
    batched = ledger.batches.answered_in_batches(replies)
    found = []
    for one in calls:
        name, key = one.asked.spec.name, one.call.key
        reply = replies.get(key)
        lost = reply is None and name in absent
        if reply is None:
            reason = absent.get(name) or failed.get(key, "no reply")
            reply = Reply(text=reason, model=one.call.model, finish="failed")
        found.append(_decided(season, day, one, reply, prices, batch=key in batched, absent=lost))
    return found


def _absent(ledger: Ledger, calls: Sequence[_Call], models: Mapping[str, Model], *, live: bool) -> dict[str, str]:
    """Why agents cannot be asked, by their names; those that have answered already need not be there."""
    looked_at = [one for one in calls if live or one.call.model.startswith(_ADDRESSES)]
    pending = {*ledger.pending([one.call.key for one in looked_at])}
    found: dict[str, str] = {}
    for one in looked_at:
        name, model = one.asked.spec.name, one.call.model
        if one.call.key in pending and name not in found and model in models:
            try:
                check_ready(models[model], one.call.args)
            except ModelError as exc:
                found[name] = str(exc).partition("; ")[0]
    return found


def calls_of(season: Season, asked: Asked, shared: DayMaterial) -> list[_Call]:
    """What an agent is asked about one day, once for each replicate."""
    message = season_message(agent_sections(shared, asked.context))
    return [
        _Call(asked, trial, season_call(asked.spec, asked.context, message, trial=trial))
        for trial in range(1, season.replicates + 1)
    ]


def _decided(
    season: Season, day: date, one: _Call, reply: Reply, prices: Prices, *, batch: bool, absent: bool
) -> Decided:
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
        flags=(*found.flags, ABSENT) if absent else found.flags,
        call=replace(
            found.call,
            seconds=None,
            timing_source="absent",
            raw_object=None if absent else found.call.raw_object,  # no such call was made
        ),
        provenance=Provenance(source="assaymark season"),
    )
    return Decided(decision, found.call.seconds)
