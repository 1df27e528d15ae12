"""Parsers of the importers: bytes to text, rows, trees and models, with the place of every problem; column maps."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from importlib.resources import files
from typing import Annotated, Any, Final, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from assaymark.errors import InputError, Problem, foreign_format, known_keys, problems_of
from assaymark.importers.report import Tally
from assaymark.plan import read_model
from assaymark.records import Completeness, duplicates
from assaymark.rows import csv_lines, delimiter_of, unique_keys, unpack

LONGEST_NUMBER = 400
"""Maximum digits of a whole number, more than any float has."""

NAME = r"^[^\x00-\x1f\[\]=,|]{1,120}$"
"""Pattern of names: those that a study file allows, so that every imported agent can be selected there."""

NO_NAME = "cannot be a name: 1 to 120 characters, no control characters and none of []=,|"
SHA256 = r"^[0-9a-f]{64}$"
Name = Annotated[str, Field(pattern=NAME)]
Sha256 = Annotated[str, Field(pattern=SHA256)]
_PATTERNS: Final = {NAME: NO_NAME, SHA256: "must be a sha256: 64 digits of 0-9 and a-f"}

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ALIAS = re.compile(r"(?:^|[\s\[{,])\*\w", re.M)
# The C loader is as safe and about ten times as fast, but not every build of PyYAML has it.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Progress = Callable[[str, int, int], None]
Model = TypeVar("Model", bound=BaseModel)


class StrictModel(BaseModel):
    """Base of the models of log formats: immutable, strict types, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())


def pick(files: Mapping[str, bytes], wanted: str) -> tuple[str, bytes] | None:
    """Return the file ``wanted``, with or without ``.gz`` and folders, decompressed; None if it is absent."""
    names = sorted(name for name in files if name.rsplit("/", 1)[-1].removesuffix(".gz") == wanted)
    if len(names) > 1:
        raise InputError(wanted, [f"given twice ({', '.join(names)}); keep one"])
    return (names[0], unpack(names[0], files[names[0]])) if names else None


def require(files: Mapping[str, bytes], wanted: str) -> tuple[str, bytes]:
    """Like `pick`, but raises `InputError` if the file is absent."""
    if (file := pick(files, wanted)) is None:
        names = ", ".join(sorted(files)) or "no file at all"
        raise InputError(wanted, [f"missing (got {names}); needed: {wanted} or {wanted}.gz"])
    return file


def text_of(name: str, data: bytes) -> str:
    """Decode UTF-8 text without its byte order mark; raises `InputError` for other content."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        if (kind := foreign_format(data[:8])) is not None:
            raise InputError(name, [kind]) from None
        line = data.count(b"\n", 0, exc.start) + 1
        raise InputError(
            name, [Problem(f"line {line}", f"not UTF-8 (byte {data[exc.start]:#04x}); save it as UTF-8")]
        ) from None


def place_of(*places: str) -> str:
    """Join places from large to small: ``a.jsonl line 3, call.seconds``."""
    return ", ".join(place for place in places if place)


def json_objects(
    noun: str, name: str, data: bytes, tally: Tally, progress: Progress | None
) -> Iterator[tuple[str, bytes, dict[str, Any] | None]]:
    """Yield place, bytes and object of each non-blank line; the object is None if invalid, with the problem noted."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    for done, (number, line) in enumerate(lines, start=1):
        place, tree = f"{name} line {number}", None
        with note_problems(tally, place):
            tree = json_object(line)
        yield place, line, tree
        if progress is not None:
            progress(noun, done, len(lines))


def json_object(line: bytes) -> dict[str, Any]:
    """Parse one JSON object strictly, as `json_value` does."""
    return an_object(json_value(line))


def an_object(value: Any) -> dict[str, Any]:
    """Return an object of a JSON text; raises ``ValueError`` for any other value."""
    if not isinstance(value, dict):
        raise ValueError(f"must be an object (got {written(value)})")  # noqa: TRY004
    return value


def written(value: Any) -> str:
    """Write the first characters of a JSON value for a message."""
    return json.dumps(value, ensure_ascii=False, default=str)[:40]


