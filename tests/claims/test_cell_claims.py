"""The fourth scope: what the panel makes of a control cell, as a claim of its own."""

from __future__ import annotations

import pytest
from analysis import gate, halo, kappa, measured, panel, without

from assaymark.claims import decide_claims, kind_of, withheld_phrase
from assaymark.protocol import parse_study

STUDY = parse_study(
    'name = "s"\nseed = 1\n[[judges]]\nname = "a"\nmodel = "reference/a"\nfamily = "fa"\n'
    '[[judges]]\nname = "b"\nmodel = "reference/b"\nfamily = "fb"\n'
)


def cell_kappa(value, cell="cell_a", **more):
    state = "ok" if value is not None else "undefined: both judges gave one rating"
    return measured("cell.kappa", {"cell": cell, "dimension": "aggregate"}, value, state=state, **more)


def whole(cell="cell_a", outcome="passed", value=-2.9):
    """A cell whose outcome no drop changes, agreed on by the judges, without a judge of its composer's family."""
    drops = [without(cell, family, value, outcome) for family in ("fa", "fb")]
    return [gate(cell, outcome, value), cell_kappa(0.6, cell), halo(cell, 0.0, None), *drops]


def claim_on(measurements, cell="cell_a"):
    found = decide_claims([kappa(0.72), *panel({"ash": 4.4, "elm": 4.0}), *measurements], STUDY, "hash")
    return next(v for v in found if v.claim.id == f"cell[cell={cell}]")


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


@pytest.mark.parametrize(("value", "status"), [(0.4, "publish"), (0.39, "methodology"), (0.1, "halt"), (None, "halt")])
def test_agreement_is_that_inside_the_cell(value, status):
    """The honest records agree at .72 throughout."""
    cell = [item for item in whole() if item.name != "cell.kappa"]
    assert claim_on([*cell, cell_kappa(value)]).agreement_status == status


def test_a_cell_without_a_kappa_halts():
    cell = [item for item in whole() if item.name != "cell.kappa"]
    assert claim_on(cell).publication_level == "no-claim"


def test_an_outcome_that_one_drop_changes_depends_on_the_judges():
    cell = [item for item in whole() if item.labels.get("dropped") != "fb"]
    verdict = claim_on([*cell, without("cell_a", "fb", -0.1, "failed")])
    assert (verdict.stability_status, verdict.publication_level) == ("judge-dependent", "no-claim")
    assert "without fb it is −0.100: failed" in verdict.reasons[1]


def test_an_outcome_that_no_drop_was_made_of_depends_on_the_judges():
    cell = [item for item in whole() if item.name != "cell.drop"]
    assert claim_on(cell).stability_status == "judge-dependent"


def test_a_triggered_halo_makes_the_claim_construct_sensitive():
    cell = [item for item in whole() if item.name != "cell.halo"]
    assert claim_on([*cell, halo("cell_a", 0.1, "fa")]).adversarial_status == "passed"
    verdict = claim_on([*cell, halo("cell_a", 0.3, "fa", triggered=True)])
    assert (verdict.adversarial_status, verdict.publication_level) == ("construct-sensitive", "qualified")
    assert "+0.300 points: a halo" in verdict.condition


def test_an_unmeasured_halo_is_not_tested():
    cell = [item for item in whole() if item.name != "cell.halo"]
    assert claim_on(cell).adversarial_status == "not tested"


def test_other_tests_say_nothing_about_a_cell():
    verdict = claim_on(whole())
    assert set(verdict.fragility) == {"kappa cut-offs 0.5 and 0.25", "lower bound of kappa", "half-even rounding"}


def test_a_failing_cell_a_does_not_contaminate_its_own_claim():
    """That the panel rewards confident nonsense is exactly what may then be said."""
    verdict = claim_on(whole(outcome="failed", value=0.3))
    assert verdict.publication_level == "headline"


def test_ladders_have_no_claim():
    found = decide_claims([kappa(0.72), *panel({"ash": 4.4, "elm": 4.0})], STUDY, "hash")
    assert not any(kind_of(v.claim) == "cell" for v in found)


def test_what_is_not_said_about_a_cell():
    assert withheld_phrase(claim_on(whole()).claim) == "What the panel makes of confident but wrong rationales."
