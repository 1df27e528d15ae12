"""Read rows with line numbers from arbitrary files: delimited text, JSON of any shape, Parquet and Arrow."""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from assaymark.errors import SHEET, InputError, Problem, foreign_format, table_problem

WIDEST: Final = 1000
"""Maximum keys that become columns; an object with more keys, such as one keyed by item, stays JSON text."""

_DEEPEST: Final = 3


def dumps(value: Any) -> str:
    """Encode a value as readable JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its pairs (an ``object_pairs_hook``); raises ``ValueError`` on a duplicate key."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        (twice, _), *_rest = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {twice!r} occurs twice in one object")
    return fields


_STRICT: Final = json.JSONDecoder(object_pairs_hook=unique_keys)


def json_problem(error: Exception, text: str) -> str:
    """Describe a JSON parse error, with its column and the text around it."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    if not isinstance(error, json.JSONDecodeError):
        return "a number of more than 4300 digits" if "integer string conversion" in str(error) else str(error)
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        place = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        return f"not JSON: {place}; it ends in the middle, fetch the file again"
    excerpt = text[max(error.pos - 10, 0) : error.pos + 20]
    return f"not JSON: {error.msg} at column {error.colno} (near {excerpt!r})"


def objects_of(name: str, text: str, notes: list[str] | None = None) -> tuple[Any, Ints | None]:
    """Return the objects of a JSON Lines file with their line numbers, or the tree of a JSON file and None."""
    lines = text.split("\n")
    there = [k for k, line in enumerate(lines) if line and not line.isspace()]
    written = [lines[k] for k in there]
    number = np.array(there, dtype=np.int64) + 1
    first: Any = None
    try:
        first = _STRICT.decode(written[0])
    except (ValueError, RecursionError):
        try:
            return _STRICT.decode(text), None
        except (ValueError, RecursionError) as exc:
            if len(written) == 1 or not written[1].startswith("{"):
                place = f"line {exc.lineno}" if isinstance(exc, json.JSONDecodeError) else ""
                raise InputError(name, [Problem(place, json_problem(exc, text))]) from None
    holds = first.values() if isinstance(first, dict) else ([],)
    if len(written) == 1 and any(isinstance(hold, dict | list) for hold in holds):
        return first, None
    try:
        objects = _STRICT.decode(f"[{','.join(written)}]")
        if len(objects) == len(written) and all(type(row) is dict for row in objects):
            return objects, number
    except (ValueError, RecursionError):
        pass
    problems: list[Problem] = []
    objects = []
    for place, line in zip(number.tolist(), written, strict=True):
        try:
            objects.append(_STRICT.decode(line))
            if not isinstance(objects[-1], dict):
                message = f"must be a JSON object (got {line.strip():.40})"
                problems.append(Problem(f"line {place}", message))
        except (ValueError, RecursionError) as exc:
            problems.append(Problem(f"line {place}", json_problem(exc, line)))
    if problems:
        raise_or_note(name, problems, notes)
        wrong = {problem.where for problem in problems}
        good = [k for k, place in enumerate(number.tolist()) if f"line {place}" not in wrong]
        return [row for row in objects if isinstance(row, dict)], number[good]
    return objects, number


def raise_or_note(name: str, problems: Sequence[Problem], notes: list[str] | None) -> None:
    """Raise the problems of lines, or add them to ``notes`` if invalid lines may be left out."""
    if notes is None:
        raise InputError(name, problems)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    notes.append(f"left out: {problems[0]}{more}")


