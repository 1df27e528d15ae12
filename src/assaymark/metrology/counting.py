"""Counting one part of a score table: from columns of codes and small whole scores to its sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Bools, Ints
from assaymark.metrology.sums import CATEGORIES, Layout, ScoreSums, gathered, require_room

Codes = NDArray[np.integer[Any]]  # of any width

_JOINT: Final = 1 << 18  # bins of one count that stay in a cache; above, pairs of judges are counted one by one
_SHORT: Final = 1 << 15


class NotStreamableError(Exception):
    """The rows cannot be counted as they pass by. ``sortable`` says whether another order of them would help."""

    def __init__(self, reason: str, *, sortable: bool = True) -> None:
        self.sortable = sortable
        super().__init__(reason)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of whole cycles in the order of cycle, trajectory and judge.

    Codes [rows] index sorted names. ``scores`` holds one column [rows] a dimension, with whole numbers on 1..5 and 0
    where a score is missing. ``format`` and ``length`` may be None, and ``cycle`` where clusters stand for cycles;
    ``makers`` are the families of the agents, or None.
    """

    agents: tuple[str, ...]
    agent: Codes
    clusters: tuple[str, ...]
    cluster: Codes
    formats: tuple[str, ...]
    format: Codes | None
    judge: Codes
    cycle: Codes | None
    trajectory: Codes
    scores: tuple[Codes, ...]
    length: Codes | None
    makers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Complete:
    """The trajectories [T] of a part that every judge scored; ``scores`` are D x J columns [T]."""

    agent: Codes
    cluster: Codes
    format: Codes | None
    cycle: Codes | None
    scores: tuple[tuple[Codes, ...], ...]
    length: Codes | None


def count(part: Part, layout: Layout) -> ScoreSums:
    """The sums of one part.

    Raises
    ------
    NotStreamableError
        The rows of a cycle or of a trajectory do not stand together, or a judge has two of them for one trajectory.
    InputError
        A trajectory with two agents, clusters, formats or lengths, or a cycle in two clusters.
    """
    rows, replies, left_out = _complete(part, len(layout.judges))
    a, g = len(part.agents), len(part.clusters)
    which, lineups, places, cycles = _lineups(rows, a, g)
    require_room(layout, a, g, len(part.formats), places.size)
    seat = which * a + rows.agent
    group = rows.cluster.astype(np.int64)
    if rows.format is not None:
        group = rows.format.astype(np.int64) * g + group
    groups = len(part.formats) * g
    cell_of = np.repeat(places, a) if rows.format is None else None
    sums = np.empty((places.size * a, len(layout.judges), len(layout.dimensions)), dtype=np.int64)
    tables = [np.zeros(0, dtype=np.int64)]
    for d, columns in enumerate(rows.scores):
        table, sums[:, :, d] = _dimension(columns, layout, seat, places.size * a, group, groups, cell_of)
        tables.append(table)
    aggregate = [_weighted([columns[j] for columns in rows.scores], layout) for j in range(len(layout.judges))]
    tables[0] = _pairs(aggregate, layout, 0, group, groups)
    shape = (len(part.formats), g, len(layout.pairs))
    lineups, places, cycles, scores = gathered(
        layout.paired, lineups, places, cycles, sums.reshape(places.size, a, *sums.shape[1:])
    )
    return ScoreSums(
        layout=layout,
        agents=part.agents,
        clusters=part.clusters,
        formats=part.formats,
        tables=tuple(table.reshape(*shape, size, size) for table, size in zip(tables, layout.levels, strict=True)),
        sizes=np.bincount(group, minlength=groups).reshape(shape[:2]),
        lineups=lineups,
        places=places,
        cycles=cycles,
        scores=scores,
        replies=replies,
        left_out=left_out,
        lengths=None if rows.length is None else _lengths(rows.length, aggregate),
        makers=part.makers,
    )


# --- from rows to trajectories ----------------------------------------------------------------------------------------


def _complete(part: Part, judges: int) -> tuple[Complete, Ints, int]:
    """The complete trajectories, usable and unusable rows by judge and agent [J, A, 2], and how many were left out."""
    order = _regular(part, judges)
    if order is None:
        return _gathered_rows(part, judges)
    # Views, not copies: row k of every trajectory belongs to one judge.
    columns = tuple(tuple(column[int(k) :: judges] for k in order) for column in part.scores)
    usable = np.stack([np.logical_and.reduce([c[j] > 0 for c in columns]) for j in range(judges)])
    whole: Bools = np.asarray(usable.all(axis=0))
    first = slice(None, None, judges)
    agents, agent = len(part.agents), part.agent[first]
    replies = np.zeros((judges, agents, 2), dtype=np.int64)
    replies[:, :, 0] = np.bincount(agent, minlength=agents)
    if not whole.all():
        replies[:, :, 1] = [np.bincount(agent[~row], minlength=agents) for row in usable]
        replies[:, :, 0] -= replies[:, :, 1]
    rows = Complete(
        part.agent[first],
        part.cluster[first],
        None if part.format is None else part.format[first],
        None if part.cycle is None else part.cycle[first],
        columns,
        None if part.length is None else part.length[first],
    )
    return (rows if whole.all() else _only(rows, whole)), replies, int((~whole).sum())


