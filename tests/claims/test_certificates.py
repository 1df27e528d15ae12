"""Certificates verify from their own tables, and a tampered one does not."""

from __future__ import annotations

import contextlib
import copy
import re

import pytest
from analysis import kappa, panel
from certified import BASE, CHOSEN, DESIGNS, analysed, certified, decided, every, plan_of, tampered, written
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.claims import KEPT, certificate, certificate_name, certificates, decide_claims, index, kind_of, verify
from assaymark.errors import InputError
from assaymark.records import canonical_json

STATUSES = {
    "agreement_status": ("publish", "methodology", "halt"),
    "stability_status": ("stable", "tie-class", "judge-dependent", "not tested"),
    "adversarial_status": ("passed", "construct-sensitive", "contaminated", "not tested"),
    "permitted_publication_level": ("headline", "qualified", "no-claim"),
    "claim_scope": ("aggregate-ranking", "dimension-ranking", "pairwise-contrast", "adversarial-cell"),
}
STATES = {
    "own_family": ("clear", "rests-on-own-family", "turns-without-own-family", "unknown"),
    "length": ("clear", "may-be-length", "length", "not-tested"),
    "distinct": ("passed", "not-told-apart", "smaller", "not-tested"),
    "other_judges": ("yes", "no", "not-tested"),
    "human_anchor": ("confirms", "undecided", "contradicts"),
    "pair_state": ("ordered", "not-resolved", "cannot-be-tested", "within-the-margin"),
    "preregistered": (True, False),
}


FIRST = every("plain")["first[agent=agent-0,dimension=aggregate]"]
PLAN = plan_of(BASE)


# --- honest -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DESIGNS)
def test_every_honest_certificate_verifies_with_its_whole_fragility_table(name):
    for claim, found in every(name).items():
        result = verify(found)
        assert result.differences == (), claim
        assert result.ok


def test_the_designs_hold_every_kind_of_claim_and_state():
    verdicts = [verdict for name in DESIGNS for verdict in decided(name)[0].values()]
    assert {kind_of(one.claim) for one in verdicts} == {"first", "pair", "within", "cell"}
    assert {one.publication_level for one in verdicts} == {"headline", "qualified", "no-claim"}
    assert {one.stability_status for one in verdicts} == {"stable", "tie-class", "judge-dependent", "not tested"}
    assert {one.stability.state for one in verdicts if one.stability} >= {"stable", "rests-on", "not-measurable"}
    assert {one.pair_state for one in verdicts} == {
        "ordered", "ordered-by-less-than-the-margin", "within-the-margin", "not-resolved", "cannot-be-tested", None,
    }  # fmt: skip
    assert {one.own_family for one in verdicts} >= {"clear", "rests-on-own-family", "no-disinterested-judge"}
    assert {one.length for one in verdicts} >= {"clear", "may-be-length", "not-tested"}
    assert {one.distinct for one in verdicts} >= {"passed", "not-told-apart", "smaller", "not-applicable"}
    assert {one.other_judges for one in verdicts} >= {"yes", "no", "not-tested"}
    moved = [one for one in verdicts if {*one.fragility.values()} - {one.publication_level}]
    assert len(moved) > 50


@settings(deadline=None, max_examples=12)
@given(
    st.sampled_from(["conflicts", "any judges", "an agent that is often absent", "three dimensions of five agents"]),
    st.floats(1e-4, 0.49), st.floats(0.01, 1), st.sampled_from([None, "aggregate", "d0"]), st.integers(0, 5),
)  # fmt: skip
def test_any_alpha_and_share_decide_the_same_from_a_certificate(name, alpha, share, wanted, start):
    """The ranking procedure's result for the pairs outside a claim depends on both."""
    design = BASE | DESIGNS[name]
    plan = f"inference.alpha = {alpha!r}\ninference.aggregate_share = {share!r}\n{design['plan']}"
    plan += "" if wanted is None else f'\nclaims.dimensions = ["{wanted}"]'
    study = plan_of(design | {"plan": plan})
    # The word about length was measured under another alpha.
    measurements = [item for item in analysed(name) if item.name != "length.contrast"]
    verdicts = decide_claims(measurements, study, "f" * 64)[start::6]
    for verdict, made in zip(verdicts, certificates(verdicts, index(measurements), study), strict=True):
        assert verify(written(made)).differences == (), verdict.claim.id


