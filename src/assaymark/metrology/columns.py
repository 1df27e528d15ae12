"""Score tables from other tools: validation, types, and conversion to the arrays used by the analysis."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assaymark.errors import LISTED, InputError, Problem
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.scores import CallCounts, ScoreTable, table_of, weight_problems, weight_shares
from assaymark.protocol import SCALE, Scale, scale_words
from assaymark.records import AGGREGATE, DerivationKind, Measurement, canonical_json, duplicates
from assaymark.rows import read

TEXTS: Final = ("trajectory", "agent", "cluster", "judge", "family")
"""Text columns that a score table must have, in addition to ``trial`` and at least one dimension."""

OPTIONAL_TEXTS: Final = ("cycle", "format", "agent_family", "derivation", "parent")
WHOLE: Final = {"trial": 1, "replicate": 1, "length": 0}
"""Integer columns and their minimum values; only ``trial`` is required."""

KNOWN: Final = (*TEXTS, *OPTIONAL_TEXTS, *WHOLE)

SCORE_NAMES: Final = ("score", "rating", "grade")
"""Column names that are recognised as the only score of a table."""

_CHECKED: Final = b"assaymark.dimensions"  # metadata key of a checked table: its dimensions
_DEFAULTS: Final = {"derivation": "honest", "parent": "", "agent_family": ""}
_NAMED: Final = ("agent", "judge", "family")
_NAME: Final = re.compile(r"[^\x00-\x1f\[\]=,|]{1,120}")
_MISSING: Final = ("nan", "na", "n/a", "null", "none", "")
_NUMBER: Final = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


@dataclass(slots=True)
class Problems:
    """The problems of a table: up to `LISTED` per check, the others only counted."""

    problems: list[Problem] = field(default_factory=list)
    more: int = 0

    def add(self, location: str, problem: str) -> None:
        """Add one problem."""
        self.problems.append(Problem(location, problem))

    def rows(self, bad: Bools, column: str, text: str, values: pa.ChunkedArray | Sequence[Any] | None = None) -> None:
        """Add one problem for each row of ``bad`` [rows]."""
        places = np.flatnonzero(bad)
        self.more += max(0, places.size - LISTED)
        for row in places[:LISTED].tolist():
            value = values[row] if values is not None else None
            value = value.as_py() if isinstance(value, pa.Scalar) else value
            shown = "nothing" if value is None else f"{value!r:.60}"
            self.add(f"row {row + 1}, {column}", text if values is None else f"{text} (got {shown})")


@dataclass(frozen=True, slots=True, eq=False)
class ScoreColumns:
    """A checked score table, rows in the given order."""

    names: Mapping[str, tuple[str, ...]]
    codes: Mapping[str, Ints]
    numbers: Mapping[str, Ints]
    dimensions: tuple[str, ...]
    scores: Floats
    unused: tuple[str, ...] = ()
    families_known: bool = True

    @classmethod
    def of(
        cls, table: pa.Table, source: str = "scores", dimensions: Sequence[str] | None = None, scale: Scale = SCALE
    ) -> ScoreColumns:
        """Check a raw table; raise InputError with all problems."""
        given_family = "family" in table.column_names
        if not given_family and "judge" in table.column_names:
            table = table.append_column("family", table.column("judge"))
        numeric = numeric_columns(table)
        chosen, header = named_dimensions(table.schema, dimensions, numeric)
        if not table.num_rows:
            header.append(Problem("", "no rows"))
        problems = Problems(list(header))
        scores = []
        for name in chosen:
            values, _ = _numbers(table, name, problems, "scores")
            off = (values < scale[0]) | (values > scale[1])
            if off.any():
                problems.rows(off, name, f"scores must be in {scale_words(scale)}", table.column(name))
            scores.append(values)
        if header:
            raise InputError(source, problems.problems, problems.more)
        names, codes, numbers = dict[str, tuple[str, ...]](), dict[str, Ints](), dict[str, Ints]()
        for name in (*TEXTS, *OPTIONAL_TEXTS):
            if name in table.column_names:
                names[name], codes[name] = _texts(table, name, problems)
        for name, least in WHOLE.items():
            if name not in table.column_names:
                continue
            values, readable = _numbers(table, name, problems, "whole numbers")
            if name == "replicate" and readable:  # empty values become 1
                values = np.where(np.isnan(values), 1.0, values)
            bad = ~((values >= least) & (values < 2**53) & (np.floor(values) == values))
            if readable and bad.any():
                problems.rows(bad, name, f"must be a whole number of at least {least}", table.column(name))
            numbers[name] = np.where(bad, least, values).astype(np.int64)
        columns = cls(names, codes, numbers, chosen, np.stack(scores, axis=1),
                      tuple(name for name in numeric if name not in chosen), given_family)  # fmt: skip
        if not problems.problems:
            columns._check(problems)
        if problems.problems:
            raise InputError(source, problems.problems, problems.more)
        return columns

    @property
    def usable(self) -> Bools:
        """True for rows with a score on every dimension [rows]."""
        return np.asarray(~np.isnan(self.scores).any(axis=1))

    def only(self, rows: Bools) -> ScoreColumns:
        """Select some of the rows."""
        return replace(
            self, codes={name: codes[rows] for name, codes in self.codes.items()},
            numbers={name: values[rows] for name, values in self.numbers.items()}, scores=self.scores[rows],
        )  # fmt: skip

    def of_trajectories(self, name: str) -> dict[str, str]:
        """Return the value of a text column for each trajectory."""
        rows = np.unique(self.codes["trajectory"], return_index=True)[1]
        texts, ids = self.names[name], self.names["trajectory"]
        return {ids[self.codes["trajectory"][row]]: texts[self.codes[name][row]] for row in rows.tolist()}

    def to_arrow(self) -> pa.Table:
        """Convert to Arrow: names as dictionaries, integers as int64, scores as float64 with nulls."""
        columns: dict[str, Any] = {}
        for name in KNOWN:
            if name in self.codes:
                codes = pa.array(self.codes[name].astype(np.int32))
                columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(self.names[name], type=pa.string()))
            elif name in self.numbers:
                columns[name] = pa.array(self.numbers[name])
        for name, scores in zip(self.dimensions, self.scores.T, strict=True):
            columns[name] = pa.array(np.ascontiguousarray(scores), mask=np.isnan(scores))
        return pa.table(columns, metadata={_CHECKED: ",".join(self.dimensions).encode()})

    def digest(self, weights: Floats) -> str:
        """Compute a hash of sixteen hex digits over all analysed values, independent of the order of the rows."""
        order = np.lexsort((self.numbers["trial"], self.codes["judge"], self.codes["trajectory"]))
        hasher = hashlib.sha256(repr((self.dimensions, weights.tolist())).encode())
        for name in sorted(self.codes):
            hasher.update(repr((name, self.names[name])).encode())
            hasher.update(self.codes[name][order].tobytes())
        for name in sorted(self.numbers):
            hasher.update(name.encode() + self.numbers[name][order].tobytes())
        hasher.update(np.where(np.isnan(self.scores), 0.0, self.scores)[order].tobytes())
        return hasher.hexdigest()[:16]

    def _check(self, flaws: Problems) -> None:
        """Add every problem that would make the table ambiguous."""
        flaws.problems += name_problems({name: self.names[name] for name in _NAMED})
        for value in sorted(set(self.names.get("derivation", ())) - set(get_args(DerivationKind))):
            flaws.add("derivation", f"must be one of {', '.join(get_args(DerivationKind))} (got {value!r:.60})")
        if "derivation" in self.names and "honest" not in self.names["derivation"]:
            flaws.add("derivation", "no row is honest; control cells are compared with honest records")
        all_values = {**self.codes} | {
            name: self.numbers[name] for name in ("replicate", "length") if name in self.numbers
        }
        for name, others in (
            ("judge", ("family",)),
            ("agent", ("agent_family",)),
            ("trajectory", ("agent", "cluster", "cycle", "format", "derivation", "parent")),
            ("cycle", ("cluster",)),
            ("trajectory", ("replicate", "length")),
        ):
            for other in others:
                if name not in self.codes or other not in all_values:
                    continue
                # Each value has exactly one partner; report those with several.
                codes, names, values = self.codes[name], self.names[name], all_values[other]
                first = np.empty(len(names), dtype=np.int64)
                first[codes[::-1]] = values[::-1]
                wrong = np.unique(codes[np.flatnonzero(first[codes] != values)])
                flaws.more += max(0, wrong.size - LISTED)
                for code in wrong[:LISTED].tolist():
                    distinct = np.unique(values[codes == code]).tolist()
                    shown = [self.names[other][k] if other in self.names else str(k) for k in distinct]
                    more = "" if len(shown) <= 5 else f" and {len(shown) - 5} more"
                    flaws.add(f"{name} {names[code]}", f"one {name} has one {other} (got {', '.join(shown[:5])}{more})")
        trial = self.numbers["trial"]
        numbers, place = np.unique(trial, return_inverse=True)
        key = (self.codes["trajectory"] * len(self.names["judge"]) + self.codes["judge"]) * numbers.size + place
        order = np.argsort(key, kind="stable")
        again = np.zeros(key.size, dtype=bool)
        again[order[1:]] = key[order][1:] == key[order][:-1]
        rows = np.flatnonzero(again)
        flaws.more += max(0, rows.size - LISTED)
        for row in rows[:LISTED].tolist():
            named = (self.names[name][self.codes[name][row]] for name in ("trajectory", "judge"))
            flaws.add(f"row {row + 1}", f"a second result for {', '.join(named)}, trial {trial[row]}")
        if not self.usable.any():
            flaws.add("", "no row has a score on every dimension")


def read_scores(
    source: Path | str | pa.Table | pa.RecordBatchReader, *, dimensions: Sequence[str] | None = None,
    scale: Scale = SCALE,
) -> pa.Table:  # fmt: skip
    """Read a table of scores from any tool, with checks and types."""
    table, name = raw_scores(source)
    return ScoreColumns.of(table, name, dimensions, scale).to_arrow()


def name_problems(names: Mapping[str, Iterable[str]]) -> list[Problem]:
    """List the problems of names that become parts of measurement names, by column."""
    rule = "names have 1 to 120 characters, none of them [ ] = , | or unprintable"
    wrong = [
        Problem(column, f"{rule} (got {name!r:.60})")
        for column, entries in names.items()
        for name in entries
        if not _NAME.fullmatch(name)
    ]
    if AGGREGATE in names.get("judge", ()):
        wrong.append(Problem("judge", f"{AGGREGATE!r} is not available as a judge name"))
    return wrong


def raw_scores(source: Path | str | pa.Table | pa.RecordBatchReader) -> tuple[pa.Table, str]:
    """Load the unchecked rows of any source; also return its name for messages."""
    if isinstance(source, (str, Path)):
        return read(Path(source)).table, str(source)
    if isinstance(source, pa.Table):
        return source, "scores"
    if hasattr(source, "read_all"):
        return source.read_all(), "scores"
    problem = f"must be a path, a pyarrow.Table or a pyarrow.RecordBatchReader (got {type(source).__name__})"
    raise InputError("scores", [Problem("source", problem)])


def numeric_columns(table: pa.Table | pa.Schema) -> list[str]:
    """Return the undocumented columns that are numeric; in a table, also text columns that only contain numbers."""
    numeric = []
    for k, column in enumerate(table if isinstance(table, pa.Schema) else table.schema):
        kind = _kind_of(column.type)
        if column.name in KNOWN:
            continue
        if kind == "text" and isinstance(table, pa.Table):
            text, bad = _number_text(table.column(k))
            kind = "" if bad.any() or text.null_count == len(text) else "number"
        numeric += [column.name] if kind == "number" else []
    return numeric


def _kind_of(kind: pa.DataType) -> str:
    """Classify a column type as ``number``, ``text`` or neither (empty)."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else ""


