"""A large score table in partitions: the sums of one of them as bytes, and whether they belong to one table."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Ints
from assaymark.metrology.counting import NotStreamableError
from assaymark.metrology.streaming import score_sums
from assaymark.metrology.sums import Layout, ScoreSums
from assaymark.problems import table_problem

VERSION: Final = "2"
"""Of what `partition_sums` computes and of its bytes."""

_ARRAYS: Final = ("sizes", "lineups", "places", "cycles", "scores", "replies")


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The sums of one partition, its columns, and which cycles it holds (trajectories where no column names cycles).

    Whole-number ids are ``runs`` [k, 2], the first and last of each unbroken run, in order; others are ``names``.
    """

    sums: ScoreSums
    columns: tuple[str, ...]
    runs: Ints
    names: tuple[str, ...]

    @property
    def key(self) -> str:
        """The column whose values lie in one partition each."""
        return "cycle" if self.sums.layout.paired else "trajectory"


def partition_sums(given: Mapping[str, Any]) -> bytes:
    """The `Partition` in the Parquet file ``given["path"]``, as bytes that `read_partition` reads.

    Parameters
    ----------
    given : mapping
        ``path``; ``weights`` of the aggregate and names of the ``dimensions``, or None; ``threads`` that decode and
        count.

    Raises
    ------
    InputError
        The file cannot be read, is no Parquet file, or its rows are wrong or cannot be counted as they pass by.
    """
    import duckdb  # here, because it costs every command 30 MB and 80 ms, and one needs it

    path = Path(given["path"])
    try:
        with TemporaryDirectory(prefix="assaymark-") as scratch:
            sums = score_sums(
                path,
                weights=given["weights"],
                dimensions=given["dimensions"],
                leave_out=True,
                threads=given["threads"],
                scratch=Path(scratch),
            )
        return to_bytes(_partition(path, sums))
    except FileNotFoundError:
        what = "no such file where it is to be read; on several machines each has to see it under this path"
        raise InputError(str(path), [Problem("", what)]) from None
    except NotStreamableError as reason:
        what = f"{reason}, so its rows are needed and not their sums; measure such a table as one file"
        raise InputError(str(path), [Problem("", what)]) from None
    except (pa.ArrowException, duckdb.Error, OSError, UnicodeDecodeError) as exc:
        raise InputError(str(path), [Problem("", table_problem(exc))]) from None


def to_bytes(partition: Partition) -> bytes:
    """A partition as bytes: the same for the same partition. See `read_partition`."""
    sums = partition.sums
    head = {
        "layout": asdict(sums.layout),
        "agents": sums.agents,
        "clusters": sums.clusters,
        "formats": sums.formats,
        "left_out": sums.left_out,
        "lengths": sums.lengths,
        "makers": sums.makers,
        "columns": partition.columns,
        "names": partition.names,
    }
    arrays = {name: getattr(sums, name) for name in _ARRAYS}
    arrays |= {f"table{k}": table for k, table in enumerate(sums.tables)}
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, head=text, runs=partition.runs, **arrays)
    return file.getvalue()


