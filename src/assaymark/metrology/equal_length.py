"""Regressions of scores on length within agents and cycles, and recusal contrasts at equal length, from sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.jackknife import cluster_codes, jackknife_se, leave_out, scores_of, student_estimate
from assaymark.metrology.moderated import pairs_of
from assaymark.metrology.recusal import TOLERANCE, RecusalFit, RecusalTest, interest_of, moderated_tests, untested
from assaymark.metrology.serial import FEWEST_CONSECUTIVE

EQUAL_LENGTH = 0.03
"""Doublings of length (2 %) below which two agents write equally much, and nothing is asked about length."""

MOST_COVARIATES = 3

_SAME = 1e-10  # share of a covariate's variation below which what is left of it is float noise


@dataclass(frozen=True, slots=True, eq=False)
class EqualLength:
    """What the recusal contrasts at equal length need, by cluster.

    ``gaps`` [G, P] are the recusal contrasts as they are (NaN where not identified), ``exposure`` [G, K, J, Q] how far
    each judge's covariates enter the agent effects, ``normals`` the regression sums [G, ., .] of judges with the same
    cells and who these are. ``length_gaps`` [P] are the mean differences of the first covariate.
    """

    fit: RecusalFit
    gaps: Floats
    exposure: Floats
    normals: tuple[tuple[Ints, Floats], ...]
    length_gaps: Floats

    @classmethod
    def of(
        cls, source: str, Y: ArrayLike, X: ArrayLike, cluster: Sequence[Any] | NDArray[Any], own: ArrayLike
    ) -> EqualLength:
        """The sums of scores [N, J, K]."""
        scores = scores_of(source, "Y", Y, 3)
        cycles, judges, agents = scores.shape
        covariates = centred_covariates(source, X, (cycles, agents))
        codes = cluster_codes(source, cluster, cycles)
        interest = interest_of(source, own, (judges, agents))
        used = np.stack([usable_cells(scores[:, j], covariates) for j in range(judges)], axis=1)
        counts = sums_by_cluster(used.astype(np.float64), codes)
        means = sums_by_cluster(np.where(used, scores, 0.0), codes) / np.where(counts > 0, counts, np.nan)
        held = sums_by_cluster(np.where(used[..., None], covariates[:, None], 0.0), codes)
        fit = RecusalFit.of(means, interest)
        exposure = np.einsum("gajk,gjkq->gajq", fit.weights, held / np.maximum(counts, 1)[..., None])
        patterns = [used[:, j].tobytes() for j in range(judges)]
        alike = [np.flatnonzero([pattern == other for other in patterns]) for pattern in dict.fromkeys(patterns)]
        normals = tuple((who, regression_sums(scores[:, who], covariates, used[:, who[0]], codes)) for who in alike)
        known = ~np.isnan(covariates[..., 0])
        lengths = np.where(known, covariates[..., 0], 0.0).T @ known
        common = np.maximum(known.T.astype(np.float64) @ known, 1)
        first, second = pairs_of(agents)
        return cls(fit, fit.gaps(), exposure, normals, ((lengths - lengths.T) / common)[first, second])

    def pair_exposure(self, rows: Ints, pairs: Ints) -> Floats:
        """How far each judge's covariates enter some contrasts of some clusters [rows, pairs, J, Q]."""
        first, second = pairs_of(self.exposure.shape[1])
        return self.exposure[np.ix_(rows, first[pairs])] - self.exposure[np.ix_(rows, second[pairs])]

    def slopes(self, rows: Ints, consecutive: bool) -> tuple[Floats, bool]:
        """Each judge's slopes [1+U, J, Q] on some clusters and without each unit; whether any length varies."""
        agents, judges, width = self.exposure.shape[1:]
        found, varies = np.empty((0, judges, width)), False
        for who, normal in self.normals:
            slopes, _, length_varies = solve_regression(leave_out(normal[rows], consecutive), agents, who.size)
            if not found.size:
                found = np.empty((slopes.shape[0], judges, width))
            found[:, who] = slopes.transpose(0, 2, 1)
            varies |= length_varies
        return found, varies

    def adjusted(self, rows: Ints, pairs: Ints, consecutive: bool) -> tuple[Floats, Floats]:
        """Contrasts at equal length on some clusters and without each unit of them [1+U, P]; slopes [1+U, J, Q]."""
        slopes, _ = self.slopes(rows, consecutive)
        counts = leave_out(np.ones(rows.size), consecutive)
        plain = leave_out(self.gaps[np.ix_(rows, pairs)], consecutive)
        exposure = leave_out(self.pair_exposure(rows, pairs), consecutive)
        return (plain - np.einsum("lpjq,ljq->lp", exposure, slopes)) / counts[:, None], slopes

    def tests(self, *, borrow: bool, consecutive: bool) -> list[RecusalTest]:
        """Every pair tested at equal length."""
        known = ~np.isnan(self.gaps)
        counts = known.sum(axis=0)
        means, errors, units = np.zeros((3, counts.size))
        patterns, pattern = np.unique(known, axis=1, return_inverse=True)
        for place, clusters in enumerate(patterns.T):
            rows, pairs = np.flatnonzero(clusters), np.flatnonzero(pattern.ravel() == place)
            if rows.size:
                values, _ = self.adjusted(rows, pairs, consecutive)
                means[pairs], units[pairs] = values[0], len(values) - 1
                errors[pairs] = jackknife_se(values[0], values[1:]) if len(values) > 1 else 0.0
        slopes, varies = self.slopes(np.arange(known.shape[0]), consecutive)
        if consecutive:
            columns = (column.tolist() for column in (means, errors, units, counts))
            tests = [_block_test(*row) for row in zip(*columns, strict=True)]
        else:
            effects = self.fit.effects - np.einsum("gajq,jq->ga", self.exposure, slopes[0])
            tests = moderated_tests(means, counts * errors**2, counts, effects, borrow=borrow)
        return [
            test if varies or abs(gap) < EQUAL_LENGTH + TOLERANCE else replace(test, p=1.0)
            for test, gap in zip(tests, self.length_gaps.tolist(), strict=True)
        ]


