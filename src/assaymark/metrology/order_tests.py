"""Every pair of agents under the plan's test, as the whole panel sees it and without each judge family."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from scipy import special

from assaymark.metrology.checks import Bools, Floats
from assaymark.metrology.comparisons import Comparisons, Gaps
from assaymark.metrology.moderated import FEWEST_CLUSTERS, moderate, pairs_of
from assaymark.metrology.multiplicity import publish_scales, shaffer, shaffer_pooled
from assaymark.metrology.planning import dimensions_claimed
from assaymark.metrology.serial import FEWEST_CONSECUTIVE, serial_tests
from assaymark.plan import BiasRules, OrderRules
from assaymark.protocol import Study
from assaymark.records import JSON

RANGE: Final = 4.0
"""Points between the ends of a scale of 1 to 5, in which margins are shares of the scale."""
OTHER_MARGINS: Final = (0.05, 0.1)
"""Margins of equivalence that are tried beside the plan's, as shares of the scale."""


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """How orders are tested: what the plans of studies, seasons and benchmarks say of it.

    ``span`` are the points between the ends of the scale, ``unit`` is what they are called, ``level`` the coverage of
    intervals and ``power`` that of smallest detectable gaps. ``dimensions`` says whether orders are claimed on
    dimensions too, which then share alpha with the aggregate; ``cycle`` what a cycle is called where it is counted.
    """

    inference: OrderRules
    claims: BiasRules = field(default_factory=BiasRules)
    level: float = 0.95
    power: float = 0.8
    span: float = RANGE
    unit: str = "rubric points"
    dimensions: bool = True
    cycle: str = "cycle"

    @classmethod
    def of(cls, study: Study) -> OrderPlan:
        """The plan of a study."""
        inference = study.inference
        claimed = dimensions_claimed(study)
        return cls(inference, study.claims, inference.level, inference.mde_power, dimensions=claimed)


@dataclass(frozen=True)
class OrderTests:
    """Every pair of agents under the plan's test, as the whole panel sees it and without each judge family.

    Arrays are [pairs, scales], pairs in the order of `pairs_of`.
    """

    found: Comparisons
    plan: OrderPlan

    @property
    def delta(self) -> float:
        """Largest difference that counts as none, in points."""
        return self.plan.inference.margin * self.plan.span

    @property
    def shared(self) -> bool:
        """Whether the aggregate shares alpha with dimensions; one dimension alone is the aggregate."""
        return self.plan.dimensions and len(self.found.names) > 2

    @property
    def borrow(self) -> bool:
        """Whether pairs borrow precision from each other."""
        return self.plan.inference.test == "moderated-t"

    @cached_property
    def gaps(self) -> Gaps:
        """Differences as the whole panel sees them."""
        return self.found.gaps()

    @cached_property
    def panel(self) -> Tested:
        """The whole panel's tests."""
        return self.tested(self.gaps)

    @cached_property
    def drops(self) -> dict[str, Tested]:
        """The same without each judge family."""
        return {family: self.tested(self.found.gaps(kept)) for family, kept in self.found.drops.items()}

    @cached_property
    def resolved(self) -> Bools:
        """Which pairs the order procedure publishes on their contrasts alone [P, S]."""
        names, inference = self.found.names, self.plan.inference
        gaps, p = (dict(zip(names, columns.T, strict=True)) for columns in (self.panel.gap, self.panel.p))
        share = inference.aggregate_share if self.shared else 1.0
        published: dict[str, Bools] = {}
        for part in [names] if self.shared else [names[:1], names[1:]]:
            some = {name: p[name] for name in part}
            published |= publish_scales(gaps, some, inference.alpha, share, main=names[0]).published
        return np.stack([published[name] for name in names], axis=1)

    @cached_property
    def adjusted_without(self) -> dict[str, Floats]:
        """Shaffer-adjusted p-values [P, S] of each drop: the aggregate's pairs, and all pairs on all dimensions."""
        agents, names = len(self.found.agents), self.found.names[1:]
        found = {}
        for family, drop in self.drops.items():
            pooled = shaffer_pooled({name: drop.p[:, s] for s, name in enumerate(names, start=1)}, agents)
            found[family] = np.stack([shaffer(drop.p[:, 0], agents), *(pooled[name] for name in names)], axis=1)
        return found

    def tested(self, gaps: Gaps, *, borrow: bool | None = None) -> Tested:
        """The plan's test of every pair on every scale."""
        if self.found.consecutive:
            return Tested.serial(gaps)
        return Tested.moderated(gaps, borrow=self.borrow if borrow is None else borrow)


