"""Scores of one model as a table in the shape of Table 8: every cell with its interval, its method and its n."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from assaymark.benchmark.questions.answers import QAScore
from assaymark.benchmark.questions.payloads import ABLATED, REGIME_NAMES, TEMPLATES, Condition, Regime, Template
from assaymark.benchmark.questions.templates import Question
from assaymark.errors import InputError
from assaymark.portfolio.qp import Floats
from assaymark.quantiles import wilson_ends

FORMULA: Final[tuple[Template, ...]] = ("T4", "T5")
"""Column F of Table 8."""

JUDGMENT: Final[tuple[Template, ...]] = ("T1", "T2", "T6", "T7")
"""Column J of Table 8. T3 is in neither, as in the paper."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One reply that was scored."""

    question: Question
    condition: Condition
    score: QAScore


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean score with its interval."""

    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class QATable:
    """One row of Table 8."""

    templates: Mapping[Template, Cell]
    restricted: Mapping[Template, Cell]
    ablation: Mapping[Template, Cell]
    mean: Cell | None
    formula: Cell | None
    judgment: Cell | None
    regimes: Mapping[Regime, Cell]
    states: Mapping[str, int]


def tabulate(
    scored: Iterable[Scored], *, rng: np.random.Generator, level: float = 0.95, resamples: int = 2000
) -> QATable:
    """The table of one model."""
    rows = list(scored)
    if not rows:
        raise InputError("scores", ["there are none; ask a model first"])
    counted = Counter((one.question.id, one.condition) for one in rows)
    twice = [f"{mark} ({condition})" for (mark, condition), count in counted.items() if count > 1]
    if twice:
        raise InputError("scores", [f"{len(twice)} questions were scored twice: {', '.join(twice[:5])}"])
    maker = _Maker(rng, level, resamples)
    full = [one for one in rows if one.condition == "full"]
    by_template = _grouped(full)
    return QATable(
        templates={name: maker.cell(values) for name, values in by_template.items()},
        restricted={
            name: maker.cell(values)
            for name, values in _grouped([one for one in rows if one.condition == "restricted"]).items()
        },
        ablation={name: maker.cell(values, difference=True) for name, values in _differences(rows).items()},
        mean=maker.over(by_template, TEMPLATES),
        formula=maker.over(by_template, FORMULA),
        judgment=maker.over(by_template, JUDGMENT),
        regimes={
            name: cell
            for name in REGIME_NAMES
            if (found := _grouped([one for one in full if one.question.regime == name]))
            and (cell := maker.over(found, tuple(found)))
        },
        states=dict(sorted(Counter(one.score.state for one in rows).items())),
    )


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes cells, all at one level."""

    rng: np.random.Generator
    level: float
    resamples: int

    def cell(self, values: Floats, *, difference: bool = False) -> Cell:
        """The mean of some scores."""
        mean, n = float(values.mean()), int(values.size)
        if not difference and bool(np.isin(values, (0.0, 1.0)).all()):
            return Cell(mean, *wilson_ends(mean, n, level=self.level), n, "wilson")
        if n == 1:
            return Cell(mean, None, None, 1, "one question")
        return Cell(mean, *self.ends(self.means(values)), n, "bootstrap")

    def over(self, groups: Mapping[Template, Floats], names: Sequence[Template]) -> Cell | None:
        """The unweighted mean over templates, each resampled by itself."""
        if not set(names) <= set(groups):
            return None
        mean = float(np.mean([groups[name].mean() for name in names]))
        n = sum(groups[name].size for name in names)
        if max(groups[name].size for name in names) == 1:
            return Cell(mean, None, None, n, "one question a template")
        drawn = np.mean([self.means(groups[name]) for name in names], axis=0)
        return Cell(mean, *self.ends(drawn), n, "bootstrap within templates")

    def means(self, values: Floats) -> Floats:
        """Means of resamples, shape (resamples,)."""
        drawn = values[self.rng.integers(values.size, size=(self.resamples, values.size))]
        return np.asarray(drawn.mean(axis=1))

    def ends(self, means: Floats) -> tuple[float, float]:
        """The middle of the resampled means."""
        low, high = np.quantile(means, [(1 - self.level) / 2, (1 + self.level) / 2])
        return float(low), float(high)


def _grouped(rows: Sequence[Scored]) -> dict[Template, Floats]:
    return {
        name: np.array(found)
        for name in TEMPLATES
        if (found := [one.score.score for one in rows if one.question.template == name])
    }


def _differences(rows: Sequence[Scored]) -> dict[Template, Floats]:
    """Full less restricted, of the questions that were asked under both conditions."""
    full, restricted = (
        {one.question.id: one for one in rows if one.condition == name} for name in ("full", "restricted")
    )
    found = {
        name: [
            one.score.score - restricted[mark].score.score
            for mark, one in full.items()
            if mark in restricted and one.question.template == name
        ]
        for name in ABLATED
    }
    return {name: np.array(values) for name, values in found.items() if values}
