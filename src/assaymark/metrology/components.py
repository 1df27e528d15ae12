"""Where the differences between scores come from: agents, clusters, cycles, judges, and chance.

Needed for planning: which of more cycles, more judges and more trials would sharpen a study depends on the part that
is largest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.scores import ScoreTable
from assaymark.records import AGGREGATE

PARTS = ("agent", "cluster", "cycle", "agent x cluster", "residual", "judge", "judge x agent", "disagreement")
"""The components that every table is asked for; ``disagreement`` and ``trial`` are also there for each judge."""

_ALONE = "undefined: one agent, needs two that share cycles"


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
    """Variance components of the scores of a panel, by the method of moments (Searle 1992, Grubbs 1948).

    A panel score is level of the agent + cluster + cycle + agent x cluster + residual, a judge's score that plus the
    judge's severity, its liking of the agent and its disagreement on the trajectory.
    """
    if not table.n:
        raise NotMeasurableError("variance components are undefined: no trajectory has a score from every judge")
    table = averaged(table)
    scores, names, judges, agents = table.stacked, table.names, table.judges, table.agents
    panel = scores.mean(axis=1, keepdims=True)
    severity = (scores - panel).mean(axis=0)
    counts = np.bincount(table.agent, minlength=len(agents))
    by_agent = np.zeros((len(agents), *severity.shape))
    np.add.at(by_agent, table.agent, scores - panel - severity)
    bonus = (by_agent / np.maximum(counts, 1)[:, None, None]).tolist()
    every = [(j, judge, k, name) for j, judge in enumerate(judges) for k, name in enumerate(names)]
    severities = {(judge, name): float(severity[j, k]) for j, judge, k, name in every}
    bonuses = {(judge, one, name): bonus[a][j][k] for j, judge, k, name in every for a, one in enumerate(agents)}
    by_judge: dict[tuple[str, str, str], Component] = {}
    groups = int((counts > 0).sum())
    freedom = table.n - groups
    parts: list[dict[str, Component]] = []
    noise = None
    if len(judges) < 2 or freedom < 1:
        state = "undefined: one judge, needs two" if len(judges) < 2 else "undefined: each agent decided once"
        blank = Component(None, None, 0, state)
        parts = [dict.fromkeys(PARTS[5:], blank) for _ in names]
        by_judge = {("disagreement", judge, name): blank for _, judge, _, name in every}
    else:
        # Squares of differences of judges within agents and between them [P, K], and the weight of a liking between.
        code, sizes = np.unique(table.agent, return_inverse=True)[1].astype(np.int64), counts[counts > 0]
        gaps = [_centred(scores[:, a] - scores[:, b], code, sizes) for a, b in combinations(range(len(judges)), 2)]
        within = np.array([np.square(inside).sum(axis=0) for inside, _ in gaps])
        between = np.array([(sizes[:, None] * np.square(outside)).sum(axis=0) for _, outside in gaps])
        spread = table.n - float(np.square(sizes).sum()) / table.n
        noise = _grubbs(within / freedom, len(judges))
        for j, judge, k, name in every:
            one = _component(float(noise[j, k]), freedom)
            halved = replace(one, state="two judges: half of their disagreement each")
            by_judge["disagreement", judge, name] = one if len(judges) > 2 else halved
        for k in range(len(names)):
            mean = float(noise[:, k].mean())
            liking = Component(None, None, 0, _ALONE)
            if groups > 1:
                liking = _component((float(between[:, k].mean()) - 2 * (groups - 1) * mean) / spread / 2, groups - 1)
            # Severities are differences of means over all trajectories, whose own noise is taken off.
            own = _component(float(severity[:, k].var(ddof=1)) - mean / table.n, len(judges) - 1)
            disagreement = _component(mean, freedom * (len(judges) - 1))
            parts.append({"judge": own, "judge x agent": liking, "disagreement": disagreement})
    for judge in judges:
        # The table does not keep the dimensions of single trials.
        rows, one = table.trials[judge], Component(None, None, 0, "not measured: one trial, needs two")
        if rows.shape[1] > 1 and rows.shape[0]:
            one = _component(float(rows.var(axis=1, ddof=1).mean()), rows.shape[0] * (rows.shape[1] - 1))
        by_judge["trial", judge, AGGREGATE] = one
    of_agents, pairs = _agents(table, panel[:, 0], None if noise is None else noise.sum(axis=0) / len(judges) ** 2)
    found = {(part, name): one for k, name in enumerate(names) for part, one in (of_agents[k] | parts[k]).items()}
    return Components(found, by_judge, severities, bonuses, pairs, len(agents) * (len(agents) - 1) // 2)


def averaged(table: ScoreTable) -> ScoreTable:
    """The table with means over trials as scores, also of judges whose trials a plan would not average."""
    return table if table.mean is None else replace(table, scores=table.mean)


def _component(raw: float, freedom: int) -> Component:
    if raw < 0:
        return Component(0.0, raw, freedom, f"the estimate {raw:.4g} is negative and set to 0")
    return Component(raw, raw, freedom)


def _agents(table: ScoreTable, panel: Floats, error: Floats | None) -> tuple[list[dict[str, Component]], int]:
    """The components that need agents who share cycles, for every name; and how many pairs of agents did.

    From sums over pairs of agents of squares and products of their differences, within clusters and between them.
    """
    a, c, width = len(table.agents), len(table.cycles), panel.shape[1]
    place = table.agent * c + table.cycle
    counts = np.bincount(place, minlength=a * c)
    totals = np.stack([np.bincount(place, weights=column, minlength=a * c) for column in panel.T], axis=1)
    means, present = (totals / np.maximum(counts, 1)[:, None]).reshape(a, c, -1), counts.reshape(a, c) > 0
    cluster = np.zeros(c, dtype=np.int64)
    cluster[table.cycle] = table.cluster
    within, product, between, between_product, level = np.zeros((5, width))
    pairs, freedom, between_freedom, spread, own, inverse = 0, 0, 0, 0.0, 0.0, 0.0
    for one, other in combinations(range(a), 2):
        common = np.flatnonzero(present[one] & present[other])
        if not common.size:
            continue
        first, second = means[one, common], means[other, common]
        _, code, sizes = np.unique(cluster[common], return_inverse=True, return_counts=True)
        n, g, squares = code.size, sizes.size, float(np.square(sizes).sum())
        (x, x_out), (y, y_out) = _centred(first, code, sizes), _centred(second, code, sizes)
        within += np.square(x - y).sum(axis=0)
        product += (x * y).sum(axis=0)
        between += (sizes[:, None] * np.square(x_out - y_out)).sum(axis=0)
        between_product += (sizes[:, None] * x_out * y_out).sum(axis=0)
        level += np.square(first.mean(axis=0) - second.mean(axis=0))
        pairs, freedom, between_freedom = pairs + 1, freedom + n - g, between_freedom + g - 1
        # The weight of a cluster effect between clusters, and what a mean difference keeps of effects and noise.
        spread, own, inverse = spread + n - squares / n, own + squares / n**2, inverse + 1 / n
    if not pairs or freedom < 1:
        state = _ALONE if not pairs else "undefined: one cycle in each cluster, needs two"
        return [dict.fromkeys(PARTS[:5], Component(None, None, 0, state)) for _ in table.names], pairs
    found = []
    for k in range(width):
        noise, cycle, reaction = float(within[k]) / freedom / 2, float(product[k]) / freedom, 0.0
        residual = replace(_component(noise, freedom), state="includes the disagreement of the one judge")
        if error is not None:
            residual = _component(noise - float(error[k]), freedom)
        unknown = Component(None, None, 0, "undefined: one cluster, needs two")
        parts = {"cycle": _component(cycle, freedom), "residual": residual, "cluster": unknown}
        parts["agent x cluster"] = unknown
        if between_freedom:
            reaction = (float(between[k]) / 2 - between_freedom * noise) / spread
            parts["agent x cluster"] = _component(reaction, between_freedom)
            shared = (float(between_product[k]) - between_freedom * cycle) / spread
            parts["cluster"] = _component(shared, between_freedom)
        chance = max(reaction, 0.0) * own + noise * inverse
        parts["agent"] = _component((float(level[k]) / 2 - chance) / pairs, a - 1)
        found.append(parts)
    return found, pairs


def _centred(values: Floats, code: Ints, sizes: Ints) -> tuple[Floats, Floats]:
    """Values minus the mean of their cluster [n, K], and means of clusters minus the mean [G, K]."""
    sums = np.stack([np.bincount(code, weights=column, minlength=sizes.size) for column in values.T], axis=1)
    means = sums / sizes[:, None]
    return values - means[code], means - values.mean(axis=0)


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
