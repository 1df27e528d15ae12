"""Rows of CSV or JSONL files and their cells, strictly typed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from threading import Lock
from typing import Any

import yaml

from assaymark.errors import InputError, Problem
from assaymark.importers.report import ShapeError, Tally, json_as_shape
from assaymark.problems import foreign

# From bytes to text, lines, tables and trees: strict, with every problem placed.


LARGEST = 4 << 30
"""Bytes that a compressed file may unfold to; a small archive can otherwise fill the memory."""

LONGEST_CELL = 64 << 20
"""Characters that one CSV cell may hold; the csv module's own limit of 131,072 is short of a long prompt."""

LONGEST_NUMBER = 400
"""Digits that a whole number may have: more than any float can hold."""

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_ALIAS = re.compile(r"(?:^|[\s\[{,])\*\w", re.M)
# The C loader is the same safe loader, some ten times as fast; not every build of PyYAML has it.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def unpack(name: str, data: bytes, *, largest: int = LARGEST) -> bytes:
    """The bytes of a file, decompressed when they are gzip (told by their first bytes, not by the name)."""
    if not data.startswith(_GZIP):
        return data
    out = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while chunk := stream.read(_CHUNK):
                out.write(chunk)
                if out.tell() > largest:
                    raise InputError(name, [f"unfolds to more than {largest} bytes; unpack it and check it first"])
    except (OSError, EOFError, zlib.error) as exc:
        raise InputError(name, [f"damaged gzip ({exc}); fetch the file again"]) from None
    return out.getvalue()


def pick(files: Mapping[str, bytes], wanted: str) -> tuple[str, bytes] | None:
    """The file called ``wanted``, with or without ``.gz`` and folders, decompressed; None if it is not there."""
    held = sorted(name for name in files if name.rsplit("/", 1)[-1].removesuffix(".gz") == wanted)
    if len(held) > 1:
        raise InputError(wanted, [f"given twice ({', '.join(held)}); keep one"])
    return (held[0], unpack(held[0], files[held[0]])) if held else None


def require(files: Mapping[str, bytes], wanted: str) -> tuple[str, bytes]:
    """Like `pick`, for a file without which nothing can be imported."""
    found = pick(files, wanted)
    if found is None:
        held = ", ".join(sorted(files)) or "no file at all"
        raise InputError(wanted, [f"missing (got {held}); needed: {wanted} or {wanted}.gz"])
    return found


def text_of(name: str, data: bytes) -> str:
    """Bytes as UTF-8 text, a byte order mark dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        if (kind := foreign(data[:8])) is not None:
            raise InputError(name, [kind]) from None
        line = data.count(b"\n", 0, exc.start) + 1
        raise InputError(name, [Problem(f"line {line}", f"not UTF-8 (byte {data[exc.start]:#04x})")]) from None


def json_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of a JSONL file that hold something, with their numbers from 1."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield number, line


def json_object(line: bytes) -> dict[str, Any]:
    """One JSON object, as strict as it gets."""
    try:
        value = json.loads(line, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=whole_number)
    except json.JSONDecodeError as exc:
        seen = line[max(exc.pos - 10, 0) : exc.pos + 20].decode("utf-8", "replace")
        raise ValueError(f"not JSON: {exc.msg} at column {exc.colno} (near {seen!r})") from None
    except UnicodeDecodeError as exc:
        raise ValueError(f"not UTF-8 at byte {exc.start}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError(f"must be an object (got {type(value).__name__})")  # noqa: TRY004
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        (twice, _), *_rest = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return made


def whole_number(text: str) -> int:
    """A whole number of sensible length."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} digits (allowed at most {LONGEST_NUMBER})")
    return int(text)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number here")


def shaped(kind: Any, line: bytes | str, place: str, tally: Tally) -> Any:
    """``line`` as a ``kind``, or None after every problem of it was noted under ``place``."""
    try:
        return json_as_shape(kind, line)
    except ShapeError as exc:
        note(tally, place, exc)
        return None


