"""Each judge alone: its levels, rankings and discoveries, recomputed from a table that holds that judge only."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from assaymark.metrology import agent_effects, analyse, cluster_t, holm, score_table

NAMES = ("aggregate", "clarity", "evidence", "risk")
AGENTS = ("ash", "birch", "cedar", "elm")


def run(records, plan, seed=1):
    table = score_table(records[1], records[0])
    found = analyse(table, plan, rng=np.random.default_rng(seed))
    return table, {m.id: m for m in found}


def get(found, name, **labels):
    inner = ",".join(f"{key}={labels[key]}" for key in sorted(labels))
    return found[f"{name}[{inner}]"]


def with_halo(make, **parts):
    """A study in which one judge favours one agent by a point."""
    decisions, judgments = make(effects=(0.5, 0.2, 0.1, 0.0), **parts)
    tilted = [
        dataclasses.replace(j, scores={d: min(5.0, s + 1) for d, s in j.scores.items()})
        if j.judge == "skeptic" and j.trajectory.startswith("elm")
        else j
        for j in judgments
    ]
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


def test_rankings_of_two_judges_are_compared(halo):
    table, found = halo
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
    turned = [
        dataclasses.replace(j, scores={d: 6 - s for d, s in j.scores.items()}) if j.judge == "skeptic" else j
        for j in judgments
    ]
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


def test_renaming_judges_and_agents_renames_the_results(make, study):
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


def test_one_judge_is_its_own_panel(make, study):
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
        judgments = [
            dataclasses.replace(j, status="refused", scores={}) if j.judge == "reader" else j for j in judgments
        ]
    if which == "tied":
        judgments = [dataclasses.replace(j, scores=dict.fromkeys(j.scores, 3.0)) for j in judgments]
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
