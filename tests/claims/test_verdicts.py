"""From measurements written by hand to verdicts: agreement, evidence, biases, fragility, amendments, bare tables."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import pytest
from analysis import LEVELS, STUDY, kappa, measured, panel, passed, probe, rerun, verdicts
from hypothesis import given
from hypothesis import strategies as st

from assaymark.claims import (
    Rules,
    agreement_status,
    candidate_claims,
    cell_b_outcome,
    decide_claims,
    governing_agreement,
    governing_kappa,
    index,
    kind_of,
    publication_level,
    summary_of,
    suppressed_phrase,
)
from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.protocol import Claims
from assaymark.records import Claim, Verdict, canonical_json, parse

FIRST = "first[agent=ash,dimension=aggregate]"
TURNED = {"ash": 4.4, "elm": 3.5, "oak": 3.9}  # levels that put elm behind oak


def above(high, low, dimension="aggregate"):
    return f"above[dimension={dimension},high={high},low={low}]"


def first(*measurements, **more):
    return verdicts(*measurements, **more)[FIRST]


def on_two_dimensions(p=1e-4):
    return [one for d in ("d1", "d2") for one in (kappa(0.7, dimension=d), *panel(LEVELS, dimension=d, p=p))]


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_without_controls_the_best_level_is_qualified():
    found = verdicts(*panel(LEVELS))
    assert len(found) == 3 + 3 + 3, "first places, orders, and pairs within the margin"
    verdict = found[FIRST]
    states = verdict.agreement_status, verdict.stability_status, verdict.adversarial_status
    assert states == ("publish", "stable", "not tested")
    assert (verdict.publication_level, verdict.binding) == ("qualified", ("adversarial",))
    assert [cap.field for cap in verdict.caps] == ["adversarial"]
    assert [one.id for one in verdict.conditions] == ["controls"]
    assert "No control texts were graded" in verdict.condition
    assert verdict.claim.statement == "ash ranks first of the three agents on the overall score."
    assert parse(Verdict, canonical_json(verdict)) == verdict
    allowed = {name for name, one in found.items() if one.publication_level != "no-claim"}
    assert {name for name in allowed if name.startswith("first")} == {FIRST}
    assert "not resolved" in found["first[agent=oak,dimension=aggregate]"].reasons[1]


def test_a_leader_that_survives_every_drop_needs_significance_too():
    verdict = first(*panel(LEVELS, p=0.2))
    assert (verdict.stability_status, verdict.publication_level) == ("tie-class", "no-claim")
    assert verdict.binding == ("stability",)
    assert verdict.condition is None
    assert verdict.stability is None, "no drop was asked for"


def test_shaffer_counts_the_pairs_that_can_still_be_equal():
    """p = .02 alone would pass; as the smallest of three pairs it is .06. The second of them is not multiplied."""
    found = verdicts(*panel(LEVELS, p={("ash", "elm"): 0.02, ("ash", "oak"): 0.9, ("elm", "oak"): 0.9}))
    verdict = found[above("ash", "elm")]
    assert (verdict.stability_status, verdict.p, verdict.p_adjusted) == ("tie-class", 0.02, pytest.approx(0.06))
    assert "p = .060 adjusted" in verdict.reasons[1]
    stepped = verdicts(*panel(LEVELS, p={("ash", "oak"): 1e-4, ("elm", "oak"): 0.04}))[above("elm", "oak")]
    assert stepped.p_adjusted == pytest.approx(0.04)
    # Half of alpha is kept for the leader, whose own pairs need no correction; its share is handed on to the others.
    four = {"ash": 4.6, "elm": 4.0, "fir": 4.0, "oak": 3.9}
    found = verdicts(*panel(four, p={pair: 0.02 if "ash" in pair else 0.9 for pair in combinations(four, 2)}))
    assert (found[FIRST].publication_level, found[FIRST].p_adjusted) == ("qualified", pytest.approx(0.04))
    assert [found[above("ash", one)].p_adjusted for one in ("elm", "fir", "oak")] == pytest.approx([0.04] * 3)
    assert found[above("fir", "oak")].publication_level == "no-claim"


def test_an_order_that_one_drop_reverses_is_judge_dependent():
    found = verdicts(*panel(LEVELS, dropped={"fb": TURNED}))
    pair = found[above("elm", "oak")]
    assert (pair.stability_status, pair.publication_level) == ("judge-dependent", "no-claim")
    assert (pair.stability.state, pair.stability.families) == ("reversed-without", ("fb",))
    assert "it reverses without judge family fb" in pair.reasons[1]
    assert found[FIRST].stability_status == "stable"
    for verdict in found.values():  # no reason of an unsupported pair shows its gap
        assert verdict.publication_level != "no-claim" or not any("points" in one for one in verdict.reasons)
    lost = first(*panel(LEVELS, dropped={"fc": {"ash": 3.0, "elm": 4.0, "oak": 3.9}}))
    assert lost.stability_status == "judge-dependent"
    assert "it reverses without judge family fc" in lost.reasons[1]


def test_an_order_that_one_family_alone_makes_visible_rests_on_it():
    """The sign survives every drop, and the significance does not."""
    weak = {"p": 0.2, "p_adjusted": 0.4}
    found = [replace(one, detail=weak) if one.labels.get("dropped") == "fb" and "high" in one.labels else one
             for one in panel(LEVELS)]  # fmt: skip
    pair = verdicts(*found)[above("ash", "oak")]
    assert (pair.stability_status, pair.publication_level) == ("judge-dependent", "no-claim")
    assert (pair.stability.state, pair.stability.families) == ("rests-on", ("fb",))
    assert "needs judge family fb to be seen" in pair.reasons[1]
    assert pair.pair_state == "not-resolved", "ordered means published and stable"


def test_a_pair_that_cannot_be_tested_has_no_order_and_no_tie():
    found = verdicts(*panel(LEVELS, never=frozenset({frozenset(("ash", "oak"))})))
    pair, leader = found[above("ash", "oak")], found[FIRST]
    for one in (pair, leader):
        assert (one.publication_level, one.stability_status) == ("no-claim", "not tested")
    assert pair.pair_state == "cannot-be-tested"
    assert "ash and oak: cannot be tested (0 common clusters" in pair.reasons[1]
    assert "ahead of each of the one agent it was compared with" in leader.reasons[1]


def test_the_aggregate_and_the_dimensions_share_one_alpha():
    """Four fifths for the aggregate, unless the plan claims nothing else."""
    measurements = [*panel(LEVELS, p=0.015), *on_two_dimensions(0.9)]
    assert verdicts(*measurements)[above("ash", "elm")].publication_level == "no-claim"
    alone = STUDY.model_copy(update={"claims": Claims(dimensions=("aggregate",))})
    assert verdicts(*measurements, study=alone)[above("ash", "elm")].publication_level == "qualified"
    # Dimensions get all of alpha where the aggregate is fully ordered.
    for p, status in ((1e-4, "stable"), ({("elm", "oak"): 0.9}, "tie-class")):
        pair = verdicts(*panel(LEVELS, p=p), *on_two_dimensions(0.008))[above("ash", "elm", "d1")]
        assert (pair.p_adjusted, pair.stability_status) == (pytest.approx(0.048), status)


def test_two_agents_within_the_margin_are_said_with_their_interval():
    rows = [replace(one, detail=one.detail | {"p_equivalence": 0.001, "equivalence_interval": [-0.1, 0.14]})
            if one.name == "contrast" else one for one in panel({"ash": 4.0, "elm": 3.98}, p=0.8)]  # fmt: skip
    rows = [replace(one, value=0.02) if one.name == "lofo.contrast" else one for one in rows]
    found = verdicts(*rows, *passed())
    verdict = found["within[dimension=aggregate,high=ash,low=elm]"]
    assert (verdict.publication_level, verdict.pair_state) == ("headline", "within-the-margin")
    assert verdict.claim.statement == ("ash and elm score within 0.3 of each other on the overall score "
                                       "(gap +0.020, 90 % interval −0.100 to +0.140).")  # fmt: skip
    assert found[above("ash", "elm")].publication_level == "no-claim"


def test_what_follows_from_the_verdicts_never_contradicts_them():
    summary = summary_of([*verdicts(*panel(LEVELS, p={("elm", "oak"): 0.9})).values()], LEVELS)
    assert summary.tiers["aggregate"] == (("ash",), ("elm", "oak"))
    assert summary.ranks["aggregate"] == {"ash": (1, 1), "elm": (2, 3), "oak": (2, 3)}
    assert summary.top_set["aggregate"] == ("ash",)


# --- agreement --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "status", "level"),
    [(0.72, "publish", "qualified"), (0.23, "methodology", "qualified"), (0.1, "halt", "no-claim")],
)
def test_agreement_gates_the_claim(value, status, level):
    verdict = first(*panel(LEVELS), agreed=value)
    assert (verdict.agreement_status, verdict.publication_level) == (status, level)
    assert ("agreement" in verdict.binding) == (status != "publish")
    assert value != 0.23 or "κ 0.23" in verdict.condition


def test_undefined_or_unmeasured_agreement_halts_and_says_why():
    verdict = first(kappa(None), *panel(LEVELS), agreed=None)
    assert verdict.publication_level == "no-claim"
    assert "not defined (undefined: both judges gave one rating)" in verdict.reasons[0]
    assert first(*panel(LEVELS), agreed=None).agreement_status == "halt"
    alone = replace(kappa(None), state="not measurable: one judge family, needs two")
    assert {one.publication_level for one in verdicts(alone, *panel(LEVELS), agreed=None).values()} == {"no-claim"}


def test_the_lowest_gated_format_governs_and_is_named():
    """Position sizing was .43 over pooled formats and .28 within them: formats confound."""
    few = replace(kappa(None, format="v3"), state="too few to gate: 4 records")
    found = [kappa(0.43), kappa(0.28, format="v1"), kappa(0.5, format="v2"), few, *panel(LEVELS)]
    verdict = first(*found, agreed=None)
    assert verdict.agreement_status == "methodology"
    assert "within format v1 at kappa 0.28" in verdict.reasons[0]
    known, rules = index(found), Rules.of(STUDY)
    governing = governing_kappa("aggregate", known, rules)
    assert (governing.id, governing.value) == ("kappa.mean_pairwise[dimension=aggregate,format=v1]", 0.28)
    assert len(governing_agreement("aggregate", known, rules).measurements) == 3
    assert governing_kappa("d9", known, rules) is None
    assert "at kappa 0.399, below 0.40" in first(*panel(LEVELS), agreed=0.399).reasons[0], "not rounded onto a cut-off"


def test_adding_a_judge_that_disagrees_never_upgrades_a_verdict():
    before = verdicts(*panel(LEVELS), agreed=0.6)
    after = verdicts(*panel(LEVELS, dropped={"fa": {"ash": 3.0, "elm": 4.0, "oak": 3.9}}), agreed=0.3)
    for name, verdict in after.items():
        assert GATE_LEVELS.index(verdict.publication_level) >= GATE_LEVELS.index(before[name].publication_level)


# --- fragility --------------------------------------------------------------------------------------------------------

DDOF = {"dimension": "aggregate"}
HALF = {"tables": {"a|b": [[1]]}, "pairs": {"a|b": 0.4}, "clusters": 5}
FRAGILE = [
    # the level as decided, then under each other rule; None: a rule that was not looked at
    ([kappa(0.45, low=0.15, high=0.6), *panel(LEVELS, p=0.005)], "qualified",
     {"lower bound of kappa": "no-claim", "kappa cut-offs 0.5 and 0.25": "qualified", "the other ddof": None}),
    ([kappa(0.22), *panel(LEVELS, p=0.005)], "qualified", {"kappa cut-offs 0.5 and 0.25": "no-claim"}),
    # About one six-dimension mean in six lands on .5, and the rounding of halves has moved an aggregate kappa by .03.
    ([replace(kappa(0.41), detail=HALF | {"half_even": 0.39}), *panel(LEVELS, p=0.005)], "qualified",
     {"half-even rounding": "qualified"}),
    ([replace(kappa(0.21), detail=HALF | {"half_even": 0.19}), *panel(LEVELS, p=0.005)], "qualified",
     {"half-even rounding": "no-claim"}),
    ([kappa(0.72), *panel(LEVELS, p=0.06)], "no-claim",
     {"source: percentile bootstrap": "qualified", "source: sign flip": None}),
    # The other divisor is a rule where it was measured; an undefined kappa under it halts.
    ([kappa(0.72), *panel(LEVELS), measured("kappa.other_ddof", DDOF, 0.35), *passed()], "headline",
     {"the other ddof": "qualified"}),
    ([kappa(0.72), *panel(LEVELS), *passed(),
      measured("kappa.other_ddof", DDOF, None, state="undefined: a pair gave one rating each")], "headline",
     {"the other ddof": "no-claim"}),
    ([kappa(0.72), *panel(LEVELS), *passed(),
      measured("kappa.other_ddof", DDOF, None, state="not needed: both divisors average the same judges")], "headline",
     {"the other ddof": "headline"}),
]  # fmt: skip


@pytest.mark.parametrize(("measurements", "level", "others"), FRAGILE)
def test_fragility_names_each_rule_that_changes_the_level(measurements, level, others):
    verdict = first(*measurements, agreed=None)
    assert verdict.publication_level == level
    assert {name: verdict.fragility.get(name) for name in others} == others


def test_a_sign_flip_that_cannot_reject_is_no_fragility():
    """With five clusters the smallest p of a sign flip is .0625: it would change every verdict and says nothing."""
    for clusters, level in ((5, None), (12, "headline")):
        rows = [replace(item, detail=item.detail | {"p_sign_flip": 2.0 ** (1 - clusters), "clusters": clusters})
                if item.name == "contrast" else item for item in panel(LEVELS)]  # fmt: skip
        assert first(*rows, *passed()).fragility.get("source: sign flip") == level


# --- tables without contrasts -----------------------------------------------------------------------------------------


def untested(levels=LEVELS, dimension="aggregate", **more):
    return [item for item in panel(levels, dimension=dimension, **more) if not item.name.endswith("contrast")]


def test_without_contrasts_the_best_level_is_qualified_and_only_the_leader_leads():
    found = verdicts(*untested(), *passed())
    for name in (FIRST, above("elm", "oak")):
        assert (found[name].stability_status, found[name].publication_level) == ("stable", "qualified")
        assert "significance not tested" in found[name].reasons[1]
        assert "Significance was not tested" in found[name].condition
        assert found[name].binding == ("stability",)
    assert found[FIRST].adversarial_status == "passed"
    assert "own variance of each pair" not in found[FIRST].fragility
    second = found["first[agent=elm,dimension=aggregate]"]
    assert second.publication_level == "no-claim"
    assert "ash comes before it" in second.reasons[1]
    # One dimension may come without contrasts.
    found = verdicts(*panel(LEVELS), kappa(0.7, dimension="d1"), *untested(dimension="d1"), *passed())
    assert found[FIRST].publication_level == "headline"
    assert found["first[agent=ash,dimension=d1]"].publication_level == "qualified"


def test_levels_still_have_to_differ_and_to_survive_the_drops():
    turned = [*untested(dropped={"fb": TURNED}), *passed()]
    assert verdicts(*turned)[above("elm", "oak")].stability_status == "judge-dependent"
    asked = verdicts(*turned, probe("elm", "oak", 0.0, (-0.1, 0.1)))
    assert asked[above("elm", "oak")].stability_status == "tie-class"
    equal = verdicts(*untested({"ash": 4.0, "elm": 4.0}))
    assert equal[above("ash", "elm")].stability_status == "tie-class"
    assert all(v.publication_level == "no-claim" for v in equal.values() if v.claim.asserts_order)
    # Survival of every drop is not a fact about tables in which nobody was dropped.
    for tables in (panel(LEVELS), untested()):
        found = verdicts(*(item for item in tables if not item.name.startswith("lofo.")), *passed())
        for name in (FIRST, above("elm", "oak")):
            assert found[name].stability_status == "judge-dependent"
            assert "no judge family was left out" in found[name].reasons[1] or "one family" in found[name].reasons[1]


# --- biases -----------------------------------------------------------------------------------------------------------


def beside(kind, high, low, value, p, **detail):
    """A contrast that tests what may explain an order."""
    state = "ok" if value is not None else "undefined: every judge shares its family with one of the two"
    labels = {"dimension": "aggregate", "high": high, "low": low}
    return measured(f"{kind}.contrast", labels, value, state=state, detail={"p": p, **detail})


def test_an_order_that_rests_on_the_agents_own_makers_is_no_claim():
    own = beside("recusal", "ash", "elm", 0.1, 0.2)
    found = verdicts(*panel(LEVELS), own, *passed())
    verdict = found[above("ash", "elm")]
    assert (verdict.own_family, verdict.publication_level) == ("rests-on-own-family", "no-claim")
    assert verdict.stability_status == "stable", "the state of its drops"
    assert "rests on judges from the agents' own makers: without them" in " ".join(verdict.reasons)
    assert [cap.field for cap in verdict.caps if cap.level == "no-claim"] == ["own_family"]
    assert found[above("ash", "oak")].own_family == "clear"
    own = replace(beside("recusal", "ash", "elm", -0.4, 0.001), low=-0.6, high=-0.2, level=0.95)
    verdict = verdicts(*panel(LEVELS), own, *passed())[above("ash", "elm")]
    assert verdict.own_family == "turns-without-own-family"
    assert "reverses without the judges" in " ".join(verdict.reasons)
    nobody = beside("recusal", "ash", "elm", None, 1.0)
    verdict = verdicts(*panel(LEVELS), nobody, *passed())[above("ash", "elm")]
    assert (verdict.own_family, verdict.publication_level) == ("no-disinterested-judge", "qualified")
    assert verdict.p_adjusted < 0.05 < verdict.p_adjusted_headline
    assert [one.id for one in verdict.conditions] == ["own-family"]


@pytest.mark.parametrize(("p", "gap", "level", "state"), [
    (1e-4, 1.0, "headline", "clear"),
    (0.3, 1.0, "qualified", "may-be-length"),
    (0.3, 0.03, "headline", "clear"),
])  # fmt: skip
def test_length_caps_a_headline_and_never_an_order(p, gap, level, state):
    """Lengths that are the same within 2 % explain nothing."""
    lengths = [beside("length", high, low, 0.3, p, gap=gap, slope=0.1, raw=0.4, word="clear", overlap=0.6)
               for high, low in combinations(LEVELS, 2)]  # fmt: skip
    verdict = first(*panel(LEVELS), *lengths, *passed())
    assert (verdict.publication_level, verdict.length) == (level, state)
    if level == "qualified":
        assert "ash writes 2.0 times as much as" in verdict.condition
        assert "0.10 points a doubling would explain 0.10 of 0.40" in verdict.condition
        # Texts of one length on which every lead stays significant lift the limit; one of three leads does not.
        reruns = [rerun(high, low, 0.3, 0.02) for high, low in combinations(LEVELS, 2)]
        for some, reached in ((reruns[:1], "qualified"), (reruns, "headline")):
            assert first(*panel(LEVELS), *lengths, *some, *passed()).publication_level == reached


def test_an_order_on_a_dimension_that_copies_the_impression_carries_that_in_its_sentence():
    same = measured("dimension.distinct", {"dimension": "d1"}, 0.99, low=0.97, high=1.01, detail={"p_holm": 0.6})
    found = verdicts(*panel(LEVELS), *on_two_dimensions(), same, *passed())
    verdict = found[above("ash", "elm", "d1")]
    assert (verdict.distinct, verdict.publication_level) == ("not-told-apart", "qualified")
    assert "which these judges do not tell from the overall impression" in verdict.claim.statement
    assert "phi 0.99 [0.97, 1.01]" in verdict.condition
    assert found[above("ash", "elm")].distinct == "not-applicable"


def test_an_order_that_other_judges_might_not_see_says_whose_scores_it_is_about():
    families = measured("panel.families", {}, 3.0, detail={"unknown": "", "own": {"a": [], "b": [], "c": []}})
    wide = [beside("judges", high, low, 0.3, 0.2) for high, low in combinations(LEVELS, 2)]
    analysis = [*panel(LEVELS), *passed(), families]
    verdict = first(*analysis, *wide)
    assert (verdict.other_judges, verdict.publication_level) == ("no", "headline")
    assert verdict.claim.statement.endswith("on the overall score in the scores of these 3 judges.")
    sure = [replace(one, detail={"p": 0.001}) for one in wide]
    assert first(*analysis, *sure).claim.statement.endswith("on the overall score.")
    any_judges = STUDY.model_copy(update={"claims": Claims(judges="any")})
    assert first(*analysis, *wide, study=any_judges).publication_level == "qualified"


def test_scores_that_were_seen_before_the_plan_are_qualified_at_most():
    assert first(*panel(LEVELS), *passed()).publication_level == "headline"
    verdict = first(*panel(LEVELS), *passed(), preregistered=False)
    assert (verdict.publication_level, verdict.preregistered) == ("qualified", False)
    assert [one.id for one in verdict.conditions] == ["not-preregistered"]


# --- claims and amendments --------------------------------------------------------------------------------------------


def test_the_candidates_cover_every_agent_and_pair_of_every_dimension_unless_the_plan_narrows_them():
    rules = Rules(publish=0.4, halt=0.2)
    three = {"b": 4.0, "a": 3.9, "c": 3.8}
    scales = ("aggregate", "d1", "d2")
    known = index([one for name in scales for one in (*panel(three, dimension=name), kappa(0.7, dimension=name))])
    claims = candidate_claims(Claims(), known, rules)
    assert len({claim.id for claim in claims}) == len(claims) == 3 * (3 + 3) + 3
    assert [claim.scope for claim in claims[:4]] == ["aggregate-ranking"] * 3 + ["pairwise-contrast"]
    assert [claim.id.partition("[")[0] for claim in claims[6:9]] == ["within"] * 3
    assert claims[9].scope == "dimension-ranking"
    narrow = candidate_claims(Claims(pairs=False, dimensions=("d1",)), known, rules)
    assert {(claim.dimension, len(claim.subjects)) for claim in narrow} == {("d1", 1)}
    # A pair is claimed in its measured direction, and a withheld claim never states it.
    pairs = candidate_claims(Claims(first=False), index(panel({"zeta": 4.0, "alpha": 3.0})), rules)
    assert [claim.subjects for claim in pairs] == [("zeta", "alpha")] * 2
    assert "above" in pairs[0].statement
    assert suppressed_phrase(pairs[0]) == "Any ranking of alpha and zeta on the overall score."


def test_what_is_of_no_known_kind_or_not_of_one_analysis_is_an_error():
    other = Claim(id="best[x]", scope="pairwise-contrast", statement="", subjects=("a",), dimension="d",
                  asserts_order=True)  # fmt: skip
    with pytest.raises(NotMeasurableError, match="no known kind"):
        kind_of(other)
    assert kind_of(replace(other, id="above[dimension=d,high=a,low=b]")) == "pair"
    with pytest.raises(NotMeasurableError, match="measured twice"):
        index([kappa(0.5), kappa(0.6)])
    with pytest.raises(NotMeasurableError, match="no contrast"):
        decide_claims([kappa(0.7), *(one for one in panel(LEVELS) if one.labels.get("low") != "oak")], STUDY, "hash")


EVERY = {"first", "pair", "within", "cell"}


@pytest.mark.parametrize(
    ("field", "kinds"),
    [
        ("gates.publish", EVERY), ("judges.0.trials", EVERY), ("inference.alpha", EVERY),
        ("inference.test", EVERY - {"cell"}), ("stability.probe.model", EVERY - {"cell"}),
        ("stability", EVERY - {"cell"}), ("cells.verbosity", EVERY), ("cells.terse_share", {"first", "pair"}),
        ("claims.first", {"first"}), ("claims.within", {"within"}), ("contamination.post_cutoff", set()),
        ("engine.concurrency", set()), ("a.field.nobody.knows", EVERY),
    ],
)  # fmt: skip
def test_which_claims_an_amended_field_touches(field, kinds):
    weak = [*panel(LEVELS, p={("elm", "oak"): 0.9}), *passed()]
    before, found = verdicts(*weak, variants=False), verdicts(*weak, amended=[field, field], variants=False)
    assert {kind_of(v.claim) for v in found.values() if v.amended} == kinds
    for name, verdict in found.items():
        assert verdict.amended in ((), (field,))
        assert (f"Amended after the lock: {field}." in verdict.reasons) == bool(verdict.amended)
        assert verdict.publication_level == before[name].publication_level, "an amendment changes no level"


# --- the rules of the paper -------------------------------------------------------------------------------------------

AGREEMENT = ("publish", "methodology", "halt")
STABILITY = ("stable", "tie-class", "judge-dependent")
ADVERSARIAL = ("passed", "construct-sensitive", "not tested", "contaminated")
GATE_LEVELS = ("headline", "qualified", "no-claim")


def test_gates_forgive_binary_fractions_and_undefined_agreement_halts():
    """(0.3 + 0.4 + 0.5) / 3 < 0.4 in binary floating point."""
    assert (0.3 + 0.4 + 0.5) / 3 < 0.4
    found = [agreement_status(value) for value in ((0.3 + 0.4 + 0.5) / 3, 0.4 - 1e-8, None, math.nan)]
    assert found == ["publish", "methodology", "halt", "halt"]


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_more_agreement_never_has_a_worse_status(one, other):
    low, high = sorted((one, other))
    assert AGREEMENT.index(agreement_status(high)) <= AGREEMENT.index(agreement_status(low))


@given(st.floats(-4, 4), st.booleans())
def test_cell_b_has_an_outcome_for_every_difference(delta, significant):
    outcome = cell_b_outcome(delta, significant)
    assert outcome != "verbosity-bias" or (delta < -0.5 and significant)
    assert outcome != "terse-favoured" or delta > 0.3
    assert outcome != "substance" or abs(delta) <= 0.3 + 1e-9


def test_the_cut_offs_of_cell_b_can_be_a_plans():
    outcomes = {-0.2: "inconclusive", -0.1: "substance", -0.25: "verbosity-bias", 0.15: "terse-favoured"}
    assert {delta: cell_b_outcome(delta, True, substance=0.1, verbosity=0.2) for delta in outcomes} == outcomes
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
    def level(*fields):
        return GATE_LEVELS.index(publication_level(*fields, asserts_order=order, significance_tested=tested))

    here = level(agreement, stability, adversarial)
    for scale, position in ((AGREEMENT, 0), (STABILITY, 1)):
        fields = [agreement, stability, adversarial]
        for worse in scale[scale.index(fields[position]) + 1 :]:
            fields[position] = worse
            assert level(*fields) >= here
    # All green is a headline, unless significance was not tested; contamination withholds whatever else is green.
    green = (agreement, stability, adversarial) == ("publish", "stable", "passed")
    assert (here == 0) == (green and tested)
    assert adversarial != "contaminated" or here == 2
