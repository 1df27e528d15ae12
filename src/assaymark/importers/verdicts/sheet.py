"""From the bytes of a CSV file to columns of codes: a million rows in parts of a second, every broken row named."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from assaymark.errors import InputError, Problem
from assaymark.importers.source import text_of, unpack
from assaymark.importers.verdicts.findings import Findings, Ints
from assaymark.problems import table_problem

Words: TypeAlias = Any
"""A pyarrow string array; the library ships no types."""

BLANKS: Final = " \t\n\v\f\r"
"""What is dropped around a cell."""

HEADER: Final = 1
"""Rows are numbered as a spreadsheet does, the header being row 1; lines without any cell are not counted."""

_BOM: Final = b"\xef\xbb\xbf"
_DELIMITERS: Final = (",", ";", "\t", "|")
_SNIFFED: Final = 1 << 16
_DECODED: Final = 1 << 24
_LARGEST_BLOCK: Final = (1 << 31) - 1
_QUOTE: Final = 0x22
_LARGEST_CODE: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A log as text: its ``header``, and the bytes ``body`` that begin with it."""

    name: str
    body: memoryview
    header: tuple[str, ...]
    delimiter: str


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column of text: ``codes`` [n] are places in ``words``, which may hold one twice and words that never occur."""

    words: Words
    codes: Ints

    def at(self, rows: Ints) -> Coded:
        """Some of the rows."""
        return Coded(self.words, self.codes[rows])


def file_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises
    ------
    InputError
        It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as exc:
        raise InputError(str(path), [f"cannot be read: {exc.strerror or exc}"]) from None


def open_sheet(name: str, data: bytes, delimiter: str | None = None) -> Sheet:
    """The header of a log, which may be gzip, begin with a byte order mark and use any of the usual delimiters.

    The delimiter is the one that cuts the header into most cells, unless it is given.

    Raises
    ------
    InputError
        No header, not UTF-8, or a format that is no CSV.
    """
    body = memoryview(unpack(name, data))
    start = bytes(body[:_SNIFFED])
    blank = len(start) - len(start.removeprefix(_BOM).lstrip(b"\r\n"))
    if not start.removeprefix(_BOM).strip():
        raise InputError(name, ["is empty; a header row is needed"])
    body, start = body[blank:], start[blank:]
    if len(body) == len(start):  # the fast reader wants an end of line even behind a header without rows
        body = memoryview(start + b"\n")
    if start[:4] == b"PAR1" or start[:1] in (b"{", b"["):
        kind = "Parquet" if start[:4] == b"PAR1" else "JSON"
        raise InputError(name, [f"is {kind}; write the log as CSV, one row a verdict"])
    _refuse_other_encodings(name, body)
    header, found = max(
        ((_header(start, choice), choice) for choice in ((delimiter,) if delimiter else _DELIMITERS)),
        key=lambda item: len(item[0]),
    )
    return Sheet(name, body, header, found)


def _refuse_other_encodings(name: str, body: memoryview) -> None:
    """Raise bytes that are no UTF-8; the fast reader notices them only in the columns that are read."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), _DECODED):
            decoder.decode(body[start : start + _DECODED])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        text_of(name, bytes(body))  # names the line


def _header(start: bytes, delimiter: str) -> tuple[str, ...]:
    """The first row of a CSV text."""
    text = start.decode("utf-8", "replace")
    return tuple(next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), ()))


def read_columns(sheet: Sheet, places: Collection[int]) -> dict[int, Coded]:
    """Some columns of a log, by their places in the header.

    Raises
    ------
    InputError
        Rows with more or fewer cells than the header, quotes that do not close, bytes that are no UTF-8, or no rows.
    """
    quoted = _QUOTE in np.frombuffer(sheet.body, dtype=np.uint8)
    if quoted:
        _refuse_loose_quotes(sheet)
    broken: list[tuple[int | None, int]] = []
    table = _parse(sheet, places, broken, quoted=quoted, threads=True)
    if broken:
        # Rows have numbers only when they are read in order.
        broken.clear()
        _parse(sheet, places, broken, quoted=quoted, threads=False)
        found = Findings()
        for row, cells in broken:
            found.add("cells", f"row {row}", f"has {cells} cells (the header has {len(sheet.header)})")
        found.refuse(sheet.name)
    if not table.num_rows:
        raise InputError(sheet.name, ["has a header and no rows"])
    return {place: _coded(table.column(str(place))) for place in places}


