"""Prompt templates: files that come with the package, in parts that are filled one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Final

from assaymark.records import sha256_text

_PART: Final = re.compile(r"^=== ([A-Za-z0-9_]+) ===\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class PromptTemplate:
    """A prompt template: its file name, its text with the sha256 of it, and its parts by name."""

    name: str
    text: str
    sha256: str
    parts: Mapping[str, Template]

    def part(self, name: str) -> str:
        """One part as it stands, with nothing filled in."""
        return self.parts[name].template

    def filled(self, part: str, **values: object) -> str:
        """One part with its values; a value too few is a `KeyError`."""
        return self.parts[part].substitute(values)


@cache
def prompt_template(package: str, name: str) -> PromptTemplate:
    """The template ``name`` of a package, from its folder ``templates``. Each part begins with a line ``=== name ===``.

    >>> sorted(prompt_template("assaymark.agents", "agent-v1.txt").parts)
    ['material', 'system', 'task']
    """
    text = (files(package) / "templates" / name).read_text(encoding="utf-8")
    _, *found = _PART.split(text)
    parts = {key: Template(part.rstrip("\n")) for key, part in zip(found[::2], found[1::2], strict=True)}
    return PromptTemplate(name, text, sha256_text(text), parts)
