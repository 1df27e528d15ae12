"""OpenAI's models over the Responses API, every compatible server over the Chat Completions API, and their batches."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, ClassVar, Final

from assaymark.engine.calls import CallSpec, Finish, Reply
from assaymark.engine.providers import base, batches
from assaymark.engine.providers.transports import Provider, Rule, Transport, is_number
from assaymark.errors import ModelError
from assaymark.prompting import Rejected, strict_json

_HOME: Final = "https://api.openai.com/v1"
_KEYS: Final = ("OPENAI_API_KEY",)
RESPONSES: Final = Provider("openai", "openai", "openai", _KEYS, _HOME, "OPENAI_BASE_URL")
CHAT: Final = Provider("openai-chat", "openai", "openai", _KEYS, _HOME, "OPENAI_BASE_URL")

STRUCTURED: Final = ("json_schema", "json_object", "none")
"""Ways to request the form of a reply from a compatible server: the schema, any JSON, or the prompt alone."""

_OUR_FIELDS: Final = frozenset({
    "model", "messages", "seed", "temperature", "reasoning_effort", "response_format", "max_tokens",
    "max_completion_tokens", "top_p", "stream", "n",
})  # fmt: skip
_TOP_P: Final[Mapping[str, Rule]] = {"top_p": (lambda value: is_number(value, 0, 1), "a number from 0 to 1")}
_CHAT_RULES: Final[Mapping[str, Rule]] = {
    **_TOP_P, "structured": (lambda value: value in STRUCTURED, f"one of {', '.join(STRUCTURED)}"),
    "extra_body": (
        lambda value: (extra := _extra(value)) is not None and not _OUR_FIELDS & set(extra),
        f"an object, or the JSON text of one, without {', '.join(sorted(_OUR_FIELDS))}: a call sets these itself",
    ),
}  # fmt: skip
_CHAT_FINISH: Final[Mapping[str, Finish]] = {"length": "length", "content_filter": "refusal"}
_FAILURES: Final[Mapping[str, int]] = {"server_error": 500, "rate_limit_exceeded": 429}


def _extra(value: object) -> dict[str, Any] | None:
    """Return an object, or parse one from JSON text (the form in a study file); None for anything else."""
    try:
        content = strict_json(value) if isinstance(value, str) else value
    except Rejected:
        return None
    return content if isinstance(content, dict) else None


class _OpenAI(base.SdkModel):
    """Base of both APIs: names of models, the client, sending a request and parsing a failure."""

    messages: ClassVar[str]  # the API's field names of the messages, and (below) of input and output token counts
    counts: ClassVar[tuple[str, str]]
    api: ClassVar[tuple[str, str]]  # its name, and the advice for a server with another API
    names = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\-]{0,199}")
    named = "NAME with letters, digits and . _ : / @ + -, at most 200 characters"
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max")  # each model supports some of them
    client_class = "AsyncOpenAI"
    rules: ClassVar[Mapping[str, Rule]] = _TOP_P

    def options(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return the options of a request; its id is the call key, by which provider and caller can both find it."""
        headers = {"X-Client-Request-Id": call.key, **self.headers(call, at)}
        return {"headers": headers, "security": {"bearer_auth": True}}

    def reply_of(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        """Return the reply in a body. An error with status 200 is a reply if the content was refused; others raise."""
        raw, content = base.read_object(body, at)
        model = base.word_of(content.get("model")) or call.model
        if not isinstance(content.get("error"), dict):
            reply = self._reply(at, content)
            return replace(reply, text=at.scrubbed(reply.text), raw=raw, model=model)
        words, message = base.words_of(content)
        code = content["error"].get("code")
        status = next((_FAILURES[word] for word in words if word in _FAILURES), 400)
        status = code if isinstance(code, int) and 400 <= code < 600 else status
        error = base.refusal(at, status, words, message)
        if error.refused != "content":
            raise error
        return Reply(at.scrubbed(message), model, "refusal", raw)

    @abstractmethod
    def _reply(self, at: Transport, content: dict[str, Any]) -> Reply:
        """Return the reply in a body without an error."""

    def _filled(self, at: Transport, call: CallSpec, **fields: object) -> dict[str, Any]:
        """Return a request body with the settings of a call that are not None."""
        turns = [{"role": message.role, "content": message.text} for message in call.messages]
        args = {"temperature": call.temperature, "top_p": call.args.get("top_p"), **fields}
        return {"model": at.model, self.messages: turns} | {name: arg for name, arg in args.items() if arg is not None}

    def _other_api(self, at: Transport) -> ModelError:
        text = f"the reply of {at.address} is not a reply of the {self.api[0]} API"
        return ModelError(f"{at.provider.name}: {text}; {self.api[1]}", retryable=False)

    def _tokens(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return the token counts of a response body."""
        usage, (asked, answered) = base.part_of(content, "usage"), self.counts
        return {
            "input_tokens": base.count_of(usage.get(asked)), "output_tokens": base.count_of(usage.get(answered)),
            "reasoning_tokens": base.count_of(base.part_of(usage, f"{answered}_details").get("reasoning_tokens")),
            "cached_tokens": base.count_of(base.part_of(usage, f"{asked}_details").get("cached_tokens")),
        }  # fmt: skip


class OpenAIModel(_OpenAI):
    """A model of OpenAI over the Responses API, by its official SDK."""

    provider = RESPONSES
    path = "/responses"
    messages = "input"
    counts = ("input_tokens", "output_tokens")
    api = ("Responses", "a server that knows only Chat Completions is openai-chat/NAME")

    def problems(self, call: CallSpec) -> Iterator[str]:
        """Yield the settings of a call that the API does not support."""
        yield from super().problems(call)
        if call.seed is not None:
            yield "the Responses API takes no seed; leave it out, or use openai-chat/NAME"

    def request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """The body of the request."""
        body = self._filled(at, call, store=False, max_output_tokens=call.args.get("max_tokens"))
        if call.schema is not None:
            form = {"type": "json_schema", "name": "reply", "strict": True, "schema": base.strict_schema(call.schema)}
            body["text"] = {"format": form}
        if call.effort is not None:
            body["reasoning"] = {"effort": call.effort}
        return body

    def _reply(self, at: Transport, content: dict[str, Any]) -> Reply:
        if not isinstance(content.get("output"), list):
            raise self._other_api(at)
        status = content.get("status")
        if status in ("queued", "in_progress", "cancelled", "failed"):
            raise ModelError(f"{at.provider.name}: the response is {status}, not completed", retryable=True)
        # the final messages, without intermediate commentary
        messages = [item for item in base.parts_of(content, "output") if item.get("type") == "message"]
        final = [item for item in messages if item.get("phase") != "commentary"] or messages
        parts = [part for item in final for part in base.parts_of(item, "content")]
        text = "".join(base.text_of(part.get("text")) for part in parts if part.get("type") == "output_text")
        refused = "".join(base.text_of(part.get("refusal")) for part in parts if part.get("type") == "refusal")
        finish: Finish = "stop"
        if status == "incomplete":  # for any reason: the text is cut off
            filtered = base.part_of(content, "incomplete_details").get("reason") == "content_filter"
            finish = "refusal" if filtered else "length"
        return Reply(text=refused or text, model="", finish="refusal" if refused else finish,
                     **self._tokens(content))  # fmt: skip


class OpenAIChatModel(_OpenAI):
    """A model behind the Chat Completions API of OpenAI, or of a compatible server at ``base_url``."""

    provider = CHAT
    path = "/chat/completions"
    messages = "messages"
    counts = ("prompt_tokens", "completion_tokens")
    api = ("Chat Completions", "see that base_url is the root of such an API")
    rules = _CHAT_RULES

    def request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """The body of the request."""
        most = "max_completion_tokens" if at.address.rstrip("/") == _HOME else "max_tokens"
        limit = {most: call.args.get("max_tokens")}
        body = self._filled(at, call, seed=call.seed, reasoning_effort=call.effort, **limit)
        structured = call.args.get("structured", "json_schema")
        if call.schema is not None and structured == "json_schema":
            form = {"name": "reply", "strict": True, "schema": base.strict_schema(call.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif call.schema is not None and structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body | (_extra(call.args.get("extra_body")) or {})

    def _reply(self, at: Transport, content: dict[str, Any]) -> Reply:
        choices = base.parts_of(content, "choices")
        if not choices or not isinstance(choices[0].get("message"), dict):
            raise self._other_api(at)
        message = choices[0]["message"]
        refused = base.text_of(message.get("refusal"))
        return Reply(
            text=refused or base.text_of(message.get("content")), model="",
            fingerprint=base.word_of(content.get("system_fingerprint")),
            finish="refusal" if refused else _CHAT_FINISH.get(str(choices[0].get("finish_reason")), "stop"),
            **self._tokens(content),
        )  # fmt: skip


LABEL: Final = "assaymark"
"""The metadata key of a batch that holds its label."""

_STATUS: Final[Mapping[str, batches.Status]] = {
    "failed": "refused", "completed": "ended", "expired": "ended", "cancelled": "cancelled",
}  # fmt: skip
_LATER: Final = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "server_error", "internal_error"})


class OpenAIBatches(batches.RemoteBatches):
    """Batches of calls to ``openai/NAME`` over ``/v1/responses``, with the label in their metadata."""

    model: ClassVar[type[_OpenAI]] = OpenAIModel
    most_items = 50_000
    most_bytes = 190_000_000
    place = "batches"
    form: ClassVar[Mapping[str, str]] = {"custom_id": "", "method": "POST", "url": "/v1/responses", "body": ""}

    async def _submit(self, items: Sequence[batches.Item], label: str) -> str:
        upload = (f"{label}.jsonl", b"".join(self.line(key, call) for key, call in items), "application/jsonl")
        create = self.client().files.with_streaming_response.create
        file = await self.object_of(create(file=upload, purpose="batch", extra_headers=self.headers))
        return await self._create(
            input_file_id=self.remote_of(file.get("id")), endpoint=self.form["url"], completion_window="24h",
            metadata={LABEL: label},
        )  # fmt: skip

    async def _find(self, label: str, _keys: Set[str], after: float, _known: Set[str], /) -> str | None:
        async for batch in batches.newest(self.batches.list(limit=100, extra_headers=self.headers)):
            if isinstance(batch.metadata, dict) and batch.metadata.get(LABEL) == label:
                return self.remote_of(batch.id)
            if isinstance(batch.created_at, int) and batch.created_at < after:
                break
        return None

    async def _state(self, remote: str) -> batches.BatchState:
        batch = await self._retrieve(remote)
        counts = base.part_of(batch, "request_counts")
        done, failed = (base.count_of(counts.get(name)) or 0 for name in ("completed", "failed"))
        status = _STATUS.get(str(batch.get("status")), "running")
        if status == "refused":
            errors = base.parts_of(batch.get("errors"), "data")
            message = "; ".join(str(error.get("message") or error.get("code")) for error in errors[:3])
            later = bool({str(error.get("code")) for error in errors} & _LATER)
            return batches.BatchState(status, reason=self.at.shown(message or "no reason is given"), retryable=later)
        return batches.BatchState(status, done, failed)

    async def _results(self, remote: str) -> AsyncIterator[list[batches.Result]]:
        batch = await self._retrieve(remote)
        content = self.client(batches.MOST_RESULT_BYTES).files.with_streaming_response.content
        for file in (batch[name] for name in ("output_file_id", "error_file_id") if batch.get(name)):
            async with content(self.remote_of(file), extra_headers=self.headers) as response:
                async for page in self.pages(response.iter_bytes()):
                    yield page

    def _answer(self, record: dict[str, Any]) -> Reply:
        response, error = base.part_of(record, "response"), base.part_of(record, "error")
        body, status = response.get("body"), response.get("status_code")
        if isinstance(body, dict):
            if isinstance(status, int) and not 200 <= status < 300:
                raise base.refusal(self.at, status, *base.words_of(body))
            return self.reply_in(body)
        reason = self.at.shown(str(error.get("message") or error.get("code") or "no response and no error is given"))
        raise ModelError(f"{self.at.provider.name}: {reason}", retryable=error.get("code") != "batch_cancelled")


class OpenAIChatBatches(OpenAIBatches):
    """Batches of calls to ``openai-chat/NAME`` over ``/v1/chat/completions``, of OpenAI or a compatible server."""

    model = OpenAIChatModel
    form: ClassVar[Mapping[str, str]] = {**OpenAIBatches.form, "url": "/v1/chat/completions"}
