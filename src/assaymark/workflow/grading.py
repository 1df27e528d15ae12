"""Planned calls through the ledger and back as judgments: what every kind of judging does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from assaymark.engine import CallSpec, Ledger, Message, Model, RunSummary
from assaymark.errors import LedgerError
from assaymark.judging import PlannedCall, Rubric, asks_again, judgment, plan_calls, second_call, user_messages
from assaymark.protocol import JudgeSpec
from assaymark.records import Decision, Judgment
from assaymark.workflow.asking import require_all, run_all
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.locking import Locked
from assaymark.workflow.progress import Progress
from assaymark.workflow.selection import Selection, select
from assaymark.workflow.sharing import hold_ledger
from assaymark.workflow.tables import DECISIONS, Store
from assaymark.workflow.unusable import unusable_of


@dataclass(frozen=True, eq=False)
class Desk:
    """A run folder, its plan, and whoever answers; decisions are read and rendered once, when they are needed."""

    folder: RunFolder
    locked: Locked
    models: Mapping[str, Model]
    progress: Progress

    @property
    def store(self) -> Store:
        """The tables of the run."""
        return Store(self.folder)

    @cached_property
    def decisions(self) -> list[Decision]:
        """All imported decisions: names of agents that the study leaves out have to be blinded as well."""
        return self.store.read(DECISIONS)

    @cached_property
    def selection(self) -> Selection:
        """The decisions that the study is about."""
        return select(self.decisions, self.locked.study)

    @cached_property
    def shown(self) -> dict[str, Message]:
        """What every judge is shown of each decision: rendered once, whoever is asked and under whichever rubric."""
        return user_messages(self.decisions, self.store.each_context(), self.locked.study)

    def grade(
        self,
        rubric: Rubric,
        *,
        what: str,
        judges: Sequence[JudgeSpec] | None = None,
        only: Collection[str] | None = None,
    ) -> tuple[list[Judgment], RunSummary]:
        """Put decisions before judges under a rubric: ask what has no reply yet, and parse all replies strictly.

        A call whose reply is no JSON at all is made once more.

        Raises
        ------
        ModelError
            Calls failed for good; what was answered is kept, and the same command goes on.
        StoppedError
            The run was asked to stop; what was answered is kept too.
        LedgerError
            A recorded reply cannot be found.
        """
        study = self.locked.study
        planned = plan_calls(self.decisions, {}, study, rubric, judges=judges, only=only, shown=self.shown)
        with Ledger.open(self.folder.ledger) as ledger:
            hold_ledger(self.folder, ledger, self.locked)
            ledger.plan(item.call for item in planned)
            calls = [item.call for item in planned]
            summary = run_all(
                ledger, calls, self.models, study.engine, what=what, progress=self.progress,
                unusable=unusable_of(planned, lambda one, reply: judgment(one, reply, rubric).reason),
            )  # fmt: skip
            require_all(summary, "the judges", self.folder)
            found = parsed(planned, ledger, rubric)
            if again := _unread(planned, found, ledger):
                ledger.plan(again)
                more = run_all(ledger, again, self.models, study.engine, what=f"{what} again", progress=self.progress)
                require_all(more, "the judges", self.folder)
                summary = replace(summary, made=summary.made + more.made)
                found = parsed(planned, ledger, rubric)
            return found, summary


def parsed(planned: Sequence[PlannedCall], ledger: Ledger, rubric: Rubric) -> list[Judgment]:
    """What the stored replies to planned calls amount to, those of second calls included.

    Raises
    ------
    LedgerError
        A recorded reply cannot be found.
    """
    replies = dict(ledger.replies([item.call.key for item in planned]))
    missing = sum(item.call.key not in replies for item in planned)
    if missing:
        raise LedgerError(f"{missing} replies that were recorded cannot be found in the ledger; it is damaged")
    found = [judgment(item, replies[item.call.key], rubric) for item in planned]
    bad = {at: second_call(item.call).key for at, item in enumerate(planned) if found[at].status == "invalid"}
    seconds = dict(ledger.replies(bad.values()))
    for at, key in bad.items():
        if key in seconds:
            first = replies[planned[at].call.key]
            found[at] = judgment(planned[at], first, rubric, second=seconds[key])
    return found


def _unread(planned: Sequence[PlannedCall], found: Sequence[Judgment], ledger: Ledger) -> list[CallSpec]:
    """The calls to be made once more."""
    bad = [item.call for item, one in zip(planned, found, strict=True) if one.status == "invalid" and not one.first_key]
    calls = {call.key: call for call in bad}
    return [second_call(calls[key]) for key, reply in ledger.replies(calls) if asks_again(reply)]
