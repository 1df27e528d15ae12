"""Score tables of any size: a Parquet file is read in parts by two threads and reduced to sums."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assaymark.errors import LISTED, InputError, Problem, table_problem
from assaymark.metrology.checks import Ints
from assaymark.metrology.columns import KNOWN, TEXTS, name_problems, named_dimensions, numeric_columns, sorted_codes
from assaymark.metrology.sums import Codes, NotStreamableError, ScoreSums, Shard, TableSpec, count, total, whole_weights
from assaymark.protocol import SCALE, RubricChoice, Scale, scale_words

# Sorting a large score table by cycle, trajectory and judge, on disk if memory does not suffice.


_MEMORY = "1GB"
_THREADS = 2
_ROW_GROUP = 1 << 20


def ordered_copy(source: Path, target: Path, scratch: Path, dimensions: Sequence[str], scale: Scale = SCALE) -> None:
    """Write the rows of ``source`` to ``target`` in the order that `assaymark.metrology.streaming` requires."""
    import duckdb  # imported here: it costs 30 MB and 80 ms, and only one command needs it

    schema = pq.read_schema(source)
    names = [name for name in schema.names if name in KNOWN or name in dimensions]
    with duckdb.connect(config={"threads": _THREADS, "memory_limit": _MEMORY, "temp_directory": str(scratch)}) as db:
        rows = db.read_parquet(str(source))
        db.register("rows", rows)
        kinds = {name: schema.field(name).type for name in dimensions}
        problems = [
            Problem(name, f"must hold scores (got {kind})")
            for name, kind in kinds.items()
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind))
        ]
        if problems:
            raise InputError("scores", problems)
        floats = [name for name, kind in kinds.items() if pa.types.is_floating(kind)]
        if floats:
            # Infinity and values far off the scale cannot be converted to an integer for the message.
            broken = " or ".join(f"({_q(name)} <> floor({_q(name)}) and not isnan({_q(name)}))" for name in floats)
            off = " or ".join(f"(abs({_q(name)}) > 1e9 and not isnan({_q(name)}))" for name in floats)
            counted = db.execute(f"select count(*) filter ({broken}), count(*) filter ({off}) from rows").fetchone()
            parted, distant = counted or (0, 0)
            if distant:
                problem = f"scores must be in {scale_words(scale)} ({distant} row(s) are far off)"
                raise InputError("scores", [Problem("", problem)])
            if parted:
                raise NotStreamableError(f"{parted:,} rows have scores that are not whole", sortable=False)
        ids = [name for name in ("cycle", "trajectory") if name in names]
        if len(ids) == 2:
            several = db.execute(
                "select trajectory, count(distinct cycle) from rows group by trajectory "
                f"having count(distinct cycle) > 1 order by trajectory limit {LISTED + 1}"
            ).fetchall()
            if problems := [
                Problem(f"trajectory {name}", f"one trajectory has one cycle (got {k})") for name, k in several
            ]:
                raise InputError("scores", problems)
        numbered = [name for name in ids if not pa.types.is_integer(schema.field(name).type)]
        for name in numbered:
            db.execute(
                f'create temp table "{name}_ids" as select {_q(name)} as name, '
                f"row_number() over (order by {_q(name)}) as id from (select distinct {_q(name)} from rows "
                f"where {_q(name)} is not null)"
            )
        # An empty id gets no number, stays empty, and is reported when the copy is read.
        joins = " ".join(f'left join "{name}_ids" on "{name}_ids".name = rows.{_q(name)}' for name in numbered)
        # NaN has no integer and becomes null; every other score was checked to be an integer.
        columns = ", ".join(
            f'"{name}_ids".id as {_q(name)}' if name in numbered
            else f"try_cast(rows.{_q(name)} as bigint) as {_q(name)}" if name in dimensions else f"rows.{_q(name)}"
            for name in names
        )  # fmt: skip
        order = ", ".join(str(names.index(name) + 1) for name in [*ids, "judge"])
        text = "'" + str(target).replace("'", "''") + "'"
        db.execute(
            f"copy (select {columns} from rows {joins} order by {order}) "
            f"to {text} (format parquet, compression zstd, row_group_size {_ROW_GROUP})"
        )


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


THREADS: Final = 2
_ROWS: Final = 1 << 20  # rows read at a time by each thread
_IN_MEMORY_ONLY: Final = ("replicate", "derivation", "parent")
_SMALL_RANGE: Final = 1 << 16

Piece = tuple[ScoreSums | None, pa.Table | None]
Note = Callable[[str, int, int], None]


class _NewJudgeError(Exception):
    """A judge that does not occur in the earlier rows."""


def score_sums(
    path: Path, weights: Mapping[str, float] | None = None, *, dimensions: Sequence[str] | None = None,
    leave_out: bool = False, scratch: Path, threads: int = THREADS, progress: Note | None = None, scale: Scale = SCALE,
) -> ScoreSums:  # fmt: skip
    """Compute the sums of a Parquet file of scores of any size."""
    note = progress or (lambda _what, _done, _total: None)
    named = _named_columns(pq.read_schema(path), dimensions)
    try:
        sums = _streamed(path, weights, named, threads, note, scale)
    except NotStreamableError as reason:
        if not reason.sortable:
            raise
        note(f"ordering the rows first, because {reason}", 0, 1)
        copy = scratch / "ordered.parquet"
        try:
            ordered_copy(path, copy, scratch, named, scale)
            note("ordering the rows", 1, 1)
            sums = _streamed(copy, weights, named, threads, note, scale)
        finally:
            copy.unlink(missing_ok=True)
    layout = sums.layout
    names = {"agent": sums.agents, "judge": layout.judges, "family": layout.families, "dimension": layout.dimensions}
    if problems := name_problems(names):
        raise InputError("scores", problems)
    if not sums.calls[:, 0].any():
        raise InputError("scores", [Problem("", "no row has a score on every dimension")])
    if sums.left_out and not leave_out:
        raise NotStreamableError("some trajectories lack a usable score from some judge", sortable=False)
    return sums


def sums_of(
    table: pa.Table, *, weights: Mapping[str, float] | None = None, dimensions: Sequence[str] | None = None,
    judges: Mapping[str, str] | None = None, scale: Scale = SCALE,
) -> ScoreSums:  # fmt: skip
    """Compute the sums of a table in memory with whole cycles, sorted by cycle, trajectory and judge."""
    named = _named_columns(table.schema, dimensions)
    _require_summable(table.schema, named)
    panel = dict(judges) if judges is not None else _streaming_judges(table)
    layout = _layout(panel, named, whole_weights(named, weights), "cycle" in table.column_names, scale)
    return count(_part(table, layout, 0), layout)


def _streamed(
    path: Path, weights: Mapping[str, float] | None, dimensions: tuple[str, ...], threads: int, note: Note,
    scale: Scale,
) -> ScoreSums:  # fmt: skip
    """Compute the sums of a sorted file, in parallel over its row groups."""
    file = pq.ParquetFile(path)
    schema, meta = file.schema_arrow, file.metadata
    _require_summable(schema, dimensions)
    integers = whole_weights(dimensions, weights)
    # Adjacent row groups, combined up to about a million rows.
    tasks, size = list[list[int]](), 0
    for group in range(file.num_row_groups):
        if rows := meta.row_group(group).num_rows:
            if not tasks or size + rows > _ROWS:
                tasks.append([])
                size = 0
            tasks[-1].append(group)
            size += rows
    if not tasks:
        raise InputError("scores", [Problem("", "no rows")])
    starts = np.cumsum([0, *(sum(meta.row_group(i).num_rows for i in task) for task in tasks)]).tolist()
    judges = _streaming_judges(next(_tables(file, tasks[0], ["judge", "family"])))
    columns = [name for name in schema.names if name in KNOWN or name in dimensions]
    names = {*TEXTS, "format", "agent_family"} - {"trajectory"}
    texts = [field.name for field in schema if field.name in names
             and (pa.types.is_string(field.type) or pa.types.is_large_string(field.type))]  # fmt: skip

    def work(k: int) -> list[Piece]:
        """Compute the sums of the cycles inside each part of a task; also return rows of the first and last cycle."""
        reader = pq.ParquetFile(path, metadata=meta, read_dictionary=texts)
        row, pieces = starts[k], list[Piece]()
        for table in _tables(reader, tasks[k], columns):
            key = _ids(table, "cycle" if layout.paired else "trajectory")
            inner = np.flatnonzero(key[1:] != key[:-1]) + 1
            if inner.size >= 2:
                start, stop = int(inner[0]), int(inner[-1])
                edges = np.concatenate([np.arange(start), np.arange(stop, key.size)])
                part = _part(table.slice(start, stop - start), layout, row + start)
                # Copied, not sliced: a slice would keep the whole part in memory.
                pieces.append((count(part, layout), table.take(pa.array(edges))))
            elif key.size:
                pieces.append((None, table))
            row += table.num_rows
        return pieces

    while True:
        layout = _layout(judges, dimensions, integers, "cycle" in schema.names, scale)
        sums, borders = list[ScoreSums](), list[pa.Table]()
        try:
            with ThreadPoolExecutor(threads) as pool:
                for done, pieces in enumerate(pool.map(work, range(len(tasks))), start=1):
                    inner = [piece for piece, _ in pieces if piece is not None]
                    sums = [total([*sums, *inner])] if sums or inner else []
                    borders += [border for _, border in pieces if border is not None]
                    note("reading scores", done, len(tasks))
            if borders:  # cycles that continue in the next part
                sums.append(count(_part(pa.concat_tables(borders), layout, 0), layout))
            break
        except _NewJudgeError as new:
            judges = {**judges, **new.args[0]}
    return total(sums)


def _tables(file: pq.ParquetFile, groups: list[int], columns: list[str]) -> Iterator[pa.Table]:
    """Yield the columns of some row groups as tables; a large row group is split into several."""
    rows = sum(file.metadata.row_group(i).num_rows for i in groups)
    if rows <= 2 * _ROWS:
        yield file.read_row_groups(groups, columns, use_threads=False)
        return
    for batch in file.iter_batches(_ROWS, row_groups=groups, columns=columns, use_threads=False):
        yield pa.Table.from_batches([batch])


def _named_columns(schema: pa.Schema, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the sorted dimension columns; raise InputError with all problems of the header."""
    if "judge" in schema.names and "family" not in schema.names:
        raise NotStreamableError("there is no column family", sortable=False)
    dimensions, problems = named_dimensions(schema, names, numeric_columns(schema))
    if problems:
        raise InputError("scores", problems)
    return dimensions


