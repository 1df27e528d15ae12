"""The measurements of a benchmark: scores and differences on leaderboards, stages, drawdowns, ratios, adaptation."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import assaymark.records as records
from assaymark.benchmark import plan as profiles
from assaymark.benchmark.episode import BaselineResult, EpisodeState
from assaymark.benchmark.plan import BenchPlan, profile_named
from assaymark.benchmark.questions.answers import tabulate
from assaymark.benchmark.questions.payloads import Condition
from assaymark.benchmark.replies import rationale_of
from assaymark.benchmark.scores import STAGES, Convention, DateResult, EpisodeResult
from assaymark.claims.boards import DISSOCIATION, DRAWDOWN, MISSING, PIPELINE, SHARPE_CONTRAST
from assaymark.engine import Ledger, Model, Reply
from assaymark.errors import InputError, LedgerError, NotMeasurableError, Problem
from assaymark.market import simple_returns
from assaymark.metrology import measure_orders as orders
from assaymark.metrology.bootstrap import OverTime, sharpe_ratios
from assaymark.metrology.checks import Floats
from assaymark.metrology.estimates import excess_replies, number
from assaymark.metrology.measure_orders import ScoredItems
from assaymark.metrology.orders import OrderPlan
from assaymark.plan import toml_text
from assaymark.portfolio import Performance, performance
from assaymark.protocol import AgentSpec
from assaymark.records import JSON, Measurement, Score, content_id
from assaymark.report.portbench.index import ALL, QUESTIONS
from assaymark.workflow.import_records import store_records
from assaymark.workflow.lock import lock
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tracks.benchmark_plan import Answers, Episode, LockedBench
from assaymark.workflow.verbs import finish

measured = partial(number, Measurement)

_COLUMNS: Final[Mapping[str, str]] = {
    "close": "price",
    **dict.fromkeys(("return_20", "return_60", "volatility", "max_drawdown", "sharpe", "beta"), "ratio"),
    "duration": "years",
}
"""The numeric fields of an asset line, with their units."""

_STAGES: Final[Mapping[str, str]] = {"S1": "Views", "S2": "Signals", "S3": "Weights"}
"""The heading of a stage's rationale in the judge's prompt."""

_HELD: Final = 1e-6
_CLOSE: Final = time(21, 0, tzinfo=UTC)


def grade_rationales(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode], models: Mapping[str, Model], now: datetime,
) -> RunFolder:  # fmt: skip
    """Have the plan's judges grade every rationale in a study of its own, with its own lock, verdicts and pages."""
    within, ids = folder.rationales, locked.market.universe.ids
    views = {day.day: day for window in locked.windows for day in map(locked.market.known, window.rows.tolist())}
    agents = {agent.name: agent for agent in locked.plan.models}
    decisions, contexts = list[records.Decision](), dict[str, records.Context]()
    with Ledger.open(folder.ledger, create=False) as ledger:
        for (result, _), (step, dated) in ((episode, at) for episode in episodes for at in enumerate(episode[0].dates)):
            agent, setting = agents[result.model], f"{result.profile}/{result.window}"
            keys = {stage: answer.key for (day, stage), answer in result.excerpts.items() if day == dated.day}
            replies = {stage: ledger.reply(key) for stage, key in keys.items()}
            texts = {stage: text for stage, reply in replies.items() if (text := rationale_of(reply.text))}
            if not texts:
                continue
            # the context of the model at S3: prompt, numbers, and limits
            view, moment, profile = views[dated.day], datetime.combine(dated.day, _CLOSE), profile_named(result.profile)
            facts = [
                records.Fact(f"{line.ticker}/{name}", line.ticker, name, float(value), unit, available_at=moment)
                for line in view.lines
                for name, unit in _COLUMNS.items()
                if (value := getattr(line, name)) is not None
            ]  # fmt: skip
            limits = (
                records.Constraint(kind="max_weight", limit=profile.equity_cap, unit="nav", scope="equity and crypto"),
                records.Constraint(kind="min_weight", limit=profile.bond_floor, unit="nav", scope="bond and cash"),
                records.Constraint(kind="max_drawdown", limit=profile.drawdown_tolerance, unit="nav"),
            )
            context = records.Context(
                completeness="complete", cutoff=moment, cutoff_source="the close of the decision date",
                prompt="\n\n".join(part.text for message in ledger.call(keys["S3"]).messages for part in message.parts),
                facts=tuple(facts), constraints=limits, profile=profile.text,
                instruments=tuple(
                    records.Instrument(id=name, symbol=name, asset_class=kind)
                    for name, kind in zip(view.tickers, view.classes, strict=True)
                ),
            )  # fmt: skip
            context_id = content_id(context)
            contexts[context_id] = context
            sums: dict[str, Any] = {}
            for field in ("seconds", "input_tokens", "output_tokens"):
                values = [getattr(reply, field) for reply in replies.values()]
                sums[field] = None if None in values else sum(values)
            places = np.flatnonzero(dated.executed > _HELD).tolist()
            weights = {ids[at]: float(dated.executed[at]) for at in places}
            decisions.append(
                records.Decision(
                    record_id=hashlib.sha256(f"{agent.name}/{setting}/{dated.day}".encode()).hexdigest(),
                    episode_id=setting, step=step, cluster=f"{result.window}/{dated.day}", decided_at=moment,
                    agent=records.Agent(agent.name, agent.family, agent.model),
                    context_id=context_id, format="assaymark benchmark",
                    actions=tuple(
                        records.Action(instrument=name, kind="target_weight", weight=share)
                        for name, share in weights.items()
                    ),
                    rationales=tuple(
                        records.Rationale(text=f"{_STAGES[stage]}: {text}", kind="stage")
                        for stage, text in texts.items()
                    ),
                    provenance=records.Provenance(source=f"{locked.plan.name}, {setting}"),
                    call=records.CallFacts(
                        **sums, timing_source="absent" if sums["seconds"] is None else "measured"
                    ),
                )
            )  # fmt: skip
    if not decisions:
        raise InputError("--judge", [Problem("", "no reply holds a rationale that could be graded")])
    within.path.mkdir(parents=True, exist_ok=True)
    store_records(within, decisions, contexts, [])
    lock(within, rationale_study(locked.plan), f"judges of {locked.plan.name}", now, models)
    finish(within, models)
    return within


