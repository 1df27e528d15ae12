"""Bare tables of scores: the same arrays as from judgments, and every problem of a bad one at once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark import metrology as mt
from assaymark.errors import InputError
from assaymark.metrology import columns
from assaymark.metrology.columns import KNOWN
from assaymark.metrology.scores import MISSING_SCORE
from assaymark.records import Decision, Judgment, Measurement

DIMENSIONS = ("clarity", "evidence", "risk")
table_from_arrow = partial(columns.table_from_arrow, dimensions=DIMENSIONS)
read_scores = partial(columns.read_scores, dimensions=["style", "risk"])


def as_rows(decisions: Sequence[Decision], judgments: Sequence[Judgment], lengths=None) -> list[dict[str, Any]]:
    known, rows = {one.record_id: one for one in decisions}, []
    for call in judgments:
        record = known[call.trajectory]
        rows.append({
            "trajectory": call.trajectory, "agent": record.agent.id, "cluster": record.cluster, "judge": call.judge,
            "family": call.family, "trial": call.trial, "cycle": record.cycle, "format": record.format,
            "replicate": record.replicate, **{name: call.scores.get(name) for name in DIMENSIONS},
            **({} if lengths is None else {"length": lengths[call.trajectory]}),
        })  # fmt: skip
    return rows


def same_table(ours: mt.ScoreTable, theirs: mt.ScoreTable) -> None:
    names = ("trajectories", "agents", "cycles", "clusters", "formats", "judges", "families", "dimensions", "left_out")
    for name in names:
        assert getattr(ours, name) == getattr(theirs, name), name
    names = ("agent", "cycle", "cluster", "format", "scores", "weights", "mean", "first", "lengths", "lacking")
    pairs = {name: (getattr(ours, name), getattr(theirs, name)) for name in names}
    names = ("values", "agent", "cycle", "cluster", "lengths")
    pairs |= {f"grades.{name}": (getattr(ours.grades, name), getattr(theirs.grades, name)) for name in names}
    for name, (mine, wanted) in pairs.items():
        assert (mine is None) == (wanted is None), name
        assert mine is None or (mine.dtype == wanted.dtype and np.array_equal(mine, wanted, equal_nan=True)), name
    assert ours.grades.trajectories == theirs.grades.trajectories
    assert (ours.missing(), dict(ours.calls)) == (theirs.missing(), dict(theirs.calls))
    assert list(ours.trials) == list(theirs.trials)
    for judge, trials in theirs.trials.items():
        assert (ours.trials[judge].shape, ours.trials[judge]) == (trials.shape, pytest.approx(trials, abs=1e-12))
    for found, wanted in ((ours.replicates, theirs.replicates), (ours.repeats or {}, theirs.repeats or {})):
        assert list(found) == list(wanted)
        for agent, groups in wanted.items():
            assert [np.shape(group) for group in found[agent]] == [np.shape(group) for group in groups]
            for one, other in zip(found[agent], groups, strict=True):
                assert one == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_bare_table_is_the_table_of_its_judgments(make, study, one_decision, one_judgment, trials, share):
    """Some calls are without an answer."""
    decisions, judgments = make(trials=trials, attend=0.8)
    again = [one_decision("ash", cycle, f"week{cycle // 10:02d}", replicate=2) for cycle in range(0, 20, 3)]
    rng, lost = np.random.default_rng(4), np.random.default_rng(2)
    for one in again:
        for judge in ("auditor", "reader", "skeptic"):
            scores = dict(zip(DIMENSIONS, rng.integers(1, 6, 3).astype(float), strict=True))
            judgments.append(one_judgment(one.record_id, judge, scores))
    judgments = [one_judgment(j.trajectory, j.judge, None, trial=j.trial, reason=MISSING_SCORE) if lost.random() < share
                 else j for j in judgments]  # fmt: skip
    lengths = {one.record_id: 40 + k for k, one in enumerate([*decisions, *again])}
    rows = as_rows([*decisions, *again], judgments, lengths)
    rng.shuffle(rows)
    weights = {"clarity": 2.0, "evidence": 1.0, "risk": 1.0}
    ours = table_of(rows, weights=weights)
    theirs = mt.score_table(judgments, [*decisions, *again], weights=weights, lengths=lengths)
    same_table(ours, theirs)
    same_table(mt.gated(ours, study(), {"auditor": False}), mt.gated(theirs, study(), {"auditor": False}))


def table_of(rows, **more):
    return table_from_arrow(pa.Table.from_pylist(rows), **more)


def test_equal_tables_have_equal_digests_whatever_their_order(make, study):
    decisions, judgments = make()
    rows = as_rows(decisions, judgments)
    one = table_of(rows)
    other = [rows[0] | {"risk": 1.0 if rows[0]["risk"] != 1.0 else 2.0}, *rows[1:]]
    assert table_of(rows[::-1]).digest == one.digest != table_of(other).digest
    # The analysis is the same.
    tables = (one, mt.score_table(judgments, decisions))
    ours, theirs = (mt.analyse(table, study(), rng=np.random.default_rng(1)) for table in tables)
    assert [(m.id, m.value, m.n, m.state) for m in ours] == [(m.id, m.value, m.n, m.state) for m in theirs]
    # Without cycles each cluster is one.
    table = table_of([{k: v for k, v in row.items() if k != "cycle"} for row in rows])
    assert table.cycles == table.clusters
    assert np.array_equal(table.cycle, table.cluster)
    # Only honest rows enter.
    honest = [row | {"derivation": "honest"} for row in rows]
    cells = [{**row, "trajectory": f"cell {row['trajectory']}", "derivation": "cell_a"} for row in rows[:30]]
    same_table(table_of(honest + cells), one)


def test_rows_of_a_bare_table_that_are_not_there_were_not_asked_for():
    """One judge has no score of one agent at all, another never saw a record; NaN, text and a gap in one dimension."""
    rows = [dict(row, style=2.0) for row in NAMED.to_pylist() if (row["trajectory"], row["judge"]) != ("t6", "bb")]
    for row in rows:
        if row["judge"] == "a" and row["agent"] == "elm":
            row["risk"] = float("nan")
        if (row["trajectory"], row["judge"]) == ("t0", "bb"):
            row["style"] = None
    texts = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
    for table in (pa.Table.from_pylist(rows), pa.Table.from_pylist(texts)):
        found = table_from_arrow(table, dimensions="risk,style")
        assert found.trajectories == ("t2", "t4")
        assert found.grades.trajectories == ("t2", "t4", "t0", "t1", "t3", "t5", "t6", "t7")
        nan = np.isnan(found.grades.values)
        assert np.array_equal(nan.any(axis=2), nan.all(axis=2))
        assert nan[2:, :, 0].tolist() == [[False, True], *[[True, False]] * 3, [False, True], [True, False]]
        shares = {("a", "ash"): 0.0, ("a", "elm"): 1.0, ("bb", "ash"): 1 / 3, ("bb", "elm"): 0.0}
        assert found.missing() == ({"a": 4 / 8, "bb": 1 / 7}, shares)
    rows[0]["risk"] = float("inf")
    with pytest.raises(InputError, match=r"row 1, risk: scores must be in 1..5 \(got inf\)"):
        table_of(rows, dimensions="risk,style")


def test_grades_are_in_the_digest_of_a_bare_table_and_weights_fit_it():
    def digest(**values: Any) -> str:
        rows = changed(1, risk=None).to_pylist()
        rows[0] |= values
        rows[1] |= {name: value for name, value in values.items() if name == "cluster"}
        return table_of(rows, dimensions="risk,style").digest

    assert len({digest(), digest(risk="4"), digest(risk="5"), digest(cluster="w9")}) == 4
    for weights, message in (({"style": 1.0}, "(?s)no weight for dimension 'risk'.*'style' is not a dimension"),
                             ({"risk": 0.0}, "not all zero")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            mt.whole_weights(("risk",), weights)


ROWS = [{"trajectory": f"t{k}", "agent": agent, "cluster": f"2026-01-0{1 + k // 4}", "judge": judge, "family": family,
    "trial": 1, "risk": None if (k, judge) == (3, "a") else float(1 + (k + len(judge)) % 5), "style, as it is": 2.5}
    for k, agent in enumerate(["ash", "elm"] * 4) for judge, family in (("a", "north"), ("bb", "south"))]  # fmt: skip
TABLE = pa.Table.from_pylist(ROWS)
NAMED = TABLE.rename_columns({"style, as it is": "style"})
K = NAMED.num_rows


def text(table: pa.Table, delimiter: str = ",") -> bytes:
    sink = pa.BufferOutputStream()
    pacsv.write_csv(table, sink, pacsv.WriteOptions(delimiter=delimiter))
    return sink.getvalue().to_pybytes()


def write_ipc(path: Path, *, stream: bool) -> None:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink, new(sink, NAMED.schema) as writer:
        writer.write_table(NAMED)


WRITERS = {
    "comma": lambda path: path.write_bytes(text(NAMED)), "semicolon": lambda path: path.write_bytes(text(NAMED, ";")),
    "tab": lambda path: path.write_bytes(text(NAMED, "\t")), "bar": lambda path: path.write_bytes(text(NAMED, "|")),
    "byte order mark": lambda path: path.write_bytes(b"\xef\xbb\xbf" + text(NAMED)),
    "carriage returns": lambda path: path.write_bytes(text(NAMED).replace(b"\n", b"\r\n")),
    "JSON lines": lambda path: path.write_text("".join(json.dumps(row) + "\n" for row in NAMED.to_pylist())),
    "Parquet": lambda path: pq.write_table(NAMED, path),
    "Feather": lambda path: feather.write_feather(NAMED, str(path)),
    "Arrow file": lambda path: write_ipc(path, stream=False), "Arrow stream": lambda path: write_ipc(path, stream=True),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_kind_of_file_and_no_numeric_column_becomes_a_dimension_silently(tmp_path, write):
    path = tmp_path / "scores"
    write(path)
    found = read_scores(path)
    assert found.equals(read_scores(NAMED))
    assert found.column("cluster").to_pylist()[0] == "2026-01-01"
    with pytest.raises(InputError, match="--dimensions risk,style") as caught:
        columns.read_scores(path)
    (problem,) = caught.value.problems
    assert problem.what.endswith("(got risk in column 7, style in column 8)")


def test_compressed_text_arrow_readers_and_the_choice_of_dimensions(tmp_path):
    (tmp_path / "scores.csv.gz").write_bytes(gzip.compress(text(NAMED)))
    reader = pa.RecordBatchReader.from_batches(NAMED.schema, NAMED.to_batches())
    for source in (tmp_path / "scores.csv.gz", reader):
        assert read_scores(source).equals(read_scores(NAMED))
    for kind in ("x", 3, [1]):
        for dimensions in (["style", "risk"], " risk,style "):
            assert read_scores(wider(remark=[kind] * K), dimensions=dimensions).equals(read_scores(NAMED))
    with pytest.raises(InputError, match=r"must be a path.*got int"):
        read_scores(3)  # type: ignore[arg-type]


def test_a_checked_table_says_which_columns_are_its_dimensions(tmp_path):
    once = read_scores(NAMED)
    assert columns.read_scores(once).equals(once)
    pq.write_table(once.append_column("retries", pa.array(range(K))), tmp_path / "checked")
    again = columns.read_scores(tmp_path / "checked")
    assert again.equals(once)
    assert columns.table_from_arrow(again).dimensions == ("risk", "style")
    hostile = NAMED.replace_schema_metadata({"assaymark.dimensions": b"\xff,,risk,trial"})
    with pytest.raises(InputError, match=r"3 problems(?s:.)*no such column(?s:.)*trial: this name is not available"):
        columns.read_scores(hostile)


SCORE = NAMED.drop_columns("style").rename_columns({"risk": "score"})


@pytest.mark.parametrize("name", ["score", "rating", "grade"])
def test_the_one_score_needs_no_name(name):
    one = SCORE.rename_columns({"score": name})
    beside = one.append_column("note", pa.array(["fine"] * K)).append_column("gone", pa.array(["n/a"] * K))
    texts = pa.Table.from_pylist([{k: None if v is None else str(v) for k, v in r.items()} for r in one.to_pylist()])
    assert {columns.ScoreColumns.of(table).dimensions for table in (one, beside, texts)} == {(name,)}
    # A score that is no number is an error of that score, and not a table without one.
    values = texts.column(name).to_pylist()
    broken = texts.set_column(6, name, pa.array([*values[:2], "inf", *values[3:]]))
    with pytest.raises(InputError, match=f"row 3, {name}: text in a column of scores \\(got 'inf'\\)"):
        columns.read_scores(broken)


@pytest.mark.parametrize("beside", [
    pa.array(range(K)), pa.array([str(k) for k in range(K)]), pa.array(["+1.5", "", "NaN", *[" 2 "] * (K - 3)]),
    pa.array([float("nan")] * K), pa.array([Decimal("1.5")] * K), pa.array(["3"] * K).dictionary_encode(),
    pa.array([2] * K, type=pa.uint8()).dictionary_encode()
])  # fmt: skip
def test_any_numeric_column_beside_the_score_has_to_be_settled(beside):
    one = SCORE.append_column("retries", beside)
    with pytest.raises(InputError, match=r"got score in column 7, retries in column 8"):
        columns.read_scores(one)
    found = columns.ScoreColumns.of(one, "scores", ["score"])
    assert (found.dimensions, found.unused, found.only(found.usable).unused) == (("score",), ("retries",), ("retries",))


def test_columns_of_other_names_and_two_that_are_called_scores():
    for name in ("risk", "Score", "scores", "score_2"):
        with pytest.raises(InputError, match=f"--dimensions {name}, or in rubric.weights"):
            columns.read_scores(SCORE.rename_columns({"score": name}))
    two = NAMED.rename_columns({"risk": "score", "style": "rating"})
    with pytest.raises(InputError, match="got score in column 7, rating in column 8"):
        columns.read_scores(two)
    worded = two.set_column(7, "rating", pa.array(["good"] * K))
    assert columns.ScoreColumns.of(worded).dimensions == ("score",)
    with pytest.raises(InputError, match=r"row 1, rating: text in a column of scores"):
        columns.read_scores(worded, dimensions=["rating"])


def test_everything_wrong_with_the_names_is_told_at_once():
    table = wider(flag=[True] * K, note=["fine"] * K, aggregate=3)
    wanted = ["risk", "tone", "trial", "cycle", "flag", "note", "aggregate", "", "risk"]
    with pytest.raises(InputError) as caught:
        columns.read_scores(table, dimensions=wanted)
    told = [str(problem) for problem in caught.value.problems]
    shadowed = [f"{name}: this name is not available for a dimension" for name in ("trial", "cycle", "aggregate")]
    for part in (
        "tone: the table has no such column for a dimension (beside the documented columns it has risk, style, flag",
        *shadowed, "dimensions: the table has no such column", "risk: this dimension is named more than once",
        "flag: must hold scores (got bool)", "row 1, note: text in a column of scores (got 'fine')",
    ):  # fmt: skip
        assert any(one.startswith(part) for one in told), part
    # Many numeric columns are counted.
    with pytest.raises(InputError, match=r"d17,\.\.\., or .* d17 in column 26 and 32 more\)"):
        columns.read_scores(wider(**{f"d{k}": 1 for k in range(50)}))
    # No names are no dimensions.
    for named in ([], ()):
        with pytest.raises(InputError, match="no dimension"):
            columns.read_scores(NAMED, dimensions=named)


def test_no_table_at_all(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_scores(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_scores(tmp_path)


def changed(row: int, **values: Any) -> pa.Table:
    """A table of texts, as a CSV gives it, with some values of one row changed."""
    rows = [{k: None if v is None else str(v) for k, v in one.items()} for one in NAMED.to_pylist()]
    rows[row] |= values
    return pa.Table.from_pylist(rows)


def wider(**columns: Any) -> pa.Table:
    table = NAMED
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values if isinstance(values, list) else [values] * table.num_rows))
    return table


@pytest.mark.parametrize(("table", "message"), [
    (NAMED.drop_columns(["agent", "cluster"]), r"2 problem(?s:.)*agent: this column is missing(?s:.)*cluster: this"),
    (NAMED.rename_columns({"judge": "Judge"}), r"judge: this column is missing .*is it 'Judge'\?"),
    (NAMED.drop_columns(["risk", "style"]), "no dimension"), (NAMED.slice(0, 0), "no rows"),
    (NAMED.rename_columns({"risk": "style"}), r"style: a column name must be unique \(got 2 times\)"),
    (NAMED.rename_columns({"risk": "aggregate"}), "aggregate: this name is not available"),
    (NAMED.rename_columns({"risk": "a=b"}), "names of dimensions have"), (TABLE, "names of dimensions have"),
    (changed(0, risk="6"), r"row 1, risk: scores must be in 1..5 \(got '6'\)"),
    (changed(0, risk="0.5"), r"got '0.5'"),
    (changed(0, risk="inf"), r"row 1, risk: text in a column of scores \(got 'inf'\)"),
    (wider(x=[float("inf")] * K), r"row 1, x: scores must be in 1..5 \(got inf\)"),
    (changed(2, risk="four"), r"row 3, risk: text in a column of scores \(got 'four'\)"),
    (changed(2, risk="4,5"), "text in a column of scores"),
    (changed(2, trial="one"), r"row 3, trial: text in a column of whole numbers \(got 'one'\)"),
    (changed(2, trial="1.5"), r"row 3, trial: must be a whole number of at least 1 \(got '1.5'\)"),
    (changed(2, trial=None), r"row 3, trial: must be a whole number of at least 1 \(got nothing\)"),
    (changed(2, agent=None), "row 3, agent: is empty"),
    (changed(2, judge="a|b"), r"judge: names have 1 to 120 characters.*got 'a\|b'"),
    (changed(2, judge="aggregate"), "not available as a judge name"),
    (changed(2, family="west"), r"judge a: one judge has one family \(got north, west\)"),
    (changed(3, agent="oak"), r"trajectory t1: one trajectory has one agent \(got elm, oak\)"),
    (changed(3, cluster="w9"), r"trajectory t1: one trajectory has one cluster"),
    (changed(3, judge="a", family="north"), r"row 4: a second result for t1, a, trial 1"),
    (wider(cycle=[f"c{k}" for k in range(K)]), "one trajectory has one cycle"),
    (wider(cycle="c"), r"cycle c: one cycle has one cluster \(got 2026-01-01, 2026-01-02\)"),
    (wider(length=list(range(K))), "one trajectory has one length"),
    (wider(length=-1), r"must be a whole number of at least 0 \(got -1\)"),
    (wider(replicate=list(range(1, K + 1))), "one trajectory has one replicate"),
    (wider(agent_family=[f"f{k}" for k in range(K)]), "one agent has one agent_family"),
    (wider(derivation="made up"), r"(?s)derivation: must be one of honest.*no row is honest"),
    (wider(risk2=[[1]] * K), r"risk2: must hold scores \(got list"),
    (wider(cycle=[[1]] * K), r"cycle: must be text or whole numbers"),
    (wider(risk2=pa.nulls(K).to_pylist()), "no row has a score on every dimension")
])  # fmt: skip
def test_what_is_wrong_is_said(table, message):
    named = [name for name in dict.fromkeys(table.column_names) if name not in KNOWN]
    with pytest.raises(InputError, match=message):
        read_scores(table, dimensions=named)


def test_all_problems_at_once_and_no_more_than_twenty():
    rows = [{**row, "risk": "high"} for row in changed(0).to_pylist()] * 10
    rows = [{**row, "trajectory": f"t{k}"} for k, row in enumerate(rows)]
    rows[0]["agent"] = None
    with pytest.raises(InputError) as caught:
        read_scores(pa.Table.from_pylist(rows))
    first, *lines = str(caught.value).splitlines()
    assert first.endswith(f"{len(rows) + 1} problems")
    assert (len(lines), lines[-1]) == (21, f"  and {len(rows) + 1 - 20} more")
    # Missing scores are calls without an answer.
    for word in ("", "NaN", "na", "null", " "):
        table = table_from_arrow(changed(0, risk=word), dimensions=["risk", "style"])
        assert (table.calls["a"].reasons, table.left_out) == ({MISSING_SCORE: 2}, ("t0", "t3"))


CELLS = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["1", "2.5", "nan", "-1", "1e9", "a"]))
NAMES = st.sampled_from(["trajectory", "agent", "cluster", "judge", "family", "trial", "risk", "cycle", "length"])


@given(st.lists(st.dictionaries(NAMES, CELLS), min_size=1, max_size=6))
def test_any_text_is_a_table_or_an_input_error(rows):
    names = {k for row in rows for k in row}
    table = pa.table({k: pa.array([row.get(k) for row in rows], type=pa.string()) for k in names})
    try:
        found = read_scores(table, dimensions=["risk"])
    except InputError:
        return
    assert columns.table_from_arrow(found).judges


def test_measurements_survive_arrow(make, study, tmp_path):
    decisions, judgments = make()
    found = mt.analyse(mt.score_table(judgments, decisions), study(), rng=np.random.default_rng(1))
    table = mt.measurements_to_arrow(found)
    assert mt.measurements_from_arrow(table) == found
    pq.write_table(table, tmp_path / "measurements.parquet")
    assert mt.measurements_from_arrow(pq.read_table(tmp_path / "measurements.parquet")) == found
    # States survive, and missing columns are named.
    item = Measurement(name="x", labels={}, value=None, n=0, n_of="", method="", state="undefined: nothing")
    table = mt.measurements_to_arrow([item])
    assert mt.measurements_from_arrow(table) == (item,)
    assert mt.measurements_from_arrow(mt.measurements_to_arrow([])) == ()
    with pytest.raises(InputError, match="detail: this column is missing"):
        mt.measurements_from_arrow(table.drop_columns(["detail"]))
