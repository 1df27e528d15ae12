"""Parallel computation on several cores or machines: pure functions, with the same results as a serial run."""

from __future__ import annotations

import gc
import hashlib
import importlib
import importlib.util
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast, get_args

import sqlalchemy as sa
from sqlalchemy import Column, Double, ForeignKey, String, Table, Text

from assaymark import __version__
from assaymark.engine import database, schema
from assaymark.engine.calls import pack
from assaymark.engine.database import KEYS_A_QUERY, LedgerStore, groups
from assaymark.engine.schema import among, check_sealed, metadata, sealed
from assaymark.errors import AssayError, InputError, LedgerError, UnknownNameError
from assaymark.records import JSON, canonical_json

if TYPE_CHECKING:
    from assaymark.engine.ledger import Ledger

Arguments = Mapping[str, JSON]
Function = Callable[[Arguments], bytes]
"""A function that is run on chunks: pure, importable by its name, from plain JSON values to bytes."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One part of a computation. The function is called with the fields of ``what`` and ``how`` together."""

    name: str
    what: Arguments
    how: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailedChunk:
    """A chunk without a result, and all its problems."""

    name: str
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(self.problems)}"


class ChunkError(AssayError):
    """Some chunks have no result. ``results`` holds those of the finished chunks, by their index."""

    def __init__(
        self, failures: Sequence[FailedChunk], results: Mapping[int, bytes] | None = None, *, of_data: bool = False
    ) -> None:
        self.failures, self.results, self.of_data = tuple(failures), dict(results or {}), of_data
        super().__init__("; ".join(map(str, failures)))


@dataclass(frozen=True, slots=True)
class Job:
    """A chunk as it is sent to a worker: its index, the function's import name and the arguments."""

    index: int
    name: str
    target: str
    arguments: Arguments
    version: str = __version__


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """The outcome of a chunk: ``data``, or the ``problems`` that the function raised, with a ``trace`` for a bug."""

    index: int
    data: bytes | None = None
    problems: tuple[str, ...] = ()
    trace: str | None = None


def target_of(function: Function) -> str:
    """Return the name by which another process imports a function. Raises ValueError if that is impossible."""
    target = f"{function.__module__}:{getattr(function, '__qualname__', '')}"
    try:
        imported = _import_target(target)
    except (ImportError, AttributeError):
        imported = None
    if imported is not function:
        raise ValueError(f"{target} cannot be imported by its name; give a function of a module")
    return target


def run_job(task: Job) -> ChunkOutcome:
    """Run a task in this process and return its outcome. Exceptions of the function are part of the outcome."""
    try:
        if task.version != __version__:
            text = f"it was sent by assaymark {task.version} to a node that has {__version__}; install the same on all"
            return ChunkOutcome(task.index, None, (text,), "")
        data = _import_target(task.target)(task.arguments)
        if not isinstance(data, bytes):
            raise TypeError(f"{task.target} must return bytes (got {type(data).__name__})")
    except InputError as exc:
        return ChunkOutcome(task.index, None, tuple(map(str, exc.problems)))
    except AssayError as exc:
        return ChunkOutcome(task.index, None, (str(exc),))
    except Exception as exc:
        message = " ".join(f"{type(exc).__name__}: {exc}".split())
        return ChunkOutcome(task.index, None, (message,), traceback.format_exc())
    return ChunkOutcome(task.index, data)


class JobQueue:
    """The queue of waiting tasks. A lost task is appended again until it was lost ``attempts`` times."""

    def __init__(self, tasks: Iterable[Job], attempts: int) -> None:
        self.waiting = deque(tasks)
        self._attempts = attempts
        self._lost: Counter[int] = Counter()

    def lost(self, task: Job, reason: str) -> None:
        """Record that the worker of a task is gone. Raises `ChunkError` after the last attempt."""
        self._lost[task.index] += 1
        times = self._lost[task.index]
        if times >= self._attempts:
            raise ChunkError([FailedChunk(task.name, (f"given up after {times} attempts; last reason: {reason}",))])
        self.waiting.append(task)


def _import_target(target: str) -> Function:
    module, _, name = target.partition(":")
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return cast(Function, value)


