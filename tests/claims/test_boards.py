"""What may be said of models on a benchmark: planted orders are said, noise is not."""

from __future__ import annotations

import numpy as np
import pytest

from assaymark.claims.benchmark import DISSOCIATION, DRAWDOWN, SHARPE_CONTRAST, BenchRules, decide_benchmark
from assaymark.claims.boards import CONTRAST, LEVEL, Board
from assaymark.metrology.paired import ScoredItems, contrast_measurements, level_measurements
from assaymark.records import Measurement

BOARD = Board("balanced", "CEPS under the balanced profile", "profiles")


def measured(values, *, names=None, other=None, parts=None, board=BOARD):
    values = np.asarray(values, dtype=float)
    m, n = values.shape
    names = names or tuple("abcdefghij"[:m])
    items = ScoredItems(tuple(names), values, tuple(map(str, range(n))), tuple(parts or ("w",) * n))
    labels = {"board": board.name}
    return level_measurements(LEVEL, items, labels, level=0.95) + contrast_measurements(
        CONTRAST, items, labels, level=0.95, other=other
    )


def decided(measurements, boards=(BOARD,), **rules):
    return decide_benchmark(measurements, boards, BenchRules(**rules), "plan")


def planted(levels, *, noise=0.02, n=24, seed=1):
    rng = np.random.default_rng(seed)
    return np.array(levels)[:, None] + rng.normal(0, 0.2, n) + rng.normal(0, noise, (len(levels), n))


def by_id(found):
    return {one.claim.id: one for one in found.verdicts}


def test_planted_classes_are_found_and_said():
    """a = b > c = d > e: two cuts, two classes, and no order inside them."""
    found = decided(measured(planted([0.6, 0.6, 0.4, 0.4, 0.1])))
    (standing,) = found.standings
    assert standing.groups == (("a", "b"), ("c", "d"), ("e",))
    said = [one.claim.statement for one in found.verdicts if one.publication_level == "headline"]
    assert "a and b score above c and d on CEPS under the balanced profile." in said
    assert "e scores lowest of the five models on CEPS under the balanced profile." in said
    verdicts = by_id(found)
    inside = next(
        one for name, one in verdicts.items() if name.startswith("above") and set(one.claim.subjects) == {"a", "b"}
    )
    assert inside.publication_level == "no-claim"
    assert inside.stability_status == "tie-class"
    classes = [one for one in found.verdicts if one.claim.id.startswith("tie")]
    assert {one.claim.subjects for one in classes} == {("a", "b"), ("c", "d")}
    assert all(one.publication_level == "qualified" and not one.claim.asserts_order for one in classes)


def test_equal_models_are_ordered_no_more_often_than_alpha_allows():
    orders = 0
    for seed in range(200):
        found = decided(measured(planted([0.5] * 4, seed=seed, n=12)))
        orders += any(one.claim.asserts_order and one.publication_level != "no-claim" for one in found.verdicts)
    assert orders <= 20  # .05 of 200 is 10; more than 20 once in a thousand times


def test_an_order_that_a_window_turns_around_is_said_with_it():
    gap = np.array([0.5] * 12 + [-0.2] * 4) + np.random.default_rng(5).normal(0, 0.02, 16)
    values = np.stack([gap, np.zeros(16)])
    parts = ["calm"] * 12 + ["crash"] * 4
    found = decided(measured(values, parts=parts), alpha=0.05)
    (cut,) = [one for one in found.verdicts if one.claim.id.startswith("cut")]
    assert cut.publication_level == "qualified"
    assert cut.stability_status == "rule-dependent"
    assert cut.condition == "Without calm the order is the other way round."
    assert list(cut.fragility.values()) == ["no-claim"]


def test_an_order_that_the_other_convention_turns_around_is_said_with_it():
    values = planted([0.6, 0.3])
    found = decided(measured(values, other=values[::-1]))
    (cut,) = [one for one in found.verdicts if one.claim.id.startswith("cut")]
    assert cut.publication_level == "qualified"
    assert cut.condition == "Under the other convention the order is the other way round."


def test_what_has_to_be_said_with_a_board_is_said_with_its_orders():
    board = Board("b", "CEPS", "f", caution="Dates count as independent.")
    found = decided(measured(planted([0.6, 0.3]), board=board), (board,))
    orders = [one for one in found.verdicts if one.claim.asserts_order]
    assert {one.publication_level for one in orders} == {"qualified"}
    assert all(one.condition.endswith("Dates count as independent.") for one in orders)


def test_one_model_alone_has_no_order():
    found = decided(measured(planted([0.5])))
    assert found.verdicts == ()
    assert found.standings[0].groups == (("a",),)


def test_families_share_alpha():
    """A difference that stands on its own is withheld when two further families have their share."""
    values = planted([0.5, 0.5], noise=0.1, n=10, seed=4)
    values[0] += 0.08
    boards = (BOARD, Board("x", "X", "two"), Board("y", "Y", "three"))
    (p,) = [item.detail["p"] for item in measured(values) if item.name == CONTRAST]
    alone = decided(measured(values), alpha=p * 1.5)
    shared = decided(measured(values), boards, alpha=p * 1.5)
    assert any(one.claim.id.startswith("cut") for one in alone.verdicts)
    assert not any(one.claim.id.startswith("cut") for one in shared.verdicts)


