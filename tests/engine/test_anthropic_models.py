"""Claude models: the request of the Messages API field by field, and what its answers come to."""

from __future__ import annotations

import json

import pytest
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from provider_cases import CANARY, CLAUDE, MESSAGE, SAID, SCHEMA, bench_of
from provider_server import answer, serving

from assaymark.engine import Text
from assaymark.engine.providers.anthropic import (
    API_VERSION,
    SAMPLING_API_VERSION,
    AnthropicModel,
)
from assaymark.engine.providers.registry import provider_argument_problems
from assaymark.errors import InputError

REFUSED = {"type": "refusal", "category": "bio", "explanation": "It could do harm."}


@pytest.fixture(scope="module")
def bench():
    with bench_of(CLAUDE) as made:
        yield made


def error(kind: str, message: str, code: str | None = None) -> dict:
    """The body of a failure."""
    inner = {"type": kind, "message": message, **({"details": {"error_code": code}} if code else {})}
    return {"type": "error", "error": inner, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


def message(bench, **changes):
    """The reply that a changed message comes to."""
    return bench.reply(answer(MESSAGE | changes))


def test_a_request_says_what_the_call_says_and_nothing_else(bench):
    request = bench.sent(effort="low", args={"max_tokens": 900})
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.body == {
        "model": "claude-opus-5-5",
        "max_tokens": 900,
        "system": "You grade.\n\n1 is bad.",
        "messages": [{"role": "user", "content": "Context: prices é.\n\nDecision: bought."}],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
    }
    known = MessageCreateParamsNonStreaming.__required_keys__ | MessageCreateParamsNonStreaming.__optional_keys__
    assert set(request.body) <= known
    assert "temperature" not in known
    assert request.headers["anthropic-version"] == API_VERSION == "2026-10-21"
    assert request.headers["authorization"].startswith("Bearer canary")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-stainless-retry-count"] == "0"


def test_what_a_call_leaves_out_is_not_sent(bench):
    assert bench.sent(schema=None).body == {
        "model": "claude-opus-5-5",
        "max_tokens": 16_000,
        "system": "You grade.\n\n1 is bad.",
        "messages": [{"role": "user", "content": "Context: prices é.\n\nDecision: bought."}],
    }


@pytest.mark.parametrize("kind", ["adaptive", "disabled"])
def test_thinking_can_be_named(bench, kind):
    assert bench.sent(args={"thinking": kind}).body["thinking"] == {"type": kind}


def test_thinking_can_have_a_budget(bench):
    request = bench.sent(args={"thinking_budget": 2048, "max_tokens": 4000})
    assert request.body["thinking"] == {"type": "enabled", "budget_tokens": 2048}


def test_a_temperature_needs_the_version_of_the_api_that_has_one(bench):
    request = bench.sent(temperature=0.0, args={"api_version": SAMPLING_API_VERSION})
    assert request.body["temperature"] == 0.0
    assert request.headers["anthropic-version"] == "2023-06-01"


def test_the_environment_changes_neither_version_nor_key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-version: 1999-01-01")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another-key")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another-token")
    with serving(answer(MESSAGE)) as server:
        CLAUDE.asked(server)
    assert server.request.headers["anthropic-version"] == API_VERSION
    assert server.request.headers["authorization"] == f"Bearer {CANARY}"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"seed": 7}, r"anthropic/claude-opus-5-5: the Messages API has no seed; leave it out \(got 7\)"),
        ({"temperature": 0.0}, "no temperature since version 2026-10-21; leave it out, or set args.api_version"),
        ({"temperature": 1.5, "args": {"api_version": "2023-06-01"}}, "temperature must be from 0 to 1"),
        ({"effort": "minimal"}, "effort must be one of low, medium, high, xhigh, max"),
        ({"args": {"top_k": 5}}, "unknown argument 'top_k'"),
        ({"args": {"thinking_budget": 900}}, "from 1024"),
        ({"args": {"thinking_budget": 2000, "max_tokens": 2000}}, "less than max_tokens, 2000"),
        ({"args": {"thinking_budget": 2000, "thinking": "adaptive"}}, "exclude each other"),
    ],
)
def test_what_the_api_does_not_have_is_refused_and_nothing_sent(bench, asked, reason):
    bench.refuses(reason, **asked)


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "number", "minimum": 0}, "schema.score: 'minimum'"),
        ({"type": "array", "items": {"type": "integer", "multipleOf": 2}}, "schema.score.items: 'multipleOf'"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, "schema.score: 'minItems'"),
        ({"anyOf": [{"type": "null"}, {"type": "integer", "maximum": 5}]}, r"schema.score.anyOf\[1\]: 'maximum'"),
    ],
)
def test_a_schema_that_would_have_to_be_changed_is_refused(bench, schema, where):
    whole = SCHEMA | {"properties": {**SCHEMA["properties"], "score": schema}}
    bench.refuses(f"{where} is not known to the structured output", schema=Text.of(json.dumps(whole)))


