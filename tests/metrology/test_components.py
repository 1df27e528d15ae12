"""Variance components: planted ones are recovered, and balanced tables give the analysis of variance."""

from __future__ import annotations

import contextlib
import math
import warnings
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.regression.mixed_linear_model import MixedLM

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError

COMPOSERS = tuple(mt.Composer(name, mean) for name, mean in (("ash", 3.2), ("birch", 3.0), ("cedar", 2.8)))
SOLID = mt.Spread(0.4, 0.0)
PANEL = (
    mt.Panelist("auditor", "north", severity=0.2, disagreement=mt.Spread(0.3, 0.0), trials=3, trial_noise=SOLID),
    mt.Panelist("reader", "south", severity=-0.2, disagreement=SOLID),
    mt.Panelist("skeptic", "east", disagreement=mt.Spread(0.5, 0.0), bonus=(("ash", 0.1), ("birch", -0.1))),
)
TRUTH = mt.Truth(
    composers=COMPOSERS, panel=PANEL, dimensions=("clarity", "risk"), clusters=8, cycles=8, cluster=mt.Spread(0.2, 1.0),
    cycle=mt.Spread(0.3, 1.0), interaction=mt.Spread(0.15, 1.0), residual=mt.Spread(0.4, 1.0),
)  # fmt: skip
BONUSES = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, -0.1], [0.0, 0.0, 0.0]])  # of agents (rows) by judges
"""Effects that the dimensions share, so that the aggregate has the same components as each of them."""


def components(truth, *seed):
    return mt.variance_components(simulated(truth, *seed))


def simulated(truth, *seed):
    return mt.simulate_scores(truth, np.random.default_rng(list(seed)))


def close(values, expected, what):
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    # Rounding and the ends of the scale move a variance by a few thousandths, beside the sampling error.
    assert np.mean(values) == pytest.approx(expected, abs=3.5 * error + 0.004), what


def planted(dimension):
    """Return the true components of a dimension or the aggregate; rounding adds 1/12 to each call."""
    shared = 1.0 if dimension != "aggregate" else 0.5  # noise of judges is independent between two dimensions
    noise = [shared * (0.3**2 + (0.4**2 + 1 / 12) / 3), shared * (0.4**2 + 1 / 12), shared * (0.5**2 + 1 / 12)]
    liking = BONUSES - BONUSES.mean(axis=1, keepdims=True) - BONUSES.mean(axis=0) + BONUSES.mean()
    levels = np.array([3.2, 3.0, 2.8]) + BONUSES.mean(axis=1)
    severity = np.array([0.2, -0.2, 0.0]) + BONUSES.mean(axis=0)
    return {"agent": levels.var(ddof=1), "cluster": 0.04, "cycle": 0.09, "agent x cluster": 0.0225, "residual": 0.16,
        "judge": severity.var(ddof=1), "judge x agent": np.square(liking).sum() / 2 / 2,
        "disagreement": float(np.mean(noise))}, noise  # fmt: skip


@pytest.mark.parametrize("attendance", [1.0, 0.7])
def test_planted_components_are_recovered(attendance):
    """Over 200 studies the estimates, negative ones as they are, average to what was planted: nothing is biased."""
    truth = replace(TRUTH, composers=tuple(replace(one, attendance=attendance) for one in COMPOSERS))
    found = [components(truth, 1, seed) for seed in range(200)]
    for dimension in ("aggregate", "clarity"):
        parts, noise = planted(dimension)
        for part, value in parts.items():
            close([one.part(part, dimension).raw for one in found], value, part)
        for judge, value in zip(PANEL, noise, strict=True):
            close([one.judge("disagreement", judge.name, dimension).raw for one in found], value, judge.name)
    close([one.judge("trial", "auditor").raw for one in found], (0.4**2 + 1 / 12) / 2, "trial")
    close([one.severities["auditor", "clarity"] for one in found], 0.2, "severity")


