"""Certificates that are none, whoever wrote them: every problem at once, and nothing but an `InputError`."""

from __future__ import annotations

import contextlib
import copy
import re

import pytest
from certified import CHOSEN, every
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.claims import verify
from assaymark.errors import InputError

FIRST = every("plain")["first[agent=agent-0,dimension=aggregate]"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_certificate_of_an_earlier_version_is_refused_by_the_version_that_reads_it(number):
    with pytest.raises(InputError, match=r"assaymark 0\.1") as error:
        verify({**FIRST, "format": f"assaymark certificate {number}"})
    assert [problem.where for problem in error.value.problems] == ["format"]


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
        (lambda c: c["contrasts"][0].update(value=None), "says why"),
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


@pytest.mark.parametrize("other", [[], "text", None, 3])
def test_what_is_no_object_is_no_certificate(other):
    with pytest.raises(InputError, match="must be a JSON object"):
        verify(other)


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


@settings(deadline=None, max_examples=250)
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
