"""How much of a score is the wording: terse shares, a break in score by length, contrasts at equal length.

ValueBlindBench sections 5.3 and 5.5. The source found a correlation of length and score near zero beside a break near
60 tokens: a straight line has to be complemented by a scan over thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.bootstrap import SMALL_PRODUCT, wilson
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import contrast_of, holm, settle, t_test
from assaymark.metrology.controls import Cell, averaged_alike, measured
from assaymark.metrology.estimates import NEVER, number
from assaymark.metrology.kappa import gated
from assaymark.metrology.panel import panel_of
from assaymark.metrology.scores import ScoreTable
from assaymark.protocol import Study
from assaymark.quantiles import t_quantile
from assaymark.records import AGGREGATE, JSON, Measurement

DRAWS = 999
"""Draws behind the p-value of the threshold scan; the smallest p is 1 in 1,000."""

_POINTS = 40  # thresholds tested and listed; every token count is searched for the best
_LEAST = 0.02  # share of records on either side of a threshold
_FEWEST = 5
_ZERO = 1e-9
_NO_LENGTHS = "undefined: lengths of the judged texts were not given"


def style_measurements(honest: ScoreTable, study: Study, rng: np.random.Generator) -> Iterator[Measurement]:
    """Share of terse rationales of each agent, and the token count at which scores break most sharply.

    ``style.threshold`` is the best single split of the panel's aggregate on length, sought within agents and clusters.
    Its p is that of the largest standardised difference over 40 splits when whole cycles change places within their
    cluster; the covariance of these shuffles is known exactly, and the largest of such normal variables is drawn.
    """
    honest = gated(honest, study)
    lengths, level, tokens, count = honest.lengths, study.inference.level, study.cells.terse_tokens, "honest records"
    for a, agent in enumerate(honest.agents):
        own = honest.agent == a
        n = int(own.sum())
        below = int((lengths[own] < tokens).sum()) if lengths is not None else 0
        known = lengths is not None and n > 0
        detail: dict[str, JSON] = {"below": below, "tokens": tokens} if known else {}
        state = _NO_LENGTHS if lengths is None else "undefined: no trajectory with a usable score from every judge"
        yield number(Measurement, "terse.share", {"agent": agent}, below / n if known else None, (n, count),
                     f"honest records with fewer than {tokens} tokens over all, Wilson interval", state=state,
                     ends=wilson(below, n, level=level) if known else None, level=level, inputs=honest.digest,
                     detail=detail)  # fmt: skip
    value, detail, state = None, {}, _NO_LENGTHS
    if lengths is not None:
        scores = honest.stacked[:, :, 0].mean(axis=1)
        stratum = honest.agent * len(honest.clusters) + honest.cluster
        counts = np.maximum(np.bincount(stratum), 1)
        centred = scores - (np.bincount(stratum, weights=scores) / counts)[stratum]
        scan = _scan(scores, centred, lengths, stratum)
        state = f"undefined: no token count splits the {honest.n} records within an agent and cluster"
        if scan.tokens.size:
            best = int(np.argmax(np.abs(scan.total) / np.sqrt(scan.spread)))
            # Evenly by records, not by tokens: a few very long texts would take most of the places.
            wanted = np.linspace(scan.below[0], scan.below[-1], _POINTS - 1)
            listed = scan.at(np.unique(np.append(np.searchsorted(scan.below, wanted), best)))
            rows = zip(listed.tokens.tolist(), listed.difference.tolist(), listed.below.tolist(), strict=True)
            value = float(scan.tokens[best])
            detail = {
                "difference": float(scan.difference[best]),
                "within": float(scan.total[best] / scan.spread[best]),
                "p": _largest_p(honest, centred, lengths, listed, rng),
                "scan": [list(row) for row in rows],
            }
    yield number(Measurement, "style.threshold", {"dimension": AGGREGATE}, value, (honest.n, count),
                 "best single split of the panel score on token count within agent and cluster; p of the largest of "
                 "up to 40 splits under permutation of cycles within clusters", state=state, unit="tokens",
                 inputs=honest.digest, detail=detail)  # fmt: skip


class _Scan(NamedTuple):
    """Every place [S] at which the records can be split by length.

    A split has ``below`` records shorter than ``tokens``; ``difference`` is the plain mean above minus the mean below,
    ``total`` the sum of centred scores above, and ``spread`` the variation of the split, within agents and clusters.
    """

    tokens: Floats
    below: Ints
    difference: Floats
    total: Floats
    spread: Floats

    def at(self, places: Ints | Bools) -> _Scan:
        """Some of the splits."""
        tokens, below, difference, total, spread = self
        return _Scan(tokens[places], below[places], difference[places], total[places], spread[places])


def _scan(scores: Floats, centred: Floats, lengths: Floats, stratum: Ints) -> _Scan:
    """Every split that leaves enough records on both sides and divides some agent's records in some cluster."""
    tokens, place = np.unique(lengths, return_inverse=True)
    size, strata = tokens.size, int(stratum.max(initial=0)) + 1
    table = np.bincount(stratum * size + place, minlength=strata * size).reshape(strata, size)
    lower = np.cumsum(table, axis=1)[:, :-1]
    counts = table.sum(axis=1, keepdims=True)
    below = lower.sum(axis=0)
    sums, inside = (np.cumsum(np.bincount(place, weights=x, minlength=size))[:-1] for x in (scores, centred))
    least = max(_FEWEST, int(np.ceil(_LEAST * scores.size)))
    spread = (lower * (counts - lower) / np.maximum(counts, 1)).sum(axis=0)
    above = np.maximum(scores.size - below, 1)
    # Centred scores sum to zero, so what lies above is minus what lies below.
    difference = (scores.sum() - sums) / above - sums / np.maximum(below, 1)
    every = _Scan(tokens[1:], below, difference, np.negative(inside, dtype=np.float64), spread)
    return every.at((below >= least) & (scores.size - below >= least) & (spread > 0))


