"""The study of ValueBlindBench section 4.1, rebuilt as simulated tables that have its published summary statistics.

Whole scores are drawn from a latent quality and each judge's own error, and then steered without breaking the draw:
within each agent, regime, judge and dimension one shift of all readings makes the sum of the 50 scores exact
(`scored`), and the error of the judges is bisected until the agreement on a dimension is the published one. Sums are
therefore planted, agreement is met closely, and the rest (quartiles, tests, intervals) follows from the draw.

Where the published numbers cannot all hold, the reading that keeps the conclusions is taken:

- A rho of .2 with rank 1 in place turns all three lower pairs, and one of them was probed. As published, the outside
  judge scores the records of qwen3 and gemini alone; the other pairs stand in one class with that pair.
- A penalty of 2.81 points on honest rationales below 60 tokens cannot hold: 84.4 % of gemini's are that short and
  2.8 % of gpt's, and their means are .009 apart. The break is planted in cell B, and honest lengths are unrelated to
  scores.
- With 200 records after the cutoff and 800 before, the BTC split is the whole table, so it cannot have a p-value of
  its own (.55 beside .86 in print). Here both say the same, and the SOL split differs.
- The numbers of discoveries of single judges (27, 23 and 19 of 36, with overlaps of 18, 18 and 12) are not planted:
  only that they differ, and that each judge has some which the panel does not authorise. The panel's own 20 by the
  regime bootstrap, of them 3 on constraint_awareness, are planted: claude above each other agent on all six dimensions,
  and gemini below qwen3 and gpt on information_use.
- Panel scores of whole grades lie mostly on a grid of an eighteenth of a point: the honest first quartile is 4.28
  (4.33 in print). The halo compares gate numbers, and the honest quartile of two judges lies on a coarser grid than
  that of three: cell A moves by .03 where its own score moves by nothing (.00 in print).
- Published intervals of the panel are narrower than five regimes with cluster t give; only what they exclude is kept.

How near: kappas within .003; means, gaps, terse shares, the correlation with length, the outside judge, repetition
stability and the post-cutoff gap within .001; the anchor shift and its spreads within .015; quartiles within .025, but
for the honest first one."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from assaymark.claims import Rules, decide, decide_claims, index
from assaymark.judging import load_rubric
from assaymark.metrology import (
    ControlCell, ScoreTable, analyse, anchor_measurements, cell_measurements, contamination_measurements, contested,
    mean_pairwise_kappa, probe_measurements, stratified, style_measurements, table_from_arrow,
)  # fmt: skip
from assaymark.protocol import Study, parse_study, plan_hash
from assaymark.records import AGGREGATE, DerivationKind, Measurement, Verdict

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AGENTS: Final = ("claude", "gemini", "gpt", "qwen3")
REGIMES: Final = ("r1", "r2", "r3", "r4", "r5-post-cutoff")
JUDGES: Final = (("claude-judge", "anthropic", 3), ("gpt-judge", "openai", 1), ("gemini-judge", "google", 1))
DIMENSIONS: Final = (
    "action_coherence", "constraint_awareness", "information_use", "position_sizing", "risk_alignment",
    "uncertainty_handling",
)  # fmt: skip
A, R, CYCLES, J, D = 4, 5, 50, 3, 6
"""Agents, regimes, cycles in each regime, judges, dimensions."""

MAKERS: Final = dict(zip(AGENTS, ("anthropic", "google", "openai", "alibaba"), strict=True))
"""Three of the four agents have a judge of their own maker (section 6, limitation 9)."""

PLAN: Final = """
version = "2"
name = "valueblindbench"
seed = 42
stability = {probe = {name = "deepseek", model = "deepseek/v4-pro", family = "deepseek"}}
contamination = {post_cutoff = ["r5-post-cutoff"]}
anchor_probe = {judge = "gpt-judge", rubric = "v1.1", sample = 120}
"""


def study_of() -> Study:
    """The plan: the defaults, with the source's outside judge, late regime and anchor probe."""
    return parse_study(PLAN + "".join(
        f'[[judges]]\nname = "{name}"\nmodel = "made/{name}"\nfamily = "{family}"\ntrials = {trials}\n'
        for name, family, trials in JUDGES
    ))  # fmt: skip


