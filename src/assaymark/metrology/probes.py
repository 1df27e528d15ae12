"""Do agents do better on what they may have been trained on? Clusters after the cutoff against earlier ones."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy import special

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import cluster_t, settle
from assaymark.metrology.controls import measured
from assaymark.metrology.effects import group_sums
from assaymark.metrology.scores import ScoreTable
from assaymark.protocol import Study
from assaymark.quantiles import t_quantile
from assaymark.records import AGGREGATE, JSON, Measurement

# Does a score hang on how a rubric words its anchors? The same records graded twice (ValueBlindBench section 5.6).


Scores = Mapping[str, Mapping[str, float]]
"""Scores by trajectory, then by dimension."""

_ZERO = 1e-9
_SPREAD = "spread ratio: delete-one-cluster jackknife of its logarithm"


def stratified(strata: Mapping[str, tuple[str, str]], size: int, rng: np.random.Generator) -> tuple[str, ...]:
    """A subsample that keeps the shares of agents and clusters."""
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
    """What changes when one judge grades the same records under another rubric."""
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


# The outside judge: when it is asked, about which pairs, and what it says (ValueBlindBench sections 3.5 and 5.2).


_TOLERANCE = 1e-9  # 0.9 from ranks is not always 0.9 in binary floats

Pair = tuple[str, str, str]
"""Dimension, the agent that stands higher with the whole panel, and the one that stands lower."""


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """Whether the outside judge has to be asked, about which pairs, and why.

    ``pairs`` are all that some drop reverses or levels; ``rho`` is each family's smallest rank correlation over the
    claimed dimensions (None where it is undefined), reached on the dimension in ``worst``.
    """

    pairs: tuple[Pair, ...]
    rho: Mapping[str, float | None]
    needed: bool
    reason: str
    worst: Mapping[str, str] = field(default_factory=dict)


def contested(measurements: Iterable[Measurement], study: Study) -> ProbePlan:
    """What the outside judge has to look at, from the drops of the main panel."""
    found = [m for m in measurements if _claimed(study, m.labels.get("dimension"))]
    resolved = {_pair(m) for m in found if m.name == "contrast" and m.detail.get("resolved")}
    drops = [m for m in found if m.name == "lofo.contrast" and m.value is not None]
    turned = tuple(dict.fromkeys(_pair(m) for m in drops if m.value is not None and m.value <= 0))
    rho: dict[str, float | None] = {m.labels["dropped"]: None for m in found if m.name == "lofo.rho"}
    worst: dict[str, str] = {}
    for m in found:
        if m.name == "lofo.rho" and m.value is not None:
            so_far = rho[m.labels["dropped"]]
            if so_far is None or m.value < so_far:
                rho[m.labels["dropped"]], worst[m.labels["dropped"]] = m.value, m.labels["dimension"]
    limit = study.stability.rho
    low = [
        f"without {name} rho is {r:.2g} on {worst[name]}"
        for name, r in rho.items()
        if r is not None and r < limit - _TOLERANCE
    ]
    lost = [
        f"{high} above {lower} on {dimension}"
        for dimension, high, lower in turned
        if (dimension, high, lower) in resolved
    ]
    if low:
        reason = f"{'; '.join(low)}: below {limit:g}"
    elif lost:
        reason = f"a drop reverses what the panel resolves: {'; '.join(lost)}"
    elif not drops and not worst:
        reason = "no judge family could be left out"
    else:
        reason = f"no drop brings rho below {limit:g} or reverses a resolved contrast"
    return ProbePlan(turned, rho, bool(low or lost), reason, worst)


def _claimed(study: Study, dimension: str | None) -> bool:
    return dimension is not None and (study.claims.dimensions is None or dimension in study.claims.dimensions)


def _pair(m: Measurement) -> Pair:
    return m.labels["dimension"], m.labels["high"], m.labels["low"]


def probe_measurements(
    plan: ProbePlan,
    scores: Mapping[str, Mapping[str, float]],
    agents: Mapping[str, str],
    cycles: Mapping[str, str],
    clusters: Mapping[str, str],
    study: Study,
) -> Iterator[Measurement]:
    """What the outside judge says about the contested pairs."""
    judge = study.stability.probe
    asked = bool(scores)
    if not plan.needed:
        state = f"not needed: {plan.reason}"
    elif study.stability.probe is None:
        state = f"not committed: the plan names no outside judge, and {plan.reason}"
    else:
        state = "ok" if asked else f"not measured: {study.stability.probe.name} has given no usable score"
    yield Measurement(
        name="probe.state",
        labels={},
        value=float(len(plan.pairs)) if state == "ok" else None,
        n=len(scores),
        n_of="trajectories",
        method="pairs that some drop reverses or levels",
        state=state,
        detail={"pairs": [list(pair) for pair in plan.pairs], "rho": dict(plan.rho), "reason": plan.reason},
    )
    if state != "ok" or judge is None:
        return
    for dimension, high, low in plan.pairs:
        sides = [_by_cycle(scores, agents, cycles, dimension, agent) for agent in (high, low)]
        common = sorted(sides[0].keys() & sides[1].keys())
        where = {cycles[key]: clusters[key] for key in scores}
        gaps = np.array([sides[0][cycle] - sides[1][cycle] for cycle in common])
        groups = [where[cycle] for cycle in common]
        found = cluster_t(gaps, groups, level=study.inference.level) if common else None
        detail: dict[str, JSON] = {"p": found.p if found else None, "judge": judge.name, "family": judge.family}
        names, codes = np.unique(groups, return_inverse=True)
        sums, counts = np.bincount(codes, weights=gaps), np.bincount(codes)
        detail["cluster_sums"] = {str(name): [float(s), int(n)] for name, s, n in zip(names, sums, counts, strict=True)}
        yield measured(
            "probe.contrast",
            {"dimension": dimension, "high": high, "low": low},
            found,
            study,
            method="mean paired difference within common cycles, outside judge",
            state="never compared",
            n=len(common),
            n_of="common cycles",
            detail=detail,
        )


def _by_cycle(
    scores: Mapping[str, Mapping[str, float]],
    agents: Mapping[str, str],
    cycles: Mapping[str, str],
    dimension: str,
    agent: str,
) -> dict[str, float]:
    """One agent's mean score of each cycle on one dimension."""
    found: dict[str, list[float]] = defaultdict(list)
    for key in sorted(scores):
        if agents[key] == agent and dimension in scores[key]:
            found[cycles[key]].append(scores[key][dimension])
    return {cycle: float(np.mean(values)) for cycle, values in found.items()}