def _require_summable(schema: pa.Schema, dimensions: Sequence[str]) -> None:
    """Raise NotStreamableError for columns that cannot be summed while streaming."""
    for name in _IN_MEMORY_ONLY:
        if name in schema.names:
            raise NotStreamableError(f"there is a column {name}", sortable=False)
    for name in ("cycle", "trajectory", "length"):
        if name in schema.names and not pa.types.is_integer(schema.field(name).type):
            raise NotStreamableError(f"{name} is not a column of whole numbers", sortable=name != "length")
    for name in dimensions:
        if not pa.types.is_integer(schema.field(name).type):
            raise NotStreamableError(f"{name} is not a column of whole numbers")


def _streaming_judges(table: pa.Table) -> dict[str, str]:
    """Return the family of each judge in a table."""
    names, codes = _coded(table, "judge", 0)
    families, of = _coded(table, "family", 0)
    first = {names[k]: families[of[np.argmax(codes == k)]] for k in range(len(names))}
    return dict(sorted(first.items()))


def _layout(
    judges: Mapping[str, str], dimensions: tuple[str, ...], weights: tuple[int, ...], paired: bool, scale: Scale
) -> TableSpec:
    if not RubricChoice(scale=scale).categories:
        problem = f"scores on {scale_words(scale)} have too many levels to be counted by, or none that are whole"
        raise NotStreamableError(problem, sortable=False)
    names = tuple(sorted(judges))
    return TableSpec(names, tuple(judges[name] for name in names), dimensions, weights, paired, scale)


