"""The naive diversifier: one name from each class in turn, in equal shares."""

from __future__ import annotations

import dataclasses

import pytest
from agent_contexts import seen

from assaymark.agents import equal_weight
from assaymark.records import Constraint

NAMES = ("Ash", "Beech", "Cedrel", "Damson", "Elder", "Fir", "Gorse", "Hazel")


def row(volatility: float, quarter: float = 0.01) -> tuple[float, ...]:
    return (0.0, 0.0, quarter, volatility, -volatility / 2)


def test_every_class_has_its_calmest_name_and_cash_waits():
    # classes in turn: equity bond commodity real_estate cash equity bond commodity
    table = dict(zip(NAMES, map(row, (0.3, 0.05, 0.2, 0.2, 0.01, 0.1, 0.06, 0.4)), strict=True))
    made = equal_weight.compose(seen(table))
    held = [name for name, weight in zip(NAMES, made.weights, strict=True) if weight > 0]
    assert held == ["Ash", "Beech", "Cedrel", "Damson", "Fir"]
    assert set(made.weights.tolist()) == {0.0, 0.2}
    assert "Not Hazel: volatility 40.0%." in made.portfolio


def test_cash_is_held_when_there_is_nothing_else():
    table = dict(zip(NAMES[:5], map(row, (0.3, 0.05, 0.2, 0.2, 0.01)), strict=True))
    assert equal_weight.compose(seen(table)).weights.tolist() == [0.2] * 5


def test_shares_are_as_equal_as_the_steps_allow():
    rule = (Constraint(kind="max_holdings", limit=3.0, unit="count"),)
    made = equal_weight.compose(seen({name: row(0.1) for name in NAMES[:3]}, constraints=rule))
    assert made.weights.tolist() == [0.35, 0.35, 0.3]
    assert made.summary.startswith("Shares as equal as the steps allow in three names.")


@pytest.mark.parametrize(("quarters", "confidence"), [((0.1, 0.1), 0.6), ((0.1, -0.1), 0.45), ((-0.1, -0.2), 0.3)])
def test_confidence_falls_with_each_name_that_falls(quarters, confidence):
    table = {name: row(0.1, quarter) for name, quarter in zip(NAMES[:2], quarters, strict=True)}
    made = equal_weight.compose(seen(table))
    assert made.confidence == confidence
    assert ("Falling: " in made.summary) == (min(quarters) < 0)
    assert ("Beech down 10.0% over 63 sessions" in made.summary) == (quarters == (0.1, -0.1))


def test_the_risks_are_the_roughest_holding_and_the_deepest_fall():
    made = equal_weight.compose(seen({"Ash": (0.0, 0.0, 0.0, 0.3, -0.1), "Beech": (0.0, 0.0, 0.0, 0.1, -0.2)}))
    assert made.risks == ("Roughest: Ash, volatility 30.0%.", "Deepest fall: Beech, max drawdown -20.0%.")


def test_names_alone_are_enough_to_divide():
    made = equal_weight.compose(seen({"Ash": (), "Beech": ()}))
    assert made.weights.tolist() == [0.5, 0.5]
    assert made.risks == ("Classes fall together: equity and bond.",)
    assert made.portfolio.startswith("Ash 50% (equity), Beech 50% (bond).")


def test_a_class_nobody_named_is_not_printed():
    view = seen({"Ash": ()})
    bare = dataclasses.replace(view, assets=(dataclasses.replace(view.assets[0], asset_class=""),))
    made = equal_weight.compose(bare)
    assert made.portfolio.startswith("Ash 100%.")
    assert made.risks == ("Classes fall together: unnamed.",)
