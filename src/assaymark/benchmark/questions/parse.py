"""Replies to questions, read strictly by meaning and leniently by form.

"No, do not rebalance" is a no, and "VaR at 95% is -0.0200" is -0.02. What can be read in two ways is not read at all:
the reply is ``invalid``, with the reason, and is never asked again. Replies are input from outside: whatever they
hold, reading them ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.benchmark.questions.amounts import Reading, number_said, weights_said
from assaymark.benchmark.questions.payloads import Answer, Direction, Number, RegimeView, Trade, Weights
from assaymark.benchmark.questions.question import Question
from assaymark.benchmark.questions.words import direction_said, regime_said, trade_said
from assaymark.prompting.strict_json import Rejected, strict_json

State = Literal["ok", "partial", "invalid", "refused", "truncated"]

LONGEST: Final = 20_000
"""Characters of a reply that are read, from its end, where answers stand."""

_MARK = re.compile(r"\b(?:final\s+)?answer\s*(?:is)?\s*[:=]", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:i\s+(?:can\s?not|can't|won't|will\s+not|am\s+(?:unable|not\s+able))|as\s+an\s+ai|i'm\s+(?:unable|sorry))",
    re.IGNORECASE,
)
_DECORATION = re.compile(r"[*`$\\]|</?\w+>")
_PLAIN = str.maketrans({"−": "-", "–": "-", "—": "-", "‑": "-", "’": "'", "\u00a0": " ", "≈": "=", "→": "="})
_ARROW = re.compile(r"[-=]>")


@dataclass(frozen=True, slots=True)
class Read:
    """What a reply says. ``answer`` is None unless the state is ``ok`` or ``partial``; ``reason`` says why not."""

    answer: Answer | None
    state: State
    reason: str = ""


def read_answer(question: Question, text: str, *, finish: str = "stop") -> Read:
    """What a reply answers to a question.

    The last line that begins with ``ANSWER:`` counts; without one, the whole text does, unless it was cut off: a number
    in the midst of a calculation is no answer.

    Parameters
    ----------
    question : Question
        Says which kind of answer is looked for, and for which instruments. Its answer is not looked at otherwise.
    text : str
    finish : str
        ``stop``, ``length`` (cut off), ``refusal`` or ``failed``.

    Examples
    --------
    >>> from datetime import date
    >>> from assaymark.benchmark.questions.payloads import Context, Rebalancing
    >>> held = Rebalancing(("A", "B"), (0.6, 0.4), (0.5, 0.5), 0.05)
    >>> trade = Trade(True, "sell", "A", 0.1)
    >>> one = Question("T6-1", "T6", "test", "bull", date(2025, 3, 3), held, Context("bull"), trade)
    >>> read_answer(one, "No, do not rebalance.").answer.rebalance
    False
    >>> read_answer(one, "").state
    'invalid'
    """
    if finish == "refusal":
        return Read(None, "refused", "the provider reports a refusal")
    if finish == "failed":
        return Read(None, "invalid", "there was no answer")
    plain = _ARROW.sub("=", _DECORATION.sub("", text[-LONGEST:].translate(_PLAIN))).strip()
    if not plain:
        return Read(None, "invalid", "the reply is empty")
    marks = list(_MARK.finditer(plain))
    if not marks and finish == "length":
        return Read(None, "truncated", "the reply was cut off before its answer")
    said = plain[marks[-1].end() :].strip() if marks else plain
    found = _reader(question)(_flattened(said) or said, bool(marks))
    if found.answer is None and _REFUSAL.search(plain):
        return Read(None, "refused", "the reply declines to answer")
    state: State = "invalid" if found.answer is None else "partial" if found.reason else "ok"
    return Read(found.answer, state, found.reason)


def _reader(question: Question) -> Callable[[str, bool], Reading]:
    """How a reply to this question is read."""
    names: Sequence[str] = question.instruments
    match question.answer:
        case Direction():
            return direction_said
        case Number():
            return number_said
        case Weights():
            return lambda said, marked: weights_said(said, marked, names)
        case Trade():
            return lambda said, marked: trade_said(said, marked, names)
        case RegimeView():
            return regime_said


def _flattened(said: str) -> str:
    """A reply that is one flat JSON object, as text; empty for any other."""
    begin, end = said.find("{"), said.rfind("}")
    if begin < 0 or end < begin:
        return ""
    try:
        value = strict_json(said[begin : end + 1])
    except Rejected:
        return ""
    lines: list[str] = []
    for name, inner in value.items() if isinstance(value, dict) else ():
        rows = inner.items() if isinstance(inner, dict) else [(name, inner)]
        lines += [f"{key}: {one}" for key, one in rows if isinstance(one, str | int | float)]
    return "; ".join(lines)
