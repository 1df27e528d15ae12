"""Base of models behind official clients: one client per event loop, one request per attempt, no retries."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, TypeVar

from assaymark.engine.calls import CallSpec, Reply, Text
from assaymark.engine.loop import LARGE_BYTES, MOST_KEPT_BYTES, current_slot
from assaymark.engine.providers.transports import (
    API_RULES,
    LONGEST_FORM,
    PerLoop,
    Provider,
    Rule,
    Transport,
    argument_problems,
    load_sdk,
    refuse,
    transport,
)
from assaymark.errors import InputError, ModelError, Problem
from assaymark.records import JSON

T = TypeVar("T")

RETRYABLE: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Status codes after which another attempt may succeed."""

MOST_REPLY_BYTES: Final = 8_000_000
"""The longest body that is parsed for an answer; a long reply with encrypted reasoning is well below."""

_made_once: Final = cache(lambda make: make())  # else each client reads all certificates of the system again: 30 ms
_LONGEST_WAIT_S: Final = 86_400.0
_MOST_FAILURE_BYTES: Final = 100_000
_MOST_DIGITS: Final = 30
_MOST_TOKENS: Final = 10**12
_WORD_CHARS: Final = 200
_WORDS: Final = ("code", "type", "status", "reason", "error_code")
_WRONG_KEY: Final = frozenset({"invalid_api_key", "API_KEY_INVALID", "authentication_error"})
_NO_MONEY: Final = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error", "account_deactivated",
    "BILLING_DISABLED",
})  # fmt: skip
_NO_MONEY_SAID = re.compile(r"credit balance is too low|insufficient (balance|credits|funds)", re.IGNORECASE)
_NOWHERE: Final = frozenset({"unsupported_country_region_territory", "SERVICE_DISABLED"})
_HTML = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)
_FILTERED: Final = frozenset({
    "content_filter", "content_filter_error", "content_policy_violation", "ResponsibleAIPolicyViolation",
    "data_inspection_failed", "DataInspectionFailed", "bio_policy", "misalignment_policy_violation",
})  # fmt: skip
_FILTERED_SAID = re.compile(
    r"content[ _-]?(filter|polic|management|moderation|exists risk)|data[ _-]?inspection|responsible ?ai|flagged"
    r"|usage (policy|policies|guidelines)|safety (filter|polic|system)|inappropriate content",
    re.IGNORECASE,
)
_SCHEMA = re.compile(r"schema|response_format|text\.format|output_config", re.IGNORECASE)
_CONNECTION = re.compile(r"ConnectError|ConnectionRefused|gaierror|ProxyError|ClientConnector")
_BROKEN = re.compile(
    r"ReadError|WriteError|CloseError|ProtocolError|NetworkError|Connection|Disconnected|Decoding|Payload"
)


def as_model_error(exc: BaseException, at: Transport) -> ModelError:
    """Map any exception of an SDK to a `ModelError`: one line with the problem, the address and advice."""
    if (status := status_of(exc)) is not None:
        response = getattr(exc, "response", None)
        headers = {str(name): str(value) for name, value in dict(getattr(response, "headers", None) or {}).items()}
        body = getattr(exc, "body", None)
        words, message = words_of(getattr(exc, "details", None) if body is None else body)
        html = "text/html" in headers.get("content-type", "").lower() or is_html(message)
        return refusal(at, status, words, message, headers, html)
    chain = list(causes(exc))
    names, name = " ".join(type(part).__name__ for part in chain), at.provider.name
    if "Timeout" in names:
        sent = "ConnectTimeout" not in names
        return ModelError(f"{name}: no reply from {at.address} within {at.timeout_s:g} s", retryable=True, lost=sent)
    reason = at.shown(str(chain[-1])) or type(chain[-1]).__name__
    if "CERTIFICATE_VERIFY_FAILED" in reason or "CertVerification" in names:
        return ModelError(f"{name}: the certificate of {at.address} is not trusted ({reason})", retryable=False)
    if _CONNECTION.search(names):
        advice = "check that it runs and that base_url is correct" if at.base_url else "check the network connection"
        return ModelError(f"{name}: no connection to {at.address} ({reason}); {advice}", retryable=True)
    if _BROKEN.search(names):
        return ModelError(f"{name}: {at.address} broke off its answer ({reason})", retryable=True, lost=True)
    return ModelError(f"{name}: the client failed with {type(exc).__name__} ({reason})", retryable=False)


