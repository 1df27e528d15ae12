"""The whole analysis of a panel against the same numbers from scikit-learn, statsmodels, and arch or a plain loop.

One study of the size of the source: 1,100 trajectories of 4 agents in 5 clusters, 3 judges, 6 dimensions, 2 formats.
``analyse`` makes every measurement; the peers make only its three costly parts, so the ratio flatters them.

Beside it a board of many agents, and a table of items that many raters graded, from a file to the verdicts.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
import statsmodels.api as sm
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.multitest import multipletests

from assaymark.metrology import ScoreTable, analyse, analysis, measure_panel, score_table, table_from_arrow
from assaymark.protocol import parse_study
from assaymark.records import Agent, Decision, Judgment, Measurement, Provenance

try:
    from arch.bootstrap import IIDBootstrap
except ImportError:
    IIDBootstrap = None

Note = Callable[[str, str, str, str], None]
SCALE = [1, 2, 3, 4, 5]
AGENTS, JUDGES, DIMENSIONS = 4, 3, tuple("abcdef")
CLUSTERS, CYCLES, RESAMPLES = 5, 55, 1000
PROMISED, BUDGET_MS, PLAIN_MS = 500, 150, 15
MANY_AGENTS_S, MANY_RATERS_S = 2.0, 5.0
STUDY = parse_study(
    'name = "bench"\nseed = 1\n'
    + "".join(f'[[judges]]\nname = "j{j}"\nmodel = "reference/j{j}"\nfamily = "f{j}"\n' for j in range(JUDGES))
)


def records() -> tuple[list[Decision], list[Judgment]]:
    """Cycles have a quality, agents add theirs, judges add noise and round to whole scores."""
    rng = np.random.default_rng(7)
    decisions, judgments = [], []
    for cycle in range(CLUSTERS * CYCLES):
        base = 3 + rng.normal(0, 0.5)
        for agent in range(AGENTS):
            name = f"agent{agent}"
            decisions.append(
                Decision(
                    record_id=f"{name}.{cycle:04d}",
                    episode_id=f"round{cycle}",
                    step=0,
                    cluster=f"week{cycle // CYCLES}",
                    decided_at=datetime(2026, 1, 1, tzinfo=UTC),
                    agent=Agent(id=name, family=name),
                    context_id="c",
                    actions=(),
                    rationales=(),
                    format=f"v{cycle % 2}",
                    provenance=Provenance(source="made up"),
                )
            )
            true = base + 0.2 * agent + rng.normal(0, 0.6, len(DIMENSIONS))
            for j in range(JUDGES):
                seen = np.clip(np.floor(true + rng.normal(0, 0.5, true.size) + 0.5), 1, 5).tolist()
                judgments.append(
                    Judgment(
                        trajectory=decisions[-1].record_id,
                        judge=f"j{j}",
                        family=f"f{j}",
                        rubric="v1.0",
                        trial=1,
                        status="ok",
                        scores=dict(zip(DIMENSIONS, seen, strict=True)),
                        call_key=f"{decisions[-1].record_id}.{j}",
                    )
                )
    return decisions, judgments


def ratings_of(table: ScoreTable) -> np.ndarray:
    """Whole ratings [n, J, 1 + D] with the aggregate in front, as kappa reads them."""
    return np.clip(np.floor(np.round(table.stacked, 9) + 0.5), 1, 5).astype(int)


def kappa(ratings: np.ndarray) -> float:
    """Mean pairwise kappa of ratings [n, J]."""
    return float(
        np.mean(
            [
                cohen_kappa_score(ratings[:, a], ratings[:, b], weights="quadratic", labels=SCALE)
                for a, b in combinations(range(ratings.shape[1]), 2)
            ]
        )
    )


def kappas_by_loop(table: ScoreTable, resamples: int) -> dict[str, tuple[float, float, float]]:
    """Every kappa (pooled and by format) with its cluster bootstrap: value, low, high."""
    ratings, rng = ratings_of(table), np.random.default_rng(1)
    found = {}
    for label, rows in (("", np.ones(table.n, dtype=bool)), ("v0", table.format == 0), ("v1", table.format == 1)):
        groups = [np.flatnonzero(rows & (table.cluster == c)) for c in range(CLUSTERS)]
        for k, name in enumerate(table.names):
            column = ratings[:, :, k]
            values = [
                kappa(column[np.concatenate([groups[c] for c in rng.integers(0, CLUSTERS, CLUSTERS)])])
                for _ in range(resamples)
            ]
            found[label + name] = (kappa(column[rows]), *np.percentile(values, [2.5, 97.5]))
    return found


def paired(table: ScoreTable) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, paired differences and clusters of every contrast on every name."""
    scores = table.stacked.mean(axis=1)
    order = [np.flatnonzero(table.agent == a)[np.argsort(table.cycle[table.agent == a])] for a in range(AGENTS)]
    for k, name in enumerate(table.names):
        for a, b in combinations(range(AGENTS), 2):
            yield f"{name}{a}{b}", scores[order[a], k] - scores[order[b], k], table.cluster[order[a]]


