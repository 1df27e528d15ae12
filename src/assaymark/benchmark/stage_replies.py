"""Replies to S1, S2 and S3: strict on meaning, lenient on form, and every failure a recorded state.

A model may answer with the JSON that is asked for, or with lines ``TICKER: value``, in a table, a list or a fence. A
value is taken only where it says one thing. What is not usable is scored by PortBench's rule and never guessed at: a
view of 0, the signal hold, and for the weights (one book, not one value per asset) nothing at all, so that what is
held is held on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from assaymark.benchmark.reply_forms import MOST_CHARACTERS, Found, find_values, named, objects_in, spoken
from assaymark.benchmark.stages import SIGNALS, Signal, StageState
from assaymark.engine.calls import Reply
from assaymark.portfolio.solution import Floats
from assaymark.prompting.strict_json import Rejected, shown, strict_json
from assaymark.records import JSON

ROUNDING: Final = 0.02
"""A book whose weights sum to within this of 1 is meant to sum to 1: eighty weights of two decimals round so far."""

MOST_OFF: Final = 0.5
"""A book whose sum is further from 1 than this is no book that can be brought to 1."""

_KEPT = 32  # replies that are read once: the same one comes to every profile, and to both conventions
_TINY = 1e-9
_LARGEST = 1e6
_REFUSAL = re.compile(
    r"^\W*(?:i[’']?m sorry|i am sorry|sorry|i can[’']?t|i cannot|i can not|as an ai|i won[’']?t"
    r"|i(?:[’']?m| am) (?:not able|unable)|i (?:must|have to) (?:decline|refuse))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"([+\-−–]?(?:\d{1,15}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?)\s*(%?)[\"'`*]*(.*)", re.DOTALL
)
_WORD = re.compile(r"(buy|hold|sell)[\"'`*]*(.*)", re.IGNORECASE | re.DOTALL)
# What may stand behind a value: nothing, the end of a cell, or a remark. "0.3 to 0.5" and "buy or hold" say two things.
_REMARK = re.compile(r"\s*(?:$|[|;(\[#]|[,.]\s*$|[}\]]|//|[-–—]\s+[A-Za-z])", re.DOTALL)
_TO_MINUS = str.maketrans("−–", "--")


class _Unreadable(ValueError):
    """A value that says nothing usable; the message becomes part of the reason."""


@dataclass(frozen=True, slots=True)
class _Percent:
    """A number that was written with a percent sign."""

    value: float


def parse_views(reply: Reply, tickers: tuple[str, ...]) -> tuple[Floats, StageState]:
    """S1: views in [-1, 1], 0 where nothing usable was said.

    Returns
    -------
    float array of shape (n_assets,), StageState

    Examples
    --------
    >>> views, state = parse_views(Reply(text="SPY: +0.4\\nTLT: -0.2", model="m"), ("SPY", "TLT"))
    >>> views.tolist(), state.state
    ([0.4, -0.2], 'ok')
    """
    read, state = _read(reply, tickers, _view, key="views", column="view", neutral="0")
    return np.array([read.get(ticker, 0.0) for ticker in tickers], dtype=float), state


def parse_signals(reply: Reply, tickers: tuple[str, ...]) -> tuple[tuple[Signal, ...] | None, StageState]:
    """S2: a signal for each asset, hold where nothing usable was said of it; None where none was said of any.

    >>> parse_signals(Reply(text="SPY: buy or hold\\nTLT: Sell", model="m"), ("SPY", "TLT"))[0]
    ('hold', 'sell')
    """
    read, state = _read(reply, tickers, _signal, key="signals", column="signal", neutral="hold")
    return tuple(read.get(ticker, "hold") for ticker in tickers) if read else None, state


def parse_weights(reply: Reply, tickers: tuple[str, ...]) -> tuple[Floats | None, StageState]:
    """S3: a book at least 0 that sums to 1, or None, which holds what is held.

    An asset that is left out has weight 0. Weights in percent are read as such, when they carry the sign or when they
    sum to 100. A sum up to `ROUNDING` from 1 is rounding; up to `MOST_OFF` it is brought to 1 and recorded as partial.
    Anything else makes the whole reply unusable: a negative weight, one above 1, one that is no number, two for one
    asset, a reply that was cut.

    Returns
    -------
    float array of shape (n_assets,) or None, StageState

    Examples
    --------
    >>> parse_weights(Reply(text="SPY: 60%\\nTLT: 40%", model="m"), ("SPY", "TLT"))[0].tolist()
    [0.6, 0.4]
    >>> parse_weights(Reply(text="SPY: 1.4\\nTLT: -0.4", model="m"), ("SPY", "TLT"))
    (None, StageState(state='invalid', reason='a weight below 0: TLT (-0.4)'))
    """
    return _weights(reply, tickers)


@lru_cache(maxsize=_KEPT)
def _weights(reply: Reply, tickers: tuple[str, ...]) -> tuple[Floats | None, StageState]:
    """The book of S3, which nobody may write to."""
    failed = _unusable(reply)
    if failed is not None:
        return None, failed
    if reply.finish == "length":
        return None, StageState("truncated", "the reply was cut, and half a book is none")
    found = find_values(reply.text, tickers, key="weights", column="weight")
    if not found:
        return None, _nothing(reply.text, found)
    try:
        weights, reasons = _book(found, tickers)
    except _Unreadable as exc:
        return None, StageState("invalid", str(exc))
    weights.setflags(write=False)
    return weights, StageState("partial" if reasons else "ok", "; ".join(reasons))


def rationale_of(text: str) -> str:
    """What a reply says beside its values: the key ``rationale`` of its JSON; empty where there is none.

    >>> rationale_of('{"weights": [], "rationale": "Bonds hedge."}')
    'Bonds hedge.'
    """
    for candidate in objects_in(spoken(text), "weights") if len(text) <= MOST_CHARACTERS else ():
        try:
            raw = strict_json(candidate)
        except Rejected:
            continue
        said = raw.get("rationale") if isinstance(raw, dict) else None
        if isinstance(said, str):
            return said.strip()
    return ""


def _unusable(reply: Reply) -> StageState | None:
    """Why a reply is not even read."""
    if reply.finish == "refusal":
        return StageState("refused", "the provider reports a refusal")
    if reply.finish == "failed":
        return StageState("invalid", f"no answer: {shown(reply.text)}")
    if len(reply.text) > MOST_CHARACTERS:
        return StageState("invalid", f"longer than {MOST_CHARACTERS} characters (got {len(reply.text)})")
    return None


def _nothing(text: str, found: Found) -> StageState:
    """The state of a reply that names no value."""
    if not text.strip():
        return StageState("invalid", "an empty reply")
    if _REFUSAL.match(text):
        return StageState("refused", f"says that it will not answer: {shown(text.strip()[:50])}")
    reason = "neither the JSON that was asked for nor a line 'TICKER: value'"
    return StageState("invalid", f"{reason} ({found.json_reason})" if found.json_reason else reason)


@lru_cache(maxsize=_KEPT)
def _read(
    reply: Reply, tickers: tuple[str, ...], value_of: Callable[[JSON], Any], *, key: str, column: str, neutral: str
) -> tuple[Mapping[str, Any], StageState]:
    """The usable values of S1 or S2 by ticker, and the state."""
    failed = _unusable(reply)
    if failed is not None:
        return {}, failed
    cut = reply.finish == "length"
    found = find_values(reply.text, tickers, key=key, column=column, cut=cut, salvage=True)
    if not found:
        return {}, StageState("truncated", "cut before the first value") if cut else _nothing(reply.text, found)
    read: dict[str, Any] = {}
    unreadable: list[str] = []
    for ticker, values in found.values.items():
        try:
            read[ticker] = _one(values, value_of)
        except _Unreadable as exc:
            unreadable.append(f"{ticker} ({exc})")
    reasons = _left_out(found, tickers, unreadable, neutral)
    if not read:
        return {}, StageState("invalid", "; ".join(["no usable value", *reasons]))
    if cut:
        return read, StageState("truncated", "; ".join(["the reply was cut", *reasons]))
    return read, StageState("partial" if reasons else "ok", "; ".join(reasons))


def _left_out(found: Found, tickers: tuple[str, ...], unreadable: list[str], neutral: str) -> list[str]:
    """What is said of assets without a usable value, and of assets that nobody asked about."""
    missing = [ticker for ticker in tickers if ticker not in found.values]
    reasons = [f"JSON that cannot be read as a whole: {found.json_reason}"] if found.json_reason else []
    if missing:
        reasons.append(f"{len(missing)} of {len(tickers)} assets are missing, read as {neutral}: {named(missing)}")
    if unreadable:
        more = f" and {len(unreadable) - 2} more" if len(unreadable) > 2 else ""
        reasons.append(f"not usable, read as {neutral}: {', '.join(unreadable[:2])}{more}")
    if found.unknown:
        reasons.append(f"not asked about, left out: {named(sorted(found.unknown))}")
    return reasons


def _one(values: list[JSON], value_of: Callable[[JSON], Any]) -> Any:
    """The one thing that all usable values of a ticker say."""
    read, reason = [], ""
    for value in values:
        try:
            read.append(value_of(value))
        except _Unreadable as exc:
            reason = str(exc)
    if not read:
        raise _Unreadable(reason)
    if any(one != read[0] for one in read):
        raise _Unreadable(f"given {len(read)} times, not alike")
    return read[0]


def _number(value: JSON) -> float | _Percent:
    """A number as JSON has it, or as a text begins with it and then says nothing more."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _Unreadable(f"{shown(value)} is no number")
    if isinstance(value, str):
        match = _NUMBER.match(value)
        if not match or not _REMARK.match(match.group(3)):
            raise _Unreadable(f"{shown(value)} is no number")
        number = _sane(float(match.group(1).translate(_TO_MINUS)), value)
        return _Percent(number) if match.group(2) else number
    return _sane(float(value), value)


