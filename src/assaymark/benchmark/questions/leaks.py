"""That no answer can be read from its own prompt: numbers of an answer that a prompt happens to state."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

import numpy as np

from assaymark.benchmark.questions.payloads import (
    Answer,
    Context,
    Number,
    PairAllocation,
    Payload,
    PositionSize,
    Rebalancing,
    SharpeAllocation,
    TailRisk,
    Trade,
    Weights,
)

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?: ?%)?")
_PLACES = 10_000
_FOUR, _SIX = 5e-5, 5e-7  # two numbers are one where they agree to four decimals; single returns to six


def payload_states(payload: Payload, answer: Answer) -> bool:
    """Whether a number of the payload is one of the answer."""
    told = _numbers(answer)
    match payload:
        case TailRisk(returns=returns):
            return _near(np.array(returns), told, _SIX)
        case PositionSize(drawdown=drawdown, returns=returns):
            return _near(np.array((drawdown, *returns)), told, _FOUR)
        case PairAllocation():
            pair = (*payload.volatilities, *payload.means, payload.covariance, payload.correlation, payload.floor)
            return _near(np.array(pair), told, _FOUR)
        case SharpeAllocation():
            given = (*payload.means, *(one for row in payload.covariance for one in row), payload.rf)
            return _near(np.array(given), told, _FOUR)
        case Rebalancing():
            return _near(np.array((*payload.current, *payload.target, payload.threshold)), told, _FOUR)
        case _:
            return False


def without_answer(context: Context, answer: Answer) -> Context:
    """The context less the lines that happen to state a number of the answer, as a share or in percent."""
    places = (_numbers(answer) * _PLACES).round().astype(int).tolist()
    if not places:
        return context
    # The neighbours too, because two numbers that are nearly one may be rounded apart.
    told = frozenset(place + step for place in places for step in (-1, 0, 1))
    macro, news, filings = (_kept(lines, told) for lines in (context.macro, context.news, context.filings))
    return replace(context, macro=macro, news=news, filings=filings)


def _kept(lines: tuple[str, ...], told: frozenset[int]) -> tuple[str, ...]:
    return tuple([line for line in lines if told.isdisjoint(_said(line))])


@lru_cache(maxsize=4096)  # the same lines surround many questions
def _said(line: str) -> frozenset[int]:
    """The numbers of a line that could be of an answer, percentages as shares, in units of the fourth decimal."""
    found = [float(one.rstrip(" %")) / (100.0 if one.endswith("%") else 1.0) for one in _NUMBER.findall(line)]
    return frozenset([round(one * _PLACES) for one in found if one < 2.0])


def _numbers(answer: Answer) -> np.ndarray:
    """The numbers of an answer; 0 and 1 tell nothing, because prompts speak of both."""
    match answer:
        case Number():
            found = [answer.value]
        case Weights():
            found = list(answer.weights.values())
        case Trade(size=size) if size is not None:
            found = [size]
        case _:
            found = []
    return np.array([abs(one) for one in found if min(abs(one), abs(1.0 - abs(one))) > _FOUR])


def _near(given: np.ndarray, told: np.ndarray, tolerance: float) -> bool:
    """Whether a given number is one of the answer's, whatever its sign."""
    if not given.size or not told.size:
        return False
    return bool((np.abs(np.abs(given)[:, None] - told) < tolerance).any())
