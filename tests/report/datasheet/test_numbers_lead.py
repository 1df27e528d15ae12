"""Numbers on the pages of judges lead to the row that has them."""

from __future__ import annotations

from dataclasses import replace

import judged_sheets as sheets
import pytest
from numbers_of_pages import cells, first_number, links_to

from assaymark.report import render_comparison, render_datasheet
from assaymark.report.datasheet import COMPARISON


@pytest.fixture(scope="module")
def pages():
    judges = [sheets.quay(), sheets.north(), sheets.strand(), sheets.clean()]
    found = dict(render_comparison(judges))
    for judge in judges:
        found |= render_datasheet(judge, [other for other in judges if other is not judge])
    return found


@pytest.mark.parametrize("name", [COMPARISON, "datasheet/quay-j.html", "datasheet/strand-j.html"])
def test_a_number_leads_to_the_row_that_has_it(pages, name):
    found = links_to(pages[name], r"(?:\.\./)?datasheet/[a-z-]+\.html")
    assert len(found) > 40
    counts = 0
    for path, anchor, text in found:
        row = cells(pages[path.removeprefix("../")])[anchor]
        shown, digits = first_number(text)
        value, _ = first_number(row[1])
        if "." not in text and value <= 1:  # a count of pairs or calls, whose share the row has
            n, _ = first_number(row[4] if len(row) == 6 else row[3])
            assert round(shown / n, 3) == pytest.approx(value, abs=0.0011), (text, row)
            counts += 1
        else:
            assert abs(shown - value) <= 0.51 * 10**-digits + 0.00051, (text, row)
    assert counts < len(found) / 2


def test_numbers_of_a_long_datasheet_lead_to_the_page_that_has_its_rows():
    one = sheets.quay()
    more = [sheets.share("own.share", k % 40, 40, judge="quay-j", variant=f"kind {k}") for k in range(230)]
    found = render_datasheet(replace(one, measurements=(*one.measurements, *more)))
    apart = cells(found["datasheet/quay-j-measurements.html"])
    led = links_to(found["datasheet/quay-j.html"], r"[^\"#]+")
    assert {path for path, _, _ in led} == {"../datasheet/quay-j-measurements.html"}
    assert {anchor for _, anchor, _ in led} <= apart.keys()


def test_in_a_table_of_many_judges_their_names_lead_on():
    judges = [sheets.quay(f"judge-{k:02d}", planted=False) for k in range(13)]
    text = render_comparison(judges)[COMPARISON]
    table = text[text.index('id="table"') : text.index('id="non-claims"')]
    assert not links_to(table, r"datasheet/[^\"#]+")
    assert all(f'href="datasheet/judge-{k:02d}.html#every"' in table for k in range(13))