# --- what is planted ------------------------------------------------------------------------------------------------

KAPPA: Final = dict(zip(DIMENSIONS, (0.9354, 0.2022, 0.6037, 0.7626, 0.8834, 0.7905), strict=True))
KAPPA_AGGREGATE: Final = 0.7168

MEANS: Final = np.array([4.50, 4.10, 4.42, 4.33, 4.48, 4.27])
"""Of the dimensions. Their mean is the published 4.35 of honest records."""

SHARES: Final = (  # of the scores 1 to 5 on each dimension before sums are made exact
    (0.064, 0.064, 0.024, 0.008, 0.84), (0.001, 0.009, 0.08, 0.74, 0.17), (0.003, 0.006, 0.021, 0.53, 0.44),
    (0.003, 0.006, 0.021, 0.52, 0.45), (0.064, 0.064, 0.024, 0.008, 0.84), (0.003, 0.006, 0.021, 0.57, 0.40),
)  # fmt: skip
COMMON: Final = (0.96, 0.2, 0.2, 0.2, 0.96, 0.2)
"""Correlation of each dimension's quality with what all dimensions have in common."""

TOTALS: Final = np.array([[6850, 6835, 6835], [6425, 6380, 6441], [6340, 6440, 6426], [6582, 6350, 6396]])
"""Points over 1,500 scores of the agents by the judges; 4,500 make a panel mean: 4.560, 4.277, 4.268, 4.295.

Without the claude judge the order of the last three turns round; without either other one it stays.
"""

ON_DIMENSION: Final = np.array([[0.0, 0.06, 0.0, 0.0, -0.03, -0.03], [0.05, 0.03, -0.26, 0.06, 0.06, 0.06],
                                [0.0] * 6, [0.0] * 6])  # fmt: skip
"""Of an agent beyond its level on the aggregate; rows sum to zero."""
REGIME: Final = np.array([-0.052, 0.028, 0.048, -0.024, 0.0]) + np.array([0.0018] * 4 + [-0.0072])
"""The last lies .009 below the others, which differ among themselves by more."""

IN_REGIME: Final = np.array([[0.02, -0.03, 0.01, -0.01, 0.01], [0.05, -0.04, -0.05, 0.03, 0.01],
                             [-0.04, 0.05, 0.00, -0.05, 0.04], [-0.03, 0.02, 0.04, 0.03, -0.06]])  # fmt: skip
"""Agents by regimes; rows and columns sum to zero."""
UNSTEADY: Final = 0.05
"""Standard deviation of what an agent gains on one dimension in one regime."""

STABILITY: Final = 0.9874
TERSE: Final = {"claude": 0, "gemini": 211, "gpt": 7, "qwen3": 0}
CORRELATION: Final = -0.077

CELL_A: Final = (23,) * 6 + (24,) * 14 + (25,) * 3 + (26,) * 5 + (27,) * 9 + (28,) * 8 + (30,) * 5
CELL_B: Final = (
    (24,) * 8 + (25,) + (26,) * 3 + (27,) * 11 + (28,) * 14 + (29,) * 3 + (30,) * 2 + (31, 32) * 3 + (33,) * 2
)
"""Panel totals over 18 scores of each control record: means 1.44 and 1.54."""


# --- scores with exact sums -----------------------------------------------------------------------------------------


def scored(readings: Floats, shares: Sequence[float], sums: Ints) -> Ints:
    """Whole scores 1 to 5 of ``readings`` [..., n] that add up to ``sums`` [...].
    A score counts the cut-offs that a reading has passed. Shifting all readings of a group passes one more cut-off at
    a time, so that every sum between n and 5n is reached, and the records nearest to a cut-off are those that move."""
    cuts = stats.norm.ppf(np.cumsum(shares)[:-1])
    n = readings.shape[-1]
    missing = np.sort((cuts - readings[..., None]).reshape(*readings.shape[:-1], -1), axis=-1)
    passed = (np.asarray(sums) - n)[..., None]
    shift = (np.take_along_axis(missing, passed - 1, -1) + np.take_along_axis(missing, passed, -1)) / 2
    return np.asarray(1 + ((readings + shift)[..., None] >= cuts).sum(axis=-1))