def bootstrap_by_loop(table: ScoreTable) -> dict[str, tuple[float, float]]:
    """Cluster bootstrap ends of every contrast, one resample after the other."""
    found = {}
    for name, differences, clusters in paired(table):
        groups = [differences[clusters == c] for c in range(CLUSTERS)]
        if IIDBootstrap is not None:
            drawn = IIDBootstrap(np.arange(CLUSTERS), seed=np.random.default_rng(1))
            means = drawn.apply(lambda rows, groups=groups: np.concatenate([groups[c] for c in rows]).mean(), RESAMPLES)
        else:
            rng = np.random.default_rng(1)
            means = np.array(
                [
                    np.concatenate([groups[c] for c in rng.integers(0, CLUSTERS, CLUSTERS)]).mean()
                    for _ in range(RESAMPLES)
                ]
            )
        low, high = np.percentile(means, [2.5, 97.5])
        found[name] = (float(low), float(high))
    return found


def robust_by_statsmodels(table: ScoreTable) -> tuple[dict[str, float], np.ndarray]:
    """Cluster-robust regression on a constant for every contrast, and Holm over the dimensions."""
    found, p = {}, []
    for name, differences, clusters in paired(table):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few clusters, which is what the records have
            fit = sm.OLS(differences, np.ones(differences.size)).fit(
                cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
            )
        found[name] = float(fit.params[0])
        p.append(float(fit.pvalues[0]))
    return found, multipletests(p[6:], method="holm")[1]


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Return the CPU seconds of ``work``, which other load on the machine does not increase, and its result."""
    started = time.process_time()
    made = work()
    return time.process_time() - started, made


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    decisions, judgments = records()
    return score_table(judgments, decisions, lengths={d.record_id: 50 + k % 40 for k, d in enumerate(decisions)})


def ours(table: ScoreTable) -> tuple[float, dict[str, Measurement]]:
    """Return the seconds of the best of several runs, and its result."""
    found = [timed(lambda: analyse(table, STUDY, rng=np.random.default_rng(1))) for _ in range(30)]
    return min(seconds for seconds, _ in found), {m.id: m for m in analyse(table, STUDY, rng=np.random.default_rng(1))}


def without_orders(table: ScoreTable, patch: pytest.MonkeyPatch) -> float:
    """Return the seconds of the analysis without rankings and bias tests: agreement, levels, ranks."""
    with patch.context() as less:
        less.setattr(analysis, "order_measurements", lambda *_: ())
        less.setattr(measure_panel, "alpha_measurements", lambda *_: ())
        return ours(table)[0]


def test_the_whole_analysis(table: ScoreTable, note: Note, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, made = ours(table)
    plain = without_orders(table, monkeypatch)
    what = (
        f"analyse: {table.n:,} trajectories x {JUDGES} judges x {len(DIMENSIONS)} dimensions, {len(made)} measurements"
    )
    note(what, "CPU time", f"{mine * 1e3:.1f} ms", f"< {BUDGET_MS} ms")
    note("of it: agreement, judges, levels and ranks", "CPU time", f"{plain * 1e3:.1f} ms", f"< {PLAIN_MS} ms")
    kappas_s, kappas = timed(lambda: kappas_by_loop(table, RESAMPLES))
    contrasts_s, contrasts = timed(lambda: bootstrap_by_loop(table))
    robust_s, (differences, _) = timed(lambda: robust_by_statsmodels(table))
    assert isinstance(kappas, dict)
    assert isinstance(contrasts, dict)
    value, low, high = kappas["aggregate"]
    m = made["kappa.mean_pairwise[dimension=aggregate]"]
    assert m.value == pytest.approx(value, abs=1e-12)
    bootstrap = m.detail["bootstrap"]
    assert (bootstrap["low"], bootstrap["high"]) == pytest.approx((low, high), abs=0.02)
    measured = {
        abs(round(m.value, 9)) for m in made.values() if m.name == "contrast" and m.labels["dimension"] == "aggregate"
    }
    assert measured == {abs(round(differences[f"aggregate{a}{b}"], 9)) for a, b in combinations(range(AGENTS), 2)}
    assert set(contrasts) == set(differences)
    looped = "arch IIDBootstrap over clusters" if IIDBootstrap is not None else "numpy loop over clusters"
    parts = (
        (f"{len(kappas)} kappas and their bootstraps, scikit-learn loop of {RESAMPLES:,} resamples", kappas_s),
        (f"{len(contrasts)} contrasts, {looped}, {RESAMPLES:,} resamples each", contrasts_s),
        (f"{len(differences)} contrasts, statsmodels OLS with cluster covariance, and Holm", robust_s),
    )
    for against, seconds in parts:
        note("all of analyse", against, f"{seconds / mine:,.0f} x ({seconds:.2f} s)", "none set")
    total = kappas_s + contrasts_s + robust_s
    note("all of analyse", "the three together", f"{total / mine:,.0f} x ({total:.1f} s)", f">= {PROMISED} x")
    assert total / mine >= PROMISED
    assert mine * 1e3 < BUDGET_MS
    assert plain * 1e3 < PLAIN_MS


def columns(agents: int, clusters: int, cycles: int, judges: int, dimensions: int) -> dict[str, list[object]]:
    """One row a judge and trajectory: levels from high to low, a judge of the maker of each of the first agents."""
    rng = np.random.default_rng(7)
    shape = (clusters * cycles, agents, judges)
    true = 3.2 + 0.5 * rng.normal(size=(shape[0], 1, 1, 1)) + np.linspace(0.5, -0.5, agents)[:, None, None]
    true = true + 0.6 * rng.normal(size=(*shape[:2], 1, dimensions))
    seen = np.clip(np.floor(true + 0.5 * rng.normal(size=(*shape, dimensions)) + 0.5), 1, 5).astype(int)
    cycle, agent, judge = (axis.ravel().tolist() for axis in np.indices(shape))
    lengths = rng.integers(50, 300, shape[:2])
    return {
        "trajectory": [f"t{c}.{a}" for c, a in zip(cycle, agent, strict=True)],
        "agent": [f"agent{a:02d}" for a in agent],
        "agent_family": [f"f{a}" for a in agent],
        "cluster": [f"item{c // cycles:03d}" for c in cycle],
        "cycle": cycle,
        "judge": [f"j{j}" for j in judge],
        "family": [f"f{j}" for j in judge],
        "trial": [1] * len(cycle),
        "length": [int(lengths[c, a]) for c, a in zip(cycle, agent, strict=True)],
        **{f"d{k}": seen[..., k].ravel().tolist() for k in range(dimensions)},
    }


def test_many_agents(note: Note) -> None:
    wide = table_from_arrow(pa.table(columns(20, 20, 4, JUDGES, 6)), dimensions=[f"d{k}" for k in range(6)])
    seconds, made = min(
        (timed(lambda: analyse(wide, STUDY, rng=np.random.default_rng(1))) for _ in range(3)), key=lambda run: run[0]
    )
    assert isinstance(made, tuple)
    what = f"analyse: 20 agents in 20 clusters, {JUDGES} judges, 6 dimensions, {len(made):,} measurements"
    note(what, "CPU time", f"{seconds:.2f} s", f"< {MANY_AGENTS_S:g} s")
    assert seconds < MANY_AGENTS_S


def test_many_raters_from_a_file(tmp_path: Path, note: Note) -> None:
    path = tmp_path / "scores.csv"
    pacsv.write_csv(pa.table(columns(16, 100, 1, 8, 4)), path)
    command = [sys.executable, "-m", "assaymark", "measure", "--judgments", str(path), "--dimensions", "d0,d1,d2,d3"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert "16 systems, 100 clusters, 8 judges, four criteria" in " ".join(said.split())
    what = "assaymark measure: 12,800 grades of 16 agents on 100 items by 8 raters, from CSV to 800 verdicts"
    note(
        what, "CPU time, start of Python included", f"{cpu:.1f} s ({wall:.1f} s on the clock)", f"< {MANY_RATERS_S:g} s"
    )
    assert cpu < MANY_RATERS_S


def test_bench_analyse(benchmark: Callable[..., object], table: ScoreTable) -> None:
    benchmark(lambda: analyse(table, STUDY, rng=np.random.default_rng(1)))
