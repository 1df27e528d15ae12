"""Study design: variance components, power of a design, and the cheapest design for an effect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks, measure_people, reliability
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import minimum_detectable_gap, noncentral_tail
from assaymark.metrology.orders import dimensions_claimed
from assaymark.metrology.panel import cell_sums
from assaymark.metrology.scores import ScoreTable
from assaymark.plan import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE
from assaymark.protocol import Study
from assaymark.quantiles import normal_quantile, t_quantile
from assaymark.records import AGGREGATE

PARTS = ("agent", "cluster", "cycle", "agent x cluster", "residual", "judge", "judge x agent", "disagreement")
"""The variance components of a table; ``disagreement`` and ``trial`` also exist for each judge."""

_ALONE = "undefined: one agent, needs two that share cycles"


@dataclass(frozen=True, slots=True)
class Component:
    """One source of variance on one name.
    ``variance`` is in squared rubric points and never negative: an estimate below 0 is set to 0, kept in ``raw``, and
    noted in ``state``. Both are None if the table does not identify them, with the reason as the state. ``freedom`` is
    the number of independent comparisons behind the estimate."""

    variance: float | None
    raw: float | None
    freedom: int
    state: str = "ok"

    @property
    def sd(self) -> float:
        """Standard deviation in rubric points, 0 if the variance is unknown."""
        return 0.0 if self.variance is None else math.sqrt(self.variance)


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of a score table, by part and name (the aggregate, then every dimension).
    ``severities`` are each judge's mean minus the panel's, ``bonuses`` a judge's mean of one agent less the judge's
    severity and the panel's mean of the agent; both by name. ``pairs`` is the number of pairs of agents that share
    cycles, out of ``pairs_of``; the other pairs carry no information about agents."""

    parts: Mapping[tuple[str, str], Component]
    by_judge: Mapping[tuple[str, str, str], Component]
    severities: Mapping[tuple[str, str], float]
    bonuses: Mapping[tuple[str, str, str], float]
    pairs: int
    pairs_of: int

    def part(self, name: str, dimension: str = AGGREGATE) -> Component:
        """Return one of `PARTS` on the aggregate or a dimension."""
        return self.parts[name, dimension]

    def judge(self, name: str, judge: str, dimension: str = AGGREGATE) -> Component:
        """Return ``disagreement`` or ``trial`` of one judge."""
        return self.by_judge[name, judge, dimension]


