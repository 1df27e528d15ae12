"""Kappa between judges and stability over trials, against scikit-learn and planted values."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from assaymark.errors import InputError
from assaymark.metrology.datasheet import TaskBootstrap, between_kappa, datasheet_measurements
from assaymark.metrology.datasheet.estimates import cohen_kappas, kappa_interval
from assaymark.records import PairCall

WORDS = ("1", "2", "tie", "abstain", "invalid")
MERGED = {"abstain": "tie"}


def answers(judge, verdicts, *, tasks=12, trial=1, prompt="tie-allowed"):
    return [
        PairCall(
            pair=f"p{i // 2}",
            condition="same_subset",
            task=f"q{i // 2 % tasks}",
            order=("uv", "vu")[i % 2],
            verdict=verdict,
            judge=judge,
            trial=trial,
            prompt=prompt,
        )
        for i, verdict in enumerate(verdicts)
    ]


@pytest.mark.parametrize("tasks", [1, 3, 12, 40])
def test_kappa_is_scikit_learns_on_usable_calls(tasks):
    rng = np.random.default_rng(tasks)
    a = rng.choice(WORDS, 400, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    b = np.where(rng.random(400) < 0.6, a, rng.choice(WORDS, 400))
    found = between_kappa(
        answers("b", b.tolist(), tasks=tasks), answers("a", a.tolist(), tasks=tasks), rng=np.random.default_rng(1)
    )
    usable = [(MERGED.get(x, x), MERGED.get(y, y)) for x, y in zip(a, b, strict=True) if "invalid" not in (x, y)]
    assert found.value == pytest.approx(cohen_kappa_score(*zip(*usable, strict=True)))
    assert (found.n, found.detail["common_calls"]) == (len(usable), 400)
    assert found.id == "between.kappa[a=a,b=b]"
    if tasks == 1:
        assert found.low is None
        assert "one task" in found.method
    else:
        assert found.low < found.value < found.high
        assert found.method.endswith(f"by position, call by call, delete-one-task jackknife, t({tasks - 1})")
        assert (found.detail["bootstrap"] is None) == (tasks < 5)


def test_the_order_of_the_judges_does_not_matter():
    rng = np.random.default_rng(2)
    a, b = (answers(name, rng.choice(WORDS[:3], 100).tolist()) for name in ("x", "y"))
    assert between_kappa(a, b, rng=np.random.default_rng(1)) == between_kappa(b, a, rng=np.random.default_rng(1))


def test_only_common_calls_of_the_arm_count():
    a = answers("a", ["1", "2", "tie", "1"]) + answers("a", ["1"], prompt="strict")
    b = answers("b", ["1", "2"]) + answers("b", ["2"], prompt="strict")
    found = between_kappa(a, b, rng=np.random.default_rng(1))
    assert (found.value, found.n) == (1.0, 2)
    apart = between_kappa(a, answers("b", ["2"], prompt="other"), rng=np.random.default_rng(1))
    assert apart.state == "not measured: no common call with a usable verdict of both (0 common calls)"


def by_content(a, b):
    return between_kappa(a, b, rng=np.random.default_rng(1), content=True)


def test_by_content_the_two_orders_of_a_pair_are_averaged():
    rng = np.random.default_rng(8)
    both = rng.choice(WORDS, (2, 400), p=[0.4, 0.3, 0.15, 0.1, 0.05])
    found = by_content(*(answers(name, said.tolist()) for name, said in zip("ab", both, strict=True)))
    score = {"1": 1, "2": -1, "tie": 0, "abstain": 0}  # of the text in slot 1, which is u in the first order
    pairs = [
        tuple(int(np.sign(score[first] - score[second])) for first, second in each)
        for each in zip(*(said.reshape(-1, 2).tolist() for said in both), strict=True)
        if "invalid" not in (*each[0], *each[1])
    ]
    assert found.value == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    assert (found.id, found.n, found.n_of) == ("between.kappa_content[a=a,b=b]", len(pairs), "common pairs")
    assert (found.detail["common_pairs"], found.detail["invalid"]) == (200, 200 - len(pairs))
    assert found.detail["outcomes"] == ["u", "v", "no preference"]
    assert found.low < found.value < found.high
    assert "by content, orders averaged, delete-one-task jackknife, t(11)" in found.method


def test_judges_of_opposite_habits_can_prefer_the_same_texts():
    """Where it cannot tell, one takes slot 1 and the other slot 2; elsewhere both prefer the same text."""
    rng = np.random.default_rng(4)
    liked = ["11" if lost else "12" if u else "21" for lost, u in zip(*rng.random((2, 400)) < 0.5, strict=True)]
    other = ["22" if pair == "11" else pair for pair in liked]
    calls = [answers(name, list("".join(said)), tasks=40) for name, said in (("a", liked), ("b", other))]
    assert by_content(*calls).value == 1.0
    assert by_content(*calls).low is None
    assert between_kappa(*calls, rng=rng).high < 0.4


def test_pairs_in_one_order_have_no_content():
    a, b = (answers(name, ["1", "2", "1", "1"])[::2] for name in "ab")
    found = by_content(a, b)
    assert found.state == "not measured: no common pair in both orders with a usable verdict of both (0 common pairs)"
    assert between_kappa(a, b, rng=np.random.default_rng(1)).n == 2
    assert by_content(answers("a", ["1", "2"]), b).detail["common_pairs"] == 0


def test_two_judges_that_always_say_one_thing_have_no_kappa():
    found = between_kappa(answers("a", ["1"] * 8), answers("b", ["1"] * 8), rng=np.random.default_rng(1))
    assert found.state == "undefined: both judges gave one answer to every common call"
    one_constant = between_kappa(answers("a", ["1"] * 8), answers("b", ["1", "2"] * 4), rng=np.random.default_rng(1))
    assert one_constant.value == 0.0


def test_a_judge_is_not_compared_with_itself():
    with pytest.raises(InputError, match="needs two judges"):
        between_kappa(answers("a", ["1"]), answers("a", ["2"]), rng=np.random.default_rng(1))
    with pytest.raises(InputError, match="task contradicts"):
        between_kappa(
            answers("a", ["1", "1", "1", "1"], tasks=1), answers("b", ["1"] * 4, tasks=2), rng=np.random.default_rng(1)
        )


@pytest.mark.parametrize("tasks", [8, 40])
def test_the_interval_holds_the_planted_kappa(tasks, in_band):
    """Verdicts of one judge copied with a chance of 0.6, so that kappa is 0.6; calls of a task share a leaning."""
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([tasks, seed])
        lean = rng.dirichlet([12.0, 12.0, 12.0], tasks)
        tables = np.zeros((tasks, 3, 3), dtype=np.int64)
        for task, share in enumerate(lean):
            a = rng.choice(3, 30, p=share)
            b = np.where(rng.random(30) < 0.6, a, rng.integers(0, 3, 30))
            np.add.at(tables[task], (a, b), 1)
        ends = kappa_interval(tables, TaskBootstrap(rng)).ends
        held += ends[0] <= 0.6 <= ends[1]
    assert in_band(held, 200, 0.95)


def test_kappas_of_many_tables_are_those_of_each():
    tables = np.random.default_rng(3).integers(0, 9, (20, 3, 3))
    found = cohen_kappas(tables.reshape(20, 9).T.astype(float), 3)
    for table, value in zip(tables, found, strict=True):
        a, b = np.nonzero(np.ones((3, 3)))
        assert value == pytest.approx(cohen_kappa_score(a, b, sample_weight=table.ravel()))


def stability(calls):
    measured = datasheet_measurements(calls, rng=np.random.default_rng(1))
    return next(m for m in measured if m.name == "repeat.stability")


def test_stability_is_the_mean_agreement_of_trial_pairs():
    rng = np.random.default_rng(6)
    trials = [rng.choice(WORDS, 120, p=[0.5, 0.2, 0.15, 0.1, 0.05]).tolist() for _ in range(3)]
    found = stability([call for t, verdicts in enumerate(trials, 1) for call in answers("j", verdicts, trial=t)])
    merged = [[MERGED.get(v, v) for v in verdicts] for verdicts in trials]
    same = [np.mean([x == y for x, y in zip(a, b, strict=True)]) for a, b in combinations(merged, 2)]
    assert found.value == pytest.approx(np.mean(same))
    assert (found.n, found.n_of, found.detail["trials"]) == (120, "questions", 3)
    usable = [
        pair
        for a, b in combinations(merged, 2)
        for x, y in zip(a, b, strict=True)
        if "invalid" not in (x, y)
        for pair in ((x, y), (y, x))
    ]
    assert found.detail["kappa"] == pytest.approx(cohen_kappa_score(*zip(*usable, strict=True)))


def test_questions_asked_once_are_counted_beside():
    calls = answers("j", ["1", "2", "tie", "1"]) + answers("j", ["1", "2"], trial=2)
    found = stability(calls)
    assert (found.value, found.n, found.detail["once_only"]) == (1.0, 2, 2)
    assert found.low is None
    assert "no interval: one task" in found.method
    assert found.detail["kappa"] == 1.0


def test_a_judge_that_always_ties_is_stable_and_has_no_kappa():
    found = stability(answers("j", ["tie"] * 40) + answers("j", ["abstain"] * 40, trial=2))
    assert found.value == 1.0
    assert found.detail["kappa"] is None
    assert found.detail["kappa_method"] == "undefined"
