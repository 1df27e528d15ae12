"""What may be said of a season: planted situations, each with what it permits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from season_measured import JUDGES, gate, measured, probe

from assaymark.claims import (
    CONSTANT,
    SINGLE,
    SeasonGates,
    SeasonVerdict,
    SeasonVerdicts,
    catalogue,
    decide_season,
    languages,
)
from assaymark.claims import said as message
from assaymark.errors import NotMeasurableError
from assaymark.records import Measurement, StabilityFinding

CLEAR = {"alder": (80, 82, 78), "birch": (60, 62, 58), "cedar": (40, 41, 39)}
KEPT = [gate(judge, []) for judge in JUDGES]


def decided(measurements: list[Measurement], **gates: object) -> SeasonVerdicts:
    return decide_season(measurements, SeasonGates(**gates), "plan")  # type: ignore[arg-type]


def of(found: SeasonVerdicts, kind: str, *agents: str) -> SeasonVerdict:
    (one,) = [
        verdict
        for verdict in found.verdicts
        if verdict.kind == kind and (not agents or verdict.verdict.claim.subjects == agents)
    ]
    return one


def levels(found: SeasonVerdicts, kind: str) -> set[str]:
    return {one.verdict.publication_level for one in found.verdicts if one.kind == kind}


def said(found: SeasonVerdicts, level: str) -> list[str]:
    return [one.verdict.claim.statement for one in found.verdicts if one.verdict.publication_level == level]


def test_a_clear_order_with_kept_datasheets_is_a_headline():
    found = decided([*measured(CLEAR), *KEPT], on_failure="no-claim")
    assert found.tiers == (("alder",), ("birch",), ("cedar",))
    assert said(found, "headline")[0] == "alder ranks first of the three agents in the scores of these 3 judges."
    assert "birch scores above cedar in the scores of these 3 judges." in said(found, "headline")
    assert [(one.agent, one.first, one.last, one.shown) for one in found.places] == [
        ("alder", 1, 1, True),
        ("birch", 2, 2, True),
        ("cedar", 3, 3, True),
    ]
    assert {one.level for one in found.places} == {"headline"}
    assert {one.kind for one in found.verdicts if one.verdict.publication_level == "no-claim"} == {"first", "within"}


def test_an_order_has_every_field_of_format_2():
    found = decided([*measured(CLEAR), *KEPT], on_failure="no-claim")
    pair = of(found, "above", "alder", "birch").verdict
    assert pair.claim.id == "above[dimension=aggregate,high=alder,low=birch]"
    assert of(found, "first", "alder").verdict.claim.id == "first[agent=alder,dimension=aggregate]"
    assert of(found, "within", "alder", "birch").verdict.claim.id == "within[dimension=aggregate,high=alder,low=birch]"
    assert (pair.claim.scope, pair.claim.dimension, pair.claim.asserts_order) == (
        "pairwise-contrast",
        "aggregate",
        True,
    )
    assert (pair.pair_state, pair.stability, pair.caps) == ("ordered", StabilityFinding(state="stable"), ())
    assert (pair.p, pair.p_adjusted) == (0.001, pytest.approx(0.003))
    assert (pair.own_family, pair.length, pair.distinct, pair.other_judges) == (
        "clear", "not-tested", "not-applicable", "not-tested",
    )  # fmt: skip
    assert pair.fragility == {"kappa cut-offs 0.5 and 0.25": "headline"}
    within = of(found, "within", "alder", "birch").verdict
    assert set(within.fragility) == {"kappa cut-offs 0.5 and 0.25", "margin 5", "margin 10"}


def test_fragility_shows_where_another_kappa_would_decide_otherwise():
    item = replace(next(one for one in measured(CLEAR) if one.name == "season.kappa"), value=0.45, low=0.1, high=0.6)
    others = [one for one in measured(CLEAR) if one.name != "season.kappa"]
    pair = of(decided([*others, item, *KEPT], on_failure="no-claim"), "above", "alder", "birch").verdict
    assert pair.publication_level == "headline"
    assert pair.fragility == {"kappa cut-offs 0.5 and 0.25": "qualified", "lower bound of kappa": "no-claim"}


def test_judges_that_were_not_tested_qualify_every_order():
    found = decided(measured(CLEAR))
    pair = of(found, "above", "alder", "birch").verdict
    assert (pair.publication_level, pair.adversarial_status) == ("qualified", "not tested")
    assert pair.condition == "The judges were not tested: the plan demands no datasheets."
    assert [one.id for one in pair.conditions] == ["controls"]
    assert pair.binding == ("adversarial",)
    assert said(found, "headline") == []
    assert found.place("alder").shown


def test_totals_within_the_noise_floor_are_not_resolved_and_show_no_total():
    near = {"alder": (80, 82, 78), "birch": (61, 63, 59), "cedar": (60, 62, 58)}
    found = decided(measured(near, p=1e-9))
    assert found.tiers == (("alder",), ("birch", "cedar"))
    pair = of(found, "above", "birch", "cedar").verdict
    assert (pair.stability_status, pair.pair_state) == ("tie-class", "not-resolved")
    assert pair.reasons[0] == "The totals of birch and cedar differ by no more than their noise floor of 3.0 points."
    assert (found.place("birch").first, found.place("birch").last) == (2, 3)
    assert not found.place("birch").shown
    assert not found.place("cedar").shown
    assert catalogue("en").render(found.place("cedar").why) == "cannot be ranked"


def test_a_pair_within_noise_keeps_its_place_in_the_family():
    """At .02 each, two pairs are resolved by Shaffer only where the third is too (multipliers 3, 1, 1)."""
    noisy = {("birch", "cedar"): {"floor": 30.0}}
    assert decided(measured(CLEAR, p=0.016, pairs=noisy)).tiers == (("alder",), ("birch", "cedar"))
    assert decided(measured(CLEAR, p=0.018, pairs=noisy)).tiers == (("alder", "birch", "cedar"),)


def test_a_noisy_agent_shares_the_tier_of_both_of_its_neighbours():
    wide = {pair: {"floor": 30.0} for pair in (("alder", "birch"), ("birch", "cedar"))}
    found = decided(measured(CLEAR, pairs=wide))
    assert found.tiers == (("alder", "birch", "cedar"),)
    assert of(found, "above", "alder", "cedar").verdict.publication_level == "qualified"
    assert [(one.first, one.last) for one in found.places] == [(1, 2), (1, 3), (2, 3)]


def test_an_order_that_is_not_resolved_over_periods_is_not_supported():
    found = decided(measured(CLEAR, pairs={("alder", "birch"): {"p": 0.2}}))
    assert found.tiers == (("alder", "birch"), ("cedar",))
    pair = of(found, "above", "alder", "birch")
    assert pair.verdict.publication_level == "no-claim"
    assert pair.verdict.reasons[0] == (
        "The difference over periods is not resolved (p = 0.200 adjusted, 0.050 needed)."
    )
    assert pair.withheld is not None
    assert catalogue("en").render(pair.withheld) == "Any ranking of alder and birch."


def test_the_procedure_counts_every_pair():
    """Three pairs at .02 each: alone each is resolved, together none is."""
    assert decided(measured(CLEAR, p=0.02)).tiers == (("alder", "birch", "cedar"),)


def test_totals_and_periods_that_point_in_opposite_directions_make_no_order():
    found = decided(measured(CLEAR, pairs={("alder", "birch"): {"value": -4.0}}))
    assert found.tiers == (("alder", "birch"), ("cedar",))
    pair = of(found, "above", "birch", "alder")
    assert pair.verdict.publication_level == "no-claim"
    assert pair.verdict.reasons[0] == (
        "The totals of alder and birch and their scores over periods point in opposite directions."
    )


def test_an_order_that_turns_with_one_judge_is_not_supported():
    """Elm is ahead of birch on average; without the reader it is behind."""
    given = {"alder": (85, 86, 84), "birch": (60, 61, 59), "elm": (64, 90, 40), "fir": (20, 21, 19)}
    found = decided(measured(given))
    assert found.tiers == (("alder",), ("birch", "elm"), ("fir",))
    pair = of(found, "above", "elm", "birch")
    assert pair.verdict.stability_status == "judge-dependent"
    assert pair.verdict.stability == StabilityFinding(state="reversed-without", families=("reader",))
    assert pair.verdict.reasons[0].startswith("Without judge family reader the order reverses")
    assert (found.place("elm").first, found.place("elm").last) == (2, 3)
    assert (found.place("fir").first, found.place("fir").last, found.place("fir").shown) == (4, 4, True)
    assert "Gegenüber" in catalogue("de").render(message("claim.reason.against", other="elm", why="..."))


def test_an_order_that_rests_on_a_judge_is_not_supported():
    found = decided(measured(CLEAR, pairs={("birch", "cedar"): {"drop_p": 0.2}}))
    pair = of(found, "above", "birch", "cedar").verdict
    assert (pair.publication_level, pair.stability_status) == ("no-claim", "judge-dependent")
    assert pair.stability.state == "rests-on"
    assert pair.reasons[0].startswith("If any one of the judge families auditor, reader and skeptic is left out")
    assert found.tiers == (("alder",), ("birch", "cedar"))


def test_a_leader_names_the_agent_against_whom_it_is_not_stable():
    given = {f"a{at}": (80 - 10 * at,) * 3 for at in range(5)}
    found = decided(measured(given, p=1e-5, pairs={("a0", "a1"): {"drop_p": 0.5}}))
    first = of(found, "first", "a0").verdict
    assert first.publication_level == "no-claim"
    assert first.reasons[0].startswith("Against a1: If any one of the judge families")


def test_judges_that_share_a_family_with_an_agent_stand_aside():
    one = {("alder", "birch"): {"recusal": (4.0, 0.4)}}
    pair = of(decided([*measured(CLEAR, pairs=one), *KEPT], on_failure="qualified"), "above", "alder", "birch").verdict
    assert (pair.publication_level, pair.own_family) == ("no-claim", "rests-on-own-family")
    assert any("judges from the agents’ own makers" in reason for reason in pair.reasons)
    nobody = {("alder", "birch"): {"recusal": (None, 1.0)}}
    pair = of(
        decided([*measured(CLEAR, pairs=nobody), *KEPT], on_failure="qualified"), "above", "alder", "birch"
    ).verdict
    assert (pair.publication_level, pair.own_family) == ("qualified", "no-disinterested-judge")
    assert [one.id for one in pair.conditions] == ["own-family"]


def test_length_that_may_explain_an_order_is_its_condition():
    wordy = {("alder", "birch"): {"length": 0.3}}
    found = decided([*measured(CLEAR, pairs=wordy), *KEPT], on_failure="qualified")
    pair = of(found, "above", "alder", "birch")
    assert (pair.verdict.publication_level, pair.verdict.length) == ("qualified", "may-be-length")
    assert pair.verdict.condition == (
        "It may be length: alder writes 2.0 times as much as birch, "
        "and 2.0 points a doubling would explain 2.0 of 20.0."
    )
    assert "2,0-mal so viel wie birch" in catalogue("de").join(pair.condition)
    unresolved = {("alder", "birch"): {"length": 0.3, "p": 0.2}}
    pair = of(decided([*measured(CLEAR, pairs=unresolved), *KEPT], on_failure="qualified"), "above", "alder", "birch")
    assert not any("20.0" in reason for reason in pair.verdict.reasons)


def test_an_order_that_holds_for_other_judges_too_needs_no_scope():
    others = {pair: {"others": 0.001} for pair in (("alder", "birch"), ("alder", "cedar"), ("birch", "cedar"))}
    found = decided(measured(CLEAR, pairs=others))
    assert of(found, "first", "alder").verdict.claim.statement == "alder ranks first of the three agents."
    assert of(found, "above", "alder", "birch").verdict.other_judges == "yes"
    weak = {pair: {"others": 0.3} for pair in others}
    kept = decided([*measured(CLEAR, pairs=weak), *KEPT], on_failure="qualified", any_judges=True)
    assert of(kept, "above", "alder", "birch").verdict.condition == "It is not shown to hold for other judges."


def test_agents_that_are_shown_to_score_alike_are_within_the_margin():
    near = {"alder": (80, 82, 78), "birch": (61, 63, 59), "cedar": (60, 62, 58)}
    close = {("birch", "cedar"): {"near": 0.001}}
    found = decided([*measured(near, pairs=close), *KEPT], on_failure="qualified")
    within = of(found, "within", "birch", "cedar")
    assert within.verdict.publication_level == "headline"
    assert within.verdict.claim.statement == (
        "birch and cedar score within 7.5 points of each other (difference +1.0, 90 % interval +0.0 to +2.0)."
    )
    assert within.verdict.pair_state == "within-the-margin"
    assert of(found, "within", "alder", "birch").verdict.publication_level == "no-claim"
    assert within.verdict.stability_status == "stable"


def test_an_order_below_the_margin_says_so():
    close = measured({"alder": (64, 65, 66), "birch": (60, 61, 62)}, p=0.001, floor=1.0,
                     pairs={("alder", "birch"): {"near": 0.001}})  # fmt: skip
    found = decided([*close, *KEPT], on_failure="qualified")
    pair = of(found, "above", "alder", "birch").verdict
    assert pair.pair_state == "ordered-by-less-than-the-margin"
    assert [one.id for one in pair.conditions] == ["small-gap"]
    assert pair.publication_level == "headline"


@pytest.mark.parametrize(
    ("periods", "level"), [(11, "no-claim"), (12, "qualified"), (23, "qualified"), (24, "headline")]
)
def test_periods_that_follow_each_other(periods: int, level: str):
    found = decided([*measured(CLEAR, periods=periods), *KEPT], on_failure="no-claim")
    pair = of(found, "above", "alder", "birch").verdict
    assert pair.publication_level == level
    if level == "qualified":
        assert pair.condition == f"{periods} periods that follow each other count as about {periods / 2:.0f}."
        assert [one.id for one in pair.conditions] == ["consecutive"]
    if level == "no-claim":
        assert (pair.stability_status, pair.pair_state) == ("not tested", "cannot-be-tested")
        assert pair.reasons[0] == "alder and birch cannot be tested: 11 common periods, 12 are needed."
        assert {catalogue("en").render(one.why) for one in found.places} == {"too few periods"}


def test_no_order_without_repetitions():
    found = decided(measured(CLEAR, floor=None, reach=None))
    assert found.tiers == (("alder", "birch", "cedar"),)
    pair = of(found, "above", "alder", "birch").verdict
    assert pair.reasons[0].startswith(
        "Decisions and gradings were not both repeated, or every repetition is identical, so"
    )
    assert {(one.first, one.last, one.shown) for one in found.places} == {(1, 3, False)}
    assert {catalogue("en").render(one.why) for one in found.places} == {"noise unknown"}
    band = of(found, "band", "alder").verdict
    assert band.publication_level == "qualified"
    assert "it is unknown how far noise alone moves a grade" in (band.condition or "")


def test_identical_replicates_are_a_condition_of_every_ranking_of_their_agent():
    noise = Measurement(
        name="season.noise", labels={"of": "alder"}, value=None, n=2, n_of="replicates", method="",
        state="identical repetitions",
    )  # fmt: skip
    found = decided([*measured(CLEAR), *KEPT, noise], on_failure="qualified")
    pairs = {one.verdict.claim.subjects: one.verdict for one in found.verdicts if one.kind == "above"}
    assert pairs["alder", "birch"].publication_level == "qualified"
    assert "All replicates of alder are identical, so they give no noise floor." in (
        pairs["alder", "birch"].condition or ""
    )
    assert pairs["birch", "cedar"].publication_level == "headline"


def test_a_plan_that_was_locked_late_makes_no_headline():
    made = [*measured(CLEAR, excess={"alder": (0.004, 0.0001)}), *KEPT]
    found = decided(made, on_failure="no-claim", preregistered=False)
    assert said(found, "headline") == []
    for one in found.verdicts:
        supported = one.verdict.publication_level == "qualified"
        assert ("not-preregistered" in [condition.id for condition in one.verdict.conditions]) == supported
        assert not one.verdict.preregistered


@pytest.mark.parametrize(("kappa", "level"), [(0.41, "headline"), (0.398, "qualified"), (0.19, "no-claim")])
def test_agreement_gates_every_claim_on_grades(kappa: float, level: str):
    found = decided([*measured(CLEAR, kappa=kappa), *KEPT], on_failure="qualified")
    assert of(found, "band", "alder").verdict.publication_level == level
    if level == "no-claim":
        assert found.tiers == (("alder", "birch", "cedar"),)
        assert levels(found, "first") == levels(found, "above") == {"no-claim"}
        assert not any(one.shown for one in found.places)
    else:
        assert levels(found, "above") == {level}
        assert all(one.shown for one in found.places)


def test_a_kappa_is_not_rounded_over_the_cut_off_that_it_misses():
    found = decided(measured(CLEAR, kappa=0.398))
    assert "kappa 0.398; 0.40 needed" in " ".join(of(found, "band", "alder").verdict.reasons)


def test_a_kappa_is_said_with_its_interval():
    measurements = [
        replace(one, low=0.21, high=0.48, level=0.95) if one.name == "season.kappa" else one
        for one in measured(CLEAR, kappa=0.35)
    ]
    band = of(decided(measurements), "band", "alder")
    assert "kappa 0.35, interval 0.21 to 0.48; 0.40 needed" in " ".join(band.verdict.reasons)
    assert "Kappa 0,35, Intervall 0,21 bis 0,48" in catalogue("de").join(band.reasons)


@pytest.mark.parametrize(
    ("state", "words"), [(SINGLE, "not measurable with one judge"), (CONSTANT, "gave every period the same band")]
)
def test_undefined_agreement_withholds_and_is_the_first_reason(state: str, words: str):
    found = decided(measured(CLEAR, kappa=state))
    assert {one.verdict.publication_level for one in found.verdicts} == {"no-claim"}
    assert words in of(found, "above", "alder", "birch").verdict.reasons[0]


def test_one_judge_makes_no_order_and_no_band():
    alone = {name: row[:1] for name, row in CLEAR.items()}
    found = decided(measured(alone, judges=("auditor",), kappa=SINGLE))
    assert found.tiers == (("alder", "birch", "cedar"),)
    assert {one.verdict.publication_level for one in found.verdicts} == {"no-claim"}
    assert (
        of(found, "band", "alder").verdict.claim.statement == "The record of alder is graded strong by its one judge."
    )
    assert {catalogue("en").render(one.why) for one in found.places} == {"single judge"}


def test_judges_of_one_family_cannot_be_left_out():
    found = decided(measured(CLEAR, families=False))
    assert found.tiers == (("alder", "birch", "cedar"),)
    pair = of(found, "above", "alder", "birch").verdict
    assert pair.stability_status == "judge-dependent"
    assert pair.reasons[0].startswith("All judges are of one family")


def test_contested_bands_are_withheld_with_their_numbers():
    found = decided(measured({"alder": (57, 81, 83), "birch": (40, 41, 39)}))
    band = of(found, "band", "alder").verdict
    assert band.publication_level == "no-claim"
    assert band.reasons[0] == (
        "The judges disagree on the band: the lowest gives 57.0 points (mixed), the highest 83.0 (strong)."
    )
    assert of(found, "band", "birch").verdict.publication_level == "qualified"


def test_a_band_that_efficiency_makes_is_not_the_judges():
    found = decided(measured({"alder": (66, 65, 64), "birch": (40, 41, 39)}, efficiency={"alder": 100, "birch": 40}))
    band = of(found, "band", "alder").verdict
    assert band.publication_level == "no-claim"
    assert "efficiency moves the total into another band (strong)" in band.reasons[0]


def test_a_band_within_noise_of_its_boundary_is_no_headline():
    found = decided([*measured({"alder": (68, 69, 70), "birch": (80, 81, 82)}), *KEPT], on_failure="qualified")
    band = of(found, "band", "alder").verdict
    assert band.publication_level == "qualified"
    assert band.condition == (
        "Noise alone may move a grade by 2.0 points, and the nearest boundary of a band is 1.5 away."
    )
    assert of(found, "band", "birch").verdict.publication_level == "headline"


def test_a_missing_outcome_or_time_has_to_be_said_only_where_others_have_one():
    some = decided([*measured(CLEAR, unresolved=["cedar"], untimed=["alder"]), *KEPT], on_failure="qualified")
    lowest = of(some, "above", "birch", "cedar").verdict
    assert lowest.publication_level == "qualified"
    assert lowest.condition == ("The outcome of cedar could not be resolved; its share went to reasoning and evidence.")
    assert "No time was measured for alder" in (of(some, "above", "alder", "birch").verdict.condition or "")
    assert catalogue("en").render(some.place("cedar").why) == "ranked, without an outcome"
    everybody = decided([*measured(CLEAR, unresolved=list(CLEAR), untimed=list(CLEAR)), *KEPT], on_failure="qualified")
    assert levels(everybody, "above") == {"headline"}
    assert "No outcome could be resolved" in " ".join(of(everybody, "above", "alder", "birch").verdict.reasons)


def test_one_agent_has_nothing_to_be_compared_with():
    found = decided(measured({"alder": (80, 82, 78)}))
    assert [one.kind for one in found.verdicts] == ["band"]
    place = found.place("alder")
    assert (place.first, place.last, place.shown, place.level) == (1, 1, False, "no-claim")
    assert catalogue("en").render(place.why) == "no other agent"


def test_an_agent_without_a_usable_grade_has_no_rank_and_takes_none():
    found = decided(measured({**CLEAR, "elm": (None, None, None)}))
    assert said(found, "qualified")[0].startswith("alder ranks first of the three agents")
    assert found.places[-1].agent == "elm"
    assert found.places[-1].first is None
    assert catalogue("en").render(found.places[-1].why) == "not graded"
    assert not [one for one in found.verdicts if "elm" in one.verdict.claim.subjects]


def test_a_grade_that_a_judge_did_not_give_has_to_be_said():
    found = decided([*measured({**CLEAR, "cedar": (40, 41, None)}), *KEPT], on_failure="qualified")
    assert of(found, "above", "birch", "cedar").verdict.condition == "Some judges gave no usable grade for cedar."
    assert of(found, "above", "alder", "birch").verdict.publication_level == "headline"
    band = of(found, "band", "cedar").verdict
    assert band.claim.statement == "The record of cedar is graded weak by both judges."
    assert band.publication_level == "qualified"


def test_texts_that_address_the_judge_have_to_be_said_and_limit_nothing():
    one = Measurement(
        name="agent.flagged_texts", labels={"agent": "cedar"}, value=0.1, n=40, n_of="decisions", method="",
        detail={"count": 4},
    )  # fmt: skip
    none = replace(one, labels={"agent": "alder"}, value=0.0, detail={"count": 0})
    found = decided([*measured(CLEAR), *KEPT, one, none], on_failure="qualified")
    words = "4 of 40 texts of cedar address the judge or imitate its prompt; they were scored like any other."
    for name in (("above", "birch", "cedar"), ("first", "alder"), ("band", "cedar")):
        verdict = of(found, *name).verdict
        assert words in (verdict.condition or "")
        assert one.id in verdict.measurements
    assert of(found, "above", "birch", "cedar").verdict.publication_level == "headline"
    assert of(found, "above", "alder", "birch").verdict.condition is None


@pytest.mark.parametrize("most", ["qualified", "no-claim"])
def test_datasheets_that_fail_cap_every_claim(most: str):
    sheets = [gate("auditor", []), gate("reader", ["dark_current 0.40, at most 0.05"]), gate("skeptic", None)]
    found = decided([*measured(CLEAR), *sheets], on_failure=most)
    assert levels(found, "band") == {most}
    reasons = " ".join(of(found, "band", "alder").verdict.reasons)
    assert "reader failed the limits of the plan for its datasheet (dark_current 0.40, at most 0.05)" in reasons
    assert "skeptic has no datasheet" in reasons
    if most == "no-claim":
        assert found.tiers == (("alder", "birch", "cedar"),)
        assert {catalogue("en").render(one.why) for one in found.places} == {"datasheet limits failed"}
    else:
        pair = of(found, "above", "alder", "birch").verdict
        assert pair.adversarial_status == "construct-sensitive"
        assert "Not every judge passed the limits" in (pair.condition or "")


def test_datasheets_that_are_demanded_and_absent_are_not_passed():
    found = decided(measured(CLEAR), on_failure="qualified")
    assert of(found, "above", "alder", "birch").verdict.adversarial_status == "not tested"


def test_a_judge_that_can_tell_authors_makes_every_claim_construct_sensitive():
    blind = [*measured(CLEAR), *KEPT, probe("auditor", "not above chance")]
    assert levels(decided(blind, on_failure="qualified"), "above") == {"headline"}
    seen = decided([*blind[:-1], probe("auditor", "above chance")], on_failure="qualified")
    pair = of(seen, "above", "alder", "birch").verdict
    assert (pair.publication_level, pair.adversarial_status) == ("qualified", "construct-sensitive")
    assert pair.condition is not None
    assert pair.condition.startswith("Blinding is incomplete: auditor names the author")


def test_returns_are_compared_with_equal_weight_after_holm_and_never_a_headline():
    found = decided(measured(CLEAR, excess={"alder": (0.004, 0.001), "birch": (0.002, 0.03), "cedar": (-0.004, 0.001)}))
    one = of(found, "beats", "alder")
    assert one.verdict.publication_level == "qualified"
    assert one.verdict.condition == "It is one path of 61 days and does not extend to other days."
    assert (one.verdict.agreement_status, one.verdict.adversarial_status) == ("not judged", "not judged")
    rest = of(found, "beats", "birch", "cedar")
    assert rest.verdict.publication_level == "no-claim"
    assert rest.withheld is not None
    assert catalogue("en").render(rest.withheld) == "That any other agent invests better than equal weight."


def test_of_records_that_were_written_down_late_no_claim_is_a_headline_and_each_says_so():
    late = message("note.records.replayed", n=203, of=210)
    words = "203 of 210 decisions were written down more than a day after their steps."
    made = [*measured(CLEAR, excess={"alder": (0.004, 0.0001)}), *KEPT]
    assert said(decided(made, on_failure="no-claim"), "headline")
    found = decided(made, on_failure="no-claim", hindsight=(late,))
    assert said(found, "headline") == []
    assert {one.verdict.claim.statement for one in found.verdicts if one.kind == "beats"} & {*said(found, "qualified")}
    for one in found.verdicts:
        stands = one.verdict.publication_level == "qualified"
        assert (words in (one.verdict.condition or "")) == stands
    assert {one.level for one in found.places} == {"qualified"}


def test_returns_do_not_depend_on_the_grades():
    found = decided(measured(CLEAR, kappa=SINGLE, excess={"alder": (0.004, 0.001), "birch": (0.0001, 0.9)}))
    assert of(found, "beats", "alder").verdict.publication_level == "qualified"


def test_orders_and_returns_share_the_error_rate():
    """At p = .03 an order is supported alone, and no longer where returns are tested too."""
    two = {"alder": (80, 82, 78), "birch": (60, 62, 58)}
    assert decided(measured(two, p=0.03)).tiers == (("alder",), ("birch",))
    both = decided(measured(two, p=0.03, excess={"alder": (0.001, 0.5), "birch": (0.001, 0.5)}))
    assert both.tiers == (("alder", "birch"),)


def test_names_in_another_order_change_nothing_but_names():
    swapped = {"cedar": CLEAR["alder"], "birch": CLEAR["birch"], "alder": CLEAR["cedar"]}
    one, two = decided(measured(CLEAR)), decided(measured(swapped))
    renamed = {"alder": "cedar", "cedar": "alder", "birch": "birch"}
    assert [tuple(renamed[a] for a in tier) for tier in one.tiers] == list(two.tiers)
    assert [one.first for one in one.places] == [two.first for two in two.places]


def test_the_order_of_measurements_changes_nothing():
    measurements = [*measured(CLEAR, excess={"alder": (0.004, 0.001), "birch": (0.002, 0.02)}), *KEPT]
    assert decided(measurements) == decided(measurements[::-1])


@pytest.mark.parametrize("language", languages())
def test_every_sentence_has_words_in_every_language(language: str):
    words = catalogue(language)
    situations = [
        decided(measured(CLEAR, kappa=0.3, unresolved=["cedar"], untimed=["alder"], excess={"alder": (0.004, 0.001)})),
        decided(measured(CLEAR, kappa=SINGLE, floor=None, reach=None)),
        decided(measured({"alder": (57, 81, 83), "birch": (60, 61, 59), "elm": (70, 68, 40)})),
        decided([*measured(CLEAR), gate("reader", ["x"]), gate("skeptic", None)], on_failure="qualified"),
        decided(measured(CLEAR, periods=1)),
        decided([*measured(CLEAR, p=1e-6, periods=14, pairs={("alder", "birch"): {"length": 0.4, "near": 0.01}}),
                 *KEPT], on_failure="qualified", any_judges=True, preregistered=False),
    ]  # fmt: skip
    for found in situations:
        for one in found.verdicts:
            sentences = [one.statement, *one.reasons, *one.condition, *([one.withheld] if one.withheld else [])]
            assert all(words.render(sentence) for sentence in sentences)
            assert one.verdict.reasons == tuple(map(catalogue("en").render, one.reasons))
            assert (one.withheld is not None) == (one.verdict.publication_level == "no-claim")
            assert tuple(one.text for one in one.verdict.conditions) == tuple(
                map(catalogue("en").render, one.condition)
            )
            assert one.verdict.publication_level != "qualified" or one.condition
        assert all(words.render(place.why) for place in found.places)


def test_no_sentence_names_a_total_that_is_withheld():
    given = {"alder": (71.3, 72.9, 74.1), "birch": (70.2, 71.7, 73.3)}
    found = decided(measured(given, efficiency={"alder": 41.0, "birch": 80.0}))
    totals = [one for one in measured(given, efficiency={"alder": 41.0, "birch": 80.0}) if one.name == "season.total"]
    assert not any(one.shown for one in found.places)
    words = " ".join(" ".join((one.verdict.claim.statement, *one.verdict.reasons)) for one in found.verdicts)
    assert not [one.value for one in totals if f"{one.value:.1f}" in words]


def test_measurements_of_two_seasons_are_refused():
    measurements = measured(CLEAR)
    with pytest.raises(NotMeasurableError, match="was measured twice"):
        decided([*measurements, measurements[0]])
    with pytest.raises(NotMeasurableError, match="no contrast of alder and birch on aggregate was measured"):
        decided([one for one in measurements if one.labels.get("high") != "alder"])
