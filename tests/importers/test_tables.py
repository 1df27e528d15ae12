"""Rows of arbitrary files: every format and compression, editor line numbers, one clear message for other files."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import types
import zipfile
from types import SimpleNamespace as Made
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from pyarrow import feather
from pyarrow import parquet as pq

from assaymark.errors import InputError
from assaymark.importers import FORMATS, read_rows

PLAIN = [{"item": "q1", "agent": "ash", "score": "4"}, {"item": "q2", "agent": "elm", "score": None}]


def delimited(mark: str) -> bytes:
    return "item,agent,score\nq1,ash,4\nq2,elm,".replace(",", mark).encode()


def packed(write: Any, table: pa.Table | None = None) -> bytes:
    sink = io.BytesIO()
    write(table or pa.Table.from_pylist(PLAIN), sink)
    return sink.getvalue()


def stream(table: pa.Table, sink: io.BytesIO) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def zipped(*names: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as held:
        for name in names:
            held.writestr(name, "x")
    return sink.getvalue()


def lines(objects: list[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, objects)).encode()


COLUMNS = {key: [one[key] for one in PLAIN] for key in PLAIN[0]}
KINDS = {
    "CSV": (delimited(","), "line"), "CSV with semicolons": (delimited(";"), "line"),
    "CSV with bars": (b"\xef\xbb\xbf" + delimited("|").replace(b"\n", b"\r\n"), "line"),
    "TSV": (delimited("\t"), "line"), "JSON lines": (lines(PLAIN).replace(b"\n", b"\n\n"), "line"),
    "JSON": (json.dumps(PLAIN, indent=1).encode(), "record"), "JSON, columns": (lines([COLUMNS]), "record"),
    "JSON, pandas": (lines([{key: {"0": a, "1": b} for key, (a, b) in COLUMNS.items()}]), "record"),
    "JSON, split": (lines([{"columns": [*COLUMNS], "data": [[*one.values()] for one in PLAIN]}]), "record"),
    "JSON, by index": (lines([{str(k): one for k, one in enumerate(PLAIN)}]), "record"),
    "JSON, inside": (lines([{"version": 1, "data": {"rows": PLAIN}}]), "record"),
    "Parquet": (packed(pq.write_table), "record"), "Arrow": (packed(feather.write_feather), "record"),
    "Arrow, stream": (packed(stream), "record"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_in_every_packing_gives_the_same_rows(kind, tmp_path):
    data, unit = KINDS[kind]
    path = tmp_path / "scores.txt"
    for pack in (bytes, gzip.compress, zstandard.compress):
        path.write_bytes(pack(data))
        for rows in (read_rows(path), read_rows(pack(data), "scores")):
            assert rows.table.to_pylist() == PLAIN
            assert (rows.format, rows.unit) == (kind.partition(", ")[0], unit)
            first = {"line": 2, "record": 1}[unit] - (kind == "JSON lines")
            assert rows.line.tolist() == [first, first + 1 + (kind == "JSON lines")]
            assert rows.where(0) == f"{unit} {first}"
    if kind == "JSON, inside":
        assert rows.said == ("rows are the list data.rows; not read: version",)


def test_lines_are_those_of_an_editor():
    for text, column, line, cells in (
        (b'\n\na,b\n1,"two\nlines, ""quoted"""\n\n3,4\r\n"x","y"', "b", [4, 7, 8], ['two\nlines, "quoted"', "4", "y"]),
        # a quote within a cell is for the strict reader, which counts alike
        (b'a,b\n5" pipe,x\n"two\nlines",y\nz,w\n', "a", [2, 3, 5], ['5" pipe', "two\nlines", "z"]),
        (b"a,b\r1,2\r3,4\r", "a", [2, 3], ["1", "3"]), (b"a,b\n1," + b"x" * 200_000, "b", [2], ["x" * 200_000]),
        (b"sep=;\r\na;b,c,d\r\n1;2\r\n", "b,c,d", [3], ["2"]),
    ):  # fmt: skip
        rows = read_rows(text)
        assert (rows.line.tolist(), rows.table.column(column).to_pylist()) == (line, cells)
    assert read_rows(b",a\n0,x\n1,y\n").said == ("columns without a name: column 1",)


