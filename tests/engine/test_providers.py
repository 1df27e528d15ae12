"""The four APIs: requests field by field, mapping of answers and failures, and the real APIs if keys are set."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any

import pytest
from provider_cases import (
    CANARY, CASES, CHAT, CLAUDE, COMPLETION, GEMINI, GENERATED, MESSAGE, OPENAI, RESPONSE, SAID, SCHEMA, completion,
    with_said,
)  # fmt: skip
from provider_server import answer, serving
from pydantic import BaseModel

from assaymark.engine import CallSpec, Message, Text
from assaymark.engine.providers.anthropic import API_VERSION, SAMPLING_API_VERSION
from assaymark.engine.providers.registry import provider_argument_problems
from assaymark.engine.providers.transports import transport
from assaymark.errors import InputError, ModelError

EACH = pytest.mark.parametrize("case", CASES, ids=str)
REPLIES = {
    OPENAI: "openai.types.responses:Response", CHAT: "openai.types.chat:ChatCompletion",
    CLAUDE: "anthropic.types:Message", GEMINI: "google.genai.types:GenerateContentResponse",
}  # fmt: skip
"""The SDK's type of a reply, by name: the SDKs are slow to import, and only some of these tests need them."""
SYSTEM, USER = "You grade.\n\n1 is bad.", "Context: prices é.\n\nDecision: bought."
PROMPT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
TURN = [{"role": "user", "content": USER}]
GEMINI_TURN = {
    "systemInstruction": {"parts": [{"text": SYSTEM}], "role": "user"},
    "contents": [{"role": "user", "parts": [{"text": USER}]}],
}


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An answer of the Responses API with this output."""
    return {**RESPONSE, "output": list(output), **more}


def said(*parts: Any, **more: Any) -> dict[str, Any]:
    """A message of a response; texts are parts."""
    content = [
        {"type": "output_text", "text": one, "annotations": []} if isinstance(one, str) else one for one in parts
    ]
    return {"id": "m", "type": "message", "status": "completed", "role": "assistant", "content": content, **more}


STRICT = {"name": "reply", "strict": True, "schema": SCHEMA}
EXTRA = '{"chat_template_kwargs": {"enable_thinking": false}}'  # as a study file can hold it


@pytest.mark.parametrize(
    ("case", "asked", "path", "body"),
    [
        (OPENAI, {"temperature": 0.5, "effort": "low", "args": {"max_tokens": 900, "top_p": 0.9}}, "/v1/responses", {
            "model": "gpt-6.1-sol", "input": PROMPT, "store": False,
            "text": {"format": {"type": "json_schema", **STRICT}}, "reasoning": {"effort": "low"},
            "temperature": 0.5, "max_output_tokens": 900, "top_p": 0.9,
        }),
        (OPENAI, {"schema": None}, "/v1/responses", {"model": "gpt-6.1-sol", "input": PROMPT, "store": False}),
        (CHAT, {"temperature": 0.5, "seed": 7, "effort": "high",
                "args": {"max_tokens": 900, "top_p": 0.9, "extra_body": EXTRA}}, "/v1/chat/completions", {
            "model": "gpt-6.1-sol", "messages": PROMPT, "seed": 7, "temperature": 0.5, "reasoning_effort": "high",
            "response_format": {"type": "json_schema", "json_schema": STRICT}, "top_p": 0.9, "max_tokens": 900,
            "chat_template_kwargs": {"enable_thinking": False},
        }),
        (CHAT, {"schema": None}, "/v1/chat/completions", {"model": "gpt-6.1-sol", "messages": PROMPT}),
        (CLAUDE, {"effort": "low", "args": {"max_tokens": 900}}, "/v1/messages", {
            "model": "claude-opus-5-5", "max_tokens": 900, "system": SYSTEM, "messages": TURN,
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        }),
        (CLAUDE, {"schema": None}, "/v1/messages", {
            "model": "claude-opus-5-5", "max_tokens": 16_000, "system": SYSTEM, "messages": TURN,
        }),
        (GEMINI, {"effort": "low", "temperature": 0.0, "seed": 7, "args": {"max_tokens": 900}},
         "/v1/models/gemini-3.8-flash:generateContent", {**GEMINI_TURN, "generationConfig": {
             "temperature": 0.0, "seed": 7, "maxOutputTokens": 900, "responseMimeType": "application/json",
             "responseJsonSchema": SCHEMA,
             "thinkingConfig": {"thinking_level": "LOW"},  # the SDK's spelling; the API reads both
         }}),
        (GEMINI, {"schema": None}, "/v1/models/gemini-3.8-flash:generateContent",
         {**GEMINI_TURN, "generationConfig": {}}),
    ],
)  # fmt: skip
def test_a_request_says_what_the_call_says_and_nothing_else(bench, case, asked, path, body):
    request = bench.sent(**asked)
    assert (request.method, request.path, request.body) == ("POST", path, body)
    key = "x-goog-api-key" if case is GEMINI else "authorization"
    assert request.headers[key] == (CANARY if case is GEMINI else f"Bearer {CANARY}")
    assert ("authorization" in request.headers) == (case is not GEMINI)
    assert (request.headers["accept-encoding"], request.headers["connection"]) == ("identity", "close")
    if case in (OPENAI, CHAT):
        assert request.headers["x-client-request-id"] == case.call(**asked).key
    if case is CLAUDE:
        params = resolve_name("anthropic.types.message_create_params:MessageCreateParamsNonStreaming")
        known = params.__required_keys__ | params.__optional_keys__
        assert set(request.body) <= known
        assert "temperature" not in known
        assert request.headers["anthropic-version"] == API_VERSION == "2026-10-21"
        assert request.headers["content-type"] == "application/json"
        assert request.headers["x-stainless-retry-count"] == "0"


LEAST = SCHEMA | {"properties": {**SCHEMA["properties"], "score": {"type": "array", "items": {"type": "string"},
                                                                   "minItems": 1}}}  # fmt: skip
BOUNDED = SCHEMA | {"properties": {**SCHEMA["properties"], "score": {"type": "number", "minimum": 0, "maximum": 1}}}


@pytest.mark.parametrize(
    ("case", "asked", "where", "value"),
    [
        (CHAT, {"args": {"structured": "json_object"}}, "response_format", {"type": "json_object"}),
        (CHAT, {"args": {"structured": "none"}}, "response_format", None),
        (CLAUDE, {"args": {"thinking": "adaptive"}}, "thinking", {"type": "adaptive"}),
        (CLAUDE, {"args": {"thinking": "disabled"}}, "thinking", {"type": "disabled"}),
        (CLAUDE, {"args": {"thinking_budget": 2048, "max_tokens": 4000}}, "thinking",
         {"type": "enabled", "budget_tokens": 2048}),
        (CLAUDE, {"temperature": 0.0, "args": {"api_version": SAMPLING_API_VERSION}}, "temperature", 0.0),
        (CLAUDE, {"schema": LEAST}, "output_config", {"format": {"type": "json_schema", "schema": LEAST}}),
        *((GEMINI, {"effort": one.lower(), "schema": None}, "generationConfig",
           {"thinkingConfig": {"thinking_level": one}}) for one in ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")),
        *((GEMINI, {"args": {"thinking_budget": one}, "schema": None}, "generationConfig",
           {"thinkingConfig": {"thinking_budget": one}}) for one in (-1, 0, 512)),
        (GEMINI, {"schema": BOUNDED}, "generationConfig",
         {"responseMimeType": "application/json", "responseJsonSchema": BOUNDED}),
    ],
)  # fmt: skip
def test_what_an_argument_changes_in_a_request(bench, case, asked, where, value):
    request = bench.sent(**asked)
    assert request.body.get(where) == value
    if case is CLAUDE:
        assert request.headers["anthropic-version"] == asked.get("args", {}).get("api_version", API_VERSION)


def test_openai_itself_is_told_the_length_by_the_name_it_has_for_it():
    spec, environ = CHAT.call(args={"max_tokens": 900}), {"OPENAI_API_KEY": CANARY}
    model = CHAT.bare(**environ)
    assert model.request(spec, transport(model.provider, spec, environ))["max_completion_tokens"] == 900


@pytest.mark.parametrize(
    ("case", "environ"),
    [
        (CLAUDE, {"ANTHROPIC_CUSTOM_HEADERS": "anthropic-version: 1999-01-01", "ANTHROPIC_API_KEY": "another-key",
                  "ANTHROPIC_AUTH_TOKEN": "another-token"}),
        (GEMINI, {"GOOGLE_GENAI_API_VERSION": "v9", "GOOGLE_GENAI_USE_VERTEXAI": "true",
                  "GOOGLE_GENAI_USE_ENTERPRISE": "true", "GOOGLE_CLOUD_PROJECT": "elsewhere",
                  "GOOGLE_API_KEY": "another-key"}),
    ],
    ids=str,
)  # fmt: skip
def test_the_environment_changes_nothing_of_a_request(bench, case, environ, monkeypatch):
    plain = bench.sent()
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with serving(answer(dict(case.canned))) as server:
        case.asked(server)
    again = server.request
    assert (again.path, again.body) == (plain.path, plain.body)
    for name in ("anthropic-version", "authorization", "x-goog-api-key"):
        assert again.headers.get(name) == plain.headers.get(name)


def unknown_fields(found: object) -> list[str]:
    """The fields of a parsed reply that the SDK's types do not know, all the way down."""
    if isinstance(found, list):
        return [name for part in found for name in unknown_fields(part)]
    if not isinstance(found, BaseModel):
        return []
    deeper = [unknown_fields(getattr(found, name)) for name in type(found).model_fields]
    return [*(found.model_extra or {}), *(name for names in deeper for name in names)]