def rationale_study(plan: BenchPlan) -> str:
    """Return the study that grades the rationales, as TOML: judges, rubric and ranking rules of the benchmark."""
    fields = plan.model_dump(mode="json", include={"judges", "claims", "missing"}, exclude_defaults=True)
    inference = plan.inference.model_dump(mode="json", exclude_defaults=True)
    head = {
        "version": "2",
        "name": f"{plan.name}-rationales",
        "title": f"Rationales of {plan.title or plan.name}",
        "seed": plan.seed,
        "rubric": {"text" if "\n" in plan.rubric else "name": plan.rubric},
        "inference": {**inference, "allow_hopeless": True},
    }
    return toml_text(head | fields)


EQUAL_WEIGHT: Final = "EqW"
"""The baseline that models are compared with."""

FIGURES: Final = ("total_return", "volatility", "sortino", "calmar")
ONE_HISTORY: Final = "from one history, so without an interval"

NO_CHOICE: Final = "on most dates it names at most one instrument to buy, which leaves the oracle no choice"
"""The reason why a model has neither S3 to S5 nor CEPS."""

ReplyStates = Mapping[str, Counter[str]]
"""By model, the number of calls in each state: that of a reply as it was read, or ``missing``."""

_CHOSEN: Final = ("S3", "S4", "S5", "CEPS")
_RULES: Final = ("tolerance", "stress", "wanted", "threshold")  # what a measurement is compared with, not its value


