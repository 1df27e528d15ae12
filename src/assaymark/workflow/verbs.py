"""The verbs, and the two that run several of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files

from assaymark.engine import Model
from assaymark.workflow.claiming import VerdictFile, claim
from assaymark.workflow.demo_records import demo_records
from assaymark.workflow.folder import RunFolder, new_folder
from assaymark.workflow.importing import import_records, store_records
from assaymark.workflow.judging_calls import JudgeResult, judge
from assaymark.workflow.locking import Locked, lock, lock_lines
from assaymark.workflow.measuring import measure
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.reporting import Reported, report

__all__ = [
    "JudgeResult",
    "Locked",
    "Reported",
    "VerdictFile",
    "claim",
    "demo",
    "finish",
    "import_records",
    "judge",
    "lock",
    "lock_lines",
    "measure",
    "report",
]


def finish(folder: RunFolder, models: Mapping[str, Model], *, progress: Progress = silent) -> Reported:
    """Judge, measure, claim and report a locked run, as far as they are not done."""
    judge(folder, models, progress=progress)
    measure(folder, progress=progress)
    claim(folder)
    return report(folder)


def demo(folder: RunFolder, models: Mapping[str, Model], *, now: datetime, progress: Progress = silent) -> Reported:
    """The whole flow on records of its own making."""
    decisions, contexts = demo_records()
    with new_folder(folder.path):
        store_records(folder, decisions, contexts, ())
    study = files("assaymark.workflow").joinpath("demo.toml").read_text(encoding="utf-8")
    lock(folder, study, "demo.toml", now=now, models=models)
    return finish(folder, models, progress=progress)
