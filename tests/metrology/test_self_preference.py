"""Self-preference: planted gaps, the coverage of its interval, laws, and what it says when it has too little."""

from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest
import statsmodels.stats.weightstats as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import self_preference

FAMILIES = ("north", "south", "west")
AGENTS = ("north", "north", "south", "south", "south", "west", "lone", "lone")

tables = arrays(np.float64, (len(AGENTS), 3), elements=st.floats(0, 100).map(lambda x: round(x, 1)))


def planted(rng, preference, own, others, judges=3, levels=4.0):
    """Scores [A, J]: qualities, the judges' levels, noise of 6, and what the first judge adds for its family."""
    scores = rng.normal(60, 8, (own + others, 1)) + rng.normal(0, levels, judges)
    scores = scores + rng.normal(0, 6, (own + others, judges))
    scores[:own, 0] += preference
    return scores, ["own"] * own + ["other"] * others, ["own", *(f"j{k}" for k in range(1, judges))]


@given(tables)
def test_the_gap_is_its_definition(scores):
    found = self_preference(scores, AGENTS, FAMILIES)
    for j, family in enumerate(FAMILIES):
        above = [row[j] - median(row) for row in scores.tolist()]
        own = [value for value, other in zip(above, AGENTS, strict=True) if other == family]
        others = [value for value, other in zip(above, AGENTS, strict=True) if other != family]
        assert found[j].judge == family
        assert found[j].own == pytest.approx(np.mean(own), abs=1e-9)
        assert found[j].others == pytest.approx(np.mean(others), abs=1e-9)
        assert found[j].gap == pytest.approx(np.mean(own) - np.mean(others), abs=1e-9)
        assert (found[j].n_own, found[j].n_others) == (len(own), len(others))


def test_over_clusters_the_interval_is_that_of_their_gaps():
    """With as many agents of each side in every cluster: Student's t of the clusters' gaps."""
    rng = np.random.default_rng(4)
    scores = rng.normal(60, 5, (12, 3, 3))  # clusters, agents, judges
    scores[:, 0, 0] += 20
    families = ["own", "other", "other"]
    found = self_preference(scores.reshape(36, 3), families * 12, ["own", "b", "c"], clusters=np.arange(12).repeat(3))[
        0
    ]
    above = scores[..., 0] - np.median(scores, axis=2)
    gaps = above[:, 0] - above[:, 1:].mean(axis=1)
    low, high = sm.DescrStatsW(gaps).tconfint_mean()
    assert (found.gap, found.low, found.high) == tuple(pytest.approx(value) for value in (gaps.mean(), low, high))
    assert (found.n_own, found.n_others, found.state) == (12, 24, "ok")
    assert found.low > 0
    blocks = self_preference(
        scores.reshape(36, 3), families * 12, ["own", "b", "c"], clusters=np.arange(12).repeat(3), consecutive=True
    )[0]
    assert "blocks of neighbouring clusters" in blocks.method
    assert blocks.gap == found.gap


def test_one_cluster_is_a_single_observation():
    scores = [[80, 70, 71], [60, 61, 59]]
    found = self_preference(scores, ["own", "other"], ["own", "b", "c"], clusters=["w1", "w1"])
    assert (found[0].low, found[0].state) == (None, "single observation")
    assert found[1].state == "no agent of its family"


