"""Planning: variance components, what a design can detect, and what more cycles, judges or trials would add."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE, minimum_detectable_gap
from assaymark.metrology.panel import agent_effects
from assaymark.metrology.scores import Calls, ScoreTable
from assaymark.metrology.simulation import Composer, Panelist, Spread, Truth
from assaymark.protocol import SCALE, Scale, Study
from assaymark.quantiles import normal_quantile
from assaymark.records import AGGREGATE

PARTS = ("agent", "cluster", "cycle", "agent x cluster", "residual", "judge", "judge x agent", "disagreement")
"""The components that every table is asked for; ``disagreement`` and ``trial`` are also there for each judge."""

_ALONE = "undefined: one agent, needs two that share cycles"


@dataclass(frozen=True, slots=True)
class Component:
    """One source of variance on one name.
    ``variance`` is in squared rubric points and never negative: an estimate below 0 is set to 0, ``raw`` keeps it and
    ``state`` says so. Both are None where the table cannot tell, with the reason as the state. ``freedom`` is how many
    independent comparisons the estimate rests on."""

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
    agents that share cycles, out of ``pairs_of``: the others tell nothing about agents and are not hidden."""

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
    """Variance components of the scores of a panel, by the method of moments (Searle 1992, Grubbs 1948)."""
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
    """The components that need agents who share cycles, for every name; and how many pairs of agents did."""
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


# Before any judge is called: what this design can detect, and what it can never conclude.


def minimum_detectable_effect(
    n: float, *, sd: float = 1.0, alpha: float = 0.05, power: float = 0.8, comparisons: int = 1
) -> float:
    """Smallest mean paired difference that a two-sided z test finds with the stated power.

    ``(z(1 - alpha/2) + z(power)) sd / sqrt(n)``, with ``comparisons`` dividing alpha (ValueBlindBench section 3.9
    prints 0.29 rubric points for an sd of 1 and 80 % power without its n; n = 200 over 36 comparisons gives 0.286).
    A planning number: it takes items as independent, which clusters are not.

    Parameters
    ----------
    n : float
        Number of paired differences, above 0.
    sd : float
        Standard deviation of a paired difference, in score points.
    alpha, power : float
        Two-sided error rate before division, and the chance to find an effect of this size.
    comparisons : int
        How many contrasts share alpha.

    Returns
    -------
    float
        In the unit of ``sd``.

    Raises
    ------
    InputError
        An argument outside its range.

    Examples
    --------
    >>> round(minimum_detectable_effect(200, comparisons=36), 4)
    0.2856
    """
    source = "minimum_detectable_effect"
    for name, value in (("n", n), ("sd", sd)):
        if not (math.isfinite(value) and value > 0):
            checks.fail(source, name, f"must be a finite number above 0 (got {value!r})")
    checks.probability(source, "alpha", alpha)
    checks.probability(source, "power", power)
    m = checks.whole(source, "comparisons", comparisons, least=1)
    return (normal_quantile(1 - alpha / (2 * m)) + normal_quantile(power)) * sd / math.sqrt(n)


