"""The measurements of the pipeline: levels and differences on leaderboards, stages, drawdowns, ratios, adaptation."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from assaymark.benchmark.episode import BaselineResult
from assaymark.benchmark.market import Window
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import (
    RISK_SAFE,
    STRESS_SCENARIOS,
    adaptation_score,
    profile_named,
    risk_safe,
    stress_score,
)
from assaymark.benchmark.replies import rationale_of
from assaymark.benchmark.scores import STAGES, Convention, DateResult, EpisodeResult
from assaymark.claims.boards import DRAWDOWN, MISSING, PIPELINE, SHARPE_CONTRAST
from assaymark.encoding import content_id
from assaymark.engine import Ledger, Model
from assaymark.errors import InputError, LedgerError, NotMeasurableError, Problem
from assaymark.metrology.bootstrap import OverTime, sharpe_ratios
from assaymark.metrology.checks import Floats
from assaymark.metrology.measure_orders import ScoredItems, board_measurements, level_measurements
from assaymark.metrology.orders import OrderPlan
from assaymark.metrology.scores import excess_replies
from assaymark.plan import toml_text
from assaymark.portfolio import max_drawdown, performance
from assaymark.records import (
    JSON,
    Action,
    Agent,
    CallFacts,
    Constraint,
    Context,
    Decision,
    Fact,
    Instrument,
    Measurement,
    Provenance,
    Rationale,
)
from assaymark.report.portbench.inputs import ALL
from assaymark.workflow.import_records import store_records
from assaymark.workflow.lock import lock
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.verbs import finish

if TYPE_CHECKING:
    from assaymark.workflow.tracks.benchmark_ask import Episode
    from assaymark.workflow.tracks.benchmark_plan import LockedBench


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
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode], models: Mapping[str, Model], *,
    now: datetime, progress: Progress = silent,
) -> RunFolder:  # fmt: skip
    """Have the plan's judges grade every rationale: a whole assay with its own lock, verdicts and pages."""
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
    """The study that grades the rationales, as TOML: the benchmark's judges, rubric and rules for orders."""
    given = plan.model_dump(mode="json", include={"judges", "claims", "missing"}, exclude_defaults=True)
    inference = plan.inference.model_dump(mode="json", exclude_defaults=True)
    head = {
        "version": "2",
        "name": f"{plan.name}-rationales",
        "title": f"Rationales of {plan.title or plan.name}",
        "seed": plan.seed,
        "rubric": {"text" if "\n" in plan.rubric else "name": plan.rubric},
        "inference": {**inference, "allow_hopeless": True},
    }
    return toml_text(head | given)


