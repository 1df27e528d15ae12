"""`assaymark bench`: models through the questions and the pipeline, then measurements, verdicts and pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from assaymark.benchmark.episode import BaselineResult, EpisodeState, Heard, run_baselines
from assaymark.benchmark.market import TRAINING_END, Known, is_index
from assaymark.benchmark.plan import BenchPlan
from assaymark.benchmark.profiles import CLASS_NAMES, profile_named
from assaymark.benchmark.questions import published
from assaymark.benchmark.questions.payloads import Split, Template
from assaymark.benchmark.reference import PREFIX, reference_benchmark_models
from assaymark.benchmark.replies import layers
from assaymark.benchmark.scores import (
    STAGES,
    DateResult,
    Stage,
    StageState,
    inter_class_score,
    intra_class_score,
    weight_accuracy,
)
from assaymark.claims import boards
from assaymark.claims.boards import MISSING, PIPELINE, BenchVerdicts, Board, missing_replies
from assaymark.claims.messages import english, listing, stand_ins
from assaymark.engine import CallSpec, Model
from assaymark.engine.providers.http_agent import is_outside
from assaymark.errors import InputError, Problem
from assaymark.judging import find_rubric, plan_texts
from assaymark.market import CLASS_NAMES as MARKET_CLASS_NAMES
from assaymark.market import class_index, open_history, pairwise_correlation, simple_returns, synthetic_history
from assaymark.metrology.measure_orders import level_measurements
from assaymark.notebook import Note, Part, Result
from assaymark.plan import toml_value
from assaymark.portfolio.backtest import CLASSES
from assaymark.portfolio.optimisers import Floats
from assaymark.records import Measurement, Score, write_atomic
from assaymark.report import portbench as pages
from assaymark.report.portbench.book import ALL, QUESTIONS
from assaymark.report.records.judgments import Calls
from assaymark.report.translation import in_language
from assaymark.workflow.ask import Canaries, calls_of, check_call, say_raised
from assaymark.workflow.lock import bench_text, unknown_model
from assaymark.workflow.progress import note
from assaymark.workflow.run_folder import RunFolder, replace_files, write_json, write_sums
from assaymark.workflow.tables import MEASUREMENTS, SCORES, VERDICTS, Store
from assaymark.workflow.tracks import benchmark_measure as measure
from assaymark.workflow.tracks import benchmark_plan as plans
from assaymark.workflow.tracks.benchmark_plan import Answers, Episode, LockedBench
from assaymark.workflow.verdict_file import Panel, decided_file, tally_of


def write_set(folder: Path, market: str | None, seed: int) -> tuple[int, str]:
    """Write a set, its card and its manifest: how many questions, and the hash of the file that they are in."""
    note("making questions", 0, 1)
    history = synthetic_history(seed) if market is None else open_history(Path(market))
    made = published.generate_questions(history, seed)
    folder.mkdir(parents=True, exist_ok=True)
    digest = published.write_questions(folder / "questions.jsonl", made.questions)
    write_atomic(folder / "card.md", published.dataset_card(made))
    write_json(folder / "manifest.json", published.manifest(made))
    note("making questions", 1, 1)
    return len(made.questions), digest


ALIASES: Final[Mapping[str, str]] = {"solver": "literal", "guesser": "prior", "equal-weight": "stubborn"}
"""Other words for reference models: what they are known as elsewhere."""

TAKES_NONE: Final = ("openai/", "anthropic/")
"""Providers whose newest models take no temperature: none is sent, unless one is asked for."""

_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_TABLES: Final = {
    "": {"convention": "convention"},
    "market": {"market": "source", "seed": "seed", "instruments": "instruments"},
    "pipeline": {"profile": "profiles", "window": "windows", "pace": "frequency"},
    "questions": {"per_template": "per_template", "split": "split", "questions": "file"},
}
"""What a command line asks for, by the tables and fields of a plan."""


def plan_text(path: Path | None, wanted: Mapping[str, Any]) -> tuple[str, str]:
    """The text of a plan and where it is from: the file, or one written from what a command line asks for."""
    if path is not None:
        return bench_text(path), str(path)
    models = [resolved(one) for one in wanted.get("model") or ()] or list(reference_benchmark_models())
    judges = list(wanted.get("judge") or ())
    if wrong := [one for one in (*models, *judges) if not re.fullmatch(r"[a-z0-9_.-]+/.+", one)]:
        raise InputError("--model", [Problem(one, "a model is named provider/name") for one in wrong])
    lines = ['version = "2"']
    for table, names in _TABLES.items():
        values = {
            field: tuple(one) if isinstance(one := wanted.get(name), list) else one for name, field in names.items()
        }
        given = {field: str(one) if isinstance(one, Path) else one for field, one in values.items() if one != ()}
        rows = _given(given)
        lines += ["", f"[{table}]", *rows] if table and rows else rows
    of_model = {"max_tokens": "max_tokens", "base_url": "base_url", "api_key_env": "key_env"}
    args = {field: wanted[name] for field, name in of_model.items() if wanted.get(name) is not None}
    for kind, chosen in (("models", models), ("judges", judges)):
        seen = Counter[str]()
        for model in chosen:
            called = model_name(model)
            seen[called] += 1
            name = called if seen[called] == 1 else f"{called}-{seen[called]}"
            # for whom it counts: its provider, and for one name on a server of one's own that name
            provider, _, rest = model.partition("/")
            own = provider in ("openai-chat", "http", "python", "inspect", "reference")
            family, more = model_name(rest) if own else provider, dict[str, object]()
            if kind == "models" and provider == "reference":
                family = name.lower()
            elif kind == "models" and not is_outside(model):
                temperature = wanted.get("temperature")
                if temperature is None:  # the protocol's 0, unless the provider's newest models take none
                    temperature = None if model.startswith(TAKES_NONE) else 0.0
                elif temperature < 0:
                    temperature = None
                more = {"temperature": temperature, "args": args or None}
            lines += ["", f"[[{kind}]]", *_given({"name": name, "model": model, "family": family, **more})]
    return "\n".join(lines) + "\n", "the command line"


def default_folder(wanted: Mapping[str, Any]) -> Path:
    """Where a run goes that names no folder: one a model, so that questions and pipeline of one model come together."""
    models = [*(wanted.get("model") or ())]
    return Path(f"assaymark-bench-{model_name(resolved(models[0])).lower()}" if len(models) == 1 else "assaymark-bench")


def resolved(model: str) -> str:
    """A model by its full name: ``reference/momentum`` is the benchmark's own, not the agent of that name."""
    provider, _, word = model.partition("/")
    own = PREFIX + ALIASES.get(word, word)
    return own if provider == "reference" and own in reference_benchmark_models() else model