def _regular(part: Part, judges: int) -> Ints | None:
    """The row of each judge within a trajectory, where all trajectories have one row a judge in one order."""
    n = part.judge.size
    if not n or n % judges:
        return None
    by_judge = part.judge.reshape(-1, judges)
    order = np.argsort(by_judge[0])
    same = np.array_equal(by_judge[0][order], np.arange(judges)) and (by_judge == by_judge[0]).all()
    if not same or not _constant(part.trajectory, judges):
        return None
    first = part.trajectory[::judges]
    fresh = first[1:] != first[:-1]
    if part.cycle is not None:
        if not _constant(part.cycle, judges):
            return None
        cycle = part.cycle[::judges]
        fresh |= cycle[1:] != cycle[:-1]
    if not fresh.all():
        return None
    fields = (part.agent, part.cluster, part.format, part.length)
    if not all(_constant(column, judges) for column in fields if column is not None):
        return None
    _require_order(part, slice(None, None, judges))
    return np.asarray(order)


def _constant(column: Codes, judges: int) -> bool:
    """Whether the rows of each trajectory say the same."""
    return all(np.array_equal(column[k::judges], column[::judges]) for k in range(1, judges))


def _require_order(part: Part, rows: slice) -> None:
    """Rows ascend by cycle, and within one by trajectory."""
    ids = part.trajectory[rows]
    backwards = ids[1:] < ids[:-1]
    if part.cycle is not None:
        cycle = part.cycle[rows]
        if (cycle[1:] < cycle[:-1]).any():
            raise NotStreamableError("the rows are not in the order of their cycles")
        backwards &= cycle[1:] == cycle[:-1]
    if backwards.any():
        raise NotStreamableError("the rows are not in the order of their trajectories")


def _gathered_rows(part: Part, judges: int) -> tuple[Complete, Ints, int]:
    """The slow way, for parts in which some judge's row is missing somewhere."""
    _require_order(part, slice(None))
    new = np.ones(part.trajectory.size, dtype=bool)
    new[1:] = part.trajectory[1:] != part.trajectory[:-1]
    if part.cycle is not None:
        new[1:] |= part.cycle[1:] != part.cycle[:-1]
    start, which = np.flatnonzero(new), np.cumsum(new) - 1
    _require_consistent(part, start, which)
    slot = which * judges + part.judge
    if (np.bincount(slot, minlength=1) > 1).any():
        raise NotStreamableError("a judge has several rows for one trajectory", sortable=False)
    usable = np.logical_and.reduce([column > 0 for column in part.scores])
    agents = len(part.agents)
    place = (part.judge.astype(np.int64) * agents + part.agent) * 2 + ~usable
    replies = np.bincount(place, minlength=judges * agents * 2).reshape(judges, agents, 2)
    scored = np.zeros(start.size * judges, dtype=bool)
    scored[slot] = usable
    whole: Bools = np.asarray(scored.reshape(-1, judges).all(axis=1))
    columns = []
    for column in part.scores:
        grid = np.zeros(start.size * judges, dtype=column.dtype)
        grid[slot] = column
        columns.append(tuple(grid[j::judges] for j in range(judges)))
    rows = Complete(
        part.agent[start],
        part.cluster[start],
        None if part.format is None else part.format[start],
        None if part.cycle is None else part.cycle[start],
        tuple(columns),
        None if part.length is None else part.length[start],
    )
    return _only(rows, whole), replies, int((~whole).sum())


def _require_consistent(part: Part, start: Ints, which: Ints) -> None:
    problems = []
    for name in ("agent", "cluster", "format", "length"):
        column = getattr(part, name)
        if column is not None and (wrong := column[start][which] != column).any():
            first = part.trajectory[int(np.argmax(wrong))]
            what = f"one trajectory has one {name} ({int(wrong.sum())} row(s) say otherwise)"
            problems.append(Problem(f"trajectory {first}", what))
    if problems:
        raise InputError("scores", problems)


def _only(rows: Complete, kept: Bools) -> Complete:
    return Complete(
        rows.agent[kept],
        rows.cluster[kept],
        None if rows.format is None else rows.format[kept],
        None if rows.cycle is None else rows.cycle[kept],
        tuple(tuple(column[kept] for column in columns) for columns in rows.scores),
        None if rows.length is None else rows.length[kept],
    )


# --- from trajectories to sums ----------------------------------------------------------------------------------------


