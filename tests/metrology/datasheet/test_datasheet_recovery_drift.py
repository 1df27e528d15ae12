"""A planted drift between two datasheets comes back, and an unchanged judge is left alone."""

from __future__ import annotations

import numpy as np
import pytest
from repetitions import over_seeds
from scipy import stats

from assaymark.metrology.datasheet import compare, datasheet_of

RUNS = 200


@pytest.mark.parametrize("keep", [True, False], ids=["question by question", "from counts"])
def test_an_unchanged_judge_is_rarely_called_shifted(keep, draw, planted):
    """Both runs are drawn from the same probabilities: at most alpha of them may be called shifted."""
    judge, only = planted(), frozenset({"vacuum", "same_subset", "ladder"})
    runs = 40

    def shifts(seed: int) -> float:
        rng = np.random.default_rng([6, seed])
        sheets = [
            datasheet_of(draw(rng, judge, conditions=only), rng=rng, manifest="m", keep_calls=keep) for _ in range(2)
        ]
        return compare(*sheets)[-1].value

    assert sum(over_seeds(shifts, range(runs))) <= stats.binom.ppf(0.9995, runs, 0.05)


def test_the_interval_of_a_drift_holds_the_planted_drift(draw, in_band, planted):
    judge = planted()
    later = planted(vacuum=0.35)
    only = frozenset({"vacuum"})

    def holds(seed: int) -> bool:
        rng = np.random.default_rng([7, seed])
        old, new = (datasheet_of(draw(rng, j, conditions=only), rng=rng, manifest="m") for j in (judge, later))
        found = {m.labels.get("of"): m for m in compare(old, new)}["dark_current"]
        return found.low <= 0.2 <= found.high

    assert in_band(sum(over_seeds(holds, range(RUNS))), RUNS, 0.95)