def model_name(model: str) -> str:
    """What a model is called on the pages: the last part of its name; a built-in one is written as a name."""
    if model.startswith(PREFIX):
        return model.removeprefix(PREFIX).capitalize()
    return _NAME.sub("-", model.rpartition("/")[2]).strip("-") or "model"


def _given(values: Mapping[str, object]) -> list[str]:
    return [f"{name} = {toml_value(value)}" for name, value in values.items() if value is not None]


@dataclass(frozen=True, slots=True, repr=False)
class Benched(Result):
    """Where the page of a benchmark lies, what to say of it in a terminal, and the run that a notebook shows."""

    page: Path
    lines: tuple[str, ...]
    run: pages.BenchRun

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import bench_parts

        yield from bench_parts(self.run)
        yield Note(f"page: {self.page}")


def bench_pipeline(folder: RunFolder, text: str, source: str, models: Mapping[str, Model], *, now: datetime) -> Benched:
    """Lock a plan, take every episode to its end, and write what came of it. Run again, it goes on where it was."""

    def opening(bench: LockedBench) -> Iterator[CallSpec]:  # the first call to each model, window by window
        plan, profile = bench.plan, profile_named(bench.plan.pipeline.profiles[0])
        for window, agent in product(bench.windows, plan.models):
            if (call := EpisodeState(agent, profile, window, plans.rules_of(plan)).next_call()) is not None:
                yield call

    locked = _lock(folder, text, source, models, opening, now)
    episodes = plans.episodes_of(folder, locked, models)
    say_raised(models)
    if locked.plan.judges:
        measure.grade_rationales(folder, locked, episodes or (), models, now)
    return _publish(folder, locked, episodes, plans.answers_of(folder, locked))


