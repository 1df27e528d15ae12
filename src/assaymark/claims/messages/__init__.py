"""Message catalogues: texts of pages and verdicts by key, in several languages."""

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
from assaymark.text import clean, end_digits
from assaymark.text import count_words as count_words
from assaymark.text import listing as listing
from assaymark.text import number as number
from assaymark.text import p_words as p_words
from assaymark.text import plural as plural

ENGLISH: Final = "en"
"""The reference language: every other language must have the same keys."""

_OWN: Final = ("language", "decimal", "list_and", "minus")
_parsed: Final = cache(lambda text: [*string.Formatter().parse(text)])  # (words, name, format, conversion)
_FORMAT: Final = re.compile(r"\+?(\.\d)?[fg%]?")

Value: TypeAlias = "str | int | float | Phrase | tuple[str, ...]"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A message before translation: its key and the values to insert."""

    key: str
    values: Mapping[str, Value] = field(default_factory=dict)


def phrase(key: str, n: Value | None = None, /, **values: Value) -> Phrase:
    """Return a message with its values; ``n`` is the count that selects its singular or plural."""
    return Phrase(key, values if n is None else {"n": n, **values})


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The messages of one language."""

    language: str
    name: str
    decimal: str
    list_and: str
    minus: str
    texts: Mapping[str, str]

    @classmethod
    def of(cls, sources: Mapping[str, str], language: str) -> Catalogue:
        """Parse the files of a language and check them against English; raises `InputError` with every problem."""
        texts: dict[str, str] = {}
        problems: list[Problem] = []
        for name, source in sources.items():
            try:
                entries = dict(_flatten(tomllib.loads(source)))
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
                fields = [] if key in _OWN else _placeholders(text)
            except ValueError as exc:
                problems.append(Problem(key, f"its braces are not in order: {str(exc).lower()}"))
                continue
            asked[key] = {name for name, _, _ in fields}
            for name, spec, conversion in fields:
                if conversion or not _FORMAT.fullmatch(spec):
                    wrong = f"{name}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}"
                    problem = f"a format is digits after the point and a sign, like +.1f (got {wrong})"
                    problems.append(Problem(key, problem))
        expected: Mapping[str, str] = english().texts if language != ENGLISH else texts
        problems += [Problem(key, "is missing") for key in expected if key not in texts]
        problems += [Problem(key, "is no message") for key in sorted({*texts} - {*expected, *_OWN})]
        for key in sorted(asked.keys() & expected.keys()) if language != ENGLISH else ():
            wanted = {name for name, _, _ in _placeholders(expected[key])}
            if asked[key] != wanted:
                named, got = (", ".join(sorted(names)) or "none" for names in (wanted, asked[key]))
                problems.append(Problem(key, f"must have the values {named} (got {got})"))
        problems += [Problem(key, "is missing") for key in _OWN if key not in texts]
        if problems:
            raise InputError(f"language {language}", problems)
        name, decimal, list_and, minus = (texts.pop(key) for key in _OWN)
        return cls(language, name, decimal, list_and, minus, texts)

    def render(self, sentence: Phrase) -> str:
        """Return the text of a message."""
        return self.say(sentence.key, **sentence.values)

    def say(self, key: str, n: Value | None = None, /, **values: Value) -> str:
        """Return the text of a message given by key and values, as for `phrase`."""
        values |= {} if n is None else {"n": n}
        counted = "n" in values and f"{key}.other" in self.texts
        text = self.texts.get(f"{key}.{'one' if values['n'] == 1 else 'other'}" if counted else key)
        if text is None:
            raise UnknownNameError("message", key, tuple(self.texts))
        if "{" not in text and "}" not in text:  # most messages are words alone
            return text
        pieces = []
        for before, name, spec, _ in _parsed(text):
            pieces.append(before)
            if name is None:
                continue
            if name not in values:
                raise UnknownNameError(f"value of {key}", name, tuple(values))
            value = values[name]
            if isinstance(value, Phrase):
                pieces.append(self.render(value))
            elif isinstance(value, str):
                pieces.append(value)
            else:
                pieces.append(self.names(value) if isinstance(value, tuple) else self.number(value, spec or ""))
        return "".join(pieces)

    def join(self, sentences: Iterable[Phrase]) -> str:
        """Return the texts of several messages, joined by spaces."""
        return " ".join(self.render(sentence) for sentence in sentences)

    def number(self, value: float, spec: str = "") -> str:
        """Format a number with the signs of the language."""
        written = format(value, spec)
        if "-" in written and not written.strip("+-0.,%"):
            written = written.replace("-", "+" if spec.startswith("+") else "")
        signs = {ord("-"): self.minus, ord("."): self.decimal, ord(","): self.texts["format.thousands"]}
        return written.translate(signs)

    def names(self, names: Sequence[str]) -> str:
        """Join names into a list in the language."""
        return listing(names, last=self.list_and)


@cache
def catalogue(language: str) -> Catalogue:
    """Return the messages of a built-in language."""
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
    """Return the English messages."""
    return catalogue(ENGLISH)


@cache
def languages() -> tuple[str, ...]:
    """Return the codes of the built-in languages, English first."""
    names = {path.name.partition(".")[0] for path in files(__name__).iterdir() if path.name.endswith(".toml")}
    return (ENGLISH, *sorted(names - {ENGLISH}))


def built_in_text(
    words: Catalogue, judges: Mapping[str, bool], agents: Mapping[str, bool], subjects: Iterable[str] = (),
    made_by: str = "agents",
) -> str:  # fmt: skip
    """Return the note for a claim whose judges or agents are built in; empty if none are."""
    graded, decided = (bool(flags) and all(flags.values()) for flags in (judges, agents))
    if graded and decided:
        return words.say("stand_ins.both")
    lines = []
    if some := [clean(name, 60) for name, built_in in judges.items() if built_in]:
        lines.append(words.say("stand_ins.graded" if graded else "stand_ins.graded_part", names=words.names(some)))
    names = [clean(name, 60) for name in subjects if agents.get(name)]
    if decided:
        lines.append(words.say(f"stand_ins.{made_by}"))
    elif names:
        lines.append(words.say("stand_ins.some", len(names), names=words.names(names)))
    return " ".join(lines)


def _flatten(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str | None]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value if isinstance(value, str) else None


def _placeholders(text: str) -> list[tuple[str, str, str]]:
    """Return the placeholders of a text as (name, format, conversion)."""
    return [(name, spec or "", conversion or "") for _, name, spec, conversion in _parsed(text) if name is not None]


def measure_words(dimension: str) -> str:
    """Return the phrase for the score of a dimension."""
    return "the overall score" if dimension == AGGREGATE else dimension.replace("_", " ")


def signed(value: float) -> str:
    """Format a difference with its sign and three decimals."""
    return f"{value:+.3f}".replace("-", "−")


def ends_words(low: float | None, high: float | None) -> str:
    """Format the interval of a statistic; empty without one."""
    if low is None or high is None:
        return ""
    digits = end_digits(low, high)
    return f" ({number(low, digits)} to {number(high, digits)})"


def interval_words(low: float | None, high: float | None) -> str:
    """Format the interval of a difference, with signs; empty without one."""
    return "" if low is None or high is None else f" ({signed(low)} to {signed(high)})"
