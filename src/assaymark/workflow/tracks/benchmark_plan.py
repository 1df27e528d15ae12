"""The plan of a benchmark in its run folder, its cost estimate, and all its calls with their replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Final

from assaymark.benchmark.episode import EpisodeState, MarketWindow
from assaymark.benchmark.market import BenchMarket, choose_universe, window_named, windows_of
from assaymark.benchmark.plan import BenchPlan, bench_hash, parse_plan, profile_named
from assaymark.benchmark.questions.answers import EXCERPT, ScoredReply, score_answer
from assaymark.benchmark.questions.payloads import ABLATED, TEMPLATES, Condition
from assaymark.benchmark.questions.published import generate_questions, read_questions, write_questions
from assaymark.benchmark.questions.render import template_digest as question_digest
from assaymark.benchmark.questions.templates import Question
from assaymark.benchmark.reference import ReferenceBenchmarkModel
from assaymark.benchmark.replies import ANSWER_SCHEMA, outside_call, stage_texts
from assaymark.benchmark.scores import Convention, EpisodeResult
from assaymark.engine import CallSpec, Ledger, Message, Model, Reply, Text
from assaymark.engine.prices import Prices
from assaymark.engine.providers.http_agent import is_outside, no_reply
from assaymark.errors import InputError, PlanError, Problem
from assaymark.market import open_history, synthetic_history
from assaymark.protocol import AgentSpec
from assaymark.records import content_id, sha256_text, to_json, write_atomic
from assaymark.report.portbench.index import QUESTIONS
from assaymark.workflow import run_folder as runs
from assaymark.workflow.ask import Canaries, Forecast, check_plan_hash, forecast, require_replies
from assaymark.workflow.progress import note, watched, watching
from assaymark.workflow.run_folder import RunFolder

BENCHMARK: Final = runs.LockKind(
    format="assaymark benchmark lock 2",
    absent="{0} contains no benchmark; run: assaymark bench qa or assaymark bench pipeline",
    others={"": "{0} contains a study, not a benchmark; use another --out"},
    texts="prompts of this version",
    restore="restore the plan, or use a new run folder",
)
"""The format and the messages of a benchmark's lock."""

BenchData = tuple[BenchMarket, tuple[MarketWindow, ...]]
"""The data of a plan: the market with its instruments, and the windows that the plan names."""


@dataclass(frozen=True, eq=False)
class LockedBench:
    """A locked plan with its data: the market, and the windows that the plan names."""

    plan: BenchPlan
    plan_hash: str
    locked_at: str
    market: BenchMarket
    windows: tuple[MarketWindow, ...]
    amendments: tuple[runs.Amendment, ...] = ()
    preregistered: bool = True

    @property
    def other(self) -> Convention:
        """The scoring convention that the plan does not use."""
        return "reference" if self.plan.convention == "paper" else "paper"

    @cached_property
    def pool(self) -> tuple[Question, ...]:
        """The questions to draw from: one split, generated from the plan's market or read from its file."""
        options = self.plan.questions
        if options.file is not None:
            return tuple(question for question in read_questions(Path(options.file)) if question.split == options.split)
        return generate_questions(self.market.history, options.seed, splits=(options.split,)).questions

    @property
    def families(self) -> int:
        """The number of families of tests that share the plan's error rate, run or not."""
        return 2 + any(window.spec.kind == "normal" for window in self.windows)


def lock_bench(
    folder: RunFolder, text: str, source: str, now: datetime, *, first: Callable[[LockedBench], Canaries] | None = None
) -> LockedBench:
    """Lock a plan in a run folder; locking the same plan again changes nothing. ``first`` makes its trial calls."""
    if folder.lock.is_file():
        BENCHMARK.stored(folder)
    plan = parse_plan(text, source)
    data = open_data(plan)
    plan_hash = fingerprint(plan, data)
    if folder.lock.is_file():
        before = parse_plan(runs.read_text(folder.plan, "plan"), source=str(folder.plan))
        ours, other = before.pipeline, plan.pipeline
        same = before.market == plan.market and all(
            getattr(ours, name) == getattr(other, name) for name in ("windows", "lookback", "frequency", "correlation")
        )  # the same data need not be opened again
        locked = open_bench(folder, data if same else None)
        if locked.plan_hash != plan_hash:
            raise PlanError(
                f"{source} differs from the plan locked in {folder.path} (plan hash {plan_hash[:12]}..., locked "
                f"{locked.plan_hash[:12]}...); a locked plan is not changed: use a new run folder (--out)"
            )
        return locked
    opening = LockedBench(plan, plan_hash, "", *data)
    if plan.questions.file is not None:
        _ = opening.pool  # raises if the file cannot be read, before anything is written
    sent = None if first is None else first(opening)
    with runs.new_folder(folder.path):
        write_atomic(folder.plan, text)
        runs.write_lock(folder, BENCHMARK.new_lock(plan_hash, to_json(now), inputs=dict(inputs_of(data))))
    locked = open_bench(folder)
    if sent is not None:
        sent.keep(folder, locked)
    return locked