@dataclass(frozen=True, slots=True)
class Reach:
    """The smallest true differences that a design finds with the plan's power, in rubric points.
    ``leader`` is for one contrast of an agent that is claimed to rank first (naming it needs all of its contrasts and
    is found less often), ``pair`` for a single pair at the first step of the procedure."""

    leader: float
    pair: float


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a design can ever conclude, before any judge is called; ``hopeless``: what it can never reject."""

    test: str
    clusters: int
    cycles: int
    alpha_aggregate: float
    contrasts: int
    untestable: int
    reach: Reach | None
    reach_borrowed: Reach | None
    reach_half: Reach | None
    conflicted: int
    hopeless: tuple[str, ...]
    warnings: tuple[str, ...]


def preflight(
    study: Study, n_agents: int, dimensions: int, clusters_per_pair: ArrayLike, cycles_per_pair: ArrayLike, *,
    agent_families: Mapping[str, str] | None = None, clusters: Sequence[str] = (),
) -> Preflight:  # fmt: skip
    """What the locked test can conclude on these records, before any judge is called."""
    source = "preflight"
    agents = checks.whole(source, "n_agents", n_agents, least=1)
    scale = checks.whole(source, "dimensions", dimensions, least=1)
    pairs, counts = math.comb(agents, 2), list[Ints]()
    for name, values in (("clusters_per_pair", clusters_per_pair), ("cycles_per_pair", cycles_per_pair)):
        found = checks.array(source, name, values)
        if found.shape != (pairs,) or (pairs and (found.dtype.kind not in "iu" or (found < 0).any())):
            checks.fail(source, name, f"must be {pairs} counts, one for each pair of agents (got shape {found.shape})")
        counts.append(found.astype(np.int64))
    common, inference = counts[0], study.inference
    consecutive = inference.order_of(clusters) == "consecutive"
    least = FEWEST_CONSECUTIVE if consecutive else FEWEST_CLUSTERS
    testable = common >= least
    alpha = inference.alpha * (inference.aggregate_share if scale > 1 and dimensions_claimed(study) else 1.0)
    median, items = (int(np.median(x[testable])) if testable.any() else 0 for x in counts)
    own, families = {} if agent_families is None else dict(agent_families), set(study.families)
    conflicted = sum(bool({own.get(one), own.get(other)} & families) for one, other in combinations(sorted(own), 2))
    borrows = inference.test == "moderated-t" and not consecutive
    hopeless = ("orders",) if pairs and not testable.any() and (study.claims.first or study.claims.pairs) else ()
    # Degrees of freedom that a pair borrows where all variances are equal.
    nu, most = median - 1, 0.0
    if agents > 2 and nu > 0:
        fade = min(1.0, (median - FEWEST_CLUSTERS) / 2) * min(1.0, (5 / nu) ** 2)
        most = 0.5 * nu * max(0.0, agents - 1 - 1.5) * fade

    def reach(share: int, borrowed: float) -> Reach | None:
        """Smallest gaps with one in ``share`` of the clusters and so many borrowed degrees of freedom."""
        if median // share < FEWEST_CLUSTERS or items // share < 1 or agents < 2:
            return None
        # Clusters in time order count as independent here: before data nothing is known of their correlation.
        df = (median // share // 2 if consecutive else median // share) - 1 + borrowed
        se, power = inference.mde_sd / math.sqrt(items // share), inference.mde_power
        return Reach(*(minimum_detectable_gap(se, df, x, power) for x in detectable_levels(agents, alpha)))

    warnings, kind = list[str](), " that follow each other in time" if consecutive else ""
    few, none = int((~testable & (common > 0)).sum()), int((common == 0).sum())
    if common.size and not testable.any():
        top = int(common.max())
        warnings.append(
            f"this study cannot rank agents: {top} common cluster{'s' * (top != 1)}, {least}{kind} are needed"
        )
    elif few:
        warnings.append(
            f"{few} of {common.size} pairs of agents cannot be tested: fewer than {least} common clusters{kind}"
        )
    if none:
        warnings.append(f"{none} of {common.size} pairs of agents share no cycle: they cannot be ranked")
    if testable.any() and common[testable].min() <= 5:
        warnings.append(f"few clusters ({int(common[testable].min())}): the test rests on normal errors")
    if len(families) < 2:
        warnings.append("one judge family: agreement is not measurable, and no order can be claimed")
    elif own and families <= set(own.values()):
        warnings.append("every judge family also has an agent under judgment: no judge is without an interest")
    return Preflight(
        inference.test, median, items, alpha, pairs * scale, int((~testable).sum()), reach(1, 0.0),
        reach(1, most) if borrows else None, reach(2, 0.0) if median // 2 >= least else None, conflicted, hopeless,
        tuple(warnings),
    )  # fmt: skip


def dimensions_claimed(study: Study) -> bool:
    """Whether the plan makes claims about dimensions, which then share alpha with the aggregate."""
    wanted = study.claims.dimensions
    return wanted is None or bool(set(wanted) - {AGGREGATE})


def detectable_levels(agents: int, alpha: float) -> tuple[float, float]:
    """Levels at which one contrast of a leader, and a single pair at the first step, are tested."""
    pairs = max(1, math.comb(agents, 2))
    if agents <= 3:
        return alpha / pairs, alpha / pairs
    return alpha / 2, alpha / 2 / pairs


def planning_mde(study: Study, n: int, comparisons: int) -> float | None:
    """`minimum_detectable_effect` with the plan's assumptions, or None without any common cycle."""
    if n < 1 or comparisons < 1:
        return None
    plan = study.inference
    return minimum_detectable_effect(n, sd=plan.mde_sd, alpha=plan.alpha, power=plan.mde_power, comparisons=comparisons)


