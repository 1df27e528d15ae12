"""The random sample that people grade, stored before the first grade, and their grades."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import assaymark.engine as engine
from assaymark.errors import InputError, LedgerError, PlanError, Problem
from assaymark.metrology.measure_people import FEWEST_DOUBLE, Labels
from assaymark.plan import Human
from assaymark.records import (
    AGGREGATE,
    JSON,
    Decision,
    canonical_json,
    content_id,
    grouped,
    parse,
    sha256_text,
    write_atomic,
)
from assaymark.workflow.run_folder import RunFolder, missing, read_text
from assaymark.workflow.tables import RecordTable, Store, column_specs

if TYPE_CHECKING:
    from assaymark.importers.scores import ScoresRead

_NOTE: Final = "draw"
_FILE: Final = "draw.json"

SHEETS: Final = "sheets.json"
"""The file of `GradingSheets`, below the labels of a run."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A stored random sample of cycles: sampling frame, drawn units, seed, probabilities, and time (UTC)."""

    frame: tuple[str, ...]  # every cycle, sorted
    frame_sha256: str
    strata: Mapping[str, str]  # the cluster of each
    seed: int
    units: tuple[str, ...]  # the drawn cycles in grading order
    pi: Mapping[str, float]  # the probability of each cycle of the frame to be drawn
    twice: tuple[str, ...]  # the drawn cycles that two people grade
    at: str


@dataclass(frozen=True, slots=True)
class HumanGrade:
    """The grade of one person for one text on one dimension, its time (UTC), and the seconds it took if measured."""

    trajectory: str
    cycle: str
    grader: str
    dimension: str
    score: float | None  # None: could not say
    at: str
    seconds: float | None = None
    comment: str = ""


LABELS: Final = RecordTable(
    "labels", HumanGrade, column_specs("trajectory cycle grader dimension score:float at seconds:float comment"),
    sort=lambda row, _: (row.trajectory, row.grader, row.dimension), flat=True,
)  # fmt: skip
"""Grades of people outside the panel, which anchor its claims. The table ``human`` has those of people on the panel."""


