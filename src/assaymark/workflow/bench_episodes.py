"""Every episode of a benchmark through its stages: asked in waves through the ledger, or led through by its replies.

The stages of one episode wait for each other; episodes do not. A wave asks the pending call of every episode together,
so a run makes as many waves as the longest window has stages, however many models there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Final

from assaymark.benchmark.episode import EpisodeRules, EpisodeState
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import profile_named
from assaymark.benchmark.stages import CONVENTIONS, EpisodeResult
from assaymark.engine import CallSpec, Ledger, Model, Reply
from assaymark.protocol import AgentSpec, EngineChoice
from assaymark.workflow.asking import require_all, run_all
from assaymark.workflow.bench_plan import LockedBench
from assaymark.workflow.bench_traces import Notes
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.progress import Progress, Within, silent
from assaymark.workflow.sharing import hold_ledger

ANSWER_KEY: Final = "reference/portbench-answer-key"
"""What stands where the model's name would, in episodes that are answered with what was true."""


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """One finished episode: scored by the plan's convention and by the other one, from the same replies."""

    agent: AgentSpec
    state: EpisodeState
    result: EpisodeResult
    other: EpisodeResult
    notes: Notes

    @property
    def name(self) -> str:
        """``agent/profile/window``."""
        return self.state.name


def rules_of(plan: BenchPlan) -> EpisodeRules:
    """What a plan sets for every episode."""
    chosen = plan.pipeline
    return EpisodeRules(
        convention=plan.convention,
        alpha=chosen.alpha,
        penalty=chosen.penalty,
        cost_bps=chosen.cost_bps,
        drift_limit=chosen.drift_limit,
    )


def pipeline_calls(locked: LockedBench) -> int:
    """How many calls the pipeline makes: three a decision date."""
    plan = locked.plan
    dates = sum(len(one.decisions) for one in locked.data.windows)
    return 3 * dates * len(plan.models) * len(plan.pipeline.profiles)


def run_episodes(
    folder: RunFolder, locked: LockedBench, models: Mapping[str, Model], *, progress: Progress = silent
) -> tuple[Episode, ...]:
    """Take every episode of a plan to its end; what the ledger has is not asked again.

    Raises
    ------
    ModelError
        Calls failed for good. Every reply so far is kept.
    StoppedError
        The run was asked to stop. Every reply so far is kept.
    """
    pairs = _states(locked)
    engine = locked.plan.engine.model_copy(update={"batch": False})  # a stage needs the reply to the one before
    total, done = pipeline_calls(locked), 0
    with Ledger.open(folder.ledger) as ledger:
        hold_ledger(folder, ledger, locked)
        while wave := _wave(pairs):
            told = Within(progress, partial(_tell, progress, done, total))
            replies = _asked(ledger, folder, wave, models, engine, told)
            _take(wave, replies)
            done += len(wave)
            progress("pipeline", done, total)
    return _finished(pairs)


def stored_episodes(
    folder: RunFolder, locked: LockedBench, *, progress: Progress = silent
) -> tuple[Episode, ...] | None:
    """The episodes of a plan from the replies in its ledger; None if some are missing."""
    if not folder.has_ledger:
        return None
    pairs = _states(locked)
    total, done = pipeline_calls(locked), 0
    with Ledger.open(folder.ledger, create=False) as ledger:
        while wave := _wave(pairs):
            replies = dict(ledger.replies({call.key for call in wave.values()}))
            if any(call.key not in replies for call in wave.values()):
                return None
            _take(wave, replies)
            done += len(wave)
            progress("reading the pipeline", done, total)
    return _finished(pairs)


def true_episodes(locked: LockedBench) -> tuple[EpisodeResult, ...]:
    """Episodes in which every stage is answered with what was true: nobody is asked, and nothing is written down."""
    agent = AgentSpec(name="answers", family="answers", model=ANSWER_KEY)
    found = []
    for name, window in product(locked.plan.pipeline.profiles, locked.data.windows):
        state = EpisodeState(agent, profile_named(name), window, rules_of(locked.plan))
        while not state.over:
            state.follow(Reply(text=state.true_reply(), model=ANSWER_KEY))
        found.append(state.result())
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """One episode under both conventions. The replies are those to the first."""

    first: EpisodeState
    second: EpisodeState
    notes: Notes = field(default_factory=Notes)


def _tell(progress: Progress, before: int, total: int, now: int, _of: int) -> None:
    progress("pipeline", before + now, total)


def _states(locked: LockedBench) -> tuple[_Pair, ...]:
    plan = locked.plan
    rules = rules_of(plan)
    (other,) = (one for one in CONVENTIONS if one != plan.convention)
    turned = replace(rules, convention=other)
    cases = product(plan.models, map(profile_named, plan.pipeline.profiles), locked.data.windows)
    return tuple(
        _Pair(EpisodeState(agent, profile, window, rules), EpisodeState(agent, profile, window, turned))
        for agent, profile, window in cases
    )


def _wave(pairs: Sequence[_Pair]) -> dict[_Pair, CallSpec]:
    """The pending call of every episode that is not over."""
    return {pair: call for pair in pairs if (call := pair.first.next_call()) is not None}


def _asked(
    ledger: Ledger,
    folder: RunFolder,
    wave: Mapping[_Pair, CallSpec],
    models: Mapping[str, Model],
    engine: EngineChoice,
    progress: Progress,
) -> dict[str, Reply]:
    calls = list({call.key: call for call in wave.values()}.values())
    keys = [call.key for call in calls]
    if ledger.pending(keys):
        ledger.plan(calls)
        summary = run_all(ledger, calls, models, engine, what="pipeline", progress=progress)
        require_all(summary, "the pipeline", folder)
    return dict(ledger.replies(keys))


def _take(wave: Mapping[_Pair, CallSpec], replies: Mapping[str, Reply]) -> None:
    for pair, call in wave.items():
        reply, asked = replies[call.key], pair.first.asked[-1]
        pair.notes.add(asked.day, asked.stage, call, reply)
        pair.first.take(reply)
        pair.second.follow(reply)  # its own prompt might differ, with its portfolio: what counts is what was answered


def _finished(pairs: Sequence[_Pair]) -> tuple[Episode, ...]:
    return tuple(
        Episode(one.first.agent, one.first, one.first.result(), one.second.result(), one.notes) for one in pairs
    )
