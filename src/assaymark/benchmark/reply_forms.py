"""The forms in which a model may name a value per ticker: JSON, or one line each. Nothing here judges a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from assaymark.benchmark.stages import Stage
from assaymark.prompting.strict_json import Rejected, shown, strict_json
from assaymark.records import JSON

MOST_CHARACTERS: Final = 200_000
"""A longer reply is not read."""

TICKER: Final = "ticker"
"""The key of the ticker in a row of JSON."""

FORMS: Final[Mapping[Stage, tuple[str, str]]] = {
    "S1": ("views", "view"),
    "S2": ("signals", "signal"),
    "S3": ("weights", "weight"),
}
"""Where the JSON of a stage keeps its rows, and the key of the value in a row."""

# Every repetition below is bounded or cannot overlap its neighbour: a reply is hostile, 200,000 stars must not hang.
_FENCED = re.compile(r"```[a-zA-Z]*[^\S\n]*\n(.*?)```", re.DOTALL)
_ROW = re.compile(r"\{[^{}]*\}")
_DECORATION = " \t>|*#+•-\"'`$[(_"
_NUMBERED = re.compile(r"\d{1,3}[.)]\s")
_CLOSE = r"[\"'`*\])_]{0,6}\s{0,40}(?:[:=|\t,;]|->|=>|→)\s{0,40}[\"'`*]{0,6}"
_STRANGER = re.compile(r"([A-Z^][A-Z0-9.^=-]{0,14})" + _CLOSE + r"(?:[+\-−]?[.\d]|(?i:buy|hold|sell)\b)")
# What models write in capitals before a number and that names no asset.
_NOT_TICKERS = frozenset({"TOTAL", "SUM", "DATE", "NAV", "NOTE"})
_NOT_VALUES = frozenset({"rationale", "reasoning", "reasons", "regime", "notes", "date"})


@dataclass(slots=True)
class Found:
    """What a reply names.

    ``values`` has every value that was given for a known ticker, as JSON has it or as the text behind the separator;
    ``unknown`` the tickers that nobody asked about; ``json_reason`` says why a JSON object that is there was not read.
    """

    values: dict[str, list[JSON]] = field(default_factory=dict)
    unknown: dict[str, JSON] = field(default_factory=dict)
    json_reason: str = ""

    def add(self, ticker: str, value: JSON, known: Mapping[str, str]) -> None:
        """Keep a value under the ticker as it was asked for."""
        name = known.get(ticker.strip().upper())
        if name is None:
            self.unknown[ticker] = value
        else:
            self.values.setdefault(name, []).append(value)

    def __bool__(self) -> bool:
        return bool(self.values or self.unknown)


def find_values(
    text: str, tickers: tuple[str, ...], *, key: str, column: str, cut: bool = False, salvage: bool = False
) -> Found:
    """Every value that a reply names for a ticker.

    Parameters
    ----------
    text : str
        The reply.
    tickers : tuple of str
    key : str
        Where a JSON object keeps its rows: ``views``, ``signals`` or ``weights``.
    column : str
        The key of the value in a row.
    cut : bool
        Whether the reply ends in the middle: the row or line it was cut in is left out.
    salvage : bool
        Whether whole rows are taken out of JSON that as a whole cannot be read.

    Examples
    --------
    >>> find_values("- **SPY**: +0.3 (calm)", ("SPY",), key="views", column="view").values
    {'SPY': ['+0.3 (calm)']}
    """
    known = _by_upper(tickers)
    found = Found()
    text = spoken(text)
    for candidate in objects_in(text, key):
        try:
            raw = strict_json(candidate)
        except Rejected as exc:
            found.json_reason = str(exc)
            continue
        if _take(raw, found, known, key=key, column=column):
            found.json_reason = ""
            return found
    if salvage:
        _complete_rows(text, found, known, column)
        if found:
            return found
    if cut:
        text = text[: text.rfind("\n") + 1]
    _lines(text, tickers, found, known)
    return found


@lru_cache(maxsize=16)
def _by_upper(tickers: tuple[str, ...]) -> dict[str, str]:
    return {ticker.upper(): ticker for ticker in tickers}


def spoken(text: str) -> str:
    """A reply without what a model shows of its thinking before it.

    >>> spoken("<think>SPY: 0.9?</think>SPY: 0.1")
    'SPY: 0.1'
    """
    return text.rpartition("</think>")[2]


def objects_in(text: str, key: str) -> Iterator[str]:
    """Where the JSON of a reply may be, the surest place first; of several the last, for that is the final one."""
    if "{" not in text:
        return
    stripped = text.strip()
    if stripped.startswith("{"):
        yield stripped
    yield from reversed(_FENCED.findall(text))
    last = stripped.rfind("}")
    for first in (stripped.find("{"), stripped.rfind("{", 0, max(stripped.rfind(f'"{key}"'), 0))):
        if 0 <= first < last:
            yield stripped[first : last + 1]


def _take(raw: JSON, found: Found, known: Mapping[str, str], *, key: str, column: str) -> bool:
    """Take the rows of a JSON value; False if it is not of this form."""
    if isinstance(raw, dict) and key in raw:
        raw = raw[key]
    if isinstance(raw, dict):
        if not any(name.strip().upper() in known for name in raw):
            return False
        for name, value in raw.items():
            if name.lower() not in _NOT_VALUES:
                found.add(name, value, known)
        return True
    if not isinstance(raw, list):
        return False
    for row in raw:
        if isinstance(row, dict) and isinstance(row.get(TICKER), str) and column in row:
            found.add(row[TICKER], row[column], known)
    return bool(found)


def _complete_rows(text: str, found: Found, known: Mapping[str, str], column: str) -> None:
    """The rows of a broken or unfinished JSON object that are whole."""
    for match in _ROW.finditer(text):
        try:
            row = strict_json(match.group())
        except Rejected:
            continue
        if isinstance(row, dict) and isinstance(row.get(TICKER), str) and column in row:
            found.add(row[TICKER], row[column], known)


@lru_cache(maxsize=16)
def _patterns(tickers: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A line that names one of the tickers, and a comma before another: ``SPY: +0.4, TLT: -0.2`` is two lines."""
    # Longest first, so that a ticker is not taken for the beginning of another.
    names = "|".join(re.escape(one) for one in sorted(tickers, key=lambda one: (-len(one), one)))
    line = re.compile(f"({names}){_CLOSE}(.+)$", re.IGNORECASE)
    comma = re.compile(rf"[,;]\s{{1,4}}(?=[\"'`*]{{0,3}}(?:{names}){_CLOSE})", re.IGNORECASE)
    return line, comma


