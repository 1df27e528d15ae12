"""Providers of batches over loopback, in the format of each: they bill every call once a batch, and can misbehave.

host = OpenAIHost()
with hosting(host) as server:
    ...  # base_url is host.base(server.url)
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from provider_cases import COMPLETION, GENERATED, MESSAGE, RESPONSE
from provider_server import answer, serving

Answer = tuple[int, Mapping[str, str], bytes]


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
    """Base of the fake providers: their batches, bills, and misbehaviour.
    ``verdict`` returns the outcome of a call at its n-th attempt: None for a reply, ``busy``, ``bad``, ``flagged``,
    ``expired`` or ``nothing``; ``polls`` is the number of polls at which a batch is still running. ``more_lines``
    precede the results, ``said`` are answers to the next requests, and ``whole`` objects that were sent, by type."""

    verdict: Callable[[str, int], str | None] = lambda _key, _times: None
    polls: int = 0
    more_lines: list[bytes] = field(default_factory=list)
    twice: bool = False
    batches: dict[str, Held] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    bills: Counter[str] = field(default_factory=Counter)
    said: list[Answer] = field(default_factory=list)
    whole: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    url: str = ""
    remote_form, key_name, kind = "batch_{}", "custom_id", "Batch"

    def base(self, url):
        return url

    def step(self, handler, server):
        status, headers, body = self.said.pop(0) if self.said else self.answer_to(server.requests[-1])
        kind = headers.get("Content-Type", "application/json")
        answer(body, status, {k: v for k, v in headers.items() if k != "Content-Type"}, kind=kind)(handler, server)

    def answer_to(self, request):
        """By the method and the parts of the path; 404 to what no route knows."""
        return self.route(request, request.method, *request.path.partition("?")[0].split("/")[1:]) or NOT_FOUND

    def take(self, label, lines):
        held = Held(self.remote_name(len(self.batches) + 1), label, lines)
        self.bills.update(self.key_of(line) for line in lines)
        self.batches[held.remote] = held
        return self.batch(held)

    def remote_name(self, n):
        return self.remote_form.format(n)

    def key_of(self, line):
        return str(line[self.key_name])

    def ended(self, held):
        held.seen += 1
        return held.seen > self.polls

    def cancel(self, held):
        held.cancelled = True
        return self.batch(held)

    def results(self, held):
        found = list(self.more_lines)
        for line in reversed(held.lines):
            key = self.key_of(line)
            word = self.verdict(key, self.bills[key])
            if word != "nothing":
                found += [json.dumps(self.result(key, word)).encode()] * (2 if self.twice else 1)
        return b"\n".join(found) + b"\n"

    def object(self, kind, body, **headers):
        self.whole.append((kind, body))
        return 200, headers, json.dumps(body).encode()

    def batch(self, held):
        return self.object(self.kind, self.about(held))

    def listed(self, **more):
        name = more.pop("name", "data")
        return self.object("list", {name: [self.about(one) for one in reversed(self.batches.values())], **more})


NOT_FOUND: Answer = (404, {}, b'{"error": {"message": "no such thing", "type": "not_found_error", "code": 404}}')
JSONL = {"Content-Type": "application/jsonl"}
ENDS = {"first_id": None, "last_id": None, "has_more": False}


class OpenAIHost(Host):
    """``/v1/files`` and ``/v1/batches``, for both of OpenAI's APIs."""

    reply = RESPONSE

    def base(self, url):
        return f"{url}/v1"

    def route(self, request, *parts):
        match parts:
            case "POST", "v1", "files":
                return self._upload(request)
            case "GET", "v1", "files", name, "content" if name in self.files:
                return 200, JSONL, self.files[name]
            case "POST", "v1", "batches":
                lines = [json.loads(line) for line in self.files[request.body["input_file_id"]].splitlines()]
                return self.take(request.body["metadata"]["assaymark"], lines)
            case "GET", "v1", "batches":
                return self.listed(object="list", **ENDS)
            case "GET", "v1", "batches", name if name in self.batches:
                return self.batch(self.batches[name])
            case "POST", "v1", "batches", name, "cancel" if name in self.batches:
                return self.cancel(self.batches[name])
        return None

    def _upload(self, request):
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        parts = [part.split(b"\r\n\r\n", 1) for part in request.raw.split(b"--" + boundary)[1:-1]]
        found = {head.split(b'name="')[1].split(b'"')[0]: body.removesuffix(b"\r\n") for head, body in parts}
        assert found[b"purpose"] == b"batch"
        name = f"file-{len(self.files) + 1}"
        self.files[name] = found[b"file"]
        about = {"object": "file", "filename": "x.jsonl", "purpose": "batch", "status": "processed", "created_at": 1}
        return self.object("FileObject", {"id": name, "bytes": len(found[b"file"]), **about})

    def about(self, held):
        status = held.status or ("in_progress" if not self.ended(held) else "completed")
        status = "cancelled" if held.cancelled else status
        body = {
            "id": held.remote, "object": "batch", "endpoint": held.lines[0]["url"], "input_file_id": "file-1",
            "completion_window": "24h", "created_at": int(held.made), "status": status,
            "metadata": {"assaymark": held.label},
            "request_counts": {"total": len(held.lines), "completed": 0, "failed": 0},
        }  # fmt: skip
        if status in ("completed", "cancelled", "expired"):
            lines = [line for line in self.results(held).splitlines() if line]
            bad = [line for line in lines if b'"response": null' in line]
            for kind, some in (("output", [line for line in lines if line not in bad]), ("error", bad)):
                body[f"{kind}_file_id"] = f"file-{kind}-{held.remote}"
                self.files[body[f"{kind}_file_id"]] = b"\n".join(some)
        if status == "failed":
            error = {"code": "token_limit_exceeded", "message": "too many enqueued tokens", "line": None, "param": None}
            body["errors"] = {"object": "list", "data": [error]}
        return body

    def result(self, key, word):
        line = {"id": "batch_req_1", "custom_id": key, "response": None, "error": None}
        if word == "expired":
            said = "This request could not be executed in time."
            return line | {"error": {"code": "batch_expired", "message": said}}
        response = {"status_code": 200, "request_id": "req_1", "body": self.reply}
        if word is not None:
            said = {"message": f"{word} thing", "type": word, "param": None, "code": None}
            response |= {"status_code": 503 if word == "busy" else 400, "body": {"error": said}}
        return line | {"response": response}


