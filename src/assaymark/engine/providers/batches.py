"""Base of the batch clients of all providers: submit, find, poll and cancel a batch, and parse its results safely."""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, TypeVar

from assaymark.engine.calls import CallSpec, Reply, refusal_of
from assaymark.engine.loop import MOST_KEPT_BYTES, run_outside_loop
from assaymark.engine.providers.base import (
    MOST_REPLY_BYTES,
    SdkModel,
    attempt,
    is_html,
    not_an_api,
    read_object,
    status_of,
    too_large,
    word_of,
)
from assaymark.engine.providers.transports import TIMEOUT_S, Transport, refuse, transport
from assaymark.errors import ModelError
from assaymark.records import canonical_json

T = TypeVar("T")
Status = Literal["running", "ended", "cancelled", "refused", "gone"]
Item = tuple[str, CallSpec]
"""A call of a batch with its key."""
Result = tuple[str, Reply | ModelError]
"""The result of one key; the key is empty for a line that names none."""

CLOCKS_APART_S: Final = 300.0
"""Seconds that a provider's clock may be behind ours when a batch is searched by its time."""

MOST_RESULT_BYTES: Final = 4_000_000_000
"""Maximum size of a results file, which is read line by line; a batch has at most 100,000 calls."""

_MOST_PAGES: Final = 20
_HEAD_BYTES: Final = 4096
_OVERHEAD_BYTES: Final = 65_536  # of a results line in addition to its reply
_REMOTE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,199}(/[A-Za-z0-9][A-Za-z0-9._\-]{0,199})?")
_KEY = re.compile(rb'"(?:custom_id|key)"\s*:\s*"([0-9a-f]{64})"')
_PLACE: Final = ("api_key_env", "api_version", "base_url")


