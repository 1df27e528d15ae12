"""Agents that are not ours: whatever they do is recorded, nothing they do hangs or ends a run, no secret is written."""

from __future__ import annotations

import json
import socket
import threading
import traceback
from unittest.mock import Mock

import pytest
from agent_servers import DECISION, agent_call, asked, failed, free_port, hang, http, read_request, serving
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.engine import Ledger, run_calls
from assaymark.engine.providers.http_agent import AgentFailure, HttpAgent, Site, _Post, reachable
from assaymark.engine.providers.registry import Models, check_ready, external_providers
from assaymark.errors import InputError, ModelError
from assaymark.records import parse

QUICK = 0.2
CANARY = "canary-4f2a/91+c7=="


def ask_server(answer, *, timeout_s=5.0, **more):
    """The reply of an agent whose server answers so, and the server."""
    with serving(answer) as server:
        return asked(HttpAgent(server.url, timeout_s=timeout_s, **more), agent_call(server.name)), server


def test_an_answer_is_kept_as_it_came_and_says_who_answered(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):  # they are not read
        monkeypatch.setenv(name, "http://127.0.0.1:1")
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
        (BOMB, "encoding", "content encoding 'gzip' was not asked for"),
        (http(DECISION[:20], length=len(DECISION)), "cut", f"20 of {len(DECISION)} bytes arrived"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "cut", "ended before the answer did"),
        (b"", "cut", "ended before the answer did"), (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP", "BadStatusLine"),
        (http(DECISION.encode("utf-16")), "not UTF-8", "byte 0 of the answer is no UTF-8"),
        (http(b'{"rationale": "n\xe9e"}'), "not UTF-8", "byte 16"), (flood, "too large", "more than 2,000,000 bytes"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_the_recorded_outcome(answer, kind, detail):
    timeout_s = QUICK if kind == "timeout" else 5.0
    reply, server = ask_server(answer, timeout_s=timeout_s)
    found = failed(reply)
    assert found["failure"] == kind
    assert detail in found["detail"]
    assert len(server.requests) == 1
    assert reply.model == server.name
    assert parse(AgentFailure, reply.text).failure == kind
    assert len(reply.text) < 1000


def test_a_failure_keeps_the_start_of_what_came_and_the_longest_answer_is_taken():
    assert failed(ask_server(http("no such desk\n\x1b[2J", status="404 No"))[0])["start"] == "no such desk [2J"
    assert failed(ask_server(flood)[0])["start"].startswith('{"rationale": "xxx')
    assert ask_server(http("x" * 1000), max_bytes=1000)[0].finish == "stop"
    assert failed(ask_server(http("x" * 1001), max_bytes=1000)[0])["failure"] == "too large"
    with serving(http(DECISION)) as server:  # a post that was left before it connected sends nothing
        post = _Post(Site.of(server.url), b"{}", None, 5.0, 1000, lambda: None)
        post.leave()
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
        name = f"https/127.0.0.1:{server.port}/"
        found = failed(asked(HttpAgent(f"https://127.0.0.1:{server.port}/", timeout_s=5), agent_call(name)))
    assert found["failure"] == "tls"

    def nobody(*_args, **_kwargs):
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr("socket.create_connection", nobody)
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
        calls = [agent_call(server.name, trial=trial, timeout_s=timeout_s) for trial in range(1, 9)]
        first, again = run_calls(ledger, calls, models), run_calls(ledger, calls, models)
        assert (first.made, first.failed, again.already, again.made) == (8, (), 8, 0)
        assert len(server.requests) == 8
    assert {failed(reply)["failure"] for _, reply in ledger.replies(call.key for call in calls)} == {kind}


def test_the_deadline_of_a_run_releases_an_agent_with_more_patience(ledger):
    with serving(hang) as server:
        call = agent_call(server.name, timeout_s=60)
        summary = run_calls(ledger, [call], Models({}, external_providers()), deadline_s=0.1, attempts=1)
        assert [failure.reason for failure in summary.failed] == ["no reply within 0.1 s"]
        for thread in threading.enumerate():  # the server still holds on: only cutting the connection ends it
            if thread.name == "external agent":
                thread.join(5)
                assert not thread.is_alive()


def test_reachable_connects_and_sends_nothing_or_says_that_nobody_is_there():
    with serving(http(DECISION)) as server:
        reachable(server.url)
        check_ready(HttpAgent(server.url))
    assert [request for request in server.requests if request] == []
    said = r"nothing answers at http://127\.0\.0\.1:\d+/decide \(Connection refused\); start the agent and run the same"
    with pytest.raises(ModelError, match=f"{said} command again"):
        check_ready(HttpAgent(f"http://127.0.0.1:{free_port()}/decide"))


def test_the_parts_of_an_address_and_what_is_none():
    for url, site in (
        ("http://127.0.0.1:8700/decide", Site(False, "127.0.0.1", 8700, "/decide")),
        ("https://agents.example/v1/@me", Site(True, "agents.example", 443, "/v1/@me")),
        ("http://[::1]:80", Site(False, "::1", 80, "/")),
    ):
        assert Site.of(url) == site
    for url in (
        "ftp://host/", "http://", "http:///decide", "http://host:0/", "http://host:65536/", "http://host/a b",
        "http://host/\r\nX: 1", "http://hôst/", "file:///etc/passwd", "http://" + "a" * 300,
    ):  # fmt: skip
        with pytest.raises(InputError, match="must be http://HOST:PORT/PATH"):
            HttpAgent(url)


def echo_token(connection, server):
    """Send back everything that was received, head and all."""
    connection.sendall(http(json.dumps({"rationale": server.requests[-1].decode()})))


def echo_token_and_fail(connection, server):
    connection.sendall(http(server.requests[-1][:400], status="500 " + CANARY))


@pytest.mark.parametrize("answer", [echo_token, echo_token_and_fail, hang, b"", CANARY.encode() + b"\r\n\r\n"])
def test_a_token_is_sent_and_never_written(answer, tmp_path, monkeypatch):
    monkeypatch.setenv("DESK_TOKEN", CANARY)
    with serving(answer) as server, Ledger.open(tmp_path / "ledger.db") as ledger:
        call = agent_call(server.name, token_env="DESK_TOKEN", timeout_s=QUICK)
        summary = run_calls(ledger, [call], Models({}, external_providers()))
        reply = ledger.reply(call.key)
        assert summary.made == 1
        assert f"Authorization: Bearer {CANARY}".encode() in server.requests[0]
        assert CANARY not in repr(reply)
        assert CANARY not in repr(summary)
        if answer is echo_token:
            assert "Authorization: Bearer [token]" in json.loads(reply.text)["rationale"]
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert CANARY.encode() not in written


@pytest.mark.parametrize("value", [None, "", "short", CANARY + "\r\nX-Injected: 1", CANARY + " ", CANARY + "é"])
def test_a_token_that_is_none_is_said_before_anything_is_sent(value, monkeypatch):
    if value is None:
        monkeypatch.delenv("DESK_TOKEN", raising=False)
    else:
        monkeypatch.setenv("DESK_TOKEN", value)
    del value
    with serving(http(DECISION)) as server:
        with pytest.raises(ModelError, match="DESK_TOKEN, named by token_env, holds no bearer token") as caught:
            asked(HttpAgent(server.url), agent_call(server.name, token_env="DESK_TOKEN"))
        frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [line for frame in frames.stack if "test_" not in frame.filename for line in (frame.locals or {}).values()]
    assert ours
    assert not [line for line in ours if CANARY in line]
    assert not caught.value.retryable
    assert server.requests == []


def test_a_defect_on_the_way_does_not_show_the_token(monkeypatch):
    class Broken:
        def getresponse(self):
            raise KeyError("a defect")

        def __getattr__(self, name):
            return Mock()

    monkeypatch.setenv("DESK_TOKEN", CANARY)
    monkeypatch.setattr("assaymark.engine.providers.http_agent.HTTPConnection", lambda *_, **__: Broken())
    with pytest.raises(KeyError, match="a defect") as caught:
        asked(HttpAgent("http://127.0.0.1:1/"), agent_call("http/127.0.0.1:1/", token_env="DESK_TOKEN"))
    frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert CANARY not in "".join(frames.format())


def test_an_address_with_a_secret_is_refused_and_not_shown():
    models = Models({}, external_providers())
    for url in ("http://me:hunter22@host/", "http://hunter22@host/", "http://host/?key=hunter22"):
        shown = [models.problem(url)]
        for attempt in (HttpAgent, models.__contains__, models.__getitem__):
            for name in (url, url.replace("://", "/"))[: 1 if attempt is HttpAgent else 2]:
                with pytest.raises(InputError, match=r"not shown: it may hold a secret") as caught:
                    attempt(name)
                shown.append(str(caught.value))
        assert not [text for text in shown if "hunter22" in text]
