"""OpenAI's two APIs: requests field by field, what answers come to, and every fault as one clear line without a key."""

from __future__ import annotations

import asyncio
import json

import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from openai_wire import (
    CANARY,
    COMPLETION,
    RESPONSE,
    SAID,
    SCHEMA,
    asked,
    bench_of,
    call,
    chat_call,
    completion,
    model_of,
    response,
    said,
    text_part,
    unknown_fields,
)
from provider_server import answer, cut, echo_headers, flood, free_url, hang, hang_up, page, serving, twice

from assaymark.engine import Ledger, run_calls
from assaymark.engine.providers.openai import OpenAIChatModel, OpenAIModel
from assaymark.engine.providers.registry import provider_argument_problems
from assaymark.engine.providers.transports import transport
from assaymark.errors import InputError, ModelError

PROMPT = [
    {"role": "system", "content": "You grade.\n\n1 is bad."},
    {"role": "user", "content": "Context: prices é.\n\nDecision: bought."},
]
CALLS = pytest.mark.parametrize(("spec", "canned"), [(call(), RESPONSE), (chat_call(), COMPLETION)], ids=["r", "chat"])


@pytest.fixture(scope="module")
def bench():
    with bench_of() as made:
        yield made


def test_a_response_is_asked_for_field_by_field(bench):
    spec = call(temperature=0.5, effort="low", args={"max_tokens": 900, "top_p": 0.9})
    request = bench.sent(spec)
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert request.body == {
        "model": "gpt-6.1-sol",
        "input": PROMPT,
        "store": False,
        "text": {"format": {"type": "json_schema", "name": "reply", "strict": True, "schema": SCHEMA}},
        "reasoning": {"effort": "low"},
        "temperature": 0.5,
        "max_output_tokens": 900,
        "top_p": 0.9,
    }
    assert request.headers["authorization"] == f"Bearer {CANARY}"
    assert request.headers["x-client-request-id"] == spec.key
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["connection"] == "close"


def test_what_a_call_leaves_out_is_not_sent(bench):
    assert bench.sent(call(schema=None)).body == {"model": "gpt-6.1-sol", "input": PROMPT, "store": False}


def test_the_canned_response_is_one_for_the_sdk():
    assert list(unknown_fields(Response.model_validate(RESPONSE))) == []


def test_a_response_is_read_whole(bench):
    reply = bench.replied(RESPONSE)
    assert (reply.text, reply.finish) == (SAID, "stop")
    assert (reply.model, reply.fingerprint) == ("gpt-6.1-sol-2026-09-29", None)
    assert (reply.input_tokens, reply.cached_tokens) == (420, 300)
    assert (reply.output_tokens, reply.reasoning_tokens) == (57, 40)
    assert json.loads(reply.raw) == RESPONSE
    assert reply.seconds > 0


@pytest.mark.parametrize(
    ("body", "finish", "text"),
    [
        (response(said({"type": "refusal", "refusal": "I cannot."})), "refusal", "I cannot."),
        (
            response(said(text_part('{"sc')), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "length",
            '{"sc',
        ),
        (response(status="incomplete", incomplete_details={"reason": "content_filter"}), "refusal", ""),
        (response(said(text_part("cut")), status="incomplete", incomplete_details=None), "length", "cut"),
        (response(said(text_part("I look."), phase="commentary"), said(text_part("4"))), "stop", "4"),
        (response(said(text_part("only this"), phase="commentary")), "stop", "only this"),
        (response(said(text_part("a"), text_part("b"))), "stop", "ab"),
        (response(), "stop", ""),
        (response(status="failed", error={"code": "bio_policy", "message": "Blocked."}), "refusal", "Blocked."),
    ],
)
def test_how_a_response_ends(bench, body, finish, text):
    reply = bench.replied(body)
    assert (reply.finish, reply.text) == (finish, text)


@pytest.mark.parametrize(
    ("more", "reason", "retryable"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "Oops."}}, r"failed \(500\).*Oops", True),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Slow."}}, "too many", True),
        ({"status": "failed", "error": {"code": "invalid_prompt", "message": "No."}}, "refused .400.*No", False),
        ({"status": "queued"}, "the response is queued", True),
        ({"status": "failed"}, "the response is failed", True),
        ({"output": None}, "none of the Responses API; .*openai-chat/NAME", False),
    ],
)
def test_a_failure_can_come_with_status_200(bench, more, reason, retryable):
    assert bench.failing(call(), answer({**RESPONSE, **more}), match=reason).retryable == retryable


