"""The summary for a terminal: 80 columns, no colour, no control characters."""

from __future__ import annotations

import io

import assay_runs as runs
import pytest
from rich.console import Console

from assaymark.report import terminal_summary


def printed(name: str) -> str:
    out = io.StringIO()
    Console(file=out, width=80, color_system=None).print(terminal_summary(getattr(runs, name)()))
    return out.getvalue()


@pytest.mark.parametrize("name", ["realistic", "large", "withheld", "hostile", "minimal"])
def test_it_fits_80_columns_without_colour(name):
    text = printed(name)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text


def test_it_says_the_verdicts_the_board_and_the_agreement():
    text = printed("realistic")
    assert "[x] 31 supported   [/] 5 only with a condition   [-] 79 not supported" in text
    assert "“Marten ranks first of the 5 agents on the overall score.”" in text
    said = "Say also: Graded by rule-based stand-ins. The judges agree only weakly on this score."
    assert said in " ".join(text.split())
    assert "4.31 (4.24 to 4.38)" in text
    assert "0.19 to 0.27" in text
    assert "Reference panel." in text


def test_scores_and_ranks_without_support_are_not_printed():
    text = printed("withheld")
    assert "1 to 5" in text
    assert "3.65 to 4.38" in text
    assert all(f"{level:.2f}" not in text for level in runs.LEVELS.values())
    assert "ranks first" not in text


def test_agents_of_one_tier_share_its_range():
    text = " ".join(printed("realistic").split())
    assert "2 to 5 Badger 3.65 to 4.14 [/] Qualified" in text or "2 to 5 Badger 3.65 to 4.14 [x] Headline" in text
    assert "Weasel cannot be ranked" in text


def test_markup_in_a_name_is_text():
    assert "{{7*7}}" in printed("hostile")


def test_the_gate_names_the_kappa_and_the_format_that_decide():
    assert "enough, 0.51 in prose" in " ".join(printed("realistic").split())
