"""Self-preference: judges' bias for agents of their own family, and contrasts without these judges (recusal)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks, estimates
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import difference_moments, holm, moderate, pair_list, pairs_of, serial_tests
from assaymark.metrology.estimates import Estimate, cluster_mean, scores_of, undefined
from assaymark.plan import TOLERANCE
from assaymark.quantiles import t_quantile

Pair = tuple[int, int]

NO_LINK = "no judge without an interest, and no third agent links the two"
_DEPENDENT = "only a common value: the judges' own-family indicators are not independent"
_NONE_OWN = "not measurable: no judge shares a family with some of the agents only"


@dataclass(frozen=True, slots=True)
class RecusalContrast(Estimate):
    """The contrast of two agents without the scores of judges for their own family; see `recusal_contrast`."""

    conflict: bool
    clusters: int
    free: tuple[int, ...]
    judges: tuple[int, ...]
    direct: Estimate | None


@dataclass(frozen=True, slots=True)
class PairTest:
    """The test of one pair on one scale: by `moderated_contrasts`, or `serial_contrasts` in time order.
    ``state`` is "tested", "cannot be tested" (too few clusters identify the contrast) or "no judge without an interest"
    (no cluster does); p is 1 in the last two. ``df`` is None if nothing varies, and p is then of the sign test."""

    clusters: int
    state: str
    p: float
    difference: float | None = None
    df: float | None = None
    se: float | None = None
    prior_df: float | None = None

    @property
    def estimate(self) -> float | None:
        """The difference, under the name that `headline_p` uses."""
        return self.difference

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Return the ends of the difference's interval; None if there is none."""
        if self.difference is None or self.se is None or self.df is None:
            return None
        half = float(scipy.special.stdtrit(self.df, 0.5 + level / 2)) * self.se
        return self.difference - half, self.difference + half


RecusalTest = PairTest
"""The test of a pair by recusal: without scores of judges for their own family."""


