"""Measurements of one judge from counts by task: shares, kappa, null-pair preference and the decomposition."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import combinations
from typing import Final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology.bootstrap import Resamples, percentile_ends, resampled, resamples_of
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.datasheet.calls import (
    BASE,
    CLASSES,
    CODES,
    NO_PREFERENCE,
    ONE_SIDED,
    OTHER_NONE,
    OTHER_PREFERENCE,
    OUTCOME_OF,
    OUTCOMES,
    POSITIONAL_1,
    POSITIONAL_2,
    PREFERENCES,
    STABLE,
    VERDICTS,
    CallTable,
    VerdictCounts,
    agreement_arrays,
    call_table,
    decomposition_of,
)
from assaymark.metrology.estimates import jackknife_estimate, jackknife_se, number
from assaymark.quantiles import t_quantile, wilson_ends
from assaymark.records import JSON, Measurement, PairCall

# Intervals for shares of calls and pairs clustered in tasks, and for other statistics over tasks.
#
# Calls of a task are dependent: intervals that ignored this were 2.6 times too narrow on real logs. `share_interval`
# was validated on tasks with shares drawn from beta and Dirichlet distributions: 5, 12, 20 and 60 tasks of 2, 6, or 4
# to 23 units, shares from .01 to .99, correlations within tasks from 0 to .6. Nominal 95 % intervals covered the truth
# in 93 to 100 % of runs, 98 % on average. With 40 units per task and rare shares that differ much between tasks,
# coverage can be 90 %, because the few tasks with the rare outcome may be missing altogether.


Ends = tuple[float, float]

RESAMPLES = 2_000
"""Number of resamples of tasks if there are too many to enumerate."""

LEAST_TASKS = 5
"""Minimum number of tasks for a bootstrap over tasks."""

ENOUGH_TASKS = 10
"""Minimum number of tasks for printing a bootstrap interval if another method exists: widened percentiles of a share
covered the truth in 88 to 93 of 100 runs with 5 tasks, in 94 to 98 with 10."""

LEAST_PAIRS = 10
"""Minimum number of units on either side of a share for a bootstrap; with fewer it is too close to 0 or 1."""

_FLAT = 1e-12
_USABLE: Final = 3  # outcomes 1, 2 and no preference


@dataclass(frozen=True, slots=True)
class ShareInterval:
    """The two ends or None, their method, and the effective number of independent units."""

    low: float | None
    high: float | None
    method: str
    effective: float


@dataclass(frozen=True, slots=True)
class TaskBootstrap:
    """Draws of tasks with replacement, shared by all statistics over the same number of tasks.
    Ends are percentiles at a higher level than nominal, by the factor sqrt(G/(G-1)) and Student's t on G-1 degrees of
    freedom instead of the normal (Hesterberg 2015), because plain percentiles are too narrow for few tasks."""

    rng: np.random.Generator
    level: float = 0.95
    resamples: int = RESAMPLES
    _drawn: dict[int, tuple[Resamples, ...]] = field(default_factory=dict)

    def values(self, sums: Floats, statistic: Callable[[Floats], Floats]) -> tuple[Floats, Floats | None]:
        """Compute the statistic of every resample [..., R] from summed columns [K, R]; also return the masses."""
        drawn = self._draws(sums.shape[0])
        return resampled(sums.T, drawn, statistic), drawn[0].mass

    def ends(self, sums: Floats, statistic: Callable[[Floats], Floats]) -> Ends | None:
        """Compute the widened percentile ends of a statistic over tasks, or None."""
        if sums.shape[0] < LEAST_TASKS:
            return None
        values, mass = self.values(sums, statistic)
        defined = ~np.isnan(values)
        if 1 - float(np.average(defined, weights=mass)) > 1 - self.level + 1e-9:
            return None
        weights = None if mass is None else mass[defined]
        low, high = percentile_ends(values[defined][None], weights, widened(self.level, sums.shape[0]))[:, 0].tolist()
        return (low, high) if high - low > _FLAT else None

    def words(self, tasks: int) -> str:
        """Describe the method of the interval over this number of tasks."""
        drawn = self._draws(tasks)
        size = f"{'all ' if drawn[0].exact else ''}{sum(part.size for part in drawn)}"
        return f"task-cluster bootstrap, {size} resamples of {tasks} tasks, widened percentiles"

    def _draws(self, tasks: int) -> tuple[Resamples, ...]:
        if tasks not in self._drawn:
            self._drawn[tasks] = tuple(resamples_of(tasks, self.resamples, self.rng, "task bootstrap"))
        return self._drawn[tasks]


def widened(level: float, tasks: int) -> float:
    """Return the percentile level at which a bootstrap over this many tasks covers ``level`` (Hesterberg 2015)."""
    z = math.sqrt(tasks / (tasks - 1)) * t_quantile(0.5 + level / 2, tasks - 1)
    return float(1 - 2 * scipy.special.ndtr(-z))


def share_interval(
    counts: Ints | Floats, weights: ArrayLike, level: float = 0.95, information: float = 1.0
) -> ShareInterval:
    """Compute the interval of a weighted share of classified units (such as pairs of one class) clustered in tasks
    (Clopper 1934, Korn 1998, Zou 2008)."""
    table, scale = np.asarray(counts, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    table = table[table.sum(axis=1) > 0] * information
    if not table.size:
        raise NotMeasurableError("a share of no units is undefined (n = 0)")
    tasks, n = table.shape[0], float(table.sum())
    worth = n / dispersion(table)
    if tasks < 2:
        return ShareInterval(None, None, "no interval: one task, needs two", worth)
    total = table.sum(axis=0)
    if np.ptp(scale[total > 0]) > 0:
        method = f"delete-one-task jackknife of the log odds, t({tasks - 1})"
    else:
        method = f"Clopper-Pearson, each of {tasks} tasks one unit"
    low, high = _ends(table, scale, level)
    if scale.min() < 0 < scale.max():
        (up, up_low, up_high), (down, down_low, down_high) = (
            (float(part @ total) / n, *(_ends(table, part, level) if part @ total else (0.0, 0.0)))
            for part in (np.maximum(scale, 0.0), np.maximum(-scale, 0.0))
        )
        low = max(float(scale.min()), min(low, up - down - math.hypot(up - up_low, down_high - down)))
        high = min(float(scale.max()), max(high, up - down + math.hypot(up_high - up, down - down_low)))
    return ShareInterval(low, high, method, worth)


@lru_cache(maxsize=256)
def _scale_of(weights: tuple[float, ...]) -> tuple[float, float, Floats, NDArray[np.bool_]]:
    """Return the lowest weight, the range, the levels from 0 to 1, and the class-by-level indicators [K, L]; cached."""
    levels, place = np.unique(np.array(weights), return_inverse=True)
    edge, width = float(levels[0]), float(np.ptp(levels))
    return edge, width, (levels - edge) / width, place[:, None] == np.arange(levels.size)


def _ends(counts: Floats, weights: Floats, level: float) -> Ends:
    """Compute the ends of a weighted share from counts [G, K] of at least two tasks; see `share_interval`."""
    edge, width, unit, columns = _scale_of(tuple(weights.tolist()))
    tasks, counts = counts.shape[0], counts @ columns
    total = counts.sum(axis=0)
    n = float(total.sum())
    share = float(unit @ total) / n
    tail = (1 - level) / 2
    if np.count_nonzero(total) == 1:
        reach = 1 - tail ** (1 / tasks)
        return edge + width * share * (1 - reach), edge + width * (share + (1 - share) * reach)
    without = total - counts
    sizes = without.sum(axis=1)
    # Half a unit on either side keeps the odds of rare shares away from 0, in all tasks and without each task.
    odds = scipy.special.logit((unit @ total + unit.mean()) / (n + 1))
    others = scipy.special.logit((without @ unit + unit.mean()) / (sizes + 1))
    half = t_quantile(1 - tail, tasks - 1) * float(jackknife_se(odds, others))
    low, high = scipy.special.expit([odds - half, odds + half]).tolist()
    sampled = (float(np.square(unit) @ total) / n - share**2) / n
    spread = max(sampled, float(jackknife_se(share, without @ unit / sizes)) ** 2)
    hits, misses = (part * share * (1 - share) / spread for part in (share, 1 - share))
    low = min(low, float(scipy.special.betaincinv(hits, misses + 1, tail)))
    high = max(high, float(scipy.special.betaincinv(hits + 1, misses, 1 - tail)))
    return edge + width * low, edge + width * high


def dispersion(counts: Floats) -> float:
    """Compute the overdispersion between tasks: Pearson's X2 over its degrees of freedom, at least 1."""
    table = counts[counts.sum(axis=1) > 0]
    table = table[:, table.sum(axis=0) > 0]
    tasks, classes = table.shape
    if tasks < 2 or classes < 2:
        return 1.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    excess = float((np.square(table - expected) / expected).sum())
    return float(max(1.0, excess / ((tasks - 1) * (classes - 1))))


