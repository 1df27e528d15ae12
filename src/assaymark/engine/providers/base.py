"""What models asked over an official client share: one client an event loop, one request a call, no retries."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Final, Literal, TypeVar

from assaymark.engine.calls import CallSpec, Finish, Reply, Text
from assaymark.engine.loop import MOST_KEPT_BYTES
from assaymark.engine.providers.connection import LONGEST_FORM, Secret, printable, scrub
from assaymark.engine.providers.transports import (
    TIMEOUT_S,
    PerLoop,
    Provider,
    Rule,
    Transport,
    address_problem,
    argument_problems,
    is_count,
    is_number,
    load_sdk,
    refuse,
    transport,
)
from assaymark.errors import ModelError
from assaymark.records import JSON

__all__ = [
    "MOST_KEPT_BYTES",
    "MOST_REPLY_BYTES",
    "ONE_REQUEST",
    "RETRYABLE",
    "TIMEOUT_S",
    "PerLoop",
    "Provider",
    "Refused",
    "Rule",
    "Secret",
    "Transport",
    "address_problem",
    "argument_problems",
    "as_model_error",
    "attempt",
    "count_of",
    "finish_of",
    "is_count",
    "is_number",
    "load_sdk",
    "printable",
    "read_object",
    "refusal",
    "refuse",
    "retry_after_of",
    "retryable_status",
    "scrub",
    "strict_schema",
    "too_large",
    "transport",
    "word_of",
    "words_of",
]


# What a failed request to a provider means: whether to ask again, when, and what a person can do about it.


RETRYABLE: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Status codes after which another attempt can help."""

