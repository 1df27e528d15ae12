"""The benchmark's one changed flag: a model behind an API, asked by the official clients over loopback."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from assaymark.benchmark.questions.generate import generate_questions
from assaymark.benchmark.questions.published import write_questions
from assaymark.benchmark.reference import ReferenceBenchmarkModel
from assaymark.cli import main
from assaymark.market import synthetic_history
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.tables import SCORES, Store

pytest.importorskip("openai", reason="needs the openai client (extra: test)")
pytest.importorskip("anthropic", reason="needs the anthropic client (extra: test)")

FEW = ["--instruments", "12", "--window", "covid-2020", "--profile", "balanced", "--pace", "quarterly"]


def prompt_of(body):
    """The prompt of a request in either format, system text and all."""
    parts = []
    for message in body["messages"]:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [part["text"] for part in content]
    return parts


def chat(text):
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "wire-1",
        "choices": [choice],
        "usage": usage,
    }


def message(text):
    return {
        "id": "m", "type": "message", "role": "assistant", "model": "wire-2", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }  # fmt: skip


@contextmanager
def provider(seen):
    """A server that answers as the literal reference model does, in the format it is asked in."""
    model = ReferenceBenchmarkModel("literal")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(body)
            parts = prompt_of(body)
            whole = "\n\n".join(parts)
            text, _ = model.answer(
                (whole.partition("TASK")[0], "TASK" + whole.partition("TASK")[2]) if "TASK S" in whole else (whole,)
            )
            out = json.dumps((chat if "completions" in self.path else message)(text)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(("model", "path"), [("openai-chat/any-name", "/v1"), ("anthropic/any-name", "")])
def test_a_model_behind_an_api_goes_through_both_parts(tmp_path, monkeypatch, capsys, model, path):
    monkeypatch.setenv("MY_KEY", "canary-key-90210")
    questions = tmp_path / "set.jsonl"
    write_questions(
        questions, generate_questions(synthetic_history(0), counts={"T2": 20, "T4": 20, "T6": 20}).questions
    )
    seen = []
    with provider(seen) as address:
        options = [
            "--model",
            model,
            "--base-url",
            address + path,
            "--key-env",
            "MY_KEY",
            "--out",
            str(tmp_path / "run"),
        ]
        options += [*FEW, "--questions", str(questions), "--per-template", "2"]
        assert main(["bench", "qa", *options]) == 0, capsys.readouterr().err
        assert main(["bench", "pipeline", *options]) == 0, capsys.readouterr().err
    scores = Store(RunFolder(tmp_path / "run")).read(SCORES)
    full = [one.value for one in scores if one.name == "QA" and one.labels["condition"] == "full"]
    assert full == pytest.approx([1.0] * len(full), abs=1e-6)
    assert {one.state for one in scores if one.name in ("S1", "S2", "S3")} == {"ok"}
    assert len(seen) == 6 + 2 + 3  # questions, two of them restricted too, one date
    sent = 0 if model.startswith("openai-chat") else None  # Anthropic's newest models take none
    assert {body.get("temperature") for body in seen} == {sent}
    page = (tmp_path / "run" / "report" / "index.html").read_text()
    assert ("No temperature was sent" in page) == (sent is None)
    assert all(body.get("max_tokens", body.get("max_completion_tokens")) == 4096 for body in seen)
    written = b"".join(one.read_bytes() for one in (tmp_path / "run").rglob("*") if one.is_file())
    assert b"canary-key" not in written
