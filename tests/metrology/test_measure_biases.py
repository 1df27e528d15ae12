"""What may explain an order: own families, length, these judges and no others, one impression for all dimensions."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats
from slow_orders import AGENTS, NAMES, OWN, by_cycle, cell_means, cluster_of, get, named, pair_of, run, values_of

from assaymark.metrology import (
    analyse,
    discriminant,
    equivalence_p,
    length_adjusted,
    length_p,
    length_rule,
    own_family,
    random_judges,
    recusal_p,
    score_table,
    specific_contrast,
)

CONSECUTIVE = 'inference = {cluster_order = "consecutive"}'


def test_families_are_said(led, biased):
    _, found = led
    m = found["panel.families[]"]
    assert (m.value, m.n) == (3.0, 3)
    assert m.detail["own"] == {"auditor": [], "reader": [], "skeptic": []}
    assert (m.detail["unknown"], m.detail["in_parts"], m.detail["missing"]) == ("", False, False)
    _, found = biased
    assert found["panel.families[]"].detail["own"] == {"auditor": ["ash"], "reader": ["cedar"], "skeptic": []}
    assert not named(led[1], "recusal.contrast")
    assert not named(led[1], "judge.own_family")


def test_judges_stand_aside_for_agents_of_their_own_family(biased):
    table, found = biased
    own = np.array([[OWN.get(agent) == family for agent in AGENTS] for family in table.families])
    seen = 0
    for column, name in enumerate(NAMES):
        expected = recusal_p(cell_means(table, column), own)
        for m in named(found, "recusal.contrast", dimension=name):
            first, second, turn = pair_of(m)
            one = expected[first, second]
            assert m.value == pytest.approx(turn * one.difference, abs=1e-9)
            assert (m.detail["p"], m.detail["se"]) == pytest.approx((one.p, one.se))
            half = stats.t.ppf(0.975, one.df) * one.se
            assert (m.low, m.high) == pytest.approx((m.value - half, m.value + half))
            families = {OWN[agent] for agent in (AGENTS[first], AGENTS[second]) if agent in OWN}
            assert m.detail["families"] == sorted(families)
            assert m.detail["free"] == [
                j for j, f in zip(table.judges, table.families, strict=True) if f not in families
            ]
            if column == 0:
                p = equivalence_p(one.difference, one.se, one.df, one.clusters, 0.3)
                assert m.detail["p_equivalence"] == pytest.approx(p)
            seen += 1
    assert seen == 4 * 5, "birch and elm are nobody's"
    assert all({"birch", "elm"} != set(m.labels.values()) for m in named(found, "recusal.contrast"))


def test_nobody_without_an_interest_is_a_state(make, study):
    decisions, judgments = make(agents=("ash", "cedar"), families=OWN)
    two = [j for j in judgments if j.judge != "skeptic"]
    _, found = run((decisions, two), study())
    items = named(found, "recusal.contrast")
    assert len(items) == 4
    assert {(m.value, m.state, m.detail["p"], m.n) for m in items} == {
        (None, "undefined: every judge shares its family with one of the two", 1.0, 0)
    }
    assert all("p_equivalence" not in m.detail for m in items)
    (m,) = named(found, "judge.own_family", dimension="aggregate")
    assert m.labels["judge"] == "common", "two judges and two agents show a common value only"


def test_own_family_liking_is_measured_for_each_judge(biased):
    table, found = biased
    own = np.array([[OWN.get(agent) == family for agent in AGENTS] for family in table.families])
    for column, name in enumerate(NAMES):
        expected = own_family(cell_means(table, column), own)
        for judge, one, p in zip(("auditor", "reader"), expected.by_judge, expected.p_holm, strict=True):
            m = get(found, "judge.own_family", dimension=name, judge=judge)
            assert (m.value, m.low, m.high) == pytest.approx((one.estimate, one.low, one.high))
            assert (m.detail["p"], m.detail["p_holm"]) == pytest.approx((one.p, p))
        common = get(found, "judge.own_family", dimension=name, judge="common")
        assert common.value == pytest.approx(expected.common.estimate)
        assert common.detail["p_holm"] is None


def test_the_level_of_intervals_is_the_plans(make, study):
    records = make(families=OWN)
    lengths = {d.record_id: 30 + 7 * (k % 11) for k, d in enumerate(records[0])}
    wide, narrow = (run(records, study(f"inference = {{level = {level}}}"), lengths)[1] for level in (0.99, 0.8))
    ends = [m for m in wide.values() if m.low is not None and m.name in (
        "contrast", "recusal.contrast", "judges.contrast", "judge.own_family", "dimension.distinct")]  # fmt: skip
    assert len({m.name for m in ends}) == 5
    for m in ends:
        other = narrow[m.id]
        assert (m.level, other.level) == (0.99, 0.8)
        assert m.low < other.low < other.high < m.high
        if m.name == "contrast":
            half = stats.t.ppf(0.995, m.detail["df"]) * m.detail["se"]
            assert m.high - m.value == pytest.approx(half)


def test_contrasts_at_equal_length(biased):
    table, found = biased
    cluster, own = cluster_of(table), np.array([[OWN.get(a) == f for a in AGENTS] for f in table.families])
    doublings = by_cycle(table, np.log2(table.lengths))
    for column, name in enumerate(NAMES):
        scores = by_cycle(table, values_of(table, column)).transpose(0, 2, 1)
        gating = length_p(scores, doublings, cluster, own)
        items = named(found, "length.contrast", dimension=name)
        assert len(items) == 6
        for m in items:
            first, second, turn = pair_of(m)
            one = gating[first, second]
            a, b = (first, second) if turn > 0 else (second, first)
            panel = length_adjusted(scores.mean(axis=1), doublings, cluster, a, b)
            assert m.value == pytest.approx(turn * one.difference, abs=1e-9)
            assert (m.detail["p"], m.detail["se"], m.detail["df"]) == pytest.approx((one.p, one.se, one.df))
            assert m.detail["gap"] == pytest.approx(panel.gap[0])
            assert m.detail["slope"] == pytest.approx(panel.slopes[0].estimate)
            assert m.detail["slope_p"] == pytest.approx(panel.slopes[0].p)
            assert m.detail["raw"] == pytest.approx(panel.raw.estimate)
            assert m.detail["overlap"] == pytest.approx(panel.overlap)
            up = one.p / 2 if m.value > 0 else 1 - one.p / 2
            word = length_rule(panel.raw, {"estimate": m.value, "p_up": up}, panel.slopes[0], panel.gap[0])
            assert m.detail["word"] == word
            if column == 0:
                p = equivalence_p(one.difference, one.se, one.df, one.clusters, 0.3)
                assert m.detail["p_equivalence"] == pytest.approx(p)
    assert {m.detail["gap"] > 0.9 for m in named(found, "length.contrast", high="ash")} == {True}


@pytest.mark.parametrize("extra", ["", 'claims = {length = "off"}'])
def test_without_lengths_or_where_nobody_asks_there_is_nothing_at_equal_length(make, study, extra):
    records = make()
    lengths = {d.record_id: 50 for d in records[0]} if extra else None
    _, found = run(records, study(extra), lengths)
    assert not named(found, "length.contrast")


def test_judges_as_a_sample(biased):
    table, found = biased
    for column, name in enumerate(NAMES):
        means = cell_means(table, column)
        for m in named(found, "judges.contrast", dimension=name):
            first, second, turn = pair_of(m)
            expected = random_judges(turn * (means[:, :, first] - means[:, :, second]).T)
            assert m.value == pytest.approx(expected.estimate)
            assert (m.low, m.high) == pytest.approx((expected.low, expected.high))
            assert (m.detail["p"], m.detail["df"], m.detail["se"]) == pytest.approx(
                (expected.p, expected.df, expected.se)
            )
            assert (m.n, m.n_of, m.state) == (3, "judge families", "ok")
        assert len(named(found, "judges.contrast", dimension=name)) == 6


def test_judges_of_one_family_count_as_one_in_the_sample(make, study):
    decisions, judgments = make()
    twins = [dataclasses.replace(j, judge="twin", call_key=f"{j.call_key}t") for j in judgments if j.judge == "reader"]
    plan = study(judges={"auditor": "north", "reader": "south", "skeptic": "east", "twin": "south"})
    _, one = run((decisions, judgments), study())
    _, both = run((decisions, [*judgments, *twins]), plan)
    for m in named(both, "judges.contrast", dimension="risk"):
        assert m.n == 3
        other = next(o for o in named(one, "judges.contrast", dimension="risk") if pair_of(o)[:2] == pair_of(m)[:2])
        assert abs(m.value) == pytest.approx(abs(other.value))
        assert m.detail["p"] == pytest.approx(other.detail["p"])


def test_dimensions_that_judges_tell_apart(biased, make, study):
    table, found = biased
    expected = discriminant(table.scores, table.cluster)
    for name, one in zip(NAMES[1:], expected.dimensions, strict=True):
        m = get(found, "dimension.distinct", dimension=name)
        assert (m.value, m.low, m.high) == pytest.approx((one.phi, one.low, one.high))
        assert (m.detail["p"], m.detail["p_holm"]) == pytest.approx((one.p, one.p_holm))
        assert (m.n, m.n_of, m.detail["distinct"]) == (table.n, "records", 0.95)
    decisions, judgments = make()
    copied = [dataclasses.replace(j, scores=dict.fromkeys(j.scores, j.scores["risk"])) for j in judgments]
    _, found = run((decisions, copied), study())
    for name in NAMES[1:]:
        m = get(found, "dimension.distinct", dimension=name)
        assert m.value == pytest.approx(1.0)
        assert m.detail["p_holm"] > 0.05
    _, found = run((decisions, judgments), study("claims = {distinct = 0.2}"))
    assert {m.detail["distinct"] for m in named(found, "dimension.distinct")} == {0.2}
    assert min(m.detail["p_holm"] for m in named(found, "dimension.distinct")) > 0.9


def test_dimensions_of_which_nothing_can_be_said(make, study):
    decisions, judgments = make(clusters=2)
    _, found = run((decisions, judgments), study())
    assert {m.state.partition(":")[0] for m in named(found, "dimension.distinct")} == {"not measurable"}
    flat = [dataclasses.replace(j, scores={**j.scores, "risk": 3.0}) for j in make()[1]]
    _, found = run((make()[0], flat), study())
    m = get(found, "dimension.distinct", dimension="risk")
    assert (m.value, m.state, m.detail["p"]) == (None, "undefined: judges share nothing on it", 1.0)
    one = [dataclasses.replace(j, scores={"risk": j.scores["risk"]}) for j in make()[1]]
    assert not named(run((make()[0], one), study())[1], "dimension.distinct"), "one dimension has nothing beside it"
    parted = [j for j in make()[1] if (j.judge == "auditor") == (j.trajectory < "birch.0025")]
    _, found = run((make()[0], parted), study())
    assert {m.state for m in named(found, "dimension.distinct")} == {
        "not measurable: no record has a grade from every judge on every dimension"
    }


def test_other_measurements_leave_out_blocks_of_neighbours(make, study):
    records = make(effects=(0.5, 0.1, 0.0, 0.0), clusters=14, cycles=3, families=OWN)
    lengths = {d.record_id: 40 + 13 * (k % 17) for k, d in enumerate(records[0])}
    table, found = run(records, study(CONSECUTIVE), lengths)
    own = np.array([[OWN.get(a) == f for a in AGENTS] for f in table.families])
    cluster, doublings = cluster_of(table), by_cycle(table, np.log2(table.lengths))
    for column, name in enumerate(NAMES):
        means, scores = cell_means(table, column), by_cycle(table, values_of(table, column)).transpose(0, 2, 1)
        recused = recusal_p(means, own, consecutive=True)
        serial = length_p(scores, doublings, cluster, own, consecutive=True)
        for m in named(found, "recusal.contrast", dimension=name):
            assert m.detail["p"] == pytest.approx(recused[pair_of(m)[:2]].p)
        for m in named(found, "length.contrast", dimension=name):
            assert m.detail["p"] == pytest.approx(serial[pair_of(m)[:2]].p)
        for m in named(found, "judges.contrast", dimension=name):
            first, second, _ = pair_of(m)
            expected = random_judges((means[:, :, first] - means[:, :, second]).T, consecutive=True)
            assert m.detail["p"] == pytest.approx(expected.p)
        expected = own_family(means, own, consecutive=True)
        for judge, one in zip(("auditor", "reader"), expected.by_judge, strict=True):
            assert get(found, "judge.own_family", dimension=name, judge=judge).detail["p"] == pytest.approx(one.p)
        if column:
            one = discriminant(table.scores, table.cluster, consecutive=True).dimensions[column - 1]
            assert get(found, "dimension.distinct", dimension=name).detail["p"] == pytest.approx(one.p)
            for m in named(found, "contrast", dimension=name):
                first, second, turn = pair_of(m)
                levels = np.stack([cell_means(table, k).mean(axis=1) for k in (1, 2, 3)], axis=1)
                delta = turn * (levels[:, :, first] - levels[:, :, second])
                specific = specific_contrast(delta, np.arange(14), column - 1, consecutive=True)
                assert m.detail["p_specific"] == pytest.approx(specific.p_up)


def test_other_names_turn_pairs_round_and_change_no_number(biased, make, study):
    """Agents in another order of the alphabet: the same gaps, tests and words."""
    renamed = {"ash": "w", "birch": "v", "cedar": "z", "elm": "x"}
    decisions, judgments = make(effects=(0.5, 0.2, 0.1, 0.0), clusters=8, cycles=6, attend=0.9, families=OWN)
    rng = np.random.default_rng(5)
    lengths = {d.record_id: int(rng.integers(40, 400)) * (2 if d.agent.id == "ash" else 1) for d in decisions}
    other = [dataclasses.replace(d, agent=dataclasses.replace(d.agent, id=renamed[d.agent.id])) for d in decisions]
    table = score_table(judgments, other, lengths=lengths)
    found = {m.id: m for m in analyse(table, study(), rng=np.random.default_rng(1))}
    for m in biased[1].values():
        if m.name.endswith("contrast"):
            same = get(found, m.name, **{key: renamed.get(value, value) for key, value in m.labels.items()})
            assert (same.state, same.n) == (m.state, m.n)
            assert (same.value, same.low, same.high) == pytest.approx((m.value, m.low, m.high), abs=1e-9)
            for key, value in m.detail.items():
                if isinstance(value, float) and not math.isnan(value):
                    assert same.detail[key] == pytest.approx(value, abs=1e-9), (m.id, key)
