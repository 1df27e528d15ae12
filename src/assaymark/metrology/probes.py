"""Checks of the panel: rubric-wording ablation, held-out judge, training cutoff, and an oracle of known scores."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology import checks
from assaymark.metrology.bootstrap import bootstrap_kappa, jackknife_kappa
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.comparisons import natural
from assaymark.metrology.contrasts import Contrast, cluster_t, snap_to_zero
from assaymark.metrology.controls import measured
from assaymark.metrology.estimates import NEVER, NO_SCORES, POINTS, group_sums, number, state_of
from assaymark.metrology.kappa import contingency, kappa_of_table
from assaymark.metrology.measure_panel import categories_of
from assaymark.metrology.panel import RESAMPLES
from assaymark.metrology.scores import ScoreTable
from assaymark.plan import TOLERANCE
from assaymark.protocol import SCALE, Study
from assaymark.quantiles import t_quantile
from assaymark.records import AGGREGATE, JSON, Measurement

Scores = Mapping[str, Mapping[str, float]]
"""Scores by trajectory, then by dimension."""

_ZERO = 1e-9


def stratified(strata: Mapping[str, tuple[str, str]], size: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Draw a subsample of trajectories that keeps the shares of their strata (agent, cluster)."""
    remaining = checks.integer("stratified", "size", size, least=1)
    members: dict[tuple[str, str], list[str]] = defaultdict(list)
    for trajectory in sorted(strata):
        members[strata[trajectory]].append(trajectory)
    names = sorted(members)
    places = dict.fromkeys(names, 1 if remaining >= len(names) else 0)
    remaining -= sum(places.values())
    turns = dict(zip(names, rng.permutation(len(names)).tolist(), strict=True))
    waiting = [(-len(members[key]) / (2 * places[key] + 1), turns[key], key) for key in names]
    heapq.heapify(waiting)
    while remaining > 0 and waiting:
        _, turn, key = heapq.heappop(waiting)
        if places[key] < len(members[key]):
            places[key], remaining = places[key] + 1, remaining - 1
            heapq.heappush(waiting, (-len(members[key]) / (2 * places[key] + 1), turn, key))
    drawn = [rng.choice(members[key], size=places[key], replace=False).tolist() for key in names]
    return tuple(sorted(name for names in drawn for name in names))


def anchor_measurements(
    before: Scores, after: Scores, agents: Mapping[str, str], clusters: Mapping[str, str], changed: frozenset[str],
    judge: str, rubric: str, study: Study,
) -> Iterator[Measurement]:  # fmt: skip
    """Measure ``anchor.shift``: new minus locked rubric, if one judge grades the same records twice (section 5.6)."""
    source, common = "anchor_measurements", sorted(set(before) & set(after))
    dimensions = sorted({name for scores in before.values() for name in scores} - {AGGREGATE})
    for key in common:
        if {*before[key]} - {AGGREGATE} != {*dimensions} or {*after[key]} - {AGGREGATE} != {*dimensions}:
            checks.fail(source, key, f"both gradings must name {', '.join(dimensions)}")
    weights = study.rubric.weights or dict.fromkeys(dimensions, 1.0)
    if common and (set(weights) != set(dimensions) or sum(weights.values()) <= 0):
        problem = f"must be one for each of {', '.join(dimensions)}, not all zero (got {dict(weights)})"
        checks.fail(source, "weights", problem)
    method = "mean of new minus locked rubric on the same trajectories; "
    method += "spread ratio: delete-one-cluster jackknife of its logarithm"
    groups, level, contrast = [clusters[key] for key in common], study.inference.level, None
    if common:
        share = np.array([weights[name] for name in dimensions]) / sum(weights.values())
        tables = (
            np.array([[scores[key][name] for name in dimensions] for key in common], dtype=np.float64)
            for scores in (before, after)
        )
        both = [np.column_stack([table @ share, table]) for table in tables]
        names, agent_codes = np.unique([agents[key] for key in common], return_inverse=True)
        codes = np.unique(groups, return_inverse=True)[1]
        keep = [codes >= 0, *(codes != g for g in range(int(codes.max()) + 1))]
        g = len(keep) - 1
    for k, name in enumerate((AGGREGATE, *dimensions)):
        detail: dict[str, JSON] = {"judge": judge, "rubric": rubric}
        detail["changed"] = bool(changed) if k == 0 else name in changed
        if common:
            old, new = (table[:, k] for table in both)
            contrast = cluster_t(new - old, groups, level)
            # Standard deviations before and after, and an interval of their ratio if it exists.
            detail |= {"p": contrast.p, "clusters": contrast.clusters, "sd_before": None, "sd_after": None}
            detail |= {"sd_ratio_low": None, "sd_ratio_high": None}
            if old.size > 1:
                detail |= {"sd_before": float(old.std(ddof=1)), "sd_after": float(new.std(ddof=1))}
            if g > 1 and min(int(rows.sum()) for rows in keep) > 1:
                spreads = np.array([[x[rows].std(ddof=1) for x in (old, new)] for rows in keep])
                if spreads.min() > _ZERO:
                    logs = np.log(spreads[:, 1] / spreads[:, 0])
                    error = np.sqrt((g - 1) / g * np.square(logs[1:] - logs[1:].mean()).sum())
                    half = t_quantile(0.5 + level / 2, g - 1) * float(error)
                    ends = float(np.exp(logs[0] - half)), float(np.exp(logs[0] + half))
                    detail |= dict(zip(("sd_ratio_low", "sd_ratio_high"), ends, strict=True))
            # Agents by mean under each rubric, ties by name, and the pairs whose order reverses; a tie has no order.
            first, second = (np.bincount(agent_codes, weights=x) / np.bincount(agent_codes) for x in (old, new))
            for which, levels in (("order_before", first), ("order_after", second)):
                line = sorted(zip((-np.round(levels, 9)).tolist(), names.tolist(), strict=True))
                detail[which] = [str(agent) for _, agent in line]
            detail["flips"] = sum(
                bool(snap_to_zero(first[a] - first[b]) * snap_to_zero(second[a] - second[b]) < 0)
                for a, b in combinations(range(names.size), 2)
            )
        yield measured("anchor.shift", {"dimension": name}, contrast, study, (len(common), "trajectories"), method,
                       "not measured: no trajectory was graded under both rubrics", detail)  # fmt: skip


