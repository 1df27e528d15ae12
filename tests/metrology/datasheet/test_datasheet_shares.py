"""The interval of a share of calls or pairs that come in tasks, and what other statistics over tasks use."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import datasheet, decompose
from assaymark.quantiles import wilson_ends
from assaymark.records import PairCall

SHARE, DIFFERENCE = (1.0, 0.0), (-1.0, 0.0, 1.0)

tables = st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=2, max_size=14).filter(
    lambda rows: sum(map(any, rows)) > 1
)


def boot(seed=1, **parts):
    return datasheet.TaskBootstrap(np.random.default_rng(seed), **parts)


@given(tables, st.sampled_from([(1.0, 0.0, 0.0), (1.0, 0.5, 0.0), DIFFERENCE, (0.0, 0.0, 2.5)]))
def test_the_interval_holds_the_estimate_and_stays_on_the_scale(rows, weights):
    counts, scale = np.array(rows), np.array(weights)
    found = datasheet.share_interval(counts, scale)
    value = float(scale @ counts.sum(axis=0)) / counts.sum()
    assert scale.min() <= found.low <= value + 1e-9
    assert value - 1e-9 <= found.high <= scale.max()
    assert found.high > found.low


@given(tables)
def test_turning_the_question_around_turns_the_interval_around(rows):
    counts = np.array(rows)
    ours, other = datasheet.share_interval(counts, [1, 0, 0]), datasheet.share_interval(counts, [0, 1, 1])
    assert (ours.low, ours.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-9)
    up, down = datasheet.share_interval(counts, DIFFERENCE), datasheet.share_interval(counts, DIFFERENCE[::-1])
    assert (up.low, up.high) == pytest.approx((-down.high, -down.low), abs=1e-9)


@given(tables, st.randoms())
def test_neither_the_order_of_tasks_nor_empty_ones_count(rows, shuffle):
    mixed = [*rows, [0, 0, 0]]
    shuffle.shuffle(mixed)
    one, other = datasheet.share_interval(rows, [1, 0.5, 0]), datasheet.share_interval(mixed, [1, 0.5, 0])
    assert (other.low, other.high) == pytest.approx((one.low, one.high))
    assert one.method == other.method


def test_the_ends_are_the_jackknife_of_the_log_odds():
    """By definition, one task after the other, where the tasks differ enough for it to be the wider one."""
    counts = np.array([[9, 1], [1, 9], [7, 3], [2, 8], [5, 5], [8, 2]])

    def odds(table):
        hits, misses = table.sum(axis=0) + 0.5
        return math.log(hits / misses)

    without = [odds(np.delete(counts, g, axis=0)) for g in range(6)]
    error = math.sqrt(5 / 6 * sum((one - odds(counts)) ** 2 for one in without))
    low, high = odds(counts) + stats.t.ppf([0.025, 0.975], 5) * error
    found = datasheet.share_interval(counts, SHARE)
    assert (found.low, found.high) == pytest.approx((special.expit(low), special.expit(high)))
    assert found.method == "delete-one-task jackknife of the log odds, t(5)"


def test_equal_tasks_are_no_certainty():
    """Where the tasks hardly differ the exact interval of as many independent calls is the wider one."""
    counts = np.array([[3, 7]] * 40)
    found = datasheet.share_interval(counts, SHARE)
    assert (found.low, found.high) == pytest.approx(proportion_confint(120, 400, method="beta"))
    # Repeated calls bring nothing new.
    once = np.array([[3, 7], [4, 6], [2, 8], [0, 10]])
    one, thrice = datasheet.share_interval(once, SHARE), datasheet.share_interval(3 * once, SHARE, information=1 / 3)
    assert (thrice.low, thrice.high, thrice.effective) == pytest.approx((one.low, one.high, one.effective))
    even = np.array([[3, 7]] * 4)
    assert datasheet.share_interval(3 * even, SHARE).high < datasheet.share_interval(even, SHARE).high


@pytest.mark.parametrize("tasks", [2, 5, 60])
def test_at_an_edge_each_task_is_one_unit(tasks):
    none = datasheet.share_interval([[0, 12]] * tasks, SHARE)
    assert (none.low, none.high) == pytest.approx(proportion_confint(0, tasks, method="beta"))
    assert none.method == f"Clopper-Pearson, each of {tasks} tasks one unit"
    every = datasheet.share_interval([[12, 0]] * tasks, SHARE)
    assert (every.low, every.high) == pytest.approx((1 - none.high, 1.0))
    nothing = datasheet.share_interval([[0, 12, 0]] * tasks, DIFFERENCE)
    assert (nothing.low, nothing.high) == pytest.approx((-none.high, none.high))


def test_one_task_has_no_interval():
    found = datasheet.share_interval([[3, 17], [0, 0]], SHARE)
    assert (found.low, found.high, found.method) == (None, None, "no interval: one task, needs two")
    with pytest.raises(NotMeasurableError):
        datasheet.share_interval(np.zeros((3, 2)), SHARE)


@pytest.mark.parametrize("tasks", [5, 12, 20, 60])
def test_intervals_hold_what_was_planted(tasks, kept):
    """Tasks with 3 to 12 units and shares of their own, rare and even, of one sign and of two."""
    rng, runs = np.random.default_rng([9, tasks]), 250
    cells = [(SHARE, (p, 1 - p), alike) for p in (0.02, 0.2, 0.5, 0.98) for alike in (0.0, 0.3)]
    cells += [((1.0, 0.5, 0.0), (0.1, 0.1, 0.8), 0.3), (DIFFERENCE, (0.02, 0.88, 0.1), 0.3)]
    held = []
    for weights, shares, alike in cells:
        truth, hits = float(np.dot(weights, shares)), 0
        for _ in range(runs):
            own = rng.dirichlet(np.array(shares) * (1 - alike) / alike, tasks) if alike else shares
            found = datasheet.share_interval(rng.multinomial(rng.integers(3, 13, tasks), own), weights)
            hits += found.low <= truth <= found.high
        assert kept(hits, runs, 0.93), (weights, shares, alike, hits)
        held.append(hits)
    assert kept(sum(held), runs * len(cells), 0.95)


def test_calls_as_independent_are_far_too_narrow(kept):
    rng, truth = np.random.default_rng(5), 0.4
    held = wilsons = 0
    for _ in range(200):
        hits = rng.binomial(12, rng.beta(truth, 1 - truth, 20))
        found = datasheet.share_interval(np.stack([hits, 12 - hits], axis=1), SHARE)
        low, high = wilson_ends(hits.sum() / 240, 240, level=0.95)
        held += found.low <= truth <= found.high
        wilsons += low <= truth <= high
    assert kept(held, 200, 0.95)
    assert wilsons < 140


def test_percentiles_are_widened_as_the_t_test_widens():
    """For a mean, the widened normal interval is the t interval of the sample standard deviation."""
    for tasks in (5, 10, 30):
        z = stats.norm.ppf(0.5 + datasheet.widened(0.95, tasks) / 2)
        assert z * np.sqrt((tasks - 1) / tasks) == pytest.approx(stats.t.ppf(0.975, tasks - 1))
    # Dispersion is pearsons chi square over its degrees of freedom.
    counts = np.random.default_rng(1).integers(1, 20, (8, 3)).astype(float)
    found = stats.chi2_contingency(counts, correction=False)
    assert datasheet.dispersion(counts) == pytest.approx(max(1.0, found.statistic / found.dof))
    assert datasheet.dispersion(np.array([[3.0, 4.0]])) == 1.0
    assert datasheet.dispersion(np.array([[3.0, 0.0], [4.0, 0.0]])) == 1.0
    # A statistic that is often undefined has no interval.
    sums = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]])
    assert boot().ends(sums, lambda s: np.where(s[1] > 0, s[0] / np.where(s[1] > 0, s[1], 1.0), np.nan)) is None
    assert boot().ends(sums[:4], lambda s: s[0]) is None


# Kappa between judges and stability over trials, against scikit-learn and planted values

WORDS = ("1", "2", "tie", "abstain", "invalid")
MERGED = {"abstain": "tie"}


def answers(judge, verdicts, *, tasks=12, trial=1, prompt="tie-allowed"):
    return [PairCall(pair=f"p{i // 2}", condition="same_subset", task=f"q{i // 2 % tasks}", order=("uv", "vu")[i % 2],
        verdict=verdict, judge=judge, trial=trial, prompt=prompt) for i, verdict in enumerate(verdicts)]  # fmt: skip


@pytest.mark.parametrize("tasks", [1, 3, 12, 40])
def test_kappa_is_scikit_learns_on_usable_calls(tasks):
    rng = np.random.default_rng(tasks)
    a = rng.choice(WORDS, 400, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    b = np.where(rng.random(400) < 0.6, a, rng.choice(WORDS, 400))
    found = datasheet.between_kappa(
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
    assert datasheet.between_kappa(a, b, rng=np.random.default_rng(1)) == datasheet.between_kappa(
        b, a, rng=np.random.default_rng(1)
    )
    # Only common calls of the arm count.
    a = answers("a", ["1", "2", "tie", "1"]) + answers("a", ["1"], prompt="strict")
    b = answers("b", ["1", "2"]) + answers("b", ["2"], prompt="strict")
    found = datasheet.between_kappa(a, b, rng=np.random.default_rng(1))
    assert (found.value, found.n) == (1.0, 2)
    apart = datasheet.between_kappa(a, answers("b", ["2"], prompt="other"), rng=np.random.default_rng(1))
    assert apart.state == "not measured: no common call with a usable verdict of both (0 common calls)"


def by_content(a, b):
    return datasheet.between_kappa(a, b, rng=np.random.default_rng(1), content=True)


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
    assert datasheet.between_kappa(*calls, rng=rng).high < 0.4
    # Pairs in one order have no content.
    a, b = (answers(name, ["1", "2", "1", "1"])[::2] for name in "ab")
    found = by_content(a, b)
    assert found.state == "not measured: no common pair in both orders with a usable verdict of both (0 common pairs)"
    assert datasheet.between_kappa(a, b, rng=np.random.default_rng(1)).n == 2
    assert by_content(answers("a", ["1", "2"]), b).detail["common_pairs"] == 0
    # Two judges that always say one thing have no kappa.
    found = datasheet.between_kappa(answers("a", ["1"] * 8), answers("b", ["1"] * 8), rng=np.random.default_rng(1))
    assert found.state == "undefined: both judges gave one answer to every common call"
    one_constant = datasheet.between_kappa(
        answers("a", ["1"] * 8), answers("b", ["1", "2"] * 4), rng=np.random.default_rng(1)
    )
    assert one_constant.value == 0.0
    # A judge is not compared with itself.
    with pytest.raises(InputError, match="needs two judges"):
        datasheet.between_kappa(answers("a", ["1"]), answers("a", ["2"]), rng=np.random.default_rng(1))
    with pytest.raises(InputError, match="task contradicts"):
        datasheet.between_kappa(
            answers("a", ["1", "1", "1", "1"], tasks=1), answers("b", ["1"] * 4, tasks=2), rng=np.random.default_rng(1)
        )


@pytest.mark.parametrize("tasks", [8, 40])
def test_the_interval_holds_the_planted_kappa(tasks, in_band):
    """Verdicts of one judge copied with a chance of 0.6, so that kappa is 0.6; calls of a task share a leaning."""
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([tasks, seed])
        lean = rng.dirichlet([12.0, 12.0, 12.0], tasks)
        tables = np.zeros((tasks, 4, 4), dtype=np.int64)
        for task, share in enumerate(lean):
            a = rng.choice(3, 30, p=share)
            b = np.where(rng.random(30) < 0.6, a, rng.integers(0, 3, 30))
            np.add.at(tables[task], (a, b), 1)
        found = datasheet.kappa_measurement(tables, {}, datasheet.TaskBootstrap(rng))
        held += found.low <= 0.6 <= found.high
    assert in_band(held, 200, 0.95)


def test_kappas_of_many_tables_are_those_of_each():
    tables = np.random.default_rng(3).integers(0, 9, (20, 3, 3))
    found = datasheet.cohen_kappas(tables.reshape(20, 9).T.astype(float), 3)
    for table, value in zip(tables, found, strict=True):
        a, b = np.nonzero(np.ones((3, 3)))
        assert value == pytest.approx(cohen_kappa_score(a, b, sample_weight=table.ravel()))


def stability(calls):
    measured = datasheet.datasheet_measurements(calls, rng=np.random.default_rng(1))
    return next(m for m in measured if m.name == "repeat.stability")


def test_stability_is_the_mean_agreement_of_trial_pairs():
    rng = np.random.default_rng(6)
    trials = [rng.choice(WORDS, 120, p=[0.5, 0.2, 0.15, 0.1, 0.05]).tolist() for _ in range(3)]
    found = stability([call for t, verdicts in enumerate(trials, 1) for call in answers("j", verdicts, trial=t)])
    merged = [[MERGED.get(v, v) for v in verdicts] for verdicts in trials]
    same = [np.mean([x == y for x, y in zip(a, b, strict=True)]) for a, b in combinations(merged, 2)]
    assert found.value == pytest.approx(np.mean(same))
    assert (found.n, found.n_of, found.detail["trials"]) == (120, "questions", 3)
    usable = [pair for a, b in combinations(merged, 2) for x, y in zip(a, b, strict=True) if "invalid" not in (x, y)
        for pair in ((x, y), (y, x))]  # fmt: skip
    assert found.detail["kappa"] == pytest.approx(cohen_kappa_score(*zip(*usable, strict=True)))


def test_questions_asked_once_are_counted_beside():
    calls = answers("j", ["1", "2", "tie", "1"]) + answers("j", ["1", "2"], trial=2)
    found = stability(calls)
    assert (found.value, found.n, found.detail["once_only"]) == (1.0, 2, 2)
    assert found.low is None
    assert "no interval: one task" in found.method
    assert found.detail["kappa"] == 1.0
    # A judge that always ties is stable and has no kappa.
    found = stability(answers("j", ["tie"] * 40) + answers("j", ["abstain"] * 40, trial=2))
    assert found.value == 1.0
    assert found.detail["kappa"] is None
    assert found.detail["kappa_method"] == "undefined"


# The decomposition: its identities, its symmetries, and the slot against the content

verdict_pairs = st.lists(
    st.tuples(st.sampled_from(datasheet.VERDICTS), st.sampled_from(datasheet.VERDICTS)), min_size=1, max_size=80
)
clean_pairs = st.lists(
    st.tuples(st.sampled_from(datasheet.VERDICTS[:4]), st.sampled_from(datasheet.VERDICTS[:4])), min_size=1, max_size=80
)
SWAP = {"1": "2", "2": "1"}


@given(verdict_pairs)
def test_equation_7_holds_with_any_verdicts(pairs):
    d = decompose(*zip(*pairs, strict=True))
    assert d.raw_false_preference == pytest.approx(d.stable + d.positional + d.one_sided / 2 + d.other)
    calls = [verdict for pair in pairs for verdict in pair]
    assert d.raw_false_preference == pytest.approx(sum(verdict in "12" for verdict in calls) / len(calls))
    # The shares of pairs make one.
    assert d.stable + d.positional + d.one_sided + d.no_preference + d.other_pairs == pytest.approx(1)
    assert d.n_pairs == len(pairs)
    # Pairs with an invalid call are other and nothing else.
    assert d.other_pairs == pytest.approx(sum("invalid" in pair for pair in pairs) / len(pairs))
    assert 0 <= d.other <= d.other_pairs / 2


@given(clean_pairs)
def test_without_invalid_calls_nothing_is_left_over(pairs):
    d = decompose(*zip(*pairs, strict=True))
    assert d.other == d.other_pairs == 0
    tied = sum(verdict not in "12" for pair in pairs for verdict in pair) / (2 * len(pairs))
    assert tied == pytest.approx(d.no_preference + d.one_sided / 2)


@given(verdict_pairs)
def test_showing_the_other_order_first_changes_nothing(pairs):
    first, second = zip(*pairs, strict=True)
    assert decompose(first, second) == decompose(second, first)
    # Calling u v and v u swaps which call is the first of the pair, and no verdict: it names a slot.
    renamed = [(b, a) for a, b in pairs]
    assert decompose(*zip(*renamed, strict=True)) == decompose(first, second)
    # Numbering the slots the other way changes nothing.
    mirrored = [tuple(SWAP.get(verdict, verdict) for verdict in pair) for pair in pairs]
    assert decompose(*zip(*mirrored, strict=True)) == decompose(*zip(*pairs, strict=True))


@given(clean_pairs)
def test_slot_and_content_mean_opposite_things(pairs):
    """Reading the second verdict as a content (u stands in slot 2 there) turns stable and positional around."""
    by_slot = decompose(*zip(*pairs, strict=True))
    first, second = zip(*pairs, strict=True)
    by_content = decompose(first, [SWAP.get(verdict, verdict) for verdict in second])
    assert (by_content.stable, by_content.positional) == (by_slot.positional, by_slot.stable)
    assert (by_content.one_sided, by_content.no_preference) == (by_slot.one_sided, by_slot.no_preference)
    # A tie and an abstention are the same.
    tied = [tuple("tie" if verdict == "abstain" else verdict for verdict in pair) for pair in pairs]
    assert decompose(*zip(*tied, strict=True)) == decompose(*zip(*pairs, strict=True))


def test_every_two_verdicts_have_one_class():
    assert datasheet.CLASS_OF.shape == (5, 5)
    words = {
        (a, b): datasheet.CLASSES[datasheet.pair_class(a, b)] for a in datasheet.VERDICTS for b in datasheet.VERDICTS
    }
    assert {words["1", "2"], words["2", "1"]} == {"stable"}
    assert (words["1", "1"], words["2", "2"]) == ("positional, slot 1", "positional, slot 2")
    assert {words[a, b] for a in "12" for b in ("tie", "abstain")} == {"one-sided"}
    assert {words[a, b] for a in ("tie", "abstain") for b in ("tie", "abstain")} == {"no preference"}
    assert {words["invalid", b] for b in "12"} == {"other, one preference"}
    assert {words["invalid", b] for b in ("tie", "abstain", "invalid")} == {"other, no preference"}
    for (a, b), word in words.items():
        assert datasheet.PREFERENCES[datasheet.CLASSES.index(word)] == ((a in "12") + (b in "12")) / 2
    # What is wrong is named all at once.
    with pytest.raises(InputError, match=r"4 problems") as caught:
        decompose(["1", "A", ""], ["tie", "3"])
    assert [str(problem)[:9] for problem in caught.value.problems] == [
        "first[1]:", "first[2]:", "second[1]", "first, se",
    ]  # fmt: skip
    with pytest.raises(NotMeasurableError, match="no pairs"):
        decompose([], [])


# The columns against the definition: classes, agreement, refusals


@st.composite
def logs(draw):
    """Columns of a log: some calls of up to three judges on up to eight pairs in up to three tasks, in any order."""
    size = draw(st.integers(1, 40))
    keys = draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 7), st.integers(0, 1)), min_size=1, max_size=size, unique=True
        )
    )
    verdicts = draw(st.lists(st.integers(0, 4), min_size=len(keys), max_size=len(keys)))
    task_of = draw(st.lists(st.integers(0, 2), min_size=8, max_size=8))
    judge, pair, order = map(list, zip(*keys, strict=True))
    return judge, pair, order, verdicts, [task_of[p] for p in pair]


def slow(log):
    """Class counts and incomplete pairs straight from the definition."""
    seen = {(j, p, o): (v, t) for j, p, o, v, t in zip(*log, strict=True)}
    classes, alone = Counter(), Counter()
    for judge, pair in {(j, p) for j, p, _ in seen}:
        both = [seen.get((judge, pair, order)) for order in (0, 1)]
        if None in both:
            alone[judge] += 1
        else:
            classes[
                judge, both[0][1], datasheet.pair_class(datasheet.VERDICTS[both[0][0]], datasheet.VERDICTS[both[1][0]])
            ] += 1
    return classes, alone


@given(logs())
def test_columns_give_what_the_definition_gives(log):
    found = datasheet.decompose_arrays(*log)
    classes, alone = slow(log)
    for place, count in np.ndenumerate(found.pairs):
        assert count == classes[place]
    assert found.pairs.sum() == sum(classes.values())
    assert found.incomplete.tolist() == [alone[judge] for judge in range(max(log[0]) + 1)]
    assert found.calls.sum(axis=1).tolist() == [
        [sum((j, v) == (judge, verdict) for j, v in zip(log[0], log[3], strict=True)) for verdict in range(5)]
        for judge in range(max(log[0]) + 1)
    ]
    # Sorting gives what the table gives.
    dense = datasheet.decompose_arrays(*log)
    limit = datasheet.calls._DENSE
    datasheet.calls._DENSE = 0
    try:
        sparse = datasheet.decompose_arrays(*log)
    finally:
        datasheet.calls._DENSE = limit
    assert np.array_equal(dense.pairs, sparse.pairs)
    assert np.array_equal(dense.incomplete, sparse.incomplete)


def test_a_judges_counts_are_its_decomposition():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 5, (2, 500))
    pair = np.arange(500)
    columns = [np.zeros(1000, int), np.r_[pair, pair], np.r_[pair * 0, pair * 0 + 1], np.r_[first, second]]
    counts = datasheet.decompose_arrays(*columns, np.r_[pair, pair] % 7)
    slow_way = decompose([datasheet.VERDICTS[v] for v in first], [datasheet.VERDICTS[v] for v in second])
    assert datasheet.decomposition_of(counts.pairs[0].sum(axis=0)) == slow_way
    assert counts.pairs.shape == (1, 7, len(datasheet.CLASSES))


@given(logs())
def test_agreement_tables_count_common_calls(log):
    judge, pair, order, verdict, task = log
    call = [p * 2 + o for p, o in zip(pair, order, strict=True)]
    answers = {(j, c): (datasheet.OUTCOME_OF[v], t) for j, c, v, t in zip(judge, call, verdict, task, strict=True)}
    for found in datasheet.agreement_arrays(judge, call, verdict, task):
        expected = Counter(
            (t, answers[found.first, c][0], answers[found.second, c][0])
            for (j, c), (_, t) in answers.items()
            if j == found.first and (found.second, c) in answers
        )
        assert {place: n for place, n in np.ndenumerate(found.tables) if n} == dict(expected)
        assert found.tables.shape[1:] == (len(datasheet.OUTCOMES), len(datasheet.OUTCOMES))


@given(logs(), st.sampled_from([0, 1 << 40]))
def test_by_content_averages_both_orders_of_every_pair(log, far):
    judge, pair, order, verdict, task = log
    said = {
        (j, p, o): datasheet.OUTCOMES[datasheet.OUTCOME_OF[v]]
        for j, p, o, v in zip(judge, pair, order, verdict, strict=True)
    }
    score = {("1", 0): 1, ("2", 0): -1, ("1", 1): -1, ("2", 1): 1}

    def preferred(j, p):
        both = [said.get((j, p, o)) for o in (0, 1)]
        if None in both or "invalid" in both:
            return None if None in both else 3
        ahead = sum(score.get((word, o), 0) for o, word in enumerate(both))
        return 0 if ahead > 0 else 1 if ahead < 0 else 2

    call = [far + p * 2 + o for p, o in zip(pair, order, strict=True)]
    for found in datasheet.agreement_arrays(judge, call, verdict, task, content=True):
        expected = Counter()
        for p, t in dict(zip(pair, task, strict=True)).items():
            one, other = preferred(found.first, p), preferred(found.second, p)
            if one is not None and other is not None:
                expected[t, one, other] += 1
        assert {place: n for place, n in np.ndenumerate(found.tables) if n} == dict(expected)


GOOD = ([0, 0], [0, 0], [0, 1], [0, 2], [0, 0])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (3, [0, 5], "verdict_codes: codes must be 0..4 .first that is not: 5, row 1."),
        (2, [0, 2], "order_codes: codes must be 0..1"), (0, [0, -1], "judge_codes: codes must be at least 0"),
        (0, [0, 0, 0], "must be equally long .got 2, 3."),
        (0, [0.0, 0.0], "judge_codes: must be one axis of whole numbers"),
        (0, [], "judge_codes: must be one axis of whole numbers"), (2, [0, 0], "rows 1: asked before"),
        (4, [0, 1], "rows 0: task contradicts"),
    ],
)  # fmt: skip
def test_columns_that_make_no_sense_are_refused(column, value, message):
    columns = list(GOOD)
    columns[column] = value
    with pytest.raises(InputError, match=message):
        datasheet.decompose_arrays(*columns)


def test_all_faults_of_a_log_are_named_at_once():
    with pytest.raises(InputError, match="2 problems"):
        datasheet.decompose_arrays([0] * 9, [0] * 9, [0, 1] * 4 + [0], [0] * 9, [0] * 8 + [1])
    with pytest.raises(InputError, match="rows 1, 2, 3, 4, 5 and 2 more: asked before"):
        datasheet.agreement_arrays([0] * 8, [0] * 8, [0] * 8, [0] * 8)
    with pytest.raises(InputError, match="task contradicts"):
        datasheet.agreement_arrays([0, 1], [0, 0], [0, 0], [0, 1])
