"""Simulated studies with a known truth: scores drawn from planted levels, effects, noise and biases.

For planning, and for validating the estimators: plant a value, simulate, and check whether the analysis recovers it.
Only the table of scores is simulated; no text is written and no judge is called.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology.checks import Floats
from assaymark.metrology.design import Components, averaged
from assaymark.metrology.panel import agent_effects
from assaymark.metrology.scores import CallCounts, ScoreTable
from assaymark.protocol import SCALE, Scale
from assaymark.records import AGGREGATE


@dataclass(frozen=True, slots=True)
class Spread:
    """Size of a random effect: standard deviation in rubric points, and correlation between dimensions.
    ``sd`` is one number for all dimensions or one for each. ``correlation`` is that between any two dimensions, in
    0..1: at 1 all dimensions move together, at 0 independently."""

    sd: float | tuple[float, ...] = 0.0
    correlation: float = 0.5

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dimensions: int) -> Floats:
        """Draw normal effects of shape (*shape, dimensions)."""
        size = np.broadcast_to(np.asarray(self.sd, dtype=np.float64), (dimensions,))
        if not size.any():
            return np.zeros((*shape, dimensions))
        separate, shared = math.sqrt(1 - self.correlation), math.sqrt(self.correlation)
        draws = np.zeros((*shape, dimensions))
        if separate:
            draws += separate * rng.standard_normal((*shape, dimensions))
        if shared:
            draws += shared * rng.standard_normal((*shape, 1))
        return np.asarray(draws * size)

    def problems(self, name: str, dimensions: int) -> Iterator[Problem]:
        """Yield the problems of this effect for a number of dimensions."""
        sizes = self.sd if isinstance(self.sd, tuple) else (self.sd,)
        if isinstance(self.sd, tuple) and len(sizes) != dimensions:
            yield Problem(f"{name}.sd", f"must have one entry for each of the {dimensions} dimensions (got {self.sd})")
        if not all(math.isfinite(size) and size >= 0 for size in sizes):
            yield Problem(f"{name}.sd", f"must be finite and at least 0 (got {self.sd})")
        if not 0 <= self.correlation <= 1:
            yield Problem(f"{name}.correlation", f"must lie in 0..1 (got {self.correlation})")


@dataclass(frozen=True, slots=True)
class Composer:
    """An agent: its level on each dimension (or one for all), its attendance, and the length of its texts.
    Agents with equal ``means`` form a tie class. Lengths are log-normal word counts with median ``tokens`` and
    ``token_spread`` as the standard deviation of their logarithm."""

    name: str
    means: float | tuple[float, ...] = 3.0
    family: str = ""
    attendance: float = 1.0
    tokens: float = 150.0
    token_spread: float = 0.4


@dataclass(frozen=True, slots=True)
class Panelist:
    """A judge: its severity, noise and biases, all in rubric points."""

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
    """All parameters of a simulated study.
    The quality of a trajectory is its agent's level plus the effects of its cluster, its cycle, its agent in its
    cluster (``interaction``), and the trajectory itself (``residual``). Each judge adds its own errors."""

    composers: tuple[Composer, ...]
    panel: tuple[Panelist, ...]
    dimensions: tuple[str, ...] = ("d0", "d1", "d2", "d3", "d4", "d5")
    clusters: int = 5
    cycles: int = 10
    """The number of cycles in each cluster."""
    cluster: Spread = Spread(0.0)
    cycle: Spread = Spread(0.3, 1.0)
    interaction: Spread = Spread(0.2, 0.5)
    residual: Spread = Spread(0.6, 0.5)
    terse_tokens: int = 60
    weights: tuple[float, ...] | None = None
    """The weights of the dimensions in the aggregate; default: equal."""
    scale: Scale = SCALE
    rounded: bool = True
    """True if judges give integer scores."""

    def __post_init__(self) -> None:
        problems, d = list[Problem](), len(self.dimensions)

        def wrong(bad: bool, argument: str, problem: str) -> None:
            if bad:
                problems.append(Problem(argument, problem))

        for name, names in (
            ("composers", [composer.name for composer in self.composers]),
            ("panel", [panelist.name for panelist in self.panel]),
            ("dimensions", list(self.dimensions)),
        ):
            wrong(not names, name, "at least one is needed (got 0)")
            wrong(len(set(names)) < len(names), name, f"each needs a unique name (got {', '.join(names)})")
        for name, count in (("clusters", self.clusters), ("cycles", self.cycles)):
            wrong(count < 1, name, f"must be at least 1 (got {count})")
        for name in ("cluster", "cycle", "interaction", "residual"):
            problems += getattr(self, name).problems(name, d)
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
        """The weights [D], normalised to sum to 1."""
        weights = np.ones(len(self.dimensions)) if self.weights is None else np.array(self.weights, dtype=np.float64)
        return np.asarray(weights / weights.sum())

    @property
    def calls(self) -> int:
        """The number of judge calls if every agent attends every cycle."""
        return self.clusters * self.cycles * len(self.composers) * sum(judge.trials for judge in self.panel)

    def given(self, latent: Floats) -> Floats:
        """Convert latent scores to the scores that judges report: rounded if ``rounded``, clipped to the scale."""
        return np.clip(np.floor(latent + 0.5) if self.rounded else latent, *self.scale)

    def tie_classes(self) -> tuple[tuple[str, ...], ...]:
        """The groups of two or more agents with equal planted levels on every dimension."""
        classes: dict[tuple[float, ...], list[str]] = {}
        for composer, row in zip(self.composers, self.means.tolist(), strict=True):
            classes.setdefault(tuple(row), []).append(composer.name)
        return tuple(tuple(sorted(names)) for names in classes.values() if len(names) > 1)


def simulate_scores(truth: Truth, rng: np.random.Generator) -> ScoreTable:
    """Draw one study from a known truth, as a table for `analyse`."""
    composers = sorted(truth.composers, key=lambda composer: composer.name)
    order = sorted(range(len(truth.composers)), key=lambda a: truth.composers[a].name)
    # Agent and cycle of every decision, sorted by agent and then cycle.
    chance, shape = np.array([one.attendance for one in composers]), (len(order), truth.clusters * truth.cycles)
    present = rng.random(shape) < chance[:, None] if (chance < 1).any() else np.ones(shape)
    agent, cycle = (codes.astype(np.int64) for codes in np.nonzero(present))
    # The quality of each trajectory on each dimension [n, D].
    n, d, cluster = agent.size, len(truth.dimensions), cycle // truth.cycles
    clusters = truth.cluster.draw(rng, (truth.clusters,), d)
    of_cycles = truth.cycle.draw(rng, (truth.clusters * truth.cycles,), d)
    reactions = truth.interaction.draw(rng, (len(order), truth.clusters), d)
    residual = truth.residual.draw(rng, (n,), d)
    quality = truth.means[order][agent] + clusters[cluster] + of_cycles[cycle] + reactions[agent, cluster] + residual
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
    names = tuple(composer.name for composer in composers)
    columns = sorted(range(d), key=truth.dimensions.__getitem__)
    cycles, cycle_code = np.unique(cycle, return_inverse=True)
    numbers, cluster_code = np.unique(cluster, return_inverse=True)
    scores = np.stack([calls[judge.name].mean(axis=1) for judge in panel], axis=1)[:, :, columns]
    many = any(judge.trials > 1 for judge in panel)
    first = np.stack([calls[judge.name][:, 0] for judge in panel], axis=1)[:, :, columns] if many else None
    share = truth.shares
    digest = hashlib.sha256(repr((names, truth.dimensions, tuple(calls))).encode())
    for part in (agent, cycle, scores, share, tokens):
        digest.update(np.ascontiguousarray(part).tobytes())
    return ScoreTable(
        tuple(f"{names[a]}/{c:06d}" for a, c in zip(agent.tolist(), cycle.tolist(), strict=True)), names, agent,
        tuple(f"cycle-{c:06d}" for c in cycles.tolist()), cycle_code.astype(np.int64),
        tuple(f"cluster-{k:04d}" for k in numbers.tolist()), cluster_code.astype(np.int64), ("simulated",),
        np.zeros(n, dtype=np.int64), tuple(judge.name for judge in panel), tuple(judge.family for judge in panel),
        tuple(truth.dimensions[k] for k in columns), share[columns], scores,
        trials={name: rows @ share for name, rows in calls.items()}, replicates={},
        calls={judge.name: CallCounts(n * judge.trials, 0, 0) for judge in panel}, lengths=tokens, left_out=(),
        digest=digest.hexdigest()[:16], mean=scores if many else None, first=first, repeats={} if many else None,
    )  # fmt: skip


# Planning: a truth fitted to records, and simulation of additional cycles, judges or trials.


_ROUNDING = 1 / 12  # variance added by rounding to integers, if the noise before it is not far below half a point

_DIGEST = "simulated"


def fitted_truth(table: ScoreTable, components: Components, scale: Scale = SCALE) -> Truth:
    """Fit a truth that reproduces tables like this one, for simulation in planning."""
    table = averaged(table)
    absent = [name for a, name in enumerate(table.agents) if not (table.agent == a).any()]
    if absent:
        raise NotMeasurableError(f"levels are undefined: no scored trajectory of {', '.join(absent)}")
    columns = ([*agent_effects(column, table.agent, table.cycle).values()] for column in table.scores.mean(axis=1).T)
    levels = np.clip(np.array(list(columns)).T, *scale).tolist()
    counts, cycles = np.bincount(table.agent, minlength=len(table.agents)), len(table.cycles)
    composers = tuple(
        Composer(agent, tuple(level), attendance=min(1.0, float(n) / cycles), tokens=1000.0)
        for agent, level, n in zip(table.agents, levels, counts, strict=True)
    )
    trials = np.array([max(1, table.trials[judge].shape[1]) for judge in table.judges])
    sums = table.scores * trials[:, None]
    rounding = _ROUNDING if np.abs(sums - np.rint(sums)).max() < 1e-6 else 0.0  # every call gave integer scores
    # Judge-by-agent bonuses on the aggregate are shrunk by the share of their variance that is not noise.
    liking = components.part("judge x agent").sd ** 2
    chance = components.part("disagreement").sd ** 2 / np.maximum(counts, 1)
    signal = liking / (liking + chance) if liking > 0 else np.zeros(len(table.agents))
    share, panel = float(np.square(table.weights).sum()), []
    for judge, family, asked in zip(table.judges, table.families, trials.tolist(), strict=True):
        trial = components.judge("trial", judge).sd ** 2 / share
        # If calls repeat each other exactly, so do their rounding errors, which do not average out.
        off = max(trial, rounding) / asked
        noise = {name: components.judge("disagreement", judge, name).sd ** 2 for name in table.names}
        pure = {name: max(0.0, value - off * (share if name == AGGREGATE else 1.0)) for name, value in noise.items()}
        panel.append(Panelist(
            judge, family, components.severities[judge, AGGREGATE], 0.0,
            tuple((agent, float(signal[a]) * components.bonuses[judge, agent, AGGREGATE])
                  for a, agent in enumerate(table.agents)),
            _spread(table, pure), asked, Spread(math.sqrt(max(0.0, trial - rounding)), 0.0),
        ))  # fmt: skip
    cluster, cycle, interaction, residual = (
        _spread(table, {name: components.part(part, name).sd ** 2 for name in table.names})
        for part in ("cluster", "cycle", "agent x cluster", "residual")
    )
    clusters = len(table.clusters)
    return Truth(composers, tuple(panel), table.dimensions, clusters, max(1, round(cycles / clusters)), cluster, cycle,
                 interaction, residual, weights=tuple(table.weights.tolist()), scale=scale,
                 rounded=rounding > 0)  # fmt: skip


def _spread(table: ScoreTable, variance: Mapping[str, float]) -> Spread:
    """Return the sizes on each dimension, with the correlation that reproduces the variance of the aggregate."""
    sd = np.sqrt([variance[name] for name in table.dimensions])
    alone = float(np.square(table.weights * sd).sum())
    together = float((table.weights * sd).sum()) ** 2 - alone
    correlation = (variance[AGGREGATE] - alone) / together if together > 1e-12 else 0.0
    return Spread(tuple(sd.tolist()), min(1.0, max(0.0, correlation)))


def drawn_truth(table: ScoreTable, truth: Truth, components: Components, rng: np.random.Generator) -> Truth:
    """Redraw the levels of the fitted truth within their uncertainty in these records."""
    counts = np.bincount(table.agent, minlength=len(table.agents))
    met = np.unique(np.stack([table.agent, table.cluster]), axis=1)[0]
    clusters = np.bincount(met, minlength=len(table.agents))
    a, d, judges = len(table.agents), len(table.dimensions), len(table.judges)
    residual = truth.residual.draw(rng, (a,), d)
    residual += sum(noise_of(judge).draw(rng, (a,), d) for judge in truth.panel) / judges
    noise = truth.interaction.draw(rng, (a,), d) / np.sqrt(clusters)[:, None] + residual / np.sqrt(counts)[:, None]
    # The share of the variance between agents' aggregates that is not sampling error.
    shrink, agents = 1.0, components.part("agent").variance
    if agents is not None:
        variance = components.part("residual").sd ** 2 + components.part("disagreement").sd ** 2 / judges
        error = components.part("agent x cluster").sd ** 2 * float(np.mean(1 / clusters))
        error += variance * float(np.mean(1 / counts))
        shrink = agents / (agents + error) if agents else 0.0
    centre = truth.means.mean(axis=0)
    levels = np.clip(centre + shrink * (truth.means - centre) + math.sqrt(shrink) * noise, *truth.scale)
    composers = (replace(one, means=tuple(row)) for one, row in zip(truth.composers, levels.tolist(), strict=True))
    return replace(truth, composers=tuple(composers))


def noise_of(judge: Panelist) -> Spread:
    """Return the total noise of a judge's mean score of one trajectory."""
    trial = np.square(np.asarray(judge.trial_noise.sd, dtype=np.float64)) / judge.trials
    sd = np.sqrt(np.square(np.asarray(judge.disagreement.sd, dtype=np.float64)) + trial)
    return Spread(tuple(np.atleast_1d(sd).tolist()) if sd.ndim else float(sd), judge.disagreement.correlation)


