"""The whole analysis of a panel against the same numbers from scikit-learn, statsmodels, and arch or a plain loop.

One study of the size of the source: 1,100 trajectories of 4 agents in 5 clusters, 3 judges, 6 dimensions, 2 formats.
``analyse`` makes every measurement; the peers make only its three costly parts, so the ratio flatters them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.multitest import multipletests

from assaymark.metrology import ScoreTable, analyse, score_table
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
PROMISED, BUDGET_MS = 500, 15
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
    """CPU seconds of ``work``, which other people's work on the same machine does not lengthen, and what it made."""
    started = time.process_time()
    made = work()
    return time.process_time() - started, made


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    decisions, judgments = records()
    return score_table(judgments, decisions, lengths={d.record_id: 50 + k % 40 for k, d in enumerate(decisions)})


def ours(table: ScoreTable) -> tuple[float, dict[str, Measurement]]:
    """The best of several runs, and what it made."""
    found = [timed(lambda: analyse(table, STUDY, rng=np.random.default_rng(1))) for _ in range(30)]
    return min(seconds for seconds, _ in found), {m.id: m for m in analyse(table, STUDY, rng=np.random.default_rng(1))}


def test_the_whole_analysis(table: ScoreTable, note: Note) -> None:
    mine, made = ours(table)
    what = (
        f"analyse: {table.n:,} trajectories x {JUDGES} judges x {len(DIMENSIONS)} dimensions, {len(made)} measurements"
    )
    note(what, "CPU time", f"{mine * 1e3:.1f} ms", f"< {BUDGET_MS} ms")
    kappas_s, kappas = timed(lambda: kappas_by_loop(table, RESAMPLES))
    contrasts_s, contrasts = timed(lambda: bootstrap_by_loop(table))
    robust_s, (differences, _) = timed(lambda: robust_by_statsmodels(table))
    assert isinstance(kappas, dict)
    assert isinstance(contrasts, dict)
    value, low, high = kappas["aggregate"]
    m = made["kappa.mean_pairwise[dimension=aggregate]"]
    assert m.value == pytest.approx(value, abs=1e-12)
    assert (m.low, m.high) == pytest.approx((low, high), abs=0.02)
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


def test_bench_analyse(benchmark: Callable[..., object], table: ScoreTable) -> None:
    benchmark(lambda: analyse(table, STUDY, rng=np.random.default_rng(1)))
