"""Before any judge is called: what this design can detect, and what it can never conclude."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import (
    EXACT_FLIPS,
    FEW_CLUSTERS,
    Test,
    bootstrap_tests,
    default_resamples,
    gating_test,
    holm,
    smallest_p,
    t_test,
)
from assaymark.metrology.flips import flip_tests
from assaymark.protocol import Study
from assaymark.quantiles import normal_quantile
from assaymark.records import AGGREGATE

_SIMULATED_DRAWS = 4000  # enough for p-values down to 0.05 / 36


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
class ErrorRate:
    """Simulated behaviour of a gating test when all agents are equal.

    ``family_wise`` is the share of simulated studies in which Holm's procedure declares at least one contrast at
    ``alpha``; ``coverage`` the share of single contrasts whose unadjusted test keeps the true value 0.
    """

    family_wise: float
    coverage: float
    studies: int
    contrasts: int


def simulate_error_rate(
    test: Test,
    clusters: int,
    *,
    agents: int = 4,
    dimensions: int = 6,
    alpha: float = 0.05,
    correlation: float = 0.5,
    studies: int = 300,
    rng: np.random.Generator,
) -> ErrorRate:
    """How often a gating test finds an order among equal agents, by simulation.

    Each agent's mean in each cluster is a standard normal draw in each dimension, correlated between dimensions only;
    clusters have equal sizes.

    Parameters
    ----------
    test : "cluster-t", "bootstrap" or "sign-flip"
    clusters, agents, dimensions, studies : int
        Clusters and agents of two or more.
    alpha : float
        Level of Holm's procedure over all C(agents, 2) x dimensions contrasts.
    correlation : float
        Between the dimensions of one agent in one cluster, from 0 up to below 1.
    rng : numpy Generator

    Raises
    ------
    InputError
        Fewer than two clusters or agents, or no study.

    Examples
    --------
    >>> rate = simulate_error_rate("bootstrap", 5, rng=np.random.default_rng(1))
    >>> rate.family_wise > 0.7, rate.contrasts
    (True, 36)
    """
    source = "simulate_error_rate"
    for name, value, least in (("clusters", clusters, 2), ("agents", agents, 2), ("studies", studies, 1)):
        checks.whole(source, name, value, least=least)
    checks.probability(source, "alpha", alpha)
    if not 0 <= correlation < 1:
        checks.fail(source, "correlation", f"must be at least 0 and below 1 (got {correlation!r})")
    a, b = np.array(list(combinations(range(agents), 2))).T
    m = a.size * dimensions
    own = rng.standard_normal((clusters, studies, dimensions, agents))
    shared = rng.standard_normal((clusters, studies, 1, agents))
    draws = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * shared
    sums = (draws[..., a] - draws[..., b]).reshape(clusters, studies * m)
    rows = _null_p(test, sums, rng).reshape(studies, m)
    found = sum(bool((holm(row) <= alpha + 1e-9).any()) for row in rows)
    kept = float(np.mean([row > alpha for row in rows]))
    return ErrorRate(found / studies, kept, studies, m)


def _null_p(test: Test, sums: Floats, rng: np.random.Generator) -> Floats:
    """p-values of all simulated contrasts, which share their resamples."""
    sizes = np.ones(sums.shape[0], dtype=np.int64)
    if test == "cluster-t":
        return t_test(sums, sizes).p
    make = bootstrap_tests if test == "bootstrap" else flip_tests
    return make([(sums, sizes)], resamples=_SIMULATED_DRAWS, rng=rng, level=0.95, intervals=[False])[0].p


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a design can ever conclude.

    ``smallest_adjusted`` holds, for each Holm family that a candidate claim rests on, the smallest adjusted p-value
    that its tests could give on these clusters; a family listed in ``hopeless`` can never reject at ``alpha``. ``mde``
    is in rubric points and None when no two agents share a cycle. ``error_rate`` is simulated when a bootstrap gates
    few clusters. ``warnings`` are sentences for the person who locks the plan.
    """

    gating: str
    resamples: int
    contrasts: int
    smallest_p: float
    smallest_adjusted: dict[str, float]
    hopeless: tuple[str, ...]
    never_met: int
    median_cycles: int
    mde: float | None
    error_rate: ErrorRate | None
    warnings: tuple[str, ...]

    @property
    def can_never_reject(self) -> bool:
        """Whether some family that claims rest on can reject nothing, whatever the judges say."""
        return bool(self.hopeless)


