"""Claims about a season: planted situations, each with the claims that it permits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from season_measured import JUDGES, gate, measured, probe

from assaymark.claims import CONSTANT, SINGLE, SeasonGates, SeasonVerdicts, catalogue, decide_season, languages
from assaymark.claims import phrase as message
from assaymark.errors import NotMeasurableError
from assaymark.records import Measurement, StabilityFinding

CLEAR = {"alder": (80, 82, 78), "birch": (60, 62, 58), "cedar": (40, 41, 39)}
NEAR = {"alder": (80, 82, 78), "birch": (61, 63, 59), "cedar": (60, 62, 58)}
ALL = (("alder", "birch", "cedar"),)
AB, BC, AC = ("alder", "birch"), ("birch", "cedar"), ("alder", "cedar")
KEPT = [gate(judge, []) for judge in JUDGES]
EN = catalogue("en").render


def decided(measurements, on_failure=None, kept=False, **gates) -> SeasonVerdicts:
    """The verdicts on measurements; with ``kept`` every judge keeps a datasheet that the plan demands."""
    measurements = [*measurements, *(KEPT if kept else [])]
    return decide_season(measurements, SeasonGates(on_failure="qualified" if kept else on_failure, **gates), "plan")


def of(found, kind, *agents):
    (one,) = [one for one in found.verdicts if one.kind == kind and agents in ((), one.verdict.claim.subjects)]
    return one


def pair(found, high="alder", low="birch"):
    return of(found, "above", high, low).verdict


def levels(found, kind):
    return {one.verdict.publication_level for one in found.verdicts if one.kind == kind}


def said(found, level):
    return [one.verdict.claim.statement for one in found.verdicts if one.verdict.publication_level == level]


def ids(verdict):
    return [one.id for one in verdict.conditions]


def whys(found):
    return {EN(one.why) for one in found.places}


def ranks(found):
    return [(one.first, one.last, one.shown) for one in found.places]


def test_a_clear_order_with_kept_datasheets_is_a_headline_with_every_field_of_format_2():
    found = decided(measured(CLEAR), kept=True)
    assert found.tiers == (("alder",), ("birch",), ("cedar",))
    assert said(found, "headline")[0] == "alder ranks first of the three agents in the scores of these 3 judges."
    assert "birch scores above cedar in the scores of these 3 judges." in said(found, "headline")
    assert [one.agent for one in found.places] == [*CLEAR]
    assert ranks(found) == [(1, 1, True), (2, 2, True), (3, 3, True)]
    assert {one.level for one in found.places} == {"headline"}
    assert {one.kind for one in found.verdicts if one.verdict.publication_level == "no-claim"} == {"first", "within"}
    one, within = pair(found), of(found, "within", *AB).verdict
    assert one.claim.id == "above[dimension=aggregate,high=alder,low=birch]"
    assert of(found, "first", "alder").verdict.claim.id == "first[agent=alder,dimension=aggregate]"
    assert within.claim.id == "within[dimension=aggregate,high=alder,low=birch]"
    assert (one.claim.scope, one.claim.dimension, one.claim.asserts_order) == ("pairwise-contrast", "aggregate", True)
    assert (one.pair_state, one.stability, one.caps) == ("ordered", StabilityFinding(state="stable"), ())
    assert (one.p, one.p_adjusted) == (0.001, pytest.approx(0.003))
    states = one.own_family, one.length, one.distinct, one.other_judges
    assert states == ("clear", "not-tested", "not-applicable", "not-tested")
    assert one.fragility == {"kappa cut-offs 0.5 and 0.25": "headline"}
    assert set(within.fragility) == {"kappa cut-offs 0.5 and 0.25", "margin 5", "margin 10"}
    # Where another kappa would decide otherwise, fragility says so.
    others = [one for one in measured(CLEAR) if one.name != "season.kappa"]
    kappa = replace(next(one for one in measured(CLEAR) if one.name == "season.kappa"), value=0.45, low=0.1, high=0.6)
    one = pair(decided([*others, kappa], kept=True))
    assert one.publication_level == "headline"
    assert one.fragility == {"kappa cut-offs 0.5 and 0.25": "qualified", "lower bound of kappa": "no-claim"}


def test_judges_that_were_not_tested_qualify_every_order():
    found = decided(measured(CLEAR))
    one = pair(found)
    assert (one.publication_level, one.adversarial_status, one.binding) == ("qualified", "not tested", ("adversarial",))
    assert (ids(one), one.condition) == (["controls"], "The judges were not tested: the plan demands no datasheets.")
    assert said(found, "headline") == []
    assert found.place("alder").shown
    # Datasheets that are demanded and absent are not passed.
    assert pair(decided(measured(CLEAR), "qualified")).adversarial_status == "not tested"


TIERS = [
    # At .016 each, two pairs are resolved by Shaffer only where the third is too (multipliers 3, 1, 1): a pair within
    # noise keeps its place in the family, and three pairs at .02 are resolved alone and not together.
    (measured(CLEAR, p=0.016, pairs={BC: {"floor": 30.0}}), (("alder",), BC)),
    (measured(CLEAR, p=0.018, pairs={BC: {"floor": 30.0}}), ALL),
    (measured(CLEAR, p=0.02), ALL),
    # At p = .03 an order is supported alone, and no longer where returns share the error rate.
    (measured(dict(list(CLEAR.items())[:2]), p=0.03), (("alder",), ("birch",))),
    (measured(dict(list(CLEAR.items())[:2]), p=0.03, excess=dict.fromkeys(AB, (0.001, 0.5))), (AB,)),
]


@pytest.mark.parametrize(("measurements", "tiers"), TIERS)
def test_the_procedure_counts_every_pair_and_every_comparison(measurements, tiers):
    assert decided(measurements).tiers == tiers


OPEN = [
    # totals within the noise floor
    (measured(NEAR, p=1e-9), BC, (("alder",), BC), "tie-class",
     "The totals of birch and cedar differ by no more than their noise floor of 3.0 points."),
    # periods that do not resolve the difference
    (measured(CLEAR, pairs={AB: {"p": 0.2}}), AB, (AB, ("cedar",)), "tie-class",
     "The difference over periods is not resolved (p = 0.200 adjusted, 0.050 needed)."),
    # totals and periods that point in opposite directions
    (measured(CLEAR, pairs={AB: {"value": -4.0}}), ("birch", "alder"), (AB, ("cedar",)), "tie-class",
     "The totals of alder and birch and their scores over periods point in opposite directions."),
    # an order that rests on any one judge
    (measured(CLEAR, pairs={BC: {"drop_p": 0.2}}), BC, (("alder",), BC), "judge-dependent",
     "If any one of the judge families auditor, reader and skeptic is left out"),
    # judges of one family, who cannot be left out
    (measured(CLEAR, families=False), AB, ALL, "judge-dependent", "All judges are of one family"),
    # no repetitions
    (measured(CLEAR, floor=None, reach=None), AB, ALL, "tie-class",
     "Decisions and gradings were not both repeated, or every repetition is identical, so"),
]  # fmt: skip


@pytest.mark.parametrize(("measurements", "names", "tiers", "status", "reason"), OPEN)
def test_an_order_that_is_not_shown_is_not_supported_and_says_why(measurements, names, tiers, status, reason):
    found = decided(measurements)
    one = of(found, "above", *names)
    assert (found.tiers, one.verdict.publication_level, one.verdict.stability_status) == (tiers, "no-claim", status)
    assert one.verdict.reasons[0].startswith(reason)
    assert EN(one.withheld) == f"Any ranking of {' and '.join(sorted(names))}."
    assert not any(found.place(name).shown for name in names)


def test_ranks_of_agents_that_are_not_ordered_are_ranges():
    found = decided(measured(NEAR, p=1e-9))
    assert pair(found, *BC).pair_state == "not-resolved"
    assert (found.place("birch").first, found.place("birch").last) == (2, 3)
    assert EN(found.place("cedar").why) == "cannot be ranked"
    # A noisy agent shares the tier of both of its neighbours, who are ordered.
    wide = decided(measured(CLEAR, pairs={AB: {"floor": 30.0}, BC: {"floor": 30.0}}))
    assert (wide.tiers, pair(wide, *AC).publication_level) == (ALL, "qualified")
    assert [(one.first, one.last) for one in wide.places] == [(1, 2), (1, 3), (2, 3)]
    unknown = decided(measured(CLEAR, floor=None, reach=None))
    assert (ranks(unknown), whys(unknown)) == ([(1, 3, False)] * 3, {"noise unknown"})
    band = of(unknown, "band", "alder").verdict
    assert band.publication_level == "qualified"
    assert "it is unknown how far noise alone moves a grade" in band.condition


def test_an_order_that_turns_with_one_judge_is_not_supported():
    """Elm is ahead of birch on average; without the reader it is behind."""
    given = {"alder": (85, 86, 84), "birch": (60, 61, 59), "elm": (64, 90, 40), "fir": (20, 21, 19)}
    found = decided(measured(given))
    assert found.tiers == (("alder",), ("birch", "elm"), ("fir",))
    one = pair(found, "elm", "birch")
    assert one.stability_status == "judge-dependent"
    assert one.stability == StabilityFinding(state="reversed-without", families=("reader",))
    assert one.reasons[0].startswith("Without judge family reader the ranking reverses")
    assert ranks(found) == [(1, 1, True), (2, 3, False), (2, 3, False), (4, 4, True)]
    assert "Gegenüber" in catalogue("de").render(message("claim.reason.against", other="elm", why="..."))
    assert pair(decided(measured(CLEAR, pairs={BC: {"drop_p": 0.2}})), *BC).stability.state == "rests-on"
    # A leader names the agent against whom it is not stable.
    five = {f"a{at}": (80 - 10 * at,) * 3 for at in range(5)}
    first = of(decided(measured(five, p=1e-5, pairs={("a0", "a1"): {"drop_p": 0.5}})), "first", "a0").verdict
    assert first.publication_level == "no-claim"
    assert first.reasons[0].startswith("Against a1: If any one of the judge families")


def test_judges_that_share_a_family_with_an_agent_stand_aside():
    one = pair(decided(measured(CLEAR, pairs={AB: {"recusal": (4.0, 0.4)}}), kept=True))
    assert (one.publication_level, one.own_family) == ("no-claim", "rests-on-own-family")
    assert any("judges from the agents’ own makers" in reason for reason in one.reasons)
    one = pair(decided(measured(CLEAR, pairs={AB: {"recusal": (None, 1.0)}}), kept=True))
    assert (one.publication_level, one.own_family) == ("qualified", "no-disinterested-judge")
    assert ids(one) == ["own-family"]


def test_length_that_may_explain_an_order_is_its_condition():
    one = of(decided(measured(CLEAR, pairs={AB: {"length": 0.3}}), kept=True), "above", *AB)
    assert (one.verdict.publication_level, one.verdict.length) == ("qualified", "may-be-length")
    assert one.verdict.condition == (
        "It may be length: alder writes 2.0 times as much as birch, "
        "and 2.0 points a doubling would explain 2.0 of 20.0."
    )
    assert "2,0-mal so viel wie birch" in catalogue("de").join(one.condition)
    unresolved = pair(decided(measured(CLEAR, pairs={AB: {"length": 0.3, "p": 0.2}}), kept=True))
    assert not any("20.0" in reason for reason in unresolved.reasons)


def test_an_order_that_holds_for_other_judges_too_needs_no_scope():
    found = decided(measured(CLEAR, pairs={one: {"others": 0.001} for one in (AB, AC, BC)}))
    assert of(found, "first", "alder").verdict.claim.statement == "alder ranks first of the three agents."
    assert pair(found).other_judges == "yes"
    weak = measured(CLEAR, pairs={one: {"others": 0.3} for one in (AB, AC, BC)})
    assert pair(decided(weak, kept=True, any_judges=True)).condition == "It is not shown to hold for other judges."


def test_agents_that_are_shown_to_score_alike_are_within_the_margin():
    found = decided(measured(NEAR, pairs={BC: {"near": 0.001}}), kept=True)
    one = of(found, "within", *BC).verdict
    assert (one.publication_level, one.pair_state, one.stability_status) == ("headline", "within-the-margin", "stable")
    assert one.claim.statement == (
        "birch and cedar score within 7.5 points of each other (difference +1.0, 90 % interval +0.0 to +2.0)."
    )
    assert of(found, "within", *AB).verdict.publication_level == "no-claim"
    # An order below the margin says so.
    two = {"alder": (64, 65, 66), "birch": (60, 61, 62)}
    order = pair(decided(measured(two, p=0.001, floor=1.0, pairs={AB: {"near": 0.001}}), kept=True))
    assert (order.pair_state, order.publication_level) == ("ordered-by-less-than-the-margin", "headline")
    assert ids(order) == ["small-gap"]


@pytest.mark.parametrize(
    ("periods", "level"), [(11, "no-claim"), (12, "qualified"), (23, "qualified"), (24, "headline")]
)
def test_periods_that_follow_each_other(periods, level):
    found = decided(measured(CLEAR, periods=periods), kept=True)
    one = pair(found)
    assert one.publication_level == level
    if level == "qualified":
        assert one.condition == f"{periods} periods that follow each other count as about {periods / 2:.0f}."
        assert ids(one) == ["consecutive"]
    if level == "no-claim":
        assert (one.stability_status, one.pair_state) == ("not tested", "cannot-be-tested")
        assert one.reasons[0] == "alder and birch cannot be tested: 11 common periods, 12 are needed."
        assert whys(found) == {"too few periods"}


def test_identical_replicates_are_a_condition_of_every_ranking_of_their_agent():
    noise = Measurement(
        name="season.noise", labels={"of": "alder"}, value=None, n=2, n_of="replicates", method="",
        state="identical repetitions",
    )  # fmt: skip
    found = decided([*measured(CLEAR), noise], kept=True)
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
def test_agreement_gates_every_claim_on_grades(kappa, level):
    found = decided(measured(CLEAR, kappa=kappa), kept=True)
    assert levels(found, "band") == levels(found, "above") == {level}
    assert {one.shown for one in found.places} == {level != "no-claim"}
    if level == "no-claim":
        assert found.tiers == ALL
        assert levels(found, "first") == {level}
    if level == "qualified":  # not rounded over the cut-off that it misses
        assert "kappa 0.398; 0.40 needed" in " ".join(of(found, "band", "alder").verdict.reasons)


def test_a_kappa_below_its_cut_off_does_not_read_as_reaching_it_and_an_end_keeps_its_sign():
    found = [replace(one, low=-0.0048, high=0.4, level=0.95) if one.name == "season.kappa" else one
             for one in measured(CLEAR, kappa=0.19974)]  # fmt: skip
    band = of(decided(found, kept=True), "band", "alder")
    assert band.verdict.publication_level == "no-claim"
    assert "kappa 0.1997, interval −0.005 to 0.400; 0.20 needed" in " ".join(band.verdict.reasons)


def test_a_kappa_is_said_with_its_interval():
    found = [replace(one, low=0.21, high=0.48, level=0.95) if one.name == "season.kappa" else one
             for one in measured(CLEAR, kappa=0.35)]  # fmt: skip
    band = of(decided(found), "band", "alder")
    assert "kappa 0.35, interval 0.21 to 0.48; 0.40 needed" in " ".join(band.verdict.reasons)
    assert "Kappa 0,35, Intervall 0,21 bis 0,48" in catalogue("de").join(band.reasons)


def test_undefined_agreement_withholds_and_is_the_first_reason():
    for state, words in ((SINGLE, "not measurable with one judge"), (CONSTANT, "gave every period the same band")):
        found = decided(measured(CLEAR, kappa=state))
        assert {one.verdict.publication_level for one in found.verdicts} == {"no-claim"}
        assert words in pair(found).reasons[0]
    alone = {name: row[:1] for name, row in CLEAR.items()}
    found = decided(measured(alone, judges=("auditor",), kappa=SINGLE))
    assert (found.tiers, whys(found)) == (ALL, {"single judge"})
    assert {one.verdict.publication_level for one in found.verdicts} == {"no-claim"}
    band = of(found, "band", "alder").verdict
    assert band.claim.statement == "The record of alder is graded strong by its one judge."


BANDS = [
    ({"alder": (57, 81, 83), "birch": (40, 41, 39)}, {}, "no-claim",
     "The judges disagree on the band: the lowest gives 57.0 points (mixed), the highest 83.0 (strong)."),
    ({"alder": (66, 65, 64), "birch": (40, 41, 39)}, {"alder": 100, "birch": 40}, "no-claim",
     "efficiency moves the total into another band (strong)"),
    ({"alder": (68, 69, 70), "birch": (80, 81, 82)}, {}, "qualified",
     "Noise alone may move a grade by 2.0 points, and the nearest boundary of a band is 1.5 away."),
]  # fmt: skip


@pytest.mark.parametrize(("given", "efficiency", "level", "words"), BANDS)
def test_a_band_is_withheld_or_qualified_with_its_numbers(given, efficiency, level, words):
    found = decided(measured(given, efficiency=efficiency), kept=True)
    band = of(found, "band", "alder").verdict
    assert band.publication_level == level
    assert words in (band.condition if level == "qualified" else band.reasons[0])
    assert of(found, "band", "birch").verdict.publication_level == "headline"


def test_a_missing_outcome_or_time_has_to_be_said_only_where_others_have_one():
    some = decided(measured(CLEAR, unresolved=["cedar"], untimed=["alder"]), kept=True)
    lowest = pair(some, *BC)
    assert lowest.publication_level == "qualified"
    assert lowest.condition == "The outcome of cedar could not be resolved; its share went to reasoning and evidence."
    assert "No time was measured for alder" in pair(some).condition
    assert EN(some.place("cedar").why) == "ranked, without an outcome"
    everybody = decided(measured(CLEAR, unresolved=list(CLEAR), untimed=list(CLEAR)), kept=True)
    assert levels(everybody, "above") == {"headline"}
    assert "No outcome could be resolved" in " ".join(pair(everybody).reasons)


def test_agents_without_another_or_without_a_grade():
    found = decided(measured({"alder": (80, 82, 78)}))
    assert ([one.kind for one in found.verdicts], ranks(found)) == (["band"], [(1, 1, False)])
    assert (found.place("alder").level, whys(found)) == ("no-claim", {"no other agent"})
    found = decided(measured({**CLEAR, "elm": (None, None, None)}))
    assert said(found, "qualified")[0].startswith("alder ranks first of the three agents")
    assert (found.places[-1].agent, found.places[-1].first, EN(found.places[-1].why)) == ("elm", None, "not graded")
    assert not [one for one in found.verdicts if "elm" in one.verdict.claim.subjects]


def test_a_grade_that_a_judge_did_not_give_has_to_be_said():
    found = decided(measured({**CLEAR, "cedar": (40, 41, None)}), kept=True)
    assert pair(found, *BC).condition == "Some judges gave no usable grade for cedar."
    assert pair(found).publication_level == "headline"
    band = of(found, "band", "cedar").verdict
    assert band.claim.statement == "The record of cedar is graded weak by both judges."
    assert band.publication_level == "qualified"


def test_texts_that_address_the_judge_have_to_be_said_and_limit_nothing():
    one = Measurement(
        name="agent.flagged_texts", labels={"agent": "cedar"}, value=0.1, n=40, n_of="decisions", method="",
        detail={"count": 4},
    )  # fmt: skip
    none = replace(one, labels={"agent": "alder"}, value=0.0, detail={"count": 0})
    found = decided([*measured(CLEAR), one, none], kept=True)
    words = "4 of 40 texts of cedar address the judge or imitate its prompt; they were scored like any other."
    for name in (("above", "birch", "cedar"), ("first", "alder"), ("band", "cedar")):
        verdict = of(found, *name).verdict
        assert words in verdict.condition
        assert one.id in verdict.measurements
    assert pair(found, *BC).publication_level == "headline"
    assert pair(found).condition is None


@pytest.mark.parametrize("most", ["qualified", "no-claim"])
def test_datasheets_that_fail_cap_every_claim(most):
    sheets = [gate("auditor", []), gate("reader", ["dark_current 0.40, at most 0.05"]), gate("skeptic", None)]
    found = decided([*measured(CLEAR), *sheets], most)
    assert levels(found, "band") == {most}
    reasons = " ".join(of(found, "band", "alder").verdict.reasons)
    assert "reader failed the limits of the plan for its datasheet (dark_current 0.40, at most 0.05)" in reasons
    assert "skeptic has no datasheet" in reasons
    if most == "no-claim":
        assert (found.tiers, whys(found)) == (ALL, {"datasheet limits failed"})
    else:
        assert pair(found).adversarial_status == "construct-sensitive"
        assert "Not every judge passed the limits" in pair(found).condition


def test_a_judge_that_can_tell_authors_makes_every_claim_construct_sensitive():
    blind = decided([*measured(CLEAR), probe("auditor", "not above chance")], kept=True)
    assert levels(blind, "above") == {"headline"}
    one = pair(decided([*measured(CLEAR), probe("auditor", "above chance")], kept=True))
    assert (one.publication_level, one.adversarial_status) == ("qualified", "construct-sensitive")
    assert one.condition.startswith("Blinding is incomplete: auditor names the author")


def test_returns_are_compared_with_equal_weight_after_holm_and_never_a_headline():
    found = decided(measured(CLEAR, excess={"alder": (0.004, 0.001), "birch": (0.002, 0.03), "cedar": (-0.004, 0.001)}))
    one = of(found, "beats", "alder").verdict
    assert (one.publication_level, one.agreement_status, one.adversarial_status) == (
        "qualified", "not judged", "not judged",
    )  # fmt: skip
    assert one.condition == "It is one path of 61 days and does not extend to other days."
    rest = of(found, "beats", *BC)
    assert rest.verdict.publication_level == "no-claim"
    assert EN(rest.withheld) == "That any other agent invests better than equal weight."
    # Returns do not depend on the grades.
    ungraded = decided(measured(CLEAR, kappa=SINGLE, excess={"alder": (0.004, 0.001), "birch": (0.0001, 0.9)}))
    assert of(ungraded, "beats", "alder").verdict.publication_level == "qualified"


def test_of_records_that_were_written_down_late_no_claim_is_a_headline_and_each_says_so():
    late = message("note.records.replayed", n=203, of=210)
    words = "203 of 210 decisions were written down more than a day after their steps."
    made = measured(CLEAR, excess={"alder": (0.004, 0.0001)})
    assert said(decided(made, kept=True), "headline")
    found = decided(made, kept=True, hindsight=(late,))
    assert said(found, "headline") == []
    assert {one.verdict.claim.statement for one in found.verdicts if one.kind == "beats"} & {*said(found, "qualified")}
    for one in found.verdicts:
        stands = one.verdict.publication_level == "qualified"
        assert (words in (one.verdict.condition or "")) == stands
    assert {one.level for one in found.places} == {"qualified"}


def test_neither_names_nor_the_order_of_measurements_decide():
    swapped = {"cedar": CLEAR["alder"], "birch": CLEAR["birch"], "alder": CLEAR["cedar"]}
    one, two = decided(measured(CLEAR)), decided(measured(swapped))
    renamed = {"alder": "cedar", "cedar": "alder", "birch": "birch"}
    assert [tuple(renamed[a] for a in tier) for tier in one.tiers] == list(two.tiers)
    assert [one.first for one in one.places] == [two.first for two in two.places]
    measurements = [*measured(CLEAR, excess={"alder": (0.004, 0.001), "birch": (0.002, 0.02)}), *KEPT]
    assert decided(measurements) == decided(measurements[::-1])


def test_every_sentence_has_words_in_every_language():
    situations = [
        decided(measured(CLEAR, kappa=0.3, unresolved=["cedar"], untimed=["alder"], excess={"alder": (0.004, 0.001)})),
        decided(measured(CLEAR, kappa=SINGLE, floor=None, reach=None)),
        decided(measured({"alder": (57, 81, 83), "birch": (60, 61, 59), "elm": (70, 68, 40)})),
        decided([*measured(CLEAR), gate("reader", ["x"]), gate("skeptic", None)], "qualified"),
        decided(measured(CLEAR, periods=1)),
        decided(measured(CLEAR, p=1e-6, periods=14, pairs={AB: {"length": 0.4, "near": 0.01}}), kept=True,
                any_judges=True, preregistered=False),
    ]  # fmt: skip
    every = [catalogue(language) for language in languages()]
    for found in situations:
        for one in found.verdicts:
            sentences = [one.statement, *one.reasons, *one.condition, *([one.withheld] if one.withheld else [])]
            assert all(words.render(sentence) for sentence in sentences for words in every)
            assert one.verdict.reasons == tuple(map(EN, one.reasons))
            assert (one.withheld is not None) == (one.verdict.publication_level == "no-claim")
            assert tuple(one.text for one in one.verdict.conditions) == tuple(map(EN, one.condition))
            assert one.verdict.publication_level != "qualified" or one.condition
        assert all(words.render(place.why) for place in found.places for words in every)


def test_no_sentence_names_a_total_that_is_withheld():
    given = {"alder": (71.3, 72.9, 74.1), "birch": (70.2, 71.7, 73.3)}
    made = measured(given, efficiency={"alder": 41.0, "birch": 80.0})
    found = decided(made)
    assert not any(one.shown for one in found.places)
    words = " ".join(" ".join((one.verdict.claim.statement, *one.verdict.reasons)) for one in found.verdicts)
    assert not [one.value for one in made if one.name == "season.total" and f"{one.value:.1f}" in words]


def test_measurements_of_two_seasons_are_refused():
    measurements = measured(CLEAR)
    with pytest.raises(NotMeasurableError, match="was measured twice"):
        decided([*measurements, measurements[0]])
    with pytest.raises(NotMeasurableError, match="no contrast of alder and birch on aggregate was measured"):
        decided([one for one in measurements if one.labels.get("high") != "alder"])