def read_partition(data: bytes) -> Partition:
    """The partition that `to_bytes` wrote."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        head = json.loads(file["head"].tobytes())
        layout: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in head["layout"].items()
        }
        sums = ScoreSums(
            layout=Layout(**layout),
            agents=tuple(head["agents"]),
            clusters=tuple(head["clusters"]),
            formats=tuple(head["formats"]),
            tables=tuple(file[f"table{k}"] for k in range(1 + len(layout["dimensions"]))),
            left_out=head["left_out"],
            lengths=None if head["lengths"] is None else tuple(head["lengths"]),
            makers=None if head["makers"] is None else tuple(head["makers"]),
            **{name: file[name] for name in _ARRAYS},
        )
        return Partition(sums, tuple(head["columns"]), file["runs"], tuple(head["names"]))


def misfits(partitions: Mapping[str, Partition]) -> list[Problem]:
    """Why partitions, by their names, are not parts of one table: other columns or panels, or a cycle in two of them.

    The first partition is what the others are held against.
    """
    first, *others = partitions
    problems = [
        Problem(name, what) for name in others for what in _differences(partitions[first], partitions[name], first)
    ]
    # Ids of another kind cannot be compared, and were named above.
    alike = {name: one for name, one in partitions.items() if _kind(one) == _kind(partitions[first])}
    return [*problems, *_shared_runs(alike), *_shared_names(alike)]


# --- which ids --------------------------------------------------------------------------------------------------------


def _partition(path: Path, sums: ScoreSums) -> Partition:
    file = pq.ParquetFile(path)
    columns = tuple(sorted(file.schema_arrow.names))
    name = "cycle" if sums.layout.paired else "trajectory"
    if pa.types.is_integer(file.schema_arrow.field(name).type):
        found = [np.unique(column.to_numpy().astype(np.int64)) for column in _column(file, name)]
        return Partition(sums, columns, _runs(np.unique(np.concatenate(found))), ())
    texts = {text for column in _column(file, name) for text in column.unique().cast(pa.string()).to_pylist()}
    return Partition(sums, columns, np.zeros((0, 2), dtype=np.int64), tuple(sorted(texts)))


def _column(file: pq.ParquetFile, name: str) -> Iterator[Any]:
    for k in range(file.num_row_groups):
        if file.metadata.row_group(k).num_rows:
            yield file.read_row_group(k, columns=[name], use_threads=False).column(0)


def _runs(ids: Ints) -> Ints:
    """The first and last of each unbroken run of sorted distinct ids.

    >>> _runs(np.array([1, 2, 3, 7, 9, 10])).tolist()
    [[1, 3], [7, 7], [9, 10]]
    """
    breaks = np.flatnonzero(np.diff(ids) != 1)
    return np.stack([ids[np.concatenate([[0], breaks + 1])], ids[np.concatenate([breaks, [ids.size - 1]])]], axis=1)


# --- do they belong together ------------------------------------------------------------------------------------------


def _kind(one: Partition) -> tuple[str, bool]:
    return one.key, bool(one.names)


def _differences(one: Partition, other: Partition, name: str) -> list[str]:
    """In what a partition differs from the first, which has this name."""
    found = []
    if one.columns != other.columns:
        found.append(f"other columns than in {name} ({_unlike(one.columns, other.columns)})")
    judges, theirs = _judges(one), _judges(other)
    if judges != theirs:
        found.append(f"other judges than in {name} ({_unlike(judges, theirs)})")
    if one.key == other.key and _kind(one) != _kind(other):
        kinds = ("whole numbers", "text")
        found.append(f"{other.key} holds {kinds[bool(other.names)]} here and {kinds[bool(one.names)]} in {name}")
    return found


def _judges(one: Partition) -> list[str]:
    layout = one.sums.layout
    return [f"{judge} of {family}" for judge, family in zip(layout.judges, layout.families, strict=True)]


def _unlike(one: Sequence[str], other: Sequence[str]) -> str:
    missing, new = sorted(set(one) - set(other)), sorted(set(other) - set(one))
    parts = [f"not here: {', '.join(missing)}"] if missing else []
    return "; ".join([*parts, f"only here: {', '.join(new)}"] if new else parts)


def _shared_runs(partitions: Mapping[str, Partition]) -> list[Problem]:
    """Whole-number ids in two partitions: one of them for each pair of partitions."""
    owners = np.concatenate([np.full(len(one.runs), k) for k, one in enumerate(partitions.values())])
    runs = np.concatenate([one.runs for one in partitions.values()])
    order = np.lexsort((owners, runs[:, 0]))
    (starts, ends), owners = runs[order].T, owners[order]
    furthest = np.maximum.accumulate(ends)
    # Which run reaches furthest of those that begin before.
    holder = np.maximum.accumulate(np.where(ends == furthest, np.arange(ends.size), 0))
    inside = np.flatnonzero(starts[1:] <= furthest[:-1])
    pairs = np.sort(np.stack([owners[holder[inside]], owners[inside + 1]], axis=1), axis=1)
    distinct, where = np.unique(pairs, axis=0, return_index=True)
    names, key = list(partitions), next(iter(partitions.values())).key
    return [
        _shared(key, str(starts[inside[k] + 1]), names[a], names[b])
        for (a, b), k in zip(distinct.tolist(), where.tolist(), strict=True)
    ]


def _shared_names(partitions: Mapping[str, Partition]) -> list[Problem]:
    """Ids that are text in two partitions: one of them for each pair of partitions."""
    seen: dict[str, str] = {}
    clash: dict[tuple[str, str], str] = {}
    for name, one in partitions.items():
        for text in one.names:
            first = seen.setdefault(text, name)
            if first != name:
                clash.setdefault((first, name), text)
    key = next(iter(partitions.values())).key
    return [_shared(key, text, first, other) for (first, other), text in clash.items()]


def _shared(key: str, text: str, first: str, other: str) -> Problem:
    return Problem(other, f"{key} {text} is in {first} too; each {key} lies in one partition")
