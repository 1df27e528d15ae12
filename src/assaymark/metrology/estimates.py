"""Measurements from single values, and estimates with a delete-one-cluster jackknife and Student's t."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.plan import TOLERANCE
from assaymark.records import JSON, Measurement

Ends = tuple[float | None, float | None]
Maker = Callable[..., Measurement]
"""A function that makes a measurement from keyword fields, like `Measurement` itself."""

POINTS: Final = "rubric points"
ONE_FAMILY: Final = "not measurable: one judge family, needs two"
IN_PARTS: Final = "not measurable: the table was read in parts, of which only sums were kept"
NO_SCORES: Final = "not measurable: no trajectory has a usable score from every judge"
NEVER: Final = "never compared"


def number(
    make: Maker, name: str, labels: Mapping[str, str], value: float | Estimate | None, count: tuple[int, str],
    method: str, state: str = "ok", detail: Mapping[str, JSON] | None = None, ends: Ends | None = None,
    level: float | None = None, unit: str = "", **more: Any,
) -> Measurement:  # fmt: skip
    """Make one measurement; ``count`` is n and its unit, ``state`` the reason if there is no value, ``level`` the
    coverage of ``ends``. An `Estimate` as the value provides its own state and ends."""
    estimate = value.estimate if isinstance(value, Estimate) else value
    if isinstance(value, Estimate):
        state, ends = value.state, (value.low, value.high)
    finite = None if estimate is None or math.isnan(estimate) else float(estimate)
    low, high = (None, None) if ends is None or finite is None else ends
    between = low is not None and high is not None and not math.isnan(low)
    return make(
        name=name, labels=labels, value=finite, n=int(count[0]),
        n_of=count[1], method=method, state=state if finite is None else "ok", low=low if between else None,
        high=high if between else None, level=level if between else None, unit=unit, detail=dict(detail or {}), **more,
    )  # fmt: skip


def defined(value: float) -> float | None:
    """Return a number, None if it is NaN."""
    return None if math.isnan(value) else float(value)


def state_of(error: NotMeasurableError) -> str:
    """Convert the reason in an error to the state of a measurement."""
    return f"undefined: {str(error).rpartition('undefined: ')[2]}"


ONE_CLUSTER = "undefined: one cluster, needs two"
ZERO_VARIANCE = "zero variance: sign test"

_ZERO = 1e-9  # scores are means of small integers; a smaller estimate is float noise
_FLAT = 1e-12  # relative; a smaller standard error is float noise


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its standard error, interval and test against zero.
    ``p`` is two-sided, ``p_up`` one-sided against "not above zero". ``state`` is "ok" or the reason for having no
    interval: if the clusters agree exactly, p is that of the sign test; with one cluster p is 1.
    ``estimate`` is None if the quantity itself is undefined; `undefined` makes that record."""

    estimate: float | None
    se: float | None
    df: float | None
    low: float | None
    high: float | None
    p: float
    p_up: float
    state: str

    def parts(self) -> tuple[float | None, float | None, float | None, float | None, float | None, float, float, str]:
        """The fields, for constructors of records that extend this one."""
        return self.estimate, self.se, self.df, self.low, self.high, self.p, self.p_up, self.state


def undefined(state: str, estimate: float | None = None) -> Estimate:
    """Make the record of a quantity that cannot be tested, with the reason as its state."""
    return Estimate(estimate, None, None, None, None, 1.0, 1.0, state)


def jackknife_se(full: Floats | float, without: Floats) -> Floats:
    """Compute delete-one-cluster standard errors [...] from the estimates without each cluster [G, ...]."""
    g = without.shape[0]
    return np.asarray(np.sqrt((g - 1) / g * np.square(without - full).sum(axis=0)))


def jackknife_estimate(full: float, without: Floats, level: float = 0.95, df: float | None = None) -> Estimate:
    """Compute one estimate's record from those without each cluster [G], by Student's t with df G - 1 (or ``df``)."""
    g = without.shape[0]
    if g < 2:
        return student_estimate(full, 0.0, 0)
    return student_estimate(full, float(jackknife_se(full, without)), g - 1 if df is None else df, level)


def student_estimate(estimate: float, se: float, df: float, level: float = 0.95) -> Estimate:
    """Compute an estimate's record from its standard error with ``df`` degrees of freedom (0: a single cluster)."""
    estimate, se = float(estimate), float(se)
    if df <= 0:
        return Estimate(estimate, None, 0, None, None, 1.0, 1.0, ONE_CLUSTER)
    if se <= _FLAT * max(1.0, abs(estimate)):
        # All clusters agree: one of the 2^(df+1) sign patterns is as extreme (two of them for a two-sided test).
        tail = 2.0 ** -(df + 1)
        p, up = (1.0, 1.0) if abs(estimate) <= _ZERO else (2 * tail, tail if estimate > 0 else 1.0)
        return Estimate(estimate, se, df, None, None, p, up, ZERO_VARIANCE)
    half = float(scipy.special.stdtrit(df, 0.5 + level / 2)) * se
    up = float(scipy.special.stdtr(df, -estimate / se))
    p = 2 * float(scipy.special.stdtr(df, -abs(estimate) / se))
    return Estimate(estimate, se, df, estimate - half, estimate + half, p, up, "ok")


