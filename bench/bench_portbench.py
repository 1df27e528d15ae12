"""Calls and scoring of the benchmark: parts against their plain definitions, and whole runs of the command line.

Run ``just bench``. Ratios are of two ways through the same numbers in one session; seconds are of this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from assaymark.benchmark import (
    BALANCED,
    BenchMarket,
    EpisodeState,
    MarketWindow,
    baseline_weights,
    choose_universe,
    run_baselines,
    windows_of,
)
from assaymark.benchmark.questions import answer_text, generate_questions, score_answer
from assaymark.engine import Reply
from assaymark.market import History, synthetic_history
from assaymark.protocol import AgentSpec

Note = Callable[[str, str, str, str], None]
Floats = NDArray[np.float64]

AGENT = AgentSpec(name="stub", family="stub", model="stub/stub")
MODELS, PROFILES = 10, 3

RUN = """
import sys, time
from assaymark.cli import main
status = main(sys.argv[1:])
with open("/proc/self/status") as lines:  # not ru_maxrss: a process inherits that of whoever forked it
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
print(peak, time.process_time())
sys.exit(status)
"""


@cache
def history() -> History:
    return synthetic_history(0)


def windows(instruments: int) -> list[MarketWindow]:
    """The four windows at a monthly pace, with nothing kept from before."""
    market = BenchMarket(history(), choose_universe(history(), instruments))
    return [MarketWindow(market, one, "monthly") for one in windows_of(history())]


def best(function: Callable[[], object], repeats: int) -> float:
    """Seconds of one call, the best of so many."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        found.append(time.perf_counter() - started)
    return min(found)


# --- one episode ------------------------------------------------------------------------------------------------------


def stub(tickers: tuple[str, ...]) -> tuple[str, str, str]:
    """Replies to S1, S2 and S3 that cost nothing to make."""
    rows = ("0.3", "buy", f"{1 / len(tickers):.6f}")
    views, signals, weights = ("\n".join(f"{ticker}: {row}" for ticker in tickers) for row in rows)
    return views, signals, weights


def lead(episode: EpisodeState, said: tuple[str, str, str]) -> None:
    asked = 0
    while episode.next_call() is not None:
        episode.take(Reply(text=said[asked % 3], model="stub"))
        asked += 1
    assert asked == episode.calls


def test_a_year(note: Note) -> None:
    said = stub(choose_universe(history()).ids)

    def year() -> None:
        lead(EpisodeState(AGENT, BALANCED, windows(81)[0]), said)

    seconds = best(year, 5)
    kept = windows(81)[0]
    lead(EpisodeState(AGENT, BALANCED, kept), said)
    date = seconds / kept.rows.size
    again = best(lambda: lead(EpisodeState(AGENT, BALANCED, kept), said), 5) / kept.rows.size
    note("a year of twelve decisions, 81 instruments", "stub model, nothing kept", f"{seconds:.2f} s", "< 0.5 s")
    what = "a decision date: what is known, prompts, replies, truths and scores"
    note(what, "the same year", f"{date * 1e3:.1f} ms", "< 10 ms")
    note("a decision date of a second episode", "the same year", f"{again * 1e3:.1f} ms", "< 10 ms")
    assert seconds < 0.5
    assert date < 0.01


