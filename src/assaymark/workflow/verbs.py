"""The verbs, and the two that run several of them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from importlib.resources import files

import pyarrow as pa

from assaymark.engine import Model
from assaymark.protocol import JudgeSpec, Study
from assaymark.workflow.amend import amend, amendment_lines, reparse
from assaymark.workflow.ask import name_ledger
from assaymark.workflow.claim import claim, verification_lines, verify_certificate, verify_run
from assaymark.workflow.import_records import import_grades, import_records
from assaymark.workflow.lock import Locked, lock, lock_lines, open_locked
from assaymark.workflow.measure import measure
from assaymark.workflow.plan_calls import PRICES, CallPlan, plan_calls_report
from assaymark.workflow.plan_calls import lines as plan_calls_lines
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.publish import Reported, asked, report
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.study_calls import Canaries, JudgeResult, decide, judge, study_canaries, work, work_lines
from assaymark.workflow.tables import MEASUREMENTS, VERDICTS, Store
from assaymark.workflow.track import honest_table
from assaymark.workflow.tracks.datasheet import (
    judges_of,
    log_map,
    measure_judges,
    measure_log,
    stored_datasheets,
    tested_by,
)
from assaymark.workflow.verdict_file import VerdictFile

__all__ = [
    "JudgeResult", "Locked", "Reported", "VerdictFile", "amend", "amendment_lines", "claim", "decide", "demo",
    "finish", "import_grades", "import_records", "judge", "judges_of", "lock", "lock_lines", "log_map", "measure",
    "measure_judges", "measure_log", "name_ledger", "open_locked", "panel_of", "plan_calls", "plan_calls_lines",
    "reparse", "report", "start", "tested_by", "verification_lines", "verify_certificate", "verify_run", "work",
    "work_lines",
]  # fmt: skip


def release_memory() -> None:
    """Return the memory that a stage has freed to the system, so that the next one starts small."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def start(
    folder: RunFolder, text: str, source: str, now: datetime, models: Mapping[str, Model],
    progress: Progress = silent,
) -> Locked:  # fmt: skip
    """Lock a study as `lock` does, after one call to each of its models; what they answer is kept if it is locked."""
    sent: list[Canaries] = []

    def first(study: Study) -> None:
        sent.append(study_canaries(folder, study, models, progress))

    locked = lock(folder, text, source, now, models, progress, first)
    for one in sent:
        one.keep(folder, locked)
    return locked


def finish(folder: RunFolder, models: Mapping[str, Model], progress: Progress = silent) -> Reported:
    """Decide, judge, measure, claim and report a locked run, as far as they are not done."""
    decide(folder, models, progress)
    judge(folder, models, progress)
    study = open_locked(folder).study
    measured = {sheet.judge for sheet in stored_datasheets(folder)} if study.datasheets else set()
    if study.datasheets and not measured >= {one.name for one in study.model_judges}:
        measure_judges(
            folder,
            asked(study),
            models,
            pointwise=True,
            rubric=tested_by(study),
            study=True,
            pages=False,
            progress=progress,
        )
    release_memory()  # what was rendered for the judges
    measure(folder, progress)
    claim(folder)
    return report(folder)


def panel_of(folder: RunFolder) -> list[JudgeSpec]:
    """The judges of a locked plan that are models, the outside judge included."""
    return list(asked(open_locked(folder).study))


def plan_calls(
    folder: RunFolder, budget: int | None, effect: float | None = None, prices: Mapping[str, float] = PRICES,
    progress: Progress = silent,
) -> CallPlan:  # fmt: skip
    """Which further judge calls would most likely move a claim to the next level; `plan_calls_lines` words it."""
    locked, store = open_locked(folder), Store(folder)
    verdicts, measurements = store.read(VERDICTS), store.read(MEASUREMENTS)
    progress("simulating studies", 0, 1)
    found = plan_calls_report(
        honest_table(store, locked), locked.study, verdicts, measurements, budget, locked.study.seed,
        effect=effect, prices=prices,
    )  # fmt: skip
    progress("simulating studies", 1, 1)
    return found


def demo(folder: RunFolder, models: Mapping[str, Model], now: datetime, progress: Progress = silent) -> Reported:
    """The study that ships with the package, from its cycles to its page: a small cut of `studies/valueblind.toml`."""
    study = files("assaymark.workflow").joinpath("demo.toml").read_text(encoding="utf-8")
    lock(folder, study, "demo.toml", now, models, progress)
    return finish(folder, models, progress)