def joined(table: ScoreTable, more: ScoreTable, rng: np.random.Generator) -> ScoreTable:
    """Append the records of new cycles, in new clusters, to a table."""
    for what in ("agents", "judges", "dimensions"):
        if getattr(table, what) != getattr(more, what):
            raise InputError("joined", [Problem(what, "must be the same in both tables")])
    trials = {
        judge: np.concatenate([rows, more.trials[judge]]) if rows.shape[1] == more.trials[judge].shape[1] else rows
        for judge, rows in table.trials.items()
    }
    # Each new record has a format drawn from its agent's earlier ones.
    formats = np.zeros(more.agent.size, dtype=np.int64)
    for a in np.unique(more.agent):
        used, rows = table.format[table.agent == a], more.agent == a
        formats[rows] = rng.choice(used, int(rows.sum())) if used.size else 0

    def below(upper: Floats | None, lower: Floats | None) -> Floats | None:
        """Stack two blocks of scores; single trials are used if the lower one has no repeated trials."""
        return None if upper is None else np.concatenate([upper, more.scores if lower is None else lower])

    names: dict[str, Any] = {
        part: (*getattr(table, part), *(f"new/{name}" for name in getattr(more, part)))
        for part in ("trajectories", "cycles", "clusters")
    }
    return replace(
        table, **names, agent=np.concatenate([table.agent, more.agent]),
        cycle=np.concatenate([table.cycle, more.cycle + len(table.cycles)]),
        cluster=np.concatenate([table.cluster, more.cluster + len(table.clusters)]),
        format=np.concatenate([table.format, formats]), scores=np.concatenate([table.scores, more.scores]),
        trials=trials, lengths=None, digest=_DIGEST, mean=below(table.mean, more.mean),
        first=below(table.first, more.first) if table.mean is not None else None,
    )  # fmt: skip


