"""Models that answered the same items: their means, and the differences of two, over clusters of items.

A benchmark scores every model on the same dates or questions. What the models share on an item cancels in a difference,
so differences are what is tested; the mean of one model has an interval of its own, which is wider.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from assaymark.metrology import checks
from assaymark.metrology.bootstrap import percentile_ends
from assaymark.metrology.checks import Floats
from assaymark.metrology.comparisons import Comparisons, natural
from assaymark.metrology.contrasts import cluster_t
from assaymark.metrology.estimates import number
from assaymark.metrology.measure_orders import order_measurements
from assaymark.metrology.order_tests import OrderPlan
from assaymark.metrology.stability import spearman_columns
from assaymark.plan import ClusterOrder
from assaymark.records import Measurement

RESAMPLES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class ScoredItems:
    """What several models scored on the same items."""

    models: tuple[str, ...]
    values: Floats
    clusters: tuple[str, ...]
    parts: tuple[str, ...]
    unscored: Mapping[str, str] = field(default_factory=dict)

    def table(self, clusters: Sequence[str] | None = None) -> Floats:
        """Cluster means [G, m], in the order of ``clusters`` (default: by name)."""
        names = sorted(set(self.clusters)) if clusters is None else clusters
        place = {name: g for g, name in enumerate(names)}
        member = np.eye(len(place))[[place[name] for name in self.clusters]]
        return np.asarray((self.values @ member / member.sum(axis=0)).T)

    def of(self, models: Sequence[str]) -> ScoredItems:
        """The same items with these of the models, in their order."""
        return dataclasses.replace(self, models=tuple(models), values=self.values[[*map(self.models.index, models)]])

    @property
    def scored(self) -> tuple[str, ...]:
        """The models that have a score."""
        return tuple(model for model in self.models if model not in self.unscored)

    def without(self, part: str) -> ScoredItems:
        """The items of all other parts."""
        kept = [k for k, name in enumerate(self.parts) if name != part]
        clusters, parts = (tuple(each[k] for k in kept) for each in (self.clusters, self.parts))
        return dataclasses.replace(self, values=self.values[:, kept], clusters=clusters, parts=parts)

    def gap(self, high: str, low: str) -> float:
        """Mean over clusters of what one model scored more than another."""
        level = self.table().mean(axis=0)
        return float(level[self.models.index(high)] - level[self.models.index(low)])


def level_measurements(name: str, items: ScoredItems, labels: Mapping[str, str], *, level: float) -> list[Measurement]:
    """The mean score of each model, with a cluster-t interval where there are two clusters or more."""
    found = []
    for model, row in zip(items.models, items.values, strict=True):
        about, count = {"model": model, **labels}, (row.size, "items")
        if model in items.unscored:
            state = f"no score: {items.unscored[model]}"
            found.append(number(Measurement, name, about, None, count, "mean", state=state))
            continue
        tested = cluster_t(row, items.clusters, level=level)
        ends = None if tested.low is None or tested.high is None else (max(0.0, tested.low), min(1.0, tested.high))
        found.append(number(Measurement, name, about, tested.difference, count, tested.method, ends=ends, level=level))
    return found


def board_measurements(
    boards: Mapping[str, ScoredItems], plan: OrderPlan, *, others: Mapping[str, ScoredItems] = MappingProxyType({}),
    order: ClusterOrder = "exchangeable",
) -> Iterator[Measurement]:  # fmt: skip
    """Levels of models on leaderboards, and every measurement that orders of them rest on."""
    first = next(iter(boards.values()))
    clusters = tuple(sorted(set(first.clusters), key=natural if order == "consecutive" else None))
    models, counts = tuple(sorted(first.models)), Counter(first.clusters)
    for name, items in boards.items():
        table = items.table(clusters)
        each = ScoredItems(items.models, table.T, clusters, clusters, items.unscored)
        for one in level_measurements("bench.level", each, {"board": name}, level=plan.level):
            yield dataclasses.replace(one, n=len(items.clusters))
    cells = np.stack([items.of(models).table(clusters) for items in boards.values()], axis=2)[:, :, None]
    found = Comparisons(
        names=tuple(boards), agents=models, judges=("score",), families=("score",), agent_families=None,
        clusters=clusters, cluster=np.arange(len(clusters)), weight=np.array([counts[one] for one in clusters]),
        cells=cells, lengths=None, order=order, judged=False,
    )  # fmt: skip

    def make(name: str, labels: Mapping[str, str], **parts: Any) -> Measurement:
        made = Measurement(name=name, labels=labels, **parts)
        if name != "contrast":
            return made
        board, pair = labels["dimension"], (labels["high"], labels["low"])
        items, detail = boards[board], dict(made.detail)
        if lacking := sorted(set(pair) & set(items.unscored)):
            return dataclasses.replace(
                made, state="; ".join(f"{one} has no score: {items.unscored[one]}" for one in lacking)
            )
        if board in others and not set(pair) & set(others[board].unscored):
            detail["other"] = others[board].gap(*pair)
        if len(windows := sorted(set(items.parts))) > 1:
            detail["without"] = {part: items.without(part).gap(*pair) for part in windows}
        return dataclasses.replace(made, detail=detail)

    yield from order_measurements(found, plan, make)


def rank_agreement(
    name: str, one: ScoredItems, two: ScoredItems, labels: Mapping[str, str], *, rng: np.random.Generator, level: float,
    resamples: int = RESAMPLES,
) -> Measurement:  # fmt: skip
    """Spearman's rank correlation of the models' means on two sets of items, with an interval for these models."""
    if one.models != two.models or len(one.models) < 3:
        checks.fail("rank_agreement", "models", "the same three or more in both sets are needed")
    names = [model for model in one.scored if model not in two.unscored]
    one, two = one.of(names), two.of(names)
    method = f"Spearman's rank correlation; {resamples} draws of clusters of either set, percentile"
    state, rho, ends, detail = f"not defined: needs three models with a score (got {len(names)})", None, None, {}
    if len(names) > 2:
        (rho,) = spearman_columns(one.values.mean(axis=1)[:, None], two.values.mean(axis=1)[:, None])
        state = "not defined: all models are tied in one of the two"
    if rho is not None:
        drawn = spearman_columns(_redrawn(one, rng, resamples), _redrawn(two, rng, resamples))
        known = np.array([value for value in drawn if value is not None])
        detail = {"undefined": resamples - len(known)}
        if len(known) >= level * resamples:
            low, high = percentile_ends(known[None], None, level)[:, 0].tolist()
            ends = low, high
    return number(Measurement, name, labels, rho, (len(names), "models"), method, state=state, ends=ends, level=level,
                  detail=detail)  # fmt: skip


def _redrawn(items: ScoredItems, rng: np.random.Generator, resamples: int) -> Floats:
    """Means [m, R] of every model over clusters drawn with replacement."""
    names, codes = np.unique(np.array(items.clusters), return_inverse=True)
    member = np.eye(len(names))[codes]
    sums, counts = items.values @ member, member.sum(axis=0)
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples).T.astype(float)
    return np.asarray((sums @ times) / (counts @ times))