def preflight(
    study: Study,
    n_agents: int,
    dimensions: int,
    clusters_per_pair: ArrayLike,
    cycles_per_pair: ArrayLike,
    *,
    agent_families: Collection[str] = (),
    rng: np.random.Generator,
) -> Preflight:
    """What the locked tests can conclude on these records, before any judge is called.

    Parameters
    ----------
    study : Study
        The plan: gating test, alpha, resamples, candidate claims, judges.
    n_agents, dimensions : int
        Agents under comparison and rubric dimensions.
    clusters_per_pair, cycles_per_pair : int arrays of shape (C(n_agents, 2),)
        Common clusters and common cycles of every pair of agents, 0 for pairs that never met.
    agent_families : collection of names
        Families of the agents, to warn when no judge family stands apart from them.
    rng : numpy Generator
        For the simulated error rate.

    Raises
    ------
    InputError
        Counts that do not fit the number of agents.

    Examples
    --------
    >>> from assaymark.protocol import parse_study
    >>> plan = parse_study('''name = "few draws"
    ... seed = 1
    ... judges = [{name = "a", model = "reference/auditor", family = "north"},
    ...           {name = "b", model = "reference/reader", family = "south"}]
    ... inference = {gating_test = "bootstrap", resamples = 1000}''')
    >>> found = preflight(plan, 4, 6, [12] * 6, [200] * 6, rng=np.random.default_rng(1))
    >>> found.can_never_reject, round(found.smallest_adjusted["dimensions"], 4), round(found.mde, 4)
    (True, 0.0719, 0.2993)
    """
    source = "preflight"
    agents = checks.whole(source, "n_agents", n_agents, least=1)
    scale = checks.whole(source, "dimensions", dimensions, least=1)
    pairs = math.comb(agents, 2)
    clusters = _counts(source, "clusters_per_pair", clusters_per_pair, pairs)
    cycles = _counts(source, "cycles_per_pair", cycles_per_pair, pairs)
    inference, m = study.inference, pairs * scale
    resamples = inference.resamples or default_resamples(max(m, 1), study.claim_alpha)
    tests = [gating_test(inference.gating_test, k) for k in clusters]
    best = np.array([smallest_p(t, k, resamples) for t, k in zip(tests, clusters, strict=True)])
    floor = float(best.min(initial=1.0))
    adjusted = {name: min(1.0, size * floor) for name, size in _families(study, agents, scale)}
    met = cycles[cycles > 0]
    median = int(np.median(met)) if met.size else 0
    few = [k for t, k in zip(tests, clusters, strict=True) if t == "bootstrap" and 2 <= k < FEW_CLUSTERS]
    rate = simulate_error_rate("bootstrap", int(np.median(few)), alpha=study.claim_alpha, rng=rng) if few else None
    hopeless = tuple(name for name, p in adjusted.items() if p > study.claim_alpha + 1e-9)
    return Preflight(
        gating=inference.gating_test,
        resamples=resamples,
        contrasts=m,
        smallest_p=floor,
        smallest_adjusted=adjusted,
        hopeless=hopeless,
        never_met=int((clusters == 0).sum()),
        median_cycles=median,
        mde=planning_mde(study, median, m),
        error_rate=rate,
        warnings=(
            *_flip_warnings(study, dict(_families(study, agents, scale)), hopeless, clusters),
            *_warnings(study, adjusted, hopeless, clusters, few, rate, agent_families),
        ),
    )


