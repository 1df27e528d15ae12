"""External agents: everything they do is recorded, nothing hangs or ends a run, and no secret is written."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import threading
import traceback
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import pytest
from agent_servers import DECISION, agent_call, asked, context, failed, free_port, hang, http, read_request, serving
from engine_calls import call as prompt_call
from engine_calls import calls
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.engine import Message, Reply, Text, run_calls
from assaymark.engine.loop import PLACES, Slot, current_slot
from assaymark.engine.providers import http_agent
from assaymark.engine.providers.http_agent import HttpAgent, PythonAgent
from assaymark.engine.providers.registry import Models, check_ready, external_providers
from assaymark.errors import InputError, ModelError, UnknownNameError
from assaymark.records import Action, Agent, Decision, Provenance, Rationale, parse

QUICK = 0.2
CANARY = "canary-4f2a/91+c7=="
SECRET = "hunter22-hunter22"
HOLD = {"orders": [], "rationale": "Nothing moved."}
NOBODY = "http://127.0.0.1:1/"


# Models by name: the fixed ones are listed, those of providers are made from their names


def test_models_list_the_fixed_and_make_the_others_once(ledger):
    fixed = HttpAgent(NOBODY)
    models = Models({"reference/steward": fixed}, external_providers())
    assert (list(models), len(models), models["reference/steward"]) == (["reference/steward"], 1, fixed)
    made = models["http/127.0.0.1:8700/decide"]
    assert (type(made), made.url) == (HttpAgent, "http://127.0.0.1:8700/decide")
    assert models["http/127.0.0.1:8700/decide"] is made
    assert models["https/agents.example/decide"].url == "https://agents.example/decide"
    assert isinstance(models["python/mine.agents:decide"], PythonAgent)
    assert list(models) == ["reference/steward"]
    steward = r"unknown model 'reference/stewart'. Did you mean 'reference/steward'"
    for name, problem in (
        ("reference/stewart", steward), ("htpp/host/decide", "Known: .*http/HOST:PORT/PATH"),
        ("http/", "unknown model 'http/'"), ("http", "unknown model 'http'"),
        ("http/host:99999/x", "must be http://HOST:PORT/PATH"),
        ("http://host/decide", r"'http://host/decide'\. Did you mean 'http/host/decide'\? Known: anthropic/MODEL"),
        ("python/mine.decide", "must be python/PACKAGE.MODULE:ATTRIBUTE or an installed entry point"),
        ("python/../evil:run", "must be python/PACKAGE.MODULE:ATTRIBUTE"),
    ):  # fmt: skip
        assert (name in models, models.get(name)) == (False, None)
        with pytest.raises(KeyError, match=problem):
            models[name]
        assert models.problem(name) is not None
    assert models.problem("reference/steward") is None
    with pytest.raises(UnknownNameError, match=steward):
        run_calls(ledger, [agent_call("reference/stewart")], models)


def test_the_arguments_of_external_agents_and_that_none_can_be_a_judge():
    problems, patience = http_agent.external_argument_problems, http_agent.patience
    assert list(problems("http/host/", {"timeout_s": 30, "token_env": "DESK_TOKEN"})) == []
    assert list(problems("reference/steward", {"anything": 1})) == []
    assert (patience({}), patience({"timeout_s": 2.5})) == (100.0, 2.5)
    wrong = list(problems("https/host/", {"token_env": "sk-abc 123", "timeout_s": True, "speed": 1}))
    assert [text.partition(" ")[0] for text in wrong] == ["token_env", "timeout_s", "unknown"]
    assert "sk-abc" not in "".join(wrong)
    (unknown,) = problems("python/m:f", {"token_env": "A"})
    assert unknown == "unknown argument 'token_env' of python/m:f; allowed: timeout_s"
    with pytest.raises(ModelError, match="timeout_s must be a number of seconds above 0"):
        asked(HttpAgent(NOBODY), agent_call("http/127.0.0.1:1/", timeout_s=float("inf")))
    for agent in (HttpAgent(NOBODY), PythonAgent(lambda _context: {})):
        with pytest.raises(ModelError, match=r"http/judge is an external agent: .* cannot judge or read a prompt"):
            asked(agent, prompt_call(model="http/judge"))


# Agents behind an address


def ask_server(answer, *, timeout_s=5.0, **more):
    """The reply of an agent whose server answers so, and the server."""
    with serving(answer) as server:
        return asked(HttpAgent(server.url, timeout_s=timeout_s, **more), agent_call(server.name)), server


def test_an_answer_is_kept_as_it_came_and_says_who_answered(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):  # they are not read
        monkeypatch.setenv(name, NOBODY)
    text = '{"orders": [], "rationale": "née", "model": "crew-2", "fingerprint": "9f", "usage": {"input_tokens": 7}}'
    reply, server = ask_server(http(text))
    assert (reply.text, reply.finish, reply.model, reply.fingerprint) == (text, "stop", "crew-2", "9f")
    assert (reply.input_tokens, reply.output_tokens) == (7, None)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /decide HTTP/1.1\r\n")
    assert b"Content-Type: application/json" in head
    assert b"Accept-Encoding: identity" in head
    assert body.decode() == agent_call(server.name).messages[0].text
    half = len(DECISION) // 2  # it may come in chunks
    chunks = "".join(f"{len(part):x}\r\n{part}\r\n" for part in (DECISION[:half], DECISION[half:], ""))
    reply, _ = ask_server(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}".encode())
    assert reply.text == DECISION


def test_a_text_of_another_form_is_left_to_the_one_parser():
    for text in ("<html>Welcome</html>", '{"confidence": NaN}', "", "[" * 50_000, '{"usage": 3, "model": ["x"]}'):
        reply, server = ask_server(http(text))
        assert (reply.text, reply.finish, reply.model, reply.input_tokens) == (text, "stop", server.name, None)
    for tokens in (-1, True, 1.5, "7", 10**15):  # what is no number of tokens is not one
        reply, _ = ask_server(http(json.dumps({"usage": {"output_tokens": tokens}, "model": "x" * 201})))
        assert (reply.output_tokens, reply.model.startswith("http/")) == (None, True)


def slow(connection, server):
    """A byte now and then: no single read ever times out."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    while not server.over.wait(0.02):
        connection.sendall(b" ")


