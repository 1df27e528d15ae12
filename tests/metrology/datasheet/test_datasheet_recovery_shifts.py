"""Planted shifts of the criterion and planted stability over trials come back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from repetitions import over_seeds

from assaymark.metrology.datasheet import datasheet_measurements

RUNS = 200


def test_the_shift_of_the_criterion_is_recovered(draw, kept, planted):
    """Every strict answer is the base answer, turned into a tie with a chance of 0.4 where it was none."""
    judge = planted(ladder={1.0: (0.62, 0.25)})
    only = frozenset({"same_subset", "ladder"})
    names = {
        "criterion.shift[condition=same_subset]": 0.4
        * (judge.classes["stable"] + 0.25 + (judge.classes["one-sided"] + judge.classes["other"]) / 2),
        "criterion.shift[condition=ladder,delta=1]": 0.4 * (1 - judge.ladder[1.0][1]),
    }

    def holds(seed: int) -> list[bool]:
        rng = np.random.default_rng([4, seed])
        base = draw(rng, judge, conditions=only)
        strict = [
            replace(
                call, prompt="strict", verdict="tie" if call.verdict in "12" and rng.random() < 0.4 else call.verdict
            )
            for call in base
            if call.condition == "same_subset" or call.delta == 1
        ]
        found = {m.id.replace(",judge=j", ""): m for m in datasheet_measurements(base + strict, rng=rng)}
        return [found[name].low <= truth <= found[name].high for name, truth in names.items()]

    held = [sum(one) for one in zip(*over_seeds(holds, range(RUNS)), strict=True)]
    assert all(kept(number, RUNS, 0.95) for number in held), held


def test_stability_over_trials_is_recovered(draw, in_band, planted):
    """Vacuum answers repeated with a chance of 0.8 and drawn anew otherwise agree with a known chance."""
    judge = planted(vacuum=0.5)
    chance = 0.5**2 + 2 * 0.25**2
    truth = 0.8 + 0.2 * chance

    def holds(seed: int) -> bool:
        rng = np.random.default_rng([5, seed])
        first = draw(rng, judge, conditions=frozenset({"vacuum"}))
        fresh = draw(rng, judge, conditions=frozenset({"vacuum"}), trial=2)
        again = [b if rng.random() > 0.8 else replace(a, trial=2) for a, b in zip(first, fresh, strict=True)]
        m = next(m for m in datasheet_measurements(first + again, rng=rng) if m.name == "repeat.stability")
        return m.low <= truth <= m.high

    assert in_band(sum(over_seeds(holds, range(RUNS))), RUNS, 0.95)