def named_dimensions(
    schema: pa.Schema, names: Sequence[str] | None, numeric: Sequence[str]
) -> tuple[tuple[str, ...], list[Problem]]:
    """Return the dimension columns, sorted, and the problems of the header: missing, excess or ambiguous columns."""
    columns = schema.names
    unknown = [name for name in columns if name not in KNOWN]
    twice = duplicates(columns)
    problems = [
        Problem(name or "header", f"a column name must be unique (got {columns.count(name)} times)") for name in twice
    ]
    for name in (*TEXTS, "trial"):
        if name not in columns:
            close = difflib.get_close_matches(name, [other.lower() for other in unknown], n=1)
            meant = next((f"; is it {other!r}?" for other in unknown if close and other.lower() == close[0]), "")
            problem = f"this column is missing (the table has {', '.join(columns) or 'no columns'}){meant}"
            problems.append(Problem(name, problem))
    if names is None and _CHECKED in (schema.metadata or {}):
        names = schema.metadata[_CHECKED].decode(errors="replace")
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    if names is None:
        names = numeric or [name for name in unknown if name in SCORE_NAMES]
        if numeric and (len(numeric) > 1 or numeric[0] not in SCORE_NAMES):
            # Numeric columns: only the user knows which of them are scores.
            places = [f"{name} in column {columns.index(name) + 1}" for name in numeric[:LISTED]]
            more = f" and {len(numeric) - LISTED} more" if len(numeric) > LISTED else ""
            flag = f"--dimensions {','.join(numeric[:LISTED])}{',...' if more else ''}"
            advice = f"name those of the numeric columns that are scores, as in {flag}, or in rubric.weights of a plan"
            return (), [*problems, Problem("dimensions", f"{advice} (got {', '.join(places)}{more})")]
    if not names:
        problems.append(Problem("", "no dimension: beside the documented columns at least one with scores is needed"))
    chosen = []
    for name in sorted(set(names)):
        if list(names).count(name) > 1:
            problems.append(Problem(name, "this dimension is named more than once"))
        if name == AGGREGATE or name in KNOWN:
            problems.append(Problem(name, "this name is not available for a dimension"))
        elif name not in columns:
            beside = f"beside the documented columns it has {', '.join(unknown) or 'none'}"
            problems.append(Problem(name or "dimensions", f"the table has no such column for a dimension ({beside})"))
        elif not _NAME.fullmatch(name):
            problems.append(Problem(name, "names of dimensions have 1 to 120 characters, none of them [ ] = , |"))
        elif name not in twice:
            chosen.append(name)
    return tuple(chosen), problems


