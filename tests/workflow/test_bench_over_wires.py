"""The benchmark's one changed flag: a model behind an API, asked by the official clients over loopback."""

from __future__ import annotations

import pytest
from provider_cases import speaking
from provider_server import serving

from assaymark.benchmark import ReferenceBenchmarkModel
from assaymark.benchmark import questions as question_set
from assaymark.cli import main
from assaymark.market import synthetic_history
from assaymark.workflow import SCORES, RunFolder, Store

pytestmark = pytest.mark.usefixtures("clients")
LITERAL = ReferenceBenchmarkModel("literal")
FEW = ["--instruments", "12", "--window", "covid-2020", "--profile", "balanced", "--pace", "quarterly"]


def literally(request):
    """Return the literal reference model's answer to a request in either format."""
    parts = []
    for message in request.body["messages"]:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [part["text"] for part in content]
    whole = "\n\n".join(parts)
    before, task, after = whole.partition("TASK")
    text, _ = LITERAL.answer((before, task + after) if "TASK S" in whole else (whole,))
    return text


@pytest.mark.parametrize(("model", "path"), [("openai-chat/any-name", "/v1"), ("anthropic/any-name", "")])
def test_a_model_behind_an_api_goes_through_both_parts(tmp_path, monkeypatch, capsys, model, path):
    monkeypatch.setenv("MY_KEY", "canary-key-90210")
    questions = tmp_path / "set.jsonl"
    question_set.write_questions(
        questions,
        question_set.generate_questions(synthetic_history(0), counts={"T2": 20, "T4": 20, "T6": 20}).questions,
    )
    with serving(speaking(literally)) as server:
        options = [
            "--model", model, "--base-url", server.url + path, "--key-env", "MY_KEY", "--out", str(tmp_path / "run"),
        ]  # fmt: skip
        options += [*FEW, "--questions", str(questions), "--per-template", "2"]
        assert main(["bench", "qa", *options]) == 0, capsys.readouterr().err
        assert main(["bench", "pipeline", *options]) == 0, capsys.readouterr().err
    scores = Store(RunFolder(tmp_path / "run")).read(SCORES)
    full = [one.value for one in scores if one.name == "QA" and one.labels["condition"] == "full"]
    assert full == pytest.approx([1.0] * len(full), abs=1e-6)
    assert {one.state for one in scores if one.name in ("S1", "S2", "S3")} == {"ok"}
    seen = [request.body for request in server.requests]
    assert len(seen) == 6 + 2 + 3  # questions, two of them restricted too, one date
    sent = 0 if model.startswith("openai-chat") else None  # Anthropic's newest models take none
    assert {body.get("temperature") for body in seen} == {sent}
    page = (tmp_path / "run" / "report" / "index.html").read_text()
    assert ("No temperature was sent" in page) == (sent is None)
    assert all(body.get("max_tokens", body.get("max_completion_tokens")) == 4096 for body in seen)
    written = b"".join(one.read_bytes() for one in (tmp_path / "run").rglob("*") if one.is_file())
    assert b"canary-key" not in written