_ROUNDING = 1 / 12  # variance that rounding to whole scores adds when the noise before it is not far below half a point
_DIGEST = "simulated"


def fitted_truth(table: ScoreTable, components: Components, scale: Scale = SCALE) -> Truth:
    """A truth that would give tables like this one: what planning simulates from."""
    table = averaged(table)
    absent = [name for a, name in enumerate(table.agents) if not (table.agent == a).any()]
    if absent:
        raise NotMeasurableError(f"levels are undefined: no scored trajectory of {', '.join(absent)}")
    columns = (agent_effects(column, table.agent, table.cycle).levels for column in table.scores.mean(axis=1).T)
    levels = np.clip(np.array(list(columns)).T, *scale).tolist()
    counts, cycles = np.bincount(table.agent, minlength=len(table.agents)), len(table.cycles)
    composers = tuple(
        Composer(agent, tuple(level), attendance=min(1.0, float(n) / cycles), tokens=1000.0)
        for agent, level, n in zip(table.agents, levels, counts, strict=True)
    )
    trials = np.array([max(1, table.trials[judge].shape[1]) for judge in table.judges])
    sums = table.scores * trials[:, None]
    rounding = _ROUNDING if np.abs(sums - np.rint(sums)).max() < 1e-6 else 0.0  # every call gave whole scores
    # Likings on the aggregate count with the share of their variance that is not noise.
    liking = components.part("judge x agent").sd ** 2
    chance = components.part("disagreement").sd ** 2 / np.maximum(counts, 1)
    kept = liking / (liking + chance) if liking > 0 else np.zeros(len(table.agents))
    share, panel = float(np.square(table.weights).sum()), []
    for judge, family, asked in zip(table.judges, table.families, trials.tolist(), strict=True):
        trial = components.judge("trial", judge).sd ** 2 / share
        # Where calls repeat each other exactly, rounding errors repeat too and are not averaged out.
        off = max(trial, rounding) / asked
        noise = {name: components.judge("disagreement", judge, name).sd ** 2 for name in table.names}
        left = {name: max(0.0, value - off * (share if name == AGGREGATE else 1.0)) for name, value in noise.items()}
        bonus = tuple(
            (agent, float(kept[a]) * components.bonuses[judge, agent, AGGREGATE])
            for a, agent in enumerate(table.agents)
        )
        judged = Panelist(
            judge, family, severity=components.severities[judge, AGGREGATE], bonus=bonus,
            disagreement=_spread(table, left), trials=asked,
            trial_noise=Spread(math.sqrt(max(0.0, trial - rounding)), 0.0),
        )  # fmt: skip
        panel.append(judged)
    cluster, cycle, interaction, residual = (
        _spread(table, {name: components.part(part, name).sd ** 2 for name in table.names})
        for part in ("cluster", "cycle", "agent x cluster", "residual")
    )
    clusters = len(table.clusters)
    return Truth(composers, tuple(panel), table.dimensions, clusters, max(1, round(cycles / clusters)), cluster, cycle,
                 interaction, residual, weights=tuple(table.weights.tolist()), scale=scale,
                 rounded=rounding > 0)  # fmt: skip


def _spread(table: ScoreTable, variance: Mapping[str, float]) -> Spread:
    """Sizes on each dimension, and the correlation that gives the variance of the aggregate too."""
    sd = np.sqrt([variance[name] for name in table.dimensions])
    alone = float(np.square(table.weights * sd).sum())
    together = float((table.weights * sd).sum()) ** 2 - alone
    correlation = (variance[AGGREGATE] - alone) / together if together > 1e-12 else 0.0
    return Spread(tuple(sd.tolist()), min(1.0, max(0.0, correlation)))