def object_as_shape(kind: Any, text: str) -> Any:
    """A JSON text with one object, read as strictly as `json_object` does, as a ``kind``."""
    json_object(text.encode("utf-8", "surrogatepass"))
    return json_as_shape(kind, text)


def note(tally: Tally, place: str, error: ValueError) -> None:
    """Notes every problem of an error, under its place."""
    if isinstance(error, ShapeError):
        for problem in error.problems:
            tally.problem(joined(place, problem.where), problem.what)
    else:
        tally.problem(place, str(error))


def joined(*places: str) -> str:
    """Places from large to small as one: ``a.jsonl line 3, call.seconds``."""
    return ", ".join(place for place in places if place)


def yaml_tree(text: str) -> Any:
    """A YAML text through the safe loader, as plain JSON values: its dates and times are text again."""
    try:
        if _ALIAS.search(text) and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, _SafeLoader)):
            raise ValueError("aliases (*name) are not read; write the value out")
        return json.loads(
            json.dumps(yaml.load(text, Loader=_SafeLoader), default=str, allow_nan=False)
        )  # it is the safe loader
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise ValueError(f"not YAML: {exc.problem or 'unreadable'} (line {line})") from None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as exc:
        why = f"a number of more than {LONGEST_NUMBER} digits" if "int_max_str_digits" in str(exc) else exc
        raise ValueError(f"not YAML: {why}") from None


def csv_rows(text: str, wrong: Callable[[int, str], None]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV text with a header, with the line where each ends.

    A row that cannot be read, or is not as long as the header, goes to ``wrong`` with its line; the next is read.
    """
    with closing(_csv_lines(text, wrong)) as lines:
        _, header = next(lines, (1, []))
        if not header:
            raise ValueError("empty: a header row is needed")
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise ValueError(f"column {twice[0]!r} stands twice in the header")
        for number, row in lines:
            if row and len(row) != len(header):
                wrong(number, f"has {len(row)} cells (the header has {len(header)})")
            elif row:
                yield number, dict(zip(header, row, strict=True))


def _csv_lines(text: str, wrong: Callable[[int, str], None]) -> Generator[tuple[int, list[str]], None, None]:
    """Every readable row, the header among them; after one that is no CSV the reader starts afresh."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    with _long_cells:
        while True:
            start = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as exc:
                wrong(start, _no_csv(str(exc), start, reader.line_num))
                continue
            if row is None:
                return
            yield reader.line_num, row


def _no_csv(said: str, start: int, end: int) -> str:
    """What the csv module said, in our words where a reader can act on it."""
    if "unexpected end" in said:
        return f"not CSV: a quote is opened here and never closed; lines {start} to {end} are lost"
    if "field limit" in said:
        return f"not CSV: a cell of more than {LONGEST_CELL} characters"
    return f"not CSV: {said}"


class _LongCells:
    """Raises the csv module's limit on cells while any reader is at work.

    The module has one limit for all threads, so it is put back only when the last reader is done.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._readers == 0:
                self._before = csv.field_size_limit()
                csv.field_size_limit(max(self._before, LONGEST_CELL))
            self._readers += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._readers -= 1
            if self._readers == 0:
                csv.field_size_limit(self._before)


_long_cells = _LongCells()


def moment(text: str) -> datetime:
    """A point in time with its zone, as UTC.

    >>> moment("2026-05-01T09:30:00-04:00")
    datetime.datetime(2026, 5, 1, 13, 30, tzinfo=datetime.timezone.utc)
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"must be a time such as 2026-05-01T13:30:00Z (got {text[:80]!r})") from None
    if found.tzinfo is None:
        raise ValueError(f"has no time zone (got {text[:80]!r}); allowed: 2026-05-01T13:30:00Z or with +02:00")
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"is no time that UTC can name (got {text[:80]!r})") from None