class OpenAIChatHost(OpenAIHost):
    reply = COMPLETION


class AnthropicHost(Host):
    """``/v1/messages/batches``."""

    remote_form, kind = "msgbatch_{}", "MessageBatch"

    def route(self, request, *parts):
        match parts:
            case "POST", "v1", "messages", "batches":
                return self.take(None, request.body["requests"])
            case "GET", "v1", "messages", "batches":
                return self.listed(**ENDS)
            case "GET", "v1", "messages", "batches", name if name in self.batches:
                return self.batch(self.batches[name])
            case "GET", "v1", "messages", "batches", name, "results" if name in self.batches:
                return 200, {"Content-Type": "application/x-jsonl"}, self.results(self.batches[name])
            case "POST", "v1", "messages", "batches", name, "cancel" if name in self.batches:
                return self.cancel(self.batches[name])
        return None

    def about(self, held):
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

    def result(self, key, word):
        found = {"type": "succeeded", "message": MESSAGE}
        if word is not None:
            kind = "overloaded_error" if word == "busy" else "invalid_request_error"
            error = {"type": "error", "request_id": None, "error": {"type": kind, "message": f"{word} thing"}}
            found = {"type": "expired"} if word == "expired" else {"type": "errored", "error": error}
        return {"custom_id": key, "result": found}


class GoogleHost(Host):
    """Files and ``batchGenerateContent`` of the Gemini API."""

    remote_form, key_name, kind = "batches/b{}", "key", "BatchJob"

    def route(self, request, *parts):
        match parts:
            case "POST", "upload", "v1", "files":
                return 200, {"X-Goog-Upload-URL": f"{self.url}/put", "X-Goog-Upload-Status": "active"}, b"{}"
            case "POST", "put":
                name = f"files/in-{len(self.files) + 1}"
                self.files[name] = request.raw
                body = {"file": {"name": name, "mimeType": "application/jsonl", "sizeBytes": str(len(request.raw))}}
                return 200, {"X-Goog-Upload-Status": "final"}, json.dumps(body).encode()
            case "POST", "v1", "models", _:
                batch = request.body["batch"]
                lines = [json.loads(line) for line in self.files[batch["inputConfig"]["fileName"]].splitlines()]
                return self.take(batch["displayName"], lines)
            case "GET", "v1", "batches":
                return self.listed(name="operations")
            case "GET", "v1", "batches", name if f"batches/{name}" in self.batches:
                return self.batch(self.batches[f"batches/{name}"])
            case "POST", "v1", "batches", name:
                self.batches[f"batches/{name.removesuffix(':cancel')}"].cancelled = True
                return 200, {}, b"{}"
            case "GET", "v1", "files", name if (file := f"files/{name.removesuffix(':download')}") in self.files:
                return 200, JSONL, self.files[file]
        return None

    def about(self, held):
        state = held.status or ("RUNNING" if not self.ended(held) else "SUCCEEDED")
        state = "CANCELLED" if held.cancelled else state
        about = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "name": held.remote, "model": "models/gemini-3.8-flash", "displayName": held.label,
            "createTime": datetime.fromtimestamp(held.made, UTC).isoformat(), "state": f"BATCH_STATE_{state}",
        }  # fmt: skip
        if state in ("SUCCEEDED", "CANCELLED"):
            out = f"files/out-{held.remote.partition('/')[2]}"
            self.files[out] = self.results(held)
            about["output"] = {"responsesFile": out}
        return {"name": held.remote, "metadata": about, "done": state != "RUNNING"}

    def result(self, key, word):
        if word is None:
            return {"key": key, "response": GENERATED}
        code = {"busy": 14, "bad": 3, "flagged": 3, "expired": 4}[word]
        return {"key": key, "error": {"code": code, "message": f"{word} thing"}}


@contextmanager
def hosting(host):
    """A server of a host."""
    with serving(host.step) as server:
        host.url = server.url
        yield server
