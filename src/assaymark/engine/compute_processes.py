"""Chunks in processes of this machine: one that dies or hangs is replaced, and none is left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Final

from assaymark.engine.chunks import Ended, Task, Turns, answer

_START_S: Final = 60.0
_STOP_S: Final = 5.0


def in_processes(tasks: Sequence[Task], *, workers: int, deadline_s: float, attempts: int) -> Iterator[Ended]:
    """Run tasks in so many processes and hand out how each ended, in the order in which they end.

    Closing the iterator early kills what is under way.

    Raises
    ------
    ChunkError
        A task was lost ``attempts`` times: its process died, or did not answer within ``deadline_s``.
    """
    turns = Turns(tasks, attempts)
    hands: list[_Hand] = []
    try:
        while turns.waiting or any(hand.task for hand in hands):
            free = [hand for hand in hands if hand.task is None]
            while turns.waiting and (free or len(hands) < workers):
                if not free:
                    hands.append(_Hand(deadline_s))
                    free.append(hands[-1])
                free.pop().give(turns.waiting.popleft())
            for hand, task, ended in _ready(hands):
                hand.task = None
                if isinstance(ended, str):
                    hands.remove(hand)
                    hand.end()
                    turns.lost(task, ended)
                else:
                    yield ended
    finally:
        for hand in hands:
            hand.end()


class _Hand:
    """One process, and the task that it has."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.start_s = _START_S  # until it listens
        # Not forked: the ledger's writer and the progress display are threads, and a fork in their midst can hang.
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        start(self.process)
        theirs.close()  # or its end would not be seen when the process dies
        self.task: Task | None = None
        self.until = 0.0

    def give(self, task: Task) -> None:
        self.task, self.until = task, time.monotonic() + self.deadline_s + self.start_s
        with suppress(OSError):  # it died in the meantime, which reading from it will tell
            self.pipe.send(task)

    def take(self) -> Ended | str | None:
        """How its task ended, or how the process did; None when it begins to listen."""
        try:
            ended: Ended | None = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_STOP_S)
            return f"its process died ({_how(self.process.exitcode)})"
        return ended

    def end(self) -> None:
        self.pipe.close()
        stop(self.process)


def start(process: BaseProcess) -> None:
    """Start a process that never hears Ctrl-C, which reaches every process of a terminal: not even while it is loaded.

    Whoever starts it hears it a moment later.
    """
    resource_tracker.ensure_running()  # it opens the signals when it is started, so it is there before they are held
    with _later(signal.SIGINT):
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)


@contextmanager
def _later(which: signal.Signals) -> Iterator[None]:
    """Have a signal do what it does after the block, which another thread may hear for this one.

    A process that was started by half would say on the terminal that the other half is missing.
    """
    before = signal.getsignal(which)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    heard: list[tuple[int, FrameType | None]] = []
    signal.signal(which, lambda number, frame: heard.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(which, before)
        if heard:
            before(*heard[0])


def stop(process: BaseProcess) -> None:
    """Kill a process unless it is over, and take note of its end."""
    if process.is_alive():
        process.kill()
    process.join(_STOP_S)


def watch_parent(by: signal.Signals = signal.SIGKILL, patience_s: float = 0.0) -> None:
    """End this process when the one that started it is gone, and leave Ctrl-C to that one: it ends this one in order.

    It is ended by the signal ``by``, and after ``patience_s`` in any case.
    """
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


def _ready(hands: Sequence[_Hand]) -> list[tuple[_Hand, Task, Ended | str]]:
    """Wait until some process has answered, died, or used up its time. A string says why there is no answer."""
    busy = [(hand, hand.task) for hand in hands if hand.task is not None]
    left = min(hand.until for hand, _ in busy) - time.monotonic()
    ready = connection.wait([hand.pipe for hand, _ in busy], max(0.0, left))
    now = time.monotonic()
    found: list[tuple[_Hand, Task, Ended | str]] = []
    for hand, task in busy:
        if hand.pipe in ready:
            ended = hand.take()
            if ended is not None:
                found.append((hand, task, ended))
            else:
                hand.start_s, hand.until = 0.0, now + hand.deadline_s
        elif hand.until <= now:
            found.append((hand, task, f"it was not finished within {hand.deadline_s:g} s"))
    return found


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit status {code}"


def _serve(pipe: Connection) -> None:
    """Answer tasks until there are no more."""
    watch_parent()
    pipe.send(None)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(answer(task))
