"""Overspend of a budget under load: calls of 0.008 USD with a bound forty times that, on loopback; some of them hang.

The server bills every request it receives, those included whose answer never arrives.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from assaymark.engine import CallSpec, Ledger, Message, SpendLimit, Text, prices_of_text, run_calls
from assaymark.engine.providers.openai import OpenAIChatModel

pytest.importorskip("openai", reason="openai is not installed (the extra [openai])")

Note = Callable[[str, str, str, str], None]
RUNS, CONCURRENCY, BUDGET, LEAST = 20, 32, 1.0, 24
NAME = "openai-chat/judge"
PRICE = {"pattern": NAME, "input": 0.8, "output": 5.0, "as_of": "2026-01-01", "source": "bench"}
PRICES = prices_of_text(json.dumps({"source": "bench", "entries": [PRICE]}))


class Billing(ThreadingHTTPServer):
    """Server that answers after a delay, or hangs; counts billed calls and concurrent requests."""

    daemon_threads, block_on_close, request_queue_size = True, False, 128

    def __init__(self, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.rng, self.guard, self.over = random.Random(seed), threading.Lock(), threading.Event()
        self.billed, self.now, self.most = 0.0, 0, 0


class Answering(BaseHTTPRequestHandler):
    """One request of Chat Completions."""

    server: Billing

    def do_POST(self) -> None:
        """Bill it, then answer or hang."""
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.guard:
            taken, hangs, wait = self.server.rng.randint(250, 390), self.server.rng.random() < 0.05, 0.05
            self.server.billed += PRICES.cost_of(NAME, 8000, taken) or 0.0
            self.server.now += 1
            self.server.most = max(self.server.most, self.server.now)
        if hangs:
            self.server.over.wait(20)
        else:
            time.sleep(wait)
        with self.server.guard:
            self.server.now -= 1
        said = {"role": "assistant", "content": "{}"}
        usage = {"prompt_tokens": 8000, "completion_tokens": taken, "total_tokens": 8000 + taken}
        body: dict[str, Any] = {"id": "1", "object": "chat.completion", "created": 1, "model": "judge", "usage": usage}
        raw = json.dumps(body | {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def billing(seed: int) -> Iterator[Billing]:
    """A provider that answers until the block ends."""
    with Billing(seed) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


def calls(url: str) -> list[CallSpec]:
    """Prompts of 35 kB, each another one."""
    args = {"base_url": url, "max_tokens": 64_000}
    shown = [Text.of(f"record {i}: " + "close 101.25, volume 3,120,400; " * 1090) for i in range(140)]
    return [CallSpec(model=NAME, messages=(Message("user", (one,)),), template="", args=args) for one in shown]


def test_a_budget_is_kept_and_lets_calls_run_together(tmp_path: Path, note: Note) -> None:
    billed, most = [], []
    for seed in range(RUNS):
        with billing(seed) as server, Ledger.open(tmp_path / f"{seed}.db") as ledger:
            budget = SpendLimit(BUDGET, PRICES)
            asked = calls(f"http://127.0.0.1:{server.server_address[1]}/v1")
            models = {NAME: OpenAIChatModel("judge", environ={})}
            manner = {"concurrency": CONCURRENCY, "deadline_s": 1.5, "attempts": 2, "backoff_s": 0.0}
            run_calls(ledger, asked[:1], models, budget=budget, **{**manner, "attempts": 4})  # as before every lock
            run_calls(ledger, asked, models, budget=budget, **manner)
            billed.append(server.billed)
            most.append(server.most)
    what = f"a budget of {BUDGET:.0f} USD, calls of 0.008 USD held at 0.35 at first, {CONCURRENCY} at once, {RUNS} runs"
    note(what, "calls under way at once, least of all runs", str(min(most)), f">= {LEAST}")
    note(what, "billed by the provider, most of all runs", f"{max(billed):.2f} USD", f"<= {BUDGET:.2f} USD")
    assert min(most) >= LEAST
    assert max(billed) <= BUDGET