def pipeline_measurements(
    locked: LockedBench, episodes: Sequence[Episode], baselines: Sequence[BaselineResult]
) -> list[Measurement]:
    """Compute every measurement of a run's pipeline."""
    rng, level = np.random.default_rng([locked.plan.seed, 1]), locked.plan.level
    replies, unscored = pipeline_replies(episodes), unscored_models(locked, episodes, locked.plan.convention)
    gone, unscored_by = excluded_models(locked, replies), (unscored, unscored_models(locked, episodes, locked.other))
    boards, others = (
        {name: ceps_items([pair[at] for pair in episodes if name in (ALL, pair[0].profile)], unscored_by[at])
         for name in boards_of(locked)}
        for at in (0, 1)
    )  # fmt: skip
    measurements = [
        *family_measurements(locked, boards, others),
        *_stage_means(locked, [result for result, _ in episodes], unscored),
        *_by_history(locked, episodes, unscored),
        *_ratios(locked, episodes, baselines, rng),
    ]
    calm = {window.window for window in locked.windows if window.spec.kind == "normal"}
    for baseline in baselines:
        labels, outcome = {"baseline": baseline.name, "window": baseline.window}, performance(baseline.nav)
        measurements += _figures("bench.baseline", labels, outcome, baseline.weights, baseline.turnover)
        measurements.append(_figure("bench.baseline", labels, "drawdown", outcome, _drawdown(outcome)))
        if baseline.window in calm and _varies(outcome):
            ((ratio,), _) = sharpe_ratios([simple_returns(baseline.nav)], rng=rng, level=level)
            measurements.append(_ratio("bench.baseline", {**labels, "figure": "sharpe"}, ratio, level))
        else:
            measurements.append(_figure("bench.baseline", labels, "sharpe", outcome, outcome.sharpe))
    return [*missing_measurements(PIPELINE, replies, gone), *without_numbers(measurements, gone)]


def pipeline_replies(episodes: Sequence[Episode]) -> ReplyStates:
    """Return the states of each model's replies to the pipeline; several profiles share some calls."""
    by_model: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for result, _ in episodes:
        states = {date.day: date.answers.states for date in result.dates}
        for (day, stage), call in result.excerpts.items():
            by_model[result.model][call.key] = "missing" if call.missing else states[day][stage].state
    return {model: Counter(calls.values()) for model, calls in by_model.items()}


def excluded_models(locked: LockedBench, replies: ReplyStates) -> dict[str, str]:
    """Return the models that lack more replies than the plan tolerates, each with the reason."""
    most = locked.plan.missing.per_agent
    shares = {model: states["missing"] / states.total() for model, states in replies.items()}
    excess = excess_replies(shares, {}, per_judge=most, per_agent=most)
    if excess and locked.plan.missing.on_excess == "stop":
        words = "; ".join(f"model {model}: {reason}" for model, reason in excess.items())
        raise LedgerError(f"too many replies are missing: {words}")
    return excess


def missing_measurements(part: str, replies: ReplyStates, gone: Mapping[str, str]) -> Iterator[Measurement]:
    """Yield ``missing.share`` of each model that lacks replies; ``left_out`` is the reason if it is excluded."""
    for model, states in replies.items():
        if lost := states["missing"]:
            labels, count = {"model": model, "part": part}, (states.total(), "replies asked for")
            yield measured(MISSING, labels, lost / states.total(), count, "share without a reply",
                           detail={"missing": lost, "left_out": gone.get(model, "")})  # fmt: skip


def unusable_notes(part: str, replies: ReplyStates, most: float) -> Iterator[str]:
    """Yield a note on each model of which more than a share ``most`` of the replies to a part could not be used."""
    for model, states in replies.items():
        lost, came = (
            sum(states[name] for name in ("invalid", "refused", "truncated")),
            states.total() - states["missing"],
        )
        if lost > most * came:
            refused = f" ({states['refused']} refused)" if states["refused"] else ""
            yield f"{lost} of {came} replies of {model} to the {part} could not be used{refused}."


def without_numbers(measurements: Iterable[Measurement], gone: Mapping[str, str]) -> Iterator[Measurement]:
    """Yield the measurements, without values for the excluded models in ``gone``."""
    for item in measurements:
        if (reason := gone.get(item.labels.get("model", ""))) is None:
            yield item
        else:
            rules = {name: value for name, value in item.detail.items() if name in _RULES}
            gone_too = replace(item, value=None, low=None, high=None, level=None)
            yield replace(gone_too, state=f"no score: {reason}", detail=rules)