RESULT: Final = "chunk"
"""Kind of the objects that hold results of chunks."""

chunks = Table(
    "chunks",
    metadata,
    Column("key", String(64), primary_key=True),  # no chunk has two results
    Column("function", Text, nullable=False),
    Column("object", String(64), ForeignKey(schema.objects.c.sha256), nullable=False),
    Column("finished_at", Double, nullable=False),
    Column("seal", String(64), nullable=False),
)

_HELD = (
    sa.select(chunks, schema.objects.c.codec, schema.objects.c.size, schema.objects.c.bytes)
    .outerjoin(schema.objects, chunks.c.object == schema.objects.c.sha256)
    .where(among(chunks.c.key))
)


class ChunkStore:
    """The finished chunks of one ledger; see `Ledger.chunks`. The first `put` creates the table if it is missing."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    def results(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the results of the finished ones among these chunks, by key."""
        blobs: dict[str, bytes] = {}
        with self._store.reading() as connection:
            if not sa.inspect(connection).has_table(chunks.name):
                return {}
            for group in groups(keys, KEYS_A_QUERY):
                for row in connection.execute(_HELD, {"keys": group}).mappings():
                    _check(row)
                    if row["codec"] is None:
                        raise LedgerError(f"object {row['object']}, a chunk's result, is gone; restore the call log")
                    blobs[row["key"]] = schema.object_of(row["object"], row, self._store.read)
        return blobs

    def put(self, key: str, function: str, data: bytes) -> None:
        """Store the result of a chunk durably, before returning. An earlier result of the chunk is kept."""
        store, packed = self._store, pack(data)
        with store.adding([packed], RESULT) as connection:
            chunks.create(connection, checkfirst=True)
            new = [sealed(chunks, key, function, packed.sha256, store.now(connection))]
            database.execute_many(connection, store.insert_new(chunks), new)


def _check(row: schema.Row) -> None:
    check_sealed(chunks, row, f"chunk {row['key']}")


CHECKS: Final = {chunks: _check}
"""By table, the check that raises `LedgerError` if a row on chunks has changed since it was written."""

_START_S: Final = 60.0
_STOP_S: Final = 5.0


def run_in_processes(tasks: Sequence[Job], workers: int, deadline_s: float, attempts: int) -> Iterator[ChunkOutcome]:
    """Run tasks in ``workers`` processes and yield each outcome, in the order in which they end."""
    turns = JobQueue(tasks, attempts)
    pool: list[_Worker] = []
    try:
        while turns.waiting or any(worker.task for worker in pool):
            free = [worker for worker in pool if worker.task is None]
            while turns.waiting and (free or len(pool) < workers):
                if not free:
                    pool.append(_Worker(deadline_s))
                    free.append(pool[-1])
                free.pop().give(turns.waiting.popleft())
            # Wait until some process has answered, died, or timed out. A string is the reason for no answer.
            busy = [(worker, worker.task) for worker in pool if worker.task is not None]
            timeout = min(worker.until for worker, _ in busy) - time.monotonic()
            ready = connection.wait([worker.pipe for worker, _ in busy], max(0.0, timeout))
            now = time.monotonic()
            over: list[tuple[_Worker, Job, ChunkOutcome | str]] = []
            for worker, task in busy:
                if worker.pipe in ready:
                    if (outcome := worker.take()) is not None:
                        over.append((worker, task, outcome))
                    else:
                        worker.start_s, worker.until = 0.0, now + worker.deadline_s
                elif worker.until <= now:
                    over.append((worker, task, f"it was not finished within {worker.deadline_s:g} s"))
            for worker, task, ended in over:
                worker.task = None
                if isinstance(ended, str):
                    pool.remove(worker)
                    worker.end()
                    turns.lost(task, ended)
                else:
                    yield ended
    finally:
        for worker in pool:
            worker.end()