def test_a_claim_on_tables_without_contrasts_is_decided_by_levels_again():
    measurements = [item for item in analysed("plain") if item.name.rpartition(".")[2] != "contrast"]
    verdicts, known = decide_claims(measurements, PLAN, "f" * 64), index(measurements)
    made = [written(one) for one in certificates(verdicts, known, PLAN)]
    assert [verify(one).differences for one in made] == [()] * len(made)
    texts = verify(tampered(made[0], "drops", 0, "value", value=1.0)).differences
    assert any(text.startswith("level of agent") for text in texts)


def test_it_holds_tables_rules_and_no_text():
    assert (FIRST["format"], FIRST["plan_hash"]) == ("assaymark certificate 3", "f" * 64)
    assert FIRST["tuple"]["permitted_publication_level"] == "qualified"
    assert len(FIRST["agreement"][0]["tables"]["j0|j1"]) == 5
    assert set(FIRST["contrasts"][0]["cluster_sums"]) == {f"regime-{c}" for c in range(6)}
    assert FIRST["rules"]["margin"] == pytest.approx(0.3)
    assert FIRST["study"]["agents"] == [f"agent-{a}" for a in range(4)]
    assert FIRST["other_pairs"]["scales"]["d0"] is None
    assert len(FIRST["other_pairs"]["scales"]["aggregate"]["order"]) == 3
    assert set(FIRST) >= {"conditions", "caps", "pair_state", "p", "p_adjusted", "p_adjusted_headline", "stability"}
    assert canonical_json(certified(FIRST["claim"]["id"])) == canonical_json(FIRST), "equal inputs make equal bytes"
    for found in every("one scale").values():  # a plan without a claim on the aggregate has none in its family
        assert set(found["other_pairs"]["scales"]) == {"d1"}


def test_it_holds_every_measurement_that_its_verdict_rests_on_and_no_part_of_one_is_forgotten():
    """A new part is either put into certificates or named here, because nothing is decided on it."""
    unused = {
        "kappa.mean_pairwise": {"bootstrap"}, "cell.kappa": {"bootstrap"}, "cell.agreement": {"status"},
        "cell.gate": {"honest_mean", "honest_q1", "cutoff", "mde", "in_mde", "no_parent"},
        "contrast": {"resolved"}, "lofo.contrast": {"within"},
    }  # fmt: skip
    for name in DESIGNS:
        for claim, found in every(name).items():
            parts = [part for part in found.values() if isinstance(part, list)]
            held = {entry.get("id") for part in parts for entry in part if isinstance(entry, dict)}
            assert held >= set(found["rests_on"]), claim
        for item in analysed(name):
            if item.name in KEPT and KEPT[item.name].parts:
                assert set(item.detail) <= {*KEPT[item.name].parts, *unused.get(item.name, ())}, item.id


def test_certificate_names_are_safe_and_unique():
    found = decide_claims([kappa(0.72), *panel({"a/b": 4.0, "a b": 3.0, "..": 2.0})], PLAN, "hash")
    names = {certificate_name(verdict) for verdict in found}
    assert len(names) == len(found)
    assert all("/" not in name and " " not in name and not name.startswith(".") for name in names)


# --- tampering ------------------------------------------------------------------------------------------------------


def test_kappa_follows_from_its_tables_and_the_verdict_from_kappa():
    tables, value = FIRST["agreement"][0]["tables"], FIRST["agreement"][0]["value"]
    raised = verify(tampered(FIRST, "agreement", 0, "value", value=0.99))
    assert f"kappa on aggregate: the certificate says 0.99, its tables give {value:.2f}" in raised.differences
    assert not raised.ok
    apart = [[0, 0, 60, 0, 0], [0] * 5, [60, 0, 0, 0, 0], [0] * 5, [0] * 5]
    differences = verify(tampered(FIRST, "agreement", 0, "tables", value=dict.fromkeys(tables, apart))).differences
    assert "agreement: the certificate says publish, its tables give halt" in differences
    assert "publication level: the certificate says qualified, its tables give no-claim" in differences
    constant = {pair: [[96, 0], [0, 0]] for pair in tables}
    texts = verify(tampered(FIRST, "agreement", 0, "tables", value=constant)).differences
    assert any("kappa on aggregate: the certificate says" in text and "nothing" in text for text in texts)
    cut_off = verify(tampered(FIRST, "rules", "publish", value=0.99))
    assert "agreement: the certificate says publish, its tables give methodology" in cut_off.differences