REFUSED = {"type": "refusal", "category": "bio", "explanation": "It could do harm."}
BLOCKED = {
    "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
    "usageMetadata": {"promptTokenCount": 420, "totalTokenCount": 420}, "modelVersion": "gemini-3.8-flash-001",
}  # fmt: skip


def test_the_canned_answers_are_some_for_the_sdk():
    for case, body in (
        (OPENAI, RESPONSE), (CHAT, COMPLETION), (CLAUDE, MESSAGE), (CLAUDE, MESSAGE | {"stop_details": REFUSED}),
        (GEMINI, GENERATED), (GEMINI, BLOCKED),
    ):  # fmt: skip
        assert unknown_fields(resolve_name(REPLIES[case]).model_validate(body)) == [], case
    assert resolve_name(REPLIES[GEMINI]).model_config["extra"] == "forbid"


@EACH
def test_a_reply_holds_what_was_said_counted_and_sent(bench, case):
    """Input counts what was read from and written to a cache, output the thoughts, which are paid for as output."""
    model = {CLAUDE: "claude-opus-5-5", GEMINI: "gemini-3.8-flash-001"}.get(case, "gpt-6.1-sol-2026-09-29")
    fingerprint = "fp_44709d6fcb" if case is CHAT else None
    reply = bench.reply()
    assert (reply.text, reply.finish, reply.model, reply.fingerprint) == (SAID, "stop", model, fingerprint)
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens, reply.reasoning_tokens) == (420, 300, 57, 40)
    assert json.loads(reply.raw) == case.canned
    assert reply.seconds > 0


