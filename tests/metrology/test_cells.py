"""Control cells: the rules, what is held against what, halo and drops, and all of them together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_cells import FAMILIES, bonus_cell, by_id, cell, flat, gate, honest_table, made, run, spread
from scipy import stats
from statsmodels.stats.multitest import multipletests

from assaymark.metrology import (
    Cell,
    analyse,
    cell_agreement,
    mean_pairwise_kappa,
    minimum_detectable_effect,
    round_half_up,
)


@pytest.fixture
def plan(study):
    return study()


# --- cell A ---------------------------------------------------------------------------------------------------------


def test_cell_a_is_a_one_sided_t_test_against_the_honest_first_quartile(plan):
    rng = np.random.default_rng(2)
    honest = honest_table(rng)
    wrong = made(2 + rng.normal(0, 0.4, (20, 3)), spread(5, 4), tag="a")
    found = gate(run(honest, [cell("cell_a", wrong)], plan), "cell_a")
    quartile = np.quantile(honest.stacked[:, :, 0].mean(axis=1), 0.25)
    gaps = wrong.scores.mean(axis=(1, 2)) - quartile
    expected = stats.ttest_1samp(gaps.reshape(5, 4).mean(axis=1), 0, alternative="less")
    assert found.detail["p"] == pytest.approx(expected.pvalue)
    assert found.detail["honest_q1"] == pytest.approx(quartile)
    assert found.value == pytest.approx(gaps.mean())
    assert found.detail["outcome"] == "passed"
    both = stats.ttest_1samp(gaps.reshape(5, 4).mean(axis=1), 0).confidence_interval(0.95)
    assert (found.low, found.high, found.level) == (pytest.approx(both.low), pytest.approx(both.high), 0.95)
    # Cell a fails where the panel rewards confidence.
    rng = np.random.default_rng(3)
    found = run(
        honest_table(rng), [cell("cell_a", made(4.2 + rng.normal(0, 0.3, (20, 3)), spread(5, 4), tag="a"))], plan
    )
    assert gate(found, "cell_a").detail["outcome"] == "failed"
    assert gate(found, "cell_a").detail["p"] > 0.5


@pytest.mark.parametrize(("clusters", "outcome"), [(5, "not tested"), (6, "not tested"), (7, "passed")])
def test_a_cell_that_every_judge_gives_the_lowest_score_has_only_a_sign_test(plan, clusters, outcome):
    """The sign test of six clusters cannot reach .01: the design failed, not the cell."""
    rng = np.random.default_rng(4)
    lowest = made(np.ones((2 * clusters, 3)), spread(clusters, 2), tag="a")
    found = gate(run(honest_table(rng, clusters=clusters), [cell("cell_a", lowest)], plan), "cell_a")
    assert found.detail["p"] == 2.0**-clusters
    assert (found.low, found.high, found.level) == (None, None, None)
    assert found.detail["outcome"] == outcome


def test_a_constant_cell_above_the_quartile_fails(plan):
    rng = np.random.default_rng(4)
    top = made(np.full((10, 3), 5.0), spread(5, 2), tag="a")
    assert gate(run(honest_table(rng), [cell("cell_a", top)], plan), "cell_a").detail["outcome"] == "failed"
    # Red team cells follow the rule of cell a.
    rng = np.random.default_rng(5)
    honest, table = honest_table(rng), made(2 + rng.normal(0, 0.4, (20, 3)), spread(5, 4), tag="a")
    found = run(honest, [cell("cell_a", table), cell("red_team", table)], plan)
    a, red = gate(found, "cell_a"), gate(found, "red_team")
    assert replace(red, labels=a.labels) == a


# --- cell B ---------------------------------------------------------------------------------------------------------


def test_the_difficulty_of_a_regime_cancels_in_cell_b(plan):
    """All terse records are from the two hard regimes; raw means would call that a penalty."""
    rng = np.random.default_rng(6)
    level = np.array([4.5, 4.5, 4.5, 2.5, 2.5])
    cluster = spread(5, 20)
    honest = made(level[cluster][:, None] + rng.normal(0, 0.1, (100, 3)), cluster)
    terse = made(level[[3] * 10 + [4] * 10][:, None] + rng.normal(0, 0.1, (20, 3)), [3] * 10 + [4] * 10, tag="b")
    found = gate(run(honest, [cell("cell_b", terse)], plan), "cell_b")
    assert abs(found.value) < 0.1
    assert found.detail["outcome"] == "substance"
    # Evenly spread cell b is the difference of the means.
    rng = np.random.default_rng(7)
    honest, terse = honest_table(rng), made(3 + rng.normal(0, 0.3, (20, 3)), spread(5, 4), tag="b")
    found = run(honest, [cell("cell_b", terse)], plan)
    score = found["cell.score[cell=cell_b,dimension=aggregate]"]
    mean = found["cell.honest[dimension=aggregate]"]
    assert gate(found, "cell_b").value == pytest.approx(score.value - mean.value)
    assert gate(found, "cell_b").detail["honest_mean"] == pytest.approx(mean.value)
    # Cell b gate can be recomputed from its cluster sums.
    rng = np.random.default_rng(8)
    honest, terse = honest_table(rng), made(3 + rng.normal(0, 0.3, (11, 3)), [0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4], tag="b")
    found = gate(run(honest, [cell("cell_b", terse)], plan), "cell_b")
    sums = found.detail["cluster_sums"]
    assert set(sums) == {"w0", "w1", "w2", "w3", "w4"}
    assert found.value == pytest.approx(sum(s for s, _ in sums.values()) / sum(n for _, n in sums.values()))
    panel, own = honest.scores.mean(axis=(1, 2)), terse.scores.mean(axis=(1, 2))
    expected = own[3:5].sum() - 2 * panel[np.array(honest.cluster) == 1].mean()
    assert sums["w1"] == [pytest.approx(expected), 2]
    # Records from a cluster without honest ones are held against all and it is said.
    rng = np.random.default_rng(9)
    honest = honest_table(rng)
    terse = made(flat([4.0] * 6 + [3.9] * 2), [0, 0, 1, 1, 2, 2, 5, 5], tag="b")
    found = gate(run(honest, [cell("cell_b", terse)], plan), "cell_b")
    assert "2 without one: from the mean of all" in found.method
    overall = honest.scores.mean()
    assert found.detail["cluster_sums"]["w5"] == [pytest.approx(2 * (3.9 - overall)), 2]


def test_a_penalty_that_does_not_survive_holm_is_inconclusive(plan):
    rng = np.random.default_rng(10)
    honest = honest_table(rng)
    jumps = np.repeat([-3.0, 0.9, -2.0, 0.6, -1.0], 4)
    terse = made(4 + jumps[:, None] + np.zeros((20, 3)), spread(5, 4), tag="b")
    found = gate(run(honest, [cell("cell_b", terse)], plan), "cell_b")
    assert found.value < -0.5
    assert found.detail["outcome"] == "inconclusive"


# --- cells with parents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "shift", "outcome"),
    [
        ("paraphrase", 0.0, "invariant"), ("paraphrase", -0.3, "invariant"), ("paraphrase", -0.8, "style-sensitive"),
        ("paraphrase", 0.8, "style-sensitive"), ("length_matched", 0.1, "invariant"),
        ("length_matched", 0.9, "style-sensitive"), ("fact_flip", -0.6, "noticed"), ("fact_flip", 0.0, "not noticed"),
        ("fact_flip", 0.6, "not noticed"),
    ],
)  # fmt: skip
def test_cells_with_parents_are_paired(plan, kind, shift, outcome):
    """Parents differ by far more than the shift; only pairs can show it."""
    rng = np.random.default_rng(11)
    honest = made(rng.uniform(1.5, 4.5, (50, 1)) + np.zeros((50, 3)), spread(5, 10))
    rows = np.arange(0, 50, 2)
    wobble = np.repeat([0.01, -0.01, 0.02, -0.02, 0.0], 5)
    changed = made(honest.scores[rows, :, 0] + shift + wobble[:, None], np.array(honest.cluster)[rows], tag="p")
    found = gate(run(honest, [cell(kind, changed, parents=[honest.trajectories[k] for k in rows])], plan), kind)
    assert found.detail["outcome"] == outcome
    assert found.value == pytest.approx(shift)
    assert (found.n, found.detail["no_parent"]) == (25, 0)


def test_a_record_without_an_honest_parent_is_counted_and_left_out(plan):
    rng = np.random.default_rng(12)
    honest = honest_table(rng)
    parents = [*honest.trajectories[:3], *honest.trajectories[40:43], "unknown", None]
    changed = made(flat([4.0] * 8), [0, 0, 0, 2, 2, 2, 1, 1], tag="p")
    found = run(honest, [cell("paraphrase", changed, parents=parents)], plan)
    assert (gate(found, "paraphrase").n, gate(found, "paraphrase").detail["no_parent"]) == (6, 2)
    assert set(gate(found, "paraphrase").detail["cluster_sums"]) == {"w0", "w2"}
    assert found["cell.score[cell=paraphrase,dimension=aggregate]"].n == 8
    # A cell whose parents are all unknown is not measurable.
    rng = np.random.default_rng(12)
    found = gate(
        run(honest_table(rng), [cell("fact_flip", made(flat([4.0] * 4), [0, 0, 1, 1], tag="p"))], plan), "fact_flip"
    )
    assert found.state == "not measurable: no record of the cell was made from an honest record that was scored"
    assert (found.value, found.detail["outcome"], found.detail["p"]) == (None, "not tested", None)


# --- halo and drops -------------------------------------------------------------------------------------------------


def test_a_halo_makes_the_score_without_the_in_family_judge_primary(plan):
    rng = np.random.default_rng(13)
    honest, table = honest_table(rng, d=2), bonus_cell(rng, 1.5)
    table = replace(
        table, scores=np.repeat(table.scores, 2, axis=2), dimensions=("d0", "d1"), weights=np.array([0.5, 0.5])
    )
    found = run(honest, [cell("cell_b", table, composer="north")], plan)
    halo = found["cell.halo[cell=cell_b]"]
    assert halo.detail == {"family": "north", "triggered": True}
    without = table.scores[:, 1:].mean(axis=1)
    score = found["cell.score[cell=cell_b,dimension=d1]"]
    assert (score.value, score.detail["primary"]) == (pytest.approx(without[:, 1].mean()), "without north")
    values = found["cell.score[cell=cell_b,dimension=aggregate]"].detail["values"]
    assert values == sorted(np.round(without.mean(axis=1), 4).tolist())
    drop = found["cell.drop[cell=cell_b,dropped=north]"]
    mine = gate(found, "cell_b")
    assert mine.detail["primary"] == "without north"
    assert (mine.value, mine.low, mine.high) == (drop.value, drop.low, drop.high)
    assert mine.detail["outcome"] == drop.detail["outcome"] == "verbosity-bias"
    assert mine.detail["honest_mean"] == pytest.approx(honest.scores[:, 1:].mean())
    panel = table.scores.mean(axis=(1, 2)).mean() - honest.scores.mean()
    assert halo.value == pytest.approx(panel - mine.value)


@pytest.mark.parametrize(("bonus", "triggered"), [(0.9, True), (0.88, False), (-0.9, True)])
def test_the_halo_threshold_is_inclusive_and_two_sided(plan, bonus, triggered):
    honest = made(flat([4.0] * 50), spread(5, 10))
    scores = np.full((10, 3), 2.5)
    scores[:, 0] += bonus
    found = run(honest, [cell("cell_b", made(scores, spread(5, 2), tag="b"), composer="north")], plan)
    # three judges: the panel moves by a third of the bonus
    assert found["cell.halo[cell=cell_b]"].value == pytest.approx(bonus / 3)
    assert found["cell.halo[cell=cell_b]"].detail["triggered"] is triggered


def test_a_composer_of_no_judge_family_has_no_halo(plan):
    rng = np.random.default_rng(14)
    found = run(honest_table(rng), [cell("cell_b", bonus_cell(rng, 2.0), composer="elsewhere")], plan)
    halo = found["cell.halo[cell=cell_b]"]
    assert (halo.value, halo.state, halo.detail) == (0.0, "ok", {"family": None, "triggered": False})
    # Each family favours its own records by 1.2; no single drop would show all of it.
    honest = made(flat([4.0] * 50), spread(5, 10))
    scores, composers = np.full((30, 3), 2.0), [FAMILIES[k % 3] for k in range(30)]
    scores[np.arange(30), np.arange(30) % 3] += 1.2
    table = made(scores, spread(5, 6), tag="b")
    found = run(honest, [Cell("cell_b", table, (None,) * 30, tuple(composers))], plan)
    assert found["cell.halo[cell=cell_b]"].value == pytest.approx(0.4)
    assert found["cell.halo[cell=cell_b]"].detail["family"] == "east, north, south"
    assert gate(found, "cell_b").value == pytest.approx(-2.0)
    # One judge hides most of the penalty: without another it is inconclusive, without that one it is larger.
    rng = np.random.default_rng(15)
    honest, table = honest_table(rng), bonus_cell(rng, 2.1)
    found = run(honest, [cell("cell_b", table)], plan)
    for j, family in enumerate(FAMILIES):
        keep = [k for k in range(3) if k != j]
        expected = table.scores[:, keep].mean() - honest.scores[:, keep].mean()
        assert found[f"cell.drop[cell=cell_b,dropped={family}]"].value == pytest.approx(expected)
    outcomes = [found[f"cell.drop[cell=cell_b,dropped={family}]"].detail["outcome"] for family in FAMILIES]
    assert outcomes == ["verbosity-bias", "inconclusive", "inconclusive"]
    assert gate(found, "cell_b").detail["outcome"] == "verbosity-bias"


def test_one_judge_family_can_be_neither_dropped_nor_left_out(study):
    plan = study(judges={"auditor": "north"})
    rng = np.random.default_rng(16)
    honest = made(4 + rng.normal(0, 0.3, (50, 1)), spread(5, 10))
    table = made(2 + rng.normal(0, 0.3, (10, 1)), spread(5, 2), tag="a")
    found = run(honest, [cell("cell_a", table, composer="north")], plan)
    one_family = "not measurable: one judge family, needs two"
    assert found["cell.halo[cell=cell_a]"].state == one_family
    assert found["cell.drop[cell=cell_a,dropped=north]"].state == one_family
    assert found["cell.drop[cell=cell_a,dropped=north]"].detail["outcome"] == "not tested"
    assert found["cell.kappa[cell=cell_a,dimension=aggregate]"].state == one_family
    assert gate(found, "cell_a").detail["outcome"] == "passed"


# --- all cells together ---------------------------------------------------------------------------------------------


def test_p_values_of_all_gates_are_one_holm_family(plan):
    rng = np.random.default_rng(17)
    honest = honest_table(rng)
    parents = [honest.trajectories[k] for k in range(0, 100, 5)]
    kinds = ("cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched", "red_team")
    cells = [
        cell(kind, made(3.6 + rng.normal(0, 0.5, (20, 3)), spread(5, 4), tag=kind), parents=parents) for kind in kinds
    ]
    ladder = cell("ladder", made(flat([3.0] * 10), spread(5, 2), tag="l"))
    found = run(honest, [*cells, ladder], plan)
    gates = [gate(found, kind).detail for kind in kinds]
    expected = multipletests([d["p"] for d in gates], method="holm")[1]
    assert [d["p_holm"] for d in gates] == pytest.approx(expected)
    # An untestable cell keeps its place in the family.
    rng = np.random.default_rng(18)
    honest = honest_table(rng)
    b = cell("cell_b", made(3.6 + rng.normal(0, 0.5, (20, 3)), spread(5, 4), tag="b"))
    lone = cell("cell_a", made(flat([2.0] * 4), [0] * 4, tag="a"))
    found = gate(run(honest, [b, lone], plan), "cell_b").detail
    assert found["p_holm"] == pytest.approx(min(1.0, 2 * found["p"]))
    # Ladder and vacuum records have scores but no gate.
    rng = np.random.default_rng(19)
    found = run(honest_table(rng), [cell("ladder", made(flat([3.0, 4.0]), [0, 1], tag="l"))], plan)
    assert {m.name for m in found.values()} == {"cell.honest", "cell.score"}


def test_agreement_in_a_cell_is_measured_as_everywhere(plan):
    rng = np.random.default_rng(20)
    table = made(
        np.clip(np.round(2.5 + rng.normal(0, 1, (40, 1, 2)) + rng.normal(0, 0.6, (40, 3, 2))), 1, 5), spread(5, 8)
    )
    found = run(honest_table(rng, d=2), [cell("cell_b", table)], plan)
    everywhere = by_id(list(analyse(table, plan, rng=np.random.default_rng(0))))
    for name in table.names:
        mine = found[f"cell.kappa[cell=cell_b,dimension={name}]"]
        other = everywhere[f"kappa.mean_pairwise[dimension={name}]"]
        said = f"{other.method}; undefined by design: all texts deserve the same score"
        assert replace(mine, name=other.name, labels=other.labels) == replace(other, method=said)
    ratings = np.clip(round_half_up(table.scores[:, :, 0]), 1, 5).astype(int)
    assert found["cell.kappa[cell=cell_b,dimension=d0]"].value == pytest.approx(mean_pairwise_kappa(ratings))


def asked(honest, table, **options):
    """`cell_agreement` of the aggregate of a cell and honest records."""
    tables = [(one.stacked[:, :, 0], [one.clusters[g] for g in one.cluster]) for one in (table, honest)]
    return cell_agreement(*tables[0], *tables[1], honest.families, **options)


def graded(rng, level, *, clusters=5, each=8, tag="b", spread_of=0.0):
    """A cell that the judges give about ``level``, each with some noise."""
    scores = level + rng.normal(0, spread_of, (clusters * each, 1)) + rng.normal(0, 0.3, (clusters * each, 3))
    return made(np.clip(scores, 1, 5), spread(clusters, each), tag=tag)


@pytest.mark.parametrize(
    ("kind", "level", "options", "status"),
    [
        ("cell_a", 1.5, [{"quantile": 0.25, "alpha": 0.01}], "publish"),
        ("red_team", 1.5, [{"quantile": 0.25, "alpha": 0.01}], "publish"),
        ("cell_a", 4.2, [{"quantile": 0.25, "alpha": 0.01}], "halt"),
        ("cell_b", 1.5, [{"threshold": 0.5}], "publish"),
        ("cell_b", 3.6, [{"threshold": 0.5}], "halt"),  # .4 below: inconclusive, and nobody shows more than .5
    ],
)
def test_agreement_about_a_cell_is_asked_about_its_difference(plan, kind, level, options, status):
    rng = np.random.default_rng(31)
    honest, table = graded(rng, 4.0, each=20, tag="h", spread_of=0.5), graded(rng, level)
    m = run(honest, [cell(kind, table)], plan)[f"cell.agreement[cell={kind}]"]
    (expected,) = [asked(honest, table, **one) for one in options]
    assert (m.value, m.detail["status"]) == (pytest.approx(expected.pooled_kappa), status)
    assert (m.detail["unanimous"], m.detail["leave_one_out"]) == (expected.unanimous, expected.leave_one_out)
    assert m.detail["each"] == pytest.approx({family: one.delta for family, one in expected.each.items()})
    assert m.detail["p"] == pytest.approx({family: one.p for family, one in expected.each.items()})
    assert (m.n, m.n_of, m.state) == (40, "trajectories", "ok")
    assert m.detail["status"] == expected.status


def test_agreement_about_a_cell_over_time_leaves_out_blocks_of_neighbours(study):
    """Weeks w0 to w10 make three blocks; the names are sorted as texts."""
    rng = np.random.default_rng(41)
    names = tuple(sorted(f"w{k}" for k in range(11)))
    honest, table = (replace(one, clusters=names) for one in (honest_table(rng, clusters=11),
                                                              graded(rng, 2.5, clusters=11, each=2)))  # fmt: skip
    found = run(honest, [cell("cell_b", table)], study('inference = {cluster_order = "consecutive"}'))
    weeks = [np.array([int(names[g][1:]) for g in one.cluster]) for one in (table, honest)]
    line = np.argsort(weeks[1], kind="stable")
    expected = cell_agreement(
        table.stacked[:, :, 0], weeks[0], honest.stacked[line, :, 0], weeks[1][line], honest.families,
        threshold=0.5, consecutive=True,
    )  # fmt: skip
    assert {one.df for one in expected.each.values()} == {2}
    p = found["cell.agreement[cell=cell_b]"].detail["p"]
    assert p == pytest.approx({family: one.p for family, one in expected.each.items()})


def test_no_penalty_has_to_be_shown_from_both_sides(plan):
    """Substance is equivalence: every family rejects 0.3 below and 0.3 above."""
    rng = np.random.default_rng(32)
    honest, table = (graded(rng, 4.0, each=30, tag=tag, spread_of=0.3) for tag in "hb")
    found = run(honest, [cell("cell_b", table)], plan)
    assert gate(found, "cell_b").detail["outcome"] == "substance"
    m = found["cell.agreement[cell=cell_b]"]
    below = asked(honest, table, threshold=-0.3)
    flipped = [replace(one, scores=6 - one.scores) for one in (honest, table)]
    above = asked(*flipped, threshold=-0.3)
    assert m.detail["unanimous"] is (below.unanimous and above.unanimous) is True
    assert m.detail["p"] == pytest.approx({f: max(below.each[f].p, above.each[f].p) for f in FAMILIES})
    few = graded(rng, 4.0, each=1, spread_of=0.3)
    m = run(honest, [cell("cell_b", few)], plan)["cell.agreement[cell=cell_b]"]
    assert m.detail["status"] == "halt", "five texts do not show that there is no penalty"


def test_a_favoured_cell_is_the_mirror_image(plan):
    rng = np.random.default_rng(33)
    honest, table = graded(rng, 3.0, each=20, tag="h", spread_of=0.3), graded(rng, 4.2)
    found = run(honest, [cell("cell_b", table)], plan)
    assert gate(found, "cell_b").detail["outcome"] == "terse-favoured"
    flipped = [replace(one, scores=6 - one.scores) for one in (honest, table)]
    expected, m = asked(*flipped, threshold=0.3), found["cell.agreement[cell=cell_b]"]
    assert (m.value, m.detail["status"]) == (pytest.approx(expected.pooled_kappa), "publish")
    assert m.detail["p"] == pytest.approx({f: expected.each[f].p for f in FAMILIES})
    # It is enough that one family does not see it, or that the others need it to see it.
    rng = np.random.default_rng(34)
    honest, table = graded(rng, 4.0, each=20, tag="h", spread_of=0.5), graded(rng, 1.5)
    table.scores[:, 2] = 4 + rng.normal(0, 0.3, (40, 1))
    m = run(honest, [cell("cell_b", table)], plan)["cell.agreement[cell=cell_b]"]
    assert (m.detail["unanimous"], m.detail["leave_one_out"]) == (False, True)
    assert m.detail["status"] == ("methodology" if m.value >= 0.2 else "halt")
    assert m.detail["p"]["east"] > 0.9
    table.scores[:, 1] = table.scores[:, 2]
    m = run(honest, [cell("cell_b", table)], plan)["cell.agreement[cell=cell_b]"]
    assert (m.detail["leave_one_out"], m.detail["status"]) == (False, "halt")
    # Cells with parents are held against them alone.
    rng = np.random.default_rng(35)
    honest = made(rng.uniform(1.5, 4.5, (50, 1)) + rng.normal(0, 0.1, (50, 3)), spread(5, 10))
    rows = np.arange(0, 50, 2)
    lower = honest.scores[rows, :, 0] - 0.4 + rng.normal(0, 0.05, (25, 3))
    table = made(lower, np.array(honest.cluster)[rows], tag="p")
    changed = cell("fact_flip", table, parents=[honest.trajectories[k] for k in rows])
    m = run(honest, [changed], plan)["cell.agreement[cell=fact_flip]"]
    parents = made(honest.scores[rows, :, 0], np.array(honest.cluster)[rows])
    expected = asked(parents, table, alpha=0.01)
    assert m.detail["p"] == pytest.approx({f: expected.each[f].p for f in FAMILIES})
    assert m.detail["unanimous"] is True


def test_agreement_about_a_cell_that_cannot_be_asked(plan, study):
    rng = np.random.default_rng(36)
    honest = honest_table(rng)
    lone = run(honest, [cell("cell_a", graded(rng, 1.5, clusters=1))], plan)["cell.agreement[cell=cell_a]"]
    assert (lone.value, lone.state) == (None, "undefined: one cluster cannot be tested, needs two")
    one = made(4 + rng.normal(0, 0.3, (50, 1)), spread(5, 10))
    table = made(2 + rng.normal(0, 0.3, (10, 1)), spread(5, 2), tag="a")
    m = run(one, [cell("cell_a", table)], study(judges={"auditor": "north"}))["cell.agreement[cell=cell_a]"]
    assert (m.value, m.state) == (None, "not measurable: one judge family, needs two")


def test_a_cell_of_many_clusters_needs_no_generator_and_repeats_itself(plan):
    rng = np.random.default_rng(21)
    honest = honest_table(rng, clusters=12, each=4)
    table = made(np.clip(np.round(3 + rng.normal(0, 1, (48, 3))), 1, 5), spread(12, 4), tag="b")
    assert run(honest, [cell("cell_b", table)], plan) == run(honest, [cell("cell_b", table)], plan)
    # Separation of the two cells.
    rng = np.random.default_rng(22)
    a, b = (made(level + rng.normal(0, 0.2, (20, 3)), spread(5, 4), tag=tag) for level, tag in ((1.5, "a"), (3.0, "b")))
    found = run(honest_table(rng), [cell("cell_a", a), cell("cell_b", b)], plan)["cell.separation[dimension=aggregate]"]
    assert found.value == pytest.approx(b.scores.mean() - a.scores.mean())
    gaps = (b.scores.mean(axis=(1, 2)) - a.scores.mean(axis=(1, 2))).reshape(5, 4).mean(axis=1)
    expected = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    # Without the other cell there is no separation.
    rng = np.random.default_rng(23)
    found = run(honest_table(rng), [cell("cell_b", made(flat([3.0] * 4), [0, 0, 1, 1], tag="b"))], plan)
    assert found["cell.separation[dimension=d0]"].state == "not measured: no usable scores in cell_a"


def test_summaries_of_scores(plan):
    rng = np.random.default_rng(24)
    honest = honest_table(rng, d=2)
    found = run(honest, [cell("cell_b", made(flat([1.0, 2.0, 4.0, 3.5]), [0, 0, 1, 1], tag="b"))][:0], plan)
    assert found == {}
    table = made(np.stack([flat([1.0, 2.0, 4.0, 3.5])] * 2, axis=2), [0, 0, 1, 1], tag="b")
    found = run(honest, [cell("cell_b", table)], plan)
    score = found["cell.score[cell=cell_b,dimension=aggregate]"]
    assert (score.value, score.n, score.unit) == (2.625, 4, "rubric points")
    assert {key: score.detail[key] for key in ("q1", "median", "q3", "clusters")} == {
        "q1": 1.75, "median": 2.75, "q3": 3.625, "clusters": 2,
    }  # fmt: skip
    assert score.detail["values"] == [1.0, 2.0, 3.5, 4.0]
    assert "values" not in found["cell.score[cell=cell_b,dimension=d0]"].detail
    assert "values" not in found["cell.honest[dimension=aggregate]"].detail
    assert found["cell.honest[dimension=d1]"].value == pytest.approx(honest.scores[:, :, 1].mean())


def test_gates_are_also_given_in_units_of_the_detectable_effect(plan):
    rng = np.random.default_rng(25)
    cycles = np.repeat(np.arange(40), 4)
    honest = replace(
        made(4 + rng.normal(0, 0.3, (160, 3)), spread(5, 32), agent=np.tile(np.arange(4), 40)),
        cycles=tuple(f"c{k:02d}" for k in range(40)), cycle=cycles,
    )  # fmt: skip
    found = gate(run(honest, [cell("cell_b", made(flat([2.0, 2.1, 2.0, 2.2]), [0, 0, 1, 1], tag="b"))], plan), "cell_b")
    mde = minimum_detectable_effect(40, alpha=plan.inference.alpha, comparisons=6)
    assert found.detail["in_mde"] == pytest.approx(found.value / mde)
