"""Work beside the main process: one pure function on another core, with the same result as calling it here."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def beside(function: Callable[..., T], *args: Any, processes: bool = True) -> Iterator[Callable[[], T]]:
    """Start ``function(*args)`` in a process of its own, and hand out a callable that waits for its result.

    The function and its arguments must be importable and picklable, and the function pure: if the process dies, it
    is called again here. Leaving the block early does not wait for it.

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
    pool = ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"), initializer=_leave_signals)
    try:
        future = pool.submit(function, *args)
        yield lambda: _result(future, function, *args)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _result(future: Future[T], function: Callable[..., T], *args: Any) -> T:
    try:
        return future.result()
    except BrokenProcessPool:
        return function(*args)


def _leave_signals() -> None:
    """Ctrl-C reaches every process of a terminal; only the main one acts on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
