"""How far work is, which decisions and scores a study is about, and whether all that its plan names exists."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from assaymark import judging
from assaymark.agents import agent_argument_problems, reference_agents
from assaymark.agents.llm import Place
from assaymark.engine import Model
from assaymark.engine.providers.http_agent import is_outside
from assaymark.engine.providers.registry import Models, check_ready, provider_argument_problems
from assaymark.errors import InputError, ModelError, Problem, UnknownNameError
from assaymark.judging import argument_problems
from assaymark.judging.reference.judges import SEASON_PLANTED, dimension_problem, season_argument_problems
from assaymark.market.cycles import NEUTRAL_NOW, CycleKey
from assaymark.metrology.probes import ORACLE_DIMENSION
from assaymark.plan import read_toml
from assaymark.protocol import AgentSpec, JudgeSpec, Study, parse_study, scale_words
from assaymark.records import AGGREGATE, Agent, Decision, Derivation, DerivationKind, Provenance
from assaymark.workflow.run_folder import read_text


@dataclass(frozen=True, slots=True)
class Selection:
    """The decisions a study is about, control cells included, and how many were left out for which reason."""

    decisions: tuple[Decision, ...]
    excluded: Mapping[str, int]

    @property
    def honest(self) -> tuple[Decision, ...]:
        """Those that are ranked."""
        return self.cell("honest")

    def cell(self, kind: DerivationKind) -> tuple[Decision, ...]:
        """Those of one control cell."""
        return tuple(decision for decision in self.decisions if decision.derivation.kind == kind)


def select(decisions: Sequence[Decision], study: Study) -> Selection:
    """The decisions that a study's ``[records]`` asks for, in the order given."""
    reasons = [judging.left_out(decision, study.records) for decision in decisions]
    left = Counter(reason for reason in reasons if reason is not None)
    chosen = tuple(one for one, reason in zip(decisions, reasons, strict=True) if reason is None)
    return Selection(chosen, dict(sorted(left.items())))


def checked_rubric(
    study: Study, source: str, decisions: Sequence[Decision], selection: Selection,
    models: Mapping[str, Model] | None = None, graders: Collection[str] = (),
) -> judging.Rubric:  # fmt: skip
    """The rubric of a study, after everything that the study names was found."""
    known = sorted({decision.agent.id for decision in decisions})
    problems = [*_unknown("records.agents", "agent", study.records.agents or (), known)]
    for at, agent in enumerate(study.agents):
        problems += agent_problems(f"agents.{at}", agent, models)
    dated = None if study.substrate is None else study.substrate.date_probe.model
    if dated is not None and (unknown := unknown_model(dated, models)) is not None:
        problems.append(Problem("substrate.date_probe.model", unknown))
    for at, judge in enumerate(study.judges):
        problems += judge_problems(f"judges.{at}", judge, models)
    if study.stability.probe is not None:
        problems += judge_problems("stability.probe", study.stability.probe, models)
    for at, judge in enumerate(study.judges):
        if judge.human and not graders:
            what = "a human grader, but no grades were imported; run: assaymark import human"
            problems.append(Problem(f"judges.{at}", what))
        elif judge.human:
            problems += _unknown(f"judges.{at}.name", "human grader", [judge.name], graders)
    for name in graders:
        if name not in {judge.name for judge in study.judges if judge.human}:
            what = f"grades of {name!r:.60} were imported, and no judge of the plan is that person"
            add = f'add [[judges]] name = "{name:.60}", model = "human/table", family = "human"'
            problems.append(Problem("judges", f"{what}; {add}, or import a table without these grades"))
    for kind in study.cells_judged:
        if not selection.cell(kind):
            problems.append(Problem("records.derivations", f"no record of the control cell {kind} was imported"))
    clusters, after = sorted({one.cluster for one in selection.honest}), getattr(study.contamination, "post_cutoff", ())
    problems += _unknown("contamination.post_cutoff", "cluster", after, clusters)
    if (probe := study.anchor_probe) is not None:
        problems += _unknown("anchor_probe.rubric", "rubric", [probe.rubric], judging.rubric_names())
        if probe.rubric == study.rubric.name and probe.rubric in judging.rubric_names():
            what = f"is the study's own rubric (got {study.rubric.name}); name another"
            problems.append(Problem("anchor_probe.rubric", what))
    if not selection.honest:
        left = ", ".join(f"{count} by {reason}" for reason, count in selection.excluded.items()) or "none were imported"
        problems.append(Problem("records", f"no decision is left to judge ({left})"))
    try:
        rubric = judging.rubric_of(study.rubric)
    except UnknownNameError as exc:
        raise InputError(source, [*problems, Problem("rubric.name", str(exc))]) from None
    if problems := [*problems, *_rubric_problems(study, rubric)]:
        raise InputError(source, problems)
    return rubric


