"""Import people's grades from a table: as judgments of one more judge family, or as labels of the human sample."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.importers.read import DataRow, ParsedSheet, read_sheet
from assaymark.importers.report import Tally
from assaymark.records import Judgment, content_id
from assaymark.rows import unpack

FAMILY: Final = "human"
"""Judge family of every human grader."""


def import_human(
    name: str, data: bytes, records: Collection[str], dimensions: Sequence[str], rubric: str,
    scale: tuple[float, float] = (1, 5), *, optional: Sequence[str] = (), graders: Collection[str] | None = None,
) -> tuple[Judgment, ...]:  # fmt: skip
    """Read grades from a CSV or JSONL table, one row per trajectory and grader, as judgments of family ``human``."""
    tally = Tally()
    sheet = read_sheet(name, unpack(name, data), tally)
    if {"trajectory", "grader", "dimension", "grade"} <= set(sheet.columns):
        # merge rows of one grade each into one row per record and grader, at the place of the first grade
        grouped: dict[tuple[str, ...], DataRow] = {}
        for row in sheet.rows:
            key = tuple(str(row.cells.get(column, "")) for column in ("trajectory", "grader", "trial"))
            first = dict(zip(("trajectory", "judge", "trial"), key, strict=True))
            group = grouped.setdefault(key, DataRow(row.place, {k: text for k, text in first.items() if text}, tally))
            dimension = row.text("dimension", needed=True)
            if dimension in group.cells:
                row.problem("dimension", f"{key[1]!r} graded {dimension!r:.40} of {key[0]!r:.80} twice")
            grouped[key] = DataRow(group.place, {**group.cells, dimension: row.cells.get("grade")}, tally)
        sheet.rows = list(grouped.values())
    absent = [column for column in ("trajectory", "judge", *dimensions) if column not in sheet.columns]
    allowed = ("trajectory", "judge", "trial", "comment", *dimensions, *optional)
    unknown = [column for column in sheet.columns if column not in allowed]
    if sheet.rows and (absent or unknown):
        if absent:
            names = ", ".join(sheet.columns)
            tally.problem(name, f"no column {absent[0]!r} (got {names}; needed: {', '.join(absent)})")
        for column in unknown:
            tally.problem(name, f"column {column!r} is not a dimension of rubric {rubric} ({', '.join(dimensions)})")
        tally.refuse("human")
    judgments: dict[tuple[str, str, int], Judgment] = {}
    for row in sheet.rows:
        trajectory, judge = row.text("trajectory", needed=True), row.text("judge", needed=True)
        trial = row.integer("trial", 1, 1)
        grades = {column: row.number(column, *scale) for column in (*dimensions, *optional)}
        scores = {column: value for column, value in grades.items() if value is not None}
        if trajectory and trajectory not in records:
            row.problem("trajectory", f"no such record among those that there are (got {trajectory!r:.80})")
        if graders is not None and judge and judge not in graders:
            row.problem("judge", str(UnknownNameError("human grader of the plan", judge, tuple(graders))))
        if not scores:
            continue
        if (trajectory, judge, trial) in judgments:
            row.problem("trajectory", f"{judge!r} graded {trajectory!r:.80} twice in trial {trial}")
        graded = sum(dimension in scores for dimension in dimensions)
        whole = graded == len(dimensions)
        judgments[trajectory, judge, trial] = Judgment(
            trajectory, judge, FAMILY, rubric, trial, status="ok" if whole else "invalid",
            scores=scores if whole else {},
            call_key=content_id([trajectory, judge, trial, rubric, sorted(scores.items())]),
            reason=None if whole else f"graded {graded} of {len(dimensions)} dimensions",
        )  # fmt: skip
    if not judgments and not tally.problems:
        tally.problem(name, "holds no grade")
    tally.refuse("human")
    return tuple(judgments[key] for key in sorted(judgments))


def import_labels(
    name: str, data: bytes, records: Mapping[str, str], dimensions: Collection[str],
    scale: tuple[float, float] = (1, 5),
) -> list[dict[str, Any]]:  # fmt: skip
    """Read grades of people outside the panel from a CSV, JSONL or Parquet table, one dict per grade."""
    tally = Tally()
    if data.startswith(b"PAR1"):
        try:
            rows = pq.ParquetFile(pa.BufferReader(data)).read().to_pylist()
        except pa.ArrowException as exc:
            raise InputError("human", [Problem(name, f"this Parquet file cannot be read: {exc}")]) from None
        plain = [{k: v.isoformat() if isinstance(v, datetime) else v for k, v in row.items()} for row in rows]
        sheet = ParsedSheet([DataRow(f"{name} row {at}", cells, tally) for at, cells in enumerate(plain, start=1)])
    else:
        sheet = read_sheet(name, unpack(name, data), tally)
    needed = ("trajectory", "grader", "dimension", "grade", "time")
    if absent := [column for column in needed if sheet.rows and column not in sheet.columns]:
        raise InputError("human", [Problem(name, f"no column {', '.join(absent)} (got {', '.join(sheet.columns)})")])
    labels: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in sheet.rows:
        key = trajectory, grader, dimension = tuple(row.text(column, needed=True) for column in needed[:3])
        when, seconds = row.time("time", needed=True), row.number("seconds", 0, 1e9, "seconds before the text")
        score = row.number("grade", *scale)
        if trajectory and trajectory not in records:
            row.problem("trajectory", f"no such record among those that there are (got {trajectory!r:.80})")
        if dimension and dimension not in dimensions:
            row.problem("dimension", str(UnknownNameError("dimension", dimension, tuple(dimensions))))
        if key in labels:
            row.problem("trajectory", f"{grader!r:.40} graded {dimension!r:.40} of {trajectory!r:.80} twice")
        at = "" if when is None else when.astimezone(UTC).isoformat().replace("+00:00", "Z")
        labels[key] = {"trajectory": trajectory, "cycle": records.get(trajectory, ""), "grader": grader, "at": at,
                      "dimension": dimension, "score": score, "seconds": seconds,
                      "comment": str(row.cells.get("comment") or "")}  # fmt: skip
    if not labels and not tally.problems:
        tally.problem(name, "holds no grade")
    tally.refuse("human")
    return list(labels.values())