class _Worker:
    """One worker process and its current task."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.start_s = _START_S  # until it listens
        self.process, self.pipe = _spawn(_serve)
        self.task: Job | None = None
        self.until = 0.0

    def give(self, task: Job) -> None:
        self.task, self.until = task, time.monotonic() + self.deadline_s + self.start_s
        with suppress(OSError):  # it died in the meantime: `take` reports that
            self.pipe.send(task)

    def take(self) -> ChunkOutcome | str | None:
        """Return the outcome of the task, a string if the process died, or None once the process is ready."""
        try:
            ended: ChunkOutcome | None = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_STOP_S)
            code = self.process.exitcode
            how = f"exit status {code}" if code is None or code >= 0 else signal.Signals(-code).name
            return f"its process died ({how})"
        return ended

    def end(self) -> None:
        self.pipe.close()
        stop(self.process)


def _spawn(target: Callable[..., object], *args: Any, parent: bool = False) -> tuple[BaseProcess, Connection]:
    """Start ``target`` in a process with one end of a pipe as its first argument; return it and the other end.

    The process is a daemon, which ends with this one, unless it is the ``parent`` of others.
    """
    # Not forked: the ledger's writer and the progress display are threads, and a fork while they run can hang.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(None, target, None, (theirs, *args), daemon=not parent)
    start(process)
    theirs.close()  # otherwise the pipe would not report the death of the process
    return process, ours


def start(process: BaseProcess) -> None:
    """Start a process that never receives Ctrl-C, not even while it is being loaded."""
    resource_tracker.ensure_running()  # its start unblocks signals, so it comes before they are blocked
    # another thread may receive the signal: the handler of this thread is then called after the start
    before = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread() and callable(before)
    caught: list[tuple[int, FrameType | None]] = []
    if ours:
        signal.signal(signal.SIGINT, lambda number, frame: caught.append((number, frame)))
    try:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)
        if caught and callable(before):
            before(*caught[0])


def stop(process: BaseProcess) -> None:
    """Kill a process that is still running, and join it."""
    if process.is_alive():
        process.kill()
    process.join(_STOP_S)


def watch_parent(by: signal.Signals = signal.SIGKILL, patience_s: float = 0.0) -> None:
    """End this process when its parent has ended, and ignore Ctrl-C, which the parent handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), by)
        time.sleep(patience_s)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _serve(pipe: Connection) -> None:
    """Run tasks from the pipe until it is closed."""
    watch_parent()
    pipe.send(None)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(run_job(task))


T = TypeVar("T")

How = Literal["serial", "processes", "ray"]
"""The backend on which chunks are run."""

HOWS: Final[tuple[str, ...]] = get_args(How)
DEADLINE_S: Final = 3600.0
"""Default time limit of one attempt at a chunk, in seconds."""

ATTEMPTS: Final = 3
"""Default number of attempts at a chunk whose worker dies or hangs."""

_STALL_S: Final = 60.0


