"""Blocking work in a thread that can be left behind: whoever waits for it is released the moment it is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def apart(work: Callable[[], T], *, leave: Callable[[], None] | None = None) -> T:
    """The result of ``work()``, done in a thread of its own while the event loop goes on.

    Parameters
    ----------
    work : callable
        What blocks. What it raises is raised here.
    leave : callable, optional
        Called when the waiting is cancelled, to make the work end early. The thread is not waited for, not even when
        the program ends: an executor would do that, and a hung agent would hang the program.

    Examples
    --------
    >>> asyncio.run(apart(lambda: 6 * 7))
    42
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: object) -> None:
        if not done.done():
            set_it(value)

    def run() -> None:
        try:
            result: tuple[Callable[[Any], None], object] = (done.set_result, work())
        except BaseException as exc:  # it belongs to whoever waits, not to the thread
            result = (done.set_exception, exc)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, *result)

    threading.Thread(target=run, name="external agent", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        if leave is not None:
            leave()
        raise
