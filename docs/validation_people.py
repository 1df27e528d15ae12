"""Studies in which people grade a random sample of the texts: what judges claim, what people confirm, labels needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from validation_worlds import ALPHA

from assaymark.metrology import anchor_contrast, anchor_needed, anchor_status, holm, publish_orders, table_contrasts
from assaymark.workflow.human_labels import draw_sample

Floats = NDArray[np.float64]

LABELS = (20, 40, 80, 160)
"""Cycles that people grade."""

EFFECTS = (0.2, 0.3, 0.4, 0.5)
COUNTS = ("made", "covered", "covered alone", "published", "false", "confirmed", "wrong", "contradicted")
NEEDED = ("labels", "labels alone", "confirmed", "confirmed alone")


@dataclass(frozen=True)
class People:
    """The truth in points: the first agent's lead, a bias that all judges share, and errors that they share by text."""

    gap: float = 0.0
    liking: float = 0.0
    alike: float = 0.0
    agents: int = 3
    clusters: int = 20
    cycles: int = 12

    @property
    def cluster(self) -> NDArray[np.int64]:
        """The cluster of each cycle."""
        return np.repeat(np.arange(self.clusters), self.cycles)

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Panel means and grades of people [N, K], all of them in whole grades of 1 to 5."""
        n, k = self.cluster.size, self.agents
        quality = 3 + 0.25 * rng.standard_normal((self.clusters, k))[self.cluster] + 0.4 * rng.standard_normal((n, 1))
        quality = quality + 0.5 * rng.standard_normal((n, k)) + np.eye(k)[0] * self.gap
        seen = quality + np.eye(k)[0] * self.liking + self.alike * rng.standard_normal((n, k))
        judges = _grade(seen[..., None] + 0.5 * rng.standard_normal((n, k, 3))).mean(axis=2)
        return judges, _grade(quality + 0.5 * rng.standard_normal((n, k)))

    @cache  # noqa: B019
    def truth(self) -> tuple[float, float, float]:
        """Return the first agent's lead as people see it, its spread within cycles, and its correlation with judges."""
        judges, people = replace(self, clusters=20_000, cycles=4).draw(np.random.default_rng(1))
        judged, seen = judges[:, 0] - judges[:, 1], people[:, 0] - people[:, 1]
        return float(seen.mean()), float(seen.std()), float(np.corrcoef(judged, seen)[0, 1])

    def sample(self, labels: int, seed: int) -> NDArray[np.bool_]:
        """The cycles that people grade, drawn as a study draws them."""
        names = {f"{k:04}": str(g) for k, g in enumerate(self.cluster)}
        drawn = draw_sample(names, labels, seed=seed, agents_a_cycle=self.agents, at="2025-01-01T00:00Z").units
        return np.isin(np.arange(self.cluster.size), [int(name) for name in drawn])


def _grade(scores: Floats) -> Floats:
    return np.clip(np.floor(scores + 0.5), 1, 5)


WORLDS: Mapping[str, People] = {
    "judges and people see alike, lead of .3": People(gap=0.3),
    "judges err alike on each text, lead of .3": People(gap=0.3, alike=0.5),
    "judges favour one of equal agents by .5": People(liking=0.5),
    "the same, and err alike on each text": People(liking=0.5, alike=0.5),
}


def anchored(world: People, labels: int, studies: int, seed: int) -> dict[str, int]:
    """Coverage of the corrected interval and of people's alone; studies with a true and a false order of judges, and
    with one that people confirm or contradict."""
    counts, truth = dict.fromkeys(COUNTS, 0), world.truth()[0]
    true = np.array([truth, truth, 0.0])  # of the pairs (0, 1), (0, 2), (1, 2)
    for study in range(studies):
        rng = np.random.default_rng([seed, labels, study])
        judges, people = world.draw(rng)
        people[~world.sample(labels, seed + study)] = np.nan
        one = anchor_contrast(judges, people, world.cluster, 0, 1)
        counts["made"] += one.low is not None
        counts["covered"] += _holds(one.low, one.high, truth)
        alone = one.human_only
        counts["covered alone"] += alone is not None and _holds(alone.low, alone.high, truth)
        means = judges.reshape(world.clusters, world.cycles, -1).mean(axis=1)
        found = table_contrasts(means[None])
        said = publish_orders(found.gap, found.p, ALPHA).published[0]
        pairs = [(0, 1), (0, 2), (1, 2)]
        orders = [pair if found.gap[0, k] > 0 else pair[::-1] for k, pair in enumerate(pairs) if said[k]]
        right = [bool(np.sign(found.gap[0, k]) * true[k] > 0) for k in np.flatnonzero(said)]
        asked = [anchor_contrast(judges, people, world.cluster, *pair) for pair in orders]
        p = holm([item.p_up for item in asked]) if asked else []
        states = [anchor_status(item, item.judge_only.estimate, q, alpha=ALPHA)  # type: ignore[union-attr, arg-type]
                  for item, q in zip(asked, p, strict=True)]  # fmt: skip
        verdicts = [*zip(states, right, strict=True)]
        counts["published"] += any(right)
        counts["false"] += not all(right)
        counts["confirmed"] += ("confirms", True) in verdicts
        counts["wrong"] += ("confirms", False) in verdicts
        counts["contradicted"] += ("contradicts", False) in verdicts
    return counts


def needed(effect: float, studies: int, seed: int) -> dict[str, int]:
    """Labels that planning asks for, with and without judges, and the studies of that many that confirm the order."""
    world = People(gap=effect, clusters=60, cycles=4)
    truth, sd, r = world.truth()
    n, spread = world.cluster.size, 0.25 * np.sqrt(2)
    plan = partial(anchor_needed, truth, np.sqrt(sd**2 - spread**2), cycles=n, clusters=world.clusters,
                   sd_cluster=spread)  # fmt: skip
    labels = [plan(r=r), plan(r=0.0)]
    counts = dict(zip(NEEDED, [one or 0 for one in labels] + [0, 0], strict=True))
    for study in range(studies):
        judges, people = world.draw(np.random.default_rng([seed, study]))
        for name, count in zip(NEEDED[2:], labels, strict=True):
            if count is None:
                continue
            graded = np.where(world.sample(max(20, count), seed + study)[:, None], people, np.nan)
            one = anchor_contrast(judges, graded, world.cluster, 0, 1)
            test = one if name == "confirmed" else one.human_only
            counts[name] += test is not None and test.p_up <= ALPHA / 2
    return counts


def _holds(low: float | None, high: float | None, truth: float) -> int:
    return low is not None and high is not None and low <= truth <= high


def cells() -> Iterator[tuple[str, Callable[[int, int], dict[str, int]]]]:
    """Every cell of the table of anchored studies."""
    for name, world in WORLDS.items():
        for labels in LABELS:
            yield f"{name}, {labels} labels", partial(anchored, world, labels)
