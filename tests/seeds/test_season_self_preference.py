"""Season methodology v0.4: the self-preference table, and the scores that both of its tables imply.

The page prints, for each contestant, the lowest, median and highest of three judges, and for each judge its distance
from the median on its own family and, as a mean, on the four other contestants. One table of scores fits all of it.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from assaymark.judging import contested_band, total_score
from assaymark.metrology import self_preference

JUDGES = ("openai", "anthropic", "xai")
AGENTS = ("openai", "anthropic", "xai", "google", "google")
AGREEMENT = ((57, 81, 83), (59, 76, 83), (59, 63, 82), (63, 68, 73), (58, 63, 80))
OWN, OTHERS, GAPS = (2, -17, 19), (4.3, -8.2, 1.8), (-2.3, -8.8, 17.2)

SCORES = ((83, 57, 81), (76, 59, 83), (63, 59, 82), (68, 63, 73), (80, 63, 58))
"""Contestants by judges, from the test below."""


def test_one_table_of_scores_fits_both_printed_tables():
    fitting = []
    for rows in product(*(sorted(set(permutations(row))) for row in AGREEMENT)):
        above = np.array(rows) - np.array([row[1] for row in AGREEMENT])[:, None]
        own = above[np.arange(3), np.arange(3)]
        others = (above.sum(axis=0) - own) / 4
        if (own == OWN).all() and (np.abs(others - OTHERS) <= 0.05 + 1e-9).all():
            fitting.append(rows)
    assert fitting == [SCORES]


def test_the_self_preference_table():
    found = self_preference(SCORES, AGENTS, JUDGES)
    for one, own, others, gap in zip(found, OWN, OTHERS, GAPS, strict=True):
        assert one.own == own
        assert one.others == pytest.approx(others, abs=0.05 + 1e-9)
        assert one.gap == pytest.approx(gap, abs=0.05 + 1e-9)
    # To the digit, the printed gaps are differences of the printed means and not of the means.
    assert [round(own - others, 1) for own, others in zip(OWN, OTHERS, strict=True)] == list(GAPS)
    assert [one.gap for one in found] == [-2.25, -8.75, 17.25]


def test_each_gap_rests_on_one_agent_and_has_no_interval():
    """The page says three contestants; its table has five, and the means over the others fit four of them only."""
    for one in self_preference(SCORES, AGENTS, JUDGES):
        assert (one.n_own, one.n_others, one.state) == (1, 4, "single observation")
        assert (one.low, one.high) == (None, None)
        assert "single observation" in str(one)


def test_each_judges_own_family_is_where_it_is_the_outlier():
    """All three are the highest or lowest of the panel on their own contestant: two above, one below."""
    for j, (row, printed) in enumerate(zip(SCORES[:3], AGREEMENT[:3], strict=True)):
        assert row[j] == (printed[0] if OWN[j] < 0 else printed[2])


@pytest.mark.parametrize(("row", "printed"), list(zip(SCORES, AGREEMENT, strict=True)))
def test_the_scores_make_the_agreement_table(row, printed):
    assert (min(row), total_score(row), max(row)) == printed
    assert contested_band(row).contested
