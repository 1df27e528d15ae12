"""Every pair of agents under the sources' own tests, which are shown beside the one that decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import Test, Tested, bootstrap_tests, t_test
from assaymark.metrology.flips import flip_tests
from assaymark.metrology.panel import Panel

NEVER = "never compared"
RESAMPLES = 10_000
"""Draws of the bootstrap and of sign flips, whatever the number of contrasts."""


@dataclass(frozen=True, slots=True)
class PairTests:
    """Each of the other tests of every pair of agents [P]; pairs that never met hold p = 1 in every family.

    Columns are those of the panel: the whole panel, then (for the cluster t) each judge alone.
    """

    tested: dict[Test, tuple[Tested, ...]]

    def p(self, test: Test, columns: int) -> Floats:
        """p-values [P, columns] of one test."""
        return np.array([one.p[:columns] for one in self.tested[test]]).reshape(len(self.tested[test]), columns)


def pair_tests(panel: Panel, rng: np.random.Generator) -> PairTests:
    """The tests that the sources name, of all pairs; pairs with equally many clusters share their resamples."""
    plan, width = panel.study.inference, len(panel.names)
    wide = width * (1 + len(panel.table.judges))
    parts = [(meeting.sums[:, :wide], meeting.cycles) for meeting in panel.meetings]
    blank = _blank(wide)

    def drawn(make: Callable[..., list[Tested]]) -> tuple[Tested, ...]:
        met: dict[int, list[int]] = defaultdict(list)
        for pair, meeting in enumerate(panel.meetings):
            met[meeting.clusters.size].append(pair)
        found = [blank] * len(parts)
        for clusters, pairs in sorted(met.items()):
            if clusters:
                several = make(
                    [(parts[pair][0][:, :width], parts[pair][1]) for pair in pairs],
                    resamples=plan.resamples or RESAMPLES,
                    rng=rng,
                    level=plan.level,
                    intervals=[False] * len(pairs),
                    leading=width,
                )
                for pair, one in zip(pairs, several, strict=True):
                    found[pair] = one
        return tuple(found)

    return PairTests(
        {
            "cluster-t": tuple(_t(part, plan.level, blank) for part in parts),
            "bootstrap": drawn(bootstrap_tests),
            "sign-flip": drawn(flip_tests),
        }
    )


def _t(part: tuple[Floats, Ints], level: float, blank: Tested) -> Tested:
    return t_test(*part, level=level) if part[1].size else blank


def _blank(width: int) -> Tested:
    """What a pair without common cycles has under any test."""
    nothing = np.full(width, np.nan)
    return Tested(np.zeros(width), np.ones(width), nothing, nothing, 0, (NEVER,) * width)
