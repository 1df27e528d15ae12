"""Kappa, Fleiss and the rounding rule: against scikit-learn, statsmodels, and the definition written slowly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import (
    fleiss_kappa,
    kappa_of_table,
    mean_correlation,
    mean_pairwise_kappa,
    round_half_up,
    weighted_kappa,
)
from assaymark.metrology.kappa import contingency

SCALE = [1, 2, 3, 4, 5]
pairs = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=60)


def varied(column):
    return len(set(column)) > 1


def kappa_by_definition(a, b):
    n = len(a)
    observed = sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / n
    expected = sum((x - y) ** 2 for x in a for y in b) / n**2
    return 1 - observed / expected


@given(pairs)
def test_kappa_is_its_definition(items):
    a, b = zip(*items, strict=True)
    assume(varied(a) or varied(b))
    assert weighted_kappa(a, b) == pytest.approx(kappa_by_definition(a, b), abs=1e-12)


@given(pairs)
def test_kappa_agrees_with_scikit_learn(items):
    a, b = zip(*items, strict=True)
    assume(varied(a) and varied(b))
    expected = cohen_kappa_score(a, b, weights="quadratic", labels=SCALE)
    assert weighted_kappa(np.array(a), np.array(b)) == pytest.approx(expected, abs=1e-12)


@given(pairs)
def test_kappa_does_not_depend_on_who_is_first_nor_on_the_direction_of_the_scale(items):
    a, b = (np.array(column) for column in zip(*items, strict=True))
    assume(varied(a) or varied(b))
    assert weighted_kappa(a, b) == weighted_kappa(b, a) == weighted_kappa(6 - a, 6 - b)


@given(pairs)
def test_kappa_of_an_item_list_repeated_is_the_same(items):
    a, b = (np.array(column) for column in zip(*items, strict=True))
    assume(varied(a) or varied(b))
    assert weighted_kappa(np.tile(a, 3), np.tile(b, 3)) == pytest.approx(weighted_kappa(a, b), abs=1e-15)


def test_counting_a_million_items_in_blocks_loses_none():
    rng = np.random.default_rng(5)
    a, b = rng.integers(1, 6, (2, 40_001))
    assert contingency(a, b).sum() == 40_001
    assert weighted_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b, weights="quadratic", labels=SCALE), abs=1e-12)


@pytest.mark.parametrize("categories", [2, 3, 5, 7, 8, 127, 128, 200])
@pytest.mark.parametrize("stray", ["zero", "negative", "next", "double", "huge", "very negative"])
@pytest.mark.parametrize("column", [0, 1])
def test_one_rating_off_the_scale_is_found_in_arrays_of_any_size(categories, stray, column):
    rng = np.random.default_rng(1)
    table = rng.integers(1, categories + 1, (2, 20_000))
    assert contingency(*table, categories=categories).sum() == 20_000
    strays = {"zero": 0, "negative": -1, "next": categories + 1, "double": 2 * categories, "huge": 2**40}
    value = strays.get(stray, -(2**62))
    table[column, 17_000] = value
    with pytest.raises(InputError, match=rf"1 rating\(s\) off the scale 1..{categories} \(first: {value}\)"):
        contingency(*table, categories=categories)


@given(pairs)
def test_counting_lists_and_arrays_is_the_same(items):
    a, b = zip(*items, strict=True)
    assert (contingency(a, b) == contingency(np.array(a), np.array(b))).all()


def test_categories_that_do_not_occur_still_count():
    a, b = np.array([2, 3, 4, 4, 2]), np.array([2, 4, 4, 3, 2])
    absent = cohen_kappa_score(a, b, weights="quadratic", labels=SCALE)
    assert weighted_kappa(a, b) == pytest.approx(absent, abs=1e-12)
    # Dropping category 3 from the labels of a scale with gaps changes the distances; ours must not.
    a, b = np.array([1, 1, 5, 5, 4]), np.array([1, 4, 5, 5, 5])
    renumbered = cohen_kappa_score(a, b, weights="quadratic")
    assert abs(weighted_kappa(a, b) - renumbered) > 0.01
    assert weighted_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b, weights="quadratic", labels=SCALE), abs=1e-12)


def test_a_wider_scale_and_small_integer_types():
    rng = np.random.default_rng(3)
    a, b = rng.integers(1, 101, (2, 500))
    expected = cohen_kappa_score(a, b, weights="quadratic", labels=list(range(1, 101)))
    for kind in (np.int8, np.uint8, np.int16, np.uint64, np.float32, np.float64):
        assert weighted_kappa(a.astype(kind), b.astype(kind), categories=100) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [([3, 3, 3], [3, 3, 3]), ([3, 3], [4, 4]), ([2], [5])])
def test_two_constant_judges_are_not_measurable(a, b):
    with pytest.raises(NotMeasurableError, match=f"both judges gave one rating to all {len(a)} items"):
        weighted_kappa(a, b)


def test_one_constant_judge_has_zero():
    assert weighted_kappa([3, 3, 3, 3], [1, 2, 3, 5]) == 0.0


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([], [], "a: is empty"),
        ([1, 2], [1], r"must be equally long \(got 2 and 1\)"),
        ([0, 1], [1, 2], r"off the scale 1..5 \(first: 0\)"),
        ([1, 6], [1, 2], r"1 rating\(s\) off the scale 1..5 \(first: 6\)"),
        ([1, 2.5], [1, 2], "first that is not: 2.5.*round_half_up, then clip"),
        ([1, math.nan], [1, 2], r"1 rating\(s\) are not finite \(first at index 1\)"),
        ([1, math.inf], [1, 2], "not finite"),
        ([1.0, 1e300], [1, 2], "off the scale"),
        (["1", "2"], [1, 2], "whole-number ratings"),
        ([True, False], [1, 2], "whole-number ratings"),
        ([None, 1], [1, 2], "objects"),
        ([[1, 2]], [1, 2], r"one axis \[n\] \(got shape \(1, 2\)\)"),
        ([[1], [1, 2]], [1, 2], "unequal lengths"),
        (3, [1, 2], r"got shape \(\)"),
    ],
)
def test_kappa_says_what_is_wrong(a, b, message):
    with pytest.raises(InputError, match=message):
        weighted_kappa(a, b)


@pytest.mark.parametrize("categories", [1, 0, 2.0, True, "5"])
def test_the_size_of_the_scale_is_checked(categories):
    with pytest.raises(InputError, match="categories: must be a whole number of at least 2"):
        weighted_kappa([1, 2], [1, 2], categories=categories)


@given(pairs)
def test_a_table_has_the_kappa_of_its_ratings(items):
    a, b = zip(*items, strict=True)
    assume(varied(a) or varied(b))
    assert kappa_of_table(contingency(a, b)) == weighted_kappa(a, b)
    assert kappa_of_table(contingency(a, b).tolist()) == weighted_kappa(a, b)


def test_a_table_of_very_many_items_stays_exact():
    cells = np.array([[10**11, 1], [0, 10**11]])
    assert kappa_of_table(cells) == pytest.approx(1 - 1e-11, abs=1e-15)


@pytest.mark.parametrize("table", [[[1, 2]], [[1.5, 0], [0, 1]], [[1, -1], [0, 1]], [1, 2]])
def test_a_table_must_be_a_square_of_counts(table):
    with pytest.raises(InputError, match="square of counts"):
        kappa_of_table(table)


def test_mean_pairwise_kappa_is_the_mean_over_pairs():
    rng = np.random.default_rng(11)
    table = rng.integers(1, 6, (80, 4))
    expected = [
        cohen_kappa_score(table[:, i], table[:, j], weights="quadratic", labels=SCALE)
        for i in range(4)
        for j in range(i + 1, 4)
    ]
    assert mean_pairwise_kappa(table) == pytest.approx(np.mean(expected), abs=1e-12)


def test_one_pair_without_a_kappa_makes_the_mean_undefined_and_says_which():
    with pytest.raises(NotMeasurableError, match="judges 2 and 3: kappa is undefined"):
        mean_pairwise_kappa([[1, 3, 4], [2, 3, 4], [3, 3, 4]])


@pytest.mark.parametrize("statistic", [mean_pairwise_kappa, fleiss_kappa])
def test_one_judge_cannot_agree(statistic):
    with pytest.raises(NotMeasurableError, match=r"at least two judges \(got 1\)"):
        statistic([[1], [2]])
    with pytest.raises(InputError, match="two axes"):
        statistic([1, 2])
    with pytest.raises(InputError, match="is empty"):
        statistic(np.empty((0, 3), dtype=int))


@given(st.lists(st.tuples(*[st.integers(1, 5)] * 3), min_size=2, max_size=40))
def test_fleiss_agrees_with_statsmodels(rows):
    table = np.array(rows)
    assume(len(np.unique(table)) > 1)
    counts, _ = inter_rater.aggregate_raters(table)
    assert fleiss_kappa(table) == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-10)


def test_fleiss_of_one_single_rating_is_undefined():
    with pytest.raises(NotMeasurableError, match="all 6 ratings are the same"):
        fleiss_kappa([[4, 4, 4], [4, 4, 4]])


@pytest.mark.parametrize(
    ("x", "rounded"), [(2.5, 3), (3.5, 4), (0.5, 1), (4.5, 5), (1.49, 1), (2.0, 2), (-0.5, 0), (7.5, 8), (4, 4)]
)
def test_halves_go_up(x, rounded):
    assert round_half_up(x) == rounded
    assert isinstance(round_half_up(x), float)


def test_rounding_keeps_shape_and_does_not_clip():
    assert round_half_up(np.array([[0.4, 5.5], [6.5, 2.5]])).tolist() == [[0, 6], [7, 3]]


@given(st.floats(-1e6, 1e6))
def test_rounding_is_floor_of_x_plus_a_half(x):
    assert round_half_up(x) == math.floor(x + 0.5)


@pytest.mark.parametrize("x", [math.nan, [1.0, math.inf], "3", None])
def test_rounding_refuses_what_is_no_number(x):
    with pytest.raises(InputError, match="must be finite numbers"):
        round_half_up(x)


def test_redundancy_is_the_mean_correlation():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(50, 3)) + rng.normal(size=(50, 1))
    r = np.corrcoef(scores.T)
    assert mean_correlation(scores) == pytest.approx((r[0, 1] + r[0, 2] + r[1, 2]) / 3)
    with pytest.raises(NotMeasurableError, match="judge 2 gave a single score"):
        mean_correlation([[1.0, 2.0], [3.0, 2.0]])
    with pytest.raises(InputError, match=r"not finite \(first at index \(1, 0\)\)"):
        mean_correlation([[1.0, 2.0], [math.nan, 2.0]])
    with pytest.raises(InputError, match="must be numbers"):
        mean_correlation([["a", "b"]])