def _largest_p(honest: ScoreTable, centred: Floats, lengths: Floats, scan: _Scan, rng: np.random.Generator) -> float:
    """How often the largest of normal variables with the covariance of permuted cycles is as large as the one found."""
    covariance = np.zeros((scan.tokens.size, scan.tokens.size))
    for cluster in np.unique(honest.cluster):
        covariance += _permuted(honest, centred, lengths, scan.tokens, np.flatnonzero(honest.cluster == cluster))
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    varies = spread > _ZERO
    if not varies.any():
        return 1.0
    found = float((np.abs(scan.total[varies]) / spread[varies]).max())
    factor = _root(covariance[np.ix_(varies, varies)] / np.outer(spread[varies], spread[varies]))
    draws = rng.standard_normal((DRAWS, factor.shape[0]))
    rows = SMALL_PRODUCT // factor.size
    # The order that was observed counts as one of the draws.
    reached = 1
    for start in range(0, DRAWS, rows):
        largest = np.abs(draws[start : start + rows] @ factor.T).max(axis=1)
        reached += int(np.count_nonzero(largest >= found - _ZERO))
    return reached / (DRAWS + 1)


def _root(covariance: Floats) -> Floats:
    """A lower triangular root of a covariance matrix, of which some columns may follow from others."""
    root = np.zeros_like(covariance)
    for k in range(len(covariance)):
        left = covariance[k, k] - root[k, :k] @ root[k, :k]
        if left > _ZERO:
            root[k:, k] = (covariance[k:, k] - root[k:, :k] @ root[k, :k]) / np.sqrt(left)
    return root


def _permuted(honest: ScoreTable, centred: Floats, lengths: Floats, tokens: Floats, rows: Ints) -> Floats:
    """Covariance [S, S] of the totals above each split when the cycles of one cluster change places."""
    cycles, c = np.unique(honest.cycle[rows], return_inverse=True)
    agents, a = np.unique(honest.agent[rows], return_inverse=True)
    present = np.zeros((agents.size, cycles.size))
    present[a, c] = 1
    above = np.zeros((agents.size, cycles.size, tokens.size))
    above[a, c] = lengths[rows, None] >= tokens
    above -= (above.sum(axis=1) / present.sum(axis=1)[:, None])[:, None]
    above *= present[..., None]
    scores = np.zeros_like(present)
    scores[a, c] = centred[rows]
    # Where some agents are absent, each pair of them is known from the cycles that both decided.
    between = scores @ scores.T / np.maximum(present @ present.T - 1, 1)
    weighted = (between @ above.reshape(agents.size, -1)).reshape(above.shape)
    return np.asarray((weighted.transpose(0, 2, 1) @ above).sum(axis=0))


