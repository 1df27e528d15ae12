"""The outside judge: when it is needed, which pairs it covers, and what it says about them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cells import band
from scipy import stats
from slow_orders import AGENTS, NAMES, changed, get, run, unusable

from assaymark import metrology as mt
from assaymark.errors import InputError
from assaymark.records import Measurement

PROBE = '[stability.probe]\nname = "outsider"\nmodel = "reference/outsider"\nfamily = "west"\n'


def measurement(name: str, value: float | None, detail: dict | None = None, **labels: str) -> Measurement:
    state = "ok" if value is not None else "undefined"
    made = {"n": 1, "n_of": "made up", "method": "made up", "state": state, "detail": detail or {}}
    return Measurement(name=name, labels=labels, value=value, **made)


def rho(value: float | None, dropped: str = "north", dimension: str = "aggregate") -> Measurement:
    return measurement("lofo.rho", value, dimension=dimension, dropped=dropped)


def contrast(resolved: bool, value: float | None = 0.5) -> Measurement:
    """That of a and b; without a value they have too few clusters."""
    return measurement("contrast", value, {"resolved": resolved}, dimension="aggregate", high="a", low="b")


def drop(high: str, low: str, value: float, dropped: str = "north", dimension: str = "aggregate") -> Measurement:
    return measurement("lofo.contrast", value, dimension=dimension, dropped=dropped, high=high, low=low)


AB = ("aggregate", "a", "b")
FALLS, RISES = drop("a", "b", -0.1), drop("a", "b", 0.1)


@pytest.fixture
def plan(study):
    return study(PROBE)


@pytest.mark.parametrize(("found", "needed", "pairs"), [
    ([rho(0.8), RISES], True, ()), ([rho(0.9), RISES], False, ()),
    ([rho(0.3 * 3 - 1e-16)], False, ()),  # 0.9 from ranks is not always 0.9 in floats
    ([rho(1.0), contrast(False), FALLS], False, (AB,)), ([rho(1.0), contrast(True), FALLS], True, (AB,)),
    ([rho(1.0), contrast(True), drop("a", "b", 0.0)], True, (AB,)), ([rho(1.0), contrast(True), RISES], False, ()),
    ([rho(1.0), contrast(True), drop("a", "c", -0.1)], False, (("aggregate", "a", "c"),)),
    ([rho(1.0), contrast(True), drop("a", "b", -0.1, dimension="risk")], False, (("risk", "a", "b"),)),
    ([rho(1.0), contrast(False, None), FALLS], False, (AB,)), ([rho(None), contrast(False), FALLS], False, (AB,)),
    ([rho(None)], False, ()), ([], False, ()),
])  # fmt: skip
def test_when_the_outside_judge_is_needed_and_for_which_pairs(plan, found, needed, pairs):
    result = mt.contested(found, plan)
    assert (result.needed, result.pairs) == (needed, pairs)


def test_every_pair_that_any_drop_reverses_is_covered_once(plan, study):
    found = [rho(0.2), rho(1.0, "south")]
    found += [drop("a", "b", -0.1), drop("a", "b", -0.2, "south"), drop("a", "c", 0.1), drop("a", "c", -0.1, "south")]
    found += [drop("b", "c", -0.1, "south", "risk")]
    result = mt.contested(found, plan)
    assert result.pairs == (AB, ("aggregate", "a", "c"), ("risk", "b", "c"))
    assert result.rho == {"north": 0.2, "south": 1.0}
    # The smallest rho of each family counts.
    result = mt.contested([rho(0.95), rho(0.4, dimension="risk"), rho(None, dimension="clarity")], plan)
    assert (result.needed, result.rho, result.worst) == (True, {"north": 0.4}, {"north": "risk"})
    assert result.reason == "without north rho is 0.4 on risk: below 0.9"
    # Dimensions that nobody claims do not matter.
    claimed = study(PROBE + '[claims]\ndimensions = ["clarity"]\n')
    found = [rho(0.1), drop("a", "b", -0.1), rho(1.0, dimension="clarity"), drop("a", "b", 0.2, dimension="clarity")]
    told = "no drop brings rho below 0.9 or reverses a resolved contrast"
    assert mt.contested(found, claimed) == mt.ProbePlan((), {"north": 1.0}, False, told, {"north": "clarity"})
    # The limit is the plans, and the reason is told.
    assert [mt.contested([rho(value)], study("[stability]\nrho = 0.6")).needed for value in (0.7, 0.5)] == [False, True]
    assert mt.contested([], plan).reason.startswith("no judge family could be left out")
    reversed_ = mt.contested([rho(1.0), contrast(True), FALLS], plan).reason
    assert reversed_.startswith("a drop reverses what the panel resolves: a above b")


def test_contested_on_a_whole_analysis(make, plan):
    """One judge turns birch and cedar round: its drop reverses the pair, and what comes out is what was planted."""
    decisions, judgments = make(effects=(0.9, 0.25, -0.25, -0.9), cycles=20)
    bent = changed(judgments, lambda j: j.judge == "skeptic" and j.trajectory.startswith("cedar"),
                   lambda own: {k: float(np.clip(v + 2, 1, 5)) for k, v in own.items()})  # fmt: skip
    found = mt.analyse(mt.score_table(bent, decisions), plan, rng=np.random.default_rng(1))
    result = mt.contested(found, plan)
    assert (result.needed, result.rho["east"] < 0.9) == (True, True)
    turned = [m.labels for m in found if m.name == "lofo.contrast" and m.value <= 0]
    assert set(result.pairs) == {(one["dimension"], one["high"], one["low"]) for one in turned}
    assert ("aggregate", "cedar", "birch") in result.pairs


NEEDED = mt.ProbePlan((("aggregate", "ash", "birch"),), {"north": 0.2}, True, "rho", {"north": "aggregate"})


def probed(seed, gap: float) -> dict[str, dict]:
    """Scores, agents, cycles and clusters of an outside judge that puts ash above birch by ``gap``."""
    parts: dict[str, dict] = {"scores": {}, "agents": {}, "cycles": {}, "clusters": {}}
    rng = np.random.default_rng(seed)
    own = rng.normal(0, 0.1, 5)
    for k in range(50):
        question = rng.normal(3, 0.7)
        for agent, lead in (("ash", gap + own[k // 10]), ("birch", 0.0)):
            name = f"{agent}{k:03d}"
            parts["scores"][name] = {"aggregate": question + lead + rng.normal(0, 0.2), "risk": 3.0}
            parts["agents"][name], parts["cycles"][name], parts["clusters"][name] = agent, f"c{k:03d}", f"w{k // 10}"
    return parts


def test_a_probe_is_a_paired_cluster_t_test(plan):
    parts = probed(1, 0.3)
    state, found = mt.probe_measurements(NEEDED, **parts, study=plan)
    s = parts["scores"]
    gaps = [s[f"ash{k:03d}"]["aggregate"] - s[f"birch{k:03d}"]["aggregate"] for k in range(50)]
    expected = mt.cluster_t(gaps, [f"w{k // 10}" for k in range(50)])
    assert found.id == "probe.contrast[dimension=aggregate,high=ash,low=birch]"
    assert (found.value, found.low, found.high) == pytest.approx((expected.difference, expected.low, expected.high))
    assert (found.n, found.n_of, found.detail["p"]) == (50, "common cycles", pytest.approx(expected.p))
    assert found.detail["cluster_sums"]["w3"] == [pytest.approx(sum(gaps[30:40])), 10]
    assert (found.detail["judge"], found.detail["family"]) == ("outsider", "west")
    assert (state.value, state.state, state.detail["rho"]) == (1.0, "ok", {"north": 0.2})
    assert state.detail["pairs"] == [["aggregate", "ash", "birch"]]
    # The other direction is the negative.
    turned = replace(NEEDED, pairs=(("aggregate", "birch", "ash"),))
    (_, one), (_, other) = (list(mt.probe_measurements(p, **parts, study=plan)) for p in (NEEDED, turned))
    assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))
    # Only common cycles that were scored count.
    for k in range(40):
        parts["scores"].pop(f"ash{k:03d}" if k % 2 else f"birch{k:03d}")
    _, found = mt.probe_measurements(NEEDED, **parts, study=plan)
    assert (found.n, found.low, found.high, found.detail["p"]) == (10, None, None, 1.0)
    assert "one common cluster" in found.method
    # A pair without common cycles is a state.
    parts = probed(4, 0.3)
    both = replace(NEEDED, pairs=(("risk", "ash", "birch"), ("aggregate", "ash", "elm"), ("unknown", "ash", "birch")))
    _, flat, never, unknown = mt.probe_measurements(both, **parts, study=plan)
    assert (flat.value, flat.detail["p"]) == (0.0, 1.0)
    gone = {"p": None, "judge": "outsider", "family": "west", "cluster_sums": {}}
    for found in (never, unknown):
        assert (found.value, found.state, found.n, found.detail) == (None, "never compared", 0, gone)


@pytest.mark.parametrize(("needed", "committed", "asked", "state"), [
    (False, True, True, "not needed: rho"), (False, False, False, "not needed: rho"),
    (True, False, False, "not committed: the plan names no outside judge, and rho"),
    (True, True, False, "not measured: outsider has given no usable score")
])  # fmt: skip
def test_states_of_the_probe(study, needed, committed, asked, state):
    nothing = {"scores": {}, "agents": {}, "cycles": {}, "clusters": {}}
    given_ = {"study": study(PROBE if committed else ""), **(probed(5, 0.3) if asked else nothing)}
    (found,) = mt.probe_measurements(replace(NEEDED, needed=needed), **given_)
    assert (found.id, found.value, found.state) == ("probe.state[]", None, state)
    assert found.detail["pairs"] == [["aggregate", "ash", "birch"]]


def test_planted_gap_is_recovered_at_the_stated_rate(plan):
    found = [list(mt.probe_measurements(NEEDED, **probed([71, seed], 0.25), study=plan))[1] for seed in range(200)]
    low, high = band(200, 0.95)
    assert low <= sum(one.low <= 0.25 <= one.high for one in found) <= high


# Each judge alone: its levels, rankings and discoveries, recomputed from a table that holds that judge only
@pytest.fixture(scope="module")
def tilted(make):
    """A study in which one judge favours one agent by a point."""

    def records(**parts):
        decisions, judgments = make(effects=(0.5, 0.2, 0.1, 0.0), **parts)
        return decisions, changed(judgments, lambda j: j.judge == "skeptic" and j.trajectory.startswith("elm"),
                                  lambda own: {d: min(5.0, s + 1) for d, s in own.items()})  # fmt: skip

    return records


@pytest.fixture(scope="module")
def halo(tilted, study):
    return run(tilted(), study())


def test_levels_under_one_judge_are_those_of_a_panel_of_one(halo):
    table, found = halo
    names = [table.agents[k] for k in table.agent]
    for k, name in enumerate(NAMES):
        means = [[table.stacked[table.agent == a, j, k].mean() for a in range(4)] for j in range(3)]
        for j, judge in enumerate(table.judges):
            levels = [*mt.agent_effects(table.stacked[:, j, k], names, table.cycle).values()]
            for agent, level in zip(AGENTS, levels, strict=True):
                m = get(found, "single.level", dimension=name, judge=judge, agent=agent)
                assert (m.value, m.n, m.n_of, m.unit) == (pytest.approx(level), 50, "decisions", "rubric points")
                assert m.low < m.value < m.high
        # Rankings of two judges are compared.
        for a, b in ((0, 1), (0, 2), (1, 2)):
            m = get(found, "single.rho", dimension=name, a=table.judges[a], b=table.judges[b])
            expected = pytest.approx(stats.spearmanr(means[a], means[b]).statistic)
            assert (m.value, m.n, m.n_of) == (expected, 4, "agents")
    # The tilted judge puts the last agent first.
    assert get(found, "single.rho", dimension="aggregate", a="auditor", b="reader").value > 0.7
    assert get(found, "single.rho", dimension="aggregate", a="auditor", b="skeptic").value < 0.5


def discoveries(table, judges):
    """Significant contrasts of the mean of some judges, one cluster t test after the other."""
    scores = table.scores[:, judges].mean(axis=1)
    found, p = [], []
    for (k, dimension), (a, b) in product(enumerate(table.dimensions), combinations(range(4), 2)):
        one, other = (scores[table.agent == x, k][np.argsort(table.cycle[table.agent == x])] for x in (a, b))
        clusters = table.cluster[table.agent == a][np.argsort(table.cycle[table.agent == a])]
        test = mt.cluster_t(one - other, clusters)
        high, low = (AGENTS[b], AGENTS[a]) if test.difference < 0 else (AGENTS[a], AGENTS[b])
        found.append(f"{dimension}|{high}|{low}")
        p.append(test.p)
    return {name for name, value in zip(found, mt.holm(p), strict=True) if value <= 0.05}


def test_discoveries_of_a_judge_and_their_overlap_with_the_panels(halo, make, study):
    table, found = halo
    panel = discoveries(table, [0, 1, 2])
    whole = found["panel.discoveries[]"]
    assert (whole.value, whole.n, whole.detail["family"], set(whole.detail["found"])) == (len(panel), 18, 18, panel)
    alone = 0
    for j, judge in enumerate(table.judges):
        own = discoveries(table, [j])
        m = get(found, "single.discoveries", judge=judge)
        assert (m.value, m.detail["overlap"], set(m.detail["only"])) == (len(own), len(own & panel), own - panel)
        alone += len(own - panel)
    assert alone > 0  # the tilt is found by its judge
    # An opposite direction is no overlap.
    decisions, judgments = make(agents=("ash", "birch"), effects=(1.0, 0.0), cycles=20)
    turned = changed(judgments, lambda j: j.judge == "skeptic", lambda own: {d: 6 - s for d, s in own.items()})
    _, found = run((decisions, turned), study())
    m = get(found, "single.discoveries", judge="skeptic")
    assert (m.value, m.detail["overlap"]) == (3, 0)
    assert sorted(m.detail["only"]) == [f"{name}|birch|ash" for name in NAMES[1:]]


def test_the_level_is_the_plans_alpha_and_the_test_weighs_clusters_by_their_records(tilted, study):
    """Whatever decides orders: single judges are compared with the source's numbers."""
    records, told = tilted(clusters=8, cycles=4), {}
    for alpha, more in ((0.001, ""), (0.05, ""), (0.2, ""), (0.2, ', test = "own-variance"')):
        _, found = run(records, study(f"inference = {{alpha = {alpha}{more}}}"))
        contrasts = [m for m in found.values() if m.name == "contrast" and m.labels["dimension"] != "aggregate"]
        p = mt.holm([m.detail["p_cluster_t"] for m in contrasts])
        expected = {"|".join(m.labels[key] for key in ("dimension", "high", "low"))
                    for m, value in zip(contrasts, p, strict=True) if value <= alpha}  # fmt: skip
        whole = found["panel.discoveries[]"]
        told[alpha] = set(whole.detail["found"])
        assert (told[alpha], whole.value, whole.detail["family"]) == (expected, len(expected), 18)
        said = f"contrasts with p <= {alpha:g} by a record-weighted cluster t after Holm over C(A,2)xD=18"
        assert whole.method == get(found, "single.discoveries", judge="skeptic").method == said
    assert told[0.001] < told[0.2]


