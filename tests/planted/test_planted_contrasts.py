"""Differences between agents and agreement of judges: planted, and found within their intervals at the stated rate."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from planted_studies import (
    NULL, PLANTED, band, contrast_coverage, expected_kappa, generator, halo_of, in_band, kappa_coverage, panels,
    study_of, terse_effect,
)  # fmt: skip

from assaymark.metrology import Composer, Spread, minimum_detectable_effect, simulate_scores, t_test
from assaymark.metrology.panel import panel_of

STUDIES = 200
ABSENT = replace(PLANTED, composers=tuple(replace(one, attendance=0.67) for one in PLANTED.composers))
"""Each agent decides in two of three cycles."""
STRICT = replace(PLANTED, panel=tuple(replace(judge, severity=severity) for judge, severity in
                                      zip(PLANTED.panel, (-0.5, 0.0, 0.4), strict=True)))  # fmt: skip


def test_the_band_holds_999_of_1000_counts():
    counts = np.random.default_rng(1).binomial(STUDIES, 0.95, size=20_000)
    low, high = band(STUDIES, 0.95)
    assert np.mean((counts >= low) & (counts <= high)) > 0.9985
    assert (in_band(190, STUDIES, 0.95), in_band(170, STUDIES, 0.95)) == (True, False)


@pytest.mark.parametrize(
    ("truth", "seed", "test", "rate"),
    [
        *((replace(PLANTED, clusters=clusters), 1, "cluster-t", 0.95) for clusters in (5, 12, 25)),
        # pairs that meet in fewer cycles, and judges who differ in severity, bias nothing
        (replace(ABSENT, clusters=12), 2, "cluster-t", 0.95),
        (STRICT, 1, "cluster-t", 0.95),
        # not at their level, which is why they do not gate there
        (replace(PLANTED, clusters=5), 1, "bootstrap", 0.84),
        (replace(PLANTED, clusters=20), 1, "bootstrap", 0.92),
    ],
    ids=["5", "12", "25", "absent", "strict", "bootstrap 5", "bootstrap 20"],
)
def test_intervals_cover_at_their_level_or_at_what_is_known_of_them(truth, seed, test, rate):
    assert in_band(contrast_coverage(truth, STUDIES, seed=seed, test=test), STUDIES, rate)


@pytest.mark.parametrize("clusters", [5, 12, 25])
@pytest.mark.parametrize("truth", [PLANTED, ABSENT], ids=["present", "absent"])
def test_intervals_that_borrow_from_other_pairs_cover_at_least_at_their_level(clusters, truth):
    """The moderated cluster t, which is printed: with a variance that is never below a pair's own it may cover more."""
    covered = contrast_coverage(replace(truth, clusters=clusters), STUDIES, seed=1, test="moderated-t")
    assert covered >= band(STUDIES, 0.95)[0]


def test_severe_judges_do_not_move_contrasts():
    def difference(panel) -> float:
        sums, cycles = panel.meetings[0]
        return float(sums[:, 0].sum() / cycles.sum())

    both = zip(panels(PLANTED, STUDIES, seed=3), panels(STRICT, STUDIES, seed=3), strict=True)
    moved = [difference(plain) - difference(other) for plain, other in both]
    assert abs(np.mean(moved)) < 3.3 * np.std(moved) / math.sqrt(STUDIES)


def test_leaving_a_family_out_recovers_its_halo():
    """A judge that adds 0.6 to its own family's agent lifts the panel's contrast by 0.2, which goes with the judge."""
    own = replace(PLANTED.panel[0], halo=0.6)
    composers = (replace(PLANTED.composers[0], family=own.family), *PLANTED.composers[1:])
    truth = replace(PLANTED, composers=composers, panel=(own, *PLANTED.panel[1:]))
    found = np.array([halo_of(panel, own.family) for panel in panels(truth, STUDIES, seed=4)])
    assert in_band(int(((found[:, 1] <= 0.2) & (found[:, 2] >= 0.2)).sum()), STUDIES, 0.95)
    other = np.array([halo_of(panel, "south") for panel in panels(truth, 40, seed=4)])
    assert other[:, 0].mean() == pytest.approx(-0.1, abs=0.03)  # what is left of the halo weighs more


def test_a_terse_penalty_is_recovered_below_and_above_its_threshold():
    """One agent writes half of its texts below 60 tokens; the panel takes 0.8 off them."""
    short = replace(PLANTED.composers[1], tokens=60.0, token_spread=0.5)
    composers = (PLANTED.composers[0], short, *PLANTED.composers[2:])
    panel = tuple(replace(judge, terse_penalty=0.8) for judge in PLANTED.panel)
    truth = replace(PLANTED, composers=composers, panel=panel, clusters=12, cycles=20)
    ends = [terse_effect(simulate_scores(truth, generator(5, number)), 1, 60)[1:] for number in range(STUDIES)]
    assert in_band(sum(low <= -0.8 <= high for low, high in ends), STUDIES, 0.95)


def test_the_planning_value_has_its_power():
    """Independent differences of a known size, one in each cluster: the planned effect is found in 80 % of studies."""
    plain = replace(PLANTED, clusters=80, cycles=1, interaction=Spread(0.0), composers=PLANTED.composers[:2])
    # The standard deviation of the panel's paired difference, from a very long study.
    long = panel_of(simulate_scores(replace(plain, clusters=20_000), generator(7)), study_of())
    spread, studies = float(long.meetings[0][0][:, 0].std()), 1000
    effect = minimum_detectable_effect(80, sd=spread, alpha=0.05, comparisons=1)
    truth = replace(plain, composers=(Composer("ash", 3.0 + effect / 2), Composer("birch", 3.0 - effect / 2)))
    meetings = (panel.meetings[0] for panel in panels(truth, studies, seed=6))
    found = sum(bool(t_test(sums[:, :1], cycles).p[0] <= 0.05) for sums, cycles in meetings)
    assert in_band(found, studies, 0.8)


@pytest.mark.parametrize("clusters", [5, 12, 25])
def test_the_jackknife_of_kappa_covers_what_judges_would_reach_over_very_many_clusters(clusters):
    jackknife, _ = kappa_coverage(replace(PLANTED, clusters=clusters), STUDIES, seed=1)
    assert in_band(jackknife, STUDIES, 0.95)


@pytest.mark.parametrize(("clusters", "rate"), [(5, 0.84), (20, 0.92)])
def test_the_bootstrap_of_kappa_covers_what_is_known_of_it(clusters, rate):
    """What the percentile interval of a mean covers with five and with twenty clusters is what that of kappa does."""
    _, bootstrap = kappa_coverage(replace(PLANTED, clusters=clusters), STUDIES, seed=2)
    assert in_band(bootstrap, STUDIES, rate)


def test_noisier_judges_agree_less():
    noisy = replace(NULL, panel=tuple(replace(judge, disagreement=Spread(1.2, 0.5)) for judge in NULL.panel))
    assert expected_kappa(noisy, clusters=500) < 0.4 < expected_kappa(NULL, clusters=500)