CALLS, PAIRS = "calls", "pairs"


@dataclass(frozen=True, slots=True)
class Estimator:
    """Maker of one judge's measurements, with the common labels, bootstrap draws and a hash of the calls."""

    labels: Mapping[str, str]
    bootstrap: TaskBootstrap
    inputs: str = ""

    @property
    def level(self) -> float:
        """Nominal coverage of every interval."""
        return self.bootstrap.level

    def number(
        self, name: str, labels: Mapping[str, str], value: float | None, count: tuple[int, str], method: str,
        state: str = "ok", detail: Mapping[str, JSON] | None = None,
        ends: tuple[float | None, float | None] | None = None, unit: str = "",
    ) -> Measurement:  # fmt: skip
        """Make a measurement of this judge; see `assaymark.metrology.estimates.number`."""
        make = partial(Measurement, inputs=self.inputs)
        return number(
            make, name, {**self.labels, **labels}, value, count, method, state, detail, ends, self.level, unit
        )

    def missing(
        self, name: str, labels: Mapping[str, str], state: str, detail: Mapping[str, JSON] | None = None, n: int = 0,
        n_of: str = CALLS,
    ) -> Measurement:  # fmt: skip
        """Make a measurement without a value, with the reason."""
        return self.number(name, labels, None, (n, n_of), "none", state, detail)

    def calls(
        self, name: str, labels: Mapping[str, str], counts: Ints, method: str, questions: int | None = None,
        detail: Mapping[str, JSON] | None = None, n_of: str = CALLS,
    ) -> Measurement:  # fmt: skip
        """Measure a share of calls with `share_interval`, from counts by task [G, 2] (hits, misses)."""
        hits, n = int(counts[:, 0].sum()), int(counts.sum())
        if not n:
            return self.missing(name, labels, f"undefined: no {n_of}", detail, 0, n_of)
        size = n if questions is None else min(questions, n)
        low, high = wilson_ends(hits / n, size, self.level)
        about: dict[str, JSON] = {"count": hits, **(detail or {}), "wilson": {"low": low, "high": high, "n": size}}
        return self.classes(name, labels, counts, (1.0, 0.0), method, about, size / n, n_of)

    def share(
        self, name: str, labels: Mapping[str, str], table: CallTable, rows: Ints, hit: Bools, method: str,
        detail: Mapping[str, JSON] | None = None, absent: str = "", questions: int | None = None,
    ) -> Measurement:  # fmt: skip
        """Measure the share of ``rows`` that ``hit``, with the precision of ``questions`` independent calls; ``absent``
        is the reason if there are no rows. The default detail counts the calls by verdict."""
        if absent and not rows.size:
            return self.missing(name, labels, absent, detail)
        asked = table.questions(rows) if questions is None else questions
        about = verdicts_of(table.verdict[rows]) if detail is None else detail
        return self.calls(name, labels, table.by_task(rows, hit), method, asked, about)

    def classes(
        self, name: str, labels: Mapping[str, str], counts: Ints, weights: ArrayLike, method: str,
        detail: Mapping[str, JSON] | None = None, information: float = 1.0, n_of: str = PAIRS, absent: str = "",
    ) -> Measurement:  # fmt: skip
        """Measure a weighted share of pairs with `share_interval`, from class counts by task [G, K]; ``absent`` is the
        reason if there are none."""
        total, scale = counts.sum(axis=0), np.asarray(weights, dtype=np.float64)
        n = int(total.sum())
        if absent and not n:
            return self.missing(name, labels, absent, detail, 0, n_of)
        share = share_interval(counts, scale, self.level, information)
        about = {**(detail or {}), "effective_n": share.effective}
        return self.number(name, labels, float(scale @ total) / n, (n, n_of), f"{method}, {share.method}", "ok", about,
                           (share.low, share.high))  # fmt: skip