_UNPLANNED = "not measured: the plan names no post-cutoff clusters"
_METHOD = "panel score after the cutoff minus earlier, within agents"


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference between two sets of clusters. ``low`` and ``high`` are None where no interval can be given."""

    difference: float
    low: float | None
    high: float | None
    p: float
    method: str


def contamination_measurements(
    table: ScoreTable, study: Study, instruments: Mapping[str, frozenset[str]]
) -> Iterator[Measurement]:
    """``contamination.gap``: the panel's mean score after the cutoff minus before, of all records and by instrument."""
    if study.contamination is None:
        yield _gap(table, study, "all", np.zeros(table.n, dtype=bool), [], _UNPLANNED)
        return
    about = [instruments.get(key, frozenset()) for key in table.trajectories]
    post = _post(table, study)
    names = sorted(frozenset().union(*about))
    within = {name: np.array([name in own for own in about], dtype=bool) for name in names}
    absent = [name for name in names if not (within[name] & post).any() or not (within[name] & ~post).any()]
    yield _gap(table, study, "all", np.ones(table.n, dtype=bool), absent)
    for name in names:
        yield _gap(table, study, f"instrument:{name}", within[name], [name] if name in absent else [])


def cluster_gap(scores: Floats, agents: Ints, clusters: Ints, post: Bools, *, level: float = 0.95) -> Gap:
    """Difference between two sets of clusters within agents, tested between clusters."""
    weight, settled = _freed(scores, agents, post)
    found = group_sums(np.stack([weight, weight * settled], axis=1), clusters, int(clusters.max()) + 1)
    used = found[found[:, 0] != 0]
    shares, means = used[:, 0], used[:, 1] / used[:, 0]
    sides = [(shares[part], means[part]) for part in (shares > 0, shares < 0)]
    difference = float(weight @ scores)
    difference = 0.0 if abs(difference) <= _ZERO else difference
    counts = [share.size for share, _ in sides]
    if max(counts) < 2:
        return Gap(difference, None, None, 1.0, "one cluster on each side cannot be tested, p = 1")
    df = sum(share.size for share, _ in sides) - 2
    pooled = sum(float(np.square(mean - mean.mean()).sum()) for _, mean in sides) / df
    variance, df = pooled * sum(float(share @ share) for share, _ in sides), df
    if variance <= _ZERO**2:
        p = 1.0 if difference == 0 else 1 / math.comb(sum(counts), counts[0])
        return Gap(difference, None, None, p, "clusters do not vary: share of the ways to choose the later ones")
    error = math.sqrt(variance)
    half = t_quantile(0.5 + level / 2, df) * error
    p = 2 * float(special.stdtr(df, -abs(difference) / error))
    method = f"two-sample t over cluster means, pooled, t({df}), {counts[0]} against {counts[1]} clusters"
    return Gap(difference, difference - half, difference + half, p, method)