def with_judge(
    table: ScoreTable, truth: Truth, components: Components, name: str, family: str, rng: np.random.Generator
) -> ScoreTable:
    """Add the scores of another judge to a table, with the panel's average noise and one trial."""
    if name in table.judges:
        raise InputError("with_judge", [Problem("name", f"must be a new one (got {name!r})")])
    a, d = len(table.agents), len(table.dimensions)
    size = np.sqrt([components.part("judge x agent", dimension).sd ** 2 for dimension in table.dimensions])
    liking = Spread(tuple(size.tolist()), 1.0).draw(rng, (a,), d)
    once = [noise_of(replace(judge, trials=1)) for judge in truth.panel]
    sd = np.sqrt(np.mean([_variance(spread, len(truth.dimensions)) for spread in once], axis=0))
    # The quality of each trajectory [n, D], drawn conditional on the panel's mean.
    quality_d = len(table.dimensions)
    level = truth.means[table.agent]
    parts = (truth.cluster, truth.cycle, truth.interaction, truth.residual)
    true = np.sum([_variance(part, quality_d) for part in parts], axis=0)
    noise = np.sum([_variance(noise_of(judge), quality_d) for judge in truth.panel], axis=0) / len(truth.panel) ** 2
    reliable = true / np.maximum(true + noise, 1e-12)
    unknown = Spread(tuple(np.sqrt(true * (1 - reliable)).tolist()), truth.residual.correlation)
    latent = (
        np.asarray(level + reliable * (table.scores.mean(axis=1) - level) + unknown.draw(rng, (table.n,), quality_d))
        + liking[table.agent]
        + Spread(tuple(sd.tolist()), float(np.mean([spread.correlation for spread in once]))).draw(rng, (table.n,), d)
    )
    scores = truth.given(latent)
    place = sorted((*table.judges, name)).index(name)

    def widened(block: Floats | None) -> Floats | None:
        return None if block is None else np.insert(block, place, scores, axis=1)

    wider = widened(table.scores)
    assert wider is not None
    return replace(
        table, judges=(*table.judges[:place], name, *table.judges[place:]),
        families=(*table.families[:place], family, *table.families[place:]), scores=wider, mean=widened(table.mean),
        first=widened(table.first), trials={**table.trials, name: (scores @ table.weights)[:, None]},
        calls={**table.calls, name: CallCounts(table.n, 0, 0)}, replicates={},
        repeats=None if table.repeats is None else {}, lengths=None, digest=_DIGEST,
    )  # fmt: skip


