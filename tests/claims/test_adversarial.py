"""The adversarial field of claims about agents, from control cells and from the length of rationales."""

from __future__ import annotations

import pytest
from analysis import LEVELS, STUDY, gate, halo, kappa, panel, passed, rerun, terse, verdicts, without
from hypothesis import given
from hypothesis import strategies as st

from assaymark.protocol import Cells

CLEAN = panel(LEVELS)


def leader(*more, study=STUDY):
    return verdicts(*CLEAN, *more, study=study)["first[agent=ash,dimension=aggregate]"]


def above(high, low, *more):
    return verdicts(*CLEAN, *more)[f"above[dimension=aggregate,high={high},low={low}]"]


def with_cells(**fields):
    return STUDY.model_copy(update={"cells": Cells(**fields)})


def test_two_clean_cells_make_a_headline():
    verdict = leader(*passed())
    assert verdict.adversarial_status == "passed"
    assert verdict.publication_level == "headline"
    assert verdict.condition is None
    assert verdict.binding == ()
    assert "cell.gate[cell=cell_a]" in verdict.measurements


def test_a_failing_cell_a_contaminates_every_claim():
    found = verdicts(*CLEAN, gate("cell_a", "failed", 0.2, p=0.9), gate("cell_b", "substance", 0.0))
    for verdict in found.values():
        if verdict.claim.scope != "adversarial-cell":
            assert verdict.adversarial_status == "contaminated"
            assert verdict.publication_level == "no-claim"
            assert "adversarial" in verdict.binding
    assert (
        "do not score below the honest bottom quartile, so the score is contaminated: +0.200 points"
        in found["first[agent=ash,dimension=aggregate]"].reasons[2]
    )


def test_a_plan_may_narrow_what_cell_a_takes_with_it():
    dims = [kappa(0.7, dimension="d1"), *panel(LEVELS, dimension="d1")]
    cells = [gate("cell_a", "failed", 0.2, p=0.9), gate("cell_b", "substance", 0.0)]
    found = verdicts(*CLEAN, *dims, *cells, study=with_cells(contaminates=("d1",)))
    assert found["first[agent=ash,dimension=d1]"].adversarial_status == "contaminated"
    kept = found["first[agent=ash,dimension=aggregate]"]
    assert kept.adversarial_status == "passed"
    assert any("the plan lets this touch d1 only" in reason for reason in kept.reasons)


@pytest.mark.parametrize(
    ("outcome", "value", "status", "said"),
    [
        ("verbosity-bias", -2.81, "construct-sensitive", "Terse but correct rationales lose 2.81 points"),
        ("terse-favoured", 0.45, "construct-sensitive", "Terse but correct rationales gain 0.45 points"),
        ("inconclusive", -0.4, "not tested", "What the panel makes of terse but correct rationales stays open."),
        ("not tested", None, "not tested", "stays open"),
    ],
)
def test_the_outcomes_of_cell_b(outcome, value, status, said):
    verdict = leader(gate("cell_a", "passed", -2.9), gate("cell_b", outcome, value))
    assert verdict.adversarial_status == status
    assert verdict.publication_level == "qualified"
    assert said in verdict.condition


@pytest.mark.parametrize(
    ("present", "missing"), [("cell_b", "No confident but wrong"), ("cell_a", "No terse but correct")]
)
def test_both_cells_have_to_be_run(present, missing):
    fine = {"cell_a": gate("cell_a", "passed", -2.9), "cell_b": gate("cell_b", "substance", 0.0)}
    verdict = leader(fine[present])
    assert verdict.adversarial_status == "not tested"
    assert missing in verdict.condition


@pytest.mark.parametrize(
    ("cell", "outcome", "status"),
    [
        ("red_team", "failed", "contaminated"),
        ("red_team", "passed", "passed"),
        ("paraphrase", "style-sensitive", "construct-sensitive"),
        ("paraphrase", "invariant", "passed"),
        ("paraphrase", "inconclusive", "passed"),
        ("fact_flip", "not noticed", "construct-sensitive"),
        ("fact_flip", "noticed", "passed"),
        ("length_matched", "style-sensitive", "construct-sensitive"),
    ],
)
def test_the_other_cells(cell, outcome, status):
    assert leader(*passed(), gate(cell, outcome, -0.6)).adversarial_status == status