def bench_qa(folder: RunFolder, text: str, source: str, models: Mapping[str, Model], *, now: datetime) -> Benched:
    """Lock a plan, have every question answered, and write what came of it; see `bench_pipeline`."""
    first = lambda bench: [call for *_, call in plans.planned_questions(bench)]  # noqa: E731
    locked = _lock(folder, text, source, models, first, now)
    answers = plans.answers_of(folder, locked, models)
    say_raised(models)
    return _publish(folder, locked, plans.episodes_of(folder, locked), answers)


def bench_report(folder: RunFolder, calls: Calls = "all", language: str = "") -> Benched:
    """Write the pages of a benchmark again, from the replies in its ledger; ``calls`` as for the report of a study."""
    locked = plans.open_bench(folder)
    found = plans.episodes_of(folder, locked), plans.answers_of(folder, locked)
    return _publish(folder, locked, *found, calls, language)


def bench_shown(folder: RunFolder) -> pages.BenchRun:
    """What the pages of a benchmark show, from the replies in its ledger; its tables and verdicts are written."""
    locked = plans.open_bench(folder)
    found = plans.episodes_of(folder, locked), plans.answers_of(folder, locked)
    return _decided(folder, locked, *found)[0]


def _lock(
    folder: RunFolder, text: str, source: str, models: Mapping[str, Model],
    calls: Callable[[LockedBench], Iterable[CallSpec]], now: datetime,
) -> LockedBench:  # fmt: skip
    """Lock a plan after one call to each of its models, the first of ``calls``, and one to each judge."""

    def ask(bench: LockedBench) -> Canaries:
        plan, found, known = bench.plan, Canaries(models, bench.plan.engine), reference_benchmark_models()
        wrong: dict[str, None] = {}
        for model in (*(one.model for one in plan.models), *(judge.model for judge in plan.judges)):
            problem = unknown_model(model, models)
            if model.startswith("reference/") and model not in known and model in {one.model for one in plan.models}:
                # it is built in, and answers nothing of a benchmark, as agents and judges of studies do not
                meant = f"did you mean {resolved(model)}? " if resolved(model) in known else ""
                there = f"{meant}Built-in models that do: {', '.join(sorted(known))}"
                problem = f"{model} answers nothing of a benchmark; {there}"
            if problem:
                wrong[problem] = None
        if wrong:
            raise InputError(source, wrong)
        if not all(one.model.startswith("reference/") for one in plan.models) or not all(
            judge.model.startswith("reference/") for judge in plan.judges
        ):
            rubric = find_rubric(plan.rubric)
            schema = plan_texts(rubric)[f"schema {rubric.version}"]
            found.ask([*calls(bench), *(check_call(judge, schema) for judge in plan.judges)])
            found.require()
        return found

    return plans.lock_bench(folder, text, source, now, first=ask)


