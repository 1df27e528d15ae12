"""Verbosity bias planted in reference judges is recovered on the finance tasks."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from functools import cache
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binom

from assaymark.judging import judgment, load_rubric, pairs, reference, reference_judges
from assaymark.protocol import JudgeSpec
from assaymark.workflow import tracks

RUBRIC = load_rubric("v1.0")
TRIALS = 30
MIDDLE = {"offset": 1.5, "pivot": 135.0}
"""Without material an auditor gives about 1 to these texts of 110 or 165 tokens; this moves them off the floor."""


@cache
def stimuli():
    return pairs.point_stimuli(pairs.finance_tasks(), 7)


def calls(args, trials=1, model="reference/auditor"):
    judge = JudgeSpec(name="judge", model=model, family="reference", trials=trials, seed=5, args=args)
    return tracks.point_calls(stimuli(), judge, RUBRIC)


def grades(args, trials=1, model="reference/auditor"):
    """Return the grades of a judge by trial; each trial of a noisy judge counts as a judge."""

    async def answered(planned):
        return [await reference_judges()[model].complete(item.call) for item in planned]

    planned = [item for item in calls(args, trials, model) if ".vacuum." not in item.about]
    found = defaultdict(list)
    for item, reply in zip(planned, asyncio.run(answered(planned)), strict=True):
        found[item.call.trial].append(judgment(item, reply))
    return list(found.values())


def verbosity(graded, dimension="aggregate", dimensions=()):
    found = tracks.point_measurements(stimuli(), graded, dimensions, judge="judge", seed=1)
    (one,) = (m for m in found if m.name == "point.verbosity" and m.labels["dimension"] == dimension)
    return one


def expected(score, noise, low=1, high=5):
    """The mean of a noisy score after rounding half up and clipping: the chance of each edge above the floor."""
    return low + sum(NormalDist(0, noise).cdf(score - (edge - 0.5)) for edge in range(low + 1, high + 1))


@cache
def opinions():
    """Length and view of each text, by dimension, before anything is planted."""
    views, found = reference.VIEWS["reference/auditor"], {}
    for item in calls({}):
        if seen := reference.notice(tuple(part.text for part in item.call.messages[1].parts)):
            found[item.about] = seen["tokens"], [reference.opinion(views[name], seen) for name in RUBRIC.names]
    return found


def exact(slope, noise, offset, pivot):
    """The planted slope as rounding and clipping leave it, without drawing anything."""
    known = opinions()
    mean = {
        name: np.mean([expected(view + offset + slope * (tokens - pivot) / 100, noise) for view in views])
        for name, (tokens, views) in known.items()
    }
    gained, spent = defaultdict(float), defaultdict(float)
    for one in stimuli():
        if one.parent is not None:
            gained[one.task] += mean[one.id] - mean[one.parent]
            spent[one.task] += known[one.id][0] - known[one.parent][0]
    return float(np.mean([100 * gained[task] / spent[task] for task in gained]))


def test_what_rounding_and_clipping_leave_of_a_plant():
    for slope, noise, where, read in (  # blind, a quarter, a half, the same where scores scatter, and on the floor
        (0.0, 0.2, MIDDLE, 0.0), (0.25, 0.2, MIDDLE, 0.30), (0.5, 0.2, MIDDLE, 0.57), (0.25, 0.5, MIDDLE, 0.25),
        (0.5, 0.5, MIDDLE, 0.50), (0.25, 0.2, {"offset": -0.2, "pivot": 300.0}, 0.03),
    ):  # fmt: skip
        assert exact(slope, noise, **where) == pytest.approx(read, abs=0.006)


@pytest.mark.parametrize(("slope", "noise"), [(0.0, 0.2), (0.25, 0.2), (0.5, 0.2), (0.25, 0.5)])
def test_the_judge_is_read_as_it_was_planted_and_rounded(slope, noise):
    truth = exact(slope, noise, **MIDDLE)
    found = [verbosity(graded) for graded in grades({"slope": slope, "noise": noise, **MIDDLE}, TRIALS)]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth) < 4 * values.std(ddof=1) / np.sqrt(TRIALS)
    held = sum(one.low <= truth <= one.high for one in found)
    assert binom.ppf(0.0005, TRIALS, 0.95) <= held
    # Only rounding stands between this and the plant, and nothing where scores scatter or no length is paid for.
    assert abs(truth - slope) < (0.074 if noise == 0.2 and slope else 0.006)
    assert all((one.n, one.detail["pairs"]) == (10, 40) for one in found)


def test_all_trials_together_narrow_the_interval():
    trials = grades({"slope": 0.25, "noise": 0.5, **MIDDLE}, TRIALS)
    together = verbosity([one for graded in trials for one in graded])
    assert together.low <= 0.25 <= together.high
    assert together.high - together.low < (one := verbosity(trials[0])).high - one.low


def test_a_judge_on_the_floor_hides_what_it_pays_and_the_count_says_so():
    (graded,) = grades({"slope": 0.5, "noise": 0.2})
    hidden = [verbosity(graded, name, RUBRIC.names) for name in RUBRIC.names]
    assert verbosity(graded).high < 0.5
    assert sum(one.detail["at_ends"] for one in hidden) > 0.75 * sum(one.detail["pairs"] for one in hidden)


def test_a_judge_that_counts_words_per_length_sees_filler_dilute_them():
    (graded,) = grades({"slope": 0.0, "noise": 0.0, "offset": 0.5}, model="reference/reader")
    diluted = verbosity(graded, "position_sizing", RUBRIC.names)
    assert (diluted.state, diluted.n) == ("ok", 10)
    assert max(diluted.value, verbosity(graded).value) < 0


def test_replies_that_cannot_be_used_leave_their_pairs_out():
    (graded,) = grades({"noise": 0.2, **MIDDLE})
    broken = {f"{pairs.finance_tasks()[0].name}.point.ladder.1", f"{pairs.finance_tasks()[1].name}.point.filler.2"}
    kept = [replace(one, status="invalid", scores={}) if one.trajectory in broken else one for one in graded]
    found = verbosity(kept)
    assert (found.detail["pairs"], found.detail["without_base"], found.n) == (38, 1, 10)
