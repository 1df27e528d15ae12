"""Control cells: planted values come back at the stated rate, laws hold, and bad input is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cells import FAMILIES, JUDGES, band, bonus_cell, cell, flat, gate, honest_table, made, run, spread

from assaymark.errors import InputError
from assaymark.metrology import ControlCell, ScoreTable


@pytest.fixture(scope="module")
def planted(study):
    """200 studies of five regimes with a penalty of their own each; cell A 2.4 and cell B 1.1 below, a bonus of 0.6."""
    plan, found = study(), []
    for seed in range(200):
        rng = np.random.default_rng([41, seed])
        regime, own = rng.normal(0, 0.4, 5), rng.normal(0, 0.15, (2, 5))
        cluster, few = np.array(spread(5, 40)), np.array(spread(5, 10))
        honest = made(3.8 + regime[cluster][:, None] + rng.normal(0, 0.4, (200, 3)), cluster)
        a, b = (
            made(3.8 + (regime + own[k])[few][:, None] - drop + rng.normal(0, 0.4, (50, 3)), few, tag=tag)
            for k, (drop, tag) in enumerate(((2.4, "a"), (1.1, "b")))
        )
        b.scores[:, 2] += 0.6
        found.append(run(honest, [cell("cell_a", a), cell("cell_b", b, composer="east")], plan))
    return found


@pytest.mark.parametrize(("name", "truth"), [
    ("gate[cell=cell_b]", -1.1 + 0.2), ("separation[dimension=aggregate]", 1.3 + 0.2),
    ("halo[cell=cell_b]", 0.2),  # a third of the in-family judge's bonus of 0.6
    ("drop[cell=cell_b,dropped=east]", -1.1), ("drop[cell=cell_b,dropped=north]", -1.1 + 0.3),
])  # fmt: skip
def test_planted_penalty_bonus_and_separation_are_recovered_at_the_stated_rate(planted, name, truth):
    found = [one[f"cell.{name}"] for one in planted]
    low, high = band(len(planted), 0.95)
    assert low <= sum(one.low <= truth <= one.high for one in found) <= high
    for kind, outcome, least in (("cell_a", "passed", 195), ("cell_b", "verbosity-bias", 180)):
        assert sum(gate(one, kind).detail["outcome"] == outcome for one in planted) > least


@pytest.mark.parametrize(("kind", "outcome", "rate"), [("cell_a", "passed", 0.01), ("cell_b", "verbosity-bias", 0.05)])
def test_null_cells_are_rejected_no_more_often_than_stated(study, kind, outcome, rate):
    """Cell A at the quartile itself; a cell B of the same kind as honest records."""
    plan, hits, p_hits = study(), 0, 0
    for seed in range(200):
        rng = np.random.default_rng([43, seed])
        cluster, few = np.array(spread(5, 200)), np.array(spread(5, 10))
        honest = made(flat(4 + rng.normal(0, 0.4, 1000)), cluster)
        base = np.quantile(honest.scores[:, 0, 0], 0.25) if kind == "cell_a" else 4.0
        table = made(flat(base + rng.normal(0, 0.2, 5)[few] + rng.normal(0, 0.4, 50)), few, tag="x")
        found = gate(run(honest, [cell(kind, table)], plan), kind)
        hits += found.detail["outcome"] == outcome
        p_hits += found.detail["p"] <= rate
    low, high = band(200, rate)
    assert low <= p_hits <= high
    assert hits <= p_hits


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(-2, 2))
def test_a_shift_of_all_scores_moves_no_gate(study, seed, shift):
    plan, rng = study(), np.random.default_rng(seed)
    honest, a, b = honest_table(rng), bonus_cell(rng, 0.5), bonus_cell(rng, 1.5)

    def gates(by: float) -> list[tuple[float | None, ...]]:
        tables = [replace(table, scores=table.scores + by) for table in (honest, a, b)]
        found = run(tables[0], [cell("cell_a", tables[1]), cell("cell_b", tables[2], composer="north")], plan)
        names = ("cell.gate", "cell.halo", "cell.drop", "cell.separation")
        return [(m.value, m.low, m.high) for m in found.values() if m.name in names]

    assert np.array(gates(shift)) == pytest.approx(np.array(gates(0.0)), abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.permutations(range(5)), st.permutations(range(3)))
def test_names_and_order_do_not_matter(study, seed, clusters, judges):
    plan, rng = study(), np.random.default_rng(seed)
    honest, table = honest_table(rng), bonus_cell(rng, 1.5)
    order = rng.permutation(table.n)

    def renamed(one: ScoreTable, rows: np.ndarray) -> ScoreTable:
        return replace(
            one, scores=one.scores[rows][:, judges], agent=one.agent[rows], cycle=one.cycle[rows],
            cluster=np.array(clusters)[one.cluster[rows]], families=tuple(f"x-{FAMILIES[j]}" for j in judges),
        )  # fmt: skip

    before = run(honest, [cell("cell_b", table, composer="north")], plan)
    table, honest = renamed(table, order), renamed(honest, rng.permutation(honest.n))
    after = run(honest, [cell("cell_b", table, composer="x-north")], plan)
    names = [f"cell.{one}[cell=cell_b]" for one in ("gate", "halo")] + ["cell.score[cell=cell_b,dimension=aggregate]"]
    drops = [tuple(f"cell.drop[cell=cell_b,dropped={prefix}{family}]" for prefix in ("", "x-")) for family in FAMILIES]
    for name, other in [*zip(names, names, strict=True), *drops]:
        one, two = before[name], after[other]
        assert (two.value, two.low, two.high) == pytest.approx((one.value, one.low, one.high))
    assert gate(after, "cell_b").detail["outcome"] == gate(before, "cell_b").detail["outcome"]


@pytest.mark.parametrize(("kind", "outcome"), [
    ("cell_a", "not tested"), ("cell_b", "inconclusive"), ("red_team", "not tested"), ("fact_flip", "not tested"),
    ("paraphrase", "inconclusive"), ("length_matched", "inconclusive")
])  # fmt: skip
def test_one_cluster_cannot_be_tested_and_says_so(plan, kind, outcome):
    honest = honest_table(np.random.default_rng(26))
    table = made(flat([2.0, 2.5, 2.0]), [0, 0, 0], tag="x")
    found = run(honest, [cell(kind, table, parents=honest.trajectories[:3], composer="north")], plan)
    mine, score = gate(found, kind), found[f"cell.score[cell={kind},dimension=aggregate]"]
    assert mine.state == "undefined: one cluster cannot be tested, needs two"
    assert (mine.value, mine.low, mine.detail["p"], mine.detail["outcome"]) == (None, None, None, outcome)
    assert mine.detail["difference"] < -1
    assert (found[f"cell.halo[cell={kind}]"].state, score.low) == ("ok", None)


def test_a_cell_without_usable_scores_is_named(plan):
    honest = honest_table(np.random.default_rng(27), d=2)
    nothing = {"dimensions": (), "scores": np.zeros((0, 3, 0)), "weights": np.zeros(0)}
    empty = replace(made(np.zeros((0, 3, 2)), [], clusters=1, tag="x"), **nothing)
    found = run(honest, [cell("cell_a", empty), cell("cell_b", made(np.ones((4, 3, 2)), [0, 0, 1, 1], tag="b"))], plan)
    state = "not measurable: no trajectory has a usable score from every judge"
    for name in ("gate[cell=cell_a]", "score[cell=cell_a,dimension=d1]", "halo[cell=cell_a]"):
        assert found[f"cell.{name}"].state == state
    assert found["cell.separation[dimension=d1]"].state == "not measured: no usable scores in cell_a"
    assert gate(found, "cell_b").state == "ok"
    # Without honest scores no gate has a number.
    empty = made(np.zeros((0, 3)), [], clusters=1)
    a, p = (cell(kind, made(flat([1.0, 2.0]), [0, 1], tag="a")) for kind in ("cell_a", "paraphrase"))
    found = run(empty, [a, p], plan)
    for kind in ("cell_a", "paraphrase"):
        assert gate(found, kind).state == "not measurable: no honest trajectory has a usable score from every judge"
        assert gate(found, kind).detail["outcome"] == "not tested"
    assert found["cell.score[cell=cell_a,dimension=aggregate]"].value == 1.5


def test_trials_are_averaged_in_cells_only_where_the_honest_records_allow_it(study):
    """An unstable judge counts with its first trial, in the cells too."""
    plan, rng = study(), np.random.default_rng(28)
    honest, table = honest_table(rng), made(flat([2.0, 2.2, 2.1, 2.3]), [0, 0, 1, 1], tag="b")

    def twice(one: ScoreTable) -> ScoreTable:
        first = one.scores.copy()
        first[:, 0] += 1
        trials = {**one.trials, "auditor": rng.normal(3, 1, (one.n, 2))}
        return replace(one, trials=trials, mean=one.scores, first=first, repeats={})

    found = run(twice(honest), [cell("cell_b", twice(table))], plan)
    first = found["cell.score[cell=cell_b,dimension=aggregate]"]
    assert first.value == pytest.approx(table.scores.mean() + 1 / 3)
    assert found["cell.honest[dimension=aggregate]"].value == pytest.approx(honest.scores.mean() + 1 / 3)


def test_a_cell_must_fit_the_honest_records(plan):
    honest, table = honest_table(np.random.default_rng(29)), made(flat([2.0, 2.0]), [0, 1], tag="x")
    judges = replace(table, judges=("other", *JUDGES[1:]))
    for cells, message in (
        ([cell("cell_a", judges)], "cell_a: must have the judges and dimensions"),
        ([cell("cell_a", replace(table, dimensions=("other",)))], "must have the judges and dimensions"),
        ([cell("cell_a", table)] * 2, "at most one of each kind"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            run(honest, cells, plan)
    for kind, parents, composers, message in (
        ("cell_a", (None,), ("x", "x"), "parents: must have one entry for each of 2 records"),
        ("cell_a", (None, None), ("x",), "composers"), ("honest", (None, None), ("x", "x"), "not a cell"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            ControlCell(kind, table, parents, composers)
