"""Orders that are claimed: false ones at most at the stated rate, planted ones found, tie classes left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_studies import AGENTS, DIMENSIONS, NULL, PLANTED, band, orders, study_of, verdicts_of
from repetitions import over_seeds, untraced

from assaymark.metrology.simulation import Composer

STUDIES = 200
FEW = study_of("inference = {resamples = 2000}")
"""Draws enough for Holm over 12 contrasts at half of .05: the smallest adjusted p-value is .012."""


@pytest.mark.parametrize("clusters", [5, 8, 16])
def test_equal_agents_rarely_give_an_order(clusters):
    """At most 5 % of studies permit any order under the default plan, as a headline too had the cells been passed."""
    null = replace(NULL, clusters=clusters, dimensions=DIMENSIONS[:2])
    found = untraced(lambda: orders(null, FEW, STUDIES, seed=3))
    limit = band(STUDIES, 0.05)[1]
    assert found.gating <= limit
    assert found.headline <= found.gating
    assert found.bootstrap > limit  # the warning number: why the percentile bootstrap does not gate below 20 clusters


def test_a_tie_class_is_not_ordered_and_the_rest_is():
    """A leader, two equals, and a last one: the equals get an order in at most 5 % of studies."""
    levels = dict(zip(AGENTS, (3.7, 3.0, 3.0, 2.4), strict=True))
    truth = replace(
        PLANTED, clusters=6, cycles=12, composers=tuple(Composer(name, mean) for name, mean in levels.items())
    )
    assert truth.tie_classes() == (("birch", "cedar"),)

    def said(number: int) -> tuple[bool, bool]:
        found = [v for v in verdicts_of(truth, FEW, seed=8, number=number) if v.publication_level != "no-claim"]
        orders_said = [v.claim for v in found if v.claim.asserts_order]
        return (
            any(set(claim.subjects) == {"birch", "cedar"} for claim in orders_said),
            any(claim.id == "first[agent=ash,dimension=aggregate]" for claim in orders_said),
        )

    tied, leader = map(sum, zip(*over_seeds(said, range(STUDIES)), strict=True))
    assert tied <= band(STUDIES, 0.05)[1]
    assert leader >= band(STUDIES, 0.95)[0]
