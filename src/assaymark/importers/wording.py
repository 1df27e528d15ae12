"""What is wrong with a value from outside, in our words: the place, what is allowed, and a short form of the value."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from assaymark.errors import Problem

NAME = r"^[^\x00-\x1f\[\]=,|]{1,120}$"
"""What a name may be made of: what a study file can hold, so that every imported agent can be chosen there."""

NO_NAME = "cannot be a name: 1 to 120 characters, no control characters and none of []=,|"
SHA256 = r"^[0-9a-f]{64}$"

_SEEN = 60


class ShapeError(ValueError):
    """A value does not have the shape it should have; carries every problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, problems)))


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """The strict reader of a shape; made once, for it is slow to make."""
    return TypeAdapter(kind)


def as_shape(kind: Any, value: Any) -> Any:
    """A tree of plain values as a ``kind``.

    >>> as_shape(dict[str, int], {"a": "many"})
    Traceback (most recent call last):
    assaymark.importers.wording.ShapeError: a: must be a whole number (got 'many')

    Raises
    ------
    ShapeError
        It has another shape: every problem at once.
    """
    try:
        return adapter(kind).validate_python(value)
    except ValidationError as exc:
        raise ShapeError(worded(exc, kind)) from None


def json_as_shape(kind: Any, text: str | bytes) -> Any:
    """A JSON text as a ``kind``. Raises as `as_shape`."""
    try:
        return adapter(kind).validate_json(text)
    except ValidationError as exc:
        raise ShapeError(worded(exc, kind)) from None


def worded(error: ValidationError, kind: Any) -> list[Problem]:
    """The problems in a pydantic error about a ``kind``, in our words."""
    return [_problem(item, kind) for item in error.errors(include_url=False)]


def _problem(item: Mapping[str, Any], kind: Any) -> Problem:
    loc = item["loc"]
    place = ".".join(str(part) for part in loc)
    if item["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return Problem(place, f"unknown key (allowed: {', '.join(_allowed(kind, loc)) or 'none'})")
    what = _what(item["type"], item.get("ctx", {}), item["msg"])
    return Problem(place, what + ("" if item["type"] in _WITHOUT_VALUE else f" (got {_seen(item['input'])})"))


_WITHOUT_VALUE = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "json_invalid", "value_error"}
)

_WORDS: Mapping[str, str] = {
    "missing": "is missing; a value is needed",
    "missing_argument": "is missing; a value is needed",
    "missing_keyword_only_argument": "is missing; a value is needed",
    "string_type": "must be text",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 19 digits",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
    "none_required": "must be empty",
    "date_type": "must be a day such as 2026-05-01",
    "date_parsing": "must be a day such as 2026-05-01",
    "date_from_datetime_parsing": "must be a day such as 2026-05-01",
    "date_from_datetime_inexact": "must be a day such as 2026-05-01",
    "datetime_type": "must be a time such as 2026-05-01T13:30:00Z",
    "datetime_parsing": "must be a time such as 2026-05-01T13:30:00Z",
    "datetime_from_date_parsing": "must be a time such as 2026-05-01T13:30:00Z",
    "timezone_aware": "has no time zone; allowed: 2026-05-01T13:30:00Z or with +02:00",
}

_LIMITS: Mapping[str, str] = {
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "json_invalid": "not JSON: {error}",
    "value_error": "{error}",
}

_PATTERNS: Mapping[str, str] = {
    NAME: NO_NAME,
    SHA256: "must be a sha256: 64 digits of 0-9 and a-f",
}


def _what(kind: str, limits: Mapping[str, Any], message: str) -> str:
    """Our sentence for one kind of error; the library's own, in lower case, for one that we never met."""
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in _LIMITS:
        return _LIMITS[kind].format_map(limits)
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(limits["pattern"], f"must be written like {limits['pattern']}")
    return f"{message[:1].lower()}{message[1:]}"


def _seen(value: Any) -> str:
    """A value as it is shown; what holds other values is only named."""
    if isinstance(value, Mapping) or dataclasses.is_dataclass(value):
        return "an object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if value is None:
        return "nothing"
    if isinstance(value, int) and value.bit_length() > 1000:
        return "a number of more than 300 digits"
    seen = repr(value)
    return seen if len(seen) <= _SEEN else f"{seen[: _SEEN - 3]}..."


def _allowed(kind: Any, loc: Sequence[str | int]) -> tuple[str, ...]:
    """The keys that may stand where ``loc`` ends, found by following it through the types."""
    for part in loc[:-1]:
        kind = _inside(kind, part)
    return tuple(_keys(_bare(kind)))


def _inside(kind: Any, part: str | int) -> Any:
    """The type of one part of a type."""
    kind = _bare(kind)
    if get_origin(kind) in (list, tuple):
        return get_args(kind)[0]
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    return _keys(kind).get(str(part))


def _bare(kind: Any) -> Any:
    """A type without its "or nothing"."""
    if get_origin(kind) in (Union, types.UnionType):
        return next(one for one in get_args(kind) if one is not type(None))
    return kind


def _keys(kind: Any) -> dict[str, Any]:
    """The keys of an object type with their types; a generic one's are those that it was made with."""
    shape = get_origin(kind) or kind
    if not isinstance(shape, type):
        return {}
    if dataclasses.is_dataclass(shape):
        names = [field.name for field in dataclasses.fields(shape)]
    elif issubclass(shape, BaseModel):
        names = list(shape.model_fields)
    else:
        return {}
    hints = get_type_hints(shape)
    given: dict[TypeVar, Any] = dict(zip(getattr(shape, "__parameters__", ()), get_args(kind), strict=False))
    return {name: given.get(hints[name], hints[name]) for name in names}
