"""Sensitivity of a judge to real differences: accuracy by step, detection threshold, d' and criterion shift.

Judge Datasheet section 3.3, eqs. 8 to 12.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import cluster_t
from assaymark.metrology.datasheet import estimates
from assaymark.metrology.datasheet.calls import BASE, CODES, STRICT, CallTable
from assaymark.protocol import SCALE, Scale
from assaymark.quantiles import normal_quantile
from assaymark.records import JSON, Measurement

# Detection of small differences: isotonic curve, detection threshold, d' (Judge Datasheet section 3.3).


Censored = Literal["left", "right"] | None

_TOUCH = 1e-12  # a share within this of the target counts as reaching it


@dataclass(frozen=True, slots=True)
class Threshold:
    """The difference at which a judge first reaches the target.

    ``censored`` is ``left`` if the smallest measured step already reaches it (at most ``value``), ``right`` if no step
    does (more than ``value``).

    >>> str(Threshold(1.0, "left")), str(Threshold(5.0, "right")), str(Threshold(0.8333, None))
    ('<= 1', '> 5', '0.833')
    """

    value: float
    censored: Censored

    def __str__(self) -> str:
        return f"{ {'left': '<= ', 'right': '> ', None: ''}[self.censored] }{self.value:.3g}"


def detection_threshold(
    deltas: Sequence[float], p_correct: ArrayLike, n: ArrayLike, *, target: float = 0.75
) -> Threshold:
    """Estimate the smallest quality difference that the judge detects in a share ``target`` of its calls.

    The shares are first made non-decreasing (pool adjacent violators, weighted by ``n``), then joined by straight
    lines between the measured steps; the threshold is where that curve first reaches the target (Judge Datasheet
    eq. 10). Smaller means more sensitive. A censored value is a bound and must not be compared as a number.

    Parameters
    ----------
    deltas : K different positive numbers
        Measured steps, in any order, in requirements.
    p_correct : float array of shape (K,)
        Share of all calls at each step that chose the better text; ties count as misses.
    n : array of shape (K,)
        Calls at each step.
    target : float
        Share to reach.

    Returns
    -------
    Threshold
        Value in requirements, within the measured steps.

    Raises
    ------
    InputError
        Empty, lengths that differ, equal or non-positive steps, shares outside 0..1, or a step without calls.

    Examples
    --------
    >>> detection_threshold([1, 2, 3, 4], [0.5, 0.7, 0.6, 0.9], [100, 80, 60, 40])
    Threshold(value=3.3823529411764706, censored=None)
    >>> detection_threshold([0.5, 1, 2], [0.8, 0.9, 1.0], [50, 100, 80])
    Threshold(value=0.5, censored='left')
    """
    # Checked steps in ascending order with their shares and calls.
    source = "detection_threshold"
    steps = checks.finite(source, "deltas", deltas)
    shares, calls = checks.finite(source, "p_correct", p_correct), checks.finite(source, "n", n)
    if not steps.size == shares.size == calls.size:
        checks.fail(
            source, "deltas, p_correct, n", f"must be equally long (got {steps.size}, {shares.size}, {calls.size})"
        )
    if (steps <= 0).any() or np.unique(steps).size < steps.size:
        checks.fail(source, "deltas", f"must be different positive numbers (got {steps.tolist()})")
    if (shares < 0).any() or (shares > 1).any():
        checks.fail(source, "p_correct", f"shares lie in 0..1 (got {shares.tolist()})")
    if (calls <= 0).any():
        checks.fail(source, "n", f"every step needs a call; leave out steps without (got {calls.tolist()})")
    order = np.argsort(steps)
    steps, shares, calls = steps[order], shares[order], calls[order]
    checks.probability("detection_threshold", "target", target, inclusive=True)
    values, codes = thresholds(isotonic(shares * calls, calls), steps, target)
    return Threshold(float(values), _CENSORED[int(codes)])


def isotonic(successes: Floats, calls: Floats) -> Floats:
    """Fit non-decreasing shares closest to the observed ones, for many curves [..., K] at once."""
    none = np.zeros((*successes.shape[:-1], 1))
    hits = np.concatenate([none, np.cumsum(successes, axis=-1)], axis=-1)
    size = np.concatenate([none, np.cumsum(calls, axis=-1)], axis=-1)
    fit = np.full(successes.shape, -np.inf)
    steps = successes.shape[-1]
    for start in range(steps):
        smallest = np.full(successes.shape[:-1], np.inf)
        for end in range(steps, start, -1):
            count = size[..., end] - size[..., start]
            mean = (hits[..., end] - hits[..., start]) / np.where(count > 0, count, 1.0)
            smallest = np.where(count > 0, np.minimum(smallest, mean), smallest)
            # A start without later calls carries no information.
            bound = np.where(np.isinf(smallest), -np.inf, smallest)
            fit[..., end - 1] = np.maximum(fit[..., end - 1], bound)
    return fit


def thresholds(fit: Floats, steps: Floats, target: float = 0.75) -> tuple[Floats, Ints]:
    """Compute where non-decreasing curves [..., K] over ``steps`` [K] reach the target; -1 and 1 mark censoring."""
    reached = fit >= target - _TOUCH
    ever = reached.any(axis=-1)
    at = reached.argmax(axis=-1)
    before = np.maximum(at - 1, 0)
    upper, lower = (np.take_along_axis(fit, k[..., None], axis=-1)[..., 0] for k in (at, before))
    rise = upper - lower
    part = np.clip((target - lower) / np.where(rise > 0, rise, 1.0), 0.0, 1.0)
    inside = steps[before] + part * (steps[at] - steps[before])
    values = np.where(ever, np.where(at == 0, steps[0], inside), steps[-1])
    return np.asarray(values), np.where(ever, np.where(at == 0, -1, 0), 1)


_CENSORED: Final[dict[int, Censored]] = {-1: "left", 0: None, 1: "right"}


def d_prime(hits: int, signals: int, false_alarms: int, noises: int) -> float:
    """Compute the sensitivity index d' with log-linear correction, from calls split by the slot of the better text.

    A signal is a call with the better text in slot 1, a noise one with it in slot 2; a hit and a false alarm are the
    calls of each kind that named slot 1. 0 is no discrimination. Half a call is added to each count and one to each
    total, so that perfect shares stay finite: at ceiling the correction determines d', which then increases with the
    number of calls; 10 + 10 calls give 3.3812.

    Parameters
    ----------
    hits, signals : int
        Calls that named slot 1, out of those with the better text there.
    false_alarms, noises : int
        Calls that named slot 1, out of those with the better text in slot 2.

    Returns
    -------
    float
        In standard deviations; negative if the worse text wins.

    Raises
    ------
    NotMeasurableError
        One of the two kinds of calls is missing.
    InputError
        Not whole numbers with 0 <= hits <= signals and 0 <= false alarms <= noises.

    References
    ----------
    Hautus, M. J. (1995). Corrections for extreme proportions and their biasing effects on estimated values of d'.
    Behavior Research Methods 27(1), 46-51.

    Examples
    --------
    >>> round(d_prime(10, 10, 0, 10), 4)
    3.3812
    """
    yes = checks.integer("d_prime", "hits", hits, least=0)
    of = checks.integer("d_prime", "signals", signals, least=0)
    wrong = checks.integer("d_prime", "false_alarms", false_alarms, least=0)
    total = checks.integer("d_prime", "noises", noises, least=0)
    if yes > of or wrong > total:
        checks.fail("d_prime", "hits, false_alarms", f"must not exceed their totals (got {yes}/{of}, {wrong}/{total})")
    if not of or not total:
        raise NotMeasurableError("d' needs calls with the better text in slot 1 and in slot 2")
    return float(d_primes(np.array([yes, of, wrong, total], dtype=np.float64)))


def d_primes(counts: Floats) -> Floats:
    """Compute `d_prime` of counts [4, ...] in the order hits, signals, false alarms, noises."""
    (hits, signals, false_alarms, noises), z = counts, scipy.special.ndtri
    return np.asarray(z((hits + 0.5) / (signals + 1)) - z((false_alarms + 0.5) / (noises + 1)))


TARGET: Final = 0.75
"""The share of calls that must choose the better text at the detection threshold."""

_STEP_NAMES: Final = ("sensitivity", "tie_rate", "wrong_rate", "conditional_accuracy", "miss_by_tie", "d_prime")
_LEAST_STEPS: Final = 3  # two steps five requirements apart do not determine a curve


def ladder_measurements(table: CallTable, recorder: estimates.Estimator, prompt: str) -> Iterator[Measurement]:
    """Measure an arm's performance on the quality ladder: rates and d' at each step, and the detection threshold."""
    steps, labels, rows = table.steps(prompt), {"prompt": prompt}, table.where(prompt, "ladder")
    for step in steps:
        yield from _step(table, recorder, prompt, step)
    few = f"not measured: the ladder under {prompt} has the steps {', '.join(f'{step:g}' for step in steps)} only"
    state = None
    if not steps:
        state = f"not measured: the quality ladder was not run under {prompt}"
        for name in _STEP_NAMES:
            yield recorder.missing(name, {**labels, "delta": "1"}, state)
    elif len(steps) < _LEAST_STEPS:
        state = f"{few}, needs {_LEAST_STEPS}"
    elif prompt != BASE and set(table.steps(BASE)) - set(steps):
        state = f"{few}, fewer than the base arm"
    if state:
        yield recorder.missing("threshold", labels, state, n=int(rows.size))
        return
    # The 75 % detection threshold with its censoring, and its distribution over resamples of tasks.
    hits, calls = np.zeros((2, len(table.tasks), len(steps)))
    place = np.searchsorted(steps, table.delta[rows])
    np.add.at(calls, (table.task[rows], place), 1.0)
    np.add.at(hits, (table.task[rows], place), table.verdict[rows] == table.better[rows])
    present = calls.sum(axis=1) > 0
    sums, grid, width = np.concatenate([hits, calls], axis=1)[present], np.array(steps), len(steps)
    fit = isotonic(hits.sum(axis=0), calls.sum(axis=0))
    value, code = thresholds(fit, grid, TARGET)
    threshold = Threshold(float(value), _CENSORED[int(code)])

    def both(totals: Floats) -> tuple[Floats, Ints]:
        return thresholds(isotonic(totals[:width].T, totals[width:].T), grid, TARGET)

    # Ends over tasks, which are bounds if resamples beyond them were censored, and the share censored on each side.
    share: dict[str, float] | None = None
    words: list[str | None] = [None, None]
    few_tasks = present.sum() < estimates.LEAST_TASKS
    method = f"no interval: {'too few tasks' if few_tasks else 'every resample gave the same threshold'}"
    ends = recorder.bootstrap.ends(sums, lambda totals: both(totals)[0])
    if ends is not None:
        codes, mass = recorder.bootstrap.values(sums, lambda totals: both(totals)[1].astype(np.float64))
        share = {side: float(np.average(codes == code, weights=mass)) for side, code in (("left", -1), ("right", 1))}
        low: Censored = "left" if ends[0] <= grid[0] and share["left"] > 0 else None
        high: Censored = "right" if ends[1] >= grid[-1] and share["right"] > 0 else None
        words = [str(Threshold(ends[0], low)), str(Threshold(ends[1], high))]
        method = recorder.bootstrap.words(sums.shape[0])
    detail: dict[str, JSON] = {
        "censored": threshold.censored, "text": str(threshold), "low_text": words[0], "high_text": words[1],
        "knots": [[delta, p] for delta, p in zip(steps, fit.tolist(), strict=True)], "resamples_censored": share,
    }  # fmt: skip
    yield recorder.number(
        "threshold", labels, threshold.value, (rows.size, estimates.CALLS),
        f"isotonic fit, linear between steps, first reach of {TARGET:g}; {method}", "ok", detail, ends,
        unit="requirements",
    )  # fmt: skip


def criterion_measurements(table: CallTable, recorder: estimates.Estimator) -> Iterator[Measurement]:
    """Measure the shift of the tie rate under the strict prompt, on questions common to both arms (eq. 11)."""
    if STRICT not in table.arms or BASE not in table.arms:
        gone = "strict" if STRICT not in table.arms else "base"
        yield recorder.missing("criterion.shift", {"condition": "same_subset"}, f"not measured: {gone} arm was not run")
        return
    every: list[tuple[str, float | None]] = [("ladder", delta) for delta in table.steps(STRICT)]
    if table.where(STRICT, "different_subset").size:
        every.insert(0, ("different_subset", None))
    for condition, delta in [("same_subset", None), *every]:
        # Tie rate under the strict prompt minus tie rate under the base prompt, on common questions.
        labels = {"condition": condition, **({} if delta is None else {"delta": f"{delta:g}"})}
        arms = [table.where(prompt, condition, None, delta) for prompt in (BASE, STRICT)]
        keys = [(table.pair[rows] * 2 + table.order[rows]) * (table.trial.max() + 1) + table.trial[rows]
                for rows in arms]  # fmt: skip
        common, base, strict = np.intersect1d(*keys, return_indices=True)
        detail: dict[str, JSON] = {"only_one_arm": int(keys[0].size + keys[1].size - 2 * common.size)}
        if not common.size:
            state = f"not measured: the strict arm shares no {condition.replace('_', '-')} question with the base arm"
            yield recorder.missing("criterion.shift", labels, state, detail)
            continue
        base, strict = arms[0][base], arms[1][strict]
        silent = [(table.verdict[rows] == 2) | (table.verdict[rows] == 3) for rows in (base, strict)]
        change = silent[1].astype(np.int64) - silent[0]
        counts = np.bincount(table.task[base] * 3 + change + 1, minlength=3 * len(table.tasks)).reshape(-1, 3)
        detail |= {BASE: float(silent[0].mean()), STRICT: float(silent[1].mean())}
        detail |= {"to_tie": int((change > 0).sum()), "from_tie": int((change < 0).sum())}
        method = "tie rate under the strict prompt minus tie rate under the base prompt, paired by question"
        yield recorder.classes("criterion.shift", labels, counts, (-1.0, 0.0, 1.0), method, detail,
                               table.questions(base) / common.size, "common calls")  # fmt: skip


def _step(table: CallTable, recorder: estimates.Estimator, prompt: str, delta: float) -> Iterator[Measurement]:
    """Measure the rates at one step; right, tied, wrong and unusable calls sum to all calls."""
    labels, rows = {"prompt": prompt, "delta": f"{delta:g}"}, table.where(prompt, "ladder", None, delta)
    verdict, questions = table.verdict[rows], table.questions(rows)
    right, decided, usable = verdict == table.better[rows], verdict < 2, verdict != CODES["invalid"]
    tied, detail = (verdict >= 2) & usable, estimates.verdicts_of(verdict)
    for name, hit, description in (
        ("sensitivity", right, "calls that chose the better text; ties count as misses"),
        ("tie_rate", tied, "calls without a preference (tie or abstention)"),
        ("wrong_rate", decided & ~right, "calls that chose the worse text"),
    ):
        yield recorder.share(name, labels, table, rows, hit, description)
    yield recorder.share("conditional_accuracy", labels, table, rows[decided], right[decided],
                         "calls that chose the better text, of those with a preference", detail,
                         "undefined: no call had a preference")  # fmt: skip
    missed = int((~right).sum())
    misses: dict[str, JSON] = {"misses": missed, "of_misses": int(tied.sum()) / missed if missed else None}
    description = "calls that gave a tie or abstained although one text is better (eq. 12)"
    yield recorder.share("miss_by_tie", labels, table, rows, tied, description, misses)
    # d' of usable calls split by the slot of the better text; ties do not name slot 1.
    signal, named = table.better[rows] == 0, verdict == 0
    columns = np.stack([named & signal, usable & signal, named & ~signal, usable & ~signal], axis=1)
    sums = np.zeros((len(table.tasks), 4))
    np.add.at(sums, table.task[rows], columns)
    sums = sums[sums.sum(axis=1) > 0]
    counts = sums.sum(axis=0)
    about = dict(zip(("hits", "signals", "false_alarms", "noises"), counts.astype(int).tolist(), strict=True))
    about["invalid"] = int((~usable).sum())
    if not counts[1] or not counts[3]:
        state = f"undefined: no usable call had the better text in slot {1 if not counts[1] else 2}"
        yield recorder.missing("d_prime", labels, state, about)
        return
    ends, method = _d_prime_ends(sums, recorder, questions / rows.size)
    yield recorder.number(
        "d_prime", labels, float(d_primes(counts)), (usable.sum(), estimates.CALLS),
        f"z(hits) - z(false alarms), log-linear, {method}", "ok", about, ends, unit="standard deviations",
    )  # fmt: skip


def _d_prime_ends(
    sums: Floats, recorder: estimates.Estimator, information: float
) -> tuple[tuple[float, float] | None, str]:
    """Compute ends of d' by a task-cluster bootstrap or, near 0 or 1, by the delta method; none at ceiling."""
    counts = sums.sum(axis=0)
    yes, no = counts[[0, 2]], counts[[1, 3]] - counts[[0, 2]]
    if not np.minimum(yes, no).any():
        return None, "no interval at ceiling: the correction sets the value"
    tasks = sums.shape[0]
    ends = recorder.bootstrap.ends(sums, d_primes)
    if (
        ends is not None
        and tasks >= estimates.ENOUGH_TASKS
        and min(yes.min(), no.min()) * information >= estimates.LEAST_PAIRS
    ):
        return ends, recorder.bootstrap.words(tasks)
    kinds = [np.stack([sums[:, k], sums[:, k + 1] - sums[:, k]], axis=1) for k in (0, 2)]
    spread = max(estimates.dispersion(kind * information) for kind in kinds)
    # Standard error of d' for independent calls (Gourevitch and Galanter 1967, Psychometrika 32).
    variance = 0.0
    for hits, calls in (counts[:2], counts[2:]):
        share = (hits + 0.5) / (calls + 1)
        density = np.exp(-0.5 * scipy.special.ndtri(share) ** 2) / np.sqrt(2 * np.pi)
        variance += share * (1 - share) / (calls * density**2)
    error = float(np.sqrt(variance))
    half = normal_quantile(0.5 + recorder.level / 2) * error * np.sqrt(spread / information)
    value = float(d_primes(counts))
    return (float(value - half), float(value + half)), f"delta method, dispersion {spread:.2f} over {tasks} tasks"


