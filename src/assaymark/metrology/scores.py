"""Score tables: conversion of judgments to arrays of scores by trajectory, judge and dimension."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.estimates import excess_replies, group_sums, missing_shares
from assaymark.plan import MissingLimits
from assaymark.protocol import SCALE, Scale, scale_words
from assaymark.records import AGGREGATE, Decision, Judgment, grouped

# Conversion of judgments to arrays: the trajectories that every judge scored, and their scores.


MISSING_SCORE: Final = "a score is missing"
"""The reason recorded for a row without a score on every dimension."""


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Counts of one judge's calls by outcome: usable, not parseable, refused; and the reasons for the last two."""

    ok: int
    invalid: int
    refused: int
    reasons: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_rows(cls, usable: int, missing: int) -> CallCounts:
        """Count the rows of a table, of which some lack a score."""
        return cls(usable, missing, 0, {MISSING_SCORE: missing} if missing else {})

    @property
    def total(self) -> int:
        """The number of all calls."""
        return self.ok + self.invalid + self.refused


@dataclass(frozen=True, slots=True, eq=False)
class Grades:
    """Scores of N first records, each scored by at least one judge.
    ``values`` [N, J, D] are NaN, on all dimensions, if a judge has no usable score of a record. ``agent``, ``cycle``
    and ``cluster`` [N] are indices into the names of the table that the grades belong to."""

    values: Floats
    agent: Ints
    cycle: Ints
    cluster: Ints
    trajectories: tuple[str, ...]
    lengths: Floats | None
    mean: Floats | None = None
    first: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """Scores of the trajectories that every judge scored, with the attributes by which analyses group them."""

    trajectories: tuple[str, ...]
    agents: tuple[str, ...]
    agent: Ints
    cycles: tuple[str, ...]
    cycle: Ints
    clusters: tuple[str, ...]
    cluster: Ints
    formats: tuple[str, ...]
    format: Ints
    judges: tuple[str, ...]
    families: tuple[str, ...]
    dimensions: tuple[str, ...]
    weights: Floats
    scores: Floats
    trials: Mapping[str, Floats]
    replicates: Mapping[str, tuple[tuple[float, ...], ...]]
    calls: Mapping[str, CallCounts]
    lengths: Floats | None
    left_out: tuple[str, ...]
    digest: str
    mean: Floats | None = None
    first: Floats | None = None
    repeats: Mapping[str, tuple[Floats, ...]] | None = None
    incomplete: Grades | None = None
    lacking: Ints | None = None
    agent_families: Mapping[str, str] | None = None
    families_known: bool = True

    @property
    def n(self) -> int:
        """The number of trajectories in panel analyses."""
        return len(self.trajectories)

    @property
    def names(self) -> tuple[str, ...]:
        """The aggregate, then every dimension, as in the last axis of `stacked`."""
        return (AGGREGATE, *self.dimensions)

    @property
    def stacked(self) -> Floats:
        """Scores [n, J, 1 + D] with each judge's aggregate, the weighted mean of its dimensions, first."""
        return np.concatenate([(self.scores @ self.weights)[..., None], self.scores], axis=2)

    @property
    def grades(self) -> Grades:
        """Grades of all first records scored by any judge: the complete ones as in the table, then the others."""
        complete = Grades(self.scores, self.agent, self.cycle, self.cluster, self.trajectories, self.lengths)
        rest = self.incomplete
        if rest is None:
            return complete
        lengths = None
        if complete.lengths is not None and rest.lengths is not None:
            lengths = np.concatenate([complete.lengths, rest.lengths])
        own_, rest_ = ((part.values, part.agent, part.cycle, part.cluster) for part in (complete, rest))
        values, agent, cycle, cluster = (np.concatenate(parts) for parts in zip(own_, rest_, strict=True))
        return Grades(values, agent, cycle, cluster, (*complete.trajectories, *rest.trajectories), lengths)

    @property
    def cycle_clusters(self) -> Ints:
        """The cluster of each cycle [C]."""
        clusters = np.zeros(len(self.cycles), dtype=np.int64)
        for part in (self, self.incomplete or self):
            clusters[part.cycle] = part.cluster
        return clusters

    def missing(self) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """Shares of first records without a usable reply, 0..1, by judge and by judge and agent."""
        return missing_shares(self.judges, self.agents, self.replies)

    @property
    def replies(self) -> Ints:
        """Numbers of each agent's first records with and without a usable reply of each judge [J, A, 2]."""
        grades, a = self.grades, len(self.agents)
        judge, record = np.nonzero(~np.isnan(grades.values).any(axis=2).T)
        scored = np.bincount(judge * a + grades.agent[record], minlength=len(self.judges) * a).reshape(-1, a)
        return np.stack([scored, np.zeros_like(scored) if self.lacking is None else self.lacking], axis=2)

    @property
    def asked(self) -> dict[str, int]:
        """The number of requested replies by judge."""
        return {judge: calls.total for judge, calls in self.calls.items()}

    def excess(self, allowed: MissingLimits) -> dict[str, str]:
        """Return the judges with more missing replies than ``allowed``, each with the reason."""
        return excess_replies(*self.missing(), allowed.per_judge, allowed.per_agent)

    def frozen(self) -> ScoreTable:
        """Make the arrays read-only and return the table itself."""
        parts = [self.agent, self.cycle, self.cluster, self.format, self.scores, self.weights, self.first, self.lacking]
        if (rest := self.incomplete) is not None:
            parts += [rest.values, rest.agent, rest.cycle, rest.cluster, rest.mean, rest.first]
        for part in parts:
            if part is not None:
                part.setflags(write=False)
        return self


