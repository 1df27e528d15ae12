"""Score tables of any size: a Parquet file read in parts by two threads, of which only sums are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Ints
from assaymark.metrology.columns import KNOWN, TEXTS, name_problems, named_dimensions, numeric_columns
from assaymark.metrology.counting import Codes, NotStreamableError, Part, count
from assaymark.metrology.ordering import ordered_copy
from assaymark.metrology.sums import Layout, ScoreSums, total, whole_weights
from assaymark.metrology.table import SCALE

THREADS: Final = 2
_ROWS: Final = 1 << 20  # rows read at a time by each thread
_IN_MEMORY_ONLY: Final = ("replicate", "derivation", "parent")
_SMALL_RANGE: Final = 1 << 16

Piece = tuple[ScoreSums | None, pa.Table | None]
Note = Callable[[str, int, int], None]


class _NewJudgeError(Exception):
    """A judge that the rows before did not have."""


def score_sums(
    path: Path,
    *,
    weights: Mapping[str, float] | None = None,
    dimensions: Sequence[str] | None = None,
    leave_out: bool = False,
    scratch: Path,
    threads: int = THREADS,
    progress: Note | None = None,
) -> ScoreSums:
    """The sums of a Parquet file of scores, whatever its size.

    Rows are best in the order of cycle, trajectory and judge, with whole-number ids of cycles and trajectories and
    scores as small integers; otherwise an ordered copy is made in ``scratch`` first, which takes several times as long.

    Parameters
    ----------
    path : Path
        Parquet with the columns of `read_scores`; one trial a judge, honest first replicates only.
    weights : mapping of dimension to weight, optional
        Weights of the aggregate: ratios of whole numbers up to 1,000. Default: all equal.
    dimensions : sequence of column names, optional
        As for `read_scores`.
    leave_out : bool
        Leave out the trajectories that lack a usable score from some judge, and count them, where the rows cannot be
        read whole.
    scratch : Path
        A folder for the ordered copy; what is made there is removed again.
    threads : int
        Parts that are decoded and counted at once.
    progress : callable, optional
        Told what is being done, how much of it is done, and how much there is.

    Returns
    -------
    ScoreSums

    Raises
    ------
    NotStreamableError
        Repeated trials, replicates, control cells, scores that are not whole, or a trajectory that lacks a usable score
        from some judge: `table_from_arrow` reads those.
    InputError
        Scores off 1..5, missing columns or names, a judge with two families, a trajectory with two agents ...
    """
    note = progress or (lambda _what, _done, _total: None)
    named = _named_columns(pq.read_schema(path), dimensions)
    try:
        sums = _streamed(path, weights, named, threads, note)
    except NotStreamableError as reason:
        if not reason.sortable:
            raise
        note(f"ordering the rows first, because {reason}", 0, 1)
        copy = scratch / "ordered.parquet"
        try:
            ordered_copy(path, copy, scratch, named)
            note("ordering the rows", 1, 1)
            sums = _streamed(copy, weights, named, threads, note)
        finally:
            copy.unlink(missing_ok=True)
    if sums.left_out and not leave_out:
        raise NotStreamableError("some trajectories lack a usable score from some judge", sortable=False)
    return sums


def sums_of(
    table: pa.Table,
    *,
    weights: Mapping[str, float] | None = None,
    dimensions: Sequence[str] | None = None,
    judges: Mapping[str, str] | None = None,
) -> ScoreSums:
    """The sums of a table in memory that holds whole cycles, in the order of cycle, trajectory and judge.

    Parameters
    ----------
    table : pyarrow.Table
        Columns and types as for `score_sums`.
    weights : mapping of dimension to weight, optional
        Weights of the aggregate.
    dimensions : sequence of column names, optional
        As for `read_scores`.
    judges : mapping of judge to family, optional
        The whole panel, where this table may hold only a part of it; default: the judges of this table.
    """
    named = _named_columns(table.schema, dimensions)
    _require_summable(table.schema, named)
    panel = dict(judges) if judges is not None else _judges(table)
    layout = _layout(panel, named, whole_weights(named, weights), "cycle" in table.column_names)
    return count(_part(table, layout, 0), layout)


# --- the file ---------------------------------------------------------------------------------------------------------


def _streamed(
    path: Path, weights: Mapping[str, float] | None, dimensions: tuple[str, ...], threads: int, note: Note
) -> ScoreSums:
    file = pq.ParquetFile(path)
    schema = file.schema_arrow
    _require_summable(schema, dimensions)
    whole = whole_weights(dimensions, weights)
    judges = _judges(next(_tables(file, _tasks(file)[0], ["judge", "family"])))
    while True:
        layout = _layout(judges, dimensions, whole, "cycle" in schema.names)
        try:
            return _named(_summed(path, file, layout, threads, note))
        except _NewJudgeError as new:
            judges = {**judges, **new.args[0]}


def _named(sums: ScoreSums) -> ScoreSums:
    """The sums, if every name in them can be told from the others."""
    layout = sums.layout
    names = {"agent": sums.agents, "judge": layout.judges, "family": layout.families, "dimension": layout.dimensions}
    if problems := name_problems(names):
        raise InputError("scores", problems)
    if not sums.calls[:, 0].any():
        raise InputError("scores", [Problem("", "no row has a score on every dimension")])
    return sums


def _summed(path: Path, file: pq.ParquetFile, layout: Layout, threads: int, note: Note) -> ScoreSums:
    """Sums of all parts. Cycles that reach over the end of a part are put together at last."""
    tasks = _tasks(file)
    rows = [sum(file.metadata.row_group(i).num_rows for i in task) for task in tasks]
    starts = np.cumsum([0, *rows]).tolist()
    columns = [name for name in file.schema_arrow.names if name in KNOWN or name in layout.dimensions]

    def work(k: int) -> list[Piece]:
        reader = pq.ParquetFile(path, metadata=file.metadata, read_dictionary=_text_columns(file.schema_arrow))
        row, found = starts[k], []
        for table in _tables(reader, tasks[k], columns):
            found += _pieces(table, layout, row)
            row += table.num_rows
        return found

    sums: list[ScoreSums] = []
    borders: list[pa.Table] = []
    with ThreadPoolExecutor(threads) as pool:
        for done, pieces in enumerate(pool.map(work, range(len(tasks))), start=1):
            inner = [piece for piece, _ in pieces if piece is not None]
            sums = [total([*sums, *inner])] if sums or inner else []
            borders += [border for _, border in pieces if border is not None]
            note("reading scores", done, len(tasks))
    if borders:
        table = pa.concat_tables(borders)
        sums.append(count(_part(table, layout, 0), layout))
    return total(sums)


def _tasks(file: pq.ParquetFile) -> list[list[int]]:
    """Neighbouring row groups, put together up to about a million rows."""
    found: list[list[int]] = []
    size = 0
    for i in range(file.num_row_groups):
        rows = file.metadata.row_group(i).num_rows
        if not rows:
            continue
        if not found or size + rows > _ROWS:
            found.append([])
            size = 0
        found[-1].append(i)
        size += rows
    if not found:
        raise InputError("scores", [Problem("", "no rows")])
    return found


def _tables(file: pq.ParquetFile, groups: list[int], columns: list[str]) -> Iterator[pa.Table]:
    """Columns of the rows of some row groups; a large one comes in several tables."""
    rows = sum(file.metadata.row_group(i).num_rows for i in groups)
    if rows <= 2 * _ROWS:
        yield file.read_row_groups(groups, columns, use_threads=False)
        return
    for batch in file.iter_batches(_ROWS, row_groups=groups, columns=columns, use_threads=False):
        yield pa.Table.from_batches([batch])


def _pieces(table: pa.Table, layout: Layout, row: int) -> list[Piece]:
    """The sums of the cycles inside a part, and the rows of its first and its last cycle."""
    key = _ids(table, "cycle" if layout.paired else "trajectory")
    if not key.size:
        return []
    inner = np.flatnonzero(key[1:] != key[:-1]) + 1
    if inner.size < 2:
        return [(None, table)]
    start, stop = int(inner[0]), int(inner[-1])
    edges = np.concatenate([np.arange(start), np.arange(stop, key.size)])
    part = _part(table.slice(start, stop - start), layout, row + start)
    # Taken, not sliced: a slice would keep the whole part in memory.
    return [(count(part, layout), table.take(pa.array(edges)))]


# --- columns ----------------------------------------------------------------------------------------------------------


def _named_columns(schema: pa.Schema, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The dimension columns, sorted; or everything that is wrong with the header."""
    if "judge" in schema.names and "family" not in schema.names:
        raise NotStreamableError("there is no column family", sortable=False)
    found, problems = named_dimensions(schema, wanted, numeric_columns(schema))
    if problems:
        raise InputError("scores", problems)
    return found


