"""A server on this machine that answers as a service does, and misbehaves where a test says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

import provider_server
from provider_server import ProviderServer, Receiving


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

    url: str = ""
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    faults: list[Reply] = field(default_factory=list)
    at: str = "/"

    def paths(self, part: str) -> list[str]:
        return [path for _, path, _ in self.asked if part in path]


@contextmanager
def serving(answer: Answer, at: str = "/") -> Iterator[Service]:
    """A service on loopback for as long as the block lasts."""
    service = Service(at=at)

    def step(handler: Receiving, _: ProviderServer) -> None:
        parts = urlsplit(handler.received.path)
        query = dict(parse_qsl(parts.query))
        service.asked.append((handler.command, parts.path, query))
        reply = service.faults.pop(0) if service.faults and service.at in parts.path else answer(parts.path, query)
        handler.send_response(reply.status)
        length = str(len(reply.body) + 1000 * reply.cut)
        for name, value in {"Content-Type": reply.kind, **reply.headers, "Content-Length": length}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(reply.body)
        handler.close_connection = handler.close_connection or reply.cut

    with provider_server.serving(step) as server:
        service.url = server.url
        yield service