def _texts(table: pa.Table, name: str, problems: Problems) -> tuple[tuple[str, ...], Ints]:
    """Return the sorted names and the codes of a text column."""
    column = table.column(name)
    if pa.types.is_nested(column.type):
        problems.add(name, f"must be text or whole numbers (got {column.type})")
        return (), np.zeros(len(column), dtype=np.int64)
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no rows at all
        encoded = encoded.chunk(0)
    names = encoded.dictionary.cast(pa.string())
    if names.null_count or encoded.null_count or name in _DEFAULTS:
        texts = encoded.cast(encoded.type.value_type).cast(pa.string())
        if name not in _DEFAULTS and texts.null_count:
            problems.rows(np.asarray(texts.is_null().to_numpy(zero_copy_only=False), dtype=bool), name, "is empty")
        encoded = texts.fill_null(_DEFAULTS.get(name, "")).dictionary_encode()
        names = encoded.dictionary
    return sorted_codes(names.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def sorted_codes(names: Sequence[str], codes: Any) -> tuple[tuple[str, ...], Any]:
    """Return the sorted names that occur and each row's index among them; ``codes`` [rows] index ``names``."""
    used = np.bincount(codes, minlength=len(names)) > 0
    present = sorted({name for name, occurs in zip(names, used.tolist(), strict=True) if occurs})
    if present == names:
        return tuple(present), codes
    place = {name: k for k, name in enumerate(present)}
    return tuple(present), np.array([place.get(name, 0) for name in names], dtype=codes.dtype)[codes]


def _number_text(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Bools]:
    """Replace words for a missing number by nulls; also return which rows are not numbers [rows]."""
    text = pc.utf8_ltrim(pc.utf8_trim_whitespace(column.cast(pa.string())), "+")
    text = pc.if_else(pc.is_in(pc.utf8_lower(text), pa.array(_MISSING)), None, text)
    bad = pc.fill_null(pc.invert(pc.match_substring_regex(text, _NUMBER)), False)
    return text, np.asarray(bad.to_numpy(), dtype=bool)


def _numbers(table: pa.Table, name: str, problems: Problems, missing: str) -> tuple[Floats, bool]:
    """Return a column as floats, NaN for empty cells, and whether it could be parsed."""
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = _kind_of(column.type)
    if kind == "text":
        text, bad = _number_text(column)
        if bad.any():
            problems.rows(bad, name, f"text in a column of {missing}", column)
            return np.full(len(column), np.nan), False
        column = pc.cast(text, pa.float64())
    elif kind != "number" and not pa.types.is_null(column.type):
        problems.add(name, f"must hold {missing} (got {column.type})")
        return np.full(len(column), np.nan), False
    values = pc.cast(column, pa.float64(), safe=False).combine_chunks()
    return np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64).reshape(len(column)), True