@given(tables, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_interval_is_the_wider_of_two_known_ones(scores, level):
    found = self_preference(scores, AGENTS, FAMILIES, level=level)
    for j, one in enumerate(found):
        above = scores[:, j] - np.median(scores, axis=1)
        own = np.array([family == FAMILIES[j] for family in AGENTS])
        if own.sum() == 1:
            assert (one.state, one.low, one.high) == ("single observation", None, None)
            continue
        if one.state == "no spread":
            assert np.ptp(above[own]) == pytest.approx(0, abs=1e-6)
            assert np.ptp(above[~own]) == pytest.approx(0, abs=1e-6)
            continue
        means = sm.CompareMeans(sm.DescrStatsW(above[own]), sm.DescrStatsW(above[~own]))
        ends = [means.tconfint_diff(alpha=1 - level, usevar=kind) for kind in ("pooled", "unequal")]
        low, high = max(ends, key=lambda pair: pair[1] - pair[0])
        assert one.state == "ok"
        assert (one.low, one.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


@given(tables, st.permutations(range(3)), st.permutations(range(len(AGENTS))))
def test_order_and_names_change_nothing(scores, judges, agents):
    before = self_preference(scores, AGENTS, FAMILIES)
    names = {"north": "c", "south": "b", "west": "a", "lone": "d"}
    after = self_preference(
        scores[np.ix_(agents, judges)],
        [names[AGENTS[k]] for k in agents],
        [names[FAMILIES[k]] for k in judges],
        judges=[FAMILIES[k] for k in judges],
    )
    for place, j in enumerate(judges):
        one, other = before[j], after[place]
        assert (one.judge, one.n_own, one.n_others, one.state) == (
            other.judge,
            other.n_own,
            other.n_others,
            other.state,
        )
        for part in ("own", "others", "gap", "low", "high"):
            assert getattr(one, part) == (
                None if getattr(other, part) is None else pytest.approx(getattr(other, part), abs=1e-6)
            )


@given(tables, st.floats(-50, 50))
def test_a_better_agent_is_no_preference(scores, shift):
    lifted = scores + np.linspace(0, shift, len(AGENTS))[:, None]
    for one, other in zip(
        self_preference(scores, AGENTS, FAMILIES), self_preference(lifted, AGENTS, FAMILIES), strict=True
    ):
        assert one.gap == pytest.approx(other.gap, abs=1e-6)


@pytest.mark.parametrize(("preference", "hidden"), [(0.0, 0.0), (40.0, 6 / math.sqrt(math.pi))])
def test_a_planted_preference_is_recovered_less_what_the_median_hides(preference, hidden):
    """The larger of two noises of 6 is on average 6 / sqrt(pi) above 0: that much of the addition is in the median."""
    found, *others = self_preference(*planted(np.random.default_rng(3), preference, 4000, 4000, levels=0.0))
    assert found.gap == pytest.approx(preference - hidden, abs=0.4)
    assert found.low < preference - hidden < found.high
    assert found.high - found.low < 1
    assert all(other.state == "no agent of its family" for other in others)


def test_of_two_judges_half_of_a_preference_shows():
    found, _ = self_preference(*planted(np.random.default_rng(4), 10.0, 4000, 4000, judges=2))
    assert found.gap == pytest.approx(5.0, abs=0.4)


@pytest.mark.parametrize(("own", "others"), [(2, 3), (2, 18), (5, 15)])
@pytest.mark.parametrize("preference", [0.0, 15.0])
def test_the_interval_covers_what_was_planted(own, others, preference):
    rng = np.random.default_rng(own * 100 + others)
    every = [self_preference(*planted(rng, preference, own, others))[0] for _ in range(600)]
    truth = np.mean([self_preference(*planted(rng, preference, 300, 300))[0].gap for _ in range(60)])
    # Of few agents all may lie on the median: no interval, and nothing is claimed.
    ends = [(one.low, one.high) for one in every if one.state == "ok"]
    assert len(ends) > 0.95 * len(every)
    covered = np.mean([low <= truth <= high for low, high in ends])
    assert covered >= 0.92  # of 600 at 0.95, a share below this has a chance under one in a thousand


def test_a_preference_is_found_with_enough_agents_and_a_fair_judge_is_left_alone():
    rng = np.random.default_rng(11)
    found = [self_preference(*planted(rng, 30.0, 5, 15))[0].low > 0 for _ in range(100)]
    fair = [self_preference(*planted(rng, 0.0, 5, 15))[0] for _ in range(400)]
    assert np.mean(found) > 0.95
    assert np.mean([one.low > 0 or one.high < 0 for one in fair]) < 0.06


def test_one_agent_of_the_family_is_a_single_observation_however_large_the_gap():
    (found, *_) = self_preference([[90, 50, 50], [50, 50, 50], [40, 45, 50]], ["a", "b", "c"], ["a", "b", "c"])
    assert (found.gap, found.state, found.low, found.high) == (42.5, "single observation", None, None)
    assert str(found) == "a: +42.5 (single observation), 1 of its family against 2"


def test_one_agent_of_other_families_leaves_students_interval():
    (found, _) = self_preference([[60, 50], [58, 50], [50, 50]], ["a", "a", "b"], ["a", "c"])
    assert found.state == "ok"
    # Distances 5 and 4 against 0: pooled variance 0.5 with one degree of freedom, whose 0.975 quantile is 12.706.
    half = 12.7062 * math.sqrt(0.5 * 1.5)
    assert (found.low, found.high) == pytest.approx((4.5 - half, 4.5 + half), abs=1e-3)


def test_what_is_missing_has_a_name():
    scores = [[60, 50, 55], [58, 50, 52], [50, 50, 51]]
    found = self_preference(scores, ["a", "a", "a"], ["a", "b", "c"])
    assert [one.state for one in found] == [
        "no agent of another family",
        "no agent of its family",
        "no agent of its family",
    ]
    assert [(one.gap, one.low, one.high) for one in found] == [(None, None, None)] * 3
    assert (found[0].others, found[1].own) == (None, None)
    assert str(found[1]) == "b: no agent of its family"
    flat = self_preference([[50, 50, 50]] * 4, ["a", "a", "b", "b"], ["a", "b", "c"])
    assert [one.state for one in flat] == ["no spread", "no spread", "no agent of its family"]
    assert flat[0].gap == 0


def test_judges_of_one_family_can_be_named():
    scores = [[60, 50, 55], [58, 50, 52], [50, 50, 51]]
    found = self_preference(scores, ["a", "b", "c"], ["a", "a", "b"], judges=["one", "two", "three"])
    assert [one.judge for one in found] == ["one", "two", "three"]
    assert [one.judge for one in self_preference(scores, ["a", "b", "c"], ["a", "a", "b"])] == ["a", "a", "b"]


@given(tables)
def test_more_judges_who_agree_leave_a_favourite_standing_out(scores):
    """With a panel that is not swayed, the whole addition shows."""
    assume(np.ptp(scores) > 0)
    calm = np.repeat(scores[:, :1], 5, axis=1)
    swayed = calm.copy()
    swayed[:2, 0] += 12
    (found, *_) = self_preference(swayed, AGENTS, ["north", *"vwxy"])
    assert found.gap == pytest.approx(12)


def test_a_panel_of_one_is_its_own_median():
    with pytest.raises(NotMeasurableError, match="one judge, needs two"):
        self_preference([[1.0], [2.0]], ["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("scores", "agents", "judges", "parts", "says"),
    [
        ([[1, 2], [3, math.nan]], "ab", "ab", {}, r"1 value\(s\) are not finite"),
        ([1, 2], "ab", "ab", {}, "two axes"),
        ([[1, 2], [3, 4]], "a", "ab", {}, r"one name for each of the 2 agents \(rows of scores\) \(got 1\)"),
        ([[1, 2], [3, 4]], "ab", "abc", {}, r"judge_families: .* 2 judges \(columns of scores\) \(got 3\)"),
        ([[1, 2], [3, 4]], [1, 2], "ab", {}, "agent_families: must be one name"),
        ([[1, 2], [3, 4]], "ab", "ab", {"judges": ["x"]}, "judges: must be one name"),
        ([[1, 2], [3, 4]], "ab", "ab", {"level": 1.0}, "level: must lie strictly between 0 and 1"),
    ],
)
def test_bad_input_is_told(scores, agents, judges, parts, says):
    with pytest.raises(InputError, match=says):
        self_preference(scores, list(agents), list(judges), **parts)
