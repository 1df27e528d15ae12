"""Which records are compared: common clusters, grades that are missing, clusters in time order."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from slow_orders import NAMES, PAIRS, cell_means, get, named, pair_of, run, slow_contrasts

from assaymark.metrology import analyse, autocorrelations, jackknife_kappa, score_table, serial_contrasts, shaffer

CONSECUTIVE = 'inference = {cluster_order = "consecutive"}'

# --- pairs that cannot be tested --------------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [1, 2])
def test_fewer_than_three_clusters_cannot_be_tested(make, study, clusters):
    _, found = run(make(clusters=clusters, cycles=20, effects=(0.9, 0.0, 0.0, 0.0)), study())
    common = f"{clusters} common cluster{'s' if clusters > 1 else ''}"
    for m in named(found, "contrast"):
        assert m.state == f"cannot be tested ({common}; 3 are needed, 5 or more to have a chance)"
        assert (m.value, m.low, m.high, m.level, m.n) == (None, None, None, None, 20 * clusters)
        assert (m.detail["p"], m.detail["resolved"]) == (1.0, False)
        assert m.detail["se"] is m.detail["df"] is None
        assert "p_equivalence" not in m.detail
    lead = get(found, "contrast", dimension="aggregate", high="ash", low="elm")
    assert lead.detail["gap"] > 0.5, "the gap stays for downloads"
    (m,) = named(found, "order.detectable")
    assert (m.value, m.state) == (None, "undefined: no pair can be tested")
    assert {one.detail["p"] for one in named(found, "lofo.contrast")} == {1.0}


def some_weeks(records, agent, weeks):
    """The same where one agent decided in some weeks only."""
    decisions, judgments = records
    kept = [d for d in decisions if d.agent.id != agent or d.cluster in weeks]
    ids = {d.record_id for d in kept}
    return kept, [j for j in judgments if j.trajectory in ids]


def test_each_pair_is_tested_on_its_own_common_clusters(make, study):
    records = make(clusters=21, cycles=2, effects=(0.9, 0.0, 0.0, 0.0))
    table, found = run(some_weeks(records, "elm", {f"week{k:02d}" for k in range(5)}), study())
    test, _ = slow_contrasts(table, 0)
    for m in named(found, "contrast", dimension="aggregate"):
        first, second, _ = pair_of(m)
        few = second == 3
        assert m.detail["clusters"] == (5 if few else 21)
        assert m.detail["p"] == pytest.approx(test.p[PAIRS.index((first, second))], rel=1e-9)


def test_a_pair_that_cannot_be_tested_keeps_its_place_in_every_count(make, study):
    records = make(effects=(0.9, 0.1, 0.0, 0.0))
    table, found = run(some_weeks(records, "elm", {"week00", "week01"}), study())
    items = named(found, "contrast", dimension="aggregate")
    untested = [m for m in items if m.value is None]
    assert len(items) == 6
    assert len(untested) == 3
    assert {m.detail["p"] for m in untested} == {1.0}
    # Shaffer over six pairs, of which three have p = 1.
    for j, family in enumerate(table.families):
        test, _ = slow_contrasts(table, 0, [k for k in range(3) if k != j])
        adjusted = shaffer(test.p, 4)
        for m in named(found, "lofo.contrast", dropped=family, dimension="aggregate"):
            first, second, _ = pair_of(m)
            assert m.detail["p_adjusted"] == pytest.approx(adjusted[PAIRS.index((first, second))])


def test_pairs_that_never_meet_have_no_gap(make, study):
    decisions, judgments = make()
    turn = {"cedar": 0, "elm": 1}
    apart = [d for d in decisions if turn.get(d.agent.id) in (None, int(d.episode_id[5:]) % 2)]
    ids = {d.record_id for d in apart}
    _, found = run((apart, [j for j in judgments if j.trajectory in ids]), study())
    never = named(found, "contrast", high="cedar", low="elm")
    assert len(never) == 4
    for m in never:
        assert m.state.startswith("cannot be tested (0 common clusters;")
        assert (m.value, m.n, m.detail["gap"], m.detail["p"]) == (None, 0, None, 1.0)
        assert m.detail["cluster_sums"] == {}
    (drop,) = named(found, "lofo.contrast", dimension="risk", dropped="east", high="cedar", low="elm")
    assert (drop.value, drop.state) == (None, "never compared")


def test_scores_that_do_not_vary(make, study):
    """All clusters differ alike: only their sign speaks, unless other pairs lend a variance."""
    decisions, judgments = make(agents=("ash", "birch"))
    better = {"ash": 4.0, "birch": 3.0}
    flat = [
        dataclasses.replace(j, scores=dict.fromkeys(j.scores, better[j.trajectory.partition(".")[0]]))
        for j in judgments
    ]
    _, found = run((decisions, flat), study())
    m = get(found, "contrast", dimension="aggregate", high="ash", low="birch")
    assert (m.value, m.low, m.level, m.detail["p"]) == (1.0, None, None, 2.0**-4)
    assert m.method.endswith("sign of 5 equal cluster differences")
    assert m.detail["p_equivalence"] == 1.0
    same = [dataclasses.replace(j, scores=dict.fromkeys(j.scores, 3.0)) for j in judgments]
    _, found = run((decisions, same), study())
    m = get(found, "contrast", dimension="aggregate", high="ash", low="birch")
    assert (m.value, m.detail["p"], m.detail["p_equivalence"], m.detail["resolved"]) == (0.0, 1.0, 2.0**-5, False)


def test_kappa_over_time_leaves_out_blocks_of_neighbours(make, study):
    """Weeks 0 to 10 make the blocks 0-2, 3-5 and 6-10, by number and not by name."""
    table, found = run(make(clusters=11, cycles=4, week="{:d}"), study(CONSECUTIVE))
    weeks = np.array([int(name) for name in table.clusters])[table.cluster]
    ratings = np.clip(np.floor(table.scores @ table.weights + 0.5), 1, 5).astype(int)
    expected = jackknife_kappa(ratings, np.minimum(weeks // 3, 2))
    kappa = found["kappa.mean_pairwise[dimension=aggregate]"]
    assert (kappa.low, kappa.high) == pytest.approx((expected.low, expected.high))
    assert kappa.method.endswith("delete-one-block jackknife, t(2)")
    line = np.argsort(weeks, kind="stable")
    again = jackknife_kappa(ratings[line], weeks[line], consecutive=True)
    assert (again.low, again.high) == pytest.approx((expected.low, expected.high))


# --- grades that are missing ------------------------------------------------------------------------------------------


def refusing(records, judge, refuses):
    """The same where one judge gives no usable reply on some records."""
    decisions, judgments = records
    broken = [
        dataclasses.replace(j, status="invalid", scores={}, reason="not JSON") if j.judge == judge and refuses(j) else j
        for j in judgments
    ]
    return decisions, broken


def test_missing_grades_are_made_up_for_by_a_fit_of_judges_and_records(make, study):
    rng = np.random.default_rng(3)
    records = make(effects=(0.4, 0.2, 0.0, 0.0), clusters=6, cycles=5)
    lost = {j.call_key for j in records[1] if rng.random() < 0.15}
    for judge in ("auditor", "reader", "skeptic"):
        records = refusing(records, judge, lambda j: j.call_key in lost)
    table, found = run(records, study())
    assert found["panel.families[]"].detail["missing"] is True
    assert table.incomplete is not None
    for column, name in enumerate(NAMES):
        test, differences = slow_contrasts(table, column)
        for m in named(found, "contrast", dimension=name):
            first, second, turn = pair_of(m)
            k = PAIRS.index((first, second))
            assert m.value == pytest.approx(turn * test.gap[k], abs=1e-9)
            assert m.detail["p"] == pytest.approx(test.p[k], rel=1e-7)
            assert {key: total / n for key, (total, n) in m.detail["cluster_sums"].items()} == pytest.approx(
                {table.clusters[g]: turn * value for g, value in differences[first, second].items()}, abs=1e-9
            )
        for j, family in enumerate(table.families):
            without, _ = slow_contrasts(table, column, [k for k in range(3) if k != j])
            for m in named(found, "lofo.contrast", dimension=name, dropped=family):
                first, second, turn = pair_of(m)
                k = PAIRS.index((first, second))
                assert m.value == pytest.approx(turn * without.gap[k], abs=1e-9)
                assert m.detail["p"] == pytest.approx(without.p[k], rel=1e-7)


def test_a_severe_judge_that_misses_an_agents_records_moves_nothing(one_decision, one_judgment, study):
    """Without noise the severity is taken out exactly; the mean over who is there would gain the agent .4."""
    decisions = [
        one_decision(agent, cycle, f"w{cycle // 4}") for cycle in range(20) for agent in ("ash", "birch", "elm")
    ]
    severity = {"auditor": 0.0, "reader": 0.0, "skeptic": -1.2}
    quality = {"ash": 3.5, "birch": 3.5, "elm": 4.0}
    judgments = [
        one_judgment(d.record_id, judge, {"risk": quality[d.agent.id] + shift + (d.episode_id[5:] in "0369") / 4})
        for d in decisions
        for judge, shift in severity.items()
        if not (judge == "skeptic" and d.agent.id == "ash" and int(d.episode_id[5:]) % 4)
    ]
    table = score_table(judgments, decisions)
    assert len(table.left_out) == 15
    found = {m.id: m for m in analyse(table, study(), rng=np.random.default_rng(1))}
    gap = {(m.labels["high"], m.labels["low"]): m.value for m in named(found, "contrast", dimension="aggregate")}
    assert gap == {("ash", "birch"): 0.0, ("elm", "ash"): pytest.approx(0.5), ("elm", "birch"): pytest.approx(0.5)}


def test_records_that_no_judge_links_are_not_compared(make, study):
    """One judge grades one agent, the other judges the others: nothing says how severe they are beside each other."""
    decisions, judgments = make()
    parted = [j for j in judgments if (j.judge == "auditor") == j.trajectory.startswith("ash")]
    _, found = run((decisions, parted), study())
    for m in named(found, "contrast", dimension="risk"):
        apart = "ash" in m.labels.values()
        assert (m.value is None) is apart
        if apart:
            assert m.state.startswith("cannot be tested (0 common clusters;")
    (drop,) = named(found, "lofo.contrast", dimension="risk", dropped="south", high="ash", low="elm")
    assert drop.state == "never compared"


# --- clusters that follow each other in time --------------------------------------------------------------------------


@pytest.mark.parametrize(("week", "extra"), [("{:d}", CONSECUTIVE), ("2026-W{:02d}", "")])
def test_clusters_in_time_order_have_a_test_of_their_own(make, study, week, extra):
    """Week 9 comes before week 10, whatever the alphabet says; names that end in dates need no plan."""
    numbered = make(effects=(0.5, 0.1, 0.0, 0.0), clusters=14, cycles=3, week=week)
    table, found = run(numbered, study(extra))
    place = [week.format(k) for k in range(14)]
    assert table.clusters == tuple(sorted(place))
    order = [table.clusters.index(name) for name in place]
    for column, name in enumerate(NAMES):
        expected = serial_contrasts(np.nanmean(cell_means(table, column), axis=1)[order])
        for m in named(found, "contrast", dimension=name):
            first, second, turn = pair_of(m)
            one = expected[first, second]
            assert m.value == pytest.approx(turn * one.gap, abs=1e-9)
            for key in ("p", "se", "df", "rho", "effective"):
                assert m.detail[key] == pytest.approx(getattr(one, key), rel=1e-9), key
            assert "p_own_variance" not in m.detail
            assert list(m.detail["cluster_sums"]) == place
            assert f"worth {one.effective:.1f} independent ones" in m.method
        lags, _ = autocorrelations(np.nanmean(cell_means(table, column), axis=1)[order])
        m = get(found, "order.autocorrelation", dimension=name)
        assert (m.detail["lags"], m.detail["order"]) == (pytest.approx(lags), "consecutive")


def test_eleven_weeks_cannot_be_tested(make, study):
    _, found = run(make(clusters=11, cycles=2, effects=(2.0, 0.0, 0.0, 0.0)), study(CONSECUTIVE))
    assert {m.state for m in named(found, "contrast")} == {
        "cannot be tested (11 common clusters that follow each other in time; 12 are needed)"
    }
    assert {m.detail["p"] for m in named(found, "contrast")} == {1.0}
