"""Work in other processes: one call beside, chunks here, in processes and on Ray. Two nodes of Ray: tests/faults."""

from __future__ import annotations

import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import chunk_functions as functions
import psutil
import pytest

from assaymark.engine import Chunk, ChunkError, Ledger, beside, map_chunks
from assaymark.engine.compute import answer, start, target_of
from assaymark.engine.compute import chunks as chunk_table
from assaymark.errors import AssayError, LedgerError, UnknownNameError

SQUARES = [str(n**2).encode() for n in range(5)]


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "attempts"
    made.mkdir()
    return made


def made(folder: Path, n: int = 5, **more: object) -> list[Chunk]:
    return [Chunk(f"part {k}", {"n": k}, {"folder": str(folder), **more}) for k in range(n)]


def children() -> set[int]:
    """Processes started from here, but for the one that keeps track of shared memory."""
    mine = psutil.Process().children(recursive=True)
    return {one.pid for one in mine if "resource_tracker" not in " ".join(one.cmdline())}


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = children()
    yield
    assert children() - before == set()


@pytest.mark.parametrize("how", ["serial", "processes"])
def test_results_are_in_the_order_given(folder, how):
    told: list[tuple[str, int, int]] = []
    found = map_chunks(
        functions.square, made(folder), version="1", how=how, workers=2, progress=lambda *now: told.append(now),
        what="squares",
    )  # fmt: skip
    assert found == SQUARES
    assert told == [("squares", k, 5) for k in range(6)]
    assert functions.called(folder) == list("01234")


