"""What a failed request to a provider means: whether to ask again, when, and what a person can do about it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

from assaymark.engine.models.transports import Transport
from assaymark.errors import ModelError

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

    Parameters
    ----------
    exc : BaseException
        Of the SDK, of the HTTP client below it, or of the operating system.
    transport : Transport
        Where the request went. Its key is taken out of everything that the provider said.
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