def test_renaming_judges_and_agents_renames_the_results(make, study, tilted, halo):
    (decisions, judgments), (_, one) = tilted(), halo
    names = {"ash": "z", "birch": "y", "cedar": "x", "elm": "w", "auditor": "c", "reader": "b", "skeptic": "a"}
    renamed = [replace(d, agent=replace(d.agent, id=names[d.agent.id])) for d in decisions]
    called = [replace(j, judge=names[j.judge]) for j in judgments]
    _, other = run((renamed, called), study())
    for m in one.values():
        labels = {key: names.get(value, value) for key, value in m.labels.items()}
        if m.name == "single.rho":
            labels["a"], labels["b"] = sorted((labels["a"], labels["b"]))
        if m.name in ("single.rho", "single.level", "single.discoveries", "panel.discoveries", "rank.first"):
            assert get(other, m.name, **labels).value == pytest.approx(m.value, abs=1e-9)
    # One judge is its own panel.
    decisions, judgments = make(effects=(0.9, 0.1, 0.0, 0.0))
    _, found = run((decisions, [j for j in judgments if j.judge == "auditor"]), study())
    m = get(found, "single.discoveries", judge="auditor")
    assert m.value == m.detail["overlap"] == found["panel.discoveries[]"].value > 0
    assert not [x for x in found.values() if x.name == "single.rho"]


