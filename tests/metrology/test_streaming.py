"""Sums of a score table: they add up in every way it can be cut, and say what the rows themselves say."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import (
    NotStreamableError,
    ScoreSums,
    analyse,
    analyse_sums,
    missing_measurements,
    streaming,
    table_from_arrow,
    total,
    whole_weights,
)
from assaymark.protocol import Study, parse_study
from assaymark.records import Measurement

PANEL = {"auditor": "north", "reader": "south", "skeptic": "east"}
MAKERS = ("north", "south")
SIBLINGS = {**PANEL, "twin": "north"}
DIMENSIONS = ("clarity", "evidence", "risk")
sums_of = partial(streaming.sums_of, dimensions=DIMENSIONS)
score_sums = partial(streaming.score_sums, dimensions=DIMENSIONS, leave_out=True)


def make_study(judges: dict[str, str], extra: str = "") -> Study:
    listed = "".join(f'[[judges]]\nname = "{n}"\nmodel = "elsewhere/{n}"\nfamily = "{f}"\n' for n, f in judges.items())
    return parse_study(f'name = "made up"\nseed = 1\n{extra}\n{listed}')


def make_table(
    *, judges: dict[str, str] = PANEL, agents: int = 4, clusters: int = 5, cycles: int = 8, attend: float = 1.0,
    missing: float = 0.0, formats: int = 1, repeat: bool = False, length: bool = False, names: bool = True,
    makers: Sequence[str | None] = (), seed: int = 1,
) -> pa.Table:  # fmt: skip
    """Rows in the order that streaming reads: cycle, trajectory, judge."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    ids = itertools.count(100)
    for cycle in range(clusters * cycles):
        base = 3 + rng.normal(0, 0.5)
        for agent in range(agents):
            for _ in range(1 + (repeat and rng.random() < 0.3)):
                if rng.random() > attend:
                    continue
                trajectory, true = next(ids), base + 0.3 * agent + rng.normal(0, 0.6, len(DIMENSIONS))
                for judge, family in sorted(judges.items()):
                    seen = np.clip(np.floor(true + rng.normal(0, 0.5, len(DIMENSIONS)) + 0.5), 1, 5).astype(int)
                    row = {
                        "trajectory": trajectory, "agent": f"agent{agent}" if names else agent,
                        "cluster": f"week{cycle // cycles:02d}", "judge": judge, "family": family, "trial": 1,
                        "cycle": cycle, **dict(zip(DIMENSIONS, seen.tolist(), strict=True)),
                    }  # fmt: skip
                    if formats > 1:
                        row["format"] = f"v{trajectory % formats}"
                    if makers:
                        row["agent_family"] = makers[agent]
                    if length:
                        row["length"] = 50 + 7 * (trajectory % 13)
                    if rng.random() < missing:
                        row[DIMENSIONS[trajectory % 3]] = None
                    if rng.random() >= missing / 2:
                        rows.append(row)
    return pa.Table.from_pylist(rows)