def drawn_truth(table: ScoreTable, truth: Truth, components: Components, rng: np.random.Generator) -> Truth:
    """The fitted truth with levels as uncertain as these records leave them."""
    counts = np.bincount(table.agent, minlength=len(table.agents))
    met = np.unique(np.stack([table.agent, table.cluster]), axis=1)[0]
    clusters = np.bincount(met, minlength=len(table.agents))
    a, d, judges = len(table.agents), len(table.dimensions), len(table.judges)
    own = truth.residual.draw(rng, (a,), d)
    own += sum(noise_of(judge).draw(rng, (a,), d) for judge in truth.panel) / judges
    noise = truth.interaction.draw(rng, (a,), d) / np.sqrt(clusters)[:, None] + own / np.sqrt(counts)[:, None]
    # The share of the differences between agents' aggregates that is not sampling error.
    kept, agents = 1.0, components.part("agent").variance
    if agents is not None:
        one = components.part("residual").sd ** 2 + components.part("disagreement").sd ** 2 / judges
        error = components.part("agent x cluster").sd ** 2 * float(np.mean(1 / clusters))
        error += one * float(np.mean(1 / counts))
        kept = agents / (agents + error) if agents else 0.0
    centre = truth.means.mean(axis=0)
    levels = np.clip(centre + kept * (truth.means - centre) + math.sqrt(kept) * noise, *truth.scale)
    composers = (replace(one, means=tuple(row)) for one, row in zip(truth.composers, levels.tolist(), strict=True))
    return replace(truth, composers=tuple(composers))


def noise_of(judge: Panelist) -> Spread:
    """All noise of a judge's mean score of one trajectory."""
    trial = np.square(np.asarray(judge.trial_noise.sd, dtype=np.float64)) / judge.trials
    sd = np.sqrt(np.square(np.asarray(judge.disagreement.sd, dtype=np.float64)) + trial)
    return Spread(tuple(np.atleast_1d(sd).tolist()) if sd.ndim else float(sd), judge.disagreement.correlation)


def joined(table: ScoreTable, more: ScoreTable, rng: np.random.Generator) -> ScoreTable:
    """Records with those of new cycles, in new clusters, below them."""
    for what in ("agents", "judges", "dimensions"):
        if getattr(table, what) != getattr(more, what):
            raise InputError("joined", [Problem(what, "must be the same in both tables")])
    trials = {
        judge: np.concatenate([rows, more.trials[judge]]) if rows.shape[1] == more.trials[judge].shape[1] else rows
        for judge, rows in table.trials.items()
    }
    # Each new record has a format that its agent used before.
    formats = np.zeros(more.agent.size, dtype=np.int64)
    for a in np.unique(more.agent):
        used, rows = table.format[table.agent == a], more.agent == a
        formats[rows] = rng.choice(used, int(rows.sum())) if used.size else 0

    def below(upper: Floats | None, lower: Floats | None) -> Floats | None:
        """Two blocks of scores; where the lower one had no repeated trials, its single ones."""
        return None if upper is None else np.concatenate([upper, more.scores if lower is None else lower])

    trajectories, cycles, clusters = (
        (*getattr(table, part), *(f"new/{name}" for name in getattr(more, part)))
        for part in ("trajectories", "cycles", "clusters")
    )
    return replace(
        table, trajectories=trajectories, agent=np.concatenate([table.agent, more.agent]), cycles=cycles,
        cycle=np.concatenate([table.cycle, more.cycle + len(table.cycles)]), clusters=clusters,
        cluster=np.concatenate([table.cluster, more.cluster + len(table.clusters)]),
        format=np.concatenate([table.format, formats]), scores=np.concatenate([table.scores, more.scores]),
        trials=trials, lengths=None, digest=_DIGEST, mean=below(table.mean, more.mean),
        first=below(table.first, more.first) if table.mean is not None else None,
    )  # fmt: skip


