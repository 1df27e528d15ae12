"""A provider that fails in every way at once, or a full disk: nothing is lost, waits are kept, attempts end, and the
fault is named in one line."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine_calls import calls
from made_records import OWN
from provider_cases import completion
from provider_server import answer, free_url, hang, hang_up, page, serving

from assaymark.cli import main
from assaymark.engine import CircuitBreakerPolicy, Ledger, Reply, run_calls
from assaymark.engine.providers.openai import OpenAIChatModel
from assaymark.errors import LedgerError

NAME = "openai-chat/storm"
DEADLINE_S = 2.0  # what comes later than that would be paid twice: longer than a busy machine stands still
REPEATED = {"attempts": 40, "backoff_s": 0.01, "deadline_s": DEADLINE_S}


class Storm:
    """Fails each call a few times in its own way, seeded by its key, then answers; notes who came when."""

    def __init__(self, busy: int) -> None:
        self.seen: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.times: list[float] = []
        self.busy, self.until = busy, 0.0
        self.early = 0

    def failures(self, key: str):
        ways = [answer({"error": {"message": "failed"}}, status) for status in (408, 500, 502, 503, 529)]
        ways += [answer('{"choices": [', 200), page(503), hang_up]
        rng = random.Random(key)
        slow = [hang] if rng.random() < 0.03 else []
        return [*rng.sample(ways, rng.randrange(3)), *slow]

    def __call__(self, handler, server) -> None:
        key = handler.headers["X-Client-Request-Id"]
        with server.lock:
            now = time.monotonic()
            self.early += now < self.until
            if self.busy and not now < self.until:
                self.busy -= 1
                self.until, step = now + 1.0, answer({"error": {"message": "slow down"}}, 429, {"Retry-After": "1"})
            elif now < self.until:  # under way when the others were turned away
                step = answer({"error": {"message": "slow down"}}, 429, {"Retry-After": "1"})
            else:
                ways, turn = self.failures(key), self.seen[key]
                self.seen[key] += 1
                step = ways[turn] if turn < len(ways) else None
                self.answered[key] += step is None
        (step or answer(completion(json.dumps({"key": key}))))(handler, server)


def model_at(url: str) -> OpenAIChatModel:
    return OpenAIChatModel("storm", environ={"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "sk-none-of-yours"})


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


def test_in_a_storm_nothing_is_lost_and_waits_are_kept(ledger, long, note):
    asked, concurrency, busy = calls(2000 if long else 60, model=NAME), 8, 5 if long else 1
    keys = [call.key for call in asked]
    storm = Storm(busy)
    with serving(storm) as server:
        model = {NAME: model_at(server.url)}
        summary = run_calls(
            ledger, asked, model, concurrency=concurrency, patience=CircuitBreakerPolicy(10_000, 0.1), **REPEATED
        )
    assert (summary.made, summary.failed, summary.left, summary.stopped) == (len(keys), (), 0, ())
    assert storm.answered == dict.fromkeys(keys, 1)
    assert {key: json.loads(reply.text) for key, reply in ledger.replies(keys)} == {key: {"key": key} for key in keys}
    assert summary.deferred >= busy
    # Whoever was sent before the first was turned away arrives early; nobody else does.
    assert storm.early <= (concurrency - 1) * busy
    attempts = ledger.attempt_counts(keys)
    assert sum(attempts.values()) == len(keys) + summary.retried
    note(
        "429, 5xx, hangs, broken bodies and connections",
        f"{len(keys):,} calls, {summary.retried:,} failed attempts, {busy} times Retry-After",
        f"every call answered and paid once; at most {concurrency - 1} requests during a wait, those under way",
    )


def test_a_provider_that_hangs_costs_no_more_than_the_deadline(ledger):
    asked = calls(4, model=NAME)
    with serving(hang) as server:
        started = time.monotonic()
        summary = run_calls(ledger, asked, {NAME: model_at(server.url)}, attempts=1, deadline_s=0.2)
        assert time.monotonic() - started < 8.0  # a hanging request would take ten seconds
    assert len(summary.failed) == 4
    assert all("0.2 s" in failure.reason for failure in summary.failed)


def test_an_outage_is_named_stops_the_asking_and_costs_nothing(ledger, long, note):
    n = 200 if long else 60
    asked = calls(n, model=NAME)
    quick = {"attempts": 3, "backoff_s": 0.001, "deadline_s": 5.0, "concurrency": 4}
    summary = run_calls(ledger, asked, {NAME: model_at(free_url())}, patience=CircuitBreakerPolicy(8, 0.05), **quick)
    (line,) = summary.stopped
    assert line.startswith("openai-chat")
    assert (summary.made, summary.left > n - 30) == (0, True)
    sent = sum(ledger.attempt_counts(call.key for call in asked).values())
    assert sent < 30
    with serving(Storm(0)) as server:
        again = run_calls(ledger, asked, {NAME: model_at(server.url)}, concurrency=8, **REPEATED)
    assert (again.made, again.left) == (n, 0)
    note(
        "outage", f"a provider that nobody can reach, {n} calls",
        f"asked {sent} times and then no more; one line names it and why",
    )  # fmt: skip


# --- a disk with no room ----------------------------------------------------------------------------------------------


ECHO = "reference/echo"


class Mounted:
    """A file system of 8 MB."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def full(self):
        yield

    def make_room(self) -> None:
        subprocess.run(["mount", "-o", "remount,size=256m", str(self.folder)], check=True)


