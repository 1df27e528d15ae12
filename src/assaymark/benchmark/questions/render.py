"""A question as the text that a model is sent.

Every number of a payload is printed in full, so that the answers of T2 to T6 follow from the text. Days are told as
distances from the decision day: a date would help only a model that remembers the market.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Final, Literal, get_args

import numpy as np
from pydantic import ConfigDict

# What a question is made of, and what an answer to it is: the types of the seven templates (PortBench, D.1)

Template = Literal["T1", "T2", "T3", "T4", "T5", "T6", "T7"]
TEMPLATES: tuple[Template, ...] = get_args(Template)
"""Return direction, value at risk, position size, two weights, Sharpe weights, rebalancing, regime."""

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
"""By year end: up to 2022, 2023 to 2024, from 2025 (PortBench, B.3)."""

Condition = Literal["full", "restricted"]
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
"""``restricted`` takes the covariance and the correlation out of T4 and the covariance matrix out of T5 (D.3)."""

ABLATED: tuple[Template, ...] = ("T4", "T5")
"""The templates whose restricted prompt differs from the full one."""

LEVELS: Mapping[Template, int] = {"T1": 1, "T2": 1, "T3": 1, "T4": 2, "T5": 3, "T6": 3, "T7": 4}
"""The difficulty of each template, 1 to 4."""

Regime = Literal["bull", "bear", "sideways", "crisis"]
REGIME_NAMES: tuple[Regime, ...] = get_args(Regime)
"""The labels, in the order of the table of D.1."""

Way = Literal["positive", "negative", "flat"]
Side = Literal["buy", "sell"]
Change = Literal["increase", "decrease", "hold"]


class _Strict:
    """Records of a file that take no further field."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Context(_Strict):
    """What surrounds a question: everything in it was known at the close of the decision day."""

    regime: str = ""
    macro: tuple[str, ...] = ()
    news: tuple[str, ...] = ()
    filings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReturnDirection(_Strict):
    """T1: where one instrument will be ``horizon`` trading days later, from the ``days`` days before."""

    instrument: str
    horizon: int
    days: int
    start: float
    end: float
    change: float
    volatility: float


@dataclass(frozen=True, slots=True)
class TailRisk(_Strict):
    """T2: the value at risk of one instrument at ``level``, from its trailing daily ``returns``, oldest first."""

    instrument: str
    level: float
    returns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PositionSize(_Strict):
    """T3: the largest share of one instrument whose value at risk at 99 % stays within ``drawdown``, a share."""

    instrument: str
    drawdown: float
    returns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PairAllocation(_Strict):
    """T4: two instruments, annual volatilities, means and covariance, and the return that is required at least."""

    instruments: tuple[str, str]
    volatilities: tuple[float, float]
    means: tuple[float, float]
    covariance: float
    correlation: float
    floor: float


@dataclass(frozen=True, slots=True)
class SharpeAllocation(_Strict):
    """T5: three or more instruments, annual means and covariances, and the riskless rate."""

    instruments: tuple[str, ...]
    means: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    rf: float


@dataclass(frozen=True, slots=True)
class Rebalancing(_Strict):
    """T6: weights as they are and as they should be, and how far one may be off."""

    instruments: tuple[str, ...]
    current: tuple[float, ...]
    target: tuple[float, ...]
    threshold: float


@dataclass(frozen=True, slots=True)
class ClassMove(_Strict):
    """How the equal-weight index of one class moved over the window: return and annual volatility, as shares."""

    asset_class: str
    change: float
    volatility: float


@dataclass(frozen=True, slots=True)
class RegimeCall(_Strict):
    """T7: the index of the class asked about over ``days`` days, from 100 to ``end``, and the moves of all classes."""

    asset_class: str
    days: int
    end: float
    moves: tuple[ClassMove, ...]


@dataclass(frozen=True, slots=True)
class Printed(_Strict):
    """A question of somebody else's set: its text stands as it was published."""

    instruments: tuple[str, ...]
    text: str


Payload = (
    ReturnDirection | TailRisk | PositionSize | PairAllocation | SharpeAllocation | Rebalancing | RegimeCall | Printed
)
"""What a question is made of: one kind a template, and `Printed` for those of somebody else."""


@dataclass(frozen=True, slots=True)
class Direction(_Strict):
    """The answer to T1."""

    way: Way


@dataclass(frozen=True, slots=True)
class Number(_Strict):
    """The answer to T2 (a daily return, negative where it is a loss) and to T3 (a share)."""

    value: float


@dataclass(frozen=True, slots=True)
class Weights(_Strict):
    """The answer to T4 and T5: shares by instrument."""

    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Trade(_Strict):
    """The answer to T6. ``side``, ``instrument`` and ``size`` say the trade, where one is needed or was named."""

    rebalance: bool
    side: Side | None = None
    instrument: str | None = None
    size: float | None = None


