from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import pytest
from analysis import LEVELS, STUDY, kappa, measured, panel, passed
from hypothesis import given
from hypothesis import strategies as st

from assaymark.claims import (
    agreement_status,
    candidate_claims,
    cell_b_outcome,
    decide_claims,
    index,
    publication_level,
    summary_of,
    suppressed_phrase,
)
from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.protocol import Claims
from assaymark.records import Verdict, canonical_json, parse


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
    assert [cap.field for cap in verdict.caps] == ["adversarial"]
    assert [one.id for one in verdict.conditions] == ["controls"]
    assert "No control texts were graded" in verdict.condition
    assert verdict.claim.statement == "ash ranks first of the three agents on the overall score."


def test_every_agent_and_every_pair_gets_a_verdict_and_only_the_leader_leads():
    found = verdicts([kappa(0.72), *panel(LEVELS)])
    assert len(found) == 3 + 3 + 3, "first places, orders, and pairs within the margin"
    allowed = {name for name, verdict in found.items() if verdict.publication_level != "no-claim"}
    assert {name for name in allowed if name.startswith("first")} == {"first[agent=ash,dimension=aggregate]"}
    assert "not resolved" in found["first[agent=oak,dimension=aggregate]"].reasons[1]


def test_a_leader_that_survives_every_drop_needs_significance_too():
    verdict = first("ash", [kappa(0.72), *panel(LEVELS, p=0.2)])
    assert verdict.stability_status == "tie-class"
    assert verdict.publication_level == "no-claim"
    assert verdict.binding == ("stability",)
    assert verdict.condition is None
    assert verdict.stability is None, "no drop was asked for"


def test_shaffer_counts_the_pairs_that_can_still_be_equal():
    """p = .02 alone would pass; as the smallest of three pairs it is .06. The second of them is not multiplied."""
    measurements = [kappa(0.72), *panel(LEVELS, p={("ash", "elm"): 0.02, ("ash", "oak"): 0.9, ("elm", "oak"): 0.9})]
    verdict = above("ash", "elm", measurements)
    assert verdict.stability_status == "tie-class"
    assert (verdict.p, verdict.p_adjusted) == (0.02, pytest.approx(0.06))
    assert "p = .060 adjusted" in verdict.reasons[1]
    stepped = above("elm", "oak", [kappa(0.72), *panel(LEVELS, p={("ash", "oak"): 1e-4, ("elm", "oak"): 0.04})])
    assert stepped.p_adjusted == pytest.approx(0.04)


def test_a_leader_among_four_needs_no_correction_among_its_own_pairs():
    """Half of alpha is kept for the leader; its share is handed on to the pairs of the others."""
    four = {"ash": 4.6, "elm": 4.0, "fir": 4.0, "oak": 3.9}
    weak = {pair: 0.02 if "ash" in pair else 0.9 for pair in combinations(four, 2)}
    found = verdicts([kappa(0.72), *panel(four, p=weak)])
    leader = found["first[agent=ash,dimension=aggregate]"]
    assert (leader.publication_level, leader.p_adjusted) == ("qualified", pytest.approx(0.04))
    assert all(found[f"above[dimension=aggregate,high=ash,low={one}]"].p_adjusted == pytest.approx(0.04)
               for one in ("elm", "fir", "oak"))  # fmt: skip
    assert found["above[dimension=aggregate,high=fir,low=oak]"].publication_level == "no-claim"


def test_an_order_that_one_drop_reverses_is_judge_dependent():
    measurements = [kappa(0.72), *panel(LEVELS, dropped={"fb": {"ash": 4.4, "elm": 3.5, "oak": 3.9}})]
    pair = above("elm", "oak", measurements)
    assert pair.stability_status == "judge-dependent"
    assert pair.publication_level == "no-claim"
    assert (pair.stability.state, pair.stability.families) == ("reversed-without", ("fb",))
    assert "it turns without judge family fb" in pair.reasons[1]
    assert first("ash", measurements).stability_status == "stable"