def json_value(line: bytes) -> Any:
    """Parse one JSON value strictly: no duplicate keys, NaN, infinity, huge integers or halves of characters."""

    def whole_number(text: str) -> int:
        if len(text) > LONGEST_NUMBER:
            raise ValueError(f"a number of {len(text)} digits (allowed at most {LONGEST_NUMBER})")
        return int(text)

    def no_constant(name: str) -> float:
        raise ValueError(f"{name} is not a number here")

    try:
        value = json.loads(line, object_pairs_hook=unique_keys, parse_constant=no_constant, parse_int=whole_number)
        if _SURROGATE.search(line):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError as exc:
        half = f"{ord(exc.object[exc.start]):04x}"
        raise ValueError(f"holds half of a character (\\u{half}); remove it, or write the whole one") from None
    except json.JSONDecodeError as exc:
        excerpt = line[max(exc.pos - 10, 0) : exc.pos + 20].decode("utf-8", "replace")
        raise ValueError(f"not JSON: {exc.msg} at column {exc.colno} (near {excerpt!r})") from None
    except UnicodeDecodeError as exc:
        raise ValueError(f"not UTF-8 at byte {exc.start}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None


def yaml_tree(text: str) -> Any:
    """Parse YAML with the safe loader into plain JSON values; dates and times become text."""
    try:
        if _ALIAS.search(text) and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, _SafeLoader)):
            raise ValueError("aliases (*name) are not read; write the value out")
        tree = yaml.load(text, Loader=_SafeLoader)  # it is the safe loader
        return json.loads(json.dumps(tree, default=str, allow_nan=False))
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise ValueError(f"not YAML: {exc.problem or 'unreadable'} (line {line})") from None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as exc:
        reason = " ".join(str(exc).split())
        reason = f"a number of more than {LONGEST_NUMBER} digits" if "int_max_str_digits" in reason else reason
        raise ValueError(f"not YAML: {reason}") from None


class ShapeError(ValueError):
    """A value does not match its model; carries every problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


def as_model(kind: type[Model], value: Any) -> Model:
    """Parse plain values, or the bytes of a JSON text, into a ``kind``; raises `ShapeError`."""
    try:
        return kind.model_validate_json(value) if isinstance(value, bytes) else kind.model_validate(value)
    except ValidationError as exc:
        problems = []
        for problem in problems_of(exc, kind):
            message = problem.what
            for pattern, words in _PATTERNS.items():
                message = message.replace(f"must have the form {pattern}", words)
            if message.startswith("unknown key"):  # all that may be there, and not only what is spelled alike
                *parts, _ = (int(part) if part.isdigit() else part for part in problem.where.split("."))
                message = f"unknown key (allowed: {', '.join(known_keys(kind, parts)) or 'none'})"
            problems.append(Problem(problem.where, message))
        raise ShapeError(problems) from None


def object_as_model(kind: type[Model], text: str) -> Model:
    """Parse a JSON text with one object into a ``kind``, as strictly as `json_object`."""
    data = text.encode("utf-8", "surrogatepass")
    json_object(data)
    return as_model(kind, data)


def try_model(kind: type[Model], value: Any, place: str, tally: Tally) -> Model | None:
    """Parse ``value`` into a ``kind``; None if invalid, with every problem noted under ``place``."""
    with note_problems(tally, place):
        return as_model(kind, value)
    return None


@contextmanager
def note_problems(tally: Tally, place: str) -> Iterator[None]:
    """Note the problems of a `ValueError` in the block under its place, and continue after it."""
    try:
        yield
    except ValueError as exc:
        for problem in exc.problems if isinstance(exc, ShapeError) else (Problem("", str(exc)),):
            tally.problem(place_of(place, problem.where), problem.what)


def csv_rows(text: str, wrong: Callable[[int, str], None]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV text with a header, each with its first line; empty rows are skipped."""
    with closing(csv_lines(text, wrong, delimiter_of(text[: 1 << 16])[0])) as lines:
        _, header = next(lines, (1, []))
        if not header:
            raise ValueError("empty: a header row is needed")
        twice = duplicates(header)
        if twice:
            raise ValueError(f"column {twice[0]!r} occurs twice in the header")
        for number, row in lines:
            if row and len(row) != len(header):
                wrong(number, f"has {len(row)} cells (the header has {len(header)})")
            elif any(row):
                yield number, dict(zip(header, row, strict=True))


