"""Control cells: the rules, what is held against what, halo and drops, and all of them together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_cells import FAMILIES, bonus_cell, by_id, cell, flat, gate, honest_table, made, run, spread
from scipy import stats
from statsmodels.stats.multitest import multipletests

from assaymark import metrology as mt


def around(rng, level, *, sd=0.3, clusters=5, each=4, tag="b", judges=3):
    """A cell that all judges score near a level."""
    return made(level + rng.normal(0, sd, (clusters * each, judges)), spread(clusters, each), tag=tag)


def verdict_of(honest, kind, table, plan, **more):
    return gate(run(honest, [cell(kind, table, **more)], plan), kind)


def ends(m):
    return m.value, m.low, m.high


def test_cell_a_is_a_one_sided_t_test_against_the_honest_first_quartile(plan):
    rng = np.random.default_rng(2)
    honest = honest_table(rng)
    wrong = around(rng, 2, sd=0.4, tag="a")
    found = verdict_of(honest, "cell_a", wrong, plan)
    quartile = np.quantile(honest.stacked[:, :, 0].mean(axis=1), 0.25)
    gaps = wrong.scores.mean(axis=(1, 2)) - quartile
    means = gaps.reshape(5, 4).mean(axis=1)
    expected = stats.ttest_1samp(means, 0, alternative="less")
    assert (found.detail["p"], found.detail["honest_q1"]) == (pytest.approx(expected.pvalue), pytest.approx(quartile))
    assert (found.detail["outcome"], found.level) == ("passed", 0.95)
    assert ends(found) == pytest.approx((gaps.mean(), *stats.ttest_1samp(means, 0).confidence_interval(0.95)))
    # Red team cells follow the rule of cell a.
    assert replace(verdict_of(honest, "red_team", wrong, plan), labels=found.labels) == found
    # Cell a fails where the panel rewards confidence, and where it is constant above the quartile.
    rng = np.random.default_rng(3)
    honest = honest_table(rng)
    for table in (around(rng, 4.2, tag="a"), made(np.full((10, 3), 5.0), spread(5, 2), tag="a")):
        found = verdict_of(honest, "cell_a", table, plan)
        assert (found.detail["outcome"], found.detail["p"] > 0.5) == ("failed", True)


@pytest.mark.parametrize(("clusters", "outcome"), [(5, "not tested"), (6, "not tested"), (7, "passed")])
def test_a_cell_that_every_judge_gives_the_lowest_score_has_only_a_sign_test(plan, clusters, outcome):
    """The sign test of six clusters cannot reach .01: the design failed, not the cell."""
    lowest, rng = made(np.ones((2 * clusters, 3)), spread(clusters, 2), tag="a"), np.random.default_rng(4)
    found = verdict_of(honest_table(rng, clusters=clusters), "cell_a", lowest, plan)
    assert (found.detail["p"], found.low, found.high, found.level) == (2.0**-clusters, None, None, None)
    assert found.detail["outcome"] == outcome


def test_the_difficulty_of_a_regime_cancels_in_cell_b(plan):
    """All terse records are from the two hard regimes; raw means would call that a penalty."""
    rng = np.random.default_rng(6)
    level = np.array([4.5, 4.5, 4.5, 2.5, 2.5])
    cluster = spread(5, 20)
    honest = made(level[cluster][:, None] + rng.normal(0, 0.1, (100, 3)), cluster)
    terse = made(level[[3] * 10 + [4] * 10][:, None] + rng.normal(0, 0.1, (20, 3)), [3] * 10 + [4] * 10, tag="b")
    found = verdict_of(honest, "cell_b", terse, plan)
    assert abs(found.value) < 0.1
    assert found.detail["outcome"] == "substance"
    # Evenly spread cell b is the difference of the means.
    rng = np.random.default_rng(7)
    found = run(honest_table(rng), [cell("cell_b", around(rng, 3))], plan)
    score, mean = (
        found[name].value
        for name in ("cell.score[cell=cell_b,dimension=aggregate]", "cell.honest[dimension=aggregate]")
    )
    mine = gate(found, "cell_b")
    assert (mine.value, mine.detail["honest_mean"]) == pytest.approx((score - mean, mean))
    # Cell b gate can be recomputed from its cluster sums.
    rng = np.random.default_rng(8)
    honest, terse = honest_table(rng), made(3 + rng.normal(0, 0.3, (11, 3)), [0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4], tag="b")
    found = verdict_of(honest, "cell_b", terse, plan)
    sums = found.detail["cluster_sums"]
    assert set(sums) == {"w0", "w1", "w2", "w3", "w4"}
    assert found.value == pytest.approx(sum(s for s, _ in sums.values()) / sum(n for _, n in sums.values()))
    panel, own = honest.scores.mean(axis=(1, 2)), terse.scores.mean(axis=(1, 2))
    expected = own[3:5].sum() - 2 * panel[np.array(honest.cluster) == 1].mean()
    assert sums["w1"] == [pytest.approx(expected), 2]
    # Records from a cluster without honest ones are held against all and it is said.
    honest = honest_table(np.random.default_rng(9))
    terse = made(flat([4.0] * 6 + [3.9] * 2), [0, 0, 1, 1, 2, 2, 5, 5], tag="b")
    found = verdict_of(honest, "cell_b", terse, plan)
    assert "2 without one: from the mean of all" in found.method
    assert found.detail["cluster_sums"]["w5"] == [pytest.approx(2 * (3.9 - honest.scores.mean())), 2]
    # A penalty that does not survive Holm is inconclusive.
    honest = honest_table(np.random.default_rng(10))
    jumps = np.repeat([-3.0, 0.9, -2.0, 0.6, -1.0], 4)
    terse = made(4 + jumps[:, None] + np.zeros((20, 3)), spread(5, 4), tag="b")
    found = verdict_of(honest, "cell_b", terse, plan)
    assert (found.value < -0.5, found.detail["outcome"]) == (True, "inconclusive")


@pytest.mark.parametrize(("kind", "shift", "outcome"), [
    ("paraphrase", 0.0, "invariant"), ("paraphrase", -0.3, "invariant"), ("paraphrase", -0.8, "style-sensitive"),
    ("paraphrase", 0.8, "style-sensitive"), ("length_matched", 0.1, "invariant"),
    ("length_matched", 0.9, "style-sensitive"), ("fact_flip", -0.6, "noticed"), ("fact_flip", 0.0, "not noticed"),
    ("fact_flip", 0.6, "not noticed")
])  # fmt: skip
def test_cells_with_parents_are_paired(plan, kind, shift, outcome):
    """Parents differ by far more than the shift; only pairs can show it."""
    rng = np.random.default_rng(11)
    honest = made(rng.uniform(1.5, 4.5, (50, 1)) + np.zeros((50, 3)), spread(5, 10))
    rows = np.arange(0, 50, 2)
    wobble = np.repeat([0.01, -0.01, 0.02, -0.02, 0.0], 5)
    changed = made(honest.scores[rows, :, 0] + shift + wobble[:, None], np.array(honest.cluster)[rows], tag="p")
    found = verdict_of(honest, kind, changed, plan, parents=[honest.trajectories[k] for k in rows])
    assert (found.detail["outcome"], found.value) == (outcome, pytest.approx(shift))
    assert (found.n, found.detail["no_parent"]) == (25, 0)


def test_a_record_without_an_honest_parent_is_counted_and_left_out(plan):
    honest = honest_table(np.random.default_rng(12))
    parents = [*honest.trajectories[:3], *honest.trajectories[40:43], "unknown", None]
    changed = made(flat([4.0] * 8), [0, 0, 0, 2, 2, 2, 1, 1], tag="p")
    found = run(honest, [cell("paraphrase", changed, parents=parents)], plan)
    mine = gate(found, "paraphrase")
    assert (mine.n, mine.detail["no_parent"], set(mine.detail["cluster_sums"])) == (6, 2, {"w0", "w2"})
    assert found["cell.score[cell=paraphrase,dimension=aggregate]"].n == 8
    # A cell whose parents are all unknown is not measurable.
    found = verdict_of(honest, "fact_flip", made(flat([4.0] * 4), [0, 0, 1, 1], tag="p"), plan)
    assert found.state == "not measurable: no record of the cell was made from an honest record that was scored"
    assert (found.value, found.detail["outcome"], found.detail["p"]) == (None, "not tested", None)


def test_a_halo_makes_the_score_without_the_in_family_judge_primary(plan):
    rng = np.random.default_rng(13)
    honest, table = honest_table(rng, d=2), bonus_cell(rng, 1.5)
    twice = {"scores": np.repeat(table.scores, 2, axis=2), "dimensions": ("d0", "d1"), "weights": np.array([0.5, 0.5])}
    table = replace(table, **twice)
    found = run(honest, [cell("cell_b", table, composer="north")], plan)
    halo = found["cell.halo[cell=cell_b]"]
    assert halo.detail == {"family": "north", "triggered": True}
    without = table.scores[:, 1:].mean(axis=1)
    score = found["cell.score[cell=cell_b,dimension=d1]"]
    assert (score.value, score.detail["primary"]) == (pytest.approx(without[:, 1].mean()), "without north")
    values = found["cell.score[cell=cell_b,dimension=aggregate]"].detail["values"]
    assert values == sorted(np.round(without.mean(axis=1), 4).tolist())
    drop, mine = found["cell.drop[cell=cell_b,dropped=north]"], gate(found, "cell_b")
    assert (mine.detail["primary"], ends(mine)) == ("without north", ends(drop))
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
    found = run(honest, [mt.ControlCell("cell_b", table, (None,) * 30, tuple(composers))], plan)
    assert found["cell.halo[cell=cell_b]"].value == pytest.approx(0.4)
    assert found["cell.halo[cell=cell_b]"].detail["family"] == "east, north, south"
    assert gate(found, "cell_b").value == pytest.approx(-2.0)
    # One judge hides most of the penalty: without another it is inconclusive, without that one it is larger.
    rng = np.random.default_rng(15)
    honest, table = honest_table(rng), bonus_cell(rng, 2.1)
    found = run(honest, [cell("cell_b", table)], plan)
    for j, family in enumerate(FAMILIES):
        expected = np.delete(table.scores, j, axis=1).mean() - np.delete(honest.scores, j, axis=1).mean()
        assert found[f"cell.drop[cell=cell_b,dropped={family}]"].value == pytest.approx(expected)
    outcomes = [found[f"cell.drop[cell=cell_b,dropped={family}]"].detail["outcome"] for family in FAMILIES]
    assert outcomes == ["verbosity-bias", "inconclusive", "inconclusive"]
    assert gate(found, "cell_b").detail["outcome"] == "verbosity-bias"


def test_one_judge_family_can_be_neither_dropped_nor_left_out(study):
    rng, families = np.random.default_rng(16), {"auditor": "north"}
    honest, table = around(rng, 4, each=10, tag="h", judges=1), around(rng, 2, each=2, tag="a", judges=1)
    found = run(honest, [cell("cell_a", table, composer="north")], study(judges=families))
    names = (
        "halo[cell=cell_a]", "drop[cell=cell_a,dropped=north]", "kappa[cell=cell_a,dimension=aggregate]",
        "agreement[cell=cell_a]"
    )  # fmt: skip
    assert {found[f"cell.{name}"].state for name in names} == {"not measurable: one judge family, needs two"}
    assert found["cell.drop[cell=cell_a,dropped=north]"].detail["outcome"] == "not tested"
    assert gate(found, "cell_a").detail["outcome"] == "passed"


def test_p_values_of_all_gates_are_one_holm_family(plan):
    rng = np.random.default_rng(17)
    honest = honest_table(rng)
    parents = [honest.trajectories[k] for k in range(0, 100, 5)]
    kinds = ("cell_a", "cell_b", "paraphrase", "fact_flip", "length_matched", "red_team")
    cells = [cell(kind, around(rng, 3.6, sd=0.5, tag=kind), parents=parents) for kind in kinds]
    ladder = cell("ladder", made(flat([3.0] * 10), spread(5, 2), tag="l"))
    found = run(honest, [*cells, ladder], plan)
    gates = [gate(found, kind).detail for kind in kinds]
    expected = multipletests([d["p"] for d in gates], method="holm")[1]
    assert [d["p_holm"] for d in gates] == pytest.approx(expected)
    # An untestable cell keeps its place in the family.
    rng = np.random.default_rng(18)
    honest = honest_table(rng)
    b = cell("cell_b", around(rng, 3.6, sd=0.5))
    lone = cell("cell_a", made(flat([2.0] * 4), [0] * 4, tag="a"))
    found = gate(run(honest, [b, lone], plan), "cell_b").detail
    assert found["p_holm"] == pytest.approx(min(1.0, 2 * found["p"]))
    # Ladder and vacuum records have scores but no gate.
    found = run(honest, [cell("ladder", made(flat([3.0, 4.0]), [0, 1], tag="l"))], plan)
    assert {m.name for m in found.values()} == {"cell.honest", "cell.score"}


def test_agreement_in_a_cell_is_measured_as_everywhere(plan):
    rng = np.random.default_rng(20)
    noise = rng.normal(0, 1, (40, 1, 2)) + rng.normal(0, 0.6, (40, 3, 2))
    table = made(np.clip(np.round(2.5 + noise), 1, 5), spread(5, 8))
    found = run(honest_table(rng, d=2), [cell("cell_b", table)], plan)
    everywhere = by_id(list(mt.analyse(table, plan, rng=np.random.default_rng(0))))
    for name in table.names:
        mine = found[f"cell.kappa[cell=cell_b,dimension={name}]"]
        other = everywhere[f"kappa.mean_pairwise[dimension={name}]"]
        said = f"{other.method}; undefined by design: all texts deserve the same score"
        assert replace(mine, name=other.name, labels=other.labels) == replace(other, method=said)
    ratings = np.clip(mt.round_half_up(table.scores[:, :, 0]), 1, 5).astype(int)
    assert found["cell.kappa[cell=cell_b,dimension=d0]"].value == pytest.approx(mt.mean_pairwise_kappa(ratings))


def asked(honest, table, **options):
    """`cell_agreement` of the aggregate of a cell and honest records."""
    tables = [(one.stacked[:, :, 0], [one.clusters[g] for g in one.cluster]) for one in (table, honest)]
    return mt.cell_agreement(*tables[0], *tables[1], honest.families, **options)


def graded(rng, level, *, clusters=5, each=8, tag="b", spread_of=0.0):
    """A cell that the judges give about ``level``, each with some noise."""
    scores = level + rng.normal(0, spread_of, (clusters * each, 1)) + rng.normal(0, 0.3, (clusters * each, 3))
    return made(np.clip(scores, 1, 5), spread(clusters, each), tag=tag)


@pytest.mark.parametrize(("kind", "level", "options", "status"), [
    ("cell_a", 1.5, {"quantile": 0.25, "alpha": 0.01}, "publish"),
    ("red_team", 1.5, {"quantile": 0.25, "alpha": 0.01}, "publish"),
    ("cell_a", 4.2, {"quantile": 0.25, "alpha": 0.01}, "halt"), ("cell_b", 1.5, {"threshold": 0.5}, "publish"),
    ("cell_b", 3.6, {"threshold": 0.5}, "halt"),  # .4 below: inconclusive, and nobody shows more than .5
])  # fmt: skip
def test_agreement_about_a_cell_is_asked_about_its_difference(plan, kind, level, options, status):
    rng = np.random.default_rng(31)
    honest, table = graded(rng, 4.0, each=20, tag="h", spread_of=0.5), graded(rng, level)
    m = run(honest, [cell(kind, table)], plan)[f"cell.agreement[cell={kind}]"]
    expected = asked(honest, table, **options)
    assert (m.value, m.detail["status"], expected.status) == (pytest.approx(expected.pooled_kappa), status, status)
    assert (m.detail["unanimous"], m.detail["leave_one_out"]) == (expected.unanimous, expected.leave_one_out)
    for key, values in (("each", {f: one.delta for f, one in expected.each.items()}), ("p", p_of(expected))):
        assert m.detail[key] == pytest.approx(values)
    assert (m.n, m.n_of, m.state) == (40, "trajectories", "ok")


def p_of(agreement):
    return {family: one.p for family, one in agreement.each.items()}


def test_agreement_about_a_cell_over_time_leaves_out_blocks_of_neighbours(study):
    """Weeks w0 to w10 make three blocks; the names are sorted as texts."""
    rng = np.random.default_rng(41)
    names = tuple(sorted(f"w{k}" for k in range(11)))
    honest, table = honest_table(rng, clusters=11), graded(rng, 2.5, clusters=11, each=2)
    honest, table = replace(honest, clusters=names), replace(table, clusters=names)
    found = run(honest, [cell("cell_b", table)], study('inference = {cluster_order = "consecutive"}'))
    weeks = [np.array([int(names[g][1:]) for g in one.cluster]) for one in (table, honest)]
    line = np.argsort(weeks[1], kind="stable")
    expected = mt.cell_agreement(
        table.stacked[:, :, 0], weeks[0], honest.stacked[line, :, 0], weeks[1][line], honest.families,
        threshold=0.5, consecutive=True,
    )  # fmt: skip
    assert {one.df for one in expected.each.values()} == {2}
    assert found["cell.agreement[cell=cell_b]"].detail["p"] == pytest.approx(p_of(expected))


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


def test_a_favoured_cell_is_the_mirror_image_and_who_does_not_see_it_counts(plan):
    rng = np.random.default_rng(33)
    honest, table = graded(rng, 3.0, each=20, tag="h", spread_of=0.3), graded(rng, 4.2)
    found = run(honest, [cell("cell_b", table)], plan)
    assert gate(found, "cell_b").detail["outcome"] == "terse-favoured"
    flipped = [replace(one, scores=6 - one.scores) for one in (honest, table)]
    expected, m = asked(*flipped, threshold=0.3), found["cell.agreement[cell=cell_b]"]
    assert (m.value, m.detail["status"]) == (pytest.approx(expected.pooled_kappa), "publish")
    assert m.detail["p"] == pytest.approx(p_of(expected))
    # Halves round up on the scale as it is, not on the mirrored one.
    for one in (honest, table):
        one.scores[:] = np.round(2 * one.scores) / 2
    m = run(honest, [cell("cell_b", table)], plan)["cell.agreement[cell=cell_b]"]
    kappa = asked(honest, table, threshold=0.3).pooled_kappa
    assert m.value == pytest.approx(kappa) != asked(*flipped, threshold=0.3).pooled_kappa
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
    assert m.detail["p"] == pytest.approx(p_of(asked(parents, table, alpha=0.01)))
    assert m.detail["unanimous"] is True
    # One cluster cannot be asked.
    lone = run(honest, [cell("cell_a", graded(rng, 1.5, clusters=1))], plan)["cell.agreement[cell=cell_a]"]
    assert (lone.value, lone.state) == (None, "undefined: one cluster cannot be tested, needs two")


def test_a_cell_of_many_clusters_needs_no_generator_and_two_are_held_apart(plan):
    rng = np.random.default_rng(21)
    honest = honest_table(rng, clusters=12, each=4)
    table = made(np.clip(np.round(3 + rng.normal(0, 1, (48, 3))), 1, 5), spread(12, 4), tag="b")
    assert run(honest, [cell("cell_b", table)], plan) == run(honest, [cell("cell_b", table)], plan)
    # Separation of the two cells.
    rng = np.random.default_rng(22)
    a, b = around(rng, 1.5, sd=0.2, tag="a"), around(rng, 3.0, sd=0.2)
    honest = honest_table(rng)
    found = run(honest, [cell("cell_a", a), cell("cell_b", b)], plan)["cell.separation[dimension=aggregate]"]
    gaps = (b.scores.mean(axis=(1, 2)) - a.scores.mean(axis=(1, 2))).reshape(5, 4).mean(axis=1)
    assert ends(found) == pytest.approx((gaps.mean(), *stats.ttest_1samp(gaps, 0).confidence_interval(0.95)))
    found = run(honest, [cell("cell_b", b)], plan)
    assert found["cell.separation[dimension=d0]"].state == "not measured: no usable scores in cell_a"


def test_summaries_of_scores(plan):
    honest = honest_table(np.random.default_rng(24), d=2)
    assert run(honest, [], plan) == {}
    table = made(np.stack([flat([1.0, 2.0, 4.0, 3.5])] * 2, axis=2), [0, 0, 1, 1], tag="b")
    found = run(honest, [cell("cell_b", table)], plan)
    score = found["cell.score[cell=cell_b,dimension=aggregate]"]
    assert (score.value, score.n, score.unit) == (2.625, 4, "rubric points")
    summary = {"q1": 1.75, "median": 2.75, "q3": 3.625, "clusters": 2, "values": [1.0, 2.0, 3.5, 4.0]}
    assert {key: score.detail[key] for key in summary} == summary
    for other in ("cell.score[cell=cell_b,dimension=d0]", "cell.honest[dimension=aggregate]"):
        assert "values" not in found[other].detail
    assert found["cell.honest[dimension=d1]"].value == pytest.approx(honest.scores[:, :, 1].mean())
    # Gates are also given in units of the detectable effect.
    agents, cycles = np.tile(np.arange(4), 40), np.repeat(np.arange(40), 4)
    honest = made(np.full((160, 3), 4.0), spread(5, 32), agent=agents, cycle=cycles)
    found = verdict_of(honest, "cell_b", made(flat([2.0, 2.1, 2.0, 2.2]), [0, 0, 1, 1], tag="b"), plan)
    mde = mt.minimum_detectable_effect(40, alpha=plan.inference.alpha, comparisons=6)
    assert found.detail["in_mde"] == pytest.approx(found.value / mde)
