"""Threshold and d' against scikit-learn, scipy and their own definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import d_prime, datasheet, detection_threshold

curves = st.lists(
    st.tuples(st.integers(1, 60), st.floats(0, 1)).map(lambda x: (round(x[0] * x[1]), x[0])), min_size=1, max_size=7
)


@given(curves)
def test_the_fit_is_scikit_learns_isotonic_regression(curve):
    hits, calls = np.array(curve, dtype=float).T
    steps = np.arange(1.0, len(curve) + 1)
    theirs = IsotonicRegression().fit_transform(steps, hits / calls, sample_weight=calls)
    assert datasheet.isotonic(hits, calls) == pytest.approx(theirs)
    # The fit is scipys isotonic regression.
    from scipy.optimize import isotonic_regression

    assert datasheet.isotonic(hits, calls) == pytest.approx(isotonic_regression(hits / calls, weights=calls).x)


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


@given(curves, st.randoms(use_true_random=False))
def test_the_order_of_the_steps_does_not_matter(curve, random):
    hits, calls = np.array(curve, dtype=float).T
    steps = np.arange(1.0, len(curve) + 1)
    places = list(range(len(curve)))
    random.shuffle(places)
    expected = detection_threshold(steps.tolist(), hits / calls, calls)
    assert detection_threshold(steps[places].tolist(), (hits / calls)[places], calls[places]) == expected


def test_many_curves_are_fitted_at_once():
    rng = np.random.default_rng(1)
    calls = rng.integers(1, 30, (50, 6)).astype(float)
    hits = rng.binomial(calls.astype(int), 0.6).astype(float)
    together = datasheet.isotonic(hits, calls)
    assert together == pytest.approx(np.array([datasheet.isotonic(h, c) for h, c in zip(hits, calls, strict=True)]))
    values, codes = datasheet.thresholds(together, np.arange(1.0, 7.0))
    for k in range(50):
        found = detection_threshold([1, 2, 3, 4, 5, 6], hits[k] / calls[k], calls[k])
        assert found.value == pytest.approx(values[k])
        assert {None: 0, "left": -1, "right": 1}[found.censored] == codes[k]
    # A step without calls takes what its neighbours say.
    fit = datasheet.isotonic(np.array([2.0, 0.0, 8.0]), np.array([10.0, 0.0, 10.0]))
    assert fit[0] == pytest.approx(0.2)
    assert 0.2 <= fit[1] <= 0.8
    assert fit[2] == pytest.approx(0.8)
    assert datasheet.isotonic(np.array([0.0, 3.0]), np.array([0.0, 4.0]))[1] == pytest.approx(0.75)
    assert datasheet.isotonic(np.array([3.0, 0.0]), np.array([4.0, 0.0]))[0] == pytest.approx(0.75)
    # A share that just reaches the target reaches it.
    assert detection_threshold([1, 2], [0.5, 0.75], [10, 100]).value == 2
    third = detection_threshold([1, 2, 3], [0.1, 0.2, 0.3], [10, 10, 10], target=0.1 + 0.2)
    assert third.censored is None


@pytest.mark.parametrize(
    ("deltas", "shares", "n", "message"),
    [
        ([], [], [], "deltas: is empty"), ([1, 1], [0.5, 0.6], [5, 5], "different positive"),
        ([0, 1], [0.5, 0.6], [5, 5], "different positive"), ([1, 2], [0.5, 1.1], [5, 5], "shares lie in 0..1"),
        ([1, 2], [0.5, 0.6], [5, 0], "every step needs a call"), ([1, 2], [0.5], [5, 5], "equally long"),
        ([1, 2], [0.5, np.nan], [5, 5], "not finite"),
    ],
)  # fmt: skip
def test_a_ladder_that_makes_no_sense_is_refused(deltas, shares, n, message):
    with pytest.raises(InputError, match=message):
        detection_threshold(deltas, shares, n)


counts = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, counts)
def test_d_prime_is_the_difference_of_corrected_normal_quantiles(signal, noise):
    expected = stats.norm.ppf((signal[0] + 0.5) / (signal[1] + 1)) - stats.norm.ppf((noise[0] + 0.5) / (noise[1] + 1))
    assert d_prime(*signal, *noise) == pytest.approx(expected, abs=1e-9)
    # D prime turns its sign with the texts.
    assert d_prime(*signal, *noise) == pytest.approx(-d_prime(*noise, *signal), abs=1e-9)
    # Without ties d prime is the same from slot 2.
    hits, signals = signal
    false_alarms, noises = noise
    mirrored = d_prime(noises - false_alarms, noises, signals - hits, signals)
    assert mirrored == pytest.approx(d_prime(hits, signals, false_alarms, noises), abs=1e-9)


def test_d_prime_at_ceiling_counts_each_slot_by_itself():
    assert d_prime(10, 10, 0, 10) == pytest.approx(3.3812, abs=5e-5)
    # D prime of nothing is not measurable.
    with pytest.raises(NotMeasurableError, match="slot 1 and in slot 2"):
        d_prime(0, 0, 1, 5)
    with pytest.raises(InputError, match="exceed"):
        d_prime(6, 5, 0, 5)
    with pytest.raises(InputError, match="hits"):
        d_prime(-1, 5, 0, 5)


# The datasheet of a judge that scores single texts


def measured(scores, tasks, levels, seed=1, **vacuum):
    found = datasheet.pointwise_measurements(
        scores, tasks, levels, judge="j", dimension="risk", rng=np.random.default_rng(seed), **vacuum
    )
    return {m.name: m for m in found}


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
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    assert (found.n, found.n_of) == (8, "tasks")


def test_a_planted_slope_is_recovered(in_band):
    held = 0
    for seed in range(200):
        found = measured(*ladder(np.random.default_rng(seed), 10))["point.slope"]
        held += found.low <= 0.6 <= found.high
    assert in_band(held, 200, 0.95)
    # A planted vacuum score is recovered.
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([9, seed])
        tasks = np.repeat(np.arange(8), 3)
        scores = 1.4 + rng.normal(0, 0.2, 8)[tasks] + rng.normal(0, 0.3, 24)
        names = [f"t{t}" for t in tasks]
        found = measured([1.0], ["t"], [0.0], vacuum_scores=scores, vacuum_tasks=names)["point.vacuum_score"]
        held += found.low <= 1.4 <= found.high
    assert in_band(held, 200, 0.95)


def test_order_counts_neighbours_and_halves_ties(in_band):
    found = measured([1, 2, 2, 1, 3, 5], ["a"] * 4 + ["b"] * 2, [0, 1, 2, 3, 0, 1])["point.order"]
    assert found.value == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert (found.detail["right"], found.detail["tied"], found.detail["wrong"], found.n) == (2, 1, 1, 4)
    repeats = measured([1, 3, 2.5, 2.5], ["a"] * 4, [0, 0, 1, 1])["point.order"]
    assert repeats.value == 1.0
    # Planted order is recovered.
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([8, seed])
        steps = rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.2, 0.6], size=(10, 5))
        scores = np.concatenate([np.zeros((10, 1)), steps.cumsum(axis=1)], axis=1).ravel()
        names = [f"t{k}" for k in range(10) for _ in range(6)]
        found = measured(scores, names, np.tile(np.arange(6), 10), seed)["point.order"]
        held += found.low <= 0.7 <= found.high
    assert in_band(held, 200, 0.95)


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
    assert found.detail["rates"] == pytest.approx(rates)
    assert found.detail["difference"] == pytest.approx(np.mean(filler["filler_scores"] - base))
    assert found.detail["tokens_added"] == pytest.approx(filler["filler_tokens"].mean())
    assert (found.detail["pairs"], found.detail["without_base"]) == (24, 0)


@pytest.mark.parametrize("planted", [-0.3, 0.0, 0.25])
def test_a_planted_verbosity_is_recovered(in_band, planted):
    held = 0
    for seed in range(200):
        ladder_, filler = lengthened(np.random.default_rng([6, seed]), 10, planted)
        found = measured(*ladder_, **filler)["point.verbosity"]
        held += found.low <= planted <= found.high
    assert in_band(held, 200, 0.95)


def test_repeats_are_averaged_and_what_has_no_base_is_left_out():
    filler = {"filler_tasks": list("aaab"), "filler_levels": [1, 1, 2, 1], "filler_tokens": [50, 50, 60, 60]}
    found = measured([2, 4, 3], list("aaa"), [1, 1, 3], filler_scores=[4, 5, 5, 5], **filler)["point.verbosity"]
    assert found.value == pytest.approx(100 * (4.5 - 3) / 50)
    assert (found.n, found.detail["pairs"], found.detail["without_base"]) == (1, 1, 2)
    assert found.low is None
    # Pairs at an end of the scale are counted.
    filler = {"filler_tasks": list("aabb"), "filler_levels": [1, 2, 1, 2], "filler_tokens": [50] * 4}
    found = measured([1, 5, 3, 4], list("aabb"), [1, 2, 1, 2], filler_scores=[1, 5, 3, 5], **filler)["point.verbosity"]
    assert found.detail["at_ends"] == 2
    assert found.value == pytest.approx(100 * (0 + 1 / 100) / 2)
    # A judge that gives one score sees nothing and says so.
    found = measured([3.0] * 12, ["a"] * 6 + ["b"] * 6, list(range(6)) * 2)
    assert found["point.slope"].value == 0
    assert found["point.slope"].low is None
    assert "no interval" in found["point.slope"].method
    assert found["point.order"].value == 0.5


def test_what_is_missing_is_a_state():
    found = measured([1.0, 2.0], ["a", "b"], [1.0, 1.0])
    assert found["point.vacuum_score"].state == "not measured: no rationales without content were scored"
    assert found["point.slope"].state == "undefined: every task was scored at one level, needs two"
    assert found["point.order"].state == "undefined: every task was scored at one level, needs two"
    empty = measured([], [], [], vacuum_scores=[1.0, 2.0], vacuum_tasks=["a", "b"])
    assert empty["point.slope"].state == "not measured: no ladder rationales were scored"
    assert empty["point.vacuum_score"].value == 1.5
    assert found["point.verbosity"].state == "not measured: no texts with filler were scored"
    filler = {"filler_scores": [3.0], "filler_tasks": ["c"], "filler_levels": [1], "filler_tokens": [50]}
    for ladder_ in (([1.0, 2.0], ["a", "b"], [1.0, 1.0]), ([], [], [])):
        alone = measured(*ladder_, **filler)["point.verbosity"]
        assert alone.state == "undefined: no text with filler has a score without it, needs one"
        assert alone.detail["without_base"] == 1


@pytest.mark.parametrize(
    ("scores", "tasks", "levels", "message"),
    [
        ([1.0, np.nan], ["a", "b"], [0, 1], "not finite"), ([1.0, 2.0], ["a"], [0, 1], "tasks"),
        ([1.0, 2.0], ["a", "b"], [0], "equally long"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(scores, tasks, levels, message):
    with pytest.raises(InputError, match=message):
        measured(scores, tasks, levels)


@pytest.mark.parametrize(
    ("levels", "tokens", "message"),
    [
        ([1, 1], [50], "filler_scores, filler_levels: must be equally long"),
        ([1], [50, 50], "filler_scores, filler_tokens: must be equally long"),
        ([1], [0], "longer than its base .least got 0 tokens"), ([1], [np.nan], "not finite"),
    ],
)  # fmt: skip
def test_filler_that_does_not_fit_is_refused(levels, tokens, message):
    filler = {"filler_scores": [3.0], "filler_tasks": ["a"], "filler_levels": levels, "filler_tokens": tokens}
    with pytest.raises(InputError, match=message):
        measured([2.0], ["a"], [1.0], **filler)