def records_of(name: str, tree: Any, notes: list[str]) -> list[dict[str, Any]]:
    """Return the rows of a JSON tree: a list of objects, an object of lists, or an object with one list of objects."""
    if isinstance(tree, list):
        wrong = [(k, record) for k, record in enumerate(tree, start=1) if not isinstance(record, dict)]
        if len(wrong) == len(tree) > 0:
            raise InputError(name, [f"must be a list of objects, one a row (got a list of {dumps(tree[0]):.40} ...)"])
        if wrong or not tree:
            shown = [Problem(f"record {k}", f"must be an object (got {dumps(record):.40})") for k, record in wrong]
            raise InputError(name, shown or ["is an empty list; one object a row is needed"])
        return tree
    if not isinstance(tree, dict):
        raise InputError(name, [f"must be a list of objects (got {dumps(tree):.40})"])
    values = list(tree.values())
    lists = [value for value in values if isinstance(value, list)]
    # As pandas writes a frame: split into columns and data, by its index, or by its columns.
    columns: Any = tree.get("columns")
    body: Any = tree.get("data")
    split = isinstance(columns, list) and isinstance(body, list) and {*tree} <= {"columns", "data", "index"}
    if split and all(isinstance(row, list) and len(row) == len(columns) for row in body):
        return [dict(zip(map(str, columns), row, strict=True)) for row in body]
    if values and len(lists) == len(values) and not any(isinstance(cell, dict) for held in lists for cell in held[:1]):
        if len({len(value) for value in values}) > 1:
            sizes = ", ".join(f"{key} {len(column)}" for key, column in tree.items())
            raise InputError(name, [f"columns are lists of one length (got {sizes})"])
        return [dict(zip(tree, row, strict=True)) for row in zip(*values, strict=True)]
    if all(isinstance(value, dict) and list(value) == [str(k) for k in range(len(value))] for value in values):
        keys = list(values[0]) if values else []
        if keys and all(list(value) == keys for value in values):
            return [{key: column[k] for key, column in tree.items()} for k in keys]
    if values and all(isinstance(value, dict) for value in values) and [*tree] == [*map(str, range(len(tree)))]:
        return values
    nested = dict(_lists(tree, "", _DEEPEST))
    if not nested:
        return [tree]
    if len(nested) > 1:
        held = ", ".join(f"{path} ({len(rows)})" for path, rows in nested.items())
        message = f"one list of objects is needed (got {held}); write the rows alone as a JSON list or JSON lines"
        raise InputError(name, [message])
    ((path, rows),) = nested.items()
    beside = [key for key in tree if key != path.partition(".")[0]]
    notes.append(f"rows are the list {path}" + (f"; not read: {', '.join(beside)}" if beside else ""))
    return records_of(name, rows, notes)