def test_an_order_that_one_family_alone_makes_visible_rests_on_it():
    """The sign survives every drop, and the significance does not."""
    found = [kappa(0.72), *panel(LEVELS)]
    weak = {"p": 0.2, "p_adjusted": 0.4}
    found = [replace(one, detail=weak) if one.labels.get("dropped") == "fb" and "high" in one.labels else one
             for one in found]  # fmt: skip
    pair = above("ash", "oak", found)
    assert (pair.stability_status, pair.publication_level) == ("judge-dependent", "no-claim")
    assert (pair.stability.state, pair.stability.families) == ("rests-on", ("fb",))
    assert "needs judge family fb to be seen" in pair.reasons[1]
    assert pair.pair_state == "not-resolved", "ordered means published and stable"


def test_a_first_place_that_one_drop_takes_away_is_judge_dependent():
    measurements = [kappa(0.72), *panel(LEVELS, dropped={"fc": {"ash": 3.0, "elm": 4.0, "oak": 3.9}})]
    verdict = first("ash", measurements)
    assert verdict.stability_status == "judge-dependent"
    assert "it turns without judge family fc" in verdict.reasons[1]


def test_no_reason_of_an_unsupported_pair_shows_its_gap():
    measurements = [kappa(0.72), *panel(LEVELS, dropped={"fb": {"ash": 4.4, "elm": 3.5, "oak": 3.9}})]
    for verdict in verdicts(measurements).values():
        shown = any("points" in reason for reason in verdict.reasons)
        assert not shown or verdict.publication_level != "no-claim"


def test_a_pair_that_cannot_be_tested_has_no_order_and_no_tie():
    measurements = [kappa(0.72), *panel(LEVELS, never=frozenset({frozenset(("ash", "oak"))}))]
    pair = above("ash", "oak", measurements)
    assert (pair.publication_level, pair.stability_status) == ("no-claim", "not tested")
    assert pair.pair_state == "cannot-be-tested"
    assert "ash and oak: cannot be tested (0 common clusters" in pair.reasons[1]
    leader = first("ash", measurements)
    assert (leader.publication_level, leader.stability_status) == ("no-claim", "not tested")
    assert "ahead of each of the one agent it was compared with" in leader.reasons[1]


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


def test_fragility_shows_what_the_sources_own_test_would_have_permitted():
    verdict = first("ash", [kappa(0.72), *panel(LEVELS, p=0.06)])
    assert verdict.publication_level == "no-claim"
    assert verdict.fragility["source: percentile bootstrap"] == "qualified"
    assert "source: sign flip" not in verdict.fragility, "it was not made"


def test_the_aggregate_and_the_dimensions_share_one_alpha():
    """Four fifths for the aggregate, unless the plan claims nothing else."""
    dims = [
        item for name in ("d1", "d2") for item in (kappa(0.7, dimension=name), *panel(LEVELS, dimension=name, p=0.9))
    ]
    measurements = [kappa(0.72), *panel(LEVELS, p=0.015), *dims]
    assert above("ash", "elm", measurements).publication_level == "no-claim"
    alone = STUDY.model_copy(update={"claims": Claims(dimensions=("aggregate",))})
    found = {v.claim.id: v for v in decide_claims(measurements, alone, "hash")}
    assert found["above[dimension=aggregate,high=ash,low=elm]"].publication_level == "qualified"


def test_dimensions_get_all_of_alpha_where_the_aggregate_is_fully_ordered():
    def dims(p):
        return [item for name in ("d1", "d2")
                for item in (kappa(0.7, dimension=name), *panel(LEVELS, dimension=name, p=p))]  # fmt: skip

    pair = "above[dimension=d1,high=ash,low=elm]"
    open_gate = verdicts([kappa(0.72), *panel(LEVELS, p=1e-4), *dims(0.008)])
    shut = verdicts([kappa(0.72), *panel(LEVELS, p={("elm", "oak"): 0.9}), *dims(0.008)])
    assert (open_gate[pair].p_adjusted, shut[pair].p_adjusted) == (pytest.approx(0.048), pytest.approx(0.048))
    assert open_gate[pair].stability_status == "stable"
    assert shut[pair].stability_status == "tie-class"


