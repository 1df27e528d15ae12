"""Batches of OpenAI: a file of JSON lines in, a file of results and one of errors out (``/v1/batches``)."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from assaymark.engine.calls import CallSpec, Finish, Model, Reply
from assaymark.engine.loop import MOST_KEPT_BYTES
from assaymark.engine.providers.base import (
    Refused,
    SdkModel,
    count_of,
    finish_of,
    read_object,
    refusal,
    strict_schema,
    word_of,
    words_of,
)
from assaymark.engine.providers.batches import (
    CLOCKS_APART_S,
    MOST_RESULT_BYTES,
    BatchState,
    Item,
    RemoteBatches,
    Result,
    Status,
    Trace,
    newest,
)
from assaymark.engine.providers.bounded_http import TooLong, bounded_client
from assaymark.engine.providers.transports import (
    PerLoop,
    Provider,
    Rule,
    Transport,
    argument_problems,
    is_number,
    load_sdk,
    refuse,
)
from assaymark.errors import InputError, ModelError, Problem
from assaymark.prompting.texts import Rejected, strict_json
from assaymark.records import JSON

# OpenAI's models over the Responses API, and every compatible server over the Chat Completions API.
#
# Request bodies follow the API reference of version v1 as the official SDK 3 types it. A call that asks for something
# that an API does not have is refused before anything is sent; nothing it asks for is left out.


_HOME: Final = "https://api.openai.com/v1"
_KEYS: Final = ("OPENAI_API_KEY",)
RESPONSES: Final = Provider("openai", "openai", "openai", _KEYS, _HOME, "OPENAI_BASE_URL")
CHAT: Final = Provider("openai-chat", "openai", "openai", _KEYS, _HOME, "OPENAI_BASE_URL")

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""What both APIs take as the effort of reasoning; which of them a model takes, its provider says."""

STRUCTURED: Final = ("json_schema", "json_object", "none")
"""How a compatible server is asked for the form of the reply: by the schema, as any JSON, or by the prompt alone."""

_OUR_FIELDS: Final = frozenset(
    {
        "model",
        "messages",
        "seed",
        "temperature",
        "reasoning_effort",
        "response_format",
        "max_tokens",
        "max_completion_tokens",
        "top_p",
        "stream",
        "n",
    }
)
_TOP_P: Final[Mapping[str, Rule]] = {"top_p": (lambda value: is_number(value, 0, 1), "a number from 0 to 1")}
_CHAT_RULES: Final[Mapping[str, Rule]] = {
    **_TOP_P,
    "structured": (lambda value: value in STRUCTURED, f"one of {', '.join(STRUCTURED)}"),
    "extra_body": (
        lambda value: (found := _extra(value)) is not None and not _OUR_FIELDS & set(found),
        f"an object, or the JSON text of one, without {', '.join(sorted(_OUR_FIELDS))}: a call sets these itself",
    ),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\-]{0,199}")
_INCOMPLETE: Final[Mapping[str, Finish]] = {"content_filter": "refusal"}
_CHAT_FINISH: Final[Mapping[str, Finish]] = {"length": "length", "content_filter": "refusal"}
_FAILURES: Final[Mapping[str, int]] = {"server_error": 500, "rate_limit_exceeded": 429}


def openai_provider(environ: Mapping[str, str] | None = None) -> Callable[[str], Model]:
    """The factory of ``openai/NAME``; `InputError` if ``NAME`` cannot be a model's name.

    >>> openai_provider()("gpt-5.6").name
    'openai/gpt-5.6'
    """
    return lambda rest: OpenAIModel(rest, environ=environ)


def openai_chat_provider(environ: Mapping[str, str] | None = None) -> Callable[[str], Model]:
    """The factory of ``openai-chat/NAME``; `InputError` if ``NAME`` cannot be a model's name.

    >>> openai_chat_provider()("Qwen/Qwen3-8B").name
    'openai-chat/Qwen/Qwen3-8B'
    """
    return lambda rest: OpenAIChatModel(rest, environ=environ)