def test_nested_objects_are_dotted_columns_lists_json_text_and_keys_composite():
    objects = [
        {"dim": "tone", "id": 1, "response": {"score": 4, "by": {"name": "Zoë"}}, "tags": ["a", 1]},
        {"dim": "risk", "id": 2, "response": {"score": 2.5}, "tags": None, "gpt-4.1": {"x": True}},
    ]
    rows, flat = read_rows(json.dumps(objects).encode()), read_rows(json.dumps(objects).encode(), nested=False)
    assert rows.table.column_names == ["dim", "id", "response.score", "response.by.name", "tags", "gpt-4.1.x"]
    cells = {"dim+id": ["tone+1", "risk+2"], "response.score": ["4", "2.5"], "tags": ['["a", 1]', None],
             "tags.0": ["a", None]}  # fmt: skip
    assert {name: rows.column(name).to_pylist() for name in cells} == cells
    assert rows.said == ("objects read as dotted columns: response, gpt-4.1", "kept as JSON text: tags")
    assert flat.table.column_names == ["dim", "id", "response", "tags", "gpt-4.1"]
    cells = {"response.by.name": ["Zoë", None], "gpt-4.1.x": [None, "true"]}
    assert {name: flat.column(name).to_pylist() for name in cells} == cells
    with pytest.raises(InputError, match=r"no column 'response.scor' \(the file has dim, .*; is it 'response.score'"):
        rows.column("response.scor")
    typed = read_rows(packed(pq.write_table, pa.table({"response": [objects[0]["response"]], "l": [[1, 2]]})))
    assert [typed.column(name).to_pylist() for name in ("l", "response.by.name")] == [["[1, 2]"], ["Zoë"]]
    keyed = [{"id": k, "by": {f"item {k}": k}} for k in range(1200)]
    assert read_rows(json.dumps(keyed).encode()).table.column_names == ["id", "by"]


