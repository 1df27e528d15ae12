"""The datasheet of a judge that scores one text at a time: no slots, so dark current becomes a score for nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

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


def pointwise_measurements(
    scores: ArrayLike, tasks: Sequence[str], levels: ArrayLike, *, judge: str, dimension: str,
    vacuum_scores: ArrayLike = (), vacuum_tasks: Sequence[str] = (), filler_scores: ArrayLike = (),
    filler_tasks: Sequence[str] = (), filler_levels: ArrayLike = (), filler_tokens: ArrayLike = (), level: float = 0.95,
    rng: np.random.Generator,
) -> tuple[Measurement, ...]:  # fmt: skip
    """What a rubric judge gives to nothing, for each requirement met, and for length alone."""
    recorder = Recorder(judge, TaskBootstrap(rng, checks.probability(_CALLER, "level", level)))
    nothing = checks.array(_CALLER, "vacuum_scores", vacuum_scores)

    def missing(name: str, state: str, n_of: str = "tasks", detail: dict[str, JSON] | None = None) -> Measurement:
        return recorder.missing(name, {"dimension": dimension}, state, n_of=n_of, detail=detail)

    def mean(
        name: str, values: Floats, clusters: Sequence[Any], n_of: str, what: str, unit: str, detail: dict[str, JSON]
    ) -> Measurement:
        """A mean over tasks or rationales with its cluster t."""
        found = cluster_t(values, clusters, level=recorder.level)
        method = found.method if found.low is not None else f"no interval: {found.method}"
        if n_of == "rationales":
            detail = {"tasks": found.clusters, **detail}
        return recorder.number(name, {"dimension": dimension}, float(np.mean(values)), (values.size, n_of),
                               f"{what}, {method}", ends=(found.low, found.high), unit=unit, detail=detail)  # fmt: skip

    vacuum = missing("point.vacuum_score", "not measured: no rationales without content were scored", "rationales")
    if nothing.size:
        values = checks.finite(_CALLER, "vacuum_scores", nothing)
        vacuum = mean("point.vacuum_score", values, vacuum_tasks, "rationales",
                      "mean score of rationales without content", "score points",
                      {"lowest": float(values.min()), "highest": float(values.max())})  # fmt: skip
    ladder = _Texts.of("", scores, tasks, levels)
    filled = _Texts.of("filler_", filler_scores, filler_tasks, filler_levels)
    verbosity = missing("point.verbosity", "not measured: no texts with filler were scored")
    if filled is not None:
        rates, names, detail = _earned(ladder, filled, filler_tokens)
        verbosity = missing("point.verbosity", "undefined: no text with filler has a score without it, needs one",
                            detail=detail)  # fmt: skip
        if names:
            verbosity = mean("point.verbosity", rates, names, "tasks",
                             "mean over tasks of score with filler minus without per 100 tokens added",
                             "score points per 100 tokens", detail)  # fmt: skip
    if ladder is None:
        state = "not measured: no ladder rationales were scored"
        return vacuum, missing("point.slope", state), missing("point.order", state), verbosity
    # Slope of score on requirements met of each task, and its steps up by right, tied and wrong order.
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
    slope, order = missing("point.slope", one_level, detail=left_out), missing("point.order", one_level, "ladder steps")
    if slopes:
        slope = mean("point.slope", np.array(slopes), list(range(len(slopes))), "tasks",
                     "mean over tasks of the least-squares slope", "score points per requirement",
                     {**left_out, "rationales": ladder.scores.size, "slopes": list(slopes)})  # fmt: skip
    if counts.sum():
        wrong, tied, right = counts.sum(axis=0).tolist()
        order = recorder.classes("point.order", {"dimension": dimension}, counts, (0.0, 0.5, 1.0),
                                 "neighbouring ladder steps scored in the right order, ties half", n_of="ladder steps",
                                 detail={"right": right, "tied": tied, "wrong": wrong})  # fmt: skip
    return vacuum, slope, order, verbosity


def _earned(ladder: _Texts | None, filled: _Texts, tokens: ArrayLike) -> tuple[Floats, list[str], dict[str, JSON]]:
    """What the tokens added to their texts earn per 100, by task; the tasks; and what is to be said beside it."""
    base = {} if ladder is None else ladder.by_text(ladder.scores)
    added = checks.finite(_CALLER, "filler_tokens", tokens)
    if added.size != filled.scores.size:
        what = f"must be equally long (got {filled.scores.size} and {added.size})"
        checks.fail(_CALLER, "filler_scores, filler_tokens", what)
    if (added <= 0).any():
        what = f"a filled text is longer than its base (least got {float(added.min()):g} tokens)"
        checks.fail(_CALLER, "filler_tokens", what)
    longer, more = filled.by_text(filled.scores), filled.by_text(added)
    pairs = [key for key in longer if key in base]
    detail: dict[str, JSON] = {"without_base": len(longer) - len(pairs)}
    names = sorted({task for task, _ in pairs})
    gained = np.array([sum(longer[key] - base[key] for key in pairs if key[0] == name) for name in names])
    spent = np.array([sum(more[key] for key in pairs if key[0] == name) for name in names])
    rates = 100 * gained / spent
    if pairs:
        detail |= {
            "pairs": len(pairs),
            "difference": float(np.mean([longer[key] - base[key] for key in pairs])),
            "tokens_added": float(np.mean([more[key] for key in pairs])),
            "at_ends": sum(longer[key] == base[key] and base[key] in _ENDS for key in pairs),
            "rates": rates.tolist(),
        }
    return rates, names, detail
