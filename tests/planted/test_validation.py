"""The validation page: made from its tables, tables that can be counted again, and batches that decide as claims do."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from repetitions import untraced
from scipy import stats

from assaymark.claims import decide_claims
from assaymark.metrology import Comparisons, OrderPlan, order_analysis, order_measurements, pairs_of, wilson
from assaymark.protocol import parse_study
from assaymark.records import Measurement

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

import validate
from validation_worlds import FAMILIES, World, decide, procedure

KIN = ("north", "south", "east", "west")


def rates(table: str, stage: str) -> dict[str, float]:
    return {name: int(row[stage]) / int(row["studies"]) for (name, _), row in validate.read(table).items()}


# --- the page and its tables ------------------------------------------------------------------------------------------


def test_the_page_equals_its_tables():
    text = validate.PAGE.read_text(encoding="utf-8")
    assert validate.page(text) == text


def test_every_cell_was_counted_once_with_its_studies():
    for table, (studies, cells) in validate.CELLS.items():
        rows = validate.read(table)
        assert [name for name, seed in rows if seed == validate.SEED] == list(cells), table
        assert {int(row["studies"]) for row in rows.values()} == {studies}, table


def test_no_null_cell_is_above_its_level():
    for table, stage in (("nulls", "stable"), ("nulls", "headline"), ("serial", "stable"), ("serial", "headline")):
        covered = [rate for name, rate in rates(table, stage).items() if not name.startswith(validate.NOT_COVERED)]
        assert max(covered) <= 0.055, table


def test_biases_above_their_level_are_those_that_the_page_says_are_not_covered():
    above = {name for name, rate in rates("biases", "headline").items() if rate > validate.CAVEAT}
    assert above
    assert all(name.startswith(validate.NOT_COVERED) for name in above)
    marked = [line for line in validate.PAGE.read_text(encoding="utf-8").splitlines() if "†" in line and "|" in line]
    assert marked
    assert all(line.startswith(tuple(f"| {name}" for name in validate.NOT_COVERED)) for line in marked)


def test_people_cover_what_they_say_and_rarely_confirm_what_is_false():
    cells = [{name: int(row[name]) for name in validate.ANCHORED} for row in validate.read("people").values()]
    assert all(0.93 <= cell["covered"] / cell["made"] <= 0.97 for cell in cells)
    assert max(cell["wrong"] for cell in cells) <= 0.04 * 2000
    favoured = rates("people", "false")
    assert min(rate for name, rate in favoured.items() if "lead" not in name) > 0.99  # what judges alone would publish
    labels = [[int(row[name]) for name in ("labels", "labels alone")] for row in validate.read("labels").values()]
    assert all(few < many for few, many in labels if many)


def test_the_command_decided_as_the_batch():
    assert {row["differ"] for row in validate.read("commands").values()} == {"0"}


@pytest.mark.parametrize(
    ("table", "cell"),
    [
        ("nulls", "normal, 4 agents, 12 clusters"),
        ("nulls", "two equal ahead of the others, 8 agents, 20 clusters"),
        ("nulls", "ceiling, 2 agents, 8 clusters"),
        ("serial", "correlation .5, 2 agents, 24 clusters"),
        ("biases", "own family .5, 4 agents, 20 clusters"),
        ("biases", "length .25 a doubling, 4 agents, 20 clusters"),
        ("power", "leader of 4, gap 0.4, 12 clusters"),
        ("intervals", "difference of two agents, 12 clusters"),
        ("intervals", "kappa, 12 clusters"),
        ("looks", "5 clusters, then 10"),
        ("people", "judges favour one of equal agents by .5, 40 labels"),
    ],
)
def test_a_cell_counted_again_agrees_with_its_table(table, cell):
    """Other studies of the same world: each count lies where the table's interval puts it."""
    studies = 200
    (row,) = [row for (name, _), row in validate.read(table).items() if name == cell]
    again = untraced(lambda: validate.CELLS[table][1][cell](studies, validate.SEED + 1))
    for column, count in again.items():
        low, high = wilson(int(row[column]), int(row["studies"]), level=0.999)
        assert stats.binom.ppf(0.0005, studies, low) <= count <= stats.binom.ppf(0.9995, studies, high), column