# --- drawdown limits ------------------------------------------------------------------------------------------------


def fall(model, window, value, *, other=None, profile="balanced", tolerance=0.1, wanted=("x", "y")):
    detail = {
        "tolerance": tolerance,
        "stress": True,
        "wanted": list(wanted),
        "other": value if other is None else other,
    }
    labels = {"model": model, "profile": profile, "window": window}
    return Measurement(
        name=DRAWDOWN, labels=labels, value=value, n=80, n_of="days", method="one history", detail=detail
    )


def test_a_drawdown_limit_is_a_fact_about_every_window():
    found = by_id(decided([fall("a", "x", 0.08), fall("a", "y", 0.1), fall("b", "x", 0.05), fall("b", "y", 0.124)], ()))
    kept, broken = found["gate[model=a,profile=balanced]"], found["gate[model=b,profile=balanced]"]
    assert kept.claim.statement.startswith("a stays within a drawdown of 10 % in all two stress windows")
    assert broken.claim.statement == "b falls by more than 10 % under the balanced profile in y (12.4 %)."
    assert {kept.publication_level, broken.publication_level} == {"headline"}
    count = found["gates[profile=balanced]"]
    assert count.claim.statement.startswith("One of two models stays within")


def test_a_drawdown_limit_is_not_claimed_without_every_window():
    found = by_id(decided([fall("a", "x", 0.02)], ()))
    assert found["gate[model=a,profile=balanced]"].publication_level == "no-claim"


def test_a_limit_on_whose_side_the_other_convention_falls_otherwise_is_qualified():
    found = by_id(decided([fall("a", "x", 0.09, other=0.11), fall("a", "y", 0.02)], ()))
    assert found["gate[model=a,profile=balanced]"].publication_level == "qualified"
    assert "x" in found["gate[model=a,profile=balanced]"].condition


def test_the_limit_itself_is_within():
    """0.1 as a float sum of falls may lie a rounding above the limit (section 3.3: 1e-9)."""
    found = by_id(decided([fall("a", "x", 0.1 + 1e-12), fall("a", "y", 0.0)], ()))
    assert "stays within" in found["gate[model=a,profile=balanced]"].claim.statement


# --- equal weight, and questions against pipeline -------------------------------------------------------------------


def ratio(model, value, p, *, other=None):
    labels = {"model": model, "profile": "balanced", "window": "normal"}
    detail = {"p": p} | ({} if other is None else {"other": other})
    return Measurement(
        name=SHARPE_CONTRAST, labels=labels, value=value, n=252, n_of="days", method="m", low=value - 1, high=value + 1,
        level=0.95, detail=detail,
    )  # fmt: skip


def test_only_a_significant_ratio_beats_equal_weight():
    found = by_id(decided([ratio("a", 2.0, 0.001), ratio("b", 2.0, 0.2), ratio("c", -2.0, 0.001)], ()))
    levels = {name.split("=")[1].split(",")[0]: one.publication_level for name, one in found.items()}
    assert levels == {"a": "headline", "b": "no-claim", "c": "no-claim"}


def test_a_ratio_without_a_value_says_why():
    flat = Measurement(
        name=SHARPE_CONTRAST, labels={"model": "a", "profile": "balanced", "window": "normal"}, value=None, n=252,
        n_of="days", method="m", state="not defined: it never varies",
    )  # fmt: skip
    (one,) = decided([flat], ()).verdicts
    assert one.publication_level == "no-claim"
    assert "never varies" in one.reasons[0]


@pytest.mark.parametrize(
    ("low", "high", "level", "word"),
    [(0.6, 0.9, "headline", "agrees"), (-0.4, 0.3, "headline", "differs"), (0.2, 0.8, "no-claim", "differs")],
)
def test_ranks_agree_or_differ_where_the_whole_interval_says_so(low, high, level, word):
    item = Measurement(
        name=DISSOCIATION, labels={"board": "all"}, value=(low + high) / 2, n=10, n_of="models", method="m", low=low,
        high=high, level=0.95,
    )  # fmt: skip
    (one,) = decided([item], ()).verdicts
    assert one.publication_level == level
    assert word in one.claim.statement


def test_what_turns_a_group_is_said_once_with_its_pairs():
    values = planted([0.6, 0.6, 0.3])
    other = values.copy()
    other[1] = values[2] - 0.1
    found = decided(measured(values, other=other))
    (cut,) = [one for one in found.verdicts if one.claim.id.startswith("cut")]
    assert cut.condition == "Under the other convention 1 of the 2 pairs is the other way round: b and c."


def test_a_class_quotes_the_pair_that_is_nearest_to_evidence():
    found = decided(measured(planted([0.5, 0.5, 0.5])))
    (tie,) = [one for one in found.verdicts if one.claim.id.startswith("tie")]
    assert tie.reasons[0].startswith("Three pairs of 3 have no evidence after Holm (the nearest to it: ")
    assert "p < .001" not in tie.reasons[0]