def _records(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode]
) -> tuple[list[Decision], dict[str, Context]]:
    """The decisions with a rationale, and what the model could see at S3: the prompt, its numbers, and its limits."""
    market, tickers = locked.data.market, locked.data.universe.ids
    known = {one.day: one for window in locked.data.windows for one in map(market.known, window.rows.tolist())}
    decisions: list[Decision] = []
    contexts: dict[str, Context] = {}
    with Ledger.open(folder.ledger, create=False) as ledger:
        for episode in episodes:
            where = f"{episode.result.profile}/{episode.result.window}"
            profile = profile_named(episode.result.profile)
            keys: defaultdict[date, dict[str, str]] = defaultdict(dict)
            for one in episode.state.asked:
                keys[one.day][one.stage] = one.key
            for step, dated in enumerate(episode.result.dates):
                replies = {stage: ledger.reply(key) for stage, key in keys[dated.day].items()}
                said = {stage: text for stage, reply in replies.items() if (text := rationale_of(reply.text))}
                if not said:
                    continue
                day, moment = known[dated.day], datetime.combine(dated.day, _CLOSE)
                asked = ledger.call(keys[dated.day]["S3"]).messages
                facts = [
                    Fact(
                        id=f"{line.ticker}/{name}", instrument=line.ticker, field=name, value=float(value), unit=unit,
                        available_at=moment,
                    )
                    for line in day.lines
                    for name, unit in _COLUMNS.items()
                    if (value := getattr(line, name)) is not None
                ]  # fmt: skip
                context = Context(
                    completeness="complete",
                    cutoff=moment,
                    cutoff_source="the close of the decision date",
                    prompt="\n\n".join(part.text for message in asked for part in message.parts),
                    facts=tuple(facts),
                    instruments=tuple(
                        Instrument(id=name, symbol=name, asset_class=kind)
                        for name, kind in zip(day.tickers, day.classes, strict=True)
                    ),
                    constraints=(
                        Constraint(kind="max_weight", limit=profile.equity_cap, unit="nav", scope="equity and crypto"),
                        Constraint(kind="min_weight", limit=profile.bond_floor, unit="nav", scope="bond and cash"),
                        Constraint(kind="max_drawdown", limit=profile.drawdown_tolerance, unit="nav"),
                    ),
                    profile=profile.text,
                )
                context_id = content_id(context)
                contexts[context_id] = context
                seconds, told, wrote = (
                    None if None in values else sum(one for one in values if one is not None)
                    for values in (
                        [getattr(one, name) for one in replies.values()]
                        for name in ("seconds", "input_tokens", "output_tokens")
                    )
                )
                held = np.flatnonzero(dated.executed > _HELD).tolist()
                name = f"{episode.agent.name}/{where}/{dated.day}"
                decisions.append(
                    Decision(
                        record_id=hashlib.sha256(name.encode()).hexdigest(),
                        episode_id=where,
                        step=step,
                        cluster=f"{episode.result.window}/{dated.day}",
                        decided_at=moment,
                        agent=Agent(id=episode.agent.name, family=episode.agent.family, model=episode.agent.model),
                        context_id=context_id,
                        actions=tuple(
                            Action(instrument=tickers[at], kind="target_weight", weight=float(dated.executed[at]))
                            for at in held
                        ),
                        rationales=tuple(
                            Rationale(text=f"{_STAGES[stage]}: {text}", kind="stage") for stage, text in said.items()
                        ),
                        format="assaymark benchmark",
                        provenance=Provenance(source=f"{locked.plan.name}, {where}"),
                        call=CallFacts(
                            seconds=seconds, timing_source="absent" if seconds is None else "measured",
                            input_tokens=told, output_tokens=wrote,
                        ),
                    )
                )  # fmt: skip
    return decisions, contexts


EQUAL_WEIGHT: Final = "EqW"
"""The baseline that models are held against."""

FIGURES: Final = ("total_return", "volatility", "sortino", "calmar")
ONE_HISTORY: Final = "from one history, so without an interval"

NO_CHOICE: Final = "on most dates it names at most one instrument to buy, which leaves the oracle no choice"
"""Why a model has neither S3 to S5 nor CEPS."""

Lacking = Mapping[str, tuple[int, int]]
"""By model how many replies did not come, of how many that were asked for."""

_CHOSEN: Final = ("S3", "S4", "S5", "CEPS")
_RULES: Final = ("tolerance", "stress", "wanted", "threshold")  # what a measurement is held against, and not its number


def pipeline_measurements(
    locked: LockedBench, episodes: Sequence[Episode], baselines: Sequence[BaselineResult]
) -> list[Measurement]:
    """Every measurement of the pipeline of a run."""
    rng = np.random.default_rng([locked.plan.seed, 1])
    specs = {one.name: one for one in locked.data.specs}
    replies, unscored = pipeline_replies(episodes), unscored_models(locked, episodes)
    gone = left_out(locked, replies)
    mine = {name: [one for one in episodes if name in (ALL, one.result.profile)] for name in boards_of(locked)}
    boards, others = (
        {
            name: ceps_items(some, unscored_models(locked, episodes, other=other), other=other)
            for name, some in mine.items()
        }
        for other in (False, True)
    )
    found = [
        *family_measurements(locked, boards, others),
        *_stage_means(locked, [one.result for one in episodes], unscored),
        *_alignment(locked, episodes),
        *_falls(episodes, specs),
        *_ratios(locked, episodes, baselines, specs, rng),
        *_performances(episodes),
        *_baseline_figures(baselines, specs, locked.plan.level, rng),
        *_risk_safe(episodes, specs, unscored),
    ]
    return [*missing_measurements(PIPELINE, replies, gone), *without_numbers(found, gone)]