def apportioned(ideal: Floats, total: Ints | int) -> Ints:
    """Whole numbers near ``ideal`` [..., k] that add up to ``total`` [...], by largest remainders."""
    fair = ideal + ((total - ideal.sum(axis=-1)) / ideal.shape[-1])[..., None]
    whole = np.floor(fair).astype(np.int64)
    rank = np.argsort(np.argsort(whole - fair, axis=-1), axis=-1)
    return np.asarray(whole + (rank < (total - whole.sum(axis=-1))[..., None]))


def honest_sums(rng: np.random.Generator) -> Ints:
    """What the 50 scores of each agent, regime, judge and dimension [A, R, J, D] have to add up to."""
    level = TOTALS / (R * CYCLES * D)
    by_regime = CYCLES * D * (level[:, :, None] + (REGIME + IN_REGIME)[:, None, :])
    regime = apportioned(by_regime, TOTALS).transpose(0, 2, 1)
    unsteady = rng.normal(0, UNSTEADY, (A, R, D))
    unsteady -= unsteady.mean(axis=1, keepdims=True)
    parts = MEANS + ON_DIMENSION[:, None, :] + unsteady
    return apportioned(np.broadcast_to((CYCLES * parts)[:, :, None, :], (A, R, J, D)), regime)


def honest_scores(rng: np.random.Generator) -> Ints:
    """Scores [A, R, J, cycles, D] with the planted sums and the published agreement on each dimension."""
    sums = honest_sums(rng)
    shared = rng.standard_normal((A, R, 1, CYCLES))
    made = []
    for d, name in enumerate(DIMENSIONS):
        own, error = rng.standard_normal((A, R, 1, CYCLES)), rng.standard_normal((A, R, J, CYCLES))
        quality = COMMON[d] * shared + np.sqrt(1 - COMMON[d] ** 2) * own
        low, high, tries = 0.0, 6.0, []
        for _ in range(14):
            noise = (low + high) / 2
            found = scored((quality + noise * error) / np.sqrt(1 + noise**2), SHARES[d], sums[..., d])
            kappa = mean_pairwise_kappa(found.transpose(0, 1, 3, 2).reshape(-1, J))
            low, high = (noise, high) if kappa > KAPPA[name] else (low, noise)
            tries.append((abs(kappa - KAPPA[name]), noise, found))
        made.append(min(tries, key=lambda one: one[:2])[2])
    return np.stack(made, axis=-1)


def repeated(scores: Ints, rng: np.random.Generator) -> Ints:
    """Three trials [A, R, T, cycles, D] of the claude judge, of the published repetition stability.
    One trial of one record gains a point on a dimension and one trial of another record of the same agent and regime
    loses one on it, so that sums stay; as many such pairs are made as the stability asks for."""
    trials = np.repeat(scores[:, :, 0, None], 3, axis=2)
    aggregate = scores[:, :, 0].mean(axis=-1)
    each = (1 / D) ** 2 / 3  # variance within three trials of which one differs by one point on one dimension
    pairs = round((1 - STABILITY) * aggregate.var() * aggregate.size / each / 2)
    free = np.ones((A, R, CYCLES), dtype=bool)
    for k in range(pairs):
        a, r = divmod(k % (A * R), R)
        d = int(rng.integers(D))
        for step, limit in ((1, 5), (-1, 1)):
            at = int(rng.choice(np.flatnonzero(free[a, r] & (scores[a, r, 0, :, d] != limit))))
            trials[a, r, rng.integers(3), at, d] += step
            free[a, r, at] = False
    return trials


# --- tables ---------------------------------------------------------------------------------------------------------