_EPOCH: Final = re.compile(r"[1-4]\d{9}(\d{3})?(?:\.\d{1,9})?", re.ASCII)  # from 2001 to 2128


def parse_time(text: str, zone: tzinfo | None = None) -> datetime:
    """Parse a time as UTC: ISO 8601, or seconds or milliseconds since 1970; ``zone`` is of times without one."""
    if (epoch := _EPOCH.fullmatch(text.strip())) is not None:
        return datetime.fromtimestamp(float(epoch[0]) / (1000 if epoch[1] else 1), UTC)
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"must be a time such as 2026-05-01T13:30:00Z (got {text[:80]!r})") from None
    if instant.tzinfo is None and zone is not None:
        # local times are ambiguous, or do not exist, when clocks change
        both = [instant.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
        if both[0].utcoffset() != both[1].utcoffset():
            offsets = " or ".join(f"{moment:%z}" for moment in both)
            raise ValueError(f"clocks change then in {zone} (got {text[:80]!r}); write it with its offset, {offsets}")
        instant = both[0]
    if instant.tzinfo is None:
        raise ValueError(f"has no time zone (got {text[:80]!r}); allowed: 2026-05-01T13:30:00Z or with +02:00")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"is not a time that UTC can represent (got {text[:80]!r})") from None


