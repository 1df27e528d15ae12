"""The event loop of a run: what a signal does to it, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

GRACE_S = 1.0
"""Seconds for an attempt to close its connection after its deadline; then it is left behind."""


def check_no_loop() -> None:
    """Raise `RuntimeError` inside an event loop, where no other can be run."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "run_calls has an event loop of its own; from inside one, await asyncio.to_thread(run_calls, ...)"
    )


@contextmanager
def on_signals(act: Callable[[], None]) -> Iterator[None]:
    """Do ``act`` at the first SIGINT or SIGTERM, after which they act as they did before."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers; whoever runs us elsewhere has the signals
        return
    loop = asyncio.get_running_loop()
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def first(_number: int, _frame: FrameType | None) -> None:
        restore()
        # wakes the loop, which may be waiting. Its own add_signal_handler goes over all signals each time, and whoever
        # asks a few calls a day for a year would wait for that
        loop.call_soon_threadsafe(act)

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()


def on_own_loop(main: Coroutine[Any, Any, None]) -> None:
    """Like `asyncio.run`, but an attempt that does not heed its cancellation is left behind, not waited for."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=GRACE_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