def test_lists_may_be_asked_to_have_an_element(bench):
    least = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    whole = SCHEMA | {"properties": {**SCHEMA["properties"], "score": least}}
    assert bench.sent(schema=Text.of(json.dumps(whole))).body["output_config"]["format"]["schema"] == whole


def test_arguments_are_checked_together():
    problems = list(provider_argument_problems("anthropic/claude-x", {"max_tokens": -1, "api_version": "2024-01-01"}))
    assert [problem.split()[0] for problem in problems] == ["max_tokens", "api_version"]
    assert list(provider_argument_problems("openai/gpt-5.6", {"top_p": 1})) == []


def test_the_canned_message_is_one():
    assert Message.model_validate(MESSAGE, extra="forbid").usage.output_tokens == 57
    assert Message.model_validate(MESSAGE | {"stop_details": REFUSED}, extra="forbid").stop_details is not None


def test_a_reply_holds_what_was_said_counted_and_sent(bench):
    reply = bench.reply()
    assert (reply.text, reply.model, reply.finish, reply.fingerprint) == (SAID, "claude-opus-5-5", "stop", None)
    assert (reply.input_tokens, reply.cached_tokens) == (420, 300)  # read from and written to the cache included
    assert (reply.output_tokens, reply.reasoning_tokens) == (57, 40)
    assert json.loads(reply.raw) == MESSAGE
    assert reply.seconds > 0


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("tool_use", "stop"),
        ("something_new", "stop"),
    ],
)
def test_why_a_message_ends(bench, reason, finish):
    assert message(bench, stop_reason=reason).finish == finish


def test_a_refusal_says_why(bench):
    reply = message(bench, stop_reason="refusal", content=[], stop_details=REFUSED)
    assert (reply.finish, reply.text) == ("refusal", "It could do harm.")


def test_what_is_said_in_several_blocks_is_one_text(bench):
    blocks = [{"type": "text", "text": "a"}, {"type": "server_tool_use", "text": "x"}, {"type": "text", "text": "b"}]
    assert message(bench, content=blocks).text == "ab"


def test_counts_that_are_none_are_unknown(bench):
    reply = message(bench, usage={"input_tokens": -5, "output_tokens": "57", "cache_read_input_tokens": True})
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (None, None, None)
    assert message(bench, usage=None).output_tokens is None


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, error("authentication_error", "invalid x-api-key"), "ANTHROPIC_API_KEY was refused .401. .*right key"),
        (402, error("billing_error", "Your payment failed."), "no money or quota is left .402."),
        (400, error("invalid_request_error", "Your credit balance is too low"), "no money or quota is left .400."),
        (
            400,
            error("invalid_request_error", "You have reached your specified API usage limits. You will regain access"),
            "no money or quota is left .400.",
        ),
        (
            429,
            error("rate_limit_error", "crossed its monthly threshold", "enforced_spend_limit_reached"),
            "no money or quota is left .429.*crossed its monthly threshold",
        ),
    ],
)
def test_when_no_call_can_succeed_the_failure_says_so(bench, status, body, reason):
    failure = bench.failure(answer(body, status), match=reason)
    assert (failure.quota, failure.retryable) == (True, False)


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (400, error("invalid_request_error", "temperature: Extra inputs are not permitted"), "refused .400.*Extra in"),
        (400, error("invalid_request_error", "output_config.format.schema: bad"), "the reply schema was refused"),
        (403, error("permission_error", "no access"), "ANTHROPIC_API_KEY may not use 'claude-opus-5-5'"),
        (404, error("not_found_error", "model: claude-opus-5-5"), "unknown model 'claude-opus-5-5'"),
        (413, error("request_too_large", "too big"), "the prompt is too long"),
    ],
)
def test_a_call_that_was_refused_is_not_asked_again(bench, status, body, reason):
    failure = bench.failure(answer(body, status), match=reason)
    assert (failure.quota, failure.retryable) == (False, False)


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")])
def test_a_passing_failure_says_how_long_to_wait(bench, status, kind):
    failure = bench.failure(answer(error(kind, "wait"), status, {"retry-after": "2.5"}), match=f"{status}.*wait")
    assert (failure.retryable, failure.quota, failure.retry_after) == (True, False, 2.5)


@pytest.mark.parametrize("name", ["", " claude", "claude opus", "claude\n", "-x", "x" * 300])
def test_a_name_that_can_be_none_is_refused(name):
    with pytest.raises(InputError, match="must be anthropic/MODEL"):
        AnthropicModel(name)