_NONE = 1e-12
_CALLER: Final = "pointwise_measurements"


@dataclass(frozen=True, slots=True)
class _ScoredTexts:
    """Scored texts: their scores, task names, task indices and levels, each [n]."""

    scores: Floats
    names: tuple[str, ...]
    codes: Ints
    levels: Floats

    @classmethod
    def of(cls, kind: str, scores: ArrayLike, tasks: Sequence[str], levels: ArrayLike) -> _ScoredTexts | None:
        """Check the arrays of one kind of texts; None if there are no texts."""
        if not checks.array(_CALLER, f"{kind}scores", scores).size:
            return None
        values = checks.finite(_CALLER, f"{kind}scores", scores)
        steps = checks.finite(_CALLER, f"{kind}levels", levels)
        if steps.size != values.size:
            label = f"{kind}scores, {kind}levels"
            checks.fail(_CALLER, label, f"must be equally long (got {values.size} and {steps.size})")
        names, codes = checks.labels(_CALLER, f"{kind}tasks", tasks, values.size)
        return cls(values, names, codes, steps)

    def by_text(self, values: Floats) -> dict[tuple[str, float], float]:
        """Average ``values`` over the repeats of each text, by task and level."""
        by_key: defaultdict[tuple[str, float], list[float]] = defaultdict(list)
        for code, level, value in zip(self.codes.tolist(), self.levels.tolist(), values.tolist(), strict=True):
            by_key[self.names[code], level].append(value)
        return {key: sum(repeats) / len(repeats) for key, repeats in by_key.items()}