def plain_lines(closes: pd.DataFrame, classes: tuple[str, ...]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """A date's table of assets and its correlations, each number from its definition."""
    moves = closes.pct_change(fill_method=None).iloc[1:].tail(60)
    equities = moves.loc[:, [one == "equity" for one in classes]].mean(axis=1)
    rows = {}
    for name in closes.columns:
        one, value = moves[name], (1 + moves[name]).cumprod()
        peak = pd.concat([pd.Series([1.0]), value]).cummax().iloc[1:]
        rows[name] = {
            "close": closes[name].iloc[-1],
            "return_20": closes[name].iloc[-1] / closes[name].iloc[-21] - 1,
            "return_60": closes[name].iloc[-1] / closes[name].iloc[-61] - 1,
            "volatility": one.std() * np.sqrt(252),
            "max_drawdown": min((value / peak - 1).min(), 0.0),
            "beta": one.cov(equities) / equities.var(),
            "ratio": closes[name].tail(50).mean() / closes[name].tail(200).mean(),
        }
    correlation = moves.corr()
    names = sorted(set(classes))
    between = pd.DataFrame(index=names, columns=names, dtype=float)
    for one in names:
        for other in names:
            pairs = [
                correlation.iat[i, j]
                for i, a in enumerate(classes)
                for j, b in enumerate(classes)
                if i != j and a == one and b == other
            ]
            between.loc[one, other] = np.mean(pairs) if pairs else 0.0
    return pd.DataFrame(rows).T, correlation, between


def test_a_snapshot_against_its_definition(note: Note) -> None:
    fresh = windows(81)[0]
    rows = fresh.rows.tolist()

    def ours() -> None:
        fresh.market.known.cache_clear()
        for row in rows:
            fresh.market.known(row)

    def frame(row: int) -> pd.DataFrame:
        known = fresh.market.known(row)
        return pd.DataFrame(fresh.market.closes[row - 251 : row + 1][:, known.part], columns=list(known.tickers))

    frames = [(frame(row), fresh.market.known(row).classes) for row in rows]
    known = fresh.market.known(rows[3])
    lines, correlation, _ = plain_lines(*frames[3])
    assert [one.volatility for one in known.lines] == pytest.approx(lines["volatility"].tolist(), rel=1e-9)
    assert [one.max_drawdown for one in known.lines] == pytest.approx(lines["max_drawdown"].tolist(), abs=1e-12)
    np.testing.assert_allclose(known.correlation, correlation.fillna(0.0).to_numpy(), atol=1e-9)
    mine = best(ours, 3)
    theirs = best(lambda: [plain_lines(*one) for one in frames], 1)
    found = f"{theirs / mine:.0f} x ({mine / len(rows) * 1e3:.1f} ms against {theirs / len(rows) * 1e3:.0f} ms)"
    note("all that is known on a date", "only prices and correlations, by pandas", found, ">= 5 x")
    assert theirs / mine >= 5


# --- baselines --------------------------------------------------------------------------------------------------------


def slsqp_variance(covariance: Floats) -> Floats:
    """Minimum variance by the general solver, with its gradient."""
    size = covariance.shape[0]
    scale = float(np.trace(covariance)) / size

    def value(w: Floats) -> float:
        return float(w @ covariance @ w / scale)

    def slope(w: Floats) -> Floats:
        return np.asarray(2 * covariance @ w / scale)

    found = minimize(
        value,
        np.full(size, 1 / size),
        jac=slope,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * size,
        constraints=LinearConstraint(np.ones((1, size)), 1.0, 1.0),
        options={"maxiter": 500, "ftol": 1e-12},
    )
    weights = np.clip(found.x, 0, None)
    return np.asarray(weights / weights.sum())


def test_baselines(note: Note) -> None:
    seconds = min(fresh_baselines() for _ in range(3))
    note("five baselines through four windows, 183 instruments", "nothing kept", f"{seconds:.2f} s", "< 1 s")
    assert seconds < 1


def fresh_baselines() -> float:
    made = windows(183)
    started = time.perf_counter()
    run_baselines(made)
    return time.perf_counter() - started


def test_minimum_variance_against_slsqp(note: Note) -> None:
    dates = [(one.market.known(row), one.market.universe.size) for one in windows(183) for row in one.rows.tolist()]
    mine = best(lambda: [baseline_weights("MinVar", known, size, cash=True) for known, size in dates], 3)
    few = dates[:: max(len(dates) // 6, 1)]
    theirs = best(lambda: [slsqp_variance(known.covariance) for known, _ in few], 1) / len(few)
    for known, size in few:
        weights, _ = baseline_weights("MinVar", known, size, cash=True)
        assert weights is not None
        own, other = weights[known.part], slsqp_variance(known.covariance)
        assert own @ known.covariance @ own <= other @ known.covariance @ other * (1 + 1e-6)
    each = mine / len(dates)
    found = f"{theirs / each:.0f} x ({each * 1e3:.2f} ms against {theirs * 1e3:.0f} ms)"
    note("minimum variance on a date, 183 instruments, never a larger variance", "SLSQP of scipy", found, ">= 10 x")
    assert theirs / each >= 10


# --- questions --------------------------------------------------------------------------------------------------------


def test_questions(note: Note) -> None:
    made = []
    seconds = best(lambda: made.append(generate_questions(history())), 2)
    questions = made[-1].questions
    assert len(questions) == 6269
    shown = best(lambda: [one.prompt("full") for one in questions], 2)
    said = [f"ANSWER: {answer_text(one.answer)}" for one in questions]
    scored = best(lambda: [score_answer(one, text) for one, text in zip(questions, said, strict=True)], 2)
    note("6,269 questions made", "embedded market", f"{seconds:.2f} s", "< 3 s")
    note("6,269 prompts", "full", f"{shown:.2f} s", "none set")
    note("6,269 replies read and scored", "one convention", f"{scored:.2f} s", "none set")
    assert seconds < 3


# --- whole runs -------------------------------------------------------------------------------------------------------


def run(compiled: Path, *arguments: str | Path) -> tuple[float, float, float]:
    """Seconds of wall clock and of processor time, and peak resident MB, of a command whose modules are compiled."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept["PYTHONPYCACHEPREFIX"] = str(compiled)
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    started = time.perf_counter()
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=kept)
    wall = time.perf_counter() - started
    peak, processor = map(float, ran.stdout.splitlines()[-1].split())
    return wall, processor, peak


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all compiled modules, as installed packages have."""
    folder = tmp_path_factory.mktemp("compiled")
    small = ("--model", "reference/portbench-stubborn", "--profile", "balanced", "--window", "normal")
    run(folder, "bench", "pipeline", *small, "--out", folder / "run")
    return folder


@pytest.mark.parametrize(("verb", "model"), [("qa", "reference/solver"), ("pipeline", "reference/momentum")])
def test_one_model(tmp_path: Path, compiled: Path, note: Note, verb: str, model: str) -> None:
    wall, processor, peak = run(compiled, "bench", verb, "--model", model, "--out", tmp_path / "run")
    what = f"assaymark bench {verb} --model {model}, to its pages"
    note(what, "wall clock, start of Python included", f"{wall:.1f} s ({processor:.1f} s of processor)", "< 6 s")
    note(what, "peak resident memory", f"{peak:.0f} MB", "none set")
    assert wall < 6


def test_the_whole_table(tmp_path: Path, compiled: Path, note: Note) -> None:
    found = [run(compiled, "bench", verb, "--out", tmp_path / "run") for verb in ("qa", "pipeline")]
    wall, processor, peak = (sum(one[0] for one in found), sum(one[1] for one in found), max(one[2] for one in found))
    what = f"the whole table: {MODELS} reference models, {PROFILES} profiles, 4 windows and the questions"
    note(what, "wall clock of both commands", f"{wall:.0f} s ({processor:.0f} s of processor)", "< 180 s")
    note(what, "peak resident memory", f"{peak:.0f} MB", "< 1,000 MB")
    assert wall < 180
    assert peak < 1000
