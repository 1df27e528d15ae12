"""Studies whose truth is known: scores drawn from planted levels, effects, noise and biases.

For planning, and for validating the estimators: plant a value, simulate, and see whether the analysis recovers it. What
is simulated is the table of scores; no text is written and no judge is asked.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.metrology.checks import Floats
from assaymark.metrology.scores import Calls, ScoreTable
from assaymark.protocol import SCALE, Scale


@dataclass(frozen=True, slots=True)
class Spread:
    """Size of a random effect: standard deviation in rubric points, and how much the dimensions share of a draw.
    ``sd`` is one number for all dimensions or one for each. ``correlation`` is that between any two dimensions, in
    0..1: at 1 a draw moves all of them together, at 0 each on its own."""

    sd: float | tuple[float, ...] = 0.0
    correlation: float = 0.5

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dimensions: int) -> Floats:
        """Normal effects of shape (*shape, dimensions)."""
        size = np.broadcast_to(np.asarray(self.sd, dtype=np.float64), (dimensions,))
        if not size.any():
            return np.zeros((*shape, dimensions))
        own, shared = math.sqrt(1 - self.correlation), math.sqrt(self.correlation)
        found = np.zeros((*shape, dimensions))
        if own:
            found += own * rng.standard_normal((*shape, dimensions))
        if shared:
            found += shared * rng.standard_normal((*shape, 1))
        return np.asarray(found * size)

    def problems(self, where: str, dimensions: int) -> Iterator[Problem]:
        """What is wrong with it, for so many dimensions."""
        sizes = self.sd if isinstance(self.sd, tuple) else (self.sd,)
        if isinstance(self.sd, tuple) and len(sizes) != dimensions:
            yield Problem(f"{where}.sd", f"must have one entry for each of the {dimensions} dimensions (got {self.sd})")
        if not all(math.isfinite(size) and size >= 0 for size in sizes):
            yield Problem(f"{where}.sd", f"must be finite and at least 0 (got {self.sd})")
        if not 0 <= self.correlation <= 1:
            yield Problem(f"{where}.correlation", f"must lie in 0..1 (got {self.correlation})")


@dataclass(frozen=True, slots=True)
class Composer:
    """An agent: its level on each dimension (or one for all), how often it decides, and how long its texts are.
    Equal ``means`` make a tie class. Lengths are log-normal tokens with median ``tokens`` and ``token_spread`` as the
    standard deviation of their logarithm."""

    name: str
    means: float | tuple[float, ...] = 3.0
    family: str = ""
    attendance: float = 1.0
    tokens: float = 150.0
    token_spread: float = 0.4


@dataclass(frozen=True, slots=True)
class Panelist:
    """A judge: how severe, how noisy, and what it likes for the wrong reasons (rubric points throughout)."""

    name: str
    family: str
    severity: float = 0.0
    halo: float = 0.0
    bonus: tuple[tuple[str, float], ...] = ()
    disagreement: Spread = Spread(0.5, 0.0)
    trials: int = 1
    trial_noise: Spread = Spread(0.0, 0.0)
    terse_penalty: float = 0.0


@dataclass(frozen=True, slots=True)
class Truth:
    """Everything that a simulated study is drawn from.
    The quality of a trajectory is the level of its agent plus the effects of its cluster, of its cycle, of its agent in
    its cluster (``interaction``), and its own (``residual``). Each judge sees it through its own errors."""

    composers: tuple[Composer, ...]
    panel: tuple[Panelist, ...]
    dimensions: tuple[str, ...] = ("d0", "d1", "d2", "d3", "d4", "d5")
    clusters: int = 5
    cycles: int = 10
    """Cycles in each cluster."""
    cluster: Spread = Spread(0.0)
    cycle: Spread = Spread(0.3, 1.0)
    interaction: Spread = Spread(0.2, 0.5)
    residual: Spread = Spread(0.6, 0.5)
    terse_tokens: int = 60
    weights: tuple[float, ...] | None = None
    """Of the dimensions in the aggregate; default: equal."""
    scale: Scale = SCALE
    rounded: bool = True
    """Whether judges give whole scores."""

    def __post_init__(self) -> None:
        problems, d = list[Problem](), len(self.dimensions)

        def wrong(bad: bool, where: str, what: str) -> None:
            if bad:
                problems.append(Problem(where, what))

        for what, names in (
            ("composers", [one.name for one in self.composers]),
            ("panel", [one.name for one in self.panel]),
            ("dimensions", list(self.dimensions)),
        ):
            wrong(not names, what, "at least one is needed (got 0)")
            wrong(len(set(names)) < len(names), what, f"each needs a name of its own (got {', '.join(names)})")
        for what, count in (("clusters", self.clusters), ("cycles", self.cycles)):
            wrong(count < 1, what, f"must be at least 1 (got {count})")
        for what in ("cluster", "cycle", "interaction", "residual"):
            problems += getattr(self, what).problems(what, d)
        for one in self.composers:
            means = one.means if isinstance(one.means, tuple) else (one.means,)
            wrong(isinstance(one.means, tuple) and len(means) != d, f"{one.name}.means",
                  f"must be one number or one for each of the {d} dimensions (got {one.means})")  # fmt: skip
            wrong(not all(map(math.isfinite, means)), f"{one.name}.means", f"must be finite (got {one.means})")
            wrong(not 0 < one.attendance <= 1, f"{one.name}.attendance",
                  f"must lie above 0 and up to 1 (got {one.attendance})")  # fmt: skip
            wrong(not (one.tokens > 0 and math.isfinite(one.tokens) and one.token_spread >= 0), one.name,
                  f"tokens must be above 0 and token_spread at least 0 (got {one.tokens}, {one.token_spread})",
                  )  # fmt: skip
        for judge in self.panel:
            problems += judge.disagreement.problems(f"{judge.name}.disagreement", d)
            problems += judge.trial_noise.problems(f"{judge.name}.trial_noise", d)
            wrong(judge.trials < 1, f"{judge.name}.trials", f"must be at least 1 (got {judge.trials})")
        if self.weights is not None:
            fits = len(self.weights) == d and all(math.isfinite(w) and w >= 0 for w in self.weights)
            wrong(not fits or sum(self.weights) <= 0, "weights",
                  f"must be {d} finite numbers, not negative, not all zero (got {self.weights})")  # fmt: skip
        if problems:
            raise InputError("truth", problems)

    @property
    def means(self) -> Floats:
        """Planted levels [A, D] in the order of composers and dimensions."""
        rows = [
            np.broadcast_to(np.asarray(composer.means, dtype=np.float64), (len(self.dimensions),))
            for composer in self.composers
        ]
        return np.stack(rows)

    @property
    def shares(self) -> Floats:
        """Weights [D] that sum to 1."""
        given = np.ones(len(self.dimensions)) if self.weights is None else np.array(self.weights, dtype=np.float64)
        return np.asarray(given / given.sum())

    @property
    def calls(self) -> int:
        """Judge calls if every agent attends every cycle."""
        return self.clusters * self.cycles * len(self.composers) * sum(judge.trials for judge in self.panel)

    def given(self, seen: Floats) -> Floats:
        """What judges write down of what they see."""
        return np.clip(np.floor(seen + 0.5) if self.rounded else seen, *self.scale)

    def tie_classes(self) -> tuple[tuple[str, ...], ...]:
        """Agents with equal planted levels on every dimension, classes of two or more."""
        classes: dict[tuple[float, ...], list[str]] = {}
        for composer, row in zip(self.composers, self.means.tolist(), strict=True):
            classes.setdefault(tuple(row), []).append(composer.name)
        return tuple(tuple(sorted(names)) for names in classes.values() if len(names) > 1)


def simulate_scores(truth: Truth, rng: np.random.Generator) -> ScoreTable:
    """One study drawn from a known truth, as the table that `analyse` reads."""
    composers = sorted(truth.composers, key=lambda one: one.name)
    order = sorted(range(len(truth.composers)), key=lambda a: truth.composers[a].name)
    # Agent and cycle of every decision, by agent and then cycle.
    chance, shape = np.array([one.attendance for one in composers]), (len(order), truth.clusters * truth.cycles)
    present = rng.random(shape) < chance[:, None] if (chance < 1).any() else np.ones(shape)
    agent, cycle = (codes.astype(np.int64) for codes in np.nonzero(present))
    # What each trajectory is worth on each dimension [n, D].
    n, d, cluster = agent.size, len(truth.dimensions), cycle // truth.cycles
    clusters = truth.cluster.draw(rng, (truth.clusters,), d)
    of_cycles = truth.cycle.draw(rng, (truth.clusters * truth.cycles,), d)
    reactions = truth.interaction.draw(rng, (len(order), truth.clusters), d)
    own = truth.residual.draw(rng, (n,), d)
    quality = truth.means[order][agent] + clusters[cluster] + of_cycles[cycle] + reactions[agent, cluster] + own
    median, spread = (np.array([getattr(one, name) for one in composers])[agent] for name in ("tokens", "token_spread"))
    tokens = np.asarray(np.maximum(1.0, np.rint(median * np.exp(spread * rng.standard_normal(n)))))
    panel = sorted(truth.panel, key=lambda judge: judge.name)
    calls = dict[str, Floats]()
    for judge in panel:  # every call of one judge [n, T, D]
        extra = dict(judge.bonus)
        liked = np.array([extra.get(one.name, 0.0) + judge.halo * (one.family == judge.family) for one in composers])
        lean = judge.severity + liked[agent] - judge.terse_penalty * (tokens < truth.terse_tokens)
        reading = quality + lean[:, None] + judge.disagreement.draw(rng, (n,), d)
        calls[judge.name] = truth.given(reading[:, None, :] + judge.trial_noise.draw(rng, (n, judge.trials), d))
    names = tuple(one.name for one in composers)
    columns = sorted(range(d), key=truth.dimensions.__getitem__)
    held, cycle_code = np.unique(cycle, return_inverse=True)
    seen, cluster_code = np.unique(cluster, return_inverse=True)
    scores = np.stack([calls[judge.name].mean(axis=1) for judge in panel], axis=1)[:, :, columns]
    many = any(judge.trials > 1 for judge in panel)
    first = np.stack([calls[judge.name][:, 0] for judge in panel], axis=1)[:, :, columns] if many else None
    share = truth.shares
    digest = hashlib.sha256(repr((names, truth.dimensions, tuple(calls))).encode())
    for part in (agent, cycle, scores, share, tokens):
        digest.update(np.ascontiguousarray(part).tobytes())
    return ScoreTable(
        tuple(f"{names[a]}/{c:06d}" for a, c in zip(agent.tolist(), cycle.tolist(), strict=True)), names, agent,
        tuple(f"cycle-{c:06d}" for c in held.tolist()), cycle_code.astype(np.int64),
        tuple(f"cluster-{k:04d}" for k in seen.tolist()), cluster_code.astype(np.int64), ("simulated",),
        np.zeros(n, dtype=np.int64), tuple(judge.name for judge in panel), tuple(judge.family for judge in panel),
        tuple(truth.dimensions[k] for k in columns), share[columns], scores,
        trials={name: rows @ share for name, rows in calls.items()}, replicates={},
        calls={judge.name: Calls(n * judge.trials, 0, 0) for judge in panel}, lengths=tokens, left_out=(),
        digest=digest.hexdigest()[:16], mean=scores if many else None, first=first, repeats={} if many else None,
    )  # fmt: skip
