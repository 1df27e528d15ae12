"""The same ladder one text at a time, for judges that score a rationale by a rubric: no slots, no pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from assaymark.errors import InputError
from assaymark.judging.pairs.arms import drafts, prefix_chain
from assaymark.judging.pairs.tasks import Task, task_problems
from assaymark.judging.pairs.texts import Brief, brief_of
from assaymark.records import (
    Agent,
    Context,
    Decision,
    Derivation,
    DerivationKind,
    Provenance,
    Rationale,
    content_id,
    record,
)

PointVariant = Literal["vacuum", "ladder", "filler"]

FILLED_LEVELS: Final = (1, 2, 3, 4)
"""The levels that are also shown with filler: neither the floor nor the ceiling, where a scale has no room."""

# A filler text is its parent's content at another length, which is what ``length_matched`` names among derivations.
_KINDS: Final[dict[PointVariant, DerivationKind]] = {
    "vacuum": "vacuum",
    "ladder": "ladder",
    "filler": "length_matched",
}
_NOTHING: Final = ("", " \n\n\t")
_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SOURCE: Final = "assaymark stimuli"


@record
class PointStimulus:
    """One text for a rubric judge: a level of a task's ladder, the same with filler, or nothing (``vacuum``, level 0).

    ``level`` is how many requirements the text meets. ``parent`` is the id of the ladder text that a filler text
    lengthens: what it has more meets nothing, so a judge that is blind to length scores both alike.
    """

    id: str
    brief: Brief
    level: int
    text: str
    variant: PointVariant
    parent: str | None = None

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.brief.task

    @property
    def tokens(self) -> int:
        """Its length in whitespace tokens."""
        return len(self.text.split())


def point_stimuli(tasks: Sequence[Task], seed: int) -> list[PointStimulus]:
    """Two texts without content, the six levels Q0 .. Q5, and Q1 .. Q4 with filler, for each task.

    The levels and the filler texts are those that `build_stimuli` puts in pairs from the same seed, so what `check`
    says of those pairs holds here: a filler text meets what its parent meets, and is longer by half.

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
    >>> longer = found[-1]
    >>> longer.id, longer.parent
    ('copper-breakout.point.filler.4', 'copper-breakout.point.ladder.4')
    """
    if problems := task_problems(tasks):
        raise InputError("tasks", problems)
    found = []
    for task in tasks:
        brief = brief_of(task)
        found += [_point(brief, number, 0, text, "vacuum") for number, text in enumerate(_NOTHING, start=1)]
        chain = prefix_chain(task, seed)
        found += [_point(brief, level, level, one.text, "ladder") for level, one in enumerate(chain)]
        found += _filled(task, brief, seed)
    return found


def _filled(task: Task, brief: Brief, seed: int) -> Iterator[PointStimulus]:
    """The longer texts of a task's filler pairs, each with the ladder text that it lengthens."""
    for pair in drafts(task, seed):
        level = len(pair.v.met)
        if pair.condition == "filler" and level in FILLED_LEVELS:
            yield _point(brief, level, level, pair.v.text, "filler", parent=_name(brief, "ladder", level))


def _name(brief: Brief, variant: PointVariant, number: int) -> str:
    """The id of a stimulus."""
    return f"{brief.task}.point.{variant}.{number}"


def _point(
    brief: Brief, number: int, level: int, text: str, variant: PointVariant, parent: str | None = None
) -> PointStimulus:
    """One stimulus with its id."""
    name = _name(brief, variant, number)
    return PointStimulus(id=name, brief=brief, level=level, text=text, variant=variant, parent=parent)


def point_records(stimuli: Sequence[PointStimulus]) -> tuple[list[Decision], dict[str, Context]]:
    """The stimuli as decisions with their contexts, to be planned like any others (`judging.plan_calls`).

    ``record_id`` is the id of the stimulus, by which judgments find their level and task again; ``cluster`` is the
    task. The study that plans them has to name the derivations ``vacuum``, ``ladder`` and ``length_matched`` (filler)
    beside ``honest``. A context holds the situation and the requirements as the prompt; nothing in it is a fact that a
    number could contradict.
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
        derivation=Derivation(kind=_KINDS[one.variant], parent=one.parent),
    )