def same(ours: Any, theirs: Any, place: str = "") -> None:
    """Equal up to 1e-9 wherever there are numbers, and exactly everywhere else."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), place
        for key in theirs:
            same(ours[key], theirs[key], f"{place}.{key}")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), place
        for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{place}[{k}]")
    elif isinstance(theirs, float) and not isinstance(theirs, bool):
        assert ours == pytest.approx(theirs, abs=1e-9, rel=1e-9), place
    else:
        assert ours == theirs, place


BY_ROWS = ("dimension.mtmm", "panel.alpha", "panel.variance", "panel.generalizability")
IN_PARTS = "not measurable: the table was read in parts, of which only sums were kept"
"""The state of a measurement that needs single records. Contrasts at equal length need them too, and are not there."""


def in_parts(item: Measurement) -> Measurement:
    """The same with a word on how the table was read."""
    if item.name != "panel.families":
        return item
    assert item.detail["in_parts"] is False
    return replace(item, detail={**item.detail, "in_parts": True})


def check_equal(table: pa.Table, study: Study, weights: dict[str, float] | None = None) -> None:
    sums = sums_of(table, weights=weights)
    ours = {m.id: m for m in analyse_sums(sums, study, rng=np.random.default_rng(5))}
    scores = table_from_arrow(table, weights=weights, dimensions=DIMENSIONS)
    theirs = {m.id: m for m in analyse(scores, study, rng=np.random.default_rng(5))}
    assert ours["panel.families[]"].detail["in_parts"] is True
    of_rows = ("length.contrast", "judge.length")
    theirs = {name: in_parts(item) for name, item in theirs.items() if item.name not in of_rows}
    assert list(ours) == list(theirs)
    for name, item in theirs.items():
        found = ours[name]
        if item.name == "dimension.distinct":
            assert (found.state, found.value, found.low) == (IN_PARTS, None, None)
            assert found.detail == {"p": None, "p_holm": None, "distinct": study.claims.distinct}
            continue
        if item.name in BY_ROWS and item.labels.get("part") != "judge x agent":
            assert (found.state, found.value, found.low) == (IN_PARTS, None, None)
            continue
        assert (found.state, found.n, found.n_of, found.method) == (item.state, item.n, item.n_of, item.method), name
        same((found.value, found.low, found.high, found.level), (item.value, item.low, item.high, item.level), name)
        same(dict(found.detail), dict(item.detail), name)


# --- the same numbers as from the rows --------------------------------------------------------------------------------

TABLES = {"balanced": {}, "unbalanced": {"attend": 0.6}, "agents twice in a cycle": {"attend": 0.7, "repeat": True},
    "one cluster": {"clusters": 1}, "twelve clusters": {"clusters": 12, "cycles": 4, "attend": 0.8},
    "two agents": {"agents": 2}, "one agent": {"agents": 1}, "seven agents": {"agents": 7, "attend": 0.5},
    "formats": {"formats": 2, "clusters": 6, "cycles": 10}, "lengths": {"length": True},
    "whole-number agents": {"names": False}, "siblings": {"judges": SIBLINGS},
    "one family": {"judges": {"auditor": "north", "reader": "north"}}, "one judge": {"judges": {"auditor": "north"}},
    "one judge, formats": {"judges": {"auditor": "north"}, "formats": 2}, "five judges": {"judges": {name: name
    for name in "abcde"}, "clusters": 3, "cycles": 4}, "two clusters": {"clusters": 2},
    "own families": {"makers": ("north", "south", None, "elsewhere"), "attend": 0.8, "clusters": 7},
    "no judge without an interest": {"makers": ("north", "south"), "agents": 2, "judges": dict(zip("ab", MAKERS,
    strict=True))}, "fifteen weeks": {"clusters": 15, "cycles": 3}}  # fmt: skip


@pytest.mark.parametrize("shape", TABLES.values(), ids=TABLES)
def test_the_sums_say_what_the_rows_say(shape):
    table = make_table(**shape)
    check_equal(table, make_study(shape.get("judges", PANEL), "[inference]\nresamples = 1000"))


@pytest.mark.parametrize("inference", ['cluster_order = "consecutive"', 'test = "own-variance"'])
@pytest.mark.parametrize("shape", ["unbalanced", "fifteen weeks"])
def test_under_other_tests_too(shape, inference):
    check_equal(make_table(**TABLES[shape]), make_study(PANEL, f"[inference]\nresamples = 1000\n{inference}"))


def test_a_judge_of_an_agents_maker_stands_aside_in_sums_too():
    table = make_table(makers=("north", "south", None, "elsewhere"))
    found = analyse_sums(sums_of(table), make_study(PANEL), rng=np.random.default_rng(5))
    own = {m.labels["judge"] for m in found if m.name == "judge.own_family"}
    assert own == {"auditor", "reader", "common"}
    assert len([m for m in found if m.name == "recusal.contrast"]) == 4 * 5
    (families,) = (m for m in found if m.name == "panel.families")
    assert families.detail["unknown"] == ""
    assert sums_of(table).agent_families == {
        "agent0": "north", "agent1": "south", "agent2": "agent2", "agent3": "elsewhere",
    }  # fmt: skip


def test_one_agent_has_one_maker(tmp_path):
    table = make_table(makers=("north", "south", None, "elsewhere"))
    for rows in (50, 10_000):
        with pytest.raises(InputError, match=r"agent agent0: one agent has one agent_family \(got north, west\)"):
            score_sums(written(tmp_path, changed("agent_family", 0, "west", table), rows), scratch=tmp_path)
    late = changed("agent_family", table.num_rows - 3, "west", table)
    name = late.column("agent").to_pylist()[-3]
    with pytest.raises(InputError, match=f"agent {name}: one agent has one agent_family"):
        score_sums(written(tmp_path, late, 30), scratch=tmp_path)
    with pytest.raises(InputError, match="agent_family: one part has this column and the other has not"):
        sums_of(table) + sums_of(table.drop_columns(["agent_family"]))


def test_judges_without_families_are_read_in_rows(tmp_path):
    with pytest.raises(NotStreamableError, match="there is no column family") as caught:
        score_sums(written(tmp_path, WHOLE.drop_columns(["family"]), 50), scratch=tmp_path)
    assert not caught.value.sortable


def test_shares_of_missing_replies_are_those_of_the_rows():
    """Rows without a score are replies that did not come; what was never asked is no row."""
    table = make_table(attend=0.8, missing=0.1)
    sums, rows = sums_of(table), table_from_arrow(table, dimensions=DIMENSIONS)
    assert sums.missing() == rows.missing()
    limits = {"per_judge": 0.05, "per_agent": 0.05}
    assert sums.excess(**limits) == rows.excess(**limits) != {}
    assert list(missing_measurements(sums, {})) == [
        replace(m, inputs=sums.digest) for m in missing_measurements(rows, {})
    ]
    # The correlation of length and score follows from sums, a slope within agents and cycles does not.
    table, study = make_table(length=True), make_study(PANEL)
    ours = {m.name for m in analyse_sums(sums_of(table), study, rng=np.random.default_rng(5))}
    rows = table_from_arrow(table, dimensions=DIMENSIONS)
    theirs = {m.name for m in analyse(rows, study, rng=np.random.default_rng(5))}
    assert theirs - ours == {"length.contrast", "judge.length"}


def complete(table: pa.Table) -> pa.Table:
    """The rows of the trajectories that every judge scored."""
    good = [
        (row["trajectory"], row["judge"])
        for row in table.to_pylist()
        if all(row[name] is not None for name in DIMENSIONS)
    ]
    judges = set(table.column("judge").to_pylist())
    whole = {name for name, _ in good if all((name, judge) in set(good) for judge in judges)}
    return table.filter(pa.array([name in whole for name in table.column("trajectory").to_pylist()]))


def test_what_lacks_a_score_is_in_no_sum_and_counted_by_judge_and_agent():
    table = make_table(attend=0.8, missing=0.1)
    found, whole = sums_of(table), sums_of(complete(table), judges=PANEL)
    exact(found, replace(whole, replies=found.replies, left_out=found.left_out))
    assert found.left_out == len(set(table.column("trajectory").to_pylist())) - whole.n > 0
    usable = np.zeros_like(found.replies)
    for row in table.to_pylist():
        lost = any(row[name] is None for name in DIMENSIONS)
        usable[sorted(PANEL).index(row["judge"]), found.agents.index(row["agent"]), int(lost)] += 1
    assert np.array_equal(found.replies, usable)
    assert np.array_equal(found.calls, usable.sum(axis=1))
    assert found.digest != replace(found, replies=found.replies[:, ::-1]).digest


def test_a_table_in_which_something_is_missing_is_to_be_read_whole(tmp_path):
    path = written(tmp_path, WHOLE, 50)
    with pytest.raises(NotStreamableError, match="some trajectories lack a usable score from some judge") as caught:
        score_sums(path, leave_out=False, scratch=tmp_path)
    assert not caught.value.sortable
    exact(
        score_sums(written(tmp_path, complete(WHOLE), 50), leave_out=False, scratch=tmp_path), sums_of(complete(WHOLE))
    )


def test_weights_make_the_same_aggregate():
    weights = {"clarity": 0.5, "evidence": 0.2, "risk": 0.3}
    check_equal(make_table(attend=0.8), make_study(PANEL), weights)
    # Agents that never meet.
    table = make_table(clusters=4)
    agent, cycle = table.column("agent").to_pylist(), table.column("cycle").to_pylist()
    apart = [(a < "agent2") == (c % 2 == 0) for a, c in zip(agent, cycle, strict=True)]
    table = table.filter(pa.array(apart))
    check_equal(table, make_study(PANEL))
    states = {m.state for m in analyse_sums(sums_of(table), make_study(PANEL), rng=np.random.default_rng(1))}
    assert "never compared" in states
    assert any(state.startswith("disconnected") for state in states)
    # Without cycles agents meet in clusters.
    table = make_table(clusters=6, attend=0.7).drop_columns(["cycle"])
    check_equal(table, make_study(PANEL))


def constant(table: pa.Table, rows: list[bool], score: int) -> pa.Table:
    for name in DIMENSIONS:
        values = [score if fixed else value for value, fixed in zip(table.column(name).to_pylist(), rows, strict=True)]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    return table


def test_judges_with_one_category():
    table = make_table()
    check_equal(constant(table, [j == "reader" for j in table.column("judge").to_pylist()], 4), make_study(PANEL))
    check_equal(constant(table, [True] * table.num_rows, 3), make_study(PANEL))


# --- adding up --------------------------------------------------------------------------------------------------------


def exact(one: ScoreSums, other: ScoreSums) -> None:
    assert (one.layout, one.agents, one.clusters, one.formats) == (
        other.layout, other.agents, other.clusters, other.formats,
    )  # fmt: skip
    for name in ("sizes", "lineups", "places", "cycles", "scores", "replies"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for mine, theirs in zip(one.tables, other.tables, strict=True):
        assert np.array_equal(mine, theirs)
    assert (one.left_out, one.lengths, one.makers) == (other.left_out, other.lengths, other.makers)
    assert one.digest == other.digest


WHOLE = make_table(
    clusters=4, cycles=5, attend=0.7, missing=0.1, formats=2, repeat=True, length=True, makers=("north", None, "x", "y")
)


@given(data=st.data(), paired=st.booleans())
def test_sums_add_up_however_the_table_is_cut(data, paired):
    table = WHOLE if paired else WHOLE.drop_columns(["cycle"])
    key = np.array(table.column("cycle" if paired else "trajectory").to_pylist())
    borders = np.flatnonzero(key[1:] != key[:-1]) + 1
    cuts = sorted(data.draw(st.lists(st.sampled_from(borders.tolist()), unique=True, max_size=6)))
    parts = [
        sums_of(table.slice(start, stop - start), judges=PANEL)
        for start, stop in itertools.pairwise([0, *cuts, table.num_rows])
    ]
    order = data.draw(st.permutations(parts))
    whole = sums_of(table)
    exact(total(order), whole)
    exact(order[0] + total(order[1:]) if len(order) > 1 else order[0], whole)


def test_parts_of_other_panels_do_not_add_up():
    one = sums_of(make_table())
    with pytest.raises(InputError, match="do not add up"):
        one + sums_of(make_table(judges=SIBLINGS))
    with pytest.raises(InputError, match="length"):
        one + sums_of(make_table(length=True))
    # Weights become whole numbers.
    assert whole_weights(DIMENSIONS, None) == (1, 1, 1)
    assert whole_weights(DIMENSIONS, {"clarity": 2.0, "evidence": 1.0, "risk": 0.0}) == (2, 1, 0)
    with pytest.raises(InputError, match="ratios of whole numbers"):
        whole_weights(DIMENSIONS, {"clarity": 1.0, "evidence": 2**0.5, "risk": 1.0})
    with pytest.raises(InputError, match="no weight for dimension 'risk'"):
        whole_weights(DIMENSIONS, {"clarity": 1.0, "evidence": 1.0})


# --- from a file ------------------------------------------------------------------------------------------------------


def written(folder, table: pa.Table, rows: int):
    path = folder / "scores.parquet"
    pq.write_table(table, path, row_group_size=rows)
    return path


@pytest.mark.parametrize("rows", [7, 50, 10_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_cycles_reach_over_the_ends_of_row_groups(tmp_path, monkeypatch, rows, threads):
    monkeypatch.setattr("assaymark.metrology.streaming._ROWS", 40)
    path = written(tmp_path, WHOLE, rows)
    exact(score_sums(path, scratch=tmp_path, threads=threads), sums_of(WHOLE))


def test_dictionaries_and_plain_names_are_the_same(tmp_path):
    table = WHOLE
    for name in ("agent", "cluster", "judge", "family", "format"):
        table = table.set_column(table.schema.get_field_index(name), name, table.column(name).dictionary_encode())
    exact(score_sums(written(tmp_path, table, 30), scratch=tmp_path), sums_of(WHOLE))


def test_a_judge_may_come_late(tmp_path, monkeypatch):
    monkeypatch.setattr("assaymark.metrology.streaming._ROWS", 20)
    late = [
        j != "skeptic" or c > 10
        for j, c in zip(*(WHOLE.column(n).to_pylist() for n in ("judge", "cycle")), strict=True)
    ]
    table = WHOLE.filter(pa.array(late))
    exact(score_sums(written(tmp_path, table, 20), scratch=tmp_path), sums_of(table))


def test_rows_out_of_order_are_put_in_order(tmp_path):
    said: list[str] = []
    shuffled = WHOLE.take(pa.array(np.random.default_rng(3).permutation(WHOLE.num_rows)))
    found = score_sums(written(tmp_path, shuffled, 50), scratch=tmp_path, progress=lambda what, *_: said.append(what))
    exact(found, sums_of(WHOLE))
    assert any("not in the order" in what for what in said)
    assert not (tmp_path / "ordered.parquet").exists()


def test_named_cycles_and_floats_are_numbered(tmp_path):
    table = WHOLE
    for name in ("cycle", "trajectory"):
        texts = pa.array([f"{value:06d}" for value in table.column(name).to_pylist()])
        table = table.set_column(table.schema.get_field_index(name), name, texts)
    values = pa.array([float("nan") if v is None else float(v) for v in table.column("risk").to_pylist()])
    table = table.set_column(table.schema.get_field_index("risk"), "risk", values)
    exact(score_sums(written(tmp_path, table, 50), scratch=tmp_path), sums_of(WHOLE))


# --- what cannot be summed --------------------------------------------------------------------------------------------


def changed(name: str, row: int, value: Any, table: pa.Table = WHOLE) -> pa.Table:
    values = table.column(name).to_pylist()
    values[row] = value
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (changed("risk", 4, 6), r"row 5, risk: usable scores lie in 1..5 \(got 6\)"),
        (changed("risk", 4, 0), r"row 5, risk: usable scores lie in 1..5 \(got 0\)"),
        (changed("risk", 4, 9_000), r"got 9000"), (changed("agent", 4, None), "row 5, agent: is empty"),
        (changed("cycle", 4, None), "row 5, cycle: is empty"),
        (changed("agent", 4, "other"), "one trajectory has one agent"),
        (changed("family", 4, "other"), "one judge has one family"),
        (WHOLE.drop_columns(["agent"]), "agent: this column is missing"),
        (WHOLE.drop_columns(["risk"]), r"risk: the table has no such column .* it has clarity, evidence\)"),
        (WHOLE.slice(0, 0), "no rows"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path, table, message):
    with pytest.raises(InputError, match=message):
        score_sums(written(tmp_path, table, 50), scratch=tmp_path)


def test_a_cycle_lies_in_one_cluster(tmp_path):
    table = make_table()
    rows = [k for k, c in enumerate(table.column("cycle").to_pylist()) if c == 3][:3]
    for row in rows:
        table = changed("cluster", row, "elsewhere", table)
    with pytest.raises(InputError, match="cycle 3: a cycle lies in one cluster"):
        score_sums(written(tmp_path, table, 1000), scratch=tmp_path)


def test_a_trajectory_lies_in_one_cycle(tmp_path):
    table = make_table()
    rows = np.r_[np.arange(3), np.arange(table.num_rows)]
    again = table.take(pa.array(rows[::-1]))
    cycle = [99 if k >= table.num_rows else c for k, c in enumerate(again.column("cycle").to_pylist())]
    again = again.set_column(again.schema.get_field_index("cycle"), "cycle", pa.array(cycle))
    with pytest.raises(InputError, match=r"trajectory 100: one trajectory has one cycle \(got 2\)"):
        score_sums(written(tmp_path, again, 1000), scratch=tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            pa.concat_tables([WHOLE, WHOLE]).sort_by([(n, "ascending") for n in ("cycle", "trajectory", "judge")]),
            "several",
        ),
        (WHOLE.append_column("replicate", pa.array([1] * WHOLE.num_rows)), "replicate"),
        (WHOLE.append_column("extra", pa.array([2.5] * WHOLE.num_rows)), "not whole"),
    ],
)
def test_what_needs_the_rows_is_said(tmp_path, table, message):
    named = [name for name in (*DIMENSIONS, "extra") if name in table.column_names]
    with pytest.raises(NotStreamableError, match=message):
        score_sums(written(tmp_path, table, 1000), dimensions=named, scratch=tmp_path)


# --- which columns are dimensions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffled", [False, True])
def test_columns_that_nobody_named_are_not_read(tmp_path, shuffled):
    table = WHOLE.append_column("retries", pa.array(range(WHOLE.num_rows)))
    table = table.append_column("seconds", pa.array([2.5] * WHOLE.num_rows))
    table = table.append_column("tags", pa.array([["a"]] * WHOLE.num_rows))
    if shuffled:
        table = table.take(pa.array(np.random.default_rng(3).permutation(table.num_rows)))
    exact(score_sums(written(tmp_path, table, 50), scratch=tmp_path), sums_of(WHOLE))


def test_without_names_there_is_one_score_or_none(tmp_path):
    path = written(tmp_path, WHOLE, 50)
    with pytest.raises(InputError, match=r"--dimensions clarity,evidence,risk.*\(got clarity in column 8"):
        score_sums(path, dimensions=None, scratch=tmp_path)
    one = WHOLE.drop_columns(["clarity", "evidence"]).rename_columns({"risk": "score"})
    found = score_sums(written(tmp_path, one, 50), dimensions=None, scratch=tmp_path)
    exact(found, sums_of(one, dimensions="score"))
    with pytest.raises(InputError, match="no dimension"):
        sums_of(one.drop_columns("score"), dimensions=None)