def _publish(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode] | None, answers: Answers | None,
    calls: Calls = "all", language: str = "",
) -> Benched:  # fmt: skip
    """Write tables, verdicts and pages; an `Episode` or an answer that was never asked for is None."""
    run, decided = _decided(folder, locked, episodes, answers)
    read = None if calls == "none" else calls_of(folder)
    replace_files(folder.report, in_language(pages.each_benchmark_page(run, read=read), language))
    overall = {one.board.family: one for one in reversed(decided.leaderboards)}.values()
    shown = [one for one in decided.leaderboards if len(one.models) == 1 or one in overall]
    lines = []
    # possible ranks and intervals of scores, tier by tier: a point would rank models that cannot be ranked
    for board in shown:
        models = len(board.models)
        lines.append(f"{board.board.words[:1].upper()}{board.board.words[1:]}, {locked.plan.level:.0%} intervals:")
        for name in (name for tier in board.tiers for name in tier):
            item, (first, last) = board.levels[name], board.ranks[name]
            ends = "no interval" if item.low is None or item.high is None else f"{item.low:.2f} to {item.high:.2f}"
            rank = f"{first if first == last else f'{first}-{last}'} of {models}"
            lines.append(f"  {name:<20} {f'{item.value:.2f} ({ends})' if models == 1 else f'{ends}   rank {rank}'}")
        lines += [f"  {name:<20} no score" for name in board.unscored]
    narrow = [name for name, why in shown[0].unscored.items() if why.endswith(measure.NO_CHOICE)] if shown else []
    lines += [_no_score(narrow)] if narrow else []
    lines += [missing_replies(item) for item in run.measurements if item.name == MISSING]
    lines.append("claims: " + ", ".join(f"{count} {level}" for level, count in tally_of(decided.verdicts).items()))
    claimed = [one for one in decided.verdicts if one.publication_level != "no-claim"]
    said = [one for one in claimed if not one.claim.id.startswith(("above", "within"))]  # of pairs
    for one in said[:12]:
        built_in = stand_ins(english(), {}, run.built_in, one.claim.subjects, made_by="models")
        words = [f"{one.publication_level}: {one.claim.statement}", built_in, one.condition or ""]
        lines.append(" ".join(filter(None, words)))
    if len(said) > 12:
        lines.append(f"and {len(said) - 12} more on the page")
    if episodes is None:
        lines.append("the pipeline was not run yet: assaymark bench pipeline, with the same plan and --out")
    if answers is None:
        lines.append("the questions were not asked yet: assaymark bench qa, with the same plan and --out")
    return Benched(folder.report / "index.html", tuple(lines), run)


