"""Models that answered the same items: their means, and the differences of two, over clusters of items.

A benchmark scores every model on the same dates or questions. What the models share on an item cancels in a difference,
so differences are what is tested; the mean of one model has an interval of its own, which is wider.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from assaymark.metrology import checks
from assaymark.metrology.bootstrap import percentile_ends
from assaymark.metrology.checks import Floats
from assaymark.metrology.comparisons import Comparisons, natural
from assaymark.metrology.contrasts import Test, Tested, bootstrap_tests, cluster_t, flip_tests, t_test
from assaymark.metrology.measure_orders import order_measurements
from assaymark.metrology.order_tests import OrderPlan
from assaymark.metrology.panel import Panel
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
        if model in items.unscored:
            about: dict[str, Any] = {"labels": {"model": model, **labels}, "n": row.size, "n_of": "items"}
            found.append(
                Measurement(name=name, value=None, method="mean", state=f"no score: {items.unscored[model]}", **about)
            )
            continue
        tested = cluster_t(row, items.clusters, level=level)
        if tested.low is not None and tested.high is not None:
            tested = dataclasses.replace(tested, low=max(0.0, tested.low), high=min(1.0, tested.high))
        found.append(
            Measurement(
                name=name,
                labels={"model": model, **labels},
                value=tested.difference,
                n=tested.n,
                n_of="items",
                method=tested.method,
                low=tested.low,
                high=tested.high,
                level=None if tested.low is None else level,
            )
        )
    return found


def board_measurements(
    boards: Mapping[str, ScoredItems],
    plan: OrderPlan,
    *,
    others: Mapping[str, ScoredItems] = MappingProxyType({}),
    order: ClusterOrder = "exchangeable",
) -> Iterator[Measurement]:
    """Levels of models on leaderboards, and every measurement that orders of them rest on."""
    first = next(iter(boards.values()))
    clusters = tuple(sorted(set(first.clusters), key=natural if order == "consecutive" else None))
    models, counts = tuple(sorted(first.models)), Counter(first.clusters)
    for name, items in boards.items():
        table = items.table(clusters)
        each = ScoredItems(items.models, table.T, clusters, clusters, items.unscored)
        for one in level_measurements("bench.level", each, {"board": name}, level=plan.level):
            yield dataclasses.replace(one, n=len(items.clusters))
    found = Comparisons(
        names=tuple(boards),
        agents=models,
        judges=("score",),
        families=("score",),
        agent_families=None,
        clusters=clusters,
        cluster=np.arange(len(clusters)),
        weight=np.array([counts[cluster] for cluster in clusters]),
        cells=np.stack([items.of(models).table(clusters) for items in boards.values()], axis=2)[:, :, None],
        lengths=None,
        order=order,
        judged=False,
    )

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
    name: str,
    one: ScoredItems,
    two: ScoredItems,
    labels: Mapping[str, str],
    *,
    rng: np.random.Generator,
    level: float,
    resamples: int = RESAMPLES,
) -> Measurement:
    """Spearman's rank correlation of the models' means on two sets of items, with an interval for these models."""
    if one.models != two.models or len(one.models) < 3:
        checks.fail("rank_agreement", "models", "the same three or more in both sets are needed")
    names = [model for model in one.scored if model not in two.unscored]
    one, two = one.of(names), two.of(names)
    method = f"Spearman's rank correlation; {resamples} draws of clusters of either set, percentile"
    found = Measurement(name=name, labels=labels, value=None, n=len(names), n_of="models", method=method)
    if len(names) < 3:
        return dataclasses.replace(found, state=f"not defined: needs three models with a score (got {len(names)})")
    (rho,) = spearman_columns(one.values.mean(axis=1)[:, None], two.values.mean(axis=1)[:, None])
    if rho is None:
        return dataclasses.replace(found, state="not defined: all models are tied in one of the two")
    found = dataclasses.replace(found, value=rho)
    drawn = spearman_columns(_redrawn(one, rng, resamples), _redrawn(two, rng, resamples))
    known = np.array([value for value in drawn if value is not None])
    undefined = {"undefined": resamples - len(known)}
    if len(known) < level * resamples:
        return dataclasses.replace(found, detail=undefined)
    low, high = percentile_ends(known[None], None, level)[:, 0].tolist()
    return dataclasses.replace(found, low=low, high=high, level=level, detail=undefined)


def _redrawn(items: ScoredItems, rng: np.random.Generator, resamples: int) -> Floats:
    """Means [m, R] of every model over clusters drawn with replacement."""
    names, codes = np.unique(np.array(items.clusters), return_inverse=True)
    member = np.eye(len(names))[codes]
    sums, counts = items.values @ member, member.sum(axis=0)
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples).T.astype(float)
    return np.asarray((sums @ times) / (counts @ times))


# Every pair of agents under the sources' own tests, which are shown beside the one that decides.


NEVER = "never compared"
PAIRWISE_RESAMPLES = 10_000
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
    nothing = np.full(wide, np.nan)
    blank = Tested(np.zeros(wide), np.ones(wide), nothing, nothing, 0, (NEVER,) * wide)

    def drawn(make: Callable[..., list[Tested]]) -> tuple[Tested, ...]:
        met: dict[int, list[int]] = defaultdict(list)
        for pair, meeting in enumerate(panel.meetings):
            met[meeting.clusters.size].append(pair)
        found = [blank] * len(parts)
        for clusters, pairs in sorted(met.items()):
            if clusters:
                several = make(
                    [(parts[pair][0][:, :width], parts[pair][1]) for pair in pairs],
                    resamples=plan.resamples or PAIRWISE_RESAMPLES,
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
            "cluster-t": tuple((t_test(*part, level=plan.level) if part[1].size else blank) for part in parts),
            "bootstrap": drawn(bootstrap_tests),
            "sign-flip": drawn(flip_tests),
        }
    )
