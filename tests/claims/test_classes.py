"""Stability: evidence first, then drops, then the outside judge; classes of agents and who belongs to them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis import kappa, panel, passed, probe
from hypothesis import given
from hypothesis import strategies as st

from assaymark.claims import decide_claims, kind_of
from assaymark.claims.candidates import pair_claim
from assaymark.claims.evidence import index
from assaymark.claims.pairs import _components
from assaymark.claims.rules import Rules
from assaymark.claims.standing import standing_of
from assaymark.protocol import Claims, parse_study

STUDY = parse_study(
    'name = "s"\nseed = 1\n[[judges]]\nname = "a"\nmodel = "reference/a"\nfamily = "fa"\n'
    '[[judges]]\nname = "b"\nmodel = "reference/b"\nfamily = "fb"\n'
)
LEVELS = {"ash": 4.4, "elm": 4.0, "oak": 3.9, "yew": 3.8}
TURNED = {"fb": {"ash": 4.4, "elm": 3.7, "oak": 3.9, "yew": 3.8}}


def verdicts(*measurements, study=STUDY):
    return {v.claim.id: v for v in decide_claims([kappa(0.72), *measurements, *passed()], study, "hash")}


def above(found, high, low):
    return found[f"above[dimension=aggregate,high={high},low={low}]"]


def test_the_outside_judge_that_sees_nothing_makes_a_tie_class():
    found = verdicts(*panel(LEVELS, dropped=TURNED), probe("elm", "oak", 0.04, (-0.01, 0.09)))
    verdict = above(found, "elm", "oak")
    assert (verdict.stability_status, verdict.publication_level) == ("tie-class", "no-claim")
    assert (
        "The outside judge deepseek sees +0.040 (−0.010 to +0.090) between elm and oak, which contains 0"
        in (verdict.reasons[1])
    )
    assert "probe.contrast[dimension=aggregate,high=elm,low=oak]" in verdict.measurements


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ((0.0, 0.1), "tie-class"),
        ((-0.1, 0.0), "tie-class"),
        ((0.001, 0.1), "judge-dependent"),
        ((-0.1, -0.001), "judge-dependent"),
        (None, "judge-dependent"),
    ],
)
def test_whether_the_interval_of_the_probe_contains_zero(ends, status):
    found = verdicts(*panel(LEVELS, dropped=TURNED), probe("elm", "oak", 0.05, ends))
    assert above(found, "elm", "oak").stability_status == status


def test_a_probe_that_excludes_zero_prints_its_sign():
    found = verdicts(*panel(LEVELS, dropped=TURNED), probe("elm", "oak", -0.3, (-0.5, -0.1)))
    assert "sees −0.300 (−0.500 to −0.100)" in above(found, "elm", "oak").reasons[1]


def test_a_probe_is_read_in_the_direction_of_the_claim():
    found = verdicts(*panel(LEVELS, dropped=TURNED), probe("oak", "elm", -0.3, (-0.5, -0.1)))
    assert "sees +0.300 (+0.100 to +0.500) between elm and oak" in above(found, "elm", "oak").reasons[1]


def test_without_an_outside_judge_it_stays_with_the_judges():
    found = verdicts(*panel(LEVELS, dropped=TURNED))
    assert above(found, "elm", "oak").stability_status == "judge-dependent"
    assert "no outside judge was asked" in above(found, "elm", "oak").reasons[1]


def test_an_unprobed_pair_inherits_the_class_of_a_probed_one():
    """elm falls below oak and yew without one family; only elm and oak were put to the outside judge."""
    found = verdicts(*panel(LEVELS, dropped=TURNED), probe("elm", "oak", 0.04, (-0.01, 0.09)))
    inherited = above(found, "elm", "yew")
    assert inherited.stability_status == "tie-class"
    assert (
        "was not put to the outside judge: it stands in one class (elm, oak and yew) with elm and oak"
        in (inherited.reasons[1])
    )
    assert "probe.contrast[dimension=aggregate,high=elm,low=oak]" in inherited.measurements


def test_a_pair_inherits_only_within_its_own_component():
    """Two separate reversals: the probe of one says nothing about the other."""
    turned = {"fb": {"ash": 3.95, "elm": 4.0, "oak": 3.75, "yew": 3.8}}
    found = verdicts(*panel(LEVELS, dropped=turned), probe("oak", "yew", 0.04, (-0.01, 0.09)))
    assert above(found, "oak", "yew").stability_status == "tie-class"
    assert above(found, "ash", "elm").stability_status == "judge-dependent"


def test_a_pair_that_the_probe_orders_links_nothing():
    """elm over oak is opposed by the probe, so elm over yew has nobody to inherit from."""
    turned = {"fb": {"ash": 4.4, "elm": 3.7, "oak": 3.9, "yew": 3.75}}
    found = verdicts(*panel(LEVELS, dropped=turned), probe("elm", "oak", 0.4, (0.2, 0.6)))
    assert above(found, "elm", "oak").stability_status == "judge-dependent"
    assert above(found, "elm", "yew").stability_status == "judge-dependent"


def test_evidence_comes_first():
    """A pair that is not significant is a tie class although no drop moves it, and although the probe orders it."""
    found = verdicts(*panel(LEVELS, p={("elm", "oak"): 0.6}), probe("elm", "oak", 0.4, (0.2, 0.6)))
    verdict = above(found, "elm", "oak")
    assert verdict.stability_status == "tie-class"
    assert "is not significant" in verdict.reasons[1]
    assert "which excludes 0" in verdict.reasons[1]


def test_a_first_place_that_a_drop_takes_is_decided_by_the_probe():
    turned = {"fc": {"ash": 3.95, "elm": 4.0, "oak": 3.9, "yew": 3.8}}
    leader = "first[agent=ash,dimension=aggregate]"
    assert verdicts(*panel(LEVELS, dropped=turned))[leader].stability_status == "judge-dependent"
    tied = verdicts(*panel(LEVELS, dropped=turned), probe("ash", "elm", 0.1, (-0.1, 0.3)))[leader]
    assert tied.stability_status == "tie-class"
    assert "probe.contrast[dimension=aggregate,high=ash,low=elm]" in tied.measurements
    opposed = verdicts(*panel(LEVELS, dropped=turned), probe("ash", "elm", 0.3, (0.1, 0.5)))[leader]
    assert opposed.stability_status == "judge-dependent"


def test_a_first_place_needs_an_answer_about_every_agent_that_comes_before_it():
    turned = {"fc": {"ash": 3.85, "elm": 4.0, "oak": 3.9, "yew": 3.8}}
    one = [probe("ash", "elm", 0.1, (-0.1, 0.3))]
    found = verdicts(*panel(LEVELS, dropped=turned), *one)["first[agent=ash,dimension=aggregate]"]
    assert found.stability_status == "tie-class", "ash and oak inherit from ash and elm"
    mixed = [*one, probe("ash", "oak", 0.3, (0.1, 0.5))]
    found = verdicts(*panel(LEVELS, dropped=turned), *mixed)["first[agent=ash,dimension=aggregate]"]
    assert found.stability_status == "judge-dependent"


# --- rankings -------------------------------------------------------------------------------------------------------


def ranking(*measurements):
    return verdicts(*measurements)["ranking[dimension=aggregate]"]


def test_a_whole_order_that_stands():
    verdict = ranking(*panel(LEVELS))
    assert verdict.claim.subjects == ("ash", "elm", "oak", "yew")
    assert (verdict.stability_status, verdict.publication_level) == ("stable", "headline")
    assert (
        verdict.claim.statement == "The order of the four agents on the panel's aggregate score is ash, elm, oak, yew."
    )


def test_a_whole_order_needs_every_step():
    verdict = ranking(*panel(LEVELS, p={("elm", "oak"): 0.6}))
    assert (verdict.stability_status, verdict.publication_level) == ("tie-class", "no-claim")
    assert "1 of the three steps between neighbours is not significant after Holm: elm over oak" in verdict.reasons[1]


def test_a_whole_order_does_not_rest_on_distant_pairs():
    assert ranking(*panel(LEVELS, p={("ash", "yew"): 0.6})).stability_status == "stable"


def test_a_whole_order_that_a_drop_turns():
    turned = panel(LEVELS, dropped={"fb": {**LEVELS, "oak": 3.75}})
    assert ranking(*turned).stability_status == "judge-dependent"
    assert "without fb yew comes before oak" in ranking(*turned).reasons[1]
    assert ranking(*turned, probe("oak", "yew", 0.0, (-0.1, 0.1))).stability_status == "tie-class"
    assert ranking(*turned, probe("oak", "yew", 0.2, (0.1, 0.3))).stability_status == "judge-dependent"


def test_neighbours_that_never_met_have_no_order():
    verdict = ranking(*panel(LEVELS, never=frozenset({frozenset(("elm", "oak"))})))
    assert verdict.publication_level == "no-claim"


def test_an_agent_without_a_level_has_no_place_in_the_order():
    measurements = [
        item
        for item in panel(LEVELS, never=frozenset(frozenset(("yew", other)) for other in ("ash", "elm", "oak")))
        if item.name != "score.effect" or item.labels["agent"] != "yew"
    ]
    gone = next(item for item in panel(LEVELS) if item.name == "score.effect" and item.labels["agent"] == "yew")
    found = verdicts(*measurements, replace(gone, value=None, state="disconnected: shares no cycle"))
    assert found["ranking[dimension=aggregate]"].claim.subjects == ("ash", "elm", "oak")
    assert "the three agents" in found["ranking[dimension=aggregate]"].claim.statement


# --- classes --------------------------------------------------------------------------------------------------------


def ties(*measurements):
    return [v for v in verdicts(*measurements).values() if kind_of(v.claim) == "tie"]


def test_pairs_without_an_order_form_a_class():
    weak = dict.fromkeys([("elm", "oak"), ("elm", "yew"), ("oak", "yew")], 0.6)
    (verdict,) = ties(*panel(LEVELS, p=weak))
    assert verdict.claim.id == "tie[agents=elm+oak+yew,dimension=aggregate]"
    assert verdict.claim.statement == (
        "elm, oak and yew form one class on the panel's aggregate score: no order among them is established."
    )
    assert not verdict.claim.asserts_order
    assert (verdict.stability_status, verdict.publication_level) == ("tie-class", "qualified")
    assert "stability" in verdict.binding
    assert "no order inside it" in verdict.condition


def test_a_class_names_the_orders_that_stand_within_it():
    """elm is not told from oak, nor oak from yew, but elm stands above yew."""
    weak = {("elm", "oak"): 0.6, ("oak", "yew"): 0.6}
    (verdict,) = ties(*panel(LEVELS, p=weak))
    assert verdict.claim.statement.endswith("no order among them is established, except elm above yew.")
    assert verdict.fragility["kappa cut-offs 0.5 and 0.25"] == "qualified"


def test_a_leader_is_in_no_class():
    """Its first place stands in the family of its own contrasts, although no pair reaches the level of all pairs."""
    levels = {"ash": 4.4, "elm": 4.0, "oak": 3.9, "yew": 3.8, "fir": 3.7}
    p = {(high, low): 0.9 for high in levels for low in levels}
    p |= {("ash", low): 0.006 for low in levels if low != "ash"}
    found = verdicts(*panel(levels, p=p))
    assert found["first[agent=ash,dimension=aggregate]"].publication_level == "headline"
    assert above(found, "ash", "fir").stability_status == "tie-class"
    (tie,) = [v for v in found.values() if kind_of(v.claim) == "tie"]
    assert "ash" not in tie.claim.subjects


def test_an_order_that_depends_on_the_judges_is_not_established():
    (verdict,) = ties(*panel(LEVELS, dropped=TURNED))
    assert verdict.claim.subjects == ("elm", "oak", "yew")
    assert "2 depending on the judges" in verdict.reasons[1]


def test_established_orders_leave_no_class():
    assert ties(*panel(LEVELS)) == []


def test_two_classes_are_two_claims():
    found = ties(*panel(LEVELS, p={("ash", "elm"): 0.6, ("oak", "yew"): 0.6}))
    assert [v.claim.subjects for v in found] == [("ash", "elm"), ("oak", "yew")]


def test_agents_that_never_met_form_no_class():
    apart = frozenset(frozenset(pair) for pair in [("ash", "elm"), ("ash", "oak"), ("elm", "oak")])
    assert ties(*panel({"ash": 4.4, "elm": 4.0, "oak": 3.9}, never=apart)) == []


def test_names_with_a_plus_keep_class_ids_apart():
    found = ties(*panel({"a+b": 4.0, "c": 3.9}, p=0.9))
    assert found[0].claim.id == "tie[agents=a%2Bb+c,dimension=aggregate]"


def test_under_a_rule_with_another_class_the_statement_is_not_true():
    """The bootstrap resolves what cluster t does not, and then there is no class to speak of."""
    (verdict,) = ties(*panel({"ash": 4.4, "elm": 4.0}, p=0.03))
    assert verdict.publication_level == "qualified"
    assert verdict.fragility["percentile bootstrap"] == "no-claim"


NAMES = "abcdefg"
LINKS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] != pair[1]))


@given(LINKS)
def test_components_are_what_can_be_reached(links):
    reach = {name: {name} for name in NAMES}
    for _ in NAMES:
        for one, other in links:
            reach[one] |= reach[other]
            reach[other] |= reach[one]
    expected = {frozenset(found) for found in reach.values() if len(found) > 1}
    found = _components(links)
    assert {frozenset(group) for group in found} == expected
    assert [min(group) for group in found] == sorted(min(group) for group in found)


@given(
    st.sampled_from([1e-4, 0.2]),
    st.booleans(),
    st.sampled_from([None, (-0.1, 0.1), (0.1, 0.3), (-0.3, -0.1)]),
)
def test_a_pair_stands_only_by_evidence_and_every_drop(p, turned, ends):
    measurements = panel({"a": 4.0, "b": 3.0}, p=p, dropped={"fa": {"a": 2.0, "b": 3.0}} if turned else None)
    measurements += [probe("a", "b", 0.1, ends)] if ends else []
    found = standing_of(pair_claim("aggregate", "a", "b"), index(measurements), Rules(0.4, 0.2, 0.05))
    if p > 0.05:
        assert found.status == "tie-class"
    elif not turned:
        assert found.status == "stable"
    else:
        assert found.status == ("tie-class" if ends == (-0.1, 0.1) else "judge-dependent")


def test_the_list_of_claims_keeps_its_order():
    dims = [kappa(0.7, dimension="d1"), *panel(LEVELS, dimension="d1", p=0.9)]
    found = list(verdicts(*panel(LEVELS), *dims))
    kinds = [name.partition("[")[0] for name in found]
    assert kinds == [
        *["first"] * 4,
        *["above"] * 6,
        "ranking",
        *["first"] * 4,
        *["above"] * 6,
        "ranking",
        "tie",
        *["cell"] * 2,
    ]


@pytest.mark.parametrize(
    ("wanted", "gone"),
    [({"rankings": False}, {"ranking", "tie"}), ({"cells": False}, {"cell"}), ({"first": False}, {"first"})],
)
def test_the_plan_chooses_the_kinds(wanted, gone):
    study = STUDY.model_copy(update={"claims": Claims(**wanted)})
    weak = panel(LEVELS, p=0.9)
    kinds = {name.partition("[")[0] for name in verdicts(*weak, study=study)}
    assert kinds == {"first", "above", "ranking", "tie", "cell"} - gone