def variance_components(table: ScoreTable) -> Components:
    """Estimate the variance components of a panel's scores by the method of moments (Searle 1992, Grubbs 1948)."""
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
    bonuses = {(judge, agent, name): bonus[a][j][k] for j, judge, k, name in every for a, agent in enumerate(agents)}
    by_judge, parts, noise = dict[tuple[str, str, str], Component](), list[dict[str, Component]](), None
    groups = int((counts > 0).sum())
    freedom = table.n - groups
    if len(judges) < 2 or freedom < 1:
        state = "undefined: one judge, needs two" if len(judges) < 2 else "undefined: each agent decided once"
        blank = Component(None, None, 0, state)
        parts = [dict.fromkeys(PARTS[5:], blank) for _ in names]
        by_judge = {("disagreement", judge, name): blank for _, judge, _, name in every}
    else:
        # Squared differences of judges within agents and between agents [P, K], and the weight of a bonus between them.
        code, sizes = np.unique(table.agent, return_inverse=True)[1].astype(np.int64), counts[counts > 0]
        pairs = [*combinations(range(len(judges)), 2)]
        gaps = [_centred(scores[:, a] - scores[:, b], code, sizes) for a, b in pairs]
        within = np.array([np.square(inside).sum(axis=0) for inside, _ in gaps])
        between = np.array([(sizes[:, None] * np.square(outside)).sum(axis=0) for _, outside in gaps])
        spread = table.n - float(np.square(sizes).sum()) / table.n
        # Each judge's noise [J, K] from the differences that it is in; two judges share theirs equally.
        variances, in_pair = (
            within / freedom,
            np.array([[float(j in pair) for pair in pairs] for j in range(len(judges))]),
        )
        noise = np.repeat(variances / 2, 2, axis=0)
        if len(judges) > 2:
            noise = (in_pair @ variances - variances.sum(axis=0) / (len(judges) - 1)) / (len(judges) - 2)
        for j, judge, k, name in every:
            component = _component(float(noise[j, k]), freedom)
            halved = replace(component, state="two judges: half of their disagreement each")
            by_judge["disagreement", judge, name] = component if len(judges) > 2 else halved
        for k in range(len(names)):
            mean = float(noise[:, k].mean())
            liking = Component(None, None, 0, _ALONE)
            if groups > 1:
                liking = _component((float(between[:, k].mean()) - 2 * (groups - 1) * mean) / spread / 2, groups - 1)
            # Severities are differences of means over all trajectories; the noise of these means is subtracted.
            severity_part = _component(float(severity[:, k].var(ddof=1)) - mean / table.n, len(judges) - 1)
            disagreement = _component(mean, freedom * (len(judges) - 1))
            parts.append({"judge": severity_part, "judge x agent": liking, "disagreement": disagreement})
    for judge in judges:
        # The table does not store the dimensions of single trials.
        rows, component = table.trials[judge], Component(None, None, 0, "not measured: one trial, needs two")
        if rows.shape[1] > 1 and rows.shape[0]:
            component = _component(float(rows.var(axis=1, ddof=1).mean()), rows.shape[0] * (rows.shape[1] - 1))
        by_judge["trial", judge, AGGREGATE] = component
    of_agents, met = _agents(table, panel[:, 0], None if noise is None else noise.sum(axis=0) / len(judges) ** 2)
    by_part = {(part, name): one for k, name in enumerate(names) for part, one in (of_agents[k] | parts[k]).items()}
    return Components(by_part, by_judge, severities, bonuses, met, len(agents) * (len(agents) - 1) // 2)


def averaged(table: ScoreTable) -> ScoreTable:
    """Return the table with trial means as scores, also for judges whose trials a plan would not average."""
    return table if table.mean is None else replace(table, scores=table.mean)


def _component(raw: float, freedom: int) -> Component:
    if raw < 0:
        return Component(0.0, raw, freedom, f"the estimate {raw:.4g} is negative and set to 0")
    return Component(raw, raw, freedom)


def _agents(table: ScoreTable, panel: Floats, error: Floats | None) -> tuple[list[dict[str, Component]], int]:
    """Estimate the components that need agents with common cycles, by name; also return the number of such pairs."""
    a, width, cluster = len(table.agents), panel.shape[1], table.cycle_clusters
    cells, counts = cell_sums(panel, table.agent, table.cycle, cluster.size, a)
    means, present = cells / np.maximum(counts, 1)[:, :, None], counts > 0
    within, product, between, between_product, level = np.zeros((5, width))
    pairs, freedom, between_freedom, spread, inside, inverse = 0, 0, 0, 0.0, 0.0, 0.0
    for agent, other in combinations(range(a), 2):
        common = np.flatnonzero(present[:, agent] & present[:, other])
        if not common.size:
            continue
        first, second = means[common, agent], means[common, other]
        _, code, sizes = np.unique(cluster[common], return_inverse=True, return_counts=True)
        n, g, squares = code.size, sizes.size, float(np.square(sizes).sum())
        (x, x_out), (y, y_out) = _centred(first, code, sizes), _centred(second, code, sizes)
        within += np.square(x - y).sum(axis=0)
        product += (x * y).sum(axis=0)
        between += (sizes[:, None] * np.square(x_out - y_out)).sum(axis=0)
        between_product += (sizes[:, None] * x_out * y_out).sum(axis=0)
        level += np.square(first.mean(axis=0) - second.mean(axis=0))
        pairs, freedom, between_freedom = pairs + 1, freedom + n - g, between_freedom + g - 1
        # The weight of a cluster effect between clusters, and the shares of effects and noise in a mean difference.
        spread, inside, inverse = spread + n - squares / n, inside + squares / n**2, inverse + 1 / n
    if not pairs or freedom < 1:
        state = _ALONE if not pairs else "undefined: one cycle in each cluster, needs two"
        return [dict.fromkeys(PARTS[:5], Component(None, None, 0, state)) for _ in table.names], pairs
    components = []
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
        chance = max(reaction, 0.0) * inside + noise * inverse
        parts["agent"] = _component((float(level[k]) / 2 - chance) / pairs, a - 1)
        components.append(parts)
    return components, pairs


def _centred(values: Floats, code: Ints, sizes: Ints) -> tuple[Floats, Floats]:
    """Return values minus their cluster's mean [n, K], and cluster means minus the overall mean [G, K]."""
    sums = np.stack([np.bincount(code, weights=column, minlength=sizes.size) for column in values.T], axis=1)
    means = sums / sizes[:, None]
    return values - means[code], means - values.mean(axis=0)


# Power before any judge is called: the effects that this design can detect, and the claims it can never support.


def minimum_detectable_effect(
    n: float, *, sd: float = 1.0, alpha: float = 0.05, power: float = 0.8, comparisons: int = 1
) -> float:
    """Compute the smallest mean paired difference that a two-sided z test detects with the given power.

    ``(z(1 - alpha/2) + z(power)) sd / sqrt(n)``, with ``comparisons`` dividing alpha (ValueBlindBench section 3.9
    prints 0.29 rubric points for an sd of 1 and 80 % power without its n; n = 200 over 36 comparisons gives 0.286).
    A planning value: it treats items as independent, which items of one cluster are not.

    Parameters
    ----------
    n : float
        Number of paired differences, above 0.
    sd : float
        Standard deviation of a paired difference, in score points.
    alpha, power : float
        Two-sided error rate before division, and the power for an effect of this size.
    comparisons : int
        Number of contrasts that share alpha.

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
    m = checks.integer(source, "comparisons", comparisons, least=1)
    return (normal_quantile(1 - alpha / (2 * m)) + normal_quantile(power)) * sd / math.sqrt(n)


@dataclass(frozen=True, slots=True)
class Reach:
    """The smallest true differences that a design detects with the plan's power, in rubric points.
    ``leader`` is for one contrast of an agent claimed to rank first (the claim needs all of its contrasts and so has
    less power), ``pair`` for a single pair at the first step of the procedure."""

    leader: float
    pair: float


@dataclass(frozen=True, slots=True)
class Preflight:
    """The power of a design before any judge is called; ``hopeless`` lists hypotheses that it can never reject."""

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
    """Compute the power of the locked test on these records, before any judge is called."""
    source = "preflight"
    agents = checks.integer(source, "n_agents", n_agents, least=1)
    scale = checks.integer(source, "dimensions", dimensions, least=1)
    pairs, counts = math.comb(agents, 2), list[Ints]()
    for name, values in (("clusters_per_pair", clusters_per_pair), ("cycles_per_pair", cycles_per_pair)):
        array = checks.array(source, name, values)
        if array.shape != (pairs,) or (pairs and (array.dtype.kind not in "iu" or (array < 0).any())):
            checks.fail(source, name, f"must be {pairs} counts, one for each pair of agents (got shape {array.shape})")
        counts.append(array.astype(np.int64))
    common, inference = counts[0], study.inference
    consecutive = inference.order_of(clusters) == "consecutive"
    least = FEWEST_CONSECUTIVE if consecutive else FEWEST_CLUSTERS
    testable = common >= least
    alpha = inference.level_of(AGGREGATE, scale > 1 and dimensions_claimed(study))
    median, items = (int(np.median(x[testable])) if testable.any() else 0 for x in counts)
    own, families = {} if agent_families is None else dict(agent_families), set(study.families)
    conflicted = sum(bool({own.get(first), own.get(other)} & families) for first, other in combinations(sorted(own), 2))
    borrows = inference.test == "moderated-t" and not consecutive
    hopeless = ("orders",) if pairs and not testable.any() and (study.claims.first or study.claims.pairs) else ()
    # Degrees of freedom that a pair borrows if all variances are equal.
    nu, most = median - 1, 0.0
    if agents > 2 and nu > 0:
        fade = min(1.0, (median - FEWEST_CLUSTERS) / 2) * min(1.0, (5 / nu) ** 2)
        most = 0.5 * nu * max(0.0, agents - 1 - 1.5) * fade

    def reach(share: int, borrowed: float) -> Reach | None:
        """Compute the detectable differences with 1/``share`` of the clusters and the borrowed degrees of freedom."""
        if median // share < FEWEST_CLUSTERS or items // share < 1 or agents < 2:
            return None
        # Clusters in time order count as independent, because their correlation is unknown before the data.
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
        warnings.append("one judge family: agreement is not measurable, and no ranking can be claimed")
    elif own and families <= set(own.values()):
        warnings.append("every judge family also has an agent under judgment: no judge is without an interest")
    return Preflight(
        inference.test, median, items, alpha, pairs * scale, int((~testable).sum()), reach(1, 0.0),
        reach(1, most) if borrows else None, reach(2, 0.0) if median // 2 >= least else None, conflicted, hopeless,
        tuple(warnings),
    )  # fmt: skip


def detectable_levels(agents: int, alpha: float) -> tuple[float, float]:
    """Return the test levels of one contrast of a leader and of a single pair at the first step."""
    pairs = max(1, math.comb(agents, 2))
    if agents <= 3:
        return alpha / pairs, alpha / pairs
    return alpha / 2, alpha / 2 / pairs


def planning_mde(study: Study, n: int, comparisons: int) -> float | None:
    """Compute `minimum_detectable_effect` with the plan's assumptions; None without a common cycle."""
    if n < 1 or comparisons < 1:
        return None
    plan = study.inference
    return minimum_detectable_effect(n, sd=plan.mde_sd, alpha=plan.alpha, power=plan.mde_power, comparisons=comparisons)


# The cheapest design of clusters, cycles, judges and trials that detects a difference.

MOST_JUDGES, MOST_TRIALS, MOST_CLUSTERS, MOST_CYCLES = 8, 3, 200, 50
"""The upper bounds of the designs that `dstudy` searches."""


@dataclass(frozen=True, slots=True)
class DStudy:
    """The cheapest design with the required power; see `dstudy`."""

    G: int
    C: int
    J: int
    T: int
    cost: float
    power: float
    variance: float
    df: float
    labelled: int | None
    per_cost: Mapping[str, float | None]


def dstudy(
    v: Mapping[str, float], effect: float, cost: Mapping[str, float], agents: int, random: bool = True,
    *, alpha: float = 0.05, power: float = 0.8, most_clusters: int = MOST_CLUSTERS, most_cycles: int = MOST_CYCLES,
    least: Mapping[str, int] | None = None, human_alpha: float | None = None,
) -> DStudy | None:  # fmt: skip
    """Find the cheapest design that detects a given difference, with 2 to 8 judges and 1 to 3 trials (Brennan 2001,
    Satterthwaite 1946). Human labels confirm it at ``human_alpha``, by default the level of the judges' test."""
    source, human_alpha = "dstudy", alpha if human_alpha is None else human_alpha
    parts = reliability.components_of(source, v)
    prices = {"human": 0.0, **cost}
    if set(prices) != {"record", "call", "human"} or not all(math.isfinite(x) and x >= 0 for x in prices.values()):
        checks.fail(source, "cost", f"must have finite prices from 0 of record, call and perhaps human (got {cost!r})")
    if not (math.isfinite(effect) and effect > 0):
        checks.fail(source, "effect", f"must be a finite number above 0 (got {effect!r})")
    k = checks.integer(source, "agents", agents, least=2)
    for name, value in (("alpha", alpha), ("human_alpha", human_alpha), ("power", power)):
        checks.probability(source, name, value)
    most = {"J": MOST_JUDGES, "T": MOST_TRIALS, "G": checks.integer(source, "most_clusters", most_clusters, least=2),
            "C": checks.integer(source, "most_cycles", most_cycles, least=1)}  # fmt: skip
    first = {"G": 2, "C": 1, "J": 2, "T": 1}
    first |= {name: checks.integer(source, f"least {name}", n, least=first[name]) for name, n in (least or {}).items()}
    sizes = [np.arange(float(n), max(n, most[name]) + 1) for name, n in first.items()]
    g, c, j, t = (axis.ravel() for axis in np.meshgrid(*sizes, indexing="ij"))
    variance, df = _error(parts, g, c, j, t, random)
    total = g * c * k * (prices["record"] + j * t * prices["call"])
    possible = _may_reach(effect, variance, df, alpha, power)
    between = 2 * (parts["agent_cluster"] + parts["judge_agent_cluster"] / j)
    within = 2 * (parts["residual"] + (parts["disagreement"] + parts["trial"] / t) / j)
    fewest = measure_people.FEWEST_LABELLED
    if prices["human"]:
        possible &= (g >= measure_people.FEWEST_LABELLED_CLUSTERS) & (g * c >= fewest)
        possible &= _may_reach(effect, between / g + within / (g * c), g - 1, human_alpha, power)
        total = total + fewest * k * prices["human"]
    best: tuple[float, int, float, int | None] | None = None
    # By ascending minimum cost, until no other design can be cheaper; of equally cheap ones the most precise first.
    for i in np.flatnonzero(possible)[np.lexsort((variance[possible], total[possible]))].tolist():
        if best is not None and total[i] >= best[0]:
            break
        reached = _power(effect, float(variance[i]), float(df[i]), alpha)
        if reached < power:
            continue
        labelled, spent = None, float(total[i])
        if prices["human"]:
            labelled = measure_people.anchor_needed(
                effect, math.sqrt(within[i]), measure_people.ASSUMED_R, int(g[i] * c[i]), int(g[i]),
                math.sqrt(between[i]), human_alpha, power,
            )  # fmt: skip
            if labelled is None:
                continue
            labelled = max(labelled, fewest)
            spent += (labelled - fewest) * k * prices["human"]
        if best is None or spent < best[0]:
            best = (spent, i, reached, labelled)
    if best is None:
        return None
    spent, i, reached, labelled = best
    size = int(g[i]), int(c[i]), int(j[i]), int(t[i])
    per_cost = variance_per_cost(parts, k, prices, random, *size)
    return DStudy(*size, spent, reached, float(variance[i]), float(df[i]), labelled, per_cost)


def _error(
    parts: Mapping[str, float], g: Floats, c: Floats, j: Floats, t: Floats, random: bool
) -> tuple[Floats, Floats]:
    """Compute the variance of a contrast in each design, and its degrees of freedom."""
    judge, cluster, error = reliability.effects_of(parts, c, t, random)
    variance = judge / j + cluster / g + error / (j * g)
    df = g - 1
    if random:
        rows, columns = error + g * judge, error + j * cluster  # expected mean squares of judges and clusters
        squares = rows**2 / (j - 1) + columns**2 / (g - 1) + error**2 / ((j - 1) * (g - 1))
        free = (variance * j * g) ** 2 / np.where(squares > 0, squares, 1.0)
        df = np.minimum(df, np.where((judge / j > variance / 2) | (squares == 0), j - 1, free))
    return np.asarray(variance), np.asarray(df)


def design_power(v: Mapping[str, float], effect: float, alpha: float, size: Mapping[str, int], random: bool) -> float:
    """Compute the power of a design of ``size`` (G, C, J, T) to detect an effect, as in `dstudy`."""
    g, c, j, t = (np.array([float(size[name])]) for name in ("G", "C", "J", "T"))
    variance, df = _error(v, g, c, j, t, random)
    return _power(effect, float(variance[0]), float(df[0]), alpha)


def _may_reach(effect: float, variance: Floats, df: Floats, alpha: float, power: float) -> Bools:
    """Return False for designs that cannot have the power; a True design may still fall slightly short of it."""
    z = scipy.special.ndtri([1 - alpha / 2, power])
    with np.errstate(divide="ignore"):
        shift = effect / np.sqrt(variance)
    reached = shift >= 0.88 * z.sum()
    df, at = np.unique(np.maximum(df[reached], 1.0), return_inverse=True)  # the quantile dominates the cost
    critical = scipy.special.stdtrit(df, 1 - alpha / 2)
    needed = critical * (1 - 1 / (4 * df)) + z[1] * np.sqrt(1 + critical**2 / (2 * df))
    reached[reached] = shift[reached] >= ((1 - 0.12 / df) * needed)[at]
    return np.asarray(reached)


def _power(effect: float, variance: float, df: float, alpha: float) -> float:
    if variance == 0:
        return 1.0
    return noncentral_tail(t_quantile(1 - alpha / 2, df), df, effect / math.sqrt(variance))


def variance_per_cost(
    parts: Mapping[str, float], agents: int, prices: Mapping[str, float], random: bool, G: int, C: int, J: int, T: int
) -> dict[str, float | None]:
    """Compute the derivative of the variance with respect to spending on each part of the design, without labels."""
    judge = 2 * parts["judge_agent"] / J if random else 0.0
    trial = 2 * parts["trial"] / (J * T * G * C)
    reading = 2 * parts["disagreement"] / (J * G * C) + trial
    liking = judge + 2 * parts["judge_agent_cluster"] / (J * G)
    cycle = 2 * parts["residual"] / (G * C) + reading
    cluster = cycle + 2 * (parts["agent_cluster"] + parts["judge_agent_cluster"] / J) / G
    calls = G * C * agents * J * T * prices["call"]
    total = G * C * agents * prices["record"] + calls
    # Each part decreases as 1/size and its cost increases with size, so that size cancels.
    slopes = {"J": (liking + reading, calls), "T": (trial, calls), "C": (cycle, total), "G": (cluster, total)}
    return {name: -part / spent if spent else None for name, (part, spent) in slopes.items()}