ONE, UNUSABLE = "undefined: one agent, needs two", "not measurable: no trajectory has a usable score from every judge"


@pytest.mark.parametrize(("which", "rho", "orders"), [
    ("one agent", ONE, ONE), ("apart", ONE, "never compared"), ("nothing", UNUSABLE, UNUSABLE),
    ("tied", "undefined: all 4 agents are tied", "ok"),
])  # fmt: skip
def test_what_cannot_be_found_says_why(make, study, which, rho, orders):
    decisions, judgments = make(agents=("ash",)) if which == "one agent" else make(clusters=2, cycles=3)
    if which == "apart":
        decisions = [replace(d, episode_id=d.episode_id + d.agent.id) for d in decisions]
    if which == "nothing":
        judgments = unusable(judgments, lambda j: j.judge == "reader", "refused")
    if which == "tied":
        judgments = changed(judgments, scores=lambda own: dict.fromkeys(own, 3.0))
    _, found = run((decisions, judgments), study())
    assert get(found, "single.rho", dimension="risk", a="auditor", b="reader").state == rho
    assert found["panel.discoveries[]"].state == get(found, "single.discoveries", judge="reader").state == orders
    level = get(found, "single.level", dimension="risk", judge="reader", agent="ash")
    assert (level.state == "ok") is (which != "nothing")
    if which == "tied":  # equal without each cluster, so that there is no interval
        levels = (level, get(found, "score.effect", dimension="risk", agent="ash"))
        assert {(one.value, one.low, one.high) for one in levels} == {(3.0, None, None)}