_NUMBERS: Final = {name: pa.float64() for name in ("value", "low", "high", "level")} | {"n": pa.int64()}
_FIELDS: Final = ("name", "labels", *_NUMBERS, "n_of", "method", "state", "unit", "inputs", "detail")
_KINDS: Final = {"labels": pa.map_(pa.string(), pa.string())} | _NUMBERS
MEASUREMENT_SCHEMA: Final = pa.schema([(name, _KINDS.get(name, pa.string())) for name in _FIELDS])
"""Columns of `measurements_to_arrow`: those of ``tables/measurements.parquet``, and the rest of the record."""


def table_from_arrow(
    source: pa.Table | pa.RecordBatchReader | Path | str,
    *,
    weights: Mapping[str, float] | None = None,
    dimensions: Sequence[str] | None = None,
    scale: Scale = SCALE,
) -> ScoreTable:
    """Build a score table from judgments of another tool, equal to that of `score_table` for the same judgments."""
    table, name = raw_scores(source)
    named = tuple(weights) if dimensions is None and weights is not None else dimensions
    return score_table_of(ScoreColumns.of(table, name, named, scale), weights)


def score_table_of(
    columns: ScoreColumns, weights: Mapping[str, float] | None = None, *, derivation: str = "honest"
) -> ScoreTable:
    """Build the score table of the rows of one derivation, from checked columns; see `table_from_arrow`."""
    if problems := weight_problems(columns.dimensions, weights, of="scores"):
        raise InputError("scores", problems)
    share = weight_shares(columns.dimensions, weights)
    # The rows of one derivation in the order of trajectory, judge and trial.
    codes, names = columns.codes, columns.names
    chosen_rows = np.ones(codes["judge"].size, dtype=bool)
    if "derivation" in codes:
        chosen_rows = codes["derivation"] == names["derivation"].index(derivation)
    order = np.lexsort((columns.numbers["trial"], codes["judge"], codes["trajectory"]))
    order = order[chosen_rows[order]]
    ids, start, trajectory = np.unique(codes["trajectory"][order], return_index=True, return_inverse=True)
    places, first_rows, judge = np.unique(codes["judge"][order], return_index=True, return_inverse=True)
    judges, usable = tuple(names["judge"][k] for k in places), columns.usable[order]
    of = {name: values[order[start]] for name, values in (*codes.items(), *columns.numbers.items())}
    attributes = {name: (names[name], of[name]) for name in ("agent", "cluster", "cycle", "format") if name in codes}
    attributes = {"cycle": attributes["cluster"], "format": (("",), np.zeros_like(start)), **attributes}
    makers = None
    if "agent_family" in codes:
        families = codes["agent_family"][np.unique(codes["agent"], return_index=True)[1]]
        makers = {name: names["agent_family"][k] or name for name, k in zip(names["agent"], families, strict=True)}
    replies = np.bincount(judge * 2 + usable, minlength=2 * len(judges)).reshape(-1, 2).tolist()
    return table_of(
        trajectory, judge, columns.numbers["trial"][order], columns.scores[order], usable,
        [names["trajectory"][k] for k in ids], attributes, of.get("replicate", np.ones_like(start)),
        of["length"].astype(np.float64) if "length" in of else None,
        (judges, tuple(names["family"][k] for k in codes["family"][order[first_rows]]), columns.dimensions, share),
        {name: CallCounts.of_rows(ok, bad) for name, (bad, ok) in zip(judges, replies, strict=True)},
        columns.digest(share), agent_families=makers, families_known=columns.families_known,
    )  # fmt: skip


def measurements_to_arrow(measurements: Iterable[Measurement]) -> pa.Table:
    """Convert measurements to an Arrow table in order: a column per field, labels as a map, detail as JSON text."""
    rows = [
        {
            **{name: getattr(item, name) for name in MEASUREMENT_SCHEMA.names},
            "labels": sorted(item.labels.items()),
            "detail": canonical_json(item.detail),
        }
        for item in measurements
    ]
    return pa.Table.from_pylist(rows, schema=MEASUREMENT_SCHEMA)


def measurements_from_arrow(table: pa.Table) -> tuple[Measurement, ...]:
    """Convert a table made by `measurements_to_arrow` back to measurements."""
    missing = [name for name in MEASUREMENT_SCHEMA.names if name not in table.column_names]
    if missing:
        raise InputError("measurements", [Problem(name, "this column is missing") for name in missing])
    return tuple(
        Measurement(**{**row, "labels": dict(row["labels"]), "detail": json.loads(row["detail"])})
        for row in table.select(MEASUREMENT_SCHEMA.names).to_pylist()
    )