def _require_summable(schema: pa.Schema, dimensions: Sequence[str]) -> None:
    """Refuse columns that have to be read another way."""
    for name in _IN_MEMORY_ONLY:
        if name in schema.names:
            raise NotStreamableError(f"there is a column {name}", sortable=False)
    for name in ("cycle", "trajectory", "length"):
        if name in schema.names and not pa.types.is_integer(schema.field(name).type):
            raise NotStreamableError(f"{name} is no column of whole numbers", sortable=name != "length")
    for name in dimensions:
        if not pa.types.is_integer(schema.field(name).type):
            raise NotStreamableError(f"{name} is no column of whole numbers")


def _text_columns(schema: pa.Schema) -> list[str]:
    """Text columns, to be read as dictionaries."""
    wanted = {*TEXTS, "format", "agent_family"} - {"trajectory"}
    return [
        f.name for f in schema if f.name in wanted and (pa.types.is_string(f.type) or pa.types.is_large_string(f.type))
    ]


def _judges(table: pa.Table) -> dict[str, str]:
    """Family of each judge of a table."""
    names, codes = _coded(table, "judge", 0)
    families, of = _coded(table, "family", 0)
    first = {names[k]: families[of[np.argmax(codes == k)]] for k in range(len(names))}
    return dict(sorted(first.items()))


