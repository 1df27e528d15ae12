"""Kappa, Fleiss and the rounding rule: against scikit-learn, statsmodels, and the definition written slowly."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from slow_orders import unusable
from statsmodels.stats import inter_rater

from assaymark import metrology as mt
from assaymark.claims import certificate, decide_claims, index, verify
from assaymark.errors import InputError, NotMeasurableError
from assaymark.protocol import RubricChoice, Scale, Study, parse_study, plan_hash

SCALE = [1, 2, 3, 4, 5]
pairs = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=60)


def sklearns(a, b, labels=SCALE):
    return pytest.approx(cohen_kappa_score(a, b, weights="quadratic", labels=labels), abs=1e-12)


@given(pairs)
def test_kappa_is_its_definition_and_obeys_its_laws(items):
    a, b = zip(*items, strict=True)
    assert (mt.contingency(a, b) == mt.contingency(np.array(a), np.array(b))).all()
    assume(len(set(a)) > 1 or len(set(b)) > 1)
    kappa = mt.weighted_kappa(a, b)
    by_definition = 1 - len(a) * sum((x - y) ** 2 for x, y in items) / sum((x - y) ** 2 for x in a for y in b)
    assert kappa == pytest.approx(by_definition, abs=1e-12)
    assert mt.kappa_of_table(mt.contingency(a, b)) == mt.kappa_of_table(mt.contingency(a, b).tolist()) == kappa
    if len(set(a)) > 1 < len(set(b)):
        assert mt.weighted_kappa(np.array(a), np.array(b)) == sklearns(a, b)
    # Neither who is first, the direction of the scale, nor the same items again change it.
    a, b = np.array(a), np.array(b)
    assert mt.weighted_kappa(a, b) == mt.weighted_kappa(b, a) == mt.weighted_kappa(6 - a, 6 - b)
    assert mt.weighted_kappa(np.tile(a, 3), np.tile(b, 3)) == pytest.approx(kappa, abs=1e-15)


@pytest.mark.parametrize("categories", [2, 3, 5, 7, 8, 127, 128, 200])
def test_one_rating_off_the_scale_is_found_in_arrays_of_any_size(categories):
    table = np.random.default_rng(1).integers(1, categories + 1, (2, 20_000))
    assert mt.contingency(*table, categories=categories).sum() == 20_000
    for value in (0, -1, categories + 1, 2 * categories, 2**40, -(2**62)):
        for column in (0, 1):
            stray = table.copy()
            stray[column, 17_000] = value
            with pytest.raises(InputError, match=rf"1 rating\(s\) off the scale 1..{categories} \(first: {value}\)"):
                mt.contingency(*stray, categories=categories)


def test_kappa_of_many_items_of_gaps_in_the_scale_and_of_small_integers():
    a, b = np.random.default_rng(5).integers(1, 6, (2, 40_001))
    assert (mt.contingency(a, b).sum(), mt.weighted_kappa(a, b)) == (40_001, sklearns(a, b))
    assert mt.kappa_of_table(np.array([[10**11, 1], [0, 10**11]])) == pytest.approx(1 - 1e-11, abs=1e-15)
    assert mt.weighted_kappa([2, 3, 4, 4, 2], [2, 4, 4, 3, 2]) == sklearns([2, 3, 4, 4, 2], [2, 4, 4, 3, 2])
    # Dropping category 3 from the labels of a scale with gaps changes the distances; ours must not.
    a, b = [1, 1, 5, 5, 4], [1, 4, 5, 5, 5]
    assert abs(mt.weighted_kappa(a, b) - cohen_kappa_score(a, b, weights="quadratic")) > 0.01
    assert mt.weighted_kappa(a, b) == sklearns(a, b)
    # A wider scale and small integer types.
    a, b = np.random.default_rng(3).integers(1, 101, (2, 500))
    for kind in (np.int8, np.uint8, np.int16, np.uint64, np.float32, np.float64):
        found = mt.weighted_kappa(a.astype(kind), b.astype(kind), categories=100)
        assert found == sklearns(a, b, list(range(1, 101)))
    # One constant judge has zero.
    assert mt.weighted_kappa([3, 3, 3, 3], [1, 2, 3, 5]) == 0.0


@pytest.mark.parametrize(("a", "b", "message"), [
    ([], [], "a: is empty"), ([1, 2], [1], r"must be equally long \(got 2 and 1\)"),
    ([0, 1], [1, 2], r"off the scale 1..5 \(first: 0\)"),
    ([1, 6], [1, 2], r"1 rating\(s\) off the scale 1..5 \(first: 6\)"),
    ([1, 2.5], [1, 2], "first that is not: 2.5.*round_half_up, then clip"),
    ([1, math.nan], [1, 2], r"1 rating\(s\) are not finite \(first at index 1\)"),
    ([1, math.inf], [1, 2], "not finite"), ([1.0, 1e300], [1, 2], "off the scale"),
    (["1", "2"], [1, 2], "whole-number ratings"), ([True, False], [1, 2], "whole-number ratings"),
    ([None, 1], [1, 2], "objects"), ([[1, 2]], [1, 2], r"one axis \[n\] \(got shape \(1, 2\)\)"),
    ([[1], [1, 2]], [1, 2], "unequal lengths"), (3, [1, 2], r"got shape \(\)")
])  # fmt: skip
def test_kappa_says_what_is_wrong(a, b, message):
    with pytest.raises(InputError, match=message):
        mt.weighted_kappa(a, b)


TWO, NONE, MEANS = [[1.0, 2.0], [2.0, 3.0]], np.empty((0, 3), dtype=int), (mt.mean_pairwise_kappa, mt.fleiss_kappa)
WHOLE = "categories: must be a whole number of at least 2"
WRONG = {
    mt.kappa_of_table: [([[1, 2]], "square of counts"), ([[1.5, 0], [0, 1]], "square of counts"),
                        ([[1, -1], [0, 1]], "square of counts"), ([1, 2], "square of counts")],
    **{one: [([1, 2], "two axes"), (NONE, "is empty")] for one in MEANS},
    mt.round_half_up: [(x, "must be finite numbers") for x in (math.nan, [1.0, math.inf], "3", None)],
    mt.repetition_stability: [([1.0, 2.0], "two axes"), ([[1.0, math.nan]], "not finite"), (NONE, "empty")],
    partial(mt.leave_one_family_out, TWO): [
        (["n"], r"one family for each of the 2 judges \(got 1\)"), ([1, 2], "one family for each")],
    lambda scores: mt.leave_one_family_out(scores, ["n", "s"]): [
        ([[1.0, math.nan], [2.0, 3.0]], "not finite"), ([1.0, 2.0], "two axes")],
    lambda n: mt.weighted_kappa([1, 2], [1, 2], categories=n): [(n, WHOLE) for n in (1, 0, 2.0, True, "5")],
    lambda n: mt.repetition_stability(TWO, ddof=n): [(True, "ddof"), (2, r"ddof: must be 0 or 1 \(got 2\)")],
}  # fmt: skip
UNDEFINED = {
    lambda both: mt.weighted_kappa(*both): [
        (both, f"both judges gave one rating to all {len(both[0])} items")
        for both in (([3, 3, 3], [3, 3, 3]), ([3, 3], [4, 4]), ([2], [5]))],
    mt.mean_pairwise_kappa: [([[1, 3, 4], [2, 3, 4], [3, 3, 4]], "judges 2 and 3: kappa is undefined"),
                             ([[1], [2]], r"at least two judges \(got 1\)")],
    mt.fleiss_kappa: [([[1], [2]], r"at least two judges \(got 1\)"), ([[4] * 3] * 2, "all 6 ratings are the same")],
    mt.repetition_stability: [([[1.0], [2.0]], "one trial, needs two"), ([[1.0, 2.0]], "one item, needs two"),
                              ([[3.0, 3.0], [3.0, 3.0]], "every trial of all 2 items has one score")],
    partial(mt.leave_one_family_out, TWO): [(["n", "n"], "one judge family, needs two")],
    lambda scores: mt.leave_one_family_out(scores, ["n", "s"]): [
        ([[1.0, 2.0]], "at least two agents"), ([[1.0, 2.0], [1.0, 2.0]], "all 2 agents are tied")],
}  # fmt: skip


@pytest.mark.parametrize(("error", "cases"), [(InputError, WRONG), (NotMeasurableError, UNDEFINED)])
def test_statistics_say_what_is_wrong_and_why_they_are_undefined(error, cases):
    for statistic, rows in cases.items():
        for row, message in rows:
            with pytest.raises(error, match=message):
                statistic(row)


@given(st.lists(st.tuples(*[st.integers(1, 5)] * 3), min_size=2, max_size=40))
def test_fleiss_and_mean_pairwise_kappa_agree_with_other_libraries(rows):
    table = np.array(rows)
    assume(len(np.unique(table)) > 1)
    counts, _ = inter_rater.aggregate_raters(table)
    assert mt.fleiss_kappa(table) == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-10)
    columns = list(combinations(table.T, 2))
    if all(max(np.ptp(one), np.ptp(other)) > 0 for one, other in columns):
        expected = [cohen_kappa_score(*pair, weights="quadratic", labels=SCALE) for pair in columns]
        assert mt.mean_pairwise_kappa(table) == pytest.approx(np.mean(expected), abs=1e-12)


@given(st.floats(-1e6, 1e6))
def test_rounding_is_floor_of_x_plus_a_half(x):
    assert mt.round_half_up(x) == math.floor(x + 0.5)
    assert isinstance(mt.round_half_up(x), float)
    assert [mt.round_half_up(x) for x in (2.5, 0.5, 1.49, 2.0, -0.5, 7.5, 4)] == [3, 1, 1, 2, 0, 8, 4]
    assert mt.round_half_up(np.array([[0.4, 5.5], [6.5, 2.5]])).tolist() == [[0, 6], [7, 3]]


# Any score scale: what agreement is measured by, and what an affine change of the scores leaves as it is
PANEL = {"auditor": "north", "reader": "south", "skeptic": "east"}
DIMENSIONS = ("clarity", "risk")


def study_of(scale: Scale = (1, 5), extra: str = "", agreement: str | None = None) -> Study:
    listed = "".join(f'[[judges]]\nname = "{n}"\nmodel = "elsewhere/{n}"\nfamily = "{f}"\n' for n, f in PANEL.items())
    chosen = "" if agreement is None else f'agreement = "{agreement}"\n'
    rubric = "" if scale == (1, 5) and not chosen else f"[rubric]\nscale = {list(scale)}\n{chosen}"
    return parse_study(f'name = "mine"\nseed = 3\n{rubric}\n{extra}\n{listed}')


def rows(change: Any = float, *, levels: tuple[int, int] = (1, 5), seed: int = 1) -> pa.Table:
    """Whole scores on ``levels``, each put on another scale by ``change``, in the order of cycles."""
    rng, found = np.random.default_rng(seed), []
    low, high = levels
    for cycle in range(48):
        base = (low + high) / 2 + rng.normal(0, (high - low) / 8)
        for k, (agent, effect) in enumerate({"ash": 0.25, "birch": 0.06, "cedar": 0.0, "elm": 0.0}.items()):
            true = base + (high - low) * effect + rng.normal(0, (high - low) / 9, 2)
            for judge, family in PANEL.items():
                seen = np.clip(np.rint(true + rng.normal(0, (high - low) / 10, 2)), low, high).tolist()
                found.append({
                    "trajectory": 4 * cycle + k, "agent": agent, "cluster": f"week{cycle // 6}", "judge": judge,
                    "family": family, "trial": 1, "cycle": cycle, "clarity": change(seen[0]), "risk": change(seen[1]),
                })  # fmt: skip
    return pa.Table.from_pylist(found)


def found_in(table: mt.ScoreTable, study: Study) -> tuple[dict[str, Any], list[Any]]:
    measurements = mt.analyse(table, study, rng=np.random.default_rng(1))
    return {item.id: item for item in measurements}, list(decide_claims(measurements, study, "plan"))


def icc_by_anova(x: np.ndarray) -> float:
    """ICC(A,1) of items [n, 2] from the mean squares of a two-way layout (McGraw and Wong 1996, table 4)."""
    n, grand, items, judges = len(x), x.mean(), x.mean(axis=1), x.mean(axis=0)
    between = 2 * ((items - grand) ** 2).sum() / (n - 1)
    columns = n * ((judges - grand) ** 2).sum()
    error = ((x - items[:, None] - judges + grand) ** 2).sum() / (n - 1)
    return float((between - error) / (between + error + 2 / n * (columns - error)))


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=3, max_size=40))
def test_the_correlation_of_two_judges_is_that_of_the_analysis_of_variance(items):
    x = np.array(items) / 4
    a, b = x.T - 37.5
    found = float(mt.intraclass(len(x), a.sum(), b.sum(), a @ a, b @ b, a @ b))
    constant = np.ptp(x, axis=0) == 0
    expected = math.nan if constant.all() else 0 if constant.any() else icc_by_anova(x)
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_a_scale_of_many_levels_is_compared_by_its_scores():
    study = study_of((0, 100))
    table = mt.table_from_arrow(rows(lambda x: x, levels=(0, 100)), dimensions=DIMENSIONS, scale=(0, 100))
    known, verdicts = found_in(table, study)
    for place, name in enumerate(("aggregate", *DIMENSIONS)):
        item = known[f"kappa.mean_pairwise[dimension={name}]"]
        columns = table.stacked[:, :, place]
        pairs = [icc_by_anova(columns[:, list(pair)]) for pair in combinations(range(3), 2)]
        assert item.value == pytest.approx(np.mean(pairs), abs=1e-9)
        assert "intraclass correlation" in item.method
        assert item.low < item.value < item.high
        assert item.detail["bootstrap"]["low"] < item.value < item.detail["bootstrap"]["high"]
        # The jackknife over clusters, slowly.
        judges = [
            [icc_by_anova(columns[table.cluster != g][:, list(p)]) for p in combinations(range(3), 2)] for g in range(8)
        ]
        without = np.mean(judges, axis=1)
        se = math.sqrt(7 / 8 * np.square(without - np.mean(pairs)).sum())
        assert item.high - item.value == pytest.approx(2.364624 * se, rel=1e-5)
    assert known["kappa.fleiss[dimension=aggregate]"].state.startswith("not measured")
    said = " ".join(reason for verdict in verdicts for reason in verdict.reasons)
    weak = {name for verdict in verdicts for name in verdict.fragility}
    assert "agree on the overall score at intraclass correlation" in said
    assert "kappa" not in said
    assert not [name for name in weak if "kappa" in name or "half-even" in name]
    assert "margin 5" in weak
    assert any("within 7.5 of each other" in verdict.claim.statement for verdict in verdicts)
    indexed = index(known.values())
    for verdict in verdicts:
        checked = verify(certificate(verdict, indexed, study))
        assert checked.ok, (verdict.claim.id, checked)


@pytest.mark.parametrize(("scale", "low", "factor", "agreement"), [
    ((0, 100), 0, 25, "icc"), ((-2, 2), -2, 1, "icc"), ((0, 1), 0, 0.25, "icc"), ((0, 4), 0, 1, "kappa"),
    ((11, 15), 11, 1, "kappa"), ((1, 9), 1, 2, None)
])  # fmt: skip
def test_an_affine_change_of_the_scores_changes_no_verdict(scale, low, factor, agreement):
    """p-values, states, tiers and levels stay, gaps and their ends are multiplied. On 1..9 the aggregate is rounded to
    finer categories, so that its kappa is another: there only what decides orders is the same."""
    one, another = study_of(agreement=agreement), study_of(scale, agreement=agreement)
    plain = mt.table_from_arrow(rows(), dimensions=DIMENSIONS)
    table = mt.table_from_arrow(rows(lambda x: low + factor * (x - 1)), dimensions=DIMENSIONS, scale=scale)
    (first, verdicts), (second, changed) = found_in(plain, one), found_in(table, another)
    assert first.keys() == second.keys()
    for name, item in first.items():
        other = second[name]
        if agreement is None and name.startswith("kappa"):
            continue
        assert item.state == other.state, name
        points = {"rubric points": factor, "squared points": factor**2}.get(item.unit, 1)
        start = low - factor if item.name in ("score.effect", "lofo.effect", "single.level") else 0
        for part in ("value", "low", "high"):
            mine = getattr(item, part)
            wanted = None if mine is None else pytest.approx(start + mine * points, abs=1e-9, rel=1e-7)
            assert getattr(other, part) == wanted, (name, part)
        for part in ("p", "p_adjusted", "p_equivalence"):
            if part in item.detail:
                assert other.detail[part] == pytest.approx(item.detail[part], rel=1e-6), (name, part)
    said = [sorted((v.claim.id, v.stability_status, v.publication_level, *sorted(v.fragility.values())) for v in both)
            for both in (verdicts, changed)]  # fmt: skip
    assert said[0] == said[1]


def test_pass_and_fail_are_a_scale():
    table = mt.table_from_arrow(rows(lambda x: float(x >= 3)), dimensions=DIMENSIONS, scale=(0, 1))
    study = study_of((0, 1))
    assert (study.rubric.coefficient, study.rubric.categories) == ("kappa", 2)
    known, _ = found_in(table, study)
    item = known["kappa.mean_pairwise[dimension=clarity]"]
    assert np.shape(item.detail["tables"]["auditor|reader"]) == (2, 2)
    assert 0 < item.value < 1
    assert known["contrast[dimension=clarity,high=ash,low=elm]"].value > 0.1


@pytest.mark.parametrize(("levels", "agreement"), [((0, 10), None), ((3, 5), None), ((0, 10), "icc"), ((-2, 2), None)])
def test_sums_say_what_the_rows_say_on_any_whole_scale(levels, agreement):
    source, study = rows(int, levels=levels), study_of(levels, agreement=agreement)
    table = mt.table_from_arrow(source, dimensions=DIMENSIONS, scale=levels)
    by_row = {item.id: item for item in mt.analyse(table, study, rng=np.random.default_rng(1))}
    sums = mt.sums_of(source, dimensions=DIMENSIONS, scale=levels)
    for item in mt.analyse(sums, study, rng=np.random.default_rng(1)):
        if item.name.startswith(("kappa", "redundancy", "score.effect", "contrast")):
            assert item.value == (None if by_row[item.id].value is None else pytest.approx(by_row[item.id].value))
            assert item.detail.get("tables") == by_row[item.id].detail.get("tables")


def test_limits_in_points_grow_with_the_scale_and_plans_keep_their_hashes():
    with pytest.raises(mt.NotStreamableError, match=r"scores on 0\.\.100 have too many levels"):
        mt.sums_of(rows(int, levels=(0, 100)), dimensions=DIMENSIONS, scale=(0, 100))
    with pytest.raises(InputError, match=r"scores must be in 1\.\.10 \(got 11"):
        mt.table_from_arrow(rows(lambda x: x + 6), dimensions=DIMENSIONS, scale=(1, 10))
    plain, ten = study_of(), study_of((1, 10), "[cells]\nhalo = 0.2\n")
    assert (ten.cells.substance, ten.cells.verbosity, ten.cells.halo, ten.inference.mde_sd) == (0.675, 1.125, 0.2, 2.25)
    assert (ten.points, ten.scale_text, ten.rubric.coefficient) == (9, "1 to 10", "kappa")
    built = Study(name="a", seed=1, judges=plain.judges, rubric=RubricChoice(scale=(0, 100)))
    assert built.cells.substance == 7.5
    assert "scale" not in plain.model_dump(mode="json")["rubric"]
    assert plan_hash(plain, {}) == plan_hash(study_of(extra="[rubric]\nscale = [1, 5]\n"), {})
    assert plan_hash(plain, {}) not in (plan_hash(study_of((1, 6)), {}), plan_hash(study_of(agreement="icc"), {}))


@pytest.mark.parametrize(("text", "said"), [
    ("[rubric]\nscale = [5, 1]\n", "names its lowest score first"), ("[rubric]\nscale = [1, inf]\n", "finite"),
    ('[rubric]\nscale = [0, 100]\nagreement = "kappa"\n', "at most 11"),
    ('[rubric]\nscale = [0, 0.5]\nagreement = "kappa"\n', "whole from end to end"),
    ("oracle = true\n[rubric]\nscale = [1, 10]\n", "oracle scores on 1..5 alone"),
    ("[rubric]\nscale = [1, 10]\n[datasheets]\nvacuum_score = 11\n", "must lie on the scale, 1..10"),
    ("[datasheets]\nvacuum_score = 6\n", "must lie on the scale, 1..5"), ("[datasheets]\nslope = -5\n", "±4")
])  # fmt: skip
def test_a_scale_that_cannot_be(text, said):
    with pytest.raises(InputError, match=re.escape(said)):
        study_of(extra=text)


def test_simulated_studies_stay_on_the_scale():
    composers = (mt.Composer("ash", 60.0), mt.Composer("elm", 95.0))
    panel = (mt.Panelist("auditor", "north"), mt.Panelist("reader", "south"))
    truth = mt.Truth(composers, panel, residual=mt.Spread(20.0), scale=(0, 100))
    table = mt.simulate_scores(truth, np.random.default_rng(2))
    assert (table.scores.min() >= 0, table.scores.max()) == (True, 100)
    fitted = mt.fitted_truth(table, mt.variance_components(table), (0, 100))
    assert fitted.means.max() > 60
    share = replace(table, scores=table.scores / 100, trials={n: t / 100 for n, t in table.trials.items()})
    continuous = mt.fitted_truth(share, mt.variance_components(share), (0, 1))
    drawn = mt.simulate_scores(continuous, np.random.default_rng(3))
    assert 0.2 < drawn.scores.mean() < 1
    assert len(np.unique(drawn.scores)) > 50


# Repetition stability and dropping judge families
@given(st.integers(0, 1000), st.floats(0.1, 10), st.floats(-5, 5))
def test_repetition_stability_is_its_definition_and_has_no_unit(seed, scale, shift):
    trials = np.random.default_rng(seed).normal(size=(10, 3))
    for ddof in (0, 1):
        within = np.mean([np.var(row, ddof=ddof) for row in trials])
        expected = pytest.approx(1 - within / np.var(trials.ravel(), ddof=ddof), abs=1e-9)
        assert mt.repetition_stability(trials, ddof=ddof) == expected
        assert mt.repetition_stability(scale * trials + shift, ddof=ddof) == expected


def test_the_divisor_can_decide_a_gate():
    rng = np.random.default_rng(4)
    trials = rng.normal(size=(50, 1)) + rng.normal(0, 0.36, (50, 3))
    assert mt.repetition_stability(trials, ddof=1) < 0.9 < mt.repetition_stability(trials, ddof=0)
    assert mt.repetition_stability(trials) == mt.repetition_stability(trials, ddof=1)
    # Planted repetition noise is recovered, and identical trials are perfectly stable.
    rng = np.random.default_rng(2)
    trials = rng.normal(0, 1, (4000, 1)) + rng.normal(0, 0.5, (4000, 3))
    assert mt.repetition_stability(trials) == pytest.approx(1 - 0.25 / 1.25, abs=0.02)
    assert mt.repetition_stability([[1.0, 1.0], [2.0, 2.0]]) == 1.0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_spearman_agrees_with_scipy(items):
    a, b = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    assert mt.average_ranks(a[:, None]).ravel().tolist() == stats.rankdata(a).tolist()
    rho = None if min(np.ptp(a), np.ptp(b)) == 0 else pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
    assert mt.spearman_columns(np.stack([a, b], axis=1), np.stack([b, a], axis=1)) == [rho, rho]
    assert rho is None or mt.spearman(a, b) == rho


def test_levels_that_differ_by_float_noise_tie():
    assert mt.spearman(np.array([0.1 + 0.2, 0.3, 1.0]), np.array([0.3, 0.3, 2.0])) == 1.0
    # With four agents any change of order is below nine tenths.
    base = np.arange(4.0)
    found = {order: mt.spearman(base, np.array(order, dtype=float)) for order in permutations(range(4))}
    assert [order for order, rho in found.items() if rho >= 0.9] == [(0, 1, 2, 3)]
    # Dropping families is ranking without their judges.
    scores = np.random.default_rng(7).normal(size=(8, 4))
    found = mt.leave_one_family_out(scores, ["n", "s", "n", "e"])
    assert list(found) == ["n", "s", "e"]
    for family, keep in (("n", [1, 3]), ("s", [0, 2, 3]), ("e", [0, 1, 2])):
        expected = stats.spearmanr(scores.mean(axis=1), scores[:, keep].mean(axis=1)).statistic
        assert found[family] == pytest.approx(expected)
    # A halo for one agent shows when its family is dropped.
    scores = np.array([[3.0, 3.0, 5.0], [3.4, 3.4, 3.4], [3.2, 3.2, 3.2]])
    assert mt.leave_one_family_out(scores, ["n", "s", "halo"]) == {"n": 1.0, "s": 1.0, "halo": -0.5}


@given(st.permutations(range(5)), st.integers(0, 500))
def test_the_order_in_which_agents_are_listed_does_not_matter(order, seed):
    scores = np.random.default_rng(seed).normal(size=(5, 3))
    one, other = mt.leave_one_family_out(scores, list("abc")), mt.leave_one_family_out(scores[order], list("abc"))
    assert one == pytest.approx(other)


def test_a_judge_below_the_gate_counts_with_its_first_trial_only(make, study):
    decisions, judgments = make(trials=3)
    table, plan = mt.score_table(judgments, decisions), study()
    assert mt.repetition_stability(table.trials["auditor"]) < 0.9
    assert mt.averaging(table, plan) == {"auditor": False}
    found = mt.gated(table, plan)
    first = {(j.trajectory, j.judge): j.scores for j in judgments if j.trial == 1}
    for row, key in enumerate(found.trajectories):
        for j, judge in enumerate(found.judges):
            assert found.scores[row, j].tolist() == [first[key, judge][d] for d in found.dimensions]
    assert found.digest == table.digest
    assert (mt.gated(found, plan).scores == found.scores).all()
    # A judge that reaches the gate keeps its mean.
    plan = study("gates = {repetition_stability = 0.5}")
    assert mt.averaging(table, plan) == {"auditor": True}
    assert (mt.gated(table, plan).scores == table.scores).all()
    # What was decided on honest records can be applied to cells, and undone.
    first = mt.gated(table, plan, {"auditor": False})
    assert (first.scores != table.scores).any()
    assert (mt.gated(first, plan, {"auditor": True}).scores == table.scores).all()


def test_grades_of_incomplete_records_follow_the_gate(make, study):
    decisions, judgments = make(trials=3)
    gone = {(d.record_id, "reader") for d in decisions[:7]} | {(decisions[9].record_id, "auditor")}
    broken = unusable(judgments, lambda j: (j.trajectory, j.judge) in gone)
    table = mt.score_table(broken, decisions)
    found = mt.gated(table, study(), {"auditor": False})
    assert found.grades.trajectories == table.grades.trajectories
    first = {(j.trajectory, j.judge): j.scores for j in broken if j.trial == 1 and j.status == "ok"}
    for row, key in enumerate(found.grades.trajectories):
        for j, judge in enumerate(found.judges):
            wanted = first.get((key, judge), dict.fromkeys(found.dimensions, math.nan))
            assert found.grades.values[row, j].tolist() == pytest.approx(list(wanted.values()), nan_ok=True)
    back = mt.gated(found, study(), {"auditor": True}).grades.values
    assert np.array_equal(back, table.grades.values, equal_nan=True)
    assert not np.array_equal(back, found.grades.values, equal_nan=True)
    whole = mt.gated(mt.score_table(judgments, decisions), study(), {"auditor": False})
    assert whole.grades.values is whole.scores


def test_the_gate_is_inclusive_and_reads_the_plans_divisor(make, study):
    decisions, judgments = make(trials=3)
    table = mt.score_table(judgments, decisions)
    sharp, loose = (mt.repetition_stability(table.trials["auditor"], ddof=ddof) for ddof in (1, 0))
    assert sharp < loose
    between = f"gates = {{repetition_stability = {(sharp + loose) / 2}}}"
    for plan, passes in ((between, False), (f"{between}\ninference = {{ddof = 0}}", True),
                         (f"gates = {{repetition_stability = {sharp + 1e-10}}}", True)):  # fmt: skip
        assert mt.averaging(table, study(plan)) == {"auditor": passes}
    assert mt.averaging(table, study(between), ddof=0) == {"auditor": True}
    # One trial is nothing to average.
    decisions, judgments = make()
    table = mt.score_table(judgments, decisions)
    assert mt.averaging(table, study()) == {}
    assert table.first is table.mean is table.repeats is None
    assert mt.gated(table, study()) is table
    # A stability that cannot be measured does not pass.
    decisions, judgments = make(trials=2)
    broken = unusable(judgments, lambda j: (j.judge, j.trial) == ("auditor", 1))
    table = mt.score_table(broken, decisions)
    assert mt.averaging(table, study("gates = {repetition_stability = 0.0}")) == {"auditor": False}
    # The first usable trial is the second one; no trajectory is lost.
    assert (mt.gated(table, study()).scores == table.scores).all()


def test_the_noise_floor_follows_the_gate(make, study, one_decision, one_judgment):
    decisions, judgments = make(trials=3)
    again = one_decision("ash", 0, "week00", replicate=2)
    own = {"auditor": (2.0, 5.0, 5.0), "reader": (3.0,), "skeptic": (4.0,)}
    more = [one_judgment(again.record_id, judge, dict.fromkeys(("clarity", "evidence", "risk"), s), trial=trial)
            for judge, scores in own.items() for trial, s in enumerate(scores, 1)]  # fmt: skip
    table = mt.score_table([*judgments, *more], [*decisions, again])
    assert table.replicates["ash"][0][1] == pytest.approx((4.0 + 3.0 + 4.0) / 3)
    assert mt.gated(table, study()).replicates["ash"][0][1] == pytest.approx((2.0 + 3.0 + 4.0) / 3)
