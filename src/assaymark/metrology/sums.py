"""Sufficient statistics of a score table: whole numbers that add up over parts of it, of any size and in any order."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Final

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.metrology.agreement import Pair
from assaymark.metrology.arrow import weights_of
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.table import excess_replies, missing_shares

CATEGORIES: Final = 5

_LARGEST_TABLES: Final = 1 << 24  # cells of contingency tables, 128 MB
_LARGEST_SUMS: Final = 1 << 25  # sums by line-up, cluster, agent, judge and dimension, 256 MB
_DENOMINATOR: Final = 1000


@dataclass(frozen=True, slots=True)
class Layout:
    """What two parts must have in common to add up: the panel, the dimensions, and how they make the aggregate.

    ``weights`` [D] are whole numbers in the ratio of the aggregate's weights. ``paired`` is False where no column names
    the cycle: each cluster then counts as one cycle.
    """

    judges: tuple[str, ...]
    families: tuple[str, ...]
    dimensions: tuple[str, ...]
    weights: tuple[int, ...]
    paired: bool = True

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Every pair of judges."""
        return tuple(combinations(range(len(self.judges)), 2))

    @property
    def levels(self) -> tuple[int, ...]:
        """How many values each name takes: the aggregate, then each dimension."""
        return ((CATEGORIES - 1) * sum(self.weights) + 1, *[CATEGORIES] * len(self.dimensions))

    @property
    def share(self) -> Floats:
        """Weights that sum to 1 [D]."""
        return np.array(self.weights, dtype=np.float64) / sum(self.weights)

    def values(self, name: int) -> Floats:
        """The score that each level of a name stands for."""
        steps = sum(self.weights) if name == 0 else 1
        return 1.0 + np.arange(self.levels[name]) / steps


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums:
    """Sums of complete trajectories (scored by every judge), from which all panel statistics follow exactly.

    ``tables`` holds, for the aggregate and each dimension, how often one judge's level met another's:
    [F, G, P, S, S] by format, cluster and pair of judges; ``sizes`` [F, G] counts the trajectories.

    A line-up is the number of decisions of each agent in one cycle. ``lineups`` [R, A] and ``places`` [R] are the
    distinct pairs of line-up and cluster, ``cycles`` [R] how many cycles have them, and ``scores`` [R, A, J, D] the
    sums of their scores. Within a line-up every agent has the same number of decisions in each cycle, so means,
    contrasts over common cycles and least-squares levels are linear in these sums, for the whole panel and without any
    judge. ``replies`` [J, A, 2] counts the usable and the unusable rows of each judge on each agent, ``left_out`` the
    trajectories that lack a usable one from some judge and are in no other sum. ``lengths`` [5] are the sums of length,
    length², panel aggregate, aggregate², and their product, or None. ``makers`` [A] are the families of the agents,
    empty where an agent has none of its own, or None where no column names them.

    Parts of one table add up with ``+``, in any order.
    """

    layout: Layout
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
        """Number of complete trajectories."""
        return int(self.sizes.sum())

    @property
    def calls(self) -> Ints:
        """Usable and unusable rows of each judge [J, 2]."""
        return np.asarray(self.replies.sum(axis=1))

    @property
    def asked(self) -> dict[str, int]:
        """Rows of each judge."""
        return dict(zip(self.layout.judges, self.calls.sum(axis=1).tolist(), strict=True))

    def missing(self) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """As `ScoreTable.missing`: every row is a record that a judge was asked about."""
        return missing_shares(self.layout.judges, self.agents, self.replies)

    def excess(self, *, per_judge: float, per_agent: float) -> dict[str, str]:
        """As `ScoreTable.excess`."""
        return excess_replies(*self.missing(), per_judge=per_judge, per_agent=per_agent)

    @property
    def agent_families(self) -> dict[str, str] | None:
        """The family of each agent; an agent of no family is its own. None where no column names them."""
        if self.makers is None:
            return None
        return {agent: maker or agent for agent, maker in zip(self.agents, self.makers, strict=True)}

    @property
    def decisions(self) -> Ints:
        """Decisions of each agent under each line-up and cluster [R, A]."""
        return np.asarray(self.lineups * self.cycles[:, None])

    def __add__(self, other: ScoreSums) -> ScoreSums:
        """The sums of both parts."""
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
        one, two = self._under(*names), other._under(*names)
        lengths = None
        if one.lengths is not None and two.lengths is not None:
            lengths = tuple(a + b for a, b in zip(one.lengths, two.lengths, strict=True))
        lineups, places, cycles, scores = gathered(
            self.layout.paired,
            np.concatenate([one.lineups, two.lineups]),
            np.concatenate([one.places, two.places]),
            np.concatenate([one.cycles, two.cycles]),
            np.concatenate([one.scores, two.scores]),
        )
        return ScoreSums(
            layout=self.layout,
            agents=names[0],
            clusters=names[1],
            formats=names[2],
            tables=tuple(a + b for a, b in zip(one.tables, two.tables, strict=True)),
            sizes=one.sizes + two.sizes,
            lineups=lineups,
            places=places,
            cycles=cycles,
            scores=scores,
            replies=one.replies + two.replies,
            left_out=one.left_out + two.left_out,
            lengths=lengths,
            makers=_makers(names[0], self, other),
        )

    def _under(self, agents: tuple[str, ...], clusters: tuple[str, ...], formats: tuple[str, ...]) -> ScoreSums:
        """The same sums with room for more names."""
        if (agents, clusters, formats) == (self.agents, self.clusters, self.formats):
            return self
        who, where, how = (
            np.array([names.index(name) for name in own], dtype=np.int64)
            for names, own in ((agents, self.agents), (clusters, self.clusters), (formats, self.formats))
        )
        require_room(self.layout, len(agents), len(clusters), len(formats), self.places.size)

        def wider(table: Ints) -> Ints:
            found = np.zeros((len(formats), len(clusters), *table.shape[2:]), dtype=np.int64)
            found[np.ix_(how, where)] = table
            return found

        lineups = np.zeros((self.places.size, len(agents)), dtype=np.int64)
        lineups[:, who] = self.lineups
        scores = np.zeros((self.places.size, len(agents), *self.scores.shape[2:]), dtype=np.int64)
        scores[:, who] = self.scores
        replies = np.zeros((len(self.layout.judges), len(agents), 2), dtype=np.int64)
        replies[:, who] = self.replies
        return ScoreSums(
            layout=self.layout,
            agents=agents,
            clusters=clusters,
            formats=formats,
            tables=tuple(map(wider, self.tables)),
            sizes=wider(self.sizes),
            lineups=lineups,
            places=where[self.places],
            cycles=self.cycles,
            scores=scores,
            replies=replies,
            left_out=self.left_out,
            lengths=self.lengths,
        )

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the sums: equal for equal tables, however they were cut."""
        found = hashlib.sha256(repr((self.layout, self.agents, self.clusters, self.formats)).encode())
        for part in (*self.tables, self.sizes, self.lineups, self.places, self.cycles, self.scores, self.replies):
            found.update(np.ascontiguousarray(part).tobytes())
        found.update(repr((self.left_out, self.lengths)).encode())
        if self.makers is not None:
            found.update(repr(self.makers).encode())
        return found.hexdigest()[:16]


def _makers(agents: Sequence[str], one: ScoreSums, other: ScoreSums) -> tuple[str, ...] | None:
    """The families of the agents of both parts, which have to agree."""
    if one.makers is None or other.makers is None:
        return None
    first, second = (dict(zip(part.agents, part.makers or (), strict=True)) for part in (one, other))
    problems = [
        Problem(f"agent {name}", f"one agent has one agent_family (got {first[name]}, {second[name]})")
        for name in sorted(first.keys() & second.keys())
        if first[name] != second[name]
    ]
    if problems:
        raise InputError("scores", problems)
    known = first | second
    return tuple(known[name] for name in agents)


def total(parts: Iterable[ScoreSums]) -> ScoreSums:
    """The sum of all parts; there is at least one."""
    return reduce(lambda one, other: one + other, parts)


def gathered(paired: bool, lineups: Ints, places: Ints, cycles: Ints, scores: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Distinct line-ups and clusters in sorted order, with the sums of what stood under each.

    Where clusters stand for cycles, a cluster has one line-up, and parts of it add up.
    """
    key = np.concatenate([places[:, None], lineups], axis=1) if paired else places[:, None]
    distinct, place = np.unique(key, axis=0, return_inverse=True)
    place, r = place.ravel(), len(distinct)
    many = np.ones(r, dtype=np.int64)
    if paired:
        many[:] = 0
        np.add.at(many, place, cycles)
    sums = np.zeros((r, *scores.shape[1:]), dtype=np.int64)
    np.add.at(sums, place, scores)
    found = np.zeros((r, lineups.shape[1]), dtype=np.int64)
    if paired:
        found[place] = lineups
    else:
        np.add.at(found, place, lineups)
    return found, np.asarray(distinct[:, 0]), many, sums