def honest_name(agent: str, regime: str, cycle: int) -> str:
    """Id of an honest record."""
    return f"{agent}/{regime}/{cycle:02d}"


def rows_of(names: Sequence[str], columns: Mapping[str, Sequence[object]], judges: Sequence[Ints]):
    """One row a call: ``judges`` hold the calls [T, n, D] of each judge on the named records."""
    rows: dict[str, list[object]] = {k: [] for k in ("trajectory", *columns, "judge", "family", "trial", *DIMENSIONS)}
    for (judge, family, _), calls in zip(JUDGES, judges, strict=True):
        for trial, call in enumerate(calls, start=1):
            rows["trajectory"] += names
            for key, values in columns.items():
                rows[key] += values
            for key, value in (("judge", judge), ("family", family), ("trial", trial)):
                rows[key] += [value] * len(names)
            for d, dimension in enumerate(DIMENSIONS):
                rows[dimension] += call[:, d].tolist()
    return rows


def honest_table(rng: np.random.Generator) -> ScoreTable:
    """1,000 honest records: four agents, five regimes of 50 cycles, five calls each."""
    scores = honest_scores(rng)
    trials = repeated(scores, rng)
    keys = list(product(AGENTS, REGIMES, range(CYCLES)))
    flat = [trials.transpose(2, 0, 1, 3, 4), *(scores[None, :, :, j] for j in (1, 2))]
    judges = [one.reshape(len(one), -1, D) for one in flat]
    panel = np.mean([one.mean(axis=(0, 2)) for one in judges], axis=0)
    columns: dict[str, Sequence[object]] = {
        "agent": [agent for agent, _, _ in keys],
        "agent_family": [MAKERS[agent] for agent, _, _ in keys],
        "cluster": [regime for _, regime, _ in keys],
        "cycle": [f"{regime}#{cycle:02d}" for _, regime, cycle in keys],
        "length": lengths_of(panel.reshape(A, -1), rng).ravel().tolist(),
    }
    rows = pa.table(rows_of([honest_name(*key) for key in keys], columns, judges))
    return table_from_arrow(rows, dimensions=DIMENSIONS)


def lengths_of(panel: Floats, rng: np.random.Generator) -> Ints:
    """Token counts [A, n] with the published terse shares, and the published correlation with ``panel`` scores."""
    drawn = np.empty(panel.shape, dtype=np.int64)
    for a, (agent, median) in enumerate(zip(AGENTS, (75, 70, 120, 170), strict=True)):
        terse = rng.integers(38, 60, TERSE[agent])
        rest = 62 + np.abs(rng.normal(median - 62, 22, panel.shape[1] - terse.size))
        drawn[a] = np.sort(np.concatenate([terse, rest.astype(np.int64)]))
    noise, by_score = rng.standard_normal(panel.shape), stats.zscore(panel, axis=1)
    low, high = -1.0, 1.0
    for _ in range(20):
        lean = (low + high) / 2
        rank = np.argsort(np.argsort(noise + lean * by_score, axis=1), axis=1)
        found = np.take_along_axis(drawn, rank, axis=1)
        below = np.corrcoef(found.ravel(), panel.ravel())[0, 1] < CORRELATION
        low, high = (lean, high) if below else (low, lean)
    return found


