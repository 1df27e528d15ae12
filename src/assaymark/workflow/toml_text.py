"""Plans and choices written as TOML, so that a person can read and change them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, time
from typing import Any, Final

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHORT_FORM: Final = 0xFFFF  # the longest code that four digits hold


def toml_text(table: Mapping[str, Any]) -> str:
    """A table as a TOML document: in each table its own values come first, then the tables inside it.

    >>> print(toml_text({"name": "small", "judges": [{"name": "a"}], "engine": {"workers": 2}}), end="")
    name = "small"
    <BLANKLINE>
    [[judges]]
    name = "a"
    <BLANKLINE>
    [engine]
    workers = 2
    """
    return "\n".join(_lines(table, ())) + "\n"


def toml_value(value: object) -> str:
    """A value as TOML writes it on one line.

    >>> toml_value({"a": [1, "x"], "b": True})
    '{ a = [1, "x"], b = true }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value) if isinstance(value, (int, float)) else _quoted(str(value))


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [f"{_key(name)} = {toml_value(value)}" for name, value in table.items() if not _is_table(value)]
    for name, value in table.items():
        inner = (*path, _key(name))
        if isinstance(value, dict) and value:
            lines += ["", f"[{'.'.join(inner)}]", *_lines(value, inner)]
        elif _is_table(value) and isinstance(value, list):
            for item in value:
                lines += ["", f"[[{'.'.join(inner)}]]", *_lines(item, inner)]
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """A string on one line, with every character that cannot be seen written as its number."""
    return '"' + "".join(_numbered(char) if char in '"\\' or not char.isprintable() else char for char in text) + '"'


def _numbered(char: str) -> str:
    code = ord(char)
    if char in '"\\':
        return f"\\{char}"
    return f"\\u{code:04x}" if code <= _SHORT_FORM else f"\\U{code:08x}"
