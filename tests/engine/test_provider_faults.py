"""Models of the four APIs against a provider that fails in every way: one attempt, one clear line, no key anywhere."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import traceback

import pytest
from engine_calls import JumpingLoop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from provider_cases import CANARY, CASES, CLAUDE, GEMINI, SAID, with_said
from provider_server import answer, cut, echo_headers, flood, free_url, hang, hang_up, page, serving, twice

from assaymark.engine import Ledger, Message, Text, run_calls
from assaymark.errors import ModelError

EACH = pytest.mark.parametrize("case", CASES, ids=str)


FAULTS = {
    "hang up": (hang_up, "broke off its answer|no connection", True),
    "cut": (cut({"candidates": [], "content": [], "padding": "x" * 100}), "broke off its answer", True),
    "half": (answer('{"type": "message", '), "is not JSON .it starts with", True),
    "empty": (answer(""), "is not JSON", True), "deep": (answer("[" * 200_000), "nested too deeply", False),
    "another's": (answer({"candidate": []}), "is not a (message|reply) of|did not send a", False),
    "list": (answer([1, 2]), "is not a JSON object", False),
    "page": (page(200), "answers with a web page and is not an API .200.; base_url must be the root of an API", False),
    "page 404": (page(404), "answers with a web page and is not an API .404.", False),
    "packed": (answer(b"\x1f\x8b\x08\x00", headers={"Content-Encoding": "gzip"}), "the body is compressed", True),
    "packed 401": (answer(b"\x1f\x8b\x08", 401, {"Content-Encoding": "gzip"}), "was refused .401.", False),
    "long 500": (answer(b"x" * 9_000_000, 500), "the provider failed .500.", True),
    "null": (answer("null", 500), "the provider failed .500.", True),
    "lists": (answer("[[1]]", 429), "too many requests .429.", True),
    "text": (answer('"busy"', 503), "the provider failed .503.*busy", True),
    **{f"echo {n}": (echo_headers(n), f".{n}.", n in (429, 500)) for n in (400, 401, 429, 500)},
}  # fmt: skip


@EACH
def test_a_fault_is_one_failed_attempt_in_one_line_without_a_key(bench, case, caplog):
    caplog.set_level(logging.DEBUG)
    for fault, (step, reason, retryable) in FAULTS.items():
        failure = bench.failure(step, match=reason)
        assert failure.retryable == retryable, fault
        assert failure.lost == (fault in ("hang up", "cut", "half", "empty", "deep", "packed")), fault
        told = [str(failure), repr(failure), repr(failure.__dict__), *traceback.format_exception(failure)]
        assert not any(CANARY in text for text in told), fault
    assert CANARY not in caplog.text


@EACH
def test_a_hanging_provider_is_left_within_the_time_of_the_call(bench, case, monkeypatch):
    """The clock of the call waits for its request to arrive, and jumps over the rest."""
    loop = JumpingLoop(held=lambda: not bench.server.requests)
    monkeypatch.setattr(bench, "loop", loop)
    try:
        assert bench.failure(hang, match=r"no reply from http\S+ within 30 s", args={"timeout_s": 30}).retryable
        assert 30 <= loop.time() < 40
    finally:
        bench.server.over.set()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        bench.server.over.clear()


@EACH
def test_a_reply_that_never_ends_or_is_too_long_is_recorded_and_not_paid_for_again(bench, case):
    reply = bench.reply(flood(66_000_000))
    assert (reply.finish, reply.model) == ("failed", case.name)
    assert reply.text.startswith("no answer: the reply has more than 64,000,000 bytes, of which the first were kept")
    assert 63_999_000 < len(reply.raw) < 64_000_000  # what could be the first half of a key is left out
    assert reply.raw == "x" * len(reply.raw)
    reply = bench.reply(flood(9_000_000))  # that is kept whole
    assert (reply.finish, reply.model, reply.raw) == ("failed", case.name, "x" * 9_000_000)
    assert reply.text == "no answer: the reply has 9,000,000 bytes, and at most 8,000,000 are read for one"


@EACH
def test_a_redirect_takes_nothing_along_and_a_reply_that_is_delivered_twice_answers_one_call(bench, case):
    with serving(answer(dict(case.canned))) as elsewhere:
        away = answer({}, 307, {"Location": f"{elsewhere.url}/v1/messages"})
        failure = bench.failure(away, match="redirects .307., which is not followed; correct base_url")
    assert elsewhere.requests == []
    assert not failure.retryable
    with pytest.raises(ModelError, match=r"no connection to http://127\.0\.0\.1:.* check that it runs") as caught:
        asyncio.run(case.made(free_url()).complete(case.call()))  # where nobody listens
    assert caught.value.retryable
    texts = ["first", "second", "third"]
    bench.server.script[:] = [twice(with_said(case.canned, text)) for text in texts]
    bench.server.requests.clear()

    async def three():
        return [(await bench.model.complete(case.call(trial=trial))).text for trial in (1, 2, 3)]

    assert bench.loop.run_until_complete(three()) == texts


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=6,
)  # fmt: skip


@pytest.mark.parametrize("case", [CLAUDE, GEMINI], ids=str)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_reply_is_fatal(bench, case, data):
    names = st.sampled_from([*case.canned, "error"])
    body = dict(case.canned) | data.draw(st.dictionaries(names, JSON, max_size=4))
    whole = {CLAUDE: "type", GEMINI: "usageMetadata"}[case]
    body[whole] = case.canned[whole]
    body |= {"content": []} if not isinstance(body.get("content"), list) else {}
    reply = bench.reply(answer(json.dumps(body)))
    assert isinstance(reply.text, str)
    assert reply.raw == json.dumps(body)
    assert all(count is None or count >= 0 for count in (reply.input_tokens, reply.output_tokens))


@EACH
def test_what_json_cannot_say_is_kept_as_it_came_and_no_key_reaches_a_reply(bench, case):
    raw = json.dumps(dict(case.canned)).replace("420", "NaN").replace("100", "1" * 100_000).replace("rose", "\\ud800")
    reply = bench.reply(answer(raw))
    assert (reply.text, reply.input_tokens, reply.raw) == (SAID, None, raw)
    named = json.dumps({**case.canned, **dict.fromkeys(("model", "modelVersion", "system_fingerprint"), "score")})
    escaped = "".join(f"\\u{ord(c):04X}" for c in CANARY)
    for form in (CANARY, CANARY.replace("/", "\\/"), escaped.lower(), escaped, CANARY[:9] + escaped[54:]):
        reply = bench.reply(answer(named.replace("score", form)))
        assert CANARY not in f"{reply!r} {json.loads(reply.raw)}"
        assert "[key]" in reply.text


@pytest.mark.parametrize("case", [CLAUDE, GEMINI], ids=str)
def test_half_a_surrogate_pair_keeps_no_text_from_its_judge_and_another_order_is_refused(bench, case):
    def asked_with(*messages):
        spoiled = type(case.call())(model=case.name, messages=messages, template="")
        bench.loop.run_until_complete(bench.model.complete(spoiled))

    body = bench.sent().body
    bench.server.requests.clear()
    asked_with(Message("user", (Text.of("rationale: \ud83d!"),)))
    assert "rationale: \\\\ud83d!" in bench.server.request.raw.decode()
    assert set(bench.server.request.body) <= set(body)
    for roles in ((), ("system",), ("user", "system")):
        with pytest.raises(ModelError, match="the messages must be those of the system") as caught:
            asked_with(*(Message(role, (Text.of("x"),)) for role in roles))
        assert not caught.value.retryable


@EACH
def test_without_a_key_nothing_is_sent_and_the_own_key_does_not_go_to_an_address_of_a_study(case, monkeypatch):
    bare = case.bare()
    with pytest.raises(ModelError, match=f"needs a key: set the environment variable {case.key_env}") as caught:
        asyncio.run(bare.complete(case.call()))
    assert (caught.value.quota, caught.value.retryable) == (True, False)
    with pytest.raises(ModelError, match=f"{case.name} needs a key.*; effort must be .*none at all"):
        bare.check(case.call(effort="none at all"))
    bare.check(case.call(args={"base_url": "http://127.0.0.1:8000/v1"}))
    case.made("http://127.0.0.1:9").check(case.call())
    assert CANARY not in repr(case.made("http://127.0.0.1:9"))
    for key in ("short", "two words here", "new\nline-here"):
        with pytest.raises(ModelError, match=f"{case.key_env} contains no key") as caught:
            asyncio.run(case.bare(**{case.key_env: key}).complete(case.call()))
        assert key not in str(caught.value)
    for name in (case.key_env, "OPENAI_ADMIN_KEY"):  # where the SDK would look for one by itself
        monkeypatch.setenv(name, CANARY)
    with serving(answer(dict(case.canned))) as server:
        model = case.made("http://127.0.0.1:9", GATEWAY_KEY="gateway-key-1")
        asyncio.run(model.complete(case.call(args={"base_url": f"{server.url}/proxy{case.root}"})))
        asyncio.run(model.complete(case.call(args={"base_url": server.url, "api_key_env": "GATEWAY_KEY"})))
    without, with_one = server.requests
    assert CANARY not in f"{without} {with_one}"
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & set(without.headers)
    assert without.path.startswith("/proxy/v1/")
    assert "gateway-key-1" in f"{with_one.headers.get('authorization')} {with_one.headers.get('x-goog-api-key')}"


@pytest.mark.parametrize("case", [CLAUDE, GEMINI], ids=str)
def test_without_the_sdk_the_message_says_how_to_install_it(case, monkeypatch):
    model = case.made("http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, {CLAUDE: "anthropic", GEMINI: "google.genai"}[case], None)
    with pytest.raises(ModelError, match=rf"pip install 'assaymark\[{case.provider}\]'") as caught:
        asyncio.run(model.complete(case.call()))
    assert caught.value.quota


@EACH
def test_a_model_is_asked_on_one_loop_after_another_and_leaves_nothing_open(case):
    async def asked(calls):
        return await asyncio.gather(*(model.complete(case.call(trial=trial)) for trial in range(calls)))

    async def asked_and_closed():
        first = await model.complete(case.call())
        await model.aclose()
        return [first.text, (await model.complete(case.call())).text]

    with serving(answer(dict(case.canned))) as server:
        model = case.made(server.url)
        assert {reply.text for _ in range(2) for reply in asyncio.run(asked(6))} == {SAID}
        assert asyncio.run(asked_and_closed()) == [SAID, SAID]
        gc.collect()  # an open socket would warn here, and a warning is an error
    assert len(server.requests) == 14


@EACH
def test_a_run_waits_asks_again_and_keeps_the_whole_reply_and_no_key(case, tmp_path):
    calls = [case.call(trial=trial) for trial in (1, 2, 3)]
    script = [hang_up, echo_headers(500), answer("{}", 429, {"Retry-After": "0"}), answer(dict(case.canned))]
    with serving(*script) as server, Ledger.open(tmp_path / "ledger.db") as ledger:
        models = {case.name: case.made(server.url)}
        summary = run_calls(ledger, calls, models, concurrency=1, backoff_s=0.001)
        again = run_calls(ledger, calls, models)
        kept = ledger.reply(calls[0].key)
    assert (summary.made, summary.retried, again.made, len(server.requests)) == (3, 3, 0, 6)
    assert (kept.text, json.loads(kept.raw), kept.reasoning_tokens) == (SAID, dict(case.canned), 40)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"the provider failed (500)" in stored  # it was looked at where a key would be
    assert CANARY.encode() not in stored
    assert b"no running event loop" not in stored  # as the reason why the connection broke
