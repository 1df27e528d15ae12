"""Bytes that are cut or turned: whoever reads them is told, or reads exactly what was written; `verify` names them."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from engine_calls import begin, calls
from imported_records import store_imported
from made_records import STUDY

from assaymark.cli import main
from assaymark.engine import End, Ledger, Reply
from assaymark.engine.calls import unpack
from assaymark.errors import AssayError
from assaymark.records import Outcome
from assaymark.workflow import OUTCOMES, RecordTable, RunFolder, Store, tables, verify_run

N, LARGE = 60, 2_500_000
TABLES = {one.name: one for one in vars(tables).values() if isinstance(one, RecordTable)}


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A run folder with calls, a table, and an object that has a file of its own."""
    folder, rng = tmp_path_factory.mktemp("sound"), random.Random(1)
    with Ledger.open(folder / "ledger.db") as ledger:
        ledger.plan(calls(N))
        begun = begin(ledger, [call.key for call in calls(N)])
        replies = [Reply(text=one.key * 20, model="m", raw=f'"{rng.randbytes(300).hex()}"') for one in begun]
        ledger.commit(ends=[End(one, "replied", reply=reply) for one, reply in zip(begun, replies, strict=True)])
        ledger.add_source("x", rng.randbytes(LARGE), "source")
    more = {"horizon": "1W", "benchmark": None, "resolved_at": datetime(2026, 3, 2, tzinfo=UTC), "source": "s"}
    outcomes = [Outcome(record_id=f"r{n}", value=rng.random(), **more) for n in range(500)]
    Store(RunFolder(folder)).write(OUTCOMES, outcomes, {})
    return folder


@pytest.fixture
def sound(request, small, long, tmp_path) -> dict[str, Path]:
    """A copy of a sound run folder by what it is: a small one, with ``--long-faults`` also that of a whole study."""
    found = {"small run": Path(shutil.copytree(small, tmp_path / "run"))}
    if long:
        found["finished demo"] = Path(shutil.copytree(request.getfixturevalue("demo"), tmp_path / "demo"))
    return found


def everything_in(path: Path) -> list[object]:
    """All that a ledger says of its calls, their replies, attempts, sources and objects, each checked as it is read."""
    with Ledger.open(path, create=False) as ledger:
        ledger.check_structure()
        ledger.verify()
        engine = sa.create_engine(f"sqlite:///{path}")
        try:
            with engine.connect() as connection:
                keys = sorted(connection.scalars(sa.text("select key from calls")))
                objects = sorted(connection.scalars(sa.text("select sha256 from objects")))
        finally:
            engine.dispose()
        replies = [(key, repr(reply)) for key, reply in ledger.replies(keys)]
        return [keys, objects, replies, sorted(ledger.attempt_counts(keys).items()), ledger.sources()]


def turn(data: bytes, at: int, rng: random.Random) -> bytes:
    """The bytes with one bit of one of them turned."""
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def harmed(path: Path, read: Callable[[], object], times: int, seed: int) -> tuple[int, int]:
    """Cut or turn a bit in a file again and again: how often the reader was told, and how often nothing was lost."""
    data, right, rng = path.read_bytes(), read(), random.Random(seed)
    told = harmless = 0
    for n in range(times):
        at = rng.randrange(len(data))
        turned = turn(data, at, rng)
        path.write_bytes(data[:at] if n % 2 else turned)
        try:
            assert read() == right, f"{path.name}: silently wrong after harm {n} at {at}"
            harmless += 1
        except AssayError:
            told += 1
        finally:
            path.write_bytes(data)
    return told, harmless


def many(long: bool) -> int:
    return 60 if long else 8


def row(note, what: str, times: int, told: int, harmless: int) -> None:
    made = f"{times} cuts and turned bits"
    note(f"damage, {what}", made, f"{told} told, {harmless} without effect on what is read, 0 silently wrong")


def test_a_damaged_ledger_or_object_is_never_silent(sound, long, note):
    for name, folder in sound.items():
        path, times = folder / "ledger.db", 120 if name == "small run" else many(long)
        told, harmless = harmed(path, partial(everything_in, path), times, 1)
        assert told > harmless
        row(note, f"ledger of a {name}", times, told, harmless)
    folder = sound["small run"]
    (path,) = (path for path in (folder / "objects").rglob("*") if path.is_file())
    with Ledger.open(folder / "ledger.db", create=False) as ledger:
        told, harmless = harmed(path, lambda: ledger.get_object(path.name), many(long), 2)
    assert (told, harmless) == (many(long), 0)
    row(note, "object file", many(long), told, harmless)


def test_a_damaged_table_is_never_silent(sound, long, note):
    for name, folder in sound.items():
        store, paths = Store(RunFolder(folder)), sorted((folder / "tables").glob("*.parquet"))
        for number, path in enumerate(paths):
            told, harmless = harmed(path, partial(store.read, TABLES[path.stem]), many(long), number)
            assert (told, harmless) == (many(long), 0), path.name
        row(note, f"Parquet tables of a {name}", many(long) * len(paths), many(long) * len(paths), 0)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A finished study with an object in a file of its own, and without its pages, which are no record."""
    folder = tmp_path_factory.mktemp("verified") / "run"
    store_imported(folder)
    with Ledger.open(folder / "ledger.db") as ledger:
        ledger.add_source("x", random.Random(1).randbytes(LARGE), "source")
    assert main(["run", str(STUDY), "--out", str(folder)]) == 0
    shutil.rmtree(folder / "report")
    assert verify_run(RunFolder(folder)).differences == ()
    return folder


def records_in(path: Path) -> object:
    """Every row of a ledger as SQLite reads it, and every object unpacked; or that it cannot be read."""
    try:
        with closing(sqlite3.connect(path)) as ledger:
            names = [name for (name,) in ledger.execute("select name from sqlite_master where type = 'table'")]
            rows = {name: ledger.execute(f"select rowid, * from {name}").fetchall() for name in sorted(names)}
        objects = [
            (number, sha256, kind, data if data is None else unpack(sha256, codec, size, data))
            for number, sha256, kind, codec, size, data in rows.pop("objects")
        ]
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, ValueError, KeyError, AssayError):
        return "cannot be read"
    return rows, objects


def turned(paths: list[Path], rng: random.Random) -> Iterator[Path]:
    """A file after the other with one bit turned, each as it was again when the next is asked for."""
    while True:
        path = rng.choice(paths)
        data = path.read_bytes()
        path.write_bytes(turn(data, rng.randrange(len(data)), rng))
        yield path
        path.write_bytes(data)


@pytest.mark.parametrize(
    "kept", ["ledger.db", "study.lock", "plan.toml", "tables/*", "verdicts.json", "certificates/*", "objects/*"]
)
def test_verify_catches_every_turned_bit_of_a_record(kept, run, long, note, tmp_path):
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    paths, right = sorted(folder.glob(kept)), records_in(folder / "ledger.db")
    caught, without, n = 0, 0, many(long)
    for path in turned(paths, random.Random(kept)):
        if kept == "ledger.db" and records_in(path) == right:
            without += 1
            continue
        found = verify_run(RunFolder(folder))
        assert str(path.relative_to(folder)) in [one.where for one in found.differences], path
        caught += 1
        if caught == n:
            break
    made = f"{n} turned bits of a record" + (f", and {without} that no record has" if without else "")
    note(f"verify, {kept.removesuffix('/*')} of a run", made, f"{caught} named, each with its file")
