"""What the pages of a benchmark show: its market and snapshots, traces of episodes, and answered questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np

from assaymark.benchmark.episode import BaselineResult, Heard
from assaymark.benchmark.market import TRAINING_END, Known, is_index
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import CLASS_NAMES, profile_named
from assaymark.benchmark.questions.payloads import Split, Template
from assaymark.benchmark.questions.published import COUNTS, read_questions, shared_out
from assaymark.benchmark.replies import layers
from assaymark.benchmark.scores import (
    STAGES,
    DateResult,
    EpisodeResult,
    Stage,
    StageState,
    inter_class_score,
    intra_class_score,
    weight_accuracy,
)
from assaymark.claims.boards import BenchVerdicts
from assaymark.market import CLASS_NAMES as MARKET_CLASS_NAMES
from assaymark.market import class_index, pairwise_correlation, simple_returns
from assaymark.metrology.measure_orders import level_measurements
from assaymark.portfolio.backtest import CLASSES
from assaymark.portfolio.optimisers import Floats
from assaymark.records import Measurement
from assaymark.report.portbench import (
    BenchRun,
    ClassView,
    DateTrace,
    EpisodeTrace,
    MarketView,
    SnapshotView,
    StageTrace,
)
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tracks.benchmark_measure import boards_of, ceps_items, unscored_models
from assaymark.workflow.tracks.benchmark_plan import Answers, Episode, LockedBench

ROWS: Final = 8


Part = tuple[tuple[str, ...], Sequence[tuple[str, ...]], list[str]]
"""What a page shows of a stage: heads, rows, and the arithmetic in words."""


def episode_trace(episode: Episode, known: Mapping[date, Known], plan: BenchPlan) -> EpisodeTrace:
    """The trace of one episode."""
    result, dates = episode.result, []
    for one in result.dates:
        parts = _parts(one, result, known[one.day], plan)
        stages = []
        for stage in STAGES:
            heard = episode.heard.get((one.day, stage), Heard())
            state = one.answers.states.get(stage, StageState("ok"))
            columns, rows, lines = parts[stage]
            stages.append(StageTrace(stage, one.scores[stage], state, heard, columns, tuple(rows), tuple(lines)))
        dates.append(DateTrace(str(one.day), one.ceps, one.pas, tuple(stages)))
    return EpisodeTrace(result.model, result.profile, result.window, tuple(dates))


def _parts(one: DateResult, result: EpisodeResult, known: Known, plan: BenchPlan) -> dict[Stage, Part]:
    part, tickers, scores, alpha = known.part, known.tickers, one.scores, plan.pipeline.alpha
    said, true = one.answers.views[part], one.truths.views[part]
    error = np.abs(said - true)
    mean = float(error.mean())
    views = [(tickers[at], f"{said[at]:+.2f}", f"{true[at]:+.2f}", f"{error[at]:.2f}") for at in _largest(error)]
    over = f"{mean:.3f} is the mean error over {part.size} instruments"
    pairs = [(one.answers.signals[at], one.truths.signals[at]) for at in part.tolist()]
    counts, words = Counter(pairs), sorted({word for pair in pairs for word in pair})
    right = sum(given == truth for given, truth in pairs)
    held, best = one.executed[part], one.truths.weights[part]
    largest = _largest(np.maximum(held, best))
    weights = [(tickers[at], f"{100 * held[at]:.1f} %", f"{100 * best[at]:.1f} %") for at in largest]
    accuracy = weight_accuracy(held, best, convention=plan.convention)
    intra = intra_class_score(held, known.scored_by, known.classes)
    inter = inter_class_score(held, known.scored_by, known.classes, convention=plan.convention)
    members = np.array(known.classes)
    shares = {name: float(held[members == name].sum()) for name in CLASS_NAMES}
    by_class = [f"{name.replace('_', ' ')} {100 * share:.1f} %" for name, share in shares.items() if share > 0]
    own, oracle = one.turnover, one.truths.turnover
    traded = f"1 − |{own:.3f} − {oracle:.3f}| / {max(own, oracle):.3f} = {scores['S4']:.3f}"
    risk, truth, limits = one.risk, one.truths.risk, profile_named(result.profile)
    risks = [
        ("value at risk, 95 %", _percent(risk.var), _percent(truth.var)),
        ("deepest fall of the lookback", _percent(risk.drawdown), _percent(truth.drawdown)),
        ("largest drift of a weight", _percent(risk.drift), _percent(truth.drift)),
        ("alarm", "yes" if risk.rebalance else "no", "yes" if truth.rebalance else "no"),
    ]
    same = int(risk.rebalance == truth.rebalance)
    return {
        "S1": (("instrument", "said", "true", "error"), views, [f"1 − {mean:.3f} / 2 = {scores['S1']:.3f}; {over}"]),
        "S2": (
            ("said", *(f"true {word}" for word in words)),
            [(given, *(str(counts[given, truth]) for truth in words)) for given in words],
            [f"{right} of {len(pairs)} right = {scores['S2']:.3f}"],
        ),
        "S3": (
            ("instrument", "held", "oracle"),
            weights,
            [
                f"accuracy {accuracy:.3f}, within classes {intra:.3f}, between classes {inter:.3f}",
                f"{alpha:g} × {accuracy:.3f} + {1 - alpha:g} × ({intra:.3f} + {inter:.3f}) / 2 = {scores['S3']:.3f}",
                f"the oracle's solver: {one.truths.weights_status}",
                f"held by class: {', '.join(by_class)}",
            ],
        ),
        "S4": (
            (),
            [],
            [
                f"traded {own:.3f} of the portfolio, the oracle {oracle:.3f}",
                traded if max(own, oracle) > 0 else "neither traded: 1",
            ],
        ),
        "S5": (
            ("measure", "held", "oracle"),
            risks,
            [
                f"limits: drift {100 * plan.pipeline.drift_limit:g} %, value at risk {_percent(limits.var_limit)}",
                f"0.5 × {same} (the same alarm) + 0.5 × (1 − mean of two relative errors) = {scores['S5']:.3f}",
                f"alignment with the {result.profile} profile: {one.pas:.3f}",
            ],
        ),
    }


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %".replace("-", "−")


def _largest(values: Floats) -> list[int]:
    """Places of the largest values, largest first; equal ones in order."""
    return [int(at) for at in np.argsort(-values, kind="stable")[:ROWS]]


_POINTS: Final = 133
"""Days of a history that are drawn: one a month over eleven years."""

_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
_OVERLAP: Final = 60
"""Common days below which a correlation over the training years is left out."""


def market_view(locked: LockedBench, *, snapshots: bool) -> MarketView:
    """The market of a run, with a snapshot from each window where ``snapshots`` are wanted."""
    history, universe = locked.market.history, locked.market.universe
    prices = history.as_of(_END).prices(max(history.days.size, 1))
    column = {name: at for at, name in enumerate(prices.ids)}
    listing = {one.id: one for one in history.listings}
    order = sorted(range(universe.size), key=lambda at: (CLASSES.index(universe.classes[at]), at))
    names = [universe.ids[at] for at in order]
    closes = prices.values[:, [column[name] for name in names]]
    groups = np.array([universe.classes[at] for at in order])
    index = {
        MARKET_CLASS_NAMES[key]: one for key, one in class_index(closes, [listing[name] for name in names]).items()
    }
    shown = np.unique(np.linspace(0, prices.days.size - 1, _POINTS).round().astype(int))
    tradable = Counter(MARKET_CLASS_NAMES[one.asset_class] for one in history.listings if not is_index(one))
    training = prices.days <= TRAINING_END
    rows = np.flatnonzero(training if training.sum() > _OVERLAP else np.ones_like(training))
    correlation = pairwise_correlation(simple_returns(closes[rows]), min_overlap=_OVERLAP).values
    # the first close of each is 100
    first = closes[np.argmax(np.isfinite(closes), axis=0), np.arange(closes.shape[1])]
    of = {name: groups == name for name in CLASSES if (groups == name).any()}
    pairs = np.where(np.eye(groups.size, dtype=bool), np.nan, correlation)
    between = np.full((len(of), len(of)), np.nan)
    for (at, one), (to, other) in product(enumerate(of.values()), repeat=2):
        some = pairs[np.ix_(one, other)]
        if np.isfinite(some).any():
            between[at, to] = float(np.nanmean(some))
    classes = [
        ClassView(
            name, int(mine.sum()), tradable[name], tuple(np.array(names)[mine].tolist()),
            (100.0 * closes / first)[:, mine][shown], index[name][shown],
        )
        for name, mine in of.items()
    ]  # fmt: skip
    shots = []
    for window in locked.windows if snapshots else ():  # the date on which its instruments were most volatile
        day = max(
            window.decisions, key=lambda decision: float(np.mean([x.volatility for x in window.known(decision).lines]))
        )
        seen = window.known(day)
        means = seen.between.copy()
        for at, line in enumerate(seen.lines_by_class):
            means[at, at] = np.nan if line.intra is None else line.intra
        shots.append(
            SnapshotView(
                window.window, str(day), tuple((name, heads, rows) for name, (heads, rows) in layers(seen).items()),
                tuple(one.asset_class for one in seen.lines_by_class), means,
            )
        )  # fmt: skip
    return MarketView(
        tuple(map(str, prices.days[shown])), tuple(classes), correlation, between,
        over=(str(prices.days[rows[0]]), str(prices.days[rows[-1]])),
        snapshots=tuple(shots),
    )  # fmt: skip


def bench_run(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode], baselines: Sequence[BaselineResult],
    answers: Answers, measurements: Sequence[Measurement],
    decided: BenchVerdicts, notes: Iterable[str], gone: Collection[str],
) -> BenchRun:  # fmt: skip
    """What the pages of a run show; ``gone`` are the models that lack too many replies of the pipeline."""
    plan, market = locked.plan, locked.market
    days = {row: market.known(row) for window in locked.windows for row in window.rows.tolist()} if episodes else {}
    known = {one.day: one for one in days.values()}
    where = "the embedded synthetic market" if market.history.source == "synthetic" else market.history.source
    dates = [date for episode in episodes for date in episode.result.dates]
    turned = ceps_items(episodes, unscored_models(locked, episodes) if episodes else {}, other=True)
    others = level_measurements("bench.level", turned, {"board": boards_of(locked)[0]}, plan.level)
    splits: Mapping[tuple[Template, Split], int] = {}
    if answers:
        file = plan.questions.file
        whole = () if file is None else ((one.template, one.split) for one in read_questions(Path(file)))
        splits = shared_out(COUNTS) if file is None else Counter(whole)
    return BenchRun(
        plan,
        locked.plan_hash,
        locked.locked_at,
        f"{where}, snapshot {market.history.snapshot}",
        market.universe.size,
        tuple(map(profile_named, plan.pipeline.profiles)),
        tuple(one.spec for one in locked.windows),
        decisions={one.window: len(one.decisions) for one in locked.windows},
        leaderboards=decided.leaderboards,
        verdicts=decided.verdicts,
        measurements=tuple(measurements),
        results=[one.result for one in episodes if one.agent.name not in gone],
        baselines=baselines,
        episodes=tuple(episode_trace(episode, known, plan) for episode in episodes),
        replies=dict(Counter(state.state for date in dates for state in date.answers.states.values())),
        answers=answers,
        notes=tuple(notes),
        panel="../rationales/report/index.html" if (folder.rationales.report / "index.html").is_file() else None,
        data=market_view(locked, snapshots=bool(episodes)),
        pool=locked.pool if answers else (),
        splits=splits,
        others={other.labels["model"]: other for other in others},
    )
