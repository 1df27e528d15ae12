"""Long bars spread into tables of weekdays by instruments: first versions apart from restatements, prices adjusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem
from assaymark.market.calendar import weekdays
from assaymark.market.checks import snapshot_problems
from assaymark.market.restated import Restated

_PRICES = ("open", "high", "low", "close")
_SHOWN = 5  # of many equal problems, so many are named


@dataclass(frozen=True, slots=True, eq=False)
class WideBars:
    """The bars of a `History`: ``days`` (n_days,), ``bars`` and ``known_at`` (n_days, n_instruments), ``restated``.

    ``unstated`` (n_instruments,) marks instruments of which some bar does not say its adjustment factor.
    """

    days: np.ndarray
    bars: dict[str, np.ndarray]
    known_at: np.ndarray
    unstated: np.ndarray
    restated: Restated = field(default_factory=Restated.none)


@dataclass(frozen=True, slots=True, eq=False)
class _Long:
    """Rows of a long table as arrays; ``micros`` are the microseconds of ``known_at``, ``unstated`` marks no factor."""

    days: np.ndarray
    columns: np.ndarray
    micros: np.ndarray
    values: dict[str, np.ndarray]
    unstated: np.ndarray


def wide_bars(table: Any, ids: Sequence[str]) -> WideBars:
    """The bars of a snapshot's long table, its columns in the order of ``ids``.

    Prices are multiplied by ``adj_factor``, so a close is a total-return price; volume is left as it is. Where a factor
    is not 1 the factors are kept as a field of their own, so that prices as they were traded can be had back. Days are
    all weekdays from the first bar to the last, so that a missing day shows; bars of weekends are left out. Of several
    versions of a bar, the one known first goes into the table and the others into ``restated``.

    Raises
    ------
    InputError
        Bars of unknown instruments, without a day or the time at which they became known, with an impossible factor,
        of several snapshots, or two versions of one bar at one time; every kind at once.
    """
    problems = [*_row_problems(table, ids), *_mixed(table)]
    if problems:
        raise InputError("bars", problems)
    rows = _long(table, ids)
    order = np.lexsort((rows.micros, rows.columns, rows.days))
    day, column, micros = rows.days[order], rows.columns[order], rows.micros[order]
    same = (np.diff(day).astype(int) == 0) & (np.diff(column) == 0)
    if twice := np.flatnonzero(same & (np.diff(micros) == 0)).tolist():
        named = [f"{ids[column[at]]}, {day[at]}" for at in twice]
        raise InputError("bars", [_counted(named, "bars are there more than once with one known_at")])
    grid = weekdays(day[0].astype(object), day[-1].astype(object)) if day.size else np.empty(0, "datetime64[D]")
    row, known_at = np.searchsorted(grid, day), seconds_up(micros)
    first = np.concatenate([[True], ~same]) if day.size else np.empty(0, bool)
    values = {name: one[order] for name, one in rows.values.items()}
    found = _spread(grid, len(ids), row, column, known_at, values, first)
    unstated = np.unique(rows.columns[rows.unstated])
    return replace(found, unstated=np.isin(np.arange(len(ids)), unstated))


def seconds_up(micros: np.ndarray) -> np.ndarray:
    """Microseconds as whole seconds, rounded up, so that nothing is known early.

    >>> seconds_up(np.array([0, 1, 1_000_000])).tolist()
    [0, 1, 1]
    """
    found: np.ndarray = -(-micros // 1_000_000)
    return found


def _spread(
    grid: np.ndarray,
    width: int,
    row: np.ndarray,
    column: np.ndarray,
    known_at: np.ndarray,
    values: Mapping[str, np.ndarray],
    first: np.ndarray,
) -> WideBars:
    """First versions in tables, the others in a table of their own, in the order of their times."""
    shape = (grid.size, width)
    # That a place has no bar is never known: a late bar may still come. So no day shows before it has one.
    known = np.full(shape, np.iinfo(np.int64).max)
    known[row[first], column[first]] = known_at[first]
    bars = {name: np.full(shape, np.nan) for name in values}
    for name, one in values.items():
        bars[name][row[first], column[first]] = one[first]
    later = np.flatnonzero(~first)
    later = later[np.argsort(known_at[later], kind="stable")]
    restated = Restated(row[later], column[later], known_at[later], {name: one[later] for name, one in values.items()})
    return WideBars(grid, bars, known, np.zeros(width, bool), restated if later.size else Restated.none())


def _long(table: Any, ids: Sequence[str]) -> _Long:
    """The rows of weekdays as arrays, prices adjusted."""
    place = {name: at for at, name in enumerate(ids)}
    coded = table["instrument"].combine_chunks().dictionary_encode()
    of = np.array([place[name] for name in coded.dictionary.to_pylist()], dtype=np.int64)
    days = table["event_date"].to_numpy().astype("datetime64[D]")
    kept = np.is_busday(days) if days.size else np.empty(0, bool)
    factor = _floats(table, "adj_factor")
    unstated = np.isnan(factor)
    factor = np.where(unstated, 1.0, factor)
    values = {name: _floats(table, name) * factor for name in _PRICES}
    values["volume"] = _floats(table, "volume")
    if (factor != 1.0).any():
        values["adj_factor"] = factor
    values = {name: one[kept] for name, one in values.items() if name == "close" or np.isfinite(one).any()}
    columns = of[coded.indices.to_numpy(zero_copy_only=False)] if len(of) else np.empty(0, np.int64)
    micros = table["known_at"].cast(pa.int64()).to_numpy()
    return _Long(days[kept], columns[kept], micros[kept], values, unstated[kept])


def _floats(table: Any, name: str) -> np.ndarray:
    """A column as floats, NaN where it is missing."""
    found: np.ndarray = table[name].to_numpy().astype(float)
    return found


def _row_problems(table: Any, ids: Sequence[str]) -> list[Problem]:
    """What is wrong with single rows."""
    found = [
        Problem(name, f"is missing in {count} rows")
        for name in ("instrument", "event_date", "known_at")
        if (count := table[name].null_count)
    ]
    unknown = sorted(set(table["instrument"].unique().to_pylist()) - set(ids) - {None})
    if unknown:
        found.append(_counted(unknown, "instruments have bars and are not in the table of instruments"))
    factor = _floats(table, "adj_factor")
    if wrong := int(((factor <= 0) | np.isinf(factor)).sum()):
        found.append(Problem("adj_factor", f"must be positive and finite ({wrong} rows are not)"))
    infinite = [name for name in (*_PRICES, "volume") if np.isinf(_floats(table, name)).any()]
    return found + [Problem(name, "holds an infinite number") for name in infinite]


def _mixed(table: Any) -> list[Problem]:
    """Bars of several snapshots, with where they overlap."""
    names = table["snapshot"].to_pylist() if len(table["snapshot"].unique()) > 1 else []
    if not names:
        return []
    of, instrument = np.array(names, dtype=object), np.array(table["instrument"].to_pylist(), dtype=object)
    days, closes = table["event_date"].to_numpy().astype("datetime64[D]"), _floats(table, "close")
    kinds = sorted(set(names), key=str)
    series = [
        (str(kind), str(name), days[at], closes[at])
        for kind in kinds
        for name in sorted(set(instrument[of == kind]), key=str)
        if (at := (of == kind) & (instrument == name)).any()
    ]
    what = f"a store holds one snapshot (got {', '.join(map(str, kinds))})"
    return [Problem("snapshot", what), *snapshot_problems(series)]


def _counted(names: Sequence[str], what: str) -> Problem:
    """One problem for many places: how many, and the first of them."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Problem(f"{', '.join(names[:_SHOWN])}{more}", f"{len(names)} {what}")
