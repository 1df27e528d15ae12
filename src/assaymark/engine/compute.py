"""Work on more than one core or machine: pure functions, with the same results as calling them here.

`beside` runs one call in another process. `map_chunks` runs a function on many chunks, here, in processes, or on Ray.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final, Literal, TypeVar, cast, get_args

from assaymark.engine.chunks import (
    Chunk,
    ChunkError,
    Defect,
    Done,
    Ended,
    Failure,
    Function,
    Task,
    answer,
    chunk_key,
    target_of,
)
from assaymark.engine.compute_processes import in_processes, start, stop, watch_parent
from assaymark.engine.ledger import Ledger
from assaymark.errors import UnknownNameError

T = TypeVar("T")

How = Literal["serial", "processes", "ray"]
"""Where chunks are run."""

HOWS: Final[tuple[str, ...]] = get_args(How)
DEADLINE_S: Final = 3600.0
"""How long one attempt at a chunk may take, unless told otherwise."""

ATTEMPTS: Final = 3
"""How often a chunk is handed to somebody who dies or hangs, unless told otherwise."""

_STALL_S: Final = 60.0


def map_chunks(
    function: Function,
    chunks: Sequence[Chunk],
    *,
    version: str,
    how: How = "serial",
    workers: int | None = None,
    deadline_s: float = DEADLINE_S,
    stall_s: float | None = None,
    attempts: int = ATTEMPTS,
    ledger: Ledger | None = None,
    address: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    what: str = "chunks",
) -> list[bytes]:
    """``function`` of each chunk, in the order given, whoever computes it.

    The function is pure and importable by its name. It is called with the fields of a chunk's ``what`` and ``how`` as
    one mapping of plain JSON values, and returns bytes. A chunk whose process or node dies or hangs is run again
    elsewhere, up to ``attempts`` times, so that half a second of work or more in each chunk is well spent. Whatever
    happens, this returns or raises, and leaves no process behind.

    Parameters
    ----------
    function : callable
        From the arguments of a chunk to bytes.
    chunks : sequence of Chunk
        What to run it on.
    version : str
        Of what the function computes; results of another version are not used again.
    how : {'serial', 'processes', 'ray'}
        In this process, in ``workers`` processes of this machine, or on a Ray cluster (extra ``ray``).
    workers : int, optional
        Chunks under way at once. Default: as many as there are cores, here or in the cluster.
    deadline_s : float
        Seconds that one attempt may take. What runs in this process cannot be cut off, and has no deadline.
    stall_s : float, optional
        For ``ray``: seconds without any chunk that ends, the start of the cluster included, after which all is given
        up. Default: ``deadline_s`` and a minute.
    attempts : int
        How often a chunk may be handed to somebody who is then lost.
    ledger : Ledger, optional
        Where each result is written down as soon as it is there. What is there already is not computed.
    address : str, optional
        For ``ray``: the cluster's address. Default: that in RAY_ADDRESS, or else a cluster of this machine's own.
    progress : callable, optional
        Told ``what`` is done, how many chunks of it, and of how many.

    Raises
    ------
    ChunkError
        Chunks that the function refuses with an error of ours, all of them at once; or the first chunk that fails in
        another way, or was lost too often.
    UnknownNameError
        There is no such way to compute.
    ValueError
        A function without a name to import it by, or a number that is out of range.
    """
    _require(how, workers, deadline_s, stall_s, attempts)
    target = target_of(function)
    keys = [chunk_key(target, version, chunk) for chunk in chunks]
    held = {} if ledger is None else ledger.chunks.held(keys)
    found = {index: held[key] for index, key in enumerate(keys) if key in held}
    tasks = [
        Task(index, chunk.name, target, {**chunk.what, **chunk.how})
        for index, chunk in enumerate(chunks)
        if index not in found
    ]
    refused: dict[int, Failure] = {}
    tell = progress or (lambda _what, _done, _total: None)
    tell(what, len(found), len(chunks))
    with closing(_run(tasks, how, workers, deadline_s, stall_s, attempts, address)) as ends:
        for end in ends:
            if isinstance(end, Done):
                if ledger is not None:
                    ledger.chunks.put(keys[end.index], target, end.data)
                found[end.index] = end.data
            elif isinstance(end, Defect):
                raise _defect(chunks[end.index].name, end)
            else:
                refused[end.index] = Failure(chunks[end.index].name, end.problems)
            tell(what, len(found) + len(refused), len(chunks))
    if refused:
        raise ChunkError([refused[index] for index in sorted(refused)], found, of_data=True)
    return [found[index] for index in range(len(chunks))]


def _run(
    tasks: Sequence[Task],
    how: How,
    workers: int | None,
    deadline_s: float,
    stall_s: float | None,
    attempts: int,
    address: str | None,
) -> Generator[Ended, None, None]:
    if how == "serial":
        yield from map(answer, tasks)
    elif how == "processes":
        most = min(workers or usable_cores(), len(tasks))
        yield from in_processes(tasks, workers=most, deadline_s=deadline_s, attempts=attempts)
    elif tasks:
        from assaymark.engine.compute_ray import on_ray

        stall = deadline_s + _STALL_S if stall_s is None else stall_s
        yield from on_ray(
            tasks, workers=workers, deadline_s=deadline_s, stall_s=stall, attempts=attempts, address=address
        )


def way(name: str) -> How:
    """The way to compute with this name.

    Raises
    ------
    UnknownNameError
        There is none.
    """
    if name not in HOWS:
        raise UnknownNameError("way to compute", name, HOWS)
    return cast(How, name)


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _require(how: str, workers: int | None, deadline_s: float, stall_s: float | None, attempts: int) -> None:
    way(how)
    for name, value, least in (("workers", workers, 1), ("attempts", attempts, 1)):
        if value is not None and value < least:
            raise ValueError(f"{name} must be {least} or more (got {value})")
    for name, seconds in (("deadline_s", deadline_s), ("stall_s", stall_s)):
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"{name} must be finite and above 0 (got {seconds})")


def _defect(name: str, end: Defect) -> ChunkError:
    error = ChunkError([Failure(name, (end.what,))])
    error.add_note(end.trace)
    return error


@contextmanager
def beside(function: Callable[..., T], *args: Any, processes: bool = True) -> Iterator[Callable[[], T]]:
    """Start ``function(*args)`` in a process of its own, and hand out a callable that waits for its result.

    The function and its arguments must be importable and picklable, and the function pure: if the process dies, it
    is called again here. The result is asked for once. Leaving the block without it ends the process.

    Parameters
    ----------
    processes : bool
        False: nothing is started, and the function is called here when its result is asked for.

    Examples
    --------
    >>> with beside(sum, [1, 2, 3], processes=False) as result:
    ...     result()
    6
    """
    if not processes:
        yield lambda: function(*args)
        return
    # Not forked: the ledger's writer and the progress display are threads, and a fork in their midst can hang.
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer_beside, args=(theirs, function, args), daemon=True)
    start(process)
    theirs.close()  # or its end would not be seen when the process dies
    try:
        yield lambda: _result(ours, function, *args)
    finally:
        stop(process)
        ours.close()


def _answer_beside(pipe: Connection, function: Callable[..., object], args: tuple[object, ...]) -> None:
    """Call the function, and hand over its result or its error."""
    watch_parent()
    try:
        pipe.send((True, function(*args)))
    except Exception as exc:
        pipe.send((False, exc))


def _result(pipe: Connection, function: Callable[..., T], *args: Any) -> T:
    try:
        good, found = pipe.recv()
    except (EOFError, OSError):
        return function(*args)
    if good:
        return cast(T, found)
    raise found