CANDIDATE = GENERATED["candidates"][0]
OTHER = CANDIDATE | {"content": {"parts": [{"text": "no"}]}, "index": 1}
CUT = CANDIDATE | {"finishReason": "CONTINUATION", "continuationToken": "dG9rZW4="}
BLOCKS = [{"type": "text", "text": "a"}, {"type": "server_tool_use", "text": "x"}, {"type": "text", "text": "b"}]
CLAUDE_ENDS = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
    "refusal": "refusal", "tool_use": "stop", "something_new": "stop",
}  # fmt: skip
GEMINI_ENDS = {
    "STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "refusal", "RECITATION": "refusal",
    "PROHIBITED_CONTENT": "refusal", "OTHER": "stop", "SOMETHING_NEW": "stop",
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "body", "finish", "text"),
    [
        (OPENAI, response(said({"type": "refusal", "refusal": "I cannot."})), "refusal", "I cannot."),
        (OPENAI, response(said('{"sc'), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
         "length", '{"sc'),
        (OPENAI, response(status="incomplete", incomplete_details={"reason": "content_filter"}), "refusal", ""),
        (OPENAI, response(said("cut"), status="incomplete", incomplete_details=None), "length", "cut"),
        (OPENAI, response(said("I look.", phase="commentary"), said("4")), "stop", "4"),
        (OPENAI, response(said("only this", phase="commentary")), "stop", "only this"),
        (OPENAI, response(said("a", "b")), "stop", "ab"), (OPENAI, response(), "stop", ""),
        (OPENAI, response(status="failed", error={"code": "bio_policy", "message": "Blocked."}), "refusal", "Blocked."),
        (CHAT, completion('{"sc', "length"), "length", '{"sc'),
        (CHAT, completion(None, "stop", refusal="I cannot."), "refusal", "I cannot."),
        (CHAT, completion(None, "content_filter"), "refusal", ""), (CHAT, completion("4", None), "stop", "4"),
        (CHAT, completion("\ud800 lone"), "stop", "\ud800 lone"),
        *((CLAUDE, MESSAGE | {"stop_reason": why}, finish, SAID) for why, finish in CLAUDE_ENDS.items()),
        (CLAUDE, MESSAGE | {"stop_reason": "refusal", "content": [], "stop_details": REFUSED}, "refusal",
         "It could do harm."),
        (CLAUDE, MESSAGE | {"content": BLOCKS}, "stop", "ab"),
        *((GEMINI, GENERATED | {"candidates": [CANDIDATE | {"finishReason": why}]}, finish, SAID)
          for why, finish in GEMINI_ENDS.items()),
        (GEMINI, GENERATED | {"candidates": [CUT]}, "length", SAID),  # and it is not continued behind our back
        (GEMINI, GENERATED | {"candidates": [CANDIDATE, OTHER]}, "stop", SAID), (GEMINI, BLOCKED, "refusal", ""),
        (GEMINI, {"usageMetadata": {"promptTokenCount": 420}}, "stop", ""),
    ],
)  # fmt: skip
def test_how_an_answer_ends(bench, case, body, finish, text):
    reply = bench.reply(body)
    assert (reply.finish, reply.text) == (finish, text)
    assert len(bench.server.requests) == 1
    if case is GEMINI:
        assert (reply.input_tokens, reply.model) == (420, body.get("modelVersion", "google/gemini-3.8-flash"))


