"""Which places verdicts permit: exact places, classes, runs of places, and none."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import assay_runs as runs
from hypothesis import given
from hypothesis import strategies as st

from assaymark.records import AGGREGATE
from assaymark.report.board import board
from assaymark.report.book import Book
from assaymark.report.licence import standings


def book(agents, pairs, firsts=(), never_met=()) -> Book:
    """A run whose permitted pairs are ``pairs``; ``firsts`` are (agent, level)."""
    found = [runs.verdict(runs.above(a, b, AGGREGATE), level, "publish", "stable", "passed") for a, b, level in pairs]
    found += [runs.verdict(runs.first(a, AGGREGATE, 3), level, "publish", "stable", "passed") for a, level in firsts]
    measured = [runs.measured("score.effect", {"dimension": AGGREGATE, "agent": a}, 4.0) for a in agents]
    for agent, others in never_met:
        labels = {"dimension": AGGREGATE, "agent": agent}
        measured.append(runs.measured("first.p_holm", labels, 0.01, detail={"never_met": others}))
    return Book.of(replace(runs.minimal(), verdicts=tuple(found), measurements=tuple(measured), decisions=()))


def shape(found):
    return [("".join(s.agents), s.places, s.level) for s in found]


def test_a_full_chain_gives_every_place():
    chain = [("b", "a", "headline"), ("b", "c", "headline"), ("a", "c", "qualified")]
    assert shape(standings(book("abc", chain), AGGREGATE)) == [
        ("b", (1, 1), "headline"),
        ("a", (2, 2), "qualified"),
        ("c", (3, 3), "qualified"),
    ]


def test_a_leader_leaves_the_rest_as_one_alphabetical_class():
    found = standings(book("abc", [("c", "a", "headline"), ("c", "b", "qualified")]), AGGREGATE)
    assert shape(found) == [("c", (1, 1), "qualified"), ("ab", (2, 3), "qualified")]


def test_first_alone_orders_its_agent_above_all_it_met():
    assert shape(standings(book("abc", [], [("b", "headline")]), AGGREGATE))[0] == ("b", (1, 1), "headline")
    found = standings(book("abc", [], [("b", "headline")], [("b", ["c"])]), AGGREGATE)
    assert shape(found) == [("a", (2, 3), "headline"), ("b", (1, 2), "headline"), ("c", None, "no-claim")]


def test_no_verdict_gives_no_place():
    assert shape(standings(book("ab", [("a", "b", "no-claim")]), AGGREGATE)) == [
        ("a", None, "no-claim"),
        ("b", None, "no-claim"),
    ]


def test_ties_in_a_chain_leave_runs_of_places_in_alphabetical_order():
    found = standings(book("abc", [("c", "a", "headline")]), AGGREGATE)
    assert shape(found) == [("a", (2, 3), "headline"), ("b", None, "no-claim"), ("c", (1, 2), "headline")]


def test_a_refused_first_place_is_not_given_by_pairs():
    pairs = [("c", "a", "headline"), ("c", "b", "headline"), ("a", "b", "headline")]
    found = standings(book("abc", pairs, [("c", "no-claim")]), AGGREGATE)
    assert not any(s.single and s.places == (1, 1) for s in found)
    assert all(s.agents != ("c",) or not s.single for s in found)


def test_a_circle_of_permitted_pairs_is_one_class():
    circle = [("a", "b", "headline"), ("b", "c", "headline"), ("c", "a", "headline")]
    assert all(not s.single for s in standings(book("abc", circle), AGGREGATE))


@given(st.data())
def test_agents_that_no_verdict_separates_never_stand_apart(data):
    agents = "abcde"
    order = data.draw(st.permutations(agents))
    pairs = [(a, b) for a, b in combinations(order, 2) if data.draw(st.booleans())]
    found = standings(book(agents, [(a, b, "headline") for a, b in pairs]), AGGREGATE)
    part = {agent: s.part for s in found for agent in s.agents}
    assert sorted(agent for s in found for agent in s.agents) == list(agents)
    for a, b in permutations(agents, 2):
        if (a, b) not in pairs and (b, a) not in pairs:
            assert part[a] == part[b]
        if part[a] < part[b]:
            assert (a, b) in pairs
    for s in found:
        assert s.places is None or (s.part[0] <= s.places[0] <= s.places[1] <= s.part[1])


def test_a_score_of_its_own_needs_one_place():
    rows = board(book("abc", [("c", "a", "headline")])).rows
    assert [row.score for row in rows] == [None, None, None]
    assert [row.places for row in rows] == ["2 to 3", None, "1 to 2"]


def test_the_axis_is_made_from_permitted_scores_alone():
    run = runs.realistic()
    far = [
        replace(m, value=1.23, low=1.1, high=1.3) if m.name == "score.effect" and m.labels["agent"] == "Stoat" else m
        for m in run.measurements
    ]
    nothing = [v for v in run.verdicts if "Stoat" not in v.claim.subjects and len(v.claim.subjects) == 2]
    assert board(Book.of(replace(run, measurements=tuple(far), verdicts=tuple(nothing)))).head == ""
