"""The whole analysis: every promised measurement, its parts recomputed by hand, and every state in words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from slow_orders import AGENTS, NAMES, changed, get, some, unusable

from assaymark import metrology as mt
from assaymark.records import Measurement, canonical_json, parse

FAMILIES = ("north", "south", "east")


def run(records, study, seed=1, **parts):
    decisions, judgments = records
    table = mt.score_table(judgments, decisions, **parts)
    found = mt.analyse(table, study, rng=np.random.default_rng(seed))
    assert len({m.id for m in found}) == len(found)
    for m in found:
        assert (m.value is None) == (m.state != "ok"), m
        assert m.value is None or math.isfinite(m.value), m
        assert (m.low is None) == (m.high is None) == (m.level is None), m
        assert m.value is not None or m.low is None, m
        assert (m.inputs, parse(Measurement, canonical_json(m)).id) == (table.digest, m.id)
    return mt.gated(table, study), {m.id: m for m in found}


@pytest.fixture(scope="module")
def plain(make, study):
    """One balanced study with a clear leader, analysed once."""
    records = make(effects=(0.9, 0.1, 0.05, 0.0), trials=3)
    table, found = run(records, study())
    return records, table, found


def test_every_promised_measurement_is_there(plain, make, study):
    d, a, f, j, pairs = 4, 4, 3, 3, 6
    assert Counter(m.name for m in plain[2].values()) == {
        "kappa.mean_pairwise": d * 3,  # pooled, and two formats
        "kappa.fleiss": d, "redundancy": d, "panel.alpha": d, "panel.variance": d * 6, "panel.generalizability": d,
        "score.effect": d * a, "panel.families": 1, "contrast": d * pairs, "judges.contrast": d * pairs,
        "lofo.rho": d * f, "lofo.effect": d * f * a, "lofo.contrast": d * f * pairs, "dimension.distinct": d - 1,
        "dimension.mtmm": d - 1, "order.autocorrelation": d, "order.detectable": 1, "noise.repetition_stability": 2 * j,
        "noise.agent_floor": a, "judge.invalid_share": j, "score.length_correlation": 1, "single.level": d * j * a,
        "single.rho": d * 3, "single.discoveries": j, "panel.discoveries": 1, "rank.first": d * a,
    }  # fmt: skip
    # A judge of the maker of one agent, and lengths: contrasts without interests and at equal length.
    records = make(families={"ash": "north"})
    lengths = {d.record_id: 40 + 7 * (k % 13) for k, d in enumerate(records[0])}
    (_, bare), (_, found) = run(make(), study()), run(records, study(), lengths=lengths)
    assert Counter(m.name for m in found.values() if m.id not in bare) == {
        "recusal.contrast": 4 * 3,  # the three pairs of ash
        "length.contrast": 4 * 6,
        "judge.own_family": 4 * 2,  # of its judge, and the common one
        "judge.length": 3,  # on the aggregate alone
    }
    assert set(bare) < set(found)


def kappas(ratings):
    """Those of all pairs of judges, by another library."""
    pairs = combinations(ratings.T, 2)
    return [cohen_kappa_score(*pair, weights="quadratic", labels=[1, 2, 3, 4, 5]) for pair in pairs]


@pytest.mark.parametrize("name", NAMES)
def test_kappa_and_its_parts(plain, name):
    _, table, found = plain
    m = get(found, "kappa.mean_pairwise", dimension=name)
    ratings = np.clip(mt.round_half_up(np.round(table.stacked[:, :, NAMES.index(name)], 9)), 1, 5).astype(int)
    pairs = list(combinations(range(3), 2))
    assert list(m.detail["pairs"]) == [f"{table.judges[a]}|{table.judges[b]}" for a, b in pairs]
    assert list(m.detail["pairs"].values()) == pytest.approx(kappas(ratings))
    assert m.value == pytest.approx(np.mean(list(m.detail["pairs"].values())))
    for (a, b), counted in zip(pairs, m.detail["tables"].values(), strict=True):
        assert counted == mt.contingency(ratings[:, a], ratings[:, b]).tolist()
    interval, second = (make(ratings, table.cluster) for make in (mt.jackknife_kappa, mt.bootstrap_kappa))
    bootstrap = {"low": second.low, "high": second.high, "method": second.method}
    assert (m.low, m.high, m.detail["bootstrap"]) == (interval.low, interval.high, bootstrap)
    assert m.method.endswith(f"; {interval.method}")
    assert (m.n, m.n_of, m.level, m.detail["clusters"]) == (200, "trajectories", 0.95, 5)


def test_the_other_rounding_rule_is_carried_along(make, study, plain):
    table, found = run(make(dimensions=("risk", "sizing")), study())
    scores = np.round(table.stacked[:, :, 0], 9)
    assert (scores % 1 == 0.5).any()
    ratings = np.clip(np.rint(scores), 1, 5).astype(int)
    m = get(found, "kappa.mean_pairwise", dimension="aggregate")
    assert m.detail["half_even"] == pytest.approx(np.mean(kappas(ratings)))
    assert m.detail["half_even"] != m.value
    # Fleiss and redundancy.
    _, table, found = plain
    scores = table.stacked[:, :, 2]
    assert get(found, "kappa.fleiss", dimension="evidence").value == mt.fleiss_kappa(mt.categories_of(scores))
    correlation = np.corrcoef(scores.T)[np.triu_indices(scores.shape[1], 1)].mean()
    assert get(found, "redundancy", dimension="evidence").value == pytest.approx(correlation, abs=1e-12)
    # Halves that floats miss are halves.
    missed = float(np.nextafter(2.5, 0))
    assert mt.round_half_up(missed) == 2
    assert mt.categories_of(np.array([missed, 2.4999, 5.7, 0.1])).tolist() == [3, 2, 5, 1]
    # Siblings do not count as agreement.
    siblings = replace(table, families=("n", "s", "n"))
    found = {m.id: m for m in mt.analyse(siblings, study(), rng=np.random.default_rng(1))}
    pairs = get(found, "kappa.mean_pairwise", dimension="aggregate").detail["pairs"]
    assert list(pairs) == ["auditor|reader", "reader|skeptic"]


def test_levels_are_least_squares_with_jackknife_ends(plain):
    _, table, found = plain
    names = [table.agents[k] for k in table.agent]

    def levels(column, judges=(0, 1, 2)):
        return [*mt.agent_effects(table.stacked[:, list(judges), column].mean(axis=1), names, table.cycle).values()]

    for agent, level in zip(AGENTS, levels(0), strict=True):
        m = get(found, "score.effect", dimension="aggregate", agent=agent)
        assert (m.value, m.detail["raw_mean"]) == pytest.approx((level, level))
        assert m.low < m.value < m.high
        assert (m.n, m.n_of, m.unit, m.detail["clusters"]) == (50, "decisions", "rubric points", 5)
    # Ranks without a family are those of the other judges.
    for j, family in enumerate(table.families):
        without = levels(3, [k for k in range(3) if k != j])
        m = get(found, "lofo.rho", dimension="risk", dropped=family)
        assert m.value == pytest.approx(stats.spearmanr(levels(3), without).statistic)
        assert m.detail["order"] == [AGENTS[k] for k in np.argsort(-np.array(without), kind="stable")]
        effects = [get(found, "lofo.effect", dimension="risk", dropped=family, agent=agent).value for agent in AGENTS]
        assert effects == pytest.approx(without)
    # Repetition stability of both divisors.
    for ddof in (0, 1):
        m = get(found, "noise.repetition_stability", judge="auditor", ddof=str(ddof))
        assert (m.value, m.detail["gate"]) == (mt.repetition_stability(table.trials["auditor"], ddof=ddof), 0.9)
        assert m.detail["averaged"] is (m.value >= 0.9)
    single = get(found, "noise.repetition_stability", judge="reader", ddof="1")
    assert single.state == "undefined: one trial, needs two"


def test_formats_are_gated_apart_when_large_enough(make, study):
    records = make(clusters=6, cycles=4)
    _, found = run(records, study("gates = {format_min_records = 48, format_min_clusters = 6}"))
    m = get(found, "kappa.mean_pairwise", dimension="risk", format="v2")
    assert (m.n, m.detail["clusters"], m.state) == (48, 6, "ok")
    table = mt.score_table(records[1], records[0])
    rows = table.format == 1
    ratings = mt.categories_of(table.stacked[rows][:, :, 3])
    interval = mt.jackknife_kappa(ratings, table.cluster[rows])
    assert (m.low, m.high) == (interval.low, interval.high)
    _, found = run(records, study("gates = {format_min_records = 49}"))
    m = get(found, "kappa.mean_pairwise", dimension="risk", format="v2")
    assert m.state == "too few to gate: 48 records in 6 clusters"
    _, found = run(records, study("gates = {format_min_clusters = 7}"))
    assert get(found, "kappa.mean_pairwise", dimension="risk", format="v1").state.startswith("too few to gate")


def test_one_format_is_not_repeated(make, study):
    decisions, judgments = make()
    same = [replace(d, format="v1") for d in decisions]
    _, found = run((same, judgments), study())
    assert not [m for m in found.values() if "format" in m.labels]
    # One judge family measures no agreement but still scores.
    only = [j for j in judgments if j.judge == "auditor"]
    _, found = run((decisions, only), study())
    for name in ("kappa.mean_pairwise", "kappa.fleiss", "redundancy"):
        assert get(found, name, dimension="risk").state == "not measurable: one judge family, needs two"
    rho = get(found, "lofo.rho", dimension="risk", dropped="north")
    assert rho.state == "not measurable: one judge family, needs two"
    assert not [m for m in found.values() if m.name in ("lofo.effect", "lofo.contrast")]
    assert get(found, "score.effect", dimension="risk", agent="ash").value is not None
    siblings = [replace(j, family="north") for j in judgments]
    _, found = run((decisions, siblings), study())
    assert get(found, "kappa.mean_pairwise", dimension="risk").state.startswith("not measurable")
    # Constant judges are a state and name the pair.
    flat = changed(judgments, lambda j: j.judge != "skeptic", lambda own: {**own, "risk": 3.0})
    _, found = run((decisions, flat), study())
    m = get(found, "kappa.mean_pairwise", dimension="risk")
    assert m.state == "undefined: both judges gave one rating to all 200 trajectories (auditor|reader)"
    assert m.detail["pairs"] == {"auditor|reader": None, "auditor|skeptic": 0.0, "reader|skeptic": 0.0}
    assert get(found, "redundancy", dimension="risk").state == "undefined: judge 1 gave a single score"
    # A kappa of one cluster has no interval and contrasts no test.
    _, found = run(make(clusters=1, cycles=20), study())
    m = get(found, "kappa.mean_pairwise", dimension="risk")
    assert (m.state, m.low, m.level) == ("ok", None, None)
    assert m.method.endswith("; no interval: one cluster, needs two")
    assert m.detail["bootstrap"]["low"] is None
    contrast = next(m for m in found.values() if m.name == "contrast")
    assert (contrast.value, contrast.low, contrast.detail["p"]) == (None, None, 1.0)
    assert contrast.state.startswith("cannot be tested (1 common cluster;")


def graded(one_decision, one_judgment, agents, cluster, score):
    """Nine cycles of some agents, and what two judges give each."""
    decisions = [one_decision(agent, cycle, cluster(cycle)) for agent in agents for cycle in range(9)]
    judgments = [one_judgment(d.record_id, judge, {"risk": score(int(d.episode_id[5:]), j)})
                 for d in decisions for j, judge in enumerate(("auditor", "reader"))]  # fmt: skip
    return decisions, judgments


def test_too_few_kappas_give_no_interval_but_the_reason(one_decision, one_judgment, study, make):
    records = graded(
        one_decision, one_judgment, ["ash"], lambda k: f"w{k // 5}", lambda k, j: 3.0 if k < 5 else 1.0 + (k + j) % 4
    )
    _, found = run(records, study())
    m = get(found, "kappa.mean_pairwise", dimension="risk")
    assert (m.value is None, m.low, m.detail["bootstrap"]["low"]) == (False, None, None)
    assert "no interval: kappa is undefined without" in m.method
    assert m.detail["bootstrap"]["method"].startswith("no interval: cluster bootstrap, exact")
    # One agent has a level and nothing to compare.
    _, found = run(make(agents=("ash",)), study())
    assert get(found, "score.effect", dimension="risk", agent="ash").n == 50
    assert get(found, "lofo.rho", dimension="risk", dropped="east").state == "undefined: one agent, needs two"
    assert not [m for m in found.values() if m.name.endswith(".contrast") or m.name.startswith(("contrast", "order."))]


def test_pairs_that_never_meet_keep_their_place(make, study):
    turn = {"cedar": 1, "elm": 0}
    records = make(effects=(0.9, 0.1, 0.0, 0.0))
    _, found = run(some(records, lambda d: turn.get(d.agent.id) in (None, int(d.episode_id[5:]) % 2)), study())
    m = get(found, "contrast", dimension="risk", high="cedar", low="elm")
    assert (m.value, m.n, m.detail["p"]) == (None, 0, 1.0)
    assert m.state == "cannot be tested (0 common clusters; 3 are needed, 5 or more to have a chance)"
    assert get(found, "order.detectable", dimension="aggregate").n == 6
    # Through ash and birch they are still on one scale.
    assert get(found, "score.effect", dimension="risk", agent="elm").state == "ok"
    # The pair that never met still counts among six.
    family = [m.detail["p"] for m in found.values() if m.name == "contrast" and m.labels["dimension"] == "aggregate"]
    assert len(family) == 6


def test_an_agent_apart_is_named_disconnected_and_one_without_scores_undefined(make, study, one_decision):
    decisions, judgments = make()
    moved = [replace(d, episode_id=f"own{d.episode_id}") if d.agent.id == "elm" else d for d in decisions]
    _, found = run(([*moved, one_decision("yew", 0, "week00")], judgments), study())
    m = get(found, "score.effect", dimension="risk", agent="elm")
    assert m.state.startswith("disconnected: shares no cycle with the main group")
    assert m.detail["raw_mean"] is not None
    assert get(found, "lofo.effect", dimension="risk", agent="elm", dropped="east").state == m.state
    assert get(found, "lofo.rho", dimension="risk", dropped="east").n == 3
    yew = get(found, "score.effect", dimension="risk", agent="yew")
    state = "undefined: no trajectory with a usable score from every judge"
    assert (yew.state, yew.detail["raw_mean"]) == (state, None)
    contrasts = [m for m in found.values() if m.name == "contrast"]
    never = [(m.value, m.n, m.detail["clusters"]) for m in contrasts if "yew" in m.labels.values()]
    assert never == [(None, 0, 0)] * 16
    assert {m.value for m in contrasts if "elm" in m.labels.values()} == {None}


def test_equal_agents_tie_by_name(one_decision, one_judgment, study):
    records = graded(
        one_decision, one_judgment, ["ash", "birch"], lambda k: f"w{k % 3}", lambda k, j: 1.0 + (k * (1 + j)) % 5
    )
    _, found = run(records, study())
    m = get(found, "contrast", dimension="risk", high="ash", low="birch")
    assert (m.value, m.detail["p"], m.detail["resolved"]) == (0.0, 1.0, False)
    assert get(found, "lofo.rho", dimension="risk", dropped="north").state == "undefined: all 2 agents are tied"


def test_nothing_usable_is_said_everywhere(make, study):
    decisions, judgments = make()
    broken = unusable(judgments, lambda j: j.judge == "skeptic", reason="not JSON")
    table, found = run((decisions, broken), study())
    assert (table.n, len(table.left_out)) == (0, 200)
    for name, more in (("kappa.mean_pairwise", {}), ("kappa.fleiss", {}), ("lofo.rho", {"dropped": "east"})):
        assert get(found, name, dimension="risk", **more).state.startswith("not measurable: no trajectory")
    share = get(found, "judge.invalid_share", judge="skeptic")
    assert (share.value, share.n, share.detail["reasons"]) == (1.0, 200, {"not JSON": 200})
    # What the other two judges said of each record is no panel's, but it can be compared.
    _, two = run((decisions, [j for j in judgments if j.judge != "skeptic"]), study())
    for m in found.values():
        if m.name == "contrast":
            assert (m.value, m.detail["p"]) == pytest.approx((two[m.id].value, two[m.id].detail["p"]))
    nothing = unusable(judgments, status="refused")
    _, found = run((decisions, nothing), study())
    assert {m.value for m in found.values() if "contrast" in m.name} == {None}
    assert {m.detail["p"] for m in found.values() if m.name == "contrast"} == {1.0}
    assert get(found, "order.autocorrelation", dimension="aggregate").state == "undefined: too few clusters"
    assert get(found, "order.detectable", dimension="aggregate").state == "undefined: no pair can be tested"
    assert get(found, "judge.invalid_share", judge="reader").detail["refused"] == 200
    assert get(found, "noise.repetition_stability", judge="auditor", ddof="1").value is None

    # Undefined repetition stability says why.
    decisions, judgments = make(trials=2)
    flat = changed(judgments, lambda j: j.judge == "auditor", lambda own: dict.fromkeys(own, 3.0))
    one = unusable(judgments, lambda j: j.trial == 2)
    for seen, why in ((flat, "every trial of all 200 items has one score"),
                      (one, "0 trajectories with every trial usable, needs two")):  # fmt: skip
        _, found = run((decisions, seen), study())
        assert get(found, "noise.repetition_stability", judge="auditor", ddof="0").state == f"undefined: {why}"


def test_the_noise_floor_is_the_pooled_spread_of_replicates(make, study, one_decision, one_judgment):
    decisions, judgments = make()
    again = [one_decision("ash", cycle, "week00", replicate=2) for cycle in (0, 1)]
    judges, top = ("auditor", "reader", "skeptic"), dict.fromkeys(NAMES[1:], 5.0)
    more = [one_judgment(d.record_id, j, top) for d in again for j in judges]
    table, found = run(([*decisions, *again], [*judgments, *more]), study())
    groups = table.replicates["ash"]
    assert [len(group) for group in groups] == [2, 2]
    m = get(found, "noise.agent_floor", agent="ash")
    assert m.value == pytest.approx(math.sqrt(np.mean([np.var(group, ddof=1) for group in groups])))
    assert (m.n, m.n_of, m.unit) == (4, "replicates", "rubric points")
    assert get(found, "noise.agent_floor", agent="elm").state == "undefined: no replicates"


def test_length_correlation(make, study, one_decision, one_judgment):
    records = make()
    rng = np.random.default_rng(3)
    lengths = {d.record_id: int(rng.integers(20, 200)) for d in records[0]}
    table, found = run(records, study(), lengths=lengths)
    expected = stats.pearsonr(table.lengths, table.stacked[:, :, 0].mean(axis=1)).statistic
    assert get(found, "score.length_correlation", dimension="aggregate").value == pytest.approx(expected)
    for given, word in ((dict.fromkeys(lengths, 5), "or no variation"), (None, "were not given")):
        _, found = run(records, study(), lengths=given)
        assert get(found, "score.length_correlation", dimension="aggregate").state.endswith(word)
    # Two decisions in one cycle count as their mean.
    decisions, judgments = make(clusters=3, cycles=4)
    twin = one_decision("ash", 0, "week00", tag="b")
    more = [one_judgment(twin.record_id, j, dict.fromkeys(NAMES[1:], 5.0)) for j in ("auditor", "reader", "skeptic")]
    for records in ((decisions, judgments), ([*decisions, twin], [*judgments, *more])):
        found = run(records, study())[1].values()
        pairs = [m for m in found if m.name == "contrast" and {"ash", "elm"} == {m.labels["high"], m.labels["low"]}]
        assert [m.n for m in pairs] == [12] * 4


def test_the_other_divisor_is_asked_where_it_decides_otherwise(make, study):
    records = make(trials=3)
    table = mt.score_table(records[1], records[0])
    sharp, loose = (mt.repetition_stability(table.trials["auditor"], ddof=ddof) for ddof in (1, 0))
    gate = f"gates = {{repetition_stability = {(sharp + loose) / 2}}}"
    (_, strict), (_, mild) = (run(records, study(f"{gate}\n{more}")) for more in ("", "inference = {ddof = 0}"))
    for name in NAMES:
        for one, other in ((strict, mild), (mild, strict)):
            expected = get(other, "kappa.mean_pairwise", dimension=name).value
            assert get(one, "kappa.other_ddof", dimension=name).value == pytest.approx(expected)
    asked = get(strict, "kappa.other_ddof", dimension="aggregate")
    assert asked.detail == {"ddof": 0, "averaged": {"auditor": True}}
    # The divisors agree: nothing to tell.
    _, found = run(records, study())
    assert not [m for m in found.values() if m.name == "kappa.other_ddof"]
    only = [j for j in records[1] if j.judge == "auditor"]
    _, found = run((records[0], only), study(gate))
    assert get(found, "kappa.other_ddof", dimension="risk").state == "not measurable: one judge family, needs two"


def test_equal_seeds_give_equal_numbers_and_agents_names_change_none(make, study):
    records = make(clusters=10, cycles=4, attend=0.8)
    one, again = (run(records, study(), seed=4)[1] for _ in range(2))
    assert one == again
    renamed = {"ash": "w", "birch": "x", "cedar": "y", "elm": "z"}
    decisions = [replace(d, agent=replace(d.agent, id=renamed[d.agent.id])) for d in records[0]]
    _, other = run((decisions, records[1]), study(), seed=4)
    for m in one.values():
        labels = {key: renamed.get(value, value) for key, value in m.labels.items()}
        assert get(other, m.name, **labels).value == m.value
    # Progress is told.
    decisions, judgments = make(clusters=2, cycles=2)
    told = []
    mt.analyse(mt.score_table(judgments, decisions), study(), rng=np.random.default_rng(1), progress=told.append)
    assert told == ["agreement", "judges", "levels", "contrasts"]


def test_equal_agents_are_seldom_ordered(study, make):
    """Orders among four equal agents on the aggregate and three dimensions: at most the 5 % that was asked for."""
    found, plan = 0, study()
    for seed in range(60):
        decisions, judgments = make(seed=seed, cycles=4)
        compared = mt.Comparisons.of_table(mt.score_table(judgments, decisions), plan)
        found += bool(mt.OrderTests(compared, mt.OrderPlan.of(plan)).resolved.any())
    assert found <= stats.binom.ppf(0.9995, 60, 0.05)
