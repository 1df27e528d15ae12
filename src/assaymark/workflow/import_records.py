"""`assaymark import`: other people's files into a run folder, source bytes and all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from assaymark.engine import Ledger
from assaymark.errors import InputError, PlanError, Problem
from assaymark.importers import ImportReport, import_human, importer
from assaymark.judging import load_rubric
from assaymark.judging.season.scoring import HIGHEST
from assaymark.prompting.texts import flagged
from assaymark.protocol import parse_study
from assaymark.records import Context, Decision, Judgment, Outcome, sha256_text
from assaymark.workflow.lock import FORMAT as STUDY_LOCK
from assaymark.workflow.run_folder import RunFolder, missing, new_folder, read_lock, read_text, require_version_2
from assaymark.workflow.tables import CONTEXTS, DECISIONS, HUMAN, OUTCOMES, Store, content_digest
from assaymark.workflow.track import Progress, silent
from assaymark.workflow.tracks.season_lock import is_season, stored_season
from assaymark.workflow.tracks.season_material import material_of
from assaymark.workflow.tracks.season_plan import period_of
from assaymark.workflow.tracks.season_record_tables import TIMES

if TYPE_CHECKING:
    from assaymark.workflow.tables import Table
    from assaymark.workflow.tracks.season_lock import StoredSeason


def import_records(
    format: str, path: Path, folder: RunFolder, *, keep_going: bool = False, progress: Progress = silent
) -> ImportReport:
    """Read the files of a format below ``path`` into a run folder."""
    chosen = importer(format)
    if not path.exists():
        raise missing(path, "folder", f"give the one that holds {', '.join(chosen.patterns)}")
    data = {name: _bytes(path / name) for name in chosen.files(path)}
    imported = chosen.read(data, keep_going=keep_going, progress=progress)
    if not imported.decisions:
        raise InputError(str(path), [Problem("", "no decision could be imported"), *imported.report.problems])
    require_version_2(folder)
    with new_folder(folder.path):
        with Ledger.open(folder.ledger) as ledger:
            for name, raw in data.items():
                ledger.add_source(name, raw, format)
        store_records(folder, imported.decisions, imported.contexts, imported.outcomes)
    return imported.report


def import_grades(folder: RunFolder, path: Path, *, rubric: str = "v1.0") -> int:
    """Read what people graded into a run folder, beside the records that they graded; returns the number of grades."""
    folder.require()
    require_version_2(folder)
    store = Store(folder)
    data, season = _bytes(path), is_season(folder)
    if not season:
        records = {row["record_id"] for row in store.columns(DECISIONS, "record_id")}
        names, graders = load_rubric(rubric).names, _graders(folder)
        grades = import_human(path.name, data, records=records, dimensions=names, rubric=rubric, graders=graders)
    else:
        grades = _season_grades(stored_season(folder), store, path, data)
    made = HUMAN.to_arrow(grades)
    basis: dict[str, str | None] = {"grades": content_digest(made)}
    if store.done(HUMAN, basis):
        return len(grades)
    if not season and folder.lock.is_file() and not _locked_on(folder, {HUMAN: made}):
        raise PlanError(
            f"{folder.path} holds a plan that is locked on other grades; import these into a new run folder"
        )
    with Ledger.open(folder.ledger) as ledger:
        ledger.add_source(path.name, data, "human")
    store.write_arrow(HUMAN, made, basis)
    return len(grades)


def _season_grades(stored: StoredSeason, store: Store, path: Path, data: bytes) -> tuple[Judgment, ...]:
    """What people of the panel gave whole records (``AGENT``) and periods (``AGENT/2024-W09``)."""
    season = stored.season
    people = [one.name for one in season.panel if one.human]
    if not people:
        what = 'no judge of the panel is a person ([[panel]] with model = "human/table", family = "human")'
        raise InputError(str(path), [Problem("judge", f"{what}, so these grades would count nowhere")])
    rows = [(row["agent"], row["day"]) for row in store.columns(TIMES, "agent", "day")] if store.rows(TIMES) else []
    plan = season.scoring_plan if not rows else material_of(store, stored).scoring
    return import_human(
        path.name,
        data,
        records={agent for agent, _ in rows}
        | {f"{agent}/{period_of(day, season.judging.period)}" for agent, day in rows},
        dimensions=[part.name for part in (*plan.reasoning, *plan.evidence)],
        rubric=plan.grader,
        scale=(0, HIGHEST),
        optional=("data_reliability", "outcome", *(part.name for part in plan.not_applicable)),
        graders=people,
    )


def _graders(folder: RunFolder) -> list[str] | None:
    """The human graders of the study that is locked here; None where there is none."""
    if not folder.lock.is_file() or read_lock(folder).get("format") != STUDY_LOCK:
        return None
    study = parse_study(read_text(folder.plan, "plan"), source=str(folder.plan))
    return [judge.name for judge in study.judges if judge.human]


def store_records(
    folder: RunFolder, decisions: Iterable[Decision], contexts: Mapping[str, Context], outcomes: Iterable[Outcome]
) -> None:
    """Write the three tables of imported records; the same records again change nothing."""
    store = Store(folder)
    made: dict[Table[Any], pa.Table] = {
        CONTEXTS: CONTEXTS.to_arrow(contexts.values()),
        DECISIONS: DECISIONS.to_arrow(map(flagged, decisions)),
        OUTCOMES: OUTCOMES.to_arrow(outcomes),
    }
    basis = {"records": sha256_text("\n".join(content_digest(arrow) for arrow in made.values()))}
    if all(store.done(table, basis) for table in made):
        return
    if folder.lock.is_file() and not _locked_on(folder, made):
        raise PlanError(
            f"{folder.path} holds a plan that is locked on other records; import these into a new run folder"
        )
    for table, arrow in made.items():
        store.write_arrow(table, arrow, basis)


def _locked_on(folder: RunFolder, made: Mapping[Table[Any], pa.Table]) -> bool:
    """Whether these are the records that the plan was locked on: they may then be written again."""
    locked = read_lock(folder).get("tables")
    if locked is None:  # a season or a benchmark makes its own records: none may take their place
        return False
    return all(content_digest(arrow) == locked[table.name] for table, arrow in made.items() if table.name in locked)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise InputError(str(path), [Problem("", f"cannot be read: {exc.strerror or exc}")]) from None
