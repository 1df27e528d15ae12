"""The outside judge: when it is needed, which pairs it covers, and what it says about them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cells import band
from scipy import stats
from slow_orders import AGENTS, NAMES, changed, get, run, unusable

from assaymark.errors import InputError
from assaymark.metrology import (
    ProbePlan,
    agent_effects,
    analyse,
    anchor_measurements,
    cluster_t,
    contested,
    holm,
    probe_measurements,
    score_table,
    stratified,
)
from assaymark.records import Measurement

PROBE = '[stability.probe]\nname = "outsider"\nmodel = "reference/outsider"\nfamily = "west"\n'


def measurement(name: str, value: float | None, detail: dict | None = None, **labels: str) -> Measurement:
    state = "ok" if value is not None else "undefined"
    return Measurement(
        name=name, labels=labels, value=value, n=1, n_of="made up", method="made up", state=state, detail=detail or {}
    )


def rho(value: float | None, dropped: str = "north", dimension: str = "aggregate") -> Measurement:
    return measurement("lofo.rho", value, dimension=dimension, dropped=dropped)


def contrast(high: str, low: str, resolved: bool, dimension: str = "aggregate") -> Measurement:
    return measurement("contrast", 0.5, {"resolved": resolved}, dimension=dimension, high=high, low=low)


def untested(high: str, low: str) -> Measurement:
    """A pair with too few clusters."""
    return measurement("contrast", None, {"resolved": False}, dimension="aggregate", high=high, low=low)


def drop(high: str, low: str, value: float, dropped: str = "north", dimension: str = "aggregate") -> Measurement:
    return measurement("lofo.contrast", value, dimension=dimension, dropped=dropped, high=high, low=low)


@pytest.fixture
def plan(study):
    return study(PROBE)


# --- when -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "needed", "pairs"),
    [
        ([rho(0.8), drop("a", "b", 0.1)], True, []),
        ([rho(0.9), drop("a", "b", 0.1)], False, []),
        ([rho(0.3 * 3 - 1e-16)], False, []),  # 0.9 from ranks is not always 0.9 in floats
        ([rho(1.0), contrast("a", "b", False), drop("a", "b", -0.1)], False, [("aggregate", "a", "b")]),
        ([rho(1.0), contrast("a", "b", True), drop("a", "b", -0.1)], True, [("aggregate", "a", "b")]),
        ([rho(1.0), contrast("a", "b", True), drop("a", "b", 0.0)], True, [("aggregate", "a", "b")]),
        ([rho(1.0), contrast("a", "b", True), drop("a", "b", 0.1)], False, []),
        ([rho(1.0), contrast("a", "b", True), drop("a", "c", -0.1)], False, [("aggregate", "a", "c")]),
        ([rho(1.0), contrast("a", "b", True), drop("a", "b", -0.1, dimension="risk")], False, [("risk", "a", "b")]),
        ([rho(1.0), untested("a", "b"), drop("a", "b", -0.1)], False, [("aggregate", "a", "b")]),
        ([rho(None), contrast("a", "b", False), drop("a", "b", -0.1)], False, [("aggregate", "a", "b")]),
        ([rho(None)], False, []),
        ([], False, []),
    ],
)
def test_when_the_outside_judge_is_needed_and_for_which_pairs(plan, found, needed, pairs):
    result = contested(found, plan)
    assert (result.needed, list(result.pairs)) == (needed, pairs)


def test_every_pair_that_any_drop_reverses_is_covered_once(plan, study):
    found = [rho(0.2), rho(1.0, "south")]
    found += [drop("a", "b", -0.1), drop("a", "b", -0.2, "south"), drop("a", "c", 0.1), drop("a", "c", -0.1, "south")]
    found += [drop("b", "c", -0.1, "south", "risk")]
    result = contested(found, plan)
    assert result.pairs == (("aggregate", "a", "b"), ("aggregate", "a", "c"), ("risk", "b", "c"))
    assert result.rho == {"north": 0.2, "south": 1.0}
    # The smallest rho of each family counts.
    result = contested([rho(0.95), rho(0.4, dimension="risk"), rho(None, dimension="clarity")], plan)
    assert (result.needed, result.rho, result.worst) == (True, {"north": 0.4}, {"north": "risk"})
    assert result.reason == "without north rho is 0.4 on risk: below 0.9"
    # Dimensions that nobody claims do not matter.
    plan = study(PROBE + '[claims]\ndimensions = ["clarity"]\n')
    found = [rho(0.1), drop("a", "b", -0.1), rho(1.0, dimension="clarity"), drop("a", "b", 0.2, dimension="clarity")]
    assert contested(found, plan) == ProbePlan(
        (), {"north": 1.0}, False, "no drop brings rho below 0.9 or reverses a resolved contrast", {"north": "clarity"}
    )
    # The limit is the plans.
    assert contested([rho(0.7)], study("[stability]\nrho = 0.6")).needed is False
    assert contested([rho(0.5)], study("[stability]\nrho = 0.6")).needed is True


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([], "no judge family could be left out"),
        (
            [rho(1.0), contrast("a", "b", True), drop("a", "b", -1.0)],
            "a drop reverses what the panel resolves: a above b",
        ),
    ],
)
def test_the_reason_is_told(plan, found, reason):
    assert contested(found, plan).reason.startswith(reason)


def test_contested_on_a_whole_analysis(make, study):
    """One judge turns birch and cedar round: its drop reverses the pair, and what comes out is what was planted."""
    decisions, judgments = make(effects=(0.9, 0.25, -0.25, -0.9), cycles=20)
    by_id = {d.record_id: d.agent.id for d in decisions}
    bent = changed(judgments, lambda j: j.judge == "skeptic" and by_id[j.trajectory] == "cedar",
                   lambda own: {k: float(np.clip(v + 2, 1, 5)) for k, v in own.items()})  # fmt: skip
    plan = study(PROBE)
    found = analyse(score_table(bent, decisions), plan, rng=np.random.default_rng(1))
    result = contested(found, plan)
    assert result.needed
    assert result.rho["east"] < 0.9
    expected = {
        (m.labels["dimension"], m.labels["high"], m.labels["low"])
        for m in found
        if m.name == "lofo.contrast" and m.value <= 0
    }
    assert set(result.pairs) == expected
    assert ("aggregate", "cedar", "birch") in expected


# --- what it says ---------------------------------------------------------------------------------------------------

NEEDED = ProbePlan((("aggregate", "ash", "birch"),), {"north": 0.2}, True, "rho", {"north": "aggregate"})


def probed(rng: np.random.Generator, gap: float, *, clusters: int = 5, each: int = 10) -> dict[str, dict]:
    """Scores, agents, cycles and clusters of an outside judge that puts ash above birch by ``gap``."""
    parts: dict[str, dict] = {"scores": {}, "agents": {}, "cycles": {}, "clusters": {}}
    own = rng.normal(0, 0.1, clusters)
    for k in range(clusters * each):
        question = rng.normal(3, 0.7)
        for agent in ("ash", "birch"):
            name = f"{agent}{k:03d}"
            lead = (gap + own[k // each]) * (agent == "ash")
            parts["scores"][name] = {"aggregate": question + lead + rng.normal(0, 0.2), "risk": 3.0}
            parts["agents"][name], parts["cycles"][name] = agent, f"c{k:03d}"
            parts["clusters"][name] = f"w{k // each}"
    return parts


def test_a_probe_is_a_paired_cluster_t_test(plan):
    parts = probed(np.random.default_rng(1), 0.3)
    state, found = probe_measurements(NEEDED, **parts, study=plan)
    s = parts["scores"]
    gaps = [s[f"ash{k:03d}"]["aggregate"] - s[f"birch{k:03d}"]["aggregate"] for k in range(50)]
    expected = cluster_t(gaps, [f"w{k // 10}" for k in range(50)])
    assert found.id == "probe.contrast[dimension=aggregate,high=ash,low=birch]"
    assert (found.value, found.low, found.high) == pytest.approx((expected.difference, expected.low, expected.high))
    assert (found.n, found.n_of, found.detail["p"]) == (50, "common cycles", pytest.approx(expected.p))
    assert (found.detail["judge"], found.detail["family"]) == ("outsider", "west")
    assert found.detail["cluster_sums"]["w3"] == [pytest.approx(sum(gaps[30:40])), 10]
    assert (state.value, state.state, state.detail["pairs"]) == (1.0, "ok", [["aggregate", "ash", "birch"]])
    assert state.detail["rho"] == {"north": 0.2}
    # The other direction is the negative.
    parts = probed(np.random.default_rng(2), 0.3)
    turned = replace(NEEDED, pairs=(("aggregate", "birch", "ash"),))
    (_, one), (_, other) = (list(probe_measurements(p, **parts, study=plan)) for p in (NEEDED, turned))
    assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))
    # Only common cycles that were scored count.
    parts = probed(np.random.default_rng(3), 0.3)
    for k in range(40):
        parts["scores"].pop(f"ash{k:03d}" if k % 2 else f"birch{k:03d}")
    _, found = probe_measurements(NEEDED, **parts, study=plan)
    assert found.n == 10
    assert "one common cluster" in found.method
    assert (found.low, found.high, found.detail["p"]) == (None, None, 1.0)
    # A pair without common cycles is a state.
    parts = probed(np.random.default_rng(4), 0.3)
    both = replace(NEEDED, pairs=(("risk", "ash", "birch"), ("aggregate", "ash", "elm"), ("unknown", "ash", "birch")))
    _, flat, never, unknown = probe_measurements(both, **parts, study=plan)
    assert (flat.value, flat.detail["p"]) == (0.0, 1.0)
    for found in (never, unknown):
        assert (found.value, found.state, found.n) == (None, "never compared", 0)
        assert found.detail == {"p": None, "judge": "outsider", "family": "west", "cluster_sums": {}}


@pytest.mark.parametrize(
    ("needed", "committed", "asked", "state"),
    [
        (False, True, True, "not needed: rho"), (False, False, False, "not needed: rho"),
        (True, False, False, "not committed: the plan names no outside judge, and rho"),
        (True, True, False, "not measured: outsider has given no usable score"),
    ],
)  # fmt: skip
def test_states_of_the_probe(study, needed, committed, asked, state):
    parts = (
        probed(np.random.default_rng(5), 0.3) if asked else {"scores": {}, "agents": {}, "cycles": {}, "clusters": {}}
    )
    plan = study(PROBE if committed else "")
    (found,) = probe_measurements(replace(NEEDED, needed=needed), **parts, study=plan)
    assert (found.id, found.value, found.state) == ("probe.state[]", None, state)
    assert found.detail["pairs"] == [["aggregate", "ash", "birch"]]


def test_planted_gap_is_recovered_at_the_stated_rate(plan):
    inside = 0
    for seed in range(200):
        _, found = probe_measurements(NEEDED, **probed(np.random.default_rng([71, seed]), 0.25), study=plan)
        inside += found.low <= 0.25 <= found.high
    low, high = band(200, 0.95)
    assert low <= inside <= high


# Each judge alone: its levels, rankings and discoveries, recomputed from a table that holds that judge only


def with_halo(make, **parts):
    """A study in which one judge favours one agent by a point."""
    decisions, judgments = make(effects=(0.5, 0.2, 0.1, 0.0), **parts)
    tilted = changed(judgments, lambda j: j.judge == "skeptic" and j.trajectory.startswith("elm"),
                     lambda own: {d: min(5.0, s + 1) for d, s in own.items()})  # fmt: skip
    return decisions, tilted


@pytest.fixture(scope="module")
def halo(make, study):
    return run(with_halo(make), study())


def test_levels_under_one_judge_are_those_of_a_panel_of_one(halo):
    table, found = halo
    names = [table.agents[k] for k in table.agent]
    for j, judge in enumerate(table.judges):
        for k, name in enumerate(NAMES):
            levels = agent_effects(table.stacked[:, j, k], names, table.cycle).levels
            for agent, level in zip(AGENTS, levels, strict=True):
                m = get(found, "single.level", dimension=name, judge=judge, agent=agent)
                assert m.value == pytest.approx(level)
                assert m.low < m.value < m.high
                assert (m.n, m.n_of, m.unit) == (50, "decisions", "rubric points")
    # Rankings of two judges are compared.
    for k, name in enumerate(NAMES):
        levels = [[table.stacked[table.agent == a, j, k].mean() for a in range(4)] for j in range(3)]
        for a, b in ((0, 1), (0, 2), (1, 2)):
            m = get(found, "single.rho", dimension=name, a=table.judges[a], b=table.judges[b])
            assert m.value == pytest.approx(stats.spearmanr(levels[a], levels[b]).statistic)
            assert (m.n, m.n_of) == (4, "agents")
    # The tilted judge puts the last agent first.
    assert get(found, "single.rho", dimension="aggregate", a="auditor", b="reader").value > 0.7
    assert get(found, "single.rho", dimension="aggregate", a="auditor", b="skeptic").value < 0.5


def discoveries(table, judges):
    """Significant contrasts of the mean of some judges, one cluster t test after the other."""
    scores = table.scores[:, judges].mean(axis=1)
    found, p = [], []
    for k, dimension in enumerate(table.dimensions):
        for a in range(4):
            for b in range(a + 1, 4):
                one, other = (scores[table.agent == x, k][np.argsort(table.cycle[table.agent == x])] for x in (a, b))
                clusters = table.cluster[table.agent == a][np.argsort(table.cycle[table.agent == a])]
                test = cluster_t(one - other, clusters)
                high, low = (AGENTS[b], AGENTS[a]) if test.difference < 0 else (AGENTS[a], AGENTS[b])
                found.append(f"{dimension}|{high}|{low}")
                p.append(test.p)
    return {name for name, value in zip(found, holm(p), strict=True) if value <= 0.05}


def test_discoveries_of_a_judge_and_their_overlap_with_the_panels(halo):
    table, found = halo
    panel = discoveries(table, [0, 1, 2])
    whole = found["panel.discoveries[]"]
    assert (whole.value, whole.n, whole.detail["family"]) == (len(panel), 18, 18)
    assert set(whole.detail["found"]) == panel
    alone = 0
    for j, judge in enumerate(table.judges):
        own = discoveries(table, [j])
        m = get(found, "single.discoveries", judge=judge)
        assert m.value == len(own)
        assert m.detail["overlap"] == len(own & panel)
        assert set(m.detail["only"]) == own - panel
        assert m.detail["overlap"] + len(m.detail["only"]) == m.value
        alone += len(own - panel)
    assert alone > 0  # the tilt is found by its judge


def test_an_opposite_direction_is_no_overlap(make, study):
    decisions, judgments = make(agents=("ash", "birch"), effects=(1.0, 0.0), cycles=20)
    turned = changed(judgments, lambda j: j.judge == "skeptic", lambda own: {d: 6 - s for d, s in own.items()})
    _, found = run((decisions, turned), study())
    m = get(found, "single.discoveries", judge="skeptic")
    assert m.value == len(m.detail["only"]) == 3
    assert m.detail["overlap"] == 0
    assert all(name.endswith("|birch|ash") for name in m.detail["only"])


@pytest.mark.parametrize("inference", ["alpha = 0.05", "alpha = 0.2", 'alpha = 0.2, test = "own-variance"'])
def test_the_level_is_the_plans_alpha_and_the_test_weighs_clusters_by_their_records(make, study, inference):
    """Whatever decides orders: single judges are compared with the source's numbers."""
    plan = study(f"inference = {{{inference}}}")
    _, found = run(with_halo(make, clusters=8, cycles=4), plan)
    contrasts = [m for m in found.values() if m.name == "contrast" and m.labels["dimension"] != "aggregate"]
    p = holm([m.detail["p_cluster_t"] for m in contrasts])
    expected = {
        f"{m.labels['dimension']}|{m.labels['high']}|{m.labels['low']}"
        for m, value in zip(contrasts, p, strict=True)
        if value <= plan.inference.alpha
    }
    whole = found["panel.discoveries[]"]
    assert set(whole.detail["found"]) == expected
    assert (whole.value, whole.detail["family"]) == (len(expected), 18)
    assert whole.method == (
        f"contrasts with p <= {plan.inference.alpha:g} by a record-weighted cluster t after Holm over C(A,2)xD=18"
    )
    assert get(found, "single.discoveries", judge="skeptic").method == whole.method


