"""Planted values come back: over 200 made-up runs each interval holds the truth as often as its level says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from repetitions import over_seeds
from scipy import special, stats

from assaymark.metrology import datasheet, detection_threshold

RUNS = 200
P = "prompt=tie-allowed"


def ladder_truths(planted):
    """What the planted ladder shares come to."""
    truths = {}
    for delta, (right, tied) in planted.ladder.items():
        wrong, label = 1 - right - tied, f"[delta={delta:g},{P}]"
        truths |= {
            f"sensitivity{label}": right, f"tie_rate{label}": tied, f"wrong_rate{label}": wrong,
            f"conditional_accuracy{label}": right / (right + wrong),
        }  # fmt: skip
        truths[f"d_prime{label}"] = float(special.ndtri(right) - special.ndtri(wrong))
    steps = list(planted.ladder)
    shares = [planted.ladder[delta][0] for delta in steps]
    truths[f"threshold[{P}]"] = detection_threshold(steps, shares, [1] * len(steps)).value
    return truths


def test_intervals_hold_what_was_planted(planted, draw, class_truths, coverage, in_band, kept):
    """Coverage of everything in one protocol, all tasks alike: 44 quantities, each in nearly every run."""
    judge = planted()
    truths = {
        f"dark_current[{P}]": judge.vacuum, f"dark_current[{P},variant=empty]": judge.vacuum,
        f"graded_vacuum[{P},variant=typo]": judge.graded, f"filler.preference[{P}]": judge.filler,
        **class_truths(judge.classes), **ladder_truths(judge),
    }  # fmt: skip
    runs = ((draw(np.random.default_rng([1, seed]), judge), np.random.default_rng(seed)) for seed in range(RUNS))
    found = coverage(runs, truths)
    assert len(found) == 44
    assert {name: of for name, (_, of) in found.items() if of < 0.9 * RUNS} == {}
    held = {
        name: (in_band if name.startswith(("d_prime", "threshold")) else kept)(*found[name], 0.95) for name in found
    }
    assert {name: found[name] for name, inside in held.items() if not inside} == {}


# A planted drift between two datasheets comes back, and an unchanged judge is left alone


@pytest.mark.parametrize("keep", [True, False], ids=["question by question", "from counts"])
def test_an_unchanged_judge_is_rarely_called_shifted(keep, draw, planted):
    """Both runs are drawn from the same probabilities: at most alpha of them may be called shifted."""
    judge, only = planted(), frozenset({"vacuum", "same_subset", "ladder"})
    runs = 40

    def shifts(seed: int) -> float:
        rng = np.random.default_rng([6, seed])
        sheets = [
            datasheet.datasheet_of(draw(rng, judge, conditions=only), rng=rng, manifest="m", keep_calls=keep)
            for _ in range(2)
        ]
        return datasheet.compare(*sheets)[-1].value

    assert sum(over_seeds(shifts, range(runs))) <= stats.binom.ppf(0.9995, runs, 0.05)


def test_the_interval_of_a_drift_holds_the_planted_drift(draw, in_band, planted):
    judge = planted()
    later = planted(vacuum=0.35)
    only = frozenset({"vacuum"})

    def holds(seed: int) -> bool:
        rng = np.random.default_rng([7, seed])
        old, new = (
            datasheet.datasheet_of(draw(rng, j, conditions=only), rng=rng, manifest="m") for j in (judge, later)
        )
        found = {m.labels.get("of"): m for m in datasheet.compare(old, new)}["dark_current"]
        return found.low <= 0.2 <= found.high

    assert in_band(sum(over_seeds(holds, range(RUNS))), RUNS, 0.95)


# Planted shares come back where the tasks differ, and where the two calls of a pair always agree


@pytest.mark.parametrize(("tasks", "alike"), [(10, 8.0), (6, 20.0), (30, 8.0)])
def test_shares_hold_when_tasks_differ(tasks, alike, planted, draw, kept, class_truths, coverage):
    """Tasks drawn around the planted shares: few, as many as the protocol has, and many."""
    judge = planted(alike=alike)
    truths = class_truths(judge.classes)
    only = frozenset({"same_subset"})
    runs = ((draw(np.random.default_rng([2, tasks, seed]), judge, tasks=tasks, pairs=max(60, 4 * tasks),
        conditions=only), np.random.default_rng(seed)) for seed in range(RUNS))  # fmt: skip
    found = coverage(runs, truths)
    missed = {name: found[name] for name in truths if not kept(*found[name], 0.95)}
    assert not missed


def test_wilson_is_too_narrow_where_two_orders_agree(planted, draw, kept, coverage):
    """A judge that decides by text or by slot gives two equal calls a pair: why intervals are over tasks."""
    classes = {"stable": 0.25, "slot 1": 0.25, "slot 2": 0.0, "one-sided": 0.0, "none": 0.5, "other": 0.0, "lost": 0.0}
    judge = planted(classes=classes)
    name = f"delta0.raw[condition=same_subset,{P}]"
    truths = {name: 0.5, f"{name}@wilson": 0.5}
    only = frozenset({"same_subset"})
    runs = (
        (draw(np.random.default_rng([3, seed]), judge, conditions=only), np.random.default_rng(seed))
        for seed in range(RUNS)
    )
    found = coverage(runs, truths)
    assert found[f"{name}@wilson"][0] < 0.9 * RUNS
    assert kept(*found[name], 0.95)


# Planted shifts of the criterion and planted stability over trials come back


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
        strict = [replace(call, prompt="strict", verdict="tie"
            if call.verdict in "12" and rng.random() < 0.4 else call.verdict) for call in base
            if call.condition == "same_subset" or call.delta == 1]  # fmt: skip
        found = {m.id.replace(",judge=j", ""): m for m in datasheet.datasheet_measurements(base + strict, rng=rng)}
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
        m = next(m for m in datasheet.datasheet_measurements(first + again, rng=rng) if m.name == "repeat.stability")
        return m.low <= truth <= m.high

    assert in_band(sum(over_seeds(holds, range(RUNS))), RUNS, 0.95)
