"""Rank intervals and tiers from published orders: by their definitions, written with loops."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import rank_intervals, tiers

oriented = st.integers(1, 6).flatmap(
    lambda k: st.tuples(
        st.just(k),
        st.lists(st.sampled_from([0, 1, -1]), min_size=k * (k - 1) // 2, max_size=k * (k - 1) // 2).map(
            lambda turns: [pair[::turn] for pair, turn in zip(combinations(range(k), 2), turns, strict=True) if turn]
        ),
    )
)


@given(oriented)
def test_every_ranking_that_keeps_the_orders_lies_inside(case):
    agents, orders = case
    found = rank_intervals(orders, agents)
    for ranking in permutations(range(agents)):
        rank = {agent: place + 1 for place, agent in enumerate(ranking)}
        if all(rank[high] < rank[low] for high, low in orders):
            assert all(best <= rank[agent] <= worst for agent, (best, worst) in enumerate(found))


@given(oriented)
def test_cuts_run_where_all_above_are_published_above_all_below_and_only_there(case):
    agents, orders = case
    found, said = tiers(orders, agents), set(orders)
    assert sorted(agent for tier in found for agent in tier) == list(range(agents))
    for place in range(1, len(found)):
        upper, lower = [a for t in found[:place] for a in t], [a for t in found[place:] for a in t]
        assert all((high, low) in said for high in upper for low in lower)
    # No cut was missed: no group splits a tier.
    cuts = {frozenset(a for t in found[:place] for a in t) for place in range(1, len(found))}
    for size in range(1, agents):
        for upper in combinations(range(agents), size):
            lower = set(range(agents)) - set(upper)
            if all((high, low) in said for high in upper for low in lower):
                assert frozenset(upper) in cuts


def test_orders_that_run_in_a_circle_leave_one_tier():
    circle = [(0, 1), (1, 2), (2, 0)]
    assert tiers(circle, 3) == ((0, 1, 2),)
    assert rank_intervals(circle, 3) == ((2, 2),) * 3


def test_nothing_published_leaves_every_rank_open():
    assert rank_intervals([], 3) == ((1, 3),) * 3
    assert tiers([], 3) == ((0, 1, 2),)
    assert (rank_intervals([], 1), tiers([], 1)) == (((1, 1),), ((0,),))


def test_an_order_counts_once():
    assert rank_intervals([(0, 1)] * 5, 3) == ((1, 2), (2, 3), (1, 3))


@pytest.mark.parametrize("call", [rank_intervals, tiers])
@pytest.mark.parametrize(
    ("orders", "agents", "message"),
    [
        ([(0, 3)], 3, "agents are 0..2"),
        ([(-1, 0)], 3, "agents are 0..2"),
        ([(1, 1)], 3, "1 cannot be above 1"),
        ([(0, 1), (1, 0)], 3, "0 cannot be above 1 and below it"),
        ([], 0, "at least 1"),
    ],
)
def test_what_is_wrong_is_said(call, orders, agents, message):
    with pytest.raises(InputError, match=message):
        call(orders, agents)