def open_bench(folder: RunFolder, data: BenchData | None = None) -> LockedBench:
    """Open the locked plan of a run folder with its data. Raises `PlanError` if either changed after the lock."""
    stored = BENCHMARK.stored(folder)
    plan = parse_plan(runs.read_text(folder.plan, "plan"), source=str(folder.plan))
    market = data or open_data(plan)
    if (inputs := inputs_of(market)) != stored.get("inputs"):
        raise PlanError(
            f"{folder.path}: the market data changed after the lock ({inputs['market'][:12]}...); restore them"
        )
    plan_hash = fingerprint(plan, market)
    BENCHMARK.require_unedited(folder, plan_hash, stored)
    amendments = runs.read_amendments(folder, stored.get("amendments", ()))
    return LockedBench(
        plan, plan_hash, str(stored["locked_at"]), *market, amendments, bool(stored.get("preregistered", True))
    )


def open_data(plan: BenchPlan) -> BenchData:
    """Open the market and the windows of a plan."""
    source = plan.market.source
    history = synthetic_history(plan.market.seed) if source == "synthetic" else open_history(Path(source))
    chosen = plan.market.instruments
    universe = choose_universe(history, chosen if isinstance(chosen, int) else list(chosen))
    rules = plan.pipeline
    market = BenchMarket(history, universe, lookback=rules.lookback, frozen=rules.correlation == "training")
    specs = windows_of(history)
    windows = [window_named(name, specs) for name in plan.pipeline.windows]
    return market, tuple(MarketWindow(market, window, rules.frequency) for window in windows)


def fingerprint(plan: BenchPlan, data: BenchData) -> str:
    """Return the plan hash: of the plan, all prompt texts, and the digests of the data."""
    return bench_hash(plan, texts_of_stages(), inputs_of(data))


def texts_of_stages() -> dict[str, str]:
    """Return the digest of every prompt text."""
    return {name: sha256_text(text) for name, text in stage_texts().items()} | {"questions": question_digest()}


def inputs_of(data: BenchData) -> dict[str, str]:
    """Return the digests of a plan's data."""
    market, _ = data
    return {"market": market.history.snapshot, "instruments": content_id({"ids": list(market.universe.ids)})}


def forecast_bench(folder: RunFolder, text: str, source: str, questions: bool, prices: Prices) -> Forecast:
    """Estimate the calls and the cost of a plan's questions, or of its pipeline."""
    runs.require_version_2(folder)
    plan = parse_plan(text, source)
    data = open_data(plan)
    locked = LockedBench(plan, fingerprint(plan, data), "", *data)
    if questions:
        return forecast({"questions": [call for *_, call in plan_questions(locked)]}, folder, prices)
    # the calls that follow from the replies of one built-in model, which reads no numbers in prompts
    stand_in, calls = ReferenceBenchmarkModel("stubborn"), list[CallSpec]()
    reader = AgentSpec(name="stand-in", family="stand-in", model=stand_in.name)
    outside = [agent for agent in plan.models if is_outside(agent.model)]
    for name, window in product(plan.pipeline.profiles, locked.windows):
        place = profile_named(name), window, plan.pipeline, plan.convention
        states = [EpisodeState(agent, *place) for agent in (reader, *outside[:1])]
        while (call := states[0].next_call()) is not None:
            numbers = states[-1].next_call()
            for agent in plan.models:
                if is_outside(agent.model) and numbers is not None:
                    calls.append(replace(numbers, model=agent.model, seed=agent.seed, args=agent.args))
                else:
                    calls.append(CallSpec.to(agent, call.messages, call.template, call.schema))
            reply = Reply(text=stand_in.answer(call.shown())[0], model="stand-in")
            for state in states:
                state.take(reply)
    return forecast({"pipeline": calls}, folder, prices).with_note(
        "later calls of a window contain the replies before them: the estimate uses built-in replies"
    )


Episode = tuple[EpisodeResult, EpisodeResult]
"""One finished episode, scored from the same replies by the plan's convention and by the other one."""