def map_chunks(
    function: Function, chunks: Sequence[Chunk], *, version: str, how: How = "serial", workers: int | None = None,
    deadline_s: float = DEADLINE_S, stall_s: float | None = None, attempts: int = ATTEMPTS,
    ledger: Ledger | None = None, address: str | None = None, progress: Callable[[str, int, int], None] | None = None,
    what: str = "chunks",
) -> list[bytes]:  # fmt: skip
    """Return ``function`` of each chunk, in the order given.

    The function is pure and importable by its name. It is called with the fields of a chunk's ``what`` and ``how`` as
    one mapping of plain JSON values, and returns bytes; ``version`` is the version of its results. ``how`` is
    ``serial`` (in this process), ``processes`` or ``ray``, with ``workers`` chunks at once. A chunk whose process or
    node dies or hangs (``deadline_s``) is run again elsewhere, up to ``attempts`` times; on Ray everything is given up
    after ``stall_s`` without an outcome. A ``ledger`` stores each result at once, and stored results are not computed
    again. No process is left behind, even after an error. Raises `ChunkError` for all chunks in which the function
    raised an error of this package, or for the first that failed otherwise or was lost too often.
    """
    backend_named(how)
    for name, value in (("workers", workers), ("attempts", attempts)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be 1 or more (got {value})")
    for name, seconds in (("deadline_s", deadline_s), ("stall_s", stall_s)):
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"{name} must be finite and above 0 (got {seconds})")
    target = target_of(function)
    # sha256 over the function's name, the version of what it computes, and the chunk
    named = (canonical_json([target, version, chunk.what]) for chunk in chunks)
    keys = [hashlib.sha256(name.encode()).hexdigest() for name in named]
    stored = {} if ledger is None else ledger.chunks.results(keys)
    results = {index: stored[key] for index, key in enumerate(keys) if key in stored}
    tasks = [
        Job(index, chunk.name, target, {**chunk.what, **chunk.how})
        for index, chunk in enumerate(chunks)
        if index not in results
    ]
    refused: dict[int, FailedChunk] = {}
    tell = progress or (lambda _what, _done, _total: None)
    tell(what, len(results), len(chunks))
    if how == "serial" or not tasks:
        ends: Iterator[ChunkOutcome] = (run_job(task) for task in tasks)
    elif how == "processes":
        most = min(workers or usable_cores(), len(tasks))
        ends = run_in_processes(tasks, most, deadline_s, attempts)
    else:
        stall = deadline_s + _STALL_S if stall_s is None else stall_s
        ends = run_on_ray(tasks, workers, deadline_s, stall, attempts, address)
    with closing(cast(Generator[ChunkOutcome, None, None], ends)):
        for end in ends:
            if end.data is not None:
                if ledger is not None:
                    ledger.chunks.put(keys[end.index], target, end.data)
                results[end.index] = end.data
            elif end.trace is not None:
                error = ChunkError([FailedChunk(chunks[end.index].name, end.problems)])
                error.add_note(end.trace)
                raise error
            else:
                refused[end.index] = FailedChunk(chunks[end.index].name, end.problems)
            tell(what, len(results) + len(refused), len(chunks))
    if refused:
        raise ChunkError([refused[index] for index in sorted(refused)], results, of_data=True)
    return [results[index] for index in range(len(chunks))]


def backend_named(name: str) -> How:
    """Return ``name`` as a backend. Raises `UnknownNameError` if there is no such backend."""
    if name not in HOWS:
        raise UnknownNameError("way to compute", name, HOWS)
    return cast(How, name)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def spawned(function: Callable[..., T], *args: Any, processes: bool = True) -> Iterator[Callable[[], T]]:
    """Start ``function(*args)`` in another process, and yield a callable that waits for its result."""
    if not processes:
        yield lambda: function(*args)
        return
    process, ours = _spawn(_call_and_send, gc.get_threshold(), function, args)

    def result() -> T:
        try:
            good, value = ours.recv()
        except (EOFError, OSError):
            return function(*args)
        if good:
            return cast(T, value)
        raise value

    try:
        yield result
    finally:
        stop(process)
        ours.close()


def _call_and_send(pipe: Connection, often: tuple[int, int, int], function: Callable[..., Any], args: Any) -> None:
    """Call the function with the parent's garbage-collection thresholds and send its result or error."""
    watch_parent()
    gc.set_threshold(*often)
    try:
        pipe.send((True, function(*args)))
    except Exception as exc:
        pipe.send((False, exc))


# Chunks on a Ray cluster: driven from a separate process, which can be ended whatever Ray is doing

_LOOK_S: Final = 1.0  # between two checks of nodes and deadlines
_END_S: Final = 10.0
_FETCH_S: Final = 60.0
_SAID: Final = 300  # characters of a message of Ray

_SETTINGS: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage reports
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the default of later versions, without the warning of this one
}

_GONE: Final = (
    "the process connected to Ray has ended: the head node is gone, or refuses the connection; "
    "finished work is kept if there is a call log: run again when the cluster is up"
)

_NO_ENTRY: Final = (
    "Ray did not accept the connection within {:g} s; check the address, and that RAY_AUTH_MODE and "
    "RAY_AUTH_TOKEN_PATH (or RAY_AUTH_TOKEN) are those of the head node"
)

_NO_ROOM: Final = "no chunk ended on Ray within {:g} s, so the work was stopped; `ray status` shows the cluster"

_Over = tuple[FailedChunk | None, str | None]
"""The end of a Ray run, with a failed chunk or a reason if it broke off. None is sent once Ray is connected."""