def require_room(layout: Layout, agents: int, clusters: int, formats: int, lineups: int) -> None:
    """Refuse a table whose sums would be larger than what is gained by summing."""
    cells = formats * clusters * len(layout.pairs) * sum(size * size for size in layout.levels)
    if cells > _LARGEST_TABLES:
        raise InputError(
            "scores",
            [Problem("", f"{clusters} clusters x {formats} formats need {cells:,} cells of contingency tables")],
        )
    sums = lineups * agents * len(layout.judges) * len(layout.dimensions)
    if sums > _LARGEST_SUMS:
        what = f"{lineups:,} different line-ups of {agents} agents in {clusters} clusters are too many to sum by"
        raise InputError("scores", [Problem("", what)])


def whole_weights(dimensions: tuple[str, ...], weights: Mapping[str, float] | None) -> tuple[int, ...]:
    """Weights as the smallest whole numbers in their ratio.

    Raises
    ------
    InputError
        Weights that do not fit the dimensions, or are no ratio of whole numbers up to 1,000.

    Examples
    --------
    >>> whole_weights(("clarity", "risk"), {"clarity": 0.5, "risk": 0.25})
    (2, 1)
    """
    if weights is None:
        return (1,) * len(dimensions)
    share = weights_of(dimensions, weights)
    ratios = [Fraction(value).limit_denominator(_DENOMINATOR) for value in share.tolist()]
    if max(abs(float(ratio) - value) for ratio, value in zip(ratios, share.tolist(), strict=True)) > 1e-12:
        what = f"must be ratios of whole numbers up to {_DENOMINATOR:,} on a table of this size (got {dict(weights)})"
        raise InputError("scores", [Problem("weights", what)])
    scale = math.lcm(*(ratio.denominator for ratio in ratios))
    return tuple(int(ratio * scale) for ratio in ratios)
