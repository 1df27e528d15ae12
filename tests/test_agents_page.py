"""What the page about outside agents says: its examples are of the form, its schemas are generated, its agents run."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
from agent_servers import agent_call, context

from assaymark.agents.prompts import envelope_of
from assaymark.agents.replies import Answer, parse_answer, reply_schema
from assaymark.engine.models import HttpAgent, PythonAgent, reachable
from assaymark.engine.models.exchange import MOST_BYTES, PATIENCE_S, AgentRequest, FailureKind
from assaymark.errors import ModelError
from assaymark.portfolio.orders import audit, settle
from assaymark.records import canonical_json, parse

ROOT = Path(__file__).resolve().parents[1]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
PAGE = (DOCS / "agents.md").read_text(encoding="utf-8")
SENT, ANSWERED = re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)
NAMES = ["Asset A", "Asset B"]


@pytest.fixture(scope="module")
def schemas():
    """The schemas beside the page, which are as generated."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    made = {"context": generate.context_schema(), "agent-reply": generate.agent_reply_schema()}
    for name, text in made.items():
        assert (DOCS / f"{name}.schema.json").read_text(encoding="utf-8") == text
    return {name: jsonschema.Draft202012Validator(json.loads(text)) for name, text in made.items()}


def test_the_request_on_the_page_is_one(schemas):
    schemas["context"].validate(json.loads(SENT))
    assert parse(AgentRequest, SENT).context.instruments[0].id == "Asset A"


def test_what_is_sent_fits_the_schema_and_is_one_text(schemas):
    text = envelope_of(context()).text
    schemas["context"].validate(json.loads(text))
    assert text == canonical_json(AgentRequest(context=context(), reply_schema=reply_schema()))


def test_the_answer_on_the_page_is_one(schemas):
    schemas["agent-reply"].validate(json.loads(ANSWERED))
    found = parse_answer(ANSWERED, NAMES)
    assert isinstance(found, Answer)
    assert (found.rejected, found.model, found.input_tokens) == ((), "desk-7", 2140)


@pytest.mark.parametrize(
    "change",
    [
        {"orders": "none"},
        {"rationale": None},
        {"rationale": ""},
        {"confidence": 1.5},
        {"model": "x" * 201},
        {"mood": "good"},
        {"orders": [{"instrument": "Asset A", "side": "close"}] * 51},
        {"orders": [{"instrument": "Asset A", "side": "buy", "quantity": 1, "price": 3}]},
        {"confidence": None},
        {"orders": []},
    ],
)
def test_the_schema_of_the_answer_and_its_reader_agree(schemas, change):
    answer = json.loads(ANSWERED) | change
    assert schemas["agent-reply"].is_valid(answer) == isinstance(parse_answer(json.dumps(answer), NAMES), Answer)


def test_every_failure_and_limit_is_on_the_page():
    assert [kind for kind in get_args(FailureKind) if f"\n| `{kind}` | " not in PAGE] == []
    assert f"{MOST_BYTES:,} bytes" in PAGE
    assert f"{PATIENCE_S:g} seconds" in PAGE


# --- the examples -----------------------------------------------------------------------------------------------------


@pytest.fixture
def server():
    """The address of the example server, started as a person would."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-S", str(EXAMPLES / "agent_server.py"), str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield started(f"127.0.0.1:{port}/decide")
        finally:
            process.terminate()


def started(place):
    """``place``, once somebody answers there."""
    for _ in range(500):
        try:
            reachable(f"http://{place}")
        except ModelError:
            time.sleep(0.02)
        else:
            return place
    raise AssertionError("the example server did not start")


def answer_of(agent, model, seen):
    """The orders of an agent, which fit the form and keep every limit."""
    reply = asyncio.run(agent.complete(agent_call(model, seen=seen)))
    found = parse_answer(reply.text, NAMES)
    assert isinstance(found, Answer)
    assert found.rejected == ()
    after = settle(seen.portfolio, dict.fromkeys(NAMES, 100.0), found.orders, fee_bps=10)
    assert [check.rule for check in audit(after, seen.constraints) if not check.kept] == []
    return found, reply


def test_the_example_server_answers(server):
    agent = HttpAgent(f"http://{server}")
    found, reply = answer_of(agent, f"http/{server}", context())
    assert [(order.instrument, order.kind, order.quantity) for order in found.orders] == [("Asset A", "buy", 31.5)]
    assert "Asset A has the best hour, +1.20%" in found.rationale
    assert reply.model == "best-hour-1"
    assert answer_of(agent, f"http/{server}", context(best=-0.001))[0].orders == ()


def test_the_example_callable_answers(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    name = "python_agent:decide"
    found, _ = answer_of(PythonAgent(name), f"python/{name}", context())
    assert [(order.instrument, order.kind) for order in found.orders] == [("Asset B", "close")]
    assert f'model = "python/{name}"' in (EXAMPLES / "README.md").read_text(encoding="utf-8")
