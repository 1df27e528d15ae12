"""Work in other processes: one call beside, chunks here, in processes and on Ray. Two nodes of Ray: tests/faults."""

from __future__ import annotations

import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import chunk_functions as functions
import psutil
import pytest
from chunk_functions import made

from assaymark.engine import Chunk, ChunkError, Ledger, map_chunks, spawned
from assaymark.engine.compute import Job, run_job, start, target_of
from assaymark.engine.compute import chunks as chunk_table
from assaymark.errors import AssayError, LedgerError, UnknownNameError

SQUARES = [str(n**2).encode() for n in range(5)]
REFUSED = "part 1: row 1: is 1; row 2: is worse; part 3: row 1: is 3; row 2: is worse"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "attempts"
    made.mkdir()
    return made


def mapped(function, chunks, **more):
    return map_chunks(function, chunks, **{"version": "1"} | more)


def children():
    """Processes started from here, but for the one that keeps track of shared memory."""
    mine = psutil.Process().children(recursive=True)
    return {one.pid for one in mine if "resource_tracker" not in " ".join(one.cmdline())}


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch):
    main = sys.modules["__main__"]  # a process that is started need not load pytest as well
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.delattr(main, "__file__", raising=False)
    before = children()
    yield
    assert children() - before == set()


def test_results_are_in_the_order_given_though_processes_are_killed_or_hang(folder):
    told = []
    found = mapped(functions.square, made(folder), progress=lambda *now: told.append(now), what="squares")
    assert found == SQUARES
    assert told == [("squares", k, 5) for k in range(6)]
    assert functions.called(folder) == list("01234")
    told.clear()
    folder = Path(tempfile.mkdtemp(dir=folder.parent))
    chunks, many = made(folder, victims=[1], hung=[0]), {"workers": 2, "deadline_s": 3.0, "what": "squares"}
    found = mapped(functions.fail_once, chunks, how="processes", progress=lambda *now: told.append(now), **many)
    assert found == SQUARES
    assert told == [("squares", k, 5) for k in range(6)]
    assert functions.called(folder) == list("0011234")


