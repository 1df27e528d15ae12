"""Scripted models and small prompts for the tests of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from assaymark.engine import CallSpec, End, Message, Reply, Text

NAME = "reference/echo"
QUICK = {"backoff_s": 0.001, "deadline_s": 5.0}
"""Options of a run that nothing holds up."""

RUBRIC = Text.of("Score the reasoning from 1 to 5.")
TEMPLATE = Text.of("template").sha256


def call(n: int = 0, *, model: str = NAME, trial: int = 1) -> CallSpec:
    """The n-th of a family of calls that share a rubric."""
    return CallSpec(
        model=model, messages=(Message("system", (RUBRIC,)), Message("user", (Text.of(f"I buy fund {n}."),))),
        template=TEMPLATE, trial=trial,
    )  # fmt: skip


def calls(n: int, *, model: str = NAME) -> list[CallSpec]:
    return [call(i, model=model) for i in range(n)]


class Scripted:
    """Does what a function of the call says; counts who was asked how often, and how many at once."""

    def __init__(self, answer: Callable[[CallSpec], str | Exception], *, wait: float = 0.0) -> None:
        self.answer, self.wait = answer, wait
        self.asked: list[str] = []
        self.now = self.most = 0

    async def complete(self, call: CallSpec) -> Reply:
        self.asked.append(call.key)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.wait)
        finally:
            self.now -= 1
        answer = self.answer(call)
        if isinstance(answer, Exception):
            raise answer
        return Reply(text=answer, model="echo-1", fingerprint="fp")


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its clock stands still while anybody is at work, and jumps over every wait: what happens when depends on nothing
    but the waits. ``held`` says whether something outside of it is still to happen."""

    def __init__(self, now: float = 0.0, held: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self.now, self.working, self.held = now, 0, held
        self._really, self._selector.select = self._selector.select, self._jump

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor, func, *args):
        def done(_future):
            self.working -= 1

        self.working += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(done)
        return future

    def _jump(self, timeout=None):
        if timeout is None or (timeout > 0 and self.working):
            return self._really(None)
        found = self._really(0.005 if timeout > 0 and self.held() else 0)
        if not found and not self.held():
            self.now += max(0.0, timeout)
        return found


def echo() -> Scripted:
    """Repeats the last message."""
    return Scripted(lambda call: call.messages[-1].text)


def in_a_loop(work):
    """Return the result of ``work`` called while an event loop is running, as in the cell of a notebook."""

    async def cell():
        return work()

    loop = asyncio.new_event_loop()  # `asyncio.run` would take the signals
    try:
        return loop.run_until_complete(cell())
    finally:
        loop.close()


def together(*works):
    """Do all of these at the same time; what each returned."""
    with ThreadPoolExecutor(len(works)) as threads:
        return [done.result() for done in [threads.submit(work) for work in works]]


def begin(ledger, keys):
    """Begin an attempt at each of these calls."""
    return ledger.commit([(key, None) for key in keys])[0]


def answer(ledger, specs, text="fine", **facts):
    """Plan, begin and finish these calls."""
    ledger.plan(specs)
    reply = Reply(text=text, model="m-1", **facts)
    ledger.commit(ends=[End(one, "replied", reply=reply) for one in begin(ledger, [spec.key for spec in specs])])
    return reply
