"""Batches at OpenAI, Anthropic and Google by their official clients, against servers that speak each format."""

from __future__ import annotations

import asyncio
import json
import os
import traceback
from dataclasses import replace
from pkgutil import resolve_name

import pytest
from batch_servers import NOT_FOUND, AnthropicHost, GoogleHost, Host, OpenAIChatHost, OpenAIHost, hosting
from engine_calls import in_a_loop
from provider_cases import CANARY, CASES, CHAT, CLAUDE, GEMINI, OPENAI, SAID
from provider_server import answer, serving

from assaymark.engine import Reply, run_batches
from assaymark.engine.providers.batches import BatchRefused, BatchState
from assaymark.engine.providers.registry import batch_providers
from assaymark.errors import ModelError

HOSTS = {OPENAI: OpenAIHost, CHAT: OpenAIChatHost, CLAUDE: AnthropicHost, GEMINI: GoogleHost}
NONE = frozenset()


def calls(case, n, **more):
    return [case.call(trial=trial, **more) for trial in range(1, n + 1)]


class Desk:
    """A case, its server, and the batches there."""

    def __init__(self, case, host, server):
        self.case, self.host, self.server = case, host, server
        self.environ = self.at(server.url)
        self.asked = calls(case, 5)
        self.keys = [spec.key for spec in self.asked]
        self.batches = batch_providers(self.environ)[str(case)](self.asked[0])

    def at(self, url):
        return {self.case.key_env: CANARY, self.case.base_env: self.host.base(url)}

    def submit(self, label="assaymark-1", asked=None):
        return self.batches.submit([(spec.key, spec) for spec in asked or self.asked], label=label)

    def find(self, label="assaymark-1", keys=None, known=NONE):
        made = next(iter(self.host.batches.values())).made
        return self.batches.find(label, frozenset(keys or self.keys), made, known)

    def results(self, remote=None):
        return dict(self.batches.results(remote or self.submit()))

    def lines(self):
        (held,) = self.host.batches.values()
        return held.lines

    def run(self, ledger, environ=None, **more):
        terms = {"poll_s": 0.001, "settle_s": 0.0} | more
        return run_batches(ledger, self.asked, batch_providers(environ or self.environ), **terms)


@pytest.fixture(params=CASES, ids=str, scope="module")
def opened(request):
    """One client for many tests of a case: to make one takes time."""
    host = HOSTS[request.param]()
    with hosting(host) as server:
        desk = Desk(request.param, host, server)
        yield desk
        desk.batches.close()


@pytest.fixture
def desk(opened):
    """The desk as if nothing had happened there."""
    opened.server.requests.clear()
    host = opened.host
    for kept in (host.batches, host.files, host.bills, host.said, host.whole, host.more_lines):
        kept.clear()
    host.verdict, host.polls, host.twice = Host.verdict, 0, False
    return opened


def test_a_call_in_a_batch_asks_what_it_asks_alone(desk):
    """Byte for byte the body that the same call sends alone, so a batch is the same instrument."""
    old = {"args": {"api_version": "2023-06-01"}} if desk.case is CLAUDE else {}
    with serving(answer({})) as alone:
        model = desk.case.model(desk.case.name.partition("/")[2], environ=desk.at(alone.url))
        for more in ({"effort": "low"}, {"schema": None}, {"temperature": 0.5, **old}, {"args": {"max_tokens": 900}}):
            (spec,) = calls(desk.case, 1, **more)
            with pytest.raises(ModelError):
                asyncio.run(model.complete(spec))
            desk.host.batches.clear()
            desk.submit(asked=[spec])
            (line,) = desk.lines()
            assert next(line[name] for name in ("body", "params", "request") if name in line) == alone.requests[-1].body
            assert desk.host.key_of(line) == spec.key


