"""The fourth scope: what the panel makes of a control cell, as a claim of its own."""

from __future__ import annotations

import pytest
from analysis import gate, halo, measured, panel, verdicts, without

from assaymark.claims import kind_of, suppressed_phrase


def agreed(kappa=0.6, cell="cell_a", *, unanimous=True, left_out=True):
    """Whether the judge families agree on the cell's difference from honest records."""
    state = "ok" if kappa is not None else "undefined: two judge families gave one rating each"
    detail = {"unanimous": unanimous, "leave_one_out": left_out}
    return measured("cell.agreement", {"cell": cell}, kappa, state=state, detail=detail)


def whole(cell="cell_a", outcome="passed", value=-2.9):
    """A cell that every judge family sees alike, without a judge of its composer's family."""
    drops = [without(cell, family, value, outcome) for family in ("fa", "fb")]
    return [gate(cell, outcome, value), agreed(cell=cell), halo(cell, 0.0, None), *drops]


def claim_on(measurements, cell="cell_a"):
    return verdicts(*panel({"ash": 4.4, "elm": 4.0}), *measurements)[f"cell[cell={cell}]"]


def test_a_cell_that_is_agreed_on_survives_drops_and_has_no_halo_is_a_headline():
    verdict = claim_on(whole())
    assert verdict.claim.scope == "adversarial-cell"
    assert verdict.claim.subjects == ("cell_a",)
    assert verdict.claim.dimension == "aggregate"
    assert not verdict.claim.asserts_order
    assert verdict.claim.statement == (
        "The panel scores confident but wrong rationales below the bottom quartile of honest ones."
    )
    assert (verdict.agreement_status, verdict.stability_status, verdict.adversarial_status) == (
        "publish",
        "stable",
        "passed",
    )
    assert verdict.publication_level == "headline"
    assert "cell.drop[cell=cell_a,dropped=fb]" in verdict.measurements


@pytest.mark.parametrize(
    ("cell", "outcome", "statement"),
    [
        ("cell_a", "failed", "The panel does not score confident but wrong rationales below the bottom quartile"),
        ("cell_b", "substance", "The panel scores terse but correct rationales within 0.3 points of honest ones."),
        ("cell_b", "verbosity-bias", "terse but correct rationales more than 0.5 points below honest ones."),
        ("cell_b", "terse-favoured", "terse but correct rationales more than 0.3 points above honest ones."),
        ("cell_b", "inconclusive", "What the panel makes of terse but correct rationales stays open."),
        ("cell_b", "not tested", "How the panel treats terse but correct rationales was not tested."),
        ("paraphrase", "invariant", "paraphrases with the same facts within 0.3 points of their originals."),
        ("fact_flip", "not noticed", "does not score rationales with one number changed below their originals."),
        ("red_team", "passed", "The panel scores red-team rationales below the bottom quartile of honest ones."),
    ],
)
def test_each_outcome_has_its_sentence(cell, outcome, statement):
    assert statement in claim_on(whole(cell, outcome), cell).claim.statement


@pytest.mark.parametrize(
    ("kappa", "unanimous", "left_out", "status", "level"),
    [
        (0.4, True, True, "publish", "headline"),
        (0.39, True, True, "methodology", "qualified"),
        (0.6, False, True, "methodology", "qualified"),
        (0.19, True, True, "halt", "no-claim"),
        (0.6, False, False, "halt", "no-claim"),
        (None, False, False, "halt", "no-claim"),
    ],
)
def test_agreement_is_asked_about_the_difference(kappa, unanimous, left_out, status, level):
    """Within a cell all texts deserve one score, so that kappa inside it is near 0 whatever the judges do."""
    cell = [item for item in whole() if item.name != "cell.agreement"]
    verdict = claim_on([*cell, agreed(kappa, unanimous=unanimous, left_out=left_out)])
    assert (verdict.agreement_status, verdict.publication_level) == (status, level)
    assert verdict.stability_status == ("stable" if left_out else "judge-dependent")


def test_a_cell_whose_agreement_nobody_measured_halts():
    cell = [item for item in whole() if item.name != "cell.agreement"]
    verdict = claim_on(cell)
    assert (verdict.stability_status, verdict.publication_level) == ("judge-dependent", "no-claim")


def test_a_triggered_halo_makes_the_claim_construct_sensitive():
    cell = [item for item in whole() if item.name != "cell.halo"]
    assert claim_on([*cell, halo("cell_a", 0.1, "fa")]).adversarial_status == "passed"
    verdict = claim_on([*cell, halo("cell_a", 0.3, "fa", triggered=True)])
    assert (verdict.adversarial_status, verdict.publication_level) == ("construct-sensitive", "qualified")
    assert "+0.300 points: a halo" in verdict.condition


def test_an_unmeasured_halo_is_not_tested():
    cell = [item for item in whole() if item.name != "cell.halo"]
    assert claim_on(cell).adversarial_status == "not tested"


def test_rules_about_orders_say_nothing_about_a_cell():
    assert claim_on(whole()).fragility == {}


def test_a_failing_cell_a_does_not_contaminate_its_own_claim():
    """That the panel rewards confident nonsense is exactly what may then be said."""
    verdict = claim_on(whole(outcome="failed", value=0.3))
    assert verdict.publication_level == "headline"


def test_ladders_have_no_claim():
    found = verdicts(*panel({"ash": 4.4, "elm": 4.0}))
    assert not any(kind_of(v.claim) == "cell" for v in found.values())


def test_what_is_not_said_about_a_cell():
    assert suppressed_phrase(claim_on(whole()).claim) == "How the panel scores confident but wrong rationales."