# --- running ----------------------------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_stopped(tmp_path, capsys):
    validate.run("nulls/normal, 2 agents, 5 clusters", 50, 1, 1, tmp_path)
    first = (tmp_path / "nulls.csv").read_text(encoding="utf-8")
    validate.run("nulls/normal, 2 agents, [35] clusters", 50, 1, 2, tmp_path)
    assert capsys.readouterr().err.count("1 of 1") == 2  # the second run counts only what was not there
    both = (tmp_path / "nulls.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split('"')[1] for line in both[1:]] == [f"normal, 2 agents, {g} clusters" for g in (3, 5)]
    assert both[2] == first.splitlines()[1]
    validate.run("nulls/normal, 2 agents, 5 clusters", 50, 2, 1, tmp_path)
    assert len(validate.read("nulls", tmp_path)) == 3


def test_draws_depend_on_the_cell_and_the_seed():
    world = World(clusters=3)
    one, again, cell, seed = (next(validate.draws(*where, world, 20)).scores for where in
                              (("one", 1), ("one", 1), ("two", 1), ("one", 2)))  # fmt: skip
    assert np.array_equal(one, again)
    assert not np.array_equal(one, cell)
    assert not np.array_equal(one, seed)


# --- worlds -----------------------------------------------------------------------------------------------------------


def test_worlds_are_as_planted():
    rng = np.random.default_rng(1)
    many = {"clusters": 4000, "cycle_sd": 0.1, "judge_sd": 0.1}
    levels = World(levels=(0.4, 0.1), agent_families=KIN, own=0.5, **many).draw(1, rng).means[0, 0].mean(axis=0)
    assert levels - levels[:, 3:] == pytest.approx(np.array([[0.9, 0.1, 0, 0], [0.4, 0.6, 0, 0], [0.4, 0.1, 0.5, 0]]),
                                                   abs=0.03)  # fmt: skip
    weeks = World(2, rho=(0.6, 0.6), **many).draw(1, rng).means[0, 0].mean(axis=1)
    gap = weeks[:, 0] - weeks[:, 1]
    assert np.corrcoef(gap[1:], gap[:-1])[0, 1] == pytest.approx(0.6 * 0.94, abs=0.06)
    graded = World(centre=4.7, grades=True).draw(20, rng).scores
    assert set(np.unique(graded)) <= {1, 2, 3, 4, 5}
    assert (graded == 5).mean() > 0.5
    sizes = np.bincount(World(cycles=0, clusters=7).cluster)
    assert (sizes.min(), sizes.max()) == (1, 20)
    copied = World(on=(1.0,) * 6, halo=1.0).draw(5, rng).scores[..., 1:]
    assert np.corrcoef(copied.reshape(-1, 6).T).min() > 0.9
    assert World(levels=(0.4,), on=(1.0, 0.5)).truth[:, 0] == pytest.approx([0.3, 0.4, 0.2])
    assert not World(levels=(0.4,), on=(1.0, 0.5), halo=1.0).truth[1:].any()


# --- the batch and the claims -----------------------------------------------------------------------------------------


def measurement(name, labels, **parts):
    return Measurement(name=name, labels=labels, **{"method": "", **parts})


def claims_of(drawn, b):
    """Orders [S, P] that are claimed of one study, and the headlines among them; agreement and controls are good."""
    world, cells = drawn.world, drawn.scores[b]
    scales = cells.shape[-1]
    cells = cells if scales > 1 else np.repeat(cells, 2, axis=-1)
    agents = tuple(f"a{k}" for k in range(world.agents))
    order = "consecutive" if world.consecutive else "exchangeable"
    table = Comparisons(
        names=("aggregate", *(f"d{s}" for s in range(1, cells.shape[-1]))),
        agents=agents,
        judges=FAMILIES,
        families=FAMILIES,
        agent_families=dict(zip(agents, world.agent_families or ("none",) * world.agents, strict=True)),
        clusters=tuple(f"c{g:03d}" for g in range(world.clusters)),
        cluster=world.cluster,
        weight=np.ones(world.cluster.size, dtype=np.int64),
        cells=cells,
        lengths=drawn.words[b][..., None],
        order=order,
    )
    judges = "".join(f'[[judges]]\nname = "{f}"\nmodel = "elsewhere/x"\nfamily = "{f}"\n' for f in FAMILIES)
    study = parse_study(f'name = "v"\nseed = 1\ninference = {{cluster_order = "{order}"}}\n{judges}')
    one = {"n": 1, "n_of": ""}
    found = [*order_measurements(table, OrderPlan.of(study), measurement)]
    found += [measurement("kappa.mean_pairwise", {"dimension": name}, value=0.9, **one) for name in table.names]
    found += [measurement("score.effect", {"dimension": "aggregate", "agent": a}, value=3.0, **one) for a in agents]
    found += [measurement("lofo.rho", {"dimension": "aggregate", "dropped": f}, value=1.0, **one) for f in FAMILIES]
    found += [
        measurement("cell.gate", {"cell": cell}, value=0.0, detail={"outcome": outcome, "p": 0.0, "p_holm": 0.0}, **one)
        for cell, outcome in (("cell_a", "passed"), ("cell_b", "substance"))
    ]
    claimed = np.zeros((scales, len(table.pairs)), dtype=bool)
    headline = claimed.copy()
    for verdict in decide_claims(found, study, "hash", variants=False):
        scale = table.names.index(verdict.claim.dimension)
        if verdict.claim.id.startswith("above[") and scale < scales:
            i, j = sorted(agents.index(name) for name in verdict.claim.subjects)
            place = scale, table.pairs.index((i, j))
            claimed[place] = verdict.publication_level != "no-claim"
            headline[place] = verdict.publication_level == "headline"
    return claimed, headline


@pytest.mark.parametrize(
    "world",
    [
        World(levels=(0.6,), agent_families=KIN),
        World(levels=(0.9, 0.6, 0.3), longer=(1.0, 0.5, 0.0, 0.0), clusters=20),
        World(8, levels=(0.6, 0.3), agent_families=("north", "north", *KIN, "west", "west"), own=0.5, clusters=20),
        World(levels=(0.6, 0.6, 0.3), cycles=0),
        World(levels=(0.6, 0.3), on=(1.0, 1.0, 0.0)),
        World(levels=(0.6, 0.3), on=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0), halo=0.5, clusters=20),
        World(levels=(0.6, 0.3), rho=(0.5,) * 4, clusters=36, agent_families=KIN),
        World(levels=(0.6, 0.3), rho=(0.5,) * 4, clusters=20),
        World(levels=(0.5,), centre=4.6, grades=True, odd=0.5),
        World(2, levels=(0.5,), agent_families=("north", "south")),
    ],
    ids=["leader", "longer", "own family", "uneven", "dimensions", "halo", "weeks", "few weeks", "ceiling", "two"],
)
def test_the_batch_decides_as_the_claims_do(world):
    drawn = world.draw(12, np.random.default_rng(3))
    batch = decide(drawn)
    for b in range(12):
        claimed, headline = untraced(lambda b=b: claims_of(drawn, b))
        assert np.array_equal(claimed, batch.stable[b])
        assert np.array_equal(headline, batch.headline[b])
    assert batch.stable.any()