def _decided(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode] | None, answers: Answers | None
) -> tuple[pages.BenchRun, BenchVerdicts]:
    plan, chosen = locked.plan, locked.plan.pipeline
    baselines: tuple[BaselineResult, ...] = ()
    measurements: list[Measurement] = []
    scores: list[Score] = []
    found: list[Board] = []
    if episodes is not None:
        baselines = run_baselines(locked.windows, chosen.cash_baselines, chosen.cost_bps, plan.convention)
        measurements += measure.pipeline_measurements(locked, episodes, baselines)
        measurements += measure.ceiling_measurements(locked)
        # S1 to S5, CEPS and PAS of every date, by the plan's convention and by the other one
        for result, convention in (
            pair for one in episodes for pair in ((one.result, plan.convention), (one.other, locked.other))
        ):
            labels = {"profile": result.profile, "window": result.window}
            for day in result.dates:
                states = {str(stage): state.state for stage, state in day.answers.states.items()}
                values = {**{str(stage): day.scores[stage] for stage in STAGES}, "CEPS": day.ceps, "PAS": day.pas}
                about, cluster = f"{result.model}/{result.profile}", f"{result.window}/{day.day}"
                scores += [
                    Score(
                        about=f"{about}/{cluster}", agent=result.model, cluster=cluster, name=name, value=float(value),
                        convention=convention, state=states.get(name, "ok"), labels=labels,
                    )
                    for name, value in values.items()
                ]  # fmt: skip
        windows = len(locked.windows)
        where = "in this window" if windows == 1 else f"in these {windows} windows"
        for name in measure.boards_of(locked):
            of = "over all profiles" if name == ALL else f"under the {name} profile"
            found.append(Board(name, f"CEPS {of} {where}", PIPELINE))
    if answers is not None:
        measurements += measure.question_measurements(locked, answers)
        scores += measure.question_scores(locked, answers)
        found.append(Board(QUESTIONS, "the questions with full information", QUESTIONS))
    if episodes is not None and answers is not None:
        measurements += measure.rank_measurements(locked, episodes, answers)
    rules = boards.BenchRules(plan.inference, plan.agreed, locked.preregistered, locked.families, plan.convention)
    decided = boards.decide_benchmark(measurements, found, rules, locked.plan_hash)
    store, basis = Store(folder), {"plan": locked.plan_hash}
    store.write(SCORES, scores, basis)
    store.write(MEASUREMENTS, measurements, basis)
    store.write(VERDICTS, decided.verdicts, basis)
    lacking, missing = [item for item in measurements if item.name == MISSING], dict[str, float]()
    for item in lacking:
        if item.value:
            missing[item.labels["model"]] = max(missing.get(item.labels["model"], 0.0), item.value)
    file = decided_file(
        decided.verdicts, measurements, [model.name for model in plan.models], study=plan.name, title=plan.title,
        plan_hash=locked.plan_hash, rubric="none", made_by=plan.models,
        panel=Panel(judges={}, reference=any(one.model.startswith("reference/") for one in plan.models)),
        amendments=locked.amendments, preregistered=locked.preregistered, missing=missing,
        unranked={leaderboard.board.name: frozenset(leaderboard.unscored) for leaderboard in decided.leaderboards},
    )  # fmt: skip
    write_json(folder.verdicts, file)
    write_sums(folder)
    # what a reader has to know of how models were asked and scored; those left out lack replies of the pipeline
    pipeline = [item for item in lacking if item.labels["part"] == PIPELINE]
    gone, notes = (
        {item.labels["model"] for item in pipeline if item.detail["left_out"]},
        [*map(missing_replies, lacking)],
    )
    if narrow := sorted(measure.without_choice(episodes or (), plan.convention).keys() - gone):
        notes.append(_no_score(narrow))
    asked = [one for one in plan.models if not (one.model.startswith("reference/") or is_outside(one.model))]
    if free := ", ".join(one.name for one in asked if one.temperature is None):
        notes.append(f"No temperature was sent to {free}: the provider's own holds, where the protocol says 0.")
    run = _bench_run(folder, locked, episodes or (), baselines, answers or {}, measurements, decided, notes, gone)
    return run, decided


def _no_score(models: Sequence[str]) -> str:
    verb, no = ("names", "this model gets") if len(models) == 1 else ("name", "these models get")
    return (
        f"No score: on most dates {listing(models)} {verb} at most one instrument to buy. By {boards.FORMULAS['paper']}"
        f" S3 to S5 then have one possible answer and measure nothing, so {no} no CEPS."
    )


# --- What the pages of a benchmark show: its market and snapshots, traces of episodes, and answered questions ---------

ROWS: Final = 8
_POINTS: Final = 133
"""Days of a history that are drawn: one a month over eleven years."""

_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
_OVERLAP: Final = 60
"""Common days below which a correlation over the training years is left out."""

Shown = tuple[tuple[str, ...], Sequence[tuple[str, ...]], list[str]]
"""What a page shows of a stage: heads, rows, and the arithmetic in words."""


