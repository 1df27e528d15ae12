"""What models say at S1 to S3, put before a panel of judges: a run folder of its own below that of the benchmark."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Final

import numpy as np

from assaymark.benchmark.panel import Known
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import profile_named
from assaymark.benchmark.stage_replies import rationale_of
from assaymark.benchmark.stages import DateResult
from assaymark.encoding import content_id
from assaymark.engine import Ledger, Model, Reply
from assaymark.errors import InputError, Problem
from assaymark.records import (
    Action,
    Agent,
    CallFacts,
    Constraint,
    Context,
    Decision,
    Fact,
    Instrument,
    Provenance,
    Rationale,
)
from assaymark.workflow.bench_episodes import Episode
from assaymark.workflow.bench_plan import LockedBench
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.importing import store_records
from assaymark.workflow.locking import lock
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.toml_text import toml_text
from assaymark.workflow.verbs import finish

_COLUMNS: Final[Mapping[str, str]] = {
    "close": "price",
    **dict.fromkeys(("return_20", "return_60", "volatility", "max_drawdown", "sharpe", "beta"), "ratio"),
    "duration": "years",
}
"""The numbers of an asset line, with their units."""

_STAGES: Final[Mapping[str, str]] = {"S1": "Views", "S2": "Signals", "S3": "Weights"}
"""How the rationale of a stage is introduced to a judge."""

_HELD: Final = 1e-6
_CLOSE: Final = time(21, 0, tzinfo=UTC)


def grade_rationales(
    folder: RunFolder,
    locked: LockedBench,
    episodes: Sequence[Episode],
    models: Mapping[str, Model],
    *,
    now: datetime,
    progress: Progress = silent,
) -> RunFolder:
    """Have the plan's judges grade every rationale: a whole assay with its own lock, verdicts and pages.

    Raises
    ------
    InputError
        No model gave a rationale.
    ModelError
        Calls failed for good; every reply so far is kept.
    """
    within = folder.rationales
    decisions, contexts = _records(folder, locked, episodes)
    if not decisions:
        raise InputError("--judge", [Problem("", "no reply holds a rationale that could be graded")])
    within.path.mkdir(parents=True, exist_ok=True)
    store_records(within, decisions, contexts, [])
    lock(within, study_text(locked.plan), f"judges of {locked.plan.name}", now=now, models=models, progress=progress)
    finish(within, models, progress=progress)
    return within


def study_text(plan: BenchPlan) -> str:
    """The study that grades the rationales, as TOML: the benchmark's judges, rubric and rules for orders.

    A date with all of its profiles is one cluster. Grades are wanted too where so few dates can order nobody.
    """
    given = plan.model_dump(mode="json", include={"judges", "claims", "missing"}, exclude_defaults=True)
    inference = plan.inference.model_dump(mode="json", exclude_defaults=True)
    head = {
        "version": "2",
        "name": f"{plan.name}-rationales",
        "title": f"Rationales of {plan.title or plan.name}",
        "seed": plan.seed,
        "rubric": {"name": plan.rubric},
        "inference": {**inference, "allow_hopeless": True},
    }
    return toml_text(head | given)


# --- records --------------------------------------------------------------------------------------------------------


def _records(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode]
) -> tuple[list[Decision], dict[str, Context]]:
    market = locked.data.market
    known = {one.day: one for window in locked.data.windows for one in map(market.known, window.rows.tolist())}
    decisions: list[Decision] = []
    contexts: dict[str, Context] = {}
    with Ledger.open(folder.ledger, create=False) as ledger:
        for episode in episodes:
            keys: defaultdict[date, dict[str, str]] = defaultdict(dict)
            for one in episode.state.asked:
                keys[one.day][one.stage] = one.key
            for step, dated in enumerate(episode.result.dates):
                replies = {stage: ledger.reply(key) for stage, key in keys[dated.day].items()}
                said = {stage: text for stage, reply in replies.items() if (text := rationale_of(reply.text))}
                if not said:
                    continue
                asked = ledger.call(keys[dated.day]["S3"]).messages
                prompt = "\n\n".join(part.text for message in asked for part in message.parts)
                context = _context(episode, dated, prompt, known[dated.day])
                context_id = content_id(context)
                contexts[context_id] = context
                decisions.append(_decision(episode, step, dated, said, context_id, _facts_of(replies), locked))
    return decisions, contexts


def _facts_of(replies: Mapping[str, Reply]) -> CallFacts:
    """Time and tokens of the three stages together; absent where one of them has none."""
    seconds = [one.seconds for one in replies.values()]
    told, written = ([getattr(one, name) for one in replies.values()] for name in ("input_tokens", "output_tokens"))
    return CallFacts(
        seconds=None if None in seconds else sum(one for one in seconds if one is not None),
        timing_source="absent" if None in seconds else "measured",
        input_tokens=None if None in told else sum(told),
        output_tokens=None if None in written else sum(written),
    )


def _context(episode: Episode, dated: DateResult, prompt: str, known: Known) -> Context:
    """What the model could see at S3: the prompt, its numbers, and the limits of its profile."""
    profile, moment = profile_named(episode.result.profile), datetime.combine(dated.day, _CLOSE)
    return Context(
        completeness="complete",
        cutoff=moment,
        cutoff_source="the close of the decision date",
        prompt=prompt,
        facts=tuple(_facts(known, moment)),
        instruments=tuple(
            Instrument(id=name, symbol=name, asset_class=kind)
            for name, kind in zip(known.tickers, known.classes, strict=True)
        ),
        constraints=(
            Constraint(kind="max_weight", limit=profile.equity_cap, unit="nav", scope="equity and crypto"),
            Constraint(kind="min_weight", limit=profile.bond_floor, unit="nav", scope="bond and cash"),
            Constraint(kind="max_drawdown", limit=profile.drawdown_tolerance, unit="nav"),
        ),
        profile=profile.text,
    )


def _facts(known: Known, moment: datetime) -> Iterator[Fact]:
    """The numbers of the asset table, under their column names."""
    for line in known.lines:
        for name, unit in _COLUMNS.items():
            value = getattr(line, name)
            if value is not None:
                yield Fact(
                    id=f"{line.ticker}/{name}",
                    instrument=line.ticker,
                    field=name,
                    value=float(value),
                    unit=unit,
                    available_at=moment,
                )


def _decision(
    episode: Episode,
    step: int,
    dated: DateResult,
    said: Mapping[str, str],
    context_id: str,
    facts: CallFacts,
    locked: LockedBench,
) -> Decision:
    result, tickers = episode.result, locked.data.universe.ids
    where = f"{result.profile}/{result.window}"
    name = f"{episode.agent.name}/{where}/{dated.day}"
    held = np.flatnonzero(dated.executed > _HELD).tolist()
    return Decision(
        record_id=hashlib.sha256(name.encode()).hexdigest(),
        episode_id=where,
        step=step,
        cluster=f"{result.window}/{dated.day}",
        decided_at=datetime.combine(dated.day, _CLOSE),
        agent=Agent(id=episode.agent.name, family=episode.agent.family, model=episode.agent.model),
        context_id=context_id,
        actions=tuple(
            Action(instrument=tickers[at], kind="target_weight", weight=float(dated.executed[at])) for at in held
        ),
        rationales=tuple(Rationale(text=f"{_STAGES[stage]}: {text}", kind="stage") for stage, text in said.items()),
        format="assaymark benchmark",
        provenance=Provenance(source=f"{locked.plan.name}, {where}"),
        call=facts,
    )
