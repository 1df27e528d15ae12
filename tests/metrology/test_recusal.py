"""Own-family bias: each fit against least squares on indicators, planted bias, and what is refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assaymark import metrology as mt
from assaymark.errors import InputError

OWN = np.eye(3, 4, dtype=int)


def scores(seed=0, clusters=6, judges=3, agents=4, *, bonus=0.0, own=OWN, spread=0.3):
    """Severity, quality by cluster, noise, and ``bonus`` points for the judges' own family."""
    rng = np.random.default_rng(seed)
    quality = 3 + rng.normal(0, spread, (clusters, 1, agents))
    return quality + rng.normal(0, 0.2, (1, judges, 1)) + rng.normal(0, 0.1, (clusters, judges, agents)) + bonus * own


def with_gaps(table, share=0.15, seed=5):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(table.shape) < share, np.nan, table)


def least_squares(table, own, extra=None):
    """One cluster's fit: parameters of judges, then agents, then extra columns; and its design."""
    judge, agent = np.nonzero(~np.isnan(table) & (own == 0 if extra is None else True))
    design = np.concatenate([np.eye(table.shape[0])[judge], np.eye(table.shape[1])[agent]], axis=1)
    if extra is not None:
        design = np.concatenate([design, extra(judge, agent)], axis=1)
    return np.linalg.lstsq(design, table[judge, agent], rcond=None)[0], design


