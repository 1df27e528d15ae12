"""What a reply to a question is worth, in [0, 1] (PortBench, Appendix D; rules where it is silent are ours)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from assaymark.benchmark.questions.parse import State, read_answer
from assaymark.benchmark.questions.payloads import (
    Answer,
    Direction,
    Number,
    RegimeView,
    Trade,
    Weights,
)
from assaymark.benchmark.questions.question import Question
from assaymark.benchmark.stages import Convention

_SMALLEST = 1e-6  # of a truth that a relative error is taken of, as in eq. 14


@dataclass(frozen=True, slots=True)
class QAScore:
    """The score of one reply.

    Attributes
    ----------
    score : float
        In [0, 1]; 0 for a reply that could not be read.
    state : State
        Whether the reply could be read: ``ok``, ``partial`` (some of it), ``invalid``, ``refused``, ``truncated``.
    parts : mapping of name to float
        What the score is made of, each in [0, 1].
    reason : str
        Why a state is not ``ok``.
    """

    score: float
    state: State
    parts: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


def score_answer(
    question: Question, reply_text: str, *, finish: str = "stop", convention: Convention = "paper"
) -> QAScore:
    """Read a reply to a question and score it.

    T1: 1 for the right word. T2, T3: ``max(0, 1 - relative error)``. T4, T5: ``1 - L1/2``. T6: PortBench's formula,
    Part B counted only where Part A is right. T7: half for the regime, half for the share of right class changes.

    Parameters
    ----------
    question : Question
    reply_text : str
        As the model wrote it; read by `assaymark.benchmark.questions.parse.read_answer`.
    finish : str
        How the reply ended (`assaymark.engine.Reply.finish`): one that was cut off or refused may still answer.
    convention : Convention
        ``reference`` scores T4 and T5 by the cosine, as the authors' code does: weights of .5 and .5 against .476 and
        .524 then score .9988.

    Examples
    --------
    >>> from datetime import date
    >>> from assaymark.benchmark.questions.payloads import Context, TailRisk
    >>> risk = TailRisk("SPY", 0.95, (-0.02, 0.01, 0.03))
    >>> one = Question("T2-1", "T2", "test", "bull", date(2025, 3, 3), risk, Context("bull"), Number(-0.02))
    >>> score_answer(one, "VaR at 95% is -0.0210").score
    0.95
    """
    read = read_answer(question, reply_text, finish=finish)
    if read.answer is None:
        return QAScore(0.0, read.state, {}, read.reason)
    parts = _parts(read.answer, question.answer, convention)
    return QAScore(parts["score"], read.state, {k: v for k, v in parts.items() if k != "score"}, read.reason)


def _parts(said: Answer, truth: Answer, convention: Convention) -> dict[str, float]:
    """``score`` and what it is made of. Both answers are of one kind, because the truth says how a reply is read."""
    match said, truth:
        case Direction(), Direction():
            return {"score": float(said.way == truth.way)}
        case Number(), Number():
            return {"score": max(0.0, 1.0 - abs(said.value - truth.value) / max(abs(truth.value), _SMALLEST))}
        case Weights(), Weights():
            return {"score": _cosine(said, truth) if convention == "reference" else _overlap(said, truth)}
        case Trade(), Trade():
            return _trade(said, truth)
        case RegimeView(), RegimeView():
            return _regime(said, truth)
        case _:
            raise AssertionError("a reply is read as the kind of its truth")


def _overlap(said: Weights, truth: Weights) -> float:
    """1 - L1/2 over all instruments that either names."""
    names = {**truth.weights, **said.weights}
    # fsum: the last bit depends neither on the order of a reply's lines nor, with a set, on Python's hash seed.
    distance = math.fsum(abs(said.weights.get(name, 0.0) - truth.weights.get(name, 0.0)) for name in names)
    return min(1.0, max(0.0, 1.0 - distance / 2.0))


def _cosine(said: Weights, truth: Weights) -> float:
    """The cosine of the angle between the two, 0 if one is empty."""
    product = sum(value * truth.weights.get(name, 0.0) for name, value in said.weights.items())
    sizes = [math.hypot(*one.weights.values()) for one in (said, truth)]
    return min(1.0, max(0.0, product / (sizes[0] * sizes[1]))) if min(sizes) > 0 else 0.0


def _trade(said: Trade, truth: Trade) -> dict[str, float]:
    """T6: the decision; then, only where it is right and one is due, side and instrument of the trade."""
    right = float(said.rebalance == truth.rebalance)
    # A published set may say yes without saying which trade.
    if not truth.rebalance or truth.side is None:
        return {"score": right, "decision": right}
    side = right * float(said.side == truth.side)
    instrument = right * float(said.instrument == truth.instrument)
    score = 0.4 * right + 0.6 * (0.5 * side + 0.5 * instrument)
    return {"score": score, "decision": right, "side": side, "instrument": instrument}


def _regime(said: RegimeView, truth: RegimeView) -> dict[str, float]:
    """T7: half for the regime, half for the classes."""
    regime = float(said.regime == truth.regime)
    right = sum(said.changes.get(name) == change for name, change in truth.changes.items())
    changes = right / len(truth.changes)
    return {"score": 0.5 * regime + 0.5 * changes, "regime": regime, "changes": changes}
