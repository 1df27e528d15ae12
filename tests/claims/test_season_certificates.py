"""Certificates of a season: every verdict follows from its own tables, and what was changed is named."""

from __future__ import annotations

import contextlib
import copy
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from season_worlds import World, measured, played

from assaymark.claims import SeasonGates, decide_season, phrase, season_certificates, verify
from assaymark.errors import InputError
from assaymark.metrology import Labels
from assaymark.records import Measurement, canonical_json

EXCESS = [
    Measurement(
        name="season.excess", labels={"agent": agent, "baseline": "equal weight"}, value=value, n=60, n_of="days",
        method="", low=value - 0.001, high=value + 0.001, level=0.95, detail={"p": p, "whole": 0.1},
    )
    for agent, value, p in (("a00", 0.004, 0.0001), ("a01", 0.0012, 0.02))
]  # fmt: skip

FLAGGED = Measurement(
    name="agent.flagged_texts", labels={"agent": "a00"}, value=0.05, n=60, n_of="decisions", method="",
    detail={"count": 3},
)  # fmt: skip


@cache
def every(periods: int = 36, favour: float = 0.0) -> dict[str, dict[str, Any]]:
    """The certificates of a drawn season by claim, as they are read from their files."""
    season = played(World((75.0, 55.0, 53.0), periods=periods, favour=favour), np.random.default_rng([1, 11]))
    measurements = [*measured(season), *EXCESS, FLAGGED]
    gates = SeasonGates(on_failure="qualified", hindsight=(phrase("claim.condition.path", days=3),))
    decided = decide_season(measurements, gates, "plan")
    made = season_certificates(decided.verdicts, measurements, gates, season.scores.families)
    return {one["claim"]["id"]: json.loads(canonical_json(one)) for one in made}


@pytest.mark.parametrize(("periods", "favour"), [(36, 0.0), (14, 0.0), (3, 0.0), (24, 15.0)])
def test_every_verdict_follows_from_its_own_certificate(periods: int, favour: float):
    found = every(periods, favour)
    assert {name.partition("[")[0] for name in found} == {"first", "above", "within", "season.band", "season.beats"}
    for name, one in found.items():
        assert verify(one).differences == (), name
        assert one["fragility"], name
    assert verify(found["first[agent=a00,dimension=aggregate]"]).notes[0].endswith("are taken as given")


def changed(certificate: dict[str, Any], name: str, labels: dict[str, str], **values: Any) -> dict[str, Any]:
    """A certificate with other values in a measurement, or in its detail."""
    found = copy.deepcopy(certificate)
    (entry,) = [one for one in found["tables"] if one["name"] == name and labels.items() <= one["labels"].items()]
    for key, value in values.items():
        (entry if key in entry else entry["detail"])[key] = value
    return found


def test_what_was_changed_is_named():
    pair = every()["above[dimension=aggregate,high=a00,low=a01]"]
    assert pair["tuple"]["permitted_publication_level"] == "qualified"
    mine = {"high": "a00", "low": "a01"}
    for values, words in (({"value": 9.0}, "contrast of a00 and a01"), ({"p": 0.5}, "p of the contrast")):
        assert any(words in one for one in verify(changed(pair, "contrast", mine, **values)).differences)
    lied = copy.deepcopy(pair)
    lied["tuple"]["permitted_publication_level"], lied["reasons"][0] = "headline", "Nothing is known."
    differences = verify(lied).differences
    assert "publication level: the certificate says headline, its tables give qualified" in differences
    assert any(one.startswith("reasons: ") for one in differences)
    band = every()["season.band[agents=a00]"]
    lied = changed(band, "season.composite", {"agent": "a00", "judge": "j0"}, value=1.0)
    assert any("lowest judge of a00" in one for one in verify(lied).differences)
    band = copy.deepcopy(band)  # kappa on bands is computed again from its tables
    (kappa,) = [one for one in band["tables"] if one["name"] == "season.kappa"]
    kappa["n"] = 6
    kappa["detail"] = {"pairs": {"j0|j1": 0.9}, "tables": {"j0|j1": [[2, 1, 0], [0, 2, 0], [0, 0, 1]]}}
    assert any(one.startswith("kappa on bands: the certificate says 0.90") for one in verify(band).differences)


