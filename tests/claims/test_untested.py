"""Tables handed in without contrasts, other divisors, other tests, amendments, and which kappa governs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis import LEVELS, STUDY, kappa, measured, panel, passed, probe, verdicts

from assaymark.claims import Rules, governing_agreement, index, kind_of, pair_claim
from assaymark.errors import NotMeasurableError
from assaymark.records import Claim


def untested(levels=LEVELS, dimension="aggregate", **more):
    return [item for item in panel(levels, dimension=dimension, **more) if not item.name.endswith("contrast")]


LEADER, PAIR = "first[agent=ash,dimension=aggregate]", "above[dimension=aggregate,high=elm,low=oak]"


def test_without_contrasts_the_best_level_is_qualified():
    found = verdicts(*untested(), *passed())
    for name in (LEADER, PAIR):
        assert (found[name].stability_status, found[name].publication_level) == ("stable", "qualified")
        assert "significance not tested" in found[name].reasons[1]
        assert "Significance was not tested" in found[name].condition
        assert found[name].binding == ("stability",)
    assert found[LEADER].adversarial_status == "passed"
    assert "own variance of each pair" not in found[LEADER].fragility


def test_without_contrasts_only_the_leader_leads():
    found = verdicts(*untested(), *passed())
    assert found["first[agent=elm,dimension=aggregate]"].publication_level == "no-claim"
    assert "ash comes before it" in found["first[agent=elm,dimension=aggregate]"].reasons[1]


def test_levels_still_have_to_survive_the_drops():
    turned = untested(dropped={"fb": {"ash": 4.4, "elm": 3.5, "oak": 3.9}})
    found = verdicts(*turned, *passed())
    assert found[PAIR].stability_status == "judge-dependent"
    assert verdicts(*turned, probe("elm", "oak", 0.0, (-0.1, 0.1)))[PAIR].stability_status == "tie-class"


def test_equal_levels_have_no_order():
    found = verdicts(*untested({"ash": 4.0, "elm": 4.0}))
    assert found["above[dimension=aggregate,high=ash,low=elm]"].stability_status == "tie-class"
    assert all(v.publication_level == "no-claim" for v in found.values() if v.claim.asserts_order)


def test_one_dimension_may_come_without_contrasts():
    dims = [kappa(0.7, dimension="d1"), *untested(dimension="d1")]
    found = verdicts(*panel(LEVELS), *dims, *passed())
    assert found[LEADER].publication_level == "headline"
    assert found["first[agent=ash,dimension=d1]"].publication_level == "qualified"


def test_tables_without_any_drop_depend_on_the_judges():
    """Survival of every drop is not a fact about tables in which nobody was dropped."""
    for tables in (panel(LEVELS), untested()):
        kept = [item for item in tables if not item.name.startswith("lofo.")]
        found = verdicts(*kept, *passed())
        for name in (LEADER, PAIR):
            assert found[name].stability_status == "judge-dependent"
            assert "no judge family was left out" in found[name].reasons[1] or "one family" in found[name].reasons[1]


# --- fragility ------------------------------------------------------------------------------------------------------


def test_the_other_divisor_is_a_rule_where_it_was_measured():
    other = measured("kappa.other_ddof", {"dimension": "aggregate"}, 0.35)
    verdict = verdicts(*panel(LEVELS), other, *passed())[LEADER]
    assert verdict.publication_level == "headline"
    assert verdict.fragility["the other ddof"] == "qualified"
    assert "the other ddof" not in verdicts(*panel(LEVELS), *passed())[LEADER].fragility


def test_an_undefined_kappa_under_the_other_divisor_halts():
    labels = {"dimension": "aggregate"}
    undefined = measured("kappa.other_ddof", labels, None, state="undefined: a pair gave one rating each")
    assert verdicts(*panel(LEVELS), undefined, *passed())[LEADER].fragility["the other ddof"] == "no-claim"
    unneeded = measured("kappa.other_ddof", labels, None, state="not needed: both divisors average the same judges")
    assert verdicts(*panel(LEVELS), unneeded, *passed())[LEADER].fragility["the other ddof"] == "headline"


def test_a_sign_flip_that_cannot_reject_is_no_fragility():
    """With five clusters the smallest p of a sign flip is .0625: it would change every verdict and says nothing."""

    def flipped(clusters):
        rows = [replace(item, detail=item.detail | {"p_sign_flip": 2.0 ** (1 - clusters), "clusters": clusters})
                if item.name == "contrast" else item for item in panel(LEVELS)]  # fmt: skip
        return verdicts(*rows, *passed())[LEADER].fragility

    assert "source: sign flip" not in flipped(5)
    assert flipped(12)["source: sign flip"] == "headline"


# --- agreement ------------------------------------------------------------------------------------------------------


def test_the_governing_kappa_is_named():
    known = index([kappa(0.43), kappa(0.28, format="v1"), kappa(0.5, format="v2"), *panel(LEVELS)])
    found = governing_agreement("aggregate", known, Rules.of(STUDY))
    assert found.governing == "kappa.mean_pairwise[dimension=aggregate,format=v1]"
    assert (found.status, found.kappa) == ("methodology", 0.28)
    assert len(found.measurements) == 3
    assert governing_agreement("d9", known, Rules.of(STUDY)).governing is None


def test_a_kappa_just_below_a_cutoff_is_not_rounded_onto_it():
    assert "at kappa 0.399, below 0.40" in verdicts(*panel(LEVELS), agreed=0.399)[LEADER].reasons[0]


# --- amendments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "kinds"),
    [
        ("gates.publish", {"first", "pair", "within", "cell"}),
        ("judges.0.trials", {"first", "pair", "within", "cell"}),
        ("inference.alpha", {"first", "pair", "within", "cell"}),
        ("inference.test", {"first", "pair", "within"}),
        ("stability.probe.model", {"first", "pair", "within"}),
        ("stability", {"first", "pair", "within"}),
        ("cells.verbosity", {"first", "pair", "within", "cell"}),
        ("cells.terse_share", {"first", "pair"}),
        ("claims.first", {"first"}),
        ("claims.within", {"within"}),
        ("contamination.post_cutoff", set()),
        ("engine.concurrency", set()),
        ("a.field.nobody.knows", {"first", "pair", "within", "cell"}),
    ],
)
def test_which_claims_an_amended_field_touches(field, kinds):
    weak = panel(LEVELS, p={("elm", "oak"): 0.9})
    found = verdicts(*weak, *passed(), amended=[field])
    assert {kind_of(v.claim) for v in found.values() if v.amended} == kinds
    for verdict in found.values():
        assert verdict.amended in ((), (field,))
        told = f"Amended after the lock: {field}."
        assert (told in verdict.reasons) == bool(verdict.amended)


def test_an_amendment_changes_no_level():
    before, after = verdicts(*panel(LEVELS)), verdicts(*panel(LEVELS), amended=["gates.publish", "gates.publish"])
    assert [v.publication_level for v in before.values()] == [v.publication_level for v in after.values()]
    assert after[LEADER].amended == ("gates.publish",)


def test_a_claim_of_no_known_kind_is_an_error():
    other = Claim(
        id="best[x]", scope="pairwise-contrast", statement="", subjects=("a",), dimension="d", asserts_order=True
    )
    with pytest.raises(NotMeasurableError, match="no known kind"):
        kind_of(other)
    assert kind_of(pair_claim("d", "a", "b")) == "pair"