def _sane(number: float, value: JSON) -> float:
    """A number that can be summed."""
    if not abs(number) <= _LARGEST:
        raise _Unreadable(f"{shown(value)} is out of all range")
    return number


def _view(value: JSON) -> float:
    number = _number(value)
    if isinstance(number, _Percent):
        raise _Unreadable(f"{shown(value)} is a percentage")
    if not abs(number) <= 1 + _TINY:
        raise _Unreadable(f"{number:g} is outside -1 to 1")
    return min(max(number, -1.0), 1.0)


def _signal(value: JSON) -> Signal:
    match = _WORD.match(value.strip()) if isinstance(value, str) else None
    if match and _REMARK.match(match.group(2)):
        word = match.group(1).lower()
        return next(signal for signal in SIGNALS if signal == word)
    raise _Unreadable(f"{shown(value)} is none of {', '.join(SIGNALS)}")


def _book(found: Found, tickers: tuple[str, ...]) -> tuple[Floats, list[str]]:
    """The weights of a reply, and what had to be done to them."""
    signed: dict[str, float | _Percent] = {}
    for ticker, values in found.values.items():
        try:
            signed[ticker] = _one(values, _number)
        except _Unreadable as exc:
            raise _Unreadable(f"the weight of {ticker} is not usable: {exc}") from None
    book = {ticker: _share(number) for ticker, number in signed.items()}
    if below := [ticker for ticker, weight in book.items() if weight < -_TINY]:
        raise _Unreadable(f"a weight below 0: {below[0]} ({book[below[0]]:g})")
    reasons = [f"not asked about, left out: {named(sorted(found.unknown))}"] if found.unknown else []
    total = math.fsum(book.values())
    if abs(total - 100) <= 100 * ROUNDING and not any(isinstance(number, _Percent) for number in signed.values()):
        book, total = {ticker: weight / 100 for ticker, weight in book.items()}, total / 100
    if above := [ticker for ticker, weight in book.items() if weight > 1 + _TINY]:
        raise _Unreadable(f"a weight above 1: {above[0]} ({book[above[0]]:g})")
    if not abs(total - 1) <= MOST_OFF:
        raise _Unreadable(f"weights must sum to 1 (got {total:.4g})")
    if abs(total - 1) > ROUNDING:
        reasons.append(f"weights sum to {total:.4g}, brought to 1")
    weights = np.array([max(book.get(ticker, 0.0), 0.0) for ticker in tickers])
    return weights / weights.sum(), reasons


def _share(number: float | _Percent) -> float:
    return number.value / 100 if isinstance(number, _Percent) else number
