"""Arrow in, Arrow out: score tables from bare columns, and measurements as a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.columns import Columns, raw_scores
from assaymark.metrology.scores import Calls, Grades, ScoreTable, panel_replicates, weight_problems, weight_shares
from assaymark.records import Measurement, canonical_json

MISSING_SCORE: Final = "a score is missing"
"""The reason recorded for a row without a score on every dimension."""

_TEXT: Final = pa.string()
MEASUREMENT_SCHEMA: Final = pa.schema(
    [
        ("name", _TEXT),
        ("labels", pa.map_(_TEXT, _TEXT)),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("level", pa.float64()),
        ("n", pa.int64()),
        ("n_of", _TEXT),
        ("method", _TEXT),
        ("state", _TEXT),
        ("unit", _TEXT),
        ("inputs", _TEXT),
        ("detail", _TEXT),
    ]
)
"""Columns of `measurements_to_arrow`: those of ``tables/measurements.parquet``, and the rest of the record."""


def table_from_arrow(
    source: pa.Table | pa.RecordBatchReader | Path | str,
    *,
    weights: Mapping[str, float] | None = None,
    dimensions: Sequence[str] | None = None,
) -> ScoreTable:
    """The score table of judgments that were made elsewhere: what `score_table` gives for the same judgments."""
    table, name = raw_scores(source)
    named = tuple(weights) if dimensions is None and weights is not None else dimensions
    return score_table_of(Columns.of(table, name, named), weights=weights)


def score_table_of(
    columns: Columns, *, weights: Mapping[str, float] | None = None, derivation: str = "honest"
) -> ScoreTable:
    """`table_from_arrow` on columns that were checked, for the rows of one derivation."""
    share = weights_of(columns.dimensions, weights)
    rows = _Rows(columns, share, derivation)
    whole = rows.scored.all(axis=1)
    complete, rest = (np.flatnonzero(rows.first & which) for which in (whole, rows.scored.any(axis=1) & ~whole))
    kept, n = np.concatenate([complete, rest]), complete.size
    agents, by_agent = _index(columns, "agent", rows.of["agent"], np.flatnonzero(rows.first))
    agent = by_agent[kept]
    clusters, cluster = _index(columns, "cluster", rows.of["cluster"], kept)
    cluster = cluster[kept]
    cycles, cycle = clusters, cluster
    if "cycle" in columns.codes:
        cycles, cycle = _index(columns, "cycle", rows.of["cycle"], kept)
        cycle = cycle[kept]
    formats: tuple[str, ...] = ("",)
    format_ = np.zeros(n, dtype=np.int64)
    if "format" in columns.codes:
        formats, format_ = _index(columns, "format", rows.of["format"], complete)
        format_ = format_[complete]
    repeats = rows.repeats()
    many = bool((rows.usable_trials > 1).any())
    names = columns.names["trajectory"]
    lengths = rows.of["length"].astype(np.float64) if "length" in columns.numbers else None
    scores = rows.mean[complete]
    incomplete = Grades(
        values=rows.mean[rest],
        agent=agent[n:],
        cycle=cycle[n:],
        cluster=cluster[n:],
        trajectories=tuple(names[k] for k in rows.ids[rest]),
        lengths=None if lengths is None else lengths[rest],
        mean=rows.mean[rest] if many else None,
        first=rows.opening[rest] if many else None,
    )
    return ScoreTable(
        trajectories=tuple(names[k] for k in rows.ids[complete]),
        agents=agents,
        agent=agent[:n],
        cycles=cycles,
        cycle=cycle[:n],
        clusters=clusters,
        cluster=cluster[:n],
        formats=formats,
        format=format_,
        judges=rows.judges,
        families=rows.families,
        dimensions=columns.dimensions,
        weights=share,
        scores=scores,
        trials={judge: rows.trial_aggregates(j) for j, judge in enumerate(rows.judges)},
        replicates=panel_replicates(repeats, [0] * len(rows.judges)),
        calls={judge: rows.calls(j) for j, judge in enumerate(rows.judges)},
        lengths=None if lengths is None else lengths[complete],
        left_out=tuple(names[k] for k in rows.ids[rows.first & ~whole]),
        digest=columns.digest(share),
        mean=scores if many else None,
        first=rows.opening[complete] if many else None,
        repeats=repeats if many else None,
        incomplete=incomplete if rest.size else None,
        lacking=rows.lacking(by_agent, len(agents)),
        agent_families=_agent_families(columns),
        families_known=columns.families_known,
    ).frozen()


def _agent_families(columns: Columns) -> dict[str, str] | None:
    """The family of each agent; an agent of no family is its own. None where the table has no such column."""
    if "agent_family" not in columns.codes:
        return None
    where = np.unique(columns.codes["agent"], return_index=True)[1]
    families = (columns.names["agent_family"][k] for k in columns.codes["agent_family"][where])
    return {agent: family or agent for agent, family in zip(columns.names["agent"], families, strict=True)}


def weights_of(dimensions: tuple[str, ...], weights: Mapping[str, float] | None) -> Floats:
    """Weights that sum to 1, in the order of the dimensions."""
    problems = weight_problems(dimensions, weights, of="scores")
    if problems:
        raise InputError("scores", problems)
    return weight_shares(dimensions, weights)


class _Rows:
    """The rows of one derivation in the order of trajectory, judge and trial, gathered by trajectory [N] and judge [J].

    ``of`` holds what belongs to a trajectory; ``mean`` and ``opening`` [N, J, D] the mean and the first of the usable
    trials, NaN where ``scored`` [N, J] says there is none.
    """

    def __init__(self, columns: Columns, weights: Floats, derivation: str) -> None:
        codes = columns.codes
        kept = np.ones(codes["judge"].size, dtype=bool)
        if "derivation" in codes:
            kept = codes["derivation"] == columns.names["derivation"].index(derivation)
        order = np.lexsort((columns.numbers["trial"], codes["judge"], codes["trajectory"]))
        order = order[kept[order]]
        self.ids, self.start, self.trajectory = np.unique(
            codes["trajectory"][order], return_index=True, return_inverse=True
        )
        found, where, self.judge = np.unique(codes["judge"][order], return_index=True, return_inverse=True)
        self.judges = tuple(columns.names["judge"][k] for k in found)
        self.families = tuple(columns.names["family"][k] for k in codes["family"][order[where]])
        of = {**codes, **columns.numbers}
        self.of = {name: values[order[self.start]] for name, values in of.items() if name not in ("judge", "trial")}
        self.first: Bools = self.of.get("replicate", np.ones(self.ids.size, dtype=np.int64)) == 1
        self.trial = columns.numbers["trial"][order]
        self.usable: Bools = columns.usable[order]
        self.scores = columns.scores[order]
        self.weights = weights
        self.agents = columns.names["agent"]
        self._gather()

    def _gather(self) -> None:
        """Means and first trials by trajectory and judge."""
        shape = (self.ids.size, len(self.judges))
        slot = (self.trajectory * shape[1] + self.judge)[self.usable]
        scores = self.scores[self.usable]
        counts = np.bincount(slot, minlength=shape[0] * shape[1])
        sums = [np.bincount(slot, weights=column, minlength=counts.size) for column in scores.T]
        with np.errstate(invalid="ignore"):
            self.mean: Floats = (np.stack(sums, axis=1) / counts[:, None]).reshape(*shape, -1)
        opening = np.full((counts.size, scores.shape[1]), np.nan)
        opening[slot[::-1]] = scores[::-1]  # the last to be written is the lowest trial
        self.opening: Floats = opening.reshape(*shape, -1)
        self.usable_trials: Ints = counts.reshape(shape)
        self.scored: Bools = self.usable_trials > 0

    def trial_aggregates(self, judge: int) -> Floats:
        """One judge's aggregate in every trial [m, T], where all of its trials were usable."""
        rows = self.judge == judge
        numbers, column = np.unique(self.trial[rows], return_inverse=True)
        grid = np.full((self.ids.size, numbers.size), np.nan)
        grid[self.trajectory[rows], column] = self.scores[rows] @ self.weights  # NaN where a score is missing
        return np.asarray(grid[self.first & ~np.isnan(grid).any(axis=1)])

    def calls(self, judge: int) -> Calls:
        """What became of one judge's calls."""
        usable = self.usable[self.judge == judge]
        ok, invalid = int(usable.sum()), int((~usable).sum())
        return Calls(ok, invalid, 0, {MISSING_SCORE: invalid} if invalid else {})

    def lacking(self, agent: Ints, agents: int) -> Ints:
        """How many first records of each agent a judge was asked about without a usable answer [J, A]."""
        asked = np.zeros_like(self.scored)
        asked[self.trajectory, self.judge] = True
        which, judge = np.nonzero(asked & ~self.scored & self.first[:, None])
        return np.bincount(judge * agents + agent[which], minlength=len(self.judges) * agents).reshape(-1, agents)

    def repeats(self) -> dict[str, tuple[Floats, ...]]:
        """Aggregates [R, J, 2] (mean trial, first trial) of the cycles that an agent decided more than once."""
        if "replicate" not in self.of:
            return {}
        agent, cycle = self.of["agent"], self.of.get("cycle", self.of["cluster"])
        scored = np.flatnonzero(self.scored.all(axis=1))
        # Ties keep the order of trajectories, of which the first stands for its replicate.
        scored = scored[np.lexsort((self.of["replicate"][scored], cycle[scored], agent[scored]))]
        key = np.stack([agent[scored], cycle[scored], self.of["replicate"][scored]])
        fresh = np.ones(scored.size, dtype=bool)
        fresh[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
        scored, key = scored[fresh], key[:, fresh]
        starts = np.flatnonzero(np.r_[True, (key[:2, 1:] != key[:2, :-1]).any(axis=0)]) if scored.size else scored
        aggregates = np.stack([self.mean[scored] @ self.weights, self.opening[scored] @ self.weights], axis=-1)
        found: dict[int, list[Floats]] = defaultdict(list)
        for start, stop in zip(starts, [*starts[1:], scored.size], strict=True):
            if stop - start > 1:
                found[int(key[0, start])].append(aggregates[start:stop])
        return {self.agents[code]: tuple(groups) for code, groups in found.items()}


def _index(columns: Columns, name: str, values: Ints, rows: Ints) -> tuple[tuple[str, ...], Ints]:
    """The names that occur in some ``rows``, and for every row the place of its name among them (there only)."""
    used = np.unique(values[rows])
    return tuple(columns.names[name][k] for k in used), np.searchsorted(used, values).astype(np.int64)


# --- measurements -----------------------------------------------------------------------------------------------------


def measurements_to_arrow(measurements: Iterable[Measurement]) -> pa.Table:
    """Measurements as an Arrow table, in the order given: one column a field, labels as a map, detail as JSON text."""
    rows = [
        {
            **{name: getattr(item, name) for name in MEASUREMENT_SCHEMA.names},
            "labels": sorted(item.labels.items()),
            "detail": canonical_json(item.detail),
        }
        for item in measurements
    ]
    return pa.Table.from_pylist(rows, schema=MEASUREMENT_SCHEMA)


def measurements_from_arrow(table: pa.Table) -> tuple[Measurement, ...]:
    """The measurements of a table that `measurements_to_arrow` made."""
    missing = [name for name in MEASUREMENT_SCHEMA.names if name not in table.column_names]
    if missing:
        raise InputError("measurements", [Problem(name, "this column is missing") for name in missing])
    return tuple(
        Measurement(**{**row, "labels": dict(row["labels"]), "detail": json.loads(row["detail"])})
        for row in table.select(MEASUREMENT_SCHEMA.names).to_pylist()
    )
