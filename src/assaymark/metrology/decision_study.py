"""Which design finds a difference for the least money: more judges, trials, cycles or clusters (a D-study)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.human_anchor import FEWEST_LABELLED, FEWEST_LABELLED_CLUSTERS, anchor_needed
from assaymark.metrology.moderated import noncentral_tail
from assaymark.metrology.reliability import two_way
from assaymark.quantiles import t_quantile

PARTS = ("agent_cluster", "residual", "judge_agent", "judge_agent_cluster", "disagreement", "trial")
"""Variance components of a score that a contrast of two agents contains, in squared score points."""

MOST_JUDGES, MOST_TRIALS, MOST_CLUSTERS, MOST_CYCLES = 8, 3, 200, 50
"""Of the designs that `dstudy` tries."""

_ASSUMED_R = 0.6
"""Correlation of people's and judges' differences within a cluster, before labels exist."""


@dataclass(frozen=True, slots=True)
class DStudy:
    """The cheapest design with the wanted power; see `dstudy`."""

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


def dstudy_variance(v: Mapping[str, float], G: int, C: int, J: int, T: int, *, random: bool = True) -> float:
    """Variance of a contrast of two agents in a design of so many clusters, cycles, judges and trials. Source: Brennan
    2001."""
    source = "dstudy_variance"
    parts = _components(source, v)
    for name, value in (("G", G), ("C", C), ("J", J), ("T", T)):
        checks.whole(source, name, value, least=1)
    judge, cluster, error = _effects(parts, C, T, random)
    return float(judge / J + cluster / G + error / (J * G))


def generalizability(
    agent: float, v: Mapping[str, float], G: int, C: int, J: int, T: int, *, random: bool = True
) -> float:
    """Generalizability coefficient of agent means: the share of their variance that is the agents' own. Source: Brennan
    2001."""
    if not (math.isfinite(agent) and agent >= 0):
        checks.fail("generalizability", "agent", f"must be a finite number from 0 (got {agent!r})")
    total = agent + dstudy_variance(v, G, C, J, T, random=random) / 2
    if total == 0:
        raise NotMeasurableError("the generalizability coefficient is undefined: agents and errors have no variance")
    return agent / total


@dataclass(frozen=True, slots=True)
class ContrastComponents:
    """Variance components of scores, by scale; see `contrast_components`."""

    v: Mapping[str, Floats]
    of_means: Mapping[str, Floats]
    clusters: float
    cycles: float


def contrast_components(cells: Floats, cluster: Ints, liking: Floats) -> ContrastComponents | None:
    """Variance components of scores that a contrast of two agents contains, by the method of moments."""
    whole: Bools = np.asarray(~np.isnan(cells).any(axis=(2, 3)))
    judges, scales = cells.shape[2:]
    squares, levels, within = np.zeros((3, scales)), np.zeros(scales), np.zeros((2, scales))
    freedom, pairs, clusters, inverse = 0, 0, 0, 0.0
    for a, b in combinations(range(cells.shape[1]), 2):
        common = whole[:, a] & whole[:, b]
        _, starts, code, sizes = np.unique(cluster[common], return_index=True, return_inverse=True, return_counts=True)
        if sizes.size < 2 or judges < 2:
            continue
        gap = cells[common, a] - cells[common, b]
        means = np.add.reduceat(gap, starts) / sizes[:, None, None]
        squares += two_way(means.transpose(2, 1, 0))
        levels += np.square(means.mean(axis=(0, 1)))
        inside = gap - means[code]
        rows = judges * np.square(inside.mean(axis=1)).sum(axis=0)
        within += rows, np.square(inside).sum(axis=(0, 1)) - rows
        freedom += code.size - sizes.size
        pairs, clusters, inverse = pairs + 1, clusters + sizes.size, inverse + float((1 / sizes).mean())
    if not pairs:
        return None
    judge, between, error = squares / pairs
    inverse, size = inverse / pairs, clusters / pairs
    # Differences of two agents have twice the variance of one.
    disagreement = residual = np.full(scales, np.nan)
    if freedom:
        noise = within[1] / (freedom * (judges - 1))
        disagreement, residual = noise / 2, (within[0] / freedom - noise) / (2 * judges)
    reaction, both = (between - error) / (2 * judges), error / 2
    chance = (judge + between - error) / (judges * size)
    known = freedom > 0
    raw = {
        "agent": (levels / pairs - chance) / 2,
        "agent_cluster": reaction - residual * inverse if known else reaction,
        "residual": residual,
        "judge_agent": liking,
        "judge_agent_cluster": both - disagreement * inverse if known else both,
        "disagreement": disagreement,
    }
    none = np.zeros(scales)
    means_of = dict.fromkeys(PARTS, none) | {
        "agent_cluster": np.maximum(reaction, 0.0), "judge_agent": liking, "judge_agent_cluster": both
    }  # fmt: skip
    return ContrastComponents(
        {name: np.maximum(value, 0.0) for name, value in raw.items()}, means_of, size, 1 / inverse
    )


def dstudy(
    v: Mapping[str, float], effect: float, cost: Mapping[str, float], agents: int, *, random: bool = True,
    alpha: float = 0.05, power: float = 0.8, most_clusters: int = MOST_CLUSTERS, most_cycles: int = MOST_CYCLES,
    least: Mapping[str, int] | None = None,
) -> DStudy | None:  # fmt: skip
    """Cheapest design that finds a difference of a given size, of 2 to 8 judges with 1 to 3 trials. Source: Brennan
    2001, Satterthwaite 1946."""
    source = "dstudy"
    parts = _components(source, v)
    prices = {"human": 0.0, **cost}
    if set(prices) != {"record", "call", "human"} or not all(math.isfinite(x) and x >= 0 for x in prices.values()):
        checks.fail(source, "cost", f"must have finite prices from 0 of record, call and perhaps human (got {cost!r})")
    if not (math.isfinite(effect) and effect > 0):
        checks.fail(source, "effect", f"must be a finite number above 0 (got {effect!r})")
    k = checks.whole(source, "agents", agents, least=2)
    checks.probability(source, "alpha", alpha)
    checks.probability(source, "power", power)
    most = {
        "G": checks.whole(source, "most_clusters", most_clusters, least=2),
        "C": checks.whole(source, "most_cycles", most_cycles, least=1),
        "J": MOST_JUDGES,
        "T": MOST_TRIALS,
    }
    first = {"G": 2, "C": 1, "J": 2, "T": 1}
    first |= {name: checks.whole(source, f"least {name}", n, least=first[name]) for name, n in (least or {}).items()}
    sizes = [np.arange(float(n), max(n, most[name]) + 1) for name, n in first.items()]
    g, c, j, t = (axis.ravel() for axis in np.meshgrid(*sizes, indexing="ij"))
    variance, df = _error(parts, g, c, j, t, random)
    total = g * c * k * (prices["record"] + j * t * prices["call"])
    possible = _may_reach(effect, variance, df, alpha, power)
    between = 2 * (parts["agent_cluster"] + parts["judge_agent_cluster"] / j)
    within = 2 * (parts["residual"] + (parts["disagreement"] + parts["trial"] / t) / j)
    if prices["human"]:
        possible &= (g >= FEWEST_LABELLED_CLUSTERS) & (g * c >= FEWEST_LABELLED)
        possible &= _may_reach(effect, between / g + within / (g * c), g - 1, alpha, power)
        total = total + FEWEST_LABELLED * k * prices["human"]
    best: tuple[float, int, float, int | None] | None = None
    # From the least that a design can cost upwards, until no other can be cheaper; of equal ones the sharpest first.
    for i in np.flatnonzero(possible)[np.lexsort((variance[possible], total[possible]))].tolist():
        if best is not None and total[i] >= best[0]:
            break
        reached = _power(effect, float(variance[i]), float(df[i]), alpha)
        if reached < power:
            continue
        labelled, spent = None, float(total[i])
        if prices["human"]:
            cycles, clusters = int(g[i] * c[i]), int(g[i])
            spreads = math.sqrt(within[i]), math.sqrt(between[i])
            labelled = anchor_needed(
                effect, spreads[0], _ASSUMED_R, cycles, clusters, sd_cluster=spreads[1], alpha=alpha, power=power
            )
            if labelled is None:
                continue
            labelled = max(labelled, FEWEST_LABELLED)
            spent += (labelled - FEWEST_LABELLED) * k * prices["human"]
        if best is None or spent < best[0]:
            best = (spent, i, reached, labelled)
    if best is None:
        return None
    spent, i, reached, labelled = best
    size = {"G": int(g[i]), "C": int(c[i]), "J": int(j[i]), "T": int(t[i])}
    return DStudy(
        **size, cost=spent, power=reached, variance=float(variance[i]), df=float(df[i]), labelled=labelled,
        per_cost=variance_per_cost(parts, k, prices, random, **size),
    )  # fmt: skip


def _components(source: str, v: Mapping[str, float]) -> dict[str, float]:
    """The components, if they are those that are needed."""
    if set(v) != set(PARTS) or not all(math.isfinite(x) and x >= 0 for x in v.values()):
        checks.fail(source, "v", f"must have finite variances from 0 of {', '.join(PARTS)} (got {dict(v)!r})")
    return dict(v)


def _effects(
    parts: Mapping[str, float], cycles: Floats | float, trials: Floats | float, random: bool
) -> tuple[float, Floats | float, Floats | float]:
    """Variance of a contrast between judges, between clusters, and of one judge in one cluster."""
    cluster = 2 * (parts["agent_cluster"] + parts["residual"] / cycles)
    error = 2 * (parts["judge_agent_cluster"] + (parts["disagreement"] + parts["trial"] / trials) / cycles)
    return 2 * parts["judge_agent"] if random else 0.0, cluster, error


def _error(
    parts: Mapping[str, float], g: Floats, c: Floats, j: Floats, t: Floats, random: bool
) -> tuple[Floats, Floats]:
    """Variance of a contrast in some designs, and its degrees of freedom."""
    judge, cluster, error = _effects(parts, c, t, random)
    variance = judge / j + cluster / g + error / (j * g)
    df = g - 1
    if random:
        rows, columns = error + g * judge, error + j * cluster  # expected mean squares of judges and clusters
        squares = rows**2 / (j - 1) + columns**2 / (g - 1) + error**2 / ((j - 1) * (g - 1))
        free = (variance * j * g) ** 2 / np.where(squares > 0, squares, 1.0)
        df = np.minimum(df, np.where((judge / j > variance / 2) | (squares == 0), j - 1, free))
    return np.asarray(variance), np.asarray(df)


def design_power(v: Mapping[str, float], effect: float, alpha: float, size: Mapping[str, int], random: bool) -> float:
    """Chance that a design of ``size`` (G, C, J, T) finds an effect; as in `dstudy`."""
    g, c, j, t = (np.array([float(size[name])]) for name in ("G", "C", "J", "T"))
    variance, df = _error(v, g, c, j, t, random)
    return _power(effect, float(variance[0]), float(df[0]), alpha)


def _may_reach(effect: float, variance: Floats, df: Floats, alpha: float, power: float) -> Bools:
    """False where a design cannot have the power; that of the others may still fall short a little."""
    z = special.ndtri([1 - alpha / 2, power])
    with np.errstate(divide="ignore"):
        shift = effect / np.sqrt(variance)
    found = shift >= 0.88 * z.sum()
    df = np.maximum(df[found], 1.0)
    critical = special.stdtrit(df, 1 - alpha / 2)
    needed = critical * (1 - 1 / (4 * df)) + z[1] * np.sqrt(1 + critical**2 / (2 * df))
    found[found] = shift[found] >= (1 - 0.12 / df) * needed
    return np.asarray(found)


def _power(effect: float, variance: float, df: float, alpha: float) -> float:
    if variance == 0:
        return 1.0
    return noncentral_tail(t_quantile(1 - alpha / 2, df), df, effect / math.sqrt(variance))


def variance_per_cost(
    parts: Mapping[str, float], agents: int, prices: Mapping[str, float], random: bool, G: int, C: int, J: int, T: int
) -> dict[str, float | None]:
    """Derivative of the variance by money spent on each part of the design (people's grades aside)."""
    judge = 2 * parts["judge_agent"] / J if random else 0.0
    trial = 2 * parts["trial"] / (J * T * G * C)
    reading = 2 * parts["disagreement"] / (J * G * C) + trial
    liking = judge + 2 * parts["judge_agent_cluster"] / (J * G)
    cycle = 2 * parts["residual"] / (G * C) + reading
    cluster = cycle + 2 * (parts["agent_cluster"] + parts["judge_agent_cluster"] / J) / G
    calls = G * C * agents * J * T * prices["call"]
    whole = G * C * agents * prices["record"] + calls
    # Each part falls as 1/size and its cost grows with the size, which cancels.
    slopes = {"J": (liking + reading, calls), "T": (trial, calls), "C": (cycle, whole), "G": (cluster, whole)}
    return {name: -part / spent if spent else None for name, (part, spent) in slopes.items()}
