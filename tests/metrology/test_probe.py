"""The outside judge: when it is needed, which pairs it covers, and what it says about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from assaymark.metrology import ProbePlan, analyse, cluster_t, contested, probe_measurements, score_table
from assaymark.records import Measurement

PROBE = '[stability.probe]\nname = "outsider"\nmodel = "reference/outsider"\nfamily = "west"\n'


def band(n: int, rate: float) -> tuple[int, int]:
    """Central 99.9 % of a binomial count."""
    low, high = stats.binom.ppf([0.0005, 0.9995], n, rate)
    return int(low), int(high)


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


def test_every_pair_that_any_drop_reverses_is_covered_once(plan):
    found = [rho(0.2), rho(1.0, "south")]
    found += [drop("a", "b", -0.1), drop("a", "b", -0.2, "south"), drop("a", "c", 0.1), drop("a", "c", -0.1, "south")]
    found += [drop("b", "c", -0.1, "south", "risk")]
    result = contested(found, plan)
    assert result.pairs == (("aggregate", "a", "b"), ("aggregate", "a", "c"), ("risk", "b", "c"))
    assert result.rho == {"north": 0.2, "south": 1.0}


def test_the_smallest_rho_of_each_family_counts(plan):
    result = contested([rho(0.95), rho(0.4, dimension="risk"), rho(None, dimension="clarity")], plan)
    assert (result.needed, result.rho, result.worst) == (True, {"north": 0.4}, {"north": "risk"})
    assert result.reason == "without north rho is 0.4 on risk: below 0.9"


def test_dimensions_that_nobody_claims_do_not_matter(study):
    plan = study(PROBE + '[claims]\ndimensions = ["clarity"]\n')
    found = [rho(0.1), drop("a", "b", -0.1), rho(1.0, dimension="clarity"), drop("a", "b", 0.2, dimension="clarity")]
    assert contested(found, plan) == ProbePlan(
        (), {"north": 1.0}, False, "no drop brings rho below 0.9 or reverses a resolved contrast", {"north": "clarity"}
    )


def test_the_limit_is_the_plans(study):
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
    bent = [
        replace(
            j, scores={k: float(np.clip(v + 2 * (by_id[j.trajectory] == "cedar"), 1, 5)) for k, v in j.scores.items()}
        )
        if j.judge == "skeptic"
        else j
        for j in judgments
    ]
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


def test_the_other_direction_is_the_negative(plan):
    parts = probed(np.random.default_rng(2), 0.3)
    turned = replace(NEEDED, pairs=(("aggregate", "birch", "ash"),))
    (_, one), (_, other) = (list(probe_measurements(p, **parts, study=plan)) for p in (NEEDED, turned))
    assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))


def test_only_common_cycles_that_were_scored_count(plan):
    parts = probed(np.random.default_rng(3), 0.3)
    for k in range(40):
        parts["scores"].pop(f"ash{k:03d}" if k % 2 else f"birch{k:03d}")
    _, found = probe_measurements(NEEDED, **parts, study=plan)
    assert found.n == 10
    assert "one common cluster" in found.method
    assert (found.low, found.high, found.detail["p"]) == (None, None, 1.0)


def test_a_pair_without_common_cycles_is_a_state(plan):
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
        (False, True, True, "not needed: rho"),
        (False, False, False, "not needed: rho"),
        (True, False, False, "not committed: the plan names no outside judge, and rho"),
        (True, True, False, "not measured: outsider has given no usable score"),
    ],
)
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
