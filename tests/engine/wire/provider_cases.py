"""The four APIs of language models as they are tested alike: a whole reply of each, and the call that asks for it."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from provider_server import ProviderServer, Received, Receiving, Step, answer, serving

from assaymark.engine import CallSpec, Message, Reply, Text
from assaymark.engine.providers.anthropic import AnthropicModel
from assaymark.engine.providers.google import GoogleModel
from assaymark.engine.providers.openai import OpenAIChatModel, OpenAIModel
from assaymark.errors import ModelError

CANARY = "canary-51c8/Kd+secret-key"
SAID = '{"score": 4, "comment": null}'
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}, "comment": {"type": ["string", "null"]}},
    "required": ["score", "comment"], "additionalProperties": False,
}  # fmt: skip
MESSAGES = (
    Message("system", (Text.of("You grade."), Text.of("1 is bad."))),
    Message("user", (Text.of("Context: prices é."), Text.of("Decision: bought."))),
)

RESPONSE: dict[str, Any] = {
    "id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b", "object": "response", "created_at": 1794000000,
    "status": "completed", "completed_at": 1794000003, "background": False, "error": None, "incomplete_details": None,
    "instructions": None, "max_output_tokens": 900, "max_tool_calls": None, "metadata": {},
    "model": "gpt-6.1-sol-2026-09-29",
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "The prices rose."}]},
        {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
         "content": [{"type": "output_text", "text": SAID, "annotations": [], "logprobs": []}]},
    ],
    "parallel_tool_calls": True, "previous_response_id": None, "prompt_cache_key": None,
    "reasoning": {"effort": "low", "summary": None}, "safety_identifier": None, "service_tier": "default",
    "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled",
    "text": {
        "format": {"type": "json_schema", "name": "reply", "strict": True, "schema": SCHEMA, "description": None},
        "verbosity": "medium",
    },
    "usage": {
        "input_tokens": 420, "input_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 0},
        "output_tokens": 57, "output_tokens_details": {"reasoning_tokens": 40}, "total_tokens": 477,
    },
    "user": None,
}  # fmt: skip
"""A whole answer of the Responses API."""

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1794000000,
    "model": "gpt-6.1-sol-2026-09-29",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": SAID, "refusal": None, "annotations": []},
                 "logprobs": None, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 420, "completion_tokens": 57, "total_tokens": 477,
        "prompt_tokens_details": {"cached_tokens": 300, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 40, "audio_tokens": 0},
    },
    "service_tier": "default", "system_fingerprint": "fp_44709d6fcb",
}  # fmt: skip
"""A whole answer of the Chat Completions API."""

MESSAGE: dict[str, Any] = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "model": "claude-opus-5-5",
    "content": [
        {"type": "thinking", "thinking": "The prices rose.", "signature": "c2ln"},
        {"type": "text", "text": SAID, "citations": None},
    ],
    "stop_reason": "end_turn", "stop_sequence": None, "stop_details": None, "container": None,
    "usage": {
        "input_tokens": 100, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0}, "output_tokens": 57,
        "output_tokens_details": {"thinking_tokens": 40}, "service_tier": "standard",
    },
}  # fmt: skip
"""A whole answer of the Messages API."""

GENERATED: dict[str, Any] = {
    "candidates": [{
        "content": {"role": "model", "parts": [
            {"text": "The prices rose.", "thought": True}, {"text": SAID, "thoughtSignature": "c2ln"}]},
        "finishReason": "STOP", "index": 0, "avgLogprobs": -0.25,
    }],
    "usageMetadata": {
        "promptTokenCount": 420, "cachedContentTokenCount": 300, "candidatesTokenCount": 17, "thoughtsTokenCount": 40,
        "totalTokenCount": 477, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 420}],
    },
    "modelVersion": "gemini-3.8-flash-001", "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
}  # fmt: skip
"""A whole answer of ``generateContent``."""

FORMATS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/responses": RESPONSE, "/chat/completions": COMPLETION, "/messages": MESSAGE, "generateContent": GENERATED,
}  # fmt: skip
"""A reply by how the path of its request ends."""


def format_of(request: Received) -> str:
    """The one of `FORMATS` that a request has."""
    return next(end for end in FORMATS if request.path.partition("?")[0].endswith(end))


def with_said(found: Any, text: str) -> Any:
    """A canned reply with our text in place of its own."""
    if isinstance(found, dict):
        return {name: with_said(value, text) for name, value in found.items()}
    if isinstance(found, list):
        return [with_said(value, text) for value in found]
    return text if found == SAID else found


def speaking(say: Callable[[Received], str]) -> Step:
    """Answer each request, in its own format, with what ``say`` makes of it."""

    def step(handler: Receiving, server: ProviderServer) -> None:
        answer(with_said(FORMATS[format_of(handler.received)], say(handler.received)))(handler, server)

    return step


def completion(text: str | None = SAID, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    """An answer of Chat Completions that says so."""
    choice = COMPLETION["choices"][0]
    changed = {**choice, "finish_reason": finish, "message": {**choice["message"], "content": text, **message}}
    return {**COMPLETION, "choices": [changed]}


@dataclass(frozen=True, eq=False)
class Case:
    """One API: who asks, what is answered, and where its key and address (with ``root``) are looked up."""

    provider: str
    model: Callable[..., Any]
    name: str
    canned: Mapping[str, Any]
    key_env: str
    base_env: str
    root: str = ""

    def __str__(self) -> str:
        return self.provider

    def call(self, **more: Any) -> CallSpec:
        """A judge's call with two messages of two parts; ``schema`` is one as it is."""
        schema = more.pop("schema", SCHEMA)
        form = None if schema is None else Text.of(json.dumps(schema))
        return CallSpec(model=self.name, messages=MESSAGES, template="", schema=form, **more)

    def made(self, url: str, **environ: str) -> Any:
        """The model, with a key, at an address."""
        return self.bare(**{self.base_env: f"{url}{self.root}", self.key_env: CANARY, **environ})

    def bare(self, **environ: str) -> Any:
        """The model in an environment that names no address."""
        return self.model(self.name.partition("/")[2], environ=environ)

    def asked(self, server: ProviderServer, **more: Any) -> Reply:
        """The reply to the call on an event loop of its own, outside any run."""
        return asyncio.run(self.made(server.url).complete(self.call(**more)))