def _part(table: pa.Table, layout: TableSpec, row: int) -> Shard:
    """Convert the columns of a table to codes; ``row`` is the index of its first row, for messages."""
    agents, agent = _coded(table, "agent", row)
    clusters, cluster = _coded(table, "cluster", row)
    names, judge = _coded(table, "judge", row)
    if set(names) - set(layout.judges):
        raise _NewJudgeError(_streaming_judges(table))
    place = np.array([layout.judges.index(name) for name in names], dtype=judge.dtype)
    judge = judge if np.array_equal(place, np.arange(place.size)) else place[judge]
    families, family = _coded(table, "family", row)
    code_of = {name: k for k, name in enumerate(families)}
    expected = np.array([code_of.get(name, -1) for name in layout.families], dtype=np.int64)[judge]
    if (expected != family).any():
        k = int(np.argmax(expected != family))
        label = f"row {row + k + 1}, judge {layout.judges[int(judge[k])]}"
        got = f"{families[int(family[k])]}, elsewhere {layout.families[int(judge[k])]}"
        raise InputError("scores", [Problem(label, f"one judge has one family (got {got})")])
    formats, how, makers = tuple[str, ...](("",)), None, None
    if "format" in table.column_names:
        formats, how = _coded(table, "format", row)
    if "agent_family" in table.column_names:  # the family of each agent, empty if the table has none
        column = table.column("agent_family")
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        encoded = column.unify_dictionaries().combine_chunks()
        words = [name or "" for name in encoded.dictionary.cast(pa.string()).to_pylist()] + [""]
        codes = np.asarray(encoded.indices.fill_null(len(words) - 1).to_numpy())
        of: list[set[str]] = [set() for _ in agents]
        for pair in np.unique(agent.astype(np.int64) * len(words) + codes).tolist():
            of[pair // len(words)].add(words[pair % len(words)])
        several = [(name, ", ".join(sorted(seen))) for name, seen in zip(agents, of, strict=True) if len(seen) > 1]
        if several:
            rule = "one agent has one agent_family"
            raise InputError("scores", [Problem(f"agent {name}", f"{rule} (got {got})") for name, got in several])
        makers = tuple(family_set.pop() for family_set in of)
    _refuse_null(table, "trial", row)
    return Shard(
        agents, agent, clusters, cluster, formats, how if len(formats) > 1 else None, judge,
        _ids(table, "cycle") if layout.paired else None, _ids(table, "trajectory"),
        tuple(_scores(table, name, row, layout) for name in layout.dimensions),
        _ids(table, "length") if "length" in table.column_names else None, makers,
    )  # fmt: skip


def _coded(table: pa.Table, name: str, row: int) -> tuple[tuple[str, ...], Codes]:
    """Return the sorted names in a column, and the index of each row's name."""
    _refuse_null(table, name, row)
    column = table.column(name)
    if pa.types.is_integer(column.type):
        # Integer ids as names and codes.
        ids = column.combine_chunks()
        values = ids.to_numpy()
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        if high - low < _SMALL_RANGE:
            texts, codes = [str(k) for k in range(low, high + 1)], (values - low).astype(np.int32)
        else:
            distinct, codes = np.unique(values, return_inverse=True)
            texts, codes = [str(k) for k in distinct.tolist()], codes
    else:
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        encoded = column.unify_dictionaries().combine_chunks()
        texts = encoded.dictionary.cast(pa.string()).to_pylist()
        codes = encoded.indices.to_numpy()
    return sorted_codes(texts, codes)


def _ids(table: pa.Table, name: str) -> Ints:
    _refuse_null(table, name, 0)
    values = table.column(name).combine_chunks().to_numpy()
    return np.asarray(values.astype(np.int64, copy=False))


def _scores(table: pa.Table, name: str, row: int, layout: TableSpec) -> Codes:
    """Convert scores to small integers from 1 for the lowest; 0 if missing."""
    column: Any = table.column(name)
    low, high = layout.scale
    ends = pc.min_max(column)
    if ends["min"].is_valid and not low <= ends["min"].as_py() <= ends["max"].as_py() <= high:
        values = column.fill_null(int(low)).to_numpy()
        rows = np.flatnonzero((values < low) | (values > high))
        problems = [
            Problem(f"row {row + k + 1}, {name}", f"scores must be in {scale_words(layout.scale)} (got {values[k]})")
            for k in rows.tolist()[:20]
        ]
        raise InputError("scores", problems, more=max(0, rows.size - 20))
    if layout.lowest != 1:
        column = pc.subtract(column.cast(pa.int64()), layout.lowest - 1)
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


# Partitions of a large score table: serialised sums, and checks that partitions belong to one table.


VERSION: Final = "2"
"""The version of `partition_sums` and of its byte format."""

_HEAD: Final = ("agents", "clusters", "formats", "left_out", "lengths", "makers")
_ARRAYS: Final = ("sizes", "lineups", "places", "cycles", "scores", "replies")


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The sums of one partition, its columns, and the ids of its cycles (of trajectories without a cycle column).
    Integer ids are in ``runs`` [k, 2], the first and last of each consecutive run, in order; others in ``names``."""

    sums: ScoreSums
    columns: tuple[str, ...]
    runs: Ints
    names: tuple[str, ...]

    @property
    def key(self) -> str:
        """The column of which each value must be in a single partition."""
        return "cycle" if self.sums.layout.paired else "trajectory"

    @property
    def kind(self) -> tuple[str, bool]:
        """The column of its ids, and True if they are text."""
        return self.key, bool(self.names)


def partition_sums(task: Mapping[str, Any]) -> bytes:
    """Compute the `Partition` of the Parquet file ``given["path"]``, as bytes for `read_partition`."""
    import duckdb  # imported here: it costs 30 MB and 80 ms, and only one command needs it

    path = Path(task["path"])
    try:
        with TemporaryDirectory(prefix="assaymark-") as scratch:
            asked = {name: task[name] for name in ("weights", "dimensions", "threads")}
            asked["scale"] = tuple(task.get("scale", SCALE))
            sums = score_sums(path, leave_out=True, scratch=Path(scratch), **asked)
        file = pq.ParquetFile(path)
        name, columns = "cycle" if sums.layout.paired else "trajectory", tuple(sorted(file.schema_arrow.names))
        groups = [k for k in range(file.num_row_groups) if file.metadata.row_group(k).num_rows]
        parts = (file.read_row_group(k, columns=[name], use_threads=False).column(0) for k in groups)
        if pa.types.is_integer(file.schema_arrow.field(name).type):
            ids = np.unique(np.concatenate([np.unique(part.to_numpy().astype(np.int64)) for part in parts]))
            return to_bytes(Partition(sums, columns, runs_of(ids), ()))
        texts = {text for part in parts for text in part.unique().cast(pa.string()).to_pylist()}
        return to_bytes(Partition(sums, columns, np.zeros((0, 2), dtype=np.int64), tuple(sorted(texts))))
    except FileNotFoundError:
        problem = "no such file where it is to be read; on several machines each has to see it under this path"
        raise InputError(str(path), [Problem("", problem)]) from None
    except NotStreamableError as reason:
        problem = f"{reason}, so its rows are needed and not their sums; measure such a table as one file"
        raise InputError(str(path), [Problem("", problem)]) from None
    except (pa.ArrowException, duckdb.Error, OSError, UnicodeDecodeError) as exc:
        raise InputError(str(path), [Problem("", table_problem(exc))]) from None


def to_bytes(partition: Partition) -> bytes:
    """Serialise a partition to bytes that are equal for equal partitions; see `read_partition`."""
    sums = partition.sums
    head = {"layout": asdict(sums.layout)} | {name: getattr(sums, name) for name in _HEAD}
    head |= {"columns": partition.columns, "names": partition.names}
    arrays = {name: getattr(sums, name) for name in _ARRAYS}
    arrays |= {f"table{k}": table for k, table in enumerate(sums.tables)}
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, head=text, runs=partition.runs, **arrays)
    return file.getvalue()


def read_partition(data: bytes) -> Partition:
    """Deserialise a partition written by `to_bytes`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        head = json.loads(file["head"].tobytes())
        parts: list[dict[str, Any]] = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
            for values in (head["layout"], {name: head[name] for name in _HEAD})
        ]
        arrays: dict[str, Any] = {name: file[name] for name in _ARRAYS}
        arrays["tables"] = tuple(file[f"table{k}"] for k in range(1 + len(parts[0]["dimensions"])))
        sums = ScoreSums(layout=TableSpec(**parts[0]), **parts[1], **arrays)
        return Partition(sums, tuple(head["columns"]), file["runs"], tuple(head["names"]))


