"""The measurements a verdict may rest on, indexed by what they are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from assaymark.claims.rules import TESTS, Test
from assaymark.errors import NotMeasurableError
from assaymark.metrology import holm
from assaymark.records import AGGREGATE, Measurement, measurement_id

P_FIELDS: Final[Mapping[Test, str]] = {
    "gating": "p",
    "cluster-t": "p_cluster_t",
    "bootstrap": "p_bootstrap",
    "sign-flip": "p_sign_flip",
}
"""Where the detail of a contrast holds the p-value of each test."""

HOLM_FIELDS: Final[Mapping[Test, str]] = {
    "gating": "p_holm",
    "cluster-t": "p_holm_cluster_t",
    "bootstrap": "p_holm_bootstrap",
    "sign-flip": "p_holm_sign_flip",
}
"""Where it holds the same after Holm."""

DIMENSIONS: Final = "dimensions"
"""The Holm family of all pairs on all rubric dimensions; the aggregate's pairs are a family of their own."""

Key = tuple[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One pair on one dimension: the measured difference and its tests, before any correction.

    ``difference`` is None when the two never answered the same question.
    """

    measurement: Measurement
    high: str
    low: str
    difference: float | None

    def p(self, test: Test) -> float:
        """Two-sided p-value under ``test``; 1 for a pair that was never compared or that the test cannot judge."""
        value = self.measurement.detail.get(P_FIELDS[test])
        return 1.0 if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Directed:
    """A difference "one minus other" with its interval, read from a measurement of the pair in either direction."""

    measurement: Measurement
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a part of the measurements does not show of the whole: a certificate holds one claim's part.

    ``families`` are the judge families that were left out; ``p`` has, for each test, the p-values of the Holm family's
    other contrasts; ``gating`` the tests that gate the pairs of the claim's dimension, ``measured`` all that were made.
    """

    families: tuple[str, ...]
    p: Mapping[Test, tuple[float, ...]] = field(default_factory=dict)
    gating: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Index:
    """Measurements by id, with the contrasts, the drops, and the kappas that gate each dimension."""

    by_id: Mapping[str, Measurement]
    contrasts: Mapping[Key, Contrast]
    agreements: Mapping[str, tuple[Measurement, ...]]
    agents: tuple[str, ...]
    dimensions: tuple[str, ...]
    families: tuple[str, ...]
    cells: tuple[str, ...]
    probed: frozenset[str]
    compared: frozenset[str]
    levels: Mapping[tuple[str, str | None, str], Measurement]
    drops: Mapping[tuple[str, str, frozenset[str]], Measurement]
    elsewhere: Elsewhere | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict)

    def get(self, name: str, **labels: str) -> Measurement | None:
        """The measurement ``name`` with exactly these labels, if it was made."""
        return self.by_id.get(measurement_id(name, labels))

    def contrast(self, dimension: str, one: str, other: str) -> Contrast:
        """The contrast of two agents on a dimension, whichever of them is higher."""
        try:
            return self.contrasts[dimension, frozenset((one, other))]
        except KeyError:
            raise NotMeasurableError(f"no contrast of {one} and {other} on {dimension} was measured") from None

    def tested(self, dimension: str) -> bool:
        """Whether differences on a dimension were tested; tables handed in without contrasts were not."""
        return len(self.agents) < 2 or dimension in self.compared

    def directed(self, name: str, dimension: str, one: str, other: str) -> Directed | None:
        """The measurement ``name`` of a pair, turned so that above 0 means that ``one`` is higher."""
        found = self.get(name, dimension=dimension, high=one, low=other)
        if found is not None:
            return Directed(found, found.value, found.low, found.high)
        found = self.get(name, dimension=dimension, high=other, low=one)
        if found is None:
            return None
        value, low, high = (None if end is None else -end for end in (found.value, found.high, found.low))
        return Directed(found, value, low, high)

    def level(self, dimension: str, agent: str, family: str | None = None) -> Measurement | None:
        """The level of an agent, or its level without a judge family."""
        return self.levels.get((dimension, family, agent))

    def gating_tests(self, dimension: str) -> frozenset[str]:
        """The tests that gate the pairs of a dimension under the locked plan."""
        if self.elsewhere is not None:
            return self.elsewhere.gating
        tests = (item.measurement.detail.get("gating") for (of, _), item in self.contrasts.items() if of == dimension)
        return frozenset(str(test) for test in tests if test)

    def measured_tests(self, dimension: str) -> frozenset[str]:
        """The tests that were made on the pairs of a dimension."""
        if self.elsewhere is not None:
            return self.elsewhere.measured
        found = [item.measurement.detail for (of, _), item in self.contrasts.items() if of == dimension]
        return frozenset(test for test in TESTS if any(detail.get(P_FIELDS[test]) is not None for detail in found))

    def adjusted(self, dimension: str, one: str, other: str, test: Test) -> float:
        """Holm-adjusted p of a pair in the family it belongs to: all aggregate pairs, or all pairs x dimensions."""
        family = family_of(dimension)
        if (test, family) not in self.memo:
            self.memo[test, family] = self._family(test, family)
        adjusted: dict[Key, float] = self.memo[test, family]
        return adjusted[dimension, frozenset((one, other))]

    def first_adjusted(self, dimension: str, agent: str, test: Test) -> dict[str, float]:
        """Holm-adjusted p of "agent above other" for each other agent; a difference against the agent counts as 1."""
        key = (dimension, agent, test)
        if key not in self.memo:
            self.memo[key] = self._first(dimension, agent, test)
        found: dict[str, float] = self.memo[key]
        return found

    def members(self, family: str) -> list[Key]:
        """The contrasts of one Holm family."""
        return [key for key in self.contrasts if family_of(key[0]) == family]

    def _first(self, dimension: str, agent: str, test: Test) -> dict[str, float]:
        others = [name for name in self.agents if name != agent]
        raw = []
        for other in others:
            contrast = self.contrast(dimension, agent, other)
            ahead = contrast.difference is not None and contrast.high == agent and contrast.difference > 0
            raw.append(contrast.p(test) if ahead else 1.0)
        return dict(zip(others, holm(np.array(raw)).tolist(), strict=True)) if others else {}

    def _family(self, test: Test, family: str) -> dict[Key, float]:
        members = self.members(family)
        here = [self.contrasts[key].p(test) for key in members]
        others = self.elsewhere.p.get(test, ()) if self.elsewhere is not None else ()
        adjusted = holm(np.array([*here, *others]))[: len(here)]
        return dict(zip(members, adjusted.tolist(), strict=True))