def _unknown(place: str, kind: str, names: Iterable[str], known: Collection[str]) -> Iterator[Problem]:
    """A problem for each of some names that is not known."""
    return (Problem(place, str(UnknownNameError(kind, name, tuple(known)))) for name in names if name not in known)


def _rubric_problems(study: Study, rubric: judging.Rubric) -> Iterator[Problem]:
    """Where a plan and its rubric, or its rubric and those who grade by it, do not fit."""
    if study.rubric.name != rubric.version:
        yield Problem("rubric.name", f"is the version in the rubric, {rubric.version} (got {study.rubric.name})")
    if study.scale != rubric.scale:
        what = f"rubric {rubric.version} is graded on {scale_words(rubric.scale)}; leave rubric.scale out"
        yield Problem("rubric.scale", f"{what} (got {scale_words(study.scale)})")
    probe = study.stability.probe
    judges = [(f"judges.{at}.model", judge.model) for at, judge in enumerate(study.judges)]
    for place, model in (*judges, *([] if probe is None else [("stability.probe.model", probe.model)])):
        if (unknown := dimension_problem(model, rubric.names)) is not None:
            yield Problem(place, unknown)
    if study.oracle and ORACLE_DIMENSION not in rubric.names:
        yield Problem("oracle", f"scores {ORACLE_DIMENSION} alone, which rubric {rubric.version} does not ask for")
    anchor, known = study.anchor_probe, [dimension.name for dimension in rubric.dimensions]
    if (
        anchor is not None
        and anchor.rubric in judging.rubric_names()
        and judging.load_rubric(anchor.rubric).scale != rubric.scale
    ):
        yield Problem("anchor_probe.rubric", f"must have the scale of the study's, {scale_words(rubric.scale)}")
    weights = study.rubric.weights
    yield from _unknown("rubric.weights", "dimension", weights or (), known)
    yield from _unknown("claims.dimensions", "dimension", study.claims.dimensions or (), (AGGREGATE, *known))
    yield from _unknown("cells.contaminates", "dimension", study.cells.contaminates or (), (AGGREGATE, *known))
    if weights is not None:
        if missing := ", ".join(name for name in known if name not in weights):
            yield Problem("rubric.weights", f"every dimension needs a weight, 0 allowed (missing: {missing})")
        if not sum(weights.values()) > 0:
            yield Problem("rubric.weights", "at least one weight must be above 0")


def study_text(path: Path) -> str:
    """The text of a study file, with the rubric that ``rubric.file`` names in its place."""
    return _with_rubric(path, "study file", ("rubric", "file"), "text")


def read_study(path: Path) -> Study:
    """The study in a file."""
    return parse_study(study_text(path), str(path))


def bench_text(path: Path) -> str:
    """The text of a benchmark file, with the rubric whose path is ``rubric`` in its place."""
    return _with_rubric(path, "benchmark file", ("rubric",), "rubric")


def _with_rubric(path: Path, what: str, place: Sequence[str], name: str) -> str:
    """A plan with the content of the rubric whose path stands at a place, under ``name``."""
    text, source = read_text(path, what), str(path)
    file = _value_at(text, source, place)
    if not isinstance(file, str) or not (name == "text" or file.endswith(".toml")):
        return text
    held = read_text(path.parent / file, "rubric")
    judging.parse_rubric(held, source=str(path.parent / file))
    plain = "'''" not in held and held.endswith("\n") and "\r" not in held
    literal = f"'''\n{held}'''" if plain else json.dumps(held, ensure_ascii=False)
    written = rf"\b{place[-1]}\s*=\s*(?:'{re.escape(file)}'|{re.escape(json.dumps(file, ensure_ascii=False))})"
    found, count = re.subn(written, lambda _: f"{name} = {literal}", text)
    if count != 1 or _value_at(found, source, (*place[:-1], name)) != held:
        raise InputError(source, [Problem(".".join(place), f'write it once, as {place[-1]} = "{file}"')])
    return found


