"""Does a score hang on how a rubric words its anchors? The same records graded twice (ValueBlindBench section 5.6)."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from assaymark.metrology import checks
from assaymark.metrology.cells import measured
from assaymark.metrology.checks import Floats
from assaymark.metrology.contrasts import cluster_t, settle
from assaymark.protocol import Study
from assaymark.quantiles import t_quantile
from assaymark.records import AGGREGATE, JSON, Measurement

Scores = Mapping[str, Mapping[str, float]]
"""Scores by trajectory, then by dimension."""

_ZERO = 1e-9
_SPREAD = "spread ratio: delete-one-cluster jackknife of its logarithm"


def stratified(strata: Mapping[str, tuple[str, str]], size: int, rng: np.random.Generator) -> tuple[str, ...]:
    """A subsample that keeps the shares of agents and clusters.

    Places go to strata in proportion to their sizes (Sainte-Lague divisors), one to each first when there are enough
    for all. Equal strata get their turn in random order, so that no agent is favoured for its name.

    Parameters
    ----------
    strata : mapping of trajectory to (agent, cluster)
    size : int
        Trajectories wanted, from 1; all of them when there are no more than that.
    rng : numpy Generator
        Equal generators draw equal samples, whatever the order of the input.

    Returns
    -------
    tuple of trajectories, sorted

    Raises
    ------
    InputError
        ``size`` is not a whole number from 1.

    Examples
    --------
    >>> strata = {f"{agent}{k}": (agent, "w1") for agent, n in (("ash", 4), ("elm", 2)) for k in range(n)}
    >>> sample = stratified(strata, 3, np.random.default_rng(1))
    >>> len(sample), sum(name.startswith("ash") for name in sample)
    (3, 2)
    """
    left = checks.whole("stratified", "size", size, least=1)
    members: dict[tuple[str, str], list[str]] = defaultdict(list)
    for trajectory in sorted(strata):
        members[strata[trajectory]].append(trajectory)
    names = sorted(members)
    places = dict.fromkeys(names, 1 if left >= len(names) else 0)
    left -= sum(places.values())
    turns = rng.permutation(len(names)).tolist()
    waiting = [_claim(len(members[key]), places[key], turn, key) for key, turn in zip(names, turns, strict=True)]
    heapq.heapify(waiting)
    while left > 0 and waiting:
        _, turn, key = heapq.heappop(waiting)
        if places[key] < len(members[key]):
            places[key], left = places[key] + 1, left - 1
            heapq.heappush(waiting, _claim(len(members[key]), places[key], turn, key))
    drawn = [rng.choice(members[key], size=places[key], replace=False).tolist() for key in names]
    return tuple(sorted(name for found in drawn for name in found))


def _claim(size: int, places: int, turn: int, key: tuple[str, str]) -> tuple[float, int, tuple[str, str]]:
    """How urgently a stratum that holds so many places waits for the next: smallest first."""
    return -size / (2 * places + 1), turn, key


def anchor_measurements(
    before: Scores,
    after: Scores,
    agents: Mapping[str, str],
    clusters: Mapping[str, str],
    changed: frozenset[str],
    judge: str,
    rubric: str,
    study: Study,
) -> Iterator[Measurement]:
    """What changes when one judge grades the same records under another rubric.

    The value is the mean of new minus locked rubric. A shift with a growing spread (``sd_after`` above ``sd_before``)
    means that the new anchors tell records apart that the old ones did not; ``flips`` counts the pairs of agents whose
    order turns. Dimensions whose anchors are the same in both rubrics show what re-grading alone does.

    Parameters
    ----------
    before, after : mapping of trajectory to mapping of dimension to score
        The judge's scores (means over its trials) under the locked and the new rubric. The aggregate is computed here,
        with the weights of the plan.
    agents, clusters : mapping of trajectory to name
    changed : frozenset of str
        Dimensions whose anchors differ.
    judge, rubric : str
        Who graded, and the name of the new rubric.
    study : Study
        Weights and level of the intervals.

    Yields
    ------
    Measurement
        ``anchor.shift`` of the aggregate and each dimension, over the trajectories that have both gradings.

    Raises
    ------
    InputError
        Gradings name different dimensions, or the weights of the plan are not those of the dimensions.
    """
    common = sorted(set(before) & set(after))
    dimensions = sorted({name for scores in before.values() for name in scores} - {AGGREGATE})
    for key in common:
        if {*before[key]} - {AGGREGATE} != {*dimensions} or {*after[key]} - {AGGREGATE} != {*dimensions}:
            checks.fail("anchor_measurements", key, f"both gradings must name {', '.join(dimensions)}")
    old, new = (_with_aggregate(scores, common, dimensions, study) for scores in (before, after))
    owners = [agents[key] for key in common]
    groups = [clusters[key] for key in common]
    for k, name in enumerate((AGGREGATE, *dimensions)):
        detail: dict[str, JSON] = {"judge": judge, "rubric": rubric, "changed": name in changed}
        if k == 0:
            detail["changed"] = bool(changed)
        found = cluster_t(new[:, k] - old[:, k], groups, level=study.inference.level) if common else None
        if found:
            detail |= {"p": found.p, "clusters": found.clusters}
            detail |= _spread(old[:, k], new[:, k], groups, study.inference.level)
            detail |= _orders(old[:, k], new[:, k], owners)
        yield measured(
            "anchor.shift",
            {"dimension": name},
            found,
            study,
            method=f"mean of new minus locked rubric on the same trajectories; {_SPREAD}",
            state="not measured: no trajectory was graded under both rubrics",
            n=len(common),
            n_of="trajectories",
            detail=detail,
        )


def _with_aggregate(scores: Scores, keys: Sequence[str], dimensions: Sequence[str], study: Study) -> Floats:
    """Scores [n, 1 + D] with the weighted mean of the dimensions in front."""
    weights = study.rubric.weights or dict.fromkeys(dimensions, 1.0)
    if keys and (set(weights) != set(dimensions) or sum(weights.values()) <= 0):
        what = f"must be one for each of {', '.join(dimensions)}, not all zero (got {dict(weights)})"
        checks.fail("anchor_measurements", "weights", what)
    if not keys:
        return np.zeros((0, 1 + len(dimensions)))
    found = np.array([[scores[key][name] for name in dimensions] for key in keys], dtype=np.float64)
    share = np.array([weights[name] for name in dimensions]) / sum(weights.values())
    return np.column_stack([found @ share, found])


def _spread(old: Floats, new: Floats, groups: Sequence[str], level: float) -> dict[str, JSON]:
    """Standard deviations before and after, and an interval of their ratio where there is one."""
    found: dict[str, JSON] = {"sd_before": None, "sd_after": None, "sd_ratio_low": None, "sd_ratio_high": None}
    if old.size < 2:
        return found
    names, codes = np.unique(groups, return_inverse=True)
    found |= {"sd_before": float(old.std(ddof=1)), "sd_after": float(new.std(ddof=1))}
    rest = [codes != g for g in range(names.size)]
    if names.size < 2 or min(int(keep.sum()) for keep in rest) < 2:
        return found
    spreads = np.array([[x[keep].std(ddof=1) for x in (old, new)] for keep in (codes >= 0, *rest)])
    if spreads.min() <= _ZERO:
        return found
    logs, g = np.log(spreads[:, 1] / spreads[:, 0]), names.size
    error = np.sqrt((g - 1) / g * np.square(logs[1:] - logs[1:].mean()).sum())
    half = t_quantile(0.5 + level / 2, g - 1) * float(error)
    found |= {"sd_ratio_low": float(np.exp(logs[0] - half)), "sd_ratio_high": float(np.exp(logs[0] + half))}
    return found


def _orders(old: Floats, new: Floats, owners: Sequence[str]) -> dict[str, JSON]:
    """Agents by their mean under each rubric, and the pairs whose order turns; a tie is no order."""
    names, who = np.unique(owners, return_inverse=True)
    counts = np.bincount(who)
    first, second = (np.bincount(who, weights=x) / counts for x in (old, new))
    turns = [
        settle(first[a] - first[b]) * settle(second[a] - second[b]) < 0 for a, b in combinations(range(names.size), 2)
    ]
    return {
        "order_before": _best_first(names.tolist(), first),
        "order_after": _best_first(names.tolist(), second),
        "flips": int(sum(turns)),
    }


def _best_first(names: Sequence[str], levels: Floats) -> list[JSON]:
    """Agents from the highest level down, ties by name."""
    return [str(name) for _, name in sorted(zip((-np.round(levels, 9)).tolist(), names, strict=True))]