def between_kappa(
    a: Sequence[PairCall], b: Sequence[PairCall], rng: np.random.Generator, content: bool = False, *,
    level: float = 0.95, prompt: str = BASE,
) -> Measurement:  # fmt: skip
    """Measure the agreement of two judges on the same calls, beyond chance (Cohen 1960)."""
    tables = sorted((call_table(calls) for calls in (a, b)), key=lambda table: table.judge)
    judges = [table.judge for table in tables]
    if judges[0] == judges[1]:
        problem = f"both sequences are of {judges[0]!r}; needs two judges"
        raise InputError("between_kappa", [Problem("judge", problem)])
    chosen = sorted((call for calls in (a, b) for call in calls if call.prompt == prompt), key=lambda call: call.judge)
    tasks = {task: k for k, task in enumerate(sorted({call.task for call in chosen}))}
    pairs = {pair: k for k, pair in enumerate(sorted({(call.pair, call.trial) for call in chosen}))}
    counts = np.zeros((1, 4, 4), dtype=np.int64)
    if len({call.judge for call in chosen}) == 2:
        (agreement,) = agreement_arrays(
            [judges.index(call.judge) for call in chosen],
            [2 * pairs[call.pair, call.trial] + (call.order == "vu") for call in chosen],
            [CODES[call.verdict] for call in chosen], [tasks[call.task] for call in chosen], content,
        )  # fmt: skip
        counts = agreement.tables
    inputs = "+".join(table.digest for table in tables)
    labels = {"a": judges[0], "b": judges[1]}
    return kappa_measurement(counts, labels, TaskBootstrap(rng, level), inputs, content)


