"""Agents that are Python callables: what they return, raise or never finish is recorded, and nothing of it is fatal."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from dataclasses import replace
from functools import partial

import pytest
from agent_servers import NOON, agent_call, asked, context, failed
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.engine import Ledger, Message, Text, run_calls
from assaymark.engine.providers.http_agent import PythonAgent, load_agent
from assaymark.engine.providers.registry import Models, check_ready, external_providers
from assaymark.errors import InputError, ModelError
from assaymark.records import Action, Agent, Decision, Provenance, Rationale

QUICK = 0.2
NO_CONTEXT = '{"format": "assaymark context 1", "reply_schema": []}'
SECRET = "hunter22-hunter22"
HOLD = {"orders": [], "rationale": "Nothing moved."}


def told(decide, **more):
    """The reply of a callable."""
    return asked(PythonAgent(decide, **more), agent_call("python/mine:decide"))


def test_a_callable_is_handed_the_context_and_returns_a_mapping_or_its_text_at_once_or_later():
    async def wait_and_hold(_context):
        await asyncio.sleep(0.001)
        return HOLD

    seen = []
    for decide in (lambda given: seen.append(given) or HOLD, lambda _context: json.dumps(HOLD), wait_and_hold):
        reply = told(decide)
        assert json.loads(reply.text) == HOLD
        assert (reply.finish, reply.model) == ("stop", "python/mine:decide")
    assert seen == [context()]
    call = replace(agent_call("python/mine:decide"), messages=(Message("user", (Text.of(NO_CONTEXT),)),))
    with pytest.raises(ModelError, match="the request to python/mine:decide: 2 problems"):  # no outcome of the agent
        asked(PythonAgent(lambda _context: HOLD), call)


def test_a_decision_becomes_the_reply_format():
    decision = Decision(
        record_id="r", episode_id="e", step=1, cluster="c", decided_at=NOON,
        agent=Agent(id="mine", family="own", model="crew", fingerprint="9f"), context_id="",
        actions=(
            Action(instrument="Asset A", kind="buy", quantity=2.0), Action(instrument="Asset B", kind="close"),
            Action(instrument="Asset C", kind="hold"), Action(instrument="Asset D", kind="target_weight", weight=0.5),
        ),
        rationales=(
            Rationale(text="A rises.", kind="summary"), Rationale(text="By the venue.", kind="arena"),
            Rationale(text="B may not.", kind="risk"),
        ),
        confidence=0.7, format="orders-v1", provenance=Provenance(source="test"),
    )  # fmt: skip
    reply = told(lambda _context: decision)
    assert json.loads(reply.text) == {
        "orders": [
            {"instrument": "Asset A", "side": "buy", "quantity": 2.0}, {"instrument": "Asset B", "side": "close"},
            {"instrument": "Asset D", "side": "target_weight"},  # no order: for the reader to refuse
        ],
        "rationale": "A rises.\n\nB may not.", "confidence": 0.7, "model": "crew", "fingerprint": "9f",
    }  # fmt: skip
    assert (reply.model, reply.fingerprint) == ("crew", "9f")


def fail(_context):
    password = SECRET
    raise ValueError(f"desk is closed {len(password)}" + "!" * 5000)


def turned(_context):
    raise ValueError("buy\u200b \u202egold")


def leave_the_program(_context):
    sys.exit(3)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def fail_without_words(_context):
    raise Mute


def test_what_goes_wrong_in_a_callable_is_its_outcome():
    wrong, nest = "wrong type", {}
    nest["orders"] = nest  # without end
    for decide, kind, detail in (
        (fail, "exception", "ValueError: desk is closed 17!!!"), (leave_the_program, "exception", "SystemExit: 3"),
        (fail_without_words, "exception", "Mute"), (lambda: HOLD, "exception", "TypeError: .*positional argument"),
        (lambda _context: None, wrong, r"must return a mapping, a JSON text or a Decision \(got NoneType\)"),
        (lambda _context: b"{}", wrong, r"\(got bytes\)"), (lambda _context: nest, wrong, ""),
        (lambda _context: {"confidence": float("nan")}, wrong, "no JSON form"),
        (lambda _context: {"orders": {1, 2}}, wrong, "set has no JSON form"),
        (lambda _context: {"x": "y" * 2_000_001}, "too large", "more than 2,000,000 bytes"),
        (lambda _context: "é" * 1_000_001, "too large", "more than 2,000,000 bytes"),
    ):  # fmt: skip
        found = failed(told(decide))
        assert found["failure"] == kind
        assert re.search(detail, found["detail"])
        assert len(found["detail"]) <= 300
        assert SECRET not in str(found)
    # malformed actions stay for the reader to refuse
    reply = told(lambda _context: {"actions": "buy", "rationale": "up", "rationales": [3], "agent": "me"})
    assert json.loads(reply.text) == {"orders": "buy", "rationale": "up"}


def test_a_callable_that_hangs_is_left_behind(tmp_path):
    over = threading.Event()

    async def never(_context):
        await asyncio.to_thread(over.wait, 10)

    models = {"python/a:b": PythonAgent(lambda _context: over.wait(10)), "python/c:d": PythonAgent(never)}
    calls = [agent_call(name, timeout_s=QUICK) for name in models]
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert run_calls(ledger, calls, models).made == 2
        assert {failed(reply)["failure"] for _, reply in ledger.replies(call.key for call in calls)} == {"timeout"}
    over.set()


KEYS = st.sampled_from(["orders", "actions", "rationales", "agent", "kind", 1])
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12,
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(VALUES)
def test_nothing_that_is_returned_is_fatal(value):
    reply = told(lambda _context: value)
    assert reply.finish == "stop" or failed(reply)["failure"] in ("wrong type", "exception")


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A folder of modules that can be imported, and an installed package that names one as an entry point."""
    (tmp_path / "desk_agents.py").write_text(
        "class Team:\n    @staticmethod\n    def decide(context):\n"
        "        return {'orders': [], 'rationale': context.prompt}\nnumber = 3\n"
    )
    (tmp_path / "desk_broken.py").write_text("raise RuntimeError('no licence')\n")
    info = tmp_path / "desk-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: desk\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[assaymark.agents]\nteam = desk_agents:Team.decide\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("desk_agents", "desk_broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["python/desk_agents:Team.decide", "python/team"])
