"""Score tables of any size in Parquet, with planted agents and judges, written in parts.

As a program: ``python bench/make_scores.py 1e7 scores.parquet``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

AGENTS = {"ash": 0.4, "birch": 0.1, "cedar": 0.0, "elm": -0.2}
"""Planted effects in rubric points."""

JUDGES = {"auditor": ("north", 0.0), "reader": ("south", -0.2), "skeptic": ("east", -0.4)}
"""Family and severity of each judge."""

DIMENSIONS = ("clarity", "constraints", "evidence", "premises", "risk", "sizing")
CLUSTERS = 20
_ROW_GROUP = 1_000_000


def make_scores(path: Path, trajectories: int, *, seed: int = 7) -> None:
    """Write a table of so many trajectories, four to a cycle, in the order of cycle, trajectory and judge."""
    rng = np.random.default_rng(seed)
    cycles = trajectories // len(AGENTS)
    step = _ROW_GROUP // (len(AGENTS) * len(JUDGES))
    writer = None
    for start in range(0, cycles, step):
        part = _part(np.arange(start, min(cycles, start + step)), cycles, rng)
        if writer is None:
            writer = pq.ParquetWriter(path, part.schema, compression="zstd")
        writer.write_table(part, row_group_size=part.num_rows)
    if writer is not None:
        writer.close()


def _part(cycle: np.ndarray, cycles: int, rng: np.random.Generator) -> pa.Table:
    m, a, j, d = cycle.size, len(AGENTS), len(JUDGES), len(DIMENSIONS)
    effect = np.array([*AGENTS.values()], dtype=np.float32)[:, None, None]
    severity = np.array([severity for _, severity in JUDGES.values()], dtype=np.float32)[:, None]
    true = 3.2 + 0.5 * _normal(rng, m, 1, 1, 1) + effect + 0.6 * _normal(rng, m, a, 1, d)
    scores = np.clip(np.floor(true + severity + 0.5 * _normal(rng, m, a, j, d) + 0.5), 1, 5)
    flat = scores.astype(np.int8).reshape(-1, d)
    trajectory = np.arange(cycle[0] * a, (cycle[-1] + 1) * a)
    return pa.table(
        {
            "trajectory": np.repeat(trajectory, j),
            "agent": _named(np.tile(np.repeat(np.arange(a), j), m), [*AGENTS]),
            "cluster": _named(np.repeat(cycle * CLUSTERS // cycles, a * j), [f"week{k:02d}" for k in range(CLUSTERS)]),
            "judge": _named(np.tile(np.arange(j), m * a), [*JUDGES]),
            "family": _named(np.tile(np.arange(j), m * a), [family for family, _ in JUDGES.values()]),
            "trial": np.ones(flat.shape[0], dtype=np.int8),
            "cycle": np.repeat(cycle, a * j),
            **{name: np.ascontiguousarray(flat[:, k]) for k, name in enumerate(DIMENSIONS)},
        }
    )


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def _named(codes: np.ndarray, names: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(names))


if __name__ == "__main__":
    make_scores(Path(sys.argv[2]), int(float(sys.argv[1])))