def test_a_balanced_table_gives_the_analysis_of_variance():
    """Mean squares by their definitions, from sums over all agents and not over pairs of them."""
    table = simulated(replace(TRUTH, clusters=4, cycles=5), 2)
    y = table.stacked.mean(axis=1)[:, 0].reshape(3, 4, 5)
    a, g, c = y.shape
    cell, cycle = y.mean(axis=2), y.mean(axis=0)
    inner = y - cell[:, :, None] - cycle[None] + cycle.mean(axis=1)[None, :, None]
    ms_inner = np.square(inner).sum() / ((a - 1) * g * (c - 1))
    ms_cycle = a * np.square(cycle - cycle.mean(axis=1, keepdims=True)).sum() / (g * (c - 1))
    reaction = cell - cell.mean(axis=0) - cell.mean(axis=1, keepdims=True) + cell.mean()
    ms_reaction = c * np.square(reaction).sum() / ((a - 1) * (g - 1))
    ms_cluster = a * c * np.square(cell.mean(axis=0) - y.mean()).sum() / (g - 1)
    ms_agent = g * c * np.square(y.mean(axis=(1, 2)) - y.mean()).sum() / (a - 1)
    found = mt.variance_components(table)
    reaction, agents = (ms_reaction - ms_inner) / c, ms_agent - (ms_inner + max(0, ms_reaction - ms_inner))
    wanted = {
        "residual": ms_inner - found.part("disagreement").raw / 3, "cycle": (ms_cycle - ms_inner) / a,
        "agent x cluster": reaction, "cluster": (ms_cluster - ms_cycle - ms_reaction + ms_inner) / (a * c),
        "agent": agents / (g * c),
    }  # fmt: skip
    assert {part: found.part(part).raw for part in wanted} == pytest.approx(wanted)


def test_restricted_likelihood_agrees_where_nothing_is_negative():
    """One cluster, agents fixed, cycles random: on balanced data both methods give the same numbers."""
    table = simulated(replace(TRUTH, clusters=1, cycles=40), 3)
    y = table.stacked.mean(axis=1)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = MixedLM(y, np.eye(3)[table.agent], groups=table.cycle).fit(reml=True)
    found = mt.variance_components(table)
    inner = found.part("residual").raw + found.part("disagreement").raw / 3
    wanted = (float(np.asarray(fit.cov_re).item()), float(fit.scale))
    assert (found.part("cycle").raw, inner) == pytest.approx(wanted, rel=1e-3)
    # A negative estimate is zero and says so.
    still = replace(TRUTH, cycle=mt.Spread(0.0), cluster=mt.Spread(0.0), interaction=mt.Spread(0.0), cycles=3)
    found = [components(still, 4, seed).part("cluster") for seed in range(20)]
    assert min(one.raw for one in found) < 0
    for one in found:
        said = "is negative and set to 0" in one.state if one.raw < 0 else one.state == "ok"
        assert (one.variance, said) == (max(0.0, one.raw), True)


def test_what_cannot_be_known_has_a_state():
    one_agent, one_cluster = "undefined: one agent, needs two that share cycles", "undefined: one cluster, needs two"
    for change, states in (
        ({"composers": COMPOSERS[:1]}, {"agent": one_agent, "judge x agent": one_agent, "disagreement": "ok"}),
        ({"panel": PANEL[:1]}, {"judge": "undefined: one judge, needs two",
                                "residual": "includes the disagreement of the one judge"}),
        ({"clusters": 1}, {"cluster": one_cluster, "agent x cluster": one_cluster, "cycle": "ok"}),
        ({"cycles": 1}, {"cycle": "undefined: one cycle in each cluster, needs two"}),
        ({"clusters": 1, "cycles": 1}, {"disagreement": "undefined: each agent decided once"}),
    ):  # fmt: skip
        found = components(replace(TRUTH, **change), 5)
        assert {part: found.part(part).state for part in states} == states
    assert components(replace(TRUTH, panel=PANEL[:1]), 5).judge("disagreement", "auditor").variance is None
    assert components(TRUTH, 5).judge("trial", "reader").state == "not measured: one trial, needs two"
    two = components(replace(TRUTH, panel=PANEL[:2]), 5)
    assert two.judge("disagreement", "reader").state == "two judges: half of their disagreement each"
    # Pairs that never met are counted.
    table = simulated(replace(TRUTH, clusters=2, cycles=4), 6)
    keep = ((table.agent != 2) | (table.cluster == 0)) & ((table.agent != 0) | (table.cluster == 1))
    rows = {name: getattr(table, name)[keep] for name in ("agent", "cycle", "cluster", "format", "scores", "mean")}
    names = tuple(np.array(table.trajectories)[keep])
    trials = {judge: found[keep] for judge, found in table.trials.items()}
    found = mt.variance_components(replace(table, trajectories=names, trials=trials, **rows))
    assert (found.pairs, found.pairs_of) == (2, 3)
    with pytest.raises(NotMeasurableError, match="no trajectory has a score from every judge"):
        mt.variance_components(replace(table, trajectories=(), scores=table.scores[:0], mean=None))


