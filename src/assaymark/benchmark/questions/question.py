"""One question: where and when it is asked, what it shows, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from assaymark.benchmark.questions.payloads import (
    LEVELS,
    Answer,
    Condition,
    Context,
    Payload,
    Printed,
    Regime,
    Split,
    Template,
)
from assaymark.benchmark.questions.render import prompt_text
from assaymark.records import JSON, to_json


@dataclass(frozen=True, slots=True)
class Question:
    """One item of a set (PortBench, section 2.2 and Appendix D).

    Attributes
    ----------
    id : str
        Unique in its set: template, day and place.
    template : Template
    split : Split
        By the year of ``day``.
    regime : Regime
        Of equities on ``day``; scores are broken down by it.
    day : date
        The decision day. The prompt shows nothing that was not known at its close.
    payload : Payload
        What the prompt states, with the numbers as it prints them.
    context : Context
        What surrounds it: regime, macro series, news and filings.
    answer : Answer
        Never part of the prompt. T2 to T6 follow from the payload, T1 from the days after, T7 from the regime.

    Examples
    --------
    >>> from assaymark.benchmark.questions.payloads import Number, TailRisk
    >>> risk = TailRisk("SPY", 0.95, (-0.02, 0.01, 0.03))
    >>> one = Question("T2-1", "T2", "test", "bull", date(2025, 3, 3), risk, Context("bull"), Number(-0.017))
    >>> one.level, "-0.017" in one.prompt("full")
    (1, False)
    """

    id: str
    template: Template
    split: Split
    regime: Regime
    day: date
    payload: Payload
    context: Context
    answer: Answer

    @property
    def level(self) -> int:
        """Difficulty, 1 to 4."""
        return LEVELS[self.template]

    @property
    def instruments(self) -> tuple[str, ...]:
        """The instruments it is about; none in T7."""
        one = getattr(self.payload, "instrument", None)
        return (one,) if one is not None else tuple(getattr(self.payload, "instruments", ()))

    def given(self, condition: Condition = "full") -> dict[str, JSON]:
        """The numbers and names that the prompt states, by name; nothing of a question whose text is not ours.

        ``restricted`` lacks the covariance and the correlation, as its prompt does.
        """
        if isinstance(self.payload, Printed):
            return {}
        hidden = ("covariance", "correlation") if condition == "restricted" else ()
        return {name: value for name, value in to_json(self.payload).items() if name not in hidden}

    def prompt(self, condition: Condition = "full") -> str:
        """The text that a model is sent. The two conditions differ for T4 and T5 only."""
        return prompt_text(self.day, self.payload, self.context, condition)
