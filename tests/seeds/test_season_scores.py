"""The season methodology's own numbers: v0.3's worked example, v0.4's agreement and self-preference tables, weights.

The page prints, for each contestant, the lowest, median and highest of three judges, and for each judge its distance
from the median on its own family and, as a mean, on the four other contestants. One table of scores fits all of it."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from assaymark.judging import Contestant, band, composite, contested_band, load_scoring, season_table, total_score
from assaymark.metrology import self_preference

PLANS = tuple(load_scoring(name) for name in ("v0.3", "v0.4"))
AGREEMENT = {
    "OpenAI GPT-5": (57, 81, 83), "Anthropic Claude Sonnet 4.6": (59, 76, 83), "xAI Grok 4.3": (59, 63, 82),
    "Google Gemini 3.5 Flash": (63, 68, 73), "Google Gemini 3.1 Pro": (58, 63, 80),
}  # fmt: skip
SCORES = ((83, 57, 81), (76, 59, 83), (63, 59, 82), (68, 63, 73), (80, 63, 58))
"""Contestants by judges, from a test below."""
JUDGES = ("openai", "anthropic", "xai")
OWN, OTHERS, GAPS = (2, -17, 19), (4.3, -8.2, 1.8), (-2.3, -8.8, 17.2)

# v0.3, the worked example: four grades and the total. No process score is printed.
REASONING, EVIDENCE, OUTCOME, DATA_RELIABILITY, TOTAL = 46, 57, 61, 54, 51


def test_rubric_weights_and_what_differs_between_the_versions():
    for plan in PLANS:
        assert [part.weight for part in plan.reasoning] == [10, 12, 10, 12, 10, 10, 10, 8, 8, 10]
        assert [part.weight for part in plan.evidence] == [25, 15, 15, 10, 10, 15, 10]
        assert plan.composite.shares(outcome=True) == {"reasoning": 40, "evidence": 35, "process": 15, "outcome": 10}
        assert plan.grader == f"grounded_financial_reasoning_judge_{plan.version}"
    old, new = PLANS
    assert [(one.panel, one.efficiency.weight) for one in PLANS] == [("single", 0), ("median", 10)]
    same = {"reasoning", "evidence", "composite", "bands"}
    assert old.model_dump(include=same) == new.model_dump(include=same)
    assert old.digest != new.digest


def test_the_worked_example_implies_a_process_score():
    """46, 57 and 61 make 51 with a process of 43.7; 40.4 to 46.9 if only the total is rounded."""
    implied = (TOTAL - (0.40 * REASONING + 0.35 * EVIDENCE + 0.10 * OUTCOME)) / 0.15
    assert implied == pytest.approx(43.67, abs=0.01)
    assert total_score([composite(REASONING, EVIDENCE, implied, OUTCOME)], plan=PLANS[0]) == pytest.approx(TOTAL)
    # The figure that is printed instead, data reliability, is no component: with it the total would be another.
    for process, rounds_to in ((40.3, 50), (40.4, 51), (46.9, 51), (47.0, 52), (DATA_RELIABILITY, 53)):
        assert int(composite(REASONING, EVIDENCE, process, OUTCOME) + 0.5) == rounds_to
    assert band(TOTAL) == band(REASONING) == band(EVIDENCE) == "mixed"


def test_what_the_text_says_about_scores_and_bands():
    """49 and 52 is noise and keeps a band; the same three points elsewhere do not."""
    bands = {"weak": (43, 44), "mixed": (45, 46, 49, 51, 52, 66), "strong": (67, 70)}
    assert {score: band(score) for scores in bands.values() for score in scores} == {
        score: name for name, scores in bands.items() for score in scores
    }


def test_the_agreement_table_straddles_bands_and_allows_no_order_of_ranks():
    """Neither page publishes repeated decisions or gradings, so the floor is unknown and all share one place."""
    for row, scores in zip(AGREEMENT.values(), SCORES, strict=True):
        found = contested_band(row)
        assert (found.lowest, found.highest, found.contested, found.judges) == ("mixed", "strong", True, 3)
        assert total_score(row) == total_score([0, *row[1:]]) == total_score([*row[:2], 100]) == row[1]
        assert (min(scores), total_score(scores), max(scores)) == row
    assert [contested_band(row).band for row in AGREEMENT.values()] == ["strong", "strong", "mixed", "strong", "mixed"]
    table = season_table([Contestant(name, dict(zip("abc", row, strict=True))) for name, row in AGREEMENT.items()])
    assert [(row.total, row.first, row.last) for row in table] == [(total, 1, 5) for total in (81, 76, 68, 63, 63)]
    spreads = {row.contestant: row.agreement.high - row.agreement.low for row in table}
    assert [spreads[name] for name in AGREEMENT] == [26, 24, 23, 10, 22]


def test_without_an_outcome_its_tenth_goes_to_reasoning_and_evidence():
    shares = PLANS[1].composite.shares(outcome=False)
    assert shares == pytest.approx({"reasoning": 40 * 85 / 75, "evidence": 35 * 85 / 75, "process": 15})
    without = composite(REASONING, EVIDENCE, 44)
    assert without == pytest.approx((40 * 85 / 75 * REASONING + 35 * 85 / 75 * EVIDENCE + 15 * 44) / 100)
    # Neither nothing nor the outcome that is not there has been put in its place.
    assert composite(REASONING, EVIDENCE, 44, 0) < without < composite(REASONING, EVIDENCE, 44, OUTCOME)


def test_efficiency_is_a_tenth_of_the_total_and_nothing_without_a_timing():
    row = AGREEMENT["OpenAI GPT-5"]
    assert (total_score(row, 51), total_score(row)) == (pytest.approx(0.9 * 81 + 0.1 * 51), 81)
    # So outcome is a tenth of a judge's composite and 9 % of a total with a timing.
    low, high = (composite(60, 60, 60, outcome) for outcome in (0, 100))
    assert total_score([high], 50) - total_score([low], 50) == pytest.approx(9)


def test_one_table_of_scores_fits_both_printed_tables():
    fitting = []
    for rows in product(*(sorted(set(permutations(row))) for row in AGREEMENT.values())):
        above = np.array(rows) - np.array([row[1] for row in AGREEMENT.values()])[:, None]
        own = above[np.arange(3), np.arange(3)]
        others = (above.sum(axis=0) - own) / 4
        if (own == OWN).all() and (np.abs(others - OTHERS) <= 0.05 + 1e-9).all():
            fitting.append(rows)
    assert fitting == [SCORES]
    # All three judges are the highest or lowest of the panel on their own contestant: two above, one below.
    for j, (row, printed) in enumerate(zip(SCORES[:3], AGREEMENT.values(), strict=False)):
        assert row[j] == (printed[0] if OWN[j] < 0 else printed[2])


def test_the_self_preference_table_rests_on_one_agent_each_and_has_no_interval():
    """The page says three contestants; its table has five, and the means over the others fit four of them only."""
    found = self_preference(SCORES, (*JUDGES, "google", "google"), JUDGES)
    for one, own, others, gap in zip(found, OWN, OTHERS, GAPS, strict=True):
        assert (one.own, one.n_own, one.n_others, one.state) == (own, 1, 4, "single observation")
        assert (one.others, one.gap) == pytest.approx((others, gap), abs=0.05 + 1e-9)
        assert (one.low, one.high) == (None, None)
        assert "single observation" in str(one)
    # To the digit, the printed gaps are differences of the printed means and not of the means.
    assert [round(own - others, 1) for own, others in zip(OWN, OTHERS, strict=True)] == list(GAPS)
    assert [one.gap for one in found] == [-2.25, -8.75, 17.25]