def kappa_measurement(
    tables: Ints, labels: dict[str, str], bootstrap: TaskBootstrap, inputs: str = "", content: bool = False
) -> Measurement:
    """Measure ``between.kappa`` from tables of outcomes by task [G, 4, 4], as made by `agreement_arrays`."""
    usable = tables[:, :_USABLE, :_USABLE]
    n, common = int(usable.sum()), int(tables.sum())
    unit, suffix = ("pair", " in both orders") if content else ("call", "")
    value, ends, interval, second = kappa_interval(usable, bootstrap)
    detail: dict[str, JSON] = {
        f"common_{unit}s": common, "invalid": common - n, "tasks": int(np.count_nonzero(usable.sum(axis=(1, 2)))),
        "outcomes": ["u", "v", *OUTCOMES[2:_USABLE]] if content else list(OUTCOMES[:_USABLE]),
        "table": usable.sum(axis=0).tolist(), "bootstrap": None if second is None else list(second),
    }  # fmt: skip
    state = f"undefined: both judges gave one answer to every common {unit}"
    if not n:
        state = f"not measured: no common {unit}{suffix} with a usable verdict of both ({common:,} common {unit}s)"
    base = "by content, orders averaged" if content else "by position, call by call"
    method = "none" if value is None else f"Cohen's kappa, unweighted, {base}, {interval}"
    name = "between.kappa_content" if content else "between.kappa"
    return number(
        Measurement, name, labels, value, (n, f"common {unit}s"), method, state, detail, ends,
        bootstrap.level, inputs=inputs,
    )  # fmt: skip


def kappa_interval(tables: Ints, bootstrap: TaskBootstrap) -> tuple[float | None, Ends | None, str, Ends | None]:
    """Compute unweighted kappa from tables by task [G, K, K], None if undefined; the ends of its delete-one-task
    jackknife, clipped to -1..1, and their method; the ends of a task-cluster bootstrap."""
    size = tables.shape[1]
    sums = tables.reshape(tables.shape[0], -1).astype(np.float64)
    sums = sums[sums.sum(axis=1) > 0]
    total, tasks = sums.sum(axis=0), sums.shape[0]
    value = float(cohen_kappas(total[:, None], size)[0])
    if math.isnan(value):
        return None, None, "undefined", None
    if tasks < 2:
        return value, None, "no interval: one task, needs two", None
    second = bootstrap.ends(sums, lambda columns: cohen_kappas(columns, size))
    without = cohen_kappas((total - sums).T, size)
    if np.isnan(without).any():
        return value, None, "no interval: kappa is undefined without one of the tasks", second
    estimate = jackknife_estimate(value, without, bootstrap.level)
    if estimate.low is None or estimate.high is None:
        return value, None, "no interval: the tasks do not differ", second
    ends = max(-1.0, estimate.low), min(1.0, estimate.high)
    return value, ends, f"delete-one-task jackknife, t({tasks - 1})", second


