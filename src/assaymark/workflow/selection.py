"""Which decisions a study is about, and whether everything that it names exists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assaymark.engine import Model
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.judging import Rubric, argument_problems, left_out, load_rubric
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, Decision


@dataclass(frozen=True, slots=True)
class Selection:
    """The decisions a study is about, and how many were left out for which reason."""

    decisions: tuple[Decision, ...]
    excluded: Mapping[str, int]


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
) -> Rubric:
    """The rubric of a study, after everything that the study names was found.

    Raises
    ------
    InputError
        Agents, models, arguments, dimensions or weights that do not exist or do not fit: all of them at once.
    """
    problems = [*_agent_problems(study, decisions), *_judge_problems(study, models), *_empty(selection)]
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


def _judge_problems(study: Study, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    for at, judge in enumerate(study.judges):
        if models is not None and judge.model not in models:
            yield Problem(f"judges.{at}.model", str(UnknownNameError("model", judge.model, tuple(models))))
        else:
            yield from (Problem(f"judges.{at}.args", what) for what in argument_problems(judge.model, judge.args))


def _empty(selection: Selection) -> Iterator[Problem]:
    if not selection.decisions:
        left = ", ".join(f"{count} by {reason}" for reason, count in selection.excluded.items()) or "none were imported"
        yield Problem("records", f"no decision is left to judge ({left})")


def _dimension_problems(study: Study, known: Sequence[str]) -> Iterator[Problem]:
    weights = study.rubric.weights
    for place, names, allowed in (
        ("rubric.weights", weights or (), known),
        ("claims.dimensions", study.claims.dimensions or (), (AGGREGATE, *known)),
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