@pytest.mark.parametrize(("name", "claim"), [CHOSEN[k] for k in (0, 3, 4, 5, 9)])
def test_any_other_status_is_found(name, claim):
    found = every(name)[claim]
    for field, values in {**STATUSES, **STATES}.items():
        where = ("tuple", field) if field in STATUSES else (field,)
        stated = found["tuple"][field] if field in STATUSES else found[field]
        assert not [one for one in set(values) - {stated} if verify(tampered(found, *where, value=one)).ok]


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from leaves(part, (*path, at))
    else:
        yield path, value


GIVEN = {
    "rules": "the rules, judges, agents and dimensions",
    "other_pairs": "p-values of the pairs that the claim is not about",
    r"agreement kappa\.mean_pairwise (low|high|clusters)": "intervals of kappa",
    r"agreement cell\.kappa (low|high|clusters)": "intervals of kappa",
    "agreement .* half_even": "half-even rounding",
    "agreement cell.agreement (value|n|each|p|drops|leave_one_out)": "kappa over a control cell",
    r"design order\.autocorrelation (lags|flag|n)": "the dependence of clusters",
    "design panel.families (missing|in_parts)": "whether grades are missing",
    "contrasts contrast (mean_variance|prior_df|rho|effective)": "what the pairs share",
    "contrasts contrast (others|p_specific)": "differences on the other dimensions",
    "contrasts contrast p_bootstrap": "p-values of the bootstrap",
    "contrasts contrast p_sign_flip": "p-values of the sign flip",
    "contrasts contrast p_cluster_t": "p-values of the cluster t",
    r"drops lofo\.contrast (variance|mean_variance|prior_df|p_adjusted|rho|effective)": "variances without each",
    r"drops lofo\.contrast se": "standard errors of contrasts without each judge family",
    r"drops lofo\.contrast (value|p|n)": "(the other contrasts of a leader|contrasts) without each judge family",
    r"biases recusal\.contrast .*": "contrasts with judges standing aside",
    r"biases length\.contrast .*": "contrasts at equal length",
    r"biases judges\.contrast .*": "contrasts over other judges",
    r"biases dimension\.distinct .*": "whether judges tell dimensions",
    r"cells cell\.drop .*": "without each judge family",
    r"cells cell\.halo (low|high)": "intervals of halos",
    r"cells cell\.halo value": "halo|gates of control cells without each judge family",
    r"style length_matched\.contrast .*": "reruns at equal length",
}
"""Numbers that cannot be recomputed, and the note that says so."""


def called(found, path):
    """A place in a certificate by section, measurement and part."""
    if path[0] in ("rules", "other_pairs") or len(path) < 3 or not isinstance(path[1], int):
        return str(path[0])
    return f"{path[0]} {found[path[0]][path[1]].get('id', '').partition('[')[0]} {path[2]}"


def moved(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value + 0.05 if value < 0.9 else value - 0.05


def seen(found, path, value):
    """True if another value in one place is rejected, reported as a difference, or noted as taken as given."""
    with contextlib.suppress(InputError):
        result = verify(tampered(found, *path, value=value))
        if not result.ok:
            return True
        place = called(found, path)
        notes = [note for pattern, note in GIVEN.items() if re.fullmatch(pattern, place)]
        return any(re.search(note, text) for note in notes for text in result.notes)
    return True


@pytest.mark.parametrize(("name", "claim"), CHOSEN)
def test_any_other_number_is_found_or_taken_as_given(name, claim):
    """One number of every kind; the next test goes through the others at random."""
    found = every(name)[claim]
    numbers = [(path, value) for path, value in leaves(found) if isinstance(value, int | float) and path[0] != "study"]
    kinds = {(called(found, path), *(part for part in path[3:] if part in ("p", "floor", "length"))): (path, value)
             for path, value in numbers}  # fmt: skip
    assert [path for path, value in kinds.values() if not seen(found, path, moved(value))] == []


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(CHOSEN), st.data())
def test_a_number_moved_by_little_is_found_too(case, data):
    found = every(case[0])[case[1]]
    numbers = [(path, value) for path, value in leaves(found) if isinstance(value, float) and path[0] != "study"]
    path, value = data.draw(st.sampled_from(numbers))
    assert seen(found, path, value * data.draw(st.sampled_from([0.5, 0.999, 1.001, -1])) + 1e-6)