def test_a_milder_level_finds_more(make, study):
    records = with_halo(make, clusters=8, cycles=4)
    strict, mild = (
        run(records, study(f"inference = {{alpha = {alpha}}}"))[1]["panel.discoveries[]"].detail["found"]
        for alpha in (0.001, 0.2)
    )
    assert set(strict) < set(mild)
    # Renaming judges and agents renames the results.
    decisions, judgments = with_halo(make)
    _, one = run((decisions, judgments), study())
    names = {"ash": "z", "birch": "y", "cedar": "x", "elm": "w", "auditor": "c", "reader": "b", "skeptic": "a"}
    renamed = [dataclasses.replace(d, agent=dataclasses.replace(d.agent, id=names[d.agent.id])) for d in decisions]
    called = [dataclasses.replace(j, judge=names[j.judge]) for j in judgments]
    _, other = run((renamed, called), study())
    for m in one.values():
        labels = {key: names.get(value, value) for key, value in m.labels.items()}
        if m.name == "single.rho":
            labels["a"], labels["b"] = sorted((labels["a"], labels["b"]))
        if m.name in ("single.rho", "single.level", "single.discoveries", "panel.discoveries", "rank.first"):
            assert get(other, m.name, **labels).value == pytest.approx(m.value, abs=1e-9)
    # One judge is its own panel.
    decisions, judgments = make(effects=(0.9, 0.1, 0.0, 0.0))
    only = [j for j in judgments if j.judge == "auditor"]
    _, found = run((decisions, only), study())
    m = get(found, "single.discoveries", judge="auditor")
    assert m.value == m.detail["overlap"] == found["panel.discoveries[]"].value > 0
    assert not [x for x in found.values() if x.name == "single.rho"]


