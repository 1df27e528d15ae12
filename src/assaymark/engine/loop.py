"""The event loop of a run: where it runs, what a signal does to it, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_S = 1.0
"""Seconds for an attempt to close its connection after its deadline; then it is left behind."""


def outside(work: Callable[[], T], give_up: Callable[[], object] = lambda: None) -> T:
    """Do work where no event loop is running: here, or in a thread of its own where this one has a loop.

    A notebook has one. This thread waits meanwhile, and still has the signals; when one ends the waiting, ``give_up``
    tells the work to end too.

    >>> async def cell():
    ...     return outside(lambda: asyncio.run(asyncio.sleep(0, "done")))
    >>> asyncio.run(cell())
    'done'
    """
    if not _in_a_loop():
        return work()
    with ThreadPoolExecutor(1, "outside the event loop") as thread:
        working = thread.submit(work)
        try:
            return working.result()
        finally:
            if not working.done():
                give_up()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def on_signals(act: Callable[[], object]) -> Iterator[None]:
    """Do ``act`` at the first SIGINT or SIGTERM, after which they act as they did before."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers; whoever runs us elsewhere has the signals
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def first(_number: int, _frame: FrameType | None) -> None:
        restore()
        act()

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()


def on_own_loop(main: Coroutine[Any, Any, None], interrupt: Callable[[], object]) -> None:
    """Like `asyncio.run`, but an attempt that does not heed its cancellation is left behind, not waited for.

    The first SIGINT or SIGTERM does ``interrupt`` in the loop. It can be called inside of another loop.
    """
    loop = asyncio.new_event_loop()
    # wakes the loop, which may be waiting. Its own add_signal_handler goes over all signals each time, and whoever
    # asks a few calls a day for a year would wait for that
    in_loop = loop.call_soon_threadsafe
    try:
        with on_signals(partial(in_loop, interrupt)):
            outside(partial(loop.run_until_complete, main), partial(in_loop, loop.stop))
    finally:
        outside(partial(_end, loop))


def _end(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=GRACE_S))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