Pair = tuple[str, str, str]
"""Dimension, the agent that the whole panel ranks higher, and the one that it ranks lower."""


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """The decision whether to ask the held-out judge, with the pairs to ask about and the reason.
    ``pairs`` are all that leaving out a family reverses or ties; ``rho`` is each family's smallest rank correlation
    over the claimed dimensions (None if undefined), which occurs on the dimension in ``worst``."""

    pairs: tuple[Pair, ...]
    rho: Mapping[str, float | None]
    needed: bool
    reason: str
    worst: Mapping[str, str] = field(default_factory=dict)


def contested(measurements: Iterable[Measurement], study: Study) -> ProbePlan:
    """Select the pairs for the held-out judge from the panel without each family (ValueBlindBench section 5.2)."""

    def pair_of(m: Measurement) -> Pair:
        return m.labels["dimension"], m.labels["high"], m.labels["low"]

    claimed = study.claims.dimensions
    contrasts = [
        m for m in measurements if (d := m.labels.get("dimension")) is not None and (claimed is None or d in claimed)
    ]
    resolved = {pair_of(m) for m in contrasts if m.name == "contrast" and m.detail.get("resolved")}
    drops = [m for m in contrasts if m.name == "lofo.contrast" and m.value is not None]
    reversals = tuple(dict.fromkeys(pair_of(m) for m in drops if m.value is not None and m.value <= 0))
    rho: dict[str, float | None] = {m.labels["dropped"]: None for m in contrasts if m.name == "lofo.rho"}
    worst: dict[str, str] = {}
    for m in contrasts:
        if m.name == "lofo.rho" and m.value is not None:
            so_far = rho[m.labels["dropped"]]
            if so_far is None or m.value < so_far:
                rho[m.labels["dropped"]], worst[m.labels["dropped"]] = m.value, m.labels["dimension"]
    limit = study.stability.rho
    below = {name: r for name, r in rho.items() if r is not None and r < limit - TOLERANCE}
    low = [f"without {name} rho is {r:.2g} on {worst[name]}" for name, r in below.items()]
    lost = [f"{pair[1]} above {pair[2]} on {pair[0]}" for pair in reversals if pair in resolved]
    if low:
        reason = f"{'; '.join(low)}: below {limit:g}"
    elif lost:
        reason = f"a drop reverses what the panel resolves: {'; '.join(lost)}"
    elif not drops and not worst:
        reason = "no judge family could be left out"
    else:
        reason = f"no drop brings rho below {limit:g} or reverses a resolved contrast"
    return ProbePlan(reversals, rho, bool(low or lost), reason, worst)


