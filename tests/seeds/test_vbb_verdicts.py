"""ValueBlindBench: gates (3.7), cell B (3.5), the two worked verdicts (5.3), the levels of the claim map (4.1)."""

from __future__ import annotations

import pytest

from assaymark.claims import agreement_status, cell_b_outcome, publication_level

PER_DIMENSION = {  # section 5.1: kappa, interval, verdict
    "action_coherence": (0.9354, 0.9216, "publish"),
    "risk_alignment": (0.8834, 0.8725, "publish"),
    "uncertainty_handling": (0.7905, 0.7621, "publish"),
    "position_sizing": (0.7626, 0.7470, "publish"),
    "information_use": (0.6037, 0.5979, "publish"),
    "constraint_awareness": (0.2022, 0.1792, "methodology"),
}


@pytest.mark.parametrize("dimension", PER_DIMENSION)
def test_section_5_1_gate_per_dimension(dimension):
    kappa, _, printed = PER_DIMENSION[dimension]
    assert agreement_status(kappa) == printed


def test_section_5_1_aggregate_publishes():
    assert agreement_status(0.7168) == "publish"


def test_section_5_1_lower_bound_rule_would_halt_constraint_awareness():
    assert agreement_status(PER_DIMENSION["constraint_awareness"][1]) == "halt"
    assert all(
        agreement_status(low) == "publish"
        for name, (_, low, _) in PER_DIMENSION.items()
        if name != "constraint_awareness"
    )


def test_section_5_1_stricter_cutoffs_publish_the_aggregate_and_halt_constraint_awareness():
    assert agreement_status(0.7168, publish=0.5, halt=0.25) == "publish"
    assert agreement_status(0.2022, publish=0.5, halt=0.25) == "halt"
    # "even its CI upper bound is below 0.25"
    assert agreement_status(0.2256, publish=0.5, halt=0.25) == "halt"


@pytest.mark.parametrize(
    ("kappa", "status"), [(0.4, "publish"), (0.2, "methodology"), (0.39999, "methodology"), (0.19999, "halt")]
)
def test_section_3_7_boundaries_belong_to_the_better_side(kappa, status):
    assert agreement_status(kappa) == status


def test_section_5_5_cell_b_is_verbosity_bias():
    assert cell_b_outcome(-2.81, True) == "verbosity-bias"
    # the printed means disagree with the printed difference by less than their rounding
    printed_means = 1.54 - 4.35
    assert printed_means == pytest.approx(-2.81, abs=0.01)


@pytest.mark.parametrize(
    ("delta", "significant", "outcome"),
    [
        (-0.3, True, "substance"), (0.3, True, "substance"), (4.05 - 4.35, True, "substance"),
        (-0.31, True, "inconclusive"), (-0.5, True, "inconclusive"), (-0.51, True, "verbosity-bias"),
        (-0.51, False, "inconclusive"), (0.31, False, "terse-favoured"),
    ],
)  # fmt: skip
def test_section_3_5_trichotomy_and_the_two_cases_it_leaves_open(delta, significant, outcome):
    assert cell_b_outcome(delta, significant) == outcome


def test_section_5_3_worked_verdict_1_rank_1_is_qualified():
    """Aggregate kappa 0.7168; rank 1 survives drops at rho 1.0, 1.0 and 0.2; cell B makes it construct-sensitive."""
    level = publication_level(agreement_status(0.7168), "stable", "construct-sensitive", asserts_order=True)
    assert level == "qualified"


def test_section_5_3_worked_verdict_2_no_strict_order_in_a_tie_class():
    """The field table names no level for tie-class; this worked verdict is where the rule comes from."""
    level = publication_level(agreement_status(0.7168), "tie-class", "construct-sensitive", asserts_order=True)
    assert level == "no-claim"


CLAIM_MAP = [  # section 4.1, the rows that permit or withhold a claim
    ("only rank 1 is publishable, and qualified by cell B", 0.7168, "stable", "construct-sensitive", True, "qualified"),
    ("constraint_awareness downgraded, no headline", 0.2022, "stable", "passed", True, "qualified"),
    ("lower ranks: a class, not an order", 0.7168, "tie-class", "construct-sensitive", True, "no-claim"),
    ("lower ranks as one class may be named", 0.7168, "tie-class", "construct-sensitive", False, "qualified"),
    ("a lower rank that only one judge supports", 0.7168, "judge-dependent", "passed", True, "no-claim"),
]


@pytest.mark.parametrize(("conclusion", "kappa", "stability", "adversarial", "order", "level"), CLAIM_MAP)
def test_section_4_1_claim_map(conclusion, kappa, stability, adversarial, order, level):
    assert publication_level(agreement_status(kappa), stability, adversarial, asserts_order=order) == level