def test_no_chunks_need_nobody_and_what_is_wrong_with_a_call_is_refused(folder):
    for how in ("serial", "processes", "ray"):
        assert map_chunks(functions.square, [], version="1", how=how) == []
    nan = float("nan")
    for wrong in ({"workers": 0}, {"attempts": 0}, {"deadline_s": 0.0}, {"stall_s": -1.0}, {"deadline_s": nan}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            map_chunks(functions.square, made(folder), version="1", **wrong)
    with pytest.raises(UnknownNameError, match="processes"):
        map_chunks(functions.square, made(folder), version="1", how="proceses")
    with pytest.raises(ChunkError, match="must return bytes"):
        map_chunks(functions.a_number, made(folder, 1), version="1")
    with pytest.raises(ChunkError, match=r"^part 0: nothing to be done$"):  # a refusal without a list
        map_chunks(functions.refuse_plainly, made(folder, 1), version="1")

    def inner(given: object) -> bytes:
        return b""

    for function in (lambda _: b"", inner):
        with pytest.raises(ValueError, match="cannot be imported by its name"):
            map_chunks(function, made(folder), version="1")


def test_a_process_that_is_killed_is_replaced(folder):
    chunks = made(folder, victims=[1, 3])
    assert map_chunks(functions.kill_once, chunks, version="1", how="processes", workers=2) == SQUARES
    assert functions.called(folder) == list("0112334")


def test_a_chunk_that_always_kills_its_process_ends_the_job(folder):
    with pytest.raises(ChunkError, match=r"^part 2: given up after 3 attempts; .* process died \(exit status 3\)$"):
        map_chunks(functions.exit_always, made(folder, victims=[2]), version="1", how="processes", workers=1)
    assert functions.called(folder).count("2") == 3


@pytest.mark.parametrize("times", [1, 9], ids=["once", "always"])
def test_a_chunk_that_hangs_is_run_again_or_ends_the_job(folder, times):
    chunks, started = made(folder, victims=[0], times=times), time.monotonic()
    manner = {"version": "1", "how": "processes", "attempts": 2}
    if times == 1:
        assert map_chunks(functions.hang, chunks, workers=2, deadline_s=2.0, **manner) == SQUARES
        assert time.monotonic() - started < 300
        assert functions.called(folder).count("0") == 2
    else:
        with pytest.raises(ChunkError, match=r"^part 0: given up after 2 attempts; .* not finished within 0\.7 s$"):
            map_chunks(functions.hang, chunks, workers=1, deadline_s=0.7, **manner)


@pytest.mark.parametrize("how", ["serial", "processes"])
def test_chunks_that_are_refused_are_named_together(folder, how):
    with pytest.raises(ChunkError) as caught:
        map_chunks(functions.refuse, made(folder, victims=[3, 1]), version="1", how=how, workers=1)
    assert caught.value.of_data
    assert caught.value.results == {0: b"fine", 2: b"fine", 4: b"fine"}
    assert str(caught.value) == "part 1: row 1: is 1; row 2: is worse; part 3: row 1: is 3; row 2: is worse"


@pytest.mark.parametrize("how", ["serial", "processes"])
def test_a_defect_is_one_line_with_its_trace_beside_it(folder, how):
    with pytest.raises(ChunkError) as caught:
        map_chunks(functions.stumble, made(folder, victims=[0]), version="1", how=how, workers=1)
    assert str(caught.value) == "part 0: ZeroDivisionError: a defect in two lines"
    assert "in stumble" in caught.value.__notes__[0]
    assert functions.called(folder) == ["0"]


def test_what_is_in_the_ledger_is_not_computed(folder, ledger):
    for version, times in (("1", 1), ("1", 1), ("2", 2)):
        assert map_chunks(functions.square, made(folder), version=version, ledger=ledger) == SQUARES
        assert functions.called(folder) == sorted(list("01234") * times)
    # Neither the name nor what does not change the result makes it another chunk; what does change it, does.
    renamed = [Chunk("other", one.what, {**one.how, "victims": []}) for one in made(folder)]
    assert map_chunks(functions.square, renamed, version="1", ledger=ledger) == SQUARES
    assert len(functions.called(folder)) == 10
    assert map_chunks(functions.kill_once, renamed, version="1", ledger=ledger) == SQUARES
    assert len(functions.called(folder)) == 15
    assert ledger.verify() >= 15


def test_what_was_finished_before_an_error_is_kept(folder, ledger):
    with pytest.raises(ChunkError):
        map_chunks(functions.refuse, made(folder, victims=[4]), version="1", ledger=ledger)
    assert map_chunks(functions.refuse, made(folder, victims=[]), version="1", ledger=ledger) == [b"fine"] * 5
    assert functions.called(folder) == list("012344")


def test_a_ledger_without_the_table_gets_it(folder, ledger):
    with ledger._store.engine.begin() as connection:
        chunk_table.drop(connection)
    assert ledger.chunks.held(["a" * 64]) == {}
    assert ledger.verify() == 0
    assert map_chunks(functions.square, made(folder), version="1", ledger=ledger) == SQUARES
    assert map_chunks(functions.square, made(folder), version="1", ledger=ledger) == SQUARES
    assert functions.called(folder) == list("01234")


@pytest.mark.parametrize(
    "change",
    [
        "update chunks set function = 'other'", "update chunks set finished_at = x'00'", "delete from objects",
        "update objects set bytes = x'00', codec = 'none'",
    ],
)  # fmt: skip
def test_damage_is_told_and_never_used(folder, ledger, change):
    map_chunks(functions.square, made(folder, 1), version="1", ledger=ledger)
    with ledger._store.engine.connect() as connection:
        raw = connection.connection.driver_connection
        raw.execute("pragma foreign_keys=off")
        raw.execute(change)
        raw.execute("pragma foreign_keys=on")
    with pytest.raises(LedgerError):
        map_chunks(functions.square, made(folder, 1), version="1", ledger=ledger)
    with pytest.raises(LedgerError):
        ledger.verify()


def test_the_same_on_a_shared_ledger(folder, shared):
    for _ in range(2):
        assert map_chunks(functions.square, made(folder), version="1", ledger=shared) == SQUARES
    assert shared.verify() > 0
    assert functions.called(folder) == list("01234")


JOB = """
import json, sys
from pathlib import Path
import chunk_functions as functions
from assaymark.engine import Chunk, Ledger, map_chunks
if __name__ == "__main__":
    where, how = sys.argv[1:]
    chunks = [
        Chunk(f"part {k}", {"n": k}, {"folder": where + "/attempts", "seconds": 30 if k > 2 else 0.0}) for k in range(5)
    ]
    with Ledger.open(Path(where) / "ledger.db") as ledger:
        map_chunks(functions.slow, chunks, version="1", how=how, workers=2, ledger=ledger)
"""


def finished(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return int(database.execute("select count(*) from chunks").fetchone()[0])


@pytest.fixture
def job(tmp_path, folder):
    """A job with two chunks that take too long, killed when three are finished and another is under way."""
    program = tmp_path / "job.py"
    program.write_text(JOB)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(how: str, sign: signal.Signals) -> int:
        started = subprocess.Popen(
            [sys.executable, str(program), str(tmp_path), how],
            env={**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled"}, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        begun = 4 if how == "serial" else 5
        while len(functions.called(folder)) < begun or finished(tmp_path / "ledger.db") < 3:
            assert started.poll() is None
            time.sleep(0.02)
        family = psutil.Process(started.pid).children(recursive=True)
        started.send_signal(sign)
        code = started.wait(60)
        gone, alive = psutil.wait_procs(family, timeout=60)
        assert not alive
        assert len(gone) == len(family)
        return code

    return run


@pytest.mark.parametrize(
    ("how", "sign"),
    [
        ("serial", signal.SIGKILL), ("processes", signal.SIGKILL), ("processes", signal.SIGINT),
        ("ray", signal.SIGKILL), ("ray", signal.SIGINT),
    ],
)  # fmt: skip
def test_after_a_kill_only_what_is_missing_is_computed(tmp_path, folder, job, how, sign, pytestconfig):
    if how == "ray":
        pytest.importorskip("ray", reason="no Ray: pip install 'assaymark[ray]'")
        if not pytestconfig.getoption("--long-faults"):
            pytest.skip("a cluster is started and ended; --long-faults does it")
    assert job(how, sign) != 0
    before = functions.called(folder)
    chunks = made(folder, seconds=0.0)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert map_chunks(functions.slow, chunks, version="1", ledger=ledger) == SQUARES
    assert sorted([*before, "3", "4"]) == functions.called(folder)


def test_another_version_of_the_program_is_told():
    from assaymark.engine.compute import Task

    end = answer(Task(0, "part", target_of(functions.square), {}, version="0.0"))
    assert end.trace is not None
    assert "install the same on all" in end.problems[0]


@pytest.mark.parametrize("heard_by", ["this thread", "another"])
def test_a_stop_while_a_process_is_started_is_heard_when_it_stands(heard_by):
    """Half of a started process would end with a traceback on the terminal, because the other half is missing."""

    class Starting:
        stands = False

        def start(self) -> None:
            if heard_by == "another":  # as when a thread without the mask hears it for this one
                thread = threading.Thread(target=signal.pthread_kill, args=(threading.get_ident(), signal.SIGINT))
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                thread.start()
                thread.join()
            else:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            self.stands = True

    process = Starting()
    with pytest.raises(KeyboardInterrupt):
        start(process)
    assert process.stands


def double(value: int) -> int:
    return 2 * value


def where() -> int:
    return os.getpid()


def fail() -> None:
    raise ValueError("no such thing")


def die() -> int:
    """Kill the process it runs in, unless that is the test's own."""
    if os.environ.get("ASSAYMARK_TEST_PARENT") != str(os.getpid()):
        os.kill(os.getpid(), 9)
    return 7


def test_the_result_is_that_of_a_plain_call_in_another_process_or_here(monkeypatch):
    with beside(double, 21) as result, beside(where) as elsewhere, beside(where, processes=False) as here:
        assert (result(), here()) == (42, os.getpid())
        assert elsewhere() != os.getpid()
    monkeypatch.setenv("ASSAYMARK_TEST_PARENT", str(os.getpid()))
    with beside(die) as result:  # a process that dies is replaced by a call here
        assert result() == 7


def test_an_error_arrives_where_the_result_is_asked_for_and_nothing_is_waited_for_when_the_block_fails():
    for processes in (True, False):
        with beside(fail, processes=processes) as result, pytest.raises(ValueError, match="no such thing"):
            result()

    def stumble() -> None:
        with beside(double, 21):
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        stumble()


needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray: pip install 'assaymark[ray]'")


@pytest.fixture
def on_ray(folder, monkeypatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(functions.__file__).parent))  # of the workers, which Ray starts
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # no token is written into the home of whoever runs the tests
    return folder


@needs_ray
def test_results_are_those_of_serial_and_of_processes(on_ray):
    """Two of the workers are killed at their first attempt."""
    chunks = made(on_ray, victims=[1, 3])
    found = map_chunks(functions.kill_once, chunks, version="1", how="ray", workers=2, deadline_s=60.0)
    assert sorted(functions.called(on_ray)) == list("0112334")
    for how in ("serial", "processes"):
        assert map_chunks(functions.kill_once, chunks, version="1", how=how, workers=2) == found


@needs_ray
def test_what_is_refused_hangs_or_fails_is_told(on_ray, pytestconfig):
    if not pytestconfig.getoption("--long-faults"):
        pytest.skip("three clusters are started; --long-faults does it")
    with pytest.raises(ChunkError, match=r"^part 1: row 1: is 1; row 2: is worse$") as caught:
        map_chunks(functions.refuse, made(on_ray, victims=[1]), version="1", how="ray", workers=2)
    assert sorted(caught.value.results) == [0, 2, 3, 4]
    with pytest.raises(ChunkError, match=r"^part 1: ZeroDivisionError: a defect in two lines"):
        map_chunks(functions.stumble, made(on_ray, victims=[1]), version="1", how="ray", workers=2)
    chunks = made(on_ray, victims=[0], times=9)
    with pytest.raises(ChunkError, match=r"^part 0: given up after 2 attempts; at last .* not finished within 4 s$"):
        map_chunks(functions.hang, chunks, version="1", how="ray", workers=2, deadline_s=4.0, attempts=2)


def test_without_ray_the_way_to_it_is_said(on_ray, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(AssayError, match=r"pip install 'assaymark\[ray\]'"):
        map_chunks(functions.square, made(on_ray), version="1", how="ray")