@pytest.mark.parametrize(
    ("case", "odd"),
    [
        (CHAT, {"usage": None, "model": 7, "system_fingerprint": ["x"]}), (CLAUDE, {"usage": None, "model": None}),
        (CHAT, {"usage": {"prompt_tokens": -1, "completion_tokens": True, "prompt_tokens_details": 3},
                "model": "x" * 300, "system_fingerprint": ""}),
        (CHAT, {"usage": [], "model": "two\nlines", "system_fingerprint": ""}),
        (CLAUDE, {"usage": {"input_tokens": -5, "output_tokens": "57", "cache_read_input_tokens": True}, "model": 7}),
    ],
)  # fmt: skip
def test_what_a_server_gets_wrong_is_not_known(bench, case, odd):
    reply = bench.reply({**case.canned, **odd})
    assert (reply.text, reply.model, reply.fingerprint) == (SAID, case.name, None)
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (None, None, None)


def openai_error(message, code=None, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def claude_error(kind: str, message: str, code: str | None = None) -> dict:
    inner = {"type": kind, "message": message, **({"details": {"error_code": code}} if code else {})}
    return {"type": "error", "error": inner, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


def google_error(status: int, word: str, message: str, *details: dict) -> dict:
    return {"error": {"code": status, "message": message, "status": word, "details": list(details)}}


def detail(kind: str, **fields) -> dict:
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def quota(quota_id: str) -> dict:
    return detail("QuotaFailure", violations=[{"quotaMetric": "requests", "quotaId": quota_id, "quotaValue": "50"}])


RETRY_IN = detail("RetryInfo", retryDelay="34.5s")
LEAKY = f"Incorrect API key provided: {CANARY}. Find it at https://platform.openai.com."
NO_MONEY, WRONG = "no money or quota is left ", "was refused .40[01]. .*set the right key"
BAD, EXHAUSTED = "invalid_request_error", "RESOURCE_EXHAUSTED"
PER_DAY, PER_MINUTE = quota("RequestsPerDayPerProjectPerModel"), quota("RequestsPerMinutePerProject")
FAILURES = {
    # no call can succeed
    (OPENAI, "quota"): [
        (401, openai_error(LEAKY, "invalid_api_key"), f"OPENAI_API_KEY {WRONG}"),
        (429, openai_error("You exceeded it.", "insufficient_quota"), f"{NO_MONEY}.429"),
        (402, openai_error("Pay."), f"{NO_MONEY}.402"), (400, openai_error("Insufficient balance"), f"{NO_MONEY}.400"),
        (403, openai_error("Not here.", "unsupported_country_region_territory"), "not available to this"),
    ],
    (CLAUDE, "quota"): [
        (401, claude_error("authentication_error", "invalid x-api-key"), f"ANTHROPIC_API_KEY {WRONG}"),
        (402, claude_error("billing_error", "Your payment failed."), f"{NO_MONEY}.402."),
        (400, claude_error(BAD, "Your credit balance is too low"), f"{NO_MONEY}.400."),
        (400, claude_error(BAD, "You have reached your specified API usage limits. You will regain access"),
         f"{NO_MONEY}.400."),
        (429, claude_error("rate_limit_error", "crossed its monthly threshold", "enforced_spend_limit_reached"),
         f"{NO_MONEY}.429.*crossed its monthly threshold"),
    ],
    (GEMINI, "quota"): [
        (400, google_error(400, "INVALID_ARGUMENT", "Not valid.", detail("ErrorInfo", reason="API_KEY_INVALID")),
         f"GOOGLE_API_KEY {WRONG}"),
        (429, google_error(429, EXHAUSTED, "Quota exceeded.", PER_DAY, RETRY_IN), f"{NO_MONEY}.429."),
        (403, google_error(403, "PERMISSION_DENIED", "Off.", detail("ErrorInfo", reason="BILLING_DISABLED")),
         f"{NO_MONEY}.403."),
    ],
    # this call cannot
    (OPENAI, None): [
        (403, openai_error("No access."), "OPENAI_API_KEY may not use 'gpt-6.1-sol' .403"),
        (404, openai_error("No such.", "model_not_found"), "unknown model 'gpt-6.1-sol' at http.*404"),
        (400, openai_error("Invalid schema for response_format"), "the reply schema was refused .400"),
        (400, openai_error("temperature is not supported"), "refused .400.*temperature is not"),
        (413, openai_error("Too long."), "the prompt is too long"), (400, openai_error("x" * 5000), "x{200}"),
        (200, RESPONSE | {"status": "failed", "error": {"code": "invalid_prompt", "message": "No."}}, "refused .400."),
        (200, RESPONSE | {"output": None}, "not a reply of the Responses API; .*openai-chat/NAME"),
    ],
    (CHAT, None): [(200, {"choices": one}, "is not a reply of the Chat Completions API")
                   for one in (None, [], [7], [{"message": None}])],
    (CLAUDE, None): [
        (400, claude_error(BAD, "temperature: Extra inputs are not permitted"), "refused .400.*Extra in"),
        (400, claude_error(BAD, "output_config.format.schema: bad"), "the reply schema was refused"),
        (403, claude_error("permission_error", "no access"), "ANTHROPIC_API_KEY may not use 'claude-opus-5-5'"),
        (404, claude_error("not_found_error", "model: claude-opus-5-5"), "unknown model 'claude-opus-5-5'"),
        (413, claude_error("request_too_large", "too big"), "the prompt is too long"),
    ],
    (GEMINI, None): [
        (400, google_error(400, "INVALID_ARGUMENT", "Invalid value at response_json_schema"), "schema was refused"),
        (403, google_error(403, "PERMISSION_DENIED", "no"), "GOOGLE_API_KEY may not use 'gemini-3.8-flash'"),
        (404, google_error(404, "NOT_FOUND", "gemini-3.8-flash is not found"), "unknown model 'gemini-3.8-flash'"),
    ],
    # another attempt can, after so many seconds
    **{(case, 7.0): [((429, {"Retry-After": "7"}), openai_error("Slow down.", "rate_limit_exceeded"),
                      "too many requests .429. for 'gpt-6.1-sol': Slow down")] for case in (OPENAI, CHAT)},
    (CLAUDE, 2.5): [((status, {"retry-after": "2.5"}), claude_error(kind, "wait"), f"{status}.*wait")
                    for status, kind in ((429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error"))],
    (GEMINI, 34.5): [(429, google_error(429, EXHAUSTED, "slow", PER_MINUTE, RETRY_IN), "429.*slow"),
                     (429, [google_error(429, EXHAUSTED, "slow", RETRY_IN)], "429.*slow")],
    (GEMINI, 3.0): [((429, {"Retry-After": "3"}), google_error(429, EXHAUSTED, "slow", RETRY_IN), "429.*slow")],
    (OPENAI, "again"): [
        (500, openai_error("Oops."), "the provider failed .500"), (503, "upstream", "failed .503.*upstream"),
        (502, "<!DOCTYPE html><html>Welcome</html>", "the provider failed .502"),
        *((200, RESPONSE | {"status": "failed", "error": {"code": code, "message": "Oops."}}, match)
          for code, match in (("server_error", r"failed \(500\).*Oops"), ("rate_limit_exceeded", "too many"))),
        *((200, RESPONSE | {"status": status}, f"the response is {status}") for status in ("queued", "failed")),
    ],
    (CHAT, "again"): [(200, {"error": {"code": 429, "message": "upstream is busy"}},
                       "too many requests .429.*upstream is busy")],
    (GEMINI, "again"): [
        (429, google_error(429, EXHAUSTED, "slow", detail("RetryInfo", retryDelay="soon")), "429.*slow"),
        (429, {"error": {"message": "slow", "details": "none"}}, "429.*slow"),
        (503, google_error(503, "UNAVAILABLE", "slow"), "503.*slow"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("case", "outcome"), FAILURES, ids=str)
def test_what_a_failure_means(bench, case, outcome):
    wait = outcome if isinstance(outcome, float) else None
    for status, body, match in FAILURES[case, outcome]:
        code, headers = status if isinstance(status, tuple) else (status, {})
        kind = "application/json" if not isinstance(body, str) else "text/html" if "<" in body else "text/plain"
        found = bench.failure(answer(body, code, headers, kind=kind), match=match)
        told = (found.quota, found.retryable, found.retry_after)
        assert told == (outcome == "quota", outcome == "again" or wait is not None, wait), match


def scored(schema: dict[str, Any]) -> dict[str, Any]:
    return {"schema": SCHEMA | {"properties": {**SCHEMA["properties"], "score": schema}}}


LOOSE = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "required": []}
UNKNOWN = "is not known to the structured output"


@pytest.mark.parametrize(
    ("case", "asked", "reason"),
    [
        (OPENAI, {"seed": 7}, "openai/gpt-6.1-sol: the Responses API takes no seed"),
        *((case, {"effort": "enormous"}, "effort must be one of none, minimal") for case in (OPENAI, CHAT)),
        (OPENAI, {"schema": LOOSE},
         "additionalProperties must be false; .*every property must be required; .*maxLength"),
        (CLAUDE, {"seed": 7}, r"anthropic/claude-opus-5-5: the Messages API has no seed; leave it out \(got 7\)"),
        (CLAUDE, {"temperature": 0.0},
         "no temperature since version 2026-10-21; leave it out, or set args.api_version"),
        (CLAUDE, {"temperature": 1.5, "args": {"api_version": "2023-06-01"}}, "temperature must be from 0 to 1"),
        (CLAUDE, {"effort": "minimal"}, "effort must be one of low, medium, high, xhigh, max"),
        (CLAUDE, {"args": {"top_k": 5}}, "unknown argument 'top_k'"),
        (CLAUDE, {"args": {"thinking_budget": 900}}, "from 1024"),
        (CLAUDE, {"args": {"thinking_budget": 2000, "max_tokens": 2000}}, "less than max_tokens, 2000"),
        (CLAUDE, {"args": {"thinking_budget": 2000, "thinking": "adaptive"}}, "exclude each other"),
        (CLAUDE, scored({"type": "number", "minimum": 0}), f"schema.score: 'minimum' {UNKNOWN}"),
        (CLAUDE, scored({"type": "array", "items": {"type": "integer", "multipleOf": 2}}),
         f"schema.score.items: 'multipleOf' {UNKNOWN}"),
        (CLAUDE, scored({"type": "array", "items": {"type": "string"}, "minItems": 2}),
         f"schema.score: 'minItems' {UNKNOWN}"),
        (CLAUDE, scored({"anyOf": [{"type": "null"}, {"type": "integer", "maximum": 5}]}),
         rf"schema.score.anyOf\[1\]: 'maximum' {UNKNOWN}"),
        (GEMINI, {"seed": 2**31}, r"google/gemini-3.8-flash: the seed must be from -2147483648 to 2147483647"),
        (GEMINI, {"temperature": 2.5}, "temperature must be from 0 to 2"),
        (GEMINI, {"temperature": float("nan")}, "temperature must be from 0 to 2"),
        (GEMINI, {"effort": "max"}, "effort must be one of minimal, low, medium, high, xhigh"),
        (GEMINI, {"effort": "low", "args": {"thinking_budget": 0}}, "effort and thinking_budget exclude each other"),
        (GEMINI, {"args": {"top_k": 5}}, "unknown argument 'top_k'"),
        *((GEMINI, scored({"type": "number", one: 2}), f"schema.score: '{one}' {UNKNOWN} of the Gemini API")
          for one in ("multipleOf", "exclusiveMinimum", "exclusiveMaximum")),
    ],
)  # fmt: skip
def test_what_an_api_does_not_have_is_refused_and_nothing_sent(bench, case, asked, reason):
    bench.refuses(reason, **asked)


@pytest.mark.parametrize(
    ("case", "args", "problem"),
    [
        (OPENAI, {"max_tokens": 0}, "max_tokens must be a whole number above 0 (got 0)"),
        (OPENAI, {"max_tokens": True}, "max_tokens must be a whole number above 0 (got True)"),
        (OPENAI, {"timeout_s": 0}, "timeout_s must be a number of seconds"),
        (OPENAI, {"top_p": "all"}, "top_p must be a number from 0 to 1"),
        *((OPENAI, {"api_key_env": one}, "api_key_env must be the name of") for one in ("sk-the key itself", "AIzaSy")),
        (OPENAI, {"base_url": "ftp://x"}, "base_url must be http://HOST:PORT/PATH"),
        (OPENAI, {"base_url": f"https://me:{CANARY}@x/v1"}, "not shown: it may hold a secret"),
        (OPENAI, {"baseurl": "none"},
         "'baseurl' of openai/gpt-6.1-sol; did you mean 'base_url'? Allowed: api_key_env,"),
        (OPENAI, {"structured": "none"}, "unknown argument 'structured' of openai/gpt-6.1-sol; allowed: api_key_env,"),
        (CHAT, {"structured": "xml"}, "structured must be one of json_schema, json_object, none"),
        (CHAT, {"extra_body": {"seed": 4}}, "extra_body must be an object, or the JSON text of one, without max_"),
        (CHAT, {"extra_body": []}, "extra_body must be an object"),
        (CHAT, {"extra_body": '{"n": 2}'}, "extra_body must be an object"),
        (CHAT, {"extra_body": "{"}, "extra_body must be an object"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(bench, case, args, problem):
    (found,) = provider_argument_problems(case.name, args)
    assert problem in found
    assert CANARY not in found
    assert "the key itself" not in found
    bench.refuses(f"{case.name}: ", args=args)


def test_arguments_are_checked_together_and_a_name_that_can_be_none_is_refused():
    for model, args, names in (
        ("anthropic/claude-x", {"max_tokens": -1, "api_version": "2024-01-01"}, ["max_tokens", "api_version"]),
        ("google/gemini-x", {"max_tokens": 0, "thinking_budget": -2}, ["max_tokens", "thinking_budget"]),
        ("openai/gpt-5.6", {"top_p": 1}, []), ("anthropic/claude-x", {"thinking": "adaptive"}, []),
        ("reference/auditor", {"dark_current": 1}, []),  # arguments of others are not looked at
    ):  # fmt: skip
        assert [problem.split()[0] for problem in provider_argument_problems(model, args)] == names
    openai = ["", " ", "two words", "-x", "x" * 201, "a?key=b"]
    for case, names, form in (
        (OPENAI, openai, "openai/NAME"), (CHAT, openai, "openai-chat/NAME"),
        (CLAUDE, ["", " claude", "claude opus", "claude\n", "-x", "x" * 300], "anthropic/MODEL"),
        (GEMINI, ["", "../x", "a..b", "gemini?key=1", "a/b/c", "gemini flash", "x" * 300], "google/MODEL"),
    ):  # fmt: skip
        for name in names:
            with pytest.raises(InputError, match=f"must be {form}"):
                case.model(name)


# The real APIs, where their keys are set: two replies of a few thousand tokens each, and two refusals

NOBODYS = "sk-assaymark-test-that-is-no-key-of-anybody"
ONE_SCORE = SCHEMA | {"properties": {"score": {"type": "integer"}}, "required": ["score"]}
ONE_PROMPT = (Message("user", (Text.of("Score the number 4 on a scale of 1 to 5; no comment."),)),)
INCOMPLETE = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
SHORT_CHOICE = COMPLETION["choices"][0] | {"finish_reason": "length"}
REAL = {
    OPENAI: ("gpt-6-luna", INCOMPLETE, openai_error("no", "invalid_api_key"), openai_error("no")),
    CHAT: ("gpt-6-luna", {"choices": [SHORT_CHOICE]}, openai_error("no", "invalid_api_key"), openai_error("no")),
    CLAUDE: ("claude-haiku-5-5", {"stop_reason": "max_tokens"},
             claude_error("authentication_error", "invalid x-api-key"), claude_error("not_found_error", "model: x")),
    GEMINI: ("gemini-3.8-flash", {"candidates": [CANDIDATE | {"finishReason": "MAX_TOKENS"}]},
             google_error(400, "INVALID_ARGUMENT", "API key not valid.", detail("ErrorInfo", reason="API_KEY_INVALID")),
             google_error(404, "NOT_FOUND", "models/x is not found")),
}  # fmt: skip
"""Of each API a cheap model, how a reply that is cut differs, and two refusals."""


@EACH
@pytest.mark.parametrize("real", [False, True], ids=["loopback", "real"])
def test_the_real_api_answers_as_the_one_over_loopback(case, real):
    keys = (case.key_env, "GEMINI_API_KEY") if case is GEMINI else (case.key_env,)
    own = next((os.environ[name] for name in keys if os.environ.get(name)), None)
    if real and own is None:
        pytest.skip(f"{' or '.join(keys)} is not set: the real API of {case} was not asked")
    cheap, cut, wrong_key, unknown = REAL[case]
    chosen = os.environ.get(f"ASSAYMARK_TEST_{case.provider.partition('-')[0].upper()}_MODEL", cheap)

    def asked(body, status=200, most=4000, key=None, name=None):
        """The reply of the real API, or of one over loopback that answers so."""
        name = name or (chosen if real else "cheap-1")
        spec = replace(case.call(schema=ONE_SCORE, args={"max_tokens": most}), model=f"{case}/{name}")
        spec = CallSpec(model=spec.model, messages=ONE_PROMPT, template="", schema=spec.schema, args=spec.args)
        if real:
            return asyncio.run(case.model(name, environ={case.key_env: key or own}).complete(spec))
        with serving(answer(dict(body), status)) as server:
            environ = {case.key_env: key or NOBODYS, case.base_env: f"{server.url}{case.root}"}
            return asyncio.run(case.model(name, environ=environ).complete(spec))

    whole = asked(with_said(case.canned, '{"score": 4}'))
    assert (whole.finish, json.loads(whole.text)) == ("stop", {"score": 4})
    assert min(whole.input_tokens, whole.output_tokens) > 0
    assert whole.model
    short = asked(case.canned | cut, most=16)
    assert short.finish == "length"
    for reply in (whole, short):
        assert resolve_name(REPLIES[case]).model_validate_json(reply.raw) is not None
    with pytest.raises(ModelError, match=r"was refused \(40[01]\) by .*set the right key") as caught:
        asked(wrong_key, 400 if case is GEMINI else 401, key=NOBODYS)
    assert caught.value.quota
    assert NOBODYS not in str(caught.value)
    with pytest.raises(ModelError, match=r"unknown model 'nobody-knows-it' at .*check the name and base_url") as caught:
        asked(unknown, 404, name="nobody-knows-it")
    assert (caught.value.retryable, caught.value.quota) == (False, False)
