"""Sufficient statistics of a score table: integers that add up over its parts, of any size and in any order."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.estimates import excess_replies, missing_shares
from assaymark.metrology.kappa import Pair
from assaymark.metrology.scores import weight_problems, weight_shares
from assaymark.plan import MissingLimits
from assaymark.protocol import SCALE, Scale

_LARGEST_TABLES: Final = 1 << 24  # cells of contingency tables, 128 MB
_LARGEST_SUMS: Final = 1 << 25  # sums by line-up, cluster, agent, judge and dimension, 256 MB
_DENOMINATOR: Final = 1000


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The attributes that parts must share to be added: the panel, the dimensions, and their weights in the aggregate.
    ``weights`` [D] are integers in the ratio of the aggregate's weights. ``paired`` is False without a cycle column;
    each cluster then counts as one cycle. ``scale`` has integer ends."""

    judges: tuple[str, ...]
    families: tuple[str, ...]
    dimensions: tuple[str, ...]
    weights: tuple[int, ...]
    paired: bool = True
    scale: Scale = field(default=SCALE, repr=False)  # sums of 1..5 keep their digest

    @property
    def lowest(self) -> int:
        """The lowest score."""
        return int(self.scale[0])

    @property
    def categories(self) -> int:
        """The number of integer levels of the scale."""
        return int(self.scale[1]) - self.lowest + 1

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Every pair of judges."""
        return tuple(combinations(range(len(self.judges)), 2))

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of possible values of the aggregate, then of each dimension."""
        return ((self.categories - 1) * sum(self.weights) + 1, *[self.categories] * len(self.dimensions))

    @property
    def share(self) -> Floats:
        """The weights normalised to sum to 1 [D]."""
        return np.array(self.weights, dtype=np.float64) / sum(self.weights)

    def values(self, name: int) -> Floats:
        """Return the score of each level of a name."""
        steps = sum(self.weights) if name == 0 else 1
        return self.scale[0] + np.arange(self.levels[name]) / steps


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums:
    """Sums of complete trajectories (scored by every judge), which determine all panel statistics exactly.
    ``tables`` has, for the aggregate and each dimension, the contingency tables [F, G, P, S, S] of two judges' levels
    by format, cluster and pair of judges; ``sizes`` [F, G] counts the trajectories."""

    layout: TableSpec
    agents: tuple[str, ...]
    clusters: tuple[str, ...]
    formats: tuple[str, ...]
    tables: tuple[Ints, ...]
    sizes: Ints
    lineups: Ints
    places: Ints
    cycles: Ints
    scores: Ints
    replies: Ints
    left_out: int
    lengths: tuple[int, ...] | None
    makers: tuple[str, ...] | None = None

    @property
    def n(self) -> int:
        """The number of complete trajectories."""
        return int(self.sizes.sum())

    @property
    def calls(self) -> Ints:
        """The numbers of usable and unusable rows of each judge [J, 2]."""
        return np.asarray(self.replies.sum(axis=1))

    @property
    def asked(self) -> dict[str, int]:
        """The number of rows of each judge."""
        return dict(zip(self.layout.judges, self.calls.sum(axis=1).tolist(), strict=True))

    def missing(self) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """Compute `ScoreTable.missing`; every row counts as a requested reply."""
        return missing_shares(self.layout.judges, self.agents, self.replies)

    def excess(self, allowed: MissingLimits) -> dict[str, str]:
        """Compute `ScoreTable.excess`."""
        return excess_replies(*self.missing(), allowed.per_judge, allowed.per_agent)

    @property
    def agent_families(self) -> dict[str, str] | None:
        """The family of each agent, its own id if it has none; None without a family column."""
        if self.makers is None:
            return None
        return {agent: maker or agent for agent, maker in zip(self.agents, self.makers, strict=True)}

    @property
    def decisions(self) -> Ints:
        """The number of decisions of each agent by line-up and cluster [R, A]."""
        return np.asarray(self.lineups * self.cycles[:, None])

    def __add__(self, other: ScoreSums) -> ScoreSums:
        """Add the sums of two parts."""
        if self.layout != other.layout:
            raise InputError(
                "scores", [Problem("", "parts with different judges, dimensions or weights do not add up")]
            )
        for name, column in (("lengths", "length"), ("makers", "agent_family")):
            if (getattr(self, name) is None) != (getattr(other, name) is None):
                raise InputError("scores", [Problem(column, "one part has this column and the other has not")])
        names = [
            tuple(sorted({*getattr(self, name), *getattr(other, name)})) for name in ("agents", "clusters", "formats")
        ]
        sums, two = self._under(*names), other._under(*names)
        lengths = None
        if sums.lengths is not None and two.lengths is not None:
            lengths = tuple(a + b for a, b in zip(sums.lengths, two.lengths, strict=True))
        makers = None
        if self.makers is not None and other.makers is not None:
            first, second = (
                dict(zip(self.agents, self.makers, strict=True)), dict(zip(other.agents, other.makers, strict=True)),
            )  # fmt: skip
            problems = [
                Problem(f"agent {name}", f"one agent has one agent_family (got {first[name]}, {second[name]})")
                for name in sorted(first.keys() & second.keys())
                if first[name] != second[name]
            ]
            if problems:
                raise InputError("scores", problems)
            makers = tuple((first | second)[name] for name in names[0])
        both = ((part.lineups, part.places, part.cycles, part.scores) for part in (sums, two))
        lineups, places, cycles, scores = merge_equal(self.layout.paired, *map(np.concatenate, zip(*both, strict=True)))
        return ScoreSums(
            self.layout, names[0], names[1], names[2],
            tuple(a + b for a, b in zip(sums.tables, two.tables, strict=True)), sums.sizes + two.sizes, lineups, places,
            cycles, scores, sums.replies + two.replies, sums.left_out + two.left_out, lengths, makers,
        )  # fmt: skip

    def _under(self, agents: tuple[str, ...], clusters: tuple[str, ...], formats: tuple[str, ...]) -> ScoreSums:
        """Return the same sums, re-indexed for more names."""
        if (agents, clusters, formats) == (self.agents, self.clusters, self.formats):
            return self
        agent_codes, cluster_codes, how = (
            np.array([names.index(name) for name in labels], dtype=np.int64)
            for names, labels in ((agents, self.agents), (clusters, self.clusters), (formats, self.formats))
        )
        require_room(self.layout, len(agents), len(clusters), len(formats), self.places.size)

        def wider(table: Ints) -> Ints:
            wide = np.zeros((len(formats), len(clusters), *table.shape[2:]), dtype=np.int64)
            wide[np.ix_(how, cluster_codes)] = table
            return wide

        def by_agent(table: Ints) -> Ints:
            wide = np.zeros((table.shape[0], len(agents), *table.shape[2:]), dtype=np.int64)
            wide[:, agent_codes] = table
            return wide

        return replace(
            self, agents=agents, clusters=clusters, formats=formats, tables=tuple(map(wider, self.tables)),
            sizes=wider(self.sizes), lineups=by_agent(self.lineups), places=cluster_codes[self.places],
            scores=by_agent(self.scores), replies=by_agent(self.replies),
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """A hash of sixteen hex digits over the sums, equal for equal tables however they are partitioned."""
        hashed = hashlib.sha256(repr((self.layout, self.agents, self.clusters, self.formats)).encode())
        for part in (*self.tables, self.sizes, self.lineups, self.places, self.cycles, self.scores, self.replies):
            hashed.update(np.ascontiguousarray(part).tobytes())
        hashed.update(repr((self.left_out, self.lengths)).encode())
        if self.makers is not None:
            hashed.update(repr(self.makers).encode())
        return hashed.hexdigest()[:16]


def total(parts: Iterable[ScoreSums]) -> ScoreSums:
    """Add all parts, of which there must be at least one."""
    return reduce(lambda sums, other: sums + other, parts)


def merge_equal(paired: bool, lineups: Ints, places: Ints, cycles: Ints, scores: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Merge equal line-ups and clusters; return them sorted, with the sums of their cycles and scores."""
    key = np.concatenate([places[:, None], lineups], axis=1) if paired else places[:, None]
    distinct, place = np.unique(key, axis=0, return_inverse=True)
    place, r = place.ravel(), len(distinct)
    many = np.ones(r, dtype=np.int64)
    if paired:
        many[:] = 0
        np.add.at(many, place, cycles)
    sums = np.zeros((r, *scores.shape[1:]), dtype=np.int64)
    np.add.at(sums, place, scores)
    merged = np.zeros((r, lineups.shape[1]), dtype=np.int64)
    if paired:
        merged[place] = lineups
    else:
        np.add.at(merged, place, lineups)
    return merged, np.asarray(distinct[:, 0]), many, sums


def require_room(layout: TableSpec, agents: int, clusters: int, formats: int, lineups: int) -> None:
    """Raise NotStreamableError for a table whose sums would be too large to be worthwhile."""
    cells = formats * clusters * len(layout.pairs) * sum(size * size for size in layout.levels)
    if cells > _LARGEST_TABLES:
        raise InputError(
            "scores",
            [Problem("", f"{clusters} clusters x {formats} formats need {cells:,} cells of contingency tables")],
        )
    sums = lineups * agents * len(layout.judges) * len(layout.dimensions)
    if sums > _LARGEST_SUMS:
        problem = f"{lineups:,} different line-ups of {agents} agents in {clusters} clusters are too many to sum by"
        raise InputError("scores", [Problem("", problem)])


def whole_weights(dimensions: tuple[str, ...], weights: Mapping[str, float] | None) -> tuple[int, ...]:
    """Convert weights to the smallest integers with the same ratio."""
    if weights is None:
        return (1,) * len(dimensions)
    if problems := weight_problems(dimensions, weights, of="scores"):
        raise InputError("scores", problems)
    share = weight_shares(dimensions, weights)
    ratios = [Fraction(value).limit_denominator(_DENOMINATOR) for value in share.tolist()]
    if max(abs(float(ratio) - value) for ratio, value in zip(ratios, share.tolist(), strict=True)) > 1e-12:
        text = f"must be ratios of whole numbers up to {_DENOMINATOR:,} on a table of this size (got {dict(weights)})"
        raise InputError("scores", [Problem("weights", text)])
    scale = math.lcm(*(ratio.denominator for ratio in ratios))
    return tuple(int(ratio * scale) for ratio in ratios)


# Counting one part of a score table: from columns of codes and small integer scores to sums.


Codes = NDArray[np.integer[Any]]  # of any width

_JOINT: Final = 1 << 18  # bins of one count that fit in a cache; above, pairs of judges are counted separately
_SHORT: Final = 1 << 15


class NotStreamableError(Exception):
    """The rows cannot be counted in one pass. ``sortable`` is True if sorting them would help."""

    def __init__(self, reason: str, *, sortable: bool = True) -> None:
        self.sortable = sortable
        super().__init__(reason)


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """Rows of whole cycles in the order of cycle, trajectory and judge.
    Codes [rows] index sorted names. ``scores`` has one column [rows] per dimension, counted from 1 for the lowest
    score, 0 if missing. ``format`` and ``length`` may be None, and also ``cycle`` if each cluster is one cycle;
    ``makers`` are the families of the agents, or None."""

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


class Complete(NamedTuple):
    """The trajectories [T] of a part that every judge scored; ``scores`` are D x J columns [T]."""

    agent: Codes
    cluster: Codes
    format: Codes | None
    cycle: Codes | None
    length: Codes | None
    scores: tuple[tuple[Codes, ...], ...]

    @classmethod
    def of(cls, part: Shard | Complete, rows: Any, scores: tuple[tuple[Codes, ...], ...]) -> Complete:
        """Select some rows of each column."""
        agent, cluster = part.agent[rows], part.cluster[rows]
        how, when, length = (None if x is None else x[rows] for x in (part.format, part.cycle, part.length))
        return cls(agent, cluster, how, when, length, scores)

    def only(self, rows: Bools) -> Complete:
        """Select some of the trajectories."""
        return Complete.of(self, rows, tuple(tuple(column[rows] for column in columns) for columns in self.scores))


def count(part: Shard, layout: TableSpec) -> ScoreSums:
    """Compute the sums of one part."""
    judges, size = len(layout.judges), layout.categories
    rows, replies, left_out = _complete(part, judges)
    a, g = len(part.agents), len(part.clusters)
    which, lineups, places, cycles = _lineups(rows, a, g)
    require_room(layout, a, g, len(part.formats), places.size)
    seat, seats = which * a + rows.agent, places.size * a
    group, groups, cell_of = rows.cluster.astype(np.int64), len(part.formats) * g, np.repeat(places, a)
    if rows.format is not None:
        group = rows.format.astype(np.int64) * g + group
    # Contingency tables [groups, P, S, S] and sums by seat and judge [seats, J] of each dimension, counted from 1.
    sums = np.empty((seats, judges, len(layout.dimensions)), dtype=np.int64)
    tables, patterns, values = [np.zeros(0, dtype=np.int64)], size**judges, np.arange(1, size + 1)
    for d, columns in enumerate(rows.scores):
        if rows.format is not None or seats * patterns > _JOINT:
            each = [np.bincount(seat, weights=column, minlength=seats) for column in columns]
            tables.append(_pairs([column - 1 for column in columns], layout, 1, group, groups))
        else:
            # One joint count of all judges' scores, by line-up, cluster and agent, gives both results.
            # Signed and just wide enough, because memory bandwidth limits the speed.
            code: NDArray[np.signedinteger[Any]] = columns[0].astype(np.int16 if patterns < _SHORT else np.int32)
            for column in columns[1:]:
                code *= size
                code += column
            code -= sum(size**j for j in range(judges))
            joint = np.bincount(seat * patterns + code, minlength=seats * patterns)
            cells = joint.reshape(seats, *[size] * judges)
            by_group = np.zeros((groups, *[size] * judges), dtype=np.int64)
            np.add.at(by_group, cell_of, cells)
            axes = range(1, judges + 1)  # axes of the judges, summed over unless selected
            met = [by_group.sum(axis=tuple(j for j in axes if j - 1 not in pair)) for pair in layout.pairs]
            tables.append(np.stack(met, axis=1) if met else np.zeros((groups, 0, size, size), dtype=np.int64))
            each = [cells.sum(axis=tuple(j for j in axes if j != ax)) @ values for ax in axes]
        sums[:, :, d] = np.stack(each, axis=1)
    # Level of each judge's aggregate [T], from 0: exact, because scores and weights are integers.
    aggregate = list[Codes]()
    kind = np.int16 if layout.levels[0] < _SHORT // 2 else np.int32
    for by_dimension in zip(*rows.scores, strict=True):
        total = np.full(by_dimension[0].shape, -sum(layout.weights), dtype=kind)
        for column, weight in zip(by_dimension, layout.weights, strict=True):
            total += column if weight == 1 else np.multiply(column, weight, dtype=kind)
        aggregate.append(total)
    tables[0] = _pairs(aggregate, layout, 0, group, groups)
    sums += (layout.lowest - 1) * np.bincount(seat, minlength=len(sums))[:, None, None]
    lengths = None
    if rows.length is not None:
        # Sums of length x and panel aggregate y, in units of one step of the sum over judges: x, x², y, y², xy.
        x, y = rows.length.astype(np.int64), np.add.reduce([column.astype(np.int64) for column in aggregate])
        lengths = tuple(int(value) for value in (x.sum(), x @ x, y.sum(), y @ y, x @ y))
    shape = (len(part.formats), g, len(layout.pairs))
    gathers = merge_equal(layout.paired, lineups, places, cycles, sums.reshape(places.size, a, *sums.shape[1:]))
    return ScoreSums(
        layout, part.agents, part.clusters, part.formats,
        tuple(table.reshape(*shape, levels, levels) for table, levels in zip(tables, layout.levels, strict=True)),
        np.bincount(group, minlength=groups).reshape(shape[:2]), *gathers, replies, left_out, lengths, part.makers,
    )  # fmt: skip


def _complete(part: Shard, judges: int) -> tuple[Complete, Ints, int]:
    """Return the complete trajectories, usable and unusable rows [J, A, 2], and the number of incomplete ones."""
    first, order = slice(None, None, judges), np.zeros(0, dtype=np.int64)
    # True if every trajectory has one row per judge in the same order, with equal attributes in all its rows.
    regular = bool(part.judge.size) and not part.judge.size % judges
    if regular:
        by_judge = part.judge.reshape(-1, judges)
        order = np.argsort(by_judge[0])
        regular = np.array_equal(by_judge[0][order], np.arange(judges)) and bool((by_judge == by_judge[0]).all())
    if regular:
        attributes = (part.trajectory, part.cycle, part.agent, part.cluster, part.format, part.length)
        same = (column for column in attributes if column is not None)
        regular = all(np.array_equal(column[k::judges], column[first]) for column in same for k in range(1, judges))
    if regular:
        fresh = part.trajectory[first][1:] != part.trajectory[first][:-1]
        if part.cycle is not None:
            fresh |= part.cycle[first][1:] != part.cycle[first][:-1]
        regular = bool(fresh.all())
    if not regular:
        return _gather_rows(part, judges)
    _require_order(part, first)
    # Views, not copies: row k of every trajectory belongs to one judge.
    columns = tuple(tuple(column[int(k) :: judges] for k in order) for column in part.scores)
    usable = np.stack([np.logical_and.reduce([c[j] > 0 for c in columns]) for j in range(judges)])
    complete: Bools = np.asarray(usable.all(axis=0))
    agents, agent = len(part.agents), part.agent[first]
    replies = np.zeros((judges, agents, 2), dtype=np.int64)
    replies[:, :, 0] = np.bincount(agent, minlength=agents)
    if not complete.all():
        replies[:, :, 1] = [np.bincount(agent[~row], minlength=agents) for row in usable]
        replies[:, :, 0] -= replies[:, :, 1]
    rows = Complete.of(part, first, columns)
    return (rows if complete.all() else rows.only(complete)), replies, int((~complete).sum())


def _require_order(part: Shard, rows: slice) -> None:
    """Raise NotStreamableError unless rows are sorted by cycle, and within a cycle by trajectory."""
    ids = part.trajectory[rows]
    backwards = ids[1:] < ids[:-1]
    if part.cycle is not None:
        cycle = part.cycle[rows]
        if (cycle[1:] < cycle[:-1]).any():
            raise NotStreamableError("the rows are not in the order of their cycles")
        backwards &= cycle[1:] == cycle[:-1]
    if backwards.any():
        raise NotStreamableError("the rows are not in the order of their trajectories")


def _gather_rows(part: Shard, judges: int) -> tuple[Complete, Ints, int]:
    """Gather the rows the slow way, for parts with a missing row of some judge."""
    _require_order(part, slice(None))
    new = np.ones(part.trajectory.size, dtype=bool)
    new[1:] = part.trajectory[1:] != part.trajectory[:-1]
    if part.cycle is not None:
        new[1:] |= part.cycle[1:] != part.cycle[:-1]
    start, which = np.flatnonzero(new), np.cumsum(new) - 1
    problems = []
    for name in ("agent", "cluster", "format", "length"):
        values = getattr(part, name)
        if values is not None and (wrong := values[start][which] != values).any():
            first = part.trajectory[int(np.argmax(wrong))]
            problem = f"one trajectory has one {name} ({int(wrong.sum())} row(s) say otherwise)"
            problems.append(Problem(f"trajectory {first}", problem))
    if problems:
        raise InputError("scores", problems)
    slot = which * judges + part.judge
    if (np.bincount(slot, minlength=1) > 1).any():
        raise NotStreamableError("a judge has several rows for one trajectory", sortable=False)
    usable = np.logical_and.reduce([column > 0 for column in part.scores])
    agents = len(part.agents)
    place = (part.judge.astype(np.int64) * agents + part.agent) * 2 + ~usable
    replies = np.bincount(place, minlength=judges * agents * 2).reshape(judges, agents, 2)
    scored = np.zeros(start.size * judges, dtype=bool)
    scored[slot] = usable
    complete: Bools = np.asarray(scored.reshape(-1, judges).all(axis=1))
    columns = []
    for column in part.scores:
        grid = np.zeros(start.size * judges, dtype=column.dtype)
        grid[slot] = column
        columns.append(tuple(grid[j::judges] for j in range(judges)))
    rows = Complete.of(part, start, tuple(columns))
    return rows.only(complete), replies, int((~complete).sum())


def _lineups(rows: Complete, agents: int, clusters: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the line-up index of each trajectory [T]; the line-ups [R, A], their clusters and cycles [R]."""
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
    if agents * max(1, (base - 1).bit_length()) + max(1, (clusters - 1).bit_length()) < 62:
        key = (counts @ (base ** np.arange(agents, dtype=np.int64))) * clusters + cluster
        _, first, which, cycles = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    else:
        key = np.concatenate([cluster[:, None], counts], axis=1)
        _, first, which, cycles = np.unique(key, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return which.ravel()[cycle].astype(np.int64), counts[first], cluster[first], cycles.astype(np.int64)


def _pairs(codes: list[Codes], layout: TableSpec, name: int, group: Ints, groups: int) -> Ints:
    """Count contingency tables [groups, P, S, S] of one name, from levels that start at 0."""
    size = layout.levels[name]
    base = group * (size * size)
    tables = []
    for a, b in layout.pairs:
        place = base + codes[a].astype(np.int64) * size
        place += codes[b]
        tables.append(np.bincount(place, minlength=groups * size * size).reshape(groups, size, size))
    return np.stack(tables, axis=1) if tables else np.zeros((groups, 0, size, size), dtype=np.int64)
