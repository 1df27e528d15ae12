"""The datasheet of a judge that scores one text at a time: no slots, so dark current becomes a score for nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import cluster_t
from assaymark.metrology.datasheet.estimates import Recorder, TaskBootstrap
from assaymark.records import JSON, Measurement

_NONE = 1e-12
_ENDS: Final = (1.0, 5.0)
_CALLER: Final = "pointwise_measurements"


def pointwise_measurements(
    scores: ArrayLike,
    tasks: Sequence[str],
    levels: ArrayLike,
    *,
    judge: str,
    dimension: str,
    vacuum_scores: ArrayLike = (),
    vacuum_tasks: Sequence[str] = (),
    filler_scores: ArrayLike = (),
    filler_tasks: Sequence[str] = (),
    filler_levels: ArrayLike = (),
    filler_tokens: ArrayLike = (),
    level: float = 0.95,
    rng: np.random.Generator,
) -> tuple[Measurement, ...]:
    """What a rubric judge gives to nothing, for each requirement met, and for length alone."""
    recorder = Recorder(judge, TaskBootstrap(rng, checks.probability(_CALLER, "level", level)))
    labels = {"dimension": dimension}
    nothing = checks.array(_CALLER, "vacuum_scores", vacuum_scores)
    vacuum = _vacuum(recorder, labels, nothing, vacuum_tasks)
    ladder = _Texts.of("", scores, tasks, levels)
    filled = _Texts.of("filler_", filler_scores, filler_tasks, filler_levels)
    verbosity = _verbosity(recorder, labels, ladder, filled, filler_tokens)
    if ladder is None:
        state = "not measured: no ladder rationales were scored"
        missing = (recorder.missing(name, labels, state, n_of="tasks") for name in ("point.slope", "point.order"))
        return vacuum, *missing, verbosity
    seen = (ladder.scores, ladder.codes, ladder.levels)
    return vacuum, _slope(recorder, labels, *seen), _order(recorder, labels, *seen), verbosity


@dataclass(frozen=True, slots=True)
class _Texts:
    """Scored texts: their scores, the names of their tasks, the places of those names, and their levels, each [n]."""

    scores: Floats
    names: tuple[str, ...]
    codes: Ints
    levels: Floats

    @classmethod
    def of(cls, kind: str, scores: ArrayLike, tasks: Sequence[str], levels: ArrayLike) -> _Texts | None:
        """The texts of one kind as arrays that fit together; None where there are none."""
        if not checks.array(_CALLER, f"{kind}scores", scores).size:
            return None
        values = checks.finite(_CALLER, f"{kind}scores", scores)
        steps = checks.finite(_CALLER, f"{kind}levels", levels)
        if steps.size != values.size:
            where = f"{kind}scores, {kind}levels"
            checks.fail(_CALLER, where, f"must be equally long (got {values.size} and {steps.size})")
        names, codes = checks.labels(_CALLER, f"{kind}tasks", tasks, values.size)
        return cls(values, names, codes, steps)

    def by_text(self, values: Floats) -> dict[tuple[str, float], float]:
        """The mean of ``values`` over the repeats of each text, by task and level."""
        found: defaultdict[tuple[str, float], list[float]] = defaultdict(list)
        for code, level, value in zip(self.codes.tolist(), self.levels.tolist(), values.tolist(), strict=True):
            found[self.names[code], level].append(value)
        return {key: sum(repeats) / len(repeats) for key, repeats in found.items()}


def _vacuum(recorder: Recorder, labels: dict[str, str], scores: Floats, tasks: Sequence[str]) -> Measurement:
    """Mean score of rationales without content."""
    if not scores.size:
        state = "not measured: no rationales without content were scored"
        return recorder.missing("point.vacuum_score", labels, state, n_of="rationales")
    values = checks.finite(_CALLER, "vacuum_scores", scores)
    found = cluster_t(values, tasks, level=recorder.level)
    return recorder.number(
        "point.vacuum_score",
        labels,
        float(values.mean()),
        n=values.size,
        n_of="rationales",
        method=f"mean score of rationales without content, {_method(found.low, found.method)}",
        ends=None if found.low is None or found.high is None else (found.low, found.high),
        unit="score points",
        detail={"tasks": found.clusters, "lowest": float(values.min()), "highest": float(values.max())},
    )


def _slope(recorder: Recorder, labels: dict[str, str], scores: Floats, tasks: Ints, levels: Floats) -> Measurement:
    """Mean over tasks of the slope of score on requirements met; tasks of one level have none."""
    slopes = []
    for task in range(int(tasks.max()) + 1):
        rows = tasks == task
        away = levels[rows] - levels[rows].mean()
        spread = float(away @ away)
        if spread > _NONE:
            slopes.append(float(away @ scores[rows]) / spread)
    left_out = int(tasks.max()) + 1 - len(slopes)
    if not slopes:
        state = "undefined: every task was scored at one level, needs two"
        return recorder.missing("point.slope", labels, state, n_of="tasks", detail={"tasks_of_one_level": left_out})
    found = cluster_t(slopes, list(range(len(slopes))), level=recorder.level)
    return recorder.number(
        "point.slope",
        labels,
        float(np.mean(slopes)),
        n=len(slopes),
        n_of="tasks",
        method=f"mean over tasks of the least-squares slope, {_method(found.low, found.method)}",
        ends=None if found.low is None or found.high is None else (found.low, found.high),
        unit="score points per requirement",
        detail={"tasks_of_one_level": left_out, "rationales": scores.size, "slopes": slopes},
    )


def _order(recorder: Recorder, labels: dict[str, str], scores: Floats, tasks: Ints, levels: Floats) -> Measurement:
    """Share of neighbouring steps in the right order; counts by task of wrong, tied and right steps."""
    counts = np.zeros((int(tasks.max()) + 1, 3), dtype=np.int64)
    for task in range(counts.shape[0]):
        rows = tasks == task
        steps, place = np.unique(levels[rows], return_inverse=True)
        means = np.bincount(place, weights=scores[rows]) / np.bincount(place)
        rise = np.diff(means[: steps.size])
        counts[task] = [(rise < -_NONE).sum(), (np.abs(rise) <= _NONE).sum(), (rise > _NONE).sum()]
    if not counts.sum():
        state = "undefined: every task was scored at one level, needs two"
        return recorder.missing("point.order", labels, state, n_of="ladder steps")
    wrong, tied, right = counts.sum(axis=0).tolist()
    return recorder.classes(
        "point.order",
        labels,
        counts,
        np.array([0.0, 0.5, 1.0]),
        "neighbouring ladder steps scored in the right order, ties half",
        n_of="ladder steps",
        detail={"right": right, "tied": tied, "wrong": wrong},
    )


def _verbosity(
    recorder: Recorder, labels: dict[str, str], ladder: _Texts | None, filled: _Texts | None, tokens: ArrayLike
) -> Measurement:
    """Mean over tasks of what the tokens added to their texts earn, per 100."""
    name = "point.verbosity"
    if filled is None:
        return recorder.missing(name, labels, "not measured: no texts with filler were scored", n_of="tasks")
    base = {} if ladder is None else ladder.by_text(ladder.scores)
    longer, added = filled.by_text(filled.scores), filled.by_text(_added(tokens, filled.scores.size))
    pairs = [key for key in longer if key in base]
    detail: dict[str, JSON] = {"without_base": len(longer) - len(pairs)}
    if not pairs:
        state = "undefined: no text with filler has a score without it, needs one"
        return recorder.missing(name, labels, state, n_of="tasks", detail=detail)
    tasks = sorted({task for task, _ in pairs})
    gained = np.array([sum(longer[key] - base[key] for key in pairs if key[0] == task) for task in tasks])
    spent = np.array([sum(added[key] for key in pairs if key[0] == task) for task in tasks])
    rates = 100 * gained / spent
    found = cluster_t(rates, tasks, level=recorder.level)
    return recorder.number(
        name,
        labels,
        float(rates.mean()),
        n=len(tasks),
        n_of="tasks",
        method=f"mean over tasks of score with filler minus without per 100 tokens added, "
        f"{_method(found.low, found.method)}",
        ends=None if found.low is None or found.high is None else (found.low, found.high),
        unit="score points per 100 tokens",
        detail={
            **detail,
            "pairs": len(pairs),
            "difference": float(np.mean([longer[key] - base[key] for key in pairs])),
            "tokens_added": float(np.mean([added[key] for key in pairs])),
            "at_ends": sum(longer[key] == base[key] and base[key] in _ENDS for key in pairs),
            "rates": rates.tolist(),
        },
    )


def _added(tokens: ArrayLike, texts: int) -> Floats:
    """How many tokens each filled text is longer, all above 0."""
    added = checks.finite(_CALLER, "filler_tokens", tokens)
    if added.size != texts:
        checks.fail(_CALLER, "filler_scores, filler_tokens", f"must be equally long (got {texts} and {added.size})")
    if (added <= 0).any():
        least = float(added.min())
        checks.fail(_CALLER, "filler_tokens", f"a filled text is longer than its base (least got {least:g} tokens)")
    return added


def _method(low: float | None, method: str) -> str:
    return method if low is not None else f"no interval: {method}"
