"""The season methodology's own numbers: v0.3's worked example, v0.4's agreement table, rubric weights and bands."""

from __future__ import annotations

import pytest

from assaymark.judging import Contestant, band, composite, contested_band, load_scoring, season_table, total_score

PLANS = tuple(load_scoring(name) for name in ("v0.3", "v0.4"))

# v0.4, "how much the judges agree": lowest, median and highest of three judges.
AGREEMENT = {
    "OpenAI GPT-5": (57, 81, 83), "Anthropic Claude Sonnet 4.6": (59, 76, 83), "xAI Grok 4.3": (59, 63, 82),
    "Google Gemini 3.5 Flash": (63, 68, 73), "Google Gemini 3.1 Pro": (58, 63, 80),
}  # fmt: skip

# v0.3, the worked example: four grades and the total. No process score is printed.
REASONING, EVIDENCE, OUTCOME, DATA_RELIABILITY, TOTAL = 46, 57, 61, 54, 51


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.version)
def test_rubric_weights(plan):
    assert [part.weight for part in plan.reasoning] == [10, 12, 10, 12, 10, 10, 10, 8, 8, 10]
    assert [part.weight for part in plan.evidence] == [25, 15, 15, 10, 10, 15, 10]
    assert sum(part.weight for part in plan.reasoning) == sum(part.weight for part in plan.evidence) == 100
    assert plan.composite.shares(outcome=True) == {"reasoning": 40, "evidence": 35, "process": 15, "outcome": 10}


def test_what_differs_between_the_versions():
    old, new = PLANS
    assert (old.panel, new.panel) == ("single", "median")
    assert (old.efficiency.weight, new.efficiency.weight) == (0, 10)
    assert [plan.grader for plan in PLANS] == [f"grounded_financial_reasoning_judge_{plan.version}" for plan in PLANS]
    same = {"reasoning", "evidence", "composite", "bands"}
    assert old.model_dump(include=same) == new.model_dump(include=same)
    assert old.digest != new.digest


def test_the_worked_example_implies_a_process_score():
    """46, 57 and 61 make 51 with a process of 43.7; 40.4 to 46.9 if only the total is rounded."""
    known = 0.40 * REASONING + 0.35 * EVIDENCE + 0.10 * OUTCOME
    implied = (TOTAL - known) / 0.15
    assert implied == pytest.approx(43.67, abs=0.01)
    assert total_score([composite(REASONING, EVIDENCE, implied, OUTCOME)], plan=PLANS[0]) == pytest.approx(TOTAL)
    for process, rounds_to in ((40.3, 50), (40.4, 51), (46.9, 51), (47.0, 52)):
        assert int(composite(REASONING, EVIDENCE, process, OUTCOME) + 0.5) == rounds_to
    # The figure that is printed instead, data reliability, is no component: with it the total would be another.
    assert int(composite(REASONING, EVIDENCE, DATA_RELIABILITY, OUTCOME) + 0.5) == 53
    assert band(TOTAL) == band(REASONING) == band(EVIDENCE) == "mixed"


def test_what_the_text_says_about_scores_and_bands():
    assert [band(score) for score in (46, 51, 70, 66, 67, 44, 45)] == [
        "mixed", "mixed", "strong", "mixed", "strong", "weak", "mixed",
    ]  # fmt: skip
    # "49 and 52 is noise" keeps a band; the same three points elsewhere do not.
    assert band(49) == band(52)
    assert band(43) != band(46)


@pytest.mark.parametrize("row", AGREEMENT.values(), ids=AGREEMENT)
def test_every_row_of_the_agreement_table_straddles_mixed_and_strong(row):
    found = contested_band(row)
    assert (found.lowest, found.highest, found.contested, found.judges) == ("mixed", "strong", True, 3)
    assert total_score(row) == row[1]


def test_the_agreement_table_allows_no_order_of_ranks():
    """Neither page publishes repeated decisions or gradings, so the floor is unknown and all share one place."""
    contestants = [Contestant(name, dict(zip("abc", row, strict=True))) for name, row in AGREEMENT.items()]
    table = season_table(contestants)
    assert [(row.total, row.first, row.last) for row in table.rows] == [(total, 1, 5) for total in (81, 76, 68, 63, 63)]
    assert {gap.state for gap in table.gaps} == {"floor unknown"}
    spreads = {row.contestant: row.agreement.high - row.agreement.low for row in table.rows}
    assert list(map(spreads.get, AGREEMENT)) == [26, 24, 23, 10, 22]


def test_bands_of_the_medians():
    named = [contested_band(row).band for row in AGREEMENT.values()]
    assert named == ["strong", "strong", "mixed", "strong", "mixed"]


def test_one_outlier_does_not_move_the_median():
    for low, middle, high in AGREEMENT.values():
        assert total_score([0, middle, high]) == total_score([low, middle, 100]) == middle


def test_without_an_outcome_its_tenth_goes_to_reasoning_and_evidence():
    shares = PLANS[1].composite.shares(outcome=False)
    assert shares == pytest.approx({"reasoning": 40 * 85 / 75, "evidence": 35 * 85 / 75, "process": 15})
    with_outcome = composite(REASONING, EVIDENCE, 44, OUTCOME)
    without = composite(REASONING, EVIDENCE, 44)
    assert without == pytest.approx((40 * 85 / 75 * REASONING + 35 * 85 / 75 * EVIDENCE + 15 * 44) / 100)
    # Neither nothing nor the outcome that is not there has been put in its place.
    assert composite(REASONING, EVIDENCE, 44, 0) < without < with_outcome


def test_efficiency_is_a_tenth_of_the_total_and_nothing_without_a_timing():
    assert total_score(AGREEMENT["OpenAI GPT-5"], 51) == pytest.approx(0.9 * 81 + 0.1 * 51)
    assert total_score(AGREEMENT["OpenAI GPT-5"]) == 81
    # So outcome is a tenth of a judge's composite and 9 % of a total with a timing.
    low, high = (composite(60, 60, 60, outcome) for outcome in (0, 100))
    assert total_score([high], 50) - total_score([low], 50) == pytest.approx(9)
