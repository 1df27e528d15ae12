"""Sentences by key, in several languages: what a page or a verdict says, apart from how it is worded."""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.records import AGGREGATE
from assaymark.text import clean
from assaymark.text import listing as listing
from assaymark.text import p_words as p_words

ENGLISH: Final = "en"
"""The language that has every key: others are held against it."""

_OWN: Final = ("language", "decimal", "list_and", "minus")
_FORMAT: Final = re.compile(r"\+?(\.\d)?[fg%]?")

Value: TypeAlias = "str | int | float | Said | tuple[str, ...]"


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence, not yet worded: its key, and the values that stand in it."""

    key: str
    values: Mapping[str, Value] = field(default_factory=dict)


def said(key: str, **values: Value) -> Said:
    """A sentence with its values."""
    return Said(key, values)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The sentences of one language."""

    language: str
    name: str
    decimal: str
    list_and: str
    minus: str
    texts: Mapping[str, str]

    @classmethod
    def of(cls, sources: Mapping[str, str], language: str) -> Catalogue:
        """A language from the texts of its files, held against English."""
        texts: dict[str, str] = {}
        problems: list[Problem] = []
        for name, source in sources.items():
            try:
                entries = dict(_flat(tomllib.loads(source)))
            except tomllib.TOMLDecodeError as exc:
                problems.append(Problem(name, f"is not TOML: {exc}"))
                continue
            problems += [Problem(f"{name}, {key}", "is given twice") for key in entries if key in texts]
            problems += [Problem(f"{name}, {key}", "must be a text") for key, text in entries.items() if text is None]
            texts |= {key: text for key, text in entries.items() if text is not None}
        problems += [Problem(key, "must not be empty") for key in _OWN if texts.get(key) == ""]
        asked: dict[str, set[str]] = {}
        for key, text in texts.items():
            try:
                fields = [] if key in _OWN else _fields(text)
            except ValueError as exc:
                problems.append(Problem(key, f"its braces are not in order: {str(exc).lower()}"))
                continue
            asked[key] = {name for name, _, _ in fields}
            for name, spec, conversion in fields:
                if conversion or not _FORMAT.fullmatch(spec):
                    wrong = f"{name}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}"
                    what = f"a format is digits after the point and a sign, like +.1f (got {wrong})"
                    problems.append(Problem(key, what))
        expected: Mapping[str, str] = english().texts if language != ENGLISH else texts
        problems += [Problem(key, "is missing") for key in expected if key not in texts]
        problems += [Problem(key, "is no message") for key in sorted({*texts} - {*expected, *_OWN})]
        for key in sorted(asked.keys() & expected.keys()) if language != ENGLISH else ():
            wanted = {name for name, _, _ in _fields(expected[key])}
            if asked[key] != wanted:
                named, got = (", ".join(sorted(names)) or "none" for names in (wanted, asked[key]))
                problems.append(Problem(key, f"must have the values {named} (got {got})"))
        problems += [Problem(key, "is missing") for key in _OWN if key not in texts]
        if problems:
            raise InputError(f"language {language}", problems)
        name, decimal, list_and, minus = (texts.pop(key) for key in _OWN)
        return cls(language, name, decimal, list_and, minus, texts)

    def say(self, key: str, **values: Value) -> str:
        """One sentence in words."""
        return self.render(Said(key, values))

    def render(self, sentence: Said) -> str:
        """A sentence in words."""
        key, values = sentence.key, sentence.values
        if "n" in values and f"{key}.other" in self.texts:
            key = f"{key}.{'one' if values['n'] == 1 else 'other'}"
        if key not in self.texts:
            raise UnknownNameError("message", sentence.key, tuple(self.texts))
        pieces = []
        for before, name, spec, _ in string.Formatter().parse(self.texts[key]):
            pieces.append(before)
            if name is None:
                continue
            if name not in values:
                raise UnknownNameError(f"value of {sentence.key}", name, tuple(values))
            value = values[name]
            if isinstance(value, Said):
                pieces.append(self.render(value))
            elif isinstance(value, str):
                pieces.append(value)
            else:
                pieces.append(self.names(value) if isinstance(value, tuple) else self.number(value, spec or ""))
        return "".join(pieces)

    def join(self, sentences: Iterable[Said]) -> str:
        """Sentences one after the other."""
        return " ".join(self.render(sentence) for sentence in sentences)

    def number(self, value: float, spec: str = "") -> str:
        """A number as the language sets it: a true minus, and its own decimal sign."""
        written = format(value, spec)
        if not float(written.strip("+-%") or 0):
            written = written.replace("-", "+" if spec.startswith("+") else "")
        return written.replace("-", self.minus).replace(".", self.decimal)

    def names(self, names: Sequence[str]) -> str:
        """Names as a list in words."""
        return listing(names, last=self.list_and)


