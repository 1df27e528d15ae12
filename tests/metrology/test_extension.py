"""Records extended for planning: what is there stays, and what is added looks like it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import Truth, mean_pairwise_kappa, simulate_scores, variance_components
from assaymark.metrology.design import drawn_truth, fitted_truth, joined, with_judge, with_trials
from assaymark.metrology.measure_panel import categories_of
from assaymark.metrology.simulation import Composer, Panelist, Spread

TRUTH = Truth(
    composers=(Composer("ash", 3.3), Composer("birch", 3.0), Composer("cedar", 2.8)),
    panel=(
        Panelist("auditor", "north", severity=0.1, trials=2, trial_noise=Spread(0.6, 0.0)),
        Panelist("reader", "south", severity=-0.1),
        Panelist("skeptic", "east", disagreement=Spread(0.6, 0.3)),
    ),
    dimensions=("clarity", "evidence", "risk"),
    clusters=20,
    cycles=20,
)


@pytest.fixture(scope="module")
def table():
    return simulate_scores(TRUTH, np.random.default_rng(1))


@pytest.fixture(scope="module")
def components(table):
    return variance_components(table)


@pytest.fixture(scope="module")
def fitted(table, components):
    return fitted_truth(table, components)


def kappa(table):
    return mean_pairwise_kappa(categories_of(table.stacked[:, :, 0]))


def test_the_fit_is_near_the_truth(fitted):
    for part in ("cycle", "interaction", "residual"):
        found, planted = getattr(fitted, part), getattr(TRUTH, part)
        np.testing.assert_allclose(found.sd, planted.sd, atol=0.06)
    np.testing.assert_allclose(fitted.means, TRUTH.means, atol=0.15)
    for judge, planted in zip(fitted.panel, TRUTH.panel, strict=True):
        np.testing.assert_allclose(judge.disagreement.sd, planted.disagreement.sd, atol=0.06)
        assert judge.severity == pytest.approx(planted.severity, abs=0.05)
    assert fitted.panel[0].trial_noise.sd == pytest.approx(0.6, abs=0.05)
    assert (fitted.clusters, fitted.cycles) == (20, 20)


def test_a_study_from_the_fit_agrees_as_much_as_the_records(table, fitted):
    again = simulate_scores(fitted, np.random.default_rng(2))
    assert kappa(again) == pytest.approx(kappa(table), abs=0.05)


def test_agents_without_common_cycles_cannot_be_fitted(table, components):
    keep = (table.agent == 0) == (table.cluster < 10)
    parts = {name: getattr(table, name)[keep] for name in ("agent", "cycle", "cluster", "scores", "mean")}
    with pytest.raises(NotMeasurableError, match="without common cycles"):
        fitted_truth(replace(table, **parts), components)
    absent = replace(table, agents=(*table.agents, "elm"))
    with pytest.raises(NotMeasurableError, match="no scored trajectory of elm"):
        fitted_truth(absent, components)


def test_levels_are_drawn_as_widely_as_they_are_uncertain(table, fitted, components):
    draws = np.array([drawn_truth(table, fitted, components, np.random.default_rng(k)).means for k in range(400)])
    np.testing.assert_allclose(draws.mean(axis=0), fitted.means, atol=0.03)
    interaction, residual = fitted.interaction.sd[0], fitted.residual.sd[0]
    at_least = np.sqrt(interaction**2 / 20 + residual**2 / 400)
    assert at_least * 0.9 < draws[:, 0, 0].std() < at_least * 1.4


def test_levels_that_differ_by_chance_are_pulled_together():
    equal = replace(TRUTH, composers=tuple(replace(one, means=3.0) for one in TRUTH.composers), clusters=3, cycles=4)
    for seed in range(20):
        few = simulate_scores(equal, np.random.default_rng(seed))
        components = variance_components(few)
        fitted = fitted_truth(few, components)
        drawn = [drawn_truth(few, fitted, components, np.random.default_rng(k)).means for k in range(50)]
        spread = np.ptp(np.mean(drawn, axis=0).mean(axis=1))
        assert spread < np.ptp(fitted.means.mean(axis=1)) + 0.1
        if components.part("agent").variance == 0:
            assert spread < 1e-9


def test_one_agent_keeps_its_level(table, components):
    alone = simulate_scores(replace(TRUTH, composers=TRUTH.composers[:1]), np.random.default_rng(1))
    found = variance_components(alone)
    fitted = fitted_truth(alone, found)
    assert drawn_truth(alone, fitted, found, np.random.default_rng(1)).means == pytest.approx(fitted.means, abs=0.2)


def test_new_cycles_go_below_the_records(table, fitted):
    more = simulate_scores(replace(fitted, clusters=3, cycles=4), np.random.default_rng(3))
    both = joined(table, more, np.random.default_rng(4))
    assert both.n == table.n + 36
    np.testing.assert_array_equal(both.scores[: table.n], table.scores)
    np.testing.assert_array_equal(both.first[table.n :], more.first)
    assert len(both.clusters) == 23
    assert len(set(both.cycles)) == len(both.cycles) == both.cycle.max() + 1
    assert both.trials["auditor"].shape == (both.n, 2)
    assert len(set(both.trajectories)) == both.n
    with pytest.raises(InputError, match="joined: agents: must be the same in both tables"):
        joined(table, replace(more, agents=("x", "y", "z")), np.random.default_rng(1))


def test_new_records_have_formats_that_their_agents_used(table, fitted):
    mixed = replace(table, formats=("v1", "v2"), format=(table.agent == 1).astype(np.int64))
    more = simulate_scores(replace(fitted, clusters=1, cycles=5), np.random.default_rng(3))
    both = joined(mixed, more, np.random.default_rng(4))
    assert both.format[table.n :].tolist() == (more.agent == 1).astype(int).tolist()


def test_another_judge_agrees_as_the_panel_does(table, fitted, components):
    wider = with_judge(table, fitted, components, "bystander", "west", np.random.default_rng(5))
    assert wider.judges == ("auditor", "bystander", "reader", "skeptic")
    assert wider.families == ("north", "west", "south", "east")
    np.testing.assert_array_equal(wider.scores[:, [0, 2, 3]], table.scores)
    ratings = categories_of(wider.stacked[:, :, 0])
    with_it = [mean_pairwise_kappa(ratings[:, [1, j]]) for j in (0, 2, 3)]
    assert np.mean(with_it) == pytest.approx(kappa(table), abs=0.06)
    with pytest.raises(InputError, match="must be a new one"):
        with_judge(table, fitted, components, "reader", "west", np.random.default_rng(5))


def test_more_trials_average_out_what_changes_between_them(table, fitted):
    longer = with_trials(table, fitted, "auditor", 8, np.random.default_rng(6))
    assert longer.trials["auditor"].shape == (table.n, 10)
    np.testing.assert_array_equal(longer.scores[:, 1:], table.scores[:, 1:])
    truth = replace(TRUTH, panel=(replace(TRUTH.panel[0], trials=10), *TRUTH.panel[1:]))
    real = simulate_scores(truth, np.random.default_rng(7))
    for found, wanted in ((kappa(longer), kappa(real)), (longer.scores[:, 0].std(), real.scores[:, 0].std())):
        assert found == pytest.approx(wanted, abs=0.05)
    assert kappa(longer) > kappa(table)


def test_missing_trials_are_drawn_again(table, fitted):
    some = replace(table, trials={**table.trials, "auditor": table.trials["auditor"][:10]})
    assert with_trials(some, fitted, "auditor", 1, np.random.default_rng(8)).trials["auditor"].shape == (table.n, 3)
