"""The interval of a share of calls or pairs that come in tasks, and what other statistics over tasks use."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import combinations, product

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
SCALES = [(1.0, 0.0, 0.0), (1.0, 0.5, 0.0), DIFFERENCE, (0.0, 0.0, 2.5)]
tables = st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=2, max_size=14).filter(
    lambda rows: sum(map(any, rows)) > 1
)


def ends(counts, weights=SHARE, **more):
    found = datasheet.share_interval(counts, weights, **more)
    return found.low, found.high


@given(tables, st.sampled_from(SCALES), st.randoms())
def test_the_interval_holds_the_estimate_and_obeys_its_laws(rows, weights, shuffle):
    counts, scale = np.array(rows), np.array(weights)
    low, high = ends(counts, scale)
    value = float(scale @ counts.sum(axis=0)) / counts.sum()
    assert scale.min() <= low <= value + 1e-9
    assert value - 1e-9 <= high <= scale.max()
    assert high > low
    # Turning the question around turns the interval around.
    assert ends(counts, -scale) == pytest.approx((-high, -low), abs=1e-9)
    turned = ends(counts, [0, 1, 1])
    assert ends(counts, [1, 0, 0]) == pytest.approx((1 - turned[1], 1 - turned[0]), abs=1e-9)
    # Neither the order of tasks nor empty ones count.
    mixed = [*rows, [0, 0, 0]]
    shuffle.shuffle(mixed)
    one, other = datasheet.share_interval(rows, weights), datasheet.share_interval(mixed, weights)
    assert (other.low, other.high, other.method) == (pytest.approx(one.low), pytest.approx(one.high), one.method)


def test_the_ends_are_the_jackknife_of_the_log_odds():
    """By definition, one task after the other, where the tasks differ enough for it to be the wider one."""
    counts = np.array([[9, 1], [1, 9], [7, 3], [2, 8], [5, 5], [8, 2]])

    def odds(table):
        hits, misses = table.sum(axis=0) + 0.5
        return math.log(hits / misses)

    without = [odds(np.delete(counts, g, axis=0)) for g in range(6)]
    error = math.sqrt(5 / 6 * sum((one - odds(counts)) ** 2 for one in without))
    expected = tuple(special.expit(odds(counts) + stats.t.ppf([0.025, 0.975], 5) * error))
    assert ends(counts) == pytest.approx(expected)
    assert datasheet.share_interval(counts, SHARE).method == "delete-one-task jackknife of the log odds, t(5)"
    # Equal tasks are no certainty: the exact interval of as many independent calls is the wider one.
    assert ends([[3, 7]] * 40) == pytest.approx(proportion_confint(120, 400, method="beta"))
    # Repeated calls bring nothing new.
    once, even = np.array([[3, 7], [4, 6], [2, 8], [0, 10]]), np.array([[3, 7]] * 4)
    one, thrice = datasheet.share_interval(once, SHARE), datasheet.share_interval(3 * once, SHARE, information=1 / 3)
    assert (thrice.low, thrice.high, thrice.effective) == pytest.approx((one.low, one.high, one.effective))
    assert ends(3 * even)[1] < ends(even)[1]
    # At an edge each task is one unit.
    for tasks in (2, 5, 60):
        none = datasheet.share_interval([[0, 12]] * tasks, SHARE)
        assert (none.low, none.high) == pytest.approx(proportion_confint(0, tasks, method="beta"))
        assert none.method == f"Clopper-Pearson, each of {tasks} tasks one unit"
        assert ends([[12, 0]] * tasks) == pytest.approx((1 - none.high, 1.0))
        assert ends([[0, 12, 0]] * tasks, DIFFERENCE) == pytest.approx((-none.high, none.high))
    # One task has no interval.
    found = datasheet.share_interval([[3, 17], [0, 0]], SHARE)
    assert (found.low, found.high, found.method) == (None, None, "no interval: one task, needs two")
    with pytest.raises(NotMeasurableError):
        ends(np.zeros((3, 2)))


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
            low, high = ends(rng.multinomial(rng.integers(3, 13, tasks), own), weights)
            hits += low <= truth <= high
        assert kept(hits, runs, 0.93), (weights, shares, alike, hits)
        held.append(hits)
    assert kept(sum(held), runs * len(cells), 0.95)


def test_calls_as_independent_are_far_too_narrow(kept):
    rng, truth = np.random.default_rng(5), 0.4
    held = np.zeros(2)
    for _ in range(200):
        hits = rng.binomial(12, rng.beta(truth, 1 - truth, 20))
        both = ends(np.stack([hits, 12 - hits], axis=1)), wilson_ends(hits.sum() / 240, 240, level=0.95)
        held += [low <= truth <= high for low, high in both]
    assert kept(held[0], 200, 0.95)
    assert held[1] < 140


def test_percentiles_are_widened_as_the_t_test_widens():
    """For a mean, the widened normal interval is the t interval of the sample standard deviation."""
    for tasks in (5, 10, 30):
        z = stats.norm.ppf(0.5 + datasheet.widened(0.95, tasks) / 2)
        assert z * np.sqrt((tasks - 1) / tasks) == pytest.approx(stats.t.ppf(0.975, tasks - 1))
    # Dispersion is pearsons chi square over its degrees of freedom.
    counts = np.random.default_rng(1).integers(1, 20, (8, 3)).astype(float)
    found = stats.chi2_contingency(counts, correction=False)
    assert datasheet.dispersion(counts) == pytest.approx(max(1.0, found.statistic / found.dof))
    for counts in ([[3.0, 4.0]], [[3.0, 0.0], [4.0, 0.0]]):
        assert datasheet.dispersion(np.array(counts)) == 1.0
    # A statistic that is often undefined has no interval.
    boot, sums = datasheet.TaskBootstrap(np.random.default_rng(1)), np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]])
    assert boot.ends(sums, lambda s: np.where(s[1] > 0, s[0] / np.where(s[1] > 0, s[1], 1.0), np.nan)) is None
    assert boot.ends(sums[:4], lambda s: s[0]) is None


# Kappa between judges and stability over trials, against scikit-learn and planted values
WORDS = ("1", "2", "tie", "abstain", "invalid")
MERGED = {"abstain": "tie"}


def answers(judge, verdicts, *, tasks=12, trial=1, prompt="tie-allowed"):
    return [PairCall(pair=f"p{i // 2}", condition="same_subset", task=f"q{i // 2 % tasks}", order=("uv", "vu")[i % 2],
        verdict=verdict, judge=judge, trial=trial, prompt=prompt) for i, verdict in enumerate(verdicts)]  # fmt: skip


def kappa_of(a, b, **more):
    return datasheet.between_kappa(a, b, rng=np.random.default_rng(1), **more)


@pytest.mark.parametrize("tasks", [1, 3, 12, 40])
def test_kappa_is_scikit_learns_on_usable_calls(tasks):
    rng = np.random.default_rng(tasks)
    a = rng.choice(WORDS, 400, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    b = np.where(rng.random(400) < 0.6, a, rng.choice(WORDS, 400))
    found = kappa_of(answers("b", b.tolist(), tasks=tasks), answers("a", a.tolist(), tasks=tasks))
    usable = [(MERGED.get(x, x), MERGED.get(y, y)) for x, y in zip(a, b, strict=True) if "invalid" not in (x, y)]
    assert found.value == pytest.approx(cohen_kappa_score(*zip(*usable, strict=True)))
    assert (found.n, found.detail["common_calls"], found.id) == (len(usable), 400, "between.kappa[a=a,b=b]")
    if tasks > 1:
        assert found.low < found.value < found.high
        assert found.method.endswith(f"by position, call by call, delete-one-task jackknife, t({tasks - 1})")
        assert (found.detail["bootstrap"] is None) == (tasks < 5)
    else:
        assert found.low is None
        assert "one task" in found.method


def test_by_content_the_two_orders_of_a_pair_are_averaged():
    both = np.random.default_rng(8).choice(WORDS, (2, 400), p=[0.4, 0.3, 0.15, 0.1, 0.05])
    found = kappa_of(*(answers(name, said.tolist()) for name, said in zip("ab", both, strict=True)), content=True)
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
    """Two judges: without a difference one takes slot 1 and the other slot 2; otherwise both prefer the same text."""
    rng = np.random.default_rng(4)
    liked = ["11" if lost else "12" if u else "21" for lost, u in zip(*rng.random((2, 400)) < 0.5, strict=True)]
    other = ["22" if pair == "11" else pair for pair in liked]
    calls = [answers(name, list("".join(said)), tasks=40) for name, said in (("a", liked), ("b", other))]
    found = kappa_of(*calls, content=True)
    assert (found.value, found.low) == (1.0, None)
    assert datasheet.between_kappa(*calls, rng=rng).high < 0.4
    # Pairs in one order have no content.
    a, b = (answers(name, ["1", "2", "1", "1"])[::2] for name in "ab")
    found = kappa_of(a, b, content=True)
    assert found.state == "not measured: no common pair in both orders with a usable verdict of both (0 common pairs)"
    assert (kappa_of(a, b).n, kappa_of(answers("a", ["1", "2"]), b, content=True).detail["common_pairs"]) == (2, 0)


def test_what_two_judges_have_in_common():
    rng = np.random.default_rng(2)
    a, b = (answers(name, rng.choice(WORDS[:3], 100).tolist()) for name in ("x", "y"))
    assert kappa_of(a, b) == kappa_of(b, a)
    # Only common calls of the arm count.
    a = answers("a", ["1", "2", "tie", "1"]) + answers("a", ["1"], prompt="strict")
    found = kappa_of(a, answers("b", ["1", "2"]) + answers("b", ["2"], prompt="strict"))
    assert (found.value, found.n) == (1.0, 2)
    apart = kappa_of(a, answers("b", ["2"], prompt="other"))
    assert apart.state == "not measured: no common call with a usable verdict of both (0 common calls)"
    # Two judges that always say one thing have no kappa.
    ones, b = answers("a", ["1"] * 8), answers("b", ["1"] * 8)
    assert kappa_of(ones, b).state == "undefined: both judges gave one answer to every common call"
    assert kappa_of(ones, answers("b", ["1", "2"] * 4)).value == 0.0
    for one, message in (
        (answers("a", ["2"]), "needs two judges"),
        (answers("b", ["1"] * 8, tasks=1), "task contradicts"),
    ):
        with pytest.raises(InputError, match=message):
            kappa_of(ones, one)


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

    # Kappas of many tables are those of each.
    tables = np.random.default_rng(3).integers(0, 9, (20, 3, 3))
    found = datasheet.cohen_kappas(tables.reshape(20, 9).T.astype(float), 3)
    a, b = np.nonzero(np.ones((3, 3)))
    assert found == pytest.approx([cohen_kappa_score(a, b, sample_weight=table.ravel()) for table in tables])


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
    # Questions asked once are counted beside.
    found = stability(answers("j", ["1", "2", "tie", "1"]) + answers("j", ["1", "2"], trial=2))
    assert (found.value, found.n, found.detail["once_only"], found.low) == (1.0, 2, 2, None)
    assert "no interval: one task" in found.method
    assert found.detail["kappa"] == 1.0
    # A judge that always ties is stable and has no kappa.
    found = stability(answers("j", ["tie"] * 40) + answers("j", ["abstain"] * 40, trial=2))
    assert (found.value, found.detail["kappa"], found.detail["kappa_method"]) == (1.0, None, "undefined")


# The decomposition: its identities, its symmetries, and the slot against the content
SWAP = {"1": "2", "2": "1"}


def parts_of(pairs):
    return decompose(*zip(*pairs, strict=True))


@given(st.lists(st.tuples(*[st.sampled_from(datasheet.VERDICTS)] * 2), min_size=1, max_size=80))
def test_equation_7_and_the_symmetries_hold_with_any_verdicts(pairs):
    d, calls = parts_of(pairs), [verdict for pair in pairs for verdict in pair]
    assert d.raw_false_preference == pytest.approx(d.stable + d.positional + d.one_sided / 2 + d.other)
    assert d.raw_false_preference == pytest.approx(sum(verdict in "12" for verdict in calls) / len(calls))
    # The shares of pairs make one, and pairs with an invalid call are other and nothing else.
    assert d.stable + d.positional + d.one_sided + d.no_preference + d.other_pairs == pytest.approx(1)
    assert d.other_pairs == pytest.approx(sum("invalid" in pair for pair in pairs) / len(pairs))
    assert 0 <= d.other <= d.other_pairs / 2
    assert d.n_pairs == len(pairs)
    # Showing the other order first changes nothing, nor does numbering the slots the other way.
    assert parts_of([pair[::-1] for pair in pairs]) == d
    assert parts_of([tuple(SWAP.get(verdict, verdict) for verdict in pair) for pair in pairs]) == d
    # A tie and an abstention are the same.
    assert parts_of([tuple("tie" if verdict == "abstain" else verdict for verdict in pair) for pair in pairs]) == d


@given(st.lists(st.tuples(*[st.sampled_from(datasheet.VERDICTS[:4])] * 2), min_size=1, max_size=80))
def test_slot_and_content_mean_opposite_things(pairs):
    """Reading the second verdict as a content (u stands in slot 2 there) turns stable and positional around."""
    by_slot = parts_of(pairs)
    by_content = parts_of([(first, SWAP.get(second, second)) for first, second in pairs])
    assert (by_content.stable, by_content.positional) == (by_slot.positional, by_slot.stable)
    assert (by_content.one_sided, by_content.no_preference) == (by_slot.one_sided, by_slot.no_preference)
    # Without invalid calls nothing is left over.
    assert by_slot.other == by_slot.other_pairs == 0
    tied = sum(verdict not in "12" for pair in pairs for verdict in pair) / (2 * len(pairs))
    assert tied == pytest.approx(by_slot.no_preference + by_slot.one_sided / 2)


def test_every_two_verdicts_have_one_class():
    words = {pair: datasheet.CLASSES[datasheet.pair_class(*pair)] for pair in product(datasheet.VERDICTS, repeat=2)}
    assert (len(words), {words["1", "2"], words["2", "1"]}) == (25, {"stable"})
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
    assert [str(one)[:9] for one in caught.value.problems] == ["first[1]:", "first[2]:", "second[1]", "first, se"]
    with pytest.raises(NotMeasurableError, match="no pairs"):
        decompose([], [])


# The columns against the definition: classes, agreement, refusals
@st.composite
def logs(draw):
    """Columns of a log: some calls of up to three judges on up to eight pairs in up to three tasks, in any order."""
    keys = draw(st.lists(st.tuples(*map(partial(st.integers, 0), (2, 7, 1))), min_size=1, max_size=40, unique=True))
    verdicts = draw(st.lists(st.integers(0, 4), min_size=len(keys), max_size=len(keys)))
    task_of = draw(st.lists(st.integers(0, 2), min_size=8, max_size=8))
    judge, pair, order = map(list, zip(*keys, strict=True))
    return judge, pair, order, verdicts, [task_of[p] for p in pair]


@given(logs())
def test_columns_give_what_the_definition_gives(log):
    seen = {(j, p, o): (datasheet.VERDICTS[v], t) for j, p, o, v, t in zip(*log, strict=True)}
    classes, alone, judges = Counter(), Counter(), range(max(log[0]) + 1)
    for judge, pair in {(j, p) for j, p, _ in seen}:
        both = [seen[judge, pair, order] for order in (0, 1) if (judge, pair, order) in seen]
        if len(both) < 2:
            alone[judge] += 1
        else:
            classes[judge, both[0][1], datasheet.pair_class(both[0][0], both[1][0])] += 1
    found, calls = datasheet.decompose_arrays(*log), Counter(zip(log[0], log[3], strict=True))
    assert {place: n for place, n in np.ndenumerate(found.pairs) if n} == dict(classes)
    assert found.incomplete.tolist() == [alone[judge] for judge in judges]
    assert found.calls.sum(axis=1).tolist() == [[calls[judge, verdict] for verdict in range(5)] for judge in judges]
    # Sorting gives what the table gives.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasheet.calls, "_DENSE", 0)
        sparse = datasheet.decompose_arrays(*log)
    assert np.array_equal(found.pairs, sparse.pairs)
    assert np.array_equal(found.incomplete, sparse.incomplete)


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
        pairs = [(t, answers[found.first, c][0], answers[found.second, c][0]) for (j, c), (_, t) in answers.items()
                 if j == found.first and (found.second, c) in answers]  # fmt: skip
        assert {place: n for place, n in np.ndenumerate(found.tables) if n} == dict(Counter(pairs))
        assert found.tables.shape[1:] == (len(datasheet.OUTCOMES), len(datasheet.OUTCOMES))


@given(logs(), st.sampled_from([0, 1 << 40]))
def test_by_content_averages_both_orders_of_every_pair(log, far):
    judge, pair, order, verdict, task = log
    words = [datasheet.OUTCOMES[datasheet.OUTCOME_OF[v]] for v in verdict]
    said = dict(zip(zip(judge, pair, order, strict=True), words, strict=True))
    score = {("1", 0): 1, ("2", 0): -1, ("1", 1): -1, ("2", 1): 1}

    def preferred(j, p):
        both = [said.get((j, p, o)) for o in (0, 1)]
        if None in both or "invalid" in both:
            return None if None in both else 3
        ahead = sum(score.get((word, o), 0) for o, word in enumerate(both))
        return 0 if ahead > 0 else 1 if ahead < 0 else 2

    call = [far + p * 2 + o for p, o in zip(pair, order, strict=True)]
    for found in datasheet.agreement_arrays(judge, call, verdict, task, content=True):
        pairs = [
            (t, preferred(found.first, p), preferred(found.second, p)) for p, t in set(zip(pair, task, strict=True))
        ]
        expected = Counter(one for one in pairs if None not in one)
        assert {place: n for place, n in np.ndenumerate(found.tables) if n} == dict(expected)


def test_columns_that_make_no_sense_are_refused():
    tables, codes = datasheet.decompose_arrays, "judge_codes: must be one axis of whole numbers"
    good = [[0, 0], [0, 0], [0, 1], [0, 2], [0, 0]]
    cases = [
        (3, [0, 5], "verdict_codes: codes must be 0..4 .first that is not: 5, row 1."),
        (2, [0, 2], "order_codes: codes must be 0..1"), (0, [0, -1], "judge_codes: codes must be at least 0"),
        (0, [0, 0, 0], "must be equally long .got 2, 3."), (0, [0.0, 0.0], codes), (0, [], codes),
        (2, [0, 0], "rows 1: asked before"), (4, [0, 1], "rows 0: task contradicts"),
    ]  # fmt: skip
    for call, columns, message in (
        *((tables, [*good[:at], values, *good[at + 1 :]], said) for at, values, said in cases),
        # All faults of a log are named at once.
        (tables, ([0] * 9, [0] * 9, [0, 1] * 4 + [0], [0] * 9, [0] * 8 + [1]), "2 problems"),
        (datasheet.agreement_arrays, ([0] * 8,) * 4, "rows 1, 2, 3, 4, 5 and 2 more: asked before"),
        (datasheet.agreement_arrays, ([0, 1], [0, 0], [0, 0], [0, 1]), "task contradicts"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            call(*columns)
