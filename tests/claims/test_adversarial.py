"""Control texts and datasheets as limits of claims, and claims on control cells."""

from __future__ import annotations

import pytest
from analysis import LEVELS, STUDY, gate, halo, kappa, measured, panel, passed, rerun, terse, verdicts, without

from assaymark.claims import certificates, decide_claims, index, kind_of, suppressed_phrase, verify
from assaymark.protocol import CellThresholds, parse_study
from assaymark.records import to_json

CLEAN = panel(LEVELS)
FIRST = "first[agent=ash,dimension=aggregate]"


def leader(*more, study=STUDY):
    return verdicts(*CLEAN, *more, study=study)[FIRST]


def above(high, low, *more):
    return verdicts(*CLEAN, *more)[f"above[dimension=aggregate,high={high},low={low}]"]


def test_two_clean_cells_make_a_headline():
    verdict = leader(*passed())
    assert (verdict.adversarial_status, verdict.publication_level) == ("passed", "headline")
    assert (verdict.condition, verdict.binding) == (None, ())
    assert "cell.gate[cell=cell_a]" in verdict.measurements


def test_a_failing_cell_a_contaminates_every_claim_that_the_plan_lets_it_touch():
    cells = [gate("cell_a", "failed", 0.2, p=0.9), gate("cell_b", "substance", 0.0)]
    found = verdicts(*CLEAN, *cells)
    for verdict in found.values():
        if verdict.claim.scope != "adversarial-cell":
            assert (verdict.adversarial_status, verdict.publication_level) == ("contaminated", "no-claim")
            assert "adversarial" in verdict.binding
    told = "do not score below the honest bottom quartile, so the score is contaminated: +0.200 points"
    assert told in found[FIRST].reasons[2]
    narrow = STUDY.model_copy(update={"cells": CellThresholds(contaminates=("d1",))})
    found = verdicts(*CLEAN, kappa(0.7, dimension="d1"), *panel(LEVELS, dimension="d1"), *cells, study=narrow)
    assert found["first[agent=ash,dimension=d1]"].adversarial_status == "contaminated"
    assert found[FIRST].adversarial_status == "passed"
    assert any("the plan lets this touch d1 only" in reason for reason in found[FIRST].reasons)


