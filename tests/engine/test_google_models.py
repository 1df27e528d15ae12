"""Gemini models: the request of generateContent field by field, and what its answers come to."""

from __future__ import annotations

import json

import pytest
from google.genai.types import GenerateContentResponse
from provider_cases import CANARY, GEMINI, GENERATED, SAID, SCHEMA, bench_of
from provider_server import answer, serving

from assaymark.engine import Text
from assaymark.engine.providers.google import API_VERSION, GoogleModel
from assaymark.engine.providers.registry import provider_argument_problems
from assaymark.errors import InputError

BLOCKED = {
    "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
    "usageMetadata": {"promptTokenCount": 420, "totalTokenCount": 420},
    "modelVersion": "gemini-3.8-flash-001",
}
CANDIDATE = GENERATED["candidates"][0]


@pytest.fixture(scope="module")
def bench():
    with bench_of(GEMINI) as made:
        yield made


def error(status: int, word: str, message: str, *details: dict) -> dict:
    """The body of a failure."""
    return {"error": {"code": status, "message": message, "status": word, "details": list(details)}}


def detail(kind: str, **fields) -> dict:
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def test_a_request_says_what_the_call_says_and_nothing_else(bench):
    request = bench.sent(effort="low", temperature=0.0, seed=7, args={"max_tokens": 900})
    assert API_VERSION == "v1"
    assert (request.method, request.path) == ("POST", "/v1/models/gemini-3.8-flash:generateContent")
    assert request.body == {
        "systemInstruction": {"parts": [{"text": "You grade.\n\n1 is bad."}], "role": "user"},
        "contents": [{"role": "user", "parts": [{"text": "Context: prices é.\n\nDecision: bought."}]}],
        "generationConfig": {
            "temperature": 0.0,
            "seed": 7,
            "maxOutputTokens": 900,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
            "thinkingConfig": {"thinking_level": "LOW"},  # the SDK's spelling; the API reads both
        },
    }
    assert request.headers["x-goog-api-key"] == CANARY
    assert "authorization" not in request.headers


def test_what_a_call_leaves_out_is_not_sent(bench):
    assert bench.sent(schema=None).body == {
        "systemInstruction": {"parts": [{"text": "You grade.\n\n1 is bad."}], "role": "user"},
        "contents": [{"role": "user", "parts": [{"text": "Context: prices é.\n\nDecision: bought."}]}],
        "generationConfig": {},
    }


@pytest.mark.parametrize("effort", ["minimal", "low", "medium", "high", "xhigh"])
def test_an_effort_is_a_thinking_level(bench, effort):
    assert bench.sent(effort=effort).body["generationConfig"]["thinkingConfig"] == {"thinking_level": effort.upper()}


@pytest.mark.parametrize("budget", [-1, 0, 512])
def test_thinking_can_have_a_budget(bench, budget):
    asked = bench.sent(args={"thinking_budget": budget}).body["generationConfig"]["thinkingConfig"]
    assert asked == {"thinking_budget": budget}


def test_the_environment_changes_nothing_of_a_request(bench, monkeypatch):
    plain = bench.sent()
    for name, value in {
        "GOOGLE_GENAI_API_VERSION": "v9",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_USE_ENTERPRISE": "true",
        "GOOGLE_CLOUD_PROJECT": "elsewhere",
        "GOOGLE_API_KEY": "another-key",
    }.items():
        monkeypatch.setenv(name, value)
    with serving(answer(GENERATED)) as server:
        GEMINI.asked(server)
    again = server.request
    assert (again.path, again.body) == (plain.path, plain.body)
    assert again.headers["x-goog-api-key"] == CANARY


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"seed": 2**31}, r"google/gemini-3.8-flash: the seed must be from -2147483648 to 2147483647"),
        ({"temperature": 2.5}, "temperature must be from 0 to 2"),
        ({"temperature": float("nan")}, "temperature must be from 0 to 2"),
        ({"effort": "max"}, "effort must be one of minimal, low, medium, high, xhigh"),
        ({"effort": "low", "args": {"thinking_budget": 0}}, "effort and thinking_budget exclude each other"),
        ({"args": {"top_k": 5}}, "unknown argument 'top_k'"),
    ],
)
def test_what_the_api_does_not_have_is_refused_and_nothing_sent(bench, asked, reason):
    bench.refuses(reason, **asked)


@pytest.mark.parametrize("keyword", ["multipleOf", "exclusiveMinimum", "exclusiveMaximum"])
def test_a_schema_that_would_have_to_be_changed_is_refused(bench, keyword):
    whole = SCHEMA | {"properties": {**SCHEMA["properties"], "score": {"type": "number", keyword: 2}}}
    reason = f"schema.score: '{keyword}' is not known to the structured output of the Gemini API"
    bench.refuses(reason, schema=Text.of(json.dumps(whole)))


def test_a_schema_may_have_bounds(bench):
    whole = SCHEMA | {"properties": {**SCHEMA["properties"], "score": {"type": "number", "minimum": 0, "maximum": 1}}}
    asked = bench.sent(schema=Text.of(json.dumps(whole))).body["generationConfig"]
    assert asked["responseJsonSchema"] == whole


def test_arguments_are_checked():
    problems = list(provider_argument_problems("google/gemini-x", {"max_tokens": 0, "thinking_budget": -2}))
    assert [problem.split()[0] for problem in problems] == ["max_tokens", "thinking_budget"]
    assert list(provider_argument_problems("anthropic/claude-x", {"thinking": "adaptive"})) == []


