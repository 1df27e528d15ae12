"""The calls of a season's judges, round by round: what came back, and what did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from assaymark.engine import CallSpec, Ledger, Model, Reply, RunSummary, Unusable
from assaymark.errors import ModelError
from assaymark.judging import asks_again, second_call
from assaymark.judging.season.author_probe import AuthorGuess, read_guess
from assaymark.judging.season.horizon_prompts import HorizonTask, PlannedHorizonCall
from assaymark.judging.season.horizon_replies import MOST_CHARACTERS, Read, read_horizon_reply, read_outcome_reply
from assaymark.judging.season.horizon_rounds import horizon_round
from assaymark.judging.season.horizon_scores import HorizonGrades, OutcomeGrade, outcome_grade
from assaymark.judging.season.outcome_prompts import PlannedOutcomeCall
from assaymark.protocol import EngineChoice
from assaymark.workflow.asking import purse_of, require_not_stopped, run_all
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.progress import Progress
from assaymark.workflow.season_judging_parts import Probe
from assaymark.workflow.unusable import unusable_of

WHAT: Final = "asking the judges"


class SeasonAsker:
    """Asks calls through the ledger, each of them once, and holds what became of them.

    A call that fails for good has a reply that says so: whoever grades, or does not, is recorded. ``made`` counts the
    replies of now.
    """

    def __init__(
        self,
        folder: RunFolder,
        ledger: Ledger,
        models: Mapping[str, Model],
        engine: EngineChoice,
        progress: Progress,
    ) -> None:
        self.folder, self.ledger, self.models, self.engine, self.progress = folder, ledger, models, engine, progress
        self.replies: dict[str, Reply] = {}
        self.heard: set[str] = set()
        self.silent: dict[str, str] = {}
        """Models of which no call brought a reply, and why: they are not asked further in this run."""
        self.seconds: dict[str, str] = {}
        """The keys of second calls, by the keys of calls whose reply was no JSON at all."""
        self.made = 0

    def ask(self, calls: Sequence[CallSpec], what: str = WHAT, unusable: Unusable | None = None) -> None:
        """Ask what has no reply yet, and once more what has one that is no JSON at all: the second reply counts.

        ``unusable`` is as for `run_all`, of the first replies.

        Raises
        ------
        ModelError
            Its budget is used up, or others gave calls up.
        StoppedError
            The run was asked to stop.
        """
        asked = {call.key: call for call in calls}
        self._ask(asked, what, unusable)
        again = {
            key: second_call(call)
            for key, call in asked.items()
            if key not in self.seconds and asks_again(self.replies[key], most=MOST_CHARACTERS)
        }
        self._ask({call.key: call for call in again.values()}, what)
        for key, call in again.items():
            self.seconds[key] = call.key
            self.replies[key] = self.replies[call.key]

    def _ask(self, asked: Mapping[str, CallSpec], what: str, unusable: Unusable | None = None) -> None:
        self.replies |= dict(self.ledger.replies([key for key in asked if key not in self.replies]))
        wanted = {key: call for key, call in asked.items() if key not in self.replies}
        self._lose({key: self.silent[call.model] for key, call in wanted.items() if call.model in self.silent}, wanted)
        wanted = {key: call for key, call in wanted.items() if key not in self.replies}
        if not wanted:
            return
        summary = run_all(
            self.ledger, list(wanted.values()), self.models, self.engine, what=what, progress=self.progress,
            unusable=unusable, first=False,
        )  # fmt: skip
        self.made += summary.made
        self.replies |= dict(self.ledger.replies(list(wanted)))
        lost = {key: call for key, call in wanted.items() if key not in self.replies}
        self.heard |= {call.model for key, call in wanted.items() if key not in lost}
        if lost:
            self._lose(self._reasons(summary, lost), lost)
            dumb = {key: call.model for key, call in lost.items() if call.model not in self.heard}
            self.silent |= {model: self.replies[key].text for key, model in dumb.items()}

    def _lose(self, reasons: Mapping[str, str], calls: Mapping[str, CallSpec]) -> None:
        """Calls that have no reply, and why."""
        for key, reason in reasons.items():
            self.replies[key] = Reply(text=reason, model=calls[key].model, finish="failed")

    def grades(self, tasks: Sequence[HorizonTask]) -> tuple[HorizonGrades, ...]:
        """The grades of all tasks, asked for part by part; `HorizonGrades` also where a judge gave none."""
        found: dict[int, HorizonGrades] = {}
        while len(found) < len(tasks):
            due: list[PlannedHorizonCall] = []
            for at, task in enumerate(tasks):
                if at not in found:  # what is graded is not read again in every round
                    made = horizon_round([task], self.replies.get)
                    due += made.due
                    if made.finished:
                        found[at] = made.grades[0]
            unusable = unusable_of(due, lambda one, reply: read_horizon_reply(reply, one.asked).reason)
            self.ask([one.call for one in due], unusable=unusable)
        return tuple(self._with_seconds(found[at]) for at in range(len(tasks)))

    def _with_seconds(self, grades: HorizonGrades) -> HorizonGrades:
        """Grades that name the second call of a part beside its first."""
        parts = tuple(
            replace(part, call_key=self.seconds[part.call_key], first_key=part.call_key)
            if part.call_key in self.seconds
            else part
            for part in grades.parts
        )
        return replace(grades, parts=parts)

    def guesses(self, probes: Sequence[Probe]) -> list[tuple[Probe, Read[AuthorGuess]]]:
        """What the probes of the blinding brought."""
        self.ask([one.planned.call for one in probes])
        found = [(one, read_guess(self.replies[one.planned.call.key], one.planned)) for one in probes]
        return [
            (replace(one, planned=replace(one.planned, call=second_call(one.planned.call))), read)
            if one.planned.call.key in self.seconds
            else (one, read)
            for one, read in found
        ]

    def outcomes(self, planned: Sequence[Sequence[PlannedOutcomeCall]]) -> list[OutcomeGrade | None]:
        """The outcome grades of some tasks, each with its calls; None where there was nothing to ask."""
        self.ask([one.call for calls in planned for one in calls])
        return [self._outcome(calls) for calls in planned]

    def _outcome(self, calls: Sequence[PlannedOutcomeCall]) -> OutcomeGrade | None:
        if not calls:
            return None
        reads = [read_outcome_reply(self.replies[one.call.key]) for one in calls]
        return outcome_grade([one.part for one in calls], reads)

    def _reasons(self, summary: RunSummary, lost: Mapping[str, CallSpec]) -> dict[str, str]:
        """Why calls have no reply, by key. What one judge's provider does is on that judge's record."""
        require_not_stopped(summary, self.folder)
        kept = f"every reply so far is kept in {self.folder.path}, and the same command goes on"
        purse = purse_of(self.models)
        if purse is not None and purse.stopped is not None:
            raise ModelError(f"{purse.stopped}; {kept}", retryable=True)
        failed = {one.key: one.reason for one in summary.failed}
        unasked = [key for key in lost if key not in failed]
        if unasked and not summary.stopped:
            raise ModelError(f"{len(unasked)} calls were given up elsewhere; {kept}", retryable=True)
        return {key: failed.get(key, "; ".join(summary.stopped)) for key in lost}
