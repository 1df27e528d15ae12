"""Threshold and d' against scikit-learn, scipy and their own definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import d_prime, datasheet, detection_threshold

curves = st.lists(
    st.tuples(st.integers(1, 60), st.floats(0, 1)).map(lambda x: (round(x[0] * x[1]), x[0])), min_size=1, max_size=7
)


@given(curves, st.randoms(use_true_random=False))
def test_the_fit_is_that_of_two_other_libraries_and_the_order_of_the_steps_does_not_matter(curve, random):
    hits, calls = np.array(curve, dtype=float).T
    steps = np.arange(1.0, len(curve) + 1)
    theirs = IsotonicRegression().fit_transform(steps, hits / calls, sample_weight=calls)
    assert datasheet.isotonic(hits, calls) == pytest.approx(theirs)
    assert theirs == pytest.approx(isotonic_regression(hits / calls, weights=calls).x)
    places = random.sample(range(len(curve)), len(curve))
    expected = detection_threshold(steps.tolist(), hits / calls, calls)
    assert detection_threshold(steps[places].tolist(), (hits / calls)[places], calls[places]) == expected


@given(curves, st.floats(0.05, 0.95))
def test_the_threshold_is_where_the_fitted_curve_first_reaches_the_target(curve, target):
    hits, calls = np.array(curve, dtype=float).T
    steps = np.arange(1.0, len(curve) + 1) * 0.5
    fit = datasheet.isotonic(hits, calls)
    # A rise of a rounding error would be crossed anywhere.
    assume(np.abs(fit - target).min() > 1e-6)
    found = detection_threshold(steps.tolist(), hits / calls, calls, target=target)
    if fit[0] >= target:
        assert (found.value, found.censored) == (steps[0], "left")
    elif fit[-1] < target:
        assert (found.value, found.censored) == (steps[-1], "right")
    else:
        assert found.censored is None
        curve_at = np.interp([found.value - 1e-9, found.value, found.value + 1e-9], steps, fit)
        assert curve_at[1] == pytest.approx(target)
        assert curve_at[0] <= target + 1e-12 <= curve_at[2] + 1e-6


def test_many_curves_are_fitted_at_once():
    rng = np.random.default_rng(1)
    calls = rng.integers(1, 30, (50, 6)).astype(float)
    hits = rng.binomial(calls.astype(int), 0.6).astype(float)
    together = datasheet.isotonic(hits, calls)
    assert together == pytest.approx(np.array([datasheet.isotonic(h, c) for h, c in zip(hits, calls, strict=True)]))
    values, codes = datasheet.thresholds(together, np.arange(1.0, 7.0))
    for k in range(50):
        found = detection_threshold([1, 2, 3, 4, 5, 6], hits[k] / calls[k], calls[k])
        assert (found.value, {None: 0, "left": -1, "right": 1}[found.censored]) == (pytest.approx(values[k]), codes[k])
    # A step without calls takes what its neighbours say.
    fit = datasheet.isotonic(np.array([2.0, 0.0, 8.0]), np.array([10.0, 0.0, 10.0]))
    assert (fit[0], fit[2]) == pytest.approx((0.2, 0.8))
    assert 0.2 <= fit[1] <= 0.8
    assert datasheet.isotonic(np.array([0.0, 3.0]), np.array([0.0, 4.0]))[1] == pytest.approx(0.75)
    assert datasheet.isotonic(np.array([3.0, 0.0]), np.array([4.0, 0.0]))[0] == pytest.approx(0.75)
    # A share that just reaches the target reaches it.
    assert detection_threshold([1, 2], [0.5, 0.75], [10, 100]).value == 2
    assert detection_threshold([1, 2, 3], [0.1, 0.2, 0.3], [10, 10, 10], target=0.1 + 0.2).censored is None


@pytest.mark.parametrize(("deltas", "shares", "n", "message"), [
    ([], [], [], "deltas: is empty"), ([1, 1], [0.5, 0.6], [5, 5], "different positive"),
    ([0, 1], [0.5, 0.6], [5, 5], "different positive"), ([1, 2], [0.5, 1.1], [5, 5], "shares lie in 0..1"),
    ([1, 2], [0.5, 0.6], [5, 0], "every step needs a call"), ([1, 2], [0.5], [5, 5], "equally long"),
    ([1, 2], [0.5, np.nan], [5, 5], "not finite")
])  # fmt: skip
def test_a_ladder_that_makes_no_sense_is_refused(deltas, shares, n, message):
    with pytest.raises(InputError, match=message):
        detection_threshold(deltas, shares, n)


counts = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, counts)
def test_d_prime_is_the_difference_of_corrected_normal_quantiles(signal, noise):
    expected = stats.norm.ppf((signal[0] + 0.5) / (signal[1] + 1)) - stats.norm.ppf((noise[0] + 0.5) / (noise[1] + 1))
    found = d_prime(*signal, *noise)
    assert found == pytest.approx(expected, abs=1e-9)
    # It turns its sign with the texts, and without ties it is the same from slot 2.
    assert found == pytest.approx(-d_prime(*noise, *signal), abs=1e-9)
    (hits, signals), (false_alarms, noises) = signal, noise
    assert d_prime(noises - false_alarms, noises, signals - hits, signals) == pytest.approx(found, abs=1e-9)


def test_d_prime_at_ceiling_counts_each_slot_by_itself():
    assert d_prime(10, 10, 0, 10) == pytest.approx(3.3812, abs=5e-5)
    for counts, error, message in (
        ((0, 0, 1, 5), NotMeasurableError, "slot 1 and in slot 2"), ((6, 5, 0, 5), InputError, "exceed"),
        ((-1, 5, 0, 5), InputError, "hits"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            d_prime(*counts)


# The datasheet of a judge that scores single texts
def measured(scores, tasks, levels, seed=1, **vacuum):
    more = {"judge": "j", "dimension": "risk", "rng": np.random.default_rng(seed), **vacuum}
    return {m.name: m for m in datasheet.pointwise_measurements(scores, tasks, levels, **more)}


def held(in_band, truth, made, runs=200):
    """Check that the intervals of the runs cover a planted value at their level."""
    found = [made(seed) for seed in range(runs)]
    return in_band(sum(one.low <= truth <= one.high for one in found), runs, 0.95)


def ladder(rng, tasks, slope=0.6, noise=0.4):
    names = [f"t{t}" for t in range(tasks) for _ in range(6)]
    levels = np.tile(np.arange(6.0), tasks)
    base = np.repeat(rng.normal(1, 0.5, tasks), 6)
    return base + slope * levels + rng.normal(0, noise, levels.size), names, levels


def test_the_slope_is_the_mean_of_the_tasks_slopes():
    scores, names, levels = ladder(np.random.default_rng(1), 8)
    found = measured(scores, names, levels)["point.slope"]
    slopes = [stats.linregress(levels[k : k + 6], scores[k : k + 6]).slope for k in range(0, 48, 6)]
    assert found.value == pytest.approx(np.mean(slopes))
    expected = stats.ttest_1samp(slopes, 0).confidence_interval(0.95)
    assert ((found.low, found.high), found.n, found.n_of) == (pytest.approx(tuple(expected)), 8, "tasks")


def test_planted_slopes_vacuum_scores_and_orders_are_recovered(in_band):
    assert held(in_band, 0.6, lambda seed: measured(*ladder(np.random.default_rng(seed), 10))["point.slope"])

    def empty(seed):
        rng, tasks = np.random.default_rng([9, seed]), np.repeat(np.arange(8), 3)
        scores = 1.4 + rng.normal(0, 0.2, 8)[tasks] + rng.normal(0, 0.3, 24)
        vacuum = {"vacuum_scores": scores, "vacuum_tasks": [f"t{t}" for t in tasks]}
        return measured([1.0], ["t"], [0.0], **vacuum)["point.vacuum_score"]

    def ordered(seed):
        steps = np.random.default_rng([8, seed]).choice([-1.0, 0.0, 1.0], p=[0.2, 0.2, 0.6], size=(10, 5))
        scores = np.concatenate([np.zeros((10, 1)), steps.cumsum(axis=1)], axis=1).ravel()
        names = [f"t{k}" for k in range(10) for _ in range(6)]
        return measured(scores, names, np.tile(np.arange(6), 10), seed)["point.order"]

    assert held(in_band, 1.4, empty)
    assert held(in_band, 0.7, ordered)


def test_order_counts_neighbours_and_halves_ties():
    found = measured([1, 2, 2, 1, 3, 5], ["a"] * 4 + ["b"] * 2, [0, 1, 2, 3, 0, 1])["point.order"]
    assert found.value == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert (found.detail["right"], found.detail["tied"], found.detail["wrong"], found.n) == (2, 1, 1, 4)
    assert measured([1, 3, 2.5, 2.5], ["a"] * 4, [0, 0, 1, 1])["point.order"].value == 1.0


def lengthened(rng, tasks, verbosity, noise=0.3):
    """Tasks of four levels with filler that earns ``verbosity`` points per 100 tokens, and what each base scored."""
    names = [f"t{t}" for t in range(tasks) for _ in range(4)]
    levels = np.tile(np.arange(1.0, 5.0), tasks)
    tokens = rng.integers(54, 76, levels.size)
    base = 2 + 0.4 * levels + rng.normal(0, noise, levels.size)
    worth = verbosity + np.repeat(rng.normal(0, 0.1, tasks), 4)  # tasks may differ in what length earns
    longer = 2 + 0.4 * levels + worth * tokens / 100 + rng.normal(0, noise, levels.size)
    filler = {"filler_scores": longer, "filler_tasks": names, "filler_levels": levels, "filler_tokens": tokens}
    return (base, names, levels), filler


def test_verbosity_is_the_mean_over_tasks_of_points_per_100_tokens_added():
    (base, names, levels), filler = lengthened(np.random.default_rng(3), 6, 0.4)
    found = measured(base, names, levels, **filler)["point.verbosity"]
    gained = (filler["filler_scores"] - base).reshape(6, 4).sum(axis=1)
    rates = 100 * gained / filler["filler_tokens"].reshape(6, 4).sum(axis=1)
    assert found.value == pytest.approx(rates.mean())
    assert (found.low, found.high) == pytest.approx(tuple(stats.ttest_1samp(rates, 0).confidence_interval(0.95)))
    assert (found.n, found.n_of, found.unit) == (6, "tasks", "score points per 100 tokens")
    wanted = {"difference": np.mean(filler["filler_scores"] - base), "tokens_added": filler["filler_tokens"].mean()}
    assert {key: found.detail[key] for key in wanted} == pytest.approx(wanted)
    assert (found.detail["rates"], found.detail["pairs"], found.detail["without_base"]) == (pytest.approx(rates), 24, 0)


@pytest.mark.parametrize("planted", [-0.3, 0.0, 0.25])
def test_a_planted_verbosity_is_recovered(in_band, planted):
    def made(seed):
        ladder_, filler = lengthened(np.random.default_rng([6, seed]), 10, planted)
        return measured(*ladder_, **filler)["point.verbosity"]

    assert held(in_band, planted, made)


def test_repeats_are_averaged_and_what_has_no_base_is_left_out():
    filler = {"filler_tasks": list("aaab"), "filler_levels": [1, 1, 2, 1], "filler_tokens": [50, 50, 60, 60]}
    found = measured([2, 4, 3], list("aaa"), [1, 1, 3], filler_scores=[4, 5, 5, 5], **filler)["point.verbosity"]
    assert found.value == pytest.approx(100 * (4.5 - 3) / 50)
    assert (found.n, found.detail["pairs"], found.detail["without_base"], found.low) == (1, 1, 2, None)
    # Pairs at an end of the scale are counted.
    filler = {"filler_tasks": list("aabb"), "filler_levels": [1, 2, 1, 2], "filler_tokens": [50] * 4}
    found = measured([1, 5, 3, 4], list("aabb"), [1, 2, 1, 2], filler_scores=[1, 5, 3, 5], **filler)["point.verbosity"]
    assert (found.detail["at_ends"], found.value) == (2, pytest.approx(100 * (0 + 1 / 100) / 2))
    # A judge that gives one score sees nothing and says so.
    found = measured([3.0] * 12, ["a"] * 6 + ["b"] * 6, list(range(6)) * 2)
    assert (found["point.slope"].value, found["point.slope"].low, found["point.order"].value) == (0, None, 0.5)
    assert "no interval" in found["point.slope"].method


def test_what_is_missing_is_a_state():
    found = measured([1.0, 2.0], ["a", "b"], [1.0, 1.0])
    one_level = "undefined: every task was scored at one level, needs two"
    states = {"vacuum_score": "not measured: no rationales without content were scored", "slope": one_level,
              "order": one_level, "verbosity": "not measured: no texts with filler were scored"}  # fmt: skip
    assert {name: found[f"point.{name}"].state for name in states} == states
    empty = measured([], [], [], vacuum_scores=[1.0, 2.0], vacuum_tasks=["a", "b"])
    assert empty["point.slope"].state == "not measured: no ladder rationales were scored"
    assert empty["point.vacuum_score"].value == 1.5
    filler = {"filler_scores": [3.0], "filler_tasks": ["c"], "filler_levels": [1], "filler_tokens": [50]}
    for ladder_ in (([1.0, 2.0], ["a", "b"], [1.0, 1.0]), ([], [], [])):
        alone = measured(*ladder_, **filler)["point.verbosity"]
        assert alone.state == "undefined: no text with filler has a score without it, needs one"
        assert alone.detail["without_base"] == 1


@pytest.mark.parametrize(("change", "message"), [
    ({"scores": [np.nan]}, "not finite"), ({"tasks": []}, "tasks"), ({"levels": [1.0, 2.0]}, "equally long"),
    ({"filler_levels": [1, 1]}, "filler_scores, filler_levels: must be equally long"),
    ({"filler_tokens": [50, 50]}, "filler_scores, filler_tokens: must be equally long"),
    ({"filler_tokens": [0]}, "longer than its base .least got 0 tokens"), ({"filler_tokens": [np.nan]}, "not finite"),
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(change, message):
    filler = {"filler_scores": [3.0], "filler_tasks": ["a"], "filler_levels": [1], "filler_tokens": [50]}
    with pytest.raises(InputError, match=message):
        measured(**{"scores": [2.0], "tasks": ["a"], "levels": [1.0], **filler} | change)
