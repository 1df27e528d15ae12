"""Sums of a score table: they add up in every way it can be cut, and say what the rows themselves say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_orders import JUDGES, make_study

from assaymark import metrology as mt
from assaymark.errors import InputError
from assaymark.metrology import streaming
from assaymark.plan import MissingLimits
from assaymark.protocol import Study

MAKERS = ("north", "south")
SIBLINGS = {**JUDGES, "twin": "north"}
DIMENSIONS = ("clarity", "evidence", "risk")
sums_of = partial(streaming.sums_of, dimensions=DIMENSIONS)
FEW = "[inference]\nresamples = 1000\n"


def read(folder, table: pa.Table, rows: int = 50, **more: Any) -> mt.ScoreSums:
    """The sums of a table in a file of row groups of so many rows."""
    pq.write_table(table, folder / "scores.parquet", row_group_size=rows)
    more = {"dimensions": DIMENSIONS, "leave_out": True, "scratch": folder} | more
    return streaming.score_sums(folder / "scores.parquet", **more)


def make_table(
    *, judges: dict[str, str] = JUDGES, agents: int = 4, clusters: int = 5, cycles: int = 8, attend: float = 1.0,
    missing: float = 0.0, formats: int = 1, repeat: bool = False, length: bool = False, names: bool = True,
    makers: Sequence[str | None] = (),
) -> pa.Table:  # fmt: skip
    """Rows in the order that streaming reads: cycle, trajectory, judge."""
    rng = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    ids = itertools.count(100)
    for cycle in range(clusters * cycles):
        base = 3 + rng.normal(0, 0.5)
        for agent in range(agents):
            for _ in range(1 + (repeat and rng.random() < 0.3)):
                if rng.random() > attend:
                    continue
                trajectory, true = next(ids), base + 0.3 * agent + rng.normal(0, 0.6, len(DIMENSIONS))
                more = {"format": f"v{trajectory % formats}"} if formats > 1 else {}
                more |= {"agent_family": makers[agent]} if makers else {}
                more |= {"length": 50 + 7 * (trajectory % 13)} if length else {}
                for judge, family in sorted(judges.items()):
                    seen = np.clip(np.floor(true + rng.normal(0, 0.5, len(DIMENSIONS)) + 0.5), 1, 5).astype(int)
                    row = {
                        "trajectory": trajectory, "agent": f"agent{agent}" if names else agent,
                        "cluster": f"week{cycle // cycles:02d}", "judge": judge, "family": family, "trial": 1,
                        "cycle": cycle, **dict(zip(DIMENSIONS, seen.tolist(), strict=True)), **more,
                    }  # fmt: skip
                    if rng.random() < missing:
                        row[DIMENSIONS[trajectory % 3]] = None
                    if rng.random() >= missing / 2:
                        rows.append(row)
    return pa.Table.from_pylist(rows)


def put(table: pa.Table, name: str, values: Any) -> pa.Table:
    """The table with another column of this name."""
    return table.set_column(table.schema.get_field_index(name), name, values)


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
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=1e-9, rel=1e-9), place
    else:
        assert ours == theirs, place


BY_ROWS = ("dimension.distinct", "dimension.mtmm", "panel.alpha", "panel.variance", "panel.generalizability")
IN_PARTS = "not measurable: the table was read in parts, of which only sums were kept"
"""The state of a measurement that needs single records. Contrasts at equal length need them too, and are not there."""


def analysed(table: pa.Table, study: Study, weights: dict[str, float] | None = None) -> tuple[dict, dict]:
    """Return the measurements from the sums and from the rows."""
    sums = sums_of(table, weights=weights)
    rows = mt.table_from_arrow(table, weights=weights, dimensions=DIMENSIONS)
    ours = mt.analyse(sums, study, rng=np.random.default_rng(5))
    theirs = mt.analyse(rows, study, rng=np.random.default_rng(5))
    return {m.id: m for m in ours}, {m.id: m for m in theirs}


def check_equal(table: pa.Table, study: Study | None = None, weights: dict[str, float] | None = None) -> None:
    study = study or make_study()
    ours, theirs = analysed(table, study, weights)
    families = theirs["panel.families[]"]
    assert families.detail["in_parts"] is False
    theirs["panel.families[]"] = replace(families, detail={**families.detail, "in_parts": True})
    theirs = {name: m for name, m in theirs.items() if m.name not in ("length.contrast", "judge.length")}
    assert list(ours) == list(theirs)
    for name, item in theirs.items():
        found = ours[name]
        if item.name in BY_ROWS and item.labels.get("part") != "judge x agent":
            assert (found.state, found.value, found.low) == (IN_PARTS, None, None)
            if item.name == "dimension.distinct":
                assert found.detail == {"p": None, "p_holm": None, "distinct": study.claims.distinct}
            continue
        assert (found.state, found.n, found.n_of, found.method) == (item.state, item.n, item.n_of, item.method), name
        same((found.value, found.low, found.high, found.level), (item.value, item.low, item.high, item.level), name)
        same(dict(found.detail), dict(item.detail), name)


OWN = ("north", "south", None, "elsewhere")
TABLES = {
    "balanced": {}, "unbalanced": {"attend": 0.6}, "agents twice in a cycle": {"attend": 0.7, "repeat": True},
    "one cluster": {"clusters": 1}, "twelve clusters": {"clusters": 12, "cycles": 4, "attend": 0.8},
    "two agents": {"agents": 2}, "one agent": {"agents": 1}, "seven agents": {"agents": 7, "attend": 0.5},
    "formats": {"formats": 2, "clusters": 6, "cycles": 10}, "lengths": {"length": True},
    "whole-number agents": {"names": False}, "siblings": {"judges": SIBLINGS}, "two clusters": {"clusters": 2},
    "one family": {"judges": {"auditor": "north", "reader": "north"}}, "one judge": {"judges": {"auditor": "north"}},
    "one judge, formats": {"judges": {"auditor": "north"}, "formats": 2},
    "fifteen weeks": {"clusters": 15, "cycles": 3},
    "five judges": {"judges": dict(zip("abcde", "abcde", strict=True)), "clusters": 3, "cycles": 4},
    "own families": {"makers": OWN, "attend": 0.8, "clusters": 7},
    "no judge without an interest": {"makers": MAKERS, "agents": 2, "judges": dict(zip("ab", MAKERS, strict=True))},
}  # fmt: skip


@pytest.mark.parametrize("shape", TABLES.values(), ids=TABLES)
def test_the_sums_say_what_the_rows_say(shape):
    check_equal(make_table(**shape), make_study(FEW, shape.get("judges")))


@pytest.mark.parametrize("inference", ['cluster_order = "consecutive"', 'test = "own-variance"'])
@pytest.mark.parametrize("shape", ["unbalanced", "fifteen weeks"])
def test_under_other_tests_too(shape, inference):
    check_equal(make_table(**TABLES[shape]), make_study(FEW + inference))


def test_a_judge_of_an_agents_maker_stands_aside_in_sums_too():
    table = make_table(makers=OWN)
    found = mt.analyse(sums_of(table), make_study(), rng=np.random.default_rng(5))
    own = {m.labels["judge"] for m in found if m.name == "judge.own_family"}
    assert (own, len([m for m in found if m.name == "recusal.contrast"])) == ({"auditor", "reader", "common"}, 4 * 5)
    (families,) = (m for m in found if m.name == "panel.families")
    assert families.detail["unknown"] == ""
    assert list(sums_of(table).agent_families.values()) == ["north", "south", "agent2", "elsewhere"]


def test_one_agent_has_one_maker(tmp_path):
    table, message = make_table(makers=OWN), "one agent has one agent_family"
    late = table.column("agent").to_pylist()[-3]
    for row, agent, size in ((0, "agent0", 50), (0, "agent0", 10_000), (table.num_rows - 3, late, 30)):
        with pytest.raises(InputError, match=rf"agent {agent}: {message} \("):
            read(tmp_path, changed("agent_family", row, "west", table), size)
    with pytest.raises(InputError, match="agent_family: one part has this column and the other has not"):
        sums_of(table) + sums_of(table.drop_columns(["agent_family"]))


def test_shares_of_missing_replies_are_those_of_the_rows():
    """Rows without a score are replies that did not come; what was never asked is no row."""
    table = make_table(attend=0.8, missing=0.1)
    sums, rows = sums_of(table), mt.table_from_arrow(table, dimensions=DIMENSIONS)
    assert sums.missing() == rows.missing()
    allowed = MissingLimits(per_judge=0.05, per_agent=0.05)
    assert sums.excess(allowed) == rows.excess(allowed) != {}
    told = [replace(m, inputs=sums.digest) for m in mt.missing_measurements(rows, {})]
    assert list(mt.missing_measurements(sums, {})) == told
    # The correlation of length and score follows from sums, a slope within agents and cycles does not.
    ours, theirs = analysed(make_table(length=True), make_study())
    assert {m.name for m in theirs.values()} - {m.name for m in ours.values()} == {"length.contrast", "judge.length"}


def complete(table: pa.Table) -> pa.Table:
    """The rows of the trajectories that every judge scored."""
    rows, judges = table.to_pylist(), set(table.column("judge").to_pylist())
    good = {(row["trajectory"], row["judge"]) for row in rows if None not in [row[name] for name in DIMENSIONS]}
    whole = {name for name, _ in good if all((name, judge) in good for judge in judges)}
    return table.filter(pa.array([name in whole for name in table.column("trajectory").to_pylist()]))


def test_what_lacks_a_score_is_in_no_sum_and_counted_by_judge_and_agent():
    table = make_table(attend=0.8, missing=0.1)
    found, whole = sums_of(table), sums_of(complete(table), judges=JUDGES)
    exact(found, replace(whole, replies=found.replies, left_out=found.left_out))
    assert found.left_out == len(set(table.column("trajectory").to_pylist())) - whole.n > 0
    usable = np.zeros_like(found.replies)
    for row in table.to_pylist():
        lost = any(row[name] is None for name in DIMENSIONS)
        usable[sorted(JUDGES).index(row["judge"]), found.agents.index(row["agent"]), int(lost)] += 1
    assert np.array_equal(found.replies, usable)
    assert np.array_equal(found.calls, usable.sum(axis=1))
    assert found.digest != replace(found, replies=found.replies[:, ::-1]).digest


def test_tables_that_are_read_in_rows(tmp_path):
    """A table in which something is missing is to be read whole, and one whose judges have no families."""
    for table, more, message in ((WHOLE, {"leave_out": False}, "some trajectories lack a usable score from some judge"),
                                 (WHOLE.drop_columns(["family"]), {}, "there is no column family")):  # fmt: skip
        with pytest.raises(mt.NotStreamableError, match=message) as caught:
            read(tmp_path, table, **more)
        assert not caught.value.sortable
    exact(read(tmp_path, complete(WHOLE), leave_out=False), sums_of(complete(WHOLE)))


def test_weights_agents_that_never_meet_and_tables_without_cycles():
    check_equal(make_table(attend=0.8), weights={"clarity": 0.5, "evidence": 0.2, "risk": 0.3})
    # Agents that never meet.
    table = make_table(clusters=4)
    agent, cycle = table.column("agent").to_pylist(), table.column("cycle").to_pylist()
    table = table.filter(pa.array([(a < "agent2") == (c % 2 == 0) for a, c in zip(agent, cycle, strict=True)]))
    check_equal(table)
    states = {m.state.partition(":")[0] for m in analysed(table, make_study())[0].values()}
    assert {"never compared", "disconnected"} <= {state.partition(" (")[0] for state in states}
    # Without cycles agents meet in clusters.
    check_equal(make_table(clusters=6, attend=0.7).drop_columns(["cycle"]))
    # Judges with one category.
    table = make_table()
    for fixed, score in (([j == "reader" for j in table.column("judge").to_pylist()], 4), ([True] * table.num_rows, 3)):
        flat = table
        for name in DIMENSIONS:
            flat = put(flat, name, pc.if_else(pa.array(fixed), score, table.column(name)))
        check_equal(flat)


def exact(one: mt.ScoreSums, other: mt.ScoreSums) -> None:
    for name in ("layout", "agents", "clusters", "formats", "left_out", "lengths", "makers", "digest"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("sizes", "lineups", "places", "cycles", "scores", "replies"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one.tables, other.tables, strict=True))


WHOLE = make_table(
    clusters=4, cycles=5, attend=0.7, missing=0.1, formats=2, repeat=True, length=True, makers=("north", None, "x", "y")
)


@given(data=st.data(), paired=st.booleans())
def test_sums_add_up_however_the_table_is_cut(data, paired):
    table = WHOLE if paired else WHOLE.drop_columns(["cycle"])
    key = np.array(table.column("cycle" if paired else "trajectory").to_pylist())
    borders = np.flatnonzero(key[1:] != key[:-1]) + 1
    cuts = sorted(data.draw(st.lists(st.sampled_from(borders.tolist()), unique=True, max_size=6)))
    ends = itertools.pairwise([0, *cuts, table.num_rows])
    parts = [sums_of(table.slice(start, stop - start), judges=JUDGES) for start, stop in ends]
    order, whole = data.draw(st.permutations(parts)), sums_of(table)
    exact(mt.total(order), whole)
    exact(order[0] + mt.total(order[1:]) if len(order) > 1 else order[0], whole)


def test_parts_of_other_panels_do_not_add_up_and_weights_become_whole_numbers():
    one = sums_of(make_table())
    for other, message in ((make_table(judges=SIBLINGS), "do not add up"), (make_table(length=True), "length")):
        with pytest.raises(InputError, match=message):
            one + sums_of(other)
    assert mt.whole_weights(DIMENSIONS, None) == (1, 1, 1)
    assert mt.whole_weights(DIMENSIONS, {"clarity": 2.0, "evidence": 1.0, "risk": 0.0}) == (2, 1, 0)
    for last, message in (({"risk": 2**0.5}, "ratios of whole numbers"), ({}, "no weight for dimension 'risk'")):
        with pytest.raises(InputError, match=message):
            mt.whole_weights(DIMENSIONS, {"clarity": 1.0, "evidence": 1.0, **last})


@pytest.mark.parametrize("rows", [7, 50, 10_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_cycles_reach_over_the_ends_of_row_groups(tmp_path, monkeypatch, rows, threads):
    monkeypatch.setattr("assaymark.metrology.streaming._ROWS", 40)
    exact(read(tmp_path, WHOLE, rows, threads=threads), sums_of(WHOLE))


def test_dictionaries_late_judges_and_named_cycles_are_numbered(tmp_path, monkeypatch):
    coded = WHOLE
    for name in ("agent", "cluster", "judge", "family", "format"):
        coded = put(coded, name, WHOLE.column(name).dictionary_encode())
    risk = [math.nan if v is None else float(v) for v in WHOLE.column("risk").to_pylist()]
    named = put(WHOLE, "risk", pa.array(risk))
    for name in ("cycle", "trajectory"):
        named = put(named, name, pa.array([f"{value:06d}" for value in WHOLE.column(name).to_pylist()]))
    for table in (coded, named):
        exact(read(tmp_path, table, 30), sums_of(WHOLE))
    monkeypatch.setattr("assaymark.metrology.streaming._ROWS", 20)
    table = WHOLE.filter(pa.array([row["judge"] != "skeptic" or row["cycle"] > 10 for row in WHOLE.to_pylist()]))
    exact(read(tmp_path, table, 20), sums_of(table))


def test_rows_out_of_order_are_put_in_order(tmp_path):
    said: list[str] = []
    shuffled = WHOLE.take(pa.array(np.random.default_rng(3).permutation(WHOLE.num_rows)))
    exact(read(tmp_path, shuffled, progress=lambda what, *_: said.append(what)), sums_of(WHOLE))
    assert any("not in the order" in what for what in said)
    assert not (tmp_path / "ordered.parquet").exists()


def changed(name: str, row: int, value: Any, table: pa.Table = WHOLE) -> pa.Table:
    values = table.column(name).to_pylist()
    return put(table, name, pa.array([*values[:row], value, *values[row + 1 :]]))


@pytest.mark.parametrize(("table", "message"), [
    (changed("risk", 4, 6), r"row 5, risk: scores must be in 1..5 \(got 6\)"),
    (changed("risk", 4, 0), r"row 5, risk: scores must be in 1..5 \(got 0\)"),
    (changed("risk", 4, 9_000), r"got 9000"), (changed("agent", 4, None), "row 5, agent: is empty"),
    (changed("cycle", 4, None), "row 5, cycle: is empty"),
    (changed("agent", 4, "other"), "one trajectory has one agent"),
    (changed("family", 4, "other"), "one judge has one family"),
    (WHOLE.drop_columns(["agent"]), "agent: this column is missing"),
    (WHOLE.drop_columns(["risk"]), r"risk: the table has no such column .* it has clarity, evidence\)"),
    (WHOLE.slice(0, 0), "no rows")
])  # fmt: skip
def test_what_is_wrong_is_said(tmp_path, table, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, table)


def test_a_cycle_lies_in_one_cluster_and_a_trajectory_in_one_cycle(tmp_path):
    table = make_table()
    cluster, cycle = table.column("cluster").to_pylist(), table.column("cycle").to_pylist()
    for row in [k for k, c in enumerate(cycle) if c == 3][:3]:
        cluster[row] = "elsewhere"
    again = table.take(pa.array(np.r_[np.arange(3), np.arange(table.num_rows)][::-1]))
    cycle = [99 if k >= table.num_rows else c for k, c in enumerate(again.column("cycle").to_pylist())]
    one, two = "cycle 3: a cycle lies in one cluster", r"trajectory 100: one trajectory has one cycle \(got 2\)"
    for broken, message in (
        (put(table, "cluster", pa.array(cluster)), one),
        (put(again, "cycle", pa.array(cycle)), two),
    ):
        with pytest.raises(InputError, match=message):
            read(tmp_path, broken, 1000)


@pytest.mark.parametrize(("table", "message"), [
    (pa.concat_tables([WHOLE, WHOLE]).sort_by([(n, "ascending") for n in ("cycle", "trajectory", "judge")]), "several"),
    (WHOLE.append_column("replicate", pa.array([1] * WHOLE.num_rows)), "replicate"),
    (WHOLE.append_column("extra", pa.array([2.5] * WHOLE.num_rows)), "not whole")
])  # fmt: skip
def test_what_needs_the_rows_is_said(tmp_path, table, message):
    named = [name for name in (*DIMENSIONS, "extra") if name in table.column_names]
    with pytest.raises(mt.NotStreamableError, match=message):
        read(tmp_path, table, dimensions=named)


@pytest.mark.parametrize("shuffled", [False, True])
def test_columns_that_nobody_named_are_not_read(tmp_path, shuffled):
    table = WHOLE
    for name, value in (("retries", 1), ("seconds", 2.5), ("tags", ["a"])):
        table = table.append_column(name, pa.array([value] * WHOLE.num_rows))
    if shuffled:
        table = table.take(pa.array(np.random.default_rng(3).permutation(table.num_rows)))
    exact(read(tmp_path, table), sums_of(WHOLE))


def test_without_names_there_is_one_score_or_none(tmp_path):
    with pytest.raises(InputError, match=r"--dimensions clarity,evidence,risk.*\(got clarity in column 8"):
        read(tmp_path, WHOLE, dimensions=None)
    one = WHOLE.drop_columns(["clarity", "evidence"]).rename_columns({"risk": "score"})
    exact(read(tmp_path, one, dimensions=None), sums_of(one, dimensions="score"))
    with pytest.raises(InputError, match="no dimension"):
        sums_of(one.drop_columns("score"), dimensions=None)
