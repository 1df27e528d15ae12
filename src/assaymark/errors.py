"""The errors that assaymark raises on purpose, and readable messages for invalid input files.

::

    AssayError                 one line for the user, exit status 1
    |-- InputError             an input file or record is invalid: all of its problems together
    |-- PlanError              a study file, its lock and its records do not match
    |-- UnknownNameError       a name is not known ("Did you mean ...?")
    |-- NotMeasurableError     the requested number is undefined on these data
    |-- LedgerError            stored bytes are damaged, or belong to another run
    |-- ModelError             one attempt at a model call failed, and whether a retry can help
    `-- StoppedError           the user stopped the run (Ctrl-C, SIGTERM): what was saved, exit status 130

Each class exists because some caller catches it. A message names the problem, the value found, the values allowed,
and the place; it starts in lower case and has no markup.
"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from pydantic import ValidationError

LISTED = 20
"""Problems that an error lists; the rest are counted, because a broken file has thousands."""

MOST_NAMED = 30
"""Known names that a message lists in full; of more names it lists the first few and counts the rest."""

_NAMED = 12


class AssayError(Exception):
    """Base of every error that assaymark raises on purpose. Catch it to show one line instead of a traceback."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of an input: its place, and a message with the value found and the values allowed."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class InputError(AssayError):
    """An input file or record is invalid. Carries all of its problems, not only the first.

    The message lists the first `LISTED` and counts the rest. ``more`` is the number of further problems that were
    found but not stored.
    """

    def __init__(self, source: str, problems: Iterable[Problem | str], more: int = 0) -> None:
        self.source = source
        self.problems: tuple[Problem, ...] = tuple(p if isinstance(p, Problem) else Problem("", p) for p in problems)
        lines, total = [*map(str, self.problems[:LISTED])], len(self.problems) + more
        if total > len(lines):
            lines.append(f"and {total - len(lines)} more")
        super().__init__(
            f"{source}: {self.problems[0]}" if total == 1 else "\n  ".join([f"{source}: {total} problems", *lines])
        )


class PlanError(AssayError):
    """A study file, its lock and the records to analyse do not match."""


class UnknownNameError(AssayError):
    """A user-supplied name is not known; the message suggests ``meant``, or else the closest known name."""

    def __init__(self, kind: str, name: str, options: Iterable[str], *, meant: str | None = None) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(options))
        close = difflib.get_close_matches(name, self.known, n=1) if meant is None else [meant]
        hint = f" Did you mean {close[0]!r}?" if close else ""
        shown = self.known if len(self.known) <= MOST_NAMED else self.known[:_NAMED]
        more = len(self.known) - len(shown)
        listed = ", ".join(shown) + (f" and {more} more" if more else "") if self.known else "none"
        super().__init__(f"unknown {kind} {name!r:.100}.{hint} Known: {listed}")


def check_known(kind: str, options: Collection[str], *names: str) -> None:
    """Raise `UnknownNameError` for the first name that is not one of the options."""
    for name in names:
        if name not in options:
            raise UnknownNameError(kind, name, options)


class NotMeasurableError(AssayError):
    """The quantity is undefined on these data. Raised instead of returning 0.0 or NaN silently."""


class LedgerError(AssayError):
    """A stored object does not match its hash, cannot be read, or belongs to another run."""


