"""Shaffer's step-down and the claim to be first: against brute force, Holm, and by simulation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import attainable_equalities, holm, publish_orders, shaffer, shaffer_pooled


def p_values(agents):
    return st.lists(st.floats(0, 1), min_size=agents * (agents - 1) // 2, max_size=agents * (agents - 1) // 2)


some_pairs = st.integers(2, 6).flatmap(lambda agents: st.tuples(st.just(agents), p_values(agents)))


def partitions(n, most=None):
    """Every way to write n as a sum of group sizes."""
    if n == 0:
        yield []
    for size in range(min(n, most or n), 0, -1):
        for rest in partitions(n - size, size):
            yield [size, *rest]


@pytest.mark.parametrize("agents", range(1, 13))
def test_equalities_are_those_of_groups_of_equals(agents):
    every = {sum(math.comb(size, 2) for size in groups) for groups in partitions(agents)}
    assert attainable_equalities(agents) == tuple(sorted(every))


def step_down(p, agents, scales):
    """The pooled procedure as a loop: p of (scale, pair), one at a time."""
    attainable, m = attainable_equalities(agents), math.comb(agents, 2)
    rejected, adjusted, highest = dict.fromkeys(scales, 0), {}, 0.0
    for key in sorted(p, key=lambda one: p[one]):
        factor = sum(max(c for c in attainable if c <= m - rejected[scale]) for scale in scales)
        highest = max(highest, min(1.0, factor * p[key]))
        adjusted[key] = highest
        rejected[key[0]] += 1
    return adjusted


@given(some_pairs)
def test_shaffer_is_the_step_down_as_a_loop(case):
    agents, p = case
    expected = step_down({("a", k): value for k, value in enumerate(p)}, agents, ["a"])
    assert shaffer(p, agents) == pytest.approx([expected["a", k] for k in range(len(p))], abs=1e-12)


@given(some_pairs)
def test_shaffer_is_never_above_holm_and_never_below_p(case):
    agents, p = case
    adjusted = shaffer(p, agents)
    assert (adjusted <= holm(p) + 1e-15).all()
    assert (adjusted >= np.array(p)).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


@given(st.integers(2, 4).flatmap(lambda k: st.tuples(st.just(k), st.lists(p_values(k), min_size=1, max_size=4))))
def test_scales_are_pooled_as_a_loop_would(case):
    agents, rows = case
    p = {f"d{k}": row for k, row in enumerate(rows)}
    expected = step_down({(name, k): v for name, row in p.items() for k, v in enumerate(row)}, agents, [*p])
    for name, adjusted in shaffer_pooled(p, agents).items():
        assert adjusted == pytest.approx([expected[name, k] for k in range(len(adjusted))], abs=1e-12)


@given(some_pairs)
def test_one_scale_is_pooled_with_none(case):
    agents, p = case
    assert shaffer_pooled({"a": p}, agents)["a"].tolist() == shaffer(p, agents).tolist()


def test_the_factors_of_three_and_four_agents():
    assert (shaffer([0.01] * 3, 3) * 100).round(9).tolist() == [3, 3, 3]
    assert (shaffer([0.001, 0.01, 0.1], 3) / [0.001, 0.01, 0.1]).round(9).tolist() == [3, 1, 1]
    small = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    assert (shaffer(small, 4) / small).round(9).tolist() == [6, 3, 3, 3, 2, 1]


def decide(gap, p, agents, alpha):
    """(first, published, adjusted) of one study by the text of the rule."""
    pairs = list(combinations(range(agents), 2))
    ahead = {x: [] for x in range(agents)}
    for (i, j), g, one in zip(pairs, gap, p, strict=True):
        for x, lead in ((i, g > 0), (j, g < 0)):
            ahead[x].append(one if lead else math.inf)
    kept = 0.5 if agents > 3 else 0.0
    adjusted = np.minimum(1, shaffer(p, agents) / (1 - kept))
    for x, worst in ahead.items():
        if kept and max(worst) <= kept * alpha:
            own = [x in pair for pair in pairs]
            rest = iter(shaffer([one for one, mine in zip(p, own, strict=True) if not mine], agents - 1))
            adjusted = np.array([max(worst) / kept if mine else next(rest) for mine in own])
    published = (adjusted <= alpha) & (np.array(gap) != 0)
    wins = [sum(said and (pair[int(g < 0)] == x) for pair, g, said in zip(pairs, gap, published, strict=True))
            for x in range(agents)]  # fmt: skip
    return wins.index(agents - 1) if agents - 1 in wins else -1, published, adjusted


@given(st.integers(0, 2**32), st.integers(2, 7), st.floats(0, 8))
def test_orders_are_published_by_the_text_of_the_rule(seed, agents, strength):
    rng = np.random.default_rng(seed)
    levels = rng.normal(0, strength, (3, agents))
    first, second = np.triu_indices(agents, 1)
    gap = levels[:, first] - levels[:, second] + rng.normal(0, 0.1, (3, first.size))
    p = np.exp(-np.abs(gap) * rng.uniform(0.5, 2))
    found = publish_orders(gap, p, 0.05)
    for b in range(3):
        expected = decide(gap[b], p[b], agents, 0.05)
        alone = publish_orders(gap[b], p[b], 0.05)
        assert (int(found.first[b]), int(alone.first)) == (expected[0], expected[0])
        assert found.published[b].tolist() == alone.published.tolist() == expected[1].tolist()
        assert found.p_adjusted[b] == pytest.approx(expected[2], abs=1e-12)
        assert alone.p_adjusted.tolist() == found.p_adjusted[b].tolist()


def test_a_leader_is_found_where_no_step_down_would():
    gap = [0.5, 0.4, 0.6, 0.1, 0.1, -0.1]
    p = [0.025, 0.025, 0.025, 0.3, 0.5, 0.7]
    found = publish_orders(gap, p, 0.05)
    assert (int(found.first), found.published.tolist()) == (0, [True] * 3 + [False] * 3)
    assert found.p_adjusted[:3].tolist() == [0.05] * 3
    assert not publish_orders(gap, [0.02501, *p[1:]], 0.05).published.any()


def test_an_agent_with_a_pair_that_cannot_be_tested_is_not_first():
    found = publish_orders([0.5, 0.4, math.nan, 0.1, 0.1, 0.1], [1e-9, 1e-9, 1.0, 0.9, 0.9, 0.9], 0.05)
    assert int(found.first) == -1
    assert found.published.tolist() == [True, True, False, False, False, False]


def test_a_gap_of_nothing_is_no_order_whatever_its_p():
    assert publish_orders([0.0], [0.001], 0.05).published.tolist() == [False]
    assert int(publish_orders([], [], 0.05).first) == -1


def test_wrong_directions_are_errors_too_and_stay_rare():
    # All agents differ, by next to nothing: a published order is false if its direction is.
    rng = np.random.default_rng(2)
    truth = np.linspace(0.001, 0, 5)
    first, second = np.triu_indices(5, 1)
    means = truth + rng.normal(0, 1, (20_000, 5))
    gap = means[:, first] - means[:, second]
    p = np.array([math.erfc(abs(z) / 2) for z in gap.ravel()]).reshape(gap.shape)
    found = publish_orders(gap, p, 0.05)
    assert (found.published & (gap < 0)).any(axis=1).mean() <= 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shaffer([0.1, 0.2], 3), "3 agents have 3 pairs"),
        (lambda: shaffer([0.1, 0.2, 1.2], 3), r"0..1 \(first that does not: 1.2"),
        (lambda: shaffer([0.1, 0.2, math.nan], 3), "p-values lie in 0..1"),
        (lambda: shaffer([], 0), "at least 1"),
        (lambda: shaffer_pooled({"a": [0.1]}, 3), "3 agents have 3 pairs"),
        (lambda: attainable_equalities(0), "at least 1"),
        (lambda: publish_orders([0.1, 0.2], [0.1, 0.2], 0.05), "K.K-1./2 pairs"),
        (lambda: publish_orders([0.1], [0.1, 0.2], 0.05), "one entry for each gap"),
        (lambda: publish_orders([0.1], [-0.1], 0.05), "p-values lie"),
        (lambda: publish_orders([0.1], [0.1], 1.0), "strictly between"),
    ],
)
def test_what_is_wrong_is_said(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_no_scales_are_no_p_values():
    assert shaffer_pooled({}, 3) == {}
