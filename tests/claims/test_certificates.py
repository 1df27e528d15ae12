"""Certificates verify from their own tables, and a tampered one does not."""

from __future__ import annotations

import contextlib
import copy
import json
import re

import pytest
from analysis import kappa, panel
from certified import PLAN, decided
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.claims import certificate, certificate_name, decide_claims, kind_of, verify
from assaymark.errors import InputError
from assaymark.records import canonical_json

STATUSES = {
    "agreement_status": ("publish", "methodology", "halt"),
    "stability_status": ("stable", "tie-class", "judge-dependent"),
    "adversarial_status": ("passed", "construct-sensitive", "contaminated", "not tested"),
    "permitted_publication_level": ("headline", "qualified", "no-claim"),
    "claim_scope": ("aggregate-ranking", "dimension-ranking", "pairwise-contrast", "adversarial-cell"),
}


def certified(name, clusters=6):
    verdicts, known = decided(clusters)
    return json.loads(canonical_json(certificate(verdicts[name], known, PLAN)))


def every_certificate():
    verdicts, _ = decided()
    return {name: certified(name) for name in verdicts}


EVERY = every_certificate()
CHOSEN = [
    next(name for name in EVERY if name.startswith(head))
    for head in (
        "first[agent=agent-0,dimension=aggregate",
        "above",
        "ranking",
        "tie",
        "cell[cell=cell_b",
        "first[agent=agent-1",
    )
]


@pytest.mark.parametrize("name", sorted(EVERY))
def test_an_honest_certificate_verifies(name):
    found = verify(EVERY[name])
    assert found.ok, found.differences
    assert found.differences == ()


def test_every_kind_of_claim_was_certified():
    verdicts, _ = decided()
    assert {kind_of(v.claim) for v in verdicts.values()} == {"first", "pair", "ranking", "tie", "cell"}
    assert {v.stability_status for v in verdicts.values()} >= {"stable", "tie-class"}


def test_it_holds_tables_and_no_text():
    found = EVERY["first[agent=agent-0,dimension=aggregate]"]
    assert found["tuple"]["permitted_publication_level"] == "qualified"
    assert found["plan_hash"] == "f" * 64
    assert len(found["agreement"][0]["tables"]["j0|j1"]) == 5
    assert set(found["contrasts"][0]["cluster_sums"]) == {f"regime-{c}" for c in range(6)}
    assert found["holm_family"]["size"] == 6
    assert len(found["levels"]) == 4
    assert found["format"] == "assaymark certificate 2"


def test_equal_inputs_make_equal_bytes():
    name = CHOSEN[0]
    assert canonical_json(certified(name)) == canonical_json(EVERY[name])


def test_certificate_names_are_safe_and_unique():
    found = decide_claims([kappa(0.72), *panel({"a/b": 4.0, "a b": 3.0, "..": 2.0})], PLAN, "hash")
    names = {certificate_name(verdict) for verdict in found}
    assert len(names) == len(found)
    assert all("/" not in name and " " not in name and not name.startswith(".") for name in names)


# --- tampering ------------------------------------------------------------------------------------------------------


def tampered(name, *path, value):
    found = copy.deepcopy(EVERY[name])
    *where, last = path
    place = found
    for step in where:
        place = place[step]
    place[last] = value
    return found


def test_a_raised_kappa_is_named_in_words():
    name = CHOSEN[0]
    found = verify(tampered(name, "agreement", 0, "value", value=0.99))
    value = EVERY[name]["agreement"][0]["value"]
    assert f"kappa on aggregate: the certificate says 0.99, its tables give {value:.2f}" in found.differences
    assert not found.ok


def test_emptied_tables_change_the_verdict():
    name = CHOSEN[0]
    table = [[0, 0, 60, 0, 0], [0] * 5, [60, 0, 0, 0, 0], [0] * 5, [0] * 5]
    found = copy.deepcopy(EVERY[name])
    found["agreement"][0]["tables"] = dict.fromkeys(found["agreement"][0]["tables"], table)
    differences = verify(found).differences
    assert "agreement: the certificate says publish, its tables give halt" in differences
    assert "publication level: the certificate says qualified, its tables give no-claim" in differences


def test_a_constant_table_has_no_kappa():
    found = copy.deepcopy(EVERY[CHOSEN[0]])
    constant = [[96, 0], [0, 0]]
    found["agreement"][0]["tables"] = dict.fromkeys(found["agreement"][0]["tables"], constant)
    assert any(
        "kappa on aggregate: the certificate says" in text and "nothing" in text for text in verify(found).differences
    )


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("field", sorted(STATUSES))
def test_any_other_status_is_found(name, field):
    stated = EVERY[name]["tuple"][field]
    for other in STATUSES[field]:
        if other != stated:
            assert not verify(tampered(name, "tuple", field, value=other)).ok


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from leaves(part, (*path, at))
    else:
        yield path, value


FREE = re.compile(
    r"rules/.*"  # the plan's own cut-offs: found where they change the verdict
    r"|holm_family/elsewhere/.*"  # found where they change an adjusted p-value that is listed
    r"|contrasts/\d+/p_(bootstrap|sign_flip)"  # the same, for contrasts that the claim does not rest on
    r"|agreement/\d+/(half_even|clusters)"  # found where it changes the level under half-even rounding
    r"|style/\d+/(value|n|p|p_holm)"  # the rerun at equal length has no table
    r"|cells/\d+/(low|high|p|p_holm|value)"  # of a cell without a judge family: tested below
)
NUMBERS = [
    (name, path, value)
    for name in CHOSEN
    for path, value in leaves(EVERY[name])
    if isinstance(value, int | float) and not FREE.fullmatch("/".join(map(str, path)))
]


