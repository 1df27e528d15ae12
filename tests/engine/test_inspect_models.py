"""Models behind Inspect's model API: its own mock provider, and its OpenAI provider over loopback."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace

import pytest
from engine_calls import call
from provider_cases import COMPLETION, SAID
from provider_server import answer, echo_headers, free_url, hang, page, serving

from assaymark.engine import Message, Text, run_calls
from assaymark.engine.providers.inspect import InspectModel, response_schema
from assaymark.engine.providers.registry import Models, provider_argument_problems
from assaymark.errors import InputError, ModelError
from assaymark.judging import load_rubric, rubric_form

KEY = "canary-key-4711"
MOCK, OPENAI = "inspect/mockllm/model", "inspect/openai/gpt-4o"
RUBRIC = json.loads(rubric_form(load_rubric("v1.0")).schema)
SCHEMA = Text.of(json.dumps(RUBRIC))


@pytest.fixture(scope="module")
def ai():
    return pytest.importorskip("inspect_ai.model", reason="inspect-ai is not installed (the extra [inspect])")


def asked(model, **changes):
    return asyncio.run(model.complete(replace(call(model=f"inspect/{model.name}"), **changes)))


def mock(reply):
    """Inspect's mock provider, which answers what a function of its arguments says."""
    return InspectModel("mockllm/model", options={"custom_outputs": reply})


def output(ai, text="fine", stop="stop", **usage):
    made = ai.ModelOutput.from_content("mock-1", text, stop_reason=stop)
    made.usage = ai.ModelUsage(**({"input_tokens": 7, "output_tokens": 3} | usage))
    return made


def test_what_is_refused_before_anything_is_asked_and_no_secret_shown(monkeypatch):
    for name in ("", "mockllm", "mockllm/", "/model", "Open AI/x", "openai/two words", "a/" + "x" * 201):
        with pytest.raises(InputError, match="must be inspect/PROVIDER/MODEL"):
            InspectModel(name)
    models = Models({}, {"inspect": InspectModel})
    assert models["inspect/openai/azure/gpt-4o"].name == "openai/azure/gpt-4o"
    assert models.problem("inspect/openai") is not None
    for args, said in (
        ({"api_key": KEY}, "unknown argument 'api_key'"), ({"provider_api_key": KEY}, "may hold a secret"),
        ({"provider_config": "x"}, "unknown argument 'provider_config'"),
        ({"provider_memoize": True}, "unknown argument 'provider_memoize'"),
        ({"provider_tier": ["x"]}, "must be a text, number or truth value"),
        ({"max_tokens": 0}, "max_tokens must be a whole number above 0"),
        ({"base_url": f"http://me:{KEY}@host/v1"}, "not shown"),
    ):  # fmt: skip
        (problem,) = provider_argument_problems(OPENAI, args)
        assert said in problem
        assert KEY not in problem
    with pytest.raises(ModelError, match="unknown argument 'top_k'") as caught:
        asked(InspectModel("openai/gpt-4o"), args={"top_k": 3})
    assert not caught.value.retryable
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(ModelError, match=r"pip install 'assaymark\[inspect\]'") as caught:
        asked(InspectModel("mockllm/model"))
    assert caught.value.quota


def test_what_goes_to_inspect_field_by_field(ai):
    seen = []
    model = mock(lambda *sent: seen.append(sent) or output(ai))
    asked(model, schema=SCHEMA, seed=5, temperature=0.25, effort="low", args={"max_tokens": 900})
    ((messages, tools, _, config),) = seen
    prompt = [("system", "Score the reasoning from 1 to 5."), ("user", "I buy fund 0.")]
    assert ([(one.role, one.text) for one in messages], tools) == (prompt, [])
    assert (config.seed, config.temperature, config.reasoning_effort, config.max_tokens) == (5, 0.25, "low", 900)
    assert (config.cache, config.max_retries, config.batch) == (False, 0, False)
    sent = config.response_schema
    assert (sent.json_schema.model_dump(exclude_none=True), sent.strict) == (RUBRIC, True)
    asked(model, messages=(Message("user", (Text.of("odd \ud800"),)),))
    assert seen[1][0][0].text == "odd \\ud800"
    lost = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}
    with pytest.raises(ModelError, match="would lose a part of the reply schema"):
        response_schema(replace(call(), schema=Text.of(json.dumps(lost))))


def test_what_a_reply_of_inspect_comes_to(ai):
    for stop, finish in (
        ("stop", "stop"), ("max_tokens", "length"), ("model_length", "length"), ("content_filter", "refusal"),
        ("unknown", "stop"),
    ):  # fmt: skip
        assert asked(mock(lambda *_, stop=stop: output(ai, "half", stop))).finish == finish
    # tokens of the cache are input tokens here
    usage = {"input_tokens_cache_read": 40, "input_tokens_cache_write": 3, "reasoning_tokens": 2}
    reply = asked(mock(lambda *_: output(ai, **usage)))
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens, reply.reasoning_tokens) == (50, 40, 3, 2)
    empty = ai.ModelOutput(model="mock-1", choices=[], usage=ai.ModelUsage(input_tokens=1))
    reply = asked(mock(lambda *_: empty))
    assert (reply.finish, reply.text) == ("failed", "the provider gave no answer")