class Limited(Mounted):
    """A full disk where nothing can be mounted: no file of this process may grow beyond 3 MB."""

    @contextmanager
    def full(self):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    def make_room(self) -> None:
        """The limit is gone already."""


@pytest.fixture
def small(tmp_path):
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        yield Limited(tmp_path)
        return
    yield Mounted(tmp_path)
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


class Wordy:
    """Replies that nothing packs any smaller."""

    async def complete(self, call):
        rng = random.Random(call.key)
        return Reply(text=f"reply to {call.key}", model="wordy-1", raw=f'"{rng.randbytes(20_000).hex()}"')


def test_a_run_stops_plainly_keeps_what_it_acknowledged_and_goes_on(small, note):
    asked, told = calls(600), [(0, 0)]
    keys = [call.key for call in asked]
    with small.full(), Ledger.open(small.folder / "ledger.db") as ledger, \
            pytest.raises(LedgerError, match=r"the disk is full|disk I/O error|File too large"):  # fmt: skip
        run_calls(ledger, asked, {ECHO: Wordy()}, concurrency=8, progress=lambda *now: told.append(now))
    acknowledged = told[-1][0]
    small.make_room()
    with Ledger.open(small.folder / "ledger.db") as ledger:
        kept = dict(ledger.replies(keys))
        assert 0 < acknowledged <= len(kept) < len(keys)
        summary = run_calls(ledger, asked, {ECHO: Wordy()}, concurrency=8)
        assert (summary.already, summary.made) == (len(kept), len(keys) - len(kept))
        assert {reply.text for _, reply in ledger.replies(keys)} == {f"reply to {key}" for key in keys}
        assert ledger.verify() > 3 * len(keys)
    note(
        "disk full",
        f"a run of {len(keys)} calls on a disk of 8 MB",
        f"stopped with one error after {acknowledged} acknowledged replies; {len(kept)} recovered; "
        f"went on to {len(keys)}",
    )


def test_the_command_says_so_in_one_line_and_goes_on(small, capsys):
    """The demo's plan needs more than is left."""
    if isinstance(small, Limited):
        pytest.skip("needs a file system of its own: tmpfs cannot be mounted here")
    run, ballast = ["run", str(OWN), "--out", str(small.folder / "run")], small.folder / "ballast"
    ballast.write_bytes(b"x" * 7_000_000)
    assert main(run) == 1
    err = capsys.readouterr().err
    (line,) = (line for line in err.splitlines() if line.startswith("assaymark: "))
    assert re.search("No space left|disk is full", line)
    assert "Traceback" not in err
    ballast.unlink()
    small.make_room()
    assert main(run) == 0
