"""The rules of a book, and the nearest book that keeps them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.agents.mandate import Mandate, read_mandate
from assaymark.errors import InputError, NotMeasurableError
from assaymark.records import Constraint

DEFAULT = Mandate()


def rule(kind: str, limit: float, unit: str = "nav") -> Constraint:
    return Constraint(kind=kind, limit=limit, unit=unit)


def nearest_by_definition(ideal: np.ndarray, mandate: Mandate, count: int) -> float:
    """Least squared distance of any allowed book on the ``count`` largest names, by trying every one."""
    low, high = mandate.step_range
    wanted = np.sort(ideal)[::-1][:count]
    wanted = wanted / wanted.sum() * mandate.steps
    books = itertools.product(range(low, high + 1), repeat=count)
    return min(float(((wanted - book) ** 2).sum()) for book in books if sum(book) == mandate.steps)


@st.composite
def mandates(draw: st.DrawFn) -> Mandate:
    increment = draw(st.sampled_from([0.1, 0.125, 0.2]))
    return Mandate(
        min_holdings=draw(st.integers(1, 3)),
        max_holdings=draw(st.integers(3, 4)),
        min_weight=increment * draw(st.integers(1, 2)),
        max_weight=draw(st.sampled_from([0.4, 0.6, 1.0])),
        weight_increment=increment,
    )


ideals = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=7).map(np.array)


@settings(deadline=None)
@given(mandates(), ideals)
def test_a_fitted_book_keeps_every_rule(mandate, ideal):
    try:
        fewest, most = mandate.holdings_range(ideal.size)
    except NotMeasurableError:
        return
    weights = mandate.fit(ideal)
    held = weights[weights > 0]
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert fewest <= held.size <= most
    assert np.all(held >= mandate.min_weight - 1e-12)
    assert np.all(held <= mandate.max_weight + 1e-12)
    steps = held / mandate.weight_increment
    assert np.allclose(steps, np.round(steps), atol=1e-9)
    assert held.min() > 0
    assert ideal[weights > 0].min() >= ideal[weights == 0].max(initial=0.0)


@settings(max_examples=40, deadline=None)
@given(mandates(), st.lists(st.floats(0.01, 1.0), min_size=4, max_size=5).map(np.array))
def test_fit_equals_the_definition(mandate, ideal):
    try:
        _, most = mandate.holdings_range(ideal.size)
    except NotMeasurableError:
        return
    weights = mandate.fit(ideal)
    chosen = weights > 0
    wanted = ideal[chosen] / ideal[chosen].sum() * mandate.steps
    distance = float(((wanted - weights[chosen] * mandate.steps) ** 2).sum())
    assert distance == pytest.approx(nearest_by_definition(ideal, mandate, most), abs=1e-9)


def test_an_allowed_book_is_left_alone():
    allowed = np.array([0.4, 0.0, 0.35, 0.25])
    assert DEFAULT.fit(allowed).tolist() == pytest.approx(allowed.tolist())


def test_nothing_wanted_means_equal_shares_of_the_first_names():
    assert Mandate(min_holdings=4).fit(np.zeros(6)).tolist() == [0.25, 0.25, 0.25, 0.25, 0.0, 0.0]


@pytest.mark.parametrize("ideal", [[0.5, -0.1], [0.5, np.nan], [np.inf, 0.1]], ids=["negative", "nan", "infinite"])
def test_weights_that_mean_nothing_are_refused(ideal):
    with pytest.raises(NotMeasurableError, match="must be finite and not negative"):
        DEFAULT.fit(np.array(ideal))


def test_rules_that_no_book_keeps_are_named():
    with pytest.raises(NotMeasurableError, match=r"needs at least 5 holdings, and at most 3 are allowed of the 9"):
        Mandate(max_holdings=3, max_weight=0.2).holdings_range(9)
    with pytest.raises(NotMeasurableError, match="no full book"):
        Mandate(max_weight=0.04, min_weight=0.01).fit(np.ones(30))


def test_constraints_are_read_in_their_units():
    mandate = read_mandate(
        [
            rule("min_holdings", 2, "count"),
            rule("max_holdings", 8, "count"),
            rule("min_weight", 200, "bps"),
            rule("max_weight", 40, "percent"),
            rule("weight_increment", 0.02, "ratio"),
        ]
    )
    assert mandate == Mandate(min_holdings=2, max_holdings=8, min_weight=0.02, max_weight=0.4, weight_increment=0.02)


def test_every_unreadable_rule_is_reported():
    with pytest.raises(InputError) as caught:
        read_mandate(
            [
                rule("max_turnover", 0.2),
                rule("max_holdings", 2.5, "count"),
                rule("min_holdings", 2, "nav"),
                rule("max_weight", 1.4),
                rule("min_weight", 0.1, "usd"),
                rule("weight_increment", 0.3),
            ],
            source="round 7",
        )
    text = str(caught.value)
    assert text.startswith("round 7: 6 problems")
    for part in (
        "no agent here can keep the rule 'max_turnover' 0.2 nav for 'portfolio'",
        "got 2.5 count",
        "got 2 nav",
        "got 1.4 nav",
        "got 0.1 usd",
    ):
        assert part in text
    assert "must divide 1 without remainder (got 0.3)" in text


def test_rules_that_contradict_each_other_are_reported():
    contradictory = [
        rule("min_holdings", 6, "count"),
        rule("max_holdings", 5, "count"),
        rule("min_weight", 0.5),
        rule("max_weight", 0.4),
    ]
    with pytest.raises(InputError, match=r"exceeds max_holdings \(got 6 and 5\)(.|\n)*exceeds max_weight"):
        read_mandate(contradictory)


def test_rules_that_restrict_nothing_are_read():
    permissive = [
        rule("allow_cash", 1, "bool"),
        rule("allow_benchmark", 1, "bool"),
        rule("max_total_weight", 100, "percent"),
    ]
    assert read_mandate(permissive) == DEFAULT


@pytest.mark.parametrize(
    "strict",
    [
        rule("allow_cash", 0, "bool"),
        rule("max_total_weight", 0.8),
        Constraint(kind="max_weight", limit=0.4, unit="nav", scope="economic_exposure_cluster"),
    ],
    ids=["no cash", "not full", "per cluster"],
)
def test_a_rule_that_no_agent_here_can_keep_is_refused(strict):
    with pytest.raises(InputError, match=f"no agent here can keep the rule '{strict.kind}'"):
        read_mandate([strict])