def test_the_responses_api_has_no_seed(bench):
    bench.refusing(call(seed=7), "openai/gpt-6.1-sol: the Responses API takes no seed")


def test_a_completion_is_asked_for_field_by_field(bench):
    extra = '{"chat_template_kwargs": {"enable_thinking": false}}'  # as a study file can hold it
    args = {"max_tokens": 900, "top_p": 0.9, "extra_body": extra}
    request = bench.sent(chat_call(temperature=0.5, seed=7, effort="high", args=args))
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.body == {
        "model": "gpt-6.1-sol",
        "messages": PROMPT,
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}},
        "seed": 7,
        "temperature": 0.5,
        "reasoning_effort": "high",
        "top_p": 0.9,
        "max_tokens": 900,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_a_completion_is_asked_for_without_what_the_call_leaves_out(bench):
    assert bench.sent(chat_call(schema=None)).body == {"model": "gpt-6.1-sol", "messages": PROMPT}


@pytest.mark.parametrize(
    ("structured", "form"), [("json_object", {"type": "json_object"}), ("none", None)], ids=["object", "none"]
)
def test_a_server_without_schemas_can_be_asked_for_less(bench, structured, form):
    assert bench.sent(chat_call(args={"structured": structured})).body.get("response_format") == form


def test_openai_itself_is_told_the_length_by_the_name_it_has_for_it():
    spec = chat_call(args={"max_tokens": 900})
    model = model_of(spec, OPENAI_API_KEY=CANARY)
    at = transport(model.provider, spec, {"OPENAI_API_KEY": CANARY})
    assert model.request(spec, at)["max_completion_tokens"] == 900


def test_the_canned_completion_is_one_for_the_sdk():
    assert list(unknown_fields(ChatCompletion.model_validate(COMPLETION))) == []


def test_a_completion_is_read_whole(bench):
    reply = bench.replied(COMPLETION)
    assert (reply.text, reply.finish) == (SAID, "stop")
    assert (reply.model, reply.fingerprint) == ("gpt-6.1-sol-2026-09-29", "fp_44709d6fcb")
    assert (reply.input_tokens, reply.cached_tokens) == (420, 300)
    assert (reply.output_tokens, reply.reasoning_tokens) == (57, 40)
    assert json.loads(reply.raw) == COMPLETION


@pytest.mark.parametrize(
    ("body", "finish", "text"),
    [
        (completion('{"sc', "length"), "length", '{"sc'),
        (completion(None, "stop", refusal="I cannot."), "refusal", "I cannot."),
        (completion(None, "content_filter"), "refusal", ""),
        (completion("4", None), "stop", "4"),
        (completion("\ud800 lone"), "stop", "\ud800 lone"),
    ],
)
def test_how_a_completion_ends(bench, body, finish, text):
    reply = bench.replied(body)
    assert (reply.finish, reply.text) == (finish, text)


@pytest.mark.parametrize(
    "odd",
    [
        {"usage": None, "model": 7, "system_fingerprint": ["x"]},
        {"usage": {"prompt_tokens": -1, "completion_tokens": True, "prompt_tokens_details": 3}, "model": "x" * 300},
        {"usage": [], "model": "two\nlines"},
    ],
)
def test_what_a_compatible_server_gets_wrong_is_not_known(bench, odd):
    reply = bench.replied({**COMPLETION, "system_fingerprint": "", **odd})
    assert (reply.text, reply.model, reply.fingerprint) == (SAID, "openai-chat/gpt-6.1-sol", None)
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (None, None, None)


