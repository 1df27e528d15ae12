"""Slow reference computation of the inputs of rankings: record by record, from the text of the rule."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np

from assaymark.metrology import analyse, cluster_differences, gated, moderated_contrasts, panel_scores, score_table
from assaymark.protocol import parse_study

AGENTS = ("ash", "birch", "cedar", "elm")
NAMES = ("aggregate", "clarity", "evidence", "risk")
PAIRS = list(combinations(range(4), 2))
JUDGES = {"auditor": "north", "reader": "south", "skeptic": "east"}
OWN = {"ash": "north", "cedar": "south"}
"""The makers of two agents, who also have a judge each."""


def make_study(extra="", judges=None):
    each = (judges or JUDGES).items()
    listed = "".join(
        f'[[judges]]\nname = "{name}"\nmodel = "reference/{name}"\nfamily = "{own}"\n' for name, own in each
    )
    return parse_study(f'name = "made up"\nseed = 1\n{extra}\n{listed}')


def run(records, plan, lengths=None, seed=1):
    decisions, judgments = records
    table = score_table(judgments, decisions, lengths=lengths)
    found = analyse(table, plan, rng=np.random.default_rng(seed))
    return gated(table, plan), {m.id: m for m in found}


def changed(judgments, when=lambda _: True, scores=None, **fields):
    """The judgments, of which some have other fields, or scores that are made of theirs."""

    def one(j):
        return dataclasses.replace(j, **fields, **({} if scores is None else {"scores": scores(j.scores)}))

    return [one(j) if when(j) else j for j in judgments]


def unusable(judgments, when=lambda _: True, status="invalid", **fields):
    """The judgments, of which some are no usable reply."""
    return changed(judgments, when, lambda _: {}, status=status, **fields)


def some(records, stays):
    """The decisions of which this is true, and their judgments."""
    decisions = [d for d in records[0] if stays(d)]
    ids = {d.record_id for d in decisions}
    return decisions, [j for j in records[1] if j.trajectory in ids]


def named(found, name, **labels):
    return [m for m in found.values() if m.name == name and labels.items() <= m.labels.items()]


def get(found, name, **labels):
    inner = ",".join(f"{key}={labels[key]}" for key in sorted(labels))
    return found[f"{name}[{inner}]"]


def pair_of(item):
    """The two agents of a measurement in the order of their names, and +1 where the first is the higher one."""
    one, other = (AGENTS.index(item.labels[side]) for side in ("high", "low"))
    return (one, other, 1) if one < other else (other, one, -1)


def pairs_in(found, name, **labels):
    """Each such measurement, with the place of its pair, the agents of the pair, and +1 or -1 as in `pair_of`."""
    for m in named(found, name, **labels):
        first, second, turn = pair_of(m)
        yield m, PAIRS.index((first, second)), (first, second), turn


def ends(m):
    return m.value, m.low, m.high


def values_of(table, column):
    """Grades [n, J] of one scale, of all records that some judge graded."""
    grades = table.grades.values
    return grades @ table.weights if column == 0 else grades[:, :, column - 1]


def scored(table, column, judges=(0, 1, 2)):
    """(cluster, cycle, agent, score, part) of every record, from the least-squares fit of its cluster."""
    grades, values, found = table.grades, values_of(table, column)[:, list(judges)], []
    for g in range(len(table.clusters)):
        rows = np.flatnonzero(grades.cluster == g)
        fit = panel_scores(values[rows])
        for row, score, part in zip(rows, fit.scores, fit.part, strict=True):
            if score is not None:
                found.append((g, int(grades.cycle[row]), int(grades.agent[row]), score, (g, part)))
    return found


def slow_contrasts(table, column, judges=(0, 1, 2), **options):
    """Every pair's moderated contrast, and its differences by cluster, one record after the other."""
    records = scored(table, column, judges)
    differences = cluster_differences(records, len(table.agents))
    effects = np.full((len(table.clusters), len(table.agents)), np.nan)
    for g, k in np.ndindex(effects.shape):
        own = [score for cluster, _, agent, score, _ in records if (cluster, agent) == (g, k)]
        effects[g, k] = np.mean(own) if own else np.nan
    each = [list(by_cluster.values()) for by_cluster in differences.values()]
    gaps = [np.mean(d) if d else np.nan for d in each]
    variances = [np.var(d, ddof=1) if len(d) > 1 else 0.0 for d in each]
    counts = np.array([len(d) for d in each])
    return moderated_contrasts(gaps, variances, counts, effects, **options), differences


def cell_means(table, column):
    """Means [G, J, K] of every cluster, judge and agent."""
    grades, values = table.grades, values_of(table, column)
    found = np.full((len(table.clusters), len(table.judges), len(table.agents)), np.nan)
    for g, j, k in np.ndindex(found.shape):
        own = values[(grades.cluster == g) & (grades.agent == k), j]
        found[g, j, k] = np.nanmean(own) if (~np.isnan(own)).any() else np.nan
    return found


def by_cycle(table, values):
    """Values [n, ...] of every record as [cycles, K, ...], cluster after cluster, NaN where an agent did not decide."""
    grades = table.grades
    found = np.full((len(table.cycles), len(table.agents), *values.shape[1:]), np.nan)
    found[grades.cycle, grades.agent] = values
    return found[_by_cluster(table)]


def cluster_of(table):
    """The cluster of every cycle, in the order of `by_cycle`."""
    return np.sort(_cycle_clusters(table))


def _cycle_clusters(table):
    found = np.zeros(len(table.cycles), dtype=int)
    found[table.grades.cycle] = table.grades.cluster
    return found


def _by_cluster(table):
    return np.argsort(_cycle_clusters(table), kind="stable")
