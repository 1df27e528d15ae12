"""Tiers from supported orders, and their display on the leaderboard."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import assay_runs as runs
import full_runs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.records import AGGREGATE
from assaymark.report import RunIndex
from assaymark.report import study as study_pages


def book(agents, pairs) -> RunIndex:
    """A run with these supported pairs."""
    found = [runs.verdict(runs.above(a, b, AGGREGATE), level, "publish", "stable", "passed") for a, b, level in pairs]
    measured = [
        runs.measured("score.effect", {"dimension": AGGREGATE, "agent": a}, 4.0, low=3.9, high=4.1) for a in agents
    ]
    return RunIndex.of(replace(runs.minimal(), verdicts=tuple(found), measurements=tuple(measured), decisions=()))


def shape(found, dimension=AGGREGATE):
    return [("".join(tier.agents), tier.ranks, tier.level) for tier in study_pages.tiers(found, dimension)]


SHAPES = (
    # A full chain ranks every agent; a leader leaves the rest as one alphabetical tier; no order, no cut.
    ("abc", ("ba headline", "bc headline", "ac qualified"),
     [("b", (1, 1), "headline"), ("a", (2, 2), "qualified"), ("c", (3, 3), "qualified")]),
    ("abc", ("ca headline", "cb qualified"), [("c", (1, 1), "qualified"), ("ab", (2, 3), "qualified")]),
    ("ab", ("ab no-claim",), [("ab", (1, 2), "no-claim")]),
    ("a", (), [("a", (1, 1), "no-claim")]),
    ("abcd", ("ca headline", "cd headline", "ad headline", "bd headline"),
     [("abc", (1, 3), "headline"), ("d", (4, 4), "headline")]),
)  # fmt: skip


@pytest.mark.parametrize(("agents", "orders", "wanted"), SHAPES)
def test_supported_orders_cut_the_agents_into_tiers(agents, orders, wanted):
    assert shape(book(agents, [(*pair, level) for pair, level in map(str.split, orders)])) == wanted


def test_a_score_without_claims_has_one_tier_and_one_agent_no_rank():
    assert shape(book("ab", [("a", "b", "no-claim")]), "a score without claims") == [("ab", (1, 2), "no-claim")]
    alone = book("a", [])
    ((tier, *_, why),) = study_pages.board_rows(alone)
    assert study_pages.ranked_alone(alone, AGGREGATE) == {}
    assert (tier.level, why) == ("no-claim", "No supported ranking")


def test_orders_inside_a_tier_give_each_agent_its_possible_ranks():
    (_, names, *_, why), _ = study_pages.board_rows(
        book("abcd", [(high, low, "headline") for high, low in ("ca", "cd", "ad", "bd")])
    )
    assert [(name, ranks) for name, _, ranks, _ in names] == [("a", "2 to 3"), ("b", ""), ("c", "1 to 2")]
    assert why == "1 of 1 ranking inside supported"


@given(st.data())
def test_a_cut_runs_only_where_every_agent_above_is_above_every_agent_below(data):
    agents = "abcde"
    order = data.draw(st.permutations(agents))
    pairs = [(a, b) for a, b in combinations(order, 2) if data.draw(st.booleans())]
    made = book(agents, [(a, b, "headline") for a, b in pairs])
    found = study_pages.tiers(made, AGGREGATE)
    at = {agent: place for place, tier in enumerate(found) for agent in tier.agents}
    assert sorted(at) == list(agents)
    assert all((a, b) in pairs for a, b in permutations(agents, 2) if at[a] < at[b])
    for tier in found:
        assert list(tier.agents) == sorted(tier.agents)
        for agent in tier.agents:
            first, last = made.summary.ranks.get(AGGREGATE, {}).get(agent, tier.ranks)
            assert tier.ranks[0] <= first <= last <= tier.ranks[1]


def test_a_score_of_its_own_needs_a_tier_of_its_own_and_agreement():
    rows = study_pages.board_rows(book("abc", [("c", "a", "headline")]))
    assert [(tier.rank, tier.ranked, score) for tier, _, score, *_ in rows] == [("1 to 3", False, "3.90 to 4.10")]
    ((tier, _, score, _, why),) = study_pages.board_rows(RunIndex.of(runs.withheld()))
    assert (tier.rank, score, tier.level) == ("1 to 5", "3.65 to 4.38", "no-claim")
    assert why == "The judges do not agree: κ 0.11; 0.20 needed"


def test_an_agent_that_shares_its_tier_has_the_range_of_its_judges_and_the_tier_too_without_intervals():
    full = full_runs.full()
    (_, first, *_), (_, rest, *_) = study_pages.board_rows(RunIndex.of(full))
    assert [judged for *_, judged in first] == [""]
    assert {name: judged for name, *_, judged in rest}["Otter"] == "4.07 to 4.27"
    bare = tuple(replace(m, low=None, high=None, level=None) for m in full.measurements)
    _, (_, _, score, *_) = study_pages.board_rows(RunIndex.of(replace(full, measurements=bare)))
    assert score == "3.72 to 4.27", "from the lowest to the highest judge of any of its agents"