def test_no_chunks_need_nobody_and_what_is_wrong_with_a_call_is_refused(folder):
    for how in ("serial", "processes", "ray"):
        assert mapped(functions.square, [], how=how) == []
    nan = float("nan")
    for wrong in ({"workers": 0}, {"attempts": 0}, {"deadline_s": 0.0}, {"stall_s": -1.0}, {"deadline_s": nan}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            mapped(functions.square, made(folder), **wrong)
    with pytest.raises(UnknownNameError, match="processes"):
        mapped(functions.square, made(folder), how="proceses")
    with pytest.raises(ChunkError, match="must return bytes"):
        mapped(functions.a_number, made(folder, 1))
    with pytest.raises(ChunkError, match=r"^part 0: nothing to be done$"):  # a refusal without a list
        mapped(functions.refuse_plainly, made(folder, 1))

    def inner(given):
        return b""

    for function in (lambda _: b"", inner):
        with pytest.raises(ValueError, match="cannot be imported by its name"):
            mapped(function, made(folder))
    end = run_job(Job(0, "part", target_of(functions.square), {}, version="0.0"))
    assert end.trace is not None
    assert "install the same on all" in end.problems[0]  # another version of the program


def test_a_chunk_that_always_kills_its_process_or_hangs_ends_the_job(folder):
    with pytest.raises(ChunkError, match=r"^part 2: given up after 2 attempts; .* process died \(exit status 3\)$"):
        mapped(functions.exit_always, made(folder, victims=[2]), how="processes", workers=1, attempts=2)
    assert functions.called(folder).count("2") == 2
    hanging = made(folder, victims=[0], times=9)
    with pytest.raises(ChunkError, match=r"^part 0: given up after 2 attempts; .* not finished within 0\.7 s$"):
        mapped(functions.hang, hanging, how="processes", workers=1, deadline_s=0.7, attempts=2)


@pytest.mark.parametrize("how", ["serial", "processes"])
def test_chunks_that_are_refused_are_named_together_and_a_defect_is_one_line_with_its_trace_beside_it(folder, how):
    with pytest.raises(ChunkError) as caught:
        mapped(functions.refuse, made(folder, victims=[3, 1]), how=how, workers=1)
    assert caught.value.of_data
    assert caught.value.results == {0: b"fine", 2: b"fine", 4: b"fine"}
    assert str(caught.value) == REFUSED
    before = len(functions.called(folder))
    with pytest.raises(ChunkError) as caught:
        mapped(functions.stumble, made(folder, victims=[0]), how=how, workers=1)
    assert str(caught.value) == "part 0: ZeroDivisionError: a defect in two lines"
    assert "in stumble" in caught.value.__notes__[0]
    assert len(functions.called(folder)) == before + 1


def test_what_is_in_the_ledger_is_not_computed(folder, either):
    with either._store.engine.begin() as connection:  # a ledger without the table gets it
        chunk_table.drop(connection)
    assert (either.chunks.results(["a" * 64]), either.verify()) == ({}, 0)
    for version, times in (("1", 1), ("1", 1), ("2", 2)):
        assert mapped(functions.square, made(folder), version=version, ledger=either) == SQUARES
        assert functions.called(folder) == sorted(list("01234") * times)
    # Neither the name nor what does not change the result makes it another chunk; what does change it, does.
    renamed = [Chunk("other", one.what, {**one.how, "victims": []}) for one in made(folder)]
    for function, called in ((functions.square, 10), (functions.kill_once, 15)):
        assert mapped(function, renamed, ledger=either) == SQUARES
        assert len(functions.called(folder)) == called
    assert either.verify() >= 15
    with pytest.raises(ChunkError):
        mapped(functions.refuse, made(folder, victims=[4]), ledger=either)
    assert mapped(functions.refuse, made(folder, victims=[]), ledger=either) == [b"fine"] * 5
    assert len(functions.called(folder)) == 15 + 6  # what was finished before an error is kept


@pytest.mark.parametrize(
    "change",
    [
        "update chunks set function = 'other'", "update chunks set finished_at = x'00'", "delete from objects",
        "update objects set bytes = x'00', codec = 'none'",
    ],
)  # fmt: skip
def test_damage_is_told_and_never_used(folder, ledger, change):
    mapped(functions.square, made(folder, 1), ledger=ledger)
    with ledger._store.engine.connect() as connection:
        raw = connection.connection.driver_connection
        for statement in ("pragma foreign_keys=off", change, "pragma foreign_keys=on"):
            raw.execute(statement)
    with pytest.raises(LedgerError):
        mapped(functions.square, made(folder, 1), ledger=ledger)
    with pytest.raises(LedgerError):
        ledger.verify()


JOB = """
import sys
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


@pytest.mark.parametrize(
    ("how", "sign"),
    [
        ("serial", signal.SIGKILL), ("processes", signal.SIGKILL), ("processes", signal.SIGINT),
        ("ray", signal.SIGKILL), ("ray", signal.SIGINT),
    ],
)  # fmt: skip
def test_after_a_kill_only_what_is_missing_is_computed(tmp_path, folder, how, sign, pytestconfig):
    """A job with two chunks that take too long, killed when three are finished and another is under way."""
    if how == "ray":
        pytest.importorskip("ray", reason="no Ray: pip install 'assaymark[ray]'")
        if not pytestconfig.getoption("--long-faults"):
            pytest.skip("a cluster is started and ended; --long-faults does it")
    (tmp_path / "job.py").write_text(JOB)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    started = subprocess.Popen(
        [sys.executable, str(tmp_path / "job.py"), str(tmp_path), how],
        env={**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled"}, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def finished():
        with closing(sqlite3.connect(f"file:{tmp_path / 'ledger.db'}?mode=ro", uri=True)) as database:
            return database.execute("select count(*) from chunks").fetchone()[0]

    while len(functions.called(folder)) < (4 if how == "serial" else 5) or finished() < 3:
        assert started.poll() is None
        time.sleep(0.02)
    family = psutil.Process(started.pid).children(recursive=True)
    started.send_signal(sign)
    assert started.wait(60) != 0
    gone, alive = psutil.wait_procs(family, timeout=60)
    assert (alive, len(gone)) == ([], len(family))
    before = functions.called(folder)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert mapped(functions.slow, made(folder, seconds=0.0), ledger=ledger) == SQUARES
    assert sorted([*before, "3", "4"]) == functions.called(folder)


@pytest.mark.parametrize("heard_by", ["this thread", "another"])
def test_a_stop_while_a_process_is_started_is_heard_when_it_stands(heard_by):
    """Half of a started process would end with a traceback on the terminal, because the other half is missing."""

    class Starting:
        stands = False

        def start(self):
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


def test_one_call_beside_gives_what_a_plain_call_gives_where_its_result_is_asked_for(monkeypatch):
    monkeypatch.setenv("ASSAYMARK_TEST_PARENT", str(os.getpid()))

    def stumble():
        with spawned(functions.where) as elsewhere, spawned(functions.die) as dead, spawned(functions.fail) as bad:
            assert elsewhere() != os.getpid()
            assert dead() == 7  # a process that dies is replaced by a call here
            with pytest.raises(ValueError, match="no such thing"):
                bad()
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):  # nothing is waited for when the block fails
        stumble()
    with spawned(functions.where, processes=False) as here, spawned(functions.fail, processes=False) as bad:
        assert here() == os.getpid()
        with pytest.raises(ValueError, match="no such thing"):
            bad()


needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray: pip install 'assaymark[ray]'")


@pytest.fixture
def on_ray(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(functions.__file__).parent))  # of the workers, which Ray starts
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # no token is written into the home of whoever runs the tests
    return folder


@needs_ray
def test_results_are_those_of_serial(on_ray):
    """Two of the workers are killed at their first attempt."""
    chunks = made(on_ray, victims=[1, 3])
    assert mapped(functions.kill_once, chunks, how="ray", workers=2, deadline_s=60.0) == SQUARES
    assert sorted(functions.called(on_ray)) == list("0112334")
    assert mapped(functions.kill_once, chunks) == SQUARES


@needs_ray
def test_what_is_refused_hangs_or_fails_is_told(on_ray, pytestconfig):
    if not pytestconfig.getoption("--long-faults"):
        pytest.skip("three clusters are started; --long-faults does it")
    with pytest.raises(ChunkError, match=r"^part 1: row 1: is 1; row 2: is worse$") as caught:
        mapped(functions.refuse, made(on_ray, victims=[1]), how="ray", workers=2)
    assert sorted(caught.value.results) == [0, 2, 3, 4]
    with pytest.raises(ChunkError, match=r"^part 1: ZeroDivisionError: a defect in two lines"):
        mapped(functions.stumble, made(on_ray, victims=[1]), how="ray", workers=2)
    chunks = made(on_ray, victims=[0], times=9)
    with pytest.raises(ChunkError, match=r"^part 0: given up after 2 attempts; at last .* not finished within 4 s$"):
        mapped(functions.hang, chunks, how="ray", workers=2, deadline_s=4.0, attempts=2)


def test_without_ray_the_way_to_it_is_said(on_ray, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(AssayError, match=r"pip install 'assaymark\[ray\]'"):
        mapped(functions.square, made(on_ray), how="ray")