def family_of(dimension: str) -> str:
    """The Holm family that the pairs of a dimension belong to.

    >>> family_of("aggregate"), family_of("position_sizing")
    ('aggregate', 'dimensions')
    """
    return AGGREGATE if dimension == AGGREGATE else DIMENSIONS


def index(measurements: Iterable[Measurement], elsewhere: Elsewhere | None = None) -> Index:
    """An `Index` over ``measurements``.

    Raises
    ------
    NotMeasurableError
        Two measurements have one id: the tables are not one analysis.
    """
    by_id: dict[str, Measurement] = {}
    grouped: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        if measurement.id in by_id:
            raise NotMeasurableError(f"{measurement.id} was measured twice; the tables are not of one analysis")
        by_id[measurement.id] = measurement
        grouped[measurement.name].append(measurement)
    contrasts = {}
    for item in grouped["contrast"]:
        high, low, dimension = item.labels["high"], item.labels["low"], item.labels["dimension"]
        contrasts[dimension, frozenset((high, low))] = Contrast(item, high, low, item.value)
    effects = grouped["score.effect"]
    agreements: dict[str, list[Measurement]] = defaultdict(list)
    for item in grouped["kappa.mean_pairwise"]:
        if not item.state.startswith("too few"):
            agreements[item.labels["dimension"]].append(item)
    families = dict.fromkeys(item.labels["dropped"] for item in grouped["lofo.rho"])
    pooled = [item for item in grouped["kappa.mean_pairwise"] if "format" not in item.labels]
    return Index(
        by_id,
        contrasts,
        {dimension: tuple(items) for dimension, items in agreements.items()},
        agents=tuple(dict.fromkeys(sorted(item.labels["agent"] for item in effects))),
        dimensions=tuple(item.labels["dimension"] for item in pooled if item.labels["dimension"] != AGGREGATE),
        families=tuple(families) if elsewhere is None else elsewhere.families,
        cells=tuple(item.labels["cell"] for item in grouped["cell.gate"]),
        probed=frozenset(item.labels["dimension"] for item in grouped["probe.contrast"]),
        compared=frozenset(dimension for dimension, _ in contrasts),
        levels={
            (item.labels["dimension"], item.labels.get("dropped"), item.labels["agent"]): item
            for item in (*effects, *grouped["lofo.effect"])
        },
        drops={
            (
                item.labels["dimension"],
                item.labels["dropped"],
                frozenset((item.labels["high"], item.labels["low"])),
            ): item
            for item in grouped["lofo.contrast"]
        },
        elsewhere=elsewhere,
    )
