"""The measurements a verdict may rest on, indexed by what they are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology import holm
from assaymark.records import AGGREGATE, Measurement, measurement_id

Test = Literal["gating", "cluster-t", "bootstrap"]
_P_FIELD: Mapping[str, str] = {"gating": "p", "cluster-t": "p_cluster_t", "bootstrap": "p_bootstrap"}


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
        value = self.measurement.detail.get(_P_FIELD[test])
        return 1.0 if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Index:
    """Measurements by id, with the contrasts, the drops, and the kappas that gate each dimension."""

    by_id: Mapping[str, Measurement]
    contrasts: Mapping[tuple[str, frozenset[str]], Contrast]
    agreements: Mapping[str, tuple[Measurement, ...]]
    agents: tuple[str, ...]
    dimensions: tuple[str, ...]
    families: tuple[str, ...]
    _adjusted: dict[tuple[Test, str], dict[tuple[str, frozenset[str]], float]] = field(default_factory=dict)

    def get(self, name: str, **labels: str) -> Measurement | None:
        """The measurement ``name`` with exactly these labels, if it was made."""
        return self.by_id.get(measurement_id(name, labels))

    def contrast(self, dimension: str, one: str, other: str) -> Contrast:
        """The contrast of two agents on a dimension, whichever of them is higher."""
        try:
            return self.contrasts[dimension, frozenset((one, other))]
        except KeyError:
            raise NotMeasurableError(f"no contrast of {one} and {other} on {dimension} was measured") from None

    def gating_tests(self, dimension: str) -> frozenset[str]:
        """The tests that gate the pairs of a dimension under the locked plan."""
        tests = (item.measurement.detail.get("gating") for (of, _), item in self.contrasts.items() if of == dimension)
        return frozenset(str(test) for test in tests if test)

    def adjusted(self, dimension: str, one: str, other: str, test: Test) -> float:
        """Holm-adjusted p of a pair in the family it belongs to: all aggregate pairs, or all pairs x dimensions."""
        family = AGGREGATE if dimension == AGGREGATE else "dimensions"
        if (test, family) not in self._adjusted:
            self._adjusted[test, family] = self._family(test, family)
        return self._adjusted[test, family][dimension, frozenset((one, other))]

    def first_adjusted(self, dimension: str, agent: str, test: Test) -> dict[str, float]:
        """Holm-adjusted p of "agent above other" for each other agent; a difference against the agent counts as 1."""
        others = [name for name in self.agents if name != agent]
        raw = []
        for other in others:
            contrast = self.contrast(dimension, agent, other)
            ahead = contrast.difference is not None and contrast.high == agent and contrast.difference > 0
            raw.append(contrast.p(test) if ahead else 1.0)
        return dict(zip(others, holm(np.array(raw)).tolist(), strict=True)) if others else {}

    def _family(self, test: Test, family: str) -> dict[tuple[str, frozenset[str]], float]:
        members = [key for key in self.contrasts if (key[0] == AGGREGATE) == (family == AGGREGATE)]
        adjusted = holm(np.array([self.contrasts[key].p(test) for key in members]))
        return dict(zip(members, adjusted.tolist(), strict=True))


def index(measurements: Iterable[Measurement]) -> Index:
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
    pooled = [item for item in grouped["kappa.mean_pairwise"] if "format" not in item.labels]
    return Index(
        by_id,
        contrasts,
        {dimension: tuple(items) for dimension, items in agreements.items()},
        agents=tuple(dict.fromkeys(sorted(item.labels["agent"] for item in effects))),
        dimensions=tuple(item.labels["dimension"] for item in pooled if item.labels["dimension"] != AGGREGATE),
        families=tuple(dict.fromkeys(item.labels["dropped"] for item in grouped["lofo.rho"])),
    )
