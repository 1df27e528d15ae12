"""The verbs that combine others: a whole study, the demo, call planning, and dry runs."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

import assaymark.judging as judging
from assaymark.claims.certification import VerdictFile
from assaymark.engine import CallSpec, Model
from assaymark.engine.prices import Prices
from assaymark.judging import PLANTED, Rubric, pairs
from assaymark.lazy import exported
from assaymark.protocol import JudgeSpec, Study, parse_study
from assaymark.records import Decision
from assaymark.workflow import run_folder as runs
from assaymark.workflow import study_calls
from assaymark.workflow.ask import Forecast, forecast, name_ledger, prices_of
from assaymark.workflow.claim import claim, verification_lines, verify_certificate, verify_run
from assaymark.workflow.lock import (
    Locked,
    check_plan,
    lock,
    lock_lines,
    open_locked,
    planned_decisions,
    prepare,
    probe_calls,
    select,
)  # fmt: skip
from assaymark.workflow.measure import measure
from assaymark.workflow.publish import StudyReport, report, require_decided
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.study_calls import JudgeResult, Scores, decide, judge, work, work_lines
from assaymark.workflow.tables import CYCLES, DECISIONS, MEASUREMENTS, VERDICTS, Store
from assaymark.workflow.tracks import datasheet as sheets_of
from assaymark.workflow.tracks.datasheet import judges_of, log_map, measure_judges, measure_log, tested_by

if TYPE_CHECKING:
    from assaymark.workflow.amend import amend, amendment_lines, reparse
    from assaymark.workflow.import_records import import_grades, import_records
    from assaymark.workflow.plan_calls import CallPlan, plan_calls_lines

__all__ = [
    "JudgeResult", "Locked", "StudyReport", "VerdictFile", "amend", "amendment_lines", "claim", "decide", "demo",
    "finish", "import_grades", "import_records", "judge", "judges_of", "lock", "lock_lines", "log_map", "measure",
    "measure_judges", "measure_log", "name_ledger", "open_locked", "plan_calls", "plan_calls_lines",
    "reparse", "report", "start", "tested_by", "verification_lines", "verify_certificate", "verify_run", "work",
    "work_lines",
]  # fmt: skip

__getattr__ = exported(__name__)


def start(folder: RunFolder, text: str, source: str, now: datetime, models: Mapping[str, Model]) -> Locked:
    """Lock a study as `lock` does, after one trial call to each of its models, whose replies are kept."""
    return lock(folder, text, source, now, models, lambda study: study_calls.study_canaries(folder, study, models))


def finish(folder: RunFolder, models: Mapping[str, Model]) -> StudyReport:
    """Decide, judge, measure, claim and report a locked run, skipping what is done."""
    decide(folder, models)
    session = study_calls.JudgingSession(folder, open_locked(folder), models)
    judge(folder, models, session)
    study, results = session.locked.study, session.results()
    del session
    measured = {sheet.judge for sheet in sheets_of.stored_datasheets(folder)} if study.datasheets else set()
    if study.datasheets and not measured >= {spec.name for spec in study.model_judges}:
        measure_judges(
            folder, study.asked_judges, models, pointwise=True, rubric=tested_by(study), study=True, pages=False
        )
    # Return the memory of rendered messages to the system before the next stage.
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    measure(folder, **results)
    claim(folder)
    return report(folder)


def plan_calls(
    folder: RunFolder, budget: int | None, effect: float | None = None, prices: Mapping[str, float] | None = None,
) -> CallPlan:  # fmt: skip
    """Simulate which further judge calls most likely raise a claim by one level; see `plan_calls_lines`."""
    from assaymark.workflow.plan_calls import plan_calls_report as plan  # no other verb needs Arrow's functions

    require_decided(folder)
    locked, store = open_locked(folder), Store(folder)
    verdicts, measurements, scores = store.read(VERDICTS), store.read(MEASUREMENTS), Scores.of(store, locked).honest
    return plan(scores, locked.study, verdicts, measurements, budget, locked.study.seed, effect, prices or {})


def demo(folder: RunFolder, models: Mapping[str, Model], now: datetime) -> StudyReport:
    """Run the built-in study from cycles to report: a small version of `studies/valueblind.toml`."""
    folder.refuse_others(folder.tables.is_dir() and not folder.check.is_file(), "demonstration")
    study = files("assaymark.workflow").joinpath("demo.toml").read_text(encoding="utf-8")
    lock(folder, study, "demo.toml", now, models)
    return finish(folder, models)


# --- Dry runs: nothing is sent, and nothing is written into the folder ------------------------------------------------


def expect_study(folder: RunFolder, text: str, source: str, models: Mapping[str, Model], prices: Prices) -> Forecast:
    """Estimate the calls and the cost of `assaymark run`."""
    runs.read_lock(folder)
    study = parse_study(text, source)
    prepared = study.substrate is None or (folder.tables / "manifest.json").is_file()
    # Cycles that do not exist yet are cut into a temporary folder.
    with nullcontext("") if prepared else TemporaryDirectory() as path:
        target = folder.require() if prepared else RunFolder(Path(path) / "run")
        if not prepared:
            prepare(target, study)
        check_plan(target, study, source, models)
        stages, notes = _planned_stages(target, study)
        stages = {"date-leakage check": [] if folder.lock.is_file() else probe_calls(study), **stages}
        if study.datasheets is not None:
            stages["datasheets"] = _datasheet_calls(study.asked_judges, None, 7, True, True, tested_by(study))
        return forecast(stages, folder, prices, study.engine.batch, notes)


def expect_judging(folder: RunFolder, prices: Prices) -> Forecast:
    """Estimate the calls and the cost of `assaymark judge`."""
    study = open_locked(folder).study
    stages, notes = _planned_stages(folder, study)
    return forecast(stages, folder, prices, study.engine.batch, notes)


def expect_datasheets(
    folder: RunFolder, judges: Sequence[JudgeSpec], models: Mapping[str, Model], tasks: Path | None, seed: int,
    strict: bool, pointwise: bool, rubric: Rubric,
) -> Forecast:  # fmt: skip
    """Estimate the calls and the cost of `assaymark datasheet`."""
    sheets_of.require_judges(judges, models, rubric)
    calls = _datasheet_calls(judges, tasks, seed, strict, pointwise, rubric)
    return forecast({"datasheets": calls}, folder, prices_of(models))


def _planned_stages(folder: RunFolder, study: Study) -> tuple[dict[str, Iterable[CallSpec]], list[str]]:
    """Return the calls of a locked study's agents and judges by stage, and notes on what is estimated or left out."""
    store, stages, notes = Store(folder), dict[str, Iterable[CallSpec]](), list[str]()
    if study.substrate is not None:
        stages["agents"] = [question.call for question in study_calls.plan_decisions(study, store)]
    if store.digest(DECISIONS) is not None:
        decisions: Sequence[Decision] = store.read(DECISIONS)
    else:  # placeholder texts of likely length for those not written yet
        decisions = [*map(study_calls.with_placeholder, planned_decisions(study, store.read(CYCLES)))]
        notes.append("judges' calls are estimated: their number is known; texts of 300 tokens are assumed")
    shown = judging.user_messages(decisions, store.each_context(), study)
    graded = judging.plan_calls(decisions, {}, study, judging.rubric_of(study.rubric), None, None, shown)
    stages["judges"] = [planned.call for planned in graded]
    if (probe := study.anchor_probe) is not None:
        only = study_calls.anchor_sample(select(decisions, study).honest, study)
        rubric = judging.load_rubric(probe.rubric)
        again = judging.plan_calls(decisions, {}, study, rubric, study.anchor_judges, only, shown)
        stages["anchor probe"] = [planned.call for planned in again]
    if (outside := study.stability.probe) is not None:
        notes.append(f"not counted: {outside.name}, asked only about pairs that the panel leaves open")
    return stages, notes


def _datasheet_calls(
    judges: Sequence[JudgeSpec], tasks: Path | None, seed: int, strict: bool, pointwise: bool, rubric: Rubric
) -> Iterator[CallSpec]:
    given = pairs.finance_tasks() if tasks is None else pairs.load_tasks(runs.read_text(tasks, "task file"), str(tasks))
    stimuli, points = pairs.build_stimuli(given, seed), pairs.point_stimuli(given, seed)
    for spec in judges:
        if spec.model not in PLANTED:
            variants = (pairs.TIE_ALLOWED, pairs.STRICT) if strict else (pairs.TIE_ALLOWED,)
            yield from (planned.call for planned in pairs.plan_pair_calls(stimuli, spec, variants))
        if spec.model in PLANTED or (pointwise and spec.model not in pairs.PLANTED_PAIRS):
            yield from (planned.call for planned in sheets_of.point_calls(points, spec, rubric))
