"""Runs of `assaymark datasheet`, and what tests read off what they leave."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from assaymark.cli import main
from assaymark.metrology import datasheet as sheets
from assaymark.records import measurement_id
from assaymark.workflow import tracks

JUDGES = ("checklist", "slot-biased", "surface-swayed")
THREE = [word for name in JUDGES for word in ("--judge", f"reference/{name}")]
CLEAN = ["--judge", "reference/checklist", "--no-strict"]
BASE = {"prompt": "tie-allowed"}
ALL_PAIRS = {**BASE, "condition": "different_subset"}


def two_tasks() -> str:
    """The first two of the tasks that come with the package: 180 calls of a judge of pairs under one instruction."""
    text = files("assaymark.judging.pairs").joinpath("finance.toml").read_text(encoding="utf-8")
    return "[[task]]".join(text.split("[[task]]")[:3])


def datasheet(out: Path, *words: str | Path) -> int:
    return main(["datasheet", *map(str, words), "--out", str(out)])


def sheet_of(out: Path, judge: str) -> sheets.Datasheet:
    return tracks.read_datasheet(out / "datasheets" / f"{tracks.datasheet_name(judge)}.json")


def measured(sheet: sheets.Datasheet, name: str, labels: Mapping[str, str] = MappingProxyType({}), **more: str) -> Any:
    wanted = measurement_id(name, {"judge": sheet.judge, **labels, **more})
    return next(item for item in sheet.measurements if item.id == wanted)


def drift(sheet: sheets.Datasheet) -> Any:
    return measured(sheet, "drift.verdict")


def chips(sheet: sheets.Datasheet) -> list[str]:
    return [chip.partition(" (")[0] for chip in sheet.sketch]


def attempts(out: Path) -> int:
    with sqlite3.connect(out / "ledger.db") as ledger:
        (found,) = ledger.execute("select count(*) from attempts").fetchone()
    ledger.close()
    return int(found)


def said(text: str) -> str:
    """Return the output of a terminal on one line."""
    return re.sub(r"\s+", " ", text)


HEADER = ("judge", "question_id", "slot1_model", "slot2_model", "verdict")
Row = tuple[str, str, str, str, str]


def both(judge: str, question: str, first: str, second: str) -> list[Row]:
    """One pair in both orders."""
    return [(judge, question, "a", "b", first), (judge, question, "b", "a", second)]


SIMPLE = [
    row
    for question, verdicts in enumerate([("1", "2"), ("2", "1"), ("1", "1"), ("1", "tie"), ("tie", "tie"), ("1", "?")])
    for row in both("north", f"q{question}", *(word.replace("?", "invalid") for word in verdicts))
]


def write_log(path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path
