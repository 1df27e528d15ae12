"""The pages of a benchmark in a real browser: silent, offline, in every width and light, labels apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_runs import rendered
from browsing import APART, FITS, LUM, UNFOLD, write_pages

pytestmark = pytest.mark.browser

PAGES = (
    "scores.html", "claims.html", "histories.html", "episodes.html", "questions.html", "snapshots.html",
    "measurements-002.html", "episodes/alder-conservative-normal.html", "data.html", "index.html",
)  # fmt: skip
TINTS = f"""() => {{ {LUM}
  return [...document.querySelectorAll('#stages .heat .tint:not(.un)')].slice(0, 40).map(e => {{
    const a = lum(getComputedStyle(e).backgroundColor), b = lum(getComputedStyle(e).color);
    return [parseFloat(e.textContent), a, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; }}); }}"""
ENDS = "[...document.querySelectorAll('.tally,.lv')].map(e => e.getBoundingClientRect().bottom)"
HEIGHTS = """[...document.querySelectorAll('button, summary, input, nav a')].filter(e => e.offsetParent)
  .map(e => e.getBoundingClientRect().height)"""


@pytest.fixture(scope="module")
def folder(once) -> Path:
    return once("pages-of-benchmarks", lambda root: write_pages(root, rendered("eight")))


def test_pages_are_silent_offline_fit_and_their_labels_stay_apart_and_first_pages_keep_their_budgets(visit):
    """Sentences and tallies of the first are above the fold of a large screen, and it is short on every one."""
    page, problems = visit(PAGES[0]), []
    for path in PAGES:
        page.show(path)
        for width, tall, fold in ((1440, 3000, 900), (390, 6000, 1500)):
            page.set_viewport_size({"width": width, "height": 900})
            for folded in (True, False) if path == "scores.html" else (True,):
                page.evaluate("() => {}" if folded else UNFOLD)
                problems += [(path, width, one) for one in page.evaluate(APART)]
                problems += [] if page.evaluate(FITS) else [(path, width, "wider than the screen")]
            if path == "index.html":
                assert page.evaluate("document.documentElement.scrollHeight") <= tall
                ends = page.evaluate(ENDS)
                assert (len(ends), max(ends) < fold) == (5, True)
        problems += [(path, one) for one in (*page.noise, *page.asked[1:])]
    assert problems == []
    assert min(page.evaluate(HEIGHTS)) >= 26
    page.emulate_media(forced_colors="active")
    assert page.evaluate("getComputedStyle(document.querySelector('.no-claim .claims')).borderLeftStyle") == "dashed"
    assert len(page.evaluate("document.querySelector('main').innerText").split()) <= 750
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")


def test_numbers_on_maps_and_tints_can_be_read_in_both_lights(visit):
    """Each number of a map has a halo of the page's own colour, and negative cells are told apart by their hatch; a
    stronger tint is a higher score, and equal weight is in every panel."""
    page = visit("data.html")
    page.evaluate(UNFOLD)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(APART) == []
        halo = page.evaluate("[...document.querySelectorAll('#between-w .on')].map(e => getComputedStyle(e).stroke)")
        assert set(halo) == {page.evaluate("getComputedStyle(document.body).backgroundColor")}
    assert page.evaluate("getComputedStyle(document.querySelector('#between-w .r-1')).fill").startswith("url(")
    page.show("scores.html")
    for scheme, sign in (("light", -1), ("dark", 1)):
        page.emulate_media(color_scheme=scheme)
        found = sorted(page.evaluate(TINTS))
        assert sign * (found[-1][1] - found[0][1]) > 0
        assert min(ratio for _, _, ratio in found) >= 6.0
    boxes = page.evaluate("[...document.querySelectorAll('.multi use.eqw')].map(e => e.getBoundingClientRect().width)")
    assert (len(boxes), min(boxes) > 150) == (8, True)