def test_requests_say_what_they_should(desk):
    remote = desk.submit()
    sent = [(request.method, request.path.partition("?")[0]) for request in desk.server.requests]
    last, lines = desk.server.requests[-1], desk.lines()
    keys = {tuple(line) for line in lines}
    if desk.case in (OPENAI, CHAT):
        url = "/v1/responses" if desk.case is OPENAI else "/v1/chat/completions"
        assert sent == [("POST", "/v1/files"), ("POST", "/v1/batches")]
        assert last.body == {
            "input_file_id": "file-1", "endpoint": url, "completion_window": "24h",
            "metadata": {"assaymark": "assaymark-1"},
        }  # fmt: skip
        assert {(line["method"], line["url"]) for line in lines} == {("POST", url)}
        assert (keys, last.headers["authorization"]) == ({("custom_id", "method", "url", "body")}, f"Bearer {CANARY}")
    elif desk.case is CLAUDE:
        assert (sent, set(last.body)) == ([("POST", "/v1/messages/batches")], {"requests"})
        assert (keys, last.headers["anthropic-version"]) == ({("custom_id", "params")}, "2026-10-21")
    else:
        assert sent[-1] == ("POST", "/v1/models/gemini-3.8-flash:batchGenerateContent")
        assert last.body == {"batch": {"inputConfig": {"fileName": "files/in-1"}, "displayName": "assaymark-1"}}
        assert (keys, last.headers["x-goog-api-key"]) == ({("key", "request")}, CANARY)
    assert [desk.host.key_of(line) for line in lines] == desk.keys
    assert remote == desk.host.remote_name(1)
    for spec, line in zip(desk.asked, lines, strict=True):
        assert desk.batches.size(spec.key, spec) >= len(json.dumps(line))
    desk.server.requests.clear()
    (odd,) = calls(desk.case, 1, effort="heroic")  # refused before anything is sent
    with pytest.raises(ModelError, match="effort must be one of") as caught:
        desk.batches.size(odd.key, odd)
    assert (caught.value.retryable, desk.server.requests) == (False, [])


def test_a_batch_is_watched_found_and_cancelled_and_one_that_is_refused_says_why(desk):
    desk.host.polls = 1
    remote = desk.submit()
    assert desk.batches.state(remote).status in ("running", "ended")
    for polls, status in ((10**6, "running"), (0, "ended")):
        desk.host.polls = polls
        assert desk.batches.state(remote).status == status
        assert desk.find() == remote
    if desk.case is not CLAUDE:
        assert desk.find("assaymark-2") is None
    assert desk.find("assaymark-2", known={remote}) is None
    desk.batches.cancel(remote)
    assert desk.host.batches[remote].cancelled
    assert desk.batches.state(remote).status == "cancelled"
    desk.host.said = [NOT_FOUND]  # a batch that nobody knows is gone
    found = desk.batches.state("batches/nine" if desk.case is GEMINI else "nine")
    assert (found.status, found.done) == ("gone", 0)
    if desk.case in (OPENAI, GEMINI):
        held = desk.host.batches[remote]
        held.cancelled, held.status = False, "failed" if desk.case is OPENAI else "FAILED"
        reason = "too many enqueued tokens" if desk.case is OPENAI else "no reason is given"
        assert desk.batches.state(remote) == BatchState("refused", reason=reason, retryable=True)
    if desk.case is CLAUDE:  # another client's batch that has ended is known by its keys
        desk.host.batches.clear()
        others = [replace(spec, trial=90 + n) for n, spec in enumerate(desk.asked)]
        desk.submit("", others)
        assert desk.find() is None
        assert desk.find(keys=[spec.key for spec in others]) == "msgbatch_1"