def control(kind: DerivationKind, panel: list[int], tokens: tuple[int, int], rng: np.random.Generator) -> ControlCell:
    """Fifty control records composed by the claude family, with these panel totals; no judge favours them."""
    # Every regime gets one of each five neighbours, so that none is full of high ones.
    totals = rng.permuted(np.sort(panel).reshape(-1, R), axis=1).ravel()
    given = np.zeros((totals.size, J), dtype=np.int64)
    for k, total in enumerate(totals):
        given[k] = total // J
        # What does not divide goes to those that gave least so far: in the end all have given the same.
        given[k, np.argsort(given[: k + 1].sum(axis=0), kind="stable")[: total % J]] += 1
    scores = np.ones((J, totals.size, D), dtype=np.int64)
    for j, k in product(range(J), range(totals.size)):
        scores[j, k, rng.permutation(D)[: given[k, j] - D]] += 1
    columns: dict[str, Sequence[object]] = {
        "agent": [f"{kind}-writer"] * totals.size,
        "cluster": [REGIMES[k % R] for k in range(totals.size)],
        "cycle": [f"{kind}#{k:02d}" for k in range(totals.size)],
        "length": rng.integers(*tokens, totals.size).tolist(),
    }
    judges = [np.repeat(scores[j, None], trials, axis=0) for j, (_, _, trials) in enumerate(JUDGES)]
    rows = pa.table(rows_of([f"{kind}/{k:02d}" for k in range(totals.size)], columns, judges))
    table = table_from_arrow(rows, dimensions=DIMENSIONS)
    return ControlCell(kind, table, (None,) * table.n, ("anthropic",) * table.n)


# --- the outside judge and the other anchors --------------------------------------------------------------------------

Scores = dict[str, dict[str, float]]

PROBE_GAP: Final = np.array([2, 18, -3, 26, 16])
"""Points by which the outside judge puts qwen3 above gemini in each regime: 59 over 247 cycles of 6 scores, +.04."""

PROBE_CONSTRAINT: Final = np.array([22, 23, 20, 24, 22])
"""Of these on constraint_awareness: 111 over 247 cycles, +.45."""

NOT_SCORED: Final = tuple(honest_name("gemini", regime, CYCLES - 1) for regime in REGIMES[:3])
"""Records that the outside judge gave no usable score."""


