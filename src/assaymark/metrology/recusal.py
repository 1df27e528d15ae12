"""Judges that stand aside for agents of their own maker: how far they favour them, and which orders need them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import holm
from assaymark.metrology.estimates import Estimate, cluster_mean, neighbour_blocks, scores_of, undefined
from assaymark.metrology.moderated import FEWEST_CLUSTERS, moderate, pairs_of
from assaymark.metrology.serial import serial_tests

Pair = tuple[int, int]

TOLERANCE = 1e-9
"""Slack of every cutoff, in favour of the record."""

NO_LINK = "no judge without an interest, and no third agent links the two"
_DEPENDENT = "only a common value: the judges' own-family indicators are not independent"
_NONE_OWN = "not measurable: no judge shares a family with some of the agents only"


@dataclass(frozen=True, slots=True)
class RecusalContrast(Estimate):
    """The contrast of two agents by judges that stand aside for their own family's; see `recusal_contrast`."""

    conflict: bool
    clusters: int
    free: tuple[int, ...]
    judges: tuple[int, ...]
    direct: Estimate | None


@dataclass(frozen=True, slots=True)
class RecusalTest:
    """A recusal contrast as orders are tested on it: by `moderated_contrasts`, or `serial_contrasts` in time order.

    ``state`` is "tested", "cannot be tested" (too few clusters identify the contrast) or "no judge without an interest"
    (none does); p is 1 in the last two. ``df`` is None where nothing varies, and the sign alone is tested.
    """

    clusters: int
    state: str
    p: float
    difference: float | None = None
    df: float | None = None
    se: float | None = None

    @property
    def estimate(self) -> float | None:
        """The difference, by the name that `headline_p` reads."""
        return self.difference


@dataclass(frozen=True, slots=True)
class OwnFamily:
    """How much higher judges score agents of their own maker than the other judges do; see `own_family`."""

    judges: tuple[int, ...]
    common: Estimate | None
    by_judge: tuple[Estimate, ...] | None
    p_holm: tuple[float, ...] | None
    state: str


def recusal_contrast(M: ArrayLike, own: ArrayLike, a: int, b: int, *, level: float = 0.95) -> RecusalContrast:
    """Contrast of two agents where every judge stands aside for agents of its own family. Source: Panickssery 2024."""
    table, interest = _checked("recusal_contrast", M, own)
    agents = table.shape[2]
    checks.probability("recusal_contrast", "level", level)
    for name, agent in (("a", a), ("b", b)):
        if checks.whole("recusal_contrast", name, agent, least=0) >= agents:
            checks.fail("recusal_contrast", name, f"must be one of the agents 0..{agents - 1} (got {agent})")
    if a == b:
        checks.fail("recusal_contrast", "b", f"must be another agent than a (got {b} twice)")
    return RecusalFit.of(table, interest).contrast(a, b, level=level)


def recusal_p(
    M: ArrayLike, own: ArrayLike, *, borrow: bool = True, consecutive: bool = False
) -> dict[Pair, RecusalTest | None]:
    """Test every pair of agents on its recusal contrast, all pairs at once."""
    table, interest = _checked("recusal_p", M, own)
    fit = RecusalFit.of(table, interest)
    first, second = pairs_of(table.shape[2])
    gaps = fit.gaps()
    tests = consecutive_tests(gaps, fit.effects) if consecutive else cluster_tests(gaps, fit.effects, borrow=borrow)
    conflicts = np.asarray(interest.any(axis=0))
    return {
        (i, j): test if conflicts[i] or conflicts[j] else None
        for i, j, test in zip(first.tolist(), second.tolist(), tests, strict=True)
    }


def own_family(M: ArrayLike, own: ArrayLike, *, level: float = 0.95, consecutive: bool = False) -> OwnFamily:
    """How much higher a judge scores agents of its own maker than the other judges score them. Source: Panickssery
    2024."""
    table, interest = _checked("own_family", M, own)
    checks.probability("own_family", "level", level)
    clusters, judges, agents = table.shape
    which = tuple(np.flatnonzero(interest.any(axis=1)).tolist())
    used = ~np.isnan(table)
    values = np.where(used, table, 0.0).reshape(clusters, -1)
    fits = [_preference_weights(row.tobytes(), interest.tobytes(), judges, agents) for row in used]
    common = [value @ fit[-1] for value, fit in zip(values, fits, strict=True) if fit is not None]
    each = [fit[:-1] @ value for value, fit in zip(values, fits, strict=True) if fit is not None and len(fit) > 1]
    if not common:
        return OwnFamily(which, None, None, None, _NONE_OWN)
    shared = _mean_of(np.array(common), level, consecutive)
    if not each:
        return OwnFamily(which, shared, None, None, _DEPENDENT)
    by_judge = tuple(_mean_of(column, level, consecutive) for column in np.array(each).T)
    adjusted = holm([estimate.p for estimate in by_judge]).tolist()
    return OwnFamily(which, shared, by_judge, tuple(adjusted), "ok")


