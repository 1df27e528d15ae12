"""What a benchmark would ask and cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assaymark.benchmark.episode import EpisodeState, MarketWindow
from assaymark.benchmark.market import BenchMarket, Universe, Window, choose_universe, window_named, windows_of
from assaymark.benchmark.plan import BenchPlan, bench_hash, parse_plan
from assaymark.benchmark.profiles import profile_named
from assaymark.benchmark.questions.published import generate_questions, read_questions
from assaymark.benchmark.questions.render import template_digest as question_digest
from assaymark.benchmark.questions.templates import Question
from assaymark.benchmark.reference import ReferenceBenchmarkModel
from assaymark.benchmark.replies import model_call, stage_texts
from assaymark.benchmark.scores import Convention
from assaymark.encoding import write_atomic
from assaymark.engine import CallSpec, Reply
from assaymark.engine.prices import Prices
from assaymark.engine.providers.http_agent import is_outside
from assaymark.errors import PlanError
from assaymark.market import History, open_history, synthetic_history
from assaymark.protocol import AgentSpec
from assaymark.records import JSON, content_id, sha256_text, to_json
from assaymark.workflow.forecast import Stage, forecast
from assaymark.workflow.run_folder import (
    Amendment,
    RunFolder,
    Track,
    new_folder,
    read_amendments,
    read_text,
    require_version_2,
    write_lock,
)
from assaymark.workflow.tracks.benchmark_ask import planned_questions, rules_of

if TYPE_CHECKING:
    from assaymark.workflow.forecast import Forecast


BENCHMARK: Final = Track(
    format="assaymark benchmark lock 2",
    absent="{0} holds no benchmark; run: assaymark bench qa or assaymark bench pipeline",
    others={"": "{0} holds a study, not a benchmark; use another --out"},
    texts="prompts of this version",
    restore="restore the plan, or use a new run folder",
)
"""What the lock of a benchmark says."""


@dataclass(frozen=True, slots=True, eq=False)
class BenchData:
    """What a plan is run on: the store, the instruments, and the windows that it names."""

    history: History
    universe: Universe
    market: BenchMarket
    windows: tuple[MarketWindow, ...]

    @property
    def specs(self) -> tuple[Window, ...]:
        """The windows as they are defined."""
        return tuple(one.spec for one in self.windows)


@dataclass(frozen=True, eq=False)
class LockedBench:
    """A locked plan with its data."""

    plan: BenchPlan
    plan_hash: str
    locked_at: str
    data: BenchData
    amendments: tuple[Amendment, ...] = ()
    preregistered: bool = True

    @property
    def other(self) -> Convention:
        """The convention that the plan does not score by."""
        return "reference" if self.plan.convention == "paper" else "paper"

    @cached_property
    def pool(self) -> tuple[Question, ...]:
        """The questions from which those that are asked are drawn: one split, of the plan's market or of its file."""
        wanted = self.plan.questions
        if wanted.file is not None:
            return tuple(one for one in read_questions(Path(wanted.file)) if one.split == wanted.split)
        return generate_questions(self.data.history, seed=wanted.seed, splits=(wanted.split,)).questions

    @property
    def families(self) -> int:
        """How many families of tests share the error rate of the plan, whether or not they were run yet."""
        return 2 + any(one.kind == "normal" for one in self.data.specs)


def is_benchmark(folder: RunFolder) -> bool:
    """Whether a benchmark is locked in a run folder."""
    return BENCHMARK.holds(folder)


def lock_bench(
    folder: RunFolder, text: str, source: str, *, now: datetime, first: Callable[[LockedBench], object] | None = None
) -> LockedBench:
    """Lock a plan in a run folder; the same plan again changes nothing. ``first`` is called with it before that."""
    if folder.lock.is_file():
        BENCHMARK.stored(folder)
    plan = parse_plan(text, source=source)
    if folder.lock.is_file():
        data = open_data(plan)
        made = fingerprint(plan, data)
        locked = open_bench(folder, data if _same_market(folder, plan) else None)
        if locked.plan_hash != made:
            raise PlanError(
                f"{source} differs from the plan locked in {folder.path} (plan hash {made[:12]}..., locked "
                f"{locked.plan_hash[:12]}...); a locked plan is not changed: use a new run folder (--out)"
            )
        return locked
    data = open_data(plan)
    if first is not None:
        first(LockedBench(plan, fingerprint(plan, data), "", data))
    with new_folder(folder.path):
        write_atomic(folder.plan, text)
        write_lock(folder, bench_lock(fingerprint(plan, data), to_json(now), inputs_of(data)))
    return open_bench(folder)