@pytest.mark.parametrize("which", ["one agent", "apart", "nothing", "tied"])
def test_what_cannot_be_found_says_why(make, study, which):
    decisions, judgments = make(agents=("ash",)) if which == "one agent" else make(clusters=2, cycles=3)
    if which == "apart":
        decisions = [dataclasses.replace(d, episode_id=d.episode_id + d.agent.id) for d in decisions]
    if which == "nothing":
        judgments = unusable(judgments, lambda j: j.judge == "reader", "refused")
    if which == "tied":
        judgments = changed(judgments, scores=lambda own: dict.fromkeys(own, 3.0))
    _, found = run((decisions, judgments), study())
    rho = get(found, "single.rho", dimension="risk", a="auditor", b="reader")
    states = {
        "one agent": ("undefined: one agent, needs two",) * 2,
        "apart": ("undefined: one agent, needs two", "never compared"),
        "nothing": ("not measurable: no trajectory has a usable score from every judge",) * 2,
        "tied": ("undefined: all 4 agents are tied", "ok"),
    }[which]
    assert (rho.state, found["panel.discoveries[]"].state) == states
    assert get(found, "single.discoveries", judge="reader").state == states[1]
    level = get(found, "single.level", dimension="risk", judge="reader", agent="ash")
    assert (level.state == "ok") is (which != "nothing")


