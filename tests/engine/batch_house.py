"""A fake batch provider in a folder: it survives its client, bills each call once per batch, and can misbehave."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assaymark.engine import BatchSummary, CallSpec, Ledger, Reply, run_batches
from assaymark.engine.providers.batches import BatchState
from assaymark.errors import ModelError

Verdict = Callable[[str, int], str | None]
"""The outcome of a call at its n-th attempt: None for a reply, ``busy``, ``bad``, ``expired`` or ``nothing``."""


def all_well(key: str, times: int) -> str | None:
    return None


@dataclass
class House:
    """The batches of a folder. ``polls`` is how often a batch is still running when it is looked at.
    ``extra`` results come before those of a batch, ``refuse`` are the states in which the next batches end, the
    connection breaks once after ``cut`` results, and ``submit_errors`` are what the next submissions raise, each with
    whether the batch arrived all the same."""

    folder: Path
    verdict: Verdict = all_well
    polls: int = 1
    most_items: int = 1000
    most_bytes: int = 1_000_000
    keeps_labels: bool = True
    extra: list[tuple[str, Reply | ModelError]] = field(default_factory=list)
    twice: bool = False
    refuse: list[BatchState] = field(default_factory=list)
    cut: int | None = None
    submit_errors: list[tuple[ModelError, bool]] = field(default_factory=list)
    state_errors: list[ModelError] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    closed: int = 0

    def maker(self, like: CallSpec) -> House:
        return self

    def size(self, key: str, call: CallSpec) -> int:
        if "impossible" in call.args:
            raise ModelError("the provider has no such thing", retryable=False)
        return sum(len(text.text) for text in call.texts)

    def submit(self, items: Sequence[tuple[str, CallSpec]], *, label: str) -> str:
        error, arrived = self.submit_errors.pop(0) if self.submit_errors else (None, True)
        remote = self._take(items, label) if arrived else ""
        if error is not None:
            raise error
        return remote

    def find(self, label: str, keys: Set[str], since: float, known: Set[str]) -> str | None:
        for remote in sorted(self.remotes(), reverse=True):
            held = self._batch(remote)
            if self.keeps_labels and held["label"] == label:
                return remote
            if not self.keeps_labels and len(held["keys"]) == len(keys) and remote not in known:
                return remote
        return None

    def state(self, remote: str) -> BatchState:
        if self.state_errors:
            raise self.state_errors.pop(0)
        if remote not in self.remotes():
            return BatchState("gone", reason=f"there is no batch {remote}")
        held = self._batch(remote)
        held["seen"] += 1
        self._write(remote, held)
        if held["seen"] <= self.polls:
            return BatchState("running", done=0)
        return self.refuse.pop(0) if self.refuse else BatchState("ended")

    def results(self, remote: str) -> Iterator[tuple[str, Reply | ModelError]]:
        yield from self.extra
        held = self._batch(remote)
        for n, key in enumerate(reversed(held["keys"])):
            if self.cut == n:
                self.cut = None
                raise ModelError("the connection broke", retryable=True)
            word = self.outcome(key, held["times"][key])
            if word == "nothing":
                continue
            result = (key, reply_to(key) if word is None else failure(word))
            yield from (result, result) if self.twice else (result,)

    def outcome(self, key: str, times: int) -> str | None:
        return self.verdict(key, times)

    def cancel(self, remote: str) -> None:
        self.cancelled.append(remote)

    def close(self) -> None:
        self.closed += 1

    def remotes(self) -> list[str]:
        return [path.stem for path in sorted(self.folder.glob("batch-*.json"))]

    def sizes(self) -> list[int]:
        return [len(self._batch(remote)["keys"]) for remote in self.remotes()]

    def bills(self) -> Counter[str]:
        """The number of received batches that contain each call."""
        return Counter(key for remote in self.remotes() for key in self._batch(remote)["keys"])

    def strangers(self, n: int) -> str:
        """Somebody else's batch of so many calls."""
        return self._write(f"batch-{time.time_ns()}", {"label": "", "keys": ["f" * 63 + str(i) for i in range(n)]})

    def _take(self, items: Sequence[tuple[str, CallSpec]], label: str) -> str:
        keys = [key for key, _ in items]
        before = self.bills()
        times = {key: before[key] + 1 for key in keys}
        return self._write(f"batch-{time.time_ns()}", {"label": label, "keys": keys, "times": times})

    def _batch(self, remote: str) -> dict:
        return json.loads((self.folder / f"{remote}.json").read_text())

    def _write(self, remote: str, held: dict) -> str:
        path = self.folder / f"{remote}.json"
        held = {"seen": 0, "times": dict.fromkeys(held["keys"], 1), **held}
        path.with_suffix(".new").write_text(json.dumps(held))
        path.with_suffix(".new").rename(path)
        return remote


def run_at(ledger: Ledger, house: House, asked: Sequence[CallSpec], **more: Any) -> BatchSummary:
    """Send calls in batches to a house, without a pause."""
    return run_batches(ledger, asked, {"house": house.maker}, **{"poll_s": 0.001, "settle_s": 0.0} | more)


def reply_to(key: str) -> Reply:
    return Reply(text=f"reply to {key}", model="house-1", input_tokens=100, output_tokens=10, raw="{}")


def failure(word: str) -> ModelError:
    return ModelError(f"house: {word}", retryable=word != "bad")
