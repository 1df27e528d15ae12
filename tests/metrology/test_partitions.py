"""Partitions of a table: their bytes, and what keeps them from being parts of one table."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.metrology import streaming
from assaymark.metrology.streaming import Partition, misfits, partition_sums, read_partition, runs_of, to_bytes

FAMILIES = {"auditor": "north", "reader": "south", "skeptic": "east"}
DIMENSIONS = ["clarity", "risk"]
sums_of = partial(streaming.sums_of, dimensions=DIMENSIONS)


def rows(cycles=range(6), *, names=tuple(FAMILIES), **columns) -> pa.Table:
    keys = [(c, agent, judge) for c in cycles for agent in ("ash", "elm") for judge in names]
    return pa.table(
        {
            "trajectory": [2 * c + (agent == "elm") for c, agent, _ in keys],
            "agent": [agent for _, agent, _ in keys],
            "cluster": [f"week{c % 3}" for c, _, _ in keys],
            "judge": [judge for _, _, judge in keys],
            "family": [FAMILIES[judge] for _, _, judge in keys],
            "trial": [1] * len(keys),
            "cycle": [c for c, _, _ in keys],
            "clarity": [1 + (3 * c + len(agent + judge)) % 5 for c, agent, judge in keys],
            "risk": [1 + (c + len(judge)) % 5 for c, _, judge in keys],
            **{name: [value] * len(keys) for name, value in columns.items()},
        }
    )


def given_of(folder, table: pa.Table, name: str = "scores.parquet") -> dict[str, object]:
    pq.write_table(table, folder / name, row_group_size=7)
    named = [one for one in DIMENSIONS if one in table.column_names]
    return {"path": str(folder / name), "weights": None, "dimensions": named, "threads": 1}


def read(folder, table: pa.Table, name: str = "scores.parquet") -> Partition:
    return read_partition(partition_sums(given_of(folder, table, name)))


@pytest.mark.parametrize("more", [{}, {"length": 3}, {"format": "long"}])
def test_sums_survive_their_bytes(tmp_path, more):
    table = rows(**more)
    found = read(tmp_path, table)
    assert found.sums.digest == sums_of(table).digest
    for field in fields(found.sums):
        one, other = getattr(found.sums, field.name), getattr(sums_of(table), field.name)
        if field.name != "tables" and not isinstance(one, np.ndarray):
            assert one == other, field.name
    assert found.columns == tuple(sorted(table.column_names))
    assert (found.key, found.runs.tolist(), found.names) == ("cycle", [[0, 5]], ())
    assert to_bytes(found) == partition_sums(given_of(tmp_path, table))


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.float64()])
def test_ids_that_are_no_whole_numbers(tmp_path, kind):
    table = rows(range(3))
    named = table.column("cycle").cast(pa.string()) if kind != pa.float64() else table.column("cycle")
    column = named.dictionary_encode() if pa.types.is_dictionary(kind) else named.cast(kind)
    found = read(tmp_path, table.set_column(6, "cycle", column))
    assert found.names == ("0", "1", "2")
    assert found.sums.digest == sums_of(table).digest


def test_without_cycles_trajectories_are_what_lies_in_one_partition(tmp_path):
    found = read(tmp_path, rows(range(4, 6)).drop_columns("cycle"))
    assert (found.key, found.runs.tolist()) == ("trajectory", [[8, 11]])


def test_what_differs_is_named(tmp_path):
    text = rows(range(6, 8))
    text = text.set_column(6, "cycle", text.column("cycle").cast(pa.string()))
    partitions = {
        "a": read(tmp_path, rows()),
        "b": read(tmp_path, rows(range(6, 8), names=("auditor", "reader"))),
        "c": read(tmp_path, rows(range(8, 9), length=4).drop_columns("risk")),
        "d": read(tmp_path, text),
        "e": read(tmp_path, rows(range(9, 12))),
    }
    assert list(map(str, misfits(partitions))) == [
        "b: other judges than in a (not here: skeptic of east)",
        "c: other columns than in a (not here: risk; only here: length)",
        "d: cycle holds text here and whole numbers in a",
    ]


def test_text_ids_in_two_partitions(tmp_path):
    table = rows()
    text = table.set_column(6, "cycle", table.column("cycle").cast(pa.string()))
    partitions = {"a": read(tmp_path, text), "b": read(tmp_path, text.slice(30))}
    assert list(map(str, misfits(partitions))) == ["b: cycle 5 is in a too; each cycle lies in one partition"]


@given(st.lists(st.sets(st.integers(-5, 30), min_size=1), min_size=1, max_size=5))
def test_shared_ids_are_those_of_the_slow_way(sets):
    whole = sums_of(rows())
    partitions = {
        f"p{k}": Partition(whole, ("cycle",), runs_of(np.array(sorted(ids))), ()) for k, ids in enumerate(sets)
    }
    told = misfits(partitions)
    pairs = {(f"p{a}", f"p{b}"): sets[a] & sets[b] for b in range(len(sets)) for a in range(b) if sets[a] & sets[b]}
    assert bool(told) == bool(pairs)
    for problem in told:
        value, _, rest = problem.what.removeprefix("cycle ").partition(" is in ")
        assert int(value) in pairs[rest.split()[0], problem.where]
    # Every partition that shares anything is named, beside one that it shares it with or after another.
    named = {word for problem in told for word in (problem.where, problem.what.split(" is in ")[1].split()[0])}
    assert {name for pair in pairs for name in pair} == named


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "is no Parquet file, or it is damaged"),
        (lambda _: b"no table", "is no Parquet file, or it is damaged"),
        (lambda _: b"", "is no Parquet file, or it is damaged"),
    ],
)
def test_damage_is_an_error_with_the_name_of_the_file(tmp_path, damage, message):
    given = given_of(tmp_path, rows())
    path = tmp_path / "scores.parquet"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message) as caught:
        partition_sums(given)
    assert caught.value.source == str(path)


def test_a_file_that_is_gone(tmp_path):
    with pytest.raises(InputError, match="no such file where it is to be read"):
        partition_sums({**given_of(tmp_path, rows()), "path": str(tmp_path / "gone.parquet")})


def test_what_lacks_a_score_is_left_out_and_counted(tmp_path):
    table = rows()
    risk = [None, *table.column("risk").to_pylist()[1:]]
    found = read(tmp_path, table.set_column(8, "risk", pa.array(risk))).sums
    assert (found.n, found.left_out) == (11, 1)
    assert found.replies[:, :, 1].tolist() == [[1, 0], [0, 0], [0, 0]]


def test_rows_that_are_needed_are_said_to_be(tmp_path):
    with pytest.raises(InputError, match="there is a column replicate, so its rows are needed"):
        partition_sums(given_of(tmp_path, rows(replicate=1)))


def test_the_sums_of_the_same_rows_have_the_same_bytes_whatever_the_order(tmp_path):
    table = rows()
    mixed = table.take(np.random.default_rng(3).permutation(table.num_rows))
    one, other = read(tmp_path, table), read(tmp_path, mixed)
    assert to_bytes(one) == to_bytes(replace(other, columns=one.columns))