@pytest.mark.parametrize("body", [GENERATED, BLOCKED], ids=["whole", "blocked"])
def test_the_canned_answers_are_some(body):
    assert GenerateContentResponse.model_config["extra"] == "forbid"
    assert GenerateContentResponse.model_validate(body).model_version == "gemini-3.8-flash-001"


def test_a_reply_holds_what_was_said_counted_and_sent(bench):
    reply = bench.reply()
    assert (reply.text, reply.model, reply.finish, reply.fingerprint) == (SAID, "gemini-3.8-flash-001", "stop", None)
    assert (reply.input_tokens, reply.cached_tokens) == (420, 300)
    assert (reply.output_tokens, reply.reasoning_tokens) == (57, 40)  # thoughts are paid for as output
    assert json.loads(reply.raw) == GENERATED
    assert reply.seconds > 0


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "refusal"),
        ("RECITATION", "refusal"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("OTHER", "stop"),
        ("SOMETHING_NEW", "stop"),
    ],
)
def test_why_a_candidate_ends(bench, reason, finish):
    assert bench.reply(answer(GENERATED | {"candidates": [CANDIDATE | {"finishReason": reason}]})).finish == finish


def test_a_long_answer_is_not_continued_behind_our_back(bench):
    cut = CANDIDATE | {"finishReason": "CONTINUATION", "continuationToken": "dG9rZW4="}
    assert bench.reply(answer(GENERATED | {"candidates": [cut]})).finish == "length"
    assert len(bench.server.requests) == 1


def test_a_prompt_that_is_blocked_is_a_refusal(bench):
    reply = bench.reply(answer(BLOCKED))
    assert (reply.finish, reply.text, reply.input_tokens) == ("refusal", "", 420)


def test_an_answer_without_candidates_that_was_counted_is_an_empty_reply(bench):
    reply = bench.reply(answer({"usageMetadata": {"promptTokenCount": 420}}))
    assert (reply.finish, reply.text, reply.input_tokens, reply.model) == ("stop", "", 420, "google/gemini-3.8-flash")


def test_the_first_candidate_speaks(bench):
    other = CANDIDATE | {"content": {"parts": [{"text": "no"}]}, "index": 1}
    assert bench.reply(answer(GENERATED | {"candidates": [CANDIDATE, other]})).text == SAID


RETRY_IN = detail("RetryInfo", retryDelay="34.5s")


def quota(quota_id: str) -> dict:
    return detail("QuotaFailure", violations=[{"quotaMetric": "requests", "quotaId": quota_id, "quotaValue": "50"}])


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (
            400,
            error(400, "INVALID_ARGUMENT", "API key not valid.", detail("ErrorInfo", reason="API_KEY_INVALID")),
            "GOOGLE_API_KEY was refused .400. .*right key",
        ),
        (
            429,
            error(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", quota("RequestsPerDayPerProjectPerModel"), RETRY_IN),
            "no money or quota is left .429.",
        ),
        (
            403,
            error(403, "PERMISSION_DENIED", "Billing is off.", detail("ErrorInfo", reason="BILLING_DISABLED")),
            "no money or quota is left .403.",
        ),
    ],
)
def test_when_no_call_can_succeed_the_failure_says_so(bench, status, body, reason):
    failure = bench.failure(answer(body, status), match=reason)
    assert (failure.quota, failure.retryable) == (True, False)


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (400, error(400, "INVALID_ARGUMENT", "Invalid value at response_json_schema"), "the reply schema was refused"),
        (403, error(403, "PERMISSION_DENIED", "no"), "GOOGLE_API_KEY may not use 'gemini-3.8-flash'"),
        (404, error(404, "NOT_FOUND", "models/gemini-3.8-flash is not found"), "unknown model 'gemini-3.8-flash'"),
    ],
)
def test_a_call_that_was_refused_is_not_asked_again(bench, status, body, reason):
    failure = bench.failure(answer(body, status), match=reason)
    assert (failure.quota, failure.retryable) == (False, False)


@pytest.mark.parametrize(
    ("status", "body", "headers", "wait"),
    [
        (429, error(429, "RESOURCE_EXHAUSTED", "slow", quota("RequestsPerMinutePerProject"), RETRY_IN), {}, 34.5),
        (429, error(429, "RESOURCE_EXHAUSTED", "slow", RETRY_IN), {"Retry-After": "3"}, 3.0),
        (429, [error(429, "RESOURCE_EXHAUSTED", "slow", RETRY_IN)], {}, 34.5),
        (429, error(429, "RESOURCE_EXHAUSTED", "slow", detail("RetryInfo", retryDelay="soon")), {}, None),
        (429, {"error": {"message": "slow", "details": "none"}}, {}, None),
        (503, error(503, "UNAVAILABLE", "slow"), {}, None),
    ],
)
def test_a_passing_failure_says_how_long_to_wait(bench, status, body, headers, wait):
    failure = bench.failure(answer(body, status, headers), match=f"{status}.*slow")
    assert (failure.retryable, failure.quota, failure.retry_after) == (True, False, wait)


@pytest.mark.parametrize("name", ["", "../x", "a..b", "gemini?key=1", "a/b/c", "gemini flash", "x" * 300])
def test_a_name_that_can_be_none_is_refused(name):
    with pytest.raises(InputError, match="must be google/MODEL"):
        GoogleModel(name)
