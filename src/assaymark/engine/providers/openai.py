"""OpenAI's models over the Responses API, every compatible server over the Chat Completions API, and their batches.

Request bodies follow the API reference of version v1 as the official SDK 3 types it. A call that asks for something
that an API does not have is refused before anything is sent; nothing it asks for is left out.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from assaymark.engine.calls import CallSpec, Finish, Reply
from assaymark.engine.loop import MOST_KEPT_BYTES
from assaymark.engine.providers.base import (
    Refused,
    SdkModel,
    bounded_client,
    count_of,
    finish_of,
    part_of,
    parts_of,
    read_object,
    refusal,
    strict_schema,
    text_of,
    word_of,
    words_of,
)
from assaymark.engine.providers.batches import (
    CLOCKS_APART_S,
    MOST_RESULT_BYTES,
    BatchState,
    Item,
    Result,
    Status,
    StreamedBatches,
    Trace,
    newest,
)
from assaymark.engine.providers.transports import Provider, Rule, Transport, is_number, load_sdk
from assaymark.errors import ModelError
from assaymark.prompting import Rejected, strict_json

_HOME: Final = "https://api.openai.com/v1"
_KEYS: Final = ("OPENAI_API_KEY",)
RESPONSES: Final = Provider("openai", "openai", "openai", _KEYS, _HOME, "OPENAI_BASE_URL")
CHAT: Final = Provider("openai-chat", "openai", "openai", _KEYS, _HOME, "OPENAI_BASE_URL")

STRUCTURED: Final = ("json_schema", "json_object", "none")
"""How a compatible server is asked for the form of the reply: by the schema, as any JSON, or by the prompt alone."""

_OUR_FIELDS: Final = frozenset({
    "model", "messages", "seed", "temperature", "reasoning_effort", "response_format", "max_tokens",
    "max_completion_tokens", "top_p", "stream", "n",
})  # fmt: skip
_TOP_P: Final[Mapping[str, Rule]] = {"top_p": (lambda value: is_number(value, 0, 1), "a number from 0 to 1")}
_CHAT_RULES: Final[Mapping[str, Rule]] = {
    **_TOP_P,
    "structured": (lambda value: value in STRUCTURED, f"one of {', '.join(STRUCTURED)}"),
    "extra_body": (
        lambda value: (found := _extra(value)) is not None and not _OUR_FIELDS & set(found),
        f"an object, or the JSON text of one, without {', '.join(sorted(_OUR_FIELDS))}: a call sets these itself",
    ),
}
_CHAT_FINISH: Final[Mapping[str, Finish]] = {"length": "length", "content_filter": "refusal"}
_FAILURES: Final[Mapping[str, int]] = {"server_error": 500, "rate_limit_exceeded": 429}


def _extra(value: object) -> dict[str, Any] | None:
    """An object as it is or as JSON text, which is how a study file can hold one; None if it is neither."""
    try:
        found = strict_json(value) if isinstance(value, str) else value
    except Rejected:
        return None
    return found if isinstance(found, dict) else None


def _without_key(at: Transport) -> dict[str, Any]:
    """The header of a server that no key is named for: it gets none."""
    return {} if at.key else {"Authorization": load_sdk(at.provider).Omit()}


class _OpenAI(SdkModel):
    """What both APIs share: how a model is named, the client, how a request is sent and a failure read."""

    path: ClassVar[str]
    names = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\-]{0,199}")
    named = "NAME with letters, digits and . _ : / @ + -, at most 200 characters"
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max")  # of which a model takes some
    rules: ClassVar[Mapping[str, Rule]] = _TOP_P

    def client(self, at: Transport, most_bytes: int = MOST_KEPT_BYTES) -> Any:
        """The SDK's client; retries are the runner's part."""
        return load_sdk(self.provider).AsyncOpenAI(
            api_key=at.key.reveal() if at.key else "none",  # the SDK wants one even where `sent` leaves it out
            base_url=at.address,
            timeout=at.timeout_s,
            max_retries=0,
            http_client=bounded_client(self.provider, most_bytes=most_bytes),
        )

    async def sent(self, client: Any, request: dict[str, Any], call: CallSpec, at: Transport) -> bytes:
        """The body of the reply."""
        form = load_sdk(replace(self.provider, sdk="httpx2")).Response
        # The call key goes along as the id under which the provider and the caller both find the request.
        headers = {"X-Client-Request-Id": call.key, **_without_key(at)}
        options = {"headers": headers, "security": {"bearer_auth": True}}
        # By path: the SDK's own methods take a tenth of a call to go over fields that they leave as they are.
        response = await client.post(self.path, cast_to=form, body=request, options=options)
        return bytes(response.content)

    def reply_of(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        """The reply in a body. A failure with status 200: a refusal of the content is an outcome, else an error."""
        raw, found = read_object(body, at)
        if not isinstance(found.get("error"), dict):
            return replace(self._reply(at, found), raw=raw, model=word_of(found.get("model")) or call.model)
        words, message = words_of(found)
        code = found["error"].get("code")
        status = next((_FAILURES[word] for word in words if word in _FAILURES), 400)
        status = code if isinstance(code, int) and 400 <= code < 600 else status
        error = refusal(Refused(status, words, message, {}), at)
        if error.refused == "content":
            return Reply(text=message, model=word_of(found.get("model")) or call.model, finish="refusal", raw=raw)
        raise error

    @abstractmethod
    def _reply(self, at: Transport, found: dict[str, Any]) -> Reply:
        """The reply in a body that says no error."""

    def _tokens(self, found: dict[str, Any], asked: str, answered: str) -> dict[str, Any]:
        """The counts of a body, by what the API calls what was asked and answered."""
        usage = part_of(found, "usage")
        return {
            "input_tokens": count_of(usage.get(asked)),
            "output_tokens": count_of(usage.get(answered)),
            "reasoning_tokens": count_of(part_of(usage, f"{answered}_details").get("reasoning_tokens")),
            "cached_tokens": count_of(part_of(usage, f"{asked}_details").get("cached_tokens")),
        }


def _body(at: Transport, call: CallSpec, messages: str, **fields: object) -> dict[str, Any]:
    """A body with the fields that a call asks for; ``messages`` is what the API calls its messages."""
    said = [{"role": message.role, "content": message.text} for message in call.messages]
    given = {"temperature": call.temperature, "top_p": call.args.get("top_p"), **fields}
    return {"model": at.model, messages: said} | {name: value for name, value in given.items() if value is not None}


def _other_api(at: Transport, api: str, advice: str) -> ModelError:
    what = f"the reply of {at.address} is none of the {api} API"
    return ModelError(f"{at.provider.name}: {what}; {advice}", retryable=False)


class OpenAIModel(_OpenAI):
    """A model of OpenAI over the Responses API, by its official SDK.

    The schema of a call goes into ``text.format`` as a strict JSON schema, its effort into ``reasoning.effort``,
    ``args.max_tokens`` into ``max_output_tokens``. ``store`` is false. The API has no seed.
    """

    provider = RESPONSES
    path = "/responses"

    def problems(self, call: CallSpec) -> Iterator[str]:
        """What the call asks for and cannot get."""
        yield from super().problems(call)
        if call.seed is not None:
            yield "the Responses API takes no seed; leave it out, or use openai-chat/NAME"

    def request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """The body of the request."""
        body = _body(at, call, "input", store=False, max_output_tokens=call.args.get("max_tokens"))
        if call.schema is not None:
            form = {"type": "json_schema", "name": "reply", "strict": True, "schema": strict_schema(call.schema)}
            body["text"] = {"format": form}
        if call.effort is not None:
            body["reasoning"] = {"effort": call.effort}
        return body

    def _reply(self, at: Transport, found: dict[str, Any]) -> Reply:
        if not isinstance(found.get("output"), list):
            raise _other_api(at, "Responses", "a server that knows only Chat Completions is openai-chat/NAME")
        status = found.get("status")
        if status in ("queued", "in_progress", "cancelled", "failed"):
            raise ModelError(f"{at.provider.name}: the response is {status}, not completed", retryable=True)
        # what the messages say, without comments on the way to the answer
        messages = [item for item in parts_of(found, "output") if item.get("type") == "message"]
        final = [item for item in messages if item.get("phase") != "commentary"] or messages
        parts = [part for item in final for part in parts_of(item, "content")]
        text = "".join(text_of(part.get("text")) for part in parts if part.get("type") == "output_text")
        refused = "".join(text_of(part.get("refusal")) for part in parts if part.get("type") == "refusal")
        finish: Finish = "stop"
        if status == "incomplete":  # for whatever reason: it is cut
            filtered = part_of(found, "incomplete_details").get("reason") == "content_filter"
            finish = "refusal" if filtered else "length"
        counts = self._tokens(found, "input_tokens", "output_tokens")
        return Reply(text=refused or text, model="", finish="refusal" if refused else finish, **counts)


class OpenAIChatModel(_OpenAI):
    """A model behind the Chat Completions API: OpenAI's own, or of any compatible server that ``base_url`` names.

    The schema of a call goes into ``response_format`` as a strict JSON schema, unless ``args.structured`` says
    otherwise; its effort into ``reasoning_effort``. ``args.max_tokens`` is sent as ``max_completion_tokens`` to OpenAI
    and as ``max_tokens`` to others, which is the one that they all know. The fields of ``args.extra_body``, an object
    or the JSON text of one, are sent along as they are.
    """

    provider = CHAT
    path = "/chat/completions"
    rules = _CHAT_RULES

    def request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """The body of the request."""
        most = "max_completion_tokens" if at.address.rstrip("/") == _HOME else "max_tokens"
        limit = {most: call.args.get("max_tokens")}
        body = _body(at, call, "messages", seed=call.seed, reasoning_effort=call.effort, **limit)
        structured = call.args.get("structured", "json_schema")
        if call.schema is not None and structured == "json_schema":
            form = {"name": "reply", "strict": True, "schema": strict_schema(call.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif call.schema is not None and structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body | (_extra(call.args.get("extra_body")) or {})

    def _reply(self, at: Transport, found: dict[str, Any]) -> Reply:
        choices = parts_of(found, "choices")
        if not choices or not isinstance(choices[0].get("message"), dict):
            raise _other_api(at, "Chat Completions", "see that base_url is the root of such an API")
        message = choices[0]["message"]
        refused = text_of(message.get("refusal"))
        return Reply(
            text=refused or text_of(message.get("content")),
            model="",
            fingerprint=word_of(found.get("system_fingerprint")),
            finish="refusal" if refused else finish_of(choices[0].get("finish_reason"), _CHAT_FINISH),
            **self._tokens(found, "prompt_tokens", "completion_tokens"),
        )


LABEL: Final = "assaymark"
"""The key of a batch's metadata that holds its label."""

