"""Kappa: its intervals contain the kappa that the same judges would reach over very many clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_studies import NULL, PLANTED, expected_kappa, in_band, kappa_coverage

from assaymark.metrology import Spread

STUDIES = 200


@pytest.mark.parametrize("clusters", [5, 12, 25])
def test_the_jackknife_covers_at_its_level(clusters):
    jackknife, _ = kappa_coverage(replace(PLANTED, clusters=clusters), STUDIES, seed=1)
    assert in_band(jackknife, STUDIES, 0.95)


@pytest.mark.parametrize(("clusters", "rate"), [(5, 0.84), (20, 0.92)])
def test_the_bootstrap_covers_what_is_known_of_it(clusters, rate):
    """What the percentile interval of a mean covers with five and with twenty clusters is what that of kappa does."""
    _, bootstrap = kappa_coverage(replace(PLANTED, clusters=clusters), STUDIES, seed=2)
    assert in_band(bootstrap, STUDIES, rate)


def test_noisier_judges_agree_less():
    noisy = replace(NULL, panel=tuple(replace(judge, disagreement=Spread(1.2, 0.5)) for judge in NULL.panel))
    assert expected_kappa(noisy, clusters=500) < 0.4 < expected_kappa(NULL, clusters=500)
