"""Length bias: slopes of scores on text length, and contrasts of agents at equal length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks, contrasts, estimates, recusal
from assaymark.metrology.bootstrap import SMALL_PRODUCT
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.controls import ControlCell, gate_cells, measured
from assaymark.metrology.estimates import Estimate, number
from assaymark.metrology.kappa import gated
from assaymark.metrology.panel import panel_of
from assaymark.metrology.recusal import Pair, PairTest
from assaymark.metrology.scores import ScoreTable
from assaymark.plan import EQUAL_LENGTH, FEWEST_CONSECUTIVE, TOLERANCE
from assaymark.protocol import Study
from assaymark.quantiles import wilson_ends
from assaymark.records import AGGREGATE, JSON, Measurement

# Regressions of scores on length within agents and cycles, and recusal contrasts at equal length, computed from sums.


MOST_COVARIATES = 3

_SAME = 1e-10  # share of a covariate's variation below which the remainder is float noise


@dataclass(frozen=True, slots=True, eq=False)
class EqualLength:
    """Sums by cluster for the recusal contrasts at equal length.
    ``gaps`` [G, P] are the unadjusted recusal contrasts (NaN if not identified), ``exposure`` [G, K, J, Q] the weights
    of each judge's covariates in the agent effects, ``normals`` groups of judges with the same cells, and their
    regression sums [G, ., .]. ``length_gaps`` [P] are the mean differences of the first covariate."""

    fit: recusal.RecusalFit
    gaps: Floats
    exposure: Floats
    normals: tuple[tuple[Ints, Floats], ...]
    length_gaps: Floats

    @classmethod
    def of(
        cls, source: str, Y: ArrayLike, X: ArrayLike, cluster: Sequence[Any] | NDArray[Any], own: ArrayLike
    ) -> EqualLength:
        """Compute the sums from scores [N, J, K]."""
        scores = estimates.scores_of(source, "Y", Y, 3)
        cycles, judges, agents = scores.shape
        covariates = centred_covariates(source, X, (cycles, agents))
        codes = estimates.cluster_codes(source, cluster, cycles)
        interest = recusal.interest_of(source, own, (judges, agents))
        used = np.stack([usable_cells(scores[:, j], covariates) for j in range(judges)], axis=1)
        counts = estimates.group_sums(used.astype(np.float64), codes, int(codes.max()) + 1)
        means = estimates.group_sums(np.where(used, scores, 0.0), codes, int(codes.max()) + 1) / np.where(
            counts > 0, counts, np.nan
        )
        totals = estimates.group_sums(np.where(used[..., None], covariates[:, None], 0.0), codes, int(codes.max()) + 1)
        fit = recusal.RecusalFit.of(means, interest)
        exposure = np.einsum("gajk,gjkq->gajq", fit.weights, totals / np.maximum(counts, 1)[..., None])
        patterns = [used[:, j].tobytes() for j in range(judges)]
        alike = [np.flatnonzero([pattern == other for other in patterns]) for pattern in dict.fromkeys(patterns)]
        normals = tuple((js, regression_sums(scores[:, js], covariates, used[:, js[0]], codes)) for js in alike)
        there = ~np.isnan(covariates[..., 0])
        lengths = np.where(there, covariates[..., 0], 0.0).T @ there
        common = np.maximum(there.T.astype(np.float64) @ there, 1)
        first, second = contrasts.pairs_of(agents)
        return cls(fit, fit.gaps(), exposure, normals, ((lengths - lengths.T) / common)[first, second])

    def pair_exposure(self, rows: Ints, pairs: Ints) -> Floats:
        """Return the weights of each judge's covariates in some contrasts of some clusters [rows, pairs, J, Q]."""
        first, second = contrasts.pairs_of(self.exposure.shape[1])
        return self.exposure[np.ix_(rows, first[pairs])] - self.exposure[np.ix_(rows, second[pairs])]

    def slopes(self, rows: Ints, consecutive: bool) -> tuple[Floats, bool]:
        """Compute each judge's slopes [1+U, J, Q] on some clusters and without each unit; also if any length varies."""
        agents, judges, width = self.exposure.shape[1:]
        fits, varies = np.empty((0, judges, width)), False
        for members, normal in self.normals:
            slopes, _, length_varies = solve_regression(
                estimates.leave_out(normal[rows], consecutive), agents, members.size
            )
            if not fits.size:
                fits = np.empty((slopes.shape[0], judges, width))
            fits[:, members] = slopes.transpose(0, 2, 1)
            varies |= length_varies
        return fits, varies

    def adjusted(self, rows: Ints, pairs: Ints, consecutive: bool) -> tuple[Floats, Floats]:
        """Compute contrasts at equal length on some clusters and without each unit [1+U, P]; slopes [1+U, J, Q]."""
        slopes, _ = self.slopes(rows, consecutive)
        counts = estimates.leave_out(np.ones(rows.size), consecutive)
        plain = estimates.leave_out(self.gaps[np.ix_(rows, pairs)], consecutive)
        exposure = estimates.leave_out(self.pair_exposure(rows, pairs), consecutive)
        return (plain - np.einsum("lpjq,ljq->lp", exposure, slopes)) / counts[:, None], slopes

    def tests(self, borrow: bool, consecutive: bool) -> list[PairTest]:
        """Test every pair at equal length."""
        defined = ~np.isnan(self.gaps)
        counts = defined.sum(axis=0)
        means, errors, units = np.zeros((3, counts.size))
        patterns, pattern = np.unique(defined, axis=1, return_inverse=True)
        for place, clusters in enumerate(patterns.T):
            rows, pairs = np.flatnonzero(clusters), np.flatnonzero(pattern.ravel() == place)
            if rows.size:
                values, _ = self.adjusted(rows, pairs, consecutive)
                means[pairs], units[pairs] = values[0], len(values) - 1
                errors[pairs] = estimates.jackknife_se(values[0], values[1:]) if len(values) > 1 else 0.0
        slopes, varies = self.slopes(np.arange(defined.shape[0]), consecutive)
        if consecutive:  # over blocks of neighbours
            p = [estimates.student_estimate(*parts).p for parts in zip(means, errors, units - 1, strict=True)]
            tests = recusal.pair_records(counts, counts >= FEWEST_CONSECUTIVE, np.array(p), means, units - 1, errors)
        else:
            effects = self.fit.effects - np.einsum("gajq,jq->ga", self.exposure, slopes[0])
            outcome = contrasts.moderate(means, counts * errors**2, counts, effects, borrow)
            tests = recusal.pair_records(counts, outcome.tested, outcome.p, outcome.gap, outcome.df, outcome.se)
        return [
            test if varies or abs(gap) < EQUAL_LENGTH + TOLERANCE else replace(test, p=1.0)
            for test, gap in zip(tests, self.length_gaps.tolist(), strict=True)
        ]