def planning_mde(study: Study, n: int, comparisons: int) -> float | None:
    """`minimum_detectable_effect` with the plan's assumptions, or None without any common cycle."""
    if n < 1 or comparisons < 1:
        return None
    plan = study.inference
    return minimum_detectable_effect(
        n, sd=plan.mde_sd, alpha=study.claim_alpha, power=plan.mde_power, comparisons=comparisons
    )


def _families(study: Study, agents: int, dimensions: int) -> Iterable[tuple[str, int]]:
    """The Holm families that candidate claims rest on, with their sizes."""
    pairs, wanted = math.comb(agents, 2), study.claims.dimensions
    if agents > 1 and study.claims.pairs and (wanted is None or set(wanted) - {AGGREGATE}):
        yield "dimensions", pairs * dimensions
    if agents > 1 and study.claims.pairs and (wanted is None or AGGREGATE in wanted):
        yield "aggregate", pairs
    if agents > 1 and study.claims.first:
        yield "first", agents - 1


def _flip_warnings(study: Study, sizes: dict[str, int], hopeless: Sequence[str], clusters: Ints) -> Iterable[str]:
    """Why a sign flip that gates can reject nothing, and how many clusters would let it."""
    most = int(clusters.max(initial=0))
    if study.inference.gating_test != "sign-flip" or not hopeless or not 2 <= most <= EXACT_FLIPS:
        return
    largest = max(hopeless, key=lambda name: sizes[name])
    needed = math.ceil(1 + math.log2(sizes[largest] / study.claim_alpha) - 1e-9)
    yield (
        f"{most} clusters have {2**most} patterns of signs, so no sign flip has a p-value below 2^(1-{most}) = "
        f"{2.0 ** (1 - most):.4g}, and Holm over {sizes[largest]} contrasts needs {needed} common clusters before it "
        f"can reject anything at alpha {study.claim_alpha:g}"
    )


def _warnings(
    study: Study,
    adjusted: dict[str, float],
    hopeless: Sequence[str],
    clusters: Ints,
    few: Sequence[int],
    rate: ErrorRate | None,
    agent_families: Collection[str],
) -> Iterable[str]:
    alpha, families = study.claim_alpha, study.families
    for name in hopeless:
        yield (
            f"the {name} contrasts can never be significant: the smallest p-value after Holm is "
            f"{adjusted[name]:.4f}, above alpha {alpha:g} (more resamples, more clusters or another test can help)"
        )
    if rate is not None:
        yield (
            f"the bootstrap gates {len(few)} pairs with {min(few)} to {max(few)} common clusters; with "
            f"{int(np.median(few))} clusters and 4 equal agents it finds some order in {rate.family_wise:.0%} of "
            f"{rate.studies} simulated studies (aim: {100 * alpha:g} %), and its 95 % intervals keep the truth in "
            f"about {rate.coverage:.0%} of cases"
        )
    if (clusters == 0).any():
        yield f"{int((clusters == 0).sum())} of {clusters.size} pairs of agents never meet: no order between them"
    if (clusters == 1).any():
        yield f"{int((clusters == 1).sum())} pairs share one cluster only, which no test can use"
    if len(families) < 2:
        yield "one judge family: agreement is not measurable, and no order can be claimed"
    elif agent_families and set(families) <= set(agent_families):
        yield "every judge family also has an agent under judgment: no judge stands apart"


def _counts(source: str, name: str, values: ArrayLike, pairs: int) -> Ints:
    found = checks.array(source, name, values)
    if found.shape != (pairs,) or (pairs and (found.dtype.kind not in "iu" or (found < 0).any())):
        checks.fail(source, name, f"must be {pairs} counts, one for each pair of agents (got shape {found.shape})")
    return found.astype(np.int64)