def _lineups(rows: Complete, agents: int, clusters: int) -> tuple[Ints, Ints, Ints, Ints]:
    """For each trajectory the number of its line-up [T]; then line-ups [R, A], their clusters and cycles [R]."""
    if rows.cycle is None:
        present, which = np.unique(rows.cluster, return_inverse=True)
        place = which * agents + rows.agent
        lineups = np.bincount(place, minlength=present.size * agents).reshape(-1, agents)
        return which.astype(np.int64), lineups, present.astype(np.int64), np.ones(present.size, dtype=np.int64)
    new = np.ones(rows.cycle.size, dtype=bool)
    new[1:] = rows.cycle[1:] != rows.cycle[:-1]
    cycle = np.cumsum(new) - 1
    start = np.flatnonzero(new)
    cluster = rows.cluster[start].astype(np.int64)
    if (wrong := cluster[cycle] != rows.cluster).any():
        first = rows.cycle[int(np.argmax(wrong))]
        raise InputError("scores", [Problem(f"cycle {first}", "a cycle lies in one cluster (got several)")])
    counts = np.bincount(cycle * agents + rows.agent, minlength=start.size * agents).reshape(-1, agents)
    base = int(counts.max(initial=0)) + 1
    if agents * _bits(base) + _bits(clusters) < 62:
        key = (counts @ (base ** np.arange(agents, dtype=np.int64))) * clusters + cluster
        _, first, which, cycles = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    else:
        key = np.concatenate([cluster[:, None], counts], axis=1)
        _, first, which, cycles = np.unique(key, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return which.ravel()[cycle].astype(np.int64), counts[first], cluster[first], cycles.astype(np.int64)


def _bits(value: int) -> int:
    """Bits that a number below ``value`` needs."""
    return max(1, (value - 1).bit_length())


def _dimension(
    columns: tuple[Codes, ...],
    layout: Layout,
    seat: Ints,
    seats: int,
    group: Ints,
    groups: int,
    cell_of: Ints | None,
) -> tuple[Ints, Ints]:
    """Contingency tables [groups, P, 5, 5] and sums by seat and judge [seats, J] of one dimension."""
    judges = len(columns)
    patterns = CATEGORIES**judges
    if cell_of is None or seats * patterns > _JOINT:
        sums = [np.bincount(seat, weights=column, minlength=seats) for column in columns]
        codes = [column - 1 for column in columns]
        return _pairs(codes, layout, 1, group, groups), np.stack(sums, axis=1).astype(np.int64)
    # One count of all judges' scores at once, by line-up, cluster and agent, holds both answers.
    # Signed and just wide enough: the arithmetic is bound by memory.
    code: NDArray[np.signedinteger[Any]] = columns[0].astype(np.int16 if patterns < _SHORT else np.int32)
    for column in columns[1:]:
        code *= CATEGORIES
        code += column
    code -= sum(CATEGORIES**j for j in range(judges))
    joint = np.bincount(seat * patterns + code, minlength=seats * patterns)
    cells = joint.reshape(seats, *[CATEGORIES] * judges)
    by_group = np.zeros((groups, *[CATEGORIES] * judges), dtype=np.int64)
    np.add.at(by_group, cell_of, cells)
    tables = [by_group.sum(axis=_without(judges, a, b)) for a, b in layout.pairs]
    values = np.arange(1, CATEGORIES + 1)
    sums = [cells.sum(axis=_without(judges, j)) @ values for j in range(judges)]
    return _stack(tables, groups, CATEGORIES), np.stack(sums, axis=1)


def _without(judges: int, *kept: int) -> tuple[int, ...]:
    """The axes of the judges that are summed over; axis 0 is not a judge."""
    return tuple(j + 1 for j in range(judges) if j not in kept)


def _weighted(columns: list[Codes], layout: Layout) -> Codes:
    """Level of one judge's aggregate [T], from 0: exact, because scores and weights are whole numbers."""
    kind = np.int16 if layout.levels[0] < _SHORT // 2 else np.int32
    found = np.full(columns[0].shape, -sum(layout.weights), dtype=kind)
    for column, weight in zip(columns, layout.weights, strict=True):
        found += column if weight == 1 else np.multiply(column, weight, dtype=kind)
    return found


def _pairs(codes: list[Codes], layout: Layout, name: int, group: Ints, groups: int) -> Ints:
    """Contingency tables [groups, P, S, S] of one name, from levels that start at 0."""
    size = layout.levels[name]
    base = group * (size * size)
    tables = []
    for a, b in layout.pairs:
        place = base + codes[a].astype(np.int64) * size
        place += codes[b]
        tables.append(np.bincount(place, minlength=groups * size * size).reshape(groups, size, size))
    return _stack(tables, groups, size)


def _stack(tables: list[Ints], groups: int, size: int) -> Ints:
    return np.stack(tables, axis=1) if tables else np.zeros((groups, 0, size, size), dtype=np.int64)


def _lengths(length: Codes, aggregate: list[Codes]) -> tuple[int, ...]:
    """Sums of length x and panel aggregate y, in units of one step of the sum over judges: x, x², y, y², xy."""
    x = length.astype(np.int64)
    y = np.add.reduce([column.astype(np.int64) for column in aggregate])
    return tuple(int(value) for value in (x.sum(), x @ x, y.sum(), y @ y, x @ y))