def pointwise_measurements(
    scores: ArrayLike, tasks: Sequence[str], levels: ArrayLike, judge: str, *, dimension: str,
    vacuum_scores: ArrayLike = (), vacuum_tasks: Sequence[str] = (), filler_scores: ArrayLike = (),
    filler_tasks: Sequence[str] = (), filler_levels: ArrayLike = (), filler_tokens: ArrayLike = (), level: float = 0.95,
    rng: np.random.Generator, scale: Scale = SCALE,
) -> tuple[Measurement, ...]:  # fmt: skip
    """Measure a rubric judge's scores of empty texts, per requirement met, and for length alone."""
    bootstrap = estimates.TaskBootstrap(rng, checks.probability(_CALLER, "level", level))
    recorder = estimates.Estimator({"judge": judge, "dimension": dimension}, bootstrap)
    nothing = checks.array(_CALLER, "vacuum_scores", vacuum_scores)

    def mean(
        name: str, values: Floats, clusters: Sequence[Any], n_of: str, text: str, unit: str, detail: dict[str, JSON]
    ) -> Measurement:
        """Measure a mean over tasks or rationales with its cluster t."""
        contrast = cluster_t(values, clusters, recorder.level)
        method = contrast.method if contrast.low is not None else f"no interval: {contrast.method}"
        if n_of == "rationales":
            detail = {"tasks": contrast.clusters, **detail}
        return recorder.number(name, {}, float(np.mean(values)), (values.size, n_of), f"{text}, {method}", "ok", detail,
                               (contrast.low, contrast.high), unit)  # fmt: skip

    vacuum = recorder.missing("point.vacuum_score", {}, "not measured: no rationales without content were scored", None,
                              0, "rationales")  # fmt: skip
    if nothing.size:
        values = checks.finite(_CALLER, "vacuum_scores", nothing)
        vacuum = mean("point.vacuum_score", values, vacuum_tasks, "rationales",
                      "mean score of rationales without content", "score points",
                      {"lowest": float(values.min()), "highest": float(values.max())})  # fmt: skip
    ladder = _ScoredTexts.of("", scores, tasks, levels)
    filled = _ScoredTexts.of("filler_", filler_scores, filler_tasks, filler_levels)
    verbosity = recorder.missing("point.verbosity", {}, "not measured: no texts with filler were scored", None, 0,
                                 "tasks")  # fmt: skip
    if filled is not None:
        rates, names, detail = _filler_gain(ladder, filled, filler_tokens, scale)
        none = "undefined: no text with filler has a score without it, needs one"
        verbosity = recorder.missing("point.verbosity", {}, none, detail, 0, "tasks")
        if names:
            verbosity = mean("point.verbosity", rates, names, "tasks",
                             "mean over tasks of score with filler minus without per 100 tokens added",
                             "score points per 100 tokens", detail)  # fmt: skip
    if ladder is None:
        state = "not measured: no ladder rationales were scored"
        slope, order = (recorder.missing(f"point.{name}", {}, state, None, 0, "tasks") for name in ("slope", "order"))
        return vacuum, slope, order, verbosity
    # Each task's slope of score on requirements met, and its adjacent levels ranked right, tied and wrong.
    one_level = "undefined: every task was scored at one level, needs two"
    slopes: list[float] = []
    counts = np.zeros((int(ladder.codes.max()) + 1, 3), dtype=np.int64)
    for task in range(len(counts)):
        rows = ladder.codes == task
        away = ladder.levels[rows] - ladder.levels[rows].mean()
        spread = float(away @ away)
        if spread > _NONE:
            slopes.append(float(away @ ladder.scores[rows]) / spread)
        _, place = np.unique(ladder.levels[rows], return_inverse=True)
        rise = np.diff(np.bincount(place, weights=ladder.scores[rows]) / np.bincount(place))
        counts[task] = [(rise < -_NONE).sum(), (np.abs(rise) <= _NONE).sum(), (rise > _NONE).sum()]
    left_out: dict[str, JSON] = {"tasks_of_one_level": len(counts) - len(slopes)}
    slope = recorder.missing("point.slope", {}, one_level, left_out, 0, "tasks")
    order = recorder.missing("point.order", {}, one_level, None, 0, "ladder steps")
    if slopes:
        slope = mean("point.slope", np.array(slopes), list(range(len(slopes))), "tasks",
                     "mean over tasks of the least-squares slope", "score points per requirement",
                     {**left_out, "rationales": ladder.scores.size, "slopes": list(slopes)})  # fmt: skip
    if counts.sum():
        wrong, tied, right = counts.sum(axis=0).tolist()
        order = recorder.classes("point.order", {}, counts, (0.0, 0.5, 1.0),
                                 "neighbouring ladder steps scored in the right order, ties half", n_of="ladder steps",
                                 detail={"right": right, "tied": tied, "wrong": wrong})  # fmt: skip
    return vacuum, slope, order, verbosity


