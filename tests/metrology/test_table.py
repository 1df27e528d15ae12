"""From judgments to the score table: what enters, what is left out and counted, what is refused."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import score_table

FULL = {"clarity": 4.0, "risk": 2.0}


@pytest.fixture
def small(one_decision, one_judgment):
    """Two agents in two cycles, two judges, the first judge asked three times."""
    decisions = [one_decision(agent, cycle, f"w{cycle}") for agent in ("ash", "birch") for cycle in (0, 1)]
    asked = [(judge, trial) for judge, trials in (("auditor", 3), ("reader", 1)) for trial in range(1, trials + 1)]
    judgments = [one_judgment(d.record_id, judge, {"clarity": 3.0 + (trial == 3), "risk": 2.0}, trial=trial)
                 for d in decisions for judge, trial in asked]  # fmt: skip
    return decisions, judgments


def without(judgments, *gone, asked=True, status="refused", **more):
    """The judgments with some (trajectory, judge), or trials of them, unanswered, or never asked for."""

    def lacks(j):
        return (j.trajectory, j.judge) in gone or (j.trajectory, j.judge, j.trial) in gone

    return [replace(j, status=status, scores={}, **more) if lacks(j) else j for j in judgments if asked or not lacks(j)]


def test_trials_are_averaged_and_the_aggregate_is_the_mean_of_dimensions(small):
    decisions, judgments = small
    table = score_table(judgments, decisions)
    assert (table.scores.shape, table.dimensions) == ((4, 2, 2), ("clarity", "risk"))
    assert table.scores[0].tolist() == [[pytest.approx(10 / 3), 2.0], [3.0, 2.0]]
    assert (table.stacked[0, :, 0], table.names) == (pytest.approx([8 / 3, 2.5]), ("aggregate", "clarity", "risk"))
    assert (table.trials["auditor"].tolist(), table.trials["reader"].shape) == ([[2.5, 2.5, 3.0]] * 4, (4, 1))
    assert (table.agents, table.clusters, table.formats) == (("ash", "birch"), ("w0", "w1"), ("v1",))
    assert (table.judges, table.families) == (("auditor", "reader"), ("north", "south"))
    assert table.cycles == ("round0#0", "round1#0")
    with pytest.raises(ValueError, match="read-only"):
        table.scores[0, 0, 0] = 1
    # Weights weigh.
    weighed = score_table(judgments, decisions, weights={"risk": 3, "clarity": 1})
    assert (weighed.weights.tolist(), weighed.stacked[0, 1, 0]) == ([0.25, 0.75], pytest.approx(2.25))
    # Neither the order of the input nor that of the dimensions matters.
    mixed = [replace(j, scores=dict(reversed(list(j.scores.items())))) for j in judgments]
    random.Random(3).shuffle(mixed)
    other = score_table(mixed, random.Random(4).sample(decisions, len(decisions)))
    assert (other.digest, other.trajectories) == (table.digest, tuple(sorted(table.trajectories)))
    assert (table.scores == other.scores).all()
    assert table.scores.dtype == np.float64
    # A changed score changes the digest, and so do lengths.
    changed = [replace(judgments[0], scores={"clarity": 5.0, "risk": 2.0}), *judgments[1:]]
    measured = score_table(judgments, decisions, lengths={d.record_id: 10 for d in decisions})
    assert len({table.digest, score_table(changed, decisions).digest, measured.digest}) == 3


def test_unusable_trials_are_skipped_and_trajectories_without_any_are_left_out(small, one_judgment):
    decisions, judgments = small
    first, second = decisions[0].record_id, decisions[1].record_id
    broken = without(judgments, (first, "auditor", 3), (second, "reader"), status="invalid", reason="not JSON")
    table = score_table(broken, decisions)
    assert (table.left_out, table.n, table.scores[0, 0].tolist()) == ((second,), 3, [3.0, 2.0])
    assert table.trials["auditor"].shape == (3, 3)  # the first trajectory lacks a trial, the second has all three
    calls = table.calls["auditor"]
    assert (calls.ok, calls.invalid, calls.refused, calls.total, calls.reasons) == (11, 1, 0, 12, {"not JSON": 1})
    assert table.calls["reader"].invalid == 1


def test_replicates_feed_the_noise_floor_only(small, one_decision, one_judgment):
    decisions, judgments = small
    unseen = score_table(judgments, [*decisions, one_decision("yew", 0, "w0")])
    assert (unseen.agents, unseen.left_out) == (("ash", "birch", "yew"), ("yew.0000.1",))
    again = one_decision("ash", 0, "w0", replicate=2)
    alone = one_decision("yew", 1, "w1", replicate=2)
    more = [one_judgment(d.record_id, judge, FULL) for d in (again, alone) for judge in ("auditor", "reader")]
    table = score_table([*judgments, *more], [*decisions, again, alone])
    assert (table.n, table.agents) == (4, ("ash", "birch"))
    assert table.replicates == {"ash": ((pytest.approx((8 / 3 + 2.5) / 2), 3.0),)}
    # A record that some trial scored is not missing.
    broken = [*judgments, one_judgment(again.record_id, "reader", None)]
    broken = without(broken, *((d.record_id, "auditor", 1) for d in decisions), status="invalid")
    table = score_table(broken, [*decisions, again])
    assert set(table.missing()[0].values()) == {0.0}
    assert table.grades.values is table.scores


def test_everything_invalid_leaves_an_empty_table(small):
    decisions, judgments = small
    table = score_table([replace(j, status="refused", scores={}) for j in judgments], decisions)
    assert (table.n, table.dimensions, table.scores.shape, table.stacked.shape) == (0, (), (0, 2, 0), (0, 2, 1))
    assert table.calls["reader"].reasons == {"no reason recorded": 4}
    assert (table.grades.values.shape, table.incomplete) == ((0, 2, 0), None)
    assert table.missing()[0] == {"auditor": 1.0, "reader": 1.0}
    # A judge that scored nothing.
    table = score_table(without(judgments, *((d.record_id, "reader") for d in decisions)), decisions)
    assert (table.n, table.grades.values.shape, table.missing()[0]) == (0, (4, 2, 2), {"auditor": 0.0, "reader": 1.0})
    # Lengths follow their trajectories.
    lengths = {d.record_id: 10 * k for k, d in enumerate(decisions)}
    assert score_table(judgments, decisions, lengths=lengths).lengths.tolist() == [0, 10, 20, 30]


def test_every_problem_is_told_at_once(small, one_decision, one_judgment):
    decisions, judgments = small
    bad = [
        one_judgment("ghost", "reader", FULL), one_judgment("ash.0000.1", "skeptic", {"clarity": 4.0, "risk": 6.0}),
        one_judgment("ash.0001.1", "skeptic", {"clarity": 4.0}),
        one_judgment("birch.0000.1", "skeptic", FULL, rubric="v1.1"),
        one_judgment("birch.0001.1", "skeptic", FULL, family="west"),
        one_judgment("birch.0001.1", "auditor", FULL, trial=3),
        one_judgment("birch.0001.1", "clerk", {"clarity": float("nan"), "risk": 1.0}),
    ]  # fmt: skip
    wrong = [*decisions, one_decision("elm", 1, "w9"), decisions[0]]
    with pytest.raises(InputError) as caught:
        score_table([*judgments, *bad], wrong)
    told = [str(problem) for problem in caught.value.problems]
    for part in (
        "rubric: must be the same in all judgments (got v1.0, v1.1)",
        "dimensions: must be the same in all judgments (got clarity, clarity+risk)",
        "skeptic: one judge has one family (got east, west)",
        "birch.0001.1, auditor, trial 3: one result for each trial (got 2)",
        "ghost: judged, but not among the decisions",
        "ash.0000.1, skeptic, trial 1: scores must be in 1..5 (got {'risk': 6.0})",
        "birch.0001.1, clerk, trial 1: scores must be in 1..5",
        "round1#0: a cycle lies in one cluster (got w1, w9)",
        "ash.0000.1: one decision for each record id (got 2)",
    ):
        assert any(part in one for one in told), part
    assert len(told) == 9
    # Thousands of problems are counted.
    with pytest.raises(InputError, match="and 5 more") as caught:
        score_table([one_judgment(f"ghost{k}", "reader", FULL) for k in range(25)], decisions)
    assert len(str(caught.value).splitlines()) == 22
    with pytest.raises(InputError, match="judgments: none given"):
        score_table([], decisions)


def test_weights_say_what_is_wrong(small):
    decisions, judgments = small
    for weights, message in (
        ({"clarity": 1.0}, "no weight for dimension 'risk'"), ({"clarity": math.inf, "risk": 0.0}, "finite"),
        ({"clarity": 1.0, "risk": 1.0, "style": 1.0}, "'style' is not a dimension"),
        ({"clarity": -1.0, "risk": 2.0}, "not negative"), ({"clarity": 0.0, "risk": 0.0}, "not all zero"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            score_table(judgments, decisions, weights=weights)


def test_where_nothing_is_missing_the_grades_are_the_scores(small):
    decisions, judgments = small
    table = score_table(judgments, decisions, lengths={d.record_id: 7 for d in decisions})
    grades = table.grades
    assert grades.values is table.scores
    for name in ("agent", "cycle", "cluster", "trajectories", "lengths"):
        assert getattr(grades, name) is getattr(table, name)
    by_judge, by_pair = table.missing()
    assert (by_judge, table.incomplete) == ({"auditor": 0.0, "reader": 0.0}, None)
    assert by_pair == {(judge, agent): 0.0 for judge in table.judges for agent in table.agents}


def test_what_one_judge_gave_is_in_the_grades(small):
    decisions, judgments = small
    lengths = {d.record_id: 10 * k for k, d in enumerate(decisions)}
    broken = without(judgments, ("ash.0000.1", "auditor"), ("ash.0000.1", "reader"), ("ash.0001.1", "reader"))
    table = score_table(broken, decisions, lengths=lengths)
    grades = table.grades
    assert (table.trajectories, table.left_out) == (("birch.0000.1", "birch.0001.1"), ("ash.0000.1", "ash.0001.1"))
    assert grades.trajectories == (*table.trajectories, "ash.0001.1")
    assert [table.agents[a] for a in grades.agent] == ["birch", "birch", "ash"]
    assert [table.cycles[c] for c in grades.cycle] == ["round0#0", "round1#0", "round1#0"]
    assert [table.clusters[g] for g in grades.cluster] == ["w0", "w1", "w1"]
    assert grades.lengths.tolist() == [20.0, 30.0, 10.0]
    assert np.array_equal(grades.values[: table.n], table.scores)
    assert grades.values[2].tolist() == [[pytest.approx(10 / 3), 2.0], [pytest.approx(math.nan, nan_ok=True)] * 2]
    shares = {("auditor", "ash"): 0.5, ("auditor", "birch"): 0.0, ("reader", "ash"): 1.0, ("reader", "birch"): 0.0}
    assert table.missing() == ({"auditor": 1 / 4, "reader": 2 / 4}, shares)
    assert table.lacking.tolist() == [[1, 0], [2, 0]]


def test_names_are_those_of_all_graded_records(small):
    """A cluster, a cycle and an agent of which no record is complete."""
    decisions, judgments = small
    late = without(judgments, ("ash.0001.1", "reader"), ("birch.0001.1", "reader"))
    table = score_table(late, decisions)
    assert (table.clusters, table.cycles) == (("w0", "w1"), ("round0#0", "round1#0"))
    assert (table.cluster.tolist(), table.grades.cluster.tolist()) == ([0, 0], [0, 0, 1, 1])
    early = score_table(without(judgments, ("ash.0000.1", "reader"), ("birch.0000.1", "reader")), decisions)
    assert (early.cluster.tolist(), early.cycle.tolist()) == ([1, 1], [1, 1])
    alone = score_table(without(judgments, *((f"ash.000{k}.1", "auditor") for k in (0, 1))), decisions)
    assert (alone.agents, alone.agent.tolist(), alone.grades.agent.tolist()) == (("ash", "birch"), [1, 1], [1, 1, 0, 0])
    # What nobody asked for is not missing.
    gone = [(d.record_id, "reader") for d in decisions if d.agent.id == "ash"]
    table = score_table(without(judgments, *gone, asked=False), decisions)
    shares = {("auditor", "ash"): 0.0, ("auditor", "birch"): 0.0, ("reader", "birch"): 0.0}
    assert table.missing() == ({"auditor": 0.0, "reader": 0.0}, shares)
    assert table.left_out == ("ash.0000.1", "ash.0001.1")
    assert np.isnan(table.grades.values[2:, 1]).all()


def test_grades_are_in_the_digest_and_cannot_be_written(small, one_decision):
    decisions, judgments = small
    broken = without(judgments, ("ash.0000.1", "reader"))
    table = score_table(broken, decisions)
    other = [replace(j, scores={"clarity": 1.0, "risk": 1.0}) if (j.trajectory, j.judge) == ("ash.0000.1", "auditor")
             else j for j in broken]  # fmt: skip
    moved = [one_decision("ash", 0, "w9"), one_decision("birch", 0, "w9"), *(d for d in decisions if d.cluster == "w1")]
    found = {table.digest, score_table(other, decisions).digest, score_table(broken, moved).digest}
    assert len(found | {score_table(judgments, decisions).digest}) == 4
    with pytest.raises(ValueError, match="read-only"):
        table.incomplete.values[0, 0, 0] = 1
    for records in (judgments, broken):
        with pytest.raises(InputError, match=r"lengths: ash\.0000\.1: no token count"):
            score_table(records, decisions, lengths={d.record_id: 10 for d in decisions[1:]})


@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(0, 1))
def test_grades_are_every_judges_mean_of_every_record(make, seed, refused, unasked):
    decisions, judgments = make(clusters=2, cycles=3, trials=2, attend=0.8)
    rng = np.random.default_rng(seed)
    asked = [j for j in judgments if rng.random() >= unasked]
    kept = [replace(j, status="invalid", scores={}) if rng.random() < refused else j for j in asked]
    if not kept:
        return
    table = score_table(kept, decisions)
    grades = table.grades
    ok = {}
    for j in kept:
        if j.status == "ok":
            ok.setdefault((j.trajectory, j.judge), []).append([j.scores[d] for d in table.dimensions])
    assert sorted(grades.trajectories) == sorted({name for name, _ in ok})
    assert grades.trajectories[: table.n] == table.trajectories
    of = {d.record_id: d for d in decisions}
    empty = np.full((1, len(table.dimensions)), np.nan)
    for row, name in enumerate(grades.trajectories):
        place = (grades.agent[row], grades.cycle[row], grades.cluster[row])
        names = tuple(all_[k] for all_, k in zip((table.agents, table.cycles, table.clusters), place, strict=True))
        assert names == (of[name].agent.id, of[name].cycle, of[name].cluster)
        wanted = [np.mean(ok.get((name, judge), empty), axis=0) for judge in table.judges]
        assert grades.values[row] == pytest.approx(np.array(wanted), nan_ok=True)
    asked = {(j.trajectory, j.judge) for j in kept}
    by_judge, by_pair = table.missing()
    lost = {pair: pair not in ok for pair in asked}
    for (judge, agent), share in by_pair.items():
        assert share == pytest.approx(
            np.mean([gone for pair, gone in lost.items() if pair[1] == judge and of[pair[0]].agent.id == agent])
        )
    assert set(by_pair) == {(judge, of[name].agent.id) for name, judge in asked}
    for judge, share in by_judge.items():
        assert share == pytest.approx(np.mean([gone for pair, gone in lost.items() if pair[1] == judge]))