def probe_measurements(
    plan: ProbePlan, scores: Scores, agents: Mapping[str, str], cycles: Mapping[str, str], clusters: Mapping[str, str],
    study: Study,
) -> Iterator[Measurement]:  # fmt: skip
    """Measure ``probe.state`` and, after the held-out judge was asked, ``probe.contrast`` of each contested pair."""
    judge = study.stability.probe
    if not plan.needed:
        state = f"not needed: {plan.reason}"
    elif judge is None:
        state = f"not committed: the plan names no outside judge, and {plan.reason}"
    else:
        state = "ok" if scores else f"not measured: {judge.name} has given no usable score"
    detail: dict[str, JSON] = {"pairs": [list(pair) for pair in plan.pairs], "rho": dict(plan.rho)}
    yield number(
        Measurement, "probe.state", {}, len(plan.pairs) if state == "ok" else None, (len(scores), "trajectories"),
        "pairs that some drop reverses or levels", state, detail=detail | {"reason": plan.reason},
    )  # fmt: skip
    if state != "ok" or judge is None:
        return
    cluster_of = {cycles[key]: clusters[key] for key in scores}
    for dimension, high, low in plan.pairs:
        # Each agent's mean score of each cycle.
        sides: dict[str, dict[str, list[float]]] = {high: defaultdict(list), low: defaultdict(list)}
        for key in sorted(scores):
            if agents[key] in sides and dimension in scores[key]:
                sides[agents[key]][cycles[key]].append(scores[key][dimension])
        common = sorted(sides[high].keys() & sides[low].keys())
        gaps = np.array([float(np.mean(sides[high][cycle])) - float(np.mean(sides[low][cycle])) for cycle in common])
        groups = [cluster_of[cycle] for cycle in common]
        contrast = cluster_t(gaps, groups, study.inference.level) if common else None
        names, codes = np.unique(groups, return_inverse=True)
        sums = zip(names, np.bincount(codes, weights=gaps), np.bincount(codes), strict=True)
        about: dict[str, JSON] = {"p": contrast.p if contrast else None, "judge": judge.name, "family": judge.family}
        about["cluster_sums"] = {str(name): [float(total), int(n)] for name, total, n in sums}
        yield measured("probe.contrast", {"dimension": dimension, "high": high, "low": low}, contrast, study,
                       (len(common), "common cycles"), "mean paired difference within common cycles, outside judge",
                       NEVER, about)  # fmt: skip


def contamination_measurements(
    table: ScoreTable, study: Study, instruments: Mapping[str, frozenset[str]]
) -> Iterator[Measurement]:
    """Measure ``contamination.gap``: mean panel score after minus before the cutoff, overall and by instrument."""
    named = study.contamination.post_cutoff if study.contamination else ()
    later = np.array([name in named for name in table.clusters], dtype=bool)
    post = np.asarray(later[table.cluster], dtype=bool) if table.n else np.zeros(0, dtype=bool)
    if study.contamination is None:
        state = "not measured: the plan names no post-cutoff clusters"
        yield _gap(table, study, "all", np.zeros(table.n, dtype=bool), post, [], state)
        return
    about = [instruments.get(key, frozenset()) for key in table.trajectories]
    names = sorted(frozenset().union(*about))
    within = {name: np.array([name in subjects for subjects in about], dtype=bool) for name in names}
    absent = [name for name in names if not (within[name] & post).any() or not (within[name] & ~post).any()]
    yield _gap(table, study, "all", np.ones(table.n, dtype=bool), post, absent)
    for name in names:
        yield _gap(table, study, f"instrument:{name}", within[name], post, [name] if name in absent else [])


