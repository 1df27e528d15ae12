"""Investor profiles, exposures, alignment and adaptation: Table 7 and the terms of section C.2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark import (
    AGGRESSIVE,
    BALANCED,
    CLASS_NAMES,
    CONSERVATIVE,
    PROFILES,
    Profile,
    adaptation_score,
    exposures,
    profile_alignment,
    profile_named,
)
from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.market import CLASS_NAMES as OF_THE_MARKET

shares = st.floats(0, 1)
losses = st.floats(-1, 0.05)
profiles = st.sampled_from(list(PROFILES.values()))


def test_table_7():
    rows = [
        (one.name, one.equity_cap, one.bond_floor, one.drawdown_tolerance, one.var_limit)
        for one in (CONSERVATIVE, BALANCED, AGGRESSIVE)
    ]
    assert rows == [
        ("conservative", 0.40, 0.40, 0.10, -0.010),
        ("balanced", 0.65, 0.20, 0.20, -0.020),
        ("aggressive", 0.90, 0.05, 0.35, -0.040),
    ]
    assert list(PROFILES) == [row[0] for row in rows]


def test_the_classes_are_those_of_the_market():
    assert set(CLASS_NAMES) == set(OF_THE_MARKET.values())


@pytest.mark.parametrize(
    ("profile", "figures"),
    [
        (CONSERVATIVE, ["40%", "40%", "10%", "-1%"]),
        (BALANCED, ["65%", "20%", "20%", "-2%"]),
        (AGGRESSIVE, ["90%", "5%", "35%", "-4%"]),
        (Profile("odd", 0.333, 0.07, 0.125, -0.0155), ["33.3%", "7%", "12.5%", "-1.55%"]),
    ],
    ids=lambda one: one.name if isinstance(one, Profile) else "",
)
def test_a_profile_in_words_has_every_limit_in_order(profile, figures):
    told = profile.text
    assert profile.name in told
    places = [told.find(f" {figure}", told.find("crypto")) for figure in figures]
    assert -1 not in places
    start = 0
    for figure in figures:
        start = told.index(f" {figure}", start) + 1


def test_a_profile_is_refused_with_every_limit_that_is_wrong():
    with pytest.raises(InputError, match="profile mine: 4 problems") as told:
        Profile("mine", 1.2, 0.0, 10.0, 0.02)
    assert "var_limit: must be from -1 to below 0, as a loss is negative (got 0.02)" in str(told.value)


def test_names_of_profiles():
    assert profile_named("balanced") is BALANCED
    with pytest.raises(UnknownNameError, match="Did you mean 'balanced'"):
        profile_named("balance")


@given(st.lists(st.tuples(st.sampled_from(CLASS_NAMES), st.floats(1e-3, 1)), min_size=1, max_size=12))
def test_exposures_are_sums_by_class(assets):
    names = [name for name, _ in assets]
    w = np.array([size for _, size in assets])
    w /= w.sum()
    by = {name: sum(one for one, its in zip(w, names, strict=True) if its == name) for name in CLASS_NAMES}
    assert exposures(w, names) == pytest.approx((by["equity"] + by["crypto"], by["bond"] + by["cash"]))
    assert exposures(w, names, convention="reference") == pytest.approx(
        (by["equity"] + by["crypto"] + by["real_estate"], by["bond"] + by["cash"])
    )
    assert sum(exposures(w, names, convention="reference")) == pytest.approx(1 - by["commodity"])


def test_exposures_fit_the_alignment_whatever_the_rounding():
    w = np.full(3, 1 / 3)
    w[0] += 5e-10
    assert profile_alignment(*exposures(w, ["equity"] * 3), -0.01, AGGRESSIVE) < 1


def test_exposures_refuse():
    with pytest.raises(UnknownNameError, match=r"unknown asset class 'equities'\. Did you mean 'equity'"):
        exposures([1.0], ["equities"])
    with pytest.raises(UnknownNameError, match="unknown convention"):
        exposures([1.0], ["equity"], convention="code")
    with pytest.raises(InputError, match="2 problems"):
        exposures([1.0, 1.0], ["equity"])
    with pytest.raises(InputError, match="must be numbers"):
        exposures(["a"], ["equity"])


@given(shares, shares, losses, profiles)
def test_alignment_is_the_mean_of_its_three_terms(e, b, var, profile):
    cap = max(1 - max(e - profile.equity_cap, 0) / profile.equity_cap, 0)
    floor = min(b / profile.bond_floor, 1)
    risk = max(1 + min(var - profile.var_limit, 0) / abs(profile.var_limit), 0)
    found = profile_alignment(e, b, var, profile)
    assert found == pytest.approx((cap + floor + risk) / 3, abs=1e-12)
    assert 0 <= found <= 1
    kept = e <= profile.equity_cap and b >= profile.bond_floor and var >= profile.var_limit
    assert (found == 1.0) == kept or found > 1 - 1e-9


@given(shares, shares, losses)
def test_a_portfolio_never_fits_a_wider_profile_worse(e, b, var):
    fits = [profile_alignment(e, b, var, one) for one in (CONSERVATIVE, BALANCED, AGGRESSIVE)]
    assert fits == sorted(fits)


@pytest.mark.parametrize(
    ("e", "b", "var", "terms"), [(0.8, 0.4, -0.01, 2), (0.4, 0.0, -0.01, 2), (0.4, 0.4, -0.02, 2), (1.0, 0.0, -0.05, 0)]
)
def test_a_term_is_gone_at_twice_its_limit(e, b, var, terms):
    assert profile_alignment(e, b, var, CONSERVATIVE) == pytest.approx(terms / 3)


def test_alignment_tells_every_problem():
    with pytest.raises(InputError, match="3 problems"):
        profile_alignment(1.1, -0.1, float("nan"), BALANCED)


@given(st.lists(shares, min_size=3, max_size=3))
def test_adaptation_is_the_population_standard_deviation(means):
    mean = sum(means) / 3
    slow = (sum((one - mean) ** 2 for one in means) / 3) ** 0.5
    assert adaptation_score(means) == pytest.approx(slow, abs=1e-12)
    assert adaptation_score(dict(zip("abc", reversed(means), strict=True))) == pytest.approx(slow, abs=1e-12)


def test_the_same_alignment_everywhere_is_no_adaptation():
    assert adaptation_score([1.0, 1.0, 1.0]) == 0.0


def test_adaptation_of_one_profile_is_undefined():
    with pytest.raises(NotMeasurableError, match=r"it compares profiles \(got 1\)"):
        adaptation_score({"balanced": 0.9})


def test_adaptation_refuses():
    with pytest.raises(InputError, match="must be from 0 to 1"):
        adaptation_score([0.5, 1.5, float("nan")])