class BatchRefused(ModelError):
    """A batch was rejected before it was created: the provider is busy, or our quota of batches is used up."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """Status and progress of a batch: numbers of calls done and failed; the reason of a refusal."""

    status: Status
    done: int = 0
    failed: int = 0
    reason: str = ""
    retryable: bool = False


def lane_of(call: CallSpec) -> str:
    """Return the lane of a call; calls with equal lanes (model, address and key) can share a batch."""
    return canonical_json([call.model, {name: call.args[name] for name in _PLACE if name in call.args}])


class RemoteBatches(ABC):
    """Client for the batches of one lane (see `lane_of`); every failure is a `ModelError`. Must be closed.

    ``place`` is the part of the client for batches, of an SDK built like OpenAI's; batches of another SDK do without.
    """

    model: ClassVar[type[SdkModel]]
    place: ClassVar[str]
    most_items: ClassVar[int]
    most_bytes: ClassVar[int]
    form: ClassVar[Mapping[str, str]]  # fields of a call in a batch: first its key, last its body, others constant
    keeps_labels: ClassVar[bool] = True

    def __init__(self, like: CallSpec, environ: Mapping[str, str] | None = None) -> None:
        self.like = like
        at = transport(self.model.provider, like, environ)
        self.at: Transport = replace(at, timeout_s=max(at.timeout_s, TIMEOUT_S))  # ``timeout_s`` is for single calls
        self.asked = self.model(self.at.model, environ)
        self._runner = asyncio.Runner()
        self._clients: dict[int, Any] = {}

    def size(self, key: str, call: CallSpec) -> int:
        """Return the number of bytes of a call in a batch. Raises `ModelError` for unsupported settings."""
        return len(self.line(key, call))

    def submit(self, items: Sequence[Item], *, label: str) -> str:
        """Submit a batch and return the provider's id. Raises `BatchRefused` if it was certainly not created."""

        def failure(exc: Exception, at: Transport) -> ModelError:
            error = self.asked.failure(exc, at)
            if status_of(exc) not in (425, 429, 529):
                return error
            return BatchRefused(str(error), retryable=error.retryable, retry_after=error.retry_after, quota=error.quota)

        return run_outside_loop(partial(self._runner.run, attempt(self.at, self._submit(items, label), failure)))

    def find(self, label: str, keys: Set[str], since: float, known: Set[str] = frozenset()) -> str | None:
        """Return the id of the batch of these calls, submitted at ``since`` or later and not in ``known``, or None."""
        return self._do(self._find(label, keys, since - CLOCKS_APART_S, known))

    def state(self, remote: str) -> BatchState:
        """Return the current state of a batch."""
        return self._do(self._state_or_gone(remote))

    def cancel(self, remote: str) -> None:
        """Ask the provider to stop a batch. Finished calls are still billed, and their results can be read."""
        self._do(self._cancel(remote))

    def results(self, remote: str) -> Iterator[Result]:
        """Yield the results, in any order. Keys can occur twice, and keys that were never sent can occur."""
        pages = self._results(remote)
        while (page := self._do(anext(pages, None))) is not None:
            yield from page

    def close(self) -> None:
        """Close the connections."""
        try:
            for client in self._clients.values():
                run_outside_loop(partial(self._runner.run, self.asked.close(client)))
        finally:
            run_outside_loop(self._runner.close)

    @abstractmethod
    async def _submit(self, items: Sequence[Item], label: str) -> str: ...

    @abstractmethod
    async def _find(self, label: str, keys: Set[str], after: float, known: Set[str], /) -> str | None: ...

    @abstractmethod
    async def _state(self, remote: str) -> BatchState: ...

    @abstractmethod
    def _results(self, remote: str) -> AsyncIterator[list[Result]]: ...

    @abstractmethod
    def _answer(self, record: dict[str, Any]) -> Reply:
        """Return the reply in a line of the results; raise `ModelError` if the line reports an error."""

    def record(self, key: str, call: CallSpec) -> dict[str, Any]:
        """Return the JSON object of a call in a batch."""
        refuse(call, list(self.asked.problems(call)))
        first, *_, last = self.form
        return {**self.form, first: key, last: self.asked.wire_body(call, self.at)}

    def line(self, key: str, call: CallSpec) -> bytes:
        """Return a call as a line of a batch file."""
        return json.dumps(self.record(key, call), allow_nan=False).encode("ascii") + b"\n"

    def client(self, most_bytes: int = MOST_REPLY_BYTES) -> Any:
        """Return the SDK's client for bodies of at most ``most_bytes`` bytes."""
        if most_bytes not in self._clients:
            self._clients[most_bytes] = self.asked.client(self.at, most_bytes)
        return self._clients[most_bytes]

    async def object_of(self, opened: AbstractAsyncContextManager[Any]) -> dict[str, Any]:
        """Return the JSON object in a streamed response of an SDK built like OpenAI's."""
        async with opened as response:
            body = bytes(await response.read())
        return read_object(body, self.at)[1]

    def remote_of(self, value: object) -> str:
        """Validate the id of a batch or file, which becomes part of URLs. Raises `ModelError`."""
        if isinstance(value, str) and _REMOTE.fullmatch(value) and ".." not in value:
            return value
        raise ModelError(f"{self.at.provider.name}: {self.at.address} gave no id of a batch or file", retryable=True)

    def reply_in(self, body: dict[str, Any]) -> Reply:
        """Return the reply in a response body that is part of the results."""
        return self.asked.reply_of(json.dumps(body).encode("ascii"), self.like, self.at)

    async def pages(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[list[Result]]:
        """Yield the results in a JSON lines file, one page per chunk that arrives."""
        first, name = True, self.at.provider.name
        async for lines in _lines(chunks):
            if first and lines and is_html(lines[0][:200].decode("utf-8", "replace")):
                raise ModelError(f"{name}: {not_an_api(self.at, 200)}", retryable=False)
            first, page = first and not lines, list[Result]()
            for line in lines:
                if len(line) > MOST_REPLY_BYTES + _OVERHEAD_BYTES and (outcome := too_large(line, self.like, self.at)):
                    match = _KEY.search(line[:_HEAD_BYTES])
                    page.append((match[1].decode() if match else "", outcome))
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    page.append(("", ModelError(f"{name}: a line of the results is not JSON", retryable=True)))
                    continue
                if not isinstance(record, dict):
                    page.append(("", ModelError(f"{name}: a line of the results is not an object", retryable=True)))
                    continue
                key = word_of(record.get("custom_id", record.get("key"))) or ""
                try:
                    page.append((key, self._answer(record)))
                except ModelError as exc:
                    page.append((key, refusal_of(exc, self.like.model) if exc.refused == "content" else exc))
            yield page

    def _do(self, work: Awaitable[T]) -> T:
        return run_outside_loop(partial(self._runner.run, attempt(self.at, work, self.asked.failure)))

    async def _state_or_gone(self, remote: str) -> BatchState:
        try:
            return await self._state(remote)
        except Exception as exc:
            if status_of(exc) != 404:
                raise
        return BatchState("gone", reason=f"{self.at.address} does not know the batch {remote}")

    @property
    def batches(self) -> Any:
        """The part of the SDK's client for batches."""
        return attrgetter(self.place)(self.client())

    @property
    def headers(self) -> dict[str, Any]:
        """The additional headers of every request."""
        return self.asked.headers(self.like, self.at)

    async def _create(self, **fields: Any) -> str:
        """Create a batch and return its id."""
        return self.remote_of((await self._request("create", **fields)).get("id"))

    async def _retrieve(self, remote: str) -> dict[str, Any]:
        """Return the provider's record of a batch."""
        return await self._request("retrieve", remote)

    async def _cancel(self, remote: str) -> None:
        await self._request("cancel", remote)

    async def _request(self, method: str, *args: Any, **named: Any) -> dict[str, Any]:
        asked = getattr(self.batches.with_streaming_response, method)
        return await self.object_of(asked(*args, **named, extra_headers=self.headers))


BatchMaker = Callable[[CallSpec], RemoteBatches]
"""Makes the batch client of a lane from any of its calls."""


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield the non-empty lines of a file, each cut to slightly more than the longest body that is stored."""
    rest = bytearray()
    async for chunk in chunks:
        lines: list[bytes] = []
        *ended, last = chunk.split(b"\n")
        for part in ended:
            rest += part
            if rest.strip():
                lines.append(bytes(rest[: MOST_KEPT_BYTES + 1]))
            rest = bytearray()
        rest += last
        del rest[MOST_KEPT_BYTES + 1 :]
        yield lines
    if rest.strip():
        yield [bytes(rest)]


async def newest(pages: AsyncIterable[T]) -> AsyncIterator[T]:
    """Yield the newest items of a list at the provider, at most `_MOST_PAGES` pages of 100."""
    most = 100 * _MOST_PAGES
    async for item in pages:
        yield item
        most -= 1
        if not most:
            return