def status_of(exc: BaseException) -> int | None:
    """Return the HTTP status behind an exception, if any; SDKs name the field differently."""
    status = getattr(exc, "status_code", None) or getattr(exc, "code", None)
    return status if isinstance(status, int) else None


def causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its chain of causes, the root last."""
    visited: set[int] = set()
    at: BaseException | None = exc
    while at is not None and id(at) not in visited:
        visited.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def refusal(
    at: Transport, status: int, words: frozenset[str], message: str, headers: Mapping[str, str] = MappingProxyType({}),
    html: bool = False,
) -> ModelError:  # fmt: skip
    """Map an error status of any SDK to a `ModelError` by codes, message and headers; ``html``: a web page came."""
    model = repr(at.model)
    filtered = bool(words & _FILTERED or _FILTERED_SAID.search(message))
    of_schema = status in (400, 422) and _SCHEMA.search(f"{message} {' '.join(words)}") is not None
    passing = status in RETRYABLE or (500 <= status < 600 and status not in (501, 505))
    redirects, quota = 300 <= status < 400, True
    if status == 401 or words & _WRONG_KEY:
        text = f"{at.key_env} was refused ({status}) by {at.address}; set the right key"
        if at.key is None:
            text = f"{at.address} requires a key ({status}); name its environment variable in args.api_key_env"
    elif status == 402 or words & _NO_MONEY or (status < 500 and _NO_MONEY_SAID.search(message)):
        text = f"no money or quota is left ({status}) for {at.key_env}; pay, or wait until it is renewed"
    elif words & _NOWHERE:
        text = f"{at.address} is not available to this account ({status})"
    else:
        quota = False
        if html and not passing:
            text = not_an_api(at, status)
        elif of_schema:
            advice = 'args.structured = "json_object" or "none", or ' if at.provider.name == "openai-chat" else ""
            text = f"the reply schema was refused ({status}) for {model}; use {advice}a model that takes schemas"
        elif status == 403 and not filtered:
            text = f"{at.key_env} may not use {model} ({status})"
        elif redirects:
            text = f"{at.address} redirects ({status}), which is not followed; correct base_url"
        elif status in _MEANINGS:
            text = _MEANINGS[status].format(model=model, address=at.address, status=status)
        elif status >= 500:
            text = f"the provider failed ({status}) on {model}"
        else:
            text = f"the request was refused ({status}) for {model}"
    retryable = passing and not quota
    # True if every other call of this model with these settings would fail too
    always = not quota and not retryable and (html or status == 404 or redirects or of_schema)
    refused: Literal["content", "call"] | None = None
    if not (quota or retryable or always):
        refused = "content" if filtered else "call" if status in (400, 413, 422, 451) else None
    detail = "" if html or not message else f": {at.shown(message)}"
    return ModelError(
        f"{at.provider.name}: {text}{detail}", retryable=retryable,
        retry_after=retry_after_of(headers) if retryable else None, quota=quota, always=always, refused=refused,
    )  # fmt: skip


_MEANINGS: Final[Mapping[int, str]] = {
    404: "unknown model {model} at {address} ({status}); check the name and base_url",
    413: "the prompt is too long for {model} ({status})", 429: "too many requests ({status}) for {model}",
}  # fmt: skip


def is_html(text: str) -> bool:
    """True if a text that should be JSON is a web page."""
    return _HTML.match(text) is not None


def not_an_api(at: Transport, status: int) -> str:
    """Return the message that an address returns web pages."""
    advice = "base_url must be the root of an API, such as http://127.0.0.1:8000/v1"
    return f"{at.address} answers with a web page and is not an API ({status}); {advice}"


def words_of(body: Any) -> tuple[frozenset[str], str]:
    """Return the codes of an error body (code, type, status, reason) and its message."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return frozenset(), str(body or "")
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return frozenset(), str(inner)
    details = inner.get("details")
    parts = [inner, *(details if isinstance(details, list) else [details])]
    words = (part.get(name) for part in parts if isinstance(part, dict) for name in _WORDS)
    return frozenset(word for word in words if isinstance(word, str)), str(inner.get("message") or "")


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Return the requested wait in seconds, from ``retry-after-ms`` or ``retry-after`` (seconds or date), or None."""
    fields = {name.lower(): value for name, value in headers.items()}
    wait = math.nan
    for name, divisor in (("retry-after", 1.0), ("retry-after-ms", 1000.0)):
        try:
            seconds = float(fields.get(name, "")) / divisor
        except ValueError:
            continue
        wait = seconds if math.isfinite(seconds) else wait
    if math.isnan(wait):
        dates: list[datetime | None] = []
        for name in ("retry-after", "date"):
            try:
                date = parsedate_to_datetime(fields.get(name, ""))
            except (TypeError, ValueError, OverflowError):
                dates.append(None)
                continue
            dates.append(date if date.tzinfo else date.replace(tzinfo=UTC))
        until, now = dates
        if until is None:
            return None
        wait = (until - (now or datetime.fromtimestamp(time.time(), UTC))).total_seconds()
    return min(max(wait, 0.0), _LONGEST_WAIT_S)


async def attempt(
    at: Transport, work: Awaitable[T], failure: Callable[[Exception, Transport], ModelError] = as_model_error
) -> T:
    """Await one request and its body within the timeout of the transport; every exception becomes a `ModelError`."""
    try:
        async with asyncio.timeout(at.timeout_s):
            return await work
    except ModelError as exc:
        error = exc
    except Exception as exc:
        error = failure(exc, at)
    raise error


class TooLong(Exception):
    """The body of a reply exceeds the limit; ``start`` is the part that was read, slightly more than the limit."""

    def __init__(self, start: bytes) -> None:
        super().__init__("the body is too long")
        self.start = start


def bounded_client(
    provider: Provider, most_bytes: int = MOST_KEPT_BYTES, before: Callable[[Any], Awaitable[None]] | None = None
) -> Any:
    """Make an ``httpx2.AsyncClient`` with a body limit for an SDK; ``before`` is called with each request."""
    httpx = load_sdk(replace(provider, sdk="httpx2"))

    class Bounded(httpx.AsyncByteStream):  # type: ignore[misc,name-defined]  # the module is only known at run time
        def __init__(self, stream: Any, most_of_failure: float) -> None:
            self._stream, self._most_of_failure = stream, most_of_failure

        async def __aiter__(self) -> AsyncIterator[bytes]:
            received, start, place = 0, list[bytes](), current_slot()
            async for part in self._stream:
                received += len(part)
                if received > self._most_of_failure:
                    return
                if received > LARGE_BYTES and place is not None:
                    await place.acquire()
                if most_bytes <= MOST_KEPT_BYTES:
                    start.append(part)
                if received > most_bytes:
                    raise TooLong(b"".join(start))
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: Any) -> None:
        packed = response.headers.pop("content-encoding", "identity") != "identity"
        if packed and response.status_code < 300:
            raise httpx.DecodingError("the body is compressed, although no compression was requested")
        # of a packed failure, status and headers say enough
        most = math.inf if response.status_code < 300 else 0 if packed else _MOST_FAILURE_BYTES
        response.stream = Bounded(response.stream, most)

    hooks = {"request": [] if before is None else [before], "response": [bound]}
    headers = {"Connection": "close", "Accept-Encoding": "identity"}
    verify = _made_once(httpx.create_ssl_context)
    return httpx.AsyncClient(verify=verify, follow_redirects=False, headers=headers, event_hooks=hooks)


def too_large(body: bytes, call: CallSpec, at: Transport) -> Reply | None:
    """Return the recorded failure for a body that is too long for an answer, None for any other body."""
    if len(body) <= MOST_REPLY_BYTES:
        return None
    size, cut = f"{len(body):,} bytes", len(body) > MOST_KEPT_BYTES
    if cut:
        size = f"more than {MOST_KEPT_BYTES:,} bytes, of which the first were kept"
    text = f"no answer: the reply has {size}, and at most {MOST_REPLY_BYTES:,} are read for one"
    raw = at.scrubbed(body[:MOST_KEPT_BYTES].decode("utf-8", "replace"))
    if cut:  # it may end in the middle of a key
        raw = raw[: len(raw) - max((LONGEST_FORM * len(secret.reveal()) for secret in at.secrets), default=0)]
    return Reply(text, call.model, "failed", raw)


def read_object(body: bytes, at: Transport) -> tuple[str, dict[str, Any]]:
    """Parse the body of a reply: its text without the key, and its JSON object. Raises `ModelError`."""
    text, name = at.scrubbed(body.decode("utf-8", "replace")), at.provider.name
    if is_html(text):
        raise ModelError(f"{name}: {not_an_api(at, 200)}", retryable=False)
    try:
        content = json.loads(text, parse_int=lambda digits: int(digits[:_MOST_DIGITS]))  # no count or time is longer
    except RecursionError:
        raise ModelError(f"{name}: the reply is nested too deeply", retryable=False, lost=True) from None
    except ValueError:
        start = f"it starts with {at.shown(text[:80])!r}"
        problem = f"the reply of {at.address} is not JSON ({start})"
        raise ModelError(f"{name}: {problem}", retryable=True, lost=True) from None
    if not isinstance(content, dict):
        raise ModelError(f"{name}: the reply of {at.address} is not a JSON object", retryable=False)
    return text, content


def count_of(value: object) -> int | None:
    """Return a valid token count, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None


