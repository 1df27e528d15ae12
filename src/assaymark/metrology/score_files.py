"""Score tables as files: CSV, JSON lines, Parquet and Arrow as Arrow tables, still unchecked."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq

from assaymark.errors import InputError, Problem
from assaymark.problems import foreign, table_problem

_DELIMITERS: Final = ",;\t|"
_SNIFFED: Final = 1 << 16
_NO_TEXT: Final = (".parquet", ".arrow", ".feather", ".ipc")


def read_table(path: Path) -> pa.Table:
    """The rows of a file whose kind is told by how it begins, not by what it is called.

    Parquet, Arrow IPC (Feather), JSON lines, or text with a header line and columns separated by comma, semicolon, tab
    or bar. Text may be compressed (``.gz``, ``.zst``, ``.bz2``). Columns of text files stay text here: what they have
    to be is known only when they are checked.

    Raises
    ------
    InputError
        No such file, or not a table; lines of the wrong length or that are no JSON, all of them.
    """
    try:
        with path.open("rb") as handle:
            magic = handle.read(8)
        if (kind := foreign(magic) if magic[:4] != b"\xff\xff\xff\xff" else None) is not None:
            raise InputError(str(path), [kind])
        if magic[:4] == b"PAR1":
            return pq.read_table(path)
        if magic[:6] == b"ARROW1" or magic[:4] == b"FEA1":
            return feather.read_table(path)
        if magic[:4] == b"\xff\xff\xff\xff":
            with pa.ipc.open_stream(path) as stream:
                return stream.read_all()
        if path.suffix in _NO_TEXT:
            raise InputError(str(path), [f"is called {path.suffix}, and is no such file, or it is damaged"])
        return _read_text(path)
    except FileNotFoundError:
        raise InputError(str(path), [Problem("", "no such score table")]) from None
    except UnicodeDecodeError as exc:
        raise InputError(str(path), [Problem(f"byte {exc.start}", "this score table is not UTF-8 text")]) from None
    except pa.ArrowException as exc:
        raise InputError(str(path), [table_problem(exc, magic)]) from None
    except OSError as exc:
        raise InputError(str(path), [Problem("", f"cannot read this score table: {_first_line(exc)}")]) from None


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does."""
    try:
        with path.open("rb") as handle:
            return handle.read(4) == b"PAR1"
    except OSError:
        return False


def _read_text(path: Path) -> pa.Table:
    with pa.input_stream(str(path)) as stream:
        head = stream.read(_SNIFFED)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        raise InputError(str(path), [Problem("", "this score table is empty")])
    if start[:1] == b"[":
        raise InputError(str(path), [Problem("", "a JSON list; write one JSON object on each line instead")])
    return _read_json_lines(path) if start[:1] == b"{" else _read_delimited(path, head)


def _read_delimited(path: Path, head: bytes) -> pa.Table:
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8").strip("\r")
    delimiter = max(_DELIMITERS, key=line.count)
    names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    wrong: list[Problem] = []

    def note(row: Any) -> str:
        wrong.append(Problem(f"line {row.number}", f"{row.actual_columns} values for {row.expected_columns} columns"))
        return "skip"

    with pa.input_stream(str(path)) as stream:
        table = pacsv.read_csv(
            stream,
            # Lines have numbers only when they are read in order.
            pacsv.ReadOptions(column_names=names, skip_rows=1, use_threads=False),
            pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
    if wrong:
        raise InputError(str(path), wrong)
    return table


def _read_json_lines(path: Path) -> pa.Table:
    """Every value as the text it was written as: one column may hold numbers here and words there."""
    columns: dict[str, list[str | None]] = {}
    wrong: list[Problem] = []
    rows = 0
    with pa.input_stream(str(path)) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as exc:
                wrong.append(Problem(f"line {number}", f"not JSON ({exc})"))
                continue
            if not isinstance(row, dict):
                wrong.append(Problem(f"line {number}", f"must be a JSON object (got {line.strip():.40})"))
                continue
            for name in [name for name in row if name not in columns]:
                columns[name] = [None] * rows
            for name, column in columns.items():
                column.append(_as_text(row.get(name)))
            rows += 1
    if wrong:
        raise InputError(str(path), wrong)
    return pa.table({name: pa.array(column, type=pa.string()) for name, column in columns.items()})


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