def cohen_kappas(columns: Floats, size: int) -> Floats:
    """Compute unweighted kappas [R] of flattened tables [K * K, R]; NaN if all answers of both are the same."""
    cells = columns.reshape(size, size, -1)
    n = cells.sum(axis=(0, 1))
    share = cells / np.where(n > 0, n, 1.0)
    observed = np.trace(share)
    chance = (share.sum(axis=0) * share.sum(axis=1)).sum(axis=0)
    flat = (1 - chance < 1e-12) | (n == 0)
    return np.where(flat, np.nan, (observed - chance) / np.where(flat, 1.0, 1 - chance))


def stability_measurement(table: CallTable, recorder: Estimator) -> Measurement:
    """Measure repeat stability: the share of pairs of trials of one question with the same outcome."""
    asked = np.unique(table.prompt, return_inverse=True)[1].astype(np.int64)
    question = (asked * (table.pair.max() + 1) + table.pair) * 2 + table.order
    _, row = np.unique(question, return_inverse=True)
    counts = np.zeros((int(row.max()) + 1, len(OUTCOMES)), dtype=np.int64)
    outcome = OUTCOME_OF[table.verdict]
    np.add.at(counts, (row, outcome), 1)
    task = np.zeros(counts.shape[0], dtype=np.int64)
    task[row] = table.task
    trials, code = np.unique(table.trial, return_inverse=True)
    size = counts.sum(axis=1)
    repeated = size > 1
    detail: dict[str, JSON] = {"trials": int(trials.size), "once_only": int((~repeated).sum())}
    if not repeated.any():
        state = "undefined: one trial, needs two"
        return recorder.missing("repeat.stability", {}, state, detail, n_of="questions")
    same = np.round((counts * (counts - 1)).sum(axis=1)[repeated] / (size * (size - 1))[repeated], 12)
    # Both ends of the scale are part of it even if every question is at one end.
    levels = np.unique([0.0, 1.0, *same.tolist()])
    place = np.searchsorted(levels, same)
    by_task = np.bincount(task[repeated] * levels.size + place, minlength=len(table.tasks) * levels.size)
    # Kappa of all pairs of trials, each counted in both directions, so that their order does not matter.
    answers = np.full((trials.size, counts.shape[0]), -1)
    answers[code, row] = outcome
    tables = np.zeros((len(table.tasks), _USABLE, _USABLE), dtype=np.int64)
    for a, b in combinations(answers, 2):
        both = (a >= 0) & (b >= 0) & (a < _USABLE) & (b < _USABLE)
        np.add.at(tables, (task[both], a[both], b[both]), 1)
    kappa, ends, method, _ = kappa_interval(tables + tables.transpose(0, 2, 1), recorder.bootstrap)
    low, high = ends or (None, None)
    detail |= {"kappa": kappa, "kappa_low": low, "kappa_high": high, "kappa_method": method}
    detail["invalid"] = int((outcome == _USABLE).sum())
    return recorder.classes("repeat.stability", {}, by_task.reshape(-1, levels.size), levels,
                            "mean over questions of the share of trial pairs with the same outcome",
                            detail, n_of="questions")  # fmt: skip


GRADED: Final = ("typo", "unit", "synonym")
"""The kinds of nearly identical pairs (graded vacuum)."""

EQUAL: Final = ("same_subset", "different_subset")
"""The conditions in which neither text is better."""

_HIDES: Final = (
    "positional pairs over pairs decided in both orders: the flip rate that other tools print; "
    "pairs with a preference in one order only are not in it"
)
_COUNTED: Final = {
    "delta0.stable": ((STABLE,), "pairs in which one text won in both orders"),
    "delta0.positional": ((POSITIONAL_1, POSITIONAL_2), "pairs in which one slot won in both orders"),
    "delta0.one_sided": ((ONE_SIDED,), "pairs with a preference in one order only"),
    "delta0.no_preference": ((NO_PREFERENCE,), "pairs without a preference in either order"),
    "delta0.other_pairs": ((OTHER_PREFERENCE, OTHER_NONE), "pairs with an unusable call"),
}
_OF_CALLS: Final = {
    "delta0.raw": (slice(0, 2), "calls that named a slot"),
    "delta0.tie_rate": (slice(2, 4), "calls without a preference (tie or abstention)"),
}
_OF_PAIRS: Final = (*_COUNTED, "delta0.other", "delta0.flip_rate", "delta0.slot_1_share")
_ONE_ORDER: Final = "not measured: every pair was shown in one order only, needs both"


