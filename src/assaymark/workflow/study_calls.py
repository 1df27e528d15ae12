"""Planned calls through the ledger and back as judgments: what every kind of judging does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from assaymark.agents.llm import NOT_USABLE, LLMAgent, Place, envelope_of, prompt_of
from assaymark.engine import CallSpec, Ledger, Message, Model, Reply, beside
from assaymark.engine.prices import Prices
from assaymark.engine.providers.http_agent import is_outside, patience
from assaymark.errors import LedgerError
from assaymark.judging import (
    PlannedCall,
    Rubric,
    asks_again,
    judgment,
    numeric_ledger,
    plan_calls,
    second_call,
    user_messages,
)
from assaymark.judging.evidence.context_index import Material
from assaymark.market.cycles import CycleKey
from assaymark.notebook import Shown
from assaymark.protocol import JudgeSpec, Study
from assaymark.records import Context, Decision, Evidence, Judgment
from assaymark.workflow.ask import (
    ask_anchor,
    ask_probe,
    judgments_asked_again,
    prices_of,
    require_all,
    run_all,
    say_raised,
    unusable_decisions,
    unusable_judgments,
    unusable_of,
)
from assaymark.workflow.lock import Locked, open_locked
from assaymark.workflow.progress import Progress, saying, silent
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.sharing import hold_ledger
from assaymark.workflow.tables import CYCLES, DECISIONS, EVIDENCE, HUMAN, JUDGMENTS, Store
from assaymark.workflow.track import Selection, select


@dataclass(frozen=True, eq=False)
class Desk:
    """A run folder, its plan, and whoever answers; decisions are read and rendered once, when they are needed."""

    folder: RunFolder
    locked: Locked
    models: Mapping[str, Model]
    progress: Progress

    @property
    def store(self) -> Store:
        """The tables of the run."""
        return Store(self.folder)

    @cached_property
    def decisions(self) -> list[Decision]:
        """All imported decisions: names of agents that the study leaves out have to be blinded as well."""
        return self.store.read(DECISIONS)

    @cached_property
    def selection(self) -> Selection:
        """The decisions that the study is about."""
        return select(self.decisions, self.locked.study)

    @cached_property
    def shown(self) -> dict[str, Message]:
        """What every judge is shown of each decision: rendered once, whoever is asked and under whichever rubric."""
        return user_messages(self.decisions, self.store.each_context(), self.locked.study)

    def grade(
        self, rubric: Rubric, *, what: str, judges: Sequence[JudgeSpec] | None = None,
        only: Collection[str] | None = None,
    ) -> tuple[list[Judgment], int]:  # fmt: skip
        """Judgments of decisions under a rubric, parsed strictly, and how many calls were made for them now."""
        study = self.locked.study
        planned = plan_calls(self.decisions, {}, study, rubric, judges=judges, only=only, shown=self.shown)
        unusable = unusable_of(planned, lambda one, reply: judgment(one, reply, rubric).reason)
        with Ledger.open(self.folder.ledger) as ledger:
            hold_ledger(self.folder, ledger, self.locked)
            calls, made = [item.call for item in planned], 0
            for again in ("", " again"):
                ledger.plan(calls)
                summary = run_all(
                    ledger, calls, self.models, study.engine, what=what + again, progress=self.progress,
                    unusable=None if again else unusable,
                )  # fmt: skip
                require_all(summary, "the judges", self.folder)
                made += summary.made
                found = parsed(planned, ledger, rubric)
                bad = {
                    item.call.key: item.call
                    for item, one in zip(planned, found, strict=True)
                    if one.status == "invalid" and not one.first_key
                }
                calls = [second_call(bad[key]) for key, reply in ledger.replies(bad) if asks_again(reply)]
                if not calls:
                    break
            return found, made


def parsed(planned: Sequence[PlannedCall], ledger: Ledger, rubric: Rubric) -> list[Judgment]:
    """What the stored replies to planned calls amount to, those of second calls included."""
    replies = dict(ledger.replies([item.call.key for item in planned]))
    if missing := sum(item.call.key not in replies for item in planned):
        raise LedgerError(f"{missing} replies that were recorded cannot be found in the ledger; it is damaged")
    found = [judgment(item, replies[item.call.key], rubric) for item in planned]
    bad = {at: second_call(item.call).key for at, item in enumerate(planned) if found[at].status == "invalid"}
    seconds = dict(ledger.replies(bad.values()))
    for at, key in bad.items():
        if key in seconds:
            found[at] = judgment(planned[at], replies[planned[at].call.key], rubric, second=seconds[key])
    return found


_WORTH_A_PROCESS: Final = 300
"""Decisions from which on starting a process costs less than it saves."""


@dataclass(frozen=True, slots=True)
class JudgeResult(Shown):
    """What judging did: ``made`` counts the calls of now, ``reasked`` those of the anchor probe and outside judge."""

    judgments: int
    evidence: int
    made: int
    reasked: int


def judge(folder: RunFolder, models: Mapping[str, Model], *, progress: Progress = silent) -> JudgeResult:
    """Grade every selected decision with every judge of the locked plan, and ledger its numbers."""
    desk = Desk(folder, open_locked(folder), models, progress)
    store = desk.store
    reading, plan = desk.locked.reading, {"plan": desk.locked.plan_hash}
    made = reasked = 0
    wanted = {table for table, basis in ((JUDGMENTS, reading), (EVIDENCE, plan)) if not store.done(table, basis)}
    both = wanted == {JUDGMENTS, EVIDENCE} and len(desk.decisions) >= _WORTH_A_PROCESS
    with beside(ledger_of, folder, desk.locked.study, processes=both) as evidence:
        if JUDGMENTS in wanted:
            judgments, made = desk.grade(desk.locked.rubric, what="asking the judges")
            store.write(JUDGMENTS, [*judgments, *of_people(desk)], reading)
            for line in [*judgments_asked_again(judgments), *unusable_judgments(judgments)]:
                saying(progress)(line)
        reasked = ask_anchor(desk) + ask_probe(desk)
        if EVIDENCE in wanted:
            store.write(EVIDENCE, evidence(), plan)
    return JudgeResult(store.rows(JUDGMENTS), store.rows(EVIDENCE), made + reasked, reasked)


def ledger_of(folder: RunFolder, study: Study) -> list[Evidence]:
    """The numeric evidence ledger of the decisions that a study is about; each context is indexed once."""
    store = Store(folder)
    shared: dict[str, list[Decision]] = defaultdict(list)
    for decision in select(store.read(DECISIONS), study).honest:
        shared[decision.context_id].append(decision)
    found: list[Evidence] = []
    for name, context in store.each_context():
        if name in shared:
            material = Material.of(context)
            for decision in shared[name]:
                found += numeric_ledger(decision, context, material=material)
    return found


def of_people(desk: Desk) -> list[Judgment]:
    """What the people on the panel graded."""
    people = {one.name for one in desk.locked.study.judges if one.human}
    if not people:
        return []
    chosen = {decision.record_id for decision in desk.selection.decisions}
    return [one for one in desk.store.read(HUMAN) if one.judge in people and one.trajectory in chosen]


_MARGIN_S: Final = 10.0
_LANE: Final = 8  # few at once, so that the seconds of a decision are its own and not those of a queue


@dataclass(frozen=True, slots=True)
class Asked:
    """One agent before one cycle."""

    agent: LLMAgent
    place: Place
    context: Context
    call: CallSpec


def decide(folder: RunFolder, models: Mapping[str, Model], *, progress: Progress = silent) -> int:
    """Let every agent of a locked study decide on every cycle, and compose its control cells."""
    locked = open_locked(folder)
    study, store, engine = locked.study, Store(folder), locked.study.engine
    basis: dict[str, str | None] = {"plan": locked.plan_hash}
    if study.substrate is None or store.done(DECISIONS, basis):
        return 0
    contexts = _contexts(study, store)
    asked = [one for key, context in contexts for one in _questions(study, key, context)]
    calls = [one.call for one in asked]
    # An agent outside has its own patience; cut off before it, it would be asked again.
    outside = (patience(one.agent.spec.args) + _MARGIN_S for one in asked if is_outside(one.agent.spec.model))
    lane = {"concurrency": min(engine.concurrency, _LANE), "deadline_s": max([engine.deadline_s, *outside])}
    with Ledger.open(folder.ledger) as ledger:
        hold_ledger(folder, ledger, locked)
        ledger.plan(calls)
        summary = run_all(
            ledger, calls, models, engine.model_copy(update=lane), what="asking the agents", progress=progress
        )
        require_all(summary, "the agents", folder)
        replies = dict(ledger.replies([call.key for call in calls]))
        batched = ledger.batches.answered_in_batches(replies)
    if lost := sum(call.key not in replies for call in calls):
        raise LedgerError(f"{lost} replies that were recorded cannot be found in the ledger; it is damaged")
    prices = prices_of(models)
    decisions = [_decision(one, replies[one.call.key], prices, one.call.key in batched) for one in asked]
    for line in unusable_decisions(decisions):
        saying(progress)(line)
    say_raised(models, progress)
    found, controls = list(decisions), study.controls
    usable = [one for one in decisions if not set(one.flags) & set(NOT_USABLE)]
    material = [(key.context_id, context, key.regime) for key, context in contexts]
    for kind, count in controls.wanted.items():
        from assaymark.agents.controls.decisions import cell_decisions

        found += cell_decisions(
            material, kind=kind, count=count, seed=study.seed, family=controls.family, style=controls.style,
            honest=usable, tokens=controls.length_tokens, study=study.name,
        )  # fmt: skip
    store.write(DECISIONS, found, basis)
    return summary.made


def agent_calls(study: Study, store: Store) -> list[CallSpec]:
    """Every call that the agents of a study make, once its cycles are cut."""
    return [one.call for key, context in _contexts(study, store) for one in _questions(study, key, context)]


def first_questions(study: Study, store: Store, *, cycle: int = 0) -> list[Asked]:
    """Every agent of a study before its first cycle, or before another one, if there is that one."""
    return [one for key, seen in _contexts(study, store)[cycle : cycle + 1] for one in _questions(study, key, seen)]


def decided(
    asked: Sequence[Asked], kept: Mapping[str, tuple[CallSpec, Reply]], models: Mapping[str, Model]
) -> list[Decision]:
    """What these agents decide, as far as their replies are among ``kept``."""
    found = [(one, kept[one.call.key][1]) for one in asked if one.call.key in kept]
    return [_decision(one, reply, prices_of(models), False) for one, reply in found]


def _contexts(study: Study, store: Store) -> list[tuple[CycleKey, Context]]:
    """What agents are shown, regime by regime."""
    keys = {key.context_id: key for key in store.read(CYCLES)}
    order = {name: place for place, name in enumerate(study.substrate.regimes if study.substrate else ())}
    contexts = [(keys[name], context) for name, context in store.each_context()]
    return sorted(contexts, key=lambda pair: (order[pair[0].regime], pair[0].number))


def _questions(study: Study, key: CycleKey, context: Context) -> list[Asked]:
    """Every agent before one cycle; the prompt is rendered once."""
    place = Place(study.name, key.regime, key.number, key.context_id)
    messages: dict[bool, Message] = {}
    found = []
    for spec in study.agents:
        outside = is_outside(spec.model)
        if outside not in messages:
            messages[outside] = envelope_of(context) if outside else prompt_of(context)
        agent = LLMAgent(spec)
        found.append(Asked(agent, place, context, agent.call(messages[outside])))
    return found


def _decision(one: Asked, reply: Reply, prices: Prices, batch: bool) -> Decision:
    """What a reply decides; its cost stands in the record where a price is known."""
    cost = prices.cost_of(one.call.model, reply.input_tokens, reply.output_tokens, reply.cached_tokens, batch)
    return one.agent.decide(one.context, one.place, reply, key=one.call.key, cost_usd=cost)