def _freed(scores: Floats, agents: Ints, post: Bools) -> tuple[Floats, Floats]:
    """Weight of each record in the gap, 1 in total after the cutoff and -1 before, and scores without agent levels."""
    size = int(agents.max()) + 1
    later, earlier = (np.bincount(agents[side], minlength=size) for side in (post, ~post))
    both = later * earlier / np.maximum(later + earlier, 1)
    share = both / both.sum()
    weight = np.where(post, (share / np.maximum(later, 1))[agents], -(share / np.maximum(earlier, 1))[agents])
    sums = np.bincount(agents, weights=scores - post * float(weight @ scores), minlength=size)
    return weight, scores - (sums / np.maximum(later + earlier, 1))[agents]


def _post(table: ScoreTable, study: Study) -> Bools:
    """Which records lie in a post-cutoff cluster."""
    named = study.contamination.post_cutoff if study.contamination else ()
    later = np.array([name in named for name in table.clusters], dtype=bool)
    return np.asarray(later[table.cluster], dtype=bool) if table.n else np.zeros(0, dtype=bool)


def _gap(
    table: ScoreTable, study: Study, split: str, rows: Bools, absent: list[str], state: str | None = None
) -> Measurement:
    """One split's gap, or the state that says why there is none."""
    post = _post(table, study) & rows
    earlier = rows & ~_post(table, study)
    agent = table.agent
    on_both = np.intersect1d(agent[post], agent[earlier])
    used = rows & np.isin(agent, on_both)
    counts: dict[str, JSON] = {
        "n_post": int((post & used).sum()),
        "n_earlier": int((earlier & used).sum()),
        "clusters_post": int(np.unique(table.cluster[post & used]).size),
        "clusters_earlier": int(np.unique(table.cluster[earlier & used]).size),
        "absent": list(absent),
        "one_sided": [table.agents[a] for a in np.setdiff1d(agent[rows], on_both).tolist()],
    }
    state = state or _contamination_state(table, study, post, earlier, used)
    gap = None
    if state is None:
        scores = table.stacked[used].mean(axis=1)[:, 0]
        codes = np.unique(agent[used], return_inverse=True)[1]
        gap = cluster_gap(scores, codes, table.cluster[used], post[used], level=study.inference.level)
    known = gap is not None and gap.low is not None
    return Measurement(
        name="contamination.gap",
        labels={"dimension": AGGREGATE, "split": split},
        value=gap.difference if gap else None,
        n=int(used.sum()),
        n_of="trajectories",
        method=f"{_METHOD}; {gap.method}" if gap else _METHOD,
        state=state or "ok",
        low=gap.low if gap else None,
        high=gap.high if gap else None,
        level=study.inference.level if known else None,
        unit="rubric points",
        inputs=table.digest,
        detail={"p": gap.p if gap else None, **counts},
    )


def _contamination_state(table: ScoreTable, study: Study, post: Bools, earlier: Bools, used: Bools) -> str | None:
    """Why there is no gap, or None."""
    if not table.n:
        return "not measurable: no trajectory has a usable score from every judge"
    if not post.any():
        named = study.contamination.post_cutoff if study.contamination else ()
        return f"not measurable: no record after the cutoff (clusters {', '.join(named)})"
    if not earlier.any():
        return "not measurable: no record before the cutoff"
    if not used.any():
        return "not measurable: no agent has records on both sides of the cutoff"
    return None