def without_choice(episodes: Sequence[Episode], convention: Convention) -> dict[str, str]:
    """Return the models whose S3 to S5 are uninformative by a convention, so CEPS is undefined, with the reason."""
    dates: defaultdict[str, list[bool]] = defaultdict(list)
    for result, _ in episodes if convention == "paper" else ():
        dates[result.model] += [date.answers.signals.count("buy") <= 1 for date in result.dates]
    return {name: NO_CHOICE for name, few in dates.items() if 2 * sum(few) > len(few)}


def unscored_models(locked: LockedBench, episodes: Sequence[Episode], convention: Convention) -> dict[str, str]:
    """Return the models without CEPS by a convention, with the reason."""
    return without_choice(episodes, convention) | excluded_models(locked, pipeline_replies(episodes))


def ceps_items(results: Sequence[EpisodeResult], unscored: Mapping[str, str]) -> ScoredItems:
    """Return CEPS of every model on every date of these episodes; ``unscored`` models have none."""
    return _scored_items(results, lambda date: date.ceps, unscored)


def _scored_items(
    results: Sequence[EpisodeResult], read: Callable[[DateResult], float], unscored: Mapping[str, str]
) -> ScoredItems:
    """Return ``read(date)`` for every date by model, as items clustered by window and day."""
    rows: dict[str, list[float]] = {result.model: [] for result in results}
    for result in results:
        rows[result.model] += [read(date) for date in result.dates]
    first = [(result, date) for result in results if result.model == results[0].model for date in result.dates]
    values = np.array([np.full(len(row), np.nan) if name in unscored else row for name, row in rows.items()])
    clusters = tuple(f"{result.window}/{date.day}" for result, date in first)
    return ScoredItems(tuple(rows), values, clusters, tuple(result.window for result, _ in first), unscored)


def family_measurements(
    locked: LockedBench, boards: Mapping[str, ScoredItems], others: Mapping[str, ScoredItems]
) -> Iterator[Measurement]:
    """Yield scores and differences on the leaderboards of one family, at its share of the plan's error rate."""
    rules = locked.plan.inference
    shared = rules.model_copy(update={"alpha": rules.alpha / locked.families})
    plan = OrderPlan(shared, level=locked.plan.level, span=1.0, unit="", cycle="item")
    yield from orders.board_measurements(boards, plan, others, order=rules.cluster_order or "exchangeable")


def boards_of(locked: LockedBench) -> tuple[str, ...]:
    """Return the leaderboards of the pipeline: all profiles together if there are several, then each profile."""
    names = locked.plan.pipeline.profiles
    return (ALL, *names) if len(names) > 1 else tuple(names)


def _stage_means(
    locked: LockedBench, results: Sequence[EpisodeResult], unscored: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Measurement]:
    """Yield the mean of each stage by model and profile: over all windows, the normal and the stressed ones."""
    stressed = {window.window for window in locked.windows if window.spec.kind == "stress"}
    readings: dict[str, Callable[[DateResult], float]] = {
        **{stage: (lambda date, at=stage: date.scores[at]) for stage in STAGES},  # type: ignore[misc]
        "CEPS": lambda date: date.ceps,
        "PAS": lambda date: date.pas,
    }
    kinds = {"all": lambda _: True, "normal": lambda name: name not in stressed, "stress": stressed.__contains__}
    for profile, (kind, accepts) in product(boards_of(locked), kinds.items()):
        chosen = [result for result in results if profile in (ALL, result.profile) and accepts(result.window)]
        for stage, read in readings.items() if chosen else ():
            items = _scored_items(chosen, read, unscored if stage in _CHOSEN else {})
            labels = {"profile": profile, "stage": stage, "windows": kind}
            yield from orders.level_measurements("bench.stage", items, labels, locked.plan.level)


ANSWER_KEY: Final = "reference/portbench-answer-key"
"""The model name in episodes that are answered with the true answers."""


