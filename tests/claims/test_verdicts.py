from __future__ import annotations

from dataclasses import replace

import pytest
from analysis import kappa, measured, panel

from assaymark.claims import decide_claims, index
from assaymark.errors import NotMeasurableError
from assaymark.protocol import Claims, parse_study
from assaymark.records import Verdict, canonical_json, parse

STUDY = parse_study(
    'name = "s"\nseed = 1\n[[judges]]\nname = "a"\nmodel = "reference/a"\nfamily = "fa"\n'
    '[[judges]]\nname = "b"\nmodel = "reference/b"\nfamily = "fb"\n'
)
LEVELS = {"ash": 4.4, "elm": 4.0, "oak": 3.9}


def verdicts(measurements):
    return {v.claim.id: v for v in decide_claims(measurements, STUDY, "hash")}


def first(agent, measurements):
    return verdicts(measurements)[f"first[agent={agent},dimension=aggregate]"]


def above(high, low, measurements):
    return verdicts(measurements)[f"above[dimension=aggregate,high={high},low={low}]"]


def test_without_controls_the_best_level_is_qualified():
    verdict = first("ash", [kappa(0.72), *panel(LEVELS)])
    assert (verdict.agreement_status, verdict.stability_status) == ("publish", "stable")
    assert verdict.adversarial_status == "not tested"
    assert verdict.publication_level == "qualified"
    assert verdict.binding == ("adversarial",)
    assert "No control texts were graded" in verdict.condition
    assert verdict.claim.statement == "ash ranks first of the three agents on the panel's aggregate score."


def test_every_agent_and_every_pair_gets_a_verdict_and_only_the_leader_leads():
    found = verdicts([kappa(0.72), *panel(LEVELS)])
    assert len(found) == 3 + 3 + 1
    allowed = {name for name, verdict in found.items() if verdict.publication_level != "no-claim"}
    assert {name for name in allowed if name.startswith("first")} == {"first[agent=ash,dimension=aggregate]"}
    assert "2 of the 2 agents" in found["first[agent=oak,dimension=aggregate]"].reasons[1]


def test_a_leader_that_survives_every_drop_needs_significance_too():
    verdict = first("ash", [kappa(0.72), *panel(LEVELS, p=0.2)])
    assert verdict.stability_status == "tie-class"
    assert verdict.publication_level == "no-claim"
    assert verdict.binding == ("stability",)
    assert verdict.condition is None


def test_holm_counts_the_whole_family():
    """p = .02 alone would pass; as the smallest of three it is .06."""
    measurements = [kappa(0.72), *panel(LEVELS, p={("ash", "elm"): 0.02, ("ash", "oak"): 0.9, ("elm", "oak"): 0.9})]
    verdict = above("ash", "elm", measurements)
    assert verdict.stability_status == "tie-class"
    assert "p = .060 after Holm" in verdict.reasons[1]


def test_an_order_that_one_drop_reverses_is_judge_dependent():
    measurements = [kappa(0.72), *panel(LEVELS, dropped={"fb": {"ash": 4.4, "elm": 3.5, "oak": 3.9}})]
    pair = above("elm", "oak", measurements)
    assert pair.stability_status == "judge-dependent"
    assert pair.publication_level == "no-claim"
    assert "without fb it is −0.400" in pair.reasons[1]
    assert first("ash", measurements).stability_status == "stable"


def test_a_first_place_that_one_drop_takes_away_is_judge_dependent():
    measurements = [kappa(0.72), *panel(LEVELS, dropped={"fc": {"ash": 3.0, "elm": 4.0, "oak": 3.9}})]
    verdict = first("ash", measurements)
    assert verdict.stability_status == "judge-dependent"
    assert "without fc elm, oak comes before it" in verdict.reasons[1]


def test_a_pair_that_never_met_has_no_order_and_limits_the_statement():
    measurements = [kappa(0.72), *panel(LEVELS, never=frozenset({frozenset(("ash", "oak"))}))]
    pair = above("ash", "oak", measurements)
    assert pair.publication_level == "no-claim"
    assert "never answered the same question" in pair.reasons[1]
    leader = first("ash", measurements)
    assert leader.publication_level == "qualified"
    assert leader.claim.statement == "ash ranks first among the one agent that it met, on the panel's aggregate score."


@pytest.mark.parametrize(
    ("value", "status", "level"),
    [(0.72, "publish", "qualified"), (0.23, "methodology", "qualified"), (0.1, "halt", "no-claim")],
)
def test_agreement_gates_the_claim(value, status, level):
    verdict = first("ash", [kappa(value), *panel(LEVELS)])
    assert (verdict.agreement_status, verdict.publication_level) == (status, level)
    assert ("agreement" in verdict.binding) == (status != "publish")


def test_a_weak_agreement_is_said_with_the_claim():
    assert "κ 0.23" in first("ash", [kappa(0.23), *panel(LEVELS)]).condition


def test_undefined_agreement_halts_and_says_why():
    verdict = first("ash", [kappa(None), *panel(LEVELS)])
    assert verdict.publication_level == "no-claim"
    assert "not defined (undefined: both judges gave one rating)" in verdict.reasons[0]