def outside_scores(rng: np.random.Generator) -> Scores:
    """The outside judge on the records of qwen3 and gemini, 250 and 247 of them, with the aggregate."""
    found: Scores = {}
    for r, regime in enumerate(REGIMES):
        usable = [k for k in range(CYCLES) if honest_name("gemini", regime, k) not in NOT_SCORED]
        rest = apportioned(np.zeros(D - 1), int(PROBE_GAP[r] - PROBE_CONSTRAINT[r]))
        gaps = np.insert(rest, DIMENSIONS.index("constraint_awareness"), PROBE_CONSTRAINT[r])
        base = np.rint(len(usable) * MEANS).astype(np.int64)
        for agent, sums in (("gemini", base - gaps // 2), ("qwen3", base - gaps // 2 + gaps)):
            readings = rng.standard_normal((D, len(usable)))
            scores = np.stack([scored(readings[d], SHARES[d], sums[d]) for d in range(D)], axis=1)
            for k, row in zip(usable, scores, strict=True):
                found[honest_name(agent, regime, k)] = by_dimension(row)
        for k in set(range(CYCLES)) - set(usable):
            found[honest_name("qwen3", regime, k)] = by_dimension(np.full(D, 4))
    return {name: {AGGREGATE: sum(row.values()) / D, **row} for name, row in found.items()}


def by_dimension(row: Ints) -> dict[str, float]:
    """One record's scores under their names."""
    return dict(zip(DIMENSIONS, row.astype(float).tolist(), strict=True))


AFTER: Final = {"claude": 3.80, "gemini": 3.37, "gpt": 3.57, "qwen3": 4.00}
"""Levels of constraint_awareness under v1.1, before they are shifted to the published mean."""

SHIFT, SPREAD_AFTER = -0.42, 0.81
IN_TURN: Final = np.array([-2, 1, 2, -2, 1])
"""Points by which the shift differs between regimes, over the 24 records of each."""


def anchor_scores(table: ScoreTable, rng: np.random.Generator) -> tuple[Scores, Scores]:
    """The gpt judge on 120 records under v1.0, as in ``table``, and under v1.1."""
    place = {name: k for k, name in enumerate(table.trajectories)}
    strata = {name: (table.agents[table.agent[k]], table.clusters[table.cluster[k]]) for name, k in place.items()}
    sample = stratified(strata, 120, rng)
    rows = np.array([place[name] for name in sample])
    judge, column = table.judges.index("gpt-judge"), table.dimensions.index("constraint_awareness")
    before = table.scores[rows, judge]
    group = np.array([AGENTS.index(strata[name][0]) * R + REGIMES.index(strata[name][1]) for name in sample])
    old = before[:, column]
    goal = round(float(old.sum()) + SHIFT * rows.size)
    count = np.bincount(group)
    level = np.bincount(group // R, weights=old) / np.bincount(group // R)
    change = np.array([AFTER[agent] for agent in AGENTS]) - level
    ideal = np.bincount(group, weights=old) + count * np.repeat(change, R) + np.tile(IN_TURN / A, A)
    sums = apportioned(ideal.astype(np.float64), goal)
    readings = 0.5 * stats.zscore(old) + rng.standard_normal(rows.size)
    after = before.copy()
    low, high = 0.02, 0.6
    for _ in range(14):
        # The two scores in the middle take the less, the wider the scores spread.
        share = (low + high) / 2
        shares = (share / 8, share * 3 / 8, 0.5 - share / 2, 0.5 - share / 2, share / 2)
        for k in range(A * R):
            after[group == k, column] = scored(readings[group == k], shares, np.array(sums[k]))
        low, high = (low, share) if after[:, column].std(ddof=1) > SPREAD_AFTER else (share, high)
    one, two = ({name: by_dimension(row) for name, row in zip(sample, x, strict=True)} for x in (before, after))
    return one, two


# --- the study end to end ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Everything that judges said."""

    honest: ScoreTable
    cells: tuple[ControlCell, ...]
    outside: Scores
    before: Scores
    after: Scores


@cache
def tables(seed: int = 20260503) -> Tables:
    """The tables of the study; equal seeds give equal tables."""
    honest, a, b, outside, anchor = (np.random.default_rng([seed, part]) for part in range(5))
    table = honest_table(honest)
    cells = (control("cell_a", CELL_A, (180, 320), a), control("cell_b", CELL_B, (30, 61), b))
    return Tables(table, cells, outside_scores(outside), *anchor_scores(table, anchor))


def instruments(table: ScoreTable) -> dict[str, frozenset[str]]:
    """BTC everywhere, SOL not in the two earliest regimes."""
    both = [table.clusters[c] not in REGIMES[:2] for c in table.cluster]
    return {name: frozenset(("BTC", "SOL")[: 1 + sol]) for name, sol in zip(table.trajectories, both, strict=True)}


@cache
def measurements() -> tuple[Measurement, ...]:
    """Everything that the protocol measures on these tables."""
    study, made = study_of(), tables()
    honest = made.honest
    agents = {name: honest.agents[a] for name, a in zip(honest.trajectories, honest.agent, strict=True)}
    cycles = {name: honest.cycles[c] for name, c in zip(honest.trajectories, honest.cycle, strict=True)}
    clusters = {name: honest.clusters[c] for name, c in zip(honest.trajectories, honest.cluster, strict=True)}
    panel = list(analyse(honest, study, rng=np.random.default_rng(1)))
    changed = load_rubric("v1.1").changed(load_rubric("v1.0"))
    return (
        *panel,
        *style_measurements(honest, study, np.random.default_rng(2)),
        *cell_measurements(honest, made.cells, study),
        *contamination_measurements(honest, study, instruments(honest)),
        *anchor_measurements(made.before, made.after, agents, clusters, changed, "gpt-judge", "v1.1", study),
        *probe_measurements(contested(panel, study), made.outside, agents, cycles, clusters, study),
    )


@cache
def verdicts() -> dict[str, Verdict]:
    """Every verdict of the study, by the id of its claim."""
    study = study_of()
    return {v.claim.id: v for v in decide_claims(measurements(), study, plan_hash(study, {}))}


@cache
def published_verdicts() -> dict[str, Verdict]:
    """The same by the source's own rule: Holm over the regime bootstrap, and the sign of each drop."""
    study, known = study_of(), index(measurements())
    rules = replace(Rules.of(study), test="p_bootstrap", source=True)
    return {name: decide(v.claim, known, rules, v.plan_hash) for name, v in verdicts().items()}
