"""Planted shifts come back: of the criterion, over trials, and between two datasheets of one judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assaymark.metrology.datasheet import compare, datasheet_measurements, datasheet_of

RUNS = 200


def test_the_shift_of_the_criterion_is_recovered(draw, in_band, planted):
    """Every strict answer is the base answer, turned into a tie with a chance of 0.4 where it was none."""
    judge = planted(ladder={1.0: (0.62, 0.25)})
    only = frozenset({"same_subset", "ladder"})
    names = {
        "criterion.shift[condition=same_subset]": 0.4
        * (judge.classes["stable"] + 0.25 + (judge.classes["one-sided"] + judge.classes["other"]) / 2),
        "criterion.shift[condition=ladder,delta=1]": 0.4 * (1 - judge.ladder[1.0][1]),
    }
    held = dict.fromkeys(names, 0)
    for seed in range(RUNS):
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
        for name, truth in names.items():
            held[name] += found[name].low <= truth <= found[name].high
    assert all(in_band(number, RUNS, 0.95) for number in held.values()), held


def test_stability_over_trials_is_recovered(draw, in_band, planted):
    """Vacuum answers repeated with a chance of 0.8 and drawn anew otherwise agree with a known chance."""
    judge = planted(vacuum=0.5)
    chance = 0.5**2 + 2 * 0.25**2
    truth = 0.8 + 0.2 * chance
    held = []
    for seed in range(RUNS):
        rng = np.random.default_rng([5, seed])
        first = draw(rng, judge, conditions=frozenset({"vacuum"}))
        fresh = draw(rng, judge, conditions=frozenset({"vacuum"}), trial=2)
        again = [b if rng.random() > 0.8 else replace(a, trial=2) for a, b in zip(first, fresh, strict=True)]
        m = next(m for m in datasheet_measurements(first + again, rng=rng) if m.name == "repeat.stability")
        held.append(m.low <= truth <= m.high)
    assert in_band(sum(held), RUNS, 0.95)


@pytest.mark.parametrize("keep", [True, False], ids=["question by question", "from counts"])
def test_an_unchanged_judge_is_rarely_called_shifted(keep, draw, planted):
    """Both runs are drawn from the same probabilities: at most alpha of them may be called shifted."""
    judge, only = planted(), frozenset({"vacuum", "same_subset", "ladder"})
    runs = 60
    shifted = 0
    for seed in range(runs):
        rng = np.random.default_rng([6, seed])
        sheets = [
            datasheet_of(draw(rng, judge, conditions=only), rng=rng, manifest="m", keep_calls=keep) for _ in range(2)
        ]
        shifted += compare(*sheets)[-1].value
    # 9 of 60 is beyond the 99.9 % point of a binomial with 0.05.
    assert shifted < 9


def test_the_interval_of_a_drift_holds_the_planted_drift(draw, in_band, planted):
    judge = planted()
    later = planted(vacuum=0.35)
    only = frozenset({"vacuum"})
    held = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([7, seed])
        old, new = (datasheet_of(draw(rng, j, conditions=only), rng=rng, manifest="m") for j in (judge, later))
        found = {m.labels.get("of"): m for m in compare(old, new)}["dark_current"]
        held += found.low <= 0.2 <= found.high
    assert in_band(held, RUNS, 0.95)