def parse_day(text: str) -> date:
    """Parse a calendar day in ISO format."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"must be a day such as 2026-05-01 (got {text[:80]!r})") from None


def midnight(value: date) -> datetime:
    """Return the start of a day in UTC, which represents a day without a time."""
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


_ROUND: Final = re.compile(r"([1-9][0-9]{0,3})(min|h|d|w)")
_ROUND_UNITS: Final[Mapping[str, timedelta]] = {
    "min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1),
}  # fmt: skip
_FIRST_MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC)


def round_width(text: str) -> timedelta:
    """Parse the length of a round: ``15min``, ``1h``, ``1d``, ``2w``."""
    if (match := _ROUND.fullmatch(text)) is None:
        raise ValueError(f"must be a length such as 15min, 1h, 1d or 1w (got {text[:40]!r})")
    return int(match[1]) * _ROUND_UNITS[match[2]]


def rounds_of(asked: Iterable[tuple[str, datetime]], width: timedelta) -> dict[tuple[str, datetime], tuple[str, int]]:
    """Return the round of each decision, and its number in it by agent; equal rounds and numbers are one question."""
    rounds: dict[tuple[str, datetime], tuple[str, int]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for agent, at in sorted(set(asked)):
        start = at - (at - _FIRST_MONDAY) % width
        name = start.strftime("%Y-%m-%dT%H:%MZ" if width % timedelta(days=1) else "%Y-%m-%d")
        rounds[agent, at] = name, counts[agent, name]
        counts[agent, name] += 1
    return rounds


@dataclass(frozen=True, slots=True)
class DataRow:
    """One row with its place, and the tally for its problems."""

    place: str
    cells: Mapping[str, Any]
    tally: Tally
    zone: tzinfo | None = None

    @property
    def quiet(self) -> DataRow:
        """The same row without reporting of problems, for preliminary reads."""
        return DataRow(self.place, self.cells, Tally(), self.zone)

    def problem(self, column: str | None, message: str) -> None:
        """Note a problem of a cell."""
        self.tally.problem(place_of(self.place, column or ""), message)

    def text(self, column: str | None, *, needed: bool = False, whole: bool = False) -> str:
        """Return the text of a cell, or with ``whole`` its whole number as text; empty if it has none."""
        value = self.cells.get(column) if column else None
        if whole and type(value) is int:  # True is none
            return str(value)
        if isinstance(value, str) and value:
            return value
        if value not in (None, ""):
            self.problem(column, f"must be text (got {value!r:.60})")
        elif needed:
            self.problem(column, "is empty; a value is needed")
        return ""

    def texts(self, column: str) -> tuple[str, ...]:
        """Return the texts of a cell: one, or in JSON a list of them."""
        value = self.cells.get(column)
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            self.problem(column, f"must be text or a list of texts (got {value!r:.60})")
            return ()
        return tuple(item for item in (value if isinstance(value, list) else [self.text(column)]) if item.strip())

    def number(
        self, column: str | None, low: float = -math.inf, high: float = math.inf, hint: str = ""
    ) -> float | None:
        """Return the finite number of a cell; None if it has none. ``hint`` is added for numbers out of limits."""
        value = self.cells.get(column) if column else None
        if value is None or value == "":
            return None
        if isinstance(value, str):  # digits of other scripts, and 1_0, are numbers to Python alone
            written = value.isascii() and "_" not in value
        else:
            written = isinstance(value, (int, float)) and not isinstance(value, bool)
        parsed = math.nan
        with suppress(ValueError, OverflowError):
            parsed = float(value) if written else math.nan
        if not math.isfinite(parsed) or not low <= parsed <= high:
            limits = f" from {low:g} to {high:g}" if math.isfinite(low) else ""
            comma = isinstance(value, str) and value.count(",") == 1 and value.replace(",", "").isdigit()
            advice = f"; {hint}" if hint and math.isfinite(parsed) else "; write a decimal point" if comma else ""
            self.problem(column, f"must be a finite number{limits} (got {value!r:.60}){advice}")
            return None
        return parsed

    def integer(self, column: str | None, default: int, low: int) -> int:
        """Return the whole number of a cell, or the default."""
        number = self.number(column, low, 2**53)
        if number is not None and number != int(number):
            self.problem(column, f"must be a whole number (got {number:g})")
        return default if number is None else int(number)

    def time(self, column: str | None, *, needed: bool = False) -> datetime | None:
        """Return the time of a cell in UTC; None if it has none."""
        cell = self.cells.get(column) if column else None
        text = f"{cell:f}" if isinstance(cell, float) else self.text(column, needed=needed, whole=True)
        with note_problems(self.tally, place_of(self.place, column or "")):
            return parse_time(text, self.zone) if text else None
        return None


@dataclass(slots=True)
class ParsedSheet:
    """The readable rows of a file, the number of unreadable ones (``lost``), and ``broken`` if none is readable."""

    rows: list[DataRow]
    lost: int = 0
    broken: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all rows, in order of first appearance."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row.cells))


def read_sheet(
    name: str, data: bytes, tally: Tally, wanted: Collection[str] = (), zone: tzinfo | None = None
) -> ParsedSheet:
    """Read a CSV, JSON or JSONL file (by its name); unreadable rows are noted, counted and left out."""
    sheet = ParsedSheet([])

    def wrong(number: int, message: str) -> None:
        sheet.lost += 1
        tally.problem(f"{name} line {number}", message)

    def rows_in(tree: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the rows of an object with dotted columns; an object with a list of orders gives one row per order."""
        cells = _flatten(an_object(tree), "")
        lists = [
            key for key, value in cells.items()
            if isinstance(value, list) and any(isinstance(entry, dict) for entry in value)
            and any(column.startswith(f"{key}.") for column in wanted)
        ]  # fmt: skip
        if len(lists) > 1:
            hint = "a decision has one list of orders"
            raise ValueError(f"columns of two lists are mapped ({lists[0]}, {lists[1]}); {hint}")
        if not lists:
            yield "", cells
        for at, entry in enumerate(cells.pop(lists[0]) if lists else (), start=1):
            if not isinstance(entry, dict):
                raise ValueError(f"{lists[0]}: must hold objects only (item {at} is {written(entry)})")  # noqa: TRY004
            yield f"{lists[0]} {at}", cells | _flatten(entry, f"{lists[0]}.")

    def add(place: str, tree: Any) -> None:
        try:
            sheet.rows += [DataRow(place_of(place, at), cells, tally, zone) for at, cells in rows_in(tree)]
        except (ValueError, RecursionError) as exc:
            sheet.lost += 1
            tally.problem(place, "nested too deep" if isinstance(exc, RecursionError) else str(exc))

    if name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        for place, _, tree in json_objects("", name, data, tally, None):
            if tree is None:
                sheet.lost += 1
            else:
                add(place, tree)
        return sheet
    try:
        if name.removesuffix(".gz").endswith(".json"):
            whole = json_value(data)  # a list, or the one list in an object
            lists = [part for part in whole.values() if isinstance(part, list)] if isinstance(whole, dict) else [whole]
            if len(lists) != 1 or not isinstance(lists[0], list):
                hint = "write one object a line as .jsonl"
                raise ValueError(f"must be a list of objects, or an object with one list; {hint}")
            for at, tree in enumerate(lists[0], start=1):
                add(f"{name} item {at}", tree)
            return sheet
        for number, cells in csv_rows(text_of(name, data), wrong):
            sheet.rows.append(DataRow(f"{name} line {number}", cells, tally, zone))
    except ValueError as exc:
        sheet.broken = True
        tally.problem(name, str(exc))
    return sheet


