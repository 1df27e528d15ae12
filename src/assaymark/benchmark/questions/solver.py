"""A solver that reads a prompt and does what it says: the ceiling of the questions that state all they need."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

_VALUE = r"(-?\d+(?:\.\d+)?)"
_TREND = 0.05  # a move over the window that is taken for a trend


def solve(prompt: str) -> str:
    """The reply to a prompt."""
    for words, solver in _SOLVERS.items():
        if words in prompt:
            return solver(prompt)
    return "This is none of the questions that can be solved here."


def _reply(how: str, answer: str) -> str:
    return f"{how}\nANSWER: {answer}"


def _returns(prompt: str) -> list[float]:
    block = re.search(r"oldest first:\n((?:[-0-9. ]+\n)+)", prompt)
    return sorted(float(one) for one in block[1].split()) if block else []


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _number(pattern: str, prompt: str) -> float | None:
    found = re.search(pattern.replace("#", _VALUE), prompt)
    return float(found[1]) if found else None


def _risk(prompt: str) -> str:
    confidence = _number(r"at #% confidence", prompt) or 95.0
    return _reply("By historical simulation.", f"{_quantile(_returns(prompt), 1 - confidence / 100):.12g}")


def _size(prompt: str) -> str:
    allowed = _number(r"d = #", prompt) or 0.0
    tail = abs(_quantile(_returns(prompt), 0.01))
    return _reply("By the fixed-fractional rule.", f"{min(1.0, allowed / tail):.12g}")


def _weights(names: Iterable[str], values: Iterable[float]) -> str:
    return ", ".join(f"{name}={value:.12f}" for name, value in zip(names, values, strict=True))


def _pair(prompt: str) -> str:
    rows = re.findall(rf"^(\S+): annual volatility {_VALUE}, annual mean return {_VALUE}$", prompt, re.MULTILINE)
    (one, s1, m1), (other, s2, m2) = ((name, float(size), float(mean)) for name, size, mean in rows)
    # Without a covariance the two are taken to be unrelated.
    both = _number(r"Annual covariance of [^\n]*: #", prompt) or 0.0
    floor = _number(r"Required annual return: at least #", prompt) or 0.0
    first = (s2 * s2 - both) / (s1 * s1 + s2 * s2 - 2 * both)
    first = min(max(first, 0.0), 1.0)
    if first * m1 + (1 - first) * m2 < floor:
        first = (floor - m2) / (m1 - m2)
    return _reply("By the weights of least variance that earn enough.", _weights((one, other), (first, 1 - first)))


def _sharpe(prompt: str) -> str:
    block = re.search(r"Annual mean returns:\n((?:\S+: \S+\n)+)", prompt)
    rows = [line.split(": ") for line in block[1].splitlines()] if block else []
    means = np.array([float(value) for _, value in rows])
    matrix = [
        [float(one) for one in row.split(", ")] for row in re.findall(r"^\[(-?\d[^\]]*)\]$", prompt, re.MULTILINE)
    ]
    excess = means - (_number(r"Riskless rate: #", prompt) or 0.0)
    # Without a covariance matrix the instruments are taken to be alike and unrelated.
    weights = _tangency(excess, np.array(matrix) if matrix else np.eye(len(rows)))
    return _reply("By every set of instruments in turn.", _weights((name for name, _ in rows), weights))


def _tangency(excess: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Every support is tried: on the best one the ratio needs no bound."""
    best, found = -math.inf, np.full(excess.size, 1.0 / excess.size)
    for count in range(1, excess.size + 1):
        for chosen in combinations(range(excess.size), count):
            at = list(chosen)
            try:
                raw = np.linalg.solve(covariance[np.ix_(at, at)], excess[at])
            except np.linalg.LinAlgError:
                continue
            if not (raw.sum() > 0 and (raw >= 0).all()):
                continue
            weights = np.zeros(excess.size)
            weights[at] = raw / raw.sum()
            ratio = float(weights @ excess) / math.sqrt(float(weights @ covariance @ weights))
            if ratio > best:
                best, found = ratio, weights
    return found


def _trade(prompt: str) -> str:
    rows = re.findall(rf"^(\S+): {_VALUE}, {_VALUE}$", prompt, re.MULTILINE)
    limit = _number(r"more than # away", prompt) or 0.05
    off = {name: float(now) - float(aim) for name, now, aim in rows}
    name = max(off, key=lambda one: abs(off[one]))
    if abs(off[name]) <= limit:
        return _reply("No weight is too far off.", "no")
    side = "sell" if off[name] > 0 else "buy"
    return _reply(f"{name} is furthest off.", f"yes; {side} {abs(off[name]):.4f} of {name}")


def _direction(prompt: str) -> str:
    change = _number(r", return \+?#", prompt) or 0.0
    way = "positive" if change > 0.01 else "negative" if change < -0.01 else "flat"
    return _reply("What has moved is taken to move on.", way)


def _regime(prompt: str) -> str:
    end = _number(r"from 100\.00 to #", prompt) or 100.0
    moves = {name: float(change) for name, change in re.findall(rf"^(\w+): \+?{_VALUE}, [\d.]+$", prompt, re.MULTILINE)}
    change = end / 100.0 - 1.0
    regime = "crisis" if change < -0.15 else "bear" if change < -_TREND else "bull" if change > _TREND else "sideways"
    changes = ", ".join(f"{name}={_change(value)}" for name, value in moves.items())
    return _reply("By the trend of each class.", f"regime={regime}; {changes}")


def _change(move: float) -> str:
    return "increase" if move > _TREND else "decrease" if move < -_TREND else "hold"


_SOLVERS: Mapping[str, Callable[[str], str]] = {
    "value at risk (VaR) of": _risk,
    "fixed-fractional rule": _size,
    "have the least variance?": _pair,
    "have the largest Sharpe ratio?": _sharpe,
    "the portfolio is rebalanced if": _trade,
    "trading days from now, against today?": _direction,
    "Which regime is": _regime,
}


GUESSES: Final[Mapping[str, str]] = {
    "value at risk (VaR) of": "-0.012",
    "fixed-fractional rule": "0.5",
    "the portfolio is rebalanced if": "no",
    "trading days from now, against today?": "positive",
    "Which regime is": "regime=sideways; equity=hold, bond=hold, commodity=hold, real_estate=hold, crypto=decrease, "
    "cash=increase",
}
"""What is said to each kind of question; weights are equal."""

_FORM = re.compile(r"(\S+)=<weight>")


def guess(prompt: str) -> str:
    """The reply to a prompt."""
    names = _FORM.findall(prompt)
    if names:
        return "ANSWER: " + ", ".join(f"{name}={1.0 / len(names):.6f}" for name in names)
    for words, answer in GUESSES.items():
        if words in prompt:
            return f"ANSWER: {answer}"
    return "This is none of the questions that can be guessed here."
