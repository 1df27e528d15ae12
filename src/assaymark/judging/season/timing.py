"""How long an agent takes for a decision, from measured times only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from assaymark.records import CallFacts

TimeState = Literal["ok", "no measured time"]


@dataclass(frozen=True, slots=True)
class DecisionTime:
    """The median seconds of an agent's decisions, with how many were measured and how many were left out.

    ``seconds`` is None, and ``state`` says so, where none was measured.
    """

    seconds: float | None
    measured: int
    left_out: int
    state: TimeState


def decision_time(calls: Iterable[CallFacts]) -> DecisionTime:
    """The median over the measured times of an agent's usable decisions.

    Answers that could not be used are not handed in: a connection that is refused at once is no fast decision.

    A median, so that a slow call now and then moves it little. Times that were derived (from time stamps of a log, for
    instance) include what nobody knows and are left out even beside measured ones.

    Parameters
    ----------
    calls : iterable of CallFacts
        One for each usable decision; ``seconds`` are those of one attempt.

    Examples
    --------
    >>> stamped = CallFacts(seconds=90.0, timing_source="derived")
    >>> decision_time([CallFacts(seconds=4.0, timing_source="measured"), stamped])
    DecisionTime(seconds=4.0, measured=1, left_out=1, state='ok')
    """
    every = list(calls)
    seconds = [call.seconds for call in every if call.timing_source == "measured" and call.seconds is not None]
    if not seconds:
        return DecisionTime(None, 0, len(every), "no measured time")
    return DecisionTime(float(median(seconds)), len(seconds), len(every) - len(seconds), "ok")