def _variance(part: Spread, dimensions: int) -> Floats:
    return np.broadcast_to(np.square(np.asarray(part.sd, dtype=np.float64)), (dimensions,))


def with_trials(table: ScoreTable, truth: Truth, judge: str, extra: int, rng: np.random.Generator) -> ScoreTable:
    """Add trials of one judge on every trajectory to a table."""
    j, n, d = table.judges.index(judge), table.n, len(table.dimensions)
    planted, old, level = truth.panel[j], table.scores[:, j], truth.means[table.agent]
    # The judge's scores without trial noise [n, D], conditional on its own scores and those of the others.
    residual, rest = old - level - planted.severity, np.delete(table.scores, j, axis=1)
    others = rest.mean(axis=1) - level if rest.shape[1] else np.zeros_like(residual)
    call = (_variance(planted.trial_noise, d) + _ROUNDING) / planted.trials
    guess, remaining = np.empty_like(residual), np.empty(d)
    for k in range(d):
        signals = np.stack([residual[:, k], others[:, k]])
        spread = signals @ signals.T / n
        target = spread[0] - [min(float(call[k]), float(spread[0, 0])), 0.0]
        weight = np.linalg.pinv(spread) @ target
        guess[:, k] = weight @ signals
        remaining[k] = math.sqrt(max(0.0, float(target[0] - weight @ target)))
    reading = level + planted.severity + guess + Spread(tuple(remaining.tolist()), 0.0).draw(rng, (n,), d)

    def more(trials: int) -> Floats:
        return truth.given(reading[:, None] + planted.trial_noise.draw(rng, (n, trials), d))

    calls, before = more(extra), table.trials[judge]
    if before.shape[0] != n:  # some trials were unusable, of unknown trajectories
        before = more(planted.trials) @ table.weights
    scores = table.scores.copy()
    scores[:, j] = (planted.trials * old + calls.sum(axis=1)) / (planted.trials + extra)
    trials = {**table.trials, judge: np.concatenate([before, calls @ table.weights], axis=1)}
    first = table.scores if table.first is None else table.first
    return replace(table, scores=scores, mean=scores, first=first, trials=trials, lengths=None, digest=_DIGEST)