def _lists(tree: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of objects in a tree with their dotted paths."""
    for key, value in tree.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            yield path + key, value
        elif isinstance(value, dict) and depth > 1:
            yield from _lists(value, f"{path}{key}.", depth - 1)


def columns_of(
    records: Sequence[Mapping[str, Any] | None], path: str, nested: bool, into: dict[str, list[Any]],
    kept_as: dict[str, list[str]],
) -> None:  # fmt: skip
    """Add the columns of objects to ``into``, nested objects under dotted names and every value as text."""
    keys = dict.fromkeys(chain.from_iterable(filter(None, records)))
    if len(keys) > WIDEST:
        raise ValueError(f"the objects have {len(keys)} different keys (allowed {WIDEST}); one row an object is needed")
    for key in keys:
        name, values = path + key, [None if record is None else record.get(key) for record in records]
        if name in into:
            raise ValueError(f"column {name!r} occurs twice: as a key and as a path into an object; rename the key")
        kinds = set(map(type, values))
        if nested and dict in kinds:
            inner = [value if type(value) is dict else None for value in values]
            if 0 < len({key for value in inner if value for key in value}) <= WIDEST:
                kept_as["flat"] += [] if path else [name]
                columns_of(inner, f"{name}.", nested, into, kept_as)
                if kinds <= {dict, type(None)}:
                    continue
                values = [None if type(value) is dict else value for value in values]
        if kinds & {dict, list}:
            kept_as["json"].append(name)
        into[name] = values if kinds <= {str, type(None)} else [_as_text(value) for value in values]


def _as_text(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    return repr(value) if type(value) in (int, float) else dumps(value)


def value_at_path(text: str | None, path: str) -> str | None:
    """Return the value at a dotted path into a JSON text, as text. Keys may contain dots; list indices start at 0."""
    try:
        tree = json.loads(text) if text else None
    except ValueError:
        return None

    def walk(tree: Any, parts: Sequence[str]) -> Any:
        if not parts:
            return tree
        if isinstance(tree, list):
            place = int(parts[0]) if parts[0].isdecimal() else len(tree)
            return walk(tree[place], parts[1:]) if place < len(tree) else None
        cuts = range(len(parts), 0, -1) if isinstance(tree, dict) else ()
        return next((walk(tree[k], parts[c:]) for c in cuts if (k := ".".join(parts[:c])) in tree), None)

    return _as_text(walk(tree, path.split(".")))


Ints = NDArray[np.int64]

LARGEST: Final = 4 << 30
"""Maximum bytes of a decompressed file, so that a small archive cannot exhaust the memory."""

LONGEST_CELL: Final = 64 << 20
"""Maximum characters of a CSV cell; the csv module's default of 131,072 is less than a long prompt."""

DELIMITERS: Final = (",", ";", "\t", "|")
_NAMES: Final = {",": "CSV", ";": "CSV with semicolons", "\t": "TSV", "|": "CSV with bars"}
FLATTENED: Final = "objects read as dotted columns"
_BOM: Final = b"\xef\xbb\xbf"
_SNIFFED: Final = 1 << 16
_SEPARATOR: Final = re.compile(rb"sep=([,;|\t])\r?\n")
_PIECE: Final = 1 << 18
_LARGEST_BLOCK: Final = (1 << 31) - 1
_QUOTE: Final = 0x22
_ARROW: Final = (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")
_NO_TEXT: Final = (".parquet", ".arrow", ".feather", ".ipc")

Recognised = tuple[str, Sequence[tuple[int, Mapping[str, Any]]], tuple[str, ...]]
"""The name of a format, its rows with the index of the object that each comes from, and notes."""

PlaceOf = Callable[[int], str]
Recognise = Callable[[Any, PlaceOf], Recognised | None]


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """The rows of one file.

    ``table`` holds text as it was written (empty cells, JSON nulls and absent keys are null; other JSON values are JSON
    text); columns of Parquet and Arrow keep their types. ``line`` [n] is the first line of each row (the header is line
    1), or the number of the record from 1 (see ``unit``). ``said`` lists notes on skipped and flattened data,
    and ``sha256`` is the digest of the file as stored.
    """

    name: str
    table: pa.Table
    line: Ints
    unit: Literal["line", "record"]
    format: str
    said: tuple[str, ...]
    sha256: str
    files: tuple[tuple[str, int], ...] = ()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def where(self, row: int) -> str:
        """Format the place of a row: ``line 7``, preceded by the file name for a folder."""
        file = next((f"{name} " for name, first in reversed(self.files) if first <= row), "")
        return f"{file}{self.unit} {self.line[row]}"

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column by its name, a dotted path into JSON text, or several columns joined by ``+``: ``dim+id``.

        A joined value is null if any part is. `InputError` names the closest column.
        """
        header = self.table.column_names
        if name in header:
            return self.table.column(name)
        if name.strip() in (plain := [title.strip() for title in header]):
            return self.table.column(plain.index(name.strip()))
        if "+" in name:
            import pyarrow.compute as pc

            parts = [self.column(part.strip()).cast(pa.string()) for part in name.split("+")]
            return pc.binary_join_element_wise(*parts, "+")
        for cut in (k for k in range(len(name) - 1, 0, -1) if name[k] == "." and name[:k] in header):
            texts = self.table.column(name[:cut]).cast(pa.string()).to_pylist()
            cells = [value_at_path(value, name[cut + 1 :]) for value in texts]
            if any(value is not None for value in cells):
                return pa.chunked_array([_strings(cells)[0]])
        close = difflib.get_close_matches(name, header, n=1)
        more = f" and {len(header) - 12} more" if len(header) > 12 else ""
        hint = f"; is it {close[0]!r}?" if close else ""
        shown = ", ".join(f"{title:.40}" for title in header[:12])
        raise InputError(self.name, [f"no column {name!r} (the file has {shown}{more}){hint}"])


def read(
    source: Path | bytes, name: str = "", nested: bool = True, recognise: Recognise | None = None,
    delimiter: str | None = None, keep_going: bool = False,
) -> FileRows:  # fmt: skip
    """Read the rows of a file, whose format is detected from its first bytes; ``nested`` flattens nested objects.

    ``recognise`` may convert the objects of a JSON file to rows. ``keep_going`` skips unreadable lines and notes them.
    `InputError` lists every problem with its line.
    """
    name = name or (str(source) if isinstance(source, Path) else "data")
    try:
        packed = source if isinstance(source, bytes) else source.read_bytes()
    except OSError as exc:
        raise InputError(name, [f"cannot be read: {exc.strerror or exc}"]) from None
    data = unpack(name, packed)
    sha256 = hashlib.sha256(packed).hexdigest()
    if data[:4] == b"PAR1" or data.startswith(_ARROW):
        table, notes = _read_arrow(name, data, nested)
        kind = "Parquet" if data[:4] == b"PAR1" else "Arrow"
        return FileRows(name, table, np.arange(1, len(table) + 1), "record", kind, notes, sha256)
    if name.endswith(_NO_TEXT):
        raise InputError(name, [f"is called {Path(name).suffix}, and is not such a file, or is damaged"])
    body = text_body(name, data)
    if body.lstrip()[:1] in (b"{", b"["):
        return _read_json(name, body, sha256, nested, recognise, keep_going)
    table, line, kind, notes = _read_delimited(name, body, delimiter, keep_going)
    return FileRows(name, table, line, "line", kind, notes, sha256)


def unpack(name: str, data: bytes, *, largest: int = LARGEST) -> bytes:
    """Decompress the bytes of a gzip or Zstandard file, detected by its first bytes; other bytes are unchanged."""
    make: Callable[[], Any]
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        kind, make = "Zstandard", zstandard.ZstdDecompressor().decompressobj
        damaged: tuple[type[Exception], ...] = (zstandard.ZstdError, EOFError)
    elif data.startswith(b"\x1f\x8b"):
        kind, make = "gzip", partial(zlib.decompressobj, 31)
        damaged = (zlib.error, EOFError)
    else:
        return data
    out, view = io.BytesIO(), memoryview(data)
    try:
        while rest := bytes(view):  # a file may hold several frames
            reader = make()
            for at in range(0, len(rest), _PIECE):
                out.write(reader.decompress(rest[at : at + _PIECE]))
                if out.tell() > largest:
                    raise InputError(name, [f"unfolds to more than {largest} bytes; unpack it and check it first"])
                if reader.eof:
                    break
            if not reader.eof:
                raise EOFError("it ends in the middle")
            view = view[at + min(_PIECE, len(rest) - at) - len(reader.unused_data) :]
            if not bytes(view[:64]).strip(b"\0"):
                break
    except damaged as exc:
        raise InputError(name, [f"damaged {kind} ({exc}); fetch the file again"]) from None
    return out.getvalue()


def text_body(name: str, data: bytes) -> bytes:
    """Return the bytes of a UTF-8 text without byte order mark; raises `InputError` naming any other format."""
    kind = foreign_format(data[:16])
    if data.startswith(b"PK\x03\x04"):
        with suppress(zipfile.BadZipFile, OSError, ValueError):
            files = zipfile.ZipFile(io.BytesIO(data)).namelist()
            some = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
            kind = f"is a ZIP archive (holds {some}): unpack it and give one file"
            if any(file.startswith("xl/") for file in files) or "content.xml" in files:
                kind = f"is a spreadsheet: {SHEET}"
    if kind is not None:
        raise InputError(name, [kind])
    if len(data) > 3 and any(data[0:64:2]) != any(data[1:64:2]):
        raise InputError(name, ["is text in UTF-16: save it as UTF-8"])
    body = data.removeprefix(_BOM)
    if not body.strip():
        raise InputError(name, ["is empty; a header row or JSON is needed"])
    if (at := body.find(b"\0")) >= 0:
        place = f"line {body.count(10, 0, at) + 1}"
        raise InputError(name, [Problem(place, "contains the byte 0x00: is binary, not a table; export it as CSV")])
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as exc:
        # One problem, at the first line that is not UTF-8: the others have the same cause.
        head, begin = body.split(b"\n", 1)[0].decode("latin-1"), body.rfind(b"\n", 0, exc.start) + 1
        (delimiter, header), before, column = delimiter_of(head), [""], ""
        with suppress(csv.Error):
            before = next(csv.reader([body[begin : exc.start].decode()], delimiter=delimiter), []) or [""]
            if begin and head[:1] not in ("{", "[") and 1 < len(header) >= len(before):
                column = f", column {header[len(before) - 1].strip()}"
        n = sum("\ufffd" in line for line in body.decode("utf-8", "replace").split("\n"))
        excerpt = (before[-1][-12:] + body[exc.start : exc.start + 4].decode("latin-1").partition("\n")[0]).strip()
        fault = f"not UTF-8 (byte {body[exc.start]:#04x}, as Latin-1 {excerpt!r}; lines: {n:,}); save the file as UTF-8"
        raise InputError(name, [Problem(f"line {body.count(10, 0, begin) + 1}{column}", fault)]) from None
    return body


def _read_arrow(name: str, data: bytes, nested: bool) -> tuple[pa.Table, tuple[str, ...]]:
    """Read the table of a Parquet or Arrow file: structs as dotted columns, lists as JSON text."""
    try:
        if data[:4] == b"PAR1":
            if data[-4:] != b"PAR1":
                raise InputError(name, ["is not a Parquet file, or is damaged: its end is missing; fetch it again"])
            import pyarrow.parquet as pq

            table = pq.ParquetFile(pa.BufferReader(data)).read()  # read_table brings datasets in, and they pandas
        elif data.startswith(b"\xff\xff\xff\xff"):
            with pa.ipc.open_stream(data) as stream:
                table = stream.read_all()
        else:
            import pyarrow.feather as feather

            table = feather.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as exc:
        raise InputError(name, [table_problem(exc, data[:8])]) from None
    flat = [field.name for field in table.schema if pa.types.is_struct(field.type)]
    while nested and any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    lists = [k for k, field in enumerate(table.schema) if pa.types.is_nested(field.type)]
    for k in lists:
        texts = [None if value is None else dumps(value) for value in table.column(k).to_pylist()]
        table = table.set_column(k, table.column_names[k], _strings(texts)[0])
    _check_names(name, "", table.column_names)
    said = [f"{FLATTENED}: {', '.join(flat)}"] if nested and flat else []
    return table, (*said, *([f"kept as JSON text: {', '.join(table.column_names[k] for k in lists)}"] if lists else []))


def _check_names(name: str, place: str, columns: Sequence[str]) -> None:
    """Raise `InputError` if a column name occurs more than once."""
    problems = []
    for column, times in Counter(columns).items():
        if times > 1:
            places = " and ".join(str(k) for k, other in enumerate(columns, start=1) if other == column)
            message = f"column {column!r} occurs twice in the header (columns {places}); rename one of them"
            problems.append(Problem(place, message))
    if problems:
        raise InputError(name, problems)


def _strings(values: Sequence[str | None]) -> tuple[pa.Array, int]:
    """Build an Arrow array of texts, and count lone surrogates; `pyarrow.array` of a list would import pandas."""
    texts = ["" if value is None else value for value in values]
    joined, broken = "".join(texts), 0
    try:
        raw = joined.encode()
    except UnicodeEncodeError:
        plain = [text.encode("utf-8", "replace").decode() for text in texts]
        broken = sum(a != b for a, b in zip(texts, plain, strict=True))
        texts, raw = plain, "".join(plain).encode()
    size = map(len, texts) if len(raw) == len(joined) else (len(text.encode()) for text in texts)
    large = len(raw) > _LARGEST_BLOCK
    offsets = np.zeros(len(texts) + 1, dtype=np.int64 if large else np.int32)
    np.cumsum(np.fromiter(size, np.int64, len(texts)), out=offsets[1:])
    there = np.fromiter((value is not None for value in values), np.bool_, len(texts))
    valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    kind = pa.LargeStringArray if large else pa.StringArray
    return kind.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(raw), valid), broken


def _read_json(
    name: str, body: bytes, sha256: str, nested: bool, recognise: Recognise | None, keep_going: bool
) -> FileRows:
    text = body.decode("utf-8")
    notes: list[str] = []
    tree, line = objects_of(name, text, notes if keep_going else None)
    unit: Literal["line", "record"] = "record" if line is None else "line"
    kind = "JSON" if line is None else "JSON lines"

    def where(place: int) -> str:
        return f"record {place + 1}" if line is None else f"line {line[place]}"

    recognised = None if recognise is None else recognise(tree, where)
    if recognised is None and recognise is not None and isinstance(tree, dict):  # one line may be one object of many
        recognised = recognise([tree], where)
    if recognised is not None:
        kind, pairs, more = recognised
        notes += more
        records: Sequence[Mapping[str, Any]] = [row for _, row in pairs]
        places = np.fromiter((place for place, _ in pairs), np.int64, len(pairs))
        line = places + 1 if line is None else line[places]
    else:
        records = tree if line is not None else records_of(name, tree, notes)
    if line is None:
        line = np.arange(1, len(records) + 1)
    columns: dict[str, list[Any]] = {}
    noted: dict[str, list[str]] = {"flat": [], "json": []}
    try:
        columns_of(records, "", nested, columns, noted)
    except ValueError as exc:
        raise InputError(name, [str(exc)]) from None
    if not columns:
        raise InputError(name, ["holds objects without a key; one row an object is needed"])
    arrays = {key: _strings(values) for key, values in columns.items()}
    notes += [f"{FLATTENED}: {', '.join(noted['flat'])}"] if noted["flat"] else []
    notes += [f"kept as JSON text: {', '.join(noted['json'])}"] if noted["json"] else []
    broken = sum(count for _, count in arrays.values())
    notes += [f"{broken} values held half a character (a lone surrogate), read as ?"] if broken else []
    return FileRows(name, pa.table({k: v for k, (v, _) in arrays.items()}), line, unit, kind, tuple(notes), sha256)


def _read_delimited(
    name: str, body: bytes, delimiter: str | None, keep_going: bool
) -> tuple[pa.Table, Ints, str, tuple[str, ...]]:
    """Return the table of a delimited text, the first line of each row, the name of the format, and notes."""
    if (directive := _SEPARATOR.match(body)) is not None:  # as spreadsheets write it; an empty line in its place
        body, delimiter = b"\n" + body[directive.end() :], delimiter or directive[1].decode()
    end = body.find(b"\n", _SNIFFED)
    start = (body if end < 0 else body[:end]).decode("utf-8")
    delimiter, header = delimiter_of(start, (delimiter,) if delimiter else DELIMITERS)
    names = [cell.strip() or f"column {k}" for k, cell in enumerate(header, start=1)]
    first = len(start) - len(start.lstrip("\r\n"))
    _check_names(name, f"line {start.count(chr(10), 0, first) + 1}", names)
    bare = [names[k] for k, cell in enumerate(header) if not cell.strip()]
    notes = [f"columns without a name: {', '.join(bare)}"] if bare else []
    raw = np.frombuffer(body, dtype=np.uint8)
    quotes = np.flatnonzero(raw == _QUOTE)
    if (
        (line := _row_starts(raw, quotes, delimiter)) is None
        or (table := _parse_arrow(name, body, len(names), delimiter, quotes.size > 0)) is None
        or len(table) != line.size - 1
    ):
        columns, line = _parse_csv(name, body.decode("utf-8"), len(names), delimiter, notes if keep_going else None)
        table = pa.table({str(k): _strings(values)[0] for k, values in enumerate(columns)})
    else:
        line = line[1:]
    if all(column.null_count for column in table.columns):
        empty = np.logical_and.reduce([column.is_null().to_numpy() for column in table.columns])
        if empty.any():  # as spreadsheets write them below a table
            table, line = table.filter(pa.array(~empty)), line[~empty]
            notes.append(f"rows without a value, left out: {empty.sum():,}")
    if not len(table):
        raise InputError(name, ["has a header but no rows"])
    return table.rename_columns(names), line, _NAMES.get(delimiter, "CSV"), tuple(notes)


def delimiter_of(text: str, choices: Sequence[str] = DELIMITERS) -> tuple[str, list[str]]:
    """Return the delimiter that makes most cells of the first row that is not empty, and those cells."""
    found = {choices[0]: list[str]()}
    with long_cells():
        for character in choices:
            with suppress(csv.Error):
                rows = csv.reader(io.StringIO(text, newline=""), delimiter=character)
                found[character] = next((row for row in rows if row), [])
    return max(found.items(), key=lambda one: len(one[1]))


def _row_starts(raw: NDArray[np.uint8], quotes: Ints, delimiter: str) -> Ints | None:
    """Return the first lines of all non-empty rows, header included; None if a quote occurs inside a cell.

    If every quote opens or closes a cell, a line end after an odd number of quotes lies within a cell.
    """
    if quotes.size:
        edges = np.frombuffer(f'{delimiter}\r\n"'.encode(), dtype=np.uint8)
        opens, closes = quotes[0::2], quotes[1::2]
        before, after = raw[np.maximum(opens - 1, 0)], raw[np.minimum(closes + 1, raw.size - 1)]
        tidy = (np.isin(before, edges) | (opens == 0)).all()
        tidy &= (np.isin(after, edges) | (closes == raw.size - 1)).all()
        if quotes.size % 2 or not tidy:
            return None
    ends = np.flatnonzero(raw == 10)
    if not ends.size or ends[-1] != raw.size - 1:
        ends = np.append(ends, raw.size)
    last = np.flatnonzero(np.searchsorted(quotes, ends) % 2 == 0)  # lines that end a row
    first = np.append(0, last[:-1] + 1)
    begin, stop = np.append(0, ends[last[:-1]] + 1), ends[last]
    empty = (stop == begin) | ((stop == begin + 1) & (raw[np.minimum(begin, raw.size - 1)] == 13))
    return np.asarray(first[~empty] + 1, dtype=np.int64)


def _parse_arrow(name: str, body: bytes, width: int, delimiter: str, quoted: bool) -> pa.Table | None:
    """Parse rows with pyarrow; None if a row has another length than the header."""
    import pyarrow.csv as pacsv

    odd: list[int] = []

    def note(row: Any) -> str:
        odd.append(row.actual_columns)
        return "skip"

    names = [str(k) for k in range(width)]
    # A block must hold at least one row; if the usual size does not, one block takes the whole file.
    for size in (1 << 20, min(len(body) + 2, _LARGEST_BLOCK)):
        try:
            table = pacsv.read_csv(
                pa.BufferReader(body if body.endswith((b"\n", b"\r")) else body + b"\n"),
                # One block needs no threads, so none is alive if an error ends the process.
                pacsv.ReadOptions(
                    use_threads=len(body) > size, block_size=size, column_names=names, skip_rows_after_names=1
                ),
                pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=quoted, invalid_row_handler=note),
                pacsv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
                ),
            )
        except pa.ArrowInvalid as exc:
            if "straddling" in str(exc) and size < len(body):
                odd.clear()
                continue
            raise InputError(name, [table_problem(exc)]) from None
        return None if odd else table
    return None


def _parse_csv(
    name: str, text: str, width: int, delimiter: str, notes: list[str] | None
) -> tuple[list[list[str | None]], Ints]:
    """Parse columns with the strict csv reader of the standard library, and the first line of each row."""
    problems: list[Problem] = []
    rows: list[list[str]] = []
    line, widths = list[int](), list[int]()

    def wrong(number: int, message: str) -> None:
        problems.append(Problem(f"line {number}", message))

    header = True
    for begin, row in csv_lines(text, wrong, delimiter):
        if not row or (len(row) < width and not any(cell.strip() for cell in row)):
            continue
        if not header and len(row) != width:
            remedy = f"quote a cell that holds {delimiter!r}" if len(row) > width else "add what is missing"
            widths.append(len(row))
            wrong(begin, f"has {len(row)} cells (the header has {width}; it begins {row[0]!r:.40}); {remedy}")
        elif not header:
            rows.append(row)
            line.append(begin)
        header = False
    if len(problems) > 2 and not rows and width < widths[0] and widths == [widths[0]] * len(problems):
        what = f"holds {width} of the {widths[0]} cells that each row below has; the first line has to name the columns"
        raise InputError(name, [Problem("line 1", what)])
    if problems:
        raise_or_note(name, problems, notes)
    if not rows:
        return [[] for _ in range(width)], np.zeros(0, dtype=np.int64)
    return [[cell or None for cell in column] for column in zip(*rows, strict=True)], np.array(line, dtype=np.int64)


def csv_lines(
    text: str, wrong: Callable[[int, str], None], delimiter: str = ","
) -> Generator[tuple[int, list[str]], None, None]:
    """Yield every readable row with its first line; invalid rows go to ``wrong``, and parsing continues after them."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    with long_cells():
        while True:
            start = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as exc:
                message = str(exc)
                if "unexpected end" in message:
                    lost = f"lines {start} to {reader.line_num} are lost"
                    message = f"a quote is opened here and never closed; {lost}"
                elif "field limit" in message:
                    message = f"a cell of more than {LONGEST_CELL} characters"
                wrong(start, f"not CSV: {message}")
                continue
            if row is None:
                return
            yield start, row


_lock = Lock()
_limits: list[int] = []


@contextmanager
def long_cells() -> Iterator[None]:
    """Raise the csv module's cell limit, which all threads share, until the last reader is done."""
    with _lock:
        _limits.append(_limits[0] if _limits else csv.field_size_limit())
        csv.field_size_limit(max(_limits[0], LONGEST_CELL))
    try:
        yield
    finally:
        with _lock:
            before = _limits.pop()
            if not _limits:
                csv.field_size_limit(before)
