"""The texts of a run that people grade: from its records or its table, blinded as a judge's prompt is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assaymark.errors import InputError, PlanError, Problem
from assaymark.importers.roles import Wanted
from assaymark.importers.scores import read_scores
from assaymark.importers.tables import read_rows
from assaymark.judging import anonymise, blinding_names
from assaymark.judging.prompts import people_blocks
from assaymark.prompting.fences import cells
from assaymark.protocol import Study
from assaymark.records import Agent, Decision
from assaymark.report.label import Question, Section
from assaymark.rows import Rows
from assaymark.workflow.check import is_table, open_checked
from assaymark.workflow.lock import open_locked
from assaymark.workflow.run_folder import RunFolder, missing
from assaymark.workflow.tables import DECISIONS, Store
from assaymark.workflow.track import select

_MATERIAL: Final = ("material", "context", "prompt", "question", "input", "passage", "task")
_PAIRS: Final = ("situation", "stated")
_TABLES: Final = ("actions", "constraints", "instruments", "holdings")

Shown = list[tuple[tuple[Section, ...], dict[str, tuple[Section, ...]]]]
"""A cycle as people see it: material, and the texts that belong to it by trajectory."""


@dataclass(frozen=True, slots=True)
class Texts:
    """What people can grade: the cluster and the texts of each cycle, the questions, and how cycles are shown."""

    study: Study
    clusters: Mapping[str, str]
    members: Mapping[str, tuple[str, ...]]
    scale: tuple[int, int]
    questions: tuple[Question, ...]
    instructions: str
    names: tuple[str, ...]
    show: Callable[[Collection[str]], Mapping[str, Shown]]


def open_texts(folder: RunFolder) -> Texts:
    """The texts of a locked run, from its records, or of a checked table, from its text column."""
    return _of_table(folder) if is_table(folder) else _of_study(folder)


def _of_study(folder: RunFolder) -> Texts:
    locked, store = open_locked(folder), Store(folder)
    study, rubric, every = locked.study, locked.rubric, store.read(DECISIONS)
    judges = (Agent(id=one.name, family=one.family, model=one.model.partition("/")[2]) for one in study.judges)
    names = blinding_names([*(one.agent for one in every), *judges])
    of_cycle: defaultdict[str, list[Decision]] = defaultdict(list)
    for one in select(every, study).honest:
        if one.replicate > 1:  # the first counts
            continue
        of_cycle[one.cycle].append(one)

    def show(cycles: Collection[str]) -> Mapping[str, Shown]:
        wanted = {one.context_id for cycle in cycles for one in of_cycle[cycle]}
        found: defaultdict[str, Shown] = defaultdict(list)
        for context_id, context in store.each_context():
            if context_id not in wanted:
                continue
            members = [one for one in every if one.context_id == context_id]
            material, texts = people_blocks(members, context, names, study.records.keep_names)
            sections = {name: tuple(_section(*block) for block in blocks) for name, blocks in texts.items()}
            for cycle in cycles:
                here = [one.record_id for one in of_cycle[cycle] if one.context_id == context_id]
                if here:
                    found[cycle].append(
                        (tuple(_section(*one) for one in material), {one: sections[one] for one in here})
                    )
        return found

    return Texts(
        study, {cycle: ones[0].cluster for cycle, ones in of_cycle.items()},
        {cycle: tuple(one.record_id for one in ones) for cycle, ones in of_cycle.items()}, rubric.scale,
        tuple(Question(one.name, one.title or _title(one.name), one.question,
                       tuple(zip(one.at, one.anchors, strict=True))) for one in rubric.dimensions),
        rubric.instructions or "", names, show,
    )  # fmt: skip


def _section(label: str, text: str) -> Section:
    """A headed part of a prompt as people read it: what has a head and cells becomes a table."""
    rows = tuple(tuple(cells(line)) for line in text.split("\n")) if label in (*_TABLES, *_PAIRS) else ()
    if label in _PAIRS:
        text = "\n".join(": ".join(row[row[0] == "value" :]) for row in rows)
    elif len(rows) > 1 and len({len(row) for row in rows}) == 1:
        return _title(label), rows
    return _title(label), text


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _of_table(folder: RunFolder) -> Texts:
    checked = open_checked(folder)
    view, path = checked.read, Path(checked.read.source)
    if "text" not in view.roles or view.shape.startswith("pairs"):
        what = "no column holds the texts of single answers (text, response, answer, output, completion are known)"
        remedy = f"name it with: assaymark check {view.source} --map text=COLUMN --out {folder.path}"
        elsewhere = f"or draw the sample with: assaymark draw {folder.path}, and grade elsewhere"
        raise InputError(view.source, [Problem("header", f"{what}; {remedy}, {elsewhere}")])
    if not path.exists():
        raise missing(path, "score table", "the texts to grade are in it")
    rows = read_rows(path)
    if rows.sha256 != view.sha256:
        raise PlanError(f"{path} changed since it was checked; run: assaymark check {path} --out {folder.path}")
    low, high = (round(one) for one in view.scale)
    if (low, high) != view.scale:
        what = f"people grade in whole points, and the scale is {view.scale[0]:g}..{view.scale[1]:g}"
        raise InputError(view.source, [Problem("scale", what)])
    named = view.dimensions if "dimension" in view.roles or view.shape == "one column a criterion" else None
    columns = tuple(one.name for one in checked.study.judges) if view.shape == "one column a judge" else None
    found = read_scores(rows, Wanted(roles=view.roles, scale=view.scale, dimensions=named, judges=columns))
    table = found.table.to_pydict() | {"text": _cells(rows, view.roles["text"], found.row)}
    material = _material(rows, view.roles, found.row)
    trajectories, cycles = table["trajectory"], table.get("cycle") or table["trajectory"]
    clusters: dict[str, str] = {}
    of_cycle: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    problems = []
    for k, (name, cycle, text) in enumerate(zip(trajectories, cycles, table["text"], strict=True)):
        if table.get("derivation", ("honest",) * len(trajectories))[k] != "honest":
            continue
        clusters[cycle] = table["cluster"][k]
        earlier = of_cycle[cycle].setdefault(name, (text, material[k]))[0]
        if text and earlier and text != earlier:
            problems.append(
                Problem(rows.where(int(found.row[k])), f"another text for {name!r:.80} than in a row before")
            )
        if text and not earlier:
            of_cycle[cycle][name] = (text, material[k])
    if problems:
        raise InputError(view.source, problems)
    judges = [Agent(id=name, family=family) for name, family in found.families.items()]
    made = table.get("agent_family") or table["agent"]
    agents = [Agent(id=name, family=maker) for name, maker in sorted({*zip(table["agent"], made, strict=True)})]
    names = blinding_names([*agents, *judges])

    def show(cycles: Collection[str]) -> Mapping[str, Shown]:
        shown: dict[str, Shown] = {}
        for cycle in cycles:
            groups: defaultdict[str, dict[str, tuple[Section, ...]]] = defaultdict(dict)
            for name, (text, given) in of_cycle[cycle].items():
                groups[given][name] = (("", anonymise(text, names).text or "(no text)"),)
            shown[cycle] = [
                ((("", anonymise(given, names).text),) if given else (), texts) for given, texts in groups.items()
            ]
        return shown

    hint = f"{low} is the lowest grade, {high} the highest."
    return Texts(
        checked.study, clusters, {cycle: tuple(texts) for cycle, texts in of_cycle.items()}, (low, high),
        tuple(Question(one, _title(one), hint) for one in found.dimensions), "", names, show,
    )  # fmt: skip


def _cells(rows: Rows, column: str, row: Any) -> list[str]:
    """A column as text, at some rows."""
    values = rows.column(column).to_pylist()
    return ["" if values[k] is None else str(values[k]) for k in row.tolist()]


def _material(rows: Rows, roles: Mapping[str, str], row: Any) -> list[str]:
    """What the answers are to: a column of that name; one that names the items only if it holds sentences."""
    taken = {part for role, column in roles.items() if role != "item" for part in column.split("+")}
    for name in _MATERIAL:
        for column in rows.table.column_names:
            if column.strip().lower() == name and column not in taken:
                values = _cells(rows, column, row)
                if any(" " in text for text in values):
                    return values
    return [""] * len(row)