# The anchor probe: a fair subsample, and what changes when the same records are graded under another rubric

Scores = dict[str, dict[str, float]]


@pytest.fixture
def anchor_plan(study):
    return study()


# --- the subsample --------------------------------------------------------------------------------------------------

sizes = st.dictionaries(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["w1", "w2", "w3"])), st.integers(1, 40), min_size=1
)


def strata_of(counts: dict[tuple[str, str], int]) -> dict[str, tuple[str, str]]:
    return {f"{agent}-{cluster}-{k:03d}": (agent, cluster) for (agent, cluster), n in counts.items() for k in range(n)}


@given(sizes, st.integers(1, 300), st.integers(0, 99))
def test_a_subsample_is_fair(counts, size, seed):
    strata = strata_of(counts)
    sample = stratified(strata, size, np.random.default_rng(seed))
    assert len(sample) == len(set(sample)) == min(size, len(strata))
    assert set(sample) <= set(strata)
    assert list(sample) == sorted(sample)
    places = Counter(strata[name] for name in sample)
    if size >= len(counts):
        assert set(places) == set(counts)
    for one, other in ((a, b) for a in counts for b in counts if counts[a] >= counts[b]):
        assert places[one] >= places[other] - 1  # a larger stratum never gets clearly less
    # A subsample depends on the generator alone.
    backwards = dict(reversed(strata.items()))
    assert stratified(strata, size, np.random.default_rng(seed)) == stratified(
        backwards, size, np.random.default_rng(seed)
    )


