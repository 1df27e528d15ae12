"""A server on loopback that answers every Chat Completions request at once: ``python make_replies.py`` prints its port.

It reads no more of a request than its length, so that it is not what is measured: one of several canned replies, on
connections that are used again or closed, as the client asks for.
"""

from __future__ import annotations

import asyncio
import json
from itertools import cycle
from typing import Final

KINDS: Final = 16
LATER: Final = b"\r\nconnection: close\r\n"


def canned(number: int) -> bytes:
    """The body of a reply of a judge's usual size."""
    scores = ",".join(f'"dimension_{i}": {{"score": {i}, "why": "stated, sized, sourced {number}"}}' for i in range(6))
    message = {"role": "assistant", "content": f"{{{scores}}}", "refusal": None}
    reply = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000 + number,
        "model": "judge-2026-01-01",
        "system_fingerprint": "fp_loopback",
        "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 150 + number, "total_tokens": 1350 + number},
    }
    return json.dumps(reply).encode()


def framed(body: bytes, more: str = "") -> bytes:
    """A response with its head."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


BODIES = [canned(number) for number in range(KINDS)]
KEPT, CLOSED = (
    cycle([framed(body) for body in BODIES]),
    cycle([framed(body, "Connection: close\r\n") for body in BODIES]),
)


class Answering(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._waiting = transport, b""

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(b"\r\n\r\n")) >= 0:
            head = self._waiting[: end + 2].lower()
            length = int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            if len(self._waiting) < end + 4 + length:
                return
            self._waiting = self._waiting[end + 4 + length :]
            if LATER in head:
                self._transport.write(next(CLOSED))
                self._transport.close()
                return
            self._transport.write(next(KEPT))


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