def _parse(
    sheet: Sheet, places: Iterable[int], broken: list[tuple[int | None, int]], *, quoted: bool, threads: bool
) -> Any:
    """The columns as an Arrow table of dictionaries; notes number and cells of every row of the wrong length."""

    def note(row: Any) -> str:
        broken.append((row.number, row.actual_columns))
        return "skip"

    names = [str(place) for place in range(len(sheet.header))]
    wanted = [str(place) for place in sorted(places)]
    kind = pa.dictionary(pa.int32(), pa.string())
    # A block holds a row at least; only where the usual size does not, one block takes the whole file.
    for size in (1 << 20, min(len(sheet.body) + 1, _LARGEST_BLOCK)):
        try:
            return pacsv.read_csv(
                pa.BufferReader(pa.py_buffer(sheet.body)),
                pacsv.ReadOptions(column_names=names, skip_rows_after_names=1, use_threads=threads, block_size=size),
                pacsv.ParseOptions(delimiter=sheet.delimiter, newlines_in_values=quoted, invalid_row_handler=note),
                pacsv.ConvertOptions(column_types=dict.fromkeys(wanted, kind), include_columns=wanted),
            )
        except pa.ArrowInvalid as exc:
            if "straddling" in str(exc) and size < len(sheet.body):
                broken.clear()
                continue
            raise InputError(sheet.name, [table_problem(exc)]) from None
    raise AssertionError


def _coded(column: Any) -> Coded:
    """A column of dictionary chunks as one."""
    whole = column.unify_dictionaries().combine_chunks()
    return Coded(whole.dictionary, whole.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _refuse_loose_quotes(sheet: Sheet) -> None:
    """Raise a quote that opens a cell and never closes: everything up to the next quote would be one cell.

    The fast reader takes such a cell as it is. Where every quote opens or closes a cell, nothing can be lost; only
    where one does not, the slow and strict reader of the standard library looks at every row.
    """
    text = np.frombuffer(sheet.body, dtype=np.uint8)
    places = np.flatnonzero(text == _QUOTE)
    edges = np.frombuffer(f'{sheet.delimiter}\r\n"'.encode(), dtype=np.uint8)
    opens, closes = places[0::2], places[1::2]
    before = text[np.maximum(opens - 1, 0)]
    after = text[np.minimum(closes + 1, text.size - 1)]
    tidy = (np.isin(before, edges) | (opens == 0)).all() and (np.isin(after, edges) | (closes == text.size - 1)).all()
    if tidy and places.size % 2 == 0:
        return
    rows = 0
    stream = io.TextIOWrapper(io.BytesIO(sheet.body), encoding="utf-8", errors="replace", newline="")
    try:
        for row in csv.reader(stream, delimiter=sheet.delimiter, strict=True):
            rows += bool(row)
    except csv.Error as exc:
        said = "a quote is opened here and never closed" if "unexpected end" in str(exc) else str(exc)
        raise InputError(sheet.name, [Problem(f"row {rows + 1}", f"not CSV: {said}")]) from None


# --- names and codes --------------------------------------------------------------------------------------------------


def sorted_codes(columns: Sequence[Coded]) -> tuple[tuple[str, ...], list[Ints]]:
    """The distinct words of some columns, trimmed and sorted, and each column as places among them.

    >>> names, (codes,) = sorted_codes([Coded(pa.array(["b", " a", "never", "a"]), np.array([0, 1, 3]))])
    >>> names, codes.tolist()
    (('a', 'b'), [1, 0, 0])
    """
    words = pc.ascii_trim(pa.concat_arrays([column.words for column in columns]), BLANKS)
    used = np.zeros(len(words), dtype=bool)
    starts = np.cumsum([0, *(len(column.words) for column in columns)])
    for start, column in zip(starts, columns, strict=False):
        used[start + column.codes] = True
    names = pc.unique(words.filter(pa.array(used)))
    names = names.take(pc.sort_indices(names))
    place = pc.index_in(words, value_set=names).fill_null(-1).to_numpy().astype(np.int64)
    return tuple(names.to_pylist()), [
        place[start + column.codes] for start, column in zip(starts, columns, strict=False)
    ]


def dense(codes: Ints) -> tuple[Ints, Ints]:
    """The distinct numbers in a column in ascending order, and the place of each row's number among them.

    >>> [part.tolist() for part in dense(np.array([70, 3, 70]))]
    [[3, 70], [1, 0, 1]]
    """
    if not codes.size:
        return codes, codes
    encoded = pa.array(codes).dictionary_encode()  # hashing is several times as fast as sorting all rows
    numbers = encoded.dictionary.to_numpy()
    order = np.argsort(numbers)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return numbers[order], rank[encoded.indices.to_numpy()]


def joined(columns: Sequence[tuple[Ints, int]]) -> Ints:
    """Several codes as one that sorts as they do, the first column counting most; each comes with its number of codes.

    >>> joined([(np.array([0, 1]), 2), (np.array([2, 0]), 3)]).tolist()
    [2, 3]
    """
    whole, room = columns[0]
    for codes, size in columns[1:]:
        if room > _LARGEST_CODE // max(size, 1):
            numbers, whole = dense(whole)
            room = numbers.size
        whole = whole * size + codes
        room *= size
    return whole
