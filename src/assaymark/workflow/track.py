"""What a study that makes its own records will decide, as far as its plan knows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final, Protocol, runtime_checkable

from assaymark.agents.llm import Place
from assaymark.engine import Model
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.judging import Rubric, left_out, load_rubric, rubric_names
from assaymark.market.cycles import NEUTRAL_NOW, CycleKey
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, Agent, Decision, Derivation, DerivationKind, Provenance
from assaymark.workflow.model_problems import agent_problems, judge_problems, unknown_model

# How long work says how far it is.


PARTS: Final = 4
"""Parts of an analysis that are told to whoever watches."""


class Progress(Protocol):
    """Called with what is being done, how much of it is done, and how much there is."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Note the state of one piece of work."""
        ...


@runtime_checkable
class Speaking(Progress, Protocol):
    """Progress that can show a line of words too."""

    def say(self, line: str, /) -> None:
        """Show a line."""
        ...


@runtime_checkable
class Paying(Progress, Protocol):
    """Progress that can show what was paid so far too."""

    def pay(self, usd: float, /) -> None:
        """Take account of money that a reply cost, in USD."""
        ...


def saying(progress: Progress) -> Callable[[str], None]:
    """Shows lines where ``progress`` can, and else nobody."""
    return progress.say if isinstance(progress, Speaking) else _unheard


def _unheard(_line: str) -> None:
    """Nobody listens."""


def paying(progress: Progress) -> Callable[[float], None] | None:
    """Takes account of what replies cost where ``progress`` can, and else is None."""
    return progress.pay if isinstance(progress, Paying) else None


@dataclass(frozen=True, slots=True)
class Within:
    """Progress of calls that are a part of something: ``tell`` is told their counts, the whole hears all else."""

    whole: Progress
    tell: Callable[[int, int], object]

    def __call__(self, _what: str, done: int, total: int, /) -> None:
        """Hand on the counts."""
        self.tell(done, total)

    def say(self, line: str, /) -> None:
        """Hand on a line."""
        saying(self.whole)(line)

    def pay(self, usd: float, /) -> None:
        """Hand on what a reply cost."""
        if (take := paying(self.whole)) is not None:
            take(usd)


def silent(what: str, done: int, total: int, /) -> None:
    """The progress of work that nobody watches."""


def counted(progress: Progress) -> Callable[[object], None]:
    """``progress`` for an analysis, which only says that the next of its parts begins."""
    done = itertools.count()
    return lambda _: progress("measuring", next(done), PARTS)


# Which decisions a study is about, and whether everything that it names exists.


@dataclass(frozen=True, slots=True)
class Selection:
    """The decisions a study is about, control cells included, and how many were left out for which reason."""

    decisions: tuple[Decision, ...]
    excluded: Mapping[str, int]

    @property
    def honest(self) -> tuple[Decision, ...]:
        """Those that are ranked."""
        return tuple(one for one in self.decisions if one.derivation.kind == "honest")

    def cell(self, kind: DerivationKind) -> tuple[Decision, ...]:
        """Those of one control cell."""
        return tuple(one for one in self.decisions if one.derivation.kind == kind)


def select(decisions: Sequence[Decision], study: Study) -> Selection:
    """The decisions that a study's ``[records]`` asks for, in the order given."""
    chosen, left = [], Counter[str]()
    for decision in decisions:
        reason = left_out(decision, study.records)
        if reason is None:
            chosen.append(decision)
        else:
            left[reason] += 1
    return Selection(tuple(chosen), dict(sorted(left.items())))


def checked_rubric(
    study: Study,
    source: str,
    decisions: Sequence[Decision],
    selection: Selection,
    models: Mapping[str, Model] | None = None,
    graders: Collection[str] = (),
) -> Rubric:
    """The rubric of a study, after everything that the study names was found."""
    problems = [
        *_agent_problems(study, decisions),
        *_own_agent_problems(study, models),
        *_judge_problems(study, models),
        *_people_problems(study, graders),
        *_cell_problems(study, selection),
        *_anchor_problems(study),
        *_empty(selection),
    ]
    try:
        rubric = load_rubric(study.rubric.name)
    except UnknownNameError as exc:
        raise InputError(source, [*problems, Problem("rubric.name", str(exc))]) from None
    problems += _dimension_problems(study, [dimension.name for dimension in rubric.dimensions])
    if problems:
        raise InputError(source, problems)
    return rubric


def _agent_problems(study: Study, decisions: Sequence[Decision]) -> Iterator[Problem]:
    known = sorted({decision.agent.id for decision in decisions})
    for name in study.records.agents or ():
        if name not in known:
            yield Problem("records.agents", str(UnknownNameError("agent", name, known)))