def length_matched_contrasts(cell: Cell, honest: ScoreTable, study: Study) -> Iterator[Measurement]:
    """Every contrast of the panel again, on length-matched records alone, in the panel's direction (section 5.3).

    Holm families are the panel's own (the aggregate, and all dimensions together), in which a pair that never met keeps
    its place with p = 1.
    """
    honest, (cell,) = averaged_alike(honest, [cell], study)
    k, agents = len(honest.names), cell.table.agents
    again = {(agents[m.first], agents[m.second]): m for m in panel_of(cell.table, study).meetings if m.n}
    meetings = panel_of(honest, study).meetings
    pairs = [(honest.agents[m.first], honest.agents[m.second]) for m in meetings]
    met = [again.get(pair) for pair in pairs]
    tests = [None if m is None else t_test(m.sums[:, :k], m.cycles, level=study.inference.level) for m in met]
    if not pairs:
        return
    p = np.array([np.ones(k) if test is None else test.p for test in tests])
    adjusted = np.column_stack([holm(p[:, 0]), *([holm(p[:, 1:].ravel()).reshape(-1, k - 1)] if k > 1 else [])])
    for row, (meeting, pair, test, now) in enumerate(zip(meetings, pairs, tests, met, strict=True)):
        before = settle(meeting.sums[:, :k].sum(axis=0) / max(1, meeting.n))
        for column, dimension in enumerate(honest.names):
            turned = before[column] < 0
            high, low = pair[::-1] if turned else pair
            found = None if test is None or now is None else contrast_of(test, column, n=now.n)
            if found and turned:
                ends = (None, None) if found.low is None or found.high is None else (-found.high, -found.low)
                found = replace(found, difference=-found.difference + 0.0, low=ends[0], high=ends[1])
            yield measured("length_matched.contrast", {"dimension": dimension, "high": high, "low": low}, found, study,
                           method="mean paired difference within common cycles of length-matched records",
                           state=NEVER, n=now.n if now else 0, n_of="common cycles",
                           inputs=f"{honest.digest}+{cell.table.digest}",
                           detail={"p": float(p[row, column]), "p_holm": float(adjusted[row, column])})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verbosity:
    """How many points a judge gives for a record that is twice as long, beyond what the others give for it.

    ``low`` and ``high`` are None where fewer than three periods are left to tell how firm it is.
    """

    slope: float
    low: float | None
    high: float | None
    items: int
    periods: int
    level: float
    method: str


def season_verbosity(
    own: ArrayLike, others: ArrayLike, tokens: ArrayLike, agents: Sequence[str], periods: Sequence[str], *,
    level: float = 0.95,
) -> Verbosity:  # fmt: skip
    """Slope of a judge's distance from the others on the length of the record, within agents."""
    source = "season_verbosity"
    lengths = checks.finite(source, "tokens", tokens)
    above = checks.finite(source, "own", own) - checks.finite(source, "others", others)
    if above.size != lengths.size or (lengths < 1).any():
        checks.fail(source, "tokens", f"must be 1 or more for each of the {above.size} items (got {lengths.size})")
    checks.probability(source, "level", level)
    _, who = checks.labels(source, "agents", agents, lengths.size)
    names, when = checks.labels(source, "periods", periods, lengths.size)
    doublings = np.log2(lengths)
    slope = _slope(above, doublings, who)
    if slope is None or len(names) < 2:
        raise NotMeasurableError("verbosity is undefined: no agent's records differ in length")
    # Ends from the slopes without each period; none where a slope hangs on one period.
    low = high = None
    kept = [when != gone for gone in range(len(names))]
    left = [_slope(above[rest], doublings[rest], who[rest]) if rest.any() else None for rest in kept]
    if all(one is not None for one in left):
        without = np.array(left, dtype=np.float64)
        spread = without - without.mean()
        error = float(np.sqrt((len(names) - 1) / len(names) * (spread @ spread)))
        half = t_quantile(0.5 + level / 2, len(names) - 1) * error
        low, high = slope - half, slope + half
    method = "points per doubling of the length, within agents, against the median of the other judges; "
    return Verbosity(slope, low, high, int(lengths.size), len(names), level, f"{method}jackknife over periods")


def _slope(above: Floats, doublings: Floats, who: Ints) -> float | None:
    """Least squares within agents; None where no length varies."""
    counts = np.maximum(np.bincount(who), 1)
    x, y = (values - (np.bincount(who, weights=values) / counts)[who] for values in (doublings, above))
    squares = float(x @ x)
    return float(x @ y) / squares if squares > _ZERO else None
