"""May an order of two agents come from how much they write? Slopes on length, and contrasts at equal length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.estimates import (
    Estimate,
    cluster_codes,
    cluster_mean,
    group_sums,
    jackknife_estimate,
    jackknife_se,
    leave_out,
    neighbour_blocks,
    scores_of,
    student_estimate,
    undefined,
)
from assaymark.metrology.moderated import FEWEST_CONSECUTIVE, pairs_of
from assaymark.metrology.recusal import (
    NO_LINK,
    TOLERANCE,
    Pair,
    RecusalFit,
    RecusalTest,
    cluster_tests,
    consecutive_tests,
    interest_of,
    moderated_tests,
    untested,
)

# Regressions of scores on length within agents and cycles, and recusal contrasts at equal length, from sums.


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
        counts = group_sums(used.astype(np.float64), codes, int(codes.max()) + 1)
        means = group_sums(np.where(used, scores, 0.0), codes, int(codes.max()) + 1) / np.where(
            counts > 0, counts, np.nan
        )
        held = group_sums(np.where(used[..., None], covariates[:, None], 0.0), codes, int(codes.max()) + 1)
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


def regression_sums(scores: Floats, covariates: Floats, used: Bools, codes: Ints) -> Floats:
    """Products, by cluster [G, K+Q+R, K+Q+R], of agent indicators, covariates and R columns of scores [N, R, K]."""
    cycles, agents = used.shape
    indicators = np.broadcast_to(np.eye(agents), (cycles, agents, agents))
    columns = np.concatenate([indicators, covariates, scores.transpose(0, 2, 1)], axis=2)
    columns = np.where(used[:, :, None], columns, 0.0)
    present = used.sum(axis=1)
    columns = columns - (columns.sum(axis=1) / np.maximum(present, 1)[:, None])[:, None]
    columns = np.where(used[:, :, None], columns, 0.0)
    return group_sums(columns.transpose(0, 2, 1) @ columns, codes, int(codes.max()) + 1)


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


LengthWord = Literal["clear", "may be length", "length"]


@dataclass(frozen=True, slots=True)
class LengthAdjusted:
    """The contrast of two agents before and after length is held equal; see `length_adjusted`."""

    raw: Estimate
    slopes: tuple[Estimate, ...]
    adjusted: Estimate
    gap: tuple[float, ...]
    overlap: float


@dataclass(frozen=True, slots=True)
class LengthRecused(Estimate):
    """The recusal contrast of two agents at equal length; ``slopes`` [J][Q] are those of the judges that it used."""

    slopes: tuple[tuple[float, ...], ...]


class SignedTest(Protocol):
    """What `headline_p` reads of a test: a `RecusalTest`, or any estimate with its p."""

    @property
    def p(self) -> float:
        """Two-sided p."""

    @property
    def estimate(self) -> float | None:
        """What was tested, or None where nothing could be."""


def length_adjusted(
    Y: ArrayLike, X: ArrayLike, cluster: Sequence[Any] | NDArray[Any], a: int, b: int, *, level: float = 0.95,
    consecutive: bool = False,
) -> LengthAdjusted:  # fmt: skip
    """Contrast of two agents with length held equal: the regression ``score = agent + cycle + slope length`` (Dubois
    2024)."""
    source = "length_adjusted"
    scores = scores_of(source, "Y", Y, 2)
    covariates = centred_covariates(source, X, scores.shape)
    codes = cluster_codes(source, cluster, scores.shape[0])
    checks.probability(source, "level", level)
    _check_agents(source, a, b, scores.shape[1])
    return adjusted_pairs(scores, covariates, codes, [(a, b)], level=level, consecutive=consecutive)[0]


def length_recused(
    Y: ArrayLike, X: ArrayLike, cluster: Sequence[Any] | NDArray[Any], own: ArrayLike, a: int, b: int, *,
    causal: ArrayLike | None = None, level: float = 0.95, consecutive: bool = False,
) -> LengthRecused:  # fmt: skip
    """The recusal contrast at equal length: judges stand aside for their own family, each with its own slope."""
    equal = EqualLength.of("length_recused", Y, X, cluster, own)
    checks.probability("length_recused", "level", level)
    _check_agents("length_recused", a, b, equal.fit.effects.shape[1])
    first, second = pairs_of(equal.fit.effects.shape[1])
    pair = int(np.flatnonzero((first == min(a, b)) & (second == max(a, b)))[0])
    turn = 1.0 if a < b else -1.0
    rows = np.flatnonzero(~np.isnan(equal.gaps[:, pair]))
    if not rows.size:
        return LengthRecused(**undefined(NO_LINK).parts(), slopes=())
    if causal is not None:
        slopes = _causal_slopes("length_recused", causal, equal.exposure.shape[2])
        exposure = equal.pair_exposure(rows, np.array([pair]))[:, 0, :, 0].mean(axis=0)
        plain = cluster_mean(equal.gaps[rows, pair], neighbour_blocks(rows.size) if consecutive else None)
        gap, se, df = _with_causal(plain.estimate, plain.se, plain.df, exposure, slopes)
        found = student_estimate(turn * gap, se, df, level=level)
        return LengthRecused(**found.parts(), slopes=tuple((slope,) for slope in slopes[:, 0].tolist()))
    values, fitted = equal.adjusted(rows, np.array([pair]), consecutive)
    found = jackknife_estimate(turn * values[0, 0], turn * values[1:, 0], level=level)
    return LengthRecused(**found.parts(), slopes=tuple(map(tuple, fitted[0].tolist())))


def length_p(
    Y: ArrayLike, X: ArrayLike, cluster: Sequence[Any] | NDArray[Any], own: ArrayLike, *,
    causal: ArrayLike | None = None, borrow: bool = True, consecutive: bool = False,
) -> dict[Pair, RecusalTest]:  # fmt: skip
    """Test every pair of agents on its recusal contrast at equal length, all pairs at once."""
    equal = EqualLength.of("length_p", Y, X, cluster, own)
    gaps, effects = equal.gaps, equal.fit.effects
    first, second = pairs_of(effects.shape[1])
    if causal is not None:
        slopes = _causal_slopes("length_p", causal, equal.exposure.shape[2])
        plain = consecutive_tests(gaps, effects) if consecutive else cluster_tests(gaps, effects, borrow=borrow)
        exposure = equal.pair_exposure(np.arange(len(gaps)), np.arange(first.size))[..., 0]
        exposures = np.where(np.isnan(gaps)[:, :, None], 0.0, exposure).sum(axis=0)
        tests = [
            _causal_test(test, exposure / max(test.clusters, 1), slopes)
            for test, exposure in zip(plain, exposures, strict=True)
        ]
    else:
        tests = equal.tests(borrow=borrow, consecutive=consecutive)
    return dict(zip(zip(first.tolist(), second.tolist(), strict=True), tests, strict=True))


def length_rule(
    raw: Estimate | Mapping[str, Any], adjusted: SignedTest | Mapping[str, Any],
    slope: Estimate | Mapping[str, Any] | Sequence[Estimate | Mapping[str, Any]], gap: float | Sequence[float],
    causal: Sequence[float] | None = None, *, alpha: float = 0.05,
) -> LengthWord:  # fmt: skip
    """What may be said about length beside an order of two agents: one word."""
    checks.probability("length_rule", "alpha", alpha)
    estimate = float(field_of(raw, "estimate"))
    if estimate < 0:
        checks.fail("length_rule", "raw", f"turn the pair so that its contrast is positive (got {estimate!r})")
    gaps = np.ravel(gap)
    if causal is not None:
        value, se, df = _with_causal(
            estimate, field_of(raw, "se"), field_of(raw, "df"), gaps[:1], np.array([causal], dtype=np.float64)
        )
        left, p_up, explained = value, student_estimate(value, se, df).p_up, True
    else:
        if gaps.size == 1 and abs(float(gaps[0])) < EQUAL_LENGTH + TOLERANCE:
            return "clear"
        slopes = [slope] if isinstance(slope, Mapping | Estimate) else list(slope)
        if all(abs(field_of(one, "estimate") or 0.0) <= TOLERANCE for one in slopes):
            return "may be length"  # each agent always writes the same length, so that nothing was adjusted
        left, p_up = field_of(adjusted, "estimate"), field_of(adjusted, "p_up")
        explained = min(field_of(one, "p") for one in slopes) * len(slopes) <= alpha
        if left is None:
            return "may be length"
    if left > 0 and p_up <= alpha / 2 + TOLERANCE:
        return "clear"
    return "length" if left <= 0 and explained else "may be length"


def headline_p(
    p: float,
    estimate: float,
    recusal: SignedTest | Mapping[str, Any] | None,
    length: SignedTest | Mapping[str, Any] | None,
    slope_gap: float | None = None,  # noqa: ARG001 - asked for no more, but callers give it
    gap: float | Sequence[float] | None = None,
) -> tuple[float, float]:
    """The two p-values that an order of two agents is tested at: may it be published, and may it be a headline?"""
    publish = headline = p
    if recusal is not None:
        agreeing = _p_of(recusal, estimate)
        headline = max(p, agreeing)
        publish = headline if field_of(recusal, "estimate") is not None else p
    gaps = np.ravel([]) if gap is None else np.ravel(gap)
    same_length = gaps.size == 1 and abs(float(gaps[0])) < EQUAL_LENGTH + TOLERANCE
    if length is not None and not same_length:
        headline = max(headline, _p_of(length, estimate))
    return publish, headline


def adjusted_pairs(
    scores: Floats, covariates: Floats, codes: Ints, pairs: Sequence[Pair], *, level: float, consecutive: bool
) -> list[LengthAdjusted]:
    """`length_adjusted` of many pairs of scores [N, K], covariates [N, K, Q] and cluster codes [N]."""
    used = usable_cells(scores, covariates)
    normal = regression_sums(scores[:, None], covariates, used, codes)
    solved: dict[bytes, tuple[Floats, tuple[Estimate, ...]]] = {}
    found = []
    for a, b in pairs:
        both = used[:, a] & used[:, b]
        if not both.any():
            raise NotMeasurableError(f"length_adjusted: agents {a} and {b} have no cycle in common")
        rows, places = np.unique(codes[both], return_inverse=True)
        if rows.tobytes() not in solved:  # nearly always the same clusters for every pair
            slopes, agents, _ = solve_regression(leave_out(normal[rows], consecutive), scores.shape[1], 1)
            estimates = tuple(jackknife_estimate(column[0], column[1:], level=level) for column in slopes[:, :, 0].T)
            solved[rows.tobytes()] = agents[:, :, 0], estimates
        agents, estimates = solved[rows.tobytes()]
        adjusted = agents[:, a] - agents[:, b]
        first, second = covariates[both, a], covariates[both, b]
        found.append(
            LengthAdjusted(
                cluster_mean(
                    scores[both, a] - scores[both, b],
                    neighbour_blocks(rows.size)[places] if consecutive else places,
                    level=level,
                ),
                estimates,
                jackknife_estimate(adjusted[0], adjusted[1:], level=level),
                tuple((first - second).mean(axis=0).tolist()),
                min(_share_within(first[:, 0], second[:, 0]), _share_within(second[:, 0], first[:, 0])),
            )
        )
    return found


def _causal_test(test: RecusalTest, exposure: Floats, slopes: Floats) -> RecusalTest:
    """A recusal test with what causal slopes [J, 3] explain taken out, given its exposure [J] to length."""
    if test.state != "tested":
        return test
    gap, se, df = _with_causal(test.difference, test.se, test.df, exposure, slopes)
    return replace(test, difference=gap, se=se, df=df, p=student_estimate(gap, se, df).p)


def _with_causal(
    estimate: float | None, se: float | None, df: float | None, exposure: Floats, slopes: Floats
) -> tuple[float, float, float]:
    """A contrast less exposure [J] times slopes [J, (slope, se, df)], its standard error and smallest df."""
    error = np.hypot(se or 0.0, np.linalg.norm(exposure * slopes[:, 1]))
    least = min(slopes[:, 2].min(), np.inf if df is None else df)
    return float((estimate or 0.0) - exposure @ slopes[:, 0]), float(error), float(least)


def _share_within(lengths: Floats, others: Floats) -> float:
    """Share of texts whose length lies within the others' range."""
    inside = (lengths >= others.min() - TOLERANCE) & (lengths <= others.max() + TOLERANCE)
    return float(inside.mean())


