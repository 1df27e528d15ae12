"""What may be said of a season: planted situations, each with what it permits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from season_measured import JUDGES, gate, measured, probe

from assaymark.claims import SeasonGates, decide_season
from assaymark.claims.messages import catalogue, languages
from assaymark.claims.messages import said as message
from assaymark.claims.season_panel import CONSTANT, SINGLE
from assaymark.claims.season_types import SeasonVerdict, SeasonVerdicts
from assaymark.errors import NotMeasurableError
from assaymark.records import Measurement

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
    assert found.groups == (("alder",), ("birch",), ("cedar",))
    assert "alder scores highest of the three agents." in said(found, "headline")
    assert "cedar scores lowest of the three agents." in said(found, "headline")
    assert [(one.agent, one.first, one.last, one.shown) for one in found.places] == [
        ("alder", 1, 1, True),
        ("birch", 2, 2, True),
        ("cedar", 3, 3, True),
    ]
    assert {one.level for one in found.places} == {"headline"}
    assert said(found, "no-claim") == []


def test_judges_that_were_not_tested_reserve_every_order():
    found = decided(measured(CLEAR))
    cut = of(found, "cut", "alder", "birch").verdict
    assert (cut.publication_level, cut.adversarial_status) == ("qualified", "not tested")
    assert cut.condition == "The judges were not tested as instruments: the plan demands no datasheets."
    assert cut.binding == ("adversarial",)
    assert said(found, "headline") == []
    assert found.place("alder").shown


def test_totals_within_the_noise_floor_are_one_class_and_show_no_total():
    near = {"alder": (80, 82, 78), "birch": (61, 63, 59), "cedar": (60, 62, 58)}
    found = decided(measured(near))
    assert found.groups == (("alder",), ("birch", "cedar"))
    tie = of(found, "tie")
    assert tie.verdict.claim.statement == "birch and cedar form one class: no order among them is established."
    assert tie.verdict.condition is not None
    assert tie.verdict.condition.startswith("Their totals lie within the noise floor of 3.0 points.")
    assert (found.place("birch").first, found.place("birch").last) == (2, 3)
    assert not found.place("birch").shown
    assert not found.place("cedar").shown
    assert of(found, "above", "birch", "cedar").verdict.stability_status == "tie-class"


def test_a_noisy_agent_joins_both_of_its_neighbours():
    wide = {pair: {"floor": 30.0} for pair in (("alder", "birch"), ("birch", "cedar"))}
    found = decided(measured(CLEAR, pairs=wide))
    assert found.groups == (("alder", "birch", "cedar"),)
    tie = of(found, "tie").verdict
    assert "with the exception of one pair" in tie.claim.statement
    assert of(found, "above", "alder", "cedar").verdict.publication_level == "qualified"


def test_an_order_without_evidence_over_periods_is_withheld():
    found = decided(measured(CLEAR, pairs={("alder", "birch"): {"p": 0.2}}))
    assert found.groups == (("alder", "birch"), ("cedar",))
    pair = of(found, "above", "alder", "birch")
    assert pair.verdict.publication_level == "no-claim"
    assert "no evidence: p = 0.200 after Holm" in pair.verdict.reasons[0]
    assert pair.withheld is not None
    assert catalogue("en").render(pair.withheld) == "Any order of alder and birch."


def test_holm_counts_every_pair():
    """Three pairs at .02 each: alone each has evidence, together none has."""
    pairs = {("alder", "birch"): {"p": 0.02}, ("alder", "cedar"): {"p": 0.02}, ("birch", "cedar"): {"p": 0.02}}
    assert decided(measured(CLEAR, pairs=pairs)).groups == (("alder", "birch", "cedar"),)


def test_totals_and_periods_that_point_in_opposite_directions_make_no_order():
    found = decided(measured(CLEAR, pairs={("alder", "birch"): {"value": -4.0}}))
    assert found.groups == (("alder", "birch"), ("cedar",))
    reason = of(found, "above", "alder", "birch").verdict.reasons[0]
    assert reason == (
        "Totals and periods point in opposite directions: 20.0 points between totals, "
        "4.0 the other way over 12 periods."
    )


def test_an_agent_whose_order_turns_with_one_judge_has_no_place():
    """Elm's median is above birch's; without the reader, who alone lifts it, it is far below."""
    given = {"alder": (85, 86, 84), "birch": (60, 61, 59), "elm": (70, 68, 40), "fir": (30, 31, 29)}
    found = decided(measured(given))
    assert found.groups == (("alder",), ("birch",), ("fir",))
    elm = of(found, "unplaced", "elm")
    assert elm.verdict.stability_status == "judge-dependent"
    assert elm.verdict.reasons[0] == "Its judges differ by 30.0 points (40.0 to 70.0)."
    assert "without auditor the order does not hold" in elm.verdict.reasons[1]
    assert elm.withheld is not None
    assert catalogue("en").render(elm.withheld) == "Any position for elm."
    place = found.place("elm")
    assert (place.first, place.last, place.shown, place.level) == (None, None, False, "no-claim")
    # Elm may stand above or below birch, so birch has no single place; alder and fir have theirs.
    assert [(found.place(a).first, found.place(a).last) for a in ("alder", "birch", "fir")] == [(1, 1), (2, 3), (4, 4)]
    assert not found.place("birch").shown
    assert found.place("fir").shown


def test_who_scores_highest_is_compared_with_everybody():
    """Also with an agent that has no place, and with those further down."""
    given = {"alder": (85, 86, 84), "birch": (60, 61, 59), "elm": (70, 68, 40), "fir": (30, 31, 29)}
    found = decided(measured(given))
    highest = next(one.verdict for one in found.verdicts if one.statement.key == "claim.says.highest")
    compared = {name for name in highest.measurements if name.startswith("season.contrast")}
    assert compared == {f"season.contrast[high=alder,low={name}]" for name in ("birch", "elm", "fir")}
    assert highest.reasons[0].startswith("Each of the 3 differences")


@pytest.mark.parametrize(
    ("fir", "place", "words"),
    [
        ((10, 12, 11), 3, "fir scores lowest of the three agents."),
        ((97, 99, 98), 1, "fir scores highest of the three agents."),
    ],
)
def test_the_only_agent_with_a_place_may_stand_at_an_end(fir: tuple[int, ...], place: int, words: str):
    """Between the other two it depends on the judges, whose spreads are equal, so that neither has a place."""
    given = {"birch": (70, 68, 40), "elm": (45, 62, 75), "fir": fir}
    found = decided(measured(given, pairs={("birch", "elm"): {"floor": 1.0}}))
    assert found.groups == (("fir",),)
    assert {one.agent for one in found.places if one.first is None} == {"birch", "elm"}
    fir_place = found.place("fir")
    assert (fir_place.first, fir_place.last, fir_place.shown) == (place, place, True)
    assert words in said(found, "qualified")


def test_of_many_pairs_that_turn_three_are_named():
    given = {f"a{at}": (60 + at / 10, 61 + at / 10, 62 + at / 10) for at in range(6)} | {"elm": (75, 71, 30)}
    elm = of(decided(measured(given)), "unplaced", "elm")
    assert [one.key for one in elm.reasons[:5]] == [
        "claim.reason.spread",
        *["claim.reason.turns_against"] * 3,
        "claim.reason.turns_more",
    ]
    assert elm.verdict.reasons[4] == "So it is with 3 other agents."


def test_no_order_without_repetitions():
    found = decided(measured(CLEAR, floor=None, reach=None))
    assert found.groups == (("alder", "birch", "cedar"),)
    tie = of(found, "tie").verdict
    assert tie.condition is not None
    assert tie.condition.startswith("Decisions and gradings were not both repeated, so how far")
    assert {(one.first, one.last, one.shown) for one in found.places} == {(1, 3, False)}
    band = of(found, "band", "alder").verdict
    assert band.publication_level == "qualified"
    assert "how far noise alone may move a grade is unknown" in (band.condition or "")


@pytest.mark.parametrize(("kappa", "level"), [(0.41, "headline"), (0.398, "qualified"), (0.19, "no-claim")])
def test_agreement_gates_every_claim_on_grades(kappa: float, level: str):
    found = decided([*measured(CLEAR, kappa=kappa), *KEPT], on_failure="qualified")
    assert of(found, "band", "alder").verdict.publication_level == level
    if level == "no-claim":
        assert found.groups == (("alder", "birch", "cedar"),)
        assert levels(found, "tie") == levels(found, "above") == {"no-claim"}
        assert not any(one.shown for one in found.places)
    else:
        assert levels(found, "cut") == {level}
        assert all(one.shown for one in found.places)


def test_a_kappa_is_not_rounded_over_the_cut_off_that_it_misses():
    found = decided(measured(CLEAR, kappa=0.398))
    assert "kappa 0.398, below 0.40" in " ".join(of(found, "band", "alder").verdict.reasons)


def test_a_kappa_is_said_with_its_interval():
    measurements = [
        replace(one, low=0.21, high=0.48, level=0.95) if one.name == "season.kappa" else one
        for one in measured(CLEAR, kappa=0.35)
    ]
    band = of(decided(measurements), "band", "alder")
    assert "kappa 0.35 (0.21 to 0.48), below 0.40" in " ".join(band.verdict.reasons)
    assert "Kappa 0,35 (0,21 bis 0,48)" in catalogue("de").join(band.reasons)


@pytest.mark.parametrize(
    ("state", "words"), [(SINGLE, "neither agree nor disagree"), (CONSTANT, "gave one band to every period")]
)
def test_undefined_agreement_withholds_and_is_the_first_reason(state: str, words: str):
    found = decided(measured(CLEAR, kappa=state))
    assert {one.verdict.publication_level for one in found.verdicts} == {"no-claim"}
    assert words in of(found, "tie").verdict.reasons[0]
    assert words in " ".join(of(found, "tie").verdict.reasons)


def test_one_judge_makes_no_order_and_no_band():
    alone = {name: row[:1] for name, row in CLEAR.items()}
    found = decided(measured(alone, judges=("auditor",), kappa=SINGLE))
    assert found.groups == (("alder", "birch", "cedar"),)
    assert {one.verdict.publication_level for one in found.verdicts} == {"no-claim"}
    assert (
        of(found, "band", "alder").verdict.claim.statement == "The record of alder is graded strong by its one judge."
    )
    assert {catalogue("en").render(one.why) for one in found.places} == {"single judge"}


def test_judges_of_one_family_cannot_be_left_out():
    measurements = [
        one if one.name != "season.contrast" else _changed(one, without={}, totals_without={})
        for one in measured(CLEAR)
    ]
    found = decided(measurements)
    assert found.groups == (("alder", "birch", "cedar"),)
    pair = of(found, "above", "alder", "birch").verdict
    assert pair.stability_status == "judge-dependent"
    assert pair.reasons[0].startswith("All judges are of one family")


def test_contested_bands_are_withheld_with_their_numbers():
    found = decided(measured({"alder": (57, 81, 83), "birch": (40, 41, 39)}))
    band = of(found, "band", "alder").verdict
    assert band.publication_level == "no-claim"
    assert band.reasons[0] == (
        "The judges straddle a boundary: the lowest gives 57.0 points (mixed), the highest 83.0 (strong)."
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
        "Noise alone may move a grade by 2.0 points, and the nearest boundary of a band lies 1.5 away."
    )
    assert of(found, "band", "birch").verdict.publication_level == "headline"


def test_a_missing_outcome_or_time_has_to_be_said_only_where_others_have_one():
    some = decided([*measured(CLEAR, unresolved=["cedar"], untimed=["alder"]), *KEPT], on_failure="qualified")
    lowest = of(some, "cut", "birch", "cedar").verdict
    assert lowest.publication_level == "qualified"
    assert lowest.condition == ("The outcome of cedar could not be resolved; its share went to reasoning and evidence.")
    assert "No time was measured for alder" in (of(some, "cut", "alder", "birch").verdict.condition or "")
    assert catalogue("en").render(some.place("cedar").why) == "apart, without an outcome"
    everybody = decided([*measured(CLEAR, unresolved=list(CLEAR), untimed=list(CLEAR)), *KEPT], on_failure="qualified")
    assert levels(everybody, "cut") == {"headline"}
    assert "No outcome could be resolved" in " ".join(of(everybody, "cut", "alder", "birch").verdict.reasons)


def test_one_agent_has_nothing_to_be_compared_with():
    found = decided(measured({"alder": (80, 82, 78)}))
    assert [one.kind for one in found.verdicts] == ["band"]
    place = found.place("alder")
    assert (place.first, place.last, place.shown, place.level) == (1, 1, False, "no-claim")
    assert catalogue("en").render(place.why) == "nothing to compare"


def test_an_agent_without_a_usable_grade_has_no_place_and_takes_none():
    found = decided(measured({**CLEAR, "elm": (None, None, None)}))
    elm = of(found, "unplaced", "elm").verdict
    assert elm.reasons[0] == "No judge gave a usable grade."
    assert "alder scores highest of the three agents." in said(found, "qualified")
    assert found.places[-1].agent == "elm"
    assert found.places[-1].first is None
    assert not [one for one in found.verdicts if one.kind in ("band", "above") and "elm" in one.verdict.claim.subjects]


def test_a_grade_that_a_judge_did_not_give_has_to_be_said():
    found = decided([*measured({**CLEAR, "cedar": (40, 41, None)}), *KEPT], on_failure="qualified")
    assert of(found, "cut", "birch", "cedar").verdict.condition == "Part of the panel gave no usable grade for cedar."
    assert of(found, "cut", "alder", "birch").verdict.publication_level == "headline"
    band = of(found, "band", "cedar").verdict
    assert band.claim.statement == "The record of cedar is graded weak by both judges."
    assert band.publication_level == "qualified"


@pytest.mark.parametrize("most", ["qualified", "no-claim"])
def test_datasheets_that_fail_cap_every_claim(most: str):
    sheets = [gate("auditor", []), gate("reader", ["dark_current 0.40, at most 0.05"]), gate("skeptic", None)]
    found = decided([*measured(CLEAR), *sheets], on_failure=most)
    assert levels(found, "band") == {most}
    reasons = " ".join(of(found, "band", "alder").verdict.reasons)
    assert "reader fails the limits of the plan (dark_current 0.40, at most 0.05)" in reasons
    assert "skeptic shows no datasheet" in reasons
    if most == "no-claim":
        assert found.groups == (("alder", "birch", "cedar"),)
        assert {catalogue("en").render(one.why) for one in found.places} == {"datasheet limits not kept"}
    else:
        cut = of(found, "cut", "alder", "birch").verdict
        assert cut.adversarial_status == "construct-sensitive"
        assert "Not every judge keeps the limits" in (cut.condition or "")


def test_datasheets_that_are_demanded_and_absent_are_not_passed():
    found = decided(measured(CLEAR), on_failure="qualified")
    assert of(found, "cut", "alder", "birch").verdict.adversarial_status == "not tested"


def test_a_judge_that_can_tell_authors_makes_every_claim_construct_sensitive():
    blind = [*measured(CLEAR), *KEPT, probe("auditor", "not above chance")]
    assert levels(decided(blind, on_failure="qualified"), "cut") == {"headline"}
    seen = decided([*blind[:-1], probe("auditor", "above chance")], on_failure="qualified")
    cut = of(seen, "cut", "alder", "birch").verdict
    assert (cut.publication_level, cut.adversarial_status) == ("qualified", "construct-sensitive")
    assert cut.condition is not None
    assert cut.condition.startswith("Blinding is not complete: auditor can tell")


def test_returns_are_compared_with_equal_weight_after_holm_and_never_a_headline():
    found = decided(measured(CLEAR, excess={"alder": (0.004, 0.001), "birch": (0.002, 0.03), "cedar": (-0.004, 0.001)}))
    one = of(found, "beats", "alder")
    assert one.verdict.publication_level == "qualified"
    assert one.verdict.condition == "It is one path of 61 days, and says nothing of other days."
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
    """At p = .03 an order stands alone, and no longer where returns are tested too."""
    two = {"alder": (80, 82, 78), "birch": (60, 62, 58)}
    assert decided(measured(two, p=0.03)).groups == (("alder",), ("birch",))
    both = decided(measured(two, p=0.03, excess={"alder": (0.001, 0.5), "birch": (0.001, 0.5)}))
    assert both.groups == (("alder", "birch"),)


def test_names_in_another_order_change_nothing_but_names():
    swapped = {"cedar": CLEAR["alder"], "birch": CLEAR["birch"], "alder": CLEAR["cedar"]}
    one, two = decided(measured(CLEAR)), decided(measured(swapped))
    renamed = {"alder": "cedar", "cedar": "alder", "birch": "birch"}
    assert [tuple(renamed[a] for a in group) for group in one.groups] == list(two.groups)
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
    ]
    for found in situations:
        for one in found.verdicts:
            sentences = [one.statement, *one.reasons, *one.condition, *([one.withheld] if one.withheld else [])]
            assert all(words.render(sentence) for sentence in sentences)
            assert one.verdict.reasons == tuple(map(catalogue("en").render, one.reasons))
            assert (one.withheld is not None) == (one.verdict.publication_level == "no-claim")
            assert bool(one.condition) == (one.verdict.publication_level == "qualified")
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
    with pytest.raises(NotMeasurableError, match="is there twice"):
        decided([*measurements, measurements[0]])
    with pytest.raises(NotMeasurableError, match="contrast of alder and birch is missing"):
        decided([one for one in measurements if one.labels.get("high") != "alder"])


def _changed(item: Measurement, **detail: object) -> Measurement:
    return replace(item, detail={**item.detail, **detail})
