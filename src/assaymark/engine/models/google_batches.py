"""Batches of the Gemini API: a file of JSON lines in, one of results out (``batchGenerateContent``)."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import IO, Any, Final

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
from assaymark.engine.models.google_models import GOOGLE, content_body, failure_of, reply_of, sdk_clients, shut
from assaymark.errors import ModelError

_STATUS: Final[Mapping[str, Status]] = {
    "JOB_STATE_SUCCEEDED": "ended",
    "JOB_STATE_PARTIALLY_SUCCEEDED": "ended",
    "JOB_STATE_EXPIRED": "ended",
    "JOB_STATE_CANCELLED": "cancelled",
    "JOB_STATE_FAILED": "refused",
}
_STATUS_OF_CODES: Final[Mapping[int, int]] = {
    3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 13: 500, 14: 503, 16: 401,
}  # fmt: skip
_IN_MEMORY: Final = 16_000_000
_CHUNK: Final = 1 << 20


class GoogleBatches(RemoteBatches):
    """Batches of calls to ``google/NAME``. The label is their display name.

    They go as a file, because its lines carry our keys and their results are sure to do so; at most 2 GB, of which a
    batch here takes a tenth.
    """

    provider = GOOGLE
    most_items = 50_000
    most_bytes = 190_000_000

    def _line(self, key: str, call: CallSpec) -> bytes:
        line = {"key": key, "request": content_body(call, self.at)}
        return json.dumps(line, allow_nan=False).encode("ascii") + b"\n"

    async def _submit(self, items: Sequence[Item], label: str) -> str:
        lines = io.BytesIO(b"".join(self._line(key, call) for key, call in items))
        sdk = self.client().sdk.aio
        named = {"display_name": label}
        file = await sdk.files.upload(file=lines, config={"mime_type": "application/jsonl", **named})
        job = await sdk.batches.create(model=self.at.model, src=self.remote_of(file.name), config=named)
        return self.remote_of(job.name)

    async def _find(self, trace: Trace) -> str | None:
        jobs = await self.client().sdk.aio.batches.list(config={"page_size": 100})
        async for job in newest(jobs):
            if job.display_name == trace.label:
                return self.remote_of(job.name)
            if job.create_time is not None and job.create_time.timestamp() < trace.since - CLOCKS_APART_S:
                break
        return None

    async def _state(self, remote: str) -> BatchState:
        job = await self.client().sdk.aio.batches.get(name=remote)
        name = str(getattr(job.state, "value", None))
        status = _STATUS.get(name, "running")
        if status == "refused":
            said = getattr(job.error, "message", None) or "no reason is given"
            return BatchState(status, reason=self.at.shown(str(said)), retryable=True)
        return BatchState(status)

    async def _cancel(self, remote: str) -> None:
        await self.client().sdk.aio.batches.cancel(name=remote)

    async def _results(self, remote: str) -> AsyncIterator[list[Result]]:
        job = await self.client().sdk.aio.batches.get(name=remote)
        name = getattr(job.dest, "file_name", None)
        if name is None:
            return  # of one that expired nothing is left
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as kept:
            download = self.client(MOST_RESULT_BYTES).sdk.aio.files.download
            await download(file=self.remote_of(name), destination=kept)
            kept.seek(0)
            async for page in self.pages(_chunks(kept)):
                yield page

    def _answer(self, record: dict[str, Any]) -> Reply:
        response, error = record.get("response"), record.get("error")
        if isinstance(response, dict):
            return reply_of(json.dumps(response).encode("ascii"), self.like, self.at)
        if isinstance(error, dict):
            code = error.get("code")
            known = _STATUS_OF_CODES.get(code, code) if isinstance(code, int) else 500
            raise self.refused(known if 400 <= known < 600 else 500, error)
        raise ModelError("google: a result has neither a response nor an error", retryable=True)

    def _failure(self, exc: Exception) -> ModelError:
        return failure_of(exc, self.at)

    def _client(self, most_bytes: int) -> Any:
        return sdk_clients(self.at, most_bytes)

    async def _shut(self, client: Any) -> None:
        await shut(client)


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