def cluster_gap(scores: Floats, agents: Ints, clusters: Ints, post: Bools, level: float = 0.95) -> Contrast:
    """Test the difference between two sets of clusters within agents, with clusters as units."""
    # Weight of each record in the difference, in total 1 after the cutoff and -1 before; scores without agent levels.
    size = int(agents.max()) + 1
    later, earlier = (np.bincount(agents[side], minlength=size) for side in (post, ~post))
    both = later * earlier / np.maximum(later + earlier, 1)
    share = both / both.sum()
    weight = np.where(post, (share / np.maximum(later, 1))[agents], -(share / np.maximum(earlier, 1))[agents])
    sums = np.bincount(agents, weights=scores - post * float(weight @ scores), minlength=size)
    settled = scores - (sums / np.maximum(later + earlier, 1))[agents]
    # Share of each cluster on its side (negative before the cutoff), and its weighted mean score.
    totals = group_sums(np.stack([weight, weight * settled], axis=1), clusters, int(clusters.max()) + 1)
    shares, means = totals[totals[:, 0] != 0].T
    means = means / shares
    sides = [(shares[part], means[part]) for part in (shares > 0, shares < 0)]
    difference = float(weight @ scores)
    difference = 0.0 if abs(difference) <= _ZERO else difference
    counts, n = [share.size for share, _ in sides], scores.size
    if max(counts) < 2:
        return Contrast(difference, None, None, 1.0, n, 2, "one cluster on each side cannot be tested, p = 1")
    df = sum(counts) - 2
    pooled = sum(float(np.square(mean - mean.mean()).sum()) for _, mean in sides) / df
    variance = pooled * sum(float(share @ share) for share, _ in sides)
    if variance <= _ZERO**2:
        p = 1.0 if difference == 0 else 1 / math.comb(sum(counts), counts[0])
        how = "clusters do not vary: share of the ways to choose the later ones"
        return Contrast(difference, None, None, p, n, sum(counts), how)
    error = math.sqrt(variance)
    half = t_quantile(0.5 + level / 2, df) * error
    p = 2 * float(scipy.special.stdtr(df, -abs(difference) / error))
    method = f"two-sample t over cluster means, pooled, t({df}), {counts[0]} against {counts[1]} clusters"
    return Contrast(difference, difference - half, difference + half, p, n, sum(counts), method)


def _gap(
    table: ScoreTable, study: Study, split: str, rows: Bools, later: Bools, absent: list[str], state: str | None = None
) -> Measurement:
    """Measure the difference for one split, with the reason if there is none."""
    post, earlier, agent, cluster = later & rows, rows & ~later, table.agent, table.cluster
    on_both = np.intersect1d(agent[post], agent[earlier])
    used = rows & np.isin(agent, on_both)
    detail: dict[str, JSON] = {
        "n_post": int((post & used).sum()), "n_earlier": int((earlier & used).sum()),
        "clusters_post": int(np.unique(cluster[post & used]).size),
        "clusters_earlier": int(np.unique(cluster[earlier & used]).size), "absent": list(absent),
        "one_sided": [table.agents[a] for a in np.setdiff1d(agent[rows], on_both).tolist()],
    }  # fmt: skip
    if state is None and not table.n:
        state = NO_SCORES
    elif state is None and not post.any():
        named = study.contamination.post_cutoff if study.contamination else ()
        state = f"not measurable: no record after the cutoff (clusters {', '.join(named)})"
    elif state is None and not earlier.any():
        state = "not measurable: no record before the cutoff"
    elif state is None and not used.any():
        state = "not measurable: no agent has records on both sides of the cutoff"
    gap, method = None, "panel score after the cutoff minus earlier, within agents"
    if state is None:
        scores = table.stacked[used].mean(axis=1)[:, 0]
        codes = np.unique(agent[used], return_inverse=True)[1]
        gap = cluster_gap(scores, codes, cluster[used], post[used], study.inference.level)
        method = f"{method}; {gap.method}"
    return number(
        Measurement, "contamination.gap", {"dimension": AGGREGATE, "split": split}, gap.difference if gap else None,
        (used.sum(), "trajectories"), method, state or "ok", {"p": gap.p if gap else None, **detail},
        (gap.low, gap.high) if gap else None, study.inference.level, unit=POINTS, inputs=table.digest,
    )  # fmt: skip


ORACLE_DIMENSION: Final = "constraint_awareness"
"""The dimension that the oracle scores."""

_KAPPA = "quadratic-weighted kappa with the oracle; trials averaged, halves rounded up, clipped to 1..5"
_ERROR = "mean of score minus oracle score"


