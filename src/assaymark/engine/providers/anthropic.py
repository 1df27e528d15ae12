"""Claude models over Anthropic's Messages API, by its official client, and its Message Batches."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, ClassVar, Final

from assaymark.engine.calls import CallSpec, Finish, Reply
from assaymark.engine.prices import SENT_OUTPUT_TOKENS
from assaymark.engine.providers import base, batches
from assaymark.engine.providers.transports import Provider, Rule, Transport, is_number
from assaymark.errors import ModelError
from assaymark.records import JSON

ANTHROPIC: Final = Provider(
    name="anthropic", sdk="anthropic", extra="anthropic", key_envs=("ANTHROPIC_API_KEY",),
    home="https://api.anthropic.com", base_env="ANTHROPIC_BASE_URL",
)  # fmt: skip

API_VERSION: Final = "2026-10-21"
"""The version of the Messages API that requests are made for; it has no temperature."""

SAMPLING_API_VERSION: Final = "2023-06-01"
"""The previous version, in which models up to Claude 4.6 still take a temperature."""

DEFAULT_MAX_TOKENS: Final = SENT_OUTPUT_TOKENS["anthropic"]
"""``max_tokens`` if a call sets none, since the API requires it. Reasoning tokens count towards it."""

_BUDGETS: Final = (1024, 1_000_000)
_VERSIONS: Final = (API_VERSION, SAMPLING_API_VERSION)
_THINKING: Final = ("adaptive", "disabled")
_RULES: Final[Mapping[str, Rule]] = {
    "thinking": (lambda value: value in _THINKING, f"one of {', '.join(_THINKING)}"),
    "thinking_budget": (
        lambda value: isinstance(value, int) and is_number(value, *_BUDGETS),
        f"a whole number of tokens from {_BUDGETS[0]} to {_BUDGETS[1]}",
    ),
    "api_version": (lambda value: value in _VERSIONS, f"one of {', '.join(_VERSIONS)}"),
}
_FINISH: Final[Mapping[str, Finish]] = {
    "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal",
}  # fmt: skip
_UNKNOWN_TO_SCHEMAS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"}
)
_SPENT: Final = frozenset({
    "enforced_spend_limit_reached", "contract_spend_limit_reached", "linked_organization_spend_limit_reached",
    "linked_organization_billing_unavailable", "organization_on_hold",
})  # fmt: skip
_SPENT_SAID = re.compile(r"reached your (specified )?API usage limits", re.IGNORECASE)


class AnthropicModel(base.SdkModel):
    """A Claude model. Each attempt is one request to ``POST /v1/messages``, without retries."""

    provider = ANTHROPIC

    names = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}")
    named = "MODEL, such as anthropic/claude-opus-5-5"
    rules = _RULES
    efforts = ("low", "medium", "high", "xhigh", "max")
    client_class = "AsyncAnthropic"
    path = "/v1/messages"

    @classmethod
    def argument_problems(cls, model: str, args: Mapping[str, JSON]) -> Iterator[str]:
        """Yield the problems with the arguments of a Claude model."""
        problems = list(super().argument_problems(model, args))
        yield from problems
        budget, most = args.get("thinking_budget"), args.get("max_tokens", DEFAULT_MAX_TOKENS)
        if problems or budget is None:
            return
        if "thinking" in args:
            yield "thinking and thinking_budget exclude each other"
        if isinstance(budget, int) and isinstance(most, int) and budget >= most:
            yield f"thinking_budget must be less than max_tokens, {most} (got {budget})"

    def problems(self, call: CallSpec) -> Iterator[str]:
        """Yield the settings of a call that the API does not support."""
        yield from super().problems(call)
        if call.seed is not None:
            yield f"the Messages API has no seed; leave it out (got {call.seed})"
        if call.temperature is not None and call.args.get("api_version") != SAMPLING_API_VERSION:
            yield (
                f"the Messages API has no temperature since version {API_VERSION}; leave it out, or set "
                f"args.api_version to {SAMPLING_API_VERSION} for a model up to Claude 4.6 (got {call.temperature:g})"
            )
        elif call.temperature is not None and not is_number(call.temperature, 0, 1):
            yield f"temperature must be from 0 to 1 (got {call.temperature:g})"
        yield from base.prompt_problems(call)

    def request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return the JSON body of the request of a call."""
        system, users = base.system_and_users(call)
        body: dict[str, Any] = {
            "model": at.model, "max_tokens": call.args.get("max_tokens", DEFAULT_MAX_TOKENS),
            "messages": [{"role": "user", "content": text} for text in users],
        }  # fmt: skip
        if system:
            body["system"] = system
        output: dict[str, Any] = {} if call.effort is None else {"effort": call.effort}
        if (schema := base.reply_schema(call, _UNKNOWN_TO_SCHEMAS, "Messages API")) is not None:
            output["format"] = {"type": "json_schema", "schema": schema}
        if output:
            body["output_config"] = output
        if "thinking_budget" in call.args:
            body["thinking"] = {"type": "enabled", "budget_tokens": call.args["thinking_budget"]}
        elif "thinking" in call.args:
            body["thinking"] = {"type": call.args["thinking"]}
        return body if call.temperature is None else body | {"temperature": call.temperature}

    def headers(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return the API version too, since the environment variable ANTHROPIC_CUSTOM_HEADERS could set another one."""
        return {**super().headers(call, at), "anthropic-version": str(call.args.get("api_version", API_VERSION))}

    def failure(self, exc: Exception, at: Transport) -> ModelError:
        """Map an exception to a `ModelError`; spending limits have the status of a rate limit or of a bad request."""
        status = getattr(exc, "status_code", None)
        words, message = base.words_of(getattr(exc, "body", None))
        if isinstance(status, int) and (words & _SPENT or _SPENT_SAID.search(message)):
            return base.refusal(at, status, words | {"billing_error"}, message)
        return base.as_model_error(exc, at)

    def reply_of(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        """Return the reply in a body. For token counts, see "Usage" in the reference of the Messages API."""
        raw, content = base.read_object(body, at)
        if content.get("type") != "message" or not isinstance(content.get("content"), list):
            message = f"the reply of {at.address} is not a message of the Messages API"
            raise ModelError(f"anthropic: {message}", retryable=False)
        blocks = [block for block in base.parts_of(content, "content") if block.get("type") == "text"]
        text = "".join(base.text_of(block.get("text")) for block in blocks)
        finish, usage = _FINISH.get(str(content.get("stop_reason")), "stop"), base.part_of(content, "usage")
        if finish == "refusal" and not text:
            text = base.text_of(base.part_of(content, "stop_details").get("explanation"))
        # ``input_tokens`` of the API excludes tokens read from and written to its cache
        fresh, cached = base.count_of(usage.get("input_tokens")), base.count_of(usage.get("cache_read_input_tokens"))
        written = base.count_of(usage.get("cache_creation_input_tokens"))
        return Reply(
            at.scrubbed(text), base.word_of(content.get("model")) or call.model, finish, raw,
            input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
            output_tokens=base.count_of(usage.get("output_tokens")),
            reasoning_tokens=base.count_of(base.part_of(usage, "output_tokens_details").get("thinking_tokens")),
            cached_tokens=cached,
        )  # fmt: skip


_COUNTS: Final = ("processing", "succeeded", "errored", "canceled", "expired")
_STATUS_OF_ERRORS: Final[Mapping[str, int]] = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
_NO_ERROR: Final[Mapping[str, tuple[str, bool]]] = {
    "expired": ("the batch ended before this call was made", True),
    "canceled": ("the batch was cancelled before this call was made", False),
}


class AnthropicBatches(batches.RemoteBatches):
    """Batches of calls to ``anthropic/NAME``, of at most 100,000 calls and 256 MB each."""

    model = AnthropicModel
    most_items = 100_000
    most_bytes = 240_000_000
    keeps_labels = False
    place = "messages.batches"
    form: ClassVar[Mapping[str, str]] = {"custom_id": "", "params": ""}

    async def _submit(self, items: Sequence[batches.Item], label: str) -> str:
        del label  # the API has no field for it
        return await self._create(requests=[self.record(key, call) for key, call in items])

    async def _find(self, _label: str, keys: Set[str], after: float, known: Set[str], /) -> str | None:
        running: str | None = None
        async for batch in batches.newest(self.batches.list(limit=100, extra_headers=self.headers)):
            created = batch.created_at
            if isinstance(created, datetime) and created.timestamp() < after:
                break
            counts = [base.count_of(getattr(batch.request_counts, name, None)) or 0 for name in _COUNTS]
            if sum(counts) != len(keys) or batch.id in known:
                continue
            remote = self.remote_of(batch.id)
            if batch.processing_status != "ended":
                running = remote  # of several, the oldest
                continue
            async for page in self._results(remote):
                if page:  # the first results show if the batch has our calls
                    if any(key in keys for key, _ in page):
                        return remote
                    break
        return running

    async def _state(self, remote: str) -> batches.BatchState:
        batch = await self._retrieve(remote)
        counts = base.part_of(batch, "request_counts")
        if batch.get("archived_at") and not batch.get("results_url"):
            return batches.BatchState("gone", reason=f"the results of batch {remote} are no longer kept")
        done, failed = (base.count_of(counts.get(name)) or 0 for name in ("succeeded", "errored"))
        status: batches.Status = "ended" if batch.get("cancel_initiated_at") is None else "cancelled"
        status = status if batch.get("processing_status") == "ended" else "running"
        return batches.BatchState(status, done, failed)

    async def _results(self, remote: str) -> AsyncIterator[list[batches.Result]]:
        results = self.client(batches.MOST_RESULT_BYTES).messages.batches.with_streaming_response.results
        async with results(remote, extra_headers=self.headers) as response:
            async for page in self.pages(response.iter_bytes()):
                yield page

    def _answer(self, record: dict[str, Any]) -> Reply:
        result = base.part_of(record, "result")
        kind, message, error = result.get("type"), result.get("message"), result.get("error")
        if kind == "succeeded" and isinstance(message, dict):
            return self.reply_in(message)
        if kind == "errored" and isinstance(error, dict):
            status = _STATUS_OF_ERRORS.get(str(base.part_of(error, "error").get("type")), 400)
            raise base.refusal(self.at, status, *base.words_of(error))
        reason, retryable = _NO_ERROR.get(str(kind), ("the result is of no known kind", True))
        raise ModelError(f"anthropic: {reason}", retryable=retryable)
