"""A question as the text that a model is sent.

Every number of a payload is printed in full, so that the answers of T2 to T6 follow from the text. Days are told as
distances from the decision day: a date would help only a model that remembers the market.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Final

from assaymark.benchmark.questions.payloads import (
    Condition,
    Context,
    PairAllocation,
    Payload,
    PositionSize,
    Printed,
    Rebalancing,
    RegimeCall,
    ReturnDirection,
    SharpeAllocation,
    TailRisk,
)

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