def bench_lock(made: str, locked_at: JSON, inputs: Mapping[str, str]) -> dict[str, Any]:
    """The lock of a benchmark."""
    return BENCHMARK.new_lock(made, locked_at, inputs=dict(inputs))


def open_bench(folder: RunFolder, data: BenchData | None = None) -> LockedBench:
    """The locked plan of a run folder, with its data."""
    stored = BENCHMARK.stored(folder)
    plan = parse_plan(read_text(folder.plan, "plan"), source=str(folder.plan))
    found = data or open_data(plan)
    if (inputs := inputs_of(found)) != stored.get("inputs"):
        raise PlanError(
            f"{folder.path}: the market data changed after the lock ({inputs['market'][:12]}...); put them back"
        )
    made = fingerprint(plan, found)
    BENCHMARK.require_unedited(folder, made, stored)
    amendments = read_amendments(folder, stored.get("amendments", ()))
    return LockedBench(plan, made, str(stored["locked_at"]), found, amendments, bool(stored.get("preregistered", True)))


def open_data(plan: BenchPlan) -> BenchData:
    """The market of a plan."""
    where = plan.market.source
    history = synthetic_history(plan.market.seed) if where == "synthetic" else open_history(Path(where))
    chosen = plan.market.instruments
    universe = choose_universe(history, chosen if isinstance(chosen, int) else list(chosen))
    rules = plan.pipeline
    market = BenchMarket(history, universe, lookback=rules.lookback, frozen=rules.correlation == "training")
    specs = windows_of(history)
    wanted = [window_named(name, specs) for name in plan.pipeline.windows]
    return BenchData(
        history, universe, market, tuple(MarketWindow(market, one, plan.pipeline.frequency) for one in wanted)
    )


def fingerprint(plan: BenchPlan, data: BenchData) -> str:
    """The plan hash: the plan, every text that makes a prompt, and the data."""
    return bench_hash(plan, texts_of_stages(), inputs_of(data))


def texts_of_stages() -> dict[str, str]:
    """The digest of every text that makes a prompt."""
    return {name: sha256_text(text) for name, text in stage_texts().items()} | {"questions": question_digest()}


def inputs_of(data: BenchData) -> dict[str, str]:
    """Digests of what a plan is run on."""
    return {"market": data.history.snapshot, "instruments": content_id({"ids": list(data.universe.ids)})}


def _same_market(folder: RunFolder, plan: BenchPlan) -> bool:
    """Whether the locked plan is about the same market and windows, so that its data need not be opened twice."""
    locked = parse_plan(read_text(folder.plan, "plan"), source=str(folder.plan))
    one, other = locked.pipeline, plan.pipeline
    return locked.market == plan.market and all(
        getattr(one, name) == getattr(other, name) for name in ("windows", "lookback", "frequency", "correlation")
    )


def expected(folder: RunFolder, text: str, source: str, questions: bool, prices: Prices) -> Forecast:
    """What the questions, or the pipeline, of a plan would ask and cost. Nothing is sent or written."""
    require_version_2(folder)
    plan = parse_plan(text, source=source)
    data = open_data(plan)
    locked = LockedBench(plan, fingerprint(plan, data), "", data)
    if questions:
        stage = Stage("questions", [call for *_, call in planned_questions(locked)])
        return forecast([stage], folder, None, prices)
    found = forecast([Stage("pipeline", list(_pipeline(locked)))], folder, None, prices)
    return found.noting(
        "calls after the first of a window show what was answered before: reference replies stand in for that"
    )


def _pipeline(locked: LockedBench) -> Iterator[CallSpec]:
    """The calls of every model, as one reference model would bring them about: it reads prompts, not numbers."""
    plan = locked.plan
    stand_in = ReferenceBenchmarkModel("stubborn")
    reader = AgentSpec(name="stand-in", family="stand-in", model=stand_in.name)
    own = [agent for agent in plan.models if is_outside(agent.model)]
    for name, window in product(plan.pipeline.profiles, locked.data.windows):
        states = [EpisodeState(one, profile_named(name), window, rules_of(plan)) for one in (reader, *own[:1])]
        while (call := states[0].next_call()) is not None:
            numbers = states[-1].next_call()
            for agent in plan.models:
                if is_outside(agent.model) and numbers is not None:
                    yield replace(numbers, model=agent.model, seed=agent.seed, args=agent.args)
                else:
                    yield model_call(agent, call.messages, call.template, call.schema)
            parts = tuple(part.text for message in call.messages if message.role == "user" for part in message.parts)
            reply = Reply(text=stand_in.answer(parts)[0], model="stand-in")
            for state in states:
                state.take(reply)