def vacuum_measurements(table: CallTable, recorder: Estimator, prompt: str) -> Iterator[Measurement]:
    """Measure an arm's preference rate on null pairs, overall and by kind, and on nearly identical texts."""
    arm, rows = {"prompt": prompt}, table.where(prompt, "vacuum")
    for variant in (None, *table.variants(rows)):
        labels, chosen = arm if variant is None else {**arm, "variant": variant}, table.where(prompt, "vacuum", variant)
        yield recorder.share("dark_current", labels, table, chosen, table.verdict[chosen] < 2,
                             "vacuum calls that named a slot",
                             absent=f"not measured: vacuum was not run under {prompt}")  # fmt: skip
    graded = table.where(prompt, "graded_vacuum")
    for variant in table.variants(graded) or GRADED:
        chosen = table.where(prompt, "graded_vacuum", variant)
        # The two orders of a pair are dependent: if treated as independent, Wilson's interval would cover 70 %.
        yield recorder.share("graded_vacuum", {**arm, "variant": variant}, table, chosen, table.verdict[chosen] < 2,
                             "calls on nearly identical texts that named a slot", None,
                             f"not measured: graded vacuum was not run under {prompt}",
                             int(np.unique(table.pair[chosen]).size))  # fmt: skip


def verdicts_of(verdict: Ints) -> dict[str, JSON]:
    """Count the calls by verdict."""
    return {"verdicts": dict(zip(VERDICTS, np.bincount(verdict, minlength=len(VERDICTS)).tolist(), strict=True))}


def delta0_measurements(table: CallTable, recorder: Estimator, prompt: str) -> Iterator[Measurement]:
    """Measure an arm's decomposition, for texts that differ in wording and texts that meet different requirements."""
    for condition in EQUAL:
        rows = table.where(prompt, condition)
        trials = rows.size / max(1, table.questions(rows))
        counts = table.pairs(rows) if rows.size else None
        yield from decomposition_measurements(counts, recorder, prompt, condition, 0, trials)


def decomposition_measurements(
    counts: VerdictCounts | None, recorder: Estimator, prompt: str, condition: str, judge: int = 0,
    trials: float = 1.0,
) -> Iterator[Measurement]:  # fmt: skip
    """Measure raw preference, its parts, flip rate and slot share of one judge, from `decompose_arrays`."""
    labels = {"prompt": prompt, "condition": condition}
    if counts is None:
        for name in (*_OF_CALLS, *_OF_PAIRS):
            state = f"not measured: no {condition.replace('_', '-')} pairs were run"
            yield recorder.missing(name, labels, state, n_of=CALLS if name in _OF_CALLS else PAIRS)
        return
    # Raw preference and tie rate over all calls, including those of pairs shown in one order.
    pairs, calls, incomplete = counts.pairs[judge], counts.calls[judge], int(counts.incomplete[judge])
    every, total = calls.sum(axis=0), pairs.sum(axis=0)
    for name, (verdict, method) in _OF_CALLS.items():
        hits = calls[:, verdict].sum(axis=1)
        detail: dict[str, JSON] = {"verdicts": dict(zip(VERDICTS, every.tolist(), strict=True))}
        if name == "delta0.raw" and pairs.sum():
            detail["of_pairs"] = decomposition_of(total).raw_false_preference
        split = np.stack([hits, calls.sum(axis=1) - hits], axis=1)
        questions = round(int(every.sum()) / trials)
        yield recorder.calls(name, labels, split, method, questions, detail)
    if not pairs.sum():
        for name in _OF_PAIRS:
            yield recorder.missing(name, labels, _ONE_ORDER, n_of=PAIRS, detail={"one_order_pairs": incomplete})
        return
    # The shares of pairs, which sum to one, and the residual of eq. 6.
    classes = np.arange(len(CLASSES))
    parts = [
        (name, np.isin(classes, kinds).astype(np.float64), method, kinds) for name, (kinds, method) in _COUNTED.items()
    ]
    residual = np.where(classes == OTHER_PREFERENCE, PREFERENCES, 0.0)
    other = "what pairs with an unusable call add to raw false preference (eq. 6)"
    for name, weights, method, kinds in (*parts, ("delta0.other", residual, other, (OTHER_PREFERENCE,))):
        detail = {"pairs": int(total[list(kinds)].sum()), "one_order_pairs": incomplete}
        detail["classes"] = dict(zip(CLASSES, total.tolist(), strict=True))
        yield recorder.classes(name, labels, pairs, weights, method, detail, information=1 / trials)
    # The flip rate as other tools report it, and the slots chosen by positional pairs.
    positional = pairs[:, POSITIONAL_1] + pairs[:, POSITIONAL_2]
    detail = {"pairs": int(positional.sum()), "one_sided_pairs": int(total[ONE_SIDED]), "hides": _HIDES}
    decided = np.stack([positional, pairs[:, STABLE]], axis=1)
    yield recorder.classes(
        "delta0.flip_rate", labels, decided, (1.0, 0.0), "positional over stable and positional pairs", detail,
        1 / trials, absent="undefined: no pair was decided in both orders",
    )  # fmt: skip
    slots = pairs[:, [POSITIONAL_1, POSITIONAL_2]]
    yield recorder.calls("delta0.slot_1_share", labels, slots, "positional pairs that chose slot 1",
                         max(1, round(int(slots.sum()) / trials)), n_of="positional pairs")  # fmt: skip