def day(value: object) -> date:
    """A calendar day from ISO text or from what YAML made of it."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"must be a day such as 2026-05-01 (got {str(value)[:80]!r})") from None


def midnight(value: date) -> datetime:
    """The first moment of a day in UTC: how a day without a time is stored."""
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """One row, where it stands, and where its problems go."""

    place: str
    cells: Mapping[str, Any]
    tally: Tally

    @property
    def quiet(self) -> Row:
        """The same row, whose problems are noted nowhere: for a first look at it."""
        return Row(self.place, self.cells, Tally())

    def problem(self, column: str, what: str) -> None:
        """Notes what is wrong with a cell."""
        self.tally.problem(f"{self.place}, {column}" if column else self.place, what)

    def text(self, column: str | None, *, needed: bool = False) -> str:
        """The text of a cell; empty when there is none."""
        value = self.cells.get(column) if column else None
        if value is None or value == "":
            if needed:
                self.problem(column or "", "is empty; a value is needed")
            return ""
        if not isinstance(value, str):
            self.problem(column or "", f"must be text (got {value!r:.60})")
            return ""
        return value

    def texts(self, column: str) -> tuple[str, ...]:
        """The texts of a cell: one, or in JSONL a list of them."""
        value = self.cells.get(column)
        if isinstance(value, list):
            if all(isinstance(item, str) for item in value):
                return tuple(item for item in value if item.strip())
            self.problem(column, f"must be text or a list of texts (got {value!r:.60})")
            return ()
        text = self.text(column)
        return (text,) if text.strip() else ()

    def number(
        self, column: str | None, low: float = -math.inf, high: float = math.inf, hint: str = ""
    ) -> float | None:
        """The finite number of a cell, or None when there is none; ``hint`` is for a number out of its limits."""
        value = self.cells.get(column) if column else None
        if value is None or value == "":
            return None
        try:
            made = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            made = math.nan
        if not math.isfinite(made) or not low <= made <= high:
            limits = f" from {low:g} to {high:g}" if math.isfinite(low) else ""
            advice = f"; {hint}" if hint and math.isfinite(made) else ""
            self.problem(column or "", f"must be a finite number{limits} (got {value!r:.60}){advice}")
            return None
        return made

    def whole(self, column: str | None, default: int, low: int) -> int:
        """The whole number of a cell."""
        made = self.number(column, low, 2**53)
        if made is not None and made != int(made):
            self.problem(column or "", f"must be a whole number (got {made:g})")
        return default if made is None else int(made)

    def time(self, column: str | None, *, needed: bool = False) -> datetime | None:
        """The moment of a cell, with its zone."""
        text = self.text(column, needed=needed)
        if not text:
            return None
        try:
            return moment(text)
        except ValueError as exc:
            self.problem(column or "", str(exc))
            return None


@dataclass(slots=True)
class Sheet:
    """The rows of a file that could be read, how many could not (``lost``), and whether none could (``broken``)."""

    rows: list[Row]
    lost: int = 0
    broken: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of any row, in the order in which they first appear."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row.cells))


def read_sheet(name: str, data: bytes, tally: Tally) -> Sheet:
    """The rows of a CSV or JSONL file (told by its name); unreadable ones are noted, counted and left out."""
    sheet = Sheet([])

    def wrong(number: int, what: str) -> None:
        sheet.lost += 1
        tally.problem(f"{name} line {number}", what)

    if name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        for number, line in json_lines(data):
            try:
                sheet.rows.append(Row(f"{name} line {number}", json_object(line), tally))
            except ValueError as exc:
                wrong(number, str(exc))
        return sheet
    try:
        for number, cells in csv_rows(text_of(name, data), wrong):
            sheet.rows.append(Row(f"{name} line {number}", cells, tally))
    except ValueError as exc:
        sheet.broken = True
        tally.problem(name, str(exc))
    return sheet