def openai_argument_problems(model: str, args: Mapping[str, JSON]) -> Iterator[str]:
    """What is wrong with the arguments of an OpenAI or compatible model, in words; nothing for other providers.

    >>> list(openai_argument_problems("openai/gpt-5.6", {"top_p": 2}))
    ['top_p must be a number from 0 to 1 (got 2)']
    """
    provider = model.partition("/")[0]
    if provider == RESPONSES.name:
        yield from argument_problems(model, args, _TOP_P)
    elif provider == CHAT.name:
        yield from argument_problems(model, args, _CHAT_RULES)


class _OpenAI(SdkModel):
    """What both APIs share: how a model is named, the client, how a request is sent and a failure read."""

    path: ClassVar[str]

    def __init__(self, name: str, *, environ: Mapping[str, str] | None = None) -> None:
        if _NAME.fullmatch(name) is None:
            allowed = "letters, digits and . _ : / @ + -, at most 200 characters"
            raise InputError("model", [Problem("", f"must be {self.provider.name}/NAME with {allowed} (got {name!r})")])
        super().__init__(name, environ, PerLoop(self._client, lambda client: client.close()))

    def body_of(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """The body of the request of a call as it is on the wire, for a batch."""
        refuse(call, list(self._problems(call)))
        return self._request(call, at)

    def reply_of(self, call: CallSpec, at: Transport, data: bytes) -> Reply:
        """The reply in the body of a response; `ModelError` if it is none."""
        raw, found = read_object(data, at)
        reply = self._failed if isinstance(found.get("error"), dict) else self._reply
        return reply(call, at, raw, found)

    def sdk_client(self, at: Transport, most_bytes: int) -> Any:
        """A client of the SDK of one's own, which reads bodies of at most so many bytes; to be closed."""
        return self._client(at, most_bytes)

    def _client(self, at: Transport, most_bytes: int = MOST_KEPT_BYTES) -> Any:
        """The SDK's client; retries are the runner's part."""
        sdk = load_sdk(self.provider)
        key = at.key.reveal() if at.key else "none"  # the SDK wants one even where `_sent` leaves it out
        return sdk.AsyncOpenAI(
            api_key=key,
            base_url=at.address,
            timeout=at.timeout_s,
            max_retries=0,
            http_client=bounded_client(self.provider, most_bytes=most_bytes),
        )

    async def _sent(self, client: Any, request: dict[str, Any], call: CallSpec, at: Transport) -> bytes:
        sdk, form = load_sdk(self.provider), load_sdk(replace(self.provider, sdk="httpx2")).Response
        # The call key goes along as the id under which the provider and the caller both find the request.
        headers: dict[str, Any] = {"X-Client-Request-Id": call.key}
        if at.key is None:
            headers["Authorization"] = sdk.Omit()
        options = {"headers": headers, "security": {"bearer_auth": True}}
        try:
            # By path: the SDK's own methods take a tenth of a call to go over fields that they leave as they are.
            response = await client.post(self.path, cast_to=form, body=request, options=options)
        except sdk.APIConnectionError as exc:
            if isinstance(exc.__cause__, TooLong):
                return exc.__cause__.start
            raise
        return bytes(response.content)

    def _failed(self, call: CallSpec, at: Transport, raw: str, found: dict[str, Any]) -> Reply:
        """A failure that came with status 200: a refusal of the content is an outcome, anything else an error."""
        words, message = words_of(found)
        code = found["error"].get("code")
        status = next((_FAILURES[word] for word in words if word in _FAILURES), 400)
        status = code if isinstance(code, int) and 400 <= code < 600 else status
        error = refusal(Refused(status, words, message, {}), at)
        if error.refused == "content":
            return Reply(text=message, model=word_of(found.get("model")) or call.model, finish="refusal", raw=raw)
        raise error

    def _read(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        return self.reply_of(call, at, body)

    def _problems(self, call: CallSpec) -> Iterator[str]:
        yield from openai_argument_problems(call.model, call.args)
        if call.effort is not None and call.effort not in EFFORTS:
            yield f"effort must be one of {', '.join(EFFORTS)} (got {call.effort!r})"

    @abstractmethod
    def _reply(self, call: CallSpec, at: Transport, raw: str, found: dict[str, Any]) -> Reply:
        """The reply in a body that says no error."""


class OpenAIModel(_OpenAI):
    """A model of OpenAI over the Responses API, by its official SDK.

    The schema of a call goes into ``text.format`` as a strict JSON schema, its effort into ``reasoning.effort``,
    ``args.max_tokens`` into ``max_output_tokens``. ``store`` is false. The API has no seed.

    Examples
    --------
    >>> OpenAIModel("gpt-5.6").name
    'openai/gpt-5.6'
    """

    provider = RESPONSES
    path = "/responses"

    def _problems(self, call: CallSpec) -> Iterator[str]:
        yield from super()._problems(call)
        if call.seed is not None:
            yield "the Responses API takes no seed; leave it out, or use openai-chat/NAME"

    def _request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        body: dict[str, Any] = {"model": at.model, "input": _messages(call), "store": False}
        if call.schema is not None:
            form = {"type": "json_schema", "name": "reply", "strict": True, "schema": strict_schema(call.schema)}
            body["text"] = {"format": form}
        if call.effort is not None:
            body["reasoning"] = {"effort": call.effort}
        return body | _given(
            temperature=call.temperature, max_output_tokens=call.args.get("max_tokens"), top_p=call.args.get("top_p")
        )

    def _reply(self, call: CallSpec, at: Transport, raw: str, found: dict[str, Any]) -> Reply:
        if not isinstance(found.get("output"), list):
            raise _other_api(at, "Responses", "a server that knows only Chat Completions is openai-chat/NAME")
        status, usage = found.get("status"), _part(found, "usage")
        if status in ("queued", "in_progress", "cancelled", "failed"):
            raise ModelError(f"{at.provider.name}: the response is {status}, not completed", retryable=True)
        text, refused = _said(found["output"])
        finish: Finish = "stop"
        if status == "incomplete":  # for whatever reason: it is cut
            finish = finish_of(_part(found, "incomplete_details").get("reason"), _INCOMPLETE)
            finish = "length" if finish == "stop" else finish
        return Reply(
            text=refused or text,
            model=word_of(found.get("model")) or call.model,
            finish="refusal" if refused else finish,
            input_tokens=count_of(usage.get("input_tokens")),
            output_tokens=count_of(usage.get("output_tokens")),
            reasoning_tokens=count_of(_part(usage, "output_tokens_details").get("reasoning_tokens")),
            cached_tokens=count_of(_part(usage, "input_tokens_details").get("cached_tokens")),
            raw=raw,
        )


class OpenAIChatModel(_OpenAI):
    """A model behind the Chat Completions API: OpenAI's own, or of any compatible server that ``base_url`` names.

    The schema of a call goes into ``response_format`` as a strict JSON schema, unless ``args.structured`` says
    otherwise; its effort into ``reasoning_effort``. ``args.max_tokens`` is sent as ``max_completion_tokens`` to OpenAI
    and as ``max_tokens`` to others, which is the one that they all know. The fields of
    ``args.extra_body``, an object or the JSON text of one, are sent along as they are.

    Parameters and errors are those of `OpenAIModel`.

    Examples
    --------
    >>> OpenAIChatModel("qwen3:8b").name
    'openai-chat/qwen3:8b'
    """

    provider = CHAT
    path = "/chat/completions"

    def _request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        body: dict[str, Any] = {"model": at.model, "messages": _messages(call)}
        structured = call.args.get("structured", "json_schema")
        if call.schema is not None and structured == "json_schema":
            form = {"name": "reply", "strict": True, "schema": strict_schema(call.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif call.schema is not None and structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        most = "max_completion_tokens" if at.address.rstrip("/") == _HOME else "max_tokens"
        body |= _given(
            seed=call.seed,
            temperature=call.temperature,
            reasoning_effort=call.effort,
            top_p=call.args.get("top_p"),
            **{most: call.args.get("max_tokens")},
        )
        return body | (_extra(call.args.get("extra_body")) or {})

    def _reply(self, call: CallSpec, at: Transport, raw: str, found: dict[str, Any]) -> Reply:
        choices = _objects(found.get("choices"))
        if not choices or not isinstance(choices[0].get("message"), dict):
            raise _other_api(at, "Chat Completions", "see that base_url is the root of such an API")
        message, usage = choices[0]["message"], _part(found, "usage")
        refused = _text(message.get("refusal"))
        return Reply(
            text=refused or _text(message.get("content")),
            model=word_of(found.get("model")) or call.model,
            fingerprint=word_of(found.get("system_fingerprint")),
            finish="refusal" if refused else finish_of(choices[0].get("finish_reason"), _CHAT_FINISH),
            input_tokens=count_of(usage.get("prompt_tokens")),
            output_tokens=count_of(usage.get("completion_tokens")),
            reasoning_tokens=count_of(_part(usage, "completion_tokens_details").get("reasoning_tokens")),
            cached_tokens=count_of(_part(usage, "prompt_tokens_details").get("cached_tokens")),
            raw=raw,
        )


def _extra(value: object) -> dict[str, Any] | None:
    """An object as it is or as JSON text, which is how a study file can hold one; None if it is neither."""
    try:
        found = strict_json(value) if isinstance(value, str) else value
    except Rejected:
        return None
    return found if isinstance(found, dict) else None


def _messages(call: CallSpec) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in call.messages]


def _given(**fields: object) -> dict[str, Any]:
    """The fields that a call asks for."""
    return {name: value for name, value in fields.items() if value is not None}


def _said(output: list[Any]) -> tuple[str, str]:
    """The text of a response and its refusal: what its messages say, without comments on the way to the answer."""
    messages = [item for item in _objects(output) if item.get("type") == "message"]
    final = [item for item in messages if item.get("phase") != "commentary"] or messages
    parts = [part for item in final for part in _objects(item.get("content"))]
    text = "".join(_text(part.get("text")) for part in parts if part.get("type") == "output_text")
    return text, "".join(_text(part.get("refusal")) for part in parts if part.get("type") == "refusal")


def _other_api(at: Transport, api: str, advice: str) -> ModelError:
    return ModelError(
        f"{at.provider.name}: the reply of {at.address} is none of the {api} API; {advice}", retryable=False
    )


def _part(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = found.get(name)
    return part if isinstance(part, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


LABEL: Final = "assaymark"
"""The key of a batch's metadata that its label stands under."""

_STATUS: Final[Mapping[str, Status]] = {
    "failed": "refused",
    "completed": "ended",
    "expired": "ended",
    "cancelled": "cancelled",
}
_LATER: Final = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "server_error", "internal_error"})


class OpenAIBatches(RemoteBatches):
    """Batches of calls to ``openai/NAME`` over ``/v1/responses``. The label is in their metadata.

    At most 50,000 calls and 200 MB a batch; each call is sent as it would be sent alone.
    """

    provider = RESPONSES
    most_items = 50_000
    most_bytes = 190_000_000
    url: ClassVar[str] = "/v1/responses"
    model: ClassVar[type[OpenAIModel | OpenAIChatModel]] = OpenAIModel

    def __init__(self, like: CallSpec, *, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(like, environ=environ)
        self._model = self.model(self.at.model, environ=environ)

    def _line(self, key: str, call: CallSpec) -> bytes:
        body = self._model.body_of(call, self.at)
        line = {"custom_id": key, "method": "POST", "url": self.url, "body": body}
        return json.dumps(line, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"

    async def _submit(self, items: Sequence[Item], label: str) -> str:
        lines = b"".join(self._line(key, call) for key, call in items)
        client = self.client()
        upload = (f"{label}.jsonl", lines, "application/jsonl")
        file = await self.object_of(
            client.files.with_streaming_response.create(file=upload, purpose="batch", extra_headers=self._headers)
        )
        made = await self.object_of(
            client.batches.with_streaming_response.create(
                input_file_id=self.remote_of(file.get("id")),
                endpoint=self.url,
                completion_window="24h",
                metadata={LABEL: label},
                extra_headers=self._headers,
            )
        )
        return self.remote_of(made.get("id"))

    async def _find(self, trace: Trace) -> str | None:
        async for batch in newest(self.client().batches.list(limit=100, extra_headers=self._headers)):
            if isinstance(batch.metadata, dict) and batch.metadata.get(LABEL) == trace.label:
                return self.remote_of(batch.id)
            if isinstance(batch.created_at, int) and batch.created_at < trace.since - CLOCKS_APART_S:
                break
        return None

    async def _state(self, remote: str) -> BatchState:
        batch = await self._retrieve(remote)
        counts = batch.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        done, failed, total = (count_of(counts.get(name)) or 0 for name in ("completed", "failed", "total"))
        status = _STATUS.get(str(batch.get("status")), "running")
        words, reason = _errors(batch)
        if status == "refused":
            return BatchState(status, reason=self.at.shown(reason), retryable=bool(words & _LATER))
        # Calls that expired are among the failed, or in neither of the two counts.
        expired = max(total - done - failed, 0) if batch.get("status") == "expired" else 0
        return BatchState(status, done, failed, expired)

    async def _cancel(self, remote: str) -> None:
        cancel = self.client().batches.with_streaming_response.cancel
        await self.object_of(cancel(remote, extra_headers=self._headers))

    async def _results(self, remote: str) -> AsyncIterator[list[Result]]:
        batch = await self._retrieve(remote)
        files = [batch[name] for name in ("output_file_id", "error_file_id") if batch.get(name)]
        content = self.client(MOST_RESULT_BYTES).files.with_streaming_response.content
        for file in files:
            async with content(self.remote_of(file), extra_headers=self._headers) as response:
                async for page in self.pages(response.iter_bytes()):
                    yield page

    async def _retrieve(self, remote: str) -> dict[str, Any]:
        retrieve = self.client().batches.with_streaming_response.retrieve
        return await self.object_of(retrieve(remote, extra_headers=self._headers))

    def _answer(self, record: dict[str, Any]) -> Reply:
        response = record.get("response")
        if isinstance(response, dict) and isinstance(response.get("body"), dict):
            body, status = response["body"], response.get("status_code")
            if isinstance(status, int) and not 200 <= status < 300:
                raise self.refused(status, body)
            return self._model.reply_of(self.like, self.at, json.dumps(body).encode("ascii"))
        error = record.get("error")
        said = error if isinstance(error, dict) else {}
        why = self.at.shown(str(said.get("message") or said.get("code") or "no response and no error is given"))
        raise ModelError(f"{self.provider.name}: {why}", retryable=said.get("code") != "batch_cancelled")

    @property
    def _headers(self) -> dict[str, Any]:
        """A server that no key is named for gets none."""
        return {} if self.at.key else {"Authorization": load_sdk(self.provider).Omit()}

    def _client(self, most_bytes: int) -> Any:
        return self._model.sdk_client(self.at, most_bytes)


class OpenAIChatBatches(OpenAIBatches):
    """Batches of calls to ``openai-chat/NAME`` over ``/v1/chat/completions``, of OpenAI or of a server like it."""

    provider = CHAT
    url = "/v1/chat/completions"
    model = OpenAIChatModel


def _errors(batch: Mapping[str, Any]) -> tuple[set[str], str]:
    """The codes of what is wrong with a batch as a whole, and the first few messages."""
    errors = batch.get("errors")
    data = errors.get("data") if isinstance(errors, dict) else None
    found = [one for one in (data if isinstance(data, list) else []) if isinstance(one, dict)]
    codes = {str(one.get("code")) for one in found}
    return codes, "; ".join(str(one.get("message") or one.get("code")) for one in found[:3]) or "no reason is given"
