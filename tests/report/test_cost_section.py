"""What did it cost? What is known is summed, what is not is said, and a run that nobody is paid for has no section."""

from __future__ import annotations

from dataclasses import replace

import assay_runs as runs
import pytest
from read_blocks import rows, tables

from assaymark.report import PaidView, RunIndex, money, render_pages
from assaymark.report.study import cost_section

PRICED = PaidView(
    model="openai/a", calls=1200, input_tokens=4_000_000, cached_tokens=1_000_000, output_tokens=90_000, usd=12.345,
    in_batches=1000, price_of="2026-03-31",
)  # fmt: skip
UNPRICED = PaidView(
    model="acme/b", calls=3, input_tokens=0, cached_tokens=None, output_tokens=0, usd=0.0, unpriced=3, untold=3
)


def view(*paid):
    return cost_section(RunIndex.of(replace(runs.realistic(), paid=paid)))


def test_a_model_with_a_price():
    (row,) = rows(tables(view(PRICED))["Model"])
    assert row[:2] == ("openai/a", "1,200, 1,000 in batches")
    assert row[2:5] == ("4,000,000", "1,000,000", "90,000")
    assert row[5:] == ("12.35", "of 2026-03-31")


def test_a_model_without_a_price_has_no_amount_and_no_zero():
    (row,) = rows(tables(view(UNPRICED))["Model"])
    assert row[2:6] == ("not reported", "not reported", "not reported", "not known")
    assert row[6] == "no price known"


def test_a_price_for_some_calls_only_says_for_how_many():
    (row,) = rows(tables(view(replace(PRICED, unpriced=200, untold=150)))["Model"])
    assert row[6] == "of 2026-03-31; 200 calls without a price; tokens of 150 calls not reported"


@pytest.mark.parametrize(
    ("paid", "answer"),
    [
        ((PRICED,), "12.35 USD for 1,200 calls."),
        ((UNPRICED,), "3 calls of paid models; no price of them is known."),
        ((PRICED, UNPRICED), "12.35 USD for 1,200 calls; what 3 more cost is not known."),
    ],
)
def test_the_sum_says_what_is_in_it(paid, answer):
    assert view(*paid).lead == answer


def test_where_nobody_is_paid_there_is_no_section():
    assert cost_section(RunIndex.of(runs.realistic())) is None
    assert 'id="cost"' not in render_pages(runs.realistic())["plan.html"]
    assert 'id="cost"' in render_pages(replace(runs.realistic(), paid=(UNPRICED,)))["plan.html"]


def test_a_ledger_that_could_not_be_read_is_said_to_be():
    page = render_pages(replace(runs.realistic(), paid=None))["plan.html"]
    assert "could not be read where this page was made" in page
    assert "List prices" not in page


def test_a_name_from_a_study_is_text():
    page = render_pages(replace(runs.realistic(), paid=(replace(UNPRICED, model="acme/<script>x"),)))["plan.html"]
    assert "acme/&lt;script&gt;x" in page


@pytest.mark.parametrize(("usd", "shown"), [(0.0, "0.00"), (0.004, "0.004"), (0.01, "0.01"), (1234.5, "1,234.50")])
def test_amounts(usd, shown):
    assert money(usd) == shown