def test_every_object_is_one_of_the_client_and_replies_are_read_as_they_are_read_alone(desk):
    """Of Gemini the client itself makes its types from what is answered, and refuses fields that it does not know."""
    remote = desk.submit()
    desk.batches.state(remote)
    of = {"Batch": "openai.types", "FileObject": "openai.types", "MessageBatch": "anthropic.types.messages"}
    for kind, body in desk.host.whole:
        if kind in of:
            known = resolve_name(f"{of[kind]}:{kind}")
            assert set(body) <= set(known.model_fields), kind
            known.model_validate(body)
    lines = [json.loads(line) for line in desk.host.results(desk.host.batches[remote]).splitlines()]
    if desk.case is CLAUDE:
        result = resolve_name("anthropic.types.messages:MessageBatchIndividualResponse")
        assert all(result.model_validate(line).custom_id in desk.keys for line in lines)
    if desk.case is GEMINI:
        reply = resolve_name("google.genai.types:GenerateContentResponse")
        assert all(reply.model_validate(line["response"]).candidates for line in lines)
    found = desk.results(remote)
    assert set(found) == set(desk.keys)
    for reply in found.values():
        assert (type(reply), reply.text, reply.finish) == (Reply, SAID, "stop")
        assert (reply.input_tokens, reply.output_tokens) == (420, 57)
        assert (reply.reasoning_tokens, reply.cached_tokens) == (40, 300)
        assert json.loads(reply.raw)


def test_what_has_no_reply_says_why_lines_that_are_none_are_no_results_and_long_ones_outcomes(desk, monkeypatch):
    words = dict(zip(desk.keys, ["busy", "bad", "expired", "nothing", "flagged"], strict=True))
    desk.host.verdict = lambda key, _times: words[key]
    found = desk.results()
    assert set(found) == {key for key in desk.keys if words[key] != "nothing"}
    busy, bad, expired, flagged = (found[key] for key in desk.keys if key in found)
    assert (busy.retryable, bad.retryable, expired.retryable) == (True, False, True)
    assert ("busy thing" in str(busy), "bad thing" in str(bad)) == (True, True)
    assert (flagged.finish, type(flagged)) == ("refusal", Reply)  # what a content filter stops is an outcome
    for module in ("batches", "base"):
        monkeypatch.setattr(f"assaymark.engine.providers.{module}.MOST_REPLY_BYTES", 0)
    long = json.dumps({"key" if desk.case is GEMINI else "custom_id": desk.keys[0], "junk": "x" * 70_000}).encode()
    desk.host.more_lines = [b"not JSON", b"[1]", b"{}", b"[" * 3000, long]
    desk.host.verdict = lambda _key, _times: "nothing"
    found = list(desk.batches.results(desk.submit("assaymark-2")))
    assert [key for key, _ in found] == ["", "", "", "", desk.keys[0]]
    assert all(isinstance(result, ModelError) for _, result in found[:4])
    assert (found[4][1].finish, found[4][1].raw) == ("failed", long.decode())


def test_a_refused_key_says_so_and_shows_no_key(desk):
    said = json.dumps({"error": {"message": f"bad key {CANARY}", "type": "authentication_error"}}).encode()
    desk.host.said = [(401, {}, said)] * 9
    state, find = desk.batches.state, desk.batches.find
    for act in (desk.submit, lambda: state(desk.host.remote_name(1)), lambda: find("l", NONE, 0)):
        with pytest.raises(ModelError, match=f"{desk.case.key_env} was refused") as caught:
            act()
        assert caught.value.quota
        assert CANARY not in "".join(traceback.format_exception(caught.value))


def error(status, message, headers=None):
    return status, headers or {}, json.dumps({"error": {"message": message, "code": status}}).encode()


def test_failures_may_pass_and_a_batch_that_is_turned_away_is_told_from_one_that_may_have_arrived(desk):
    remote = desk.submit()
    desk.host.said = [error(503, "overloaded")] * 2
    for act in (desk.batches.state, desk.results):
        with pytest.raises(ModelError, match="503") as caught:
            act(remote)
        assert caught.value.retryable
    assert len(desk.results(remote)) == 5
    desk.host.said = [error(429, "too many batches", {"retry-after": "7"})]
    with pytest.raises(BatchRefused, match="too many batches") as caught:
        desk.submit()
    assert (caught.value.retryable, caught.value.retry_after) == (True, 7.0)
    desk.host.said = [error(500, "oh")]
    with pytest.raises(ModelError, match="500") as caught:
        desk.submit()
    assert (isinstance(caught.value, BatchRefused), caught.value.retryable) == (False, True)
    bad = {"id": "../../v1/admin?x=1", "name": "../../v1/admin", "type": "message_batch", "metadata": {}}
    desk.host.said = [(200, {}, json.dumps(bad).encode())] * 3
    with pytest.raises(ModelError):  # an id is no address
        desk.submit()
    desk.host.said.clear()
    desk.host.more_lines = [b"<!DOCTYPE html><html>"]
    with pytest.raises(ModelError, match="answers with a web page and is not an API"):
        desk.results(remote)


