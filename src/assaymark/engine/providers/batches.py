"""What batches of all providers share: how far one is, how to find it again, and reading a file of results safely."""

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
from assaymark.engine.loop import MOST_KEPT_BYTES, outside
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
"""A call of a batch under its key."""
Result = tuple[str, Reply | ModelError]
"""What came back for a key; the empty key stands for a line that names none."""

CLOCKS_APART_S: Final = 300.0
"""So many seconds a provider's clock may be behind ours when a batch is looked for by its time."""

MOST_RESULT_BYTES: Final = 4_000_000_000
"""The longest file of results that is read, line by line; a batch takes at most 100,000 calls."""

_MOST_PAGES: Final = 20
_HEAD_BYTES: Final = 4096
_OVERHEAD_BYTES: Final = 65_536  # of a line around the reply that it holds
_REMOTE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,199}(/[A-Za-z0-9][A-Za-z0-9._\-]{0,199})?")
_KEY = re.compile(rb'"(?:custom_id|key)"\s*:\s*"([0-9a-f]{64})"')
_PLACE: Final = ("api_key_env", "api_version", "base_url")


class NotTaken(ModelError):
    """A batch was turned away before anything was made of it: the provider is busy, or has enough of ours."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """How far a batch is."""

    status: Status
    done: int = 0
    failed: int = 0
    expired: int = 0
    reason: str = ""
    retryable: bool = False


def lane_of(call: CallSpec) -> str:
    """Which calls can go in one batch: those of one model that go to one address, with one key."""
    return canonical_json([call.model, {name: call.args[name] for name in _PLACE if name in call.args}])


class RemoteBatches(ABC):
    """The batches of one lane (see `lane_of`) at its provider; whatever fails is a `ModelError`. Close it."""

    model: ClassVar[type[SdkModel]]
    most_items: ClassVar[int]
    most_bytes: ClassVar[int]
    form: ClassVar[Mapping[str, str]]  # of a call in a batch: first its key, last its body, what lies between as it is
    keeps_labels: ClassVar[bool] = True

    def __init__(self, like: CallSpec, *, environ: Mapping[str, str] | None = None) -> None:
        self.like = like
        at = transport(self.model.provider, like, environ)
        self.at: Transport = replace(at, timeout_s=max(at.timeout_s, TIMEOUT_S))  # ``timeout_s`` is for single calls
        self.asked = self.model(self.at.model, environ=environ)
        self._runner = asyncio.Runner()
        self._clients: dict[int, Any] = {}

    def size(self, key: str, call: CallSpec) -> int:
        """How many bytes of a batch a call takes; raises what the provider could not do for it."""
        return len(self.line(key, call))

    def submit(self, items: Sequence[Item], *, label: str) -> str:
        """Hand over a batch; the id that the provider gives it. `NotTaken` if it surely has nothing of it."""

        def failure(exc: Exception, at: Transport) -> ModelError:
            error = self.asked.failure(exc, at)
            if status_of(exc) not in (425, 429, 529):
                return error
            return NotTaken(str(error), retryable=error.retryable, retry_after=error.retry_after, quota=error.quota)

        return outside(partial(self._runner.run, attempt(self.at, self._submit(items, label), failure)))

    def find(self, label: str, keys: Set[str], since: float, known: Set[str] = frozenset()) -> str | None:
        """The id of the batch of these calls that was about to be sent ``since`` and is none of the ``known`` ones."""
        return self._do(self._find(label, keys, since - CLOCKS_APART_S, known))

    def state(self, remote: str) -> BatchState:
        """How far a batch is."""
        return self._do(self._state_or_gone(remote))

    def cancel(self, remote: str) -> None:
        """Ask the provider to stop a batch. What is done is still paid, and its results can be read."""
        self._do(self._cancel(remote))

    def results(self, remote: str) -> Iterator[Result]:
        """What came back, call by call, in any order. A key can come twice, and keys can come that were never sent."""
        pages = self._results(remote)
        while (page := self._do(anext(pages, None))) is not None:
            yield from page

    def close(self) -> None:
        """Close the connections."""
        try:
            for client in self._clients.values():
                outside(partial(self._runner.run, self.asked.close(client)))
        finally:
            outside(self._runner.close)

    @abstractmethod
    async def _submit(self, items: Sequence[Item], label: str) -> str: ...

    @abstractmethod
    async def _find(self, label: str, keys: Set[str], after: float, known: Set[str], /) -> str | None: ...

    @abstractmethod
    async def _state(self, remote: str) -> BatchState: ...

    @abstractmethod
    async def _cancel(self, remote: str) -> None: ...

    @abstractmethod
    def _results(self, remote: str) -> AsyncIterator[list[Result]]: ...

    @abstractmethod
    def _answer(self, record: dict[str, Any]) -> Reply:
        """The reply in a line of the results; `ModelError` if the line says that there is none."""

    def record(self, key: str, call: CallSpec) -> dict[str, Any]:
        """A call as it stands in a batch."""
        refuse(call, list(self.asked.problems(call)))
        first, *_, last = self.form
        return {**self.form, first: key, last: self.asked.wire_body(call, self.at)}

    def line(self, key: str, call: CallSpec) -> bytes:
        """A call as a line of a file."""
        return json.dumps(self.record(key, call), allow_nan=False).encode("ascii") + b"\n"

    def client(self, most_bytes: int = MOST_REPLY_BYTES) -> Any:
        """The SDK's client for bodies of at most so many bytes."""
        if most_bytes not in self._clients:
            self._clients[most_bytes] = self.asked.client(self.at, most_bytes)
        return self._clients[most_bytes]

    async def object_of(self, opened: AbstractAsyncContextManager[Any]) -> dict[str, Any]:
        """The JSON object in the body of a streamed response of an SDK of OpenAI's make."""
        async with opened as response:
            body = bytes(await response.read())
        return read_object(body, self.at)[1]

    def remote_of(self, value: object) -> str:
        """The id of a batch, which becomes part of addresses."""
        if isinstance(value, str) and _REMOTE.fullmatch(value) and ".." not in value:
            return value
        raise ModelError(f"{self.at.provider.name}: {self.at.address} gave no id of a batch or file", retryable=True)

    def reply_in(self, body: dict[str, Any]) -> Reply:
        """The reply in the body of a response that is part of the results."""
        return self.asked.reply_of(json.dumps(body).encode("ascii"), self.like, self.at)

    async def pages(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[list[Result]]:
        """The results in a file of JSON lines, as many at a time as arrive together."""
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
                    page.append(("", ModelError(f"{name}: a line of the results is no object", retryable=True)))
                    continue
                key = word_of(record.get("custom_id", record.get("key"))) or ""
                try:
                    page.append((key, self._answer(record)))
                except ModelError as exc:
                    page.append((key, refusal_of(exc, self.like.model) if exc.refused == "content" else exc))
            yield page

    def _do(self, work: Awaitable[T]) -> T:
        return outside(partial(self._runner.run, attempt(self.at, work, self.asked.failure)))

    async def _state_or_gone(self, remote: str) -> BatchState:
        try:
            return await self._state(remote)
        except Exception as exc:
            if status_of(exc) != 404:
                raise
        return BatchState("gone", reason=f"{self.at.address} does not know the batch {remote}")


class StreamedBatches(RemoteBatches):
    """Batches behind an SDK of OpenAI's make; ``place`` is its part for them."""

    place: ClassVar[str]

    @property
    def batches(self) -> Any:
        """The part of the SDK that makes batches."""
        return attrgetter(self.place)(self.client())

    @property
    def headers(self) -> dict[str, Any]:
        """What goes along with every request."""
        return self.asked.headers(self.like, self.at)

    async def _created(self, **what: Any) -> str:
        """The id of a batch that is made."""
        return self.remote_of((await self._said("create", **what)).get("id"))

    async def _retrieved(self, remote: str) -> dict[str, Any]:
        """What the provider says of a batch."""
        return await self._said("retrieve", remote)

    async def _cancel(self, remote: str) -> None:
        await self._said("cancel", remote)

    async def _said(self, what: str, *args: Any, **named: Any) -> dict[str, Any]:
        asked = getattr(self.batches.with_streaming_response, what)
        return await self.object_of(asked(*args, **named, extra_headers=self.headers))


BatchMaker = Callable[[CallSpec], RemoteBatches]
"""Makes the provider of a lane from any call of it."""


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[list[bytes]]:
    """The lines of a file that are not empty, with only the beginning of one that is longer than is kept."""
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
    """The newest items of a list at the provider, not more than are looked at."""
    most = 100 * _MOST_PAGES
    async for item in pages:
        yield item
        most -= 1
        if not most:
            return