def _lines(text: str, tickers: tuple[str, ...], found: Found, known: Mapping[str, str]) -> None:
    pattern, comma = _patterns(tickers)
    for line in map(_bare, comma.sub("\n", text).splitlines()):
        if match := pattern.match(line):
            found.add(match.group(1), match.group(2).strip(), known)
        elif (match := _STRANGER.match(line)) and match.group(1) not in _NOT_TICKERS:
            found.unknown[match.group(1)] = line[match.end(1) :]


def _bare(line: str) -> str:
    """A line without bullets, numbering, table borders and emphasis before its first word."""
    line = line.lstrip(_DECORATION)
    if numbered := _NUMBERED.match(line):
        line = line[numbered.end() :].lstrip(_DECORATION)
    return line


def named(tickers: list[str]) -> str:
    """A few tickers for a reason, the rest counted.

    >>> named(["A", "B", "C", "D", "E"])
    'A, B, C and 2 more'
    """
    few = ", ".join(one if one.isascii() and one.isprintable() and len(one) < 20 else shown(one) for one in tickers[:3])
    return few + (f" and {len(tickers) - 3} more" if len(tickers) > 3 else "")


def reply_text(stage: Stage, values: Mapping[str, float | str], *, rationale: str = "") -> str:
    """A reply in the form that is asked for.

    >>> reply_text("S1", {"SPY": 0.5}, rationale="It rose.")
    '{"views": [{"ticker": "SPY", "view": 0.5}], "rationale": "It rose."}'
    """
    key, column = FORMS[stage]
    rows: list[JSON] = [{TICKER: name, column: value} for name, value in values.items()]
    return json.dumps({key: rows, "rationale": rationale})