# How many judges a panel is worth: planted error correlations recovered, and why residuals would not do
def errors_with(r, judges, n, rng):
    """Normal errors with the same correlation r between all judges."""
    matrix = np.full((judges, judges), r) + (1 - r) * np.eye(judges)
    return rng.multivariate_normal(np.zeros(judges), matrix, size=n)


def test_a_planted_correlation_is_recovered():
    for r, judges in product((0.0, 0.3, 0.6, 0.9), (2, 3, 5)):
        errors = errors_with(r, judges, 20_000, np.random.default_rng(judges))
        assert mt.effective_judges(errors) == pytest.approx(judges / (1 + (judges - 1) * r), rel=0.03), (r, judges)
    # Around item means the errors of three judges correlate at -1/2, be they independent or nearly one judge.
    for r in (0.0, 0.8):
        errors = errors_with(r, 3, 4000, np.random.default_rng(1))
        residuals = errors - errors.mean(axis=1, keepdims=True)
        assert mt.error_correlation(residuals) == pytest.approx(-0.5, abs=0.01)
        assert mt.error_correlation(errors) == pytest.approx(r, abs=0.03)


@given(st.integers(0, 1000), st.permutations(range(4)), st.floats(0.1, 5), st.floats(-2, 2))
def test_order_unit_and_common_bias_do_not_matter(seed, order, scale, shift):
    errors = np.random.default_rng(seed).normal(size=(12, 4))
    assert mt.effective_judges(np.repeat(errors[:, :1], 4, axis=1)) == pytest.approx(1.0)
    with contextlib.suppress(NotMeasurableError):
        expected = mt.effective_judges(errors)
        assert mt.effective_judges(scale * errors[:, list(order)] + shift) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("errors", "kind", "message"), [
    ([[0.1], [0.2], [0.3]], NotMeasurableError, "one judge, needs two"),
    ([[0.1, 0.2], [0.3, 0.1]], NotMeasurableError, "2 items of known quality, needs three"),
    ([[0.1, 0.2], [0.1, 0.1], [0.1, 0.4]], NotMeasurableError, "judge 1 makes one error on all 3 items"),
    ([[0.1, -0.1], [0.2, -0.2], [0.3, -0.3]], NotMeasurableError, "offset each other completely"),
    ([], InputError, "empty"), ([1.0, 2.0], InputError, "two axes"), ([[math.nan, 1.0]] * 3, InputError, "not finite"),
])  # fmt: skip
def test_it_can_be_undefined_and_says_what_is_wrong(errors, kind, message):
    with pytest.raises(kind, match=message):
        mt.effective_judges(errors)


KNOWN_TRUTH = {"clarity": 3.0, "risk": 4.0}


def studied(one_decision, one_judgment, n=30, seed=1, cell="w"):
    """Items of known quality judged by three judges whose errors share a part."""
    rng = np.random.default_rng(seed)
    decisions = [one_decision("ash", k, f"{cell}{k % 3}", tag=cell) for k in range(n)]
    judgments = []
    for d in decisions:
        shared = rng.normal(0, 0.3, 2)
        for judge in ("auditor", "reader", "skeptic"):
            seen = np.clip(np.array([3.0, 4.0]) + shared + rng.normal(0, 0.2, 2), 1, 5).tolist()
            judgments.append(one_judgment(d.record_id, judge, dict(zip(("clarity", "risk"), seen, strict=True))))
    return mt.score_table(judgments, decisions, weights={"clarity": 1, "risk": 3})


def found_in(tables, known, plan):
    return {m.labels["dimension"]: m for m in mt.known_measurements(tables, known, plan)}