def test_an_error_in_a_body_with_status_200_is_one(bench):
    body = {"error": {"code": 429, "message": "upstream is busy"}}
    assert bench.failing(chat_call(), answer(body), match="too many requests .429.*upstream is busy").retryable


@pytest.mark.parametrize("choices", [None, [], [7], [{"message": None}]])
def test_another_api_is_named(bench, choices):
    bench.failing(chat_call(), answer({"choices": choices}), match="is none of the Chat Completions API")


def asked_at(server, spec, **environ):
    """The reply to a call in an environment that names no address."""
    return asyncio.run(model_of(spec, **environ).complete(spec))


def test_the_own_key_does_not_go_to_an_address_that_a_study_names():
    with serving(answer(COMPLETION)) as server:
        spec = chat_call(args={"base_url": f"{server.url}/v1"})
        asked_at(server, spec, OPENAI_API_KEY=CANARY)
    assert "authorization" not in server.request.headers
    assert CANARY.encode() not in server.request.raw


def test_an_administrators_key_goes_nowhere(monkeypatch):
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-canary-1")  # the SDK would take it from here
    with serving(answer(RESPONSE)) as server:
        spec = call(args={"base_url": f"{server.url}/v1"})
        asked_at(server, spec)
    assert "canary" not in str(server.request.headers)


def test_the_key_that_a_study_names_goes_to_its_address():
    with serving(answer(COMPLETION)) as server:
        spec = chat_call(args={"base_url": f"{server.url}/v1", "api_key_env": "ROUTER_KEY"})
        asked_at(server, spec, OPENAI_API_KEY="another-key-entirely", ROUTER_KEY=CANARY)
    assert server.request.headers["authorization"] == f"Bearer {CANARY}"


@CALLS
def test_without_a_key_nothing_is_sent_to_the_provider(spec, canned):
    with pytest.raises(ModelError, match="set the environment variable OPENAI_API_KEY") as caught:
        asyncio.run(model_of(spec).complete(spec))
    assert caught.value.quota
    assert not caught.value.retryable


@pytest.mark.parametrize("key", ["short", "two words here", "new\nline-here"])
def test_what_cannot_be_a_key_is_refused_and_not_shown(key):
    with pytest.raises(ModelError, match="OPENAI_API_KEY holds no key") as caught:
        asyncio.run(model_of(call(), OPENAI_API_KEY=key).complete(call()))
    assert key not in str(caught.value)


def test_a_model_can_be_checked_before_a_run():
    OpenAIModel("x", environ={"OPENAI_API_KEY": CANARY}).check()
    OpenAIChatModel("x", environ={}).check({"base_url": "http://127.0.0.1:8000/v1"})
    with pytest.raises(ModelError, match="openai/x needs a key"):
        OpenAIModel("x", environ={}).check()


def test_no_representation_shows_the_key():
    model = model_of(call(), OPENAI_API_KEY=CANARY)
    assert CANARY not in repr(model)


