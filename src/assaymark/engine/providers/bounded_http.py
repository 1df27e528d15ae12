"""The HTTP client that is handed to an SDK built on httpx2: it reads no more than a reply may have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from assaymark.engine.loop import LARGE_BYTES, MOST_KEPT_BYTES, place_here
from assaymark.engine.providers.base import ONE_REQUEST
from assaymark.engine.providers.transports import Provider, load_sdk

_MOST_FAILURE_BYTES: Final = 100_000

Hook = Callable[[Any], Awaitable[None]]
"""Sees a request before it is sent, or a response before its body is read."""


class TooLong(Exception):
    """The body of a reply is longer than may be read; ``start`` is what was read of it, a little more than may be."""

    def __init__(self, start: bytes) -> None:
        super().__init__("the body is too long")
        self.start = start


def bounded_client(provider: Provider, *, before: Hook | None = None, most_bytes: int = MOST_KEPT_BYTES) -> Any:
    """An ``httpx2.AsyncClient`` for the SDK of a provider.

    It follows no redirect, for the prompt and the key would go along. It asks for bodies as they are and takes no
    packed one, whose length nobody can know. A body that is too long raises `TooLong`; that of a failure is cut. A
    large one waits for its `Place`.
    """
    httpx = load_sdk(replace(provider, sdk="httpx2"))

    class Bounded(httpx.AsyncByteStream):  # type: ignore[misc,name-defined]  # the module is only known at run time
        def __init__(self, response: Any) -> None:
            self._stream, self._failed = response.stream, response.status_code >= 300

        async def __aiter__(self) -> AsyncIterator[bytes]:
            received, start, place = 0, list[bytes](), place_here()
            async for part in self._stream:
                received += len(part)
                if self._failed and received > _MOST_FAILURE_BYTES:
                    return
                if received > LARGE_BYTES and place is not None:
                    await place.take()
                if most_bytes <= MOST_KEPT_BYTES:
                    start.append(part)
                if received > most_bytes:
                    raise TooLong(b"".join(start))
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx.DecodingError("the body is packed, though nobody asked for that")
        response.stream = Bounded(response)

    hooks = {"request": [] if before is None else [before], "response": [bound]}
    headers = {**ONE_REQUEST, "Accept-Encoding": "identity"}
    return httpx.AsyncClient(follow_redirects=False, headers=headers, event_hooks=hooks)