def score_table(
    judgments: Iterable[Judgment], decisions: Iterable[Decision], weights: Mapping[str, float] | None = None,
    lengths: Mapping[str, int] | None = None, scale: Scale = SCALE,
) -> ScoreTable:  # fmt: skip
    """Convert the judgments of one rubric to arrays, in the order of trajectory ids."""
    records = list(decisions)
    by_id = {decision.record_id: decision for decision in records}
    calls = sorted(judgments, key=lambda j: (j.trajectory, j.judge, j.trial))
    times = Counter(decision.record_id for decision in records)
    twice = [Problem(key, f"one decision for each record id (got {k})") for key, k in sorted(times.items()) if k > 1]
    problems = [
        *_judgment_problems(calls, by_id, scale),
        *(twice + _ambiguous([(record.cycle, record.cluster) for record in records], "a cycle lies in one cluster")),
    ]
    if not calls:
        problems.append(Problem("", "none given; judge the trajectories first"))
    dimensions = tuple(sorted({name for call in calls if call.status == "ok" for name in call.scores}))
    problems += weight_problems(dimensions, weights, of="judgments") if dimensions else []
    if problems:
        raise InputError("judgments", problems)
    families, share = {call.judge: call.family for call in calls}, weight_shares(dimensions, weights)
    ids, judges = sorted(by_id), sorted(families)
    ordered, ok = [by_id[key] for key in ids], [call.status == "ok" for call in calls]
    attributes = {
        "agent": [decision.agent.id for decision in ordered], "cycle": [decision.cycle for decision in ordered],
        "cluster": [decision.cluster for decision in ordered], "format": [decision.format for decision in ordered],
    }  # fmt: skip
    nothing, counted = [np.nan] * len(dimensions), dict[str, CallCounts]()
    for judge, own in grouped(calls, lambda call: call.judge).items():
        status = Counter(call.status for call in own)
        reasons = Counter(call.reason or "no reason recorded" for call in own if call.status != "ok")
        counted[judge] = CallCounts(status["ok"], status["invalid"], status["refused"], dict(sorted(reasons.items())))
    table = table_of(
        _codes(ids, [call.trajectory for call in calls]), _codes(judges, [call.judge for call in calls]),
        np.array([call.trial for call in calls]),
        np.array([[call.scores[name] for name in dimensions] if usable else nothing
                  for call, usable in zip(calls, ok, strict=True)], dtype=np.float64),
        np.array(ok, dtype=bool), ids,
        {name: (names := sorted(set(values)), _codes(names, values)) for name, values in attributes.items()},
        np.array([decision.replicate for decision in ordered], dtype=np.int64),
        None if lengths is None else np.array([lengths.get(key, np.nan) for key in ids], dtype=np.float64),
        (tuple(judges), tuple(families[judge] for judge in judges), dimensions, share),
        {judge: counted[judge] for judge in judges}, "",
        agent_families={decision.agent.id: decision.agent.family for decision in records},
    )  # fmt: skip
    digest = hashlib.sha256()
    for call in calls:
        scores = sorted(call.scores.items())
        digest.update(repr((call.trajectory, call.judge, call.family, call.trial, call.status, scores)).encode())
    for row in (by_id[key] for key in table.grades.trajectories):
        digest.update(repr((row.record_id, row.agent.id, row.cycle, row.cluster, row.format)).encode())
    digest.update(repr((share.tolist(), sorted((lengths or {}).items()))).encode())
    return replace(table, digest=digest.hexdigest()[:16])