def oracle_measurements(
    tables: Sequence[ScoreTable], oracle: Mapping[str, float], study: Study, *, dimension: str = ORACLE_DIMENSION,
    rng: np.random.Generator | None = None,
) -> Iterator[Measurement]:  # fmt: skip
    """Measure ``oracle.kappa`` and ``oracle.error`` of every judge and, without a label, of the panel's mean."""
    scored = [table for table in tables if table.n]
    bad = {key: value for key, value in oracle.items() if value not in range(int(SCALE[0]), int(SCALE[1]) + 1)}
    problems = [Problem(key, f"must be a whole number from 1 to 5 (got {bad[key]})") for key in sorted(bad)[:9]]
    if len({(table.judges, table.dimensions) for table in scored}) > 1:
        problems.insert(0, Problem("tables", "must have the same judges and dimensions"))
    if problems:
        raise InputError("oracle_measurements", problems)
    rng = np.random.default_rng(study.seed) if rng is None else rng
    judges = scored[0].judges if scored else tuple(sorted(judge.name for judge in study.judges))
    asked = bool(scored) and dimension in scored[0].dimensions
    parts, values, clusters = [np.empty((0, len(judges)))], list[float](), list[str]()
    for table in scored if asked else ():
        rows = [row for row, key in enumerate(table.trajectories) if key in oracle]
        parts.append(table.scores[rows][:, :, table.dimensions.index(dimension)])
        values += [float(oracle[table.trajectories[row]]) for row in rows]
        clusters += [table.clusters[table.cluster[row]] for row in rows]
    scores, truth, level = np.concatenate(parts), np.array(values), study.inference.level
    count = truth.size, "items with an oracle score"
    missing = (
        f"not measurable: the rubric does not ask for {dimension}"
        if scored and not asked
        else (None if values else "not measurable: no scored item has an oracle score")
    )
    common: dict[str, Any] = {"level": level, "inputs": _digest(scored, sorted(oracle.items()))}
    # Records in the order of their clusters, as a jackknife over time requires.
    names = sorted(set(clusters), key=natural)
    consecutive = bool(names) and study.inference.order_of(names) == "consecutive"
    line = np.argsort([names.index(name) for name in clusters], kind="stable")
    columns = [({}, scores.mean(axis=1)), *(({"judge": judge}, scores[:, j]) for j, judge in enumerate(judges))]
    for labels, column in columns:
        if missing is not None:
            yield number(Measurement, "oracle.kappa", labels, None, count, _KAPPA, missing, **common)
            yield number(Measurement, "oracle.error", labels, None, count, _ERROR, missing, unit=POINTS, **common)
            continue
        ratings = np.column_stack([categories_of(column), truth.astype(np.int64)])
        table_of, value, state, ends, detail = contingency(*ratings.T), None, "ok", None, dict[str, JSON]()
        try:
            value = kappa_of_table(table_of)
        except NotMeasurableError as exc:
            state = state_of(exc)
        else:
            detail["bootstrap"] = None
            with suppress(NotMeasurableError):  # the narrower of the two
                boot = bootstrap_kappa(ratings, clusters, level=level,
                                       resamples=study.inference.resamples or RESAMPLES, rng=rng)  # fmt: skip
                detail["bootstrap"] = {"low": boot.low, "high": boot.high, "method": boot.method}
            try:
                jack = jackknife_kappa(ratings[line], [clusters[k] for k in line.tolist()], 5, level, consecutive)
                ends, detail["interval_method"] = (jack.low, jack.high), jack.method
            except NotMeasurableError as exc:
                detail["interval_method"] = str(exc)
        varies = min(np.ptp(column), np.ptp(truth)) > _ZERO
        r = float(np.clip(np.corrcoef(column, truth)[0, 1], -1, 1)) if varies else None
        yield number(
            Measurement, "oracle.kappa", labels, value, count, _KAPPA, state,
            detail | {"r": r, "table": table_of.tolist()}, ends, **common,
        )  # fmt: skip
        error = cluster_t(column - truth, clusters, level)
        yield number(Measurement, "oracle.error", labels, error.difference, count, f"{_ERROR}; {error.method}", "ok",
                     {"p": error.p, "clusters": error.clusters, "spread": float(np.std(column - truth))},
                     (error.low, error.high), unit=POINTS, **common)  # fmt: skip


def _digest(tables: Sequence[ScoreTable], values: Sequence[Any]) -> str:
    """Compute a hash of sixteen hex digits over the tables and the known values."""
    return hashlib.sha256(repr(([table.digest for table in tables], values)).encode()).hexdigest()[:16]


