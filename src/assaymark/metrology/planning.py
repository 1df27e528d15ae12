"""Before any judge is called: what this design can detect, and what it can never conclude."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Ints
from assaymark.metrology.detectable import minimum_detectable_gap
from assaymark.metrology.moderated import FEWEST_CLUSTERS
from assaymark.metrology.serial import FEWEST_CONSECUTIVE
from assaymark.protocol import Study
from assaymark.quantiles import normal_quantile
from assaymark.records import AGGREGATE


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
    is found less often), ``pair`` for a single pair at the first step of the procedure.
    """

    leader: float
    pair: float


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a design can ever conclude, before any judge is called.

    Attributes
    ----------
    test : str
        The test of the plan.
    clusters, cycles : int
        Medians over the pairs of agents, of their common clusters and cycles.
    alpha_aggregate : float
        Level of the orders on the aggregate.
    contrasts : int
        Pairs of agents on all dimensions.
    untestable : int
        Pairs with too few common clusters for any test.
    reach : Reach or None
        With each pair's own variance, the most that can be promised; None where no pair can be tested.
    reach_borrowed : Reach or None
        With as many degrees of freedom borrowed from the other pairs as the test ever borrows; None where it cannot.
    reach_half : Reach or None
        With half the clusters.
    conflicted : int
        Pairs in which a judge shares a family with one of the two agents.
    hopeless : tuple of str
        Kinds of claims that can never be supported.
    warnings : tuple of str
        Sentences for the person who locks the plan.
    """

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

    @property
    def can_never_reject(self) -> bool:
        """Whether no order can be supported, whatever the judges say."""
        return bool(self.hopeless)


def preflight(
    study: Study,
    n_agents: int,
    dimensions: int,
    clusters_per_pair: ArrayLike,
    cycles_per_pair: ArrayLike,
    *,
    agent_families: Mapping[str, str] | None = None,
    clusters: Sequence[str] = (),
) -> Preflight:
    """What the locked test can conclude on these records, before any judge is called.

    The smallest gaps take the plan's ``inference.mde_sd`` for the standard deviation of a paired difference in one
    cycle, with cycles independent of each other; where cycles of a cluster resemble each other they are larger.

    Parameters
    ----------
    study : Study
        The plan: test, alpha, candidate claims, judges.
    n_agents, dimensions : int
        Agents under comparison and rubric dimensions.
    clusters_per_pair, cycles_per_pair : int arrays of shape (C(n_agents, 2),)
        Common clusters and common cycles of every pair of agents, 0 for pairs that never met.
    agent_families : mapping of agent to family, optional
        To count pairs with a conflict of interest, and to warn when no judge stands apart from the agents.
    clusters : names of the clusters, optional
        Which say whether clusters follow each other in time, where the plan does not.

    Raises
    ------
    InputError
        Counts that do not fit the number of agents.

    Examples
    --------
    >>> from assaymark.protocol import parse_study
    >>> plan = parse_study('''name = "few clusters"
    ... seed = 1
    ... judges = [{name = "a", model = "reference/auditor", family = "north"},
    ...           {name = "b", model = "reference/reader", family = "south"}]''')
    >>> found = preflight(plan, 4, 6, [12] * 6, [200] * 6)
    >>> found.can_never_reject, round(found.reach.leader, 3), round(found.reach.pair, 3)
    (False, 0.256, 0.333)
    >>> preflight(plan, 4, 6, [2] * 6, [200] * 6).hopeless
    ('orders',)
    """
    source = "preflight"
    agents = checks.whole(source, "n_agents", n_agents, least=1)
    scale = checks.whole(source, "dimensions", dimensions, least=1)
    pairs = math.comb(agents, 2)
    common = _counts(source, "clusters_per_pair", clusters_per_pair, pairs)
    cycles = _counts(source, "cycles_per_pair", cycles_per_pair, pairs)
    inference = study.inference
    consecutive = inference.order_of(clusters) == "consecutive"
    least = FEWEST_CONSECUTIVE if consecutive else FEWEST_CLUSTERS
    testable = common >= least
    shared = scale > 1 and dimensions_claimed(study)
    alpha = inference.alpha * (inference.aggregate_share if shared else 1.0)
    median, items = (int(np.median(x[testable])) if testable.any() else 0 for x in (common, cycles))
    own = {} if agent_families is None else dict(agent_families)
    conflicted = sum(
        bool({own.get(one), own.get(other)} & set(study.families)) for one, other in combinations(sorted(own), 2)
    )
    borrows = inference.test == "moderated-t" and not consecutive
    hopeless = ("orders",) if pairs and not testable.any() and (study.claims.first or study.claims.pairs) else ()
    return Preflight(
        test=inference.test,
        clusters=median,
        cycles=items,
        alpha_aggregate=alpha,
        contrasts=pairs * scale,
        untestable=int((~testable).sum()),
        reach=_reach(study, agents, alpha, median, items, 0.0, consecutive),
        reach_borrowed=_reach(study, agents, alpha, median, items, _most_borrowed(agents, median), consecutive)
        if borrows
        else None,
        reach_half=_reach(study, agents, alpha, median // 2, items // 2, 0.0, consecutive)
        if median // 2 >= least
        else None,
        conflicted=conflicted,
        hopeless=hopeless,
        warnings=tuple(_warnings(study, common, least, consecutive, own.values())),
    )


def _reach(
    study: Study, agents: int, alpha: float, clusters: int, cycles: int, borrowed: float, consecutive: bool
) -> Reach | None:
    """Smallest gaps with so many clusters and borrowed degrees of freedom."""
    if clusters < FEWEST_CLUSTERS or cycles < 1 or agents < 2:
        return None
    # Clusters in time order count as independent here: before data nothing is known of their correlation.
    df = (clusters // 2 if consecutive else clusters) - 1 + borrowed
    se = study.inference.mde_sd / math.sqrt(cycles)
    leader, pair = detectable_levels(agents, alpha)
    power = study.inference.mde_power
    return Reach(*(minimum_detectable_gap(se, df, level, power=power) for level in (leader, pair)))


def _most_borrowed(agents: int, clusters: int) -> float:
    """Degrees of freedom that a pair borrows where all variances are equal."""
    nu = clusters - 1
    if agents < 3 or nu < 1:
        return 0.0
    fade = min(1.0, (clusters - FEWEST_CLUSTERS) / 2) * min(1.0, (5 / nu) ** 2)
    return 0.5 * nu * max(0.0, agents - 1 - 1.5) * fade


def dimensions_claimed(study: Study) -> bool:
    """Whether the plan makes claims about dimensions, which then share alpha with the aggregate."""
    wanted = study.claims.dimensions
    return wanted is None or bool(set(wanted) - {AGGREGATE})


def detectable_levels(agents: int, alpha: float) -> tuple[float, float]:
    """Levels at which one contrast of a leader, and a single pair at the first step, are tested.

    >>> detectable_levels(4, 0.05), detectable_levels(2, 0.05)
    ((0.025, 0.004166666666666667), (0.05, 0.05))
    """
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


def _warnings(
    study: Study, clusters: Ints, least: int, consecutive: bool, agent_families: Collection[str]
) -> Iterator[str]:
    kind = " that follow each other in time" if consecutive else ""
    if clusters.size and not (clusters >= least).any():
        most = int(clusters.max())
        yield f"this study cannot rank agents: {most} common clusters{kind}, {least} are needed"
    elif (few := int(((clusters < least) & (clusters > 0)).sum())) > 0:
        yield f"{few} of {clusters.size} pairs of agents cannot be tested: fewer than {least} common clusters{kind}"
    if (clusters == 0).any():
        yield f"{int((clusters == 0).sum())} of {clusters.size} pairs of agents share no cycle: they cannot be ranked"
    tested = clusters[clusters >= least]
    if tested.size and tested.min() <= 5:
        yield f"few clusters ({int(tested.min())}): the test rests on normal errors"
    if len(study.families) < 2:
        yield "one judge family: agreement is not measurable, and no order can be claimed"
    elif agent_families and set(study.families) <= set(agent_families):
        yield "every judge family also has an agent under judgment: no judge is without an interest"


def _counts(source: str, name: str, values: ArrayLike, pairs: int) -> Ints:
    found = checks.array(source, name, values)
    if found.shape != (pairs,) or (pairs and (found.dtype.kind not in "iu" or (found < 0).any())):
        checks.fail(source, name, f"must be {pairs} counts, one for each pair of agents (got shape {found.shape})")
    return found.astype(np.int64)
