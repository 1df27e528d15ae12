"""The agents of a study at work: every cycle before every agent, and the control cells beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.agents.llm import NOT_USABLE, LLMAgent, Place
from assaymark.agents.prompts import envelope_of, prompt_of
from assaymark.engine import CallSpec, Ledger, Message, Model, Reply
from assaymark.engine.models import is_outside, patience
from assaymark.engine.models.prices import Prices
from assaymark.errors import LedgerError
from assaymark.market.cycles import CycleKey
from assaymark.protocol import Study
from assaymark.records import Context, Decision
from assaymark.workflow.asking import prices_of, require_all, run_all, say_raised
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.locking import Locked, open_locked
from assaymark.workflow.progress import Progress, saying, silent
from assaymark.workflow.sharing import hold_ledger
from assaymark.workflow.tables import CYCLES, DECISIONS, Store
from assaymark.workflow.unusable import unusable_decisions

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
    """Let every agent of a locked study decide on every cycle, and compose its control cells.

    A call that has a reply in the ledger is never made again; replies that have another form are decisions without
    orders, recorded as such. Returns the number of calls made now; 0 for a study whose records are imported.

    Raises
    ------
    ModelError
        Calls failed for good; what was answered is kept, and the same command goes on.
    StoppedError
        The run was asked to stop; what was answered is kept too.
    """
    locked = open_locked(folder)
    study, store = locked.study, Store(folder)
    basis: dict[str, str | None] = {"plan": locked.plan_hash}
    if study.substrate is None or store.done(DECISIONS, basis):
        return 0
    contexts = _contexts(study, store)
    asked = [one for key, context in contexts for one in _questions(study, key, context)]
    decisions, made = _answers(folder, locked, asked, models, progress)
    for line in unusable_decisions(decisions):
        saying(progress)(line)
    say_raised(models, progress)
    store.write(DECISIONS, [*decisions, *_controls(study, contexts, decisions)], basis)
    return made


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


def _answers(
    folder: RunFolder, locked: Locked, asked: Sequence[Asked], models: Mapping[str, Model], progress: Progress
) -> tuple[list[Decision], int]:
    """Ask what has no reply yet, and make a decision of every reply."""
    engine = locked.study.engine
    calls = [one.call for one in asked]
    outside = [one.agent.spec for one in asked if is_outside(one.agent.spec.model)]
    # An agent outside has its own patience; cut off before it, it would be asked again.
    deadline = max([engine.deadline_s, *(patience(spec.args) + _MARGIN_S for spec in outside)])
    with Ledger.open(folder.ledger) as ledger:
        hold_ledger(folder, ledger, locked)
        ledger.plan(calls)
        lane = engine.model_copy(update={"concurrency": min(engine.concurrency, _LANE), "deadline_s": deadline})
        summary = run_all(ledger, calls, models, lane, what="asking the agents", progress=progress)
        require_all(summary, "the agents", folder)
        replies = dict(ledger.replies([call.key for call in calls]))
        batched = ledger.batches.answered_in_batches(replies)
    if lost := sum(call.key not in replies for call in calls):
        raise LedgerError(f"{lost} replies that were recorded cannot be found in the ledger; it is damaged")
    prices = prices_of(models)
    return [_decision(one, replies[one.call.key], prices, one.call.key in batched) for one in asked], summary.made


def _decision(one: Asked, reply: Reply, prices: Prices, batch: bool) -> Decision:
    """What a reply decides; its cost stands in the record where a price is known."""
    cost = prices.cost_of(one.call.model, reply.input_tokens, reply.output_tokens, reply.cached_tokens, batch)
    return one.agent.decide(one.context, one.place, reply, key=one.call.key, cost_usd=cost)


def _controls(study: Study, contexts: Sequence[tuple[CycleKey, Context]], honest: Sequence[Decision]) -> list[Decision]:
    """The control cells of a study, each kind from a stream of its own."""
    found: list[Decision] = []
    usable = [one for one in honest if not set(one.flags) & set(NOT_USABLE)]
    material = [(key.context_id, context, key.regime) for key, context in contexts]
    for kind, count in study.controls.wanted.items():
        from assaymark.agents.cells import cell_decisions

        found += cell_decisions(
            material,
            kind=kind,
            count=count,
            seed=study.seed,
            family=study.controls.family,
            style=study.controls.style,
            honest=usable,
            tokens=study.controls.length_tokens,
            study=study.name,
        )
    return found