def test_equal_calls_are_each_asked_and_a_failure_is_tried_once(ai, tmp_path, monkeypatch):
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    counted = []
    model = mock(lambda *_: counted.append(1) or output(ai, str(len(counted))))
    assert [asked(model).text for _ in range(3)] == ["1", "2", "3"]
    assert not (tmp_path / "cache").exists()  # nothing is kept by Inspect

    def fail(*_):
        counted.append(1)
        raise ConnectionResetError("gone")

    with pytest.raises(ModelError, match=r"inspect/mockllm: .*gone") as caught:
        asked(mock(fail))
    assert (len(counted), caught.value.__cause__, caught.value.__context__) == (4, None, None)


def test_a_run_goes_through_the_ledger_with_its_raw_replies(ai, ledger):
    model = mock(lambda messages, *_: output(ai, messages[-1].text))
    calls = [call(n, model=MOCK) for n in range(20)]
    summary = run_calls(ledger, calls, {MOCK: model})
    replies = dict(ledger.replies([one.key for one in calls]))
    assert (summary.made, summary.retried) == (20, 0)
    assert [replies[one.key].text for one in calls] == [f"I buy fund {n}." for n in range(20)]
    assert all(json.loads(reply.raw) for reply in replies.values())


@pytest.fixture
def keyed(ai, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("STUDY_KEY", KEY[::-1])
    return InspectModel("openai/gpt-4o")


def test_one_request_and_its_reply_and_whose_key_goes_where(keyed, monkeypatch):
    with serving(answer(COMPLETION)) as server:
        own = {"base_url": f"{server.url}/v1"}
        args = own | {"api_key_env": "STUDY_KEY"}
        reply = asked(keyed, schema=SCHEMA, seed=5, temperature=0.25, args=args)
        asked(keyed, args=own)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        asked(keyed)
    named, without, owners = server.requests
    assert named.path == "/v1/chat/completions"
    assert (named.body["model"], named.body["seed"], named.body["temperature"]) == ("gpt-4o", 5, 0.25)
    schema = named.body["response_format"]["json_schema"]
    assert (schema["schema"], schema["strict"]) == (RUBRIC, True)
    assert (reply.text, reply.model, reply.fingerprint) == (SAID, COMPLETION["model"], "fp_44709d6fcb")
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens, reply.reasoning_tokens) == (420, 300, 57, 40)
    assert json.loads(reply.raw)["id"] == COMPLETION["id"]
    assert named.headers["authorization"] == f"Bearer {KEY[::-1]}"
    assert KEY not in str(without.headers)  # to an address that a study names
    assert owners.headers["authorization"] == f"Bearer {KEY}"


def test_failures_are_told_by_the_rules_of_our_own_clients(keyed, monkeypatch):
    long = {"error": {"message": "maximum context length is 1 token", "code": "context_length_exceeded"}}
    for step, retryable, wait, quota, said in (
        (answer({"error": {"message": "slow"}}, 429, {"Retry-After": "7"}), True, 7.0, False, "too many requests"),
        (answer({"error": {"message": "no"}}, 401), False, None, True, "OPENAI_API_KEY was refused"),
        (answer({"error": {"code": "insufficient_quota"}}, 429), False, None, True, "no money or quota"),
        (page(404), False, None, False, "not an API"), (echo_headers(400), False, None, False, "request was refused"),
        (answer(long, 400), False, None, False, "the prompt is too long for"),
    ):  # fmt: skip
        with serving(step) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
            with pytest.raises(ModelError, match=said) as caught:
                asked(keyed)
        assert (caught.value.retryable, caught.value.retry_after, caught.value.quota) == (retryable, wait, quota)
        assert len(server.requests) == 1
        assert KEY not in str(caught.value)
        assert caught.value.__context__ is None
    with serving(hang) as server:
        slow = {"base_url": f"{server.url}/v1", "timeout_s": 0.2}
        gone = {"base_url": f"{free_url()}/v1"}
        for args, said in ((slow, r"no reply from .* within 0\.2 s"), (gone, "no connection to")):
            with pytest.raises(ModelError, match=said) as caught:
                asked(keyed, args=args)
            assert caught.value.retryable


def test_a_setting_that_the_provider_leaves_out_is_refused_and_not_paid_for_again(keyed):
    with serving(answer(COMPLETION | {"model": "o3"})) as server:
        model, said = InspectModel("openai/o3"), {"base_url": f"{server.url}/v1", "provider_responses_api": False}
        for _ in range(2):
            with pytest.raises(ModelError, match="does not send temperature for this model") as caught:
                asked(model, temperature=0.0, args=said)
            assert not caught.value.retryable
        assert len(server.requests) == 1
        assert asked(model, args=said).model == "o3"


def test_a_missing_key_is_one_plain_line(ai, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, args, said in (
        ("openai/gpt-4o", {"api_key_env": "STUDY_KEY"}, "set the environment variable STUDY_KEY"),
        ("nowhere/x", {}, "nowhere of model 'nowhere/x' not recognized"), ("openai/gpt-4o", {}, "No OPENAI_API_KEY"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said) as caught:
            asked(InspectModel(name), args=args)
    assert caught.value.quota
    assert "[" not in str(caught.value)