def test_scores_that_were_seen_before_the_plan_are_qualified_at_most():
    measurements = [kappa(0.72), *panel(LEVELS), *passed()]
    assert first("ash", measurements).publication_level == "headline"
    found = {v.claim.id: v for v in decide_claims(measurements, STUDY, "hash", preregistered=False)}
    verdict = found["first[agent=ash,dimension=aggregate]"]
    assert (verdict.publication_level, verdict.preregistered) == ("qualified", False)
    assert [one.id for one in verdict.conditions] == ["not-preregistered"]


def test_what_follows_from_the_verdicts_never_contradicts_them():
    found = decide_claims([kappa(0.72), *panel(LEVELS, p={("elm", "oak"): 0.9})], STUDY, "hash")
    summary = summary_of(found, LEVELS)
    assert summary.tiers["aggregate"] == (("ash",), ("elm", "oak"))
    assert summary.ranks["aggregate"] == {"ash": (1, 1), "elm": (2, 3), "oak": (2, 3)}
    assert summary.top_set["aggregate"] == ("ash",)


# --- biases -----------------------------------------------------------------------------------------------------------


def beside(kind: str, high: str, low: str, value: float | None, p: float, **detail):
    """A contrast that tests what may explain an order."""
    state = "ok" if value is not None else "undefined: every judge shares its family with one of the two"
    labels = {"dimension": "aggregate", "high": high, "low": low}
    return measured(f"{kind}.contrast", labels, value, state=state, detail={"p": p, **detail})


def test_an_order_that_rests_on_the_agents_own_makers_is_no_claim():
    own = beside("recusal", "ash", "elm", 0.1, 0.2)
    verdict = above("ash", "elm", [kappa(0.72), *panel(LEVELS), own, *passed()])
    assert (verdict.own_family, verdict.publication_level) == ("rests-on-own-family", "no-claim")
    assert verdict.stability_status == "stable", "the state of its drops"
    assert "rests on judges from the agents' own makers: without them" in " ".join(verdict.reasons)
    assert [cap.field for cap in verdict.caps if cap.level == "no-claim"] == ["own_family"]
    assert above("ash", "oak", [kappa(0.72), *panel(LEVELS), own, *passed()]).own_family == "clear"


def test_an_order_that_turns_without_the_own_makers_says_so():
    own = replace(beside("recusal", "ash", "elm", -0.4, 0.001), low=-0.6, high=-0.2, level=0.95)
    verdict = above("ash", "elm", [kappa(0.72), *panel(LEVELS), own, *passed()])
    assert verdict.own_family == "turns-without-own-family"
    assert "turns without the judges" in " ".join(verdict.reasons)


def test_without_any_disinterested_judge_an_order_is_qualified():
    own = beside("recusal", "ash", "elm", None, 1.0)
    verdict = above("ash", "elm", [kappa(0.72), *panel(LEVELS), own, *passed()])
    assert (verdict.own_family, verdict.publication_level) == ("no-disinterested-judge", "qualified")
    assert verdict.p_adjusted < 0.05 < verdict.p_adjusted_headline
    assert [one.id for one in verdict.conditions] == ["own-family"]


@pytest.mark.parametrize(("p", "gap", "level", "state"), [
    (1e-4, 1.0, "headline", "clear"),
    (0.3, 1.0, "qualified", "may-be-length"),
    (0.3, 0.01, "headline", "clear"),
])  # fmt: skip
def test_length_caps_a_headline_and_never_an_order(p, gap, level, state):
    """Lengths that are the same within 2 % explain nothing."""
    lengths = [beside("length", high, low, 0.3, p, gap=gap, slope=0.1, raw=0.4, word="clear", overlap=0.6)
               for high, low in combinations(LEVELS, 2)]  # fmt: skip
    verdict = first("ash", [kappa(0.72), *panel(LEVELS), *lengths, *passed()])
    assert (verdict.publication_level, verdict.length) == (level, state)
    if level == "qualified":
        assert "ash writes 2.0 times as much as" in verdict.condition
        assert "0.10 points a doubling would explain 0.10 of 0.40" in verdict.condition


