"""Records as Parquet tables with page checksums, and the manifest with the digest and the basis of each table."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cached_property, lru_cache, partial
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import assaymark.records as rec
from assaymark.errors import LedgerError
from assaymark.market.cycles import CycleKey
from assaymark.records import write_atomic
from assaymark.workflow.run_folder import RunFolder, file_sha256, read_json, write_json

T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)
_ENTRY: Final = ("sha256", "previous", "content", "rows", "basis")
_CONTEXTS_AT_ONCE: Final = 8
_CONTEXTS_KEPT: Final = 64  # runs with no more contexts keep them in memory, because each stage reads them all
_parse: Final = partial(rec.parse, rec.Context)
_kept: Final = lru_cache(maxsize=_CONTEXTS_KEPT)(_parse)
_BLOCK: Final = 1 << 26
_SAME: Final = ("sha256", "content", "rows", "basis")
Column = Callable[[Any, bytes], Any]


@dataclass(frozen=True, eq=False)
class RecordTable(Generic[T]):
    """The Parquet layout of one kind of record: columns, sort order, and whether rows also hold canonical JSON."""

    name: str
    kind: type[T]
    columns: Mapping[str, tuple[pa.DataType, Column]]
    sort: Column
    flat: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        fields = [pa.field(name, kind) for name, (kind, _) in self.columns.items()]
        return pa.schema(fields if self.flat else [*fields, pa.field("record", pa.string())])

    def to_arrow(self, records: Iterable[T], texts: Iterable[str | None] = repeat(None)) -> pa.Table:
        """Return ``records`` as a sorted Arrow table; ``texts`` are their canonical JSON if known."""
        # Encoded at once: a context with one curly quote would take two bytes a character as str.
        rows = [
            (row, b"" if self.flat else (text or rec.canonical_json(row)).encode("utf-8", "surrogatepass"))
            for row, text in zip(records, texts, strict=False)
        ]
        rows.sort(key=lambda pair: self.sort(*pair))
        arrays = [pa.array([get(*row) for row in rows], type=kind) for kind, get in self.columns.values()]
        if not self.flat:
            arrays.append(texts_array([raw for _, raw in rows]))
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def from_arrow(self, table: pa.Table) -> list[T]:
        """Return the records of an Arrow table."""
        if not self.flat:
            texts = table.column("record").to_pylist()
            return [rec.parse(self.kind, text, source=f"{self.name}, row {i}") for i, text in enumerate(texts)]
        plain = ({k: tuple(v) if isinstance(v, list) else v for k, v in row.items()} for row in table.to_pylist())
        return [self.kind(**row) for row in plain]


def texts_array(encoded: Sequence[bytes]) -> pa.ChunkedArray:
    """Return UTF-8 texts as an Arrow column, in chunks of about `_BLOCK` bytes."""
    chunks, start, size = [], 0, 0
    for at, text in enumerate(encoded, start=1):
        size += len(text)
        if size >= _BLOCK or at == len(encoded):
            part = encoded[start:at]
            ends = np.cumsum([0, *map(len, part)], dtype=np.int32)
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(part))]
            chunks.append(pa.Array.from_buffers(pa.string(), len(part), buffers))
            start, size = at, 0
    return pa.chunked_array(chunks, type=pa.string())


_KINDS: Final = {
    "": pa.string(), "int": pa.int64(), "float": pa.float64(), "time": pa.timestamp("us", tz="UTC"),
    "list": pa.list_(pa.string()), "map": pa.map_(pa.string(), pa.string()),
    "floats": pa.map_(pa.string(), pa.float64()),
}  # fmt: skip


def column_specs(words: str) -> dict[str, tuple[pa.DataType, Column]]:
    """Parse a list of columns such as ``name``, ``step:int``, or ``agent=agent.id`` for a nested field."""

    def column(kind: str, path: str) -> tuple[pa.DataType, Column]:
        get = attrgetter(path)
        special: dict[str, Column] = {
            "list": lambda row, _: list(get(row)), "time": lambda row, _: get(row).astimezone(UTC), "map": lambda row,
            _: sorted(get(row).items()),
        }  # fmt: skip
        return _KINDS[kind], special.get("map" if kind == "floats" else kind, lambda row, _: get(row))

    parts = ((*name.partition(":")[::2], path) for name, _, path in (word.partition("=") for word in words.split()))
    return {name: column(kind, path or name) for name, kind, path in parts}


CONTEXTS: Final = RecordTable(
    "contexts", rec.Context,
    {
        "context_id": (pa.string(), lambda _, raw: hashlib.sha256(raw).hexdigest()),
        **column_specs("completeness cutoff:time"),
        "facts": (pa.int64(), lambda row, _: len(row.facts)),
        **column_specs("missing:list"),
    },
    sort=lambda _, raw: raw,
)  # fmt: skip
"""The contexts of decisions, by content id."""

DECISIONS: Final = RecordTable(
    "decisions", rec.Decision,
    column_specs("record_id episode_id step:int cluster context_id format decided_at:time agent=agent.id "
            "agent_family=agent.family derivation=derivation.kind replicate:int flags:list"),
    sort=lambda row, _: row.record_id,
)  # fmt: skip
"""The decisions of agents."""

OUTCOMES: Final = RecordTable(
    "outcomes", rec.Outcome, column_specs("record_id horizon value:float benchmark:float"),
    sort=lambda row, _: (row.record_id, row.horizon),
)  # fmt: skip
"""Outcomes after decisions, in a table apart from them."""

CYCLES: Final = RecordTable(
    "cycles", CycleKey, column_specs("context_id regime number:int source first_bar:time last_bar:time"),
    sort=lambda row, _: (row.regime, row.number),
)  # fmt: skip
"""The origin of each cycle."""

JUDGMENTS: Final = RecordTable(
    "judgments", rec.Judgment,
    column_specs("trajectory judge family rubric trial:int status scores:floats call_key evidence:list lookahead_check "
            "reason"),
    sort=lambda row, _: (row.trajectory, row.judge, row.trial),
)  # fmt: skip
"""Judgments of judges."""

HUMAN: Final = replace(JUDGMENTS, name="human")
"""Grades of people on the panel, as imported."""

ANCHOR: Final = replace(JUDGMENTS, name="anchor")
"""A subsample graded again under another rubric."""

POINTS: Final = replace(JUDGMENTS, name="points")
"""Judges' grades of single texts, for their datasheets."""

