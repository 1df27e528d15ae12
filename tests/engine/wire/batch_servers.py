"""Providers of batches over loopback, in the format of each: they bill every call once a batch, and can misbehave.

host = OpenAIHost()
with hosting(host) as server:
    ...  # base_url is host.base(server.url)
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

from provider_cases import COMPLETION, GENERATED, MESSAGE, RESPONSE
from provider_server import ProviderServer, Received, answer, serving

Answer = tuple[int, Mapping[str, str], bytes]
Verdict = Callable[[str, int], str | None]
"""What becomes of a call the n-th time it is asked: None for a reply, or ``busy``, ``bad``, ``flagged``, ``expired``
or ``nothing``."""


@dataclass
class Held:
    """A batch at its provider."""

    remote: str
    label: str | None
    lines: list[dict[str, Any]]
    made: float = field(default_factory=time.time)
    seen: int = 0
    cancelled: bool = False
    status: str = ""


@dataclass
class Host:
    """What the providers share: their batches, bills, and how they misbehave."""

    verdict: Verdict = lambda _key, _times: None
    polls: int = 0
    """How often a batch is still running when it is looked at."""
    more_lines: list[bytes] = field(default_factory=list)
    """Lines before the results."""
    twice: bool = False
    batches: dict[str, Held] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    bills: Counter[str] = field(default_factory=Counter)
    said: list[Answer] = field(default_factory=list)
    """Answers to the next requests, whatever they are."""
    whole: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Objects that were answered, with the name of their type."""
    url: str = ""

    name = ""

    def base(self, url: str) -> str:
        return url

    def step(self, handler: BaseHTTPRequestHandler, server: ProviderServer) -> None:
        status, headers, body = self.said.pop(0) if self.said else self.route(server.requests[-1])
        kind = headers.get("Content-Type", "application/json")
        answer(body, status, {k: v for k, v in headers.items() if k != "Content-Type"}, kind=kind)(handler, server)

    def route(self, request: Received) -> Answer:
        raise NotImplementedError

    def take(self, label: str | None, lines: list[dict[str, Any]]) -> Held:
        held = Held(self.remote_name(len(self.batches) + 1), label, lines)
        self.bills.update(self.key_of(line) for line in lines)
        self.batches[held.remote] = held
        return held

    def remote_name(self, n: int) -> str:
        return f"batch_{n}"

    def key_of(self, line: Mapping[str, Any]) -> str:
        return str(line["custom_id"])

    def ended(self, held: Held) -> bool:
        held.seen += 1
        return held.seen > self.polls

    def results(self, held: Held) -> bytes:
        found = list(self.more_lines)
        for line in reversed(held.lines):
            key = self.key_of(line)
            word = self.verdict(key, self.bills[key])
            if word != "nothing":
                found += [json.dumps(self.result(key, word)).encode()] * (2 if self.twice else 1)
        return b"\n".join(found) + b"\n"

    def result(self, key: str, word: str | None) -> dict[str, Any]:
        raise NotImplementedError

    def object(self, kind: str, body: dict[str, Any], **headers: str) -> Answer:
        self.whole.append((kind, body))
        return 200, headers, json.dumps(body).encode()


NOT_FOUND: Answer = (404, {}, b'{"error": {"message": "no such thing", "type": "not_found_error", "code": 404}}')
JSONL = {"Content-Type": "application/jsonl"}


