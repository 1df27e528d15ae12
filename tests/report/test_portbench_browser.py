"""The pages of a benchmark in a real browser: silent, offline, in every width and light, labels apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_runs import rendered
from browsing import APART, write_pages

pytestmark = pytest.mark.browser

PAGES = (
    "index.html", "scores.html", "claims.html", "histories.html", "episodes.html", "questions.html", "data.html",
    "snapshots.html", "measurements-002.html", "episodes/alder-conservative-normal.html",
)  # fmt: skip
OPEN = "document.querySelectorAll('details').forEach(d => { d.open = true; })"
FITS = "document.documentElement.scrollWidth <= innerWidth"
TINTS = """() => {
  const lum = c => { const m = c.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const v = (c.startsWith('color(') ? m : m.map(x => x / 255))
      .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  return [...document.querySelectorAll('#stages .heat .tint:not(.un)')].slice(0, 40).map(e => {
    const a = lum(getComputedStyle(e).backgroundColor), b = lum(getComputedStyle(e).color);
    return [parseFloat(e.textContent), a, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; }); }"""


@pytest.fixture(scope="module")
def folder(once) -> Path:
    return once("pages-of-benchmarks", lambda root: write_pages(root, rendered("eight")))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_silent_offline_fits_and_its_labels_stay_apart(visit, path):
    for width in (1440, 390):
        page = visit(path, width)
        assert page.noise == []
        assert len(page.asked) == 1
        assert page.evaluate(FITS)
        assert page.evaluate(APART) == []
        if path == "scores.html":  # in what is folded too
            page.evaluate(OPEN)
            assert page.evaluate(APART) == []
            assert page.evaluate(FITS)


def test_numbers_on_a_map_can_be_read_in_both_lights_and_it_prints_without_colour(visit):
    """Each number has a halo of the page's own colour, and negative cells are told apart by their hatch."""
    for scheme in ("light", "dark"):
        page = visit("data.html", color_scheme=scheme)
        page.evaluate(OPEN)
        assert page.evaluate(APART) == []
        halo = page.evaluate("[...document.querySelectorAll('#between-w .on')].map(e => getComputedStyle(e).stroke)")
        assert set(halo) == {page.evaluate("getComputedStyle(document.body).backgroundColor")}
    assert page.evaluate("getComputedStyle(document.querySelector('#between-w .r-1')).fill").startswith("url(")


def test_the_first_page_keeps_its_budgets_and_targets_are_large_enough(visit):
    """Its sentences and tallies are above the fold of a large screen, and it is short on every one."""
    for width, tall, fold in ((1440, 3000, 900), (390, 6000, 1500)):
        page = visit("index.html", width)
        assert page.evaluate("document.documentElement.scrollHeight") <= tall
        ends = page.evaluate("[...document.querySelectorAll('.tally,.lv')].map(e => e.getBoundingClientRect().bottom)")
        assert len(ends) == 5
        assert max(ends) < fold
    heights = page.evaluate(
        "[...document.querySelectorAll('button, summary, input, nav a')].filter(e => e.offsetParent)"
        ".map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 26
    page = visit("index.html", forced_colors="active")
    assert page.evaluate("getComputedStyle(document.querySelector('.no-claim .claims')).borderLeftStyle") == "dashed"
    assert len(page.evaluate("document.querySelector('main').innerText").split()) <= 750
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")


def test_a_stronger_tint_is_a_higher_score_text_on_it_can_be_read_and_equal_weight_is_in_every_panel(visit):
    for scheme, sign in (("light", -1), ("dark", 1)):
        page = visit("scores.html", color_scheme=scheme)
        found = sorted(page.evaluate(TINTS))
        assert sign * (found[-1][1] - found[0][1]) > 0
        assert min(ratio for _, _, ratio in found) >= 6.0
    boxes = page.evaluate("[...document.querySelectorAll('.multi use.eqw')].map(e => e.getBoundingClientRect().width)")
    assert len(boxes) == 8
    assert min(boxes) > 150


def test_filters_show_what_they_count(visit):
    page = visit("claims.html")
    button = page.locator('[data-tools="claim-rows"] button[data-f="no-claim"]')
    button.click()
    shown = page.evaluate("[...document.querySelectorAll('#claim-rows > li')].filter(r => !r.hidden).length")
    assert button.text_content() == f"Not supported {shown}"