ORDER = ("passed", "not tested", "construct-sensitive", "contaminated")
CELL_A = {"passed": "passed", "failed": "contaminated", "not tested": "not tested"}
CELL_B = {
    "substance": "passed",
    "verbosity-bias": "construct-sensitive",
    "terse-favoured": "construct-sensitive",
    "inconclusive": "not tested",
}


@given(st.sampled_from(sorted(CELL_A)), st.sampled_from(sorted(CELL_B)))
def test_the_worst_finding_decides(a, b):
    expected = max(CELL_A[a], CELL_B[b], key=ORDER.index)
    assert leader(gate("cell_a", a, -1.0), gate("cell_b", b, -1.0)).adversarial_status == expected


def test_a_triggered_halo_makes_the_outcome_without_the_family_primary():
    cells = [
        gate("cell_a", "passed", -2.9),
        gate("cell_b", "substance", -0.1),
        halo("cell_b", 0.6, "fa", triggered=True),
        without("cell_b", "fa", -0.7, "verbosity-bias"),
    ]
    verdict = leader(*cells)
    assert verdict.adversarial_status == "construct-sensitive"
    assert "lose 0.70 points" in verdict.condition
    assert "without the judges of family fa" in " ".join(verdict.reasons)


# --- terse agents ---------------------------------------------------------------------------------------------------


def test_a_mostly_terse_agent_makes_every_comparison_with_it_construct_sensitive():
    found = verdicts(*CLEAN, *passed(), terse("elm", 0.844), terse("ash", 0.0))
    touched = {name for name, v in found.items() if v.adversarial_status == "construct-sensitive"}
    assert touched == {
        "first[agent=ash,dimension=aggregate]",
        "first[agent=elm,dimension=aggregate]",
        "first[agent=oak,dimension=aggregate]",
        "above[dimension=aggregate,high=ash,low=elm]",
        "above[dimension=aggregate,high=elm,low=oak]",
    }
    assert (
        "84.4 % of the rationales of elm have fewer than 60 words."
        in found["above[dimension=aggregate,high=ash,low=elm]"].condition
    )


@pytest.mark.parametrize(
    ("share", "status"), [(0.5, "passed"), (0.501, "construct-sensitive"), (1.0, "construct-sensitive")]
)
def test_mostly_means_above_the_share(share, status):
    assert leader(*passed(), terse("oak", share)).adversarial_status == status


@pytest.mark.parametrize(
    ("value", "p", "status"),
    [
        (0.4, 0.02, "passed"),
        (0.4, 0.05, "passed"),
        (0.4, 0.051, "construct-sensitive"),
        (-0.4, 0.001, "construct-sensitive"),
        (0.0, 0.001, "construct-sensitive"),
    ],
)
def test_a_length_matched_rerun_bears_a_comparison_by_sign_and_significance(value, p, status):
    verdict = above("ash", "elm", *passed(), terse("elm", 0.9), rerun("ash", "elm", value, p))
    assert verdict.adversarial_status == status
    assert "length_matched.contrast[dimension=aggregate,high=ash,low=elm]" in verdict.measurements


def test_a_rerun_is_read_in_the_direction_of_the_claim():
    turned = rerun("elm", "ash", -0.4, 0.001)
    assert above("ash", "elm", *passed(), terse("elm", 0.9), turned).adversarial_status == "passed"


def test_a_first_place_needs_the_rerun_of_each_comparison_with_a_terse_agent():
    one = [terse("ash", 0.9), rerun("ash", "elm", 0.4, 0.001)]
    assert leader(*passed(), *one).adversarial_status == "construct-sensitive"
    assert leader(*passed(), *one, rerun("ash", "oak", 0.5, 0.001)).adversarial_status == "passed"


def test_terse_agents_count_where_no_cell_was_run():
    verdict = leader(terse("oak", 0.9))
    assert verdict.adversarial_status == "construct-sensitive"
    assert "No control texts were graded" in verdict.condition


def test_an_equivalence_compares_nobody():
    found = verdicts(*panel(LEVELS, p=0.5), *passed(), terse("oak", 0.9))
    near = [verdict for name, verdict in found.items() if name.startswith("within") and "oak" in name]
    assert {verdict.adversarial_status for verdict in near} == {"passed"}
