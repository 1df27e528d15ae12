"""Batches of OpenAI: a file of JSON lines in, a file of results and one of errors out (``/v1/batches``)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.models.batch_parts import (
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
from assaymark.engine.models.openai_models import CHAT, RESPONSES, OpenAIChatModel, OpenAIModel
from assaymark.engine.models.wire import count_of, load_sdk
from assaymark.errors import ModelError

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