def _own_agent_problems(study: Study, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """The agents that a study asks itself, and the model of its date probe."""
    for at, agent in enumerate(study.agents):
        yield from agent_problems(f"agents.{at}", agent, models)
    probe = None if study.substrate is None else study.substrate.date_probe.model
    if probe is not None and (unknown := unknown_model(probe, models)) is not None:
        yield Problem("substrate.date_probe.model", unknown)


def _judge_problems(study: Study, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    probe = [] if study.stability.probe is None else [("stability.probe", study.stability.probe)]
    for place, judge in (*((f"judges.{at}", one) for at, one in enumerate(study.judges)), *probe):
        yield from judge_problems(place, judge, models)


def _people_problems(study: Study, graders: Collection[str]) -> Iterator[Problem]:
    for at, judge in enumerate(study.judges):
        if judge.human and not graders:
            yield Problem(f"judges.{at}", "a human grader, but no grades were imported; run: assaymark import human")
        elif judge.human and judge.name not in graders:
            yield Problem(f"judges.{at}.name", str(UnknownNameError("human grader", judge.name, tuple(graders))))
    named = {judge.name for judge in study.judges if judge.human}
    for name in graders:
        if name not in named:
            what = f"grades of {name!r:.60} were imported, and no judge of the plan is that person"
            add = f'add [[judges]] name = "{name:.60}", model = "human/table", family = "human"'
            yield Problem("judges", f"{what}; {add}, or import a table without these grades")


def _cell_problems(study: Study, selection: Selection) -> Iterator[Problem]:
    for kind in study.cells_judged:
        if not selection.cell(kind):
            yield Problem("records.derivations", f"no record of the control cell {kind} was imported")
    clusters = {one.cluster for one in selection.honest}
    for name in () if study.contamination is None else study.contamination.post_cutoff:
        if name not in clusters:
            yield Problem("contamination.post_cutoff", str(UnknownNameError("cluster", name, tuple(sorted(clusters)))))


def _anchor_problems(study: Study) -> Iterator[Problem]:
    if study.anchor_probe is not None and study.anchor_probe.rubric not in rubric_names():
        yield Problem("anchor_probe.rubric", str(UnknownNameError("rubric", study.anchor_probe.rubric, rubric_names())))
    elif study.anchor_probe is not None and study.anchor_probe.rubric == study.rubric.name:
        yield Problem("anchor_probe.rubric", f"is the study's own rubric (got {study.rubric.name}); name another")


def _empty(selection: Selection) -> Iterator[Problem]:
    if not selection.honest:
        left = ", ".join(f"{count} by {reason}" for reason, count in selection.excluded.items()) or "none were imported"
        yield Problem("records", f"no decision is left to judge ({left})")


def _dimension_problems(study: Study, known: Sequence[str]) -> Iterator[Problem]:
    weights = study.rubric.weights
    for place, names, allowed in (
        ("rubric.weights", weights or (), known),
        ("claims.dimensions", study.claims.dimensions or (), (AGGREGATE, *known)),
        ("cells.contaminates", study.cells.contaminates or (), (AGGREGATE, *known)),
    ):
        for name in names:
            if name not in allowed:
                yield Problem(place, str(UnknownNameError("dimension", name, allowed)))
    if weights is not None:
        if missing := [name for name in known if name not in weights]:
            yield Problem(
                "rubric.weights", f"every dimension needs a weight, 0 allowed (missing: {', '.join(missing)})"
            )
        if not sum(weights.values()) > 0:
            yield Problem("rubric.weights", "at least one weight must be above 0")


def planned_decisions(study: Study, cycles: Sequence[CycleKey]) -> list[Decision]:
    """What will be decided, as far as the plan can know it: who, on which cycle, in which cluster."""
    found = []
    for key in cycles:
        place = Place(study.name, key.regime, key.number, key.context_id)
        found += [_planned(place, spec.name, spec.family, Derivation()) for spec in study.agents]
    for kind, count in study.controls.wanted.items():
        for number, key in enumerate(islice(cycle(cycles), count), start=1):
            place = Place(study.name, key.regime, key.number, key.context_id)
            name = f"{kind}-{number}"
            found.append(_planned(place, name, study.controls.family, Derivation(kind=kind)))
    return found


def _planned(place: Place, agent: str, family: str, derivation: Derivation) -> Decision:
    return Decision(
        record_id=place.record_id(agent),
        episode_id=place.episode,
        step=1,
        cluster=place.regime,
        decided_at=NEUTRAL_NOW,
        agent=Agent(id=agent if derivation.kind == "honest" else "control", family=family),
        context_id=place.context_id,
        actions=(),
        rationales=(),
        format="planned",
        provenance=Provenance(source="the plan"),
        derivation=derivation,
    )
