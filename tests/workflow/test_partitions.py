"""A folder of partitions measured as the one table that it is, and every way in which it can fall short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_bare_tables import PANEL, agree, bare, make_rows, measure_table, study_of, written

from assaymark.cli import main
from assaymark.engine import Ledger, map_chunks
from assaymark.errors import InputError, PlanError, UnknownNameError
from assaymark.workflow import Computing, MeasuredTable, computing_of
from assaymark.workflow import score_files as bare_tables


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Every Parquet file counts as large, so that both sides are sums."""
    monkeypatch.setattr(bare_tables, "STREAMED_FROM", 1)


def spread(
    folder: Path, rows: list[dict[str, object]], parts: int = 3, form: str = "part={:04}/scores.parquet"
) -> Path:
    for k in range(parts):
        path = folder / form.format(k)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row for row in rows if row["cycle"] % parts == k]), path)
    return folder


def same(one: MeasuredTable, other: MeasuredTable) -> None:
    """Equal in everything but the name of the source."""
    assert replace(one, source="", out=None) == replace(other, source="", out=None)


@pytest.fixture
def table(tmp_path) -> MeasuredTable:
    return measure_table(written(tmp_path, make_rows(), "one.parquet"))


def test_partitions_are_measured_as_the_one_table_they_are_wherever_they_are_summed(tmp_path, table, monkeypatch):
    folder = spread(tmp_path / "many", make_rows())
    same(measure_table(folder), table)
    same(measure_table(spread(tmp_path / "flat", make_rows(), form="{}.parquet")), table)
    same(measure_table(folder, computing=Computing("processes", workers=2)), table)
    with pytest.raises(PlanError, match="only a folder of partitions can be spread"):
        measure_table(tmp_path / "one.parquet", computing=Computing("processes"))
    monkeypatch.setattr(bare_tables, "STREAMED_FROM", 10**9)  # the rows of one file are held in memory
    agree(measure_table(folder), measure_table(tmp_path / "one.parquet"))


def test_what_lacks_a_score_is_left_out_and_the_note_says_so(tmp_path):
    rows = make_rows()
    rows[5]["risk"] = None
    found = measure_table(spread(tmp_path / "many", rows))
    lack = "1 trajectory lacks a usable score from some judge"
    why = "partitions are only summed, while one file is read whole"
    assert found.notes == (f"left out of every number: {lack}, and {why}",)
    assert (found.size.left_out, found.size.trajectories) == (1, 179)
    whole = [row for row in rows if row["trajectory"] != rows[5]["trajectory"]]
    theirs = {item.id: item for item in measure_table(spread(tmp_path / "whole", whole)).measurements}
    for item in found.measurements:
        if not item.name.startswith(("judge.", "missing.")):
            assert (item.value, item.state) == (theirs[item.id].value, theirs[item.id].state)
    shares = {item.id: item.value for item in found.measurements if item.name == "missing.share"}
    judge, agent = rows[5]["judge"], rows[5]["agent"]
    assert shares[f"missing.share[judge={judge}]"] == pytest.approx(1 / 180)
    assert shares[f"missing.share[agent={agent}]"] == pytest.approx(1 / 60 / 3)


def test_a_judge_that_lacks_too_much_stops_the_measuring(tmp_path):
    """Sums hold complete trajectories only: without the rows the judge cannot be left out of them."""
    rows = make_rows()
    for row in rows:
        if (row["judge"], row["agent"], row["cycle"] % 8) == ("skeptic", "ash", 0):
            row["risk"] = None
    told = r"skeptic: 13.3% of its replies on ash are missing, at most 5.0%\); take these judges out, or measure"
    with pytest.raises(PlanError, match=told):
        measure_table(spread(tmp_path / "many", rows))
    found = measure_table(written(tmp_path, rows))
    assert found.size.judges == 2, "one file is read whole, and the others' scores are measured"


def test_other_dimensions_are_other_sums_and_so_are_plans(tmp_path, table):
    folder, out = spread(tmp_path / "many", make_rows()), tmp_path / "out"
    both, one = measure_table(folder, out=out), measure_table(folder, out=out, dimensions=["risk"])
    assert (both.size.dimensions, one.size.dimensions) == (2, 1)
    assert one.notes == ("numeric columns that are not used: clarity",)
    weighted = study_of(extra='[rubric]\nname = "elsewhere"\nweights = {clarity = 2.0, risk = 1.0}')
    same(measure_table(folder, weighted), measure_table(tmp_path / "one.parquet", weighted))
    for extra in ('[records]\nagents = ["ash", "cedar"]', '[records]\nderivations = ["honest", "cell_a"]'):
        with pytest.raises(PlanError, match=r"measure it as one file|cells that the table lacks"):
            measure_table(folder, study_of(extra=extra))