class ModelError(AssayError):
    """One attempt at a model call failed.

    ``retryable`` is True if another attempt can help, and ``retry_after`` is the number of seconds that the provider
    asked to wait before it. With ``quota`` no call to this provider can succeed (invalid key, no credit left); with
    ``always`` no call to this model can (unknown name, no support for schemas).
    ``refused`` is set if the provider rejected this call permanently: for its ``content`` (a filter), or for a
    property of the ``call`` that other calls may share (too long, a bad request). With ``lost`` the request was sent
    and its reply never arrived whole, so that it may have been billed.
    """

    def __init__(
        self, message: str, *, retryable: bool, retry_after: float | None = None, quota: bool = False,
        always: bool = False, refused: Literal["content", "call"] | None = None, lost: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.retryable, self.retry_after, self.quota = retryable, retry_after, quota
        self.always, self.refused, self.lost = always, refused, lost


class StoppedError(AssayError):
    """The run was interrupted by Ctrl-C or SIGTERM. The message says what was saved."""


_MOST_SEEN: Final = 80
_MOST_KNOWN: Final = 12
_NEAR: Final = 0.6

_NUMBER: Final = "must be a number"
_WHOLE: Final = "must be a whole number"
_TRUTH: Final = "must be true or false"
_DAY: Final = "must be a day such as 2024-03-01"
_TIME: Final = "must be a time such as 2024-03-01T16:00:00Z"
_TABLE: Final = "must be a table of keys"

_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing"), _NUMBER), **dict.fromkeys(("bool_type", "bool_parsing"), _TRUTH),
    **dict.fromkeys(("string_type", "string_unicode", "string_sub_type"), "must be text"),
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"), _DAY),
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), _TIME),
    "datetime_object_invalid": _TIME, "timezone_aware": "must be a time with a zone, such as 2024-03-01T16:00:00Z",
    **dict.fromkeys(("time_type", "time_parsing"), "must be a time of day such as 16:00"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"), _TABLE),
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), "must be a list"),
    "finite_number": "must be a finite number", "none_required": "must be left out",
}  # fmt: skip
_LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than": ("must be above", "gt"), "greater_than_equal": ("must be at least", "ge"),
    "less_than": ("must be below", "lt"), "less_than_equal": ("must be at most", "le"),
    "multiple_of": ("must be a multiple of", "multiple_of"),
}  # fmt: skip
_LENGTHS: Final[Mapping[str, tuple[str, str]]] = {
    "too_short": ("needs at least {} (got {})", "min_length"),
    "too_long": ("may have at most {} (got {})", "max_length"),
    "string_too_short": ("must have at least {} characters", "min_length"),
    "string_too_long": ("must have at most {} characters", "max_length"),
}
_MAKERS: Final = (
    (re.compile(r"(gpt|chatgpt|o\d|codex)\b.*"), "openai/{}"), (re.compile(r"claude.*"), "anthropic/{}"),
    (re.compile(r"gemini.*"), "google/{}"),
    (re.compile(r"(llama|qwen|mistral|mixtral|deepseek|grok|phi|gemma|glm|kimi|command|nova).*"), "openai-chat/{}"),
)  # fmt: skip
SHEET: Final = "save the sheet as CSV (UTF-8) and give that file"
"""The remedy that messages give for a spreadsheet."""

