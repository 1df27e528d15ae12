"""The syntax of a prompt: fences that their content cannot close, and rows of cells inside them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Final

from assaymark.errors import InputError, Problem
from assaymark.records import sha256_text
from assaymark.text import code_points

_BEGIN = re.compile(r"^<<<BEGIN ([a-z]+) ([0-9a-f]{16})>>>\n", re.MULTILINE)
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPE = re.compile(r"[\\\t\n\r]")
_ESCAPE_BESIDE_TAB = re.compile(r"[\\\n\r]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Section:
    """What stands between one pair of fences."""

    label: str
    content: str


def nonce(label: str, content: str) -> str:
    """16 hex digits of sha256 over label and content."""
    return hashlib.sha256(f"{label}\n{content}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def fence(label: str, content: str) -> str:
    """``content`` between two lines that name it and carry its nonce."""
    content = code_points(content)
    mark = f"{label} {nonce(label, content)}"
    return f"<<<BEGIN {mark}>>>\n{content}\n<<<END {mark}>>>"


def sections(text: str) -> tuple[Section, ...]:
    """The outermost fenced sections of a prompt, in order. What looks like a fence inside of one is content."""
    found = []
    at = 0
    while begin := _BEGIN.search(text, at):
        label, mark = begin.groups()
        end = f"\n<<<END {label} {mark}>>>"
        # One character back, because an empty content shares its two line ends.
        stop = text.find(end, begin.end() - 1)
        content = text[begin.end() : max(stop, begin.end())]
        if stop < 0 or nonce(label, content) != mark:
            raise InputError("prompt", [Problem(f"section {label}", "its fence is not closed or was tampered with")])
        found.append(Section(label, content))
        at = stop + len(end)
    return tuple(found)


def row(cells: Iterable[str]) -> str:
    """Cells as one line, separated by tabs; a tab or line end in a cell is written as an escape."""
    found = list(cells)
    line = "\t".join(found)
    if line.count("\t") == len(found) - 1 and not _ESCAPE_BESIDE_TAB.search(line):
        return line
    return "\t".join(_ESCAPE.sub(lambda match: _ESCAPES[match.group()], cell) for cell in found)


def cells(line: str) -> list[str]:
    """The cells of a line, as they were before `row`."""
    if "\\" not in line:
        return line.split("\t")
    return [_ESCAPED.sub(lambda m: _UNESCAPES.get(m.group(1), m.group(1)), cell) for cell in line.split("\t")]


_PART: Final = re.compile(r"^=== ([A-Za-z0-9_]+) ===\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class PromptTemplate:
    """A prompt template: its file name, its text with the sha256 of it, and its parts by name."""

    name: str
    text: str
    sha256: str
    parts: Mapping[str, Template]

    @classmethod
    def of(cls, name: str, text: str) -> PromptTemplate:
        """The template in a text, part by part."""
        _, *found = _PART.split(text)
        parts = {key: Template(part.rstrip("\n")) for key, part in zip(found[::2], found[1::2], strict=True)}
        return cls(name, text, sha256_text(text), parts)

    def part(self, name: str) -> str:
        """One part as it stands, with nothing filled in."""
        return self.parts[name].template

    def filled(self, part: str, **values: object) -> str:
        """One part with its values; a value too few is a `KeyError`."""
        return self.parts[part].substitute(values)


@cache
def prompt_template(package: str, name: str) -> PromptTemplate:
    """The template ``name`` of a package, from its folder ``templates``."""
    return PromptTemplate.of(name, (files(package) / "templates" / name).read_text(encoding="utf-8"))