def ceiling_measurements(locked: LockedBench) -> list[Measurement]:
    """Compute the ceiling of every stage: the scores of episodes in which every stage gets the true answer."""
    agent, results, plan = AgentSpec(name="answers", family="answers", model=ANSWER_KEY), [], locked.plan
    for name, window in product(plan.pipeline.profiles, locked.windows):
        state = EpisodeState(agent, profile_named(name), window, plan.pipeline, plan.convention)
        while not state.over:
            state.follow(Reply(text=state.true_reply(), model=ANSWER_KEY))
        results.append(state.result())
    return [
        replace(item, name="bench.ceiling", labels={key: item.labels[key] for key in ("profile", "stage")})
        for item in _stage_means(locked, results)
        if item.labels["windows"] == "all"
    ]


def _by_history(locked: LockedBench, episodes: Sequence[Episode], unscored: Mapping[str, str]) -> Iterator[Measurement]:
    """Yield measurements of single histories: adaptation, drawdown, stress, performance, and risk-safe thresholds."""
    specs, names = {window.window: window.spec for window in locked.windows}, locked.plan.pipeline.profiles
    for agent in locked.plan.models:  # the spread of mean alignments between a model's profiles (eq. 8)
        by_profile = {str(profile): list[float]() for profile in names}
        for result in (result for result, _ in episodes if result.model == agent.name):
            by_profile[result.profile] += [date.pas for date in result.dates]
        means = {profile: float(np.mean(values)) for profile, values in by_profile.items()}
        score, dates = profiles.adaptation_score(means) if len(names) > 1 else None, sum(map(len, by_profile.values()))
        yield measured(
            "bench.adaptation", {"model": agent.name}, score, (dates, "dates"),
            "population standard deviation of the mean alignment of each profile",
            "not defined: one profile, needs two", {"profiles": means},
        )  # fmt: skip
    scores: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    scenarios = list(profiles.STRESS_SCENARIOS)
    for result, other in episodes:
        tolerance, depth = profile_named(result.profile).drawdown_tolerance, _drawdown(performance(result.nav))
        stress = specs[result.window].kind == "stress"
        drawn: dict[str, JSON] = {"tolerance": tolerance, "stress": stress, "other": _drawdown(performance(other.nav))}
        count, method = (result.nav.size, "days"), f"maximum drawdown, {ONE_HISTORY}"
        yield measured(DRAWDOWN, _result_labels(result), depth, count, method, detail=drawn | {"wanted": scenarios})
        if stress:
            scores[result.model, result.profile].append(profiles.stress_score(depth, tolerance))
    for (model, profile), values in scores.items():
        method = f"mean of 1 - drawdown / tolerance, at least 0, {ONE_HISTORY}"
        labels, mean = {"model": model, "profile": profile}, float(np.mean(values))
        yield measured("bench.stress", labels, mean, (len(values), "windows"), method)
    for result, _ in episodes:
        name, labels, days = "bench.performance", _result_labels(result), result.dates
        turnover, weights = np.array([date.turnover for date in days]), np.stack([date.executed for date in days])
        yield from _figures(name, labels, performance(result.nav), weights, turnover)
        bought = [date.answers.signals.count("buy") / len(date.answers.signals) for date in days]
        method = "mean share of instruments with the signal buy, of which alone the oracle may hold"
        yield measured(name, {**labels, "figure": "buys"}, float(np.mean(bought)), (len(days), "dates"), method)
        if specs[result.window].kind != "stress" or result.window not in profiles.RISK_SAFE:
            continue
        reason, mean = unscored.get(result.model), float(np.mean([date.ceps for date in days]))
        detail: dict[str, JSON] = {"threshold": profiles.RISK_SAFE[result.window]}
        detail |= {"safe": profiles.risk_safe(result.window, mean)} if reason is None else {}
        yield measured(
            "bench.risk_safe", {"model": result.model, "profile": result.profile, "scenario": result.window},
            mean if reason is None else None, (len(days), "dates"), "mean CEPS of the decisions of one window",
            f"no score: {reason}", detail,
        )  # fmt: skip