_NEVER: Final = frozenset({501, 505})
_LONGEST_WAIT_S: Final = 86_400.0
_WRONG_KEY: Final = frozenset({"invalid_api_key", "API_KEY_INVALID", "authentication_error"})
_NO_MONEY: Final = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
        "account_deactivated",
        "BILLING_DISABLED",
    }
)
_NO_MONEY_SAID = re.compile(r"credit balance is too low|insufficient (balance|credits|funds)", re.IGNORECASE)
_NOWHERE: Final = frozenset({"unsupported_country_region_territory", "SERVICE_DISABLED"})
_HTML = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)
_FILTERED: Final = frozenset(
    {
        "content_filter",
        "content_filter_error",
        "content_policy_violation",
        "ResponsibleAIPolicyViolation",
        "data_inspection_failed",
        "DataInspectionFailed",
        "bio_policy",
        "misalignment_policy_violation",
    }
)
_FILTERED_SAID = re.compile(
    r"content[ _-]?(filter|polic|management|moderation|exists risk)|data[ _-]?inspection|responsible ?ai|flagged"
    r"|usage (policy|policies|guidelines)|safety (filter|polic|system)|inappropriate content",
    re.IGNORECASE,
)
_OF_ONE_CALL: Final = frozenset({400, 413, 422, 451})
_SCHEMA = re.compile(r"schema|response_format|text\.format|output_config", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer with a status of failure, whichever SDK reports it: its words, headers and the start of its body."""

    status: int
    words: frozenset[str]
    message: str
    headers: Mapping[str, str]
    html: bool = False


def as_model_error(exc: BaseException, transport: Transport) -> ModelError:
    """What any exception of an SDK comes to: one line that says what happened, where, and what to do.

    The exception itself is not chained to it: raise the result outside of the ``except`` block.
    """
    found = _refused(exc)
    return refusal(found, transport) if found is not None else _unanswered(exc, transport)


def refusal(found: Refused, transport: Transport) -> ModelError:
    """What an answer with a status of failure comes to; see `as_model_error`."""
    what, quota = _meaning(found, transport)
    said = "" if found.html or not found.message else f": {transport.shown(found.message)}"
    retryable = not quota and retryable_status(found.status)
    wait = retry_after_of(found.headers) if retryable else None
    always = not quota and not retryable and _of_every_call(found)
    refused = None if quota or retryable or always else _turned_away(found)
    return ModelError(
        f"{transport.provider.name}: {what}{said}",
        retryable=retryable,
        retry_after=wait,
        quota=quota,
        always=always,
        refused=refused,
    )


def _turned_away(found: Refused) -> Literal["content", "call"] | None:
    """Whether one call was turned away for what it says, or for a reason that may be one of all calls."""
    if found.words & _FILTERED or _FILTERED_SAID.search(found.message):
        return "content"
    return "call" if found.status in _OF_ONE_CALL else None


def is_html(text: str) -> bool:
    """Whether a text that should be JSON is a page.

    >>> is_html(" <!DOCTYPE html><html>"), is_html('{"a": 1}')
    (True, False)
    """
    return _HTML.match(text) is not None


def not_an_api(transport: Transport, status: int) -> str:
    """That an address answers with pages, in words."""
    advice = "base_url must be the root of an API, such as http://127.0.0.1:8000/v1"
    return f"{transport.address} answers with a page and is no API ({status}); {advice}"


def _meaning(found: Refused, at: Transport) -> tuple[str, bool]:
    """What happened and what to do, and whether no other call can succeed either."""
    status = found.status
    if status == 401 or found.words & _WRONG_KEY:
        what = f"{at.key_env} was refused ({status}) by {at.address}; set the right key"
        if at.key is None:
            what = f"{at.address} wants a key ({status}); name its environment variable in args.api_key_env"
        return what, True
    if status == 402 or found.words & _NO_MONEY or (status < 500 and _NO_MONEY_SAID.search(found.message)):
        return f"no money or quota is left ({status}) for {at.key_env}; pay, or wait until it is renewed", True
    if found.words & _NOWHERE:
        return f"{at.address} is not available to this account ({status})", True
    if found.html and not retryable_status(status):
        return not_an_api(at, status), False
    return _of_one_call(found, at), False


def _of_every_call(found: Refused) -> bool:
    """Whether a refusal holds for whatever else the same model is asked in the same way."""
    schema = found.status in (400, 422) and _of_schema(found)
    return found.html or found.status == 404 or 300 <= found.status < 400 or schema


def _of_one_call(found: Refused, at: Transport) -> str:
    status, model = found.status, repr(at.model)
    match status:
        case 400 | 422 if _of_schema(found):
            advice = 'args.structured = "json_object" or "none", or ' if at.provider.name == "openai-chat" else ""
            return f"the reply schema was refused ({status}) for {model}; use {advice}a model that takes schemas"
        case 403 if not found.words & _FILTERED and not _FILTERED_SAID.search(found.message):
            return f"{at.key_env} may not use {model} ({status})"
        case 404:
            return f"unknown model {model} at {at.address} ({status}); check the name and base_url"
        case 413:
            return f"the prompt is too long for {model} ({status})"
        case 429:
            return f"too many requests ({status}) for {model}"
        case _ if 300 <= status < 400:
            return f"{at.address} redirects ({status}), which is not followed; correct base_url"
        case _ if status >= 500:
            return f"the provider failed ({status}) on {model}"
    return f"the request was refused ({status}) for {model}"


def _of_schema(found: Refused) -> bool:
    return _SCHEMA.search(f"{found.message} {' '.join(found.words)}") is not None


def _unanswered(exc: BaseException, at: Transport) -> ModelError:
    """No answer at all: a time-out, a connection that failed or broke, or an SDK that could not send."""
    chain = list(_chain(exc))
    names = " ".join(type(part).__name__ for part in chain)
    name = at.provider.name
    if "Timeout" in names:
        return ModelError(f"{name}: no reply from {at.address} within {at.timeout_s:g} s", retryable=True)
    reason = at.shown(str(chain[-1])) or type(chain[-1]).__name__
    if "CERTIFICATE_VERIFY_FAILED" in reason or "CertVerification" in names:
        return ModelError(f"{name}: the certificate of {at.address} is not trusted ({reason})", retryable=False)
    if _CONNECTION.search(names):
        advice = "see that it runs and that base_url is right" if at.base_url else "see that the network is there"
        return ModelError(f"{name}: no connection to {at.address} ({reason}); {advice}", retryable=True)
    if _BROKEN.search(names):
        return ModelError(f"{name}: {at.address} broke off its answer ({reason})", retryable=True)
    return ModelError(f"{name}: the client failed with {type(exc).__name__} ({reason})", retryable=False)


_CONNECTION = re.compile(r"ConnectError|ConnectionRefused|gaierror|ProxyError|ClientConnector")
_BROKEN = re.compile(
    r"ReadError|WriteError|CloseError|ProtocolError|NetworkError|Connection|Disconnected|Decoding|Payload"
)


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """An exception and what caused it, the root last."""
    seen: set[int] = set()
    at: BaseException | None = exc
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _refused(exc: BaseException) -> Refused | None:
    """The answer behind an exception, if there was one: SDKs name its parts differently."""
    status = getattr(exc, "status_code", None) or getattr(exc, "code", None)
    if not isinstance(status, int):
        return None
    response = getattr(exc, "response", None)
    headers = {str(name): str(value) for name, value in dict(getattr(response, "headers", None) or {}).items()}
    body = getattr(exc, "body", None)
    body = getattr(exc, "details", None) if body is None else body
    words, message = words_of(body)
    html = "text/html" in str(headers.get("content-type", "")).lower() or is_html(message)
    return Refused(status, words, message, headers, html)


def words_of(body: Any) -> tuple[frozenset[str], str]:
    """The short words of an error body (code, type, status, reason), and its message.

    >>> words_of({"error": {"message": "slow down", "type": "requests", "code": None}})
    (frozenset({'requests'}), 'slow down')
    """
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return frozenset(), str(body or "")
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return frozenset(), str(inner)
    details = inner.get("details")
    parts = [inner, *(details if isinstance(details, list) else [details])]
    found = (part.get(name) for part in parts if isinstance(part, dict) for name in _WORDS)
    return frozenset(word for word in found if isinstance(word, str)), str(inner.get("message") or "")


_WORDS: Final = ("code", "type", "status", "reason", "error_code")


def retryable_status(status: int) -> bool:
    """Whether another attempt can help after this status.

    >>> [retryable_status(status) for status in (400, 401, 429, 503, 529)]
    [False, False, True, True, True]
    """
    return status in RETRYABLE or (500 <= status < 600 and status not in _NEVER)


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Seconds that a provider asks to wait: from ``retry-after-ms``, or ``retry-after`` in seconds or as a date.

    A date is compared with the ``date`` of the same reply, so that a wrong clock here does not matter. At most a day.

    >>> retry_after_of({"retry-after": "2"}), retry_after_of({"retry-after": "soon"})
    (2.0, None)
    """
    seen = {name.lower(): value for name, value in headers.items()}
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _float(seen.get(name, ""))
        if seconds is not None:
            return min(max(seconds / divisor, 0.0), _LONGEST_WAIT_S)
    until, now = _date(seen.get("retry-after", "")), _date(seen.get("date", ""))
    if until is None:
        return None
    since = now or datetime.fromtimestamp(time.time(), UTC)
    return min(max((until - since).total_seconds(), 0.0), _LONGEST_WAIT_S)


def _float(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# What all clients of model providers share, in one place: see `keys`, `transports` and `failures` for the parts.
#
# A client makes its request body, sends it inside `attempt` with a client of `PerLoop`, reads the body of the reply by
# `too_large` and `read_object`, and takes from it what `Reply` holds.


T = TypeVar("T")

MOST_REPLY_BYTES: Final = 8_000_000
"""The longest body that is searched for an answer; a long reply with its encrypted reasoning is well below."""

ONE_REQUEST: Final[Mapping[str, str]] = {"Connection": "close"}
"""Headers that keep a connection to one request. On a connection that is used again, a reply that something on the way
delivers twice is taken for the answer to the next call: the HTTP client cannot tell. A handshake for each call costs
milliseconds where a model takes seconds."""

_MOST_DIGITS: Final = 30
_MOST_TOKENS: Final = 10**12
_WORD_CHARS: Final = 200


async def attempt(at: Transport, work: Awaitable[T]) -> T:
    """Await one request and its body, within the time of the transport."""
    try:
        async with asyncio.timeout(at.timeout_s):
            return await work
    except ModelError as exc:
        error = exc
    except Exception as exc:
        error = as_model_error(exc, at)
    raise error


def too_large(body: bytes, call: CallSpec, at: Transport) -> Reply | None:
    """The recorded outcome of a body that is too long for an answer, None for any other; asking again would pay again.

    The body is not parsed, for a few megabytes of JSON can become gigabytes of objects. It is kept as it came, up to
    `MOST_KEPT_BYTES`; one that was cut there is said to be.
    """
    if len(body) <= MOST_REPLY_BYTES:
        return None
    size, cut = f"{len(body):,} bytes", len(body) > MOST_KEPT_BYTES
    if cut:
        size = f"more than {MOST_KEPT_BYTES:,} bytes, of which the first were kept"
    text = f"no answer: the reply has {size}, and at most {MOST_REPLY_BYTES:,} are read for one"
    raw = at.scrubbed(body[:MOST_KEPT_BYTES].decode("utf-8", "replace"))
    if cut:  # where it ends may be the middle of a key
        raw = raw[: len(raw) - max((LONGEST_FORM * len(one.reveal()) for one in at.secrets), default=0)]
    return Reply(text=text, model=call.model, finish="failed", raw=raw)


def read_object(body: bytes, at: Transport) -> tuple[str, dict[str, Any]]:
    """The body of a reply as text without the key, and as the JSON object that it is."""
    text = at.scrubbed(body.decode("utf-8", "replace"))
    if is_html(text):
        raise ModelError(f"{at.provider.name}: {not_an_api(at, 200)}", retryable=False)
    try:
        found = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ModelError(f"{at.provider.name}: the reply is nested too deeply", retryable=False) from None
    except ValueError:
        start = at.shown(text[:80])
        raise ModelError(
            f"{at.provider.name}: the reply of {at.address} is not JSON (it starts with {start!r})", retryable=True
        ) from None
    if not isinstance(found, dict):
        raise ModelError(f"{at.provider.name}: the reply of {at.address} is no JSON object", retryable=False)
    return text, found


def _whole(digits: str) -> int:
    """An integer of sane length; no count or time is longer."""
    return int(digits[:_MOST_DIGITS])


def count_of(value: object) -> int | None:
    """A number of tokens as a provider gives it, or None.

    >>> count_of(12), count_of(-1), count_of("12")
    (12, None, None)
    """
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if good and isinstance(value, int) else None


def word_of(value: object) -> str | None:
    """A short printable text, such as a model's name, or None."""
    good = isinstance(value, str) and 0 < len(value) <= _WORD_CHARS and value.isprintable()
    return str(value) if good else None


def finish_of(word: object, table: Mapping[str, Finish]) -> Finish:
    """Why a model stopped, from the provider's word for it; a word that is not in the table counts as a normal stop.

    >>> finish_of("max_tokens", {"max_tokens": "length"}), finish_of(None, {})
    ('length', 'stop')
    """
    return table.get(word, "stop") if isinstance(word, str) else "stop"


# --- schemas --------------------------------------------------------------------------------------------------------

_SAID: Final = frozenset({"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"})
_SAID_OF_VALUES: Final = frozenset({"title", "description", "pattern", "format", "multipleOf", "minItems", "maxItems"})
_BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_REFERENCES: Final = frozenset({"$ref", "$defs", "$schema"})
_STRICT: Final = _SAID | _SAID_OF_VALUES | _BOUNDS | _REFERENCES


def strict_schema(schema: Text) -> dict[str, JSON]:
    """The schema of a reply for a provider's structured output, unchanged.

    Strict output needs objects whose every key is required and which take no other keys, and knows only part of JSON
    Schema. A schema outside of that is refused here: to change it would be to ask another question.

    >>> strict_schema(Text.of('{"type": "object", "properties": {}, "required": [], "additionalProperties": false}'))
    {'type': 'object', 'properties': {}, 'required': [], 'additionalProperties': False}
    """
    try:
        found = json.loads(schema.text)
        problems = list(_schema_problems(found, "schema"))
    except (ValueError, RecursionError) as exc:
        found, problems = None, [f"the schema is not JSON ({type(exc).__name__})"]
    if not problems and found.get("type") != "object":
        problems = ["schema: the outermost type must be 'object'"]
    if problems:
        raise ModelError(f"no strict reply schema: {'; '.join(problems[:10])}", retryable=False)
    return dict(found)


def _schema_problems(node: Any, where: str) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{where}: must be an object (got {type(node).__name__})"
        return
    for name in sorted(set(node) - _STRICT):
        yield f"{where}: {name!r} is not known to strict output"
    for name, kind in _KINDS.items():
        if not isinstance(node.get(name, kind()), kind):
            yield f"{where}: {name} must be {'an object' if kind is dict else 'a list'}"
            return
    if node.get("type") == "object" or (isinstance(node.get("type"), list) and "object" in node["type"]):
        if node.get("additionalProperties") is not False:
            yield f"{where}: additionalProperties must be false"
        if sorted(map(str, node.get("required", []))) != sorted(node.get("properties", {})):
            yield f"{where}: every property must be required"
    for place, part in _schema_parts(node):
        yield from _schema_problems(part, f"{where}.{place}")


_KINDS: Final[Mapping[str, type[Any]]] = {"properties": dict, "$defs": dict, "required": list, "anyOf": list}


def _schema_parts(node: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas inside a schema, each with its place."""
    yield from node.get("properties", {}).items()
    yield from ((f"$defs.{name}", part) for name, part in node.get("$defs", {}).items())
    yield from ((f"anyOf[{number}]", part) for number, part in enumerate(node.get("anyOf", [])))
    if "items" in node:
        yield "items", node["items"]


# What requests to Anthropic and to Google are made of in the same way: the two halves of a prompt, and a schema.


def prompt_problems(call: CallSpec) -> Iterator[str]:
    """Why the messages of a call cannot be sent: the system's come before the user's, of which there is at least one.

    >>> from assaymark.engine.calls import Message, Text
    >>> alone = CallSpec(model="google/m", messages=(Message("system", (Text.of("Grade."),)),), template="")
    >>> list(prompt_problems(alone))
    ['the messages must be those of the system, if any, and then one or more of the user (got system)']
    """
    roles = [message.role for message in call.messages]
    if "user" not in roles or roles != sorted(roles):
        allowed = "those of the system, if any, and then one or more of the user"
        yield f"the messages must be {allowed} (got {', '.join(roles) or 'none'})"


def system_and_users(call: CallSpec) -> tuple[str, list[str]]:
    """The text of the system, which may be empty, and the texts of the user.

    Half a surrogate pair, which UTF-8 cannot carry, becomes its escape: no text may keep itself from its judges.

    >>> from assaymark.engine.calls import Message, Text
    >>> asked = CallSpec(model="google/m", messages=(Message("user", (Text.of("a" + chr(0xD800)),)),), template="")
    >>> system_and_users(asked)
    ('', ['a\\\\ud800'])
    """
    texts = [(message.role, message.text.encode("utf-8", "backslashreplace").decode()) for message in call.messages]
    system = "\n\n".join(text for role, text in texts if role == "system")
    return system, [text for role, text in texts if role == "user"]


def reply_schema(call: CallSpec, unknown: frozenset[str], api: str) -> dict[str, JSON] | None:
    """The schema of the reply, unchanged; None if the call has none.

    Parameters
    ----------
    unknown : frozenset of str
        Keywords of `strict_schema` that this provider's structured output does not have. ``minItems`` in it leaves 0
        and 1.
    api : str
        What the provider calls itself, for the message.

    Raises
    ------
    ModelError
        It has such a keyword, or is no strict schema at all: to leave a keyword out would be to ask another question.
    """
    if call.schema is None:
        return None
    schema = strict_schema(call.schema)
    found = _found(schema, "schema", unknown)
    refuse(call, [f"{where}: {name!r} is not known to the structured output of the {api}" for where, name in found])
    return schema


def _found(node: Any, where: str, unknown: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Where a schema has keywords that are not known. `strict_schema` has seen to its form."""
    for name in sorted(unknown & node.keys()):
        if name != "minItems" or node[name] not in (0, 1):
            yield where, name
    inner = [(f"{where}.{name}", part) for name, part in node.get("properties", {}).items()]
    inner += [(f"{where}.$defs.{name}", part) for name, part in node.get("$defs", {}).items()]
    inner += [(f"{where}.anyOf[{place}]", part) for place, part in enumerate(node.get("anyOf", ()))]
    inner += [(f"{where}.items", node["items"])] if "items" in node else []
    for place, part in inner:
        yield from _found(part, place, unknown)


class SdkModel(ABC):
    """A model of a provider, asked over the provider's own client. A new provider fills in four methods."""

    provider: ClassVar[Provider]

    def __init__(self, name: str, environ: Mapping[str, str] | None, clients: PerLoop[Any]) -> None:
        self.name = f"{self.provider.name}/{name}"
        self._environ = environ
        self._clients = clients

    def check(self, args: Mapping[str, JSON] | None = None) -> None:
        """See that the SDK is installed and a key is set, before a run asks anything; nothing is sent."""
        load_sdk(self.provider)
        transport(self.provider, CallSpec(model=self.name, messages=(), template="", args=args or {}), self._environ)

    async def complete(self, call: CallSpec) -> Reply:
        """Ask once."""
        refuse(call, list(self._problems(call)))
        at = transport(self.provider, call, self._environ)
        request = self._request(call, at)
        client = await self._clients.of(at)
        started = time.perf_counter()  # not before: the first client of a process takes seconds to import
        body = await attempt(at, self._sent(client, request, call, at))
        seconds = time.perf_counter() - started
        return replace(too_large(body, call, at) or self._read(body, call, at), seconds=seconds)

    async def aclose(self) -> None:
        """Close the connections of this event loop; those of a loop that has ended are closed already."""
        await self._clients.aclose()

    @abstractmethod
    def _problems(self, call: CallSpec) -> Iterable[str]:
        """What the call asks for and cannot get, in words."""

    @abstractmethod
    def _request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """What the client is handed."""

    @abstractmethod
    async def _sent(self, client: Any, request: dict[str, Any], call: CallSpec, at: Transport, /) -> bytes:
        """The body of the reply, or the start of one that is too long to be kept."""

    @abstractmethod
    def _read(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        """The reply in the body of a response; `ModelError` if it is none."""