def cluster_mean(values: Floats, codes: Ints | None = None, level: float = 0.95) -> Estimate:
    """Compute the jackknifed mean of values [n] with cluster codes 0..G-1 [n] (default: each value is a cluster)."""
    places = np.arange(values.size) if codes is None else codes
    means = leave_out(np.bincount(places, weights=values)) / leave_out(np.bincount(places))
    return jackknife_estimate(means[0], means[1:], level)


@cache
def neighbour_blocks(clusters: int) -> Ints:
    """Return, for each of ``clusters`` in time order, the block of neighbours that a jackknife omits with it."""
    steps = ((8, 2), (15, 3), (20, 4), (47, 5))
    size = next((size for most, size in steps if clusters <= most), clusters // 8)
    blocks = np.minimum(np.arange(clusters) // size, max(1, clusters // size) - 1)
    blocks.setflags(write=False)
    return blocks


def leave_out(sums: NDArray[Any], consecutive: bool = False) -> NDArray[Any]:
    """Sum [G, ...] over all clusters, then without each cluster or each block of neighbours [1+U, ...]."""
    units = sums
    if consecutive:
        starts = np.flatnonzero(np.diff(neighbour_blocks(sums.shape[0]), prepend=-1))
        units = np.add.reduceat(sums, starts, axis=0)
    total = units.sum(axis=0, keepdims=True)
    return total if len(units) < 2 else np.concatenate([total, total - units])


def cluster_codes(
    source: str, clusters: Sequence[Any] | NDArray[Any], n: int, consecutive: bool = False, name: str = "cluster"
) -> Ints:
    """Return codes 0..G-1 [n] of the clusters, or of blocks of neighbours, numbered by first appearance."""
    if isinstance(clusters, np.ndarray) and clusters.dtype == np.int64 and clusters.shape == (n,) and n:
        codes = _numbered(clusters.tobytes())
    else:
        codes = _numbered(checks.labels(source, name, clusters, n)[1].tobytes())
    return neighbour_blocks(int(codes.max()) + 1)[codes] if consecutive else codes


@lru_cache(maxsize=64)
def _numbered(codes: bytes) -> Ints:
    """Renumber codes as 0..G-1 by first appearance; cached, because the same records recur."""
    _, first, places = np.unique(np.frombuffer(codes, dtype=np.int64), return_index=True, return_inverse=True)
    numbers = np.asarray(np.argsort(np.argsort(first))[places], dtype=np.int64)
    numbers.setflags(write=False)
    return numbers


def scores_of(source: str, name: str, values: ArrayLike, ndim: int) -> Floats:
    """Return scores with ``ndim`` axes and NaN for None."""
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        checks.fail(source, name, "must be a rectangular array of numbers, None where one is missing")
    if table.ndim != ndim or not table.size:
        axes = "1 axis" if ndim == 1 else f"{ndim} axes"
        checks.fail(source, name, f"must have {axes} and at least one element (got shape {table.shape})")
    if np.isinf(table).any():
        checks.fail(source, name, "scores must be finite, or None where one is missing")
    return table


def group_sums(values: Floats, codes: Ints, groups: int) -> Floats:
    """Sum the rows of ``values`` [n, ...] by code [groups, ...]; 0 if a code does not occur."""
    counts = np.bincount(codes, minlength=groups)
    sums = np.zeros((groups, *values.shape[1:]))
    if counts.max(initial=0) <= 1:
        sums[codes] = values
        return sums
    present = np.flatnonzero(counts)
    order = np.argsort(codes, kind="stable")
    sums[present] = np.add.reduceat(values[order], (np.cumsum(counts) - counts)[present], axis=0)
    return sums


def missing_shares(
    judges: Sequence[str], agents: Sequence[str], replies: Ints
) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """Compute the shares of `ScoreTable.missing` from the counts of replies."""
    asked, lacking = replies.sum(axis=2), replies[:, :, 1]
    by_judge, by_pair = lacking.sum(axis=1) / asked.sum(axis=1).clip(1), lacking / asked.clip(1)
    return (
        {judges[j]: float(by_judge[j]) for j in np.flatnonzero(asked.any(axis=1)).tolist()},
        {(judges[j], agents[a]): float(by_pair[j, a]) for j, a in np.argwhere(asked).tolist()},
    )


def excess_replies(
    by_judge: Mapping[str, float], by_pair: Mapping[tuple[str, str], float], per_judge: float, per_agent: float
) -> dict[str, str]:
    """Compute `ScoreTable.excess` from the missing shares."""
    reasons = {
        judge: f"{share:.1%} of its replies are missing, at most {per_judge:.1%}"
        for judge, share in by_judge.items()
        if share > per_judge + TOLERANCE
    }
    for (judge, agent), share in by_pair.items():
        if share > per_agent + TOLERANCE:
            reasons.setdefault(judge, f"{share:.1%} of its replies on {agent} are missing, at most {per_agent:.1%}")
    return reasons