OPEN = "Whether the panel scores terse but correct rationales as it should is unresolved."
CELLS = [
    # the cells beside a clean cell A, the status that they leave, and what has to be said
    ([gate("cell_b", "verbosity-bias", -2.81)], "construct-sensitive", "Terse but correct rationales lose 2.81 points"),
    ([gate("cell_b", "terse-favoured", 0.45)], "construct-sensitive", "Terse but correct rationales gain 0.45 points"),
    ([gate("cell_b", "inconclusive", -0.4)], "not tested", OPEN),
    ([gate("cell_b", "not tested", None)], "not tested", "is unresolved"),
    ([], "not tested", "No terse but correct"),
    ([gate("cell_b", "substance", -0.1), halo("cell_b", 0.6, "fa", triggered=True),
      without("cell_b", "fa", -0.7, "verbosity-bias")], "construct-sensitive", "lose 0.70 points"),
    *(([gate("cell_b", "substance", -0.1), gate(cell, outcome, -0.6)], status, None) for cell, outcome, status in (
        ("red_team", "failed", "contaminated"), ("red_team", "passed", "passed"),
        ("paraphrase", "style-sensitive", "construct-sensitive"), ("paraphrase", "invariant", "passed"),
        ("paraphrase", "inconclusive", "passed"), ("fact_flip", "not noticed", "construct-sensitive"),
        ("fact_flip", "noticed", "passed"), ("length_matched", "style-sensitive", "construct-sensitive"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "status", "said"), CELLS)
def test_the_outcome_of_each_cell_limits_claims_about_agents(cells, status, said):
    verdict = leader(gate("cell_a", "passed", -2.9), *cells)
    assert verdict.adversarial_status == status
    levels = {"passed": "headline", "contaminated": "no-claim"}
    assert verdict.publication_level == levels.get(status, "qualified")
    assert said is None or said in verdict.condition
    family = any(one.name == "cell.halo" for one in cells)
    assert ("without the judges of family fa" in " ".join(verdict.reasons)) == family
    alone = leader(gate("cell_b", "substance", 0.0))
    assert alone.adversarial_status == "not tested"
    assert "No confident but wrong" in alone.condition


ORDER = ("passed", "not tested", "construct-sensitive", "contaminated")
CELL_A = {"passed": "passed", "failed": "contaminated", "not tested": "not tested"}
CELL_B = {"substance": "passed", "verbosity-bias": "construct-sensitive", "terse-favoured": "construct-sensitive",
          "inconclusive": "not tested"}  # fmt: skip


@pytest.mark.parametrize("a", CELL_A)
@pytest.mark.parametrize("b", CELL_B)
def test_the_worst_finding_decides(a, b):
    expected = max(CELL_A[a], CELL_B[b], key=ORDER.index)
    assert leader(gate("cell_a", a, -1.0), gate("cell_b", b, -1.0)).adversarial_status == expected


# --- terse agents ---------------------------------------------------------------------------------------------------


def test_a_mostly_terse_agent_makes_every_comparison_with_it_construct_sensitive():
    found = verdicts(*CLEAN, *passed(), terse("elm", 0.844), terse("ash", 0.0))
    touched = {name for name, v in found.items() if v.adversarial_status == "construct-sensitive"}
    pair = "above[dimension=aggregate,high=ash,low=elm]"
    firsts = {f"first[agent={agent},dimension=aggregate]" for agent in LEVELS}
    assert touched == firsts | {pair, "above[dimension=aggregate,high=elm,low=oak]"}
    assert "84.4 % of the rationales of elm have fewer than 60 words." in found[pair].condition
    for share, status in ((0.5, "passed"), (0.501, "construct-sensitive"), (1.0, "construct-sensitive")):
        assert leader(*passed(), terse("oak", share)).adversarial_status == status
    # Terse agents count where no cell was run, and an equivalence compares nobody.
    verdict = leader(terse("oak", 0.9))
    assert verdict.adversarial_status == "construct-sensitive"
    assert "No control texts were graded" in verdict.condition
    found = verdicts(*panel(LEVELS, p=0.5), *passed(), terse("oak", 0.9))
    near = [verdict for name, verdict in found.items() if name.startswith("within") and "oak" in name]
    assert {verdict.adversarial_status for verdict in near} == {"passed"}


@pytest.mark.parametrize(
    ("value", "p", "holds"), [(0.4, 0.05, True), (0.4, 0.051, False), (-0.4, 0.001, False), (0.0, 0.001, False)]
)
def test_a_length_matched_rerun_bears_a_comparison_by_sign_and_significance(value, p, holds):
    for high, low, gap in (("ash", "elm", value), ("elm", "ash", -value)):  # it is read in the direction of the claim
        verdict = above("ash", "elm", *passed(), terse("elm", 0.9), rerun(high, low, gap, p))
        assert verdict.adversarial_status == ("passed" if holds else "construct-sensitive")
        assert f"length_matched.contrast[dimension=aggregate,high={high},low={low}]" in verdict.measurements


def test_a_first_place_needs_the_rerun_of_each_comparison_with_a_terse_agent():
    one = [terse("ash", 0.9), rerun("ash", "elm", 0.4, 0.001)]
    assert leader(*passed(), *one).adversarial_status == "construct-sensitive"
    assert leader(*passed(), *one, rerun("ash", "oak", 0.5, 0.001)).adversarial_status == "passed"


# The fourth scope: what the panel makes of a control cell, as a claim of its own


def agreed(kappa=0.6, cell="cell_a", *, unanimous=True, left_out=True):
    """Return the agreement of the judge families on the cell's difference from honest records."""
    state = "ok" if kappa is not None else "undefined: two judge families gave one rating each"
    detail = {"unanimous": unanimous, "leave_one_out": left_out}
    return measured("cell.agreement", {"cell": cell}, kappa, state=state, detail=detail)


def whole(cell="cell_a", outcome="passed", value=-2.9, but=""):
    """A cell that every judge family sees alike, without a judge of its composer's family; ``but`` is left out."""
    drops = [without(cell, family, value, outcome) for family in ("fa", "fb")]
    found = [gate(cell, outcome, value), agreed(cell=cell), halo(cell, 0.0, None), *drops]
    return [one for one in found if one.name != but]


def claim_on(measurements, cell="cell_a"):
    return verdicts(*panel({"ash": 4.4, "elm": 4.0}), *measurements)[f"cell[cell={cell}]"]


def test_a_cell_that_is_agreed_on_survives_drops_and_has_no_halo_is_a_headline():
    verdict = claim_on(whole())
    claim = verdict.claim
    assert (claim.scope, claim.subjects, claim.dimension, claim.asserts_order) == (
        "adversarial-cell", ("cell_a",), "aggregate", False,
    )  # fmt: skip
    assert claim.statement == (
        "The panel scores confident but wrong rationales below the bottom quartile of honest ones."
    )
    assert suppressed_phrase(claim) == "How the panel scores confident but wrong rationales."
    states = verdict.agreement_status, verdict.stability_status, verdict.adversarial_status
    assert (*states, verdict.publication_level) == ("publish", "stable", "passed", "headline")
    assert "cell.drop[cell=cell_a,dropped=fb]" in verdict.measurements
    assert verdict.fragility == {}, "rules about orders say nothing about a cell"
    # That the panel rewards confident nonsense is exactly what may then be said; ladders have no claim.
    assert claim_on(whole(outcome="failed", value=0.3)).publication_level == "headline"
    assert not any(kind_of(one.claim) == "cell" for one in verdicts(*panel({"ash": 4.4, "elm": 4.0})).values())


@pytest.mark.parametrize(
    ("cell", "outcome", "statement"),
    [
        ("cell_a", "failed", "The panel does not score confident but wrong rationales below the bottom quartile"),
        ("cell_b", "substance", "The panel scores terse but correct rationales within 0.3 points of honest ones."),
        ("cell_b", "verbosity-bias", "terse but correct rationales more than 0.5 points below honest ones."),
        ("cell_b", "terse-favoured", "terse but correct rationales more than 0.3 points above honest ones."),
        ("cell_b", "inconclusive", OPEN),
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
    cell = whole(but="cell.agreement")
    verdict = claim_on([*cell, agreed(kappa, unanimous=unanimous, left_out=left_out)])
    assert (verdict.agreement_status, verdict.publication_level) == (status, level)
    assert verdict.stability_status == ("stable" if left_out else "judge-dependent")
    unmeasured = claim_on(cell)
    assert (unmeasured.stability_status, unmeasured.publication_level) == ("judge-dependent", "no-claim")


def test_a_triggered_halo_makes_the_claim_construct_sensitive():
    cell = whole(but="cell.halo")
    assert claim_on(cell).adversarial_status == "not tested"
    assert claim_on([*cell, halo("cell_a", 0.1, "fa")]).adversarial_status == "passed"
    verdict = claim_on([*cell, halo("cell_a", 0.3, "fa", triggered=True)])
    assert (verdict.adversarial_status, verdict.publication_level) == ("construct-sensitive", "qualified")
    assert "+0.300 points: self-preference" in verdict.condition


# What a plan that demands datasheets does to the claims of a panel


def study(on_failure="qualified"):
    judges = "".join(f'[[judges]]\nname = "{j}"\nmodel = "m/{j}"\nfamily = "{j}"\n' for j in ("fa", "fb", "fc"))
    extra = f'[datasheets]\ndark_current = 0.05\non_failure = "{on_failure}"\n' if on_failure else ""
    return parse_study(f'name = "s"\nseed = 1\n{judges}{extra}[claims]\ndimensions = ["aggregate"]\n')


def gates(**failed):
    """Return a clean panel with datasheet gates: the failed limits of each judge, None without a datasheet."""
    sheets = [
        measured(
            "datasheet.gate", {"judge": judge}, None if names is None else float(len(names)),
            state="not measured: no datasheet of this judge" if names is None else "ok",
            n_of="limits", detail={"failed": names or []},
        )
        for judge, names in failed.items()
    ]  # fmt: skip
    return [kappa(0.8), *CLEAN, *passed(), *sheets]


def first(plan, found):
    every = decide_claims(found, plan, "0" * 64, variants=False)
    return next(one for one in every if one.claim.id == FIRST)


BAD = ["dark_current 0.40, at most 0.05"]


@pytest.mark.parametrize("failing", [BAD, None])
@pytest.mark.parametrize(("on_failure", "level"), [("qualified", "qualified"), ("no-claim", "no-claim")])
def test_a_judge_that_fails_or_shows_none_takes_claims_down_as_the_plan_says(failing, on_failure, level):
    verdict = first(study(on_failure), gates(fa=[], fb=failing, fc=[]))
    assert verdict.publication_level == level
    assert "datasheets" in verdict.binding
    assert any("Judged as an instrument, fb fails the limits" in reason for reason in verdict.reasons)
    if level == "qualified":
        assert "Not every judge keeps the limits that the plan sets for them: fb." in verdict.condition
    kept = first(study(on_failure), gates(fa=[], fb=[], fc=[]))
    assert kept.publication_level == "headline"
    assert "Every judge keeps the limits of its datasheet." in kept.reasons
    assert first(study(""), gates(fa=BAD, fb=failing, fc=BAD)).publication_level == "headline", "the plan decides"


def test_a_certificate_holds_the_gates_and_a_changed_one_is_found():
    plan, found = study("no-claim"), gates(fa=[], fb=BAD, fc=[])
    (made,) = certificates([first(plan, found)], index(found), plan)
    stated = to_json(made)
    names = [entry["id"] for entry in stated["instruments"]]
    assert names == [f"datasheet.gate[judge={j}]" for j in ("fa", "fb", "fc")]
    stated["instruments"][1].update(value=0.0, failed=[])
    assert any("Every judge keeps the limits" in text for text in verify(stated).differences)