def pipeline_replies(episodes: Sequence[Episode]) -> Lacking:
    """How many calls of its episodes each model gave no reply to, of how many; several profiles share some of them."""
    found: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for one in episodes:
        found[one.agent.name] |= {heard.key: heard.missing for heard in one.notes.heard.values()}
    return {model: (sum(calls.values()), len(calls)) for model, calls in found.items()}


def left_out(locked: LockedBench, replies: Lacking) -> dict[str, str]:
    """The models that lack more replies of a part than the plan tolerates, each with the reason in words."""
    most = locked.plan.missing.per_agent
    shares = {model: lost / asked for model, (lost, asked) in replies.items()}
    found = excess_replies(shares, {}, per_judge=most, per_agent=most)
    if found and locked.plan.missing.on_excess == "stop":
        words = "; ".join(f"model {model}: {why}" for model, why in found.items())
        raise LedgerError(f"too many replies are missing: {words}")
    return found


def _measured(
    name: str, labels: Mapping[str, str], value: float | None, n: int, n_of: str, method: str, **more: Any
) -> Measurement:
    return Measurement(name=name, labels=labels, value=value, n=n, n_of=n_of, method=method, **more)


def missing_measurements(part: str, replies: Lacking, gone: Mapping[str, str]) -> Iterator[Measurement]:
    """``missing.share`` of each model that lacks replies; ``left_out`` is why it was left out, empty if it was not."""
    for model, (lost, asked) in replies.items():
        if lost:
            labels, detail = {"model": model, "part": part}, {"missing": lost, "left_out": gone.get(model, "")}
            method = "share without a reply"
            yield _measured(MISSING, labels, lost / asked, asked, "replies asked for", method, detail=detail)


def without_numbers(measurements: Iterable[Measurement], gone: Mapping[str, str]) -> Iterator[Measurement]:
    """The same, with no number for the models that were left out."""
    for item in measurements:
        if (why := gone.get(item.labels.get("model", ""))) is None:
            yield item
        else:
            kept = {name: value for name, value in item.detail.items() if name in _RULES}
            gone_too = dataclasses.replace(item, value=None, low=None, high=None, level=None)
            yield dataclasses.replace(gone_too, state=f"no score: {why}", detail=kept)


def without_choice(episodes: Sequence[Episode], convention: Convention) -> dict[str, str]:
    """The models whose S3 to S5 say nothing by a convention, so that they have no CEPS, with the reason."""
    if convention != "paper":
        return {}
    dates: defaultdict[str, list[bool]] = defaultdict(list)
    for one in episodes:
        dates[one.agent.name] += [date.answers.signals.count("buy") <= 1 for date in one.result.dates]
    return {name: NO_CHOICE for name, few in dates.items() if 2 * sum(few) > len(few)}


def unscored_models(locked: LockedBench, episodes: Sequence[Episode], *, other: bool = False) -> dict[str, str]:
    """The models that have no CEPS by the plan's convention or the other one, with the reason."""
    convention = locked.other if other else locked.plan.convention
    return without_choice(episodes, convention) | left_out(locked, pipeline_replies(episodes))