@dataclass(frozen=True, slots=True)
class RegimeView(_Strict):
    """The answer to T7: the regime, and what to do with each class; a reply may lack either, or single classes."""

    regime: Regime | None
    changes: Mapping[str, Change] = field(default_factory=dict)


Answer = Direction | Number | Weights | Trade | RegimeView
"""What a reply to a question says, once it is read."""


PROMPT_VERSION: Final = "portbench-qa-v1"
"""Name of the wording. Another wording is another name."""

ANSWER_MARK: Final = "ANSWER:"
"""What the last line of a reply begins with."""

_PER_LINE = 12
_COVARIANCE = re.compile(r"(?im)^[^\n]*(?:covariance|correlation)[^\n]*(?:\n[ \t]*\[[^\n]*)*\n?")


def prompt_text(day: date, payload: Payload, context: Context, condition: Condition = "full") -> str:
    """The prompt of one question.

    Parameters
    ----------
    day : date
        The decision day. Only a published question, whose text is not ours, states it.
    payload : Payload
    context : Context
    condition : Condition
        ``restricted`` leaves the covariance and the correlation out of T4, and the covariance matrix out of T5.

    Returns
    -------
    str
        What is known first, then the question, then the form of the answer.

    Examples
    --------
    >>> print(prompt_text(date(2025, 3, 3), TailRisk("SPY", 0.95, (-0.02, 0.01)), Context("bull")))
    Instrument: SPY
    Daily returns of the last 2 trading days, oldest first:
    -0.020000 0.010000
    Market regime: bull
    <BLANKLINE>
    Question: what is the 1-day value at risk (VaR) of SPY at 95% confidence?
    Use historical simulation: the 0.05 quantile of the returns above, linear between order statistics.
    State it as a return: a loss is a negative number, such as -0.0213.
    <BLANKLINE>
    End your reply with one line of this form, and nothing after it:
    ANSWER: <number>
    """
    if isinstance(payload, Printed):
        text = payload.text if condition == "full" else _COVARIANCE.sub("", payload.text)
        return f"Decision date: {day.isoformat()}\n{text}\n\n{_FORM}\n{ANSWER_MARK} <your answer>"
    told, asked, form = _parts(payload, condition)
    return "\n".join([*told, *_around(context), "", asked, "", _FORM, f"{ANSWER_MARK} {form}"])


@cache
def template_digest() -> str:
    """sha256 of the wording of all questions, and of the code that puts the numbers into it."""
    return hashlib.sha256((files("assaymark.benchmark.questions") / "render.py").read_bytes()).hexdigest()


_FORM = "End your reply with one line of this form, and nothing after it:"


def _parts(payload: Payload, condition: Condition) -> tuple[Iterator[str], str, str]:
    """What is told, what is asked, and the form of the answer."""
    match payload:
        case ReturnDirection():
            return _direction(payload), _ask_direction(payload), "positive, negative or flat"
        case TailRisk():
            return _returns(payload.instrument, payload.returns), _ask_risk(payload), "<number>"
        case PositionSize():
            return _returns(payload.instrument, payload.returns), _ask_size(payload), "<number>"
        case PairAllocation():
            return _pair(payload, condition), _ask_pair(payload), _weights_form(payload.instruments)
        case SharpeAllocation():
            return _sharpe(payload, condition), _ask_sharpe(), _weights_form(payload.instruments)
        case Rebalancing():
            return _holdings(payload), _ask_trade(payload), "no, or: yes; <buy or sell> <size> of <instrument>"
        case RegimeCall():
            return _moves(payload), _ask_regime(payload), _regime_form(payload)
        case Printed():
            raise AssertionError("a published text has no parts")


def _around(context: Context) -> Iterator[str]:
    """The context, as far as there is any."""
    if context.regime:
        yield f"Market regime: {context.regime}"
    for title, lines in (("Macro", context.macro), ("News", context.news), ("Filings", context.filings)):
        if lines:
            yield f"{title}:"
            yield from (f"- {line}" for line in lines)


def _direction(payload: ReturnDirection) -> Iterator[str]:
    yield f"Instrument: {payload.instrument}"
    yield (
        f"Last {payload.days} trading days: close from {payload.start:.2f} to {payload.end:.2f}, "
        f"return {payload.change:+.4f}, annual volatility {payload.volatility:.4f}"
    )


def _ask_direction(payload: ReturnDirection) -> str:
    return (
        f"Question: where will {payload.instrument} close {payload.horizon} trading days from now, against today?\n"
        "Say positive for a return above +1%, negative for one below -1%, flat for anything between."
    )