def _block_test(gap: float, se: float, units: float, clusters: int) -> RecusalTest:
    """The jackknife t of one pair over blocks of neighbours."""
    if clusters < FEWEST_CONSECUTIVE:
        return untested(clusters, gap)
    found = student_estimate(gap, se, units - 1)
    return RecusalTest(clusters, "tested", found.p, gap, units - 1, se)


def usable_cells(scores: Floats, covariates: Floats) -> Bools:
    """Cells [N, K] with a score and all covariates, in cycles with two such cells."""
    used = ~np.isnan(scores) & ~np.isnan(covariates).any(axis=2)
    return np.asarray(used & (used.sum(axis=1, keepdims=True) > 1))


def sums_by_cluster(values: Floats, codes: Ints) -> Floats:
    """Sums [G, ...] of values [N, ...] by code, each of which occurs."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(codes.max() + 1))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))


def regression_sums(scores: Floats, covariates: Floats, used: Bools, codes: Ints) -> Floats:
    """Products, by cluster [G, K+Q+R, K+Q+R], of agent indicators, covariates and R columns of scores [N, R, K].

    All are centred within the cycle over the cells in use, so that cycle effects are out of them.
    """
    cycles, agents = used.shape
    indicators = np.broadcast_to(np.eye(agents), (cycles, agents, agents))
    columns = np.concatenate([indicators, covariates, scores.transpose(0, 2, 1)], axis=2)
    columns = np.where(used[:, :, None], columns, 0.0)
    present = used.sum(axis=1)
    columns = columns - (columns.sum(axis=1) / np.maximum(present, 1)[:, None])[:, None]
    columns = np.where(used[:, :, None], columns, 0.0)
    return sums_by_cluster(columns.transpose(0, 2, 1) @ columns, codes)


def solve_regression(normal: Floats, agents: int, columns: int) -> tuple[Floats, Floats, bool]:
    """Slopes [L, Q, R] and agent effects [L, K, R] of sums [L, ., .]; whether the first covariate varies at all."""
    x = slice(agents, -columns)
    inverse = np.linalg.pinv(normal[:, :agents, :agents], hermitian=True)
    on_agents = inverse @ normal[:, :agents, agents:]
    rest = normal[:, x, agents:] - normal[:, x, :agents] @ on_agents
    width = rest.shape[1]
    # A length that is constant within agents and cycles leaves float noise here, which must not become a slope.
    before = np.diagonal(normal[:, x, x], axis1=1, axis2=2)
    left = np.diagonal(rest[:, :, :width], axis1=1, axis2=2)
    scale = np.where(left > _SAME * before, 1 / np.sqrt(np.where(before > 0, before, 1.0)), 0.0)
    scaled = np.linalg.pinv(scale[:, :, None] * rest[:, :, :width] * scale[:, None], rcond=_SAME, hermitian=True)
    slopes = scale[:, :, None] * scaled @ (scale[:, :, None] * rest[:, :, width:])
    return slopes, on_agents[:, :, width:] - on_agents[:, :, :width] @ slopes, bool(scale[0, 0] > 0)


def centred_covariates(source: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Covariates [N, K, Q], centred over all texts."""
    table = scores_of(source, "X", values, 3 if np.ndim(values) == 3 else 2)
    covariates = table if table.ndim == 3 else table[:, :, None]
    if covariates.shape[:2] != shape or covariates.shape[2] > MOST_COVARIATES:
        wanted = f"one value, or up to {MOST_COVARIATES}, for each of {shape[0]} cycles and {shape[1]} agents"
        checks.fail(source, "X", f"must hold {wanted} (got shape {table.shape})")
    known = ~np.isnan(covariates)
    means = np.where(known, covariates, 0.0).sum(axis=(0, 1)) / np.maximum(known.sum(axis=(0, 1)), 1)
    return np.asarray(covariates - means)
