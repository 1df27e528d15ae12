"""Numbers that are nowhere printed but follow from what is: spreads, sums and ratios, and returns from price bars."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from assaymark.judging.evidence.around import Around
from assaymark.judging.evidence.lexicon import CHANGE, SPREAD
from assaymark.judging.evidence.match import Reading, content, readings, significant, tier_of
from assaymark.judging.evidence.material import Cells, FreeFacts, Material
from assaymark.judging.evidence.values import Floats
from assaymark.records import Series

_MOST_PARTS = 24
_MOST_NOTES = 12
_MOST_PAIRS = 6
_RELATIVE = frozenset(("active", "relative", "excess", "vs", "alpha", "rank", "correlation", "corr"))
_SESSIONS_A_YEAR = 252
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Derived:
    """What a number follows from, and how."""

    facts: tuple[str, ...]
    rule: str
    row: int = -1


def derive(material: Material, around: Around) -> Derived | None:
    """The first way in which the number follows from visible facts, or None."""
    if around.number.bare:
        return None
    return _spread(material, around) or _combined(material.free, around) or _recomputed(material, around)


# --- between two instruments ----------------------------------------------------------------------------------------


def _spread(material: Material, around: Around) -> Derived | None:
    """The same field of two instruments, one minus the other, where the clause compares."""
    if SPREAD.isdisjoint(around.lower):
        return None
    rows = list(dict.fromkeys((*around.rows, material.benchmark)))
    pairs = [(a, b) for i, a in enumerate(rows) for b in rows[i + 1 :] if min(a, b) >= 0]
    for pair in pairs[:_MOST_PAIRS]:
        # an agent measures against the benchmark, never the benchmark against something
        one, other = sorted(pair, key=lambda row: row == material.benchmark)
        found = _difference(material, around, one, other)
        if found is not None:
            return Derived(found, "difference-of-rows", one)
    return None


def _difference(material: Material, around: Around, one: int, other: int) -> tuple[str, ...] | None:
    """The two cells of one field whose difference is the number; fields that are differences themselves are none."""
    cells = material.cells
    left, right = cells.of_row(one), cells.of_row(other)
    place = {int(label): right.start + i for i, label in enumerate(cells.label[right])}
    for at in range(left.start, left.stop):
        label = cells.labels[cells.label[at]]
        there = place.get(int(cells.label[at]))
        if there is None or label.kinds & _RELATIVE:
            continue
        tier = tier_of(label, around, cells.horizons[one])
        if tier == 0 or (tier == 1 and significant(around.number) < 3):
            continue
        if _is_gap(around, _gaps(cells, at, there), ordered=other == material.benchmark):
            return cells.ids[at], cells.ids[there]
    return None


def _gaps(cells: Cells, one: int, other: int) -> tuple[float, float]:
    """The difference of two cells as a rate and plainly."""
    return (
        float(cells.values.rate[one] - cells.values.rate[other]),
        float(cells.values.plain[one] - cells.values.plain[other]),
    )


def _is_gap(around: Around, gap: tuple[float, float], *, ordered: bool) -> bool:
    """Whether the number is the difference, with its sign where it is clear what was taken from what."""
    if ordered and around.direction and gap[1] and (around.direction > 0) != (gap[1] > 0):
        return False
    return _equals(around, gap)


def _equals(around: Around, value: tuple[float, float]) -> bool:
    """Whether the number has the size of this (rate, plain) value, up to half a last digit."""
    for reading in readings(around.number):
        size = abs(value[0] if reading.as_rate else value[1])
        if abs(size - reading.size) <= reading.half:
            return True
    return False


# --- within one sentence of the free material -----------------------------------------------------------------------


def _combined(free: FreeFacts, around: Around) -> Derived | None:
    """Sum, difference, ratio or relative change of two numbers of one note that shares the clause's subject."""
    lower = around.lower
    if not free.ids or (CHANGE.isdisjoint(lower) and SPREAD.isdisjoint(lower)):
        return None
    words = content(around)
    if not words or (significant(around.number) < 2 and around.number.unit != "bps"):
        return None
    for start, stop in _notes(free, words):
        part = slice(start, stop)
        for reading in readings(around.number):
            found = _pair(free.values.rate[part], free.values.plain[part], reading)
            if found is not None:
                return Derived((free.ids[start + found[0]], free.ids[start + found[1]]), found[2])
    return None


