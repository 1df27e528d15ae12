"""Numbers in running text, with their units: what a briefing states, told apart from dates, names and horizons."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_SPAN = r"(?:year|yr|month|week|day|session|hour|minute|quarter|trading[- ]day|DMA|d|y|w)s?\b"
_INDEX = r"(?:Nasdaq|Russell|Nikkei|FTSE|CSI|STOXX|Euro Stoxx|KOSPI|ASX|CAC|DAX|Dow|IBEX|TOPIX|MSCI|Fortune)"

# What holds digits and is no value. Order matters: the longest forms first.
_MASKS = re.compile(
    "|".join(
        [
            r"https?://\S+",
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|\s?UTC)?",
            r"\b\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\.?)?|\b\d{1,2}\s?[ap]\.m\.",
            rf"\b{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:\s?[-–—/]\s?(?:{_MONTH}\s)?\d{{1,2}})?(?:,?\s(?:19|20)\d\d)?(?![\d.,]*\d|%)",
            rf"\b\d{{1,2}}\s{_MONTH}(?:\s(?:19|20)\d\d)?\b",
            r"\b(?:Q[1-4]|[1-4]Q|H[12]|FY)[ -]?'?(?:20)?\d\d\b|\bQ[1-4]\b|\bH[12]\b",
            r"\bS&P(?:\s|/ASX\s|/TSX\s|\sSmallCap\s|\sMidCap\s)?\s?\d{3,4}\b",
            rf"\b{_INDEX}(?:\sEurope)?[- ]\d{{2,4}}\b",
            rf"(?<![\d.,$])\d+(?:\.\d+)?(?:\s?(?:-|–|to)\s?\d+)?[- ]?{_SPAN}",
            r"(?<![\d.,$])\d+-(?=,| and| or| to)",
            r"\b\d{1,4}(?:st|nd|rd|th)\b",
            r"(?<![$€£¥\d.,])\b(?:19|20)\d\d(?:\s?[-–]\s?(?:19|20)?\d\d)?\b(?!%|\.\d|,\d)",
        ]
    ),
    re.I,
)
_DIGIT = re.compile(r"\d")
_PLAIN = re.compile(r"[+\-−]?\$?\d{1,3}(?:,\d{3})*(?:\.\d+)?\s?%?")

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?<![A-Za-z]-)(?P<sign>(?<![\d%)])[+\-−])?(?:(?P<currency>(?:US|NT|HK|C|A)?\$|€|£|¥)(?P<minus>[-−])?)?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d_]|[.,]\d)"
    r"(?P<scale>\s?(?:trillion|billion|million|thousand|tn|bn|mn)\b|[KMBT]\b)?"
    r"(?P<unit>\s?%|\s?per\s?cent\b|[\s-]percentage[\s-]points?\b|\s?pp\b|[\s-]?(?:basis[\s-]points?|bps?)\b|x\b|\s?points?\b)?"
    r"(?![A-Za-z])"
)

_SCALES = {
    "k": 1e3,
    "th": 1e3,
    "m": 1e6,
    "mi": 1e6,
    "mn": 1e6,
    "b": 1e9,
    "bi": 1e9,
    "bn": 1e9,
    "t": 1e12,
    "tr": 1e12,
    "tn": 1e12,
}
_CURRENCIES = {
    "$": "usd",
    "US$": "usd",
    "NT$": "twd",
    "HK$": "hkd",
    "C$": "cad",
    "A$": "aud",
    "€": "eur",
    "£": "gbp",
    "¥": "jpy",
}

# "down to 4.2%" names a level, so no "to" among the words that may stand between.
_DOWN = re.compile(
    r"\b(?:decreased|declined|fell|fall|falling|dropped|lost|slipped|contracted|shrank|down|minus|lower|decrease|decline|drop)"
    r"(?:\s(?:by|of|a|an|another|about|around|nearly|roughly|some|approximately|combined|further|more than)){0,3}\s*$",
    re.I,
)
_LOWER_AFTER = re.compile(r"\s(?:lower|decline|decrease|drop)\b", re.I)
_SAME_VERB = re.compile(r"\b(?:and|or)\s*$")
_RANGE = re.compile(r"\s?(?:to|-|–|—|and|or|/)\s?$")


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a text in base units: 768.6 billion dollars is 768.6e9 usd, 0.4% is 0.4 percent."""

    start: int
    end: int
    value: float
    unit: str


