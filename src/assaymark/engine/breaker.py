"""When to stop asking a provider: a breaker that opens on a row of failures, or at once where no call can succeed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from assaymark.engine.calls import CallSpec
from assaymark.errors import ModelError

KEPT = "stopped asking it; every reply so far is kept, run the same command to go on"
_WITH_ADDRESS = ("http", "https")
_LONGEST_WAIT_S = 300.0
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:_\[\]-]+(/[A-Za-z0-9._~/-]*)?")


def provider_of(model: str) -> str:
    """Who answers for a model: what comes before the first slash; of external agents, which of them it is.

    >>> provider_of("openai/gpt-5"), provider_of("http/127.0.0.1:8700/decide"), provider_of("python/mine:agent")
    ('openai', 'http/127.0.0.1:8700', 'python/mine:agent')
    """
    provider, _, rest = model.partition("/")
    if provider in _WITH_ADDRESS:
        return f"{provider}/{rest.partition('/')[0]}"
    return model if provider == "python" else provider


class Door(NamedTuple):
    """Where calls go and with which key: what fails behind one door says nothing about another of the same provider."""

    provider: str
    address: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        if self.address is None:
            return self.provider
        # An address that is none may hold a secret.
        return f"{self.provider} at {self.address if _ADDRESS.fullmatch(self.address) else 'another address'}"


def door_of(call: CallSpec) -> Door:
    """The door of a call: its provider, with the ``base_url`` and ``api_key_env`` that its arguments name.

    >>> str(door_of(CallSpec(model="openai-chat/m", messages=(), template="", args={"base_url": "http://gpu-1/v1"})))
    'openai-chat at http://gpu-1/v1'
    """
    address, key = call.args.get("base_url"), call.args.get("api_key_env")
    return Door(provider_of(call.model), None if address is None else str(address), None if key is None else str(key))


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run bears with a provider that fails.

    After ``failures`` failed attempts in a row that another attempt might have helped, over all of its calls, nothing
    is sent for ``cool_down_s`` seconds. Then one attempt is made: if it fails too, the provider is not asked again.

    Raises
    ------
    ValueError
        ``failures`` is below 1, or ``cool_down_s`` below 0.
    """

    failures: int = 20
    cool_down_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.failures >= 1:
            raise ValueError(f"failures must be at least 1 (got {self.failures})")
        if not self.cool_down_s >= 0:
            raise ValueError(f"cool_down_s must be at least 0 (got {self.cool_down_s})")


class Breaker:
    """What a run knows about the health of one provider. Times are seconds of one monotonic clock, handed in.

    >>> breaker = Breaker("openai", Patience(failures=1, cool_down_s=60))
    >>> breaker.wait_s(0.0), breaker.take(0.0)
    (0.0, False)
    >>> breaker.failed(ModelError("busy (503)", retryable=True), trial=False, now=1.0)
    >>> breaker.wait_s(11.0), breaker.take(61.0), breaker.take(61.0)
    (50.0, True, None)
    >>> breaker.failed(ModelError("busy (503)", retryable=True), trial=True, now=62.0)
    >>> breaker.stopped
    'openai: 2 calls in a row failed (last: busy (503)); stopped asking it; every reply so far is kept, run the same \
command to go on'
    """

    def __init__(self, provider: str, patience: Patience) -> None:
        self.stopped: str | None = None
        """Why this provider is not asked any more, in one line; None while it is."""
        self._provider, self._patience = provider, patience
        self._failures = 0
        self._open_until: float | None = None
        self._trial = False
        self._hold_until = -math.inf

    def wait_s(self, now: float) -> float:
        """Seconds until it is worth asking `take` again; 0: now; infinite: when something has changed."""
        if self.stopped is not None or self._trial:
            return math.inf
        until = self._hold_until if self._open_until is None else max(self._hold_until, self._open_until)
        return max(0.0, until - now)

    def take(self, now: float) -> bool | None:
        """Leave to send one attempt: None is no leave, and True says that it is the one that is tried out."""
        if self.wait_s(now) > 0:
            return None
        self._trial = self._open_until is not None
        return self._trial

    def give_back(self, *, trial: bool) -> None:
        """The attempt was not sent after all."""
        self._trial = self._trial and not trial

    def answered(self) -> None:
        """An attempt brought a reply, or a refusal that is no sign of bad health."""
        self._failures, self._open_until, self._trial = 0, None, False

    def failed(self, error: ModelError, *, trial: bool, now: float) -> None:
        """An attempt failed. ``trial`` is what `take` said of it."""
        self.give_back(trial=trial)
        if error.quota:
            self._stop(self._named(str(error)))
        elif not error.retryable:
            self.answered()
        elif error.retry_after is not None:  # it is there and says when to come back
            self._hold_until = max(self._hold_until, now + asked_wait_s(error))
        else:
            self._count(str(error), trial=trial, now=now)

    def _count(self, reason: str, *, trial: bool, now: float) -> None:
        self._failures += 1
        if trial:
            last = reason.removeprefix(f"{self._provider.partition(' ')[0]}: ")
            self._stop(f"{self._provider}: {self._failures} calls in a row failed (last: {last})")
        elif self._failures >= self._patience.failures and self._open_until is None:
            self._open_until = now + self._patience.cool_down_s

    def _named(self, reason: str) -> str:
        """A reason with whom it is about; most models of providers say so, and where they asked."""
        named = reason.startswith(f"{self._provider.partition(' ')[0]}: ")
        return reason if named else f"{self._provider}: {reason}"

    def _stop(self, why: str) -> None:
        self.stopped = self.stopped or f"{why}; {KEPT}"


def asked_wait_s(error: ModelError) -> float:
    """The seconds that a provider asked to wait, between 0 and 300; 0 if it asked for none.

    >>> asked_wait_s(ModelError("busy", retryable=True, retry_after=4000.0))
    300.0
    """
    asked = error.retry_after or 0.0
    return min(max(asked, 0.0), _LONGEST_WAIT_S) if math.isfinite(asked) else _LONGEST_WAIT_S