@pytest.mark.parametrize(
    ("section", "name", "parts"),
    [
        ("contrasts", "contrast", ("value", "p", "se", "df", "variance", "low", "high", "n", "clusters", "p_cluster_t",
                                   "p_bootstrap", "p_own_variance", "p_equivalence")),
        ("drops", "lofo.contrast", ("p", "se", "df")),
        ("biases", "judges.contrast", ("p", "se", "df")),
        ("cells", "cell.gate", ("value", "p", "p_holm", "low", "high", "n")),
        ("style", "terse.share", ("value", "below", "tokens")),
    ],
)  # fmt: skip
def test_what_has_a_table_is_recomputed_and_never_only_noted(section, name, parts):
    for at, entry in enumerate(FIRST[section]):
        for part in parts if entry["id"].startswith(f"{name}[") else ():
            with contextlib.suppress(InputError):
                assert part not in entry or not verify(tampered(FIRST, section, at, part, value=moved(entry[part]))).ok


@pytest.mark.parametrize(
    ("section", "part"), [("biases", "p"), ("biases", "p_equivalence"), ("biases", "low"), ("biases", "word")]
)
def test_what_may_explain_a_difference_is_recomputed_from_its_standard_error(section, part):
    found = every("conflicts")["within[dimension=aggregate,high=agent-0,low=agent-1]"]
    places = [at for at, entry in enumerate(found[section]) if part in entry and "judges" not in entry["id"]]
    assert places
    for at in places:
        value = "length" if part == "word" else moved(found[section][at][part])
        assert not verify(tampered(found, section, at, part, value=value)).ok


def test_the_higher_of_a_pair_is_the_one_that_the_sums_say():
    found = copy.deepcopy(every("plain")["above[dimension=aggregate,high=agent-0,low=agent-1]"])
    (entry,) = found["contrasts"]
    entry["cluster_sums"] = {name: [-total, n] for name, (total, n) in entry["cluster_sums"].items()}
    entry["value"] = -entry["value"]
    entry["low"], entry["high"] = -entry["high"], -entry["low"]
    entry["equivalence_interval"] = [-end for end in reversed(entry["equivalence_interval"])]
    assert any("whether the first is higher" in text for text in verify(found).differences)


def test_a_leader_is_as_stable_as_all_its_pairs_so_that_a_certificate_holds_what_drops_do_to_them():
    """They need no correction in a drop if all of them survive it, also those that the claim is not about."""
    made = every("a leader among six")
    weaker = []
    for claim in made:
        if claim.startswith("above[dimension=aggregate,high=agent-0"):
            found = copy.deepcopy(made[claim])
            others = [entry for entry in found["drops"] if "variance" not in entry]
            assert len(others) == 4 * 3
            others[0]["p"] = 0.9
            texts = verify(found).differences
            weaker += [text for text in texts if text.startswith("stability: the certificate says stable")]
    assert weaker


def test_halos_drops_and_fragility_are_recomputed():
    for at, entry in enumerate(FIRST["cells"]):
        if entry["id"].startswith("cell.halo"):
            assert not verify(tampered(FIRST, "cells", at, "triggered", value=not entry["triggered"])).ok
    # Contrasts without a family average back to the contrast.
    for at, entry in enumerate(FIRST["drops"]):
        texts = verify(tampered(FIRST, "drops", at, "value", value=entry["value"] + 0.01)).differences
        assert any("its numbers without each judge family give" in text for text in texts)
    for rule, level in FIRST["fragility"].items():
        other = "headline" if level != "headline" else "no-claim"
        assert not verify(tampered(FIRST, "fragility", rule, value=other)).ok
    assert not verify(tampered(FIRST, "fragility", value={})).ok


