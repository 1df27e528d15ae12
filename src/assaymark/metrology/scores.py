"""Score tables: conversion of judgments to arrays of scores by trajectory, judge and dimension."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.estimates import excess_replies, missing_shares
from assaymark.plan import MissingLimits
from assaymark.protocol import SCALE, Scale, scale_words
from assaymark.records import AGGREGATE, Decision, Judgment

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
    ids = Counter(decision.record_id for decision in records)
    twice = [Problem(key, f"one decision for each record id (got {k})") for key, k in sorted(ids.items()) if k > 1]
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
    order = tuple(sorted(families))
    # Usable scores [D] by (trajectory, judge), then by trial; calls are sorted by trial.
    trials: dict[tuple[str, str], dict[int, Floats]] = defaultdict(dict)
    for call in calls:
        if call.status == "ok":
            trials[call.trajectory, call.judge][call.trial] = np.array([call.scores[name] for name in dimensions])
    trials = dict(trials)
    first = {key: decision for key, decision in sorted(by_id.items()) if decision.replicate == 1}
    scored = {key: sum((key, judge) in trials for judge in order) for key in first}
    complete = [key for key in first if scored[key] == len(order)]
    keys = [*complete, *(key for key in first if 0 < scored[key] < len(order))]
    rows, n = [first[key] for key in keys], len(complete)
    agents = _index([d.agent.id for d in rows], {decision.agent.id for decision in first.values()})
    groups = (agents, *map(_index, ([d.cycle for d in rows], [d.cluster for d in rows], [d.format for d in rows[:n]])))
    if lacks := [key for key in keys if lengths is not None and key not in lengths]:
        raise InputError("lengths", [Problem(key, "no token count for this trajectory") for key in lacks])
    # Mean over the usable trials, and the first one, [n, J, D]; NaN if a judge has none.
    none = {0: np.full(len(dimensions), np.nan)}
    mean, opening = (
        np.array([[of(trials.get((key, judge), none)) for judge in order] for key in keys]).reshape(
            len(keys), len(order), len(dimensions)
        )
        for of in (_mean_trial, lambda of_trial: next(iter(of_trial.values())))  # calls are sorted by trial
    )
    # Outcomes of each judge's calls, and its aggregate in every trial [m, T] if all of its trials were usable.
    aggregates, counted = dict[str, Floats](), dict[str, CallCounts]()
    for judge in order:
        own_calls = [call for call in calls if call.judge == judge]
        status = Counter(call.status for call in own_calls)
        reasons = Counter(call.reason or "no reason recorded" for call in own_calls if call.status != "ok")
        counted[judge] = CallCounts(status["ok"], status["invalid"], status["refused"], dict(sorted(reasons.items())))
        numbers = sorted({call.trial for call in own_calls})
        full = [graded for key in first if len(graded := trials.get((key, judge), {})) == len(numbers)]
        values = [[float(graded[t] @ share) for t in numbers] for graded in full]
        aggregates[judge] = np.array(values, dtype=np.float64).reshape(len(values), len(numbers))
    asked = {(call.trajectory, call.judge) for call in calls if call.trajectory in first} - trials.keys()
    lost = Counter((judge, first[trajectory].agent.id) for trajectory, judge in asked)
    digest = hashlib.sha256()
    for call in calls:
        scores = sorted(call.scores.items())
        digest.update(repr((call.trajectory, call.judge, call.family, call.trial, call.status, scores)).encode())
    for row in rows:
        digest.update(repr((row.record_id, row.agent.id, row.cycle, row.cluster, row.format)).encode())
    digest.update(repr((share.tolist(), sorted((lengths or {}).items()))).encode())
    return assemble(
        n, tuple(keys), groups, (order, tuple(families[judge] for judge in order), dimensions, share), mean, opening,
        any(len(graded) > 1 for graded in trials.values()), _repeats(by_id.values(), order, trials, share),
        None if lengths is None else np.array([lengths[key] for key in keys], dtype=np.float64), trials=aggregates,
        calls=counted, left_out=tuple(sorted({*first} - {*complete})), digest=digest.hexdigest()[:16],
        agent_families={d.agent.id: d.agent.family for d in records},
        lacking=np.array([[lost[judge, name] for name in agents[0]] for judge in order], dtype=np.int64),
    )  # fmt: skip


def assemble(
    n: int, trajectories: tuple[str, ...], groups: Sequence[tuple[tuple[str, ...], Ints]],
    panel: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], Floats], mean: Floats, first: Floats, many: bool,
    repeats: Mapping[str, tuple[Floats, ...]], lengths: Floats | None, **fields: Any,
) -> ScoreTable:  # fmt: skip
    """Build the table from records of which the first ``n`` are complete; ``many``: some judge has several trials."""
    (agents, agent), (cycles, cycle), (clusters, cluster), (formats, format_) = groups
    counts = None if lengths is None else lengths[n:]
    rest = Grades(mean[n:], agent[n:], cycle[n:], cluster[n:], trajectories[n:], counts,
                  mean[n:] if many else None, first[n:] if many else None)  # fmt: skip
    return ScoreTable(
        trajectories[:n], agents, agent[:n], cycles, cycle[:n], clusters, cluster[:n], formats, format_[:n], *panel,
        mean[:n], replicates=panel_replicates(repeats, [0] * mean.shape[1]),
        lengths=None if lengths is None else lengths[:n],
        mean=mean[:n] if many else None, first=first[:n] if many else None, repeats=repeats if many else None,
        incomplete=rest if len(trajectories) > n else None, **fields,
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


Trials = Mapping[tuple[str, str], Mapping[int, Floats]]


def _mean_trial(trials: Mapping[int, Floats]) -> Floats:
    """Average the usable trials of one judge on one trajectory."""
    first, *rest = trials.values()
    return np.mean([first, *rest], axis=0) if rest else first


def _index(values: Sequence[str], also: Iterable[str] = ()) -> tuple[tuple[str, ...], Ints]:
    """Return the sorted distinct values, and the index of each value among them."""
    names = tuple(sorted({*values, *also}))
    place = {name: k for k, name in enumerate(names)}
    return names, np.array([place[value] for value in values], dtype=np.int64)


def _repeats(
    decisions: Iterable[Decision], judges: Sequence[str], trials: Trials, weights: Floats
) -> dict[str, tuple[Floats, ...]]:
    """Return by agent the aggregates [R, J, 2] (mean trial, first trial) of cycles decided more than once."""
    groups: dict[tuple[str, str], dict[int, Floats]] = defaultdict(dict)
    for decision in sorted(decisions, key=lambda d: d.record_id):
        graded = [trials.get((decision.record_id, judge)) for judge in judges]
        if graded and all(graded):
            scores = np.array([(_mean_trial(trial), next(iter(trial.values()))) for trial in graded if trial]) @ weights
            groups[decision.agent.id, decision.cycle].setdefault(decision.replicate, scores)
    by_agent: dict[str, list[Floats]] = defaultdict(list)
    for (agent, _), scores_of in sorted(groups.items()):
        if len(scores_of) > 1:
            by_agent[agent].append(np.stack([scores_of[k] for k in sorted(scores_of)]))
    return {agent: tuple(pairs) for agent, pairs in by_agent.items()}


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
