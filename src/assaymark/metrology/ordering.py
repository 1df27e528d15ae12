"""Putting the rows of a large score table in order: by cycle, trajectory and judge, on disk where memory ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from assaymark.errors import LISTED, InputError, Problem
from assaymark.metrology.columns import KNOWN
from assaymark.metrology.counting import NotStreamableError

if TYPE_CHECKING:
    import duckdb

_MEMORY = "1GB"
_THREADS = 2
_ROW_GROUP = 1 << 20


def ordered_copy(source: Path, target: Path, scratch: Path, dimensions: Sequence[str]) -> None:
    """Write the rows of ``source`` to ``target`` in the order that `assaymark.metrology.streaming` reads.

    Columns are the documented ones and the ``dimensions``. Ids of cycles and trajectories become whole numbers in the
    order of their names; whole-number scores become small integers, NaN an empty score.

    Raises
    ------
    NotStreamableError
        Scores that are not whole numbers.
    InputError
        Columns of other types, or a trajectory in two cycles: rows of it would not meet in any order.
    """
    import duckdb  # here, because it costs every command 30 MB and 80 ms, and one needs it

    schema = pq.read_schema(source)
    kept = [name for name in schema.names if name in KNOWN or name in dimensions]
    with duckdb.connect(config={"threads": _THREADS, "memory_limit": _MEMORY, "temp_directory": str(scratch)}) as db:
        rows = db.read_parquet(str(source))
        db.register("rows", rows)
        _require_whole(db, schema, dimensions)
        ids = [name for name in ("cycle", "trajectory") if name in kept]
        if len(ids) == 2:
            _require_one_cycle(db)
        numbered = [name for name in ids if not pa.types.is_integer(schema.field(name).type)]
        for name in numbered:
            db.execute(
                f'create temp table "{name}_ids" as select {_q(name)} as name, '
                f"row_number() over (order by {_q(name)}) as id from (select distinct {_q(name)} from rows "
                f"where {_q(name)} is not null)"
            )
        # An empty id finds no number, stays empty, and is named where the copy is read.
        joins = " ".join(f'left join "{name}_ids" on "{name}_ids".name = rows.{_q(name)}' for name in numbered)
        columns = ", ".join(_column(name, name in numbered, name in dimensions) for name in kept)
        order = ", ".join(str(kept.index(name) + 1) for name in [*ids, "judge"])
        db.execute(
            f"copy (select {columns} from rows {joins} order by {order}) "
            f"to {_text(str(target))} (format parquet, compression zstd, row_group_size {_ROW_GROUP})"
        )


def _column(name: str, numbered: bool, score: bool) -> str:
    if numbered:
        return f'"{name}_ids".id as {_q(name)}'
    if score:
        # NaN has no whole number and becomes null; everything else was found to have one.
        return f"try_cast(rows.{_q(name)} as bigint) as {_q(name)}"
    return f"rows.{_q(name)}"


def _require_whole(db: duckdb.DuckDBPyConnection, schema: pa.Schema, dimensions: Sequence[str]) -> None:
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
        # Infinity and what is far off the scale has no whole number beside it that could be told in a message.
        broken = " or ".join(f"({_q(name)} <> floor({_q(name)}) and not isnan({_q(name)}))" for name in floats)
        off = " or ".join(f"(abs({_q(name)}) > 1e9 and not isnan({_q(name)}))" for name in floats)
        found = db.execute(f"select count(*) filter ({broken}), count(*) filter ({off}) from rows").fetchone() or (0, 0)
        if found[1]:
            raise InputError("scores", [Problem("", f"usable scores lie in 1..5 ({found[1]} row(s) are far off)")])
        if found[0]:
            raise NotStreamableError(f"{found[0]:,} rows have scores that are not whole", sortable=False)


def _require_one_cycle(db: duckdb.DuckDBPyConnection) -> None:
    rows = db.execute(
        "select trajectory, count(distinct cycle) from rows group by trajectory "
        f"having count(distinct cycle) > 1 order by trajectory limit {LISTED + 1}"
    ).fetchall()
    if rows:
        problems = [Problem(f"trajectory {name}", f"one trajectory has one cycle (got {k})") for name, k in rows]
        raise InputError("scores", problems)


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
