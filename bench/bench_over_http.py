"""The overhead of the engine per call over HTTP, compared with the OpenAI SDK alone on the same loopback server.

Both sides send the same requests at the same concurrency to a server that is a process of its own and answers at once.
Ours is `run_calls` with a ledger in a file: plan, attempt and reply of each call are on the disk. The bare SDK parses
the reply into its type and keeps nothing. It is measured as it comes, on connections that it uses again, and with one
request a connection, which is how ours sends (see docs/providers.md for why). No model answers at once: behind one
that takes a second, 64 calls under way are 64 calls a second on either side.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest

from assaymark.engine import CallSpec, Ledger, run_calls
from assaymark.engine.providers.openai import OpenAIChatModel
from make_calls import one_judge

openai = pytest.importorskip("openai", reason="openai is not installed (the extra [openai])")

Note = Callable[[str, str, str, str], None]
CALLS, CONCURRENCY, TURNS, SHARE = 1500, 64, 5, 0.8
NAME = "openai-chat/judge"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    program = Path(__file__).with_name("make_replies.py")
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.terminate()


def bare(url: str, calls: list[CallSpec], headers: Mapping[str, str]) -> float:
    """Seconds of the SDK alone."""

    async def work(client: openai.AsyncOpenAI, waiting: Iterator[CallSpec]) -> None:
        for call in waiting:
            messages = [{"role": message.role, "content": message.text} for message in call.messages]
            done = await client.chat.completions.create(
                model="judge", messages=messages, seed=call.seed, max_tokens=2000
            )
            assert done.choices[0].message.content

    async def ask() -> float:
        async with openai.AsyncOpenAI(
            base_url=url, api_key="loopback", max_retries=0, default_headers=headers
        ) as client:
            started, waiting = time.perf_counter(), iter(calls)
            await asyncio.gather(*(work(client, waiting) for _ in range(CONCURRENCY)))
            return time.perf_counter() - started

    return asyncio.run(ask())


def ours(ledger_at: Path, calls: list[CallSpec]) -> float:
    """Seconds of a run."""
    models = {NAME: OpenAIChatModel("judge", environ={})}
    with Ledger.open(ledger_at) as ledger:
        started = time.perf_counter()
        done = run_calls(ledger, calls, models, concurrency=CONCURRENCY)
        seconds = time.perf_counter() - started
    assert done.made == len(calls)
    return seconds


def test_against_the_bare_sdk(url: str, tmp_path: Path, note: Note) -> None:
    calls = one_judge(CALLS, NAME, {"base_url": url, "max_tokens": 2000})
    numbers = count()
    sides: dict[str, Callable[[], float]] = {
        "ours": lambda: ours(tmp_path / f"{next(numbers)}.db", calls),
        "connections used again": lambda: bare(url, calls, {}),
        "a connection a request": lambda: bare(url, calls, {"Connection": "close"}),
    }
    for side in sides.values():
        side()  # imports, and the first client
    # In turns, so that a busy minute of the machine falls on all.
    found = [{name: side() for name, side in sides.items()} for _ in range(TURNS)]
    best = {name: min(turn[name] for turn in found) for name in sides}
    shares = {name: best[name] / best["ours"] for name in sides if name != "ours"}
    for name, share in shares.items():
        measured = f"{share:.0%} ({CALLS / best['ours']:,.0f} against {CALLS / best[name]:,.0f} calls/s)"
        what = f"calls over loopback HTTP, {CONCURRENCY} under way, replies on the disk"
        note(what, f"bare OpenAI SDK, {name}", measured, f">= {SHARE:.0%}")
    assert min(shares.values()) >= SHARE
