"""A model provider over loopback that does what a script says, and remembers every request. One base for all formats.

    with serving(answer({"error": {...}}, 429, {"Retry-After": "1"}), answer(canned)) as server:
        model = ...  # base_url is server.url, or server.url + "/v1"

Each request takes the next step of the script; the last step is taken again and again."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent_servers import free_port, listening


@dataclass(frozen=True)
class Received:
    """One request as it came: header names are in lower case, ``body`` is the JSON of it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes


@dataclass
class ProviderServer:
    """A listening provider. Set ``over`` lets go of requests that hang."""

    port: int
    script: list[Step]
    requests: list[Received] = field(default_factory=list, repr=False)  # they hold keys, and tracebacks show locals
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def request(self) -> Received:
        """The only request."""
        assert len(self.requests) == 1
        return self.requests[0]

    def take(self, request: Received) -> Step:
        """Note a request, and the step for it."""
        with self.lock:
            self.requests.append(request)
            return self.script[min(len(self.requests), len(self.script)) - 1]


class Receiving(BaseHTTPRequestHandler):
    """The handler through which a step answers; ``received`` is the request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets, and 40 ms apart otherwise
    received: Received


Step = Callable[[Receiving, ProviderServer], None]


@contextmanager
def serving(*script: Step) -> Iterator[ProviderServer]:
    """A provider that takes these steps."""

    class Handler(Receiving):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = None  # of files that are uploaded
            with suppress(ValueError):
                body = json.loads(raw) if raw else None
            self.received = Received(self.command, self.path, headers, body, raw)
            with suppress(OSError):
                server.take(self.received)(self, server)

        do_GET = do_HEAD = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads, block_on_close, request_queue_size = True, False, 128

    with Listener(("127.0.0.1", 0), Handler) as listener:
        server = ProviderServer(listener.server_address[1], list(script))
        with listening(listener, server.over):
            yield server


def answer(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None, *, kind: str = "application/json"
) -> Step:
    """Answer with a body: JSON of an object or list, a text or bytes as they are."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()

    def step(handler: Receiving, _server: ProviderServer) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(raw)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)

    return step


def page(status: int = 200) -> Step:
    """Answer with HTML, as an address that is not an API does."""
    text = "<!DOCTYPE html><html><head><script>alert(1)</script></head><body>Welcome</body></html>"
    return answer(text, status, kind="text/html; charset=utf-8")


def hang(_handler: Receiving, server: ProviderServer) -> None:
    """Say nothing until the test is over."""
    server.over.wait(10)


def hang_up(handler: Receiving, _server: ProviderServer) -> None:
    """Break the connection without a word."""
    handler.close_connection = True
    with suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)


def _begin(handler: Receiving, length: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(length))
    handler.end_headers()


def cut(body: Any, keep: int = 20) -> Step:
    """Announce a whole body, send the start of it, and break the connection."""
    raw = json.dumps(body).encode()

    def step(handler: Receiving, server: ProviderServer) -> None:
        _begin(handler, len(raw))
        handler.wfile.write(raw[:keep])
        handler.wfile.flush()
        hang_up(handler, server)

    return step


def twice(body: Any) -> Step:
    """Deliver a whole reply twice on one connection, as a broken proxy does."""
    once = answer(body)

    def step(handler: Receiving, server: ProviderServer) -> None:
        once(handler, server)
        once(handler, server)
        handler.wfile.flush()

    return step


def flood(size: int) -> Step:
    """Send so many bytes, or as many of them as are taken."""

    def step(handler: Receiving, _server: ProviderServer) -> None:
        _begin(handler, size)
        for _ in range(size // 1_000_000):
            handler.wfile.write(b"x" * 1_000_000)

    return step


def echo_headers(status: int) -> Step:
    """Answer with an error that repeats the headers of the request, keys and all."""

    def step(handler: Receiving, server: ProviderServer) -> None:
        said = {"error": {"message": f"bad request: {dict(handler.headers.items())}", "type": "invalid_request_error"}}
        answer(said, status)(handler, server)

    return step


def free_url() -> str:
    """An address where nobody listens."""
    return f"http://127.0.0.1:{free_port()}"