def test_every_problem_of_rules_that_are_none_is_named():
    found = copy.deepcopy(every()["season.band[agents=a00]"])
    found["rules"] |= {"kappa": "lower", "alpha": "much", "more": 1, "on_failure": "headline"}
    del found["rules"]["halt"]
    with pytest.raises(InputError) as error:
        verify(found)
    places = {problem.where for problem in error.value.problems}
    assert places == {"rules.kappa", "rules.alpha", "rules.more", "rules.halt", "rules.on_failure"}


@settings(max_examples=60)
@given(st.data())
def test_whatever_is_put_into_a_certificate_is_a_difference_or_an_input_error(data):
    """At any place anything of JSON: never another exception."""
    found = copy.deepcopy(every()["above[dimension=aggregate,high=a00,low=a01]"])
    place: Any = found
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(st.sampled_from([None, -1, 3.5, "x", [], {}, [1, "a"], {"key": []}, True, 10**30]))
    with contextlib.suppress(InputError):
        verify(found)


# --- people beside the panel ------------------------------------------------------------------------------------------


@cache
def beside_people(see=1.0, *, labelled=30, noise=2.0, refused="", first=75.0, longer=False):
    """A season of 36 periods, 24 to 36 of them graded by two people who see ``see`` of what the judges see."""
    season = played(World((first, 55.0, 53.0), periods=36), np.random.default_rng([1, 11]))
    words = {key: 40 * n if longer and key[0] == "a00" else n for key, n in season.tokens.items()}
    season = replace(season, tokens=words)
    rng, rows = np.random.default_rng(4), season.scores.periods
    drawn = sorted(map(str, rng.permutation(list(rows))[:labelled]))
    grades = {}
    for period in drawn:
        points = {agent: float(np.median([*row.values()])) for agent, row in rows[period].items()}
        middle = float(np.mean([*points.values()]))
        for agent, one in points.items():
            given = (middle + see * (one - middle) + rng.normal(0, noise, 2)).clip(0, 100).round()
            grades[period, agent] = {who: {"aggregate": float(x)} for who, x in zip(("ab", "cd"), given, strict=True)}
    people = Labels(grades, dict.fromkeys(rows, labelled / len(rows)), frozenset(drawn), refused)
    measurements = [*measured(season, people), *EXCESS]
    gates = SeasonGates(on_failure="qualified")
    found = decide_season(measurements, gates, "plan")
    made = season_certificates(found.verdicts, measurements, gates, season.scores.families)
    return found, [json.loads(canonical_json(one)) for one in made]


ABOVE = "above[dimension=aggregate,high=a00,low=a01]"


@pytest.mark.parametrize(
    ("given", "state", "words"),
    [
        ({}, "confirms", "how the 2 human graders of this season would rank them: +"),
        ({"see": -0.1}, "contradicts", "the 2 human graders of this season see less than half"),
        ({"see": 0.55, "noise": 40.0, "labelled": 20}, "undecided", "People’s grades on 20 periods leave it undecided"),
        ({"labelled": 12}, "not-tested", "at least 20 graded periods are needed"),
        ({"refused": "the draw does not follow from its seed"}, "not-tested", "they are no random sample"),
    ],
)
def test_people_confirm_or_contradict_an_order_of_a_season(given, state, words):
    found, made = beside_people(**given)
    one = {one.verdict.claim.id: one.verdict for one in found.verdicts}[ABOVE]
    assert one.human_anchor == state
    assert words in " ".join((*one.reasons, one.condition or ""))
    assert (one.publication_level == "no-claim") == (state == "contradicts")
    assert ("human_anchor" in one.binding) == (state == "contradicts")
    for certificate in made:
        assert verify(certificate).differences == ()
    if state == "confirms":
        (mine,) = [one for one in made if one["claim"]["id"] == ABOVE]
        assert any("human" in text or "people" in text for text in verify(
            changed(mine, "human.contrast", {"high": "a00", "low": "a01"}, value=40.0)).differences)  # fmt: skip


def test_people_lift_what_may_be_length():
    (one, _), (two, made) = (beside_people(first=65.0, longer=True, refused=why) for why in ("not asked", ""))
    one, two = ({each.verdict.claim.id: each.verdict for each in found.verdicts}[ABOVE] for found in (one, two))
    assert one.length == two.length == "may-be-length"
    assert (one.publication_level, one.human_anchor) == ("qualified", "not-tested")
    assert (two.publication_level, two.human_anchor) == ("headline", "confirms")
    assert [cap.lifted for cap in two.caps if cap.field == "length"] == [True]
    said = [[text.id for text in each.conditions] for each in (one, two)]
    assert said == [["length", "overlap"], ["overlap", "people"]]
    assert all(verify(each).differences == () for each in made)
