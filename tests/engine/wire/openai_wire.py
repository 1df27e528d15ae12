"""Whole replies of OpenAI's two APIs, the calls that they answer, and models that ask a server of a test."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from openai import OpenAIError
from provider_server import ProviderServer, Received, Step, answer, serving
from pydantic import BaseModel

from assaymark.engine import CallSpec, Message, Reply, Text
from assaymark.engine.providers.openai import OpenAIChatModel, OpenAIModel
from assaymark.errors import ModelError

CANARY = "canary-51c8/Kd+secret-key"
SAID = '{"score": 4, "comment": null}'
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}, "comment": {"type": ["string", "null"]}},
    "required": ["score", "comment"],
    "additionalProperties": False,
}
MESSAGES = (
    Message("system", (Text.of("You grade."), Text.of("1 is bad."))),
    Message("user", (Text.of("Context: prices é."), Text.of("Decision: bought."))),
)

RESPONSE: dict[str, Any] = {
    "id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
    "object": "response",
    "created_at": 1794000000,
    "status": "completed",
    "completed_at": 1794000003,
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": 900,
    "max_tool_calls": None,
    "metadata": {},
    "model": "gpt-6.1-sol-2026-09-29",
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "The prices rose."}]},
        {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": SAID, "annotations": [], "logprobs": []}],
        },
    ],
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": "low", "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "temperature": 1.0,
    "text": {
        "format": {"type": "json_schema", "name": "reply", "strict": True, "schema": SCHEMA, "description": None},
        "verbosity": "medium",
    },
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": {
        "input_tokens": 420,
        "input_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 0},
        "output_tokens": 57,
        "output_tokens_details": {"reasoning_tokens": 40},
        "total_tokens": 477,
    },
    "user": None,
}
"""A whole answer of the Responses API."""

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    "object": "chat.completion",
    "created": 1794000000,
    "model": "gpt-6.1-sol-2026-09-29",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": SAID, "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 420,
        "completion_tokens": 57,
        "total_tokens": 477,
        "prompt_tokens_details": {"cached_tokens": 300, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 40, "audio_tokens": 0},
    },
    "service_tier": "default",
    "system_fingerprint": "fp_44709d6fcb",
}
"""A whole answer of the Chat Completions API."""


def call(model: str = "openai/gpt-6.1-sol", *, schema: Any = SCHEMA, **more: Any) -> CallSpec:
    """A judge's call with two messages of two parts."""
    form = None if schema is None else Text.of(json.dumps(schema))
    return CallSpec(model=model, messages=MESSAGES, template="", schema=form, **more)


def chat_call(**more: Any) -> CallSpec:
    """The same call, of Chat Completions."""
    return call("openai-chat/gpt-6.1-sol", **more)


def model_of(spec: CallSpec, **environ: str) -> OpenAIModel | OpenAIChatModel:
    """The model of a call, in an environment of its own."""
    provider, _, name = spec.model.partition("/")
    return {"openai": OpenAIModel, "openai-chat": OpenAIChatModel}[provider](name, environ=environ)


def asked(server: ProviderServer | str, spec: CallSpec) -> Reply:
    """The reply to a call, outside any run, from the address that the environment names."""
    url = server if isinstance(server, str) else f"{server.url}/v1"
    return asyncio.run(model_of(spec, OPENAI_API_KEY=CANARY, OPENAI_BASE_URL=url).complete(spec))


def completion(text: str | None = SAID, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    """An answer of Chat Completions that says so."""
    choice = COMPLETION["choices"][0]
    changed = {**choice, "finish_reason": finish, "message": {**choice["message"], "content": text, **message}}
    return {**COMPLETION, "choices": [changed]}


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An answer of the Responses API with this output."""
    return {**RESPONSE, "output": list(output), **more}


def said(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A message of a response."""
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": list(parts),
        **more,
    }


def text_part(text: str) -> dict[str, Any]:
    """A part of a message that is text."""
    return {"type": "output_text", "text": text, "annotations": []}


def unknown_fields(found: object, where: str = "") -> Iterator[str]:
    """The fields of a parsed reply that the SDK's types do not know, all the way down."""
    if isinstance(found, BaseModel):
        yield from (f"{where}.{name}" for name in found.model_extra or {})
        for name in type(found).model_fields:
            yield from unknown_fields(getattr(found, name), f"{where}.{name}")
    elif isinstance(found, list):
        for part in found:
            yield from unknown_fields(part, where)


class Bench:
    """One server and one event loop for the tests of a module, so that a client is made once and not for each."""

    def __init__(self, server: ProviderServer) -> None:
        self.server, self._runner = server, asyncio.Runner()
        self._models: dict[str, OpenAIModel | OpenAIChatModel] = {}

    def asked(self, spec: CallSpec, *script: Step) -> Reply:
        """The reply to a call from a server that answers so."""
        self.server.script[:] = script
        self.server.requests.clear()
        url = f"{self.server.url}/v1"
        if spec.model not in self._models:
            self._models[spec.model] = model_of(spec, OPENAI_API_KEY=CANARY, OPENAI_BASE_URL=url)
        return self._runner.run(self._models[spec.model].complete(spec))

    def sent(self, spec: CallSpec) -> Received:
        """The request of a call."""
        self.asked(spec, answer(RESPONSE if spec.model.startswith("openai/") else COMPLETION))
        return self.server.request

    def replied(self, body: dict[str, Any]) -> Reply:
        """The reply that a body comes to; by its form, of the one API or the other."""
        return self.asked(call() if "output" in body else chat_call(), answer(body))

    def failing(self, spec: CallSpec, *script: Step, match: str) -> ModelError:
        """What a call fails with that a server answers so; it is asked once, and no traceback shows the key."""
        with pytest.raises(ModelError, match=match) as caught:
            self.asked(spec, *script)
        assert len(self.server.requests) == 1  # the SDK did not try again
        assert not isinstance(caught.value.__context__, OpenAIError)  # it would hold the request
        trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        assert CANARY not in "".join(trace.format())
        return caught.value

    def refusing(self, spec: CallSpec, match: str) -> None:
        """See that a call is refused for good before anything is sent."""
        with pytest.raises(ModelError, match=match) as caught:
            self.asked(spec, answer({}))
        assert self.server.requests == []
        assert not caught.value.retryable

    def close(self) -> None:
        """End the event loop, and with it the clients."""
        self._runner.close()


@contextmanager
def bench_of() -> Iterator[Bench]:
    """A bench, closed in the end."""
    with serving(answer({})) as server:
        made = Bench(server)
        try:
            yield made
        finally:
            made.close()