def _returns(instrument: str, returns: Sequence[float]) -> Iterator[str]:
    yield f"Instrument: {instrument}"
    yield f"Daily returns of the last {len(returns)} trading days, oldest first:"
    for at in range(0, len(returns), _PER_LINE):
        yield " ".join([f"{value:.6f}" for value in returns[at : at + _PER_LINE]])


def _ask_risk(payload: TailRisk) -> str:
    return (
        f"Question: what is the 1-day value at risk (VaR) of {payload.instrument} at {100 * payload.level:g}% "
        "confidence?\n"
        f"Use historical simulation: the {1 - payload.level:.2f} quantile of the returns above, linear between order "
        "statistics.\n"
        "State it as a return: a loss is a negative number, such as -0.0213."
    )


def _ask_size(payload: PositionSize) -> str:
    return (
        f"Question: what is the largest fraction f of the portfolio to hold in {payload.instrument}?\n"
        f"Use the fixed-fractional rule f = min(1, d / |VaR99|), where d = {_exact(payload.drawdown)} is the largest "
        "loss allowed\n"
        "and VaR99 the 0.01 quantile of the returns above, linear between order statistics."
    )


def _pair(payload: PairAllocation, condition: Condition) -> Iterator[str]:
    for name, size, mean in zip(payload.instruments, payload.volatilities, payload.means, strict=True):
        yield f"{name}: annual volatility {_exact(size)}, annual mean return {_exact(mean)}"
    if condition == "full":
        one, other = payload.instruments
        yield f"Annual covariance of {one} and {other}: {_exact(payload.covariance)}"
        yield f"Correlation of {one} and {other}: {payload.correlation:.3f}"
    yield f"Required annual return: at least {_exact(payload.floor)}"


def _ask_pair(payload: PairAllocation) -> str:
    return (
        f"Question: which weights of {' and '.join(payload.instruments)} have the least variance?\n"
        "They sum to 1, each is from 0 to 1, and their mean return is at least the required one."
    )


def _sharpe(payload: SharpeAllocation, condition: Condition) -> Iterator[str]:
    yield "Annual mean returns:"
    yield from (f"{name}: {_exact(mean)}" for name, mean in zip(payload.instruments, payload.means, strict=True))
    if condition == "full":
        yield f"Annual covariance matrix, rows and columns in the order {', '.join(payload.instruments)}:"
        yield from ("[" + ", ".join([_exact(one) for one in row]) + "]" for row in payload.covariance)
    yield f"Riskless rate: {payload.rf:.4f} a year"


def _ask_sharpe() -> str:
    return (
        "Question: which weights of these instruments have the largest Sharpe ratio?\n"
        "It is the mean return less the riskless rate, over the volatility. Weights sum to 1 and none is negative."
    )


def _holdings(payload: Rebalancing) -> Iterator[str]:
    yield "Instrument: current weight, target weight"
    rows = zip(payload.instruments, payload.current, payload.target, strict=True)
    yield from (f"{name}: {now:.4f}, {aim:.4f}" for name, now, aim in rows)


def _ask_trade(payload: Rebalancing) -> str:
    return (
        f"Question: the portfolio is rebalanced if a weight is more than {payload.threshold:g} away from its target.\n"
        "(A) Should it be rebalanced: yes or no?\n"
        "(B) If yes: which trade brings the weight that is furthest off back to its target? Give the side, the size as "
        "a share\n"
        "of the portfolio, and the instrument."
    )


def _moves(payload: RegimeCall) -> Iterator[str]:
    named = payload.asset_class.replace("_", " ")
    yield f"Index of {named} over the last {payload.days} trading days: from 100.00 to {payload.end:.2f}"
    yield "Class: return, annual volatility over these days"
    yield from (f"{one.asset_class}: {one.change:+.4f}, {one.volatility:.4f}" for one in payload.moves)


def _ask_regime(payload: RegimeCall) -> str:
    return (
        f"Question: (A) Which regime is the {payload.asset_class.replace('_', ' ')} market in: bull, bear, sideways or "
        "crisis?\n"
        "(B) What should be done with each asset class: increase, decrease or hold?"
    )


def _weights_form(names: Sequence[str]) -> str:
    return ", ".join([f"{name}=<weight>" for name in names])


def _regime_form(payload: RegimeCall) -> str:
    changes = ", ".join([f"{one.asset_class}=<change>" for one in payload.moves])
    return f"regime=<regime>; {changes}"


def _exact(value: float) -> str:
    """A number with all of its digits, without an exponent."""
    text = f"{value:.12f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


# A solver that reads a prompt and does what it says: the ceiling of the questions that state all they need

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


def _solve_returns(prompt: str) -> list[float]:
    block = re.search(r"oldest first:\n((?:[-0-9. ]+\n)+)", prompt)
    return sorted(float(one) for one in block[1].split()) if block else []


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _solve_number(pattern: str, prompt: str) -> float | None:
    found = re.search(pattern.replace("#", _VALUE), prompt)
    return float(found[1]) if found else None