def _layout(judges: Mapping[str, str], dimensions: tuple[str, ...], weights: tuple[int, ...], paired: bool) -> Layout:
    names = tuple(sorted(judges))
    return Layout(names, tuple(judges[name] for name in names), dimensions, weights, paired)


def _part(table: pa.Table, layout: Layout, row: int) -> Part:
    """The columns of a table as codes; ``row`` is the place of its first row, for messages."""
    agents, agent = _coded(table, "agent", row)
    clusters, cluster = _coded(table, "cluster", row)
    names, judge = _coded(table, "judge", row)
    if set(names) - set(layout.judges):
        raise _NewJudgeError(_judges(table))
    place = np.array([layout.judges.index(name) for name in names], dtype=judge.dtype)
    judge = judge if np.array_equal(place, np.arange(place.size)) else place[judge]
    _require_families(table, layout, judge, row)
    formats: tuple[str, ...] = ("",)
    how: Codes | None = None
    if "format" in table.column_names:
        formats, how = _coded(table, "format", row)
    _refuse_null(table, "trial", row)
    return Part(
        agents=agents,
        agent=agent,
        clusters=clusters,
        cluster=cluster,
        formats=formats,
        format=how if len(formats) > 1 else None,
        judge=judge,
        cycle=_ids(table, "cycle") if layout.paired else None,
        trajectory=_ids(table, "trajectory"),
        scores=tuple(_scores(table, name, row) for name in layout.dimensions),
        length=_ids(table, "length") if "length" in table.column_names else None,
        makers=_makers(table, agents, agent) if "agent_family" in table.column_names else None,
    )