def _filler_gain(
    ladder: _ScoredTexts | None, filled: _ScoredTexts, tokens: ArrayLike, scale: Scale
) -> tuple[Floats, list[str], dict[str, JSON]]:
    """Compute the score gain per 100 added words by task; also return the tasks and the measurement's detail."""
    base = {} if ladder is None else ladder.by_text(ladder.scores)
    added = checks.finite(_CALLER, "filler_tokens", tokens)
    if added.size != filled.scores.size:
        problem = f"must be equally long (got {filled.scores.size} and {added.size})"
        checks.fail(_CALLER, "filler_scores, filler_tokens", problem)
    if (added <= 0).any():
        problem = f"a filled text is longer than its base (least got {float(added.min()):g} tokens)"
        checks.fail(_CALLER, "filler_tokens", problem)
    longer, more = filled.by_text(filled.scores), filled.by_text(added)
    pairs = [key for key in longer if key in base]
    detail: dict[str, JSON] = {"without_base": len(longer) - len(pairs)}
    names = sorted({task for task, _ in pairs})
    gained = np.array([sum(longer[key] - base[key] for key in pairs if key[0] == name) for name in names])
    spent = np.array([sum(more[key] for key in pairs if key[0] == name) for name in names])
    rates = 100 * gained / spent
    if pairs:
        detail |= {
            "pairs": len(pairs), "difference": float(np.mean([longer[key] - base[key] for key in pairs])),
            "tokens_added": float(np.mean([more[key] for key in pairs])),
            "at_ends": sum(longer[key] == base[key] and base[key] in scale for key in pairs), "rates": rates.tolist(),
        }  # fmt: skip
    return rates, names, detail
