"""Stage scores and CEPS against slow definitions, their laws, and what they refuse."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark import benchmark as bench
from assaymark.benchmark import (
    AGGRESSIVE, BALANCED, CLASS_NAMES, CONSERVATIVE, PROFILES, Profile, ceps, exposures, inter_class_score,
    intra_class_score, profile_alignment, s1_score, s2_score, s3_score, s4_score, s5_score, weight_accuracy,
)  # fmt: skip
from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.market import CLASS_NAMES as OF_THE_MARKET

NAN = float("nan")
shares, names, more = st.floats(0, 1), st.sampled_from("ABCDEF"), st.sampled_from("ABCDEFXY")
five = st.lists(shares, min_size=5, max_size=5)
view, signal, loss = st.floats(-1, 1), st.sampled_from(bench.SIGNALS), st.floats(-1, 0.05)


def pairs(one):
    return st.lists(st.tuples(one, one), min_size=1, max_size=12)


@given(five, st.floats(0, 1))
def test_ceps_is_equations_1_to_3_in_any_order_and_below_the_mean_where_something_drops(scores, penalty):
    mean = math.fsum(scores) / 5
    drops = math.fsum(max(scores[i] - scores[i + 1], 0) for i in range(4))
    assert ceps(scores, penalty=penalty) == pytest.approx(min(1, max(0, mean - penalty * drops)), abs=1e-12)
    assert ceps(dict(reversed([*zip(bench.STAGES, scores, strict=True)]))) == ceps(scores)
    largest = max(one - other for one, other in itertools.pairwise(scores))
    assert ceps(scores) <= mean - 0.1 * largest + 1e-12


@given(st.lists(five, min_size=2, max_size=6), st.floats(0, 0.2))
def test_mean_ceps_is_never_above_ceps_of_mean_stages(dates, penalty):
    """Concave, and for penalties up to 0.2 never cut off at 0; above that the cut breaks it."""
    of_dates = np.mean([ceps(one, penalty=penalty) for one in dates])
    assert of_dates <= ceps(np.mean(dates, axis=0), penalty=penalty) + 1e-12
    dates = [[1.0, 0.0, 0.0, 0.0, 0.0], [1.0] * 5]
    assert np.mean([ceps(one, penalty=1.0) for one in dates]) > ceps(np.mean(dates, axis=0), penalty=1.0)
    assert ceps([0.8, 0.8, 0.8, 0.2, 0.2]) < ceps([0.2, 0.2, 0.8, 0.8, 0.8])  # a later drop costs more


@given(pairs(view), st.randoms(use_true_random=False))
def test_s1_is_equation_4_and_does_not_know_the_order_of_assets(both, random):
    said, true = zip(*both, strict=True)
    slow = 1 - math.fsum(abs(v - t) for v, t in both) / (2 * len(both))
    assert s1_score(said, true) == pytest.approx(slow, abs=1e-12)
    assert (0 <= s1_score(said, true) <= 1, s1_score(true, true)) == (True, 1)
    assert s1_score(said, true) == pytest.approx(s1_score(true, said))
    assert s1_score(*zip(*random.sample(both, len(both)), strict=True)) == pytest.approx(slow, abs=1e-12)


@given(st.dictionaries(names, view, min_size=1), st.dictionaries(more, view))
def test_s1_by_names_is_neutral_where_nothing_was_said(true, said):
    assert s1_score(said, true) == s1_score([said.get(name, 0.0) for name in true], list(true.values()))
    assert s1_score({**said, "another": 1.0}, true) == s1_score(said, true)
    assert s1_score(dict.fromkeys(true), true) == s1_score({}, true)


@given(pairs(signal), st.dictionaries(names, signal, min_size=1), st.dictionaries(more, signal))
def test_s2_is_the_share_of_right_signals_and_by_names_holds_where_nothing_was_said(both, true_of, said_of):
    said, true = zip(*both, strict=True)
    right = sum(one == other for one, other in both) / len(both)
    assert s2_score(said, true) == s2_score(np.array(said), np.array(true)) == right
    assert s2_score(true, true) == 1.0
    values = list(true_of.values())
    assert s2_score(said_of, true_of) == s2_score([said_of.get(name, "hold") for name in true_of], values)
    assert s2_score(dict.fromkeys(true_of), true_of) == s2_score(["hold"] * len(values), values)


@given(st.floats(0, 2), st.floats(0, 2))
def test_s4_is_the_smaller_over_the_larger(one, other):
    low, high = sorted((one, other))
    assert s4_score(one, other) == s4_score(other, one)
    assert s4_score(one, one) == 1.0
    assert s4_score(one, other) == pytest.approx(1 - (high - low) / max(high, 1e-4), abs=1e-12)


def test_s1_where_all_is_wrong_or_neutral_and_s4_of_nothing_traded():
    assert s1_score([1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]) == 0.0
    assert s1_score(np.zeros(2001), np.linspace(-1, 1, 2001)) == pytest.approx(0.75, abs=1e-3)
    # Against an oracle that trades little the floor of the denominator helps.
    assert [s4_score(0.0, one) for one in (0.5, 0.0, 1e-5)] == pytest.approx([0.0, 1.0, 0.9])


@given(st.booleans(), st.booleans(), loss, loss, loss, loss)
def test_s5_is_equations_13_and_14_and_a_wrong_alarm_costs_one_half(said, true, var, var_star, drawdown, fall_star):
    error = abs(var - var_star) / max(abs(var_star), 1e-6) + abs(drawdown - fall_star) / max(abs(fall_star), 1e-6)
    slow, figures = 0.5 * (said == true) + 0.5 * min(1, max(0, 1 - error / 2)), (var, var_star, drawdown, fall_star)
    assert s5_score(said, true, *figures) == pytest.approx(slow, abs=1e-12)
    assert s5_score(np.bool_(true), true, var_star, var_star, fall_star, fall_star) == 1.0
    assert s5_score(said, said, *figures) - s5_score(said, not said, *figures) == pytest.approx(0.5)


WRONG_S5 = ["yes", True, NAN, -0.01, -0.02, None]


@pytest.mark.parametrize(("score", "given", "message"), [
    (ceps, [[0.5] * 4], "must be 5 scores, S1 to S5 .got 4."), (ceps, [[[0.5] * 5]], "must have 1 axes"),
    (ceps, [[0.5] * 4 + [1.5]], "must be from 0 to 1 .1 value.s., first at index 4: 1.5."),
    (ceps, [[0.5] * 4 + [NAN]], "must be from 0 to 1"),
    (ceps, [{"S1": 0.5}], "must be S1, S2, S3, S4, S5 .got S1."), (ceps, [{}], "got none"),
    (lambda stages: ceps(stages, penalty=-0.1), [[2.0] * 5],
     r"2 problems[\s\S]*penalty: must be from 0 to 1 \(got -0.1\)"),
    (s1_score, [[0.1], [0.1, 0.2]], "must be as many as the truths .got 1 and 2."),
    (s1_score, [[], []], "at least one value"), (s1_score, [{"A": 0.1}, {}], "at least one value"),
    (s1_score, [[1.5], [0.0]], "must be from -1 to 1 .1 value.s., first at index 0: 1.5."),
    (s1_score, [[0.0], [-2.0]], "truth: must be from -1 to 1"), (s1_score, [[NAN], [0.0]], "must be from -1 to 1"),
    (s1_score, [["up"], [0.0]], "must be numbers"),
    (s1_score, [{"A": 0.1}, [0.1]], "both mappings or both arrays .got dict and list."),
    (s1_score, [[0.1], {"A": 0.1}], "both mappings or both arrays"),
    (s2_score, [["buy"], ["buy", "hold"]], "got 1 and 2"), (s2_score, [[], []], "at least one signal"),
    (s2_score, [["BUY"], ["buy"]], "signals: must be buy, hold, sell .1 value.s., first: 'BUY'."),
    (s2_score, [["buy"], ["up"]], "truth: must be buy, hold, sell"), (s2_score, [[None], ["buy"]], "first: None"),
    (s2_score, [{"A": "buy"}, ["buy"]], "both mappings or both arrays"),
    *((s4_score, [0.1, wrong], "turnover_star: must be 0 or more") for wrong in (-0.1, NAN, math.inf, None, True)),
    (s5_score, WRONG_S5, r"3 problems[\s\S]*rebalance: must be True or False \(got 'yes'\)"),
    (s5_score, WRONG_S5, r"drawdown_star: must be a finite number \(got None\)"),
    (s3_score, [[2.0, 0, 0, 0], [0, -1.0, 0, 0], np.full((4, 4), 3.0), [*"aabb"]], "4 problems"),
    (profile_alignment, [1.1, -0.1, NAN, BALANCED], "3 problems"),
    (bench.adaptation_score, [[0.5, 1.5, NAN]], "must be from 0 to 1"),
    (exposures, [[1.0, 1.0], ["equity"]], "2 problems"), (exposures, [["a"], ["equity"]], "must be numbers"),
    (Profile, ["mine", 1.2, 0.0, 10.0, 0.02],
     r"profile mine: 4 problems[\s\S]*var_limit: must be from -1 to below 0, as a loss is negative \(got 0.02\)"),
])  # fmt: skip
def test_what_is_no_score_is_refused_with_every_problem(score, given, message):
    with pytest.raises(InputError, match=message):
        score(*given)


# The score of weights and its parts against loops over pairs, their laws, and both conventions

ALIKE = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
TWO = ["equity", "equity", "bond", "bond"]


@st.composite
def portfolios(draw):
    """Two books that sum to 1, correlations of random returns, classes."""
    n, rng = draw(st.integers(1, 8)), np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = [rng.dirichlet(np.full(n, 0.5)) for _ in range(2)]
    common = rng.normal(size=(40, 1)) * draw(st.floats(-2, 2))
    corr = np.corrcoef(rng.normal(size=(40, n)) + common * rng.normal(size=n), rowvar=False).reshape(n, n)
    return (*weights, corr, draw(st.lists(st.sampled_from(["equity", "bond", "crypto"]), min_size=n, max_size=n)))


def slow_parts(w, corr, classes):
    """Equations 9 to 11 as they are written; a class without a pair adds nothing, one class held hedges nothing."""
    members = {name: [i for i, one in enumerate(classes) if one == name] for name in sorted(set(classes))}
    total = {name: sum(w[i] for i in own) for name, own in members.items()}
    intra = 1.0
    for name, own in members.items():
        inside = [corr[i, j] for i, j in itertools.combinations(own, 2)]
        intra -= total[name] * max(np.mean(inside), 0) if inside else 0
    top = bottom = 0.0
    for a, b in itertools.permutations(members, 2):
        across = np.mean([corr[i, j] for i in members[a] for j in members[b]])
        top, bottom = top + total[a] * total[b] * across, bottom + total[a] * total[b]
    inter = (1 - top / bottom) / 2 if bottom > 0 else 0.0
    return np.clip(intra, 0, 1), np.clip(inter, 0, 1)


@given(portfolios(), st.floats(0, 1), st.randoms(use_true_random=False))
def test_s3_is_equations_6_and_8_to_11_and_knows_neither_the_order_of_assets_nor_names_of_classes(drawn, alpha, random):
    w, w_star, corr, classes = drawn
    intra, inter = slow_parts(w, corr, classes)
    assert intra_class_score(w, corr, classes) == pytest.approx(intra, abs=1e-9)
    assert inter_class_score(w, corr, classes) == pytest.approx(inter, abs=1e-6)
    wanted = alpha * (1 - np.abs(w - w_star).sum() / 2) + (1 - alpha) * (intra + inter) / 2
    assert s3_score(w, w_star, corr, classes, alpha=alpha) == pytest.approx(wanted, abs=1e-6)
    assert 0 <= s3_score(w, w_star, corr, classes, convention="reference") <= 1
    order = random.sample(range(w.size), w.size)
    mixed = w[order], w_star[order], corr[np.ix_(order, order)], [classes[i] for i in order]
    assert s3_score(*mixed) == pytest.approx(s3_score(*drawn), abs=1e-9)
    codes = [{"equity": 7, "bond": 0, "crypto": 3}[name] for name in classes]
    assert s3_score(w, w_star, corr, codes) == s3_score(*drawn)
    # oracle weights are accurate and the distance is symmetric
    for convention in ("paper", "reference"):
        assert weight_accuracy(w_star, w_star, convention=convention) == 1.0
        assert weight_accuracy(w, w_star, convention=convention) == weight_accuracy(w_star, w, convention=convention)
    assert weight_accuracy(w, w_star) == pytest.approx(np.minimum(w, w_star).sum(), abs=1e-12)
    assert weight_accuracy(w, w_star) <= weight_accuracy(w, w_star, convention="reference") + 1e-12


def test_what_one_class_two_assets_and_all_of_them_score():
    even = np.full(4, 0.25)  # only alpha 0 leaves the oracle without its accuracy
    assert s3_score(even, even, ALIKE, TWO, alpha=1.0) == 1.0
    assert s3_score(even, even, ALIKE, TWO) == pytest.approx(0.5 + 0.5 * (0.5 + 0.25) / 2)
    one, other = np.eye(81)[:2]  # the reference cannot tell portfolios of 81 assets apart
    assert weight_accuracy(one, other) == 0.0
    assert weight_accuracy(one, other, convention="reference") == pytest.approx(1 - 1 / 81)
    for held in ([0.5, 0.5, 0.0, 0.0], [0.5, 0.5 - 1e-12, 1e-12, 0.0], [0.0] * 4):  # one class held hedges nothing
        found = [inter_class_score(held, ALIKE, TWO, convention=name) for name in ("paper", "reference")]
        assert found == [0.0, 1.0]
    for across, score in ((-1.0, 1.0), (0.0, 0.5), (1.0, 0.0)):
        given = [0.3, 0.7], [[1.0, across], [across, 1.0]], ["equity", "bond"]
        assert (inter_class_score(*given), intra_class_score(*given)) == (pytest.approx(score), 1.0)


def test_within_a_class_all_pairs_count_and_only_those_that_move_together_cost():
    same, third, crypto = np.ones((3, 3)), [0.2, 0.3, 0.5], ["crypto"] * 3
    assert intra_class_score(third, same, crypto) == pytest.approx(0.0)
    assert s3_score(third, third, same, crypto) == pytest.approx(0.5)
    assert intra_class_score([0.5, 0.5], np.array([[1.0, -0.8], [-0.8, 1.0]]), ["commodity"] * 2) == 1.0
    corr = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert intra_class_score([0.0, 0.0, 1.0], corr, ["equity"] * 3) == pytest.approx(0.7)  # held or not
    # What is not invested is in no class.
    assert intra_class_score([0.25, 0.0, 0.25, 0.0], ALIKE, TWO) == pytest.approx(0.75)
    assert weight_accuracy([0.0] * 4, [0.25] * 4) == pytest.approx(0.5)


def test_undefined_pairs_are_left_out_of_every_mean_and_rounding_makes_no_matrix_asymmetric():
    """A cash instrument that never moves has no correlation with anything."""
    corr = np.array([[1.0, 0.4, 0.2, NAN], [0.4, 1.0, 0.2, NAN], [0.2, 0.2, 1.0, NAN], [NAN] * 4])
    classes, w = ["equity", "equity", "bond", "cash"], [0.25] * 4
    assert intra_class_score(w, corr, classes) == pytest.approx(1 - 0.5 * 0.4)
    assert inter_class_score(w, corr, classes) == pytest.approx((1 - 0.2) / 2)
    assert inter_class_score([0.5, 0.0, 0.0, 0.5], corr, classes) == 0.0  # equities and cash alone
    rounded = ALIKE + np.triu(np.full((4, 4), 1e-13), 1)
    assert intra_class_score(w, rounded, TWO) == pytest.approx(intra_class_score(w, ALIKE, TWO))


def test_weights_in_six_decimals_are_those_that_were_rounded():
    exact = np.arange(1.0, 82.0) / np.arange(1.0, 82.0).sum()
    given, even = np.ceil(exact * 1e6) / 1e6, np.full(81, 1 / 81)
    assert 1e-6 < given.sum() - 1 < 1e-4
    corr, classes = np.eye(81), ["equity", "bond", "cash"] * 27
    for score in (lambda w: weight_accuracy(w, even), lambda w: s3_score(w, even, corr, classes)):
        assert score(given) == pytest.approx(score(exact), abs=4e-5)
    for share in (0.333334, 0.333332):
        assert weight_accuracy([share] * 3, [1 / 3] * 3) == pytest.approx(1.0, abs=1e-12)
    assert intra_class_score([0.500001, 0.500001], np.ones((2, 2)), ["equity"] * 2) == 0.0
    with pytest.raises(InputError, match="must sum to at most 1"):
        weight_accuracy([0.3334] * 3, [1 / 3] * 3)


@pytest.mark.parametrize(("changed", "message"), [
    ({"w": [0.5, 0.6, 0.0, 0.0]}, "w: weights must sum to at most 1"),
    ({"w": [1.5, -0.5, 0.0, 0.0]}, "w: weights must not be negative"),
    ({"w": [NAN, 0.5, 0.0, 0.0]}, "w: weights must be finite"), ({"w": "even"}, "w: must be numbers"),
    ({"w_star": [2.0, 0.0, 0.0, 0.0]}, "w_star: weights must sum"),
    ({"w": [0.5, 0.5]}, "w: must be as many as the truths .got 2 and 4."), ({"corr": [1.0]}, "corr: must have 2 axes"),
    ({"corr": np.eye(3)}, r"corr: must have shape \(4, 4\) .got \(3, 3\)."),
    ({"corr": np.full((4, 4), 1.5)}, "corr: must be from -1 to 1"),
    ({"corr": np.triu(np.full((4, 4), 0.5))}, "corr: must be symmetric"),
    ({"classes": ["equity"]}, "classes: must be 4, one of each asset .got 1."),
    ({"alpha": 1.2}, "alpha: must be from 0 to 1"),
    ({"w": [2.0, 0, 0, 0], "w_star": [0, -1.0, 0, 0], "corr": np.full((4, 4), 3.0), "alpha": -1}, "5 problems"),
])  # fmt: skip
def test_s3_refuses(changed, message):
    with pytest.raises(InputError, match=message):
        s3_score(**{"w": [0.25] * 4, "w_star": [0.25] * 4, "corr": ALIKE, "classes": TWO, **changed})


def test_unknown_names_are_answered_with_the_nearest():
    for message, call, args, more in (
        *((r"unknown convention 'papr'\. Did you mean 'paper'", score, [[0.5]] * asked, {"convention": "papr"})
          for score, asked in ((weight_accuracy, 2), (inter_class_score, 3), (s3_score, 4))),
        ("unknown convention", exposures, [[1.0], ["equity"]], {"convention": "code"}),
        (r"unknown asset class 'equities'\. Did you mean 'equity'", exposures, [[1.0], ["equities"]], {}),
        ("Did you mean 'balanced'", bench.profile_named, ["balance"], {}),
    ):  # fmt: skip
        with pytest.raises(UnknownNameError, match=message):
            call(*args, **more)
    assert bench.profile_named("balanced") is BALANCED


# Investor profiles, exposures, alignment and adaptation: Table 7 and the terms of section C.2


def test_table_7_the_classes_of_the_market_and_profiles_in_words():
    rows = {one: (one.equity_cap, one.bond_floor, one.drawdown_tolerance, one.var_limit) for one in PROFILES.values()}
    assert rows == {
        CONSERVATIVE: (0.40, 0.40, 0.10, -0.010), BALANCED: (0.65, 0.20, 0.20, -0.020),
        AGGRESSIVE: (0.90, 0.05, 0.35, -0.040),
    }  # fmt: skip
    assert list(PROFILES) == ["conservative", "balanced", "aggressive"] == [one.name for one in rows]
    assert set(CLASS_NAMES) == set(OF_THE_MARKET.values())
    for profile, figures in (
        (CONSERVATIVE, "40% 40% 10% -1%"), (BALANCED, "65% 20% 20% -2%"), (AGGRESSIVE, "90% 5% 35% -4%"),
        (Profile("odd", 0.333, 0.07, 0.125, -0.0155), "33.3% 7% 12.5% -1.55%"),
    ):  # fmt: skip
        told, start = profile.text, 0
        assert profile.name in told
        for figure in figures.split():  # every limit in order
            start = told.index(f" {figure}", start) + 1


@given(st.lists(st.tuples(st.sampled_from(CLASS_NAMES), st.floats(1e-3, 1)), min_size=1, max_size=12))
def test_exposures_are_sums_by_class(assets):
    names, w = [name for name, _ in assets], np.array([size for _, size in assets])
    w /= w.sum()
    by = {name: sum(one for one, its in zip(w, names, strict=True) if its == name) for name in CLASS_NAMES}
    risky, safe = by["equity"] + by["crypto"], by["bond"] + by["cash"]
    assert exposures(w, names) == pytest.approx((risky, safe))
    assert exposures(w, names, convention="reference") == pytest.approx((risky + by["real_estate"], safe))
    assert risky + safe + by["real_estate"] == pytest.approx(1 - by["commodity"])


@given(shares, shares, loss, st.sampled_from(list(PROFILES.values())))
def test_alignment_is_the_mean_of_its_three_terms_and_never_worse_for_a_wider_profile(e, b, var, profile):
    cap = max(1 - max(e - profile.equity_cap, 0) / profile.equity_cap, 0)
    floor = min(b / profile.bond_floor, 1)
    risk = max(1 + min(var - profile.var_limit, 0) / abs(profile.var_limit), 0)
    found = profile_alignment(e, b, var, profile)
    assert found == pytest.approx((cap + floor + risk) / 3, abs=1e-12)
    assert 0 <= found <= 1
    kept = e <= profile.equity_cap and b >= profile.bond_floor and var >= profile.var_limit
    assert (found == 1.0) == kept or found > 1 - 1e-9
    fits = [profile_alignment(e, b, var, one) for one in (CONSERVATIVE, BALANCED, AGGRESSIVE)]
    assert fits == sorted(fits)


def test_a_term_is_gone_at_twice_its_limit_and_exposures_fit_whatever_the_rounding():
    for e, b, var, terms in ((0.8, 0.4, -0.01, 2), (0.4, 0.0, -0.01, 2), (0.4, 0.4, -0.02, 2), (1.0, 0.0, -0.05, 0)):
        assert profile_alignment(e, b, var, CONSERVATIVE) == pytest.approx(terms / 3)
    w = np.full(3, 1 / 3)
    w[0] += 5e-10
    assert profile_alignment(*exposures(w, ["equity"] * 3), -0.01, AGGRESSIVE) < 1


@given(st.lists(shares, min_size=3, max_size=3))
def test_adaptation_is_the_population_standard_deviation(means):
    mean = sum(means) / 3
    slow = pytest.approx((sum((one - mean) ** 2 for one in means) / 3) ** 0.5, abs=1e-12)
    assert bench.adaptation_score(means) == slow
    assert bench.adaptation_score(dict(zip("abc", reversed(means), strict=True))) == slow
    assert bench.adaptation_score([means[0]] * 3) == pytest.approx(0.0, abs=1e-15)
    with pytest.raises(NotMeasurableError, match=r"it compares profiles \(got 1\)"):
        bench.adaptation_score({"balanced": 0.9})
