"""What a judge gives for length: a slope within agents, against the other judges."""

from __future__ import annotations

import numpy as np
import pytest

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology.length import season_verbosity

AGENTS, PERIODS = 5, 12


def world(seed: int, slope: float, *, noise: float = 2.0, taste: float = 10.0):
    """A judge with a taste for long-winded agents, and a slope within them."""
    rng = np.random.default_rng(seed)
    agents = np.repeat(np.arange(AGENTS), PERIODS)
    periods = np.tile(np.arange(PERIODS), AGENTS)
    doublings = agents + rng.normal(0, 1, agents.size)
    tokens = 100 * 2**doublings
    others = rng.normal(55, 6, agents.size)
    own = others + taste * agents + slope * doublings + noise * rng.normal(size=agents.size)
    return own, others, tokens, [f"a{a}" for a in agents], [f"w{p}" for p in periods]


def test_it_is_least_squares_with_a_level_for_each_agent():
    own, others, tokens, agents, periods = world(1, 3.0)
    found = season_verbosity(own, others, tokens, agents, periods)
    design = np.column_stack([np.log2(tokens), *(np.array(agents) == name for name in sorted(set(agents)))]).astype(
        float
    )
    (slope, *_), *_ = np.linalg.lstsq(design, own - others, rcond=None)
    assert found.slope == pytest.approx(slope)
    assert (found.items, found.periods) == (AGENTS * PERIODS, PERIODS)


def test_a_taste_for_verbose_agents_is_no_verbosity():
    """Without a level for each agent the taste of 10 points would pass for a slope."""
    found = [season_verbosity(*world(seed, 0.0)) for seed in range(40)]
    assert np.mean([one.slope for one in found]) == pytest.approx(0.0, abs=0.2)
    assert sum(one.low is not None and one.low > 0 for one in found) <= 4


def test_the_interval_is_a_jackknife_over_periods():
    own, others, tokens, agents, periods = world(2, 1.0)
    found = season_verbosity(own, others, tokens, agents, periods)
    left = []
    for gone in sorted(set(periods)):
        kept = np.array([one != gone for one in periods])
        part = [np.asarray(x)[kept] for x in (own, others, tokens)]
        left.append(season_verbosity(*part, list(np.array(agents)[kept]), list(np.array(periods)[kept])).slope)
    error = np.sqrt((PERIODS - 1) / PERIODS * np.square(np.array(left) - np.mean(left)).sum())
    assert found.low is not None
    assert found.slope - found.low == pytest.approx(2.200985 * error, rel=1e-5)


def test_lengths_that_do_not_differ_are_not_measured():
    with pytest.raises(NotMeasurableError, match="differ in length"):
        season_verbosity([60, 62, 50, 51], [60, 60, 50, 50], [100, 100, 300, 300], list("aabb"), list("1212"))
    with pytest.raises(NotMeasurableError):
        season_verbosity([60, 50], [60, 50], [100, 300], ["a", "a"], ["1", "1"])


def test_two_periods_have_a_slope_and_no_interval():
    found = season_verbosity([60, 64], [60, 60], [100, 200], ["a", "a"], ["1", "2"])
    assert (found.slope, found.low, found.high) == (pytest.approx(4.0), None, None)


@pytest.mark.parametrize(
    ("own", "tokens"), [([60.0, 61.0], [100, 0]), ([60.0, np.nan], [100, 200]), ([60.0], [100, 200])]
)
def test_values_that_do_not_fit_are_refused(own: list[float], tokens: list[int]):
    with pytest.raises(InputError):
        season_verbosity(own, [50.0] * len(own), tokens, ["a"] * len(tokens), ["1", "2"][: len(tokens)])