def test_the_lowest_gated_format_governs():
    """Position sizing was .43 over pooled formats and .28 within them: formats confound."""
    formats = [
        kappa(0.28, format="v1"),
        kappa(0.5, format="v2"),
        measured(
            "kappa.mean_pairwise", {"dimension": "aggregate", "format": "v3"}, None, state="too few to gate: 4 records"
        ),
    ]
    verdict = first("ash", [kappa(0.43), *formats, *panel(LEVELS)])
    assert verdict.agreement_status == "methodology"
    assert "within format v1 at kappa 0.28" in verdict.reasons[0]


def test_unmeasured_agreement_halts():
    verdict = first("ash", panel(LEVELS))
    assert verdict.agreement_status == "halt"


def test_fragility_names_each_rule_that_changes_the_level():
    verdict = first("ash", [kappa(0.45, low=0.15, high=0.6), *panel(LEVELS, p=0.005)])
    assert verdict.publication_level == "qualified"
    assert verdict.fragility["lower bound of kappa"] == "no-claim"
    assert verdict.fragility["kappa cut-offs 0.5 and 0.25"] == "qualified"
    halted = first("ash", [kappa(0.22), *panel(LEVELS, p=0.005)])
    assert halted.fragility["kappa cut-offs 0.5 and 0.25"] == "no-claim"


def test_fragility_shows_what_the_other_rounding_of_halves_would_have_done():
    """About one six-dimension mean in six lands on .5, and the choice has moved an aggregate kappa by .03."""
    pooled = kappa(0.41, low=0.3, high=0.5)
    other = replace(pooled, detail={**pooled.detail, "half_even": 0.39})
    verdict = first("ash", [other, *panel(LEVELS, p=0.005)])
    assert verdict.agreement_status == "publish"
    assert verdict.fragility["half-even rounding"] == "qualified"
    halted = replace(kappa(0.21), detail={**pooled.detail, "half_even": 0.19})
    assert first("ash", [halted, *panel(LEVELS, p=0.005)]).fragility["half-even rounding"] == "no-claim"


def test_fragility_shows_what_the_percentile_bootstrap_would_have_permitted():
    verdict = first("ash", [kappa(0.72), *panel(LEVELS, p=0.05)])
    assert verdict.publication_level == "no-claim"
    assert verdict.fragility["percentile bootstrap"] == "qualified"
    assert "cluster t" not in verdict.fragility, "it is the locked test here, not another rule"


def test_the_aggregate_and_the_dimensions_share_one_alpha():
    """Both families at .05 give equal agents an order claim in about a tenth of all studies."""
    measurements = [kappa(0.72), *panel(LEVELS, p=0.015)]
    assert above("ash", "elm", measurements).publication_level == "no-claim"
    alone = STUDY.model_copy(update={"claims": Claims(dimensions=("aggregate",))})
    found = {v.claim.id: v for v in decide_claims(measurements, alone, "hash")}
    assert found["above[dimension=aggregate,high=ash,low=elm]"].publication_level == "qualified"


def test_a_dimension_rests_on_the_family_of_all_dimensions():
    """The aggregate's contrasts form a family of their own."""
    dims = [kappa(0.7, dimension="d1"), *panel(LEVELS, dimension="d1", p=0.02)]
    found = verdicts([kappa(0.72), *panel(LEVELS, p=1e-4), *dims])
    assert found["above[dimension=aggregate,high=ash,low=elm]"].publication_level == "qualified"
    assert found["above[dimension=d1,high=ash,low=elm]"].publication_level == "no-claim"


def test_one_judge_family_permits_nothing():
    alone = measured(
        "kappa.mean_pairwise", {"dimension": "aggregate"}, None, state="not measurable: one judge family, needs two"
    )
    for verdict in verdicts([alone, *panel(LEVELS)]).values():
        assert verdict.publication_level == "no-claim"


def test_adding_a_judge_that_disagrees_never_upgrades_a_verdict():
    order = ("headline", "qualified", "no-claim")
    before = verdicts([kappa(0.6), *panel(LEVELS)])
    after = verdicts([kappa(0.3), *panel(LEVELS, dropped={"fa": {"ash": 3.0, "elm": 4.0, "oak": 3.9}})])
    for name, verdict in after.items():
        if not verdict.claim.asserts_order:
            continue  # a class that an unestablished order leaves behind
        assert order.index(verdict.publication_level) >= order.index(before[name].publication_level)


def test_two_measurements_of_one_name_are_refused():
    with pytest.raises(NotMeasurableError, match="measured twice"):
        index([kappa(0.5), kappa(0.6)])


def test_a_missing_contrast_is_an_error_not_a_pass():
    measurements = [item for item in panel(LEVELS) if item.labels.get("low") != "oak"]
    with pytest.raises(NotMeasurableError, match="no contrast"):
        decide_claims([kappa(0.7), *measurements], STUDY, "hash")


def test_a_verdict_survives_json():
    verdict = first("ash", [kappa(0.72), *panel(LEVELS)])
    assert parse(Verdict, canonical_json(verdict)) == verdict