def test_a_run_asks_again_what_failed_and_pays_the_rest_once(desk, ledger, tmp_path):
    words = dict(zip(desk.keys[:3], ["busy", "expired", "nothing"], strict=True))
    desk.host.verdict = lambda key, times: words.get(key) if times == 1 else None
    desk.host.twice, desk.host.polls, said = True, 1, []
    nobodys = replace(desk.asked[0], trial=77).key
    desk.host.more_lines = [json.dumps(desk.host.result(nobodys, None)).encode()]
    done = in_a_loop(lambda: desk.run(ledger, say=said.append))  # inside an event loop, too
    assert (done.made, done.failed, done.batches, done.left) == (5, (), 2, 0)
    assert {reply.text for _, reply in ledger.replies(desk.keys)} == {SAID}
    assert f"such as {nobodys[:64]}" in done.notes[0]
    assert ledger.verify() > 0
    assert desk.host.bills == {key: 2 if key in words else 1 for key in desk.keys}
    ledger.close()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert CANARY.encode() not in written
    assert CANARY not in "".join(said)


def test_a_run_finds_what_it_had_handed_over_and_without_a_key_sends_nothing(desk, ledger, monkeypatch):
    """The connection breaks after the batch is made: it is found again, and nothing is paid twice."""
    done = desk.run(ledger, {desk.case.key_env: ""})
    assert (done.made, done.left, desk.server.requests) == (0, 5, [])
    assert f"set the environment variable {desk.case.key_env}" in done.stopped[0]
    submit = type(desk.batches).submit

    def broken(self, items, *, label):
        submit(self, items, label=label)
        raise ModelError("the connection broke", retryable=True)

    monkeypatch.setattr(type(desk.batches), "submit", broken)
    done = desk.run(ledger)
    assert (done.made, done.batches) == (5, 0)
    (batch,) = (one for one in ledger.batches.all() if one.status == "ended")
    assert batch.certain == (desk.case is not CLAUDE)
    assert desk.host.bills == dict.fromkeys(desk.keys, 1)


def test_a_server_that_no_key_is_named_for_gets_none():
    host = OpenAIChatHost()
    with hosting(host) as server:
        (spec,) = calls(CHAT, 1, args={"base_url": f"{server.url}/v1"})
        batches = batch_providers({"OPENAI_API_KEY": CANARY})["openai-chat"](spec)
        remote = batches.submit([(spec.key, spec)], label="assaymark-1")
        assert batches.state(remote).status == "ended"
        assert len(list(batches.results(remote))) == 1
        assert batches.find("assaymark-1", NONE, 0) == remote
        batches.close()
    assert not any("authorization" in request.headers for request in server.requests)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_of_the_real_api(case):
    if not os.environ.get(case.key_env) or not os.environ.get("ASSAYMARK_TEST_BATCHES"):
        pytest.skip(f"{case.key_env} and ASSAYMARK_TEST_BATCHES are not both set: no real batch was made")
    provider = str(case)
    name = os.environ.get(f"ASSAYMARK_TEST_{provider.partition('-')[0].upper()}_MODEL", case.name.partition("/")[2])
    spec = replace(case.call(args={"max_tokens": 4000}), model=f"{provider}/{name}")
    batches = batch_providers()[provider](spec)
    remote = batches.submit([(spec.key, spec)], label="assaymark-test")
    assert batches.state(remote).status in ("running", "ended")
    batches.cancel(remote)
    batches.close()