def test_an_order_on_a_dimension_that_copies_the_impression_carries_that_in_its_sentence():
    dims = [item for name in ("d1", "d2") for item in (kappa(0.7, dimension=name), *panel(LEVELS, dimension=name))]
    same = measured("dimension.distinct", {"dimension": "d1"}, 0.99, low=0.97, high=1.01, detail={"p_holm": 0.6})
    found = verdicts([kappa(0.72), *panel(LEVELS), *dims, same, *passed()])
    verdict = found["above[dimension=d1,high=ash,low=elm]"]
    assert (verdict.distinct, verdict.publication_level) == ("not-told-apart", "qualified")
    assert "which these judges do not tell from the overall impression" in verdict.claim.statement
    assert "phi 0.99 [0.97, 1.01]" in verdict.condition
    assert found["above[dimension=aggregate,high=ash,low=elm]"].distinct == "not-applicable"


def test_an_order_that_other_judges_might_not_see_says_whose_scores_it_is_about():
    families = measured("panel.families", {}, 3.0, detail={"unknown": "", "own": {"a": [], "b": [], "c": []}})
    wide = [beside("judges", high, low, 0.3, 0.2) for high, low in combinations(LEVELS, 2)]
    analysis = [kappa(0.72), *panel(LEVELS), *passed(), families]
    verdict = first("ash", [*analysis, *wide])
    assert (verdict.other_judges, verdict.publication_level) == ("no", "headline")
    assert verdict.claim.statement.endswith("on the overall score in the scores of these 3 judges.")
    sure = [replace(one, detail={"p": 0.001}) for one in wide]
    assert first("ash", [*analysis, *sure]).claim.statement.endswith("on the overall score.")
    any_judges = STUDY.model_copy(update={"claims": Claims(judges="any")})
    found = {v.claim.id: v for v in decide_claims([*analysis, *wide], any_judges, "hash")}
    assert found["first[agent=ash,dimension=aggregate]"].publication_level == "qualified"


def test_two_agents_within_the_margin_are_said_with_their_interval():
    near = {"ash": 4.0, "elm": 3.98}
    rows = [replace(one, detail=one.detail | {"p_equivalence": 0.001, "equivalence_interval": [-0.1, 0.14]})
            if one.name == "contrast" else one for one in panel(near, p=0.8)]  # fmt: skip
    rows = [replace(one, value=0.02) if one.name == "lofo.contrast" else one for one in rows]
    found = verdicts([kappa(0.72), *rows, *passed()])
    verdict = found["within[dimension=aggregate,high=ash,low=elm]"]
    assert (verdict.publication_level, verdict.pair_state) == ("headline", "within-the-margin")
    assert verdict.claim.statement == ("ash and elm score within 0.3 of each other on the overall score "
                                       "(gap +0.020, 90 % interval −0.100 to +0.140).")  # fmt: skip
    assert found["above[dimension=aggregate,high=ash,low=elm]"].publication_level == "no-claim"


# --- the whole --------------------------------------------------------------------------------------------------------


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


def test_default_candidates_cover_every_agent_and_pair_of_every_dimension():
    claims = candidate_claims(Claims(), ["b", "a", "c"], ["d1", "d2"], [])
    assert len(claims) == 3 * (3 + 3) + 3
    assert len({claim.id for claim in claims}) == len(claims)
    assert [claim.scope for claim in claims[:4]] == ["aggregate-ranking"] * 3 + ["pairwise-contrast"]
    assert [claim.id.partition("[")[0] for claim in claims[6:9]] == ["within"] * 3
    assert claims[9].scope == "dimension-ranking"


def test_a_pair_is_claimed_in_its_measured_direction():
    claims = candidate_claims(Claims(first=False), ["a", "b"], [], [("aggregate", "b", "a")])
    assert [claim.subjects for claim in claims] == [("b", "a")] * 2


def test_the_plan_may_narrow_the_list():
    claims = candidate_claims(Claims(pairs=False, dimensions=("d1",)), ["a", "b"], ["d1", "d2"], [])
    assert {(claim.dimension, len(claim.subjects)) for claim in claims} == {("d1", 1)}


