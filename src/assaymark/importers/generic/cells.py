"""Rows of CSV or JSONL files and their cells, strictly typed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assaymark.importers.report import Tally
from assaymark.importers.source import csv_rows, json_lines, json_object, moment, text_of


@dataclass(frozen=True, slots=True)
class Row:
    """One row, where it stands, and where its problems go."""

    place: str
    cells: Mapping[str, Any]
    tally: Tally

    @property
    def quiet(self) -> Row:
        """The same row, whose problems are noted nowhere: for a first look at it."""
        return Row(self.place, self.cells, Tally())

    def problem(self, column: str, what: str) -> None:
        """Notes what is wrong with a cell."""
        self.tally.problem(f"{self.place}, {column}" if column else self.place, what)

    def text(self, column: str | None, *, needed: bool = False) -> str:
        """The text of a cell; empty when there is none."""
        value = self.cells.get(column) if column else None
        if value is None or value == "":
            if needed:
                self.problem(column or "", "is empty; a value is needed")
            return ""
        if not isinstance(value, str):
            self.problem(column or "", f"must be text (got {value!r:.60})")
            return ""
        return value

    def texts(self, column: str) -> tuple[str, ...]:
        """The texts of a cell: one, or in JSONL a list of them."""
        value = self.cells.get(column)
        if isinstance(value, list):
            if all(isinstance(item, str) for item in value):
                return tuple(item for item in value if item.strip())
            self.problem(column, f"must be text or a list of texts (got {value!r:.60})")
            return ()
        text = self.text(column)
        return (text,) if text.strip() else ()

    def number(
        self, column: str | None, low: float = -math.inf, high: float = math.inf, hint: str = ""
    ) -> float | None:
        """The finite number of a cell, or None when there is none; ``hint`` is for a number out of its limits."""
        value = self.cells.get(column) if column else None
        if value is None or value == "":
            return None
        try:
            made = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            made = math.nan
        if not math.isfinite(made) or not low <= made <= high:
            limits = f" from {low:g} to {high:g}" if math.isfinite(low) else ""
            advice = f"; {hint}" if hint and math.isfinite(made) else ""
            self.problem(column or "", f"must be a finite number{limits} (got {value!r:.60}){advice}")
            return None
        return made

    def whole(self, column: str | None, default: int, low: int) -> int:
        """The whole number of a cell."""
        made = self.number(column, low, 2**53)
        if made is not None and made != int(made):
            self.problem(column or "", f"must be a whole number (got {made:g})")
        return default if made is None else int(made)

    def time(self, column: str | None, *, needed: bool = False) -> datetime | None:
        """The moment of a cell, with its zone."""
        text = self.text(column, needed=needed)
        if not text:
            return None
        try:
            return moment(text)
        except ValueError as exc:
            self.problem(column or "", str(exc))
            return None


@dataclass(slots=True)
class Sheet:
    """The rows of a file that could be read, how many could not (``lost``), and whether none could (``broken``)."""

    rows: list[Row]
    lost: int = 0
    broken: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of any row, in the order in which they first appear."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row.cells))


def read_sheet(name: str, data: bytes, tally: Tally) -> Sheet:
    """The rows of a CSV or JSONL file (told by its name); unreadable ones are noted, counted and left out."""
    sheet = Sheet([])

    def wrong(number: int, what: str) -> None:
        sheet.lost += 1
        tally.problem(f"{name} line {number}", what)

    if name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        for number, line in json_lines(data):
            try:
                sheet.rows.append(Row(f"{name} line {number}", json_object(line), tally))
            except ValueError as exc:
                wrong(number, str(exc))
        return sheet
    try:
        for number, cells in csv_rows(text_of(name, data), wrong):
            sheet.rows.append(Row(f"{name} line {number}", cells, tally))
    except ValueError as exc:
        sheet.broken = True
        tally.problem(name, str(exc))
    return sheet