def test_without_cycles_and_in_any_order(tmp_path):
    folder = spread(tmp_path / "many", make_rows()[::-1])
    for path in folder.rglob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns("cycle"), path)
    same(measure_table(folder), measure_table(written(tmp_path, bare(make_rows()), "one.parquet")))


def test_what_is_summed_is_kept_and_a_changed_file_is_summed_again(tmp_path, table, monkeypatch):
    folder, out = spread(tmp_path / "many", make_rows()), tmp_path / "out"
    same(measure_table(folder, out=out), table)
    summed: list[int] = []

    def counted(*a, **k):
        return map_chunks(*a, **{**k, "progress": lambda _, done, n: summed.append(n - done)})

    monkeypatch.setattr("assaymark.engine.map_chunks", counted)
    folder = folder.rename(tmp_path / "moved")
    same(measure_table(folder, out=out), table)
    assert summed == [0]
    path = folder / "part=0001" / "scores.parquet"
    pq.write_table(pq.read_table(path).slice(9), path)
    changed = measure_table(folder, out=out)
    assert summed == [0, 1, 0]
    assert changed.size.trajectories == table.size.trajectories - 3
    with Ledger.open(out / "partitions" / "ledger.db") as ledger:
        assert ledger.verify() > 0


def test_everything_wrong_is_told_at_once(tmp_path):
    (tmp_path / "_metadata.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="no partitions here"):
        measure_table(tmp_path)
    folder = spread(tmp_path / "many", make_rows(), parts=7)
    files = sorted(folder.rglob("*.parquet"))
    tables = [pq.read_table(path) for path in files]
    files[1].write_bytes(files[1].read_bytes()[:-9])
    files[2].write_bytes(b"no table")
    pq.write_table(tables[3].drop_columns("risk"), files[3])
    pq.write_table(pa.concat_tables([tables[0].slice(0, 9), tables[4]]), files[4])
    only = [k for k, judge in enumerate(tables[5].column("judge").to_pylist()) if judge != "reader"]
    pq.write_table(tables[5].take(only), files[5])
    pq.write_table(tables[6].set_column(8, "risk", pa.array([9] * tables[6].num_rows)), files[6])
    with pytest.raises(InputError) as caught:
        measure_table(folder, out=tmp_path / "out")
    told = {problem.where.split("/")[0]: problem.what for problem in caught.value.problems if problem.where}
    damaged = "is no Parquet file, or it is damaged"
    wanted = (damaged, damaged, "risk: the table has no", "cycle 0 is in part=0000", "not here: reader of south", "")
    assert set(told) == {f"part={k:04}" for k in range(1, 7)}
    assert [what for k, what in enumerate(wanted, 1) if what not in told[f"part={k:04}"]] == []
    assert "risk: usable scores lie in 1..5 (got 9)" in str(caught.value)
    assert not (tmp_path / "out" / "verdicts.json").exists()


def test_options_that_do_not_go_together():
    assert computing_of(None, None, None, None) is None
    assert computing_of(None, None, "auto", None) == Computing("ray", None, "auto")
    with pytest.raises(UnknownNameError, match="Did you mean 'processes'"):
        computing_of("process", None, None, None)
    with pytest.raises(InputError) as caught:
        computing_of("serial", 2, "auto", float("nan"))
    assert [problem.where for problem in caught.value.problems] == ["--workers", "--ray", "--deadline"]


def test_the_command_line(tmp_path, capsys):
    measure = ["measure", "--judgments", str(spread(tmp_path / "many", make_rows(clusters=3), parts=2))]
    out = tmp_path / "out"
    assert main([*measure, "--dimensions", "clarity,risk", "--workers", "2", "--out", str(out)]) == 0
    assert f"scored by {len(PANEL)} judges" in capsys.readouterr().out
    assert (out / "verdicts.json").is_file()
    assert main([*measure, "--compute", "raj"]) == 1
    assert capsys.readouterr().err.startswith("assaymark: unknown way to compute 'raj'. Did you mean 'ray'?")