def _value_at(text: str, source: str, place: Sequence[str]) -> object:
    value: object = read_toml(text, source)
    for key in place:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def planned_decisions(study: Study, cycles: Sequence[CycleKey]) -> list[Decision]:
    """What will be decided, as far as the plan can know it: who, on which cycle, in which cluster."""
    planned = [(key, spec.name, spec.family, Derivation()) for key in cycles for spec in study.agents]
    for kind, count in study.controls.wanted.items():
        for number, key in enumerate(islice(cycle(cycles), count), start=1):
            planned.append((key, f"{kind}-{number}", study.controls.family, Derivation(kind=kind)))
    found = []
    for key, agent, family, derivation in planned:
        place = Place(study.name, key.regime, key.number, key.context_id)
        one = Decision(
            record_id=place.record_id(agent), episode_id=place.episode, step=1, cluster=place.regime,
            decided_at=NEUTRAL_NOW, context_id=place.context_id, actions=(), rationales=(), format="planned",
            agent=Agent(id=agent if derivation.kind == "honest" else "control", family=family),
            provenance=Provenance(source="the plan"), derivation=derivation,
        )  # fmt: skip
        found.append(one)
    return found


def unknown_model(name: str, models: Mapping[str, Model] | None) -> str | None:
    """Why nobody provides a model, in words; None if somebody does, or nobody is to be asked."""
    if isinstance(models, Models):
        return models.problem(name)
    return None if models is None or name in models else str(UnknownNameError("model", name, tuple(models)))


def agent_problems(place: str, agent: AgentSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """What is wrong with an agent; ``place`` is where the file names it."""
    known, what = reference_agents(), "cannot decide; built-in models that can"
    found = list(_problems(place, agent, models, agent_argument_problems, known, what))
    yield from found
    if is_outside(agent.model) and not any(one.where == f"{place}.model" for one in found):
        said = [name for name in ("seed", "temperature", "effort") if getattr(agent, name) is not None]
        yield from (Problem(f"{place}.{name}", "is not sent to an agent of its own; leave it out") for name in said)


def absent_problems(place: str, agent: AgentSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """That an agent of one's own does not answer: nobody at its address, or its callable cannot be imported."""
    if models is None or not is_outside(agent.model) or unknown_model(agent.model, models) is not None:
        return
    try:
        check_ready(models[agent.model], agent.args)
    except ModelError as exc:
        yield Problem(f"{place}.model", str(exc))


def judge_problems(place: str, judge: JudgeSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """What is wrong with a judge of single decisions; nothing with a person."""
    return iter(()) if judge.human else _problems(place, judge, models, argument_problems)


def season_judge_problems(place: str, judge: JudgeSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """What is wrong with a judge of seasons; nothing with a person."""
    what = "cannot read whole records; reference models that can"
    given = (place, judge, models, season_argument_problems, SEASON_PLANTED, what)
    return iter(()) if judge.human else _problems(*given)


def _problems(
    place: str, asked: AgentSpec | JudgeSpec, models: Mapping[str, Model] | None,
    argument_problems: Callable[[str, Mapping[str, Any]], Iterable[str]], known: Iterable[str] | None = None,
    what: str = "",
) -> Iterator[Problem]:  # fmt: skip
    """That nobody has a model, that it is built in and none of those ``known`` here, or what its arguments lack."""
    model = asked.model
    if (unknown := unknown_model(model, models)) is not None:
        yield Problem(f"{place}.model", unknown)
    elif known is not None and model.startswith("reference/") and model not in (names := sorted(known)):
        yield Problem(f"{place}.model", f"{model} {what}: {', '.join(names)}")
    else:
        found = (*argument_problems(model, asked.args), *provider_argument_problems(model, asked.args))
        yield from (Problem(f"{place}.args", one) for one in found)