def _makers(table: pa.Table, agents: tuple[str, ...], agent: Codes) -> tuple[str, ...]:
    """The family of each agent, empty where the table has none."""
    column = table.column("agent_family")
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    names = [name or "" for name in encoded.dictionary.cast(pa.string()).to_pylist()] + [""]
    codes = np.asarray(encoded.indices.fill_null(len(names) - 1).to_numpy())
    pairs = np.unique(agent.astype(np.int64) * len(names) + codes)
    found: list[set[str]] = [set() for _ in agents]
    for pair in pairs.tolist():
        found[pair // len(names)].add(names[pair % len(names)])
    problems = [
        Problem(f"agent {name}", f"one agent has one agent_family (got {', '.join(sorted(families))})")
        for name, families in zip(agents, found, strict=True)
        if len(families) > 1
    ]
    if problems:
        raise InputError("scores", problems)
    return tuple(families.pop() for families in found)


def _coded(table: pa.Table, name: str, row: int) -> tuple[tuple[str, ...], Codes]:
    """The names that occur in a column, sorted, and the place of each row's name among them."""
    _refuse_null(table, name, row)
    column = table.column(name)
    if pa.types.is_integer(column.type):
        texts, codes = _numbered(column.combine_chunks())
    else:
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        encoded = column.unify_dictionaries().combine_chunks()
        texts = encoded.dictionary.cast(pa.string()).to_pylist()
        codes = encoded.indices.to_numpy()
    used = np.bincount(codes, minlength=len(texts)) > 0
    kept = sorted(text for text, occurs in zip(texts, used.tolist(), strict=True) if occurs)
    if kept == texts:
        return tuple(kept), codes
    place = {text: k for k, text in enumerate(kept)}
    return tuple(kept), np.array([place.get(text, 0) for text in texts], dtype=codes.dtype)[codes]


def _numbered(column: pa.Array) -> tuple[list[str], Codes]:
    """Whole-number ids as names and codes."""
    values = column.to_numpy()
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if high - low < _SMALL_RANGE:
        return [str(k) for k in range(low, high + 1)], (values - low).astype(np.int32)
    distinct, codes = np.unique(values, return_inverse=True)
    return [str(k) for k in distinct.tolist()], codes


def _require_families(table: pa.Table, layout: Layout, judge: Codes, row: int) -> None:
    names, family = _coded(table, "family", row)
    place = {name: k for k, name in enumerate(names)}
    wanted = np.array([place.get(name, -1) for name in layout.families], dtype=np.int64)[judge]
    if (wanted != family).any():
        k = int(np.argmax(wanted != family))
        name = layout.judges[int(judge[k])]
        got = f"{names[int(family[k])]}, elsewhere {layout.families[int(judge[k])]}"
        raise InputError(
            "scores", [Problem(f"row {row + k + 1}, judge {name}", f"one judge has one family (got {got})")]
        )


def _ids(table: pa.Table, name: str) -> Ints:
    _refuse_null(table, name, 0)
    values = table.column(name).combine_chunks().to_numpy()
    return np.asarray(values.astype(np.int64, copy=False))


def _scores(table: pa.Table, name: str, row: int) -> Codes:
    """Scores as small whole numbers, 0 where one is missing."""
    column: Any = table.column(name)
    low, high = SCALE
    ends = pc.min_max(column)
    if ends["min"].is_valid and not low <= ends["min"].as_py() <= ends["max"].as_py() <= high:
        values = column.fill_null(1).to_numpy()
        rows = np.flatnonzero((values < low) | (values > high))
        problems = [
            Problem(f"row {row + k + 1}, {name}", f"usable scores lie in {low:g}..{high:g} (got {values[k]})")
            for k in rows.tolist()[:20]
        ]
        raise InputError("scores", problems, more=max(0, rows.size - 20))
    column = column.cast(pa.int8())
    if column.null_count:
        column = column.fill_null(0)
    return np.asarray(column.combine_chunks().to_numpy())


def _refuse_null(table: pa.Table, name: str, row: int) -> None:
    column = table.column(name)
    if column.null_count:
        places = np.flatnonzero(column.is_null().to_numpy())
        problems = [Problem(f"row {row + k + 1}, {name}", "is empty") for k in places.tolist()[:20]]
        raise InputError("scores", problems, more=max(0, places.size - 20))