def _solve_risk(prompt: str) -> str:
    confidence = _solve_number(r"at #% confidence", prompt) or 95.0
    return _reply("By historical simulation.", f"{_quantile(_solve_returns(prompt), 1 - confidence / 100):.12g}")


def _solve_size(prompt: str) -> str:
    allowed = _solve_number(r"d = #", prompt) or 0.0
    tail = abs(_quantile(_solve_returns(prompt), 0.01))
    return _reply("By the fixed-fractional rule.", f"{min(1.0, allowed / tail):.12g}")


def _weights(names: Iterable[str], values: Iterable[float]) -> str:
    return ", ".join(f"{name}={value:.12f}" for name, value in zip(names, values, strict=True))


def _solve_pair(prompt: str) -> str:
    rows = re.findall(rf"^(\S+): annual volatility {_VALUE}, annual mean return {_VALUE}$", prompt, re.MULTILINE)
    (one, s1, m1), (other, s2, m2) = ((name, float(size), float(mean)) for name, size, mean in rows)
    # Without a covariance the two are taken to be unrelated.
    both = _solve_number(r"Annual covariance of [^\n]*: #", prompt) or 0.0
    floor = _solve_number(r"Required annual return: at least #", prompt) or 0.0
    first = (s2 * s2 - both) / (s1 * s1 + s2 * s2 - 2 * both)
    first = min(max(first, 0.0), 1.0)
    if first * m1 + (1 - first) * m2 < floor:
        first = (floor - m2) / (m1 - m2)
    return _reply("By the weights of least variance that earn enough.", _weights((one, other), (first, 1 - first)))


def _solve_sharpe(prompt: str) -> str:
    block = re.search(r"Annual mean returns:\n((?:\S+: \S+\n)+)", prompt)
    rows = [line.split(": ") for line in block[1].splitlines()] if block else []
    means = np.array([float(value) for _, value in rows])
    matrix = [
        [float(one) for one in row.split(", ")] for row in re.findall(r"^\[(-?\d[^\]]*)\]$", prompt, re.MULTILINE)
    ]
    excess = means - (_solve_number(r"Riskless rate: #", prompt) or 0.0)
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


def _solve_trade(prompt: str) -> str:
    rows = re.findall(rf"^(\S+): {_VALUE}, {_VALUE}$", prompt, re.MULTILINE)
    limit = _solve_number(r"more than # away", prompt) or 0.05
    off = {name: float(now) - float(aim) for name, now, aim in rows}
    name = max(off, key=lambda one: abs(off[one]))
    if abs(off[name]) <= limit:
        return _reply("No weight is too far off.", "no")
    side = "sell" if off[name] > 0 else "buy"
    return _reply(f"{name} is furthest off.", f"yes; {side} {abs(off[name]):.4f} of {name}")


def _solve_direction(prompt: str) -> str:
    change = _solve_number(r", return \+?#", prompt) or 0.0
    way = "positive" if change > 0.01 else "negative" if change < -0.01 else "flat"
    return _reply("What has moved is taken to move on.", way)


def _solve_regime(prompt: str) -> str:
    end = _solve_number(r"from 100\.00 to #", prompt) or 100.0
    moves = {name: float(change) for name, change in re.findall(rf"^(\w+): \+?{_VALUE}, [\d.]+$", prompt, re.MULTILINE)}
    change = end / 100.0 - 1.0
    regime = "crisis" if change < -0.15 else "bear" if change < -_TREND else "bull" if change > _TREND else "sideways"
    changes = ", ".join(f"{name}={_change(value)}" for name, value in moves.items())
    return _reply("By the trend of each class.", f"regime={regime}; {changes}")


def _change(move: float) -> str:
    return "increase" if move > _TREND else "decrease" if move < -_TREND else "hold"


_SOLVERS: Mapping[str, Callable[[str], str]] = {
    "value at risk (VaR) of": _solve_risk,
    "fixed-fractional rule": _solve_size,
    "have the least variance?": _solve_pair,
    "have the largest Sharpe ratio?": _solve_sharpe,
    "the portfolio is rebalanced if": _solve_trade,
    "trading days from now, against today?": _solve_direction,
    "Which regime is": _solve_regime,
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

_WEIGHT_FORM = re.compile(r"(\S+)=<weight>")


def guess(prompt: str) -> str:
    """The reply to a prompt."""
    names = _WEIGHT_FORM.findall(prompt)
    if names:
        return "ANSWER: " + ", ".join(f"{name}={1.0 / len(names):.6f}" for name in names)
    for words, answer in GUESSES.items():
        if words in prompt:
            return f"ANSWER: {answer}"
    return "This is none of the questions that can be guessed here."