# The anchor probe: a fair subsample, and what changes when the same records are graded under another rubric
Scores = dict[str, dict[str, float]]
places = st.tuples(st.sampled_from("abcd"), st.sampled_from(["w1", "w2", "w3"]))


def strata_of(counts: dict[tuple[str, str], int]) -> dict[str, tuple[str, str]]:
    return {f"{agent}-{cluster}-{k:03d}": (agent, cluster) for (agent, cluster), n in counts.items() for k in range(n)}


def sampled(strata, size, seed):
    return mt.stratified(strata, size, np.random.default_rng(seed))


@given(st.dictionaries(places, st.integers(1, 40), min_size=1), st.integers(1, 300), st.integers(0, 99))
def test_a_subsample_is_fair(counts, size, seed):
    strata = strata_of(counts)
    sample = sampled(strata, size, seed)
    assert len(sample) == len(set(sample)) == min(size, len(strata))
    assert set(sample) <= set(strata)
    assert list(sample) == sorted(sample)
    places = Counter(strata[name] for name in sample)
    if size >= len(counts):
        assert set(places) == set(counts)
    for one, other in ((a, b) for a in counts for b in counts if counts[a] >= counts[b]):
        assert places[one] >= places[other] - 1  # a larger stratum never gets clearly less
    # A subsample depends on the generator alone.
    assert sampled(dict(reversed(strata.items())), size, seed) == sample


