"""A server on this machine that answers as a service does, and misbehaves where a test says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Reply:
    """One answer. ``cut`` ends the connection in the middle of the body."""

    body: bytes = b""
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False

    @classmethod
    def json(cls, value: object, status: int = 200, **headers: str) -> Reply:
        return cls(json.dumps(value).encode(), status, headers={k.replace("_", "-"): v for k, v in headers.items()})


PAGE = Reply(b"<!DOCTYPE html><html><title>Just a moment</title></html>", kind="text/html")
STORM = Reply(b"Too Many Requests", status=429, kind="text/plain", headers={"Retry-After": "7"})
BROKEN = Reply(b"oops", status=500, kind="text/plain")

Answer = Callable[[str, dict[str, str]], Reply]


@dataclass
class Service:
    """The requests (method, path and query), and faults that precede the true answers of paths with ``at``."""

    url: str
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    faults: list[Reply] = field(default_factory=list)
    at: str = "/"

    def paths(self, part: str) -> list[str]:
        return [path for _, path, _ in self.asked if part in path]


@contextmanager
def serving(answer: Answer, at: str = "/") -> Iterator[Service]:
    """A service on loopback for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two packets, and 40 ms apart otherwise

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            service.asked.append((self.command, parts.path, query))
            reply = service.faults.pop(0) if service.faults and service.at in parts.path else answer(parts.path, query)
            self.send_response(reply.status)
            for name, value in {"Content-Type": reply.kind, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) + 1000 * reply.cut))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)
            self.close_connection = self.close_connection or reply.cut

        do_HEAD = do_POST = do_GET

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service = Service(f"http://127.0.0.1:{server.server_address[1]}", at=at)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
