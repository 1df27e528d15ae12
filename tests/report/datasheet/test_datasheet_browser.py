"""The pages of judges in a real browser: the summary picture, and figures that can be read in the dark."""

from __future__ import annotations

from pathlib import Path

import judged_sheets as sheets
import pytest
from browsing import APART, LUM, write_pages

from assaymark.report import render_datasheet

pytestmark = pytest.mark.browser

CONTRAST = f"""() => {{ {LUM}
  const back = lum(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('svg.fig text')].map(t => lum(getComputedStyle(t).fill))
    .map(l => (Math.max(l, back) + 0.05) / (Math.min(l, back) + 0.05)); }}"""
SIZE = """async () => { const i = new Image(); i.src = 'quay-j.svg'; await i.decode().catch(() => 0);
  return [i.naturalWidth, i.naturalHeight]; }"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("datasheets")
    write_pages(root, render_datasheet(sheets.quay(), (sheets.north(), sheets.strand())))
    return root


def test_figures_can_be_read_in_the_dark_and_the_summary_picture_draws(visit, folder):
    page = visit("datasheet/quay-j.html")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert min(page.evaluate(CONTRAST)) >= 4.5
    assert page.evaluate(SIZE) == [0, 0], "the policy of the page loads nothing, not even its own picture"
    text = (folder / "datasheet" / "quay-j.svg").read_text(encoding="utf-8")
    page.goto("about:blank")
    page.set_content(text)
    assert page.evaluate("document.querySelector('svg').getBoundingClientRect().width") >= 1120
    assert page.evaluate(APART) == []