_TRUE: Final = {
    "truth.both": "pairs in which the better content was named in both orders",
    "truth.one": "pairs in which it was named in one order only",
    "truth.none": "pairs in which it was named in neither order",
}
TIED: Final = 2
"""The code in ``CallTable.better`` of a pair whose ground truth is a tie."""


def truth_measurements(table: CallTable, recorder: Estimator, prompt: str) -> Iterator[Measurement]:
    """Measure the accuracy of verdicts on natural pairs against ground truth; an unusable reply counts as wrong.

    ``truth.accuracy`` is over calls, the others over pairs shown in both orders. No preference is right for true ties.
    """
    rows = table.where(prompt, condition="different_subset")
    rows = rows[table.better[rows] >= 0]
    if not rows.size:
        return
    labels, better, verdict = {"prompt": prompt}, table.better[rows], table.verdict[rows]
    tied = better == TIED
    right = np.where(tied, OUTCOME_OF[verdict] == 2, verdict == better)
    yield recorder.share("truth.accuracy", labels, table, rows, right, "calls that named the better content",
                         {"tied_truths": int(tied.sum()), **verdicts_of(verdict)})  # fmt: skip
    trial = table.pair[rows] * (table.trial.max(initial=0) + 1) + table.trial[rows]
    _, unit = np.unique(trial, return_inverse=True)
    shown, hits = np.bincount(unit), np.bincount(unit, weights=right).astype(np.int64)
    task = np.zeros(shown.size, dtype=np.int64)
    task[unit] = table.task[rows]
    both = shown == 2
    trials = rows.size / max(1, table.questions(rows))
    by_task = np.bincount(task[both] * 3 + hits[both], minlength=3 * len(table.tasks)).reshape(-1, 3)
    for place, (name, method) in zip((2, 1, 0), _TRUE.items(), strict=True):
        detail = {"pairs": int(by_task[:, place].sum()), "one_order_pairs": int((~both).sum())}
        yield recorder.classes(name, labels, by_task, np.eye(3)[place], method, detail, 1 / trials, absent=_ONE_ORDER)


def reply_measurements(
    table: CallTable, recorder: Estimator, prompt: str, reasons: Mapping[str, int]
) -> Iterator[Measurement]:
    """Measure the preference rate for the text with filler, which is v, and the share of unusable replies."""
    labels, rows, every = {"prompt": prompt}, table.where(prompt, "filler"), table.where(prompt)
    filler_slot, verdict = 1 - table.order[rows], table.verdict[rows]
    detail = {"against": int((verdict == 1 - filler_slot).sum()), **verdicts_of(verdict)} if rows.size else None
    yield recorder.share("filler.preference", labels, table, rows, verdict == filler_slot,
                         "calls that preferred the text with filler, over all filler calls", detail,
                         f"not measured: filler was not run under {prompt}")  # fmt: skip
    yield recorder.share("pair.invalid_share", labels, table, every, table.verdict[every] == CODES["invalid"],
                         "calls without a usable verdict, over all calls", {"reasons": dict(reasons)})  # fmt: skip


def reasons_of(calls: Iterable[PairCall]) -> dict[str, dict[str, int]]:
    """Count the reasons for unusable replies, by prompt."""
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for call in calls:
        if call.verdict == "invalid":
            reasons[call.prompt][call.reason or "no reason given"] += 1
    return {prompt: dict(sorted(counts.items())) for prompt, counts in reasons.items()}