def flood(connection, _server):
    """50 MB, or as much of it as is taken."""
    connection.sendall(http(b'{"rationale": "', length=50_000_000))
    for _ in range(50):
        connection.sendall(b"x" * 1_000_000)


MOVED = http("", status="307 Temporary Redirect", headers="Location: http://192.0.2.1/elsewhere\r\n")
BOMB = http(b"\x1f\x8b" + b"\0" * 500, headers="Content-Encoding: gzip\r\n")


@pytest.mark.parametrize(
    ("answer", "kind", "detail"),
    [
        (hang, "timeout", "no answer within 0.2 s"), (slow, "timeout", "no answer within 0.2 s"),
        (http("Traceback: secret", status="500 Oops"), "status", "status 500"),
        (http("", status="404 Not Found"), "status", "status 404"),
        (MOVED, "redirect", "status 307: redirects are not followed"),
        (BOMB, "encoding", "content encoding 'gzip' was not requested"),
        (http(DECISION[:20], length=len(DECISION)), "cut", f"20 of {len(DECISION)} bytes arrived"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "cut", "ended before the answer did"),
        (b"", "cut", "ended before the answer did"), (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP", "BadStatusLine"),
        (http(DECISION.encode("utf-16")), "not UTF-8", "byte 0 of the answer is no UTF-8"),
        (http(b'{"rationale": "n\xe9e"}'), "not UTF-8", "byte 16"), (flood, "too large", "more than 2,000,000 bytes"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_the_recorded_outcome(answer, kind, detail):
    reply, server = ask_server(answer, timeout_s=QUICK if kind == "timeout" else 5.0)
    found = failed(reply)
    assert (found["failure"], detail in found["detail"]) == (kind, True), found
    assert (len(server.requests), reply.model) == (1, server.name)
    assert parse(http_agent.AgentFailure, reply.text).failure == kind
    assert re.search(rf"^{kind}\b[^{{]*{re.escape(detail)}", http_agent.AgentFailure.words(reply.text))
    assert len(reply.text) < 1000


def test_a_failure_keeps_the_start_of_what_came_and_the_longest_answer_is_taken():
    assert failed(ask_server(http("no such desk\n\x1b[2J", status="404 No"))[0])["start"] == "no such desk [2J"
    assert failed(ask_server(flood)[0])["start"].startswith('{"rationale": "xxx')
    assert ask_server(http("x" * 1000), max_bytes=1000)[0].finish == "stop"
    assert failed(ask_server(http("x" * 1001), max_bytes=1000)[0])["failure"] == "too large"
    with serving(http(DECISION)) as server:  # a post that was left before it connected sends nothing
        post = http_agent._Post(HttpAgent(server.url).site, b"{}", None, 5.0, 1000, lambda: None)
        post.abort()
        assert post().failure == "timeout"
    assert b"".join(server.requests) == b""


def test_a_refused_connection_is_tried_three_times_and_an_agent_that_comes_up_asked_once():
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    url = f"127.0.0.1:{free_port()}/"
    reply = asked(HttpAgent(f"http://{url}", sleep=sleep), agent_call(f"http/{url}", timeout_s=5))
    assert (failed(reply)["failure"], waits) == ("refused", [0.2, 0.2])

    def answer_one(listener):
        connection, _ = listener.accept()
        with connection:
            read_request(connection)
            connection.sendall(http(DECISION))

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))  # nobody listens yet: refused
        desk = threading.Thread(target=answer_one, args=(listener,))

        async def come_up(_seconds):
            listener.listen()
            desk.start()

        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert asked(HttpAgent(url, sleep=come_up), agent_call("http/x")).text == DECISION
        desk.join()


def test_no_name_and_no_tls_are_recorded(monkeypatch):
    with serving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        name = f"127.0.0.1:{server.port}/"
        found = failed(asked(HttpAgent(f"https://{name}", timeout_s=5), agent_call(f"https/{name}")))
    assert found["failure"] == "tls"
    monkeypatch.setattr("socket.create_connection", Mock(side_effect=OSError(-2, "Name or service not known")))
    found = failed(asked(HttpAgent("http://agent.invalid/"), agent_call("http/agent.invalid/")))
    assert (found["failure"], found["detail"]) == ("unreachable", "Name or service not known")


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"]))
def test_no_bytes_are_fatal(tail, head):
    reply, _ = ask_server(head + tail, timeout_s=5.0)
    assert reply.finish in ("stop", "failed")
    assert isinstance(reply.text, str)


@pytest.mark.parametrize(
    ("answer", "kind", "timeout_s"), [(http("", status="503 Busy"), "status", 5.0), (hang, "timeout", QUICK)]
)
def test_a_failure_stands_and_is_never_asked_again_and_hung_agents_do_not_hang_a_run(ledger, answer, kind, timeout_s):
    with serving(answer) as server:
        models = Models({}, external_providers())
        some = [agent_call(server.name, trial=trial, timeout_s=timeout_s) for trial in range(1, 9)]
        first, again = run_calls(ledger, some, models), run_calls(ledger, some, models)
        assert (first.made, first.failed, again.already, again.made) == (8, (), 8, 0)
        assert len(server.requests) == 8
    assert {failed(reply)["failure"] for _, reply in ledger.replies(call.key for call in some)} == {kind}


def test_the_deadline_of_a_run_releases_an_agent_with_more_patience(ledger):
    with serving(hang) as server:
        call = agent_call(server.name, timeout_s=60)
        summary = run_calls(ledger, [call], Models({}, external_providers()), deadline_s=0.1, attempts=1)
        assert [failure.reason for failure in summary.failed] == ["no reply within 0.1 s"]
        for thread in threading.enumerate():  # the server still holds on: only cutting the connection ends it
            if thread.name == "external agent":
                thread.join(5)
                assert not thread.is_alive()


def test_a_check_connects_and_sends_nothing_or_says_that_nobody_is_there():
    with serving(http(DECISION)) as server:
        check_ready(HttpAgent(server.url))
    assert [request for request in server.requests if request] == []
    said = r"nothing answers at http://127\.0\.0\.1:\d+/decide \(Connection refused\); start the agent and run the same"
    with pytest.raises(ModelError, match=f"{said} command again"):
        check_ready(HttpAgent(f"http://127.0.0.1:{free_port()}/decide"))


def test_the_parts_of_an_address_and_what_is_none_and_one_with_a_secret_is_not_shown():
    for url, site in (
        ("http://127.0.0.1:8700/decide", (False, "127.0.0.1", 8700, "/decide")),
        ("https://agents.example/v1/@me", (True, "agents.example", 443, "/v1/@me")),
        ("http://[::1]:80", (False, "::1", 80, "/")),
    ):
        assert HttpAgent(url).site == site
    for url in (
        "ftp://host/", "http://", "http:///decide", "http://host:0/", "http://host:65536/", "http://host/a b",
        "http://host/\r\nX: 1", "http://hôst/", "file:///etc/passwd", "http://" + "a" * 300,
    ):  # fmt: skip
        with pytest.raises(InputError, match="must be http://HOST:PORT/PATH"):
            HttpAgent(url)
    models = Models({}, external_providers())
    for url in (f"http://me:{SECRET}@host/", f"http://{SECRET}@host/", f"http://host/?key={SECRET}"):
        shown = [models.problem(url)]
        named = url.replace("://", "/")
        for attempt, name in (
            (HttpAgent, url),
            (models.__getitem__, url),
            *((models.__contains__, n) for n in (url, named)),
        ):
            with pytest.raises(InputError, match=r"not shown: it may hold a secret") as caught:
                attempt(name)
            shown.append(str(caught.value))
        assert not [text for text in shown if SECRET in text]


def echo_token(connection, server):
    """Send back everything that was received, head and all."""
    connection.sendall(http(json.dumps({"rationale": server.requests[-1].decode()})))


def echo_token_and_fail(connection, server):
    connection.sendall(http(server.requests[-1][:400], status="500 " + CANARY))


@pytest.mark.parametrize("answer", [echo_token, echo_token_and_fail, hang, b"", CANARY.encode() + b"\r\n\r\n"])
def test_a_token_is_sent_and_never_written(answer, ledger, tmp_path, monkeypatch):
    monkeypatch.setenv("DESK_TOKEN", CANARY)
    with serving(answer) as server:
        call = agent_call(server.name, token_env="DESK_TOKEN", timeout_s=QUICK)
        summary = run_calls(ledger, [call], Models({}, external_providers()))
    reply = ledger.reply(call.key)
    assert summary.made == 1
    assert f"Authorization: Bearer {CANARY}".encode() in server.requests[0]
    assert CANARY not in f"{reply!r} {summary!r}"
    if answer is echo_token:
        assert "Authorization: Bearer [token]" in json.loads(reply.text)["rationale"]
    ledger.close()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert CANARY.encode() not in written


@pytest.mark.parametrize("value", [None, "", "short", CANARY + "\r\nX-Injected: 1", CANARY + " ", CANARY + "é"])
def test_a_token_that_is_none_is_said_before_anything_is_sent(value, monkeypatch):
    monkeypatch.delenv("DESK_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("DESK_TOKEN", value)
    del value
    with serving(http(DECISION)) as server:
        with pytest.raises(ModelError, match="DESK_TOKEN, named by token_env, contains no bearer token") as caught:
            asked(HttpAgent(server.url), agent_call(server.name, token_env="DESK_TOKEN"))
        frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [line for frame in frames.stack if "test_" not in frame.filename for line in (frame.locals or {}).values()]
    assert ours
    assert not [line for line in ours if CANARY in line]
    assert (caught.value.retryable, server.requests) == (False, [])


def test_a_defect_on_the_way_does_not_show_the_token(monkeypatch):
    broken = Mock(getresponse=Mock(side_effect=KeyError("a defect")))
    monkeypatch.setenv("DESK_TOKEN", CANARY)
    monkeypatch.setattr(http_agent, "HTTPConnection", lambda *_, **__: broken)
    with pytest.raises(KeyError, match="a defect") as caught:
        asked(HttpAgent(NOBODY), agent_call("http/127.0.0.1:1/", token_env="DESK_TOKEN"))
    frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert CANARY not in "".join(frames.format())


# Agents that are Python callables


def told(decide):
    """The reply of a callable."""
    return asked(PythonAgent(decide), agent_call("python/mine:decide"))


def test_a_callable_is_handed_the_context_and_returns_a_mapping_or_its_text_at_once_or_later():
    async def wait_and_hold(_context):
        await asyncio.sleep(0.001)
        return HOLD

    seen = []
    for decide in (lambda given: seen.append(given) or HOLD, lambda _context: json.dumps(HOLD), wait_and_hold):
        reply = told(decide)
        assert (json.loads(reply.text), reply.finish, reply.model) == (HOLD, "stop", "python/mine:decide")
    assert seen == [context()]
    none = (Message("user", (Text.of('{"format": "assaymark context 1", "reply_schema": []}'),)),)
    with pytest.raises(ModelError, match="the request to python/mine:decide: 2 problems"):  # no outcome of the agent
        asked(PythonAgent(lambda _context: HOLD), replace(agent_call("python/mine:decide"), messages=none))


def test_a_decision_becomes_the_reply_format():
    decision = Decision(
        record_id="r", episode_id="e", step=1, cluster="c", decided_at=context().cutoff,
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


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_what_goes_wrong_in_a_callable_is_its_outcome():
    wrong, nest = "wrong type", {}
    nest["orders"] = nest  # without end
    for decide, kind, detail in (
        (fail, "exception", "ValueError: desk is closed 17!!!"), (lambda _: sys.exit(3), "exception", "SystemExit: 3"),
        (Mock(side_effect=Mute), "exception", "Mute"), (lambda: HOLD, "exception", "TypeError: .*positional argument"),
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


def test_a_callable_that_hangs_is_left_behind(ledger):
    over = threading.Event()

    async def never(_context):
        await asyncio.to_thread(over.wait, 10)

    models = {"python/a:b": PythonAgent(lambda _context: over.wait(10)), "python/c:d": PythonAgent(never)}
    some = [agent_call(name, timeout_s=QUICK) for name in models]
    assert run_calls(ledger, some, models).made == 2
    assert {failed(reply)["failure"] for _, reply in ledger.replies(call.key for call in some)} == {"timeout"}
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
    info = tmp_path / "desk-1.0.dist-info"
    info.mkdir()
    for path, text in {
        tmp_path / "desk_agents.py": "class Team:\n    @staticmethod\n    def decide(context):\n"
        "        return {'orders': [], 'rationale': context.prompt}\nnumber = 3\n",
        tmp_path / "desk_broken.py": "raise RuntimeError('no licence')\n",
        info / "METADATA": "Metadata-Version: 2.1\nName: desk\nVersion: 1.0\n",
        info / "entry_points.txt": "[assaymark.agents]\nteam = desk_agents:Team.decide\n",
    }.items():
        path.write_text(text)
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
        ("desk_agents:number", r"is not callable \(got int\)"),
    ):
        agent = PythonAgent(name)
        attempts = (http_agent.load_agent, name), (check_ready, agent), (partial(asked, agent), agent_call("python/x"))
        for attempt, one in attempts:
            with pytest.raises(ModelError, match=problem):
                attempt(one)


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (fail, r"ValueError: desk is closed 17!+\.\.\."), (lambda _context: json.loads("{"), "JSONDecodeError: .*"),
        (turned, r"ValueError: buy\[U\+200B\] \[U\+202E\]gold"), (lambda: HOLD, "TypeError: .*positional argument.*"),
    ],
)  # fmt: skip
def test_what_a_callable_raises_is_counted_with_its_place_and_a_strict_one_stops(ledger, decide, said):
    agent, spec = PythonAgent(decide), agent_call("python/mine:decide")
    assert [failed(asked(agent, spec))["failure"] for _ in range(3)] == ["exception"] * 3
    ((found, times),) = agent.raised.items()
    assert times == 3
    assert re.fullmatch(said + r" \(\S*test_external_agents\.py, line \d+\)", found)
    with pytest.raises(InputError, match="python/mine:decide: raised"):
        run_calls(ledger, [spec], {spec.model: agent.with_strict(True)})
    # no outcome: it is asked again once it is mended
    assert run_calls(ledger, [spec], {spec.model: PythonAgent(lambda _context: HOLD)}).made == 1


# Large replies of many calls at once: each is kept, and only a few are in memory at any time


class Large:
    """A model whose every reply is large, and which sees how many of them there are at once."""

    def __init__(self, ledger, fails):
        self._ledger, self._fails, self._failed = ledger, fails, set()
        self.read, self.most = [], 0

    async def complete(self, call):
        place = current_slot()
        await place.acquire()
        await place.acquire()
        await asyncio.sleep(0.002)
        if self._fails and call.key not in self._failed:
            self._failed.add(call.key)
            raise ModelError("cut", retryable=True)
        self.read.append(call.key)
        self.most = max(self.most, len(self.read) - sum(1 for _ in self._ledger.replies(self.read)))
        return Reply(text="long", model=call.model)


@pytest.mark.parametrize("fails", [False, True])
def test_only_a_few_are_there_until_they_are_on_the_disk_and_a_failed_attempt_gives_its_place_back(ledger, fails):
    some = calls(12)
    model = Large(ledger, fails)
    assert run_calls(ledger, some, {some[0].model: model}, concurrency=12, backoff_s=0.001).failed == ()
    assert 1 <= model.most <= PLACES
    assert sum(1 for _ in ledger.replies(call.key for call in some)) == 12


def test_a_place_that_is_given_back_before_it_came_is_free():
    async def play():
        room = asyncio.Semaphore(1)
        first, second, third = Slot(room), Slot(room), Slot(room)
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(0)
        second.release()
        first.release()
        await waiting
        await asyncio.wait_for(third.acquire(), 1)
        return first.acquired, second.acquired, third.acquired

    assert asyncio.run(play()) == (False, False, True)


def test_long_answers_of_an_agent_are_kept_and_never_asked_again(ledger):
    text = json.dumps({"rationale": "x" * 2_500_000})
    with serving(http(text)) as server:
        some = [agent_call(server.name, trial=trial) for trial in range(1, 7)]
        for _ in range(2):
            run_calls(ledger, some, {server.name: HttpAgent(server.url)}, concurrency=6)
        assert len(server.requests) == 6
    for _, reply in ledger.replies(call.key for call in some):
        assert (failed(reply)["failure"], reply.raw) == ("too large", text)
