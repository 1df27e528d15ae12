"""A score table made ready for analysis: panel scores with and without each family, and sums by pair of agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import settle
from assaymark.metrology.effects import Design, group_sums
from assaymark.metrology.scores import ScoreTable
from assaymark.metrology.stability import drops_of
from assaymark.protocol import Study
from assaymark.records import Measurement


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where two agents met: paired differences (first minus second) summed by common cluster.

    ``sums`` [G, columns] and ``cycles`` [G] are over the common clusters, whose indices are in ``clusters``; ``n`` is
    the number of common cycles.
    """

    first: int
    second: int
    clusters: Ints
    sums: Floats
    cycles: Ints

    n: int


@dataclass(frozen=True, slots=True)
class Panel:
    """Everything that the measurements share. Columns are names x (whole panel, each judge alone, each family out).

    ``scores`` [n, J, K] are the judges' scores with the aggregate in front, ``drops`` maps a family to its place among
    the blocks of K columns (the whole panel is block 0, judge j alone block j + 1). ``differences`` [P, columns] are
    the mean paired differences of every pair, first minus second, NaN where the two never met.
    """

    table: ScoreTable
    study: Study
    scores: Floats
    drops: Mapping[str, int]
    columns: Floats
    design: Design
    meetings: tuple[Meeting, ...]
    differences: Floats

    @property
    def names(self) -> tuple[str, ...]:
        """Aggregate and dimensions."""
        return self.table.names

    @property
    def whole(self) -> Floats:
        """Panel score [n, K]: mean over all judges."""
        return self.columns[:, : len(self.names)]

    def block(self, family: str) -> slice:
        """The columns in which ``family`` is left out."""
        return self._block(self.drops[family])

    def alone(self, judge: int) -> slice:
        """The columns in which the judge with this index stands alone."""
        return self._block(judge + 1)

    def _block(self, place: int) -> slice:
        width = len(self.names)
        return slice(place * width, (place + 1) * width)

    def measure(self, name: str, labels: Mapping[str, str], **parts: Any) -> Measurement:
        """A measurement on this table, carrying its digest."""
        return Measurement(name=name, labels=labels, inputs=self.table.digest, **parts)

    @property
    def missing(self) -> str | None:
        """Why nothing about the panel can be measured, or None."""
        return None if self.table.n else "not measurable: no trajectory has a usable score from every judge"


def panel_of(table: ScoreTable, study: Study) -> Panel:
    """Panel scores, the design of agents and cycles, and every pair's meetings."""
    scores = table.stacked
    n, judges, width = scores.shape
    try:
        kept = drops_of(table.families)
    except NotMeasurableError:
        kept = {}
    blocks = [scores.mean(axis=1), scores.reshape(n, judges * width)]
    blocks += [scores[:, keep].mean(axis=1) for keep in kept.values()]
    columns = np.concatenate(blocks, axis=1)
    cluster = np.zeros(len(table.cycles), dtype=np.int64)
    cluster[table.cycle] = table.cluster
    meetings = tuple(_meetings(table, columns, cluster))
    differences = np.full((len(meetings), columns.shape[1]), np.nan)
    for pair, meeting in enumerate(meetings):
        if meeting.n:
            differences[pair] = settle(meeting.sums.sum(axis=0) / meeting.n)
    return Panel(
        table=table,
        study=study,
        scores=scores,
        drops={family: k for k, family in enumerate(kept, start=1 + judges)},
        columns=columns,
        design=Design.of(columns, table.agent, table.cycle, cluster, len(table.agents)),
        meetings=meetings,
        differences=differences,
    )


def _meetings(table: ScoreTable, columns: Floats, cluster: Ints) -> list[Meeting]:
    """Every pair of agents, in order; several decisions of one agent in one cycle count as their mean."""
    order = np.argsort(cluster, kind="stable")
    means, present = _cells(table, columns)
    means, present, cluster = means[:, order], present[:, order], cluster[order]
    found = []
    for a, b in combinations(range(len(table.agents)), 2):
        common = np.flatnonzero(present[a] & present[b])
        counts = np.bincount(cluster[common])
        clusters = np.flatnonzero(counts)
        cycles = counts[clusters]
        differences = means[a, common] - means[b, common]
        # reduceat wants at least one segment.
        sums = np.add.reduceat(differences, np.cumsum(cycles) - cycles, axis=0) if cycles.size else differences
        found.append(Meeting(a, b, clusters, sums, cycles, common.size))
    return found


def _cells(table: ScoreTable, columns: Floats) -> tuple[Floats, Bools]:
    """Mean score [A, C, columns] of each agent in each cycle, and whether there is one [A, C]."""
    a, c = len(table.agents), len(table.cycles)
    place = table.agent * c + table.cycle
    counts = np.bincount(place, minlength=a * c)
    means = group_sums(columns, place, a * c) / np.maximum(counts, 1)[:, None]
    return means.reshape(a, c, columns.shape[1]), counts.reshape(a, c) > 0


def state_of(error: NotMeasurableError) -> str:
    """The reason in an error as the state of a measurement."""
    return f"undefined: {str(error).rpartition('undefined: ')[2]}"
