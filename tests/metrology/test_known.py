"""How many judges a panel is worth: planted error correlations recovered, and why residuals would not do."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import effective_judges, known_measurements, score_table
from assaymark.metrology.probes import error_correlation


def errors_with(r, judges, n, rng):
    """Normal errors with the same correlation r between all judges."""
    matrix = np.full((judges, judges), r) + (1 - r) * np.eye(judges)
    return rng.multivariate_normal(np.zeros(judges), matrix, size=n)


@pytest.mark.parametrize("judges", [2, 3, 5])
@pytest.mark.parametrize("r", [0.0, 0.3, 0.6, 0.9])
def test_a_planted_correlation_is_recovered(r, judges):
    errors = errors_with(r, judges, 20_000, np.random.default_rng(judges))
    assert effective_judges(errors) == pytest.approx(judges / (1 + (judges - 1) * r), rel=0.03)


def test_residuals_give_the_same_answer_whatever_the_truth():
    """Around item means the errors of three judges correlate at -1/2, be they independent or nearly one judge."""
    for r in (0.0, 0.8):
        errors = errors_with(r, 3, 4000, np.random.default_rng(1))
        residuals = errors - errors.mean(axis=1, keepdims=True)
        assert error_correlation(residuals) == pytest.approx(-0.5, abs=0.01)
        assert error_correlation(errors) == pytest.approx(r, abs=0.03)


@given(st.integers(0, 1000), st.permutations(range(4)), st.floats(0.1, 5), st.floats(-2, 2))
def test_order_unit_and_common_bias_do_not_matter(seed, order, scale, shift):
    errors = np.random.default_rng(seed).normal(size=(12, 4))
    try:
        expected = effective_judges(errors)
    except NotMeasurableError:
        return
    assert effective_judges(scale * errors[:, list(order)] + shift) == pytest.approx(expected, rel=1e-6)


def test_identical_errors_are_worth_one_judge():
    one = np.random.default_rng(1).normal(size=(9, 1))
    assert effective_judges(np.repeat(one, 4, axis=1)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([[0.1], [0.2], [0.3]], "one judge, needs two"),
        ([[0.1, 0.2], [0.3, 0.1]], "2 items of known quality, needs three"),
        ([[0.1, 0.2], [0.1, 0.1], [0.1, 0.4]], "judge 1 makes one error on all 3 items"),
        ([[0.1, -0.1], [0.2, -0.2], [0.3, -0.3]], "offset each other completely"),
    ],
)
def test_it_can_be_undefined(errors, message):
    with pytest.raises(NotMeasurableError, match=message):
        effective_judges(errors)


@pytest.mark.parametrize(
    ("errors", "message"), [([], "empty"), ([1.0, 2.0], "two axes"), ([[math.nan, 1.0]] * 3, "not finite")]
)
def test_it_says_what_is_wrong(errors, message):
    with pytest.raises(InputError, match=message):
        effective_judges(errors)


# --- measurements ----------------------------------------------------------------------------------------------------

TRUTH = {"clarity": 3.0, "risk": 4.0}


def studied(one_decision, one_judgment, n=30, seed=1, cell="w"):
    """Items of known quality judged by three judges whose errors share a part."""
    rng = np.random.default_rng(seed)
    decisions = [one_decision("ash", k, f"{cell}{k % 3}", tag=cell) for k in range(n)]
    judgments = []
    for d in decisions:
        shared = rng.normal(0, 0.3, 2)
        for judge in ("auditor", "reader", "skeptic"):
            seen = np.clip(np.array([3.0, 4.0]) + shared + rng.normal(0, 0.2, 2), 1, 5).tolist()
            judgments.append(one_judgment(d.record_id, judge, dict(zip(("clarity", "risk"), seen, strict=True))))
    return score_table(judgments, decisions, weights={"clarity": 1, "risk": 3})


def found_in(tables, known, plan):
    return {m.labels["dimension"]: m for m in known_measurements(tables, known, plan)}


def test_the_aggregate_follows_from_the_weights(one_decision, one_judgment, study):
    table = studied(one_decision, one_judgment)
    found = found_in([table], dict.fromkeys(table.trajectories, TRUTH), study())
    assert list(found) == ["aggregate", "clarity", "risk"]
    truth = np.array([0.25 * 3 + 0.75 * 4, 3.0, 4.0])
    for k, m in enumerate(found.values()):
        errors = table.stacked[:, :, k] - truth[k]
        assert m.value == pytest.approx(effective_judges(errors))
        r = np.corrcoef(errors, rowvar=False)[np.triu_indices(3, 1)].mean()
        assert m.detail == {"judges": 3, "r": pytest.approx(r)}
        assert (m.n, m.n_of, m.unit) == (30, "items of known quality", "judges")


def test_a_given_aggregate_stands_and_each_name_uses_what_is_known_of_it(one_decision, one_judgment, study):
    table = studied(one_decision, one_judgment)
    known = {
        key: {"aggregate": 3.5 + 0.01 * k} if k < 10 else {"risk": 4.0} if k < 25 else {}
        for k, key in enumerate(table.trajectories)
    }
    found = found_in([table], known, study())
    assert {name: m.n for name, m in found.items()} == {"aggregate": 10, "clarity": 0, "risk": 15}
    given_ = table.stacked[:10, :, 0] - (3.5 + 0.01 * np.arange(10))[:, None]
    assert found["aggregate"].value == pytest.approx(effective_judges(given_))
    assert found["clarity"].state == "not measurable: no items of known quality"


def test_items_of_several_cells_are_pooled(one_decision, one_judgment, study):
    tables = [studied(one_decision, one_judgment, seed=s, cell=c) for s, c in ((1, "a"), (2, "b"))]
    known = {key: TRUTH for table in tables for key in table.trajectories}
    both = found_in(tables, known, study())["risk"]
    errors = np.concatenate([table.scores[:, :, 1] - 4.0 for table in tables])
    assert both.value == pytest.approx(effective_judges(errors))
    assert both.n == 60
    one = found_in(tables[:1], known, study())["risk"]
    assert one.inputs != both.inputs


def test_without_known_items_it_is_not_measurable(one_decision, one_judgment, study):
    table = studied(one_decision, one_judgment)
    for tables, known in (([table], {}), ([table], {"elsewhere": TRUTH}), ([], {})):
        for m in found_in(tables, known, study()).values():
            assert (m.value, m.state, m.detail["r"]) == (None, "not measurable: no items of known quality", None)
            assert m.detail["judges"] == 3
    assert set(found_in([], {}, study("rubric = {weights = {risk = 1.0}}"))) == {"aggregate", "risk"}


def test_its_other_states(one_decision, one_judgment, study):
    table = studied(one_decision, one_judgment, n=2)
    known = dict.fromkeys(table.trajectories, TRUTH)
    assert found_in([table], known, study())["risk"].state == "undefined: 2 items of known quality, needs three"
    decisions = [one_decision("ash", k, "w") for k in range(4)]
    judgments = [one_judgment(d.record_id, j, {"risk": 3.0}) for d in decisions for j in ("auditor", "reader")]
    table = score_table(judgments, decisions)
    known = {key: {"risk": 2.0} for key in table.trajectories}
    assert found_in([table], known, study())["risk"].state == "undefined: judge 1 makes one error on all 4 items"
    alone = score_table([j for j in judgments if j.judge == "auditor"], decisions)
    assert found_in([alone], known, study())["risk"].state == "not measurable: one judge, needs two"


def test_tables_that_do_not_go_together_are_refused(one_decision, one_judgment, study):
    table = studied(one_decision, one_judgment)
    known = dict.fromkeys(table.trajectories, TRUTH)
    other = dataclasses.replace(table, judges=("auditor", "reader", "clerk"))
    with pytest.raises(InputError, match="must have the same judges and names"):
        list(known_measurements([table, other], known, study()))
    with pytest.raises(InputError, match="known scores must be finite"):
        list(known_measurements([table], {table.trajectories[3]: {"risk": math.nan}}, study()))
