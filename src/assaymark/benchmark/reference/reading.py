"""The prompt of a stage read back: everything that a reference model knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

import numpy as np

from assaymark.benchmark.stage_prompts import ABSENT
from assaymark.benchmark.stages import Signal, Stage
from assaymark.errors import InputError
from assaymark.portfolio.solution import Floats
from assaymark.prompting.fences import cells, sections

_TASK = re.compile(r"^TASK (S[123]), ", re.MULTILINE)
_HORIZON = re.compile(r"over the next (\d+) trading days")
_THRESHOLD = re.compile(r"above (\d+(?:\.\d+)?),")
_MOST = re.compile(r"Equities and crypto together must be at most (\d+(?:\.\d+)?)%")
_LEAST = re.compile(r"Bonds and cash together must be at least (\d+(?:\.\d+)?)%")
_COLUMNS: Final = ("ret20_pct", "ret60_pct", "vol_pct", "sharpe")


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """The tables of assets and correlations.

    ``numbers`` has the columns 20-day and 60-day return, volatility (each a share) and Sharpe ratio, by name, of shape
    (n,); what is not defined reads as 0. ``correlation`` (n, n) is that of the two classes of each pair, 1 with itself.
    """

    tickers: tuple[str, ...]
    classes: tuple[str, ...]
    numbers: dict[str, Floats]
    correlation: Floats


@dataclass(frozen=True, slots=True)
class Limits:
    """What the investor allows, as shares: most of equities and crypto, least of bonds and cash."""

    risky: float
    safe: float


def stage_of(text: str) -> Stage | None:
    """Which stage a prompt asks for; None if it is none of the pipeline.

    >>> stage_of("TASK S2, signals. These are"), stage_of("Question: what is")
    ('S2', None)
    """
    found = _TASK.search(text)
    return cast(Stage, found.group(1)) if found else None


def sheet_of(parts: Sequence[str]) -> Sheet:
    """The market of a prompt, out of whichever part of it shows it.

    Raises
    ------
    InputError
        None does.
    """
    for part in parts:
        if "<<<BEGIN assets " in part:
            return _sheet(part)
    raise InputError("prompt", ["it shows no table of assets"])


def views_in(text: str) -> dict[str, float]:
    """The views that S2 is asked about."""
    return {name: float(view) for name, view in _rows(text, "views")}


def signals_in(text: str) -> dict[str, tuple[float, Signal]]:
    """The views and signals that S3 is asked about."""
    return {name: (float(view), cast(Signal, signal)) for name, view, signal in _rows(text, "signals")}


def horizon_in(text: str) -> int:
    """How many trading days ahead is asked about; 21 where the prompt does not say."""
    found = _HORIZON.search(text)
    return int(found.group(1)) if found else 21


def threshold_in(text: str) -> float:
    """From which view on S2 is told to buy."""
    return _one(_THRESHOLD, text, "a threshold")


def limits_in(text: str) -> Limits:
    """The limits of the profile."""
    return Limits(_one(_MOST, text, "a cap") / 100, _one(_LEAST, text, "a floor") / 100)


def _one(pattern: re.Pattern[str], text: str, what: str) -> float:
    found = pattern.search(text)
    if not found:
        raise InputError("prompt", [f"it names no {what.removeprefix('a ')}"])
    return float(found.group(1))


def _rows(text: str, label: str) -> list[list[str]]:
    """The rows of one table, without their head."""
    for section in sections(text):
        if section.label == label:
            return [cells(line) for line in section.content.split("\n")[1:]]
    raise InputError("prompt", [f"it has no table of {label}"])


@lru_cache(maxsize=16)
def _sheet(part: str) -> Sheet:
    """One reading serves every model that is shown the same market."""
    tables = {one.label: [cells(line) for line in one.content.split("\n")] for one in sections(part)}
    head, rows = tables["assets"][0], tables["assets"][1:]
    scale = {name: 0.01 if name.endswith("_pct") else 1.0 for name in _COLUMNS}
    numbers = {name: scale[name] * _column(rows, head.index(name)) for name in _COLUMNS}
    classes = tuple(row[1] for row in rows)
    names = [row[0] for row in tables["correlations"][1:]]
    skipped = len(tables["correlations"][0]) - len(names)
    means = np.array([[_value(cell) for cell in row[skipped:]] for row in tables["correlations"][1:]])
    at = [names.index(one) for one in classes]
    correlation = means[np.ix_(at, at)]
    np.fill_diagonal(correlation, 1.0)
    return Sheet(tuple(row[0] for row in rows), classes, numbers, correlation)


def _column(rows: Sequence[Sequence[str]], at: int) -> Floats:
    return np.array([_value(row[at]) for row in rows])


def _value(cell: str) -> float:
    return 0.0 if cell == ABSENT else float(cell)