def _causal_slopes(source: str, causal: ArrayLike, judges: int) -> Floats:
    """Slope, standard error and degrees of freedom of each judge [J, 3]."""
    slopes = checks.finite(source, "causal", causal, ndim=2)
    if slopes.shape != (judges, 3) or (slopes[:, 1] < 0).any() or (slopes[:, 2] <= 0).any():
        checks.fail(source, "causal", f"must hold (slope, standard error from 0, df above 0) for {judges} judges")
    return slopes


def _check_agents(source: str, a: int, b: int, agents: int) -> None:
    """Two different agents that exist."""
    for name, agent in (("a", a), ("b", b)):
        if checks.whole(source, name, agent, least=0) >= agents:
            checks.fail(source, name, f"must be one of the agents 0..{agents - 1} (got {agent})")
    if a == b:
        checks.fail(source, "b", f"must be another agent than a (got {b} twice)")


def _p_of(test: SignedTest | Mapping[str, Any], estimate: float) -> float:
    """The p of a test, 1 where its sign is not that of the estimate."""
    other = field_of(test, "estimate")
    return float(field_of(test, "p")) if other is not None and other * estimate > 0 else 1.0


def field_of(record: SignedTest | Mapping[str, Any], name: str) -> Any:
    """A field of a record, or the entry of a mapping."""
    return record[name] if isinstance(record, Mapping) else getattr(record, name)
