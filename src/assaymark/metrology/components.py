"""Where the differences between scores come from: agents, clusters, cycles, judges, and chance.

Needed for planning: which of more cycles, more judges and more trials would sharpen a study depends on the part that
is largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.scores import ScoreTable
from assaymark.records import AGGREGATE

PARTS = ("agent", "cluster", "cycle", "agent x cluster", "residual", "judge", "judge x agent", "disagreement")
"""The components that every table is asked for; ``disagreement`` and ``trial`` are also there for each judge."""

_ALONE = "undefined: one agent, needs two that share cycles"
_ONE_JUDGE = "undefined: one judge, needs two"


@dataclass(frozen=True, slots=True)
class Component:
    """One source of variance on one name.

    ``variance`` is in squared rubric points and never negative: an estimate below 0 is set to 0, ``raw`` keeps it and
    ``state`` says so. Both are None where the table cannot tell, with the reason as the state. ``freedom`` is how many
    independent comparisons the estimate rests on.
    """

    variance: float | None
    raw: float | None
    freedom: int
    state: str = "ok"

    @property
    def sd(self) -> float:
        """Standard deviation in rubric points, 0 where the variance is not known."""
        return 0.0 if self.variance is None else math.sqrt(self.variance)


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of a score table, by part and name (the aggregate, then every dimension).

    ``severities`` are each judge's mean minus the panel's, ``bonuses`` what is left of a judge's mean of one agent when
    the judge's severity and the panel's view of the agent are taken off; both by name. ``pairs`` counts the pairs of
    agents that share cycles, out of ``pairs_of``: the others tell nothing about agents and are not hidden.
    """

    parts: Mapping[tuple[str, str], Component]
    by_judge: Mapping[tuple[str, str, str], Component]
    severities: Mapping[tuple[str, str], float]
    bonuses: Mapping[tuple[str, str, str], float]
    pairs: int
    pairs_of: int

    def part(self, name: str, dimension: str = AGGREGATE) -> Component:
        """One of `PARTS` on the aggregate or a dimension."""
        return self.parts[name, dimension]

    def judge(self, name: str, judge: str, dimension: str = AGGREGATE) -> Component:
        """``disagreement`` or ``trial`` of one judge."""
        return self.by_judge[name, judge, dimension]


