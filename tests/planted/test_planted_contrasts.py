"""Differences between agents: planted, and found within their intervals at the stated rate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from planted_studies import (
    PLANTED,
    band,
    contrast_coverage,
    generator,
    halo_of,
    in_band,
    panels,
    study_of,
    terse_effect,
)

from assaymark.metrology import Composer, Spread, minimum_detectable_effect, simulate_scores, t_test
from assaymark.metrology.panel import panel_of

STUDIES = 200


def test_the_band_holds_999_of_1000_counts():
    counts = np.random.default_rng(1).binomial(STUDIES, 0.95, size=20_000)
    low, high = band(STUDIES, 0.95)
    assert np.mean((counts >= low) & (counts <= high)) > 0.9985
    assert in_band(190, STUDIES, 0.95)
    assert not in_band(170, STUDIES, 0.95)


@pytest.mark.parametrize("clusters", [5, 12, 25])
def test_cluster_t_intervals_cover_at_their_level(clusters):
    assert in_band(contrast_coverage(replace(PLANTED, clusters=clusters), STUDIES, seed=1), STUDIES, 0.95)


@pytest.mark.parametrize("clusters", [5, 12, 25])
@pytest.mark.parametrize("attendance", [1.0, 0.67])
def test_intervals_that_borrow_from_other_pairs_cover_at_least_at_their_level(clusters, attendance):
    """The moderated cluster t, which is printed: with a variance that is never below a pair's own it may cover more."""
    composers = tuple(replace(one, attendance=attendance) for one in PLANTED.composers)
    truth = replace(PLANTED, clusters=clusters, composers=composers)
    assert contrast_coverage(truth, STUDIES, seed=1, test="moderated-t") >= band(STUDIES, 0.95)[0]


@pytest.mark.parametrize(("clusters", "rate"), [(5, 0.84), (20, 0.92)])
def test_bootstrap_intervals_cover_what_is_known_of_them(clusters, rate):
    """Not at their level: 84 % with five clusters and 92 % with twenty, which is why they do not gate there."""
    covered = contrast_coverage(replace(PLANTED, clusters=clusters), STUDIES, seed=1, test="bootstrap")
    assert in_band(covered, STUDIES, rate)


def test_missing_cycles_do_not_bias_a_contrast():
    """Each agent decides in two of three cycles; pairs meet in fewer, and the intervals still cover."""
    missing = replace(PLANTED, clusters=12, composers=tuple(replace(c, attendance=0.67) for c in PLANTED.composers))
    assert in_band(contrast_coverage(missing, STUDIES, seed=2), STUDIES, 0.95)


def test_severe_judges_do_not_move_contrasts():
    strict = replace(
        PLANTED, panel=tuple(replace(j, severity=s) for j, s in zip(PLANTED.panel, (-0.5, 0.0, 0.4), strict=True))
    )
    assert in_band(contrast_coverage(strict, STUDIES, seed=1), STUDIES, 0.95)
    moved = []
    for plain, other in zip(panels(PLANTED, STUDIES, seed=3), panels(strict, STUDIES, seed=3), strict=True):
        moved.append(_difference(plain) - _difference(other))
    assert abs(np.mean(moved)) < 3.3 * np.std(moved) / math.sqrt(STUDIES)


def _difference(panel) -> float:
    meeting = panel.meetings[0]
    return float(meeting.sums[:, 0].sum() / meeting.n)


def test_leaving_a_family_out_recovers_its_halo():
    """A judge that adds 0.6 to its own family's agent lifts the panel's contrast by 0.2, which goes with the judge."""
    own = replace(PLANTED.panel[0], halo=0.6)
    composers = (replace(PLANTED.composers[0], family=own.family), *PLANTED.composers[1:])
    truth = replace(PLANTED, composers=composers, panel=(own, *PLANTED.panel[1:]))
    found = np.array([halo_of(panel, own.family) for panel in panels(truth, STUDIES, seed=4)])
    covered = int(((found[:, 1] <= 0.2) & (found[:, 2] >= 0.2)).sum())
    assert in_band(covered, STUDIES, 0.95)
    other = np.array([halo_of(panel, "south") for panel in panels(truth, 40, seed=4)])
    assert other[:, 0].mean() == pytest.approx(-0.1, abs=0.03)  # what is left of the halo weighs more


def test_a_terse_penalty_is_recovered_below_and_above_its_threshold():
    """One agent writes half of its texts below 60 tokens; the panel takes 0.8 off them."""
    short = replace(PLANTED.composers[1], tokens=60.0, token_spread=0.5)
    truth = replace(
        PLANTED,
        composers=(PLANTED.composers[0], short, *PLANTED.composers[2:]),
        panel=tuple(replace(judge, terse_penalty=0.8) for judge in PLANTED.panel),
        clusters=12,
        cycles=20,
    )
    covered = 0
    for number in range(STUDIES):
        _, low, high = terse_effect(simulate_scores(truth, generator(5, number)), 1, 60)
        covered += low <= -0.8 <= high
    assert in_band(covered, STUDIES, 0.95)


def test_the_planning_value_has_its_power():
    """Independent differences of a known size, one in each cluster: the planned effect is found in 80 % of studies."""
    plain = replace(PLANTED, clusters=80, cycles=1, interaction=Spread(0.0), composers=PLANTED.composers[:2])
    spread = _sd(plain)
    alpha, comparisons, studies = 0.05, 1, 1000
    effect = minimum_detectable_effect(80, sd=spread, alpha=alpha, comparisons=comparisons)
    truth = replace(plain, composers=(Composer("ash", 3.0 + effect / 2), Composer("birch", 3.0 - effect / 2)))
    found = 0
    for panel in panels(truth, studies, seed=6):
        meeting = panel.meetings[0]
        found += bool(t_test(meeting.sums[:, :1], meeting.cycles).p[0] <= alpha)
    assert in_band(found, studies, 0.8)


def _sd(truth) -> float:
    """Standard deviation of the panel's paired difference, from a very long study."""
    panel = panel_of(simulate_scores(replace(truth, clusters=20_000), generator(7)), study_of())
    return float(panel.meetings[0].sums[:, 0].std())