def _notes(free: FreeFacts, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """The runs of facts of one note that share at least two of the words (or the only one), a dozen at most."""
    needed = min(2, len(words))
    edges = np.flatnonzero(np.diff(free.note, prepend=-1, append=-2))
    shown = 0
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if stop - start < 2 or len(free.words[start] & words) < needed:
            continue
        yield start, min(stop, start + _MOST_PARTS)
        shown += 1
        if shown == _MOST_NOTES:
            return


def _pair(rate: Floats, plain: Floats, reading: Reading) -> tuple[int, int, str] | None:
    """Two values whose difference, sum, relative change or ratio is the reading."""
    with np.errstate(all="ignore"):
        own = rate if reading.as_rate else np.where(np.isnan(rate), plain, np.nan)
        level = np.where(np.isnan(rate), plain, np.nan)
        tables = [("difference", np.abs(own[:, None] - own[None, :])), ("sum", np.abs(own[:, None] + own[None, :]))]
        if reading.as_rate:
            tables.append(("relative-change", np.abs(level[:, None] / level[None, :] - 1)))
        else:
            tables.append(("ratio", np.abs(level[:, None] / level[None, :])))
        for rule, table in tables:
            np.fill_diagonal(table, np.nan)
            hits = np.argwhere(np.abs(table - reading.size) <= reading.half)
            if len(hits):
                return int(hits[0][0]), int(hits[0][1]), f"{rule}-in-note"
    return None


# --- from price bars ------------------------------------------------------------------------------------------------


def _recomputed(material: Material, around: Around) -> Derived | None:
    """A return, volatility or drawdown over the horizon beside the number, from the instrument's own bars."""
    if not material.series or not around.horizons:
        return None
    for row in around.rows:
        series = material.series.get(material.subjects.ids[row])
        if series is None or len(series.close) < 2:
            continue
        for horizon in sorted(around.horizons):
            for rule, value in _statistics(series, horizon, around):
                if math.isfinite(value) and _is_gap(around, (value, value), ordered=rule == "return"):
                    return Derived((f"series:{series.instrument}",), f"{rule}-{horizon}", row)
    return None


def _statistics(series: Series, horizon: str, around: Around) -> Iterator[tuple[str, float]]:
    """What the words ask for over the horizon; bars are counted, and calendar days where the two differ."""
    for first in _starts(series, horizon):
        close = np.asarray(series.close[first:], dtype=np.float64)
        if (close <= 0).any():
            continue
        if "volatility" in around.words:
            moves = np.diff(close) / close[:-1]
            if moves.size > 1:
                yield "volatility", float(moves.std(ddof=1)) * math.sqrt(_per_year(series))
        elif "drawdown" in around.words:
            yield "drawdown", float((close / np.maximum.accumulate(close) - 1).min())
        else:
            yield "return", float(close[-1] / close[0] - 1)


def _per_year(series: Series) -> float:
    return _SESSIONS_A_YEAR * max(1.0, _DAY_S / series.interval_s if series.interval_s < _DAY_S else 1.0)


def _starts(series: Series, horizon: str) -> list[int]:
    """Indices of the bars at which the horizon can have begun."""
    count, unit = int(horizon[:-1]), horizon[-1]
    last = len(series.close) - 1
    found = [last - count] if unit == "d" else []
    days = {"d": 1.0, "w": 7.0, "m": 365.25 / 12, "y": 365.25}[unit] * count
    begin = bisect_right(series.times, series.times[-1] - timedelta(days=min(days, 36_500))) - 1
    found.append(begin)
    return [index for index in dict.fromkeys(found) if 0 <= index < last]
