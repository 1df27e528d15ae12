"""What did it cost? What is known is summed, what is not is said, and a run that nobody is paid for has no section."""

from __future__ import annotations

from dataclasses import replace

import assay_runs as runs
import pytest
from page_words import pages
from read_blocks import rows, tables

from assaymark.report import PaidView, RunIndex, money, render_pages
from assaymark.report import study as study_pages

PRICED = PaidView(
    model="openai/a", calls=1200, input_tokens=4_000_000, cached_tokens=1_000_000, output_tokens=90_000, usd=12.345,
    in_batches=1000, price_of="2026-03-31",
)  # fmt: skip
UNPRICED = PaidView(
    model="acme/b", calls=3, input_tokens=0, cached_tokens=None, output_tokens=0, usd=0.0, unpriced=3, untold=3
)


def view(*paid):
    return study_pages.cost_section(RunIndex.of(replace(runs.realistic(), paid=paid)))


@pytest.mark.parametrize(
    ("paid", "row"),
    [
        (PRICED, ("openai/a", "1,200, 1,000 in batches", "4,000,000", "1,000,000", "90,000", "12.35", "of 2026-03-31")),
        # Without a price there is no amount and no zero.
        (UNPRICED, ("acme/b", "3", *("not reported",) * 3, "not known", "no price known")),
        (replace(PRICED, unpriced=200, untold=150),
         ("openai/a", "1,200, 1,000 in batches", "4,000,000", "1,000,000", "90,000", "12.35",
          "of 2026-03-31; 200 calls without a price; tokens of 150 calls not reported")),
    ],
)  # fmt: skip
def test_a_model_has_what_is_known_of_its_price(paid, row):
    assert rows(tables(view(paid))["Model"]) == [row]


@pytest.mark.parametrize(("paid", "answer"), [
    ((PRICED,), "12.35 USD for 1,200 calls."), ((UNPRICED,), "3 calls of paid models; no price of them is known."),
    ((PRICED, UNPRICED), "12.35 USD for 1,200 calls; what 3 more cost is not known."),
])  # fmt: skip
def test_the_sum_says_what_is_in_it(paid, answer):
    assert view(*paid).lead == answer


def test_where_nobody_is_paid_there_is_no_section_and_a_ledger_that_could_not_be_read_is_said_to_be():
    assert study_pages.cost_section(RunIndex.of(runs.realistic())) is None
    assert 'id="cost"' not in pages("realistic")["plan.html"]
    hostile = render_pages(replace(runs.realistic(), paid=(replace(UNPRICED, model="acme/<script>x"),)))["plan.html"]
    assert 'id="cost"' in hostile
    assert "acme/&lt;script&gt;x" in hostile
    unread = study_pages.cost_section(RunIndex.of(replace(runs.realistic(), paid=None)))
    assert "could not be read where this page was made" in unread.lead
    assert unread.blocks == ()


@pytest.mark.parametrize(("usd", "shown"), [(0.0, "0.00"), (0.004, "0.004"), (0.01, "0.01"), (1234.5, "1,234.50")])
def test_amounts(usd, shown):
    assert money(usd) == shown
