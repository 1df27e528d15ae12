"""The same ladder one text at a time, for judges that score a rationale by a rubric: no slots, no pairs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from assaymark.errors import InputError
from assaymark.judging.pairs.arms import prefix_chain
from assaymark.judging.pairs.tasks import Task, task_problems
from assaymark.judging.pairs.texts import Brief, brief_of
from assaymark.records import Agent, Context, Decision, Derivation, Provenance, Rationale, content_id, record

PointVariant = Literal["vacuum", "ladder"]

_NOTHING: Final = ("", " \n\n\t")
_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SOURCE: Final = "assaymark stimuli"


@record
class PointStimulus:
    """One text for a rubric judge: a level of a task's ladder, or nothing at all (``vacuum``, level 0).

    ``level`` is how many requirements the text meets.
    """

    id: str
    brief: Brief
    level: int
    text: str
    variant: PointVariant

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.brief.task


def point_stimuli(tasks: Sequence[Task], seed: int) -> list[PointStimulus]:
    """Two texts without content and the six levels Q0 .. Q5 for each task.

    The levels are the texts that `build_stimuli` puts in pairs from the same seed.

    Raises
    ------
    InputError
        The tasks cannot carry stimuli (`task_problems`).

    Examples
    --------
    >>> from assaymark.judging.pairs.tasks import finance_tasks
    >>> found = point_stimuli(finance_tasks()[:1], seed=7)
    >>> [(one.variant, one.level) for one in found][:4]
    [('vacuum', 0), ('vacuum', 0), ('ladder', 0), ('ladder', 1)]
    """
    if problems := task_problems(tasks):
        raise InputError("tasks", problems)
    found = []
    for task in tasks:
        brief = brief_of(task)
        found += [_point(brief, number, 0, text, "vacuum") for number, text in enumerate(_NOTHING, start=1)]
        chain = prefix_chain(task, seed)
        found += [_point(brief, level, level, one.text, "ladder") for level, one in enumerate(chain)]
    return found


def _point(brief: Brief, number: int, level: int, text: str, variant: PointVariant) -> PointStimulus:
    """One stimulus with its id."""
    return PointStimulus(
        id=f"{brief.task}.point.{variant}.{number}", brief=brief, level=level, text=text, variant=variant
    )


def point_records(stimuli: Sequence[PointStimulus]) -> tuple[list[Decision], dict[str, Context]]:
    """The stimuli as decisions with their contexts, to be planned like any others (`judging.plan_calls`).

    ``record_id`` is the id of the stimulus, by which judgments find their level and task again; ``cluster`` is the
    task. The study that plans them has to name the derivations ``vacuum`` and ``ladder`` beside ``honest``. A context
    holds the situation and the requirements as the prompt; nothing in it is a fact that a number could contradict.
    """
    contexts: dict[str, Context] = {}
    names: dict[str, str] = {}
    decisions = []
    for one in stimuli:
        if one.task not in names:
            context = _context(one.brief)
            names[one.task] = content_id(context)
            contexts[names[one.task]] = context
        decisions.append(_decision(one, names[one.task]))
    return decisions, contexts


def _context(brief: Brief) -> Context:
    """What the writer of a task's texts was given."""
    listed = "\n".join(f"- {name}: {must}" for name, must in brief.requirements)
    return Context(
        completeness="partial",
        cutoff=_MOMENT,
        cutoff_source="constructed",
        prompt=f"{brief.question}\n\nWhat a good answer does:\n{listed}",
    )


def _decision(one: PointStimulus, context: str) -> Decision:
    """A stimulus as the decision of an agent that is called by its level."""
    return Decision(
        record_id=one.id,
        episode_id=one.task,
        step=0,
        cluster=one.task,
        decided_at=_MOMENT,
        agent=Agent(id=f"{one.variant}-{one.id.rpartition('.')[2]}", family=_SOURCE),
        context_id=context,
        actions=(),
        rationales=(Rationale(text=one.text, kind="summary"),),
        format="stimulus",
        provenance=Provenance(source=_SOURCE),
        derivation=Derivation(kind=one.variant),
    )