@dataclass(frozen=True, slots=True)
class Tested:
    """Tests of all pairs on all scales [P, S]; ``testable`` [P]. NaN in ``se`` and ``df`` where there is no test.

    ``variance`` is the pair's own, ``mean_variance`` [S] the mean of all pairs, ``prior`` the degrees of freedom
    borrowed from it. Clusters in time order have ``rho``, their autocorrelation, and ``effective``, how many
    independent clusters they are worth.
    """

    gap: Floats
    p: Floats
    se: Floats
    df: Floats
    variance: Floats
    prior: Floats
    mean_variance: Floats
    clusters: Floats
    testable: Bools
    rho: Floats | None = None
    effective: Floats | None = None

    @classmethod
    def moderated(cls, gaps: Gaps, *, borrow: bool) -> Tested:
        """Moderated cluster t on each scale."""
        difference, variance, clusters = gaps.difference, gaps.variance, gaps.clusters
        testable = clusters >= FEWEST_CLUSTERS
        # All scales at once, in the clusters that hold every agent of a tested pair on each of them.
        first, second = pairs_of(gaps.levels.shape[1])
        occurring = np.unique([first[testable], second[testable]])
        whole = ~np.isnan(gaps.levels[:, occurring]).any(axis=(1, 2))
        effects = gaps.levels[whole].transpose(2, 0, 1)
        found = moderate(difference.T, variance.T, clusters, effects, borrow=borrow)
        return cls(
            gap=difference,
            p=found.p.T,
            se=found.se.T,
            df=found.df.T,
            variance=variance,
            prior=found.prior_df.T,
            mean_variance=found.mean_variance,
            clusters=clusters.astype(np.float64),
            testable=testable,
        )

    @classmethod
    def serial(cls, gaps: Gaps) -> Tested:
        """t with the effective number of clusters on each scale, for clusters in time order."""
        difference, variance, clusters = gaps.difference, gaps.variance, gaps.clusters
        scales = range(difference.shape[1])
        records = [list(serial_tests(gaps.means[:, :, s], gaps.levels[:, :, s]).values()) for s in scales]

        def each(name: str) -> Floats:
            found = [[getattr(one, name) for one in row] for row in records]
            return np.array(found, dtype=np.float64).reshape(len(records), -1).T

        testable = clusters >= FEWEST_CONSECUTIVE
        mean = variance[testable].mean(axis=0) if testable.any() else np.zeros(len(records))
        return cls(
            gap=difference,
            p=each("p"),
            se=each("se"),
            df=each("df"),
            variance=variance,
            prior=np.zeros_like(difference),
            mean_variance=mean,
            clusters=clusters.astype(np.float64),
            testable=testable,
            rho=each("rho"),
            effective=each("effective"),
        )

    def half(self, level: float) -> Floats:
        """Half the width of the intervals [P, S], NaN where there is none."""
        with np.errstate(invalid="ignore"):
            return np.asarray(special.stdtrit(self.df, 0.5 + level / 2) * self.se)

    def detail(self, k: int, s: int) -> dict[str, JSON]:
        """What a reader needs to compute the p-value of one pair again."""
        found: dict[str, JSON] = {
            "p": float(self.p[k, s]),
            "se": _number(self.se[k, s]),
            "df": _number(self.df[k, s]),
            "clusters": int(self.clusters[k]),
            "variance": _number(self.variance[k, s]),
            "mean_variance": float(self.mean_variance[s]),
            "prior_df": _number(self.prior[k, s]),
        }
        if self.rho is not None and self.effective is not None:
            found |= {"rho": _number(self.rho[k, s]), "effective": _number(self.effective[k, s])}
        return found

    def method(self, k: int, s: int) -> str:
        """The test in words."""
        clusters = int(self.clusters[k])
        if math.isnan(self.df[k, s]):
            return f"sign of {clusters} equal cluster differences"
        over = f"t({self.df[k, s]:.1f}) over {clusters} clusters"
        if self.effective is not None:
            return f"cluster t for clusters in time order, {over} worth {self.effective[k, s]:.1f} independent ones"
        # Rounded first, so that float noise turns no half up in one reading of a table and down in another.
        own, mean = round(float(self.variance[k, s]), 12), round(float(self.mean_variance[s]), 12)
        kind = "moderated cluster t" if self.prior[k, s] > 0 else "cluster t"
        return f"{kind}, {over} (own variance {own:.3g}, mean of pairs {mean:.3g})"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
