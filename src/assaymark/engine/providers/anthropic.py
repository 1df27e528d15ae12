"""Message Batches of Anthropic (``/v1/messages/batches``), which carry no label: one that was lost is guessed at."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from assaymark.engine.calls import CallSpec, Finish, Model, Reply
from assaymark.engine.loop import MOST_KEPT_BYTES
from assaymark.engine.providers.base import (
    Refused,
    SdkModel,
    as_model_error,
    count_of,
    finish_of,
    prompt_problems,
    read_object,
    refusal,
    reply_schema,
    system_and_users,
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
from assaymark.records import JSON

# Claude models over Anthropic's Messages API, by its official client.


ANTHROPIC: Final = Provider(
    name="anthropic",
    sdk="anthropic",
    extra="anthropic",
    key_envs=("ANTHROPIC_API_KEY",),
    home="https://api.anthropic.com",
    base_env="ANTHROPIC_BASE_URL",
)

API_VERSION: Final = "2026-10-21"
"""The version of the Messages API that requests are made for; it has no temperature."""

SAMPLING_API_VERSION: Final = "2023-06-01"
"""The version before it. Models up to Claude 4.6 still take a temperature there."""

DEFAULT_MAX_TOKENS: Final = 16_000
"""``max_tokens`` where a call names none, for the API must be told. What a model thinks counts towards it."""

_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_LEAST_BUDGET: Final = 1024
_MOST_BUDGET: Final = 1_000_000
_VERSIONS: Final = (API_VERSION, SAMPLING_API_VERSION)
_THINKING: Final = ("adaptive", "disabled")
_RULES: Final[Mapping[str, Rule]] = {
    "thinking": (lambda value: value in _THINKING, f"one of {', '.join(_THINKING)}"),
    "thinking_budget": (
        lambda value: isinstance(value, int) and is_number(value, _LEAST_BUDGET, _MOST_BUDGET),
        f"a whole number of tokens from {_LEAST_BUDGET} to {_MOST_BUDGET}",
    ),
    "api_version": (lambda value: value in _VERSIONS, f"one of {', '.join(_VERSIONS)}"),
}
_FINISH: Final[Mapping[str, Finish]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_UNKNOWN_TO_SCHEMAS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"}
)
_SPENT: Final = frozenset(
    {
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "organization_on_hold",
    }
)
_SPENT_SAID = re.compile(r"reached your (specified )?API usage limits", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}")


class AnthropicModel(SdkModel):
    """A Claude model. One request to ``POST /v1/messages`` an attempt; nothing is retried here.

    The text of a reply is that of its text blocks; what the model thought is only in ``raw``.

    Examples
    --------
    >>> AnthropicModel("claude-opus-5-5").name
    'anthropic/claude-opus-5-5'
    """

    provider = ANTHROPIC

    def __init__(self, name: str, *, environ: Mapping[str, str] | None = None) -> None:
        if _NAME.fullmatch(name) is None:
            problem = "must be anthropic/MODEL, such as anthropic/claude-opus-5-5"
            raise InputError(f"anthropic/{name[:80]}", [Problem("", problem)])
        super().__init__(name, environ, PerLoop(sdk_client, lambda client: client.close()))

    def _problems(self, call: CallSpec) -> Iterator[str]:
        return _call_problems(call)

    def _request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        return _request(call, at)

    async def _sent(self, client: Any, request: dict[str, Any], _call: CallSpec, at: Transport) -> bytes:
        return await _sent(client, request, at)

    def _read(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        return reply_of(body, call, at)


def anthropic_provider(environ: Mapping[str, str] | None = None) -> Callable[[str], Model]:
    """The factory of ``anthropic/NAME``; `InputError` if ``NAME`` cannot be a model's name.

    >>> anthropic_provider()("claude-opus-5-5").name
    'anthropic/claude-opus-5-5'
    """
    return lambda name: AnthropicModel(name, environ=environ)


def anthropic_argument_problems(model: str, args: Mapping[str, JSON]) -> Iterator[str]:
    """What is wrong with the arguments of a Claude model, in words; nothing for other providers.

    Allowed are ``base_url``, ``api_key_env``, ``timeout_s``, ``max_tokens`` and

    - ``thinking``: ``adaptive`` or ``disabled``;
    - ``thinking_budget``: the tokens that a model up to Claude 4.6 may think for, fewer than ``max_tokens``;
    - ``api_version``: ``2023-06-01`` for a study that sets a temperature, which later versions do not have.

    >>> list(anthropic_argument_problems("anthropic/claude-opus-5-5", {"max_tokens": 2000, "thinking": "adaptive"}))
    []
    >>> list(anthropic_argument_problems("anthropic/claude-opus-5-5", {"thinking": "hard"}))
    ["thinking must be one of adaptive, disabled (got 'hard')"]
    """
    if model.partition("/")[0] != ANTHROPIC.name:
        return
    problems = list(argument_problems(model, args, _RULES))
    yield from problems
    budget, most = args.get("thinking_budget"), args.get("max_tokens", DEFAULT_MAX_TOKENS)
    if problems or budget is None:
        return
    if "thinking" in args:
        yield "thinking and thinking_budget exclude each other"
    if isinstance(budget, int) and isinstance(most, int) and budget >= most:
        yield f"thinking_budget must be less than max_tokens, {most} (got {budget})"


def _call_problems(call: CallSpec) -> Iterator[str]:
    """What the call asks for and cannot get."""
    yield from anthropic_argument_problems(call.model, call.args)
    if call.seed is not None:
        yield f"the Messages API has no seed; leave it out (got {call.seed})"
    if call.effort is not None and call.effort not in _EFFORTS:
        yield f"effort must be one of {', '.join(_EFFORTS)} (got {call.effort!r})"
    if call.temperature is not None and call.args.get("api_version") != SAMPLING_API_VERSION:
        yield (
            f"the Messages API has no temperature since version {API_VERSION}; leave it out, or set args.api_version "
            f"to {SAMPLING_API_VERSION} for a model up to Claude 4.6 (got {call.temperature:g})"
        )
    elif call.temperature is not None and not is_number(call.temperature, 0, 1):
        yield f"temperature must be from 0 to 1 (got {call.temperature:g})"
    yield from prompt_problems(call)


def _request(call: CallSpec, at: Transport) -> dict[str, Any]:
    """The arguments of ``messages.create``."""
    system, users = system_and_users(call)
    request: dict[str, Any] = {
        "model": at.model,
        "max_tokens": call.args.get("max_tokens", DEFAULT_MAX_TOKENS),
        "messages": [{"role": "user", "content": text} for text in users],
        "timeout": at.timeout_s,
        # Also because the environment variable ANTHROPIC_CUSTOM_HEADERS could name another version.
        "extra_headers": {"anthropic-version": version_of(call)},
    }
    if system:
        request["system"] = system
    if output := _output(call):
        request["output_config"] = output
    if thinking := _thinking(call.args):
        request["thinking"] = thinking
    if call.temperature is not None:
        request["extra_body"] = {"temperature": call.temperature}  # the client has no parameter for it any more
    return request


def message_params(call: CallSpec, at: Transport) -> dict[str, Any]:
    """The body of the request of a call as it is on the wire, for a batch."""
    refuse(call, list(_call_problems(call)))
    request = _request(call, at)
    for name in ("timeout", "extra_headers"):
        del request[name]
    more: dict[str, Any] = request.pop("extra_body", {})
    return request | more


def version_of(call: CallSpec) -> str:
    """The version of the API that a call is made for."""
    return str(call.args.get("api_version", API_VERSION))


def _output(call: CallSpec) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if call.effort is not None:
        output["effort"] = call.effort
    if (schema := reply_schema(call, _UNKNOWN_TO_SCHEMAS, "Messages API")) is not None:
        output["format"] = {"type": "json_schema", "schema": schema}
    return output


def _thinking(args: Mapping[str, JSON]) -> dict[str, Any] | None:
    if "thinking_budget" in args:
        return {"type": "enabled", "budget_tokens": args["thinking_budget"]}
    return {"type": args["thinking"]} if "thinking" in args else None


def sdk_client(at: Transport, most_bytes: int = MOST_KEPT_BYTES) -> Any:
    """A client of the SDK, which reads bodies of at most so many bytes; to be closed."""
    sdk = load_sdk(ANTHROPIC)
    # A key must be given, or the client looks for one of its own; without one of ours, none is sent.
    headers = {} if at.key else {"Authorization": sdk.Omit()}
    return sdk.AsyncAnthropic(
        api_key=at.key.reveal() if at.key else "none",
        base_url=at.address,
        timeout=at.timeout_s,
        max_retries=0,
        default_headers=headers,
        http_client=bounded_client(ANTHROPIC, most_bytes=most_bytes),
    )


async def _sent(client: Any, request: dict[str, Any], at: Transport) -> bytes:
    """The body of the reply, or the start of one that is too long to be kept."""
    try:
        async with client.messages.with_streaming_response.create(**request) as response:
            return bytes(await response.read())
    except TooLong as exc:
        return exc.start
    except Exception as exc:
        error = failure_of(exc, at)
    raise error


def failure_of(exc: Exception, at: Transport) -> ModelError:
    """What went wrong; spending limits come with the status of a rate limit or of a bad request."""
    status = getattr(exc, "status_code", None)
    words, message = words_of(getattr(exc, "body", None))
    if isinstance(status, int) and (words & _SPENT or _SPENT_SAID.search(message)):
        return refusal(Refused(status, words | {"billing_error"}, message, {}), at)
    return as_model_error(exc, at)


def reply_of(body: bytes, call: CallSpec, at: Transport) -> Reply:
    """The reply in a body; how ``usage`` counts is in the reference of the Messages API, "Usage"."""
    raw, found = read_object(body, at)
    content = found.get("content")
    if found.get("type") != "message" or not isinstance(content, list):
        raise ModelError(f"anthropic: the reply of {at.address} is no message of the Messages API", retryable=False)
    text = "".join(_text_of(block) for block in content)
    finish = finish_of(found.get("stop_reason"), _FINISH)
    counts = _counts(found.get("usage"))
    if finish == "refusal" and not text:
        text = _explanation(found.get("stop_details"))
    model = word_of(found.get("model")) or call.model
    return Reply(text=at.scrubbed(text), model=model, finish=finish, raw=raw, **counts)


def _text_of(block: object) -> str:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _explanation(details: object) -> str:
    said = details.get("explanation") if isinstance(details, dict) else None
    return said if isinstance(said, str) else ""


def _counts(usage: object) -> dict[str, Any]:
    """Tokens. ``input_tokens`` of the API leaves out what was read from and written to its cache."""
    known = usage if isinstance(usage, dict) else {}
    fresh, cached, written = (
        count_of(known.get(name)) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    details = known.get("output_tokens_details")
    return {
        "input_tokens": None if fresh is None else fresh + (cached or 0) + (written or 0),
        "output_tokens": count_of(known.get("output_tokens")),
        "reasoning_tokens": count_of(details.get("thinking_tokens")) if isinstance(details, dict) else None,
        "cached_tokens": cached,
    }


_COUNTS: Final = ("processing", "succeeded", "errored", "canceled", "expired")
_STATUS_OF_ERRORS: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_NO_ERROR: Final[Mapping[str, tuple[str, bool]]] = {
    "expired": ("the batch ended before this call was made", True),
    "canceled": ("the batch was cancelled before this call was made", False),
}


class AnthropicBatches(RemoteBatches):
    """Batches of calls to ``anthropic/NAME``. At most 100,000 calls and 256 MB a batch.

    The API keeps nothing of ours with a batch that could name it. So `find` looks at the newest batches of as many
    calls that were made since: one that has ended must hold one of our keys, one that still runs is taken on trust
    until its results say whose they are.
    """

    provider = ANTHROPIC
    most_items = 100_000
    most_bytes = 240_000_000
    keeps_labels = False

    def _line(self, key: str, call: CallSpec) -> bytes:
        return json.dumps(self._request(key, call), allow_nan=False).encode("ascii")

    def _request(self, key: str, call: CallSpec) -> dict[str, Any]:
        return {"custom_id": key, "params": message_params(call, self.at)}

    async def _submit(self, items: Sequence[Item], label: str) -> str:
        del label  # there is no place for it
        requests = [self._request(key, call) for key, call in items]
        create = self.client().messages.batches.with_streaming_response.create
        made = await self.object_of(create(requests=requests, extra_headers=self._headers))
        return self.remote_of(made.get("id"))

    async def _find(self, trace: Trace) -> str | None:
        running: str | None = None
        batches = self.client().messages.batches.list(limit=100, extra_headers=self._headers)
        async for batch in newest(batches):
            made = batch.created_at
            if isinstance(made, datetime) and made.timestamp() < trace.since - CLOCKS_APART_S:
                break
            counts = [count_of(getattr(batch.request_counts, name, None)) or 0 for name in _COUNTS]
            if sum(counts) != len(trace.keys) or batch.id in trace.known:
                continue
            remote = self.remote_of(batch.id)
            if batch.processing_status != "ended":
                running = remote  # of several, the one made first
            elif await self._holds(remote, trace.keys):
                return remote
        return running

    async def _holds(self, remote: str, keys: frozenset[str]) -> bool:
        """Whether the first results of a batch are those of our calls."""
        async for page in self._results(remote):
            if page:
                return any(key in keys for key, _ in page)
        return False

    async def _state(self, remote: str) -> BatchState:
        retrieve = self.client().messages.batches.with_streaming_response.retrieve
        batch = await self.object_of(retrieve(remote, extra_headers=self._headers))
        found = batch.get("request_counts")
        counts = {name: count_of(found.get(name)) or 0 for name in _COUNTS} if isinstance(found, dict) else {}
        if batch.get("archived_at") and not batch.get("results_url"):
            return BatchState("gone", reason=f"the results of batch {remote} are no longer kept")
        done, failed, expired = (counts.get(name, 0) for name in ("succeeded", "errored", "expired"))
        if batch.get("processing_status") != "ended":
            return BatchState("running", done, failed, expired)
        cancelled = batch.get("cancel_initiated_at") is not None
        return BatchState("cancelled" if cancelled else "ended", done, failed, expired)

    async def _cancel(self, remote: str) -> None:
        cancel = self.client().messages.batches.with_streaming_response.cancel
        await self.object_of(cancel(remote, extra_headers=self._headers))

    async def _results(self, remote: str) -> AsyncIterator[list[Result]]:
        results = self.client(MOST_RESULT_BYTES).messages.batches.with_streaming_response.results
        async with results(remote, extra_headers=self._headers) as response:
            async for page in self.pages(response.iter_bytes()):
                yield page

    def _answer(self, record: dict[str, Any]) -> Reply:
        result = record.get("result")
        result = result if isinstance(result, dict) else {}
        kind, message = result.get("type"), result.get("message")
        if kind == "succeeded" and isinstance(message, dict):
            return reply_of(json.dumps(message).encode("ascii"), self.like, self.at)
        error = result.get("error")
        if kind == "errored" and isinstance(error, dict):
            inner = error.get("error")
            name = inner.get("type") if isinstance(inner, dict) else None
            raise self.refused(_STATUS_OF_ERRORS.get(str(name), 400), error)
        why, retryable = _NO_ERROR.get(str(kind), ("the result is of no known kind", True))
        raise ModelError(f"anthropic: {why}", retryable=retryable)

    @property
    def _headers(self) -> dict[str, str]:
        return {"anthropic-version": version_of(self.like)}

    def _failure(self, exc: Exception) -> ModelError:
        return failure_of(exc, self.at)

    def _client(self, most_bytes: int) -> Any:
        return sdk_client(self.at, most_bytes)