_FOREIGN: Final[Mapping[bytes, str]] = {
    b"PK\x03\x04": f"is a spreadsheet or an archive: {SHEET}",
    b"\xd0\xcf\x11\xe0": f"is a spreadsheet of an old kind: {SHEET}", b"%PDF": "is a PDF, not a table",
    b"SQLite format 3": "is a SQLite database: export the table as CSV and give that file",
    b"\x89PNG": "is an image, not a table", b"\xff\xd8\xff": "is an image, not a table",
    b"BZh": "is packed with bzip2: unpack it, or pack it with gzip or Zstandard",
    b"\xfd7zXZ": "is packed with xz: unpack it, or pack it with gzip or Zstandard",
    b"7z\xbc\xaf": "is a 7z archive: unpack it and give one file",
    # The mark of UTF-32 comes first, because it begins with that of UTF-16.
    **dict.fromkeys((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"), "is text in UTF-32: save it as UTF-8"),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "is text in UTF-16: save it as UTF-8"),
}  # fmt: skip
_TABLES: Final = (
    (re.compile(r"Expected (\d+) columns, got (\d+): (.{0,80})"), "a row has {1} values for {0} columns ({2})"),
    (re.compile(r"Empty CSV file|too short or header is larger"), "holds no rows that could be read"),
    (re.compile(r"invalid UTF-?8", re.IGNORECASE), "is not UTF-8 text"),
    (re.compile(r"[Pp]arquet (magic|file size|footer)|not a parquet file"), "is not a Parquet file, or is damaged"),
    (re.compile(r"checksum|corrupt|deserialize|Couldn't", re.IGNORECASE), "is damaged: restore it from a copy"),
)
_PROVIDERS: Final = ("openai", "openai-chat", "anthropic", "google", "inspect", "http", "https", "python", "reference")


def problems_of(error: ValidationError, kind: Any = None) -> list[Problem]:
    """Return the problems of a pydantic error: dotted place and message with the value found (cut at 80 characters)."""
    items = error.errors(include_url=False)
    places = [item["loc"] for item in items]
    by_place: dict[tuple[Any, ...], list[str]] = {}
    for item in items:
        place = item["loc"]
        inside = any(len(other) > len(place) and other[: len(place)] == place for other in places)
        if item["type"] in ("too_short", "too_long") and inside:
            continue  # it counts only entries that are right, and the wrong ones are named
        end = place[-1] if len(place) > 1 else 0
        if isinstance(end, str) and (end in ("str", "int", "float", "bool") or "[" in end):
            # One of the types that a value may have, unless it is a key.
            place = place if end in known_keys(kind, place[:-1]) else place[:-1]
        messages = by_place.setdefault(place, [])
        messages += [words] if (words := _message(item, kind)) not in messages else []
    problems = []
    for place, messages in by_place.items():
        text = messages[0]
        if len(messages) > 1:  # what a value may be, where it may be several things: with the value once
            options = [message.partition(" (got ")[0].removeprefix("must be ") for message in messages]
            got = messages[-1][len(messages[-1].partition(" (got ")[0]) :]
            text = f"must be {', '.join(options[:-1])} or {options[-1]}{got}"
        problems += [Problem(".".join(map(str, place)), part) for part in text.split("\n")]
    return problems


def likely_model(name: str) -> str | None:
    """Return the probable ``provider/model`` of a model name without a provider; None if there is no guess."""
    maker, mark, rest = (part.strip() for part in re.findall(r"\A([^:/]*)(://|[:/]|)((?s:.*))", name)[0])
    if mark and rest and maker.lower() in _PROVIDERS:
        return f"{maker.lower()}/{rest}"
    return next((form.format(name) for beginning, form in _MAKERS if beginning.fullmatch(name.lower())), None)


def foreign_format(start: bytes) -> str | None:
    """Name the format of a file that is neither text nor a table, from its first bytes; None if unrecognised."""
    if start.lstrip()[:5].lower() in (b"<html", b"<!doc", b"<?xml"):
        return "is a web page (HTML or XML), not a table: perhaps a login or an error page was saved in its place"
    return next((words for magic, words in _FOREIGN.items() if start.startswith(magic)), None)


def table_problem(error: BaseException, start: bytes = b"") -> str:
    """Return a message on why a table could not be read, from the reader's error and the first bytes of the file."""
    if (kind := foreign_format(start)) is not None:
        return kind
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    line = (str(error).splitlines() or [type(error).__name__])[0]
    for pattern, words in _TABLES:
        if (match := pattern.search(line)) is not None:
            return words.format(*match.groups())
    return f"cannot be read as a table: {line.removeprefix('CSV parse error: ')[:_MOST_SEEN]}"


def _message(item: Mapping[str, Any], kind: Any) -> str:
    """Format one problem, with the value found where that helps, and a suggestion."""
    code, raw, ctx = item["type"], item.get("input"), item.get("ctx", {})
    name = str(item["loc"][-1]) if item["loc"] else ""
    if code in ("extra_forbidden", "unexpected_keyword_argument"):
        names = known_keys(kind, item["loc"][:-1])
        if close := difflib.get_close_matches(name, names, n=1, cutoff=_NEAR):
            return f"unknown key; did you mean {close[0]!r}?"
        listed = ", ".join(sorted(names)[:_MOST_KNOWN]) + (" ..." if len(names) > _MOST_KNOWN else "")
        return f"unknown key; known are {listed}" if names else "unknown key"
    if code in ("value_error", "assertion_error"):
        text = str(item["msg"]).partition(", ")[2]
        return text if isinstance(raw, Mapping | list | tuple) or "(got " in text else f"{text} (got {_excerpt(raw)})"
    if code in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return "is missing"
    if code == "json_invalid":
        return f"is not JSON: {ctx['error']}"
    if code in ("too_short", "too_long"):
        return _LENGTHS[code][0].format(ctx[_LENGTHS[code][1]], ctx.get("actual_length", 0))
    should = _WORDS.get(code) or str(item["msg"]).replace("Input should be", "must be").replace("Input", "it")
    if should == "must be a list" and isinstance(raw, Mapping):
        return f"is a list of tables: write [[{name}]] in place of [{name}]"
    if should == _TABLE and isinstance(raw, list | tuple) and any(isinstance(value, Mapping) for value in raw):
        return f"is one table: write [{name}] in place of [[{name}]]"
    likely = None
    if code in _LIMITS:
        limit = ctx[_LIMITS[code][1]]
        should = f"{_LIMITS[code][0]} {f'{limit:g}' if isinstance(limit, float) else limit}"
    elif code in _LENGTHS:
        least = ctx[_LENGTHS[code][1]]
        empty = code == "string_too_short" and least == 1
        should = "must not be empty" if empty else _LENGTHS[code][0].format(least)
    elif code in ("literal_error", "enum"):
        should = f"must be {ctx['expected']}"
        allowed = re.findall(r"'([^']*)'", str(ctx["expected"]))
        if isinstance(raw, str):
            likely = next(iter(difflib.get_close_matches(raw, allowed, n=1, cutoff=_NEAR)), None)
    elif code == "string_pattern_mismatch":
        should = f"must have the form {ctx['pattern']}"
        if name == "model":
            should = "must be provider/name, such as openai/gpt-4o"
        likely = likely_model(raw) if isinstance(raw, str) and name == "model" else None
    meant = f"; did you mean {likely!r}?" if likely and not _may_hold_secret(str(raw)) else ""
    return f"{should} (got {_excerpt(raw)}){meant}"


def _may_hold_secret(text: str) -> bool:
    """True if a text is a URL with a user or a query, either of which may hold a secret."""
    return re.match(r"\s*https?\W.*[@?]", text, re.IGNORECASE | re.DOTALL) is not None


def _excerpt(value: Any) -> str:
    if isinstance(value, str) and _may_hold_secret(value):
        return "an address that may hold a secret, not shown"
    text = str(value) if type(value).__module__ == "datetime" else repr(value)
    return text if len(text) <= _MOST_SEEN else f"{text[: _MOST_SEEN - 3]}..."


def known_keys(kind: Any, place: Iterable[int | str]) -> tuple[str, ...]:
    """Return the keys that a table at this place of a type may have; empty if the type does not define them."""
    kinds = _members(kind)
    for part in place:
        nested: list[Any] = []
        for each in kinds:
            fields, inner = _fields(each), [arg for arg in get_args(each) if arg is not Ellipsis]
            if part in fields:
                nested.append(fields[str(part)])
            elif inner:
                nested.append(inner[0] if isinstance(part, int) else inner[-1])
        kinds = [member for each in nested for member in _members(each)]
    return tuple(dict.fromkeys(name for each in kinds for name in _fields(each)))


def _members(kind: Any) -> list[Any]:
    """Return the alternatives of a union type, without annotations."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return [inner for member in get_args(kind) for inner in _members(member)]
    return _members(get_args(kind)[0]) if hasattr(kind, "__metadata__") else [kind]


def _fields(kind: Any) -> Mapping[str, Any]:
    """Return the keys of a table with their types."""
    model = getattr(kind, "model_fields", None)
    if isinstance(model, dict):
        return {field.alias or name: field.annotation for name, field in model.items()}
    if hasattr(kind, "__dataclass_fields__"):
        return get_type_hints(kind)
    return {}
