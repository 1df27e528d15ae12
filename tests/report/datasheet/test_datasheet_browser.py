"""The pages of judges in a real browser: filters, the summary picture, and figures that can be read in the dark."""

from __future__ import annotations

from pathlib import Path

import judged_sheets as sheets
import pytest
from browsing import APART, write_pages

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("datasheets")
    write_pages(root, sheets.pages())
    return root


def test_filters_show_what_they_count(visit):
    page = visit("datasheet/quay-j.html")
    button = page.locator('[data-tools="every-rows"] button[data-f="ladder"]')
    button.click()
    shown = page.evaluate("[...document.querySelectorAll('#every-rows tbody tr')].filter(r => !r.hidden).length")
    assert button.text_content() == f"Ladder {shown}"


def test_the_summary_picture_draws_and_keeps_its_size(visit, folder):
    page = visit("datasheet/quay-j.html")
    found = page.evaluate(
        """async () => { const i = new Image(); i.src = 'quay-j.svg'; await i.decode().catch(() => 0);
        return [i.naturalWidth, i.naturalHeight]; }"""
    )
    assert found == [0, 0], "the policy of the page loads nothing, not even its own picture"
    text = (folder / "datasheet" / "quay-j.svg").read_text(encoding="utf-8")
    page.goto("about:blank")
    page.set_content(text)
    assert page.evaluate("document.querySelector('svg').getBoundingClientRect().width") >= 1120
    assert page.evaluate(APART) == []


def test_dark_mode_keeps_the_contrast_of_text_in_figures(visit):
    for scheme in ("light", "dark"):
        page = visit("datasheet/quay-j.html", color_scheme=scheme)
        ratios = page.evaluate(
            """() => {
          const lum = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
            .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
            return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
          const back = lum(getComputedStyle(document.body).backgroundColor);
          return [...document.querySelectorAll('svg.fig text')].map(t => lum(getComputedStyle(t).fill))
            .map(l => (Math.max(l, back) + 0.05) / (Math.min(l, back) + 0.05)); }"""
        )
        assert min(ratios) >= 4.5
