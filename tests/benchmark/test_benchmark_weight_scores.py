"""The score of weights and its parts against loops over pairs, their laws, and both conventions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark import inter_class_score, intra_class_score, s3_score, weight_accuracy
from assaymark.errors import InputError, UnknownNameError

ALIKE = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
TWO = ["equity", "equity", "bond", "bond"]


@st.composite
def portfolios(draw, count=1):
    """Weights that sum to 1, correlations of random returns, classes."""
    n = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = [rng.dirichlet(np.full(n, 0.5)) for _ in range(count)]
    common = rng.normal(size=(40, 1)) * draw(st.floats(-2, 2))
    corr = np.corrcoef(rng.normal(size=(40, n)) + common * rng.normal(size=n), rowvar=False).reshape(n, n)
    classes = draw(st.lists(st.sampled_from(["equity", "bond", "crypto"]), min_size=n, max_size=n))
    return (*weights, corr, classes)


def slow_parts(w, corr, classes):
    """Equations 9 to 11 as they are written; a class without a pair adds nothing, one class held hedges nothing."""
    names = sorted(set(classes))
    members = {name: [i for i, one in enumerate(classes) if one == name] for name in names}
    total = {name: sum(w[i] for i in members[name]) for name in names}
    intra = 1.0
    for name in names:
        inside = [corr[i, j] for i, j in itertools.combinations(members[name], 2)]
        intra -= total[name] * max(np.mean(inside), 0) if inside else 0
    top = bottom = 0.0
    for a, b in itertools.permutations(names, 2):
        across = np.mean([corr[i, j] for i in members[a] for j in members[b]])
        top, bottom = top + total[a] * total[b] * across, bottom + total[a] * total[b]
    inter = (1 - top / bottom) / 2 if bottom > 0 else 0.0
    return np.clip(intra, 0, 1), np.clip(inter, 0, 1)


@given(portfolios())
def test_the_two_layers_are_equations_9_to_11(drawn):
    intra, inter = slow_parts(*drawn)
    assert intra_class_score(*drawn) == pytest.approx(intra, abs=1e-9)
    assert inter_class_score(*drawn) == pytest.approx(inter, abs=1e-6)


@given(portfolios(2), st.floats(0, 1))
def test_s3_is_equations_6_and_8(drawn, alpha):
    w, w_star, corr, classes = drawn
    accuracy = 1 - np.abs(w - w_star).sum() / 2
    intra, inter = slow_parts(w, corr, classes)
    wanted = alpha * accuracy + (1 - alpha) * (intra + inter) / 2
    assert s3_score(w, w_star, corr, classes, alpha=alpha) == pytest.approx(wanted, abs=1e-6)
    assert 0 <= s3_score(w, w_star, corr, classes, convention="reference") <= 1


@given(portfolios(2), st.randoms(use_true_random=False))
def test_s3_does_not_know_the_order_of_assets(drawn, random):
    w, w_star, corr, classes = drawn
    order = random.sample(range(w.size), w.size)
    mixed = w[order], w_star[order], corr[np.ix_(order, order)], [classes[i] for i in order]
    assert s3_score(*mixed) == pytest.approx(s3_score(*drawn), abs=1e-9)


@given(portfolios(2))
def test_s3_does_not_know_the_names_of_classes(drawn):
    w, w_star, corr, classes = drawn
    codes = [{"equity": 7, "bond": 0, "crypto": 3}[name] for name in classes]
    assert s3_score(w, w_star, corr, codes) == s3_score(w, w_star, corr, classes)


@given(portfolios(2))
def test_oracle_weights_are_accurate_and_the_distance_is_symmetric(drawn):
    w, w_star, *_ = drawn
    for convention in ("paper", "reference"):
        assert weight_accuracy(w_star, w_star, convention=convention) == 1.0
        assert weight_accuracy(w, w_star, convention=convention) == weight_accuracy(w_star, w, convention=convention)
    assert weight_accuracy(w, w_star) == pytest.approx(np.minimum(w, w_star).sum(), abs=1e-12)
    assert weight_accuracy(w, w_star) <= weight_accuracy(w, w_star, convention="reference") + 1e-12


def test_only_alpha_0_leaves_the_oracle_without_its_accuracy():
    w = np.full(4, 0.25)
    assert s3_score(w, w, ALIKE, TWO, alpha=1.0) == 1.0
    assert s3_score(w, w, ALIKE, TWO) == pytest.approx(0.5 + 0.5 * (0.5 + 0.25) / 2)


def test_the_reference_cannot_tell_portfolios_of_81_assets_apart():
    one, other = np.zeros(81), np.zeros(81)
    one[0] = other[1] = 1.0
    assert weight_accuracy(one, other) == 0.0
    assert weight_accuracy(one, other, convention="reference") == pytest.approx(1 - 1 / 81)


@pytest.mark.parametrize("held", [[0.5, 0.5, 0.0, 0.0], [0.5, 0.5 - 1e-12, 1e-12, 0.0], [0.0] * 4])
def test_one_class_held_hedges_nothing(held):
    assert inter_class_score(held, ALIKE, TWO) == 0.0
    assert inter_class_score(held, ALIKE, TWO, convention="reference") == 1.0


@pytest.mark.parametrize(("across", "score"), [(-1.0, 1.0), (0.0, 0.5), (1.0, 0.0)])
def test_two_assets_that_hedge_and_that_do_not(across, score):
    corr = [[1.0, across], [across, 1.0]]
    assert inter_class_score([0.3, 0.7], corr, ["equity", "bond"]) == pytest.approx(score)
    assert intra_class_score([0.3, 0.7], corr, ["equity", "bond"]) == 1.0


def test_all_of_one_class_that_moves_as_one():
    same = np.ones((3, 3))
    assert intra_class_score([0.2, 0.3, 0.5], same, ["crypto"] * 3) == pytest.approx(0.0)
    assert s3_score([0.2, 0.3, 0.5], [0.2, 0.3, 0.5], same, ["crypto"] * 3) == pytest.approx(0.5)


def test_a_class_that_hedges_itself_earns_nothing_within():
    corr = np.array([[1.0, -0.8], [-0.8, 1.0]])
    assert intra_class_score([0.5, 0.5], corr, ["commodity", "commodity"]) == 1.0


def test_the_mean_of_a_class_is_over_all_its_pairs_held_or_not():
    corr = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert intra_class_score([0.0, 0.0, 1.0], corr, ["equity"] * 3) == pytest.approx(0.7)


def test_undefined_pairs_are_left_out_of_every_mean():
    """A cash instrument that never moves has no correlation with anything."""
    corr = np.array([[1.0, 0.4, 0.2, np.nan], [0.4, 1.0, 0.2, np.nan], [0.2, 0.2, 1.0, np.nan], [np.nan] * 4])
    classes = ["equity", "equity", "bond", "cash"]
    w = [0.25, 0.25, 0.25, 0.25]
    assert intra_class_score(w, corr, classes) == pytest.approx(1 - 0.5 * 0.4)
    assert inter_class_score(w, corr, classes) == pytest.approx((1 - 0.2) / 2)
    # Equities and cash alone: no correlation between them is defined.
    assert inter_class_score([0.5, 0.0, 0.0, 0.5], corr, classes) == 0.0


def test_what_is_not_invested_is_in_no_class():
    assert intra_class_score([0.25, 0.0, 0.25, 0.0], ALIKE, TWO) == pytest.approx(0.75)
    assert weight_accuracy([0.0] * 4, [0.25] * 4) == pytest.approx(0.5)


def test_weights_in_six_decimals_are_those_that_were_rounded():
    exact = np.arange(1.0, 82.0) / np.arange(1.0, 82.0).sum()
    given, even = np.ceil(exact * 1e6) / 1e6, np.full(81, 1 / 81)
    assert 1e-6 < given.sum() - 1 < 1e-4
    corr, classes = np.eye(81), ["equity", "bond", "cash"] * 27
    for score in (lambda w: weight_accuracy(w, even), lambda w: s3_score(w, even, corr, classes)):
        assert score(given) == pytest.approx(score(exact), abs=4e-5)
    assert weight_accuracy([0.333334] * 3, [1 / 3] * 3) == pytest.approx(1.0, abs=1e-12)
    assert weight_accuracy([0.333332] * 3, [1 / 3] * 3) == pytest.approx(1.0, abs=1e-12)
    assert intra_class_score([0.500001, 0.500001], np.ones((2, 2)), ["equity"] * 2) == 0.0
    with pytest.raises(InputError, match="must sum to at most 1"):
        weight_accuracy([0.3334] * 3, [1 / 3] * 3)


def test_rounding_does_not_make_a_matrix_asymmetric():
    w, rounded = [0.25] * 4, ALIKE + np.triu(np.full((4, 4), 1e-13), 1)
    assert intra_class_score(w, rounded, TWO) == pytest.approx(intra_class_score(w, ALIKE, TWO))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"w": [0.5, 0.6, 0.0, 0.0]}, "w: weights must sum to at most 1"),
        ({"w": [1.5, -0.5, 0.0, 0.0]}, "w: weights must not be negative"),
        ({"w": [np.nan, 0.5, 0.0, 0.0]}, "w: weights must be finite"),
        ({"w_star": [2.0, 0.0, 0.0, 0.0]}, "w_star: weights must sum"),
        ({"w": [0.5, 0.5]}, "w: must be as many as the truths .got 2 and 4."),
        ({"w": "even"}, "w: must be numbers"),
        ({"corr": np.eye(3)}, r"corr: must have shape \(4, 4\) .got \(3, 3\)."),
        ({"corr": np.full((4, 4), 1.5)}, "corr: must be from -1 to 1"),
        ({"corr": np.triu(np.full((4, 4), 0.5))}, "corr: must be symmetric"),
        ({"corr": [1.0]}, "corr: must have 2 axes"),
        ({"classes": ["equity"]}, "classes: must be 4, one of each asset .got 1."),
        ({"alpha": 1.2}, "alpha: must be from 0 to 1"),
    ],
)
def test_s3_refuses(changed, message):
    asked = {"w": [0.25] * 4, "w_star": [0.25] * 4, "corr": ALIKE, "classes": TWO, **changed}
    with pytest.raises(InputError, match=message):
        s3_score(**asked)


def test_s3_tells_every_problem():
    with pytest.raises(InputError, match="5 problems"):
        s3_score([2.0, 0, 0, 0], [0, -1.0, 0, 0], np.full((4, 4), 3.0), TWO, alpha=-1)


def test_another_convention_is_refused():
    for score in (weight_accuracy, inter_class_score, s3_score):
        asked = {weight_accuracy: 2, inter_class_score: 3, s3_score: 4}[score]
        with pytest.raises(UnknownNameError, match=r"unknown convention 'papr'\. Did you mean 'paper'"):
            score(*[[0.5]] * asked, convention="papr")
