"""Every pair of agents under every test, made once for all that is read from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import (
    Test,
    Tested,
    bootstrap_tests,
    default_resamples,
    gating_test,
    holm_rows,
    t_test,
)
from assaymark.metrology.flips import flip_tests
from assaymark.metrology.panel import Panel

NEVER = "never compared"
TESTS: tuple[Test, ...] = ("cluster-t", "bootstrap", "sign-flip")
"""The tests that every contrast is put to, whichever of them gates it."""


@dataclass(frozen=True, slots=True)
class PairTests:
    """Each test of every pair of agents [P]; pairs that never met hold p = 1 in every family.

    Columns are those of the panel that a pair can be gated on: the whole panel, then each judge alone. A test that
    gates no pair stops after the whole panel.
    """

    tested: dict[Test, tuple[Tested, ...]]
    gates: tuple[Test, ...]

    def p(self, test: Test, columns: int) -> Floats:
        """p-values [P, columns] of one test."""
        return np.array([one.p[:columns] for one in self.tested[test]])

    def gate_p(self, columns: int) -> Floats:
        """p-values [P, columns] of the test that each pair is gated on."""
        return np.array([self.gated(pair).p[:columns] for pair in range(len(self.gates))])

    def gated(self, pair: int) -> Tested:
        """The test that this pair is gated on."""
        return self.tested[self.gates[pair]][pair]


def adjusted(p: Floats) -> Floats:
    """Holm-adjusted p-values [P, K]: the aggregate in front is one family, all dimensions together are the other."""
    found = np.empty_like(p)
    found[:, 0] = holm_rows(p[None, :, 0])[0]
    if p.shape[1] > 1:
        found[:, 1:] = holm_rows(p[:, 1:].reshape(1, -1)).reshape(p.shape[0], -1)
    return found


def pair_tests(panel: Panel, rng: np.random.Generator) -> PairTests:
    """All tests of all pairs; pairs with equally many clusters share their resamples."""
    plan, width = panel.study.inference, len(panel.names)
    wide = width * (1 + len(panel.table.judges))
    gates = tuple(gating_test(plan.gating_test, meeting.clusters.size) for meeting in panel.meetings)
    parts = [(meeting.sums[:, :wide], meeting.cycles) for meeting in panel.meetings]
    blank = _blank(wide)
    resamples = plan.resamples or default_resamples(len(parts) * max(1, width - 1), panel.study.claim_alpha)

    def drawn(test: Test, make: Callable[..., list[Tested]]) -> tuple[Tested, ...]:
        columns = wide if test in gates else width
        met: dict[int, list[int]] = defaultdict(list)
        for pair, meeting in enumerate(panel.meetings):
            met[meeting.clusters.size].append(pair)
        found = [blank] * len(parts)
        for clusters, pairs in sorted(met.items()):
            if clusters:
                several = make(
                    [(parts[pair][0][:, :columns], parts[pair][1]) for pair in pairs],
                    resamples=resamples,
                    rng=rng,
                    level=plan.level,
                    intervals=[gates[pair] == test and clusters > 1 for pair in pairs],
                    leading=width,
                )
                for pair, one in zip(pairs, several, strict=True):
                    found[pair] = one
        return tuple(found)

    return PairTests(
        {
            "cluster-t": tuple(_t(part, plan.level, blank) for part in parts),
            "bootstrap": drawn("bootstrap", bootstrap_tests),
            "sign-flip": drawn("sign-flip", flip_tests),
        },
        gates,
    )


def _t(part: tuple[Floats, Ints], level: float, blank: Tested) -> Tested:
    return t_test(*part, level=level) if part[1].size else blank


def _blank(width: int) -> Tested:
    """What a pair without common cycles has under any test."""
    nothing = np.full(width, np.nan)
    return Tested(np.zeros(width), np.ones(width), nothing, nothing, 0, (NEVER,) * width)
