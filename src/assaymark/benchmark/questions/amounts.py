"""Numbers and weights in a reply: a percentage is a share, and a confidence level is not an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.benchmark.questions.payloads import Answer, Number, Weights

_NUMBER = r"[-+]?(?:\d{1,15}(?:,\d{3})*(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?"
_SAID = re.compile(rf"(?<![\w.])({_NUMBER})\s?(%|percent\b|bps\b|basis points\b)?", re.IGNORECASE)
# Numbers that name something else: 95% confidence, VaR99, the 5th percentile, 1-day, 252 returns.
_DIGITS = r"(?<![\d.])[\d.]{1,8}(?![\d.])"
_NAMES_ELSE = re.compile(
    r"\bat(?: the| a)?\s+(?:9\d(?:\.\d{1,2})?\s?%|0?\.9\d{0,2}\b)"
    rf"|{_DIGITS}\s?%?[- ]{{1,3}}(?:confidence|quantile|var\b|value[- ]at[- ]risk|percentile)"
    rf"|(?:confidence|quantile|level|percentile)\s?(?:of|=|:)?\s?{_DIGITS}\s?%?"
    rf"|\bc?var\s?[_({{\[]{{0,3}}\s?{_DIGITS}\s?%?\s?[)}}\]]{{0,3}}"
    r"|\b\d{1,4}(?:st|nd|rd|th)\b|\b\d{1,4}[- ](?:day|days|trading|returns|observations)\b",
    re.IGNORECASE,
)
_LEADS = re.compile(r"=|:|\bis\b|\bbe\b|\bequals\b")
_LOSS = re.compile(r"\bloss(?:es)?\s+(?:of\s+)?(?:about\s+)?$", re.IGNORECASE)
_LIKE = 0.02  # two numbers that are this close, relatively, are one number written twice
_OTHER = re.compile(rf"(?<![\w.-])([A-Z][A-Z0-9.-]{{1,11}})\s*[=:]\s*({_NUMBER})")
_ROUNDING, _NEARLY = 0.011, 0.1  # how far a sum of weights may be off: as rounding, and to be read in part


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer or None, with what is amiss."""

    answer: Answer | None
    reason: str = ""


def number_said(said: str, marked: bool) -> Reading:
    """The one number that a reply gives.

    >>> number_said("VaR at 95% is -0.0200", True).answer
    Number(value=-0.02)
    >>> number_said("-0.0134, that is -1.34%", True).answer
    Number(value=-0.0134)
    """
    lines = [line for line in said.splitlines() if line.strip()]
    for line in lines[:1] if marked else reversed(lines):
        line = _NAMES_ELSE.sub(" ", line)
        values = values_in(line)
        if not values:
            continue
        first = values[0][1]
        if all(abs(value - first) <= _LIKE * abs(first) for _, value in values):
            return Reading(Number(first))
        leads = [match.end() for match in _LEADS.finditer(line)]
        after = [value for at, value in values if leads and at >= leads[-1]]
        if after and all(abs(value - after[0]) <= _LIKE * abs(after[0]) for value in after):
            return Reading(Number(after[0]))
        return Reading(None, f"several numbers: {', '.join(f'{value:g}' for _, value in values[:4])}")
    return Reading(None, "no number")


def weights_said(said: str, marked: bool, names: Sequence[str]) -> Reading:
    """The weights that a reply gives to instruments.

    Percentages are shares; a sum that misses 1 by rounding is scaled to 1. An instrument that is not named has weight
    0, and the reading is then partial.

    >>> weights_said("w_A=0.25, w_B=0.75", True, ("A", "B")).answer
    Weights(weights={'A': 0.25, 'B': 0.75})
    >>> weights_said("A: 130%, B: -30%", True, ("A", "B")).reason
    'a weight is below 0 (-0.3)'
    """
    found: dict[str, float] = {}
    for name in names:
        values = _of(said, name)
        if marked and len(values) > 1 and max(values) - min(values) > _LIKE:
            return Reading(None, f"several weights for {name}")
        if values:
            found[name] = values[-1]
    if not found:
        found = _in_order(said, names)
    if not found:
        return Reading(None, "no weights")
    missing = [name for name in names if name not in found]
    others = {name: float(value) for name, value in _OTHER.findall(said) if _strange(name, names)} if marked else {}
    found = {name: found.get(name, 0.0) for name in names} | others
    reasons = [f"no weight for {', '.join(missing)}"] * bool(missing)
    reasons += [f"weights for instruments that were not asked for: {', '.join(sorted(others)[:5])}"] * bool(others)
    return _checked(found, reasons)


def _checked(found: dict[str, float], reasons: list[str]) -> Reading:
    """Weights that can be held, or why they cannot."""
    total = math.fsum(found.values())
    if abs(total - 100.0) <= 100 * _ROUNDING and max(found.values()) > 1.5:
        found, total = {name: value / 100.0 for name, value in found.items()}, total / 100.0
    lowest = min(found.values())
    if lowest < -1e-9:
        return Reading(None, f"a weight is below 0 ({lowest:g})")
    if abs(total - 1.0) > _NEARLY:
        return Reading(None, f"the weights sum to {total:g}")
    if abs(total - 1.0) > _ROUNDING:
        reasons = [*reasons, f"the weights sum to {total:g}; they were scaled to 1"]
    return Reading(Weights({name: max(value, 0.0) / total for name, value in found.items()}), "; ".join(reasons))


def _of(said: str, name: str) -> list[float]:
    """The numbers that stand beside a name, in order."""
    escaped = re.escape(name)
    beside = rf"(?<![A-Za-z0-9-])(?:w_?\{{?)?{escaped}\}}?['\"]?(?![A-Za-z0-9-])(?:\s|[)=:]|is|at|to){{0,12}}"
    found = re.findall(rf"{beside}({_NUMBER})\s?(%?)", said)
    if not found:
        found = re.findall(rf"({_NUMBER})\s?(%?)\s*(?:in|of|to|for)\s+{escaped}(?![A-Za-z0-9-])", said)
    return [_value(number, unit) for number, unit in found]


def _in_order(said: str, names: Sequence[str]) -> dict[str, float]:
    """A bare list of as many numbers as there are instruments."""
    if re.search(r"[A-Za-z]{2}", said):
        return {}
    values = [value for _, value in values_in(said)]
    return dict(zip(names, values, strict=True)) if len(values) == len(names) else {}


def _strange(name: str, names: Sequence[str]) -> bool:
    return name.removeprefix("W_") not in names and name not in names


def values_in(line: str) -> list[tuple[int, float]]:
    """Numbers of a line with their places; one that is called a loss is negative."""
    found = []
    for match in _SAID.finditer(line):
        value = _value(match[1], match[2] or "")
        if value > 0 and _LOSS.search(line[: match.start()][-40:]):
            value = -value
        if math.isfinite(value):
            found.append((match.start(), value))
    return found


def _value(number: str, unit: str) -> float:
    """A number in its unit."""
    scale = {"": 1.0, "%": 100.0, "percent": 100.0}.get(unit.lower(), 10_000.0)
    return float(number.replace(",", "")) / scale