def episodes_of(
    folder: RunFolder, locked: LockedBench, models: Mapping[str, Model] | None = None
) -> tuple[Episode, ...] | None:
    """Return every episode of a plan under both conventions, played from the replies in its ledger.

    Missing replies are requested from ``models``; without models, the result is None if a reply is missing. Replies
    are those to prompts under the plan's convention; under the other one a prompt might show another portfolio, but
    the same replies are scored.
    """
    if models is None and not folder.has_ledger:
        return None
    plan, stage = locked.plan, "reading the pipeline" if models is None else "pipeline"
    played = product(plan.models, map(profile_named, plan.pipeline.profiles), locked.windows, [plan.pipeline])
    episodes = [(EpisodeState(*parts, plan.convention), EpisodeState(*parts, locked.other)) for parts in played]
    total, done = sum(first.calls for first, _ in episodes), 0
    engine = plan.engine.model_copy(update={"batch": False})  # each stage needs the reply to the one before
    progress = watching()
    with Ledger.open(folder.ledger, create=models is not None) as ledger:
        if models is not None:
            check_plan_hash(folder, ledger, locked)
        while wave := [(*pair, call) for pair in episodes if (call := pair[0].next_call()) is not None]:
            by_key = {call.key: call for *_, call in wave}
            if ledger.pending(by_key):
                if models is None:
                    return None
                with watched(lambda _, now, _of, before=done: progress(stage, before + now, total)):
                    require_replies(folder, ledger, list(by_key.values()), models, engine, stage, "the pipeline")
            replies = dict(ledger.replies(list(by_key)))
            for first, second, call in wave:
                first.take(replies[call.key])
                second.follow(replies[call.key])
            done += len(wave)
            note(stage, done, total)
    return tuple((first.result(), second.result()) for first, second in episodes)


FILE: Final = "questions.jsonl"
"""The file of the questions asked, in the run folder."""

Answers = Mapping[str, Sequence[ScoredReply]]
"""The scored replies of each model."""


def answers_of(folder: RunFolder, locked: LockedBench, models: Mapping[str, Model] | None = None) -> Answers | None:
    """Return the replies of every model to every question, scored by both conventions.

    Missing replies are requested from ``models``; without models, the result is None if one is missing.
    """
    if models is None and not ((folder.path / FILE).is_file() and folder.has_ledger):
        return None
    planned = plan_questions(locked)
    calls = {call.key: call for *_, call in planned}
    if models is not None:
        write_questions(folder.path / FILE, list({question.id: question for _, question, _, _ in planned}.values()))
        runs.write_sums(folder)
    with Ledger.open(folder.ledger, create=models is not None) as ledger:
        if models is not None:
            check_plan_hash(folder, ledger, locked)
            require_replies(folder, ledger, [*calls.values()], models, locked.plan.engine, QUESTIONS, "the questions")
        elif ledger.pending(calls):
            return None
        replies = dict(ledger.replies(list(calls)))
    items: dict[str, list[ScoredReply]] = {model.name: [] for model in locked.plan.models}
    for agent, question, condition, call in planned:
        reply = replies[call.key]
        scored, other = (
            score_answer(question, reply.text, reply.finish, convention=each)
            for each in (locked.plan.convention, locked.other)
        )
        shown, missing = reply.text[:EXCERPT], no_reply(reply)
        items[agent.name].append(ScoredReply(question, condition, scored, other, shown, call.key, missing))
    return items


def plan_questions(locked: LockedBench) -> list[tuple[AgentSpec, Question, Condition, CallSpec]]:
    """Return all calls of the questions; equal prompts under both conditions are asked under the main one only."""
    options, calls = locked.plan.questions, []
    chosen: list[Question] = []  # so many of each template from one split, by a reproducible draw
    for template in TEMPLATES:
        some = [question for question in locked.pool if question.template == template]
        drawn = sorted(some, key=lambda question: sha256_text(f"{options.seed}/{question.id}"))[: options.per_template]
        chosen += sorted(drawn, key=lambda question: question.id)
    if not chosen:
        raise InputError("questions", [Problem("split", f"no question is in the split {options.split!r}")])
    shown = [
        (question, condition, Message("user", (Text.of(question.prompt(condition)),)))
        for question in chosen
        for condition in options.conditions
        if condition == options.main or question.template in ABLATED
    ]
    for agent, (question, condition, message) in product(locked.plan.models, shown):
        if is_outside(agent.model):
            question_given = question.template, question.given(condition)
            call = outside_call(agent, message.text, ANSWER_SCHEMA, question_digest(), asked=question_given)
        else:
            call = CallSpec.to(agent, (message,), question_digest())
        calls.append((agent, question, condition, call))
    return calls