def variance_components(table: ScoreTable) -> Components:
    """Variance components of the scores of a panel, by the method of moments. Source: Searle 1992, Grubbs 1948."""
    if not table.n:
        raise NotMeasurableError("variance components are undefined: no trajectory has a score from every judge")
    table = averaged(table)
    scores = table.stacked
    judges = _judges(table, scores)
    error = None if judges.raw is None else judges.raw.sum(axis=0) / len(table.judges) ** 2
    agents, pairs = _agents(table, scores.mean(axis=1), error)
    parts: dict[tuple[str, str], Component] = {}
    for k, name in enumerate(table.names):
        parts |= {(part, name): component for part, component in agents[k].items()}
        parts |= {(part, name): component for part, component in judges.parts[k].items()}
    a = len(table.agents)
    return Components(parts, judges.by_judge, judges.severities, judges.bonuses, pairs, a * (a - 1) // 2)


def averaged(table: ScoreTable) -> ScoreTable:
    """The table with means over trials as scores, also of judges whose trials a plan would not average."""
    return table if table.mean is None else replace(table, scores=table.mean)


def _component(raw: float, freedom: int) -> Component:
    if raw < 0:
        return Component(0.0, raw, freedom, f"the estimate {raw:.4g} is negative and set to 0")
    return Component(raw, raw, freedom)


@dataclass(slots=True)
class _Sums:
    """Sums over pairs of agents: squares and products within and between clusters, and what they estimate."""

    within: Floats  # of differences: residual (twice)
    within_product: Floats  # of one with the other: cycle
    freedom: int
    between: Floats
    between_product: Floats
    between_freedom: int
    spread: float  # n - sum n_k^2 / n, the weight of a cluster effect between clusters
    level: Floats  # squared mean differences: agents
    own: float  # sum over pairs of sum n_k^2 / n^2
    inverse: float  # sum over pairs of 1 / n
    pairs: int


def _agents(table: ScoreTable, panel: Floats, error: Floats | None) -> tuple[list[dict[str, Component]], int]:
    """The components that need agents who share cycles, for every name; and how many pairs of agents did."""
    sums = _pair_sums(table, panel)
    unknown = Component(None, None, 0, _ALONE)
    if not sums.pairs or sums.freedom < 1:
        state = _ALONE if not sums.pairs else "undefined: one cycle in each cluster, needs two"
        blank = replace(unknown, state=state)
        return [dict.fromkeys(PARTS[:5], blank) for _ in table.names], sums.pairs
    found = []
    for k in range(panel.shape[1]):
        noise = float(sums.within[k]) / sums.freedom / 2
        cycle = float(sums.within_product[k]) / sums.freedom
        parts = {"cycle": _component(cycle, sums.freedom)}
        parts["residual"] = _residual(noise, None if error is None else float(error[k]), sums.freedom)
        one = replace(unknown, state="undefined: one cluster, needs two")
        parts |= {"cluster": one, "agent x cluster": one}
        reaction = 0.0
        if sums.between_freedom:
            reaction = (float(sums.between[k]) / 2 - sums.between_freedom * noise) / sums.spread
            cluster = (float(sums.between_product[k]) - sums.between_freedom * cycle) / sums.spread
            parts["agent x cluster"] = _component(reaction, sums.between_freedom)
            parts["cluster"] = _component(cluster, sums.between_freedom)
        chance = max(reaction, 0.0) * sums.own + noise * sums.inverse
        parts["agent"] = _component((float(sums.level[k]) / 2 - chance) / sums.pairs, len(table.agents) - 1)
        found.append(parts)
    return found, sums.pairs


def _residual(noise: float, error: float | None, freedom: int) -> Component:
    """What is left of the noise of a panel mean when the judges' share is taken off."""
    if error is None:
        return replace(_component(noise, freedom), state="includes the disagreement of the one judge")
    return _component(noise - error, freedom)


def _pair_sums(table: ScoreTable, panel: Floats) -> _Sums:
    means, present = _cells(table, panel)
    cluster = np.zeros(len(table.cycles), dtype=np.int64)
    cluster[table.cycle] = table.cluster
    width = panel.shape[1]
    zero = (np.zeros(width) for _ in range(5))
    total = _Sums(next(zero), next(zero), 0, next(zero), next(zero), 0, 0.0, next(zero), 0.0, 0.0, 0)
    for a, b in combinations(range(len(table.agents)), 2):
        common = np.flatnonzero(present[a] & present[b])
        if common.size:
            _add_pair(total, means[a, common], means[b, common], cluster[common])
    return total


def _add_pair(total: _Sums, first: Floats, second: Floats, cluster: Ints) -> None:
    """Add one pair's sums over its common cycles [n, K]."""
    _, code, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    n, g = code.size, sizes.size
    x, y = _centred(first, code, sizes), _centred(second, code, sizes)
    total.within += np.square(x.inside - y.inside).sum(axis=0)
    total.within_product += (x.inside * y.inside).sum(axis=0)
    total.freedom += n - g
    weight = sizes[:, None]
    total.between += (weight * np.square(x.outside - y.outside)).sum(axis=0)
    total.between_product += (weight * x.outside * y.outside).sum(axis=0)
    total.between_freedom += g - 1
    squares = float(np.square(sizes).sum())
    total.spread += n - squares / n
    total.level += np.square(first.mean(axis=0) - second.mean(axis=0))
    total.own += squares / n**2
    total.inverse += 1 / n
    total.pairs += 1


@dataclass(frozen=True, slots=True)
class _Centred:
    inside: Floats  # minus the mean of the cluster [n, K]
    outside: Floats  # means of clusters minus the mean [G, K]


def _centred(values: Floats, code: Ints, sizes: Ints) -> _Centred:
    sums = np.stack([np.bincount(code, weights=column, minlength=sizes.size) for column in values.T], axis=1)
    means = sums / sizes[:, None]
    return _Centred(values - means[code], means - values.mean(axis=0))


def _cells(table: ScoreTable, panel: Floats) -> tuple[Floats, Bools]:
    """Mean panel score [A, C, K] of each agent in each cycle, and whether there is one [A, C]."""
    a, c = len(table.agents), len(table.cycles)
    place = table.agent * c + table.cycle
    counts = np.bincount(place, minlength=a * c)
    sums = np.stack([np.bincount(place, weights=column, minlength=a * c) for column in panel.T], axis=1)
    return (sums / np.maximum(counts, 1)[:, None]).reshape(a, c, -1), counts.reshape(a, c) > 0


@dataclass(frozen=True, slots=True)
class _Judges:
    parts: list[dict[str, Component]]
    by_judge: dict[tuple[str, str, str], Component]
    severities: dict[tuple[str, str], float]
    bonuses: dict[tuple[str, str, str], float]
    raw: Floats | None


def _judges(table: ScoreTable, scores: Floats) -> _Judges:
    """Severity, liking, disagreement and trial noise of the judges, for every name."""
    panel = scores.mean(axis=1, keepdims=True)
    severity = (scores - panel).mean(axis=0)
    counts = np.bincount(table.agent, minlength=len(table.agents))
    by_agent = np.zeros((len(table.agents), *severity.shape))
    np.add.at(by_agent, table.agent, scores - panel - severity)
    bonus = by_agent / np.maximum(counts, 1)[:, None, None]
    names, judges = table.names, table.judges
    severities = {
        (judge, name): float(severity[j, k]) for j, judge in enumerate(judges) for k, name in enumerate(names)
    }
    bonuses = {
        (judge, agent, name): float(bonus[a, j, k])
        for j, judge in enumerate(judges)
        for a, agent in enumerate(table.agents)
        for k, name in enumerate(names)
    }
    trial = dict(_trials(table))
    freedom = table.n - int((counts > 0).sum())
    if len(judges) < 2 or freedom < 1:
        state = _ONE_JUDGE if len(judges) < 2 else "undefined: each agent decided once"
        blank = Component(None, None, 0, state)
        by_judge = {("disagreement", judge, name): blank for judge in judges for name in names}
        return _Judges([dict.fromkeys(PARTS[5:], blank) for _ in names], by_judge | trial, severities, bonuses, None)
    within, between, spread = _judge_pairs(table, scores, counts)
    noise = _grubbs(within / freedom, len(judges))
    by_judge = {
        ("disagreement", judge, name): _disagreement(float(noise[j, k]), freedom, len(judges))
        for j, judge in enumerate(judges)
        for k, name in enumerate(names)
    }
    groups = int((counts > 0).sum())
    parts = []
    for k in range(len(names)):
        mean = float(noise[:, k].mean())
        liking = Component(None, None, 0, _ALONE)
        if groups > 1:
            liking = _component((float(between[:, k].mean()) - 2 * (groups - 1) * mean) / spread / 2, groups - 1)
        # Severities are differences of means over all trajectories, whose own noise is taken off.
        judge = float(severity[:, k].var(ddof=1)) - mean / table.n
        parts.append(
            {
                "judge": _component(judge, len(judges) - 1),
                "judge x agent": liking,
                "disagreement": _component(mean, freedom * (len(judges) - 1)),
            }
        )
    return _Judges(parts, by_judge | trial, severities, bonuses, noise)


def _judge_pairs(table: ScoreTable, scores: Floats, counts: Ints) -> tuple[Floats, Floats, float]:
    """Squares of differences of judges within agents and between them [P, K], and the weight of a liking between."""
    pairs = list(combinations(range(scores.shape[1]), 2))
    code = np.unique(table.agent, return_inverse=True)[1].astype(np.int64)
    sizes = counts[counts > 0]
    within, between = [], []
    for a, b in pairs:
        gap = _centred(scores[:, a] - scores[:, b], code, sizes)
        within.append(np.square(gap.inside).sum(axis=0))
        between.append((sizes[:, None] * np.square(gap.outside)).sum(axis=0))
    return np.array(within), np.array(between), table.n - float(np.square(sizes).sum()) / table.n


def _grubbs(variances: Floats, judges: int) -> Floats:
    """Noise of each judge [J, K] from the variances of the differences of all pairs [P, K]; two judges share alike."""
    if judges == 2:
        return np.repeat(variances / 2, 2, axis=0)
    total = variances.sum(axis=0) / (judges - 1)
    own = np.zeros((judges, variances.shape[1]))
    for (a, b), row in zip(combinations(range(judges), 2), variances, strict=True):
        own[a] += row
        own[b] += row
    return np.asarray((own - total) / (judges - 2))


def _disagreement(raw: float, freedom: int, judges: int) -> Component:
    found = _component(raw, freedom)
    return found if judges > 2 else replace(found, state="two judges: half of their disagreement each")


def _trials(table: ScoreTable) -> Iterator[tuple[tuple[str, str, str], Component]]:
    """Noise between trials of each judge on the aggregate; the table does not keep the dimensions of single trials."""
    for judge in table.judges:
        rows = table.trials[judge]
        if rows.shape[1] < 2 or not rows.shape[0]:
            yield ("trial", judge, AGGREGATE), Component(None, None, 0, "not measured: one trial, needs two")
        else:
            freedom = rows.shape[0] * (rows.shape[1] - 1)
            yield ("trial", judge, AGGREGATE), _component(float(rows.var(axis=1, ddof=1).mean()), freedom)