def moved(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value + 0.05 if value < 0.9 else value - 0.05


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(NUMBERS))
def test_any_other_number_is_found(case):
    name, path, value = case
    with contextlib.suppress(InputError):
        assert not verify(tampered(name, *path, value=moved(value))).ok


def entries(found, section, name):
    return [at for at, entry in enumerate(found[section]) if entry["id"].startswith(f"{name}[")]


@pytest.mark.parametrize("part", ["value", "p", "p_holm", "low", "high", "n", "outcome"])
def test_the_gate_of_each_cell_is_recomputed(part):
    found = EVERY[CHOSEN[0]]
    for at in entries(found, "cells", "cell.gate"):
        before = found["cells"][at][part]
        value = "inconclusive" if part == "outcome" else moved(before)
        assert not verify(tampered(CHOSEN[0], "cells", at, part, value=value)).ok


def test_a_halo_is_recomputed():
    found = EVERY[CHOSEN[0]]
    for at in entries(found, "cells", "cell.halo"):
        assert not verify(tampered(CHOSEN[0], "cells", at, "value", value=0.2)).ok
        assert not verify(tampered(CHOSEN[0], "cells", at, "triggered", value=True)).ok


def test_a_terse_share_is_recomputed():
    for at in entries(EVERY[CHOSEN[0]], "style", "terse.share"):
        assert not verify(tampered(CHOSEN[0], "style", at, "value", value=0.75)).ok
        assert not verify(tampered(CHOSEN[0], "style", at, "below", value=3)).ok


def test_levels_without_a_family_average_back_to_the_level():
    for at in entries(EVERY[CHOSEN[0]], "drops", "lofo.effect"):
        before = EVERY[CHOSEN[0]]["drops"][at]["value"]
        (text,) = verify(tampered(CHOSEN[0], "drops", at, "value", value=before + 0.01)).differences
        assert "its numbers without each judge family give" in text


def test_own_contrasts_are_tested_again_by_every_exact_test():
    name = CHOSEN[0]
    for at, entry in enumerate(EVERY[name]["contrasts"]):
        if entry["id"] in EVERY[name]["rests_on"]:
            for part in ("p_cluster_t", "p_bootstrap", "p_sign_flip", "p_holm", "p_holm_bootstrap"):
                assert not verify(tampered(name, "contrasts", at, part, value=moved(entry[part]))).ok


def test_above_eight_clusters_the_bootstrap_is_taken_as_given_and_a_note_says_so():
    found = certified(CHOSEN[0], clusters=9)
    result = verify(found)
    assert result.ok, result.differences
    assert "p-values of the bootstrap over so many clusters are taken as given" in result.notes
    assert not any("bootstrap over so many" in note for note in verify(EVERY[CHOSEN[0]]).notes)


@pytest.mark.parametrize(
    "path",
    [
        ("reasons", 0),
        ("reasons", 1),
        ("condition",),
        ("claim", "statement"),
        ("binding", 0),
        ("amended", 0),
        ("rests_on", 0),
    ],
)
def test_words_are_compared_too(path):
    assert not verify(tampered(CHOSEN[0], *path, value="gates.halt" if path[0] == "amended" else "other")).ok


def test_a_cutoff_that_decides_is_missed_by_nobody():
    found = verify(tampered(CHOSEN[0], "rules", "publish", value=0.99))
    assert "agreement: the certificate says publish, its tables give methodology" in found.differences


def test_fragility_is_recomputed():
    name = CHOSEN[0]
    for rule in EVERY[name]["fragility"]:
        assert not verify(tampered(name, "fragility", rule, value="headline")).ok


# --- malformed ------------------------------------------------------------------------------------------------------


def test_every_problem_of_a_malformed_certificate_is_named():
    found = copy.deepcopy(EVERY[CHOSEN[0]])
    found["agreement"][0]["tables"]["j0|j1"] = [[1, 2], [3]]
    found["contrasts"][0]["p"] = 1.5
    found["contrasts"][1]["surprise"] = 1
    found["levels"][0]["id"] = "score.effect[agent=x]"
    found["cells"][0]["id"] = "cell.other[cell=cell_a]"
    with pytest.raises(InputError) as error:
        verify(found)
    places = [problem.where for problem in error.value.problems]
    assert any(place.startswith("agreement.0.tables") for place in places)
    assert {"contrasts.0.p", "contrasts.1.surprise", "levels.0.labels", "cells.0.id"} <= set(places)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c.pop("tuple"), "tuple"),
        (lambda c: c.update(extra=1), "extra"),
        (lambda c: c["tuple"].update(agreement_status="maybe"), "tuple.agreement_status"),
        (lambda c: c["claim"].update(subjects=[]), "claim.subjects"),
        (lambda c: c["claim"].update(id="best[x]", subjects=["a", "b"]), "no known kind"),
        (lambda c: c["contrasts"].pop(0), "lacks what its claim rests on"),
        (lambda c: c["contrasts"].append(c["contrasts"][0]), "there twice"),
        (lambda c: c["contrasts"][0].update(value=None), "says why"),
        (lambda c: c["contrasts"][0].update(value=float("nan")), "no JSON form"),
        (lambda c: c["contrasts"][0].update(id="contrast[other]"), "must be dimension, high, low"),
        (lambda c: c["contrasts"][0]["cluster_sums"].update(x=[1.0, 0]), "cluster_sums"),
    ],
)
def test_malformed_certificates_are_refused(change, told):
    found = copy.deepcopy(EVERY[CHOSEN[0]])
    change(found)
    with pytest.raises(InputError, match=re.escape(told)):
        verify(found)


@pytest.mark.parametrize("other", [[], "text", None, 3])
def test_what_is_no_object_is_no_certificate(other):
    with pytest.raises(InputError, match="must be a JSON object"):
        verify(other)
