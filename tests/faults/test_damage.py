"""Bytes that are cut or turned: whoever reads them is told, or reads exactly what was written."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from engine_calls import calls

from assaymark.engine import Ledger, Reply
from assaymark.errors import AssayError
from assaymark.records import Outcome
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.tables import OUTCOMES, TABLES, Store

N, LARGE = 60, 2_500_000
KINDS = {"run": "small run", "demo": "finished demo"}


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A run folder with calls, a table, and an object that has a file of its own."""
    folder = tmp_path_factory.mktemp("sound")
    rng = random.Random(1)
    with Ledger.open(folder / "ledger.db") as ledger:
        ledger.plan(calls(N))
        begun = ledger.begin([call.key for call in calls(N)])
        ledger.finish(
            [(one, Reply(text=one.key * 20, model="m", raw=f'"{rng.randbytes(300).hex()}"')) for one in begun]
        )
        ledger.put_object(rng.randbytes(LARGE), "source")
    now = datetime(2026, 3, 2, tzinfo=UTC)
    outcomes = [
        Outcome(record_id=f"r{n}", horizon="1W", value=rng.random(), benchmark=None, resolved_at=now, source="s")
        for n in range(500)
    ]
    Store(RunFolder(folder)).write(OUTCOMES, outcomes, {})
    return folder


@pytest.fixture
def sound(request, small, long, tmp_path) -> Path:
    """A copy of a sound run folder: a small one, or with ``--long-faults`` that of a whole study."""
    folder = Path(shutil.copytree(small, tmp_path / "run"))
    if long:
        demo = request.getfixturevalue("demo")
        shutil.copytree(demo, tmp_path / "demo")
    return folder


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


def harmed(path: Path, read: Callable[[], object], times: int, seed: int) -> tuple[int, int]:
    """Cut or turn a bit in a file again and again: how often the reader was told, and how often nothing was lost."""
    data, right, rng = path.read_bytes(), read(), random.Random(seed)
    told = harmless = 0
    for n in range(times):
        at = rng.randrange(len(data))
        turned = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
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


def test_a_damaged_ledger_is_never_silent(sound, long, note):
    for name in ("run", "demo") if long else ("run",):
        path = sound.parent / name / "ledger.db"
        told, harmless = harmed(path, lambda path=path: everything_in(path), many(long), 1)
        assert told > harmless
        row(note, f"ledger of a {KINDS[name]}", many(long), told, harmless)


def test_a_damaged_object_is_never_silent(sound, long, note):
    (path,) = (path for path in (sound / "objects").rglob("*") if path.is_file())
    with Ledger.open(sound / "ledger.db", create=False) as ledger:
        told, harmless = harmed(path, lambda: ledger.get_object(path.name), many(long), 2)
    assert (told, harmless) == (many(long), 0)
    row(note, "object file", many(long), told, harmless)


def test_a_damaged_table_is_never_silent(sound, long, note):
    for name in ("run", "demo") if long else ("run",):
        folder = sound.parent / name
        store = Store(RunFolder(folder))
        for number, path in enumerate(sorted((folder / "tables").glob("*.parquet"))):
            told, harmless = harmed(path, partial(store.read, TABLES[path.stem]), many(long), number)
            assert (told, harmless) == (many(long), 0), path.name
        row(note, f"Parquet tables of a {KINDS[name]}", many(long) * (number + 1), many(long) * (number + 1), 0)