PROBE: Final = replace(JUDGMENTS, name="probe")
"""Judgments of the held-out judge on contested pairs."""

EVIDENCE: Final = RecordTable(
    "evidence", rec.Evidence,
    column_specs("decision part:int kind start:int quote number:float unit subject state facts:list rule"),
    sort=lambda row, _: (row.decision, row.part, row.start), flat=True,
)  # fmt: skip
"""Numbers of rationales, checked against the context."""

PAIRS: Final = RecordTable(
    "pairs", rec.PairCall,
    column_specs("pair condition task order verdict judge variant prompt better delta:float trial:int call_key reason"),
    sort=lambda row, _: (row.judge, row.prompt, row.pair, row.order, row.trial), flat=True,
)  # fmt: skip
"""Verdicts on pairs of texts."""

SCORES: Final = RecordTable(
    "scores", rec.Score,
    column_specs("about agent cluster name value:float least:float most:float convention state labels:map"),
    sort=lambda row, _: (row.about, row.agent, row.name, row.convention, sorted(row.labels.items())),
)  # fmt: skip
"""Scores of a benchmark."""

MEASUREMENTS: Final = RecordTable(
    "measurements", rec.Measurement,
    column_specs("name labels:map value:float low:float high:float level:float n:int n_of method state unit"),
    sort=lambda row, _: row.id,
)  # fmt: skip
"""All measurements."""

VERDICTS: Final = RecordTable(
    "verdicts", rec.Verdict,
    column_specs("claim=claim.id scope=claim.scope dimension=claim.dimension agreement_status stability_status "
            "adversarial_status publication_level condition plan_hash"),
    sort=lambda row, _: row.claim.id,
)  # fmt: skip
"""Verdicts on claims."""

MADE_BY: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("contexts", "decisions", "outcomes"),
        "assaymark import (from the same files), assaymark run (for a study) or assaymark season run (for a season)",
    ),
    "cycles": "assaymark run, with the same study",
    **dict.fromkeys(
        ("fills", "rejections", "navs", "times", "baselines", "checks"),
        "assaymark season run (its journal holds them), or assaymark season init (for imported records)",
    ),
    **dict.fromkeys(("grades", "guesses", "replaced"), "assaymark season judge (no reply is asked for twice)"),
    **dict.fromkeys(("human", "labels"), "assaymark import human, from the same file"),
    **dict.fromkeys(("pairs", "points"), "assaymark datasheet, or assaymark run (no reply is asked for twice)"),
    **dict.fromkeys(("judgments", "evidence", "anchor", "probe"), "assaymark judge (no reply is asked for twice)"),
    "measurements": "assaymark measure (of a season: assaymark season publish; of a benchmark: assaymark bench)",
    "verdicts": "assaymark claim (of a season: assaymark season publish; of a benchmark: assaymark bench)",
    "scores": "assaymark bench (no reply is asked for twice)",
}