def test_shares_of_the_seed_design():
    """Four agents in five regimes, 50 cycles each: 120 trajectories are 6 of every stratum (section 5.6)."""
    strata = strata_of({(agent, cluster): 50 for agent in "abcd" for cluster in ("w1", "w2", "w3", "w4", "w5")})
    sample = stratified(strata, 120, np.random.default_rng(1))
    assert set(Counter(strata[name] for name in sample).values()) == {6}
    # Proportions are kept.
    strata = strata_of({("a", "w1"): 600, ("b", "w1"): 300, ("c", "w1"): 100})
    sample = stratified(strata, 100, np.random.default_rng(1))
    assert Counter(strata[name][0] for name in sample) == {"a": 60, "b": 30, "c": 10}
    # Every trajectory of a stratum is as likely.
    strata = strata_of({("a", "w1"): 5, ("b", "w1"): 5})
    drawn = Counter(name for seed in range(2000) for name in stratified(strata, 4, np.random.default_rng(seed)))
    low, high = band(2000, 0.4)
    assert all(low <= drawn[name] <= high for name in strata)
    # Three strata, four places: each gets the fourth in a third of the draws, whatever its name.
    strata = strata_of({(agent, "w1"): 10 for agent in "abc"})
    extra: Counter[str] = Counter()
    for seed in range(900):
        places = Counter(strata[name][0] for name in stratified(strata, 4, np.random.default_rng(seed)))
        extra.update(agent for agent, n in places.items() if n == 2)
    low, high = band(900, 1 / 3)
    assert all(low <= extra[agent] <= high for agent in "abc")


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_a_subsample_needs_a_size(size):
    with pytest.raises(InputError, match="size: must be a whole number of at least 1"):
        stratified({"a": ("x", "w")}, size, np.random.default_rng(1))


