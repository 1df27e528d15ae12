"""Claude and Gemini models as they are tested alike: a canned reply of each, and the call that asks for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from provider_server import ProviderServer, Received, answer, serving

from assaymark.engine import CallSpec, Message, Reply, Text
from assaymark.engine.providers.anthropic import AnthropicModel
from assaymark.engine.providers.google import GoogleModel
from assaymark.errors import ModelError

CANARY = "canary-7f3a/9Zq+secret"
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}, "comment": {"type": ["string", "null"]}},
    "required": ["score", "comment"],
    "additionalProperties": False,
}
SAID = '{"score": 4, "comment": null}'

MESSAGE: dict[str, Any] = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [
        {"type": "thinking", "thinking": "The prices rose.", "signature": "c2ln"},
        {"type": "text", "text": SAID, "citations": None},
    ],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "stop_details": None,
    "container": None,
    "usage": {
        "input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 57,
        "output_tokens_details": {"thinking_tokens": 40},
        "service_tier": "standard",
    },
}
"""A whole answer of the Messages API."""

GENERATED: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"text": "The prices rose.", "thought": True}, {"text": SAID, "thoughtSignature": "c2ln"}],
            },
            "finishReason": "STOP",
            "index": 0,
            "avgLogprobs": -0.25,
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 420,
        "cachedContentTokenCount": 300,
        "candidatesTokenCount": 17,
        "thoughtsTokenCount": 40,
        "totalTokenCount": 477,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 420}],
    },
    "modelVersion": "gemini-3.8-flash-001",
    "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
}
"""A whole answer of ``generateContent``."""


@dataclass(frozen=True)
class Case:
    """One provider: who asks, what is answered, and where its key and address are looked up."""

    provider: str
    model: Callable[..., Any]
    name: str
    canned: Mapping[str, Any]
    key_env: str
    base_env: str

    def __str__(self) -> str:
        return self.provider

    def call(self, **more: Any) -> CallSpec:
        """A judge's call with two messages of two parts."""
        given: dict[str, Any] = {"schema": Text.of(json.dumps(SCHEMA)), **more}
        return CallSpec(model=self.name, messages=MESSAGES, template="", **given)

    def made(self, url: str, **environ: str) -> Any:
        """The model, with a key, at an address."""
        known = {self.base_env: url, self.key_env: CANARY, **environ}
        return self.model(self.name.partition("/")[2], environ=known)

    def asked(self, server: ProviderServer, **more: Any) -> Reply:
        """The reply to the call on an event loop of its own, outside any run."""
        return asyncio.run(self.made(server.url).complete(self.call(**more)))


class Bench:
    """One server and one client for many tests of a provider: what takes time is to make a client."""

    def __init__(self, case: Case, server: ProviderServer) -> None:
        self.case, self.server = case, server
        self.loop = asyncio.new_event_loop()
        self.model = case.made(server.url)

    def reply(self, *script: Any, **more: Any) -> Reply:
        """The reply to a call that the server answers by this script."""
        self.server.script[:] = script or [answer(dict(self.case.canned))]
        self.server.requests.clear()
        return self.loop.run_until_complete(self.model.complete(self.case.call(**more)))

    def sent(self, **more: Any) -> Received:
        """The only request of a call."""
        self.reply(**more)
        return self.server.request

    def failure(self, *script: Any, match: str, **more: Any) -> ModelError:
        """What a call fails with that is answered so; the SDK did not try again."""
        with pytest.raises(ModelError, match=match) as caught:
            self.reply(*script, **more)
        assert len(self.server.requests) == 1
        return caught.value

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


MESSAGES = (
    Message("system", (Text.of("You grade."), Text.of("1 is bad."))),
    Message("user", (Text.of("Context: prices é."), Text.of("Decision: bought."))),
)
CLAUDE = Case(
    "anthropic", AnthropicModel, "anthropic/claude-opus-5-5", MESSAGE, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
)
GEMINI = Case("google", GoogleModel, "google/gemini-3.8-flash", GENERATED, "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL")