@pytest.mark.parametrize(("data", "said"), [
    (zipped("xl/workbook.xml"), r"^s: is a spreadsheet: save the sheet as CSV \(UTF-8\) and give that file$"),
    (zipped("mimetype", "content.xml"), "is a spreadsheet"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a spreadsheet of an old kind"),
    (zipped("a.csv", "b.csv"), r"is a ZIP archive \(holds a.csv, b.csv\): unpack it and give one file"),
    (b"%PDF-1.7", "is a PDF, not a table"), (b"\n<!DOCTYPE html><html>", "is a web page"),
    (b"SQLite format 3\0", "is a SQLite database"), (b"PAR1" + bytes(30), "is not a Parquet file, or is damaged"),
    (b"ARROW1 is no arrow", "cannot be read as a table"),
    (b"a,b\n1,\0\n", "line 2: contains the byte 0x00: is binary"), (bytes(range(256)), "line 1: .*is binary"),
    (b"", "is empty; a header row or JSON is needed"), (b" \n\n", "is empty; a header row or JSON is needed"),
    (b"a,b\n", "has a header but no rows"),
    (gzip.compress(delimited(","), mtime=0)[:-9], "damaged gzip .*; fetch the file again"),
    (zstandard.compress(delimited(","))[:-9], r"damaged Zstandard \(it ends in the middle\); fetch the file again"),
    (packed(pq.write_table)[:-4], "is not a Parquet file, or is damaged: its end is missing"),
    (json.dumps(PLAIN, indent=1).encode()[:-20], r"line 10: not JSON: .*it ends in the middle, fetch the file again"),
    *(("a,b\n1,2\n".encode(f"utf-16{end}"), "is text in UTF-16: save it as UTF-8") for end in ("", "-le", "-be")),
    ("a,b\n1,2\n".encode("utf-32"), "is text in UTF-32: save it as UTF-8"),
    ("item,agent\nq1,René\nq2,Zoë\n".encode("latin-1"),
     r"^s: line 2, column agent: not UTF-8 \(byte 0xe9, as Latin-1 'René'; lines: 2\); save the file as UTF-8$"),
    (b"# of 2024\na,b\n1,2\n3,4\n5,6\n", "^s: line 1: holds 1 of the 2 cells that each row below has; the first line"),
    (b"a,b,a\n1,2,3\n", r"line 1: column 'a' occurs twice in the header \(columns 1 and 3\); rename one of them"),
    (b'a,b\n1,2,3\n4\n"x\ny",5,6\n',
     r"line 2: has 3 cells \(the header has 2; it begins '1'\); quote a .*\n  line 3: .*\n  line 4: has 3"),
    (b'a,b\n1,2\n"3,4\n', "line 3: not CSV: a quote is opened here and never closed"),
    (b'{"a": 1}\n{"a": \n[1]\n', r"2 problems\n  line 2: not JSON: .*\n  line 3: must be a JSON object \(got"),
    (b'{"a": 1, "a": 2}\n{"a": 3}\n', "line 1: key 'a' occurs twice in one object"),
    (b'[{"a": 1}, 2]', r"record 2: must be an object \(got 2\)"),
    (b'[{"a.b": 1, "a": {"b": 2}}]', "column 'a.b' occurs twice"),
    (b'{"a": [1, 2], "b": [1]}', r"columns are lists of one length \(got a 2, b 1\)"),
    (b'{"a": [{"x": 1}], "b": [{"x": 1}]}', r"one list of objects is needed \(got a \(1\), b \(1\)\)"),
    (b"[{}]", "holds objects without a key"), (b"[]", "is an empty list"),
    (b'{"a": ' + b"[" * 100_000, "nested too deep"),
    (b'{"a": ' + b"1" * 5000 + b"}\n", "a number of more than 4300 digits"),
])  # fmt: skip
def test_what_is_no_table_is_said_in_one_message(data, said):
    with pytest.raises(InputError, match=said):
        read_rows(data, "s")


def test_reading_a_table_is_fast_and_brings_nothing_heavy_in(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("item,agent,judge,score\n" + "".join(f"q{k},a{k % 16},j{k % 8},{k % 5}\n" for k in range(51_200)))
    code = (
        "import sys, time; from pathlib import Path; from assaymark.importers.tables import read_rows\ntook = []\n"
        f"for _ in range(5):\n    start = time.process_time(); rows = read_rows(Path({str(path)!r}))\n"
        "    took.append(time.process_time() - start)\nprint(min(took), len(rows))\n"
        "print(sorted({'pandas', 'duckdb', 'scipy', 'polars'} & set(sys.modules)))"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    took, count, heavy = done.stdout.split()
    assert (count, heavy) == ("51200", "[]")
    assert float(took) < 0.3


# Logs of tools

HARNESS = [{
    "doc_id": 0, "doc": {"question": "2+2?"}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "2+2?"}},
    "resps": [["4"]], "filtered_resps": ["4"], "filter": rule, "metrics": ["exact_match"], "doc_hash": "a",
    "prompt_hash": "b", "target_hash": "c", "exact_match": score,
} for rule, score in (("strict-match", 0.0), ("flexible-extract", 1.0))]  # fmt: skip
GRADED = [{"pass": True, "score": score, "reason": "r", "assertion": {"type": "llm-rubric", **more}}
          for score, more in ((0.5, {"value": "clear"}), (1, {"metric": "tone"}))]  # fmt: skip
PROMPTFOO = [
    {
        "promptIdx": 0, "testIdx": test, "testCase": {"vars": {"q": q}, "assert": [{"type": "llm-rubric"}]},
        "vars": {"q": q}, "prompt": {"raw": f"Say {q}", "label": "Say {{q}}"}, "promptId": "p", "success": True,
        "provider": {"id": f"openai:{who}", "label": ""}, "response": {"output": "x"}, "score": 0.75, "latencyMs": 5,
        "namedScores": {},
        "gradingResult": {"pass": True, "score": 0.75, "reason": "ok", "componentResults": GRADED},
    }
    for test, q, who in ((0, "hi", "north"), (0, "hi", "south"), (1, "hi", "north"))
]  # fmt: skip
PROMPTFOO_RUN = {"version": 3, "timestamp": "2026-05-01T00:00:00Z", "prompts": [], "stats": {}, "results": PROMPTFOO}
ALPACA = [{
    "instruction": text, "output_1": "x", "generator_1": "base", "output_2": "y", "generator_2": "ash",
    "dataset": "d", "annotator": "weighted_alpaca_eval_gpt4_turbo", "preference": value, "raw_completion": None,
    "price_per_example": 0.1,
} for text, value in (("a", 1.98), ("a", 1.0), ("b", 1.5), ("c", None))]  # fmt: skip
ARENA = [
    {"question_id": "q1", "model": "ash", "judge": "gpt-4-1106-preview", "games": [
        {"user_prompt": "p", "judgment": "...", "score": "A>>B"}, {"user_prompt": "p", "judgment": "", "score": "A>B"},
    ]},
    {"uid": "q2", "category": "hard_prompt", "model": "ash", "baseline": "o3-mini", "judge": "gpt-4.1",
     "games": [{"score": "A=B", "judgment": {"answer": "x"}, "prompt": []}, None]},
]  # fmt: skip
PAIRS = [
    {"question_id": 81, "model_1": "alpaca-13b", "model_2": "gpt-4", "g1_winner": "model_2", "g2_winner": "tie",
     "judge": ["gpt-4", "pair-v2"], "g1_user_prompt": "p", "g1_judgment": "j", "g2_user_prompt": "p",
     "g2_judgment": "j", "turn": 1, "tstamp": 1.0},
    {"question_id": 81, "model_1": "alpaca-13b", "model_2": "gpt-4", "g1_winner": "error", "g2_winner": "model_1",
     "judge": ["gpt-4", "pair-v2-multi-turn"], "turn": 2, "tstamp": 1.0},
]  # fmt: skip
SINGLES = [
    {"question_id": 81, "model": "gpt-4", "judge": ["gpt-4", "single-v1"], "user_prompt": "p", "judgment": "[[9]]",
     "score": score, "turn": turn, "tstamp": 1.0}
    for score, turn in ((9, 1), (-1, 2))
]  # fmt: skip
EVENT = {"run_id": "r", "created_by": "", "created_at": "2023-04-17"}
EVALS = [
    {"spec": {"completion_fns": ["gpt-3.5-turbo"], "eval_name": "test-match.s1.simple-v0", "run_id": "r"}},
    {"final_report": {"accuracy": 0.5}},
    *(EVENT | {"event_id": k, "sample_id": sample, "type": kind, "data": data}
      for k, (sample, kind, data) in enumerate((
        ("t.0", "sampling", {"prompt": "p", "sampled": "x"}),
        ("t.0", "match", {"correct": False, "expected": "15", "picked": None}),
        ("t.1", "metrics", {"choice": "Yes", "score": 0.8}), ("t.0", "match", {"correct": True, "expected": "15"})))),
]  # fmt: skip


def pair(item: str, a: str, b: str, judge: str, winner: str, game: str, **more: str | None) -> dict[str, str | None]:
    return {"item": item, "agent_a": a, "agent_b": b, "judge": judge, "winner": winner, "game": game, **more}


def score(item: str, agent: str, judge: str, given: str | None, **more: str) -> dict[str, str | None]:
    return {"item": item, "agent": agent, "judge": judge, "score": given, **more}


MODEL = "runs/mistralai__Mistral-7B/samples_gsm8k_2026-05-01.jsonl"
WEIGHTED = {"judge": "weighted_alpaca_eval_gpt4_turbo", "dataset": "d", "agent_a": "base", "agent_b": "ash"}
TOOLS = {  # the log, its rows, their lines, and what is said to be left out
    "lm-evaluation-harness samples": (lines(HARNESS), [
        score("gsm8k/0", "mistralai/Mistral-7B", f"exact_match/{rule}", given)
        for rule, given in (("strict-match", "0.0"), ("flexible-extract", "1.0"))
    ], [1, 2], "doc, target, arguments, resps, filtered_resps, doc_hash, prompt_hash, target_hash"),
    "promptfoo results": (json.dumps({"evalId": "e", "results": PROMPTFOO_RUN, "config": {}}, indent=2).encode(), [
        score("test 1", f"openai:{who}", judge, given, trial=trial)
        for who, trial in (("north", "1"), ("south", "1"), ("north", "2"))
        for judge, given in (("llm-rubric", "0.5"), ("tone", "1"))
    ], [1, 1, 2, 2, 3, 3], "evalId, config"),
    "AlpacaEval annotations": (json.dumps(ALPACA).encode(), [
        {"item": f"instruction {k}", "winner": who, "preference_as_written": value, **WEIGHTED}
        for k, who, value in ((1, "ash", "1.98"), (1, "base", "1.0"), (2, "tie", "1.5"), (3, "invalid", None))
    ], [1, 2, 3, 4], "output_1, output_2, raw_completion, price_per_example"),
    "Arena-Hard judgments": (lines(ARENA), [
        pair("q1", "baseline", "ash", "gpt-4-1106-preview", "baseline", "1", verdict_as_written="A>>B"),
        pair("q1", "ash", "baseline", "gpt-4-1106-preview", "ash", "2", verdict_as_written="A>B"),
        pair("q2", "o3-mini", "ash", "gpt-4.1", "tie", "1", verdict_as_written="A=B"),
        pair("q2", "ash", "o3-mini", "gpt-4.1", "invalid", "2", verdict_as_written=None),
    ], [1, 1, 2, 2], "category"),
    "MT-Bench pairwise judgments": (lines(PAIRS), [
        pair(f"81 turn {turn}", *shown, "gpt-4", winner, order, cluster="81")
        for turn, order, shown, winner in (
            (1, "1", ("alpaca-13b", "gpt-4"), "gpt-4"), (1, "2", ("gpt-4", "alpaca-13b"), "tie"),
            (2, "1", ("alpaca-13b", "gpt-4"), "invalid"), (2, "2", ("gpt-4", "alpaca-13b"), "alpaca-13b"))
    ], [1, 1, 2, 2], "g1_user_prompt, g1_judgment, g2_user_prompt, g2_judgment, tstamp"),
    "MT-Bench single judgments": (lines(SINGLES), [
        score(f"81 turn {turn}", "gpt-4", "gpt-4", given, cluster="81") for turn, given in ((1, "9"), (2, None))
    ], [1, 2], "user_prompt, judgment, tstamp"),
    "OpenAI evals log": (lines(EVALS), [
        score(item, "gpt-3.5-turbo", judge, given, trial=trial)
        for item, judge, given, trial in (("t.0", "match", "0.0", "1"), ("t.1", "score", "0.8", "1"),
                                          ("t.0", "match", "1.0", "2"))
    ], [4, 5, 6], "final_report, created_by, created_at"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TOOLS)
def test_logs_of_tools_are_known_by_their_content(kind):
    data, rows, line, beside = TOOLS[kind]
    found = read_rows(data, MODEL)
    assert kind in {one.name for one in FORMATS}
    assert (found.format, found.table.to_pylist(), found.line.tolist()) == (kind, rows, line)
    assert f"not read: {beside}" in found.said


def test_one_line_is_one_object_and_promptfoo_names_the_prompt_where_there_are_several():
    assert read_rows(lines(HARNESS[:1]), MODEL).format == "lm-evaluation-harness samples"
    assert len(read_rows(lines(ARENA[:1]))) == 2
    assert read_rows(b'{"a": 1, "b": {"c": [1]}}').table.to_pylist() == [{"a": "1", "b.c": "[1]"}]
    found = read_rows(lines([one | {"promptIdx": k} for k, one in enumerate(PROMPTFOO)]))
    named = [f"openai:{who} prompt {k}" for k, who in enumerate(("north", "south", "north"), 1)]
    assert found.column("agent").unique().to_pylist() == named


def test_a_tools_log_with_something_else_in_it_is_refused_with_its_line_or_goes_on():
    odd = lines(PAIRS) + b'\n\n{"question_id": 83}\n' + lines(PAIRS[:1])
    with pytest.raises(InputError, match=r"line 4: has no model_1, model_2, g1_winner, g2_winner \(MT-Bench pairwise"):
        read_rows(odd)
    found = read_rows(odd, keep_going=True)
    assert found.line.tolist() == [1, 1, 2, 2, 5, 5]
    assert found.said[1].startswith("left out: line 4: has no model_1")
    with pytest.raises(InputError, match="after line 1: is recognised as Arena-Hard judgments, and holds"):
        read_rows(lines([ARENA[0], ARENA[1] | {"games": 3}]))


def test_a_folder_is_the_logs_of_one_tool(tmp_path):
    bad = tmp_path / os.fsdecode(b"caf\xe9.csv")
    for path, said in ((tmp_path / "none.csv", "cannot be read: No such file"), (tmp_path, "of one tool .*got none"),
                       (bad, "its name is not UTF-8; rename it")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            read_rows(path)
    for model in ("north__a", "south__b"):
        (tmp_path / model).mkdir()
        (tmp_path / model / "samples_gsm8k_2026-05-01T10-00-00.jsonl").write_bytes(lines(HARNESS))
        (tmp_path / model / "results_2026.json").write_text('{"results": {"gsm8k": {}}}')
    (tmp_path / "broken.json").write_text("{")
    found = read_rows(tmp_path)
    assert found.column("agent").to_pylist() == ["north/a", "north/a", "south/b", "south/b"]
    assert found.where(3) == "south__b/samples_gsm8k_2026-05-01T10-00-00.jsonl line 2"
    assert "broken.json (not JSON" in found.said[-1]
    assert "south__b/results_2026.json" in found.said[-1]
    (tmp_path / "arena.jsonl").write_bytes(lines(ARENA))
    with pytest.raises(InputError, match=r"logs of one tool .*got 1 of Arena-Hard judgments, 2 of lm-eval"):
        read_rows(tmp_path)
    shards = tmp_path / "shards"
    shards.mkdir()
    for number in (1, 2):
        pq.write_table(pa.table({"item": ["a", "b"], "score": [number, 5]}), shards / f"train-{number}.parquet")
    found = read_rows(shards)
    assert (found.format, found.column("score").to_pylist(), found.where(3)) == (
        "Parquet", [1, 5, 2, 5], "train-2.parquet record 2")  # fmt: skip
    pq.write_table(pa.table({"item": ["a"], "score": ["high"]}), shards / "train-3.parquet")
    with pytest.raises(InputError, match="its files differ: column score has incompatible types: int64 vs string"):
        read_rows(shards)


INSPECT = {"version": 2, "status": "success", "eval": {"task": "t", "model": "openai/gpt-4o"}, "samples": [{"id": 1}]}


@pytest.mark.parametrize("data", [json.dumps(INSPECT).encode(), zipped("_journal/start.json", "header.json")])
def test_inspect_logs_are_read_by_inspect_or_name_the_extra(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(InputError, match=r"is an Inspect AI log, .*pip install 'assaymark\[inspect\]'"):
        read_rows(data)

    def read_eval_log(file: io.BytesIO) -> Made:
        assert file.read(4) in (data[:4], json.dumps(INSPECT).encode()[:4])
        scores = {"match": Made(value="C"), "rubric": Made(value={"tone": 4, "risk": "N"})}
        samples = [Made(id=1, epoch=1, scores=scores), Made(id=1, epoch=2, scores={"match": Made(value=False)})]
        return Made(status="success", eval=Made(model="openai/gpt-4o", task="t"), samples=samples)

    stub = types.ModuleType("inspect_ai.log")
    stub.read_eval_log = read_eval_log
    monkeypatch.setitem(sys.modules, "inspect_ai", types.ModuleType("inspect_ai"))
    monkeypatch.setitem(sys.modules, "inspect_ai.log", stub)
    found = read_rows(data)
    assert (found.format, found.unit, found.line.tolist()) == ("Inspect AI log", "record", [1, 1, 1, 2])
    told = (("match", "1.0", "1"), ("rubric/tone", "4", "1"), ("rubric/risk", "0.0", "1"), ("match", "0.0", "2"))
    wanted = [score("t/1", "openai/gpt-4o", judge, given, trial=trial) for judge, given, trial in told]
    assert found.table.to_pylist() == wanted