# --- the shift ------------------------------------------------------------------------------------------------------


def graded(
    rng: np.random.Generator, shift: float = -0.4, *, clusters: int = 5, each: int = 24, own: float = 0.1
) -> tuple[Scores, Scores, dict[str, str], dict[str, str]]:
    """One judge on two dimensions under two rubrics; only ``limits`` moves, by an amount that varies by cluster."""
    before, after, agents, groups = {}, {}, {}, {}
    by_cluster = rng.normal(0, own, clusters)
    for k in range(clusters * each):
        name = f"t{k:04d}"
        agents[name], groups[name] = "abcd"[k % 4], f"w{k // each}"
        quality = 3.5 + rng.normal(0, 0.5)
        before[name] = {"limits": quality, "clarity": quality}
        moved = quality + shift + by_cluster[k // each] + rng.normal(0, 0.4)
        after[name] = {"limits": moved, "clarity": quality + rng.normal(0, 0.2)}
    return before, after, agents, groups


def anchor_run(before: Scores, after: Scores, agents: dict[str, str], groups: dict[str, str], plan: object) -> dict:
    found = anchor_measurements(before, after, agents, groups, frozenset({"limits"}), "auditor", "v1.1", plan)
    return {m.labels["dimension"]: m for m in found if m.name == "anchor.shift"}


def test_the_shift_is_a_paired_cluster_t_test(anchor_plan):
    before, after, agents, groups = graded(np.random.default_rng(1))
    found = anchor_run(before, after, agents, groups, anchor_plan)
    gaps = [after[name]["limits"] - before[name]["limits"] for name in before]
    expected = cluster_t(gaps, list(groups.values()))
    shift = found["limits"]
    assert (shift.value, shift.low, shift.high) == pytest.approx((expected.difference, expected.low, expected.high))
    assert (shift.detail["p"], shift.n, shift.unit) == (pytest.approx(expected.p), 120, "rubric points")
    assert (shift.detail["judge"], shift.detail["rubric"]) == ("auditor", "v1.1")
    assert {name: m.detail["changed"] for name, m in found.items()} == {
        "aggregate": True, "limits": True, "clarity": False,
    }  # fmt: skip
    assert found["aggregate"].value == pytest.approx((shift.value + found["clarity"].value) / 2)


def test_the_aggregate_has_the_plans_weights(study, anchor_plan):
    before, after, agents, groups = graded(np.random.default_rng(2))
    found = anchor_run(before, after, agents, groups, study("[rubric.weights]\nlimits = 3\nclarity = 1"))
    assert found["aggregate"].value == pytest.approx(0.75 * found["limits"].value + 0.25 * found["clarity"].value)
    # An aggregate handed in is not a dimension.
    before, after, agents, groups = graded(np.random.default_rng(3))
    with_it = {name: {**scores, "aggregate": 1.0} for name, scores in before.items()}
    assert anchor_run(with_it, after, agents, groups, anchor_plan) == anchor_run(
        before, after, agents, groups, anchor_plan
    )


def test_spread_order_and_flips(anchor_plan):
    levels = {"a": (4.0, 3.0), "b": (3.5, 3.6), "c": (3.0, 3.5), "d": (2.0, 2.0)}
    before, after, agents, groups = {}, {}, {}, {}
    for k, (agent, (old, new)) in enumerate(levels.items()):
        for cluster in range(3):
            name = f"{agent}{cluster}"
            agents[name], groups[name] = agent, f"w{cluster}"
            wobble = 0.1 * ((cluster + k) % 3 - 1)
            before[name], after[name] = {"limits": old + wobble}, {"limits": new - 2 * wobble}
    detail = anchor_run(before, after, agents, groups, anchor_plan)["limits"].detail
    assert detail["order_before"] == ["a", "b", "c", "d"]
    assert detail["order_after"] == ["b", "c", "a", "d"]
    assert detail["flips"] == 2
    old, new = (np.array([scores[name]["limits"] for name in scores]) for scores in (before, after))
    assert (detail["sd_before"], detail["sd_after"]) == pytest.approx((old.std(ddof=1), new.std(ddof=1)))
    assert detail["sd_ratio_low"] < new.std() / old.std() < detail["sd_ratio_high"]


def test_agents_that_tie_have_no_order_to_turn(anchor_plan):
    names = ["a0", "a1", "b0", "b1"]
    agents, groups = {n: n[0] for n in names}, {n: f"w{n[1]}" for n in names}
    before = {n: {"limits": 0.1 + 0.2 if n[0] == "a" else 0.3} for n in names}
    after = {n: {"limits": 1.0 if n[0] == "a" else 2.0} for n in names}
    detail = anchor_run(before, after, agents, groups, anchor_plan)["limits"].detail
    assert (detail["order_before"], detail["order_after"], detail["flips"]) == (["a", "b"], ["b", "a"], 0)
    # Only trajectories with both gradings count.
    before, after, agents, groups = graded(np.random.default_rng(4))
    lone = {**before, "only-before": {"limits": 1.0, "clarity": 1.0}}
    more = {**after, "only-after": {"limits": 5.0, "clarity": 5.0}}
    assert anchor_run(lone, more, agents, groups, anchor_plan) == anchor_run(before, after, agents, groups, anchor_plan)
    # Nothing graded twice is a state.
    found = anchor_run({"t": {"limits": 3.0}}, {}, {}, {}, anchor_plan)
    assert list(found) == ["aggregate", "limits"]
    for m in found.values():
        assert (m.value, m.state) == (None, "not measured: no trajectory was graded under both rubrics")


@pytest.mark.parametrize("n", [1, 2])
def test_one_cluster_has_no_interval(anchor_plan, n):
    names = [f"t{k}" for k in range(n)]
    scores = {name: {"limits": 3.0 + k} for k, name in enumerate(names)}
    found = anchor_run(scores, scores, dict.fromkeys(names, "a"), dict.fromkeys(names, "w"), anchor_plan)["limits"]
    assert (found.value, found.low, found.high, found.detail["p"]) == (0.0, None, None, 1.0)
    assert (found.detail["sd_ratio_low"], found.detail["sd_ratio_high"]) == (None, None)
    assert (found.detail["sd_before"] is None) == (n == 1)


def test_a_judge_that_gives_one_grade_has_no_spread_ratio(anchor_plan, study):
    before, after, agents, groups = graded(np.random.default_rng(5))
    constant = {name: {"limits": 3.0, "clarity": 3.0} for name in before}
    detail = anchor_run(constant, after, agents, groups, anchor_plan)["limits"].detail
    assert (detail["sd_before"], detail["sd_ratio_low"], detail["sd_ratio_high"]) == (0.0, None, None)
    # Gradings must name the same dimensions.
    before, after, agents, groups = graded(np.random.default_rng(6))
    after["t0001"] = {"limits": 3.0}
    with pytest.raises(InputError, match="t0001: both gradings must name clarity, limits"):
        anchor_run(before, after, agents, groups, anchor_plan)
    before, after, agents, groups = graded(np.random.default_rng(6))
    with pytest.raises(InputError, match="weights: must be one for each of clarity, limits"):
        anchor_run(before, after, agents, groups, study("[rubric.weights]\nlimits = 1"))
    # Planted shift and spread are recovered at the stated rate.
    shift = ratio = 0
    truth = np.sqrt((0.5**2 + 0.4**2 + 0.1**2) / 0.5**2)
    for seed in range(200):
        found = anchor_run(*graded(np.random.default_rng([61, seed])), anchor_plan)["limits"]
        shift += found.low <= -0.4 <= found.high
        ratio += found.detail["sd_ratio_low"] <= truth <= found.detail["sd_ratio_high"]
    low, high = band(200, 0.95)
    assert low <= shift <= high
    assert low <= ratio <= high


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999), st.floats(-1, 1))
def test_a_shift_of_both_gradings_changes_nothing(study, seed, by):
    before, after, agents, groups = graded(np.random.default_rng(seed))
    moved = [{name: {d: s + by for d, s in one.items()} for name, one in scores.items()} for scores in (before, after)]
    for name, m in anchor_run(*moved, agents, groups, study()).items():
        other = anchor_run(before, after, agents, groups, study())[name]
        assert (m.value, m.low, m.high) == pytest.approx((other.value, other.low, other.high), abs=1e-9)
        assert (m.detail["order_after"], m.detail["flips"]) == (other.detail["order_after"], other.detail["flips"])