def misfits(partitions: Mapping[str, Partition]) -> list[Problem]:
    """List why partitions (by name) do not form one table: different columns or panels, or a cycle in two of them."""
    (first, base), *others = partitions.items()
    problems, kinds = list[Problem](), ("whole numbers", "text")
    for name, other in others:
        judges, other_judges = (
            [f"{judge} of {family}" for judge, family in zip(part.layout.judges, part.layout.families, strict=True)]
            for part in (base.sums, other.sums)
        )
        for kind, ours, peers in (("columns", base.columns, other.columns), ("judges", judges, other_judges)):
            if ours != peers:
                sides = (("not here", sorted(set(ours) - set(peers))), ("only here", sorted(set(peers) - set(ours))))
                unlike = "; ".join(f"{side}: {', '.join(names)}" for side, names in sides if names)
                problems.append(Problem(name, f"other {kind} than in {first} ({unlike})"))
        if base.key == other.key and base.kind != other.kind:
            here, there = kinds[bool(other.names)], kinds[bool(base.names)]
            problems.append(Problem(name, f"{other.key} holds {here} here and {there} in {first}"))
    # Ids of another kind cannot be compared, and were reported above.
    alike = {name: part for name, part in partitions.items() if part.kind == base.kind}
    # Integer ids in two partitions: one example for each pair of partitions.
    owners = np.concatenate([np.full(len(part.runs), k) for k, part in enumerate(alike.values())])
    runs = np.concatenate([part.runs for part in alike.values()])
    order = np.lexsort((owners, runs[:, 0]))
    (starts, ends), owners = runs[order].T, owners[order]
    furthest = np.maximum.accumulate(ends)
    # The earlier run with the largest end.
    holder = np.maximum.accumulate(np.where(ends == furthest, np.arange(ends.size), 0))
    inside = np.flatnonzero(starts[1:] <= furthest[:-1])
    pairs = np.sort(np.stack([owners[holder[inside]], owners[inside + 1]], axis=1), axis=1)
    distinct, first_at = np.unique(pairs, axis=0, return_index=True)
    names, rule = list(alike), f"each {base.key} lies in one partition"
    shared = [
        (str(starts[inside[k] + 1]), names[a], names[b]) for (a, b), k in zip(distinct.tolist(), first_at, strict=True)
    ]
    # Text ids in two partitions, one example for each pair of partitions.
    owner, clash = dict[str, str](), dict[tuple[str, str], str]()
    for name, part in alike.items():
        for text in part.names:
            if owner.setdefault(text, name) != name:
                clash.setdefault((owner[text], name), text)
    shared += [(text, *pair) for pair, text in clash.items()]
    return [*problems, *(Problem(two, f"{base.key} {text} is in {name} too; {rule}") for text, name, two in shared)]


def runs_of(ids: Ints) -> Ints:
    """Return the first and last of each consecutive run [k, 2] in sorted distinct ids."""
    breaks = np.flatnonzero(np.diff(ids) != 1)
    return np.stack([ids[np.concatenate([[0], breaks + 1])], ids[np.concatenate([breaks, [ids.size - 1]])]], axis=1)