def _trace(one: DateResult, profile: str, known: Known, plan: BenchPlan) -> dict[Stage, Shown]:
    """The stages of one date: the largest of what was said and true, and how each score came about."""
    part, tickers, scores, alpha = known.part, known.tickers, one.scores, plan.pipeline.alpha
    said, true = one.answers.views[part], one.truths.views[part]
    error = np.abs(said - true)
    mean, over = float(error.mean()), f"is the mean error over {part.size} instruments"
    views = [(tickers[at], f"{said[at]:+.2f}", f"{true[at]:+.2f}", f"{error[at]:.2f}") for at in _largest(error)]
    pairs = [(one.answers.signals[at], one.truths.signals[at]) for at in part.tolist()]
    counts, words = Counter(pairs), sorted({word for pair in pairs for word in pair})
    right = sum(given == truth for given, truth in pairs)
    held, best = one.executed[part], one.truths.weights[part]
    largest = _largest(np.maximum(held, best))
    accuracy = weight_accuracy(held, best, convention=plan.convention)
    intra = intra_class_score(held, known.scored_by, known.classes)
    inter = inter_class_score(held, known.scored_by, known.classes, convention=plan.convention)
    members = np.array(known.classes)
    shares = {name: float(held[members == name].sum()) for name in CLASS_NAMES}
    by_class = [f"{name.replace('_', ' ')} {100 * share:.1f} %" for name, share in shares.items() if share > 0]
    own, oracle = one.turnover, one.truths.turnover
    traded = f"1 − |{own:.3f} − {oracle:.3f}| / {max(own, oracle):.3f} = {scores['S4']:.3f}"
    risk, truth, limits = one.risk, one.truths.risk, profile_named(profile)
    risks = [
        ("value at risk, 95 %", _percent(risk.var), _percent(truth.var)),
        ("deepest fall of the lookback", _percent(risk.drawdown), _percent(truth.drawdown)),
        ("largest drift of a weight", _percent(risk.drift), _percent(truth.drift)),
        ("alarm", "yes" if risk.rebalance else "no", "yes" if truth.rebalance else "no"),
    ]
    same = int(risk.rebalance == truth.rebalance)
    return {
        "S1": (
            ("instrument", "said", "true", "error"), views,
            [f"1 − {mean:.3f} / 2 = {scores['S1']:.3f}; {mean:.3f} {over}"],
        ),
        "S2": (
            ("said", *(f"true {word}" for word in words)),
            [(given, *(str(counts[given, truth]) for truth in words)) for given in words],
            [f"{right} of {len(pairs)} right = {scores['S2']:.3f}"],
        ),
        "S3": (
            ("instrument", "held", "oracle"),
            [(tickers[at], f"{100 * held[at]:.1f} %", f"{100 * best[at]:.1f} %") for at in largest],
            [
                f"accuracy {accuracy:.3f}, within classes {intra:.3f}, between classes {inter:.3f}",
                f"{alpha:g} × {accuracy:.3f} + {1 - alpha:g} × ({intra:.3f} + {inter:.3f}) / 2 = {scores['S3']:.3f}",
                f"the oracle's solver: {one.truths.weights_status}",
                f"held by class: {', '.join(by_class)}",
            ],
        ),
        "S4": (
            (), [],
            [
                f"traded {own:.3f} of the portfolio, the oracle {oracle:.3f}",
                traded if max(own, oracle) > 0 else "neither traded: 1",
            ],
        ),
        "S5": (
            ("measure", "held", "oracle"), risks,
            [
                f"limits: drift {100 * plan.pipeline.drift_limit:g} %, value at risk {_percent(limits.var_limit)}",
                f"0.5 × {same} (the same alarm) + 0.5 × (1 − mean of two relative errors) = {scores['S5']:.3f}",
                f"alignment with the {profile} profile: {one.pas:.3f}",
            ],
        ),
    }  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %".replace("-", "−")


def _largest(values: Floats) -> list[int]:
    """Places of the largest values, largest first; equal ones in order."""
    return [int(at) for at in np.argsort(-values, kind="stable")[:ROWS]]