def with_judge(
    table: ScoreTable, truth: Truth, components: Components, name: str, family: str, rng: np.random.Generator
) -> ScoreTable:
    """Records with the scores of one more judge, as noisy as the average of the panel and asked once."""
    if name in table.judges:
        raise InputError("with_judge", [Problem("name", f"must be a new one (got {name!r})")])
    a, d = len(table.agents), len(table.dimensions)
    size = np.sqrt([components.part("judge x agent", dimension).sd ** 2 for dimension in table.dimensions])
    liking = Spread(tuple(size.tolist()), 1.0).draw(rng, (a,), d)
    once = [noise_of(replace(judge, trials=1)) for judge in truth.panel]
    sd = np.sqrt(np.mean([_variance(one, len(truth.dimensions)) for one in once], axis=0))
    # What each trajectory is worth [n, D], drawn from what the panel's mean says about it.
    quality_d = len(table.dimensions)
    level = truth.means[table.agent]
    parts = (truth.cluster, truth.cycle, truth.interaction, truth.residual)
    true = np.sum([_variance(part, quality_d) for part in parts], axis=0)
    noise = np.sum([_variance(noise_of(judge), quality_d) for judge in truth.panel], axis=0) / len(truth.panel) ** 2
    reliable = true / np.maximum(true + noise, 1e-12)
    left = Spread(tuple(np.sqrt(true * (1 - reliable)).tolist()), truth.residual.correlation)
    seen = (
        np.asarray(level + reliable * (table.scores.mean(axis=1) - level) + left.draw(rng, (table.n,), quality_d))
        + liking[table.agent]
        + Spread(tuple(sd.tolist()), float(np.mean([one.correlation for one in once]))).draw(rng, (table.n,), d)
    )
    scores = truth.given(seen)
    place = sorted((*table.judges, name)).index(name)

    def beside(block: Floats | None) -> Floats | None:
        return None if block is None else np.insert(block, place, scores, axis=1)

    wider = beside(table.scores)
    assert wider is not None
    return replace(
        table, judges=(*table.judges[:place], name, *table.judges[place:]),
        families=(*table.families[:place], family, *table.families[place:]), scores=wider, mean=beside(table.mean),
        first=beside(table.first), trials={**table.trials, name: (scores @ table.weights)[:, None]},
        calls={**table.calls, name: Calls(table.n, 0, 0)}, replicates={},
        repeats=None if table.repeats is None else {}, lengths=None, digest=_DIGEST,
    )  # fmt: skip


def _variance(part: Spread, dimensions: int) -> Floats:
    return np.broadcast_to(np.square(np.asarray(part.sd, dtype=np.float64)), (dimensions,))


def with_trials(table: ScoreTable, truth: Truth, judge: str, extra: int, rng: np.random.Generator) -> ScoreTable:
    """Records with more trials of one judge on every trajectory."""
    j, n, d = table.judges.index(judge), table.n, len(table.dimensions)
    planted, old, level = truth.panel[j], table.scores[:, j], truth.means[table.agent]
    # What the judge would say without noise between trials [n, D], given its own scores and those of the others.
    own, rest = old - level - planted.severity, np.delete(table.scores, j, axis=1)
    others = rest.mean(axis=1) - level if rest.shape[1] else np.zeros_like(own)
    call = (_variance(planted.trial_noise, d) + _ROUNDING) / planted.trials
    guess, left = np.empty_like(own), np.empty(d)
    for k in range(d):
        seen = np.stack([own[:, k], others[:, k]])
        spread = seen @ seen.T / n
        wanted = spread[0] - [min(float(call[k]), float(spread[0, 0])), 0.0]
        weight = np.linalg.pinv(spread) @ wanted
        guess[:, k] = weight @ seen
        left[k] = math.sqrt(max(0.0, float(wanted[0] - weight @ wanted)))
    reading = level + planted.severity + guess + Spread(tuple(left.tolist()), 0.0).draw(rng, (n,), d)

    def more(trials: int) -> Floats:
        return truth.given(reading[:, None] + planted.trial_noise.draw(rng, (n, trials), d))

    calls, before = more(extra), table.trials[judge]
    if before.shape[0] != n:  # some trials were not usable, and nobody says of which trajectories
        before = more(planted.trials) @ table.weights
    scores = table.scores.copy()
    scores[:, j] = (planted.trials * old + calls.sum(axis=1)) / (planted.trials + extra)
    trials = {**table.trials, judge: np.concatenate([before, calls @ table.weights], axis=1)}
    first = table.scores if table.first is None else table.first
    return replace(table, scores=scores, mean=scores, first=first, trials=trials, lengths=None, digest=_DIGEST)