def ceps_items(
    episodes: Sequence[Episode], unscored: Mapping[str, str] = MappingProxyType({}), *, other: bool = False
) -> ScoredItems:
    """CEPS of every model on every date of these episodes; ``unscored`` have none."""
    models = tuple(dict.fromkeys(one.agent.name for one in episodes))
    rows: dict[str, list[float]] = {name: [] for name in models}
    clusters: list[str] = []
    parts: list[str] = []
    for one in episodes:
        result = one.other if other else one.result
        rows[one.agent.name] += [date.ceps for date in result.dates]
        if one.agent.name == models[0]:
            clusters += [f"{result.window}/{date.day}" for date in result.dates]
            parts += [result.window] * len(result.dates)
    values = np.array([np.full(len(row), np.nan) if name in unscored else row for name, row in rows.items()])
    return ScoredItems(models, values, tuple(clusters), tuple(parts), unscored)


def family_measurements(
    locked: LockedBench, boards: Mapping[str, ScoredItems], others: Mapping[str, ScoredItems]
) -> Iterator[Measurement]:
    """Levels and differences on the boards of one of the families that share the plan's error rate."""
    rules = locked.plan.inference
    shared = rules.model_copy(update={"alpha": rules.alpha / locked.families})
    plan = OrderPlan(shared, level=locked.plan.level, span=1.0, unit="", cycle="item")
    yield from board_measurements(boards, plan, others=others, order=rules.cluster_order or "exchangeable")


def boards_of(locked: LockedBench) -> tuple[str, ...]:
    """The leaderboards of the pipeline: all profiles together where there are several, then each."""
    profiles = locked.plan.pipeline.profiles
    return (ALL, *profiles) if len(profiles) > 1 else tuple(profiles)


def _stage_means(
    locked: LockedBench, results: Sequence[EpisodeResult], unscored: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Measurement]:
    """Mean of each stage by model and profile, over all windows and over the calm and the stressed ones."""
    stressed = {one.name for one in locked.data.specs if one.kind == "stress"}
    readings: dict[str, Callable[[DateResult], float]] = {
        **{stage: (lambda date, at=stage: date.scores[at]) for stage in STAGES},  # type: ignore[misc]
        "CEPS": lambda date: date.ceps,
        "PAS": lambda date: date.pas,
    }
    kinds = {"all": lambda _: True, "normal": lambda name: name not in stressed, "stress": stressed.__contains__}
    for profile, (kind, wanted) in product(boards_of(locked), kinds.items()):
        mine = [one for one in results if profile in (ALL, one.profile) and wanted(one.window)]
        if not mine:
            continue
        models = tuple(dict.fromkeys(one.model for one in mine))
        first = [one for one in mine if one.model == models[0]]
        clusters = tuple(f"{one.window}/{date.day}" for one in first for date in one.dates)
        parts = tuple(one.window for one in first for _ in one.dates)
        for stage, read in readings.items():
            rows = [[read(date) for one in mine if one.model == name for date in one.dates] for name in models]
            items = ScoredItems(models, np.array(rows), clusters, parts, unscored if stage in _CHOSEN else {})
            labels = {"profile": profile, "stage": stage, "windows": kind}
            yield from level_measurements("bench.stage", items, labels, level=locked.plan.level)


def ceiling_measurements(locked: LockedBench, results: Sequence[EpisodeResult]) -> list[Measurement]:
    """What the answers themselves score: the ceiling of every stage."""
    return [
        dataclasses.replace(item, name="bench.ceiling", labels={key: item.labels[key] for key in ("profile", "stage")})
        for item in _stage_means(locked, results)
        if item.labels["windows"] == "all"
    ]


def _alignment(locked: LockedBench, episodes: Sequence[Episode]) -> Iterator[Measurement]:
    """Adaptation: how far the mean alignments of a model's profiles lie apart (eq. 8)."""
    profiles = locked.plan.pipeline.profiles
    for agent in locked.plan.models:
        seen = {
            profile: [
                date.pas
                for one in episodes
                if (one.agent.name, one.result.profile) == (agent.name, profile)
                for date in one.result.dates
            ]
            for profile in profiles
        }
        means = {str(profile): float(np.mean(values)) for profile, values in seen.items()}
        several = len(profiles) > 1
        yield _measured(
            "bench.adaptation", {"model": agent.name}, adaptation_score(means) if several else None,
            sum(map(len, seen.values())), "dates",
            "population standard deviation of the mean alignment of each profile",
            state="ok" if several else "not defined: one profile, needs two", detail={"profiles": means},
        )  # fmt: skip