class OpenAIHost(Host):
    """``/v1/files`` and ``/v1/batches``, for both of OpenAI's APIs."""

    def base(self, url: str) -> str:
        return f"{url}/v1"

    def route(self, request: Received) -> Answer:
        path, _, _ = request.path.partition("?")
        match request.method, path.split("/")[2:]:
            case "POST", ["files"]:
                return self._upload(request)
            case "GET", ["files", name, "content"] if name in self.files:
                return 200, JSONL, self.files[name]
            case "POST", ["batches"]:
                lines = [json.loads(line) for line in self.files[request.body["input_file_id"]].splitlines()]
                return self._batch(self.take(request.body["metadata"]["assaymark"], lines))
            case "GET", ["batches"]:
                held = [self._object(one) for one in reversed(self.batches.values())]
                ends = {"first_id": None, "last_id": None, "has_more": False}
                return self.object("list", {"object": "list", "data": held, **ends})
            case "GET", ["batches", name] if name in self.batches:
                return self._batch(self.batches[name])
            case "POST", ["batches", name, "cancel"] if name in self.batches:
                self.batches[name].cancelled = True
                return self._batch(self.batches[name])
        return NOT_FOUND

    def _upload(self, request: Received) -> Answer:
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        parts = [part.split(b"\r\n\r\n", 1) for part in request.raw.split(b"--" + boundary)[1:-1]]
        found = {head.split(b'name="')[1].split(b'"')[0]: body.removesuffix(b"\r\n") for head, body in parts}
        assert found[b"purpose"] == b"batch"
        name = f"file-{len(self.files) + 1}"
        self.files[name] = found[b"file"]
        about = {"object": "file", "filename": "x.jsonl", "purpose": "batch", "status": "processed", "created_at": 1}
        return self.object("FileObject", {"id": name, "bytes": len(found[b"file"]), **about})

    def _batch(self, held: Held) -> Answer:
        return self.object("Batch", self._object(held))

    def _object(self, held: Held) -> dict[str, Any]:
        status = held.status or ("in_progress" if not self.ended(held) else "completed")
        status = "cancelled" if held.cancelled else status
        body: dict[str, Any] = {
            "id": held.remote, "object": "batch", "endpoint": held.lines[0]["url"], "input_file_id": "file-1",
            "completion_window": "24h", "created_at": int(held.made), "status": status,
            "metadata": {"assaymark": held.label},
            "request_counts": {"total": len(held.lines), "completed": 0, "failed": 0},
        }  # fmt: skip
        if status in ("completed", "cancelled", "expired"):
            body |= self._result_files(held)
        if status == "failed":
            errors = [
                {"code": "token_limit_exceeded", "message": "too many enqueued tokens", "line": None, "param": None}
            ]
            body["errors"] = {"object": "list", "data": errors}
        return body

    def _result_files(self, held: Held) -> dict[str, str]:
        lines = [line for line in self.results(held).splitlines() if line]
        bad = [line for line in lines if b'"response": null' in line]
        names = {"output_file_id": f"file-out-{held.remote}", "error_file_id": f"file-err-{held.remote}"}
        self.files[names["output_file_id"]] = b"\n".join(line for line in lines if line not in bad)
        self.files[names["error_file_id"]] = b"\n".join(bad)
        return names

    def result(self, key: str, word: str | None) -> dict[str, Any]:
        line: dict[str, Any] = {"id": "batch_req_1", "custom_id": key, "response": None, "error": None}
        if word == "expired":
            return {
                **line, "error": {"code": "batch_expired", "message": "This request could not be executed in time."},
            }  # fmt: skip
        response = {"status_code": 200, "request_id": "req_1", "body": self.reply(key)}
        if word is not None:
            said = {"message": f"{word} thing", "type": word, "param": None, "code": None}
            response = {"status_code": 503 if word == "busy" else 400, "request_id": "req_1", "body": {"error": said}}
        return {**line, "response": response}

    def reply(self, key: str) -> dict[str, Any]:
        return RESPONSE


class OpenAIChatHost(OpenAIHost):
    def reply(self, key: str) -> dict[str, Any]:
        return COMPLETION