def test_shares_of_the_seed_design():
    """Four agents in five regimes, 50 cycles each: 120 trajectories are 6 of every stratum (section 5.6)."""
    strata = strata_of({(agent, cluster): 50 for agent in "abcd" for cluster in ("w1", "w2", "w3", "w4", "w5")})
    assert set(Counter(strata[name] for name in sampled(strata, 120, 1)).values()) == {6}
    # Proportions are kept.
    strata = strata_of({("a", "w1"): 600, ("b", "w1"): 300, ("c", "w1"): 100})
    assert Counter(strata[name][0] for name in sampled(strata, 100, 1)) == {"a": 60, "b": 30, "c": 10}
    # Every trajectory of a stratum is as likely.
    strata = strata_of({("a", "w1"): 5, ("b", "w1"): 5})
    drawn = Counter(name for seed in range(2000) for name in sampled(strata, 4, seed))
    low, high = band(2000, 0.4)
    assert all(low <= drawn[name] <= high for name in strata)
    # Three strata, four places: each gets the fourth in a third of the draws, whatever its name.
    strata = strata_of({(agent, "w1"): 10 for agent in "abc"})
    extra: Counter[str] = Counter()
    for seed in range(900):
        places = Counter(strata[name][0] for name in sampled(strata, 4, seed))
        extra.update(agent for agent, n in places.items() if n == 2)
    low, high = band(900, 1 / 3)
    assert all(low <= extra[agent] <= high for agent in "abc")
    for size in (0, -1, 2.5, True):
        with pytest.raises(InputError, match="size: must be a whole number of at least 1"):
            sampled({"a": ("x", "w")}, size, 1)


