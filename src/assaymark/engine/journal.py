"""One writer for many workers: what they report while one commit is on its way shares the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from assaymark.engine.rows import Attempt, Committed, End
from assaymark.engine.work import Due, Work


class Journal:
    """Collects beginnings and ends of attempts and commits them in groups, off the event loop.

    An end handed over before a beginning is committed no later than it. So a worker that hands over the end of one
    call and waits for the beginning of its next has never more than one call that was sent and is not written down.
    """

    def __init__(self, work: Work, thread: Executor, committed: Callable[[Committed, list[End]], None]) -> None:
        self._work = work
        self._thread = thread
        self._committed = committed
        self._begins: list[tuple[Due, asyncio.Future[Attempt | None]]] = []
        self._ends: list[End] = []
        self._afterwards: list[Callable[[], None]] = []
        self._news = asyncio.Event()
        self._closing = False

    async def begin(self, due: Due) -> Attempt | None:
        """Wait until it is on the disk that this call is about to be sent; None: another worker has it now."""
        begun: asyncio.Future[Attempt | None] = asyncio.get_running_loop().create_future()
        self._begins.append((due, begun))
        self._news.set()
        return await begun

    def end(self, end: End, afterwards: Callable[[], None] | None = None) -> None:
        """Hand over how an attempt ended; it is on the disk before the next `begin` of the caller returns.

        ``afterwards`` is called when it is.
        """
        self._ends.append(end)
        if afterwards is not None:
            self._afterwards.append(afterwards)
        self._news.set()

    def close(self) -> None:
        """Let `run` return once everything handed over is committed."""
        self._closing = True
        self._news.set()

    async def run(self) -> None:
        """Commit group after group until closed. Raises `LedgerError` when a group cannot be committed."""
        while self._begins or self._ends or not self._closing:
            await self._news.wait()
            self._news.clear()
            if self._begins or self._ends:
                await self._commit()

    async def _commit(self) -> None:
        begins, self._begins = self._begins, []
        ends, self._ends = self._ends, []
        afterwards, self._afterwards = self._afterwards, []
        dues = [due for due, _ in begins]
        loop = asyncio.get_running_loop()
        committed = await loop.run_in_executor(self._thread, self._work.commit, dues, ends)
        for (_, begun), attempt in zip(begins, committed.begun, strict=True):
            if not begun.cancelled():
                begun.set_result(attempt)
        self._committed(committed, ends)
        for act in afterwards:
            act()