@dataclass(frozen=True, slots=True)
class Store:
    """The tables of a run folder."""

    folder: RunFolder

    def digest(self, table: RecordTable[Any] | str) -> str | None:
        """Return the sha256 of a complete table; None if it was never finished. Raises `LedgerError` if damaged."""
        name = table if isinstance(table, str) else table.name
        entry = self._manifest().get(name)
        if entry is None:
            return None
        path = self._path(name)
        actual = file_sha256(path) if path.is_file() else None
        if actual == entry["sha256"]:
            return str(actual)
        if actual is None or actual == entry["previous"]:
            return None
        raise LedgerError(
            f"{path} is damaged: its sha256 is {actual[:12]}..., the manifest says {str(entry['sha256'])[:12]}...; "
            f"delete the file, then make it again with {MADE_BY[name]}"
        )

    def done(self, table: RecordTable[Any], basis: Mapping[str, str | None]) -> bool:
        """True if the table is complete and was made from ``basis``: the plan hash and digests of its inputs."""
        entry = self._manifest().get(table.name)
        return entry is not None and entry["basis"] == _basis_digest(basis) and self.digest(table) is not None

    def write(self, table: RecordTable[T], records: Iterable[T], basis: Mapping[str, str | None]) -> None:
        """Replace a table by ``records``."""
        self.write_arrow(table, table.to_arrow(records), basis)

    def write_arrow(self, table: RecordTable[Any], arrow: pa.Table, basis: Mapping[str, str | None]) -> None:
        """Replace a table and its manifest entry by rows from `to_arrow`; equal ones are not written again."""
        sink = io.BytesIO()
        plain = [name for name in arrow.column_names if name != "record"]
        pq.write_table(arrow, sink, compression="zstd", write_page_checksum=True, use_dictionary=plain)
        data, path, manifest = sink.getvalue(), self._path(table.name), self._manifest()
        existing = file_sha256(path) if path.is_file() else None
        entry = {
            "sha256": hashlib.sha256(data).hexdigest(), "previous": existing, "content": content_digest(arrow),
            "rows": arrow.num_rows, "basis": _basis_digest(basis),
        }  # fmt: skip
        stored = manifest.get(table.name)
        if stored is not None and existing == entry["sha256"] and all(stored[name] == entry[name] for name in _SAME):
            return
        entry["seal"] = _entry_seal(table.name, entry)
        write_json(self.folder.tables / "manifest.json", {**manifest, table.name: entry})
        write_atomic(path, data)
        _LOG.info("wrote %s: %d rows", path, arrow.num_rows)

    @property
    def contents(self) -> dict[str, str]:
        """The names of all tables in the manifest, with the sha256 of the records that each should have."""
        return {name: str(entry["content"]) for name, entry in sorted(self._manifest().items())}

    def move_out(self, table: RecordTable[Any], folder: Path) -> None:
        """Move a table into another folder, and remove it from the manifest."""
        manifest = {name: entry for name, entry in self._manifest().items() if name != table.name}
        write_json(self.folder.tables / "manifest.json", manifest)
        if self._path(table.name).is_file():
            self._path(table.name).rename(folder / self._path(table.name).name)

    def read(self, table: RecordTable[T]) -> rec.Rows[T]:
        """Read the records of a table in its order, in a list that displays itself in a notebook."""
        return rec.Rows(table.from_arrow(self._file(table).read()))

    def stored(self, table: RecordTable[T]) -> rec.Rows[T]:
        """Read the records of a table like `read`; none if it was never finished."""
        return rec.Rows() if self.digest(table) is None else self.read(table)

    def contexts(self) -> dict[str, rec.Context]:
        """Read all contexts by content id, each checked against it."""
        return dict(self.each_context())

    def each_context(self, names: Container[str] | None = None) -> Iterator[tuple[str, rec.Context]]:
        """Yield contexts one at a time with their ids, all or those in ``names``, each checked against its id."""
        # Few at a time: the JSON of a context takes several times the memory of its records.
        parse = _kept if self.rows(CONTEXTS) <= _CONTEXTS_KEPT else _parse
        for batch in self._file(CONTEXTS).iter_batches(batch_size=_CONTEXTS_AT_ONCE, columns=["context_id", "record"]):
            for row in batch.to_pylist():
                name = row["context_id"]
                if rec.sha256_text(row["record"]) != name:
                    raise LedgerError(f"{self._path(CONTEXTS.name)}: context {name[:12]}... does not match its name")
                if names is None or name in names:
                    yield name, parse(row["record"], f"context {name[:12]}")

    def columns(self, table: RecordTable[Any], *names: str) -> list[dict[str, Any]]:
        """Return some columns of a table as one dict a row; far cheaper than its records."""
        return [dict(row) for row in self._file(table).read(columns=list(names)).to_pylist()]

    def rows(self, table: RecordTable[Any]) -> int:
        """Return the number of records of a complete table; 0 if there is none."""
        return 0 if self.digest(table) is None else int(self._manifest()[table.name]["rows"])

    def content(self, table: RecordTable[Any]) -> str | None:
        """Return the sha256 of a complete table's records, whatever library version wrote its bytes."""
        return None if self.digest(table) is None else self.contents[table.name]

    def _file(self, table: RecordTable[Any]) -> pq.ParquetFile:
        """Open a complete table. Not by read_table, which goes through datasets and so imports pandas."""
        if self.digest(table) is None:
            raise LedgerError(f"{self._path(table.name)} is not there; make it with {MADE_BY[table.name]}")
        return pq.ParquetFile(self._path(table.name), page_checksum_verification=True)

    def _path(self, name: str) -> Path:
        return self.folder.tables / f"{name}.parquet"

    def _manifest(self) -> dict[str, Any]:
        path = self.folder.tables / "manifest.json"
        if not path.is_file():
            return {}
        stored = read_json(path, "manifest")
        # Entries of earlier versions have no seal.
        complete = isinstance(stored, dict) and all(
            isinstance(entry, dict)
            and entry.keys() - {"seal"} == set(_ENTRY)
            and ("seal" not in entry or entry["seal"] == _entry_seal(name, entry))
            for name, entry in stored.items()
        )
        if not complete:
            raise LedgerError(f"{path} is damaged; delete it, then make the tables again with assaymark import")
        return dict(stored)


