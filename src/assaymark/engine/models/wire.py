"""What all clients of model providers share, in one place: see `keys`, `transports` and `failures` for the parts.

A client makes its request body, sends it inside `attempt` with a client of `PerLoop`, reads the body of the reply by
`too_large` and `read_object`, and takes from it what `Reply` holds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, Final, TypeVar

from assaymark.engine.calls import CallSpec, Finish, Reply, Text
from assaymark.engine.models.failures import (
    RETRYABLE,
    Refused,
    as_model_error,
    is_html,
    not_an_api,
    refusal,
    retry_after_of,
    retryable_status,
    words_of,
)
from assaymark.engine.models.keys import LONGEST_FORM, Secret, printable, scrub
from assaymark.engine.models.transports import (
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
from assaymark.engine.room import MOST_KEPT_BYTES
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
    """Await one request and its body, within the time of the transport.

    Raises
    ------
    ModelError
        Whatever went wrong, as `as_model_error` puts it; no exception of the SDK is chained to it, for it holds the
        request.
    """
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
    """The body of a reply as text without the key, and as the JSON object that it is.

    Raises
    ------
    ModelError
        It is a page, no JSON (which another attempt may mend), or no object.
    """
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

    Raises
    ------
    ModelError
        It is no such schema; every problem is named.

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