@dataclass(frozen=True, slots=True, eq=False)
class RecusalFit:
    """The least-squares fits ``score = judge + agent`` of all clusters to the cells without an interest.

    ``table`` [G, J, K] and ``interest`` [J, K] are what was fitted. ``effects`` [G, K] are the agents' (minimum norm;
    NaN without a cell), ``weights`` [G, K, J, K] those of the cells in them, and ``linked`` [G, K, K] says which
    contrasts a cluster identifies.
    """

    table: Floats
    interest: Bools
    effects: Floats
    weights: Floats
    linked: Bools

    @classmethod
    def of(cls, table: Floats, interest: Bools) -> RecusalFit:
        """The fits of a table [G, J, K]; clusters with the same cells share one."""
        clusters, judges, agents = table.shape
        used = ~np.isnan(table) & ~interest
        values = np.where(used, table, 0.0)
        rows = used.reshape(clusters, -1)
        if (rows == rows[0]).all():
            fit = _recusal_weights(rows[0].tobytes(), judges, agents)
            effects = values.reshape(clusters, -1) @ fit[0].reshape(agents, -1).T
            weights = np.broadcast_to(fit[0], (clusters, *fit[0].shape))
            linked = np.broadcast_to(fit[1], (clusters, *fit[1].shape))
        else:
            fits = [_recusal_weights(row.tobytes(), judges, agents) for row in rows]
            weights, linked = np.stack([fit[0] for fit in fits]), np.stack([fit[1] for fit in fits])
            effects = np.einsum("gajk,gjk->ga", weights, values)
        present = np.diagonal(linked, axis1=1, axis2=2)
        return cls(table, interest, np.where(present, effects, np.nan), weights, linked)

    def gaps(self) -> Floats:
        """Contrast of every pair in each cluster [G, pairs], NaN where it is not identified."""
        first, second = pairs_of(self.effects.shape[1])
        return np.where(self.linked[:, first, second], self.effects[:, first] - self.effects[:, second], np.nan)

    def contrast(self, a: int, b: int, *, level: float = 0.95) -> RecusalContrast:
        """`recusal_contrast` of two agents."""
        conflicts = self.interest[:, a] | self.interest[:, b]
        free = np.flatnonzero(~conflicts)
        linked = self.linked[:, a, b]
        found = undefined(NO_LINK)
        if linked.any():
            found = cluster_mean(self.effects[linked, a] - self.effects[linked, b], level=level)
        scored = ~np.isnan(self.table[linked])
        judges = ((scored & ~self.interest)[:, :, [a, b]]).any(axis=(0, 2))
        gaps = self.table[:, free, a] - self.table[:, free, b]
        both = ~np.isnan(gaps)
        there = both.any(axis=1)
        means = np.where(both, gaps, 0.0).sum(axis=1)[there] / both.sum(axis=1)[there]
        return RecusalContrast(
            **found.parts(), conflict=bool(conflicts.any()), clusters=int(linked.sum()), free=tuple(free.tolist()),
            judges=tuple(np.flatnonzero(judges).tolist()),
            direct=cluster_mean(means, level=level) if means.size else None,
        )  # fmt: skip


def cluster_tests(gaps: Floats, effects: Floats, *, borrow: bool = True) -> list[RecusalTest]:
    """Every pair tested on its gaps [G, pairs] (NaN where not identified), as exchangeable clusters."""
    known = ~np.isnan(gaps)
    counts = known.sum(axis=0)
    means = np.where(known, gaps, 0.0).sum(axis=0) / np.maximum(counts, 1)
    squares = np.square(np.where(known, gaps - means, 0.0)).sum(axis=0)
    return moderated_tests(means, squares / np.maximum(counts - 1, 1), counts, effects, borrow=borrow)