def _falls(episodes: Sequence[Episode], specs: Mapping[str, Window]) -> Iterator[Measurement]:
    """The maximum drawdown of every history, by both conventions, and the stress score of each profile."""
    scores: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for one in episodes:
        result, tolerance = one.result, profile_named(one.result.profile).drawdown_tolerance
        stress, depth = specs[result.window].kind == "stress", _depth(result.nav)
        detail = {"tolerance": tolerance, "stress": stress, "other": _depth(one.other.nav)}
        method = f"maximum drawdown, {ONE_HISTORY}"
        yield _measured(
            DRAWDOWN, _labels(result), depth, result.nav.size, "days", method,
            detail={**detail, "wanted": list(STRESS_SCENARIOS)},
        )  # fmt: skip
        if stress:
            scores[result.model, result.profile].append(stress_score(depth, tolerance))
    for (model, profile), found in scores.items():
        labels, method = {"model": model, "profile": profile}, "mean of 1 - drawdown / tolerance, at least 0, "
        mean = float(np.mean(found))
        yield _measured("bench.stress", labels, mean, len(found), "windows", method + ONE_HISTORY)


def _depth(nav: Floats) -> float:
    return abs(max_drawdown(nav).depth)


def _ratios(
    locked: LockedBench, episodes: Sequence[Episode], baselines: Sequence[BaselineResult],
    specs: Mapping[str, Window], rng: np.random.Generator,
) -> Iterator[Measurement]:  # fmt: skip
    """Sharpe ratios in the calm windows, and their differences from equal weight.

    A history that cannot be resampled has a state in words.
    """
    level = locked.plan.level
    evens = {one.window: one for one in baselines if one.name == EQUAL_WEIGHT}
    calm = [name for name, one in specs.items() if one.kind == "normal"]
    for window, profile in product(calm, locked.plan.pipeline.profiles):
        mine = [one for one in episodes if (one.result.window, one.result.profile) == (window, profile)]
        even, moving = evens.get(window), [one for one in mine if _moves(one.result.nav)]
        for one in mine:
            if one not in moving:
                for name in ("bench.sharpe", *((SHARPE_CONTRAST,) if even is not None else ())):
                    yield _no_ratio(name, one.result, "not defined: the history does not vary")
        if not moving:
            continue
        pairs = [] if even is None else [(at, len(moving)) for at in range(len(moving))]
        navs = [*(one.result.nav for one in moving), *([] if even is None else [even.nav])]
        try:
            ratios, gaps = sharpe_ratios(np.stack(list(map(_returns, navs))), pairs, rng=rng, level=level)
        except NotMeasurableError as exc:
            yield from (_no_ratio("bench.sharpe", one.result, f"not defined: {exc}") for one in moving)
            continue
        for at, one in enumerate(moving):
            yield _ratio("bench.sharpe", _labels(one.result), ratios[at], level, {})
            if even is not None:
                other, against = performance(one.other.nav).sharpe, performance(even.nav).sharpe
                known = {} if other is None or against is None else {"other": other - against}
                yield _ratio(SHARPE_CONTRAST, _labels(one.result), gaps[at], level, {"p": gaps[at].p, **known})


def _moves(nav: Floats) -> bool:
    return nav.size > 10 and performance(nav).sharpe is not None


def _returns(nav: Floats) -> Floats:
    return np.asarray(nav[1:] / nav[:-1] - 1.0)


def _labels(result: EpisodeResult) -> dict[str, str]:
    return {"model": result.model, "profile": result.profile, "window": result.window}


def _ratio(
    name: str, labels: Mapping[str, str], found: OverTime, level: float, detail: Mapping[str, float]
) -> Measurement:
    return _measured(
        name, dict(labels), found.value, found.n, "days", found.method, low=found.low, high=found.high, level=level,
        detail={"block": found.block, **detail},
    )  # fmt: skip