def test_the_aggregate_follows_from_the_weights(one_decision, one_judgment, study):
    table = studied(one_decision, one_judgment)
    found = found_in([table], dict.fromkeys(table.trajectories, KNOWN_TRUTH), study())
    assert list(found) == ["aggregate", "clarity", "risk"]
    truth = np.array([0.25 * 3 + 0.75 * 4, 3.0, 4.0])
    for k, m in enumerate(found.values()):
        errors = table.stacked[:, :, k] - truth[k]
        r = np.corrcoef(errors, rowvar=False)[np.triu_indices(3, 1)].mean()
        expected = (pytest.approx(mt.effective_judges(errors)), {"judges": 3, "r": pytest.approx(r)})
        assert ((m.value, m.detail), m.n, m.n_of, m.unit) == (expected, 30, "items of known quality", "judges")
    # A given aggregate stands and each name uses what is known of it.
    known = {key: {"risk": 4.0} for key in table.trajectories[10:25]}
    known |= {key: {"aggregate": 3.5 + 0.01 * k} for k, key in enumerate(table.trajectories[:10])}
    found = found_in([table], known, study())
    assert {name: m.n for name, m in found.items()} == {"aggregate": 10, "clarity": 0, "risk": 15}
    given_ = table.stacked[:10, :, 0] - (3.5 + 0.01 * np.arange(10))[:, None]
    assert found["aggregate"].value == pytest.approx(mt.effective_judges(given_))
    assert found["clarity"].state == "not measurable: no items of known quality"
    # Items of several cells are pooled.
    tables = [studied(one_decision, one_judgment, seed=s, cell=c) for s, c in ((1, "a"), (2, "b"))]
    known = {key: KNOWN_TRUTH for table in tables for key in table.trajectories}
    both = found_in(tables, known, study())["risk"]
    errors = np.concatenate([table.scores[:, :, 1] - 4.0 for table in tables])
    assert (both.value, both.n) == (pytest.approx(mt.effective_judges(errors)), 60)
    assert found_in(tables[:1], known, study())["risk"].inputs != both.inputs


def test_without_known_items_it_is_not_measurable(one_decision, one_judgment, study):
    table = studied(one_decision, one_judgment)
    nothing = "not measurable: no items of known quality"
    for tables, known in (([table], {}), ([table], {"elsewhere": KNOWN_TRUTH}), ([], {})):
        for m in found_in(tables, known, study()).values():
            assert (m.value, m.state, m.detail) == (None, nothing, {"r": None, "judges": 3})
    assert set(found_in([], {}, study("rubric = {weights = {risk = 1.0}}"))) == {"aggregate", "risk"}
    # Its other states.
    few = dict.fromkeys(table.trajectories[:2], KNOWN_TRUTH)
    assert found_in([table], few, study())["risk"].state == "undefined: 2 items of known quality, needs three"
    decisions = [one_decision("ash", k, "w") for k in range(4)]
    judgments = [one_judgment(d.record_id, j, {"risk": 3.0}) for d in decisions for j in ("auditor", "reader")]
    table = mt.score_table(judgments, decisions)
    known = {key: {"risk": 2.0} for key in table.trajectories}
    assert found_in([table], known, study())["risk"].state == "undefined: judge 1 makes one error on all 4 items"
    alone = mt.score_table([j for j in judgments if j.judge == "auditor"], decisions)
    assert found_in([alone], known, study())["risk"].state == "not measurable: one judge, needs two"
    # Tables that do not go together are refused.
    table = studied(one_decision, one_judgment)
    known = dict.fromkeys(table.trajectories, KNOWN_TRUTH)
    other = replace(table, judges=("auditor", "reader", "clerk"))
    infinite = {table.trajectories[3]: {"risk": math.nan}}
    for tables, items, message in (([table, other], known, "must have the same judges and names"),
                                   ([table], infinite, "known scores must be finite")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            list(mt.known_measurements(tables, items, study()))


# Panel scores with grades missing, and paired differences: against least squares, loops, and planted severity
NAN = math.nan


def linked_parts(graded):
    """Part of each record by walking from record to judge to record."""
    part, count = [None] * len(graded), 0
    for start in range(len(graded)):
        if part[start] is not None or not graded[start].any():
            continue
        rows, more = set(), {start}
        while more != rows:
            rows = more
            judges = graded[sorted(rows)].any(axis=0)
            more = set(np.flatnonzero(graded[:, judges].any(axis=1)).tolist())
        for row in rows:
            part[row] = count
        count += 1
    return part


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 5), st.floats(0, 0.9))
def test_scores_are_the_least_squares_fit_of_judges_and_records(seed, records, judges, missing):
    rng = np.random.default_rng(seed)
    grades = rng.integers(1, 6, (records, judges)).astype(float)
    grades[rng.random(grades.shape) < missing] = NAN
    graded = ~np.isnan(grades)
    found, part = mt.panel_scores(grades), linked_parts(graded)
    assert list(found.part) == part
    n, j = np.nonzero(graded)
    design = np.zeros((n.size + judges, records + judges))
    design[np.arange(n.size), n] = design[np.arange(n.size), records + j] = 1
    for row, one in enumerate({p for p in part if p is not None}):  # judge effects of each part sum to zero
        members = graded[[p == one for p in part]].any(axis=0)
        design[n.size + row, records:][members] = 1
    expected = np.linalg.lstsq(design, np.concatenate([grades[n, j], np.zeros(judges)]), rcond=None)[0][:records]
    for score, value, one in zip(found.scores, expected, part, strict=True):
        assert score is None if one is None else score == pytest.approx(value, abs=1e-9)