def table_of(
    trajectory: Ints, judge: Ints, trial: Ints, scores: Floats, usable: Bools, ids: Sequence[str],
    attributes: Mapping[str, tuple[Sequence[str], Ints]], replicate: Ints, lengths: Floats | None,
    panel: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], Floats], calls: Mapping[str, CallCounts],
    digest: str, **fields: Any,
) -> ScoreTable:  # fmt: skip
    """Build the table from rows [N] in the order of trajectory, judge and trial, and the attributes of trajectories [T]
    in the order of their ``ids``: names, and the index of each trajectory's name."""
    judges, _, _, weights = panel
    first, shape, width = replicate == 1, (len(ids), len(judges)), scores.shape[1]
    # The mean and the first of the usable trials by judge [T, J, D]; NaN without one.
    slot = (trajectory * len(judges) + judge)[usable]
    counts = np.bincount(slot, minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore"):
        mean = group_sums(scores[usable], slot, counts.size) / counts[:, None]
    lowest = np.full_like(mean, np.nan)
    lowest[slot[::-1]] = scores[usable][::-1]  # the first trial is written last
    mean, opening, scored = mean.reshape(*shape, width), lowest.reshape(*shape, width), counts.reshape(shape) > 0
    full: Bools = np.asarray(scored.all(axis=1))
    complete, rest = (np.flatnonzero(first & which) for which in (full, scored.any(axis=1) & ~full))
    chosen, many = np.concatenate([complete, rest]), bool((counts > 1).any())
    if lengths is not None and (lacks := chosen[np.isnan(lengths[chosen])]).size:
        raise InputError("lengths", [Problem(ids[k], "no token count for this trajectory") for k in lacks])

    def names_of(name: str, rows: Ints) -> tuple[tuple[str, ...], Ints]:
        """Return the names that occur in ``rows``, and every trajectory's index among them (valid in ``rows`` only)."""
        names, codes = attributes[name]
        used = np.unique(codes[rows])
        return tuple(names[k] for k in used), np.searchsorted(used, codes).astype(np.int64)

    (agents, agent), (cycles, cycle) = names_of("agent", np.flatnonzero(first)), names_of("cycle", chosen)
    (clusters, cluster), (formats, format_) = names_of("cluster", chosen), names_of("format", complete)
    trials = dict[str, Floats]()  # each judge's aggregate in every trial [m, T] where all were usable
    for j, name in enumerate(judges):
        rows = judge == j
        numbers, column = np.unique(trial[rows], return_inverse=True)
        grid = np.full((len(ids), numbers.size), np.nan)
        grid[trajectory[rows], column] = np.where(usable[rows], scores[rows] @ weights, np.nan)
        trials[name] = grid[first & ~np.isnan(grid).any(axis=1)]
    asked = np.zeros(shape, dtype=bool)
    asked[trajectory, judge] = True
    which, whose = np.nonzero(asked & ~scored & first[:, None])
    lacking = np.bincount(whose * len(agents) + agent[which], minlength=len(judges) * len(agents))
    # The aggregates [R, J, 2] (mean trial, first trial) of cycles that an agent decided more than once. Ties keep the
    # order of trajectories, the first of which represents its replicate.
    repeats: dict[str, tuple[Floats, ...]] = {}
    if full.any() and replicate.max() > 1:
        (deciders, decider), (_, when) = attributes["agent"], attributes["cycle"]
        key = np.stack([decider[full], when[full], replicate[full]], axis=1)
        distinct, at = np.unique(key, axis=0, return_index=True)
        aggregates = np.stack([mean[full][at] @ weights, opening[full][at] @ weights], axis=-1)
        starts = np.flatnonzero(np.diff(distinct[:, :2], axis=0, prepend=-1).any(axis=1))
        for code, group in zip(distinct[starts, 0].tolist(), np.split(aggregates, starts[1:]), strict=True):
            if len(group) > 1:
                repeats[deciders[code]] = (*repeats.get(deciders[code], ()), group)

    def grades(rows: Ints) -> Grades:
        values, keys = mean[rows], tuple(ids[k] for k in rows)
        return Grades(
            values, agent[rows], cycle[rows], cluster[rows], keys, None if lengths is None else lengths[rows],
            values if many else None, opening[rows] if many else None,
        )  # fmt: skip

    whole = grades(complete)
    return ScoreTable(
        whole.trajectories, agents, whole.agent, cycles, whole.cycle, clusters, whole.cluster, formats,
        format_[complete], *panel, whole.values, trials, panel_replicates(repeats, [0] * len(judges)), calls,
        whole.lengths, tuple(ids[k] for k in np.flatnonzero(first & ~full).tolist()), digest, whole.mean, whole.first,
        repeats if many else None, grades(rest) if rest.size else None, lacking.reshape(len(judges), -1), **fields,
    ).frozen()  # fmt: skip


def panel_replicates(
    repeats: Mapping[str, Sequence[Floats]], treatment: Sequence[int]
) -> dict[str, tuple[tuple[float, ...], ...]]:
    """Compute panel aggregates of repeated cycles by agent; ``treatment`` is 0 for mean trials, 1 for first trials."""
    judges = np.arange(len(treatment))
    return {
        agent: tuple(tuple(group[:, judges, treatment].mean(axis=1).tolist()) for group in groups)
        for agent, groups in repeats.items()
    }


def _codes(names: Sequence[str], values: Iterable[str]) -> Ints:
    """Return the index of each value among the names."""
    place = {name: k for k, name in enumerate(names)}
    return np.array([place[value] for value in values], dtype=np.int64)


def weight_problems(dimensions: Sequence[str], weights: Mapping[str, float] | None, *, of: str) -> list[Problem]:
    """List the problems of dimension weights; ``of`` names the owner of the dimensions for messages."""
    if weights is None:
        return []
    problems = [Problem("weights", f"no weight for dimension {name!r}") for name in dimensions if name not in weights]
    problems += [
        Problem("weights", f"{name!r} is not a dimension of the {of} ({', '.join(dimensions)})")
        for name in sorted(set(weights) - set(dimensions))
    ]
    raw = np.array([weights.get(name, 0.0) for name in dimensions], dtype=np.float64)
    if not np.isfinite(raw).all() or (raw < 0).any() or raw.sum() <= 0:
        problems.append(Problem("weights", f"must be finite, not negative and not all zero (got {dict(weights)})"))
    return problems


def weight_shares(dimensions: Sequence[str], weights: Mapping[str, float] | None) -> Floats:
    """Normalise valid weights (see `weight_problems`) to sum to 1, in the order of the dimensions."""
    raw = np.array([1.0 if weights is None else weights[name] for name in dimensions], dtype=np.float64)
    return np.asarray(raw / raw.sum())


def _judgment_problems(calls: Sequence[Judgment], decisions: Mapping[str, Decision], scale: Scale) -> list[Problem]:
    """List every problem that would make the table ambiguous."""
    problems = [
        Problem(name, f"must be the same in all judgments (got {', '.join(names)})")
        for name, names in (
            ("rubric", sorted({call.rubric for call in calls})),
            ("dimensions", sorted({"+".join(sorted(call.scores)) for call in calls if call.status == "ok"})),
        )
        if len(names) > 1
    ]
    problems += _ambiguous([(call.judge, call.family) for call in calls], "one judge has one family")
    places = {id(call): f"{call.trajectory}, {call.judge}, trial {call.trial}" for call in calls}
    for place, times in Counter(places.values()).items():
        if times > 1:
            problems.append(Problem(place, f"one result for each trial (got {times})"))
    for call in calls:
        if call.trajectory not in decisions:
            problems.append(Problem(call.trajectory, "judged, but not among the decisions"))
        bad = {k: v for k, v in call.scores.items() if not scale[0] <= v <= scale[1]}
        if call.status == "ok" and (bad or not call.scores):
            problem = f"scores must be in {scale_words(scale)} (got {bad or 'none'})"
            problems.append(Problem(places[id(call)], problem))
    return problems


def _ambiguous(pairs: Iterable[tuple[str, str]], rule: str) -> list[Problem]:
    """List a problem for every name that is paired with several others."""
    by_name: dict[str, set[str]] = defaultdict(set)
    for name, other in pairs:
        by_name[name].add(other)
    several = {name: ", ".join(sorted(others)) for name, others in sorted(by_name.items()) if len(others) > 1}
    return [Problem(name, f"{rule} (got {others})") for name, others in several.items()]


def is_parquet(path: Path) -> bool:
    """Return True if a file starts with the Parquet magic bytes."""
    try:
        with path.open("rb") as handle:
            return handle.read(4) == b"PAR1"
    except OSError:
        return False