@pytest.mark.parametrize("seed", range(4))
def test_the_contrast_is_the_mean_of_least_squares_in_each_cluster(seed):
    table = with_gaps(scores(seed), seed=seed)
    for a, b in combinations(range(4), 2):
        values = []
        for cluster in table:
            params, design = least_squares(cluster, OWN)
            contrast = np.zeros(7)
            contrast[3 + a], contrast[3 + b] = 1, -1
            if np.allclose(contrast @ np.linalg.pinv(design) @ design, contrast):
                values.append(params[3 + a] - params[3 + b])
        found = mt.recusal_contrast(table, OWN, a, b)
        assert found.clusters == len(values)
        wanted = (np.mean(values), stats.ttest_1samp(values, 0).pvalue)
        assert (found.estimate, found.p) == pytest.approx(wanted, abs=1e-10)
    # Own family is least squares in each cluster.
    table = scores(seed, bonus=0.4)
    each = [least_squares(one, OWN, lambda j, k: OWN[j, k, None] * np.eye(3)[j])[0][-3:] for one in table]
    common = [least_squares(one, OWN, lambda j, k: OWN[j, k, None])[0][-1] for one in table]
    found = mt.own_family(table, OWN)
    estimates, p = (np.array([getattr(one, name) for one in found.by_judge]) for name in ("estimate", "p"))
    assert estimates == pytest.approx(np.mean(each, axis=0), abs=1e-10)
    assert p == pytest.approx(stats.ttest_1samp(each, 0).pvalue, abs=1e-10)
    assert found.common.estimate == pytest.approx(np.mean(common), abs=1e-10)
    assert found.p_holm[p.argmin()] == pytest.approx(min(1, 3 * p.min()))


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 5), st.integers(1, 7))
@settings(max_examples=40)
def test_without_a_conflict_it_is_the_ordinary_contrast(seed, judges, agents, clusters):
    rng = np.random.default_rng(seed)
    table = rng.normal(3, 1, (clusters, judges, agents))
    own = np.zeros((judges, agents), dtype=int)
    own[0, 2:] = 1
    found = mt.recusal_contrast(table, own, 0, 1)
    plain = (table[:, :, 0] - table[:, :, 1]).mean(axis=1)
    assert not found.conflict
    assert (found.estimate, found.direct.estimate) == pytest.approx((plain.mean(), plain.mean()), abs=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_severity_and_what_is_said_of_the_own_family_change_nothing(seed):
    rng = np.random.default_rng(seed)
    table = scores(seed % 1000)
    other = table + rng.normal(0, 2, (6, 3, 1)) + rng.normal(0, 2, (6, 1, 1)) + OWN * rng.normal(0, 5, (6, 3, 4))
    for pair, test in mt.recusal_p(table, OWN).items():
        again = mt.recusal_p(other, OWN)[pair]
        assert (again.p, again.difference) == pytest.approx((test.p, test.difference), abs=1e-8)
        turned = mt.recusal_contrast(other, OWN, *pair[::-1])
        wanted = (-test.difference, 1 - mt.recusal_contrast(table, OWN, *pair).p_up)
        assert (turned.estimate, turned.p_up) == pytest.approx(wanted, abs=1e-8)


def test_a_judge_counts_for_what_it_says_of_the_other_agents():
    """Two judges, each with an agent: only chains through the third agent compare these two."""
    table, own = scores(3, judges=2, agents=3, own=np.eye(2, 3)), np.eye(2, 3, dtype=int)
    found = mt.recusal_contrast(table, own, 0, 1)
    chain = (table[:, 1, 0] - table[:, 1, 2]) - (table[:, 0, 1] - table[:, 0, 2])
    assert (found.estimate, found.free, found.judges) == (pytest.approx(chain.mean()), (), (0, 1))
    assert (found.direct, found.conflict) == (None, True)
    # A judge of both agents is not one that scores them without an interest.
    own = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    found = mt.recusal_contrast(scores(), own, 0, 1)
    assert (found.free, found.judges) == ((1, 2), (1, 2))
    # Nobody is left to compare two agents with two judges.
    table = scores(judges=2, agents=2, own=np.eye(2))
    found = mt.recusal_contrast(table, np.eye(2), 0, 1)
    assert (found.estimate, found.p, found.p_up, found.clusters, found.free) == (None, 1.0, 1.0, 0, ())
    assert found.conflict
    assert mt.recusal_p(table, np.eye(2)) == {(0, 1): mt.RecusalTest(0, "no judge without an interest", 1.0)}


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_are_put_to_the_moderated_test(seed):
    table = scores(seed, agents=5, own=0)
    own = np.eye(3, 5, dtype=int)
    found = mt.recusal_p(table, own)
    pairs = list(combinations(range(5), 2))
    records = [mt.recusal_contrast(table, own, *pair) for pair in pairs]
    effects = np.stack([least_squares(one, own)[0][3:] for one in table])
    gaps, variances = [one.estimate for one in records], [6 * one.se**2 for one in records]
    tested = mt.moderated_contrasts(gaps, variances, [6] * 10, effects)
    for place, pair in enumerate(pairs):
        if pair == (3, 4):
            assert found[pair] is None
        else:
            assert (found[pair].p, found[pair].se) == pytest.approx((tested.p[place], tested.se[place]), abs=1e-9)
    plain = mt.recusal_p(table, own, borrow=False)
    assert [plain[pair].p for pair in pairs[:4]] == pytest.approx([one.p for one in records[:4]], abs=1e-9)


def test_a_favoured_family_has_no_order_left():
    """Equal agents, half a point for the own family: seen by all judges, measured, and gone without the conflicted."""
    table = scores(4, clusters=12, bonus=0.5, spread=0.05)
    panel = table.mean(axis=1)
    assert stats.ttest_rel(panel[:, 0], panel[:, 3]).pvalue < 0.001
    found = mt.own_family(table, OWN)
    assert found.common.low < 0.5 < found.common.high
    assert all(p < 0.001 for p in found.p_holm)
    tests = mt.recusal_p(table, OWN)
    assert all(abs(test.difference) < 0.1 and test.p > 0.01 for test in tests.values())
    # Equal agents are rarely ordered whatever the bonus.
    studies = (mt.recusal_p(scores(seed, clusters=5, bonus=1.0, spread=0.2), OWN).values() for seed in range(300))
    assert np.mean([[test.p <= 0.05 for test in tests] for tests in studies]) < 0.07


def test_fewer_than_three_clusters_cannot_be_tested():
    for clusters in (1, 2, 3, 4):
        table, state = scores(clusters=clusters), "tested" if clusters > 2 else "cannot be tested"
        test, expected = mt.recusal_p(table, OWN)[0, 1], mt.recusal_contrast(table, OWN, 0, 1).estimate
        assert (test.clusters, test.state, test.p == 1.0) == (clusters, state, clusters < 3)
        assert test.estimate == test.difference == pytest.approx(expected)


def test_clusters_in_time_order_have_their_own_test():
    table = scores(clusters=14)
    effects = np.stack([least_squares(one, OWN)[0][3:] for one in table])
    expected = mt.serial_contrasts(effects)
    for pair, test in mt.recusal_p(table, OWN, consecutive=True).items():
        one = expected[pair]
        assert (test.p, test.df, test.se) == pytest.approx((one.p, one.df, one.se), abs=1e-9)
    estimate = pytest.approx(mt.recusal_contrast(table[:11], OWN, 0, 1).estimate)
    short = mt.recusal_p(table[:11], OWN, consecutive=True)[0, 1]
    assert short == mt.RecusalTest(11, "cannot be tested", 1.0, estimate)
    alone, blocks = mt.own_family(table, OWN).common, mt.own_family(table, OWN, consecutive=True).common
    assert (alone.df, blocks.df, blocks.estimate) == (13, 3, pytest.approx(alone.estimate))
    # Where nothing varies the sign speaks.
    table = np.broadcast_to(np.array([[4.0, 3.0, 3.0]] * 3), (4, 3, 3))
    test = mt.recusal_p(table, np.eye(3))[0, 1]
    assert (test.p, test.df, test.difference) == (2**-3, None, pytest.approx(1))
    # Own family leaves out clusters that do not show it: here the first judge's liking cannot be seen in the first one.
    table = scores(bonus=0.3)
    table[0, :, 0] = np.nan
    found = mt.own_family(table, OWN)
    assert (found.by_judge[0].df, found.common.df) == (4, 5)
    # Two judges with an agent each have a common value only.
    found = mt.own_family(scores(judges=2, agents=2, own=np.eye(2), bonus=0.4), np.eye(2))
    assert (found.judges, found.by_judge, found.p_holm) == ((0, 1), None, None)
    assert found.state.startswith("only a common value: ")
    assert found.common.estimate == pytest.approx(0.4, abs=0.15)
    # Own family needs agents of both kinds.
    for own in (np.zeros((3, 4)), np.ones((3, 4))):
        found = mt.own_family(scores(), own)
        assert (found.common, found.by_judge, found.state.partition(":")[0]) == (None, None, "not measurable")


def test_two_p_values_decide_an_order():
    apart, few = (
        mt.RecusalTest(0, "no judge without an interest", 1.0),
        mt.RecusalTest(2, "cannot be tested", 1.0, 0.3),
    )
    up, down = (mt.RecusalTest(5, "tested", 0.02, by) for by in (0.3, -0.3))
    for recusal, length, gap, expected in (
        (None, None, None, (0.01, 0.01)), ({"p": 0.03, "estimate": 0.2}, None, None, (0.03, 0.03)),
        ({"p": 0.001, "estimate": -0.2}, None, None, (1.0, 1.0)),
        ({"p": 0.001, "estimate": 0.0}, None, None, (1.0, 1.0)),
        ({"p": 1.0, "estimate": None}, None, None, (0.01, 1.0)), (apart, None, None, (0.01, 1.0)),
        (few, None, None, (1.0, 1.0)), (None, up, 0.5, (0.01, 0.02)), (None, down, 0.5, (0.01, 1.0)),
        (None, down, 0.0299, (0.01, 0.01)), (None, down, -0.03, (0.01, 0.01)), (None, down, 0.0301, (0.01, 1.0)),
        (None, down, None, (0.01, 1.0)), (None, up, [0.01, 3.0], (0.01, 0.02)),
    ):  # fmt: skip
        assert mt.headline_p(0.01, 0.4, recusal, length, 0.1, gap) == expected, (recusal, length, gap)
    negative = {"p": 0.04, "estimate": -0.1}
    assert mt.headline_p(0.01, -0.4, negative, negative, gap=2.0) == (0.04, 0.04)


def test_wrong_input_is_refused():
    table = scores()
    for *arguments, level, message in (
        (table, OWN[:, :3], 0, 1, 0.95, r"own: must hold 0 or 1 for each judge and agent \(3, 4\)"),
        (table, 2 * OWN, 0, 1, 0.95, "own: must hold 0 or 1"),
        (table, OWN, 0, 4, 0.95, "b: must be one of the agents 0..3"),
        (table, OWN, -1, 1, 0.95, "a: must be a whole number"), (table, OWN, 1, 1, 0.95, "another agent"),
        (table[0], OWN, 0, 1, 0.95, "M: must have 3 axes"), (table * np.inf, OWN, 0, 1, 0.95, "finite"),
        ([[["x"]]], [[0]], 0, 1, 0.95, "numbers"), (table, OWN, 0, 1, 1.0, "level"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            mt.recusal_contrast(*arguments, level=level)
    with pytest.raises(InputError, match="level"):
        mt.own_family(table, OWN, level=0)
