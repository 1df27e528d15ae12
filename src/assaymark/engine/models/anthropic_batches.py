"""Message Batches of Anthropic (``/v1/messages/batches``), which carry no label: one that was lost is guessed at."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.models.anthropic_models import (
    ANTHROPIC,
    failure_of,
    message_params,
    reply_of,
    sdk_client,
    version_of,
)
from assaymark.engine.models.batch_parts import (
    CLOCKS_APART_S,
    MOST_RESULT_BYTES,
    BatchState,
    Item,
    RemoteBatches,
    Result,
    Trace,
    newest,
)
from assaymark.engine.models.wire import count_of
from assaymark.errors import ModelError

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