@cache
def catalogue(language: str) -> Catalogue:
    """A language that comes with the package."""
    if language not in languages():
        raise UnknownNameError("language", language, languages())
    folder = files(__name__)
    sources = {
        path.name: path.read_text(encoding="utf-8")
        for path in folder.iterdir()
        if path.name.endswith(".toml") and path.name.partition(".")[0] == language
    }
    return Catalogue.of(dict(sorted(sources.items())), language)


def english() -> Catalogue:
    """English."""
    return catalogue(ENGLISH)


@cache
def languages() -> tuple[str, ...]:
    """The languages that come with the package, English first."""
    names = {path.name.partition(".")[0] for path in files(__name__).iterdir() if path.name.endswith(".toml")}
    return (ENGLISH, *sorted(names - {ENGLISH}))


def stand_ins(
    words: Catalogue, judges: Mapping[str, bool], agents: Mapping[str, bool], subjects: Iterable[str] = (),
    made_by: str = "agents",
) -> str:  # fmt: skip
    """The sentence to say with a claim whose judges or agents are built in; empty where none is."""
    graded, decided = (bool(who) and all(who.values()) for who in (judges, agents))
    if graded and decided:
        return words.say("stand_ins.both")
    lines = []
    if some := [clean(name, 60) for name, built_in in judges.items() if built_in]:
        lines.append(words.say("stand_ins.graded" if graded else "stand_ins.graded_part", names=words.names(some)))
    names = [clean(name, 60) for name in subjects if agents.get(name)]
    if decided:
        lines.append(words.say(f"stand_ins.{made_by}"))
    elif names:
        lines.append(words.say("stand_ins.some", names=words.names(names), n=len(names)))
    return " ".join(lines)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str | None]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value if isinstance(value, str) else None


def _fields(text: str) -> list[tuple[str, str, str]]:
    """The values that a text asks for, each with its format and its conversion."""
    parsed = string.Formatter().parse(text)
    return [(name, spec or "", conversion or "") for _, name, spec, conversion in parsed if name is not None]


# How numbers, scores and lists read in a sentence about a claim

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def measure_words(dimension: str) -> str:
    """How a sentence calls the score of a dimension."""
    return "the overall score" if dimension == AGGREGATE else dimension.replace("_", " ")


def count_words(count: int) -> str:
    """Small numbers as words, others as digits."""
    return _SMALL[count] if count < len(_SMALL) else str(count)


def counted(count: int, noun: str) -> str:
    """So many of something, in words."""
    return f"{count_words(count)} {noun}{'' if count == 1 else 's'}"


def number(value: float) -> str:
    """A statistic with two decimals and a true minus."""
    return f"{value:.2f}".replace("-", "−")


def signed(value: float) -> str:
    """A difference with its sign, three decimals."""
    return f"{value:+.3f}".replace("-", "−")


def ends_words(low: float | None, high: float | None) -> str:
    """The interval of a statistic, or nothing."""
    return "" if low is None or high is None else f" ({number(low)} to {number(high)})"


def interval_words(low: float | None, high: float | None) -> str:
    """An interval behind a difference, or nothing."""
    return "" if low is None or high is None else f" ({signed(low)} to {signed(high)})"
