"""Variance components: planted ones are recovered, and balanced tables give the analysis of variance."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

from assaymark.errors import NotMeasurableError
from assaymark.metrology import Truth, simulate_scores, variance_components
from assaymark.metrology.simulation import Composer, Panelist, Spread

COMPOSERS = tuple(Composer(name, mean) for name, mean in (("ash", 3.2), ("birch", 3.0), ("cedar", 2.8)))
PANEL = (
    Panelist("auditor", "north", severity=0.2, disagreement=Spread(0.3, 0.0), trials=3, trial_noise=Spread(0.4, 0.0)),
    Panelist("reader", "south", severity=-0.2, disagreement=Spread(0.4, 0.0)),
    Panelist("skeptic", "east", disagreement=Spread(0.5, 0.0), bonus=(("ash", 0.1), ("birch", -0.1))),
)
TRUTH = Truth(
    composers=COMPOSERS, panel=PANEL, dimensions=("clarity", "risk"), clusters=8, cycles=8, cluster=Spread(0.2, 1.0),
    cycle=Spread(0.3, 1.0), interaction=Spread(0.15, 1.0), residual=Spread(0.4, 1.0),
)  # fmt: skip
BONUSES = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, -0.1], [0.0, 0.0, 0.0]])  # of agents (rows) by judges
"""Effects that the dimensions share, so that the aggregate has the same components as each of them."""


def simulated(truth, *seed):
    return simulate_scores(truth, np.random.default_rng(list(seed)))


def planted(dimension):
    """What each component should be, on a dimension or the aggregate; rounding adds 1/12 to each call."""
    shared = 1.0 if dimension != "aggregate" else 0.5  # noise of judges is independent between two dimensions
    noise = [shared * (0.3**2 + (0.4**2 + 1 / 12) / 3), shared * (0.4**2 + 1 / 12), shared * (0.5**2 + 1 / 12)]
    liking = BONUSES - BONUSES.mean(axis=1, keepdims=True) - BONUSES.mean(axis=0) + BONUSES.mean()
    levels = np.array([3.2, 3.0, 2.8]) + BONUSES.mean(axis=1)
    severity = np.array([0.2, -0.2, 0.0]) + BONUSES.mean(axis=0)
    return {
        "agent": levels.var(ddof=1),
        "cluster": 0.04,
        "cycle": 0.09,
        "agent x cluster": 0.0225,
        "residual": 0.16,
        "judge": severity.var(ddof=1),
        "judge x agent": np.square(liking).sum() / 2 / 2,
        "disagreement": float(np.mean(noise)),
    }, noise


@pytest.mark.parametrize("attendance", [1.0, 0.7])
def test_planted_components_are_recovered(attendance):
    """Over 200 studies the estimates, negative ones as they are, average to what was planted: nothing is biased."""
    truth = replace(TRUTH, composers=tuple(replace(one, attendance=attendance) for one in COMPOSERS))
    found = [variance_components(simulated(truth, 1, seed)) for seed in range(200)]
    for dimension in ("aggregate", "clarity"):
        parts, noise = planted(dimension)
        for part, value in parts.items():
            _close([one.part(part, dimension).raw for one in found], value, part)
        for judge, value in zip(PANEL, noise, strict=True):
            _close([one.judge("disagreement", judge.name, dimension).raw for one in found], value, judge.name)
    _close([one.judge("trial", "auditor").raw for one in found], (0.4**2 + 1 / 12) / 2, "trial")
    _close([one.severities["auditor", "clarity"] for one in found], 0.2, "severity")


def _close(values, expected, what):
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    # Rounding and the ends of the scale move a variance by a few thousandths, beside the sampling error.
    assert np.mean(values) == pytest.approx(expected, abs=3.5 * error + 0.004), what


def test_a_balanced_table_gives_the_analysis_of_variance():
    """Mean squares by their definitions, from sums over all agents and not over pairs of them."""
    table = simulated(replace(TRUTH, clusters=4, cycles=5), 2)
    y = table.stacked.mean(axis=1)[:, 0].reshape(3, 4, 5)
    a, g, c = y.shape
    cell, cycle = y.mean(axis=2), y.mean(axis=0)
    inner = y - cell[:, :, None] - cycle[None] + cycle.mean(axis=1)[None, :, None]
    ms_inner = np.square(inner).sum() / ((a - 1) * g * (c - 1))
    ms_cycle = a * np.square(cycle - cycle.mean(axis=1, keepdims=True)).sum() / (g * (c - 1))
    reaction = cell - cell.mean(axis=0) - cell.mean(axis=1, keepdims=True) + cell.mean()
    ms_reaction = c * np.square(reaction).sum() / ((a - 1) * (g - 1))
    ms_cluster = a * c * np.square(cell.mean(axis=0) - y.mean()).sum() / (g - 1)
    ms_agent = g * c * np.square(y.mean(axis=(1, 2)) - y.mean()).sum() / (a - 1)
    found = variance_components(table)
    judges = found.part("disagreement").raw / 3
    assert found.part("residual").raw == pytest.approx(ms_inner - judges)
    assert found.part("cycle").raw == pytest.approx((ms_cycle - ms_inner) / a)
    assert found.part("agent x cluster").raw == pytest.approx((ms_reaction - ms_inner) / c)
    assert found.part("cluster").raw == pytest.approx((ms_cluster - ms_cycle - ms_reaction + ms_inner) / (a * c))
    wanted = (ms_agent - (ms_inner + c * max(0, (ms_reaction - ms_inner) / c))) / (g * c)
    assert found.part("agent").raw == pytest.approx(wanted)


def test_restricted_likelihood_agrees_where_nothing_is_negative():
    """One cluster, agents fixed, cycles random: on balanced data both methods give the same numbers."""
    table = simulated(replace(TRUTH, clusters=1, cycles=40), 3)
    y = table.stacked.mean(axis=1)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = MixedLM(y, np.eye(3)[table.agent], groups=table.cycle).fit(reml=True)
    found = variance_components(table)
    assert found.part("cycle").raw == pytest.approx(float(np.asarray(fit.cov_re).item()), rel=1e-3)
    inner = found.part("residual").raw + found.part("disagreement").raw / 3
    assert inner == pytest.approx(float(fit.scale), rel=1e-3)


def test_a_negative_estimate_is_zero_and_says_so():
    still = replace(TRUTH, cycle=Spread(0.0), cluster=Spread(0.0), interaction=Spread(0.0), cycles=3)
    found = [variance_components(simulated(still, 4, seed)).part("cluster") for seed in range(20)]
    negative = [one for one in found if one.raw < 0]
    assert negative
    assert all((one.variance, one.sd) == (0.0, 0.0) and "is negative and set to 0" in one.state for one in negative)
    assert all(one.state == "ok" and one.variance == one.raw for one in found if one.raw >= 0)


def test_what_cannot_be_known_has_a_state():
    alone = variance_components(simulated(replace(TRUTH, composers=COMPOSERS[:1]), 5))
    assert (
        alone.part("agent").state
        == alone.part("judge x agent").state
        == "undefined: one agent, needs two that share cycles"
    )
    assert alone.part("disagreement").state == "ok"
    single = variance_components(simulated(replace(TRUTH, panel=PANEL[:1]), 5))
    assert single.part("judge").state == "undefined: one judge, needs two"
    assert single.part("residual").state == "includes the disagreement of the one judge"
    assert single.judge("disagreement", "auditor").variance is None
    one = variance_components(simulated(replace(TRUTH, clusters=1), 5))
    assert one.part("cluster").state == one.part("agent x cluster").state == "undefined: one cluster, needs two"
    assert one.part("cycle").state == "ok"
    once = variance_components(simulated(replace(TRUTH, cycles=1), 5))
    assert once.part("cycle").state == "undefined: one cycle in each cluster, needs two"
    assert once.judge("trial", "reader").state == "not measured: one trial, needs two"
    two = variance_components(simulated(replace(TRUTH, panel=PANEL[:2]), 5))
    assert two.judge("disagreement", "reader").state == "two judges: half of their disagreement each"
    few = variance_components(simulated(replace(TRUTH, clusters=1, cycles=1), 5))
    assert few.part("disagreement").state == "undefined: each agent decided once"


def test_pairs_that_never_met_are_counted():
    table = simulated(replace(TRUTH, clusters=2, cycles=4), 6)
    keep = (table.agent != 2) | (table.cluster == 0)
    keep &= (table.agent != 0) | (table.cluster == 1)
    rows = {name: getattr(table, name)[keep] for name in ("agent", "cycle", "cluster", "format", "scores", "mean")}
    names = tuple(np.array(table.trajectories)[keep])
    trials = {judge: found[keep] for judge, found in table.trials.items()}
    found = variance_components(replace(table, trajectories=names, trials=trials, **rows))
    assert (found.pairs, found.pairs_of) == (2, 3)


def test_an_empty_table_is_refused():
    table = simulated(TRUTH, 7)
    none = replace(table, trajectories=(), scores=table.scores[:0], mean=None)
    with pytest.raises(NotMeasurableError, match="no trajectory has a score from every judge"):
        variance_components(none)