def _ratios(
    locked: LockedBench, episodes: Sequence[Episode], baselines: Sequence[BaselineResult], rng: np.random.Generator
) -> Iterator[Measurement]:
    """Yield Sharpe ratios in normal windows and their differences from equal weight, or why one is undefined."""
    level = locked.plan.level

    def no_ratio(name: str, result: EpisodeResult, state: str) -> Measurement:
        return measured(name, _result_labels(result), None, (result.nav.size, "days"), "Sharpe ratio", state)

    evens = {baseline.window: baseline.nav for baseline in baselines if baseline.name == EQUAL_WEIGHT}
    calm = [window.window for window in locked.windows if window.spec.kind == "normal"]
    for window, profile in product(calm, locked.plan.pipeline.profiles):
        here = [pair for pair in episodes if (pair[0].window, pair[0].profile) == (window, profile)]
        even, moving = evens.get(window), [pair for pair in here if _varies(performance(pair[0].nav))]
        for pair in here:
            if pair not in moving:
                for name in ("bench.sharpe", *((SHARPE_CONTRAST,) if even is not None else ())):
                    yield no_ratio(name, pair[0], "not defined: the history does not vary")
        if not moving:
            continue
        pairs = [] if even is None else [(at, len(moving)) for at in range(len(moving))]
        navs = [*(result.nav for result, _ in moving), *([] if even is None else [even])]
        try:
            ratios, gaps = sharpe_ratios(np.stack(list(map(simple_returns, navs))), pairs, rng=rng, level=level)
        except NotMeasurableError as exc:
            yield from (no_ratio("bench.sharpe", result, f"not defined: {exc}") for result, _ in moving)
            continue
        for at, (result, other_result) in enumerate(moving):
            yield _ratio("bench.sharpe", _result_labels(result), ratios[at], level)
            if even is not None:
                other, against = performance(other_result.nav).sharpe, performance(even).sharpe
                more = {} if other is None or against is None else {"other": other - against}
                yield _ratio(SHARPE_CONTRAST, _result_labels(result), gaps[at], level, p=gaps[at].p, **more)


def _drawdown(outcome: Performance) -> float:
    return abs(outcome.max_drawdown or 0.0)


def _varies(outcome: Performance) -> bool:
    return outcome.n + 1 > 10 and outcome.sharpe is not None


def _result_labels(result: EpisodeResult) -> dict[str, str]:
    return {"model": result.model, "profile": result.profile, "window": result.window}


def _ratio(name: str, labels: Mapping[str, str], ratio: OverTime, level: float, **more: float) -> Measurement:
    ends, detail = (ratio.low, ratio.high), {"block": ratio.block, **more}
    return measured(name, labels, ratio.value, (ratio.n, "days"), ratio.method, "ok", detail, ends, level)


def _figures(
    name: str, labels: Mapping[str, str], outcome: Performance, weights: Floats, turnover: Floats
) -> Iterator[Measurement]:
    """Yield performance figures of a history, and means over its decisions: turnover, holdings, largest weight."""
    for figure in FIGURES:
        yield _figure(name, labels, figure, outcome, getattr(outcome, figure))
    means = {"turnover": turnover, "holdings": (weights > _HELD).sum(axis=1), "largest_weight": weights.max(axis=1)}
    for figure, each in means.items():
        method, count = "mean over the decisions of one history", (turnover.size, "dates")
        yield measured(name, {**labels, "figure": figure}, float(each.mean()), count, method)


def _figure(name: str, labels: Mapping[str, str], figure: str, whole: Performance, value: float | None) -> Measurement:
    state = f"not defined: {whole.undefined.get(figure, 'too few days')}"
    method = f"{figure.replace('_', ' ')} of daily values, {ONE_HISTORY}"
    return measured(name, {**labels, "figure": figure}, value, (whole.n + 1, "days"), method, state)