def moderated_tests(
    means: Floats, variances: Floats, counts: Ints, effects: Floats, *, borrow: bool = True
) -> list[RecusalTest]:
    """Every pair tested by the moderated t on its mean, its variance between clusters and their number."""
    found = moderate(means, variances, counts, effects, borrow=borrow)
    columns = (counts, found.p, found.gap, found.df, found.se)
    return [
        RecusalTest(clusters, "tested", p, gap, None if np.isnan(df) else df, se)
        if clusters >= FEWEST_CLUSTERS
        else untested(clusters, gap)
        for clusters, p, gap, df, se in zip(*(column.tolist() for column in columns), strict=True)
    ]


def consecutive_tests(gaps: Floats, effects: Floats) -> list[RecusalTest]:
    """Every pair tested on its gaps [G, pairs] (NaN where not identified), as clusters in time order."""
    counts = (~np.isnan(gaps)).sum(axis=0).tolist()
    return [
        RecusalTest(clusters, test.state, test.p, test.gap, test.df, test.se)
        if test.state == "tested"
        else untested(clusters, test.gap)
        for clusters, test in zip(counts, serial_tests(gaps, effects).values(), strict=True)
    ]


def untested(clusters: int, gap: float | None) -> RecusalTest:
    """The record of a pair that too few clusters identify."""
    if clusters:
        return RecusalTest(clusters, "cannot be tested", 1.0, gap)
    return RecusalTest(0, "no judge without an interest", 1.0)


@lru_cache(maxsize=1024)
def _recusal_weights(used: bytes, judges: int, agents: int) -> tuple[Floats, Bools]:
    """Weights [K, J, K] of used cells in the agent effects, and which agents they link [K, K]."""
    cells = np.frombuffer(used, dtype=np.bool_)
    design = _judge_and_agent(judges, agents)[cells]
    weights = np.zeros((agents, judges * agents))
    weights[:, cells] = np.linalg.pinv(design)[judges:]
    table = cells.reshape(judges, agents)
    linked = table.T @ table  # by one judge; then by chains of two, four, ... judges
    for _ in range(agents.bit_length()):
        linked = linked @ linked
    return weights.reshape(agents, judges, agents), linked


@lru_cache(maxsize=1024)
def _preference_weights(used: bytes, own: bytes, judges: int, agents: int) -> Floats | None:
    """Weights of cells [., J*K] in each judge's own-family value and (last) in a common one; None: not identified."""
    cells = np.frombuffer(used, dtype=np.bool_)
    interest = np.frombuffer(own, dtype=np.bool_).reshape(judges, agents)
    design = _judge_and_agent(judges, agents)[cells]
    left = np.eye(len(design)) - design @ np.linalg.pinv(design)
    who = np.flatnonzero(interest.any(axis=1))
    indicators = np.zeros((judges * agents, who.size))
    for column, judge in enumerate(who):
        indicators[judge * agents : (judge + 1) * agents, column] = interest[judge]
    each = left @ indicators[cells]
    common = each.sum(axis=1)
    size = float(common @ common)
    if size <= TOLERANCE:
        return None
    independent = np.linalg.matrix_rank(each, tol=TOLERANCE) == who.size
    weights = np.zeros((1 + independent * who.size, judges * agents))
    weights[-1, cells] = common / size
    if independent:
        weights[:-1, cells] = np.linalg.pinv(each)
    return weights


@lru_cache(maxsize=64)
def _judge_and_agent(judges: int, agents: int) -> Floats:
    """Indicators [J*K, J+K] of the judge and of the agent of each cell."""
    cells = np.indices((judges, agents)).reshape(2, -1)
    return np.concatenate([np.eye(judges)[cells[0]], np.eye(agents)[cells[1]]], axis=1)


def _checked(source: str, table: ArrayLike, own: ArrayLike) -> tuple[Floats, Bools]:
    """Scores [G, J, K] and own-family indicators [J, K], as arrays that go together."""
    scores = scores_of(source, "M", table, 3)
    return scores, interest_of(source, own, scores.shape[1:])


def interest_of(source: str, own: ArrayLike, shape: tuple[int, ...]) -> Bools:
    """Own-family indicators [J, K]."""
    indicators = checks.array(source, "own", own)
    if indicators.shape != shape or not np.isin(indicators, (0, 1)).all():
        checks.fail(source, "own", f"must hold 0 or 1 for each judge and agent {shape} (got shape {indicators.shape})")
    return indicators.astype(np.bool_)


def _mean_of(values: Floats, level: float, consecutive: bool) -> Estimate:
    """Mean of one value per cluster."""
    return cluster_mean(values, neighbour_blocks(values.size) if consecutive else None, level=level)