def test_a_callable_is_imported_when_it_is_first_needed(modules, name):
    models = Models({}, external_providers())
    assert name in models
    assert "desk_agents" not in sys.modules
    assert json.loads(asked(models[name], agent_call(name)).text)["rationale"] == "Décide."
    check_ready(models[name])


def test_a_callable_that_cannot_be_had_is_said_before_anything_is_recorded(modules):
    for name, problem in (
        ("desk_missing:decide", "cannot be loaded: there is no module 'desk_missing' .*PYTHONPATH=FOLDER"),
        ("desk_agents:missing", "cannot be loaded: AttributeError"),
        ("desk_broken:decide", "cannot be loaded: RuntimeError: no licence"),
        ("desk_agents:number", r"is no callable \(got int\)"),
    ):
        agent = PythonAgent(name)
        asking = partial(asked, agent)
        for attempt, one in ((load_agent, name), (check_ready, agent), (asking, agent_call("python/x"))):
            with pytest.raises(ModelError, match=problem):
                attempt(one)


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (fail, r"ValueError: desk is closed 17!+\.\.\. \(\S*test_python_agents\.py, line \d+\)"),
        (lambda _context: json.loads("{"), r"JSONDecodeError: .* \(\S*test_python_agents\.py, line \d+\)"),
        (turned, r"ValueError: buy\[U\+200B\] \[U\+202E\]gold \(\S*test_python_agents\.py, line \d+\)"),
        (lambda: HOLD, r"TypeError: .*positional argument.* \(\S*test_python_agents\.py, line \d+\)"),
    ],
)
def test_what_a_callable_raises_is_counted_with_its_place_and_a_strict_one_stops(tmp_path, decide, said):
    agent = PythonAgent(decide)
    spec = agent_call("python/mine:decide")
    assert [failed(asked(agent, spec))["failure"] for _ in range(3)] == ["exception"] * 3
    ((found, times),) = agent.raised.items()
    assert times == 3
    assert re.fullmatch(said, found)
    with Ledger.open(tmp_path / "ledger.db") as ledger, pytest.raises(InputError, match="python/mine:decide: raised"):
        run_calls(ledger, [spec], {spec.model: agent.held(True)})
    with Ledger.open(tmp_path / "ledger.db") as ledger:  # no outcome: it is asked again once it is mended
        assert run_calls(ledger, [spec], {spec.model: PythonAgent(lambda _context: HOLD)}).made == 1
