"""The pages of a benchmark in a real browser: silent, offline, in every width and light, labels apart."""

from __future__ import annotations

from pathlib import Path

import bench_runs as runs
import pytest
from browsing import APART, write_pages

from assaymark.report.portbench import render_benchmark

pytestmark = pytest.mark.browser

PAGES = (
    "eight/index.html", "eight/scores.html", "eight/claims.html",
    "eight/histories.html", "eight/episodes.html", "eight/questions.html",
    "eight/data.html", "eight/snapshots.html", "eight/measurements-002.html",
    "eight/episodes/alder-conservative-normal.html",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(once) -> Path:
    def build(root: Path) -> None:
        for name in {page.partition("/")[0] for page in PAGES}:
            write_pages(root / name, render_benchmark(getattr(runs, name)()))

    return once("pages-of-benchmarks", build)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_silent_offline_fits_and_its_labels_stay_apart(visit, path, width):
    page = visit(path, width)
    assert page.noise == []
    assert len(page.asked) == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(APART) == []


def test_labels_stay_apart_in_what_is_folded_too(visit):
    for width in (1440, 390):
        page = visit("eight/scores.html", width)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.evaluate(APART) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_numbers_on_a_map_can_be_read_in_both_lights_and_it_prints_without_colour(visit):
    """Each number has a halo of the page's own colour, and negative cells are told apart by their hatch."""
    for scheme in ("light", "dark"):
        page = visit("eight/data.html", color_scheme=scheme)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.evaluate(APART) == []
        halo = page.evaluate("[...document.querySelectorAll('#between-w .on')].map(e => getComputedStyle(e).stroke)")
        assert set(halo) == {page.evaluate("getComputedStyle(document.body).backgroundColor")}
    assert page.evaluate("getComputedStyle(document.querySelector('#between-w .r-1')).fill").startswith("url(")


def test_the_first_page_keeps_its_budgets(visit):
    """Its sentences and tallies are above the fold of a large screen, and it is short on every one."""
    for width, tall, fold in ((1440, 3000, 900), (390, 6000, 1500)):
        page = visit("eight/index.html", width)
        assert page.evaluate("document.documentElement.scrollHeight") <= tall
        ends = page.evaluate("[...document.querySelectorAll('.tally,.lv')].map(e => e.getBoundingClientRect().bottom)")
        assert len(ends) == 5
        assert max(ends) < fold
    assert len(visit("eight/index.html").evaluate("document.querySelector('main').innerText").split()) <= 750


def test_a_stronger_tint_is_a_higher_score_and_text_on_it_can_be_read(visit):
    script = """() => {
      const lum = c => { const m = c.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const v = (c.startsWith('color(') ? m : m.map(x => x / 255))
          .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
      return [...document.querySelectorAll('#stages .heat .tint:not(.un)')].slice(0, 40).map(e => {
        const a = lum(getComputedStyle(e).backgroundColor), b = lum(getComputedStyle(e).color);
        return [parseFloat(e.textContent), a, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; }); }"""
    for scheme, sign in (("light", -1), ("dark", 1)):
        found = sorted(visit("eight/scores.html", color_scheme=scheme).evaluate(script))
        assert sign * (found[-1][1] - found[0][1]) > 0
        assert min(ratio for _, _, ratio in found) >= 6.0


def test_the_line_of_equal_weight_is_drawn_in_every_panel(visit):
    boxes = visit("eight/scores.html").evaluate(
        "[...document.querySelectorAll('.multi use.eqw')].map(e => e.getBoundingClientRect().width)"
    )
    assert len(boxes) == 8
    assert min(boxes) > 150


def test_filters_show_what_they_count_and_printing_opens_what_is_folded(visit):
    page = visit("eight/claims.html")
    button = page.locator('[data-tools="claim-rows"] button[data-f="no-claim"]')
    button.click()
    shown = page.evaluate("[...document.querySelectorAll('#claim-rows > li')].filter(r => !r.hidden).length")
    assert button.text_content() == f"Not supported {shown}"
    page = visit("eight/index.html")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")


def test_forced_colours_keep_the_borders_of_the_levels_and_targets_are_large_enough(visit):
    forced = visit("eight/index.html", forced_colors="active")
    assert forced.evaluate("getComputedStyle(document.querySelector('.no-claim .claims')).borderLeftStyle") == "dashed"
    heights = visit("eight/index.html", 390).evaluate(
        "[...document.querySelectorAll('button, summary, input, nav a')].filter(e => e.offsetParent)"
        ".map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 26