_STATUS: Final[Mapping[str, Status]] = {
    "failed": "refused",
    "completed": "ended",
    "expired": "ended",
    "cancelled": "cancelled",
}
_LATER: Final = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "server_error", "internal_error"})


class OpenAIBatches(StreamedBatches):
    """Batches of calls to ``openai/NAME`` over ``/v1/responses``. The label is in their metadata.

    A file of JSON lines in, a file of results and one of errors out. At most 50,000 calls and 200 MB a batch; each call
    is sent as it would be sent alone.
    """

    model: ClassVar[type[_OpenAI]] = OpenAIModel
    most_items = 50_000
    most_bytes = 190_000_000

    def _record(self, key: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"custom_id": key, "method": "POST", "url": f"/v1{self.model.path}", "body": body}

    async def _submit(self, items: Sequence[Item], label: str) -> str:
        upload = (f"{label}.jsonl", b"".join(self.line(key, call) for key, call in items), "application/jsonl")
        create = self.client().files.with_streaming_response.create
        file = await self.object_of(create(file=upload, purpose="batch", extra_headers=self._headers))
        return await self._created(
            input_file_id=self.remote_of(file.get("id")),
            endpoint=f"/v1{self.model.path}",
            completion_window="24h",
            metadata={LABEL: label},
        )

    async def _find(self, trace: Trace) -> str | None:
        async for batch in newest(self._batches.list(limit=100, extra_headers=self._headers)):
            if isinstance(batch.metadata, dict) and batch.metadata.get(LABEL) == trace.label:
                return self.remote_of(batch.id)
            if isinstance(batch.created_at, int) and batch.created_at < trace.since - CLOCKS_APART_S:
                break
        return None

    async def _state(self, remote: str) -> BatchState:
        batch = await self._retrieved(remote)
        counts = part_of(batch, "request_counts")
        done, failed, total = (count_of(counts.get(name)) or 0 for name in ("completed", "failed", "total"))
        status = _STATUS.get(str(batch.get("status")), "running")
        if status == "refused":
            errors = parts_of(batch.get("errors"), "data")
            said = "; ".join(str(error.get("message") or error.get("code")) for error in errors[:3])
            later = bool({str(error.get("code")) for error in errors} & _LATER)
            return BatchState(status, reason=self.at.shown(said or "no reason is given"), retryable=later)
        # Calls that expired are among the failed, or in neither of the two counts.
        expired = max(total - done - failed, 0) if batch.get("status") == "expired" else 0
        return BatchState(status, done, failed, expired)

    async def _results(self, remote: str) -> AsyncIterator[list[Result]]:
        batch = await self._retrieved(remote)
        content = self.client(MOST_RESULT_BYTES).files.with_streaming_response.content
        for file in (batch[name] for name in ("output_file_id", "error_file_id") if batch.get(name)):
            async with content(self.remote_of(file), extra_headers=self._headers) as response:
                async for page in self.pages(response.iter_bytes()):
                    yield page

    def _answer(self, record: dict[str, Any]) -> Reply:
        response, error = part_of(record, "response"), part_of(record, "error")
        body, status = response.get("body"), response.get("status_code")
        if isinstance(body, dict):
            if isinstance(status, int) and not 200 <= status < 300:
                raise self.refused(status, body)
            return self.reply_in(body)
        why = self.at.shown(str(error.get("message") or error.get("code") or "no response and no error is given"))
        raise ModelError(f"{self.at.provider.name}: {why}", retryable=error.get("code") != "batch_cancelled")

    @property
    def _batches(self) -> Any:
        return self.client().batches

    @property
    def _headers(self) -> dict[str, Any]:
        return _without_key(self.at)


class OpenAIChatBatches(OpenAIBatches):
    """Batches of calls to ``openai-chat/NAME`` over ``/v1/chat/completions``, of OpenAI or of a server like it."""

    model = OpenAIChatModel