def numbers(text: str) -> tuple[Number, ...]:
    """The values a text states, in order; dates, years, horizons and index names are none.

    A number without a unit takes that of the next one across a range, and is otherwise an ``index`` when it has
    decimals and a ``count`` when it has none. Words of decrease before it (or "lower" behind it) make it negative.

    >>> [(n.value, n.unit) for n in numbers("June CPI decreased 0.4% and the S&P 500 closed at 7,475.69.")]
    [(-0.4, 'percent'), (7475.69, 'index')]
    >>> [(n.value, n.unit) for n in numbers("a range of 3.50 to 3.75%; $7.5 billion over 12 months")]
    [(3.5, 'percent'), (3.75, 'percent'), (7500000000.0, 'usd')]
    """
    if not _DIGIT.search(text):
        return ()
    # Most table cells are one plain number; searching them for dates and names is half the cost of a briefing.
    masked = text if _PLAIN.fullmatch(text) else _MASKS.sub(lambda m: " " * len(m[0]), text)
    found: list[tuple[Number, bool]] = []
    for match in _NUMBER.finditer(masked):
        number = _read(match)
        if math.isfinite(number.value):
            found.append((_signed(number, match, masked, found), _has_unit(match)))
    return tuple(_ranged(found, masked))


def _read(match: re.Match[str]) -> Number:
    """The number as printed, without its words of decrease."""
    scale = (match["scale"] or "").strip().lower()
    factor = next((_SCALES[scale[:n]] for n in (2, 1) if scale[:n] in _SCALES), 1.0)
    printed = match["digits"].replace(",", "")
    value = float(printed) * factor
    if match["minus"] or (match["sign"] or "+") != "+":
        value = -value
    return Number(match.start(), match.end(), value, _unit(match, factor, "." in printed))


def _unit(match: re.Match[str], factor: float, decimals: bool) -> str:
    word = (match["unit"] or "").strip(" -").lower()
    if word.startswith("b"):
        return "bps"
    if word.startswith(("%", "per", "pp")):
        return "percent"
    if word == "x":
        return "multiple"
    if match["currency"]:
        return _CURRENCIES[match["currency"]]
    if word.startswith("point"):
        return "index"
    return "index" if decimals and factor == 1.0 else "count"


def _has_unit(match: re.Match[str]) -> bool:
    return bool(match["unit"] or match["currency"] or match["scale"])


def _signed(number: Number, match: re.Match[str], text: str, before: list[tuple[Number, bool]]) -> Number:
    """The number, negative where the words around it say so."""
    if match["sign"] or match["minus"] or number.value == 0:
        return number
    since = before[-1][0].end if before else 0
    between = text[max(since, match.start() - 60) : match.start()]
    carried = bool(before) and before[-1][0].value < 0 and len(between) < 45 and _no_verb(between)
    if _DOWN.search(between) or _LOWER_AFTER.match(text, match.end()) or carried:
        return replace(number, value=-number.value)
    return number


def _no_verb(between: str) -> bool:
    """Whether a decrease said of one number still holds for the next: "down 1.0% for the session and 1.6% ..."."""
    return bool(_SAME_VERB.search(between)) and not re.search(r"\b(?:was|were|to|from|at|versus|up)\b|[.;]", between)


def _ranged(found: list[tuple[Number, bool]], text: str) -> list[Number]:
    """The numbers, each without a unit taking the one of its right neighbour across a range."""
    out = [number for number, _ in found]
    for i in range(len(found) - 2, -1, -1):
        here, there = out[i], out[i + 1]
        if not found[i][1] and found[i + 1][1] and _RANGE.fullmatch(text[here.end : there.start]):
            out[i] = replace(here, unit=there.unit)
    return out