def test_equal_lengths_make_no_headline_of_an_order_that_the_second_run_does_not_publish():
    """At equal length other pairs lose their orders, and with them the steps by which this one was published."""
    world = World(levels=(0.6, 0.3), on=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0), halo=0.5, clusters=20)
    drawn = world.draw(60, np.random.default_rng([1, 3]))
    batch = decide(drawn)
    for b in (11, 27):
        words = drawn.words[b].mean(axis=0)
        assert abs(words[0] - words[2]) < 0.03
        assert batch.stable[b, 0, 1]
        assert not batch.headline[b, 0, 1]
        assert np.array_equal(untraced(lambda b=b: claims_of(drawn, b))[1], batch.headline[b])


@pytest.mark.parametrize("agents", [2, 4, 8])
def test_the_batch_publishes_as_one_study_does(agents):
    drawn = World(agents, levels=(0.6, 0.3), on=(1.0, 0.5)).draw(30, np.random.default_rng(4))
    means = drawn.means.mean(axis=3)
    gap, p = drawn.tests(means)
    published, first = procedure(agents, gap, p)
    ends = list(zip(*(axis.tolist() for axis in pairs_of(agents)), strict=True))
    for b in range(30):
        one = order_analysis(dict(zip(("aggregate", "d0", "d1"), means[b], strict=True)))
        said = [one.order, one.dimension_order["d0"], one.dimension_order["d1"]]
        for s, orders in enumerate(said):
            mine = {(i, j) if gap[b, s, k] > 0 else (j, i) for k, (i, j) in enumerate(ends) if published[b, s, k]}
            assert mine == set(orders)
        assert (None if first[b] < 0 else int(first[b])) == one.first


def test_only_studies_with_a_false_order_are_followed():
    world = World(levels=(1.0, 1.0), clusters=20)
    drawn = world.draw(200, np.random.default_rng(5))
    every, some = decide(drawn), decide(drawn, false=True)
    wrong = np.sign(every.gap) * world.truth <= 0
    for stage in validate.STAGES:
        assert np.array_equal(getattr(every, stage) & wrong, getattr(some, stage) & wrong)
    assert some.published.sum() < every.published.sum()
