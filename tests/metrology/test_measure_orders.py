"""The contrasts of an order and its drops: recomputed record by record, and with the functions that are documented."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats
from slow_orders import (
    AGENTS,
    NAMES,
    PAIRS,
    by_cycle,
    cell_means,
    cluster_of,
    get,
    named,
    pair_of,
    run,
    slow_contrasts,
    values_of,
)

from assaymark.metrology import (
    autocorrelations,
    cluster_t,
    equivalence_p,
    minimum_detectable_gap,
    order_analysis,
    shaffer,
    shaffer_pooled,
    sign_flip,
    specific_contrast,
)

# --- the panel's contrasts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["led", "biased"])
def test_contrasts_are_tested_over_clusters_that_count_once(which, request):
    table, found = request.getfixturevalue(which)
    for column, name in enumerate(NAMES):
        test, differences = slow_contrasts(table, column)
        own, _ = slow_contrasts(table, column, borrow=False)
        for m in named(found, "contrast", dimension=name):
            first, second, turn = pair_of(m)
            k = PAIRS.index((first, second))
            assert m.value >= 0
            assert m.value == pytest.approx(turn * test.gap[k], abs=1e-12)
            assert m.value == pytest.approx(turn * np.mean(list(differences[first, second].values())), abs=1e-9)
            half = stats.t.ppf(0.975, test.df[k]) * test.se[k]
            assert (m.low, m.high) == pytest.approx((m.value - half, m.value + half))
            detail = m.detail
            for key, values in (("p", test.p), ("se", test.se), ("df", test.df), ("prior_df", test.prior_df)):
                assert detail[key] == pytest.approx(values[k], rel=1e-9), key
            assert detail["p_own_variance"] == pytest.approx(own.p[k], rel=1e-9)
            assert detail["mean_variance"] == pytest.approx(test.mean_variance)
            assert detail["clusters"] == test.clusters[k] == len(differences[first, second])
            assert detail["variance"] == pytest.approx(np.var(list(differences[first, second].values()), ddof=1))
            assert m.method.startswith("mean over clusters of the paired difference within common cycles; moderated")
            assert f"t({test.df[k]:.1f}) over {test.clusters[k]} clusters" in m.method
            assert (m.n_of, m.unit, m.level) == ("common cycles", "rubric points", 0.95)


def test_cluster_sums_give_the_contrast_again(biased):
    table, found = biased
    for m in named(found, "contrast"):
        sums = m.detail["cluster_sums"]
        assert sum(cycles for _, cycles in sums.values()) == m.n
        assert np.mean([total / cycles for total, cycles in sums.values()]) == pytest.approx(m.value)
        both = [set(table.cycle[table.agent == AGENTS.index(m.labels[side])]) for side in ("high", "low")]
        assert m.n == len(both[0] & both[1])


@pytest.mark.parametrize("which", ["led", "biased"])
def test_the_sources_tests_weigh_clusters_by_their_records_and_stay_beside(which, request):
    table, found = request.getfixturevalue(which)
    cluster = cluster_of(table)
    for column, name in enumerate(NAMES):
        scores = by_cycle(table, np.array(values_of(table, column).mean(axis=1)))
        for m in named(found, "contrast", dimension=name):
            first, second, _ = pair_of(m)
            both = ~np.isnan(scores[:, first] - scores[:, second])
            d, where = (scores[:, first] - scores[:, second])[both], cluster[both]
            assert m.detail["p_cluster_t"] == pytest.approx(cluster_t(d, where).p, rel=1e-9)
            assert m.detail["p_sign_flip"] == sign_flip(d, where).p
            assert 0 < m.detail["p_bootstrap"] <= 1


def test_the_bootstrap_draws_ten_thousand_times_whatever_the_number_of_contrasts(make, study):
    """More than 8 clusters are drawn: 24 contrasts share 10,000 draws, of which none lies on the other side."""
    _, found = run(make(effects=(3.0, 0.0, -0.5, -0.5), clusters=9, cycles=4), study())
    lead = named(found, "contrast", high="ash")
    assert len(lead) == 12
    assert min(m.detail["p_bootstrap"] for m in lead) == pytest.approx(2 / 10_001)


def test_own_variance_lends_nothing(make, study):
    records = make(effects=(0.9, 0.1, 0.05, 0.0))
    _, moderated = run(records, study())
    _, alone = run(records, study('inference = {test = "own-variance"}'))
    for m in named(alone, "contrast"):
        other = moderated[m.id]
        assert m.detail["p"] == m.detail["p_own_variance"] == other.detail["p_own_variance"]
        assert (m.detail["prior_df"], m.detail["df"]) == (0.0, 4.0)
        assert "; cluster t, t(4.0) over 5 clusters" in m.method
    assert any(other.detail["prior_df"] > 1 for other in named(moderated, "contrast"))


@pytest.mark.parametrize("clusters", [4, 19, 20, 21])
def test_there_is_no_switch_between_few_and_many_clusters(make, study, clusters):
    table, found = run(make(clusters=clusters, cycles=2, effects=(0.9, 0.0, 0.0, 0.0)), study())
    test, _ = slow_contrasts(table, 0)
    for m in named(found, "contrast", dimension="aggregate"):
        first, second, _ = pair_of(m)
        assert m.detail["p"] == pytest.approx(test.p[PAIRS.index((first, second))], rel=1e-9)


def test_equivalence_is_two_one_sided_tests_on_the_aggregate(led):
    _, found = led
    for m in named(found, "contrast"):
        if m.labels["dimension"] != "aggregate":
            assert "p_equivalence" not in m.detail
            continue
        se, df = m.detail["se"], m.detail["df"]
        one, other = stats.t.sf((m.value + 0.3) / se, df), stats.t.sf((0.3 - m.value) / se, df)
        assert m.detail["p_equivalence"] == pytest.approx(max(one, other), rel=1e-9)
        half = stats.t.ppf(0.95, df) * se
        assert m.detail["equivalence_interval"] == pytest.approx([m.value - half, m.value + half])


def test_the_margin_is_the_plans(make, study):
    _, found = run(make(), study("inference = {margin = 0.05}"))
    for m in named(found, "contrast", dimension="aggregate"):
        detail = m.detail
        expected = equivalence_p(m.value, detail["se"], detail["df"], detail["clusters"], 0.2)
        assert detail["p_equivalence"] == pytest.approx(expected)


@pytest.mark.parametrize("which", ["led", "biased"])
def test_what_is_resolved_is_what_the_order_procedure_publishes(which, request):
    table, found = request.getfixturevalue(which)
    scales = {name: np.nanmean(cell_means(table, k), axis=1) for k, name in enumerate(NAMES)}
    differences = {name: slow_contrasts(table, k)[1] for k, name in enumerate(NAMES)}
    expected = order_analysis(scales, differences=differences)
    orders = {"aggregate": expected.order, **expected.dimension_order}
    assert expected.order
    for m in named(found, "contrast"):
        order = (AGENTS.index(m.labels["high"]), AGENTS.index(m.labels["low"]))
        assert m.detail["resolved"] is (order in orders[m.labels["dimension"]])


def test_what_other_dimensions_show_stands_beside_a_dimension(biased):
    table, found = biased
    for m in named(found, "contrast"):
        if m.labels["dimension"] == "aggregate":
            assert "p_specific" not in m.detail
            continue
        first, second, turn = pair_of(m)
        by_cluster = [slow_contrasts(table, k)[1][first, second] for k in (1, 2, 3)]
        delta = turn * np.array([list(one.values()) for one in by_cluster]).T
        expected = specific_contrast(delta, np.arange(len(delta)), NAMES.index(m.labels["dimension"]) - 1)
        assert m.detail["p_specific"] == pytest.approx(expected.p_up, abs=1e-12)
        assert m.detail["others"] == pytest.approx(m.value - expected.estimate)


# --- drops ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["led", "biased"])
def test_drops_are_the_same_tests_without_the_family(which, request):
    table, found = request.getfixturevalue(which)
    for j, family in enumerate(table.families):
        rest = [k for k in range(3) if k != j]
        tests = [slow_contrasts(table, column, rest)[0] for column in range(4)]
        pooled = shaffer_pooled({name: test.p for name, test in zip(NAMES[1:], tests[1:], strict=True)}, 4)
        adjusted = {"aggregate": shaffer(tests[0].p, 4), **pooled}
        items = named(found, "lofo.contrast", dropped=family)
        assert len(items) == 24
        for m in items:
            first, second, turn = pair_of(m)
            name, k = m.labels["dimension"], PAIRS.index((first, second))
            test = tests[NAMES.index(name)]
            whole = get(found, "contrast", **{key: m.labels[key] for key in ("dimension", "high", "low")})
            assert m.value == pytest.approx(turn * test.gap[k], abs=1e-9)
            assert m.detail["p"] == pytest.approx(test.p[k], rel=1e-9)
            assert m.detail["p_adjusted"] == pytest.approx(adjusted[name][k], rel=1e-9)
            assert m.detail["df"] == pytest.approx(test.df[k], rel=1e-9)
            assert (m.n, m.n_of) == (whole.detail["clusters"], "common clusters")
            assert ("within" in m.detail) is (name == "aggregate")
            if name == "aggregate":
                assert m.detail["within"] is bool(abs(m.value) < 0.3)


def test_judges_of_one_family_are_dropped_together(make, study):
    decisions, judgments = make()
    siblings = [dataclasses.replace(j, family="south") if j.judge == "skeptic" else j for j in judgments]
    table, found = run((decisions, siblings), study(judges={"auditor": "north", "reader": "south", "skeptic": "south"}))
    assert {m.labels["dropped"] for m in named(found, "lofo.contrast")} == {"north", "south"}
    test, _ = slow_contrasts(table, 0, [0])
    for m in named(found, "lofo.contrast", dropped="south", dimension="aggregate"):
        first, second, turn = pair_of(m)
        assert m.value == pytest.approx(turn * test.gap[PAIRS.index((first, second))], abs=1e-9)
    assert not named(found, "judges.contrast"), "two families are no sample of judges"


def test_one_family_has_no_drops(make, study):
    decisions, judgments = make()
    _, found = run((decisions, [j for j in judgments if j.judge == "auditor"]), study())
    assert not named(found, "lofo.contrast")
    assert len(named(found, "contrast")) == 24


# --- the design -------------------------------------------------------------------------------------------------------


def test_the_smallest_gap_that_the_design_finds(led):
    table, found = led
    test, _ = slow_contrasts(table, 0)
    (m,) = named(found, "order.detectable")
    se, df = np.median(test.se), np.median(test.df)
    assert m.detail["alpha_aggregate"] == pytest.approx(0.04)
    assert m.detail["leader"] == m.value == pytest.approx(minimum_detectable_gap(se, df, 0.02))
    assert m.detail["pair"] == pytest.approx(minimum_detectable_gap(se, df, 0.02 / 6))
    assert (m.n, m.n_of, m.unit, m.labels) == (6, "pairs", "rubric points", {"dimension": "aggregate"})


def test_alpha_is_not_shared_with_dimensions_that_nobody_claims(make, study):
    records = make()
    _, found = run(records, study('claims = {dimensions = ["aggregate"]}\ninference = {mde_power = 0.9}'))
    (m,) = named(found, "order.detectable")
    assert (m.detail["alpha_aggregate"], m.detail["power"]) == (0.05, 0.9)


@pytest.mark.parametrize("which", ["led", "biased"])
def test_how_far_clusters_resemble_those_before(which, request):
    table, found = request.getfixturevalue(which)
    for column, name in enumerate(NAMES):
        lags, limit = autocorrelations(np.nanmean(cell_means(table, column), axis=1))
        m = get(found, "order.autocorrelation", dimension=name)
        assert m.detail["lags"] == pytest.approx(lags)
        assert m.value == pytest.approx(lags[0])
        assert (m.detail["flag"], m.detail["flagged"]) == (pytest.approx(limit), bool(lags[0] > limit))
        assert m.detail["order"] == "exchangeable"


def test_one_agent_has_families_and_no_orders(make, study):
    _, found = run(make(agents=("ash",)), study())
    assert {m.name for m in found.values()} & {
        "contrast", "lofo.contrast", "judges.contrast", "order.detectable", "order.autocorrelation"
    } == set()  # fmt: skip
    assert found["panel.families[]"].value == 3.0
    assert len(named(found, "dimension.distinct")) == 3
