"""The same tests of every provider over loopback and, where its key is set, of the real API.

Without the key they skip and say that the real API was not asked. With it each provider is asked for two replies of at
most a few thousand tokens, and twice for what it refuses.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("openai", reason="needs the openai client (extra: test)")
pytest.importorskip("anthropic", reason="needs the anthropic client (extra: test)")
pytest.importorskip("google.genai", reason="needs the google-genai client (extra: test)")

# The clients have to be there for what follows.
from anthropic.types import Message as AnthropicMessage
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from openai_wire import COMPLETION, RESPONSE
from provider_cases import GENERATED, MESSAGE
from provider_server import answer, serving

from assaymark.engine import CallSpec, Message, Text
from assaymark.engine.providers.anthropic import AnthropicModel
from assaymark.engine.providers.google import GoogleModel
from assaymark.engine.providers.openai import OpenAIChatModel, OpenAIModel
from assaymark.errors import ModelError

NOBODYS = "sk-assaymark-test-that-is-no-key-of-anybody"
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer"}},
    "required": ["score"],
    "additionalProperties": False,
}
PROMPT = (Message("user", (Text.of("Score the number 4 on a scale of 1 to 5; no comment."),)),)


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its model, its keys, what it answers over loopback, and a cheap model of it to ask in earnest."""

    name: str
    model: type[Any]
    keys: tuple[str, ...]
    base_env: str
    root: str
    cheap: str
    type: type[Any]
    good: Mapping[str, Any]
    cut: Mapping[str, Any]
    wrong_key: tuple[int, Mapping[str, Any]]
    unknown: tuple[int, Mapping[str, Any]]

    def __str__(self) -> str:
        return self.name

    @property
    def real_key(self) -> str:
        """The key of the environment."""
        found = next((os.environ[name] for name in self.keys if os.environ.get(name)), None)
        if found is None:
            pytest.skip(f"{' or '.join(self.keys)} is not set: the real API of {self.name} was not asked")
        return found

    @property
    def real_model(self) -> str:
        """The model to ask in earnest."""
        return os.environ.get(f"ASSAYMARK_TEST_{self.name.partition('-')[0].upper()}_MODEL", self.cheap)


def openai_error(code: str) -> dict[str, Any]:
    return {"error": {"message": "no", "type": "invalid_request_error", "code": code, "param": None}}


def with_text(found: Any, text: str) -> Any:
    """A canned reply whose answer is this text; the answers of the canned replies are JSON."""
    if isinstance(found, dict):
        return {name: with_text(value, text) for name, value in found.items()}
    if isinstance(found, list):
        return [with_text(value, text) for value in found]
    return text if isinstance(found, str) and found.startswith("{") else found


GOOD = json.dumps({"score": 4})
CHAT = with_text(COMPLETION, GOOD)
APIS = (
    Api(
        "openai", OpenAIModel, ("OPENAI_API_KEY",), "OPENAI_BASE_URL", "/v1", "gpt-6-luna", Response,
        with_text(RESPONSE, GOOD),
        {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        (401, openai_error("invalid_api_key")), (404, openai_error("model_not_found")),
    ),
    Api(
        "openai-chat", OpenAIChatModel, ("OPENAI_API_KEY",), "OPENAI_BASE_URL", "/v1", "gpt-6-luna", ChatCompletion,
        CHAT, {**CHAT, "choices": [{**CHAT["choices"][0], "finish_reason": "length"}]},
        (401, openai_error("invalid_api_key")), (404, openai_error("model_not_found")),
    ),
    Api(
        "anthropic", AnthropicModel, ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", "", "claude-haiku-5-5",
        AnthropicMessage, with_text(MESSAGE, GOOD), {**MESSAGE, "stop_reason": "max_tokens"},
        (401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: nobody-knows-it"}}),
    ),
    Api(
        "google", GoogleModel, ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "GOOGLE_GEMINI_BASE_URL", "", "gemini-3.8-flash",
        GenerateContentResponse, with_text(GENERATED, GOOD),
        {**GENERATED, "candidates": [{**GENERATED["candidates"][0], "finishReason": "MAX_TOKENS"}]},
        (400, {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid.", "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}}),
        (404, {"error": {"code": 404, "status": "NOT_FOUND", "message": "models/nobody-knows-it is not found"}}),
    ),
)  # fmt: skip
EACH = pytest.mark.parametrize("api", APIS, ids=str)
BOTH = pytest.mark.parametrize("real", [False, True], ids=["loopback", "real"])


def ask(api, real, canned, *, key=None, name=None, most=4000):
    """The reply of the real API, or of one over loopback that has this canned answer (status, body)."""
    name = name or (api.real_model if real else "cheap-1")
    spec = CallSpec(
        model=f"{api.name}/{name}",
        messages=PROMPT,
        template="",
        schema=Text.of(json.dumps(SCHEMA)),
        args={"max_tokens": most},
    )
    if real:
        environ = {api.keys[0]: api.real_key if key is None else key}
        return asyncio.run(api.model(name, environ=environ).complete(spec))
    status, body = canned
    with serving(answer(dict(body), status)) as server:
        environ = {api.keys[0]: key or NOBODYS, api.base_env: f"{server.url}{api.root}"}
        return asyncio.run(api.model(name, environ=environ).complete(spec))


@EACH
@BOTH
def test_an_answer_in_the_form_that_was_asked_for(api, real):
    reply = ask(api, real, (200, api.good))
    assert reply.finish == "stop"
    assert json.loads(reply.text) == {"score": 4}
    assert reply.input_tokens > 0
    assert reply.output_tokens > 0
    assert reply.model
    assert api.type.model_validate_json(reply.raw) is not None


@EACH
@BOTH
def test_an_answer_that_is_cut_is_known_to_be(api, real):
    reply = ask(api, real, (200, api.cut), most=16)
    assert reply.finish == "length"
    assert api.type.model_validate_json(reply.raw) is not None


@EACH
@BOTH
def test_a_wrong_key_holds_for_every_call(api, real):
    if real:
        assert api.real_key  # or a skip: without a key of one's own nothing is sent
    with pytest.raises(ModelError, match=r"was refused \(40[01]\) by .*set the right key") as caught:
        ask(api, real, api.wrong_key, key=NOBODYS)
    assert caught.value.quota
    assert NOBODYS not in str(caught.value)


@EACH
@BOTH
def test_an_unknown_model_is_named(api, real):
    with pytest.raises(ModelError, match=r"unknown model 'nobody-knows-it' at .*check the name and base_url") as caught:
        ask(api, real, api.unknown, name="nobody-knows-it")
    assert not caught.value.retryable
    assert not caught.value.quota
