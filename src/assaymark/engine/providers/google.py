"""Gemini models over ``generateContent`` of the Gemini API, by Google's official client, and its batches."""

from __future__ import annotations

import io
import math
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, Final, NamedTuple

from assaymark.engine.calls import CallSpec, Finish, Reply
from assaymark.engine.loop import MOST_KEPT_BYTES
from assaymark.engine.providers import base, batches
from assaymark.engine.providers.transports import Provider, Rule, Transport, is_number, load_sdk
from assaymark.errors import ModelError

GOOGLE: Final = Provider(
    name="google", sdk="google.genai", extra="google", key_envs=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    home="https://generativelanguage.googleapis.com", base_env="GOOGLE_GEMINI_BASE_URL",
)  # fmt: skip

API_VERSION: Final = "v1"
"""The version of the Gemini API that requests are made for."""

_MOST_BUDGET: Final = 1_000_000
_SEEDS: Final = range(-(2**31), 2**31)
_RULES: Final[Mapping[str, Rule]] = {
    "thinking_budget": (
        lambda value: isinstance(value, int) and is_number(value, -1, _MOST_BUDGET),
        f"a whole number of tokens up to {_MOST_BUDGET}, 0 for none or -1 for as many as the model likes",
    )
}
_REFUSALS: Final = (
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION",
    "PUP_LIMITED_DISABLED", "MODEL_ARMOR",
)  # fmt: skip
_FINISH: Final[Mapping[str, Finish]] = {
    **dict.fromkeys(_REFUSALS, "refusal"), **dict.fromkeys(("MAX_TOKENS", "CONTINUATION"), "length"),
}  # fmt: skip
_GENERATION: Final[Mapping[str, str]] = {
    "temperature": "temperature",
    "seed": "seed",
    "max_output_tokens": "maxOutputTokens",
    "response_mime_type": "responseMimeType",
    "response_json_schema": "responseJsonSchema",
    "thinking_config": "thinkingConfig",  # the API accepts both spellings of its fields; this is the client's
}
_UNKNOWN_TO_SCHEMAS: Final = frozenset({"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "const"})
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_BY_THE_DAY = re.compile(r"per_?day", re.IGNORECASE)


class Clients(NamedTuple):
    """Google's client, and the HTTP client that it uses."""

    sdk: Any
    http: Any


class GoogleModel(base.SdkModel):
    """A Gemini model. Each attempt is one request to ``POST /v1/models/NAME:generateContent``, without retries."""

    provider = GOOGLE

    names = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9][A-Za-z0-9._-]{0,199})?")
    named = "MODEL, such as google/gemini-3.8-flash"
    rules = _RULES
    efforts = ("minimal", "low", "medium", "high", "xhigh")

    def problems(self, call: CallSpec) -> Iterator[str]:
        """Yield the unsupported settings of a call. Before Gemini 3 reasoning is set by a budget, later by effort."""
        yield from super().problems(call)
        if call.seed is not None and call.seed not in _SEEDS:
            yield f"the seed must be from {_SEEDS.start} to {_SEEDS.stop - 1} (got {call.seed})"
        if call.effort is not None and "thinking_budget" in call.args:
            yield "effort and thinking_budget exclude each other"
        if call.temperature is not None and not is_number(call.temperature, 0, 2):
            yield f"temperature must be from 0 to 2 (got {call.temperature:g})"
        yield from base.prompt_problems(call)

    def request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return the arguments of ``generate_content``."""
        system, users = base.system_and_users(call)
        config: dict[str, Any] = {
            # The whole body is read here. One attempt is one request: the client would send more for a long answer.
            "should_return_http_response": True,
            "automatic_continuation": False,
            "automatic_function_calling": {"disable": True},
        }
        if system:
            config["system_instruction"] = system
        if (schema := base.reply_schema(call, _UNKNOWN_TO_SCHEMAS, "Gemini API")) is not None:
            config |= {"response_mime_type": "application/json", "response_json_schema": schema}
        budget = call.args.get("thinking_budget")
        thinking = None if budget is None else {"thinking_budget": budget}
        settings = {
            "temperature": call.temperature, "seed": call.seed, "max_output_tokens": call.args.get("max_tokens"),
            "thinking_config": thinking if call.effort is None else {"thinking_level": call.effort.upper()},
        }  # fmt: skip
        config |= {name: value for name, value in settings.items() if value is not None}
        contents = [{"role": "user", "parts": [{"text": text}]} for text in users]
        return {"model": at.model, "contents": contents, "config": config}

    def wire_body(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return the JSON body of the request of a call as it is sent."""
        request = self.request(call, at)
        config, body = request["config"], {"contents": request["contents"]}
        if "system_instruction" in config:
            body["systemInstruction"] = {"role": "user", "parts": [{"text": config["system_instruction"]}]}
        generation = {wire: config[name] for name, wire in _GENERATION.items() if name in config}
        return body | {"generationConfig": generation}

    def client(self, at: Transport, most_bytes: int = MOST_KEPT_BYTES) -> Clients:
        """Make clients that read bodies of at most ``most_bytes`` bytes."""

        async def without_key(request: Any) -> None:
            request.headers.pop("x-goog-api-key", None)

        genai = load_sdk(GOOGLE)
        http = base.bounded_client(GOOGLE, most_bytes, None if at.key else without_key)
        options = {
            "base_url": at.address,
            "api_version": API_VERSION,
            "timeout": math.ceil(at.timeout_s * 1000),
            "retry_options": {"attempts": 1},  # without it the client may send a request twice
            "httpx_async_client": http,
        }
        # Without a key argument the client searches for a key itself; if we have none, none is sent.
        key = at.key.reveal() if at.key else "none"
        return Clients(genai.Client(enterprise=False, api_key=key, http_options=options), http)

    async def close(self, client: Clients) -> None:
        """Close both clients."""
        await client.sdk.aio.aclose()
        client.sdk.close()
        await client.http.aclose()  # the SDK does not close an HTTP client that it was given

    async def send(self, client: Clients, request: dict[str, Any], _call: CallSpec, _at: Transport) -> bytes:
        """Send a request and return the body of the response."""
        answer = await client.sdk.aio.models.generate_content(**request)
        return str(answer.sdk_http_response.body).encode("utf-8", "surrogatepass")

    def failure(self, exc: Exception, at: Transport) -> ModelError:
        """Map an exception to a `ModelError`; wait and exhausted quota are in its details (google.rpc.Status)."""
        status, body = getattr(exc, "code", None), getattr(exc, "details", None)
        if not isinstance(status, int) or status != 429:
            return base.as_model_error(exc, at)
        words, message = base.words_of(body)
        details = base.parts_of(body.get("error", body) if isinstance(body, dict) else None, "details")
        quotas = [str(quota.get("quotaId", "")) for detail in details for quota in base.parts_of(detail, "violations")]
        if any(map(_BY_THE_DAY.search, quotas)):
            return base.refusal(at, status, words | {"insufficient_quota"}, message)
        raw = getattr(getattr(exc, "response", None), "headers", None)
        headers = {str(name): str(value) for name, value in dict(raw or {}).items()}
        waits = [match[1] for detail in details if (match := _DELAY.fullmatch(str(detail.get("retryDelay", ""))))]
        if waits:
            headers.setdefault("retry-after", waits[0])
        return base.refusal(at, status, words, message, headers)

    def reply_of(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        """Return the reply in a body; see "GenerateContentResponse" in the reference of the Gemini API."""
        raw, reply = base.read_object(body, at)
        candidates, feedback, usage = reply.get("candidates"), reply.get("promptFeedback"), reply.get("usageMetadata")
        first = candidates[0] if isinstance(candidates, list) and candidates else None
        if not isinstance(first, dict):
            if not isinstance(feedback, dict) and not isinstance(usage, dict):
                raise ModelError(f"google: {at.address} did not send a generateContent reply", retryable=False)
            first = {}
        blocked = base.part_of(reply, "promptFeedback").get("blockReason") is not None
        parts = [part for part in base.parts_of(first.get("content"), "parts") if part.get("thought") is not True]
        names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount")
        prompt, written, thought, cached = (
            base.count_of(base.part_of(reply, "usageMetadata").get(name)) for name in names
        )
        return Reply(
            at.scrubbed("".join(base.text_of(part.get("text")) for part in parts)),
            base.word_of(reply.get("modelVersion")) or call.model,
            "refusal" if blocked and not first else _FINISH.get(str(first.get("finishReason")), "stop"),
            raw,
            input_tokens=prompt,
            # ``candidatesTokenCount`` excludes reasoning tokens, which are billed as output
            output_tokens=None if written is None and thought is None else (written or 0) + (thought or 0),
            reasoning_tokens=thought,
            cached_tokens=cached,
        )


_STATUS: Final[Mapping[str, batches.Status]] = {
    "JOB_STATE_SUCCEEDED": "ended", "JOB_STATE_PARTIALLY_SUCCEEDED": "ended", "JOB_STATE_EXPIRED": "ended",
    "JOB_STATE_CANCELLED": "cancelled", "JOB_STATE_FAILED": "refused",
}  # fmt: skip
_STATUS_OF_CODES: Final[Mapping[int, int]] = {
    3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 13: 500, 14: 503, 16: 401,
}  # fmt: skip
_IN_MEMORY: Final = 16_000_000
_CHUNK: Final = 1 << 20


class GoogleBatches(batches.RemoteBatches):
    """Batches of calls to ``google/NAME``, with the label as display name."""

    model = GoogleModel
    most_items = 50_000
    most_bytes = 190_000_000
    form: ClassVar[Mapping[str, str]] = {"key": "", "request": ""}

    async def _submit(self, items: Sequence[batches.Item], label: str) -> str:
        lines = io.BytesIO(b"".join(self.line(key, call) for key, call in items))
        sdk, named = self.client().sdk.aio, {"display_name": label}
        file = await sdk.files.upload(file=lines, config={"mime_type": "application/jsonl", **named})
        job = await sdk.batches.create(model=self.at.model, src=self.remote_of(file.name), config=named)
        return self.remote_of(job.name)

    async def _find(self, label: str, _keys: Set[str], after: float, _known: Set[str], /) -> str | None:
        jobs = await self.client().sdk.aio.batches.list(config={"page_size": 100})
        async for job in batches.newest(jobs):
            if job.display_name == label:
                return self.remote_of(job.name)
            if job.create_time is not None and job.create_time.timestamp() < after:
                break
        return None

    async def _state(self, remote: str) -> batches.BatchState:
        job = await self.client().sdk.aio.batches.get(name=remote)
        status = _STATUS.get(str(getattr(job.state, "value", None)), "running")
        if status == "refused":
            message = getattr(job.error, "message", None) or "no reason is given"
            return batches.BatchState(status, reason=self.at.shown(str(message)), retryable=True)
        return batches.BatchState(status)

    async def _cancel(self, remote: str) -> None:
        await self.client().sdk.aio.batches.cancel(name=remote)

    async def _results(self, remote: str) -> AsyncIterator[list[batches.Result]]:
        job = await self.client().sdk.aio.batches.get(name=remote)
        name = getattr(job.dest, "file_name", None)
        if name is None:
            return  # an expired batch has no results
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
            download = self.client(batches.MOST_RESULT_BYTES).sdk.aio.files.download
            await download(file=self.remote_of(name), destination=spool)
            spool.seek(0)

            async def chunks() -> AsyncIterator[bytes]:
                while chunk := spool.read(_CHUNK):
                    yield chunk

            async for page in self.pages(chunks()):
                yield page

    def _answer(self, record: dict[str, Any]) -> Reply:
        response, error = record.get("response"), record.get("error")
        if isinstance(response, dict):
            return self.reply_in(response)
        if isinstance(error, dict):
            code = error.get("code")
            status = _STATUS_OF_CODES.get(code, code) if isinstance(code, int) else 500
            status = status if 400 <= status < 600 else 500
            raise base.refusal(self.at, status, *base.words_of(error))
        raise ModelError("google: a result has neither a response nor an error", retryable=True)