def effective_judges(errors: ArrayLike) -> float:
    """Estimate the number of independent judges whose mean would have the same error as the mean of these.

    ``J / (1 + (J-1) r)`` with r the mean Pearson correlation of the judges' errors over all pairs. J judges with the
    same errors count as little more than one; errors that offset each other make them count as more than J. The errors
    must be relative to *known* quality: residuals around item means sum to zero over judges, which forces r to -1/(J-1)
    whatever the truth, and the correlation of the scores (redundancy) also contains correct agreement.

    Parameters
    ----------
    errors : float array of shape (n, J)
        Score minus known score, of n items by J judges, three items and two judges or more.

    Returns
    -------
    float
        Above 0; J for uncorrelated errors, 1 for identical ones.

    Raises
    ------
    NotMeasurableError
        One judge, fewer than three items, a judge with the same error on every item, or errors that offset each other
        completely.
    InputError
        Empty, not two axes, or not finite.

    Examples
    --------
    >>> effective_judges([[0.5, 0.5], [-0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])
    2.0
    >>> round(effective_judges([[0.5, 0.4], [-0.5, -0.6], [0.1, 0.0]]), 6)
    1.0
    """
    table = checks.finite("effective_judges", "errors", errors, ndim=2)
    return independent_judges(table.shape[1], error_correlation(table))


def error_correlation(errors: Floats) -> float:
    """Compute the mean Pearson correlation of errors [n, J] over pairs of judges; raises like `effective_judges`."""
    n, judges = errors.shape
    if judges < 2:
        raise NotMeasurableError("effective judges is undefined: one judge, needs two")
    if n < 3:
        raise NotMeasurableError(f"effective judges is undefined: {n} items of known quality, needs three")
    spread = np.ptp(errors, axis=0)
    if spread.min() <= _ZERO:
        worst = int(spread.argmin()) + 1
        raise NotMeasurableError(f"effective judges is undefined: judge {worst} makes one error on all {n} items")
    away = errors - errors.mean(axis=0)
    away /= np.sqrt(np.square(away).sum(axis=0))
    r = float(np.mean([away[:, a] @ away[:, b] for a, b in combinations(range(judges), 2)]))
    return min(1.0, max(-1.0, r))


def independent_judges(judges: int, r: float) -> float:
    """Compute `effective_judges` from the errors' mean correlation ``r``."""
    share = 1 + (judges - 1) * r
    if share <= _ZERO:
        raise NotMeasurableError("effective judges is undefined: the errors offset each other completely")
    return judges / share


def known_measurements(
    tables: Sequence[ScoreTable], truths: Mapping[str, Mapping[str, float]], study: Study
) -> Iterator[Measurement]:
    """Measure ``panel.effective_judges`` of the aggregate and every dimension, from all items of known quality."""
    source, scored = "known_measurements", [table for table in tables if table.n]
    kinds = {(table.judges, table.dimensions, tuple(table.weights.tolist())) for table in scored}
    if len(kinds) > 1:
        listed = "; ".join(sorted(f"{', '.join(judges)} on {', '.join(names)}" for judges, names, _ in kinds))
        raise InputError(source, [Problem("tables", f"must have the same judges and names (got {listed})")])
    names = scored[0].names if scored else (AGGREGATE, *sorted(study.rubric.weights or {}))
    judges = len(scored[0].judges) if scored else len(study.judges)
    digest = _digest(tables, sorted((key, sorted(parts.items())) for key, parts in truths.items()))

    def score(table: ScoreTable, scores: Mapping[str, float], k: int) -> float | None:
        if table.names[k] in scores or k:
            return scores.get(table.names[k])
        if table.dimensions and all(dimension in scores for dimension in table.dimensions):
            return float(np.array([scores[dimension] for dimension in table.dimensions]) @ table.weights)
        return None

    for k, name in enumerate(names):
        parts = [np.empty((0, judges))]
        for table in scored:
            values = [score(table, truths.get(key, {}), k) for key in table.trajectories]
            rows = [row for row, value in enumerate(values) if value is not None]
            truth = np.array([values[row] for row in rows], dtype=np.float64)
            if not np.isfinite(truth).all():
                bad = table.trajectories[rows[int(np.argmin(np.isfinite(truth)))]]
                raise InputError(source, [Problem(bad, "known scores must be finite")])
            parts.append(table.stacked[rows][:, :, k] - truth[:, None])
        errors, value, r, state = np.concatenate(parts), None, None, "not measurable: no items of known quality"
        if len(errors) and judges < 2:
            state = "not measurable: one judge, needs two"
        elif len(errors):
            try:
                r = error_correlation(errors)
                value = independent_judges(judges, r)
            except NotMeasurableError as exc:
                state = state_of(exc)
        method = "J / (1 + (J-1) r), r the mean correlation of judges' errors against known scores"
        yield number(Measurement, "panel.effective_judges", {"dimension": name}, value,
                     (len(errors), "items of known quality"), method, state, unit="judges", inputs=digest,
                     detail={"judges": judges, "r": r})  # fmt: skip