_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1")
OPENAI = Case("openai", OpenAIModel, "openai/gpt-6.1-sol", RESPONSE, *_OPENAI)
CHAT = Case("openai-chat", OpenAIChatModel, "openai-chat/gpt-6.1-sol", COMPLETION, *_OPENAI)
CLAUDE = Case(
    "anthropic", AnthropicModel, "anthropic/claude-opus-5-5", MESSAGE, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
)
GEMINI = Case("google", GoogleModel, "google/gemini-3.8-flash", GENERATED, "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL")
CASES = (OPENAI, CHAT, CLAUDE, GEMINI)


class Bench:
    """One server and one client for many tests of a provider: what takes time is to make a client."""

    def __init__(self, case: Case, server: ProviderServer) -> None:
        self.case, self.server = case, server
        self.loop = asyncio.new_event_loop()
        self.model = case.made(server.url)

    def reply(self, *script: Any, **more: Any) -> Reply:
        """The reply to a call that the server answers by this script, of steps and bodies."""
        steps = [answer(one) if isinstance(one, Mapping) else one for one in script or [self.case.canned]]
        self.server.script[:] = steps
        self.server.requests.clear()
        return self.loop.run_until_complete(self.model.complete(self.case.call(**more)))

    def sent(self, **more: Any) -> Received:
        """The only request of a call."""
        self.reply(**more)
        return self.server.request

    def failure(self, *script: Any, match: str, **more: Any) -> ModelError:
        """Return the error of a call with this answer: sent once, one line, and no key in any traceback."""
        with pytest.raises(ModelError, match=match) as caught:
            self.reply(*script, **more)
        assert len(self.server.requests) == 1  # the SDK did not try again
        found = caught.value
        behind = {type(one).__module__.partition(".")[0] for one in (found.__cause__, found.__context__)}
        assert behind <= {"builtins", "json"}  # an SDK's error would hold the request
        trace = traceback.TracebackException.from_exception(found, capture_locals=True)
        assert CANARY not in "".join(trace.format())
        assert str(found).startswith(f"{self.case.provider}: ")
        assert "\n" not in str(found)
        assert len(str(found)) < 700
        return found

    def refuses(self, match: str, **more: Any) -> None:
        """See that a call is refused for good before anything is sent."""
        with pytest.raises(ModelError, match=match) as caught:
            self.reply(**more)
        assert not caught.value.retryable
        assert self.server.requests == []

    def close(self) -> None:
        """Close the connections as the end of a run does."""
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


@contextmanager
def bench_of(case: Case) -> Iterator[Bench]:
    """A bench, closed in the end."""
    with serving(answer({})) as server:
        bench = Bench(case, server)
        try:
            yield bench
        finally:
            bench.close()
