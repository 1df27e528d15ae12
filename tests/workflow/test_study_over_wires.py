"""A whole study over loopback: agents and judges behind three wire formats, asked by the official clients."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from assaymark.cli import main
from assaymark.engine import Ledger
from assaymark.judging import load_rubric
from assaymark.workflow import DECISIONS, JUDGMENTS, RunFolder, Store

pytest.importorskip("openai", reason="needs the openai client (extra: test)")
pytest.importorskip("anthropic", reason="needs the anthropic client (extra: test)")
pytest.importorskip("google.genai", reason="needs the google-genai client (extra: test)")

# These import the clients, which have to be there.
from batch_servers import AnthropicHost, GoogleHost, Host, OpenAIChatHost, OpenAIHost, hosting
from provider_cases import COMPLETION, FORMATS, GENERATED, MESSAGE, RESPONSE, format_of, speaking, with_said
from provider_server import ProviderServer, Receiving, Step, answer, serving

CANARY = "canary-key-90210"
DIMENSIONS = load_rubric("v1.0").names


def said(prompt: str) -> str:
    """A reply in the form asked for; the grades hang on the text, so that judges differ and agree a little."""
    drawn = hashlib.sha256(prompt[-2000:].encode()).digest()
    if "You grade one investment decision" in prompt:
        scores = {name: 1 + drawn[at] % 5 for at, name in enumerate(DIMENSIONS)}
        return json.dumps({"scores": scores, "evidence": [], "lookahead_check": "pass", "comment": None})
    return json.dumps({"orders": [], "rationale": f"Nothing is done for reason {drawn[0]}.", "confidence": 0.5})


def often_busy(asked: Counter[str]) -> Step:
    """Answers in the format of the request; every tenth request fails in a way that passes."""
    speak = speaking(lambda request: said(request.raw.decode()))

    def step(handler: Receiving, server: ProviderServer) -> None:
        with server.lock:
            asked[format_of(handler.received)] += 1
            busy = sum(asked.values()) % 10 == 0
        (answer({"error": {"message": "busy"}}, 503) if busy else speak)(handler, server)

    return step


def study(url: str) -> str:
    openai, other = (f'args = {{ base_url = "{url}{end}", api_key_env = "WIRE_KEY" }}' for end in ("/v1", ""))
    judges = (("one", "openai/wire", openai), ("two", "anthropic/wire", other), ("three", "google/wire", other))
    return "\n".join([
        'name = "wires"\nseed = 1\n[substrate]\nregimes = ["liquidity", "expansion", "recent"]\ncycles = 2',
        "[engine]\nbackoff_s = 0.01\nconcurrency = 8\n[inference]\nallow_hopeless = true",
        f'[[agents]]\nname = "chat"\nfamily = "maker"\nmodel = "openai-chat/wire"\n{openai}',
        '[[agents]]\nname = "rule"\nfamily = "rules"\nmodel = "reference/momentum"',
        *(f'[[judges]]\nname = "{name}"\nfamily = "{name}"\nmodel = "{model}"\n{args}' for name, model, args in judges),
    ])  # fmt: skip


def no_key(folder: Path) -> bool:
    return not any(CANARY.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_study_runs_over_all_wire_formats_with_the_official_clients(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WIRE_KEY", CANARY)
    asked, command = Counter[str](), ["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "run")]
    with serving(often_busy(asked)) as server:
        (tmp_path / "study.toml").write_text(study(server.url), encoding="utf-8")
        assert main(command) == 0, capsys.readouterr().err
        first = sum(asked.values())
        assert main(command) == 0
    assert (sum(asked.values()), set(asked)) == (first, set(FORMATS))
    store = Store(RunFolder(tmp_path / "run"))
    judgments = store.read(JUDGMENTS)
    assert [one.status for one in judgments] == ["ok"] * 3 * 12
    chat = [one for one in store.read(DECISIONS) if one.agent.id == "chat"]
    assert {one.agent.fingerprint for one in chat} == {COMPLETION["system_fingerprint"]}
    assert {(one.call.input_tokens, one.call.output_tokens) for one in chat} == {(420, 57)}
    assert all("Nothing is done" in one.rationales[0].text for one in chat)
    with Ledger.open(RunFolder(tmp_path / "run").ledger, create=False) as ledger:
        models = {ledger.reply(one.call_key).model for one in judgments}
    assert models == {RESPONSE["model"], MESSAGE["model"], GENERATED["modelVersion"]}
    page = (tmp_path / "run" / "report" / "plan.html").read_text()
    cost = page[page.index('id="cost"') : page.index('id="records"')]
    assert "42 calls of paid models; no price of them is known." in cost
    assert (cost.count("no price known"), "reference/momentum" in cost) == (4, False)
    assert no_key(tmp_path / "run")
    assert CANARY not in "".join(capsys.readouterr())


def answering(kind: type[Host]) -> Host:
    """A provider of batches, and of single calls, that answers what it was asked."""

    class Answering(kind):
        def step(self, handler: Receiving, server: ProviderServer) -> None:
            path = handler.received.path.partition("?")[0]
            if any(path.endswith(end) for end in (*FORMATS, ":generateContent")):  # the one call before the lock
                self.bills[path] += 1
                speaking(lambda request: said(request.raw.decode()))(handler, server)
            else:
                super().step(handler, server)

        def result(self, key: str, word: str | None) -> dict[str, Any]:
            line = next(one for held in self.batches.values() for one in held.lines if self.key_of(one) == key)
            return with_said(super().result(key, word), said(json.dumps(line)))

    return Answering(polls=1)


def test_a_study_runs_in_batches_at_all_providers_and_each_call_is_billed_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WIRE_KEY", CANARY)
    hosts = [answering(kind) for kind in (OpenAIChatHost, OpenAIHost, AnthropicHost, GoogleHost)]
    command = ["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "run")]
    with ExitStack() as stack:
        urls = [host.base(stack.enter_context(hosting(host)).url) for host in hosts]
        text = study("{url}").replace("backoff_s = 0.01", "backoff_s = 0.01\nbatch = true\nbatch_poll_s = 0.05")
        for url in urls:
            old = '"{url}/v1"' if '"{url}/v1"' in text else '"{url}"'
            text = text.replace(old, f'"{url}"', 1)
        (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        assert main(command) == 0, capsys.readouterr().err
        said = capsys.readouterr().err
        billed = [dict(host.bills) for host in hosts]
        assert main(command) == 0
    assert [dict(host.bills) for host in hosts] == billed
    assert "batches" not in capsys.readouterr().err  # there was nothing left to wait for
    assert "5 calls without a reply go in batches, looked at every 0.05 s; this can take a day" in said
    assert "33 replies collected from batches, 0 calls without one" in said
    for model in ("openai-chat/wire", "openai/wire", "anthropic/wire", "google/wire"):
        lines = [line for line in said.splitlines() if line.startswith(f"{model}: batch ")]
        assert lines[0].endswith("calls handed over")
        assert "ended: " in lines[-1]
    assert [len(one) for one in billed] == [6, 12, 12, 12]
    assert {times for one in billed for times in one.values()} == {1}
    assert [one.status for one in Store(RunFolder(tmp_path / "run")).read(JUDGMENTS)] == ["ok"] * 36
    assert no_key(tmp_path / "run")
