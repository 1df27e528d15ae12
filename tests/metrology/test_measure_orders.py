"""The contrasts of an order and its drops: recomputed record by record, and with the functions that are documented."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from slow_orders import (
    AGENTS, NAMES, OWN, by_cycle, cell_means, changed, cluster_of, ends, get, named, pairs_in, run, slow_contrasts,
    values_of,
)  # fmt: skip

from assaymark import metrology as mt


@pytest.mark.parametrize("which", ["led", "biased"])
def test_contrasts_are_tested_over_clusters_that_count_once(which, request):
    table, found = request.getfixturevalue(which)
    for column, name in enumerate(NAMES):
        test, differences = slow_contrasts(table, column)
        own, _ = slow_contrasts(table, column, borrow=False)
        for m, k, pair, turn in pairs_in(found, "contrast", dimension=name):
            detail, each = m.detail, list(differences[pair].values())
            half = stats.t.ppf(0.975, test.df[k]) * test.se[k]
            assert ends(m) == pytest.approx((m.value, m.value - half, m.value + half))
            assert m.value >= 0
            assert (m.value, m.value) == pytest.approx((turn * test.gap[k], turn * np.mean(each)), abs=1e-9)
            for key, values in (("p", test.p), ("se", test.se), ("df", test.df), ("prior_df", test.prior_df),
                                ("p_own_variance", own.p)):  # fmt: skip
                assert detail[key] == pytest.approx(values[k], rel=1e-9), key
            variances = (float(test.mean_variance), np.var(each, ddof=1))
            assert (detail["mean_variance"], detail["variance"]) == pytest.approx(variances)
            assert detail["clusters"] == test.clusters[k] == len(each)
            assert m.method.startswith("mean over clusters of the paired difference within common cycles; moderated")
            assert f"t({test.df[k]:.1f}) over {test.clusters[k]} clusters" in m.method
            assert (m.n_of, m.unit, m.level) == ("common cycles", "rubric points", 0.95)
            # The sums of clusters give the contrast again.
            sums = detail["cluster_sums"].values()
            assert (sum(n for _, n in sums), np.mean([total / n for total, n in sums])) == (m.n, pytest.approx(m.value))
            both = [set(table.cycle[table.agent == agent]) for agent in pair]
            assert m.n == len(both[0] & both[1])


@pytest.mark.parametrize("which", ["led", "biased"])
def test_the_sources_tests_weigh_clusters_by_their_records_and_stay_beside(which, request):
    table, found = request.getfixturevalue(which)
    cluster = cluster_of(table)
    for column, name in enumerate(NAMES):
        scores = by_cycle(table, np.array(values_of(table, column).mean(axis=1)))
        for m, _, (first, second), _ in pairs_in(found, "contrast", dimension=name):
            d = scores[:, first] - scores[:, second]
            d, where = d[~np.isnan(d)], cluster[~np.isnan(d)]
            assert m.detail["p_cluster_t"] == pytest.approx(mt.cluster_t(d, where).p, rel=1e-9)
            assert m.detail["p_sign_flip"] == mt.sign_flip(d, where).p
            assert 0 < m.detail["p_bootstrap"] <= 1


def test_the_bootstrap_draws_ten_thousand_times_whatever_the_number_of_contrasts(make, study):
    """More than 8 clusters are drawn: 24 contrasts share 10,000 draws, of which none lies on the other side."""
    _, found = run(make(effects=(3.0, 0.0, -0.5, -0.5), clusters=9, cycles=4), study())
    lead = named(found, "contrast", high="ash")
    assert len(lead) == 12
    assert min(m.detail["p_bootstrap"] for m in lead) == pytest.approx(2 / 10_001)
    # Own variance lends nothing.
    records = make(effects=(0.9, 0.1, 0.05, 0.0))
    moderated, alone = (run(records, study(extra))[1] for extra in ("", 'inference = {test = "own-variance"}'))
    for m in named(alone, "contrast"):
        assert m.detail["p"] == m.detail["p_own_variance"] == moderated[m.id].detail["p_own_variance"]
        assert (m.detail["prior_df"], m.detail["df"]) == (0.0, 4.0)
        assert "; cluster t, t(4.0) over 5 clusters" in m.method
    assert any(other.detail["prior_df"] > 1 for other in named(moderated, "contrast"))


def test_there_is_no_switch_between_few_and_many_clusters(make, study):
    for clusters in (4, 19, 20, 21):
        table, found = run(make(clusters=clusters, cycles=2, effects=(0.9, 0.0, 0.0, 0.0)), study())
        test, _ = slow_contrasts(table, 0)
        for m, k, _, _ in pairs_in(found, "contrast", dimension="aggregate"):
            assert m.detail["p"] == pytest.approx(test.p[k], rel=1e-9)


def test_equivalence_is_two_one_sided_tests_on_the_aggregate(led, make, study):
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
    # The margin is the plans.
    _, found = run(make(), study("inference = {margin = 0.05}"))
    for m in named(found, "contrast", dimension="aggregate"):
        se, df, clusters = (m.detail[key] for key in ("se", "df", "clusters"))
        assert m.detail["p_equivalence"] == pytest.approx(mt.equivalence_p(m.value, se, df, clusters, 0.2))


@pytest.mark.parametrize("which", ["led", "biased"])
def test_what_is_resolved_is_what_the_order_procedure_publishes(which, request):
    table, found = request.getfixturevalue(which)
    scales = {name: np.nanmean(cell_means(table, k), axis=1) for k, name in enumerate(NAMES)}
    differences = {name: slow_contrasts(table, k)[1] for k, name in enumerate(NAMES)}
    expected = mt.order_analysis(scales, differences=differences)
    orders = {"aggregate": expected.order, **expected.dimension_order}
    assert expected.order
    for m in named(found, "contrast"):
        order = (AGENTS.index(m.labels["high"]), AGENTS.index(m.labels["low"]))
        assert m.detail["resolved"] is (order in orders[m.labels["dimension"]])


def test_what_other_dimensions_show_stands_beside_a_dimension(biased):
    table, found = biased
    for m, _, pair, turn in pairs_in(found, "contrast"):
        if m.labels["dimension"] == "aggregate":
            assert "p_specific" not in m.detail
            continue
        by_cluster = [slow_contrasts(table, k)[1][pair] for k in (1, 2, 3)]
        delta = turn * np.array([list(one.values()) for one in by_cluster]).T
        expected = mt.specific_contrast(delta, np.arange(len(delta)), NAMES.index(m.labels["dimension"]) - 1)
        assert m.detail["p_specific"] == pytest.approx(expected.p_up, abs=1e-12)
        assert m.detail["others"] == pytest.approx(m.value - expected.estimate)


@pytest.mark.parametrize("which", ["led", "biased"])
def test_drops_are_the_same_tests_without_the_family(which, request):
    table, found = request.getfixturevalue(which)
    for j, family in enumerate(table.families):
        rest = [k for k in range(3) if k != j]
        tests = [slow_contrasts(table, column, rest)[0] for column in range(4)]
        pooled = mt.shaffer_pooled({name: test.p for name, test in zip(NAMES[1:], tests[1:], strict=True)}, 4)
        adjusted = {"aggregate": mt.shaffer(tests[0].p, 4), **pooled}
        assert len(named(found, "lofo.contrast", dropped=family)) == 24
        for m, k, _, turn in pairs_in(found, "lofo.contrast", dropped=family):
            name = m.labels["dimension"]
            test = tests[NAMES.index(name)]
            whole = get(found, "contrast", **{key: m.labels[key] for key in ("dimension", "high", "low")})
            assert m.value == pytest.approx(turn * test.gap[k], abs=1e-9)
            wanted = {"p": test.p[k], "p_adjusted": adjusted[name][k], "df": test.df[k]}
            assert {key: m.detail[key] for key in wanted} == pytest.approx(wanted, rel=1e-9)
            assert (m.n, m.n_of) == (whole.detail["clusters"], "common clusters")
            assert m.detail.get("within") == (bool(abs(m.value) < 0.3) if name == "aggregate" else None)


def test_judges_of_one_family_are_dropped_together(make, study):
    decisions, judgments = make()
    siblings = changed(judgments, lambda j: j.judge == "skeptic", family="south")
    table, found = run((decisions, siblings), study(judges={"auditor": "north", "reader": "south", "skeptic": "south"}))
    assert {m.labels["dropped"] for m in named(found, "lofo.contrast")} == {"north", "south"}
    test, _ = slow_contrasts(table, 0, [0])
    for m, k, _, turn in pairs_in(found, "lofo.contrast", dropped="south", dimension="aggregate"):
        assert m.value == pytest.approx(turn * test.gap[k], abs=1e-9)
    assert not named(found, "judges.contrast"), "two families are no sample of judges"
    # One family has no drops.
    _, found = run((decisions, [j for j in judgments if j.judge == "auditor"]), study())
    assert (len(named(found, "lofo.contrast")), len(named(found, "contrast"))) == (0, 24)


def test_the_smallest_gap_that_the_design_finds(led, make, study):
    table, found = led
    test, _ = slow_contrasts(table, 0)
    (m,) = named(found, "order.detectable")
    se, df = np.median(test.se), np.median(test.df)
    assert m.detail["alpha_aggregate"] == pytest.approx(0.04)
    assert m.detail["leader"] == m.value == pytest.approx(mt.minimum_detectable_gap(se, df, 0.02))
    assert m.detail["pair"] == pytest.approx(mt.minimum_detectable_gap(se, df, 0.02 / 6))
    assert (m.n, m.n_of, m.unit, m.labels) == (6, "pairs", "rubric points", {"dimension": "aggregate"})
    # Alpha is not shared with dimensions that nobody claims.
    _, found = run(make(), study('claims = {dimensions = ["aggregate"]}\ninference = {mde_power = 0.9}'))
    (m,) = named(found, "order.detectable")
    assert (m.detail["alpha_aggregate"], m.detail["power"]) == (0.05, 0.9)


@pytest.mark.parametrize("which", ["led", "biased"])
def test_how_far_clusters_resemble_those_before(which, request):
    table, found = request.getfixturevalue(which)
    for column, name in enumerate(NAMES):
        lags, limit = mt.autocorrelations(np.nanmean(cell_means(table, column), axis=1))
        m = get(found, "order.autocorrelation", dimension=name)
        assert (m.detail["lags"], m.value) == (pytest.approx(lags), pytest.approx(lags[0]))
        assert (m.detail["flag"], m.detail["flagged"]) == (pytest.approx(limit), bool(lags[0] > limit))
        assert m.detail["order"] == "exchangeable"


def test_one_agent_has_families_and_no_orders(make, study):
    _, found = run(make(agents=("ash",)), study())
    pairs = {"contrast", "lofo.contrast", "judges.contrast", "order.detectable", "order.autocorrelation"}
    assert not {m.name for m in found.values()} & pairs
    assert (found["panel.families[]"].value, len(named(found, "dimension.distinct"))) == (3.0, 3)


# What may explain an order: own families, length, these judges and no others, one impression for all dimensions
CONSECUTIVE = 'inference = {cluster_order = "consecutive"}'


def own_of(table):
    return np.array([[OWN.get(agent) == family for agent in AGENTS] for family in table.families])


def test_judges_stand_aside_for_agents_of_their_own_family(led, biased):
    m = led[1]["panel.families[]"]
    assert (m.value, m.n, m.detail["own"]) == (3.0, 3, {"auditor": [], "reader": [], "skeptic": []})
    assert (m.detail["unknown"], m.detail["in_parts"], m.detail["missing"]) == ("", False, False)
    assert not named(led[1], "recusal.contrast") + named(led[1], "judge.own_family")
    table, found = biased
    assert found["panel.families[]"].detail["own"] == {"auditor": ["ash"], "reader": ["cedar"], "skeptic": []}
    for column, name in enumerate(NAMES):
        expected = mt.recusal_p(cell_means(table, column), own_of(table))
        items = list(pairs_in(found, "recusal.contrast", dimension=name))
        # Birch and elm are nobody's.
        assert {pair for _, _, pair, _ in items} == {(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)}
        for m, _, pair, turn in items:
            one = expected[pair]
            half, value = stats.t.ppf(0.975, one.df) * one.se, turn * one.difference
            assert ends(m) == pytest.approx((value, value - half, value + half), abs=1e-9)
            assert (m.detail["p"], m.detail["se"]) == pytest.approx((one.p, one.se))
            families = {OWN[AGENTS[agent]] for agent in pair if AGENTS[agent] in OWN}
            free = [j for j, f in zip(table.judges, table.families, strict=True) if f not in families]
            assert (m.detail["families"], m.detail["free"]) == (sorted(families), free)
            if column == 0:
                p = mt.equivalence_p(one.difference, one.se, one.df, one.clusters, 0.3)
                assert m.detail["p_equivalence"] == pytest.approx(p)


def test_nobody_without_an_interest_is_a_state(make, study, biased):
    decisions, judgments = make(agents=("ash", "cedar"), families=OWN)
    _, found = run((decisions, [j for j in judgments if j.judge != "skeptic"]), study())
    items = named(found, "recusal.contrast")
    state = "undefined: every judge shares its family with one of the two"
    assert [(*ends(m)[:1], m.state, m.detail["p"], m.n) for m in items] == [(None, state, 1.0, 0)] * 4
    assert all("p_equivalence" not in m.detail for m in items)
    (m,) = named(found, "judge.own_family", dimension="aggregate")
    assert m.labels["judge"] == "common", "two judges and two agents show a common value only"
    # Own family liking is measured for each judge.
    table, found = biased
    for column, name in enumerate(NAMES):
        expected = mt.own_family(cell_means(table, column), own_of(table))
        for judge, one, p in zip(("auditor", "reader"), expected.by_judge, expected.p_holm, strict=True):
            m = get(found, "judge.own_family", dimension=name, judge=judge)
            assert ends(m) == pytest.approx((one.estimate, one.low, one.high))
            assert (m.detail["p"], m.detail["p_holm"]) == pytest.approx((one.p, p))
        common = get(found, "judge.own_family", dimension=name, judge="common")
        assert (common.value, common.detail["p_holm"]) == (pytest.approx(expected.common.estimate), None)


def test_the_level_of_intervals_is_the_plans(make, study):
    records = make(families=OWN)
    lengths = {d.record_id: 30 + 7 * (k % 11) for k, d in enumerate(records[0])}
    wide, narrow = (run(records, study(f"inference = {{level = {level}}}"), lengths)[1] for level in (0.99, 0.8))
    names = {"contrast", "recusal.contrast", "judges.contrast", "judge.own_family", "dimension.distinct"}
    with_ends = [m for m in wide.values() if m.low is not None and m.name in names]
    assert {m.name for m in with_ends} == names
    for m in with_ends:
        other = narrow[m.id]
        assert (m.level, other.level) == (0.99, 0.8)
        assert m.low < other.low < other.high < m.high
        if m.name == "contrast":
            half = stats.t.ppf(0.995, m.detail["df"]) * m.detail["se"]
            assert m.high - m.value == pytest.approx(half)


def test_contrasts_at_equal_length(biased, make, study):
    table, found = biased
    cluster, doublings = cluster_of(table), by_cycle(table, np.log2(table.lengths))
    for column, name in enumerate(NAMES):
        scores = by_cycle(table, values_of(table, column)).transpose(0, 2, 1)
        gating = mt.length_p(scores, doublings, cluster, own_of(table))
        items = list(pairs_in(found, "length.contrast", dimension=name))
        assert len(items) == 6
        for m, _, pair, turn in items:
            one = gating[pair]
            panel = mt.length_adjusted(scores.mean(axis=1), doublings, cluster, *pair[::turn])
            assert m.value == pytest.approx(turn * one.difference, abs=1e-9)
            wanted = {"p": one.p, "se": one.se, "df": one.df, "gap": panel.gap[0], "slope": panel.slopes[0].estimate,
                      "slope_p": panel.slopes[0].p, "raw": panel.raw.estimate, "overlap": panel.overlap}  # fmt: skip
            assert {key: m.detail[key] for key in wanted} == pytest.approx(wanted)
            up = one.p / 2 if m.value > 0 else 1 - one.p / 2
            word = mt.length_rule(panel.raw, {"estimate": m.value, "p_up": up}, panel.slopes[0], panel.gap[0])
            assert m.detail["word"] == word
            if column == 0:
                p = mt.equivalence_p(one.difference, one.se, one.df, one.clusters, 0.3)
                assert m.detail["p_equivalence"] == pytest.approx(p)
    assert {m.detail["gap"] > 0.9 for m in named(found, "length.contrast", high="ash")} == {True}
    # Without lengths or where nobody asks there is nothing at equal length.
    records = make()
    lengths = {d.record_id: 50 for d in records[0]}
    for extra, given in (("", None), ('claims = {length = "off"}', lengths)):
        assert not named(run(records, study(extra), given)[1], "length.contrast")


def test_judges_as_a_sample(biased, make, study):
    table, found = biased
    for column, name in enumerate(NAMES):
        means = cell_means(table, column)
        items = list(pairs_in(found, "judges.contrast", dimension=name))
        assert len(items) == 6
        for m, _, (first, second), turn in items:
            expected = mt.random_judges(turn * (means[:, :, first] - means[:, :, second]).T)
            assert ends(m) == pytest.approx((expected.estimate, expected.low, expected.high))
            found_ = (m.detail["p"], m.detail["df"], m.detail["se"])
            assert found_ == pytest.approx((expected.p, expected.df, expected.se))
            assert (m.n, m.n_of, m.state) == (3, "judge families", "ok")
    # Judges of one family count as one in the sample.
    decisions, judgments = make()
    twins = [replace(j, judge="twin", call_key=f"{j.call_key}t") for j in judgments if j.judge == "reader"]
    plan = study(judges={"auditor": "north", "reader": "south", "skeptic": "east", "twin": "south"})
    one, both = (run(records, plan)[1] for records, plan in (
        ((decisions, judgments), study()), ((decisions, [*judgments, *twins]), plan)))  # fmt: skip
    others = {pair: m for m, _, pair, _ in pairs_in(one, "judges.contrast", dimension="risk")}
    for m, _, pair, _ in pairs_in(both, "judges.contrast", dimension="risk"):
        assert (m.n, abs(m.value)) == (3, pytest.approx(abs(others[pair].value)))
        assert m.detail["p"] == pytest.approx(others[pair].detail["p"])
    # Judges that agree exactly have a sign test over families where their clusters do not vary more, and no interval.
    same = [replace(j, scores=next(k.scores for k in judgments if k.trajectory == j.trajectory)) for j in judgments]
    items = named(run((decisions, same), study())[1], "judges.contrast")
    assert all(m.value is not None and m.detail["p"] >= 0.25 for m in items)
    assert {m.low for m in items if m.detail["p"] == 0.25} == {None}


def test_dimensions_that_judges_tell_apart(biased, make, study):
    table, found = biased
    expected = mt.discriminant(table.scores, table.cluster)
    for name, one in zip(NAMES[1:], expected.dimensions, strict=True):
        m = get(found, "dimension.distinct", dimension=name)
        assert ends(m) == pytest.approx((one.phi, one.low, one.high))
        assert (m.detail["p"], m.detail["p_holm"]) == pytest.approx((one.p, one.p_holm))
        assert (m.n, m.n_of, m.detail["distinct"]) == (table.n, "records", 0.95)
    decisions, judgments = make()
    copied = [replace(j, scores=dict.fromkeys(j.scores, j.scores["risk"])) for j in judgments]
    _, found = run((decisions, copied), study())
    for name in NAMES[1:]:
        m = get(found, "dimension.distinct", dimension=name)
        assert (m.value, m.detail["p_holm"] > 0.05) == (pytest.approx(1.0), True)
    _, found = run((decisions, judgments), study("claims = {distinct = 0.2}"))
    assert {m.detail["distinct"] for m in named(found, "dimension.distinct")} == {0.2}
    assert min(m.detail["p_holm"] for m in named(found, "dimension.distinct")) > 0.9


def test_dimensions_of_which_nothing_can_be_said(make, study):
    state = "not measurable: no record has a grade from every judge on every dimension"
    decisions, judgments = make()
    flat = changed(judgments, scores=lambda own: own | {"risk": 3.0})
    one = changed(judgments, scores=lambda own: {"risk": own["risk"]})
    parted = [j for j in judgments if (j.judge == "auditor") == (j.trajectory < "birch.0025")]
    two, flat, one, parted = (named(run(records, study())[1], "dimension.distinct") for records in (
        make(clusters=2), (decisions, flat), (decisions, one), (decisions, parted)))  # fmt: skip
    assert {m.state.partition(":")[0] for m in two} == {"not measurable"}
    (m,) = (m for m in flat if m.labels["dimension"] == "risk")
    assert (m.value, m.state, m.detail["p"]) == (None, "undefined: judges share nothing on it", 1.0)
    assert one == [], "one dimension has nothing beside it"
    assert {m.state for m in parted} == {state}


def test_other_measurements_leave_out_blocks_of_neighbours(make, study):
    records = make(effects=(0.5, 0.1, 0.0, 0.0), clusters=14, cycles=3, families=OWN)
    lengths = {d.record_id: 40 + 13 * (k % 17) for k, d in enumerate(records[0])}
    table, found = run(records, study(CONSECUTIVE), lengths)
    own = own_of(table)
    cluster, doublings = cluster_of(table), by_cycle(table, np.log2(table.lengths))
    for column, name in enumerate(NAMES):
        means, scores = cell_means(table, column), by_cycle(table, values_of(table, column)).transpose(0, 2, 1)
        recused = mt.recusal_p(means, own, consecutive=True)
        serial = mt.length_p(scores, doublings, cluster, own, consecutive=True)
        for m, _, (first, second), _ in pairs_in(found, "judges.contrast", dimension=name):
            expected = mt.random_judges((means[:, :, first] - means[:, :, second]).T, consecutive=True)
            assert m.detail["p"] == pytest.approx(expected.p)
        for kind, tests in (("recusal.contrast", recused), ("length.contrast", serial)):
            for m, _, pair, _ in pairs_in(found, kind, dimension=name):
                assert m.detail["p"] == pytest.approx(tests[pair].p)
        expected = mt.own_family(means, own, consecutive=True)
        for judge, one in zip(("auditor", "reader"), expected.by_judge, strict=True):
            assert get(found, "judge.own_family", dimension=name, judge=judge).detail["p"] == pytest.approx(one.p)
        if column:
            one = mt.discriminant(table.scores, table.cluster, consecutive=True).dimensions[column - 1]
            assert get(found, "dimension.distinct", dimension=name).detail["p"] == pytest.approx(one.p)
            levels = np.stack([cell_means(table, k).mean(axis=1) for k in (1, 2, 3)], axis=1)
            for m, _, (first, second), turn in pairs_in(found, "contrast", dimension=name):
                delta = turn * (levels[:, :, first] - levels[:, :, second])
                specific = mt.specific_contrast(delta, np.arange(14), column - 1, consecutive=True)
                assert m.detail["p_specific"] == pytest.approx(specific.p_up)


def test_other_names_turn_pairs_round_and_change_no_number(biased, make, study):
    """Agents in another order of the alphabet: the same gaps, tests and words."""
    renamed = {"ash": "w", "birch": "v", "cedar": "z", "elm": "x"}
    decisions, judgments = make(effects=(0.5, 0.2, 0.1, 0.0), clusters=8, cycles=6, attend=0.9, families=OWN)
    rng = np.random.default_rng(5)
    lengths = {d.record_id: int(rng.integers(40, 400)) * (2 if d.agent.id == "ash" else 1) for d in decisions}
    other = [replace(d, agent=replace(d.agent, id=renamed[d.agent.id])) for d in decisions]
    table = mt.score_table(judgments, other, lengths=lengths)
    found = {m.id: m for m in mt.analyse(table, study(), rng=np.random.default_rng(1))}
    for m in biased[1].values():
        if m.name.endswith("contrast"):
            same = get(found, m.name, **{key: renamed.get(value, value) for key, value in m.labels.items()})
            assert (same.state, same.n, ends(same)) == (m.state, m.n, pytest.approx(ends(m), abs=1e-9))
            for key, value in m.detail.items():
                if isinstance(value, float) and not math.isnan(value):
                    assert same.detail[key] == pytest.approx(value, abs=1e-9), (m.id, key)