def pair_records(
    clusters: Ints, tested: Bools, *columns: Floats, absent: str = "no judge without an interest"
) -> list[PairTest]:
    """Make each pair's record from columns of p, gap, df, se and the prior's df (NaN: undefined); ``absent`` is the
    state of a pair without clusters."""
    return [
        PairTest(n, "tested", p, *(None if x != x else x for x in rest)) if enough
        else PairTest(n, "cannot be tested", 1.0, rest[0]) if n else PairTest(0, absent, 1.0)
        for n, enough, p, *rest in zip(*(x.tolist() for x in (clusters, tested, *columns)), strict=True)
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OwnFamily:
    """Self-preference of judges, in excess of the other judges' scores; see `own_family`."""

    judges: tuple[int, ...]
    common: Estimate | None
    by_judge: tuple[Estimate, ...] | None
    p_holm: tuple[float, ...] | None
    state: str


def recusal_contrast(M: ArrayLike, own: ArrayLike, a: int, b: int, *, level: float = 0.95) -> RecusalContrast:
    """Compute the contrast of two agents without judges' scores for their own family (Panickssery 2024)."""
    table, interest = _check_table("recusal_contrast", M, own)
    checks.probability("recusal_contrast", "level", level)
    checks.two_agents("recusal_contrast", a, b, table.shape[2])
    fit = RecusalFit.of(table, interest)
    conflicts = interest[:, a] | interest[:, b]
    free, linked, estimate = np.flatnonzero(~conflicts), fit.linked[:, a, b], undefined(NO_LINK)
    if linked.any():
        estimate = cluster_mean(fit.effects[linked, a] - fit.effects[linked, b], None, level)
    judges = ((~np.isnan(table[linked]) & ~interest)[:, :, [a, b]]).any(axis=(0, 2))
    gaps = table[:, free, a] - table[:, free, b]
    both = ~np.isnan(gaps)
    there = both.any(axis=1)
    means = np.where(both, gaps, 0.0).sum(axis=1)[there] / both.sum(axis=1)[there]
    direct = cluster_mean(means, None, level) if means.size else None
    panels = tuple(free.tolist()), tuple(np.flatnonzero(judges).tolist())
    return RecusalContrast(*estimate.parts(), bool(conflicts.any()), int(linked.sum()), *panels, direct)


def recusal_p(
    M: ArrayLike, own: ArrayLike, borrow: bool = True, consecutive: bool = False
) -> dict[Pair, PairTest | None]:
    """Test every pair of agents on its recusal contrast, with all pairs together."""
    table, interest = _check_table("recusal_p", M, own)
    fit = RecusalFit.of(table, interest)
    tests = gap_tests(fit.gaps(), fit.effects, borrow, consecutive)
    conflicts = np.asarray(interest.any(axis=0))
    rows = zip(pair_list(table.shape[2]), tests, strict=True)
    return {(i, j): test if conflicts[i] or conflicts[j] else None for (i, j), test in rows}


def own_family(M: ArrayLike, own: ArrayLike, level: float = 0.95, consecutive: bool = False) -> OwnFamily:
    """Estimate each judge's excess score for agents of its own family over the other judges' (Panickssery 2024)."""
    table, interest = _check_table("own_family", M, own)
    checks.probability("own_family", "level", level)
    clusters, judges, agents = table.shape
    which = tuple(np.flatnonzero(interest.any(axis=1)).tolist())
    used = ~np.isnan(table)
    values = np.where(used, table, 0.0).reshape(clusters, -1)
    fits = [_preference_weights(row.tobytes(), interest.tobytes(), judges, agents) for row in used]
    common = [value @ fit[-1] for value, fit in zip(values, fits, strict=True) if fit is not None]
    each = [fit[:-1] @ value for value, fit in zip(values, fits, strict=True) if fit is not None and len(fit) > 1]

    def mean(column: Floats) -> Estimate:
        return cluster_mean(column, estimates.neighbour_blocks(column.size) if consecutive else None, level)

    if not common:
        return OwnFamily(which, None, None, None, _NONE_OWN)
    shared = mean(np.array(common))
    if not each:
        return OwnFamily(which, shared, None, None, _DEPENDENT)
    by_judge = tuple(map(mean, np.array(each).T))
    return OwnFamily(which, shared, by_judge, tuple(holm([estimate.p for estimate in by_judge]).tolist()), "ok")


@dataclass(frozen=True, slots=True, eq=False)
class RecusalFit:
    """Least-squares fits ``score = judge + agent`` of all clusters to cells of different families.
    ``effects`` [G, K] are the agents' (minimum norm; NaN without a cell), ``weights`` [G, K, J, K] the cells' weights
    in them, and ``linked`` [G, K, K] is True for contrasts that a cluster identifies."""

    effects: Floats
    weights: Floats
    linked: Bools

    @classmethod
    def of(cls, table: Floats, interest: Bools) -> RecusalFit:
        """Fit a table [G, J, K]; clusters with the same cells share one computation."""
        clusters, judges, agents = table.shape
        used = ~np.isnan(table) & ~interest
        values = np.where(used, table, 0.0)
        rows = used.reshape(clusters, -1)
        if (rows == rows[0]).all():
            matrix, link = _recusal_weights(rows[0].tobytes(), judges, agents)
            effects = values.reshape(clusters, -1) @ matrix.reshape(agents, -1).T
            weights, linked = (
                np.broadcast_to(matrix, (clusters, *matrix.shape)), np.broadcast_to(link, (clusters, *link.shape)),
            )  # fmt: skip
        else:
            fits = [_recusal_weights(row.tobytes(), judges, agents) for row in rows]
            weights, linked = np.stack([fit[0] for fit in fits]), np.stack([fit[1] for fit in fits])
            effects = np.einsum("gajk,gjk->ga", weights, values)
        present = np.diagonal(linked, axis1=1, axis2=2)
        return cls(np.where(present, effects, np.nan), weights, linked)

    def gaps(self) -> Floats:
        """Compute the contrast of every pair in each cluster [G, pairs], NaN if not identified."""
        first, second = pairs_of(self.effects.shape[1])
        return np.where(self.linked[:, first, second], self.effects[:, first] - self.effects[:, second], np.nan)


def gap_tests(gaps: Floats, effects: Floats, borrow: bool, consecutive: bool) -> list[PairTest]:
    """Test every pair on its cluster differences [G, pairs] (NaN if not identified), exchangeable or in time order."""
    if consecutive:
        serial, counts = serial_tests(gaps, effects), np.count_nonzero(~np.isnan(gaps), axis=0)
        return pair_records(counts, ~np.isnan(serial.block), serial.p, serial.gap, serial.df, serial.se)
    moderated = moderate(*difference_moments(gaps), effects, borrow)
    return pair_records(moderated.clusters, moderated.tested, moderated.p, moderated.gap, moderated.df, moderated.se)


@lru_cache(maxsize=1024)
def _recusal_weights(used: bytes, judges: int, agents: int) -> tuple[Floats, Bools]:
    """Compute the weights [K, J, K] of the used cells in the agent effects, and the agents that they link [K, K]."""
    cells = np.frombuffer(used, dtype=np.bool_)
    design = _judge_and_agent(judges, agents)[cells]
    weights = np.zeros((agents, judges * agents))
    weights[:, cells] = np.linalg.pinv(design)[judges:]
    table = cells.reshape(judges, agents)
    linked = table.T @ table  # linked by one judge; then by chains of two, four, ... judges
    for _ in range(agents.bit_length()):
        linked = linked @ linked
    return weights.reshape(agents, judges, agents), linked


@lru_cache(maxsize=1024)
def _preference_weights(used: bytes, own: bytes, judges: int, agents: int) -> Floats | None:
    """Compute cell weights [., J*K] of each judge's self-preference and (last) a common one; None: not identified."""
    cells = np.frombuffer(used, dtype=np.bool_)
    interest = np.frombuffer(own, dtype=np.bool_).reshape(judges, agents)
    design = _judge_and_agent(judges, agents)[cells]
    annihilator = np.eye(len(design)) - design @ np.linalg.pinv(design)
    owners = np.flatnonzero(interest.any(axis=1))
    indicators = np.zeros((judges * agents, owners.size))
    for column, judge in enumerate(owners):
        indicators[judge * agents : (judge + 1) * agents, column] = interest[judge]
    each = annihilator @ indicators[cells]
    common = each.sum(axis=1)
    size = float(common @ common)
    if size <= TOLERANCE:
        return None
    independent = np.linalg.matrix_rank(each, tol=TOLERANCE) == owners.size
    weights = np.zeros((1 + independent * owners.size, judges * agents))
    weights[-1, cells] = common / size
    if independent:
        weights[:-1, cells] = np.linalg.pinv(each)
    return weights


@lru_cache(maxsize=64)
def _judge_and_agent(judges: int, agents: int) -> Floats:
    """Build the indicators [J*K, J+K] of each cell's judge and agent."""
    cells = np.indices((judges, agents)).reshape(2, -1)
    return np.concatenate([np.eye(judges)[cells[0]], np.eye(agents)[cells[1]]], axis=1)


def _check_table(source: str, table: ArrayLike, own: ArrayLike) -> tuple[Floats, Bools]:
    """Check scores [G, J, K] and own-family indicators [J, K], and return them as arrays."""
    scores = scores_of(source, "M", table, 3)
    return scores, interest_of(source, own, scores.shape[1:])


def interest_of(source: str, own: ArrayLike, shape: tuple[int, ...]) -> Bools:
    """Check own-family indicators [J, K]."""
    indicators = checks.array(source, "own", own)
    if indicators.shape != shape or not np.isin(indicators, (0, 1)).all():
        checks.fail(source, "own", f"must hold 0 or 1 for each judge and agent {shape} (got shape {indicators.shape})")
    return indicators.astype(np.bool_)


PreferenceState = Literal[
    "ok", "single observation", "no spread", "no agent of its family", "no agent of another family"
]

_FLAT = 1e-9  # a smaller spread is float noise


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """One judge's scores relative to the panel's median, on its own family and on the other families.

    Attributes
    ----------
    judge : str
    own, others : float or None
        Mean of score minus panel median over the agents of its family and over the others, in points of the score.
        None if there is no such agent.
    gap : float or None
        ``own - others``: above 0 the judge favours its family.
    n_own, n_others : int
        Number of agents (with clusters: of agents in clusters) behind the two means.
    low, high : float or None
        Ends of the interval of the gap, only where ``state`` is "ok".
    state : str
        "ok"; "single observation": one agent of its family (or one cluster), which gives no variance for an interval;
        "no spread": all agents (or clusters) of each side differ from the median by the same amount; "no agent of its
        family"; "no agent of another family".
    level, method : float, str
    """

    judge: str
    own: float | None
    others: float | None
    gap: float | None
    n_own: int
    n_others: int
    low: float | None
    high: float | None
    state: PreferenceState
    level: float
    method: str

    def __str__(self) -> str:
        if self.gap is None:
            return f"{self.judge}: {self.state}"
        ends = self.state if self.low is None else f"[{self.low:+.1f}, {self.high:+.1f}]"
        return f"{self.judge}: {self.gap:+.1f} ({ends}), {self.n_own} of its family against {self.n_others}"


def self_preference(
    scores: ArrayLike, agent_families: Sequence[str], judge_families: Sequence[str], *,
    judges: Sequence[str] | None = None, level: float = 0.95, clusters: Sequence[str] | None = None,
    consecutive: bool = False,
) -> list[SelfPreference]:  # fmt: skip
    """Compare each judge's scores relative to the panel's median between its own family and the other families.

    The season's audit of self-preference (methodology v0.4). Interpret a gap with its interval, never by its size
    alone: the source calls gaps up to +17 points small, each of them from one agent. Its gaps are differences of
    rounded means; here they are differences of the unrounded means.

    The judge is part of the median that it is compared with, which hides some of its preference: about 0.56 s of a
    large preference with three judges and noise of standard deviation s, half of it with two judges.

    Agents are the units. The interval is the wider of Student's and Welch's for two means. Student's alone is too
    narrow if a preference has spread the family's scores (81 % coverage for 95 % in simulations with 2 agents of the
    family and 18 others, three judges, 15 points), Welch's if two agents happen to have close scores (80 %). The wider
    one covers 94 to 99 %, with 2 to 8 agents of the family, 3 to 18 others and 0 to 30 points.

    With ``clusters`` (such as the periods of a season) a row is one agent in one cluster, and the clusters are the
    units of a delete-one-cluster jackknife. The interval then generalises to similar clusters for these agents, also
    for a single agent of the family, but not to other agents of it.

    Parameters
    ----------
    scores : float array of shape (A, J)
        Score of each agent (row) by each judge (column), two judges or more. An agent without a grade of every judge
        is omitted: its median would be of another panel. With ``clusters`` a row is an agent in a cluster.
    agent_families : sequence of A names
    judge_families : sequence of J names
    judges : sequence of J names, optional
        Names for the results; default: the families. Required if several judges have the same family.
    level : float
        Coverage of the intervals, strictly between 0 and 1.
    clusters : sequence of A names, optional
        The cluster of each row, in time order if ``consecutive``.
    consecutive : bool
        The clusters are consecutive in time: the jackknife leaves out blocks of neighbours.

    Returns
    -------
    list of J SelfPreference, in the order of the judges

    Raises
    ------
    NotMeasurableError
        One judge: it is its own median.
    InputError
        Scores that are not finite, and names that do not fit their number.

    References
    ----------
    Welch, B. L. (1947). The generalization of "Student's" problem when several different population variances are
    involved. Biometrika 34, 28-35.

    Examples
    --------
    >>> scores = [[80, 70, 71], [75, 66, 62], [60, 61, 59], [50, 52, 51], [64, 66, 65]]
    >>> found = self_preference(scores, ["north", "north", "south", "south", "west"], ["north", "south", "west"])
    >>> print(*found, sep="\\n")
    north: +9.7 ([+8.2, +11.1]), 2 of its family against 3
    south: +1.0 ([-1.5, +3.5]), 2 of its family against 3
    west: +1.2 (single observation), 1 of its family against 4

    The same table as one agent of each family over five weeks:

    >>> weeks = np.arange(5).repeat(3).astype(str)
    >>> rows = np.array(scores).repeat(3, axis=0) + [[9, 0, 0], [0, 0, 0], [0, 0, 0]] * 5
    >>> print(self_preference(rows, ["north", "south", "west"] * 5, ["north", "south", "west"], clusters=weeks)[0])
    north: +8.4 ([+7.7, +9.1]), 5 of its family against 10
    """
    source = "self_preference"
    table = checks.finite(source, "scores", scores, ndim=2)
    checks.probability(source, "level", level)

    def names(label: str, entries: Sequence[Any], axis: int) -> list[str]:
        n, of = table.shape[axis], ("agents (rows of scores)", "judges (columns of scores)")[axis]
        if len(entries) != n or not all(isinstance(name, str) for name in entries):
            checks.fail(source, label, f"must be one name for each of the {n} {of} (got {len(entries)})")
        return [str(name) for name in entries]

    graded, grading = names("agent_families", agent_families, 0), names("judge_families", judge_families, 1)
    called = grading if judges is None else names("judges", judges, 1)
    if table.shape[1] < 2:
        raise NotMeasurableError("self-preference against a panel's median is undefined: one judge, needs two")
    above = table - np.median(table, axis=1, keepdims=True)
    codes = None if clusters is None else estimates.cluster_codes(source, clusters, len(table), name="clusters")
    method = "the wider of Student's and Welch's t"
    if codes is not None:
        method = f"jackknife over {'blocks of neighbouring ' if consecutive else ''}clusters, Student's t"
    method, results = f"mean distance from the panel's median, own family minus others; {method}", []
    for name, family, column in zip(called, grading, above.T, strict=True):
        same = np.array([name == family for name in graded], dtype=bool)
        ours, peers = column[same], column[~same]
        mean, others = (float(part.mean()) if part.size else None for part in (ours, peers))
        state: PreferenceState = "no agent of its family" if mean is None else "no agent of another family"
        gap = low = high = half = None
        if mean is not None and others is not None:
            gap, state = mean - others, "single observation"
            if codes is not None:
                # Over clusters; a unit that contains all of one side cannot be left out.
                sums = np.stack([np.bincount(codes[part], weights, int(codes.max()) + 1) for part in (same, ~same)
                                 for weights in (column[part], np.ones(int(part.sum())))], axis=1)  # fmt: skip
                total, *without = estimates.leave_out(sums, consecutive)
                leave_outs = np.array([rest for rest in without if rest[1] and rest[3]])
                if len(leave_outs) > 1:
                    gaps = [row[..., 0] / row[..., 1] - row[..., 2] / row[..., 3] for row in (total, leave_outs)]
                    estimate = estimates.jackknife_estimate(float(gaps[0]), gaps[1], level)
                    half = None if estimate.low is None or estimate.high is None else (estimate.high - estimate.low) / 2
                    state = "no spread" if half is None else "ok"
            elif ours.size > 1:
                # One agent on the other side has no spread; Student's interval assumes that of the own family.
                n, m, tail, state = ours.size, peers.size, 0.5 + level / 2, "no spread"
                spread, rest = float(ours.var(ddof=1)), float(peers.var(ddof=1)) if m > 1 else 0.0
                squares, df = (n - 1) * spread + (m - 1) * rest, n + m - 2
                if squares > _FLAT**2:
                    state, half = "ok", t_quantile(tail, df) * math.sqrt(squares / df * (1 / n + 1 / m))
                    if m > 1:
                        a, b = spread / n, rest / m
                        welch = (a + b) ** 2 / (a * a / (n - 1) + b * b / (m - 1))
                        half = max(half, t_quantile(tail, welch) * math.sqrt(a + b))
            low, high = (None, None) if half is None else (gap - half, gap + half)
        results.append(SelfPreference(name, mean, others, gap, ours.size, peers.size, low, high, state, level, method))
    return results