def _flatten(tree: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for key, value in tree.items():
        inner = _flatten(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
        if twice := next((name for name in inner if name in cells), None):
            raise ValueError(f"{twice!r} is there twice: with a dot in its name, and as an object in an object")
        cells |= inner
    return cells


_AFTERWARDS = "outcomes?|exit|reali[sz]ed|future|forward|fwd|pnl|resolved|resolution|after|next"
_OUTCOME = re.compile(rf"(?:^|[_\s.-])(?:{_AFTERWARDS})(?:$|[_\s.-]|\d)", re.I)

_MEASURES = frozenset({
    "return", "returns", "ret", "price", "prices", "close", "pnl", "alpha", "performance", "change", "move",
})  # fmt: skip
_LATER = frozenset({"after", "forward", "fwd", "next", "future", "subsequent", "realized", "realised", "resolved"})
# Words of facts known beforehand although they refer to the future: estimates, their ratios, after-hours trading.
_BEFOREHAND = frozenset({
    "expected", "forecast", "forecasts", "estimate", "estimated", "estimates", "consensus", "target", "implied",
    "guidance", "projected", "to", "earnings", "ratio", "pe", "tax", "hours", "market", "vol", "volatility",
    "variance", "correlation",
})  # fmt: skip
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def names_later(name: str) -> bool:
    """True if a file or column name suggests outcomes: exit_prices.csv, fwd_return."""
    return bool(_OUTCOME.search(name))


def names_outcome(field: str) -> bool:
    """True if the name of a fact suggests an outcome: exit_price, realized_return_1w, returnAfter1w."""
    words = {word.lower() for word in _WORDS.findall(field)}
    if words & {"outcome", "outcomes"} or ("exit" in words and words & (_MEASURES | {"value", "nav", "date"})):
        return True
    return bool(words & _LATER and words & _MEASURES) and not words & _BEFOREHAND


Column = Annotated[str, Field(min_length=1)]


class MapPart(BaseModel):
    """Base of the parts of a column map: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MapFiles(MapPart):
    """File names, relative to the map."""

    decisions: str
    facts: str | None = None
    constraints: str | None = None
    outcomes: str | None = None


class RecordSource(MapPart):
    """Provenance of the records."""

    source: Annotated[str, Field(min_length=1)]
    licence: str | None = None
    commit: str | None = None


class DecisionColumns(MapPart):
    """Columns of the decisions file; the first five are required, ``episode`` only without ``round``."""

    agent: Column
    family: Column
    decided_at: Column
    context: Column
    episode: Column | None = None
    step: Column | None = None
    replicate: Column | None = None
    cluster: Column | None = None
    model: Column | None = None
    prompt: Column | None = None
    cutoff: Column | None = None
    confidence: Column | None = None
    seconds: Column | None = None
    instrument: Column | None = None
    action: Column | None = None
    weight: Column | None = None
    quantity: Column | None = None
    price: Column | None = None
    leverage: Column | None = None
    stop: Column | None = None
    target: Column | None = None
    derivation: Column | None = None
    parent: Column | None = None


class TextColumns(MapPart):
    """Columns with the agent's rationales, by kind; several columns of one kind stay in order."""

    summary: tuple[Column, ...] = ()
    portfolio: tuple[Column, ...] = ()
    risk: tuple[Column, ...] = ()
    candidate: tuple[Column, ...] = ()
    holding: tuple[Column, ...] = ()
    stage: tuple[Column, ...] = ()
    arena: tuple[Column, ...] = ()


class FactColumns(MapPart):
    """Columns of the facts file."""

    context: Column = "context"
    instrument: Column = "instrument"
    field: Column = "field"
    value: Column = "value"
    unit: Column = "unit"
    available_at: Column = "available_at"
    as_of: Column | None = None
    source: Column | None = None
    note: Column | None = None


class ConstraintColumns(MapPart):
    """Columns of the constraints file, which has the agents' numeric rules."""

    context: Column = "context"
    kind: Column = "kind"
    limit: Column = "limit"
    unit: Column = "unit"
    scope: Column | None = None


class OutcomeColumns(MapPart):
    """Columns of the outcomes file."""

    agent: Column = "agent"
    episode: Column = "episode"
    value: Column = "value"
    horizon: Column = "horizon"
    decided_at: Column | None = None
    step: Column | None = None
    replicate: Column | None = None
    benchmark: Column | None = None
    resolved_at: Column | None = None


class ColumnMap(MapPart):
    """A column map."""

    version: Literal["1"] = "1"
    files: MapFiles
    provenance: RecordSource
    columns: DecisionColumns
    rationales: TextColumns = TextColumns()
    weights: dict[str, str] = Field(default_factory=dict, description="instrument of each column of weights")
    known_scale: tuple[float, float] = Field(default=(1, 5), description="lowest and highest known score")
    known_scores: dict[str, str] = Field(default_factory=dict, description="dimension of each column of known scores")
    weight_unit: Literal["fraction", "percent"] = "fraction"
    completeness: Completeness = "partial"
    round: str | None = Field(default=None, description="length of a round: 15min, 1h, 1d, 1w")
    time_zone: str | None = Field(default=None, description="time zone of times without one")
    facts: FactColumns = FactColumns()
    constraints: ConstraintColumns = ConstraintColumns()
    outcomes: OutcomeColumns = OutcomeColumns()

    @field_validator("round")
    @classmethod
    def _is_a_length(cls, text: str | None) -> str | None:
        if text is not None:
            round_width(text)
        return text

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str | None) -> str | None:
        try:
            return name if name is None else ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"must be a time zone such as Europe/Berlin or UTC (got {name!r:.40})") from None

    @model_validator(mode="after")
    def _one_rule_of_rounds(self) -> ColumnMap:
        if self.round is None and self.columns.episode is None:
            raise ValueError('columns.episode is missing; name the column of the question, or say round = "1h"')
        if self.round is not None and self.columns.step is not None:
            raise ValueError("columns.step goes with columns.episode; round numbers the decisions of an agent itself")
        if self.round is not None and self.files.outcomes and self.outcomes.decided_at is None:
            raise ValueError("outcomes.decided_at is needed with round: which column has the time of the decision")
        return self

    @model_validator(mode="after")
    def _no_outcome_in_context(self) -> ColumnMap:
        shown = [self.columns.prompt, self.columns.context]
        for part in (self.rationales, self.facts, self.constraints):
            for named in part.model_dump().values():
                shown += [named] if isinstance(named, str) else list(named or ())
        leaks = [name for name in shown if name and names_later(name)]
        if leaks:
            raise ValueError(
                f"column {leaks[0]!r} names an outcome: what happened afterwards is never context or rationale; "
                "give it in files.outcomes"
            )
        for part_name, name in (("facts", self.files.facts), ("constraints", self.files.constraints)):
            if name and names_later(name.rsplit("/", 1)[-1]):
                raise ValueError(f"files.{part_name}: {name!r} names outcomes; give it in files.outcomes")
        return self


def parse_map(text: str, *, source: str = "map.toml") -> ColumnMap:
    """Parse a column map from TOML; raises `InputError` with every problem."""
    return read_model(ColumnMap, text, source)


def template() -> str:
    """Return a commented example map, with example lines of each file; it is a valid map."""
    return (files("assaymark.importers") / "column_map.toml").read_text(encoding="utf-8")
