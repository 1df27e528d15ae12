"""Batches of the Gemini API: a file of JSON lines in, one of results out (``batchGenerateContent``)."""

from __future__ import annotations

import io
import json
import math
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

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
from assaymark.records import JSON

# Gemini models over ``generateContent`` of the Gemini API, by Google's official client.


GOOGLE: Final = Provider(
    name="google",
    sdk="google.genai",
    extra="google",
    key_envs=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    home="https://generativelanguage.googleapis.com",
    base_env="GOOGLE_GEMINI_BASE_URL",
)

API_VERSION: Final = "v1"
"""The version of the Gemini API that requests are made for."""

_EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh")
_MOST_BUDGET: Final = 1_000_000
_SEEDS: Final = range(-(2**31), 2**31)
_RULES: Final[Mapping[str, Rule]] = {
    "thinking_budget": (
        lambda value: isinstance(value, int) and is_number(value, -1, _MOST_BUDGET),
        f"a whole number of tokens up to {_MOST_BUDGET}, 0 for none or -1 for as many as the model likes",
    ),
}
_FINISH: Final[Mapping[str, Finish]] = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "ESCALATION": "refusal",
    "PUP_LIMITED_DISABLED": "refusal",
    "MODEL_ARMOR": "refusal",
}
_GENERATION: Final[Mapping[str, str]] = {
    "temperature": "temperature",
    "seed": "seed",
    "max_output_tokens": "maxOutputTokens",
    "response_mime_type": "responseMimeType",
    "response_json_schema": "responseJsonSchema",
}
_UNKNOWN_TO_SCHEMAS: Final = frozenset({"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "const"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9][A-Za-z0-9._-]{0,199})?")
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_BY_THE_DAY = re.compile(r"per_?day", re.IGNORECASE)


class GoogleModel(SdkModel):
    """A Gemini model. One request to ``POST /v1/models/NAME:generateContent`` an attempt; nothing is retried here.

    The text of a reply is that of its first candidate; what the model thought is only in ``raw``.

    Examples
    --------
    >>> GoogleModel("gemini-3.8-flash").name
    'google/gemini-3.8-flash'
    """

    provider = GOOGLE

    def __init__(self, name: str, *, environ: Mapping[str, str] | None = None) -> None:
        if _NAME.fullmatch(name) is None or ".." in name:
            problem = "must be google/MODEL, such as google/gemini-3.8-flash"
            raise InputError(f"google/{name[:80]}", [Problem("", problem)])
        super().__init__(name, environ, PerLoop(sdk_clients, shut))

    def _problems(self, call: CallSpec) -> Iterator[str]:
        return _call_problems(call)

    def _request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        return _request(call, at)

    async def _sent(self, client: Any, request: dict[str, Any], _call: CallSpec, at: Transport) -> bytes:
        return await _sent(client, request, at)

    def _read(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        return reply_of(body, call, at)


def google_provider(environ: Mapping[str, str] | None = None) -> Callable[[str], Model]:
    """The factory of ``google/NAME``; `InputError` if ``NAME`` cannot be a model's name.

    >>> google_provider()("gemini-3.8-flash").name
    'google/gemini-3.8-flash'
    """
    return lambda name: GoogleModel(name, environ=environ)


def google_argument_problems(model: str, args: Mapping[str, JSON]) -> Iterator[str]:
    """What is wrong with the arguments of a Gemini model, in words; nothing for other providers.

    Allowed are ``base_url``, ``api_key_env``, ``timeout_s``, ``max_tokens`` (of the answer and the thoughts before it)
    and ``thinking_budget``, the tokens that a model before Gemini 3 may think for; later ones take an effort.

    >>> list(google_argument_problems("google/gemini-2.5-flash", {"thinking_budget": 0}))
    []
    >>> list(google_argument_problems("google/gemini-2.5-flash", {"thinking_budget": 0.5}))[0][:48]
    'thinking_budget must be a whole number of tokens'
    """
    if model.partition("/")[0] == GOOGLE.name:
        yield from argument_problems(model, args, _RULES)


def _call_problems(call: CallSpec) -> Iterator[str]:
    """What the call asks for and cannot get."""
    yield from google_argument_problems(call.model, call.args)
    if call.seed is not None and call.seed not in _SEEDS:
        yield f"the seed must be from {_SEEDS.start} to {_SEEDS.stop - 1} (got {call.seed})"
    if call.effort is not None and call.effort not in _EFFORTS:
        yield f"effort must be one of {', '.join(_EFFORTS)} (got {call.effort!r})"
    if call.effort is not None and "thinking_budget" in call.args:
        yield "effort and thinking_budget exclude each other"
    if call.temperature is not None and not is_number(call.temperature, 0, 2):
        yield f"temperature must be from 0 to 2 (got {call.temperature:g})"
    yield from prompt_problems(call)


def _request(call: CallSpec, at: Transport) -> dict[str, Any]:
    """The arguments of ``generate_content``."""
    system, users = system_and_users(call)
    config: dict[str, Any] = {
        # The whole body is read here, and one attempt is one request: the client would send more for a long answer.
        "should_return_http_response": True,
        "automatic_continuation": False,
        "automatic_function_calling": {"disable": True},
    }
    if system:
        config["system_instruction"] = system
    if (schema := reply_schema(call, _UNKNOWN_TO_SCHEMAS, "Gemini API")) is not None:
        config |= {"response_mime_type": "application/json", "response_json_schema": schema}
    given = {
        "temperature": call.temperature,
        "seed": call.seed,
        "max_output_tokens": call.args.get("max_tokens"),
        "thinking_config": _thinking(call),
    }
    config |= {name: value for name, value in given.items() if value is not None}
    contents = [{"role": "user", "parts": [{"text": text}]} for text in users]
    return {"model": at.model, "contents": contents, "config": config}


def content_body(call: CallSpec, at: Transport) -> dict[str, Any]:
    """The body of the request of a call as it is on the wire, for a batch."""
    refuse(call, list(_call_problems(call)))
    request = _request(call, at)
    config = request["config"]
    body: dict[str, Any] = {"contents": request["contents"]}
    if "system_instruction" in config:
        body["systemInstruction"] = {"role": "user", "parts": [{"text": config["system_instruction"]}]}
    generation = {wire: config[name] for name, wire in _GENERATION.items() if name in config}
    if (thinking := _thinking(call)) is not None:
        generation["thinkingConfig"] = thinking  # the API reads both spellings of what is in it; this is the client's
    return body | {"generationConfig": generation}


def _thinking(call: CallSpec) -> dict[str, Any] | None:
    if call.effort is not None:
        return {"thinking_level": call.effort.upper()}
    budget = call.args.get("thinking_budget")
    return None if budget is None else {"thinking_budget": budget}


@dataclass(frozen=True, slots=True)
class Clients:
    """Google's client, and the HTTP client that it sends by."""

    sdk: Any
    http: Any


def sdk_clients(at: Transport, most_bytes: int = MOST_KEPT_BYTES) -> Clients:
    """Clients that read bodies of at most so many bytes; to be `shut`."""

    async def without_key(request: Any) -> None:
        request.headers.pop("x-goog-api-key", None)

    genai = load_sdk(GOOGLE)
    http = bounded_client(GOOGLE, before=None if at.key else without_key, most_bytes=most_bytes)
    options = {
        "base_url": at.address,
        "api_version": API_VERSION,
        "timeout": math.ceil(at.timeout_s * 1000),
        "retry_options": {"attempts": 1},  # without it the client may send a request a second time on its own
        "httpx_async_client": http,
    }
    # A key must be given, or the client looks for one of its own; without one of ours, none is sent.
    key = at.key.reveal() if at.key else "none"
    return Clients(genai.Client(enterprise=False, api_key=key, http_options=options), http)


async def shut(clients: Clients) -> None:
    """Close them."""
    await clients.sdk.aio.aclose()
    clients.sdk.close()
    await clients.http.aclose()  # a client that was handed in is closed by nobody else


async def _sent(clients: Clients, request: dict[str, Any], at: Transport) -> bytes:
    """The body of the reply, or the start of one that is too long to be kept."""
    try:
        answer = await clients.sdk.aio.models.generate_content(**request)
        return str(answer.sdk_http_response.body).encode("utf-8", "surrogatepass")
    except TooLong as exc:
        return exc.start
    except Exception as exc:
        error = failure_of(exc, at)
    raise error


def failure_of(exc: Exception, at: Transport) -> ModelError:
    """What went wrong; how long to wait, and which quota is used up, stands in the details of the error."""
    status, body = getattr(exc, "code", None), getattr(exc, "details", None)
    if not isinstance(status, int) or status != 429:
        return as_model_error(exc, at)
    words, message = words_of(body)
    details = list(_details(body))
    if any(_BY_THE_DAY.search(quota) for detail in details for quota in _quotas(detail)):
        return refusal(Refused(status, words | {"insufficient_quota"}, message, {}), at)
    known = getattr(getattr(exc, "response", None), "headers", None)
    headers = {str(name): str(value) for name, value in dict(known or {}).items()}
    waits = [found[1] for detail in details if (found := _DELAY.fullmatch(str(detail.get("retryDelay", ""))))]
    if waits:
        headers.setdefault("retry-after", waits[0])
    return refusal(Refused(status, words, message, headers), at)


def _details(body: object) -> Iterator[dict[str, Any]]:
    """The details of an error body (google.rpc.Status), one by one."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    found = inner.get("details") if isinstance(inner, dict) else None
    yield from (detail for detail in (found if isinstance(found, list) else []) if isinstance(detail, dict))


def _quotas(detail: Mapping[str, Any]) -> Iterator[str]:
    violations = detail.get("violations")
    for one in violations if isinstance(violations, list) else []:
        if isinstance(one, dict):
            yield str(one.get("quotaId", ""))


def reply_of(body: bytes, call: CallSpec, at: Transport) -> Reply:
    """The reply in a body: see "GenerateContentResponse" in the reference of the Gemini API."""
    raw, found = read_object(body, at)
    candidates, feedback = found.get("candidates"), found.get("promptFeedback")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    if not isinstance(first, dict):
        if not isinstance(feedback, dict) and not isinstance(found.get("usageMetadata"), dict):
            raise ModelError(f"google: the reply of {at.address} is none of generateContent", retryable=False)
        first = {}
    blocked = isinstance(feedback, dict) and feedback.get("blockReason") is not None
    finish: Finish = "refusal" if blocked and not first else finish_of(first.get("finishReason"), _FINISH)
    model = word_of(found.get("modelVersion")) or call.model
    counts = _counts(found.get("usageMetadata"))
    return Reply(text=at.scrubbed(_text(first.get("content"))), model=model, finish=finish, raw=raw, **counts)


def _text(content: object) -> str:
    """What is said in the parts of a candidate, without its thoughts."""
    parts = content.get("parts") if isinstance(content, dict) else None
    said = [part for part in (parts if isinstance(parts, list) else []) if isinstance(part, dict)]
    texts = [part.get("text") for part in said if part.get("thought") is not True]
    return "".join(text for text in texts if isinstance(text, str))


def _counts(usage: object) -> dict[str, Any]:
    """Tokens. ``candidatesTokenCount`` leaves out the thoughts, which are paid for as output."""
    known = usage if isinstance(usage, dict) else {}
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount")
    prompt, said, thought, cached = (count_of(known.get(name)) for name in names)
    output = None if said is None and thought is None else (said or 0) + (thought or 0)
    return {
        "input_tokens": prompt,
        "output_tokens": output,
        "reasoning_tokens": thought,
        "cached_tokens": cached,
    }


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
