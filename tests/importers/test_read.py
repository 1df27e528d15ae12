"""Strict readers of bytes, the report of an import, and the registry of formats."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.importers import IMPORTERS, ImportReport, Missing, importer, read


@given(st.binary(max_size=200), st.text(max_size=80))
def test_packing_is_undone_and_any_bytes_and_any_text_are_read_or_refused(data, text):
    assert read.unpack("x", gzip.compress(data)) == data
    if not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):  # gzip and Zstandard
        assert read.unpack("x", data) == data
    with contextlib.suppress(ValueError):
        assert isinstance(read.json_object(data), dict)
    with contextlib.suppress(ValueError):
        assert json.loads(json.dumps(read.yaml_tree(text))) == read.yaml_tree(text)


def test_days_moments_marks_and_bad_bytes():
    assert read.yaml_tree("a: 2026-05-01\nb: [1, x]") == {"a": "2026-05-01", "b": [1, "x"]}  # yaml dates stay text
    assert read.parse_day("2026-05-01") == date(2026, 5, 1)
    assert read.parse_time("2026-05-01T02:00:00+02:00") == datetime(2026, 5, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="is not a time that UTC can represent"):
        read.parse_time("0001-01-01T00:00:00+14:00")
    assert read.text_of("x", b"\xef\xbb\xbfa") == "a"
    with pytest.raises(InputError, match=r"x: line 2: not UTF-8 \(byte 0xff\)"):
        read.text_of("x", b"a\n\xff")
    with pytest.raises(InputError, match="unfolds to more than 1000 bytes"):
        read.unpack("bomb.gz", gzip.compress(b"0" * 10_000), largest=1000)
    for reader in (lambda text: read.json_object(text.encode()), read.yaml_tree):
        with pytest.raises(ValueError, match=r"a number of (more than 400|5000) digits") as caught:
            reader('{"a": ' + "1" * 5000 + "}")
        assert "sys." not in str(caught.value)


def test_a_report_says_the_most_important_first():
    report = ImportReport(
        source="s", good=1, bad=2, formats={"option": 1}, flags={"clock-conflict": 1},
        missing={"outcome": Missing(count=1, examples=("r",))}, verified={"a": 2}, unverifiable={"b": 3},
        no_text=("r",), never_met=(("x", "y"),), notes=("note",), problems=(Problem("line 1", "wrong"),),
    )  # fmt: skip
    assert report.lines() == (
        "s: 1 decision imported, 2 left out", "format option: 1", "flag clock-conflict: 1", "hashes verified: 2",
        "hashes of absent files: 3", "missing outcome: 1 (such as r)", "without any text to judge: 1",
        "never met: x and y", "note", "line 1: wrong",
    )  # fmt: skip


def rows(text: str) -> tuple[list[tuple[int, dict[str, str]]], list[tuple[int, str]]]:
    """The rows of a CSV text, and the lines that are none."""
    wrong: list[tuple[int, str]] = []
    return list(read.csv_rows(text, lambda number, what: wrong.append((number, what)))), wrong


def test_lines_are_those_of_an_editor_and_every_bad_row_is_named():
    good = [(3, {"a": "1", "b": "x\ny"}), (6, {"a": "3", "b": "4"})]
    wrong = [(5, "not CSV: ',' expected after '\"'"), (7, "has 1 cells (the header has 2)")]
    assert rows('a,b\n\n1,"x\ny"\n"x" y,2\n3,4\n5\n') == (good, wrong)
    assert rows("a;b\n1;2,5\n;\n") == ([(2, {"a": "1", "b": "2,5"})], [])
    with pytest.raises(ValueError, match="occurs twice in the header"):
        rows("a,a\n1,2\n")


def test_long_cells_are_read_and_the_modules_limit_is_put_back_whatever_the_thread(monkeypatch):
    before = csv.field_size_limit()
    first, second = (read.csv_rows(f"a\n{letter * 200_000}\n", print) for letter in "xy")
    assert [next(first)[0], next(second)[0]] == [2, 2]
    assert list(first) == []
    assert csv.field_size_limit() > before, "another reader is still at work"
    second.close()
    assert csv.field_size_limit() == before
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(rows, ["a\n" + f"{'x' * 150_000}\n" * 5] * 40))
    assert all(len(good) == 5 and not wrong for good, wrong in found)
    assert csv.field_size_limit() == before
    monkeypatch.setattr("assaymark.rows.LONGEST_CELL", before)
    wrong = [(2, f"not CSV: a cell of more than {before} characters")]
    assert rows(f"a\n{'x' * 200_000}\nshort\n") == ([(3, {"a": "short"})], wrong)
    assert csv.field_size_limit() == before


class Leaf(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    share: float = 0.5


def test_problems_of_shapes_are_in_our_words():
    for value, said in ((b'{"share": NaN}', r"share: must be a finite number \(got nan\)"), (b"{", "is not JSON: "),
                        (3, r"must be a table of keys \(got 3\)")):  # fmt: skip
        with pytest.raises(read.ShapeError, match=said):
            read.as_model(Leaf, value)
    assert read.as_model(Leaf, b'{"share": 0.5}') == Leaf()


def test_a_format_by_its_name_and_the_files_of_a_folder(tmp_path):
    capitalbench = importer("capitalbench")
    assert capitalbench is IMPORTERS["capitalbench"]
    assert all(name == one.name for name, one in IMPORTERS.items())
    assert capitalbench.provenance.licence == "CC BY 4.0"
    with pytest.raises(UnknownNameError, match=r"unknown format 'capitalbank'\. Did you mean 'capitalbench'"):
        importer("capitalbank")
    (tmp_path / "file").touch()
    for folder in ("empty", "x.csv"):
        (tmp_path / folder).mkdir()
    for folder, said in (
        ("nowhere", r"nowhere: does not exist; give the folder that holds contexts\.jsonl"),
        ("file", "is not a folder"), ("empty", "contains no file for capitalbench"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            capitalbench.files(tmp_path / folder)
    names = ("contexts.jsonl", "daily_prices.csv.gz", "decisions.jsonl.gz", "map.toml")
    for name in (*names, "notes.txt"):
        (tmp_path / name).touch()
    assert capitalbench.files(tmp_path) == ("contexts.jsonl", "decisions.jsonl.gz")
    assert importer("generic").files(tmp_path) == names
