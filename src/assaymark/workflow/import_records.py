"""`assaymark import`: read files of another tool into a run folder, and keep their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from assaymark.engine import Ledger
from assaymark.errors import InputError, PlanError, Problem
from assaymark.importers import ImportReport, import_human, importer
from assaymark.judging import find_rubric
from assaymark.prompting import with_flags
from assaymark.protocol import parse_study
from assaymark.records import AGGREGATE, Context, Decision, Outcome, sha256_text
from assaymark.workflow.progress import watching
from assaymark.workflow.run_folder import RunFolder, missing, new_folder, read_lock, read_text
from assaymark.workflow.tables import CONTEXTS, DECISIONS, HUMAN, OUTCOMES, RecordTable, Store, content_digest


def import_records(format: str, path: Path, folder: RunFolder, keep_going: bool = False) -> ImportReport:
    """Read the files of a format below ``path`` into a run folder; returns the report of the import."""
    chosen = importer(format)
    if not path.exists():
        raise missing(path, "folder", f"give the one that holds {', '.join(chosen.patterns)}")
    base, names = (path, chosen.files(path)) if not path.is_file() else (path.parent, chosen.wanted([path.name]))
    if not names:
        raise InputError(str(path), [f"is not a {format} file: {', '.join(chosen.patterns)}"])
    data = {name: _read_bytes(base / name) for name in names}
    imported = chosen.read(data, keep_going=keep_going, progress=watching())
    if not imported.decisions:
        raise InputError(str(path), ["no decision could be imported", *imported.report.problems])
    read_lock(folder)
    with new_folder(folder.path):
        # first, because a plan that is locked on other records refuses them before anything is written
        store_records(folder, imported.decisions, imported.contexts, imported.outcomes, imported.texts)
        with Ledger.open(folder.ledger) as ledger:
            for name, raw in data.items():
                ledger.add_source(name, raw, format)
    return imported.report


def import_grades(folder: RunFolder, path: Path, rubric: str = "v1.0") -> int:
    """Read grades of people into the run folder of the records that they graded; returns the number of grades."""
    # imported here, because importing records does not need them
    from assaymark.claims.season_plan import period_of
    from assaymark.importers.human import import_labels
    from assaymark.judging.season.scoring import HIGHEST
    from assaymark.workflow.human_labels import HumanGrade, store_grades, stored_draw
    from assaymark.workflow.labelling import frame_of
    from assaymark.workflow.lock import STUDY
    from assaymark.workflow.tracks.season_facts import season_material
    from assaymark.workflow.tracks.season_lock import is_season, stored_season
    from assaymark.workflow.tracks.season_records import TIMES

    folder.require()
    read_lock(folder)
    store = Store(folder)
    data, season = _read_bytes(path), is_season(folder)
    beside = data.startswith(b"PAR1") or b"time" in data.split(b"\n", 1)[0]
    if season and beside and any(judge.human for judge in stored_season(folder).season.panel):
        beside = AGGREGATE.encode() in data  # people on the panel grade parts of the scoring plan
    if beside and stored_draw(folder) is not None:
        frame = frame_of(folder, rubric)
        cycles = {name: cycle for name, (cycle, _) in frame.records.items()}
        dimensions = dict.fromkeys((*frame.dimensions, AGGREGATE))
        labels = import_labels(path.name, data, cycles, dimensions, frame.scale)
        store_grades(folder, [HumanGrade(**grade) for grade in labels])
        return len(labels)
    if season:
        # Grades of people on the panel for whole records (`AGENT`) and periods (`AGENT/2024-W09`).
        stored = stored_season(folder)
        played = stored.season
        people = [judge.name for judge in played.panel if judge.human]
        if not people:
            problem = 'no judge of the panel is a person ([[panel]] with model = "human/table", family = "human")'
            then = "to compare the judges with people, first draw what these grade (assaymark draw)"
            raise InputError(str(path), [Problem("judge", f"{problem}, so these grades would count nowhere; {then}")])
        rows = [(row["agent"], row["day"]) for row in store.columns(TIMES, "agent", "day")] if store.rows(TIMES) else []
        plan = played.scoring_plan if not rows else season_material(folder, stored).scoring
        periods = {f"{agent}/{period_of(day, played.judging.period)}" for agent, day in rows}
        grades = import_human(
            path.name, data, records={agent for agent, _ in rows} | periods, rubric=plan.grader, scale=(0, HIGHEST),
            dimensions=[part.name for part in (*plan.reasoning, *plan.evidence)], graders=people,
            optional=("data_reliability", "outcome", *(part.name for part in plan.not_applicable)),
        )  # fmt: skip
    else:
        records, graders = {row["record_id"] for row in store.columns(DECISIONS, "record_id")}, None
        if STUDY.holds(folder):
            study = parse_study(read_text(folder.plan, "plan"), source=str(folder.plan))
            graders = [judge.name for judge in study.judges if judge.human]
        wanted = find_rubric(rubric)
        grades = import_human(path.name, data, records, wanted.names, wanted.version, wanted.scale, graders=graders)
    table = HUMAN.to_arrow(grades)
    basis: dict[str, str | None] = {"grades": content_digest(table)}
    if store.done(HUMAN, basis):
        return len(grades)
    if not season:
        _require_locked_on(folder, {HUMAN: table}, "grades")
    with Ledger.open(folder.ledger) as ledger:
        ledger.add_source(path.name, data, "human")
    store.write_arrow(HUMAN, table, basis)
    return len(grades)


def import_named_grades(folder: RunFolder, named: str | None, *, anchor: bool = False) -> None:
    """Read the file of grades that a plan names, if it exists: below the run folder, or at the path as written."""
    from assaymark.workflow.human_labels import stored_draw

    places = [] if named is None or (anchor and stored_draw(folder) is None) else [folder.path / named, Path(named)]
    if (path := next((place for place in places if place.is_file()), None)) is not None:
        import_grades(folder, path)


def store_records(
    folder: RunFolder, decisions: Iterable[Decision], contexts: Mapping[str, Context], outcomes: Iterable[Outcome],
    texts: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Write the three tables of imported records; ``texts`` as in `Imported`. Repeating it changes nothing."""
    store = Store(folder)
    arrows: dict[RecordTable[Any], pa.Table] = {
        CONTEXTS: CONTEXTS.to_arrow(contexts.values(), map((texts or {}).get, contexts)),
        DECISIONS: DECISIONS.to_arrow(map(with_flags, decisions)), OUTCOMES: OUTCOMES.to_arrow(outcomes),
    }  # fmt: skip
    basis = {"records": sha256_text("\n".join(content_digest(arrow) for arrow in arrows.values()))}
    if all(store.done(table, basis) for table in arrows):
        return
    _require_locked_on(folder, arrows, "records")
    for table, arrow in arrows.items():
        store.write_arrow(table, arrow, basis)


def _require_locked_on(folder: RunFolder, arrows: Mapping[RecordTable[Any], pa.Table], noun: str) -> None:
    """Raise `PlanError` if a plan is locked on other records than these."""
    if not folder.lock.is_file():
        return
    locked = read_lock(folder).get("tables")  # None for a season or a benchmark, which make their own records
    digests = {table.name: content_digest(arrow) for table, arrow in arrows.items()}
    if locked is None or any(locked.get(name, digest) != digest for name, digest in digests.items()):
        raise PlanError(f"{folder.path} has a plan that is locked on other {noun}; import these into a new run folder")


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise InputError(str(path), [f"cannot be read: {exc.strerror or exc}"]) from None