def error(message, code=None, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


LEAKY = f"Incorrect API key provided: {CANARY}. Find it at https://platform.openai.com."


@CALLS
def test_a_rate_limit_says_how_long_to_wait(bench, spec, canned):
    script = (answer(error("Slow down.", "rate_limit_exceeded"), 429, {"Retry-After": "7"}), answer(canned))
    found = bench.failing(spec, *script, match="too many requests .429. for 'gpt-6.1-sol': Slow down")
    assert (found.retryable, found.retry_after, found.quota) == (True, 7.0, False)


@pytest.mark.parametrize(
    ("step", "match", "retryable", "quota"),
    [
        (
            answer(error(LEAKY, "invalid_api_key"), 401),
            r"OPENAI_API_KEY was refused .401.*set the right key",
            False,
            True,
        ),
        (answer(error("You exceeded it.", "insufficient_quota"), 429), "no money or quota is left .429", False, True),
        (answer(error("Pay.", None), 402), "no money or quota is left .402", False, True),
        (answer(error("Insufficient balance", None), 400), "no money or quota is left .400", False, True),
        (answer(error("Not here.", "unsupported_country_region_territory"), 403), "not available to this", False, True),
        (answer(error("No access."), 403), "OPENAI_API_KEY may not use 'gpt-6.1-sol' .403", False, False),
        (answer(error("No such.", "model_not_found"), 404), "unknown model 'gpt-6.1-sol' at http.*404", False, False),
        (answer(error("Invalid schema for response_format"), 400), "the reply schema was refused .400", False, False),
        (answer(error("temperature is not supported"), 400), "refused .400.*temperature is not", False, False),
        (answer(error("Too long."), 413), "the prompt is too long", False, False),
        (answer(error("Oops."), 500), "the provider failed .500", True, False),
        (answer("upstream connect error", 503, kind="text/plain"), "failed .503.*upstream connect error", True, False),
        (answer(error("x" * 5000), 400), "x{200}", False, False),
        (answer("", 307, {"Location": "http://192.0.2.1/v1"}), "redirects .307., which is not followed", False, False),
        (page(404), "answers with a page and is no API .404.; base_url must be", False, False),
        (page(200), "answers with a page and is no API .200.; base_url must be", False, False),
        (page(502), "the provider failed .502", True, False),
        (answer("[" * 100_000), "nested too deeply", False, False),
        (answer('{"id": "resp_1", "output": [{"ty'), "is not JSON .it starts with", True, False),
        (answer("[]"), "is no JSON object", False, False),
        (answer(b"\x1f\x8b\x08\x00", 200, {"Content-Encoding": "gzip"}), "the body is packed", True, False),
        (cut(RESPONSE), "broke off its answer", True, False),
        (hang_up, "broke off its answer", True, False),
        (echo_headers(400), "refused .400", False, False),
    ],
)
def test_a_fault_is_one_clear_line(bench, step, match, retryable, quota):
    found = bench.failing(call(), step, match=match)
    assert (found.retryable, found.quota) == (retryable, quota)
    assert len(str(found)) < 600
    assert "\n" not in str(found)


@CALLS
def test_a_provider_that_hangs_is_left(bench, spec, canned):
    patient = call(spec.model, args={"timeout_s": 0.2})
    assert bench.failing(patient, hang, match=r"no reply from http\S+ within 0.2 s").retryable


def test_where_nobody_listens_says_so():
    with pytest.raises(ModelError, match=r"no connection to http\S+ .*see that it runs") as caught:
        asked(f"{free_url()}/v1", call())
    assert caught.value.retryable


def test_a_flood_is_a_recorded_outcome():
    with serving(flood(20_000_000)) as server:
        reply = asked(server, call())
    assert (reply.finish, reply.raw) == ("failed", "x" * 20_000_000)
    assert "the reply has 20,000,000 bytes" in reply.text


def test_a_key_that_is_sent_back_is_taken_out_of_the_reply():
    with serving(answer(completion(f"your key is {CANARY}"))) as server:
        reply = asked(server, chat_call())
    assert reply.text == "your key is [key]"
    assert CANARY not in reply.raw
    assert json.dumps(CANARY)[1:-1] not in reply.raw


@CALLS
def test_a_reply_that_comes_twice_is_not_the_answer_to_the_next_call(spec, canned):
    texts = ("first", "second", "third")
    bodies = [response(said(text_part(text))) if "output" in canned else completion(text) for text in texts]
    with serving(*(twice(body) for body in bodies)) as server:
        model = model_of(spec, OPENAI_API_KEY=CANARY, OPENAI_BASE_URL=f"{server.url}/v1")

        async def three():
            return [(await model.complete(call(spec.model, trial=trial))).text for trial in (1, 2, 3)]

        assert asyncio.run(three()) == ["first", "second", "third"]


def test_a_run_asks_each_call_once_and_stores_no_key(tmp_path):
    busy = answer(error("Slow down."), 429, {"Retry-After": "0"})
    calls = [call(trial=trial) for trial in (1, 2, 3)]
    with serving(busy, answer(RESPONSE)) as server:
        model = model_of(call(), OPENAI_API_KEY=CANARY, OPENAI_BASE_URL=f"{server.url}/v1")
        with Ledger.open(tmp_path / "ledger.db") as ledger:
            summary = run_calls(ledger, calls, {"openai/gpt-6.1-sol": model}, concurrency=1, backoff_s=0.01)
            again = run_calls(ledger, calls, {"openai/gpt-6.1-sol": model})
            assert ledger.reply(calls[0].key).raw is not None
    assert (summary.made, summary.retried, again.made) == (3, 1, 0)
    assert len(server.requests) == 4
    assert [CANARY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()].count(True) == 0


def test_one_model_serves_one_loop_after_another():
    with serving(answer(RESPONSE)) as server:
        model = model_of(call(), OPENAI_API_KEY=CANARY, OPENAI_BASE_URL=f"{server.url}/v1")
        assert [asyncio.run(model.complete(call())).text for _ in range(2)] == [SAID, SAID]


def test_its_connections_can_be_closed_early():
    async def twice_over(model):
        await model.complete(call())
        await model.aclose()
        return (await model.complete(call())).text

    with serving(answer(RESPONSE)) as server:
        model = model_of(call(), OPENAI_API_KEY=CANARY, OPENAI_BASE_URL=f"{server.url}/v1")
        assert asyncio.run(twice_over(model)) == SAID


@pytest.mark.parametrize("factory", [OpenAIModel, OpenAIChatModel])
@pytest.mark.parametrize("name", ["", " ", "two words", "-x", "x" * 201, "a?key=b"])
def test_a_name_that_cannot_be_one_is_refused(factory, name):
    with pytest.raises(InputError, match=r"must be openai(-chat)?/NAME"):
        factory(name)


@pytest.mark.parametrize(
    ("model", "args", "problem"),
    [
        ("openai/x", {"max_tokens": 0}, "max_tokens must be a whole number above 0 (got 0)"),
        ("openai/x", {"max_tokens": True}, "max_tokens must be a whole number above 0 (got True)"),
        ("openai/x", {"timeout_s": 0}, "timeout_s must be a number of seconds"),
        ("openai/x", {"top_p": "all"}, "top_p must be a number from 0 to 1"),
        ("openai/x", {"api_key_env": "sk-the key itself"}, "api_key_env must be the name of"),
        ("openai/x", {"base_url": "ftp://x"}, "base_url must be http://HOST:PORT/PATH"),
        ("openai/x", {"base_url": f"https://me:{CANARY}@x/v1"}, "not shown: it may hold a secret"),
        ("openai/x", {"baseurl": "none"}, "'baseurl' of openai/x; did you mean 'base_url'? Allowed: api_key_env,"),
        ("openai/x", {"structured": "none"}, "unknown argument 'structured' of openai/x; allowed: api_key_env,"),
        ("openai-chat/x", {"structured": "xml"}, "structured must be one of json_schema, json_object, none"),
        (
            "openai-chat/x",
            {"extra_body": {"seed": 4}},
            "extra_body must be an object, or the JSON text of one, without max_",
        ),
        ("openai-chat/x", {"extra_body": []}, "extra_body must be an object"),
        ("openai-chat/x", {"extra_body": '{"n": 2}'}, "extra_body must be an object"),
        ("openai-chat/x", {"extra_body": "{"}, "extra_body must be an object"),
    ],
)
def test_a_wrong_argument_is_named(bench, model, args, problem):
    (found,) = provider_argument_problems(model, args)
    assert problem in found
    assert CANARY not in found
    assert "the key itself" not in found
    bench.refusing(call(model, args=args), r"openai(-chat)?/x: ")


def test_arguments_of_others_are_not_looked_at():
    assert list(provider_argument_problems("reference/auditor", {"dark_current": 1})) == []


@CALLS
def test_an_effort_that_is_none_is_refused(bench, spec, canned):
    bench.refusing(call(spec.model, effort="enormous"), "effort must be one of none, minimal")


def test_a_schema_that_strict_output_does_not_know_is_refused(bench):
    loose = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "required": []}
    bench.refusing(
        call(schema=loose), "additionalProperties must be false; .*every property must be required; .*maxLength"
    )