def test_tests_that_cannot_be_made_again_are_taken_as_given_and_a_note_says_so():
    """Above eight clusters the bootstrap draws; other tests are of the records that every judge graded."""
    note, claim = "p-values of the bootstrap over so many clusters are taken as given", FIRST["claim"]["id"]
    assert note in verify(every("nine clusters")[claim]).notes
    assert note not in verify(FIRST).notes
    found = every("missing grades")[claim]
    assert "p-values of the cluster t where grades are missing are taken as given" in verify(found).notes
    assert not verify(tampered(found, "contrasts", 0, "p_own_variance", value=0.5)).ok


@pytest.mark.parametrize(
    "path",
    [
        ("reasons", 0), ("reasons", 1), ("condition",), ("conditions", 0, "text"), ("conditions", 0, "id"),
        ("caps", 0, "field"), ("claim", "statement"), ("claim", "id"), ("binding", 0), ("amended", 0), ("rests_on", 0),
        ("stability", "state"),
    ],
)  # fmt: skip
def test_words_are_compared_too(path):
    value = {"amended": "gates.halt", "stability": "rests-on", "conditions": "agreement"}.get(path[0], "other")
    value = "first[agent=agent-0,dimension=d0]" if path == ("claim", "id") else value
    assert not verify(tampered(FIRST, *path, value=value)).ok


def test_the_pairs_that_a_claim_is_not_about_decide_with_it():
    """Dimensions have all of alpha once every aggregate pair is published; what is rejected is no longer counted."""
    found = every("plain")["above[dimension=d0,high=agent-0,low=agent-2]"]
    assert found["reasons"][1].endswith(".01 needed.")
    opened = verify(tampered(found, "other_pairs", "scales", "aggregate", "p", "p", value=[1e-9] * 6))
    assert "stability: the certificate says tie-class, its tables give stable" in opened.differences
    fewer = verify(tampered(found, "other_pairs", "scales", "d1", "p", "p", value=[1e-9] * 6))
    assert any(text.startswith("p adjusted: the certificate says 0.013") for text in fewer.differences)


# --- size -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "most"),
    [
        ({"dimensions": 6, "clusters": 20, "lengths": "alike", "conflicts": 3}, 60_000),
        ({"agents": 16, "dimensions": 4, "clusters": 12, "cycles": 2, "lengths": "alike", "conflicts": 3}, 150_000),
    ],
)
def test_a_certificate_stays_small(design, most, monkeypatch):
    firsts_alone = {"plan": "claims.pairs = false\nclaims.within = false"}
    monkeypatch.setitem(DESIGNS, f"up to {most}", design | firsts_alone)
    verdicts, known, plan = decided(f"up to {most}")
    firsts = [v for v in verdicts.values() if kind_of(v.claim) == "first" and v.claim.dimension in ("aggregate", "d0")]
    for verdict in firsts[::4]:
        made = certificate(verdict, known, plan)
        assert len(canonical_json(made)) < most
        assert verify(written(made)).ok


# Certificates that are none, whoever wrote them: every problem at once, and nothing but an `InputError`


def test_what_is_no_certificate_of_this_version_is_refused():
    for number in (1, 2):
        with pytest.raises(InputError, match=r"assaymark 0\.1") as error:
            verify({**FIRST, "format": f"assaymark certificate {number}"})
        assert [problem.where for problem in error.value.problems] == ["format"]
    for other in ([], "text", None, 3):
        with pytest.raises(InputError, match="must be a JSON object"):
            verify(other)


