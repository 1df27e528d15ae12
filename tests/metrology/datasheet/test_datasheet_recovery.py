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
SAME, VACUUM = frozenset({"same_subset"}), frozenset({"vacuum"})


def ladder_truths(planted):
    """Return the values that the planted ladder shares imply."""
    truths, steps = {}, list(planted.ladder)
    for delta, (right, tied) in planted.ladder.items():
        wrong = 1 - right - tied
        found = {"sensitivity": right, "tie_rate": tied, "wrong_rate": wrong}
        found["conditional_accuracy"] = right / (right + wrong)
        found["d_prime"] = float(special.ndtri(right) - special.ndtri(wrong))
        truths |= {f"{name}[delta={delta:g},{P}]": value for name, value in found.items()}
    shares = [planted.ladder[delta][0] for delta in steps]
    truths[f"threshold[{P}]"] = detection_threshold(steps, shares, [1] * len(steps)).value
    return truths


def runs_of(draw, judge, *seeds, **more):
    """Calls of 200 runs, and what draws the resamples of each."""
    for seed in range(RUNS):
        yield draw(np.random.default_rng([*seeds, seed]), judge, **more), np.random.default_rng(seed)


def test_intervals_hold_what_was_planted(planted, draw, class_truths, coverage, in_band, kept):
    """Coverage of everything in one protocol, all tasks alike: 44 quantities, each in nearly every run."""
    judge = planted()
    truths = {
        f"dark_current[{P}]": judge.vacuum, f"dark_current[{P},variant=empty]": judge.vacuum,
        f"graded_vacuum[{P},variant=typo]": judge.graded, f"filler.preference[{P}]": judge.filler,
        **class_truths(judge.classes), **ladder_truths(judge),
    }  # fmt: skip
    found = coverage(runs_of(draw, judge, 1), truths)
    assert len(found) == 44
    assert {name: of for name, (_, of) in found.items() if of < 0.9 * RUNS} == {}
    exact = [name for name in found if name.startswith(("d_prime", "threshold"))]
    assert {name: one for name, one in found.items() if not (in_band if name in exact else kept)(*one, 0.95)} == {}


def test_an_unchanged_judge_is_rarely_called_shifted(draw, planted):
    """Both runs are drawn from the same probabilities: at most alpha of them may be called shifted, whether they are
    compared question by question or from counts."""
    judge, only = planted(), frozenset({"vacuum", "same_subset", "ladder"})

    def shifts(seed: int) -> list[float]:
        rng = np.random.default_rng([6, seed])
        sheets = [datasheet.datasheet_of(draw(rng, judge, conditions=only), rng=rng, manifest="m") for _ in range(2)]
        counted = [replace(one, anchors={}, pairs={}) for one in sheets]
        return [datasheet.compare(*both)[-1].value for both in (sheets, counted)]

    assert (np.sum(over_seeds(shifts, range(40)), axis=0) <= stats.binom.ppf(0.9995, 40, 0.05)).all()


def test_the_interval_of_a_drift_holds_the_planted_drift(draw, in_band, planted):
    judges = planted(), planted(vacuum=0.35)

    def holds(seed: int) -> bool:
        rng = np.random.default_rng([7, seed])
        old, new = (datasheet.datasheet_of(draw(rng, j, conditions=VACUUM), rng=rng, manifest="m") for j in judges)
        found = {m.labels.get("of"): m for m in datasheet.compare(old, new)}["dark_current"]
        return found.low <= 0.2 <= found.high

    assert in_band(sum(over_seeds(holds, range(RUNS))), RUNS, 0.95)


@pytest.mark.parametrize(("tasks", "alike"), [(10, 8.0), (6, 20.0), (30, 8.0)])
def test_shares_hold_when_tasks_differ(tasks, alike, planted, draw, kept, class_truths, coverage):
    """Tasks drawn around the planted shares: few, as many as the protocol has, and many."""
    judge, size = planted(alike=alike), {"tasks": tasks, "pairs": max(60, 4 * tasks), "conditions": SAME}
    found = coverage(runs_of(draw, judge, 2, tasks, **size), class_truths(judge.classes))
    assert {name: one for name, one in found.items() if not kept(*one, 0.95)} == {}


def test_wilson_is_too_narrow_where_two_orders_agree(planted, draw, kept, coverage):
    """A judge that decides by text or by slot gives two equal calls a pair: why intervals are over tasks."""
    classes = {"stable": 0.25, "slot 1": 0.25, "slot 2": 0.0, "one-sided": 0.0, "none": 0.5, "other": 0.0, "lost": 0.0}
    name = f"delta0.raw[condition=same_subset,{P}]"
    found = coverage(runs_of(draw, planted(classes=classes), 3, conditions=SAME), {name: 0.5, f"{name}@wilson": 0.5})
    assert found[f"{name}@wilson"][0] < 0.9 * RUNS
    assert kept(*found[name], 0.95)


def test_the_shift_of_the_criterion_is_recovered(draw, kept, planted):
    """Every strict answer is the base answer, turned into a tie with a chance of 0.4 where it was none."""
    judge, only = planted(ladder={1.0: (0.62, 0.25)}), frozenset({"same_subset", "ladder"})
    shares = judge.classes
    truths = {
        "same_subset": 0.4 * (shares["stable"] + 0.25 + (shares["one-sided"] + shares["other"]) / 2),
        "ladder,delta=1": 0.4 * (1 - judge.ladder[1.0][1]),
    }

    def holds(seed: int) -> list[bool]:
        rng = np.random.default_rng([4, seed])
        base = draw(rng, judge, conditions=only)
        both = [call for call in base if call.condition == "same_subset" or call.delta == 1]
        verdicts = ["tie" if c.verdict in "12" and rng.random() < 0.4 else c.verdict for c in both]
        strict = [replace(c, prompt="strict", verdict=verdict) for c, verdict in zip(both, verdicts, strict=True)]
        measured = datasheet.datasheet_measurements(base + strict, rng=rng)
        found = {m.id.replace(",judge=j", ""): m for m in measured if m.name == "criterion.shift"}
        shifts = {truth: found[f"criterion.shift[condition={name}]"] for name, truth in truths.items()}
        return [one.low <= truth <= one.high for truth, one in shifts.items()]

    held = [sum(one) for one in zip(*over_seeds(holds, range(RUNS)), strict=True)]
    assert all(kept(number, RUNS, 0.95) for number in held), held


def test_stability_over_trials_is_recovered(draw, in_band, planted):
    """Vacuum answers repeated with a chance of 0.8 and drawn anew otherwise agree with a known chance."""
    judge, truth = planted(vacuum=0.5), 0.8 + 0.2 * (0.5**2 + 2 * 0.25**2)

    def holds(seed: int) -> bool:
        rng = np.random.default_rng([5, seed])
        first, fresh = (draw(rng, judge, conditions=VACUUM, trial=trial) for trial in (1, 2))
        again = [b if rng.random() > 0.8 else replace(a, trial=2) for a, b in zip(first, fresh, strict=True)]
        m = next(m for m in datasheet.datasheet_measurements(first + again, rng=rng) if m.name == "repeat.stability")
        return m.low <= truth <= m.high

    assert in_band(sum(over_seeds(holds, range(RUNS))), RUNS, 0.95)
