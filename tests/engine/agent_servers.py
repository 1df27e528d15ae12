"""Agents over loopback that behave as they are told, and the call that asks them."""

from __future__ import annotations

import asyncio
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from assaymark.engine import CallSpec, Message, Reply, Text
from assaymark.engine.providers.http_agent import AgentRequest
from assaymark.records import Constraint, Context, Fact, Instrument, Portfolio, canonical_json

NOON = datetime(2000, 1, 3, 12, tzinfo=UTC)
DECISION = '{"orders": [], "rationale": "Nothing moved."}'
SCHEMA = {"type": "object"}


def context(best: float = 0.012) -> Context:
    """Two instruments, one of them held, with the facts and limits that the examples read."""
    hours = {"Asset A": best, "Asset B": -0.004}
    facts = [(name, "price", 100.0, "price") for name in hours]
    facts += [(name, "return_60m", value, "ratio") for name, value in hours.items()]
    rules = (
        ("max_weight", 0.35, "nav", "holding"), ("min_cash", 0.05, "nav", "portfolio"),
        ("max_leverage", 1.2, "multiple", "portfolio"), ("fee", 10, "bps", "order"),
    )  # fmt: skip
    return Context(
        completeness="complete", cutoff=NOON, cutoff_source="neutral clock", prompt="Décide.",
        facts=tuple(
            Fact(id=f"{name}.{kind}", instrument=name, field=kind, value=value, unit=unit, available_at=NOON)
            for name, kind, value, unit in facts
        ),
        instruments=tuple(Instrument(id=name, name=name, asset_class="equity") for name in hours),
        portfolio=Portfolio(currency="USD", cash=7000.0, nav=10_000.0, positions={"Asset B": 30.0}),
        constraints=tuple(
            Constraint(kind=kind, limit=limit, unit=unit, scope=scope) for kind, limit, unit, scope in rules
        ),
    )  # fmt: skip


def agent_call(model: str, *, trial: int = 1, seen: Context | None = None, **args) -> CallSpec:
    """The call that asks an external agent about a context."""
    text = canonical_json(AgentRequest(context=seen or context(), reply_schema=SCHEMA))
    return CallSpec(model=model, messages=(Message("user", (Text.of(text),)),), template="", trial=trial, args=args)


def asked(agent, call: CallSpec) -> Reply:
    """The reply of a model, outside any run."""
    return asyncio.run(agent.complete(call))


def failed(reply: Reply) -> dict[str, str]:
    """The failure that a reply stands for."""
    assert reply.finish == "failed"
    return json.loads(reply.text)


@dataclass
class Server:
    """A listening server, the requests it got, and the event that lets go of those it holds."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.name, self.url = (f"http{mark}127.0.0.1:{self.port}/decide" for mark in ("/", "://"))


Answer = Callable[[socket.socket, Server], None]


@contextmanager
def serving(answer: Answer | bytes) -> Iterator[Server]:
    """A server that reads each request to its end and then does what ``answer`` says, or sends those bytes."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                server.requests.append(read_request(self.request))
                if isinstance(answer, bytes):
                    self.request.sendall(answer)
                else:
                    answer(self.request, server)

    class Listener(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close, request_queue_size = True, False, 64

    with Listener(("127.0.0.1", 0), Handler) as listener:
        server = Server(listener.server_address[1])
        with listening(listener, server.over):
            yield server


@contextmanager
def listening(listener: socketserver.TCPServer, over: threading.Event) -> Iterator[None]:
    """Let a listener serve in a thread; in the end ``over`` lets go of the requests that it holds."""
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        listener.shutdown()
        thread.join()


def read_request(connection: socket.socket) -> bytes:
    """Head and body of one request."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (part := connection.recv(65536)):  # a look whether somebody is there
            return data
        data += part
        if data[:1] == b"\x16":  # the hello of TLS
            return data
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def http(body: bytes | str, *, status: str = "200 OK", length: int | None = None, headers: str = "") -> bytes:
    """An HTTP answer as bytes; ``length`` if it is to say something else than the truth."""
    raw = body.encode() if isinstance(body, str) else body
    declared = len(raw) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {declared}\r\n{headers}\r\n".encode() + raw


def hang(_connection: socket.socket, server: Server) -> None:
    """Say nothing until the test is over."""
    server.over.wait(10)


def free_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
