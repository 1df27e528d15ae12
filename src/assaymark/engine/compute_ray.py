"""Chunks on a Ray cluster: driven from a process of its own, which can be cut off whatever Ray is doing."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final

from assaymark.engine.compute import ChunkError, Defect, Ended, Failure, Task, Turns, answer, start, stop, watch_parent
from assaymark.errors import AssayError

_LOOK_S: Final = 1.0  # how often nodes and deadlines are looked at
_END_S: Final = 10.0
_FETCH_S: Final = 60.0
_START_S: Final = 60.0  # Ray asks for ever to be let in, so somebody has to end that
_SAID: Final = 300  # characters of what Ray says

_SETTINGS: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the default of later versions, without the warning of this one
}

_GONE: Final = (
    "the process that speaks to Ray has ended: the head node is gone, or does not let us in; "
    "what was finished is kept where there is a ledger: run again when the cluster is there"
)

_NO_ENTRY: Final = (
    "Ray did not let us in within {:g} s; check the address, and that RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH (or "
    "RAY_AUTH_TOKEN) are those of the head node"
)

_NO_ROOM: Final = "no chunk ended on Ray within {:g} s, so all is given up; `ray status` says what the cluster does"


@dataclass(frozen=True, slots=True)
class _Connected:
    """The cluster let the driver in."""


@dataclass(frozen=True, slots=True)
class _Over:
    """All tasks have ended, or, with a reason, no more of them can."""

    failure: Failure | None = None
    reason: str | None = None


def on_ray(
    tasks: Sequence[Task], *, workers: int | None, deadline_s: float, stall_s: float, attempts: int, address: str | None
) -> Iterator[Ended]:
    """Run tasks on a cluster and hand out how each ended, in the order in which they end."""
    if importlib.util.find_spec("ray") is None:
        raise AssayError("ray is not installed: pip install 'assaymark[ray]', or compute with processes")
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    # Not a daemon: Ray starts processes of its own, which the system ends when this one does.
    driver = context.Process(target=_drive, args=(theirs, list(tasks), workers, deadline_s, attempts, address))
    start(driver)
    theirs.close()
    try:
        said = _next(ours, min(_START_S, stall_s), _NO_ENTRY)
        while not isinstance(said, _Over):
            if not isinstance(said, _Connected):
                yield said
            said = _next(ours, stall_s, _NO_ROOM)
        if said.failure is not None:
            raise ChunkError([said.failure])
        if said.reason is not None:
            raise AssayError(said.reason)
    finally:
        ours.close()
        driver.terminate()
        driver.join(_END_S)
        stop(driver)


def _next(pipe: Connection, patience_s: float, silence: str) -> Ended | _Connected | _Over:
    """What the driver says next; ``silence`` is what it means when that is nothing."""
    if not pipe.poll(patience_s):
        raise AssayError(silence.format(patience_s))
    try:
        said: Ended | _Connected | _Over = pipe.recv()
    except (EOFError, OSError):
        return _Over(reason=_GONE)
    return said


def _drive(
    pipe: Connection, tasks: list[Task], workers: int | None, deadline_s: float, attempts: int, address: str | None
) -> None:
    """Connect, run the tasks, and say over the pipe how each ended. SIGTERM, and the end of the parent, end it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    watch_parent(signal.SIGTERM, _END_S)
    _be_quiet()
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    ray: Any = None
    try:
        ray = importlib.import_module("ray")
        _connect(ray, address, workers)
        pipe.send(_Connected())
        for ended in _ends(ray, Turns(tasks, attempts), workers, deadline_s):
            pipe.send(ended)
        over = _Over()
    except ChunkError as exc:
        over = _Over(failure=exc.failures[0])
    except Exception as exc:
        where = address or os.environ.get("RAY_ADDRESS") or "a cluster of this machine"
        said = " ".join(f"{type(exc).__name__}: {exc}".split())
        over = _Over(reason=f"Ray at {where} cannot be used: {said[:_SAID]}")
    finally:
        # Ray has processes that outlive whoever started them, unless they are told.
        if ray is not None:
            ray.shutdown()
    pipe.send(over)


def _be_quiet() -> None:
    """What Ray prints about every lost worker goes nowhere; its own logs have it, and we say it in one line."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    named = address or os.environ.get("RAY_ADDRESS")
    options = {"address": named} if named else {"address": "local", "num_cpus": workers, "include_dashboard": False}
    ray.init(**options, log_to_driver=False, logging_level="ERROR")


def _ends(ray: Any, turns: Turns, workers: int | None, deadline_s: float) -> Iterator[Ended]:
    remote = ray.remote(num_cpus=1, max_retries=0)(answer)  # we count the attempts
    flying: dict[Any, tuple[Task, float]] = {}
    while turns.waiting or flying:
        # Not more than there are cores, for as long as a task waits for one its time runs.
        room = max(1, int(ray.cluster_resources().get("CPU", 1)))
        room = room if workers is None else min(room, workers)
        while turns.waiting and len(flying) < room:
            task = turns.waiting.popleft()
            flying[remote.remote(task)] = (task, time.monotonic() + deadline_s)
        ready, _ = ray.wait(list(flying), num_returns=1, timeout=_LOOK_S)
        for one in ready:
            task, _ = flying.pop(one)
            ended = _result(ray, one, task)
            if isinstance(ended, str):
                turns.lost(task, ended)
            else:
                yield ended
        now = time.monotonic()
        for one, (task, until) in list(flying.items()):
            if until <= now:
                del flying[one]
                with suppress(ray.exceptions.RayError):
                    ray.cancel(one, force=True)
                turns.lost(task, f"it was not finished within {deadline_s:g} s")


def _result(ray: Any, one: Any, task: Task) -> Ended | str:
    """How a task ended, or how it was lost."""
    try:
        ended: Ended = ray.get(one, timeout=_FETCH_S)
    except ray.exceptions.RayTaskError as exc:
        # `answer` lets nothing out, so the node could not even call it.
        said = " ".join(str(exc.cause if exc.cause is not None else exc).split())
        return Defect(task.index, f"a node cannot run it ({said[:_SAID]}); install assaymark on every node", str(exc))
    except ray.exceptions.RayError as exc:
        return f"its worker or node was lost ({type(exc).__name__})"
    return ended