def pipeline_scores(locked: LockedBench, episodes: Sequence[Episode]) -> Iterator[Score]:
    """Yield rows of the score table: S1 to S5, CEPS and PAS of every date, by both conventions."""
    for pair, at in product(episodes, (0, 1)):
        result, convention = pair[at], (locked.plan.convention, locked.other)[at]
        labels = {"profile": result.profile, "window": result.window}
        for day in result.dates:
            states = {str(stage): state.state for stage, state in day.answers.states.items()}
            values = {**{str(stage): day.scores[stage] for stage in STAGES}, "CEPS": day.ceps, "PAS": day.pas}
            cluster = f"{result.window}/{day.day}"
            for name, value in values.items():
                yield Score(
                    f"{result.model}/{result.profile}/{cluster}", result.model, cluster, name, float(value), convention,
                    state=states.get(name, "ok"), labels=labels,
                )  # fmt: skip


def question_scores(locked: LockedBench, answers: Answers) -> Iterator[Score]:
    """Yield rows of the score table: every answer, by both conventions."""
    for model, items in answers.items():
        for item in items:
            one = item.question
            labels = {"template": one.template, "condition": item.condition, "regime": one.regime, "split": one.split}
            for convention, scored in ((locked.plan.convention, item.score), (locked.other, item.other)):
                yield Score(
                    one.id, model, str(one.day), "QA", float(scored.score), convention, state=scored.state,
                    labels=labels,
                )  # fmt: skip


def question_items(
    answers: Answers, condition: Condition, unscored: Mapping[str, str], other: bool = False
) -> ScoredItems:
    """Return the scores of all models on all questions under one condition, clustered by day."""
    rows = [[item for item in items if item.condition == condition] for items in answers.values()]
    values = np.array([[(scored.other if other else scored.score).score for scored in row] for row in rows])
    values[[name in unscored for name in answers]] = np.nan
    days, templates = zip(*((str(scored.question.day), scored.question.template) for scored in rows[0]), strict=True)
    return ScoredItems(tuple(answers), values, days, templates, unscored)


def question_replies(answers: Answers) -> ReplyStates:
    """Return the states of each model's replies to questions."""
    return {
        model: Counter("missing" if item.missing else item.score.state for item in items)
        for model, items in answers.items()
    }


def question_measurements(locked: LockedBench, answers: Answers) -> list[Measurement]:
    """Compute the leaderboard of questions, and means by template, kind and regime under each condition."""
    level, main = locked.plan.level, locked.plan.questions.main
    replies = question_replies(answers)
    excluded = excluded_models(locked, replies)
    boards, others = ({QUESTIONS: question_items(answers, main, excluded, other)} for other in (False, True))
    measurements = [*missing_measurements(QUESTIONS, replies, excluded), *family_measurements(locked, boards, others)]
    for at, (model, items) in enumerate(answers.items()):
        rows = [
            measured(
                "bench.question", {"model": model, "condition": condition, **labels},
                cell.value, (cell.n, "questions"), cell.method, "ok", None, (cell.low, cell.high), level,
            )
            for condition, labels, cell in tabulate(items, np.random.default_rng([locked.plan.seed, 3, at]), level)
        ]  # fmt: skip
        measurements += without_numbers(rows, excluded)
    return measurements


def rank_measurements(locked: LockedBench, episodes: Sequence[Episode], answers: Answers) -> list[Measurement]:
    """Compute the rank agreement of questions and pipeline across models; empty for fewer than three models."""
    if len(locked.plan.models) < 3:
        return []
    board, main, level = boards_of(locked)[0], locked.plan.questions.main, locked.plan.level
    gone, unscored, results = excluded_models(locked, question_replies(answers)), dict[str, str](), list[Measurement]()
    for at, (resamples, convention) in enumerate(((orders.RESAMPLES, locked.plan.convention), (2, locked.other))):
        unscored |= unscored_models(locked, episodes, convention)
        chosen = [pair[at] for pair in episodes if board in (ALL, pair[0].profile)]
        two = question_items(answers, main, gone, bool(at)), ceps_items(chosen, unscored)
        rng = np.random.default_rng([locked.plan.seed, 2])
        labels = {"board": board}
        results.append(orders.rank_agreement(DISSOCIATION, *two, labels, rng=rng, level=level, resamples=resamples))
    other = results[1].value
    return [replace(results[0], detail=results[0].detail if other is None else {**results[0].detail, "other": other})]
