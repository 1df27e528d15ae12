"""Rounds of horizon calls: what can be asked now, and what is graded already, from the replies that there are.

The calls on a split horizon come one after the other, each with the notes of the one before. So a season is judged in
rounds: plan, ask, plan again, until nothing is due. A round is worked out from stored replies alone, and is the same
after a kill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from assaymark.engine.calls import Reply
from assaymark.judging.season.calls import HorizonTask, PlannedHorizonCall, next_call
from assaymark.judging.season.replies import HorizonAnswer, Read, read_horizon_reply
from assaymark.judging.season.scoring import HorizonGrades, horizon_grades


@dataclass(frozen=True, slots=True)
class HorizonRound:
    """The calls that are due, one for each unfinished task, and the grades of the finished ones, both by task."""

    due: tuple[PlannedHorizonCall, ...]
    grades: tuple[HorizonGrades, ...]

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return not self.due


def horizon_round(tasks: Iterable[HorizonTask], reply_to: Callable[[str], Reply | None]) -> HorizonRound:
    """What the replies that there are make of some tasks.

    Parameters
    ----------
    tasks : iterable of HorizonTask
        From `horizon_tasks`.
    reply_to : callable from call key to Reply or None
        The stored reply to a call; None where there is none yet.

    Returns
    -------
    HorizonRound
        A task whose call failed for good stays due: the runner says which calls those are.
    """
    due: list[PlannedHorizonCall] = []
    grades: list[HorizonGrades] = []
    for task in tasks:
        asked: list[tuple[PlannedHorizonCall, Read[HorizonAnswer]]] = []
        while (planned := next_call(task, [read for _, read in asked])) is not None:
            reply = reply_to(planned.call.key)
            if reply is None:
                due.append(planned)
                break
            asked.append((planned, read_horizon_reply(reply, planned.asked)))
        else:
            grades.append(horizon_grades(task, asked))
    return HorizonRound(tuple(due), tuple(grades))