def test_every_problem_of_a_malformed_certificate_is_named():
    found = copy.deepcopy(FIRST)
    found["agreement"][0]["tables"]["j0|j1"] = [[1, 2], [3]]
    found["contrasts"][0]["p"] = 1.5
    found["contrasts"][1]["surprise"] = 1
    found["drops"][0]["id"] = "lofo.contrast[agent=x]"
    found["cells"][0]["id"] = "cell.other[cell=cell_a]"
    with pytest.raises(InputError) as error:
        verify(found)
    places = [problem.where for problem in error.value.problems]
    assert any(place.startswith("agreement.0.tables") for place in places)
    assert {"contrasts.0.p", "contrasts.1.surprise", "drops.0.labels", "cells.0.id"} <= set(places)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c.pop("tuple"), "tuple.permitted_publication_level"),
        (lambda c: c.update(tuple=3), "tuple.claim_scope"),
        (lambda c: c.update(extra=1), "extra"),
        (lambda c: c["tuple"].update(extra=1), "extra"),
        (lambda c: c["tuple"].update(agreement_status="maybe"), "tuple.agreement_status"),
        (lambda c: c["claim"].update(subjects=[]), "claim.subjects"),
        (lambda c: c["claim"].update(subjects=["nobody"]), "must be among the agents"),
        (lambda c: c["claim"].update(dimension="d9"), "claim.dimension"),
        (lambda c: c["claim"].update(id="best[x]", subjects=["agent-0", "agent-1"]), "no known kind"),
        (lambda c: c["contrasts"].pop(0), "lacks what its claim rests on"),
        (lambda c: c["contrasts"].clear(), "other_pairs.scales"),
        (lambda c: c["contrasts"].append(c["contrasts"][0]), "there twice"),
        (lambda c: c["contrasts"][0].update(value=None), "must be the reason"),
        (lambda c: c["contrasts"][0].update(value=float("nan")), "no JSON form"),
        (lambda c: c["contrasts"][0].update(id="contrast[other]"), "must be dimension, high, low"),
        (lambda c: c["contrasts"][0]["cluster_sums"].update(x=[1.0, 0]), "cluster_sums"),
        (lambda c: c["rules"].pop("margin"), "rules.margin"),
        (lambda c: c["rules"].update(surprise=1), "rules.surprise"),
        (lambda c: c["rules"].update(alpha=1.5), "rules.alpha"),
        (lambda c: c["rules"].update(margin=0.0), "rules.margin"),
        (lambda c: c["rules"].update(source=True), "rules.source"),
        (lambda c: c["rules"].update(scales=["d0"]), "claim.dimension"),
        (lambda c: c["study"].update(agents=["b", "a"]), "alphabetical order"),
        (lambda c: c["study"].update(dimensions=["d0", "d0"]), "study.dimensions"),
        (lambda c: c.update(other_pairs=None), "other_pairs.scales"),
        (lambda c: c["other_pairs"]["scales"].pop("d0"), "other_pairs.scales"),
        (lambda c: c["other_pairs"]["scales"].update(aggregate=None), "is needed"),
        (lambda c: c["other_pairs"]["scales"]["aggregate"].update(order=">>"), "must have one entry for each of 3"),
        (lambda c: c["other_pairs"]["scales"]["aggregate"].update(order="<=>"), "order"),
        (lambda c: c["other_pairs"]["scales"]["aggregate"]["p"].pop("p"), "must be p"),
        (lambda c: c["other_pairs"]["tests"].append("p_magic"), "other_pairs.tests"),
    ],
)
def test_malformed_certificates_are_refused(change, told):
    found = copy.deepcopy(FIRST)
    change(found)
    with pytest.raises(InputError, match=re.escape(told)):
        verify(found)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([1e300, -1.0, 0.0, 1e-300, 2.0]), st.just(""),
    st.text(max_size=3), st.just([]), st.just({}), st.lists(st.floats(0, 1), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)  # fmt: skip


def places(value, path=()):
    """Every place in a certificate, those of lists and objects too."""
    if path:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(CHOSEN), st.data())
def test_whatever_stands_anywhere_is_refused_or_compared(case, data):
    """Nothing but an `InputError` comes out of a file that anybody may have written."""
    found = copy.deepcopy(every(case[0])[case[1]])
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(found))))
        place = found
        for step in path[:-1]:
            place = place[step]
        if data.draw(st.booleans()):
            place[path[-1]] = data.draw(JUNK)
        else:
            del place[path[-1]]
    with contextlib.suppress(InputError):
        verify(found)