def word_of(value: object) -> str | None:
    """Return a short printable text, such as a model's name, or None."""
    return value if isinstance(value, str) and 0 < len(value) <= _WORD_CHARS and value.isprintable() else None


def text_of(value: object) -> str:
    """Return a text, or an empty one for any other value."""
    return value if isinstance(value, str) else ""


def part_of(parent: object, name: str) -> dict[str, Any]:
    """Return an object inside an object, empty if there is none."""
    part = parent.get(name) if isinstance(parent, dict) else None
    return part if isinstance(part, dict) else {}


def parts_of(parent: object, name: str) -> list[dict[str, Any]]:
    """Return the objects of a list inside an object."""
    parts = parent.get(name) if isinstance(parent, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


_STRICT: Final = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "title",
    "description", "pattern", "format", "multipleOf", "minItems", "maxItems", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "$ref", "$defs", "$schema",
})  # fmt: skip
_KINDS: Final[Mapping[str, type[Any]]] = {"properties": dict, "$defs": dict, "required": list, "anyOf": list}


def _parts_of_schema(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield a schema and all its subschemas with their paths; a malformed schema is not descended into."""
    nodes = [("schema", schema)]
    while nodes:
        path, node = nodes.pop(0)
        yield path, node
        if isinstance(node, dict) and all(isinstance(node.get(name, kind()), kind) for name, kind in _KINDS.items()):
            inner = [(f"{path}.{name}", part) for name, part in node.get("properties", {}).items()]
            inner += [(f"{path}.$defs.{name}", part) for name, part in node.get("$defs", {}).items()]
            inner += [(f"{path}.anyOf[{number}]", part) for number, part in enumerate(node.get("anyOf", []))]
            nodes[:0] = [*inner, (f"{path}.items", node["items"])] if "items" in node else inner


def strict_schema(schema: Text) -> dict[str, JSON]:
    """Parse the reply schema for a provider's structured output, unchanged. Raises `ModelError` if it is not strict."""
    problems: list[str] = []
    try:
        tree = json.loads(schema.text)
    except (ValueError, RecursionError) as exc:
        problems.append(f"the schema is not JSON ({type(exc).__name__})")
        tree = {"type": "object", "additionalProperties": False}
    for path, node in _parts_of_schema(tree):
        if not isinstance(node, dict):
            problems.append(f"{path}: must be an object (got {type(node).__name__})")
            continue
        problems += [f"{path}: {name!r} is not known to strict output" for name in sorted(set(node) - _STRICT)]
        wrong = next((name for name, kind in _KINDS.items() if not isinstance(node.get(name, kind()), kind)), None)
        if wrong is not None:
            problems.append(f"{path}: {wrong} must be {'an object' if _KINDS[wrong] is dict else 'a list'}")
        elif node.get("type") == "object" or (isinstance(node.get("type"), list) and "object" in node["type"]):
            if node.get("additionalProperties") is not False:
                problems.append(f"{path}: additionalProperties must be false")
            if sorted(map(str, node.get("required", []))) != sorted(node.get("properties", {})):
                problems.append(f"{path}: every property must be required")
    if not problems and tree.get("type") != "object":
        problems = ["schema: the outermost type must be 'object'"]
    if problems:
        raise ModelError(f"no strict reply schema: {'; '.join(problems[:10])}", retryable=False)
    return dict(tree)


def reply_schema(call: CallSpec, unknown: frozenset[str], api: str) -> dict[str, JSON] | None:
    """Return the reply schema, unchanged, or None. Raises `ModelError` for keywords that the ``api`` lacks."""
    if call.schema is None:
        return None
    schema = strict_schema(call.schema)
    refuse(call, [
        f"{path}: {name!r} is not known to the structured output of the {api}"
        for path, node in _parts_of_schema(schema) for name in sorted(unknown & node.keys())
        if name != "minItems" or node[name] not in (0, 1)
    ])  # fmt: skip
    return schema


def prompt_problems(call: CallSpec) -> Iterator[str]:
    """Yield the problem with the order of messages: system messages come first, then at least one user message."""
    roles = [message.role for message in call.messages]
    if "user" not in roles or roles != sorted(roles):
        allowed = "those of the system, if any, and then one or more of the user"
        yield f"the messages must be {allowed} (got {', '.join(roles) or 'none'})"


def system_and_users(call: CallSpec) -> tuple[str, list[str]]:
    """Return the system text, which may be empty, and the user texts."""
    texts = [(message.role, message.text.encode("utf-8", "backslashreplace").decode()) for message in call.messages]
    system = "\n\n".join(text for role, text in texts if role == "system")
    return system, [text for role, text in texts if role == "user"]


class SdkModel(ABC):
    """A model called through its provider's SDK. A new provider implements the abstract methods.

    ``client_class`` is the client of an SDK built like OpenAI's, and ``path`` where it posts requests; a model behind
    another SDK makes and closes its own client, and sends requests by it.
    """

    provider: ClassVar[Provider]
    names: ClassVar[re.Pattern[str]]
    named: ClassVar[str]
    rules: ClassVar[Mapping[str, Rule]] = {}
    efforts: ClassVar[tuple[str, ...]]
    client_class: ClassVar[str]
    path: ClassVar[str]

    def __init__(self, name: str, environ: Mapping[str, str] | None = None) -> None:
        if self.names.fullmatch(name) is None:
            text = f"must be {self.provider.name}/{self.named} (got {name[:80]!r})"
            raise InputError("model", [Problem("", text)])
        self.name = f"{self.provider.name}/{name}"
        self._environ = environ
        self._clients = PerLoop(self.client, self.close)

    @classmethod
    def argument_problems(cls, model: str, args: Mapping[str, JSON]) -> Iterator[str]:
        """Yield the problems with the arguments of a model of this provider."""
        yield from argument_problems(model, args, {**API_RULES, **cls.rules})

    def problems(self, call: CallSpec) -> Iterator[str]:
        """Yield the settings of a call that the provider does not support."""
        yield from self.argument_problems(call.model, call.args)
        if call.effort is not None and call.effort not in self.efforts:
            yield f"effort must be one of {', '.join(self.efforts)} (got {call.effort!r})"

    def check(self, call: CallSpec) -> None:
        """Raise `ModelError`, with the problems of the call, unless there are an SDK and a key; nothing is sent."""
        load_sdk(self.provider)
        try:
            transport(self.provider, call, self._environ)
        except ModelError as exc:
            raise ModelError("; ".join([str(exc), *self.problems(call)]), retryable=False, quota=True) from None

    async def complete(self, call: CallSpec) -> Reply:
        """Send a call once and return the reply. Raises `ModelError`."""
        refuse(call, list(self.problems(call)))
        at = transport(self.provider, call, self._environ)
        request = self.request(call, at)
        client = await self._clients.of(at)
        started = time.perf_counter()  # not before: the first client of a process takes seconds to import
        body = await attempt(at, self._body(client, request, call, at), self.failure)
        seconds = time.perf_counter() - started
        return replace(too_large(body, call, at) or self.reply_of(body, call, at), seconds=seconds)

    async def aclose(self) -> None:
        """Close the connections of this event loop; those of other loops close when their loop ends."""
        await self._clients.aclose()

    async def _body(self, client: Any, request: dict[str, Any], call: CallSpec, at: Transport) -> bytes:
        """Return the body of the response, or the start of one that is too long."""
        try:
            return await self.send(client, request, call, at)
        except Exception as exc:
            cut = next((cause for cause in causes(exc) if isinstance(cause, TooLong)), None)
            if cut is None:
                raise
        return cut.start

    @abstractmethod
    def request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return the body of a request, or the arguments of the method of the client that sends it."""

    def headers(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return headers that change those of the client; a server without a key gets no Authorization header."""
        del call
        return {} if at.key else {"Authorization": load_sdk(self.provider).Omit()}

    def options(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return the options of a request by path."""
        return {"headers": self.headers(call, at)}

    def wire_body(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """Return the body of the request of a call as it is sent in a batch; the call has no `problems`."""
        return self.request(call, at)

    def client(self, at: Transport, most_bytes: int = MOST_KEPT_BYTES) -> Any:
        """Make a client of the SDK that reads bodies of at most ``most_bytes``; the caller closes it."""
        # Without a key argument the client searches for a key itself; if we have none, `headers` leaves it out.
        return getattr(load_sdk(self.provider), self.client_class)(
            api_key=at.key.reveal() if at.key else "none", base_url=at.address, timeout=at.timeout_s,
            max_retries=0,  # retries are left to the runner
            http_client=bounded_client(self.provider, most_bytes),
        )  # fmt: skip

    async def close(self, client: Any) -> None:
        """Close a client."""
        await client.close()

    async def send(self, client: Any, request: dict[str, Any], call: CallSpec, at: Transport) -> bytes:
        """Send a request and return the body of the response."""
        form = load_sdk(replace(self.provider, sdk="httpx2")).Response
        # By path: the SDK's own methods spend a tenth of the call's time on fields that they leave unchanged.
        response = await client.post(self.path, cast_to=form, body=request, options=self.options(call, at))
        return bytes(response.content)

    def failure(self, exc: Exception, at: Transport) -> ModelError:
        """Map an exception of the SDK to a `ModelError`."""
        return as_model_error(exc, at)

    @abstractmethod
    def reply_of(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        """Return the reply in the body of a response; raise `ModelError` if it has none."""