def usable_cells(scores: Floats, covariates: Floats) -> Bools:
    """Return the cells [N, K] with a score and all covariates, in cycles with at least two such cells."""
    used = ~np.isnan(scores) & ~np.isnan(covariates).any(axis=2)
    return np.asarray(used & (used.sum(axis=1, keepdims=True) > 1))


def regression_sums(scores: Floats, covariates: Floats, used: Bools, codes: Ints) -> Floats:
    """Compute cross products by cluster [G, K+Q+R, K+Q+R] of agent indicators, covariates and scores [N, R, K]."""
    cycles, agents = used.shape
    indicators = np.broadcast_to(np.eye(agents), (cycles, agents, agents))
    columns = np.concatenate([indicators, covariates, scores.transpose(0, 2, 1)], axis=2)
    columns = np.where(used[:, :, None], columns, 0.0)
    present = used.sum(axis=1)
    columns = columns - (columns.sum(axis=1) / np.maximum(present, 1)[:, None])[:, None]
    columns = np.where(used[:, :, None], columns, 0.0)
    return estimates.group_sums(columns.transpose(0, 2, 1) @ columns, codes, int(codes.max()) + 1)


def solve_regression(normal: Floats, agents: int, columns: int) -> tuple[Floats, Floats, bool]:
    """Solve sums [L, ., .] for slopes [L, Q, R] and agent effects [L, K, R]; also if the first covariate varies."""
    x = slice(agents, -columns)
    between = np.ascontiguousarray(normal[:, :agents, :agents])
    inverse = _inverse(between.tobytes(), between.shape)
    on_agents = inverse @ normal[:, :agents, agents:]
    rest = normal[:, x, agents:] - normal[:, x, :agents] @ on_agents
    width = rest.shape[1]
    # A length that is constant within agents and cycles leaves float noise, which must not become a slope.
    before = np.diagonal(normal[:, x, x], axis1=1, axis2=2)
    left = np.diagonal(rest[:, :, :width], axis1=1, axis2=2)
    scale = np.where(left > _SAME * before, 1 / np.sqrt(np.where(before > 0, before, 1.0)), 0.0)
    scaled = np.linalg.pinv(scale[:, :, None] * rest[:, :, :width] * scale[:, None], rcond=_SAME, hermitian=True)
    slopes = scale[:, :, None] * scaled @ (scale[:, :, None] * rest[:, :, width:])
    return slopes, on_agents[:, :, width:] - on_agents[:, :, :width] @ slopes, bool(scale[0, 0] > 0)


