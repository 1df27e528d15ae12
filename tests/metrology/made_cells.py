"""Control cells and honest records made up by hand, for tests: scores that are known, in tables like those of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from assaymark.metrology import CallCounts, ControlCell, ScoreTable, cell_measurements
from assaymark.records import Measurement, measurement_id

JUDGES = ("auditor", "reader", "skeptic")
FAMILIES = ("north", "south", "east")
AGENTS = ("ash", "birch", "cedar", "elm")


def band(n: int, rate: float) -> tuple[int, int]:
    """The central 99.9 % of a binomial count: what ``n`` studies give if the true rate is ``rate``."""
    low, high = stats.binom.ppf([0.0005, 0.9995], n, rate)
    return int(low), int(high)


def made(
    scores: np.ndarray, cluster: Sequence[int], *, tag: str = "h", agent: Sequence[int] | None = None,
    cycle: Sequence[int] | None = None, clusters: int | None = None, families: Sequence[str] = FAMILIES,
    agents: Sequence[str] = AGENTS, lengths: np.ndarray | None = None,
) -> ScoreTable:  # fmt: skip
    """A table of scores [n, J] or [n, J, D], every record a cycle of its own unless cycles are given."""
    scores = np.asarray(scores, dtype=float)
    scores = scores[..., None] if scores.ndim == 2 else scores
    n, j, d = scores.shape
    who = np.arange(n) % len(AGENTS) if agent is None else np.asarray(agent)
    when = np.arange(n) if cycle is None else np.asarray(cycle)
    return ScoreTable(
        trajectories=tuple(f"{tag}{k:05d}" for k in range(n)), agents=tuple(agents), agent=who.astype(np.int64),
        cycles=tuple(f"c{k:05d}" for k in range(when.max(initial=-1) + 1)), cycle=when,
        clusters=tuple(f"w{k}" for k in range(clusters or (max(cluster, default=0) + 1))),
        cluster=np.asarray(cluster, dtype=np.int64), formats=("v1",), format=np.zeros(n, dtype=np.int64),
        judges=JUDGES[:j], families=tuple(families)[:j], dimensions=tuple(f"d{k}" for k in range(d)),
        weights=np.full(d, 1 / d), scores=scores, trials={judge: np.zeros((0, 1)) for judge in JUDGES[:j]},
        replicates={}, calls={judge: CallCounts(n, 0, 0) for judge in JUDGES[:j]}, lengths=lengths, left_out=(),
        digest=f"digest-{tag}",
    )  # fmt: skip


def flat(values: Sequence[float], judges: int = 3) -> np.ndarray:
    """The same score from every judge."""
    return np.repeat(np.asarray(values, dtype=float)[:, None], judges, axis=1)


def cell(
    kind: str, table: ScoreTable, *, parents: Sequence[str | None] | None = None, composer: str = "elsewhere"
) -> ControlCell:
    return ControlCell(kind, table, tuple(parents or [None] * table.n), (composer,) * table.n)


def spread(clusters: int, each: int) -> list[int]:
    return np.repeat(np.arange(clusters), each).tolist()


def honest_table(rng: np.random.Generator, *, clusters: int = 5, each: int = 20, d: int = 1) -> ScoreTable:
    shape = (clusters * each, 3, d)
    return made(4 + rng.normal(0, 0.3, shape), spread(clusters, each))


def by_id(found: Sequence[Measurement]) -> dict[str, Measurement]:
    ids = {m.id: m for m in found}
    assert len(ids) == len(found)
    return ids


def run(honest: ScoreTable, cells: Sequence[ControlCell], plan: object) -> dict[str, Measurement]:
    return by_id(list(cell_measurements(honest, cells, plan)))


def gate(found: dict[str, Measurement], kind: str) -> Measurement:
    return found[measurement_id("cell.gate", {"cell": kind})]


def bonus_cell(rng: np.random.Generator, bonus: float, *, each: int = 6) -> ScoreTable:
    """The first judge (family north) adds a bonus."""
    scores = 2.5 + rng.normal(0, 0.2, (5 * each, 3))
    scores[:, 0] += bonus
    return made(scores, spread(5, each), tag="b")
