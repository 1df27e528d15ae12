"""Invented runs of the benchmark for the pages: eight models in three groups, one, two, hostile ones, and halves."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache, partial
from types import SimpleNamespace

import numpy as np

from assaymark import benchmark as bench
from assaymark.benchmark import (
    AGGRESSIVE, BALANCED, CONSERVATIVE, SEED_WINDOWS, BaselineResult, BenchPlan, EpisodeResult, CallExcerpt, Window,
    questions,
)  # fmt: skip
from assaymark.claims import Board, decide_benchmark
from assaymark.market import CLASS_NAMES, History, Listing, MacroReading, News
from assaymark.metrology import OrderPlan, ScoredItems, board_measurements, level_measurements, rank_agreement
from assaymark.plan import OrderRules
from assaymark.records import Measurement
from assaymark.report import portbench

PLAN = "a41f7c029b6e11d45a83f0c7e0d39c2e" * 2
EIGHT = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "gorse", "hazel")
SKILL = {"fir": 0.0, "dogwood": 0.09, "elm": 0.09, "gorse": 0.09}
PROFILES = (CONSERVATIVE, BALANCED, AGGRESSIVE)
WINDOWS = SEED_WINDOWS
DATES = dict(zip((one.name for one in WINDOWS), (12, 7, 4, 8), strict=True))
RULES = OrderPlan(OrderRules(alpha=0.05 / 3), span=1.0, unit="", cycle="item")
BASELINES = ("EqW", "60/40", "RP", "CRP", "MinVar")
BASE = {"S1": 0.74, "S2": 0.40, "S3": 0.71, "S4": 0.10, "S5": 0.40, "CEPS": 0.38, "PAS": 0.8}
HOSTILE = '</pre><script>document.title="pwned"</script>{{ 7*7 }}{% raw %}<img src=x onerror=alert(1)>\x1b[31m\u202e'


def days(window: Window) -> np.ndarray:
    every = np.arange(window.first, window.last, dtype="datetime64[D]")
    return every[np.is_busday(every)]


def items(names: Sequence[str], rng: np.random.Generator, base: float, noise: float = 0.03) -> ScoredItems:
    """Scores of the models on 31 dates that share what a date does to all of them."""
    clusters = [f"{w.name}-{at}" for w in WINDOWS for at in range(DATES[w.name])]
    parts = [w.name for w in WINDOWS for _ in range(DATES[w.name])]
    shared = rng.normal(0, 0.06, len(clusters))
    skill = np.array([SKILL.get(name, 0.15) for name in names])
    values = np.clip(base + skill[:, None] + shared + rng.normal(0, noise, (len(names), len(clusters))), 0, 1)
    return ScoredItems(tuple(names), values, tuple(clusters), tuple(parts))


def measured(name: str, labels: dict[str, str], value: float | None, half: float | None = None, **more) -> Measurement:
    ends = {} if half is None or value is None else {"low": value - half, "high": value + half, "level": 0.95}
    given = {"n": 12, "n_of": "dates", "method": "cluster t over dates", **ends, **more}
    return Measurement(name=name, labels=labels, value=value, **given)


def path(rng: np.random.Generator, window: Window, depth: float) -> np.ndarray:
    """A history with about this deepest fall."""
    count = len(days(window))
    steps = rng.normal(0, 0.006, count)
    if window.kind == "stress":
        steps[count // 3 : 2 * count // 3] -= depth / (count / 3)
    return np.concatenate([[1.0], np.exp(np.cumsum(steps[1:]))])


def fall(nav: np.ndarray) -> float:
    return float(-(nav / np.maximum.accumulate(nav) - 1).min())


def pipeline(
    names: Sequence[str], rng: np.random.Generator
) -> tuple[list[Measurement], list[EpisodeResult], list[BaselineResult]]:
    found: list[Measurement] = []
    results, baselines = [], []
    boards, others = {}, {}
    for board in ("all", *(p.name for p in PROFILES)):
        boards[board] = items(names, rng, BASE["CEPS"] - 0.05)
        moved = boards[board].values + rng.normal(0, 0.01, boards[board].values.shape)
        others[board] = replace(boards[board], values=moved)
    found += board_measurements(boards, RULES, others=others)
    for board in boards:
        for stage, base in BASE.items():
            found.append(measured("bench.ceiling", {"profile": board, "stage": stage}, 0.72 if stage == "S3" else 1.0))
            for windows in ("all", "normal", "stress"):
                labels = {"profile": board, "stage": stage, "windows": windows}
                found += level_measurements("bench.stage", items(names, rng, base - 0.1, 0.05), labels, level=0.95)
    wanted = [w.name for w in WINDOWS if w.kind == "stress"]
    for window in WINDOWS:
        equal, stress = path(rng, window, 0.14), window.kind == "stress"
        baselines.append(BaselineResult("EqW", window.name, np.zeros(0), np.zeros(0), (), equal))
        for at, name in enumerate(BASELINES):
            nav = equal if not at else path(rng, window, 0.05 + 0.03 * at)
            figures = {"sharpe": rng.normal(0.8, 0.3), "drawdown": fall(nav), **figures_of(rng)}
            for figure, value in figures.items():
                labels = {"baseline": name, "window": window.name, "figure": figure}
                found.append(measured("bench.baseline", labels, value, 1.2 if figure == "sharpe" else None))
        for profile in PROFILES:
            for name in names:
                labels = {"model": name, "profile": profile.name, "window": window.name}
                nav = path(rng, window, rng.uniform(0.03, 0.12))
                results.append(EpisodeResult(*labels.values(), (), days(window), nav))
                detail = {"tolerance": profile.drawdown_tolerance, "stress": stress, "wanted": wanted}
                found.append(measured("bench.drawdown", labels, fall(nav), n=len(nav), n_of="days", detail=detail))
                found.append(measured("bench.sharpe", labels, rng.normal(0.6, 0.4), rng.uniform(0.9, 1.4)))
                if not stress:
                    p = float(rng.uniform(0.2, 0.9))
                    found.append(measured("bench.sharpe.contrast", labels, rng.normal(0, 0.2), 0.9, detail={"p": p}))
                for figure, value in figures_of(rng).items():
                    found.append(measured("bench.performance", {**labels, "figure": figure}, value))
                if stress:
                    least = {"china-2015": 0.4, "covid-2020": 0.45, "crypto-2022": 0.5}[window.name]
                    value = float(rng.normal(0.47, 0.04))
                    safe = {"model": name, "profile": profile.name, "scenario": window.name}
                    more = {"threshold": least, "safe": value >= least}
                    found.append(measured("bench.risk_safe", safe, value, 0.04, detail=more))
    for name in names:
        found.append(measured("bench.adaptation", {"model": name}, float(rng.uniform(0.01, 0.1)), 0.01))
        for profile in PROFILES:
            labels = {"model": name, "profile": profile.name}
            found.append(measured("bench.stress", labels, float(rng.uniform(0, 0.8))))
    return found, results, baselines


def figures_of(rng: np.random.Generator) -> dict[str, float]:
    return {
        "total_return": float(rng.normal(0.05, 0.08)), "volatility": 0.12, "sortino": float(rng.normal(0.9, 0.4)),
        "calmar": float(rng.normal(0.7, 0.4)), "turnover": 0.33, "holdings": 41.0, "largest_weight": 0.08, "buys": 0.3,
    }  # fmt: skip


def asked(names: Sequence[str], rng: np.random.Generator) -> list[Measurement]:
    found: list[Measurement] = []
    found += board_measurements({"questions": items(names, rng, 0.5, 0.1)}, RULES)
    more = {"n": 50, "n_of": "questions", "method": "Wilson"}
    by = (
        ("template", [f"T{at}" for at in range(1, 8)]), ("kind", ["formula", "judgment"]),
        ("regime", ["bull", "bear", "sideways", "crisis"]),
    )  # fmt: skip
    for name in names:
        full = {"model": name, "condition": "full"}
        found.append(measured("bench.question", full, 0.61, 0.04, n=350, n_of="questions"))
        for key, values in by:
            for value in values:
                score = float(rng.uniform(0.2, 0.9))
                found.append(measured("bench.question", {**full, key: value}, score, 0.08, **more))
        for template in ("T4", "T5"):
            for condition, score in (("restricted", 0.4), ("full less restricted", -0.1)):
                labels = {"model": name, "condition": condition, "template": template}
                found.append(measured("bench.question", labels, score, 0.08, **more))
    return found


BOARDS = (
    Board("all", "CEPS over all profiles", "pipeline"),
    *(Board(p.name, f"CEPS under the {p.name} profile", "pipeline") for p in PROFILES),
    Board("questions", "the questions", "questions"),
)


SIZES = {"equity": 8, "bond": 4, "real_estate": 2}
CLASSES = tuple(group for group, size in SIZES.items() for _ in range(size))
STATES = {"S2": ("partial", "3 of 81 instruments were not named"), "S3": ("invalid", "weights sum to 1.4")}


def dated(day: date, **states: tuple[str, ...]) -> bench.DateResult:
    """A date with these states of its replies, by stage."""
    held, best = np.full(14, 1 / 14), np.eye(14)[0]
    views, wrong = 0.01 * np.arange(14), 0.02 * np.arange(14) - 0.3
    risks = bench.Risk(-0.01, -0.05, 0.03, False), bench.Risk(-0.02, -0.08, 0.06, True)
    read = {stage: bench.StageState(*states.get(stage, ("ok",))) for stage in bench.ASKED}
    said = bench.Answers(views, ("buy", "hold") * 7, held, read)
    true = bench.Truths(wrong, ("buy",) * 7 + ("sell",) * 7, best, "optimal", 0.4, risks[1])
    scores = dict.fromkeys(bench.STAGES, 0.512)
    return bench.DateResult(day, said, true, held, 0.3, risks[0], scores, 0.44, 0.81)


def with_dates(one: EpisodeResult, reply: str = '{"SPY": 0.5, "TLT": -0.3}', key: str = "k" * 16) -> EpisodeResult:
    """An episode with the first three dates of its window; of the second one replies could not be read."""
    window = next(window for window in WINDOWS if window.name == one.window)
    dates = tuple(dated(day, **(STATES if at == 1 else {})) for at, day in enumerate(decisions(window)[:3]))
    heard = CallExcerpt("As of 2024-03-01 the market looks like this.\nSPY 512.1\nTLT 93.0", reply, True, key)
    return replace(one, dates=dates, excerpts={(day.day, stage): heard for day in dates for stage in bench.ASKED})


def episodes(results: Sequence[EpisodeResult], *words: str) -> list[EpisodeResult]:
    """The same with dates under the first two profiles and in the first two windows."""
    some = [p.name for p in PROFILES[:2]], [w.name for w in WINDOWS[:2]]
    return [with_dates(one, *words) if one.profile in some[0] and one.window in some[1] else one for one in results]


def decisions(window: Window) -> list[date]:
    """The first of each month of a window."""
    months = np.datetime64(window.first, "M") + np.arange(DATES[window.name])
    return [date(month.year, month.month, 1) for month in months.tolist()]


def question(mark: str, at: int, regime: str = "bull", text: str = "What is the value at risk?") -> questions.Question:
    with_news = questions.Context(news=("Rates were left as they were.",)) if at % 5 else questions.Context()
    return questions.Question(
        mark, questions.TEMPLATES[at], "test", regime, date(2025, 3, 3), questions.Printed((), text), with_news,
        questions.Number(0.4),
    )  # fmt: skip


def answers(names: Sequence[str], reply: str = "Answer: 0.42") -> dict[str, list[questions.ScoredReply]]:
    states = [questions.QAScore(0.95, "ok" if at < 5 else "invalid") for at in range(7)]
    return {
        name: [questions.ScoredReply(question(f"T{at + 1}-q", at), "full", s, s, reply) for at, s in enumerate(states)]
        for name in names
    }


def tickers(name: str) -> tuple[str, ...]:
    return tuple(f"{name}{group[0].upper()}{at}" for group, size in SIZES.items() for at in range(size))


def market(name: str = "T") -> SimpleNamespace:
    """A market of 14 invented instruments in three classes, the last one not yet listed, and 14 that nobody holds."""
    rng, kinds = np.random.default_rng(8), {group: kind for kind, group in CLASS_NAMES.items()}
    days = np.arange("2015-01", "2025-12", dtype="datetime64[M]").astype("datetime64[D]")
    closes = 100 * np.cumprod(1 + rng.normal(0.005, 0.05, (days.size, 28)), axis=0)
    closes[:50, 13] = np.nan
    ids = (*tickers(name), *tickers(f"{name}-other-"))
    listings = tuple(
        Listing(one, kinds[group], "", one, date(2015, 1, 1)) for one, group in zip(ids, CLASSES * 2, strict=True)
    )
    known = np.repeat(86_400 * (days.astype(int) + 1)[:, None], 28, axis=1)
    history = History(listings, days, {"close": closes}, known, source="synthetic", snapshot="seed-0")
    return SimpleNamespace(history=history, universe=bench.Universe(ids[:14], CLASSES))


def known(name: str, text: str, day: date) -> bench.MarketState:
    """The market information of a window that was known on a day."""
    lines = tuple(
        bench.AssetLine(one, group, 101.2, -0.031, None, 0.2, -0.1, None, None, None, "bull")
        for one, group in zip(tickers(name), CLASSES, strict=True)
    )
    macro = (("Ten-year yield", MacroReading("Y10", "percent", "ok", 4.7)),)
    news = (News(datetime(2024, 3, 1, tzinfo=UTC), (), text, "wire"),)
    square, between = np.eye(14), np.array([[0.6, -0.35, 0.2], [-0.35, 0.8, -0.15], [0.2, -0.15, np.nan]])
    arrays = np.zeros(61), np.ones((61, 14)), np.zeros((60, 14)), square, square, square, between
    regimes = dict.fromkeys(SIZES, "bull")
    return bench.MarketState(60, day, np.arange(14), tickers(name), CLASSES, *arrays, lines, regimes, macro, news)


def windows(name: str = "T", text: str = "Rates were left as they were.") -> tuple[SimpleNamespace, ...]:
    """The windows of PortBench in that market."""
    return tuple(
        SimpleNamespace(spec=one, window=one.name, decisions=decisions(one), known=partial(known, name, text))
        for one in WINDOWS
    )


@cache
def pool() -> tuple[questions.Question, ...]:
    """The pool of questions: no template has one from a bear market."""
    regimes = {"bull": 52, "sideways": 182, "crisis": 26}
    every = [name for name, size in regimes.items() for _ in range(size)]
    return tuple(question(f"T{at + 1}-{n}", at, name, "x" * 900) for at in range(7) for n, name in enumerate(every))


def plan_of(names: Sequence[str], model: str = "maker/{0}", **more) -> BenchPlan:
    """A plan, whatever its names are: those of a file are checked when it is read."""
    models = BenchPlan(models=[{"name": "x", "model": "maker/x", "family": "maker"}]).models
    made = tuple(models[0].model_copy(update={"name": name, "model": model.replace("{0}", name)}) for name in names)
    plan = BenchPlan(name="portbench-2024", title="PortBench, 2024", models=models)
    return plan.model_copy(update={"models": made, **more})


def made(
    names: Sequence[str], *, seed: int = 3, stages: bool = True, static: bool = True, **more
) -> portbench.BenchRun:
    rng = np.random.default_rng(seed)
    measurements, results, baselines = pipeline(names, rng) if stages else ([], [], [])
    boards = [board for board in BOARDS if (static if board.name == "questions" else stages)]
    measurements += asked(names, rng) if static else []
    if stages and static and len(names) > 2:
        one, two = items(names, rng, 0.4), items(names, rng, 0.5, 0.1)
        labels = {"board": "all"}
        measurements.append(rank_agreement("bench.dissociation", one, two, labels, rng=rng, level=0.95, resamples=200))
    verdicts, leaderboards = decide_benchmark(measurements, boards, PLAN)
    sizes = zip(questions.SPLITS, (309, 431, 260), strict=True)
    splits = {(one, split): size for split, size in sizes for one in questions.TEMPLATES}
    run = portbench.BenchRun(
        plan_of(names), PLAN, "2026-11-20", market(), windows(), leaderboards, verdicts, measurements,
        episodes(results), baselines, answers(names) if static else {}, pool=pool() if static else (), splits=splits,
    )  # fmt: skip
    return replace(run, **more)


@cache
def eight() -> portbench.BenchRun:
    return made(EIGHT)


@cache
def twelve() -> portbench.BenchRun:
    return made((*EIGHT, "ivy", "juniper-of-the-northern-hills-2026-03", "kapok", "larch"))


@cache
def two() -> portbench.BenchRun:
    return made(("literal", "momentum"))


@cache
def single() -> portbench.BenchRun:
    return made(("momentum",), plan=plan_of(("momentum",), "reference/portbench-{0}"))


@cache
def questions_only() -> portbench.BenchRun:
    return made(("literal", "prior", "solver"), stages=False)


@cache
def pipeline_only() -> portbench.BenchRun:
    return made(("literal", "prior", "solver"), static=False)


@cache
def hostile() -> portbench.BenchRun:
    """Names, notes and replies of somebody who wants to run a script on the page."""
    names = ("a</title><script>document.title='pwned'</script>", 'b"onmouseover="x', "../../c")
    huge = HOSTILE + "A" * 3_000_000
    run, name = made(names), "=<img src=x onerror=alert(1)>"
    return replace(
        run, results=episodes(run.results, huge), answers=answers(names, huge), notes=(HOSTILE,),
        plan=plan_of(names, title=HOSTILE), market=market(name), windows=windows(name, HOSTILE),
    )  # fmt: skip


@cache
def empty() -> portbench.BenchRun:
    """A run in which nothing was measured."""
    return made(("only",), stages=False, static=False)


@cache
def rendered(name: str) -> dict[str, str]:
    """The pages of a run that many tests read, made once."""
    return dict(portbench.render_benchmark(globals()[name]()))
