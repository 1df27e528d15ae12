"""The page on external agents: its examples are valid, its schemas are generated, its agents run."""

# ruff: noqa: I001

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import socket
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
from agent_servers import agent_call, context

from assaymark.agents import NOT_USABLE, REJECTED, envelope_of, parse_answer, reply_schema
from assaymark.benchmark import questions as question_set
from assaymark.cli import models
from assaymark.engine.providers.http_agent import (
    MOST_BYTES, PATIENCE_S, AgentRequest, FailureKind, HttpAgent, PythonAgent,
)  # fmt: skip
from assaymark.errors import ModelError
from assaymark.market import synthetic_history
from assaymark.portfolio import audit, settle
from assaymark.records import canonical_json, parse
from assaymark.workflow import DECISIONS, SCORES, RunFolder, Store, decide, tracks
from assaymark.workflow import lock_study as lock

ROOT = Path(__file__).resolve().parents[1]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
PAGE = (DOCS / "agents.md").read_text(encoding="utf-8")
SENT, ANSWERED = re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)
NAMES = ["Asset A", "Asset B"]
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def schemas(docs_script):
    """The schemas beside the page, which are as generated."""
    generate = docs_script("generate")
    made = {"context": generate.context_schema(), "agent-reply": generate.agent_reply_schema()}
    for name, text in made.items():
        assert (DOCS / f"{name}.schema.json").read_text(encoding="utf-8") == text
    return {name: jsonschema.Draft202012Validator(json.loads(text)) for name, text in made.items()}


def test_the_request_on_the_page_and_what_is_sent_fit_the_schema(schemas):
    schemas["context"].validate(json.loads(SENT))
    assert parse(AgentRequest, SENT).context.instruments[0].id == "Asset A"
    text = envelope_of(context()).text
    schemas["context"].validate(json.loads(text))
    assert text == canonical_json(AgentRequest(context=context(), reply_schema=reply_schema()))


def test_the_answer_on_the_page_is_one_and_its_schema_and_reader_agree(schemas):
    schemas["agent-reply"].validate(json.loads(ANSWERED))
    found = parse_answer(ANSWERED, NAMES).answer
    assert (found.rejected, found.model, found.input_tokens) == ((), "desk-7", 2140)
    for change in (
        {"orders": "none"}, {"rationale": None}, {"rationale": ""}, {"confidence": 1.5}, {"model": "x" * 201},
        {"mood": "good"}, {"orders": [{"instrument": "Asset A", "side": "close"}] * 51}, {"confidence": None},
        {"orders": [{"instrument": "Asset A", "side": "buy", "quantity": 1, "price": 3}]}, {"orders": []},
    ):  # fmt: skip
        answer = json.loads(ANSWERED) | change
        read = parse_answer(json.dumps(answer), NAMES).state == "ok"
        assert schemas["agent-reply"].is_valid(answer) == read, change


def test_every_failure_and_limit_and_what_a_question_gives_is_on_the_page():
    assert [kind for kind in get_args(FailureKind) if f"\n| `{kind}` | " not in PAGE] == []
    assert f"{MOST_BYTES:,} bytes" in PAGE
    assert f"{PATIENCE_S:g} seconds" in PAGE
    kinds = ("ReturnDirection", "TailRisk", "PositionSize", "PairAllocation", "SharpeAllocation", "Rebalancing",
             "RegimeCall")  # fmt: skip
    rows = re.findall(r"^\| (T\d) \| (.*) \|$", PAGE, re.M)
    named = {name: re.findall(r"`(\w+)`", words.partition(" (of ")[0]) for name, words in rows}
    given = [[one.name for one in dataclasses.fields(getattr(question_set, kind))] for kind in kinds]
    assert named == dict(zip(question_set.TEMPLATES, given, strict=True))


@pytest.fixture(scope="module")
def server():
    """The address of the example server, started as a person would, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{probe.getsockname()[1]}/decide"
    command = [sys.executable, "-S", str(EXAMPLES / "agent_server.py"), re.search(r":(\d+)", place)[1]]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(500):
                with suppress(ModelError):
                    HttpAgent(f"http://{place}").check()
                    break
                time.sleep(0.02)
            else:
                raise AssertionError("the example server did not start")
            yield place
        finally:
            process.terminate()


def answer_of(agent, model, seen):
    """The orders of an agent, which fit the form and keep every limit."""
    reply = asyncio.run(agent.complete(agent_call(model, seen=seen)))
    found = parse_answer(reply.text, NAMES).answer
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


@pytest.fixture(scope="module")
def both(server):
    """The examples as two agents or models of a file, and the models that answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        tables = "".join(
            f'\n[[KIND]]\nname = "{name}"\nfamily = "own"\nmodel = "{model}"\n'
            for name, model in (("best", f"http/{server}"), ("worst", "python/python_agent:decide"))
        )
        yield tables, models()


def usable(folder):
    """The decisions of a run, each of which can be used."""
    found = Store(folder).read(DECISIONS)
    assert [one.record_id for one in found if {*NOT_USABLE, REJECTED} & {*one.flags}] == []
    assert {one.agent.id for one in found} == {"best", "worst"}
    return found


SEASON = 'version = "2"\nname = "spring"\nprompt = "Grow the book."\nuniverse = 6\n[calendar]\nfirst = 2024-03-01\n'
STUDY = """
version = "2"
name = "own"
seed = 3
substrate = { seed = 3, regimes = ["pandemic", "recent"], cycles = 1 }
inference = { allow_hopeless = true }
rubric = { name = "v1.0" }
judges = [{ name = "auditor", family = "a", model = "reference/auditor" }]
"""


def test_the_examples_decide_in_a_season(both, tmp_path):
    tables, who = both
    folder, text = RunFolder(tmp_path / "run"), f"{SEASON}last = 2024-03-08\n"
    tracks.lock_season(folder, text + tables.replace("KIND", "agents"), "season.toml", who, now=NOW)
    done = tracks.run_season(folder, who, now=NOW)
    assert (len(done.done), done.absent) == (6, {})
    decisions = usable(folder)
    assert any(one.actions for one in decisions if one.agent.id == "best")
    assert "has the best days" in decisions[0].rationales[0].text


def test_the_examples_decide_in_a_study(both, tmp_path):
    tables, who = both
    folder = RunFolder(tmp_path / "run")
    lock(folder, STUDY + tables.replace("KIND", "agents"), "study.toml", models=who, now=NOW)
    decide(folder, who)
    assert len(usable(folder)) == 4


def test_the_examples_answer_the_benchmark(both, tmp_path):
    tables, who = both
    counts = {f"T{number}": 2 for number in range(1, 8)}
    questions = question_set.generate_questions(synthetic_history(0), counts=counts).questions
    question_set.write_questions(tmp_path / "set.jsonl", questions)
    plan = f"""
market = {{ instruments = 12 }}
pipeline = {{ profiles = ["balanced"], windows = ["covid-2020"], frequency = "quarterly" }}
questions = {{ per_template = 1, split = "train", file = "{tmp_path / "set.jsonl"}" }}
"""
    folder, text = RunFolder(tmp_path / "run"), plan + tables.replace("KIND", "models")
    tracks.bench_qa(folder, text, "plan.toml", who, now=NOW)
    tracks.bench_pipeline(folder, text, "plan.toml", who, now=NOW)
    states = {(one.name, one.state) for one in Store(folder).read(SCORES) if one.name in ("QA", "S1", "S2", "S3")}
    assert states == {(name, "ok") for name in ("QA", "S1", "S2", "S3")}