def _market_view(locked: LockedBench, snapshots: bool) -> pages.MarketView:
    """The market of a run, with a snapshot from each window where ``snapshots`` are wanted."""
    history, universe = locked.market.history, locked.market.universe
    prices = history.as_of(_END).prices(max(history.days.size, 1))
    column = {name: at for at, name in enumerate(prices.ids)}
    listing = {one.id: one for one in history.listings}
    order = sorted(range(universe.size), key=lambda at: (CLASSES.index(universe.classes[at]), at))
    names = [universe.ids[at] for at in order]
    closes = prices.values[:, [column[name] for name in names]]
    groups = np.array([universe.classes[at] for at in order])
    indexes = class_index(closes, [listing[name] for name in names])
    index = {MARKET_CLASS_NAMES[key]: one for key, one in indexes.items()}
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
    classes, shots = [], []
    for name, mine in of.items():
        tickers, lines = tuple(np.array(names)[mine].tolist()), (100.0 * closes / first)[:, mine][shown]
        classes.append(pages.ClassView(name, int(mine.sum()), tradable[name], tickers, lines, index[name][shown]))
    for window in locked.windows if snapshots else ():  # the date on which its instruments were most volatile
        day = max(window.decisions, key=lambda day: float(np.mean([one.volatility for one in window.known(day).lines])))
        seen = window.known(day)
        means = seen.between.copy()
        for at, line in enumerate(seen.lines_by_class):
            means[at, at] = np.nan if line.intra is None else line.intra
        tables = tuple((name, heads, cells) for name, (heads, cells) in layers(seen).items())
        kinds = tuple(one.asset_class for one in seen.lines_by_class)
        shots.append(pages.SnapshotView(window.window, str(day), tables, kinds, means))
    over = str(prices.days[rows[0]]), str(prices.days[rows[-1]])
    days = tuple(map(str, prices.days[shown]))
    return pages.MarketView(days, tuple(classes), correlation, between, over, tuple(shots))


def _bench_run(
    folder: RunFolder, locked: LockedBench, episodes: Sequence[Episode], baselines: Sequence[BaselineResult],
    answers: Answers, measurements: Sequence[Measurement], decided: BenchVerdicts, notes: Iterable[str],
    gone: Collection[str],
) -> pages.BenchRun:  # fmt: skip
    """What the pages of a run show; ``gone`` are the models that lack too many replies of the pipeline."""
    plan, market = locked.plan, locked.market
    days = {row: market.known(row) for window in locked.windows for row in window.rows.tolist()} if episodes else {}
    known: dict[date, Known] = {one.day: one for one in days.values()}
    traces = []
    for episode in episodes:
        result, dates = episode.result, []
        for day in result.dates:
            shown, stages = _trace(day, result.profile, known[day.day], plan), []
            for stage in STAGES:
                state = day.answers.states.get(stage, StageState("ok"))
                (heads, rows, lines), heard = shown[stage], episode.heard.get((day.day, stage), Heard())
                given = heads, tuple(rows), tuple(lines)
                stages.append(pages.StageTrace(stage, day.scores[stage], state, heard, *given))
            dates.append(pages.DateTrace(str(day.day), day.ceps, day.pas, tuple(stages)))
        traces.append(pages.EpisodeTrace(result.model, result.profile, result.window, tuple(dates)))
    where = "the embedded synthetic market" if market.history.source == "synthetic" else market.history.source
    read = [state.state for one in episodes for day in one.result.dates for state in day.answers.states.values()]
    unscored = measure.unscored_models(locked, episodes) if episodes else {}
    turned = measure.ceps_items(episodes, unscored, other=True)
    others = level_measurements("bench.level", turned, {"board": measure.boards_of(locked)[0]}, plan.level)
    splits: Mapping[tuple[Template, Split], int] = {}
    if answers:
        file = plan.questions.file
        whole = () if file is None else ((one.template, one.split) for one in published.read_questions(Path(file)))
        splits = published.shared_out(published.COUNTS) if file is None else Counter(whole)
    return pages.BenchRun(
        plan, locked.plan_hash, locked.locked_at, f"{where}, snapshot {market.history.snapshot}", market.universe.size,
        tuple(map(profile_named, plan.pipeline.profiles)), tuple(one.spec for one in locked.windows),
        {one.window: len(one.decisions) for one in locked.windows}, decided.leaderboards, decided.verdicts,
        tuple(measurements), [one.result for one in episodes if one.agent.name not in gone], baselines, tuple(traces),
        dict(Counter(read)), answers, tuple(notes),
        "../rationales/report/index.html" if (folder.rationales.report / "index.html").is_file() else None,
        _market_view(locked, bool(episodes)), locked.pool if answers else (), splits,
        {other.labels["model"]: other for other in others},
    )  # fmt: skip