def _no_ratio(name: str, result: EpisodeResult, state: str) -> Measurement:
    return _measured(name, _labels(result), None, result.nav.size, "days", "Sharpe ratio", state=state)


def _performances(episodes: Sequence[Episode]) -> Iterator[Measurement]:
    for one in episodes:
        name, labels, dates = "bench.performance", _labels(one.result), one.result.dates
        yield from _figures(name, labels, one.result.nav)
        turnover = np.array([date.turnover for date in dates])
        yield from _book_figures(name, labels, np.stack([date.executed for date in dates]), turnover)
        bought = [date.answers.signals.count("buy") / len(date.answers.signals) for date in dates]
        method = "mean share of instruments with the signal buy, of which alone the oracle may hold"
        yield _measured(name, {**labels, "figure": "buys"}, float(np.mean(bought)), len(dates), "dates", method)


def _baseline_figures(
    baselines: Sequence[BaselineResult], specs: Mapping[str, Window], level: float, rng: np.random.Generator
) -> Iterator[Measurement]:
    for one in baselines:
        name, labels = "bench.baseline", {"baseline": one.name, "window": one.window}
        yield from _figures(name, labels, one.nav)
        yield from _book_figures(name, labels, one.weights, one.turnover)
        yield _figure(name, {**labels, "figure": "drawdown"}, _depth(one.nav), one.nav, {})
        labels["figure"] = "sharpe"
        if specs[one.window].kind == "normal" and _moves(one.nav):
            ((ratio,), _) = sharpe_ratios([_returns(one.nav)], rng=rng, level=level)
            yield _ratio(name, labels, ratio, level, {})
        else:
            found = performance(one.nav)
            yield _figure(name, labels, found.sharpe, one.nav, found.undefined)


def _figures(name: str, labels: Mapping[str, str], nav: Floats) -> Iterator[Measurement]:
    found = performance(nav)
    for figure in FIGURES:
        yield _figure(name, {**labels, "figure": figure}, getattr(found, figure), nav, found.undefined)


def _figure(
    name: str, labels: Mapping[str, str], value: float | None, nav: Floats, undefined: Mapping[str, str]
) -> Measurement:
    state = "ok" if value is not None else f"not defined: {undefined.get(labels['figure'], 'too few days')}"
    method = f"{labels['figure'].replace('_', ' ')} of daily values, {ONE_HISTORY}"
    return _measured(name, labels, value, nav.size, "days", method, state=state)


def _book_figures(name: str, labels: Mapping[str, str], weights: Floats, turnover: Floats) -> Iterator[Measurement]:
    """Turnover, number of holdings and largest weight: means over the decisions."""
    figures = {
        "turnover": float(turnover.mean()),
        "holdings": float((weights > _HELD).sum(axis=1).mean()),
        "largest_weight": float(weights.max(axis=1).mean()),
    }
    method = "mean over the decisions of one history"
    for figure, value in figures.items():
        yield _measured(name, {**labels, "figure": figure}, value, turnover.size, "dates", method)


def _risk_safe(
    episodes: Sequence[Episode], specs: Mapping[str, Window], unscored: Mapping[str, str]
) -> Iterator[Measurement]:
    for result in (one.result for one in episodes):
        if specs[result.window].kind != "stress" or result.window not in RISK_SAFE:
            continue
        why, n = unscored.get(result.model), len(result.dates)
        mean = float(np.mean([date.ceps for date in result.dates]))
        least: dict[str, JSON] = {"threshold": RISK_SAFE[result.window]}
        yield _measured(
            "bench.risk_safe", {"model": result.model, "profile": result.profile, "scenario": result.window},
            mean if why is None else None, n, "dates", "mean CEPS of the decisions of one window",
            state="ok" if why is None else f"no score: {why}",
            detail=least | {"safe": risk_safe(result.window, mean)} if why is None else least,
        )  # fmt: skip
