"""Planted values come back: over 200 made-up runs each interval holds the truth as often as its level says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from assaymark.metrology import detection_threshold

RUNS = 200
P = "prompt=tie-allowed"


def ladder_truths(planted):
    """What the planted ladder shares come to."""
    truths = {}
    for delta, (right, tied) in planted.ladder.items():
        wrong, label = 1 - right - tied, f"[delta={delta:g},{P}]"
        truths |= {
            f"sensitivity{label}": right,
            f"tie_rate{label}": tied,
            f"wrong_rate{label}": wrong,
            f"conditional_accuracy{label}": right / (right + wrong),
        }
        truths[f"d_prime{label}"] = float(special.ndtri(right) - special.ndtri(wrong))
    steps = list(planted.ladder)
    shares = [planted.ladder[delta][0] for delta in steps]
    truths[f"threshold[{P}]"] = detection_threshold(steps, shares, [1] * len(steps)).value
    return truths


@pytest.fixture(scope="module")
def whole(planted, draw, class_truths, coverage):
    """Coverage of everything in one protocol, all tasks alike."""
    judge = planted()
    truths = {
        f"dark_current[{P}]": judge.vacuum, f"dark_current[{P},variant=empty]": judge.vacuum,
        f"graded_vacuum[{P},variant=typo]": judge.graded, f"filler.preference[{P}]": judge.filler,
        **class_truths(judge.classes), **ladder_truths(judge),
    }  # fmt: skip
    runs = ((draw(np.random.default_rng([1, seed]), judge), np.random.default_rng(seed)) for seed in range(RUNS))
    return coverage(runs, truths)


def names(planted_ladder=(0.5, 1, 2, 3, 4, 5)):
    """The names that `whole` holds; written out so that each is a test of its own."""
    equal = ("stable", "positional", "one_sided", "no_preference", "other_pairs", "other", "flip_rate", "slot_1_share")
    found = [f"dark_current[{P}]", f"dark_current[{P},variant=empty]", f"graded_vacuum[{P},variant=typo]"]
    found += [f"filler.preference[{P}]", f"threshold[{P}]"]
    found += [f"delta0.{name}[condition=same_subset,{P}]" for name in equal]
    found.append(f"delta0.raw[condition=same_subset,{P}]")
    for delta in planted_ladder:
        rates = ("sensitivity", "tie_rate", "wrong_rate", "conditional_accuracy", "d_prime")
        found += [f"{name}[delta={delta:g},{P}]" for name in rates]
    return found


@pytest.mark.parametrize("name", names())
def test_intervals_hold_what_was_planted(name, whole, in_band, kept):
    held, of = whole[name]
    assert of >= 0.9 * RUNS
    share = not name.startswith(("d_prime", "threshold"))
    assert (kept if share else in_band)(held, of, 0.95), f"{held} of {of}"


def test_every_planted_name_is_asked_about(whole):
    assert set(names()) == set(whole)