class AnthropicHost(Host):
    """``/v1/messages/batches``."""

    def remote_name(self, n: int) -> str:
        return f"msgbatch_{n}"

    def route(self, request: Received) -> Answer:
        path, _, _ = request.path.partition("?")
        match request.method, path.split("/")[3:]:
            case "POST", ["batches"]:
                return self._batch(self.take(None, request.body["requests"]))
            case "GET", ["batches"]:
                held = [self._object(one) for one in reversed(self.batches.values())]
                return self.object("list", {"data": held, "has_more": False, "first_id": None, "last_id": None})
            case "GET", ["batches", name] if name in self.batches:
                return self._batch(self.batches[name])
            case "GET", ["batches", name, "results"] if name in self.batches:
                return 200, {"Content-Type": "application/x-jsonl"}, self.results(self.batches[name])
            case "POST", ["batches", name, "cancel"] if name in self.batches:
                self.batches[name].cancelled = True
                return self._batch(self.batches[name])
        return NOT_FOUND

    def _batch(self, held: Held) -> Answer:
        return self.object("MessageBatch", self._object(held))

    def _object(self, held: Held) -> dict[str, Any]:
        ended = self.ended(held)
        at = datetime.fromtimestamp(held.made, UTC).isoformat()
        counts = {"processing": 0, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        counts["succeeded" if ended else "processing"] = len(held.lines)
        return {
            "id": held.remote, "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts, "created_at": at, "expires_at": at, "ended_at": at if ended else None,
            "archived_at": None, "cancel_initiated_at": at if held.cancelled else None,
            "results_url": f"{self.url}/v1/messages/batches/{held.remote}/results" if ended else None,
        }  # fmt: skip

    def result(self, key: str, word: str | None) -> dict[str, Any]:
        if word == "expired":
            return {"custom_id": key, "result": {"type": "expired"}}
        if word is not None:
            kind = "overloaded_error" if word == "busy" else "invalid_request_error"
            error = {"type": "error", "request_id": None, "error": {"type": kind, "message": f"{word} thing"}}
            return {"custom_id": key, "result": {"type": "errored", "error": error}}
        return {"custom_id": key, "result": {"type": "succeeded", "message": MESSAGE}}


class GoogleHost(Host):
    """Files and ``batchGenerateContent`` of the Gemini API."""

    def remote_name(self, n: int) -> str:
        return f"batches/b{n}"

    def key_of(self, line: Mapping[str, Any]) -> str:
        return str(line["key"])

    def route(self, request: Received) -> Answer:
        path, _, _ = request.path.partition("?")
        match request.method, path.split("/")[1:]:
            case "POST", ["upload", "v1", "files"]:
                return 200, {"X-Goog-Upload-URL": f"{self.url}/put", "X-Goog-Upload-Status": "active"}, b"{}"
            case "POST", ["put"]:
                name = f"files/in-{len(self.files) + 1}"
                self.files[name] = request.raw
                body = {"file": {"name": name, "mimeType": "application/jsonl", "sizeBytes": str(len(request.raw))}}
                return 200, {"X-Goog-Upload-Status": "final"}, json.dumps(body).encode()
            case "POST", ["v1", "models", _]:
                batch = request.body["batch"]
                lines = [json.loads(line) for line in self.files[batch["inputConfig"]["fileName"]].splitlines()]
                return self._batch(self.take(batch["displayName"], lines))
            case "GET", ["v1", "batches"]:
                return self.object(
                    "list", {"operations": [self._object(one) for one in reversed(self.batches.values())]}
                )
            case "GET", ["v1", "batches", name] if f"batches/{name}" in self.batches:
                return self._batch(self.batches[f"batches/{name}"])
            case "POST", ["v1", "batches", name]:
                self.batches[f"batches/{name.removesuffix(':cancel')}"].cancelled = True
                return 200, {}, b"{}"
            case "GET", ["v1", "files", name] if (file := f"files/{name.removesuffix(':download')}") in self.files:
                return 200, JSONL, self.files[file]
        return NOT_FOUND

    def _batch(self, held: Held) -> Answer:
        return self.object("BatchJob", self._object(held))

    def _object(self, held: Held) -> dict[str, Any]:
        state = held.status or ("RUNNING" if not self.ended(held) else "SUCCEEDED")
        state = "CANCELLED" if held.cancelled else state
        about: dict[str, Any] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "name": held.remote, "model": "models/gemini-3.8-flash", "displayName": held.label,
            "createTime": datetime.fromtimestamp(held.made, UTC).isoformat(), "state": f"BATCH_STATE_{state}",
        }  # fmt: skip
        if state in ("SUCCEEDED", "CANCELLED"):
            out = f"files/out-{held.remote.partition('/')[2]}"
            self.files[out] = self.results(held)
            about["output"] = {"responsesFile": out}
        return {"name": held.remote, "metadata": about, "done": state != "RUNNING"}

    def result(self, key: str, word: str | None) -> dict[str, Any]:
        if word is None:
            return {"key": key, "response": GENERATED}
        code = {"busy": 14, "bad": 3, "flagged": 3, "expired": 4}[word]
        return {"key": key, "error": {"code": code, "message": f"{word} thing"}}


@contextmanager
def hosting(host: Host) -> Iterator[ProviderServer]:
    """A server of a host."""
    with serving(host.step) as server:
        host.url = server.url
        yield server