def verdicts_of(folder: RunFolder) -> rec.Rows[rec.Verdict]:
    """Read the verdicts of a run."""
    return Store(folder).read(VERDICTS)


def _entry_seal(name: str, entry: Mapping[str, Any]) -> str:
    return rec.sha256_text(rec.canonical_json([name, *(entry[part] for part in _ENTRY)]))


def content_digest(arrow: pa.Table) -> str:
    """Return the sha256 of a table's rows, whatever library version writes their bytes."""
    digest = hashlib.sha256()
    if "record" in arrow.column_names:
        for record in arrow.column("record"):
            digest.update(record.as_buffer())
            digest.update(b"\n")
    else:
        for batch in arrow.to_batches(max_chunksize=4096):
            digest.update(rec.canonical_json(batch.to_pylist()).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _basis_digest(basis: Mapping[str, str | None]) -> str:
    """Return one digest of all inputs of a table."""
    return rec.sha256_text(json.dumps(dict(sorted(basis.items()))))


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end its file replaces ``path`` atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".partial-") as folder:
        part = Path(folder) / path.name
        yield part
        part.replace(path)


def export_arrow(folder: RunFolder, out: Path) -> list[Path]:
    """Copy all tables of a run to Arrow IPC files, those of a benchmark's panel to a subfolder; returns the files."""
    store, made = Store(folder.require()), []
    for name in filter(store.digest, store.contents):
        made.append(out / f"{name}.arrow")
        with (
            pq.ParquetFile(folder.tables / f"{name}.parquet", page_checksum_verification=True) as source,
            atomic_path(made[-1]) as part,
            pa.ipc.new_file(part, source.schema_arrow) as sink,
        ):
            for batch in source.iter_batches():
                sink.write_batch(batch)
    panel = folder.rationales
    return [*made, *export_arrow(panel, out / panel.path.name)] if (panel.tables / "manifest.json").is_file() else made
