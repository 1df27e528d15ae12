"""Do agents do better on what they may have been trained on? Clusters after the cutoff against earlier ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.effects import group_sums
from assaymark.metrology.table import ScoreTable
from assaymark.protocol import Study
from assaymark.quantiles import t_quantile
from assaymark.records import AGGREGATE, JSON, Measurement

_UNPLANNED = "not measured: the plan names no post-cutoff clusters"
_METHOD = "panel score after the cutoff minus earlier, within agents"
_ZERO = 1e-9


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
    """``contamination.gap``: the panel's mean score after the cutoff minus before, of all records and by instrument.

    A gap below 0 would say that agents look better on what they may have seen. Around 0 the interval bounds what such
    knowledge can have added (ValueBlindBench sections 3.9 and 5.1).

    Agents do not all decide in every cluster, and who decides after the cutoff must not pass for a gap. So the
    difference is taken within each agent and averaged with the weight that its records give it, n m / (n + m) for n
    after and m before; agents with records on one side only say nothing. With balanced records this is the difference
    of the plain means.

    Records of one cluster share its market, so the test compares clusters, not records; `cluster_gap` says how.

    Parameters
    ----------
    table : ScoreTable
        Honest records, gated.
    study : Study
        ``study.contamination.post_cutoff`` names the clusters.
    instruments : mapping of trajectory to names
        What each record is about; a record about two instruments is in the split of both.

    Yields
    ------
    Measurement
        Labels ``dimension`` (the aggregate) and ``split`` (``all`` or ``instrument:NAME``), n the records that enter.
        ``detail`` has p, records and clusters on each side, and the instruments that are ``absent`` from one.
    """
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
    """Difference between two sets of clusters within agents, tested between clusters.

    Scores are first freed of the agents' levels; the mean of a side is then the weighted mean of its cluster means.
    The clusters of both sides are taken to vary alike, so their variance is pooled, with G-2 degrees of freedom. That
    is what makes one cluster on a side enough: the interval then says where one more cluster of the other kind would
    have come out. With clusters of equal size it is the usual two-sample t test on cluster means. Simulated with 3 to
    12 clusters that vary within, between, or both, it rejects true nulls at 4 to 6 % when sizes are equal, and at 1
    to 8 % when they differ four- to eightfold.

    One cluster on each side cannot be tested: p is 1 and there is no interval. Where cluster means do not vary at all,
    p is 1 over the number of ways to choose as many clusters as lie after the cutoff (1 for no difference).

    Parameters
    ----------
    scores : float array of shape (n,)
        Panel scores.
    agents, clusters : int arrays of shape (n,)
        Codes of the agent and the cluster of each record.
    post : bool array of shape (n,)
        Whether the record's cluster lies after the cutoff; every agent has records on both sides.
    level : float
        Coverage of the interval.

    Returns
    -------
    Gap

    Examples
    --------
    >>> clusters = np.repeat(np.arange(5), 2)
    >>> scores = np.array([3.0, 3.4, 3.1, 3.3, 2.8, 3.2, 3.1, 3.5, 3.0, 3.2])
    >>> gap = cluster_gap(scores, np.tile([0, 1], 5), clusters, clusters == 4)
    >>> f"{gap.difference:.3f} [{gap.low:.2f}, {gap.high:.2f}] p={gap.p:.2f}"
    '-0.075 [-0.52, 0.37] p=0.63'
    """
    weight, settled = _freed(scores, agents, post)
    shares, means = _cluster_means(weight, settled, clusters)
    sides = [(shares[part], means[part]) for part in (shares > 0, shares < 0)]
    difference = float(weight @ scores)
    difference = 0.0 if abs(difference) <= _ZERO else difference
    counts = [share.size for share, _ in sides]
    if max(counts) < 2:
        return Gap(difference, None, None, 1.0, "one cluster on each side cannot be tested, p = 1")
    variance, df = _spread(sides)
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


def _cluster_means(weight: Floats, scores: Floats, clusters: Ints) -> tuple[Floats, Floats]:
    """Share [G] of each cluster in its side (negative before the cutoff), and its weighted mean score [G]."""
    found = group_sums(np.stack([weight, weight * scores], axis=1), clusters, int(clusters.max()) + 1)
    used = found[found[:, 0] != 0]
    return used[:, 0], used[:, 1] / used[:, 0]


def _spread(sides: list[tuple[Floats, Floats]]) -> tuple[float, int]:
    """Variance of the gap from the pooled variance of cluster means within their sides, and G-2 degrees of freedom."""
    df = sum(share.size for share, _ in sides) - 2
    pooled = sum(float(np.square(mean - mean.mean()).sum()) for _, mean in sides) / df
    return pooled * sum(float(share @ share) for share, _ in sides), df


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
    state = state or _state(table, study, post, earlier, used)
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


def _state(table: ScoreTable, study: Study, post: Bools, earlier: Bools, used: Bools) -> str | None:
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