def draw_sample(
    cycles: Mapping[str, str], number: int, *, seed: int, twice: float = 0.2, agents_a_cycle: int, at: str
) -> Draw:
    """Draw ``number`` of ``cycles`` (cycle: cluster) at random within clusters, each with the same probability."""
    problems = []
    if not 1 <= number <= len(cycles):
        problems.append(Problem("--sample", f"must be 1 to {len(cycles)}, the cycles that there are (got {number})"))
    if not 0 <= twice <= 1:
        problems.append(Problem("--double", f"must be a share from 0 to 1 (got {twice})"))
    if agents_a_cycle < 1:
        problems.append(Problem("agents", f"a cycle needs at least one agent to grade (got {agents_a_cycle})"))
    if problems:
        raise InputError("draw", problems)
    frame, double = tuple(sorted(cycles)), 0
    units = _draw_units(frame, cycles, number, seed)
    if twice:  # enough for `FEWEST_DOUBLE` records with two graders
        double = min(number, max(math.ceil(twice * number - 1e-9), math.ceil(FEWEST_DOUBLE / agents_a_cycle)))
    return Draw(
        frame, sha256_text(canonical_json(frame)), {name: cycles[name] for name in frame},
        seed, units, dict.fromkeys(frame, number / len(frame)),
        tuple(units[k * number // double] for k in range(double)), at,
    )  # fmt: skip


def _draw_units(frame: Sequence[str], strata: Mapping[str, str], number: int, seed: int) -> tuple[str, ...]:
    """Return the drawn cycles in random order; any program can repeat the draw, because all randomness is sha256."""

    def place(kind: str, name: str) -> int:
        return int.from_bytes(hashlib.sha256(canonical_json([seed, kind, name]).encode()).digest())

    of_cluster, chosen = grouped(frame, strata.__getitem__), list[str]()
    # Shares are integers, in parts of which len(frame) make a cycle; the remainders of the clusters are sampled
    # systematically, in random order from a random start, so that each is drawn with the probability of its remainder.
    passed = place("start", "") % len(frame)
    for cluster in sorted(of_cluster, key=lambda name: place("cluster", name)):
        size, rest = divmod(number * len(of_cluster[cluster]), len(frame))
        passed += rest
        if passed >= len(frame):
            passed, size = passed - len(frame), size + 1
        chosen += sorted(of_cluster[cluster], key=lambda name: place("cycle", name))[:size]
    return tuple(sorted(chosen, key=lambda name: place("order", name)))


def redraw(draw: Draw) -> tuple[str, ...]:
    """Return the units of a draw, drawn again from its frame and seed."""
    return _draw_units(draw.frame, draw.strata, len(draw.units), draw.seed)


def store_draw(folder: RunFolder, draw: Draw) -> Draw:
    """Store a draw before anything is graded, in the ledger or, for a table, in a file; returns the stored one."""
    if not folder.path.is_dir():
        raise missing(folder.path, "run folder")
    if (earlier := stored_draw(folder)) is not None:
        if replace(earlier, at=draw.at) == draw:
            return earlier
        drawn = f"{folder.path}: {len(earlier.units)} cycles were drawn {earlier.at} and"
        if count := len(stored_grades(folder)):
            raise PlanError(f"{drawn} {count} grades given; a second draw would choose among labels. "
                            "Grade what was drawn, or start a new run folder")  # fmt: skip
        if grading_begun(folder):
            raise PlanError(f"{drawn} dealt out to graders, whose work a second draw would lose. "
                            f"Grade what was drawn, or delete {folder.labels} if none has begun")  # fmt: skip
    text = canonical_json(draw)
    if folder.has_ledger:
        with engine.Ledger.open(folder.ledger, create=False) as ledger:
            ledger.notes.set(_NOTE, text)
    else:
        write_atomic(folder.path / _FILE, canonical_json([text, content_id(text)]))
    return draw


def grading_begun(folder: RunFolder) -> bool:
    """True if graders were given files, or gave labels on the page."""
    sheets = stored_sheets(folder)
    return any(folder.labels.glob("*.jsonl")) or (sheets is not None and sheets.handed)


def refuse_other_cycles(folder: RunFolder, clusters: Mapping[str, str]) -> None:
    """Raise `PlanError` if people grade a draw from other cycles (cycle: cluster) in this folder."""
    draw = stored_draw(folder)
    if draw is not None and dict(draw.strata) != dict(clusters) and (grading_begun(folder) or stored_grades(folder)):
        raise PlanError(
            f"{folder.path}: people grade {len(draw.units)} of {len(draw.frame)} other cycles here, drawn {draw.at}; "
            "give this table its own folder (assaymark check --out)"
        )


def stored_draw(folder: RunFolder) -> Draw | None:
    """Return the draw of a run or a table; None if there is none. Raises `LedgerError` if it is damaged."""
    if folder.has_ledger:
        with engine.Ledger.open(folder.ledger, create=False) as ledger:
            text, origin = ledger.notes.get(_NOTE), str(folder.ledger)
        if text is None:
            return None
    else:
        path = folder.path / _FILE
        if not path.is_file():
            return None
        origin = str(path)
        try:
            text, seal = parse(tuple[str, str], read_text(path, "draw"), source=origin)
        except InputError:
            text, seal = "", ""
        if content_id(text) != seal:
            raise LedgerError(f"{path} is damaged or was edited; restore it from a copy")
    return parse(Draw, text, source=origin)


def store_grades(folder: RunFolder, grades: Sequence[HumanGrade]) -> int:
    """Add grades to the stored ones; the last of a grader for a text and dimension counts. Returns their number now."""
    if wrong := [grade for grade in grades if zoned_time(grade.at) is None]:
        needed = "must be a time with its zone, such as 2025-03-01T12:00Z"
        problems = (Problem(f"{grade.trajectory} by {grade.grader}", f"{needed} (got {grade.at!r})") for grade in wrong)
        raise InputError("grades", problems)
    by_key: dict[tuple[str, str, str], HumanGrade] = {}
    for label in sorted((*stored_grades(folder), *grades), key=lambda grade: zoned_time(grade.at) or datetime.max):
        by_key[label.trajectory, label.grader, label.dimension] = label
    Store(folder).write(LABELS, by_key.values(), {"draw": content_id(stored_draw(folder))})
    return len(by_key)


def zoned_time(text: str) -> datetime | None:
    """Parse a time with its zone; None if it is not one."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if parsed.utcoffset() is None else parsed


def stored_grades(folder: RunFolder) -> tuple[HumanGrade, ...]:
    """Return the stored grades of people, sorted by trajectory, grader and dimension."""
    return tuple(Store(folder).stored(LABELS))


@dataclass(frozen=True, slots=True)
class GoldText:
    """A text with known grades, mixed in as a check; ``answers`` are the hashes of its grades by dimension."""

    text: str
    material: str
    answers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GradingSheets:
    """The assignment of a draw's texts to graders; only this file maps the random ids to texts (cycle, trajectory)."""

    draw: str
    run: str  # names the draw in files
    key: str  # orders the texts of each grader
    salt: str  # goes into hashes
    graders: tuple[str, ...]
    cycles: Mapping[str, tuple[str, ...]]
    ids: Mapping[str, tuple[str, str]]
    gold: Mapping[str, GoldText] = field(default_factory=dict)
    handed: bool = False  # whether files were written


def stored_sheets(folder: RunFolder) -> GradingSheets | None:
    """Return the assignment of texts to graders; None if none was made."""
    path = folder.labels / SHEETS
    return parse(GradingSheets, read_text(path, "sheets of labels"), source=str(path)) if path.is_file() else None


def label_log(folder: RunFolder, grader: str) -> Path:
    """The file of one grader's labels, one JSON line each, written at once."""
    return folder.labels / f"{grader}.jsonl"


def current_labels(folder: RunFolder, sheets: GradingSheets, grader: str) -> dict[str, dict[str, JSON]]:
    """Return the current labels of one grader by id; a line cut off by a kill was never confirmed and is skipped."""
    path, labels = label_log(folder, grader), dict[str, dict[str, JSON]]()
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():
        with suppress(ValueError):
            label = json.loads(line)
            labels[str(label.pop("id"))] = label
    return {name: label for name, label in labels.items() if name in sheets.ids or name in sheets.gold}


def store_labels(folder: RunFolder) -> int:
    """Store every label of the pages as a grade; returns how many grades are new, changed or withdrawn."""
    sheets = stored_sheets(folder)
    if sheets is None or sheets.draw != content_id(stored_draw(folder)):
        return 0
    stored = {(grade.trajectory, grade.grader, grade.dimension): grade for grade in stored_grades(folder)}
    before: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for trajectory, grader, dimension in stored:
        before[trajectory, grader][dimension] = None
    new = []
    for grader in sheets.graders:
        for name, label in current_labels(folder, sheets, grader).items():
            cycle, trajectory = sheets.ids.get(name, ("", ""))
            for dimension, score in (before[trajectory, grader] | label["scores"]).items() if trajectory else ():
                grade = HumanGrade(
                    trajectory, cycle, grader, dimension,
                    score=None if score is None else float(score), at=label["at"], seconds=label.get("seconds"),
                    comment=label.get("comment", ""),
                )  # fmt: skip
                if stored.get((trajectory, grader, dimension)) != grade:
                    new.append(grade)
    if new:
        store_grades(folder, new)
    return len(new)


def labels_of(folder: RunFolder, records: Mapping[str, tuple[str, str]], clusters: Mapping[str, str]) -> Labels | None:
    """Return the grades of a run's records (cycle, agent) with their sampling design; None if there are none."""
    grades, draw = stored_grades(folder), stored_draw(folder)
    if not grades:
        return None
    scores: defaultdict[tuple[str, str], defaultdict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for grade in grades:
        if grade.score is not None and grade.trajectory in records:
            scores[records[grade.trajectory]][grade.grader][grade.dimension] = grade.score
    if draw is None:
        return Labels(scores, refused="no draw was stored before the first grade")
    return Labels(scores, draw.pi, frozenset(draw.units), draw_problem(draw, [grade.at for grade in grades], clusters),
                  f"drawn {draw.at} with seed {draw.seed}")  # fmt: skip


def draw_problem(draw: Draw, times: Sequence[str], clusters: Mapping[str, str]) -> str:
    """Return why grades given at these times are not a random sample of these cycles; empty if they are."""
    begun = zoned_time(draw.at)
    if dict(draw.strata) != dict(clusters) or draw.frame_sha256 != sha256_text(canonical_json(draw.frame)):
        return f"the draw is of {len(draw.frame)} other cycles"
    if redraw(draw) != draw.units:
        return "the draw does not follow from its seed"
    first = min((when for time in times if (when := zoned_time(time)) is not None), default=None)
    if begun is None or (first is not None and first <= begun):
        return f"the first grade ({first.isoformat() if first else 'undated'}) is not later than the draw ({draw.at})"
    return ""


@dataclass(frozen=True, slots=True)
class SamplingFrame:
    """The texts that people can grade: (cycle, agent) by trajectory, cluster by cycle, and the plan of the grading."""

    records: Mapping[str, tuple[str, str]]
    clusters: Mapping[str, str]
    dimensions: tuple[str, ...]
    scale: tuple[float, float]
    seed: int
    plan: Human
    graded: bool = False


def honest_records(decisions: Iterable[Decision]) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Return cycle and agent of each honest decision of replicate 1, and the cluster of each cycle."""
    first = [decision for decision in decisions if decision.derivation.kind == "honest" and decision.replicate == 1]
    return {row.record_id: (row.cycle, row.agent.id) for row in first}, {row.cycle: row.cluster for row in first}


def records_of_scores(read: ScoresRead) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Return cycle and agent of each honest answer of replicate 1, and the cluster of each cycle."""
    table = read.table.to_pydict()
    cycles = table.get("cycle", table["trajectory"])
    rows = [k for k, kind in enumerate(table.get("derivation", ["honest"] * len(cycles))) if kind == "honest"]
    rows = [k for k in rows if str(table.get("replicate", ["1"] * len(cycles))[k]) == "1"]
    return (
        {table["trajectory"][k]: (cycles[k], table["agent"][k]) for k in rows},
        {cycles[k]: table["cluster"][k] for k in rows},
    )


def people_of_scores(read: ScoresRead, folder: RunFolder | None, source: str) -> Labels | None:
    """Return the grades of people from the table's own columns and a run folder, with the design of their sample."""
    from assaymark.importers.roles import HUMAN

    if not read.people and (folder is None or not stored_grades(folder)):
        return None
    records, clusters = records_of_scores(read)
    labels = None if folder is None else labels_of(folder, records, clusters)
    if not read.people:
        return labels
    stored = {} if labels is None else labels.grades
    grades = {key: {person: dict(scores) for person, scores in by_grader.items()} for key, by_grader in stored.items()}
    for trajectory, ratings in read.people.items():
        for (column, criterion), score in ratings.items():
            # ``human_ab`` graded overall, ``human_ab_risk`` or ``human_risk`` a criterion.
            grader, dimension = column[len(HUMAN) :] if column.lower().startswith(HUMAN) else column, AGGREGATE
            if (suffix := next((one for one in read.dimensions if f"_{grader}".endswith(f"_{one}")), None)) is not None:
                grader = "people" if grader == suffix else grader.removesuffix(f"_{suffix}")
                dimension = suffix if len(read.dimensions) > 1 else AGGREGATE
            if trajectory in records:
                each = grades.setdefault(records[trajectory], {}).setdefault(grader, {})
                each[criterion or dimension] = score
    drawn = None if folder is None else stored_draw(folder)
    if drawn is None and labels is None and read.pi:
        return Labels(grades, read.pi, design=f"probabilities fixed by {read.pi_by}")
    if drawn is None:
        return Labels(grades, refused="no draw was stored before the first grade, and no column has probabilities")
    reason = "a frame in memory has no time of its grades"
    if Path(source).is_file():
        written = datetime.fromtimestamp(Path(source).stat().st_mtime, UTC).isoformat()
        reason = draw_problem(drawn, [written], clusters)
    reason = reason if labels is None else labels.refused or reason
    return Labels(grades, drawn.pi, frozenset(drawn.units), reason, f"drawn {drawn.at} with seed {drawn.seed}")


def people_basis(folder: RunFolder) -> str | None:
    """The digest of grades and draw, for measurements made from them; None if nobody graded."""
    labels = Store(folder).content(LABELS)
    return None if labels is None else content_id([labels, stored_draw(folder)])