@lru_cache(maxsize=32)
def _inverse(matrices: bytes, shape: tuple[int, ...]) -> Floats:
    """Compute pseudo-inverses of symmetric matrices; cached, because most scales have scores in the same cells."""
    matrix = np.frombuffer(matrices, dtype=np.float64).reshape(shape)
    return np.asarray(np.linalg.pinv(matrix, hermitian=True), dtype=np.float64)


def centred_covariates(source: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return the covariates [N, K, Q] centred over all texts."""
    table = estimates.scores_of(source, "X", values, 3 if np.ndim(values) == 3 else 2)
    covariates = table if table.ndim == 3 else table[:, :, None]
    if covariates.shape[:2] != shape or covariates.shape[2] > MOST_COVARIATES:
        expected = f"one value, or up to {MOST_COVARIATES}, for each of {shape[0]} cycles and {shape[1]} agents"
        checks.fail(source, "X", f"must hold {expected} (got shape {table.shape})")
    defined = ~np.isnan(covariates)
    means = np.where(defined, covariates, 0.0).sum(axis=(0, 1)) / np.maximum(defined.sum(axis=(0, 1)), 1)
    return np.asarray(covariates - means)


LengthWord = Literal["clear", "may be length", "length"]


@dataclass(frozen=True, slots=True)
class LengthAdjusted:
    """The contrast of two agents before and after adjustment for length; see `length_adjusted`."""

    raw: Estimate
    slopes: tuple[Estimate, ...]
    adjusted: Estimate
    gap: tuple[float, ...]
    overlap: float


@dataclass(frozen=True, slots=True)
class LengthRecused(Estimate):
    """The recusal contrast of two agents at equal length; ``slopes`` [J][Q] are those of the judges used."""

    slopes: tuple[tuple[float, ...], ...]


def length_adjusted(
    Y: ArrayLike, X: ArrayLike, cluster: Sequence[Any] | NDArray[Any], a: int, b: int, *, level: float = 0.95,
    consecutive: bool = False,
) -> LengthAdjusted:  # fmt: skip
    """Compute a contrast of two agents at equal length, by the regression ``score = agent + cycle + slope length``
    (Dubois 2024)."""
    source = "length_adjusted"
    scores = estimates.scores_of(source, "Y", Y, 2)
    covariates = centred_covariates(source, X, scores.shape)
    codes = estimates.cluster_codes(source, cluster, scores.shape[0])
    checks.probability(source, "level", level)
    checks.two_agents(source, a, b, scores.shape[1])
    return adjusted_pairs(scores, covariates, codes, [(a, b)], level, consecutive)[0]


def length_recused(
    Y: ArrayLike, X: ArrayLike, cluster: Sequence[Any] | NDArray[Any], own: ArrayLike, a: int, b: int, *,
    causal: ArrayLike | None = None, level: float = 0.95, consecutive: bool = False,
) -> LengthRecused:  # fmt: skip
    """Compute the recusal contrast at equal length: without judges of an agent's own family, with a slope per judge."""
    equal = EqualLength.of("length_recused", Y, X, cluster, own)
    checks.probability("length_recused", "level", level)
    checks.two_agents("length_recused", a, b, equal.fit.effects.shape[1])
    pair = contrasts.pair_list(equal.fit.effects.shape[1]).index((min(a, b), max(a, b)))
    turn = 1.0 if a < b else -1.0
    rows = np.flatnonzero(~np.isnan(equal.gaps[:, pair]))
    if not rows.size:
        return LengthRecused(*estimates.undefined(recusal.NO_LINK).parts(), ())
    if causal is not None:
        slopes = _causal_slopes("length_recused", causal, equal.exposure.shape[2])
        exposure = equal.pair_exposure(rows, np.array([pair]))[:, 0, :, 0].mean(axis=0)
        plain = estimates.cluster_mean(
            equal.gaps[rows, pair], estimates.neighbour_blocks(rows.size) if consecutive else None
        )
        value, se, df = _with_causal(plain.estimate, plain.se, plain.df, exposure, slopes)
        estimate = estimates.student_estimate(turn * value, se, df, level)
        return LengthRecused(*estimate.parts(), tuple((slope,) for slope in slopes[:, 0].tolist()))
    values, fitted = equal.adjusted(rows, np.array([pair]), consecutive)
    estimate = estimates.jackknife_estimate(turn * values[0, 0], turn * values[1:, 0], level)
    return LengthRecused(*estimate.parts(), tuple(map(tuple, fitted[0].tolist())))


def length_p(
    Y: ArrayLike, X: ArrayLike, cluster: Sequence[Any] | NDArray[Any], own: ArrayLike, borrow: bool = True,
    consecutive: bool = False, *, causal: ArrayLike | None = None,
) -> dict[Pair, PairTest]:  # fmt: skip
    """Test every pair of agents on its recusal contrast at equal length, with all pairs together."""
    equal = EqualLength.of("length_p", Y, X, cluster, own)
    gaps, effects = equal.gaps, equal.fit.effects
    if causal is not None:
        slopes = _causal_slopes("length_p", causal, equal.exposure.shape[2])
        exposure = equal.pair_exposure(np.arange(len(gaps)), np.arange(gaps.shape[1]))[..., 0]
        exposures = np.where(np.isnan(gaps)[:, :, None], 0.0, exposure).sum(axis=0)
        tests = []
        for test, total in zip(recusal.gap_tests(gaps, effects, borrow, consecutive), exposures, strict=True):
            if test.state == "tested":
                parts = test.difference, test.se, test.df
                value, se, df = _with_causal(*parts, total / max(test.clusters, 1), slopes)
                test = PairTest(test.clusters, test.state, estimates.student_estimate(value, se, df).p, value, df, se)
            tests.append(test)
    else:
        tests = equal.tests(borrow, consecutive)
    return dict(zip(contrasts.pair_list(effects.shape[1]), tests, strict=True))


def length_rule(
    raw: Estimate | Mapping[str, Any], adjusted: PairTest | Estimate | Mapping[str, Any],
    slope: Estimate | Mapping[str, Any] | Sequence[Estimate | Mapping[str, Any]], gap: float | Sequence[float],
    causal: Sequence[float] | None = None, alpha: float = 0.05,
) -> LengthWord:  # fmt: skip
    """Classify whether length can explain a ranking of two agents: "clear", "may be length" or "length"."""
    checks.probability("length_rule", "alpha", alpha)
    estimate = float(field_of(raw, "estimate"))
    if estimate < 0:
        checks.fail("length_rule", "raw", f"turn the pair so that its contrast is positive (got {estimate!r})")
    gaps = np.ravel(gap)
    if causal is not None:
        value, se, df = _with_causal(
            estimate, field_of(raw, "se"), field_of(raw, "df"), gaps[:1], np.array([causal], dtype=np.float64)
        )
        remaining, p_up, explained = value, estimates.student_estimate(value, se, df).p_up, True
    else:
        if gaps.size == 1 and abs(float(gaps[0])) < EQUAL_LENGTH + TOLERANCE:
            return "clear"
        slopes = [slope] if isinstance(slope, Mapping | Estimate) else list(slope)
        if all(abs(field_of(estimate, "estimate") or 0.0) <= TOLERANCE for estimate in slopes):
            return "may be length"  # each agent always writes the same length, so that nothing was adjusted
        remaining, p_up = field_of(adjusted, "estimate"), field_of(adjusted, "p_up")
        explained = min(field_of(estimate, "p") for estimate in slopes) * len(slopes) <= alpha
        if remaining is None:
            return "may be length"
    if remaining > 0 and p_up <= alpha / 2 + TOLERANCE:
        return "clear"
    return "length" if remaining <= 0 and explained else "may be length"


def headline_p(
    p: float, estimate: float, recusal: PairTest | Estimate | Mapping[str, Any] | None,
    length: PairTest | Estimate | Mapping[str, Any] | None,
    slope_gap: float | None = None,  # noqa: ARG001 - no longer used, but callers pass it
    gap: float | Sequence[float] | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Return the two p-values of a ranking of two agents: for publication, and for a headline claim."""

    def p_of(test: PairTest | Estimate | Mapping[str, Any]) -> float:
        """Return the p of a test; 1 if its sign differs from that of the estimate."""
        other = field_of(test, "estimate")
        return float(field_of(test, "p")) if other is not None and other * estimate > 0 else 1.0

    publish = headline = p
    if recusal is not None:
        agreeing = p_of(recusal)
        headline = max(p, agreeing)
        publish = headline if field_of(recusal, "estimate") is not None else p
    gaps = np.ravel([]) if gap is None else np.ravel(gap)
    same_length = gaps.size == 1 and abs(float(gaps[0])) < EQUAL_LENGTH + TOLERANCE
    if length is not None and not same_length:
        headline = max(headline, p_of(length))
    return publish, headline


def adjusted_pairs(
    scores: Floats, covariates: Floats, codes: Ints, pairs: Sequence[Pair], level: float, consecutive: bool
) -> list[LengthAdjusted]:
    """Compute `length_adjusted` of many pairs from scores [N, K], covariates [N, K, Q] and cluster codes [N]."""
    used = usable_cells(scores, covariates)
    normal = regression_sums(scores[:, None], covariates, used, codes)
    solved: dict[bytes, tuple[Floats, tuple[Estimate, ...]]] = {}
    shared: dict[bytes, tuple[Ints, Ints]] = {}
    results = []
    for a, b in pairs:
        both = used[:, a] & used[:, b]
        if not both.any():
            raise NotMeasurableError(f"length_adjusted: agents {a} and {b} have no cycle in common")
        if both.tobytes() not in shared:
            shared[both.tobytes()] = np.unique(codes[both], return_inverse=True)
        rows, places = shared[both.tobytes()]
        if rows.tobytes() not in solved:  # usually every pair has the same clusters
            slopes, agents, _ = solve_regression(estimates.leave_out(normal[rows], consecutive), scores.shape[1], 1)
            slopes_of = tuple(
                estimates.jackknife_estimate(column[0], column[1:], level) for column in slopes[:, :, 0].T
            )
            solved[rows.tobytes()] = agents[:, :, 0], slopes_of
        agents, slopes_of = solved[rows.tobytes()]
        adjusted = agents[:, a] - agents[:, b]
        first, second = covariates[both, a], covariates[both, b]
        units = estimates.neighbour_blocks(rows.size)[places] if consecutive else places
        raw = estimates.cluster_mean(scores[both, a] - scores[both, b], units, level)
        # The smaller of the shares of an agent's texts whose length is within the other agent's range.
        overlap = min(
            float(((x >= y.min() - TOLERANCE) & (x <= y.max() + TOLERANCE)).mean())
            for x, y in ((first[:, 0], second[:, 0]), (second[:, 0], first[:, 0]))
        )
        differences = tuple((first - second).mean(axis=0).tolist())
        equal = estimates.jackknife_estimate(adjusted[0], adjusted[1:], level)
        results.append(LengthAdjusted(raw, slopes_of, equal, differences, overlap))
    return results


def judge_slopes(
    cells: Floats, covariates: Floats, codes: Ints, level: float = 0.95, consecutive: bool = False
) -> list[Estimate]:
    """Compute each judge's extra points per doubling of length over the other judges' mean, as slopes within agents and
    cycles: scores [N, K, J], covariates [N, K, Q] of which the first is log2 of the words, clusters [N]."""
    judges = cells.shape[2]
    excess = (cells - (cells.sum(axis=2, keepdims=True) - cells) / (judges - 1)).transpose(0, 2, 1)
    used = usable_cells(excess.sum(axis=1), covariates)
    present = np.unique(codes[used.any(axis=1)])
    if present.size < 2:
        return [estimates.undefined("too few clusters")] * judges
    normal = regression_sums(excess, covariates, used, codes)[present]
    slopes, _, varies = solve_regression(estimates.leave_out(normal, consecutive), cells.shape[1], judges)
    if not varies:
        return [estimates.undefined("texts of one agent on one question do not differ in length from others")] * judges
    return [estimates.jackknife_estimate(float(slope[0]), slope[1:], level) for slope in slopes[:, 0].T]


def _with_causal(
    estimate: float | None, se: float | None, df: float | None, exposure: Floats, slopes: Floats
) -> tuple[float, float, float]:
    """Subtract exposure [J] times slopes [J, (slope, se, df)] from a contrast; also its standard error and least df."""
    error = np.hypot(se or 0.0, np.linalg.norm(exposure * slopes[:, 1]))
    least = min(slopes[:, 2].min(), np.inf if df is None else df)
    return float((estimate or 0.0) - exposure @ slopes[:, 0]), float(error), float(least)


def _causal_slopes(source: str, causal: ArrayLike, judges: int) -> Floats:
    """Check slope, standard error and degrees of freedom of each judge [J, 3]."""
    slopes = checks.finite(source, "causal", causal, ndim=2)
    if slopes.shape != (judges, 3) or (slopes[:, 1] < 0).any() or (slopes[:, 2] <= 0).any():
        checks.fail(source, "causal", f"must hold (slope, standard error from 0, df above 0) for {judges} judges")
    return slopes


def field_of(record: PairTest | Estimate | Mapping[str, Any], name: str) -> Any:
    """Return a field of a record, or an entry of a mapping."""
    return record[name] if isinstance(record, Mapping) else getattr(record, name)


# Style effects: terse shares, a break in score by length, length-matched contrasts, verbosity bias

DRAWS = 999
"""Number of draws for the p-value of the threshold scan; the smallest p is 1 in 1,000."""

_POINTS = 40  # thresholds tested and listed; the best is searched over all word counts
_LEAST = 0.02  # share of records on either side of a threshold
_FEWEST = 5
_ZERO = 1e-9
_NO_LENGTHS = "undefined: lengths of the judged texts were not given"


def style_measurements(honest: ScoreTable, study: Study, rng: np.random.Generator) -> Iterator[Measurement]:
    """Measure each agent's share of terse rationales, and the word count with the sharpest break in scores."""
    honest = gated(honest, study)
    lengths, level, tokens, count = honest.lengths, study.inference.level, study.cells.terse_tokens, "honest records"
    for a, agent in enumerate(honest.agents):
        mask = honest.agent == a
        n = int(mask.sum())
        below = int((lengths[mask] < tokens).sum()) if lengths is not None else 0
        defined = lengths is not None and n > 0
        detail: dict[str, JSON] = {"below": below, "tokens": tokens} if defined else {}
        state = _NO_LENGTHS if lengths is None else "undefined: no trajectory with a usable score from every judge"
        yield number(
            Measurement, "terse.share", {"agent": agent}, below / n if defined else None, (n, count),
            f"honest records with fewer than {tokens} tokens over all, Wilson interval", state, detail,
            wilson_ends(below / n, n, level) if defined else None, level, inputs=honest.digest,
        )  # fmt: skip
    value, detail, state = None, {}, _NO_LENGTHS
    if lengths is not None:
        scores = honest.stacked[:, :, 0].mean(axis=1)
        stratum = honest.agent * len(honest.clusters) + honest.cluster
        counts = np.maximum(np.bincount(stratum), 1)
        centred = scores - (np.bincount(stratum, weights=scores) / counts)[stratum]
        # Every split by length [S] that leaves enough records on both sides and divides an agent's ones in a cluster:
        # ``below`` records are shorter than the split, ``difference`` is the mean above minus the mean below, ``total``
        # the sum of centred scores above, and ``spread`` the variation of the split, within agents and clusters.
        splits, place = np.unique(lengths, return_inverse=True)
        size, n = splits.size, scores.size
        strata = int(stratum.max(initial=0)) + 1
        table = np.bincount(stratum * size + place, minlength=strata * size)
        lower = np.cumsum(table.reshape(strata, size), axis=1)[:, :-1]
        counts = table.reshape(strata, size).sum(axis=1, keepdims=True)
        below_ = lower.sum(axis=0)
        sums, inside = (np.cumsum(np.bincount(place, weights=x, minlength=size))[:-1] for x in (scores, centred))
        spread = (lower * (counts - lower) / np.maximum(counts, 1)).sum(axis=0)
        # Centred scores sum to zero, so the sum above is minus the sum below.
        difference = (scores.sum() - sums) / np.maximum(n - below_, 1) - sums / np.maximum(below_, 1)
        usable = np.minimum(below_, n - below_) >= max(_FEWEST, int(np.ceil(_LEAST * n)))
        usable &= spread > 0
        tokens_, below_, difference, total, spread = (
            column[usable] for column in (splits[1:], below_, difference, np.negative(inside, dtype=np.float64), spread)
        )
        state = f"undefined: no token count splits the {honest.n} records within an agent and cluster"
        if tokens_.size:
            best = int(np.argmax(np.abs(total) / np.sqrt(spread)))
            # Evenly spaced by records, not by words: otherwise a few very long texts would take most thresholds.
            targets = np.linspace(below_[0], below_[-1], _POINTS - 1)
            listed = np.unique(np.append(np.searchsorted(below_, targets), best))
            rows = zip(*(column[listed].tolist() for column in (tokens_, difference, below_)), strict=True)
            value = float(tokens_[best])
            detail = {
                "difference": float(difference[best]), "within": float(total[best] / spread[best]),
                "p": _largest_p(honest, centred, lengths, tokens_[listed], total[listed], rng),
                "scan": [list(row) for row in rows],
            }  # fmt: skip
    yield number(Measurement, "style.threshold", {"dimension": AGGREGATE}, value, (honest.n, count),
                 "best single split of the panel score on token count within agent and cluster; p of the largest of "
                 "up to 40 splits under permutation of cycles within clusters", state, detail, unit="tokens",
                 inputs=honest.digest)  # fmt: skip


def _largest_p(
    honest: ScoreTable, centred: Floats, lengths: Floats, tokens: Floats, totals: Floats, rng: np.random.Generator
) -> float:
    """Compute the p-value of the largest statistic, by normal draws with the covariance of permuted cycles."""
    covariance = np.zeros((tokens.size, tokens.size))
    for cluster in np.unique(honest.cluster):
        # Covariance [S, S] of the totals above each split under permutation of the cycles within a cluster.
        members = np.flatnonzero(honest.cluster == cluster)
        cycles, c = np.unique(honest.cycle[members], return_inverse=True)
        agents, a = np.unique(honest.agent[members], return_inverse=True)
        present = np.zeros((agents.size, cycles.size))
        present[a, c] = 1
        above = np.zeros((agents.size, cycles.size, tokens.size))
        above[a, c] = lengths[members, None] >= tokens
        above -= (above.sum(axis=1) / present.sum(axis=1)[:, None])[:, None]
        above *= present[..., None]
        scores = np.zeros_like(present)
        scores[a, c] = centred[members]
        # If some agents are absent, each pair's covariance is from the cycles that both decided.
        between = scores @ scores.T / np.maximum(present @ present.T - 1, 1)
        weighted = (between @ above.reshape(agents.size, -1)).reshape(above.shape)
        covariance += np.asarray((weighted.transpose(0, 2, 1) @ above).sum(axis=0))
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    varies = spread > _ZERO
    if not varies.any():
        return 1.0
    actual = float((np.abs(totals[varies]) / spread[varies]).max())
    # A lower triangular root of a possibly singular covariance matrix.
    scaled = covariance[np.ix_(varies, varies)] / np.outer(spread[varies], spread[varies])
    factor = np.zeros_like(scaled)
    for k in range(len(scaled)):
        pivot = scaled[k, k] - factor[k, :k] @ factor[k, :k]
        if pivot > _ZERO:
            factor[k:, k] = (scaled[k:, k] - factor[k:, :k] @ factor[k, :k]) / np.sqrt(pivot)
    draws = rng.standard_normal((DRAWS, factor.shape[0]))
    rows = SMALL_PRODUCT // factor.size
    # The observed order counts as one of the draws.
    reached = 1
    for start in range(0, DRAWS, rows):
        largest = np.abs(draws[start : start + rows] @ factor.T).max(axis=1)
        reached += int(np.count_nonzero(largest >= actual - _ZERO))
    return reached / (DRAWS + 1)


def length_matched_contrasts(cell: ControlCell, honest: ScoreTable, study: Study) -> Iterator[Measurement]:
    """Measure every contrast on length-matched records only, in the panel's direction (section 5.3)."""
    honest, (cell,) = gate_cells(honest, [cell], study)
    k, agents = len(honest.names), cell.table.agents
    pairs, meetings = [*combinations(honest.agents, 2)], panel_of(honest, study).meetings
    again = {
        pair: (contrasts.t_test(sums[:, :k], cycles, study.inference.level), int(cycles.sum()))
        for pair, (sums, cycles) in zip(combinations(agents, 2), panel_of(cell.table, study).meetings, strict=True)
        if cycles.size
    }
    tests = [again.get(pair, (None, 0)) for pair in pairs]
    if not pairs:
        return
    p = np.array([np.ones(k) if test is None else test.p for test, _ in tests])
    adjusted = np.column_stack(
        [contrasts.holm(p[:, 0]), *([contrasts.holm(p[:, 1:].ravel()).reshape(-1, k - 1)] if k > 1 else [])]
    )
    for row, ((sums, cycles), pair, (test, n)) in enumerate(zip(meetings, pairs, tests, strict=True)):
        before = contrasts.snap_to_zero(sums[:, :k].sum(axis=0) / max(1, cycles.sum()))
        for column, dimension in enumerate(honest.names):
            flipped = before[column] < 0
            high, low = pair[::-1] if flipped else pair
            tested = None if test is None else contrasts.to_contrast(test, column, n)
            if tested and flipped:
                ends = (None, None) if tested.low is None or tested.high is None else (-tested.high, -tested.low)
                tested = replace(tested, difference=-tested.difference + 0.0, low=ends[0], high=ends[1])
            yield measured("length_matched.contrast", {"dimension": dimension, "high": high, "low": low}, tested, study,
                           (n, "common cycles"),
                           "mean paired difference within common cycles of length-matched records", estimates.NEVER,
                           {"p": float(p[row, column]), "p_holm": float(adjusted[row, column])},
                           inputs=f"{honest.digest}+{cell.table.digest}")  # fmt: skip


def season_verbosity(
    own: ArrayLike, others: ArrayLike, tokens: ArrayLike, agents: Sequence[str], periods: Sequence[str],
    level: float = 0.95,
) -> Estimate:  # fmt: skip
    """Estimate a judge's points per doubling of a record's length, in excess of the others and within agents, by a
    jackknife over periods. There is no interval if some period alone determines the slope."""
    source = "season_verbosity"
    lengths = checks.finite(source, "tokens", tokens)
    above = checks.finite(source, "own", own) - checks.finite(source, "others", others)
    if above.size != lengths.size or (lengths < 1).any():
        checks.fail(source, "tokens", f"must be 1 or more for each of the {above.size} items (got {lengths.size})")
    checks.probability(source, "level", level)
    authors, agent = checks.labels(source, "agents", agents, lengths.size)
    names, when = checks.labels(source, "periods", periods, lengths.size)
    x, y = np.log2(lengths), above - above.mean()
    x = x - x.mean()
    parts = np.stack([np.ones_like(x), x, y, x * x, x * y], axis=1)
    sums = estimates.group_sums(parts, when * len(authors) + agent, len(names) * len(authors))
    # Least squares within agents [1 + P]: on all periods, then without each.
    n, sx, sy, xx, xy = estimates.leave_out(sums.reshape(len(names), len(authors), 5)).transpose(2, 0, 1)
    squares, products = ((part - sx * other / np.maximum(n, 1)).sum(axis=1) for part, other in ((xx, sx), (xy, sy)))
    varies = squares > _ZERO
    if not varies[0] or len(names) < 2:
        raise NotMeasurableError("verbosity is undefined: no agent's records differ in length")
    slope, *without = products / np.where(varies, squares, 1.0)
    if not varies.all():
        return estimates.undefined("undefined: without one period no agent's records differ in length", float(slope))
    error = float(estimates.jackknife_se(float(np.mean(without)), np.array(without)))
    return estimates.student_estimate(slope, error, len(names) - 1, level)