def run_on_ray(
    tasks: Sequence[Job], workers: int | None, deadline_s: float, stall_s: float, attempts: int, address: str | None
) -> Iterator[ChunkOutcome]:
    """Run tasks on a Ray cluster and yield each outcome, in the order in which they end."""
    if importlib.util.find_spec("ray") is None:
        raise AssayError("ray is not installed: pip install 'assaymark[ray]', or compute with processes")
    # Ray starts child processes, which the system ends when this one does.
    driver, ours = _spawn(_drive, list(tasks), workers, deadline_s, attempts, address, parent=True)
    try:
        patience_s, silence = min(_START_S, stall_s), _NO_ENTRY
        while True:
            if not ours.poll(patience_s):
                raise AssayError(silence.format(patience_s))
            try:
                outcome: ChunkOutcome | _Over | None = ours.recv()
            except (EOFError, OSError):
                outcome = None, _GONE
            if isinstance(outcome, tuple):
                break
            if outcome is not None:
                yield outcome
            patience_s, silence = stall_s, _NO_ROOM
        failure, reason = outcome
        if failure is not None:
            raise ChunkError([failure])
        if reason is not None:
            raise AssayError(reason)
    finally:
        ours.close()
        driver.terminate()
        driver.join(_END_S)
        stop(driver)


def _drive(
    pipe: Connection, tasks: list[Job], workers: int | None, deadline_s: float, attempts: int, address: str | None
) -> None:
    """Connect to Ray, run the tasks and send each outcome over the pipe. Ends on SIGTERM or with the parent."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    watch_parent(signal.SIGTERM, _END_S)
    # Discard Ray's output about every lost worker: its own logs have it, and we report it in one line
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    ray: Any = None
    try:
        ray = importlib.import_module("ray")
        named = address or os.environ.get("RAY_ADDRESS")
        options = {"address": named} if named else {"address": "local", "num_cpus": workers, "include_dashboard": False}
        ray.init(**options, log_to_driver=False, logging_level="ERROR")
        pipe.send(None)
        for ended in _ends(ray, JobQueue(tasks, attempts), workers, deadline_s):
            pipe.send(ended)
        over: _Over = None, None
    except ChunkError as exc:
        over = exc.failures[0], None
    except Exception as exc:
        place = address or os.environ.get("RAY_ADDRESS") or "a cluster of this machine"
        message = " ".join(f"{type(exc).__name__}: {exc}".split())
        over = None, f"Ray at {place} cannot be used: {message[:_SAID]}"
    finally:
        # Ray's processes outlive their parent unless they are shut down.
        if ray is not None:
            ray.shutdown()
    pipe.send(over)


def _ends(ray: Any, turns: JobQueue, workers: int | None, deadline_s: float) -> Iterator[ChunkOutcome]:
    remote = ray.remote(num_cpus=1, max_retries=0)(run_job)  # we count the attempts
    flying: dict[Any, tuple[Job, float]] = {}
    while turns.waiting or flying:
        # No more tasks than cores, because the deadline of a task runs while it waits for a core.
        room = max(1, int(ray.cluster_resources().get("CPU", 1)))
        room = room if workers is None else min(room, workers)
        while turns.waiting and len(flying) < room:
            task = turns.waiting.popleft()
            flying[remote.remote(task)] = (task, time.monotonic() + deadline_s)
        ready, _ = ray.wait(list(flying), num_returns=1, timeout=_LOOK_S)
        for ref in ready:
            task, _ = flying.pop(ref)
            try:
                yield ray.get(ref, timeout=_FETCH_S)
            except ray.exceptions.RayTaskError as exc:
                # `run_job` raises nothing, so the node could not even call it.
                message = " ".join(str(exc.cause if exc.cause is not None else exc).split())
                problem = f"a node cannot run it ({message[:_SAID]}); install assaymark on every node"
                yield ChunkOutcome(task.index, None, (problem,), str(exc))
            except ray.exceptions.RayError as exc:
                turns.lost(task, f"its worker or node was lost ({type(exc).__name__})")
        now = time.monotonic()
        for ref, (task, until) in list(flying.items()):
            if until <= now:
                del flying[ref]
                with suppress(ray.exceptions.RayError):
                    ray.cancel(ref, force=True)
                turns.lost(task, f"it was not finished within {deadline_s:g} s")