def graded(seed: int | list[int]) -> tuple[Scores, Scores, dict[str, str], dict[str, str]]:
    """One judge on two dimensions under two rubrics; only ``limits`` moves, by an amount that varies by cluster."""
    before, after, agents, groups = {}, {}, {}, {}
    rng, each = np.random.default_rng(seed), 24
    by_cluster = rng.normal(0, 0.1, 5)
    for k in range(5 * each):
        name = f"t{k:04d}"
        agents[name], groups[name] = "abcd"[k % 4], f"w{k // each}"
        quality = 3.5 + rng.normal(0, 0.5)
        before[name] = {"limits": quality, "clarity": quality}
        moved = quality - 0.4 + by_cluster[k // each] + rng.normal(0, 0.4)
        after[name] = {"limits": moved, "clarity": quality + rng.normal(0, 0.2)}
    return before, after, agents, groups


def anchor_run(before: Scores, after: Scores, agents: dict[str, str], groups: dict[str, str], plan: object) -> dict:
    found = mt.anchor_measurements(before, after, agents, groups, frozenset({"limits"}), "auditor", "v1.1", plan)
    return {m.labels["dimension"]: m for m in found if m.name == "anchor.shift"}


def test_the_shift_is_a_paired_cluster_t_test(study):
    before, after, agents, groups = graded(1)
    found = anchor_run(before, after, agents, groups, study())
    expected = mt.cluster_t([after[k]["limits"] - before[k]["limits"] for k in before], list(groups.values()))
    shift = found["limits"]
    assert (shift.value, shift.low, shift.high) == pytest.approx((expected.difference, expected.low, expected.high))
    assert (shift.detail["p"], shift.n, shift.unit) == (pytest.approx(expected.p), 120, "rubric points")
    assert (shift.detail["judge"], shift.detail["rubric"]) == ("auditor", "v1.1")
    assert {name for name, m in found.items() if m.detail["changed"]} == {"aggregate", "limits"}
    assert found["aggregate"].value == pytest.approx((shift.value + found["clarity"].value) / 2)
    # The aggregate has the plan's weights; one handed in is not a dimension.
    found = anchor_run(*graded(2), study("[rubric.weights]\nlimits = 3\nclarity = 1"))
    assert found["aggregate"].value == pytest.approx(0.75 * found["limits"].value + 0.25 * found["clarity"].value)
    before, *rest = graded(3)
    with_it = {name: {**scores, "aggregate": 1.0} for name, scores in before.items()}
    assert anchor_run(with_it, *rest, study()) == anchor_run(before, *rest, study())


def test_spread_order_and_flips(study):
    levels = {"a": (4.0, 3.0), "b": (3.5, 3.6), "c": (3.0, 3.5), "d": (2.0, 2.0)}
    before, after, agents, groups = {}, {}, {}, {}
    for k, (agent, (old, new)) in enumerate(levels.items()):
        for cluster in range(3):
            name = f"{agent}{cluster}"
            agents[name], groups[name] = agent, f"w{cluster}"
            wobble = 0.1 * ((cluster + k) % 3 - 1)
            before[name], after[name] = {"limits": old + wobble}, {"limits": new - 2 * wobble}
    detail = anchor_run(before, after, agents, groups, study())["limits"].detail
    told = (detail["order_before"], detail["order_after"], detail["flips"])
    assert told == (["a", "b", "c", "d"], ["b", "c", "a", "d"], 2)
    old, new = (np.array([scores[name]["limits"] for name in scores]) for scores in (before, after))
    assert (detail["sd_before"], detail["sd_after"]) == pytest.approx((old.std(ddof=1), new.std(ddof=1)))
    assert detail["sd_ratio_low"] < new.std() / old.std() < detail["sd_ratio_high"]
    # Agents that tie have no order to turn.
    names = ["a0", "a1", "b0", "b1"]
    agents, groups = {n: n[0] for n in names}, {n: f"w{n[1]}" for n in names}
    before = {n: {"limits": 0.1 + 0.2 if n[0] == "a" else 0.3} for n in names}
    after = {n: {"limits": 1.0 if n[0] == "a" else 2.0} for n in names}
    detail = anchor_run(before, after, agents, groups, study())["limits"].detail
    assert (detail["order_before"], detail["order_after"], detail["flips"]) == (["a", "b"], ["b", "a"], 0)


def test_what_was_not_graded_twice(study):
    # Only trajectories with both gradings count.
    before, after, agents, groups = graded(4)
    lone = {**before, "only-before": {"limits": 1.0, "clarity": 1.0}}
    more = {**after, "only-after": {"limits": 5.0, "clarity": 5.0}}
    assert anchor_run(lone, more, agents, groups, study()) == anchor_run(before, after, agents, groups, study())
    # Nothing graded twice is a state.
    found = anchor_run({"t": {"limits": 3.0}}, {}, {}, {}, study())
    state = (None, "not measured: no trajectory was graded under both rubrics")
    assert {name: (m.value, m.state) for name, m in found.items()} == {"aggregate": state, "limits": state}
    # One cluster has no interval, and a judge that gives one grade no ratio of spreads.
    for names in (["t0"], ["t0", "t1"]):
        scores = {name: {"limits": 3.0 + k} for k, name in enumerate(names)}
        found = anchor_run(scores, scores, dict.fromkeys(names, "a"), dict.fromkeys(names, "w"), study())["limits"]
        told = (found.value, found.low, found.high, found.detail["p"], found.detail["sd_ratio_low"])
        assert (told, found.detail["sd_before"] is None) == ((0.0, None, None, 1.0, None), len(names) == 1)
    before, *rest = graded(5)
    detail = anchor_run({name: {"limits": 3.0, "clarity": 3.0} for name in before}, *rest, study())["limits"].detail
    assert (detail["sd_before"], detail["sd_ratio_low"], detail["sd_ratio_high"]) == (0.0, None, None)
    before, after, *rest = graded(6)
    with pytest.raises(InputError, match="weights: must be one for each of clarity, limits"):
        anchor_run(before, after, *rest, study("[rubric.weights]\nlimits = 1"))
    with pytest.raises(InputError, match="t0001: both gradings must name clarity, limits"):
        anchor_run(before, after | {"t0001": {"limits": 3.0}}, *rest, study())


def test_planted_shift_and_spread_are_recovered_at_the_stated_rate(study):
    plan, held, truth = study(), np.zeros(2), np.sqrt((0.5**2 + 0.4**2 + 0.1**2) / 0.5**2)
    for seed in range(200):
        found = anchor_run(*graded([61, seed]), plan)["limits"]
        ratio = found.detail["sd_ratio_low"] <= truth <= found.detail["sd_ratio_high"]
        held += [found.low <= -0.4 <= found.high, ratio]
    low, high = band(200, 0.95)
    assert ((low <= held) & (held <= high)).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999), st.floats(-1, 1))
def test_a_shift_of_both_gradings_changes_nothing(study, seed, by):
    before, after, *rest = graded(seed)
    moved = [{name: {d: s + by for d, s in one.items()} for name, one in scores.items()} for scores in (before, after)]
    unmoved = anchor_run(before, after, *rest, study())
    for name, m in anchor_run(*moved, *rest, study()).items():
        other = unmoved[name]
        assert (m.value, m.low, m.high) == pytest.approx((other.value, other.low, other.high), abs=1e-9)
        assert (m.detail["order_after"], m.detail["flips"]) == (other.detail["order_after"], other.detail["flips"])
