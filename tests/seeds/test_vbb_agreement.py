"""ValueBlindBench sections 3.3 to 3.9 and 5: printed figures that follow from printed inputs, by our metrology."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from assaymark.metrology import (
    all_resamples,
    bootstrap_contrast,
    bootstrap_kappa,
    cluster_t,
    leave_one_family_out,
    mean_pairwise_kappa,
    minimum_detectable_effect,
    round_half_up,
    weighted_kappa,
    wilson,
)

AGENTS, REGIMES, DIMENSIONS, CYCLES = 4, 5, 6, 50
FAMILY = math.comb(AGENTS, 2) * DIMENSIONS
MDE = round(minimum_detectable_effect(200, comparisons=FAMILY), 2)


def test_the_holm_family_has_36_contrasts():
    """Section 3.9: C(4,2) x 6."""
    assert FAMILY == 36


def test_the_pooled_minimum_detectable_effect():
    """Section 3.9: 0.29 rubric points, sd 1, 80 % power; n is not printed, 200 cycles give it."""
    assert minimum_detectable_effect(200, sd=1.0, alpha=0.05, power=0.8, comparisons=FAMILY) == pytest.approx(
        0.29, abs=0.005
    )
    # The 250 cycles that each pair of agents shares would print as 0.26.
    assert minimum_detectable_effect(CYCLES * REGIMES, comparisons=FAMILY) == pytest.approx(0.26, abs=0.005)


@pytest.mark.parametrize(
    ("gap", "printed", "digit"),
    [(2.81, 9.7, 0.05), (0.04, 0.14, 0.005), (0.42, 1.4, 0.05)],
    ids=["cell B", "fourth judge", "anchor probe"],
)
def test_gaps_in_units_of_the_minimum_detectable_effect(gap, printed, digit):
    """Sections 5.5 and 5.6."""
    assert gap / MDE == pytest.approx(printed, abs=digit)


def test_lower_rank_separations_are_below_a_tenth_of_it():
    """Sections 5.2 and 5.5: 0.009, 0.018 and 0.027 rubric points."""
    assert all(gap / MDE < 0.10 for gap in (0.009, 0.018, 0.027))


# Levels of claude, gpt, gemini, qwen in the panel, from the printed gaps; the leader's lead is not printed.
PANEL = np.array([0.30, 0.000, 0.009, 0.027])


def test_the_leave_one_out_triplet_with_the_leader_kept():
    """Section 5.2: rho 1.0, 1.0 and 0.2. With rank 1 kept, 0.2 can only mean that the other three turn around."""
    turned = np.array([0.30, 0.027, 0.009, 0.000])
    # The panel is the mean of three judges: claude-as-judge must bring the others to the panel's order.
    claude = 3 * PANEL - 2 * turned
    scores = np.stack([claude, turned + 0.001 * turned, turned - 0.001 * turned], axis=1)
    found = leave_one_family_out(scores, ["anthropic", "openai", "google"])
    assert found == {"anthropic": pytest.approx(0.2), "openai": pytest.approx(1.0), "google": pytest.approx(1.0)}


def test_which_rank_correlations_four_agents_with_one_leader_can_have():
    """Section 5.4: correlations between single judges that all put one agent first run from 0.2 to 0.8."""
    lower = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    found = set()
    for order in lower[1:]:
        scores = np.array([[9.0, 9.0], *([float(-k), float(-order[k])] for k in range(3))])
        # Dropping the first judge leaves the second; the panel must follow the first, so it weighs a hundredfold.
        rho = leave_one_family_out(scores * [100.0, 1.0], ["a", "b"])["a"]
        found.add(round(rho, 9))
    assert found == {0.2, 0.4, 0.8}


def test_five_regimes_have_126_resamples():
    """Section 3.9 draws 1,000 of them; there are only C(9, 5), so the interval can be exact."""
    assert all_resamples(REGIMES).size == math.comb(2 * REGIMES - 1, REGIMES) == 126
    rng = np.random.default_rng(1)
    true = rng.integers(1, 6, (REGIMES * CYCLES, 1))
    ratings = np.clip(true + rng.integers(-1, 2, (REGIMES * CYCLES, 3)), 1, 5)
    assert "exact" in bootstrap_kappa(ratings, np.repeat(np.arange(REGIMES), CYCLES)).method


def test_a_thousand_draws_can_reject_none_of_36_contrasts():
    """Section 3.9: 1,000 resamples and Holm over 36 leave a smallest adjusted p of 36 x 2 / 1001."""
    drawn = bootstrap_contrast(np.full(9, 0.2), np.arange(9), resamples=1000, rng=np.random.default_rng(1))
    assert FAMILY * drawn.p == pytest.approx(0.0719, abs=5e-5)
    assert FAMILY * drawn.p > 0.05


def test_the_sign_of_five_regimes_can_never_reject():
    """An exact sign flip over five regimes has a smallest p of 0.0625."""
    assert cluster_t([0.2] * REGIMES, list("abcde")).p == 0.0625
    assert bootstrap_contrast([0.2] * REGIMES, list("abcde")).p == 2 / 5**5


def test_the_aggregate_is_the_mean_of_three_pairs():
    """Section 3.6."""
    rng = np.random.default_rng(4)
    claude, gpt, gemini = rng.integers(1, 6, (3, 60))
    three = [weighted_kappa(x, y) for x, y in combinations((claude, gpt, gemini), 2)]
    assert mean_pairwise_kappa(np.stack([claude, gpt, gemini], axis=1)) == pytest.approx(sum(three) / 3)


def test_trials_are_averaged_before_they_are_rounded():
    """Section 3.6: 2, 2 and 3 are a 2 for kappa and 2.33 for means; 4.5 is a 5."""
    assert round_half_up((2 + 2 + 3) / 3) == 2
    assert round_half_up((4 + 5) / 2) == 5


@pytest.mark.parametrize(
    ("below", "printed"), [(0, 0.0), (211, 84.4), (7, 2.8)], ids=["claude and qwen", "gemini", "gpt"]
)
def test_shares_of_short_rationales(below, printed):
    """Section 5.3: out of 250; the gemini share is far from a half whatever its sampling error."""
    assert 100 * below / 250 == pytest.approx(printed, abs=0.05)
    low, high = wilson(below, 250)
    assert low <= below / 250 <= high
    assert wilson(211, 250)[0] > 0.5