def test_a_withheld_claim_never_states_its_order():
    claims = candidate_claims(Claims(), ["zeta", "alpha"], [], [("aggregate", "zeta", "alpha")])
    pair = next(claim for claim in claims if len(claim.subjects) == 2)
    assert "above" in pair.statement
    assert suppressed_phrase(pair) == "Any ranking of alpha and zeta on the overall score."


AGREEMENT = ("publish", "methodology", "halt")
STABILITY = ("stable", "tie-class", "judge-dependent")
ADVERSARIAL = ("passed", "construct-sensitive", "not tested", "contaminated")
GATE_LEVELS = ("headline", "qualified", "no-claim")


@pytest.mark.parametrize("kappa", [None, math.nan])
def test_undefined_agreement_halts(kappa):
    assert agreement_status(kappa) == "halt"


def test_gates_forgive_binary_fractions():
    """(0.3 + 0.4 + 0.5) / 3 < 0.4 in binary floating point."""
    assert (0.3 + 0.4 + 0.5) / 3 < 0.4
    assert agreement_status((0.3 + 0.4 + 0.5) / 3) == "publish"
    assert agreement_status(0.4 - 1e-8) == "methodology"


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_more_agreement_never_has_a_worse_status(one, other):
    low, high = sorted((one, other))
    assert AGREEMENT.index(agreement_status(high)) <= AGREEMENT.index(agreement_status(low))


@given(st.floats(-4, 4), st.booleans())
def test_cell_b_has_an_outcome_for_every_difference(delta, significant):
    outcome = cell_b_outcome(delta, significant)
    if outcome == "verbosity-bias":
        assert delta < -0.5
        assert significant
    if outcome == "terse-favoured":
        assert delta > 0.3
    if outcome == "substance":
        assert abs(delta) <= 0.3 + 1e-9


@pytest.mark.parametrize(
    ("delta", "outcome"),
    [(-0.2, "inconclusive"), (-0.1, "substance"), (-0.25, "verbosity-bias"), (0.15, "terse-favoured")],
)
def test_the_cut_offs_of_cell_b_can_be_a_plans(delta, outcome):
    assert cell_b_outcome(delta, True, substance=0.1, verbosity=0.2) == outcome


def test_cell_b_without_scores_has_no_outcome():
    with pytest.raises(NotMeasurableError, match="cell B is undefined"):
        cell_b_outcome(math.nan, True)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (("publsh", "stable", "passed"), "unknown agreement status 'publsh'. Did you mean 'publish'"),
        (("publish", "steady", "passed"), "unknown stability status"),
        (("publish", "stable", "untested"), "unknown adversarial status"),
    ],
)
def test_an_unknown_status_is_an_error(status, told):
    with pytest.raises(UnknownNameError, match=told):
        publication_level(*status, asserts_order=True)


@given(
    st.sampled_from(AGREEMENT), st.sampled_from(STABILITY), st.sampled_from(ADVERSARIAL), st.booleans(), st.booleans()
)
def test_a_worse_field_never_gives_a_better_level(agreement, stability, adversarial, order, tested):
    here = GATE_LEVELS.index(
        publication_level(agreement, stability, adversarial, asserts_order=order, significance_tested=tested)
    )
    for scale, position in ((AGREEMENT, 0), (STABILITY, 1)):
        fields = [agreement, stability, adversarial]
        for worse in scale[scale.index(fields[position]) + 1 :]:
            fields[position] = worse
            level = publication_level(*fields, asserts_order=order, significance_tested=tested)
            assert GATE_LEVELS.index(level) >= here
    assert here == 0 or (agreement, stability, adversarial, tested) != ("publish", "stable", "passed", True)


def test_all_green_is_a_headline_and_untested_significance_is_not():
    assert publication_level("publish", "stable", "passed", asserts_order=True) == "headline"
    level = publication_level("publish", "stable", "passed", asserts_order=True, significance_tested=False)
    assert level == "qualified"


def test_contamination_withholds_whatever_else_is_green():
    assert publication_level("publish", "stable", "contaminated", asserts_order=False) == "no-claim"