def test_a_severe_judge_who_misses_weak_texts_changes_nothing():
    truth = np.array([5.0, 4.0, 4.0, 3.0, 2.0, 1.0])
    grades = truth[:, None] + [0.0, 0.5, -1.1]
    grades[3:, 2] = grades[0, 0] = NAN
    scores = np.array(mt.panel_scores(grades).scores)
    assert scores - scores[0] == pytest.approx(truth - truth[0])
    assert np.nanmean(grades, axis=1)[3] - np.nanmean(grades, axis=1)[0] != pytest.approx(-2.0, abs=0.3)
    # Records of parts are not linked.
    found = mt.panel_scores([[None, None, 3], [4, 5, None], [None, None, 1], [2, None, None], [None] * 3])
    assert (found.part, found.scores) == ((0, 1, 0, 1, None), pytest.approx((3, 4.5, 1, 2.5, None)))
    # Nothing missing is the plain mean to the last bit.
    grades = np.random.default_rng(2).normal(3, 1, (9, 3))
    assert mt.panel_scores(grades).scores == tuple(grades.mean(axis=1).tolist())
    for bad, message in (
        ([[]], "at least one element"), ([1.0], "2 axes"), ([[1.0, math.inf]], "finite"), ([["x"]], "numbers"),
        ([[1.0], [1.0, 2.0]], "rectangular"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            mt.panel_scores(bad)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 30), st.booleans())
def test_differences_are_means_over_common_cycles(seed, agents, records, parted):
    rng = np.random.default_rng(seed)
    parts = [[int(rng.integers(2))] if parted else [] for _ in range(records)]
    rows = [(f"w{rng.integers(3)}", int(rng.integers(4)), int(rng.integers(agents)), float(rng.normal()), *part)
            for part in parts]  # fmt: skip
    first = {}
    for cluster, cycle, agent, *rest in rows:
        first.setdefault((cluster, cycle, agent), rest)
    expected = {}
    for i, j in combinations(range(agents), 2):
        gaps = {}
        for (cluster, cycle, agent), one in first.items():
            other = first.get((cluster, cycle, j))
            if agent == i and other is not None and one[1:] == other[1:]:
                gaps.setdefault(cluster, []).append(one[0] - other[0])
        expected[i, j] = {cluster: pytest.approx(np.mean(values)) for cluster, values in gaps.items()}
    assert mt.cluster_differences(rows, agents) == expected


def test_every_pair_is_there():
    assert mt.cluster_differences([], 3) == {(0, 1): {}, (0, 2): {}, (1, 2): {}}
    assert mt.cluster_differences([("w", 1, 0, 3.0)], 1) == {}


@pytest.mark.parametrize(("record", "message"), [
    (("w", 1, 0), r"must be \(cluster"), (("w", 1, 2, 3.0), "agent in 0..1"), (("w", 1, "a", 3.0), "agent in 0..1"),
    (("w", 1, 0, None), "finite score"), (("w", 1, 0, NAN), "finite score"), (("w", 1, 0, "high"), "finite score")
])  # fmt: skip
def test_what_is_wrong_with_a_record_is_said(record, message):
    with pytest.raises(InputError, match=message):
        mt.cluster_differences([("w", 1, 0, 3.0), record], 2)
